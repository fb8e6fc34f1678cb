"""What the other output sign could gain on the support of the one-neuron limit (assumptions A.5 and A.9 of LL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..problem import Dataset, ProblemError
from ..problem._arrays import Array, is_number
from ..problem._network import check_slope
from ._global import global_max_margin
from ._global_bracket import bracket
from ._hard import hard_margin


@dataclass(frozen=True)
class Bounds:
    """A number known to lie between ``lower`` and ``upper``."""

    lower: float
    upper: float

    def below(self, threshold: float) -> bool | None:
        """Whether it is smaller than ``threshold``; None when the bounds do not tell.

        >>> Bounds(1.0, 2.0).below(3.0), Bounds(1.0, 2.0).below(1.0), Bounds(1.0, 2.0).below(1.5)
        (True, False, None)
        """
        if self.upper < threshold:
            return True
        return False if self.lower >= threshold else None


@dataclass(frozen=True, eq=False)
class OneSignedMargins:
    r"""Margins of networks of one output sign on the support of the one-neuron solution of the other.

    Attributes
    ----------
    sign : int
        The sign of the surviving neuron: +1 for A.5, -1 for A.9.
    direction : ndarray of shape (d,)
        :math:`w^+` (:math:`w^-` for sign -1), the unit maximum-margin vector of the points :math:`x_i^\pm`.
    gamma : float
        Its margin :math:`\gamma^\pm`.
    support : ndarray of int
        The tight samples :math:`S^\pm`.
    value : Bounds
        :math:`V^\mp`: the best normalised margin on the support of networks whose output weights all have the other
        sign.
    star : Bounds
        :math:`V^{\mp *}`: the same game with the weights of the samples held to those of the maximum-margin dual.
        Never below ``value``.
    threshold : float
        :math:`\gamma^\pm / 2`.
    holds, holds_star : bool or None
        Whether ``value`` (``star``) is below the threshold; None when the bounds do not tell.
    one_class : bool
        The support lies in the class ``sign``. Then both values are :math:`\alpha \gamma^\pm / 2`, and both
        assumptions hold.
    """

    sign: int
    direction: Array
    gamma: float
    support: npt.NDArray[np.intp]
    value: Bounds
    star: Bounds
    threshold: float
    holds: bool | None
    holds_star: bool | None
    one_class: bool

    def __repr__(self) -> str:
        name = "A.5" if self.sign > 0 else "A.9"
        return (
            f"OneSignedMargins: {name} {_word(self.holds)} ({self.value.upper:.10g} against {self.threshold:.10g}), "
            f"{name}* {_word(self.holds_star)} ({self.star.upper:.10g})"
        )


def _word(holds: bool | None) -> str:
    return {True: "holds", False: "fails", None: "undecided"}[holds]


def one_signed_margins(data: Dataset, slope: float, sign: int = 1) -> OneSignedMargins:
    r"""Decide whether neurons of the other sign stay out of the one-neuron limit.

    With :math:`x_i^+ = x_i` where :math:`y_i = 1` and :math:`\alpha x_i` elsewhere, let :math:`w^+, \gamma^+, S^+` be the
    maximum-margin vector of :math:`(x_i^+, y_i)`, its margin and its tight samples. For ``sign=1``

    .. math::
        V^- = \min_{\lambda \in \Delta(S^+)} \max_{|u|=1} -\tfrac12 \sum_i \lambda_i y_i \phi(u \cdot x_i), \qquad
        V^{-*} = \min_{\lambda \in \Lambda^*} \max_{|u|=1} -\tfrac12 \sum_i \lambda_i y_i \phi(u \cdot x_i),

    with :math:`\Lambda^* = \{\lambda \in \Delta(S^+) : \sum \lambda_i y_i x_i^+ = \gamma^+ w^+\}`. A.5 asks for
    :math:`V^- < \gamma^+/2` (LL-G.10); the one-neuron solution is a local maximum of the margin if even
    :math:`V^{-*} < \gamma^+/2` (A.5*). ``sign=-1`` is the same with the labels exchanged (A.9, A.9*).

    Parameters
    ----------
    data : Dataset
        Linearly separable; else `NotSeparable` is raised.
    slope : float
        Slope of the activation for negative input. It must be positive, unless all samples have the label ``sign``.
    sign : {1, -1}
        Output sign of the neuron that survives.

    Examples
    --------
    >>> data = Dataset([[1, 0.5], [-5, 2.5], [20, 0]], [1, -1, 1])
    >>> one_signed_margins(data, slope=0.2)
    OneSignedMargins: A.5 holds (0.1118033989 against 0.5), A.5* fails (1.431782106)
    """
    if not isinstance(data, Dataset):
        raise ProblemError(f"data must be a Dataset, not {type(data).__name__}; build one with Dataset(X, y).")
    alpha, side = check_slope(slope), _check_sign(sign)
    if alpha == 0 and np.any(data.y != side):
        raise ProblemError(
            f"slope = 0: a ReLU neuron of sign {side:+d} has no output of the other label, so that no single neuron "
            f"fits both classes. Give a positive slope, or only the samples with label {side:+d}."
        )
    own = data if side > 0 else data.flipped()
    scaled = np.where(own.y > 0, 1.0, alpha)[:, None] * own.signed
    best = hard_margin(scaled)
    support, w = best.support, best.direction
    sub = own.subset(support)
    threshold = 0.5 * best.margin
    one_class = bool(np.all(sub.y > 0))
    if one_class:  # both minima are at the dual of the maximum margin, with u = -w
        exact = 0.5 * alpha * best.margin
        value = star = Bounds(exact * (1 - 1e-14), exact * (1 + 1e-14))
    else:
        found = global_max_margin(sub, alpha, signs=-1)
        value = Bounds(found.lower, found.upper)
        star = _star(sub, scaled[support], w, alpha)
        star = Bounds(max(star.lower, value.lower), star.upper)
    holds, holds_star = value.below(threshold), star.below(threshold)
    if alpha == 1.0:  # a linear neuron may change both its signs: the two sides are equal
        holds = holds_star = False
    return OneSignedMargins(
        side, side * w, best.margin, support, value, star, threshold, holds, holds_star, one_class
    )


def _check_sign(sign: Any) -> int:
    if not is_number(sign) or sign not in (1, -1):
        raise ProblemError(f"sign = {sign!r} is not known; choose 1 (a positive neuron survives) or -1.")
    return int(sign)


def _star(sub: Dataset, signed: Array, w: Array, slope: float) -> Bounds:
    """The starred value: free multiples of the points across w hold the weights to the maximum-margin dual."""
    across = signed - np.outer(signed @ w, w)
    _, size, right = np.linalg.svd(across, full_matrices=False)
    basis = right[size > 1e-12 * np.linalg.norm(signed, axis=1).max()].T
    scale = float(2.0 ** np.round(np.log2(np.median(sub.norms))))
    found = bracket(sub.X / scale, sub.y, slope, (-1.0,), signed @ basis / scale, 100_000, 1e-9, 200)
    return Bounds(found.lower * scale, found.upper * scale)
