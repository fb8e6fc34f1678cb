"""ML-F2: where neurons go in the cones of the plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...report.panels import sheet
from ...sectors import cones_of_patterns
from ..core.experiment import Expectation, Experiment, Numbers, Tell, is_so
from .common import CLASSES
from .patterns import CIRCLE, DRAWN, followed, history, plot_cones, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Follow neurons of either sign that start all around, and note the cones they start and end in."""
    data = make("circle", plus=parameters["plus"], minus=parameters["minus"])
    begin = np.linspace(0.0, 360.0, int(parameters["neurons"]), endpoint=False) + 0.37  # on no hyperplane
    found: Numbers = {"X": data.X, "y": data.y, "begin": begin, "runs": {}}
    for k, (name, sign) in enumerate((("plus", 1), ("minus", -1))):
        early = followed(data, unit(begin), sign)
        times = np.linspace(0.0, 1.2 * float(early.last_event.max()), 81)
        U = early.directions(times)
        states = [history(early, j) for j in range(early.p)]
        found["runs"][name] = {
            "sign": sign,
            "time": times,
            "degrees": np.degrees(np.unwrap(np.arctan2(U[..., 1], U[..., 0]), axis=0)).T,
            "cones": [[_cone(data.y, state["active"]) for state in states[j]] for j in range(early.p)],
            "sees": [bool((np.array(state[0]["active"]) & (sign * data.y > 0)).any()) for state in states],
        }
        tell((k + 1) / 2)
    return found


def _cone(y: Any, active: list[bool]) -> str:
    """Name the cone of an activation pattern."""
    cones = cones_of_patterns(y, np.array([active]))
    return "dead" if cones.dead[0] else "plus" if cones.plus[0] else "minus" if cones.minus[0] else "none"


def check(numbers: Numbers) -> list[Expectation]:
    """Judge that every neuron ends in the cone of its own class or dead, and by which way."""
    found = []
    for name, one in numbers["runs"].items():
        ends = [cones[-1] for cones in one["cones"]]
        other = "minus" if name == "plus" else "plus"
        left = [cones[-1] != other for cones in one["cones"] if cones[0] == other]
        saw = [end for end, sees in zip(ends, one["sees"], strict=True) if sees]
        count = f"{len(ends)} of {len(ends)}"
        found += [
            is_so(
                f"{name}-ends",
                f"Every neuron with {name} output ends in the cone of its class or dead.",
                all(end in (name, "dead") for end in ends),
                count,
                f"{sum(end in (name, 'dead') for end in ends)} of {len(ends)} ({ends.count('dead')} dead)",
            ),
            is_so(
                f"{name}-escapes",
                "Those that start in the cone of the other class leave it.",
                all(left) and bool(left),
                f"{len(left)} of {len(left)}",
                f"{sum(left)} of {len(left)}",
            ),
            is_so(
                f"{name}-sees",
                "Those that activate a point of their own class at the start end in its cone, none dead.",
                all(end == name for end in saw) and bool(saw),
                f"{len(saw)} of {len(saw)}",
                f"{saw.count(name)} of {len(saw)}",
            ),
        ]
    return found


def plot(numbers: Numbers) -> Figure:
    """Draw the paths as spirals: the angle is the direction, the radius grows with time."""
    figure, axes = sheet(1, 2, "Alignment in the cones: orange S+, blue S-, grey dead; outwards is time", (5.2, 5.0))
    for panel, one in zip(axes[0], numbers["runs"].values(), strict=True):
        plot_cones(panel, numbers["X"], numbers["y"], 2.6)
        time = np.asarray(one["time"], dtype=np.float64)
        radius = 1.1 + 1.3 * np.sqrt(time / time[-1])
        for angles, cones in zip(one["degrees"], one["cones"], strict=True):
            path = radius[:, None] * unit(angles)
            dead = cones[-1] == "dead"
            colour = "#666666" if dead else CLASSES[0] if one["sign"] > 0 else CLASSES[1]
            panel.plot(*path.T, color=colour, ls=":" if dead else "-", lw=0.9)
            panel.plot(*path[0], ".", color=colour, ms=4)
        sign = "positive" if one["sign"] > 0 else "negative"
        panel.set_title(f"neurons with {sign} output", fontsize=10)
    return figure


EXPERIMENT = Experiment(
    id="ML-F2",
    title="Neuron alignment in the cones of the data",
    caption="Directions of neurons that start all around (dots), followed by the exact solution for small weights: the "
    "angle is the direction, the distance from the middle grows with time. Arrows: positive (solid, orange; red in "
    "the paper) and negative points (dashed, blue). A positive neuron that starts in S- is repelled "
    "from there; it goes on to S+, or loses all points and stays dead (dotted). Right: the same for negative neurons.",
    run=run,
    check=check,
    plot=plot,
    parameters={**CIRCLE, "neurons": 72},
    quick={"neurons": 36},
    implied=("*",),
    illustration=True,
    unstated=(DRAWN,),
    minutes=0.05,
)
