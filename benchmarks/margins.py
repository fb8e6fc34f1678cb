"""Hard margins: speed and accuracy of `reluflow.margins.hard_margin` beside other solvers, in one run, as ratios.

    python benchmarks/margins.py [--quick] [--json] [--only NAME]

Every method solves the same problem, min |w| subject to Z w >= 1, on every problem. Times are the best of a few
runs, taken in turns, on one thread. Errors are distances between unit vectors: to a reference of 60 digits whose
optimality (positive multipliers, no violated constraint) is checked in integer arithmetic. ``svc`` needs both
labels and has an intercept; it gets the points and their mirror images, for which the intercept is 0.
"""

# ruff: noqa: E402  (the number of threads must be set before numpy is imported)
from __future__ import annotations

import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import argparse
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reluflow import DataError, NotSeparable
from reluflow.margins import hard_margin

Array = npt.NDArray[np.float64]
Method = Callable[[Array], Array]


# -- problems -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """A named set of points; ``slow`` ones are left out of a quick run."""

    name: str
    make: Callable[[], Array]
    runs: int = 5
    slow: bool = False


def teacher(n: int, d: int, seed: int = 0) -> Array:
    """Gaussian points on the right side of a teacher, moved away from it by a tenth."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(d)
    t /= np.linalg.norm(t)
    X = rng.standard_normal((n, d))
    Z: Array = X * np.sign(X @ t)[:, None] + 0.1 * t
    return Z


def flat(n: int, d: int, size: float, seed: int = 0) -> Array:
    """Points in a hyperplane, lifted off it by ``size`` to twice that: a relative margin below ``size``."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(d)
    t /= np.linalg.norm(t)
    X = rng.standard_normal((n, d))
    Z: Array = X - np.outer(X @ t, t) + size * (1 + rng.random((n, 1))) * t
    return Z


def digits(minus: int, plus: int) -> Array:
    """Two digits of MNIST, pixels in [0, 1], centred."""
    from reluflow.data import mnist

    return mnist((minus, plus), center=True).signed


PROBLEMS = (
    Problem("random 20x2", lambda: teacher(20, 2)),
    Problem("random 500x20", lambda: teacher(500, 20)),
    Problem("random 100x50", lambda: teacher(100, 50)),
    Problem("random 2000x200", lambda: teacher(2000, 200), runs=9),
    Problem("margin 1e-7, 300x20", lambda: flat(300, 20, 1e-6)),
    Problem("random 100000x20", lambda: teacher(100_000, 20), runs=3),
    Problem("MNIST 0/1", lambda: digits(0, 1), runs=3, slow=True),
    Problem("MNIST 1/7", lambda: digits(1, 7), runs=3, slow=True),
    Problem("MNIST 3/8", lambda: digits(3, 8), runs=1, slow=True),
)


# -- methods ------------------------------------------------------------------------------------------


def ours(Z: Array) -> Array:
    return hard_margin(Z).w


def with_daqp(Z: Array) -> Array:
    import daqp

    n, d = Z.shape
    w, _, flag, _ = daqp.solve(np.eye(d), np.zeros(d), Z, np.full(n, 1e30), np.ones(n), np.zeros(n, dtype=np.int32))
    if flag != 1:
        raise RuntimeError("says infeasible" if flag == -1 else f"exit flag {flag}")
    return np.asarray(w)


def with_svc(Z: Array) -> Array:
    from sklearn.svm import SVC

    model = SVC(C=1e10, kernel="linear", cache_size=1000, max_iter=2_000_000)
    model.fit(np.vstack([Z, -Z]), np.repeat([1, -1], len(Z)))
    if model.fit_status_:
        raise RuntimeError("not converged")
    return np.asarray(model.coef_[0])


def with_clarabel(Z: Array) -> Array:
    import clarabel
    from scipy import sparse

    n, d = Z.shape
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.identity(d, format="csc"),
        np.zeros(d),
        sparse.csc_matrix(-Z),
        -np.ones(n),
        [clarabel.NonnegativeConeT(n)],
        settings,
    )
    solution = solver.solve()
    if "Solved" not in str(solution.status):
        raise RuntimeError(f"says {solution.status}")
    return np.array(solution.x)


METHODS: dict[str, Method] = {"reluflow": ours, "daqp": with_daqp, "svc": with_svc, "clarabel": with_clarabel}
TOO_SLOW = {
    ("clarabel", "MNIST"),
    ("clarabel", "random 100000"),
    ("svc", "random 100000"),
    ("svc", "margin"),
    ("svc", "MNIST 3/8"),
}
ONCE = ("svc", "clarabel")


# -- the reference ------------------------------------------------------------------------------------


def sixty_digits(Z: Array, active: npt.NDArray[np.intp]) -> Array | None:
    """Return the unit optimum if ``active`` is the right set, proved in integers; None otherwise.

    Refines ``Z_A Z_A^T dual = 1`` with residuals computed without rounding until they are below 1e-60, then
    asks for positive multipliers and no violated constraint.
    """
    from scipy.linalg import qr, solve_triangular

    digits_kept = 10**90
    power = max(x.as_integer_ratio()[1] for x in Z[active].ravel().tolist())
    rows = np.array([[int(Fraction(x) * power) for x in row] for row in Z[active].tolist()], dtype=object)
    R = qr(Z[active].T, mode="r")[0][: len(active)]
    dual = np.zeros(len(active), dtype=object)
    for _ in range(200):
        w = dual @ rows
        rest = np.array([x / (digits_kept * power**2) for x in digits_kept * power**2 - rows @ w])
        if np.abs(rest).max() < 1e-60:
            break
        step = solve_triangular(R, solve_triangular(R, rest, trans="T"))
        dual = dual + np.array([int(Fraction(x) * digits_kept) for x in step.tolist()], dtype=object)
    else:
        return None
    found = np.array([x / (digits_kept * power) for x in w])
    slack = Z @ found - 1
    slack[active] = 0
    near = np.flatnonzero(np.abs(slack) < 1e-6)
    exact = [sum(Fraction(a) * b for a, b in zip(Z[i].tolist(), w, strict=True)) for i in near if i not in active]
    inside = all(value >= digits_kept * power for value in exact) and slack[np.abs(slack) >= 1e-6].min(initial=0) >= 0
    return found / np.linalg.norm(found) if inside and min(dual) > 0 else None


# -- the run ------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One method on one problem."""

    problem: str
    method: str
    seconds: float | None
    ratio: float | None  # seconds / seconds of reluflow
    error: float | None
    note: str


def timed(method: Method, Z: Array) -> tuple[float, Array | Exception]:
    points = Z.copy()  # some solvers scale what they are given
    start = time.perf_counter()
    try:
        result: Array | Exception = method(points)
    except (NotSeparable, RuntimeError, ImportError) as error:
        result = error
    return time.perf_counter() - start, result


def compare(problem: Problem, Z: Array) -> Iterator[Row]:
    methods = {
        name: method
        for name, method in METHODS.items()
        if not any(name == slow and problem.name.startswith(part) for slow, part in TOO_SLOW)
    }
    timed(ours, Z[: min(len(Z), 50)])  # imports
    best: dict[str, float] = {}
    results: dict[str, Array | Exception] = {}
    for run in range(problem.runs):
        for name, method in methods.items():
            if run == 0 or name not in ONCE:
                seconds, results[name] = timed(method, Z)
                best[name] = min(seconds, best.get(name, np.inf))
    own = results["reluflow"]
    reference = None if isinstance(own, Exception) else sixty_digits(Z, hard_margin(Z).active)
    for name in methods:
        result = results[name]
        if isinstance(result, NotSeparable):
            note = f"not separable: {np.count_nonzero(result.certificate)} points combine to {result.residual:.0e}"
            yield Row(problem.name, name, best[name], best[name] / best["reluflow"], None, note)
        elif isinstance(result, ImportError):
            yield Row(problem.name, name, None, None, None, "not installed")
        elif isinstance(result, Exception):
            yield Row(problem.name, name, best[name], best[name] / best["reluflow"], None, str(result))
        else:
            unit = result / np.linalg.norm(result)
            error = None if reference is None else float(np.linalg.norm(unit - reference))
            note = f"margin {1 / np.linalg.norm(result):.10g}"
            if name == "reluflow":
                note += f", {hard_margin(Z).support.size} support vectors"
            yield Row(problem.name, name, best[name], best[name] / best["reluflow"], error, note)


def memory(n: int, d: int) -> float:
    """Peak memory of a solve in units of the size of the data."""
    Z = teacher(n, d)
    tracemalloc.start()
    hard_margin(Z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / Z.nbytes


@dataclass
class Target:
    """Something promised, and what came out."""

    what: str
    value: float
    limit: str
    met: bool


def targets(rows: list[Row]) -> list[Target]:
    found = {(row.problem, row.method): row for row in rows}
    out = []
    for (problem, method), row in found.items():
        if method == "reluflow" and row.error is not None:
            out.append(Target(f"direction error, {problem}", row.error, "<= 1e-12", row.error <= 1e-12))
        if method == "daqp" and problem in ("random 2000x200", "MNIST 0/1") and row.ratio:
            least = 0.5 if problem.startswith("random") else 2.0
            out.append(Target(f"times as fast as daqp, {problem}", row.ratio, f">= {least}", row.ratio >= least))
        if method == "svc" and row.ratio:
            out.append(Target(f"times as fast as svc, {problem}", row.ratio, ">= 10", row.ratio >= 10))
            mine = found[problem, "reluflow"].error
            if row.error is not None and mine is not None:
                digits_won = float(np.log10(row.error / max(mine, 1e-17)))
                out.append(Target(f"more digits than svc, {problem}", digits_won, ">= 6", digits_won >= 6))
    return out


def show(row: Row) -> None:
    seconds = "" if row.seconds is None else f"{row.seconds:.4f} s"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    error = "" if row.error is None else f"{row.error:.1e}"
    print(f"{row.problem:22} {row.method:9} {seconds:>11} {ratio:>9} {error:>8}  {row.note}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out MNIST and the memory measurement")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--only", default="", help="only problems whose name contains this")
    options = parser.parse_args()
    rows: list[Row] = []
    if not options.json:
        print(f"{'problem':22} {'method':9} {'time':>11} {'ratio':>9} {'error':>8}  (ratio: time / time of reluflow)")
    for problem in PROBLEMS:
        if options.only not in problem.name or (options.quick and problem.slow):
            continue
        try:
            Z = problem.make()
        except DataError as error:
            print(f"{problem.name}: skipped. {error}", file=sys.stderr)
            continue
        for row in compare(problem, Z):
            rows.append(row)
            if not options.json:
                show(row)
    checks = targets(rows)
    if not options.quick and not options.only:
        peak = memory(100_000, 50)
        checks.append(Target("peak memory / data, 100000x50", peak, "<= 3", peak <= 3))
    if options.json:
        print(json.dumps({"schema": 1, "rows": [asdict(r) for r in rows], "targets": [asdict(c) for c in checks]}))
        return
    print()
    for check in checks:
        print(f"{'met   ' if check.met else 'MISSED'} {check.what}: {check.value:.3g} ({check.limit})")


if __name__ == "__main__":
    main()
