r"""Hard margins: the shortest vector that classifies every point.

.. math:: \min_w |w|^2 \quad\text{subject to}\quad w \cdot z_i \ge 1 \text{ for all } i.

Its dual is the point of the convex hull of the :math:`z_i` nearest to 0 (C-SVM, C-HULL). Three steps: a fast
search for the active points, an active-set method in twice the working precision that decides, and, where
rounding could still matter and the problem is small, the same method in exact rational arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ...problem import DataError, Dataset, NotSeparable, Stopped, Undecided, require_dataset
from ...problem.checks import as_float_array, check_range
from ...problem.precision import EPS
from ...problem.types import Array, Index
from ...sectors.exact import Pair, product
from .active import Separated, Stuck, active_set
from .exact import LARGEST_SYSTEM, ExactCombination, affordable, all_positive, decide, vanishing
from .farkas import Combination, polish
from .rows import TIE, Rows
from .search import Candidate, find_active

_GOOD = 1e-13  # residuals up to this size are rounding errors
_STRANGE = 1e-140, 1e140  # norms outside are looked at: their squares, or those of multipliers, may be no doubles


@dataclass(frozen=True)
class MarginResiduals:
    r"""How well the optimality conditions hold, each relative to the size of the terms that cancel in it.

    Attributes
    ----------
    primal : float
        :math:`\max_i (1 - w \cdot z_i)_+ / (|z_i| |w|)`.
    dual : float
        Largest negative part of :math:`\lambda_i |z_i|`, relative to their sum.
    stationarity : float
        :math:`|w - \sum \lambda_i z_i| / \sum \lambda_i |z_i|`.
    complementarity : float
        :math:`\sum \lambda_i |w \cdot z_i - 1| / \sum \lambda_i |z_i| |w|`.
    gap : float
        :math:`| |w|^2 - \sum \lambda_i | / |w|^2`.
    """

    primal: float
    dual: float
    stationarity: float
    complementarity: float
    gap: float

    @property
    def worst(self) -> float:
        """The largest of the five."""
        return max(self.primal, self.dual, self.stationarity, self.complementarity, self.gap)


@dataclass(frozen=True, eq=False)
class MarginSolution:
    r"""The shortest ``w`` with :math:`w \cdot z_i \ge 1` for every point, and why it is the shortest.

    Attributes
    ----------
    w : ndarray of shape (d,)
        The solution.
    direction : ndarray of shape (d,)
        ``w / |w|``.
    margin : float
        ``1 / |w|``, the distance of the convex hull of the points from 0.
    dual : ndarray of shape (n,)
        Multipliers :math:`\lambda \ge 0` with :math:`w = \sum_i \lambda_i z_i` and
        :math:`\sum_i \lambda_i = |w|^2`. Not unique when the support is dependent; then one with independent
        active points is given.
    support : ndarray of int
        The tight points, :math:`w \cdot z_i - 1 \le` ``tolerance``, whatever their multiplier.
    active : ndarray of int
        The points with a positive multiplier.
    rank : int
        Dimension spanned by the support.
    residuals : MarginResiduals
        How exactly the optimality conditions hold.
    degenerate : tuple of str
        Empty in the generic case; otherwise ``"zero multipliers"`` (tight points that are not active) and
        ``"dependent support"`` (more tight points than they span dimensions: the multipliers are not unique).
    verified : bool
        The points are provably separable, all residuals are rounding errors, and ``w`` is within rounding of
        the optimum (each entry to about 1e-16 of its length).
    tolerance : float
        What counts as tight.
    """

    w: Array
    direction: Array
    margin: float
    dual: Array
    support: Index
    active: Index
    rank: int
    residuals: MarginResiduals
    degenerate: tuple[str, ...]
    verified: bool
    tolerance: float

    def __post_init__(self) -> None:
        for array in (self.w, self.direction, self.dual, self.support, self.active):
            array.setflags(write=False)

    def __repr__(self) -> str:
        extra = f", {', '.join(self.degenerate)}" if self.degenerate else ""
        state = "verified" if self.verified else "NOT verified"
        points = f"{self.support.size} tight point{'s' if self.support.size > 1 else ''}"
        return f"MarginSolution: margin={self.margin:.10g}, {points}{extra}, {state}"


def hard_margin(Z: npt.ArrayLike) -> MarginSolution:
    r"""Solve :math:`\min |w|^2` subject to :math:`w \cdot z_i \ge 1` for the rows :math:`z_i` of ``Z``.

    Parameters
    ----------
    Z : array_like of shape (n, d)
        The points, already multiplied by their labels.

    Returns
    -------
    MarginSolution

    Raises
    ------
    NotSeparable
        With convex weights (at most d + 1 of them positive) whose combination of the rows vanishes.
    Undecided
        When neither answer could be verified; ``partial`` holds the best unverified solution, if any.

    Examples
    --------
    >>> hard_margin([[2, 1], [1, 2]]).w
    array([0.33333333, 0.33333333])
    >>> hard_margin([[1, 0], [-2, 0], [0, 1]])
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.NotSeparable: no vector has a positive inner product with all 3 points: ...
    """
    return solve(as_rows(Z))


def as_rows(Z: npt.ArrayLike) -> Rows:
    """Check the points and measure them; a zero point is refused with itself as certificate."""
    if isinstance(Z, np.ndarray) and Z.dtype == np.float64 and Z.ndim == 2:
        points = np.ascontiguousarray(Z)
    else:
        points = as_float_array(Z, "Z", 2, DataError)
    if 0 in points.shape:
        raise DataError(f"Z has shape {points.shape}; at least one point and one coordinate are needed.")
    rows = Rows.of(points)
    if not (np.isfinite(rows.norms).all() and rows.norms.min() > _STRANGE[0] and rows.norms.max() < _STRANGE[1]):
        _check(points)
    return rows


def _check(points: Array) -> None:
    """Say what is wrong with points whose norms look strange."""
    if not np.isfinite(points).all():
        raise DataError("Z has infinite or undefined entries; every entry must be a finite number.")
    zero = np.flatnonzero(~points.any(axis=1))
    if zero.size:
        _refuse(points, zero[:1], np.ones(1), True)
    check_range(points, "Z", DataError)


def max_margin(data: Dataset) -> MarginSolution:
    r"""Return the linear separator of ``data`` through 0 with the largest margin.

    Solves :math:`\min |w|^2` subject to :math:`y_i w \cdot x_i \ge 1`. For a separator with an offset append a
    constant column first (``data.with_bias``).

    Parameters
    ----------
    data : Dataset
        The labelled points; one class alone is fine.

    Returns
    -------
    MarginSolution

    Raises
    ------
    NotSeparable, Undecided
        As `hard_margin`.

    Examples
    --------
    >>> solution = max_margin(Dataset([[2, 1], [1, 2], [-3, -1]], [1, 1, -1]))
    >>> solution
    MarginSolution: margin=2.121320344, 2 tight points, verified
    >>> solution.support
    array([0, 1])
    """
    require_dataset(data)
    return hard_margin(data.signed)


def class_margins(data: Dataset) -> tuple[MarginSolution, MarginSolution]:
    r"""Return the max-margin vectors of each class alone (PL-D2).

    :math:`w_\pm = \arg\min |w|^2` subject to :math:`w \cdot x_i \ge 1` for the points of that class. The
    constraint is +1 for both classes, so :math:`w_-` points towards the negative points.

    Parameters
    ----------
    data : Dataset
        Labelled points of both classes.

    Returns
    -------
    plus, minus : MarginSolution
        Indices and multipliers refer to ``data``, with zeros for the other class: ``w = dual @ data.X``.

    Raises
    ------
    DataError
        When a class is missing.
    NotSeparable, Undecided
        When 0 lies in the convex hull of a class (its weights refer to ``data`` too), or nobody can tell.

    Examples
    --------
    >>> plus, minus = class_margins(Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1]))
    >>> minus.w
    array([-0.23076923, -0.30769231])
    >>> minus.support
    array([2, 3])
    """
    require_dataset(data)
    data.require_both_classes("class_margins")
    return _of_class(data, data.positives, "positive"), _of_class(data, data.negatives, "negative")


def _of_class(data: Dataset, members: Index, name: str) -> MarginSolution:
    def spread(values: Array) -> Array:
        out = np.zeros(data.n)
        out[members] = values
        return out

    def lift(part: MarginSolution) -> MarginSolution:
        return replace(part, dual=spread(part.dual), support=members[part.support], active=members[part.active])

    try:
        return lift(hard_margin(data.X[members]))
    except NotSeparable as error:
        message = f"the {name} class has no margin of its own: {error}"
        raise NotSeparable(message, spread(error.certificate), error.residual) from None
    except Stopped:
        raise
    except Undecided as error:
        partial = lift(error.partial) if isinstance(error.partial, MarginSolution) else error.partial
        raise Undecided(f"the {name} class: {error}", partial) from None


def solve(rows: Rows, candidate: Candidate | None = None) -> MarginSolution:
    """Decide, from a guess at the active points if there is one."""
    candidate = candidate or find_active(rows)
    start, best, hint, why = candidate.points, None, None, "rounding errors are too large"
    if candidate.vanishing:
        hint = _combination(rows, candidate.points, candidate.weights)
    if hint is None:
        outcome = active_set(rows, candidate.points, candidate.weights)
        start = outcome.points
        if isinstance(outcome, Separated):
            best = _solution(rows, outcome.v, outcome.c, outcome.points, outcome.slack, outcome.error)
            if best.verified:
                return best
        elif isinstance(outcome, Stuck):
            why = outcome.why
        else:
            hint = _combination(rows, outcome.points, outcome.weights)
    if (hint is None or not hint.proved) and affordable(rows):
        return _exactly(rows, start)
    if hint is not None:
        _refuse(rows.Z, hint.points, np.ldexp(hint.weights, -rows.exponents[hint.points]), hint.proved)
    raise Undecided(
        f"whether the {rows.n} points are separable could not be verified in double precision: {why}. "
        "Remove (nearly) opposite and (nearly) equal points, or use fewer dimensions: up to "
        f"{LARGEST_SYSTEM} of them are decided in exact arithmetic.",
        best,
    )


def _exactly(rows: Rows, start: Index) -> MarginSolution:
    """Let rational arithmetic decide."""
    try:
        exact = decide(rows, start)
    except OverflowError:
        raise Undecided(
            f"the {rows.n} points are separable at most by a margin so small that the multipliers exceed the largest "
            "double. Round the points to the digits that are meant."
        ) from None
    if isinstance(exact, ExactCombination):
        _refuse(rows.Z, exact.points, np.ldexp(exact.weights, -rows.exponents[exact.points]), True)
    if exact is None:
        raise Undecided(f"whether the {rows.n} points are separable took too many exact steps to decide.")
    solution = _solution(rows, Pair.of(exact.v), exact.c, exact.points, exact.slack, 0.0)
    if solution.verified:
        return solution
    raise Undecided(
        f"the {rows.n} points are separable, but only by a margin of {solution.margin:.1e}: so little that the "
        "separator, rounded to doubles, no longer separates them. As measured data they are not separable; "
        "as exact numbers they are. Round the points to the digits that are meant.",
        solution,
    )


def _combination(rows: Rows, index: Index, weights: Array) -> Combination | None:
    """Look for a vanishing combination of these points, with a proof where there is one."""
    found = polish(rows, index, weights)
    if found is not None and not found.proved and found.points.size <= LARGEST_SYSTEM:
        exact = vanishing(rows, found.points)
        if exact is not None:
            return Combination(exact.points, exact.weights, True)
    return found


def _solution(rows: Rows, v: Pair, c: Array, index: Index, slack: Array, error: float) -> MarginSolution:
    """Assemble the answer, rounded to doubles, and measure it. ``v`` itself must separate the points."""
    M, level = rows.unit(index), rows.level(index)
    length = float(np.linalg.norm(v.high))
    sizes = np.linalg.norm(M, axis=1)
    c = np.where(c * sizes > 2 * EPS * length, c, 0.0)  # what cannot change w in double precision is no multiplier
    total = float(c @ sizes)
    share = c / total
    w = rows.vector(v.high)
    norm_w = float(np.linalg.norm(w))
    near = np.union1d(np.flatnonzero(slack <= TIE + 2 * rows.rounding(w)), index)
    close = rows.unit(near)
    below = np.ldexp(rows.level(near) - close @ v.high, rows.exponents[near]) / rows.norms[near]
    residuals = MarginResiduals(
        primal=max(float(below.max()), 0.0) / length,
        dual=float(np.maximum(-share * sizes, 0.0).max()),
        stationarity=float(np.linalg.norm(share @ M - v.high / total)),
        complementarity=float(share @ np.abs(M @ v.high - level)) / length,
        gap=abs(1.0 - float(level @ c) / length / length),
    )
    unclear = near[product(close, v).high <= 4 * rows.d * EPS * EPS * length]  # beyond the precision of `product`
    separates = all_positive(rows, unclear, v)
    support = np.flatnonzero(slack <= TIE)
    active = np.sort(index[c > 0])
    rank = _rank(rows.unit(support)) if support.size > index.size else index.size
    reasons = {"zero multipliers": support.size > active.size, "dependent support": rank < support.size}
    return MarginSolution(
        w=w,
        direction=w / norm_w,
        margin=1.0 / norm_w,
        dual=rows.dual(index, c),
        support=support,
        active=active,
        rank=rank,
        residuals=residuals,
        degenerate=tuple(reason for reason, holds in reasons.items() if holds),
        verified=separates and residuals.worst <= _GOOD and error <= EPS,
        tolerance=TIE,
    )


def _rank(M: Array) -> int:
    from scipy.linalg import qr

    R, _ = qr(M.T, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(R))
    return int(np.count_nonzero(diagonal > max(M.shape) * EPS * diagonal[0]))


def _refuse(Z: Array, index: Index, weights: Array, proved: bool) -> NoReturn:
    certificate = np.zeros(len(Z))
    certificate[index] = weights / weights.sum()
    used = np.flatnonzero(certificate)
    left = product(Z[used].T, Pair.of(certificate[used])).high
    size = float(certificate[used] @ np.linalg.norm(Z[used], axis=1))
    residual = float(np.linalg.norm(left)) / size if size > 0 else 0.0
    named = ", ".join(map(str, used[:6])) + (", ..." if used.size > 6 else "")
    how = "exactly" if proved else f"to rounding (a separator would have a relative margin below {residual:.1e})"
    raise NotSeparable(
        f"no vector has a positive inner product with all {len(Z)} points: a convex combination of "
        f"{used.size} of them (indices {named}) vanishes {how}. Drop points, or append a constant column "
        "(Dataset.with_bias) where an offset is meant.",
        certificate,
        residual,
    )
