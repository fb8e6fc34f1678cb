"""Which theorem to name for what a run did: the sentence on why, from what claims say about themselves (`Role`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

import numpy as np

from ..dynamics import Limit
from ..problem import Problem
from .base import Claim, Finding, Prediction
from .compare import SAME, Sight
from .references import PAPERS
from .verdicts import claim, claims


@cache
def theorems() -> tuple[str, ...]:
    """Return the ids of the statements that people come for, in the order of the papers.

    >>> theorems()[:2]
    ('PL-T1', "PL-T1'")
    """
    return tuple(one.id for one in _in_order() if one.role.place)


@cache
def endings() -> dict[str, Claim]:
    """Return the theorems on where the flow ends, by id; where several say the same, the first is named."""
    return {one.id: one for one in _in_order() if one.role.about}


def _in_order() -> list[Claim]:
    papers = list(PAPERS)
    return sorted(claims(), key=lambda one: (papers.index(one.paper), one.role.place or np.inf))


def authors(one: Claim) -> str:
    """Say whose theorem it is.

    >>> authors(claim("SBG-T6.2"))
    'Sarussi, Brutzkus and Globerson'
    """
    return PAPERS[one.paper].rpartition(", ")[0]


def covered(end: Limit, predictions: Sequence[Prediction], missed: Collection[str]) -> str:
    """Name the theorem that says where a flow with a margin limit ends, kept or not; empty if there is none."""
    told = [p for p in predictions if p.function is not None and p.margin is not None and p.claim in endings()]
    kept = [p for p in told if abs(end.margin - float(p.margin or 0.0)) <= SAME * end.margin]
    order = list(endings())
    for one in sorted(kept, key=lambda p: (p.claim in missed, order.index(p.claim))):
        theorem = endings()[one.claim]
        said = f"This is what the theorem of {authors(theorem)} promises for {theorem.role.about}"
        if one.claim in missed:
            return f"{said}, though not all it says was seen."
        return f"{said}, and the run kept the promise."
    for one in told:
        theorem = endings()[one.claim]
        assumed = ", ".join(one.needs) or "none is known to fail"
        return (
            f"The theorem of {authors(theorem)} promises margin {one.margin:.4g} for {theorem.role.about}; the run "
            f"went elsewhere, so one of its assumptions is not met ({assumed})."
        )
    return ""


def uncovered(problem: Problem, findings: Sequence[Finding]) -> str:
    """Say that no theorem tells where this flow ends, what is known all the same, and what stands in the way."""
    always = next((claim(f.claim).role.every_limit for f in findings if _always(f)), "")
    said = f"No theorem covered here says where this flow ends{f', only {always}' if always else ''}"
    nearest = _nearest(problem, findings)
    if nearest is None:
        return f"{said}."
    theorem, condition = endings()[nearest.claim], nearest.failing[0]
    return (
        f"{said}; the nearest, of {authors(theorem)} for {theorem.role.about}, does not apply: "
        f"{(condition.why or condition.name).rstrip('.')}."
    )


def _always(finding: Finding) -> bool:
    return bool(finding.applies and claim(finding.claim).role.every_limit)


def _nearest(problem: Problem, findings: Sequence[Finding]) -> Finding | None:
    """Choose, of the theorems for such a network, the one with the fewest conditions in the way."""
    kind = "frozen" if problem.train == "first" else "ReLU" if problem.net.slope == 0 else "leaky"
    failed = {f.claim: f for f in findings if f.failing}
    fitting = [one.id for one in endings().values() if one.role.nearest_for == kind and one.id in failed]
    return min((failed[name] for name in fitting), key=lambda f: len(f.failing), default=None)


def foreseen(seen: Sequence[Sight]) -> str:
    """Name the theorem that foresees that points are lost; empty if none does."""
    names = [name for sight in seen for name in sight.covered_by if claim(name).role.stall]
    if not names:
        return ""
    theorem = claim(names[0])
    return f"The theorem of {authors(theorem)} foresees this: {theorem.role.stall}"


def largest_margin(end: Limit, findings: Sequence[Finding], predictions: Sequence[Prediction]) -> tuple[float, float]:
    """Bracket the largest margin of any network: as computed, or as told by a claim that applies for sure."""
    if end.optimum is not None:
        return end.optimum.lower, end.optimum.upper
    sure = {f.claim for f in findings if f.applies and not f.needs}
    told = [
        p.bounds[name]
        for p in predictions
        if p.claim in sure and (name := claim(p.claim).role.largest) and name in p.bounds
    ]
    return (told[0], told[0]) if told else (0.0, np.inf)
