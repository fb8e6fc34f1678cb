"""What the training experiments of SBG share: the net of the paper, its training by SGD, and what is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dynamics import Trajectory, agreement, agreement_entrance, descend
from ..problem import Dataset, Network, Problem, initialize
from ..problem._arrays import Array
from ._base import Choice, Numbers

SLOPE = Choice("slope of the leaky ReLU", "0.2", "not given; the theorems hold for every slope between 0 and 1")
OUTPUT = Choice("size v of the fixed output weights", "1/sqrt(2k), that is 0.1 for 100 neurons", "not given")


def start(data: Dataset, scale: float, seed: int, parameters: Mapping[str, Any]) -> Problem:
    """Return the problem of the paper: k neurons of each sign, second layer fixed, mean logistic loss."""
    net = initialize(data.d, int(parameters["width"]), "two-sign", scale, seed, float(parameters["slope"]))
    return Problem(data, net, train="first")


def train(problem: Problem, step: float, epochs: list[int], seed: int, until_loss: float | None = None) -> Trajectory:
    """Train by SGD with batch size 1 and record after the epochs given; stop when all is right and the loss small."""
    data = problem.data

    def enough(_: int, net: Network) -> bool:
        q = net.margins(data)
        return until_loss is not None and bool(q.min() > 0) and problem.log_loss_of(q) < np.log(until_loss)

    marks = [data.n * epoch for epoch in epochs]
    return descend(
        problem, "sgd", step=step, epochs=epochs[-1], batch=1, seed=seed, record=marks, callback=enough, progress=False
    )


def spread_epochs(last: int, count: int) -> list[int]:
    """Return about ``count`` epochs from 0 to ``last``, dense at the beginning.

    >>> spread_epochs(100, 6)
    [0, 1, 3, 10, 32, 100]
    """
    if last < count:
        return list(range(last + 1))
    return sorted({0, *np.geomspace(1, last, count - 1).round().astype(int).tolist()})


def accuracy(net: Network, data: Dataset) -> float:
    """Share of the points that get the right sign."""
    return float((net.margins(data) > 0).mean())


def angle(v: npt.ArrayLike, w: npt.ArrayLike) -> Array:
    """Angle in degrees between vectors along the last axis; exact for small ones too.

    >>> angle([1.0, 0.0], [[1.0, 1.0], [-3.0, 0.0]]).round(12).tolist()
    [45.0, 180.0]
    """
    v, w = (np.asarray(x, dtype=np.float64) for x in (v, w))
    v, w = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (v, w))
    far, near = np.linalg.norm(v - w, axis=-1), np.linalg.norm(v + w, axis=-1)
    return np.asarray(np.degrees(2.0 * np.arctan2(far, near)))


def largest_turn(one: Network, other: Network) -> float:
    """Largest angle in degrees between a neuron of one net and the same neuron of the other."""
    return float(angle(one.directions, other.directions).max())


def weights(net: Network) -> Array:
    """First layer at its real size."""
    return net.weights()[0]


def rebuilt(W: npt.ArrayLike, slope: float) -> Network:
    """Return a net from its stored first layer, up to the size of the output weights: the sign of f is the same.

    >>> rebuilt([[1.0, 0.0], [0.0, 1.0]], 0.2).a
    array([ 1., -1.])
    """
    rows = np.asarray(W, dtype=np.float64)
    return Network(rows, np.repeat([1.0, -1.0], len(rows) // 2), slope)


def regimes(run: Trajectory) -> Numbers:
    """Look along a run for agreement: times, shares of neurons in the perfect region, disagreements, accuracy.

    ``entrance`` is the time of the first record from which on all are in the perfect agreement region (inf: never).
    """
    data, nets = run.problem.data, list(run.networks())
    found = [agreement(data, net) for net in nets]
    entrance = agreement_entrance(run, perfect=True)
    return {
        "time": run.time,
        "share_w": np.array([one.share_w for one in found]),
        "share_u": np.array([one.share_u for one in found]),
        "disagreements": np.array([float(one.disagreements) for one in found]),
        "accuracy": np.array([accuracy(net, data) for net in nets]),
        "entrance": float("inf") if entrance is None else float(run.time[entrance]),
    }


def thinned(run: Trajectory, count: int) -> Trajectory:
    """Keep about so many records, evenly chosen, the first and the last among them."""
    kept = np.unique(np.linspace(0, len(run) - 1, count).astype(int))
    names = ("log_time", "log_loss", "directions", "log_norms", "log_outs", "signs")
    return replace(run, **{name: getattr(run, name)[kept] for name in names})
