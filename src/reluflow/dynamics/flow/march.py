"""Marching from event to event through the coupled and the late phase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ...problem import BudgetExceeded, Undecided
from ...problem.types import Array, Index
from ..trajectory import Trajectory
from .coupled import Chart, chart
from .events import TINY, Change, Coordinates, Happening, Step, Watch, apply, leaving, root
from .field import Geometry
from .late import Clock, LateChart, late_chart, solver, tolerances
from .origin import way_out
from .record import Recorder
from .state import State, moving, pattern_of

_FITTED = 3.0  # the late phase begins when every margin that can move is above this ...
_UNFITTED = 0.5  # ... and ends when one falls below this
_PATIENCE = 400  # explicit steps without an event on data that are not fitted, before implicit ones are tried
_STANDSTILL = 500  # times that one event may come back while nothing moves: it does not end
_STIRRED = 1e-9  # part of their size by which neurons must have moved, all in all, to count as moving
_SHOWN = 8  # points named in a message
_OPENS = 0.01  # part by which a pull changes before a way out of w = 0 is looked for again
_IDLE = 33.0  # in a time e^-this of the present scale of change nothing changes, to rounding
_LAST_LATE = 1e10  # largest log t
_LAST_LOG = 650.0  # e^this still fits, for the clock of unfitted data

Why = Literal["done", "rest", "late", "coupled", "time"]


class Goal(NamedTuple):
    """Where to stop: the first of log time, log loss, smallest margin."""

    log_time: float
    log_loss: float
    margin: float


class Reached(NamedTuple):
    """Where a stretch ended, and why."""

    state: State
    log_time: float
    why: Why


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
    ) -> None:
        self.geometry = geometry
        self.goal = goal
        self.rtol = rtol
        self.max_steps = max_steps
        self.recorder = recorder
        self.tell = tell
        self.steps = 0
        self._grazed: set[tuple[int, int]] = set()  # neuron and hyperplane of events just now that changed nothing
        self._back: dict[tuple[int, int], int] = {}  # how often events came back since neurons moved noticeably ...
        self._stirred = 0.0  # ... and by how much they moved since then
        self._open: tuple[str, float, int] | None = None  # phase under way: its name, its start, the steps before it
        self._zeros: set[int] = set()  # neurons that came to rest at w = 0 ...
        self._shut: Array | None = None  # ... and the pulls with which there was last seen to be no way out

    def standing(self) -> str:
        """Say how far the flow has come, in words that need no theory."""
        last, data = self.recorder.last, self.geometry.problem.data
        wrong = np.flatnonzero(last.state.network(self.geometry.slope).margins(data) <= 0)
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
        pattern = pattern_of(self.geometry, state)
        fitted = pattern.margins(state.weighted())[pattern.live].min(initial=np.inf) > _FITTED and pattern.live.any()
        reached = Reached(state, log_time, "late" if fitted else "coupled")
        patience = _PATIENCE
        while reached.why not in ("done", "rest"):
            here, log_time = reached.state, reached.log_time
            if reached.why == "coupled":
                reached = self._coupled(here, log_time, patience)
            else:
                reached = self._late(here, log_time, "norm" if reached.why == "late" else "time")
                patience *= 2
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

    # -- the phases -----------------------------------------------------------------------------------

    def _coupled(self, state: State, log_start: float, patience: int) -> Reached:
        from scipy.integrate import DOP853, RK45

        t, h, begun = 0.0, None, self.steps
        self._open = ("coupled", log_start, begun)
        # Time is counted from the start of the phase, so that a sudden change at t = e^1000 is resolved.
        t_end = _difference(self.goal.log_time, log_start)
        quiet, crowded, last = 0, False, 0.0
        while True:
            whole = pattern_of(self.geometry, state)
            if not moving(self.geometry, state, whole).any():
                return self._end("coupled", state, log_start, t, begun, "rest")
            here = chart(self.geometry, state, whole)
            rel, ab = here.tolerances
            y, field = here.y0, here.field()
            first = None if h is None else min(h, 0.9 * (t_end - t)) if t_end > t else None
            # Where event follows upon event, steps are too short for a high order to pay.
            method = RK45 if crowded else DOP853
            tol = self.rtol / (100 if crowded else 10)
            rel = np.maximum(rel * tol, 2.3e-14)
            with np.errstate(all="ignore"):
                stepper = method(field, t, y, t_end, rtol=rel, atol=ab * tol, first_step=first)
            stepper.max_step = here.longest_step(y, stepper.f)
            watch, event = Watch(here, self.rtol / 10, self._grazing(here)), None
            while event is None:
                if t >= t_end:
                    return self._end("coupled", state, log_start, t, begun, "done")
                step = self._step(stepper)
                quiet += 1
                stop = self._stop(here, step, lambda s, _y: self._moment(log_start, s))
                event = watch.first(step)
                if stop is not None and (event is None or stop[0] <= event.clock):
                    t, log_end = stop
                    state = here.state(step.dense(t), t)
                    self._record(here, step.dense(t), t, log_end)
                    return self._finish("coupled", state, log_start, log_end, begun, "done")
                if event is None:
                    t, state = step.t1, here.state(step.y1, step.t1)
                    q = self._record(here, step.y1, t, self._moment(log_start, t))
                    live = q[here.pattern.live]
                    if live.size and live.min() > _FITTED:
                        return self._end("coupled", state, log_start, t, begun, "late")
                    if quiet > patience and self._moment(log_start, t) < min(_LAST_LOG, self.goal.log_time):
                        return self._end("coupled", state, log_start, t, begun, "time")
                    stepper.max_step = here.longest_step(step.y1, stepper.f)
                    woken = self._wake(here, step.y1, t, state, self._moment(log_start, t))
                    state = state if woken is None else woken
                    if (crowded and quiet >= 3) or here.gone(step.y1) or woken is not None:
                        break
            if event is None:
                crowded, h = False, None
                continue
            crowded = quiet == 1
            gap = event.clock - last
            last = event.clock
            h = max(min(stepper.h_abs, 4 * gap if crowded and gap > 0 else np.inf), 1e-12 * abs(event.clock), 1e-300)
            still = event.clock <= t
            t, quiet = event.clock, 0
            state = self._pass(
                here, event, t, step.dense(t), field(t, step.dense(t)), self._moment(log_start, t), still
            )

    def _late(self, state: State, log_time: float, clock: Clock) -> Reached:
        begun, log_begun = self.steps, log_time
        name = "late"
        self._open = (name, log_time, begun)
        while True:
            whole = pattern_of(self.geometry, state)
            if not moving(self.geometry, state, whole).any():
                return self._finish(name, state, log_begun, log_time, begun, "rest")
            here = late_chart(self.geometry, state, whole, clock, log_time)
            s = log_time if clock == "time" else 0.0
            bound = min(self.goal.log_time, _LAST_LOG) if clock == "time" else 100.0
            y, field = here.y0, here.field()
            if clock == "norm":
                pull = here.pull(s, y)
                if not pull.speed > 0:
                    return self._finish(name, state, log_begun, log_time, begun, "coupled")
                if log_time < pull.log_dt - _IDLE:  # forces of e^-5000: nothing happens for a long time
                    log_time = min(pull.log_dt - _IDLE, self.goal.log_time)
                    self.recorder.add(log_time, state, pull.q)
                    if log_time == self.goal.log_time:
                        return self._finish(name, state, log_begun, log_time, begun, "done")
                    continue
            stepper = solver(here, s, bound, y, self.rtol / 10)
            watch, event = Watch(here, self.rtol / 10, self._grazing(here)), None
            while event is None:
                if s >= bound:
                    return self._out_of_clock(state, log_begun, log_time, begun)
                if log_time > _LAST_LATE:
                    raise Undecided(
                        f"the goal was not reached by log t = {log_time:.3g} (log loss "
                        f"{self.recorder.last.log_loss:.6g}, smallest margin {self.recorder.margin:.6g}): beyond that "
                        "margins are too large for doubles to tell apart; what was found so far is kept.",
                        self.partial(),
                    )
                step = self._step(stepper)
                stepper.atol = tolerances(here, step.y1, self.rtol / 10)
                stop = self._stop(here, step, here.tau)
                event = watch.first(step)
                if stop is not None and (event is None or stop[0] <= event.clock):
                    s, log_end = stop
                    y = step.dense(s)
                    state = here.state(y, s)
                    self._record(here, y, s, log_end)
                    return self._finish(name, state, log_begun, log_end, begun, "done")
                if event is None:
                    s, state, log_time = step.t1, here.state(step.y1, step.t1), here.tau(step.t1, step.y1)
                    q = self._record(here, step.y1, s, log_time)
                    live = q[here.pattern.live]
                    if clock == "norm" and live.min() < _UNFITTED:
                        return self._finish(name, state, log_begun, log_time, begun, "coupled")
                    if clock == "time" and live.min() > _FITTED:
                        return self._finish(name, state, log_begun, log_time, begun, "late")
                    if clock == "time":
                        noise = _rounding(here, s, step.y1)
                        if (
                            _speed(here, step.y1, field(s, step.y1)) <= max(0.01 * self.rtol, 3 * noise)
                            and noise < 1e-5
                        ):
                            return self._finish(name, state, log_begun, log_time, begun, "rest")
                        if noise > 100 * self.rtol and noise > 1e-8:
                            return self._out_of_clock(state, log_begun, log_time, begun)
                    woken = self._wake(here, step.y1, s, state, log_time)
                    if woken is not None:
                        state = woken
                        break
            if event is None:
                continue
            still = event.clock <= s
            s = event.clock
            y = step.dense(s)
            log_time = min(here.tau(s, y), self.goal.log_time)
            state = self._pass(here, event, s, y, field(s, y), log_time, still)
            q = self._margins(state)
            if clock == "norm" and q[pattern_of(self.geometry, state).live].min(initial=np.inf) < _UNFITTED:
                return self._finish(name, state, log_begun, log_time, begun, "coupled")

    # -- pieces ---------------------------------------------------------------------------------------

    def _step(self, stepper: Any) -> Step:
        if self.steps >= self.max_steps:
            raise BudgetExceeded(
                f"max_steps = {self.max_steps} were used up {self.standing()}; what was found so far is kept, and a "
                "larger max_steps goes on.",
                self.partial(),
            )
        if not np.isfinite(stepper.h_abs):  # a solver would look for a step for ever
            raise Undecided(
                f"forces or weights are beyond doubles after log t = {self.recorder.last.log_time:.6g}: it cannot be "
                "followed there; what was found so far is kept, and a smaller start may help.",
                self.partial(),
            )
        self.steps += 1
        t0, y0 = stepper.t, stepper.y.copy()
        f0 = getattr(stepper, "f", None)  # explicit steppers have it, BDF does not
        with np.errstate(all="ignore"):  # a trial step may go anywhere; it is rejected
            stepper.step()
        if stepper.status == "failed":
            raise Undecided(
                f"the step size fell below rounding after log t = {self.recorder.last.log_time:.6g}: accuracy "
                f"rtol = {self.rtol:g} cannot be met there; what was found so far is kept, and a larger rtol may help.",
                self.partial(),
            )
        t1, y1, f1 = stepper.t, stepper.y.copy(), getattr(stepper, "f", None)
        dense: list[Any] = []

        def at(s: float) -> Array:
            if not dense:
                dense.append(stepper.dense_output())
            return np.asarray(dense[0](s))

        def slopes() -> tuple[Array, Array]:
            return (stepper.fun(t0, y0), stepper.fun(t1, y1)) if f0 is None or f1 is None else (f0, f1)

        return Step(t0, t1, y0, y1, slopes, at)

    def _stop(
        self, here: Coordinates, step: Step, log_time: Callable[[float, Array], float]
    ) -> tuple[float, float] | None:
        """Where in a step a goal is reached, and at which log time: at exactly the one aimed at, if it was that."""
        problem, goal = self.geometry.problem, self.goal

        def gaps(s: float) -> list[float]:
            y = step.y1 if s == step.t1 else step.y0 if s == step.t0 else step.dense(s)
            found = [goal.log_time - log_time(s, y)]
            if np.isfinite(goal.log_loss) or np.isfinite(goal.margin):
                q = here.margins(s, y)
                found += [problem.log_loss_of(q) - goal.log_loss, goal.margin - float(q.min())]
            return found

        if isinstance(here, Chart) and not np.isfinite(goal.log_loss) and not np.isfinite(goal.margin):
            late = step.t1 >= _difference(goal.log_time, log_time(0.0, step.y0))
            return (step.t1, goal.log_time) if late else None
        if min(gaps(step.t1)) > 0:
            return None
        s = step.t0 if min(gaps(step.t0)) <= 0 else root(lambda s: min(gaps(s)), step.t0, step.t1)
        left = gaps(s)
        return s, goal.log_time if left[0] == min(left) else min(log_time(s, step.dense(s)), goal.log_time)

    def _record(self, here: Coordinates, y: Array, s: float, log_time: float) -> Array:
        q = here.margins(s, y)
        self.recorder.add(log_time, here.state(y, s), q)
        self.tell(log_time)
        return q

    def _margins(self, state: State) -> Array:
        return pattern_of(self.geometry, state).margins(state.weighted())

    def _pass(
        self, here: Coordinates, event: Happening, s: float, y: Array, slope: Array, log_time: float, still: bool
    ) -> State:
        """Go through an event."""
        state, changes = apply(here, event, s, y, slope)
        me = int(np.flatnonzero(here.who)[event.neuron])
        if changes or not still:
            self._grazed.clear()
        if not changes:
            self._grazed.add((me, event.surface))
        self._check_progress(here, (me, event.surface), s, y, log_time)
        for change in changes:
            self._note(change, log_time)
            if change.kind == "die":
                self._zeros.add(change.neuron)
                self._shut = None
        return state

    def _check_progress(self, here: Coordinates, pair: tuple[int, int], s: float, y: Array, log_time: float) -> None:
        """Stop where one event comes back again and again and nothing moves meanwhile."""
        self._stirred += _moved(here, s, y)
        if self._stirred > _STIRRED:
            self._back.clear()
            self._stirred = 0.0
        self._back[pair] = self._back.get(pair, 0) + 1
        if self._back[pair] <= _STANDSTILL:
            return
        me, k = pair
        faces = self.geometry.faces
        where = f" at point {named(faces.samples[faces.start[k] : faces.start[k + 1]])}" if k >= 0 else ""
        raise Undecided(
            f"the flow stands still at log t = {log_time:.6g}: neuron {me} is switched to and fro{where} and nothing "
            "moves meanwhile, because the forces there are rounding; what was found so far is kept, and another rtol "
            "or a slightly different start may pass.",
            self.partial(),
        )

    def _wake(self, here: Coordinates, y: Array, s: float, state: State, log_time: float) -> State | None:
        """Let neurons that rest at w = 0 leave when the pulls have changed so that there is a way out; None: they rest.

        It is looked for whenever a pull has changed by one part in a hundred.
        """
        if not self._zeros:
            return None
        c = here.pulls(s, y)
        if self._shut is not None and (np.abs(c - self._shut) <= _OPENS * np.abs(self._shut)).all():
            return None
        self._shut = c
        ways = {sign: way_out(self.geometry, sign, c) for sign in {float(state.sign[j]) for j in self._zeros}}
        free = [j for j in sorted(self._zeros) if ways[float(state.sign[j])] is not None]
        if not free:
            return None
        sides, U, log_w = state.sides.copy(), state.U.copy(), state.log_w.copy()
        for j in free:
            way = ways[float(state.sign[j])]
            sides[j], U[j] = leaving(self.geometry, way)
            log_w[j] = state.log_a[j] + TINY
            self._note(Change(j, -1, "origin"), log_time)
            if way is not None and not way.unique:
                self._note(Change(j, -1, "ridge"), log_time)
        self._zeros -= set(free)
        return replace(state, sides=sides, U=U, log_w=log_w)

    def _grazing(self, here: Coordinates) -> frozenset[tuple[int, int]]:
        """Return the events just before that changed nothing, in the numbering of a chart."""
        return frozenset((int(here.who[:j].sum()), k) for j, k in self._grazed if here.who[j])

    def _note(self, change: Change, log_time: float) -> None:
        faces = self.geometry.faces
        if change.surface < 0:
            self.recorder.event(log_time, change.neuron, -1, change.kind)
            return
        for i in sorted(faces.samples[faces.start[change.surface] : faces.start[change.surface + 1]]):
            kind = change.kind
            if faces.orient[i] < 0:
                kind = {"activate": "deactivate", "deactivate": "activate"}.get(kind, kind)
            self.recorder.event(log_time, change.neuron, int(i), kind)

    def _end(self, name: str, state: State, log_start: float, t: float, begun: int, why: Why) -> Reached:
        return self._finish(name, state, log_start, self._moment(log_start, t), begun, why)

    def _moment(self, log_start: float, t: float) -> float:
        """Log time of a phase begun at log_start and t old; never past the goal, and at its end that exactly."""
        goal = self.goal.log_time
        return goal if t >= _difference(goal, log_start) else min(_later(log_start, t), goal)

    def _finish(self, name: str, state: State, log_start: float, log_end: float, begun: int, why: Why) -> Reached:
        self.recorder.phase(name, log_start, log_end, self.steps - begun)
        self._open = None
        return Reached(state, log_end, why)

    def _out_of_clock(self, state: State, log_begun: float, log_time: float, begun: int) -> Reached:
        if log_time >= self.goal.log_time:
            return self._finish("late", state, log_begun, log_time, begun, "done")
        wrong = np.flatnonzero(self._margins(state) <= 0)
        raise Undecided(
            f"the loss stays near {np.exp(self.recorder.last.log_loss):.4g}: the neurons that are left do not classify "
            f"{wrong.size} of {self.geometry.problem.data.n} points{f' ({named(wrong)})' if wrong.size else ''}, "
            f"whose pulls cancel those of the other points to rounding at log t = {log_time:.6g}, and the flow cannot "
            "be followed further; what was found so far is kept, and more neurons, or the data without these points, "
            "may be fitted.",
            self.partial(),
        )


def named(points: Sequence[int] | Index) -> str:
    """List points by their numbers, the first few of many: ``3, 17``."""
    shown = ", ".join(str(int(i)) for i in points[:_SHOWN])
    return f"{shown}{', ...' if len(points) > _SHOWN else ''}"


def _moved(here: Coordinates, s: float, y: Array) -> float:
    """By what part of their size neurons have moved since the last event, where the chart begins; growth included."""
    (V0, last0), (V1, last1) = here.rows(here.y0), here.rows(y)
    size = np.linalg.norm(V0, axis=1) + 1e-300
    turn = (np.linalg.norm(V1 - V0, axis=1) + np.abs(last1 - last0)) / size
    return float(turn.max(initial=0.0)) + (s if isinstance(here, LateChart) and here.clock == "norm" else 0.0)


def _rounding(here: LateChart, s: float, y: Array) -> float:
    """How large a velocity may be from rounding alone, relative to the neurons: opposite pulls grow like t."""
    pulls = here.pull(s, y).p * here.geometry.problem.data.norms
    return float(1e-15 * pulls.sum())


def _speed(here: LateChart, y: Array, slope: Array) -> float:
    """Largest velocity of a neuron relative to its size."""
    V, last = here.rows(y)
    dV, da = here.rows(slope)
    size = np.sqrt(np.einsum("jd,jd->j", V, V) + last**2) + 1e-300
    return float((np.sqrt(np.einsum("jd,jd->j", dV, dV) + da**2) / size).max())


def _later(log_start: float, t: float) -> float:
    """``log(e^log_start + t)``."""
    return float(np.logaddexp(log_start, np.log(t))) if t > 0 else log_start


def _difference(log_end: float, log_start: float) -> float:
    """``e^log_end - e^log_start``, at most the largest double."""
    if log_end == np.inf or log_end > 709:
        return np.inf if log_end > max(log_start, 709) or log_end == np.inf else 0.0
    if log_start == -np.inf:
        return float(np.exp(log_end))
    return float(np.exp(log_end) * -np.expm1(log_start - log_end))
