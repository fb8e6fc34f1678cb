"""Where the flow ends: the limit of its direction, with what supports it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...data import takes_data
from ...margins import KKT, GlobalMargin, kkt
from ...problem import BudgetExceeded, Interrupted, Network, OutOfTime, Problem, ProblemError, Undecided, check_time
from ...problem import time_limit as within
from ...problem.checks import is_number
from ...problem.show import Shown
from ...problem.types import Array, Index
from ...problem.words import count
from ..early.alignment import Alignment
from ..flow.balance import NOUGHT, balance
from ..flow.blind import COARSE
from ..flow.field import Geometry
from ..flow.flow import Until, begin, check_effort, kept
from ..flow.march import March, Reached
from ..flow.phases import LONG, Goal, named
from ..flow.record import Recorder
from ..flow.units import frozen_size, in_units_of, rescaled_net, rescaled_problem, rescaled_run
from ..trajectory import LATEST, Trajectory
from .balance import evidence_of
from .candidate import Candidate, LimitGroup, Lost, candidate, crowds
from .future import NOBODY, Future, beside, follow, left, strengths
from .gates import APPROACH, CLOSE, QUIET, SHARES, VANISHING, Evidence, Look, evidence, grown, words_of
from .way import TIME_ENOUGH, Plateau, Way

_UNIT, _FARTHEST = 6.0, 600.0  # logs of frozen output weights that are scaled to 1, and from which on margins overflow
_DEAR = 10.0  # steps that an implicit one counts as, more in a large problem: a search that takes so many is given up
_TOUCH = 1e-9  # part of the largest margin of any network by which one that attains it may fall short


@dataclass(frozen=True, eq=False, repr=False)
class Limit(Shown):
    r"""The limit of :math:`\theta/|\theta|`, or why there is none.

    Attributes
    ----------
    problem : Problem
    kind : {"margin", "stall", "rest"}
        ``margin``: every point is classified and the direction tends to a KKT point of the margin problem. ``stall``:
        some points are never fitted: no neuron feels them any more, or their pulls cancel (``balanced``); the loss
        stays above ``loss_floor`` and `network` is the limit for the others. ``rest``: the parameters stay bounded;
        there is no limit at infinity, `network` is where the flow ends.
    network : Network
        Of unit norm (trained parameters), one neuron a living group (each neuron for a frozen second layer).
    margin : float
        Normalised margin of the limit over the points that are fitted.
    groups : tuple of LimitGroup
    kkt : KKT or None
        Certificate of `network`.
    evidence : tuple of Evidence
        What the claim rests on, item by item.
    loss_floor : float
        What the loss tends to: 0 for ``margin``.
    optimum : GlobalMargin or None
        The largest margin of any network, if it was asked for or cheap.
    reason : str
        The answer in one sentence.
    trajectory : Trajectory
        The flow that led there, as far as it was followed in time.
    plateaus : tuple of Plateau
        Where the direction rested on its way.
    balanced : ndarray of int
        Points of a stall that are felt, but whose pulls cancel in every pattern: their margins stay where they are.
    """

    problem: Problem
    kind: Literal["margin", "stall", "rest"]
    network: Network
    margin: float
    groups: tuple[LimitGroup, ...]
    kkt: KKT | None
    evidence: tuple[Evidence, ...]
    loss_floor: float
    reason: str
    trajectory: Trajectory = field(repr=False)
    optimum: GlobalMargin | None = None
    plateaus: tuple[Plateau, ...] = ()
    balanced: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def history(self) -> str:
        """The plateaus in words; empty if there were none."""
        if not self.plateaus:
            return ""
        return "it rests " + ", then ".join(
            f"at margin {p.margin:.4g} until log R = {p.log_r_to:.4g}" for p in self.plateaus
        )

    @property
    def living(self) -> tuple[LimitGroup, ...]:
        """Groups that carry the limit."""
        return tuple(group for group in self.groups if group.share > 0)

    @property
    def directions(self) -> Array:
        """Limit direction of every neuron, shape (p, d); zero for those that vanish or are dead."""
        out = np.zeros((self.problem.net.p, self.problem.net.d))
        for group in self.groups:
            out[group.neurons] = group.direction
        return out

    def to_dict(self) -> dict[str, Any]:
        """Describe the limit, and what supports it, in plain JSON values."""
        from ..documents import describe_limit

        return describe_limit(self)

    def text(self, width: int = 100, color: bool = False) -> str:
        """Render for a terminal."""
        from ..texts import limit_text

        return limit_text(self, width, color)

    def __repr__(self) -> str:
        lines = [f"Limit ({self.kind}): {self.reason}"] + ([f"  before, {self.history}"] if self.plateaus else [])
        lines += [f"  {'?' if e.holds is None else '+' if e.holds else '-'} {e.name}: {e.text}" for e in self.evidence]
        return "\n".join(lines)


@takes_data()
def limit(
    problem: Problem,
    *,
    rtol: float = 1e-9,
    max_log_time: float = 1e10,
    max_steps: int = 100_000,
    optimum: bool | None = None,
    alignment: Alignment | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> Limit:
    r"""Find the limit of the direction of the flow, and what supports it.

    The flow is integrated until its patterns have not changed while :math:`|\theta|^2` grew a hundredfold. Then the
    limit that these patterns lead to is computed exactly (a convex program with the cone of each pattern), and
    accepted only if it is a KKT point in the sense of Clarke to 1e-9, lies strictly inside the patterns it was
    computed from, every group left out decays, and the margin of the flow approaches its margin. The pattern at
    moderate loss says little: later events are common, and some come at log t = 10^8.

    Parameters
    ----------
    problem : Problem
        Or data and how to draw a network, ``limit(X, y, width=50)``: see `as_problem`.
    rtol : float
        Tolerance of the integration.
    max_log_time : float
        How far to integrate before giving up.
    max_steps : int
        Most steps of integration. Those of the late phase, implicit ones, count as ten, or more where n p d is above
        10^5: where patterns do not settle, the search is given up early.
    optimum : bool, optional
        Also bracket the largest margin of any network, to tell whether the limit attains it; default: for at most 60
        points in at most 3 dimensions, both layers trained.
    alignment : Alignment, optional
        The early phase of this problem, where `align` has solved it already.
    time_limit : float, optional
        Most seconds to spend.
    progress : bool, optional
        Show a progress bar on stderr; default: if that is a terminal.

    Returns
    -------
    Limit

    Raises
    ------
    Undecided
        What was found does not meet every condition within the budget, or the time ended (`OutOfTime`), or Ctrl-C was
        pressed (`Interrupted`); ``partial`` holds the trajectory, or the `Limit` where only the optimum is missing.

    Examples
    --------
    >>> from reluflow import Dataset, Network, Problem
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> net = Network.balanced([[1.0, 0.2], [-1.0, 0.4], [-0.3, -1.0]], [1, 1, -1], log_scale=-20)
    >>> end = limit(Problem(data, net))
    >>> end.kind, round(end.margin, 10), end.kkt.is_kkt(1e-12)
    ('margin', 0.5840985669, True)
    >>> [round(group.share, 10) for group in end.living]
    [0.5506934101, 0.4493065899]
    """
    from ..flow.progress import bar

    check_effort(rtol, max_steps, COARSE)
    if not is_number(max_log_time) or not 0 < max_log_time <= LATEST:
        raise ProblemError(f"max_log_time = {max_log_time!r}: a number between 0 and {LATEST:g} is needed.")
    if alignment is not None and alignment.problem != problem:
        raise ProblemError("the alignment belongs to another problem; align(problem) makes the one that is needed.")
    log_s = _unit(problem)
    scaled = rescaled_problem(problem, log_s)
    recorder = Recorder(scaled, {"rtol": float(rtol), "until": "limit"})
    with within(time_limit):
        with in_units_of(problem, log_s, np.inf), bar(max_log_time, progress) as tell:
            nowhere = Goal(np.inf, -np.inf, np.inf)
            labour = max_steps / _DEAR
            march = March(Geometry(scaled), nowhere, float(rtol), max_steps, recorder, tell, share=LONG, labour=labour)
            with kept(march):
                found = _search(march, float(max_log_time), None if log_s else alignment, log_s)
        found = _in_units(found, problem, log_s)
        small = problem.data.n <= 60 and problem.data.d <= 3 and problem.train == "both"
        if found.kind == "margin" and (small if optimum is None else optimum):
            found = _with_optimum(found, needed=bool(optimum))
    return found


def _unit(problem: Problem) -> float:
    """Log of the s with which the limit is looked for, where a second layer is frozen far from 1, else 0.

    Steps would be chosen in the wrong clock there, and for ever.
    """
    log_s = frozen_size(problem)
    if abs(log_s) > _FARTHEST:
        raise Undecided(
            f"the output weights are frozen at e^{log_s:.6g}, and a margin over the norm of the first layer alone is "
            f"of that size; to find the limit they are needed within e^{_FARTHEST:g} of 1. Multiplying the first layer "
            "by s and dividing the second by it leaves the network and its flow the same (in the clock s^2 t): add "
            f"{log_s:.6g} to the log_scale of the first layer and {-log_s:.6g} to that of the second."
        )
    return log_s if abs(log_s) > _UNIT else 0.0


def _in_units(found: Limit, problem: Problem, log_s: float) -> Limit:
    """Return a limit that was found with the first layer s times as large as one of the problem itself."""
    if not log_s:
        return found
    net = found.network
    if found.kind == "rest":
        net = rescaled_net(net, -log_s)
    else:  # of unit norm before and after
        first, second = net.log_scales
        net = Network(net.W, net.a, net.slope, first, second + log_s)
    certificate = found.kkt
    if certificate is not None:
        felt = [np.where(g.pattern > 0, 1.0, net.slope) for g in found.living]
        certificate = kkt(problem.data.subset(np.flatnonzero(np.any(felt, axis=0))), net, problem.train)
    run = rescaled_run(found.trajectory, problem, -log_s)
    return replace(found, problem=problem, network=net, kkt=certificate, trajectory=run)


def _search(march: March, max_log_time: float, alignment: Alignment | None, log_s: float) -> Limit:
    state, log_time, _ = begin(march, Until(log_time=max_log_time), alignment)
    way = Way(march, Reached(state, log_time, "coupled"), min(max_log_time, TIME_ENOUGH), log_s)
    try:
        found = _confirmed(way)
    except BudgetExceeded:
        raise
    except Undecided as error:
        found = _in_balance(way, error)
    finally:
        way.in_time()
    ridges = int((found.trajectory.events["kind"] == "ridge").sum())
    if not ridges:
        return found
    text = f"the flow may go on in several ways at {count(ridges, 'place')} (events `ridge`); this is the limit of one"
    return replace(found, evidence=(*found.evidence, Evidence("branches", float(ridges), None, text)))


def _confirmed(way: Way) -> Limit:
    why = "its patterns have not settled"
    while way.go_on():
        if way.reached.why == "rest":
            return _resting(way)
        check_time("looking for the limit")
        restless = _restless(way)
        if restless:
            why = restless
            continue
        found = candidate(way.march.geometry, way.reached.state, way.coming)
        if isinstance(found, str):
            why = found
            continue
        answer = _lost(way, found) if isinstance(found, Lost) else _tried(way, found)
        if isinstance(answer, Limit):
            return answer
        why = answer
    march = way.in_time()
    ahead = "another draw may settle sooner."
    if way.tired:
        ahead = f"a larger max_steps goes on: {march.max_steps} allow for {march.labour:g} steps of the late phase."
    elif way.last < TIME_ENOUGH:
        ahead = "a larger max_log_time goes on."
    raise Undecided(
        f"no limit could be confirmed {march.standing()}: {why}; what was found so far is kept, and {ahead}",
        way.recorder.result(),
    )


def _restless(way: Way) -> str:
    """Say why no candidate could pass, if a group that must carry the limit changed its pattern lately: `quiet`.

    A limit that left it out would fail `shares`. To see that is far cheaper than to solve a program.
    """
    crowd = crowds(way.march.geometry, way.reached.state)
    large = [js for js, share in zip(crowd.members, crowd.shares, strict=True) if share > SHARES]
    if not large:
        return ""
    run = way.run
    by = grown(run, np.empty(0, dtype=np.intp), np.concatenate(large))[0]
    return "" if by >= QUIET else f"quiet: |theta|^2 grew by {by:.3g} since the last event of a large group of neurons"


def _tried(way: Way, found: Candidate) -> Limit | str:
    """Try a candidate: the limit, or why it is none."""
    look = Look(way.run, found)
    failed = [e for e in evidence(look) if not e.holds]
    why = "; ".join(f"{e.name}: {e.text}" for e in failed)
    # A flow whose margin is a little larger than that of the point it rests at is about to leave it.
    leaving = [e.name for e in failed] == [APPROACH.name] and -CLOSE <= failed[0].value < 0
    if failed and not leaving:
        return why
    future = _future(way, found)
    if leaving and (future.doubt or future.arrival == np.inf):
        return why
    look = look._replace(future=future)
    last = VANISHING(look)
    if last.holds:
        return _accept(way, found, evidence(look))
    if future.doubt:
        return f"{last.name}: {last.text}"
    return way.leave(found.margin, found.network, future)


def _future(way: Way, found: Candidate) -> Future:
    """Follow the neurons that the limit leaves out.

    Where the multipliers are not unique they are followed with those of the program and with those of the flow. If they
    vanish with either, that choice proves that they cannot raise the margin: the pulls move until they vanish.
    """
    geometry, state = way.march.geometry, way.reached.state
    if geometry.frozen:  # every neuron that feels a sample moves at the speed of its output weight: none vanishes
        return NOBODY
    lost = found.lost(geometry.problem.data.n)
    small = np.setdiff1d(left(geometry, state, lost), found.living)
    if found.still is not None:
        return beside(geometry, state, found, small, lost)
    one = follow(geometry, state, found.multipliers, found.network, small, lost)
    if not found.free or not small.size or (one.arrival == np.inf and not one.doubt):
        return one
    return follow(geometry, state, strengths(geometry, state, found.live), found.network, small, lost)


def _lost(way: Way, found: Lost) -> Limit | str:
    """Answer for a stall in which neurons slide on a lost point: exact floor, direction of the flow."""
    problem, run, state = way.march.geometry.problem, way.recorder.result(), way.reached.state
    live = np.setdiff1d(np.arange(problem.data.n), found.points)
    by = grown(way.run, live)[0]
    if by < QUIET**2:
        return f"neurons slide on points that are lost, and |theta|^2 grew only by {by:.3g} since the last event"
    floor = float(problem.weight * found.points.size * problem.loss.value(0.0))
    net = state.network(problem.net.slope).normalized(problem.train)
    margin = way.scaled(net.normalized_margin(problem.data.subset(live), problem.train))
    items = [
        Evidence("quiet", by, True, f"|theta|^2 grew by {by:.3g} since the data were fitted and the last event"),
        Evidence("exact", np.nan, None, "a group slides on a lost point; the direction is the flow's, not solved for"),
    ]
    if not way.march.geometry.frozen:
        small = np.setdiff1d(left(way.march.geometry, state, found.points), found.carriers)
        living = state.of(found.carriers).network(problem.net.slope)
        now = strengths(way.march.geometry, state, live)
        future = follow(way.march.geometry, state, now, living, small, found.points)
        if future.doubt:
            return f"{VANISHING.name}: {future.doubt}"
        if future.arrival < np.inf:
            return way.leave(margin, net, future)
        items.append(Evidence("vanishing", future.fastest, True, words_of(future)))
    stalled = _stalled(found.points, problem.data.n, floor)
    reason = f"{stalled}; on the others the flow has margin {margin:.6g}"
    return Limit(
        problem, "stall", net, margin, (), None, tuple(items), floor, reason, run, plateaus=tuple(way.plateaus)
    )


def _stalled(points: npt.NDArray[np.intp], n: int, floor: float, still: int = 0) -> str:
    verb = "is" if points.size == 1 else "are"
    why = "felt by no neuron any more" if not still else "never fitted, because pulls cancel"
    if still and still < points.size:
        why = f"never fitted, {still} of them because pulls cancel, the others because no neuron feels them"
    return (
        f"{points.size} of {count(n, 'point')} ({named(points)}) {verb} {why}: the loss tends to {floor:.6g} and no "
        "margin limit exists"
    )


def _accept(way: Way, found: Candidate, items: tuple[Evidence, ...]) -> Limit:
    problem, run = way.march.geometry.problem, way.recorder.result()
    still, margin = found.still, way.scaled(found.margin)
    missing = np.setdiff1d(np.arange(problem.data.n), found.live)
    floor = problem.weight * found.lost(problem.data.n).size * float(problem.loss.value(0.0))
    reason = f"{count(len(found.living_groups), 'group')} of neurons, normalised margin {margin:.10g}"
    if still is not None:
        floor += still.floor
    if missing.size:
        stalled = _stalled(missing, problem.data.n, floor, 0 if still is None else still.points.size)
        reason = f"{stalled}; on the other points the margin tends to {margin:.10g}"
    end = Limit(
        problem,
        "stall" if missing.size else "margin",
        found.network,
        margin,
        found.groups,
        found.certificate,
        items,
        float(floor),
        reason,
        run,
        plateaus=tuple(way.plateaus),
    )
    return end if still is None else replace(end, balanced=still.points)


def _resting(way: Way) -> Limit:
    problem, reached = way.march.geometry.problem, way.reached
    net = reached.state.network(problem.net.slope)
    loss = float(np.exp(problem.log_loss(net)))
    wrong = np.flatnonzero(net.margins(problem.data) <= 0)
    evidence = (
        Evidence("rest", reached.log_time, True, f"nothing moves any more from log t = {reached.log_time:.4g} on"),
    )
    return _rest(way, net, evidence, loss, wrong)


def _in_balance(way: Way, stuck: Undecided) -> Limit:
    """Answer for a flow that could not be followed further because all points rest in balance, or say what is known."""
    geometry, state = way.march.geometry, way.march.recorder.state
    found = balance(geometry, state)
    if found is None or way.march.recorder is not way.recorder:
        raise stuck
    problem, others = geometry.problem, geometry.problem.data.n - found.points.size
    items = evidence_of(geometry, found)
    if others:
        raise Undecided(
            f"{count(found.points.size, 'point')} ({named(found.points)}) rest in balance: no network with the present "
            f"patterns fits them, nor has a loss below {found.lower:.6g} there, while "
            f"{count(others, 'other goes', 'others go')} on to be fitted; where the direction of such a flow "
            f"ends is not decided. It was not followed further: {stuck}",
            stuck.partial,
        ) from stuck
    if not all(item.holds for item in items):
        raise stuck
    wrong = found.points[found.margins <= NOUGHT]
    return _rest(way, state.network(problem.net.slope), items, found.lower, wrong)


def _rest(way: Way, net: Network, evidence: tuple[Evidence, ...], loss: float, wrong: npt.NDArray[np.intp]) -> Limit:
    """Answer that the parameters stay bounded, with these points not classified."""
    problem = way.march.geometry.problem
    reason = (
        f"the flow comes to rest at loss {loss:.6g} with {wrong.size} of {count(problem.data.n, 'point')}"
        f"{f' ({named(wrong)})' if wrong.size else ''} not classified: the parameters stay bounded and there is no "
        "limit at infinity"
    )
    run, plateaus = way.recorder.result(), tuple(way.plateaus)
    return Limit(problem, "rest", net, np.nan, (), None, evidence, loss, reason, run, plateaus=plateaus)


def _with_optimum(found: Limit, needed: bool) -> Limit:
    from ...margins import global_max_margin

    try:
        best = global_max_margin(found.problem.data, found.problem.net.slope)
    except OutOfTime as error:
        if needed:
            error.partial = found
            raise
        item = Evidence("optimum", np.nan, None, f"the largest margin of any network was not found: {error}")
        return replace(found, evidence=(*found.evidence, item))
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted while bracketing the largest margin of any network; what was found so far is kept.", found
        ) from None
    short = best.upper - found.margin
    text = f"the largest margin of any network is {best.lower:.10g}"
    if short < -_TOUCH * best.upper:
        raise Undecided(
            f"two computations contradict each other: the limit has margin {found.margin:.10g}, and {text}; please "
            "report this problem. What was found so far is kept.",
            found,
        )
    reaches = bool(short <= _TOUCH * best.upper) if best.exact else None
    item = Evidence("optimum", best.lower, True, text + (", attained" if reaches else f", {short:.3g} above the limit"))
    return replace(found, optimum=best, evidence=(*found.evidence, item))
