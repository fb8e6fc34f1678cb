"""Finding the active points fast: nonnegative least squares on a growing working set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...problem import check_time
from ...problem.types import Array, Index
from .exchange import exchange
from .rows import Rows

_ENOUGH = 1e-10  # violations, relative to |z| |w|, that are left to the active-set method
_NOTHING = 1e-13  # relative length of a convex combination below which it hints at a Farkas vector
_SLOW, _PATIENCE = 0.99, 6  # so many rounds may bring the hull nearer by less than this factor
_ROUNDS = 100


class Candidate(NamedTuple):
    """A guess at the active points with positive coefficients of their `unit` rows.

    ``vanishing``: the coefficients combine to nearly nothing, so they hint at a Farkas vector instead.
    """

    points: Index
    weights: Array
    vanishing: bool


class _Inner(NamedTuple):
    """The unit vector with the largest margin seen so far, and its inner products with all points."""

    u: Array
    values: Array

    def towards(self, u: Array, values: Array) -> _Inner:
        """Return the best of a few points on the way to another unit vector; costs no product with Z."""
        s = np.array([[0.05], [0.15], [0.3], [0.5], [0.75]])
        mixed = (1 - s) * self.u + s * u
        lengths = np.linalg.norm(mixed, axis=1, keepdims=True)
        lengths[lengths == 0] = 1.0
        between = ((1 - s) * self.values + s * values) / lengths
        best = int(np.argmax(between.min(axis=1)))
        return _Inner(mixed[best] / lengths[best], between[best])


def find_active(rows: Rows) -> Candidate:
    """Least-distance programming (Lawson and Hanson) on working sets; no claim is made for the result.

    The solution on a working set overshoots: the points to add are read off between it and the best
    separator so far, which takes about half the rounds. The last few points are left to exchanges.
    """
    mean = (1.0 / rows.norms) @ rows.Z
    values = rows.Z @ mean
    inner = _Inner(mean, values)
    size = 20 + rows.d // 8
    work = _smallest(values / rows.norms, size) if rows.n > 4 * size else np.arange(rows.n)
    scale, best, slow = 0.5, np.inf, 0
    found = Candidate(work[:1], np.ones(1), False)
    for _ in range(_ROUNDS):
        check_time("solving for a margin")
        M, level = rows.unit(work), rows.level(work)
        c = _least_distance(M, level, scale)
        if c is None:
            break
        kept = c > 0
        index, weights = work[kept], c[kept]
        combination, mass = c @ M, float(level @ c)
        distance = float(np.linalg.norm(combination)) / mass
        if distance <= _NOTHING * float(weights.sum()) / mass:
            return Candidate(index, weights, True)
        if distance < 0.01 * scale:  # the two parts of the residual must have comparable sizes
            scale = distance
            continue
        # at the optimum the multiple v of the combination that satisfies the constraints has level . c = |v|^2
        factor = mass / float(combination @ combination)
        found = Candidate(index, factor * weights, False)
        w = rows.vector(factor * combination)
        values, length = rows.Z @ w, float(np.linalg.norm(w))
        violated = values < 1.0 - _ENOUGH * length * rows.norms
        violated[work] = False
        new = np.flatnonzero(violated)
        if not new.size:
            return found
        slow += distance > _SLOW * best
        if new.size <= index.size // 5 or slow > _PATIENCE:
            break
        inner = inner.towards(w / length, values / length)
        idle = work[~kept]
        memory = index.size // 2 if distance > 0.9 * best else 0  # slow progress: forget less
        work = np.concatenate([
            index,
            idle[_smallest((values / rows.norms)[idle], memory)],
            new[_smallest((inner.values / rows.norms)[new], max(40, index.size))],
        ])  # fmt: skip
        scale = best = distance
    return Candidate(*exchange(rows, found.points, found.weights), False)


def _smallest(values: Array, count: int) -> Index:
    if values.size <= count:
        return np.arange(values.size)
    chosen: Index = np.argpartition(values, count)[:count]
    return chosen


def _least_distance(M: Array, level: Array, scale: float) -> Array | None:
    """Minimise ``|M^T c|^2 + (scale (1 - level . c))^2`` over ``c >= 0``; None at the iteration limit."""
    from scipy.optimize import nnls

    if M.shape[1] > 8 * M.shape[0]:  # far more dimensions than points: lengths are those of the triangular factor
        M = np.asarray(np.linalg.qr(M.T, mode="r")).T
    k, d = M.shape
    E = np.empty((d + 1, k))
    E[:d] = M.T
    E[d] = scale * level
    f = np.zeros(d + 1)
    f[d] = scale
    try:
        c: Array = nnls(E, f, maxiter=10 * max(k, d))[0]
    except RuntimeError:
        return None
    return c
