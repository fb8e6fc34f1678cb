"""What a sweep costs beside a bare loop, and 10^5 rows to keep, resume and collect.

The overhead is the processor time that a row costs beyond the bare loop (measured where the measure itself costs
nothing), as part of that of a tiny problem (n=6, d=2, p=4, check and limit). The speed-up is that of two processes over
one, on the clock on the wall, their starts included; it needs two idle cores.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Case, Cells, Target

TITLE = "Sweeps"
TASK = "sweep"
CASES = {
    "100000 rows": Case(lambda: (60, 100_000), 300.0),
}


def error(_: tuple[int, int], __: None, missing: int) -> float:
    """Rows that were asked for and are not there."""
    return float(missing)


def targets(cells: Cells) -> Iterator[Target]:
    """Ask for what was promised for sweeps."""
    case = "100000 rows"
    if (cell := cells.get(case)) is None:
        return
    yield Target("overhead of a row, of a tiny problem", cells.figure("overhead", case), "<=", 0.05)
    yield Target("resume of 100000 rows, nothing left", cells.figure("resume", case), "<=", 5.0, " s")
    yield Target("collect 100000 rows to Parquet", cells.figure("collect", case), "<=", 10.0, " s")
    yield Target(
        "speed-up of two processes", cells.figure("speed-up", case), ">=", 1.8, "x", f"load {cell['load'] or 0:.1f}"
    )
