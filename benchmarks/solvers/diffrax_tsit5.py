"""Tsit5 of diffrax on the plain equation, compiled before it is timed; blind to kinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import reluflow as rf

LABEL = "diffrax Tsit5"
NEEDS = ("diffrax",)
NOTE = "blind to kinks; compilation is not counted"
SETTINGS = {"flow": (1e-3, 1e-5, 1e-7, 1e-9)}
PROMISE = {"flow": 1e-4, "late": 0.5}


def flow(problem: rf.Problem, loss: float, rtol: float) -> Callable[[], rf.Network]:
    """Integrate until the loss is there."""
    import diffrax
    import optimistix

    field, loss_of, begin = _equation(problem)
    term = diffrax.ODETerm(field)
    root: Any = optimistix.Newton(1e-10, 1e-10)
    event = diffrax.Event(lambda t, y, args, **_: loss_of(y) - loss, root)  # noqa: ARG005
    solve = _compiled(
        lambda y: (
            diffrax.diffeqsolve(
                term,
                diffrax.Tsit5(),
                0.0,
                1e6,
                None,
                y,
                stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol * 1e-6),
                event=event,
                max_steps=None,
            ).ys
        ),
        begin,
    )

    def run() -> rf.Network:
        W, a = solve(begin)
        return rf.Network(np.asarray(W)[-1], np.asarray(a)[-1], problem.net.slope)

    return run


def late(problem: rf.Problem) -> Callable[[], Iterator[rf.Network]]:
    """Integrate in stretches that double, for as long as one is let."""
    import diffrax

    field, _, begin = _equation(problem)
    term, control = diffrax.ODETerm(field), diffrax.PIDController(rtol=1e-6, atol=1e-12)

    def stretch(given: tuple[Any, float, float]) -> tuple[Any, Any]:
        y, begun, end = given
        told = {"stepsize_controller": control, "max_steps": 2000, "throw": False}
        found = diffrax.diffeqsolve(term, diffrax.Tsit5(), begun, end, None, y, **told)
        return tuple(part[-1] for part in found.ys), found.result == diffrax.RESULTS.successful

    solve = _compiled(stretch, (begin, 0.0, 1.0))

    def run() -> Iterator[rf.Network]:
        y, now, ahead = begin, 0.0, 1.0
        while now < 1e300 and ahead > 1e-6:
            later, fine = solve((y, now, now + ahead))
            if not fine or not np.isfinite(np.asarray(later[0])).all():
                ahead /= 2  # it ran out of steps on the way
                continue
            y, now, ahead = later, now + ahead, 2 * ahead
            yield rf.Network(np.asarray(y[0]), np.asarray(y[1]), problem.net.slope)

    return run


def _compiled(work: Callable[[Any], Any], example: Any) -> Callable[[Any], Any]:
    """Compile for arguments like these, and wait for results."""
    import jax

    wait: Any = jax.block_until_ready
    ready = jax.jit(work).lower(example).compile()
    return lambda given: wait(ready(given))


def _equation(problem: rf.Problem) -> tuple[Any, Any, Any]:
    """Return the field, the loss and the start, in float64."""
    import jax

    config: Any = jax.config
    config.update("jax_enable_x64", True)
    num, slope, frozen, weight = jax.numpy, problem.net.slope, problem.train == "first", problem.weight
    X, y = num.asarray(np.array(problem.data.X)), num.asarray(np.array(problem.data.y, dtype=float))

    def field(_: Any, state: Any, __: Any) -> Any:
        W, a = state
        z = X @ W.T
        h = num.where(z > 0, 1.0, slope)
        G = h * (weight * y * jax.nn.sigmoid(-y * ((h * z) @ a)))[:, None]
        return a[:, None] * (G.T @ X), num.zeros_like(a) if frozen else (G * z).sum(axis=0)

    def loss(state: Any) -> Any:
        W, a = state
        z = X @ W.T
        return weight * jax.nn.softplus(-y * (num.where(z > 0, z, slope * z) @ a)).sum()

    return field, loss, tuple(num.asarray(np.array(part)) for part in problem.net.weights())
