"""The active-set method that decides: equality solves in twice the working precision, one exchange at a time.

Minimises ``|v|^2/2 - level . c`` over ``v = sum c_i unit_i``, ``c >= 0``: the dual of the hard-margin program
(C-SVM). Its steps are those of Lawson and Hanson's NNLS. A point that depends on the active ones either
replaces one of them or completes a combination that vanishes: then no separator exists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...problem import check_time
from ...problem.precision import EPS
from ...problem.types import Array, Index
from ...sectors.exact import Pair, product
from .rows import TIE, Rows

_DEPENDENT = 64 * EPS  # distance from the span of the active rows below which a row is taken to lie in it
_SINGULAR = 16 * EPS  # reciprocal condition number below which refinement would not converge
_CONVERGED = 1e-26
_MAX_REFINEMENTS = 12
_EXCHANGES, _WORK = 50, 5e10  # exchanges beyond three a dimension, and operations, before the method gives up
_ZERO = 1e-24  # coefficients, relative to the largest, that are 0 in twice the precision
_VIOLATED = 1e-22  # distance, relative to |w|, from which a point is on the wrong side in twice the precision
_FALLS = 1e-13  # relative coefficient from which a point loses weight in an exchange, in double precision


class Equality(NamedTuple):
    """The shortest ``v`` with ``unit v = level`` on an independent set of rows, and ``v = sum c_i unit_i``."""

    v: Pair
    c: Pair
    error: float  # estimated relative error of v and c
    Q: Array
    R: Array


class Separated(NamedTuple):
    """Optimal up to ``error``: vector, multipliers on ``points``, slack ``w.z - 1`` of every point."""

    v: Pair
    c: Array
    points: Index
    slack: Array
    error: float


class Vanishing(NamedTuple):
    """Points that carry a non-negative combination which vanishes to rounding (unproved)."""

    points: Index
    weights: Array


class Stuck(NamedTuple):
    """Rounding stands in the way; ``points`` is the last active set."""

    points: Index
    why: str


def solve_equalities(M: Array, level: Array) -> Equality | None:
    """Solve ``M v = level``, ``v = M^T c``; None when the rows of ``M`` are (nearly) dependent.

    QR factors of ``M^T`` and iterative refinement of the augmented system with residuals in twice the
    working precision: it converges as long as the condition number stays below ``1/eps``.
    """
    from scipy.linalg.lapack import dtrcon, dtrtrs

    if M.shape[0] > M.shape[1]:
        return None
    Q, R = np.linalg.qr(M.T)
    R = np.asfortranarray(R)
    if dtrcon(R)[0] < _SINGULAR:
        return None
    u = dtrtrs(R, level, trans=1)[0]
    v, c = Pair.of(Q @ u), Pair.of(dtrtrs(R, u)[0])
    before = 1.0
    for _ in range(_MAX_REFINEMENTS):
        missing = -product(M, v).plus(-level).high
        excess = product(M.T, c).plus(-v.high).plus(-v.low).high
        u = dtrtrs(R, missing, trans=1)[0] - Q.T @ excess
        dv, dc = Q @ u + excess, dtrtrs(R, u)[0]
        v, c = v.plus(dv), c.plus(dc)
        step = max(_ratio(dv, v.high), _ratio(dc, c.high))
        remaining = step * step / before  # the corrections shrink by a constant factor
        if remaining <= _CONVERGED:
            return Equality(v, c, remaining, Q, R)
        if step > 0.25 * before:
            return None
        before = step
    return None


def _ratio(change: Array, whole: Array) -> float:
    size = float(np.linalg.norm(whole))
    return float(np.linalg.norm(change)) / size if size > 0 else 0.0


def slacks(rows: Rows, v: Pair, active: Index) -> Array:
    """Return ``w.z_i - 1`` for every point: 0 on the active set, in twice the precision where it is nearly 0."""
    w = rows.vector(v.high)
    slack: Array = rows.Z @ w - 1.0
    near = slack <= TIE + 2 * rows.rounding(w)
    near[active] = False
    slack[active] = 0.0
    doubtful = np.flatnonzero(near)
    if doubtful.size:
        level = rows.level(doubtful)
        slack[doubtful] = product(rows.unit(doubtful), v).plus(-level).high / level
    return slack


def active_set(rows: Rows, index: Index, weights: Array) -> Separated | Vanishing | Stuck:
    """Run the method from the points ``index`` with coefficients ``weights >= 0``."""
    work, checked = 0.0, False
    for _ in range(_EXCHANGES + 3 * min(rows.n, rows.d)):
        check_time("solving for a margin")
        work += 2.0 * rows.d * (rows.n + (index.size + 100.0) ** 2)
        if work > _WORK:
            break
        solved = _until_positive(rows, index, weights)
        if solved is None and not checked:  # the start may be dependent; what follows is independent
            (index, weights), checked = _independent(rows, index, weights), True
            continue
        if solved is None:
            return Stuck(index, "the active points are too nearly dependent for double precision")
        index, weights, point = solved
        slack = slacks(rows, point.v, index)
        size = float(np.linalg.norm(rows.vector(point.v.high)))
        # distances from the hyperplanes, relative to |w|: what rounding cannot explain is a violation
        relative = slack / (rows.norms * size)
        worst = int(np.argmin(relative))
        if relative[worst] >= -max(_VIOLATED, 100 * point.error):
            return Separated(point.v, weights, index, slack, point.error)
        entered = _enter(rows, index, weights, point, worst)
        if isinstance(entered, (Vanishing, Stuck)):
            return entered
        index, weights = entered
    return Stuck(index, "the exchanges of active points did not come to an end")


def _independent(rows: Rows, index: Index, weights: Array) -> tuple[Index, Array]:
    """Keep a (numerically) independent subset; the first points of the pivoted QR."""
    from scipy.linalg import qr

    R, pivots = qr(rows.unit(index).T, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(R))
    rank = int(np.count_nonzero(diagonal > _DEPENDENT * diagonal[0]))
    kept = np.sort(pivots[:rank])
    return index[kept], weights[kept]


def _until_positive(rows: Rows, index: Index, weights: Array) -> tuple[Index, Array, Equality] | None:
    """Move towards the equality solution, dropping the points that reach coefficient 0 on the way."""
    while index.size:
        check_time("solving for a margin")
        point = solve_equalities(rows.unit(index), rows.level(index))
        if point is None:
            return None
        target = point.c.high
        down = target <= _ZERO * np.abs(target).max()
        if not down.any():
            return index, target, point
        steps = np.full(target.size, np.inf)
        old, new = weights[down], np.minimum(target[down], 0.0)
        steps[down] = np.divide(old, old - new, out=np.zeros_like(old), where=old > 0)
        step = float(steps.min())  # at most 1
        moved = weights + step * (target - weights)
        keep = (steps > step) & ((moved > 0) | ~down)
        index, weights = index[keep], moved[keep]
    return None


def _enter(
    rows: Rows, index: Index, weights: Array, point: Equality, j: int
) -> tuple[Index, Array] | Vanishing | Stuck:
    """Add point ``j``; when it depends on the active points exchange it for one of them."""
    from scipy.linalg import solve_triangular

    z = rows.unit(np.array([j]))[0]
    along = point.Q.T @ z
    off = z - point.Q @ along
    off -= point.Q @ (point.Q.T @ off)
    if np.linalg.norm(off) > _DEPENDENT:
        return np.append(index, j), np.append(weights, 0.0)
    # unit_j = sum a_i unit_i: moving along (-a, 1) leaves v alone and gains level_j - unit_j . v > 0
    a = solve_triangular(point.R, along, check_finite=False)
    falls = a > _FALLS * max(1.0, float(np.abs(a).max()))
    if not falls.any():
        kept = a < 0
        return Vanishing(np.append(index[kept], j), np.append(-a[kept], 1.0))
    ratios = np.full(a.size, np.inf)
    ratios[falls] = weights[falls] / a[falls]
    step = float(ratios.min())
    moved = weights - step * a
    keep = (ratios > step) & (moved > 0)
    return np.append(index[keep], j), np.append(moved[keep], step)
