"""Vectors of rational numbers: a double is one, so sums and products of doubles can be had without rounding."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ...problem.types import Array
from .integers import as_integers

Rationals = list[Fraction]


def as_rationals(values: Array) -> Rationals:
    """Return the doubles of a vector as what they are."""
    return [Fraction(v) for v in values.tolist()]


def total(terms: Iterable[Fraction]) -> Fraction:
    """Sum of rationals, 0 of none."""
    return sum(terms, Fraction(0))


def dot(x: Rationals, y: Rationals) -> Fraction:
    """Inner product.

    >>> dot([Fraction(1, 3), Fraction(2)], [Fraction(3), Fraction(1, 2)])
    Fraction(2, 1)
    """
    return total(a * b for a, b in zip(x, y, strict=True))


def column_sums(rows: Array) -> Rationals:
    """Sum of the rows of a matrix of doubles."""
    whole, exponent = as_integers(rows)  # integers add fifty times faster
    unit = Fraction(2) ** exponent
    return [int(value) * unit for value in whole.sum(axis=0)]


def multiple(x: Rationals, m: Rationals) -> Fraction | None:
    """Find the number with ``x = number * m``, if there is one, for a nonzero m.

    >>> multiple([Fraction(2), Fraction(0)], [Fraction(4), Fraction(0)])
    Fraction(1, 2)
    """
    k = next(i for i, v in enumerate(m) if v != 0)
    ratio = x[k] / m[k]
    return ratio if all(u == ratio * v for u, v in zip(x, m, strict=True)) else None
