r"""Branch and bound for the inner maximum, where the patterns are too many to list.

The maximum of :math:`\mathrm{dist}(p, Z_N)` over the vertices :math:`p = \sum_P D_i a_i` of the zonotope of P, with
:math:`D_i \in \{\alpha, 1\}`, is found by fixing the D_i one after the other. With those of a set R still open, p is a
centre plus :math:`\sum_R \pm b_i`, :math:`b_i = \tfrac{1-\alpha}2 a_i`, and from any point n of :math:`Z_N`

.. math:: \mathrm{dist}(p, Z_N)^2 \le \sigma^T G \sigma
          \le \lambda_{\max}(W^{-1/2} G W^{-1/2}) \sum_i w_i, \qquad \sigma \in \{\pm 1\}^{1 + |R|},

with G the Gram matrix of (centre - n) and the b_i, and any weights w > 0. In high dimension the b_i are nearly
orthogonal, and then this is nearly tight at once.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...problem import time_left
from ...problem.precision import TINY
from ...problem.types import Array, Flags

_PULL = 1e-12  # relative pull on a bound below which it is rounding
_BVLS = 1e-15  # tolerance of bounded least squares: as far as doubles go
_ABOUT = 1e-9  # vertices this little below the floor are still looked at, for their directions
_WELL_ABOVE = 1e-6  # a vertex this much above the floor shows that the weights are not the best ones
_LEAST = 1e-9  # smallest share of a weight: below it the scaled matrix is ill-conditioned
_ROUNDED_UP = 1 + 1e-13  # more than the rounding of an eigenvalue: the bound must hold


class BoxDistance:
    """Distance to the zonotope ``{h @ N : slope <= h <= 1}``, many points at a time."""

    def __init__(self, N: Array, slope: float) -> None:
        self.N, self.slope = N, slope
        self.square = np.einsum("ij,ij->i", N, N)

    def start(self, count: int) -> Array:
        """Return the middle of the box, ``count`` times."""
        return np.full((count, len(self.N)), 0.5 * (1.0 + self.slope))

    def sweep(self, rest: Array, h: Array, times: int = 1) -> tuple[Array, Array]:
        """Minimise ``|rest|`` exactly over each coordinate of h in turn, ``times`` times over."""
        rest, columns = rest.copy(), h.T.copy()
        for i in [*range(len(self.N))] * times:  # most of the time of a search: plain operations on whole columns
            row, old = self.N[i], columns[i]
            new = np.minimum(np.maximum(old + rest @ row / self.square[i], self.slope), 1.0)
            rest -= (new - old)[:, None] * row
            columns[i] = new
        return rest, np.ascontiguousarray(columns.T)

    def solve(self, point: Array, h: Array) -> Array:
        """Find the shortest ``point - h @ N``: from a guess of the bounds met, else by bounded least squares."""
        if self.slope == 1.0:
            return np.asarray(point - self.N.sum(axis=0))
        free = (h > self.slope) & (h < 1.0)
        for _ in range(len(h) + 2):
            if free.any():  # the least change of h, so that a solution inside the box stays there
                h = h.copy()
                h[free] += np.linalg.lstsq(self.N[free].T, point - h @ self.N, rcond=None)[0]
            rest = point - h @ self.N
            pull = self.N @ rest
            tiny = _PULL * np.linalg.norm(rest) * np.sqrt(self.square) + TINY
            outside = free & ((h < self.slope) | (h > 1.0))
            loose = ~free & (((h <= self.slope) & (pull > tiny)) | ((h >= 1.0) & (pull < -tiny)))
            if not outside.any() and not loose.any():
                return np.asarray(rest)
            if outside.any():
                h = np.clip(h, self.slope, 1.0)
                free &= ~outside
            else:
                free[np.argmax(np.where(loose, np.abs(pull), -1.0))] = True
        from scipy.optimize import lsq_linear

        h = lsq_linear(self.N.T, point, (self.slope, 1.0), method="bvls", tol=_BVLS).x
        return np.asarray(point - np.clip(h, self.slope, 1.0) @ self.N)


@dataclass
class Nodes:
    """Partly fixed patterns: D (open ones at their middle), which are open, h, weights, centre - n, and the bound."""

    D: Array
    open: Flags
    h: Array
    w: Array
    rest: Array
    bound: Array

    def __getitem__(self, k: int | npt.NDArray[np.intp] | slice) -> Nodes:
        return Nodes(self.D[k], self.open[k], self.h[k], self.w[k], self.rest[k], self.bound[k])


def furthest(P: Array, N: Array, slope: float, floor: float, limit: int, batch: int = 16) -> tuple[float, Array, int]:
    """Bound on the largest distance from a vertex of ``Z_P`` to ``Z_N``.

    Nothing below ``floor`` is looked into, and nothing after the time limit. Returns the bound, the vectors ``p - n``
    of the vertices reached with a distance of about ``floor`` or more, and the number of nodes. Stops early at a
    vertex well above ``floor``.
    """
    box, k = BoxDistance(N, slope), len(P)
    root = Nodes(
        np.full((1, k), 0.5 * (1 + slope)), np.ones((1, k), dtype=bool), box.start(1),
        np.ones((1, k + 1)), np.zeros((1, P.shape[1])), np.zeros(1),
    )  # fmt: skip
    root.w = np.concatenate([[np.linalg.norm(root.D @ P)], 0.5 * (1 - slope) * np.linalg.norm(P, axis=1)])[None] + TINY
    _bound(root, P, box)
    heap, count, reached, top = [(-float(root.bound[0]), 0, root[0])], 1, [], floor
    if np.isfinite(time_left()):  # rounds of about a second at most, so that the limit is kept
        batch = max(1, min(batch, int(1e8 / (k + 1) ** 3)))
    while heap and count < limit and -heap[0][0] > floor and time_left() > 0:
        taken = [heapq.heappop(heap)[2] for _ in range(min(batch, len(heap))) if -heap[0][0] > floor]
        children = _split(taken, P, slope)
        _bound(children, P, box)
        for i in range(len(children.bound)):
            count += 1
            node = children[i]
            if node.open.any():
                if node.bound > floor:
                    heapq.heappush(heap, (-float(node.bound), count, node))
            elif node.bound >= floor * (1 - _ABOUT):
                rest = box.solve(node.D @ P, node.h) if len(N) else node.rest
                reached.append(rest)
                top = max(top, float(np.linalg.norm(rest)))
        if top > floor * (1 + _WELL_ABOVE):  # the weights are not the best ones: enough to know
            break
    best = max(top, -heap[0][0] if heap else 0.0)
    return best, np.array(reached).reshape(-1, P.shape[1]), count


def _split(taken: list[Nodes], P: Array, slope: float) -> Nodes:
    """Both values of one open D each: of the longest, whose doubt loosens the bound most."""
    D, open_ = np.array([t.D for t in taken]), np.array([t.open for t in taken])
    h, w, rest = (np.array([getattr(t, name) for t in taken]) for name in ("h", "w", "rest"))
    pick = np.argmax(np.where(open_, np.linalg.norm(P, axis=1), -1.0), axis=1)
    at = np.arange(len(taken))
    open_[at, pick] = False
    both = []
    for value in (1.0, slope):
        changed = D.copy()
        changed[at, pick] = value
        both.append(changed)
    open_, h, w, rest = (np.concatenate([a, a]) for a in (open_, h, w, rest))
    return Nodes(np.concatenate(both), open_, h, w, rest, np.zeros(2 * len(taken)))


def _bound(nodes: Nodes, P: Array, box: BoxDistance) -> None:
    """Fill in h, rest, w and the bound."""
    centre = nodes.D @ P
    nodes.rest, nodes.h = box.sweep(centre - nodes.h @ box.N, nodes.h, 3)
    length = np.linalg.norm(nodes.rest, axis=1)
    nodes.bound = length.copy()
    some = np.flatnonzero(nodes.open.any(axis=1))
    if not some.size:
        return
    b = np.where(nodes.open[some][:, :, None], 0.5 * (1 - box.slope) * P, 0.0)
    B = np.concatenate([nodes.rest[some][:, None, :], b], axis=1)
    plain = np.linalg.norm(B, axis=2)
    G = B @ B.transpose(0, 2, 1)
    present = plain > 0
    best = plain.sum(axis=1)
    w = np.where(present, np.maximum(nodes.w[some], _LEAST * best[:, None]), 0.0)
    kept = w
    for step in range(5):
        w = w / w.sum(axis=1, keepdims=True)
        root = np.where(present, 1 / np.sqrt(np.where(present, w, 1.0)), 0.0)
        values, vectors = np.linalg.eigh(G * root[:, :, None] * root[:, None, :])
        now = np.sqrt(np.maximum(values[:, -1], 0.0)) * _ROUNDED_UP
        better = now < best
        best, kept = np.where(better, now, best), np.where(better[:, None], w, kept)
        rate = 1 / (step + 2)
        w = np.where(present, (1 - rate) * w + rate * np.maximum(vectors[:, :, -1] ** 2, _LEAST), 0.0)
    nodes.bound[some] = best
    nodes.w[some] = np.where(present, kept, TINY)
