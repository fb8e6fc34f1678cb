"""Every activation pattern of a set of points: the cells of their hyperplane arrangement.

A neuron w sees the points through the signs of w.x_i. The open cells of the central arrangement of the hyperplanes
x_i^perp are exactly the patterns without a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from ..problem import BudgetExceeded, DataError, ProblemError, check_size, check_time
from ..problem.checks import as_float_array
from ..problem.precision import EPS
from ..problem.types import Array, Signs
from .hyperplanes import RESOLUTION, parallel_owners


@dataclass(frozen=True)
class Cells:
    """Open cells of the arrangement of the hyperplanes ``x_i^perp``.

    Attributes
    ----------
    signs : ndarray of int8, shape (m, n)
        Sign of ``u . x_i`` for u in each cell, +1 or -1.
    witnesses : ndarray, shape (m, d)
        One unit vector inside each cell, in the span of the points.
    complete : bool
        Whether these are all cells wider than `RESOLUTION`.
    """

    signs: Signs
    witnesses: Array
    complete: bool

    def __len__(self) -> int:
        return int(self.signs.shape[0])


def enumerate_cells(X: npt.ArrayLike, budget: int = 100_000) -> Cells:
    r"""List all cells of the arrangement :math:`\{u : u \cdot x_i = 0\}`, :math:`i = 1, \dots, n`.

    No sampling. In the plane the lines are sorted by angle. In higher dimension every cell C is found from its last
    facet: if that lies on hyperplane k, it is a cell of the arrangement of the hyperplanes before k within
    hyperplane k, one dimension lower, and a short step off it leads into C. So a recursion that ends in the plane
    meets every cell, whatever hyperplanes coincide or meet in common lines.

    Parameters
    ----------
    X : array_like of shape (n, d)
        The points, none of them zero. They may span less than R^d, and be parallel or antiparallel.
    budget : int
        Most cells wanted.

    Returns
    -------
    Cells
        Half of the cells first, then their antipodes in the same order.

    Raises
    ------
    BudgetExceeded
        There are more cells than ``budget``; ``partial`` holds those found, ``complete=False``.

    Examples
    --------
    >>> cells = enumerate_cells([[1, 0], [0, 1], [1, 1]])
    >>> len(cells), cells.complete
    (6, True)
    >>> enumerate_cells([[1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 0, 0]]).signs.shape   # three lines through one axis
    (6, 4)
    """
    points = _as_points(X)
    if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)) or budget < 2:
        raise ProblemError(f"budget = {budget!r}: a number of cells, at least 2, is needed.")
    unit = points / np.linalg.norm(points, axis=1)[:, None]
    half, complete = _half_witnesses(unit, np.full(len(unit), 4 * EPS), int(budget) // 2)
    half = half[: int(budget) // 2]
    check_size("the sign patterns", 2 * len(half), -(-len(points) // 8))
    signs = np.empty((2 * len(half), len(points)), dtype=np.int8)
    for lo in range(0, len(half), 4096):
        signs[lo : lo + 4096][: len(half) - lo] = np.where(half[lo : lo + 4096] @ unit.T > 0, 1, -1)
    signs[len(half) :] = -signs[: len(half)]
    cells = Cells(signs, np.vstack([half, -half]), complete)
    if not complete:
        raise BudgetExceeded(
            f"the {len(points)} hyperplanes have more than budget = {budget} cells (at most {cell_bound(points)}); "
            f"raise the budget, or use fewer points. The first {len(cells)} cells are in .partial.",
            cells,
        )
    return cells


def cell_bound(X: npt.ArrayLike) -> int:
    r"""Return the number of cells in general position, :math:`2 \sum_{k<r} \binom{m-1}{k}`: never fewer than there are.

    Here r is the rank of the points and m the number of different lines they span.

    >>> cell_bound([[1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 0, 0]])
    6
    """
    points = _as_points(X)
    unit = points / np.linalg.norm(points, axis=1)[:, None]
    lines = unit[np.unique(parallel_owners(unit))]
    rank = _essential(lines)[0].shape[1]
    return 2 * sum(comb(len(lines) - 1, k) for k in range(rank))


def _as_points(X: npt.ArrayLike) -> Array:
    points = as_float_array(X, "X", 2, DataError)
    if 0 in points.shape:
        raise DataError(f"X has shape {points.shape}; at least one point and one feature are needed, one point a row.")
    zero = np.flatnonzero(~points.any(axis=1))
    if zero.size:
        raise DataError(f"X[{zero[0]}] is zero: it has no hyperplane. Drop the {zero.size} zero row(s).")
    return np.asarray(points / np.abs(points).max(axis=1, keepdims=True))


def _essential(lines: Array) -> tuple[Array, Array, npt.NDArray[np.intp]]:
    """Coordinates of the lines in their span, the basis (columns), and an order whose first r are independent."""
    from scipy.linalg import qr

    basis, tri, order = qr(lines.T, mode="economic", pivoting=True, check_finite=False)
    rank = int((np.abs(np.diagonal(tri)) > RESOLUTION).sum())
    coords = np.empty((len(lines), rank))
    coords[order] = tri[:rank].T
    return coords, np.asarray(basis[:, :rank]), np.asarray(order)


def _half_witnesses(unit: Array, err: Array, budget: int) -> tuple[Array, bool]:
    """One unit vector in each cell, one of every antipodal pair; False when it stopped after ``budget`` of them."""
    keep = np.unique(parallel_owners(unit, err))
    coords, basis, order = _essential(unit[keep])
    lines, noise = coords[order], err[keep][order]
    rank = lines.shape[1]
    if rank == 1:
        found, complete = np.ones((1, 1)), True
    elif rank == 2:
        found, complete = _plane(lines), True
    else:
        found, complete = _by_facets(lines, noise, budget)
    return np.asarray(found @ basis.T), complete and len(found) <= budget


def _plane(lines: Array) -> Array:
    """Midpoints of the gaps between lines in the plane, sorted by angle."""
    angle = np.sort(np.arctan2(lines[:, 0], -lines[:, 1]) % np.pi)
    middle = (angle + np.append(angle[1:], angle[0] + np.pi)) / 2
    return np.column_stack([np.cos(middle), np.sin(middle)])


def _by_facets(lines: Array, noise: Array, budget: int) -> tuple[Array, bool]:
    m, rank = lines.shape
    found = _Collection(lines, noise)
    # The first r hyperplanes are independent: every pattern occurs. The first sign is +, for one of each pair; uneven
    # sizes keep the points off the other hyperplanes.
    free = min(rank - 1, budget.bit_length())
    corner = np.where((np.arange(2**free)[:, None] >> np.arange(free)) & 1, -1.0, 1.0)
    corner = np.hstack([np.ones((len(corner), rank - free)), corner]) * (1 + 0.1 * np.cos(np.arange(rank)))
    points = np.linalg.solve(lines[:rank], corner.T).T
    found.add(points / np.linalg.norm(points, axis=1)[:, None])
    if free < rank - 1:
        return found.points(), False
    for k in range(rank, m):
        check_time("listing the activation patterns")
        points, complete = _off_facets(lines[: k + 1], noise[: k + 1], budget)
        found.add(points)
        if found.count > budget or not complete:
            return found.points(), False
    return found.points(), True


def _off_facets(lines: Array, noise: Array, budget: int) -> tuple[Array, bool]:
    """Both sides of every facet that lies on the last of the lines."""
    last, before = lines[-1], lines[:-1]
    inner = before @ last
    flat = before - np.outer(inner, last)
    sine = np.linalg.norm(flat, axis=1)
    flat /= sine[:, None]
    flat -= np.outer(flat @ last, last)  # once more: a small sine has magnified the rounding
    flat /= np.linalg.norm(flat, axis=1)[:, None]
    onfacet, complete = _half_witnesses(flat, (noise[:-1] + noise[-1] + EPS) / sine, budget)
    onfacet -= np.outer(onfacet @ last, last)
    slack = onfacet @ before.T
    out = []
    for side in (1.0, -1.0):
        # As far from the last hyperplane as from the nearest other one.
        loss = np.maximum(-side * np.sign(slack) * inner, -0.5)
        step = side * (np.abs(slack) / (1.0 + loss)).min(axis=1)
        moved = onfacet + step[:, None] * last
        out.append(moved / np.linalg.norm(moved, axis=1)[:, None])
    return np.vstack(out), complete


class _Collection:
    """Points with different sign patterns, the deepest of each pattern, one of every antipodal pair."""

    def __init__(self, lines: Array, noise: Array) -> None:
        self.lines = lines
        self.blur = np.maximum(RESOLUTION, 4 * noise)
        self.parts: list[tuple[npt.NDArray[np.void], Array, Array]] = []
        self.count = self.pending = 0

    def add(self, points: Array) -> None:
        values = points @ self.lines.T
        # A point on a hyperplane is inside a larger cell that is cut there: its parts have that facet.
        values, points = values[inside := (np.abs(values) > self.blur).all(axis=1)], points[inside]
        if not len(points):
            return
        flip = np.where(values[:, :1] > 0, 1.0, -1.0)
        packed = np.packbits(values * flip > 0, axis=1)
        keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
        self.parts.append((keys, points * flip, np.abs(values).min(axis=1)))
        self.pending += len(keys)
        if self.pending > max(1024, self.count):
            self._merge()

    def _merge(self) -> None:
        keys = np.concatenate([p[0] for p in self.parts])
        depth = np.concatenate([p[2] for p in self.parts])
        points = np.vstack([p[1] for p in self.parts])
        deepest = np.argsort(-depth, kind="stable")
        _, first = np.unique(keys[deepest], return_index=True)
        pick = deepest[np.sort(first)]
        self.parts = [(keys[pick], points[pick], depth[pick])]
        self.count, self.pending = len(pick), 0

    def points(self) -> Array:
        if not self.parts:
            return np.empty((0, self.lines.shape[1]))
        self._merge()
        return self.parts[0][1]
