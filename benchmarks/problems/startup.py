"""The first call in a fresh environment compiles; later processes load what was compiled. One thread.

Three processes do the same work twice: the first with an empty place for compiled code, the second and the third with
what the first left there. What the first call takes beyond the second one is compilation, or loading.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Case, Cells, Target

TITLE = "Compilation"
TASK = "startup"
CASES = {"flow of 3 points": Case(lambda: ("flow",), 150.0), "explain of 3 points": Case(lambda: ("explain",), 150.0)}


def error(_: tuple[str], __: None, ___: float) -> None:
    """There is nothing to be wrong."""


def targets(cells: Cells) -> Iterator[Target]:
    """Twenty seconds once, one second afterwards."""
    for case in CASES:
        if cells.get(case) is not None:
            yield Target(f"first call in a fresh environment, {case}", cells.figure("compile", case), "<=", 20.0, " s")
            yield Target(f"first call of a later process, {case}", cells.figure("loading", case), "<=", 1.0, " s")
