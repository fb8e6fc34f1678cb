"""The events of a neuron tell its side of every hyperplane, also where it only touches one or lies on it."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.sectors import exact_signs

SIDES = {"activate": 1, "deactivate": -1, "slide": 0, "touch": 2}
GROUPS = 4


def small(X, y, W, signs, slope=0.0):
    net = rf.Network.balanced(W, signs, slope, log_scale=-40)
    return rf.Problem(rf.Dataset(X, y), net, "exponential", "sum")


def degenerate(seed):
    """Draw few points on a grid, some of them mirrored, repeated or on one line; neurons on hyperplanes too."""
    rng = np.random.default_rng([seed, 11])
    d, n, p, top = (int(rng.integers(1, most)) for most in (5, 8, 5, 4))
    X = rng.integers(-top, top + 1, (n, d)).astype(float)
    more = {
        0: -X[rng.integers(n, size=2)],
        1: X[rng.integers(n, size=2)] * rng.integers(1, 3, (2, 1)),
        2: np.outer([-2.0, -1.0, 1.0, 2.0], X[0]),
        3: X * rng.choice([-1.0, 1.0], d),
    }
    X = np.vstack([X, more.get(int(rng.integers(5)), X[:0])])
    X = np.unique(X[X.any(axis=1)], axis=0)
    W = rng.integers(-2, 3, (p, d)).astype(float) if rng.random() < 0.7 else rng.standard_normal((p, d))
    W = W[W.any(axis=1)]
    if not (len(X) and len(W)):
        return degenerate(seed + 10**6)
    a = rng.choice([-1.0, 1.0], len(W)) * (
        np.linalg.norm(W, axis=1) if rng.random() < 0.6 else rng.integers(1, 4, len(W))
    )
    net = rf.Network(W, a, float(rng.choice([0.0, 0.0, 0.5])), log_scale=-40)
    return rf.Problem(rf.Dataset(X, rng.choice([-1.0, 1.0], len(X))), net, "exponential", "sum")


def replayed(problem, j, events):
    """Sides of neuron j after its events, each of which changes one; who starts on a hyperplane is inactive there."""
    sides = exact_signs(problem.net.W, problem.data.X)[j].astype(int)
    sides[sides == 0] = -1
    for sample, kind in zip(events["sample"], events["kind"].tolist(), strict=True):
        if kind in SIDES and sample >= 0:
            assert sides[sample] != SIDES[kind], (sample, kind)
            sides[sample] = SIDES[kind]
    return sides


@pytest.mark.parametrize("group", range(GROUPS))
def test_events_of_the_early_phase_lead_to_its_pattern(group):
    for seed in range(group, 300, GROUPS):
        problem = degenerate(seed)
        early = rf.align(problem)
        for j in range(early.p):
            sides, off = replayed(problem, j, early.events(j)), early.pattern[j] != 0
            np.testing.assert_array_equal(sides[off], early.pattern[j, off])
            held = {i for i, h in early.held(j).items() if 1e-9 < h - problem.net.slope < 1 - problem.net.slope - 1e-9}
            assert held == set(np.flatnonzero(sides == 0).tolist())


@pytest.mark.parametrize("group", range(GROUPS))
def test_events_of_a_flow_lead_to_its_sides(group):
    for seed in range(group, 60, GROUPS):
        problem = degenerate(seed)
        run = rf.flow(problem, {"log_time": 5.0}, progress=False)
        z = run.final.directions @ problem.data.X.T / problem.data.norms
        for j in range(problem.net.p):
            events = run.events[run.events["neuron"] == j]
            if {"origin", "die"} & set(events["kind"].tolist()):  # sides after w = 0 are not told
                continue
            sides, off = replayed(problem, j, events), np.abs(z[j]) > 1e-9
            np.testing.assert_array_equal(sides[off], np.sign(z[j, off]))


def test_a_neuron_that_dies_on_three_hyperplanes_stays_dead():
    # It slides on the third until the others come, all at once: w = (0, 0, -1) and nothing pulls. In doubles it is
    # 1e-16 beside the second, on the active side, which must not wake it when the other neuron has grown.
    problem = small([[0, -1, 0], [1, 0, 0], [2, 1, 0]], [-1, 1, -1], [[1, -1, -1], [1, 1, 0]], [1, -1])
    assert rf.align(problem).fates == ("dead", "aligned")
    run = rf.flow(problem, {"log_time": 5.0}, progress=False)
    mine = run.events[run.events["neuron"] == 0]
    assert mine["kind"].tolist() == ["slide", "deactivate", "deactivate", "deactivate"]
    np.testing.assert_allclose(run.final.directions[0], [0, 0, -1], atol=1e-15)
    assert run.final.log_norms[0] == pytest.approx(-40, abs=1e-12)


def test_a_neuron_that_lies_on_a_hyperplane_leaves_it_with_an_event():
    # Without the second point nothing pushes off its hyperplane, until the network is not small any more.
    problem = small([[0, -1, 1], [1, 0, 1], [0, 0, 1]], [1, -1, -1], [[-2, 0, 3]], [1])
    assert rf.align(problem).pattern.tolist() == [[1, 0, 1]]
    events = rf.flow(problem, {"log_time": 5.0}, progress=False).events
    told = list(zip(events["sample"].tolist(), events["kind"].tolist(), strict=True))
    assert told == [(1, "deactivate"), (1, "slide"), (1, "deactivate"), (2, "slide")]


@pytest.mark.parametrize("opposite", [1, 2])
def test_opposite_points_at_the_start(opposite):
    # w = (0, 1) is on the hyperplane of both and leaves towards the second.
    problem = small([[1, 0], [-opposite, 0]], [-1, 1], [[0, 1]], [1], slope=0.5)
    assert rf.align(problem).events(0).tolist() == [(0.0, 1, "activate")]
