"""The last few active points: exchanges in double precision on factors that are updated, not computed anew."""

from __future__ import annotations

import numpy as np

from ...problem import check_time
from ...problem.precision import EPS
from ...problem.types import Array, Index
from .rows import Rows

_VIOLATED = 1e-11  # relative to |z| |w|; what is smaller is left to the method in twice the precision
_DEPENDENT = 1e-9  # relative distance from the span of the active rows
_EXCHANGES = 400
_FALLS = 1e-9  # relative coefficient from which a point loses weight in an exchange; no claim is made here


class _Active:
    """Active points with the QR factors of their rows and the solution of their equations."""

    def __init__(self, rows: Rows, points: Index, weights: Array) -> None:
        self.rows, self.points, self.weights = rows, points, weights
        Q, R = np.linalg.qr(rows.unit(points).T)
        self.Q, self.R = np.asfortranarray(Q), np.asfortranarray(R)

    @property
    def sound(self) -> bool:
        """Whether the rows are independent enough for double precision."""
        diagonal = np.abs(np.diag(self.R))
        return self.Q.shape[1] == self.points.size and bool(diagonal.min() > 64 * EPS)

    def triangular(self, b: Array, transposed: bool) -> Array:
        from scipy.linalg.lapack import dtrtrs

        solution: Array = dtrtrs(self.R, b, lower=0, trans=int(transposed))[0]
        return solution

    def solve(self) -> tuple[Array, Array]:
        """Return ``v`` with ``unit v = level`` and the coefficients of the rows in it."""
        u = self.triangular(self.rows.level(self.points), True)
        return self.Q @ u, self.triangular(u, False)

    def drop(self, leaving: Index) -> None:
        from scipy.linalg import qr_delete

        if leaving.size == self.points.size:
            self.Q, self.R = self.Q[:, :0], self.R[:0, :0]
        else:
            for k in leaving[::-1].tolist():
                Q, R = qr_delete(self.Q, self.R, k, 1, "col", check_finite=False)
                size = R.shape[1]  # square factors come back with one column too many
                self.Q, self.R = Q[:, :size], np.asfortranarray(R[:size])
        self.points, self.weights = np.delete(self.points, leaving), np.delete(self.weights, leaving)

    def add(self, j: int, z: Array, weight: float) -> bool:
        along = self.Q.T @ z
        off = z - self.Q @ along
        again = self.Q.T @ off
        off -= self.Q @ again
        length = float(np.linalg.norm(off))
        if length <= 64 * EPS:
            return False
        k = self.points.size
        R = np.zeros((k + 1, k + 1), order="F")
        R[:k, :k], R[:k, k], R[k, k] = self.R, along + again, length
        self.Q, self.R = np.asfortranarray(np.column_stack([self.Q, off / length])), R
        self.points, self.weights = np.append(self.points, j), np.append(self.weights, weight)
        return True

    def settle(self) -> Array | None:
        """Move to the equality solution, dropping points whose coefficient reaches 0; returns ``v``."""
        while self.points.size:
            check_time("solving for a margin")
            v, c = self.solve()
            down = c <= 0
            if not down.any():
                self.weights = c
                return v
            steps = np.full(c.size, np.inf)
            old = self.weights[down]
            steps[down] = np.divide(old, old - c[down], out=np.zeros_like(old), where=old > 0)
            step = float(steps.min())
            self.weights = np.maximum(self.weights + step * (c - self.weights), 0.0)
            self.drop(np.flatnonzero(steps <= step))
        return None

    def enter(self, j: int) -> bool:
        """Add point ``j``, in exchange for another one if it depends on the active ones; False if neither works."""
        z = self.rows.unit(np.array([j]))[0]
        along = self.Q.T @ z
        if np.linalg.norm(z - self.Q @ along) > _DEPENDENT:
            return self.add(j, z, 0.0)
        a = self.triangular(along, False)
        ratios = np.full(a.size, np.inf)
        falls = a > _FALLS * np.abs(a).max()
        ratios[falls] = self.weights[falls] / a[falls]
        step = float(ratios.min())
        if not np.isfinite(step):
            return False
        self.weights = np.maximum(self.weights - step * a, 0.0)
        self.drop(np.flatnonzero(ratios <= step))
        return self.add(j, z, step)


def exchange(rows: Rows, points: Index, weights: Array) -> tuple[Index, Array]:
    """Improve a guess at the active points until no constraint is clearly violated; no claim is made."""
    active = _Active(rows, points, weights)
    best = points, weights
    near, close, level = points[:0], np.empty((0, rows.d)), np.empty(0)
    for _ in range(_EXCHANGES + 20 * rows.d):
        check_time("solving for a margin")
        v = active.settle() if active.sound else None
        if v is None:
            return best
        best = active.points, active.weights
        length = float(np.linalg.norm(v))
        slack = close @ v - level
        if not near.size or slack.min() >= -_VIOLATED * length:  # look at all points, keep the nearest in sight
            w = rows.vector(v)
            far = (rows.Z @ w - 1.0) / rows.norms
            count = 50 + 2 * active.points.size
            near = np.argpartition(far, count)[:count] if rows.n > count else np.arange(rows.n)
            close, level = rows.unit(near), rows.level(near)
            slack = close @ v - level
            if slack.min() >= -_VIOLATED * length:
                return best
        if not active.enter(int(near[np.argmin(slack)])):
            return best
    return best
