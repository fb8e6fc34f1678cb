"""Numbers that the statements on a frozen second layer speak of (SBG).

The network has k neurons with output +v and k with output -v; only the first layer is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ...margins import AgreementMargin, agreement_margin, beta_crit
from ...problem import Dataset, Network, NotSeparable, Stopped, Undecided


def pairs(net: Network) -> tuple[int, float] | None:
    """``(k, v)`` if k output weights are +v and k are -v, else None."""
    size = net.log_outs
    positive, negative = int((net.a > 0).sum()), int((net.a < 0).sum())
    if positive != negative or positive + negative != net.p or np.ptp(size) > 1e-12 * max(1.0, abs(float(size[0]))):
        return None
    with np.errstate(over="ignore", under="ignore"):
        return positive, float(np.exp(size[0]))


# -- stochastic gradient descent --------------------------------------------------------------------------


@dataclass(frozen=True)
class StepBound:
    r"""How many steps of stochastic gradient descent suffice for a loss of ``eps`` (SBG-T4.1).

    .. math:: M = C_1 |w|^2 n^2 A^2 + C_2 (|w| n A)^{3/2} + C_3 |w| n A + n, \qquad
        A = 1 + (1 + 2 v^2 R_x^2 \eta k n)/\epsilon,

    with w the max-margin vector, :math:`C_1 = R_x^2/\alpha^2 + 1/(k \eta v^2 \alpha^2)`,
    :math:`C_2 = \sqrt{R_0 (8 k^2 \eta^2 v^2 R_x^2 + 8 k \eta)} / (2 k (\eta v \alpha)^{3/2})`,
    :math:`C_3 = 2 R_0 / (\eta v \alpha)` and :math:`R_0` the largest norm of a neuron at the start.
    """

    eps: float
    step: float
    C1: float
    C2: float
    C3: float
    M: float


def step_bound(
    n: int, radius: float, w_norm: float, slope: float, k: int, v: float, R_0: float, step: float, eps: float
) -> StepBound:
    """Evaluate the bound of SBG-T4.1; batches of one sample, mean loss.

    >>> bound = step_bound(5, 1.3**0.5, 1.351725006733, 0.25, 5, 0.1**0.5, 0.01, 0.1, 0.1)
    >>> round(bound.C1, 10), round(bound.C3, 10), round(bound.M, 2)
    (340.8, 2.5298221281, 4805592.07)
    """
    A = 1 + (1 + 2 * v**2 * radius**2 * step * k * n) / eps
    C1 = radius**2 / slope**2 + 1 / (k * step * v**2 * slope**2)
    C2 = sqrt(R_0 * (8 * (k * step * v * radius) ** 2 + 8 * k * step)) / (2 * k * (step * v * slope) ** 1.5)
    C3 = 2 * R_0 / (step * v * slope)
    reach = w_norm * n * A
    return StepBound(eps, step, C1, C2, C3, C1 * reach**2 + C2 * reach**1.5 + C3 * reach + n)


# -- programs ---------------------------------------------------------------------------------------------


def par_program(data: Dataset, slope: float) -> AgreementMargin | None:
    """Solve the program of perfect agreement (SBG-T6.2); None where it has no solution or cannot be decided."""
    try:
        return agreement_margin(data, slope)
    except Stopped:
        raise
    except (NotSeparable, Undecided):
        return None


def critical(data: Dataset) -> tuple[float, float] | None:
    """Both critical constants of SBG-V; None where they cannot be decided."""
    try:
        return beta_crit(data)
    except Stopped:
        raise
    except Undecided:
        return None


def equal_slope_outlier(data: Dataset, signs_w: npt.NDArray[Any], signs_u: npt.NDArray[Any]) -> int | None:
    """Find the sample that rules a pattern out as a limit (SBG-R1): the rest antipodal, equal slopes at this one.

    None where the data are not an antipodal set and one more point, or the slopes there differ.
    """
    rows = np.column_stack([data.X, data.y]) + 0.0
    count: dict[bytes, list[int]] = {}
    for i, row in enumerate(rows):
        count.setdefault(row.tobytes(), []).append(i)
    alone = []
    for key, members in count.items():
        mirror = (-np.frombuffer(key) + 0.0).tobytes()
        surplus = len(members) - len(count.get(mirror, []))
        alone += members[: max(surplus, 0)]
    if len(alone) != 1:
        return None
    return alone[0] if signs_w[alone[0]] == signs_u[alone[0]] else None
