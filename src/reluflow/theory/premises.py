"""Conditions and constants that the statements on orthogonally separable data have in common."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from ..margins import MarginSolution
from ..problem import Stopped, Undecided
from ..sectors import exact_signs
from .base import Condition, Groups, assume
from .facts import Facts


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


def flow_conditions(facts: Facts) -> tuple[Condition, ...]:
    """ReLU, both layers trained, balanced start."""
    return facts.relu, facts.both_layers, facts.balanced


def not_on_ray(facts: Facts) -> Condition:
    """ML-A2: no neuron starts exactly on the ray that repels it."""
    gap = facts.zeta_2
    name = "no neuron on the repelling ray"
    if gap > 0:
        return Condition(name, True, "proved", gap, 0.0, why=f"zeta_2 = {gap:.6g} > 0.")
    plus, minus = facts.class_sums
    inner = np.where(facts.signs > 0, facts.net.directions @ minus, facts.net.directions @ plus)
    sizes = np.where(facts.signs > 0, np.linalg.norm(minus), np.linalg.norm(plus))
    j = int(np.argmax(np.where(facts.signs == 0, -np.inf, inner - sizes)))
    return Condition(name, False, "proved", gap, 0.0, j, f"neuron {j} points exactly at the sum of the other class.")


def certified(facts: Facts) -> Condition:
    """Decide whether the start is small enough for alignment, by the scale-free certificate (ML-CERT)."""
    threshold = log_certificate(facts, facts.constants.t_1_sharp)
    holds = facts.log_total <= threshold
    text = "at most" if holds else "above"
    return Condition(
        "start certified small",
        holds,
        "numerical",
        facts.log_total,
        threshold,
        why=f"log of the sum of |w_j(0)|^2 is {facts.log_total:.6g}, {text} {threshold:.6g}.",
    )


def small_enough(facts: Facts) -> Condition:
    """Small enough for every neuron to end in its cone: certified, or else assumed."""
    if facts.strictly_orthogonal.holds and not_on_ray(facts).holds and facts.balanced.holds and certified(facts).holds:
        found = certified(facts)
        return Condition("start small enough", True, "numerical", found.value, found.threshold, why=found.why)
    return assume("start small enough", "the theorem gives no number, and the certificates there are do not cover it.")


def guaranteed(facts: Facts) -> Groups:
    """Neurons that are sure to end in their cone: those with an active sample of their own class (PL-T1, ML-T1a)."""

    def compute() -> Groups:
        active = exact_signs(facts.net.W, facts.data.X) > 0
        own = (active & (np.outer(facts.signs, facts.data.y) > 0)).any(axis=1)
        dead = ~active.any(axis=1)
        return Groups(
            np.flatnonzero(own & (facts.signs > 0)), np.flatnonzero(own & (facts.signs < 0)), np.flatnonzero(dead)
        )

    return facts.once("guaranteed", compute)


def alive(facts: Facts) -> Condition:
    """Decide whether there is a neuron for each class that has samples: needed for the loss to vanish."""
    name = "a neuron for each class"
    if facts.orthogonal.holds is False:
        return Condition(name, None, "numerical", why="not looked at: the data are not orthogonally separable.")
    sure = guaranteed(facts)
    wanted = (facts.data.positives.size > 0, facts.data.negatives.size > 0)
    counts = (sure.plus.size, sure.minus.size)
    if all(count or not want for count, want in zip(counts, wanted, strict=True)):
        why = f"{counts[0]} and {counts[1]} neurons start with an active sample of their own class."
        return Condition(name, True, "proved", counts, (1, 1), why=why)
    try:
        groups = facts.groups
    except Stopped:
        raise
    except Undecided as error:
        return Condition(name, None, "numerical", counts, (1, 1), why=str(error))
    counts = (groups.plus.size, groups.minus.size)
    holds = all(count or not want for count, want in zip(counts, wanted, strict=True))
    why = f"after the early phase {counts[0]} and {counts[1]} neurons carry the two classes."
    return Condition(name, holds, "numerical", counts, (1, 1), why=why)


class Pair(NamedTuple):
    """Lengths of the two class max-margin vectors (0 for an empty class) and their cosine (1 then)."""

    plus: float
    minus: float
    cosine: float

    @property
    def total(self) -> float:
        """``|w+| + |w-|``."""
        return self.plus + self.minus

    @property
    def stable_rank(self) -> float:
        """Limit of ``|W|_F^2/|W|_2^2`` (PL-T1')."""
        spread = (self.plus - self.minus) ** 2 + 4 * self.plus * self.minus * self.cosine**2
        return 2 / (1 + sqrt(spread / self.total**2))


def margin_pair(facts: Facts) -> Pair:
    """Return the numbers that fix the limit."""
    plus, minus = facts.class_margins
    cosine = float(plus.direction @ minus.direction) if plus and minus else 1.0
    return Pair(1 / plus.margin if plus else 0.0, 1 / minus.margin if minus else 0.0, cosine)


def solved(facts: Facts) -> list[MarginSolution]:
    """Return the class margins there are."""
    return [solution for solution in facts.class_margins if solution is not None]
