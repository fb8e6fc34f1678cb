"""The numbers that bound how long alignment takes (ML-L8, ML-L9, ML-A2, ML-DT, ML-T1a)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log, sqrt

import numpy as np

from ..problem import Dataset, Network, ProblemError, require_dataset
from ..problem.network import misfit
from ..problem.types import Array
from .closed import class_sums, exact_sum
from .cones import nearest_cosine, smallest_cosine
from .exact import as_rationals, column_sums, multiple

_PARALLEL = 1e-24  # 1 - cos below which rounding of the directions decides, so that rationals must


@dataclass(frozen=True)
class AlignmentConstants:
    r"""Geometry of the data and of the initial directions, and the time bounds that follow from it.

    Times hold for a sum of losses with unit force at zero; `in_clock` converts them to a problem's own clock.
    Where the theory does not apply (``mu <= 0``, or a neuron on a repelling ray) they are infinite.

    Attributes
    ----------
    mu : float
        Smallest cosine between signed points (ML-A1), attained by the samples ``pair``.
    pair : tuple of int
    x_min, x_max : float
        Smallest and largest norm of a point.
    zeta_1_plus, zeta_1_minus : float
        Squared smallest cosine between a signed point and the class sum (ML-L8): vectors closer than that to the class
        sum are in its cone. 1 for an empty class.
    zeta_2 : float
        :math:`1 - c_0^2`, :math:`c_0` the largest cosine between a neuron and the sum of the class it does not fit
        (ML-A2); 1 without such neurons, 0 for a neuron exactly on that ray.
    xi : float
        :math:`\mu^2`, the best constant of ML-L9 (0 where mu <= 0).
    c : float
        ``min(zeta_2, xi)``.
    output_bound : float
        B: early-phase bounds hold while max \|f(x_i)\| <= B (ML-EPS).
    h : float
        Harmonic factor of the sharper bounds, from the worst order of activation changes.
    t_1, t_1_h, t_1_sharp : float
        Bounds on the alignment time, each below the one before: ML-T1a, with ``h`` for ``4 log n``, and ML-T1a'.
    """

    mu: float
    pair: tuple[int, int]
    x_min: float
    x_max: float
    zeta_1_plus: float
    zeta_1_minus: float
    zeta_2: float
    xi: float
    c: float
    output_bound: float
    h: float
    t_1: float
    t_1_h: float
    t_1_sharp: float
    n: int
    speed: float = 1.0

    @property
    def zeta_1(self) -> float:
        """The smaller of the two, never below ``mu**2`` where mu > 0."""
        return min(self.zeta_1_plus, self.zeta_1_minus)

    @property
    def applies(self) -> bool:
        """Whether the time bounds are finite: mu > 0 and no neuron on the repelling ray."""
        return self.c > 0

    def dwell(self, active: int) -> float:
        """Longest stay with ``active`` active samples outside the final cones (ML-DT)."""
        return self._dwell(active, 1.0 / self.c if self.applies else inf)

    def dwell_sharp(self, active: int) -> float:
        """Sharper form of `dwell` (ML-DT')."""
        return self._dwell(active, _artanh_root(self.c) if self.applies else inf)

    def _dwell(self, active: int, factor: float) -> float:
        if isinstance(active, bool) or not isinstance(active, (int, np.integer)) or not 1 <= active <= self.n:
            raise ProblemError(f"active = {active!r}: a number of active samples from 1 to n = {self.n} is needed.")
        return 4 * factor / (sqrt(self.mu) * self.x_min * active * self.speed) if factor < inf else inf

    def in_clock(self, speed: float) -> AlignmentConstants:
        """Return the same constants with all times divided by ``speed`` (`Problem.speed`)."""
        if not speed > 0:
            raise ProblemError(f"speed = {speed!r}: a positive number is needed, usually problem.speed.")
        ratio = self.speed / speed
        times = {name: getattr(self, name) * ratio for name in ("t_1", "t_1_h", "t_1_sharp")}
        return replace(self, speed=speed, **times)


def alignment_constants(data: Dataset, net: Network | None = None) -> AlignmentConstants:
    r"""Constants and time bounds of early alignment for ReLU networks.

    With :math:`c = \min(\zeta_2, \mu^2)`:

    .. math::
        t_1 = \frac{16 \log n}{c \sqrt\mu X_{\min}}, \qquad
        t_1^h = \frac{4 h}{c \sqrt\mu X_{\min}}, \qquad
        t_1' = \frac{4 h \,\mathrm{artanh}\sqrt{1-c}}{\sqrt\mu X_{\min}}

    For n = 1 the first is no bound (log n = 0) and ``t_1`` is set to :math:`t_1^h`.

    Parameters
    ----------
    data : Dataset
    net : Network, optional
        The start; only directions and output signs matter. Without it :math:`\zeta_2 = 1`.

    Examples
    --------
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> constants = alignment_constants(data)
    >>> print(f"{constants.t_1:.8f} {constants.t_1_h:.8f} {constants.t_1_sharp:.9f}")
    29.58054843 16.00339145 6.705863713
    """
    require_dataset(data)
    mu, pair = smallest_cosine(data)
    plus, minus = class_sums(data)
    zeta_plus = _cap(data.signed, data.norms, plus) if data.positives.size else 1.0
    zeta_minus = _cap(-data.signed, data.norms, minus) if data.negatives.size else 1.0
    zeta_2 = 1.0 if net is None else initial_gap(data, net)
    xi = mu * mu if mu > 0 else 0.0
    c = min(zeta_2, xi)
    h = harmonic_factor(data.positives.size, data.negatives.size)
    x_min, x_max = float(data.norms.min()), float(data.norms.max())
    base = sqrt(mu) * x_min if mu > 0 else 0.0
    slow = 4 * h / (c * base) if c > 0 else inf
    return AlignmentConstants(
        mu=mu,
        pair=pair,
        x_min=x_min,
        x_max=x_max,
        zeta_1_plus=zeta_plus,
        zeta_1_minus=zeta_minus,
        zeta_2=zeta_2,
        xi=xi,
        c=c,
        output_bound=c * base / (4 * data.n * x_max),
        h=h,
        t_1=(16 * log(data.n) / (c * base) if data.n > 1 else slow) if c > 0 else inf,
        t_1_h=slow,
        t_1_sharp=4 * h * _artanh_root(c) / base if c > 0 else inf,
        n=data.n,
    )


def initial_gap(data: Dataset, net: Network) -> float:
    r"""Return :math:`\zeta_2 = 1 - c_0^2` of ML-A2: how far the neurons start from the rays that repel them.

    :math:`c_0` is the largest cosine, if positive, between a neuron with a_j > 0 and the sum of the negative class, or
    one with a_j < 0 and the sum of the positive class.

    >>> initial_gap(Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1]), Network([[-3.0, 3.0]], [1.0]))
    0.0
    """
    if net.d != data.d:
        raise ProblemError(misfit(data.d, net.d))
    gap = 1.0
    plus, minus = class_sums(data)
    for total, index, group in (
        (minus, data.negatives, net.W[net.a > 0]),
        (plus, data.positives, net.W[net.a < 0]),
    ):
        if not total.any():
            continue
        here = nearest_cosine(group, total)
        if here < _PARALLEL:
            close = group[[nearest_cosine(row[None], total) < _PARALLEL for row in group]]
            if _exactly_on_ray(close, data.X[index]):
                here = 0.0
        gap = min(gap, here)
    return gap * (2.0 - gap)


def harmonic_factor(positive: int, negative: int) -> float:
    r"""Return h of ML-T1a: harmonic sums over the worst order in which a neuron changes its active samples.

    >>> harmonic_factor(2, 2), harmonic_factor(1, 0)
    (3.0, 1.0)
    """

    def half(first: int, second: int) -> float:
        return _harmonic(first) + (0.5 if positive and negative else 0.0) + _harmonic(second - 1)

    return max(half(negative, positive), half(positive, negative))


def _harmonic(k: int) -> float:
    return float(np.sum(1.0 / np.arange(1, k + 1))) if k > 0 else 0.0


def _cap(points: Array, norms: Array, total: Array) -> float:
    """Squared smallest cosine with ``total``; 0 if some cosine is not positive, for then no cap lies in the cone."""
    size = float(np.linalg.norm(total))
    return max(0.0, float((points @ total / (norms * size)).min())) ** 2 if size > 0 else 0.0


def _exactly_on_ray(W: Array, points: Array) -> bool:
    """Whether some row of W is exactly parallel to the sum of the points."""
    total = column_sums(exact_sum(points))
    return not any(total) or any(multiple(as_rationals(row), total) is not None for row in W)


def _artanh_root(c: float) -> float:
    """``artanh(sqrt(1 - c))`` without cancellation for tiny c."""
    return log((1.0 + sqrt(1.0 - c)) / sqrt(c))
