"""Limits that once stayed undecided, by the reason: each against the judge, by hand, or against the flow itself."""

import numpy as np
import pytest

import reluflow as rf
from helpers.judge import judge_problem
from reluflow.dynamics.limit.future import NOBODY


def evidence_of(found, name):
    return next(item for item in found.evidence if item.name == name)


def test_a_group_that_ends_on_a_wall_beyond_which_nothing_changes():
    data = rf.Dataset([[0, -1], [-2, 1], [0, 1], [1, 0], [1, 2.0]], [1, -1, -1, 1, -1])
    net = rf.Network([[1.16, -0.23], [-0.12, 0.33], [0.05, -0.1], [-0.6, 0.48]], [-1.18, -0.35, 0.116, 0.775])
    problem = rf.Problem(data, net, reduction="sum")
    found = rf.limit(problem, optimum=False)
    assert "1 ends on one" in evidence_of(found, "inside").text
    assert found.margin == pytest.approx((np.sqrt(2) - 1) / 2, rel=1e-9)
    assert judge_problem(problem).margin == pytest.approx(found.margin, rel=1e-6)


def test_a_frozen_neuron_that_slides_on_mirrored_points():
    # x and -x have one hyperplane: a neuron on it loses one direction.
    data = rf.Dataset([[-0.53, -1.4], [-0.72, 1.48], [0.53, 1.4], [0.72, -1.48]], [1, 1, -1, 1])
    net = rf.Network([[0.09, -0.22], [0.023, -0.052], [-0.35, 0.075]], [0.24, -0.057, 0.36], 0.01)
    problem = rf.Problem(data, net, reduction="sum", train="first")
    found = rf.limit(problem, optimum=False)
    slides = [group for group in found.living if (group.pattern == 0).any()]
    assert [group.neurons.tolist() for group in slides] == [[2]]
    far = rf.flow(problem, {"log_time": 1e5}).final.normalized_margin(data, "first")
    assert far == pytest.approx(found.margin, rel=1e-4)


def test_neurons_that_a_lost_point_has_shrunk_beyond_return():
    # By hand: the neurons on the left shrink like e^-ct and leave their points; the others share one direction, and
    # the margin is half that of the nearest point.
    data = rf.Dataset([[0.25], [0.09], [-2.16], [1.58], [-1.48]], [1, 1, -1, 1, -1])
    net = rf.Network([[-0.88], [0.38], [-0.75], [0.2]], [0.88, 0.38, 0.75, 0.2])
    found = rf.limit(rf.Problem(data, net), optimum=False)
    assert found.kind == "stall"
    assert found.margin == pytest.approx(0.045, rel=1e-12)
    assert found.loss_floor == pytest.approx(2 / 5 * np.log(2), rel=1e-12)


def test_a_small_neuron_on_the_hyperplane_of_a_lost_point():
    data = rf.Dataset([[-1.7, -0.4], [1.0, 0.8], [-1.7, -0.4]], [-1, 1, -1])
    net = rf.Network([[0.4, -1.7], [0.2, 0.1], [-0.4, 1.7]], [1.7, 0.3, 1.7])
    problem = rf.Problem(data, net, loss="exponential")
    found = rf.limit(problem, optimum=False)
    assert (found.kind, found.plateaus) == ("stall", ())
    assert found.margin == pytest.approx(np.hypot(1.0, 0.8) / 2, rel=1e-9)
    assert judge_problem(problem).margin == pytest.approx(found.margin, rel=1e-6)


@pytest.mark.parametrize("rate", [1.001, 1.2, 3.0])
def test_a_plateau_is_left_while_its_end_is_small(rate):
    future = type(NOBODY)(np.array([3]), np.array([rate]), 1e5, 3, -1, "", None)
    # So much before its arrival the neuron has e^-4 of the size of the network.
    assert (rate - 1) * future.lead == pytest.approx(4.0)


def test_a_trial_step_beyond_doubles_does_not_end_the_flow():
    # An event at log t = 66 after which a neuron turns hundreds of times as fast as the network grows.
    data = rf.Dataset([[0.58, -0.04, 0.4], [-1.22, -0.07, 0.34], [0.27, 0.53, -1.04], [0.5, 0.17, -1.6]], [1, 1, -1, 1])
    W = [[-0.029, -0.27, 0.2], [-0.047, 0.044, -0.052], [-0.023, -0.051, 0.068], [0.013, 0.1, 0.024]]
    net = rf.Network([*W, [0.062, 0.586, -0.448]], [-0.34, -0.083, 0.088, -0.1034, -0.74], 0.05)
    run = rf.flow(rf.Problem(data, net), {"log_time": 100})
    assert run.events["log_time"].max() > 50
    assert run.log_time[-1] == 100
