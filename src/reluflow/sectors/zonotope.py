"""The point of smallest norm of a zonotope.

    minimise |z|   over   z = b - sum_i h_i g_i,   0 <= h_i <= 1

Its negative gradient reading: z is the direction in which the concave function b.w - sum_i (g_i.w)_+ is largest on the
unit ball, and |z| is that maximum. It is also the velocity of a neuron that slides on the hyperplanes g_i^perp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem.precision import EPS, TINY
from ..problem.types import Array, Signs

#: Two directions count as orthogonal, for guessing which constraints are tight, below this cosine.
TIGHT = 1e-7
_ZERO = 1e-10  # length, relative to all generators, from which a point is not zero
_IN_SIMPLEX = 1e-14  # weight of a corner below which it is dropped
_MOVE = 1e-13  # rounding of a combination of corners, and the thickness below which a simplex is flat
_INDEPENDENT = 1e-5  # smallest singular value of unit generators from which the projection is clear
_LONG = 1e-9  # length, relative to all generators, from which the point is clear
_INSIDE = 1e-6  # how far inside (0, 1) the coefficients of tight generators must be to be clear


@dataclass(frozen=True, eq=False)
class Nearest:
    """The minimum-norm point ``z = b - h @ g`` of a zonotope, and how well it is known.

    Attributes
    ----------
    point : ndarray of shape (d,)
        Zero, exactly, if zero was found to lie in the zonotope up to rounding.
    side : ndarray of int8, shape (m,)
        Sign of ``g_i . z`` as far as it can be told, 0 for those that count as orthogonal.
    h : ndarray of shape (m,)
    clear : bool
        The conditions that characterise the point hold with room for rounding: ``side`` and, if ``point`` is zero,
        that fact, are right. Otherwise they are only the best guess.
    """

    point: Array
    side: Signs
    h: Array
    clear: bool


def nearest_point(b: Array, g: Array, start: Array | None = None, sweeps: int = 10_000) -> Nearest:
    """Minimum-norm point by Wolfe's method: finite, whatever coincides or is degenerate.

    It keeps a simplex of vertices whose minimum-norm point is inside. The vertex furthest in direction -z has
    ``h_i = [g_i . z > 0]``, so that one step costs one pass over the generators; in low dimension a few are enough.

    >>> nearest_point(np.array([1.0, 1.0]), np.array([[2.0, 0.0]])).point     # h = 1/2
    array([0., 1.])
    """
    scale = float(np.linalg.norm(b) + np.linalg.norm(g, axis=1).sum())
    h = (g @ (b if start is None else start) > 0)[None].astype(np.float64)
    corners = b - h @ g
    weights = np.ones(1)
    z = corners[0]
    last = np.inf
    for _ in range(sweeps):
        size = float(np.linalg.norm(z))
        if size <= 16 * EPS * scale or size >= last:  # zero, or down to rounding: every step lowers the norm
            break
        last = size
        new = (g @ z > 0).astype(np.float64)
        corner = b - new @ g
        gain = size * size - float(corner @ z)
        if gain <= 4 * len(b) * EPS * size * max(float(np.linalg.norm(corner)), size):
            break
        corners, h = np.vstack([corners, corner]), np.vstack([h, new])
        weights = np.append(weights, 0.0)
        corners, h, weights = _shrink(corners, h, weights)
        z = weights @ corners
    slopes = weights @ h
    if np.linalg.norm(z) <= _ZERO * scale:
        inside = len(weights) == len(b) + 1 and weights.min() > _wobble(corners, z, scale)
        side = (slopes >= 1).astype(np.int8) - (slopes <= 0)
        return Nearest(np.zeros(len(b)), np.asarray(side, dtype=np.int8), slopes, bool(inside))
    return _polished(b, g, z, slopes, scale)


def _shrink(corners: Array, h: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Move to the minimum-norm point of the affine hull, dropping corners until it lies in the simplex."""
    while len(weights) > 1:
        edges = corners[1:] - corners[0]
        step = np.linalg.lstsq(edges.T, -corners[0], rcond=None)[0]
        target = np.append(1.0 - step.sum(), step)
        if (target > _IN_SIMPLEX).all():
            return corners, h, target
        out = target <= _IN_SIMPLEX
        ratio = np.where(out, weights / np.where(out, np.maximum(weights - target, TINY), 1.0), np.inf)
        theta = min(1.0, float(ratio.min()))
        weights = np.maximum((1 - theta) * weights + theta * target, 0.0)
        weights[int(np.argmin(ratio))] = 0.0
        keep = weights > 0
        corners, h, weights = corners[keep], h[keep], weights[keep] / weights[keep].sum()
    return corners, h, np.ones(1)


def _wobble(corners: Array, z: Array, scale: float) -> float:
    """Bound on how much the weights of the corners change when their combination is moved from z to zero."""
    thinnest = np.linalg.svd(corners[1:] - corners[0], compute_uv=False)[-1]
    move = float(np.linalg.norm(z)) + _MOVE * scale
    return float(2 * np.sqrt(len(corners)) * move / thinnest) if thinnest > _MOVE * scale else np.inf


def _polished(b: Array, g: Array, z: Array, h: Array, scale: float) -> Nearest:
    """Recompute the point as a projection, from which generators it is orthogonal to, and check its conditions."""
    norms = np.maximum(np.linalg.norm(g, axis=1), TINY)
    cosine = (g @ z) / (norms * np.linalg.norm(z))
    tight = np.abs(cosine) <= TIGHT
    side = np.where(tight, 0, np.sign(cosine)).astype(np.int8)
    point = b - (side > 0) @ g
    on = np.zeros(0)
    spread = 1.0
    if tight.any():
        spread = (
            float(np.linalg.svd(g[tight] / norms[tight, None], compute_uv=False)[-1]) if tight.sum() <= len(b) else 0.0
        )
        on = np.linalg.lstsq(g[tight].T, point, rcond=None)[0]
        point = point - on @ g[tight]
    size = float(np.linalg.norm(point))
    off = (g[~tight] @ point) * side[~tight] / norms[~tight]
    clear = (
        spread > _INDEPENDENT
        and size > _LONG * scale
        and off.min(initial=np.inf) > 0.1 * TIGHT * size
        and on.min(initial=1.0) > _INSIDE
        and on.max(initial=0.0) < 1 - _INSIDE
    )
    return Nearest(point if size > 0 else z, side, h, bool(clear))
