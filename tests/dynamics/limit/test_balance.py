"""Points that rest in balance: the least loss by a second way, known rests, and each condition doctored."""

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import reluflow as rf
from helpers.line import Line, line_limit, line_problem
from reluflow.dynamics.flow.balance import balance
from reluflow.dynamics.flow.field import Geometry
from reluflow.dynamics.flow.state import take
from reluflow.dynamics.limit.balance import evidence_of

limit_module = import_module("reluflow.dynamics.limit.limit")  # `reluflow.dynamics.limit` is the room

# A neuron that sees the first point learns it and unlearns the other, which is against it.
SWITCHED = rf.Problem(
    rf.Dataset([[0.2223498417335664, 0.8154997708410874], [-0.2223498417335664, -0.8154997708410874]], [1, 1]),
    rf.Network(
        [[0.21662090462947325, 0.08147165207020747], [0.018635601425042274, 0.007008895277291404]],
        [-0.23143518836499408, 0.019910054080315185],
        0.1,
    ),
    reduction="sum",
)


def opposite(slope, ratio, loss="logistic", extra=None, train="both"):
    """Two points of one label against each other, neurons that see the first alone; perhaps a third point."""
    X, y = [[1.0, 0.5], [-ratio, -0.5 * ratio]], [1, 1]
    if extra is not None:
        X, y = [*X, extra], [*y, 1]
    net = rf.Network.balanced([[1.0, 0.3], [0.8, 0.9]], [1, 1], log_scale=-0.5, slope=slope)
    return rf.Problem(rf.Dataset(X, y), net, loss=loss, train=train)


def least(problem, slope, ratio):
    """The least loss of two such points, by a search along the line of their margins."""
    value = problem.loss.value

    def total(z):
        return float(value(z) + value(-slope * ratio * z)) * problem.weight

    return minimize_scalar(total, bounds=(-50, 50), method="bounded", options={"xatol": 1e-12}).fun


def at_rest(problem, log_time=7.0):
    geometry = Geometry(problem)
    return geometry, take(geometry, rf.flow(problem, {"log_time": log_time}, rtol=1e-10).network(-1))[0]


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("train", ["both", "first"])
@pytest.mark.parametrize(("slope", "ratio"), [(0.5, 1.0), (0.2, 2.0), (0.9, 0.4)])
def test_the_least_loss_by_a_second_way(slope, ratio, loss, train):
    problem = opposite(slope, ratio, loss, train=train)
    geometry, state = at_rest(problem)
    found = balance(geometry, state)
    assert list(found.points) == [0, 1]
    assert found.lower == pytest.approx(least(problem, slope, ratio), rel=1e-9)
    assert all(item.holds for item in evidence_of(geometry, found))
    rng = np.random.default_rng(0)
    for _ in range(200):  # no network with these patterns has a smaller loss
        W = rng.standard_normal((2, 2))
        W *= np.sign(W @ problem.data.X[0])[:, None]
        net = rf.Network(W * np.exp(rng.normal(0, 1)), [1.0, 1.0], slope)
        assert np.exp(problem.log_loss(net)) >= found.lower * (1 - 1e-12)


@pytest.mark.parametrize(
    "case",
    [
        Line((-2, 1), (-1, -1), ((1, 1, 0.0, 0), (1, 1, 0.0, 0)), 0.5),
        Line((-2, 2), (-1, -1), ((1, 1, 0.0, 0), (-1, -1, 0.0, 0)), 1.0),
        Line((-1, 1), (-1, -1), ((1, 1, 0.0, 0), (-1, -1, 0.0, 0)), 0.01),
    ],
)
def test_rests_that_take_for_ever(case):
    # Neurons shrink to w = 0 like t^(-1/2), or shrink against their ray for ever while the others rest: steps that
    # follow them would not end.
    assert line_limit(case)[0] == "rest"
    found = rf.limit(line_problem(case), rtol=1e-4, optimum=False, max_steps=8000)
    assert found.kind == "rest"
    if case.slope > 0.4:
        assert found.loss_floor == pytest.approx(np.log(2.0), rel=1e-9)
        assert "2 of 2 points" in found.reason


def test_a_neuron_switched_to_and_fro_rests():
    found = rf.limit(SWITCHED, rtol=1e-6, optimum=False)
    assert found.kind == "rest"
    assert found.loss_floor == pytest.approx(least(SWITCHED, 0.1, 1.0), rel=1e-8)


def test_points_that_can_be_fitted_are_not_in_balance():
    problem = rf.Problem(
        rf.Dataset([[1.0, 0.5], [-1.0, 0.7]], [1, 1]),
        rf.Network.balanced([[1.0, 0.3], [0.8, 0.9]], [1, 1], log_scale=-0.5, slope=0.1),
    )
    geometry = Geometry(problem)
    assert balance(geometry, take(geometry, problem.net)[0]) is None


def test_a_flow_that_has_not_come_down_is_noticed():
    geometry, state = at_rest(opposite(0.5, 1.0), log_time=1.0)
    found = balance(geometry, state)
    assert found.lower == pytest.approx(least(opposite(0.5, 1.0), 0.5, 1.0), rel=1e-9)
    low, _ = evidence_of(geometry, found)
    assert not low.holds
    assert low.value > 1e-6


def test_a_hyperplane_in_reach_that_lets_a_neuron_through_is_noticed():
    # Beyond it the neuron would learn the other point.
    geometry, state = at_rest(opposite(0.5, 1.0))
    found = balance(geometry, state)
    low, stays = evidence_of(geometry, found)
    assert low.holds
    assert stays.holds
    nearest = float((np.exp(state.log_w)[:, None] * np.abs(state.U @ geometry.faces.normals.T)).min())
    low, stays = evidence_of(geometry, found._replace(way=nearest * 1.01))
    assert low.holds
    assert not stays.holds
    assert "may let a neuron through" in stays.text


def test_neurons_not_larger_than_the_way_are_noticed():
    # With no hyperplane in reach, and output weights that might come to nothing.
    geometry, state = at_rest(opposite(0.5, 1.0))
    found = balance(geometry, state)
    small = replace(state, log_a=np.full(2, np.log(2 * found.way)))
    low, stays = evidence_of(geometry, found._replace(state=small))
    assert low.holds
    assert not stays.holds
    assert "not larger" in stays.text


def test_what_is_fitted_meanwhile_is_said():
    # The third point is orthogonal to the others and goes on to be fitted for ever; the flow ends where pulls cancel.
    problem = opposite(0.5, 1.0, extra=[-0.5, 1.0])
    geometry, state = at_rest(problem, log_time=14.0)
    recorder = SimpleNamespace(state=state)
    way = SimpleNamespace(march=SimpleNamespace(geometry=geometry, recorder=recorder), recorder=recorder)
    with pytest.raises(rf.Undecided, match=r"\(0, 1\) rest in balance.*while 1 other goes on to be fitted") as caught:
        limit_module._in_balance(way, rf.Undecided("the pulls cancel."))
    floor = float(str(caught.value).split("a loss below ")[1].split(" ")[0])
    assert floor == pytest.approx(least(problem, 0.5, 1.0), rel=1e-5)


def test_a_network_at_rest_is_not_made_smaller_for_ever():
    # Its forces are rounding, so that explicit steps go on to log t = 10^6; then there is nothing left to look for.
    rng = np.random.default_rng(144)
    d, n, p = int(rng.integers(2, 5)), int(rng.integers(6, 20)), int(rng.integers(3, 12))
    data = rf.Dataset(rng.normal(size=(n, d)), rng.choice([-1, 1], n))
    problem = rf.Problem(data, rf.initialize(d, p, scale=0.5, seed=144))
    found = rf.limit(problem, optimum=False, rtol=1e-6)
    assert found.kind == "rest"
    # A small neuron shrinks on a ray against its force: descent in steps of 0.01 turns it off, and goes on from there.
    descent = rf.descend(problem, step=0.002, steps=400_000, record=2, progress=False)
    assert descent.loss[-1] == pytest.approx(found.loss_floor, rel=1e-3)
    assert descent.loss[-1] > found.loss_floor
