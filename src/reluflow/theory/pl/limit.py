"""The limit of training on orthogonally separable data (Phuong and Lampert, and what sharpens it)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...dynamics import Measures
from ...dynamics.accuracy import margin_rounding
from ...problem import Network
from ...problem.types import Array, Flags
from ...problem.words import count
from ..approach import shrinking
from ..base import ORTHOGONAL, Claim, Condition, Observation, Prediction, Role, assume
from ..conditions import (
    alive,
    flow_conditions,
    main_theorem,
    not_on_ray,
    orthogonal,
    small_enough,
    two_groups,
)
from ..facts import Facts
from ..ml.numbers import guaranteed
from .numbers import margin_pair

_DOCTORED = "tests/theory/test_doctored.py::test_doctored_runs_are_flagged"

#: Relative accuracy of the margins of the classes.
_SOLVED = 1e-9

# -- the limit as numbers and as a network -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LimitFunction:
    """``factor (phi(w+.x) - phi(w-.x))`` (PL-C1); None for a class without samples."""

    factor: float
    plus: Array | None
    minus: Array | None

    def __call__(self, points: npt.ArrayLike) -> Array:
        """Return the values at the points, shape (n,)."""
        X = np.asarray(points, dtype=np.float64)
        up, down = (0.0 if w is None else np.maximum(X @ w, 0.0) for w in (self.plus, self.minus))
        return np.asarray(self.factor * (up - down))


def limit_function(facts: Facts, factor: float) -> LimitFunction:
    """Return the limit of PL-C1, up to the factor."""
    return LimitFunction(factor, *(None if one is None else one.w for one in facts.class_margins))


def limit_network(facts: Facts) -> Network:
    """One neuron a class with q_i = w_+-.x_i: the KKT point of PL-LC1 (the split inside a group is free)."""
    rows, outs = [], []
    for sign, solution in zip((1.0, -1.0), facts.class_margins, strict=True):
        if solution is not None:
            size = sqrt(1 / solution.margin)
            rows.append(solution.direction * size)
            outs.append(sign * size)
    return Network(np.array(rows), np.array(outs))


def limit_directions(facts: Facts) -> Array:
    """Class max-margin directions for the neurons of the two groups, zero for the others."""
    directions = np.zeros_like(facts.net.W)
    for members, solution in zip(facts.groups[:2], facts.class_margins, strict=True):
        if solution is not None:
            directions[members] = solution.direction
    return directions


class Correction(NamedTuple):
    """How the limits of PL-T1' are approached, to first order in 1/log t.

    ``|W_J|^2 / log t = |w| (1 + (log log t + c)/log t)`` with the c of each group (nan for an empty class), and
    ``margin = limit - rate/log t``, for a small start; a large one adds what `misalignment` measures.
    """

    plus: float
    minus: float
    margin_rate: float


def first_correction(facts: Facts) -> Correction | None:
    r"""Constants of the first correction; None where tight samples are degenerate or do not span their class.

    (What a group has orthogonal to its tight samples stays, adds to the norm, and is not known in advance.)

    The tight samples of a class share its loss like their multipliers, :math:`r e^{-q_i} = L p_i`,
    :math:`p = \alpha/\sum\alpha`. With :math:`|W_J|^2 |w| = \sum \alpha_i q_i` and :math:`t \log t\, L \to |w|/2`

    .. math:: |W_J|^2 = |w| (\log t + \log\log t + \log(2r/|w|) + H(p)), \qquad
              q_{\min} = \log t + \log\log t + \log(2r/|w|) - \log \max p .
    """
    total, norms, margins, found = margin_pair(facts).total, 0.0, [], []
    for sign, solution in zip((1, -1), facts.class_margins, strict=True):
        if solution is None:
            found.append(np.nan)
            continue
        members = facts.data.X[facts.data.y * sign > 0]
        if solution.degenerate or solution.rank < np.linalg.matrix_rank(members / np.abs(members).max()):
            return None
        p = solution.dual[solution.active] / solution.dual.sum()
        common = log(2 * facts.problem.weight * solution.margin)
        found.append(common - float(p @ np.log(p)))
        norms += found[-1] / solution.margin
        margins.append(common - log(p.max()))
    return Correction(found[0], found[1], (norms / total - min(margins)) / (2 * total))


def misalignment(seen: Measures, group: Flags) -> float:
    r"""Size that a group has in excess of what its function needs, in the limit.

    Within a group :math:`C = W W^T - a a^T` is constant (C-INV2), so :math:`|W^T a| = |a|^2 + \hat a^T C \hat a/2` for
    large a: the norm stays larger than for aligned neurons by :math:`-\hat a^T C \hat a/2`.
    """
    k, run = seen.all_trapped, seen.run
    with np.errstate(under="ignore"):
        W = np.exp(run.log_norms[k, group])[:, None] * run.directions[k, group]
        a = np.exp(run.log_outs[k, group])
        last = np.exp(run.log_outs[-1, group] - run.log_outs[-1, group].max())
    unit = last / np.linalg.norm(last)
    return float(((unit @ a) ** 2 - np.sum((unit @ W) ** 2)) / 2)


class MainTheorem(Claim):
    """PL-T1."""

    id = "PL-T1"
    paper = "PL"
    statement = "Every neuron becomes dead or parallel to the max-margin vector of its class (in the limit)."
    falsifier = "trapped neurons whose angle to w+ or w- stops shrinking as log t grows."
    test = _DOCTORED
    role = Role(place=1)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return main_theorem(facts)

    def prediction(self, facts: Facts) -> Prediction:
        groups = facts.groups
        text = (
            f"{count(groups.plus.size, 'neuron converges', 'neurons converge')} in direction to w+, "
            f"{groups.minus.size} to w-, {groups.dead.size} dead at the end; the split inside a group is not predicted."
        )
        # As printed the probability is that not all neurons die (PL-E10).
        sure = 1 - 2.0**-facts.net.p
        return self.promise(text, directions=limit_directions(facts), groups=groups, probability=sure)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        return direction_trends(self, facts, seen)


def direction_trends(claim: Claim, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
    """Whether ``1 - cos(w_j, w_+-)`` shrinks, for the worst neuron of each class."""
    run = seen.run
    if seen.all_trapped is None:
        j = int(np.argmin(seen.trapped[-1]))
        return (claim.seen(None, f"neuron {j} is not trapped by the end of the run: nothing is claimed of it."),)
    found, settled = [], seen.settled(facts.class_margins)
    for name, group, solution in zip(("w+", "w-"), seen.members(-1), facts.class_margins, strict=True):
        if solution is None or not group.any():
            continue
        # |u - w|^2 / 2 = 1 - cos, without cancellation
        error = (np.square(run.directions[seen.late][:, group] - solution.direction).sum(axis=2) / 2).max(axis=1)
        if not error.size:
            now = float((np.square(run.directions[-1, group] - solution.direction).sum(axis=1) / 2).max())
            text = f"1 - cos of the worst neuron with {name}: {now:.6g}; the run ends before every sample is fitted."
            found.append(claim.seen(None, text, now, 0.0, len(run) - 1))
            continue
        last = float(error[-1])
        found.append(shrinking(claim, seen, settled, f"1 - cos of the worst neuron with {name}", error, last, 0.0))
    return tuple(found) or (claim.seen(None, "every neuron is dead: nothing converges."),)


class Probability(Claim):
    """PL-T1p."""

    id = "PL-T1p"
    paper = "PL"
    statement = (
        "Over a symmetric draw, each class gets a neuron except with probability <= 2^-m+ + 2^-m-; else L stalls."
    )
    falsifier = (
        "a class without neurons whose loss falls below n_+- l(0), or draws that fail more often than the bound."
    )
    test = _DOCTORED
    role = Role(place=3, stall="a class to which no neuron turns stays unlearned")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        draw = assume("directions drawn symmetrically", "the network given is one draw; its law is not visible in it.")
        return (*flow_conditions(facts), orthogonal(facts), draw)

    def bounds(self, facts: Facts) -> dict[str, float]:
        plus, minus = int((facts.signs > 0).sum()), int((facts.signs < 0).sum())
        wanted = [m for m, there in ((plus, facts.data.positives.size), (minus, facts.data.negatives.size)) if there]
        p = facts.net.p
        return {
            "failure (as printed)": 2.0**-p,
            "failure (as corrected)": min(1.0, sum(2.0**-m for m in wanted)),
            "failure with fair signs": min(1.0, len(wanted) * 0.75**p),
        }

    def prediction(self, facts: Facts) -> Prediction:
        sure, failure = guaranteed(facts), self.bounds(facts)["failure (as corrected)"]
        text = (
            f"both classes get a neuron except with probability at most {failure:.3g}; in this draw the positive class "
            f"is sure of {count(sure.plus.size, 'neuron')} and the negative one of {count(sure.minus.size, 'neuron')}."
        )
        return self.promise(text, probability=1 - failure)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, data = seen.run, facts.data
        if seen.all_trapped is None:
            return (self.seen(None, "not every neuron is trapped by the end of the run."),)
        groups = seen.members(-1)
        empty = [
            members.size
            for members, group in zip((data.positives, data.negatives), groups, strict=True)
            if not group.any()
        ]
        floor = facts.problem.weight * float(facts.loss.value(0.0)) * sum(empty)
        if floor == 0:
            return (self.seen(True, "each class present has a neuron: the loss can vanish.", 0.0, 0.0),)
        measured = float(run.loss[-1])
        text = f"a class without neurons keeps its loss: {measured:.6g}, floor {floor:.6g}."
        kept = bool(run.log_loss[-1] >= log(floor) - seen.error.log_loss[-1])
        return (self.judged(seen, kept, text, measured, floor, len(run) - 1),)


class SharpLimit(Claim):
    """PL-T1'."""

    id = "PL-T1'"
    paper = "PL"
    statement = (
        "Once all neurons are trapped: margin, shares, norms, loss and stable rank tend to closed forms in |w+-|."
    )
    falsifier = "a run with all neurons trapped in which one of these quantities stays away from its limit."
    test = _DOCTORED
    role = Role(place=2, about=f"{ORTHOGONAL} and a small start", nearest_for="ReLU")
    sources = ("lyu-li", "ji-telgarsky")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*flow_conditions(facts), orthogonal(facts), not_on_ray(facts), small_enough(facts), alive(facts))

    def bounds(self, facts: Facts) -> dict[str, float]:
        pair = margin_pair(facts)
        found = {
            "margin": 1 / (2 * pair.total),
            "share_plus": pair.plus / pair.total,
            "stable_rank": pair.stable_rank,
            "nu_plus": pair.plus,
            "nu_minus": pair.minus,
            "loss_times_t_log_t": pair.total / 2,
        }
        for name, size in (("u_squared", pair.plus), ("z_squared", pair.minus)):
            if size:
                found[name] = 1 / (size * pair.total)
        rates = first_correction(facts)
        if rates is not None:
            found["margin_rate"] = rates.margin_rate
            found |= {
                name: value
                for name, value in (("nu_plus_constant", rates.plus), ("nu_minus_constant", rates.minus))
                if not np.isnan(value)
            }
        return found

    def prediction(self, facts: Facts) -> Prediction:
        b, factor = self.bounds(facts), 1 / (2 * margin_pair(facts).total)
        text = (
            f"the normalised margin tends to {b['margin']:.10g}, the share of the positive group to "
            f"{b['share_plus']:.10g}, the stable rank to {b['stable_rank']:.10g}, t log t times the loss to "
            f"{b['loss_times_t_log_t']:.10g}."
        )
        return self.promise(
            text,
            function=limit_function(facts, factor),
            directions=limit_directions(facts),
            groups=facts.groups,
            network=limit_network(facts).normalized(),
            margin=b["margin"],
        )

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run, b = seen.run, self.bounds(facts)
        if seen.all_trapped is None:
            return (self.seen(None, "not every neuron is trapped by the end of the run: nothing is claimed."),)
        late = seen.late
        groups, wanted = seen.members(-1), (facts.data.positives.size, facts.data.negatives.size)
        if any(w and not g.any() for w, g in zip(wanted, groups, strict=True)):
            return (self.seen(None, "a class ended without neurons: nothing is claimed of the whole."),)
        if late.size == 0:
            return (self.seen(None, "the run ends before every sample is clearly fitted."),)
        L = run.log_time[late]
        sizes = seen.log_group_norms[late]
        log_all = np.logaddexp.reduce(2 * run.log_norms[late], axis=1)
        with np.errstate(under="ignore"):
            values = {
                "margin": (seen.normalized_margin[late], b["margin"]),
                "share of the positive group": (np.exp(sizes[:, 0] - log_all), b["share_plus"]),
                "stable rank": (seen.stable_rank[late], b["stable_rank"]),
                "t log t loss": (np.exp(L + np.log(L) + run.log_loss[late]), b["loss_times_t_log_t"]),
            }
            for name, column in (("nu_plus", 0), ("nu_minus", 1)):
                if wanted[column]:
                    values[f"norm of the group over log t ({name})"] = (np.exp(sizes[:, column]) / L, b[name])
        size, settled = 2 * seen.error.sizes, seen.settled(facts.class_margins)
        together = float(seen.error.log_time[-1] + seen.error.log_loss[-1])
        observed = [
            shrinking(
                self,
                seen,
                settled,
                name,
                found - limit,
                float(found[-1]),
                limit,
                (together if name == "t log t loss" else size) * abs(limit),
            )
            for name, (found, limit) in values.items()
        ]
        if "margin_rate" in b:
            fitted = float((b["margin"] - values["margin"][0][-1]) * L[-1])
            excess = sum(misalignment(seen, group) for group in groups if group.any())
            rate = b["margin_rate"] + 2 * excess * b["margin"] ** 2
            text = f"the margin is {fitted:.4g}/log t below its limit; to first order {rate:.4g}/log t."
            # The next order is only smaller by log log t / log t: close is a sign of agreement, far apart is none.
            close = abs(fitted - rate) <= 0.2 * abs(rate)
            observed.append(self.seen(True if close else None, text, fitted, rate, len(run) - 1))
        return tuple(observed)


class Corollary(Claim):
    """PL-C1."""

    id = "PL-C1"
    paper = "PL"
    statement = "f(x)/|theta|^2 tends to u phi(w+.x) - z phi(w-.x), u = z = 1/(2(|w+| + |w-|)) with both groups alive."
    falsifier = "a point at which f/|theta|^2 stays away from that as log t grows."
    test = _DOCTORED
    role = Role(place=4)
    sources = ("lyu-li", "ji-telgarsky")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return SharpLimit().conditions(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        return {"u_and_z": 1 / (2 * margin_pair(facts).total)}

    def prediction(self, facts: Facts) -> Prediction:
        factor = self.bounds(facts)["u_and_z"]
        text = f"f(x)/|theta|^2 tends to {factor:.10g} (phi(w+.x) - phi(w-.x))."
        return self.promise(text, function=limit_function(facts, factor))

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        present = (facts.data.positives.size, facts.data.negatives.size)
        if seen.late.size == 0 or any(w and not g.any() for w, g in zip(present, seen.members(-1), strict=True)):
            return (self.seen(None, "the run does not reach the state that the statement is about."),)
        units = np.unique(
            np.vstack([facts.data.X / facts.data.norms[:, None], -facts.data.X / facts.data.norms[:, None]]), axis=0
        )
        units = units[:: max(1, len(units) // 200)]
        function = limit_function(facts, self.bounds(facts)["u_and_z"])
        limit = function(units)
        values = np.array([seen.run.network(int(k)).normalized_outputs(units) for k in seen.late])
        error = np.abs(values - limit).max(axis=1)
        worst, settled = int(np.argmax(np.abs(values[-1] - limit))), seen.settled(facts.class_margins)
        name = f"f/|theta|^2 at the worst of {len(units)} unit points"
        nothing = 2 * seen.error.sizes * float(np.abs(limit).max())
        return (shrinking(self, seen, settled, name, error, float(values[-1, worst]), float(limit[worst]), nothing),)


class KKTPoint(Claim):
    """PL-LC1."""

    id = "PL-LC1"
    paper = "PL"
    statement = (
        "W = u w+^T + z w-^T, a = |w+|u - |w-|z with |u|^2 = 1/|w+|, |z|^2 = 1/|w-| is a KKT point, q_i = w_+-.x_i."
    )
    falsifier = "a KKT residual of that network above rounding."
    test = "tests/theory/pl/test_claims.py::test_limit_network_is_a_kkt_point"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return two_groups(facts)

    def prediction(self, facts: Facts) -> Prediction:
        total = margin_pair(facts).total
        text = f"the network with one neuron a class is a KKT point with |theta|^2/2 = {total:.10g}."
        return self.promise(text, network=limit_network(facts), margin=1 / (2 * total), bounds={"kkt_value": total})


class GlobalOptimum(Claim):
    """PL-LC1'."""

    id = "PL-LC1'"
    paper = "PL"
    statement = (
        "No ReLU network of any width has a normalised margin above 1/(2(|w+| + |w-|)); the KKT point attains it."
    )
    falsifier = "any network with a larger normalised margin on the data."
    test = "tests/theory/pl/test_claims.py::test_limit_margin_is_the_global_one"
    role = Role(largest="largest_margin")

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return two_groups(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        total = margin_pair(facts).total
        return {"largest_margin": 1 / (2 * total), "kkt_value": total}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        top = self.bounds(facts)["largest_margin"]
        margins = np.nan_to_num(seen.normalized_margin, nan=-np.inf)
        k = int(np.argmax(margins))
        if margins[k] == -np.inf:  # a zero network has none
            return ()
        text = f"largest normalised margin seen: {margins[k]:.10g}, at most {top:.10g} is possible."
        kept = bool(margins[k] <= top * (1 + _SOLVED) + margin_rounding(facts.data, run.p))
        return (self.seen(kept, text, float(margins[k]), top, k),)


LIMITS: tuple[Claim, ...] = (
    MainTheorem(),
    Probability(),
    SharpLimit(),
    Corollary(),
    KKTPoint(),
    GlobalOptimum(),
)
