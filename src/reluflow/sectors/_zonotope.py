"""The point of smallest norm of a zonotope.

    minimise |z|   over   z = b - sum_i h_i g_i,   0 <= h_i <= 1

Its negative gradient reading: z is the direction in which the concave function b.w - sum_i (g_i.w)_+ is largest on the
unit ball, and |z| is that maximum. It is also the velocity of a neuron that slides on the hyperplanes g_i^perp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_EPS = 2.0**-52
#: Two directions count as orthogonal, for guessing which constraints are tight, below this cosine.
TIGHT = 1e-7


@dataclass(frozen=True)
class Nearest:
    """The minimum-norm point ``z = b - h @ g`` of a zonotope, and how well it is known.

    Attributes
    ----------
    point : ndarray of shape (d,)
    h : ndarray of shape (m,)
    inner : bool
        Zero lies in the zonotope, inside a simplex of its vertices and away from the boundary of that.
    settled : bool
        Confirmed: by ``inner``, or by recomputing the point from the generators that it is orthogonal to.
    """

    point: Array
    h: Array
    inner: bool
    settled: bool


def nearest_point(b: Array, g: Array, start: Array | None = None, sweeps: int = 10_000) -> Nearest:
    """Minimum-norm point by Wolfe's method: finite, whatever coincides or is degenerate.

    It keeps a simplex of vertices whose minimum-norm point is inside. The vertex furthest in direction -z has
    ``h_i = [g_i . z > 0]``, so that one step costs one pass over the generators; in low dimension a few are enough.

    >>> nearest_point(np.array([1.0, 1.0]), np.array([[2.0, 0.0]]), None).point     # h = 1/2
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
        if size <= 16 * _EPS * scale or size >= last:  # zero, or down to rounding: every step lowers the norm
            break
        last = size
        new = (g @ z > 0).astype(np.float64)
        corner = b - new @ g
        gain = size * size - float(corner @ z)
        if gain <= 4 * len(b) * _EPS * size * max(float(np.linalg.norm(corner)), size):
            break
        corners, h = np.vstack([corners, corner]), np.vstack([h, new])
        weights = np.append(weights, 0.0)
        corners, h, weights = _shrink(corners, h, weights)
        z = weights @ corners
    slopes = weights @ h
    size = float(np.linalg.norm(z))
    if size <= 1e-10 * scale:
        inner = len(weights) == len(b) + 1 and weights.min() > 1e-7 and _flatness(corners) > 1e-7
        return Nearest(z, slopes, bool(inner), bool(inner))
    point, confirmed = _polish(b, g, z, scale)
    return Nearest(point, slopes, False, confirmed)


def _shrink(corners: Array, h: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Move to the minimum-norm point of the affine hull, dropping corners until it lies in the simplex."""
    while len(weights) > 1:
        edges = corners[1:] - corners[0]
        step = np.linalg.lstsq(edges.T, -corners[0], rcond=None)[0]
        target = np.append(1.0 - step.sum(), step)
        if (target > 1e-14).all():
            return corners, h, target
        out = target <= 1e-14
        ratio = np.where(out, weights / np.where(out, np.maximum(weights - target, 1e-300), 1.0), np.inf)
        theta = min(1.0, float(ratio.min()))
        weights = np.maximum((1 - theta) * weights + theta * target, 0.0)
        weights[int(np.argmin(ratio))] = 0.0
        keep = weights > 0
        corners, h, weights = corners[keep], h[keep], weights[keep] / weights[keep].sum()
    return corners, h, np.ones(1)


def _flatness(corners: Array) -> float:
    edges = corners[1:] - corners[0]
    values = np.linalg.svd(edges, compute_uv=False)
    return float(values[-1] / values[0])


def _polish(b: Array, g: Array, z: Array, scale: float) -> tuple[Array, bool]:
    """Recompute the point as a projection, from which generators it is orthogonal to."""
    cosine = (g @ z) / (np.maximum(np.linalg.norm(g, axis=1), 1e-300) * np.linalg.norm(z))
    tight = np.abs(cosine) <= TIGHT
    rest = b - (cosine > TIGHT) @ g
    if tight.any():
        weights = np.linalg.lstsq(g[tight].T, rest, rcond=1e-12)[0]
        rest = rest - weights @ g[tight]
    return rest, bool(np.linalg.norm(rest - z) <= 1e-6 * np.linalg.norm(z) + 1e-14 * scale)
