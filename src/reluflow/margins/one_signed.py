"""What the other output sign could gain on the support of the one-neuron limit (assumptions A.5 and A.9 of LL)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem import Dataset, NotSeparable, Stopped, Undecided, check_time, require_dataset
from .global_ import bracket, global_max_margin
from .one_neuron import OneNeuron, one_neuron

_PATTERNS, _GAP, _ROUNDS = 1_000_000, 1e-9, 100  # effort of the starred game: that of `global_max_margin`
_ROUNDING = 1e-14  # of a value that is known in closed form
_SPANNED = 1e-12  # singular values, relative to the points, from which the weights are held there


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
    neuron : OneNeuron
        The neuron that would survive, :math:`w^+, \gamma^+, S^+` (sign +1, A.5) or
        :math:`w^-, \gamma^-, S^-` (sign -1, A.9).
    value : Bounds
        :math:`V^\mp`: the best normalised margin on the support of networks whose output weights all have the other
        sign.
    star : Bounds
        :math:`V^{\mp *}`: the same game with the weights of the samples held to those of the maximum-margin dual.
        Never below ``value``.
    holds, holds_star : bool or None
        Whether ``value`` (``star``) is below ``threshold``; None when the bounds do not tell.
    one_class : bool
        The support lies in the class of the neuron's sign. Then both values are :math:`\alpha \gamma^\pm / 2`, and
        both assumptions hold.
    """

    neuron: OneNeuron
    value: Bounds
    star: Bounds
    holds: bool | None
    holds_star: bool | None
    one_class: bool

    @property
    def threshold(self) -> float:
        r""":math:`\gamma^\pm / 2`, the margin of the one-neuron network."""
        return 0.5 * self.neuron.gamma

    def __repr__(self) -> str:
        name = "A.5" if self.neuron.sign > 0 else "A.9"
        return (
            f"OneSignedMargins: {name} {_word(self.holds)} ({self.value.upper:.10g} against {self.threshold:.10g}), "
            f"{name}* {_word(self.holds_star)} ({self.star.upper:.10g})"
        )


def _word(holds: bool | None) -> str:
    return {True: "holds", False: "fails", None: "undecided"}[holds]


def one_signed_margins(data: Dataset, slope: float, sign: int = 1, *, decide: bool = False) -> OneSignedMargins:
    r"""Decide whether neurons of the other sign stay out of the one-neuron limit.

    With :math:`x_i^+ = x_i` where :math:`y_i = 1` and :math:`\alpha x_i` elsewhere, let :math:`w^+, \gamma^+, S^+` be
    the maximum-margin vector of :math:`(x_i^+, y_i)`, its margin and its tight samples. For ``sign=1``

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
        Slope of the activation for negative input; positive, unless all samples have the label ``sign``. With slope
        1 the values equal the threshold, and the assumptions fail.
    sign : {1, -1}
        Output sign of the neuron that survives.
    decide : bool
        Find out whether the assumptions hold and no more: ``value`` and ``star`` are only as close as that takes.

    Examples
    --------
    >>> data = Dataset([[1, 0.5], [-5, 2.5], [20, 0]], [1, -1, 1])
    >>> one_signed_margins(data, slope=0.2)
    OneSignedMargins: A.5 holds (0.1118033989 against 0.5), A.5* fails (1.431782106)
    """
    require_dataset(data)
    return against(data, one_neuron(data, slope, sign), decide=decide)


def against(data: Dataset, neuron: OneNeuron, *, decide: bool = False) -> OneSignedMargins:
    """Compare networks of the other sign with a neuron that is known already; see `one_signed_margins`."""
    alpha, threshold = neuron.slope, 0.5 * neuron.gamma
    sub = data.subset(neuron.support)
    one_class = bool(np.all(sub.y == neuron.sign))
    if one_class:  # both minima are at the dual of the maximum margin, with u = -w
        exact = 0.5 * alpha * neuron.gamma
        value = star = Bounds(exact * (1 - _ROUNDING), exact * (1 + _ROUNDING))
    elif decide:
        value, star = _compared(sub, neuron, threshold)
    else:
        value, star = _value(sub, neuron), _star(sub, neuron)
    star = Bounds(max(star.lower, value.lower), star.upper)
    if alpha == 1.0:  # a linear neuron may change both its signs: equal to the threshold
        return OneSignedMargins(neuron, value, star, False, False, one_class)
    return OneSignedMargins(neuron, value, star, value.below(threshold), star.below(threshold), one_class)


def _compared(sub: Dataset, neuron: OneNeuron, threshold: float) -> tuple[Bounds, Bounds]:
    """Bound both values as closely as it takes to compare them with the threshold; the starred one is the larger."""
    try:  # a single neuron is a network, too, and often enough
        alone = 0.5 * one_neuron(sub, neuron.slope, -neuron.sign).gamma
    except (NotSeparable, Undecided) as error:
        if isinstance(error, Stopped):
            raise
        alone = 0.0
    if alone >= threshold * (1 + _GAP):
        return Bounds(alone, np.inf), Bounds(alone, np.inf)
    value = _value(sub, neuron, threshold)
    fails = value.below(threshold) is False
    return value, Bounds(value.lower, np.inf) if fails else _star(sub, neuron, threshold)


def _value(sub: Dataset, neuron: OneNeuron, decide: float | None = None) -> Bounds:
    """Bound the best margin of networks of the other sign, or compare it with ``decide``."""
    found = global_max_margin(sub, neuron.slope, signs=-neuron.sign, decide=decide)
    return Bounds(found.lower, found.upper)


def _star(sub: Dataset, neuron: OneNeuron, decide: float | None = None) -> Bounds:
    """Bound the starred value: free multiples of the points across w hold the weights to the maximum-margin dual."""
    signed = sub.y[:, None] * neuron.points[neuron.support]
    across = signed - np.outer(signed @ neuron.w, neuron.w)
    _, size, right = np.linalg.svd(across, full_matrices=False)
    basis = right[size > _SPANNED * np.linalg.norm(signed, axis=1).max()].T
    scale = float(2.0 ** np.round(np.log2(np.median(sub.norms))))
    held = signed @ basis / scale, neuron.weights[neuron.support]
    sign, wanted = -float(neuron.sign), None if decide is None else decide / scale
    found = bracket(sub.X / scale, sub.y, neuron.slope, (sign,), _PATTERNS, _GAP, _ROUNDS, held, wanted)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    check_time("comparing the margins of one-signed networks")
    return Bounds(found.lower * scale, found.upper * scale)
