"""Gradient descent: iterations a second against the same loop in PyTorch, and the memory both take.

PyTorch is asked for in the interpreter named by --torch (default: this one), so that it need not be installed beside
reluflow. Both get --threads threads. Every figure is the best of several repetitions, taken in turns. On a machine
that does other things, look at the ratio of processor time with --threads 1: threads that wait tell nothing then.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Each loop is a program of its own, so that threads and peak memory are its own. Arguments: data, p, iterations, dtype.
COMMON = """
import sys, time, json
import numpy as np
file, p, count, dtype = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
found = np.load(file)
X, y = found["X"], found["y"]
rng = np.random.default_rng(0)
W, a = 1e-2 * rng.standard_normal((p, X.shape[1])), 1e-2 * rng.standard_normal(p)
def clock():
    return np.array([time.perf_counter(), time.process_time()])
def report(start, W, a):
    wall, cpu = clock() - start
    # not ru_maxrss, which a process inherits from the one that started it
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 2**20
    total = float(abs(W).sum() + abs(a).sum())
    print(json.dumps({"rate": count / wall, "cpu": cpu / count, "peak": peak, "sum": total}))
"""
OURS = """
import reluflow as rf
problem = rf.Problem(rf.Dataset(X, y), rf.Network(W, a))
del X, W
rf.descend(problem, step=0.1, steps=2, dtype=dtype, progress=False)
start = clock()
run = rf.descend(problem, step=0.1, steps=count, record=2, dtype=dtype, progress=False)
report(start, run.W[-1], run.a[-1])
"""
TORCH = """
import os, torch
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
kind = getattr(torch, dtype)
X, y = torch.tensor(X, dtype=kind), torch.tensor(y, dtype=kind)
W0, a0 = W, a
def train(count):
    W, a = (torch.tensor(v, dtype=kind, requires_grad=True) for v in (W0, a0))
    optimizer = torch.optim.SGD([W, a], lr=0.1)
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.softplus(-y * (torch.relu(X @ W.T) @ a)).mean().backward()
        optimizer.step()
    return W.detach().numpy(), a.detach().numpy()
train(2)
start = clock()
W, a = train(count)
report(start, W, a)
"""


def problems(folder: Path) -> list[tuple[str, Path, int, int]]:
    """Name, file, neurons, iterations of each."""
    import numpy as np

    found = []
    for name, n, d, p, count in (
        ("random 500x20, p=100", 500, 20, 100, 2000),
        ("random 12665x784, p=50", 12665, 784, 50, 100),
    ):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((n, d)) / np.sqrt(d)
        found.append((name, folder / f"{n}.npz", p, count))
        np.savez(found[-1][1], X=X, y=np.where(X @ rng.standard_normal(d) > 0, 1.0, -1.0))
    try:
        from reluflow.data import mnist

        data = mnist((0, 1), center=True)
    except ValueError as error:
        print(f"MNIST left out: {error}")
        return found
    found.append(("MNIST 0/1 12665x784, p=50", folder / "mnist.npz", 50, 100))
    np.savez(found[-1][1], X=data.X, y=data.y)
    return found


def run(python: str, program: str, problem: tuple[Path, int, int], dtype: str, threads: int) -> dict[str, float]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [python, "-c", COMMON + program, *map(str, problem), dtype],
        env={**os.environ, **dict.fromkeys(names, str(threads))},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{python} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default=sys.executable, help="a Python interpreter that has PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--dtype", default="float64,float32")
    parser.add_argument("--only", default="", help="problems with this in their name")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'problem':26s} {'dtype':8s} {'reluflow it/s':>14s} {'torch it/s':>11s} {'ratio':>6s}", end=" ")
    print(f"{'cpu ratio':>9s} {'peak GiB':>17s}")
    with tempfile.TemporaryDirectory() as folder:
        for name, *problem in problems(Path(folder)):
            if options.only not in name:
                continue
            for dtype in options.dtype.split(","):
                both: dict[str, list[dict[str, float]]] = {"reluflow": [], "torch": []}
                for _ in range(options.repeat):
                    both["reluflow"].append(run(sys.executable, OURS, tuple(problem), dtype, options.threads))
                    both["torch"].append(run(options.torch, TORCH, tuple(problem), dtype, options.threads))
                ours, theirs = (max(found, key=lambda one: one["rate"]) for found in both.values())
                ratio, off = ours["rate"] / theirs["rate"], abs(ours["sum"] / theirs["sum"] - 1)
                least = [min(one["cpu"] for one in found) for found in both.values()]
                assert off < (1e-9 if dtype == "float64" else 1e-3), f"the two loops disagree by {off:.1e}"
                rows.append(
                    {"problem": name, "dtype": dtype, "reluflow": ours, "torch": theirs, "ratio": ratio, "cpu": least}
                )
                memory = f"{ours['peak']:.2f} against {theirs['peak']:.2f}"
                print(f"{name:26s} {dtype:8s} {ours['rate']:14.1f} {theirs['rate']:11.1f} {ratio:6.2f}", end=" ")
                print(f"{least[1] / least[0]:9.2f}", end=" ")
                print(f"{memory:>17s}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
