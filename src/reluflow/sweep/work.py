"""What a worker does: a chunk of problems, each in its limits, each a row whatever becomes of it."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..problem import Interrupted, OutOfTime, ProblemError, ReluflowError, Undecided, time_limit
from ..problem.plain import plain
from ..theory import Facts
from .measures import warm_up
from .spec import Sweep
from .store import Journal

_LONGEST = 2000  # characters of a message that are kept
_MEGABYTE = 2**20


class Limits(NamedTuple):
    """What one problem may take: seconds, and MB beyond what the process has."""

    time: float | None = None
    memory: float | None = None

    @property
    def alarm(self) -> float:
        """Seconds after which code that never looks at the clock is interrupted."""
        return 0.0 if self.time is None else self.time + max(1.0, 0.25 * self.time)

    @property
    def hard(self) -> float:
        """Seconds after which a process that cannot even be interrupted is ended."""
        return np.inf if self.time is None else 2.0 * self.time + 10.0


@dataclass(frozen=True, slots=True)
class Task:
    """A chunk: some problems of a sweep, and where their rows go."""

    spec: Mapping[str, Any]
    place: str
    id: str
    out: str
    codes: Mapping[str, str]
    driver: str
    limits: Limits
    indices: tuple[int, ...]
    wanted: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


class Done(NamedTuple):
    """How many problems a chunk did, and in how many seconds."""

    problems: int
    seconds: float


class TooLong(BaseException):
    """The alarm of a problem; nobody but us may catch it."""


class Worker:
    """The sweep and the journal of a process, or of a thread of it."""

    def __init__(self, task: Task) -> None:
        self.sweep = Sweep.of(task.spec, task.place)
        self.journal = Journal(Path(task.out), task.id, task.codes, task.driver)
        warm_up(self.sweep.taken)

    def chunk(self, task: Task) -> Done:
        """Do a chunk; what is done is on file when this returns or fails."""
        begun, done, row = time.perf_counter(), 0, None
        self.journal.new_chunk()
        for index in task.indices:
            mark = {"begin": index, "at": round(time.time(), 3)}
            self.journal.write(*([row] if row else []), mark)
            row = None
            try:
                row = self._row(index, task.wanted.get(index), task.limits)
            except BaseException:
                self.journal.write({"left": index})
                raise
            done += 1
        if row:
            self.journal.write(row)
        return Done(done, time.perf_counter() - begun)

    def _row(self, index: int, wanted: Sequence[str] | None, limits: Limits) -> dict[str, Any]:
        begun = time.perf_counter()
        outcomes = self._measured(index, wanted, limits)
        row: dict[str, Any] = {"i": index, "f": self.sweep.fingerprint_at(index)}
        row["s"] = {label: state for label, (state, _, _) in outcomes.items()}
        row["v"] = {}
        arrays: dict[str, Any] = {}
        for label, (_, found, _) in outcomes.items():
            if found is not None:
                kept = {k: v for k, v in found.items() if isinstance(v, np.ndarray) and v.ndim}
                arrays |= {f"{label}.{k}": v for k, v in kept.items()}
                row["v"][label] = plain({k: v for k, v in found.items() if k not in kept})
        errors = {label: error for label, (_, _, error) in outcomes.items() if error}
        row |= {"e": errors} if errors else {}
        row |= {"a": self.journal.keep(arrays)} if arrays else {}
        return row | {"t": round(time.perf_counter() - begun, 6), "at": round(time.time(), 3)}

    def _measured(self, index: int, wanted: Sequence[str] | None, limits: Limits) -> dict[str, Outcome]:
        """Take the measures of a problem, one after the other, all of them in its limits."""
        asked = [one for one in self.sweep.taken if wanted is None or one.label in wanted]
        found: dict[str, Outcome] = {}
        over = Outcome("out of time", None, "the time limit ended.")
        try:
            with _within(limits):
                made = attempt(lambda: Facts.of(self.sweep.problem_at(index)))
                for one in asked:
                    take = partial(one.take, made.result)
                    found[one.label] = made if made.result is None else attempt(take)
        except TooLong:  # just between two of them
            pass
        return {one.label: found.get(one.label, over) for one in asked}


class Outcome(NamedTuple):
    """What became of a measure: a state, the result, and a message where there is none."""

    state: str
    result: Any
    error: str


def attempt(work: Callable[[], Any]) -> Outcome:
    """Do something, and say what became of it."""
    try:
        return Outcome("done", work(), "")
    except Interrupted:
        raise KeyboardInterrupt from None
    except TooLong as exc:
        return Outcome("out of time", None, str(exc))
    except Undecided as exc:  # who has some values all the same hands them over
        values = exc.partial if isinstance(exc.partial, dict) else None
        return Outcome("out of time" if isinstance(exc, OutOfTime) else "undecided", values, str(exc)[:_LONGEST])
    except MemoryError as exc:
        return Outcome("out of memory", None, f"there was not enough memory ({exc}).")
    except ReluflowError as exc:
        return Outcome("failed", None, str(exc)[:_LONGEST])
    except Exception as exc:  # a bug, ours or the user's: its problem says so, and the others go on
        at = traceback.extract_tb(exc.__traceback__)[-1]
        said = f"{type(exc).__name__}: {exc}"[:_LONGEST]
        return Outcome("failed", None, f"{said} ({Path(at.filename).name}, line {at.lineno})")


@contextmanager
def _within(limits: Limits) -> Iterator[None]:
    with time_limit(limits.time), _alarm(limits.alarm), _memory(limits.memory):
        yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Interrupt what never looks at the clock; only where signals can be had, in the main thread."""
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_signal: int, _frame: object) -> None:
        raise TooLong("the time limit ended, and it was interrupted.")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _memory(megabytes: float | None) -> Iterator[None]:
    """Let the process grow by no more than so much."""
    if megabytes is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    allowed = size + int(megabytes * _MEGABYTE)
    resource.setrlimit(resource.RLIMIT_AS, (allowed if hard < 0 else min(allowed, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def check_memory(megabytes: float | None) -> None:
    """Refuse a limit of memory where it could not be kept."""
    if megabytes is not None and not Path("/proc/self/statm").exists():
        raise ProblemError(f"memory_limit = {megabytes:g}: memory can be limited on Linux only; leave it out.")


_WORKERS = threading.local()


def work(task: Task) -> Done:
    """Do a chunk, here: what every engine calls in its processes."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        if getattr(_WORKERS, "key", None) != (task.out, task.driver):
            release()
            _WORKERS.one, _WORKERS.key = Worker(task), (task.out, task.driver)
        worker: Worker = _WORKERS.one
        return worker.chunk(task)


def release() -> None:
    """Close the journal of this thread."""
    if getattr(_WORKERS, "key", None) is not None:
        _WORKERS.one.journal.close()
        _WORKERS.one = _WORKERS.key = None
