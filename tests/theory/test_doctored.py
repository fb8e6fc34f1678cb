"""Mutation check: a run that was tampered with is flagged, claim by claim; an honest one is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import log

import numpy as np
import pytest

import reluflow as rf
from reluflow.dynamics.accuracy import Accuracy
from reluflow.theory import Facts, claim, claims, monitor

#: Monitors that no run can fail, because what they watch is true of every network or follows from the data alone.
CANNOT_FAIL = {"PL-LC1'"}

OWN = [one for paper in ("PL", "ML") for one in claims(paper) if "monitored" in one.status()]


@cache
def base(name: str) -> tuple[Facts, rf.Trajectory]:
    """Honest runs: certified starts of EX1 and of EX2 (with a neuron that dies), EX3, a class without neurons."""
    if name == "EX1":
        net = rf.example("EX1").networks["start"].with_log_scale(-1600.0)
        problem = rf.Problem(rf.example("EX1").data, net, loss="exponential", reduction="sum")
    elif name == "EX1 logistic":
        net = rf.Network.balanced([[1, 0.1], [0.2, 2], [-1, 1.1], [1, -2.2]], [1, 1, -1, -1], log_scale=-300.0)
        problem = rf.Problem(rf.example("EX1").data, net)
    elif name == "EX1 short":
        net = rf.example("EX1").networks["start"].with_log_scale(-12.0)
        problem = rf.Problem(rf.example("EX1").data, net, loss="exponential", reduction="sum")
    elif name == "EX2":
        W, signs = [[-1, 2.5], [-1, 1.5], [0.2, -1], [1, -0.5], [1, 1.5], [1, 0.3]], [1, 1, 1, -1, -1, 1]
        net = rf.Network.balanced(W, signs, log_scale=-9000.0)
        problem = rf.Problem(rf.example("EX2").data, net, loss="exponential", reduction="sum")
    elif name == "EX3":
        W = [[1, 1, 0.5], [0.5, 1, 2], [1, -1, 0.3], [-1, -2, 0.1], [0.2, -1, -1], [-1, 0.3, 0.2]]
        net = rf.Network.balanced(W, [1, 1, 1, -1, -1, -1], log_scale=-200.0)
        problem = rf.Problem(rf.example("EX3").data, net)
    elif name == "EX1 far":
        problem = rf.Problem(rf.example("EX1").data, base("EX1 logistic")[0].net.with_log_scale(-1e6))
    elif name == "EX1 coarse":
        facts, _ = base("EX1 logistic")
        return facts, rf.flow(facts.problem, {"log_time": 200.0}, rtol=1e-6)
    else:  # no neuron for the negative class
        net = rf.Network.balanced([[1, 0.3], [0.4, 1]], [1, 1], log_scale=-20.0)
        problem = rf.Problem(rf.example("EX1").data, net)
    return Facts(problem), rf.flow(problem, {"log_time": 200.0})


@dataclass
class Copy:
    """Writable arrays of a run."""

    facts: Facts
    run: rf.Trajectory

    def __post_init__(self):
        for name in ("log_loss", "directions", "log_norms", "log_outs", "signs", "events"):
            setattr(self, name, getattr(self.run, name).copy())

    def done(self) -> int:
        return self.run.measures.all_trapped

    def scale(self, records, neurons, amount):
        """Multiply both layers of neurons, so that they stay balanced."""
        for array in (self.log_norms, self.log_outs):
            array[records, neurons] += amount

    def result(self) -> rf.Trajectory:
        names = ("log_loss", "directions", "log_norms", "log_outs", "signs", "events")
        return replace(self.run, **{name: getattr(self, name) for name in names})


def error(c: Copy) -> Accuracy:
    """What the honest run is allowed: a mutation need not be much larger to be noticed."""
    return c.run.measures.error


def unbalance(c: Copy):
    c.log_outs[-1, 0] += 1e-3


def unbalance_barely(c: Copy):
    c.log_outs[-1, 0] += 10 * error(c).sizes


def turn_barely(c: Copy):
    """One neuron of two with the same samples turns on its own; of nearly parallel ones a product feels the square."""
    u = c.directions[-1, 0]
    turned = u + np.sqrt(40 * error(c).sizes) * np.array([-u[1], u[0]])
    c.directions[-1, 0] = turned / np.linalg.norm(turned)


def shrink_barely(c: Copy):
    c.scale(-1, 0, -float(c.log_norms[-1, 0] - c.log_norms[-2, 0]) - 4 * error(c).sizes)


def grow_barely(c: Copy):
    """In the step after it is trapped a neuron grows by a hundredth more than G allows."""
    k = c.done() + 1
    top = np.linalg.norm(c.facts.class_sums[0]) * c.facts.speed
    gain = 1.01 * top * (c.run.time[k] - c.run.time[k - 1])
    c.scale(slice(k, None), 0, gain - float(c.log_norms[k, 0] - c.log_norms[k - 1, 0]))


def flip_all(c: Copy):
    """Every sample is misclassified."""
    c.signs[-1] *= -1


def lose_a_little_loss(c: Copy):
    """The loss rises from one record to the next, by more than the run may be wrong by."""
    c.log_loss[-1] = c.log_loss[-2] + 4 * error(c).log_loss[-2]


def flip_sign(c: Copy):
    c.signs[-1, 0] *= -1


def turn_within_cone(c: Copy):
    """One neuron of two with the same samples turns on its own late, to a sample of its class."""
    sample = c.facts.data.X[0]
    c.directions[-1, 0] = sample / np.linalg.norm(sample)


def leave_cone(c: Copy):
    c.directions[-1, 0] *= -1


def leave_cone_for_good(c: Copy):
    c.directions[:, 0] *= -1


def grow_too_fast(c: Copy):
    c.scale(c.done() + 1, 0, 50.0)


def grow_at_once(c: Copy):
    c.scale(slice(1, None), 0, 1e6)


def shrink_one_group(c: Copy):
    c.scale(-1, np.flatnonzero(c.facts.signs > 0), -1.0)


def shrink_everything_late(c: Copy):
    c.scale(-1, slice(None), -2.0)
    c.log_loss[-1] = log(0.5)


def shrink_when_trapped(c: Copy):
    c.scale(slice(c.done(), None), slice(None), -1e5)


def never_grow(c: Copy):
    c.log_norms[:], c.log_outs[:] = c.log_norms[0], c.log_outs[0]


def large_at_once(c: Copy):
    c.log_norms[1], c.log_outs[1] = 1.0, 1.0


def large_at_the_start(c: Copy):
    c.log_norms[0], c.log_outs[0] = 1.0, 1.0


def lower_the_loss(c: Copy):
    c.log_loss[-1] -= 10.0


def delay_an_event(c: Copy):
    """The first change of a neuron comes a hundred times later, and so does everything after it."""
    c.events["log_time"] += log(100)


def turn_early(c: Copy):
    """A neuron turns by 0.05 in the middle of the early phase, within its sector."""
    u = c.directions[1, 0].copy()
    c.directions[1, 0] = np.cos(0.05) * u + np.sin(0.05) * np.array([-u[1], u[0]])


def activate_wrongly(c: Copy):
    c.events["kind"] = np.where(c.events["kind"] == "activate", "deactivate", "activate")


def slide(c: Copy):
    c.events["kind"][0] = "slide"


def move_the_dead(c: Copy):
    j = int(np.flatnonzero(c.run.measures.dead[-1])[0])
    c.log_norms[-1, j] += 1.0


def spread_out(c: Copy):
    c.directions[-1], c.log_norms[-1], c.log_outs[-1] = np.tile(np.eye(3), (2, 1)), 3.0, 3.0


MUTATIONS: list[tuple[str, str, Callable[[Copy], None]]] = [
    ("C-INV1", "EX1", unbalance),
    ("C-INV1", "EX1", flip_sign),
    ("C-INV2", "EX1", turn_within_cone),
    ("C-INV3", "EX1", unbalance),
    ("PL-L1", "EX1", leave_cone),
    ("PL-L1", "EX1", leave_cone_for_good),
    ("PL-L2'", "EX1", grow_too_fast),
    ("PL-L3", "EX1", leave_cone),
    ("PL-LB1", "EX1", leave_cone),
    ("PL-LB1", "EX1", activate_wrongly),
    ("PL-LA4", "EX1 logistic", grow_at_once),
    ("PL-T1", "EX1 logistic", turn_within_cone),
    ("PL-T1p", "empty class", lower_the_loss),
    ("PL-T1'", "EX1", shrink_one_group),
    ("PL-C1", "EX1", shrink_one_group),
    ("ML-L3", "EX1", large_at_once),
    ("ML-L4", "EX1 short", turn_early),
    ("ML-L1", "EX1 short", turn_early),
    ("ML-MON", "EX1", leave_cone),
    ("ML-MON", "EX1", slide),
    ("ML-DT", "EX1", delay_an_event),
    ("ML-DT'", "EX1", delay_an_event),
    ("ML-EPS", "EX1", large_at_once),
    ("ML-T1a", "EX1", leave_cone_for_good),
    ("ML-T1a'", "EX1", leave_cone_for_good),
    ("ML-CERT", "EX1", leave_cone_for_good),
    ("ML-CERT", "EX1", large_at_the_start),
    ("ML-POSTA", "EX1", leave_cone),
    ("ML-L12", "EX1", leave_cone),
    ("ML-L12", "EX2", move_the_dead),
    ("ML-L13", "EX1", shrink_when_trapped),
    ("ML-L14", "EX1", shrink_one_group),
    ("ML-L15", "EX1", shrink_everything_late),
    ("ML-T1b", "EX1", shrink_everything_late),
    ("ML-T1c", "EX1", never_grow),
    ("ML-POST", "EX1 short", shrink_everything_late),
    ("ML-T1d", "EX3", spread_out),
    ("ML-E50", "EX1", grow_at_once),
]


#: Beyond the error bound by little, at ordinary scales, at e^-1000000, and with a coarse tolerance.
BARELY: list[tuple[str, Callable[[Copy], None]]] = [
    ("C-INV1", unbalance_barely),
    ("C-INV2", turn_barely),
    ("C-INV3", unbalance_barely),
    ("PL-L2'", grow_barely),
    ("PL-L3", leave_cone),
    ("PL-LB1", leave_cone),
    ("PL-LA4", grow_at_once),
    ("ML-L3", large_at_once),
    ("ML-MON", leave_cone),
    ("ML-POSTA", leave_cone),
    ("ML-L12", leave_cone),
    ("ML-L14", shrink_barely),
    ("ML-L15", shrink_everything_late),
    ("ML-POST", flip_all),
    ("ML-E50", grow_at_once),
    ("LL-B.15", unbalance_barely),
    ("LL-B.15", lose_a_little_loss),
    ("LL-T3.1", lose_a_little_loss),
    ("SBG-P-mono", lose_a_little_loss),
]


@pytest.mark.parametrize("which", ["EX1 logistic", "EX1 far", "EX1 coarse"])
@pytest.mark.parametrize(("name", "tamper"), BARELY, ids=[f"{m[0]}-{m[1].__name__}" for m in BARELY])
def test_what_exceeds_the_error_bound_is_flagged(name, tamper, which):
    facts, run = base(which)
    assert not [o.text for o in claim(name).observe(facts, run.measures) if o.consistent is False]
    copy = Copy(facts, run)
    tamper(copy)
    assert any(o.consistent is False for o in claim(name).observe(facts, copy.result().measures))


def noise(c: Copy):
    """Every number of a run is off by what rounding and the tolerance may have done to it."""
    rng, e = np.random.default_rng(0), error(c)
    c.log_loss += 0.5 * e.log_loss * rng.uniform(-1, 1, c.log_loss.shape)
    shift = 0.5 * e.sizes * rng.uniform(-1, 1, c.log_norms.shape)
    c.log_norms += shift
    c.log_outs += shift
    c.directions += 0.3 * e.steps * rng.uniform(-1, 1, c.directions.shape)
    c.directions /= np.linalg.norm(c.directions, axis=2, keepdims=True)


@pytest.mark.parametrize("which", ["EX1 logistic", "EX1 far", "EX1 coarse"])
def test_what_is_within_the_error_bound_is_not(which):
    facts, run = base(which)
    copy = Copy(facts, run)
    noise(copy)
    observed = monitor(facts, copy.result())
    assert [(o.claim, o.text) for o in observed if o.contradicts] == []


@pytest.mark.parametrize(("name", "which", "tamper"), MUTATIONS, ids=[f"{m[0]}-{m[2].__name__}" for m in MUTATIONS])
def test_doctored_runs_are_flagged(name, which, tamper):
    facts, run = base(which)
    honest = claim(name).observe(facts, run.measures)
    assert honest
    assert not [o.text for o in honest if o.consistent is False]
    assert any(o.consistent for o in honest)
    copy = Copy(facts, run)
    tamper(copy)
    assert any(o.consistent is False for o in claim(name).observe(facts, copy.result().measures))


def test_every_monitor_has_a_mutation():
    assert {one.id for one in OWN} == {m[0] for m in MUTATIONS} | CANNOT_FAIL


@pytest.mark.parametrize("which", ["EX1", "EX1 logistic", "EX1 short", "EX2", "EX3", "empty class"])
def test_honest_runs_pass(which):
    facts, run = base(which)
    observed = [o for paper in ("PL", "ML") for o in monitor(facts, run, paper=paper)]
    wrong = [(o.claim, o.text) for o in observed if o.consistent is False]
    assert wrong == []


def test_what_a_discrete_run_breaks_is_not_held_against_the_flow():
    facts, run = base("EX1")
    copy = Copy(facts, run)
    unbalance(copy)
    observed = claim("C-INV1").observe(facts, replace(copy.result(), method="gd").measures)
    assert [o.consistent for o in observed] == [None, True]
    assert "about the flow" in observed[0].text


def test_observations_carry_the_assumptions():
    facts, run = base("EX1 logistic")
    observed = [o for o in monitor(facts, run, paper="PL") if o.claim == "PL-T1"]
    assert observed
    assert all("generic data and start" in o.needs for o in observed)
