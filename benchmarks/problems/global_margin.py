"""Bracket the largest normalised margin of any network, one thread; the error is the width of the bracket, relatively.

``separable`` has a linear teacher with margin 0.1; ``product`` is labelled by the sign of x_1 x_d, which no linear
classifier fits; ``random`` has random labels, the hardest there are.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import Case
from reluflow import Dataset
from reluflow.margins import GlobalMargin

TITLE = "Global margin"
TASK = "global_margin"
_DRAWS = (
    ("separable", 100, 2, 0.5),
    ("separable", 1000, 2, 0.5),
    ("separable", 1000, 2, 0.0),
    ("separable", 10_000, 2, 0.5),
    ("product", 1000, 2, 0.0),
    ("random", 100, 2, 0.5),
    ("random", 1000, 2, 0.5),
    ("separable", 50, 3, 0.5),
    ("separable", 200, 3, 0.5),
    ("separable", 300, 3, 0.0),
    ("product", 300, 3, 0.5),
    ("random", 50, 3, 0.5),
    ("random", 200, 3, 0.5),
    ("separable", 50, 5, 0.5),
    ("random", 30, 5, 0.5),
    ("product", 100, 5, 0.5),
    ("separable", 50, 10, 0.5),
    ("random", 30, 10, 0.5),
    ("separable", 60, 30, 0.0),
    ("separable", 100, 50, 0.5),
)


def _draw(kind: str, n: int, d: int, slope: float) -> tuple[Dataset, float]:
    rng = np.random.default_rng(n + 1000 * d)
    X = rng.normal(size=(n, d))
    teacher = np.ones(d) / np.sqrt(d)
    if kind == "separable":
        y = np.sign(X @ teacher)
        return Dataset(X + 0.1 * y[:, None] * teacher, y), slope
    return Dataset(X, np.sign(X[:, 0] * X[:, -1]) if kind == "product" else rng.choice([-1, 1], n)), slope


CASES = {
    f"{kind} {n}x{d}, slope {slope:g}": Case(partial(_draw, kind, n, d, slope), 30.0)
    for kind, n, d, slope in (("separable", 10, 3, 0.5), *_DRAWS)
}
SMOKE = "separable 10x3, slope 0.5"


def error(_: tuple[Dataset, float], __: None, found: GlobalMargin) -> float:
    """Relative width of the bracket."""
    return float(found.gap / found.upper)
