"""The loop of a discrete run: steps, records, checkpoints, a progress bar, and Ctrl-C."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...problem import Network, Problem, time_left
from ...problem.progress import bar
from .jump import Early
from .keep import Checkpoint, Records
from .state import State, network, snapshot, start
from .step import Plan, Stepper, log_step

Callback = Callable[[int, Network], object]

_CUT = ("interrupted", "time")  # reasons to stop that a later run may go on from
_CHECK = 64  # iterations between two looks at whether the weights are still numbers


@dataclass
class Run:
    """A run under way: what it has recorded, and where it is."""

    problem: Problem
    plan: Plan
    records: Records
    marks: list[int]
    checkpoint: Checkpoint
    until_log_loss: float
    callback: Callback | None
    early: int = 0

    def whole(self, tolerance: float, progress: bool) -> str:
        """Run, and return why it ended: steps, loss, callback, interrupted, time or diverged."""
        with _interruptible() as asked:
            begun = self._begin(tolerance, asked)
            return begun if isinstance(begun, str) else self._go(begun, asked, progress)

    def _begin(self, tolerance: float, asked: list[int]) -> State | str:
        """Return the state to go on from, or why the run is over already."""
        kept = self.checkpoint.load(self.records)
        if kept is not None:
            state, self.early = kept
            reached = self.records.size and self.records.log_loss[self.records.size - 1] <= self.until_log_loss
            return "loss" if reached else state
        if not tolerance:
            state = self._state(self.problem)
            return self._mark(0, -math.inf, self.problem.net) or state
        early = self._forward(tolerance, asked)
        if isinstance(early, str):
            return early
        state = self._state(self.problem.replace(net=early.network()))
        state.iteration = self.early
        state.log_time = self._early_time(self.early, early.step)
        return state

    def _state(self, problem: Problem) -> State:
        adam = self.plan.method == "adam"
        state = start(problem, self.plan.dtype, scaled=not adam and problem.train == "both")
        if adam:
            state.moments = tuple(np.zeros_like(x) for x in (state.W, state.W, state.a, state.a))
        return state

    def _forward(self, tolerance: float, asked: list[int]) -> Early | str:
        """Jump along the exact solution as long as every margin is below the tolerance."""
        flat = np.zeros(self.problem.data.n)
        step = math.exp(log_step(self.plan, self.problem.log_loss_of(flat)))
        early = Early.begin(self.problem, step, self.plan.subgradient)
        for mark in self.marks:
            while self.early < mark:
                count = min(early.allowed(math.log(tolerance)), mark - self.early)
                if not count:
                    return early
                early.advance(count)
                self.early += count
                if cut := _cut(asked):
                    self._mark(self.early, self._early_time(self.early, step), early.network())
                    return cut
            stopped = self._mark(self.early, self._early_time(self.early, step), early.network())
            if stopped:
                return stopped
        return early

    def _early_time(self, iteration: int, step: float) -> float:
        return math.log(iteration) + math.log(step) if iteration else -math.inf

    def _mark(self, iteration: int, log_time: float, net: Network) -> str:
        """Record, and return why to stop, if so."""
        if iteration <= self.records.last:
            return ""
        self.records.take(iteration, log_time, net)
        if self.callback is not None and self.callback(iteration, net) is True:
            return "callback"
        return "loss" if self.records.log_loss[self.records.size - 1] <= self.until_log_loss else ""

    def _go(self, state: State, asked: list[int], progress: bool) -> str:
        # A stochastic step knows the loss of its batch only, so there the whole loss is looked at once an epoch.
        measure = math.isfinite(self.until_log_loss) and not self.plan.batch
        stepper = Stepper(self.problem, self.plan, state, measure)
        with bar(self.plan.method, self.plan.steps, None if progress else False) as tell:
            stopped = ""
            for mark in [m for m in self.marks if m > self.records.last]:
                stopped = self._to(mark, stepper, asked, lambda: tell(state.iteration, lambda: self._words(state)))
                if stopped == "diverged" or not _finite(state):
                    return "diverged"
                if stopped in _CUT:
                    # The record that is added below is not part of the run that may go on later.
                    self.checkpoint.save(state, self.records, self.early)
                stopped = self._mark(state.iteration, state.log_time, self._read(state)) or stopped
                if stopped:
                    break
        if stopped not in _CUT:
            self.checkpoint.save(state, self.records, self.early)
        return stopped or "steps"

    def _words(self, state: State) -> str:
        """Say how far it is."""
        log_loss = self.problem.log_loss(self._read(state)) if _finite(state) else math.nan
        loss = f"e^{log_loss:.4g}" if log_loss <= -700 else f"{math.exp(log_loss):.3g}"
        return f"{state.iteration} steps, loss {loss}"

    def _to(self, mark: int, stepper: Stepper, asked: list[int], show: Callable[[], None]) -> str:
        """Iterate up to a mark, and return why it was not reached, if so."""
        state, until = stepper.state, -math.inf if self.plan.batch else self.until_log_loss
        every = stepper.batches if self.plan.batch and math.isfinite(self.until_log_loss) else 0
        with np.errstate(over="ignore", invalid="ignore"):  # of a step that is too large: found below
            while state.iteration < mark:
                if cut := _cut(asked):
                    return cut
                soon = state.iteration + _CHECK - state.iteration % _CHECK
                if stepper.advance(until, min(mark, soon) - state.iteration) <= until:
                    return "loss" if math.isfinite(until) else "diverged"  # or else the margins have overflowed
                if state.iteration % _CHECK == 0 and not _finite(state):
                    return "diverged"
                if every and state.iteration % every == 0 and self._reached(state):
                    return "loss"
                if self.checkpoint.due and _finite(state):
                    self.checkpoint.save(state, self.records, self.early)
                show()
        return ""

    def _read(self, state: State) -> Network:
        return network(self.problem.net.slope, *snapshot(state))

    def _reached(self, state: State) -> bool:
        return _finite(state) and self.problem.log_loss(self._read(state)) <= self.until_log_loss


def _cut(asked: list[int]) -> str:
    """Return why to stop before the next step, if so."""
    return "interrupted" if asked else "time" if time_left() <= 0 else ""


def _finite(state: State) -> bool:
    # The sum is one pass without a mask; it is not finite if an entry is not, or if the entries are absurd anyway.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(state.W.sum()) and np.isfinite(state.a.sum()))


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Note Ctrl-C instead of raising it in the middle of a step; a second one is raised."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # ignored, or not ours to handle
        yield asked
        return

    def note(number: int, frame: Any) -> None:
        if asked:
            before(number, frame)
        asked.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
