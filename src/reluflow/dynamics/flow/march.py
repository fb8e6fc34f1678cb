"""Marching from event to event through the coupled and the late phase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...problem import BudgetExceeded, Undecided
from ...problem.types import Array, Index
from ..trajectory import Trajectory
from .balance import level
from .blind import Blind
from .events import TINY, Change, leaving
from .field import Geometry, make_pattern
from .late import Clock
from .origin import way_out
from .phases import DEAR, FITTED, STEP, Coupled, Goal, Late, Moved, Phase, Why, named
from .record import Recorder
from .state import State, moving, pattern_of

_PATIENCE = 1000  # explicit steps on data that are not fitted, where implicit ones seem better, before they are tried
_STANDSTILL = 500  # times that one event may come back while nothing moves: it does not end
_STIRRED = 1e-9  # part of their size by which neurons must have moved, all in all, to count as moving
_PASSED = 0.1  # sine of the angle, or output, from which a neuron is beyond a hyperplane that it passed slowly
_SETTLED = 10.0  # log t from which points may be in balance when a flow is taken up again
_LARGE = 2e5  # points x neurons x inputs with which an implicit step costs twice what it does in a small problem
_OPENS = 0.01  # part by which a pull changes before a way out of w = 0 is looked for again


class Reached(NamedTuple):
    """Where a stretch ended, and why."""

    state: State
    log_time: float
    why: Why


class Care(NamedTuple):
    """Neurons that are about to pass hyperplanes very slowly, as `early.validity.poised` finds them."""

    neurons: Index
    samples: Index
    rtol: float  # errors that are small beside their distances

    def over(self, geometry: Geometry, phase: Phase) -> bool:
        """Whether they have passed, or the network is not small any more."""
        if np.abs(phase.margins()).max() > _PASSED:
            return True
        X = geometry.X[self.samples]
        z = np.einsum("kd,kd->k", phase.state().U[self.neurons], X) / np.linalg.norm(X, axis=1)
        return bool(np.abs(z).min() > _PASSED)


class Laboured(Undecided):
    """The work that implicit steps may be was done."""


class March:
    """One integration: what it aims at, what it has used up, where it writes."""

    def __init__(
        self,
        geometry: Geometry,
        goal: Goal,
        rtol: float,
        max_steps: int,
        recorder: Recorder,
        tell: Callable[[float], None],
        blind: bool = False,
        share: float = STEP,
        labour: float = np.inf,
    ) -> None:
        self.geometry = geometry
        self.goal = goal
        self.rtol = rtol
        self.max_steps = max_steps
        self.recorder = recorder
        self.tell = tell
        self.labour = labour  # implicit steps that may be taken, as if the problem were small ...
        self.laboured = 0.0  # ... and were
        self.share = share  # part of the tolerance that an implicit step may use up
        self.blind = blind  # events are not located until the data are fitted
        self.steps = 0
        self._back: dict[tuple[int, int], int] = {}  # how often events came back since neurons moved noticeably ...
        self._stirred = 0.0  # ... and by how much they moved since then
        self.care: Care | None = None  # what the steps have to be finer for at first
        self._open: tuple[str, float, int] | None = None  # phase under way: its name, its start, the steps before it
        self._zeros: set[int] = set()  # neurons that came to rest at w = 0 ...
        self._shut: Array | None = None  # ... and the pulls with which there was last seen to be no way out

    def standing(self) -> str:
        """Say how far the flow has come, in words that need no theory."""
        last, data = self.recorder.last, self.geometry.problem.data
        wrong = np.flatnonzero(last.network(self.geometry.slope).margins(data) <= 0)
        loss = f"{np.exp(last.log_loss):.4g}" if last.log_loss > -300 else f"e^{last.log_loss:.6g}"
        which = f"{wrong.size} of {data.n} points ({named(wrong)}) not" if wrong.size else f"all {data.n} points"
        when = f"at log t = {last.log_time:.6g}" if np.isfinite(last.log_time) else "at the start"
        return f"{when} with loss {loss} and {which} classified"

    def partial(self) -> Trajectory:
        """Return what there is so far, the phase under way included."""
        if self._open is not None:
            name, log_start, begun = self._open
            self.recorder.phase(name, log_start, self.recorder.last.log_time, self.steps - begun)
            self._open = None
        return self.recorder.result()

    def forget(self) -> None:
        """Leave the phase under way out of the records."""
        self._open = None

    def resume(self, state: State, log_time: float) -> Reached:
        """Go on from a state to the goal, through as many phases as it takes."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond doubles is noticed by the steps
            return self._resume(state, log_time)

    def _resume(self, state: State, log_time: float) -> Reached:
        who = moving(self.geometry, state, pattern_of(self.geometry, state))
        fitted = False
        if who.any():
            pattern = make_pattern(self.geometry, state.sides[who])
            fitted = bool(pattern.margins(state.weighted()[who])[pattern.live].min(initial=np.inf) > FITTED)
        reached = Reached(state, log_time, "late" if fitted else "coupled")
        if who.any() and not fitted and log_time > _SETTLED and level(self.geometry, state) is not None:
            reached = Reached(state, log_time, "level")
        patience, fold = _PATIENCE, 0.0
        while reached.why not in ("done", "rest"):
            phase = self._phase(reached, patience, fold)
            reached = self._follow(phase)
            self.care = None
            self.blind = self.blind and not isinstance(phase, Late)  # once the data are fitted events are located
            if isinstance(phase, Coupled):
                fold = phase.fold
            elif isinstance(phase, Late) and reached.why == "coupled":
                # A crowd that crosses one by one ends implicit steps; explicit ones pass it at once. If those were
                # dearer, as much is spent on the others before they are tried again: at most twice what is best.
                patience = max(_PATIENCE, int(DEAR * phase.taken)) if phase.dearer else _PATIENCE
        if reached.why == "rest" and np.isfinite(self.goal.log_time):
            self.recorder.phase("rest", reached.log_time, self.goal.log_time, 0)
        return self.arrive(reached)

    def arrive(self, reached: Reached) -> Reached:
        """Record the end of a run that came to its time: the run covers that, to the last digit."""
        goal = self.goal.log_time
        there = np.isfinite(goal) and (reached.why == "rest" or reached.log_time == goal)
        if there and not (self.recorder.records and self.recorder.last.log_time >= goal):
            self.recorder.add(goal, reached.state, self._margins(reached.state))
        return reached

    def _phase(self, reached: Reached, patience: int, fold: float) -> Phase:
        state, log_time, why = reached
        if why == "coupled" and self.blind:
            return Blind(self.geometry, state, log_time, self.rtol)
        if why == "coupled":
            rtol = self.rtol if self.care is None else self.care.rtol
            return Coupled(self.geometry, state, log_time, rtol, patience, bool(self._zeros))
        still = level(self.geometry, state) if why == "level" else None
        if still is not None:
            self.recorder.settings.setdefault(
                "balance",
                f"from log t = {log_time:.4g} on points {named(still.points)} rest in balance and are held there: "
                "neurons are right to about 1e-6 from then on",
            )
        clock: Clock = "time" if why == "time" else "norm"
        return Late(self.geometry, state, log_time, self.rtol, clock, fold, still, self.share)

    def _follow(self, phase: Phase) -> Reached:
        """Follow one phase to its end."""
        self._open = (phase.name, phase.log_time, self.steps)
        while True:
            if phase.resting:
                return self._finish(phase, "rest")
            moved = self._step(phase)
            if moved.steps == 0:  # nothing pulls
                continue
            self._write(moved)
            if moved.back is not None:
                self._check_progress(moved, phase.log_time)
            self.recorder.add(phase.log_time, phase.state(), phase.margins())
            self.tell(phase.log_time)
            why = "done" if moved.done else phase.verdict(self.goal)
            if why is None and self.care is not None and self.care.over(self.geometry, phase):
                why = "coupled"
            if why is not None:
                return self._finish(phase, why)
            woken = self._wake(phase)
            if woken is not None:
                phase.restart(woken)

    # -- pieces ---------------------------------------------------------------------------------------

    def _write(self, moved: Moved) -> None:
        """Write down what happened on the way."""
        recorder, faces = self.recorder, self.geometry.faces
        for legs in moved.legs:
            recorder.follow(legs)
        if moved.crossed is not None:
            recorder.cross(moved.crossed, faces)
        for log_time, change in moved.changes:
            self._note(change, log_time)
        if moved.passed is not None:
            recorder.add_many(moved.passed)

    def _step(self, phase: Phase) -> Moved:
        if self.steps >= self.max_steps:
            raise BudgetExceeded(
                f"max_steps = {self.max_steps} were used up {self.standing()}; what was found so far is kept, and a "
                "larger max_steps goes on.",
                self.partial(),
            )
        if isinstance(phase, Late):
            self._labour()
        moved = phase.step(self.goal, self.max_steps - self.steps)
        self.steps += moved.steps
        return moved

    def _labour(self) -> None:
        if self.laboured >= self.labour:
            raise Laboured(
                f"implicit steps as dear as {self.labour:g} of a small problem were taken {self.standing()}."
            )
        data, p = self.geometry.problem.data, self.geometry.problem.net.p
        self.laboured += 1.0 + data.n * p * data.d / _LARGE

    def _margins(self, state: State) -> Array:
        return pattern_of(self.geometry, state).margins(state.weighted())

    def _check_progress(self, moved: Moved, log_time: float) -> None:
        """Stop where one event comes back again and again and nothing moves meanwhile."""
        if moved.back is None:
            return
        self._stirred += moved.by
        if self._stirred > _STIRRED:
            self._back.clear()
            self._stirred = 0.0
        self._back[moved.back] = self._back.get(moved.back, 0) + 1
        if self._back[moved.back] <= _STANDSTILL:
            return
        me, k = moved.back
        faces = self.geometry.faces
        where = f" at point {named(faces.samples[faces.start[k] : faces.start[k + 1]])}" if k >= 0 else ""
        raise Undecided(
            f"the flow stands still at log t = {log_time:.6g}: neuron {me} is switched to and fro{where} and nothing "
            "moves meanwhile, because the forces there are rounding; what was found so far is kept, and another rtol "
            "or a slightly different start may pass.",
            self.partial(),
        )

    def _wake(self, phase: Phase) -> State | None:
        """Let neurons that rest at w = 0 leave when the pulls have changed so that there is a way out; None: they rest.

        It is looked for whenever a pull has changed by one part in a hundred.
        """
        if not self._zeros or phase.resting:
            return None
        c = phase.pulls()
        if self._shut is not None and (np.abs(c - self._shut) <= _OPENS * np.abs(self._shut)).all():
            return None
        self._shut, state = c, phase.state()
        ways = {sign: way_out(self.geometry, sign, c) for sign in {float(state.sign[j]) for j in self._zeros}}
        free = [j for j in sorted(self._zeros) if ways[float(state.sign[j])] is not None]
        if not free:
            return None
        sides, U, log_w = state.sides.copy(), state.U.copy(), state.log_w.copy()
        for j in free:
            way = ways[float(state.sign[j])]
            sides[j], U[j] = leaving(self.geometry, way)
            log_w[j] = state.log_a[j] + TINY
            self._note(Change(j, -1, "origin"), phase.log_time)
            if way is not None and not way.unique:
                self._note(Change(j, -1, "ridge"), phase.log_time)
        self._zeros -= set(free)
        return replace(state, sides=sides, U=U, log_w=log_w)

    def _note(self, change: Change, log_time: float) -> None:
        if change.kind == "die":
            self._zeros.add(change.neuron)
            self._shut = None
        faces = self.geometry.faces
        if change.surface < 0:
            self.recorder.event(log_time, change.neuron, -1, change.kind)
            return
        for i in sorted(faces.samples[faces.start[change.surface] : faces.start[change.surface + 1]]):
            kind = change.kind
            if faces.orient[i] < 0:
                kind = {"activate": "deactivate", "deactivate": "activate"}.get(kind, kind)
            self.recorder.event(log_time, change.neuron, int(i), kind)

    def _finish(self, phase: Phase, why: Why) -> Reached:
        name, log_start, begun = self._open or (phase.name, phase.log_time, self.steps)
        self.recorder.phase(name, log_start, phase.log_time, self.steps - begun)
        self._open = None
        return Reached(phase.state(), phase.log_time, why)
