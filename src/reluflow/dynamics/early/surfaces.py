"""The hyperplanes of a data set: points on one line share theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...problem import Dataset
from ...problem.types import Array, Signs

#: Unit vectors closer than this are one direction: what dividing by a norm can do to parallel points.
_PARALLEL = 2.0**-49


@dataclass(frozen=True)
class Surfaces:
    r"""Hyperplanes with unit normals :math:`n_k`; sample i lies at :math:`\pm |x_i| n_k`.

    In units of the largest |x_i|, the force on a neuron with output sign s is
    :math:`s(f + \sum_k g_k n_k)`: :math:`g_k` is ``weights[k]`` on the positive side of hyperplane k and slope times
    that on the negative one. Points in opposite directions also give the part f that is there on both sides.
    """

    normals: Array  # (m, d)
    weights: Array  # (m,) sum of y_i |x_i|
    fixed: Array  # (d,)
    of: npt.NDArray[np.intp]  # (n,) hyperplane of each sample
    orient: Signs  # (n,) +1, or -1 for a sample opposite to its normal
    samples: npt.NDArray[np.intp]  # (n,) samples ordered by hyperplane ...
    start: npt.NDArray[np.intp]  # (m + 1,) ... and where each hyperplane begins
    unit: float  # the largest |x_i|, rounded to a power of two

    @property
    def m(self) -> int:
        """Number of hyperplanes."""
        return int(self.weights.size)

    def sides(self, signs: Signs) -> Signs:
        """Side of each hyperplane, from the sign at its first sample."""
        first = self.samples[self.start[:-1]]
        return np.ascontiguousarray(signs[:, first] * self.orient[first])

    def pattern(self, sides: Signs) -> Signs:
        """Signs at the samples, from the sides of the hyperplanes."""
        return np.asarray(sides[..., self.of] * self.orient, dtype=np.int8)


def surfaces(data: Dataset, slope: float) -> Surfaces:
    """Collect the hyperplanes of the data."""
    unit = 2.0 ** np.round(np.log2(data.norms.max()))
    size = data.norms / unit
    directions = data.X / data.norms[:, None]
    of, first = _lines(directions)
    orient = np.where(np.einsum("ij,ij->i", directions, directions[first[of]]) > 0, 1, -1).astype(np.int8)
    m = first.size
    order = np.argsort(of, kind="stable")
    weights: Array = np.bincount(of, weights=data.y * size, minlength=m).astype(np.float64)
    total = np.bincount(of, weights=size, minlength=m)
    weights[np.abs(weights) <= 8 * np.finfo(float).eps * total] = 0.0  # opposite labels that cancel
    normals = np.ascontiguousarray(directions[first])
    against = np.bincount(of, weights=np.where(orient < 0, data.y * size, 0.0), minlength=m)
    fixed = -(1 + slope) * against @ normals
    start = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=m))])
    return Surfaces(normals, weights, fixed, of, orient, order, start, float(unit))


def _lines(directions: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Line of each direction, numbered in order of appearance, and the first sample of each line."""
    n, d = directions.shape
    # Equal lines have equal |v.u| for any fixed v; a generic v tells nearly all others apart.
    v = np.cos(1.0 + np.sqrt(2.0) * np.arange(d))
    key = np.abs(directions @ (v / np.linalg.norm(v)))
    order = np.argsort(key, kind="stable")
    edges = np.concatenate([[0], np.flatnonzero(np.diff(key[order]) > 64 * _PARALLEL) + 1, [n]])
    leader = np.arange(n)
    for run in np.flatnonzero(np.diff(edges) > 1):
        rest = np.sort(order[edges[run] : edges[run + 1]])
        while rest.size > 1:
            head, rest = rest[0], rest[1:]
            apart = np.minimum(
                np.linalg.norm(directions[rest] - directions[head], axis=1),
                np.linalg.norm(directions[rest] + directions[head], axis=1),
            )
            same = apart <= _PARALLEL
            leader[rest[same]] = head
            rest = rest[~same]
    first, of = np.unique(leader, return_inverse=True)
    return of, first
