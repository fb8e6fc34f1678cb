"""The best gradient descent: steps c/(L log 1/L), or c/L where the second layer is frozen, in the log domain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

import reluflow as rf

LABEL = "GD, loss-scaled"
NOTE = "steps c/(L log 1/L) with c tuned, forces in the log domain"
PROMISE = {"late": 1e-2}


def late(problem: rf.Problem) -> Callable[[], Iterator[rf.Network]]:
    """Tune c in short runs by the margin they come to, then go on with the best."""
    sharp = float(problem.data.norms.max()) ** 2
    a = problem.net.weights()[1]
    natural = 0.25 / (sharp * float(np.sum(a**2))) if problem.train == "first" else 0.1 / sharp
    size = max((natural * factor for factor in (1, 2, 4, 8, 16, 32)), key=lambda size: _margin(problem, size))
    return lambda: _descend(problem, size)


def _margin(problem: rf.Problem, size: float) -> float:
    """Return the normalised margin after a thousand iterations, or what a second and a half makes of them."""
    begun, net = time.process_time(), problem.net
    for net in islice(_descend(problem, size), 100):  # noqa: B007  (the last one counts)
        if time.process_time() - begun > 1.5:
            break
    W, a = net.weights()
    with np.errstate(all="ignore"):
        z = problem.data.X @ W.T
        q = problem.data.y * (np.maximum(z, problem.net.slope * z) @ a)
        norm = np.sum(W**2) if problem.train == "first" else np.sum(W**2) + np.sum(a**2)
        found = float(q.min() / (np.sqrt(norm) if problem.train == "first" else norm))
    return found if np.isfinite(found) else -np.inf


def _descend(problem: rf.Problem, size: float) -> Iterator[rf.Network]:
    """Move by size / (L (1 + log 1/L)): the largest steps under which the curvature along the path stays bounded."""
    X, y, slope, frozen = problem.data.X, problem.data.y, problem.net.slope, problem.train == "first"
    W, a = (np.array(part) for part in problem.net.weights())
    log_r, taken = float(np.log(problem.weight)), 0
    while True:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for _ in range(max(1, taken // 20)):
                taken += 1
                z = X @ W.T
                h = np.where(z > 0, 1.0, slope)
                q = y * ((h * z) @ a)
                log_loss = log_r + float(np.logaddexp.reduce(problem.loss.log_value(q)))
                step = size if frozen else size / (1.0 + max(-log_loss, 0.0))
                pull = h * (y * np.exp(log_r - np.logaddexp(0.0, q) - log_loss))[:, None]
                D = pull.T @ X
                grow = np.einsum("jk,jk->j", W, D)
                W = W + step * a[:, None] * D
                a = a if frozen else a + step * grow
        if not np.isfinite(W).all():
            return
        yield rf.Network(W, a, slope)
