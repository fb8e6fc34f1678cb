"""Theory and run side by side: what was seen, which claims cover it, and what became of every claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..dynamics import Limit, Trajectory
from ..dynamics.accuracy import margin_rounding
from ..margins import MarginSolution, linearity, stable_rank
from ..problem import NotSeparable, ProblemError, Stopped, Undecided
from ..problem.words import count
from .base import Condition, Finding, Observation, Prediction
from .facts import Facts
from .verdicts import claim

#: Relative difference of margins, and distance of unit vectors, up to which they are one; the margin of a confirmed
#: limit has a residual of at most 1e-9.
SAME = 1e-7
_LIMIT = "limit"


# -- the outcome ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Verdict:
    """What became of one claim.

    Attributes
    ----------
    claim : str
        Its id; empty for what no claim is about.
    text : str
        What was seen, in words; for a claim that was not kept, where it is missed by least.
    needs : tuple of str
        What the claim only assumes, or what stayed undecided of its conditions.
    discrepancy : float or None
        Relative difference of what was measured and what was predicted, where both are numbers.
    """

    claim: str
    text: str
    needs: tuple[str, ...] = ()
    discrepancy: float | None = None


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The outcome in four lists.

    Attributes
    ----------
    seen : tuple of Verdict
        Predicted and seen.
    missed : tuple of Verdict
        Predicted but not seen. With ``needs`` this refutes nothing: one of those assumptions may not be met.
    uncovered : tuple of Verdict
        Seen though no theorem that applies covers it.
    undecided : tuple of Verdict
    """

    seen: tuple[Verdict, ...]
    missed: tuple[Verdict, ...]
    uncovered: tuple[Verdict, ...]
    undecided: tuple[Verdict, ...]

    @property
    def contradicted(self) -> tuple[Verdict, ...]:
        """Claims that apply with nothing assumed and that the run refutes."""
        return tuple(verdict for verdict in self.missed if not verdict.needs)

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        refuted, doubtful = self.contradicted, len(self.missed) - len(self.contradicted)
        if refuted:
            return f"{', '.join(v.claim for v in refuted)} applied, and the run contradicts it."
        if doubtful:
            return (
                f"nothing is contradicted, but {doubtful} of the predictions, which rest on assumptions, were not seen."
            )
        if not self.seen:
            return "no prediction could be compared with the run."
        return "every prediction that applies and could be decided was seen."


def summarize(
    findings: Sequence[Finding], observations: Sequence[Observation], seen: Sequence[Sight], troubles: Sequence[str]
) -> Verdicts:
    """Sort what was predicted, seen and left open into four lists, one entry a claim."""
    lists: dict[bool | None, dict[str, list[Observation]]] = {True: {}, False: {}, None: {}}
    for one in observations:
        lists[one.consistent].setdefault(one.claim, []).append(one)
    doubts = [
        Verdict(f.claim, "whether it applies: " + "; ".join(_reason(c) for c in f.conditions if _open(c)))
        for f in findings
        if f.applies is None
    ]
    return Verdicts(
        tuple(_verdict(name, group) for name, group in lists[True].items() if name not in lists[False]),
        tuple(_verdict(name, group) for name, group in lists[False].items()),
        tuple(Verdict("", sight.text) for sight in seen if not sight.covered_by),
        (
            *(_verdict(name, group) for name, group in lists[None].items()),
            *doubts,
            *(Verdict("", text) for text in troubles),
        ),
    )


def _open(condition: Condition) -> bool:
    return condition.decides and condition.holds is None and not condition.assumed


def _reason(condition: Condition) -> str:
    return f"{condition.name} ({condition.why.rstrip('.')})" if condition.why else condition.name


def _verdict(name: str, group: list[Observation]) -> Verdict:
    """Collect the observations of one claim, what the limit says first; of broken promises, the least broken."""
    sizes = [_discrepancy(one) for one in group]
    if group[0].consistent is False:
        order = sorted(range(len(group)), key=lambda k: np.inf if sizes[k] is None else float(sizes[k] or 0.0))
    else:
        last = [isinstance(one.where, str) and one.where == _LIMIT for one in group]
        order = sorted(range(len(group)), key=lambda k: not last[k])
    needs = dict.fromkeys(need for one in group for need in one.needs)
    if not all(one.needs for one in group):
        needs = {}  # one observation assumes nothing: that one decides
    return Verdict(name, " ".join(group[k].text for k in order), tuple(needs), sizes[order[0]])


def _discrepancy(one: Observation) -> float | None:
    try:
        measured, predicted = (np.asarray(value, dtype=np.float64) for value in (one.measured, one.predicted))
    except (TypeError, ValueError):
        return None
    if measured.shape != predicted.shape or not measured.size:
        return None
    if not (np.isfinite(measured).all() and np.isfinite(predicted).all()):
        return None
    gap, size = np.abs(measured - predicted).max(), np.abs(predicted).max()
    return float(gap / size) if size > 0 else float(gap)


# -- the limit --------------------------------------------------------------------------------------------


def compare_limit(end: Limit, predictions: Sequence[Prediction]) -> list[Observation]:
    """Compare the margin of a confirmed limit with every claim that gives the limit function."""
    if end.kind != "margin":
        return []
    found = []
    for one in predictions:
        if one.function is None or one.margin is None:
            continue
        gap = abs(end.margin - one.margin)
        text = f"the confirmed limit has margin {end.margin:.10g}, predicted {one.margin:.10g}."
        noise = margin_rounding(end.problem.data, end.network.p)
        same: bool | None = gap <= SAME * abs(one.margin) + noise
        if abs(one.margin) <= noise:
            same, text = None, f"the predicted margin, {one.margin:.3g}, is rounding: cannot be told."
        found.append(Observation(one.claim, same, end.margin, one.margin, _LIMIT, text, one.needs))
    return found


# -- what can be seen -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sight:
    """Something that a run shows.

    Attributes
    ----------
    text : str
    covered_by : tuple of str
        Ids of claims that apply and predicted it; empty where no theorem covers it.
    """

    text: str
    covered_by: tuple[str, ...] = ()


def sights(
    facts: Facts, run: Trajectory | None, end: Limit | None, predictions: Sequence[Prediction]
) -> tuple[Sight, ...]:
    """List what the run shows."""
    found: list[Sight] = []
    if end is not None:
        found += _limit(facts, end, predictions)
    if run is not None:
        found += _events(facts, run, predictions)
    return tuple(found)


def _lost(end: Limit) -> bool:
    """Whether points are felt by no neuron any more."""
    return end.kind == "stall" and not end.balanced.size


def _limit(facts: Facts, end: Limit, predictions: Sequence[Prediction]) -> Iterator[Sight]:
    if end.kind != "margin":
        stalls = tuple(p.claim for p in predictions if claim(p.claim).role.stall) if _lost(end) else ()
        yield Sight(_upper(end.reason), stalls)
        return
    by = tuple(
        p.claim
        for p in predictions
        if p.function is not None and p.margin is not None and abs(p.margin - end.margin) <= SAME * end.margin
    )
    groups = f"{count(len(end.living), 'group')} of neurons" if end.living else "every neuron"
    rank = stable_rank(end.network)
    yield Sight(
        f"The direction converges: {groups}, normalised margin {end.margin:.10g}, stable rank {rank:.6g}; "
        "a KKT point of the margin problem.",
        by,
    )
    yield from _optimality(end, by)
    yield from _shape(facts, end, by)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _optimality(end: Limit, by: tuple[str, ...]) -> Iterator[Sight]:
    best = end.optimum
    if best is None:
        return
    if end.margin >= best.upper * (1 - SAME):
        yield Sight("No network of any width has a larger margin than this limit.", by)
    elif best.lower > end.margin * (1 + SAME):
        part = (
            f"{100 * end.margin / best.lower:.4g} %" if best.exact else f"at most {100 * end.margin / best.lower:.4g} %"
        )
        yield Sight(f"The limit is not optimal: it has {part} of the largest margin of any network.", by)


def _shape(facts: Facts, end: Limit, by: tuple[str, ...]) -> Iterator[Sight]:
    """Compare the limit with the linear max-margin classifier and with those of the two classes."""
    answer = linearity(end.network)
    if answer.linear:
        linear = _solution(facts)
        words = "The limit decides like a linear function"
        if linear is not None and answer.direction is not None:
            gap = float(np.linalg.norm(answer.direction - linear.direction))
            words += ", the max-margin one" if gap <= SAME else f", at distance {gap:.3g} from the max-margin one"
        yield Sight(words + ".", by)
        return
    try:
        classes = facts.class_margins
    except Stopped:
        raise
    except (Undecided, NotSeparable, ProblemError):
        return
    living = [g for g in end.living if g.sign]
    wanted = {1: classes[0], -1: classes[1]}
    if living and all(_along(g.direction, wanted[g.sign]) for g in living):
        yield Sight("Each sign of neurons ends in the max-margin direction of its own class.", by)


def _solution(facts: Facts) -> MarginSolution | None:
    try:
        found = facts.max_margin
    except Stopped:
        raise
    except Undecided:
        return None
    return None if isinstance(found, NotSeparable) else found


def _along(direction: np.ndarray, solution: MarginSolution | None) -> bool:
    return solution is not None and float(np.linalg.norm(direction - solution.direction)) <= SAME


def _events(facts: Facts, run: Trajectory, predictions: Sequence[Prediction]) -> Iterator[Sight]:
    kinds, times = run.events["kind"], run.events["log_time"]
    grouped = tuple(p.claim for p in predictions if p.groups is not None)
    # Fitted: n L < l(0), so that every point is classified, now and for ever.
    fitted = run.log_loss - np.log(run.problem.weight) < np.log(run.problem.loss.value(0.0))
    after = times > run.log_time[int(np.argmax(fitted))] if fitted.any() else np.zeros(times.size, dtype=bool)
    if after.any():
        last = float(times.max())
        when = f"t = {np.exp(last):.6g}" if last < 10 else f"log t = {last:.6g}"
        many = count(int(after.sum()), "time")
        yield Sight(f"Neurons still change sides after every point is classified: {many}, the last at {when}.")
    elif grouped:
        many = count(run.events.size, "change of activation", "changes of activation")
        when = ", all before the points are classified" if fitted.any() else ""
        yield Sight(f"{many}{when}.", grouped)
    slides = kinds == "slide"
    if slides.any():
        neurons, samples = (np.unique(run.events[name][slides]).size for name in ("neuron", "sample"))
        yield Sight(f"Sliding, for a while or for ever: {count(neurons, 'neuron')} on {count(samples, 'hyperplane')}.")
    if facts.net.slope == 0:
        final, live = run.final, np.isfinite(run.log_norms[-1])
        dead = int((live & (final.preactivations(facts.data.X) < 0).all(axis=0)).sum())
        if dead:
            what = f"{dead} of {count(run.p, 'neuron')} {'is' if dead == 1 else 'are'} dead at the end"
            yield Sight(f"{what}: no sample activates {'it' if dead == 1 else 'them'}.", grouped)
