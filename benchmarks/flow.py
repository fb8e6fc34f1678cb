"""Gradient flow and its limit: how long, how exactly, and against what else there is, in one run.

    python benchmarks/flow.py [--quick] [--json FILE] [--plot FILE]

One BLAS thread. Everything runs in this one process and one thread, and seconds are those of the processor: on an idle
machine the same as on the wall, on a busy one (the load average is printed) the only ones that mean something. PyTorch
and diffrax take part where they can be imported (diffrax may use several threads, whose seconds add up). Compilation
comes before the first measurement.

The rivals start from the same network. The best gradient descent has steps c/(L log 1/L), or c/L where the second layer
is frozen, with tuned c, and computes in the log domain. Errors are measured against the limit that `reluflow.limit`
certifies: ``gap`` is 1 - (normalised margin)/(that of the limit); ``1-cos`` is the largest 1 - cos between a group of
neurons (the sum of its |a_j| w_j) and its limit direction. Where the best gradient descent does not reach a gap in the
time it is given, its time is extrapolated by the law it obeys, time proportional to 1/gap (every iteration adds the
same to |theta|^2, or to |theta| where the second layer is frozen), and marked with ~. A fixed step and plain ODE
solvers are not extrapolated: their time is exponential in 1/gap, or they stop where doubles do.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is imported

import argparse
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import reluflow as rf
from rivals.flow import BEST, THRESHOLDS, Course, LossTarget, Target, by_flow, clock, rivals

VERDICTS: list[dict[str, Any]] = []


def verdict(what: str, figure: str, met: bool) -> None:
    """Print one target of the project and whether it is met."""
    VERDICTS.append({"target": what, "measured": figure, "met": bool(met)})
    print(f"  {'MET   ' if met else 'MISSED'} {what}: {figure}", flush=True)


# -- problems --------------------------------------------------------------------------------------------


def orthsep(n: int = 500, d: int = 20, p: int = 100) -> rf.Problem:
    return rf.Problem(rf.make("orthsep", n=n, d=d), rf.initialize(d, p))


def linsep(n: int, d: int, p: int, seed: int = 0) -> rf.Problem:
    return rf.Problem(rf.make("linsep", n=n, d=d, seed=seed), rf.initialize(d, p, slope=0.5))


def symsep(n: int = 100, d: int = 10, p: int = 50) -> rf.Problem:
    return rf.Problem(rf.make("symsep", n=n, d=d), rf.initialize(d, p, slope=0.5))


def two_sign(n: int, d: int, mean: float) -> rf.Problem:
    net = rf.initialize(d, 100, "two-sign", scale=1e-12, slope=0.3)
    return rf.Problem(rf.make("antipodal_gaussians", n=n, d=d, mean=mean), net, train="first")


@functools.cache
def mnist() -> rf.Problem | None:
    from reluflow.data import mnist as load

    try:
        data = load((0, 1), center=True, samples=2000)
    except rf.DataError as error:
        print(f"MNIST left out: {error}")
        return None
    return rf.Problem(data, rf.initialize(data.d, 50, slope=0.5))


@functools.cache
def limit_of(problem: rf.Problem) -> rf.dynamics.Limit:
    """Find a limit; what took minutes is not computed twice."""
    return rf.limit(problem, optimum=False, progress=False)


@dataclass(frozen=True)
class Case:
    """A reference problem, how far its flow is followed, and whether it is in the quick run."""

    name: str
    make: Callable[[], rf.Problem | None]
    log_time: float = 1e7
    quick: bool = True
    rtols: tuple[float, ...] = (1e-6, 1e-9)


CASES = (
    Case("toy: orthsep 6x2, p=50", lambda: orthsep(6, 2, 50)),
    Case("PL data: orthsep 500x20, p=100", orthsep),
    Case("leaky linsep 500x20, p=100", lambda: linsep(500, 20, 100), quick=False),
    Case("LL symmetric 100x50, p=50", lambda: symsep(100, 50)),
    Case("SBG two-sign 100x2, p=100", lambda: two_sign(100, 2, 2.0), quick=False),
    Case("SBG two-sign 400x50, p=100", lambda: two_sign(400, 50, 3.0), quick=False),
    Case(
        "randlab 40x20, p=100, sliding",
        lambda: rf.Problem(rf.make("randlab"), rf.initialize(20, 100)),
        1e2,
        quick=False,
    ),
    Case("centred MNIST 0/1 2000x784, p=50", mnist, 1e4, False, (1e-6,)),
)


# -- what is measured ------------------------------------------------------------------------------------


def against(quick: bool) -> list[dict[str, Any]]:
    """Seconds to each error, side by side, and their ratios."""
    heads = [f"gap {k:.0e}".replace("e-0", "e-") for k in THRESHOLDS]
    heads += [f"cos {k:.0e}".replace("e-0", "e-") for k in THRESHOLDS]
    rows = []
    for case in CASES:
        problem = case.make() if case.quick or not quick else None
        if problem is None:
            continue
        target: Target | LossTarget
        try:
            target = Target(limit_of(problem))
        except rf.Undecided as error:
            print(f"\n{case.name}: no certified limit, so the loss stands in place of the gap: {error}")
            target = LossTarget(problem)
        print(
            f"\n{case.name}; seconds to gap of the margin, to 1-cos; drift of a^2 - w^2; load {os.getloadavg()[0]:.1f}"
        )
        print(f"  {'':26s}" + "".join(f"{h:>10s}" for h in heads) + f" {'drift':>8s}")
        courses = {}
        for rtol in case.rtols:
            try:
                courses[f"reluflow flow {rtol:.0e}"] = by_flow(problem, target, rtol, case.log_time)
            except rf.Undecided as error:
                print(f"  reluflow flow {rtol:.0e}: failed: {error}")
        for name, course in courses.items():
            print(course.row(name), flush=True)
        for name, course in rivals(problem, target, 6.0 if quick else 20.0):
            courses[name] = course
            print(course.row(name), flush=True)
        rows.append({"problem": case.name, "courses": {k: vars(v) for k, v in courses.items()}})
        if isinstance(target, Target):
            ratios(case.name, courses)
    return rows


def ratios(name: str, courses: dict[str, Course]) -> None:
    """Compare with the best gradient descent; the targets are for the 500x20 problem."""
    ours = courses.get("reluflow flow 1e-06")
    theirs = courses[BEST]
    if ours is None:
        return
    found = {k: theirs.to_gap(k) / ours.to_gap(k) for k in THRESHOLDS}
    words = ", ".join(f"{'~' if k in theirs.guessed else ''}{ratio:.3g}x at {k:.0e}" for k, ratio in found.items())
    print(f"  best GD / flow (rtol 1e-6): {words}   (~: GD extrapolated)")
    if "500x20" in name and "PL" in name:
        verdict("at gap 1e-1 no slower than 3x the best GD", f"{1 / found[1e-1]:.2f}x as long", found[1e-1] >= 1 / 3)
        verdict("at gap 1e-4 at least 50x faster", f"{found[1e-4]:.3g}x", found[1e-4] >= 50)
        verdict("at gap 1e-6 at least 1000x faster", f"{found[1e-6]:.3g}x", found[1e-6] >= 1000)


def timed(problem: rf.Problem, log_time: float, rtol: float, repeat: int) -> tuple[rf.Trajectory, float]:
    """Return a run and the best time of some."""
    best = np.inf
    for _ in range(repeat):
        start = clock()
        run = rf.flow(problem, {"log_time": log_time}, rtol=rtol, progress=False)
        best = min(best, clock() - start)
    return run, best


def speed(quick: bool) -> list[dict[str, Any]]:
    """Time to log t = 10^6, and the law of the gap."""
    print(f"\nflow to log t = 1e6 (load {os.getloadavg()[0]:.1f})")
    rows = []
    for name, problem, goal, repeat in (
        ("500x20, p=100", orthsep(), 0.4, 3),
        ("1000x100, p=400", orthsep(1000, 100, 400), 3.0, 1 if quick else 2),
    ):
        for rtol in (1e-6, 1e-9):
            run, taken = timed(problem, 1e6, rtol, repeat)
            rows.append({"problem": name, "rtol": rtol, "seconds": taken, "drift": float(run.balance_drift().max())})
            verdict(f"log t = 1e6 on orthsep {name}, rtol {rtol:.0e}, under {goal:g} s", f"{taken:.3f} s", taken < goal)
    problem = orthsep()
    plus, minus = rf.margins.class_margins(problem.data)
    best = 0.5 / (np.linalg.norm(plus.w) + np.linalg.norm(minus.w))
    run = rf.flow(problem, {"log_time": 1e9}, progress=False)
    margins, products = run.normalized_margin(), []
    for log_time in (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9):
        k = int(np.argmin(np.abs(run.log_time - log_time)))
        gap = 1 - margins[k] / best
        products.append(gap * run.log_time[k])
        print(f"  log t = {run.log_time[k]:.3e}: gap {gap:.3e}, gap * log t = {products[-1]:.5f}")
        rows.append({"log_time": float(run.log_time[k]), "gap": float(gap)})
    spread = float(np.ptp(products) / np.mean(products))
    verdict("margin gap proportional to 1/log t down to 1e-8", f"gap * log t varies by {spread:.1%}", spread < 0.1)
    return rows


def precision(quick: bool) -> list[dict[str, Any]]:
    """Work and precision of the coupled phase, against rtol = 1e-12."""
    print(
        f"\ncoupled (and first late) steps up to loss 1e-3, error against rtol = 1e-12 (load {os.getloadavg()[0]:.1f})"
    )
    rows = []
    problems = [("orthsep 500x20, p=100", orthsep()), ("leaky linsep 60x10, p=40", linsep(60, 10, 40))]
    if not quick:
        problems.append(("leaky linsep 500x20, p=100", linsep(500, 20, 100)))
        problems.append(("randlab 40x20, p=20 (sliding)", rf.Problem(rf.make("randlab"), rf.initialize(20, 20))))
    for name, problem in problems:
        try:
            found = work_precision(name, problem)
        except rf.Undecided as error:
            verdict(f"error at most 10 rtol, {name}", f"failed: {error}", False)
            continue
        rows += found
        worst = max(max(row["directions"], row["norms"]) / row["rtol"] for row in found)
        verdict(f"error at most 10 rtol, {name}", f"{worst:.3g} rtol at worst", worst <= 10)
        off = max(row["drift"] for row in found)
        verdict(f"balance drift at most 1e-10, {name}", f"{off:.1e}", off <= 1e-10)
    return rows


def work_precision(name: str, problem: rf.Problem) -> list[dict[str, Any]]:
    """Time and error at the moment of loss 1e-3, for several tolerances."""
    rough = rf.flow(problem, {"loss": 1e-3, "time": 1e5}, rtol=1e-6, progress=False)
    until = {"log_time": float(rough.log_time[-1])}
    exact = rf.flow(problem, until, rtol=1e-12, progress=False).final
    rows = []
    for rtol in (1e-4, 1e-6, 1e-8, 1e-9, 1e-10):
        start = clock()
        run = rf.flow(problem, until, rtol=rtol, progress=False)
        taken, net = clock() - start, run.final
        live = np.isfinite(exact.log_norms)
        row = {
            "problem": name,
            "rtol": rtol,
            "seconds": taken,
            "steps": sum(phase.steps for phase in run.phases if phase.name != "early"),
            "directions": float(np.abs(net.directions - exact.directions).max()),
            "norms": float(np.abs(net.log_norms - exact.log_norms)[live].max()),
            "drift": float(run.balance_drift().max()),
        }
        rows.append(row)
        print(f"  {name:32s} rtol {rtol:.0e}: {taken:6.3f} s, {row['steps']:4d} steps, ", end="")
        print(f"directions {row['directions']:.1e}, log norms {row['norms']:.1e}, drift {row['drift']:.1e}", flush=True)
    return rows


def limits(quick: bool) -> list[dict[str, Any]]:
    """Time and exactness of the limit where the answer is known, and where it is not."""
    print(f"\nlimit (load {os.getloadavg()[0]:.1f})")
    rows: list[dict[str, Any]] = []

    def find(name: str, problem: rf.Problem) -> tuple[rf.dynamics.Limit | None, float]:
        start = clock()
        try:
            end: rf.dynamics.Limit | None = limit_of(problem)
            words = f"{end.kind}, margin {end.margin:.10g}, {len(end.living)} groups"
        except rf.Undecided as error:
            end, words = None, f"Undecided: {error}"
        taken = clock() - start
        rows.append({"problem": name, "seconds": taken, "answer": words})
        print(f"  {name:32s} {taken:7.2f} s  {words}", flush=True)
        return end, taken

    for name, problem in (("orthsep 500x20, p=100", orthsep()), ("symmetric 100x10, p=50", symsep())):
        end, taken = find(name, problem)
        if problem.net.slope:  # LL-T4.3: the mean of the two slopes times half the linear margin
            known = (1 + problem.net.slope) / 4 * rf.max_margin(problem.data).margin
        else:  # PL-T1': both classes by themselves
            plus, minus = rf.margins.class_margins(problem.data)
            known = 0.5 / (np.linalg.norm(plus.w) + np.linalg.norm(minus.w))
        error = abs(end.margin / known - 1) if end else np.inf
        verdict(
            f"limit exact to 1e-10 in under 1 s, {name}",
            f"error {error:.1e}, {taken:.2f} s",
            error < 1e-10 and taken < 1,
        )
    seeds = range(2 if quick else 5)
    found = [find(f"linsep 60x10, p=40, seed {seed}", linsep(60, 10, 40, seed)) for seed in seeds]
    decided, slowest = sum(end is not None for end, _ in found), max(taken for _, taken in found)
    met = decided == len(seeds) and slowest < 30
    verdict(
        f"generic leaky 60x10, {len(seeds)} seeds decided in under 30 s", f"{decided} decided, {slowest:.1f} s", met
    )
    problem = None if quick else mnist()
    if problem is not None:
        end, taken = find("MNIST 0/1 2000x784, p=50", problem)
        verdict("limit of the MNIST subsample in under 120 s", f"{taken:.1f} s", taken < 120 and end is not None)
    return rows


def cost(quick: bool) -> list[dict[str, Any]]:
    """Time to log t = 10^6 against each size."""
    print(f"\ncost of flow to log t = 1e6, rtol 1e-6, orthsep (load {os.getloadavg()[0]:.1f})")
    sizes: list[tuple[str, int, int, int]] = []
    grow = (1, 4) if quick else (1, 2, 4, 8)
    sizes += [("n", 250 * k, 20, 100) for k in grow]
    sizes += [("p", 500, 20, 50 * k) for k in grow]
    sizes += [("d", 500, 10 * k, 100) for k in grow]
    rows = []
    for what, n, d, p in sizes:
        run, taken = timed(orthsep(n, d, p), 1e6, 1e-6, 1)
        steps = {name: sum(f.steps for f in run.phases if f.name == name) for name in ("early", "coupled", "late")}
        rows.append({"varied": what, "n": n, "d": d, "p": p, "seconds": taken, "events": int(run.events.size), **steps})
        print(f"  {what}: n={n:5d} d={d:4d} p={p:4d}: {taken:7.3f} s, {run.events.size:7d} events, ", end="")
        print(f"{steps['coupled']} coupled and {steps['late']} late steps", flush=True)
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Plot the cost against each size and the number of events."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.4), layout="constrained")
    for axes, what in zip(figure.subplots(1, 4), ("n", "p", "d", "events"), strict=True):
        some = sorted((row for row in rows if what in ("events", row["varied"])), key=lambda row: float(row[what]))
        axes.loglog([row[what] for row in some], [row["seconds"] for row in some], "o-" if what != "events" else "o")
        axes.set(xlabel=what, ylabel="seconds to log t = 1e6")
        for axis, values in ((axes.xaxis, [row[what] for row in some]), (axes.yaxis, [row["seconds"] for row in some])):
            marks = [min(values), max(values)] if what == "events" or axis is axes.yaxis else values
            axis.set_ticks(marks, [f"{mark:.3g}" for mark in marks])
            axis.set_ticks([], minor=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller problems and time limits: about two minutes")
    parser.add_argument("--only", choices=sorted(PARTS), action="append", help="one part alone (repeatable)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--plot", type=Path, help="write a picture of the cost to this file")
    options = parser.parse_args()
    print(f"one BLAS thread on {os.cpu_count()} processors, load average {os.getloadavg()}")
    start = clock()
    rf.limit(orthsep(8, 3, 6), progress=False)  # compile
    print(f"compilation (or loading it) {clock() - start:.1f} s")
    found = {name: part(options.quick) for name, part in PARTS.items() if not options.only or name in options.only}
    print(f"\nload average at the end {os.getloadavg()}; {clock() - start:.0f} s in all; targets:")
    missed = [one for one in VERDICTS if not one["met"]]
    print(f"{len(VERDICTS) - len(missed)} met, {len(missed)} missed")
    for one in missed:
        print(f"  MISSED {one['target']}: {one['measured']}")
    if options.json:
        options.json.write_text(json.dumps({**found, "verdicts": VERDICTS}, indent=1, default=float))
    if options.plot and "cost" in found:
        draw(found["cost"], options.plot)


PARTS = {"speed": speed, "limit": limits, "precision": precision, "cost": cost, "against": against}

if __name__ == "__main__":
    main()
