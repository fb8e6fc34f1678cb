"""Cells of hyperplane arrangements: known counts, brute force, degenerate positions."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from reluflow import BudgetExceeded, DataError, ProblemError
from reluflow.sectors import cell_bound, enumerate_cells, exact_signs


def in_general_position(n, d):
    return 2 * sum(comb(n - 1, k) for k in range(min(n, d)))


def feasible(X, signs):
    """Whether some u has exactly these strict signs, by a linear program: a second way."""
    answer = linprog(
        np.zeros(X.shape[1]), A_ub=-signs[:, None] * X, b_ub=-np.ones(len(X)), bounds=[(None, None)] * X.shape[1]
    )
    return answer.status == 0


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 3), (3, 2), (7, 2), (5, 3), (9, 3), (6, 4), (8, 4), (4, 6), (7, 5)])
def test_count_in_general_position(n, d):
    X = np.random.default_rng(10 * n + d).standard_normal((n, d))
    cells = enumerate_cells(X)
    assert cells.complete
    assert len(cells) == in_general_position(n, d) == cell_bound(X)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_degenerate_integer_points_against_linear_programs(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    X = rng.integers(-2, 3, (n, d)).astype(float)
    X[~X.any(axis=1)] = 1.0  # parallel, antiparallel, dependent points are all likely
    cells = enumerate_cells(X)
    want = {signs for signs in itertools.product((-1, 1), repeat=n) if feasible(X, np.array(signs, float))}
    assert {tuple(row) for row in cells.signs.tolist()} == want
    assert len(cells) == len(want) <= cell_bound(X)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_witnesses_lie_inside_and_antipodes_are_there(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((int(rng.integers(1, 9)), int(rng.integers(2, 5)))) * 10.0 ** rng.uniform(-6, 6)
    cells = enumerate_cells(X)
    np.testing.assert_array_equal(exact_signs(cells.witnesses, X), cells.signs)
    np.testing.assert_allclose(np.linalg.norm(cells.witnesses, axis=1), 1.0, rtol=1e-12)
    rows = {row.tobytes() for row in cells.signs}
    assert len(rows) == len(cells)
    assert {(-row).tobytes() for row in cells.signs} == rows


def test_random_directions_find_no_other_cell():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((12, 3))
    known = {row.tobytes() for row in enumerate_cells(X).signs}
    seen = {row.tobytes() for row in np.sign(rng.standard_normal((20_000, 3)) @ X.T).astype(np.int8)}
    assert seen <= known


def test_budget_keeps_what_was_found():
    X = np.random.default_rng(0).standard_normal((20, 4))
    with pytest.raises(BudgetExceeded) as caught:
        enumerate_cells(X, budget=100)
    partial = caught.value.partial
    assert not partial.complete
    assert 0 < len(partial) <= 100
    np.testing.assert_array_equal(exact_signs(partial.witnesses, X), partial.signs)


@pytest.mark.parametrize(("X", "error"), [([[0.0, 0.0]], DataError), ([1.0, 2.0], DataError), ([[np.nan]], DataError)])
def test_bad_points(X, error):
    with pytest.raises(error):
        enumerate_cells(X)


@pytest.mark.parametrize("budget", [0, 1, -5, 2.5, True])
def test_bad_budget(budget):
    with pytest.raises(ProblemError, match="budget"):
        enumerate_cells([[1.0, 0.0]], budget=budget)
