"""What the experiments of Lyu, Li, Wang & Arora share: where a flow ends, and how that is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...dynamics import limit
from ...margins import GlobalMargin, global_max_margin, linearity, one_neuron
from ...problem import Dataset, Network, Problem, Undecided, initialize
from ...problem.types import Array
from ..core.experiment import Choice

SLOPE = 0.5
START = Choice("initial weights", "Gaussian directions, |a_j| = |w_j|", "the balanced start the theorems ask for")

#: How a flow ends, with the words for it: the limit was confirmed, or is known not to be that of one neuron.
ENDINGS = {
    "one": "one neuron (the theorem's limit)",
    "best": "largest margin of any network",
    "leaves": "not confirmed, but surely not one neuron",
    "other": "another limit",
    "undecided": "undecided",
}


def goals(data: Dataset, slope: float = SLOPE) -> tuple[float, GlobalMargin]:
    """Return the margin of the best positive neuron, and the largest margin of any network."""
    return 0.5 * one_neuron(data, slope).gamma, global_max_margin(data, slope)


def ending(problem: Problem, one: float, best: float, max_log_time: float) -> dict[str, Any]:
    """Say where the flow ends: one of `ENDINGS`, the margin, and the limit itself where it was confirmed.

    A limit that is not confirmed by ``max_log_time`` can still be excluded: the smoothed margin never falls and is
    below that of the limit, so once it exceeds the margin of one neuron the flow does not end there. ``linear`` says
    whether the boundary of the limit is linear; for a flow that leaves, False means no more than: it is not that of one
    neuron.
    """
    try:
        found = limit(problem, rtol=1e-8, max_log_time=max_log_time, optimum=False, progress=False)
    except Undecided as error:
        run = error.partial
        reached = float(run.smoothed_margin()[-1])
        return {
            "kind": "leaves" if reached > one * (1 + 1e-7) else "undecided",
            "margin": float(run.normalized_margin()[-1]),
            "linear": False if reached > one * (1 + 1e-7) else None,
            "log_time": float(run.log_time[-1]),
        }
    kind = "other"
    if abs(found.margin - best) <= 1e-6 * best:
        kind = "best"
    elif abs(found.margin - one) <= 1e-6 * one and len(found.living) == 1:
        kind = "one"
    net = found.network
    return {
        "kind": kind,
        "margin": found.margin,
        "linear": linearity(net, tol=1e-6).linear,
        "log_time": float(found.trajectory.log_time[-1]),
        "W": net.W,
        "a": net.a,
    }


def small_start(data: Dataset, width: int, log10_scale: float, seed: int, slope: float = SLOPE) -> Problem:
    """Pose the problem of a balanced Gaussian draw, its first half with positive output, at a scale."""
    signs = np.where(np.arange(width) < (width + 1) // 2, 1, -1)
    draw = initialize(data.d, width, "balanced-gaussian", 1.0, seed=seed, slope=slope, signs=signs)
    return Problem(data, draw.with_log_scale(log10_scale * float(np.log(10.0))))


def stored(net: Network) -> dict[str, Array]:
    """Return direction and scale-free weights of a network, to be kept."""
    unit = net.normalized()
    return {"W": unit.W, "a": unit.a}


def plot_rims(panel: Any) -> None:
    """Give the marks of a panel a white rim, so that they are seen on any colour."""
    from matplotlib.collections import PathCollection
    from matplotlib.patheffects import withStroke

    for drawn in panel.collections:
        if isinstance(drawn, PathCollection):
            drawn.set_path_effects([withStroke(linewidth=3.2, foreground="white")])


def plot_function(
    net: Mapping[str, Any], slope: float = SLOPE, height: float | None = None
) -> Callable[[Array], Array]:
    """Return the function of stored weights on the plane; ``height`` is a constant third coordinate."""
    network = Network(net["W"], net["a"], slope)

    def values(points: Array) -> Array:
        return network.outputs(points if height is None else np.column_stack([points, np.full(len(points), height)]))

    return values
