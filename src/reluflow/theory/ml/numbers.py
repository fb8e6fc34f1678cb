"""Numbers that the statements on early alignment speak of (ML): how small a start is, and for how long."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from ...sectors import exact_signs
from ..base import Groups
from ..facts import Facts, once


class Split(NamedTuple):
    """A start written as eps W_0 (ML): ``log eps`` and the logs of the largest and smallest row norm of W_0."""

    log_eps: float
    log_w_max: float
    log_w_min: float


def stored_split(facts: Facts) -> Split:
    """Take for eps the scale of the network where there is one for all neurons, else its largest neuron."""
    sizes = facts.log_norms
    scale = facts.net.log_scale
    log_eps = scale if isinstance(scale, float) else float(sizes.max())
    return Split(log_eps, float(sizes.max()) - log_eps, float(sizes.min()) - log_eps)


def best_split(facts: Facts) -> Split:
    r"""Return the split with the longest time in ML-L3.

    Only the products eps W_0 matter. With :math:`m = \max_j |w_j(0)|` the condition reads
    :math:`\epsilon \ge 4\sqrt p X_{\max} m^2`, and the smallest such eps gives the longest time.
    """
    m = float(facts.log_norms.max())
    log_eps = log(4 * sqrt(facts.net.p) * facts.x_max) + 2 * m
    return Split(log_eps, m - log_eps, float(facts.log_norms.min()) - log_eps)


def small_start(facts: Facts, split: Split) -> tuple[float, float]:
    """``log eps`` and the largest value that ML-L3 allows."""
    allowed = -log(4 * sqrt(facts.net.p) * facts.x_max) - 2 * split.log_w_max
    return split.log_eps, allowed


def small_until(facts: Facts, split: Split) -> float:
    """Return T of ML-L3 in the clock of the problem: until then the norms stay small."""
    data = facts.data
    return (-log(facts.net.p) / 2 - split.log_eps) / (4 * data.n * facts.x_max) / facts.speed


def log_certificate(facts: Facts, time: float) -> float:
    """Log of the largest sum of ``|w_j(0)|^2`` for which max|f| <= B until ``time`` (ML-CERT; time of ML)."""
    b, x_max = facts.constants.output_bound, facts.x_max
    if not (b > 0 and time < inf):
        return -inf
    return log(b / x_max) - 2 * (1 + 2 * b) * float(facts.data.norms.sum()) * time


@once
def guaranteed(facts: Facts) -> Groups:
    """Neurons that are sure to end in their cone: those with an active sample of their own class (PL-T1, ML-T1a)."""
    active = exact_signs(facts.net.W, facts.data.X) > 0
    own = (active & (np.outer(facts.signs, facts.data.y) > 0)).any(axis=1)
    plus, minus = own & (facts.signs > 0), own & (facts.signs < 0)
    return Groups(np.flatnonzero(plus), np.flatnonzero(minus), np.flatnonzero(~active.any(axis=1)))
