"""What watching costs a training loop: the same steps with and without it, side by side, as a ratio.

    python benchmarks/watch.py [--steps 400] [--rounds 5]

A step is full-batch gradient descent in float32 on 1000 points in 784 dimensions with 100 neurons. Short stretches with
and without are run in turn on one thread, and the time of the processor is taken, so that what else the machine does
does not count.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

import reluflow as rf

try:
    import torch
except ImportError:
    print("benchmarks/watch.py: skipped, torch is not installed (make deep)")
    raise SystemExit(0) from None


def loop(X, y, steps, watching):
    """Train from the same start; return the seconds and what was seen."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], 100, bias=False), torch.nn.ReLU(), torch.nn.Linear(100, 1, bias=False)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(model) as seen:
        start = time.process_time()
        for _ in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.softplus(-y * model(X)[:, 0]).mean().backward()
            optimizer.step()
        return time.process_time() - start, seen


def main():
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--steps", type=int, default=400)
    given.add_argument("--rounds", type=int, default=5)
    said = given.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(1000, 784)), dtype=torch.float32)
    y = torch.sign(X[:, 0] + 0.5)
    folder = Path(tempfile.mkdtemp())
    files = iter(folder / f"{k}.csv" for k in range(10**6))
    ways = {
        "alone": lambda _: nullcontext(),
        "watch(model, X, y)": lambda model: rf.watch(model, X, y, progress=False),
        "watch(..., log='run.csv')": lambda model: rf.watch(model, X, y, log=next(files), progress=False),
        "watch(..., every=10)": lambda model: rf.watch(model, X, y, every=10, progress=False),
    }
    for way in ways.values():
        loop(X, y, 20, way)
    taken, seen = {name: [] for name in ways}, {}
    for _ in range(said.rounds):
        for name, way in ways.items():
            seconds, seen[name] = loop(X, y, said.steps, way)
            taken[name].append(seconds)
    print(f"1000 x 784, 100 neurons, float32, {said.steps} full-batch steps, {said.rounds} rounds, medians")
    alone = float(np.median(taken["alone"]))
    for name, seconds in taken.items():
        ratios = np.array(seconds) / np.array(taken["alone"])
        extra = "" if name == "alone" else f", {100 * (np.median(ratios) - 1):+5.1f} % of a step"
        kept = "" if seen[name] is None else f", {len(seen[name])} records, own count {100 * seen[name].overhead:.1f} %"
        print(f"  {name:28s}{1e3 * np.median(seconds) / said.steps:8.3f} ms a step{extra}{kept}")
    print(f"  (a step alone: {1e3 * alone / said.steps:.3f} ms)")


if __name__ == "__main__":
    main()
