"""Random small problems: every confident answer of `limit` against a judge that shares no code with it.

``python tests/fuzz/limits.py [--count 500] [--seed 0] [--only K] [--cap 10] [--line] [--rtol 1e-9]``. Points in one to
four dimensions, also duplicated, mirrored, collinear and on integer grids; all slopes, losses and reductions, both ways
to train; tiny extra neurons, neurons unbalanced by very little either way. One line for every disagreement, with the
problem to repeat it; then how many agree, what was left undecided and why, where the judge himself is unsure, and how
many plateaus were met.
``--line`` takes problems in one dimension instead, whose limits are known by hand (`tests/helpers/line.py`); with
``--count 0`` the whole grid of them (``--most 3 --sizes 1``: up to three neurons, of one size).

It is a program, not a test of the suite: it takes some minutes.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import reluflow as rf

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.judge import Verdict, judge_problem
from helpers.line import SIZES, Line, all_lines, line_cases, line_limit, line_problem

SAME = 1e-3  # margins that differ by less, relatively, agree


class TooLong(Exception):
    """A cap was reached."""


class Outcome(NamedTuple):
    """What came of a problem: agree, disagree, undecided, unsure, refused or slow; and in words."""

    what: str
    text: str
    plateaus: int = 0
    missed: bool = False


# -- the problems --------------------------------------------------------------------------------------


def points(rng: np.random.Generator, d: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points and labels, often in special position."""
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(0, 0.3, (n, 1)))
    kind = rng.choice(["plain", "grid", "mirrored", "collinear", "duplicated"], p=[0.4, 0.25, 0.15, 0.1, 0.1])
    if kind == "grid":
        X = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == "mirrored":
        X[n - n // 2 :] = -X[: n // 2]
    elif kind == "collinear":
        X[n // 2 :] = rng.choice([0.5, 2.0, -1.0], n - n // 2)[:, None] * X[0]
    y = rng.choice([-1.0, 1.0], n)
    if rng.random() < 0.6:  # by a teacher, so that more can be fitted
        teacher = rng.standard_normal(d)
        y = np.where(X @ teacher >= 0, 1.0, -1.0)
    elif rng.random() < 0.5:
        A, b = rng.standard_normal((3, d)), rng.standard_normal(3)
        y = np.where(np.maximum(X @ A.T, 0) @ b >= 0, 1.0, -1.0)
    if kind == "duplicated" and n > 1:
        X[-1], y[-1] = X[0], y[0]
    keep = X.any(axis=1)
    for i in range(n):
        for j in range(i):
            if (X[i] == X[j]).all() and y[i] != y[j]:
                keep[i] = False
    return X[keep], y[keep]


def neurons(rng: np.random.Generator, d: int, p: int, slope: float, X: np.ndarray) -> rf.Network:
    """Draw a network, with tiny and slightly unbalanced neurons."""
    W = rng.standard_normal((p, d))
    if rng.random() < 0.15:
        W = rng.integers(-2, 3, (p, d)) + 0.0
        W[~W.any(axis=1)] = 1.0
    W /= np.linalg.norm(W, axis=1)[:, None]
    size = np.exp(rng.uniform(-2.5, 0.3, p))
    if p > 1 and rng.random() < 0.6:
        tiny = rng.random(p) < 0.5
        tiny[0] = False
        size[tiny] = 10.0 ** -rng.uniform(1, 8, tiny.sum())
    if rng.random() < 0.2:  # a neuron beside another, or against it
        W[-1] = W[0] * rng.choice([1.0, -1.0])
    a = rng.choice([-1.0, 1.0], p) * size
    W = W * size[:, None]
    how = rng.random(p)
    by = 10.0 ** -rng.uniform(3, 9, p)
    a = np.where(how < 0.25, a * (1 + by), np.where(how < 0.5, a / (1 + by), a))
    if rng.random() < 0.15:
        a = a * np.exp(rng.normal(0, 0.7, p))
    return rf.Network(W, a, slope)


def draw(seed: int, k: int) -> rf.Problem | None:
    """Draw problem k of a seed; None if there is nothing to learn in it."""
    rng = np.random.default_rng([seed, k])
    d, n, p = (int(v) for v in (rng.integers(1, 5), rng.integers(1, 7), rng.integers(1, 7)))
    slope = float(rng.choice([0.0, 0.01, 0.05, 0.1, 0.5, 1.0], p=[0.25, 0.2, 0.15, 0.2, 0.15, 0.05]))
    X, y = points(rng, d, n)
    if not len(y):
        return None
    return rf.Problem(
        rf.Dataset(X, y),
        neurons(rng, d, p, slope, X),
        loss=str(rng.choice(["logistic", "exponential"])),
        reduction=str(rng.choice(["mean", "sum"])),
        train=str(rng.choice(["both", "first"], p=[0.85, 0.15])),
    )


def source(problem: rf.Problem) -> str:
    """The problem in one line that builds it."""
    net, data = problem.net, problem.data
    W, a = net.weights()
    return (
        f"rf.Problem(rf.Dataset({data.X.tolist()}, {data.y.astype(int).tolist()}), "
        f"rf.Network({W.tolist()}, {a.tolist()}, {net.slope}), loss={problem.loss.name!r}, "
        f"reduction={problem.reduction!r}, train={problem.train!r})"
    )


# -- judging -------------------------------------------------------------------------------------------


def capped(cap: float, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call with a cap on the seconds of the processor."""

    def ring(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, cap)
    try:
        return call(*args, **options)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def reached(problem: rf.Problem, found: rf.dynamics.Limit, lost: tuple[int, ...]) -> float:
    """Lower bound of the smoothed margin where the flow was left, over the points that are felt; limits are above."""
    live = np.setdiff1d(np.arange(problem.data.n), lost)
    net, some = found.trajectory.final, problem.data.subset(live)
    return net.normalized_margin(some, problem.train) * (1 - np.log(live.size) / net.margins(some).min())


def in_balance(problem: rf.Problem, found: rf.dynamics.Limit) -> Outcome:
    """Check a limit beside points in balance, which the judge sees as a rest: a KKT point, by bounded least squares.

    Stationary are the margins at the smallest, with multipliers that are not negative, and those in balance, with any.
    """
    from scipy.optimize import lsq_linear

    data, (W, a) = problem.data, found.network.weights()
    z = W @ data.X.T
    near = np.abs(z) <= 1e-9 * np.linalg.norm(W, axis=1)[:, None] * data.norms
    if near.any():
        return Outcome("unsure", "points in balance, and a neuron on a hyperplane", len(found.plateaus))
    h = np.where(z > 0, 1.0, found.network.slope)
    q = data.y * (a @ (h * z))
    slope_w = (a[:, None, None] * h[:, :, None] * data.y[None, :, None] * data.X[None]).transpose(1, 0, 2)
    gradient = np.hstack([slope_w.reshape(data.n, -1), (h * z * data.y).T])
    fitted = np.setdiff1d(np.arange(data.n), found.balanced)
    fitted = fitted[(h[:, fitted] != 0).any(axis=0)]
    active = fitted[q[fitted] <= q[fitted].min() * (1 + 1e-7)]
    rows = np.concatenate([active, found.balanced])
    least = np.concatenate([np.zeros(active.size), np.full(found.balanced.size, -np.inf)])
    theta = np.concatenate([W.ravel(), a])
    off = lsq_linear(gradient[rows].T, theta, (least, np.inf), tol=1e-14).fun
    loss = float(np.exp(problem.log_loss(found.trajectory.final)))
    same = abs(q[found.balanced]).max() < 1e-9 and abs(q[fitted].min() - found.margin) <= SAME * found.margin
    good = same and np.abs(off).max() < 1e-6 and abs(loss - found.loss_floor) <= 1e-4 * loss
    text = f"in balance: KKT residual {np.abs(off).max():.1e}, loss {loss:.8g} against {found.loss_floor:.8g}"
    return Outcome("agree" if good else "disagree", "stall in balance" if good else text, len(found.plateaus))


def compare(problem: rf.Problem, found: rf.dynamics.Limit, verdict: Verdict) -> Outcome:
    """Hold an answer against the judge's."""
    plateaus = len(found.plateaus)
    if verdict.kind == "unsure":
        return Outcome("unsure", verdict.why, plateaus)
    if found.balanced.size and verdict.kind == "unfit":
        return in_balance(problem, found)
    mine = f"limit {found.kind} {found.margin:.7g}, judge {verdict.kind} {verdict.margin:.7g}"
    if (found.kind == "rest") != (verdict.kind == "unfit"):
        return Outcome("disagree", f"{mine} ({verdict.why})", plateaus)
    if found.kind == "rest":
        return Outcome("agree", "rest", plateaus)
    if found.kind != verdict.kind:
        return Outcome("disagree", mine, plateaus)
    if found.kind == "stall":
        floor = problem.weight * len(verdict.lost) * float(problem.loss.value(0.0))
        if abs(found.loss_floor - floor) > 1e-9 * floor:
            return Outcome("disagree", f"{mine}, floors {found.loss_floor:.6g} and {floor:.6g}", plateaus)
    if abs(found.margin - verdict.margin) > SAME * verdict.margin:
        if reached(problem, found, verdict.lost) > (1 + SAME) * verdict.margin:
            return Outcome("unsure", "the flow has a larger smoothed margin already, and that never falls", plateaus)
        return Outcome("disagree", mine, plateaus)
    longest = max((end - start for _, start, end in verdict.plateaus), default=0.0)
    return Outcome("agree", found.kind, plateaus, missed=longest > 10 and plateaus == 0)


def short(reason: str) -> str:
    """A reason without its numbers, so that like ones are counted together."""
    reason = reason.replace("no limit could be confirmed by log t = ", "")
    reason = re.sub(r"^[-+.e\d]+: ", "", reason).split(". The flow so far")[0]
    return re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", reason)[:150]


def answer(problem: rf.Problem, cap: float) -> Outcome:
    """What `limit` says, and whether the judge agrees."""
    try:
        found = capped(cap, rf.limit, problem, optimum=False)
    except rf.Undecided as error:
        return Outcome("undecided", short(str(error)))
    except rf.BudgetExceeded as error:
        return Outcome("undecided", short(str(error)))
    except rf.ReluflowError as error:
        return Outcome("refused", short(str(error)))
    except TooLong:
        return Outcome("slow", f"limit took more than {cap} s")
    try:
        verdict = capped(4 * cap, judge_problem, problem, seconds=float(cap))
    except TooLong:
        return Outcome("unsure", "out of time")
    return compare(problem, found, verdict)


def by_hand(case: Line, rtol: float, cap: float) -> Outcome:
    """What `limit` says of a problem in one dimension, against what is known."""
    kind, margin = line_limit(case) or ("", np.nan)
    try:
        found = capped(cap, rf.limit, line_problem(case), optimum=False, rtol=rtol)
    except rf.ReluflowError as error:
        return Outcome("undecided", short(str(error)))
    except TooLong:
        return Outcome("slow", f"limit took more than {cap} s")
    same = found.kind == kind and (kind == "rest" or abs(found.margin - margin) <= 1e-8 * margin)
    text = f"limit {found.kind} {found.margin:.7g}, by hand {kind} {margin:.7g}"
    return Outcome("agree", kind, len(found.plateaus)) if same else Outcome("disagree", f"{text}: {case}")


def cases(args: argparse.Namespace) -> Iterator[tuple[int, rf.Problem, Callable[[float], Outcome]]]:
    """The problems of a run."""
    if args.line:
        grid = line_cases(args.count, args.seed)
        if not args.count:  # in any order, so that a run that is ended is a sample
            grid = list(all_lines(args.most, SIZES[: args.sizes]))
            grid = [grid[k] for k in np.random.default_rng(args.seed).permutation(len(grid))]
        for k, case in enumerate(grid):
            if k % 1000 == 0:
                print(f"  {k} of {len(grid)}", flush=True)
            yield k, line_problem(case), partial(by_hand, case, args.rtol)
        return
    for k in range(args.count) if args.only is None else [args.only]:
        if (problem := draw(args.seed, k)) is not None:
            yield k, problem, partial(answer, problem)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this problem alone")
    parser.add_argument("--cap", type=float, default=10, help="seconds for one answer")
    parser.add_argument("--rtol", type=float, default=1e-9, help="of the flow, with --line: limits are exact anyway")
    parser.add_argument("--most", type=int, default=2, help="neurons of the whole grid of --line")
    parser.add_argument("--sizes", type=int, default=2, help="their sizes")
    parser.add_argument("--line", action="store_true", help="problems in one dimension with limits known by hand")
    args = parser.parse_args(argv)
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    met, missed, began = 0, 0, time.time()
    rf.limit(
        rf.Problem(rf.example("EX1").data, rf.initialize(2, 4, "balanced", 0.1, seed=0, slope=0.5))
    )  # compile once
    for k, problem, ask in cases(args):
        try:
            out = ask(args.cap)
        except Exception as error:  # a bug, of either side
            out = Outcome("crash", f"{type(error).__name__}: {error}")
        counts[out.what] += 1
        met += out.plateaus
        missed += out.missed
        if out.what not in ("disagree", "crash"):
            reasons[out.what, short(out.text)] += 1
        if out.what in ("disagree", "crash") or args.only is not None:
            print(f"{out.what} {args.seed}/{k}: {out.text}\n    {source(problem)}", flush=True)
        elif out.what in ("undecided", "slow", "unsure"):
            print(f"  {out.what} {args.seed}/{k}: {out.text}", flush=True)
    total = sum(counts.values())
    print(f"{total} problems in {time.time() - began:.0f} s: " + ", ".join(f"{v} {k}" for k, v in counts.most_common()))
    print(f"plateaus met by limit: {met}; problems where only the judge saw a long one: {missed}")
    for (what, text), number in sorted(reasons.items(), key=lambda item: (item[0][0], -item[1])):
        print(f"  {number:4d} {what}: {text}")
    return 1 if counts["disagree"] or counts["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
