"""Finding the first thing that happens within a step, and what follows from it.

Watched are the side of every neuron on every hyperplane, the slope on every hyperplane a neuron slides on (it leaves
when that reaches a bound), and the sign of the output weights that can change. Between the ends of a step a side may
change twice; the cubic through values and derivatives at both ends tells where to look.

Hyperplanes of samples whose pulls are below rounding are *idle*: any number of them may be crossed within a step,
since nothing but the side changes there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ...problem.types import Array, Flags, Index, Signs
from .field import ON, Geometry, Pattern
from .origin import Exit, way_out
from .state import State, onto, settle_neuron

TINY = -35.0  # log of the size, relative to |a|, at which a neuron leaves w = 0
_PAST = 1e-13  # at an event a neuron this near to another hyperplane is on it, as part of |w|
_REACH = 3.0  # a neuron meets no hyperplane in a step unless this times the way from end to end would lead there
_NODES = 7  # moments of a step at which the sides on idle hyperplanes are looked at


class Path(Protocol):
    """The polynomial along which coordinates go in a step, in terms of some differences."""

    def __call__(self, s: float) -> Array: ...
    def weights(self, s: Any) -> Array: ...
    def along(self, j: int, normal: Array) -> Array: ...


class Coordinates(Protocol):
    """What a chart offers here."""

    @property
    def geometry(self) -> Geometry: ...
    @property
    def base(self) -> State: ...
    @property
    def pattern(self) -> Pattern: ...
    @property
    def who(self) -> Flags: ...
    @property
    def balanced(self) -> Flags: ...
    @property
    def y0(self) -> Array: ...
    def rows(self, y: Array) -> tuple[Array, Array]: ...
    def pulls(self, s: float, y: Array) -> Array: ...
    def edge(self, s: float, y: Array) -> float: ...
    def blur(self, s: float, y: Array, tol: float) -> float: ...
    @property
    def signs(self) -> Array: ...
    def margins(self, s: float, y: Array) -> Array: ...
    def state(self, y: Array, s: float) -> State: ...


@dataclass(frozen=True)
class Happening:
    """Where in a step something happens: the clock there, the neuron (of the chart) and the hyperplane.

    In place of a hyperplane: -1, the output weight changes sign; -2, the slope on a hyperplane held reaches a bound.
    """

    clock: float
    neuron: int
    surface: int


@dataclass(frozen=True)
class Step:
    """One accepted step with values, derivatives and interpolation."""

    t0: float
    t1: float
    y0: Array
    y1: Array
    slopes: Callable[[], tuple[Array, Array]]  # derivatives at both ends
    path: Callable[[], Path]

    def dense(self, s: float) -> Array:
        """Coordinates at some moment of it."""
        return self.y0 if s == self.t0 else self.y1 if s == self.t1 else self.path()(s)


class Watch:
    """Looks for events step by step; neurons far from every hyperplane are left alone.

    A neuron can meet no hyperplane in a step that moves it by less than a third of its distance to the nearest. Idle
    hyperplanes are not the concern of `first`; `crossings` lists them.
    """

    def __init__(self, chart: Coordinates, past: float, grazing: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.chart = chart
        self.grazing = grazing  # events that changed nothing: not looked at again in the first step ...
        self.begun: float | None = None  # ... which begins here
        # A hyperplane counts as crossed this far behind it, as part of |w|: what steps may be wrong by.
        self.past = past
        self.near: Array | None = None  # lower bounds of the distances to the nearest hyperplane
        # Of the step looked at last: neurons that may have met a hyperplane, and which of these are idle.
        self.rows = np.empty(0, dtype=np.intp)
        self.idle = np.zeros(chart.geometry.faces.m, dtype=bool)

    def first(self, step: Step, idle: Flags) -> Happening | None:
        """Find the earliest event of a step, or None."""
        chart, self.idle = self.chart, idle
        if chart.geometry.slope == 1.0:
            return None
        V0, V1 = chart.rows(step.y0)[0], chart.rows(step.y1)[0]
        if self.near is None:
            self.near = self._distances(V0).min(axis=1, initial=np.inf)
        move = np.linalg.norm(V1 - V0, axis=1)
        rows = self.rows = np.flatnonzero(self.near <= _REACH * move + ON * np.linalg.norm(V1, axis=1))
        if self.begun is None:
            self.begun = step.t0
        z = self._distances(V1, rows)
        found = self._first(step, z, self.grazing if step.t0 == self.begun else frozenset())
        if found is None:
            self.near = self.near - move
            self.near[rows] = z.min(axis=1, initial=np.inf)
        return found

    def crossings(self, step: Step, end: float) -> list[Happening]:
        """List where idle hyperplanes are crossed from the beginning of a step, just looked at, to some moment of it.

        In order of time; two for one that is crossed and crossed back.
        """
        chart, rows = self.chart, self.rows
        if not rows.size or not self.idle.any() or not end > step.t0:
            return []
        faces = np.flatnonzero(self.idle)
        sides, N = chart.pattern.sides[np.ix_(rows, faces)], chart.geometry.faces.normals
        V0, V1 = chart.rows(step.y0)[0][rows], chart.rows(step.dense(end))[0][rows]
        slack = self.past * np.linalg.norm(V1, axis=1)
        reach = _REACH * np.linalg.norm(V1 - V0, axis=1) + slack
        least = np.minimum(V0 @ N[faces].T * sides, V1 @ N[faces].T * sides)
        js, ks = np.nonzero((sides != 0) & (least < reach[:, None]))
        if not js.size:
            return []
        times, found = np.linspace(step.t0, end, _NODES), []
        left = [
            step.path().along(int(j), float(side) * N[k])
            for j, k, side in zip(rows[js], faces[ks], sides[js, ks], strict=True)
        ]
        z = step.path().weights(times) @ np.array(left).T
        for i in np.flatnonzero((z < -slack[js]).any(axis=0)):
            on = 1.0  # still on its side
            for m in range(1, _NODES):
                if on * z[m, i] < -slack[js[i]]:
                    clock = _meets(step.path(), on * left[i], float(times[m - 1]), float(times[m]))
                    found.append(Happening(clock, int(rows[js[i]]), int(faces[ks[i]])))
                    on = -on
        return sorted(found, key=lambda event: event.clock)

    # -- pieces ---------------------------------------------------------------------------------------

    def _distances(self, V: Array, rows: Index | None = None) -> Array:
        """``side * w . n`` of some neurons; inf on hyperplanes held."""
        sides = self.chart.pattern.sides if rows is None else self.chart.pattern.sides[rows]
        z = (V if rows is None else V[rows]) @ self.chart.geometry.faces.normals.T
        z *= sides
        z[sides == 0] = np.inf
        return np.asarray(z)

    def _behind(self, V: Array, z: Array) -> Index:
        """List pairs of a neuron and a hyperplane, not idle, that it is behind, with the distances of the rows."""
        size = np.linalg.norm(V[self.rows], axis=1)[:, None]
        js, ks = np.nonzero((z < -self.past * size) & ~self.idle)
        return np.column_stack([self.rows[js], ks])

    def _first(self, step: Step, z: Array, grazing: frozenset[tuple[int, int]]) -> Happening | None:
        hi, y_hi = step.t1, step.y1
        inner = self._between(step)
        if inner is not None:
            hi, y_hi = inner, step.dense(inner)
            z = self._distances(self.chart.rows(y_hi)[0], self.rows)
        found: Happening | None = None
        for _ in range(60):
            late = self._overdue(hi, y_hi, z)
            for pair in grazing:
                late = late[(late != pair).any(axis=1)]
            if found is not None:
                late = late[(late != (found.neuron, found.surface)).any(axis=1)]
            if not late.size:
                break
            found = self._locate(step, late, hi, y_hi)
            if found.clock <= step.t0:
                break
            hi, y_hi = found.clock, step.dense(found.clock)
            z = self._distances(self.chart.rows(y_hi)[0], self.rows)
        return found

    def _overdue(self, s: float, y: Array, z: Array) -> Index:
        """List what has happened by this moment: pairs (neuron, hyperplane), (neuron, -1) or (neuron, -2)."""
        chart = self.chart
        V, last = chart.rows(y)
        late, more = self._behind(V, z), []
        loose = ~chart.balanced
        if not chart.geometry.frozen and loose.any():
            more += [(int(j), -1) for j in np.flatnonzero(loose & (chart.signs * last < 0))]
        if chart.pattern.held:
            rooms = zip(chart.pattern.held, self._rooms(s, y), strict=True)
            more += [(chart.pattern.first(g), -2) for g, room in rooms if room < 0]
        return np.vstack([late, np.array(more, dtype=np.intp)]) if more else late

    def _between(self, step: Step) -> float | None:
        """Where inside the step some hyperplane seems to be crossed and crossed back."""
        chart, rows = self.chart, self.rows
        if rows.size == 0:
            return None
        f0, f1 = step.slopes()
        awake = np.flatnonzero(~self.idle)
        N, sides = chart.geometry.faces.normals[awake], chart.pattern.sides[np.ix_(rows, awake)]
        slope0, slope1 = chart.rows(f0)[0][rows] @ N.T * sides, chart.rows(f1)[0][rows] @ N.T * sides
        js, ks = np.nonzero((slope0 < 0) & (slope1 > 0))
        if js.size == 0:
            return None
        h = step.t1 - step.t0
        side = sides[js, ks]
        z0 = np.einsum("id,id->i", chart.rows(step.y0)[0][rows[js]], N[ks]) * side
        z1 = np.einsum("id,id->i", chart.rows(step.y1)[0][rows[js]], N[ks]) * side
        d0, d1 = slope0[js, ks] * h, slope1[js, ks] * h
        x = np.clip(-d0 / np.where(d1 - d0 > 0, d1 - d0, 1.0), 0.0, 1.0)  # where the derivative, if linear, vanishes
        cubic = (1 + 2 * x) * (1 - x) ** 2 * z0 + x * (1 - x) ** 2 * d0 + x**2 * (3 - 2 * x) * z1 + x**2 * (x - 1) * d1
        low = (z1 > 0) & (cubic < 1e-3 * np.abs(d0))
        for at in np.unique(x[low]):
            t = step.t0 + float(at) * h
            V = chart.rows(step.dense(t))[0]
            if self._behind(V, self._distances(V, rows)).size:
                return t
        return None

    def _rooms(self, s: float, y: Array) -> Array:
        """Tell what holds the sliding groups; one is held as long as forces may be wrong by what they lack.

        Else it would leave and come back, again and again: beside it the flow is the same, to that.
        """
        chart = self.chart
        return chart.pattern.rooms(chart.pulls(s, y), chart.edge(s, y) + chart.blur(s, y, self.past))

    def _values(self, pairs: Index, s: float, y: Array) -> Array:
        """Return what is positive before an event and negative after it, for each of some events."""
        chart = self.chart
        V, last = chart.rows(y)
        js, ks = pairs.T
        rooms: dict[int, float] = {}
        if (ks == -2).any():
            rooms = dict(zip(chart.pattern.held, self._rooms(s, y).tolist(), strict=True))
        plain = np.maximum(ks, 0)
        out = np.einsum("id,id->i", V[js], chart.geometry.faces.normals[plain]) * chart.pattern.sides[js, plain]
        for i in np.flatnonzero(ks < 0):
            j = int(js[i])
            out[i] = chart.signs[j] * last[j] if ks[i] == -1 else rooms[int(chart.pattern.member[j])]
        return np.asarray(out)

    def _locate(self, step: Step, late: Index, hi: float, y_hi: Array) -> Happening:
        """Solve for the time of one overdue event: the one that seems to come first."""
        left, right = self._values(late, step.t0, step.y0), self._values(late, hi, y_hi)
        lo = np.full(left.size, step.t0)
        # A neuron that has just crossed a hyperplane, or left one it slid on, is still on it when the step begins.
        stuck = np.flatnonzero(left <= 0)
        for k in range(1, 40):
            if stuck.size == 0:
                break
            s = step.t0 + (hi - step.t0) * 2.0**-k
            now = self._values(late[stuck], s, step.dense(s))
            clear = stuck[now > 0]
            lo[clear], left[clear] = s, now[now > 0]
            stuck = stuck[now <= 0]
        guess = np.where(left <= 0, step.t0, lo + (hi - lo) * left / np.where(left > right, left - right, 1.0))
        best = int(np.argmin(guess))
        neuron, surface = (int(x) for x in late[best])
        begin = float(lo[best])
        if left[best] <= 0:
            return Happening(step.t0, neuron, surface)
        if surface >= 0:
            normal = self.chart.pattern.sides[neuron, surface] * self.chart.geometry.faces.normals[surface]
            path = step.path()
            return Happening(_meets(path, path.along(neuron, normal), begin, hi), neuron, surface)

        def value(s: float) -> float:
            return float(self._values(late[best : best + 1], s, y_hi if s == hi else step.dense(s))[0])

        return Happening(root(value, begin, hi), neuron, surface)


def _meets(path: Path, left: Array, lo: float, hi: float) -> float:
    """When something that goes along a path falls to zero, between two moments; ``left``: its differences."""

    def value(s: float) -> float:
        return float(path.weights(s) @ left)

    if not value(lo) > 0:
        return lo
    return root(value, lo, hi) if value(hi) < 0 else hi


def root(function: Callable[[float], float], lo: float, hi: float) -> float:
    """Where a function that is positive at ``lo`` and not at ``hi`` vanishes."""
    from scipy.optimize import brentq

    return float(brentq(function, lo, hi, xtol=1e-15 * (hi - lo) + 1e-300, rtol=8.9e-16, maxiter=500))


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
    j, k = event.neuron, event.surface
    if k == -2:
        which |= {int(other): set() for other in np.flatnonzero(pattern.member == pattern.member[j])}
    else:
        which.setdefault(j, set())
    if k == -1:
        signs[index[j]] = np.sign(da[j]) or 1.0
        changes.append(Change(int(index[j]), -1, "flip"))
    elif k >= 0:
        which[j].add(k)
    state = replace(state, sign=signs)
    c, edge = chart.pulls(s, y), chart.edge(s, y)
    kinks = geometry.kinks(c)
    sides, U = state.sides.copy(), state.U.copy()
    log_w = state.log_w.copy()
    before_it = chart.base.log_w if geometry.frozen else state.log_a  # a size that is not small
    with np.errstate(invalid="ignore"):
        origin = (log_w <= before_it + np.log(ON))[index] & ~chart.balanced
    for j, crossed in which.items():
        me = int(index[j])
        before = pattern.sides[j]
        if origin[j]:
            way = way_out(geometry, float(state.sign[me]), c)
            sides[me], U[me] = leaving(geometry, way)
            log_w[me] = -np.inf if way is None else before_it[me] + TINY
            changes.append(Change(me, -1, "die" if way is None else "origin"))
            if way is not None and not way.unique:
                changes.append(Change(me, -1, "ridge"))
            continue
        crossed |= set(np.flatnonzero(here[j]).tolist())
        on = np.array(sorted(crossed | set(np.flatnonzero(before == 0).tolist())), dtype=np.intp)
        if on.size == 0:
            continue
        arriving = before[on] != 0
        row, unique = settle_neuron(geometry, state, me, on, before[on], arriving, c, kinks, edge)
        for k in on[row[on] != before[on]]:
            changes.append(Change(me, int(k), {1: "activate", -1: "deactivate", 0: "slide"}[int(row[k])]))
        if not unique:
            changes.append(Change(me, int(on[0]), "ridge"))
        sides[me] = row
        U[me] = onto(geometry, U[me], row)
        for k in on[(row[on] == before[on]) & arriving]:  # it only grazes: put it back where rounding has left it
            U[me] -= min(float(U[me] @ normals[k]) * row[k], 0.0) * row[k] * normals[k]
    return replace(state, sides=sides, U=U, log_w=log_w), changes


def leaving(geometry: Geometry, way: Exit | None) -> tuple[Signs, Array]:
    """Signs and direction of a neuron that leaves w = 0, or rests there: then it feels as little as it can."""
    normals = geometry.faces.normals
    if way is None:
        return np.full(len(normals), -1, dtype=np.int8), np.zeros(normals.shape[1])
    z = normals @ way.direction
    return np.where(np.abs(z) > ON, np.sign(z), 0).astype(np.int8), way.direction
