"""Bracketing the best margin of any network: few samples, few patterns, both growing until the bounds meet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ._global_inner import Gain, exact_gain, gains, search_gain
from ._global_master import Columns, Point, Rows, merge, polish, solve

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

_CUTS = (1e-5, 1e-4, 1e-6, 1e-7, 1e-3, 1e-8)


@dataclass(frozen=True)
class Bracket:
    """Bounds in the units of the data, a primal point in input space that attains ``lower``, weights of the samples."""

    lower: float
    upper: float
    V: Array
    s: Array
    weights: Array
    proved: bool
    cells: int
    iterations: int


class Search:
    """State of the search: the working samples and neurons, the best bounds so far."""

    def __init__(self, X: Array, y: Array, slope: float, signs: tuple[float, ...], E: Array, budget: int) -> None:
        norms = np.linalg.norm(X, axis=1)
        self.reference = float(norms.min())
        self.unit, self.rho = X / norms[:, None], norms / self.reference
        self.y, self.slope, self.signs, self.budget = y, slope, signs, budget
        self.E = E / norms[:, None]
        n, d = X.shape
        self.lower, self.V, self.s = 0.0, np.zeros((0, d)), np.zeros(0)
        self.e = np.zeros(E.shape[1])
        # The shortest point alone bounds the margin by half its norm.
        self.weights = np.zeros(n)
        self.upper, self.cells, self.proved = np.inf, 0, False
        if not E.size:
            self.upper, self.weights[int(np.argmin(norms))] = 0.5, 1.0
        self.U, self.us = np.zeros((0, d)), np.zeros(0)
        self.kinks: list[set[int]] = []
        self.rows = np.unique(np.linspace(0, n - 1, min(n, max(60, 6 * d))).astype(np.intp))
        self.rng = np.random.default_rng(0)

    # -- coordinates ------------------------------------------------------------------------------------------------

    def frame(self) -> tuple[Rows, Array]:
        """The working samples in coordinates of their span, and the basis (columns)."""
        Xi = self.unit[self.rows]
        _, size, right = np.linalg.svd(Xi, full_matrices=False)
        basis = right[: int((size > 1e-13 * size[0]).sum())].T
        return Rows(Xi @ basis, self.y[self.rows], self.rho[self.rows], self.E[self.rows]), basis

    # -- neurons ----------------------------------------------------------------------------------------------------

    def add_columns(self, U: Array, sign: float, most: int) -> int:
        """Take up to ``most`` directions whose pattern on the samples of their own sign is new."""
        own = self.rows[self.y[self.rows] == sign]
        known = {row.tobytes() for row in (self.U[self.us == sign] @ self.unit[own].T > 0)}
        added = 0
        for u in U:
            key = (self.unit[own] @ u > 0).tobytes()
            if key in known:
                continue
            known.add(key)
            self.U, self.us = np.vstack([self.U, u]), np.append(self.us, sign)
            self.kinks.append(set())
            added += 1
            if added == most:
                break
        return added

    def columns(self, basis: Array) -> Columns:
        """The neurons of the program; the hyperplanes nearest to each reference get their kink modelled."""
        U = self.U @ basis
        z = self.U @ self.unit[self.rows].T
        foreign = self.us[:, None] * self.y[self.rows] < 0
        kink = np.zeros(z.shape, dtype=bool)
        if self.slope < 1:
            near = np.where(foreign, np.abs(z), np.inf)
            count = min(4 * basis.shape[1], near.shape[1])
            chosen = np.argpartition(near, count - 1, axis=1)[:, :count]
            np.put_along_axis(kink, chosen, True, axis=1)
            for j, extra in enumerate(self.kinks):
                if extra:
                    kink[j] |= np.isin(self.rows, list(extra))
            kink &= foreign
        return Columns(U, self.us, kink)

    # -- bounds -----------------------------------------------------------------------------------------------------

    def consider(self, V: Array, s: Array, e: Array) -> Array:
        """Margins of a primal point at all samples, relative to its norm; keeps it if it is the best so far."""
        V, s = merge(V, s)
        size = float(np.linalg.norm(V, axis=1).sum())
        z = self.unit @ V.T
        terms = 0.5 * self.y * (np.where(z > 0, z, self.slope * z) @ s) + self.E @ e
        q = np.asarray(self.rho * terms / size)
        if q.min() > self.lower:
            self.lower, self.V, self.s, self.e = float(q.min()), V, s, e
        return q

    def weights_of(self, kappa: Array) -> Array:
        full = np.zeros(len(self.y))
        full[self.rows] = kappa / self.rho[self.rows]
        return full / full.sum()

    def prove(self, rows: Rows, kappa: Array) -> list[Gain] | None:
        """Bound the margin from above with the weights kappa; None where the patterns are too many."""
        A = rows.X * kappa[:, None]
        found = []
        for sign in self.signs:
            gain = exact_gain(A, rows.y, sign, self.slope, self.budget)
            if gain is None:
                return None
            found.append(gain)
        value = max(g.upper for g in found)
        self.cells = max(self.cells, max(g.cells for g in found))
        if value < self.upper or not self.proved:
            self.proved = True
            if value < self.upper:
                self.upper, self.weights = value, self.weights_of(kappa)
        return found

    def starts(self, rows: Rows, basis: Array, extra: Array) -> Array:
        r = basis.shape[1]
        pool = rows.X[self.rng.permutation(len(rows.X))[:100]]
        return np.vstack([extra, self.U[-50:] @ basis, pool, -pool, self.rng.normal(size=(20 + 10 * r, r))])


def bracket(
    X: Array, y: Array, slope: float, signs: tuple[float, ...], E: Array, budget: int, tol: float, rounds: int = 200
) -> Bracket:
    """Close in on the best margin from both sides until the gap is below ``tol`` (relative)."""
    state = Search(X, y, slope, signs, E, budget)
    rows, basis = state.frame()
    A = rows.X / len(rows.X)
    for sign in signs:
        gain = search_gain(A, rows.y, sign, slope, state.starts(rows, basis, A[:1]))
        state.add_columns(gain.directions @ basis.T, sign, 10)
        if not gain.values.size:
            state.add_columns(-sign * y[:1, None] * state.unit[:1], sign, 1)
    iteration = 0
    for iteration in range(1, rounds + 1):
        if not improve(state, tol):
            break
        if state.proved and state.upper - state.lower <= tol * state.upper:
            break
    scale = state.reference
    return Bracket(
        state.lower * scale, state.upper * scale, state.V, state.s, state.weights, state.proved, state.cells, iteration
    )


def improve(state: Search, tol: float) -> bool:
    """One round: solve the small program, then let the samples and neurons it lacks join. False when none is left."""
    rows, basis = state.frame()
    cols = state.columns(basis)
    point = solve(rows, cols, state.slope, state.lower if state.lower > 0 else None)
    if point is None:
        return False
    q = state.consider(point.V @ basis.T, point.s, point.e)
    new = add_rows(state, q, point.value) + add_kinks(state, cols, point, rows)
    best = 0.0
    A = rows.X * point.kappa[:, None]
    for sign in state.signs:
        own = point.V[point.s == sign]
        moved = own[np.linalg.norm(own, axis=1) > 1e-9] @ basis.T
        new += state.add_columns(moved / np.linalg.norm(moved, axis=1)[:, None], sign, 50)
        gain = search_gain(A, rows.y, sign, state.slope, state.starts(rows, basis, A[:1] + rows.X[:1]))
        better = gain.values > point.value * (1 + 1e-9)
        best = max(best, float(gain.values.max(initial=0.0)))
        new += state.add_columns(gain.directions[better] @ basis.T, sign, 20)
    if new and best > state.lower * (1 + 1e-3):
        return True
    return new + certify(state, rows, basis, point, tol) > 0


def add_rows(state: Search, q: Array, value: float) -> int:
    """Take in the samples whose margin falls most short of the program's value."""
    short = np.flatnonzero(q < value - 1e-9 * abs(value))
    fresh = np.setdiff1d(short, state.rows)
    if fresh.size:
        most = max(20, len(state.rows) // 2)
        fresh = fresh[np.argsort(q[fresh], kind="stable")[:most]]
        state.rows = np.union1d(state.rows, fresh)
    return int(fresh.size)


def add_kinks(state: Search, cols: Columns, point: Point, rows: Rows) -> int:
    """Model the kinks that the solution has crossed although they were taken for straight."""
    if state.slope == 1:
        return 0
    size = np.linalg.norm(point.V, axis=1)
    crossed = (point.V @ rows.X.T > 0) != (cols.U @ rows.X.T > 0)
    crossed &= (cols.s[:, None] * rows.y < 0) & ~cols.kink & (size > 1e-9)[:, None]
    for j, i in zip(*np.nonzero(crossed), strict=True):
        state.kinks[j].add(int(state.rows[i]))
    return int(crossed.sum())


def certify(state: Search, rows: Rows, basis: Array, point: Point, tol: float) -> int:
    """Polish and prove; returns how many neurons or samples turned out to be missing."""
    index = state.rows
    added = 0
    for cut in _CUTS:
        candidate = polish(rows, point, state.slope, cut)
        if candidate is None:
            continue
        state.consider(candidate.V @ basis.T, candidate.s, candidate.e)
        found = state.prove(rows, candidate.kappa) if state.rows is index else None
        if found is None:
            continue
        if state.upper - state.lower <= tol * state.upper:
            return 0
        for gain, sign in zip(found, state.signs, strict=True):
            better = gain.values > max(candidate.value, state.lower) * (1 + 1e-11)
            added += state.add_columns(gain.directions[better] @ basis.T, sign, 20)
    return added


__all__ = ["Bracket", "bracket", "gains"]
