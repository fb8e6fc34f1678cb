"""Enumerate the cells of the hyperplanes through the origin that Gaussian points define, one thread.

The error is the difference from the number that general position has (Cover), relatively.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import Case
from reluflow.sectors import cell_bound

TITLE = "Cells of an arrangement"
TASK = "cells"


def _points(n: int, d: int) -> tuple[np.ndarray]:
    return (np.random.default_rng(n).normal(size=(n, d)),)


CASES = {
    f"{n}x{d}": Case(partial(_points, n, d), 30.0)
    for n, d in ((8, 3), (10_000, 2), (300, 3), (60, 4), (35, 5), (18, 8), (17, 10), (16, 16))
}
SMOKE = "8x3"


def error(given: tuple[np.ndarray], _: None, count: int) -> float:
    """Relative difference from the number in general position."""
    return abs(count / cell_bound(given[0]) - 1.0)
