"""Who does the chunks: this process, processes beside it, or a Dask cluster. All do the same with the same chunks."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from typing import Any, Protocol

from ..problem import ProblemError
from ..problem.threads import THREADS
from .work import Done, Task, release, work

_LOOK = 1.0  # seconds between two looks at whether the driver is still there


class Lost(Exception):
    """The process that did a chunk is gone."""


class Engine(Protocol):
    """What the driver asks of those who do the work."""

    target: float

    @property
    def capacity(self) -> int:
        """How many chunks it takes at a time."""

    def submit(self, task: Task) -> Any:
        """Begin with a chunk."""

    def finished(self, running: Iterable[Any], patience: float) -> list[Any]:
        """Wait a moment, and return those that have ended."""

    def result(self, job: Any) -> Done:
        """Return what a chunk did; `Lost` if nobody knows."""

    def end(self, pid: int) -> None:
        """End a process of this machine that does not listen."""

    def stop(self) -> None:
        """Let go of everything, at once."""


class Here:
    """The process itself, one chunk after the other."""

    capacity, target = 1, 2.0

    def submit(self, task: Task) -> Done:
        """Do the chunk."""
        return work(task)

    def finished(self, running: Iterable[Done], patience: float) -> list[Done]:  # noqa: ARG002
        """Return all: they were done when they were submitted."""
        return list(running)

    def result(self, job: Done) -> Done:
        """Return what it did."""
        return job

    def end(self, pid: int) -> None:
        """Never asked for: who asks is waiting itself."""

    def stop(self) -> None:
        """Close the journal."""
        release()


class Processes:
    """Processes of this machine, each with an executor of its own: where one dies, the others do not notice."""

    target = 10.0

    def __init__(self, jobs: int) -> None:
        self.capacity = jobs
        self._slots: list[Any] = [None] * jobs
        self._used: dict[Future[Done], int] = {}

    def submit(self, task: Task) -> Future[Done]:
        """Begin with a chunk in a process that is free."""
        slot = next(k for k in range(self.capacity) if k not in self._used.values())
        if self._slots[slot] is None:
            self._slots[slot] = _executor()
        try:
            job: Future[Done] = self._slots[slot].submit(work, task)
        except (BrokenExecutor, RuntimeError):  # it died while it was idle
            self._slots[slot] = _executor()
            job = self._slots[slot].submit(work, task)
        self._used[job] = slot
        return job

    def finished(self, running: Iterable[Future[Done]], patience: float) -> list[Future[Done]]:
        """Wait a moment, and return those that have ended."""
        return list(wait(list(running), patience, FIRST_COMPLETED).done)

    def result(self, job: Future[Done]) -> Done:
        """Return what a chunk did."""
        slot = self._used.pop(job)
        try:
            return job.result()
        except BrokenExecutor as exc:
            with suppress(Exception):
                self._slots[slot].shutdown(wait=False, kill_workers=True)
            self._slots[slot] = None
            raise Lost from exc

    def end(self, pid: int) -> None:
        """End a process that does not listen."""
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End all processes."""
        for executor in filter(None, self._slots):
            with suppress(Exception):
                executor.shutdown(wait=True, kill_workers=True)
        self._slots = [None] * self.capacity


def _executor() -> Any:
    """Start a process with one thread: several of them are faster, and numbers do not depend on how many there are."""
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(1, initializer=_attend, initargs=(os.getpid(),), env=dict.fromkeys(THREADS, "1"))


def _attend(driver: int) -> None:
    """Leave Ctrl-C, which reaches every process of the terminal, to the driver, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Dask:
    """The workers of a Dask cluster, which must see the folder and have reluflow; ``local`` starts one here."""

    target = 20.0

    def __init__(self, address: str, jobs: int) -> None:
        try:
            import distributed
        except ImportError:
            raise ProblemError(
                "dask needs Dask distributed, which is not installed; pip install 'reluflow[cluster]' brings it."
            ) from None
        self._lib, self._cluster = distributed, None
        try:
            if address == "local":
                looks = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
                self._cluster = distributed.LocalCluster(n_workers=jobs, threads_per_worker=1, processes=True, **looks)
            self._client = distributed.Client(self._cluster or address, timeout=10, set_as_default=False)
        except (OSError, ValueError) as exc:
            raise ProblemError(
                f"dask = {address!r}: no scheduler answers there ({exc}); give its address, tcp://HOST:8786, or local."
            ) from None

    @property
    def capacity(self) -> int:
        """Twice the workers there are now: they come and go, and none shall wait for us."""
        threads: dict[str, int] = self._client.nthreads()
        return max(2 * sum(threads.values()), 1)

    def submit(self, task: Task) -> Any:
        """Hand a chunk over."""
        return self._client.submit(work, task, pure=False)

    def finished(self, running: Iterable[Any], patience: float) -> list[Any]:
        """Wait a moment, and return those that have ended."""
        jobs = list(running)
        try:
            with self._client.as_current():
                return list(self._lib.wait(jobs, timeout=patience, return_when="FIRST_COMPLETED").done)
        except self._lib.TimeoutError:
            return []

    def result(self, job: Any) -> Done:
        """Return what a chunk did."""
        try:
            return job.result()  # type: ignore[no-any-return]
        except (self._lib.scheduler.KilledWorker, self._lib.CancelledError) as exc:
            raise Lost from exc

    def end(self, pid: int) -> None:
        """Leave it: Dask looks after its own processes."""

    def stop(self) -> None:
        """Let go of the cluster, and end it if it is ours."""
        with suppress(Exception):
            self._client.close(timeout=5)
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=5)


def engine_of(dask: str | None, jobs: int) -> Engine:
    """Choose who does the work."""
    if dask is not None:
        return Dask(dask, jobs)
    return Here() if jobs == 1 else Processes(jobs)
