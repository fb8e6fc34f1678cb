"""Statements of LL on all data: late convergence, conserved quantities, bounds near zero, branching."""

from __future__ import annotations

import numpy as np

from ...dynamics import Measures, Trajectory
from ...dynamics.accuracy import TOO_SMALL, rounding
from ...problem import Network
from ...problem.types import Array
from ...problem.words import count
from ..approach import approach, at_rest, worst_drop
from ..base import ORTHOGONAL, Claim, Condition, Observation, Prediction, Role, assume
from ..conditions import both_classes, both_layers, logistic, no_branching, orthogonal, relu, separable, separator
from ..facts import Facts
from .numbers import Escape, escape, length_unit

_TEST = "tests/theory/ll/test_claims.py::"
_ARRIVED = 2e-2  # a KKT residual of this size counts as small; it falls like 1/q_min only

REACHED = assume("nL < log 2 at some time", "it is an event of the run; monitored, not predicted.")


class LateConvergence(Claim):
    """LL-T3.1, LL-B.8 and LL-B.9."""

    id, paper = "LL-T3.1", "LL"
    also = ("LL-B.8", "LL-B.9")
    sources = ("lyu-li", "ji-telgarsky")
    statement = "Once nL < log 2: L -> 0, |theta| -> oo, and the direction converges to a KKT direction, |a_j| = |w_j|."
    falsifier = "a fitted run whose loss rises, whose norm falls, or whose KKT residual stops falling"
    test = _TEST + "test_doctored_direction_is_no_kkt_direction"
    role = Role(place=1, every_limit="that it is a stationary (KKT) point of the margin problem")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        tail = Condition("exponential tail", True, "proved", why=f"the {facts.loss.name} loss has one.")
        return tail, REACHED

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        if seen.first_fitted is None:
            text = f"the loss stays above l(0) (now e^{run.log_loss[-1] - np.log(facts.problem.weight):.6g} in all)."
            return (self.seen(None, text),)
        return self._grows(seen, seen.first_fitted), self._stationary(seen)

    def _grows(self, seen: Measures, first: int) -> Observation:
        run = seen.run
        norm, loss = run.log_norm[first:], run.log_loss[first:]
        error = seen.error
        rises, risen, k = worst_drop(-loss, error.log_loss[first:])
        sinks, sunk, j = worst_drop(norm, np.full(norm.size, error.sizes))
        text = f"log loss {loss[0]:.6g} to {loss[-1]:.6g}, log |theta| {norm[0]:.6g} to {norm[-1]:.6g}."
        where = first + k if risen > 0 else first + j if sunk > 0 else None
        return self.seen(risen <= 0 and sunk <= 0, text, (rises, sinks), (0.0, 0.0), where)

    def _stationary(self, seen: Measures) -> Observation:
        now = seen.residual(-1)
        if now is None:
            return self.seen(None, "the final network does not classify every sample clearly.")
        text = f"KKT residual {now[0]:.3g}, imbalance {now[1]:.3g} at q_min = {seen.q_min[-1]:.4g}"
        if max(now) <= _ARRIVED:
            return self.seen(True, text + ".", now, (0.0, 0.0))
        still = at_rest(seen)
        if still is not None:
            text += f"; at least {still:.3g} while q_min grew tenfold, though the margin stood still."
            return self.seen(False, text, now, (0.0, 0.0))
        return self.seen(None, text + "; not small yet.", now, (0.0, 0.0))


class NearZero(Claim):
    """LL-B.10 to LL-B.14, LL-D.1, LL-E.10."""

    id, paper = "LL-B.10", "LL"
    also = ("LL-B.11", "LL-B.12", "LL-B.13", "LL-B.14", "LL-D.1", "LL-E.10")
    statement = "In the unit ball |f| <= p|theta|_M^2, |grad L - grad L~|_M <= p|theta|_M^3, |grad L| <= |theta|."
    falsifier = "a network that breaks one of the inequalities"
    test = _TEST + "test_bounds_near_zero_on_random_networks"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return both_layers(facts), logistic(facts)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if facts.loss.name != "logistic":
            return ()
        sizes = np.maximum(run.log_norms.max(axis=1), run.log_outs.max(axis=1))
        usable = np.flatnonzero((sizes > -60) & (sizes < 60))
        if not usable.size:
            return ()
        chosen = usable[np.unique(np.linspace(0, usable.size - 1, 20).astype(int))]
        W, a = run.W, run.a
        worst = np.max([near_zero_ratios(W[k], a[k], facts) for k in chosen], axis=0)
        text = f"worst ratio to the bound: |f| {worst[0]:.3g}, gradient {worst[1]:.3g}, force {worst[2]:.3g}."
        return (self.seen(bool((worst <= 1 + 1e-9).all()), text, tuple(worst.tolist()), (1.0, 1.0, 1.0)),)


def near_zero_ratios(W: Array, a: Array, facts: Facts) -> tuple[float, float, float]:
    """Left over right sides of the three inequalities of LL-B.10 to LL-B.14, in units where the points are short."""
    c, slope = length_unit(facts.data), facts.net.slope
    W, a, X, y = W * np.sqrt(c), a * np.sqrt(c), facts.data.X / c, facts.data.y
    n, p = len(y), len(a)
    size = max(float(np.linalg.norm(W, axis=1).max()), float(np.abs(a).max()))
    z = X @ W.T
    out, slopes = np.where(z > 0, z, slope * z), np.where(z > 0, 1.0, slope)
    f = out @ a
    force = facts.loss.force(y * f)

    def gradient(g: Array) -> tuple[Array, Array]:
        return a[:, None] * ((slopes * (g * y)[:, None]).T @ X) / n, (g * y) @ out / n

    gw, ga = gradient(force)
    hw, ha = gradient(-np.tanh(y * f / 2) / 2)  # the difference of the two gradients, without cancellation
    off = max(float(np.linalg.norm(hw, axis=1).max()), float(np.abs(ha).max()))
    norm = float(np.hypot(np.linalg.norm(W), np.linalg.norm(a)))
    total = float(np.hypot(np.linalg.norm(gw), np.linalg.norm(ga)))
    return float(np.abs(f).max()) / (p * size**2), off / (p * size**3), total / norm


class Conserved(Claim):
    """LL-B.15 to LL-B.18."""

    id, paper = "LL-B.15", "LL"
    also = ("LL-B.16", "LL-B.17", "LL-B.18")
    statement = "dL/dt = -|theta'|^2; |w_j|^2 - a_j^2 is conserved; balanced neurons keep their sign."
    falsifier = "a flow whose loss rises, whose balance drifts, or a balanced neuron whose output changes sign"
    test = _TEST + "test_doctored_conservation_is_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (both_layers(facts),)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        drift = seen.balance_drift
        fine = bool(drift.max() <= 4 * seen.error.sizes)  # squares, now and at the start
        text = f"largest relative drift of |w|^2 - a^2: {drift.max():.1e}."
        found = [self.seen(fine, text, float(drift.max()), 0.0, None if fine else int(np.argmax(drift)))]
        log_w, log_a = facts.net.log_norms, facts.net.log_outs
        zero = np.isneginf(log_w) & np.isneginf(log_a)
        with np.errstate(invalid="ignore"):
            tied = np.abs(log_w - log_a) <= rounding(log_w)
        kept = run.signs[:, tied] == run.signs[0, tied]
        where = None if kept.all() else tuple(int(v) for v in np.argwhere(~kept)[0])
        text = f"{int(tied.sum())} balanced neurons; {int((~kept.all(axis=0)).sum())} changed the sign of their output."
        found.append(self.seen(bool(kept.all()), text, int((~kept.all(axis=0)).sum()), 0, where))
        if zero.any():
            moved = np.isfinite(run.log_norms[:, zero]).any() or np.isfinite(run.log_outs[:, zero]).any()
            found.append(
                self.seen(not moved, f"{int(zero.sum())} zero neurons; they {'moved' if moved else 'stay zero'}.")
            )
        return (*found, self._dissipation(seen))

    def _dissipation(self, seen: Measures) -> Observation:
        """Between records, ``|change of theta|^2 <= (time) (loss lost)``, which the equation for dL/dt implies."""
        run, error, log_loss = seen.run, seen.error, seen.run.log_loss
        rise, risen, k = worst_drop(-log_loss, error.log_loss)
        if risen > 0:
            return self.seen(False, f"log L rises by {rise:.1e} at record {k}.", rise, 0.0, k)
        worst, where, told = 0.0, None, 0
        for t in range(len(run) - 1):
            log_size, part = _change(run, t)
            off = 4 * error.sizes  # both ends, both layers; relative to the largest weight
            # What was lost, at most: a difference of losses, each with its error.
            lost = -np.expm1(log_loss[t + 1] - log_loss[t]) + error.log_loss[t] + error.log_loss[t + 1]
            gap, late = run.log_time[t] - run.log_time[t + 1], error.log_time[t] + error.log_time[t + 1]
            time = -np.expm1(gap) + late
            if part <= 4 * off or not lost > 0 or not np.isfinite(run.log_time[t + 1]):
                continue
            told += 1
            log_room = run.log_time[t + 1] + np.log(time) + log_loss[t] + np.log(lost)
            ratio = float(np.exp(min(2 * (log_size + np.log(part - off)) - log_room, 50.0)))
            if ratio > worst:
                worst, where = ratio, t + 1
        if not told:
            return self.seen(None, f"|change|^2 against (time) x (loss lost): {TOO_SMALL}.")
        text = f"|change|^2 is at most {worst:.6g} of (time) x (loss lost) between records."
        return self.seen(worst <= 1, text, worst, 1.0, where)


def _change(run: Trajectory, t: int) -> tuple[float, float]:
    """Log of the largest weight at record t and the next, and the norm of the change of all in units of it."""
    log_size = float(max(run.log_norms[t : t + 2].max(), run.log_outs[t : t + 2].max()))
    if log_size == -np.inf:
        return 0.0, 0.0
    with np.errstate(under="ignore"):
        W = run.directions[t : t + 2] * np.exp(run.log_norms[t : t + 2] - log_size)[..., None]
        a = run.signs[t : t + 2] * np.exp(run.log_outs[t : t + 2] - log_size)
    return log_size, float(np.hypot(np.linalg.norm(W[1] - W[0]), np.linalg.norm(a[1] - a[0])))


class NeuronThatLives(Claim):
    """LL-B.19 and LL-B.20."""

    id, paper = "LL-B.19", "LL"
    also = ("LL-B.20",)
    statement = "A neuron with sgn(a) w.w* > 0 and (w.w*)^2 - |w|^2 + a^2 > 0 keeps its sign, and nL < log 2 by time T."
    falsifier = "a flow that is not fitted at time T, or such a neuron whose output changes sign"
    test = _TEST + "test_late_fit_is_flagged"

    def _escape(self, facts: Facts) -> Escape | None:
        best = separator(facts)
        if best is None or facts.net.slope == 0:
            return None
        return escape(facts.problem, best.direction, best.margin)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        found = self._escape(facts)
        slope = Condition("positive slope", facts.net.slope > 0, "proved", facts.net.slope, 0.0)
        first = both_layers(facts), logistic(facts), separable(facts), slope
        if found is None:
            return first
        good = int((~np.isnan(found.log_c)).sum())
        why = f"of {count(facts.net.p, 'neuron')} {good} qualify."
        name = "a neuron on the right side of w*"
        return (*first, Condition(name, good > 0, "numerical", good, 1, found.best, why))

    def bounds(self, facts: Facts) -> dict[str, float]:
        found = self._escape(facts)
        if found is None or found.best is None:
            return {}
        return {"log_T": float(found.log_time[found.best]), "log_c": float(found.log_c[found.best])}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        found = self._escape(facts)
        if found is None or found.best is None or run.method != "flow" or facts.loss.name != "logistic":
            return ()
        limit = float(found.log_time[found.best])
        lives = ~np.isnan(found.log_c)
        kept = (run.signs[:, lives] == run.signs[0, lives]).all(axis=0)
        text = f"{int(kept.sum())} of {kept.size} neurons with c > 0 kept the sign of their output."
        signs = self.seen(bool(kept.all()), text, int(kept.sum()), kept.size)
        error = seen.error
        due = limit + error.log_time + rounding(limit) if np.isfinite(limit) else np.inf
        late = np.flatnonzero(seen.unfitted & (run.log_time > due))
        if late.size:
            k = int(late[-1])
            text = f"not fitted at log t = {run.log_time[k]:.6g}; bound log T = {limit:.6g}."
            return signs, self.seen(False, text, float(run.log_time[k]), limit, k)
        if seen.first_fitted is None:
            text = f"not fitted by log t = {run.log_time[-1]:.6g}; bound log T = {limit:.6g}."
            return signs, self.seen(None, text, float(run.log_time[-1]), limit)
        if not np.isfinite(limit) or not seen.unfitted[0]:
            text = f"the start is fitted or not by no more than rounding; bound log T = {limit:.6g}."
            return signs, self.seen(None, text, float(run.log_time[seen.first_fitted]), limit, seen.first_fitted)
        text = f"fitted by log t = {run.log_time[seen.first_fitted]:.6g}; bound log T = {limit:.6g}."
        return signs, self.seen(True, text, float(run.log_time[seen.first_fitted]), limit, seen.first_fitted)


class OrthogonalReLU(Claim):
    """LL-TH.2, LL-LH.3 and LL-DH.1."""

    id, paper = "LL-TH.2", "LL"
    also = ("LL-DH.1", "LL-LH.3")
    statement = "ReLU, orthogonally separable: every KKT direction is optimal, f = phi(v+.x) - phi(v-.x) (printed: +)."
    falsifier = "a KKT direction, or the limit of a fitted flow, with another margin than 1/(2(|v+| + |v-|))"
    test = _TEST + "test_orthogonal_relu_margin_is_global"
    role = Role(place=2, about=f"{ORTHOGONAL}, once they are fitted")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        first = relu(facts), both_layers(facts), both_classes(facts)
        if any(c.holds is False for c in first):
            return first
        return (*first, orthogonal(facts), REACHED)

    def prediction(self, facts: Facts) -> Prediction | None:
        plus, minus = facts.class_margins
        if plus is None or minus is None:
            return None
        sizes = [float(np.linalg.norm(v.w)) for v in (plus, minus)]
        margin = 0.5 / sum(sizes)
        W = np.stack([v.direction * np.sqrt(size) for v, size in zip((plus, minus), sizes, strict=True)])
        network = Network(W, np.sqrt(sizes) * [1.0, -1.0], 0.0).normalized()
        text = (
            f"if fitted, f tends to phi(v+.x) - phi(v-.x), |v+| = {sizes[0]:.10g}, |v-| = {sizes[1]:.10g}; "
            f"normalised margin {margin:.10g}, the largest of any network."
        )
        bounds = {"|v+|": sizes[0], "|v-|": sizes[1], "|theta|^2 at q_min = 1": 2 * sum(sizes)}
        return self.promise(text, function=network.outputs, network=network, margin=margin, bounds=bounds)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        promised = self.prediction(facts)
        if promised is None or promised.margin is None or run.method != "flow":
            return ()
        limit = approach(seen, promised.margin, patience=100.0, upper=True)
        return (self.seen(limit.consistent, limit.text, limit.measured, promised.margin),)


class Ridges(Claim):
    """LL-I.2."""

    id, paper = "LL-I.2", "LL"
    statement = "A flow can branch only on a ridge, a kink that both sides leave; none if all y_i y_j x_i.x_j >= 0."
    falsifier = "a ridge met on data where the sufficient test holds"
    test = _TEST + "test_a_ridge_is_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (no_branching(facts),)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        kinds, counts = np.unique(run.events["kind"], return_counts=True)
        met = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
        ridges, slides = int(met.get("ridge", 0)), int(met.get("slide", 0))
        crossed = int(met.get("activate", 0) + met.get("deactivate", 0))
        words = ", ".join(count(n, name) for n, name in ((crossed, "crossing"), (slides, "slide"), (ridges, "ridge")))
        text = f"{words} among {count(facts.net.p, 'neuron')}."
        where = None if not ridges else int(np.flatnonzero(run.events["kind"] == "ridge")[0])
        return (self.seen(ridges == 0, text, ridges, 0, where),)


CLAIMS: tuple[Claim, ...] = (
    LateConvergence(),
    NearZero(),
    Conserved(),
    NeuronThatLives(),
    OrthogonalReLU(),
    Ridges(),
)
