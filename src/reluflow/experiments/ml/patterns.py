"""Activation patterns of single neurons along their exact early path: what the drawings of ideas are made from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dynamics import Alignment, align
from ...problem import Dataset, Network, Problem
from ...problem.types import Array
from ...sectors import cones_of_patterns
from ..core.experiment import Choice
from .common import CLASSES, TINTS

#: Ten unit vectors of the plane that satisfy the assumption of the paper, with a narrow cone of dead directions.
CIRCLE: dict[str, Any] = {"plus": [10.0, 25.0, 40.0, 55.0, 70.0], "minus": [165.0, 170.0, 175.0, 180.0, 185.0]}
DRAWN = Choice("all of it", "made from exact runs on points of ours", "the paper draws the idea by hand")
_TINY = -30.0  # log of the size of the weights


def unit(degrees: npt.ArrayLike) -> Array:
    """Return unit vectors of the plane.

    >>> unit([0.0, 90.0]).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    turn = np.radians(np.asarray(degrees, dtype=np.float64))
    return np.stack([np.cos(turn), np.sin(turn)], axis=-1)


def followed(data: Dataset, W: npt.ArrayLike, sign: int = 1) -> Alignment:
    """Follow tiny balanced neurons of one output sign, with unit force at 0."""
    rows = np.atleast_2d(np.asarray(W, dtype=np.float64))
    net = Network.balanced(rows, [sign] * len(rows), log_scale=_TINY)
    return align(Problem(data, net, "exponential", "sum"))


def history(early: Alignment, neuron: int) -> list[dict[str, Any]]:
    """Return times and activation patterns of a neuron: at the start and after every change.

    >>> early = followed(Dataset([[1.0, 0.0], [-1.0, 0.2]], [1, -1]), unit([100.0]))
    >>> [one["active"] for one in history(early, 0)]
    [[False, True], [True, True], [True, False]]
    """
    problem = early.problem
    active = (problem.data.X @ problem.net.W[neuron] > 0).tolist()
    found = [{"time": 0.0, "active": list(active)}]
    for time, sample, kind in early.events(neuron).tolist():
        if kind in ("activate", "deactivate"):
            active[sample] = kind == "activate"
            found.append({"time": float(time), "active": list(active)})
    return found


def check_steps(paths: Sequence[Sequence[dict[str, Any]]], y: Any) -> tuple[int, int]:
    """Count the changes of positive neurons, and those that are neither a gain of a positive nor loss of a negative."""
    labels = np.asarray(y, dtype=np.float64) > 0
    count = wrong = 0
    for path in paths:
        for before, after in pairwise(path):
            old, new = (np.asarray(one["active"], dtype=bool) for one in (before, after))
            count += int((old != new).sum())
            wrong += int(((old != new) & (new != labels)).sum())
    return count, wrong


def plot_cones(panel: Any, X: Any, y: Any, reach: float) -> None:
    """Tint the cones of the plane, and draw the points as arrows: orange solid positive, blue dashed negative."""
    points, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    line = np.linspace(-reach, reach, 400)
    cones = cones_of_patterns(labels, np.stack(np.meshgrid(line, line), axis=-1) @ points.T > 0)
    kind = np.select([cones.dead, cones.plus, cones.minus], [0.0, 1.0, 2.0], 3.0)
    panel.contourf(line, line, kind, levels=(-0.5, 0.5, 1.5, 2.5, 3.5), colors=TINTS, zorder=0)
    for point, label in zip(points, labels, strict=True):
        colour, style = (CLASSES[0], "-") if label > 0 else (CLASSES[1], "--")
        arrow = {"arrowstyle": "-|>", "color": colour, "ls": style, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
        panel.annotate("", point, (0.0, 0.0), arrowprops=arrow)
    panel.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[], yticks=[])
