"""Conditions that several statements on linearly separable data share (LL, SBG), each decided once a problem."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...margins import MarginSolution, OneSignedMargins, one_neuron, one_signed_margins
from ...problem import NotSeparable
from ...problem.types import Array
from ...sectors import gram_signs
from ..base import Condition, assume
from ..facts import Facts
from .numbers import (
    LARGE,
    a1_search,
    cone,
    hints,
    is_good,
    longer_mean,
    mean_signs,
    means,
    mirror_gap,
    seed_amplitudes,
)

#: Entries of the support for which the game behind LL-A.5 is played; larger ones may take minutes.
_GAME = 1500

SMALL = assume(
    "start small enough", "the statement holds below some scale that it does not name; compare several scales."
)


def leaky(facts: Facts) -> Condition:
    """Slope strictly between 0 and 1."""
    slope = facts.net.slope
    why = f"the slope is {slope:g}; the statement is about slopes strictly between 0 and 1."
    return Condition("leaky activation", 0 < slope < 1, "proved", slope, (0.0, 1.0), why=why)


def logistic(facts: Facts) -> Condition:
    """Ask for the logistic loss; the exponential one has the same tail but is not what is proved."""
    known = facts.loss.name == "logistic"
    why = (
        "the loss is logistic."
        if known
        else "stated for the logistic loss; the exponential loss has the same tail, but the proof is not about it."
    )
    return Condition("logistic loss", True if known else None, "proved" if known else "numerical", why=why)


def separator(facts: Facts) -> MarginSolution | None:
    """Return the linear max-margin separator, None if there is none."""
    found = facts.max_margin
    return None if isinstance(found, NotSeparable) else found


def separable(facts: Facts) -> Condition:
    """LL-A3.2."""
    found = facts.max_margin
    name = "linearly separable (LL-A3.2)"
    if isinstance(found, NotSeparable):
        witness = np.flatnonzero(found.certificate)
        why = f"a convex combination of {witness.size} signed samples vanishes (residual {found.residual:.1e})."
        return Condition(name, False, "proved", 0.0, 0.0, witness, why)
    why = f"the best linear separator has margin {found.margin:.10g}."
    return Condition(name, True, "proved" if found.verified else "numerical", found.margin, 0.0, found.direction, why)


def symmetric(facts: Facts) -> Condition:
    """LL-A4.1, compared exactly; a mirror image off by rounding leaves it open."""
    name = "symmetric data (LL-A4.1)"
    same, worst, far = facts.once("LL mirror", lambda: mirror_gap(facts.data))
    if same:
        return Condition(name, True, "proved", 0.0, why="with every (x, y) the data hold (-x, -y), equally often.")
    why = f"sample {worst} has no mirror image with the other label; the nearest is {far:.3g} of the radius away."
    if far <= 1e-9:
        return Condition(name, None, "numerical", far, 0.0, worst, why + " That may be rounding of the input.")
    return Condition(name, False, "proved", far, 0.0, worst, why)


def off_mean(facts: Facts) -> Condition:
    """LL-A4.5: no sample is orthogonal to the mean of the signed samples."""
    name = "no sample orthogonal to the mean (LL-A4.5)"
    signs = facts.once("LL mean signs", lambda: mean_signs(facts.data))
    mu = means(facts.data, facts.net.slope).mu
    size = float(np.linalg.norm(mu))
    cosine = np.abs(facts.data.X @ mu) / (facts.data.norms * size) if size > 0 else np.zeros(facts.data.n)
    worst = int(np.argmin(cosine))
    if (signs == 0).any():
        worst = int(np.flatnonzero(signs == 0)[0])
        return Condition(name, False, "proved", 0.0, 0.0, worst, f"mu . x = 0 exactly for sample {worst}.")
    holds = None if np.isnan(signs).any() else True
    why = f"the smallest |cos| of a sample with the mean is {cosine[worst]:.6g} (sample {worst})."
    return Condition(name, holds, "proved" if holds else "numerical", float(cosine[worst]), 0.0, worst, why)


def no_branching(facts: Facts) -> Condition:
    """LL-A4.6, LL-A.6: sufficient if all signed samples agree with each other, otherwise assumed."""
    name = "the limit start does not branch (LL-A4.6, LL-A.6)"

    def violation() -> tuple[int, int] | None:
        data = facts.data
        for rows, columns, signs in gram_signs(data):
            bad = np.argwhere(signs * np.outer(data.y[rows], data.y[columns]) < 0)
            if bad.size:
                return int(rows[bad[0, 0]]), int(columns[bad[0, 1]])
        return None

    pair = facts.once("LL opposed pair", violation)
    if pair is None:
        why = "y_i y_j x_i . x_j >= 0 for all pairs, so every w_j . x_i is monotone and kinks are crossed (LL-I.2)."
        return Condition(name, True, "proved", why=why)
    why = f"not checkable; the sufficient test fails at samples {pair[0]} and {pair[1]}, which oppose each other."
    return Condition(name, None, "assumed", witness=pair, why=why)


def spread(facts: Facts) -> Condition:
    """LL-A.2."""
    name = "every driving direction separates the data (LL-A.2)"
    if facts.net.slope == 0:
        return Condition(name, False, "proved", why="it divides by the slope, which is 0 for ReLU.")
    found = facts.once("LL cone", lambda: cone(facts.data, facts.net.slope))
    value = float(found.slack[found.worst])
    why = f"the smallest slack is {value:.10g} (sample {found.worst})."
    if found.slack.size < facts.data.n:
        why += f" {found.slack.size} of {facts.data.n} samples were looked at before it failed."
    return Condition(name, found.holds, "proved" if found.exact else "numerical", value, 0.0, found.worst, why)


def funnel(facts: Facts) -> Condition:
    """LL-A.1: shown by a vector; refuted through LL-A.2 only, otherwise open."""
    name = "one direction dominates (LL-A.1)"
    if facts.net.slope == 0:
        return Condition(name, False, "proved", why="it divides by the slope, which is 0 for ReLU.")
    data, slope = facts.data, facts.net.slope
    best = separator(facts)
    mean = means(data, slope)
    starts = [] if best is None else [("the max-margin vector", best.direction)]
    hopeless = spread(facts).holds is False
    for label, m in (("the mean", mean.mu), ("the mean mu+", mean.plus)):
        if m.any() and not hopeless:
            starts.append((label, m / np.linalg.norm(m)))
    if not starts or best is None:
        return Condition(name, False, "proved", why="it needs a separating vector and there is none.")
    label, w, left, right = facts.once("LL funnel", lambda: a1_search(data, slope, starts, not hopeless))
    why = f"with {label}: {left:.10g} against {right:.10g}."
    if left < right * (1 - 1e-12):
        return Condition(name, True, "numerical", left, right, w, why)
    if hopeless:
        return Condition(name, False, "proved", left, right, w, why + " LL-A.2 fails, which LL-A.1 implies (LL-G.1).")
    return Condition(name, None, "numerical", left, right, w, why + " No vector was found; there may be one.")


def longer(facts: Facts, sign: int) -> Condition:
    """LL-A.3 (sign +1) or LL-A.8 (sign -1), exact."""
    which = "|mu+| > |mu-| (LL-A.3)" if sign > 0 else "|mu+| < |mu-| (LL-A.8)"
    order = facts.once("LL longer mean", lambda: longer_mean(facts.data))
    found = means(facts.data, facts.net.slope)
    plus, minus = float(np.linalg.norm(found.plus)), float(np.linalg.norm(found.minus))
    why = f"|mu+| = {plus:.10g}, |mu-| = {minus:.10g}, kappa = {found.kappa:.10g}."
    if facts.net.slope == 1:
        return Condition(which, False, "proved", plus, minus, why=why + " With slope 1 they are equal.")
    if order is None:
        return Condition(which, None, "numerical", plus, minus, why=why + " The difference is within rounding.")
    return Condition(which, order == sign, "proved", plus, minus, why=why)


def game(facts: Facts, sign: int) -> OneSignedMargins | None:
    """Margins behind LL-A.5 (sign +1) and LL-A.9 (sign -1); None where they are not to be had."""

    def compute() -> OneSignedMargins | None:
        if facts.net.slope == 0 or separator(facts) is None:
            return None
        if facts.data.X.size > LARGE and spread(facts).holds is False:
            return None
        neuron = one_neuron(facts.data, facts.net.slope, sign)
        mixed = (facts.data.y[neuron.support] != sign).any()
        if mixed and neuron.support.size * facts.data.d > _GAME:
            return None
        return one_signed_margins(facts.data, facts.net.slope, sign)

    return facts.once(f"LL game {sign:+d}", compute)


def outside(facts: Facts, sign: int, star: bool) -> Condition:
    """LL-A.5, LL-A.5* (sign +1); LL-A.9, LL-A.9* (sign -1): the other sign gains too little on the support."""
    label = ("LL-A.5" if sign > 0 else "LL-A.9") + ("*" if star else "")
    name = f"the other sign gains too little on the support ({label})"
    found = game(facts, sign)
    if found is None:
        if facts.net.slope == 0 or separator(facts) is None:
            return Condition(name, False, "proved", why="it is about leaky networks on separable data.")
        return Condition(name, None, "numerical", why="not evaluated: too large for the exact program.")
    bounds, holds = (found.star, found.holds_star) if star else (found.value, found.holds)
    why = f"{bounds.upper:.10g} against {found.threshold:.10g} = gamma/2"
    why += " (the support lies in one class, where it always holds)." if found.one_class else "."
    return Condition(name, holds, "numerical", bounds.upper, found.threshold, found.neuron.support, why)


def some_neuron(facts: Facts, sign: int) -> Condition:
    """At least one output weight of this sign."""
    count = int((facts.signs == sign).sum())
    word = "positive" if sign > 0 else "negative"
    why = f"{count} of {facts.net.p} output weights are {word}."
    return Condition(f"a neuron with {word} output", count > 0, "proved", count, 1, why=why)


def width(facts: Facts, least: int) -> Condition:
    """Enough neurons."""
    p = facts.net.p
    return Condition(f"at least {least} neurons", p >= least, "proved", p, least, why=f"the width is {p}.")


def amplitudes(facts: Facts) -> Array:
    """``b_j`` of LL-L5.2 for this start."""
    return facts.once("LL amplitudes", lambda: seed_amplitudes(facts.problem))


def good_draw(facts: Facts) -> Condition:
    """LL-Emb: both signs occur among the amplitudes and none vanishes."""
    b = amplitudes(facts)
    counts = int((b > 0).sum()), int((b < 0).sum())
    why = f"w_j . mu/|mu| + a_j is positive for {counts[0]} and negative for {counts[1]} of {b.size} neurons."
    return Condition("the draw is good (LL-Emb)", is_good(b), "numerical", counts, (1, 1), why=why)


def hinted(facts: Facts) -> Condition:
    """LL-D6.1, recognised around the max-margin direction."""
    name = "hinted data (LL-D6.1)"
    best = separator(facts)
    found = None if best is None else facts.once("LL hints", lambda: hints(facts.data, facts.net.slope, best.direction))
    if found is None:
        return Condition(name, False, "numerical", why="no three samples H w, eps w + K v, eps w - K v stand out.")
    why = f"samples {found.samples}: H = {found.H:.10g}, eps = {found.eps:.10g}, K = {found.K:.10g}."
    return Condition(name, True, "numerical", (found.H, found.eps, found.K), witness=found.samples, why=why)


def above(name: str, value: float, threshold: float, what: str) -> Condition:
    """Build a plain comparison ``value > threshold``, open within rounding."""
    gap = value - threshold
    tie = abs(gap) <= 1e-12 * max(abs(value), abs(threshold))
    why = f"{what}: {value:.10g}, needed more than {threshold:.10g}."
    return Condition(name, None if tie else gap > 0, "numerical", value, threshold, why=why)


def renamed(condition: Condition, suffix: str, decides: bool) -> Condition:
    """Return the same condition as one of two readings, printed or corrected."""
    from dataclasses import replace

    return replace(condition, name=f"{condition.name} ({suffix})", decides=decides)


Check = Callable[[Facts], Condition]
