"""What must not change when the data are rotated, permuted, relabelled or scaled."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reluflow import Dataset, NotSeparable, max_margin
from reluflow.margins import class_margins, hard_margin

SETTINGS = settings(deadline=None, max_examples=80)
SEEDS = st.integers(0, 2**32 - 1)


def teacher(rng, n, d):
    X = rng.standard_normal((n, d))
    t = rng.standard_normal(d)
    return Dataset(X, np.where(X @ t > 0, 1, -1))


def grid(rng, n, d):
    """Small integers: ties, duplicates and opposite points everywhere."""
    X = rng.integers(-3, 4, (n, d))
    y = np.where(X @ rng.integers(1, 4, d) > 0, 1, -1)
    if rng.random() < 0.3:
        y = rng.choice([-1, 1], n)
    X, first = np.unique(X, axis=0, return_index=True)
    keep = X.any(axis=1)
    return X[keep].astype(float), y[first][keep]


def outcome(Z):
    try:
        return hard_margin(Z)
    except NotSeparable as error:
        return error


def same_vector(one, other):
    """Both are the optimum, rounded: bit for bit the same, except for the noise where an entry is zero."""
    np.testing.assert_allclose(one.w, other.w, rtol=0, atol=1e-27 * np.abs(other.w).max())


@SETTINGS
@given(SEEDS, st.integers(1, 60), st.integers(1, 12))
def test_rotation(seed, n, d):
    rng = np.random.default_rng(seed)
    data = teacher(rng, n, d)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    before, after = max_margin(data), max_margin(Dataset(data.X @ Q.T, data.y))
    # the rotated points are rounded: as far as that moves the optimum
    spread = np.linalg.cond(data.X[before.active])
    assert np.linalg.norm(after.direction - Q @ before.direction) <= 1e-14 * spread * d
    assert after.margin == pytest.approx(before.margin, rel=1e-14 * spread * d)
    assert after.active.tolist() == before.active.tolist()


@SETTINGS
@given(SEEDS, st.integers(1, 12), st.integers(2, 4))
def test_exact_rotation(seed, n, d):
    """Rotations by 3-4-5 triangles keep integers: verdict and ties must agree exactly, degenerate or not."""
    rng = np.random.default_rng(seed)
    X, y = grid(rng, n, d)
    assume(len(X))
    R = np.eye(d) * 5
    R[:2, :2] = [[3, -4], [4, 3]]
    R = R[rng.permutation(d)]
    before, after = outcome(X * y[:, None]), outcome((X @ R.T) * y[:, None])
    assert isinstance(before, NotSeparable) == isinstance(after, NotSeparable)
    if isinstance(before, NotSeparable):
        return
    np.testing.assert_allclose(after.direction, R @ before.direction / 5, atol=1e-15)
    assert after.margin == pytest.approx(5 * before.margin, rel=1e-15)
    assert after.support.tolist() == before.support.tolist()
    assert after.rank == before.rank


@SETTINGS
@given(SEEDS, st.integers(1, 40), st.integers(1, 6))
def test_permutation(seed, n, d):
    rng = np.random.default_rng(seed)
    X, y = grid(rng, n, d)
    assume(len(X))
    Z = X * y[:, None]
    order = rng.permutation(len(Z))
    before, after = outcome(Z), outcome(Z[order])
    assert isinstance(before, NotSeparable) == isinstance(after, NotSeparable)
    if isinstance(before, NotSeparable):
        return
    same_vector(after, before)
    assert sorted(order[after.support].tolist()) == before.support.tolist()


@SETTINGS
@given(SEEDS, st.integers(2, 40), st.integers(1, 8))
def test_label_flip(seed, n, d):
    data = teacher(np.random.default_rng(seed), n, d)
    before, after = max_margin(data), max_margin(data.flipped())
    np.testing.assert_array_equal(after.w, -before.w)
    np.testing.assert_array_equal(after.dual, before.dual)
    assume(data.positives.size and data.negatives.size)
    for old, new in zip(class_margins(data), reversed(class_margins(data.flipped())), strict=True):
        np.testing.assert_array_equal(new.w, old.w)
        np.testing.assert_array_equal(new.support, old.support)


@SETTINGS
@given(SEEDS, st.integers(1, 40), st.integers(1, 8), st.floats(-30, 30))
def test_positive_scaling(seed, n, d, exponent):
    data = teacher(np.random.default_rng(seed), n, d)
    scale = 10.0**exponent
    before, after = max_margin(data), max_margin(Dataset(data.X * scale, data.y))
    spread = np.linalg.cond(data.X[before.active])
    assert np.linalg.norm(after.direction - before.direction) <= 1e-14 * spread * d
    assert after.margin == pytest.approx(before.margin * scale, rel=1e-14 * spread * d)
    doubled = max_margin(Dataset(data.X * 2.0 ** round(exponent), data.y))
    np.testing.assert_array_equal(doubled.direction, before.direction)


@SETTINGS
@given(SEEDS, st.integers(2, 30), st.integers(1, 6))
def test_points_beyond_the_margin_change_nothing(seed, n, d):
    rng = np.random.default_rng(seed)
    Z = teacher(rng, n, d).signed
    before = hard_margin(Z)
    further = Z[rng.integers(0, n, 5)] * (1 + rng.random((5, 1)))  # longer copies
    after = hard_margin(np.vstack([Z, further, Z[before.active]]))
    same_vector(after, before)
    if before.active.size:
        assert "dependent support" in after.degenerate
        assert after.rank == before.rank


@SETTINGS
@given(SEEDS, st.integers(2, 30), st.integers(1, 6))
def test_removing_an_active_point_lengthens_the_margin(seed, n, d):
    Z = teacher(np.random.default_rng(seed), n, d).signed
    before = hard_margin(Z)
    for i in before.active[:3]:
        assert hard_margin(np.delete(Z, i, axis=0)).margin > before.margin
