"""Finding the first thing that happens within a step, and what follows from it.

Watched are the side of every neuron on every hyperplane, the slope on every hyperplane a neuron slides on (it leaves
when that reaches a bound), and the sign of the output weights that can change. Between the ends of a step a side may
change twice; the cubic through values and derivatives at both ends tells where to look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..problem._arrays import Array
from ._flow_field import ON, Geometry, Pattern
from ._flow_state import Mask, State, onto, settle_neuron

_PAST = 1e-13  # a hyperplane counts as crossed this far behind it, as part of |w|


class Coordinates(Protocol):
    """What a chart of either phase offers here."""

    @property
    def geometry(self) -> Geometry: ...  # noqa: D102
    @property
    def pattern(self) -> Pattern: ...  # noqa: D102
    @property
    def who(self) -> Mask: ...  # noqa: D102
    @property
    def balanced(self) -> Mask: ...  # noqa: D102
    def rows(self, y: Array) -> tuple[Array, Array]: ...  # noqa: D102
    def pulls(self, s: float, y: Array) -> Array: ...  # noqa: D102
    def signs(self) -> Array: ...  # noqa: D102
    def margins(self, s: float, y: Array) -> Array: ...  # noqa: D102
    def state(self, y: Array, s: float) -> State: ...  # noqa: D102


@dataclass(frozen=True)
class Happening:
    """Where in a step something happens: the clock there, and the neurons (of the chart) to look at."""

    clock: float
    neurons: npt.NDArray[np.intp]
    surfaces: npt.NDArray[np.intp]  # of the same length; -1: the output weight changes sign, -2: leaves a held one


@dataclass(frozen=True)
class Step:
    """One accepted step with values, derivatives and interpolation."""

    t0: float
    t1: float
    y0: Array
    y1: Array
    f0: Array
    f1: Array
    dense: Callable[[float], Array]


def first_happening(chart: Coordinates, step: Step) -> Happening | None:
    """Find the earliest event of a step, or None."""
    hi, y_hi = step.t1, step.y1
    inner = _between(chart, step)
    if inner is not None:
        hi, y_hi = inner, step.dense(inner)
    found: Happening | None = None
    for _ in range(60):
        late = _overdue(chart, hi, y_hi)
        if found is not None:
            mine = set(zip(found.neurons.tolist(), found.surfaces.tolist(), strict=True))
            late = [(j, k) for j, k in late if (j, k) not in mine]
        if not late:
            break
        found = _locate(chart, step, late, hi)
        if found.clock <= step.t0:
            break
        hi, y_hi = found.clock, step.dense(found.clock)
    if found is None and inner is not None:  # the cubic was mistaken: look at the end itself
        late = _overdue(chart, step.t1, step.y1)
        return _locate(chart, step, late, step.t1) if late else None
    return found


def _sides(chart: Coordinates, V: Array) -> Array:
    """``side * w . n / |w|``; positive where nothing has happened, 1 on held hyperplanes."""
    z = V @ chart.geometry.faces.normals.T
    z /= np.linalg.norm(V, axis=1)[:, None] + 1e-300
    held = chart.pattern.sides == 0
    z *= chart.pattern.sides
    z[held] = 1.0
    return np.asarray(z)


def _overdue(chart: Coordinates, s: float, y: Array) -> list[tuple[int, int]]:
    """What has happened by this moment: pairs (neuron, hyperplane), (neuron, -1) or (neuron, -2)."""
    V, last = chart.rows(y)
    late = [(int(j), int(k)) for j, k in np.argwhere(_sides(chart, V) < -_PAST)]
    loose = ~chart.balanced
    if loose.any() and not chart.geometry.frozen:
        before = chart.signs()
        late += [(int(j), -1) for j in np.flatnonzero(loose & (before * last < 0))]
    if chart.pattern.held:
        c = chart.pulls(s, y)
        late += [(chart.pattern.first(g), -2) for g in chart.pattern.held if _room(chart, g, c) < 0]
    return late


def _room(chart: Coordinates, g: int, c: Array) -> float:
    """How far the slopes of a sliding group are from the bounds; negative beyond."""
    h = chart.pattern.held_slopes(g, c)
    return float(min((h - chart.geometry.slope).min(), (1.0 - h).min())) + 1e-12


def _between(chart: Coordinates, step: Step) -> float | None:
    """Where inside the step some hyperplane seems to be crossed and crossed back."""
    V0, V1 = chart.rows(step.y0)[0], chart.rows(step.y1)[0]
    N, sides = chart.geometry.faces.normals, chart.pattern.sides
    slope0, slope1 = chart.rows(step.f0)[0] @ N.T * sides, chart.rows(step.f1)[0] @ N.T * sides
    turn = (slope0 < 0) & (slope1 > 0)
    if not turn.any():
        return None
    js, ks = np.nonzero(turn)
    h = step.t1 - step.t0
    z0 = np.einsum("id,id->i", V0[js], N[ks]) * sides[js, ks]
    z1 = np.einsum("id,id->i", V1[js], N[ks]) * sides[js, ks]
    d0, d1 = slope0[js, ks] * h, slope1[js, ks] * h
    x = np.clip(-d0 / np.where(d1 - d0 > 0, d1 - d0, 1.0), 0.0, 1.0)  # where the derivative, if linear, vanishes
    cubic = (1 + 2 * x) * (1 - x) ** 2 * z0 + x * (1 - x) ** 2 * d0 + x**2 * (3 - 2 * x) * z1 + x**2 * (x - 1) * d1
    low = (z1 > 0) & (cubic < 1e-3 * np.abs(d0))
    for at in np.unique(x[low]):
        t = step.t0 + float(at) * h
        if (_sides(chart, chart.rows(step.dense(t))[0]) < -_PAST).any():
            return t
    return None


def root(function: Callable[[float], float], lo: float, hi: float) -> float:
    """Where a function that is positive at ``lo`` and not at ``hi`` vanishes."""
    from scipy.optimize import brentq

    return float(brentq(function, lo, hi, xtol=1e-15 * (hi - lo) + 1e-300, rtol=8.9e-16, maxiter=500))


def _clear(function: Callable[[float], float], lo: float, hi: float) -> float:
    """First of some moments at which a function that starts from (about) zero is positive; ``lo`` if there is none.

    A neuron that has just crossed a hyperplane, or left one it slid on, is still on it when the step begins.
    """
    for k in range(1, 40):
        if function(s := lo + (hi - lo) * 2.0**-k) > 0:
            return s
    return lo


def _locate(chart: Coordinates, step: Step, late: list[tuple[int, int]], hi: float) -> Happening:
    """Solve for the time of one overdue event: the one that seems to come first."""
    def value(j: int, k: int) -> Callable[[float], float]:
        def at(s: float) -> float:
            y = step.y0 if s == step.t0 else step.dense(s)
            V, last = chart.rows(y)
            if k == -1:
                return float(chart.signs()[j] * last[j])
            if k == -2:
                return _room(chart, int(chart.pattern.member[j]), chart.pulls(s, y))
            return float(V[j] @ chart.geometry.faces.normals[k]) * int(chart.pattern.sides[j, k])

        return at

    functions = [value(j, k) for j, k in late]
    left = np.array([f(step.t0) for f in functions])
    right = np.array([f(hi) for f in functions])
    lo = np.array([step.t0 if value > 0 else _clear(f, step.t0, hi) for f, value in zip(functions, left, strict=True)])
    left = np.where(lo > step.t0, [f(s) for f, s in zip(functions, lo, strict=True)], left)
    guess = np.where(left <= 0, step.t0, lo + (hi - lo) * left / np.where(left > right, left - right, 1.0))
    best = int(np.argmin(guess))
    when = root(functions[best], float(lo[best]), hi) if left[best] > 0 else step.t0
    j, k = late[best]
    return Happening(when, np.array([j]), np.array([k]))


@dataclass(frozen=True)
class Change:
    """What an event did to one neuron: index among all neurons, hyperplane or -1, kind."""

    neuron: int
    surface: int
    kind: str


def apply(chart: Coordinates, event: Happening, s: float, y: Array, slope: Array) -> tuple[State, list[Change]]:
    """Give every neuron concerned its new sides."""
    geometry, pattern = chart.geometry, chart.pattern
    state = chart.state(y, s)
    index = np.flatnonzero(chart.who)
    V = chart.rows(y)[0]
    dV, da = chart.rows(slope)
    normals = geometry.faces.normals
    size = np.linalg.norm(V, axis=1)[:, None] + 1e-300
    z, dz = V @ normals.T / size, dV @ normals.T
    approaching = pattern.sides * dz <= 0
    here = (np.abs(z) <= ON) & (pattern.sides != 0) & approaching
    due = here & (pattern.sides * z <= _PAST)
    which: dict[int, set[int]] = {int(j): set() for j in np.flatnonzero(due.any(axis=1))}
    signs = state.sign.copy()
    changes: list[Change] = []
    for j, k in zip(event.neurons, event.surfaces, strict=True):
        if k == -2:
            for other in np.flatnonzero(pattern.member == pattern.member[j]):
                which.setdefault(int(other), set())
            continue
        which.setdefault(int(j), set())
        if k == -1:
            signs[index[j]] = np.sign(da[j]) or 1.0
            changes.append(Change(int(index[j]), -1, "flip"))
        else:
            which[int(j)].add(int(k))
    state = replace(state, sign=signs)
    c = chart.pulls(s, y)
    kinks = geometry.kinks(c)
    sides, U = state.sides.copy(), state.U.copy()
    for j, crossed in which.items():
        me = int(index[j])
        before = pattern.sides[j]
        crossed |= set(np.flatnonzero(here[j]).tolist())
        on = np.array(sorted(crossed | set(np.flatnonzero(before == 0).tolist())), dtype=np.intp)
        if on.size == 0:
            continue
        arriving = before[on] != 0
        row, unique = settle_neuron(geometry, state, me, on, before[on], arriving, c, kinks)
        for k in on[row[on] != before[on]]:
            changes.append(Change(me, int(k), {1: "activate", -1: "deactivate", 0: "slide"}[int(row[k])]))
        if not unique:
            changes.append(Change(me, int(on[0]), "ridge"))
        sides[me] = row
        U[me] = onto(geometry, U[me], row)
    return replace(state, sides=sides, U=U), changes
