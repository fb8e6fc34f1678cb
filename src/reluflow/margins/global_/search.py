"""Bracketing the best margin of any network: few samples, few patterns, both growing until the bounds meet.

Two duals of each other are kept at all times. A network gives a lower bound, whatever samples and patterns were
looked at: its margin is taken over all samples. Weights of the samples give an upper bound, provided that the best
single neuron against them is known or bounded (`exact_gain`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...problem import OutOfTime, check_time
from ...problem.types import Array
from .inner import Gain, search_gain
from .master import LARGE, Point, Rows, fixed_directions, join, lift, polish, solve
from .plane import lay_out, solve_plane
from .state import Search

_GOAL = 1e-12  # relative gap aimed for, whatever gap was asked for
#: What is taken for zero in a polish, relative to the largest, in the order in which it usually succeeds.
_CUTS = (1e-5, 1e-4, 1e-6, 1e-7, 1e-3, 1e-8)
#: Entries of the dense part of the cone program beyond which only linear programs are solved.
_LARGEST = 4_000_000
#: Neurons in the plane beyond which all cells are put into one sparse program.
_CROWD = 60
_ONE_CELL = 1e-13  # cosine to a sample's hyperplane below which neurons of the answer lie on it
_LONGEST = 1e3  # relative norm up to which a sample of the linear program counts in full
_GAINS = (1e-6, 1e-14)  # relative and absolute gain over a linear program from which a direction joins it
_GAINS_MORE = 1e-9  # the same, relative, for the cone program, whose value is more exact
_KEPT = 1e-12  # weight, of all neurons together 1, from which a neuron of the linear program is kept
_SHORT = 1e-9  # relative shortfall of a margin from which the sample joins
_SILENT = 1e-10  # a margin below this is no unit to compute in
_LIVE = 1e-9  # norm, of all neurons together 1, from which a neuron of the cone program is real
_WEIGHTY = 1e-7  # weight, relative to the largest, from which the cone program means it
_NEARLY = 1e-4  # relative gap at which a proof is tried although neurons still join
_ALMOST = (1e-6, 1e-9)  # relative and absolute gain over a candidate up to which it is worth a proof
_NO_MARGIN = 1e-6  # an upper bound below this, with no network found, hints at a margin of 0
_MISSING = 1e-11  # relative gain over the best value from which a neuron is missing
_TRACES = 10.0 ** np.arange(-14, -2)  # shares of the coarse network that long samples may need
_FREE = 1e-10  # singular values, relative, below which changes of the weights are left alone


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


def bracket(
    X: Array,
    y: Array,
    slope: float,
    signs: tuple[float, ...],
    budget: int,
    tol: float,
    rounds: int,
    held: tuple[Array, Array] | None = None,
    decide: float | None = None,
) -> Bracket:
    """Close in on the best margin from both sides. ``tol`` is relative; tighter is aimed for.

    ``held`` restricts the weights: a matrix E with ``weights @ E = 0``, and weights that satisfy it. The search ends as
    soon as the bounds tell whether the margin is below ``decide``.
    """
    E, known = (np.zeros((len(y), 0)), None) if held is None else held
    state = Search(X, y, slope, signs, E, budget, decide)
    stopped: Literal["", "patterns", "time", "interrupted"] = ""
    try:
        close_in(state, tol, rounds, known)
        stopped = "patterns" if state.budget.left <= 0 else ""
    except OutOfTime:
        stopped = "time"
    except KeyboardInterrupt:
        stopped = "interrupted"
    if not state.closed(tol) and not state.decided() and state.last is not None:
        if stopped:  # what takes no time: the bound before any branching
            state.budget.use_up()
        index, rows, kappa = state.last
        state.work.set(index)
        state.prove(rows, kappa)
    data, lower, upper = state.samples, state.lower, state.upper
    V, s = thin_out(*join(lower.V, lower.s, data.unit, _ONE_CELL), data.unit, slope)
    weights = upper.kappa / data.rho
    total = float(weights.sum())
    return Bracket(
        float(lower.value * data.reference),
        float(upper.value * data.reference),
        V,
        s,
        weights / total if total > 0 else weights,
        bool(state.closed(tol)),
        upper.method,
        upper.cells,
        state.rounds,
        "" if state.closed(tol) else stopped,
    )


def close_in(state: Search, tol: float, rounds: int, known: Array | None) -> None:
    """Search and prove until the bounds meet, or rounds or patterns are used up."""
    if known is not None:
        state.work.set_all()
        rows, _ = state.work.frame()
        state.prove(rows, known * state.samples.rho)
    if not state.decided():
        approach(state, rounds)
    after = 0
    while state.rounds < rounds and state.budget.left > 0 and after <= 2 and not _done(state, _GOAL) and improve(state):
        state.rounds += 1
        after += state.closed(tol)
    if not _done(state, tol) and state.samples.d == 2 and not state.samples.E.size:
        whole_plane(state)


def _done(state: Search, tol: float) -> bool:
    """Whether nothing is left to find out."""
    return state.decided() or state.closed(tol)


def approach(state: Search, rounds: int) -> None:
    """Come near with neurons of fixed directions: a linear program a round, cheap and never misled by a kink."""
    data, work, neurons = state.samples, state.work, state.neurons
    _first_neurons(state)
    weights = np.zeros(0)
    for round_ in range(1, rounds + 1):
        check_time("looking for the network of largest margin")
        state.rounds = round_
        rows, basis = work.frame()
        # Long samples are asked for a little more than they need, which keeps the numbers of a size.
        capped = replace(rows, rho=np.minimum(rows.rho, _LONGEST))
        found = fixed_directions(capped, neurons.U @ basis, neurons.s, data.slope)
        if found is None:
            break
        weights, e, kappa, value = found
        state.last = work.index, rows, kappa
        used, before = weights > 0, work.index
        q = state.lower.consider(neurons.U[used] * weights[used][:, None], neurons.s[used], e)
        if state.decided():
            return
        best, new = _add_better(state, rows, basis, kappa, value)
        longer = work.add_short(q, value - _SHORT * abs(value))
        new += longer
        if not new:
            state.prove(rows, kappa)
        late = round_ >= (8 if basis.shape[1] > 8 and state.lower.value > 0 and not longer else 25)
        crowded = basis.shape[1] == 2 and max(used.sum(), len(work.index) // 4) > _CROWD
        if not new or best <= 1.02 * state.lower.value or late or crowded or state.budget.left <= 0:
            state.guess = state.lower.value if best <= 2 * state.lower.value else None
            break
    state.coarse = state.lower.V, state.lower.s
    if weights.any():
        neurons.keep(np.append(weights > _KEPT, np.zeros(len(neurons.s) - len(weights), dtype=bool)))
        near = np.flatnonzero((q < 1.2 * max(value, state.lower.value)) | (data.E.shape[1] > 0))
        work.set(np.union1d(before[kappa > 0], np.intersect1d(near, work.index)))


def _first_neurons(state: Search) -> None:
    """Begin with the best neurons against equal weights, else with a sample and its mirror image."""
    data = state.samples
    rows, basis = state.work.frame()
    for sign in data.signs:
        gain = search_gain(rows.X / len(rows.X), rows.y, sign, data.slope, state.starts(rows, basis))
        if not state.add(gain.directions @ basis.T, sign):
            state.add(np.vstack([data.unit[:1], -data.unit[:1]]), sign)


def _add_better(state: Search, rows: Rows, basis: Array, kappa: Array, value: float) -> tuple[float, int]:
    """Take in the directions that gain more than ``value`` against the weights; the best gain, and how many joined."""
    best, new = 0.0, 0
    for sign in state.samples.signs:
        gain = search_gain(rows.X * kappa[:, None], rows.y, sign, state.samples.slope, state.starts(rows, basis))
        best = max(best, float(gain.values.max(initial=0.0)))
        better = gain.values > value + _GAINS[0] * abs(value) + _GAINS[1]
        new += state.add(gain.directions[better] @ basis.T, sign, fixed=True)
    return best, new


def improve(state: Search) -> bool:
    """One round: solve the small program, then let the samples and neurons it lacks join. False when none does."""
    data, work, neurons = state.samples, state.work, state.neurons
    if data.d == 2 and max(len(neurons.s), len(work.index) // 4) > _CROWD and not data.E.size:
        return False  # left to the whole plane
    check_time("looking for the network of largest margin")
    rows, basis = work.frame()
    if rows.X.size * len(neurons.s) > _LARGEST:
        return False
    cols = neurons.columns(work.index, basis.shape[1])
    point = None if state.guess is None else solve(rows, cols, data.slope, state.guess)
    point = point or solve(rows, cols, data.slope, None)
    if point is None:
        return False
    state.guess = point.value if point.value > _SILENT else None
    q = state.lower.consider(point.V @ basis.T, point.s, point.e)
    if state.decided():
        return False
    state.last = work.index, rows, _meant(point.kappa)
    new = neurons.model_crossed(cols, point, rows, work.index, _LIVE)
    best = 0.0
    for sign in data.signs:
        moved = point.V[(point.s == sign) & (np.linalg.norm(point.V, axis=1) > _LIVE)] @ basis.T
        new += state.add(moved / np.linalg.norm(moved, axis=1)[:, None], sign)
        gain = search_gain(rows.X * point.kappa[:, None], rows.y, sign, data.slope, state.starts(rows, basis))
        best = max(best, float(gain.values.max(initial=0.0)))
        new += state.add(gain.directions[gain.values > point.value * (1 + _GAINS_MORE)] @ basis.T, sign)
    if not new or best <= state.lower.value * (1 + _NEARLY):
        new += certify(state, rows, basis, point)
    new += work.add_short(q, point.value - _SHORT * abs(point.value))
    neurons.drop_idle(point.V)
    return new > 0


def _meant(kappa: Array) -> Array:
    """Weights without those that an interior point leaves at every sample."""
    return np.where(kappa > _WEIGHTY * kappa.max(), kappa, 0.0)


def whole_plane(state: Search) -> None:
    """All cells of the plane at once."""
    data = state.samples
    plane = lay_out(data.unit, data.y, data.rho, data.slope, data.signs)
    point = None if plane is None else solve_plane(plane)
    if point is not None:
        state.lower.consider(point.V, point.s, point.e)
        state.prove(state.work.set_all(), point.kappa, "plane")


def certify(state: Search, rows: Rows, basis: Array, point: Point) -> int:
    """Polish and prove; returns how many neurons turned out to be missing."""
    added = 0
    plain = replace(point, kappa=_meant(point.kappa))
    if point.V.size > LARGE:  # the polish takes long then, and mends the last digits only
        proved = state.prove(rows, plain.kappa)
        if state.upper.value > 1.01 * state.lower.value:
            return 0 if proved is None else add_missing(state, proved, basis, plain)
    for cut in (*_CUTS, None):
        check_time("looking for the network of largest margin")
        if cut is None and added:
            break
        candidate = plain if cut is None else polish(rows, point, state.samples.slope, cut)
        if candidate is None:
            continue
        state.lower.consider(candidate.V @ basis.T, candidate.s, candidate.e)
        if rows.rho.max() > 100:
            raise_long(state, rows, basis, candidate)
        found = _gains_against(state, rows, basis, candidate, always_prove=cut is None)
        if state.lower.value == 0 and state.upper.value < _NO_MARGIN:
            prove_zero_margin(state, rows, candidate.kappa)
        if _done(state, _GOAL):
            return 0
        added += add_missing(state, found, basis, candidate)
    return added


def _gains_against(state: Search, rows: Rows, basis: Array, point: Point, always_prove: bool) -> list[Gain]:
    """Look for neurons that gain more than a point has; where none is found in a search, prove it."""
    data, A = state.samples, rows.X * point.kappa[:, None]
    found = [search_gain(A, rows.y, s, data.slope, state.starts(rows, basis)) for s in data.signs]
    best = max(float(g.values.max(initial=0.0)) for g in found)
    if always_prove or best <= max(state.lower.value, point.value) * (1 + _ALMOST[0]) + _ALMOST[1]:
        return state.prove(rows, point.kappa) or found
    return found


def add_missing(state: Search, found: list[Gain], basis: Array, point: Point) -> int:
    """Take in the neurons that gain more than there is; returns how many are new."""
    least = max(point.value, state.lower.value) * (1 + _MISSING)
    pairs = zip(found, state.samples.signs, strict=True)
    return sum(state.add(gain.directions[gain.values > least] @ basis.T, sign) for gain, sign in pairs)


def raise_long(state: Search, rows: Rows, basis: Array, point: Point) -> None:
    """Give the long samples the tiny outputs they need: nudge the neurons, or mix in a trace of the coarse network."""
    for _ in range(4):
        check_time("looking for the network of largest margin")
        point = lift(rows, point, state.samples.slope)
        state.lower.consider(point.V @ basis.T, point.s, point.e)
    V, s = point.V @ basis.T, point.s
    for trace in _TRACES:
        both = np.vstack([(1 - trace) * V, trace * state.coarse[0]])
        state.lower.consider(both, np.append(s, state.coarse[1]), point.e)


def prove_zero_margin(state: Search, rows: Rows, kappa: Array) -> None:
    """Change weights against which neurons gain next to nothing a little, until none gains anything.

    Such weights prove that the margin is 0: each neuron that still gains gives equations, linear in the weights, that
    its gain vanish, and the nearest weights that satisfy them are tried next.
    """
    for _ in range(5):
        found = state.prove(rows, kappa)
        if found is None or state.closed(_GOAL):
            return
        equations = []
        for gain, sign in zip(found, state.samples.signs, strict=True):
            on = gain.directions[:20] @ rows.X.T > 0
            effect = 0.5 * sign * rows.y * np.where(on, 1.0, state.samples.slope)
            equations += [(c[:, None] * rows.X).T for c in effect]
        if not equations:
            return
        M = np.vstack(equations) * kappa
        kappa = kappa * np.maximum(1 - np.linalg.lstsq(M, M.sum(axis=1), rcond=_FREE)[0], 0.0)


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
