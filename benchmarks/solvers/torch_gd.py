"""Full-batch gradient descent in PyTorch, float64 unless said, one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import reluflow as rf
from benchmarks.solvers.numpy_gd import best_step

LABEL = "torch GD"
NEEDS = ("torch",)
SETTINGS = {"flow": (0.1, 0.01)}
PROMISE = {"flow": 1e-2, "late": 0.2, "descend": 1e-10}


def flow(problem: rf.Problem, loss: float, step: float) -> rf.Network:
    """Descend until the loss is there."""
    W, a, advance = _loop(problem, step)
    while advance(loss):
        pass
    return _network(problem, W, a)


def late(problem: rf.Problem) -> Callable[[], Iterator[rf.Network]]:
    """Descend for as long as one is let, with the step that suits NumPy."""
    step = best_step(problem)

    def run() -> Iterator[rf.Network]:
        W, a, advance = _loop(problem, step)
        taken = 0
        while True:
            for _ in range(max(1, taken // 20)):
                advance()
                taken += 1
            yield _network(problem, W, a)

    return run


def descend(problem: rf.Problem, steps: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Take so many steps of 0.1."""
    W, a, advance = _loop(problem, 0.1, dtype)
    for _ in range(steps):
        advance()
    return W.detach().numpy(), a.detach().numpy()


def _loop(problem: rf.Problem, step: float, dtype: str = "float64") -> tuple[Any, Any, Callable[..., bool]]:
    """Return the weights, and what makes a step, unless the loss is small enough: then it says no."""
    import torch

    torch.set_num_threads(1)
    kind = getattr(torch, dtype)
    X, y = (torch.tensor(np.array(v), dtype=kind) for v in (problem.data.X, problem.data.y))
    W, a = (torch.tensor(np.array(v), dtype=kind, requires_grad=True) for v in problem.net.weights())
    optimizer = torch.optim.SGD([W] if problem.train == "first" else [W, a], lr=step)

    def advance(enough: float = 0.0) -> bool:
        optimizer.zero_grad(set_to_none=True)
        output = torch.nn.functional.leaky_relu(X @ W.T, problem.net.slope) @ a
        loss = problem.weight * torch.nn.functional.softplus(-y * output).sum()
        if loss <= enough:
            return False
        loss.backward()
        optimizer.step()
        return True

    return W, a, advance


def _network(problem: rf.Problem, W: Any, a: Any) -> rf.Network:
    return rf.Network(W.detach().numpy().copy(), a.detach().numpy().copy(), problem.net.slope)
