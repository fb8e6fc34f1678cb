"""A frozen second layer of any size: a -> s a, w -> w/s, t -> t/s^2 is the same flow."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Dataset, Network, OutOfTime, Problem, Undecided, flow, limit

DATA = Dataset([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]], [1, 1, -1, -1])
SIZES = st.floats(-400.0, 300.0)


def problem(log_s: float, seed: int = 3, slope: float = 0.0, small: float = 0.0) -> Problem:
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.5, 1.5, 5) * [1, -1, 1, -1, 1]
    return Problem(DATA, Network(rng.normal(size=(5, 2)), a, slope, small - log_s, log_s), train="first")


@settings(max_examples=8, deadline=None)
@given(log_s=SIZES, seed=st.integers(0, 5), slope=st.sampled_from([0.0, 0.2]), small=st.sampled_from([0.0, -30.0]))
def test_the_flow_is_the_same_at_every_size_of_the_frozen_layer(log_s, seed, slope, small):
    plain = flow(problem(0.0, seed, slope, small), {"log_time": 2.0}, rtol=1e-8)
    other = flow(problem(log_s, seed, slope, small), {"log_time": 2.0 - 2 * log_s}, rtol=1e-8)
    assert other.log_time[-1] == 2.0 - 2 * log_s
    assert np.allclose(other.log_loss[-1], plain.log_loss[-1], rtol=1e-6)
    assert np.allclose(other.log_norms[-1] + log_s, plain.log_norms[-1], atol=1e-6)
    assert np.allclose(other.directions[-1], plain.directions[-1], atol=1e-6)
    assert np.allclose(other.log_outs, other.problem.net.log_outs, atol=1e-11)
    assert sorted(zip(other.events["neuron"], other.events["sample"], strict=True)) == sorted(
        zip(plain.events["neuron"], plain.events["sample"], strict=True)
    )
    shifted = np.sort(other.events["log_time"]) + 2 * log_s
    assert np.allclose(shifted, np.sort(plain.events["log_time"]), atol=1e-6)


@pytest.mark.parametrize("log_s", [-60.0, 60.0])
@pytest.mark.parametrize("small", [0.0, -30.0])
def test_between_records(log_s, small):
    plain = flow(problem(0.0, small=small), {"log_time": 2.0}, rtol=1e-8)
    other = flow(problem(log_s, small=small), {"log_time": 2.0 - 2 * log_s}, rtol=1e-8)
    for log_time in (small - 1.0, -0.3, 1.1):  # in the early phase of the small one, and in the coupled one
        a, b = plain.at(log_time=log_time), other.at(log_time=log_time - 2 * log_s)
        assert np.allclose(a.outputs(DATA.X), b.outputs(DATA.X), rtol=1e-6, atol=1e-300)
        assert np.allclose(b.log_norms + log_s, a.log_norms, atol=1e-6)


def test_between_records_of_a_limit():
    """What `limit` has followed is in the units of the problem, not in those of `flow`."""
    run = limit(problem(-4.0), rtol=1e-6).trajectory
    same = flow(problem(-4.0), {"log_time": 10.0}, rtol=1e-8)
    for log_time in (7.7, 9.1):
        expected = same.at(log_time=log_time).outputs(DATA.X)
        assert np.allclose(run.at(log_time=log_time).outputs(DATA.X), expected, rtol=1e-4)


def test_goals_in_loss_and_what_is_left_of_an_unfinished_flow():
    plain = flow(problem(0.0), {"loss": 0.2}, rtol=1e-8)
    other = flow(problem(-80.0), {"loss": 0.2}, rtol=1e-8)
    assert other.log_time[-1] - 160.0 == pytest.approx(plain.log_time[-1], abs=1e-6)
    with pytest.raises(OutOfTime, match=r"log t here is the problem's -159") as stopped:
        flow(problem(-80.0), {"log_time": 1e6}, rtol=1e-8, time_limit=1e-9)
    assert stopped.value.partial.problem == problem(-80.0)
    with pytest.raises(Undecided):
        flow(problem(-80.0), {"log_time": 170.0}, rtol=1e-8, max_steps=2)


@pytest.mark.parametrize("log_s", [-50.0, 20.0])
def test_a_limit_is_the_same_in_ordinary_units(log_s):
    far, plain = limit(problem(log_s), rtol=1e-6), limit(problem(0.0), rtol=1e-6)
    assert far.kind == plain.kind
    assert far.margin == pytest.approx(plain.margin * np.exp(log_s), rel=1e-6)


@pytest.mark.parametrize("log_s", [-1000.0, 700.0])
def test_a_limit_with_margins_beyond_doubles_says_how_to_come_to_ordinary_units(log_s):
    given = problem(log_s)
    with pytest.raises(Undecided) as told:
        limit(given)
    by = re.search(r"add (\S+) to the log_scale of the first layer and (\S+) to that of the second", str(told.value))
    assert float(by[1]) == -float(by[2]) == pytest.approx(log_s, abs=1.0)
    first, second = given.net.log_scales
    net = Network(given.net.W, given.net.a, 0.0, first + float(by[1]), second + float(by[2]))
    same, plain = limit(given.replace(net=net), rtol=1e-6), limit(problem(0.0), rtol=1e-6)
    assert same.kind == plain.kind
    assert same.margin == pytest.approx(plain.margin * np.exp(log_s - float(by[1])), rel=1e-6)
