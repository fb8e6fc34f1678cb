"""The early phase: how long the exact solver takes, how it grows, and against gradient descent, in one run.

    python benchmarks/align.py [--quick] [--json FILE] [--plot FILE]

Wall times, the best of a few runs; compilation is done before the first measurement.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import numpy as np

import reluflow as rf


def timed(problem: rf.Problem, repeat: int = 3) -> tuple[Any, float]:
    """Best wall time of a few runs."""
    best, early = np.inf, None
    for _ in range(repeat):
        start = time.perf_counter()
        early = rf.align(problem)
        best = min(best, time.perf_counter() - start)
    return early, best


def setting(name: str, n: int, d: int, p: int, slope: float) -> rf.Problem:
    data = rf.make(name, n=n, d=d)
    return rf.Problem(data, rf.initialize(d, width=p, slope=slope, scale=1e-6))


def mnist() -> rf.Problem | None:
    from reluflow.data import mnist as load

    try:
        data = load((0, 1), centered=True)
    except rf.DataError as error:
        print(f"MNIST left out: {error}")
        return None
    return rf.Problem(data, rf.initialize(data.d, width=50, scale=1e-6))


def descend(problem: rf.Problem, early: Any, step: float, limit: float) -> tuple[float, bool]:
    """Plain gradient descent in NumPy until every neuron has the sector that the exact solver ends in."""
    data, net = problem.data, problem.net
    W, a = (part.copy() for part in net.weights())
    want = early.pattern
    live = np.isin(early.fates, ("aligned", "sliding"))
    start = time.perf_counter()
    count = 0
    while time.perf_counter() - start < limit:
        z = data.X @ W.T
        h = np.where(z > 0, 1.0, net.slope)
        g = problem.weight * data.y * problem.loss.force(data.y * ((h * z) @ a))
        grad_a, grad_w = (h * z).T @ g, (h * g[:, None]).T @ data.X * a[:, None]
        W += step * grad_w
        a += step * grad_a
        count += 1
        if count % 50 == 0:
            side = np.sign(data.X @ W.T).T
            # a sliding neuron chatters across its surfaces: only the other samples are compared
            if ((side == want) | (want == 0))[live].all():
                return time.perf_counter() - start, True
    return time.perf_counter() - start, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--plot")
    options = parser.parse_args()
    rf.align(setting("linsep", 10, 3, 4, 0.0))  # compile, or load from the cache
    rows: list[dict[str, Any]] = []
    problems = {
        "orthsep 500x20, p=100": setting("orthsep", 500, 20, 100, 0.0),
        "linsep 500x20, p=100": setting("linsep", 500, 20, 100, 0.0),
        "randlab 40x20, p=100": setting("randlab", 40, 20, 100, 0.0),
        "randlab 500x20, p=100": setting("randlab", 500, 20, 100, 0.0),
        "randlab 500x20, p=100, slope .5": setting("randlab", 500, 20, 100, 0.5),
    }
    if not options.quick and (images := mnist()) is not None:
        problems["MNIST 0/1 centred, p=50"] = images
    print(f"{'problem':36s} {'seconds':>9s} {'changes':>9s} {'sliding':>8s} {'most held':>9s}")
    for name, problem in problems.items():
        early, seconds = timed(problem, 1 if problem.data.n > 5000 else 3)
        held = int((early.pattern == 0).sum(axis=1).max())
        events = int(early.n_events.sum())
        sliding = early.fates.count("sliding") / early.p
        rows.append({"problem": name, "seconds": seconds, "events": events, "sliding": sliding, "held": held})
        print(f"{name:36s} {seconds:9.4f} {events:9d} {sliding:8.0%} {held:9d}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")

    print("\nagainst gradient descent from scale 1e-6 to the same sectors (step 2e-3, as in the papers)")
    limit = 20.0 if options.quick else 120.0
    toys = {
        "ML-F6, p=50": (rf.Problem(rf.example("ML-F6").data, rf.initialize(2, width=50, scale=1e-6)), 2e-3),
        "EX1, p=50": (rf.Problem(rf.example("EX1").data, rf.initialize(2, width=50, scale=1e-6)), 2e-3),
        "orthsep 500x20, p=100": (problems["orthsep 500x20, p=100"], 2e-3),
    }
    for name, (problem, step) in toys.items():
        early, seconds = timed(problem)
        taken, done = descend(problem, early, step, limit)
        ratio = taken / seconds
        rows.append({"problem": name, "exact": seconds, "descent": taken, "reached": done, "ratio": ratio})
        print(
            f"{name:36s} exact {seconds:.4f} s, descent {taken:.2f} s{'' if done else ' (not there yet)'}: {ratio:.0f}x"
        )

    print("\ngrowth with n p d (orthsep)")
    growth = []
    for n, d, p in ((50, 5, 20), (100, 10, 50), (200, 20, 50), (500, 20, 100), (1000, 50, 100), (1000, 100, 200)):
        _, seconds = timed(setting("orthsep", n, d, p, 0.0))
        growth.append((n * d * p, seconds))
        print(f"  n={n:5d} d={d:4d} p={p:4d}: {seconds:.4f} s")
    rows.append({"growth": growth})
    if options.plot:
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        axes = figure.subplots()
        axes.loglog(*np.array(growth).T, "o-")
        axes.set(xlabel="n p d", ylabel="seconds", title="exact early phase, orthogonally separable data")
        figure.savefig(options.plot)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
