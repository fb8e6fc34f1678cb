"""What can be seen in a run and its limit, and which of the claims that apply cover it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..dynamics import Limit, Trajectory
from ..margins import MarginSolution, linearity, stable_rank
from ..problem import NotSeparable, ProblemError, Stopped, Undecided
from ..problem.words import count
from ..theory import Facts, Prediction

_SAME = 1e-7  # relative difference of margins, and distance of unit vectors, up to which they count as one


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


def _limit(facts: Facts, end: Limit, predictions: Sequence[Prediction]) -> Iterator[Sight]:
    if end.kind != "margin":
        stalls = tuple(p.claim for p in predictions if p.claim == "PL-T1p") if end.kind == "stall" else ()
        yield Sight(_upper(end.reason), stalls)
        return
    by = tuple(
        p.claim
        for p in predictions
        if p.function is not None and p.margin is not None and abs(p.margin - end.margin) <= _SAME * end.margin
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
    if end.margin >= best.upper * (1 - _SAME):
        yield Sight("No network of any width has a larger margin than this limit.", by)
    elif best.lower > end.margin * (1 + _SAME):
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
            words += ", the max-margin one" if gap <= _SAME else f", at distance {gap:.3g} from the max-margin one"
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
    return solution is not None and float(np.linalg.norm(direction - solution.direction)) <= _SAME


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
