"""Random small problems: does `explain` ever say that a theorem is contradicted? It must not, unless it is.

``make fuzz`` runs a few hundred; ``python tests/fuzz/monitors.py 0 3000 --out DIR`` runs the seeds 0 to 2999, goes on
where it was stopped, and keeps the data of every finding in DIR. A finding is one line: the seed, what happened, and
the command that does it again. Nothing is drawn from anything but the seed.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

import reluflow as rf

SCHEMES = ("balanced", "gaussian", "balanced-gaussian", "two-sign", "he", "uniform")


@dataclass(frozen=True)
class Case:
    """Everything that one run is made of."""

    X: np.ndarray
    y: np.ndarray
    start: dict[str, object]  # of `initialize`
    problem: dict[str, str]  # of `Problem`
    effort: dict[str, float]  # of `explain`

    def explain(self) -> rf.report.Explanation:
        net = rf.initialize(self.X.shape[1], **self.start)
        problem = rf.Problem(rf.Dataset(self.X, self.y), net, **self.problem)
        return rf.explain(problem, **self.effort, progress=False)

    def command(self, path: Path) -> str:
        options = {**self.start, **self.problem, **self.effort}
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        return shlex.join(["reluflow", "explain", str(path), *words])

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = (",".join([*(repr(float(v)) for v in x), str(int(s))]) for x, s in zip(self.X, self.y, strict=True))
        path.write_text("\n".join(rows) + "\n")


def points(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw one of the kinds of data on which something is exactly zero, equal, missing or impossible, or just any."""
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    y = rng.choice([-1.0, 1.0], n)
    if rng.random() < 0.12:
        y[:] = y[0]
    kind = str(rng.choice(["any", "grid", "separable", "orthogonal", "mirrored", "copies", "line"]))
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=(n, 1)) * rng.choice([0.0, 0.5, 1.0]))
    axis = rng.normal(size=d)
    axis /= np.linalg.norm(axis)
    if kind == "grid":
        X = rng.integers(-3, 4, (n, d)).astype(float)
    elif kind == "separable":
        X += y[:, None] * axis * rng.uniform(0.5, 3)
    elif kind == "orthogonal":
        X = y[:, None] * (axis + rng.uniform(0.05, 0.8) * X / np.sqrt(d))
        X = np.round(2 * X) / 2 if rng.random() < 0.3 else X
    elif kind == "mirrored":
        X += y[:, None] * axis * rng.choice([0.0, 1.0, 2.0])
        X, y = np.vstack([X, -X]), np.concatenate([y, -y])
    elif kind == "copies":
        pick = rng.integers(0, n, n)
        X = X[pick]
    elif kind == "line":
        X = np.outer(rng.integers(-3, 4, n).astype(float), axis if rng.random() < 0.5 else np.ones(d))
    X[~X.any(axis=1)] = 1.0
    _, same = np.unique(X, axis=0, return_inverse=True)
    return X, y[[int(np.argmax(same == k)) for k in same]]  # one point has one label


def draw(seed: int) -> Case:
    """Draw the problem of a seed."""
    rng = np.random.default_rng([13, seed])
    X, y = points(rng)
    scheme, width = str(rng.choice(SCHEMES)), int(rng.integers(1, 13))
    train = "first" if rng.random() < (0.6 if scheme == "two-sign" else 0.1) else "both"
    # -1e7 to -1, evenly in the logarithm; or large
    log_scale = float(rng.uniform(0, 1)) if rng.random() < 0.15 else -float(10 ** rng.uniform(0, 7))
    if scheme == "two-sign" and train == "both":
        log_scale = max(log_scale, -140.0)  # farther apart the two layers are refused
    start = {
        "width": 2 * ((width + 1) // 2) if scheme == "two-sign" else width,
        "scheme": scheme,
        "log_scale": float(f"{log_scale:.3g}"),
        "seed": int(rng.integers(1000)),
        "slope": float(rng.choice([0.0, 0.0, 0.0, 0.1, 0.5, 1.0, round(float(rng.uniform()), 3)])),
    }
    problem = {
        "loss": str(rng.choice(["logistic", "exponential"])),
        "reduction": str(rng.choice(["mean", "sum"])),
        "train": train,
    }
    # Most runs end early: what holds, holds at every moment.
    effort = {"rtol": 1e-6 if rng.random() < 0.15 else 1e-9, "max_steps": int(30 * 12 ** rng.uniform())}
    return Case(X, y, start, problem, effort)


class Hung(BaseException):
    """Not an Exception: nothing on the way may catch it and go on."""


def _hung(_signal: int, _frame: FrameType | None) -> None:
    raise Hung


def judge(case: Case, seconds: float) -> tuple[str, str]:
    """Return the outcome of one problem, and of a finding what is wrong."""
    # CPU time, so that a busy machine changes nothing.
    signal.signal(signal.SIGPROF, _hung)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = case.explain()
            contradicted = found.summary.contradicted
    except Hung:
        where = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(sys.exc_info()[2])][-4:]
        return "hung", f"more than {seconds:g} s, in {' '.join(where)}"
    except rf.ReluflowError as error:
        return "refused", str(error)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return "crashed", f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if contradicted:
        return "contradicted", "; ".join(f"{v.claim}: {v.text}" for v in contradicted)
    return ("limit" if found.limit is not None else "no limit"), ""


def main() -> int:
    """Run a range of seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("last", type=int, nargs="?", default=300, help="the first seed that is not run")
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU time for one problem")
    parser.add_argument("--out", type=Path, help="where data of findings, and how far the range is done, are kept")
    given = parser.parse_args()
    done = given.out / f"{given.first}-{given.last}.done" if given.out else None
    first = max(given.first, int(done.read_text()) if done and done.exists() else given.first)
    counts, begun = Counter[str](), time.monotonic()
    draw(first).explain()  # compiles
    for seed in range(first, given.last):
        case = draw(seed)
        outcome, what = judge(case, given.seconds)
        counts[outcome] += 1
        if what and outcome != "refused":
            path = (given.out or Path()) / f"fuzz-{seed}.csv"
            if given.out:
                case.save(path)
            print(f"{seed} {outcome}: {what}\n    {case.command(path)}", flush=True)
        if done:
            done.parent.mkdir(parents=True, exist_ok=True)
            done.write_text(str(seed + 1))
    words = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    print(f"seeds {first} to {given.last - 1}: {words} ({time.monotonic() - begun:.0f} s)")
    return 1 if counts["contradicted"] or counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
