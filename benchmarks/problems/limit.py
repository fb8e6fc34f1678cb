"""Find and certify the limit of the flow, one thread.

The error is that of the margin where theory knows it: the sum of the two classes (PL-T1'), or the linear margin of
symmetric data (LL-T4.3). For others it is left open; "undecided" with its reason is an answer, and counted as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import reluflow as rf
from benchmarks.measure import Case, Cells, Target
from benchmarks.nets import gaussian

TITLE = "Limit"
TASK = "limit"


def _orthsep(n: int, d: int, p: int) -> tuple[rf.Problem, str]:
    return rf.Problem(rf.make("orthsep", n=n, d=d), rf.initialize(d, p)), "classes"


def _leaky(name: str, n: int, d: int, p: int, seed: int = 0) -> tuple[rf.Problem, str]:
    data = rf.make(name, n=n, d=d, seed=seed)
    return rf.Problem(data, rf.initialize(d, p, slope=0.5)), "linear" if name == "symsep" else ""


def _mnist() -> tuple[rf.Problem, str]:
    data = rf.data.mnist((0, 1), center=True, samples=2000)
    return rf.Problem(data, rf.initialize(data.d, 50, slope=0.5)), ""


_KNOWN = ("orthsep 500x20, p=100", "symmetric 100x10, p=50")
_LEAKY = tuple(f"leaky linsep 60x10, p=40, seed {seed}" for seed in range(5))
_RANDOM, _MNIST = "random labels 40x20, p=100", "MNIST 0/1 2000x784, p=50, leaky"
CASES = {
    "orthsep 6x2, p=50": Case(lambda: _orthsep(6, 2, 50)),
    _KNOWN[0]: Case(lambda: _orthsep(500, 20, 100)),
    _KNOWN[1]: Case(lambda: _leaky("symsep", 100, 10, 50)),
    **{name: Case(partial(_leaky, "linsep", 60, 10, 40, seed), 60.0) for seed, name in enumerate(_LEAKY)},
    _RANDOM: Case(lambda: (rf.Problem(gaussian(40, 20, "random"), rf.initialize(20, 100)), ""), 90.0),
    _MNIST: Case(_mnist, 150.0),
}
SMOKE = "orthsep 6x2, p=50"


def reference(problem: rf.Problem, known: str) -> float | None:
    """Return the margin that theory promises."""
    if known == "classes":  # PL-T1': both classes by themselves
        plus, minus = rf.margins.class_margins(problem.data)
        return float(0.5 / (np.linalg.norm(plus.w) + np.linalg.norm(minus.w)))
    # LL-T4.3: the mean of the two slopes times half the linear margin
    return (1 + problem.net.slope) / 4 * rf.max_margin(problem.data).margin if known else None


def error(_: tuple[rf.Problem, str], exact: float | None, margin: float) -> float | None:
    """Relative error of the margin."""
    return None if exact is None else abs(margin / exact - 1)


def targets(cells: Cells) -> Iterator[Target]:
    """Exact and fast where the answer is known; decided elsewhere."""
    for case in _KNOWN:
        if cells.get(case) is not None:
            yield Target(f"limit, {case}", cells.figure("cpu", case), "<=", 1.0, " s")
            yield Target(f"error of the margin of the limit, {case}", cells.figure("error", case), "<=", 1e-10)
    some = [cell for case in _LEAKY if (cell := cells.get(case)) is not None]
    if some:
        decided = sum(cell["figures"].get("kind") not in (None, "undecided") for cell in some)
        yield Target(f"limits decided, leaky linsep 60x10, {len(some)} seeds", decided, ">=", len(some))
        yield Target("slowest of them", max(cell["cpu"] for cell in some), "<=", 30.0, " s")
    for case, most in ((_RANDOM, 60.0), (_MNIST, 120.0)):
        if (cell := cells.get(case)) is not None:
            kind = cell["figures"].get("kind", cell["status"])
            yield Target(f"limit or reason, {case}", cells.figure("cpu", case), "<=", most, " s", kind)
