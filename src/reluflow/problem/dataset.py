"""Labelled points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from .checks import as_float_array, check_range, check_size, is_number, opened
from .columns import Columns, Step, check_names, find_columns, frame_names, prepare, repeat, row_numbers
from .digest import digest
from .errors import DataError, ProblemError
from .show import Shown
from .types import Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Dataset(Shown):
    r"""Points :math:`x_i \in \mathbb{R}^d` with labels :math:`y_i \in \{-1, +1\}`.

    The arrays are float64 copies and read-only. Two datasets are equal when their points and labels
    are, whatever their names. Refused: anything that is not a finite real number, labels other than
    -1 and +1, zero points (every statement of the theory excludes them), and one point carrying both
    labels. One class alone is fine; what needs both says so itself.

    Parameters
    ----------
    X : array_like of shape (n, d)
        One point a row: an array, lists, a pandas DataFrame (its column names are kept), a PyTorch tensor.
    y : array_like of shape (n,)
        Labels, -1 or +1.
    name : str, optional
        How to call it in reports.
    parameters : mapping, optional
        How it was made: recorded by the constructions and loaders, shown in reports, not compared.
    names : sequence of str, optional
        Names of the columns, used in messages and plots, not compared.

    Attributes
    ----------
    notes : tuple of str
        What may have been overlooked, such as a column of row numbers among the features.

    Examples
    --------
    >>> data = Dataset([[2, 1], [-3, -1]], [1, -1], name="pair")
    >>> data
    Dataset 'pair': n=2 (1 positive, 1 negative), d=2
    >>> data.signed
    array([[2., 1.],
           [3., 1.]])
    >>> Dataset([[2, 1], [-3, -1]], [1, 0])
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.DataError: labels must be -1 or +1; y contains 0 (first at index 1).
    If 0 means -1, pass 2 * y - 1.
    """

    X: Array
    y: Array
    name: str | None
    parameters: Mapping[str, Any]
    names: tuple[str, ...] | None
    notes: tuple[str, ...]
    _steps: tuple[Step, ...]

    def __init__(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        name: str | None = None,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        names: Sequence[str] | None = None,
    ) -> None:
        _check_rows(X, y)
        names = frame_names(X) if names is None else names
        X = as_float_array(X, "X", 2, DataError)
        y = opened(y, "y", DataError)
        _check_labels(y)
        y = as_float_array(y, "y", 1, DataError)
        if X.shape[0] == 0 or X.shape[1] == 0:
            raise DataError(
                f"X has shape {X.shape}: there is nothing in it. At least one sample and one feature are needed."
            )
        if y.shape[0] != X.shape[0]:
            raise DataError(f"X has {X.shape[0]} rows but y has {y.shape[0]} labels; one label a row is needed.")
        if name is not None and not isinstance(name, str):
            raise DataError(f"name must be a string, not {name!r}.")
        check_range(X, "X", DataError)
        zero = np.flatnonzero(~X.any(axis=1))
        if zero.size:
            raise DataError(
                f"X has {zero.size} zero row(s), the first at index {zero[0]}: a zero point can never be classified. "
                "Drop it, or append a constant column to X first (a bias) where zero is a meaningful point."
            )
        _check_conflicts(X, y)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "parameters", MappingProxyType(dict(parameters)))
        object.__setattr__(self, "names", None if names is None else check_names(names, X.shape[1]))
        object.__setattr__(self, "notes", tuple(row_numbers(X, self.names)))
        object.__setattr__(self, "_steps", ())

    # -- what it is ---------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @cached_property
    def signed(self) -> Array:
        """The points ``y_i x_i``, read-only."""
        z = self.X * self.y[:, None]
        z.setflags(write=False)
        return z

    @cached_property
    def norms(self) -> Array:
        """Euclidean norms of the points."""
        r: Array = np.linalg.norm(self.X, axis=1)
        r.setflags(write=False)
        return r

    @property
    def positives(self) -> npt.NDArray[np.intp]:
        """Indices of the points with label +1 (I+)."""
        return np.flatnonzero(self.y > 0)

    @property
    def negatives(self) -> npt.NDArray[np.intp]:
        """Indices of the points with label -1 (I-)."""
        return np.flatnonzero(self.y < 0)

    def require_both_classes(self, what: str) -> None:
        """Raise a `DataError` naming ``what`` unless both labels occur."""
        for sign, there in ((+1, self.positives.size), (-1, self.negatives.size)):
            if not there:
                raise DataError(f"{what} needs both classes, but no sample has label {sign:+d} (n = {self.n}).")

    # -- what can be made of it ---------------------------------------------------------------------

    def _derived(self, X: Array, y: Array, step: str) -> Dataset:
        history = (*self.parameters.get("steps", ()), step)
        out = Dataset(X, y, self.name and f"{self.name}|{step}", {**self.parameters, "steps": history}, self.names)
        return out._with(notes=self.notes, _steps=self._steps)

    def _with(self, **values: Any) -> Dataset:
        """Set what does not come from the points alone; for a dataset that nobody else has seen yet."""
        for key, value in values.items():
            object.__setattr__(self, key, value)
        return self

    @staticmethod
    def from_frame(
        frame: Any,
        *,
        label: str | int | None = None,
        labels: Mapping[Any, int] | None = None,
        name: str | None = None,
        **preparation: Any,
    ) -> Dataset:
        """Take features and labels out of a data frame of pandas or polars; the names of the columns are kept.

        Parameters
        ----------
        frame : DataFrame
            Numbers in every column that is used: missing values and texts are refused by column and row.
        label : str or int, optional
            The label column, by name or position; default: the one called y, label, labels, target or class, else the
            last.
        labels : mapping, optional
            Which value means -1 and which +1, ``{"cat": -1, "dog": +1}``; without it labels are -1 and +1.
        name : str, optional
            How to call it in reports.
        **preparation
            ``drop_columns``, ``center``, ``standardize``, ``bias`` as for `reluflow.load`.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"size": [1.0, 2.0], "kind": ["cat", "dog"], "cost": [3, 1]})
        >>> data = Dataset.from_frame(frame, label="kind", labels={"cat": -1, "dog": 1})
        >>> data.names, data.y
        (('size', 'cost'), array([-1.,  1.]))
        """
        from .frames import from_frame

        return from_frame(frame, label=label, labels=labels, name=name, **preparation)

    @staticmethod
    def prepared_from(
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        name: str | None = None,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        names: Sequence[str] | None = None,
        **preparation: Any,
    ) -> Dataset:
        """Build a dataset of points that need preparation first: a zero point may become one with a bias.

        >>> Dataset.prepared_from([[0.0], [2.0]], [-1, 1], bias=True).X
        array([[0., 1.],
               [2., 1.]])
        """
        _check_rows(X, y)
        names = frame_names(X) if names is None else names
        columns = as_float_array(X, "X", 2, DataError)
        if not columns.size:
            return Dataset(columns, y)  # which says what is wrong
        done = prepare(columns, None if names is None else check_names(names, columns.shape[1]), **preparation)
        parameters = dict(parameters)
        if done.words:
            parameters["steps"] = (*parameters.get("steps", ()), *done.words)
            name = name and "|".join((name, *done.words))
        return Dataset(done.X, y, name, parameters, done.names)._with(notes=done.notes, _steps=done.steps)

    def prepared(
        self,
        *,
        drop_columns: Columns | None = None,
        center: bool = False,
        standardize: bool = False,
        bias: float | bool | None = None,
    ) -> Dataset:
        """Drop columns, centre or standardise the others, append a constant one; see `reluflow.load`.

        >>> data = Dataset([[1.0, 7.0], [3.0, 7.0]], [1, -1], names=["size", "id"])
        >>> data.prepared(drop_columns="id", standardize=True, bias=0.5).X
        array([[-1. ,  0.5],
               [ 1. ,  0.5]])
        """
        dropped = [] if drop_columns is None else find_columns(drop_columns, self.names, self.d, "X")
        if dropped and self._steps:
            raise DataError(
                f"drop_columns comes before {', '.join(self.parameters['steps'])}, which was done already; "
                "drop the columns first."
            )
        out = Dataset.prepared_from(
            self.X,
            self.y,
            self.name,
            self.parameters,
            self.names,
            drop_columns=dropped or None,
            center=center,
            standardize=standardize,
            bias=bias,
            notes=None if dropped else self.notes,
        )
        return out._with(_steps=(*self._steps, *out._steps))

    def transform(self, points: npt.ArrayLike) -> Array:
        """Do to new points what was done to these: subtract the same means, divide by the same scales, append the bias.

        Parameters
        ----------
        points : array_like of shape (m, d)
            The same columns, before the preparation and without those that were dropped. Of a data frame the columns
            are taken by name.

        Examples
        --------
        >>> data = Dataset([[1.0], [3.0]], [1, -1]).prepared(standardize=True, bias=1.0)
        >>> data.transform([[5.0]])
        array([[3., 1.]])
        """
        from .frames import taken

        if self.names is not None and frame_names(points) is not None:
            biases = sum(kind == "bias" for kind, _ in self._steps)
            wanted = self.names[: self.d - biases]
            there = frame_names(points) or []
            points = taken(points, [find_columns([name], there, len(there), "the frame")[0] for name in wanted])
        return repeat(self._steps, as_float_array(points, "points", 2, DataError))

    def with_bias(self, value: float) -> Dataset:
        """Append a constant column: a first-layer bias, scaled by ``value``.

        >>> Dataset([[2.0], [-3.0]], [1, -1]).with_bias(0.1).X
        array([[ 2. ,  0.1],
               [-3. ,  0.1]])
        """
        if not (is_number(value) and np.isfinite(value) and value != 0):
            raise DataError(f"with_bias needs a finite non-zero number, not {value!r}: a zero column is no bias.")
        return self.prepared(bias=value)

    def centered(self) -> Dataset:
        """Subtract the mean of all points (both classes together)."""
        return self.prepared(center=True)

    def standardized(self) -> Dataset:
        """Subtract the mean of every column and divide by its standard deviation (that of the population)."""
        return self.prepared(standardize=True)

    def symmetrized(self) -> Dataset:
        """Add the mirror image ``(-x, -y)`` of every sample.

        >>> Dataset([[2.0, 1.0]], [1]).symmetrized().X
        array([[ 2.,  1.],
               [-2., -1.]])
        """
        return self._derived(np.vstack([self.X, -self.X]), np.concatenate([self.y, -self.y]), "symmetrized()")

    def flipped(self) -> Dataset:
        """Exchange the two labels."""
        return self._derived(self.X, -self.y, "flipped()")

    def subset(self, index: npt.ArrayLike) -> Dataset:
        """Keep the samples named by ``index`` (integers in the order wanted, or a boolean mask)."""
        idx = np.asarray(index)
        if idx.ndim != 1 or idx.dtype.kind not in "iub" or idx.size == 0:
            raise DataError(f"subset needs a non-empty list of indices or a boolean mask, not {index!r}.")
        if idx.dtype.kind == "b":
            if idx.size != self.n:
                raise DataError(f"the mask has {idx.size} entries for {self.n} samples.")
            idx = np.flatnonzero(idx)
        if idx.size == 0 or idx.min() < -self.n or idx.max() >= self.n:
            raise DataError(f"subset needs at least one index, all between {-self.n} and {self.n - 1}.")
        check_size("the subset", idx.size, self.d)
        return self._derived(self.X[idx], self.y[idx], f"subset({idx.size} of {self.n})")

    # -- identity -----------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """SHA-256 of the points and labels."""
        return digest("Dataset", self.X, self.y)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dataset):
            return NotImplemented
        return np.array_equal(self.X, other.X) and np.array_equal(self.y, other.y)

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        notes = "".join(f"\n  note: {note}" for note in self.notes)
        sizes = f"n={self.n} ({self.positives.size} positive, {self.negatives.size} negative), d={self.d}"
        return f"Dataset{name}: {sizes}{notes}"

    def __reduce__(self) -> tuple[Any, ...]:
        made = (self.X, self.y, self.name, dict(self.parameters), self.names)
        return Dataset, made, {"notes": self.notes, "_steps": self._steps}


def require_dataset(data: object) -> None:
    """Raise a `ProblemError` unless this is a `Dataset`."""
    if not isinstance(data, Dataset):
        raise ProblemError(f"data must be a Dataset, not {type(data).__name__}; build one with Dataset(X, y).")


def _check_rows(X: Any, y: Any) -> None:
    """Refuse a data frame and a series whose rows are numbered differently: which belongs to which is not clear."""
    rows, labels = (getattr(part, "index", None) if hasattr(part, "iloc") else None for part in (X, y))
    if rows is None or labels is None or len(rows) != len(labels) or rows.equals(labels):
        return
    first = next(k for k, (row, label) in enumerate(zip(rows, labels, strict=True)) if row != label)
    raise DataError(
        f"the rows of X and y have different indices (in place {first}: {rows[first]} and {labels[first]}); "
        "pass y.loc[X.index] to put the labels in the order of X, or y.to_numpy() to go by position."
    )


def _check_labels(labels: Any) -> None:
    y = np.asarray(labels)
    if y.dtype.kind == "b":
        raise DataError("labels are booleans; they must be -1 or +1. Pass numpy.where(y, 1, -1).")
    if y.dtype.kind not in "iuf":
        found = ", ".join(repr(str(v)) for v in np.unique(y.astype(str))[:4])
        raise DataError(
            f"labels are not numbers (found {found}); they must be -1 or +1. "
            f"Pass numpy.where(y == {found.split(', ')[0]}, 1, -1)."
        )
    bad = ~((y == 1) | (y == -1))
    if y.ndim == 1 and bad.any():
        first = int(np.flatnonzero(bad)[0])
        values = np.unique(y)
        hint = ""
        if set(values.tolist()) <= {0, 1}:
            hint = " If 0 means -1, pass 2 * y - 1."
        elif np.all(np.abs(np.abs(values) - 1) < 1e-3):
            hint = " If rounding is all that is wrong, pass numpy.rint(y)."
        elif values.size == 2:
            hint = f" If {_exact(values[1])} means +1, pass numpy.where(y == {_exact(values[1])}, 1, -1)."
        elif values.size > 2:
            hint = f" There are {values.size} different values: choose two classes first."
        raise DataError(f"labels must be -1 or +1; y contains {_exact(y[first])} (first at index {first}).{hint}")


def _exact(value: Any) -> str:
    """Write a number with as many digits as it takes, and no more."""
    number = value.item()
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


def _check_conflicts(X: Array, y: Array) -> None:
    seen: dict[bytes, int] = {}
    for i, row in enumerate(X + 0.0):  # minus zero and zero are the same coordinate
        first = seen.setdefault(row.tobytes(), i)
        if y[first] != y[i]:
            raise DataError(
                f"samples {first} and {i} are the same point with labels {y[first]:+g} and {y[i]:+g}; "
                "nothing can classify both. Remove one of them."
            )
