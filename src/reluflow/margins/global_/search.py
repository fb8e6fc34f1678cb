"""Bracketing the best margin of any network: few samples, few patterns, both growing until the bounds meet.

Two duals of each other are kept at all times. A network gives a lower bound, whatever samples and patterns were
looked at: its margin is taken over all samples. Weights of the samples give an upper bound, provided that the best
single neuron against them is known or bounded (`exact_gain`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...problem import OutOfTime, check_time
from ...problem.types import Array
from .inner import Gain, exact_gain, search_gain
from .master import LARGE, Columns, Point, Rows, fixed_directions, join, lift, polish, solve
from .plane import lay_out, solve_plane

_EPS = 2.0**-52
_GOAL = 1e-12
_CUTS = (1e-5, 1e-4, 1e-6, 1e-7, 1e-3, 1e-8)
#: Entries of the dense part of the cone program beyond which only linear programs are solved.
_LARGEST = 4_000_000
#: Neurons in the plane beyond which all cells are put into one sparse program.
_CROWD = 60
#: Part of the patterns allowed that one proof may take.
_PROOF = 0.1


@dataclass(frozen=True)
class Bracket:
    """Bounds in the units of the data, a primal point that attains ``lower``, and the weights behind ``upper``."""

    lower: float
    upper: float
    V: Array
    s: Array
    weights: Array
    closed: bool
    method: str
    cells: int
    rounds: int
    stopped: Literal["", "patterns", "time", "interrupted"]


class Search:
    """The working samples and neurons, and the best bounds so far, in units of the smallest norm."""

    def __init__(self, X: Array, y: Array, slope: float, signs: tuple[float, ...], E: Array, budget: int) -> None:
        norms = np.linalg.norm(X, axis=1)
        self.reference = float(norms.min())
        self.unit, self.rho = X / norms[:, None], norms / self.reference
        self.E = E / norms[:, None]
        self.y, self.slope, self.signs = y, slope, signs
        self.left, self.proof = budget, int(_PROOF * budget)  # patterns: in all, and for one proof
        n, d = X.shape
        self.lower, self.V, self.s, self.e = 0.0, np.zeros((0, d)), np.zeros(0), np.zeros(E.shape[1])
        self.coarse = self.V, self.s
        self.guess: float | None = None  # of the margin: the unit in which it is best computed
        self.last: tuple[npt.NDArray[np.intp], Rows, Array] | None = None
        self.upper, self.kappa, self.cells, self.method = np.inf, np.zeros(n), 0, "search"
        if not E.size:  # the shortest sample alone bounds the margin by half its norm
            self.upper, self.kappa[int(np.argmin(norms))] = 0.5, 1.0
        self.U, self.us, self.idle = np.zeros((0, d)), np.zeros(0), np.zeros(0, dtype=np.intp)
        self.on = np.zeros((0, n), dtype=bool)  # kept: recomputed, a sample on the hyperplane could change sides
        self.kinks: list[set[int]] = []
        self.rows = np.unique(np.linspace(0, n - 1, min(n, max(100, 2 * d))).astype(np.intp))
        self.rng = np.random.default_rng(0)
        self.rounds = 0

    def frame(self) -> tuple[Rows, Array]:
        """Put the working samples into coordinates of their span; also its basis (columns)."""
        points = self.unit[self.rows]
        _, size, right = np.linalg.svd(points, full_matrices=False)
        basis = right[: int((size > 1e-14 * size[0]).sum())].T
        return Rows(points @ basis, self.y[self.rows], self.rho[self.rows], self.E[self.rows]), basis

    # -- neurons ----------------------------------------------------------------------------------------------------

    def add(self, U: Array, sign: float, fixed: bool = False) -> int:
        """Take in directions whose pattern on the samples of their own sign (``fixed``: on all) is new."""
        most = max(20, len(self.rows) // 4) if fixed else max(5, min(len(self.rows) // 4, 300 // U.shape[1]))
        own = self.rows if fixed else self.rows[self.y[self.rows] == sign]
        known = {row.tobytes() for row in self.on[self.us == sign][:, own]}
        fresh: list[int] = []
        on = U @ self.unit.T > 0
        for k, pattern in enumerate(on[:, own]):
            if len(fresh) < most and (key := pattern.tobytes()) not in known:
                known.add(key)
                fresh.append(k)
        self.U, self.us = np.vstack([self.U, U[fresh]]), np.append(self.us, [sign] * len(fresh))
        self.on, self.idle = np.vstack([self.on, on[fresh]]), np.append(self.idle, [0] * len(fresh))
        self.kinks += [set() for _ in fresh]
        self.left -= len(fresh)
        return len(fresh)

    def keep(self, stay: npt.NDArray[np.bool_]) -> None:
        """Forget all other neurons."""
        self.U, self.us, self.on, self.idle = self.U[stay], self.us[stay], self.on[stay], self.idle[stay]
        self.kinks = [k for k, here in zip(self.kinks, stay, strict=True) if here]

    def drop_idle(self, V: Array) -> None:
        """Forget neurons that the last two solutions did not use."""
        self.idle[: len(V)] = np.where(np.linalg.norm(V, axis=1) < 1e-8, self.idle[: len(V)] + 1, 0)
        if (self.idle < 2).sum() > 20:
            self.keep(self.idle < 2)

    def columns(self, basis: Array) -> Columns:
        """Prepare the neurons of the cone program; the hyperplanes nearest to each get their kink modelled."""
        z = self.U @ self.unit[self.rows].T
        foreign = self.us[:, None] * self.y[self.rows] < 0
        kink = np.zeros(z.shape, dtype=bool)
        if self.slope < 1:
            near = np.where(foreign, np.abs(z), np.inf)
            count = min(2 * basis.shape[1] + 2, near.shape[1])
            np.put_along_axis(kink, np.argpartition(near, count - 1, axis=1)[:, :count], True, axis=1)
            for j, extra in enumerate(self.kinks):
                if extra:
                    kink[j] |= np.isin(self.rows, list(extra))
            kink &= foreign
        return Columns(self.on[:, self.rows], self.us, kink)

    def starts(self, rows: Rows, basis: Array) -> Array:
        """Where the search for neurons begins: at those there are, at samples, and anywhere."""
        count = int(np.clip(3e7 / rows.X.size, 10, 100))
        pool = rows.X[self.rng.permutation(len(rows.X))[:count]]
        anywhere = self.rng.normal(size=(count, basis.shape[1]))
        return np.vstack([self.U[-count:] @ basis, pool, -pool, anywhere])

    # -- bounds -----------------------------------------------------------------------------------------------------

    def consider(self, V: Array, s: Array, e: Array) -> Array:
        """Margins of a primal point at all samples, relative to its norm; keeps it if it is the best so far."""
        size = np.linalg.norm(V, axis=1)
        V, s = V[size > 0], s[size > 0]
        z = self.unit @ V.T
        terms = 0.5 * self.y * (np.where(z > 0, z, self.slope * z) @ s) + self.E @ e
        q = np.asarray(self.rho * terms / max(float(size.sum()), 1e-300))
        if q.min() > self.lower:
            self.lower, self.V, self.s, self.e = float(q.min()), V, s, e
        return q

    def prove(self, rows: Rows, kappa: Array, method: str = "") -> list[Gain] | None:
        """Bound the margin from above by the weights kappa; None where it cannot be done."""
        if rows.E.shape[1]:
            kappa = kappa - rows.E @ np.linalg.lstsq(rows.E, kappa, rcond=None)[0]
            if kappa.min(initial=0.0) < -1e-13:
                return None
            kappa = np.maximum(kappa, 0.0)
        if not kappa.any():
            return None
        kappa = kappa / (kappa @ (1 / rows.rho))
        found: list[Gain] = []
        allowed = max(min(self.proof, self.left), 0)
        for sign in self.signs:
            floor = max([self.lower, *(float(g.values.max(initial=0.0)) for g in found)])
            gain = exact_gain(rows.X * kappa[:, None], rows.y, sign, self.slope, floor, allowed)
            self.left -= gain.cells
            found.append(gain)
        value = max(g.upper for g in found) + 2 * _EPS * float(kappa.sum())  # the rounding of the sums in it
        given_up = any(g.method == "branch and bound" and g.cells >= allowed // 5 for g in found)
        if given_up and value > 1.1 * self.lower:
            self.proof //= 10  # so far off that as many patterns again would not help
        if value < self.upper:
            self.upper = value
            self.method = method or max(found, key=lambda g: g.cells).method
            self.cells = sum(g.cells for g in found)
            self.kappa = np.zeros(len(self.y))
            self.kappa[self.rows] = kappa
        return found

    def closed(self, tol: float) -> bool:
        """Whether the bounds agree, relative to the margin or as far as double precision can tell."""
        held = self.kappa > 0
        noise = 64 * _EPS * (float(self.kappa.sum()) + float(self.rho[held].max(initial=0.0)))
        gap = self.upper - self.lower
        return gap <= max(tol * self.upper, min(noise, 1e-6 * self.upper)) or (self.lower == 0 and self.upper <= noise)


def bracket(
    X: Array,
    y: Array,
    slope: float,
    signs: tuple[float, ...],
    budget: int,
    tol: float,
    rounds: int,
    held: tuple[Array, Array] | None = None,
) -> Bracket:
    """Close in on the best margin from both sides. ``tol`` is relative; tighter is aimed for.

    ``held`` restricts the weights: a matrix E with ``weights @ E = 0``, and weights that satisfy it.
    """
    E, known = (np.zeros((len(y), 0)), None) if held is None else held
    state = Search(X, y, slope, signs, E, budget)
    stopped: Literal["", "patterns", "time", "interrupted"] = ""
    try:
        close_in(state, tol, rounds, known)
        stopped = "patterns" if state.left <= 0 else ""
    except OutOfTime:
        stopped = "time"
    except KeyboardInterrupt:
        stopped = "interrupted"
    if not state.closed(tol) and state.last is not None:
        if stopped:  # what takes no time: the bound before any branching
            state.left = 0
        state.rows, rows, kappa = state.last
        state.prove(rows, kappa)
    V, s = thin_out(*join(state.V, state.s, state.unit, 1e-13), state.unit, slope)
    weights = state.kappa / state.rho
    total = float(weights.sum())
    return Bracket(
        float(state.lower * state.reference),
        float(state.upper * state.reference),
        V,
        s,
        weights / total if total > 0 else weights,
        bool(state.closed(tol)),
        state.method,
        state.cells,
        state.rounds,
        "" if state.closed(tol) else stopped,
    )


def close_in(state: Search, tol: float, rounds: int, known: Array | None) -> None:
    """Search and prove until the bounds meet, or rounds or patterns are used up."""
    if known is not None:
        state.rows = np.arange(len(state.y))
        rows, _ = state.frame()
        state.prove(rows, known * state.rho)
    approach(state, rounds)
    after = 0
    while state.rounds < rounds and state.left > 0 and after <= 2 and not state.closed(_GOAL) and improve(state):
        state.rounds += 1
        after += state.closed(tol)
    if not state.closed(tol) and state.unit.shape[1] == 2 and not state.E.size:
        whole_plane(state)


def approach(state: Search, rounds: int) -> None:
    """Come near with neurons of fixed directions: a linear program a round, cheap and never misled by a kink."""
    rows, basis = state.frame()
    for sign in state.signs:
        gain = search_gain(rows.X / len(rows.X), rows.y, sign, state.slope, state.starts(rows, basis))
        if not state.add(gain.directions @ basis.T, sign):
            state.add(np.vstack([state.unit[:1], -state.unit[:1]]), sign)
    weights = np.zeros(0)
    for round_ in range(1, rounds + 1):
        check_time("looking for the network of largest margin")
        state.rounds = round_
        rows, basis = state.frame()
        # Long samples are asked for a little more than they need, which keeps the numbers of a size.
        found = fixed_directions(replace(rows, rho=np.minimum(rows.rho, 1e3)), state.U @ basis, state.us, state.slope)
        if found is None:
            break
        weights, e, kappa, value = found
        state.last = state.rows, rows, kappa
        used, before = weights > 0, state.rows
        q = state.consider(state.U[used] * weights[used][:, None], state.us[used], e)
        best, new = 0.0, 0
        for sign in state.signs:
            gain = search_gain(rows.X * kappa[:, None], rows.y, sign, state.slope, state.starts(rows, basis))
            best = max(best, float(gain.values.max(initial=0.0)))
            better = gain.values > value + 1e-6 * abs(value) + 1e-14
            new += state.add(gain.directions[better] @ basis.T, sign, fixed=True)
        longer = add_rows(state, q, value)
        new += longer
        if not new:
            state.prove(rows, kappa)
        late = round_ >= (8 if basis.shape[1] > 8 and state.lower > 0 and not longer else 25)
        crowded = basis.shape[1] == 2 and max(used.sum(), len(state.rows) // 4) > _CROWD
        if not new or best <= 1.02 * state.lower or late or crowded or state.left <= 0:
            state.guess = state.lower if best <= 2 * state.lower else None
            break
    state.coarse = state.V, state.s
    if weights.any():
        state.keep(np.append(weights > 1e-12, np.zeros(len(state.us) - len(weights), dtype=bool)))
        near = np.flatnonzero((q < 1.2 * max(value, state.lower)) | (state.E.shape[1] > 0))
        state.rows = np.union1d(before[kappa > 0], np.intersect1d(near, state.rows))


def improve(state: Search) -> bool:
    """One round: solve the small program, then let the samples and neurons it lacks join. False when none does."""
    if state.unit.shape[1] == 2 and max(len(state.us), len(state.rows) // 4) > _CROWD and not state.E.size:
        return False  # left to the whole plane
    check_time("looking for the network of largest margin")
    rows, basis = state.frame()
    if rows.X.size * len(state.us) > _LARGEST:
        return False
    cols = state.columns(basis)
    point = None if state.guess is None else solve(rows, cols, state.slope, state.guess)
    point = point or solve(rows, cols, state.slope, None)
    if point is None:
        return False
    state.guess = point.value if point.value > 1e-10 else None
    q = state.consider(point.V @ basis.T, point.s, point.e)
    state.last = state.rows, rows, np.where(point.kappa > 1e-7 * point.kappa.max(), point.kappa, 0.0)
    new = add_kinks(state, cols, point, rows)
    best = 0.0
    for sign in state.signs:
        moved = point.V[(point.s == sign) & (np.linalg.norm(point.V, axis=1) > 1e-9)] @ basis.T
        new += state.add(moved / np.linalg.norm(moved, axis=1)[:, None], sign)
        gain = search_gain(rows.X * point.kappa[:, None], rows.y, sign, state.slope, state.starts(rows, basis))
        best = max(best, float(gain.values.max(initial=0.0)))
        new += state.add(gain.directions[gain.values > point.value * (1 + 1e-9)] @ basis.T, sign)
    if not new or best <= state.lower * (1 + 1e-4):
        new += certify(state, rows, basis, point)
    new += add_rows(state, q, point.value)
    state.drop_idle(point.V)
    return new > 0


def whole_plane(state: Search) -> None:
    """All cells of the plane at once."""
    plane = lay_out(state.unit, state.y, state.rho, state.slope, state.signs)
    point = None if plane is None else solve_plane(plane)
    if point is not None:
        state.consider(point.V, point.s, point.e)
        state.rows = np.arange(len(state.y))
        everything = Rows(state.unit, state.y, state.rho, state.E)
        state.prove(everything, point.kappa, "plane")


def add_rows(state: Search, q: Array, value: float) -> int:
    """Take in the samples whose margin falls most short of the program's value."""
    short = np.setdiff1d(np.flatnonzero(q < value - 1e-9 * abs(value)), state.rows)
    worst = short[np.argsort(q[short], kind="stable")[: max(20, len(state.rows) // 2)]]
    state.rows = np.union1d(state.rows, worst)
    return int(worst.size)


def add_kinks(state: Search, cols: Columns, point: Point, rows: Rows) -> int:
    """Model the kinks that the solution has crossed although they were taken for straight."""
    if state.slope == 1:
        return 0
    crossed = (point.V @ rows.X.T > 0) != cols.on
    crossed &= (cols.s[:, None] * rows.y < 0) & ~cols.kink & (np.linalg.norm(point.V, axis=1) > 1e-9)[:, None]
    for j, i in zip(*np.nonzero(crossed), strict=True):
        state.kinks[j].add(int(state.rows[i]))
    return int(crossed.sum())


def certify(state: Search, rows: Rows, basis: Array, point: Point) -> int:
    """Polish and prove; returns how many neurons turned out to be missing."""
    added = 0
    plain = replace(point, kappa=np.where(point.kappa > 1e-7 * point.kappa.max(), point.kappa, 0.0))
    if point.V.size > LARGE:  # the polish takes long then, and mends the last digits only
        found = state.prove(rows, plain.kappa)
        if state.upper > 1.01 * state.lower:
            return 0 if found is None else add_missing(state, found, basis, plain)
    for cut in (*_CUTS, None):
        check_time("looking for the network of largest margin")
        candidate = plain if cut is None else polish(rows, point, state.slope, cut)
        if candidate is None or (cut is None and added):
            continue
        state.consider(candidate.V @ basis.T, candidate.s, candidate.e)
        if rows.rho.max() > 100:
            raise_long(state, rows, basis, candidate)
        A = rows.X * candidate.kappa[:, None]
        found = [search_gain(A, rows.y, s, state.slope, state.starts(rows, basis)) for s in state.signs]
        best = max(float(g.values.max(initial=0.0)) for g in found)
        if cut is None or best <= max(state.lower, candidate.value) * (1 + 1e-6) + 1e-9:
            found = state.prove(rows, candidate.kappa) or found
        if state.lower == 0 and state.upper < 1e-6:
            vanish(state, rows, candidate.kappa)
        if state.closed(_GOAL):
            return 0
        added += add_missing(state, found, basis, candidate)
    return added


def add_missing(state: Search, found: list[Gain], basis: Array, point: Point) -> int:
    """Take in the neurons that gain more than there is; returns how many are new."""
    least = max(point.value, state.lower) * (1 + 1e-11)
    pairs = zip(found, state.signs, strict=True)
    return sum(state.add(gain.directions[gain.values > least] @ basis.T, sign) for gain, sign in pairs)


def raise_long(state: Search, rows: Rows, basis: Array, point: Point) -> None:
    """Give the long samples the tiny outputs they need: nudge the neurons, or mix in a trace of the coarse network."""
    for _ in range(4):
        check_time("looking for the network of largest margin")
        point = lift(rows, point, state.slope)
        state.consider(point.V @ basis.T, point.s, point.e)
    V, s = point.V @ basis.T, point.s
    for trace in 10.0 ** np.arange(-14, -2):
        both = np.vstack([(1 - trace) * V, trace * state.coarse[0]])
        state.consider(both, np.append(s, state.coarse[1]), point.e)


def vanish(state: Search, rows: Rows, kappa: Array) -> None:
    """Where no neuron seems to gain anything, change the weights a little so that none does."""
    for _ in range(5):
        found = state.prove(rows, kappa)
        if found is None or state.closed(_GOAL):
            return
        equations = []
        for gain, sign in zip(found, state.signs, strict=True):
            on = gain.directions[:20] @ rows.X.T > 0
            effect = 0.5 * sign * rows.y * np.where(on, 1.0, state.slope)
            equations += [(c[:, None] * rows.X).T for c in effect]
        if not equations:
            return
        M = np.vstack(equations) * kappa
        kappa = kappa * np.maximum(1 - np.linalg.lstsq(M, M.sum(axis=1), rcond=1e-10)[0], 0.0)


def thin_out(V: Array, s: Array, unit: Array, slope: float) -> tuple[Array, Array]:
    """At most n + 1 neurons with the same outputs at the samples and no larger norm (Caratheodory)."""
    most = len(unit) + 1
    while len(V) > most:
        if len(unit) > 400:  # rare, and the smallest neurons then hardly matter
            keep = np.sort(np.argsort(-np.linalg.norm(V, axis=1))[:most])
            return V[keep], s[keep]
        size = np.linalg.norm(V, axis=1)
        order = np.argsort(size)[: most + 1]
        z = unit @ (V[order] / size[order, None]).T
        effect = np.vstack([s[order] * np.where(z > 0, z, slope * z), np.ones(len(order))])
        null = np.linalg.svd(effect)[2][-1]
        null = null if null.max() >= -null.min() else -null
        ratio = np.where(null > 0, size[order] / np.where(null > 0, null, 1.0), np.inf)
        new = size[order] - ratio.min() * null
        new[int(np.argmin(ratio))] = 0.0
        V = V.copy()
        V[order] *= (np.maximum(new, 0.0) / size[order])[:, None]
        live = V.any(axis=1)
        V, s = V[live], s[live]
    return V, s
