"""Every margin, certificate and threshold of the worked examples, and second ways to the same numbers."""

from fractions import Fraction

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from reluflow import (
    DataError,
    Dataset,
    Network,
    NotSeparable,
    ProblemError,
    example,
    global_max_margin,
    kkt,
    make,
    max_margin,
)
from reluflow.margins import (
    class_margins,
    embed,
    grouped_margin,
    linearity,
    one_signed_margins,
    smoothed_margin,
    stable_rank,
    symmetrized_network,
)

GLOBAL = [
    (name, slope)
    for name in ("D1", "D2", "D3", "D4", "D5", "D6", "D6-H12", "D7", "D8")
    for slope in example(name).slopes
]
GLOBAL = [(n, s) for n, s in GLOBAL if "global_margin" in example(n).at(s).answers]
seeds = st.integers(0, 10**6)


def random_data(seed, n=None, d=None):
    rng = np.random.default_rng(seed)
    n, d = n or int(rng.integers(1, 7)), d or int(rng.integers(2, 4))
    return Dataset(rng.standard_normal((n, d)), rng.choice([-1, 1], n))


# -- the global optimum -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "slope"), GLOBAL)
def test_global_margin_of_the_worked_examples(name, slope):
    known, best = example(name), global_max_margin(example(name).data, slope)
    assert best.exact
    assert best.lower <= best.upper
    assert known.agrees("global_margin", best.lower, slope=slope)
    assert known.agrees("global_margin", best.upper, slope=slope)
    assert best.network.normalized_margin(known.data) == pytest.approx(best.lower, abs=1e-14)
    assert best.network.p <= known.data.n + 1


@pytest.mark.parametrize(
    ("K", "want"), [(0.52, 0.1), (0.53, 0.1000702878), (0.6, 0.1060660172), (0.8, 0.1249731054), (1.0, 0.1431474494)]
)
def test_one_neuron_limit_is_optimal_up_to_a_threshold(K, want):
    data = make("hinted", base="D6-base", H=45.0, K=K, eps=0.2)
    assert global_max_margin(data, 0.5).lower == pytest.approx(want, abs=6e-11)


@pytest.mark.parametrize("name", ["EX1", "EX2", "EX3", "EX4", "EX8", "LL-TH2-2d", "LL-TH2-3d"])
def test_relu_on_orthogonally_separable_data_has_a_closed_form(name):
    data = example(name).data
    plus, minus = class_margins(data)
    closed = 1 / (2 * (1 / plus.margin + 1 / minus.margin))  # PL-LC1', LL-TH.2
    best = global_max_margin(data, 0.0)
    assert best.exact
    assert best.lower == pytest.approx(closed, rel=1e-12)


@settings(deadline=None, max_examples=15)
@given(seeds, st.sampled_from([0.0, 0.3, 0.8]))
def test_symmetric_separable_data_have_a_closed_form(seed, slope):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4, 2))
    X[:, 0] = np.abs(X[:, 0]) + 0.1
    data = Dataset(X, np.ones(4)).symmetrized()
    want = (1 + slope) / 4 * max_margin(data).margin  # LL-T4.2
    assert global_max_margin(data, slope).lower == pytest.approx(want, rel=1e-10)


def pattern_program(data, slope, signs):
    """C-GLOBAL as one cone program over every activation pattern of the plane, by clarabel: a second way."""
    angles = np.arctan2(data.X[:, 1], data.X[:, 0])
    walls = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % (2 * np.pi))
    middles = np.unique(((walls + np.append(walls[1:], walls[0] + 2 * np.pi)) / 2).round(12))
    cells = np.unique(np.sign(data.X @ np.stack([np.cos(middles), np.sin(middles)])).T, axis=0)
    blocks = [(cell, s) for cell in cells for s in signs]
    n, size = data.n, 3 * len(blocks) + 1  # v (2) and its length a block, and the margin t
    rows, right, cones = [], [], []
    gain = np.zeros((n, size))
    for k, (cell, s) in enumerate(blocks):
        gain[:, 3 * k : 3 * k + 2] = -(s * data.y * np.where(cell > 0, 1.0, slope))[:, None] * data.X
    gain[:, -1] = 1.0
    rows.append(gain)
    right.append(np.zeros(n))
    total = np.zeros((1, size))
    total[0, 2:-1:3] = 1.0
    rows.append(total)
    right.append(np.ones(1))
    for k, (cell, _) in enumerate(blocks):
        wall = np.zeros((n, size))
        wall[:, 3 * k : 3 * k + 2] = -cell[:, None] * data.X
        rows.append(wall)
        right.append(np.zeros(n))
    cones.append(clarabel.NonnegativeConeT(n + 1 + n * len(blocks)))
    for k in range(len(blocks)):
        ball = np.zeros((3, size))
        ball[0, 3 * k + 2] = ball[1, 3 * k] = ball[2, 3 * k + 1] = -1.0
        rows.append(ball)
        right.append(np.zeros(3))
        cones.append(clarabel.SecondOrderConeT(3))
    cost = np.zeros(size)
    cost[-1] = -1.0
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    A = sp.csc_matrix(np.vstack(rows))
    answer = clarabel.DefaultSolver(
        sp.csc_matrix((size, size)), cost, A, np.concatenate(right), cones, settings_
    ).solve()
    return -answer.obj_val / 2


@settings(deadline=None, max_examples=25)
@given(seeds, st.sampled_from([0.0, 0.25, 0.7]), st.sampled_from([None, 1, -1]))
def test_global_margin_against_all_patterns_at_once(seed, slope, signs):
    data = random_data(seed, d=2)
    best = global_max_margin(data, slope, signs)
    assert best.exact
    want = max(pattern_program(data, slope, (1, -1) if signs is None else (signs,)), 0.0)
    assert best.lower == pytest.approx(want, abs=1e-6 * data.norms.max())


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([0.0, 0.4]))
def test_global_margin_symmetries(seed, slope):
    data = random_data(seed)
    best = global_max_margin(data, slope).lower
    tiny = 1e-11 * data.norms.max()
    turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((data.d, data.d)))
    assert global_max_margin(Dataset(data.X @ turn, data.y), slope).lower == pytest.approx(best, abs=tiny)
    assert global_max_margin(data.flipped(), slope).lower == pytest.approx(best, abs=tiny)
    order = np.random.default_rng(seed).permutation(data.n)
    assert global_max_margin(data.subset(order), slope).lower == pytest.approx(best, abs=tiny)
    scaled = global_max_margin(Dataset(1e5 * data.X, data.y), slope).lower
    assert scaled == pytest.approx(1e5 * best, abs=1e5 * tiny)
    for sign in (1, -1):
        one = global_max_margin(data, slope, sign).lower
        assert one <= best + tiny
        assert global_max_margin(data.flipped(), slope, -sign).lower == pytest.approx(one, abs=tiny)


def test_linear_network_has_half_the_linear_margin():
    data = example("D2").data
    assert global_max_margin(data, 1.0).lower == pytest.approx(max_margin(data).margin / 2, rel=1e-12)


def test_a_point_and_its_multiple_with_the_other_label_leave_nothing():
    best = global_max_margin(Dataset([[1.0, 2.0], [2.0, 4.0]], [1, -1]), 0.3)
    assert best.lower == 0.0
    assert best.upper < 1e-12


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: global_max_margin(d, 1.2), "outside"),
        (lambda d: global_max_margin(d, 0.2, 2), "signs"),
        (lambda d: global_max_margin(d, 0.2, budget=-1), "budget"),
        (lambda d: global_max_margin("EX1", 0.2), "Dataset"),
    ],
)
def test_global_bad_input(call, words):
    with pytest.raises(ProblemError, match=words):
        call(example("EX1").data)


# -- one output sign --------------------------------------------------------------------------------

ONE_SIGNED = [(n, s) for n in ("D2", "D3", "D5", "D6", "D7", "D8") for s in example(n).slopes]
ONE_SIGNED = [(n, s) for n, s in ONE_SIGNED if "V_minus" in example(n).at(s).answers]


@pytest.mark.parametrize(("name", "slope"), ONE_SIGNED)
def test_one_signed_margins_of_the_worked_examples(name, slope):
    known = example(name)
    found = one_signed_margins(known.data, slope)
    for answer, bounds in (("V_minus", found.value), ("V_minus_star", found.star)):
        if answer in known.at(slope).answers:
            assert known.agrees(answer, bounds.lower, slope=slope, slack=1e-9)
            assert known.agrees(answer, bounds.upper, slope=slope, slack=1e-9)
    assert found.neuron.support.tolist() == known.at(slope).answers["S_plus"].tolist()
    assert found.star.upper >= found.value.lower - 1e-12


def test_the_counterexample_tells_the_two_conditions_apart():
    found = one_signed_margins(example("D8").data, 0.2)
    assert (found.holds, found.holds_star) == (True, False)


def test_mirrored_condition_on_flipped_data():
    # E-L7: the sign in the mirrored assumption must be a >= 0, which gives 0.1192605422 here, not gamma/2
    found = one_signed_margins(example("D5").data.flipped(), 0.5, -1)
    assert found.value.lower == pytest.approx(0.1192605422, abs=6e-11)
    assert found.holds is True


# -- groups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["EX1", "EX2", "EX3", "EX8"])
def test_two_groups_on_orthogonally_separable_data(name):
    known = example(name)
    data = known.data
    plus, minus = class_margins(data)
    found = grouped_margin(data, [data.y, -data.y], [1, -1], 0.0)
    assert found.verified
    np.testing.assert_allclose(found.v, [plus.w, minus.w], atol=1e-12)
    if "kkt_value" in known.answers:
        assert known.agrees("kkt_value", found.value)
    if "kkt_multipliers" in known.answers:
        assert known.agrees("kkt_multipliers", found.multipliers)
    assert found.network().normalized_margin(data) == pytest.approx(found.margin, rel=1e-12)


def test_one_group_is_the_one_neuron_program():
    for name, slope in (("D5", 0.5), ("D7", 0.5), ("D6", 0.5)):
        known = example(name)
        found = grouped_margin(known.data, [known.data.y], [1], slope)
        assert found.margin == pytest.approx(known.at(slope).answers["gamma_plus"] / 2, abs=1e-11)


@settings(deadline=None, max_examples=25)
@given(seeds, st.sampled_from([0.0, 0.3]))
def test_groups_of_all_patterns_give_the_global_optimum(seed, slope):
    from reluflow.sectors import enumerate_cells

    data = random_data(seed, n=4, d=2)
    cells = enumerate_cells(data.X).signs
    best = global_max_margin(data, slope)
    patterns, signs = np.vstack([cells, cells]), np.repeat([1, -1], len(cells))
    if best.lower < 1e-6:
        return
    found = grouped_margin(data, patterns, signs, slope)
    assert found.verified
    assert found.margin == pytest.approx(best.lower, rel=1e-9)
    assert (found.cone_dual_norms <= 1 + 1e-9).all()


def test_groups_that_cannot_separate_are_refused():
    data = example("EX1").data
    with pytest.raises(NotSeparable):
        grouped_margin(data, [data.y], [1], 0.0)  # a positive ReLU neuron gives nothing to the negative class
    with pytest.raises((ProblemError, DataError)):
        grouped_margin(data, [[1, 1, 1]], [1], 0.0)


# -- KKT --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "slope"), [("D4", 0.5), ("D4-0", 0.0), ("D4-0.25", 0.25), ("D4-0.9", 0.9)])
def test_three_neurons_are_kkt_but_not_optimal(name, slope):
    known = example(name)
    answer = kkt(known.data, known.networks["kkt"])
    assert answer.is_kkt(1e-14)
    cos = known.networks["kkt"].directions[0, 0]
    P = (1 - cos**2) / (cos * (1 - slope))
    np.testing.assert_allclose(answer.multipliers[:3], [P, 0, P], atol=1e-12)
    # for ReLU the weight of the middle negative point may as well lie on its two neighbours
    negatives = [0, 1 - 2 * slope * P, 0] if slope else answer.multipliers[3:]
    np.testing.assert_allclose(answer.multipliers[3:], negatives, atol=1e-12)
    assert answer.multipliers[3:].sum() == pytest.approx(1 - 2 * slope * P, abs=1e-12)
    assert answer.margin == pytest.approx((1 + slope) / (2 * (1 + 1 / cos)), rel=1e-12)


def test_balance_is_part_of_the_conditions():
    answer = kkt(Dataset([[1.0]], [1]), Network([[0.5]], [2.0]))
    assert answer.residual < 1e-12
    assert answer.multipliers[0] == pytest.approx(0.25)
    assert not answer.is_kkt(1e-3)


def test_the_three_kkt_directions_of_width_two():
    data = example("D1").data
    w = max_margin(data).direction
    good = [
        Network([w / 2, -w / 2], [0.5, -0.5], 0.5),
        Network([w, 0 * w], [1.0, 0.0], 0.5),
        Network([0 * w, -w], [0.0, -1.0], 0.5),
    ]
    for net in good:
        assert kkt(data, net).is_kkt(1e-12)
    rng = np.random.default_rng(0)
    for _ in range(10):
        v = w + 0.1 * rng.standard_normal(2)
        assert not kkt(data, Network.balanced([v, -w], [1, -1], 0.5)).is_kkt(1e-4)


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from([0.0, 0.3]), st.floats(-3000, 3000))
def test_kkt_of_the_best_network_and_its_symmetries(seed, slope, log_scale):
    data = random_data(seed)
    best = global_max_margin(data, slope)
    if best.lower < 1e-4 * data.norms.min():
        return
    net = best.network
    answer = kkt(data, net)
    assert answer.is_kkt(1e-8)  # an optimum of any width is a KKT direction; its weights are known to about 1e-9
    assert kkt(data, net.with_log_scale(log_scale)).residual == pytest.approx(answer.residual, abs=1e-12)
    assert kkt(Dataset(1e-4 * data.X, data.y), net).is_kkt(1e-8)
    flipped = Network(net.W, -net.a, slope)
    assert kkt(data.flipped(), flipped).is_kkt(1e-8)
    split = Network(np.vstack([net.W * 0.6, net.W * 0.8]), np.concatenate([net.a * 0.6, net.a * 0.8]), slope)
    assert kkt(data, split).is_kkt(1e-8)


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from([0.0, 0.3]))
def test_kkt_residual_recomputed_and_never_below_the_best_possible(seed, slope):
    rng = np.random.default_rng(seed)
    data = Dataset(rng.standard_normal((4, 2)), np.ones(4))
    net = Network.balanced(rng.standard_normal((3, 2)), [1, 1, 1], slope)
    if net.margins(data).min() <= 1e-6:
        return
    answer = kkt(data, net, active_tol=0.999)  # all points may carry weight
    size = np.exp(net.log_norm())
    pull = (answer.slopes * answer.multipliers[answer.active]) @ data.signed[answer.active]
    got = np.abs(net.W / size - net.a[:, None] / size * pull).max()
    assert got == pytest.approx(answer.residual, abs=1e-12)
    # the same program in the multipliers alone (no kinks in general position), by another formulation
    z = data.X @ net.W.T
    h = np.where(z > 0, 1.0, slope)
    columns = np.stack(
        [(net.a[:, None] * h[i][:, None] * data.signed[i]).ravel() / size for i in answer.active], axis=1
    )
    target = net.W.ravel() / size
    k = columns.shape[1]
    A = np.block([[columns, -np.ones((len(target), 1))], [-columns, -np.ones((len(target), 1))]])
    lp = linprog(np.r_[np.zeros(k), 1.0], A_ub=A, b_ub=np.r_[target, -target], bounds=[(0, None)] * (k + 1))
    assert answer.residual == pytest.approx(lp.fun, abs=1e-7)


def test_kkt_refuses_what_is_not_classified():
    data = example("EX1").data
    with pytest.raises(ProblemError, match="does not classify"):
        kkt(data, Network([[1.0, 0.0]], [1.0]))
    with pytest.raises(ProblemError, match="inputs"):
        kkt(data, Network([[1.0]], [1.0]))
    with pytest.raises(ProblemError, match="kink_tol"):
        kkt(data, Network([[1.0, 0.0]], [1.0]), kink_tol=-1.0)


# -- network arithmetic -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from(["logistic", "exponential"]), st.floats(-2, 3))
def test_smoothed_margin_by_its_definition(seed, loss, log_scale):
    data = random_data(seed)
    net = Network(np.random.default_rng(seed).standard_normal((3, data.d)), [1.0, -0.5, 2.0], 0.2, log_scale)
    q, norm2 = net.margins(data), np.exp(2 * net.log_norm())
    if loss == "logistic":
        total = np.logaddexp(0, -q).sum()
        want = -np.log(np.expm1(total)) if total < 500 else -total
    else:
        want = -np.logaddexp.reduce(-q)
    found = smoothed_margin(data, net, loss)
    assert found == pytest.approx(want / norm2, rel=1e-9, abs=1e-12 / min(norm2, 1.0))
    assert found <= net.normalized_margin(data) + 1e-9


def test_smoothed_margin_tends_to_the_margin():
    data, net = example("D1").data, Network([[1.0, 0.2], [-1.0, -0.2]], [1.0, -1.0], 0.5)
    margin = net.normalized_margin(data)
    gaps = [margin - smoothed_margin(data, net.with_log_scale(s)) for s in (1.0, 3.0, 6.0)]
    assert gaps[0] > gaps[1] > gaps[2] >= 0
    assert smoothed_margin(data, net.with_log_scale(3000.0)) == pytest.approx(margin, rel=1e-14)


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from([0.0, 0.4]))
def test_symmetrised_network(seed, slope):
    rng = np.random.default_rng(seed)
    net = Network(rng.standard_normal((4, 2)), rng.standard_normal(4), slope)
    two, X = symmetrized_network(net), rng.standard_normal((5, 2))
    np.testing.assert_allclose(two.outputs(X), (net.outputs(X) - net.outputs(-X)) / 2, atol=1e-12)
    X[:, 0] = np.abs(X[:, 0])
    data = Dataset(X, np.ones(5)).symmetrized()
    assert two.margins(data).min() >= net.margins(data).min() - 1e-12
    assert two.log_norm() <= net.log_norm() + 1e-12  # so a positive normalised margin can only grow


def test_embedding_keeps_function_and_norm():
    rng = np.random.default_rng(1)
    two = Network(rng.standard_normal((2, 3)), [0.7, -1.1], 0.3)
    wide, X = embed([0.5, -2.0, 1.5, -0.1], two), rng.standard_normal((6, 3))
    np.testing.assert_allclose(wide.outputs(X), two.outputs(X), rtol=1e-13)
    assert wide.log_norm() == pytest.approx(two.log_norm(), rel=1e-13)
    for bad in ([1.0, 2.0], [1.0, 0.0, -1.0], []):
        with pytest.raises(ProblemError):
            embed(bad, two)


def test_stable_rank_against_singular_values():
    W = np.random.default_rng(2).standard_normal((5, 3))
    s = np.linalg.svd(W, compute_uv=False)
    assert stable_rank(Network(W, np.ones(5), log_scale=-3000)) == pytest.approx((s**2).sum() / s[0] ** 2, rel=1e-13)


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from([0.0, 0.25, 0.6]))
def test_linearity_never_contradicts_the_function(seed, slope):
    rng = np.random.default_rng(seed)
    net = Network(rng.integers(-2, 3, (3, 2)).astype(float), rng.integers(-2, 3, 3).astype(float), slope)
    if not (net.a[:, None] * net.W).any():
        with pytest.raises(ProblemError, match="zero everywhere"):
            linearity(net)
        return
    answer = linearity(net)
    angle = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    f = net.outputs(X)
    if answer.linear:
        clear = np.abs(X @ answer.direction) > max(answer.wedge, 1e-9)
        assert (np.sign(f[clear]) == np.sign(X[clear] @ answer.direction)).all()
    if answer.linear is False and answer.witness is not None and answer.evidence == "proved":
        x = answer.witness
        value = [
            sum(
                Fraction(float(a)) * max(z, Fraction(slope) * z)
                for a, z in (
                    (a, sum(Fraction(float(u)) * Fraction(float(v)) * s for u, v in zip(w, x, strict=True)))
                    for w, a in zip(net.W, net.a, strict=True)
                )
            )
            for s in (1, -1)
        ]
        assert value[0] * value[1] >= 0


def test_linearity_of_clusters():
    assert linearity(Network([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.25)).linear is True  # SBG-F4, leaky
    assert linearity(Network([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], 0.0)).linear is False  # SBG-F4, ReLU
    assert linearity(example("D4").networks["kkt"]).linear is False
