"""What every gradient flow of a two-layer network keeps, on any data and at any scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..dynamics import Measures, Trajectory
from ..dynamics.accuracy import rounding
from ..problem import check_time
from ..problem.types import Flags
from .base import Claim, Condition, Observation, when
from .conditions import balanced, both_layers
from .facts import Facts


class Balance(Claim):
    """C-INV1."""

    id = "C-INV1"
    paper = "PL"
    statement = "a_j^2 - |w_j|^2 is constant; where it is >= 0 and a_j(0) != 0, a_j never changes sign."
    falsifier = "a run in which a_j^2 - |w_j|^2 drifts by more than the integration error, or such an a_j changes sign."
    test = "tests/theory/test_doctored.py::test_doctored_runs_are_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (both_layers(facts),)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        drift, tol = seen.balance_drift, 4 * seen.error.sizes  # squares, now and at the start
        worst = int(np.argmax(drift))
        text = f"largest relative drift of a_j^2 - |w_j|^2: {drift[worst]:.3g} at {when(run.log_time[worst])}."
        found = [self.judged(seen, bool(drift[worst] <= tol), text, float(drift[worst]), tol, worst)]
        held = facts.net.log_outs >= facts.log_norms - rounding(facts.log_norms)
        held &= facts.signs != 0
        flipped = held & (run.signs != facts.signs).any(axis=0)
        j = int(np.argmax(flipped))
        text = f"neuron {j} changes the sign of its output." if flipped.any() else "no such a_j changes sign."
        found.append(self.judged(seen, not flipped.any(), text, int(flipped.sum()), 0, j if flipped.any() else None))
        return tuple(found)


class Pairs(Claim):
    """C-INV2."""

    id = "C-INV2"
    paper = "ML"
    statement = "While neurons j and k have the same active samples, w_j.w_k - a_j a_k is constant."
    falsifier = "two neurons with equal active sets between two records and a different w_j.w_k - a_j a_k."
    test = "tests/theory/test_doctored.py::test_doctored_runs_are_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (both_layers(facts),)

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        units = facts.data.X / facts.data.norms[:, None]
        worst, where, pairs, on = 0.0, None, 0, seen.error.kink
        steady = ~_changing(run) & np.isfinite(run.log_outs)
        before: tuple[Flags, Flags] | None = None
        for k in range(len(run)):
            check_time("going through the run")
            cosine = run.directions[k] @ units.T
            active = cosine > on
            clear = (active | (cosine < -on)).all(axis=1) & seen.error.followed(k)
            if before is not None:
                stable = steady[k] & clear & before[1] & (active == before[0]).all(axis=1)
                size, pair, count = _pair_drift(run, k, active, np.flatnonzero(stable))
                pairs += count
                if size > worst:
                    worst, where = size, (k, *pair)
            before = active, clear
        if not pairs:
            return (self.seen(None, "no two neurons had the same active samples over a step."),)
        tol = 4 * seen.error.sizes
        text = f"largest relative change of w_j.w_k - a_j a_k in a step: {worst:.3g} ({pairs} comparisons)."
        return (self.judged(seen, worst <= tol, text, worst, tol, where),)


def _changing(run: Trajectory) -> Flags:
    """Which neurons have an event in the step before a record, its ends included, shape (T, p)."""
    times, neurons = run.events["log_time"], run.events["neuron"]
    begun = np.zeros((len(run) + 2, run.p), dtype=np.int64)  # events begun, less those over
    np.add.at(begun, (np.searchsorted(run.log_time, times, "left"), neurons), 1)
    np.add.at(begun, (np.searchsorted(run.log_time, times, "right") + 1, neurons), -1)
    return np.asarray(np.cumsum(begun, axis=0)[: len(run)] > 0)


def _pair_drift(
    run: Trajectory, k: int, active: Flags, members: npt.NDArray[np.intp]
) -> tuple[float, tuple[int, int], int]:
    """Largest relative change of the invariant in step k, each neuron against the first one of its pattern."""
    leader: dict[bytes, int] = {}
    pairs = np.array([(leader.setdefault(active[j].tobytes(), j), j) for j in members.tolist()], dtype=np.intp)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]] if pairs.size else np.empty((0, 2), dtype=np.intp)
    if not len(pairs):
        return 0.0, (0, 0), 0
    first, other = pairs.T
    records = slice(k - 1, k + 1)
    U, log_w, log_a, signs = (x[records] for x in (run.directions, run.log_norms, run.log_outs, run.signs))
    sizes = np.maximum(log_w, log_a)
    top = (sizes[:, first] + sizes[:, other]).max(axis=0)
    inner = np.matmul(U[:, first, None, :], U[:, other, :, None])[..., 0, 0]
    sign = signs[:, first].astype(np.float64) * signs[:, other]
    weights, outs = log_w[:, first] + log_w[:, other] - top, log_a[:, first] + log_a[:, other] - top
    values = inner * np.exp(weights) - sign * np.exp(outs)
    change = np.nan_to_num(np.abs(values[1] - values[0]), nan=0.0)
    worst = int(np.argmax(change))
    return float(change[worst]), (int(first[worst]), int(other[worst])), len(pairs)


class Directions(Claim):
    """C-INV3."""

    id = "C-INV3"
    paper = "ML"
    statement = "From a balanced start a_j = s_j |w_j| for ever, so directions obey u' = s P_u D, (log|w|)' = s u.D."
    falsifier = "a run from a balanced start in which |a_j| and |w_j| part."
    test = "tests/theory/test_doctored.py::test_doctored_runs_are_flagged"

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        return (both_layers(facts), balanced(facts))

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:
        run = seen.run
        with np.errstate(invalid="ignore"):
            gap = np.abs(run.log_norms - run.log_outs)
        # A neuron that shrinks keeps the absolute balance; relative to its own size the error grows.
        with np.errstate(under="ignore", invalid="ignore"):
            shrunk = np.maximum.accumulate(run.log_norms, axis=0) - run.log_norms
            gap = np.nan_to_num(gap * np.exp(-2 * shrunk))
        k, j = divmod(int(np.argmax(gap)), run.p)
        tol = 2 * seen.error.sizes + float(gap[0].max())  # the start is balanced to rounding
        text = f"largest difference of log|a_j| and log|w_j|: {gap[k, j]:.3g}, neuron {j} at {when(run.log_time[k])}."
        return (self.judged(seen, bool(gap[k, j] <= tol), text, float(gap[k, j]), tol, (k, j)),)


INVARIANTS: tuple[Claim, ...] = (Balance(), Pairs(), Directions())
