"""Conditions of the claims, each decided once a problem: about the training, the start, and the data."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from ..margins import MarginSolution, OneNeuron, OneSignedMargins, one_neuron
from ..margins.one_signed import against
from ..problem import Dataset, NotSeparable, Stopped, Undecided
from ..problem.types import Array
from ..sectors import exact_signs, gram_signs, separability_violations
from .base import Condition, assume
from .facts import Facts, once
from .ll.numbers import (
    LARGE,
    Hints,
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
from .ml.numbers import guaranteed, log_certificate
from .pl.numbers import solved
from .sbg.numbers import pairs

#: Relative difference of |a_j| and |w_j| up to which a neuron counts as balanced: rounding of the norm.
BALANCE_TOL = 1e-12

#: Of more samples than this a part is looked at first.
_PART = 1000

#: Subsets of samples whose independence is looked at before general position is left open.
_SUBSETS = 20_000

#: Entries of the support for which the game behind LL-A.5 is played; larger ones may take minutes.
_GAME = 1500

SMALL = assume(
    "start small enough", "the statement holds below some scale that it does not name; compare several scales."
)


# -- network, loss, training ------------------------------------------------------------------------------


@once
def relu(facts: Facts) -> Condition:
    """Ask for ReLU."""
    slope = facts.net.slope
    why = "the activation is ReLU." if slope == 0 else f"the activation is leaky, slope {slope:g}; ReLU is needed."
    return Condition("ReLU activation", slope == 0, "proved", slope, 0.0, why=why)


@once
def both_layers(facts: Facts) -> Condition:
    """Both layers are trained."""
    both = facts.problem.train == "both"
    why = "both layers are trained." if both else "the second layer is frozen; the statement trains both."
    return Condition("both layers trained", both, "proved", why=why)


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


def frozen(facts: Facts) -> Condition:
    """Only the first layer is trained."""
    first = facts.problem.train == "first"
    why = "the second layer is frozen." if first else 'both layers are trained; the statement needs train="first".'
    return Condition("second layer frozen", first, "proved", why=why)


def paired(facts: Facts) -> Condition:
    """As many output weights +v as -v."""
    found = pairs(facts.net)
    if found is None:
        why = "the output weights are not k times +v and k times -v."
        return Condition("outputs +v and -v, equally many", False, "numerical", why=why)
    return Condition(
        "outputs +v and -v, equally many", True, "numerical", found, why=f"k = {found[0]}, v = {found[1]:.6g}."
    )


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


# -- the start --------------------------------------------------------------------------------------------


@once
def balanced(facts: Facts) -> Condition:
    """``|a_j| = |w_j|`` for every neuron at the start, none of them zero."""
    log_w, log_a = facts.log_norms, facts.net.log_outs
    with np.errstate(invalid="ignore"):
        gap = np.abs(np.where(np.isneginf(log_w) & np.isneginf(log_a), 0.0, log_w - log_a))
    worst = int(np.argmax(gap))
    zero = np.flatnonzero(np.isneginf(log_w))
    # At log scales of thousands the logarithms themselves are rounded.
    tolerance = BALANCE_TOL * max(1.0, float(np.abs(log_w[np.isfinite(log_w)]).max(initial=1.0)))
    name = "balanced start"
    if zero.size:
        return Condition(name, False, "proved", 0.0, witness=int(zero[0]), why=f"neuron {zero[0]} has w = 0.")
    if gap[worst] > tolerance:
        why = f"neuron {worst} has |a|/|w| = exp({log_a[worst] - log_w[worst]:.6g}), not 1."
        return Condition(name, False, "numerical", float(gap[worst]), tolerance, worst, why)
    return Condition(name, True, "numerical", float(gap[worst]), tolerance, worst, "|a_j| = |w_j| for all neurons.")


def flow_conditions(facts: Facts) -> tuple[Condition, ...]:
    """ReLU, both layers trained, balanced start."""
    return relu(facts), both_layers(facts), balanced(facts)


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
    if (
        strictly_orthogonal(facts).holds
        and not_on_ray(facts).holds
        and balanced(facts).holds
        and certified(facts).holds
    ):
        found = certified(facts)
        return Condition("start small enough", True, "numerical", found.value, found.threshold, why=found.why)
    return assume("start small enough", "the theorem gives no number, and the certificates there are do not cover it.")


def alive(facts: Facts) -> Condition:
    """Decide whether there is a neuron for each class that has samples: needed for the loss to vanish."""
    name = "a neuron for each class"
    if orthogonal(facts).holds is False:
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


# -- orthogonally separable data --------------------------------------------------------------------------


@once
def both_classes(facts: Facts) -> Condition:
    """Both labels occur."""
    counts = (int(facts.data.positives.size), int(facts.data.negatives.size))
    why = f"{counts[0]} positive and {counts[1]} negative samples."
    return Condition("both classes present", min(counts) > 0, "proved", counts, (1, 1), why=why)


@once
def orthogonal(facts: Facts) -> Condition:
    """Orthogonal separability (PL-D1), decided exactly."""
    return _separability(facts, strict=False)


@once
def strictly_orthogonal(facts: Facts) -> Condition:
    """Strict orthogonal separability, the same as ``mu > 0`` (ML-A1), decided exactly."""
    return _separability(facts, strict=True)


def _separability(facts: Facts, strict: bool) -> Condition:
    name = "orthogonally separable, strictly (mu > 0)" if strict else "orthogonally separable"
    wrong = _some_violation(facts)
    mu, pair = (np.nan, (0, 0)) if wrong else (facts.constants.mu, facts.constants.pair)
    if mu < 0 or (strict and mu == 0):
        wrong = pair
    elif mu == 0:  # a zero across classes is allowed, within a class it is not
        wrong = next(separability_violations(facts.data), None)
    if wrong is None:
        why = f"the smallest cosine between signed samples is {mu:.6g} (samples {pair[0]} and {pair[1]})."
        return Condition(name, True, "proved", mu, 0.0, pair, why)
    i, j = wrong
    same = facts.data.y[i] == facts.data.y[j]
    wanted = "> 0" if same else "< 0" if strict else "<= 0"
    cosine = (facts.data.X[i] / facts.data.norms[i]) @ (facts.data.X[j] / facts.data.norms[j])
    size = "exactly 0" if mu == 0 else f"{cosine:.6g}"
    value = mu if mu <= 0 else float(cosine * facts.data.y[i] * facts.data.y[j])
    why = f"samples {i} and {j} have {'equal' if same else 'different'} labels; their cosine is {size}, not {wanted}."
    return Condition(name, False, "proved", value, 0.0, (i, j), why)


@once
def _some_violation(facts: Facts) -> tuple[int, int] | None:
    """Return a pair that contradicts separability, found in a part of large data: most need no more."""
    if facts.data.n <= _PART:
        return None
    part = np.unique(np.linspace(0, facts.data.n - 1, _PART).astype(np.intp))
    found = next(separability_violations(facts.data.subset(part)), None)
    return None if found is None else (int(part[found[0]]), int(part[found[1]]))


def main_theorem(facts: Facts) -> tuple[Condition, ...]:
    """PL-A, 1 to 7, the fourth and the sixth in parts."""
    logistic = facts.loss.name == "logistic"
    why = "the loss is logistic." if logistic else "the exponential loss is covered by the derived PL-T1' only."
    flow = "a Problem is a gradient flow; runs of discrete methods are compared with it."
    found = [
        orthogonal(facts),
        Condition("logistic loss", logistic, "proved", facts.loss.name, "logistic", why=why),
        Condition("gradient flow", True, "proved", why=flow),
        *flow_conditions(facts),
        small_enough(facts),
    ]
    if not orthogonal(facts).holds:  # the margins of the classes need not exist
        return (*found, both_classes(facts))
    found += [_spanning(facts), _positive_multipliers(facts), _general_position(facts), _off_hyperplanes(facts)]
    generic = assume(
        "generic data and start", "'almost every' cannot be checked; known exceptions are listed beside it."
    )
    return (*found, not_on_ray(facts), generic, both_classes(facts))


def _spanning(facts: Facts) -> Condition:
    ranks = tuple(solution.rank for solution in solved(facts))
    d = facts.data.d
    why = f"the tight samples of the classes span {' and '.join(map(str, ranks))} of {d} dimensions."
    return Condition("support examples of each class span", min(ranks) == d, "numerical", ranks, d, why=why)


def _positive_multipliers(facts: Facts) -> Condition:
    zero = sorted({int(i) for s in solved(facts) for i in np.setdiff1d(s.support, s.active)})
    why = f"tight samples without multiplier: {zero[:5]}." if zero else "every tight sample has a positive multiplier."
    return Condition("positive multipliers on the support", not zero, "numerical", len(zero), 0, zero or None, why)


def _general_position(facts: Facts) -> Condition:
    """Any min(n, d) samples are independent, as far as numerical ranks can tell."""
    name, data = "samples in general position", facts.data
    size = min(data.n, data.d)
    if comb(data.n, size) * size**3 > 1000 * _SUBSETS:
        return assume(name, f"there are too many subsets of {size} samples to look at.")
    units = data.X / data.norms[:, None]
    for members in combinations(range(data.n), size):
        values = np.linalg.svd(units[list(members)], compute_uv=False)
        if values[-1] <= 1e-12 * values[0]:
            why = f"samples {list(members)} are dependent."
            return Condition(name, False, "numerical", float(values[-1]), 0.0, members, why)
    return Condition(name, True, "numerical", why=f"any {size} samples are independent.")


def _off_hyperplanes(facts: Facts) -> Condition:
    on = np.argwhere(exact_signs(facts.net.W, facts.data.X) == 0)
    name = "no neuron starts on a hyperplane"
    if on.size:
        j, i = (int(v) for v in on[0])
        return Condition(name, False, "proved", len(on), 0, (j, i), f"w_{j}(0).x_{i} = 0 exactly.")
    return Condition(name, True, "proved", 0, 0, why="w_j(0).x_i != 0 for all neurons and samples.")


def two_groups(facts: Facts) -> tuple[Condition, ...]:
    """Room for a neuron of each sign, and a class for it to fit (PL-LC1)."""
    enough = facts.net.p >= 2
    wide = Condition("at least two neurons", enough, "proved", facts.net.p, 2, why=f"p = {facts.net.p}.")
    return relu(facts), both_layers(facts), orthogonal(facts), both_classes(facts), wide


# -- linearly separable data ------------------------------------------------------------------------------


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


@once
def symmetric(facts: Facts) -> Condition:
    """LL-A4.1, compared exactly; a mirror image off by rounding leaves it open."""
    name = "symmetric data (LL-A4.1)"
    same, worst, far = mirror_gap(facts.data)
    if same:
        return Condition(name, True, "proved", 0.0, why="with every (x, y) the data hold (-x, -y), equally often.")
    why = f"sample {worst} has no mirror image with the other label; the nearest is {far:.3g} of the radius away."
    if far <= 1e-9:
        return Condition(name, None, "numerical", far, 0.0, worst, why + " That may be rounding of the input.")
    return Condition(name, False, "proved", far, 0.0, worst, why)


@once
def off_mean(facts: Facts) -> Condition:
    """LL-A4.5: no sample is orthogonal to the mean of the signed samples."""
    name = "no sample orthogonal to the mean (LL-A4.5)"
    signs = mean_signs(facts.data)
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


@once
def no_branching(facts: Facts) -> Condition:
    """LL-A4.6, LL-A.6: sufficient if all signed samples agree with each other, otherwise assumed."""
    name, pair = "the limit start does not branch (LL-A4.6, LL-A.6)", _opposed(facts.data)
    if pair is None:
        why = "y_i y_j x_i . x_j >= 0 for all pairs, so every w_j . x_i is monotone and kinks are crossed (LL-I.2)."
        return Condition(name, True, "proved", why=why)
    why = f"not checkable; the sufficient test fails at samples {pair[0]} and {pair[1]}, which oppose each other."
    return Condition(name, None, "assumed", witness=pair, why=why)


def _opposed(data: Dataset) -> tuple[int, int] | None:
    """Find two signed samples with a negative inner product."""
    for rows, columns, signs in gram_signs(data):
        bad = np.argwhere(signs * np.outer(data.y[rows], data.y[columns]) < 0)
        if bad.size:
            return int(rows[bad[0, 0]]), int(columns[bad[0, 1]])
    return None


@once
def spread(facts: Facts) -> Condition:
    """LL-A.2."""
    name = "every driving direction separates the data (LL-A.2)"
    if facts.net.slope == 0:
        return Condition(name, False, "proved", why="it divides by the slope, which is 0 for ReLU.")
    found = cone(facts.data, facts.net.slope)
    value = float(found.slack[found.worst])
    why = f"the smallest slack is {value:.10g} (sample {found.worst})."
    if found.slack.size < facts.data.n:
        why += f" {found.slack.size} of {facts.data.n} samples were looked at before it failed."
    return Condition(name, found.holds, "proved" if found.exact else "numerical", value, 0.0, found.worst, why)


@once
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
    label, w, left, right = a1_search(data, slope, starts, not hopeless)
    why = f"with {label}: {left:.10g} against {right:.10g}."
    if left < right * (1 - 1e-12):
        return Condition(name, True, "numerical", left, right, w, why)
    if hopeless:
        return Condition(name, False, "proved", left, right, w, why + " LL-A.2 fails, which LL-A.1 implies (LL-G.1).")
    return Condition(name, None, "numerical", left, right, w, why + " No vector was found; there may be one.")


@once
def longer(facts: Facts, sign: int) -> Condition:
    """LL-A.3 (sign +1) or LL-A.8 (sign -1), exact."""
    which = "|mu+| > |mu-| (LL-A.3)" if sign > 0 else "|mu+| < |mu-| (LL-A.8)"
    order = longer_mean(facts.data)
    found = means(facts.data, facts.net.slope)
    plus, minus = float(np.linalg.norm(found.plus)), float(np.linalg.norm(found.minus))
    why = f"|mu+| = {plus:.10g}, |mu-| = {minus:.10g}, kappa = {found.kappa:.10g}."
    if facts.net.slope == 1:
        return Condition(which, False, "proved", plus, minus, why=why + " With slope 1 they are equal.")
    if order is None:
        return Condition(which, None, "numerical", plus, minus, why=why + " The difference is within rounding.")
    return Condition(which, order == sign, "proved", plus, minus, why=why)


@once
def survivor(facts: Facts, sign: int) -> OneNeuron:
    """Return the neuron that survives: ``w+, gamma+`` (sign +1) or ``w-, gamma-`` (sign -1)."""
    return one_neuron(facts.data, facts.net.slope, sign)


@once
def game(facts: Facts, sign: int) -> OneSignedMargins | None:
    """Margins behind LL-A.5 (sign +1) and LL-A.9 (sign -1); None where they are not to be had."""
    if facts.net.slope == 0 or separator(facts) is None:
        return None
    if facts.data.X.size > LARGE and spread(facts).holds is False:
        return None
    try:
        neuron = survivor(facts, sign)
    except (NotSeparable, Undecided) as error:
        if isinstance(error, Stopped):
            raise
        return None  # separable by less than the rounding of the scaled points
    mixed = (facts.data.y[neuron.support] != sign).any()
    if mixed and neuron.support.size * facts.data.d > _GAME:
        return None
    return against(facts.data, neuron, decide=facts.verdicts_only)


def outside(facts: Facts, sign: int, star: bool) -> Condition:
    """LL-A.5, LL-A.5* (sign +1); LL-A.9, LL-A.9* (sign -1): the other sign gains too little on the support."""
    label = ("LL-A.5" if sign > 0 else "LL-A.9") + ("*" if star else "")
    name = f"the other sign gains too little on the support ({label})"
    found = game(facts, sign)
    if found is None:
        if facts.net.slope == 0 or separator(facts) is None:
            return Condition(name, False, "proved", why="it is about leaky networks on separable data.")
        why = "not evaluated: too large for the exact program, or separable only to rounding."
        return Condition(name, None, "numerical", why=why)
    bounds, holds = (found.star, found.holds_star) if star else (found.value, found.holds)
    why = f"{bounds.upper:.10g} against {found.threshold:.10g} = gamma/2"
    why += " (the support lies in one class, where it always holds)." if found.one_class else "."
    return Condition(name, holds, "numerical", bounds.upper, found.threshold, found.neuron.support, why)


@once
def amplitudes(facts: Facts) -> Array:
    """``b_j`` of LL-L5.2 for this start."""
    return seed_amplitudes(facts.problem)


def good_draw(facts: Facts) -> Condition:
    """LL-Emb: both signs occur among the amplitudes and none vanishes."""
    b = amplitudes(facts)
    counts = int((b > 0).sum()), int((b < 0).sum())
    why = f"w_j . mu/|mu| + a_j is positive for {counts[0]} and negative for {counts[1]} of {b.size} neurons."
    return Condition("the draw is good (LL-Emb)", is_good(b), "numerical", counts, (1, 1), why=why)


@once
def three_hints(facts: Facts) -> Hints | None:
    """Look for the hints around the max-margin direction."""
    best = separator(facts)
    return None if best is None else hints(facts.data, facts.net.slope, best.direction)


def hinted(facts: Facts) -> Condition:
    """LL-D6.1, recognised around the max-margin direction."""
    name = "hinted data (LL-D6.1)"
    found = three_hints(facts)
    if found is None:
        return Condition(name, False, "numerical", why="no three samples H w, eps w + K v, eps w - K v stand out.")
    why = f"samples {found.samples}: H = {found.H:.10g}, eps = {found.eps:.10g}, K = {found.K:.10g}."
    return Condition(name, True, "numerical", (found.H, found.eps, found.K), witness=found.samples, why=why)


# -- making conditions ------------------------------------------------------------------------------------


def above(name: str, value: float, threshold: float, what: str) -> Condition:
    """Build a plain comparison ``value > threshold``, open within rounding."""
    gap = value - threshold
    tie = abs(gap) <= 1e-12 * max(abs(value), abs(threshold))
    why = f"{what}: {value:.10g}, needed more than {threshold:.10g}."
    return Condition(name, None if tie else gap > 0, "numerical", value, threshold, why=why)


def renamed(condition: Condition, suffix: str, decides: bool) -> Condition:
    """Return the same condition as one of two readings, printed or corrected."""
    return replace(condition, name=f"{condition.name} ({suffix})", decides=decides)
