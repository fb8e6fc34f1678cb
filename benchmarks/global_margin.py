"""Times and gaps of the global margin and of the enumeration of cells.

    python benchmarks/global_margin.py            everything (some minutes)
    python benchmarks/global_margin.py --quick    what takes seconds

Data: ``separable`` has a linear teacher with margin 0.1; ``product`` is labelled by the sign of x_1 x_d, which no
linear classifier fits; ``random`` has random labels, the hardest there are.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from reluflow import Dataset, global_max_margin
from reluflow.sectors import cell_bound, enumerate_cells

QUICK = [
    ("separable", 100, 2, 0.5),
    ("separable", 1000, 2, 0.5),
    ("separable", 1000, 2, 0.0),
    ("separable", 10_000, 2, 0.5),
    ("product", 1000, 2, 0.0),
    ("random", 100, 2, 0.5),
    ("separable", 50, 3, 0.5),
    ("separable", 200, 3, 0.5),
    ("separable", 300, 3, 0.0),
    ("product", 300, 3, 0.5),
    ("random", 50, 3, 0.5),
    ("separable", 50, 5, 0.5),
    ("random", 30, 5, 0.5),
    ("separable", 50, 10, 0.5),
    ("random", 30, 10, 0.5),
    ("separable", 60, 30, 0.0),
]
SLOW = [("random", 1000, 2, 0.5), ("random", 200, 3, 0.5), ("separable", 100, 50, 0.5), ("product", 100, 5, 0.5)]
CELLS = [(10_000, 2), (300, 3), (60, 4), (35, 5), (18, 8), (17, 10), (16, 16)]


def draw(kind: str, n: int, d: int) -> Dataset:
    rng = np.random.default_rng(n + 1000 * d)
    X = rng.normal(size=(n, d))
    teacher = np.ones(d) / np.sqrt(d)
    if kind == "separable":
        y = np.sign(X @ teacher)
        return Dataset(X + 0.1 * y[:, None] * teacher, y)
    return Dataset(X, np.sign(X[:, 0] * X[:, -1]) if kind == "product" else rng.choice([-1, 1], n))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the global margin and the enumeration of cells.")
    parser.add_argument("--quick", action="store_true", help="leave out what takes more than seconds")
    quick = parser.parse_args().quick
    global_max_margin(draw("separable", 10, 3), 0.5)  # imports
    print(f"{'data':<10} {'n':>6} {'d':>3} {'slope':>5} {'margin':>15} {'gap':>8} {'exact':>6} {'neurons':>7} "
          f"{'weights':>7} {'rounds':>6} {'seconds':>8}  method")  # fmt: skip
    for kind, n, d, slope in QUICK if quick else QUICK + SLOW:
        data = draw(kind, n, d)
        start = time.perf_counter()
        best = global_max_margin(data, slope)
        seconds = time.perf_counter() - start
        print(
            f"{kind:<10} {n:>6} {d:>3} {slope:>5} {best.lower:>15.9e} {best.gap / best.upper:>8.1e} "
            f"{best.exact!s:>6} {best.network.p:>7} {int((best.weights > 0).sum()):>7} {best.iterations:>6} "
            f"{seconds:>8.2f}  {best.method}",
            flush=True,
        )
    print(f"\n{'cells of':>10} {'n':>6} {'d':>3} {'found':>8} {'expected':>8} {'seconds':>8}")
    for n, d in CELLS[1:] if quick else CELLS:
        X = np.random.default_rng(n).normal(size=(n, d))
        start = time.perf_counter()
        found = len(enumerate_cells(X, budget=200_000))
        print(f"{'Gaussian':>10} {n:>6} {d:>3} {found:>8} {cell_bound(X):>8} {time.perf_counter() - start:>8.2f}")


if __name__ == "__main__":
    main()
