"""DOP853 of SciPy stopped and begun anew wherever a neuron crosses the hyperplane of a point."""

from __future__ import annotations

import numpy as np
from scipy import integrate

import reluflow as rf
from benchmarks.measure import Found
from benchmarks.solvers._scipy import as_ode

LABEL = "scipy DOP853, events"
NOTE = "solve_ivp, begun anew at every crossing; the slopes are held between crossings; knows no sliding"
SETTINGS = {"flow": (1e-4, 1e-6, 1e-8, 1e-10)}
PROMISE = {"flow": 1e-7}


def flow(problem: rf.Problem, loss: float, rtol: float) -> Found:
    """Integrate from crossing to crossing until the loss is there."""
    _, state, apart = as_ode(problem)
    X, y, slope, weight = problem.data.X, problem.data.y, problem.net.slope, problem.weight
    side = np.where(X @ apart(state)[0].T > 0, 1.0, -1.0)

    def outputs(state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pre-activations, their slopes on the sides of now, and the margins."""
        W, a = apart(state)
        Z, H = X @ W.T, np.where(side > 0, 1.0, slope)
        return Z, H, y * ((H * Z) @ a)

    def field(_: float, state: np.ndarray) -> np.ndarray:
        Z, H, q = outputs(state)
        G = H * (weight * y / (1.0 + np.exp(q)))[:, None]
        return np.concatenate([(apart(state)[1][:, None] * (G.T @ X)).ravel(), (G * Z).sum(axis=0)])

    def kept(_: float, state: np.ndarray) -> float:
        inside = side * outputs(state)[0]
        inside.flat[last] = np.inf  # it has just crossed, and is at 0 but for rounding
        return float(inside.min())

    def left(_: float, state: np.ndarray) -> float:
        return weight * float(np.logaddexp(0.0, -outputs(state)[2]).sum()) - loss

    kept.terminal = left.terminal = True  # type: ignore[attr-defined]
    kept.direction = -1.0  # type: ignore[attr-defined]
    now, crossings, last = 0.0, 0, np.zeros(0, dtype=np.intp)
    while True:
        told = {"rtol": rtol, "atol": rtol * 1e-6}
        found = integrate.solve_ivp(field, (now, 1e6), state, "DOP853", events=[kept, left], **told)
        state, now = found.y[:, -1], float(found.t[-1])
        if len(found.t_events[1]) or now >= 1e6:
            return Found(rf.Network(*apart(state), slope), {"events": crossings})
        inside = side * outputs(state)[0]
        inside.flat[last] = np.where(inside.flat[last] < -1e-12, inside.flat[last], np.inf)  # it may have come back
        last = np.array([np.argmin(inside)])
        side.flat[last] *= -1.0
        crossings += 1
