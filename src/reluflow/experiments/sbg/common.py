"""What the training experiments of SBG share: the net of the paper and its training by SGD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...dynamics import Trajectory, descend
from ...problem import Dataset, Network, Problem, initialize
from ...report.panels import COLOURS
from ..core.experiment import Choice

#: Colours of w and u neurons: grey (black in SBG-F9) and yellow in the paper.
NEURONS = ("#444444", COLOURS[4])
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
        if until_loss is None:
            return False
        q = net.margins(data)
        return bool(q.min() > 0 and problem.log_loss_of(q) < np.log(until_loss))

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
