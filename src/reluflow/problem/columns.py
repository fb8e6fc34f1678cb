"""Columns of a table: finding them by name or position, and what is done to them before anything is learned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .checks import check_size, is_number
from .errors import DataError
from .types import Array

#: What `prepare` does, by the words used for it everywhere: Python, data arguments, the command line.
PREPARATIONS = ("drop_columns", "center", "standardize", "bias")

Columns = str | int | Iterable[str | int]
#: One step on the columns of new points: "shift" subtracts, "scale" divides, "bias" appends a constant column.
Step = tuple[str, Any]

_BIAS = "bias"  # name of the constant column
_ROW_NAMES = re.compile(r"|index|id|unnamed: \d+", re.IGNORECASE)  # what tables call their row numbers; pandas: ""
_COUNTED = 5  # rows from which 0, 1, 2, ... is no chance
_MOST = 3  # notes of one kind


class Prepared(NamedTuple):
    """Columns that are ready, and how they became so."""

    X: Array
    names: tuple[str, ...] | None
    notes: tuple[str, ...]  # what the user may have overlooked
    words: tuple[str, ...]  # the steps in words
    steps: tuple[Step, ...]  # the steps on new points


def prepare(
    X: Array,
    names: Sequence[str] | None = None,
    *,
    drop_columns: Columns | None = None,
    center: bool = False,
    standardize: bool = False,
    bias: Any = None,
    positions: Sequence[int] | None = None,
    notes: tuple[str, ...] | None = None,
) -> Prepared:
    """Drop columns, centre or standardise what is left, append a constant one: in this order, and only if asked.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    names : sequence of str, optional
        Names of the columns.
    drop_columns, center, standardize, bias
        See `reluflow.load`.
    positions : sequence of int, optional
        Where the columns stand in the file they come from, for messages.
    notes : tuple of str, optional
        What was noted before; without it columns that look like row numbers are looked for.
    """
    for option, flag in (("center", center), ("standardize", standardize)):
        if not isinstance(flag, (bool, np.bool_)):
            raise DataError(f"{option} must be True or False, not {flag!r}.")
    table = _Preparation(X, names, positions)
    if drop_columns is not None:
        table.drop(drop_columns)
    table.notes += row_numbers(table.X, table.names, table.positions) if notes is None else notes
    if center or standardize:
        table.centre(bool(standardize))
    if bias is not None and bias is not False:
        table.append_bias(bias)
    named = None if table.names is None else tuple(table.names)
    return Prepared(table.X, named, tuple(table.notes), tuple(table.words), tuple(table.steps))


class _Preparation:
    """Columns on the way to `Prepared`."""

    def __init__(self, X: Array, names: Sequence[str] | None, positions: Sequence[int] | None) -> None:
        self.X, self.names, self.positions = X, names, positions
        self.notes: list[str] = []
        self.words: list[str] = []
        self.steps: list[Step] = []

    def drop(self, drop_columns: Columns) -> None:
        names, width = self.names, self.X.shape[1]
        dropped = find_columns(drop_columns, names, width, "X")
        keep = [k for k in range(width) if k not in dropped]
        if not keep:
            raise DataError(f"drop_columns={drop_columns!r} leaves no feature; at least one is needed.")
        self.words.append(drop_words([names[k] if names else k for k in dropped]))
        self.X, self.names = self.X[:, keep], names and [names[k] for k in keep]
        self.positions = self.positions and [self.positions[k] for k in keep]

    def centre(self, standardize: bool) -> None:
        shift = self.X.mean(axis=0)
        constant = (self.X[:1] == self.X).all(axis=0)
        shift[constant] = self.X[0, constant]  # the mean of equal numbers is rounded
        self.X = self.X - shift
        self.steps.append(("shift", tuple(shift.tolist())))
        self.words.append("standardized()" if standardize else "centered()")
        if standardize:
            scale = np.where(constant, 1.0, self.X.std(axis=0))
            self.X = self.X / scale
            self.steps.append(("scale", tuple(scale.tolist())))
            self.notes += _constant(constant, self.names, self.positions)

    def append_bias(self, bias: Any) -> None:
        value = 1.0 if bias is True else bias
        if not (is_number(value) and np.isfinite(value) and value != 0):
            raise DataError(
                f"bias must be True (for 1) or a finite non-zero number, not {bias!r}: a zero column is no bias."
            )
        rows, width = self.X.shape
        check_size("X with a bias", rows, width + 1)
        self.X = np.hstack([self.X, np.full((rows, 1), float(value))])
        self.names = None if self.names is None else [*self.names, _BIAS]
        self.steps.append(("bias", float(value)))
        self.words.append(f"with_bias({float(value)!r})")


def drop_words(dropped: Sequence[str | int]) -> str:
    """Say which columns were dropped, as a step in the history of a dataset."""
    return f"without({', '.join(map(str, dropped))})"


def repeat(steps: Sequence[Step], X: Array) -> Array:
    """Do to new points what was done to the old ones."""
    for kind, value in steps:
        if kind == "bias":
            X = np.hstack([X, np.full((X.shape[0], 1), value)])
        elif len(value) != X.shape[1]:
            raise DataError(f"the new points have {X.shape[1]} columns, but {len(value)} are needed, as in the data.")
        else:
            X = X - np.array(value) if kind == "shift" else X / np.array(value)
    return X


# -- finding columns --------------------------------------------------------------------------------


def find_columns(wanted: Columns, names: Sequence[str] | None, width: int, where: str) -> list[int]:
    """Find columns given by a list of names or positions, or a text such as ``"id,name"``.

    >>> find_columns("id, 2", ["id", "a", "b"], 3, "t.csv")
    [0, 2]
    """
    return sorted({find_column(part, names, width, where) for part in split_columns(wanted, names or ())})


def split_columns(wanted: Columns, names: Sequence[str] = ()) -> list[Any]:
    """Return the names and positions that are meant, one by one.

    >>> split_columns("id, km/h,2", ["km/h"])
    ['id', 'km/h', '2']
    """
    if isinstance(wanted, (str, int, np.integer)):
        wanted = [wanted]
    try:
        items = list(wanted)
    except TypeError:
        raise DataError(f"drop_columns takes names or positions of columns, e.g. ['id'], not {wanted!r}.") from None
    if not items:
        raise DataError("drop_columns is empty; name at least one column, or leave it out.")
    return [part for item in items for part in _parts(item, names)]


def _parts(item: Any, names: Sequence[str]) -> list[Any]:
    """Cut a text at commas, or at slashes (as lists are written in data arguments), unless it is a name."""
    for sign in (",", "/"):
        if isinstance(item, str) and item not in names and sign in item:
            return [part for text in item.split(sign) for part in _parts(text.strip(), names)]
    return [item]


def find_column(wanted: Any, names: Sequence[str] | None, width: int, where: str) -> int:
    """Find one column by its name, else by its position counted from 0, from -1 backwards."""
    if isinstance(wanted, str):
        named = [k for k, name in enumerate(names or ()) if name == wanted]
        if len(named) > 1:
            raise DataError(f"{where} has {len(named)} columns called {wanted!r}; give a position, from 0.")
        if named:
            return named[0]
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", wanted):
            raise DataError(f"{where} has no column {wanted!r}; {describe_columns(names, width)}")
        wanted = int(wanted)
    if isinstance(wanted, bool) or not isinstance(wanted, (int, np.integer)):
        raise DataError(f"a column is given by its name or its position, not by {wanted!r}.")
    if not -width <= wanted < width:
        raise DataError(
            f"{where} has no column at position {wanted} (counted from 0); {describe_columns(names, width)}"
        )
    return int(wanted) % width


def describe_columns(names: Sequence[str] | None, width: int) -> str:
    """List the columns there are, as the end of a message."""
    if names is None:
        return f"it has no header and {width} columns: positions are 0 to {width - 1}, -1 is the last."
    shown = [repr(name) for name in names]
    if len(shown) > 12:
        shown = [*shown[:8], "...", *shown[-3:]]
    return f"its {width} columns are {', '.join(shown)}."


def frame_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, if it has any that say more than their positions."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    found = list(columns)
    return None if all(isinstance(name, (int, np.integer)) for name in found) else [str(name) for name in found]


def check_names(names: Any, width: int) -> tuple[str, ...]:
    """Check the names of columns: texts, one a column."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise DataError(f"names must be a list of {width} texts, one a column of X, not {names!r}.")
    found = list(names)
    wrong = [name for name in found if not isinstance(name, str)]
    if wrong:
        raise DataError(f"names must be texts, not {wrong[0]!r}; str(...) makes one.")
    if len(found) != width:
        raise DataError(f"there are {len(found)} names for {width} columns of X; one a column is needed.")
    return tuple(name.strip() for name in found)


# -- notes ------------------------------------------------------------------------------------------


def row_numbers(X: Array, names: Sequence[str] | None, positions: Sequence[int] | None = None) -> list[str]:
    """Point out columns that look like row numbers: by their name, or because they count 0, 1, ... or 1, 2, ..."""
    n, d = X.shape
    if d < 2:
        return []
    counted = np.zeros(d, dtype=bool)
    if n >= _COUNTED:
        some = np.flatnonzero(((X[0] == 0) | (X[0] == 1)) & (X[1] == X[0] + 1))
        counted[some] = (X[:, some] - X[0, some] == np.arange(n)[:, None]).all(axis=0)
    named = [bool(names and _ROW_NAMES.fullmatch(name)) for name in names or [""] * d]
    found = [k for k in range(d) if counted[k] or named[k]]
    return [
        f"{_column(k, names, positions)} {'counts the rows' if counted[k] else 'looks like a row number by its name'}, "
        f"and is a feature here; if it should not be, drop it: {_remedy(k, names, positions)}."
        for k in found[:_MOST]
    ]


def _constant(constant: Any, names: Sequence[str] | None, positions: Sequence[int] | None) -> list[str]:
    found = np.flatnonzero(constant).tolist()
    if not found:
        return []
    shown = ", ".join(_column(k, names, positions) for k in found[:_MOST]) + (", ..." if len(found) > _MOST else "")
    return [f"{shown} {'is' if len(found) == 1 else 'are'} constant: standardised to 0, which says nothing."]


def _column(k: int, names: Sequence[str] | None, positions: Sequence[int] | None) -> str:
    if names and names[k]:
        return f"column {names[k]!r}"
    return f"column {positions[k] if positions else k} (counted from 0{', without a name' if names else ''})"


def _remedy(k: int, names: Sequence[str] | None, positions: Sequence[int] | None) -> str:
    import shlex

    word = names[k] if names and names[k] else positions[k] if positions else k
    return f"drop_columns={word!r} (--drop-columns {shlex.quote(str(word))})"
