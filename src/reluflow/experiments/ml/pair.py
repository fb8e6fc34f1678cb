"""Two positive points that are nearly, or exactly, orthogonal (ML-F7, ML-F8, ML-F9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...dynamics import align
from ...problem import Network, Problem
from ...report.panels import curve, sheet
from ..core.experiment import Expectation, Numbers, Tell, at_most, equals, is_so
from .common import crossing
from .plane import COMMON, plot_losses, plot_plane, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARAMETERS = {**COMMON, "steps": 21000, "shots": [0, 7000, 14000, 21000], "angle": -80.0}


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train on the pair; and how long a balanced neuron that sees only the first point needs to see both."""
    data = make("pair", delta=parameters["delta"])
    found = train(data, parameters, tell)
    turn = np.radians(parameters["angle"])
    alone = Network.balanced([[np.cos(turn), np.sin(turn)]], [1], log_scale=-30.0)
    entry = float(align(Problem(data, alone, "exponential", "sum")).last_event[0])
    return {**found, "delta": parameters["delta"], "angle": parameters["angle"], "entry": entry}


def check_entry(numbers: Numbers) -> Expectation:
    """Judge the exact time to the cone against its closed form."""
    near, far = (np.tan(np.radians(abs(numbers["angle"])) / 2), np.tan(numbers["delta"] / 2))
    return equals(
        "entry",
        "A neuron at -80 degrees that sees only the first point enters S+ after log(tan 40 deg / tan(delta/2)) units "
        "of time, 1000 iterations each.",
        float(numbers["entry"]),
        float(np.log(near / far)),
        1e-9,
    )


def check_counts(numbers: Numbers, key: str, shot: int, how: str = "descent") -> list[int]:
    """Return a count at an iteration for every seed."""
    at = numbers["shots"].index(shot)
    return [found["counts"][how][at][key] for found in numbers["runs"]]


def check_loss(numbers: Numbers, shot: int) -> float:
    """Return the loss of the shown seed at an iteration."""
    shown = numbers["runs"][numbers["shown"]]
    return float(shown["loss"][shown["iteration"].index(shot)])


def check_flow(numbers: Numbers) -> list[Expectation]:
    """Judge the flow from the same start."""
    shown = numbers["runs"][numbers["shown"]]
    outside = [[count["outside"] for count in shown["counts"][how]] for how in ("descent", "flow")]
    fallen = [crossing(found["iteration"], found["loss"], 0.9) for found in (shown, shown["flow"])]
    return [
        is_so(
            "flow-outside",
            "The exact flow from the same start has as many live positive neurons outside S+ at each of the iterations "
            f"{numbers['shots']}.",
            outside[0] == outside[1],
            str(outside[0]),
            str(outside[1]),
        ),
        at_most(
            "flow-drop",
            "The flow has lost 10 % of its loss when descent has (relative difference of the times).",
            abs(fallen[1] / fallen[0] - 1),
            0.02,
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the neurons at the start and at three moments, and the curves."""
    title = f"$x_1 = (1, 0)$ and $x_2 = (\\sin\\delta, \\cos\\delta)$, both positive, $\\delta$ = {numbers['delta']:g}"
    shown = numbers["runs"][numbers["shown"]]
    figure, axes = sheet(1, 5, f"{title}; seed {shown['seed']}: orange S+, grey dead", (3.1, 3.3))
    for panel, net, shot, count in zip(
        axes[0], numbers["nets"]["descent"], numbers["shots"], shown["counts"]["descent"], strict=False
    ):
        when = f"iteration {shot}" if shot else "start"
        plot_plane(panel, numbers, net, f"{when}: {count['outside']} of {count['live_plus']} outside S+")
    right = axes[0, 4]
    plot_losses(right, shown)
    share = np.asarray(shown["outside"], dtype=np.float64) / len(numbers["nets"]["descent"][0]["a"])
    curve(right, shown["iteration"], share, 1, "positive, alive,\noutside S+ (of all)")
    right.set(title="curves")
    right.legend(fontsize=7, loc="upper right")
    return figure
