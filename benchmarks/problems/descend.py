"""Take full-batch steps of gradient descent, one thread: `reluflow.descend` beside the same loop in PyTorch and NumPy.

The error is the relative difference of the final weights from NumPy in float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import reluflow as rf
from benchmarks.measure import Case, Cells, Target
from benchmarks.nets import descended

TITLE = "Gradient descent"
TASK = "descend"


def _start(X: np.ndarray, y: np.ndarray, p: int, steps: int, dtype: str) -> tuple[rf.Problem, int, str]:
    rng = np.random.default_rng(0)
    net = rf.Network(1e-2 * rng.standard_normal((p, X.shape[1])), 1e-2 * rng.standard_normal(p))
    return rf.Problem(rf.Dataset(X, y), net), steps, dtype


def _random(n: int, d: int, p: int, steps: int, dtype: str) -> Case:
    def make() -> tuple[rf.Problem, int, str]:
        rng = np.random.default_rng(1)
        X = rng.standard_normal((n, d)) / np.sqrt(d)
        return _start(X, np.where(X @ rng.standard_normal(d) > 0, 1.0, -1.0), p, steps, dtype)

    return Case(make, 60.0)


def _mnist(dtype: str) -> Case:
    def make() -> tuple[rf.Problem, int, str]:
        data = rf.data.mnist((0, 1), center=True)
        return _start(data.X, data.y, 50, 50, dtype)

    return Case(make, 60.0)


_KINDS = ("float64", "float32")
CASES = {
    "random 10x3, p=5, float64": _random(10, 3, 5, 20, "float64"),
    **{f"random 500x20, p=100, {kind}": _random(500, 20, 100, 2000, kind) for kind in _KINDS},
    **{f"MNIST 0/1 12665x784, p=50, {kind}": _mnist(kind) for kind in _KINDS},
}
SMOKE = "random 10x3, p=5, float64"
PICTURES = ("memory",)


def reference(problem: rf.Problem, steps: int, _: str) -> tuple[np.ndarray, np.ndarray]:
    """Take the steps in NumPy."""
    return descended(problem, 0.1, steps)


def error(_: object, exact: tuple[np.ndarray, np.ndarray], found: tuple[np.ndarray, np.ndarray]) -> float:
    """Relative difference of the weights."""
    return float(max(np.abs(x - y).max() / np.abs(y).max() for x, y in zip(found, exact, strict=True)))


def targets(cells: Cells) -> Iterator[Target]:
    """Ask for the same steps."""
    for case in CASES:
        if cells.get(case) is not None and case != SMOKE:
            most = 1e-9 if case.endswith("64") else 1e-3
            yield Target(f"same steps as NumPy, {case}", cells.figure("error", case), "<=", most)
