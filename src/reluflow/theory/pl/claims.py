"""Phuong and Lampert: orthogonally separable data, sectors that absorb neurons, the limit of training."""

from __future__ import annotations

from math import log

import numpy as np

from ...dynamics import Measures
from ...dynamics.accuracy import TOO_SMALL
from ...dynamics.measures import left
from ...problem.words import count
from ...sectors import class_sectors
from ..base import Claim, Condition, Observation, Prediction, when
from ..conditions import (
    balanced,
    both_layers,
    flow_conditions,
    main_theorem,
    not_on_ray,
    orthogonal,
    relu,
    small_enough,
    strictly_orthogonal,
)
from ..facts import Facts
from ..invariants import INVARIANTS
from .limit import LIMITS
from .numbers import margin_pair

_DOCTORED = "tests/theory/test_doctored.py::test_doctored_runs_are_flagged"
_GEOMETRY = "tests/theory/pl/test_claims.py"


class OrthogonalSeparability(Claim):
    """PL-D1."""

    id = "PL-D1"
    paper = "PL"
    statement = "The data are orthogonally separable: x_i.x_j > 0 within a class, <= 0 across classes."
    falsifier = "one pair of samples with the wrong exact sign of its inner product (given as witness)."
    test = f"{_GEOMETRY}::test_separability_of_the_examples"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        strict = strictly_orthogonal(facts)
        extra = Condition(strict.name, strict.holds, "proved", strict.value, 0.0, strict.witness, strict.why, False)
        return orthogonal(facts), extra

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"mu": facts.constants.mu}


class MaxMarginPair(Claim):
    """PL-D2."""

    id = "PL-D2"
    paper = "PL"
    statement = "Each class has a max-margin vector: w+ = argmin |w|^2 with w.x_i >= 1 on I+, and w- likewise on I-."
    falsifier = "a shorter vector with the same constraints, or multipliers that do not certify the one given."
    test = f"{_GEOMETRY}::test_limits_of_the_examples"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        found = orthogonal(facts)
        if not found.holds:
            why = "it is used only for orthogonally separable data, where it always exists. " + found.why
            return (Condition(found.name, found.holds, found.evidence, found.value, 0.0, found.witness, why),)
        worst = max(s.residuals.worst for s in facts.class_margins if s is not None)
        verified = all(s.verified for s in facts.class_margins if s is not None)
        return found, Condition("class margins verified", verified or None, "numerical", worst, 1e-13)

    def bounds(self, facts: Facts) -> dict[str, float]:
        pair = margin_pair(facts)
        return {
            "w_plus_norm": pair.plus,
            "w_minus_norm": pair.minus,
            "gamma_plus": 1 / pair.plus if pair.plus else np.inf,
            "gamma_minus": 1 / pair.minus if pair.minus else np.inf,
            "cos_w_plus_w_minus": pair.cosine,
        }


class Premises(Claim):
    """PL-A."""

    id = "PL-A"
    paper = "PL"
    statement = "The seven conditions of the main theorem hold (each reported by itself)."
    falsifier = "a condition reported as holding for which the data give a counterexample."
    test = f"{_GEOMETRY}::test_premises_one_by_one"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return main_theorem(facts)


class EarlySectors(Claim):
    """PL-L1."""

    id = "PL-L1"
    paper = "PL"
    statement = "At some time every neuron is dead, or in the extremal sector of its sign."
    falsifier = "a run from a small start in which a neuron is in none of the three long after the early phase."
    test = _DOCTORED
    sources = ("maennel",)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        # Without generality of the start a neuron may sit on a repelling ray for ever (ML-A2).
        return (*flow_conditions(facts), orthogonal(facts), not_on_ray(facts), small_enough(facts))

    def prediction(self, facts: Facts) -> Prediction:
        groups, plus_minus = facts.groups, facts.class_sums
        directions = np.zeros_like(facts.net.W)
        for members, total in zip(groups[:2], plus_minus, strict=True):
            if members.size:
                directions[members] = total / np.linalg.norm(total)
        late = float(facts.alignment.last_event.max())
        text = (
            f"{count(groups.plus.size, 'neuron turns', 'neurons turn')} to the sum of the positive class, "
            f"{groups.minus.size} to that of the negative class, {count(groups.dead.size, 'dies', 'die')}; the last "
            f"change of an active set is at t = {late:.6g}."
        )
        several = np.flatnonzero(facts.alignment.nonunique)
        if several.size:
            text += f" The flow of neuron {several[0]} ({several.size} in all) is not unique; the regular one is meant."
        return self.promise(text, directions=directions, groups=groups, bounds={"last_event": late})

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, done = seen.run, seen.all_trapped
        due = float(facts.alignment.last_event.max())
        if done is None:
            j = int(np.argmin(seen.trapped[-1]))
            enough = (due == 0 or run.log_time[-1] > log(2 * due)) and bool(seen.loose[-1].any())
            text = f"neuron {j} is neither in its sector nor dead at {when(run.log_time[-1])}."
            free = int((~seen.trapped[-1]).sum())
            return (self.judged(seen, False if enough else None, text, free, 0, (len(run) - 1, j)),)
        text = f"every neuron is in its sector or dead at {when(run.log_time[done])}."
        found = [self.seen(True, text, float(run.log_time[done]), log(due) if due > 0 else None, done)]
        expected = np.zeros((2, run.p), bool)
        expected[0, facts.groups.plus] = expected[1, facts.groups.minus] = True
        wrong = (expected != np.stack(seen.members(-1))).any(axis=0)
        text = "each neuron is where the exact early phase puts it."
        if wrong.any():
            text = f"neuron {int(np.argmax(wrong))} ended elsewhere than the exact early phase puts it."
        where = np.flatnonzero(wrong).tolist() or None
        found.append(self.judged(seen, not wrong.any(), text, int(wrong.sum()), 0, where))
        return tuple(found)


def _geometry(facts: Facts) -> tuple[Condition, ...]:
    enough = facts.data.d >= 2
    why = f"d = {facts.data.d}" + ("." if enough else ": on a line the sphere is two isolated points.")
    return relu(facts), orthogonal(facts), Condition("d >= 2", enough, "proved", facts.data.d, 2, why=why)


class TwoSectors(Claim):
    """PL-L2."""

    id = "PL-L2"
    paper = "PL"
    statement = "There is one positive and one negative extremal sector (none for an empty class), known in advance."
    falsifier = "another strict local extremum of G on the sphere."
    test = f"{_GEOMETRY}::test_extremal_sectors_of_random_data"
    also = ("PL-D3", "PL-D4")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return _geometry(facts)

    def prediction(self, facts: Facts) -> Prediction:
        sectors = class_sectors(facts.data)
        names = ("positive", "negative")
        present = (facts.data.positives.size, facts.data.negatives.size)
        parts = []
        for name, sector, there in zip(names, sectors, present, strict=True):
            counts = f"{int((sector > 0).sum())} samples active, {int((sector == 0).sum())} on the boundary"
            listed = f" {sector.tolist()}" if sector.size <= 20 else ""
            parts.append(f"{name}:{listed} {counts}" if there else f"no {name} one")
        return self.promise("extremal sectors: " + "; ".join(parts) + ".")


class ClosedForm(Claim):
    """PL-L2'."""

    id = "PL-L2'"
    paper = "PL"
    statement = (
        "The extremal directions are the class sums x+ and x-, with G = +-r g(0)|x+-|: the early rates of growth."
    )
    falsifier = "a trapped neuron that grows faster than G, or G at a class sum that another direction nearby exceeds."
    test = _DOCTORED
    also = ("PL-LA1",)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return _geometry(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        plus, minus = (facts.speed * float(np.linalg.norm(total)) for total in facts.class_sums)
        return {"G_plus": plus, "G_minus": -minus}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        if not (balanced(facts).holds and both_layers(facts).holds):
            return ()
        run = seen.run
        both = seen.home[:-1] & seen.home[1:] & ~seen.dead[1:]
        # While max|f| is small, g_i <= g(0)(1 + 2 max|f|), and the rate in the cone is at most |sum g_i x_i|.
        worst_f = np.maximum(seen.log_output[:-1], seen.log_output[1:])
        both &= (worst_f < log(0.01))[:, None] & np.isfinite(seen.log_steps)[:, None]
        both &= np.array([np.linalg.norm(total) > 0 for total in facts.class_sums])[(facts.signs < 0).astype(int)]
        if not both.any():
            return (self.seen(None, "no neuron was seen in its cone while the network was still small."),)
        top = np.where(facts.signs > 0, *(facts.speed * np.linalg.norm(total) for total in facts.class_sums))
        top = np.where(top > 0, top, 1.0)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            grown, full = np.diff(run.log_norms, axis=0), np.exp(seen.log_steps)[:, None] * top
            # The step is a difference of times, and what was gained one of logarithms.
            error = 2 * seen.error.sizes + full * np.expm1(np.minimum(seen.error.log_steps, 1.0))[:, None]
            excess = np.where(both, grown - full * (1 + 2 * np.exp(worst_f))[:, None] - error, -np.inf)
            told = both & (full > error)
            last = float(np.where(told, grown / full, -np.inf).max())
        k, j = divmod(int(np.argmax(excess)), run.p)
        if excess[k, j] > 0:
            last = float(grown[k, j] / full[k, j])
        elif not told.any():
            return (self.seen(None, f"what the neurons grow by between records is {TOO_SMALL}."),)
        text = (
            f"in their cones the neurons grow at most {last:.6g} times as fast as G says (1 is reached when aligned)."
        )
        return (self.judged(seen, bool(excess[k, j] <= 0), text, last, 1.0, (k + 1, j)),)


class Absorbing(Claim):
    """PL-L3."""

    id = "PL-L3"
    paper = "PL"
    statement = "A neuron in the extremal sector of its sign stays there for ever, at any scale."
    falsifier = "a run in which a neuron leaves that sector."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*flow_conditions(facts), orthogonal(facts))

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        gone = left(seen.home, seen.astray)
        entered = seen.home.any(axis=0)
        if not entered.any():
            return (self.seen(None, "no neuron was seen in the sector of its sign."),)
        if gone.any():
            k, j = divmod(int(np.argmax(gone)), run.p)
            text = f"neuron {j} left its sector at {when(run.log_time[k + 1])}."
            return (self.judged(seen, False, text, int(gone.sum()), 0, (k + 1, j)),)
        last = int(np.argmax(seen.home, axis=0)[entered].max())
        many = count(int(entered.sum()), "neuron")
        text = f"{many} entered the sector of its sign, the last at {when(run.log_time[last])}; none left."
        return (self.seen(True, text, 0, 0, last),)


class MonotoneActivations(Claim):
    """PL-LB1."""

    id = "PL-LB1"
    paper = "PL"
    statement = "s_j y_i (w_j.x_i) never decreases: neurons only gain samples of their class and lose others."
    falsifier = "two times between which s_j y_i (w_j.x_i) falls by more than the integration error."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*flow_conditions(facts), orthogonal(facts))

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        worst = seen.decrease
        text = f"largest relative decrease of s_j y_i w_j.x_i between records: {worst.size:.3g}."
        found = [self.judged(seen, worst.size <= 2 * seen.error.sizes, text, worst.size, 0.0, worst[1:])]
        if run.method != "flow":  # no events are recorded
            return tuple(found)
        crossing = np.isin(run.events["kind"], ("activate", "deactivate"))
        events = run.events[crossing & (run.events["sample"] >= 0)]
        towards = np.where(events["kind"] == "activate", 1, -1)
        wrong = towards * facts.signs[events["neuron"]] * facts.data.y[events["sample"]] < 0
        text = f"{count(events.size, 'change')} of active sets, all in the right direction."
        if wrong.any():
            bad = events[np.argmax(wrong)]
            text = f"neuron {bad['neuron']} and sample {bad['sample']}: '{bad['kind']}' at {when(bad['log_time'])}."
        found.append(self.judged(seen, not wrong.any(), text, int(wrong.sum()), 0))
        return tuple(found)


class DirectionalIdentity(Claim):
    """PL-LA2."""

    id = "PL-LA2"
    paper = "PL"
    statement = "Between kinks G((w + e v)/|w + e v|) = (G(w) + e sum_i y_i g(0) [active] v.x_i)/|w + e v|."
    falsifier = "one w, v, e for which the two sides differ."
    test = f"{_GEOMETRY}::test_identity_between_kinks"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (relu(facts),)


class GrowthBound(Claim):
    """PL-LA4."""

    id = "PL-LA4"
    paper = "PL"
    statement = "From a balanced start |log|a_j(t)| - log|a_j(0)|| <= r n B V t, B = sup|l'| and V = max|x_i|."
    falsifier = "a run in which some |a_j| grows or shrinks faster than that."
    test = _DOCTORED

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        logistic = facts.loss.name == "logistic"
        why = "|l'| <= 1." if logistic else "the slope of the exponential loss is not bounded."
        return both_layers(facts), balanced(facts), Condition("bounded slope of the loss", logistic, "proved", why=why)

    def bounds(self, facts: Facts) -> dict[str, float]:
        rate = facts.problem.weight * facts.data.n * facts.x_max
        # PL-E8: a factor 2 is missing in print, so the printed rate of log|a_j| is half of the right one.
        return {"log_growth_rate (as printed)": rate / 2, "log_growth_rate (as corrected)": rate}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        rate = self.bounds(facts)["log_growth_rate (as corrected)"]
        with np.errstate(invalid="ignore"):
            change = np.nan_to_num(np.abs(run.log_outs - run.log_outs[0])).max(axis=1)
        with np.errstate(over="ignore"):
            allowed = rate * run.time
        error = seen.error
        with np.errstate(invalid="ignore"):
            over = change - allowed * (1 + error.log_time) - 2 * error.sizes
        over = np.where(np.isnan(over), -np.inf, over)  # a zero neuron stays zero
        k = int(np.argmax(over))
        text = f"largest change of log|a_j|: {change.max():.6g}; nowhere more than the bound."
        if over[k] > 0:
            text = f"log|a_j| changed by {change[k]:.6g} until {when(run.log_time[k])}, the bound is {allowed[k]:.6g}."
        return (self.judged(seen, bool(over[k] <= 0), text, float(change[k]), float(allowed[k]), k),)


CLAIMS: tuple[Claim, ...] = (
    *INVARIANTS,
    OrthogonalSeparability(),
    MaxMarginPair(),
    Premises(),
    EarlySectors(),
    TwoSectors(),
    ClosedForm(),
    Absorbing(),
    MonotoneActivations(),
    DirectionalIdentity(),
    GrowthBound(),
    *LIMITS,
)

#: Statements that cannot be put to the test, with the reason.
NOT_COMPUTABLE: dict[str, str] = {
    "PL-LA3": "an identity for almost every time, on which the integrators are built; it does not single out a "
    "solution where a neuron touches a hyperplane, so no run can contradict it",
}
