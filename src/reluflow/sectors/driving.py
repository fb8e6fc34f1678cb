"""Whether every vector that can drive a small neuron separates the data (LL-A.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..problem import Dataset
from ..problem.precision import EPS
from ..problem.types import Array
from .exact import as_rationals, dot, total

_BLOCK = 1024
#: Products up to which rational arithmetic is quick enough, and samples that rounding may leave open.
_PRODUCTS, _SAMPLES = 20_000, 20


@dataclass(frozen=True, eq=False)
class DrivingSlack:
    r"""Whether every vector that can drive a small neuron separates the data (LL-A.2).

    Attributes
    ----------
    holds : bool or None
        None where rounding leaves it open.
    slack : ndarray
        :math:`\mu \cdot z_i - \frac{1-\alpha}{n \alpha} \sum_j \max(-z_i \cdot z_j, 0)` for the samples looked at:
        all of them, unless a clear failure was met before the last block.
    worst : int
        The sample of the smallest slack.
    exact : bool
        Decided beyond rounding, or in rational arithmetic.
    """

    holds: bool | None
    slack: Array
    worst: int
    exact: bool


def driving_slack(data: Dataset, slope: float, exact: bool = True) -> DrivingSlack:
    r"""Slack of LL-A.2 for a positive slope, a block of samples at a time.

    A small neuron is driven by vectors :math:`\sum_j h_j z_j` of the signed points :math:`z_j = y_j x_j` with
    :math:`\alpha \le h_j \le 1`. All of them have positive inner products with all :math:`z_i` exactly if every slack
    is positive.

    Parameters
    ----------
    data : Dataset
    slope : float
        Positive.
    exact : bool
        Whether rational arithmetic may settle what rounding leaves open.

    Examples
    --------
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1]], [1, 1, -1])
    >>> driving_slack(data, 0.5).holds, driving_slack(Dataset([[2, 1], [1, 2], [-3, 2]], [1, 1, -1]), 0.01).holds
    (True, False)
    """
    Z, n = data.signed, data.n
    size, bend = float(data.norms.sum()), (1 - slope) / slope
    found: list[Array] = []
    for lo in range(0, n, _BLOCK):
        inner = Z[lo : lo + _BLOCK] @ Z.T
        found.append((inner.sum(axis=1) - bend * np.maximum(-inner, 0.0).sum(axis=1)) / n)
        rounding = 4 * (n + data.d) * EPS * (1 + bend) * data.norms[lo : lo + _BLOCK] * size / n
        if (found[-1] < -rounding).any():
            break
    slack = np.concatenate(found)
    worst = int(np.argmin(slack))
    rounding = 4 * (n + data.d) * EPS * (1 + bend) * data.norms[: slack.size] * size / n
    if (slack < -rounding).any():
        return DrivingSlack(False, slack, worst, True)
    doubtful = np.flatnonzero(slack <= rounding)
    if not doubtful.size:
        return DrivingSlack(True, slack, worst, True)
    if not exact or n * data.X.size > _PRODUCTS or doubtful.size > _SAMPLES:
        return DrivingSlack(None, slack, worst, False)
    values = [_exact_slack(data, slope, int(i)) for i in doubtful]
    for i, value in zip(doubtful, values, strict=True):
        slack[i] = float(value)
    return DrivingSlack(all(value > 0 for value in values), slack, int(np.argmin(slack)), True)


def _exact_slack(data: Dataset, slope: float, i: int) -> Fraction:
    rows = [as_rationals(row) for row in data.signed]
    inner = [dot(rows[i], row) for row in rows]
    alpha = Fraction(slope)
    lost = total(-v for v in inner if v < 0)
    return (total(inner) - (1 - alpha) / alpha * lost) / data.n
