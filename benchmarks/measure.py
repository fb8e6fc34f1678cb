"""What a problem and a solver are, and how one solver is measured on one case.

A **problem** is a file in ``problems/`` with a docstring for the page and

- ``TITLE``; ``TASK``, the name of the function that a solver needs to take part;
- ``CASES``: name -> `Case`. ``Case.make()`` gives the arguments of that function;
- ``error(given, reference, answer)`` -> float or None, how far off an answer is; ``reference(*given)`` (optional) is
  computed once and kept;
- ``targets(cells)`` (optional) -> what was promised, as `Target`;
- ``SMOKE`` (optional): the name of a case of milliseconds, which warms a solver up and on which the tests hold all
  solvers to their promise; ``PICTURES`` (optional): how the page draws it.

A **solver** is a file in ``solvers/`` with

- ``LABEL``; ``NEEDS`` (optional), modules that must be there; ``NOTE`` (optional), a sentence for the page;
- a function named like each task it can do, which returns the answer, or `Found` with figures beside it. If it yields,
  the error is followed while it goes. If it returns a function, only that is timed: tuning and compiling come first;
- ``SETTINGS`` (optional): task -> values of a last argument, from rough to fine (a tolerance, a step), one run each;
- ``PROMISE``: task -> the largest error on the smoke case at the finest setting; the tests hold it to that.

Only the solver is on the clock: seconds are those of the processor, all threads together, the least of a few rounds.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import inspect
import math
import os
import pickle
import pkgutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
KEPT = HERE / "results"  # references, which take longer than what they are references for
_LINUX = Path("/proc/self/clear_refs").exists()
_SHORT = 0.25  # seconds; a shorter run is repeated for so long, for the clock of the processor ticks in milliseconds
_ROUNDS = 3
_LOOK = 0.05  # seconds between looks at the clock


@dataclass(frozen=True)
class Case:
    """One case of a problem.

    Attributes
    ----------
    make : callable
        Gives the arguments of a solver.
    budget : float
        Processor seconds of one run.
    sizes : mapping
        What the cost is drawn against.
    solvers : mapping, optional
        Solver -> its settings here, or None for its own. Left out, all who can take part, with their own settings.
    """

    make: Callable[[], tuple[Any, ...]]
    budget: float = 20.0
    sizes: Mapping[str, Any] = field(default_factory=dict)
    solvers: Mapping[str, Sequence[Any] | None] | None = None


@dataclass(frozen=True)
class Found:
    """An answer, and figures that belong to it."""

    value: Any
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """Something promised, and what came out: a value with its bound, ``"<="`` or ``">="``."""

    what: str
    value: float | None
    bound: str
    limit: float
    unit: str = ""
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether it is kept; what could not be measured is not."""
        if self.value is None or math.isnan(self.value):
            return False
        return self.value <= self.limit if self.bound == "<=" else self.value >= self.limit


class Cells(list[dict[str, Any]]):
    """What was measured, found by case, solver and setting."""

    def get(self, case: str, solver: str = "reluflow", setting: Any = None) -> dict[str, Any] | None:
        """Return the cell, the last one if no setting is named."""
        found = [
            cell
            for cell in self
            if cell["case"] == case and cell["solver"] == solver and setting in (None, cell["setting"])
        ]
        return found[-1] if found else None

    def figure(self, name: str, case: str, solver: str = "reluflow", setting: Any = None) -> float | None:
        """Return a number of a finished cell, None where there is none."""
        cell = self.get(case, solver, setting)
        if cell is None or cell["status"] != "done":
            return None
        found: float | None = cell[name] if name in cell else cell["figures"].get(name)
        return found

    def ratio(self, name: str, case: str, over: str, under: str = "reluflow") -> float | None:
        """Return a number of one solver over that of another."""
        above, below = self.figure(name, case, over), self.figure(name, case, under)
        return None if above is None or not below else above / below


class TimeUp(Exception):
    """The budget of a run is spent."""


def modules(folder: str) -> dict[str, ModuleType]:
    """Import what is in ``problems`` or ``solvers``; a name with an underscore is a helper."""
    package = importlib.import_module(f"benchmarks.{folder}")
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__) if not found.name.startswith("_"))
    return {name: importlib.import_module(f"benchmarks.{folder}.{name}") for name in names}


def missing(solver: ModuleType) -> str:
    """Return which module a solver lacks, if any."""
    return next((name for name in getattr(solver, "NEEDS", ()) if importlib.util.find_spec(name) is None), "")


def settings(solver: ModuleType, problem: ModuleType, case: Case, name: str) -> Sequence[Any]:
    """Return the settings to run, none at all if the solver does not take part; one ``None`` if it has no setting."""
    if not hasattr(solver, problem.TASK) or (case.solvers is not None and name not in case.solvers):
        return ()
    own = getattr(solver, "SETTINGS", {}).get(problem.TASK, (None,))
    return own if case.solvers is None or case.solvers[name] is None else case.solvers[name]  # type: ignore[return-value]


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Raise `TimeUp` after so many seconds of the processor (not on Windows).

    A clock on the wall looks at that of the processor now and then: Linux reads the latter in ticks only while a timer
    of its own is set on it, and short runs would seem to take nothing.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    begun = time.process_time()

    def look(*_: Any) -> None:
        if time.process_time() - begun > seconds:
            raise TimeUp

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, _LOOK), _LOOK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def resident(name: str) -> float | None:
    """Return ``VmRSS`` (now) or ``VmHWM`` (the most since it was forgotten), in MB; None where there is no /proc."""
    if not _LINUX:
        return None
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def forget() -> float | None:
    """Begin to measure the peak of memory anew; return what is held now, in MB.

    What earlier work has freed is given back first, or it would be used again and not be counted.
    """
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


class Watch:
    """A clock that can be held."""

    def __init__(self) -> None:
        self.cpu, self.wall = 0.0, 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time inside."""
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu += time.process_time() - cpu
            self.wall += time.perf_counter() - wall


def reference(problem: ModuleType, name: str, given: tuple[Any, ...], stamp: str = "") -> Any:
    """Compute what answers are held against, or take it from where it was kept under this stamp."""
    if not hasattr(problem, "reference"):
        return None
    plain = "".join(letter if letter.isalnum() else "-" for letter in name)
    file = KEPT / f"{problem.__name__.rpartition('.')[2]}.{plain}.{stamp}.pickle"
    if stamp and file.exists():
        return pickle.loads(file.read_bytes())
    found = problem.reference(*given)
    if stamp:
        KEPT.mkdir(exist_ok=True)
        file.write_bytes(pickle.dumps(found))
    return found


def once(work: Callable[[], Any], judge: Callable[[Any], float | None], seconds: float) -> dict[str, Any]:
    """Run a solver once: what it took, and how far off it ended; for one that yields, all the way."""
    watch, points, found, status, note = Watch(), list[list[float | None]](), Found(None), "done", ""
    held = forget()
    try:
        with budget(seconds), watch.running():
            result = work()
        if callable(result):  # that was the preparation
            work, watch, held = result, Watch(), forget()
            with budget(seconds), watch.running():
                result = work()
        if inspect.isgenerator(result):
            while watch.cpu < seconds:
                with budget(max(seconds - watch.cpu, 1e-3)), watch.running():
                    value = next(result, _END)
                if value is _END:
                    break
                found = value if isinstance(value, Found) else Found(value)
                points.append([watch.cpu, watch.wall, judge(found.value)])
        else:
            found = result if isinstance(result, Found) else Found(result)
            _repeat(work, watch, seconds)
    except TimeUp:
        status, note = "done" if points else "out of time", f"stopped after {seconds:g} s"
    except Exception as error:  # a rival may fail in any way, and that is a result
        status, note = "failed", f"{type(error).__name__}: {error}"[:300]
    peak = resident("VmHWM")
    off = points[-1][2] if points else judge(found.value) if status == "done" else None
    return {
        "status": status,
        "note": note,
        "cpu": watch.cpu,
        "wall": watch.wall,
        "error": off if off is None or math.isfinite(off) else None,
        "memory": None if peak is None or held is None else max(peak - held, 0.0),
        "peak": peak,
        "points": points,
        "figures": dict(found.figures),
    }


_END = object()


def _repeat(work: Callable[[], Any], watch: Watch, seconds: float) -> None:
    """Do short work again, many times in one go, a few rounds; the watch then shows the least time of one."""
    times = math.ceil(_SHORT / max(watch.wall, 1e-6))
    for _ in range(_ROUNDS if times > 1 and watch.wall < seconds else 0):
        again = Watch()
        with budget(seconds), again.running():
            for _ in range(times):
                work()
        watch.cpu, watch.wall = min(watch.cpu or math.inf, again.cpu / times), min(watch.wall, again.wall / times)


def cells(
    problem: ModuleType, case: str, solver: ModuleType, stamp: str = "", share: float = 1.0
) -> Iterator[dict[str, Any]]:
    """Measure one solver on one case, setting by setting, in this share of the budget; say before when each begins."""
    task, about = problem.TASK, problem.CASES[case]
    name = solver.__name__.rpartition(".")[2]
    warm_up(problem, solver)
    given = about.make()
    exact = reference(problem, case, given, stamp)

    def judge(answer: Any) -> float | None:
        off = None if answer is None else problem.error(given, exact, answer)
        return None if off is None else float(off)

    for setting in settings(solver, problem, about, name):
        arguments = given if setting is None else (*given, setting)
        yield {"begun": time.process_time(), "budget": share * about.budget}
        found = once(lambda: getattr(solver, task)(*arguments), judge, share * about.budget)  # noqa: B023
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        yield {"setting": setting, **found, "sizes": dict(about.sizes), "load": load}
        if found["status"] == "out of time":  # a finer one takes longer
            return


def warm_up(problem: ModuleType, solver: ModuleType) -> None:
    """Compile, or load what was compiled: the first call is not measured."""
    name = solver.__name__.rpartition(".")[2]
    smoke = getattr(problem, "SMOKE", None)
    if smoke is None or (some := settings(solver, problem, problem.CASES[smoke], name)) == ():
        return
    given = problem.CASES[smoke].make()
    with suppress(Exception), budget(30.0):
        found = getattr(solver, problem.TASK)(*given, *([] if some[0] is None else [some[0]]))
        found = found() if callable(found) else found
        if inspect.isgenerator(found):
            next(found)
