r"""The inner maximum of the global margin: how much a single neuron can gain against given weights.

For weights :math:`\kappa_i \ge 0` and an output sign s put :math:`a_i = \kappa_i x_i`, P the samples with
:math:`y_i = s`, N the others. A neuron u of unit norm gains

.. math:: F_s(u) = \tfrac12 \Big( \sum_P \phi(u \cdot a_i) - \sum_N \phi(u \cdot a_i) \Big).

With :math:`\phi(z) = \max(z, \alpha z)` this is a difference of support functions of two zonotopes, hence

.. math:: \max_u F_s(u) = \tfrac12 \max_{p \in \text{vertices of } Z_P} \mathrm{dist}(p, Z_N), \qquad
          Z_A = \Big\{ \sum_{i \in A} h_i a_i : \alpha \le h_i \le 1 \Big\},

where the vertices of :math:`Z_P` are the activation patterns of the samples in P alone, and the distance is a
least-squares problem in a box. Any point of :math:`Z_N` bounds the distance from above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problem import check_time
from ...problem.precision import TINY
from ...problem.types import Array
from ...sectors import cell_bound, enumerate_cells
from .branch import BoxDistance, furthest

_NEARLY = 1e-9  # what comes this close to the best is kept, to be measured more exactly
_CLIMBS = 1e-6  # gain of a step, relative to the best, from which climbing goes on


@dataclass(frozen=True)
class Gain:
    """The best single neurons of one output sign.

    ``upper`` bounds max F (inf: not bounded); ``directions`` are local maximisers, best first, with ``values`` F;
    ``cells`` patterns or partial patterns were looked at, by ``method``.
    """

    upper: float
    directions: Array
    values: Array
    cells: int
    method: str


def gains(A: Array, y: Array, sign: float, slope: float, U: Array) -> Array:
    """``F_s`` at the rows of U."""
    z = U @ A.T
    return np.asarray(0.5 * sign * (np.where(z > 0, z, slope * z) @ y))


def exact_gain(A: Array, y: Array, sign: float, slope: float, floor: float, budget: int) -> Gain:
    """Maximum of F over the sphere, proved; values below ``floor`` are not looked into.

    In the plane by a sweep over the angles, else by all patterns of P where they are few, else by branch and bound,
    which may give up after ``budget // 5`` partial patterns, or when the time is up, with a bound that is valid but
    not attained. With a budget of 0 it does so at once.
    """
    live = A.any(axis=1)
    A, y = A[live], y[live]
    if A.shape[1] == 2 and len(A):
        return _plane_gain(A, y, sign, slope)
    P, N = A[y == sign], A[y != sign]
    if not len(P) or slope == 1.0:
        return _furthest(P.sum(axis=0)[None], A, y, N, sign, slope)
    count = cell_bound(P)
    if count <= (min(5_000, budget) if A.shape[1] > 6 else budget):
        signs = enumerate_cells(P, budget=max(2, count)).signs
        return _furthest(np.where(signs > 0, 1.0, slope) @ P, A, y, N, sign, slope)
    bound, rest, nodes = furthest(P, N, slope, 2 * floor, budget // 5)
    unit = rest / np.maximum(np.linalg.norm(rest, axis=1), TINY)[:, None]
    return _gain(0.5 * bound, unit, A, y, sign, slope, nodes, "branch and bound")


def _gain(upper: float, U: Array, A: Array, y: Array, sign: float, slope: float, cells: int, method: str) -> Gain:
    values = gains(A, y, sign, slope, U)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 0]
    return Gain(max(upper, float(values.max(initial=0.0))), U[order], values[order], cells, method)


def _furthest(vertices: Array, A: Array, y: Array, N: Array, sign: float, slope: float) -> Gain:
    """Largest distance from the vertices to the zonotope of N, discarding those whose bound is already too low."""
    box = BoxDistance(N, slope)
    h = box.start(len(vertices))
    rest = vertices - h @ N
    alive = np.arange(len(vertices))
    best = 0.0
    for sweep in range(400):
        check_time("going through the activation patterns")
        bound = np.linalg.norm(rest, axis=1)
        top = alive.size if alive.size <= 64 else 64
        lead = np.argpartition(-bound, top - 1)[:top]
        unit = rest[lead] / np.maximum(bound[lead], TINY)[:, None]
        best = max(best, 2 * float(gains(A, y, sign, slope, unit).max(initial=0.0)))
        keep = bound >= best * (1 - _NEARLY)
        alive, rest, h = alive[keep], rest[keep], h[keep]
        if not len(N) or (alive.size <= 8 and sweep >= 8) or (alive.size <= 64 and sweep >= 60):
            break
        rest, h = box.sweep(rest, h)
    for k, index in enumerate(alive):
        check_time("going through the activation patterns")
        rest[k] = box.solve(vertices[index], h[k])
    bound = np.linalg.norm(rest, axis=1)
    unit = rest / np.maximum(bound, TINY)[:, None]
    return _gain(0.5 * max(float(bound.max(initial=0.0)), best), unit, A, y, sign, slope, len(vertices), "cells")


def _plane_gain(A: Array, y: Array, sign: float, slope: float) -> Gain:
    """In the plane: F is g.u on every arc between two lines, and its maximum there is |g| or at an end."""
    angle = np.arctan2(A[:, 0], -A[:, 1]) % np.pi
    order = np.argsort(angle, kind="stable")
    gap = np.diff(angle[order], append=angle[order[0]] + np.pi)
    # Begin in the widest arc, where no sample is near its kink.
    wide = int(np.argmax(gap))
    order = np.roll(order, -wide)
    edge = np.concatenate([angle[order[: len(order) - wide]], angle[order[len(order) - wide :]] + np.pi])
    start = np.column_stack([np.cos(edge), np.sin(edge)])
    middle = edge[0] + gap[wide] / 2
    first = np.array([np.cos(middle), np.sin(middle)])
    weight = 0.5 * sign * y
    on = A @ first > 0
    # Passing the line of sample k (by increasing angle) switches it; half a turn later all are switched.
    force = np.where(on, 1.0, slope) @ (weight[:, None] * A)
    other = np.where(on, slope, 1.0) @ (weight[:, None] * A)
    step = (np.where(on, slope - 1.0, 1.0 - slope) * weight)[order][:, None] * A[order]
    along = force + np.vstack([np.zeros((1, 2)), np.cumsum(step[1:], axis=0)])
    back = other - np.vstack([np.zeros((1, 2)), np.cumsum(step[1:], axis=0)])
    ends, g = np.vstack([start, -start]), np.vstack([along, back])
    tangent = np.column_stack([-ends[:, 1], ends[:, 0]])
    lo = np.concatenate([edge, edge + np.pi])
    arc = np.append(lo[1:], edge[0] + 2 * np.pi) - lo
    size = np.linalg.norm(g, axis=1)
    inside = ((np.arctan2(g[:, 1], g[:, 0]) - lo) % (2 * np.pi) < arc) & (size > 0)
    rising = np.einsum("ij,ij->i", np.roll(g, 1, axis=0), tangent) >= 0
    falling = np.einsum("ij,ij->i", g, tangent) <= 0
    at_end = np.einsum("ij,ij->i", g, ends)
    top = max(float(size[inside].max(initial=0.0)), float(at_end.max(initial=0.0)))
    # The running sums carry rounding; whatever comes near the top is evaluated afresh.
    keep = (rising & falling & (at_end > 0)) | (at_end > top * (1 - _NEARLY))
    U = np.vstack([g[inside] / size[inside][:, None], ends[keep]])
    return _gain(0.0, U, A, y, sign, slope, 2 * len(A), "cells")


def search_gain(A: Array, y: Array, sign: float, slope: float, starts: Array) -> Gain:
    """Local maximisers of F from the given starts: climb from pattern to pattern, each step exact."""
    live = A.any(axis=1)
    A, y = A[live], y[live]
    P, N = A[y == sign], A[y != sign]
    box = BoxDistance(N, slope)
    U = starts / np.linalg.norm(starts, axis=1)[:, None]
    values, h = gains(A, y, sign, slope, U), box.start(len(U))
    moving = np.arange(len(U))
    for _ in range(40):
        check_time("looking for better neurons")
        vertices = np.where(U[moving] @ P.T > 0, 1.0, slope) @ P
        rest, h[moving] = box.sweep(vertices - h[moving] @ N, h[moving], 3)
        moved = rest / np.maximum(np.linalg.norm(rest, axis=1), TINY)[:, None]
        new = gains(A, y, sign, slope, moved)
        better = new > values[moving]
        still = new > values[moving] + _CLIMBS * max(float(values.max()), 0.0)
        U[moving[better]], values[moving[better]] = moved[better], new[better]
        moving = moving[still]
        if not moving.size:
            break
    return _gain(np.inf, U, A, y, sign, slope, 0, "search")
