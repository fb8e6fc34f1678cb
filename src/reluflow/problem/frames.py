"""Data frames, of pandas or polars: which column is the label, which are features, and a dataset of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .checks import opened
from .columns import Columns, drop_words, find_column, find_columns, frame_names
from .dataset import Dataset
from .errors import DataError
from .labels import Labels, find_label, signed
from .types import Array


def is_frame(value: Any) -> bool:
    """Whether this is a data frame."""
    return hasattr(value, "columns") and (hasattr(value, "iloc") or hasattr(value, "get_columns"))


def taken(frame: Any, positions: Sequence[int]) -> Any:
    """Return the columns at these positions, as a frame of the same kind."""
    return frame.iloc[:, list(positions)] if hasattr(frame, "iloc") else frame[:, list(positions)]


def from_frame(
    frame: Any,
    y: Any = None,
    *,
    label: str | int | None = None,
    labels: Labels | None = None,
    drop_columns: Columns | None = None,
    name: str | None = None,
    **preparation: Any,
) -> Dataset:
    """Take the features, and without ``y`` the labels too, out of a data frame; see `Dataset.from_frame`."""
    X, y, names, about = split(frame, y, label, drop_columns)
    if dropped := about.pop("dropped"):
        about["steps"] = (drop_words(dropped),)
    return joined(X, y, names, preparation, about, labels, name)


def split(
    frame: Any, y: Any, label: str | int | None, drop_columns: Columns | None
) -> tuple[Any, Any, list[str] | None, dict[str, Any]]:
    """Tell features and labels of a frame apart; also the names of the features, and what the others are called."""
    if not is_frame(frame):
        raise DataError(
            f"a data frame of pandas or polars is needed, not {type(frame).__name__}; Dataset(X, y) takes arrays."
        )
    named, width = frame_names(frame), len(frame.columns)
    columns = [str(column) for column in frame.columns]
    out = [] if drop_columns is None else find_columns(drop_columns, columns, width, "the frame")
    about: dict[str, Any] = {"dropped": [columns[k] for k in out]}
    if isinstance(y, str):
        raise DataError(f"y = {y!r} is a text; the label column of a frame is given by label={y!r}.")
    if y is not None:
        if label is not None:
            raise DataError(f"y and label={label!r} both say what the labels are; give one of them.")
    else:
        where = "the frame"
        k = find_label(columns, where, out) if label is None else find_column(label, columns, width, where)
        if k in out:
            raise DataError(f"column {columns[k]!r} is the label and cannot be dropped; say which is, by label=...")
        y, out = (frame.iloc[:, k] if hasattr(frame, "iloc") else frame.to_series(k)), [*out, k]
        about["label"] = columns[k]
    keep = [k for k in range(width) if k not in out]
    if not keep:
        raise DataError("no column is left for the features; at least one is needed.")
    return taken(frame, keep), y, named and [named[k] for k in keep], about


def joined(
    X: Any,
    y: Any,
    names: Sequence[str] | None,
    preparation: dict[str, Any],
    about: dict[str, Any],
    labels: Labels | None = None,
    name: str | None = None,
) -> Dataset:
    """Make a dataset of points and labels, which may be texts or other numbers that ``labels`` explains."""
    where = f"column {about['label']!r}" if "label" in about else "y"
    found = np.asarray(opened(y, where, DataError))
    if labels is not None or found.dtype.kind not in "iuf":
        sign = signs_of(found, labels, where)
        # An index of its own stays, so that rows that do not belong together are still noticed.
        y = type(y)(sign, index=y.index) if hasattr(y, "iloc") else sign
        about = {**about, "labels": dict(labels or {})}
    return Dataset.prepared_from(X, y, name, about, names, **preparation)


def signs_of(y: Any, labels: Labels | None, where: str) -> Array:
    """Turn the labels of a column, texts or numbers, into -1 and +1."""
    found = np.asarray(opened(y, where, DataError))
    return signed(found.astype(str) if found.dtype.kind == "O" else found, labels, where)
