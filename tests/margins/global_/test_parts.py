"""The parts of the global margin against each other and against other solvers; larger problems."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Dataset, ProblemError, global_max_margin
from reluflow.margins.global_.branch import BoxDistance, furthest
from reluflow.margins.global_.inner import exact_gain, gains, search_gain
from reluflow.margins.global_.master import Point, Rows, lift, polish
from reluflow.margins.global_.plane import lay_out, solve_plane
from reluflow.margins.global_.search import bracket, prove_zero_margin
from reluflow.margins.global_.state import Search
from reluflow.problem import Interrupted


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 6), st.sampled_from([0.0, 0.4, 1.0]))
def test_distance_to_a_zonotope(seed, k, d, slope):
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(seed)
    N, point = rng.normal(size=(k, d)), rng.normal(size=d) * rng.choice([0.1, 3.0])
    box = BoxDistance(N, slope)
    h = box.start(1)
    _, h = box.sweep((point - h[0] @ N)[None], h, 5)
    found = np.linalg.norm(box.solve(point, h[0]))
    if slope == 1.0:
        other = np.linalg.norm(point - N.sum(axis=0))
    else:
        other = np.linalg.norm(point - lsq_linear(N.T, point, (slope, 1.0), tol=1e-14).x @ N)
    assert found <= other * (1 + 1e-9) + 1e-12
    assert found == pytest.approx(other, rel=1e-6, abs=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 10), st.integers(3, 7), st.sampled_from([0.0, 0.3, 0.7]))
def test_branch_and_bound_against_all_patterns(seed, k, d, slope):
    rng = np.random.default_rng(seed)
    A, y = rng.normal(size=(k, d)), rng.choice([-1.0, 1.0], k)
    for sign in (1.0, -1.0):
        P, N = A[y == sign], A[y != sign]
        if not len(P):
            continue
        listed = exact_gain(A, y, sign, slope, 0.0, 10**5)
        assert listed.method == "cells"
        floor = 2 * listed.upper
        bound, _, _ = furthest(P, N, slope, 0.999 * floor, 10**5)
        assert bound == pytest.approx(floor, rel=1e-9)
        # Cut short, the bound still holds.
        assert furthest(P, N, slope, 0.0, 3)[0] >= floor * (1 - 1e-12)
        # No direction does better, and the search finds nothing better.
        U = rng.normal(size=(2000, d))
        U /= np.linalg.norm(U, axis=1)[:, None]
        assert gains(A, y, sign, slope, U).max() <= listed.upper * (1 + 1e-12)
        assert search_gain(A, y, sign, slope, U[:50]).values.max(initial=0.0) <= listed.upper * (1 + 1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_the_sweep_against_all_patterns(seed, k, slope, whole):
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 3, size=(k, 2)).astype(float) if whole else rng.normal(size=(k, 2))
    y = rng.choice([-1.0, 1.0], k)
    A[0] = (1, 2)
    for sign in (1.0, -1.0):
        swept = exact_gain(A, y, sign, slope, 0.0, 10**5).upper
        lifted = exact_gain(np.hstack([A, np.zeros((k, 1))]), y, sign, slope, 0.0, 10**5).upper
        assert swept == pytest.approx(lifted, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("slope", [0.0, 0.5])
@pytest.mark.parametrize("signs", [(1.0, -1.0), (1.0,)])
def test_all_cells_of_the_plane_at_once(slope, signs):
    rng = np.random.default_rng(5)
    n = 25
    X = rng.normal(size=(n, 2))
    y = np.sign(X[:, 0] + 0.4 * rng.normal(size=n)) if len(signs) == 2 else np.ones(n)
    X[0] = -2 * X[1]  # one line twice
    y[0] = y[1]
    data = Dataset(X, y)
    norms = data.norms
    plane = lay_out(X / norms[:, None], y, norms / norms.min(), slope, signs)
    if len(signs) == 1 and slope == 0.0:
        angles = np.sort(np.arctan2(X[:, 1], X[:, 0]))
        assert np.diff(angles, append=angles[0] + 2 * np.pi).max() < np.pi  # positive ReLU networks do it
    point = solve_plane(plane)
    size = np.linalg.norm(point.V, axis=1).sum()
    z = X @ point.V.T
    lower = (0.5 * y * (np.where(z > 0, z, slope * z) @ point.s)).min() / size
    best = global_max_margin(data, slope, None if len(signs) == 2 else 1)
    assert best.exact
    assert best.method == "cells"
    assert lower == pytest.approx(best.lower, rel=1e-8)
    assert point.value * norms.min() == pytest.approx(best.upper, rel=1e-8)
    assert len(point.s) <= n + 1


def test_few_lines():
    assert lay_out(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), np.ones(3), np.ones(3), 0.5, (1.0,)) is None


@pytest.mark.parametrize(("n", "slope"), [(30, 0.5), (70, 0.5), (150, 0.0)])
def test_random_labels_in_the_plane(n, slope):
    rng = np.random.default_rng(n)
    data = Dataset(rng.normal(size=(n, 2)), rng.choice([-1, 1], n))
    best = global_max_margin(data, slope)
    assert best.exact
    assert best.gap <= 1e-8 * best.upper
    assert best.network.p <= n + 1
    assert best.network.normalized_margin(data) == best.lower > 0


@pytest.mark.parametrize(("n", "d", "slope"), [(2000, 2, 0.3), (150, 3, 0.5), (60, 5, 0.0), (40, 12, 0.5)])
def test_larger_separable_data(n, d, slope):
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    y = np.sign(X.sum(axis=1))
    data = Dataset(X + 0.1 * y[:, None], y)
    best = global_max_margin(data, slope)
    assert best.exact
    assert best.gap <= 1e-11 * best.upper
    assert best.network.p <= n + 1
    # Neither a bias towards the start nor towards a pattern: no random direction gains more against the weights.
    U = rng.normal(size=(20_000, d))
    z = U / np.linalg.norm(U, axis=1)[:, None] @ data.X.T
    F = 0.5 * np.where(z > 0, z, slope * z) @ (best.weights * data.y)
    assert np.abs(F).max() <= best.upper


@settings(deadline=None, max_examples=12)
@given(
    st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([0.1, 0.5]), st.sampled_from([None, 1]),
    st.sampled_from([0.3, 0.9, 0.999, 1.001, 1.1, 2.0]),
)  # fmt: skip
def test_an_early_stop_decides_as_the_whole_search(seed, d, slope, signs, factor):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    X = rng.normal(size=(10, d))
    data = Dataset(X + 0.3 * np.sign(X @ w)[:, None] * w, np.sign(X @ w))
    whole = global_max_margin(data, slope, signs)
    assert whole.exact
    assert whole.lower > 0  # one neuron does it
    found = global_max_margin(data, slope, signs, decide=factor * whole.lower)
    assert (found.upper < factor * whole.lower) is (factor > 1)
    assert (found.lower >= factor * whole.lower) is (factor < 1)
    assert found.lower <= whole.upper
    assert found.upper >= whole.lower
    assert found.iterations <= whole.iterations


def test_an_early_stop_is_early():
    rng = np.random.default_rng(1)
    data = Dataset(rng.normal(size=(40, 20)), rng.choice([-1, 1], 40))
    whole = global_max_margin(data, 0.5)
    for factor in (0.1, 100.0):
        found = global_max_margin(data, 0.5, decide=factor * whole.lower)
        assert found.iterations < whole.iterations
        assert not found.exact
        assert not found.stopped
    near = global_max_margin(data, 0.5, decide=whole.lower * (1 - 1e-7))
    assert near.lower >= whole.lower * (1 - 1e-7)
    for wrong in (np.nan, "0.1", True):
        with pytest.raises(ProblemError, match="decide"):
            global_max_margin(data, 0.5, decide=wrong)


def test_a_small_budget_still_gives_a_bracket():
    rng = np.random.default_rng(1)
    data = Dataset(rng.normal(size=(40, 20)), rng.choice([-1, 1], 40))
    best = global_max_margin(data, 0.5)
    poor = global_max_margin(data, 0.5, budget=50)
    assert best.exact
    assert poor.lower <= best.upper
    assert poor.upper >= best.lower
    hasty = global_max_margin(data, 0.5, rounds=1)
    assert hasty.lower <= best.upper
    assert hasty.upper >= best.lower
    assert not hasty.exact
    assert hasty.iterations == 1 < best.iterations < 100


def test_polish_reaches_rounding():
    """Two neurons +-w on a symmetric pair, started 1e-6 off."""
    rows = Rows(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, -1.0]), np.ones(2), np.zeros((2, 0)))
    V = np.array([[0.5, 1e-6], [-0.5, -1e-6]])
    point = Point(V, np.array([1.0, -1.0]), np.zeros(0), np.array([0.5, 0.5]) + 1e-7, 0.25)
    done = polish(rows, point, 0.0, 1e-4)
    assert done.value == pytest.approx(0.25, rel=1e-15)
    np.testing.assert_allclose(np.abs(done.V), [[0.5, 0], [0.5, 0]], atol=1e-15)


def test_lift_gives_long_samples_their_output():
    rows = Rows(np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2), np.array([1.0, 1e9]), np.zeros((2, 0)))
    point = Point(np.array([[1.0, 0.0]]), np.ones(1), np.zeros(0), np.array([1.0, 0.0]), 0.5)
    raised = lift(rows, point, 0.5)
    assert raised.V[0, 1] >= 1e-9
    np.testing.assert_allclose(raised.V, point.V, atol=1e-8)


# -- a margin of 0 -----------------------------------------------------------------------------------------


def conflict(d):
    """Lines with different labels on their two sides that no network tells apart, and the only weights that show it."""
    U = np.random.default_rng(0).normal(size=(d + 1, d))
    U[-1] = -U[:-1].sum(axis=0)
    return np.vstack([U, -2 * U]), np.repeat([1.0, -1.0], d + 1), np.repeat([2.0, 1.0], d + 1)


def test_weights_nearly_without_gain_are_led_to_none():
    X, y, weights = conflict(4)
    state = Search(X, y, 0.3, (1.0, -1.0), np.zeros((len(y), 0)), 10**6)
    rows = state.work.set_all()
    kappa = weights * np.linalg.norm(X, axis=1) * (1 + 1e-8 * np.random.default_rng(1).normal(size=len(y)))
    state.prove(rows, kappa)
    assert 1e-10 < state.upper.value < 1e-6
    prove_zero_margin(state, rows, kappa)
    assert state.upper.value < 1e-14
    assert state.closed(1e-12)


def test_a_margin_of_0_is_proved_without_a_polish(monkeypatch):
    monkeypatch.setattr("reluflow.margins.global_.search.polish", lambda *_: None)
    X, y, weights = conflict(5)
    found = bracket(X, y, 0.3, (1.0, -1.0), 10**5, 1e-9, 20)
    assert found.closed
    assert found.lower == 0
    assert found.upper < 1e-14
    np.testing.assert_allclose(found.weights, weights / weights.sum(), rtol=1e-12)


# -- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d", "slope"), [(12, 2, 0.0), (90, 2, 0.3), (20, 3, 0.0), (25, 9, 0.2), (8, 3, 1.0)])
def test_whenever_the_time_is_up_the_bounds_hold(n, d, slope, monkeypatch):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    data = Dataset(X, np.where(X[:, 0] + 0.5 * np.abs(X[:, 1]) > 0, 1, -1) if slope < 1 else np.sign(X[:, 0]))
    exact = global_max_margin(data, slope)
    assert exact.exact
    stopped = set()
    for seconds in (1, 2, 3, 5, 8, 13, 30, 80, 10**9):
        # A clock that goes on by a second whenever it is looked at.
        ticks = itertools.count()
        monkeypatch.setattr("reluflow.problem.time.time.monotonic", lambda ticks=ticks: float(next(ticks)))
        found = global_max_margin(data, slope, time_limit=seconds)
        assert found.lower <= exact.upper
        assert found.upper >= exact.lower
        assert found.network.p <= n + 1
        if found.lower > 0:
            assert found.network.normalized_margin(data) == found.lower
        assert found.exact or found.stopped == "time"
        stopped.add(found.stopped)
    assert stopped == {"", "time"}


def test_interrupted_with_the_bounds_so_far(monkeypatch):
    rng = np.random.default_rng(1)
    data = Dataset(rng.normal(size=(30, 10)), rng.choice([-1, 1], 30))
    exact = global_max_margin(data, 0.2)

    def interrupt(state):
        raise KeyboardInterrupt

    monkeypatch.setattr("reluflow.margins.global_.search.improve", interrupt)
    with pytest.raises(Interrupted) as error:
        global_max_margin(data, 0.2)
    found = error.value.partial
    assert found.stopped == "interrupted"
    assert 0 < found.lower <= exact.upper
    assert exact.lower <= found.upper < 0.5 * data.norms.min()  # better than what is known without any work


@pytest.mark.parametrize("budget", [1, 10, 100, 1000])
def test_the_budget_of_patterns_is_kept(budget, monkeypatch):
    rng = np.random.default_rng(2)
    data = Dataset(rng.normal(size=(24, 7)), rng.choice([-1, 1], 24))
    looked = []

    class Counting(Search):
        def add(self, *arguments, **options):
            looked.append(super().add(*arguments, **options))
            return looked[-1]

    def counted(*arguments):
        gain = exact_gain(*arguments)
        looked.append(gain.cells)
        return gain

    monkeypatch.setattr("reluflow.margins.global_.search.Search", Counting)
    monkeypatch.setattr("reluflow.margins.global_.state.exact_gain", counted)
    found = global_max_margin(data, 0.2, budget=budget)
    assert sum(looked) <= 1.2 * budget + 100  # the neurons of a round come together
    assert 0 <= found.lower <= found.upper
    assert found.exact or found.stopped in ("patterns", "")
    assert budget > 10 or found.stopped == "patterns"
