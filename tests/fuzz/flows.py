"""Random problems of all kinds: where `flow` ends, against brute force, against itself and against what it keeps.

``python tests/fuzz/flows.py [--count 2000] [--seed 0] [--only K] [--cap 8]``. Points in one to six dimensions, up to
forty, also duplicated, mirrored, collinear and on grids; up to thirty neurons of sizes e^-40 to 1, some on hyperplanes;
all slopes, losses and reductions, both ways to train, balanced or not; rtol 1e-6, 1e-4 or 1e-8, to a moderate time.

Every run is held against Runge-Kutta steps begun anew at every event (`tests/helpers/restart.py`), where that knows how
to go on; against the flow at rtol 1e-11; and against what it must keep: a^2 - |w|^2, a loss that never rises, sides
that follow from the events. One line for everything wrong, with the problem to repeat it; then counts, reasons, and a
table of errors over rtol. Errors that the flow amplifies at this place are told apart by moving the start a little; so
are ridges, where the flow is not unique.

It is a program, not a test of the suite: it takes half an hour.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import reluflow as rf
from reluflow.sectors import exact_signs

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.limits import TooLong, capped, neurons, points, short, source
from helpers.draws import drawn, error, weights
from helpers.restart import DELTA, FINER, Cannot, Restarting

RTOLS = (1e-6, 1e-4, 1e-8)
FINE = 1e-11  # of the flow that is compared with
BRUTE = 1e-7  # the brute force and the fine flow agree to this, times what the flow amplifies
WITHIN = 3.0  # errors that are asked for, over rtol
MOVED = 1e-7  # part by which the start is moved to see what the flow amplifies

_SIDES = {"activate": 1, "deactivate": -1, "slide": 0}


class Outcome(NamedTuple):
    """What came of a problem: fine, wrong, slow, undecided, unchecked, ridge or crash; errors over rtol and seconds."""

    what: str
    text: str = ""
    over: float = np.nan  # the error over rtol
    grows: float = 1.0  # by what the flow amplifies
    brute: str = ""  # what became of the brute force


def draw(seed: int, k: int) -> tuple[rf.Problem | None, float, float]:
    """Draw problem k of a seed, the log time to follow it to, and the tolerance."""
    rng = np.random.default_rng([seed, k])
    log_time, rtol = float(rng.choice([-1.0, 0.0, 1.0, 2.0, 3.0])), RTOLS[k % 3]
    if k % 2:
        problem = drawn(10**7 + 10**5 * seed + k)
        return problem, log_time, rtol
    d, n, p = (int(rng.integers(1, most)) for most in ((7, 41, 31) if rng.random() < 0.25 else (7, 9, 9)))
    slope = float(rng.choice([0.0, 0.01, 0.5, 1.0], p=[0.45, 0.2, 0.3, 0.05]))
    X, y = points(rng, d, n)
    if not len(y):
        return None, 0.0, rtol
    net = neurons(rng, d, p, slope, X)
    if rng.random() < 0.3:  # some of them on hyperplanes
        W, a = (v.copy() for v in net.weights())
        for j in np.flatnonzero(rng.random(p) < 0.5):
            x = X[rng.integers(len(X))]
            W[j] -= (W[j] @ x) / (x @ x) * x
        lost = np.linalg.norm(W, axis=1) < 1e-9
        W[lost] = rng.standard_normal((int(lost.sum()), d))
        net = rf.Network(W, a, slope)
    if rng.random() < 0.4:
        log_scale = rng.uniform(-40, 0)
        net = rf.Network(net.W, net.a, slope, log_scale)
        log_time += np.log1p(-log_scale)
    options = {"loss": str(rng.choice(["logistic", "exponential"])), "reduction": str(rng.choice(["mean", "sum"]))}
    train = str(rng.choice(["both", "first"], p=[0.75, 0.25]))
    return rf.Problem(rf.Dataset(X, y), net, train=train, **options), log_time, rtol


def sides_off(run: rf.Trajectory) -> str:
    """Whether the sides at the end are not those that follow from the events."""
    X = run.problem.data.X
    kinds = set(run.events["kind"].tolist())
    if kinds & {"ridge", "origin", "die"} or run.problem.net.slope == 1.0:
        return ""
    net = run.problem.net
    sides = exact_signs(net.W, X)
    told = np.abs(net.directions @ X.T / run.problem.data.norms) > 1e-9  # others leave without an event
    for event in run.events:
        if event["sample"] >= 0 and event["kind"] in _SIDES:
            told[event["neuron"], event["sample"]] = True
            sides[event["neuron"], event["sample"]] = _SIDES[str(event["kind"])]
    z = run.final.directions @ X.T / run.problem.data.norms
    off = told & np.where(sides == 0, np.abs(z) > 1e-9, sides * z < -1e-9)
    return f"sides of (neuron, point) {np.argwhere(off)[:3].tolist()} are not those of the events" if off.any() else ""


def broken(run: rf.Trajectory) -> str:
    """What the run does not keep, if anything."""
    if (drift := float(run.balance_drift().max())) > 1e-9:
        return f"a^2 - |w|^2 drifts by {drift:.2g}"
    rise = np.diff(run.log_loss) - 1e-12 * (1 + np.abs(run.log_loss[1:]))
    if rise.size and rise.max() > run.settings["rtol"]:
        return f"the loss rises by {rise.max():.2g}"
    return sides_off(run)


def moved(problem: rf.Problem, log_time: float, cap: float) -> float:
    """By how much the flow amplifies a small change of its start."""
    rng, most = np.random.default_rng(0), 1.0
    net = capped(cap, rf.flow, problem, {"log_time": log_time}, rtol=1e-9, progress=False).final
    for _ in range(3):
        start = problem.net
        W = start.W * (1 + MOVED * rng.standard_normal(start.W.shape))
        other = replace(problem, net=replace(start, W=W, a=start.a * (1 + MOVED * rng.standard_normal(start.p))))
        there = capped(cap, rf.flow, other, {"log_time": log_time}, rtol=1e-9, progress=False).final
        most = max(most, error(there, net) / MOVED)
    return most


def away(problem: rf.Problem, found: np.ndarray, fine: np.ndarray) -> float:
    """Largest difference of a neuron, relative to its size at the start or the end; brute force knows no less."""
    size = np.maximum(np.linalg.norm(fine, axis=1), np.linalg.norm(weights(problem.net), axis=1))
    return float((np.linalg.norm(found - fine, axis=1) / size).max())


def brute_off(problem: rf.Problem, log_time: float, fine: rf.Network, cap: float, delta: float) -> float:
    """How far brute force is from a network."""
    W, a = capped(cap, Restarting(problem, delta).run, float(np.exp(log_time)), rtol=delta)
    return away(problem, np.column_stack([W, a]), weights(fine))


def follow(problem: rf.Problem, log_time: float, rtol: float, cap: float) -> Outcome:
    """Follow one problem in all ways."""
    until = {"log_time": log_time}
    try:
        run = capped(cap, rf.flow, problem, until, rtol=rtol, progress=False)
    except rf.ReluflowError as refused:
        return Outcome("undecided", short(str(refused)))
    except TooLong:
        return Outcome("slow", f"rtol {rtol:g}: more than {cap} s")
    if off := broken(run):
        return Outcome("wrong", off)
    try:
        best = capped(cap, rf.flow, problem, until, rtol=FINE, progress=False)
    except rf.ReluflowError as refused:
        return Outcome("undecided", f"rtol {FINE:g}: " + short(str(refused)))
    except TooLong:
        return Outcome("unchecked", f"rtol {FINE:g}: more than {cap} s")
    if off := broken(best):
        return Outcome("wrong", f"rtol {FINE:g}: {off}")
    fine = best.final
    over = error(run.final, fine) / rtol
    brute, apart = "agrees", 0.0
    try:
        apart = brute_off(problem, log_time, fine, cap / 8, DELTA)
        if apart > BRUTE:  # it sees crossings a little late, which counts where a neuron crosses very slowly
            apart = brute_off(problem, log_time, fine, cap, FINER)
    except Cannot as why:
        brute = f"cannot: {why}"
    except TooLong:
        brute = "out of time"
    unique = "ridge" not in set(run.events["kind"].tolist()) | set(best.events["kind"].tolist())
    grows = 1.0
    if over > WITHIN or apart > BRUTE:
        try:
            grows = moved(problem, log_time, cap)
        except (rf.ReluflowError, TooLong):
            grows = np.inf
    if apart > BRUTE * grows:
        return Outcome("wrong" if unique else "ridge", f"the brute force is {apart:.2g} away", over, grows, "differs")
    if over > 100 * grows:
        what = f"the flow at rtol {rtol:g} is {over:.3g} rtol from that at {FINE:g}"
        return Outcome("wrong" if unique else "ridge", what, over, grows, brute)
    return Outcome("fine", "", over, grows, brute)


def table(found: dict[float, list[tuple[float, float]]]) -> None:
    """Print the errors over rtol."""
    print("rtol     runs  median   99 %  worst  above 3 rtol  of these not amplified as much")
    for rtol, pairs in sorted(found.items()):
        over, grows = np.array(pairs).T
        high = over > WITHIN
        print(
            f"{rtol:5.0e} {over.size:7d} {np.median(over):7.2g} {np.quantile(over, 0.99):6.2g} {over.max():6.3g} "
            f"{int(high.sum()):13d} {int((over > WITHIN * grows).sum()):8d}"
        )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--begin", type=int, default=0, help="the first problem")
    parser.add_argument("--only", type=int, help="this problem alone")
    parser.add_argument("--cap", type=float, default=8, help="seconds of the processor for one flow")
    args = parser.parse_args(argv)
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    errors: dict[float, list[tuple[float, float]]] = {}
    began = time.process_time()
    for scale in (1e-6, 0.1):  # compile
        rf.flow(rf.Problem(rf.example("EX1").data, rf.initialize(2, 4, "gaussian", scale, seed=0)), {"log_time": 10})
    for k in range(args.begin, args.begin + args.count) if args.only is None else [args.only]:
        problem, log_time, rtol = draw(args.seed, k)
        if problem is None:
            continue
        since = time.process_time()
        try:
            out = follow(problem, log_time, rtol, args.cap)
        except Exception as bug:
            out = Outcome("crash", f"{type(bug).__name__}: {bug}")
        spent = time.process_time() - since
        counts[out.what] += 1
        if out.what not in ("fine", "wrong", "crash"):
            reasons[out.what, short(out.text)] += 1
        if out.brute:
            reasons["brute force", out.brute] += 1
        if np.isfinite(out.over) and out.what == "fine":
            errors.setdefault(rtol, []).append((out.over, out.grows))
        seen = f"{out.over:.3g} rtol, amplified {out.grows:.3g}, brute force {out.brute or 'not tried'}"
        if out.what in ("wrong", "crash", "slow") or args.only is not None:
            print(
                f"{out.what} {args.seed}/{k}, {spent:.1f} s: {out.text} ({seen}), log t = {log_time}, rtol = {rtol:g}"
            )
            print(f"    {source(problem)}", flush=True)
        elif out.what != "fine" or out.over > WITHIN or spent > args.cap:
            print(f"  {out.what} {args.seed}/{k}, {spent:.1f} s: {out.text or seen}", flush=True)
    total = sum(counts.values())
    print(f"{total} problems in {time.process_time() - began:.0f} s of CPU: ", end="")
    print(", ".join(f"{number} {what}" for what, number in counts.most_common()))
    for (what, text), number in sorted(reasons.items(), key=lambda item: (item[0][0], -item[1])):
        print(f"  {number:4d} {what}: {text}")
    table(errors)
    return 1 if counts["wrong"] or counts["crash"] or counts["slow"] else 0


if __name__ == "__main__":
    sys.exit(main())
