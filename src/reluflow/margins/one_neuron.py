"""One neuron that classifies everything: the margins of a network whose neurons have all become one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem import Dataset, NotSeparable, ProblemError
from ..problem.network import check_slope
from ..problem.types import Array, Index
from ..problem.words import count
from .hard import MarginSolution, hard_margin


@dataclass(frozen=True, eq=False)
class OneNeuron:
    r"""The best single neuron of one output sign.

    A neuron with the label pattern (:math:`y_i w \cdot x_i > 0`) sees the points :math:`x_i^+ = x_i` for label +1 and
    :math:`\alpha x_i` for label -1; one with the opposite pattern sees :math:`x_i^- = \alpha x_i` for label +1 and
    :math:`x_i` for label -1. The limit with positive output is :math:`f = \frac12 \phi(w^+ \cdot x)`, with negative
    output :math:`f = -\frac12 \phi(-w^- \cdot x)`; the normalised margin is :math:`\gamma^\pm / 2` (LL-A.4, LL-TA.7).

    Attributes
    ----------
    sign : int
        Output sign: +1 for :math:`w^+, \gamma^+, S^+`, -1 for :math:`w^-, \gamma^-, S^-`.
    slope : float
        Slope :math:`\alpha` of the activation.
    points : ndarray of shape (n, d)
        :math:`x_i^\pm`.
    mean : ndarray of shape (d,)
        :math:`\mu^\pm = \frac1n \sum_i y_i x_i^\pm`; small neurons grow at the rate :math:`|\mu^\pm| / 2` (LL-G.5).
    kappa : float
        :math:`1 - |\mu^{\mp}| / |\mu^{\pm}|`: positive when neurons of this sign outgrow the others (LL-A.3, LL-A.8).
    solution : MarginSolution
        The max-margin program of the points :math:`x_i^\pm`; its ``w`` has length :math:`1/\gamma^\pm`.
    """

    sign: int
    slope: float
    points: Array
    mean: Array
    kappa: float
    solution: MarginSolution

    @property
    def w(self) -> Array:
        r"""The unit vector :math:`w^\pm`."""
        return self.solution.direction

    @property
    def gamma(self) -> float:
        r"""The margin :math:`\gamma^\pm`."""
        return self.solution.margin

    @property
    def support(self) -> Index:
        r"""The support set :math:`S^\pm`."""
        return self.solution.support

    @property
    def weights(self) -> Array:
        r"""Convex weights :math:`\lambda` with :math:`\sum \lambda_i y_i x_i^\pm = \gamma^\pm w^\pm`."""
        weights: Array = self.solution.dual / self.solution.dual.sum()
        return weights

    def __repr__(self) -> str:
        return (
            f"OneNeuron: sign={self.sign:+d}, slope={self.slope:g}, gamma={self.gamma:.10g}, "
            f"{count(self.support.size, 'tight point')}, kappa={self.kappa:.6g}"
        )


def one_neuron(data: Dataset, slope: float, sign: int = 1) -> OneNeuron:
    r"""Return the max-margin vector of a single neuron with output ``sign``.

    Solves :math:`\min |w|^2` subject to :math:`y_i w \cdot x_i^\pm \ge 1`; see `OneNeuron` for the points.

    Parameters
    ----------
    data : Dataset
        The labelled points.
    slope : float
        Slope :math:`\alpha \in [0, 1]`. With slope 0 a neuron is silent on the class opposite to its output sign,
        so the program has a solution only if that class is absent. With slope 1 the points are the data themselves.
    sign : int
        +1 or -1.

    Returns
    -------
    OneNeuron

    Raises
    ------
    ProblemError
        For slope 0 when both classes are present (or only the silent one).
    NotSeparable, Undecided
        As `max_margin`; for positive slopes the points :math:`x_i^\pm` are separable exactly when the data are.

    Examples
    --------
    >>> data = Dataset([[1, 0.5], [0.8, -0.3], [0.6, 0.9], [-1, 0.3], [-0.9, -0.7]], [1, 1, 1, -1, -1])
    >>> one_neuron(data, 0.5)
    OneNeuron: sign=+1, slope=0.5, gamma=0.4825930373, 2 tight points, kappa=0.0977065
    """
    alpha = check_slope(slope)
    if isinstance(sign, bool) or sign not in (1, -1):
        raise ProblemError(f"sign must be +1 or -1, not {sign!r}.")
    silent = data.negatives if sign > 0 else data.positives
    if alpha == 0 and silent.size:
        raise ProblemError(
            f"with slope 0 a single neuron with output sign {sign:+d} gives 0 on the {silent.size} samples with label "
            f"{-sign:+d} that it should tell apart, so its margin cannot be positive. Use a positive slope, or "
            "reluflow.margins.class_margins, which is what counts for ReLU."
        )
    seen = np.where(data.y == sign, 1.0, alpha)
    other = np.where(data.y == sign, alpha, 1.0)
    mean = data.signed.T @ seen / data.n
    rival = float(np.linalg.norm(data.signed.T @ other / data.n))
    try:
        solution = hard_margin(data.signed * seen[:, None])
    except NotSeparable as error:  # say it of the data, not of the scaled points
        weights = error.certificate * seen
        raise NotSeparable(str(error), weights / weights.sum(), error.residual) from None
    return OneNeuron(
        sign=int(sign),
        slope=alpha,
        points=data.X * seen[:, None],
        mean=mean,
        kappa=_kappa(float(np.linalg.norm(mean)), rival),
        solution=solution,
    )


def _kappa(length: float, rival: float) -> float:
    if length > 0:
        return 1.0 - rival / length
    return 0.0 if rival == 0 else float("-inf")
