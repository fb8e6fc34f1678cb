"""Convex combinations that vanish: the proof that no separator exists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...problem.precision import EPS
from ...problem.types import Array, Index
from ...sectors.exact import Pair, product
from .rows import Rows

VANISHES = 1e-14  # relative length up to which a combination counts as vanishing


class Combination(NamedTuple):
    """Positive coefficients of `unit` rows, and whether an exactly vanishing combination of them is proved."""

    points: Index
    weights: Array
    proved: bool


def polish(rows: Rows, index: Index, weights: Array) -> Combination | None:
    """Turn coefficients that nearly combine to zero into a vanishing combination, proved if possible.

    Solves ``sum c_i unit_i = 0``, ``sum c_i = 1`` by least squares with residuals in twice the working
    precision, on the points themselves and, where coefficients come out negative, on what is left without
    them. Failing that, the weights as given are taken if their combination already vanishes to rounding.
    """
    kept = index
    while kept.size > 1:
        M = rows.unit(kept)
        c = _solve(M)
        positive = c.high > 0
        if positive.all():
            if _vanishes(M, c):
                return Combination(kept, c.high, _proved(M, c))
            break
        kept = kept[positive]
    if _vanishes(rows.unit(index), Pair.of(weights)):
        return Combination(index, weights, False)
    return None


def _vanishes(M: Array, c: Pair) -> bool:
    left = float(np.linalg.norm(product(M.T, c).high))
    return left <= VANISHES * float(c.high @ np.linalg.norm(M, axis=1))


def _solve(M: Array) -> Pair:
    from scipy.linalg import qr, solve_triangular

    k, d = M.shape
    E = np.vstack([M.T, np.ones(k)])
    f = np.zeros(d + 1)
    f[d] = 1.0
    Q, R, pivots = qr(E, mode="economic", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(R))
    rank = int(np.count_nonzero(diagonal > max(E.shape) * EPS * diagonal[0]))
    kept = pivots[:rank]  # a basic solution: the other coefficients are 0 (Caratheodory)
    c, missing = Pair.of(np.zeros(k)), f
    for _ in range(6):
        step = np.zeros(k)
        step[kept] = solve_triangular(R[:rank, :rank], Q[:, :rank].T @ missing, check_finite=False)
        c = c.plus(step)
        if np.linalg.norm(step) <= EPS * EPS * np.linalg.norm(c.high):
            break
        missing = -product(E, c).plus(-f).high
    return c


def _proved(M: Array, c: Pair) -> bool:
    """Whether a positive combination near ``c`` vanishes exactly, by a rigorous bound on its distance from ``c``.

    Coordinates that are zero on all points vanish anyway. When as many equations as unknowns remain, an
    approximate inverse ``B`` with ``|I - B E| < 1`` shows that ``E c = f`` has one solution, within
    ``|B (f - E c)| / (1 - |I - B E|)`` of ``c`` (rounding errors included); it proves the claim when that
    leaves every coefficient positive.
    """
    M = M[:, M.any(axis=0)]
    k, d = M.shape
    if k != d + 1:
        return False
    E = np.vstack([M.T, np.ones(k)])
    try:
        B = np.linalg.inv(E)
    except np.linalg.LinAlgError:
        return False
    noise = (k + 2) * EPS * (np.abs(B) @ np.abs(E)).sum(axis=1).max()
    contraction = float(np.abs(np.eye(k) - B @ E).sum(axis=1).max() + noise)
    if not contraction < 0.5:
        return False
    f = np.zeros(k)
    f[-1] = 1.0
    left = product(E, c).plus(-f)
    # 106-bit residuals: their own error is far below k eps^2 times the sum of the terms
    size = np.abs(left.high) + (k + 8) * EPS * EPS * (np.abs(E) @ c.high)
    radius = float((np.abs(B) @ size).max()) * (1 + k * EPS) / (1 - contraction)
    return bool(c.high.min() > 2 * radius)
