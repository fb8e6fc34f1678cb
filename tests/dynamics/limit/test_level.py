"""Points that rest in balance while others go on to be fitted: known answers, two other ways, and what is refused."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import null_space
from scipy.optimize import linprog, minimize, minimize_scalar

import reluflow as rf
from reluflow.dynamics.flow.balance import level
from reluflow.dynamics.flow.field import Geometry, make_pattern
from reluflow.dynamics.flow.state import take
from reluflow.margins import grouped_margin


def against(ratio, aside, loss="logistic", reduction="mean"):
    """Two points on a line with different labels, a third beside it, and a linear network."""
    data = rf.Dataset([[1.0, 0.0], [ratio, 0.0], [aside, 1.0]], [1, -1, 1])
    net = rf.Network.balanced([[1.0, 0.3], [0.8, 0.9]], [1, 1], log_scale=-0.5, slope=1.0)
    return rf.Problem(data, net, loss=loss, reduction=reduction)


def least(problem, ratio):
    """Where the loss of the first two points is least, and what it is."""
    value = problem.loss.value
    found = minimize_scalar(lambda v: float(value(v) + value(-ratio * v)), method="brent", tol=1e-14)
    return found.x, found.fun * problem.weight


@pytest.mark.parametrize("ratio", [0.5, 2.0, 3.0])
@pytest.mark.parametrize("aside", [-1.0, 0.0, 2.0])
@pytest.mark.parametrize(("loss", "reduction"), [("logistic", "mean"), ("exponential", "sum")])
def test_known_answers(ratio, aside, loss, reduction):
    # What the first two points pull in cancels, so that the third is fitted along the other axis alone.
    problem = against(ratio, aside, loss, reduction)
    found = rf.limit(problem, rtol=1e-6, optimum=False)
    assert found.kind == "stall"
    assert list(found.balanced) == [0, 1]
    assert found.margin == pytest.approx(0.5, rel=1e-12)
    assert found.loss_floor == pytest.approx(least(problem, ratio)[1], rel=1e-9)
    assert found.trajectory.loss[-1] == pytest.approx(found.loss_floor, rel=1e-6)
    for group in found.living:
        assert group.direction == pytest.approx([0.0, 1.0], abs=1e-12)
    assert found.to_dict()["balanced"] == [0, 1]
    assert "pulls cancel" in found.reason


@pytest.mark.parametrize("seed", range(2))
def test_linear_networks_by_the_widest_margin_beside_the_others(seed):
    # A linear network in balance on some points has the widest margin of the others orthogonally to them.
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    still = np.vstack([rng.standard_normal((3, 2)), np.zeros((3, 2))])
    still[3:] = -still[:3] * rng.uniform(0.5, 2.0, (3, 1))  # against each other, with the same label
    others = rng.standard_normal((4, 4))
    others[:, 2] = 1.0 + np.abs(others[:, 2])
    X = np.vstack([np.hstack([still, np.zeros((6, 2))]), others]) @ Q
    data = rf.Dataset(X, np.ones(10))
    net = rf.initialize(4, 3, scale=0.3, seed=seed, slope=1.0)
    found = rf.limit(rf.Problem(data, net), rtol=1e-6, optimum=False)
    N = null_space(X[:6])
    best = rf.max_margin(rf.Dataset(X[6:] @ N, np.ones(4)))
    assert found.kind == "stall"
    assert list(found.balanced) == list(range(6))
    assert found.margin == pytest.approx(best.margin / 2, rel=1e-10)
    for group in found.living:
        assert group.sign * group.direction == pytest.approx(N @ best.direction, abs=1e-9)


def test_the_flow_in_time_by_a_quadrature():
    # One balanced linear neuron: a w_1 = z stays, a^2 = |w|^2, so that all is a function of a, and dt/da is known.
    data = rf.Dataset([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    problem = rf.Problem(data, rf.Network.balanced([[0.6, 0.8]], [1], log_scale=-0.5, slope=1.0))
    z, floor = least(problem, 2.0)
    begin = rf.flow(problem, {"log_time": 16.0})
    run = rf.flow(problem, {"log_time": 60.0})
    assert "points 0, 1 rest in balance" in run.settings["balance"]
    assert run.loss[-1] == pytest.approx(floor, rel=1e-7)

    def later(a):
        w = np.sqrt(a**2 - (z / a) ** 2)
        return a * w, w

    a0, a1 = (float(np.exp(r.final.log_outs[0])) for r in (begin, run))
    # t = t_0 + 3 int (1 + e^q)/w da, with the largest exponent taken out.
    top = later(a1)[0]
    part, _ = quad(lambda a: 3 * np.exp(later(a)[0] - top) / later(a)[1], a0, a1, epsrel=1e-12, limit=200)
    # At log t = 16, where the points are taken to be in balance, they are behind by parts of e^-16 of their pulls.
    assert np.logaddexp(16.0, top + np.log(part)) == pytest.approx(60.0, abs=1e-4)


def test_relu_neurons_that_hold_points_stay_small():
    # On the left one-dimensional points of both labels rest; the neuron on the right grows without bound.
    data = rf.Dataset([[-1.0], [-0.5], [0.6]], [1, -1, -1])
    net = rf.Network([[0.1], [-0.1]], [-0.1, 0.1], 0.0)
    found = rf.limit(rf.Problem(data, net), rtol=1e-6, optimum=False)
    assert found.kind == "stall"
    assert list(found.balanced) == [0, 1]
    assert found.margin == pytest.approx(0.3, rel=1e-12)
    value = rf.Problem(data, net).loss.value
    floor = minimize_scalar(lambda v: float(value(v) + value(-v / 2)), tol=1e-14).fun / 3
    assert found.loss_floor == pytest.approx(floor, rel=1e-9)


def test_what_is_level_and_what_is_not():
    problem = against(2.0, 0.0)
    geometry = Geometry(problem)
    assert level(geometry, take(geometry, rf.flow(problem, {"log_time": 3.0}).final)[0]) is None  # not there yet
    state = take(geometry, rf.flow(problem, {"log_time": 16.0}).final)[0]
    found = level(geometry, state)
    assert list(found.points) == [0, 1]
    pattern = make_pattern(geometry, state.sides)
    assert found.holds(geometry, pattern)
    assert not found._replace(pulls=found.pulls * [1.0, 1.01]).holds(geometry, pattern)
    separable = rf.Problem(rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1, -1]), problem.net)
    geometry = Geometry(separable)
    assert level(geometry, take(geometry, rf.flow(separable, {"log_time": 16.0}).final)[0]) is None


def test_points_that_need_only_not_be_lost():
    data = against(2.0, 1.0).data
    best = grouped_margin(data, np.ones((1, 3)), [1], 1.0, cones=False, level=[True, True, False])
    assert best.v[0] == pytest.approx([0.0, 1.0], abs=1e-12)
    with pytest.raises(rf.ProblemError, match="level must be 3 truth values"):
        grouped_margin(data, np.ones((1, 3)), [1], 1.0, level=[True])
    with pytest.raises(rf.ProblemError, match="not level"):
        grouped_margin(data, np.ones((1, 3)), [1], 1.0, level=[True, True, True])


@pytest.mark.parametrize("log_out", [-50.0, 40.0])
def test_a_second_layer_frozen_far_from_one(log_out):
    # (w, a) and (s w, a/s) are the same flow: the margin over |W| is s times that of the other.
    data = rf.example("EX1").data
    W = np.random.default_rng(0).standard_normal((6, 2))
    near = rf.Problem(data, rf.Network(W, [1, -1] * 3, 0.3, -8.0, 0.0), train="first")
    far = rf.Problem(data, rf.Network(W, [1, -1] * 3, 0.3, -8.0 - log_out, log_out), train="first")
    one, two = (rf.limit(problem, rtol=1e-6, optimum=False) for problem in (near, far))
    assert two.kind == one.kind == "margin"
    assert np.log(two.margin / one.margin) == pytest.approx(log_out, rel=1e-12)
    assert two.network.normalized_margin(data, "first") == pytest.approx(two.margin, rel=1e-10)
    assert two.kkt.residual < 1e-9
    assert two.directions == pytest.approx(one.directions, abs=1e-9)
    assert two.trajectory.problem == far
    assert two.trajectory.final.log_outs == pytest.approx(far.net.log_outs, abs=1e-9)
    assert f"{two.margin:.10g}" in two.reason


def random_labels(seed):
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.normal(size=(12, 3)), rng.choice([-1, 1], 12))
    return rf.Problem(data, rf.initialize(3, 6, scale=0.5, seed=seed, slope=0.3))


@pytest.mark.parametrize("seed", [0, 6, 10])
def test_random_labels_of_which_some_are_never_fitted(seed):
    # From an ordinary start and at a coarse tolerance: pulls of e^15 that cancel are felt by what slides. The floor
    # against the least loss, over all sums of the neurons of each group, of the points said to be in balance.
    problem = random_labels(seed)
    found = rf.limit(problem, rtol=1e-6, optimum=False)
    assert found.kind == "stall"
    X, y, still = problem.data.X, problem.data.y, found.balanced
    blocks = []
    for group in found.groups:
        free = null_space(X[group.pattern == 0]) if (group.pattern == 0).any() else np.eye(3)
        h = np.where(group.pattern > 0, 1.0, problem.net.slope)
        blocks.append((group.sign * y * h)[:, None] * (X @ free))
    A = np.hstack(blocks)
    least = minimize(
        lambda v: float(problem.loss.value(A[still] @ v).sum()) * problem.weight,
        np.zeros(A.shape[1]),
        jac=lambda v: -A[still].T @ problem.loss.force(A[still] @ v) * problem.weight,
        method="BFGS",
        options={"gtol": 1e-10},
    )
    assert found.loss_floor == pytest.approx(least.fun, rel=1e-6)
    assert found.trajectory.loss[-1] == pytest.approx(found.loss_floor, rel=1e-4)
    others = np.setdiff1d(np.arange(12), still)
    assert linprog(
        np.zeros(A.shape[1]), -A[others], -np.ones(others.size), A[still], np.zeros(still.size), (None, None)
    ).success


def test_a_search_that_takes_too_many_implicit_steps_is_given_up():
    with pytest.raises(rf.Undecided, match="a larger max_steps goes on: 2000 allow for 200 steps") as error:
        rf.limit(random_labels(1), rtol=1e-6, optimum=False, max_steps=2000)
    assert not isinstance(error.value, rf.BudgetExceeded)
    assert error.value.partial.phases[-1].name == "late"
    assert rf.limit(random_labels(1), rtol=1e-6, optimum=False).kind == "margin"
