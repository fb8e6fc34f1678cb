"""The early phase: how long the exact solver takes, how it grows, and against gradient descent, in one run.

    python benchmarks/align.py [--quick] [--json FILE] [--plot FILE]

Times are the best of a few runs: on the wall, and of all processors together (which says more on a busy machine).
Compilation, or loading the compiled kernel from disk, comes before the first measurement and is printed.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import reluflow as rf


def timed(problem: rf.Problem, repeat: int = 5) -> tuple[rf.dynamics.Alignment, float, float]:
    """Best wall and processor time of a few runs."""
    wall, cpu = np.inf, np.inf
    for _ in range(repeat):
        start, busy = time.perf_counter(), time.process_time()
        early = rf.align(problem)
        wall, cpu = min(wall, time.perf_counter() - start), min(cpu, time.process_time() - busy)
    return early, wall, cpu


def setting(name: str, n: int, d: int, p: int, slope: float = 0.0) -> rf.Problem:
    return rf.Problem(rf.make(name, n=n, d=d), rf.initialize(d, width=p, slope=slope, scale=1e-6))


def example(name: str) -> rf.Problem:
    data = rf.example(name).data
    return rf.Problem(data, rf.initialize(data.d, width=50, scale=1e-6))


def mnist() -> list[tuple[str, rf.Problem]]:
    from reluflow.data import mnist as load

    try:
        data = load((0, 1), center=True)
    except rf.DataError as error:
        print(f"MNIST left out: {error}")
        return []
    start = rf.initialize(data.d, width=50, scale=1e-6)
    return [("MNIST 0/1 centred, p=50", rf.Problem(data, start, "exponential"))]


def speed(quick: bool) -> list[dict[str, Any]]:
    problems = [
        ("orthsep 500x20, p=100", setting("orthsep", 500, 20, 100)),
        ("linsep 500x20, p=100", setting("linsep", 500, 20, 100)),
        ("randlab 40x20, p=100", setting("randlab", 40, 20, 100)),
        ("randlab 500x20, p=100", setting("randlab", 500, 20, 100)),
        ("randlab 500x20, p=100, slope 1/2", setting("randlab", 500, 20, 100, 0.5)),
        *([] if quick else mnist()),
    ]
    print(f"{'problem':34s} {'wall s':>8s} {'cpu s':>8s} {'events':>8s} {'us/event':>9s} {'sliding':>8s} {'held':>5s}")
    rows = []
    for name, problem in problems:
        early, wall, cpu = timed(problem, 2 if problem.data.n > 5000 else 5)
        events, held = int(early.n_events.sum()), int((early.pattern == 0).sum(axis=1).max())
        sliding = early.fates.count("sliding") / early.p
        rows.append({"problem": name, "wall": wall, "cpu": cpu, "events": events, "sliding": sliding, "held": held})
        each = 1e6 * cpu / events
        print(f"{name:34s} {wall:8.4f} {cpu:8.4f} {events:8d} {each:9.2f} {sliding:8.0%} {held:5d}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    return rows


def descend(problem: rf.Problem, step: float, until: float) -> tuple[rf.Network, float]:
    """Plain gradient descent in NumPy up to a time."""
    data, net = problem.data, problem.net
    W, a = (part.copy() for part in net.weights())
    start = time.perf_counter()
    for _ in range(round(until / step)):
        z = data.X @ W.T
        h = np.where(z > 0, 1.0, net.slope)
        g = problem.weight * data.y * problem.loss.force(data.y * ((h * z) @ a))
        grad_a, grad_w = (h * z).T @ g, (h * g[:, None]).T @ data.X * a[:, None]
        W += step * grad_w
        a += step * grad_a
    return rf.Network(W, a, net.slope), time.perf_counter() - start


def against_descent(quick: bool) -> list[dict[str, Any]]:
    """To the same alignment: until every neuron has met its last event, in steps of several sizes."""
    print("\nagainst gradient descent from scale 1e-6 up to the last event (error: largest distance of directions)")
    rows = []
    for name, problem in (
        ("EX1, p=50", example("EX1")),
        ("ML-F6, p=50", example("ML-F6")),
        ("orthsep 500x20, p=100", setting("orthsep", 500, 20, 100)),
    ):
        early, wall, _ = timed(problem, 20)
        until = float(early.last_event.max())
        exact = early.directions(until)
        for step in (0.05, 2e-3, 2e-4):  # 2e-3: as in the experiments of the papers
            if quick and step < 1e-3 and problem.data.n > 100:
                continue
            net, taken = descend(problem, step, until)
            error = float(np.abs(net.directions - exact).max())
            rows.append({"problem": name, "step": step, "exact": wall, "descent": taken, "error": error})
            print(f"{name:22s} exact {wall:.4f} s, descent {taken:7.3f} s: {taken / wall:6.0f} times as long", end="")
            print(f" (step {step:5g}, error {error:.0e})")
    return rows


def growth(plot: Path) -> list[dict[str, Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    sizes = (
        (50, 5, 20),
        (100, 10, 50),
        (200, 20, 50),
        (500, 20, 100),
        (1000, 50, 100),
        (2000, 100, 100),
        (4000, 100, 100),
    )
    print("\ngrowth with n p d")
    rows = []
    for kind, mark in (("orthsep", "o-"), ("linsep", "s--"), ("randlab", "^:")):
        seconds = []
        for n, d, p in sizes[: 5 if kind == "randlab" else None]:
            early, wall, cpu = timed(setting(kind, n, d, p), 2)
            seconds.append((n * p * d, cpu))
            rows.append({"kind": kind, "n": n, "d": d, "p": p, "wall": wall, "cpu": cpu})
            print(f"  {kind:8s} n={n:5d} d={d:4d} p={p:4d}: {cpu:8.4f} s, {int(early.n_events.sum()):7d} events")
        axes.loglog(*np.array(seconds).T, mark, label=kind)
    axes.set(xlabel="n p d", ylabel="processor seconds", title="exact early phase, ReLU")
    axes.legend()
    figure.savefig(plot)
    print(f"plot written to {plot}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without MNIST")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--plot", type=Path, default=Path(tempfile.gettempdir()) / "reluflow-align-growth.svg")
    options = parser.parse_args()
    start = time.perf_counter()
    rf.align(setting("linsep", 10, 3, 4))
    print(f"first call (imports, kernel compiled or loaded): {time.perf_counter() - start:.2f} s\n")
    document = {
        "speed": speed(options.quick),
        "descent": against_descent(options.quick),
        "growth": growth(options.plot),
    }
    if options.json:
        options.json.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
