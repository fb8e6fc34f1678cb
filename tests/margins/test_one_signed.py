"""A.5, A.9 and their starred forms: worked values, and the minimax computed in other ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reluflow import Dataset, NotSeparable, ProblemError, global_max_margin
from reluflow.margins import Bounds, one_neuron, one_signed_margins

D1 = Dataset([(0.8, 0.2), (0.3, 0.6), (0.5, -0.4)], [1, 1, 1]).symmetrized()
D2 = Dataset([(1, 0.5), (0.8, -0.3), (0.6, 0.9), (-1, 0.3), (-0.9, -0.7)], [1, 1, 1, -1, -1])
D3 = Dataset(
    [(1, 0.2, 0.1), (0.7, 0.5, -0.3), (0.9, -0.4, 0.2), (-0.8, 0.1, 0.3), (-1, -0.3, -0.2), (-0.6, 0.4, -0.5)],
    [1, 1, 1, -1, -1, -1],
)
D5 = Dataset([(0.5, 0.4), (0.45, -0.5), (1.5, 0.1), (1.4, -0.2), (-1.6, 0.3), (-1.5, -0.4)], [1, 1, 1, 1, -1, -1])
D7 = Dataset(
    [(t, s, 0.05) for t in (0.1, 4, 8, 12) for s in (1, -1)] + [(-1, 0, 0.05), (-2, 0, 0.05)], [1] * 8 + [-1] * 2
)
D8 = Dataset([(1, 0.5), (-5, 2.5), (20, 0)], [1, -1, 1])


def hinted() -> Dataset:
    core = D_CORE
    w = np.array([0.998274373175, -0.058722021951])
    w = w / np.linalg.norm(w)
    across = np.array([-w[1], w[0]])
    return Dataset(np.vstack([45 * w, 0.2 * w + across, 0.2 * w - across, core.X]), [1, 1, 1, *core.y])


D_CORE = Dataset([(1, 0.5), (0.8, -1), (-1, 0.3), (-0.9, -0.7)], [1, 1, -1, -1])


@pytest.mark.parametrize(
    ("data", "slope", "value", "star", "support", "digits"),
    [
        (D2, 0.5, 0.482593037, None, [3, 4], 1e-9),
        (D3, 0.5, 0.374902585, None, [3, 5], 1e-9),
        (D5, 0.5, 0.119260542188, 0.119260542188, [0, 1], 1e-12),
        (hinted(), 0.5, 0.05, 0.05, [1, 2], 1e-12),
        (D7, 0.5, 0.027950849719, 0.027950849719, [0, 1], 1e-12),
        (D8, 0.2, 0.111803398875, 1.431782106327, [0, 1], 1e-12),
    ],
)
def test_worked_values(data, slope, value, star, support, digits):
    found = one_signed_margins(data, slope)
    assert found.value.lower - digits <= value <= found.value.upper + digits
    assert found.value.upper - found.value.lower <= 1e-11
    if star is not None:
        assert found.star.lower - digits <= star <= found.star.upper + digits
        assert found.star.upper - found.star.lower <= 1e-11
    assert sorted(found.neuron.support) == support
    threshold = one_neuron(data, slope).gamma / 2
    assert found.threshold == threshold
    assert found.holds is (value < threshold)
    if star is not None:
        assert found.holds_star is (star < threshold)
    assert found.one_class == all(data.y[support] > 0)


def test_symmetric_data_fail():
    found = one_signed_margins(D1, 0.5)
    assert sorted(found.neuron.support) == [4, 5]
    assert found.holds is False


def test_flipped_labels_give_a9():
    # E-L7: with output weights >= 0 the value is 0.1192605422, below the threshold.
    a5, a9 = one_signed_margins(D5, 0.5), one_signed_margins(D5.flipped(), 0.5, sign=-1)
    assert a9.value.lower == pytest.approx(0.1192605422, abs=1e-10)
    assert (a9.holds, a9.holds_star, a9.one_class) == (True, True, True)
    np.testing.assert_allclose(a9.neuron.w, -a5.neuron.w, atol=1e-15)
    assert a9.threshold == pytest.approx(a5.threshold, rel=1e-15)
    # The printed sign gives the threshold itself.
    support = D5.flipped().subset(a9.neuron.support)
    assert global_max_margin(support, 0.5, -1).lower == pytest.approx(0.2385210844, abs=1e-10)
    for data in (D2, D3, D8):
        one, two = one_signed_margins(data, 0.3), one_signed_margins(data.flipped(), 0.3, sign=-1)
        assert two.value.lower == pytest.approx(one.value.lower, rel=1e-10)
        assert two.star.lower == pytest.approx(one.star.lower, rel=1e-10)
        assert (one.holds, one.holds_star) == (two.holds, two.holds_star)


# -- the minimax by other means ----------------------------------------------------------------------------------------


def best_gain(X, y, weights, slope) -> float:
    """max over directions in the plane of -1/2 sum w y phi(u.x): every arc between two kinks, by its own maximum."""
    kinks = np.sort(np.concatenate([np.arctan2(X[:, 0], -X[:, 1]), np.arctan2(-X[:, 0], X[:, 1])]) % (2 * np.pi))
    best = -np.inf
    for lo, hi in zip(kinks, np.append(kinks[1:], kinks[0] + 2 * np.pi), strict=True):
        middle = (lo + hi) / 2
        on = X @ [np.cos(middle), np.sin(middle)] > 0
        g = -0.5 * (weights * y * np.where(on, 1.0, slope)) @ X
        angles = [lo, hi]
        top = np.arctan2(g[1], g[0])
        if (top - lo) % (2 * np.pi) < hi - lo:
            angles.append(top)
        best = max(best, max(g @ [np.cos(a), np.sin(a)] for a in angles))
    return float(best)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.5, 0.8]))
def test_two_supports_in_the_plane(seed, slope):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 2))
    y = np.sign(X[:, 0])
    X[:, 0] += 0.2 * y
    data = Dataset(X, y)
    found = one_signed_margins(data, slope)
    pair = found.neuron.support
    assume(pair.size == 2)
    A, b = X[pair], y[pair]
    # The gain is convex in the weight, with kinks: shrink the bracket by thirds.
    lo, hi = 0.0, 1.0
    for _ in range(90):
        left, right = (2 * lo + hi) / 3, (lo + 2 * hi) / 3
        if best_gain(A, b, np.array([left, 1 - left]), slope) <= best_gain(A, b, np.array([right, 1 - right]), slope):
            hi = right
        else:
            lo = left
    least = best_gain(A, b, np.array([lo, 1 - lo]), slope)
    assert found.value.lower <= least + 1e-12
    assert found.value.upper == pytest.approx(least, rel=1e-9)
    # Two independent supports have a single dual: the starred value is the gain against it.
    weights = found.neuron.weights[pair]
    assert found.star.upper == pytest.approx(best_gain(A, b, weights, slope), rel=1e-9)
    assert found.star.lower == pytest.approx(found.star.upper, rel=1e-9)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.sampled_from([0.1, 0.5, 0.9]))
def test_order_and_decisions(seed, d, slope):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, d))
    y = np.sign(X[:, 0])
    X[:, 0] += 0.1 * y
    found = one_signed_margins(Dataset(X, y), slope, sign=int(rng.choice([-1, 1])))
    assert 0 < found.value.lower <= found.value.upper <= found.value.lower * (1 + 1e-8)
    assert found.star.lower >= found.value.lower
    assert found.star.upper <= found.star.lower * (1 + 1e-8)
    for bounds, holds in ((found.value, found.holds), (found.star, found.holds_star)):
        assert holds is bounds.below(found.threshold)
    if found.one_class:
        sub = Dataset(X, y).subset(found.neuron.support)
        direct = global_max_margin(sub, slope, -found.neuron.sign)
        assert direct.lower == pytest.approx(slope * found.neuron.gamma / 2, rel=1e-9)
        assert found.holds
        assert found.holds_star


def test_a_dual_that_is_not_unique():
    """Four tight samples in the plane leave freedom in the dual: the starred value lies below each single dual."""
    data = Dataset([(1, 1), (1, -1), (-2, 2), (-2, -2)], [1, 1, -1, -1])
    found = one_signed_margins(data, 0.5)
    assert sorted(found.neuron.support) == [0, 1, 2, 3]
    grid = [best_gain(data.X, data.y, np.array([p, p, 0.5 - p, 0.5 - p]), 0.5) for p in np.linspace(0, 0.5, 201)]
    uneven = [  # sum of y x_i^+ is (1, 0) exactly when p1 - p2 = -(p3 - p4)... and the weights add up to 1
        best_gain(data.X, data.y, np.array([0.25 + t, 0.25 - t, 0.25 + t, 0.25 - t]), 0.5)
        for t in np.linspace(-0.25, 0.25, 101)
    ]
    assert found.star.upper <= min(grid + uneven) + 1e-12
    assert found.star.lower >= found.value.lower
    assert found.star.upper == pytest.approx(min(grid + uneven), rel=1e-4)  # a grid of weights, step 1/400


def test_slopes_at_the_ends():
    with pytest.raises(ProblemError, match="slope"):
        one_signed_margins(D2, 0.0)
    single = one_signed_margins(D2.subset([0, 1, 2]), 0.0)
    assert (single.holds, single.value.upper) == (True, 0.0)
    linear = one_signed_margins(D2, 1.0)
    assert (linear.holds, linear.holds_star) == (False, False)
    assert linear.value.upper == pytest.approx(linear.threshold, rel=1e-12)


def test_bad_input():
    with pytest.raises(NotSeparable):
        one_signed_margins(Dataset([(1, 0), (2, 0.1), (-1, 0)], [1, -1, 1]), 0.5)
    with pytest.raises(ProblemError, match="sign"):
        one_signed_margins(D2, 0.5, sign=2)
    with pytest.raises(ProblemError, match="slope"):
        one_signed_margins(D2, 1.5)
    with pytest.raises(ProblemError, match="Dataset"):
        one_signed_margins([[1.0]], 0.5)


def test_bounds():
    assert Bounds(1, 2).below(2) is None
    assert Bounds(1, 1.5).below(2) is True
    assert Bounds(2, 2.5).below(2) is False


@pytest.mark.parametrize(("data", "slope"), [(D2, 0.5), (D3, 0.5), (D5, 0.5), (hinted(), 0.5), (D7, 0.5), (D8, 0.2)])
@pytest.mark.parametrize("sign", [1, -1])
def test_deciding_says_the_same_of_worked_examples(data, slope, sign):
    whole, found = one_signed_margins(data, slope, sign), one_signed_margins(data, slope, sign, decide=True)
    assert (found.holds, found.holds_star) == (whole.holds, whole.holds_star)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(2, 5), slope=st.sampled_from([0.05, 0.2, 0.5, 0.8, 1.0]))
def test_deciding_says_the_same_with_less_work(seed, d, slope):
    rng = np.random.default_rng(seed)
    w, X = rng.normal(size=d), rng.normal(size=(12, d)) * rng.uniform(0.1, 2, (12, 1))
    assume((X @ w != 0).all())
    data = Dataset(X, np.sign(X @ w))
    whole, found = one_signed_margins(data, slope), one_signed_margins(data, slope, decide=True)
    assert (found.holds, found.holds_star) == (whole.holds, whole.holds_star)
    for rough, close in ((found.value, whole.value), (found.star, whole.star)):
        assert rough.lower <= close.upper * (1 + 1e-9)
        assert rough.upper >= close.lower * (1 - 1e-9)


def test_deciding_ends_where_a_verdict_stands(monkeypatch):
    """On D8 the value is below the threshold and the starred one is not; on D2 a single neuron tells."""
    rough = one_signed_margins(D8, 0.2, decide=True)
    assert (rough.holds, rough.holds_star) == (True, False)
    assert rough.value.lower < 0.9 * rough.value.upper
    assert rough.star.lower < 0.999 * rough.star.upper
    monkeypatch.setattr("reluflow.margins.one_signed.global_max_margin", None)
    monkeypatch.setattr("reluflow.margins.one_signed.bracket", None)
    assert one_signed_margins(D2, 0.5, decide=True).holds is False
