"""KKT directions: the worked examples, what must not pass, exact recomputation, other solvers, symmetries."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize, nnls

import reluflow as rf
from reluflow.margins import class_margins, max_margin

EX1 = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
EX2 = rf.Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1])
EX3 = rf.Dataset([[3, 1, 0], [0, 2, 1], [1, 0, 2], [-2, 0, -1], [-1, -3, 0], [0, -1, -2]], [1, 1, 1, -1, -1, -1])
EX4 = rf.Dataset([[1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 1]], [1, 1, -1, -1])
D1 = rf.Dataset([[0.8, 0.2], [0.3, 0.6], [0.5, -0.4]], [1, 1, 1]).symmetrized()
D2 = rf.Dataset([[1, 0.5], [0.8, -0.3], [0.6, 0.9], [-1, 0.3], [-0.9, -0.7]], [1, 1, 1, -1, -1])
D5 = rf.Dataset([[0.5, 0.4], [0.45, -0.5], [1.5, 0.1], [1.4, -0.2], [-1.6, 0.3], [-1.5, -0.4]], [1, 1, 1, 1, -1, -1])
FLAT = rf.Dataset([[1, 0.5], [0.6, 0.9], [-1, -0.2], [-0.4, -0.8]], [1, 1, -1, -1])
SOLID = rf.Dataset(
    [[1, 0.3, 0.2], [0.5, 0.8, 0.1], [0.7, 0.2, 0.9], [-0.6, -0.1, -0.3], [-0.2, -0.7, -0.1]], [1, 1, 1, -1, -1]
)


def three_neurons(slope):
    """Six points and three neurons of which two sit on kinks (D4)."""
    cos = (slope + np.sqrt(slope**2 + 8 * (1 + slope) * (1 + 2 * slope))) / (4 * (1 + slope))
    sin = np.sqrt(1 - cos**2)
    X = np.array([[1, cos / sin], [1, 0], [1, -cos / sin]])
    a, b = (2 * (1 + slope) * cos) ** -0.5, (1 + slope) ** -0.5
    net = rf.Network([[a * cos, a * sin], [a * cos, -a * sin], [-b, 0]], [a, a, -b], slope)
    P = sin**2 / (cos * (1 - slope))
    return rf.Dataset(np.vstack([X, -X]), [1, 1, 1, -1, -1, -1]), net, np.array([P, 0, P, 0, 1 - 2 * slope * P, 0])


def class_network(data, u, z):
    """``W = u w+^T + z w-^T`` and ``a = |w+| u - |w-| z`` (PL-LC1)."""
    plus, minus = (m.w for m in class_margins(data))
    u = np.asarray(u) / np.linalg.norm(u) / np.sqrt(np.linalg.norm(plus))
    z = np.asarray(z) / np.linalg.norm(z) / np.sqrt(np.linalg.norm(minus))
    return rf.Network(np.outer(u, plus) + np.outer(z, minus), np.linalg.norm(plus) * u - np.linalg.norm(minus) * z)


def recompute(data, net, found):
    """Residual of the multipliers and slopes returned, in rational arithmetic, relative to |theta|."""
    W, a = net.weights()
    norm = np.linalg.norm(W) if found.train == "first" else np.hypot(np.linalg.norm(W), np.linalg.norm(a))
    lowest = net.margins(data).min()
    factor = 1 / lowest if found.train == "first" else 1 / np.sqrt(lowest)
    worst = Fraction(0)
    lam = [Fraction(float(found.multipliers[i])) for i in found.active]
    for j in range(net.p):
        aj = Fraction(float(a[j] * (1 if found.train == "first" else factor)))
        for k in range(data.d):
            force = sum(
                lam[m] * Fraction(float(found.slopes[j, m])) * int(data.y[i]) * Fraction(float(data.X[i, k]))
                for m, i in enumerate(found.active)
            )
            worst = max(worst, abs(Fraction(float(W[j, k] * factor)) - aj * force))
    return float(worst) / (norm * factor)


# -- KKT directions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [0.0, 0.1, 0.25, 0.5, 0.9])
def test_three_neurons_on_kinks(slope):
    data, net, lam = three_neurons(slope)
    found = rf.kkt(data, net)
    assert found.residual <= 4e-16
    assert found.balance <= 4e-16
    assert found.is_kkt(1e-15)
    assert list(found.active) == [0, 1, 2, 3, 4, 5]
    assert sorted(map(tuple, found.kinks)) == [(0, 2), (0, 5), (1, 0), (1, 3)]
    assert recompute(data, net, found) <= 1e-15
    if slope > 0:
        assert found.multipliers == pytest.approx(lam, abs=1e-14)
    # Both layers: |theta|^2 / 2 = sum lambda at q_min = 1.
    assert found.margin == pytest.approx(1 / (2 * found.multipliers.sum()), rel=1e-14)


def test_margin_of_the_three_neurons():
    data, net, _ = three_neurons(0.5)
    assert rf.kkt(data, net).margin == pytest.approx(0.356107225225, abs=1e-12)


def test_three_neurons_need_their_free_slopes():
    # Bent by a hair so that both kinked neurons see their point with slope 1; the multipliers need slope 0.5.
    data, net, _ = three_neurons(0.5)
    bent = rf.Network(net.W - [[0, 1e-7], [0, -1e-7], [0, 0]], net.a, 0.5)
    assert rf.kkt(data, bent, kink_tol=1e-9, active_tol=1e-5).residual > 1e-2
    assert rf.kkt(data, bent, kink_tol=1e-6, active_tol=1e-5).residual < 1e-6


@pytest.mark.parametrize("data", [EX1, EX2, EX3, EX4])
@pytest.mark.parametrize(("u", "z"), [([1, 0], [0, 1]), ([3, 0, 1, 0, 0], [0, 2, 0, 5, 0])])
def test_max_margin_pair_of_the_classes(data, u, z):
    net = class_network(data, u, z)
    found = rf.kkt(data, net)
    assert found.is_kkt(1e-13)
    plus, minus = class_margins(data)
    assert net.margins(data).min() == pytest.approx(1, abs=1e-13)
    assert found.margin == pytest.approx(0.5 / (1 / plus.margin + 1 / minus.margin), rel=1e-13)
    if data is EX1:
        lam = [0.2357022604, 0.2357022604, 0.1076923077, 0.2769230769]
        assert found.multipliers == pytest.approx(lam, abs=1e-10)


@pytest.mark.parametrize(("data", "margin"), [(FLAT, 0.2357022604), (SOLID, 0.1797222822)])
def test_every_split_of_the_class_vectors(data, margin):
    rng = np.random.default_rng(0)
    for _ in range(5):
        u, z = np.zeros((2, 6))
        u[:3], z[3:] = rng.uniform(0.1, 1, (2, 3))
        found = rf.kkt(data, class_network(data, u, z))
        assert found.is_kkt(1e-13)
        assert found.margin == pytest.approx(margin, abs=1e-10)


@pytest.mark.parametrize("slope", [0.25, 0.5])
def test_the_three_directions_of_symmetric_data(slope):
    w = np.array([5, 1]) / np.sqrt(26)
    directions = {
        (1 + slope) * 0.411843883790 / 4: ([w, -w], [1, -1]),
        slope * 0.411843883790 / 2: ([w, 0 * w], [1, 0]),
    }
    for margin, (W, a) in directions.items():
        found = rf.kkt(D1, rf.Network(W, a, slope))
        assert found.is_kkt(1e-14)
        assert found.margin == pytest.approx(margin, abs=1e-12)
    assert rf.kkt(D1, rf.Network([0 * w, -w], [0, -1], slope)).is_kkt(1e-14)


@pytest.mark.parametrize("slope", [0.25, 0.5])
def test_perturbed_directions_are_none(slope):
    rng = np.random.default_rng(1)
    w = np.array([5, 1]) / np.sqrt(26)
    for _ in range(20):
        W = np.array([w, -w]) + 0.05 * rng.normal(size=(2, 2))
        net = rf.Network.balanced(W, [1, -1], slope)
        assert not rf.kkt(D1, net).is_kkt(1e-4)
    unequal = rf.Network.balanced([w, -1.1 * w], [1, -1], slope)
    assert not rf.kkt(D1, unequal).is_kkt(1e-3)


@pytest.mark.parametrize(("data", "slope"), [(D2, 0.5), (D2, 0.25), (D5, 0.5), (D1, 0.5)])
def test_one_neuron(data, slope):
    seen = rf.Dataset(np.where(data.y[:, None] > 0, 1.0, slope) * data.X, data.y)
    best = max_margin(seen)
    found = rf.kkt(data, rf.Network.balanced(best.direction[None], [1], slope))
    assert found.is_kkt(1e-14)
    assert found.margin == pytest.approx(best.margin / 2, rel=1e-13)
    rng = np.random.default_rng(0)
    tried = 0
    while tried < 10:
        w = best.direction + rng.normal(size=data.d)
        if (data.signed @ w).min() > 0:
            tried += 1
            assert not rf.kkt(data, rf.Network.balanced(w[None], [1], slope)).is_kkt(1e-6)


def test_hinted_data():
    base = np.array([[1, 0.5], [0.8, -1], [-1, 0.3], [-0.9, -0.7]])
    y = np.array([1, 1, -1, -1])
    w = max_margin(rf.Dataset(base, y)).direction
    across = np.array([-w[1], w[0]])
    X = np.vstack([12 * w, 0.2 * w + across, 0.2 * w - across, base])
    data = rf.Dataset(X, [1, 1, 1, 1, 1, -1, -1])
    found = rf.kkt(data, rf.Network.balanced(w[None], [1], 0.5))
    assert found.is_kkt(1e-14)
    assert found.multipliers == pytest.approx([0, 2.5, 2.5, 0, 0, 0, 0], abs=1e-10)
    assert found.margin == pytest.approx(0.1, abs=1e-13)


# -- what must not pass -----------------------------------------------------------------------------------


def test_the_linear_program_alone_is_not_enough():
    found = rf.kkt(rf.Dataset([[1.0]], [1]), rf.Network([[0.5]], [2.0]))
    assert found.residual == 0
    assert found.multipliers == pytest.approx([0.25])
    assert found.balance == pytest.approx(1.5 / np.hypot(0.5, 2))
    assert not found.is_kkt()


def test_a_neuron_without_output_counts():
    data = rf.Dataset([[1.0, 0.0]], [1])
    assert rf.kkt(data, rf.Network([[1, 0], [0, 0]], [1, 0])).is_kkt(1e-15)
    found = rf.kkt(data, rf.Network([[1, 0], [0, 1]], [1, 0]))
    assert found.residual == pytest.approx(1 / np.sqrt(3))
    assert not found.is_kkt()


def test_a_neuron_without_weights_counts():
    found = rf.kkt(rf.Dataset([[1.0, 0.0]], [1]), rf.Network([[1, 0], [0, 0]], [1, 0.5]))
    assert not found.is_kkt(1e-2)


@given(seed=st.integers(0, 10**6), slope=st.sampled_from([0.0, 0.3, 1.0]))
@settings(deadline=None, max_examples=60)
def test_random_networks(seed, slope):
    rng = np.random.default_rng(seed)
    n, d, p = (int(k) for k in rng.integers([1, 2, 2], [8, 5, 6]))
    net = rf.Network(rng.normal(size=(p, d)), rng.normal(size=p), slope)
    X = rng.normal(size=(n, d))
    f = net.outputs(X)
    keep = np.abs(f) > 1e-3
    if not keep.any():
        return
    data = rf.Dataset(X[keep], np.sign(f[keep]))
    found = rf.kkt(data, net)
    assert found.residual > 1e-6
    assert found.multipliers.min() >= 0
    assert recompute(data, net, found) == pytest.approx(found.residual, abs=1e-13)
    assert found.slackness <= found.active_tol
    assert found.residual <= plain_program(data, net, found.active) * (1 + 1e-6) + 1e-9


def plain_program(data, net, active):
    """The smallest largest residual without kinks, by a linear program written neuron by neuron."""
    norm = np.sqrt((net.W**2).sum() + (net.a**2).sum())
    W, a = net.W / norm, net.a / norm
    rows, rhs = [], []
    for j in range(net.p):
        h = np.where(data.X[active] @ W[j] > 0, 1.0, net.slope)
        M = a[j] * (h[:, None] * data.signed[active]).T
        for sign in (1, -1):
            rows.append(np.hstack([sign * M, -np.ones((data.d, 1))]))
            rhs.append(sign * W[j])
    cost = np.append(np.zeros(len(active)), 1.0)
    return linprog(cost, A_ub=np.vstack(rows), b_ub=np.concatenate(rhs), bounds=(0, None)).fun


@pytest.mark.parametrize("slope", [0.25, 0.6])
def test_against_a_smooth_minimisation_with_kinks(slope):
    """A network near the three neurons, its residual minimised over multipliers and slopes by another method."""
    data, net, lam0 = three_neurons(slope)
    off = rf.Network(net.W, net.a * [1.0, 1.05, 1.0], slope)
    found = rf.kkt(data, off, active_tol=0.2)
    assert found.residual > 1e-4
    norm = np.sqrt((off.W**2).sum() + (off.a**2).sum())
    kinks = [tuple(k) for k in found.kinks]
    active = list(found.active)

    def residual(z):
        lam, s = z[: len(active)], dict(zip(kinks, z[len(active) : -1], strict=True))
        worst = []
        for j in range(3):
            h = np.where(data.X[active] @ off.W[j] > 0, 1.0, slope)
            weights = np.array([s.get((j, i), h[m] * lam[m]) for m, i in enumerate(active)])
            worst.append(off.W[j] - off.a[j] * (weights @ data.signed[active]))
        return np.array(worst).ravel() / norm

    bounds = [
        {"type": "ineq", "fun": lambda z: z[-1] - residual(z)},
        {"type": "ineq", "fun": lambda z: z[-1] + residual(z)},
        {"type": "ineq", "fun": lambda z: z[: len(active)]},
    ]
    for m, (_, i) in enumerate(kinks):
        k, at = active.index(i), len(active) + m
        bounds.append({"type": "ineq", "fun": lambda z, k=k, at=at: z[k] - z[at]})
        bounds.append({"type": "ineq", "fun": lambda z, k=k, at=at: z[at] - slope * z[k]})
    start = np.concatenate([lam0[active], [slope * lam0[i] for _, i in kinks], [1.0]])
    best = minimize(lambda z: z[-1], start, constraints=bounds, method="SLSQP", options={"maxiter": 500, "ftol": 1e-14})
    assert best.success
    assert found.residual == pytest.approx(best.fun, rel=1e-5)


def test_against_non_negative_least_squares():
    # Without kinks and with one neuron the residual vanishes iff w lies in the cone of the active points.
    rng = np.random.default_rng(5)
    for w, inside in ((None, True), (np.array([1, 0.3, -0.2, 0.1]), False)):
        X = rng.normal(size=(3, 4))
        X[:, 0] += 8
        w = X.sum(axis=0) if inside else w
        data = rf.Dataset(X, [1, 1, 1])
        found = rf.kkt(data, rf.Network.balanced(w[None], [1]), active_tol=0.99)
        _, off = nnls(X[found.active].T, w)
        assert (off < 1e-12) == inside
        assert (found.residual < 1e-14) == inside


# -- symmetries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_scale", [-3000.0, -1.0, 0.0, 200.0, 3000.0])
def test_any_scale_of_the_network(log_scale):
    data, net, lam = three_neurons(0.5)
    found = rf.kkt(data, net.with_log_scale(log_scale))
    assert found.is_kkt(1e-15)
    assert found.multipliers == pytest.approx(lam, abs=1e-14)
    off = rf.Network.balanced([[1.0, 0.2], [-1.0, 0.1]], [1, -1], 0.5)
    base = rf.kkt(D1, off)
    assert rf.kkt(D1, off.with_log_scale(log_scale)).residual == pytest.approx(base.residual, rel=1e-12)


@pytest.mark.parametrize("c", [1e-6, 1e6])
def test_any_scale_of_the_data(c):
    data, net, lam = three_neurons(0.5)
    found = rf.kkt(rf.Dataset(c * data.X, data.y), net)
    assert found.is_kkt(1e-15)
    assert found.multipliers * c == pytest.approx(lam, abs=1e-13)
    off = rf.Network.balanced([[1.0, 0.2], [-1.0, 0.1]], [1, -1], 0.5)
    scaled = rf.kkt(rf.Dataset(c * D1.X, D1.y), off)
    assert scaled.residual == pytest.approx(rf.kkt(D1, off).residual, rel=1e-9)


def test_order_labels_and_splitting():
    data, net, lam = three_neurons(0.5)
    order, who = [3, 1, 5, 0, 2, 4], [2, 0, 1]
    mixed = rf.kkt(data.subset(order), rf.Network(net.W[who], net.a[who], 0.5))
    assert mixed.is_kkt(1e-15)
    assert mixed.multipliers == pytest.approx(lam[order], abs=1e-14)
    flipped = rf.kkt(data.flipped(), rf.Network(net.W, -net.a, 0.5))
    assert flipped.is_kkt(1e-15)
    assert flipped.multipliers == pytest.approx(lam, abs=1e-14)
    parts = np.array([0.6, 0.8])
    split = rf.Network(
        np.vstack([np.outer(parts, net.W[0]), net.W[1:]]), np.concatenate([parts * net.a[0], net.a[1:]]), 0.5
    )
    assert rf.kkt(data, split).is_kkt(1e-15)
    unequal = rf.Network(net.W * [[1.1], [1], [1]], net.a * [1.1, 1, 1], 0.5)
    assert not rf.kkt(data, unequal).is_kkt(1e-4)


def test_two_thousand_neurons():
    rng = np.random.default_rng(0)
    u, z = np.zeros((2, 2000))
    u[:1000], z[1000:] = rng.uniform(0.1, 1, (2, 1000))
    net = class_network(SOLID, u, z)
    assert rf.kkt(SOLID, net).is_kkt(1e-13)
    W = net.W + 1e-4 * rng.normal(size=net.W.shape)
    assert not rf.kkt(SOLID, rf.Network(W, net.a)).is_kkt(1e-6)


def test_many_dimensions():
    rng = np.random.default_rng(0)
    d, n = 300, 400
    y = rng.choice([-1.0, 1.0], n)
    X = 0.3 * rng.normal(size=(n, d)) + y[:, None] * rng.uniform(1, 2, (n, 1)) * np.eye(d)[0] * 6
    data = rf.Dataset(X, y)
    best = rf.margins.grouped_margin(data, np.stack([y, -y]), [1, -1], 0.2)
    net = best.network()
    found = rf.kkt(data, net)
    assert found.is_kkt(1e-13)
    assert found.multipliers == pytest.approx(best.multipliers, abs=1e-12)
    W = np.repeat(net.W, 20, axis=0) / np.sqrt(20) * (1 + 1e-3 * rng.normal(size=(40, d)))
    bent = rf.Network(W, np.repeat(net.a, 20) / np.sqrt(20), 0.2)
    assert rf.kkt(data, bent, active_tol=0.05).residual > 1e-6


# -- the frozen second layer ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 0.05, 30.0])
def test_frozen_second_layer(size):
    # Antipodal data: w = -u = w_svm / (1 + slope) for v = 1 and one neuron each; margin v sqrt(k) gamma_Phi.
    slope, gamma = 0.5, 0.411843883790
    w = np.array([5, 1]) / np.sqrt(26)
    net = rf.Network(np.stack([w, w, -w, -w]), size * np.array([1, 1, -1, -1]), slope)
    found = rf.kkt(D1, net, "first")
    assert found.is_kkt(1e-14)
    assert found.balance is None
    assert found.margin == pytest.approx(size * np.sqrt(2) * 0.436826404527, rel=1e-11)
    assert recompute(D1, net, found) < 1e-14
    # One homogeneous: |W|^2 = sum lambda_i q_i at q_min = 1.
    assert found.multipliers.sum() == pytest.approx(1 / found.margin**2, rel=1e-12)
    assert found.margin == pytest.approx(size * np.sqrt(2) * (1 + slope) * gamma / np.sqrt(2), rel=1e-11)
    assert not rf.kkt(D1, rf.Network(net.W * [[1], [1.2], [1], [1]], net.a, slope), "first").is_kkt(1e-3)
    # Balance plays no part.
    assert rf.kkt(D1, rf.Network(3 * net.W, net.a, slope), "first").is_kkt(1e-14)


# -- refusals ---------------------------------------------------------------------------------------------


def test_every_point_must_be_classified():
    net = rf.Network([[1.0, 0.0]], [1.0])
    with pytest.raises(rf.ProblemError, match="does not classify point 2"):
        rf.kkt(EX2, net)
    with pytest.raises(rf.ProblemError, match="does not classify"):
        rf.kkt(EX1, rf.Network([[1.0, 1.0]], [-1.0], 0.5))


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize(
    "terms", [(0.1, 0.1, 0.1, -0.3), (0.1, 0.2, -0.3, 0.0), (0.7, 0.1, -0.8, 0.0), (1.0, -1.0, 1.0, -1.0)]
)
def test_a_margin_that_is_rounding(terms, order, flip):
    # f(x) = 0.1 + 0.1 + 0.1 - 0.3 and the like: 0, 3e-17 or -6e-17, as the order and the CPU have it.
    a = np.random.default_rng(order).permutation(terms)
    net = rf.Network(np.abs(a)[:, None], np.sign(a))
    with pytest.raises(rf.Undecided, match="rounding"):
        rf.kkt(rf.Dataset([[1.0]], [-1 if flip else 1]), net)


@pytest.mark.parametrize("W", [[[-1.0, 0.0], [-2.0, 1.0]], [[0.0, 1.0], [-0.3, 0.7]], [[0.0, 0.0], [0.0, 3.0]]])
def test_a_point_that_no_neuron_sees(W):
    data = rf.Dataset([[1.0, 0.0], [0.1, 1.0]], [1, 1])
    with pytest.raises(rf.ProblemError, match=r"does not classify point 0 \(1 of 2"):
        rf.kkt(data, rf.Network(W, [1.0, 1.0]))


@pytest.mark.parametrize("tol", [-1e-9, 1.0, float("nan")])
def test_tolerances(tol):
    net = rf.Network([[1.0, 1.0], [-1.0, -1.0]], [1.0, -1.0])
    with pytest.raises(rf.ProblemError, match="kink_tol"):
        rf.kkt(EX1, net, kink_tol=tol)
    with pytest.raises(rf.ProblemError, match="active_tol"):
        rf.kkt(EX1, net, active_tol=tol)


def test_types_and_dimensions():
    net = rf.Network([[1.0]], [1.0])
    with pytest.raises(rf.ProblemError, match="2 features"):
        rf.kkt(EX1, net)
    with pytest.raises(rf.ProblemError, match="Dataset"):
        rf.kkt(EX1.X, net)
    with pytest.raises(rf.ProblemError, match="Network"):
        rf.kkt(EX1, net.W)
    with pytest.raises(rf.ProblemError, match="train"):
        rf.kkt(EX1, rf.Network([[1.0, 1.0]], [1.0]), "second")
