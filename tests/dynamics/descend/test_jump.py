"""Jumping along the exact recursion equals taking its steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf


def draw(seed, n=15, d=3, p=10, slope=0.0, log_scale=-40.0, scheme="gaussian", **options):
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.standard_normal((n, d)), np.where(rng.random(n) < 0.5, 1, -1))
    net = rf.initialize(d, width=p, scheme=scheme, seed=seed, slope=slope, log_scale=log_scale)
    return rf.Problem(data, net, **options)


def same(jumped, plain, tol=1e-9):
    np.testing.assert_allclose(jumped.directions, plain.directions, atol=tol)
    np.testing.assert_allclose(jumped.log_norms, plain.log_norms, atol=tol)
    np.testing.assert_allclose(jumped.log_outs, plain.log_outs, atol=10 * tol)
    np.testing.assert_allclose(jumped.log_time[1:], plain.log_time[1:], rtol=1e-12)
    assert np.array_equal(jumped.signs, plain.signs)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    slope=st.sampled_from([0.0, 0.3, 1.0]),
    scheme=st.sampled_from(["gaussian", "balanced"]),
    loss=st.sampled_from(["logistic", "exponential"]),
    reduction=st.sampled_from(["mean", "sum"]),
    step=st.sampled_from([1e-3, 0.02, 0.1]),
)
def test_jumps_equal_steps(seed, slope, scheme, loss, reduction, step):
    # Random labels: neurons cross hyperplanes and chatter along them. Scale e^-60: margins of e^-120.
    problem = draw(seed, slope=slope, scheme=scheme, loss=loss, reduction=reduction, log_scale=-60.0)
    step = step if reduction == "mean" else step / problem.data.n
    options = {"step": step, "steps": 300, "record": [0, 1, 2, 7, 50, 299, 300]}
    plain = rf.descend(problem, **options)
    jumped = rf.descend(problem, **options, fast_forward=True)
    assert jumped.settings["fast_forward"] > 20
    # A neuron that chatters on a hyperplane amplifies nothing, but one that meets it within rounding may cross one
    # iteration sooner: an error of one step of the angle. None does at these sizes of the sample.
    same(jumped, plain)


@pytest.mark.parametrize("schedule", ["fixed", "loss-scaled", "loss-log-scaled"])
@pytest.mark.parametrize("train", ["both", "first"])
def test_a_whole_training_run_with_and_without_jumps(schedule, train):
    data = rf.Dataset([[1.0, 0.3], [0.8, 0.6], [-1.0, -0.2], [-0.5, -0.9]], [1, 1, -1, -1])
    scheme = "gaussian" if train == "both" else "two-sign"
    net = rf.initialize(2, width=8, scheme=scheme, log_scale=-25.0, seed=3)
    problem = rf.Problem(data, net, train=train)
    # up to a moderate loss: later the step c/L makes the sequence chaotic
    options = {"step": 0.1, "steps": 1500, "schedule": schedule, "until_loss": 0.1}
    jumped, plain = rf.descend(problem, **options, fast_forward=True), rf.descend(problem, **options)
    same(jumped, plain, 1e-8)
    np.testing.assert_allclose(jumped.log_loss, plain.log_loss, atol=1e-8)
    assert plain.settings["stopped"] == "loss"
    if train == "both":
        assert [phase.name for phase in jumped.phases] == ["early", "gd"]
        assert jumped.phases[0].steps > 100
    assert sum(phase.steps for phase in jumped.phases) == jumped.settings["iteration"][-1] > 10


def test_a_step_so_large_that_the_second_eigenvalue_is_negative():
    problem = draw(1, log_scale=-500.0, reduction="sum")
    options = {"step": 1.0, "steps": 30, "record": range(31)}
    same(rf.descend(problem, **options, fast_forward=True), rf.descend(problem, **options))


def test_exact_kinks_take_the_subgradient_that_was_asked_for():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1, -1, 1])
    net = rf.Network([[0.0, 1.0], [1.0, 0.0], [1.0, -1.0]], [1.0, -1.0, 1.0], log_scale=-60.0)
    problem = rf.Problem(data, net)
    for kink in (0.0, 0.5, 1.0):
        options = {"step": 0.1, "steps": 40, "record": range(41), "subgradient": kink}
        same(rf.descend(problem, **options, fast_forward=True), rf.descend(problem, **options), 1e-12)


def test_the_alignment_of_a_start_far_below_every_double():
    # EX1 at e^-30000: directions at the end of the early phase are those of the exact early flow, up to the step.
    data = rf.example("EX1").data
    net = rf.initialize(data.d, width=12, log_scale=-30000.0, seed=2)
    problem = rf.Problem(data, net)
    run = rf.descend(problem, step=0.01, steps=20_000_000, fast_forward=True, record=2, until_loss=0.69)
    early = rf.align(problem)
    assert run.settings["fast_forward"] > 100_000
    assert run.settings["stopped"] == "loss"
    live = [j for j, fate in enumerate(early.fates) if fate == "aligned"]
    grown = [j for j in live if run.log_norms[-1, j] > -50]
    assert grown
    # the leading neurons sit on an extremal direction, attracted exponentially
    np.testing.assert_allclose(run.directions[-1, grown], early.direction[grown], atol=1e-3)


def test_a_frozen_second_layer_leaves_a_tiny_start_in_one_step():
    data = rf.Dataset([[1.0, 0.3], [-0.2, 1.0]], [1, -1])
    net = rf.Network([[1.0, 0.0], [0.5, 1.0]], [1.0, -1.0], 0.2, log_scale=-3000.0, log_scale_out=0.0)
    problem = rf.Problem(data, net, train="first")
    with pytest.raises(rf.ProblemError, match="fast_forward=True"):
        rf.descend(problem, step=0.1, steps=5)
    run = rf.descend(problem, step=0.1, steps=5, fast_forward=True, record=range(6))
    # By hand: forces 1/4 each (mean, logistic at 0); w = eta a sum_i y_i/4 phi'(w_0 . x_i) x_i.
    first = 0.1 * 0.25 * (1.0 * np.array([1.0, 0.3]) - 0.2 * np.array([-0.2, 1.0]))
    second = -0.1 * 0.25 * (1.0 * np.array([1.0, 0.3]) - 1.0 * np.array([-0.2, 1.0]))
    np.testing.assert_allclose(run.W[1], [first, second], rtol=1e-13)
    rest = rf.descend(problem.replace(net=run.network(1)), step=0.1, steps=4)
    np.testing.assert_allclose(run.W[-1], rest.W[-1], rtol=1e-12)


def test_dead_and_zero_neurons_do_not_move():
    data = rf.Dataset([[1.0, 0.1], [1.0, -0.1]], [1, -1])
    net = rf.Network([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [1.0, 0.0, 1.0], log_scale=-400.0)
    run = rf.descend(rf.Problem(data, net), step=0.1, steps=1000, fast_forward=True)
    np.testing.assert_allclose(run.log_norms[-1, 0], -400.0, atol=1e-12)
    assert run.log_norms[-1, 1] == -np.inf
    assert not np.allclose(run.directions[-1, 2], run.directions[0, 2])


def test_single_precision_after_the_jump():
    problem = draw(3, slope=0.3)
    options = {"step": 0.1, "steps": 2000, "fast_forward": True}
    double, single = rf.descend(problem, **options), rf.descend(problem, **options, dtype="float32")
    assert double.settings["fast_forward"] == single.settings["fast_forward"] > 100
    early = np.array(single.settings["iteration"]) <= single.settings["fast_forward"]
    assert np.array_equal(double.directions[early], single.directions[early])
