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
import numpy.typing as npt

from ..problem import BudgetExceeded
from ..sectors import enumerate_cells

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gain:
    """The best single neurons of one output sign.

    ``upper`` bounds max F (inf: not known); ``directions`` are local maximisers, best first, with ``values`` F.
    """

    upper: float
    directions: Array
    values: Array
    cells: int


def gains(A: Array, y: Array, sign: float, slope: float, U: Array) -> Array:
    """``F_s`` at the rows of U."""
    z = U @ A.T
    return np.asarray(0.5 * sign * (np.where(z > 0, z, slope * z) @ y))


def exact_gain(A: Array, y: Array, sign: float, slope: float, budget: int) -> Gain | None:
    """Maximum of F over the sphere by all patterns of P, or None where they are more than ``budget``."""
    live = A.any(axis=1)
    A, y = A[live], y[live]
    if A.shape[1] == 2 and len(A):
        return _plane_gain(A, y, sign, slope)
    P, N = A[y == sign], A[y != sign]
    if not len(P) or slope == 1.0:
        patterns = np.ones((1, len(P)), dtype=bool)
    else:
        try:
            patterns = enumerate_cells(P, budget=max(2, budget)).signs > 0
        except BudgetExceeded:
            return None
    vertices = np.where(patterns, 1.0, slope) @ P
    return _furthest(vertices, A, y, N, sign, slope)


def _furthest(vertices: Array, A: Array, y: Array, N: Array, sign: float, slope: float) -> Gain:
    """Largest distance from the vertices to the zonotope of N, discarding those whose bound is already too low."""
    box = BoxDistance(N, slope)
    h = box.start(len(vertices))
    rest = vertices - h @ N
    alive = np.arange(len(vertices))
    best = 0.0
    for sweep in range(400):
        bound = np.linalg.norm(rest, axis=1)
        top = alive.size if alive.size <= 64 else 64
        lead = np.argpartition(-bound, top - 1)[:top]
        unit = rest[lead] / np.maximum(bound[lead], 1e-300)[:, None]
        best = max(best, 2 * float(gains(A, y, sign, slope, unit).max(initial=0.0)))
        keep = bound >= best * (1 - 1e-9)
        alive, rest, h = alive[keep], rest[keep], h[keep]
        if not len(N) or (alive.size <= 8 and sweep >= 8) or (alive.size <= 64 and sweep >= 60):
            break
        rest, h = box.sweep(rest, h)
    for k, index in enumerate(alive):
        rest[k] = box.solve(vertices[index], h[k])
    bound = np.linalg.norm(rest, axis=1)
    unit = rest / np.maximum(bound, 1e-300)[:, None]
    values = gains(A, y, sign, slope, unit)
    order = np.argsort(-values, kind="stable")
    good = order[values[order] > 0]
    return Gain(0.5 * max(float(bound.max(initial=0.0)), best), unit[good], values[good], len(vertices))


class BoxDistance:
    """Distance to the zonotope ``{h @ N : slope <= h <= 1}``, many points at a time."""

    def __init__(self, N: Array, slope: float) -> None:
        self.N, self.slope = N, slope
        self.square = np.einsum("ij,ij->i", N, N)

    def start(self, count: int) -> Array:
        return np.full((count, len(self.N)), 0.5 * (1.0 + self.slope))

    def sweep(self, rest: Array, h: Array) -> tuple[Array, Array]:
        """One round of exact minimisation over each coordinate of h in turn."""
        rest, h = rest.copy(), h.copy()
        for i, b in enumerate(self.N):
            new = np.clip(h[:, i] + rest @ b / self.square[i], self.slope, 1.0)
            rest -= np.outer(new - h[:, i], b)
            h[:, i] = new
        return rest, h

    def solve(self, point: Array, h: Array) -> Array:
        """The shortest ``point - h @ N``, exactly: by guessing the bounds that are met, else by bounded least squares."""
        free = (h > self.slope) & (h < 1.0)
        for _ in range(len(h) + 2):
            fixed = point - h[~free] @ self.N[~free]
            if free.any():
                h = h.copy()
                h[free] = np.linalg.lstsq(self.N[free].T, fixed, rcond=None)[0]
            rest = point - h @ self.N
            slopes = self.N @ rest
            tiny = 1e-13 * np.linalg.norm(point) * np.sqrt(self.square) + 1e-300
            outside = free & ((h < self.slope) | (h > 1.0))
            loose = ~free & (((h <= self.slope) & (slopes > tiny)) | ((h >= 1.0) & (slopes < -tiny)))
            if not outside.any() and not loose.any():
                return np.asarray(rest)
            if outside.any():
                h = np.clip(h, self.slope, 1.0)
                free &= ~outside
            else:
                free[np.argmax(np.where(loose, np.abs(slopes), -1.0))] = True
        from scipy.optimize import lsq_linear

        h = lsq_linear(self.N.T, point, (self.slope, 1.0), method="bvls", tol=1e-15).x
        return np.asarray(point - np.clip(h, self.slope, 1.0) @ self.N)


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
    keep = (rising & falling & (at_end > 0)) | (at_end > top * (1 - 1e-9))
    U = np.vstack([g[inside] / size[inside][:, None], ends[keep]])
    values = gains(A, y, sign, slope, U)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 0]
    return Gain(float(values.max(initial=0.0)), U[order], values[order], 2 * len(A))


def search_gain(A: Array, y: Array, sign: float, slope: float, starts: Array) -> Gain:
    """Local maximisers of F from the given starts: climb from pattern to pattern, each step exact."""
    live = A.any(axis=1)
    A, y = A[live], y[live]
    P, N = A[y == sign], A[y != sign]
    box = BoxDistance(N, slope)
    U = starts / np.linalg.norm(starts, axis=1)[:, None]
    values = gains(A, y, sign, slope, U)
    h = box.start(len(U))
    for _ in range(200):
        vertices = np.where(U @ P.T > 0, 1.0, slope) @ P
        rest = vertices - h @ N
        for _ in range(4 if len(N) else 0):
            rest, h = box.sweep(rest, h)
        size = np.linalg.norm(rest, axis=1)
        moved = rest / np.maximum(size, 1e-300)[:, None]
        new = gains(A, y, sign, slope, moved)
        better = new > values * (1 + 1e-12) + 1e-300
        U, values = np.where(better[:, None], moved, U), np.where(better, new, values)
        if not better.any():
            break
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 0]
    return Gain(np.inf, U[order], values[order], 0)
