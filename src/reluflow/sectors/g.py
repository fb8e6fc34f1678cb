"""The function that neurons climb while they are small, with its derivatives at kinks.

While the network is near zero every sample pulls with the same force, and neuron j follows the gradient of

    G(w) = speed * sum_i y_i phi(w . x_i),     phi(z) = max(z, slope z)

uphill if a_j > 0 and downhill if a_j < 0 (PL-D4). The factor ``speed`` is 1 for a sum of losses with unit force at
zero; `Problem.speed` turns G into the one of that problem, e.g. 1/(2n) for the mean logistic loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..problem import Dataset, ProblemError
from ..problem.network import check_slope
from ..problem.types import Array
from .patterns import sector


def G(data: Dataset, w: npt.ArrayLike, slope: float = 0.0, speed: float = 1.0) -> Array:
    r"""Value :math:`G(w) = \mathrm{speed} \sum_i y_i \phi(w \cdot x_i)`, of one vector or of many.

    Parameters
    ----------
    data : Dataset
    w : array_like of shape (d,) or (m, d)
    slope : float
        Slope of the activation for negative input, in [0, 1].
    speed : float
        1 for unit force and a sum of losses; `Problem.speed` for a problem's own G.

    Examples
    --------
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> float(G(data, [1, 1], speed=0.5))
    3.0
    """
    z = _vectors(data, w) @ data.X.T
    return np.asarray(speed * (np.where(z > 0, z, check_slope(slope) * z) @ data.y))


def G_gradient(data: Dataset, w: npt.ArrayLike, slope: float = 0.0, speed: float = 1.0) -> Array:
    r"""Gradient :math:`\sum_i y_i \phi'(w \cdot x_i) x_i` with :math:`\phi'(0)` = slope.

    Off the hyperplanes this is the gradient of G. On them it is the choice :math:`\phi'(0) = \alpha`, i.e. a sample is
    active only if ``w . x_i > 0``; signs are decided exactly.

    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> G_gradient(data, [[-1, 1], [1, -1]])
    array([[4. , 3. ],
           [3. , 3.5]])
    """
    active = sector(data, _vectors(data, w)) > 0
    return np.asarray(speed * (np.where(active, data.y, check_slope(slope) * data.y) @ data.X))


def G_derivative(data: Dataset, w: npt.ArrayLike, v: npt.ArrayLike, slope: float = 0.0, speed: float = 1.0) -> float:
    r"""One-sided directional derivative :math:`G'(w; v) = \lim_{e \downarrow 0} (G(w + e v) - G(w))/e`.

    .. math::
        G'(w; v) = \sum_{w \cdot x_i \ne 0} y_i \phi'(w \cdot x_i)\, v \cdot x_i
                   + \sum_{w \cdot x_i = 0} y_i \phi(v \cdot x_i)

    Examples
    --------
    >>> data = Dataset([[1, 0], [0, 1]], [1, -1])
    >>> [G_derivative(data, [1, 0], v) for v in ([0, 1], [0, -1])]     # a kink with its top at w
    [-1.0, 0.0]
    """
    at, along = _vector(data, w), _vector(data, v)
    alpha = check_slope(slope)
    side = sector(data, at)
    side = np.where(side == 0, sector(data, along), side)
    return float(speed * (np.where(side > 0, data.y, alpha * data.y) @ (data.X @ along)))


def linear_until(data: Dataset, w: npt.ArrayLike, v: npt.ArrayLike) -> float:
    r"""Return the largest step e up to which no sample changes its strict sign between w and w + e v (PL-LA2).

    Up to there G is linear on the segment: ``G(w + e v) = G(w) + e G'(w; v)``. Infinite where no hyperplane is ahead.

    >>> linear_until(Dataset([[1, 0], [0, 1]], [1, -1]), [1, 2], [-2, 1])
    0.5
    """
    at, along = _vector(data, w), _vector(data, v)
    here, there = sector(data, at), sector(data, along)
    meets = here * there < 0
    if not meets.any():
        return float("inf")
    return float(np.min(-(data.X[meets] @ at) / (data.X[meets] @ along)))


@dataclass(frozen=True, eq=False)
class ClarkeSet:
    r"""The slopes of G at a point, sample by sample: :math:`\{b + \sum_k h_k g_k : \alpha \le h_k \le 1\}`.

    It contains the Clarke subdifferential, and equals it if the samples on their hyperplane are independent (samples on
    one line with different labels may cancel each other's kink).

    Attributes
    ----------
    base : ndarray of shape (d,)
        The part of the samples off their hyperplane.
    generators : ndarray of shape (k, d)
        ``speed * y_k x_k`` of the samples with ``w . x_k = 0``.
    samples : ndarray of shape (k,)
        Which samples these are.
    slope : float
        The lower bound of every ``h_k``; the upper is 1.
    """

    base: Array
    generators: Array
    samples: npt.NDArray[np.intp]
    slope: float

    def element(self, h: npt.ArrayLike) -> Array:
        """Return the element with the slopes ``h``."""
        return np.asarray(self.base + np.asarray(h, dtype=np.float64) @ self.generators)


def G_clarke(data: Dataset, w: npt.ArrayLike, slope: float = 0.0, speed: float = 1.0) -> ClarkeSet:
    """Return the set of slopes of G at w; a single gradient off the hyperplanes.

    >>> G_clarke(Dataset([[1, 0], [0, 1]], [1, -1]), [1, 0])
    ClarkeSet(base=array([1., 0.]), generators=array([[-0., -1.]]), samples=array([1]), slope=0.0)
    """
    at = _vector(data, w)
    alpha = check_slope(slope)
    side = sector(data, at)
    weight = np.where(side > 0, 1.0, alpha) * (side != 0)
    on = np.flatnonzero(side == 0)
    return ClarkeSet(speed * (weight @ data.signed), speed * data.signed[on], on, alpha)


def _vectors(data: Dataset, w: npt.ArrayLike) -> Array:
    vectors = np.asarray(w, dtype=np.float64)
    if vectors.ndim not in (1, 2) or vectors.shape[-1] != data.d:
        raise ProblemError(f"w has shape {vectors.shape}; ({data.d},) or (m, {data.d}) is needed for these data.")
    return vectors


def _vector(data: Dataset, w: npt.ArrayLike) -> Array:
    vector = _vectors(data, w)
    if vector.ndim != 1:
        raise ProblemError(f"w has shape {vector.shape}; one vector of shape ({data.d},) is needed here.")
    return vector
