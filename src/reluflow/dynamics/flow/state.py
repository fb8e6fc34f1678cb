"""The neurons at one moment, at any scale, with the sides of the hyperplanes they lie on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...problem import Network
from ...problem.types import Array, Flags, Index, Signs
from ...sectors import exact_signs
from .field import EDGE, ON, Geometry, Pattern, make_pattern, settle

_DEPENDS = 1e-10  # a unit normal of which less is left beside others depends on them
_BALANCED = 1e-13  # log |a| and log |w| that agree to this are equal
#: Log of the largest force, relative to those felt, that is given to a sample which neurons only slide on.
STRONG = 10.0


class Moments(NamedTuple):
    """The neurons at several moments, stacked: all of a `State` but the sides."""

    U: Array  # (T, p, d)
    log_w: Array  # (T, p)
    log_a: Array
    sign: Array


@dataclass(frozen=True)
class State:
    """Directions, logarithms of sizes, and sides."""

    U: Array  # (p, d) unit rows; zero for a zero neuron
    log_w: Array  # (p,)
    log_a: Array  # (p,)
    sign: Array  # (p,) of a: -1.0, 0.0, 1.0
    sides: Signs  # (p, m)

    @property
    def balanced(self) -> Flags:
        """Whether ``|a| = |w|``."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.log_a - self.log_w) <= _BALANCED * (1 + np.abs(self.log_w)))

    @property
    def moment(self) -> Moments:
        """The same as the only one of several moments."""
        return Moments(self.U[None], self.log_w[None], self.log_a[None], self.sign[None])

    def of(self, neurons: Index) -> State:
        """Return some of the neurons alone."""
        return State(*(getattr(self, name)[neurons] for name in ("U", "log_w", "log_a", "sign", "sides")))

    def weighted(self) -> Array:
        """Rows ``a_j w_j`` at the real scale."""
        with np.errstate(under="ignore", invalid="ignore"):
            size = np.where(np.isfinite(self.log_w + self.log_a), np.exp(self.log_a + self.log_w), 0.0)
        return (self.sign * size)[:, None] * self.U

    def network(self, slope: float) -> Network:
        """Return it as a network, each neuron with its own scale."""
        return Network.from_polar(self.U, self.log_w, self.log_a, self.sign, slope)


def forces_at(geometry: Geometry, q: Array) -> Array:
    """``c_i = r y_i g_i`` at the margins q."""
    problem = geometry.problem
    return np.asarray(problem.weight * problem.data.y * problem.loss.force(q))


def relative_forces(geometry: Geometry, state: State, near: Flags, q: Array) -> Array:
    """``y_i g_i`` relative to the largest of the samples that are felt; of others, at most e^10.

    Forces may all be below the smallest double, and a sample that neurons only slide on is then infinitely stronger.
    """
    sides = np.where(near, -1, state.sides).astype(np.int8)
    felt = (geometry.slopes(sides[np.isfinite(state.log_w)]) != 0).any(axis=0)
    log_g = geometry.problem.loss.log_force(q)
    top = float(log_g[felt].max()) if felt.any() else float(log_g.max())
    with np.errstate(under="ignore"):
        return np.asarray(geometry.y * np.exp(np.minimum(log_g - top, STRONG)))


def moving(geometry: Geometry, state: State, pattern: Pattern) -> Flags:
    """Which neurons can move: those that feel a sample, and are neither zero nor shrunk beyond return."""
    feels = (pattern.H != 0).any(axis=1)[pattern.member]
    there = (state.log_w > geometry.gone) & (np.isfinite(state.log_a) if geometry.frozen else True)
    return np.asarray(feels & there)


def take(geometry: Geometry, net: Network, lying: Signs | None = None) -> tuple[State, list[tuple[int, int]]]:
    """Begin from a network; also the (neuron, sample) pairs where the flow may continue in several ways.

    Neurons on hyperplanes are settled with the forces at their margins. ``lying`` are the sides they count for on those
    they lie on, 0 elsewhere, where these are known: what the numbers of the network say there is rounding.
    """
    U = net.directions.copy()
    log_w, log_a, sign = net.log_norms.copy(), net.log_outs.copy(), np.sign(net.a)
    empty = ~np.isfinite(log_w) & np.isfinite(log_a)
    state = State(U, log_w, log_a, sign, np.ones((net.p, geometry.faces.m), dtype=np.int8))
    q = geometry.y * net.outputs(geometry.X)
    if empty.any() and geometry.slope > 0:  # w = 0: it leaves along the force with phi'(0) = slope everywhere
        pull = geometry.slope * forces_at(geometry, q) @ geometry.X
        if (length := float(np.linalg.norm(pull))) > 0:
            U[empty] = sign[empty, None] * pull / length
            log_w[empty] = log_a[empty] - 30.0
    if geometry.slope == 1.0:  # a linear network has no kinks: all neurons are one group
        return state, []
    # The sides are those of the numbers given: a unit vector is rounded, and may lie beside a hyperplane that w is on.
    before = geometry.faces.sides(exact_signs(net.W, geometry.X))
    z = U @ geometry.faces.normals.T
    before[empty] = np.sign(z[empty])
    state = replace(state, sides=np.where(before < 0, -1, 1).astype(np.int8))
    near = (np.abs(z) <= ON) | (before == 0)
    if lying is not None:
        known = (lying != 0) & ~empty[:, None]
        near, before = near | known, np.where(known, lying, before)
    near[~np.isfinite(log_w)] = False
    return _settle_start(geometry, state, near, before, relative_forces(geometry, state, near, q))


def _settle_start(
    geometry: Geometry, state: State, near: Flags, before: Signs, c: Array
) -> tuple[State, list[tuple[int, int]]]:
    sides, doubts = state.sides.copy(), []
    U = state.U.copy()
    kinks = geometry.kinks(c)
    for j in np.flatnonzero(near.any(axis=1)):
        on = np.flatnonzero(near[j])
        nowhere = np.zeros(on.size, dtype=bool)
        row, found = settle_neuron(geometry, state, int(j), on, before[j, on], nowhere, c, kinks, EDGE)
        sides[j] = row
        if not found:
            doubts.append((int(j), int(geometry.faces.samples[geometry.faces.start[on[0]]])))
        U[j] = onto(geometry, U[j], row)
    return replace(state, sides=sides, U=U), doubts


def settle_neuron(
    geometry: Geometry,
    state: State,
    j: int,
    on: Index,
    before: Signs,
    arriving: Flags,
    c: Array,
    kinks: Array,
    edge: float,
) -> tuple[Signs, bool]:
    """Find the new sides of neuron j, which lies on the hyperplanes ``on``, and whether they are the only ones."""
    row = state.sides[j].copy()
    row[on] = -1
    pulls = geometry.slopes(row[None])[0] * c
    free, mass = pulls @ geometry.X, float(np.abs(pulls) @ geometry.problem.data.norms)
    sign = float(state.sign[j]) or float(np.sign(state.U[j] @ free)) or 1.0  # a = 0: it will have the sign of w . D
    found = settle(geometry, sign, free, on, before, arriving, kinks[on], mass + 1e-300, edge)
    row[on] = found.sides
    return row, found.unique


def untangled(geometry: Geometry, row: Signs, before: Signs) -> Signs:
    """Let hyperplanes go whose normals depend on those of others that hold the neuron: it stays on them all the same.

    What they pull along their normals is taken out with the rest, so that their sides do not matter meanwhile: they
    keep those they had.
    """
    held = np.flatnonzero(row == 0)
    row, basis = row.copy(), np.zeros((0, geometry.faces.normals.shape[1]))
    for k in sorted(held, key=lambda k: before[k] != 0):  # those that held it before come first
        normal = geometry.faces.normals[k]
        for _ in range(2):
            normal = normal - (basis @ normal) @ basis
        size = float(np.linalg.norm(normal))
        if size < _DEPENDS:
            row[k] = before[k] or -1
        else:
            basis = np.vstack([basis, normal / size])
    return row


def onto(geometry: Geometry, u: Array, sides: Signs) -> Array:
    """Put a direction exactly on the hyperplanes it slides on."""
    which = np.flatnonzero(sides == 0)
    if which.size == 0:
        return u
    normals = geometry.faces.normals[which]
    for _ in range(2):
        u = u - np.linalg.lstsq(normals, normals @ u, rcond=None)[0]
    size = float(np.linalg.norm(u))
    return np.asarray(u / size) if size > 0 else u


def ties(geometry: Geometry, state: State, who: Flags, unit: Array) -> tuple[Flags, Array]:
    """Whose output weight is given by ``|w|`` and the conserved ``a^2 - |w|^2``, and that in units of ``e^(2 unit)``.

    Where it is not negative, a keeps its sign for ever (C-INV1) and follows from |w|; else |w| follows from a. Either
    way errors are not amplified.
    """
    if geometry.frozen:
        return np.zeros(unit.size, dtype=bool), np.zeros(unit.size)
    with np.errstate(under="ignore"):
        out, size = np.exp(2 * (state.log_a[who] - unit)), np.exp(2 * (state.log_w[who] - unit))
    excess = np.where(state.balanced[who], 0.0, out - size)
    return np.asarray((excess >= 0) & (out > 0)), excess


def tie(V: Array, last: Array, tied: Flags, sign: Array, excess: Array) -> tuple[Array, Array]:
    """Restore ``a^2 - |w|^2 = excess``: a from |w| for the tied neurons, |w| from a for the others."""
    square = np.einsum("jd,jd->j", V, V)
    out = np.where(tied, sign * np.sqrt(np.maximum(square + excess, 0.0)), last)
    if tied.all():
        return V, out
    factor = np.where(tied, 1.0, np.sqrt(np.maximum(last**2 - excess, 0.0) / (square + 1e-300)))
    return factor[:, None] * V, out


def pattern_of(geometry: Geometry, state: State) -> Pattern:
    """Group the neurons of a state."""
    return make_pattern(geometry, state.sides)
