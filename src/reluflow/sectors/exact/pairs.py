"""Twice the working precision, for residuals that cancel: unevaluated sums ``high + low`` of two doubles.

Error-free sums and products (Dekker, Knuth), vectorised; unlike ``numpy.longdouble`` they mean the same on
every machine and carry 106 bits instead of 64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...problem.types import Array, Integers

_SPLIT = 134217729.0  # 2^27 + 1 cuts a double into two halves of 26 bits
_CHUNK = 1 << 21  # entries of the matrix handled at once: the temporaries stay small whatever its size


class Pair(NamedTuple):
    """A vector ``high + low`` with ``|low| <= eps |high| / 2`` entry by entry."""

    high: Array
    low: Array

    @classmethod
    def of(cls, vector: Array) -> Pair:
        """Make a pair of a plain vector."""
        return cls(vector, np.zeros_like(vector))

    @classmethod
    def of_ratios(cls, numerators: Integers, denominator: int) -> Pair:
        """Round rationals to 106 bits."""
        high, low = np.empty(len(numerators)), np.empty(len(numerators))
        for k, x in enumerate(numerators):
            high[k] = x / denominator
            p, q = float(high[k]).as_integer_ratio()
            low[k] = (x * q - p * denominator) / (denominator * q)
        return cls(high, low)

    def plus(self, term: Array) -> Pair:
        """Add a plain vector."""
        total, error = two_sum(self.high, term)
        return Pair(*two_sum(total, error + self.low))


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return ``fl(a + b)`` and the exact rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return ``fl(a b)`` and the exact rounding error (barring under- and overflow)."""
    product = a * b
    return product, product_error(a, b, product)


def product_error(a: Array, b: Array, product: Array) -> Array:
    """Return ``a b - product`` for ``product = fl(a b)``, exactly (Dekker's product, Veltkamp's splitting)."""
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return np.asarray(((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low)


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = _SPLIT * a
    high = scaled - (scaled - a)
    return high, a - high


def _row_sums(terms: Array, errors: Array) -> Pair:
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        total, error = two_sum(terms[:, :half], terms[:, half : 2 * half])
        error += errors[:, :half]
        error += errors[:, half : 2 * half]
        if terms.shape[1] % 2:  # the odd one out joins the first column
            total[:, 0], last = two_sum(total[:, 0], terms[:, -1])
            error[:, 0] += last + errors[:, -1]
        terms, errors = total, error
    return Pair(*two_sum(terms[:, 0], errors[:, 0]))


def product(M: Array, v: Pair) -> Pair:
    """Return ``M v`` as if computed with 106 bits and rounded to a `Pair`.

    >>> tiny = product(np.array([[1.0, 1.0, -1.0]]), Pair(np.array([1.0, 1e-20, 1.0]), np.zeros(3)))
    >>> tiny.high
    array([1.e-20])
    """
    rows, columns = M.shape
    if not rows or not columns:
        return Pair(np.zeros(rows), np.zeros(rows))
    step = max(1, _CHUNK // columns)
    parts = []
    for start in range(0, rows, step):
        block = M[start : start + step]
        terms, errors = two_product(block, v.high[None, :])
        errors += block * v.low[None, :]
        parts.append(_row_sums(terms, errors))
    return Pair(np.concatenate([p.high for p in parts]), np.concatenate([p.low for p in parts]))
