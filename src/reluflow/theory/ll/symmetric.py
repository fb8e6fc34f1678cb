"""Statements of LL on symmetric data: two phases near zero, and the largest margin of all networks in the end."""

from __future__ import annotations

import numpy as np

from ...dynamics import Measures, Trajectory
from ...dynamics.accuracy import TOO_SMALL, margin_rounding, rounding
from ...margins import MarginSolution, symmetrized_network
from ...problem import Network
from ...problem.types import Array
from ..approach import CLOSE, STALLED, approach
from ..base import Claim, Condition, Observation, Prediction, Role
from ..conditions import (
    SMALL,
    amplitudes,
    balanced,
    both_layers,
    good_draw,
    leaky,
    logistic,
    no_branching,
    off_mean,
    separable,
    separator,
    symmetric,
    width,
)
from ..facts import Facts
from .numbers import clock, length_unit, log_m_norm, means, near_zero_time, phase_one, symmetric_rate

_TEST = "tests/theory/ll/test_claims.py::"


def _best(facts: Facts) -> MarginSolution:
    found = separator(facts)
    assert found is not None  # separability is a condition of every claim that asks
    return found


def optimal_margin(facts: Facts) -> float:
    """``(1 + slope) gamma* / 4``."""
    return 0.25 * (1 + facts.net.slope) * _best(facts).margin


def optimal_network(facts: Facts) -> Network:
    """``(w*, -w*, 1, -1) / 2`` (printed with 1/4, which is not a unit vector)."""
    w = _best(facts).direction
    return Network(np.stack([w, -w]) / 2, [0.5, -0.5], facts.net.slope)


class SymmetricOptimum(Claim):
    """LL-T4.2."""

    id, paper = "LL-T4.2", "LL"
    statement = "Symmetric data, p >= 2: the largest margin of any net is (1+a) gamma*/4, with f = (1+a)/4 w*.x."
    falsifier = "a network on symmetric data with a larger margin"
    test = _TEST + "test_symmetric_optimum_is_global"
    role = Role(place=3, largest="largest margin")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return both_layers(facts), separable(facts), symmetric(facts), width(facts, 2)

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"largest margin": optimal_margin(facts), "gamma*": _best(facts).margin}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        top = optimal_margin(facts)
        if np.isnan(seen.normalized_margin).all():
            return ()
        worst = float(np.nanmax(seen.normalized_margin))
        last = run.final
        odd = symmetrized_network(last).normalized_margin(facts.data) if last.a.any() else np.nan
        text = f"largest margin on the way {worst:.8g}, optimum {top:.8g}; the symmetrised final net has {odd:.8g}."
        error = 1e-9 * top + margin_rounding(facts.data, run.p)
        # The symmetrised net has no smaller margins and no larger norm: where some are negative, that says nothing.
        fine = worst <= top + error and not 0 <= seen.normalized_margin[-1] > odd + error
        return (self.seen(fine, text, worst, top),)


class PhaseOneLinear(Claim):
    """LL-L5.2 and LL-D.2."""

    id, paper = "LL-L5.2", "LL"
    also = ("LL-D.2",)
    statement = "Phase I: all (w_j, a_j) follow a linear flow with rate (1+a)|mu|/4 (printed: twice that) until T_1."
    falsifier = "a record before the end of the phase farther from the linear flow than 4p|theta_0|^3 e^(3 rate t)/rate"
    test = _TEST + "test_phase_one_bound_and_printed_rate"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        found = phase_one(facts.problem)
        why = f"r = {found.r:.6g} (from the scale of the start), at most sqrt(rate/4) = {found.r_max:.6g}."
        small = Condition(
            "start small enough for r", found.r <= found.r_max, "numerical", found.r, found.r_max, why=why
        )
        return both_layers(facts), logistic(facts), symmetric(facts), small

    def bounds(self, facts: Facts) -> dict[str, float]:
        found = phase_one(facts.problem)
        return {"lambda_0": found.rate, "r": found.r, "T_1": found.T_1, "error at T_1": found.error}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow" or facts.loss.name != "logistic":
            return ()
        worst, where, end, told = linear_error(facts, seen)
        if where is None:
            return (self.seen(None, f"no record before the end of phase I at t = {end:.6g}."),)
        if worst <= 1 and not told:
            return (self.seen(None, f"the distance allowed from the linear flow is {TOO_SMALL}.", where=where),)
        text = f"at most {worst:.3g} of the allowed distance from the linear flow, until t = {end:.6g}."
        return (self.seen(worst <= 1, text, worst, 1.0, where),)


def linear_error(facts: Facts, seen: Measures) -> tuple[float, int | None, float, bool]:
    """Compare a run with the linear flow of LL-D.2.

    Returns the largest distance in units of what is allowed (the bound, or the error of the run where that is larger),
    the record, until when it is asked for, and whether the bound is ever the larger one.
    """
    run, problem, p, c = seen.run, facts.problem, facts.net.p, length_unit(facts.data)
    rate = symmetric_rate(problem)
    scaled, log_start = rate / clock(problem) / c, log_m_norm(facts.net) + 0.5 * np.log(c)
    log_end = 0.5 * np.log(scaled / 4) - 0.5 * np.log(p) - log_start
    worst, where, told = 0.0, None, False
    for k in np.flatnonzero(run.time * rate <= log_end):
        s = float(run.time[k]) * rate
        error = float(_distance(facts, run, int(k), s).max())
        log_bound = np.log(4 * p / scaled) + 2 * log_start + 2 * s
        own = 2 * seen.error.sizes + float(rounding(s))
        bound = float(np.exp(log_bound))
        ratio, told = error / max(bound, own), told or bound > own
        if where is None or ratio > worst:
            worst, where = ratio, int(k)
    return worst, where, float(log_end / rate) if rate > 0 else np.inf, told


def _distance(facts: Facts, run: Trajectory, record: int, s: float) -> Array:
    """Distance of each neuron from the linear flow, relative to ``e^s |theta_0|_M``."""
    net, top = facts.net, log_m_norm(facts.net)
    mu = means(facts.data, net.slope).mu
    axis = mu / np.linalg.norm(mu)
    with np.errstate(under="ignore"):
        W = net.directions * np.exp(net.log_norms - top)[:, None]
        a = np.sign(net.a) * np.exp(net.log_outs - top)
        along = W @ axis
        grow, fade = 0.5 * (along + a), 0.5 * (along - a) * np.exp(-2 * s)
        rest = (W - np.outer(along, axis)) * np.exp(-s)
        now = run.directions[record] * np.exp(run.log_norms[record] - top - s)[:, None]
        out = run.signs[record] * np.exp(run.log_outs[record] - top - s)
    far = np.linalg.norm(now - np.outer(grow + fade, axis) - rest, axis=1)
    return np.asarray(np.maximum(far, np.abs(out - (grow - fade))))


class PhaseTwo(Claim):
    """LL-L5.4 and LL-E.4."""

    id, paper = "LL-L5.4", "LL"
    also = ("LL-E.4",)
    statement = "Phase II: as the scale goes to 0, theta(T_12 + t) tends to an embedded flow of two neurons, +-(mu, 1)."
    falsifier = "neurons that do not stand along +-(mu, 1) at T_12 + t_0 by the bound"
    test = _TEST + "test_doctored_phase_two_is_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        setting = both_layers(facts), logistic(facts), separable(facts), symmetric(facts), off_mean(facts)
        return (*setting, width(facts, 2), good_draw(facts), SMALL)

    def bounds(self, facts: Facts) -> dict[str, float]:
        b = amplitudes(facts)
        plus, minus = float(np.linalg.norm(b[b > 0])), -float(np.linalg.norm(b[b < 0]))
        start = near_zero_time(facts.problem, plus, minus)
        return {"T_12": phase_one(facts.problem).T_12, "b_+": plus, "b_-": minus, "t_0": start}

    def prediction(self, facts: Facts) -> Prediction:
        found = self.bounds(facts)
        b = amplitudes(facts)
        mu = means(facts.data, facts.net.slope).mu
        text = (
            f"around t = {found['T_12']:.6g} the neurons stand along the mean, {int((b > 0).sum())} one way and "
            f"{int((b < 0).sum())} the other, with sizes in proportion to |b_j|."
        )
        axes = np.sign(b)[:, None] * mu / np.linalg.norm(mu)
        return self.promise(text, directions=axes, bounds=found, probability=1 - 2.0 ** (1 - facts.net.p))

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        found = self.bounds(facts)
        stop = found["T_12"] + found["t_0"]
        early = np.flatnonzero(run.time <= stop)
        if run.method != "flow" or early.size < 2:
            return ()
        k = int(early[-1])
        rate, c = symmetric_rate(facts.problem), length_unit(facts.data)
        s, scaled = float(run.time[k]) * rate, rate / clock(facts.problem) / c
        b, p = amplitudes(facts), facts.net.p
        mu = means(facts.data, facts.net.slope).mu
        axis = mu / np.linalg.norm(mu)
        shift = log_m_norm(facts.net) + 0.5 * np.log(p) + s
        with np.errstate(under="ignore"):
            now = run.directions[k] * np.exp(run.log_norms[k] - shift)[:, None]
            out = run.signs[k] * np.exp(run.log_outs[k] - shift)
        error = float(np.maximum(np.linalg.norm(now - np.outer(b, axis), axis=1), np.abs(out - b)).max())
        top = max(found["b_+"], -found["b_-"])
        growth = float(np.exp(2 * rate * (float(run.time[k]) - found["T_12"])))
        # LL-E.4, what the linear flow has not left behind yet, and its own error (LL-D.2).
        allowed = (8 * top**3 + 4 / np.sqrt(p)) / scaled * growth + 2 * np.exp(-s) / np.sqrt(p)
        allowed += 2 * seen.error.sizes + float(rounding(s))
        text = f"at t = {run.time[k]:.6g} the neurons are {error:.3g} from b_j (mu, 1)/|mu|; allowed {allowed:.3g}."
        return (self.seen(bool(error <= allowed), text, error, float(allowed), k),)


class TwoNeurons(Claim):
    """LL-F.3 and LL-T5.5."""

    id, paper = "LL-T5.5", "LL"
    also = ("LL-F.3",)
    statement = "Two balanced neurons, a_1 > 0 > a_2, w_1.w* > 0 > w_2.w*: the direction tends to (w*, -w*, 1, -1)/2."
    falsifier = "a fitted flow that rests elsewhere"
    test = _TEST + "test_doctored_two_neurons_are_flagged"
    role = Role(place=5, about="symmetric data and two neurons of opposite sign")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        two = Condition("two neurons", facts.net.p == 2, "proved", facts.net.p, 2)
        first = both_layers(facts), leaky(facts), logistic(facts), separable(facts), symmetric(facts), two
        if any(c.holds is False for c in first):
            return first
        signs = facts.signs
        opposite = Condition("one output of each sign", bool(signs.min() < 0 < signs.max()), "proved", tuple(signs))
        inner = signs * (facts.net.directions @ _best(facts).direction)
        why = f"sgn(a_j) w_j.w*/|w_j| = {inner[0]:.6g}, {inner[1]:.6g}."
        right = Condition(
            "both on the right side of w*", bool((inner > 0).all()), "numerical", tuple(inner), 0.0, why=why
        )
        return (*first, balanced(facts), opposite, right)

    def prediction(self, facts: Facts) -> Prediction:
        margin = optimal_margin(facts)
        other = 0.5 * facts.net.slope * _best(facts).margin
        text = f"the direction tends to (w*, -w*, 1, -1)/2, margin {margin:.10g}, from any scale; maybe very slowly."
        net = optimal_network(facts)
        axes = facts.signs[:, None] * _best(facts).direction
        bounds = {"margin of the other two KKT directions": other}
        return self.promise(text, function=net.outputs, network=net, margin=margin, directions=axes, bounds=bounds)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        limit = approach(seen, optimal_margin(facts), patience=100.0, upper=True)
        found = [self.seen(limit.consistent, limit.text, limit.measured, optimal_margin(facts))]
        if seen.first_fitted is not None:
            found.append(self._kkt_directions(facts, seen))
        return tuple(found)

    def _kkt_directions(self, facts: Facts, seen: Measures) -> Observation:
        """LL-F.3: the final direction must be near one of three."""
        now = _to_three(facts, seen.run, -1)
        text = f"distance {now:.3g} from the nearest of the three KKT directions (LL-F.3)"
        if now <= CLOSE:
            return self.seen(True, text + ".", now, 0.0)
        record = seen.earlier(100.0)
        before = None if record is None else _to_three(facts, seen.run, record)
        stalled = before is not None and now > STALLED * before
        return self.seen(False if stalled else None, text + "; not arrived.", now, 0.0)


def _to_three(facts: Facts, run: Trajectory, record: int) -> float:
    net = run.network(record).normalized()
    w, root = _best(facts).direction, np.sqrt(0.5)
    sides = np.where(facts.signs[:, None] > 0, w, -w)
    found = np.column_stack([net.W, net.a])
    far = []
    for share in ((0.5, 0.5), (root, 0.0), (0.0, root)):
        scale = np.where(facts.signs > 0, share[0], share[1])
        far.append(float(np.linalg.norm(found - scale[:, None] * np.column_stack([sides, facts.signs]))))
    return min(far)


class SymmetricLimit(Claim):
    """LL-T4.3 and LL-C4.4."""

    id, paper = "LL-T4.3", "LL"
    also = ("LL-C4.4",)
    statement = "Symmetric data, small start, good draw: f tends to (1+a)/4 w*.x, the global max margin."
    falsifier = "a ladder of scales along which the error of the limit function does not drop to the integration error"
    test = _TEST + "test_doctored_symmetric_limit_is_flagged"
    role = Role(
        place=4,
        about="symmetric data (every point has its mirror image in the other class) and a small start",
        nearest_for="leaky",
    )

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        setting = both_layers(facts), leaky(facts), logistic(facts), separable(facts), symmetric(facts)
        return (*setting, off_mean(facts), width(facts, 2), good_draw(facts), no_branching(facts), SMALL)

    def prediction(self, facts: Facts) -> Prediction:
        margin, net = optimal_margin(facts), optimal_network(facts)
        w, b = _best(facts).direction, amplitudes(facts)
        factor = 0.25 * (1 + facts.net.slope)
        text = (
            f"f tends to {factor:g} w*.x: the linear max-margin classifier; margin {margin:.10g}, the largest of all."
        )
        return self.promise(
            text,
            function=net.outputs,
            network=net,
            directions=np.sign(b)[:, None] * w,
            margin=margin,
            probability=1 - 2.0 ** (1 - facts.net.p),
        )

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        limit = approach(seen, optimal_margin(facts), patience=100.0, upper=True)  # slow for slopes near 1
        error = seen.output_error(optimal_network(facts).outputs(facts.data.X))
        text = limit.text if error is None else f"{limit.text} Largest error of f on the samples: {error:.3g}."
        return (self.seen(limit.consistent, text, limit.measured, optimal_margin(facts)),)


CLAIMS: tuple[Claim, ...] = (SymmetricOptimum(), PhaseOneLinear(), PhaseTwo(), TwoNeurons(), SymmetricLimit())
