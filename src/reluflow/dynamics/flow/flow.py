"""Gradient flow through every kink, from any scale to any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import takes_data
from ...problem import Interrupted, Network, OutOfTime, Problem, ProblemError, Undecided
from ...problem import time_limit as within
from ...problem.checks import is_number
from ..trajectory import Trajectory, knows_between
from .blind import COARSE
from .events import root
from .field import Geometry
from .march import Care, March, Reached
from .phases import Goal
from .record import Recorder
from .state import State, take
from .units import in_units_of, rescaled_net, rescaled_problem, rescaled_run, unit_of

if TYPE_CHECKING:
    from ..early.alignment import Alignment

_LAST_EARLY = 0.3  # hand over from the exact early phase when max |q| is this many times rtol: forces are wrong by less


#: Shortest early phase worth its price, in e-folds of the neurons: a crossing costs a tenth of one in the coupled phase
#: (2 against 20 microseconds at n = 500, d = 20), but all of them are followed to the end.
_FOLDS = 0.5
_LOOKS = 20  # how often an early phase is looked at for the moment at which points are classified
_COARSEST, _FINEST = 0.03, 1e-12  # largest and smallest tolerance
_UNTOLD = np.log(1e-14)  # log of a distance from a hyperplane that doubles do not tell
_STEEPEST = 300.0  # log of the largest force that steps can be chosen for


@dataclass(frozen=True)
class Until:
    """When to stop: at the first of the conditions given.

    Parameters
    ----------
    time, log_time : float, optional
        Time in the clock of the problem, or its logarithm (up to 10^8 or so; -inf is the start, like time 0).
    loss : float, optional
        Training loss; ``log_loss`` for losses below the smallest double.
    log_loss : float, optional
    margin : float, optional
        Smallest margin ``min_i q_i``, not normalised.
    aligned : bool
        The end of the early phase: the last event of the flow in the limit of small scale, or when the network is no
        longer small.

    Examples
    --------
    >>> Until(log_time=1e6, loss=1e-300)
    Until(log_time=1000000.0, loss=1e-300)
    """

    time: float | None = None
    log_time: float | None = None
    loss: float | None = None
    log_loss: float | None = None
    margin: float | None = None
    aligned: bool = False

    def __post_init__(self) -> None:
        for name in ("time", "log_time", "loss", "log_loss", "margin"):
            value = getattr(self, name)
            start = name == "log_time" and value == -np.inf
            if value is not None and not start and (not is_number(value) or not np.isfinite(value)):
                raise ProblemError(f"until {name} = {value!r}: a finite number is needed.")
        if self.time is not None and self.time < 0:
            raise ProblemError(f"until time = {self.time!r}: the flow begins at 0; log_time takes any number.")
        if self.loss is not None and self.loss <= 0:
            raise ProblemError(f"until loss = {self.loss!r}: a positive number is needed; log_loss takes any.")
        if not isinstance(self.aligned, bool):
            raise ProblemError(f"until aligned = {self.aligned!r}: True or False is needed.")
        if not self._given():
            raise ProblemError(
                "until says nothing: give at least one of time, log_time, loss, log_loss, margin, aligned=True."
            )

    def __repr__(self) -> str:
        return f"Until({', '.join(f'{name}={value!r}' for name, value in self._given().items())})"

    def _given(self) -> dict[str, Any]:
        """Conditions that were given: 0 is one, None and False are none."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in found.items() if value is not None and value is not False}

    @property
    def goal(self) -> Goal:
        """The same in logarithms."""
        with np.errstate(divide="ignore"):
            log_time = None if self.time is None else float(np.log(self.time))
        times = [t for t in (self.log_time, log_time) if t is not None]
        losses = [v for v in (self.log_loss, None if self.loss is None else float(np.log(self.loss))) if v is not None]
        return Goal(
            float(min(times)) if times else np.inf,
            float(max(losses)) if losses else -np.inf,
            np.inf if self.margin is None else float(self.margin),
        )


@takes_data()
def flow(
    problem: Problem,
    until: Until | Mapping[str, Any] | None = None,
    *,
    rtol: float = 1e-9,
    max_steps: int = 100_000,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> Trajectory:
    r"""Integrate the gradient flow of a problem.

    .. math:: w_j' = a_j \sum_i r g_i h_{ji} y_i x_i, \qquad a_j' = \sum_i r g_i y_i \phi(w_j \cdot x_i), \qquad
              g_i = -\ell'(q_i),

    with slopes :math:`h_{ji}` of the activation. Where :math:`w_j \cdot x_i = 0` the solution in the sense of Clarke
    is followed: the neuron crosses, or it slides along hyperplanes whose samples push from both sides, with the
    velocity of least norm. Places where it could go on in several ways are listed among the events (``ridge``); there
    the regular solution is followed: a neuron that arrives at a hyperplane crosses it, and one that starts there, or is
    let go because its output weight changes sign, goes to the inactive side if it can.

    Three phases are chosen automatically and recorded in the result:

    * *early*: while the network is small, `align` is exact, at any scale;
    * *coupled*: explicit steps of variable order in the forces; each neuron follows its own arcs under them, through
      all its events, so that crossings shorten no step;
    * *late*: implicit steps in a logarithmic clock, so that log t = 10^6 takes no longer than t = 10.

    Parameters
    ----------
    problem : Problem
        Or data and how to draw a network, ``flow(X, y, until, width=50)``: see `as_problem`.
    until : Until or mapping
        When to stop, for example ``{"log_time": 1e6}`` or ``{"loss": 1e-3, "time": 1e4}``: at the first of them. If
        one is met at the start, that is the only record. Default: log t = 100.
    rtol : float
        Accuracy of directions, log-norms and log t, between 1e-12 and 0.03. From 1e-3 on events are not located until
        the data are fitted (``settings`` says so), which is faster by far and good for a first look.
    max_steps : int
        Most steps of integration in all.
    time_limit : float, optional
        Most seconds to spend.
    progress : bool, optional
        Show a progress bar on stderr; default: if that is a terminal.

    Returns
    -------
    Trajectory

    Raises
    ------
    BudgetExceeded, Undecided
        The steps or the time were used up (`OutOfTime`), Ctrl-C was pressed (`Interrupted`), or accuracy could not be
        met; or the flow came to rest before a condition other than a time was reached. ``partial`` holds the
        trajectory so far.

    Examples
    --------
    >>> from reluflow import Dataset, Network, Problem
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> net = Network.balanced([[1.0, 0.2], [-1.0, 0.4], [-0.3, -1.0]], [1, 1, -1], log_scale=-3000)
    >>> run = flow(Problem(data, net), {"log_time": 1e6})
    >>> [phase.name for phase in run.phases]
    ['early', 'coupled', 'late']
    >>> round(float(run.normalized_margin()[-1]), 5)     # 1 / (2 (|w+| + |w-|)) = 0.58410
    0.5841
    """
    stop = _until(until)
    check_effort(rtol, max_steps, _COARSEST)
    settings = {"rtol": float(rtol), "until": repr(stop)}
    if rtol >= COARSE:
        settings["events"] = "not located before the data are fitted: rtol is 1e-3 or more"
    with within(time_limit):
        return _run(problem, stop, float(rtol), int(max_steps), progress, settings)


def check_effort(rtol: Any, max_steps: Any, coarsest: float) -> None:
    """Refuse tolerances and budgets that make no sense."""
    if not is_number(rtol) or not _FINEST <= rtol <= coarsest:
        raise ProblemError(f"rtol = {rtol!r} must lie between {_FINEST:g} and {coarsest:g}.")
    if isinstance(max_steps, bool) or not isinstance(max_steps, (int, np.integer)) or max_steps < 1:
        raise ProblemError(f"max_steps must be a positive integer, not {max_steps!r}.")


def _until(until: Any) -> Until:
    if until is None:
        return Until(log_time=100.0)
    if isinstance(until, Until):
        return until
    known = [f.name for f in fields(Until)]
    if not isinstance(until, Mapping):
        raise ProblemError(f"until = {until!r}: give a mapping such as {{'log_time': 1e6}} with {', '.join(known)}.")
    unknown = [str(k) for k in until if k not in known]
    if unknown:
        raise ProblemError(f"until does not know {unknown[0]!r}; it knows {', '.join(known)}.")
    return Until(**until)


def _run(
    problem: Problem, stop: Until, rtol: float, max_steps: int, progress: bool | None, settings: dict[str, Any]
) -> Trajectory:
    from .progress import bar

    log_s, aim = unit_of(problem), stop.goal.log_time
    geometry, goal = Geometry(rescaled_problem(problem, log_s)), stop.goal._replace(log_time=aim + 2 * log_s)
    recorder = Recorder(geometry.problem, settings)
    with in_units_of(problem, log_s, aim), bar(goal.log_time, progress) as tell:
        march = March(geometry, goal, rtol, max_steps, recorder, tell, blind=rtol >= COARSE)
        with kept(march):
            state, log_time, done = begin(march, stop)
            reached = march.arrive(Reached(state, log_time, "done")) if done else march.resume(state, log_time)
    found = rescaled_run(recorder.result(), problem, -log_s, aim)
    if reached.why == "rest" and not np.isfinite(goal.log_time):
        raise Undecided(
            f"the flow comes to rest at log loss {recorder.last.log_loss:.6g} and smallest margin "
            f"{recorder.margin:.6g}: {stop!r} is never reached; what was found so far is kept, and a goal in time "
            "can be reached.",
            found,
        )
    return found


@contextmanager
def kept(march: March) -> Iterator[None]:
    """Let whatever ends a march early leave with the flow so far: Ctrl-C, and the early phase too."""
    try:
        yield
    except KeyboardInterrupt:
        if not march.recorder.records:
            raise
        raise Interrupted(f"interrupted {march.standing()}; what was found so far is kept.", march.partial()) from None
    except OutOfTime as error:
        if isinstance(error.partial, Trajectory) or not march.recorder.records:
            raise
        what, _, rest = str(error).partition(";")
        raise OutOfTime(f"{what}, {march.standing()};{rest}", march.partial()) from None
    except Undecided as error:
        if not isinstance(error.partial, Trajectory):
            error.partial = march.partial()
        raise


def begin(march: March, stop: Until, alignment: Alignment | None = None) -> tuple[State, float, bool]:
    """Follow the exact early phase as long as it is good; its end, the log time of that, and whether all is done.

    ``alignment`` is that phase where it is known already.
    """
    from ..early.alignment import align
    from ..early.validity import valid_until

    problem, recorder, geometry = march.geometry.problem, march.recorder, march.geometry
    steep = float(problem.loss.log_force(problem.net.margins(problem.data)).max())
    if steep > _STEEPEST:
        raise ProblemError(
            f"the start is so wrong that a sample pulls with a force of e^{steep:.6g} ({problem.loss.name} loss): no "
            "double holds what happens next. Start smaller, or use the logistic loss."
        )
    start, doubts = take(geometry, problem.net)
    recorder.add(-np.inf, start, problem.net.margins(problem.data))
    tol = _LAST_EARLY * march.rtol
    mantissa, log_factor = problem.net.scaled_outputs(problem.data.X)
    with np.errstate(divide="ignore"):
        folds = 0.5 * float(np.log(tol) - np.log(np.abs(mantissa).max()) - log_factor)
    for j, i in doubts:
        recorder.event(-np.inf, j, i, "ridge")
    if march.goal.log_time == -np.inf or _gap(problem, problem.net, march.goal) <= 0:
        return start, -np.inf, True
    if folds < _FOLDS and stop.aligned:  # it is not small
        return start, -np.inf, True
    if folds < _FOLDS or (geometry.frozen and not np.isfinite(start.log_w).all()):
        return start, -np.inf, False
    early = align(problem) if alignment is None else alignment
    for j in set(np.flatnonzero(early.nonunique).tolist()) - {j for j, _ in doubts}:
        recorder.event(-np.inf, j, -1, "ridge")  # somewhere in the early phase
    t = valid_until(early, tol, rough=True)
    if not stop.aligned and 0 < t < np.inf:
        t = _careful(march, early, tol, t)
    done = stays = False
    if stop.aligned and float(early.last_event.max()) <= t:
        t, done = float(early.last_event.max()), True
    log_end = float(np.log(t)) if t > 0 else -np.inf
    if t > 0 and log_end >= march.goal.log_time and march.goal.log_time < 700:
        log_end, done = march.goal.log_time, True
        t = float(np.exp(log_end))
    if 0 < t < np.inf and (met := _met(early, march.goal, t, tol)) < np.inf:
        t, log_end, done = met, float(np.log(met)), True
    if not np.isfinite(t):  # nothing ever grows
        t, stays = float(early.last_event.max()), True
        log_end = float(np.log(t)) if t > 0 else -np.inf
    recorder.early(early, t, log_end)
    state, _ = take(geometry, early.network(t), early._paths.lying(t))
    over = (done or stop.aligned) and not stays
    if not over and geometry.slope < 1.0:
        recorder.hand_over(early, state, log_end)
    return state, log_end, over


def _careful(march: March, early: Alignment, tol: float, t: float) -> float:
    """Hand over before t where a neuron is about to pass a hyperplane very slowly, and let it be followed finely."""
    from ..early.validity import near, passing, poised

    pairs = poised(early)
    if not pairs[0].size:
        return t
    begin, meet = passing(early, pairs, tol, t), passing(early, pairs, 1.0, t)
    if begin == 0.0 or near(early, pairs, begin) <= _UNTOLD:
        return t
    distance = float(np.exp(near(early, pairs, meet))) if meet < t else tol
    march.care = Care(*pairs, rtol=max(march.rtol * distance, _FINEST))
    return begin


def _gap(problem: Problem, net: Network, goal: Goal) -> float:
    """Return what is missing to a loss or a margin asked for, whichever is nearer; not positive where it is met."""
    mantissa, log_factor = net.scaled_outputs(problem.data.X)
    least = float((problem.data.y * mantissa).min())
    with np.errstate(over="ignore", under="ignore"):
        # Below the smallest double the sign of a margin is still known.
        margin = -least if goal.margin == 0 else goal.margin - least * float(np.exp(log_factor))
    if goal.log_loss == -np.inf:
        return margin
    return min(problem.log_loss(net) - goal.log_loss, margin)


def _met(early: Alignment, goal: Goal, t: float, tol: float) -> float:
    """First time before t, as far as looks tell, at which the early phase reaches a loss or a margin; inf if none.

    No margin is larger than ``tol`` in it, and the loss falls, so that most need not be looked for.
    """
    if goal.log_loss == -np.inf and goal.margin == np.inf:
        return np.inf
    problem = early.problem

    def gap(s: float) -> float:
        return _gap(problem, early.network(s), goal)

    if goal.margin > tol and gap(t) > 0:
        return np.inf
    before = 0.0
    for now in np.union1d(np.linspace(0.0, t, _LOOKS + 1), early.last_event[early.last_event < t])[1:].tolist():
        if gap(now) <= 0:
            return root(gap, before, now)
        before = now
    return np.inf


@knows_between("flow")
def between(run: Trajectory, record: int, log_time: float) -> Network:
    """Network of a flow at a time after one of its records: evaluated, or integrated anew from there."""
    if log_s := float(run.settings.get("log_unit", 0.0)):
        same = rescaled_run(run, rescaled_problem(run.problem, log_s), log_s)
        return rescaled_net(between(same, record, log_time + 2 * log_s), -log_s)
    problem = run.problem
    rtol = float(run.settings.get("rtol", 1e-9))
    early = [phase for phase in run.phases if phase.name == "early"]
    if early and log_time <= early[0].log_end:
        from ..early.alignment import align

        return (run.early or align(problem)).network(float(np.exp(log_time)))
    if run.dense is not None and (net := run.dense.at(log_time)) is not None:
        return net
    geometry = Geometry(problem)
    recorder = Recorder(problem, {})
    goal = Goal(log_time, -np.inf, np.inf)
    state, _ = take(geometry, run.network(record))
    march = March(geometry, goal, rtol, 10**6, recorder, lambda _: None, blind=rtol >= COARSE)
    march.resume(state, float(run.log_time[record]))
    return recorder.result().final
