"""What the figures of Min, Mallada and Vidal share: starts, images, when a curve crosses a level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...problem import Dataset, Problem, initialize
from ...problem.types import Array
from ...report.panels import COLOURS

#: Colours of positive and negative points and neurons: red and blue in the paper.
CLASSES = (COLOURS[1], COLOURS[0])
TINTS = ("#D9D9D9", "#FBE3D4", "#D8ECFA", "#FFFFFF")  # dead, S+, S-, neither


def problem_of(data: Dataset, parameters: Mapping[str, Any], seed: int) -> Problem:
    """Return mean exponential loss from Gaussian weights in both layers: unbalanced, as in the paper."""
    net = initialize(data.d, int(parameters["width"]), "gaussian", float(parameters["scale"]), seed=seed)
    return Problem(data, net, "exponential", "mean")


def spread(steps: int, count: int) -> list[int]:
    """Return evenly spread iterations from 0 to ``steps``.

    >>> spread(10, 3)
    [0, 5, 10]
    """
    return [int(k) for k in np.unique(np.linspace(0, steps, count).round())]


def crossing(iteration: npt.ArrayLike, loss: npt.ArrayLike, share: float) -> float:
    """When a loss first falls below a share of its start, with log(1 - loss/start) linear between records.

    That is how it falls at first: what it has lost grows exponentially. nan if it never does.

    >>> crossing([0, 1, 2, 3], [1.0, 0.999, 0.9, 0.0], 0.99)
    1.5
    """
    place, height = np.asarray(iteration, dtype=np.float64), np.asarray(loss, dtype=np.float64)
    lost = 1.0 - height / height[0]
    after = np.flatnonzero(lost >= 1.0 - share)
    if not after.size:
        return float("nan")
    k = int(after[0])
    if lost[k - 1] <= 0:
        return float(place[k])
    rise: Array = np.log(lost[k - 1 : k + 1])
    part = (np.log(1.0 - share) - rise[0]) / (rise[1] - rise[0])
    return float(round(place[k - 1] + part * (place[k] - place[k - 1]), 6))
