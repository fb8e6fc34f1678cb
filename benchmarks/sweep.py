"""Sweeps against a bare loop: overhead, speed-up of two workers, and what 10^5 rows cost to keep, resume and collect.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/sweep.py [--problems 60] [--rows 100000]

The overhead is the CPU time that a row costs beyond the bare loop (measured where the measure itself costs nothing), as
part of the CPU time of a tiny problem (n=6, d=2, p=4, check and limit). The bound is 5 %.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import reluflow as rf
from reluflow.problem import Problem

HERE = Path(__file__).parent
DATA = {"source": "phuong", "n": 6, "d": 2}


def nothing(problem: Problem) -> dict[str, Any]:
    """Measure next to nothing, of the size of a real row."""
    size = float(problem.net.W[0, 0])
    return {"kind": "margin", "linear": True, "neurons": 2, **{f"number_{k}": size / (k + 1) for k in range(8)}}


def tiny(problems: int, measures: Any) -> rf.Sweep:
    return rf.Sweep(
        data={**DATA, "seed": {"range": [0, 10]}},
        network={"width": 4, "seed": {"range": [0, max(problems // 10, 1)]}},
        measures=measures,
        folder=HERE,
    )


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return seconds on the clock, seconds of this process, and the result."""
    wall, own = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - wall, time.process_time() - own, found


def bare(sweep: rf.Sweep, rounds: int) -> Callable[[], None]:
    def loop() -> None:
        for index in range(rounds):
            for one in sweep.taken:
                one.take(rf.theory.Facts.of(sweep.problem_at(index)))

    return loop


def overhead(problems: int, rows: int, folder: Path) -> float:
    """Print what a row costs, and return it as part of a tiny problem."""
    real, cheap = tiny(problems, ["check", "limit"]), tiny(rows, ["sweep:nothing"])
    bare(real, 2)()  # compiled, imported
    wall, own, _ = timed(bare(real, len(real)))
    one = own / len(real)
    print(
        f"a tiny problem (check and limit): {1e3 * one:.1f} ms of CPU time, {len(real) / wall:.1f} a second on one core"
    )
    _, loop, _ = timed(bare(cheap, len(cheap)))
    _, swept, _ = timed(lambda: cheap.run(folder / "cheap", progress=False))
    extra = (swept - loop) / len(cheap)
    print(f"a row costs {1e6 * extra:.0f} us beyond the bare loop ({1e6 * loop / len(cheap):.0f} us)")
    print(f"overhead of runner and store: {100 * extra / one:.2f} % of the CPU time of a tiny problem (at most 5 %)")
    return extra / one


def speed_up(problems: int, folder: Path) -> float:
    """Print the speed-up of two processes over one, the starts of processes included."""
    sweep = tiny(problems, ["check", "limit"])
    one, _, _ = timed(lambda: sweep.run(folder / "one", progress=False))
    two, _, _ = timed(lambda: sweep.run(folder / "two", jobs=2, progress=False))
    print(
        f"{len(sweep)} tiny problems: 1 process {one:.1f} s, 2 processes {two:.1f} s, {len(sweep) / two:.1f} a second"
    )
    print(f"speed-up {one / two:.2f} (at least 1.8 on two idle cores); load {os.getloadavg()[0]:.1f}")
    return one / two


def memory() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def many(rows: int, folder: Path) -> None:
    """Print what very many rows cost to compute, resume and collect, and what the driver holds meanwhile."""
    sweep, seen, over = tiny(rows, ["sweep:nothing"]), list[float](), threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            seen.append(memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    wall, own, found = timed(lambda: sweep.run(folder / "many", jobs=2, progress=False))
    over.set()
    watcher.join()
    print(
        f"{len(sweep)} rows by 2 processes: {len(sweep) / wall:.0f} a second; the driver took {own:.1f} s of CPU time"
    )
    early, late = seen[len(seen) // 4], max(seen)
    print(f"memory of the driver: {early:.0f} MB after a quarter, at most {late:.0f} MB")
    assert found.status().complete
    again, own, _ = timed(lambda: sweep.run(folder / "many", progress=False))
    print(f"resume of all {len(sweep)}, nothing left: {again:.1f} s, {own:.1f} s of CPU time (at most 5 s)")
    try:
        wall, own, _ = timed(lambda: rf.open_sweep(folder / "many").collect(folder / "many.parquet"))
        print(f"collected to parquet: {wall:.1f} s, {own:.1f} s of CPU time (at most 10 s)")
    except rf.ProblemError as exc:
        print(f"not collected: {exc}")
    print(f"largest memory of this process at all: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        overhead(given.problems, min(given.rows, 20_000), folder)
        many(given.rows, folder)
        speed_up(given.problems, folder)


if __name__ == "__main__":
    main()
