"""Finding the active points fast: nonnegative least squares on a growing working set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problem._arrays import Array
from ._hard_rows import Index, Rows

_ENOUGH = 1e-10  # violations, relative to |z| |w|, that are left to the active-set method
_NOTHING = 1e-13  # relative length of a convex combination below which it hints at a Farkas vector
_ROUNDS = 100


class Candidate(NamedTuple):
    """A guess at the active points with positive coefficients of their `unit` rows.

    ``vanishing``: the coefficients combine to nearly nothing, so they hint at a Farkas vector instead.
    """

    index: Index
    weights: Array
    vanishing: bool


def search(rows: Rows) -> Candidate:
    """Least-distance programming (Lawson and Hanson) on working sets; no claim is made for the result."""
    cosines = (rows.Z @ ((1.0 / rows.norms) @ rows.Z)) / rows.norms
    size = 40 + rows.d // 4
    work = _smallest(cosines, size) if rows.n > 2 * size else np.arange(rows.n)
    scale, best = 0.5, np.inf
    for _ in range(_ROUNDS):
        M, level = rows.unit(work), rows.level(work)
        c = _least_distance(M, level, scale)
        if c is None:  # the iteration limit: leave all of it to the slower method
            return Candidate(work[:1], np.ones(1), False)
        kept = np.flatnonzero(c)
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
        w = rows.vector(factor * combination)
        length = float(np.linalg.norm(w))
        relative = (rows.Z @ w - 1.0) / (rows.norms * length)
        new = np.setdiff1d(np.flatnonzero(relative < -_ENOUGH), work, assume_unique=True)
        if not new.size or distance >= best:
            return Candidate(index, factor * weights, False)
        scale = best = distance
        work = np.concatenate([index, new[_smallest(relative[new], max(40, index.size))]])
    return Candidate(index, factor * weights, False)


def _smallest(values: Array, count: int) -> Index:
    if values.size <= count:
        return np.arange(values.size)
    chosen: Index = np.argpartition(values, count)[:count]
    return chosen


def _least_distance(M: Array, level: Array, scale: float) -> Array | None:
    """Minimise ``|M^T c|^2 + (scale (1 - level . c))^2`` over ``c >= 0``."""
    from scipy.optimize import nnls

    d = M.shape[1]
    E = np.empty((d + 1, M.shape[0]))
    E[:d] = M.T
    E[d] = scale * level
    f = np.zeros(d + 1)
    f[d] = scale
    try:
        c: Array = nnls(E, f)[0]
    except RuntimeError:
        return None
    return c
