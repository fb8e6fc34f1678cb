"""Explain a table as it comes: standardised, with a bias, 50 neurons, the default start, one thread.

A limit, or an answer with its reason, is what is asked for; the headline is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.measure import Case, Cells, Target

TITLE = "Explain a table"
TASK = "explain"
_TABLES = {
    "iris 0/1": ("load_iris", (0, 1), 10.0),
    "iris 1/2": ("load_iris", (1, 2), 10.0),
    "wine 0/1": ("load_wine", (0, 1), 10.0),
    "breast cancer": ("load_breast_cancer", (0, 1), 10.0),
    "digits 0/1": ("load_digits", (0, 1), 20.0),
}


def _table(load: str, pair: tuple[int, int], slope: float) -> tuple[np.ndarray, np.ndarray, float]:
    from sklearn import datasets

    found = getattr(datasets, load)()
    keep = np.isin(found.target, pair)
    return found.data[keep], np.where(found.target[keep] == pair[1], 1.0, -1.0), slope


_MOST = {f"{name}, slope {slope:g}": most for name, (_, _, most) in _TABLES.items() for slope in (0.0, 0.1)}
CASES = {
    f"{name}, slope {slope:g}": Case(partial(_table, load, pair, slope), 60.0)
    for name, (load, pair, _) in _TABLES.items()
    for slope in (0.0, 0.1)
}
SMOKE = "iris 0/1, slope 0"


def error(_: tuple[np.ndarray, np.ndarray, float], __: None, ___: str) -> None:
    """There is nothing to measure an explanation by."""


def targets(cells: Cells) -> Iterator[Target]:
    """Ten seconds each, digits twenty."""
    for case, most in _MOST.items():
        if (cell := cells.get(case)) is not None:
            note = cell["figures"].get("limit", cell["note"])
            yield Target(f"explain, {case}", cells.figure("cpu", case), "<=", most, " s", note)
