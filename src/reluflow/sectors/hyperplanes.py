"""The hyperplanes x_i.w = 0 of points: those on one line share theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem import Dataset
from ..problem.precision import EPS
from ..problem.types import Array, Index, Signs

#: Angles below this are taken for rounding of the data: thinner cells count as part of their neighbours.
RESOLUTION = 1e-12
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
    of: Index  # (n,) hyperplane of each sample
    orient: Signs  # (n,) +1, or -1 for a sample opposite to its normal
    samples: Index  # (n,) samples ordered by hyperplane ...
    start: Index  # (m + 1,) ... and where each hyperplane begins
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
    weights[np.abs(weights) <= 8 * EPS * total] = 0.0  # opposite labels that cancel
    normals = np.ascontiguousarray(directions[first])
    against = np.bincount(of, weights=np.where(orient < 0, data.y * size, 0.0), minlength=m)
    fixed = -(1 + slope) * against @ normals
    start = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=m))])
    return Surfaces(normals, weights, fixed, of, orient, order, start, float(unit))


# -- points on one line -----------------------------------------------------------------------------------


def parallel_owners(unit: Array, err: Array | None = None) -> Index:
    """For each unit row the index of the row that stands for its line +-h.

    Lines closer than the resolution, or than their own errors ``err``, are one.
    """
    noise = np.full(len(unit), 4 * EPS) if err is None else err
    owner = np.arange(len(unit))
    for rest in _crowds(unit, np.maximum(RESOLUTION, 16 * noise)):
        while rest.size:
            first = rest[np.argmin(noise[rest])]
            off = unit[rest] - np.outer(unit[rest] @ unit[first], unit[first])
            far = np.linalg.norm(off, axis=1) > np.maximum(RESOLUTION, 8 * (noise[rest] + noise[first]))
            far[rest == first] = False
            owner[rest[~far]] = first
            rest = rest[far]
    return owner


def _lines(directions: Array) -> tuple[Index, Index]:
    """Line of each direction, numbered in order of appearance, and the first sample of each line."""
    n = len(directions)
    leader = np.arange(n)
    for crowd in _crowds(directions, np.full(n, 32 * _PARALLEL)):
        rest = np.sort(crowd)
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


def _crowds(unit: Array, reach: Array) -> list[Index]:
    """Return groups of unit rows that may be one line +-h, each within its ``reach``; rows alone are left out."""
    # Equal lines have equal |v.h| for any fixed v; a generic v tells nearly all others apart.
    v = np.cos(1.0 + np.sqrt(2.0) * np.arange(unit.shape[1]))
    key = np.abs(unit @ v) / np.linalg.norm(v)
    order = np.argsort(key, kind="stable")
    window = reach[order]
    apart = np.diff(key[order]) > 2 * np.maximum(window[1:], window[:-1])
    alone = np.concatenate([[True], apart]) & np.concatenate([apart, [True]])
    crowd = order[~alone]
    return np.split(crowd, np.flatnonzero(np.concatenate([[True], apart])[~alone])[1:]) if crowd.size else []
