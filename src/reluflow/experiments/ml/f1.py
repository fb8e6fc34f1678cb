"""ML-F1: how the direction of a neuron moves while it is small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dynamics import flow
from ...problem import Dataset, Network, Problem
from ...problem.types import Array
from ...report.panels import COLOURS, curve, samples, sheet
from ..core.experiment import Expectation, Experiment, Numbers, Tell, at_most, is_so
from .common import CLASSES
from .patterns import DRAWN, followed, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Follow a small neuron of either sign by the coupled flow, and compare its velocity with the formula."""
    lengths = np.asarray(parameters["lengths"])[:, None]
    data = Dataset(lengths * unit(parameters["angles"]), parameters["labels"])
    start, step, end = unit(parameters["start"]), float(parameters["step"]), float(parameters["time"])
    found: Numbers = {"X": data.X, "y": data.y, "start": start, "runs": {}}
    times = np.linspace(0.0, end, 121)
    for k, (name, sign) in enumerate((("plus", 1), ("minus", -1))):
        net = Network.balanced([start], [sign], log_scale=np.log(parameters["scale"]))
        problem = Problem(data, net, "exponential", "sum")
        near = [flow(problem, {"time": t}, rtol=1e-10, progress=False).directions[-1, 0] for t in (step, 2 * step)]
        course = flow(problem, {"time": end}, rtol=1e-10, progress=False)
        early = followed(data, [start], sign)
        found["runs"][name] = {
            "sign": sign,
            "measured": (near[1] - start) / (2 * step),
            "formula": sign * force(data, near[0]),
            "combination": data.X.T @ (data.y * (data.X @ start > 0)),
            "time": times,
            "degrees": degrees(np.array([course.at(time=float(t)).directions[0] for t in times])),
            "exact_time": times,
            "exact": degrees(early.directions(times)[:, 0]),
            "last_event": float(early.last_event[0]),
        }
        tell((k + 1) / 2)
    return found


def force(data: Dataset, w: Array) -> Array:
    """Return the part of x_a(w), the signed sum of the points that w activates, orthogonal to w."""
    combined = data.X.T @ (data.y * (data.X @ w > 0))
    out: Array = combined - w * (combined @ w) / (w @ w)
    return out


def degrees(U: Array) -> Array:
    """Return the angles of vectors of the plane, without jumps."""
    return np.degrees(np.unwrap(np.arctan2(U[:, 1], U[:, 0])))


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the velocity, where it leads, and the exact path."""
    found = []
    for name, one in numbers["runs"].items():
        measured, formula = (np.asarray(one[key], dtype=np.float64) for key in ("measured", "formula"))
        word = "towards" if one["sign"] > 0 else "away from"
        found += [
            at_most(
                f"{name}-velocity",
                f"The direction of a small neuron with {name} output moves like {one['sign']:+d} P_w x_a(w) "
                f"(difference "
                "of the velocity measured along the flow, relative).",
                float(np.linalg.norm(measured - formula) / np.linalg.norm(formula)),
                1e-4,
                "a central difference of the flow at a small but finite scale.",
            ),
            is_so(
                f"{name}-way",
                f"That is {word} the signed combination of the points it activates.",
                bool(one["sign"] * (measured @ np.asarray(one["combination"], dtype=np.float64)) > 0),
            ),
            at_most(
                f"{name}-path",
                "The flow follows the exact path in the limit of small weights (largest difference, degrees).",
                float(np.abs(np.interp(one["exact_time"], one["time"], one["degrees"]) - one["exact"]).max()),
                0.5,
                "records of the flow are joined by straight lines.",
            ),
        ]
    return found


def plot(numbers: Numbers) -> Figure:
    """Draw forces on the neuron, and the angle of its direction in time."""
    figure, axes = sheet(1, 3, "Motion of a direction during early alignment", (4.2, 3.8))
    w = np.asarray(numbers["start"], dtype=np.float64)
    for panel, one in zip(axes[0], numbers["runs"].values(), strict=False):
        _plot_forces(panel, numbers, w, one)
    right = axes[0, 2]
    for kind, (name, one) in zip((1, 0), numbers["runs"].items(), strict=True):  # as in CLASSES
        curve(right, one["time"], one["degrees"], kind, f"flow, {name} output")
        right.plot(one["exact_time"], one["exact"], color="black", ls=":", lw=2.0, label=None if kind else "exact")
    right.set(xlabel="time", ylabel="angle of the direction, degrees", title="the whole path")
    right.legend(fontsize=8)
    return figure


def _plot_forces(panel: Any, numbers: Numbers, w: Array, one: Numbers) -> None:
    turn = float(np.degrees(np.arctan2(w[1], w[0])))
    half = unit(np.linspace(turn - 90.0, turn + 90.0, 90)) * 1.6
    panel.fill(*half.T, color="#EEEEEE", zorder=0)
    samples(panel, numbers["X"], numbers["y"], 140.0, colours=CLASSES)
    for k, point in enumerate(np.asarray(numbers["X"], dtype=float), start=1):
        panel.annotate(f"$x_{k}$", (point[0] - 0.05, point[1] + 0.12), fontsize=10)
    velocity = np.asarray(one["measured"], dtype=np.float64)
    ends = (
        (np.zeros(2), w, "black", "$w$"),
        (np.zeros(2), np.asarray(one["combination"], dtype=float), COLOURS[4], "$x_a(w)$"),
        (w, w + 0.6 * velocity, COLOURS[2], r"$\frac{d}{dt}\frac{w}{|w|}$"),
    )
    for begin, end, colour, words in ends:
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": 2.0, "shrinkA": 0, "shrinkB": 0}
        panel.annotate("", end, begin, arrowprops=arrow)
        panel.annotate(words, end + 0.06, color=colour, fontsize=11)
    sign = "+" if one["sign"] > 0 else "-"
    panel.set(xlim=(-1.7, 1.7), ylim=(-1.7, 1.7), aspect="equal", title=f"output weight {sign}")


EXPERIMENT = Experiment(
    id="ML-F1",
    title="Motion of the direction of a neuron during early alignment",
    caption="Left and middle: a neuron w, the half plane of the points that would activate it (grey), the signed "
    "combination x_a(w) of those that do, and the velocity of its direction as measured along the exact flow, for "
    "either sign of its output weight. Right: the angle of the direction until it settles.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "angles": [40.0, -60.0, 170.0],
        "lengths": [1.0, 0.7, 1.0],
        "labels": [1, -1, -1],
        "start": 0.0,
        "scale": 1e-5,
        "step": 1e-3,
        "time": 6.0,
    },
    implied=("*-velocity", "*-way"),
    ours=("*-path",),
    illustration=True,
    unstated=(DRAWN,),
    minutes=0.05,
)
