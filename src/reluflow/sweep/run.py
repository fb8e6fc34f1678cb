"""Running a sweep: what the folder does not hold yet is cut into chunks, handed out, and looked after."""

from __future__ import annotations

import os
import secrets
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..problem import Interrupted, ProblemError
from ..problem.progress import bar
from ..problem.words import count
from .engines import Engine, Lost, engine_of
from .ledger import Ledger
from .results import SweepResults, open_sweep
from .spec import Sweep, check_limits
from .store import Journal, prepare, versions
from .work import Done, Limits, Task, check_memory

_PATIENCE = 0.5  # seconds between two looks at the folder
_LIVES = 3  # processes that may end on a problem before it is given up
_ROUNDS = 3  # times that nothing at all may come of handing the rest out


def run_sweep(
    sweep: Sweep,
    out: str | os.PathLike[str],
    *,
    jobs: int = 1,
    dask: str | None = None,
    shard: tuple[int, int] | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    retry: bool = False,
    progress: bool | None = None,
) -> SweepResults:
    """Compute what a folder does not hold yet of a sweep.

    Rows are kept as they come: whatever is killed, the same call goes on where it was. Several calls, on one machine or
    many, may share a folder.

    Parameters
    ----------
    sweep : Sweep
    out : path
        The folder; it is made when it is not there, and refused if it holds another sweep.
    jobs : int
        How many processes; 1 works in this one.
    dask : str, optional
        Address of a Dask scheduler whose workers do it instead, or ``"local"`` for a cluster of ``jobs`` processes.
    shard : (int, int), optional
        ``(k, n)``: only the k-th of n equal parts, counted from 1.
    time_limit, memory_limit : float, optional
        Seconds, and MB, that one problem may take, instead of those of the spec; one that takes more is a row that says
        so.
    retry : bool
        Try again what is there but not done: failed, undecided, out of time, out of memory.
    progress : bool, optional
        Show how far it is; default: on a terminal.

    Returns
    -------
    SweepResults

    Raises
    ------
    Interrupted
        By Ctrl-C; ``partial`` holds the `SweepResults`.

    Examples
    --------
    >>> import tempfile
    >>> sweep = Sweep(data={"source": "EX1"}, network={"width": [2, 3]}, measures=["align"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_sweep(sweep, folder).status().states["done"]
    2
    """
    if not isinstance(sweep, Sweep):
        raise ProblemError(f"sweep must be a Sweep, not {type(sweep).__name__}; Sweep.read(FILE) reads a spec.")
    limits = _limits(sweep, time_limit, memory_limit)
    if isinstance(jobs, bool) or not isinstance(jobs, (int, np.integer)) or jobs < 1:
        raise ProblemError(f"jobs = {jobs!r}: a positive number of processes is needed.")
    part, parts = _shard(shard)
    folder = prepare(out, sweep)
    codes = versions(folder, sweep)
    ledger = Ledger(folder, sweep.id, len(sweep), [one.label for one in sweep.taken], codes)
    ledger.refresh()
    if retry:
        ledger.forget_failures()
    if not _left(ledger, part, parts).size:
        return open_sweep(folder)
    driver = Driver(sweep, folder, ledger, limits, codes, engine_of(dask, int(jobs)))
    try:
        with bar("sweep", len(sweep), progress) as tell:
            driver.run(part, parts, tell)
    except KeyboardInterrupt:
        driver.leave()
        found = open_sweep(folder)
        have = len(sweep) - found.status().left
        raise Interrupted(
            f"interrupted; {have} of {count(len(sweep), 'row')} are kept in {folder}, and the same command goes on.",
            found,
        ) from None
    finally:
        driver.close()
    return open_sweep(folder)


def _limits(sweep: Sweep, time_limit: float | None, memory_limit: float | None) -> Limits:
    said = {"time": time_limit, "memory": memory_limit}
    found = {**sweep.limits, **{key: value for key, value in said.items() if value is not None}}
    check_limits(found)
    check_memory(found.get("memory"))
    return Limits(found.get("time"), found.get("memory"))


def _shard(shard: Any) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    try:
        part, parts = (int(k) for k in shard)
    except (TypeError, ValueError):
        raise ProblemError(f"shard = {shard!r}: K/N is needed, as in 3/16: the third of 16 parts.") from None
    if not 1 <= part <= parts:
        raise ProblemError(f"shard = {part}/{parts}: K/N is needed with K from 1 to N, as in 3/16.")
    return part, parts


def _left(ledger: Ledger, part: int, parts: int) -> npt.NDArray[np.intp]:
    missing = ledger.missing()
    return np.asarray(missing[missing % parts == part - 1])


def slurm_line(spec: Path, out: Path, parts: int, options: list[str]) -> str:
    """Return the command that runs all parts as a SLURM array.

    >>> slurm_line(Path("spec.toml"), Path("out"), 16, ["--limit-time", "60"])
    "sbatch --array=1-16 --cpus-per-task=1 --wrap 'reluflow sweep run spec.toml --out out --limit-time 60 --shard
    $SLURM_ARRAY_TASK_ID/16'"
    """
    words = " ".join(shlex.quote(word) for word in ("reluflow", "sweep", "run", str(spec), "--out", str(out), *options))
    whole = f"{words} --shard $SLURM_ARRAY_TASK_ID/{parts}"
    return f"sbatch --array=1-{parts} --cpus-per-task=1 --wrap {shlex.quote(whole)}"


class Driver:
    """Hands out chunks, and looks after those that do them."""

    def __init__(
        self, sweep: Sweep, folder: Path, ledger: Ledger, limits: Limits, codes: dict[str, str], engine: Engine
    ) -> None:
        self.sweep, self.folder, self.ledger, self.limits, self.codes = sweep, folder, ledger, limits, codes
        self.engine, self.name = engine, secrets.token_hex(8)
        self.seconds, self.problems = 0.0, 0
        self.overdue: set[int] = set()
        self._journal: Journal | None = None
        self._document = sweep.document()

    def run(self, part: int, parts: int, tell: Callable[[float, Callable[[], str]], None]) -> None:
        """Do all that is left, in an order of our own: others may be at it too, and early rows are of everywhere."""
        idle = 0
        while (left := _left(self.ledger, part, parts)).size:
            self._bury(left.tolist())
            self._hand_out(np.random.default_rng().permutation(left).tolist(), tell)
            self.ledger.refresh()
            idle = idle + 1 if _left(self.ledger, part, parts).size == left.size else 0
            if idle == _ROUNDS:
                raise ProblemError(
                    f"{count(left.size, 'problem')} were handed out {_ROUNDS} times and no row came back; the workers "
                    f"must see the folder {self.folder.resolve()}, and may not be killed each time."
                )

    def _hand_out(self, waiting: list[int], tell: Callable[[float, Callable[[], str]], None]) -> None:
        running: dict[int, tuple[Any, tuple[int, ...]]] = {}  # by identity: jobs of an engine may be equal
        while waiting or running:
            while waiting and len(running) < self.engine.capacity:
                chunk = self._take(waiting)
                if chunk:
                    job = self.engine.submit(self._task(chunk))
                    running[id(job)] = job, chunk
            ended = self.engine.finished([job for job, _ in running.values()], _PATIENCE)
            self.ledger.refresh()
            tell(self._rows(), self._words)
            for job in ended:
                _, chunk = running.pop(id(job))
                try:
                    self._note(self.engine.result(job))
                except Lost:
                    waiting += self._bury([index for index in chunk if not self.ledger.has(index)])
            self._watch()

    def _take(self, waiting: list[int]) -> tuple[int, ...]:
        """Take a chunk off the list: as many as take some seconds, and towards the end fewer, so that none is last."""
        pace = self.seconds / self.problems if self.problems else np.inf
        fair = -(-len(waiting) // (2 * self.engine.capacity))
        size = max(1, min(int(self.engine.target / max(pace, 1e-6)), fair))
        chunk, waiting[-size:] = waiting[-size:], []
        return tuple(sorted(index for index in chunk if not self.ledger.has(index)))  # another driver may have them

    def _task(self, chunk: tuple[int, ...]) -> Task:
        whole = len(self.ledger.labels)
        some = {index: wanted for index in chunk if len(wanted := self.ledger.wanted(index)) < whole}
        here = self.folder.resolve()
        return Task(
            self._document,
            str(self.sweep.folder),
            self.sweep.id,
            str(here),
            self.codes,
            self.name,
            self.limits,
            chunk,
            some,
        )

    def _note(self, done: Done) -> None:
        # The recent past counts most: the first problem of a process takes longer.
        self.seconds, self.problems = 0.5 * self.seconds + done.seconds, self.problems // 2 + done.problems

    def _watch(self) -> None:
        """End processes that are far beyond the limit and do not look at the clock."""
        if self.limits.time is None:
            return
        for tail in self.ledger.of_driver(self.name):
            late = tail.begun is not None and time.time() - tail.since > self.limits.hard
            if late and tail.header is not None and tail.begun is not None and tail.begun not in self.overdue:
                self.overdue.add(tail.begun)
                self.engine.end(tail.header["pid"])

    def _bury(self, lost: list[int]) -> list[int]:
        """Give up problems that took several processes with them, or that had to be ended; return the others."""
        self.ledger.refresh()
        alive = []
        for index in lost:
            deaths = self.ledger.deaths(index)
            if index in self.overdue:
                self._give_up(index, "out of time", "the time limit ended, and its process had to be ended.", deaths)
            elif deaths >= _LIVES:
                why = f"its process ended {deaths} times while it was computed (out of memory, or killed)."
                self._give_up(index, "failed", why, deaths)
            else:
                alive.append(index)
        return alive

    def _give_up(self, index: int, state: str, why: str, deaths: int) -> None:
        wanted = self.ledger.wanted(index)
        row = {"i": index, "f": self.sweep.fingerprint_at(index), "s": dict.fromkeys(wanted, state), "v": {}}
        row |= {"e": dict.fromkeys(wanted, why), "t": 0.0, "at": round(time.time(), 3)}
        self.journal.write({"left": index, "times": deaths}, row)

    @property
    def journal(self) -> Journal:
        """The driver's own file, made when there is something to write."""
        if self._journal is None:
            self._journal = Journal(self.folder, self.sweep.id, self.codes, self.name)
        return self._journal

    def leave(self) -> None:
        """End all workers at once; what they were at was not its fault."""
        self.engine.stop()
        self.ledger.refresh()
        for tail in self.ledger.of_driver(self.name):
            if tail.begun is not None:
                self.journal.write({"left": tail.begun})

    def close(self) -> None:
        """Let go of the workers, and bring what the driver wrote to the disk."""
        self.engine.stop()
        if self._journal is not None:
            self._journal.close()

    def _rows(self) -> float:
        return float(sum(self.ledger.counts().values()))

    def _words(self) -> str:
        found = self.ledger.counts()
        return ", ".join(f"{number} {state}" for state, number in found.items() if number) or "starting"
