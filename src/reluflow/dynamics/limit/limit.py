"""Where the flow ends: the limit of its direction, with what supports it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ...data import takes_data
from ...margins import KKT, GlobalMargin
from ...problem import Interrupted, Network, OutOfTime, Problem, ProblemError, Undecided, check_time
from ...problem import time_limit as within
from ...problem.checks import is_number
from ...problem.types import Array, Index
from ...problem.words import count
from ..flow.field import Geometry
from ..flow.flow import Until, begin, check_effort, kept
from ..flow.march import Goal, March, Reached, named
from ..flow.record import Recorder
from ..flow.state import State, pattern_of, take
from ..trajectory import Trajectory
from .candidate import Candidate, LimitGroup, Lost, candidate
from .future import BEFORE, Future, follow

#: Log times at which the patterns reached are put to the test.
_STAGES = (1e2, 1e3, 1e4, 1e5, 1e6)
LAST = 1e10  #: largest log time that can be asked for

_TIME_ENOUGH = _STAGES[-1]  # beyond this log t the direction no longer depends on the time, only on log R
_ROUNDS = 10  # how often the network is made smaller before giving up: each time log R has grown by 7

_QUIET = 100.0  # |theta|^2 must have grown by this factor since the last event
_KKT = 1e-9
_CLOSE = 1e-2  # largest gap between the margin of the flow and that of the limit, as part of the latter


class Evidence(NamedTuple):
    """One thing that speaks for the limit: what, its number, whether it is as it must be, and in words."""

    name: str
    value: float
    holds: bool | None
    text: str


@dataclass(frozen=True, eq=False)
class Plateau:
    r"""A KKT point at which the direction rests for long, but not for ever.

    Attributes
    ----------
    margin : float
        Its normalised margin.
    network : Network
        Of unit norm.
    log_r_from, log_r_to : float
        Between these values of :math:`\log R = \log|\theta|^2` the network is near it; log t is about R times the
        margin.
    neuron : int
        The neuron that ends it.
    sample : int
        The sample, felt by no neuron at the plateau, that it comes to see; -1 if it outgrows the network.
    """

    margin: float
    network: Network
    log_r_from: float
    log_r_to: float
    neuron: int
    sample: int = -1

    def to_dict(self) -> dict[str, float | int]:
        """Everything but the network."""
        return {
            "margin": self.margin,
            "log_r_from": self.log_r_from,
            "log_r_to": self.log_r_to,
            "neuron": self.neuron,
            "sample": self.sample,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Limit:
    r"""The limit of :math:`\theta/|\theta|`, or why there is none.

    Attributes
    ----------
    problem : Problem
    kind : {"margin", "stall", "rest"}
        ``margin``: every point is classified and the direction tends to a KKT point of the margin problem. ``stall``:
        some points are never felt by any neuron again; the loss stays above ``loss_floor`` and `network` is the limit
        for the others. ``rest``: the parameters stay bounded; there is no limit at infinity, `network` is where the
        flow ends.
    network : Network
        Of unit norm (trained parameters), one neuron a living group (each neuron for a frozen second layer).
    margin : float
        Normalised margin of the limit over the points that are felt.
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
        Most steps of integration.
    optimum : bool, optional
        Also bracket the largest margin of any network, to tell whether the limit attains it; default: for at most 60
        points in at most 3 dimensions, both layers trained.
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

    check_effort(rtol, max_steps)
    if not is_number(max_log_time) or not 0 < max_log_time <= LAST:
        raise ProblemError(f"max_log_time = {max_log_time!r}: a number between 0 and {LAST:g} is needed.")
    recorder = Recorder(problem, {"rtol": float(rtol), "until": "limit"})
    with within(time_limit):
        with bar(max_log_time, progress) as tell:
            nowhere = Goal(np.inf, -np.inf, np.inf)
            march = March(Geometry(problem), nowhere, float(rtol), max_steps, recorder, tell)
            with kept(march):
                found = _search(march, float(max_log_time))
        small = problem.data.n <= 60 and problem.data.d <= 3 and problem.train == "both"
        if found.kind == "margin" and (small if optimum is None else optimum):
            found = _with_optimum(found, needed=bool(optimum))
    return found


def _search(march: March, max_log_time: float) -> Limit:
    state, log_time, _ = begin(march, Until(log_time=max_log_time))
    way = Way(march, Reached(state, log_time, "coupled"), min(max_log_time, _TIME_ENOUGH))
    try:
        return _confirmed(way)
    finally:
        way.in_time()


def _confirmed(way: Way) -> Limit:
    why = "nothing was tried"
    while way.go_on():
        if way.reached.why == "rest":
            return _resting(way)
        check_time("looking for the limit")
        found = candidate(way.march.geometry, way.reached.state)
        if isinstance(found, str):
            why = found
            continue
        if isinstance(found, Lost):
            grown = _grown(way.run)[0]
            if grown >= _QUIET**2:
                return _lost(way, found, grown)
            why = f"neurons slide on points that are lost, and |theta|^2 grew only by {grown:.3g} since the last event"
            continue
        evidence = _evidence(way.run, found)
        failed = [e for e in evidence if not e.holds]
        if failed:
            why = "; ".join(f"{e.name}: {e.text}" for e in failed)
            continue
        future = _future(way.march.geometry, way.reached.state, found)
        if future.doubt:
            why = f"vanishing: {future.doubt}"
            continue
        if future.arrival == np.inf:
            return _accept(way, found, (*evidence, _vanishing(future)))
        why = way.leave(found, future)
    raise Undecided(
        f"no limit could be confirmed {way.in_time().standing()}: {why}; what was found so far is kept, and "
        + ("a larger max_log_time goes on." if way.last < _TIME_ENOUGH else "another draw may settle sooner."),
        way.recorder.result(),
    )


class Way:
    """How far a search has come, and where it has been.

    As long as it matters when things happen the flow is followed in time. Beyond, the direction of the network moves in
    the clock log R, R = |theta|^2, and in the same way whatever R is, up to terms of order 1/R: so the network is made
    smaller whenever it has grown large, all neurons by the same factor, and the time is no longer known.
    """

    def __init__(self, march: March, reached: Reached, last: float) -> None:
        self.march, self.reached, self.last = march, reached, last
        self.recorder = march.recorder
        self.plateaus: list[Plateau] = []
        self.skipped = 0.0  # by how much log R is larger than it looks
        self.rounds = 0

    @property
    def run(self) -> Trajectory:
        """The flow since the time is no longer known, or all of it."""
        return self.march.recorder.result()

    def go_on(self) -> bool:
        """Follow the flow to the next stage; False if there is none."""
        ahead = self._ahead()
        if not ahead:
            if self.last < _TIME_ENOUGH or self.rounds >= _ROUNDS:
                return False
            self._shrink()
            ahead = self._ahead()
        self.march.goal = Goal(min(ahead), -np.inf, np.inf)
        self.reached = self.march.resume(self.reached.state, self.reached.log_time)
        return True

    def in_time(self) -> March:
        """Give the march back the flow as far as it was followed in time."""
        if self.march.recorder is not self.recorder:
            self.march.recorder = self.recorder
            self.march.forget()
        return self.march

    def _ahead(self) -> list[float]:
        return [s for s in (*_STAGES, self.last) if self.reached.log_time * (1 + 1e-9) < s <= self.last]

    def leave(self, found: Candidate, future: Future) -> str:
        """Note a plateau, and go to its end if that is out of reach in time; return what it is in words."""
        run = self.run
        log_R = 2 * float(run.log_norm[-1])
        ends = log_R + self.skipped + 2 * future.arrival
        gaps = 1 - run.normalized_margin() / found.margin
        near = int(np.argmax(np.minimum.accumulate((np.abs(gaps) <= _CLOSE)[::-1])[::-1]))
        begins = 2 * float(run.log_norm[near]) + self.skipped
        if self.plateaus and abs(self.plateaus[-1].margin / found.margin - 1) < 1e-9:
            begins = self.plateaus.pop().log_r_from
        self.plateaus.append(Plateau(found.margin, found.network, begins, ends, future.first, future.point))
        # log t is about R times the margin.
        if self.last >= _TIME_ENOUGH and log_R + 2 * future.arrival + np.log(found.margin) > np.log(self.last):
            self._jump(future)
        return f"it rests at a plateau of margin {found.margin:.6g} until log R = {ends:.6g}"

    def _jump(self, future: Future) -> None:
        s = max(future.arrival - (BEFORE if future.outgrows else 0.0), 0.0)
        self._restart(future.state(self.reached.state, s), self.reached.log_time)
        self.skipped += 2 * s

    def _shrink(self) -> None:
        """Make the network smaller, all neurons by the same factor."""
        frozen, state = self.march.geometry.frozen, self.reached.state
        by = float(np.log(self.last / _STAGES[1])) * (1.0 if frozen else 0.5)
        log_a = state.log_a if frozen else state.log_a - by
        self._restart(replace(state, log_w=state.log_w - by, log_a=log_a), _STAGES[1])
        self.skipped += 2 * by
        self.rounds += 1

    def _restart(self, state: State, log_time: float) -> None:
        geometry = self.march.geometry
        recorder = Recorder(geometry.problem, self.recorder.settings)
        taken, _ = take(geometry, state.network(geometry.slope))
        recorder.add(log_time, taken, pattern_of(geometry, taken).margins(taken.weighted()))
        self.march.recorder = recorder
        self.reached = Reached(taken, log_time, "late")


def _future(geometry: Geometry, state: State, found: Candidate) -> Future:
    """Follow the neurons that the limit leaves out."""
    if geometry.frozen:  # every neuron that feels a sample moves at the speed of its output weight: none vanishes
        return Future(np.empty(0, dtype=np.intp), np.empty(0), np.inf, -1, -1, "", None)
    there = (np.isfinite(state.log_w) | np.isfinite(state.log_a)) & (state.sign != 0)
    there[found.living] = False
    lost = np.setdiff1d(np.arange(geometry.problem.data.n), found.live)
    return follow(geometry, state, found.multipliers, found.network, np.flatnonzero(there), lost)


def _vanishing(future: Future) -> Evidence:
    text = "every neuron carries the network"
    if future.neurons.size:
        who = count(future.neurons.size, "neuron vanishes", "neurons vanish")
        rate = (future.fastest - 1) / 2
        text = f"{who} for ever, whatever hyperplanes come, the slowest like R^{rate:.3g}"
    return Evidence("vanishing", future.fastest, True, text)


def _evidence(run: Trajectory, found: Candidate) -> tuple[Evidence, ...]:
    grown, at, log_R = _grown(run, found.living)
    k = found.certificate
    residual = max(k.residual, k.balance or 0.0)
    data = run.problem.data.subset(found.live) if found.live.size < run.problem.data.n else run.problem.data
    gap, before, exponent = _approach(run, data, found.margin, log_R, at)
    share = max((abs(g.share - g.flow_share) for g in found.groups), default=0.0)
    touching = count(found.walls, "group touches", "groups touch") if found.walls else "no group touches"
    return (
        Evidence(
            "quiet",
            grown,
            grown >= _QUIET,
            f"|theta|^2 grew by {grown:.3g} since the data were fitted and the last event",
        ),
        Evidence("KKT", residual, residual <= _KKT, f"residual {residual:.1e} in the sense of Clarke"),
        Evidence(
            "inside",
            float(found.walls),
            found.walls == 0,
            f"{touching} a wall of its pattern",
        ),
        Evidence(
            "approach",
            gap,
            -1e-9 <= gap <= _CLOSE and (gap < 1e-8 or gap < 0.9 * before),
            f"margin of the flow is {gap:.1e} below, closing like R^{-exponent:.2f}",
        ),
        Evidence(
            "shares",
            share,
            share <= 0.2,
            f"shares of the groups differ by {share:.1e} from the flow's"
            + ("" if found.unique else "; the margin leaves them open, and they are the nearest to the flow's"),
        ),
    )


def _grown(run: Trajectory, neurons: Index | None = None) -> tuple[float, int, Array]:
    """By how much R grew since the data were fitted and the last event of some neurons, the record there, and log R."""
    log_R = run.log_norm * (1 if run.problem.train == "first" else 2)
    events = run.events if neurons is None else run.events[np.isin(run.events["neuron"], neurons)]
    last = events["log_time"].max(initial=-np.inf)
    fitted = [phase.log_start for phase in run.phases if phase.name == "late"]
    at = int(np.searchsorted(run.log_time, max([last, *fitted[-1:]]), side="right")) - 1
    return (float(np.exp(min(log_R[-1] - log_R[max(at, 0)], 700.0))) if fitted else 1.0), at, log_R


def _lost(way: Way, found: Lost, grown: float) -> Limit:
    """Answer for a stall in which neurons slide on a lost point: exact floor, direction of the flow."""
    problem, run = way.march.geometry.problem, way.recorder.result()
    floor = float(problem.weight * found.points.size * problem.loss.value(0.0))
    net = way.reached.state.network(problem.net.slope).normalized(problem.train)
    rest = problem.data.subset(np.setdiff1d(np.arange(problem.data.n), found.points))
    margin = net.normalized_margin(rest, problem.train)
    stalled = _stalled(found.points, problem.data.n, floor)
    reason = f"{stalled}; on the others the flow has margin {margin:.6g}"
    evidence = (
        Evidence("quiet", grown, True, f"|theta|^2 grew by {grown:.3g} since the data were fitted and the last event"),
        Evidence("exact", np.nan, None, "a group slides on a lost point; the direction is the flow's, not solved for"),
    )
    return Limit(problem, "stall", net, margin, (), None, evidence, floor, reason, run, plateaus=tuple(way.plateaus))


def _stalled(points: npt.NDArray[np.intp], n: int, floor: float) -> str:
    verb = "is" if points.size == 1 else "are"
    return (
        f"{points.size} of {count(n, 'point')} ({named(points)}) {verb} felt by no neuron any more: the loss tends "
        f"to {floor:.6g} and no margin limit exists"
    )


def _approach(run: Trajectory, data: object, margin: float, log_R: Array, at: int) -> tuple[float, float, float]:
    """Relative gap of the margin now, a tenth of R ago, and the power with which it closes."""
    train = run.problem.train
    earlier = max(int(np.searchsorted(log_R, log_R[-1] - np.log(10.0))), at + 1)
    gaps = [1 - run.network(k).normalized_margin(data, train) / margin for k in (min(earlier, len(run) - 1), -1)]  # type: ignore[arg-type]
    step = log_R[-1] - log_R[min(earlier, len(run) - 1)]
    exponent = float(np.log(abs(gaps[0]) / max(abs(gaps[1]), 1e-300)) / step) if step > 0 and gaps[0] else 0.0
    return float(gaps[1]), float(gaps[0]), exponent


def _accept(way: Way, found: Candidate, evidence: tuple[Evidence, ...]) -> Limit:
    problem, run = way.march.geometry.problem, way.recorder.result()
    n, lost = problem.data.n, problem.data.n - found.live.size
    living = [g for g in found.groups if g.share > 0]
    if lost == 0:
        reason = f"{count(len(living), 'group')} of neurons, normalised margin {found.margin:.10g}"
        return Limit(
            problem,
            "margin",
            found.network,
            found.margin,
            found.groups,
            found.certificate,
            evidence,
            0.0,
            reason,
            run,
            plateaus=tuple(way.plateaus),
        )
    missing = np.setdiff1d(np.arange(n), found.live)
    floor = float(problem.weight * lost * problem.loss.value(0.0))
    beyond = max((float((g.direction @ problem.data.X[missing].T).max()) for g in living), default=-np.inf)
    evidence += (
        Evidence(
            "lost",
            beyond,
            beyond < 0,
            f"on the {count(lost, 'lost point')} every living group is negative, at most {beyond:.2e}",
        ),
    )
    if beyond >= 0:
        raise Undecided(
            f"{count(lost, 'point is', 'points are')} felt by no neuron now, but the limit of the others would "
            f"activate one: {evidence[-1].text}.",
            run,
        )
    reason = f"{_stalled(missing, n, floor)}; on the other points the margin tends to {found.margin:.10g}"
    return Limit(
        problem,
        "stall",
        found.network,
        found.margin,
        found.groups,
        found.certificate,
        evidence,
        floor,
        reason,
        run,
        plateaus=tuple(way.plateaus),
    )


def _resting(way: Way) -> Limit:
    problem, run, reached = way.march.geometry.problem, way.recorder.result(), way.reached
    net = reached.state.network(problem.net.slope)
    loss = float(np.exp(problem.log_loss(net)))
    wrong = np.flatnonzero(net.margins(problem.data) <= 0)
    reason = (
        f"the flow comes to rest at loss {loss:.6g} with {wrong.size} of {count(problem.data.n, 'point')}"
        f"{f' ({named(wrong)})' if wrong.size else ''} not classified: the parameters stay bounded and there is no "
        "limit at infinity"
    )
    evidence = (
        Evidence("rest", reached.log_time, True, f"nothing moves any more from log t = {reached.log_time:.4g} on"),
    )
    return Limit(
        problem, "rest", net, float("nan"), (), None, evidence, loss, reason, run, plateaus=tuple(way.plateaus)
    )


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
    reaches = bool(short <= 1e-9 * best.upper) if best.exact else None
    item = Evidence("optimum", best.lower, True, text + (", attained" if reaches else f", {short:.3g} above the limit"))
    return replace(found, optimum=best, evidence=(*found.evidence, item))
