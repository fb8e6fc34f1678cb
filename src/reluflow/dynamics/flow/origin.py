r"""Neurons at w = 0 with an output weight: the ways out.

At w = 0 every sample is on its hyperplane. A solution that leaves does so along a unit vector u in whose own sector the
force points outwards, :math:`a D(u) \parallel u`; of these the attracting ones are the strict local maxima of
:math:`s\,G_c(u) = s \sum_i c_i \phi(u \cdot x_i)` with a positive value, s the sign of a: along any other the smallest
disturbance turns the neuron away. If there is none the neuron rests. If there are several, or it could as well rest
(0 is in the convex hull of the forces of the sectors around, as with slope 0 where some direction sees no sample), the
flow is not unique: **the rule here is to leave, along the fastest of them**, and a ``ridge`` is noted among the events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...problem import Dataset
from ...problem.types import Array
from ...sectors import extremal_directions
from .field import Geometry

_CELLS = 2000  # cells and rays enumerated to list the ways; beyond, an ascent from random starts
_SECTORS = 200  # random directions whose sectors are looked at
_FELT = 1e-12  # pulls below this part of the largest do not count


class Exit(NamedTuple):
    """The way out that is taken: its direction, the rate of growth along it, and whether it is the only solution."""

    direction: Array
    rate: float
    unique: bool


def way_out(geometry: Geometry, sign: float, c: Array) -> Exit | None:
    """Find how a neuron with output weight of this sign leaves w = 0 when sample i pulls with ``c_i``; None: it rests.

    Parameters
    ----------
    geometry : Geometry
    sign : float
        Of the output weight.
    c : ndarray of shape (n,)
        ``y_i`` times the strength of each sample.
    """
    faces, size = geometry.faces, geometry.problem.data.norms
    # Samples in one direction pull as one.
    points, pulls = [], []
    for orient in (1, -1):
        mass = np.bincount(faces.of, weights=np.where(faces.orient == orient, c * size, 0.0), minlength=faces.m)
        points.append(orient * faces.normals)
        pulls.append(mass)
    strength = np.concatenate(pulls)
    felt = np.abs(strength) > _FELT * np.abs(strength).max(initial=0.0)
    if not felt.any():
        return None
    rows = (np.abs(strength)[:, None] * np.vstack(points))[felt]
    top = float(np.abs(strength).max())
    found = extremal_directions(Dataset(rows / top, np.sign(strength[felt])), geometry.slope, budget=_CELLS)
    ways = [e for e in (found.maxima if sign > 0 else found.minima) if sign * e.value > 0]
    if not ways:
        return None
    best = max(ways, key=lambda e: sign * e.value)
    rests = _rests(rows / top, np.sign(strength[felt]), geometry.slope)
    return Exit(best.direction, float(sign * best.value * top), len(ways) == 1 and not rests)


def _rests(rows: Array, labels: Array, slope: float) -> bool:
    """Whether w = 0 is a solution too: 0 is in the convex hull of the forces of the sectors around it (Clarke).

    On a line there are two sectors; in more dimensions those of many random directions, and of their opposites, are
    taken, so that a yes is proved and a no is not.
    """
    from scipy.optimize import nnls

    d = rows.shape[1]
    U = np.ones((1, 1)) if d == 1 else np.random.default_rng(0).standard_normal((_SECTORS, d))
    U = np.vstack([U, -U, rows, -rows])
    h = np.where(U @ rows.T > 0, 1.0, slope)
    forces = np.unique((h * labels) @ rows, axis=0)
    size = float(np.linalg.norm(forces, axis=1).max())
    if size == 0.0:
        return True
    system = np.vstack([forces.T / size, np.ones(len(forces))])
    return bool(nnls(system, np.append(np.zeros(d), 1.0), maxiter=50 * len(forces))[1] <= 1e-9)
