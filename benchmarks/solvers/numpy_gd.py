"""Gradient descent in NumPy with a fixed step, as lean as it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import reluflow as rf
from benchmarks.nets import descended, velocity

LABEL = "NumPy GD"
NOTE = "the setting is its step; in the late phase it is tuned"
SETTINGS = {"flow": (0.1, 0.01, 1e-3), "early": (0.05, 2e-3, 2e-4)}
PROMISE = {"flow": 1e-3, "early": 1e-3, "late": 0.2, "descend": 1e-12}


def flow(problem: rf.Problem, loss: float, step: float) -> rf.Network:
    """Descend until the loss is there, looking at it in every step."""
    W, a = (np.array(part) for part in problem.net.weights())
    while True:
        turn, grow, now = velocity(problem, W, a)
        if now <= loss:
            return rf.Network(W, a, problem.net.slope)
        W, a = W + step * turn, a + step * grow


def early(problem: rf.Problem, step: float) -> Callable[[], rf.Network]:
    """Descend up to the last event of the early phase."""
    steps = round(float(rf.align(problem).last_event.max()) / step)
    return lambda: rf.Network(*descended(problem, step, steps), problem.net.slope)


def late(problem: rf.Problem) -> Callable[[], Iterator[rf.Network]]:
    """Descend for as long as one is let, with a tuned step."""
    step = best_step(problem)
    return lambda: _go_on(problem, step)


def best_step(problem: rf.Problem) -> float:
    """Return the step with the least loss after a few hundred."""
    sizes = [factor / float(problem.data.norms.max()) ** 2 for factor in (1.0, 4.0, 16.0, 64.0)]
    return min(sizes, key=lambda size: _after(problem, size))


def descend(problem: rf.Problem, steps: int, _: str) -> tuple[np.ndarray, np.ndarray]:
    """Take so many steps of 0.1, always in float64."""
    return descended(problem, 0.1, steps)


def _after(problem: rf.Problem, step: float, steps: int = 300) -> float:
    with np.errstate(all="ignore"):
        loss = velocity(problem, *descended(problem, step, steps))[2]
    return loss if np.isfinite(loss) else np.inf


def _go_on(problem: rf.Problem, step: float) -> Iterator[rf.Network]:
    W, a = (np.array(part) for part in problem.net.weights())
    taken = 0
    while True:
        for _ in range(max(1, taken // 20)):
            turn, grow, _ = velocity(problem, W, a)
            W, a, taken = W + step * turn, a + step * grow, taken + 1
        yield rf.Network(W, a, problem.net.slope)
