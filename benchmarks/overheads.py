"""What reluflow costs around its own work: sweeps, watching, compilation."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import reluflow as rf
from benchmarks.measure import Found

_HERE = Path(__file__).parent


def _tiny(problems: int, measures: Any) -> rf.Sweep:
    return rf.Sweep(
        data={"source": "phuong", "n": 6, "d": 2, "seed": {"range": [0, 10]}},
        network={"width": 4, "seed": {"range": [0, max(problems // 10, 1)]}},
        measures=measures,
        folder=_HERE,
    )


def _timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return seconds on the clock, seconds of this process, and the result."""
    wall, own = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - wall, time.process_time() - own, found


def _bare(sweep: rf.Sweep, rounds: int) -> Callable[[], None]:
    def loop() -> None:
        for index in range(rounds):
            for one in sweep.taken:
                one.take(rf.theory.Facts.of(sweep.problem_at(index)))

    return loop


def sweep(problems: int, rows: int) -> Found:
    """Run sweeps beside bare loops; the answer is the number of rows that are missing."""
    real, cheap = _tiny(problems, ["check", "limit"]), _tiny(min(rows, 20_000), ["nothing:nothing"])
    _bare(real, 2)()  # compiled, imported
    wall, own, _ = _timed(_bare(real, len(real)))
    figures: dict[str, Any] = {"tiny problem ms": 1e3 * own / len(real), "tiny problems a second": len(real) / wall}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, loop, _ = _timed(_bare(cheap, len(cheap)))
        _, swept, _ = _timed(lambda: cheap.run(folder / "cheap", progress=False))
        figures["row us"] = 1e6 * (swept - loop) / len(cheap)
        figures["overhead"] = (swept - loop) / len(cheap) / (own / len(real))
        many = _tiny(rows, ["nothing:nothing"])
        wall, own, found = _timed(lambda: many.run(folder / "many", jobs=2, progress=False))
        figures |= {"rows a second": len(many) / wall, "driver s": own}
        figures["resume"] = _timed(lambda: many.run(folder / "many", progress=False))[1]
        if importlib.util.find_spec("pyarrow"):
            figures["collect"] = _timed(lambda: rf.open_sweep(folder / "many").collect(folder / "many.parquet"))[1]
        one, _, _ = _timed(lambda: real.run(folder / "one", progress=False))
        two, _, both = _timed(lambda: real.run(folder / "two", jobs=2, progress=False))
        figures["speed-up"] = one / two
        kinds = ("done", "undecided")
        ends = (found.status(), both.status())
        missing = sum(end.total - sum(end.states.get(kind, 0) for kind in kinds) for end in ends)
    return Found(missing, figures)


def watch(n: int, d: int, p: int, steps: int, rounds: int) -> Found:
    """Train with and without being watched; the answer is the largest difference of the weights."""
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(n, d)), dtype=torch.float32)
    y = torch.sign(X[:, 0] + 0.5)
    with tempfile.TemporaryDirectory() as folder:
        files = iter(Path(folder) / f"{k}.csv" for k in range(10**6))
        ways: dict[str, Callable[[Any], Any]] = {
            "alone": lambda _: nullcontext(),
            "watch": lambda model: rf.watch(model, X, y, progress=False),
            "watch, log": lambda model: rf.watch(model, X, y, log=next(files), progress=False),
            "watch, every=10": lambda model: rf.watch(model, X, y, every=10, progress=False),
        }
        for way in ways.values():
            _train(X, y, p, 20, way)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        ends = {}
        for _ in range(rounds):
            for name, way in ways.items():
                seconds, ends[name] = _train(X, y, p, steps, way)
                taken[name].append(seconds)
    alone = np.array(taken["alone"])
    figures = {name: float(np.median(np.array(one) / alone) - 1) for name, one in taken.items() if name != "alone"}
    away = max(float((ends[name] - ends["alone"]).abs().max()) for name in ends)
    return Found(away, {**figures, "step ms": 1e3 * float(np.median(alone)) / steps})


def _train(X: Any, y: Any, p: int, steps: int, watching: Callable[[Any], Any]) -> tuple[float, Any]:
    """Train from the same start; return the seconds and the first layer."""
    import torch

    torch.manual_seed(0)
    first, last = torch.nn.Linear(X.shape[1], p, bias=False), torch.nn.Linear(p, 1, bias=False)
    model = torch.nn.Sequential(first, torch.nn.ReLU(), last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(model):
        start = time.process_time()
        for _ in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.softplus(-y * model(X)[:, 0]).mean().backward()
            optimizer.step()
        return time.process_time() - start, first.weight.detach().clone()


_TWICE = """
import json, time
begun = time.process_time()
import reluflow as rf
imported = time.process_time() - begun
problem = rf.Problem(rf.Dataset([[1.0, 0.2], [0.3, 1.0], [-1.0, 0.1]], [1, 1, -1]), rf.initialize(2, 20, scale=1e-2))
work = {"flow": lambda: rf.flow(problem, {"loss": 1e-2}, progress=False), "explain": lambda: rf.explain(problem)}[WHAT]
taken = []
for _ in range(2):
    begun = time.process_time()
    work()
    taken.append(time.process_time() - begun)
print(json.dumps([imported, *taken]))
"""


def startup(what: str) -> Found:
    """Call for the first time in three processes; the answer is what the first one took."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "NUMBA_CACHE_DIR": folder}
        program = [sys.executable, "-c", _TWICE.replace("WHAT", repr(what))]
        runs = [
            json.loads(
                subprocess.run(program, env=env, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
            )
            for _ in range(3)
        ]
    (imported, fresh, plain), *later = runs
    load = min(first - second for _, first, second in later)
    figures = {"compile": fresh - plain, "loading": load, "import": imported, "call ms": 1e3 * plain}
    return Found(fresh, figures)
