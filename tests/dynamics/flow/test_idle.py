"""Hyperplanes of samples that pull less than rounding: crossed within a step, with the same result as one by one."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.dynamics.flow import late


def many_points(seed: int, slope: float) -> rf.Problem:
    """Two classes that a slanted plane separates, with far more points than the few that carry the margin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3))
    side = X @ [1.0, 0.5, -0.3]
    X = X[np.abs(side) > 0.4]
    data = rf.Dataset(X, np.sign(X @ [1.0, 0.5, -0.3]))
    return rf.Problem(data, rf.initialize(3, 8, scale=0.3, seed=seed, slope=slope))


def follow(problem: rf.Problem, log_time: float) -> rf.Trajectory:
    return rf.flow(problem, {"log_time": log_time}, rtol=1e-9, progress=False)


def sequence(run: rf.Trajectory) -> list[tuple[int, int, str]]:
    """Events of each neuron in order."""
    events = run.events[np.argsort(run.events["neuron"], kind="stable")]
    return [(int(e["neuron"]), int(e["sample"]), str(e["kind"])) for e in events]


@pytest.mark.parametrize("slope", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_crossed_within_steps_or_one_by_one_is_the_same(seed, slope, monkeypatch):
    problem = many_points(seed, slope)
    quick = follow(problem, 2000.0)
    monkeypatch.setattr(late, "_IDLE", np.inf)
    slow = follow(problem, 2000.0)
    assert sequence(quick) == sequence(slow)
    assert np.allclose(np.sort(quick.events["log_time"]), np.sort(slow.events["log_time"]), rtol=1e-6, atol=1e-6)
    for one, other in zip(quick.final.weights(), slow.final.weights(), strict=True):
        assert np.abs(one - other).max() <= 1e-7 * np.abs(other).max()


def test_the_sides_told_by_events_are_those_of_the_neurons():
    crossed = 0
    for seed in range(4):
        run = follow(many_points(seed, 0.2), 2000.0)
        start, end = (np.sign(net.preactivations(run.problem.data.X).T) for net in (run.problem.net, run.final))
        told = start.copy()
        for event in run.events:
            told[event["neuron"], event["sample"]] = {"activate": 1, "deactivate": -1}.get(str(event["kind"]), 0)
        clear = told != 0
        assert (told == end)[clear].all()
        crossed += int((run.events["log_time"] > 30).sum())
    assert crossed > 5
