"""The global margin against worked values, closed forms, brute force and an independent cone program."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow import Dataset, ProblemError, global_max_margin, max_margin
from reluflow.margins import class_margins


def of(plus, minus=()) -> Dataset:
    return Dataset([*plus, *minus], [1] * len(plus) + [-1] * len(minus))


def hinted(K: float, H: float = 45.0, eps: float = 0.2) -> Dataset:
    core = of([(1, 0.5), (0.8, -1)], [(-1, 0.3), (-0.9, -0.7)])
    w = max_margin(core).direction
    across = np.array([-w[1], w[0]])
    return Dataset(np.vstack([H * w, eps * w + K * across, eps * w - K * across, core.X]), [1, 1, 1, *core.y])


def three_rays(slope: float) -> Dataset:
    cos = (slope + np.sqrt(slope**2 + 8 * (1 + slope) * (1 + 2 * slope))) / (4 * (1 + slope))
    cot = cos / np.sqrt(1 - cos**2)
    return of([(1, cot), (1, 0), (1, -cot)]).symmetrized()


D1 = of([(0.8, 0.2), (0.3, 0.6), (0.5, -0.4)]).symmetrized()
D2 = of([(1, 0.5), (0.8, -0.3), (0.6, 0.9)], [(-1, 0.3), (-0.9, -0.7)])
D3 = of([(1, 0.2, 0.1), (0.7, 0.5, -0.3), (0.9, -0.4, 0.2)], [(-0.8, 0.1, 0.3), (-1, -0.3, -0.2), (-0.6, 0.4, -0.5)])
D5 = of([(0.5, 0.4), (0.45, -0.5), (1.5, 0.1), (1.4, -0.2)], [(-1.6, 0.3), (-1.5, -0.4)])
D7 = of([(t, s, 0.05) for t in (0.1, 4, 8, 12) for s in (1, -1)], [(-1, 0, 0.05), (-2, 0, 0.05)])
D8 = of([(1, 0.5), (20, 0)], [(-5, 2.5)])
EX1 = of([(2, 1), (1, 2)], [(-3, -1), (-1, -2.5)])
EX2 = of([(1, 0), (2, 1)], [(-1, 1)])
EX3 = of([(3, 1, 0), (0, 2, 1), (1, 0, 2)], [(-2, 0, -1), (-1, -3, 0), (0, -1, -2)])

WORKED = [
    (D1, 0.5, 0.154441456421, 1e-12),
    (D1, 0.25, 0.128701213684, 1e-12),
    (D2, 0.5, 0.312542281126, 1e-12),
    (D2, 0.25, 0.261490758742, 1e-12),
    (D3, 0.5, 0.258471521459, 1e-12),
    (D3, 0.3, 0.236508846783, 1e-12),
    (three_rays(0.0), 0.0, 0.25, 1e-12),
    (three_rays(0.25), 0.25, 0.3125, 1e-12),
    (three_rays(0.5), 0.5, 0.375, 1e-12),
    (three_rays(0.9), 0.9, 0.475, 1e-12),
    (D5, 0.5, 0.238521084377, 1e-12),
    (hinted(1.0), 0.5, 0.143147449443, 1e-12),
    (hinted(1.0, H=12), 0.5, 0.143147449443, 1e-12),
    (hinted(0.52), 0.5, 0.1, 1e-12),
    (hinted(0.53), 0.5, 0.1000702878, 1e-10),
    (hinted(0.6), 0.5, 0.1060660172, 1e-10),
    (hinted(0.8), 0.5, 0.1249731054, 1e-10),
    (D7, 0.5, 0.127604120277, 1e-12),
    (D8, 0.2, 0.527046276695, 1e-12),
    (D8, 0.2, np.sqrt(10) / 6, 1e-14),
    (of([(1, 0.5), (0.6, 0.9)], [(-1, -0.2), (-0.4, -0.8)]), 0.0, 0.2357022604, 1e-10),
    (
        of([(1, 0.3, 0.2), (0.5, 0.8, 0.1), (0.7, 0.2, 0.9)], [(-0.6, -0.1, -0.3), (-0.2, -0.7, -0.1)]),
        0.0,
        0.1797222822,
        1e-10,
    ),
    (EX1, 0.0, 0.5 / 0.8560199054, 1e-10),
    (EX2, 0.0, 0.5 / 1.7071067812, 1e-10),
]


def check(data: Dataset, best, signs=None) -> None:
    assert 0 <= best.lower <= best.upper
    assert best.network.normalized_margin(data) == pytest.approx(best.lower, rel=1e-14, abs=1e-300)
    assert best.network.p <= data.n + 1
    assert best.weights.min() >= 0
    assert best.weights.sum() == pytest.approx(1, rel=1e-12)
    if signs is not None:
        assert np.all(best.network.a * signs >= 0)


@pytest.mark.parametrize(("data", "slope", "value", "digits"), WORKED)
def test_worked_values(data, slope, value, digits):
    best = global_max_margin(data, slope)
    check(data, best)
    assert best.exact
    assert best.gap <= 1e-12 * best.upper
    assert best.lower - digits <= value <= best.upper + digits


@pytest.mark.parametrize("data", [EX1, EX2, EX3])
def test_orthogonally_separable_relu(data):
    plus, minus = class_margins(data)
    value = 0.5 / (np.linalg.norm(plus.w) + np.linalg.norm(minus.w))  # LL-TH.2
    assert global_max_margin(data, 0.0).lower == pytest.approx(value, rel=1e-12)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.integers(2, 4))
def test_symmetric_data(seed, slope, d):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, d))
    points *= np.sign(points[:, :1])
    points[:, 0] += 0.1
    data = of(points).symmetrized()
    best = global_max_margin(data, slope)
    assert best.exact
    assert best.lower == pytest.approx((1 + slope) / 4 * max_margin(data).margin, rel=1e-11)  # LL-T4.2


@pytest.mark.parametrize("signs", [None, 1, -1])
def test_a_linear_network_has_half_the_linear_margin(signs):
    for data in (D2, D3, D7, D8.subset([0])):
        best = global_max_margin(data, 1.0, signs)
        check(data, best, signs)
        assert best.exact
        assert best.lower == pytest.approx(max_margin(data).margin / 2, rel=1e-13)


# -- brute force ------------------------------------------------------------------------------------------------------


def gain_on_grid(data: Dataset, weights, slope, signs, count=20_000) -> float:
    """The inner maximum in the plane over many angles; F changes by at most |x|/2 a radian and sample."""
    angle = np.arange(count) * 2 * np.pi / count
    z = np.column_stack([np.cos(angle), np.sin(angle)]) @ data.X.T
    F = 0.5 * np.where(z > 0, z, slope * z) @ (weights * data.y)
    return float(max((s * F).max() for s in ((1, -1) if signs is None else (signs,))))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.3, 0.8]),
    st.sampled_from([None, 1, -1]),
    st.booleans(),
)
def test_the_plane_against_a_grid_of_directions(seed, n, slope, signs, whole):
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, 2)).astype(float) if whole else rng.normal(size=(n, 2))
    X = X[X.any(axis=1)]
    assume(len(X))
    y = np.sign(X @ [1.0, 0.37] + 0.3 * rng.normal(size=len(X)))
    _, first = np.unique(X, axis=0, return_index=True)
    data = Dataset(X[first], y[first])
    best = global_max_margin(data, slope, signs)
    check(data, best, signs)
    assert best.exact
    size = float(best.weights @ data.norms)
    # Against these weights no direction of the grid gains more than upper, and some gains nearly as much.
    gained = max(gain_on_grid(data, best.weights, slope, signs), 0.0)
    assert gained <= best.upper + 1e-15 * size
    assert gained >= best.upper - 0.5 * np.pi / 20_000 * size
    # The best network made of directions of a grid is no better than upper, and not much worse than lower.
    angle = np.arange(720) * np.pi / 360
    z = data.X @ np.array([np.cos(angle), np.sin(angle)])
    out = 0.5 * data.y[:, None] * np.where(z > 0, z, slope * z)
    C = np.hstack([s * out for s in ((1, -1) if signs is None else (signs,))])
    A = np.hstack([-C, np.ones((data.n, 1))])
    total = np.append(np.ones(C.shape[1]), 0.0)[None]
    bounds = [(0, None)] * C.shape[1] + [(None, None)]
    result = linprog(np.append(np.zeros(C.shape[1]), -1.0), A, np.zeros(data.n), total, [1.0], bounds)
    coarse = max(float(result.x[-1]), 0.0)
    # Turning each neuron by half a grid step, 0.0044, changes its output by at most that part of |x|.
    assert best.lower - 0.0022 * data.norms.max() <= coarse <= best.upper + 1e-7


def all_patterns_program(data: Dataset, slope: float, signs) -> float:
    """The program over every activation pattern with its cone, as one call to a solver (for small n)."""
    import clarabel
    from scipy import sparse
    from scipy.optimize import linprog

    X, y, (n, d) = data.X, data.y, data.X.shape
    cells = []
    for sigma in product((1.0, -1.0), repeat=n):
        S = np.array(sigma)[:, None] * X / data.norms[:, None]
        ball = [(-1, 1)] * d + [(None, 1)]
        inside = linprog([0.0] * d + [-1.0], np.hstack([-S, np.ones((n, 1))]), np.zeros(n), bounds=ball)
        if inside.x[-1] > 1e-7:
            cells.append(S)
    kinds = [(S, s) for S in cells for s in ((1.0, -1.0) if signs is None else (float(signs),))]
    J = len(kinds)
    width = J * d + J + 1
    rows = [np.concatenate([np.zeros(J * d), np.ones(J), [0.0]])[None]]
    margin = np.zeros((n, width))
    for j, (S, s) in enumerate(kinds):
        D = np.where((S * X).sum(axis=1) > 0, 1.0, slope)
        margin[:, j * d : (j + 1) * d] = -0.5 * s * (y * D)[:, None] * X
        cone = np.zeros((n, width))
        cone[:, j * d : (j + 1) * d] = -S
        rows.append(cone)
    margin[:, -1] = 1.0
    rows.insert(1, margin)
    for j in range(J):
        norm = np.zeros((d + 1, width))
        norm[0, J * d + j] = -1.0
        norm[1:, j * d : (j + 1) * d] = -np.eye(d)
        rows.append(norm)
    A = sparse.csc_matrix(np.vstack(rows))
    b = np.zeros(A.shape[0])
    b[0] = 1.0
    cones = [clarabel.NonnegativeConeT(1 + n + J * n), *[clarabel.SecondOrderConeT(d + 1)] * J]
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    goal = np.zeros(width)
    goal[-1] = -1.0
    return float(clarabel.DefaultSolver(sparse.csc_matrix((width, width)), goal, A, b, cones, settings_).solve().x[-1])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("signs", [None, -1])
def test_against_the_program_over_all_patterns(seed, signs):
    rng = np.random.default_rng(seed)
    n, d = ((5, 2), (5, 3), (6, 3), (6, 4))[seed % 4]
    data = Dataset(rng.normal(size=(n, d)), rng.choice([-1, 1], n))
    slope = (0.0, 0.25, 0.5, 0.75)[seed // 2]
    best = global_max_margin(data, slope, signs)
    check(data, best, signs)
    assert best.exact
    assert best.lower == pytest.approx(all_patterns_program(data, slope, signs), abs=2e-7)


# -- what must not change it -------------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    n, d = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) if draw(st.booleans()) else rng.integers(-2, 3, size=(n, d)).astype(float)
    X = X[X.any(axis=1)]
    assume(len(X))
    y = rng.choice([-1.0, 1.0], len(X))
    _, first = np.unique(X, axis=0, return_index=True)
    return Dataset(X[first], y[first]), draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])), rng


@settings(deadline=None, max_examples=20)
@given(problems(), st.sampled_from([None, 1, -1]))
def test_equivariance(problem, signs):
    data, slope, rng = problem
    best = global_max_margin(data, slope, signs)
    check(data, best, signs)
    assert best.exact
    turn = np.linalg.qr(rng.normal(size=(data.d, data.d)))[0]
    order = rng.permutation(data.n)
    flip = None if signs is None else -signs
    same = [
        (Dataset(data.X @ turn, data.y), signs, 1.0),
        (data.subset(order), signs, 1.0),
        (data.flipped(), flip, 1.0),
        (Dataset(data.X * 1e6, data.y), signs, 1e6),
        (Dataset(data.X * 3e-7, data.y), signs, 3e-7),
        (Dataset(np.hstack([data.X, np.zeros((data.n, 2))]), data.y), signs, 1.0),
        (Dataset(np.vstack([data.X, data.X[:1]]), [*data.y, data.y[0]]), signs, 1.0),
    ]
    for other, sign, factor in same:
        again = global_max_margin(other, slope, sign)
        assert again.exact
        assert again.lower == pytest.approx(factor * best.lower, rel=1e-8, abs=1e-10 * factor)


@settings(deadline=None, max_examples=25)
@given(problems())
def test_monotone(problem):
    data, slope, rng = problem
    both, plus, minus = (global_max_margin(data, slope, signs) for signs in (None, 1, -1))
    assert max(plus.lower, minus.lower) <= both.upper
    fewer = global_max_margin(data.subset(rng.permutation(data.n)[: max(1, data.n - 2)]), slope)
    assert both.lower <= fewer.upper
    longer = global_max_margin(Dataset(data.X * rng.uniform(1, 3, size=(data.n, 1)), data.y), slope)
    assert both.lower <= longer.upper * (1 + 1e-12)


@settings(deadline=None, max_examples=25)
@given(problems())
def test_norms_from_a_millionth_to_a_million(problem):
    data, slope, rng = problem
    wide = Dataset(data.X * 10.0 ** rng.integers(-6, 7, size=(data.n, 1)), data.y)
    best = global_max_margin(wide, slope)
    check(wide, best)
    # Rounding at a sample 10^12 times as long as the shortest is about 10^-4 of the margin.
    assert best.gap <= 1e-3 * best.upper or best.upper <= 1e-13 * float(best.weights @ wide.norms)


# -- corners -----------------------------------------------------------------------------------------------------------


def test_one_sample_and_one_dimension():
    for slope in (0.0, 0.5, 1.0):
        assert global_max_margin(of([(3, 4)]), slope).lower == pytest.approx(2.5, rel=1e-14)
        assert global_max_margin(of([(-2,)]), slope).lower == pytest.approx(1, rel=1e-14)
        assert global_max_margin(of([(3, 4)]), slope, -1).lower == pytest.approx(2.5 * slope, abs=1e-14)
    assert global_max_margin(of([(1,)], [(-1,)]), 0.0).lower == pytest.approx(0.25, rel=1e-14)


def test_no_network_separates():
    same_ray = of([(1, 2)], [(2, 4)])
    crossing = of([(1, 0), (0, 1), (-1, -1)], [(-1, 0), (0, -1), (1, 1)])  # three lines whose positive ends surround 0
    for data, slope in ((same_ray, 0.0), (same_ray, 0.5), (same_ray, 1.0), (crossing, 0.5), (crossing, 0.0)):
        best = global_max_margin(data, slope)
        assert best.exact
        assert best.lower == 0
        assert best.upper <= 1e-15
        assert best.method == "conflict"
        assert best.network.normalized_margin(data) == 0
        angle = np.linspace(0, 2 * np.pi, 1000)
        z = np.column_stack([np.cos(angle), np.sin(angle)]) @ data.X.T
        assert np.abs(np.where(z > 0, z, slope * z) @ (best.weights * data.y)).max() < 1e-14
    surrounded = of([(1, 0), (0, 1), (-1, -1)], [(-1, 0.01), (0.01, -1), (1, 1.01)])
    assert global_max_margin(surrounded, 0.5).lower > 1e-5


def test_one_sign_that_cannot():
    best = global_max_margin(EX1, 0.0, 1)
    assert (best.lower, best.exact) == (0.0, True)
    assert best.upper < 1e-14


def test_the_network_of_a_one_neuron_optimum():
    best = global_max_margin(D5, 0.5)
    np.testing.assert_allclose(best.network.directions, [[0.998460353205, -0.055470019623]], atol=1e-11)


@pytest.mark.parametrize("slope", [-0.1, 1.5, "0.5", None, np.nan])
def test_bad_slope(slope):
    with pytest.raises(ProblemError, match="slope"):
        global_max_margin(D2, slope)


@pytest.mark.parametrize("signs", [0, 2, "both", (1, -1), True])
def test_bad_signs(signs):
    with pytest.raises(ProblemError, match="signs"):
        global_max_margin(D2, 0.5, signs)


@pytest.mark.parametrize("effort", [{"budget": 0}, {"tol": 0.0}, {"tol": 2}, {"rounds": 1.5}])
def test_bad_effort(effort):
    with pytest.raises(ProblemError, match=next(iter(effort))):
        global_max_margin(D2, 0.5, **effort)


def test_not_a_dataset():
    with pytest.raises(ProblemError, match="Dataset"):
        global_max_margin([[1.0]], 0.5)


def test_public_names():
    assert rf.global_max_margin is global_max_margin
    assert repr(global_max_margin(D8, 0.2)).startswith("GlobalMargin: 0.527046276695 (exact")
