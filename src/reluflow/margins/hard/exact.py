"""The same active-set method in integers: floats are rationals, so small problems are decided exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...problem import check_time
from ...problem.precision import EPS
from ...problem.types import Array, Index, Integers
from ...sectors.exact import Pair, as_integers, as_rationals, dot, product, rounded, solve
from .rows import TIE, Rows

LARGEST_SYSTEM = 40  # unknowns of a linear system that is still solved exactly
_LARGEST_DATA = 2_000_000  # entries of Z
_LARGEST_ENTRY = 1e150  # squares must stay doubles
_EXCHANGES = 200


class ExactSeparation(NamedTuple):
    """The shortest vector, its multipliers on ``points`` and the slack of every point, correctly rounded."""

    v: Array
    c: Array
    points: Index
    slack: Array


class ExactCombination(NamedTuple):
    """Positive coefficients of `unit` rows, correctly rounded, of a combination that vanishes exactly."""

    points: Index
    weights: Array


class _WholeRows:
    """Rows as integers ``N_i = 2^s_i unit_i`` with right-hand sides ``2^(s_i + lift) level_i``.

    ``V = sum C_i N_i`` with ``N_i . V >= rhs_i`` is then ``v = 2^-lift V``, ``c_i = 2^(s_i - lift) C_i``.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.top = int(rows.exponents.max())
        self.lift = self.top - rows.base
        self._known: dict[int, tuple[Integers, int]] = {}
        self._products: dict[tuple[int, int], int] = {}

    def row(self, i: int) -> tuple[Integers, int]:
        """Return ``N_i`` and ``s_i``."""
        if i not in self._known:
            whole, exponent = as_integers(self.rows.unit(np.array([i]))[0])
            self._known[i] = whole << max(exponent, 0), max(-exponent, 0)
        return self._known[i]

    def rhs(self, i: int) -> int:
        return 1 << (self.row(i)[1] + self.top - int(self.rows.exponents[i]))

    def inner(self, i: int, j: int) -> int:
        key = (i, j) if i < j else (j, i)
        if key not in self._products:
            self._products[key] = int(self.row(i)[0] @ self.row(j)[0])
        return self._products[key]

    def gram(self, left: list[int], right: list[int]) -> Integers:
        out = np.empty((len(left), len(right)), dtype=object)
        for a, i in enumerate(left):
            out[a] = [self.inner(i, j) for j in right]
        return out

    def equality(self, index: list[int]) -> tuple[Integers, int] | None:
        """Solve ``N_i . V = rhs_i`` for ``V = sum C_i N_i``: the ``C_i`` and their denominator; None if dependent."""
        return solve(self.gram(index, index), np.array([self.rhs(i) for i in index], dtype=object))


def affordable(rows: Rows) -> bool:
    """Whether the exact method is worth trying."""
    return min(rows.n, rows.d) <= LARGEST_SYSTEM and rows.n * rows.d <= _LARGEST_DATA


def decide(rows: Rows, start: Index) -> ExactSeparation | ExactCombination | None:
    """Run the active-set method from ``start`` to the end, without rounding; None after too many exchanges.

    Raises `OverflowError` when the solution is too long for doubles.
    """
    whole = _WholeRows(rows)
    index = [int(i) for i in start] or [int(np.argmin(rows.norms))]
    weights = [Fraction(0)] * len(index)
    for _ in range(_EXCHANGES):
        check_time("solving for a margin")
        index, weights, (numerators, denominator) = _until_positive(whole, index, weights)
        V = numerators @ np.stack([whole.row(i)[0] for i in index])
        v = Pair.of_ratios(V, denominator << whole.lift)
        if max(np.abs(v.high).max(), np.abs(rows.vector(v.high)).max()) > _LARGEST_ENTRY:
            raise OverflowError
        slack = _slacks(whole, V, denominator, v, index)
        worst = int(np.argmin(slack / rows.norms))
        if slack[worst] >= 0:
            c = [
                rounded(int(p), denominator, whole.row(i)[1] - whole.lift)
                for p, i in zip(numerators, index, strict=True)
            ]
            return ExactSeparation(v.high, np.array(c), np.array(index, dtype=np.intp), slack)
        entered = _enter(whole, index, weights, worst)
        if isinstance(entered, ExactCombination):
            return entered
        index, weights = entered
    return None


def vanishing(rows: Rows, index: Index) -> ExactCombination | None:
    """Return the exactly vanishing positive combination of exactly these points, if there is just one."""
    first, *rest = [int(i) for i in index]
    if not rest:
        return None
    return _completes(_WholeRows(rows), rest, first)


def all_positive(rows: Rows, points: Index, v: Pair) -> bool:
    """Whether ``v`` has positive inner products with these points, without rounding."""
    vector = [high + low for high, low in zip(as_rationals(v.high), as_rationals(v.low), strict=True)]
    return all(dot(as_rationals(row), vector) > 0 for row in rows.unit(points))


def _until_positive(
    whole: _WholeRows, index: list[int], weights: list[Fraction]
) -> tuple[list[int], list[Fraction], tuple[Integers, int]]:
    """Move towards the equality solution, dropping the points that reach coefficient 0 on the way."""
    while True:
        check_time("solving for a margin")
        point = whole.equality(index)
        if point is None:
            index, weights = _independent(whole, index, weights)
            continue
        target = [Fraction(int(p), point[1]) for p in point[0]]
        if min(target) > 0:
            return index, target, point
        step, moved = _until_zero(weights, target)
        keep = [k for k, new in enumerate(target) if moved[k] > 0 or (new > 0 and step == 0)]
        if not keep:  # only from a start without weights: begin again with one point
            keep = [0]
        index, weights = [index[k] for k in keep], [moved[k] for k in keep]


def _until_zero(weights: list[Fraction], target: list[Fraction]) -> tuple[Fraction, list[Fraction]]:
    """Go from the weights towards the target until the first of them reaches 0: how far, and where."""
    pairs = list(zip(weights, target, strict=True))
    step = min(old / (old - new) if old > 0 else Fraction(0) for old, new in pairs if new <= 0)
    return step, [old + step * (new - old) for old, new in pairs]


def _independent(whole: _WholeRows, index: list[int], weights: list[Fraction]) -> tuple[list[int], list[Fraction]]:
    """Drop from ``index`` every point that depends on those before it."""
    kept: list[int] = []
    for k, i in enumerate(index):
        trial = [index[m] for m in kept] + [i]
        if whole.equality(trial) is not None:
            kept.append(k)
    return [index[k] for k in kept], [weights[k] for k in kept]


def _slacks(whole: _WholeRows, V: Integers, denominator: int, v: Pair, index: list[int]) -> Array:
    """``w.z_i - 1``: in floating point where its sign is certain, exactly elsewhere."""
    rows = whole.rows
    w = rows.vector(v.high)
    slack: Array = rows.Z @ w - 1.0
    doubtful = np.flatnonzero(np.abs(slack) <= TIE + 2 * rows.rounding(w))
    level = rows.level(doubtful)
    slack[doubtful] = product(rows.unit(doubtful), v).plus(-level).high / level
    unclear = np.abs(slack[doubtful]) <= 4 * EPS * rows.rounding(w)[doubtful]
    for i in doubtful[unclear].tolist():
        rhs = whole.rhs(i)
        excess = int(whole.row(i)[0] @ V) - rhs * denominator
        slack[i] = rounded(excess, rhs * denominator)
    slack[index] = 0.0
    return slack


def _completes(whole: _WholeRows, index: list[int], j: int) -> ExactCombination | None:
    """Find a vanishing combination of ``index`` (independent) and ``j`` with positive coefficients, or None."""
    products = whole.gram(index, [j])[:, 0]
    point = solve(whole.gram(index, index), products)
    if point is None:
        return None
    a, q = point  # sum (a_i / q) N_i is the projection of N_j
    if int(products @ a) != whole.inner(j, j) * q or max(a) > 0:
        return None
    kept = [k for k in range(len(a)) if a[k] < 0]
    used = [index[k] for k in kept] + [j]
    raw = [-a[k] for k in kept] + [q]
    total = sum(raw)
    weights = [rounded(x, total, whole.row(i)[1]) for x, i in zip(raw, used, strict=True)]
    return ExactCombination(np.array(used, dtype=np.intp), np.array(weights))


def _enter(
    whole: _WholeRows, index: list[int], weights: list[Fraction], j: int
) -> tuple[list[int], list[Fraction]] | ExactCombination:
    """Add point ``j``; when it depends on the active points exchange it for one of them."""
    products = whole.gram(index, [j])[:, 0]
    point = solve(whole.gram(index, index), products)
    if point is None:
        raise AssertionError("the active points are independent")
    a, q = point
    if int(products @ a) != whole.inner(j, j) * q:
        return [*index, j], [*weights, Fraction(0)]
    combination = _completes(whole, index, j)
    if combination is not None:
        return combination
    ratios = [weights[k] * q / a[k] if a[k] > 0 else None for k in range(len(a))]
    step = min(r for r in ratios if r is not None)
    moved = [weights[k] - step * Fraction(a[k], q) for k in range(len(a))]
    keep = [k for k in range(len(a)) if moved[k] > 0]
    return [index[k] for k in keep] + [j], [moved[k] for k in keep] + [step]
