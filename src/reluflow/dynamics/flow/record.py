"""Collecting the records and events of a flow."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...problem import Network, Problem
from ...problem.types import Array
from ..trajectory import EVENT, Events, Phase, Trajectory
from .dense import Dense, Legs
from .state import Moments, State

if TYPE_CHECKING:
    from ...sectors.hyperplanes import Surfaces
    from ..early.alignment import Alignment
    from .phases import Crossed, Passed

_MOST = 800  # records kept; beyond, every other one is dropped, and from then on every other step recorded
_KINDS = np.array(["deactivate", "slide", "activate"])  # by the side that a neuron is on then
_NONE = 2  # no side: it lies on the hyperplane and is not held
_EARLY = 20  # records of the early phase evenly in time, and as many while neurons turn


class Record(NamedTuple):
    """One moment: the k-th of some."""

    log_time: float
    log_loss: float
    neurons: Moments
    k: int

    def network(self, slope: float) -> Network:
        """Return it as a network."""
        U, log_w, log_a, sign = (part[self.k] for part in self.neurons)
        return Network.from_polar(U, log_w, log_a, sign, slope)


class Recorder:
    """Grows while a flow is integrated; `result` makes a trajectory of it at any moment."""

    def __init__(self, problem: Problem, settings: dict[str, Any]) -> None:
        self.problem = problem
        self.settings = settings
        self.records: list[Record] = []
        self.events: list[tuple[float, int, int, str]] = []
        self.chunks: list[Events] = []
        self.phases: list[Phase] = []
        self.alignment: Alignment | None = None
        self.dense: Dense | None = None
        self.margin = np.nan
        self.state: State  # the newest that was recorded by itself
        self._stride, self._idle, self._spare = 1, 0, False
        self._before: tuple[list[Record], Trajectory] | None = None

    def follow(self, legs: Legs) -> None:
        """Keep how the neurons moved in some steps."""
        if self.dense is None:
            self.dense = Dense(self.problem.net.slope)
        self.dense.add(legs)

    def add(self, log_time: float, state: State, q: Array) -> None:
        """Record a state and its margins; the newest is always there, others only every so many steps."""
        self._add(log_time, self.problem.log_loss_of(q), state.moment, 0)
        self.margin, self.state = float(q.min()), state

    def add_many(self, passed: Passed) -> None:
        """Record several."""
        for k, (log_time, log_loss) in enumerate(zip(passed.log_time.tolist(), passed.log_loss.tolist(), strict=True)):
            self._add(log_time, log_loss, passed.neurons, k)
        self.margin = passed.margin

    def _add(self, log_time: float, log_loss: float, neurons: Moments, k: int) -> None:
        if self._idle < self._stride - 1 and self.records:
            self._idle += 1
            if self._spare:
                self.records.pop()
            self._spare = True
        else:
            self._idle, self._spare = 0, False
        if self.records:
            log_time = max(log_time, self.records[-1].log_time)
        self.records.append(Record(log_time, log_loss, neurons, k))
        if len(self.records) > _MOST:
            self.records = self.records[::2] + ([] if len(self.records) % 2 else self.records[-1:])
            self._stride *= 2

    @property
    def last(self) -> Record:
        """The newest record."""
        return self.records[-1]

    def event(self, log_time: float, neuron: int, sample: int, kind: str) -> None:
        """Note an event."""
        self.events.append((log_time, neuron, sample, kind))

    def cross(self, crossed: Crossed, faces: Surfaces) -> None:
        """Note crossings; a surface may be that of several samples, and lie the other way for some."""
        flips = crossed.surface < 0
        k = np.where(flips, 0, crossed.surface)
        count = np.where(flips, 1, faces.start[k + 1] - faces.start[k])
        which = np.repeat(np.arange(k.size), count)
        place = np.arange(which.size) - np.repeat(np.cumsum(count) - count, count)
        sample = np.where(flips[which], -1, faces.samples[faces.start[k[which]] + place])
        side = crossed.side[which] * np.where(sample >= 0, faces.orient[sample], 1)
        rows = np.empty(which.size, EVENT)
        rows["log_time"], rows["neuron"], rows["sample"] = crossed.log_time[which], crossed.neuron[which], sample
        rows["kind"] = np.where(flips[which], "flip", _KINDS[side + 1])
        self.chunks.append(rows)

    def phase(self, name: str, log_start: float, log_end: float, steps: int) -> None:
        """Note a phase; one that goes on is prolonged."""
        if self.phases and self.phases[-1].name == name:
            last = self.phases.pop()
            log_start, steps = last.log_start, steps + last.steps
        self.phases.append(Phase(name, log_start, log_end, steps))

    def early(self, run: Alignment, t: float, log_end: float) -> None:
        """Take over the exact early phase up to time t, whose logarithm is log_end to the last digit."""
        self.alignment = run
        found, neuron = run._paths.events(0, run.p)
        by = np.flatnonzero(found["time"] <= t)
        rows = np.empty(by.size, EVENT)
        with np.errstate(divide="ignore"):
            rows["log_time"] = np.minimum(np.log(found["time"][by]), log_end)
        rows["neuron"], rows["sample"], rows["kind"] = neuron[by], found["sample"][by], found["kind"][by]
        self.chunks.append(rows)
        times = np.linspace(0.0, t, _EARLY + 1)
        times = times[times > 0]
        turns = run.last_event[(run.last_event > 0) & (run.last_event < t)]
        if turns.size:  # neurons may turn within the first instant of a long phase
            times = np.union1d(times, np.geomspace(turns.min() / 10, turns.max(), _EARLY))
        shot = run._paths.snapshot(times)
        U, log_w, log_a, sign = run._paths.directions(shot), shot.log_norm, shot.log_out, shot.sign
        if self.problem.train == "first":
            log_a = np.broadcast_to(self.problem.net.log_outs, log_w.shape)
        none, data, slope = np.empty((run.p, 0), dtype=np.int8), self.problem.data, run.problem.net.slope
        with np.errstate(under="ignore"):
            out = sign * np.exp(log_w + log_a)
        log_times = np.minimum(np.log(times), log_end)
        log_times[times == t] = log_end
        for k, log_time in enumerate(log_times):
            Z = U[k] @ data.X.T
            q = data.y * (out[k] @ np.maximum(Z, slope * Z, out=Z))
            self.add(float(log_time), State(U[k], log_w[k], log_a[k], sign[k].astype(float), none), q)
        self.phase("early", -np.inf, log_end, by.size)

    def hand_over(self, run: Alignment, state: State, log_time: float) -> None:
        """Note where the sides that neurons go on with are not those that the events of the early phase tell.

        The network as it is pulls a little otherwise than in the limit, and may take them off a hyperplane at once.
        """
        paths, events = run._paths, np.concatenate(self.chunks)
        events = events[events["sample"] >= 0]
        side = np.full(events.size, _NONE, dtype=np.int8)
        for k, kind in enumerate(_KINDS):
            side[events["kind"] == kind] = k - 1
        told, now = paths.faces.pattern(paths.start.sides), paths.faces.pattern(state.sides)
        told[told == 0] = -1  # as the early phase counts it
        told[events["neuron"], events["sample"]] = side  # the last one counts
        neuron, sample = np.nonzero((told != now) & np.isfinite(state.log_w)[:, None])
        rows = np.empty(neuron.size, EVENT)
        rows["log_time"], rows["neuron"], rows["sample"] = log_time, neuron, sample
        rows["kind"] = _KINDS[now[neuron, sample] + 1]
        self.chunks.append(rows)

    def result(self) -> Trajectory:
        """Everything so far; what was asked for before lends the snapshots of the records that are still there."""
        events = np.concatenate([*self.chunks, np.array(self.events, dtype=EVENT)])
        events = events[np.argsort(events["log_time"], kind="stable")]
        U, log_w, log_a, sign = (np.empty((len(self.records), *x.shape[1:])) for x in self.last.neurons)
        at = 0
        for _, some in groupby(self.records, lambda r: id(r.neurons)):
            group = list(some)
            which, rows = [r.k for r in group], slice(at, at + len(group))
            for new, x in zip((U, log_w, log_a, sign), group[0].neurons, strict=True):
                np.take(x, which, axis=0, out=new[rows], mode="clip")  # "raise" would make a copy
            at += len(group)
        run = Trajectory(
            self.problem,
            np.array([r.log_time for r in self.records]),
            np.array([r.log_loss for r in self.records]),
            U,
            log_w,
            log_a,
            sign.astype(np.int8),
            events,
            tuple(self.phases),
            "flow",
            self.settings,
            self.alignment,
            self.dense,
        )
        if self._before is not None:
            old, earlier = self._before
            pairs = zip(old, self.records, strict=False)
            run.borrow(earlier, next((k for k, (a, b) in enumerate(pairs) if a is not b), min(len(old), len(run))))
        self._before = list(self.records), run
        return run
