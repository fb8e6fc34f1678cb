r"""How long the early phase is a good description at the scale there is.

Between two looks at the network, :math:`|q_i|` can be bounded rigorously. With :math:`E = (|w|^2 + a^2)/2` of a
neuron (at least |a||w|), k its final rate of growth and :math:`\Lambda` the largest force it still meets,

.. math:: E(s) \le E(t)\,e^{2k(s-t)}, \qquad |q_i'| \le 2 |x_i| \sum \Lambda E,

because s G never decreases along a direction and ends at k. So one can step from bound to bound without missing the
first time at which :math:`\max_i |q_i|` is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...problem import BudgetExceeded, Network, ProblemError, check_time
from ...problem.types import Index

if TYPE_CHECKING:
    from .alignment import Alignment
    from .path import Snapshot


Pairs = tuple[Index, Index]  # neurons and samples

_CLOSE = 1e-6  # this near to the tolerance a root finder may look a little further than the bound
_STEPS = 2000
_LOOKS = 3  # each makes the network of a moment: after so many nearly all of the time is found
_ON = 1e-12  # a direction nearer to a hyperplane than this is on it
_HALVINGS = 40


def valid_until(early: Alignment, tol: float, rough: bool = False) -> float:
    """First time at which ``max_i |q_i|`` reaches ``tol``; if ``rough``, an earlier one that costs little to find."""
    from scipy.optimize import brentq

    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.number)) or not 0 < tol < np.inf:
        raise ProblemError(f"tol = {tol!r}: a positive number is needed, for example 1e-6.")
    goal, t = float(np.log(tol)), 0.0
    for look in range(_STEPS):
        check_time("looking how long the network stays small", t)
        if rough and look == _LOOKS:
            return t
        shot = early._paths.snapshot(np.array([t]))
        now = _log_size(early, early._shown(shot))
        if now >= goal - (0.1 if rough else 0.0):
            return t
        step = _safe_step(early, shot, goal, now)
        if step == np.inf or t + step == t:
            return t + step
        if now >= goal + np.log1p(-_CLOSE) and _log_margin(early, t + 16 * step) >= goal:
            return float(brentq(lambda s: _log_margin(early, s) - goal, t, t + 16 * step, rtol=1e-14))
        t += step
    raise BudgetExceeded(
        f"max |q| stays below {tol:g} until t = {t:.6g} at least; it was not decided within {_STEPS} steps how much "
        "longer (large neurons cancel each other); what was found so far is kept.",
        t,
    )


def poised(early: Alignment) -> Pairs:
    """Neurons that tend to a hyperplane without ever being on it, and its samples.

    In the early phase such a neuron comes near for ever. What the network puts out, however small, decides when it
    passes, and with it what it does from then on: errors count relative to its distance.
    """
    z = early.direction @ (early.problem.data.X / early.problem.data.norms[:, None]).T
    on = (np.abs(z) <= _ON) & (early.pattern != 0) & (early.growth > 0)[:, None]
    j, i = np.nonzero(on)
    return j, i


def near(early: Alignment, pairs: Pairs, t: float) -> float:
    """Log of the least distance, as a sine, of poised neurons from their hyperplanes at time t."""
    j, i = pairs
    z = np.einsum("kd,kd->k", early.directions(t)[j], early.problem.data.X[i]) / early.problem.data.norms[i]
    return float(np.log(np.maximum(np.abs(z), 1e-15).min()))


def passing(early: Alignment, pairs: Pairs, tol: float, last: float) -> float:
    """Return the last time, up to another, at which ``max_i |q_i|`` is below ``tol`` times that distance."""

    def small(t: float) -> bool:
        return bool(_log_margin(early, t) <= np.log(tol) + near(early, pairs, t))

    if small(last):
        return last
    low, high = 0.0, last
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if small(middle) else (low, middle)
    return low


def _log_margin(early: Alignment, t: float) -> float:
    """Log of ``max_i |q_i|`` at time t."""
    return _log_size(early, early.network(t))


def _log_size(early: Alignment, net: Network) -> float:
    mantissa, log_factor = net.scaled_outputs(early.problem.data.X)
    with np.errstate(divide="ignore"):
        return float(np.log(np.abs(mantissa).max()) + log_factor)


def _safe_step(early: Alignment, shot: Snapshot, goal: float, now: float) -> float:
    """Time from a snapshot on during which max |q| cannot reach the goal."""
    run = early._paths.written
    reach = np.log(early.problem.data.norms.max()) - goal
    ahead = np.column_stack([shot.piece[0], run.first[1:]]).ravel()[:-1]  # from the present piece to the last
    force = np.maximum.reduceat(run.force, ahead)[::2] * early.problem.speed * early._paths.faces.unit
    left = -np.expm1(now - goal)  # part of the tolerance still unused
    if early._paths.frozen:
        with np.errstate(over="ignore", divide="ignore"):
            return float(left / np.sum(np.exp(np.minimum(2 * early.problem.net.log_outs + reach, 700.0)) * force))
    log_e = np.logaddexp(2 * shot.log_norm[0], 2 * shot.log_out[0]) - np.log(2) + reach
    k = np.maximum(early.growth, 0.0)
    with np.errstate(under="ignore"):
        pull, double, over = np.exp(np.minimum(log_e, 700.0)) * force, 2 * k, np.where(k > 0, k, 1.0)

    def by_size(step: float) -> bool:
        return bool(np.logaddexp.reduce(log_e + double * step) < 0)

    def by_rate(step: float) -> bool:
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            gain = np.where(k > 0, np.expm1(double * step) / over, 2 * step)
            terms = np.where(force > 0, pull * gain, 0.0)
        return bool(terms.sum() < left)

    if not k.any() and (by_size(0.0) or not force.any()):
        return np.inf
    scale = 1.0 / max(float(force.max()), float(k.max()))
    return max(_largest(by_size, scale), _largest(by_rate, scale))


def _largest(holds: Callable[[float], bool], scale: float) -> float:
    """Largest step for which a bound holds, from below; ``scale`` is a typical one."""
    low, high = 0.0, 2.0**-40 * scale
    if not holds(0.0):
        return 0.0
    while holds(high):
        low, high = high, high * 16
        if high > 1e300:
            return np.inf
    for _ in range(100):
        middle = np.sqrt(low * high) if low > 0 else high / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(float(middle)) else (low, middle)
    return float(low)
