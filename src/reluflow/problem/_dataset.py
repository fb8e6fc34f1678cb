"""Labelled points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_float_array, check_range, check_size, digest, is_number
from .errors import DataError


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Dataset:
    r"""Points :math:`x_i \in \mathbb{R}^d` with labels :math:`y_i \in \{-1, +1\}`.

    The arrays are float64 copies and read-only. Two datasets are equal when their points and labels
    are, whatever their names. Refused: anything that is not a finite real number, labels other than
    -1 and +1, zero points (every statement of the theory excludes them), and one point carrying both
    labels. One class alone is fine; what needs both says so itself.

    Parameters
    ----------
    X : array_like of shape (n, d)
        One point a row.
    y : array_like of shape (n,)
        Labels, -1 or +1.
    name : str, optional
        How to call it in reports.
    parameters : mapping, optional
        How it was made: recorded by the constructions and loaders, shown in reports, not compared.

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

    def __init__(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        name: str | None = None,
        parameters: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        X = as_float_array(X, "X", 2, DataError)
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
        return Dataset(X, y, self.name and f"{self.name}|{step}", {**self.parameters, "steps": history})

    def with_bias(self, value: float) -> Dataset:
        """Append a constant column: a first-layer bias, scaled by ``value``.

        >>> Dataset([[2.0], [-3.0]], [1, -1]).with_bias(0.1).X
        array([[ 2. ,  0.1],
               [-3. ,  0.1]])
        """
        if not (is_number(value) and np.isfinite(value) and value != 0):
            raise DataError(f"with_bias needs a finite non-zero number, not {value!r}: a zero column is no bias.")
        column = np.full((self.n, 1), float(value))
        return self._derived(np.hstack([self.X, column]), self.y, f"with_bias({value!r})")

    def centered(self) -> Dataset:
        """Subtract the mean of all points (both classes together)."""
        return self._derived(self.X - self.X.mean(axis=0), self.y, "centered()")

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
        return f"Dataset{name}: n={self.n} ({self.positives.size} positive, {self.negatives.size} negative), d={self.d}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self.X, self.y, self.name, dict(self.parameters))


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
        elif values.size == 2:
            hint = f" If {values[1]:g} means +1, pass numpy.where(y == {values[1]:g}, 1, -1)."
        elif values.size > 2:
            hint = f" There are {values.size} different values: choose two classes first."
        raise DataError(f"labels must be -1 or +1; y contains {y[first]:g} (first at index {first}).{hint}")


def _check_conflicts(X: Array, y: Array) -> None:
    seen: dict[bytes, int] = {}
    for i, row in enumerate(X + 0.0):  # minus zero and zero are the same coordinate
        first = seen.setdefault(row.tobytes(), i)
        if y[first] != y[i]:
            raise DataError(
                f"samples {first} and {i} are the same point with labels {y[first]:+g} and {y[i]:+g}; "
                "nothing can classify both. Remove one of them."
            )
