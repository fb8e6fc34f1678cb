"""What the rivals share: the gradient of a two-layer network, its loss, and how far two networks are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import reluflow as rf

Array = npt.NDArray[np.float64]


def gaussian(n: int, d: int, labels: str, seed: int = 0) -> rf.Dataset:
    """Gaussian points, labelled by a linear teacher or at random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return rf.Dataset(X, np.sign(X @ rng.standard_normal(d)) if labels == "teacher" else rng.choice([-1.0, 1.0], n))


def antipodal(n: int, d: int) -> rf.Dataset:
    """Every point of a linear teacher with its mirror image."""
    half = gaussian(n // 2, d, "teacher")
    return rf.Dataset(np.vstack([half.X, -half.X]), np.concatenate([half.y, -half.y]))


def start(data: rf.Dataset, width: int, scale: float, slope: float = 0.0, scheme: Any = "he") -> rf.Problem:
    """Set a network of this width and scale before the data."""
    return rf.Problem(data, rf.initialize(data.d, width, scheme, scale, seed=0, slope=slope))


def velocity(problem: rf.Problem, W: Array, a: Array) -> tuple[Array, Array, float]:
    """Return dW/dt and da/dt of the flow of the logistic loss, and the loss: one pass over the data."""
    X, y = problem.data.X, problem.data.y
    Z = X @ W.T
    H = np.where(Z > 0, 1.0, problem.net.slope)
    q = y * ((H * Z) @ a)
    G = H * (problem.weight * y / (1.0 + np.exp(q)))[:, None]
    loss = problem.weight * float(np.logaddexp(0.0, -q).sum())
    return a[:, None] * (G.T @ X), np.zeros_like(a) if problem.train == "first" else (G * Z).sum(axis=0), loss


def descended(problem: rf.Problem, step: float, steps: int) -> tuple[Array, Array]:
    """Return the weights after so many steps of gradient descent."""
    W, a = (np.array(part) for part in problem.net.weights())
    for _ in range(steps):
        turn, grow, _loss = velocity(problem, W, a)
        W, a = W + step * turn, a + step * grow
    return W, a


def distance(net: rf.Network, exact: rf.Network) -> float:
    """Return the largest difference of a direction or of a log norm; neurons of norm 0 have neither."""
    live = np.isfinite(exact.log_norms)
    turned = np.abs(net.directions - exact.directions)[live].max(initial=0.0)
    grown = np.abs(net.log_norms - exact.log_norms)[live].max(initial=0.0)
    return float(max(turned, grown))


def off_loss(problem: rf.Problem, loss: float, net: rf.Network) -> float:
    """Return how far a network is from having this loss, relatively."""
    return float(abs(np.expm1(problem.log_loss(net) - np.log(loss))))
