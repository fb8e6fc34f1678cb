"""Every gate of the limit, doctored one by one: it alone notices, and the limit is not accepted."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import reluflow as rf
from reluflow.dynamics.limit import gates
from reluflow.dynamics.limit.candidate import Candidate, Touching
from reluflow.dynamics.limit.future import NOBODY
from reluflow.dynamics.limit.gates import BALANCE, GATES, INSIDE, LOST, VANISHING, Look, evidence
from reluflow.margins import kkt

limit_module = import_module("reluflow.dynamics.limit.limit")  # `reluflow.dynamics.limit` is the room

WITH_VANISHING = rf.Problem(
    rf.example("EX1").data,
    rf.Network.balanced([[1.0, 0.2], [-1.0, 0.4], [-0.3, -1.0], [0.6, 0.6]], [1, 1, -1, -1], log_scale=-3),
)
# The negative point is seen by the first neuron alone, which leaves it.
STALLED = rf.Problem(
    rf.Dataset([[1.0, 0.2], [0.4, 1.0], [-1.0, -0.3]], [1, 1, -1]),
    rf.Network.balanced([[1.0, 0.1], [0.2, 1.0]], [1, 1], log_scale=-3),
)
# The negative neuron ends on the hyperplane of the positive point, which nobody else sees, and which pushes it out.
SLIDING = rf.Problem(
    rf.Dataset([[1.0, 0.0, 0.0], [0.5, 0.8, 0.4], [0.4, 0.9, -0.5]], [1, -1, -1]),
    rf.Network.balanced([[-0.3, 0.5, 0.4]], [-1], log_scale=-3),
)
# The first two points pull against each other for ever, while the third is fitted.
LEVEL = rf.Problem(
    rf.Dataset([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]], [1, -1, 1]),
    rf.Network.balanced([[1.0, 0.3], [0.8, 0.9]], [1, 1], log_scale=-0.5, slope=1.0),
)


def accepted(problem, monkeypatch):
    """Return what the gates looked at when they let a limit pass."""
    seen = []

    def keep(look):
        seen.append(look)
        return evidence(look)

    with monkeypatch.context() as patch:
        patch.setattr(limit_module, "evidence", keep)
        found = rf.limit(problem, optimum=False)
    assert found.margin == seen[-1].found.margin
    return seen[-1]


def with_event(look):
    """An event of a neuron that carries the network, since when |theta|^2 grew only about twentyfold."""
    row = np.zeros(1, look.run.events.dtype)
    log_R = 2 * look.run.log_norm
    at = look.run.log_time[np.searchsorted(log_R, log_R[-1] - np.log(20.0))]
    row["log_time"], row["neuron"], row["kind"] = at, look.found.living[0], "activate"
    return look._replace(run=replace(look.run, events=np.append(look.run.events, row)))


def with_found(change):
    return lambda look: look._replace(found=replace(look.found, **change(look)))


def turned(look):
    """The network with one neuron turned a little, and its own certificate."""
    W, a = (x.copy() for x in look.found.network.weights())
    W[0] = W[0] @ np.array([[1.0, 1e-4], [-1e-4, 1.0]])
    net = rf.Network(W, a, look.found.network.slope)
    return {"certificate": kkt(look.data, net)}


def other_shares(by):
    def change(look):
        living = look.found.living_groups
        moved = {id(living[0]): by, id(living[-1]): -by}
        return {
            "groups": tuple(replace(g, flow_share=g.flow_share + moved.get(id(g), 0.0)) for g in look.found.groups),
            "unique": by > 0.1,
        }

    return change


def towards_lost(look):
    """A living group that ends on the side of a lost point."""
    x = look.run.problem.data.X[look.lost[0]]
    first = look.found.living_groups[0]
    return {
        "groups": tuple(replace(g, direction=x / np.linalg.norm(x)) if g is first else g for g in look.found.groups)
    }


def moved_balance(look):
    """Points in balance whose margins should be others."""
    still = look.found.still
    return {"still": still._replace(margins=still.margins + 1.0)}


DOCTORED = [
    ("quiet", WITH_VANISHING, with_event),
    ("KKT", WITH_VANISHING, with_found(turned)),
    ("inside", WITH_VANISHING, with_found(lambda look: {"touch": lambda: Touching(1, 0)})),
    ("approach", WITH_VANISHING, with_found(lambda look: {"margin": look.found.margin * 1.02})),
    ("approach", WITH_VANISHING, with_found(lambda look: {"margin": look.found.margin * 0.99})),
    ("shares", WITH_VANISHING, with_found(other_shares(0.21))),
    ("shares", WITH_VANISHING, with_found(other_shares(0.01))),
    ("vanishing", WITH_VANISHING, lambda look: look._replace(future=replace(NOBODY, arrival=3.0, first=1))),
    ("vanishing", WITH_VANISHING, lambda look: look._replace(future=replace(NOBODY, doubt="who knows"))),
    ("lost", STALLED, with_found(towards_lost)),
    ("lost", SLIDING, with_found(lambda look: {"held": None})),
    ("KKT", SLIDING, with_found(lambda look: {"residual": 1e-8})),
    ("balance", LEVEL, with_found(moved_balance)),
]


@pytest.mark.parametrize(("gate", "problem", "doctor"), DOCTORED)
def test_one_gate_notices_and_no_other(gate, problem, doctor, monkeypatch):
    look = accepted(problem, monkeypatch)
    assert all(item.holds for item in evidence(look))
    assert [item.name for item in evidence(doctor(look)) if not item.holds] == [gate]


def test_every_gate_is_doctored():
    assert {name for name, _, _ in DOCTORED} == {gate.name for gate in (*GATES, INSIDE, VANISHING, LOST, BALANCE)}


@pytest.mark.parametrize(
    ("gate", "problem", "doctor"), [item for item in DOCTORED if item[0] not in ("quiet", "vanishing")]
)
def test_a_doctored_candidate_is_not_accepted(gate, problem, doctor, monkeypatch):
    honest = limit_module.candidate
    look = accepted(problem, monkeypatch)

    def doctored(*given):
        found = honest(*given)
        return doctor(look._replace(found=found)).found if hasattr(found, "groups") else found

    monkeypatch.setattr(limit_module, "candidate", doctored)
    with pytest.raises(rf.Undecided, match=f"{gate}: "):
        rf.limit(problem, optimum=False, max_log_time=2e3)


def test_a_flow_that_is_not_quiet_is_not_accepted(monkeypatch):
    monkeypatch.setattr(gates, "QUIET", 1e9)
    with pytest.raises(rf.Undecided, match="quiet: "):
        rf.limit(WITH_VANISHING, optimum=False, max_log_time=2e3)


@pytest.mark.parametrize(
    ("change", "why"), [({"doubt": "who knows"}, "vanishing: who knows"), ({"arrival": 900.0, "first": 1}, "plateau")]
)
def test_neurons_that_do_not_vanish_are_not_accepted(change, why, monkeypatch):
    monkeypatch.setattr(limit_module, "follow", lambda *_: replace(NOBODY, **change))
    with pytest.raises(rf.Undecided, match=why):
        rf.limit(WITH_VANISHING, optimum=False, max_log_time=2e3)


def test_a_limit_above_the_largest_margin_is_a_contradiction(monkeypatch):
    honest = rf.global_max_margin(WITH_VANISHING.data, 0.0)
    low = replace(honest, lower=honest.lower * 0.9, upper=honest.upper * 0.9)
    monkeypatch.setattr("reluflow.margins.global_max_margin", lambda *_: low)
    with pytest.raises(rf.Undecided, match="contradict each other") as error:
        rf.limit(WITH_VANISHING, optimum=True)
    assert error.value.partial.margin == pytest.approx(0.5840985669)


def test_slow_approach_needs_room(monkeypatch):
    # Closing too slowly to be seen, the margin is believed only where no wall is as near as the limit.
    look = accepted(WITH_VANISHING, monkeypatch)
    monkeypatch.setattr(gates, "_CLOSING", 1e-9)
    assert {item.name: item.holds for item in evidence(look)}["approach"]
    monkeypatch.setattr(gates, "_room", lambda *_: 0.5)
    assert not {item.name: item.holds for item in evidence(look)}["approach"]


def test_multipliers_that_are_open(monkeypatch):
    # The negative neuron on the left gives -1 and 2 the same margin, whatever they pull; the positive one on the right
    # vanishes if 2 pulls with less than a third, and it does in the end: by hand, the margin is 1/2.
    data = rf.Dataset([[-2.0], [-1.0], [2.0]], [-1, -1, 1])
    net = rf.Network([[1.0], [1.0]], [1.0, -1.0 - 1e-6], 0.5, [-4.0, 0.0], [-4.0, 0.0])
    look = accepted(rf.Problem(data, net), monkeypatch)
    assert look.found.free
    assert look.future.neurons.tolist() == [0]
    assert look.found.margin == pytest.approx(0.5, rel=1e-9)
    # With pulls of the program with which it would grow for ever, those of the flow decide.
    honest, asked = limit_module.candidate, []
    grows = np.array([0.0, 0.5, 0.5])
    monkeypatch.setattr(limit_module, "candidate", lambda *given: replace(honest(*given), multipliers=grows))
    monkeypatch.setattr(limit_module, "strengths", lambda *_: asked.append(1) or np.array([0.0, 0.8, 0.2]))
    assert rf.limit(rf.Problem(data, net), optimum=False).margin == pytest.approx(0.5, rel=1e-9)
    assert asked


def test_look_knows_the_points_that_are_lost(monkeypatch):
    look = accepted(STALLED, monkeypatch)
    assert isinstance(look, Look)
    assert look.lost.tolist() == [2]
    assert look.data.n == 2


def test_what_is_too_restless_to_be_solved_for_would_not_have_passed(monkeypatch):
    # The look at large groups alone spares a program; with the program, quiet or shares fail too.
    honest, seen = limit_module._restless, []

    def both(way):
        why = honest(way)
        if why:
            found = limit_module.candidate(way.march.geometry, way.reached.state, way.coming)
            if isinstance(found, Candidate):
                failed = {item.name for item in evidence(Look(way.run, found)) if not item.holds}
                seen.append(failed)
        return why

    monkeypatch.setattr(limit_module, "_restless", both)
    for seed in (1, 3, 7, 9):
        rng = np.random.default_rng(seed)
        data = rf.Dataset(rng.normal(size=(12, 3)), rng.choice([-1, 1], 12))
        rf.limit(rf.Problem(data, rf.initialize(3, 6, scale=0.5, seed=seed, slope=0.3)), optimum=False, rtol=1e-6)
    assert len(seen) >= 3
    assert all({"quiet", "shares"} & failed for failed in seen)
