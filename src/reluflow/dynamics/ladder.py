"""Many flows side by side: a fixed draw at decreasing scales, and a fixed network perturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..problem import Interrupted, Network, Problem, ProblemError, Undecided, require_problem, time_left
from ..problem import time_limit as within
from ..problem.checks import is_number
from ..problem.types import Array
from .flow.flow import Until, flow
from .trajectory import Trajectory

#: A prediction of f / |theta|^H: a network, whose normalised function is taken, or a function of points.
Predicted = Network | Callable[[Array], Array]


@dataclass(frozen=True, eq=False, repr=False)
class Ladder:
    r"""The ends of several flows, compared with a prediction.

    Attributes
    ----------
    problem : Problem
        The problem whose draw was used.
    log_scales : ndarray, shape (k,)
        Logarithm of the scale of each start; for `perturb` of the size of the perturbation.
    margins : ndarray, shape (k,)
        Normalised margin at the end (nan where the flow could not be followed).
    errors : ndarray, shape (k,)
        :math:`\sup_x |f(x)/|\theta|^H - f^\infty(x)| / \sup_x |f^\infty(x)|` over the points asked for; nan without a
        prediction.
    networks : tuple of Network or None
        The ends.
    notes : tuple of str
        Why a flow could not be followed, empty where it could.
    """

    problem: Problem
    log_scales: Array
    margins: Array
    errors: Array
    networks: tuple[Network | None, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [f"{'log scale':>12}  {'margin':>14}  {'error':>10}"]
        for s, m, e, note in zip(self.log_scales, self.margins, self.errors, self.notes, strict=True):
            lines.append(f"{s:>12.6g}  {m:>14.10g}  {e:>10.3g}{'  ' + note if note else ''}")
        return "\n".join(lines)


def ladder(
    problem: Problem,
    scales: Iterable[float] | None = None,
    *,
    log_scales: Iterable[float] | None = None,
    prediction: Predicted | None = None,
    points: npt.ArrayLike | None = None,
    until: Until | None = None,
    rtol: float = 1e-9,
    jobs: int = 1,
    time_limit: float | None = None,
) -> Ladder:
    """Run the same draw at several scales of initialisation.

    Theorems about small scale fix the draw and ask for "sigma small enough" without saying how small; a run at one
    scale can neither confirm nor refute them, a ladder shows where the limit changes.

    Parameters
    ----------
    problem : Problem
        Its network gives the draw ``(W, a)``; its own scale is not used (of a frozen second layer it is kept).
    scales, log_scales : iterable of float
        Factors on the draw, or their logarithms.
    prediction : Network or callable, optional
        The predicted limit of ``f / |theta|^H``.
    points : array_like of shape (m, d), optional
        Where to compare functions; default: the samples and their mirror images.
    until : Until, optional
        When to stop each flow; default: smallest margin 1000.
    rtol : float
        Tolerance of the flows.
    jobs : int
        How many to run at once.
    time_limit : float, optional
        Most seconds to spend; the notes of runs that were not done in time say so.

    Returns
    -------
    Ladder

    Examples
    --------
    >>> from reluflow import Dataset, initialize
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> draw = Problem(data, initialize(2, 6, "balanced", 1.0, seed=0, signs=[1, -1] * 3))
    >>> ladder(draw, [1e-2, 1e-6]).margins.round(4)
    array([0.584, 0.584])
    """
    if (scales is None) == (log_scales is None):
        raise ProblemError("ladder needs either scales= or log_scales=.")
    require_problem(problem)
    logs = _logs(scales, "scales") if log_scales is None else np.array(_listed(log_scales, "log_scales"))
    if logs.size == 0:
        raise ProblemError("ladder needs at least one scale.")
    starts = [problem.net.with_log_scale(float(s)) for s in logs]
    with within(time_limit):
        return _compare(problem, logs, starts, prediction, points, until, rtol, jobs)


def perturb(
    problem: Problem,
    sizes: Iterable[float],
    *,
    log_norm: float = 3.0,
    seed: int = 0,
    prediction: Predicted | None = None,
    points: npt.ArrayLike | None = None,
    until: Until | None = None,
    rtol: float = 1e-9,
    jobs: int = 1,
    time_limit: float | None = None,
) -> Ladder:
    """Start near a given network, large, and see where the flow goes (LL-T5.6).

    Near a local maximum of the margin, and large enough, the flow converges to a direction close by with the same
    margin. The network of the problem is scaled to norm ``e^log_norm`` and every weight is perturbed by a Gaussian of
    the given size relative to that norm, the same draw for all sizes; balanced neurons stay balanced.

    Parameters
    ----------
    problem : Problem
        Its network is the direction to be tried.
    sizes : iterable of float
        Relative sizes of the perturbation.
    log_norm : float
        Logarithm of the norm to start from.
    seed : int
        Seed of the perturbation.
    prediction, points, until, rtol, jobs, time_limit
        As for `ladder`; the default prediction is the network itself.

    Returns
    -------
    Ladder
        With the logarithms of ``sizes`` as ``log_scales``.
    """
    require_problem(problem)
    logs = _logs(sizes, "sizes")
    unit = problem.net.normalized(problem.train)
    rng = np.random.default_rng(seed)
    noise_W, noise_a = rng.normal(size=unit.W.shape), rng.normal(size=unit.a.shape)
    total = float(np.hypot(np.linalg.norm(noise_W), np.linalg.norm(noise_a)))
    even = np.abs(np.linalg.norm(unit.W, axis=1) - np.abs(unit.a)) <= 1e-12
    starts = []
    for size in np.exp(logs) / total:
        W = unit.W + size * noise_W
        a = np.where(even, np.where(unit.a < 0, -1, 1) * np.linalg.norm(W, axis=1), unit.a + size * noise_a)
        frozen = problem.train == "first"
        starts.append(Network(W, unit.a if frozen else a, unit.slope, log_norm, 0.0 if frozen else None))
    with within(time_limit):
        return _compare(problem, logs, starts, unit if prediction is None else prediction, points, until, rtol, jobs)


def _compare(
    problem: Problem,
    logs: Array,
    starts: list[Network],
    prediction: Predicted | None,
    points: npt.ArrayLike | None,
    until: Until | None,
    rtol: float,
    jobs: int,
) -> Ladder:
    from joblib import Parallel, delayed

    where = np.vstack([problem.data.X, -problem.data.X]) if points is None else np.asarray(points, dtype=np.float64)
    stop = Until(margin=1000.0) if until is None else until
    want = None if prediction is None else _function(prediction, where, problem)
    end = time.time() + time_left()  # other processes do not know our limit
    ends: list[tuple[Network | None, str]] = []
    halted = False
    try:
        tasks = (delayed(_end)(problem.replace(net=net), stop, rtol, end) for net in starts)
        ends.extend(Parallel(n_jobs=jobs, return_as="generator")(tasks))
    except (KeyboardInterrupt, Interrupted):
        halted = True
        ends += [(None, "interrupted")] * (len(starts) - len(ends))
    margins, errors = np.full(logs.size, np.nan), np.full(logs.size, np.nan)
    for k, (net, note) in enumerate(ends):
        if net is None or note:
            continue
        margins[k] = net.normalized_margin(problem.data, problem.train)
        if want is not None:
            errors[k] = np.abs(_function(net, where, problem) - want).max() / np.abs(want).max()
    found = Ladder(problem, logs, margins, errors, tuple(net for net, _ in ends), tuple(note for _, note in ends))
    if halted:
        raise Interrupted("interrupted; the runs that were done are kept.", found)
    return found


def _end(problem: Problem, stop: Until, rtol: float, end: float) -> tuple[Network | None, str]:
    """Last network of a flow, and what went wrong; ``end`` is the latest moment."""
    left = None if end == np.inf else max(end - time.time(), 1e-9)
    try:
        return flow(problem, stop, rtol=rtol, time_limit=left, progress=False).final, ""
    except Interrupted:
        raise
    except Undecided as exc:
        return (exc.partial.final if isinstance(exc.partial, Trajectory) else None), str(exc)


def _function(source: Predicted, points: Array, problem: Problem) -> Array:
    """``f / |theta|^H`` at the points."""
    if not isinstance(source, Network):
        return np.asarray(source(points), dtype=np.float64)
    mantissa, log_factor = source.scaled_outputs(points)
    power = 1 if problem.train == "first" else 2
    return np.asarray(mantissa * np.exp(log_factor - power * source.log_norm(problem.train)))


def _logs(values: Iterable[float] | None, name: str) -> Array:
    numbers = np.array(_listed(values, name))
    if not (numbers > 0).all():
        raise ProblemError(f"{name} must be positive numbers; for scales no double can hold give log_scales.")
    return np.asarray(np.log(numbers))


def _listed(values: Iterable[float] | None, name: str) -> list[float]:
    try:
        return [_number(v, name) for v in ([] if values is None else values)]
    except TypeError:
        raise ProblemError(f"{name} must be a list of numbers, e.g. [1e-2, 1e-4], not {values!r}.") from None


def _number(value: object, name: str) -> float:
    if not is_number(value) or not np.isfinite(value):  # type: ignore[call-overload]
        raise ProblemError(f"{name} must be finite numbers, not {value!r}.")
    return float(value)  # type: ignore[arg-type]
