"""Two digits learned from tiny weights: alignment, then growth (ML-F5, ML-F10, ML-F11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..dynamics import Trajectory, align, cosines, descend, flow, group_cosines
from ..problem import Dataset, Problem
from ..problem._arrays import Array
from ..report._panels import COLOURS, band, curve, heat, image
from ..sectors import class_sums
from ._base import Expectation, Numbers, Tell, at_least, at_most, between, equals
from ._ml_shared import crossing, problem_of, spread, thinned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALIGNED = 0.95  # cosine of the mean neurons with the class sums from which they count as aligned
_SMALL = 0.01  # margins up to which the exact early phase is compared with descent
_ROWS = 1000  # of the Gram matrix at a time
_SHOWN = 60  # images a class in the picture of the Gram matrix


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Descend on all images; the exact early phase of the same start; the whole flow on some of the images."""
    raw = thinned(parameters["data"])
    data = raw.centered()
    problem = problem_of(data, parameters, parameters["seed"])
    steps = int(parameters["steps"])
    trained = _descent(problem, parameters, lambda k: tell(0.9 * k / steps))
    plus, minus = class_sums(data)
    found: Numbers = {
        "name": data.name,
        "samples": data.n,
        "d": data.d,
        "positive": int(data.positives.size),
        "scale": parameters["scale"],
        "step": parameters["step"],
        "speed": problem.speed,
        "sum_norms": [float(np.linalg.norm(plus)), float(np.linalg.norm(minus))],
        "cos_sums": float(plus @ minus / np.linalg.norm(plus) / np.linalg.norm(minus)),
        "pairs": _pairs(data),
        "gram": _gram(data),
        "descent": {**_curves(trained), "start_cosine": float(np.nanmax(np.abs(_to_sums(trained)[0])))},
        "images": _images(raw, trained),
        "early": _early(problem, trained),
    }
    tell(0.93)
    found["few"] = _few(parameters, trained)
    return found


def _descent(problem: Problem, parameters: Mapping[str, Any], told: Any, dtype: Any = None) -> Trajectory:
    return descend(
        problem,
        step=float(parameters["step"]),
        steps=int(parameters["steps"]),
        dtype=dtype or parameters["dtype"],
        record=spread(int(parameters["steps"]), int(parameters["records"])),
        callback=lambda k, _net: told(k),
        progress=False,
    )


def _to_sums(run: Trajectory) -> Array:
    return cosines(run, *class_sums(run.problem.data))


def _curves(run: Trajectory) -> Numbers:
    """Alignment of every group, loss, stable rank, squared spectral norm at the records; times are not included."""
    every = _to_sums(run)
    groups = [np.where(run.signs == sign, every, np.nan) for sign in (1, -1)]
    singular = np.array([np.linalg.norm(W, 2) ** 2 for W in run.W])
    return {
        "iteration": run.settings["iteration"],
        "cosine": group_cosines(run, *class_sums(run.problem.data)),
        "lowest": np.stack([np.nanmin(group, axis=1) for group in groups], axis=1),
        "highest": np.stack([np.nanmax(group, axis=1) for group in groups], axis=1),
        "loss": run.loss,
        "rank": run.stable_rank(),
        "norm": singular,
    }


def _pairs(data: Dataset) -> Numbers:
    """Share of pairs of different images whose inner product has the sign of the product of their labels."""
    right = np.zeros((2, data.n))  # of the same class, of different ones
    for first in range(0, data.n, _ROWS):
        signed = data.signed[first : first + _ROWS] @ data.signed.T > 0
        same = data.y[first : first + _ROWS, None] == data.y
        right[0, first : first + _ROWS] = (signed & same).sum(axis=1)
        right[1, first : first + _ROWS] = (signed & ~same).sum(axis=1)
    plus, minus = data.positives.size, data.negatives.size
    counts = plus * (plus - 1) + minus * (minus - 1), 2 * plus * minus
    kept = right.sum(axis=1) - [data.n, 0]  # an image and itself are no pair
    return {"same": float(kept[0] / counts[0]), "other": float(kept[1] / counts[1]), "all": float(kept.sum() / sum(counts))}


def _gram(data: Dataset) -> Array:
    """Inner products of some images, the positive class first."""
    some = [index[np.linspace(0, index.size - 1, _SHOWN).astype(np.intp)] for index in (data.positives, data.negatives)]
    X = data.X[np.concatenate(some)]
    return np.asarray((X @ X.T).round(2))


def _images(raw: Dataset, run: Trajectory) -> Numbers:
    W, signs, centred = run.W[-1], run.signs[-1], run.problem.data
    return {
        "mean": raw.X.mean(axis=0).round(4),
        "data": [centred.X[index].mean(axis=0).round(4) for index in (centred.positives, centred.negatives)],
        "neurons": [W[signs == sign].mean(axis=0).round(5) for sign in (1, -1)],
    }


def _early(problem: Problem, trained: Trajectory) -> Numbers:
    """Exact directions in the limit of small weights, at the iterations before a margin reaches 0.01."""
    exact = align(problem)
    until = exact.valid_until(_SMALL)
    iteration = np.array(trained.settings["iteration"])
    kept = trained.time <= until
    times = trained.time[kept]
    path = Trajectory(
        problem,
        np.log(times, out=np.full_like(times, -np.inf), where=times > 0),
        np.zeros_like(times),  # the loss, which is its start up to 0.01
        exact.directions(times),
        exact.log_norms(times),
        exact.log_outs(times),
        exact.output_signs(times),
    )
    return {
        "until": float(until / trained.settings["step"]),
        "last_event": float(exact.last_event.max() / trained.settings["step"]),
        "iteration": iteration[kept],
        "cosine": group_cosines(path, *class_sums(problem.data)),
    }


def _few(parameters: Mapping[str, Any], trained: Trajectory) -> Numbers:
    """Descent and the whole flow from the same start on some of the images."""
    data = thinned(parameters["data"], int(parameters["flow_samples"])).centered()
    problem = problem_of(data, parameters, parameters["seed"])
    descent = trained if data.n == trained.problem.data.n else _descent(problem, parameters, lambda _: None, "float64")
    end, step = float(descent.time[-1]), float(parameters["step"])
    exact = flow(problem, {"time": end}, rtol=1e-6, progress=False)
    drop = flow(problem, {"loss": 0.99 * float(descent.loss[0]), "time": end}, rtol=1e-6, progress=False)
    sums = class_sums(data)
    return {
        "samples": data.n,
        "descent": {
            "iteration": descent.settings["iteration"],
            "loss": descent.loss,
            "cosine": group_cosines(descent, *sums),
        },
        "flow": {
            "iteration": exact.time / step,
            "loss": exact.loss,
            "cosine": group_cosines(exact, *sums),
            "drop": float(drop.time[-1] / step) if drop.loss[-1] <= 0.991 * drop.loss[0] else float("nan"),
        },
    }
