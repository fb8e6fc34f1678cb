"""What to look at along a run of any kind: alignment, agreement, how norms and directions change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...margins import clusters, max_margin
from ...problem import Dataset, Network, Problem, ProblemError, require_problem
from ...problem.types import Array
from ..trajectory import Trajectory
from .step import order

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


# -- alignment with given directions ----------------------------------------------------------------------


def cosines(run: Trajectory, plus: npt.ArrayLike, minus: npt.ArrayLike) -> Array:
    r"""Cosine of every neuron with ``plus`` where its output weight is positive, with ``minus`` where negative.

    Shape (T, p); nan for a zero neuron or a zero output weight. The signs are those of each record. With the class
    sums :math:`x_\pm` it shows alignment, with the max-margin vectors :math:`w_\pm` of the classes the limit.
    """
    targets = [_unit(run, name, vector) for name, vector in (("plus", plus), ("minus", minus))]
    found = np.where(run.signs > 0, run.directions @ targets[0], run.directions @ targets[1])
    return np.where((run.signs != 0) & np.isfinite(run.log_norms), found, np.nan)


def group_cosines(run: Trajectory, plus: npt.ArrayLike, minus: npt.ArrayLike) -> Array:
    """Cosine of the mean positive neuron with ``plus`` and of the mean negative one with ``minus``, shape (T, 2)."""
    targets = [_unit(run, name, vector) for name, vector in (("plus", plus), ("minus", minus))]
    found = np.full((len(run), 2), np.nan)
    for k in range(len(run)):
        for side, (sign, target) in enumerate(zip((1, -1), targets, strict=True)):
            live = (run.signs[k] == sign) & np.isfinite(run.log_norms[k])
            if live.any():
                size = run.log_norms[k, live]
                with np.errstate(under="ignore"):
                    mean = np.exp(size - size.max()) @ run.directions[k, live]
                norm = np.linalg.norm(mean)
                found[k, side] = mean @ target / norm if norm > 0 else np.nan
    return found


def group_angles(run: Trajectory) -> Array:
    """Largest angle in degrees between two neurons of one output sign, shape (T, 2): positive, negative.

    nan where fewer than two neurons have that sign.
    """
    found = np.full((len(run), 2), np.nan)
    for k in range(len(run)):
        for side, sign in enumerate((1, -1)):
            U = run.directions[k, (run.signs[k] == sign) & np.isfinite(run.log_norms[k])]
            if len(U) > 1:
                # The chord keeps small angles exact, where the cosine has lost them.
                chord = max(np.linalg.norm(U - u, axis=1).max() for u in U)
                found[k, side] = np.degrees(2 * np.arcsin(np.minimum(chord / 2, 1.0)))
    return found


def linear_fraction(run: Trajectory, X: npt.ArrayLike | None = None, sharp: bool = False) -> Array:
    """Share of the points that surely get a linear answer, shape (T,) (SBG-T5.1).

    The points are the training data, or ``X``: test points, say. See `reluflow.margins.clusters` for what it needs.
    """
    points = run.problem.data.X if X is None else np.asarray(X, dtype=np.float64)
    return np.array([clusters(net).in_linear_region(points, sharp).mean() for net in run.networks()])


def _unit(run: Trajectory, name: str, vector: npt.ArrayLike) -> Array:
    v = np.asarray(vector, dtype=np.float64)
    size = np.linalg.norm(v)
    if v.shape != (run.problem.data.d,) or not np.isfinite(size) or size == 0:
        raise ProblemError(f"{name} must be a non-zero vector with {run.problem.data.d} entries, not {vector!r}.")
    return np.asarray(v / size)


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


def agreement_entrance(run: Trajectory, perfect: bool = False) -> int | None:
    """First record from which on all records are in one and the same agreement region; None if the last is in none.

    With ``perfect`` that region has to be the perfect one.
    """
    data, first, last = run.problem.data, None, None
    for k in range(len(run) - 1, -1, -1):
        found = agreement(data, run.network(k))
        if not found.holds or (perfect and not found.perfect):
            break
        if last is not None and not (
            np.array_equal(found.signs_w, last.signs_w) and np.array_equal(found.signs_u, last.signs_u)
        ):
            break
        first, last = k, found
    return first


# -- stochastic descent, step by step ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SgdSteps:
    r"""The inequalities of SBG-T4.1 at every step of a run with batch size 1; each array has one entry a step.

    Attributes
    ----------
    sample : ndarray of int
        The sample visited.
    loss : ndarray
        Its loss when it is visited, before the step.
    norm_slack : ndarray
        :math:`G_{t-1}^2 + 2\eta g q + p\,\eta^2 v^2 R_x^2 g^2 - G_t^2`, not negative, where :math:`G = |W|_F`.
    growth_slack : ndarray
        :math:`F_t - F_{t-1} - p\,\eta v \alpha g`, not negative, where
        :math:`F = \sum_j \mathrm{sign}(a_j)\, w_j \cdot w_{svm}`.
    """

    sample: npt.NDArray[np.intp]
    loss: Array
    norm_slack: Array
    growth_slack: Array


def sgd_steps(run: Trajectory) -> SgdSteps:
    r"""Check SBG-T4.1 (i) and (ii) at every step, and list what (iii) is about.

    The run must be one of ``sgd`` with ``batch=1``, a fixed step and every iteration recorded (``record=range(steps +
    1)``), on a problem with ``train="first"`` and output weights :math:`\pm v`. That the two slacks are not negative
    holds up to rounding, for every data that are separable.
    """
    how, problem = run.settings, run.problem
    data, net = problem.data, problem.net
    _, frozen = run.network(0).log_scales
    plain = (
        run.method == "sgd" and how["batch"] == 1 and how["schedule"] == "fixed" and problem.train == "first"
    ) and how["iteration"] == list(range(len(run)))
    if not plain or not (net.a != 0).all() or np.ptp(frozen) > 1e-12:
        raise ProblemError(
            "sgd_steps needs a run of method 'sgd' with batch=1, schedule='fixed', every iteration recorded "
            "(record=range(steps + 1)) and train='first' with output weights +v and -v."
        )
    eta, v, p = float(how["step"]), float(np.exp(run.log_outs[0, 0])), net.p
    epochs = -(-(len(run) - 1) // data.n)
    sample = np.concatenate([order(data.n, how["seed"], e) for e in range(epochs)] or [np.empty(0, np.intp)])
    sample = sample[: len(run) - 1]
    W = run.W
    Z = np.einsum("tpd,td->tp", W[:-1], data.X[sample])
    q = data.y[sample] * v * (run.signs[:-1] * np.where(Z > 0, Z, net.slope * Z)).sum(axis=1)
    g = problem.loss.force(q)
    square = (W**2).sum(axis=(1, 2))
    reach = float(data.norms.max())
    norm_slack = square[:-1] + 2 * eta * g * q + p * (eta * v * reach * g) ** 2 - square[1:]
    F = np.einsum("tp,tpd,d->t", run.signs.astype(np.float64), W, max_margin(data).w)
    growth_slack = np.diff(F) - p * eta * v * net.slope * g
    return SgdSteps(sample, np.asarray(problem.loss.value(q)), np.asarray(norm_slack), np.asarray(growth_slack))
