"""Numbers that the statements on a frozen second layer speak of (SBG).

The network has k neurons with output +v and k with output -v; only the first layer is trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from ..dynamics import Trajectory
from ..margins import AgreementMargin, agreement_margin, beta_crit
from ..problem import Dataset, Network, NotSeparable, Undecided
from ..problem._arrays import Array

Bools = npt.NDArray[np.bool_]

_ON = 1e-9  # |cos| up to which a neuron counts as lying on the hyperplane of a sample: it slides, or is about to


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


# -- agreement of the neurons -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Agreement:
    r"""How far the neurons of each output sign agree, record by record (SBG-D6.2, SBG-D6.3).

    Attributes
    ----------
    disagreements : ndarray of int, shape (T,)
        Pairs (group, sample) on which some neurons of a group differ in sign, or lie on the hyperplane.
    beta : ndarray of shape (T,)
        :math:`\min_{ij} |w_j \cdot x_i|/|w_j|`; the network is in a NAR with this constant where nobody disagrees.
    as_last : ndarray of bool, shape (T,)
        All neurons have the patterns of the last record.
    share_w, share_u : ndarray of shape (T,)
        Share of the positive neurons with pattern y, of the negative ones with pattern -y.
    signs_w, signs_u : ndarray of shape (n,)
        Patterns of the last record (of the first neuron of each group).
    """

    disagreements: npt.NDArray[np.intp]
    beta: Array
    as_last: Bools
    share_w: Array
    share_u: Array
    signs_w: Array
    signs_u: Array

    @property
    def nar(self) -> Bools:
        """Records at which the neurons of each group agree on every sample."""
        return np.asarray((self.disagreements == 0) & (self.beta > 0))

    @property
    def par(self) -> Bools:
        """Records in perfect agreement: all positive neurons right, all negative ones wrong, on every sample."""
        return np.asarray(self.nar & (self.share_w == 1) & (self.share_u == 1))


def agreement(trajectory: Trajectory) -> Agreement:
    """Activation patterns of the two groups along a run; groups by the output signs of the last record."""
    data, T = trajectory.problem.data, len(trajectory)
    plus, minus = trajectory.signs[-1] > 0, trajectory.signs[-1] < 0
    units = data.X / data.norms[:, None]

    def sides(record: int) -> Array:
        z = units @ trajectory.directions[record].T  # (n, p)
        return np.where(np.abs(z) <= _ON, 0.0, np.sign(z))

    last = sides(-1)
    signs_w, signs_u = (last[:, g][:, 0] if g.any() else np.zeros(data.n) for g in (plus, minus))
    disagreements = np.zeros(T, dtype=np.intp)
    beta, share_w, share_u, same = np.zeros(T), np.ones(T), np.ones(T), np.zeros(T, dtype=bool)
    for t in range(T):
        z, side = data.X @ trajectory.directions[t].T, sides(t)
        for group in (plus, minus):
            if group.any():
                part = side[:, group]
                disagreements[t] += int(((part != part[:, :1]).any(axis=1) | (part == 0).any(axis=1)).sum())
        beta[t] = float(np.abs(z[:, plus | minus]).min()) if (plus | minus).any() else 0.0
        if plus.any():
            share_w[t] = float((side[:, plus] == data.y[:, None]).all(axis=0).mean())
        if minus.any():
            share_u[t] = float((side[:, minus] == -data.y[:, None]).all(axis=0).mean())
        same[t] = bool((side[:, plus] == signs_w[:, None]).all() and (side[:, minus] == signs_u[:, None]).all())
    return Agreement(disagreements, beta, same, share_w, share_u, signs_w, signs_u)


def since(flags: Bools) -> int | None:
    """First record from which the flags stay true until the end; None if the last one is false."""
    if not flags[-1]:
        return None
    false = np.flatnonzero(~flags)
    return int(false[-1]) + 1 if false.size else 0


# -- programs ---------------------------------------------------------------------------------------------


def par_program(data: Dataset, slope: float) -> AgreementMargin | None:
    """Solve the program of perfect agreement (SBG-T6.2); None where it has no solution or cannot be decided."""
    try:
        return agreement_margin(data, slope)
    except (NotSeparable, Undecided):
        return None


def critical(data: Dataset) -> tuple[float, float] | None:
    """Both critical constants of SBG-V; None where they cannot be decided."""
    try:
        return beta_crit(data)
    except Undecided:
        return None


def equal_slope_outlier(data: Dataset, signs_w: Array, signs_u: Array) -> int | None:
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
