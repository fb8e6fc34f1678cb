"""The two plain sentences with which an explanation begins: what is learned, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ..dynamics.trajectory import LATEST
from ..margins import linearity
from ..problem.words import count, moment, size
from ..theory.compare import SAME
from ..theory.naming import covered, foreseen, largest_margin, uncovered

if TYPE_CHECKING:
    from ..dynamics import Limit
    from ..problem import Network, Problem
    from .explanation import Explanation

_REMEDY = "another seed or a larger width may avoid it, a slope above 0 does"


def headline(found: Explanation) -> tuple[str, str]:
    """Say what is learned, and why; where no limit was confirmed, that, and why not."""
    end = found.limit
    if end is None:
        return _so_far(found), _contradiction(found) or _ended(found)
    if end.kind == "margin":
        before = f"; before that {end.history}" if end.plateaus else ""
        return f"{_learned(end)}{_share(found, end)}{before}.", _contradiction(found) or _why(found, end)
    if end.kind == "stall":
        return _stalled(end), _contradiction(found) or (_cancelled(end) if end.balanced.size else _lost(found))
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
    lower, upper = largest_margin(end, found.findings, found.predictions)
    best = "the largest any network can have"
    if end.margin >= upper * (1 - SAME):
        return f", {best}"
    if lower > end.margin * (1 + SAME):
        word = "" if upper <= lower * (1 + SAME) else "at most "
        return f", {word}{100 * end.margin / lower:.4g} % of {best}"
    return f", at least {100 * end.margin / upper:.4g} % of {best}" if np.isfinite(upper) else ""


def _stalled(end: Limit) -> str:
    problem = end.problem
    if end.balanced.size:
        return (
            f"The network does not learn every point: {end.balanced.size} of {count(problem.data.n, 'point')} rest in "
            f"balance, and the loss tends to {end.loss_floor:.4g}; on those that are fitted it has {_neurons(end)}"
            f"normalised margin {end.margin:.4g}."
        )
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


def _why(found: Explanation, end: Limit) -> str:
    missed = {verdict.claim for verdict in found.summary.missed}
    return covered(end, found.predictions, missed) or uncovered(found.problem, found.findings)


def _lost(found: Explanation) -> str:
    plain = "A ReLU neuron is not moved by points on which it is inactive, so what all neurons have lost stays lost"
    return f"{foreseen(found.sights) or plain}; {_REMEDY}."


def _cancelled(end: Limit) -> str:
    verb = "it is" if end.balanced.size == 1 else "they are"
    return (
        f"What {verb} pulled to cancels in every pattern that is left, so that no network with these does better "
        "there; more neurons, another seed or the data without these points may be fitted."
    )


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
            f"log t = {LATEST:g} is as far as it goes, but another draw or a start of larger scale may settle sooner"
        )
        if "a larger max_steps goes on" in trouble:
            further = "a larger max_steps goes on, or another draw may settle sooner"
        elif last < LATEST:
            further = f"following it beyond log t = {last:g} may settle it"
        return f"The weights had not settled to a direction there; {further}."
    # That what was found is kept goes without saying here.
    kept = r"[;.] (what was found so far is kept|the flow [a-z ]*is (used here|in \.partial))(?:, and (.*))?$"
    told = re.sub(kept, lambda match: f"; {match[3]}" if match[3] else "", trouble, flags=re.IGNORECASE)
    return f"It ended there: {told}."
