"""What a sweep has found: a table, arrays, pictures."""

from __future__ import annotations

import csv
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..data.registry import suggestion
from ..problem import ProblemError
from ..problem.files import write_to, writing
from ..problem.words import count
from .ledger import STATES, Ledger, Status
from .plan import Plan, plan_of
from .store import PLOTS, Tail, read_array, read_spec, tails

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Column = npt.NDArray[Any]

_TABLES = (".parquet", ".csv", ".nc")
_OFF = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # as JSON says them


@dataclass(frozen=True, eq=False, repr=False)
class SweepResults:
    """What the folder of a sweep holds now; `open_sweep` again to see what came since.

    Attributes
    ----------
    folder : Path
    spec : mapping
        What the spec says.
    plan : Plan
        Which problems there are.

    Examples
    --------
    >>> import tempfile
    >>> from reluflow import Sweep
    >>> sweep = Sweep(data={"source": "EX1"}, network={"width": [2, 3], "seed": [0, 1]}, measures=["align"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = sweep.run(folder)
    ...     print(found)
    ...     table = found.table()
    Results of 4 problems: 4 done
    >>> table["network.width"].tolist(), table["network.seed"].tolist()
    ([2, 3, 2, 3], [0, 0, 1, 1])
    >>> (table["align.aligned"] <= table["network.width"]).all()
    np.True_
    """

    folder: Path
    spec: Mapping[str, Any]
    plan: Plan
    id: str

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the measures."""
        return tuple(self.spec["measures"])

    def status(self) -> Status:
        """Say how far the sweep is."""
        ledger = Ledger(self.folder, self.id, len(self.plan), self.labels)
        ledger.refresh()
        return ledger.status()

    @cached_property
    def _rows(self) -> dict[int, dict[str, Any]]:
        return _merged(tails(self.folder), self.id, self.labels)

    def table(self) -> dict[str, Column]:
        """Return the rows there are as columns, in the order of the problems.

        ``index``, ``fingerprint``, every parameter, ``state`` (done, undecided, out of time, out of memory, failed: the
        worst of the measures), ``seconds``, ``message`` where something went wrong, and the values of the measures.
        Numbers that are not there are nan; texts, and true or false, are None.
        """
        rows = [self._rows[index] for index in sorted(self._rows)]
        index = np.array(sorted(self._rows), dtype=np.int64)
        found: dict[str, Column] = {"index": index, "fingerprint": _column([row["f"] for row in rows])}
        found |= self._parameters(index)
        found["state"] = _column([worst(row["s"].values()) for row in rows])
        found["seconds"] = np.array([row["t"] for row in rows], dtype=np.float64)
        found["message"] = _column(["; ".join(dict.fromkeys(row["e"].values())) or None for row in rows])
        for label in self.labels:
            names = dict.fromkeys(name for row in rows for name in row["v"].get(label, ()))
            for name in names:
                found[f"{label}.{name}"] = _column([row["v"].get(label, {}).get(name) for row in rows])
        return found

    def _parameters(self, index: npt.NDArray[np.int64]) -> dict[str, Column]:
        places = np.unravel_index(index, self.plan.shape) if self.plan.groups else ()
        found = {name: _filled(value, index.size) for name, value in self.plan.fixed.items()}
        for group, place in zip(self.plan.groups, places, strict=True):
            for axis in group:
                found[axis.name] = _column(list(axis.values))[place]
        return dict(sorted(found.items()))

    def column(self, name: str, table: Mapping[str, Column] | None = None) -> str:
        """Return the full name of a column: ``margin`` is ``limit.margin`` where there is one only."""
        known = list(self.table() if table is None else table)
        found = [one for one in known if one == name] or [one for one in known if one.partition(".")[2] == name]
        if len(found) > 1:
            raise ProblemError(f"{name!r} may be {' or '.join(found)}; say which.")
        if not found:
            near = suggestion(name, [*known, *(one.partition(".")[2] for one in known)]) or "."
            raise ProblemError(f"there is no column {name!r}{near} There are {', '.join(known)}.")
        return found[0]

    def failures(self) -> dict[str, int]:
        """Count the messages of what went wrong, the most frequent first."""
        said = Counter(text for row in self._rows.values() for text in dict.fromkeys(row["e"].values()))
        return dict(said.most_common())

    def arrays_at(self, index: int) -> dict[str, Column]:
        """Return the arrays that were kept of a problem, by ``measure.name``."""
        places = self._rows.get(int(index), {}).get("a", {})
        return {name: read_array(self.folder, place) for name, place in places.items()}

    def to_dataframe(self) -> Any:
        """Return the table as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise ProblemError("to_dataframe needs pandas, which is not installed; pip install pandas.") from None
        return pd.DataFrame(self.table())

    def xarray(self) -> Any:
        """Return everything that was measured as an `xarray.Dataset` with the axes as dimensions.

        Parameters that go together are one dimension, named after the first of them. Numbers, and true or false, are
        nan where there is no row; texts are empty.
        """
        try:
            import xarray
        except ImportError:
            raise ProblemError(
                "xarray() needs xarray, which is not installed; pip install 'reluflow[arrays]' brings it."
            ) from None
        table, short = self.table(), self._short()
        dims = tuple(short[group[0].name] for group in self.plan.groups)
        coords = {
            short[axis.name]: (dim, _storable(_column(list(axis.values))))
            for group, dim in zip(self.plan.groups, dims, strict=True)
            for axis in group
        }
        measured = ["state", "seconds", *(name for name in table if name.partition(".")[0] in self.labels)]
        values = {name: (dims, self._spread(table["index"], table[name])) for name in measured}
        fixed = {name: json.dumps(value) for name, value in self.plan.fixed.items()}
        return xarray.Dataset(values, coords, {"title": self.spec.get("title", ""), "id": self.id, **fixed})

    def _spread(self, index: npt.NDArray[np.int64], column: Column) -> Column:
        values = _storable(column)
        whole = np.full(len(self.plan), "" if values.dtype.kind == "U" else np.nan, dtype=values.dtype)
        whole[index] = values
        return whole.reshape(self.plan.shape)

    def _short(self) -> dict[str, str]:
        """Name axes without their section where that is clear."""
        names = [axis.name for axis in self.plan.axes]
        last = Counter(name.partition(".")[2] for name in names)
        return {name: name.partition(".")[2] if last[name.partition(".")[2]] == 1 else name for name in names}

    def collect(self, path: str | os.PathLike[str]) -> Path:
        """Write the table to a file: ``.parquet``, ``.csv``, or ``.nc`` (netCDF, with the axes as dimensions)."""
        file = write_to(path, _TABLES)
        if not self._rows:
            raise ProblemError(f"{self.folder} has no rows yet; run the sweep first.")
        with writing(file, *_TABLES) as draft:
            if file.suffix.lower() == ".parquet":
                _write_parquet(self.table(), draft)
            elif file.suffix.lower() == ".csv":
                _write_csv(self.table(), draft)
            else:
                self.xarray().to_netcdf(draft, engine="scipy")
        return file

    def plot(self, x: str, y: str, **options: Any) -> Figure:
        """Draw the sweep: `reluflow.sweep.plot_sweep` with the options ``color``, ``panel`` and ``path``."""
        from .plot import plot_sweep

        return plot_sweep(self, x, y, **options)

    def picture_file(self, *words: str | None) -> Path:
        """Return where a picture of these columns goes: the page of the sweep shows all that are there."""
        folder = self.folder / PLOTS
        try:
            folder.mkdir(exist_ok=True)
        except OSError as exc:
            raise ProblemError(f"{folder} cannot be made: {exc.strerror or exc}; name a file elsewhere.") from None
        return folder / f"{' '.join(word.replace('/', ' ') for word in words if word)}.png"

    def __repr__(self) -> str:
        found = self.status()
        states = [f"{number} {state}" for state, number in found.states.items() if number]
        states += [f"{found.left} left"] if found.left else []
        return f"Results of {count(found.total, 'problem')}: {', '.join(states)}"


def open_sweep(folder: str | os.PathLike[str]) -> SweepResults:
    """Open the folder of a sweep, finished or not.

    Parameters
    ----------
    folder : path
        What ``reluflow sweep run SPEC --out FOLDER``, or `Sweep.run`, has made.

    Examples
    --------
    >>> open_sweep("nowhere")
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.ProblemError: nowhere is no folder; reluflow sweep run SPEC --out nowhere makes one.
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise ProblemError(f"open_sweep needs the folder of a sweep, not {type(folder).__name__}; give its path.")
    found = read_spec(folder)
    spec = found["spec"]
    plan = plan_of(spec, spec.get("zip", ()), spec.get("seed", 0))
    if len(plan) != found["problems"]:
        raise ProblemError(f"{folder} was made by reluflow {found.get('version')}, which reads its spec differently.")
    return SweepResults(Path(folder), spec, plan, found["id"])


def worst(states: Any) -> str:
    """Return the worst of some states.

    >>> worst(["done", "undecided"])
    'undecided'
    """
    return str(max(states, key=STATES.index))


def _merged(files: Sequence[Tail], spec: str, labels: Sequence[str]) -> dict[int, dict[str, Any]]:
    """Join the rows of all files: of several for one measure that of the newest code, one that is done, the last."""
    taken: dict[tuple[int, str], tuple[bool, bool, float]] = {}
    rows: dict[int, dict[str, Any]] = {}
    found = [(tail, row) for tail in files for row in tail.news() if "i" in row]
    mine = [(tail.header, row) for tail, row in found if tail.header and tail.header["spec"] == spec]
    newest: dict[str, str] = {}
    for header in sorted({id(h): h for h, _ in mine}.values(), key=lambda h: h["at"]):
        newest |= header["codes"]
    for header, row in mine:
        for label in row["s"]:
            rank = header["codes"].get(label) == newest.get(label), row["s"][label] == "done", row["at"]
            key = row["i"], label
            if label not in labels or (key in taken and taken[key] >= rank):
                continue
            whole = rows.setdefault(row["i"], {"f": row["f"], "s": {}, "v": {}, "e": {}, "a": {}, "t": 0.0})
            whole["t"] = row["t"] if len(row["s"]) == len(labels) else max(whole["t"], row["t"])
            _replace(whole, row, label)
            taken[key] = rank
    return {index: row for index, row in rows.items() if len(row["s"]) == len(labels)}


def _replace(whole: dict[str, Any], row: Mapping[str, Any], label: str) -> None:
    whole["s"][label] = row["s"][label]
    for part in ("v", "e"):
        whole[part].pop(label, None)
        if label in row.get(part, ()):
            whole[part][label] = row[part][label]
    whole["a"] = {name: place for name, place in whole["a"].items() if name.partition(".")[0] != label}
    whole["a"] |= {name: place for name, place in row.get("a", {}).items() if name.partition(".")[0] == label}


# -- columns ---------------------------------------------------------------------------------------------------


def _column(values: list[Any]) -> Column:
    """Make a column: whole numbers, numbers (nan for none), true and false, else whatever it is.

    >>> _column([1, None, "inf"]).tolist(), _column([True, False]).dtype, _column(["a", None]).tolist()
    ([1.0, nan, inf], dtype('bool'), ['a', None])
    """
    kinds = {type(value) for value in values}
    if kinds == {bool} or (kinds == {int} and max(map(abs, values)) < 2**63):
        return np.array(values, dtype=bool if kinds == {bool} else np.int64)
    if kinds and kinds != {type(None)} and kinds <= {int, float, str, type(None)}:
        numbers = [math.nan if v is None else _OFF.get(v) if isinstance(v, str) else v for v in values]
        if None not in numbers:
            return np.array(numbers, dtype=np.float64)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _filled(value: Any, size: int) -> Column:
    return np.repeat(_column([value]), size) if not isinstance(value, list) else _column([json.dumps(value)] * size)


def _storable(column: Column) -> Column:
    """Return a column as numbers or texts, which every format knows; true and false become 1 and 0."""
    if column.dtype.kind in "iufb":
        return column.astype(np.float64)
    values = column.tolist()
    if all(value is None or isinstance(value, bool) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    return np.array(["" if v is None else v if isinstance(v, str) else json.dumps(v) for v in values])


def _write_csv(table: Mapping[str, Column], file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(table)
        out.writerows(zip(*(column.tolist() for column in table.values()), strict=True))


def _write_parquet(table: Mapping[str, Column], file: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ProblemError(
            "parquet needs pyarrow, which is not installed; pip install 'reluflow[cluster]' brings it; .csv needs none."
        ) from None
    columns = {}
    for name, column in table.items():
        plainly = column.dtype.kind != "O" or len({type(v) for v in column.tolist()} - {type(None)}) <= 1
        values = column.tolist() if plainly else [None if v is None else json.dumps(v) for v in column.tolist()]
        columns[name] = pyarrow.array(column if column.dtype.kind != "O" else values)
    parquet.write_table(pyarrow.table(columns), file)
