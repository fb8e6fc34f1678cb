"""CSV and TSV: numbers in columns, one of which is the label."""

from __future__ import annotations

import csv
import re
import shlex
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ..problem import Dataset, check_size
from ..problem.columns import Columns, find_column, find_columns, split_columns
from ..problem.errors import DataError
from ..problem.files import replacing
from ..problem.labels import Labels, as_number, find_label, signs
from ..problem.types import Array
from .files import check_file, open_text, reading

_DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", " ": "space"}  # a space stands for any run of blanks
_LONGEST_LINE = 2**27  # characters; beyond this it is no table
_ZEROS = ("0", "0.0", "-0.0", "-0")  # the usual ones, to be quick
_POINT = "Write decimals with a point, not a comma."
_SAMPLE = 20  # lines looked at to find the delimiter


class _Lines:
    """The lines that hold data, without blank lines and comments, and their numbers in the file."""

    def __init__(self, stream: TextIO, file: Path, blanks: bool = False) -> None:
        self._stream, self._file = stream, file
        self._blanks = blanks  # whether runs of spaces and tabs separate the fields
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
                raise DataError(
                    f"{self._file}, line {self.number}: this is binary data or one endless line, no table; "
                    "save it as text, or name it .npz or .npy if that is what it is."
                )
            text = line.strip()
            if text and not text.startswith("#"):
                self.odd |= "_" in line or not line.isascii()  # 1_000, digits of other alphabets
                self.tiny |= "e-" in line or "E-" in line or "0" * 300 in line
                return text.replace("\t", " ") + "\n" if self._blanks else line


@dataclass
class _Table:
    """What has been understood of a file so far."""

    file: Path
    width: int
    first_line: int
    names: list[str] | None = None  # the header, if there is one
    label: int = -1  # position of the label column, from 0
    left_out: tuple[int, ...] = ()  # positions of columns that are not read
    features: list[int] = field(default_factory=list)  # positions of those that are, in order
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
    file: Path,
    label: str | int | None,
    labels: Labels | None,
    delimiter: str | None,
    header: bool | None,
    drop_columns: Columns | None = None,
) -> tuple[Array, Array, dict[str, Any]]:
    """Read a CSV or TSV file; see `reluflow.data.load` for what is accepted.

    Columns that are dropped may hold anything. The last part of the answer tells also the ``names`` of the features
    (None without a header), their ``positions`` in the file, and which columns were ``dropped``.
    """
    check_file(file)
    delimiter = _checked_delimiter(delimiter)
    if header is not None and not isinstance(header, bool):
        raise DataError(f"header must be True, False or None (find out), not {header!r}.")
    if isinstance(label, bool) or not (label is None or isinstance(label, (str, int, np.integer))):
        raise DataError(f"label must be a column name or a position, not {label!r}.")
    with reading(file):
        delimiter = delimiter or _find_delimiter(file)
        with open_text(file) as stream:
            lines = _Lines(stream, file, delimiter == " ")
            table = _read(file, lines, delimiter, label, labels, header, drop_columns)
    X = np.frombuffer(table.values, dtype=np.float64).reshape(len(table.lines), len(table.features))
    _check_finite(table, X)
    sign = signs(table.found, labels, f"{file}, {table.column(table.label)}")
    y = np.array([sign[text] for text in table.texts])
    about = {
        "label": table.names[table.label] if table.names else table.label,
        "delimiter": _DELIMITERS.get(delimiter, delimiter),
        "header": table.names is not None,
        "lines": (table.lines[0], table.lines[-1]),
        "names": [table.names[k] for k in table.features] if table.names else None,
        "positions": table.features,
        "dropped": [table.names[k] if table.names and table.names[k] else k for k in table.left_out],
    }
    return X, y, about


def _checked_delimiter(delimiter: str | None) -> str | None:
    """Return the character a delimiter, or the word for one, means."""
    if isinstance(delimiter, str):
        delimiter = {word: sign for sign, word in _DELIMITERS.items()}.get(delimiter, delimiter)
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n#'):
        words = ", ".join(_DELIMITERS.values())
        raise DataError(f"delimiter must be one character such as ',' or one of {words}; not {delimiter!r}.")
    return delimiter


def _read(
    file: Path,
    lines: _Lines,
    delimiter: str,
    label: str | int | None,
    labels: Labels | None,
    header: bool | None,
    drop_columns: Columns | None,
) -> _Table:
    rows = _rows(file, lines, delimiter)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{file} holds no data: every line is blank or a comment, and a sample is needed.")
    if len(first) < 2:
        raise DataError(
            f"{file}, line {lines.number}: only one column found, {first[0][:40]!r}. At least one feature and "
            "the label are needed, separated by commas, tabs, semicolons or spaces; where something else separates "
            "them, say delimiter=... (--delimiter)."
        )
    table = _Table(file, len(first), lines.number)
    if _is_header(table, first, label, labels, header, drop_columns):
        table.names = [name.strip() for name in first]
    _choose_columns(table, label, drop_columns)
    if table.names is None:
        _add(table, first, lines)
    for row in rows:
        _add(table, row, lines)
    if not table.lines:
        raise DataError(f"{file} holds a header and no data rows; at least one sample is needed below it.")
    return table


def _choose_columns(table: _Table, label: str | int | None, drop_columns: Columns | None) -> None:
    """Tell the label, the features and what is left out apart."""
    file = table.file
    if drop_columns is not None:
        table.left_out = tuple(find_columns(drop_columns, table.names, table.width, str(file)))
    if label is None:
        table.label = find_label(table.names or [""] * table.width, str(file), table.left_out)
    else:
        table.label = find_column(label, table.names, table.width, str(file))
    if table.label in table.left_out:
        raise DataError(
            f"{file}: {table.column(table.label)} is the label and cannot be dropped; say which column is, by "
            "label=... (--label)."
        )
    table.features = [k for k in range(table.width) if k != table.label and k not in table.left_out]
    if not table.features:
        raise DataError(f"{file}: drop_columns leaves no feature; at least one is needed.")


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
            "every line needs the same number. Correct that line; where something else separates the fields, say "
            "delimiter=... (--delimiter)."
        )
    text = row[table.label].strip()
    if table.left_out:
        row = [row[k] for k in table.features]
    else:
        del row[table.label]
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
        check_size(f"{table.file} up to line {line}", len(table.lines), len(table.features))


def _check_numbers(table: _Table, row: list[str], line: int) -> None:
    """Raise the error that names the first field which is not a number, if there is one."""
    for k, text in enumerate(row):
        if _is_numeric(text):
            continue
        where = table.at(line, table.features[k])
        if not text.strip():
            raise DataError(f"{where} is empty; every feature needs a number. Fill it in or remove the line.")
        name = table.names[table.features[k]] if table.names else ""
        remedy = (
            _POINT
            if _with_comma(text)
            else "Correct it, remove the line, or leave the column out with "
            f"drop_columns={name or table.features[k]!r} (--drop-columns {shlex.quote(name) or table.features[k]})."
        )
        raise DataError(f"{where}: {text.strip()[:40]!r} is not a number. {remedy}")


def _check_underflow(table: _Table, row: list[str], numbers: list[float], line: int) -> None:
    """Raise the error that names the first field whose digits are not all zero but whose double is."""
    for k in [k for k, number in enumerate(numbers) if number == 0 and row[k] not in _ZEROS]:
        text = row[k]
        if any(digit in "123456789" for digit in text.lower().partition("e")[0]):
            where = table.at(line, table.features[k])
            raise DataError(f"{where}: {text.strip()[:40]!r} is too small for a double and would become 0; write 0.")


def _check_finite(table: _Table, X: Array) -> None:
    bad = ~np.isfinite(X)
    if bad.any():
        i, k = (int(v) for v in np.argwhere(bad)[0])
        what = "nan" if np.isnan(X[i, k]) else f"{X[i, k]} or too large for a double"
        raise DataError(
            f"{table.at(table.lines[i], table.features[k])} is {what} "
            f"({int(bad.sum())} such entries in all); every entry must be a finite number. Repair or drop those lines."
        )


def _is_header(
    table: _Table,
    row: Sequence[str],
    label: str | int | None,
    labels: Labels | None,
    header: bool | None,
    drop_columns: Columns | None,
) -> bool:
    """Tell a line of names from a line of numbers; neither is an error, so that no row is lost as a header."""
    if header is not None:
        return header
    numeric = [_is_numeric(text) for text in row]
    if not any(numeric):
        return True
    if all(numeric):
        return False
    explained = _explained(table, label, labels, drop_columns)
    if all(numeric[k] for k in range(table.width) if k not in explained):
        return False
    for k, text in enumerate(row):
        if k not in explained and not numeric[k] and _with_comma(text):
            raise DataError(f"{table.at(table.first_line, k)}: {text.strip()[:40]!r} is not a number. {_POINT}")
    k = numeric.index(False)
    raise DataError(
        f"{table.at(table.first_line, k)}: {row[k].strip()[:40]!r} is not a number, but other fields of this first "
        "line are. If the line holds names, say header=True (:header=true in a data argument); if it holds data, "
        "correct it, or map text labels, e.g. labels={'no': -1, 'yes': 1} (--negative no --positive yes)."
    )


def _explained(table: _Table, label: str | int | None, labels: Labels | None, drop_columns: Columns | None) -> set[int]:
    """Columns whose text makes no header: text labels that the mapping explains, and columns that are dropped."""
    columns: list[str | int] = [] if drop_columns is None else list(split_columns(drop_columns))
    position = -1 if label is None else _integer(label)
    if labels is not None and position is not None:
        columns.append(position)
    by_position = [part for part in columns if not isinstance(part, str) or _integer(part) is not None]
    return {find_column(part, None, table.width, str(table.file)) for part in by_position}


def _is_numeric(text: str) -> bool:
    """Whether the text is meant as a number, be it NaN (which is refused later, with its line)."""
    return as_number(text) is not None or text.strip().lower() in ("nan", "+nan", "-nan")


def _integer(text: str | int) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _find_delimiter(file: Path) -> str:
    """Choose the delimiter that cuts the first lines into equally many fields, best all numbers but one.

    Blanks count only where no other delimiter is there unevenly: they may stand beside any of them.
    """
    with open_text(file) as stream:
        sample = list(islice(_Lines(stream, file), _SAMPLE))
    even: dict[str, bool] = {}  # whether it cuts into numbers
    uneven: dict[str, int] = {}
    for delimiter in _DELIMITERS:
        rows = _cut(sample, delimiter)
        if not rows or len(rows[0]) < 2:
            continue
        if delimiter == " " and uneven and not all(map(_numbers_and_a_label, rows)):
            continue
        if len({len(row) for row in rows}) == 1:
            even[delimiter] = all(_numbers_and_a_label(row) for row in rows[1:])
        else:
            uneven[delimiter] = len(rows[0])
    found = [delimiter for delimiter, numbers in even.items() if numbers] or list(even)
    return found[0] if found else max(uneven, key=lambda delimiter: uneven[delimiter]) if uneven else ","


def _cut(lines: list[str], delimiter: str) -> list[list[str]]:
    """Cut lines into fields; nothing where the quotation marks do not fit."""
    if delimiter == " ":
        lines = [line.strip().replace("\t", " ") for line in lines]
    try:
        return list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return []


def _numbers_and_a_label(row: Sequence[str]) -> bool:
    """Whether at most one field is neither a number nor empty, be its decimals written with a comma."""
    return sum(not (_is_numeric(text) or _with_comma(text) or not text.strip()) for text in row) <= 1


def _with_comma(text: str) -> bool:
    """Whether this is a number but for a comma in place of the point."""
    return re.fullmatch(r"\s*[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?\s*", text) is not None


def write_table(data: Dataset, file: Path, delimiter: str) -> None:
    """Write features (``x1 ... xd`` unless they have names) and label ``y``.

    Every number is written in the shortest form that reads back the same.
    """
    names = [f"x{k + 1}" for k in range(data.d)] if data.names is None else list(data.names)
    for name in names:
        if _is_numeric(name) or name.startswith("#") or "\n" in name or "\r" in name:
            raise DataError(
                f"the column name {name!r} would not be read as a name from the first line of {file}; rename the "
                "column, or write an .npz file."
            )
    with replacing(file) as temporary, open(temporary, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerow([*names, "y"])
        for row, label in zip(data.X, data.y, strict=True):
            stream.write(delimiter.join([*map(repr, row.tolist()), str(int(label))]) + "\n")
