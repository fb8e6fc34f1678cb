"""A plain integrator of the flow in the clock of log |theta|.

It is independent of the package's own flow: classical Runge-Kutta, forces scaled by their maximum, true time summed in
the log domain. Good for tens of thousands in q_min, to about 1e-6 away from kinks.
"""

import numpy as np

import reluflow as rf
from reluflow.dynamics import Trajectory


def integrate(problem, q_end=300.0, h_max=0.02, every=10, steps=200_000):
    """Trajectory of the flow until the smallest margin is ``q_end``."""
    data, both, alpha = problem.data, problem.train == "both", problem.net.slope
    W, a = (np.array(x) for x in problem.net.weights())
    Z = data.signed

    def field(W, a):
        z = data.X @ W.T
        # On a kink the mean of the two, as x and -x have it between them, whatever the last digit of z is.
        kink = np.abs(z) <= 1e-15 * np.outer(data.norms, np.linalg.norm(W, axis=1))
        slopes = np.where(kink, (1 + alpha) / 2, np.where(z > 0, 1.0, alpha))
        q = data.y * ((slopes * z) @ a)
        log_g = problem.loss.log_force(q)
        top = log_g.max()
        g = np.exp(log_g - top)
        FW = a[:, None] * ((slopes * g[:, None]).T @ Z)
        Fa = (g * data.y) @ (slopes * z) if both else np.zeros_like(a)
        size = np.sqrt(np.sum(W**2) + (np.sum(a**2) if both else 0.0))
        rate = size / np.sqrt(np.sum(FW**2) + np.sum(Fa**2))
        return FW * rate, Fa * rate, np.log(rate) - top - np.log(problem.weight), q

    log_t, records = -np.inf, []
    for k in range(steps):
        k1 = field(W, a)
        q_min = k1[3].min()
        done = q_min >= q_end
        if k % every == 0 or done:
            records.append((log_t, W.copy(), a.copy()))
        if done:
            break
        h = min(h_max, 0.3 / (1 + 2 * max(q_min, 0.0)))
        k2 = field(W + h / 2 * k1[0], a + h / 2 * k1[1])
        k3 = field(W + h / 2 * k2[0], a + h / 2 * k2[1])
        k4 = field(W + h * k3[0], a + h * k3[1])
        W = W + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        a = a + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        passed = np.logaddexp.reduce([k1[2], np.log(2) + k2[2], np.log(2) + k3[2], k4[2]]) - np.log(6) + np.log(h)
        log_t = np.logaddexp(log_t, passed)
    return assemble(problem, records)


def assemble(problem, records, method="flow", **settings):
    """Trajectory from a list of (log time, W, a)."""
    Ws, outs = np.array([r[1] for r in records]), np.array([r[2] for r in records])
    norms = np.linalg.norm(Ws, axis=2)
    nets = [rf.Network(W, a, problem.net.slope) for _, W, a in records]
    return Trajectory(
        problem,
        np.array([r[0] for r in records]),
        np.array([problem.log_loss(net) for net in nets]),
        Ws / norms[..., None],
        np.log(norms),
        np.log(np.abs(outs)),
        np.sign(outs).astype(np.int8),
        method=method,
        settings=settings,
    )
