"""What a run shows about limits and monotone quantities (LL, SBG).

A limit is never proved by a run. It is refuted when the smoothed margin, which cannot decrease, has passed it; it is
inconsistent when the margin has stopped moving somewhere else; it is consistent when the margin is within a hundredth
of it and moving on, or within 1e-4. Between these a run says nothing yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...dynamics import Trajectory
from ...margins import kkt
from ...problem import ProblemError, Stopped, Undecided
from ...problem.types import Array
from ..accuracy import accuracy, margin_rounding

CLOSE = 1e-2  # a margin gap of this size, relative, counts as arrived: gaps close like 1/q_min only
_SOLVED = 1e-9  # relative accuracy of the limits predicted
_STALLED = 0.97  # a gap that kept this share of itself has not moved
_TINY = 1e-4  # below this a gap need not close any further
_LATE = 100.0  # margins q below this say little about a limit


@dataclass(frozen=True, eq=False)
class Series:
    """Curves along a run.

    Attributes
    ----------
    q_min : ndarray of shape (T,)
    q_abs : ndarray of shape (T,)
        Largest ``|q_i|``.
    margin, smoothed : ndarray of shape (T,)
        Normalised and smoothed margin; nan where the network is zero.
    fitted, unfitted : ndarray of bool, shape (T,)
        The sum of the losses is below ``l(0)``, where the smoothed margin is positive, or above it; neither where the
        error of the run leaves it open.
    first : int or None
        First fitted record.
    """

    q_min: Array
    q_abs: Array
    margin: Array
    smoothed: Array
    fitted: npt.NDArray[np.bool_]
    unfitted: npt.NDArray[np.bool_]
    first: int | None


@lru_cache(maxsize=4)
def series(run: Trajectory) -> Series:
    """Curves along a run, computed once."""
    problem = run.problem
    with np.errstate(over="ignore", invalid="ignore"):
        q = run.margins()
    live = np.isfinite(run.log_norm)
    margin = np.full(len(run), np.nan)
    for k in np.flatnonzero(live):
        margin[k] = run.network(int(k)).normalized_margin(problem.data, problem.train)
    smoothed = np.where(live, run.smoothed_margin(), np.nan)
    # A sample that no neuron sees keeps the loss at l(0) exactly; rounding must not pass for less.
    above = run.log_loss - np.log(problem.weight) - problem.loss.log_value(0.0)
    error = accuracy(run).log_loss
    fitted, where = above < -error, np.flatnonzero(above < -error)
    first = int(where[0]) if where.size else None
    return Series(q.min(axis=1), np.abs(q).max(axis=1), margin, smoothed, fitted, above > error, first)


@dataclass(frozen=True)
class Approach:
    """Whether a run tends to a limit of the normalised margin."""

    consistent: bool | None
    measured: float | None
    extrapolated: float | None
    text: str


def approach(run: Trajectory, target: float, patience: float = 4.0, upper: bool = False) -> Approach:
    """Compare the margin of a run with the limit predicted for it.

    Parameters
    ----------
    run : Trajectory
    target : float
        The predicted limit of the normalised margin.
    patience : float
        By which factor the smallest margin must have grown without the gap moving to call the run stalled.
    upper : bool
        Whether the margin itself can never exceed the target.
    """
    s = series(run)
    if s.first is None:
        return Approach(None, None, None, "the run ends before the data are fitted.")
    end = float(s.margin[-1])
    if s.fitted[-1] and not s.q_min[-1] > 0:
        return Approach(False, end, None, "the recorded loss is below l(0), but a sample is misclassified.")
    # Of networks a margin that none exceeds, up to rounding; of flows one that cannot be passed and come back to.
    error = margin_rounding(run.problem.data, run.p) if upper else accuracy(run).smoothed_margin[s.first :]
    beyond = float(np.nanmax((s.margin if upper else s.smoothed)[s.first :] - error))
    if beyond > target * (1 + _SOLVED) and (run.method == "flow" or upper):
        what = "normalised" if upper else "smoothed"
        return Approach(
            False, end, None, f"the {what} margin reached {beyond:.8g}, above the predicted limit {target:.8g}."
        )
    gap, q = (target - end) / target, float(s.q_min[-1])
    limit = _extrapolate(s)
    seen = f"margin {end:.8g} at q_min = {q:.4g}, predicted {target:.8g}"
    if limit is not None:
        seen += f"; extrapolated in 1/q_min: {limit:.8g}"
    before = np.flatnonzero(s.fitted & (s.q_min <= q / patience) & (s.q_min > 0))
    judged = bool(before.size) and q >= _LATE
    then = (target - float(s.margin[before[-1]])) / target if judged else np.inf
    if judged and abs(gap) > _TINY and gap >= _STALLED * then:
        return Approach(False, end, limit, seen + f"; the gap no longer closes ({then:.3g} before, {gap:.3g} now).")
    if abs(gap) <= CLOSE:
        return Approach(True, end, limit, seen + ".")
    if not judged:
        return Approach(None, end, limit, seen + "; the run is too short to tell.")
    return Approach(None, end, limit, seen + f"; still approaching (gap {then:.3g} before, {gap:.3g} now).")


def _extrapolate(s: Series) -> float | None:
    """Limit of a straight line in 1/q_min through the last records over which q_min at least doubles."""
    q = s.q_min[-1]
    last = np.flatnonzero(s.fitted & (s.q_min > 0) & (s.q_min >= q / 4))
    if last.size < 3 or s.q_min[last].max() < 2 * s.q_min[last].min():
        return None
    return float(np.polyfit(1 / s.q_min[last], s.margin[last], 1)[1])


def worst_drop(values: Array, error: Array) -> tuple[float, float, int]:
    """Decrease from one entry to the next that exceeds their errors by most, by how much (not: <= 0), and where."""
    if values.size < 2:
        return 0.0, 0.0, 0
    drop = values[:-1] - values[1:]
    over = drop - error[:-1] - error[1:]
    k = int(np.argmax(over))
    return float(max(drop[k], 0.0)), float(over[k]), k + 1


def residual(run: Trajectory, record: int) -> tuple[float, float] | None:
    """KKT residual and imbalance of the direction at a record; None where that network does not classify all.

    At finite time margins spread like 20/q_min before the loss no longer sees the larger ones, and neurons bound for a
    kink are about 1/q_min away from it.
    """
    s = series(run)
    q = float(s.q_min[record])
    if not q > 0:
        return None
    try:
        found = kkt(
            run.problem.data,
            run.network(record),
            run.problem.train,
            active_tol=min(0.9, 20 / q),
            kink_tol=min(1e-2, 0.1 / q),
        )
    except Stopped:
        raise
    except (ProblemError, Undecided):
        return None
    return found.residual, found.balance or 0.0


def at_rest(run: Trajectory) -> float | None:
    r"""Return a KKT residual at which a run rests without being stationary; None if it does not.

    Along the flow :math:`d \log \tilde\gamma \ge H \tan^2 \! \angle(\theta, \theta')\, d \log |\theta|`, and the
    residual is below the tangent. So while it stays above :math:`\rho` and q_min grows tenfold, the smoothed margin
    gains about :math:`\rho^2 \log 10`; a run that gains less than half of that is no flow to a KKT direction.
    """
    s = series(run)
    first = earlier(run, 10.0)
    if first is None:
        return None
    sampled = [residual(run, int(k)) for k in np.unique(np.linspace(first, len(run) - 1, 6).astype(int))]
    if any(found is None for found in sampled):
        return None
    low = min(found[0] for found in sampled if found is not None)
    gained = float(np.log(s.smoothed[-1] / s.smoothed[first]))
    needed = low**2 * float(np.log(s.q_min[-1] / s.q_min[first]))
    return low if gained < 0.5 * needed else None


def earlier(run: Trajectory, factor: float) -> int | None:
    """Last fitted record at which the smallest margin was below its final value by the factor."""
    s = series(run)
    found = np.flatnonzero(s.fitted & (s.q_min > 0) & (s.q_min <= s.q_min[-1] / factor))
    return int(found[-1]) if found.size else None


def function_error(run: Trajectory, target: Array) -> float | None:
    """Largest relative difference of the normalised outputs on the data from the predicted ones.

    ``target`` holds the outputs of the unit-norm limit at the samples.
    """
    last = run.final
    if not np.isfinite(last.log_norm(run.problem.train)):
        return None
    out = last.normalized(run.problem.train).outputs(run.problem.data.X)
    return float(np.abs(out - target).max() / np.abs(target).max())
