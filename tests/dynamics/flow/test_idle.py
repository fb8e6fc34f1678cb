"""Hyperplanes of samples that pull less than rounding: crossed within a step, as if one by one; and rounding itself."""

from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.dynamics.flow import late
from reluflow.dynamics.flow.field import Geometry
from reluflow.dynamics.flow.state import onto, pattern_of, take


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


def test_a_neuron_that_slides_and_shrinks_is_on_its_hyperplane():
    # Rounding beside the hyperplane does not shrink with the neuron: after e^-28 it would be 10^-5 of it.
    net = rf.Network.balanced([[0.7, 1.9, -0.4], [0.1, 0.3, 2.0]], [1, 1])
    problem = rf.Problem(rf.Dataset([[0.3, 0.1, 1.0], [1.0, 0.2, 0.5]], [1, -1]), net)
    geometry = Geometry(problem)
    state, _ = take(geometry, problem.net)
    faces, sides = geometry.faces, state.sides.copy()
    sides[0, faces.of[0]] = 0
    state = replace(
        state, sides=sides, U=np.array([onto(geometry, u, row) for u, row in zip(state.U, sides, strict=True)])
    )
    chart = late.late_chart(geometry, state, pattern_of(geometry, state), "time", 1.0)
    y = chart.y0.copy()
    rows = y.reshape(2, -1)
    rows[0] *= np.exp(-28.0)
    rows[0, :3] += 1e-16 * faces.normals[faces.of[0]]
    assert abs(rows[0, :3] @ faces.normals[faces.of[0]]) > 1e-6 * np.linalg.norm(rows[0, :3])
    assert abs(chart.state(y, 1.0).U[0] @ faces.normals[faces.of[0]]) < 1e-15
