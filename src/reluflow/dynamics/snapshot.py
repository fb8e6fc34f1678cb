"""What to look at in one network on its way: agreement of the neurons, how norms and directions change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..problem import Dataset, Network, Problem, require_problem

_ON = 1e-9  # |cos| up to which a neuron counts as lying on the hyperplane of a sample


class ChangeMeasures(NamedTuple):
    """How fast norms and directions of the first layer change.

    ``norm`` is the sum over neurons of d|w|^2/dt, ``absolute`` the sum of its absolute values, ``direction`` the sum
    of the speeds of the directions.
    """

    norm: float
    absolute: float
    direction: float


def change_measures(problem: Problem, net: Network | None = None, subgradient: float | None = None) -> ChangeMeasures:
    r"""Measure how fast norms and directions change at a network, with full gradients (ML-F12).

    .. math:: N = \sum_j 2 \langle -\nabla_{w_j} L, w_j \rangle, \qquad
              D_d = \sum_j |P_{w_j} \nabla_{w_j} L| / |w_j|,

    where :math:`P_w` projects orthogonally to w; zero neurons have no direction and do not count in the second sum.
    Both are exact for networks of any scale, and 0 or inf where no double can hold them.

    Examples
    --------
    >>> from reluflow import Dataset
    >>> problem = Problem(Dataset([[1.0, 0.0]], [1]), Network([[1.0, 1.0]], [2.0]), "exponential")
    >>> now = change_measures(problem)    # force e^-2, gradient -2 e^-2 (1, 0)
    >>> [round(float(size * np.exp(2)), 12) for size in now]
    [4.0, 4.0, 1.0]
    """
    require_problem(problem)
    net = problem.net if net is None else net
    data = problem.data
    kink = net.slope if subgradient is None else subgradient
    U = net.directions
    Z = data.X @ U.T
    H = np.where(Z > 0, 1.0, np.where(Z < 0, net.slope, kink))
    D = (H * (problem.weight * problem.loss.force(net.margins(data)) * data.y)[:, None]).T @ data.X
    along = np.einsum("jk,jk->j", U, D)
    across = np.where(U.any(axis=1), np.linalg.norm(D - along[:, None] * U, axis=1), 0.0)
    live = across > 0
    with np.errstate(over="ignore", under="ignore"):
        growth = 2 * np.sign(net.a) * along * np.exp(net.log_norms + net.log_outs)
        turning = across[live] * np.exp(net.log_outs[live] - net.log_norms[live])
        return ChangeMeasures(float(growth.sum()), float(np.abs(growth).sum()), float(turning.sum()))


# -- agreement regions ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Agreement:
    r"""Whether all neurons of one output sign see every sample on the same side (SBG-D6.2, SBG-D6.3).

    Attributes
    ----------
    holds : bool
        The network is in the agreement region of its own signs.
    beta : float
        :math:`\min |w_j \cdot x_i| / |w_j|`: how deep inside; 0 where it is not in one.
    signs_w, signs_u : ndarray of shape (n,)
        Common signs of the neurons with positive and with negative output, 0 where they disagree or one is on a kink.
    perfect : bool
        The signs are y and -y.
    share_w, share_u : float
        Share of the positive neurons with pattern y, of the negative ones with pattern -y; nan without any.
    disagreements : int
        Largest number of samples on which two neurons of one output sign disagree.
    """

    holds: bool
    beta: float
    signs_w: npt.NDArray[np.int8]
    signs_u: npt.NDArray[np.int8]
    perfect: bool
    share_w: float
    share_u: float
    disagreements: int


def agreement(data: Dataset, net: Network) -> Agreement:
    """Look at which side of every sample the neurons are.

    A zero neuron is in no agreement region, nor is one on a hyperplane (to 1e-9: it slides there, or is about to);
    neurons with zero output weight do not count.

    >>> data = Dataset([[1.0, 0.0], [-1.0, 0.2]], [1, -1])
    >>> found = agreement(data, Network([[1.0, 0.1], [2.0, 0.0], [-1.0, 0.0]], [1.0, 1.0, -1.0], slope=0.5))
    >>> found.holds, found.perfect, found.disagreements
    (True, True, 0)
    """
    Z = data.X @ net.directions.T
    S = np.where(np.abs(Z) <= _ON * data.norms[:, None], 0.0, np.sign(Z))
    signs, shares, most = [], [], 0
    for side in (1, -1):
        own = S[:, np.sign(net.a) == side]
        shares.append(float((own == side * data.y[:, None]).all(axis=0).mean()) if own.size else math.nan)
        same = (own == own[:, :1]).all(axis=1) if own.size else np.ones(data.n, bool)
        signs.append(np.where(same, own[:, 0], 0).astype(np.int8) if own.size else (side * data.y).astype(np.int8))
        # Samples where two neurons differ: n minus those where both are at +, at -, at 0.
        alike = sum((own == value).T.astype(np.float64) @ (own == value) for value in (-1, 0, 1))
        most = max(most, int(data.n - np.min(alike, initial=data.n)))
    holds = bool((signs[0] != 0).all() and (signs[1] != 0).all())
    beta = float(np.abs(Z[:, net.a != 0]).min(initial=np.inf)) if holds else 0.0
    perfect = holds and bool((signs[0] == data.y).all() and (signs[1] == -data.y).all())
    return Agreement(holds, beta, signs[0], signs[1], perfect, shares[0], shares[1], most)
