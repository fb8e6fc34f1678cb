r"""The clock of the early phase in closed form.

On a straight piece the force c is constant. With :math:`\theta = |c| t` the output weight and the component of w along
c obey :math:`a' = |c|\, w_c`, :math:`w_c' = |c|\, a`, and the rest of w does not move:

.. math:: a(t) = a \cosh\theta + w_c \sinh\theta, \qquad w_c(t) = w_c \cosh\theta + a \sinh\theta .

Everything is returned times :math:`e^{-\theta}`, so that it holds for every t a double can name.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problem.types import Array


class Moved(NamedTuple):
    """A neuron after some time on a straight piece; the real values are ``exp(log_factor)`` times these."""

    log_factor: Array
    out: Array  # |a|
    along: Array  # w.c / |c|
    perp: Array  # size of w orthogonal to c
    step: Array  # w has moved by this times c


def move(force: Array, out: Array, along: Array, perp: Array, excess: Array, time: Array) -> Moved:
    r"""Both layers trained: where a neuron is after ``time``.

    ``excess`` is :math:`a^2 - |w|^2`, which is constant (C-INV1).

    >>> one = np.ones(1)
    >>> moved = move(one, one, 0 * one, one, 0 * one, 1e4 * one)
    >>> float((moved.log_factor + np.log(moved.out))[0])    # log cosh(10^4)
    9999.30685281944
    """
    theta = force * time
    with np.errstate(under="ignore"):
        fade, fade2 = np.exp(-theta), np.exp(-2 * theta)
    less = out - along
    # a + w_c cancels for a neuron that runs against c; its product with a - w_c does not.
    bend = perp**2 + excess
    bend = np.where((excess < 0) & (np.abs(bend) <= 2.0**-50 * perp**2), 0.0, bend)  # as the kernel leaves it
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.where(along < 0, bend / less, out + along)
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):
        way = out * -np.expm1(-2 * theta) + along * np.expm1(-theta) ** 2
        step = np.where(force > 0, way / (2 * force), 0.0)
        # w_c far below |a| is lost in a + w_c and a - w_c.
        slight = 2 * np.abs(along) <= out
        ahead = np.where(slight, along * (1 + fade2) - out * np.expm1(-2 * theta), more - less * fade2) / 2
        return Moved(theta, (more + less * fade2) / 2, ahead, perp * fade, step)


def move_frozen(force: Array, out: Array, along: Array, perp: Array, time: Array) -> Moved:
    """Only the first layer trained: w moves with constant velocity."""
    step = out * time
    return Moved(np.zeros_like(step), np.broadcast_to(out, step.shape), along + force * step, perp + 0 * step, step)


def time_to_angle(
    force: Array, out: Array, along: Array, perp: Array, excess: Array, angle: float, frozen: bool
) -> Array:
    r"""How long until w is within ``angle`` of c (0 if it is already, inf if that never happens).

    For a neuron with :math:`|a| = |w|` this is :math:`\log(\tan(\theta_0/2)/\tan(\theta_1/2))/|c|` (ALG-EARLY).
    """
    goal = perp / np.tan(angle)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if frozen:
            time = (goal - along) / (force * out)
        else:
            # w_c(t) = goal is a quadratic in e^theta; a^2 - w_c^2 is constant.
            bend = np.where(excess >= 0, perp**2 + excess, (out - along) * (out + along))
            root = np.sqrt(np.maximum(bend + goal**2, 0.0))
            time = np.where(
                along >= 0, np.log((goal + root) / (out + along)), np.log((goal + root) * (out - along) / bend)
            )
            time = time / force
    return np.where(along >= goal, 0.0, np.where(force > 0, time, np.inf))
