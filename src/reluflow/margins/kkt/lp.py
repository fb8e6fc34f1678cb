"""The linear program of the KKT conditions, with free Clarke slopes at kinks.

Neuron j of block B must satisfy ``w_j = a_j F_B`` with ``F_B = sum_i s_Bi y_i x_i``; ``s_Bi`` is the
multiplier times the slope of block B at point i, fixed off the kinks and free in ``[slope, 1] * lam_i``
on them. The largest component of the residual is minimised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...problem import Undecided, check_time, time_left
from ...problem.precision import TINY
from ...problem.types import Array, Index

# Rows of the program taken to begin with, and added at a time; only a few of all p * d ever bind.
_ROWS, _QUICK_ENTRIES, _MANY_POINTS = 2000, 200_000, 500
_NEARLY = 1e-5  # residual below which it may vanish, and a polish is tried
_VANISHES = 1e-12  # residual, relative to the weights, that is as good as 0 to the linear program
_SOLVED = 1e-10  # tolerance of the linear program, the smallest it takes
_EDGE = 1e-7  # distance from the end of their range, relative to the largest multiplier, of slopes that are at the end
_CUT = 1e-13  # singular values dropped where points are dependent


@dataclass(frozen=True, eq=False)
class Equations:
    """Unit rows ``points`` (y_i x_i / |x_i|), slopes (B, k) with NaN where free, the neurons and their blocks."""

    points: Array
    slopes: Array
    slope: float
    W: Array
    a: Array
    block: Index

    @property
    def free(self) -> tuple[Index, Index]:
        """Block and point of every free slope."""
        where = np.nonzero(np.isnan(self.slopes))
        return where[0], where[1]

    def weights(self, lam: Array, s: Array) -> Array:
        """``s_Bi`` for all blocks and points, shape (B, k)."""
        out = np.nan_to_num(self.slopes) * lam
        out[self.free] = s
        return out

    def residual(self, lam: Array, s: Array) -> Array:
        """``w_j - a_j F_B``, shape (p, d)."""
        force = self.weights(lam, s) @ self.points
        return np.asarray(self.W - self.a[:, None] * force[self.block])

    def feasible(self, lam: Array, s: Array) -> tuple[Array, Array]:
        """Put multipliers and free slopes back where they may be."""
        lam = np.maximum(lam, 0.0)
        top = lam[self.free[1]]
        return lam, np.clip(s, self.slope * top, top)


def solve(equations: Equations) -> tuple[Array, Array]:
    """Multipliers and free slopes with the smallest residual, polished where it nearly vanishes."""
    lam, s = _linear_program(equations)
    best, size = (lam, s), float(np.abs(equations.residual(lam, s)).max(initial=0.0))
    if size < _NEARLY:
        for _ in range(4):
            lam, s = equations.feasible(*_correct(equations, lam, s))
            now = float(np.abs(equations.residual(lam, s)).max(initial=0.0))
            if not now < size:
                break
            best, size = (lam, s), now
    return best


def _linear_program(equations: Equations) -> tuple[Array, Array]:
    """Minimise the largest residual, from least squares on, adding rows until no other one exceeds it.

    The optimum of some of the rows is a lower bound, so where it would take long one may stop when a residual that
    does not vanish is known within a factor of two. Of many points none of which is on a kink,
    the least-squares multipliers are kept as they are: they vanish in the residual when any do.
    """
    k, free_point = equations.points.shape[0], equations.free[1]
    scale = max(float(np.abs(equations.W).max()), float(np.abs(equations.a).max()))
    best = _least_squares(equations)
    off = np.abs(equations.residual(*best)) / scale
    upper, chosen = float(off.max(initial=0.0)), _worst_rows(equations, off, -1.0)
    ratio = 1.0 if k * min(off.size, _ROWS) <= _QUICK_ENTRIES else 2.0
    for _ in range(200):
        check_time("solving the KKT conditions")
        if upper <= _VANISHES or (k > _MANY_POINTS and not free_point.size):
            break
        x = _highs(equations, chosen, scale)
        new, lower = equations.feasible(x[:k], x[k : k + free_point.size]), float(x[-1])
        off = np.abs(equations.residual(*new)) / scale
        more = np.setdiff1d(_worst_rows(equations, off, 0.5 * lower), chosen)  # with those nearly violated
        for share in (1.0, 0.9, 0.7, 0.4):
            point = (1 - share) * best[0] + share * new[0], (1 - share) * best[1] + share * new[1]
            size = float(np.abs(equations.residual(*point)).max(initial=0.0)) / scale
            if size < upper:
                best, upper = point, size
        if not more.size or off.max() <= lower + _VANISHES or upper <= ratio * lower + _VANISHES:
            break
        chosen = np.union1d(chosen, more)
    return best


def _least_squares(equations: Equations) -> tuple[Array, Array]:
    """Multipliers of least squares, with the middle slope at every kink."""
    from scipy.optimize import nnls

    k, free_point = equations.points.shape[0], equations.free[1]
    middle = (1.0 + equations.slope) / 2
    slopes = np.where(np.isnan(equations.slopes), middle, equations.slopes)
    R = _compress(equations, slopes, equations.W, np.arange(k), np.empty(0, dtype=np.intp))
    try:
        lam, _ = nnls(R[:, :k], R[:, k], maxiter=30 * k + 300)
    except RuntimeError:  # it is a start only
        lam = np.zeros(k)
    return lam, middle * lam[free_point]


def _compress(equations: Equations, slopes: Array, target: Array, alive: Index, loose: Index) -> Array:
    """Columns of the named multipliers and free slopes, and the target, as a triangular factor.

    The neurons of a block enter least squares through ``sum a_j^2`` and ``sum a_j target_j`` alone, so a block is
    one equation.
    """
    free_block, free_point = equations.free
    R = np.zeros((0, alive.size + loose.size + 1))
    for b, slope in enumerate(slopes):
        mine = equations.block == b
        size = float(np.linalg.norm(equations.a[mine]))
        if size == 0:
            continue
        rows = np.zeros((equations.W.shape[1], R.shape[1]))
        rows[:, : alive.size] = size * (np.nan_to_num(slope[alive])[:, None] * equations.points[alive]).T
        own = np.flatnonzero(free_block[loose] == b)
        rows[:, alive.size + own] = size * equations.points[free_point[loose[own]]].T
        rows[:, -1] = equations.a[mine] @ target[mine] / size
        R = np.vstack([R, rows])
        if len(R) > 4000 + R.shape[1]:
            R = np.asarray(np.linalg.qr(R, mode="r"))
    return R


def _worst_rows(equations: Equations, off: Array, above: float) -> Index:
    """Of each component of each block the neuron that is farthest off; of these the worst, as indices into p * d."""
    order = np.argsort(equations.block, kind="stable")
    starts = np.flatnonzero(np.diff(equations.block[order], prepend=-1))
    top = np.maximum.reduceat(off[order], starts, axis=0)
    neuron, part = np.nonzero(
        (off >= top[np.searchsorted(equations.block[order][starts], equations.block)]) & (off > above)
    )
    worst = np.argsort(-off[neuron, part], kind="stable")[:_ROWS]
    return np.unique(neuron[worst] * off.shape[1] + part[worst])


def _highs(equations: Equations, chosen: Index, scale: float) -> Array:
    from scipy import sparse
    from scipy.optimize import linprog

    (free_block, free_point), k, d = equations.free, equations.points.shape[0], equations.W.shape[1]
    m = free_block.size
    neuron, part = np.divmod(chosen, d)
    block, a, w = equations.block[neuron], equations.a[neuron] / scale, equations.W[neuron, part] / scale
    columns = equations.points[:, part].T * a[:, None]
    main = sparse.csr_array(columns * np.nan_to_num(equations.slopes)[block])
    row, col = np.nonzero(block[:, None] == free_block) if m else (np.empty(0, int), np.empty(0, int))
    kinks = sparse.csr_array((columns[row, free_point[col]], (row, col)), shape=(chosen.size, m))
    one = sparse.csr_array(np.ones((chosen.size, 1)))
    pick = sparse.csr_array((np.ones(m), (np.arange(m), free_point)), shape=(m, k))
    none, unit = sparse.csr_array((m, 1)), sparse.eye_array(m, format="csr")
    A: Any = sparse.vstack(
        [
            sparse.hstack([main, kinks, -one]),
            sparse.hstack([-main, -kinks, -one]),
            sparse.hstack([-pick, unit, none]),
            sparse.hstack([equations.slope * pick, -unit, none]),
        ],
        format="csr",
    )
    b = np.concatenate([w, -w, np.zeros(2 * m)])
    cost = np.zeros(k + m + 1)
    cost[-1] = 1.0
    tight: dict[str, float] = {"primal_feasibility_tolerance": _SOLVED, "dual_feasibility_tolerance": _SOLVED}
    for options in (tight, {}):
        check_time("solving the KKT conditions")
        options |= {} if np.isinf(time_left()) else {"time_limit": time_left()}
        answer = linprog(cost, A_ub=A, b_ub=b, bounds=(0, None), method="highs", options=options)
        if answer.status == 0:
            return np.asarray(answer.x)
    raise Undecided(f"the linear program of the KKT conditions was not solved: {answer.message}", answer)


def _correct(equations: Equations, lam: Array, s: Array) -> tuple[Array, Array]:
    """Smallest change of the non-zero multipliers and slopes strictly inside their range that solves the equations."""
    free_block, free_point = equations.free
    top = lam[free_point]
    edge = _EDGE * max(float(lam.max(initial=0.0)), TINY)
    upper, lower = top - s <= edge, s - equations.slope * top <= edge
    slopes = equations.slopes.copy()
    slopes[free_block[upper], free_point[upper]] = 1.0
    slopes[free_block[lower & ~upper], free_point[lower & ~upper]] = equations.slope
    alive, loose = np.flatnonzero(lam > edge), np.flatnonzero(~upper & ~lower)
    if not alive.size:
        return lam, s
    R = _compress(equations, slopes, equations.residual(lam, s), alive, loose)
    change = np.linalg.lstsq(R[:, :-1], R[:, -1], rcond=_CUT)[0]
    lam, s = lam.copy(), s.copy()
    lam[alive] += change[: alive.size]
    lam[lam <= edge] = 0.0
    s[loose] += change[alive.size :]
    s[upper] = lam[free_point[upper]]
    s[lower & ~upper] = equations.slope * lam[free_point[lower & ~upper]]
    return lam, s
