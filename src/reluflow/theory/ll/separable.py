"""Statements of LL on data that are not symmetric: small networks become one neuron."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...dynamics import Measures
from ...problem import Network
from ...problem.types import Array
from ..approach import approach
from ..base import Claim, Condition, Observation, Prediction, Role
from ..conditions import (
    SMALL,
    above,
    balanced,
    both_layers,
    hinted,
    leaky,
    logistic,
    longer,
    no_branching,
    outside,
    renamed,
    separable,
    separator,
    some_neuron,
    spread,
    survivor,
    three_hints,
)
from ..facts import Facts
from .numbers import growth_rates, means

_TEST = "tests/theory/ll/test_claims.py::"
_EARLY = 1e-3  # outputs up to this leave the forces at their values at zero, to that relative accuracy


def limit_network(facts: Facts, sign: int) -> Network:
    """``f = phi(w+.x)/2`` (sign +1) or ``-phi(-w-.x)/2`` (sign -1), of unit norm."""
    root = np.sqrt(0.5)
    return Network(root * sign * survivor(facts, sign).w[None], [root * sign], facts.net.slope)


def _axes(facts: Facts) -> Array:
    """Direction along which each neuron grows: ``mu+`` or ``-mu-``, by the sign of its output."""
    found = means(facts.data, facts.net.slope)
    plus, minus = (m / np.linalg.norm(m) for m in (found.plus, found.minus))
    return np.where(facts.signs[:, None] > 0, plus, -minus)


def _setting(facts: Facts) -> tuple[Condition, ...]:
    return both_layers(facts), leaky(facts), logistic(facts), separable(facts)


def _failed(conditions: tuple[Condition, ...]) -> bool:
    return any(c.holds is False for c in conditions)


class OneNeuronFlow(Claim):
    """LL-A.4 and LL-G.9."""

    id, paper = "LL-G.9", "LL"
    also = ("LL-A.4",)
    statement = (
        "One balanced neuron with sgn(a) w.w* > 0: the only KKT direction is (w+, 1)/sqrt2; the flow goes there."
    )
    falsifier = "a flow of one neuron that rests elsewhere, or another KKT direction"
    test = _TEST + "test_one_neuron_has_one_kkt_direction"
    role = Role(about="separable data and one neuron")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        one = Condition("one neuron", facts.net.p == 1, "proved", facts.net.p, 1)
        first = (*_setting(facts), one, balanced(facts))
        if _failed(first):
            return first
        best = separator(facts)
        assert best is not None
        inner = float(facts.signs[0] * (facts.net.directions[0] @ best.direction))
        return (*first, above("on the right side of w*", inner, 0.0, "sgn(a) w.w*/|w|"))

    def prediction(self, facts: Facts) -> Prediction:
        sign = int(facts.signs[0])
        net, margin = limit_network(facts, sign), 0.5 * survivor(facts, sign).gamma
        text = f"the neuron turns to {np.round(net.W[0] / np.linalg.norm(net.W[0]), 6).tolist()}, margin {margin:.10g}."
        return self.promise(text, function=net.outputs, network=net, directions=net.directions, margin=margin)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        target = 0.5 * survivor(facts, int(facts.signs[0])).gamma
        limit = approach(seen, target, patience=100.0, upper=True)
        return (self.seen(limit.consistent, limit.text, limit.measured, target),)


def _early(facts: Facts, seen: Measures) -> int | None:
    """Last record at which the outputs are still negligible, not the first record of all."""
    small = np.flatnonzero(seen.q_abs <= _EARLY)
    return int(small[-1]) if small.size and small[-1] > 0 and facts.net.p > 0 else None


class EarlyCones(Claim):
    """LL-G.4."""

    id, paper = "LL-G.4", "LL"
    statement = "Under A.2, after a time free of the scale, neurons have pattern y (a > 0) or -y (a < 0)."
    falsifier = "a neuron with another pattern at the end of the early phase of a tiny start"
    test = _TEST + "test_doctored_pattern_is_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        first = (*_setting(facts), spread(facts), balanced(facts))
        if _failed(first):
            return first
        found = means(facts.data, facts.net.slope)
        minus, plus = found.minus / np.linalg.norm(found.minus), found.plus / np.linalg.norm(found.plus)
        cosine = facts.net.directions @ np.stack([-minus, plus]).T
        worst = np.where(facts.signs > 0, cosine[:, 0], cosine[:, 1])
        j = int(np.argmax(worst))
        why = f"neuron {j} is nearest to the repelling ray, at cosine {worst[j]:.6g} (printed with the other sign)."
        value = float(worst[j])
        # On the line there is no room beside the ray; elsewhere rounding cannot tell.
        away = True if value < 1 - 1e-12 else False if facts.data.d == 1 else None
        free = Condition("no neuron on a repelling ray", away, "numerical", value, 1.0, j, why)
        return (*first, free, SMALL)

    def prediction(self, facts: Facts) -> Prediction:
        count, slowest = int((facts.signs > 0).sum()), self._slowest(facts)
        text = (
            f"{count} neurons get the pattern of the labels, {facts.net.p - count} the opposite one, by t = "
            f"{slowest:.6g} if f is still ~ 0 then."
        )
        return self.promise(text, directions=_axes(facts), bounds={"T_0": slowest})

    def _slowest(self, facts: Facts) -> float:
        """Time after which no neuron crosses a sample any more as long as the outputs are negligible, exactly."""
        return float(max(facts.alignment.last_event.max(), 0.0))

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        k = _early(facts, seen)
        if k is None or run.method != "flow":
            return ()
        slowest = self._slowest(facts)
        want = np.outer(facts.data.y, facts.signs)
        cosine = (facts.data.X / facts.data.norms[:, None]) @ run.directions[k].T
        wrong = np.flatnonzero((cosine * want < -seen.error.steps).any(axis=0))
        right = int(facts.net.p - wrong.size)
        text = f"{right} of {facts.net.p} neurons have their pattern at t = {run.time[k]:.6g}, T_0 = {slowest:.6g}"
        if wrong.size and run.time[k] < slowest:
            text += ", while the outputs are negligible: the start is not small enough for the slowest neuron."
            return (self.seen(None, text, right, facts.net.p, int(wrong[0])),)
        return (self.seen(not wrong.size, text + ".", right, facts.net.p, int(wrong[0]) if wrong.size else None),)


class GrowthRates(Claim):
    """LL-G.5 and LL-G.8."""

    id, paper = "LL-G.5", "LL"
    also = ("LL-G.8",)
    statement = "Aligned small neurons grow at rate |mu+|/2 (a > 0) or |mu-|/2 (a < 0); printed without the 1/2."
    falsifier = "another slope of log |w_j| while the neuron is aligned and the outputs are negligible"
    test = _TEST + "test_doctored_growth_is_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*_setting(facts)[1:], both_layers(facts), spread(facts), balanced(facts))

    def bounds(self, facts: Facts) -> dict[str, float]:
        plus, minus = growth_rates(facts.problem)
        found = {"lambda_0^+": plus, "lambda_0^-": minus, "kappa": means(facts.data, facts.net.slope).kappa}
        # T_12 of LL-G.8 without its T_0; sigma is the scale of the draw, or the largest neuron where each has its own.
        own = facts.net.log_scale
        sigma = own if isinstance(own, float) else float(facts.net.log_norms.max())
        size = sigma + 0.5 * np.log(facts.net.p)
        return {**found, "T_12 - T_0": float(-size / plus)} if plus > 0 else found

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        rates = growth_rates(facts.problem)
        cosine = np.einsum("tjd,jd->tj", run.directions, _axes(facts))
        found = []
        for sign, rate in zip((1, -1), rates, strict=True):
            group = np.flatnonzero(facts.signs == sign)
            if not group.size or not rate > 0:
                continue
            j = int(group[np.argmax(run.log_norms[0, group])])
            window = np.flatnonzero((seen.q_abs <= _EARLY) & (cosine[:, j] >= 0.999) & np.isfinite(run.log_time))
            if window.size < 2 or (run.time[window[-1]] - run.time[window[0]]) * rate < 1:
                continue
            a, b = int(window[0]), int(window[-1])
            slope = float((run.log_norms[b, j] - run.log_norms[a, j]) / (run.time[b] - run.time[a]))
            # The rate is lambda cos(w, mu), and forces are off by at most the outputs.
            allowed = 1 - float(cosine[window, j].min()) + float(seen.q_abs[window].max())
            error = seen.error
            part = -float(np.expm1(run.log_time[a] - run.log_time[b]))
            allowed += 2 * error.sizes / (rate * (run.time[b] - run.time[a])) + 2 * float(error.log_time[b]) / part
            fine = abs(slope / rate - 1) <= allowed
            word = "positive" if sign > 0 else "negative"
            text = f"{word} neuron {j} grows at rate {slope:.8g}, predicted {rate:.8g} (within {allowed:.1e})."
            found.append(self.seen(bool(fine), text, slope, rate, (a, b)))
        return tuple(found)


class OneNeuronLimit(Claim):
    """LL-TA.7."""

    id, paper = "LL-TA.7", "LL"
    also: ClassVar[tuple[str, ...]] = ("LL-G.11",)
    statement = "Small balanced start, positive neurons grow faster: f tends to phi(w+.x)/2, margin gamma+/2."
    falsifier = "a small start under the corrected conditions with another limit; a smoothed margin above gamma+/2"
    test = _TEST + "test_D8_refutes_the_printed_theorem"
    role = Role(
        place=6,
        about="data on which positive neurons outgrow negative ones, and a small start",
        nearest_for="leaky",
    )
    sign = 1

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        sign = self.sign
        first = (*_setting(facts), spread(facts), longer(facts, sign), balanced(facts), some_neuron(facts, sign))
        if facts.net.slope == 0 or first[3].holds is False:
            return first
        printed = renamed(outside(facts, sign, False), "as printed", False)
        if (facts.signs == sign).all():
            why = "all neurons have the surviving sign, so nothing of the other sign can grow."
            fixed = Condition(f"LL-{'A.5' if sign > 0 else 'A.9'}* (as corrected)", True, "proved", why=why)
        else:
            fixed = renamed(outside(facts, sign, True), "as corrected", True)
        return (*first, printed, fixed, no_branching(facts), SMALL)

    def bounds(self, facts: Facts) -> dict[str, float]:
        found = survivor(facts, self.sign)
        return {"gamma": found.gamma, "kappa": found.kappa, "margin": 0.5 * found.gamma}

    def prediction(self, facts: Facts) -> Prediction:
        found, net = survivor(facts, self.sign), limit_network(facts, self.sign)
        word, name = ("phi(w+.x)/2", "w+") if self.sign > 0 else ("-phi(-w-.x)/2", "w-")
        text = (
            f"f tends to {word}, {name} = {np.round(found.w, 6).tolist()}: one neuron, linear boundary, margin "
            f"{0.5 * found.gamma:.10g}."
        )
        return self.promise(
            text,
            function=net.outputs,
            network=net,
            directions=np.where(facts.signs[:, None] == self.sign, self.sign * found.w, 0.0),
            margin=0.5 * found.gamma,
            probability=1 - 2.0**-facts.net.p,
        )

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        target = 0.5 * survivor(facts, self.sign).gamma
        limit = approach(seen, target, patience=100.0)
        error = seen.output_error(limit_network(facts, self.sign).outputs(facts.data.X))
        text = limit.text if error is None else f"{limit.text} Largest error of f on the samples: {error:.3g}."
        return (self.seen(limit.consistent, text, limit.measured, target),)


class OneNeuronLimitMinus(OneNeuronLimit):
    """LL-TA.10."""

    id = "LL-TA.10"
    also = ()
    statement = "Small balanced start, negative neurons grow faster: f tends to -phi(-w-.x)/2, margin gamma-/2."
    falsifier = "a problem and its label-flipped mirror image with different verdicts"
    test = _TEST + "test_label_flip_exchanges_the_two_theorems"
    role = Role(
        place=7,
        about="data on which negative neurons outgrow positive ones, and a small start",
        nearest_for="leaky",
    )
    sign = -1


class HintedData(Claim):
    """LL-T6.2 and LL-D6.1."""

    id, paper = "LL-T6.2", "LL"
    also = ("LL-D6.1",)
    statement = "Three hints make every small start end in phi(w*.x)/2, margin eps/2, whatever the best margin is."
    falsifier = "thresholds (a)-(d) met and LL-A.2, A.3 or A.5* failing; a smoothed margin above eps/2"
    test = _TEST + "test_hinted_thresholds"
    role = Role(place=8, about="data with three strong hints, and a small start")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        first = (*_setting(facts), hinted(facts))
        found = three_hints(facts)
        if _failed(first) or found is None:
            return first
        return (
            *first,
            above("(a) eps small", found.eps_below, found.eps, "slope times the smallest margin of the rest"),
            above("(b) H above eps", found.H, found.eps, "H"),
            above("(c) H above H_0", found.H, found.H_0, "H"),
            above("(d) H outweighs the rest", found.H, found.H_d, "H"),
            balanced(facts),
            some_neuron(facts, 1),
            no_branching(facts),
            SMALL,
        )

    def bounds(self, facts: Facts) -> dict[str, float]:
        found = three_hints(facts)
        if found is None:
            return {}
        return {
            "(a) eps below": found.eps_below,
            "(c) H_0": found.H_0,
            "(d) H above": found.H_d,
            "K up to which the limit is optimal": found.K_threshold,
            "upper bound of the best margin": found.bound,
        }

    def prediction(self, facts: Facts) -> Prediction | None:
        found = three_hints(facts)
        best = separator(facts)
        if found is None or best is None:
            return None
        root = np.sqrt(0.5)
        net = Network(root * best.direction[None], [root], facts.net.slope)
        text = f"f tends to phi(w*.x)/2, margin eps/2 = {found.eps / 2:.10g}; "
        if found.K_threshold >= found.K:
            text += f"that is optimal, for K = {found.K:.6g} is at most {found.K_threshold:.6g} (printed: never)."
        else:
            text += f"networks of margin up to {found.bound:.10g} are not excluded."
        return self.promise(
            text, function=net.outputs, network=net, margin=found.eps / 2, probability=1 - 2.0**-facts.net.p
        )

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        found = three_hints(facts)
        if run.method != "flow" or found is None:
            return ()
        limit = approach(seen, found.eps / 2, patience=100.0)
        return (self.seen(limit.consistent, limit.text, limit.measured, found.eps / 2),)


CLAIMS: tuple[Claim, ...] = (
    OneNeuronFlow(),
    EarlyCones(),
    GrowthRates(),
    OneNeuronLimit(),
    OneNeuronLimitMinus(),
    HintedData(),
)
