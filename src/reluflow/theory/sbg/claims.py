"""Linear teachers and a frozen second layer: the statements of SBG, checked, predicted and watched."""

from __future__ import annotations

import numpy as np

from ...dynamics import Measures, Trajectory
from ...dynamics.accuracy import margin_rounding, rounding
from ...dynamics.measures import since
from ...margins import AgreementMargin, agreement_margin, clusters, linearity
from ...problem import NotSeparable, Stopped, Undecided
from ..approach import STALLED, approach, worst_drop
from ..base import Claim, Condition, Observation, Prediction, Role, assume
from ..conditions import above, frozen, leaky, logistic, paired, separable, separator
from ..facts import Facts, once
from ..ll.numbers import LARGE
from .numbers import StepBound, critical, equal_slope_outlier, pairs, par_program, step_bound
from .steps import holds as steps_hold
from .steps import inequalities

_TEST = "tests/theory/sbg/test_claims.py::"

FITTED = assume("nL < log 2 at some time (SBG-A6.1)", "it is an event of the run; monitored, not predicted.")
AGREES = assume(
    "one NAR for ever after", "no finite run shows 'for ever'; constant patterns at its end are looked for."
)


def _kv(facts: Facts) -> tuple[int, float]:
    found = pairs(facts.net)
    assert found is not None  # a condition of every claim that asks
    return found


@once
def _program(facts: Facts) -> AgreementMargin | None:
    return par_program(facts.data, facts.net.slope)


@once
def _critical(facts: Facts) -> tuple[float, float] | None:
    return critical(facts.data)


def _setting(facts: Facts) -> tuple[Condition, ...]:
    return frozen(facts), leaky(facts), paired(facts), logistic(facts), separable(facts)


class StepsOfSgd(Claim):
    """SBG-T4.1."""

    id, paper = "SBG-T4.1", "SBG"
    statement = "SGD with any step reaches every loss eps within M(n, eps) = O(n^4/eps^2) steps."
    falsifier = "a run of more than M steps that never has L <= eps, or a step that breaks inequality (i) or (ii)"
    test = f"{_TEST}test_doctored_steps_are_flagged"
    role = Role(place=1)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return _setting(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        found = self.bound(facts, 0.1, 0.1)
        return {f"{name} (step 0.1, eps 0.1)": getattr(found, name) for name in ("C1", "C2", "C3", "M")}

    def bound(self, facts: Facts, step: float, eps: float) -> StepBound:
        """Evaluate M for a step and a loss; see `StepBound`."""
        k, v = _kv(facts)
        best = separator(facts)
        assert best is not None
        R_0 = float(np.exp(facts.net.log_norms.max()))
        norm = float(np.linalg.norm(best.w))
        data = facts.data
        return step_bound(data.n, float(data.norms.max()), norm, facts.net.slope, k, v, R_0, step, eps)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        best, step, how = separator(facts), run.settings.get("step"), run.settings
        if run.method not in ("sgd", "gd") or not isinstance(step, (int, float)) or not step > 0 or best is None:
            return ()
        single = run.method == "sgd"
        plain = how.get("schedule", "fixed") == "fixed" and how.get("dtype", "float64") == "float64"
        if not plain or (single and how.get("batch", 1) != 1) or facts.loss.name != "logistic":
            return (
                self.seen(None, "the statement is about fixed steps in double precision and batches of one sample."),
            )
        steps, found = inequalities(run, best.w, _kv(facts)[1], float(step), single), []
        if steps.pairs:
            text = f"{steps.pairs} single steps; worst excess of (i) {steps.norm:.1e}, of (ii) {steps.overlap:.1e}."
            where = None if steps_hold(steps) else steps.where
            found.append(self.seen(steps_hold(steps), text, (steps.norm, steps.overlap), (0.0, 0.0), where))
        return (*found, *(self._within(facts, run, float(step)) if single else ()))

    def _within(self, facts: Facts, run: Trajectory, step: float) -> list[Observation]:
        """Whether each loss was reached within its bound."""
        mean_loss = run.loss / (facts.problem.weight * facts.data.n)
        taken, found = run.time / step, []
        for eps in (0.1, 0.01, 0.001):
            M = self.bound(facts, step, eps).M
            below = np.flatnonzero(mean_loss <= eps)
            if below.size:
                needed = float(taken[below[0]])
                text = f"L <= {eps:g} after at most {needed:.0f} steps, bound {M:.6g}."
                found.append(self.seen(needed <= M * (1 + 1e-9), text, needed, M, int(below[0])))
            elif taken[-1] > M:
                text = f"L > {eps:g} at all records although {taken[-1]:.0f} steps exceed the bound {M:.6g}."
                found.append(self.seen(False, text, float(taken[-1]), M))
        return found


class ClusteredIsLinear(Claim):
    """SBG-T5.1 and SBG-T5.1s."""

    id, paper = "SBG-T5.1", "SBG"
    also = ("SBG-T5.1s", "SBG-C6.1")
    statement = "Where |(w-u).x| >= 2r|x| (sharp: > (1-a)/(1+a) r|x|), r the cluster radius, sign f is that of (w-u).x."
    falsifier = "a leaky network and a point in the region where the signs differ"
    test = f"{_TEST}test_linear_region_on_random_networks"
    role = Role(place=2)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return leaky(facts), paired(facts)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.problem.train != "first" or not np.isfinite(run.log_norm).all():
            return ()
        data = facts.data
        inside = np.zeros((2, len(run)))
        wrong = None
        for k, net in enumerate(run.networks()):
            both = clusters(net)
            ahead = data.X @ (both.plus - both.minus)
            # Where it is rounding of the neurons, which may cancel, it has no sign.
            size = data.norms * (np.linalg.norm(both.plus) + np.linalg.norm(both.minus))
            lead = np.where(np.abs(ahead) > rounding(0.0) * data.d * size, np.sign(ahead), 0.0)
            out = np.sign(net.scaled_outputs(data.X)[0])
            for row, sharp in enumerate((False, True)):
                covered = both.in_linear_region(data.X, sharp=sharp)
                inside[row, k] = covered.mean()
                if (covered & (lead != out) & (lead != 0)).any():
                    wrong = (k, int(np.flatnonzero(covered & (lead != out) & (lead != 0))[0]))
        text = (
            f"at the end the sign is shown to be linear at {inside[0, -1]:.1%} of the samples (2r), "
            f"{inside[1, -1]:.1%} (sharp constant)"
        )
        final = linearity(run.final)
        exact = final.linear is True and final.evidence == "proved"
        text += ", and everywhere." if exact else f"; wedge around the boundary: sine {final.wedge:.3g}."
        return (self.seen(wrong is None, text, tuple(inside[:, -1]), (1.0, 1.0), wrong),)


class Agreeing(Claim):
    """SBG-D6.2 and SBG-D6.3."""

    id, paper = "SBG-D6.2", "SBG"
    also = ("SBG-D6.3",)
    statement = "Definition: NAR, the neurons of each sign agree on every sample by beta; PAR, with patterns y and -y."
    falsifier = "an agreement reported though one neuron was moved across a sample"
    test = f"{_TEST}test_agreement_notices_one_moved_neuron"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return frozen(facts), paired(facts)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        nar, par, last = seen.agreement_entrance(), since(seen.par), seen.agreements[-1]
        words = [
            f"{name} since log t = {run.log_time[k]:.6g}" if k is not None else f"not in {name} at the end"
            for name, k in (("NAR", nar), ("PAR", par))
        ]
        text = (
            f"{words[0]}, {words[1]}; beta = {last.beta:.6g}, {last.disagreements} disagreements, "
            f"share in PAR {last.share_w:.3g} (w), {last.share_u:.3g} (u)."
        )
        measured = (float(last.beta), float(last.share_w), float(last.share_u))
        return (self.seen(None, text, measured, where=(nar, par)),)


class LatePhase(Claim):
    """SBG-A6.1."""

    id, paper = "SBG-A6.1", "SBG"
    statement = "Late phase: nL < log 2 (printed: nL < 1), from then on for ever."
    falsifier = "a flow that is fitted at one record and not at a later one"
    test = f"{_TEST}test_late_phase_readings_differ"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (frozen(facts), logistic(facts))

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        total = run.log_loss - np.log(facts.problem.weight)
        printed = np.flatnonzero(total < 0.0)
        text = "as printed (nL < 1): " + (f"log t = {run.log_time[printed[0]]:.6g}" if printed.size else "never") + "; "
        first = seen.first_fitted
        if first is None:
            text += "as corrected (nL < log 2): not within this run."
            return (self.seen(None, text, float(np.exp(total[-1]))),)
        text += f"as corrected (nL < log 2): log t = {run.log_time[first]:.6g}"
        lost = np.flatnonzero(seen.unfitted[first:])
        if lost.size and run.method == "flow":
            k = int(first + lost[0])
            return (self.seen(False, text + f", lost again at record {k}.", float(np.exp(total[k])), np.log(2), k),)
        return (self.seen(True, text + ".", float(np.exp(total[-1])), float(np.log(2)), first),)


class AgreeingConverge(Claim):
    """SBG-T6.1, SBG-T6.1q and SBG-R1."""

    id, paper = "SBG-T6.1", "SBG"
    also = ("SBG-T6.1q", "SBG-C6.2", "SBG-R1")
    statement = "In one NAR for ever neurons of each sign merge; the limit solves the program of its patterns."
    falsifier = "constant patterns whose program is consistent, but radius or margin not tending to its solution"
    test = f"{_TEST}test_doctored_nar_limit_is_flagged"
    role = Role(place=3)

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (*_setting(facts), FITTED, AGREES)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        start, last = since(seen.in_last & seen.fitted), seen.agreements[-1]
        if start is None:
            return (self.seen(None, "the run does not end fitted and in one NAR.", float(last.beta)),)
        rival = equal_slope_outlier(facts.data, last.signs_w, last.signs_u)
        if rival is not None:
            text = f"these patterns cannot last: equal slopes at sample {rival} of antipodal data (SBG-R1)."
            return (self.seen(None, text, where=rival),)
        try:
            program = agreement_margin(facts.data, facts.net.slope, last.signs_w, last.signs_u)
        except Stopped:
            raise
        except (NotSeparable, Undecided) as error:
            return (self.seen(None, f"no limit with these patterns: {error}"),)
        if not program.consistent:
            text = f"the program of these patterns contradicts them at sample {program.worst}: they cannot last."
            return (self.seen(None, text, program.beta, 0.0, program.worst),)
        k, v = _kv(facts)
        limit = approach(seen, program.network_margin(k, v), upper=False)
        text = f"NAR since log t = {run.log_time[start]:.6g}: {limit.text}"
        return (
            self.seen(limit.consistent, text, limit.measured, program.network_margin(k, v), start),
            self._merging(seen, start),
        )

    def _merging(self, seen: Measures, start: int) -> Observation:
        """Whether the relative cluster radius goes on falling."""
        radius = seen.cluster_radius
        before = seen.earlier(4.0)
        text = f"cluster radius / |W|: {radius[start]:.3g} when the NAR began, {radius[-1]:.3g} at the end."
        if radius[-1] <= 1e-2:
            return self.seen(True, text, float(radius[-1]), 0.0)
        stalled = before is not None and before >= start and radius[-1] > STALLED * radius[before]
        return self.seen(False if stalled else None, text, float(radius[-1]), 0.0)


class CriticalBeta(Claim):
    """SBG-V."""

    id, paper = "SBG-V", "SBG"
    statement = "V_beta^+ and V_beta^- are empty exactly for beta above beta_crit^+, beta_crit^-."
    falsifier = "a vector in V_beta for a beta above beta_crit"
    test = f"{_TEST}test_beta_crit_against_random_vectors"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (frozen(facts),)

    def bounds(self, facts: Facts) -> dict[str, float]:
        found = _critical(facts)
        return {} if found is None else {"beta_crit^+": found[0], "beta_crit^-": found[1]}


class PerfectAgreement(Claim):
    """SBG-T6.2."""

    id, paper = "SBG-T6.2", "SBG"
    also = ("PAR-QP",)
    statement = "A NAR with V_beta empty and margin above sqrt(k) a v R_x is the PAR; the limit solves PAR-QP."
    falsifier = "all four conditions seen in a run that is not in PAR or tends to another margin"
    test = f"{_TEST}test_doctored_par_run_is_flagged"
    role = Role(
        place=4, about="a frozen second layer whose neurons of each sign agree on every point", nearest_for="frozen"
    )

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        setting = _setting(facts)
        if any(c.holds is False for c in setting):
            return setting
        program = _program(facts)
        if program is None:
            return (*setting, Condition("PAR-QP solvable", None, "numerical", why="the program was not solved."))
        why = f"the solution has the signs of perfect agreement by {program.beta:.10g} at sample {program.worst}."
        consistent = Condition(
            "PAR-QP consistent", program.consistent, "numerical", program.beta, 0.0, program.worst, why
        )
        wide = above(
            "margin large enough, (3) in the limit",
            program.gamma_phi,
            program.slope * program.radius,
            "gamma_phi against slope times radius",
        )
        name = "V_beta empty at the predicted beta, (4)"
        if facts.data.X.size > LARGE and not (program.consistent and wide.holds):
            empty = Condition(name, None, "numerical", why="not evaluated: the data are large and the answer is no.")
        elif (crit := _critical(facts)) is None:
            empty = Condition(name, None, "numerical", why="beta_crit is undecided.")
        else:
            empty = above(name, program.beta, max(crit), "beta of the PAR limit")
        return (*setting, FITTED, AGREES, consistent, wide, empty)

    def bounds(self, facts: Facts) -> dict[str, float]:
        program, crit = _program(facts), _critical(facts)
        if program is None:
            return {}
        k, v = _kv(facts)
        found = {
            "gamma_phi": program.gamma_phi,
            "alpha R_x": program.slope * program.radius,
            "beta_PAR": program.beta,
            "norm ratio |w|/|u|": program.norm_ratio,
            "margin that forces the PAR": float(np.sqrt(k)) * program.slope * v * program.radius,
        }
        return found if crit is None else {**found, "beta_crit^+": crit[0], "beta_crit^-": crit[1]}

    def prediction(self, facts: Facts) -> Prediction | None:
        program = _program(facts)
        if program is None:
            return None
        k, v = _kv(facts)
        w, u = (x / np.linalg.norm(x) for x in (program.w, program.u))
        margin = program.network_margin(k, v)
        normal = program.direction
        text = (
            f"all positive neurons turn to {np.round(w, 6).tolist()}, all negative ones to {np.round(u, 6).tolist()}; "
            f"normalised margin {margin:.10g}, linear boundary."
        )
        return self.promise(
            text,
            function=lambda X: np.asarray(np.asarray(X, dtype=np.float64) @ normal),
            directions=np.where(facts.signs[:, None] > 0, w, u),
            margin=margin,
        )

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        program, crit = _program(facts), _critical(facts)
        if program is None or crit is None or run.method != "flow":
            return ()
        k, v = _kv(facts)
        needed = float(np.sqrt(k)) * program.slope * v * program.radius
        tail = since(seen.in_last & seen.fitted & (seen.beta > max(crit)) & (seen.smoothed > needed))
        target = program.network_margin(k, v)
        if tail is None:
            text = (
                f"(1) to (4) are not seen at the end: fitted {bool(seen.fitted[-1])}, NAR {bool(seen.nar[-1])}, "
                f"smoothed margin {seen.smoothed[-1]:.6g} (needs > {needed:.6g}), beta {seen.beta[-1]:.6g} (needs > "
                f"{max(crit):.6g})."
            )
            return (self.seen(None, text, float(seen.normalized_margin[-1]), target),)
        if not seen.par[tail:].all():
            text = f"(1) to (4) hold since log t = {run.log_time[tail]:.6g}, but the neurons are not in PAR."
            last = seen.agreements[-1]
            return (self.seen(False, text, (float(last.share_w), float(last.share_u)), (1.0, 1.0), tail),)
        limit = approach(seen, target)
        text = f"PAR since log t = {run.log_time[since(seen.par) or 0]:.6g}; {limit.text}"
        return (self.seen(limit.consistent, text, limit.measured, target, tail),)


class Lipschitz(Claim):
    """SBG-L1."""

    id, paper = "SBG-L1", "SBG"
    statement = "|f_W(x) - f_W'(x)| <= sqrt(2k) v |x| |W - W'| (printed: 2 v |x| |W - W'|, too small for k > 2)."
    falsifier = "two first layers and a point that break it"
    test = f"{_TEST}test_lipschitz_constant_as_printed_fails"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return frozen(facts), paired(facts)

    def bounds(self, facts: Facts) -> dict[str, float]:
        k, v = _kv(facts)
        radius = float(facts.data.norms.max())
        return {"Lipschitz constant": float(np.sqrt(2 * k)) * v * radius, "as printed": 2 * v * radius}


class SmoothedMarginGrows(Claim):
    """SBG-P-mono."""

    id, paper = "SBG-P-mono", "SBG"
    sources = ("lyu-li",)
    statement = "Once nL < log 2 the smoothed margin never decreases along the flow, and it stays below the margin."
    falsifier = "a fitted record with a smaller smoothed margin than the one before, or above the normalised margin"
    test = f"{_TEST}test_doctored_smoothed_margin_is_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        degree = 2 if facts.problem.train == "both" else 1
        why = f"the network is homogeneous of degree {degree} in what is trained."
        return (Condition("homogeneous network", True, "proved", why=why),)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        if run.method != "flow":
            return ()
        if seen.first_fitted is None:
            return (self.seen(None, f"the run ends before nL < l(0), n = {facts.data.n}."),)
        tail = seen.smoothed[seen.first_fitted :]
        error = seen.error.smoothed_margin[seen.first_fitted :]
        drop, fallen, k = worst_drop(tail, error)
        above = tail - seen.normalized_margin[seen.first_fitted :]
        top = int(np.argmax(above - error))
        fine = fallen <= 0 and bool(above[top] <= error[top] + margin_rounding(facts.data, run.p))
        over = float(max(above[top], 0.0))
        text = (
            f"smoothed margin {tail[0]:.6g} to {tail[-1]:.8g} over {tail.size} fitted records; largest decrease "
            f"{drop:.1e}; never above the margin by more than {over:.1e}."
        )
        where = None if fine else seen.first_fitted + (k if fallen > 0 else top)
        return (self.seen(fine, text, (drop, over), (0.0, 0.0), where),)


CLAIMS: tuple[Claim, ...] = (
    StepsOfSgd(),
    ClusteredIsLinear(),
    Agreeing(),
    LatePhase(),
    AgreeingConverge(),
    CriticalBeta(),
    PerfectAgreement(),
    Lipschitz(),
    SmoothedMarginGrows(),
)

#: Statements that cannot be put to the test, with the reason.
NOT_COMPUTABLE: dict[str, str] = {
    "SBG-T6.1 (for all t)": "that a flow stays in one NAR for ever is no event of a finite run; its end is looked at.",
}
