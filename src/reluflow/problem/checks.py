"""Turning what the user gives into read-only float64 arrays, or saying exactly why not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import DataError, ReluflowError
from .types import Array

#: No array that a user asks for may be larger than this; a typing slip must not take the machine down.
MAX_BYTES = 4 * 2**30

# Squares of the entries must neither overflow nor vanish, or inner products stop meaning anything.
_LARGEST, _SMALLEST = 1e150, 1e-150


def is_number(value: Any) -> bool:
    """Whether ``value`` is one real number (not a bool, not an array, not a string)."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_size(what: str, *shape: int, error: type[ReluflowError] = DataError) -> None:
    """Refuse an array of doubles that would not fit, before anything is allocated.

    >>> check_size("W", 10**6, 10**5)
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.DataError: W of shape 1000000 x 100000 would take 745.1 GiB; ...
    """
    size = 8 * math.prod(shape)
    if size > MAX_BYTES:
        sides = " x ".join(str(s) for s in shape)
        amount = f"{size / 2**30:.1f}" if size < 2**60 else "more than a billion"
        raise error(
            f"{what} of shape {sides} would take {amount} GiB; at most "
            f"{MAX_BYTES / 2**30:.0f} GiB are allowed. Use fewer samples, dimensions or neurons."
        )


def opened(value: Any, name: str, error: type[ReluflowError]) -> Any:
    """Turn tensors and pandas objects into what NumPy takes as it is; anything else is returned unchanged.

    Tensors are detached from their graph. Of pandas the nullable types are numbers as long as nothing is missing, and
    a column of True and False is 1 and 0.
    """
    if hasattr(value, "detach") and hasattr(value, "requires_grad"):
        tensor = value.detach().cpu()
        try:
            try:
                return tensor.numpy()
            except TypeError:  # bfloat16, which NumPy does not know
                return tensor.double().numpy()
        except (TypeError, RuntimeError) as exc:
            raise error(f"{name} is a tensor that is no plain array ({exc}); pass {name}.to_dense().") from None
    if hasattr(value, "columns") and hasattr(value, "isna"):
        return _frame([value.iloc[:, k] for k in range(value.shape[1])], value.shape, name, error)
    if hasattr(value, "get_columns"):  # of polars
        return _frame(value.get_columns(), value.shape, name, error)
    if hasattr(value, "to_numpy") and (hasattr(value, "isna") or hasattr(value, "is_null")):
        return _series(value, name, error)
    return value


def _frame(columns: list[Any], shape: tuple[int, int], name: str, error: type[ReluflowError]) -> Any:
    done = []
    for column in columns:
        what = f"{name}[{column.name!r}]"
        found = _series(column, what, error)
        if found.dtype.kind == "b":
            found = found.astype(np.int8)
        if found.dtype.kind not in "iuf":
            row = next((k for k, entry in enumerate(found) if not is_number(entry)), 0)
            shown = f", row {row} (counted from 0) is {str(found[row])[:40]!r}" if len(found) else ""
            raise error(
                f"{what} has dtype {column.dtype}{shown}; numbers are needed. Leave the column out "
                f"(drop_columns={str(column.name)!r}), or turn it into numbers first."
            )
        done.append(as_float_array(found, what, 1, error))  # one by one: joined, large integers would be rounded
    return np.column_stack(done) if done else np.empty(shape)


def _series(series: Any, name: str, error: type[ReluflowError]) -> Any:
    missing = np.flatnonzero(series.isna() if hasattr(series, "isna") else series.is_null().to_numpy())
    if missing.size:
        first = int(missing[0])
        raise error(
            f"{name}: row {first} (counted from 0) is missing, {getattr(series, 'iloc', series)[first]} "
            f"({missing.size} missing in all); every entry must be a finite number. Fill it in or drop those rows."
        )
    dtype = getattr(series.dtype, "numpy_dtype", None)  # of Float64, Int64, boolean
    return series.to_numpy() if dtype is None or dtype.kind not in "biuf" else series.to_numpy(dtype=dtype)


def as_float_array(value: Any, name: str, ndim: int, error: type[ReluflowError]) -> Array:
    """Copy ``value`` into a read-only float64 array, refusing every lossy or doubtful conversion."""
    shape_word = {1: "one-dimensional", 2: "two-dimensional"}[ndim]
    value = opened(value, name, error)
    if hasattr(value, "toarray"):
        raise error(f"{name} is a sparse matrix ({type(value).__name__}); pass {name}.toarray().")
    if np.ma.isMaskedArray(value) and np.ma.is_masked(value):
        raise error(f"{name} has masked entries; fill them or drop those rows first, e.g. {name}.filled(0).")
    try:
        raw = np.asarray(value)
    except (ValueError, TypeError) as exc:
        words = str(exc).rstrip(".")
        raise error(
            f"{name} is not a rectangular array of numbers ({words}); give every row the same number of entries."
        ) from None
    if raw.dtype.kind not in "iuf":
        raise error(
            f"{name} has dtype {raw.dtype}, which is not a real number type; convert it yourself first, "
            f"e.g. {name}.astype(float)."
        )
    if raw.ndim != ndim:
        hint = (
            f" For a single feature or sample use {name}.reshape(-1, 1) or {name}.reshape(1, -1)." if ndim == 2 else ""
        )
        raise error(f"{name} has shape {raw.shape}; a {shape_word} array is needed.{hint}")
    out: Array = np.array(raw, dtype=np.float64, order="C", copy=True)
    bad = ~np.isfinite(out)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        raise error(
            f"{name}[{', '.join(map(str, where))}] is {out[where]} ({int(bad.sum())} non-finite entries in all); "
            "every entry must be a finite number. Drop or repair those rows."
        )
    inexact = _inexact(raw, out)
    if inexact is not None:
        raise error(
            f"{name}[{', '.join(map(str, inexact))}] = {raw[inexact]} of dtype {raw.dtype} has no exact float64 value; "
            f"round it yourself if that is meant: {name}.astype(float)."
        )
    out.setflags(write=False)
    return out


def _inexact(raw: npt.NDArray[Any], out: Array) -> tuple[int, ...] | None:
    """Index of the first entry that float64 does not hold exactly."""
    if raw.dtype.kind in "iu":
        # NumPy compares integers and doubles in double precision, so the large ones go through Python.
        large = map(tuple, np.argwhere(np.abs(out) >= 2.0**53).tolist())
        return next((k for k in large if int(out[k]) != int(raw[k])), None)
    lossy = np.argwhere(out != raw) if raw.dtype.itemsize > out.dtype.itemsize else np.empty(0)
    return tuple(lossy[0].tolist()) if lossy.size else None


def check_range(rows: Array, name: str, error: type[ReluflowError], remedy: str = "") -> None:
    """Refuse rows whose squared norm overflows or underflows (zero rows are the caller's business)."""
    top = np.abs(rows).max(axis=1, initial=0.0)
    bad = np.flatnonzero((top > _LARGEST) | ((top < _SMALLEST) & (top > 0)))
    if bad.size:
        raise error(
            f"{name}[{bad[0]}] has largest entry {top[bad[0]]:.3g}; inner products need entries between "
            f"{_SMALLEST:g} and {_LARGEST:g} in size. {remedy or f'Rescale, e.g. {name} / abs({name}).max().'}"
        )
