"""Turning the labels found in a file into -1 and +1, by an explicit rule or not at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .checks import is_number
from .errors import DataError

Labels = Mapping[Any, int]

_NAMES = ("y", "label", "labels", "target", "class")


def signs(found: Mapping[Any, str], labels: Labels | None, where: str) -> dict[Any, float]:
    """Give every label value that was found its sign.

    Parameters
    ----------
    found : mapping
        Each different value (text or number) and where it was first seen.
    labels : mapping or None
        The sign of each value. ``None``: only -1 and +1 are accepted, and mean themselves.
    where : str
        What to call the labels in messages.

    Examples
    --------
    >>> signs({"1": "line 1", "-1.0": "line 2"}, None, "column 'y'")
    {'1': 1.0, '-1.0': -1.0}
    >>> signs({"cat": "line 1", "dog": "line 2"}, {"cat": 1, "dog": -1}, "column 'y'")
    {'cat': 1.0, 'dog': -1.0}
    """
    if labels is None:
        known: dict[Any, float | None] = {value: _sign(value) for value in found}
    else:
        _check_mapping(labels)
        known = {value: _look_up(value, labels) for value in found}
    result = {value: sign for value, sign in known.items() if sign is not None}
    if len(result) < len(found):
        raise DataError(_complaint(found, known, labels, where))
    return result


def signed(y: npt.NDArray[Any], labels: Labels | None, where: str) -> npt.NDArray[np.float64]:
    """Turn the labels of an array into -1 and +1."""
    if y.ndim != 1:
        raise DataError(f"{where} has shape {y.shape}; a one-dimensional array of labels is needed, e.g. y.ravel().")
    if y.dtype.kind not in "biufUS":
        raise DataError(f"{where} has dtype {y.dtype}; labels are numbers or texts.")
    values, first, back = np.unique(y, return_index=True, return_inverse=True)
    plain_values = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values.tolist()]
    order = np.argsort(first)
    found = {plain_values[k]: f"index {first[k]}" for k in order}
    sign = signs(found, labels, where)
    return np.array([sign[v] for v in plain_values], dtype=np.float64)[back]


def find_label(names: Sequence[str], where: str, left_out: Sequence[int] = ()) -> int:
    """Return the position of the one column that is called as labels are, else of the last."""
    named = [k for k, name in enumerate(names) if name.lower() in _NAMES and k not in left_out]
    if len(named) > 1:
        which = " and ".join(f"column {k + 1} ({names[k]!r})" for k in named)
        raise DataError(f"{where}: {which} may both be the label; say label=... (--label).")
    return named[0] if named else len(names) - 1


def _sign(value: Any) -> float | None:
    number = as_number(value)
    return number if number in (-1.0, 1.0) else None


def as_number(value: Any) -> float | None:
    """Read a number or a numeric text; anything else (a bool, a word, a NaN) is None."""
    if isinstance(value, str):
        if "_" in value or not value.isascii():  # float() takes 1_000 and other alphabets' digits; no data file does
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    return None if not is_number(value) or math.isnan(value) else float(value)


def _look_up(value: Any, labels: Labels) -> float | None:
    number = as_number(value)
    for key, sign in labels.items():
        if str(key) == str(value) or (number is not None and as_number(key) == number):
            return float(sign)
    return None


def _check_mapping(labels: object) -> None:
    if not isinstance(labels, Mapping) or not labels:
        raise DataError(f"labels must say which value means what, e.g. labels={{0: -1, 1: 1}}, not {labels!r}.")
    for key, sign in labels.items():
        if not is_number(sign) or sign not in (-1, 1):
            raise DataError(f"labels maps {key!r} to {sign!r}; every value must become -1 or +1.")
    seen: dict[float, Any] = {}
    for key, sign in labels.items():
        number = as_number(key)
        if number is not None and labels[seen.setdefault(number, key)] != sign:
            raise DataError(f"labels gives {seen[number]!r} and {key!r}, which are the same number, two signs.")


def _complaint(found: Mapping[Any, str], known: Mapping[Any, Any], labels: Labels | None, where: str) -> str:
    unknown = [value for value in found if known[value] is None]
    missing = [value for value in unknown if str(value).strip().lower() in ("", "nan")]
    if missing:
        return f"{where} has no label at {found[missing[0]]} but {str(missing[0])!r}. Fill it in or remove the sample."
    culprit = unknown[0]
    shown = ", ".join(repr(v) for v in list(found)[:6]) + (", ..." if len(found) > 6 else "")
    said = f"{where} holds {culprit!r} (first at {found[culprit]})"
    if labels is not None:
        return f"{said}, which labels={dict(labels)!r} does not mention. Values found: {shown}. Map or remove them all."
    if len(found) != 2:
        return (
            f"{said}; labels must be -1 or +1. There are {len(found)} different values: {shown}. Keep two classes "
            "and say which is which, e.g. labels={0: -1, 1: 1}, on the command line --negative 0 --positive 1."
        )
    minus, plus = _in_order(list(found))
    keys = [str(value) if as_number(value) is not None else repr(value) for value in (minus, plus)]
    rule = f"labels={{{keys[0]}: -1, {keys[1]}: 1}}, on the command line --negative {minus} --positive {plus}"
    return f"{said}; labels must be -1 or +1. Values found: {shown}. Say which is which, e.g. {rule}."


def _in_order(pair: list[Any]) -> list[Any]:
    numbers = [as_number(value) for value in pair]
    if numbers[0] is None or numbers[1] is None:
        return sorted(pair, key=str)
    return pair if numbers[0] <= numbers[1] else pair[::-1]
