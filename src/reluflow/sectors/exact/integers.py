"""Linear algebra without rounding, on doubles written as integers times one power of two."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from ...problem.types import Array, Integers


def as_integers(values: Array) -> tuple[Integers, int]:
    """Return integers N and an exponent e with ``values = N * 2**e``, exactly.

    >>> as_integers(np.array([0.5, 3.0]))
    (array([1, 6], dtype=object), -1)
    """
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    some = whole != 0
    if not some.any():
        return np.zeros(values.shape, dtype=np.int64).astype(object), 0
    low = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # trailing zero bits
    low = np.where(some, low, 0)
    least = int((exponent + low)[some].min()) - 53
    shift = np.where(some, exponent - 53 + low - least, 0)
    return (whole >> low).astype(object) << shift.astype(object), least


def rounded(numerator: int, denominator: int = 1, exponent: int = 0) -> float:
    """``numerator / denominator * 2**exponent``, correctly rounded (Python divides integers that way).

    >>> rounded(1, 3, 1)
    0.6666666666666666
    """
    if exponent >= 0:
        return (numerator << exponent) / denominator
    return numerator / (denominator << -exponent)


def to_float(numbers: Integers, denominator: int = 1, exponent: int = 0) -> Array:
    """``numbers / denominator * 2**exponent``, each entry rounded once."""
    return np.array([rounded(int(v), denominator, exponent) for v in numbers.ravel()]).reshape(numbers.shape)


def unit_float(vector: Integers) -> Array:
    """Direction of an integer vector of any size, as a unit vector of doubles."""
    top = max(abs(int(v)) for v in vector)
    scaled = to_float(vector, top)
    return np.asarray(scaled / np.linalg.norm(scaled))


def value_along(vector: Integers, inner: int, denominator: int, exponent: int) -> float:
    """``inner / |vector|`` in the units of the data: ``inner`` is an integer inner product with ``vector``."""
    top = max(abs(int(v)) for v in vector)
    length = np.linalg.norm(to_float(vector, top))
    return rounded(inner, denominator * top, exponent) / float(length)


def primitive(vector: Integers) -> Integers:
    """Divide out the common factor of the entries (a zero vector stays)."""
    common = gcd(*(int(v) for v in vector))
    return vector // common if common > 1 else vector


class Echelon:
    """Independent rows seen so far, in echelon form over the integers."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, Integers]] = []

    def add(self, row: Integers) -> bool:
        """Add ``row``; whether it is independent of the rows before it."""
        left = row.copy()
        for column, pivot in self.rows:
            if left[column]:
                left = primitive(left * pivot[column] - pivot * left[column])
        nonzero = np.flatnonzero(left != 0)
        if nonzero.size == 0:
            return False
        self.rows.append((int(nonzero[0]), left))
        return True


def independent(rows: Integers) -> list[int]:
    """Return indices of rows that form a basis of the row space, the first possible ones.

    >>> independent(np.array([[1, 2], [2, 4], [0, 1]], dtype=object))
    [0, 2]
    """
    echelon = Echelon()
    chosen: list[int] = []
    for k, row in enumerate(rows):
        if len(chosen) == rows.shape[1]:
            break
        if echelon.add(row):
            chosen.append(k)
    return chosen


def solve(matrix: Integers, right: Integers) -> tuple[Integers, int] | None:
    """Numbers N and a denominator D > 0 with ``matrix @ N = D * right``; None for a singular matrix (Bareiss).

    >>> solve(np.array([[2, 1], [1, 3]], dtype=object), np.array([1, 0], dtype=object))
    (array([3, -1], dtype=object), 5)
    """
    size = len(matrix)
    a = np.column_stack([matrix, right]).astype(object)
    last = 1
    for k in range(size):
        pivot = next((r for r in range(k, size) if a[r, k]), None)
        if pivot is None:
            return None
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
        others = np.arange(size) != k
        a[others] = (a[others] * a[k, k] - a[others, k][:, None] * a[k][None, :]) // last
        last = a[k, k]
    # After the last step every diagonal entry is the determinant (up to sign), by the Bareiss identity.
    numbers, denominator = a[:, size], int(last)
    return (numbers, denominator) if denominator > 0 else (-numbers, -denominator)


def project_out(vector: Integers, basis: Integers) -> tuple[Integers, Integers, int]:
    """Part of ``vector`` orthogonal to independent rows: P, T and D > 0 with ``D * vector = P + T @ basis``."""
    if len(basis) == 0:
        return vector, np.zeros(0, dtype=object), 1
    solved = solve(basis @ basis.T, basis @ vector)
    if solved is None:
        raise ArithmeticError("the rows of the basis are dependent")
    weights, denominator = solved
    return vector * denominator - weights @ basis, weights, denominator


def null_vector(rows: Integers) -> Integers | None:
    """Return the line orthogonal to all rows if there is exactly one; None otherwise.

    >>> null_vector(np.array([[1, 1, 0], [0, 1, 1]], dtype=object))
    array([1, -1, 1], dtype=object)
    """
    width = rows.shape[1]
    basis = rows[independent(rows)] if len(rows) else rows
    if len(basis) != width - 1:
        return None
    identity = np.eye(width, dtype=np.int64).astype(object)
    for column in range(width):
        part: Any = project_out(identity[column], basis)[0]
        if any(part):
            return primitive(part)
    raise AssertionError("unreachable: the complement of width - 1 independent rows is a line")
