"""The package itself."""

from __future__ import annotations

from typing import Any

import numpy as np

import reluflow as rf
from benchmarks.measure import Found
from benchmarks.overheads import startup, sweep, watch
from benchmarks.studio import studio
from reluflow.sectors import enumerate_cells

__all__ = [
    "cells",
    "descend",
    "early",
    "explain",
    "flow",
    "global_margin",
    "hard_margin",
    "late",
    "limit",
    "startup",
    "studio",
    "sweep",
    "watch",
]
LABEL = "reluflow"
NOTE = "rtol 1e-2 locates no events"
SETTINGS = {
    "flow": (1e-2, 1e-4, 1e-6, 1e-8, 1e-10),
    "late": [[log, 1e-6] for log in (1e1, 3e1, 1e2, 3e2, 1e3, 3e3, 1e4, 3e4, 1e5, 1e6, 1e7)],
}
PROMISE = {
    "hard_margin": 1e-12,
    "flow": 3e-10,
    "late": 1e-6,
    "limit": 1e-10,
    "global_margin": 1e-6,
    "cells": 0.0,
    "descend": 1e-12,
    "watch": 0.0,
}


def hard_margin(Z: np.ndarray) -> Found:
    """Solve, or prove that there is nothing to find."""
    try:
        found = rf.margins.hard_margin(Z)
    except rf.NotSeparable as proof:
        used = int(np.count_nonzero(proof.certificate))
        return Found(None, {"verdict": f"not separable: {used} points combine to {proof.residual:.0e}"})
    return Found(found.w, {"margin": 1 / float(np.linalg.norm(found.w)), "support vectors": int(found.support.size)})


def flow(problem: rf.Problem, loss: float, rtol: float) -> Found:
    """Follow the flow to a loss."""
    run = rf.flow(problem, {"loss": loss}, rtol=rtol, progress=False)
    steps = {
        f"{name} steps": sum(f.steps for f in run.phases if f.name == name) for name in ("early", "coupled", "late")
    }
    return Found(run.final, {"events": int(run.events.size), **steps, "drift": float(run.balance_drift().max())})


def late(problem: rf.Problem, goal: list[float]) -> Found:
    """Follow the flow to a logarithm of time."""
    log_time, rtol = goal
    try:
        run, reason = rf.flow(problem, {"log_time": log_time}, rtol=rtol, progress=False), ""
    except rf.Undecided as error:
        run, reason = error.partial, str(error)
    figures = {
        "events": int(run.events.size),
        "log time": float(run.log_time[-1]),
        "drift": float(run.balance_drift().max()),
    }
    return Found(run.final, figures | ({"reason": reason} if reason else {}))


def early(problem: rf.Problem) -> Found:
    """Follow the early phase exactly."""
    found = rf.align(problem)
    sliding, held = found.fates.count("sliding"), int((found.pattern == 0).sum(axis=1).max())
    return Found(found, {"events": int(found.n_events.sum()), "sliding": sliding, "surfaces held": held})


def limit(problem: rf.Problem, _: str) -> Found:
    """Certify the limit; undecided is an answer too."""
    try:
        end = rf.limit(problem, optimum=False, progress=False)
    except rf.Undecided as error:
        return Found(None, {"kind": "undecided", "reason": str(error)})
    return Found(end.margin, {"kind": end.kind, "margin": float(end.margin), "groups": len(end.living)})


def explain(X: np.ndarray, y: np.ndarray, slope: float) -> Found:
    """Explain a table."""
    told = rf.explain(X, y, standardize=True, bias=True, width=50, slope=slope, time_limit=60)
    return Found(
        told.headline[0], {"limit": "limit" if told.limit is not None else "no limit", "says": told.headline[0]}
    )


def global_margin(data: rf.Dataset, slope: float) -> Found:
    """Bracket the largest margin."""
    best = rf.global_max_margin(data, slope)
    figures: dict[str, Any] = {"margin": float(best.lower), "exact": bool(best.exact), "method": best.method}
    return Found(best, {**figures, "neurons": best.network.p, "rounds": best.iterations})


def cells(X: np.ndarray) -> Found:
    """Count the cells."""
    count = len(enumerate_cells(X, budget=200_000))
    return Found(count, {"cells": count})


def descend(problem: rf.Problem, steps: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Descend with recording left out."""
    run = rf.descend(problem, step=0.1, steps=steps, record=2, dtype=dtype, progress=False)
    return run.W[-1], run.a[-1]
