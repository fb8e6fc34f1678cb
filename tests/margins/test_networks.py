"""Network arithmetic: smoothed margins against 60 digits, symmetrised and embedded networks, linear classifiers."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.margins import class_margins

EX1 = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
EX2 = rf.Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1])
EX3 = rf.Dataset([[3, 1, 0], [0, 2, 1], [1, 0, 2], [-2, 0, -1], [-1, -3, 0], [0, -1, -2]], [1, 1, 1, -1, -1, -1])
EX4 = rf.Dataset([[1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 1]], [1, 1, -1, -1])
EX8 = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -1]], [1, 1, -1, -1])
D1 = rf.Dataset([[0.8, 0.2], [0.3, 0.6], [0.5, -0.4]], [1, 1, 1]).symmetrized()


def draw(seed, p=4, d=3, slope=0.3):
    rng = np.random.default_rng(seed)
    return rf.Network(rng.normal(size=(p, d)), rng.normal(size=p), slope)


# -- smoothed margin --------------------------------------------------------------------------------------


def many_digits(data, net, loss, train, log_scale):
    with mpmath.workdps(3000 if log_scale > 1 else 60):
        big = mpmath.exp(mpmath.mpf(log_scale))
        W = [[mpmath.mpf(float(c)) * big for c in row] for row in net.W]
        a = [mpmath.mpf(float(c)) * (1 if train == "first" else big) for c in net.a]
        total = mpmath.mpf(0)
        for x, y in zip(data.X, data.y, strict=True):
            z = [sum(c * mpmath.mpf(float(v)) for c, v in zip(row, x, strict=True)) for row in W]
            q = int(y) * sum(c * (v if v > 0 else mpmath.mpf(net.slope) * v) for c, v in zip(a, z, strict=True))
            total += mpmath.log1p(mpmath.exp(-q)) if loss == "logistic" else mpmath.exp(-q)
        level = -mpmath.log(mpmath.expm1(total) if loss == "logistic" else total)
        squares = sum(c * c for row in W for c in row)
        return float(level / (mpmath.sqrt(squares) if train == "first" else squares + sum(c * c for c in a)))


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("train", ["both", "first"])
@pytest.mark.parametrize("log_scale", [-20.0, -3.0, -0.5, 0.0, 0.7, 2.0, 3.3])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_smoothed_margin_to_all_digits(n, log_scale, train, loss):
    net = draw(n)
    X = np.random.default_rng(n).normal(size=(n, 3))
    for y in (np.sign(net.outputs(X)), np.where(np.arange(n) % 2, 1, -1)):
        data = rf.Dataset(X, y)
        out = 0.0 if train == "first" else None
        scaled = rf.Network(net.W, net.a, net.slope, log_scale, out)
        exact = many_digits(data, net, loss, train, log_scale)
        # A normalised margin is at most |x|/2 (|a||x| for a frozen layer): its rounding is what remains of the terms.
        size = data.norms.max() * (np.linalg.norm(net.a) if train == "first" else 0.5)
        # A factor e^s is exact to the rounding of s.
        rel = 2e-15 + 2.2e-16 * abs(log_scale)
        assert rf.margins.smoothed_margin(data, scaled, loss, train) == pytest.approx(exact, rel=rel, abs=4e-16 * size)


def test_smoothed_margin_at_scales_without_doubles():
    data = rf.Dataset(np.random.default_rng(0).normal(size=(5, 3)), [1, 1, 1, 1, 1])
    net = draw(0)
    right = rf.Dataset(data.X, np.sign(net.outputs(data.X)))
    gamma = net.normalized_margin(right)
    assert rf.margins.smoothed_margin(right, net.with_log_scale(3000.0)) == pytest.approx(gamma, rel=1e-14)
    # Margins of 10^6: the gap to the margin is log n / |theta|^2.
    huge = net.with_log_scale(0.5 * np.log(1e6 / (gamma * np.exp(2 * net.log_norm()))))
    assert huge.margins(right).min() == pytest.approx(1e6)
    assert -1e-15 <= gamma - rf.margins.smoothed_margin(right, huge) <= 1.01 * np.log(5) * gamma / 1e6
    assert rf.margins.smoothed_margin(right, net.with_log_scale(-3000.0)) == -np.inf
    wrong = rf.Dataset(data.X, -right.y)
    q = -np.abs(net.outputs(data.X)) / np.exp(2 * net.log_norm())
    assert rf.margins.smoothed_margin(wrong, net.with_log_scale(3000.0)) == pytest.approx(q.sum(), rel=1e-13)
    assert rf.margins.smoothed_margin(wrong, net.with_log_scale(3000.0), "exponential") == pytest.approx(
        q.min(), rel=1e-13
    )
    one = right.subset([0])
    for scale in (-3000.0, 0.0, 3000.0):
        expected = net.normalized_margin(one)
        assert rf.margins.smoothed_margin(one, net.with_log_scale(scale)) == pytest.approx(expected, rel=1e-14)


@given(seed=st.integers(0, 10**6), log_scale=st.floats(-3, 3), loss=st.sampled_from(["logistic", "exponential"]))
@settings(deadline=None, max_examples=50)
def test_smoothed_margin_is_below_the_margin_and_positive_when_fitted(seed, log_scale, loss):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    data = rf.Dataset(rng.normal(size=(n, 3)), rng.choice([-1, 1], n))
    net = draw(seed).with_log_scale(log_scale)
    smooth = rf.margins.smoothed_margin(data, net, loss)
    assert smooth <= net.normalized_margin(data) + 1e-12
    total = rf.Loss(loss).value(net.margins(data)).sum()
    level = np.log(2) if loss == "logistic" else 1.0
    if abs(total - level) > 1e-9:
        assert (smooth > 0) == (total < level)


def test_smoothed_margin_refuses_a_frozen_layer_without_double():
    net = rf.Network([[1.0, 0, 0]], [1.0], 0.0, 0.0, -3000.0)
    with pytest.raises(rf.ProblemError, match="frozen second layer"):
        rf.margins.smoothed_margin(rf.Dataset([[1.0, 0, 0]], [1]), net, "logistic", "first")


# -- symmetrised, embedded, rank --------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), slope=st.sampled_from([0.0, 0.2, 0.7, 1.0]))
@settings(deadline=None, max_examples=50)
def test_symmetrised_network(seed, slope):
    rng = np.random.default_rng(seed)
    net = draw(seed, slope=slope)
    two = rf.margins.symmetrized_network(net)
    X = rng.normal(size=(6, 3))
    assert two.outputs(X) == pytest.approx((net.outputs(X) - net.outputs(-X)) / 2, abs=1e-12)
    assert two.log_norm() <= net.log_norm() + 1e-14
    data = rf.Dataset(X, np.where(net.outputs(X) > 0, 1, -1)).symmetrized()
    if net.normalized_margin(data) >= 0:
        assert two.normalized_margin(data) >= net.normalized_margin(data) - 1e-14


def test_symmetrised_network_reaches_the_global_margin():
    w = np.array([5, 1]) / np.sqrt(26)
    net = rf.Network.balanced([w, -w, 2 * w], [1, -1, 1], 0.5)
    assert rf.margins.symmetrized_network(net).normalized_margin(D1) == pytest.approx(0.154441456421, abs=1e-12)


def test_symmetrised_network_at_any_scale():
    net = draw(3)
    small = rf.margins.symmetrized_network(net.with_log_scale(-3000.0))
    assert np.array_equal(small.W, rf.margins.symmetrized_network(net).W)
    assert small.log_scale == -3000.0
    with pytest.raises(rf.ProblemError, match="output weight"):
        rf.margins.symmetrized_network(rf.Network([[1.0]], [0.0]))


def test_embedding():
    b = np.array([0.306123238943, -0.058702595473, -0.134736337762, -0.170206679871])
    two = rf.Network([[1.0, 2.0], [-3.0, 0.5]], [0.7, -1.1], 0.4, [-3000.0, -2990.0], [-3000.0, -2995.0])
    wide = rf.margins.embed(b, two)
    assert wide.p == 4
    assert wide.W[0] == pytest.approx(two.W[0])
    assert wide.W[2] == pytest.approx(two.W[1] * b[2] / -0.224878165462, rel=1e-10)
    X = np.random.default_rng(0).normal(size=(9, 2))
    ours, theirs = wide.scaled_outputs(X), two.scaled_outputs(X)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-13)
    assert ours[1] == theirs[1]
    assert wide.log_norm() == pytest.approx(two.log_norm(), abs=1e-12)
    assert rf.kkt(D1, rf.margins.embed(b, rf.Network([[5, 1], [-5, -1]], [26**0.5, -(26**0.5)], 0.5))).is_kkt(1e-14)


@pytest.mark.parametrize("b", [[1.0, 2.0], [-1.0], [1.0, 0.0, -1.0], [], [1.0, np.nan, -1.0], [[1.0, -1.0]], ["a"]])
def test_embedding_needs_a_good_b(b):
    with pytest.raises(rf.ProblemError, match="b"):
        rf.margins.embed(b, rf.Network([[1.0], [2.0]], [1.0, 1.0]))


def test_embedding_needs_two_neurons():
    with pytest.raises(rf.ProblemError, match="two neurons"):
        rf.margins.embed([1.0, -1.0], rf.Network([[1.0]], [1.0]))


@pytest.mark.parametrize(
    ("data", "rank"), [(EX1, 1.0049981954), (EX2, 1.1645246646), (EX3, 1.0101010101), (EX4, 2.0), (EX8, 1.0)]
)
def test_stable_rank_of_the_limit(data, rank):
    # Neurons on w+ and w-, of squared norms |w+| and |w-|: the limit of the flow on these data.
    plus, minus = (m.w for m in class_margins(data))
    W = np.stack([plus / np.linalg.norm(plus) ** 0.5, minus / np.linalg.norm(minus) ** 0.5])
    assert rf.margins.stable_rank(rf.Network(W, [1.0, -1.0], 0.0, -3000.0)) == pytest.approx(rank, abs=1e-10)


def test_stable_rank_of_very_unequal_scales():
    net = rf.Network(np.eye(3), np.ones(3), 0.0, [0.0, -1000.0, 0.0])
    assert rf.margins.stable_rank(net) == 2.0
    with pytest.raises(rf.ProblemError, match="zero"):
        rf.margins.stable_rank(rf.Network([[0.0, 0.0]], [1.0]))


# -- linear classifiers -----------------------------------------------------------------------------------


def sign_exactly(net, x):
    total = Fraction(0)
    for w, a in zip(net.W, net.a, strict=True):
        z = sum(Fraction(float(c)) * Fraction(float(v)) for c, v in zip(w, x, strict=True))
        total += Fraction(float(a)) * (z if z > 0 else Fraction(net.slope) * z)
    return (total > 0) - (total < 0)


def refutes_every_direction(net, x):
    there, back = sign_exactly(net, x), sign_exactly(net, -np.asarray(x))
    return there + back != 0


def test_two_orthogonal_neurons():
    for slope in (1e-3, 0.25, 0.9):
        answer = rf.linearity(rf.Network([[1, 0], [0, 1]], [1, -1], slope))
        assert (answer.linear, answer.evidence, answer.wedge) == (True, "proved", 0.0)
        assert answer.direction == pytest.approx(np.array([1, -1]) / np.sqrt(2))
    net = rf.Network([[1, 0], [0, 1]], [1, -1], 0.0)
    answer = rf.linearity(net)
    assert (answer.linear, answer.evidence) == (False, "proved")
    assert refutes_every_direction(net, answer.witness)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_one_neuron_is_linear_iff_leaky(d):
    w = np.random.default_rng(d).normal(size=(1, d))
    for slope, expected in ((0.3, True), (1.0, True), (0.0, False)):
        answer = rf.linearity(rf.Network(w, [-2.0], slope, log_scale=-3000.0))
        assert (answer.linear, answer.evidence) == (expected, "proved")
        if expected:
            assert answer.direction == pytest.approx(-w[0] / np.linalg.norm(w))
        else:
            assert refutes_every_direction(rf.Network(w, [-2.0], slope), answer.witness)


@pytest.mark.parametrize("slope", [0.0, 0.4])
def test_antipodal_pairs_are_linear(slope):
    rng = np.random.default_rng(0)
    W, a = rng.normal(size=(6, 4)), rng.normal(size=6)
    answer = rf.linearity(rf.Network(np.vstack([W, -W]), np.concatenate([a, -a]), slope))
    assert (answer.linear, answer.evidence, answer.wedge) == (True, "proved", 0.0)
    assert answer.direction == pytest.approx(a @ W / np.linalg.norm(a @ W))
    bent = np.vstack([W, -W]) * (1 + 1e-12 * rng.normal(size=(12, 4)))
    near = rf.linearity(rf.Network(bent, np.concatenate([a, -a]), slope))
    assert (near.linear, near.evidence) == (True, "numerical")
    assert 0 < near.wedge < 1e-10


def test_perfect_clusters_of_powers_of_two():
    # Multiples by powers of two are exactly parallel; by other factors only up to rounding.
    rng = np.random.default_rng(1)
    w, u = rng.normal(size=(2, 4))
    a = [1.0, 2.0, 3.0, -1.0, -0.5, -4.0]
    exact = rf.linearity(rf.Network(np.vstack([np.outer([1, 2, 4], w), np.outer([1, 0.5, 8], u)]), a, 0.1))
    assert (exact.linear, exact.evidence) == (True, "proved")
    near = rf.linearity(rf.Network(np.vstack([np.outer([1, 1.1, 3], w), np.outer([1, 0.7, 9], u)]), a, 0.1))
    assert (near.linear, near.evidence) == (True, "numerical")
    assert near.wedge < 1e-14


def test_three_neurons_are_not_linear():
    cos = (1 + np.sqrt(97)) / 12
    sin = np.sqrt(1 - cos**2)
    net = rf.Network.balanced([[cos, sin], [cos, -sin], [-1, 0]], [1, 1, -1], 0.5)
    answer = rf.linearity(net)
    assert (answer.linear, answer.evidence) == (False, "proved")
    assert refutes_every_direction(net, answer.witness)


@given(seed=st.integers(0, 10**6), slope=st.sampled_from([0.0, 0.1, 0.5, 0.9]))
@settings(deadline=None, max_examples=80)
def test_verdicts_in_the_plane(seed, slope):
    """Against a dense grid of directions, and exact signs at the witness."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 7))
    spread = rng.choice([0.05, 0.3, 1.0])
    W = rng.normal(size=(1, 2)) + spread * rng.normal(size=(p, 2))
    a = rng.choice([-1.0, 1.0], p)
    W[a < 0] *= -1
    net = rf.Network(W, a, slope)
    answer = rf.linearity(net)
    angle = np.linspace(0, 2 * np.pi, 4001)
    grid = np.column_stack([np.cos(angle), np.sin(angle)])
    f = net.outputs(grid)
    if answer.linear:
        clear = np.abs(grid @ answer.direction) > max(answer.wedge, 1e-12)
        assert np.array_equal(np.sign(f[clear]), np.sign(grid[clear] @ answer.direction))
    elif answer.linear is False:
        assert refutes_every_direction(net, answer.witness)
    covered = answer.covers(grid)
    if covered.any():
        assert np.array_equal(np.sign(f[covered]), np.sign(grid[covered] @ answer.direction))
    # A network that fails on a good part of the circle must not be called linear, nor left open.
    agree = f * net.outputs(-grid) >= 1e-9
    if agree.mean() > 0.01:
        assert answer.linear is False


@given(seed=st.integers(0, 10**6), slope=st.sampled_from([0.1, 0.5, 0.9]))
@settings(deadline=None, max_examples=60)
def test_linear_region_of_clusters(seed, slope):
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    means = rng.normal(size=(2, d))
    W = np.repeat(means, k, axis=0) + rng.choice([0.0, 0.1, 0.5]) * rng.normal(size=(2 * k, d))
    net = rf.Network(W, np.repeat([0.7, -0.7], k), slope, -3000.0, 0.0)
    both = rf.margins.clusters(net)
    X = rng.normal(size=(300, d))
    f = rf.Network(W, np.repeat([0.7, -0.7], k), slope).outputs(X)
    linear = X @ (both.plus - both.minus)
    for sharp in (False, True):
        inside = both.in_linear_region(X, sharp)
        assert np.array_equal(np.sign(f[inside]), np.sign(linear[inside]))
    assert np.all(both.in_linear_region(X, True) | ~both.in_linear_region(X))
    covered = rf.linearity(net).covers(X)
    assert np.array_equal(np.sign(f[covered]), np.sign(linear[covered]))


@pytest.mark.parametrize(("s", "inside"), [(0.594, False), (0.606, True)])
def test_the_sharp_constant_is_sharp(s, inside):
    # The threshold is (1 - slope)/(1 + slope) = 0.6 at radius 1.
    net = rf.Network([[0, 1], [0, 1], [-s + 1, 0], [-s - 1, 0]], [1, 1, -1, -1], 0.25)
    both = rf.margins.clusters(net)
    scale = np.linalg.norm(net.W)
    assert both.radius * scale == pytest.approx(1)
    x = np.array([[1.0, 0.0]])
    assert (x @ (both.plus - both.minus))[0] * scale == pytest.approx(s)
    assert both.in_linear_region(x, sharp=True)[0] == inside
    assert not both.in_linear_region(x)[0]
    assert (net.outputs(x)[0] > 0) == inside


def test_no_odd_part_and_no_function():
    net = rf.Network([[1.0, 2.0], [-1.0, -2.0]], [1.0, 1.0], 0.3)
    answer = rf.linearity(net)
    assert (answer.linear, answer.evidence, answer.direction) == (False, "proved", None)
    assert refutes_every_direction(net, answer.witness)
    nothing = rf.linearity(rf.Network([[1.0, 2.0], [1.0, 2.0]], [1.0, -1.0], 0.3))
    assert nothing.linear is False
    assert nothing.witness is None
    with pytest.raises(rf.ProblemError, match="zero everywhere"):
        rf.linearity(rf.Network([[0.0, 0.0]], [1.0], 0.3))


def test_refusals():
    with pytest.raises(rf.ProblemError, match="tol"):
        rf.linearity(draw(0), tol=1.0)
    with pytest.raises(rf.ProblemError, match="Network"):
        rf.linearity("net")
    with pytest.raises(rf.ProblemError, match="as many output weights"):
        rf.margins.clusters(draw(0))
    with pytest.raises(rf.ProblemError, match="3 features"):
        rf.margins.smoothed_margin(EX3, rf.Network([[1.0]], [1.0]))
    with pytest.raises(rf.ProblemError, match="loss"):
        rf.margins.smoothed_margin(EX1, rf.Network([[1.0, 1.0]], [1.0]), "hinge")


def test_a_wide_network_takes_no_time_to_judge():
    rng = np.random.default_rng(0)
    net = rf.Network(rng.normal(size=(1000, 100)), rng.normal(size=1000), 0.2)
    assert rf.linearity(net).linear is False
