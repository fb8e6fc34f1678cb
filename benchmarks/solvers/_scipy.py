"""What the solvers of SciPy share: the flow as an ordinary differential equation of one vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import integrate

import reluflow as rf
from benchmarks.nets import velocity

Field = Callable[[float, np.ndarray], np.ndarray]


def as_ode(problem: rf.Problem) -> tuple[Field, np.ndarray, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]]:
    """Return the field, the start, and what takes a state apart into W and a."""
    W, a = problem.net.weights()
    p, d = W.shape

    def apart(state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return state[: p * d].reshape(p, d), state[p * d :]

    def field(_: float, state: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            turn, grow, _loss = velocity(problem, *apart(state))
        return np.concatenate([turn.ravel(), grow])

    return field, np.concatenate([W.ravel(), a]), apart


def to_loss(problem: rf.Problem, loss: float, rtol: float, method: str) -> rf.Network:
    """Integrate until the loss is there, kinks or no kinks."""
    field, begin, apart = as_ode(problem)

    def left(_: float, state: np.ndarray) -> float:
        return velocity(problem, *apart(state))[2] - loss

    left.terminal = True  # type: ignore[attr-defined]
    found = integrate.solve_ivp(field, (0.0, 1e6), begin, method, events=left, rtol=rtol, atol=rtol * 1e-6)
    return rf.Network(*apart(found.y[:, -1]), problem.net.slope)


def go_on(problem: rf.Problem, method: str) -> Iterator[rf.Network]:
    """Integrate as far as doubles or the time allow, rtol 1e-6."""
    field, begin, apart = as_ode(problem)
    solver = getattr(integrate, method)(field, 0.0, begin, 1e300, rtol=1e-6, atol=1e-12)
    taken, due = 0, 1
    while solver.status == "running":
        with np.errstate(over="ignore", invalid="ignore"):
            solver.step()
        taken += 1
        if taken >= due:
            due = taken + max(1, taken // 20)
            yield rf.Network(*apart(np.array(solver.y)), problem.net.slope)
    yield rf.Network(*apart(np.array(solver.y)), problem.net.slope)
