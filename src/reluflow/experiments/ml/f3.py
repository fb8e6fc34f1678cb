"""ML-F3: at the hyperplane of a point a neuron is pushed to one side only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...dynamics import flow
from ...problem import Dataset, Network, Problem
from ...problem.types import Array
from ...report.panels import COLOURS, sheet
from ..core.experiment import Expectation, Experiment, Numbers, Tell, at_least
from .patterns import CIRCLE, DRAWN, plot_cones, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Put neurons on both sides of every hyperplane, unless they are dead there, and measure how they cross it."""
    data = make("circle", plus=parameters["plus"], minus=parameters["minus"])
    found: Numbers = {"X": data.X, "y": data.y, "runs": {}}
    places = np.array([[i, turn + side] for i, turn in _hyperplanes(data) for side in (-0.5, 0.5)])
    alive = (data.X @ unit(places[:, 1]).T > 0).any(axis=0)
    places = places[alive]
    for k, (name, sign) in enumerate((("plus", 1), ("minus", -1))):
        net = Network.balanced(unit(places[:, 1]), [sign] * len(places), log_scale=np.log(parameters["scale"]))
        # Many neurons do not feel each other while they are small: one run moves all of them.
        course = flow(Problem(data, net, "exponential", "sum"), {"time": parameters["step"]}, progress=False)
        turned = (course.directions[-1] - unit(places[:, 1])) / parameters["step"]
        units = data.X / data.norms[:, None]
        index = places[:, 0].astype(int)
        found["runs"][name] = {
            "sign": sign,
            "sample": index,
            "degrees": places[:, 1],
            "velocity": turned,
            "across": sign * data.y[index] * (turned * units[index]).sum(axis=1),
        }
        tell((k + 1) / 2)
    return found


def _hyperplanes(data: Dataset) -> list[tuple[int, float]]:
    """Return the two directions of each hyperplane of the plane."""
    angles: Array = np.degrees(np.arctan2(data.X[:, 1], data.X[:, 0]))
    return [(i, float(angle) + turn) for i, angle in enumerate(angles) for turn in (-90.0, 90.0)]


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the side to which every neuron is pushed."""
    return [
        at_least(
            f"{name}-across",
            f"On either side of every hyperplane a living neuron with {name} output is pushed towards gaining the "
            f"point "
            "if it is of its own class and towards losing it if not (smallest velocity that way, "
            f"{len(one['across'])} places).",
            float(min(one["across"])),
            1e-3,
            "positive says it; velocities are of the order of one.",
        )
        for name, one in numbers["runs"].items()
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the velocities at the hyperplanes."""
    figure, axes = sheet(1, 2, "Pushed to one side of every hyperplane: orange S+, blue S-, grey dead", (5.2, 5.2))
    X = np.asarray(numbers["X"], dtype=np.float64)
    for panel, one in zip(axes[0], numbers["runs"].values(), strict=True):
        plot_cones(panel, X, numbers["y"], 1.75)
        for i, x in enumerate(X):
            across = np.array([-x[1], x[0]])
            panel.plot(*np.stack([-1.6 * across, 1.6 * across]).T, color="#999999", lw=0.5, zorder=1)
            own = float(numbers["y"][i]) * one["sign"] > 0
            at = np.asarray(one["sample"], dtype=int) == i
            place = unit(np.asarray(one["degrees"], dtype=float)[at]) * (1.2 + 0.035 * i)
            speed = np.asarray(one["velocity"], dtype=float)[at]
            speed /= np.linalg.norm(speed, axis=1, keepdims=True)
            colour = COLOURS[2] if own else COLOURS[3]
            panel.quiver(*place.T, *speed.T, color=colour, width=0.004, scale=9.0, zorder=5)
        panel.set_title(f"neurons with {'positive' if one['sign'] > 0 else 'negative'} output", fontsize=10)
    for colour, words in ((COLOURS[2], "gains a point of its class"), (COLOURS[3], "loses a point of the other")):
        axes[0, 0].plot([], [], color=colour, lw=2, label=words)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure


EXPERIMENT = Experiment(
    id="ML-F3",
    title="At the hyperplane of a point the flow points to one side",
    caption="Grey lines: the hyperplanes of the ten points (arrows). Small arrows: velocity, measured along the flow, "
    "of the direction of neurons just beside each hyperplane. Green: the point is of the class of the neuron, which "
    "gains it; purple: of the other class, which it loses. Both sides of a line agree, so that no line is crossed "
    "twice.",
    run=run,
    check=check,
    plot=plot,
    parameters={**CIRCLE, "scale": 1e-6, "step": 1e-3},
    implied=("*",),
    illustration=True,
    unstated=(DRAWN,),
    minutes=0.05,
)
