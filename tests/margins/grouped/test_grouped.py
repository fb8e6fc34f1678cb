"""The grouped program: worked examples, a second solver, 50 digits, exact arithmetic, symmetries, degenerate data."""

from __future__ import annotations

from fractions import Fraction

import clarabel
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog, nnls

import reluflow as rf
from reluflow.margins import class_margins, max_margin

EX1 = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
EX2 = rf.Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1])
EX3 = rf.Dataset([[3, 1, 0], [0, 2, 1], [1, 0, 2], [-2, 0, -1], [-1, -3, 0], [0, -1, -2]], [1, 1, 1, -1, -1, -1])
EX4 = rf.Dataset([[1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 1]], [1, 1, -1, -1])
EX8 = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -1]], [1, 1, -1, -1])
D1 = rf.Dataset([[0.8, 0.2], [0.3, 0.6], [0.5, -0.4]], [1, 1, 1]).symmetrized()
D2 = rf.Dataset([[1, 0.5], [0.8, -0.3], [0.6, 0.9], [-1, 0.3], [-0.9, -0.7]], [1, 1, 1, -1, -1])
D5 = rf.Dataset([[0.5, 0.4], [0.45, -0.5], [1.5, 0.1], [1.4, -0.2], [-1.6, 0.3], [-1.5, -0.4]], [1, 1, 1, 1, -1, -1])


def both_ways(data):
    return np.stack([data.y, -data.y])


# -- independent checks -----------------------------------------------------------------------------------


def check_by_hand(data, patterns, signs, slope, answer, cones=True, tol=1e-10):
    """Optimality of the arrays returned, straight from the statement of the program."""
    patterns, signs = np.asarray(patterns), np.asarray(signs, dtype=float)
    h = np.where(patterns > 0, 1.0, np.where(patterns < 0, slope, 0.0))
    reach = answer.v @ data.X.T
    q = data.y * ((signs[:, None] * h) * reach).sum(axis=0)
    size = np.linalg.norm(answer.v, axis=1)
    scale = np.maximum((h * size[:, None]).sum(axis=0) * data.norms, 1e-300)
    assert ((q - 1) / scale).min() > -tol
    if cones:
        assert (patterns * reach / data.norms).min() > -tol * size.sum()
    assert np.abs(np.where(patterns == 0, reach / data.norms, 0)).max() < tol * size.sum()
    lam, M = answer.multipliers, answer.cone_multipliers
    assert lam.min() >= 0
    assert (patterns * M).min() >= 0
    C = (lam * signs[:, None] * data.y * h) @ data.X
    terms = 1 + (lam * h) @ data.norms + np.abs(M) @ data.norms
    total = (C + M @ data.X) / terms[:, None]
    assert (np.linalg.norm(total, axis=1) * terms - 1).max() < tol * terms.max()
    assert answer.value == pytest.approx(size.sum(), rel=1e-12)
    # The terms of this sum may be far larger than the sum itself.
    assert abs(lam.sum() - size.sum()) < 10 * tol * (size.sum() + lam @ scale)
    assert np.linalg.norm(C, axis=1) == pytest.approx(answer.dual_norms, rel=1e-9, abs=1e-9)


def raw_clarabel(data, patterns, signs, slope, cones=True):
    """``min sum tau_G``, the literal program, by a general solver."""
    G, n, d = len(patterns), data.n, data.d
    h = np.where(patterns > 0, 1.0, np.where(patterns < 0, slope, 0.0))
    width = G * d + G
    margin = np.zeros((n, width))
    for g in range(G):
        margin[:, g * d : (g + 1) * d] = (data.y * signs[g] * h[g])[:, None] * data.X
    rows, cone_types, b = [-margin], [], [-np.ones(n)]
    walls = []
    for g in range(G):
        for i in range(n):
            if patterns[g, i] != 0 and cones:
                row = np.zeros(width)
                row[g * d : (g + 1) * d] = -patterns[g, i] * data.X[i]
                walls.append(row)
    if walls:
        rows.append(np.array(walls))
        b.append(np.zeros(len(walls)))
    cone_types.append(clarabel.NonnegativeConeT(n + len(walls)))
    slides = []
    for g in range(G):
        for i in range(n):
            if patterns[g, i] == 0:
                row = np.zeros(width)
                row[g * d : (g + 1) * d] = data.X[i]
                slides.append(row)
    if slides:
        rows.append(np.array(slides))
        b.append(np.zeros(len(slides)))
        cone_types.append(clarabel.ZeroConeT(len(slides)))
    for g in range(G):
        block = np.zeros((d + 1, width))
        block[0, G * d + g] = -1
        block[1:, g * d : (g + 1) * d] = -np.eye(d)
        rows.append(block)
        b.append(np.zeros(d + 1))
        cone_types.append(clarabel.SecondOrderConeT(d + 1))
    cost = np.concatenate([np.zeros(G * d), np.ones(G)])
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    A = sparse.csc_matrix(np.vstack(rows))
    out = clarabel.DefaultSolver(
        sparse.csc_matrix((width, width)), cost, A, np.concatenate(b), cone_types, settings_
    ).solve()
    assert str(out.status) in ("Solved", "AlmostSolved")
    return out.obj_val, np.asarray(out.x)[: G * d].reshape(G, d)


def random_problem(seed, n=20, d=3, G=5, slope=0.4, slides=0):
    rng = np.random.default_rng(seed)
    teacher = rng.normal(size=d)
    X = rng.normal(size=(n, d))
    y = np.sign(X @ teacher)
    X += 0.2 * y[:, None] * teacher / np.linalg.norm(teacher)
    W = rng.normal(size=(G, d))
    W[:2] = teacher, -teacher
    patterns = np.sign(W @ X.T).astype(int)
    for g in range(2, 2 + slides):
        patterns[g, rng.integers(n)] = 0
    return rf.Dataset(X, y), patterns, np.concatenate([[1, -1], rng.choice([-1, 1], G - 2)]), slope


# -- worked examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "value", "w_plus", "w_minus"),
    [
        (EX1, 0.8560199054, [1 / 3, 1 / 3], [-0.2307692308, -0.3076923077]),
        (EX2, 1.7071067812, [1, 0], [-0.5, 0.5]),
        (EX3, 2 * 0.5439282932, [3 / 13, 4 / 13, 5 / 13], [-4 / 13, -3 / 13, -5 / 13]),
        (EX4, 2.0, [1, 0, 0], [0, 0, 1]),
        (EX8, 1.1785113020, [1 / 3, 1 / 3], [-0.5, -0.5]),
    ],
)
def test_orthogonally_separable_data_with_one_group_a_class(data, value, w_plus, w_minus):
    answer = rf.margins.grouped_margin(data, both_ways(data), [1, -1], 0.0)
    assert answer.value == pytest.approx(value, abs=1e-10)
    assert answer.v == pytest.approx(np.array([w_plus, w_minus]), abs=1e-10)
    plus, minus = class_margins(data)
    assert answer.v == pytest.approx(np.stack([plus.w, minus.w]), abs=1e-13)
    assert answer.margin == pytest.approx(1 / (2 * value), abs=1e-10)
    net = answer.network()
    assert net.normalized_margin(data) == pytest.approx(answer.margin, abs=1e-14)
    assert net.margins(data).min() == pytest.approx(1, abs=1e-13)
    assert rf.kkt(data, net).is_kkt(1e-13)


def test_multipliers_and_shares_of_ex1():
    answer = rf.margins.grouped_margin(EX1, both_ways(EX1), [1, -1])
    assert answer.multipliers == pytest.approx([0.2357022604, 0.2357022604, 0.1076923077, 0.2769230769], abs=1e-10)
    assert answer.shares == pytest.approx([0.5506934101, 1 - 0.5506934101], abs=1e-10)
    assert answer.multipliers.sum() == pytest.approx(answer.value, rel=1e-14)
    assert answer.unique is True
    assert list(answer.active) == [0, 1, 2, 3]
    assert answer.verified
    assert answer.residuals.worst < 1e-14


@pytest.mark.parametrize(("slope", "margin"), [(0.5, 0.154441456421), (0.25, 0.128701213684)])
def test_symmetric_data(slope, margin):
    # The groups of the linear classifier attain (1 + slope) gamma* / 4, and the function is linear.
    answer = rf.margins.grouped_margin(D1, both_ways(D1), [1, -1], slope)
    assert answer.margin == pytest.approx(margin, abs=1e-12)
    assert answer.v[0] == pytest.approx(-answer.v[1], abs=1e-12)
    assert answer.v[0] / np.linalg.norm(answer.v[0]) == pytest.approx(np.array([5, 1]) / np.sqrt(26), abs=1e-12)


@pytest.mark.parametrize(
    ("data", "slope", "gamma", "direction"),
    [
        (D2, 0.5, 0.482593037252, [0.995037190210, 0.099503719021]),
        (D2, 0.25, 0.241296518626, None),
        (D5, 0.5, 0.477042168754, [0.998460353205, -0.055470019623]),
        (D1, 0.5, 0.205921941895, [0.980580675691, 0.196116135138]),
    ],
)
def test_one_group_is_one_neuron(data, slope, gamma, direction):
    answer = rf.margins.grouped_margin(data, data.y[None], [1], slope)
    assert answer.margin == pytest.approx(gamma / 2, abs=1e-12)
    if direction is not None:
        assert answer.v[0] / answer.norms[0] == pytest.approx(direction, abs=1e-11)
    # The program is the hard margin of the points seen with the slope.
    seen = rf.Dataset(np.where(data.y[:, None] > 0, 1.0, slope) * data.X, data.y)
    assert answer.v[0] == pytest.approx(max_margin(seen).w, rel=1e-12)


@pytest.mark.parametrize("slope", [0.25, 0.5, 0.9])
def test_three_neurons_on_kinks(slope):
    # Two neurons slide on a point each; the program with their patterns gives that network back (D4).
    cos = (slope + np.sqrt(slope**2 + 8 * (1 + slope) * (1 + 2 * slope))) / (4 * (1 + slope))
    cot = cos / np.sqrt(1 - cos**2)
    X = np.array([[1, cot], [1, 0], [1, -cot]])
    data = rf.Dataset(np.vstack([X, -X]), [1, 1, 1, -1, -1, -1])
    patterns = np.array([[1, 1, 0, -1, -1, 0], [0, 1, 1, 0, -1, -1], [-1, -1, -1, 1, 1, 1]])
    answer = rf.margins.grouped_margin(data, patterns, [1, 1, -1], slope)
    assert answer.margin == pytest.approx((1 + slope) / (2 * (1 + 1 / cos)), abs=1e-13)
    assert (answer.v * [0, 1])[2] == pytest.approx([0, 0], abs=1e-14)
    sine = np.sqrt(1 - cos**2)
    assert answer.v[0] / answer.norms[0] == pytest.approx([cos, sine], abs=1e-12)
    check_by_hand(data, patterns, [1, 1, -1], slope, answer)
    assert rf.kkt(data, answer.network()).is_kkt(1e-13)


# -- a second solver, and many digits ---------------------------------------------------------------------


@pytest.mark.parametrize("cones", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_a_general_solver(seed, cones):
    data, patterns, signs, slope = random_problem(seed, slides=seed % 3)
    answer = rf.margins.grouped_margin(data, patterns, signs, slope, cones=cones)
    value, v = raw_clarabel(data, patterns, signs, slope, cones)
    # A general solver gets the value to its tolerance and the solution to the square root of it.
    assert answer.value == pytest.approx(value, rel=1e-6)
    if answer.unique:
        assert answer.v == pytest.approx(v, abs=1e-3 * answer.value)
    check_by_hand(data, patterns, signs, slope, answer, cones)
    assert np.all(answer.cone_dual_norms <= 1 + 1e-12)
    assert answer.cone_dual_norms[answer.living] == pytest.approx(1, abs=1e-12)


def fifty_digits(data, patterns, signs, slope, answer, cones):
    """Newton's method in 50 digits on v, lam and the cone multipliers that do not vanish."""
    live = [int(g) for g in answer.living]
    tight = [int(i) for i in np.flatnonzero(answer.multipliers > 0)]
    touch = [(g, int(i)) for g in live for i in np.flatnonzero(answer.cone_multipliers[g] != 0)]
    d, n_v = data.d, len(live) * data.d
    X = [[mpmath.mpf(float(x)) for x in row] for row in data.X]

    def gain(g, i):
        h = 1 if patterns[g, i] > 0 else mpmath.mpf(slope) if patterns[g, i] < 0 else 0
        return int(signs[g]) * int(data.y[i]) * h

    def equations(*z):
        v = {g: z[k * d : (k + 1) * d] for k, g in enumerate(live)}
        lam = dict(zip(tight, z[n_v : n_v + len(tight)], strict=True))
        mu = dict(zip(touch, z[n_v + len(tight) :], strict=True))
        out = []
        for g in live:
            norm = mpmath.sqrt(sum(c * c for c in v[g]))
            for k in range(d):
                force = sum(lam[i] * gain(g, i) * X[i][k] for i in tight)
                force += sum(mu[g, i] * X[i][k] for (g2, i) in touch if g2 == g)
                out.append(v[g][k] / norm - force)
        out += [sum(gain(g, i) * sum(a * b for a, b in zip(v[g], X[i], strict=True)) for g in live) - 1 for i in tight]
        out += [sum(a * b for a, b in zip(v[g], X[i], strict=True)) for (g, i) in touch]
        return out

    start = [*answer.v[live].ravel(), *answer.multipliers[tight]] + [answer.cone_multipliers[g, i] for g, i in touch]
    with mpmath.workdps(50):
        z = mpmath.findroot(equations, [mpmath.mpf(float(c)) for c in start], tol=1e-80, maxsteps=10)
        assert max(abs(c) for c in equations(*z)) < mpmath.mpf(10) ** -40
        return np.array([float(c) for c in z[:n_v]]).reshape(-1, d)


@pytest.mark.parametrize(("seed", "cones"), [(2, True), (3, True), (7, True), (13, False), (17, False), (26, False)])
def test_direction_to_twelve_digits(seed, cones):
    data, patterns, signs, slope = random_problem(seed, n=12, d=2 + seed % 2, G=4, slides=seed % 2)
    answer = rf.margins.grouped_margin(data, patterns, signs, slope, cones=cones)
    assert answer.unique
    exact = fifty_digits(data, patterns, signs, slope, answer, cones)
    ours = answer.v[answer.living]
    unit = lambda v: v / np.linalg.norm(v, axis=1, keepdims=True)  # noqa: E731
    assert np.abs(unit(ours) - unit(exact)).max() < 1e-14
    assert np.abs(ours - exact).max() < 1e-13 * answer.value


def test_certificate_in_exact_arithmetic():
    # Integer data: a feasible v and a feasible dual, checked as rationals, bracket the optimum.
    rng = np.random.default_rng(3)
    for _ in range(10):
        X = rng.integers(-5, 6, size=(8, 3))
        w = rng.integers(-5, 6, size=3)
        y = np.sign(X @ w + 0.5).astype(int)
        if not X.any(axis=1).all() or not (X @ w).all():
            continue
        data, patterns, slope = rf.Dataset(X, y), both_ways(rf.Dataset(X, y)).astype(int), 0.25
        answer = rf.margins.grouped_margin(data, patterns, [1, -1], slope)
        v = [[Fraction(float(c)) for c in row] for row in answer.v]
        lam = [Fraction(float(c)) for c in answer.multipliers]
        h = [[Fraction(1) if p > 0 else Fraction(1, 4) for p in row] for row in patterns]
        eps = Fraction(1, 10**13)
        for i in range(8):
            q = sum(
                s * int(y[i]) * h[g][i] * sum(a * int(b) for a, b in zip(v[g], X[i], strict=True))
                for g, s in ((0, 1), (1, -1))
            )
            assert q >= 1 - 100 * eps
        for g, s in ((0, 1), (1, -1)):
            M = [Fraction(float(c)) for c in answer.cone_multipliers[g]]
            force = [sum((lam[i] * s * int(y[i]) * h[g][i] + M[i]) * int(X[i, k]) for i in range(8)) for k in range(3)]
            assert sum(c * c for c in force) <= 1 + 100 * eps
            assert all(m * int(p) >= 0 for m, p in zip(M, patterns[g], strict=True))
        lower = sum(lam) / (1 + 100 * eps)
        upper_squares = [sum(c * c for c in row) for row in v]
        upper = sum(Fraction(float(np.sqrt(float(c)))) for c in upper_squares) * (1 + 200 * eps)
        assert lower <= upper
        assert float(upper - lower) < 1e-10 * float(upper)


@given(seed=st.integers(0, 10**6), cones=st.booleans(), slope=st.sampled_from([0.0, 0.3, 1.0]))
@settings(deadline=None, max_examples=150)
def test_nothing_is_answered_wrongly(seed, cones, slope):
    """Small random sets, degenerate ones among them: solved and checked by hand, or refused with a proof."""
    rng = np.random.default_rng(seed)
    n, d, G = (int(k) for k in rng.integers([1, 1, 1], [12, 5, 7]))
    kind = rng.integers(4)
    X = rng.integers(-2, 3, size=(n, d)).astype(float) if kind == 1 else rng.normal(size=(n, d))
    if kind == 2:
        X *= 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    if kind == 3:
        X = np.repeat(X, 2, axis=0)
    w = rng.normal(size=d)
    y = np.where(X @ w > 0, 1, -1)
    keep = X.any(axis=1)
    if not keep.any():
        return
    data = rf.Dataset(X[keep], y[keep])
    W = rng.normal(size=(G, d)) if kind else rng.integers(-1, 2, size=(G, d)).astype(float)
    if G > 1:
        W[:2] = w, -w
    signs = rng.choice([-1, 1], G)
    signs[:2] = [1, -1][: min(G, 2)]
    patterns = np.sign(W @ data.X.T).astype(int)
    if rng.random() < 0.3:
        patterns[-1, rng.integers(data.n)] = 0
    if rng.random() < 0.2:
        patterns[-1], signs[-1] = patterns[0], signs[0]
    try:
        answer = rf.margins.grouped_margin(data, patterns, signs, slope, cones=cones)
    except rf.NotSeparable as no:
        check_impossible(data, patterns, signs, slope, no, cones)
        return
    check_by_hand(data, patterns, signs, slope, answer, cones)


def check_impossible(data, patterns, signs, slope, no, cones):
    """No v in the cones has a positive weighted sum of margins: by linear programming over the cones."""
    assert no.certificate.min() >= 0
    assert no.certificate.sum() == pytest.approx(1)
    unit = data.X / data.norms[:, None]
    weight = no.certificate * data.norms
    for g in range(len(patterns)):
        h = np.where(patterns[g] > 0, 1.0, np.where(patterns[g] < 0, slope, 0.0))
        force = (weight * signs[g] * data.y * h) @ unit / weight.sum()
        walls = -patterns[g][:, None] * unit if cones else np.zeros((0, data.d))
        slides = unit[patterns[g] == 0]
        best = linprog(
            -force,
            A_ub=walls if len(walls) else None,
            b_ub=np.zeros(len(walls)) if len(walls) else None,
            A_eq=slides if len(slides) else None,
            b_eq=np.zeros(len(slides)) if len(slides) else None,
            bounds=(-1, 1),
        )
        assert best.status == 0
        assert -best.fun < 1e-9


# -- groups that are absent, doubled or many --------------------------------------------------------------


def test_dual_norm_of_an_absent_group_decides_whether_it_helps():
    data, patterns, signs, slope = random_problem(4, n=25, d=3, G=8)
    few = rf.margins.grouped_margin(data, patterns[:2], signs[:2], slope)
    helped = []
    for g in range(2, 8):
        more = rf.margins.grouped_margin(data, patterns[[0, 1, g]], signs[[0, 1, g]], slope)
        # The dual norm of the newcomer at the old multipliers, by projecting its force onto its cone.
        h = np.where(patterns[g] > 0, 1.0, slope)
        force = (few.multipliers * signs[g] * data.y * h) @ data.X
        _, norm = nnls(-(patterns[g][:, None] * data.X).T, force)
        helped.append(more.value < few.value - 1e-9)
        assert helped[-1] == (norm > 1 + 1e-9)
        if not helped[-1]:
            assert more.cone_dual_norms[2] <= 1
            assert 2 not in more.living
    assert 0 < sum(helped) < 6


def test_plain_and_projected_dual_norms():
    data, patterns, signs, slope = random_problem(4, n=25, d=3, G=8)
    answer = rf.margins.grouped_margin(data, patterns, signs, slope)
    absent = np.setdiff1d(np.arange(8), answer.living)
    assert absent.size
    assert np.all(answer.cone_dual_norms <= answer.dual_norms + 1e-14)
    assert np.all(answer.cone_dual_norms[absent] < 1)
    free = rf.margins.grouped_margin(data, patterns, signs, slope, cones=False)
    assert free.cone_dual_norms == pytest.approx(free.dual_norms, abs=1e-14)
    assert free.value < answer.value


def test_doubled_groups_and_points():
    data, patterns, signs, slope = random_problem(2, n=15, d=3, G=3)
    once = rf.margins.grouped_margin(data, patterns, signs, slope)
    double = rf.margins.grouped_margin(data, np.vstack([patterns, patterns]), np.concatenate([signs, signs]), slope)
    assert double.value == pytest.approx(once.value, rel=1e-13)
    assert double.v[:3] == pytest.approx(double.v[3:], abs=0)
    assert double.v[:3] + double.v[3:] == pytest.approx(once.v, abs=1e-13)
    assert once.unique is True
    assert double.unique is False
    index = np.concatenate([np.arange(15), np.arange(15)])
    points = rf.margins.grouped_margin(data.subset(index), patterns[:, index], signs, slope)
    assert points.v == pytest.approx(once.v, abs=1e-13)
    assert points.multipliers.reshape(2, 15).sum(axis=0) == pytest.approx(once.multipliers, abs=1e-12)


def test_two_hundred_groups():
    data, patterns, signs, slope = random_problem(0, n=100, d=10, G=200, slides=30)
    answer = rf.margins.grouped_margin(data, patterns, signs, slope)
    assert answer.verified
    check_by_hand(data, patterns, signs, slope, answer)
    # A network needs at most one neuron more than there are points.
    assert answer.living.size <= 101
    assert answer.network().normalized_margin(data) == pytest.approx(answer.margin, rel=1e-12)


def test_one_point_in_one_dimension():
    answer = rf.margins.grouped_margin(rf.Dataset([[4.0]], [-1]), [[1], [-1]], [-1, -1], 0.0)
    assert answer.v == pytest.approx(np.array([[0.25], [0.0]]))
    assert list(answer.living) == [0]
    assert answer.margin == 2.0


# -- no solution ------------------------------------------------------------------------------------------


def test_a_point_no_group_reaches():
    with pytest.raises(rf.NotSeparable, match="point 2") as caught:
        rf.margins.grouped_margin(EX2, [[1, 1, -1]], [1], 0.0)
    assert list(caught.value.certificate) == [0, 0, 1]
    assert caught.value.residual == 0.0


@pytest.mark.parametrize("cones", [True, False])
def test_a_certificate_for_contradictory_points(cones):
    # Four points around the origin, one linear group: the weighted sum of margins cannot be positive.
    data = rf.Dataset([[1, 1], [-1, 1], [-1, -1], [1, -1]], [1, 1, 1, 1])
    with pytest.raises(rf.NotSeparable) as caught:
        rf.margins.grouped_margin(data, np.ones((1, 4)), [1], 1.0, cones=cones)
    weights = caught.value.certificate
    assert np.abs(weights @ data.signed).max() < 1e-13
    assert caught.value.residual < 1e-13


# -- symmetries and scales --------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=15)
def test_equivariance(seed):
    rng = np.random.default_rng(seed)
    data, patterns, signs, slope = random_problem(seed, n=12, d=3, G=4, slides=1)
    base = rf.margins.grouped_margin(data, patterns, signs, slope)
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    turned = rf.margins.grouped_margin(rf.Dataset(data.X @ Q.T, data.y), patterns, signs, slope)
    assert turned.value == pytest.approx(base.value, rel=1e-12)
    order, who = rng.permutation(12), rng.permutation(4)
    mixed = rf.margins.grouped_margin(data.subset(order), patterns[who][:, order], signs[who], slope)
    assert mixed.value == pytest.approx(base.value, rel=1e-12)
    flipped = rf.margins.grouped_margin(data.flipped(), patterns, -signs, slope)
    assert flipped.value == pytest.approx(base.value, rel=1e-12)
    c = 10.0 ** rng.uniform(-6, 6)
    scaled = rf.margins.grouped_margin(rf.Dataset(c * data.X, data.y), patterns, signs, slope)
    assert scaled.value * c == pytest.approx(base.value, rel=1e-12)
    if base.unique:
        assert turned.v @ Q == pytest.approx(base.v, abs=1e-9 * base.value)
        assert mixed.v == pytest.approx(base.v[who], abs=1e-9 * base.value)
        assert flipped.v == pytest.approx(base.v, abs=1e-9 * base.value)
        assert scaled.v * c == pytest.approx(base.v, abs=1e-9 * base.value)


def test_norms_from_one_millionth_to_a_million():
    # Each class alone decides its own group, twelve orders of magnitude apart.
    data = rf.Dataset(EX1.X * np.array([[1e-6], [1e-6], [1e6], [1e6]]), EX1.y)
    answer = rf.margins.grouped_margin(data, both_ways(data), [1, -1])
    assert answer.v[0] == pytest.approx(np.array([1 / 3, 1 / 3]) * 1e6, rel=1e-12)
    assert answer.v[1] == pytest.approx(np.array([-3 / 13, -4 / 13]) * 1e-6, rel=1e-12)


def test_a_tiny_margin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] = 1e-6 * y * rng.uniform(1, 2, 30)
    data = rf.Dataset(X, y)
    answer = rf.margins.grouped_margin(data, both_ways(data), [1, -1], 0.5)
    assert answer.verified
    assert answer.margin < 1e-5
    check_by_hand(data, both_ways(data), [1, -1], 0.5, answer)


# -- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "signs", "slope", "match"),
    [
        (np.ones((2, 3)), [1, -1], 0.0, "4 columns"),
        (np.ones((0, 4)), [], 0.0, "one row a group"),
        (2 * np.ones((1, 4)), [1], 0.0, "-1, 0 and"),
        (np.ones((1, 4)), [0], 0.0, "each -1 or"),
        (np.ones((1, 4)), [1, 1], 0.0, "1 numbers"),
        (np.ones((1, 4)), [1], 1.5, "slope"),
        ([["a", "b", "c", "d"]], [1], 0.5, "-1, 0 and"),
    ],
)
def test_bad_input(patterns, signs, slope, match):
    with pytest.raises(rf.ProblemError, match=match):
        rf.margins.grouped_margin(EX1, patterns, signs, slope)


def test_bad_tolerance_and_data():
    with pytest.raises(rf.ProblemError, match="tolerance"):
        rf.margins.grouped_margin(EX1, both_ways(EX1), [1, -1], tolerance=0)
    with pytest.raises(rf.ProblemError, match="Dataset"):
        rf.margins.grouped_margin(EX1.X, both_ways(EX1), [1, -1])


def test_an_unreachable_tolerance_is_undecided_and_keeps_the_solution():
    data, patterns, signs, slope = random_problem(1)
    with pytest.raises(rf.Undecided, match="only to") as caught:
        rf.margins.grouped_margin(data, patterns, signs, slope, tolerance=1e-30)
    assert caught.value.partial.value == pytest.approx(
        rf.margins.grouped_margin(data, patterns, signs, slope).value, rel=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_points_that_only_bound_the_cones(seed):
    # One group in the plane that must stay behind a point: against a scan of all its directions.
    rng = np.random.default_rng(seed)
    X = np.vstack(
        [np.column_stack([rng.uniform(0.2, 2.0, 3), rng.uniform(-1.0, 1.0, 3)]), [0.3, rng.uniform(0.5, 1.5)]]
    )
    turns = np.linspace(-np.pi, np.pi, 400_001)
    U = np.column_stack([np.cos(turns), np.sin(turns)])
    edge = np.array([X[3, 1], -X[3, 0]]) / np.linalg.norm(X[3])
    U = np.vstack([U[U @ X[3] <= 0], edge, -edge])
    allowed = U[(U @ X[:3].T > 0).all(axis=1)]
    best = (allowed @ X[:3].T).min(axis=1).max(initial=0.0)
    patterns, fit = [[1, 1, 1, -1]], [True, True, True, False]
    if best == 0:
        with pytest.raises(rf.NotSeparable):
            rf.grouped_margin(rf.Dataset(X, [1, 1, 1, -1]), patterns, [1], fit=fit)
        return
    found = rf.grouped_margin(rf.Dataset(X, [1, 1, 1, -1]), patterns, [1], fit=fit)
    assert found.margin == pytest.approx(best / 2, rel=1e-4)
    assert found.multipliers[3] == 0
    assert found.v[0] @ X[3] <= 1e-12


def test_points_that_only_bound_the_cones_are_felt_by_nobody():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1, 1])
    for patterns, slope, fit in (([[1, 1]], 0.0, [True, False]), ([[1, -1]], 0.1, [True, False])):
        with pytest.raises(rf.ProblemError, match="point 1 is not to be classified"):
            rf.grouped_margin(data, patterns, [1], slope, fit=fit)
    for fit in ([True], [False, False], [1, 0]):
        with pytest.raises(rf.ProblemError, match="truth values"):
            rf.grouped_margin(data, [[1, -1]], [1], fit=fit)
