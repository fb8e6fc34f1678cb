"""Cells of hyperplane arrangements, against exact counts and against patterns seen at random."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reluflow import BudgetExceeded, DataError, ProblemError
from reluflow.sectors import cell_bound, enumerate_cells


def regions(normals: list[tuple[Fraction, ...]]) -> int:
    """Exact number of cells by deletion and restriction."""
    lines = set()
    for v in normals:
        lead = next((a for a in v if a), None)
        if lead is not None:
            lines.add(tuple(a / lead for a in v))
    if not lines:
        return 1
    *rest, h = sorted(lines)
    if len(h) == 1:
        return 2
    p = next(i for i, a in enumerate(h) if a)
    within = [tuple(v[i] - v[p] / h[p] * h[i] for i in range(len(v)) if i != p) for v in rest]
    return regions(rest) + regions(within)


def check(X, cells) -> None:
    X = np.asarray(X, dtype=float)
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    assert cells.signs.dtype == np.int8
    np.testing.assert_array_equal(np.sign(cells.witnesses @ unit.T), cells.signs)
    np.testing.assert_allclose(np.linalg.norm(cells.witnesses, axis=1), 1, rtol=1e-12)
    assert len(np.unique(cells.signs, axis=0)) == len(cells)
    half = len(cells) // 2
    np.testing.assert_array_equal(cells.signs[:half], -cells.signs[half:])


@pytest.mark.parametrize(
    ("n", "d"), [(1, 1), (1, 3), (5, 1), (7, 2), (200, 2), (3, 5), (12, 3), (40, 3), (12, 4), (11, 6), (8, 8), (10, 8)]
)
def test_general_position(n, d):
    X = np.random.default_rng(n * 100 + d).normal(size=(n, d))
    cells = enumerate_cells(X)
    m, r = (1, 1) if d == 1 else (n, min(n, d))
    assert len(cells) == 2 * sum(comb(m - 1, k) for k in range(r)) == cell_bound(X)
    assert cells.complete
    check(X, cells)


small = arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.integers(-2, 2))


@settings(deadline=None, max_examples=80)
@given(small, st.integers(0, 2**32 - 1))
def test_degenerate_integer_points_against_the_exact_count(X, seed):
    X = X[X.any(axis=1)]
    if not len(X):
        return
    exact = regions([tuple(Fraction(int(a)) for a in row) for row in X])
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    for Y in (X, X @ turn, np.hstack([X @ turn, -X]) * 1e-5, X * 10.0 ** rng.uniform(-6, 6, size=(len(X), 1))):
        cells = enumerate_cells(Y)
        assert len(cells) == exact <= cell_bound(Y)
        check(Y, cells)


@settings(deadline=None, max_examples=40)
@given(small, st.integers(0, 2**32 - 1))
def test_every_pattern_met_at_random_is_listed(X, seed):
    X = X[X.any(axis=1)]
    if not len(X):
        return
    seen = np.sign(np.random.default_rng(seed).normal(size=(3000, X.shape[1])) @ X.T).astype(np.int8)
    listed = {row.tobytes() for row in enumerate_cells(X).signs}
    assert {row.tobytes() for row in seen[(seen != 0).all(axis=1)]} <= listed


@pytest.mark.parametrize("d", [3, 4, 5, 6])
def test_braid_arrangement(d):
    eye = np.eye(d)
    X = [eye[i] - eye[j] for i, j in combinations(range(d), 2)]
    assert len(enumerate_cells(X)) == factorial(d)


def test_witnesses_lie_in_the_span():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 3)) @ rng.normal(size=(3, 10))
    cells = enumerate_cells(X)
    off = cells.witnesses - cells.witnesses @ np.linalg.pinv(X) @ X
    assert np.abs(off).max() < 1e-12
    assert len(cells) == 2 * (1 + 5 + 10)


def test_thin_cells_are_found_down_to_the_resolution():
    for angle in (1e-3, 1e-7, 1e-10):
        X = [[1, 0, 0], [np.cos(angle), np.sin(angle), 0], [0, 0, 1], [1, 1, 1]]
        cells = enumerate_cells(X)
        assert len(cells) == 14
        check(X, cells)
    assert len(enumerate_cells([[1, 0], [1, 1e-14]])) == 2


def test_parallel_points_share_a_hyperplane():
    cells = enumerate_cells([[1, 2], [-3, -6], [2, 1], [1e-7, 2e-7]])
    assert len(cells) == 4
    np.testing.assert_array_equal(cells.signs[:, 0], -cells.signs[:, 1])
    np.testing.assert_array_equal(cells.signs[:, 0], cells.signs[:, 3])


@pytest.mark.parametrize(("n", "d", "budget"), [(12, 3, 40), (30, 20, 1000), (60, 40, 500)])
def test_budget(n, d, budget):
    X = np.random.default_rng(0).integers(1, 4, size=(n, d)) * np.random.default_rng(1).choice([-1, 1], size=(n, d))
    with pytest.raises(BudgetExceeded, match=f"budget = {budget}") as caught:
        enumerate_cells(X, budget=budget)
    partial = caught.value.partial
    assert not partial.complete
    assert 2 <= len(partial) <= budget
    check(X, partial)


def test_budget_that_just_suffices():
    X = np.random.default_rng(0).normal(size=(9, 3))
    assert len(enumerate_cells(X, budget=cell_bound(X))) == cell_bound(X)
    with pytest.raises(BudgetExceeded):
        enumerate_cells(X, budget=cell_bound(X) - 1)


@pytest.mark.parametrize("X", [[1.0, 2.0], [[]], [[0.0, 0.0]], [[1.0, np.nan]], [["a", "b"]]])
def test_bad_points(X):
    with pytest.raises(DataError):
        enumerate_cells(X)


@pytest.mark.parametrize("budget", [0, 1, -3, 2.5, True, None])
def test_bad_budget(budget):
    with pytest.raises(ProblemError, match="budget"):
        enumerate_cells([[1.0]], budget=budget)
