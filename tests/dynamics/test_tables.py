"""Runs as tables of pandas, runs of other people's networks, and the curves that came with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.dynamics import Trajectory

DATA = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])


@pytest.fixture(scope="module")
def run():
    net = rf.Network.balanced([[1, 0.1], [-1, 1.2], [-1, -1]], [1, -1, -1], log_scale=-5)
    return rf.flow(rf.Problem(DATA, net), {"time": 100.0}, progress=False)


def test_three_tidy_tables(run):
    pytest.importorskip("pandas", reason="pandas is not installed: pip install 'reluflow[tables]' runs this test")
    tables = run.to_pandas()
    records, neurons, events = tables
    assert len(records) == len(run)
    assert np.array_equal(records.log_loss, run.log_loss)
    assert np.array_equal(records.margin, run.margins().min(axis=1))
    assert len(neurons) == run.p * len(run)
    last = neurons[neurons.record == len(run) - 1]
    assert np.array_equal(last[["w1", "w2"]].to_numpy(), run.directions[-1])
    assert events.kind.tolist() == run.events["kind"].tolist()
    assert (records.dead + records.in_own_cone <= run.p).all()
    active = DATA.X @ run.directions[-1].T > 0
    wanted = np.outer(DATA.y, run.signs[-1]) > 0
    assert records.in_own_cone.iloc[-1] == (active == wanted).all(axis=0).sum()
    assert records.dead.iloc[-1] == (~active.any(axis=0)).sum()
    assert tables.records.kkt_sine.iloc[-1] < 0.5 * tables.records.kkt_sine.iloc[0]


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), slope=st.sampled_from([0.0, 0.3, 1.0]), train=st.sampled_from(["both", "first"]))
def test_the_sine_is_that_of_numerical_derivatives(seed, slope, train):
    rng = np.random.default_rng(seed)
    W, a = rng.normal(size=(3, 2)), rng.normal(size=3)
    problem = rf.Problem(DATA, rf.Network(W, a, slope), train=train)
    found = Trajectory.from_networks(problem, [(-np.inf, problem.net)]).measures.kkt_sine[0]
    at = np.append(W, a) if train == "both" else W.ravel()

    def loss(theta):
        net = rf.Network(theta[:6].reshape(3, 2), theta[6:] if train == "both" else a, slope)
        return np.exp(problem.log_loss(net))

    h = 1e-6
    fall = -np.array([(loss(at + h * e) - loss(at - h * e)) / (2 * h) for e in np.eye(at.size)])
    if np.abs(DATA.X @ W.T).min() < 1e-3 or np.linalg.norm(fall) < 1e-6:
        return  # on a kink, or flat: there is no derivative to compare with
    cosine = at @ fall / np.linalg.norm(at) / np.linalg.norm(fall)
    assert found == pytest.approx(np.sqrt(max(0.0, 1 - cosine**2)), abs=1e-5)


def test_the_sine_vanishes_with_the_flow_at_any_scale():
    problem = rf.Problem(DATA, rf.initialize(2, 8, seed=1, log_scale=-3000))
    seen = rf.flow(problem, {"log_time": 1e6}, progress=False).measures
    assert seen.kkt_sine[0] > 0.1
    assert seen.kkt_sine[-1] < 1e-3
    tiny, large = (rf.Network([[1.0, 2.0]], [3.0], log_scale=size) for size in (-3000.0, -1000.0))
    first, second = (Trajectory.from_networks(rf.Problem(DATA, net), [(0.0, net)]).measures for net in (tiny, large))
    assert first.kkt_sine == pytest.approx(second.kkt_sine, rel=1e-9)  # every force is that at zero
    assert first.linear_share == second.linear_share


def test_the_linear_share_counts_signs():
    net = rf.Network([[1.0, 0.0], [0.0, 1.0]], [1.0, -0.1])
    run = Trajectory.from_networks(rf.Problem(DATA, net), [(-np.inf, net)])
    linear = np.sign(DATA.X @ (net.a @ net.W))
    outputs = np.sign(np.maximum(DATA.X @ net.W.T, 0) @ net.a)
    assert run.measures.linear_share[0] == (linear == outputs).mean()
    assert 0 < run.measures.linear_share[0] < 1


def test_a_zero_network_has_no_angle():
    net = rf.Network([[0.0, 0.0]], [0.0])
    run = Trajectory.from_networks(rf.Problem(DATA, net), [(-np.inf, net)])
    assert np.isnan(run.measures.kkt_sine).all()
    assert np.isnan(run.measures.linear_share).all()
    pytest.importorskip("pandas", reason="pandas is not installed: pip install 'reluflow[tables]' runs this test")
    assert len(run.to_pandas().records) == 1


def test_a_run_of_others_can_be_written_and_read(tmp_path):
    nets = [rf.initialize(2, 3, seed=k, scale=1.0) for k in range(3)]
    problem = rf.Problem(DATA, nets[0])
    run = Trajectory.from_networks(problem, [(-np.inf, nets[0]), (0.0, nets[1]), (1.0, nets[2])], method="mine")
    assert "As far as it was watched" in run.text()
    run.save(tmp_path / "run.npz")
    again = Trajectory.load(tmp_path / "run.npz")
    assert np.array_equal(again.directions, run.directions)
    assert run.margins()[2] == pytest.approx(nets[2].margins(DATA))
