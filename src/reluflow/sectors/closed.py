"""Extremal directions in closed form, where the two classes point away from each other."""

from __future__ import annotations

import math

import numpy as np

from ..problem import DataError, Dataset
from ..problem.types import Array, Signs
from .driving import driving_slack
from .exact import as_integers, rounded
from .patterns import exact_signs, gram_signs, inseparable
from .strict import Maximum


def class_sums(data: Dataset) -> tuple[Array, Array]:
    """Return the sums of the positive and of the negative points (not their means); zero for an empty class.

    >>> class_sums(Dataset([[2, 1], [1, 2], [-3, -1]], [1, 1, -1]))
    (array([3., 3.]), array([-3., -1.]))
    """
    # Along contiguous memory NumPy adds pairwise, which keeps the error at a few units in the last place.
    columns = np.ascontiguousarray(data.X.T)
    return columns[:, data.positives].sum(axis=1), columns[:, data.negatives].sum(axis=1)


def class_sectors(data: Dataset) -> tuple[Signs, Signs]:
    r"""Sectors of the two extremal directions of orthogonally separable data (PL-L2), exactly.

    :math:`\sigma^+_j` is 1 on the positive class and, on the negative one, -1 where some positive point has a negative
    inner product with :math:`x_j`, 0 where :math:`x_j` is orthogonal to all of them; :math:`\sigma^-` likewise.
    With one class empty, its sector belongs to no extremal direction (its entries are then 0).

    Examples
    --------
    >>> class_sectors(Dataset([[1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 1]], [1, 1, -1, -1]))
    (array([ 1,  1,  0, -1], dtype=int8), array([-1, -1,  1,  1], dtype=int8))
    """
    plus, minus, wrong = _scan(data)
    if wrong is not None:
        i, j = wrong
        raise DataError(
            f"class_sectors needs orthogonally separable data, but samples {i} and {j} (labels {data.y[i]:+g} and "
            f"{data.y[j]:+g}) have the wrong sign of their inner product; "
            "use reluflow.sectors.extremal_directions(data) instead."
        )
    return plus, minus


def _scan(data: Dataset) -> tuple[Signs, Signs, tuple[int, int] | None]:
    """Return the two class sectors, and the first pair found that contradicts orthogonal separability."""
    plus = np.where(data.y > 0, 1, 0).astype(np.int8)
    minus = np.where(data.y < 0, 1, 0).astype(np.int8)
    for rows, columns, signs in gram_signs(data):
        same = np.equal.outer(data.y[rows], data.y[columns])
        wrong = np.argwhere(inseparable(same, signs))
        if wrong.size:
            return plus, minus, (int(rows[wrong[0, 0]]), int(columns[wrong[0, 1]]))
        cross = (signs < 0) & ~same
        for index, hit in ((rows, cross.any(axis=1)), (columns, cross.any(axis=0))):
            away = index[hit]
            plus[away[data.y[away] < 0]] = -1
            minus[away[data.y[away] > 0]] = -1
    return plus, minus, None


def closed_form(data: Dataset, slope: float) -> tuple[list[Maximum], list[Maximum]] | None:
    """Maxima and minima where a formula is proved (see ``extremal.py``); None elsewhere."""
    plus, minus = class_sums(data)
    if slope == 1.0:
        return _linear(data)
    if data.d == 1:
        return _line(data, slope)
    if slope > 0:
        if not driving_slack(data, slope, exact=False).holds:  # clearly (LL-A.2)
            return None
        sector = data.y.astype(np.int8)
        return [_maximum(plus - slope * minus, sector)], [_minimum(minus - slope * plus, -sector)]
    sector_plus, sector_minus, wrong = _scan(data)
    if wrong is not None:
        return None
    up = [_maximum(plus, sector_plus)] if data.positives.size else []
    down = [_minimum(minus, sector_minus)] if data.negatives.size else []
    return up, down


def _linear(data: Dataset) -> tuple[list[Maximum], list[Maximum]]:
    """G is linear: one maximum and one minimum, opposite to each other, or none if the signed points cancel."""
    parts = exact_sum(data.signed)
    if not parts.any():
        return [], []
    sector = exact_signs(np.tile(data.X, (1, len(parts))), parts.reshape(1, -1))[:, 0]
    return [_maximum(parts[0], sector)], [_minimum(-parts[0], -sector)]


def exact_sum(rows: Array) -> Array:
    """Sum of the rows as a few vectors that add up to it exactly, the first of them the rounded sum."""
    columns = [column.tolist() for column in rows.T]
    parts: list[list[float]] = []
    while not parts or any(parts[-1]):
        parts.append([math.fsum(column) for column in columns])
        for column, total in zip(columns, parts[-1], strict=True):
            column.append(-total)
    return np.array(parts[:-1] if len(parts) > 1 else parts)


def _line(data: Dataset, slope: float) -> tuple[list[Maximum], list[Maximum]]:
    """On a line the sphere is two points; each is an extremum as it would be if the line lay in a plane."""
    points, exponent = as_integers(data.signed[:, 0])
    low, high = slope.as_integer_ratio()
    up: list[Maximum] = []
    down: list[Maximum] = []
    for u in (1, -1):
        sector = (u * np.sign(data.X[:, 0])).astype(np.int8)
        level = int(u * (np.where(sector > 0, high, low) @ points))
        value = rounded(level, high, exponent)
        if level:
            (up if level > 0 else down).append(Maximum(np.array([float(u)]), value, sector))
    return up, down


def _maximum(top: Array, sector: Signs) -> Maximum:
    size = float(np.linalg.norm(top))
    return Maximum(top / size, size, sector)


def _minimum(bottom: Array, sector: Signs) -> Maximum:
    size = float(np.linalg.norm(bottom))
    return Maximum(bottom / size, -size, sector)
