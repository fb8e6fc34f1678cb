"""Find the shortest w with Z w >= 1, one thread.

The error is the distance between unit vectors, to a reference of 60 digits whose optimality (positive multipliers, no
violated constraint) is checked in integers. `SVC` has an intercept and needs both labels: it gets the points and their
mirror images, for which the intercept is 0. MNIST 3/8 has no such w; the answer is then a certificate of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Case, Cells, Target
from reluflow import NotSeparable
from reluflow.data import mnist
from reluflow.margins import hard_margin

TITLE = "Hard margin"
TASK = "hard_margin"
Array = npt.NDArray[np.float64]


def _teacher(n: int, d: int) -> tuple[Array]:
    """Gaussian points on the right side of a teacher, moved away from it by a tenth."""
    rng = np.random.default_rng(0)
    t = rng.standard_normal(d)
    t /= np.linalg.norm(t)
    X = rng.standard_normal((n, d))
    return (X * np.sign(X @ t)[:, None] + 0.1 * t,)


def _flat(n: int, d: int, size: float) -> tuple[Array]:
    """Points in a hyperplane, lifted off it by ``size`` to twice that: a relative margin below ``size``."""
    rng = np.random.default_rng(0)
    t = rng.standard_normal(d)
    t /= np.linalg.norm(t)
    X = rng.standard_normal((n, d))
    return (X - np.outer(X @ t, t) + size * (1 + rng.random((n, 1))) * t,)


def _digits(minus: int, plus: int) -> tuple[Array]:
    return (mnist((minus, plus), center=True).signed,)


def _random(n: int, d: int) -> Case:
    return Case(lambda: _teacher(n, d), sizes={"n": n, "d": d})


CASES = {
    "random 20x2": _random(20, 2),
    "random 500x20": _random(500, 20),
    "random 100x50": _random(100, 50),
    "random 2000x200": _random(2000, 200),
    "margin 1e-7, 300x20": Case(lambda: _flat(300, 20, 1e-6), sizes={"n": 300, "d": 20}),
    "random 100000x20": _random(100_000, 20),
    "random 100000x50": Case(lambda: _teacher(100_000, 50), solvers={"reluflow": None, "daqp": None}),
    **{f"MNIST {minus}/{plus}": Case(partial(_digits, minus, plus)) for minus, plus in ((0, 1), (1, 7), (3, 8))},
}
SMOKE = "random 20x2"
PICTURES = ("precision", "memory")


def reference(Z: Array) -> Array | None:
    """Return the unit optimum, proved in integers; None if there is none."""
    try:
        return _sixty_digits(Z, hard_margin(Z).active)
    except NotSeparable:
        return None


def _sixty_digits(Z: Array, active: npt.NDArray[np.intp]) -> Array | None:
    """Return the unit optimum if ``active`` is the right set, proved in integers; None otherwise.

    Refines ``Z_A Z_A^T dual = 1`` with residuals computed without rounding until they are below 1e-60, then
    asks for positive multipliers and no violated constraint.
    """
    from scipy.linalg import qr, solve_triangular

    digits = 10**90
    power = max(x.as_integer_ratio()[1] for x in Z[active].ravel().tolist())
    rows = np.array([[int(Fraction(x) * power) for x in row] for row in Z[active].tolist()], dtype=object)
    R = qr(Z[active].T, mode="r")[0][: len(active)]
    dual = np.zeros(len(active), dtype=object)
    for _ in range(200):
        w = dual @ rows
        rest = np.array([x / (digits * power**2) for x in digits * power**2 - rows @ w])
        if np.abs(rest).max() < 1e-60:
            break
        step = solve_triangular(R, solve_triangular(R, rest, trans="T"))
        dual = dual + np.array([int(Fraction(x) * digits) for x in step.tolist()], dtype=object)
    else:
        return None
    found = np.array([x / (digits * power) for x in w])
    slack = Z @ found - 1
    slack[active] = 0
    near = np.flatnonzero(np.abs(slack) < 1e-6)
    exact = [sum(Fraction(a) * b for a, b in zip(Z[i].tolist(), w, strict=True)) for i in near if i not in active]
    inside = all(value >= digits * power for value in exact) and slack[np.abs(slack) >= 1e-6].min(initial=0) >= 0
    return found / np.linalg.norm(found) if inside and min(dual) > 0 else None


def error(_: tuple[Array], exact: Array | None, w: Array) -> float | None:
    """Distance of the directions."""
    return None if exact is None else float(np.linalg.norm(w / np.linalg.norm(w) - exact))


def targets(cells: Cells) -> Iterator[Target]:
    """Accuracy everywhere, speed beside the others, memory."""
    for case in CASES:
        if (mine := cells.figure("error", case)) is not None:
            yield Target(f"direction error, {case}", mine, "<=", 1e-12)
        if (theirs := cells.get(case, "sklearn_svc")) is None or (ours := cells.get(case)) is None:
            continue
        note = "" if theirs["status"] == "done" else f"svc {theirs['status']}: at least"
        ratio = theirs["cpu"] / ours["cpu"]
        yield Target(f"times as fast as svc, {case}", ratio, ">=", 10, "x", note)
        if mine is not None and theirs["error"] is not None:
            won = float(np.log10(theirs["error"] / max(mine, 1e-17)))
            yield Target(f"more digits than svc, {case}", won, ">=", 6)
    for case, least in (("random 2000x200", 0.5), ("MNIST 0/1", 2.0)):
        if cells.get(case) is not None:
            yield Target(f"times as fast as daqp, {case}", cells.ratio("cpu", case, "daqp"), ">=", least, "x")
    if (much := cells.figure("memory", "random 100000x50")) is not None:
        yield Target("memory over that of the data, 100000x50", much / (100_000 * 50 * 8 / 2**20), "<=", 3, "x")
