"""All strict local extrema of G on the circle, by one exact turn around it.

The rays orthogonal to the samples cut the circle into arcs. On an open arc G is g.w with one vector g, so its only
critical points there are g/|g| (a maximum) and -g/|g| (a minimum), if they lie on the arc. On a ray u the two one-sided
derivatives decide (see ``strict.py``). Every direction is one or the other, hence the list is complete. Coordinates are
integers times a power of two; nothing is rounded before the answer is written down.
"""

from __future__ import annotations

from functools import cmp_to_key

import numpy as np
import numpy.typing as npt

from ..problem.types import Array, Integers
from .exact import as_integers, to_float, unit_float, value_along
from .strict import Maximum


def sweep(X: Array, y: Array, slope: float) -> tuple[list[Maximum], list[Maximum]]:
    """Maxima and minima of G on the circle, each counterclockwise (minima with their own, smallest, values)."""
    points, exponent = as_integers(X)
    low, high = slope.as_integer_ratio()
    labels = [int(v) for v in y]
    rays, members = _rays(points)
    count = len(rays)
    signs = np.array([_sign(_between(rays, 0) @ p) for p in points], dtype=np.int8)  # on the arc after ray 0
    weight = np.where(signs > 0, high, low) * np.array(labels, dtype=object)
    gradient: Integers = weight @ points
    maxima: list[Maximum] = []
    minima: list[Maximum] = []

    for k in range(1, count + 1):
        here, before = k % count, gradient
        u, on = rays[here], members[here]
        _collect_arc(maxima, minima, rays[k - 1], u, before, signs, exponent, high)
        for i in on:
            signs[i] = -signs[i]
            gradient = gradient + int(signs[i]) * (high - low) * labels[i] * points[i]
        v = np.array([-u[1], u[0]], dtype=object)
        left, right, level = int(gradient @ v), -int(before @ v), int(before @ u)
        for found, side in ((maxima, 1), (minima, -1)):
            worst = max(side * left, side * right)
            if worst < 0 or (worst == 0 and side * level > 0):
                pattern = signs.copy()
                pattern[on] = 0
                found.append(Maximum(unit_float(u), value_along(u, level, high, exponent), pattern))
    return maxima, minima


def _collect_arc(
    maxima: list[Maximum],
    minima: list[Maximum],
    first: Integers,
    last: Integers,
    gradient: Integers,
    signs: npt.NDArray[np.int8],
    exponent: int,
    high: int,
) -> None:
    """Add the extrema in the open arc from ``first`` to ``last`` (at most half a turn)."""
    for found, side in ((maxima, 1), (minima, -1)):
        u = side * gradient
        if _cross(first, u) > 0 and (_cross(u, last) > 0 or _cross(first, last) == 0):
            value = side * float(np.linalg.norm(to_float(gradient, high, exponent)))
            found.append(Maximum(unit_float(u), value, signs.copy()))


def _rays(points: Integers) -> tuple[list[Integers], list[list[int]]]:
    """Rays orthogonal to the points, counterclockwise, each with the samples on it; ray k + m is opposite to ray k."""
    upper: list[tuple[Integers, int]] = []
    for i, (a, b) in enumerate(points):
        ray = np.array([-b, a], dtype=object)
        upper.append((ray if (ray[1], ray[0]) > (0, 0) else -ray, i))  # angle in [0, pi)
    # Sorted by floating point first, the exact comparison then finds a nearly sorted list.
    upper.sort(key=lambda entry: np.arctan2(*unit_float(entry[0])[::-1]))
    upper.sort(key=cmp_to_key(_clockwise))
    rays: list[Integers] = []
    members: list[list[int]] = []
    for ray, i in upper:
        if rays and _cross(rays[-1], ray) == 0:
            members[-1].append(i)
        else:
            rays.append(ray)
            members.append([i])
    return rays + [-r for r in rays], members + members


def _clockwise(one: tuple[Integers, int], two: tuple[Integers, int]) -> int:
    return -_sign(_cross(one[0], two[0]))


def _between(rays: list[Integers], k: int) -> Integers:
    """Return a vector strictly between ray k and the next one."""
    one, two = rays[k], rays[(k + 1) % len(rays)]
    if _cross(one, two) == 0:  # a single line: half a turn
        return np.array([-one[1], one[0]], dtype=object)
    return np.asarray(one + two)


def _cross(a: Integers, b: Integers) -> int:
    return int(a[0] * b[1] - a[1] * b[0])


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
