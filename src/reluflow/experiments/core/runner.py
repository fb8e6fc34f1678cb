"""Running experiments in parallel, each in a process of its own, so that none can take another with it."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from ...problem import Interrupted, ProblemError, ReluflowError
from ...problem.plain import plain
from ...problem.threads import THREADS
from . import store
from .experiment import Experiment
from .pages import write_pages
from .registry import choose, experiment


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one experiment.

    Parameters
    ----------
    id : str
    state : {"run", "kept", "failed"}
        Run now, taken from the output folder, or failed.
    verdicts : dict
        How many expectations were ``reproduced``, ``deviates``, ``cannot be judged``.
    seconds : float
        What its run took, now or when it was run.
    error : str
        Why it failed.
    """

    id: str
    state: str
    verdicts: dict[str, int]
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What is told while experiments run: per running job the ids and how much is done, and the whole."""

    done: float
    total: float
    running: tuple[tuple[str, float], ...]


@dataclass(slots=True)
class Job:
    """Experiments that share a run, and how far it is."""

    ids: tuple[str, ...]
    minutes: float
    fraction: float = 0.0
    process: BaseProcess | None = None
    pipe: Connection | None = None
    kept: bool = True
    ended: bool = False
    error: str = ""


def run_all(
    ids: Sequence[str],
    out: str | Path,
    *,
    quick: bool = False,
    jobs: int = 1,
    redraw: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> list[Outcome]:
    """Make figures and tables of the papers again, and judge what comes out.

    Writes ``ID.json``, ``ID.png`` and ``ID.svg`` for each experiment, and ``index.html`` and ``REPRODUCTION.md`` over
    all that the folder holds. An experiment whose numbers are there, from the same parameters and code, is not run
    again, only judged and drawn; where its numbers were changed since, or experiments that share a run hold different
    ones, it is. A killed run loses only the experiments that had not finished.

    Parameters
    ----------
    ids : sequence of str
        Which experiments.
    out : path
        The output folder; it is made when it is not there.
    quick : bool
        Small stand-ins: minutes instead of hours.
    jobs : int
        How many to run at a time; the processors are shared out between them.
    redraw : bool
        Run nothing: judge and draw again what is stored, even if other code computed it (the pages say so).
    progress : callable, optional
        Is told a `Progress` about twice a second.

    Returns
    -------
    list of Outcome
        In the order of the registry.

    Raises
    ------
    Interrupted
        After Ctrl-C; ``partial`` holds the outcomes of what was done.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     [outcome.state for outcome in run_all(["SBG-F4"], folder, quick=True)]
    ['run']
    """
    if jobs < 1:
        raise ProblemError(f"the number of jobs is {jobs}; at least 1 is needed.")
    folder = _folder(Path(out))
    asked = [experiment(one) for one in choose(ids)]
    _protect(folder, asked, quick)
    if redraw:
        wrong = [one.id for one in asked if store.doctored(folder, one.id)]
        if wrong:
            raise ProblemError(
                f"the numbers of {', '.join(wrong)} in {folder} are not those that were computed: their hash is "
                f"another "
                "one. Run them again, without redraw."
            )
        asked = [one for one in asked if store.read(folder, one.id) is not None]
        if not asked:
            raise ProblemError(f"there is nothing of {', '.join(ids)} in {folder} to draw again; run it first.")
    plan = _grouped(asked, quick)
    job_of = {one: job for job in plan for one in job.ids}
    begun = time.monotonic()
    try:
        with _few_threads(jobs):
            _run_jobs(plan, folder, quick, redraw, jobs, progress)
        fresh = [one.id for one in asked if not (job_of[one.id].kept or job_of[one.id].error)]
        store.save_run(folder, time.monotonic() - begun, jobs, fresh)
    except KeyboardInterrupt:
        done = [outcome_of(folder, one.id, job_of[one.id]) for one in asked if job_of[one.id].ended]
        raise Interrupted(
            f"interrupted; the {len(done)} of {len(asked)} experiments that were done are kept in {folder}, and the "
            "same command goes on with the others.",
            done,
        ) from None
    finally:
        write_pages(folder)
    return [outcome_of(folder, one.id, job_of[one.id]) for one in asked]


def _folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ProblemError(f"the folder {folder} cannot be made: {exc.strerror or exc}.") from None
    if not os.access(folder, os.W_OK):
        raise ProblemError(f"the folder {folder} cannot be written to; name another one.")
    return folder


def _protect(folder: Path, asked: Sequence[Experiment], quick: bool) -> None:
    """Refuse to put a quick run in the place of a full one, or both into one folder."""
    for one in asked:
        stored = store.read(folder, one.id)
        if stored is not None and stored.quick != quick:
            there, here = ("quick", "full") if stored.quick else ("full", "quick")
            raise ProblemError(f"{folder} holds the {there} run of {one.id}; name another folder for the {here} run.")


def _grouped(asked: Sequence[Experiment], quick: bool) -> list[Job]:
    """Put experiments that share a run into one job; the dearest job first."""
    groups: dict[tuple[object, str], list[Experiment]] = {}
    for one in asked:
        groups.setdefault((one.run, repr(plain(one.settings(quick)))), []).append(one)
    # A quick run costs about the same for all; what is stored already costs next to nothing, but that is seen soon.
    cost = (lambda _one: 0.1) if quick else (lambda one: float(one.minutes))
    found = [Job(tuple(one.id for one in group), max(map(cost, group))) for group in groups.values()]
    return sorted(found, key=lambda job: -job.minutes)


@contextmanager
def _few_threads(jobs: int) -> Iterator[None]:
    """Share the processors out between the jobs; the processes started meanwhile see it.

    A number that was set for one library holds for all of them.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    share = next(filter(None, before.values()), str(max(1, (os.cpu_count() or 1) // jobs)))
    os.environ.update({name: share for name in THREADS if before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


def _run_jobs(
    plan: Sequence[Job],
    folder: Path,
    quick: bool,
    redraw: bool,
    jobs: int,
    progress: Callable[[Progress], None] | None,
) -> None:
    context = mp.get_context("spawn")
    waiting, running = list(plan), list[Job]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                job = waiting.pop(0)
                job.pipe, theirs = context.Pipe(duplex=False)
                versions = {one: store.code_version(experiment(one)) for one in job.ids}
                args = (versions, folder, quick, redraw, theirs)
                job.process = context.Process(target=work, args=args, daemon=True)
                job.process.start()
                theirs.close()
                running.append(job)
            wait([job.pipe for job in running if job.pipe], timeout=0.5)
            for job in list(running):
                if _listen(job):
                    running.remove(job)
                    write_pages(folder)
            if progress is not None:
                total = sum(job.minutes for job in plan)
                done = sum(job.minutes * job.fraction for job in plan)
                progress(Progress(done, total, tuple((" ".join(job.ids), job.fraction) for job in running)))
    finally:
        for job in running:
            if job.process is not None:
                job.process.terminate()
                job.process.join()


def _listen(job: Job) -> bool:
    """Take in what a job has said; True when it has ended."""
    if job.pipe is None or job.process is None:
        return False
    try:
        while job.pipe.poll():
            said, value = job.pipe.recv()
            if said == "fraction":
                job.fraction = min(max(value, job.fraction), 1.0)
            elif said == "run":
                job.kept = False
            else:
                job.error = value
    except EOFError:
        job.process.join()
        if job.process.exitcode and not job.error:
            job.error = f"its process ended with code {job.process.exitcode} (out of memory, or killed)."
        job.fraction, job.ended = 1.0, True
        return True
    return False


def work(versions: Mapping[str, str], folder: Path, quick: bool, redraw: bool, pipe: Connection) -> None:
    """Do one job, in its own process: experiments, each with the hash of its code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its children
    store.take_versions(versions)
    try:
        complete([experiment(one) for one in versions], folder, quick, redraw, pipe)
    except ReluflowError as exc:
        pipe.send(("error", str(exc)))
    except Exception:  # a bug in one experiment: said in full, and the others go on
        pipe.send(("error", traceback.format_exc()))
    finally:
        pipe.close()


def complete(group: Sequence[Experiment], folder: Path, quick: bool, redraw: bool, pipe: Connection) -> None:
    """Compute what is missing of experiments that share a run, judge and draw all of them."""
    stored = [(one, store.read(folder, one.id)) for one in group]
    good = {one.id: found for one, found in stored if found and (redraw or store.is_current(found, one, quick))}
    if not good or (not redraw and len({found.digest for found in good.values()}) > 1):  # one run has one result
        pipe.send(("run", None))
        last = [0.0]

        def tell(fraction: float) -> None:
            if time.monotonic() - last[0] > 0.3:
                last[0] = time.monotonic()
                pipe.send(("fraction", float(fraction)))

        begun = time.monotonic()
        numbers = group[0].run(group[0].settings(quick), tell)
        seconds = time.monotonic() - begun
        good = {one.id: store.made(one, quick, numbers, seconds) for one in group}
        for one in group:  # before anything else can fail
            store.save(folder, one, good[one.id])
    spare = next(iter(good.values()))
    for one in group:
        found = good.get(one.id) or store.borrowed(spare, one)
        store.save(folder, one, found, one.judge(found.numbers))
        store.save_figure(folder, one, found.numbers)


def outcome_of(folder: Path, name: str, job: Job) -> Outcome:
    """Read off the folder what became of an experiment."""
    found = None if job.error else store.page_of(folder, name)
    if found is None:
        return Outcome(name, "failed", {}, 0.0, job.error or "it left nothing behind.")
    counts = Counter(e["verdict"] for e in found["expectations"])
    return Outcome(name, "kept" if job.kept else "run", dict(counts), float(found["seconds"]))
