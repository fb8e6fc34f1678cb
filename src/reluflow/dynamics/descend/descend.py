"""Training as people run it: gradient descent, stochastic gradient descent, Adam."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ...data import takes_data
from ...problem import OutOfTime, Problem, ProblemError, Undecided
from ...problem import time_limit as within
from ...problem.checks import is_number
from ..trajectory import Trajectory
from .keep import Checkpoint, Records, geometric
from .run import Callback, Run
from .step import DType, Method, Plan, Schedule

_TOLERANCE = 1e-12  # margins below this leave the forces unchanged to 12 digits


@takes_data()
def descend(
    problem: Problem,
    method: Method = "gd",
    *,
    step: float | None = None,
    steps: int | None = None,
    epochs: int | None = None,
    schedule: Schedule = "fixed",
    batch: int | None = None,
    seed: int = 0,
    until_loss: float | None = None,
    subgradient: float | None = None,
    dtype: DType = "float64",
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
    record: int | Sequence[int] = 200,
    fast_forward: bool | float = False,
    callback: Callback | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_minutes: float = 5.0,
    time_limit: float | None = None,
    progress: bool = True,
) -> Trajectory:
    r"""Train a network by discrete steps.

    One step of gradient descent moves :math:`\theta` by :math:`-\eta \nabla L(\theta)`,

    .. math:: w_j \leftarrow w_j + \eta\, a_j D_j, \quad a_j \leftarrow a_j + \eta\, w_j \cdot D_j, \qquad
              D_j = r \sum_i g_i\, y_i\, \phi'(w_j \cdot x_i)\, x_i, \quad g_i = -\ell'(q_i),

    the second one only where both layers are trained. The time of an iterate is the sum of the steps before it, so
    that iteration k stands beside the flow at time :math:`k \eta`.

    Parameters
    ----------
    problem : Problem
        Data, start, loss, reduction, and which layers are trained. Or data and how to draw a network,
        ``descend(X, y, width=50, step=0.1, steps=100)``: see `as_problem`; ``seed`` seeds the draw too.
    method : {"gd", "sgd", "adam"}
        Full gradient; batches, drawn without replacement in an order that is new in every epoch; Adam (with full
        gradients, or with batches where ``batch`` is given).
    step : float, optional
        The step :math:`\eta`. Default: 0.001 for ``adam``, else :math:`0.1 / (r\, g(0) \sum_i |x_i|)`, a tenth of the
        shortest time in which a tiny neuron can grow e-fold.
    steps, epochs : int
        How long: iterations, or passes over the data. One of the two is needed.
    schedule : {"fixed", "loss-scaled", "loss-log-scaled"}
        :math:`\eta`, :math:`\eta / L`, or :math:`\eta / (L\,(1 + \log^+ \frac1L))`; L is the loss of the batch for
        ``sgd``. Forces are divided by the loss in the log domain, so that a loss of 1e-300 is no obstacle.
    batch : int, optional
        Batch size; the last batch of an epoch may be smaller. With ``reduction="mean"`` a batch contributes its own
        mean, with ``"sum"`` its sum.
    seed : int
        Decides the order of the samples, and nothing else.
    until_loss : float, optional
        Stop as soon as the training loss is not larger (with batches: looked at after every epoch).
    subgradient : float, optional
        The value of :math:`\phi'(0)`, in [0, 1]. Default: the slope of the activation, which is 0 for ReLU.
    dtype : {"float64", "float32"}
        Precision of the weights and of the matrix products.
    betas, epsilon : (float, float), float
        Constants of Adam.
    record : int or sequence of int
        Number of records, spread geometrically over the iterations, or the iterations to record, in ascending order.
        The start and the last iterate are always recorded.
    fast_forward : bool or float
        As long as every margin is surely below 1e-12 (or the number given), jump along the exact solution of the
        recursion from one change of an activation to the next. Needs ``method="gd"``.
    callback : callable, optional
        ``callback(iteration, network)`` is called at every record; the run stops if it returns True.
    checkpoint : path, optional
        File that keeps the run every ``checkpoint_minutes`` and at its end. Started again with the same arguments, a
        run that was killed goes on from there and gives the same trajectory bit for bit (on the same machine with the
        same number of threads; jumps of ``fast_forward`` that were under way are made anew).
    checkpoint_minutes : float
    time_limit : float, optional
        Most seconds to spend.
    progress : bool
        Show loss and time left; on a terminal only.

    Returns
    -------
    Trajectory
        ``settings`` holds the arguments, the ``iteration`` of every record, how many iterations ``fast_forward``
        jumped over, and why the run ``stopped``: ``"steps"``, ``"loss"``, ``"callback"`` or ``"interrupted"`` (then
        ``settings["interrupted"]`` is True: Ctrl-C returns what is there).

    Raises
    ------
    Undecided
        The weights overflowed: the step is too large; or the time was used up (`OutOfTime`). ``partial`` is the
        trajectory so far.

    Notes
    -----
    Where both layers are trained by ``gd`` or ``sgd`` the update is linear in the weights of a neuron, so neurons too
    small for a double carry an exponent of their own, and any ``log_scale`` can be trained from. The other methods
    refuse such a start.

    Examples
    --------
    >>> from reluflow import Dataset, Network
    >>> problem = Problem(Dataset([[2, 1], [-3, -1]], [1, -1]), Network([[1, 0], [0, 1]], [1, -1], log_scale=-3))
    >>> run = descend(problem, step=0.1, steps=500, record=4)
    >>> run.settings["iteration"], run.time.round(9).tolist()
    ([0, 1, 22, 500], [0.0, 0.1, 2.2, 50.0])
    >>> bool((run.margins()[-1] > 0).all())
    True
    """
    batch = _check_batch(problem, method, batch)
    plan = Plan(
        _choice("method", method, Method),
        _default_step(problem, method) if step is None else _positive("step", step),
        _choice("schedule", schedule, Schedule),
        _check_steps(problem, steps, epochs, batch),
        batch,
        _whole("seed", seed, 0),
        problem.net.slope if subgradient is None else _between("subgradient", subgradient, 0.0, 1.0),
        _choice("dtype", dtype, DType),
        _check_betas(betas),
        _positive("epsilon", epsilon),
    )
    if method == "adam" and schedule != "fixed":
        raise ProblemError(
            f"schedule = {schedule!r} does not go with Adam, whose steps do not depend on the size of the gradient; "
            "use schedule='fixed', or method='gd'."
        )
    tolerance = _check_forward(fast_forward, method)
    marks = _check_record(record, plan.steps)
    settings = _settings(plan, until_loss, marks, tolerance)
    until = -math.inf if until_loss is None else math.log(_positive("until_loss", until_loss))
    keep = Checkpoint(checkpoint, _positive("checkpoint_minutes", checkpoint_minutes), problem, settings)
    run = Run(problem, plan, Records(problem, len(marks) + 1), marks, keep, until, callback)
    with within(time_limit):
        stopped = run.whole(tolerance, progress)
    del settings["marks"]
    result = run.records.trajectory(plan, run.early, stopped, settings)
    if stopped == "diverged":
        why = f"the step {plan.step:g} is too large for this problem, try a smaller one."
        if plan.schedule != "fixed":
            why = "this schedule leaves the range of doubles in the end, stop before (until_loss=1e-300), or step less."
        raise Undecided(
            f"the weights overflowed after iteration {run.records.last}, up to which the run is kept; {why}",
            result,
        )
    if stopped == "time":
        more = "the same call goes on from the checkpoint" if checkpoint is not None else "a larger time limit goes on"
        raise OutOfTime(
            f"the time limit ended after iteration {run.records.last} of {plan.steps}; what was found so far is kept, "
            f"and {more}.",
            result,
        )
    return result


def _default_step(problem: Problem, method: str) -> float:
    return 1e-3 if method == "adam" else 0.1 / (problem.speed * float(problem.data.norms.sum()))


def _settings(plan: Plan, until_loss: float | None, marks: list[int], tolerance: float) -> dict[str, Any]:
    """Describe the run in plain numbers and strings."""
    found: dict[str, Any] = {
        "method": plan.method,
        "step": plan.step,
        "schedule": plan.schedule,
        "steps": plan.steps,
        "batch": plan.batch,
        "seed": plan.seed,
        "subgradient": plan.subgradient,
        "dtype": plan.dtype,
        "until_loss": None if until_loss is None else float(until_loss),
        "tolerance": tolerance,
        "marks": marks,
    }
    if plan.method == "adam":
        found |= {"betas": list(plan.betas), "epsilon": plan.epsilon}
    return found


# -- what the user may say -------------------------------------------------------------------------------


def _choice(name: str, value: Any, choices: Any) -> Any:
    allowed = get_args(choices)
    if not isinstance(value, str) or value not in allowed:
        raise ProblemError(f"{name} = {value!r} is not known; choose one of {', '.join(map(repr, allowed))}.")
    return value


def _positive(name: str, value: Any) -> float:
    if not is_number(value) or not math.isfinite(value) or value <= 0:
        raise ProblemError(f"{name} must be a positive number, not {value!r}.")
    return float(value)


def _between(name: str, value: Any, low: float, high: float) -> float:
    if not is_number(value) or not low <= value <= high:
        raise ProblemError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}.")
    return float(value)


def _whole(name: str, value: Any, least: int) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ProblemError(f"{name} must be an integer, at least {least}, not {value!r}.")
    return int(value)


def _check_batch(problem: Problem, method: Any, batch: Any) -> int | None:
    if method == "sgd" and batch is None:
        raise ProblemError("method 'sgd' needs a batch size, e.g. batch=1; method 'gd' takes all samples.")
    if batch is None:
        return None
    if method == "gd":
        raise ProblemError(f"batch = {batch!r} does not go with method 'gd', which takes all samples; use 'sgd'.")
    size = _whole("batch", batch, 1)
    if size > problem.data.n:
        raise ProblemError(f"batch = {size} is larger than the data, which have {problem.data.n} samples.")
    return size


def _check_steps(problem: Problem, steps: Any, epochs: Any, batch: int | None) -> int:
    if (steps is None) == (epochs is None):
        raise ProblemError("descend needs either steps= (iterations) or epochs= (passes over the data).")
    each = -(-problem.data.n // batch) if batch else 1
    count = _whole("steps", steps, 0) if epochs is None else _whole("epochs", epochs, 0) * each
    if count > 2**53:
        raise ProblemError(f"{count} iterations are more than can be counted; at most {2**53} are allowed.")
    return count


def _check_betas(betas: Any) -> tuple[float, float]:
    try:
        first, second = betas
    except (TypeError, ValueError):
        raise ProblemError(f"betas must be two numbers in [0, 1), not {betas!r}.") from None
    for beta in (first, second):
        if not is_number(beta) or not 0 <= beta < 1:
            raise ProblemError(f"betas must be two numbers in [0, 1), not {betas!r}.")
    return float(first), float(second)


def _check_forward(fast_forward: Any, method: str) -> float:
    if fast_forward is False or fast_forward is None:
        return 0.0
    if method != "gd":
        raise ProblemError(
            f"fast_forward needs method 'gd', not {method!r}: only full gradients have the closed form it jumps along."
        )
    if fast_forward is True:
        return _TOLERANCE
    if not is_number(fast_forward) or not 0 < fast_forward <= 1e-3:
        raise ProblemError(
            f"fast_forward must be True, False, or the margin up to which to jump (at most 1e-3), not {fast_forward!r}."
        )
    return float(fast_forward)


def _check_record(record: Any, steps: int) -> list[int]:
    """Return the iterations to record."""
    if isinstance(record, (int, np.integer)) and not isinstance(record, bool):
        if record < 2:
            raise ProblemError(f"record = {record} is too few: the start and the end are two records already.")
        return geometric(steps, int(record))
    try:
        wanted = np.asarray(record)
    except (TypeError, ValueError):
        wanted = np.empty(0)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu" or not wanted.size:
        raise ProblemError(f"record must be a number of records or a list of iterations, not {record!r}.")
    if (np.diff(wanted) <= 0).any() or wanted[0] < 0 or wanted[-1] > steps:
        raise ProblemError(
            f"the iterations to record must ascend strictly from 0 to at most {steps} (the number of steps); "
            f"given: {wanted[0]} to {wanted[-1]}{', not ascending' if (np.diff(wanted) <= 0).any() else ''}."
        )
    return sorted({0, *wanted.tolist(), steps})
