"""Follow the flow until the normalised margin is near its limit, one thread.

The error is the gap 1 - margin/limit, the limit being the one `reluflow.limit` certifies (where there is none, the loss
stands in its place). It closes like 1/log t, so that what matters is who can go on for long. The best gradient descent
has steps c/(L log 1/L), or c/L where the second layer is frozen, with c tuned, and computes in the log domain; every
iteration then adds the same to the squared norm, so that its time grows like 1/gap: where it does not come to a gap
within its budget its time is extrapolated by that law and marked with ~.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import reluflow as rf
from benchmarks.measure import Case, Cells, Target
from benchmarks.nets import gaussian

TITLE = "Late: error of the margin against time"
TASK = "late"
BEST = "scaled_gd"
_LOGS = (1e1, 3e1, 1e2, 3e2, 1e3, 3e3, 1e4, 3e4, 1e5, 1e6, 1e7)
_WIDE = [[log, 1e-6] for log in (*_LOGS, 1e8, 1e9)] + [[1e6, 1e-9]]
_WIDE += [[log, 1e-2] for log in (3e1, 1e4, 1e6)]  # a gap asks for no more: the rival is tuned too
_LONG = [[log, 1e-6] for log in (1e2, 1e6)] + [[1e6, 1e-9]]


def _orthsep(n: int, d: int, p: int) -> tuple[rf.Problem]:
    return (rf.Problem(rf.make("orthsep", n=n, d=d), rf.initialize(d, p)),)


def _leaky(name: str, n: int, d: int, p: int) -> tuple[rf.Problem]:
    return (rf.Problem(rf.make(name, n=n, d=d), rf.initialize(d, p, slope=0.5)),)


def _two_sign(n: int, d: int, mean: float) -> tuple[rf.Problem]:
    net = rf.initialize(d, 100, "two-sign", scale=1e-12, slope=0.3)
    return (rf.Problem(rf.make("antipodal_gaussians", n=n, d=d, mean=mean), net, train="first"),)


def _mnist() -> tuple[rf.Problem]:
    data = rf.data.mnist((0, 1), center=True, samples=2000)
    return (rf.Problem(data, rf.initialize(data.d, 50, slope=0.5)),)


def _others(ours: Any) -> dict[str, Any]:
    """All rivals, with these settings of ours."""
    return {
        **dict.fromkeys((BEST, "numpy_gd", "torch_gd", "scipy_dop853", "scipy_lsoda", "diffrax_tsit5")),
        "reluflow": ours,
    }


_PL, _LARGE, _RANDOM = "orthsep 500x20, p=100", "orthsep 1000x100, p=400", "random labels 40x20, p=100, sliding"
CASES = {
    "orthsep 6x2, p=50": Case(lambda: _orthsep(6, 2, 50), 15.0),
    _PL: Case(lambda: _orthsep(500, 20, 100), 15.0, solvers=_others(_WIDE)),
    "leaky linsep 500x20, p=100": Case(lambda: _leaky("linsep", 500, 20, 100), 15.0),
    "symmetric leaky 100x50, p=50": Case(lambda: _leaky("symsep", 100, 50, 50), 15.0),
    "two-sign 100x2, p=100, first layer only": Case(lambda: _two_sign(100, 2, 2.0), 15.0),
    "two-sign 400x50, p=100, first layer only": Case(lambda: _two_sign(400, 50, 3.0), 15.0),
    _LARGE: Case(lambda: _orthsep(1000, 100, 400), 30.0, solvers={"reluflow": _LONG}),
    _RANDOM: Case(
        lambda: (rf.Problem(gaussian(40, 20, "random"), rf.initialize(20, 100)),),
        60.0,
        solvers={"reluflow": [[1e2, 1e-6], [1e6, 1e-6]]},
    ),
    "MNIST 0/1 centred 2000x784, p=50, leaky": Case(
        _mnist, 40.0, solvers={"reluflow": [[1e2, 1e-6], [1e4, 1e-6]], BEST: None}
    ),
}
SMOKE = "orthsep 6x2, p=50"
PICTURES = ("precision",)


def reference(problem: rf.Problem) -> rf.dynamics.Limit | None:
    """Return the certified limit, None where it is undecided."""
    try:
        return rf.limit(problem, optimum=False, progress=False, time_limit=60.0)
    except rf.Undecided:
        return None


def error(given: tuple[rf.Problem], end: rf.dynamics.Limit | None, net: rf.Network) -> float:
    """Gap of the margin, or the loss if no limit is known; nan for what has left the doubles."""
    (problem,) = given
    if end is None:
        return float(np.exp(problem.log_loss(net)))
    W, a = net.weights()
    with np.errstate(over="ignore", invalid="ignore"):
        if not (np.isfinite(W).all() and np.isfinite(a).all() and np.abs(W).max() < 1e100):
            return float("nan")
        z = problem.data.X @ W.T
        q = problem.data.y * (np.maximum(z, net.slope * z) @ a)
        frozen = problem.train == "first"
        size = np.sum(W**2) if frozen else np.sum(W**2) + np.sum(a**2)
        return float(1.0 - q.min() / (np.sqrt(size) if frozen else size) / end.margin)


def seconds_to(cells: Cells, case: str, solver: str, gap: float) -> tuple[float | None, bool]:
    """Return the processor seconds from which on a solver is below a gap, and whether they are extrapolated."""
    found: list[tuple[float, float]] = []
    for cell in cells:
        if cell["case"] == case and cell["solver"] == solver and cell["status"] == "done":
            found += [(p[0], p[2]) for p in cell["points"] if p[2] is not None] or [(cell["cpu"], cell["error"])]
    found = sorted(point for point in found if point[1] is not None and not math.isnan(point[1]))
    if solver == "reluflow":  # every point is a run of its own
        return min((cpu for cpu, off in found if off <= gap), default=None), False
    late = [k for k, (_, off) in enumerate(found) if off > gap]
    if found and (not late or late[-1] + 1 < len(found)):
        return found[late[-1] + 1 if late else 0][0], False
    if solver == BEST and found and found[-1][1] < 0.5:
        return found[-1][0] * found[-1][1] / gap, True
    return None, False


def targets(cells: Cells) -> Iterator[Target]:
    """Against the best gradient descent; how long the late phase takes; the law of the gap."""
    for gap, bound, most in ((1e-1, ">=", 1 / 3), (1e-4, ">=", 30.0), (1e-6, ">=", 1000.0)):
        ours, (theirs, guessed) = seconds_to(cells, _PL, "reluflow", gap)[0], seconds_to(cells, _PL, BEST, gap)
        if ours and theirs:
            note = "gradient descent extrapolated" if guessed else ""
            yield Target(f"times as fast as the best GD at gap {gap:.0e}, {_PL}", theirs / ours, bound, most, "x", note)
    for case, most in ((_PL, 0.4), (_LARGE, 3.0)):
        for rtol in (1e-6, 1e-9):
            if cells.get(case, setting=[1e6, rtol]) is not None:
                cpu = cells.figure("cpu", case, setting=[1e6, rtol])
                yield Target(f"start to log t = 1e6, rtol {rtol:.0e}, {case}", cpu, "<=", most, " s")
    begin, end = (cells.figure("cpu", _PL, setting=[log, 1e-6]) for log in (1e2, 1e6))
    if begin and end:
        yield Target(f"from log t = 1e2 to 1e6, {_PL}", end - begin, "<=", 0.25, " s", "the difference of two runs")
    if (cell := cells.get(_RANDOM, setting=[1e6, 1e-6])) is not None:
        there = cell["status"] == "done" and "reason" not in cell["figures"]
        note = cell["figures"].get("reason", cell["note"])[:80]
        yield Target(f"start to log t = 1e6, {_RANDOM}", cell["cpu"] if there else None, "<=", 15.0, " s", note)
    law = [
        log * off
        for log in (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)
        if (off := cells.figure("error", _PL, setting=[log, 1e-6]))
    ]
    if len(law) == 7:
        yield Target(
            f"gap log t is constant from log t = 1e3 to 1e9, {_PL}", float(np.ptp(law) / np.mean(law)), "<=", 0.1
        )
