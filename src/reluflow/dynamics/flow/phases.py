"""The two ways to follow the flow once it is not exact any more: a phase goes on step by step from a state.

`Coupled` takes explicit steps in time and passes any number of events within one (`adams`). `Late` takes implicit steps
in a logarithmic clock, so that log t = 10^6 takes no longer than t = 10, and begins anew at each event (`late`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from ...problem import Undecided
from ...problem.types import Array, Flags, Index
from .adams import Adams, Events
from .arcs import FLIP, HARD, THROUGH
from .balance import Level, level
from .dense import Legs
from .desk import Tape
from .events import TINY, Change, Happening, Step, Watch, apply, leaving, root
from .field import ON, Geometry, edge_of
from .late import FINEST, SPRING, Clock, LateChart, late_chart, tolerances
from .origin import way_out
from .solver import Room, Solver
from .state import Moments, State, forces_at, moving, onto, pattern_of, settle_neuron, untangled
from .stepper import BEYOND, FAILED, TRIAL

FITTED = 3.0  #: the late phase begins when every margin that can move is above this ...
_UNFITTED = 0.5  # ... and ends when one falls below this
_IDLE = 33.0  # in a time e^-this of the present scale of change nothing changes, to rounding
_LAST_LATE = 1e10  # largest log t
_LAST_LOG = 650.0  # e^this still fits, for the clock of unfitted data
#: What implicit steps cost in explicit ones: all the way to the goal, and each event on the way, where they begin anew.
_WHOLE, _EVENT = 300.0, 75.0
_AGED = 15.0  # log t from which fitted data are always followed implicitly
#: Explicit steps for an e-fold of time that are many, at a tolerance of 1e-6 and above; at finer ones implicit steps,
#: of order 5, are more as well.
_FOLD, _FINE, _GAIN = 60.0, 1e-6, 1.0 / 6.0
_BUSY_ITSELF = 20.0  # how much longer they are borne where each brings an event
#: Part of the tolerance that an implicit step may use up, and the least it can ask for: errors add up over hundreds of
#: steps, and that of a single neuron is a small part of the mean over all that the solver looks at. It grows with log t
#: from some time on: directions converge, and forget what was wrong before.
STEP, _LATER, _MOST = 0.003, 300.0, 0.3
#: Where data are not fitted that is so for a trial; a long way, of thousands of steps, would take 2.5 times as long
#: (iris 1/2). The search for a limit is such a way too.
LONG = 0.1
_TAUT = 0.03  # pull of a spring, of all others, that an error of a step may make
_MEMORY = 0.05  # weight of the newest step in the share of steps with events ...
_RECENT = 0.1  # ... and of explicit ones
_WARM = 32  # explicit steps after a start, which is cautious, until their length says what an e-fold of time takes
DEAR = 20.0  #: explicit steps that an implicit one may cost: 1 to 7 were seen; less would let both alternate
#: Up to this log t a late phase in which every other step ends with an event is left, unless explicit steps cost more.
_CROWDED, _BUSY = 30.0, 0.5
#: From this rounding of velocities on steps become short, and it is looked whether points rest in balance, every so
#: many steps; beyond so many times the tolerance nothing can be followed.
_NOISE, _LOOKS, _DROWNED = 1e-8, 50, 100.0
_TRIAL = 100  # implicit steps on data that are not fitted, from which on they must have been worth it, too
_PINNED = 100.0  # log of how much a neuron has shrunk when it must be exactly on its ray against the force ...
_STRAIGHT = 1e-12  # ... and what part of its velocity may lead aside
_KINKS = ("activate", "deactivate")  # events at which velocities stay as they are and only change differently
_SHOWN = 8  # points named in a message

Why = Literal["done", "rest", "late", "coupled", "time", "level"]


class Goal(NamedTuple):
    """Where to stop: the first of log time, log loss, smallest margin."""

    log_time: float
    log_loss: float
    margin: float


class Crossed(NamedTuple):
    """Crossings in order of time: log times, neurons, surfaces, sides after them."""

    log_time: Array
    neuron: Index
    surface: Index
    side: Index


class Passed(NamedTuple):
    """Moments within what a phase did at one go: log times, log losses, smallest margin of the last, neurons."""

    log_time: Array
    log_loss: Array
    margin: float
    neurons: Moments


class Moved(NamedTuple):
    """What a step did, or several."""

    changes: list[tuple[float, Change]]  # log times and changes
    done: bool  # the goal was reached
    back: tuple[int, int] | None = None  # neuron and surface of the event that ended the step ...
    by: float = 0.0  # ... and by what part of their size neurons have moved before it
    steps: int = 1
    legs: Sequence[Legs] = ()  # how they moved, to be looked at again
    crossed: Crossed | None = None
    passed: Passed | None = None  # the ends of all steps but the last


class Phase(Protocol):
    """What the march asks of a phase."""

    name: str
    log_time: float

    @property
    def resting(self) -> bool:
        """Whether nothing moves."""

    def step(self, goal: Goal, most: int) -> Moved:
        """Go on by a step, or by some but not more than ``most``, not beyond the goal."""

    def verdict(self, goal: Goal) -> Why | None:
        """Whether another phase does better from here."""

    def state(self) -> State:
        """Where the neurons are."""

    def margins(self) -> Array:
        """``q_i``."""

    def pulls(self) -> Array:
        """``c_i``, up to a common factor."""

    def restart(self, state: State) -> None:
        """Go on from a state that was changed from outside."""


class Coupled:
    """Explicit steps in time, counted from the start of the phase: sudden changes at t = e^1000 are resolved."""

    name = "coupled"

    def __init__(
        self, geometry: Geometry, state: State, log_start: float, rtol: float, patience: int, closely: bool = False
    ) -> None:
        self.geometry, self.log_start, self.rtol, self.patience = geometry, log_start, rtol, patience
        self.closely = closely  # what happens after every step is of interest
        self.log_time, self.t = log_start, 0.0
        self.slow, self.busy = 0, 0.0
        self.fold = 0.0  # explicit steps that an e-fold of time would take now ...
        self.many = _FOLD * max(1.0, _FINE / rtol) ** _GAIN  # ... and how many are many
        self.restart(state)

    def restart(self, state: State) -> None:
        """Go on from a state that was changed from outside."""
        who = moving(self.geometry, state, pattern_of(self.geometry, state))
        self.resting = not who.any()
        self.begun = self.t
        self.taken = 0
        self.idle = state
        if not self.resting:
            self.adams = Adams(self.geometry, state, who, self.rtol)

    def state(self) -> State:
        """Where the neurons are."""
        return self.idle if self.resting else self.adams.state()

    def margins(self) -> Array:
        """``q_i``."""
        return np.asarray(self.geometry.y * self.adams.f)

    def pulls(self) -> Array:
        """``c_i``."""
        return forces_at(self.geometry, self.margins())

    # -- steps ----------------------------------------------------------------------------------------

    def step(self, goal: Goal, most: int) -> Moved:
        """Go on by some steps, not beyond the goal, and up to what has to be decided by itself."""
        adams = self.adams
        t_end = difference(goal.log_time, self.log_start)
        if self.t >= t_end:
            self.log_time = goal.log_time
            return Moved([], True)
        why, steps = adams.advance(1 if self.closely else most, t_end - self.begun, goal.log_loss, goal.margin)
        tape = adams.tape
        trial, events = None, [_on_tape(tape, steps)]
        self._count(tape, steps)
        hard: list[tuple[int, bool]] = []
        done = False
        if why == TRIAL:
            hard, done = self._decide(goal)
            trial = adams.leg(self.log_start, self.begun)
            events.append(adams.events())
            adams.take()
            self.busy += _RECENT * (float(events[-1].neuron.size > 0) - self.busy)
        elif steps == 0:
            self._refuse(why)
            self.resting, self.idle = True, self.state()
            return Moved([], False, steps=0)
        self.t = self.begun + adams.t
        self.log_time = float(self._moments(np.array(self.t), goal, t_end))
        legs = [self._legs(tape, steps, goal, t_end)] if steps else []
        if trial is not None:
            legs.append(trial._replace(log_end=np.array([self.log_time])))
        crossed = self._crossed(events)
        changes = [(self.log_time, change) for j, flips in hard for change in self._settle(j, flips)]
        back = (int(adams.which[hard[0][0]]), -2) if hard else None
        passed = self._passed(tape, steps if why == TRIAL else steps - 1, goal)
        by = float(adams.last * adams.pace) if steps == 0 else np.inf
        taken = steps + (why == TRIAL)
        self.taken += taken
        if any(change.kind == "die" for _, change in changes) or (adams.desk.rho < self.geometry.gone).any():
            self.closely = self.closely or any(change.kind == "die" for _, change in changes)
            self.restart(self.state())
        return Moved(changes, done or self.t >= t_end, back, by, taken, legs, crossed, passed)

    def _decide(self, goal: Goal) -> tuple[list[tuple[int, bool]], bool]:
        """Cut the trial where something is to be decided: which neurons, and whether their output weights flip there.

        Or where the goal is reached.
        """
        adams, came = self.adams, self.adams.trial
        stopped = np.flatnonzero(came.status != THROUGH)
        hard: list[tuple[int, bool]] = []
        if stopped.size:
            first = float(came.end[stopped].min())
            now = stopped[(came.status[stopped] == HARD) & (came.end[stopped] <= first)]
            hard = [(int(j), bool(came.n[j] > 0 and came.face[j, came.n[j] - 1] == FLIP)) for j in now]
            adams.cut(first)
        done = self._stop(goal)
        return [] if done else hard, done

    def _refuse(self, why: int) -> None:
        """Say why there is no step, unless nothing pulls."""
        if why == BEYOND:
            raise Undecided(
                f"forces or weights are beyond doubles after log t = {self.log_time:.6g}: it cannot be followed "
                "there; what was found so far is kept, and a smaller start may help."
            )
        if why == FAILED:
            raise Undecided(
                f"the step size fell below rounding after log t = {self.log_time:.6g}: accuracy rtol = "
                f"{self.rtol:g} cannot be met there; what was found so far is kept, and a larger rtol may help."
            )

    def _stop(self, goal: Goal) -> bool:
        """Cut the trial where the goal is reached, if it is."""
        problem, adams = self.geometry.problem, self.adams
        if not np.isfinite(goal.log_loss) and not np.isfinite(goal.margin):
            return False

        def gap(f: Array) -> float:
            q = self.geometry.y * f
            return min(problem.log_loss_of(q) - goal.log_loss, goal.margin - float(q.min()))

        there, end = adams.trial_f, float(adams.desk.now.upto)
        if gap(there) > 0:
            return False
        if gap(adams.f) <= 0:
            adams.cut(0.0)
            return True

        def left(part: float) -> float:
            if part == 0.0 or part == end:
                return gap(adams.f if part == 0.0 else there)
            adams.cut(part)
            return gap(adams.trial_f)

        adams.cut(root(left, 0.0, end))
        return True

    def _count(self, tape: Tape, steps: int) -> None:
        """Remember how many steps have events, and for how long steps have been many."""
        events = np.diff(tape.upto[: steps + 1]) > 0
        many = self.begun + tape.clock[:steps, 2] > self.many * tape.clock[:steps, 1]  # of the age of the phase
        for event, long in zip(events.tolist(), many.tolist(), strict=True):
            self.busy += _RECENT * (float(event) - self.busy)
            self.slow = self.slow + 1 if long else 0

    def _legs(self, tape: Tape, steps: int, goal: Goal, t_end: float) -> Legs:
        ends = self.begun + tape.clock[:steps, 0] + tape.clock[:steps, 1]
        logs = np.where(ends >= self.t, self.log_time, self._moments(ends, goal, t_end))
        return self.adams.legs(self.log_start, self.begun, logs)

    def _crossed(self, events: list[Events]) -> Crossed:
        neuron, face, side, clock = (np.concatenate(parts) for parts in zip(*events, strict=True))
        times = np.minimum(later(self.log_start, self.begun + clock), self.log_time)
        return Crossed(times, self.adams.which[neuron], face, side)

    def _passed(self, tape: Tape, steps: int, goal: Goal) -> Passed | None:
        if steps <= 0:
            return None
        adams, margin = self.adams, float((self.geometry.y * tape.f[steps - 1]).min())
        times = np.minimum(later(self.log_start, self.begun + tape.clock[:steps, 2]), goal.log_time)
        neurons = adams.rows_of(tape, slice(1, steps + 1)).moments(adams.base_state, self.geometry.frozen)
        return Passed(times, tape.clock[:steps, 3], margin, neurons)

    def _settle(self, j: int, flips: bool) -> list[Change]:
        """Decide where a neuron goes that the compiled pass has left at several faces at once, or at w = 0.

        ``flips``: its output weight changes sign while faces hold it.
        """
        adams, geometry = self.adams, self.geometry
        me, sides, c = int(adams.which[j]), adams.desk.sides[j].copy(), self.pulls()
        w, b = adams.desk.W[j].copy(), float(adams.desk.b[j])
        size = float(np.linalg.norm(w))
        force = adams.present(j)
        if size <= ON * abs(b) and not adams.balanced[j]:
            way = way_out(geometry, float(np.sign(b)), c)
            row, u = leaving(geometry, way)
            adams.settle(j, row, u * (0.0 if way is None else abs(b) * np.exp(TINY)), b)
            kinds = ["die"] if way is None else ["origin"] + ([] if way.unique else ["ridge"])
            return [Change(me, -1, kind) for kind in kinds]
        z = adams.desk.Z[j] / size
        sign = (0.0 if flips else np.sign(b)) or np.sign(float(w @ force)) or 1.0
        on = np.flatnonzero((np.abs(z) <= ON) | (sides == 0))
        arriving = (sides != 0) & (sides * sign * (geometry.faces.normals @ force) <= 0)
        state = adams.state()
        state.sign[me] = sign
        before = sides[on].copy()
        row, unique = settle_neuron(geometry, state, me, on, before, arriving[on], c, geometry.kinks(c), self._edge())
        row = untangled(geometry, row, sides)
        names = {1: "activate", -1: "deactivate", 0: "slide"}
        found = [Change(me, -1, "flip")] if flips else []
        found += [Change(me, int(k), names[int(row[k])]) for k in on[row[on] != before]]
        if not unique:
            found.append(Change(me, int(on[0]), "ridge"))
        u = onto(geometry, w / size, row)
        for k in on[row[on] != 0]:  # exactly on its side, or a hair inside
            u -= min(float(u @ geometry.faces.normals[k]) * row[k], 0.0) * row[k] * geometry.faces.normals[k]
        adams.settle(j, row, size * u, 0.0 if flips else b)
        return found

    def _edge(self) -> float:
        desk = self.adams.desk
        sizes = np.exp(2 * desk.rho) * np.abs(desk.b) * np.linalg.norm(desk.W, axis=1)
        return edge_of(float(sizes.sum() * self.geometry.problem.data.norms.max()))

    # -- when to go over ------------------------------------------------------------------------------

    def verdict(self, goal: Goal) -> Why | None:
        """Whether implicit steps would be fewer: they cost more, and begin anew at each event."""
        if self.resting or self.adams.resting:
            self.resting, self.idle = True, self.state()
            return "rest"
        with np.errstate(over="ignore"):
            age = float(np.exp(min(self.log_time, _LAST_LOG))) if np.isfinite(self.log_start) else self.t
        fold, q = age / self.adams.h, self.margins()
        self.fold = fold
        long = self.slow > self.patience * (1.0 + _BUSY_ITSELF * self.busy)
        live = q[self.adams.live]
        if live.size and live.min() > FITTED:
            pays = self.taken >= _WARM and implicit_pays(self.geometry, goal, self.log_time, q, fold, self.busy)
            return "late" if long or pays else None
        return "time" if long and self.log_time < min(_LAST_LOG, goal.log_time) else None

    def _moments(self, t: Array, goal: Goal, t_end: float) -> Array:
        """Return the logs of times of the phase; never past the goal, and at its end that exactly."""
        return np.where(t >= t_end, goal.log_time, np.minimum(later(self.log_start, t), goal.log_time))


def _on_tape(tape: Tape, steps: int) -> Events:
    """Events of the steps on a tape."""
    n = int(tape.upto[steps])
    order = np.argsort(tape.when[:n], kind="stable")
    neuron, face, side = tape.event[order].T
    return Events(neuron, face, side, tape.when[order])


class Late:
    """Implicit steps in a logarithmic clock, from event to event."""

    name = "late"

    def __init__(
        self,
        geometry: Geometry,
        state: State,
        log_time: float,
        rtol: float,
        clock: Clock,
        fold: float,
        still: Level | None = None,
        share: float = STEP,
    ) -> None:
        self.share = share  # part of the tolerance that a step may use up at first
        self.geometry, self.log_time, self.rtol, self.clock = geometry, log_time, rtol, clock
        self.still = still  # points that rest in balance
        self.fold = fold  # explicit steps that an e-fold of time took before
        self.begun, self.taken = log_time, 0
        self.grazed: set[tuple[int, int]] = set()  # neuron and hyperplane of events just now that changed nothing
        self.fallen = self.out_of_clock = False
        self.busy = 0.0
        self.room: Room | None = None
        self.restart(state)

    def restart(self, state: State) -> None:
        """Begin anew from a state."""
        self._state = state
        self._slope: Array | None = None  # derivatives here, if they are known
        whole = pattern_of(self.geometry, state)
        self.resting = not moving(self.geometry, state, whole).any()
        if self.resting:
            return
        self.chart = late_chart(self.geometry, state, whole, self.clock, self.log_time, self.still, self.room)
        self.room = self.chart.room
        if self.still is not None and not self.still.holds(self.geometry, self.chart.pattern):
            self.fallen = True  # a neuron has come to where the balance is none
        self.s = self.log_time if self.clock == "time" else 0.0
        self.y = self.chart.y0
        self.solver: Solver | None = None
        self.first: float | None = None  # length of the first step

    @property
    def tol(self) -> float:
        """Error that a step may make."""
        if self.still is not None:  # springs turn larger errors into pulls that are felt
            return max(min(self.share * self.rtol, _TAUT / SPRING), FINEST)
        if self.clock == "norm":
            share = min(self.share * max(1.0, self.log_time / _LATER), _MOST)
        else:
            share = self.share if self.taken < _TRIAL else LONG
        return max(share * self.rtol, FINEST)

    @property
    def dearer(self) -> bool:
        """Whether explicit steps would have cost less so far; what bounds them bounds them in time, not in log t."""
        with np.errstate(over="ignore"):
            return bool(DEAR * self.taken > self.fold * np.expm1(self.log_time - self.begun))

    def state(self) -> State:
        """Where the neurons are."""
        return self._state

    def margins(self) -> Array:
        """``q_i``."""
        if self.resting:  # there is no chart any more
            return pattern_of(self.geometry, self._state).margins(self._state.weighted())
        return self.chart.margins(self.s, self.y)

    def pulls(self) -> Array:
        """``c_i`` up to a common factor."""
        return self.chart.pulls(self.s, self.y)

    def _begin(self, goal: Goal) -> Moved | None:
        """Make the solver; where forces are too small for anything to happen soon, wait."""
        self.bound = min(goal.log_time, _LAST_LOG) if self.clock == "time" else 100.0
        if self.clock == "norm":
            pull = self.chart.pull(self.s, self.y)
            if not pull.speed > 0:
                self.fallen = True
                return Moved([], False)
            if self.log_time < pull.log_dt - _IDLE:  # forces of e^-5000: nothing happens for a long time
                self.log_time = min(pull.log_dt - _IDLE, goal.log_time)
                self.restart(self._state)
                return Moved([], self.log_time == goal.log_time)
        atol = tolerances(self.chart, self.s, self.y, self.tol)
        self.solver = Solver(self.chart.field, self.s, self.bound, self.y, atol, self.first)
        grazing = frozenset((int(self.chart.who[:j].sum()), k) for j, k in self.grazed if self.chart.who[j])
        self.watch = Watch(self.chart, self.chart.finer(self.s, self.y, self.tol), grazing)
        return None

    def step(self, goal: Goal, most: int) -> Moved:  # noqa: ARG002
        """Go on by a step, not beyond the goal or the next event."""
        if self.solver is None and (waited := self._begin(goal)) is not None:
            return waited
        solver = self.solver
        assert solver is not None
        if self.s >= self.bound:
            self.out_of_clock = True
            return Moved([], False)
        if self.log_time > _LAST_LATE:
            q = self.margins()
            raise Undecided(
                f"the goal was not reached by log t = {self.log_time:.3g} (log loss "
                f"{self.geometry.problem.log_loss_of(q):.6g}, smallest margin {q.min():.6g}): "
                "beyond that margins are too large for doubles to tell apart; what was found so far is kept."
            )
        here, q = self.chart, self.margins()
        step = self._advance(solver)
        self.taken += 1
        solver.allow(tolerances(here, step.t1, step.y1, self.tol))
        stop = self._stop(step, goal)
        idle = here.idle(q) & here.idle(here.margins(step.t1, step.y1))
        event, crossed, there = self._look(step, stop, idle)
        self.busy += _MEMORY * ((event is not None) - self.busy)
        changes = self._told(crossed, step, goal)
        if crossed:  # the solver need not notice
            self.chart = self.watch.chart = there
            solver.enter(there.field)
        if event is not None:
            moved = self._pass(event, step, goal)
            return moved._replace(changes=changes + moved.changes)
        if stop is not None:
            self._go(stop[0], step.dense(stop[0]), stop[1])
        else:
            self._go(step.t1, step.y1, here.tau(step.t1, step.y1))
        return Moved(changes, stop is not None)

    def _look(
        self, step: Step, stop: tuple[float, float] | None, idle: Flags
    ) -> tuple[Happening | None, list[Happening], LateChart]:
        """Find the event that ends a step before it stops, if any; idle hyperplanes crossed; the chart beyond them."""
        event = self.watch.first(step, idle)
        end = step.t1 if stop is None else stop[0]
        if event is not None and event.clock < end:
            end = event.clock
        else:
            event = None
        crossed, there = self.watch.crossings(step, end), self.chart
        if crossed:  # what is crossed must stay idle beyond
            there = self.chart.across([(event.neuron, event.surface) for event in crossed])
            if not there.idle(there.margins(end, step.dense(end)))[[event.surface for event in crossed]].all():
                return self._look(step, stop, np.zeros_like(idle))
        return event, crossed, there

    def _told(self, crossed: list[Happening], step: Step, goal: Goal) -> list[tuple[float, Change]]:
        """Return the log times and changes of idle hyperplanes crossed."""
        if not crossed:
            return []
        changes, index = [], np.flatnonzero(self.chart.who)
        side = self.chart.pattern.sides.copy()
        for event in crossed:
            j, k = event.neuron, event.surface
            side[j, k] *= -1
            log_time = min(self.chart.tau(event.clock, step.dense(event.clock)), goal.log_time)
            changes.append((log_time, Change(int(index[j]), k, "activate" if side[j, k] > 0 else "deactivate")))
        return changes

    def _go(self, s: float, y: Array, log_time: float) -> None:
        self.s, self.y, self.log_time = s, y, log_time
        self._state = self.chart.state(y, s)

    def _pass(self, event: Happening, step: Step, goal: Goal) -> Moved:
        """Go through an event."""
        here, still = self.chart, event.clock <= self.s
        s = event.clock
        y = step.dense(s)
        state, changes = apply(here, event, s, y, here.field.rate(s, y))
        me = int(np.flatnonzero(here.who)[event.neuron])
        if changes or not still:
            self.grazed.clear()
        if not changes:
            self.grazed.add((me, event.surface))
        by = _moved(here, s, y)
        self.log_time = min(here.tau(s, y), goal.log_time)
        self.restart(state)
        if not still and all(change.kind in _KINKS for change in changes):
            self.first = step.t1 - step.t0  # a crowd may follow: it is passed in steps as long as those before
        return Moved([(self.log_time, change) for change in changes], False, (me, event.surface), by)

    def _advance(self, solver: Solver) -> Step:
        if not np.isfinite(solver.h):  # it would look for a step for ever
            raise Undecided(
                f"forces or weights are beyond doubles after log t = {self.log_time:.6g}: it cannot be followed there; "
                "what was found so far is kept, and a smaller start may help."
            )
        t0, y0, field = solver.t, self.y, self.chart.field
        if not solver.step():
            raise Undecided(
                f"the step size fell below rounding after log t = {self.log_time:.6g}: accuracy rtol = {self.rtol:g} "
                "cannot be met there; what was found so far is kept, and a larger rtol may help."
            )
        t1, y1 = solver.t, solver.y
        first, self._slope = self._slope, None

        def slopes() -> tuple[Array, Array]:
            self._slope = field.rate(t1, y1)  # where the next step begins
            return field.rate(t0, y0) if first is None else first, self._slope

        return Step(t0, t1, y0, y1, slopes, cache(solver.path))

    def _stop(self, step: Step, goal: Goal) -> tuple[float, float] | None:
        """Where in a step a goal is reached, and at which log time: at exactly the one aimed at, if it was that."""
        problem, here = self.geometry.problem, self.chart

        def gaps(s: float) -> list[float]:
            y = step.dense(s)
            found = [goal.log_time - here.tau(s, y)]
            if np.isfinite(goal.log_loss) or np.isfinite(goal.margin):
                q = here.margins(s, y)
                found += [problem.log_loss_of(q) - goal.log_loss, goal.margin - float(q.min())]
            return found

        if min(gaps(step.t1)) > 0:
            return None
        s = step.t0 if min(gaps(step.t0)) <= 0 else root(lambda s: min(gaps(s)), step.t0, step.t1)
        left = gaps(s)
        return s, goal.log_time if left[0] == min(left) else min(here.tau(s, step.dense(s)), goal.log_time)

    def verdict(self, goal: Goal) -> Why | None:
        """Whether it goes on in another way."""
        if self.resting:
            return "rest"
        if self.fallen:
            return "coupled"
        if self.out_of_clock:
            return "done" if self.log_time >= goal.log_time else self._lost()
        live = self.margins()[self.chart.counts]
        tried = self.busy > _BUSY or (self.clock == "time" and self.taken >= _TRIAL)
        if tried and self.log_time < _CROWDED and self.dearer:
            return "coupled"
        if self.clock == "norm":
            return "coupled" if live.min(initial=np.inf) < _UNFITTED else None
        if live.min() > FITTED:
            return "late"
        noise = _rounding(self.chart, self.s, self.y)
        here = _with_small_as_they_were(self.chart, self.y)
        speed = _speed(self.chart, here, self.chart.field.rate(self.s, here))
        if speed <= max(0.01 * self.rtol, 3 * noise) and noise < 1e-5:
            return "rest"
        if noise <= _NOISE:
            return None
        if self.log_time >= goal.log_time:
            return "done"
        last = noise > _DROWNED * self.rtol
        if (last or self.taken % _LOOKS == 0) and level(self.geometry, self._state) is not None:
            return "level"
        return self._lost() if last else None

    def _lost(self) -> Why:
        q = self.margins()
        wrong = np.flatnonzero(q <= 0)
        raise Undecided(
            f"the loss stays near {np.exp(self.geometry.problem.log_loss_of(q)):.4g}: the neurons that are left do not "
            f"classify {wrong.size} of {q.size} points{f' ({named(wrong)})' if wrong.size else ''}, whose pulls cancel "
            f"those of the other points to rounding at log t = {self.log_time:.6g}, and the flow cannot be followed "
            "further; what was found so far is kept, and more neurons, or the data without these points, may be fitted."
        )


def implicit_pays(geometry: Geometry, goal: Goal, log_time: float, q: Array, fold: float, busy: float) -> bool:
    """Whether implicit steps to the goal are cheaper than ``fold`` explicit ones an e-fold, some with events."""
    ahead = min(goal.log_time - log_time, geometry.problem.log_loss_of(q) - goal.log_loss)
    return fold * ahead * (1.0 - _EVENT * busy) > _WHOLE or log_time > _AGED


def named(points: Sequence[int] | Index) -> str:
    """List points by their numbers, the first few of many: ``3, 17``."""
    shown = ", ".join(str(int(i)) for i in points[:_SHOWN])
    return f"{shown}{', ...' if len(points) > _SHOWN else ''}"


def _moved(here: LateChart, s: float, y: Array) -> float:
    """By what part of their size neurons have moved since the last event, where the chart begins; growth included."""
    (V0, last0), (V1, last1) = here.rows(here.y0), here.rows(y)
    size = np.linalg.norm(V0, axis=1) + 1e-300
    turn = (np.linalg.norm(V1 - V0, axis=1) + np.abs(last1 - last0)) / size
    return float(turn.max(initial=0.0)) + (s if here.clock == "norm" else 0.0)


def _rounding(here: LateChart, s: float, y: Array) -> float:
    """How large a velocity may be from rounding alone, relative to the neurons: opposite pulls grow like t."""
    pulls = here.pull(s, y).p * here.geometry.problem.data.norms
    return float(1e-15 * pulls.sum())


def _speed(here: LateChart, y: Array, slope: Array) -> float:
    """Largest velocity of a neuron relative to its size; those that are caught do not count."""
    V, last = here.rows(y)
    dV, da = here.rows(slope)
    size = np.sqrt(np.einsum("jd,jd->j", V, V) + last**2) + 1e-300
    speed = np.sqrt(np.einsum("jd,jd->j", dV, dV) + da**2) / size
    return float(speed[~_caught(here, V, dV)].max(initial=0.0))


def _with_small_as_they_were(here: LateChart, y: Array) -> Array:
    """Put neurons that have long shrunk where the chart began: one that goes on shrinking ends as rounding."""
    small = here.unit < here.smallest(_PINNED)
    if not small.any():
        return y
    out = y.copy()
    now, then = here.rows(out), here.rows(here.y0)
    now[0][small], now[1][small] = then[0][small], then[1][small]
    return out


def _caught(here: LateChart, V: Array, dV: Array) -> Flags:
    """Which balanced neurons shrink straight against the force, and have done so for long.

    Beside the neuron all that is not on this ray grows as e^(2 rate t), so that it is on it exactly: it shrinks for
    ever if the forces stay as they are.
    """
    size = np.linalg.norm(V, axis=1)
    with np.errstate(divide="ignore"):
        shrunk = here.balanced & here.tied & (here.unit + np.log(size) < here.smallest(_PINNED))
    if not shrunk.any():
        return np.asarray(shrunk)
    pace, along = np.linalg.norm(dV, axis=1), np.einsum("jd,jd->j", V, dV) / np.where(size > 0, size, 1.0)
    aside = np.linalg.norm(dV - (along / np.where(size > 0, size, 1.0))[:, None] * V, axis=1)
    return np.asarray(shrunk & (along < 0) & (aside <= _STRAIGHT * pace))


def later(log_start: float, t: Any) -> Any:
    """``log(e^log_start + t)``."""
    with np.errstate(divide="ignore"):
        return np.logaddexp(log_start, np.log(np.maximum(t, 0.0)))


def difference(log_end: float, log_start: float) -> float:
    """``e^log_end - e^log_start``, at most the largest double."""
    if log_end == np.inf or log_end > 709:
        return np.inf if log_end > max(log_start, 709) or log_end == np.inf else 0.0
    if log_start == -np.inf:
        return float(np.exp(log_end))
    return float(np.exp(log_end) * -np.expm1(log_start - log_end))
