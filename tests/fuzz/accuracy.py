"""Twenty problems of all kinds: how far the flow is off at four moments, over its tolerance.

``python tests/fuzz/accuracy.py [--only NAME] [--cap 60]``. Sliding, unbalanced, frozen, leaky and linear neurons, both
losses, both reductions, one to twenty dimensions, mirrored and duplicated points, starts of sizes e^-200 to 1; at loss
0.1 and 1e-3, at margin 2 and at log t = 300; at rtol 1e-4, 1e-6, 1e-8 and 1e-10.

The reference is the flow at rtol 1e-12; it is itself held against Runge-Kutta steps begun anew at every event
(`tests/helpers/restart.py`, which shares no code with the package) at the moments that these reach. The error is the
largest difference of a neuron, relative to its size. What exceeds three times the tolerance is marked, with the factor
by which the flow amplifies a change of its start up to that moment.

It is a program, not a test of the suite: it takes minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import reluflow as rf

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.flows import brute_off, moved
from fuzz.limits import TooLong, capped
from helpers.draws import error
from helpers.restart import DELTA, Cannot

RTOLS = (1e-4, 1e-6, 1e-8, 1e-10)
FINEST = 1e-12
GOALS = ({"loss": 0.1}, {"loss": 1e-3}, {"margin": 2.0}, {"log_time": 300.0})
WITHIN = 3.0  # asked for
BRUTE = 1e-8  # reference and brute force agree to this
LONGEST = 7.0  # log of the longest time that brute force tries


def _gaussian(n: int, d: int, labels: str, seed: int = 0) -> rf.Dataset:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if labels == "random":
        return rf.Dataset(X, rng.choice([-1.0, 1.0], n))
    if labels == "checks":  # no line separates them
        return rf.Dataset(X, np.sign(X[:, 0] * X[:, 1]))
    return rf.Dataset(X, np.sign(X @ rng.standard_normal(d)))


def _made(data: rf.Dataset, width: int, scheme: str, scale: float, slope: float = 0.0, **options: str) -> rf.Problem:
    return rf.Problem(data, rf.initialize(data.d, width, scheme, scale, seed=0, slope=slope), **options)


def _mirrored() -> rf.Dataset:
    half = _gaussian(10, 5, "teacher", 3)
    return rf.Dataset(np.vstack([half.X, -half.X]), np.concatenate([half.y, -half.y]))


def _lattice() -> rf.Dataset:
    rng = np.random.default_rng(7)
    X = np.round(2 * rng.standard_normal((16, 3)))
    X[np.all(X == 0, axis=1)] = 1
    return rf.Dataset(np.vstack([X, 2 * X[:3]]), np.append(y := np.sign(X @ [1.0, 0.3, -0.7] + 0.01), y[:3]))


def _tiny() -> rf.Problem:
    net = rf.initialize(2, 8, "balanced", 1.0, seed=2)
    return rf.Problem(rf.example("EX1").data, rf.Network(net.W, net.a, 0.0, -200.0))


PROBLEMS: dict[str, Callable[[], rf.Problem]] = {
    "few": lambda: _made(_gaussian(8, 2, "teacher"), 6, "he", 0.1),
    "crowd": lambda: _made(_gaussian(20, 2, "teacher"), 50, "he", 0.1),
    "crowd, leaky": lambda: _made(_gaussian(20, 2, "teacher"), 50, "balanced", 1e-2, 0.2),
    "sliding": lambda: _made(_gaussian(20, 10, "random"), 20, "he", 0.1),
    "sliding, many": lambda: _made(_gaussian(40, 20, "random"), 20, "he", 0.1),
    "orthogonally separable": lambda: _made(rf.make("phuong", n=60, d=6, seed=0), 20, "he", 1e-2),
    "unbalanced": lambda: _made(_gaussian(30, 3, "teacher"), 12, "gaussian", 0.5),
    "unbalanced, sum, leaky": lambda: _made(_gaussian(12, 4, "random"), 10, "uniform", 0.3, 0.01, reduction="sum"),
    "frozen": lambda: _made(_gaussian(30, 4, "teacher"), 16, "two-sign", 0.1, train="first"),
    "frozen, leaky": lambda: _made(_gaussian(20, 3, "checks"), 20, "two-sign", 0.5, 0.3, train="first"),
    "exponential": lambda: _made(_gaussian(15, 3, "teacher"), 10, "balanced", 0.1, loss="exponential"),
    "exponential, frozen, sum": lambda: _made(
        _gaussian(10, 4, "random"), 20, "two-sign", 0.1, loss="exponential", reduction="sum", train="first"
    ),
    "exponential, leaky": lambda: _made(_gaussian(15, 4, "checks"), 20, "he", 0.3, 0.1, loss="exponential"),
    "linear": lambda: _made(_gaussian(20, 4, "teacher"), 6, "gaussian", 0.1, 1.0),
    "line": lambda: _made(rf.Dataset([[1.0], [2.0], [-0.5], [-3.0]], [1, 1, -1, -1]), 6, "gaussian", 0.3),
    "mirrored": lambda: _made(_mirrored(), 12, "he", 0.1),
    "duplicates": lambda: _made(_lattice(), 10, "balanced-gaussian", 0.2, 0.1),
    "not separable": lambda: _made(_gaussian(16, 2, "checks"), 30, "he", 0.5),
    "linearly separable, leaky": lambda: _made(rf.make("linsep", n=30, d=5), 20, "balanced", 1e-3, 0.5),
    "tiny": _tiny,
}


def brute(problem: rf.Problem, exact: rf.Trajectory, cap: float) -> str:
    """How far brute force is from the reference."""
    log_time = float(exact.log_time[-1])
    if log_time > LONGEST:
        return ""
    try:
        apart = brute_off(problem, log_time, exact.final, cap, DELTA)
    except Cannot as why:
        return f"brute force cannot: {why}"
    except TooLong:
        return "brute force out of time"
    return f"brute force within {apart:.1g}" + (" WRONG" if apart > BRUTE else "")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="problems with this in their name")
    parser.add_argument("--cap", type=float, default=60, help="seconds of the processor for one flow")
    args = parser.parse_args(argv)
    print(f"{'error over rtol at':28s}{'':16s}" + "".join(f"{rtol:9.0e}" for rtol in RTOLS))
    over, wrong = [], 0
    for name, make in PROBLEMS.items():
        if args.only and args.only not in name:
            continue
        problem = make()
        for goal in GOALS:
            what = ", ".join(f"{key} {value:g}" for key, value in goal.items())
            try:
                exact = capped(args.cap, rf.flow, problem, goal, rtol=FINEST, progress=False)
            except (rf.ReluflowError, TooLong) as error_:
                print(f"{name:28s}{what:16s} no reference: {str(error_)[:70]}", flush=True)
                continue
            found = []
            for rtol in RTOLS:
                try:
                    run = capped(args.cap, rf.flow, problem, goal, rtol=rtol, progress=False)
                    found.append(error(exact.final, run.final) / rtol)
                except (rf.ReluflowError, TooLong):
                    found.append(np.inf)
            over += found
            said = brute(problem, exact, args.cap / 4)
            if max(found) > WITHIN:
                said += f"; amplified {moved(problem, float(exact.log_time[-1]), args.cap):.3g}"
            wrong += "WRONG" in said
            row = "".join(f"{one:8.2g}{'*' if one > WITHIN else ' '}" for one in found)
            print(f"{name:28s}{what:16s}{row} {said.removeprefix('; ')}", flush=True)
    share = np.array(over)
    print(
        f"{share.size} errors: median {np.median(share):.2g} rtol, worst {share.max():.3g}, above {WITHIN:g}: "
        f"{int((share > WITHIN).sum())}; references that brute force contradicts: {wrong}"
    )
    return 1 if wrong or (share > WITHIN).any() else 0


if __name__ == "__main__":
    sys.exit(main())
