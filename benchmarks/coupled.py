"""The flow from the scales people use: CPU seconds to a loss, against plain gradient descent, and how they grow.

python benchmarks/coupled.py [phuong teacher randlab antipodal small descent tables mnist growth]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

import reluflow as rf

RTOL = 1e-6
STARTS = (("he", 1e-1), ("he", 1e-2), ("he", 1e-3), ("he", 1e-4), ("balanced", 1e-2))


def gaussian(n: int, d: int, labels: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> rf.Dataset:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return rf.Dataset(X, labels(X, rng))


def teacher(n: int, d: int) -> rf.Dataset:
    return gaussian(n, d, lambda X, rng: np.sign(X @ rng.standard_normal(X.shape[1])))


def random_labels(n: int, d: int) -> rf.Dataset:
    return gaussian(n, d, lambda X, rng: rng.choice([-1.0, 1.0], len(X)))


def antipodal(n: int, d: int) -> rf.Dataset:
    half = teacher(n // 2, d)
    return rf.Dataset(np.vstack([half.X, -half.X]), np.concatenate([half.y, -half.y]))


def seconds(problem: rf.Problem, loss: float, rtol: float = RTOL) -> tuple[float, rf.Trajectory]:
    """CPU time of a flow, all threads together, and the run."""
    begun = time.process_time()
    try:
        run = rf.flow(problem, {"loss": loss}, rtol=rtol, progress=False, time_limit=300)
    except rf.Undecided as error:
        run = error.partial
    return time.process_time() - begun, run


def start(data: rf.Dataset, width: int, slope: float, scheme: str, scale: float) -> rf.Problem:
    return rf.Problem(data, rf.initialize(data.d, width, scheme, scale, seed=0, slope=slope))


def table(
    name: str, data: rf.Dataset, width: int, slope: float, starts: Sequence[tuple[str, float]], most: float
) -> None:
    for scheme, scale in starts:
        cpu, run = seconds(start(data, width, slope, scheme, scale), 1e-3)
        steps = " + ".join(f"{phase.name} {phase.steps}" for phase in run.phases)
        met = "met" if cpu <= most and run.loss[-1] <= 1.001e-3 else "MISSED"
        print(f"{name:28} {scheme:>8} {scale:7.0e}  {cpu:7.2f} s  at most {most:g} s: {met:6}  ", end="")
        print(f"{run.events.size} events; {steps}")


def descent(problem: rf.Problem, loss: float, step: float) -> float:
    """CPU time of plain gradient descent in NumPy, the loss looked at in every step."""
    X, y, slope = problem.data.X, problem.data.y, problem.net.slope
    W, a = (np.array(x) for x in problem.net.weights())
    begun, n = time.process_time(), len(y)
    while time.process_time() - begun < 120:
        Z = X @ W.T
        H = np.where(Z > 0, 1.0, slope)
        q = y * ((H * Z) @ a)
        if np.logaddexp(0, -q).mean() <= loss:
            return time.process_time() - begun
        c = step * y / (1 + np.exp(q)) / n
        G = H * c[:, None]
        W, a = W + a[:, None] * (G.T @ X), a + (G * Z).sum(axis=0)
    return np.inf


def against_descent() -> None:
    data = teacher(200, 10)
    for scale in (1e-1, 1e-2, 1e-3):
        problem = start(data, 50, 0.0, "he", scale)
        cpu, _ = seconds(problem, 1e-3)
        plain = descent(problem, 1e-3, 0.01)
        print(f"200x10 p=50 he {scale:5.0e}: flow {cpu:.2f} s, GD, step 0.01: {plain:.2f} s, ratio {plain / cpu:.2f}")


def tables() -> None:
    from sklearn import datasets

    cases = {
        "iris 0/1": (datasets.load_iris, (0, 1)),
        "iris 1/2": (datasets.load_iris, (1, 2)),
        "wine 0/1": (datasets.load_wine, (0, 1)),
        "breast cancer": (datasets.load_breast_cancer, (0, 1)),
        "digits 0/1": (datasets.load_digits, (0, 1)),
    }
    for name, (load, pair) in cases.items():
        found = load()
        keep = np.isin(found.target, pair)
        y = np.where(found.target[keep] == pair[1], 1.0, -1.0)
        for slope in (0.0, 0.1):
            begun = time.process_time()
            told = rf.explain(found.data[keep], y, standardize=True, bias=True, width=50, slope=slope, time_limit=60)
            what = "limit" if told.limit is not None else "no limit"
            cpu = time.process_time() - begun
            print(f"explain {name:14} slope {slope:g}: {cpu:6.1f} s, {what}: {told.headline[0][:90]}", flush=True)


def mnist() -> None:
    import resource

    problem = start(rf.data.mnist((0, 1), center=True), 50, 0.0, "he", 1e-2)
    for loss, most in ((1e-1, 40), (1e-2, 60)):
        cpu, run = seconds(problem, loss)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"MNIST 0/1 p=50 he 1e-2 to {loss:g}: {cpu:.1f} s (at most {most}), {run.events.size} events", end="")
        print(f", {memory:.2f} GB")


def growth() -> None:
    """Fit the exponents of the cost in n, d and p."""
    sizes = {"n": [100, 200, 400, 800], "d": [5, 10, 20, 40], "p": [25, 50, 100, 200]}
    for name, values in sizes.items():
        times, events = [], []
        for value in values:
            n, d, p = (value if name == axis else other for axis, other in (("n", 200), ("d", 10), ("p", 50)))
            cpu, run = seconds(start(rf.make("phuong", n=n, d=d, seed=0), p, 0.0, "he", 1e-2), 1e-2)
            times.append(cpu)
            events.append(run.events.size)
        by_size, by_events = (np.polyfit(np.log(x), np.log(times), 1)[0] for x in (values, events))
        print(f"cost ~ {name}^{by_size:.2f}, ~ events^{by_events:.2f}: {', '.join(f'{t:.2f}' for t in times)} s")


def main(wanted: Sequence[str]) -> None:
    seconds(start(rf.make("phuong", n=30, d=4, seed=0), 8, 0.0, "he", 1e-4), 1e-2)  # compiled, or read from disk
    parts: dict[str, Callable[[], None]] = {
        "phuong": lambda: table("phuong 500x20 p=100", rf.make("phuong", n=500, d=20, seed=0), 100, 0.0, STARTS, 0.6),
        "teacher": lambda: table("teacher 500x20 slope .2 p=100", teacher(500, 20), 100, 0.2, STARTS, 2.0),
        "randlab": lambda: table("random labels 40x20 p=100", random_labels(40, 20), 100, 0.0, STARTS, 0.8),
        "antipodal": lambda: table("antipodal 1000x100 p=400", antipodal(1000, 100), 400, 0.0, STARTS[1:3], 8.0),
        "small": lambda: table("small 20x2 p=50", teacher(20, 2), 50, 0.0, STARTS[:3], 0.03),
        "descent": against_descent,
        "tables": tables,
        "growth": growth,
        "mnist": mnist,
    }
    for name in wanted or [name for name in parts if name != "mnist"]:
        parts[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
