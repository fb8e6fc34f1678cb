"""Limits behind plateaus: families whose margins, order and log R are derived by hand."""

import itertools

import numpy as np
import pytest

import reluflow as rf
from helpers.judge import judge_problem
from helpers.line import line_cases, line_limit, line_problem

# -- the judge himself -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "slope", "margin"),
    [
        ("EX1", 0.0, 0.5840985669),
        ("D1", 0.25, 0.128701213684),
        ("D7", 0.5, 0.055901699437),
        ("D8", 0.2, 0.527046276695),
    ],
)
def test_judge_on_known_limits(name, slope, margin):
    data = rf.example(name).data
    net = rf.initialize(data.d, 8, "balanced", 1e-4, seed=1, slope=slope, signs=[1, -1] * 4)
    assert judge_problem(rf.Problem(data, net)).margin == pytest.approx(margin, rel=1e-6)


def test_judge_with_a_frozen_layer():
    data = rf.example("D2").data
    net = rf.initialize(data.d, 10, "two-sign", 1e-3, seed=1, slope=0.25, v=1 / np.sqrt(10))
    verdict = judge_problem(rf.Problem(data, net, train="first"))
    assert verdict.margin == pytest.approx(0.722349830722 / np.sqrt(2), rel=1e-6)


@pytest.mark.parametrize("by", [1e-9, 1e-3])
def test_judge_where_a_neuron_passes_through_zero(by):
    data = rf.Dataset([[1.0], [-1.0]], [1, -1])
    for larger, margin in ((0.0, 0.025), (by, 0.2625)):
        net = rf.Network([[1.0], [1e-2]], [1.0, -1e-2 * (1 + larger)], 0.05)
        assert judge_problem(rf.Problem(data, net)).margin == pytest.approx(margin, rel=1e-6)


def test_judge_on_lines():
    for case in line_cases(6, seed=7):
        kind, margin = line_limit(case)
        verdict = judge_problem(line_problem(case))
        assert {"unfit": "rest"}.get(verdict.kind, verdict.kind) == kind
        assert kind == "rest" or verdict.margin == pytest.approx(margin, rel=1e-6)


# -- two points, a neuron between them, and a small one that sees only one -----------------------------


def wide_pair(angle, slope, log_size):
    """Two positive points at an angle to the axis between them, one negative; the third neuron is small.

    It starts seeing no point, and is driven to where it sees the first.
    """
    s, c = np.sin(np.radians(angle)), np.cos(np.radians(angle))
    data = rf.Dataset([[s, c, 0], [-s, c, 0], [0, 0, 1]], [1, 1, -1])
    W, a = [[0, 1, 0], [0, 0, 1], [0.1, -1, -1]], [1, -1, np.sqrt(2.01)]
    return rf.Problem(data, rf.Network(W, a, slope, [0, 0, log_size], [0, 0, log_size]))


def wide_pair_numbers(angle, slope):
    """Margin of the plateau, rate of the third neuron there, margin of the end, and whether that is symmetric.

    Neurons that live have the same force |D| = 2 margin, with forces p that sum to one; P = p1 + p2. At the plateau
    p1 = p2, D1 = (0, cP, -slope p3), D2 = (0, -slope cP, p3): cP = p3. The third neuron sees the first point only: its
    force is D3 = (s (p1 - slope p2), c (p1 + slope p2), -slope p3). Once it counts the first neuron turns away. It ends
    where |D1| = |D3|, p1/p2 = (1 + slope)/(2k), k = s^2 - c^2, if it still sees both points there, D1 . x1 > 0: that
    is, if 1 + slope > 2 k^2. Else it goes on to the mirror image of the third, and p1 = p2 again. |D2| gives p3.
    """
    s, c = np.sin(np.radians(angle)), np.cos(np.radians(angle))
    one = (s * s * (1 - slope) ** 2 + c * c * (1 + slope) ** 2) / 4  # of |D3|^2, in units of P^2
    p3 = c / (1 + c)
    plateau = p3 * np.sqrt(1 + slope**2) / 2
    rate = np.sqrt(one / (1 + c) ** 2 + (slope * p3) ** 2) / (2 * plateau)
    k = s * s - c * c
    symmetric = 1 + slope <= 2 * k * k
    if symmetric:
        p3 = np.sqrt((one - (slope * c) ** 2) / (1 - slope**2))  # in units of P
        return plateau, rate, np.sqrt((slope * c) ** 2 + p3 * p3) / (2 * (1 + p3)), symmetric
    ratio = (1 + slope) / (2 * k)
    p3 = np.sqrt(s * s * (ratio - 1) ** 2 + c * c * (ratio + 1) ** 2)  # in units of p2
    return plateau, rate, p3 * np.sqrt(1 + slope**2) / (2 * (1 + ratio + p3)), symmetric


@pytest.mark.parametrize(("angle", "slope"), [(75, 0.01), (65, 0.02)], ids=str)
def test_a_small_neuron_takes_over(angle, slope):
    plateau, rate, margin, symmetric = wide_pair_numbers(angle, slope)
    assert rate > 1
    ends = []
    for log_size in (-40.0, -60.0):
        found = rf.limit(wide_pair(angle, slope, log_size), optimum=False)
        assert found.kind == "margin"
        assert found.margin == pytest.approx(margin, rel=1e-9)
        assert [p.margin for p in found.plateaus] == pytest.approx([plateau], rel=1e-9)
        assert found.plateaus[0].neuron == 2
        ends.append(found.plateaus[0].log_r_to)
    # As long as it is small its size is proportional to what it was: e^-20 is made up for at the rate - 1.
    assert ends[1] - ends[0] == pytest.approx(2 * 20.0 / (rate - 1), rel=1e-4)
    best = rf.global_max_margin(found.problem.data, slope)
    assert margin <= best.upper * (1 + 1e-9)
    assert not symmetric or best.lower == pytest.approx(margin, rel=1e-6)


def test_a_take_over_may_be_slow():
    # From a thousandth of the norm on it takes log R = 8/(rate - 1) = 150 to be seen, and as long again to settle.
    plateau, rate, margin, _ = wide_pair_numbers(61.8, 0.0068)
    assert 1.05 < rate < 1.06
    found = rf.limit(wide_pair(61.8, 0.0068, -1.4), optimum=False)
    assert found.margin == pytest.approx(margin, rel=1e-9)
    assert [p.margin for p in found.plateaus] == pytest.approx([plateau], rel=1e-9)


@pytest.mark.parametrize(("angle", "slope"), [(55, 0.01), (30, 0.1)], ids=str)
def test_a_small_neuron_that_is_too_slow_changes_nothing(angle, slope):
    plateau, rate, *_ = wide_pair_numbers(angle, slope)
    s, c = np.sin(np.radians(angle)), np.cos(np.radians(angle))
    sees_one = s * s * (1 - slope) > c * c * (1 + slope)
    assert not sees_one or rate < 1
    found = rf.limit(wide_pair(angle, slope, -5.0), optimum=False)
    assert found.margin == pytest.approx(plateau, rel=1e-9)
    assert found.plateaus == ()


@pytest.mark.parametrize(("angle", "slope", "log_size"), [(75, 0.1, np.log(1e-2)), (75, 0.01, -30.0), (50, 0.1, -5.0)])
def test_the_judge_finds_the_same(angle, slope, log_size):
    plateau, rate, margin, _ = wide_pair_numbers(angle, slope)
    verdict = judge_problem(wide_pair(angle, slope, log_size))
    assert verdict.kind == "margin"
    assert verdict.margin == pytest.approx(margin if rate > 1 else plateau, rel=1e-6)


# -- chains --------------------------------------------------------------------------------------------


def chain(angles, log_sizes):
    """Pairs of points that do not feel each other, ReLU: a neuron between the two, and a small one along the first.

    The axes between the points of a pair are at obtuse angles, and its neurons see no other pair.
    """
    B = len(angles)
    turns = 2 * np.pi * np.arange(B) / B
    axes = np.hstack([np.zeros((B, B)), np.cos(turns)[:, None], np.sin(turns)[:, None]])
    sides = np.eye(B, B + 2)
    s, c = np.sin(np.radians(angles))[:, None], np.cos(np.radians(angles))[:, None]
    X = np.vstack([c * axes + s * sides, c * axes - s * sides])
    net = rf.Network.balanced(np.vstack([axes, X[:B]]), np.ones(2 * B), 0.0, np.append(np.zeros(B), log_sizes))
    return rf.Problem(rf.Dataset(X, np.ones(2 * B)), net)


@pytest.mark.parametrize(
    ("angles", "log_sizes"),
    [
        ((75, 72), (-20.0, -100.0)),
        ((75, 50, 72), (-20.0, -3.0, -90.0)),
        ((70, 75, 80), (-20.0, -20.0, -20.0)),
    ],
    ids=str,
)
def test_chain(angles, log_sizes):
    # A neuron between two points has D = P c, c the cosine of the angle; one along a point has D = P/2. Living neurons
    # have equal D, which is twice the margin: a pair takes P = D/c before its small neuron came, and after it P = 2 D,
    # or less if the one between does not turn to the other point (as in wide_pair_numbers, with slope 0).
    # In the clock S in which the neuron between grows like e^S the small one has the rate 1/(2c).
    c = np.cos(np.radians(angles))
    rates = 1 / (2 * c)
    meets = np.where(rates > 1, -np.array(log_sizes) / np.where(rates > 1, rates - 1, 1.0), np.inf)
    k = 1 - 2 * c**2
    ratio = np.where(2 * k * k < 1, 1 / (2 * k), 1.0)
    turned = np.sqrt((1 - c**2) * (ratio - 1) ** 2 + c**2 * (ratio + 1) ** 2)
    after = np.where(2 * k * k < 1, (1 + ratio) / turned, 2.0)
    need, margins = 1 / c, []
    order = [int(b) for b in np.argsort(meets) if np.isfinite(meets[b])]
    for b in order:
        margins.append(1 / (2 * need.sum()))
        need[b] = after[b]
    found = rf.limit(chain(angles, log_sizes), optimum=False, rtol=1e-6)
    assert found.kind == "margin"
    assert found.margin == pytest.approx(1 / (2 * need.sum()), rel=1e-9)
    assert [p.margin for p in found.plateaus] == pytest.approx(margins, rel=1e-9)
    assert [p.neuron - len(c) for p in found.plateaus] == order
    for b, plateau in zip(order, found.plateaus, strict=True):
        # R = sum of 2 e^2 over the living neurons; when a plateau ends is a matter of taste up to 1/(rate - 1).
        assert plateau.log_r_to == pytest.approx(2 * meets[b], abs=8 * max(1, 1 / (rates[b] - 1)))
    starts, stops = [p.log_r_from for p in found.plateaus], [p.log_r_to for p in found.plateaus]
    assert all(a < b for a, b in zip(starts, stops, strict=True))
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(stops))


def test_a_limit_of_several_is_said_to_be_one_of_them():
    # In planes of their own the neurons of each pair begin exactly on the hyperplanes of the other.
    data = rf.Dataset([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1, 1, 1])
    net = rf.Network.balanced([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1, 1])
    found = rf.limit(rf.Problem(data, net), optimum=False)
    item = next(item for item in found.evidence if item.name == "branches")
    assert (item.value, item.holds) == (2, None)  # each neuron could as well stay off the other's points
    # Beside them it does: what it sees is orthogonal to the points of the other, which keep their distance for ever.
    beside = rf.Network.balanced([[0.0, 1.0, -0.01], [0.001, -0.01, 1.0]], [1, 1])
    found = rf.limit(rf.Problem(data, beside), optimum=False)
    assert all(item.holds for item in found.evidence)
    assert found.margin == pytest.approx(1 / 4, rel=1e-9)


def test_a_wall_that_lets_go_is_left_to_the_inactive_side():
    # The third neuron slides on the last point until its output weight changes sign: then both sides pull it away. On
    # the active one it would outgrow the network (0.1149); the rule is to take the other, and that it is one is said.
    X = [[0.36, 0.075], [0.78, -0.143], [-0.754, -0.916], [0.741, -0.159], [-0.193, 0.51]]
    W = [[-0.156, 0.122], [-0.355, 0.077], [2.9e-7, 2.82e-7], [0.102, -0.079]]
    net = rf.Network(W, [-0.198, 0.363, 4.045e-7, -0.129], 0.01)
    problem = rf.Problem(rf.Dataset(X, [-1, -1, 1, -1, -1]), net, reduction="sum")
    found, verdict = rf.limit(problem, optimum=False), judge_problem(problem)
    let_go = found.trajectory.events[found.trajectory.events["log_time"] > 100]
    assert let_go["kind"].tolist() == ["flip", "deactivate", "ridge"]
    assert found.margin == pytest.approx(verdict.margin, rel=1e-6)
    assert found.evidence[-1].name == "branches"


def test_the_judge_goes_through_a_chain():
    verdict = judge_problem(chain((75, 72), (-20.0, -100.0)))
    assert verdict.margin == pytest.approx(1 / 8, rel=1e-6)
    c = np.cos(np.radians([75, 72]))
    assert [m for m, _, _ in verdict.plateaus] == pytest.approx([1 / (2 / c).sum(), 1 / (4 + 2 / c[1])], rel=1e-5)


# -- points that are found again -----------------------------------------------------------------------


def lost_and_found(aside, larger=0.0, turn=0.0, angle=45.0, log_size=-3.0):
    """One positive point with its neuron, and a small negative neuron that sees it, and not the negative point.

    It shrinks along the positive point until it has turned to the negative one, from which it is ``aside`` away:
    w = (e^-s, aside), and the negative point is seen from e^-s = aside tan(angle) on.
    """
    c, s, v = np.cos(turn), np.sin(turn), np.radians(angle)
    turned = np.array([[c, s], [-s, c]])
    X = np.array([[1.0, 0.0], [-np.cos(v), np.sin(v)]]) @ turned
    W = np.array([[1.0, 0.0], [1.0, aside]]) @ turned
    net = rf.Network(W, [1.0, -1.0 - larger], 0.0, [0.0, log_size], [0.0, log_size])
    return rf.Problem(rf.Dataset(X, [1, -1]), net)


@pytest.mark.parametrize(("aside", "turn", "angle"), [(1e-5, 0.0, 45.0), (1e-8, 1.0, 10.0), (1e-13, 1.0, 80.0)])
def test_a_point_that_a_vanishing_neuron_comes_to_see_is_not_lost(aside, turn, angle):
    found = rf.limit(lost_and_found(aside, turn=turn, angle=angle), optimum=False)
    assert found.kind == "margin"
    assert found.margin == pytest.approx(0.25, rel=1e-9)  # a neuron along either point, which do not see each other
    (plateau,) = found.plateaus
    assert (plateau.margin, plateau.neuron, plateau.sample) == (pytest.approx(0.5, rel=1e-9), 1, 1)
    # |theta| grows like e^s from order 1 on.
    assert plateau.log_r_to == pytest.approx(-2 * np.log(aside * np.tan(np.radians(angle))), abs=4.0)


@pytest.mark.parametrize("larger", [1e-3, 1e-6, 1e-9])
def test_a_neuron_that_comes_to_w_0_leaves_towards_a_lost_point(larger):
    # It goes straight to w = 0 and gets there, for |a| > |w|. There is a way out, along the lost point: the flow takes
    # it, and so does the limit where the flow is not followed that far.
    found = rf.limit(lost_and_found(0.0, larger), optimum=False)
    assert (found.kind, found.margin) == ("margin", pytest.approx(0.25, rel=1e-9))
    assert [(p.neuron, p.sample) for p in found.plateaus] == [(1, 1)]
    run = rf.flow(lost_and_found(0.0, 1.0), {"log_time": 50})
    assert set(run.events["kind"]) == {"origin", "ridge"}
    assert run.network(-1).margins(run.problem.data).min() > 0


def test_a_neuron_that_shrinks_for_ever_only_if_it_is_exactly_on_a_ray():
    # Balanced and exactly along the positive point it shrinks for ever; beside it by less than doubles tell in a sum
    # with 1, it does not: the flow sees that, or nobody does.
    for turn in (0.0, 1.0):
        found = rf.limit(lost_and_found(0.0, turn=turn), optimum=False)
        assert (found.kind, found.margin) == ("stall", pytest.approx(0.5, rel=1e-9))
    found = rf.limit(lost_and_found(1e-20), optimum=False)
    assert (found.kind, found.margin) == ("margin", pytest.approx(0.25, rel=1e-9))
    with pytest.raises(rf.Undecided, match="every disturbance grows"):
        rf.limit(lost_and_found(1e-100), optimum=False, max_log_time=2e3)


@pytest.mark.parametrize("seed", range(4))
def test_a_lost_point_that_neurons_lean_on(seed):
    # Negative neurons alone, and a positive point that sees every negative one from its own side: they are pushed off
    # it, and in its hyperplane they are as good as the nearest point of the hull of the others to 0.
    rng = np.random.default_rng(seed)
    n, turn = 3, np.linalg.qr(rng.standard_normal((3, 3)))[0]
    inside = np.column_stack([rng.uniform(0.5, 2.0, n), rng.uniform(-1.0, 1.0, n)])
    X = np.vstack([[1.0, 0.0, 0.0], np.column_stack([rng.uniform(0.1, 1.0, n), inside])])
    W = np.column_stack([-rng.uniform(0.1, 1.0, 3), np.ones(3), rng.uniform(-0.1, 0.1, 3)])
    problem = rf.Problem(rf.Dataset(X @ turn, [1] + [-1] * n), rf.Network.balanced(W @ turn, [-1] * 3, log_scale=-2))
    pairs = [(a, b - a) for a, b in itertools.combinations(inside, 2)]
    nearest = min(np.linalg.norm(a + np.clip(-(a @ e) / (e @ e), 0, 1) * e) for a, e in pairs)
    found = rf.limit(problem, optimum=False)
    assert (found.kind, found.kkt) == ("stall", None)
    assert found.margin == pytest.approx(nearest / 2, rel=1e-9)
    assert all(item.holds for item in found.evidence)
    assert judge_problem(problem).margin == pytest.approx(nearest / 2, rel=1e-5)


# -- one dimension -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", range(8))
def test_line(k):
    case = line_cases(16, seed=3)[k]
    kind, margin = line_limit(case)
    try:
        found = rf.limit(line_problem(case), optimum=False)
    except rf.Undecided as error:
        pytest.fail(f"{case}: {kind} {margin} by hand, but: {error}")
    assert found.kind == kind
    if kind != "rest":
        assert found.margin == pytest.approx(margin, rel=1e-9)


# -- shares that the margin leaves open ----------------------------------------------------------------

TRIANGLE = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)]])


def shared(shares, log_scale=0.0):
    """Neurons along x1, x2 and x1 + x2, all of the same rate, with some shares of the squared norm."""
    W = np.vstack([TRIANGLE, TRIANGLE.sum(axis=0)])[[k for k, _ in shares]]
    logs = 0.5 * np.log([share for _, share in shares]) + log_scale
    return rf.Problem(rf.Dataset(TRIANGLE, [1, 1]), rf.Network.balanced(W, np.ones(len(W)), 0.0, logs))


def shares_of(found):
    out = np.zeros(3)
    for group in found.living:
        axes = np.vstack([TRIANGLE, TRIANGLE.sum(axis=0)])
        out[int(np.argmax(axes @ group.direction))] += group.share
    return out


@pytest.mark.parametrize(
    "shares",
    [
        [(0, 0.1), (1, 0.1), (2, 0.8)],
        [(0, 0.1), (0, 0.15), (1, 0.25), (2, 0.3), (2, 0.2)],
    ],
    ids=str,
)
@pytest.mark.parametrize("log_scale", [0.0, -20.0])
def test_shares_are_kept(shares, log_scale):
    # By symmetry both points pull alike for ever, and every neuron grows at the same rate.
    found = rf.limit(shared(shares, log_scale), optimum=False)
    want = np.bincount([k for k, _ in shares], [share for _, share in shares], 3)
    assert found.margin == pytest.approx(0.25, rel=1e-9)
    assert shares_of(found) == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_shares_of_uneven_starts(seed):
    # Without the symmetry the pulls differ at first; the judge integrates that by himself.
    rng = np.random.default_rng(seed)
    problem = shared(list(zip([0, 1, 2, 2], rng.dirichlet(np.ones(4)), strict=True)))
    verdict = judge_problem(problem)
    W, a = verdict.net
    want = np.add.reduceat((W * W).sum(axis=1) + a * a, [0, 1, 2])
    found = rf.limit(problem, optimum=False)
    assert found.margin == pytest.approx(verdict.margin, rel=1e-6)
    assert shares_of(found) == pytest.approx(want, abs=5e-3)
