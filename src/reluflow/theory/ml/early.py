"""The early phase (Min, Mallada and Vidal): norms stay small, directions turn, active sets change one way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, inf, log, sqrt

import numpy as np

from ...dynamics import Measures, Trajectory
from ...dynamics.accuracy import TOO_SMALL, rounding
from ...problem.types import Array
from ...problem.words import count
from ...sectors import sector
from ..base import Claim, Condition, Groups, Observation, Prediction, Role, log_of, when
from ..conditions import balanced, both_layers, certified, flow_conditions, not_on_ray, strictly_orthogonal
from ..facts import Facts
from .numbers import Split, best_split, guaranteed, log_certificate, small_start, small_until, stored_split

_DOCTORED = "tests/theory/test_doctored.py::test_doctored_runs_are_flagged"


def chosen_split(facts: Facts) -> Split:
    """Return the split of the start that was given if ML-L3 accepts it, else the best one."""
    split = stored_split(facts)
    value, allowed = small_start(facts, split)
    return split if value <= allowed and small_until(facts, split) > 0 else best_split(facts)


def _until(log_time: Array, end: float) -> int:
    """Return the number of records up to a time."""
    return int(np.searchsorted(log_time, log_of(end), side="right"))


class SmallNorms(Claim):
    """ML-L3."""

    id = "ML-L3"
    paper = "ML"
    statement = "From eps W_0 with eps <= 1/(4 sqrt(p) X_max W_max^2), norms and outputs stay small until T. Any data."
    falsifier = "a norm or an output above its bound before T."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        value, allowed = small_start(facts, stored_split(facts))
        name = "start small for its split into eps and W_0"
        why = f"log eps = {value:.6g}, allowed {allowed:.6g}; another split of the same start may do."
        shown = Condition(name, value <= allowed, "numerical", value, allowed, why=why, decides=False)
        time = small_until(facts, best_split(facts))
        why = f"with the best split the bounds hold until t = {time:.6g}."
        return (
            both_layers(facts),
            balanced(facts),
            shown,
            Condition("start small", time > 0, "numerical", time, 0.0, why=why),
        )

    def bounds(self, facts: Facts) -> dict[str, float]:
        split, best = chosen_split(facts), best_split(facts)
        log_w, log_f = small_bounds(facts, split)
        return {
            "T": small_until(facts, split),
            "T (best split)": small_until(facts, best),
            "log_eps": split.log_eps,
            "log_largest_eps": small_start(facts, split)[1],
            "log_norm_squared (as printed)": log_w + log(2),
            "log_norm_squared (sharp)": log_w,
            "log_output (as printed)": log_f + log(2),
            "log_output (sharp)": log_f,
        }

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, split = seen.run, chosen_split(facts)
        log_w, log_f = small_bounds(facts, split)
        end = _until(run.log_time, small_until(facts, split))
        if end == 0:  # T < 0: it promises nothing
            return ()
        found = []
        for name, values, bound in (
            ("log of the largest |w_j|^2", 2 * run.log_norms[:end].max(axis=1), log_w),
            ("log of the largest |f(x_i)|", seen.log_output[:end], log_f),
        ):
            k = int(np.argmax(values))
            text = f"{name} until T: {values[k]:.6g}, bound {bound:.6g}."
            kept = bool(values[k] <= bound + 2 * seen.error.sizes + rounding(bound))
            found.append(self.judged(seen, kept, text, float(values[k]), bound, k))
        return tuple(found)


def small_bounds(facts: Facts, split: Split) -> tuple[float, float]:
    """Return logs of the bounds on ``|w_j|^2`` and ``|f|`` until T, without the factor 2 of the print (ML-E4)."""
    half = log(facts.net.p) / 2
    both = split.log_eps + 2 * split.log_w_max
    return both - half, both + half + log(facts.x_max)


class DirectionError(Claim):
    """ML-L4."""

    id = "ML-L4"
    paper = "ML"
    statement = (
        "While max|f| <= 1 each direction follows the zero-scale flow up to a speed of 2 n X_max max|f|, times r g(0)."
    )
    falsifier = "a step in which a direction strays further from the exact arc than that allows."
    test = _DOCTORED
    also = ("ML-L10",)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return both_layers(facts), balanced(facts)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        return _arc_observation(self, facts, seen, inf, None)


class FollowsEarlyFlow(Claim):
    """ML-L1."""

    id = "ML-L1"
    paper = "ML"
    statement = "Until T of ML-L3 that error of the speed is at most 4 eps n sqrt(p) X_max^2 W_max^2 (sharp: half)."
    falsifier = "a step before T in which a direction strays further than that allows."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return SmallNorms().conditions(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        split = chosen_split(facts)
        printed = log_speed_error(facts, split) + log(2)
        return {
            "T": small_until(facts, split),
            "log_speed_error (as printed)": printed,
            "log_speed_error (sharp)": printed - log(2),
        }

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        split = chosen_split(facts)
        return _arc_observation(self, facts, seen, small_until(facts, split), log_speed_error(facts, split))


def log_speed_error(facts: Facts, split: Split) -> float:
    """Log of the sharp error bound of ML-L1, in the clock of the problem."""
    log_f = small_bounds(facts, split)[1]
    return log(2 * facts.data.n * facts.x_max * facts.speed) + log_f


def _arc_observation(
    claim: Claim, facts: Facts, seen: Measures, until: float, log_error: float | None
) -> tuple[Observation, ...]:
    """Compare each step of each direction with the arc it would follow at zero scale.

    In a fixed sector that arc is known in closed form, and two solutions part at most like e^(A dt), A the force; so
    an error e of the speed moves the end by at most e (e^(A dt) - 1)/A.
    """
    run, longest = seen.run, 0.5 / (float(facts.data.norms.sum()) * facts.speed)
    # Both ends are known to the error of the run, which the flow can enlarge within the step.
    error = 4 * seen.error.steps
    worst, where, steps, told, shown = -inf, None, 0, 0, (0.0, 0.0)
    for k, dt, u, v in _short_steps(facts, seen, until, longest):
        found = _strays(facts, run.log_norms[k], dt, u, v, log_error, seen.error.kink)
        if found is None:
            continue
        gap, allowed = found
        steps += int(np.isfinite(gap).sum())
        excess = np.where(np.isfinite(gap), gap - allowed - error, -inf)
        told += int((np.isfinite(gap) & (allowed > error)).sum())
        # Of steps that say nothing those that nearly do are shown; and a step too far is shown before all.
        excess = np.where((allowed > error) | (excess > 0), excess, excess - 1.0)
        j = int(np.argmax(excess))
        if excess[j] > worst:
            worst, where, shown = float(excess[j]), (k, j), (float(gap[j]), float(allowed[j]))
    if not steps:
        return (claim.seen(None, "no step was short and small enough to compare with the arc."),)
    if worst <= 0 and not told:
        text = f"{steps} steps compared with the arc; how far they may stray, {shown[1]:.3g}, is {TOO_SMALL}."
        return (claim.seen(None, text, *shown, where),)
    text = f"{steps} steps compared with the arc; the tightest strays by {shown[0]:.3g}, allowed {shown[1]:.3g}."
    return (claim.judged(seen, worst <= 0, text, *shown, where),)


def _short_steps(
    facts: Facts, seen: Measures, until: float, longest: float
) -> Iterator[tuple[int, float, Array, Array]]:
    """Record, length, directions before and after of short steps.

    Where records are sparse some are integrated anew, in the part of the run whose outputs are large enough to tell.
    """
    run = seen.run
    end = len(run) if until == inf else _until(run.log_time, until)
    log_steps = seen.log_steps[: end - 1]
    short = np.flatnonzero((log_steps > -30) & (log_steps < log(longest)))
    for k in short.tolist():
        yield k, exp(log_steps[k]), run.directions[k], run.directions[k + 1]
    if run.method != "flow":
        return
    # The bound of |f| after the longest step, as in `_strays`: below 1, and above what the run is known to.
    log_f = log(facts.x_max) + np.logaddexp.reduce(2 * run.log_norms[:end], axis=1) + 3.0
    telling = np.flatnonzero((log_f > log(seen.error.steps) + 3.0) & (log_f <= 0))
    chosen = telling if telling.size else np.arange(0 if short.size else end)
    long_enough = short[log_steps[short] > log(longest / 20)]
    if np.isin(long_enough, telling).any() or not chosen.size:
        return
    for k in np.unique(chosen[np.linspace(0, chosen.size - 1, 4).astype(int)]).tolist():
        time = float(run.time[k]) + longest
        if time < min(until, float(run.time[-1])):
            yield k, time - float(run.time[k]), run.directions[k], run.at(time=time).directions


def _strays(
    facts: Facts, log_norms: Array, dt: float, u: Array, v: Array, log_error: float | None, on: float
) -> tuple[Array, Array] | None:
    """How far each direction ends from its arc (nan if its active set changes), and how far it may."""
    data = facts.data
    top, units = float(data.norms.max()), data.X / data.norms[:, None]
    # |f| <= X_max sum|w_j|^2, which grows at most at rate 2 (1 + 2|f|) sum|x_i| while |f| <= 1
    log_f = log(top) + float(np.logaddexp.reduce(2 * log_norms)) + 6 * float(data.norms.sum()) * facts.speed * dt
    if log_f > 0:
        return None
    error = exp(log_error) if log_error is not None else 2 * data.n * top * facts.speed * exp(log_f)
    before, after = u @ units.T, v @ units.T
    same = ((before > 0) == (after > 0)).all(axis=1) & np.isfinite(log_norms)
    same &= (np.minimum(np.abs(before), np.abs(after)) > on).all(axis=1)
    force = facts.signs[:, None] * facts.speed * (np.where(before > 0, data.y, facts.net.slope * data.y) @ data.X)
    size = np.linalg.norm(force, axis=1)
    same &= size > 0
    gap = np.linalg.norm(_arc(u, force, size, dt) - v, axis=1)
    return np.where(same, gap, np.nan), error * np.expm1(size * dt) / np.where(size > 0, size, 1.0)


def _arc(u: Array, force: Array, size: Array, dt: float) -> Array:
    """Solve u' = P_u c exactly: u(t) is parallel to u + (sinh + (u.c)(cosh - 1)) c with unit c (ALG-EARLY)."""
    unit = force / np.where(size > 0, size, 1.0)[:, None]
    along = np.sum(u * unit, axis=1)
    theta = size * dt
    step = np.sinh(theta) + along * 2 * np.sinh(theta / 2) ** 2
    moved = u + step[:, None] * unit
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))


class Monotone(Claim):
    """ML-MON."""

    id = "ML-MON"
    paper = "ML"
    statement = (
        "Under ML-A1 every live neuron moves strictly the right way across every sample: at most n changes, no slides."
    )
    falsifier = "an activation that moves the wrong way, a neuron with more than n changes, or one that slides."
    test = _DOCTORED
    also = ("ML-E46",)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*flow_conditions(facts), strictly_orthogonal(facts))

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        worst = seen.decrease
        text = f"largest relative step in the wrong direction: {worst.size:.3g}."
        found = [self.judged(seen, worst.size <= 2 * seen.error.sizes, text, worst.size, 0.0, worst[1:])]
        if run.method != "flow":  # no events are recorded
            return tuple(found)
        kinds = run.events["kind"]
        crossing = np.isin(kinds, ("activate", "deactivate"))
        changes = np.bincount(run.events["neuron"][crossing], minlength=run.p) if run.events.size else np.zeros(run.p)
        slides = int((kinds == "slide").sum())
        j = int(np.argmax(changes))
        text = f"at most {count(int(changes[j]), 'change')} of a neuron (n = {facts.data.n}), {count(slides, 'slide')}."
        kept = bool(changes[j] <= facts.data.n and slides == 0)
        found.append(self.judged(seen, kept, text, (int(changes[j]), slides), (facts.data.n, 0), j))
        return tuple(found)


# -- how small is small enough --------------------------------------------------------------------------


def alignment_premises(facts: Facts) -> tuple[Condition, ...]:
    """ReLU, both layers, balanced, ML-A1, ML-A2."""
    return (*flow_conditions(facts), strictly_orthogonal(facts), not_on_ray(facts))


def if_strict(facts: Facts, *conditions: Callable[[Facts], Condition]) -> tuple[Condition, ...]:
    """Evaluate conditions that mean something only for strictly orthogonally separable data; none of them elsewhere."""
    return tuple(condition(facts) for condition in conditions) if strictly_orthogonal(facts).holds else ()


def eps_terms(facts: Facts, split: Split, c: float, time: float) -> tuple[float, float]:
    """Return logs of the two terms of ML-EPS for a constant c and an alignment time (of ML)."""
    k, data, p = facts.constants, facts.data, facts.net.p
    if not (c > 0 and time < inf):
        return -inf, -inf
    first = log(c * sqrt(k.mu) * k.x_min / (4 * sqrt(p) * data.n * k.x_max**2)) - 2 * split.log_w_max
    return first, -log(p) / 2 - 4 * data.n * k.x_max * time


def eps_split(facts: Facts, time: float) -> Split:
    """Return a split of the start that ML-EPS accepts, if there is one: the stored one, or the one with least eps."""
    split = stored_split(facts)
    first, second = eps_terms(facts, split, facts.constants.c, time)
    if split.log_eps <= min(first, second) or first == -inf:
        return split
    # The first term reads |w|^2/eps <= A: the least eps it allows leaves most room in the second.
    m = split.log_eps + split.log_w_max
    log_eps = 2 * m - (first + 2 * split.log_w_max)
    free = Split(log_eps, m - log_eps, split.log_eps + split.log_w_min - log_eps)
    return free if log_eps <= second else split


def eps_condition(facts: Facts, time: float, name: str = "eps small enough (as corrected)") -> Condition:
    """ML-EPS with zeta the smaller of zeta_1 and zeta_2, for an alignment time (of ML)."""
    split = eps_split(facts, time)
    allowed = min(eps_terms(facts, split, facts.constants.c, time))
    holds = bool(split.log_eps <= allowed + rounding(split.log_eps))  # the least eps lies on its bound
    why = f"log eps = {split.log_eps:.6g}, the largest allowed is {allowed:.6g} (log10 {allowed / log(10):.4g})."
    return Condition(name, holds, "numerical", split.log_eps, allowed, why=why)


def eps_for_t_1(facts: Facts) -> Condition:
    """ML-EPS for the alignment time t_1."""
    return eps_condition(facts, facts.constants.t_1)


def eps_for_t_1_sharp(facts: Facts) -> Condition:
    """ML-EPS for the sharper alignment time."""
    return eps_condition(facts, facts.constants.t_1_sharp, "eps small enough for t_1'")


def printed_eps(facts: Facts) -> Condition:
    """ML-EPS with the larger of zeta_1 and zeta_2, as the paper has it (ML-E3); shown, not used."""
    k = facts.constants
    c = min(max(k.zeta_1, k.zeta_2), k.xi)
    time = 16 * log(facts.data.n) / (c * sqrt(k.mu) * k.x_min) if c > 0 else inf
    split = stored_split(facts)
    allowed = min(eps_terms(facts, split, c, time))
    why = f"log eps = {split.log_eps:.6g}, {allowed:.6g} with zeta = max(zeta_1, zeta_2)."
    name = "eps small enough (as printed)"
    return Condition(name, split.log_eps <= allowed, "numerical", split.log_eps, allowed, why=why, decides=False)


def aligned_somehow(facts: Facts) -> Condition:
    """Small enough by ML-EPS with any of its times, or by ML-CERT: then alignment is certain before t_1."""
    k = facts.constants
    parts = [eps_condition(facts, t) for t in (k.t_1, k.t_1_h, k.t_1_sharp)] + [certified(facts)]
    best = max(parts, key=lambda c: c.threshold - c.value)
    why = f"the least demanding certificate: {best.why}"
    return Condition("start certified small", best.holds, "numerical", best.value, best.threshold, why=why)


class SmallEpsilon(Claim):
    """ML-EPS."""

    id = "ML-EPS"
    paper = "ML"
    statement = "For eps below two explicit terms the outputs stay below B until T, and T is not before t_1."
    falsifier = "an output above B before T."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*alignment_premises(facts), *if_strict(facts, printed_eps, eps_for_t_1))

    def bounds(self, facts: Facts) -> dict[str, float]:
        k = facts.constants
        split = eps_split(facts, k.t_1)
        first, second = eps_terms(facts, split, k.c, k.t_1)
        return {
            "log_eps_first": first,
            "log_eps_second": second,
            "log_eps_second (with h)": eps_terms(facts, split, k.c, k.t_1_h)[1],
            "log_eps_second (sharp)": eps_terms(facts, split, k.c, k.t_1_sharp)[1],
            "output_bound": k.output_bound,
            "T": small_until(facts, split),
        }

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        split = eps_split(facts, facts.constants.t_1)
        return (output_observation(self, facts, seen, small_until(facts, split)),)


def output_observation(claim: Claim, facts: Facts, seen: Measures, until: float) -> Observation:
    """Whether max|f| stays below B until a time."""
    run, bound = seen.run, log(facts.constants.output_bound)
    end = max(_until(run.log_time, until), 1)
    k = int(np.argmax(seen.log_output[:end]))
    value = float(seen.log_output[k])
    shown = when(min(log_of(until), float(run.log_time[-1])))
    text = f"log max|f| until {shown}: {value:.6g}, bound {bound:.6g}."
    return claim.judged(seen, value <= bound + 2 * seen.error.sizes, text, value, bound, k)


class Dwell(Claim):
    """ML-DT."""

    id = "ML-DT"
    paper = "ML"
    statement = "Before T a neuron outside its cone keeps its n_a active samples at most 4/(c sqrt(mu) X_min n_a) long."
    falsifier = "a longer stay."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*alignment_premises(facts), *if_strict(facts, aligned_somehow))

    def dwell(self, facts: Facts, active: int) -> float:
        """Longest stay with so many active samples, in the clock of the problem."""
        return facts.constants_in_clock.dwell(active)

    def bounds(self, facts: Facts) -> dict[str, float]:
        counts = range(1, facts.data.n + 1) if facts.data.n <= 8 else (1, facts.data.n)
        return {f"dwell with {active} active": self.dwell(facts, active) for active in counts}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return (self.seen(None, "a discrete run has no exact times of events."),)
        worst, where, stays = 0.0, None, 0
        limit = facts.constants_in_clock.t_1_sharp
        for j in range(run.p):
            for begin, end, active in _stays(facts, run, j):
                if begin >= limit:  # after that the neurons are known to be trapped
                    break
                stays += 1
                ratio = (min(end, limit) - begin) / self.dwell(facts, active)
                if ratio > worst:
                    worst, where = ratio, (j, begin)
        if not stays:
            return (self.seen(True, "every neuron starts in its cone or dead: no stay outside.", 0.0, 1.0),)
        text = f"{stays} stays outside the cones; the longest takes {worst:.3g} of the time allowed."
        return (self.seen(worst <= 1 + 2 * seen.error.steps, text, worst, 1.0, where),)


def _stays(facts: Facts, run: Trajectory, neuron: int) -> list[tuple[float, float, int]]:
    """Begin, end and number of active samples of each stay of a neuron outside its cone, the last up to the end."""
    data, s = facts.data, facts.signs[neuron]
    wanted = s * data.y > 0
    active = sector(data, facts.net.W[neuron]) > 0
    events = run.events[(run.events["neuron"] == neuron) & np.isin(run.events["kind"], ("activate", "deactivate"))]
    found, begin = [], 0.0
    for event in [*events, None]:
        if not active.any() or (active == wanted).all():
            break
        time = float(np.exp(run.log_time[-1] if event is None else event["log_time"]))
        if time > begin:
            found.append((begin, time, int(active.sum())))
        if event is not None:
            active[event["sample"]] = event["kind"] == "activate"
        begin = time
    return found


class SharpDwell(Dwell):
    """ML-DT'."""

    id = "ML-DT'"
    statement = "The same with artanh(sqrt(1 - c)) in place of 1/c: the sharper dwell time."

    def dwell(self, facts: Facts, active: int) -> float:
        return facts.constants_in_clock.dwell_sharp(active)


# -- alignment ----------------------------------------------------------------------------------------------


def trapped_by(claim: Claim, facts: Facts, seen: Measures, due: float) -> tuple[Observation, ...]:
    """Whether every neuron is trapped at a time, and the guaranteed ones in their own cone."""
    run, sure = seen.run, guaranteed(facts)
    log_due = log_of(due)
    done, since = seen.all_trapped, seen.log_trapped
    if since is not None and since <= log_due + seen.error.log_time[done]:
        text = f"every neuron trapped at {when(since)}, allowed is {when(log_due)}."
        first = claim.seen(True, text, since, log_due, done)
    elif run.log_time[-1] < log_due + seen.error.log_time[-1]:
        first = claim.seen(None, f"the run ends before {when(log_due)}.", None, log_due)
    else:
        k = len(run) - 1 if done is None else max(0, done - 1)
        j = int(np.argmin(seen.trapped[k]))
        late = "never" if since is None else f"only at {when(since)}"
        text = f"not every neuron (see {j}) is trapped at {when(log_due)}, when it is due; {late}."
        clear = bool(seen.loose[k].any())
        first = claim.judged(seen, False if clear else None, text, since, log_due, (k, j))
    if done is None:
        return (first,)
    members = seen.members(done)
    lost = np.concatenate([sure.plus[~members[0][sure.plus]], sure.minus[~members[1][sure.minus]]])
    text = f"all {sure.plus.size + sure.minus.size} neurons that must be in their own cone are."
    if lost.size:
        text = f"neuron {lost[0]} had an active sample of its class and is not in its cone."
    return first, claim.judged(seen, lost.size == 0, text, int(lost.size), 0, lost.tolist() or None)


class AlignmentTime(Claim):
    """ML-T1a."""

    id = "ML-T1a"
    paper = "ML"
    statement = "At t_1 = 16 log n/(c sqrt(mu) X_min) every neuron is in the cone of its sign or dead."
    falsifier = "a neuron outside its cone and not dead at t_1, or a guaranteed one that is not in its cone."
    test = _DOCTORED
    role = Role(place=1)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        several = Condition("at least two samples", facts.data.n >= 2, "proved", facts.data.n, 2, why="log n > 0.")
        return (*SmallEpsilon().conditions(facts), several)

    def bounds(self, facts: Facts) -> dict[str, float]:
        k = facts.constants_in_clock
        return {"t_1": k.t_1, "t_1 (with h)": k.t_1_h}

    def prediction(self, facts: Facts) -> Prediction:
        return _alignment_prediction(self, facts, facts.constants_in_clock.t_1)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        return trapped_by(self, facts, seen, facts.constants_in_clock.t_1)


def _alignment_prediction(claim: Claim, facts: Facts, due: float) -> Prediction:
    groups: Groups = facts.groups
    sure = guaranteed(facts)
    text = (
        f"by t = {due:.6g} {count(groups.plus.size, 'neuron is', 'neurons are')} in S+, {groups.minus.size} in S-, "
        f"{groups.dead.size} dead; "
        f"{sure.plus.size + sure.minus.size} of them are known from the signs at the start alone."
    )
    return claim.promise(text, groups=groups)


class SharpAlignment(Claim):
    """ML-T1a'."""

    id = "ML-T1a'"
    paper = "ML"
    statement = "The same at t_1' = 4 h artanh(sqrt(1 - c))/(sqrt(mu) X_min), of order log n log(1/mu)/sqrt(mu)."
    falsifier = "a neuron outside its cone and not dead at t_1'."
    test = _DOCTORED
    role = Role(place=2)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*alignment_premises(facts), *if_strict(facts, eps_for_t_1_sharp))

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"t_1_sharp": facts.constants_in_clock.t_1_sharp, "h": facts.constants.h}

    def prediction(self, facts: Facts) -> Prediction:
        return _alignment_prediction(self, facts, facts.constants_in_clock.t_1_sharp)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        return trapped_by(self, facts, seen, facts.constants_in_clock.t_1_sharp)


class Certificate(Claim):
    """ML-CERT."""

    id = "ML-CERT"
    paper = "ML"
    statement = (
        "If sum|w_j(0)|^2 <= (B/X_max) exp(-2(1 + 2B) t* sum|x_i|), max|f| <= B until t*; all are trapped at t_1'."
    )
    falsifier = "an output above B before t_1', or a neuron not trapped then."
    test = _DOCTORED
    role = Role(place=3)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*alignment_premises(facts), *if_strict(facts, certified))

    def bounds(self, facts: Facts) -> dict[str, float]:
        k = facts.constants
        return {
            "output_bound": k.output_bound,
            "log_total": facts.log_total,
            "log_largest_total": log_certificate(facts, k.t_1_sharp),
            "log_largest_total (with t_1)": log_certificate(facts, k.t_1),
            "t_1_sharp": facts.constants_in_clock.t_1_sharp,
        }

    def prediction(self, facts: Facts) -> Prediction:
        return _alignment_prediction(self, facts, facts.constants_in_clock.t_1_sharp)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        due = facts.constants_in_clock.t_1_sharp
        return (output_observation(self, facts, seen, due), *trapped_by(self, facts, seen, due))


EARLY: tuple[Claim, ...] = (
    SmallNorms(),
    DirectionError(),
    FollowsEarlyFlow(),
    Monotone(),
    Dwell(),
    SharpDwell(),
    SmallEpsilon(),
    AlignmentTime(),
    SharpAlignment(),
    Certificate(),
)
