"""After alignment (Min, Mallada and Vidal): cones that trap, norms that grow, a loss that falls like 1/t, low rank."""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np

from ...dynamics import Measures
from ...dynamics.measures import left
from ...problem.types import Array
from ...problem.words import count
from ..base import Claim, Condition, Observation, Prediction, Role, assume, when
from ..conditions import alive, both_layers, flow_conditions, small_enough, strictly_orthogonal
from ..facts import Facts
from ..pl.numbers import margin_pair
from .early import alignment_premises, chosen_split, eps_for_t_1, if_strict, printed_eps
from .numbers import guaranteed

_DOCTORED = "tests/theory/test_doctored.py::test_doctored_runs_are_flagged"
_UNTRAPPED = "not every neuron is trapped by the end of the run: the statement is silent."


def _trapping_premises(facts: Facts) -> tuple[Condition, ...]:
    return (*flow_conditions(facts), strictly_orthogonal(facts))


class APosteriori(Claim):
    """ML-POSTA."""

    id = "ML-POSTA"
    paper = "ML"
    statement = "Once every neuron is seen in the cone of its sign or dead, all later conclusions hold, at any scale."
    falsifier = "a run in which all neurons are trapped at one time and one is not later."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return _trapping_premises(facts)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, done = seen.run, seen.all_trapped
        if done is None:
            j = int(np.argmin(seen.trapped[-1]))
            text = f"neuron {j} is outside its cone and not dead at {when(run.log_time[-1])}: the theory is silent."
            return (self.seen(None, text, int((~seen.trapped[-1]).sum()), 0, (len(run) - 1, j)),)
        loose = seen.loose[done:].any(axis=1)
        plus, minus = seen.members(done)
        text = (
            f"all trapped at {when(run.log_time[done])} and ever after: {int(plus.sum())} in S+, {int(minus.sum())} in "
            f"S-, {int(seen.dead[done].sum())} dead."
        )
        if loose.any():
            k = done + int(np.argmax(loose))
            j = int(np.argmax(seen.loose[k]))
            text = f"all were trapped at {when(run.log_time[done])}, but neuron {j} is not at {when(run.log_time[k])}."
            return (self.judged(seen, False, text, int(loose.sum()), 0, (k, j)),)
        return (self.seen(True, text, float(run.log_time[done]), None, done),)


class FirstClass(Claim):
    """ML-P1."""

    id = "ML-P1"
    paper = "ML"
    statement = (
        "With m neurons of positive sign drawn symmetrically, some neuron ends in S+ with probability >= 1 - 2^-m."
    )
    falsifier = "draws that fail more often than that."
    test = "tests/theory/ml/test_claims.py::test_probability_of_a_neuron_in_its_cone"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        draw = assume("directions drawn symmetrically", "the network given is one draw; its law is not visible in it.")
        return (*alignment_premises(facts), small_enough(facts), draw)

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {
            "probability_plus": 1 - 2.0 ** -int((facts.signs > 0).sum()),
            "probability_minus": 1 - 2.0 ** -int((facts.signs < 0).sum()),
        }

    def prediction(self, facts: Facts) -> Prediction:
        b, sure = self.bounds(facts), guaranteed(facts)
        text = (
            f"some neuron ends in S+ with probability >= {b['probability_plus']:.6g}, in S- with probability >= "
            f"{b['probability_minus']:.6g}; in this draw at least {sure.plus.size} and {sure.minus.size} do."
        )
        return self.promise(text, probability=min(b.values()))


class Trapping(Claim):
    """ML-L12."""

    id = "ML-L12"
    paper = "ML"
    statement = "S_dead keeps every neuron (regular solutions), S+ those with a_j > 0, S- those with a_j < 0."
    falsifier = "a neuron that leaves its cone, or moves when dead."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        printed = Condition(
            "any solution (as printed)", None, "assumed", why="false: some leave S_dead.", decides=False
        )
        why = "a neuron without active samples is kept at rest."
        regular = Condition("regular solution (as corrected)", True, "proved", why=why)
        return (*_trapping_premises(facts), printed, regular)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        found = []
        for name, inside, outside in (("its cone", seen.home, seen.astray), ("S_dead", seen.dead, seen.felt)):
            gone = left(inside, outside)
            if gone.any():
                k, j = divmod(int(np.argmax(gone)), run.p)
                text = f"neuron {j} left {name} at {when(run.log_time[k + 1])}."
                found.append(self.judged(seen, False, text, int(gone.sum()), 0, (k + 1, j)))
            elif inside.any():
                many = count(int(inside.any(axis=0).sum()), "neuron")
                found.append(self.seen(True, f"{many} entered {name}, none left.", 0, 0))
        still = seen.dead[:-1] & seen.dead[1:]
        with np.errstate(invalid="ignore"):
            moved = np.abs(np.diff(run.directions, axis=0)).max(axis=2) + np.nan_to_num(
                np.abs(np.diff(run.log_norms, axis=0))
            )
        if still.any():
            worst = np.where(still, moved, 0.0)
            k, j = divmod(int(np.argmax(worst)), run.p)
            text = f"dead neurons moved by at most {worst[k, j]:.3g}."
            kept = bool(worst[k, j] <= 2 * seen.error.sizes)
            found.append(self.judged(seen, kept, text, float(worst[k, j]), 0.0, (k + 1, j)))
        return tuple(found) or (self.seen(None, "no neuron was seen in its cone or dead."),)


class NotTooSmall(Claim):
    """ML-L13."""

    id = "ML-L13"
    paper = "ML"
    statement = "When trapped, each group still has exp(-4 n X_max t_1) of its initial sum of |w_j|^2."
    falsifier = "a group that lost more before it was trapped while max|f| <= 1/2."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*alignment_premises(facts), small_enough(facts))

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"log_factor": -4 * facts.data.n * facts.x_max * facts.constants.t_1}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, done = seen.run, seen.all_trapped
        if done is None or seen.log_output[: done + 1].max() > log(0.5):
            return (self.seen(None, "not all neurons were trapped while max|f| <= 1/2."),)
        rate = 4 * facts.data.n * facts.x_max * facts.speed
        allowed = -rate * float(run.time[done])
        found = []
        for name, group in zip(("S+", "S-"), seen.members(done), strict=True):
            if not group.any():
                continue
            sizes = [float(np.logaddexp.reduce(2 * run.log_norms[k, group])) for k in (0, done)]
            change = sizes[1] - sizes[0]
            text = f"log sum of |w_j|^2 of {name} changed by {change:.6g} until trapped, at least {allowed:.6g}."
            slack = 4 * seen.error.sizes - allowed * seen.error.log_time[done]
            found.append(self.judged(seen, change >= allowed - slack, text, change, allowed, done))
        return tuple(found)


class Growing(Claim):
    """ML-L14."""

    id = "ML-L14"
    paper = "ML"
    statement = "After trapping every |w_j| is non-decreasing."
    falsifier = "a trapped neuron that shrinks."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return _trapping_premises(facts)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        inside = seen.home[:-1] & seen.home[1:] & ~seen.dead[1:]
        if not inside.any():
            return (self.seen(None, "no neuron was seen twice in its cone."),)
        with np.errstate(invalid="ignore"):
            fall = np.where(inside, -np.diff(run.log_norms, axis=0), -inf)
        k, j = divmod(int(np.argmax(fall)), run.p)
        text = f"largest decrease of log|w_j| of a trapped neuron in a step: {max(0.0, fall[k, j]):.3g}."
        kept = bool(fall[k, j] <= 2 * seen.error.sizes)
        return (self.judged(seen, kept, text, float(fall[k, j]), 0.0, (k + 1, j)),)


# -- the loss -----------------------------------------------------------------------------------------------


def kappa_squared(facts: Facts) -> float:
    """``inf (g/l)^2`` over q >= 0: 1 for the exponential loss, 1/(2 log 2)^2 for the logistic one (ML-L15)."""
    return 1.0 if facts.loss.name == "exponential" else 1 / (2 * log(2)) ** 2


def _least(seen: Measures, start: int, log_loss: Array, log_rate: float) -> tuple[Array, Array]:
    r"""Log of the lower bound :math:`1/L(t_*) + rate\,(t - t_*)` of 1/L from a record on, and by what it may be off."""
    times, error = seen.run.log_time[start:], seen.error
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = log_rate + np.where(times > times[0], times + np.log(-np.expm1(times[0] - times)), -inf)
    least = np.logaddexp(-log_loss[0], gain)
    return least, error.log_loss[start] + error.log_loss[start:] + _share(gain, least, error.since(start), error.sizes)


def _share(gain: Array, total: Array, time: Array, sizes: float) -> Array:
    """Error of a log total by that of the log gain in it: of the elapsed time, and of a squared norm."""
    with np.errstate(under="ignore", invalid="ignore"):
        share = np.exp(np.minimum(gain - total, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(share > 0, np.minimum(share * (time + 2 * sizes), -np.log1p(-share)), 0.0))


class LinearDecay(Claim):
    """ML-L15."""

    id = "ML-L15"
    paper = "ML"
    statement = "Trapped groups are linear nets: dL/dt <= -kappa^2 |a|^2 gamma^2 L^2 (printed with 1/4 for kappa^2)."
    falsifier = "a step in which 1/L of a class grows by less than kappa^2 |a|^2 gamma^2 dt."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return _trapping_premises(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"kappa_squared (as printed)": 0.25, "kappa_squared (sharp)": kappa_squared(facts)}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, done = seen.run, seen.all_trapped
        if done is None or done + 1 >= len(run):
            return (self.seen(None, _UNTRAPPED),)
        sizes, found = seen.log_group_norms[done:], []
        for column, (name, solution) in enumerate(zip("+-", facts.class_margins, strict=True)):
            if solution is None or not np.isfinite(sizes[0, column]):
                continue
            log_loss = seen.log_class_loss[done:, column]
            gain = log(kappa_squared(facts)) + 2 * log(solution.margin) + sizes[:-1, column] + seen.log_steps[done:]
            total = np.logaddexp(-log_loss[:-1], gain)
            error = seen.error.log_loss[done:-1] + seen.error.log_loss[done + 1 :]
            lack = total + log_loss[1:] - error - _share(gain, total, seen.error.log_steps[done:], seen.error.sizes)
            k = int(np.argmax(lack))
            text = f"class {name}: 1/L grows at least as fast as it must in all {lack.size} steps."
            kept = bool(lack[k] <= 0)
            if not kept:
                text = f"class {name}: at {when(run.log_time[done + k + 1])} log 1/L is short by {lack[k]:.3g}."
            found.append(self.judged(seen, kept, text, float(lack[k]), 0.0, done + k + 1))
        return tuple(found) or (self.seen(None, "no class has neurons."),)


class APosterioriRate(Claim):
    """ML-POST."""

    id = "ML-POST"
    paper = "ML"
    statement = "From any trapped time L_+-(t) <= 1/(1/L_+-(t*) + kappa^2 N_+- gamma_+-^2 (t - t*))."
    falsifier = "a later loss of a class above that."
    test = _DOCTORED
    role = Role(place=6)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return _trapping_premises(facts)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, done = seen.run, seen.all_trapped
        if done is None:
            return (self.seen(None, _UNTRAPPED),)
        found = []
        sizes = seen.log_group_norms[done]
        for column, (name, solution) in enumerate(zip("+-", facts.class_margins, strict=True)):
            if solution is None:
                continue
            log_rate = log(kappa_squared(facts)) + 2 * log(solution.margin) + sizes[column]
            log_loss = seen.log_class_loss[done:, column]
            least, error = _least(seen, done, log_loss, log_rate)
            grown = -log_loss
            lack = least - grown - error
            if not np.isfinite(sizes[column]):  # no neuron: the loss of the class is constant
                lack = np.abs(grown - grown[0]) - error
            k = int(np.argmax(lack))
            kept = bool(lack[k] <= 0)
            text = f"class {name}: log loss {-grown[-1]:.6g} at the end, bound {-least[-1]:.6g}."
            if not kept:
                text = (
                    f"class {name}: log loss {-grown[k]:.6g} at {when(run.log_time[done + k])}, bound {-least[k]:.6g}."
                )
            found.append(self.judged(seen, kept, text, float(-grown[k]), float(-least[k]), done + k))
        return tuple(found)


class InverseTime(Claim):
    """ML-T1b."""

    id = "ML-T1b"
    paper = "ML"
    statement = "After t_2 (every class has max|f| >= 1/4) L(t) <= L(t_2)/(1 + L(t_2) alpha_L (t - t_2))."
    falsifier = "a later loss above that."
    test = _DOCTORED
    role = Role(place=4)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*alignment_premises(facts), small_enough(facts), alive(facts))

    def bounds(self, facts: Facts) -> dict[str, float]:
        k = facts.constants
        return {"alpha_L": (k.mu * k.x_min) ** 2 / (32 * k.x_max)}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, k2 = seen.run, fitted_from(seen)
        if k2 is None:
            return (self.seen(None, "the run does not reach trapped neurons with max|f| >= 1/4 on every class."),)
        least, error = _least(seen, k2, run.log_loss[k2:], log(self.bounds(facts)["alpha_L"]))
        lack = least + run.log_loss[k2:] - error
        k = int(np.argmax(lack))
        text = f"log loss {run.log_loss[-1]:.6g} at the end; below the 1/t bound from {when(run.log_time[k2])} on."
        kept = bool(lack[k] <= 0)
        if not kept:
            at = when(run.log_time[k2 + k])
            text = f"log loss {run.log_loss[k2 + k]:.6g} at {at}, {lack[k]:.3g} above the 1/t bound."
        value = float(run.log_loss[k2 + k])
        return (self.judged(seen, kept, text, value, value - float(lack[k]), k2 + k),)


def fitted_from(seen: Measures) -> int | None:
    """First record with all neurons trapped at which every class present has ``max|f| >= 1/4``.

    From there on the bound holds with the same constant: the norms of the groups are at least 1/(4 X_max) and grow.
    """
    data = seen.data
    if seen.all_trapped is None:
        return None
    ready = np.arange(len(seen.run)) >= seen.all_trapped
    for members in (data.positives, data.negatives):
        if members.size:
            ready &= np.abs(seen.margins[:, members]).max(axis=1) >= 0.25
    return int(np.argmax(ready)) if ready.any() else None


class FittingTime(Claim):
    """ML-T1c."""

    id = "ML-T1c"
    paper = "ML"
    statement = "t_2 is at most t_1 plus explicit terms in log(1/min|w_j(0)|^2), mu, n_+-, X_min (an upper bound only)."
    falsifier = "a class that does not reach max|f| = 1/4 by then."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        small = if_strict(facts, printed_eps, eps_for_t_1)
        return (*alignment_premises(facts), *small, alive(facts))

    def bounds(self, facts: Facts) -> dict[str, float]:
        k, data = facts.constants, facts.data
        start = log(2 / (sqrt(k.mu) * k.x_min)) - 2 * float(facts.log_norms.min()) + 4 * data.n * k.x_max * k.t_1
        found = {}
        for name, members in (("t_2_plus", data.positives), ("t_2_minus", data.negatives)):
            if members.size:
                found[name] = (k.t_1 + (6 + 4 * start) / (sqrt(k.mu) * members.size * k.x_min)) / facts.speed
        return {**found, "t_2": max(found.values())}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, due = seen.run, self.bounds(facts)
        found = []
        for name, members in (("t_2_plus", facts.data.positives), ("t_2_minus", facts.data.negatives)):
            if not members.size:
                continue
            reached = np.flatnonzero(np.abs(seen.margins[:, members]).max(axis=1) >= 0.25)
            log_due = log(due[name])
            if reached.size:
                # Records straddle the crossing: the one before is a lower estimate of the time.
                before = float(run.log_time[max(0, int(reached[0]) - 1)])
                text = f"{name}: max|f| = 1/4 at {when(run.log_time[reached[0]])}, due at {when(log_due)}."
                kept = bool(before <= log_due + seen.error.log_time[reached[0]])
                found.append(self.judged(seen, kept, text, float(run.log_time[reached[0]]), log_due))
            else:
                low = np.abs(seen.margins[:, members]).max(axis=1) < 0.25 - seen.error.margins
                late = bool((low & (run.log_time > log_due + seen.error.log_time)).any())
                text = f"{name}: max|f| < 1/4 until {when(run.log_time[-1])}, due at {when(log_due)}."
                found.append(self.judged(seen, False if late else None, text, None, log_due, len(run) - 1))
        return tuple(found)


class LowRank(Claim):
    """ML-T1d."""

    id = "ML-T1d"
    paper = "ML"
    statement = (
        "After trapping |W|_F^2 <= 2|W|_2^2 + 4 sqrt(p) eps W_max^2; the stable rank ends at or below 2 (not = 2)."
    )
    falsifier = "a later record with |W|_F^2 above 2|W|_2^2 + sum|w_j(t*)|^2."
    test = _DOCTORED
    role = Role(place=5)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*alignment_premises(facts), small_enough(facts))

    def bounds(self, facts: Facts) -> dict[str, float]:
        split, p = chosen_split(facts), facts.net.p
        both = split.log_eps + 2 * split.log_w_max
        return {
            "log_addend (as printed)": log(4) + log(p) / 2 + both,
            "log_addend (sharp)": log(p) / 2 + both,
            "log_addend_per_neuron_of_a_group": log(4) - log(p) / 2 + both,
            "limsup_stable_rank (as printed)": 2.0,
            "limit_stable_rank (as corrected)": margin_pair(facts).stable_rank,
        }

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, done = seen.run, seen.all_trapped
        if done is None:
            return (self.seen(None, _UNTRAPPED),)
        rank = seen.stable_rank[done:]
        log_frobenius = np.logaddexp.reduce(2 * run.log_norms[done:], axis=1)
        with np.errstate(under="ignore"):
            # |W|_F^2 <= 2|W|_2^2 + A, divided by |W|_2^2 = |W|_F^2/rank
            excess = rank - 2 - rank * np.exp(log_frobenius[0] - log_frobenius)
        k = int(np.argmax(excess))
        text = f"stable rank {rank[-1]:.6g} at the end, at most {2 + max(excess[-1], 0.0):.6g} is allowed."
        kept = bool(excess[k] <= 8 * seen.error.sizes)
        if not kept:
            text = f"stable rank {rank[k]:.6g} at {when(run.log_time[done + k])}, {excess[k]:.3g} above the bound."
        return (self.judged(seen, kept, text, float(rank[k]), float(rank[k] - excess[k]), done + k),)


class Growth(Claim):
    """ML-E50."""

    id = "ML-E50"
    paper = "ML"
    statement = "|theta(t)| <= |theta(0)| exp(X_max L(0) t), on any data."
    falsifier = "a norm above that."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (both_layers(facts),)

    def bounds(self, facts: Facts) -> dict[str, float]:
        with np.errstate(over="ignore"):  # of a start so wrong that no double holds its loss, the rate is inf
            return {"log_growth_rate": facts.x_max * float(np.exp(facts.problem.log_loss()))}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if np.isneginf(run.log_norm[0]):  # a zero network stays zero
            return ()
        # Times of e^1000 are inf; at a loss of 0 the product is then 0, not nan.
        with np.errstate(over="ignore", divide="ignore"):
            allowed = np.exp(run.log_time + np.log(facts.x_max) + facts.problem.log_loss())
        grown = run.log_norm - run.log_norm[0]
        error = seen.error
        with np.errstate(invalid="ignore"):
            over = grown - allowed * (1 + error.log_time + 2 * error.log_loss[0]) - 2 * error.sizes
        over = np.where(np.isnan(over), -inf, over)  # a zero network stays zero
        k = int(np.argmax(over))
        text = f"log|theta| grew by {grown[-1]:.6g}; never faster than the bound."
        if over[k] > 0:
            text = f"log|theta| grew by {grown[k]:.6g} until {when(run.log_time[k])}, bound {allowed[k]:.6g}."
        return (self.judged(seen, bool(over[k] <= 0), text, float(grown[k]), float(allowed[k]), k),)


LATE: tuple[Claim, ...] = (
    APosteriori(),
    FirstClass(),
    Trapping(),
    NotTooSmall(),
    Growing(),
    LinearDecay(),
    InverseTime(),
    FittingTime(),
    APosterioriRate(),
    LowRank(),
    Growth(),
)
