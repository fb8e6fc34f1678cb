r"""Whether a sector holds a strict local maximum of G on the sphere, decided in integers.

Let u be a unit vector, C = G(u), Z the samples with u.x_i = 0, and for v orthogonal to u

    D(v) = G'(u; v) = g . v + sum_{i in Z} y_i phi(v . x_i),      g = sum_{i not in Z} y_i phi'(u . x_i) x_i.

G is piecewise linear, so near u the value at (u + e v)/|u + e v|, |v| = 1, is (C + e D(v))/sqrt(1 + e^2). Comparing
with C for all small e > 0:

    u is a strict local maximum   iff   D <= 0 if C > 0,    and D(v) < 0 for all v != 0 if C <= 0

(for C > 0 the normalisation alone makes it strict; for C <= 0 it works the other way). D is linear on the cells of the
arrangement of {x_i^perp : i in Z} within span(Z), and these cones are pointed, so only the rays of that arrangement
have to be tried. Outside span(Z) and u, D is linear: it must vanish there, that is, g must lie in span(Z, u).

Two kinds of u remain for a given sector:
* C > 0: u is the projection of g on Z^perp (and G(u) its length);
* C <= 0: Z must span all of u^perp, so u is one of the two null vectors of Z.
Both are rational up to length, since doubles are rational. Minima are maxima for the labels exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from ..problem import check_time
from ..problem.types import Array, Integers, Signs
from .exact import (
    as_integers,
    independent,
    null_vector,
    primitive,
    project_out,
    to_float,
    unit_float,
    value_along,
)

#: Most entries of X for which integers are written down, most rays tried for one sector.
_ENTRIES, _RAYS = 2_000_000, 20_000
_INDEPENDENT = 1e-4  # smallest singular value of unit points from which sums on them lose few digits


class TooLarge(Exception):
    """The exact answer would take too many operations."""


@dataclass(frozen=True, eq=False)
class Maximum:
    """A strict local maximum: unit direction and value, both rounded once, and the exact sector."""

    direction: Array
    value: float
    sector: Signs


class Judge:
    """Decides sectors for one set of points, labels and slope."""

    def __init__(self, X: Array, y: Array, slope: float) -> None:
        if X.size > _ENTRIES:
            raise TooLarge
        self.X, self.exponent = as_integers(X)
        low, high = slope.as_integer_ratio()
        self.y = y.astype(np.int64).astype(object)
        self.high, self.low = high, low  # slopes 1 and alpha times the denominator of alpha

    def gradient(self, sector: Signs) -> Integers:
        """``sum y_i phi'(sector_i) x_i`` over the samples off their hyperplane, times the denominator of the slope."""
        weight = np.where(sector > 0, self.high, self.low) * self.y * (sector != 0).astype(object)
        return np.asarray(weight @ self.X)

    def maxima(self, sector: Signs) -> tuple[Maximum, ...]:
        """Return the strict local maxima with this sector: at most one, or two opposite ones orthogonal to all samples.

        Raises `TooLarge`.
        """
        on = self.X[sector == 0]
        basis = on[independent(on)] if len(on) else on
        gradient = self.gradient(sector)
        top, weights, denominator = project_out(gradient, basis)
        if any(top) and self._has(top, sector):
            if not self._falls(gradient, sector, basis, weights, denominator, strictly=False):
                return ()
            length = np.linalg.norm(to_float(top, denominator * self.high, self.exponent))
            return (Maximum(unit_float(top), float(length), sector),)
        ray = null_vector(basis) if len(basis) == self.X.shape[1] - 1 else None
        if ray is None:
            return ()
        rays = [u for u in (ray, -ray) if self._has(u, sector)]
        if not rays or not self._falls(gradient, sector, basis, weights, denominator, strictly=True):
            return ()
        return tuple(
            Maximum(unit_float(u), value_along(u, int(gradient @ u), self.high, self.exponent), sector) for u in rays
        )

    def top(self, cell: Signs, guess: Signs, pivots: int = 200) -> tuple[Array, Signs] | None:
        """Direction and sector of the maximum on the ball of G with the slopes of the positive samples as in ``cell``.

        None if that maximum is 0. ``guess`` says for each negative sample which side the maximum is on, 0 for on the
        hyperplane. The conditions of the maximum w = b - sum_k h_k x_k (negative samples: h_k = 1 where w.x_k > 0,
        h_k = slope where w.x_k < 0, between on the hyperplane) are checked exactly; the first sample that violates
        them changes its state until none does. Raises `TooLarge` if that takes more than ``pivots`` changes.
        """
        minus = np.flatnonzero(self.y == -1)
        points, state = self.X[minus], guess[minus].astype(np.int64)
        tight = np.flatnonzero(state == 0)
        extra = np.setdiff1d(tight, tight[independent(points[tight])])
        state[extra] = -1
        frozen = np.where(cell > 0, self.high, self.low) * (self.y == 1)
        base = frozen @ self.X - self.low * points.sum(axis=0)
        room = self.high - self.low
        for _ in range(pivots):
            check_time("looking for extremal directions")
            tight = np.flatnonzero(state == 0)
            rest = base - room * points[state > 0].sum(axis=0)
            w, weights, denominator = project_out(rest, points[tight])
            inner = points @ w
            change = [(int(k), 0) for k in np.flatnonzero(np.sign(inner) * state < 0)]
            for k, t in zip(tight, weights, strict=True):
                if t < 0 or t > room * denominator:
                    change.append((int(k), -1 if t < 0 else 1))
            if not change:
                return (unit_float(w), np.sign(self.X @ w).astype(np.int8)) if any(w) else None
            first, new = min(change)
            state[first] = new
        raise TooLarge

    def _has(self, u: Integers, sector: Signs) -> bool:
        return bool(np.array_equal(np.sign(self.X @ u).astype(np.int8), sector))

    def _falls(
        self, gradient: Integers, sector: Signs, basis: Integers, weights: Integers, denominator: int, strictly: bool
    ) -> bool:
        """Whether D <= 0 (``strictly``: < 0) on all rays of the arrangement of the tight samples in their span.

        ``weights / denominator`` are the coefficients of the gradient's part in that span.
        """
        tight = np.flatnonzero(sector == 0)
        on, y = self.X[tight], self.y[tight]
        rank, lines = len(basis), _lines(on)
        if len(lines) == rank:  # independent: ray k is orthogonal to all lines but the k-th
            for line, t in zip(basis, weights, strict=True):
                inner = on @ line
                inner = np.where(_parallel(on, line), inner, 0)
                if not self._both_fall(int(t * (line @ line)), denominator, inner, y, strictly):
                    return False
            return True
        if comb(len(lines), rank - 1) > _RAYS:
            raise TooLarge
        coordinates = lines @ basis.T
        for chosen in combinations(range(len(lines)), rank - 1):
            mix = null_vector(coordinates[list(chosen)].reshape(rank - 1, rank))
            if mix is not None:
                v = mix @ basis
                if not self._both_fall(int(gradient @ v), 1, on @ v, y, strictly):
                    return False
        return True

    def _both_fall(self, linear: int, factor: int, inner: Integers, y: Integers, strictly: bool) -> bool:
        """Whether D(v) and D(-v) are <= 0 (< 0), D(v) = linear + factor * sum_i y_i phi(inner_i)."""
        for side in (1, -1):
            bend = np.where(inner * side > 0, self.high, self.low) * y
            change = side * (linear + factor * int(bend @ inner))
            if change > 0 or (strictly and change == 0):
                return False
        return True


def _lines(rows: Integers) -> Integers:
    """Return the different lines that the rows span, as primitive integer vectors."""
    found: dict[tuple[int, ...], None] = {}
    for row in rows:
        line = primitive(row)
        if next(c for c in line if c) < 0:
            line = -line
        found[tuple(int(c) for c in line)] = None
    return np.array(list(found), dtype=object).reshape(len(found), rows.shape[1])


def _parallel(rows: Integers, line: Integers) -> npt.NDArray[np.bool_]:
    k = next(i for i, c in enumerate(line) if c)
    return np.array([not any(row * line[k] - line * row[k]) for row in rows], dtype=bool)


def float_maxima(X: Array, y: Array, slope: float, sector: Signs, clear: float = 1e-9) -> tuple[Maximum, ...] | None:
    """`Judge.maxima` for data too large for integers; None where it is too close to call.

    Every comparison must hold by ``clear``, far above the rounding of the sums involved.
    """
    on = sector == 0
    weight = np.where(sector > 0, 1.0, slope) * y * ~on
    gradient = weight @ X
    units = X[on] / np.linalg.norm(X[on], axis=1)[:, None]
    top, h = gradient, np.zeros(0)
    if on.any():
        if units.shape[0] >= X.shape[1] or np.linalg.svd(units, compute_uv=False)[-1] < _INDEPENDENT:
            return None
        if (y[on] > 0).any():
            return ()  # independent hyperplanes: one convex kink is enough to climb
        h = np.linalg.lstsq(X[on].T, gradient, rcond=None)[0]
        top = gradient - h @ X[on]
    size = float(np.linalg.norm(top))
    if size <= clear * float(np.abs(weight) @ np.linalg.norm(X, axis=1)):
        return None
    cosine = (X[~on] @ top) * sector[~on] / (np.linalg.norm(X[~on], axis=1) * size)
    margin = min(cosine.min(initial=1.0), (h - slope).min(initial=1.0), (1.0 - h).min(initial=1.0))
    if margin < -clear:
        return ()
    return (Maximum(top / size, size, sector),) if margin > clear else None
