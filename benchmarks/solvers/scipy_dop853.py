"""DOP853 of SciPy on the plain equation, blind to kinks."""

from __future__ import annotations

from collections.abc import Iterator

import reluflow as rf
from benchmarks.solvers import _scipy

LABEL = "scipy DOP853"
NOTE = "solve_ivp, blind to kinks"
SETTINGS = {"flow": (1e-3, 1e-5, 1e-7, 1e-9)}
PROMISE = {"flow": 1e-4, "late": 0.2}


def flow(problem: rf.Problem, loss: float, rtol: float) -> rf.Network:
    """Integrate until the loss is there."""
    return _scipy.to_loss(problem, loss, rtol, "DOP853")


def late(problem: rf.Problem) -> Iterator[rf.Network]:
    """Integrate for as long as one is let."""
    return _scipy.go_on(problem, "DOP853")
