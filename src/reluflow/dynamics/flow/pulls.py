"""The losses as the integrator sees them, compiled: the pull of a sample as a function of its margin, and its fall.

A loss enters the integrator by these two functions alone, and implicit steps by their logarithms (`log_pull`, and
`sink`, its slope); `log_loss` serves the goals. The same numbers as those of `reluflow.problem.Loss`, which speaks
arrays.
"""

from __future__ import annotations

import math

from ..early.state import Floats, jit

#: Numbers of the losses, as the compiled functions know them.
LOSSES = {"logistic": 0, "exponential": 1}

_FAR = 40.0  # size of a margin from which on e^-this is rounding beside 1


@jit
def pull(loss: int, q: float) -> float:
    """``g(q) = -l'(q)``."""
    if loss == 1:
        return math.exp(-q)
    e = math.exp(-abs(q))
    return (e if q > 0.0 else 1.0) / (1.0 + e)


@jit
def fall(loss: int, q: float) -> float:
    """``l''(q) = -g'(q)``."""
    if loss == 1:
        return math.exp(-q)
    e = math.exp(-abs(q))
    return e / (1.0 + e) ** 2


@jit
def log_pull(loss: int, q: float) -> float:
    """``log g(q)``."""
    if loss == 1:
        return -q
    return min(-q, 0.0) - (math.log1p(math.exp(-abs(q))) if abs(q) < _FAR else 0.0)


@jit
def sink(loss: int, q: float) -> float:
    """``-d log g / dq``: which part of itself a pull loses with its margin."""
    return 1.0 if loss == 1 else 1.0 / (1.0 + math.exp(-q))


@jit
def _log_value(loss: int, q: float) -> float:
    if loss == 1:
        return -q
    e = math.exp(-abs(q))
    return -q - e / 2 if q > 30.0 else math.log(max(-q, 0.0) + math.log1p(e))


@jit
def log_loss(loss: int, weight: float, y: Floats, f: Floats) -> float:
    """Log of the loss of all samples with outputs f."""
    top = -math.inf
    for i in range(y.size):
        top = max(top, _log_value(loss, y[i] * f[i]))
    if not math.isfinite(top):
        return top
    total = 0.0
    for i in range(y.size):
        total += math.exp(_log_value(loss, y[i] * f[i]) - top)
    return top + math.log(weight * total)
