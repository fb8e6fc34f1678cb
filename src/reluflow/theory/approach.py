"""Whether a run approaches a limit that a claim predicts.

A limit is never proved by a run, and there are two clocks in which it is looked for.

*Margins* (`approach`), in the clock q_min: a limit is refuted when the smoothed margin, which cannot decrease, has
passed it; it is inconsistent when the margin has stopped moving somewhere else; it is consistent when the margin is
within a hundredth of it and moving on, or within 1e-4. Between these a run says nothing yet.

*Anything else* (`trend`), in the clock log t: an error must fall at least like 1/sqrt(log t).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..dynamics import Measures
from ..dynamics.accuracy import margin_rounding
from ..dynamics.measures import EARLIEST
from ..problem.types import Array
from .base import Claim, Observation, when

CLOSE = 1e-2  # a margin gap of this size, relative, counts as arrived: gaps close like 1/q_min only
STALLED = 0.97  # a gap that kept this share of itself has not moved
_SOLVED = 1e-9  # relative accuracy of the limits predicted
_TINY = 1e-4  # below this a gap need not close any further
_LATE = 100.0  # margins q below this say little about a limit

#: An error that shrinks at all, if only like 1/sqrt(log t), passes; see `trend`.
_SLACK = 1.5
_FALLING = 0.9
_REACH = 16


# -- the normalised margin --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Approach:
    """Whether a run tends to a limit of the normalised margin."""

    consistent: bool | None
    measured: float | None
    text: str


def approach(seen: Measures, target: float, patience: float = 4.0, upper: bool = False) -> Approach:
    """Compare the margin of a run with the limit predicted for it.

    Parameters
    ----------
    seen : Measures
    target : float
        The predicted limit of the normalised margin.
    patience : float
        By which factor the smallest margin must have grown without the gap moving to call the run stalled.
    upper : bool
        Whether the margin itself can never exceed the target.
    """
    run, first, margin = seen.run, seen.first_fitted, seen.normalized_margin
    if first is None:
        return Approach(None, None, "the run ends before the data are fitted.")
    end = float(margin[-1])
    if seen.fitted[-1] and not seen.q_min[-1] > 0:
        return Approach(False, end, "the recorded loss is below l(0), but a sample is misclassified.")
    # Of networks a margin that none exceeds, up to rounding; of flows one that cannot be passed and come back to.
    error = margin_rounding(seen.data, run.p) if upper else seen.error.smoothed_margin[first:]
    beyond = float(np.nanmax((margin if upper else seen.smoothed)[first:] - error))
    if beyond > target * (1 + _SOLVED) and (run.method == "flow" or upper):
        what = "normalised" if upper else "smoothed"
        return Approach(False, end, f"the {what} margin reached {beyond:.8g}, above the predicted limit {target:.8g}.")
    gap, q = (target - end) / target, float(seen.q_min[-1])
    limit = _extrapolate(seen)
    words = f"margin {end:.8g} at q_min = {q:.4g}, predicted {target:.8g}"
    if limit is not None:
        words += f"; extrapolated in 1/q_min: {limit:.8g}"
    before = seen.earlier(patience)
    judged = before is not None and q >= _LATE
    then = (target - float(margin[before])) / target if judged else np.inf
    if judged and abs(gap) > _TINY and gap >= STALLED * then:
        return Approach(False, end, words + f"; the gap no longer closes ({then:.3g} before, {gap:.3g} now).")
    if abs(gap) <= CLOSE:
        return Approach(True, end, words + ".")
    if not judged:
        return Approach(None, end, words + "; the run is too short to tell.")
    return Approach(None, end, words + f"; still approaching (gap {then:.3g} before, {gap:.3g} now).")


def _extrapolate(seen: Measures) -> float | None:
    """Limit of a straight line in 1/q_min through the last records over which q_min at least doubles."""
    q = seen.q_min
    last = np.flatnonzero(seen.fitted & (q > 0) & (q >= q[-1] / 4))
    if last.size < 3 or q[last].max() < 2 * q[last].min():
        return None
    return float(np.polyfit(1 / q[last], seen.normalized_margin[last], 1)[1])


def at_rest(seen: Measures) -> float | None:
    r"""Return a KKT residual at which a run rests without being stationary; None if it does not.

    Along the flow :math:`d \log \tilde\gamma \ge H \tan^2 \! \angle(\theta, \theta')\, d \log |\theta|`, and the
    residual is below the tangent. So while it stays above :math:`\rho` and q_min grows tenfold, the smoothed margin
    gains about :math:`\rho^2 \log 10`; a run that gains less than half of that is no flow to a KKT direction.
    """
    first = seen.earlier(10.0)
    if first is None:
        return None
    sampled = [seen.residual(int(k)) for k in np.unique(np.linspace(first, len(seen.run) - 1, 6).astype(int))]
    if any(found is None for found in sampled):
        return None
    low = min(found[0] for found in sampled if found is not None)
    gained = float(np.log(seen.smoothed[-1] / seen.smoothed[first]))
    needed = low**2 * float(np.log(seen.q_min[-1] / seen.q_min[first]))
    return low if gained < 0.5 * needed else None


def worst_drop(values: Array, error: Array) -> tuple[float, float, int]:
    """Decrease from one entry to the next that exceeds their errors by most, by how much (not: <= 0), and where."""
    if values.size < 2:
        return 0.0, 0.0, 0
    drop = values[:-1] - values[1:]
    over = drop - error[:-1] - error[1:]
    k = int(np.argmax(over))
    return float(max(drop[k], 0.0)), float(over[k]), k + 1


# -- any other quantity -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trend:
    """How a quantity approaches the limit predicted for it.

    Attributes
    ----------
    kept : bool or None
        None: the run does not reach far enough to tell.
    error : float
        Distance from the limit at the end.
    rate : float
        c such that the error is ``c / log t`` at the end.
    exponent : float
        Slope of log error against log log t over the late records (nan if there are too few).
    """

    kept: bool | None
    error: float
    rate: float
    exponent: float


def trend(log_time: Array, error: Array, settled: float = EARLIEST, nothing: float = 1e-9) -> Trend:
    """Whether an error tends to 0, at the slow rates there are: between 1/sqrt(log t) and 1/log t.

    What is below ``nothing``, the error of the run, counts as 0.

    Either ``error * sqrt(log t)`` at the end is no larger than in the first quarter (of log t), or, for an error that
    changed its sign there, the error at the end is smaller than in the second quarter. A run that has only just begun
    to approach a limit does not refute it: `kept` is None unless log t is 16 times what it was when things ``settled``.

    >>> times = np.linspace(10, 1000, 50)
    >>> trend(times, 3 / times).kept, trend(times, 0.3 + 0 * times).kept, trend(times[:2], 3 / times[:2]).kept
    (True, False, None)
    """
    if error.size == 0:
        return Trend(None, np.nan, np.nan, np.nan)
    flips = log_time[1:][(np.sign(error[1:]) * np.sign(error[:-1]) < 0) & (log_time[1:] <= log_time[-1] / 2)]
    settled = max(settled, float(flips.max(initial=0.0)))  # an error that changes its sign grows again before it falls
    error = np.abs(error)
    last, end = float(error[-1]), float(log_time[-1])
    some = error > 0
    exponent = float(np.polyfit(np.log(log_time[some]), np.log(error[some]), 1)[0]) if some.sum() > 2 else np.nan
    if last <= nothing:
        return Trend(True, last, last * end, exponent)
    early = log_time <= end / 4
    if early.sum() < 3:
        return Trend(None, last, last * end, exponent)
    envelope = float((error[early] * np.sqrt(log_time[early])).max())
    middle = (log_time >= end / 4) & (log_time <= end / 2)
    falling = bool(last <= _FALLING * error[middle].max(initial=0.0))
    kept = falling or bool(last * np.sqrt(end) <= _SLACK * envelope)
    return Trend(kept or (False if end >= _REACH * settled else None), last, last * end, exponent)


def shrinking(
    claim: Claim,
    seen: Measures,
    settled: float,
    name: str,
    error: Array,
    measured: float,
    limit: float,
    nothing: float | None = None,
) -> Observation:
    """Whether an error over the late records tends to 0; ``nothing``: how well what it is made of is known."""
    run, floor = seen.run, 2 * seen.error.sizes if nothing is None else nothing
    found = trend(run.log_time[seen.late], error, settled, floor)
    text = f"{name}: {measured:.6g}, limit {limit:.6g}, error {found.error:.3g} = {found.rate:.3g}/log t"
    text += f" at {when(run.log_time[-1])} (falls like (log t)^{found.exponent:.2g})."
    if found.error <= floor:
        text = f"{name}: {measured:.6g}, the limit to rounding, at {when(run.log_time[-1])}."
    if found.kept is None:
        text = f"{name}: {measured:.6g}, limit {limit:.6g}; the run does not reach far enough to tell."
    return claim.judged(seen, found.kept, text, measured, limit, len(run) - 1)
