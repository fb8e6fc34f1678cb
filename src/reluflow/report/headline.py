"""The two plain sentences with which an explanation begins: what is learned, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..dynamics.trajectory import LATEST
from ..margins import linearity
from ..problem.words import count, moment, size

if TYPE_CHECKING:
    from ..dynamics import Limit
    from ..problem import Network, Problem
    from ..theory import Finding, Prediction
    from .explanation import Explanation

_SAME = 1e-7  # relative difference of margins up to which they are one
_REMEDY = "another seed or a larger width may avoid it, a slope above 0 does"


class Theorem(NamedTuple):
    """A theorem on where the flow ends: whose it is, and what it is about, in words."""

    whose: str
    about: str


_PL, _SBG, _LL = "Phuong and Lampert", "Sarussi, Brutzkus and Globerson", "Lyu, Li, Wang and Arora"

_ORTHOGONAL = (
    "orthogonally separable data (points of one class less than 90 degrees apart, points of two classes at least 90)"
)

#: By claim; where several say the same, the first is named.
ENDS = {
    "PL-T1'": Theorem(_PL, f"{_ORTHOGONAL} and a small start"),
    "LL-TH.2": Theorem(_LL, f"{_ORTHOGONAL}, once they are fitted"),
    "LL-T4.3": Theorem(_LL, "symmetric data (every point has its mirror image in the other class) and a small start"),
    "LL-T5.5": Theorem(_LL, "symmetric data and two neurons of opposite sign"),
    "LL-TA.7": Theorem(_LL, "data on which positive neurons outgrow negative ones, and a small start"),
    "LL-TA.10": Theorem(_LL, "data on which negative neurons outgrow positive ones, and a small start"),
    "LL-T6.2": Theorem(_LL, "data with three strong hints, and a small start"),
    "LL-G.9": Theorem(_LL, "separable data and one neuron"),
    "SBG-T6.2": Theorem(_SBG, "a frozen second layer whose neurons of each sign agree on every point"),
}
#: Bounds that no network exceeds, by claim and name.
_LARGEST = {"PL-LC1'": "largest_margin", "LL-T4.2": "largest margin"}


def headline(found: Explanation) -> tuple[str, str]:
    """Say what is learned, and why; where no limit was confirmed, that, and why not."""
    end = found.limit
    if end is None:
        return _so_far(found), _contradiction(found) or _ended(found)
    if end.kind == "margin":
        before = f"; before that {end.history}" if end.plateaus else ""
        return f"{_learned(end)}{_share(found, end)}{before}.", _contradiction(found) or _covered(found, end)
    if end.kind == "stall":
        return _stalled(end), _contradiction(found) or _lost(found)
    return _resting(end), _contradiction(found) or _at_rest(end)


# -- what ------------------------------------------------------------------------------------------------


def _learned(end: Limit) -> str:
    data = end.problem.data
    if not data.positives.size or not data.negatives.size:
        what = "The data have one class only, and the network learns to answer it"
    else:
        what = f"The network learns {_boundary(end)}"
    return f"{what}: {_neurons(end)}normalised margin {end.margin:.4g}"


def _boundary(end: Limit) -> str:
    if end.problem.data.d == 1:
        return "a threshold at 0"
    linear = linearity(end.network).linear
    if linear is None:
        return "a boundary of which it could not be decided whether it is linear"
    return "a linear boundary" if linear else "a boundary that is not linear"


def _neurons(end: Limit) -> str:
    return f"{count(len(end.living), 'effective neuron')} of {end.problem.net.p}, " if end.living else ""


def _share(found: Explanation, end: Limit) -> str:
    """Compare with the largest margin of any network, as far as that is known."""
    lower, upper = _optimum(found, end)
    best = "the largest any network can have"
    if end.margin >= upper * (1 - _SAME):
        return f", {best}"
    if lower > end.margin * (1 + _SAME):
        word = "" if upper <= lower * (1 + _SAME) else "at most "
        return f", {word}{100 * end.margin / lower:.4g} % of {best}"
    return f", at least {100 * end.margin / upper:.4g} % of {best}" if np.isfinite(upper) else ""


def _optimum(found: Explanation, end: Limit) -> tuple[float, float]:
    if end.optimum is not None:
        return end.optimum.lower, end.optimum.upper
    sure = {f.claim for f in found.findings if f.applies and not f.needs}
    bounds = {p.claim: p.bounds for p in found.predictions if p.claim in sure}
    told = [bounds[claim][name] for claim, name in _LARGEST.items() if name in bounds.get(claim, ())]
    return (told[0], told[0]) if told else (0.0, np.inf)


def _stalled(end: Limit) -> str:
    problem = end.problem
    lost = round(end.loss_floor / (problem.weight * float(problem.loss.value(0.0))))
    felt = "is felt" if lost == 1 else "are felt"
    return (
        f"The network does not learn every point: {lost} of {count(problem.data.n, 'point')} {felt} by no neuron any "
        f"more, and the loss stays above {end.loss_floor:.4g}; on the others it has {_neurons(end)}normalised margin "
        f"{end.margin:.4g}."
    )


def _resting(end: Limit) -> str:
    n = end.problem.data.n
    wrong = n - _classified(end.problem, end.network)
    return (
        f"The network stops learning: the flow comes to rest at loss {end.loss_floor:.4g} with {wrong} of "
        f"{count(n, 'point')} not classified."
    )


def _so_far(found: Explanation) -> str:
    run = found.trajectory
    if run is None:
        return "No limit was confirmed, and nothing of the flow could be followed."
    problem, final = run.problem, run.final
    right = _classified(problem, final) / problem.data.n
    margin = ""
    if np.isfinite(final.log_norm(problem.train)):
        value = final.normalized_margin(problem.data, problem.train) + 0.0  # no -0
        margin = f" and the normalised margin so far is {value:.4g}"
    return (
        f"No limit was confirmed: where the run ended, at {moment(float(run.log_time[-1]))}, the loss is "
        f"{size(float(run.log_loss[-1]))}, {100 * right:.4g} % of the points are classified{margin}."
    )


def _classified(problem: Problem, net: Network) -> int:
    return int((net.scaled_outputs(problem.data.X)[0] * problem.data.y > 0).sum())


# -- why -------------------------------------------------------------------------------------------------


def _contradiction(found: Explanation) -> str:
    claims = [verdict.claim for verdict in found.summary.contradicted]
    if not claims:
        return ""
    applied = "applied, and the run contradicts it" if len(claims) == 1 else "applied, and the run contradicts them"
    return f"But {', '.join(claims)} {applied}: the statement, or this program, is wrong."


def _covered(found: Explanation, end: Limit) -> str:
    told = [p for p in found.predictions if p.function is not None and p.margin is not None and p.claim in ENDS]
    kept = [p for p in told if abs(end.margin - float(p.margin or 0.0)) <= _SAME * end.margin]
    missed = {verdict.claim for verdict in found.summary.missed}
    for one in sorted(kept, key=lambda p: (p.claim in missed, list(ENDS).index(p.claim))):
        theorem = ENDS[one.claim]
        said = f"This is what the theorem of {theorem.whose} promises for {theorem.about}"
        if one.claim in missed:
            return f"{said}, though not all it says was seen."
        return f"{said}, and the run kept the promise."
    for one in told:
        theorem = ENDS[one.claim]
        return (
            f"The theorem of {theorem.whose} promises margin {one.margin:.4g} for {theorem.about}; the run went "
            f"elsewhere, so one of its assumptions is not met ({_assumed(one)})."
        )
    return _uncovered(found)


def _assumed(one: Prediction) -> str:
    return ", ".join(one.needs) or "none is known to fail"


def _uncovered(found: Explanation) -> str:
    general = next((f for f in found.findings if f.claim == "LL-T3.1"), None)
    only = ", only that it is a stationary (KKT) point of the margin problem" if general and general.applies else ""
    nearest = _nearest(found)
    if nearest is None:
        return f"No theorem covered here says where this flow ends{only}."
    theorem, condition = ENDS[nearest.claim], nearest.failing[0]
    return (
        f"No theorem covered here says where this flow ends{only}; the nearest, of {theorem.whose} for "
        f"{theorem.about}, does not apply: {(condition.why or condition.name).rstrip('.')}."
    )


def _nearest(found: Explanation) -> Finding | None:
    """Choose, of the theorems for such a network, the one with the fewest conditions in the way."""
    problem = found.problem
    fitting = (
        ("SBG-T6.2",)
        if problem.train == "first"
        else ("PL-T1'",)
        if problem.net.slope == 0
        else ("LL-T4.3", "LL-TA.7", "LL-TA.10")
    )
    failed = {f.claim: f for f in found.findings if f.claim in fitting and f.failing}
    return min((failed[claim] for claim in fitting if claim in failed), key=lambda f: len(f.failing), default=None)


def _lost(found: Explanation) -> str:
    foreseen = any("PL-T1p" in sight.covered_by for sight in found.sights)
    said = (
        f"The theorem of {_PL} foresees this: a class to which no neuron turns stays unlearned"
        if foreseen
        else "A ReLU neuron is not moved by points on which it is inactive, so what all neurons have lost stays lost"
    )
    return f"{said}; {_REMEDY}."


def _at_rest(end: Limit) -> str:
    net, problem = end.network, end.problem
    if not net.W.any():
        return "Every weight is zero, and there the gradient is zero too; start from weights that are not."
    if net.slope == 0 and (net.preactivations(problem.data.X) <= 0).all():
        return f"No neuron is active on any point, so nothing moves them; {_REMEDY}."
    return "There the pulls of the points cancel, so the weights stay bounded and no theorem on margins speaks."


def _ended(found: Explanation) -> str:
    """Say why the run ended and what to do."""
    trouble = next(iter(found.troubles), "why is not known").rstrip(".")
    if trouble.startswith("no limit could be confirmed"):  # which condition of a limit is not met is said below
        last = found.settings.get("max_log_time", LATEST)
        further = (
            f"following it beyond log t = {last:g} may settle it"
            if last < LATEST
            else f"log t = {LATEST:g} is as far as it goes, "
            "but another draw or a start of larger scale may settle sooner"
        )
        return f"The weights had not settled to a direction there; {further}."
    # That what was found is kept goes without saying here.
    kept = r"[;.] (what was found so far is kept|the flow [a-z ]*is (used here|in \.partial))(?:, and (.*))?$"
    told = re.sub(kept, lambda match: f"; {match[3]}" if match[3] else "", trouble, flags=re.IGNORECASE)
    return f"It ended there: {told}."
