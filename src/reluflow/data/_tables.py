"""CSV and TSV: numbers in columns, one of which is the label."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ..problem import Dataset, check_size
from ..problem._arrays import Array
from ..problem.errors import DataError
from ._files import check_file, open_text, reading, replacing
from ._labels import Labels, as_number, signs

_DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma"}
_LABEL_NAMES = ("y", "label", "labels", "target", "class")
_LONGEST_LINE = 2**27  # characters; beyond this it is no table
_ZEROS = ("0", "0.0", "-0.0", "-0")  # the usual ones, to be quick
_SAMPLE = 20  # lines looked at to find the delimiter


class _Lines:
    """The lines that hold data, without blank lines and comments, and their numbers in the file."""

    def __init__(self, stream: TextIO, file: Path) -> None:
        self._stream, self._file = stream, file
        self.number = 0  # of the line last given out, from 1
        self.odd = False  # whether lines since the last row hold what float() takes and no data file means
        self.tiny = False  # whether they may hold numbers that underflow to zero

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            try:
                line = self._stream.readline(_LONGEST_LINE)
            except UnicodeDecodeError as exc:
                raise DataError(
                    f"{self._file} is not UTF-8 text (it holds the byte 0x{exc.object[exc.start]:02x} where that "
                    "cannot be); save it as UTF-8, or name it .npz or .npy if that is what it is."
                ) from None
            if not line:
                raise StopIteration
            self.number += 1
            if "\0" in line or len(line) == _LONGEST_LINE:
                raise DataError(f"{self._file}, line {self.number}: this is binary data or one endless line, no table.")
            text = line.strip()
            if text and not text.startswith("#"):
                self.odd |= "_" in line or not line.isascii()  # 1_000, digits of other alphabets
                self.tiny |= "e-" in line or "E-" in line or "0" * 300 in line
                return line


@dataclass
class _Table:
    """What has been understood of a file so far."""

    file: Path
    width: int
    first_line: int
    names: list[str] | None = None  # the header, if there is one
    label: int = -1  # position of the label column, from 0
    values: array[float] = field(default_factory=lambda: array("d"))  # features, row after row
    lines: array[int] = field(default_factory=lambda: array("q"))  # line of each row
    found: dict[str, str] = field(default_factory=dict)  # label text -> where first seen
    texts: list[str] = field(default_factory=list)  # label text of each row

    def column(self, k: int) -> str:
        """How to call column ``k`` (from 0) in a message."""
        return f"column {k + 1}" + (f" ({self.names[k]!r})" if self.names else "")

    def at(self, line: int, k: int) -> str:
        return f"{self.file}, line {line}, {self.column(k)}"


def read_table(
    file: Path, label: str | int | None, labels: Labels | None, delimiter: str | None, header: bool | None
) -> tuple[Array, Array, dict[str, Any]]:
    """Read a CSV or TSV file; see `reluflow.data.load` for what is accepted."""
    check_file(file)
    if isinstance(delimiter, str):
        delimiter = {word: sign for sign, word in _DELIMITERS.items()}.get(delimiter, delimiter)
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n#'):
        raise DataError(f"delimiter must be one character such as ',', not {delimiter!r}.")
    if header is not None and not isinstance(header, bool):
        raise DataError(f"header must be True, False or None (find out), not {header!r}.")
    if isinstance(label, bool) or not (label is None or isinstance(label, (str, int, np.integer))):
        raise DataError(f"label must be a column name or a position, not {label!r}.")
    with reading(file):
        delimiter = delimiter or _find_delimiter(file)
        with open_text(file) as stream:
            table = _read(file, _Lines(stream, file), delimiter, label, labels, header)
    X = np.frombuffer(table.values, dtype=np.float64).reshape(len(table.lines), table.width - 1)
    _check_finite(table, X)
    sign = signs(table.found, labels, f"{file}, {table.column(table.label)}")
    y = np.array([sign[text] for text in table.texts])
    about = {
        "label": table.names[table.label] if table.names else table.label,
        "delimiter": _DELIMITERS.get(delimiter, delimiter),
        "header": table.names is not None,
        "lines": (table.lines[0], table.lines[-1]),
    }
    return X, y, about


def _read(
    file: Path, lines: _Lines, delimiter: str, label: str | int | None, labels: Labels | None, header: bool | None
) -> _Table:
    rows = _rows(file, lines, delimiter)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{file} holds no data: every line is blank or a comment.")
    if len(first) < 2:
        raise DataError(
            f"{file}, line {lines.number}: only one column found, {first[0][:40]!r}. At least one feature and "
            "the label are needed, separated by commas, tabs or semicolons (or say delimiter=...)."
        )
    table = _Table(file, len(first), lines.number)
    if _is_header(table, first, label, labels, header):
        table.names = [name.strip() for name in first]
    table.label = _find_label(table, label)
    if table.names is None:
        _add(table, first, lines)
    for row in rows:
        _add(table, row, lines)
    if not table.lines:
        raise DataError(f"{file} holds a header and no data rows.")
    return table


def _rows(file: Path, lines: _Lines, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    start = 1
    try:
        for row in reader:
            yield row
            start = lines.number + 1
    except csv.Error as exc:
        raise DataError(
            f"{file}, line {start}: badly quoted text ({exc}); a quotation mark that is opened must be closed."
        ) from None


def _add(table: _Table, row: list[str], lines: _Lines) -> None:
    line = lines.number
    if len(row) != table.width:
        raise DataError(
            f"{table.file}, line {line} has {len(row)} fields, but line {table.first_line} has {table.width}; "
            "every line needs the same number."
        )
    text = row.pop(table.label).strip()
    try:
        numbers = list(map(float, row))
    except ValueError:
        numbers = []
    if lines.odd or not numbers:
        _check_numbers(table, row, line)
    if lines.tiny and 0.0 in numbers:
        _check_underflow(table, row, numbers, line)
    lines.odd = lines.tiny = False
    table.values.fromlist(numbers)
    table.lines.append(line)
    table.texts.append(text)
    if text not in table.found:
        table.found[text] = f"line {line}"
    if len(table.lines) % 1024 == 1:
        check_size(f"{table.file} up to line {line}", len(table.lines), table.width - 1)


def _check_numbers(table: _Table, row: list[str], line: int) -> None:
    """Raise the error that names the first field which is not a number, if there is one."""
    for k, text in enumerate(row):
        if _is_numeric(text):
            continue
        where = table.at(line, k + (k >= table.label))
        if not text.strip():
            raise DataError(f"{where} is empty; every feature needs a number. Fill it in or remove the line.")
        comma = as_number(text.replace(",", ".")) is not None
        remedy = "Write decimals with a point, not a comma." if comma else "Correct it or remove the line or column."
        raise DataError(f"{where}: {text.strip()[:40]!r} is not a number. {remedy}")


def _check_underflow(table: _Table, row: list[str], numbers: list[float], line: int) -> None:
    """Raise the error that names the first field whose digits are not all zero but whose double is."""
    for k in [k for k, number in enumerate(numbers) if number == 0 and row[k] not in _ZEROS]:
        text = row[k]
        if any(digit in "123456789" for digit in text.lower().partition("e")[0]):
            where = table.at(line, k + (k >= table.label))
            raise DataError(f"{where}: {text.strip()[:40]!r} is too small for a double and would become 0; write 0.")


def _check_finite(table: _Table, X: Array) -> None:
    bad = ~np.isfinite(X)
    if bad.any():
        i, k = (int(v) for v in np.argwhere(bad)[0])
        what = "nan" if np.isnan(X[i, k]) else f"{X[i, k]} or too large for a double"
        raise DataError(
            f"{table.at(table.lines[i], k + (k >= table.label))} is {what} "
            f"({int(bad.sum())} such entries in all); every entry must be a finite number. Repair or drop those lines."
        )


def _is_header(
    table: _Table, row: Sequence[str], label: str | int | None, labels: Labels | None, header: bool | None
) -> bool:
    """Tell a line of names from a line of numbers; neither is an error, so that no row is lost as a header."""
    if header is not None:
        return header
    numeric = [_is_numeric(text) for text in row]
    if not any(numeric):
        return True
    if all(numeric):
        return False
    if labels is not None and (not isinstance(label, str) or _integer(label) is not None):
        k = _position(-1 if label is None else int(label), table)
        if all(numeric[:k] + numeric[k + 1 :]):
            return False  # numbers with a text label, which the mapping explains
    k = numeric.index(False)
    raise DataError(
        f"{table.at(table.first_line, k)}: {row[k].strip()[:40]!r} is not a number, but other fields of this first "
        "line are. If the line holds names, say header=True (:header=true in a data argument); if it holds data, "
        "correct it, or map text labels, e.g. labels={'no': -1, 'yes': 1} (--negative no --positive yes)."
    )


def _is_numeric(text: str) -> bool:
    """Whether the text is meant as a number, be it NaN (which is refused later, with its line)."""
    return as_number(text) is not None or text.strip().lower() in ("nan", "+nan", "-nan")


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _find_label(table: _Table, label: str | int | None) -> int:
    names = table.names
    if label is None:
        named = [k for k, name in enumerate(names or ()) if name.lower() in _LABEL_NAMES]
        if len(named) > 1:
            which = " and ".join(table.column(k) for k in named)
            raise DataError(f"{table.file}: {which} may both be the label; say label=... (--label).")
        return named[0] if named else table.width - 1
    if isinstance(label, str):
        named = [k for k, name in enumerate(names or ()) if name == label]
        if len(named) > 1:
            raise DataError(f"{table.file} has {len(named)} columns called {label!r}; give a position, from 0.")
        if named:
            return named[0]
        position = _integer(label)
        if position is None:
            raise DataError(f"{table.file} has no column {label!r}; {_columns(table)}")
        label = position
    return _position(int(label), table)


def _position(k: int, table: _Table) -> int:
    if not -table.width <= k < table.width:
        raise DataError(f"{table.file} has no column at position {k} (counted from 0); {_columns(table)}")
    return k % table.width


def _columns(table: _Table) -> str:
    if table.names is None:
        return f"it has no header and {table.width} columns: positions are 0 to {table.width - 1}, -1 is the last."
    shown = [repr(name) for name in table.names]
    if len(shown) > 12:
        shown = [*shown[:8], "...", *shown[-3:]]
    return f"its {table.width} columns are {', '.join(shown)}."


def _find_delimiter(file: Path) -> str:
    """Choose the delimiter that cuts the first lines into equally many fields."""
    with open_text(file) as stream:
        sample = list(islice(_Lines(stream, file), _SAMPLE))
    counts: dict[str, int] = {}
    for delimiter in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(sample, delimiter=delimiter, skipinitialspace=True)]
        except csv.Error:
            continue
        if widths and widths[0] > 1:
            if len(set(widths)) == 1:
                return delimiter
            counts[delimiter] = widths[0]
    return max(counts, key=lambda delimiter: counts[delimiter]) if counts else ","


def write_table(data: Dataset, file: Path, delimiter: str) -> None:
    """Write features ``x1 ... xd`` and label ``y``; every number in the shortest form that reads back the same."""
    with replacing(file) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        stream.write(delimiter.join([*(f"x{k + 1}" for k in range(data.d)), "y"]) + "\n")
        for row, label in zip(data.X, data.y, strict=True):
            stream.write(delimiter.join([*map(repr, row.tolist()), str(int(label))]) + "\n")
