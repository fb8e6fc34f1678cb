"""The flow from the scales people use to a loss, rtol 1e-6, one thread, early phase included, compilation not.

Gradient descent takes part where it is what the flow is to be held against: NumPy, step 0.01, looking at the loss in
every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import reluflow as rf
from benchmarks.measure import Case, Cells, Target
from benchmarks.nets import antipodal, gaussian, off_loss, start

TITLE = "Flow from ordinary starts"
TASK = "flow"
_ONE = {"reluflow": (1e-6,)}
_BOTH = {"reluflow": (1e-6,), "numpy_gd": (0.01,)}
_STARTS = (("he", 1e-1), ("he", 1e-2), ("he", 1e-3), ("he", 1e-4), ("balanced", 1e-2))
_MOST: dict[str, float] = {}


def _row(
    name: str, data: Callable[[], rf.Dataset], width: int, slope: float, begin: tuple[str, float], most: float
) -> tuple[str, Case]:
    """Name a row of the table, its case, and what it may take."""
    scheme, scale = begin
    full = f"{name}, {scheme} {scale:.0e}".replace("e-0", "e-")
    _MOST[full] = most
    case = Case(lambda: (start(data(), width, scale, slope, scheme), 1e-3), max(60.0, 10 * most), solvers=_ONE)
    return full, case


def _mnist(loss: float) -> Case:
    return Case(lambda: (start(rf.data.mnist((0, 1), center=True), 50, 1e-2), loss), 150.0, solvers=_ONE)


def _small(scale: float) -> Case:
    return Case(lambda: (start(gaussian(200, 10, "teacher"), 50, scale), 1e-3), 60.0, solvers=_BOTH)


CASES = {
    "teacher 8x2, p=6": Case(lambda: (start(gaussian(8, 2, "teacher"), 6, 1e-1), 0.5), solvers=_BOTH),
    **dict(
        [_row("phuong 500x20 p=100", lambda: rf.make("phuong", n=500, d=20, seed=0), 100, 0.0, s, 0.6) for s in _STARTS]
        + [
            _row("teacher 500x20 slope 0.2 p=100", lambda: gaussian(500, 20, "teacher"), 100, 0.2, s, 2.0)
            for s in _STARTS
        ]
        + [_row("random labels 40x20 p=100", lambda: gaussian(40, 20, "random"), 100, 0.0, s, 0.8) for s in _STARTS]
        + [_row("antipodal 1000x100 p=400", lambda: antipodal(1000, 100), 400, 0.0, s, 8.0) for s in _STARTS[1:3]]
        + [_row("small 20x2 p=50", lambda: gaussian(20, 2, "teacher"), 50, 0.0, s, 0.03) for s in _STARTS[:3]]
    ),
    **{f"200x10 p=50, he {scale:.0e}".replace("e-0", "e-"): _small(scale) for scale in (1e-1, 1e-2, 1e-3)},
    "MNIST 0/1 p=50, he 1e-2, to loss 1e-1": _mnist(1e-1),
    "MNIST 0/1 p=50, he 1e-2, to loss 1e-2": _mnist(1e-2),
}
_MOST |= {"MNIST 0/1 p=50, he 1e-2, to loss 1e-1": 40.0, "MNIST 0/1 p=50, he 1e-2, to loss 1e-2": 60.0}
SMOKE = "teacher 8x2, p=6"


def error(given: tuple[rf.Problem, float], _: None, net: rf.Network) -> float:
    """Relative distance from the loss that was asked for."""
    return off_loss(*given, net)


def targets(cells: Cells) -> Iterator[Target]:
    """Every row of the table; one that stops at another loss has not done its work."""
    for case, most in _MOST.items():
        if (cell := cells.get(case)) is None:
            continue
        there = cell["status"] == "done" and cell["error"] <= 1e-3
        note = f"{cell['figures'].get('events')} events" if there else f"{cell['status']}, not at its loss"
        yield Target(f"flow, {case}", cell["cpu"] if there else None, "<=", most, " s", note)
        if case.startswith("MNIST"):
            yield Target(f"peak memory, {case}", cells.figure("peak", case), "<=", 1536, " MB")
    for case in (name for name in CASES if name.startswith("200x10")):
        if cells.get(case) is not None:
            ratio = cells.ratio("cpu", case, "numpy_gd")
            yield Target(f"times as fast as GD with step 0.01, {case}", ratio, ">=", 1, "x")
