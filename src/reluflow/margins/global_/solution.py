"""The best normalised margin that any two-layer network can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...problem import (
    Dataset,
    Interrupted,
    Network,
    NotSeparable,
    OutOfTime,
    ProblemError,
    Undecided,
    require_dataset,
)
from ...problem import time_limit as limited
from ...problem.checks import is_number
from ...problem.network import check_slope
from ...problem.precision import EPS
from ...problem.types import Array, Index
from ...problem.words import count
from ...sectors.hyperplanes import parallel_owners
from ..hard import hard_margin
from .master import Point, Rows, lift
from .search import Bracket, bracket

_ROUNDED_UP = 1 + 4 * EPS  # the rounding of a norm
_ROUNDING = 64 * EPS  # error of a margin, relative to the outputs
_CANCELS = 256 * EPS  # sums below this, relative to their terms, are 0 as far as doubles can tell
_EXCUSED = 1e-6  # relative gap that rounding excuses at most


@dataclass(frozen=True, eq=False)
class GlobalMargin:
    r"""Bounds on the largest normalised margin of any two-layer network, and what attains them.

    Attributes
    ----------
    lower, upper : float
        The supremum lies between them. Both are computed in double precision; ``upper`` has the rounding of its
        sums added.
    network : Network
        Attains ``lower`` (its margin evaluated afresh) with at most n + 1 neurons and unit norm.
    exact : bool
        Whether the bounds agree to ``tolerance`` times ``upper``, or as far as double precision can tell.
    weights : ndarray of shape (n,)
        Convex weights of the samples behind ``upper``: no neuron gains more than ``upper`` against them.
    cells : int
        Activation patterns looked at to prove ``upper``.
    method : str
        How it was proved: ``"cells"`` (all patterns), ``"plane"`` (all cells of the plane in one program),
        ``"branch and bound"`` (over partial patterns), ``"conflict"`` (no network separates the data), ``"search"``
        (only the bound by the shortest sample).
    iterations : int
        Rounds of the search.
    tolerance : float
        The relative gap asked for.
    stopped : {"", "patterns", "time", "interrupted"}
        Which limit ended the search before the bounds met, if one did.
    """

    lower: float
    upper: float
    network: Network
    exact: bool
    weights: Array
    cells: int
    method: str
    iterations: int
    tolerance: float
    stopped: Literal["", "patterns", "time", "interrupted"] = ""

    def __post_init__(self) -> None:
        self.weights.setflags(write=False)

    @property
    def gap(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        bounds = f"{self.lower:.12g}" if self.exact else f"{self.lower:.12g} .. {self.upper:.12g}"
        word = "exact" if self.exact else "not closed"
        return (
            f"GlobalMargin: {bounds} ({word}, gap {self.gap:.1e}), {count(self.network.p, 'neuron')}, by {self.method}"
        )


def global_max_margin(
    data: Dataset,
    slope: float,
    signs: int | None = None,
    *,
    budget: int = 1_000_000,
    tol: float = 1e-9,
    rounds: int = 100,
    decide: float | None = None,
    time_limit: float | None = None,
) -> GlobalMargin:
    r"""Bracket the supremum of the normalised margin over networks of every width.

    .. math:: \sup_\theta \frac{\min_i y_i f_\theta(x_i)}{|\theta|^2}
        = \min_{\lambda \in \Delta} \; \max_{|u| = 1, \, s} \; \frac s2 \sum_i \lambda_i y_i \phi(u \cdot x_i),

    the maximum over unit vectors u and output signs s. A network on the left bounds it from below, weights on the
    right from above (C-GLOBAL). The supremum is attained with n + 1 neurons, so that it is the true maximum for all
    widths from there on, and an upper bound for narrower networks.

    With :math:`Z_\pm = \{\sum_{y_i = \pm 1} h_i \lambda_i x_i : \alpha \le h_i \le 1\}` the inner maximum is half the
    Hausdorff distance of two zonotopes, which is computed exactly: in the plane by a sweep over the angles, in low
    dimension from all activation patterns, else by branch and bound. Only samples with positive weight take part.

    The value 0 means that no network of the kind asked for separates the data. The network returned has then one
    neuron with zero input weights.

    Parameters
    ----------
    data : Dataset
        One class alone will do.
    slope : float
        Slope of the activation for negative input, in [0, 1]. Slope 1, a linear network, gives half of
        `max_margin`.
    signs : {None, 1, -1}
        Restrict the output weights to one sign.
    budget : int
        Most activation patterns to look at in all, of neurons tried and in proofs. One proof may list a tenth of
        them, or branch and bound a fiftieth, whose bound stays valid when they are used up.
    tol : float
        Relative gap below which the answer counts as exact. Tighter is aimed for.
    rounds : int
        Most rounds of the search.
    decide : float, optional
        Stop as soon as the bounds tell whether the margin is below this number, however far apart they are then.
    time_limit : float, optional
        Most seconds to take. The bounds reached by then are returned; ``stopped`` says so.

    Returns
    -------
    GlobalMargin

    Raises
    ------
    Interrupted
        By Ctrl-C; ``partial`` holds the `GlobalMargin` with the bounds so far.

    Examples
    --------
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> best = global_max_margin(data, slope=0.0)
    >>> round(best.lower, 10), best.exact, best.network.p
    (0.5840985669, True, 2)
    >>> global_max_margin(data, slope=0.0, signs=1)   # a positive ReLU network is never negative
    GlobalMargin: 0 (exact, gap ...), 1 neuron, by cells
    """
    require_dataset(data)
    alpha, allowed = check_slope(slope), _check_signs(signs)
    check_effort(budget, tol, rounds)
    if decide is not None and not (is_number(decide) and np.isfinite(decide)):
        raise ProblemError(f"decide = {decide!r}: the margin is compared with it, so a finite number is needed.")
    with limited(time_limit):
        try:
            answer = _bracket(data, alpha, allowed, int(budget), float(tol), int(rounds), decide)
        except OutOfTime:  # so early that there is only the bound by the shortest sample
            return _nothing(data, alpha, allowed[0], float(tol))
    if answer.stopped == "interrupted":
        raise Interrupted(
            f"interrupted; the largest margin of any network lies between {answer.lower:.6g} and {answer.upper:.6g}.",
            answer,
        )
    return answer


def _bracket(
    data: Dataset,
    alpha: float,
    allowed: tuple[float, ...],
    budget: int,
    tol: float,
    rounds: int,
    decide: float | None,
) -> GlobalMargin:
    # Powers of two change no bit of the points.
    unit = float(2.0 ** np.round(np.log2(np.median(data.norms))))
    conflict = _conflict(data, alpha) if len(allowed) == 2 or alpha == 1.0 else None
    if conflict is not None:
        weights, bound = conflict
        if _is_zero(data, weights, 0.0, bound):
            return GlobalMargin(0.0, bound, _silent(data.d, alpha, allowed[0]), True, weights, 0, "conflict", 0, tol)
    if alpha == 1.0 and (linear := _linear(data, allowed[0], tol)) is not None:
        return linear
    wanted = None if decide is None else decide / unit
    found = bracket(data.X / unit, data.y, alpha, allowed, budget, tol, rounds, decide=wanted)
    return _attained(data, alpha, allowed[0], unit, tol, found)


def _attained(data: Dataset, alpha: float, sign: float, unit: float, tol: float, found: Bracket) -> GlobalMargin:
    """Evaluate the network found afresh, in the units of the data."""
    network, lower = _silent(data.d, alpha, sign), 0.0
    if len(found.s):
        size = np.linalg.norm(found.V, axis=1)
        W = found.V / np.sqrt(size / size.max())[:, None]
        candidate = Network.balanced(W / np.abs(W).max(), found.s, alpha).normalized()
        margin = candidate.normalized_margin(data)
        if margin > 0:
            network, lower = candidate, margin
    upper = max(float(found.upper * unit), lower)
    exact = found.closed and bool(lower >= found.lower * unit * (1 - max(tol, _EXCUSED)))
    exact = exact or _is_zero(data, found.weights, lower, upper)
    return GlobalMargin(
        lower,
        upper,
        network,
        exact,
        found.weights,
        found.cells,
        found.method,
        found.rounds,
        tol,
        "" if exact else found.stopped,
    )


def _nothing(data: Dataset, slope: float, sign: float, tol: float) -> GlobalMargin:
    """Return what is known without any work: half the norm of the shortest sample."""
    weights = np.zeros(data.n)
    weights[int(np.argmin(data.norms))] = 1.0
    upper = 0.5 * float(data.norms.min()) * _ROUNDED_UP
    return GlobalMargin(0.0, upper, _silent(data.d, slope, sign), False, weights, 0, "search", 0, tol, "time")


def _check_signs(signs: Any) -> tuple[float, ...]:
    if signs is None:
        return (1.0, -1.0)
    if not is_number(signs) or signs not in (1, -1):
        raise ProblemError(f"signs = {signs!r} is not known; choose None (both output signs), 1 or -1.")
    return (float(signs),)


def check_effort(budget: Any = 1, tol: Any = 0.5, rounds: Any = 1) -> None:
    """Refuse limits that are none."""
    for name, value in (("budget", budget), ("rounds", rounds)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ProblemError(f"{name} = {value!r}: a positive whole number is needed.")
    if not is_number(tol) or not 0 < tol < 1:
        raise ProblemError(f"tol = {tol!r}: a relative gap between 0 and 1 is needed.")


def _is_zero(data: Dataset, weights: Array, lower: float, upper: float) -> bool:
    """Whether the margin is 0 as far as double precision can tell: the sums behind the upper bound cancel."""
    return lower == 0 and upper <= _CANCELS * float(weights @ data.norms)


def _silent(d: int, slope: float, sign: float) -> Network:
    """Make the network without output: margin 0 where nothing better exists."""
    return Network(np.zeros((1, d)), [sign], slope)


def _linear(data: Dataset, sign: float, tol: float) -> GlobalMargin | None:
    """Slope 1: one neuron along the maximum-margin direction, whatever its output sign."""
    try:
        best = hard_margin(data.signed)
    except (NotSeparable, Undecided):
        return None
    unit, rho = data.X / data.norms[:, None], data.norms / data.norms.min()
    weights = best.dual / best.dual.sum()
    rows = Rows(unit, data.y, rho, np.zeros((data.n, 0)))
    value = 0.5 * best.margin / float(data.norms.min())
    point = Point(sign * best.direction[None], np.array([sign]), np.zeros(0), weights * rho, value)
    network, lower = _silent(data.d, 1.0, sign), 0.0
    for _ in range(4):
        candidate = Network.balanced(point.V, [sign], 1.0).normalized()
        if (margin := candidate.normalized_margin(data)) > lower:
            network, lower = candidate, margin
        point = lift(rows, point, 1.0)  # long samples: a rounding error of the direction is a large output
    upper = max(lower, 0.5 * float(np.linalg.norm(weights @ data.signed)) * _ROUNDED_UP)
    noise = _ROUNDING * float(rho[weights > 0].max())
    exact = upper - lower <= max(tol, min(noise, _EXCUSED)) * upper or _is_zero(data, weights, lower, upper)
    return GlobalMargin(lower, upper, network, exact, weights, 1, "cells", 0, tol)


def _conflict(data: Dataset, slope: float) -> tuple[Array, float] | None:
    r"""Weights against which no neuron gains anything, if there are any, and how much it gains by rounding.

    :math:`\sum_i \lambda_i y_i \phi(u \cdot x_i)` vanishes for all u exactly when :math:`\sum \lambda_i y_i x_i = 0`
    and (slope < 1) on each line :math:`\sum \lambda_i y_i |x_i| = 0`. So either one ray carries both labels, or the
    lines with different labels on their two sides, each taken in the direction of its positive label, are not
    separable.
    """
    if slope == 1.0:
        weights = _not_separating(data.signed)
        return None if weights is None else (weights, 0.5 * float(np.linalg.norm(weights @ data.signed)))
    unit = data.X / data.norms[:, None]
    owner = parallel_owners(unit)
    side = np.sign(np.einsum("ij,ij->i", unit, unit[owner])) * data.y
    lines = [np.flatnonzero(owner == k) for k in np.unique(owner[owner != np.arange(data.n)])]
    lines = [line for line in lines if len(np.unique(data.y[line])) == 2]
    if not lines:
        return None
    weights = np.zeros(data.n)
    if (pair := _on_one_ray(data, side, lines)) is not None:
        weights[pair] = 1 / data.norms[pair]
    else:
        first = [[line[data.y[line] > 0][0], line[data.y[line] < 0][0]] for line in lines]
        shares = _not_separating(unit[[a for a, _ in first]])
        if shares is None:
            return None
        for both, c in zip(first, shares, strict=True):
            weights[both] = c / data.norms[both]
    weights /= weights.sum()
    total = np.linalg.norm(weights @ data.signed)
    on_lines = sum(abs(float(weights[line] @ (data.y * data.norms)[line])) for line in lines)
    return weights, 0.5 * float(0.5 * (1 + slope) * total + 0.5 * (1 - slope) * on_lines)


def _not_separating(points: Array) -> Array | None:
    """Convex weights whose combination of the points vanishes; None where they are separable, or nobody can tell."""
    try:
        hard_margin(points)
    except NotSeparable as error:
        return error.certificate
    except Undecided:
        pass
    return None


def _on_one_ray(data: Dataset, side: Array, lines: list[Index]) -> list[int] | None:
    """Two samples with different labels on one ray, if there are any."""
    for line in lines:
        for a in line:
            other = line[(data.y[line] != data.y[a]) & (side[line] != side[a])]
            if other.size:
                return [int(a), int(other[0])]
    return None
