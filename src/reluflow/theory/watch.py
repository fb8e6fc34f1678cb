"""What claims look for in a run: cones entered and left, outputs, losses by class, trends towards a limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..dynamics import Trajectory
from ..problem import check_time
from ..problem.types import Array, Flags
from .accuracy import Accuracy, accuracy
from .base import Claim, Observation
from .facts import Facts

#: An error that shrinks at all, if only like 1/sqrt(log t), passes; see `trend`.
_SLACK = 1.5
_FALLING = 0.9
_UNSETTLED = 0.1
_REACH = 16
_EARLIEST = 5.0


class Decrease(NamedTuple):
    """The largest decrease of ``s_j y_i w_j.x_i`` between two records, relative to ``|w_j||x_i|``."""

    size: float
    record: int
    neuron: int
    sample: int


class Watch:
    """A run seen by the theory of orthogonally separable data, each quantity computed once."""

    def __init__(self, facts: Facts, run: Trajectory) -> None:
        self.facts, self.run = facts, run

    @property
    def error(self) -> Accuracy:
        """How accurately the run is known: what is not held against a claim."""
        return accuracy(self.run)

    @cached_property
    def _scan(self) -> dict[str, Any]:
        """One pass over the records, so that nothing of size T x p x n is kept."""
        run, data = self.run, self.facts.data
        units, positive, s = data.X / data.norms[:, None], data.y > 0, self.facts.signs
        names = ("plus", "minus", "still", "clear", "astray", "felt")
        flags = {name: np.zeros((len(run), run.p), bool) for name in names}
        own, error, on = np.outer(s, data.y), self.error.sizes, self.error.kink
        worst, before, log_before = Decrease(0.0, 0, 0, 0), None, None
        for k in range(len(run)):
            check_time("going through the run")
            cosine = run.directions[k] @ units.T
            active = cosine > on
            flags["plus"][k] = (active == positive).all(axis=1)
            flags["minus"][k] = (active != positive).all(axis=1)
            flags["still"][k] = ~active.any(axis=1)
            flags["clear"][k] = (cosine < -on).all(axis=1)
            flags["astray"][k] = (own * cosine < -error).any(axis=1)
            flags["felt"][k] = (cosine > error).any(axis=1)
            log_norm = run.log_norms[k]
            if before is not None and log_before is not None:
                worst = max(worst, _decrease(cosine, before, log_norm, log_before, s, data.y, k), key=lambda d: d.size)
            before, log_before = cosine, log_norm
        return {**flags, "worst": worst}

    @property
    def plus(self) -> Flags:
        """Which neurons are in S+ at which record, shape (T, p)."""
        return np.asarray(self._scan["plus"])

    @property
    def minus(self) -> Flags:
        """Which are in S-."""
        return np.asarray(self._scan["minus"])

    @cached_property
    def dead(self) -> Flags:
        """Which are dead: not those that a record meets just as they cross, when they feel nothing for that moment."""
        still, clear = self._scan["still"], self._scan["clear"]
        again = np.vstack([still[1:], still[-1:]])
        return np.asarray(still & (clear | again))

    @property
    def astray(self) -> Flags:
        """Which are outside the cone of their own sign by more than the error of the run."""
        return np.asarray(self._scan["astray"])

    @property
    def felt(self) -> Flags:
        """Which feel a sample, by more than the error of the run."""
        return np.asarray(self._scan["felt"])

    @property
    def loose(self) -> Flags:
        """Which are neither in the cone of their own sign nor dead, by more than the error of the run."""
        return self.astray & self.felt

    def left(self, inside: Flags, outside: Flags) -> Flags:
        """Which were inside at an earlier record and are outside now, shape (T - 1, p)."""
        return np.asarray(np.logical_or.accumulate(inside, axis=0)[:-1] & outside[1:])

    @property
    def decrease(self) -> Decrease:
        """The largest decrease of an activation that should only grow."""
        found: Decrease = self._scan["worst"]
        return found

    @cached_property
    def home(self) -> Flags:
        """Which neurons are in the cone of their own sign, shape (T, p)."""
        s = self.facts.signs
        return (self.plus & (s > 0)) | (self.minus & (s < 0))

    @cached_property
    def trapped(self) -> Flags:
        """Which are in the cone of their own sign, or dead."""
        return self.home | self.dead

    @cached_property
    def all_trapped(self) -> int | None:
        """First record at which every neuron is trapped."""
        done = np.flatnonzero(self.trapped.all(axis=1))
        return int(done[0]) if done.size else None

    @cached_property
    def log_trapped(self) -> float | None:
        """Log of a time before which not every neuron is trapped, the latest known.

        The last event before the record that shows it, or else the record before.
        """
        done = self.all_trapped
        if done is None or done == 0:
            return None if done is None else float(self.run.log_time[0])
        first, last = self.run.log_time[done - 1], self.run.log_time[done]
        times = self.run.events["log_time"]
        inside = times[(times >= first) & (times <= last)]  # a record may be taken at an event, on the hyperplane
        return float(inside.max() if inside.size else first)

    def members(self, record: int) -> tuple[Flags, Flags]:
        """Which neurons carry the positive and the negative class at a record (dead ones carry nothing)."""
        live = ~self.dead[record]
        s = self.facts.signs
        return self.plus[record] & (s > 0) & live, self.minus[record] & (s < 0) & live

    @cached_property
    def margins(self) -> Array:
        """``q_i`` at every record, shape (T, n)."""
        return self.run.margins()

    @cached_property
    def log_output(self) -> Array:
        """Log of ``max_i |f(x_i)|``, shape (T,); far below the smallest double if need be."""
        found = np.full(len(self.run), -np.inf)
        for k, net in enumerate(self.run.networks()):
            mantissa, log_factor = net.scaled_outputs(self.facts.data.X)
            with np.errstate(divide="ignore"):
                found[k] = np.log(np.abs(mantissa).max()) + log_factor
        return found

    @cached_property
    def log_class_loss(self) -> Array:
        """Log of the loss of the positive and of the negative samples, shape (T, 2); -inf for an empty class."""
        data, problem = self.facts.data, self.facts.problem
        parts = problem.loss.log_value(self.margins) + np.log(problem.weight)
        found = np.full((len(self.run), 2), -np.inf)
        for column, members in enumerate((data.positives, data.negatives)):
            if members.size:
                found[:, column] = np.logaddexp.reduce(parts[:, members], axis=1)
        return found

    @cached_property
    def log_steps(self) -> Array:
        """Log of the time between successive records, shape (T - 1,)."""
        t0, t1 = self.run.log_time[:-1], self.run.log_time[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(t1 > t0, t1 + np.log(-np.expm1(t0 - t1)), -np.inf))

    def log_group_norms(self) -> Array:
        """Log of the sum of ``|w_j|^2`` over those who carry each class at the record, shape (T, 2)."""
        found = np.full((len(self.run), 2), -np.inf)
        for k in range(len(self.run)):
            check_time("going through the run")
            for column, group in enumerate(self.members(k)):
                if group.any():
                    found[k, column] = np.logaddexp.reduce(2 * self.run.log_norms[k, group])
        return found

    @cached_property
    def late(self) -> npt.NDArray[np.intp]:
        """Records where every neuron is trapped and every sample of a class with neurons is clearly fitted."""
        if self.all_trapped is None:
            return np.empty(0, np.intp)
        fitted = np.ones(len(self.run), bool)
        for group, members in zip(
            self.members(-1), (self.facts.data.positives, self.facts.data.negatives), strict=True
        ):
            if group.any() and members.size:
                fitted &= self.margins[:, members].min(axis=1) >= 2.0
        ready = fitted & (np.arange(len(self.run)) >= self.all_trapped) & (self.run.log_time >= _EARLIEST)
        open_ = np.flatnonzero(~ready)
        return np.arange(open_[-1] + 1 if open_.size else 0, len(self.run))

    @cached_property
    def settled(self) -> float:
        """Log time from which the classes share their loss as they will in the limit (inf: not seen by half the run).

        In the limit the samples of a class weigh like their multipliers; before, limits need not even be approached.
        """
        data, times = self.facts.data, self.run.log_time[self.late]
        far = np.zeros(times.size)
        for members, solution in zip((data.positives, data.negatives), self.facts.class_margins, strict=True):
            if solution is None:
                continue
            q = self.margins[np.ix_(self.late, members)]
            with np.errstate(under="ignore"):
                weights = np.exp(q.min(axis=1, keepdims=True) - q)
            weights /= weights.sum(axis=1, keepdims=True)
            if solution.degenerate:  # the multipliers are not unique, the support is
                part = 1 - weights[:, np.isin(members, solution.support)].sum(axis=1)
            else:
                part = np.abs(weights - solution.dual[members] / solution.dual.sum()).sum(axis=1) / 2
            far = np.maximum(far, part)
        before = times <= self.run.log_time[-1] / 2
        open_ = np.flatnonzero(before & (far > _UNSETTLED))
        first = int(open_[-1]) + 1 if open_.size else 0
        return float(times[first]) if first < before.sum() else inf


def _decrease(now: Array, before: Array, log_now: Array, log_before: Array, s: Array, y: Array, k: int) -> Decrease:
    top = np.maximum(log_now, log_before)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(under="ignore"):
        change = now * np.exp(log_now - top)[:, None] - before * np.exp(log_before - top)[:, None]
    loss = -(s[:, None] * y) * change
    neuron, sample = divmod(int(np.argmax(loss)), loss.shape[1])
    return Decrease(float(loss[neuron, sample]), k, neuron, sample)


def watch(facts: Facts, run: Trajectory) -> Watch:
    """Return the view of a run, the same one for all claims."""
    return facts.once_of(run, "watch", lambda: Watch(facts, run))


def when(log_time: float) -> str:
    """Write a time for people.

    >>> when(0.0), when(-np.inf), when(1e4)
    ('t = 1', 't = 0', 'log t = 10000')
    """
    return f"t = {np.exp(log_time):.4g}" if log_time < 14 else f"log t = {log_time:.6g}"


def log_of(time: float) -> float:
    """Log of a time, -inf for the start."""
    return log(time) if time > 0 else -inf


def judged(claim: Claim, run: Trajectory, kept: bool | None, text: str, *numbers: Any) -> Observation:
    """Build an observation; what a discrete run breaks is not held against a statement about the flow."""
    if kept is False and run.method != "flow":
        return claim.seen(None, f"{text} (a run of {run.method}; the statement is about the flow)", *numbers)
    return claim.seen(kept, text, *numbers)


@dataclass(frozen=True)
class Trend:
    """How a quantity approaches the limit predicted for it.

    Attributes
    ----------
    kept : bool or None
        None: the run does not reach far enough to tell.
    error : float
        Distance from the limit at the end.
    rate : float
        c such that the error is ``c / log t`` at the end.
    exponent : float
        Slope of log error against log log t over the late records (nan if there are too few).
    """

    kept: bool | None
    error: float
    rate: float
    exponent: float


def trend(log_time: Array, error: Array, settled: float = _EARLIEST, nothing: float = 1e-9) -> Trend:
    """Whether an error tends to 0, at the slow rates there are: between 1/sqrt(log t) and 1/log t.

    What is below ``nothing``, the error of the run, counts as 0.

    Either ``error * sqrt(log t)`` at the end is no larger than in the first quarter (of log t), or, for an error that
    changed its sign there, the error at the end is smaller than in the second quarter. A run that has only just begun
    to approach a limit does not refute it: `kept` is None unless log t is 16 times what it was when things ``settled``.

    >>> times = np.linspace(10, 1000, 50)
    >>> trend(times, 3 / times).kept, trend(times, 0.3 + 0 * times).kept, trend(times[:2], 3 / times[:2]).kept
    (True, False, None)
    """
    if error.size == 0:
        return Trend(None, np.nan, np.nan, np.nan)
    flips = log_time[1:][(np.sign(error[1:]) * np.sign(error[:-1]) < 0) & (log_time[1:] <= log_time[-1] / 2)]
    settled = max(settled, float(flips.max(initial=0.0)))  # an error that changes its sign grows again before it falls
    error = np.abs(error)
    last, end = float(error[-1]), float(log_time[-1])
    some = error > 0
    exponent = float(np.polyfit(np.log(log_time[some]), np.log(error[some]), 1)[0]) if some.sum() > 2 else np.nan
    if last <= nothing:
        return Trend(True, last, last * end, exponent)
    early = log_time <= end / 4
    if early.sum() < 3:
        return Trend(None, last, last * end, exponent)
    envelope = float((error[early] * np.sqrt(log_time[early])).max())
    middle = (log_time >= end / 4) & (log_time <= end / 2)
    falling = bool(last <= _FALLING * error[middle].max(initial=0.0))
    kept = falling or bool(last * np.sqrt(end) <= _SLACK * envelope)
    return Trend(kept or (False if end >= _REACH * settled else None), last, last * end, exponent)
