"""Signs of inner products, decided and not rounded.

Doubles are rational numbers, so the sign of x.w has one right answer. A matrix product with a rigorous error bound
settles nearly all signs; the few that it leaves open are settled exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..problem import DataError, Dataset, ProblemError
from ..problem.precision import EPS
from ..problem.types import Array, Signs
from .exact import as_rationals, dot, product_error

#: Entries of a block of inner products that is formed at once (64 MB of doubles).
_BLOCK = 2**23
_PAIRS = 2**20


def exact_signs(A: npt.ArrayLike, B: npt.ArrayLike) -> Signs:
    r"""Sign of every inner product :math:`a_i \cdot b_j`, exact for the doubles given.

    Parameters
    ----------
    A : array_like of shape (n, d)
    B : array_like of shape (m, d)

    Returns
    -------
    ndarray of int8, shape (n, m)
        -1, 0 or +1. A zero is a true zero and not a small number.

    Notes
    -----
    With :math:`u = 2^{-53}` any order of summation gives
    :math:`|\mathrm{fl}(a \cdot b) - a \cdot b| \le d u/(1 - d u)\,|a|\,|b|`. Products above twice this bound have the
    sign computed. For the others: if both rows are short integers times a power of two, the product was exact; else
    the rounding errors of the d products are added to them without error.

    Examples
    --------
    >>> exact_signs([[0.1, 0.1, -0.2], [0.1, 0.2, -0.3]], [[1.0, 1.0, 1.0]])   # as doubles 0.1 + 0.2 - 0.3 > 0
    array([[0],
           [1]], dtype=int8)
    """
    left, right = _as_rows(A, "A"), _as_rows(B, "B")
    if left.shape[1] != right.shape[1]:
        raise ProblemError(
            f"the vectors have {left.shape[1]} and {right.shape[1]} entries; inner products need the same number."
        )
    p, q = power_scaled(left), power_scaled(right)
    out = np.empty((len(left), len(right)), dtype=np.int8)
    step = max(1, _BLOCK // max(1, len(right)))
    for lo in range(0, len(left), step):
        rows = slice(lo, lo + step)
        out[rows] = _block_signs(p[rows], q, left[rows], right)
    return out


def sector(points: Dataset | npt.ArrayLike, w: npt.ArrayLike) -> Signs:
    r"""Return the sector of w: the signs of :math:`w \cdot x_i`, with exact zeros (PL-D3).

    Parameters
    ----------
    points : Dataset or array_like of shape (n, d)
    w : array_like of shape (d,) or (m, d)
        One vector, or one a row.

    Returns
    -------
    ndarray of int8, shape (n,) or (m, n)

    Examples
    --------
    >>> sector([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [2, -1])
    array([ 1,  0, -1,  1], dtype=int8)
    """
    X = points.X if isinstance(points, Dataset) else points
    vectors = _numbers(w, "w")
    if vectors.ndim == 1:
        return np.asarray(exact_signs(vectors[None], X)[0])
    return exact_signs(vectors, X)


def gram_signs(
    points: Dataset | npt.ArrayLike, block: int = 2048
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Signs]]:
    """Signs of all inner products of the points with each other, a block at a time.

    Yields the row indices, the column indices and the int8 block of signs, for the blocks on and above the diagonal.
    No n x n array is formed.

    Examples
    --------
    >>> for rows, columns, signs in gram_signs([[1, 0], [0, 1], [-1, 2]], block=2):
    ...     print(rows, columns, signs.tolist())
    [0 1] [0 1] [[1, 0], [0, 1]]
    [0 1] [2] [[-1], [1]]
    [2] [2] [[1]]
    """
    X = points.X if isinstance(points, Dataset) else _as_rows(points, "points")
    starts = range(0, len(X), block)
    for lo in starts:
        rows = np.arange(lo, min(lo + block, len(X)))
        for at in starts[lo // block :]:
            columns = np.arange(at, min(at + block, len(X)))
            yield rows, columns, exact_signs(X[rows], X[columns])


def separability_violations(data: Dataset, strict: bool = False) -> Iterator[tuple[int, int]]:
    r"""Pairs of samples that contradict orthogonal separability (PL-D1), found block by block.

    Wanted are :math:`x_i \cdot x_j > 0` for equal labels and :math:`x_i \cdot x_j \le 0` for different ones
    (``strict``: < 0, which is :math:`\mu > 0`, ML-A1). Yields the pairs i < j where that fails; none means proved.

    Examples
    --------
    >>> data = Dataset([[1, 0], [0, 1]], [1, -1])
    >>> list(separability_violations(data)), list(separability_violations(data, strict=True))
    ([], [(0, 1)])
    """
    for rows, columns, signs in gram_signs(data):
        same = np.equal.outer(data.y[rows], data.y[columns])
        for r, c in np.argwhere(inseparable(same, signs, strict)):
            if rows[r] < columns[c]:
                yield int(rows[r]), int(columns[c])


def inseparable(same: npt.NDArray[np.bool_], signs: Signs, strict: bool = False) -> npt.NDArray[np.bool_]:
    """Where a sign of x_i.x_j contradicts orthogonal separability, ``same`` telling which pairs have equal labels."""
    agree = np.where(same, signs, -signs)
    return np.asarray((agree < 0) | ((agree == 0) & (same | strict)))


def is_orthogonally_separable(data: Dataset, strict: bool = False) -> bool:
    """Whether the data are orthogonally separable, decided exactly (PL-D1; ``strict``: ML-A1).

    >>> is_orthogonally_separable(Dataset([[2, 1], [1, 2], [-3, -1]], [1, 1, -1]))
    True
    """
    return next(separability_violations(data, strict), None) is None


def exact_dot(x: npt.ArrayLike, w: npt.ArrayLike) -> float:
    """Inner product of two vectors of doubles, rounded once: error at most half a unit in the last place.

    >>> exact_dot([1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    1.0
    """
    left, right = (_as_rows(np.atleast_2d(v), name)[0] for v, name in ((x, "x"), (w, "w")))
    return float(dot(as_rationals(left), as_rationals(right)))


# -- how ----------------------------------------------------------------------------------------------


def _numbers(value: npt.ArrayLike, name: str) -> Array:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must hold numbers, not {type(value).__name__}; one vector a row is needed.") from None


def _as_rows(value: npt.ArrayLike, name: str) -> Array:
    rows = _numbers(value, name)
    if rows.ndim != 2:
        raise DataError(f"{name} has shape {rows.shape}; a two-dimensional array, one vector a row, is needed.")
    if not np.isfinite(rows).all():
        raise DataError(f"{name} has entries that are not finite; the sign of their inner products is not defined.")
    return rows


def power_scaled(rows: Array) -> Array:
    """Rows times powers of two, largest entry in [1/2, 1): no product overflows, no sign changes."""
    exponent = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]
    with np.errstate(under="ignore"):
        # In two steps, because 2^-exponent itself may overflow; both are exact unless the result is subnormal.
        half = exponent // 2
        return np.asarray(np.ldexp(np.ldexp(rows, -half[:, None]), (half - exponent)[:, None]))


def _block_signs(p: Array, q: Array, left: Array, right: Array) -> Signs:
    """Signs of one block; p and q are the rows of left and right times powers of two."""
    d = p.shape[1]
    u, v = (rows / np.maximum(np.linalg.norm(rows, axis=1), 0.25)[:, None] for rows in (p, q))
    # Unit vectors make the bound one number: twice that of the notes, with room for the rounding of u and v
    # themselves and for entries that became subnormal.
    bound = (d + 16) * EPS
    product = u @ v.T
    signs: Signs = (product > bound).astype(np.int8)
    signs -= product < -bound
    if not (open_ := signs == 0).any():
        return signs
    if int(_bits(left).max()) + int(_bits(right).max()) + math.ceil(math.log2(max(d, 2))) <= 53:
        return np.asarray(np.sign(p @ q.T), dtype=np.int8)  # short integers: nothing was rounded
    if _narrow(left) and _narrow(right):
        size = np.abs(u) @ np.abs(v).T
        far = open_ & (np.abs(product) > bound * size)
        signs[far] = np.sign(product[far])
        open_ &= ~far & (size > 0)
    i, j = np.nonzero(open_)
    step = max(1, _PAIRS // d)
    for lo in range(0, i.size, step):
        a, b = i[lo : lo + step], j[lo : lo + step]
        signs[a, b] = _pair_signs(p[a], q[b], left[a], right[b])
    return signs


def _bits(rows: Array) -> npt.NDArray[np.int64]:
    """Length of the integers when each row is written as integers times one power of two."""
    mantissa, exponent = np.frexp(rows)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 54 + exponent  # exponent of the last bit set
    some = whole != 0
    top = np.where(some, exponent, -5000).max(axis=1, initial=-5000)
    bottom = np.where(some, lowest, 5000).min(axis=1, initial=5000)
    return np.asarray(np.maximum(top - bottom, 0), dtype=np.int64)


def _pair_signs(p: Array, q: Array, left: Array, right: Array) -> Signs:
    """Sign of p_k . q_k, row by row, without any rounding."""
    signs = np.empty(len(p), dtype=np.int8)
    if _narrow(left) and _narrow(right):
        terms = p * q
        both = np.hstack([terms, product_error(p, q, terms)])
        signs[:] = [np.sign(math.fsum(row)) for row in both.tolist()]
    else:
        for k, (x, w) in enumerate(zip(left, right, strict=True)):
            exact = dot(as_rationals(x), as_rationals(w))
            signs[k] = (exact > 0) - (exact < 0)
    return signs


def _narrow(rows: Array) -> bool:
    """Whether the entries of each row are so close in size that no product of scaled rows, nor its error, vanishes."""
    exponent = np.frexp(rows)[1]
    top = np.where(rows != 0, exponent, -5000).max(axis=1, keepdims=True, initial=-5000)
    return bool((top - exponent)[rows != 0].max(initial=0) < 450)
