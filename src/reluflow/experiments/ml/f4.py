"""ML-F4: the activation pattern of one neuron in time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...report.panels import sheet
from ...sectors import alignment_constants
from ..core.experiment import Expectation, Experiment, Numbers, Tell, at_most, equals
from .common import CLASSES
from .patterns import CIRCLE, DRAWN, check_steps, followed, history, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Follow positive neurons from all around; two that start in S- are shown: one ends in S+ and one dead."""
    data = make("circle", plus=parameters["plus"], minus=parameters["minus"])
    begin = np.linspace(0.0, 360.0, int(parameters["neurons"]), endpoint=False) + 0.37
    early = followed(data, unit(begin))
    paths = [history(early, j) for j in range(early.p)]
    tell(0.5)
    inside = [j for j, path in enumerate(paths) if path[0]["active"] == (data.y < 0).tolist()]
    shown = []
    for last in ((data.y > 0).tolist(), [False] * data.n):  # S+, dead
        ways = [j for j in inside if paths[j][-1]["active"] == last]
        slowest = max(ways, key=lambda j: paths[j][-1]["time"])
        shown.append({"degrees": float(begin[slowest]), "path": paths[slowest]})
    bounds = alignment_constants(data, early.problem.net)
    waits = [
        (after["time"] - before["time"]) * sum(before["active"]) for path in paths for before, after in pairwise(path)
    ]
    return {
        "y": data.y,
        "paths": paths,
        "shown": shown,
        "longest_wait": max(waits),
        "bound": 4.0 / (bounds.c * np.sqrt(bounds.mu) * bounds.x_min),
        "t_1": bounds.t_1,
    }


def check(numbers: Numbers) -> list[Expectation]:
    """Judge which changes happen, how many, and how long they take."""
    count, wrong = check_steps(numbers["paths"], numbers["y"])
    return [
        equals(
            "one-way",
            "A positive neuron only ever gains positive points and loses negative ones (other changes, of "
            f"{count} changes of {len(numbers['paths'])} neurons).",
            wrong,
            0,
            0,
        ),
        at_most(
            "changes",
            "So it changes its pattern at most n times (largest number).",
            float(max(len(path) - 1 for path in numbers["paths"])),
            float(len(numbers["y"])),
        ),
        at_most(
            "wait",
            "It waits at most 4 / (c sqrt(mu) X_min n_a) for the next change, n_a the points it activates (largest "
            "ratio).",
            float(numbers["longest_wait"]) / float(numbers["bound"]),
            1.0,
        ),
        at_most(
            "time",
            "And is done after t_1 at most (largest ratio).",
            float(max(path[-1]["time"] for path in numbers["paths"])) / float(numbers["t_1"]),
            1.0,
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the patterns of the two neurons as columns of marks."""
    figure, axes = sheet(2, 1, "Activation pattern of one positive neuron in time: filled where active", (9.0, 2.9))
    y = np.asarray(numbers["y"], dtype=np.float64)
    order = np.argsort(-y, kind="stable")
    for panel, one, words in zip(axes[:, 0], numbers["shown"], ("in S+", "dead"), strict=True):
        for k, state in enumerate(one["path"]):
            for row, i in enumerate(order):
                colour = CLASSES[0] if y[i] > 0 else CLASSES[1]
                fill = colour if state["active"][i] else "none"
                panel.scatter(
                    k, -row, marker="P" if y[i] > 0 else "s", s=55, facecolors=fill, edgecolors=colour, lw=0.9
                )
        times = [f"{float(state['time']):.3g}" for state in one["path"]]
        panel.set_xticks(range(len(times)), times, fontsize=8)
        panel.set(yticks=[], xlim=(-0.6, len(times) - 0.4), ylim=(-len(order), 1), xlabel="time of the change")
        panel.set_title(f"start at {float(one['degrees']):.1f} degrees, in S-; ends {words}", fontsize=10)
    return figure


EXPERIMENT = Experiment(
    id="ML-F4",
    title="The activation pattern of one neuron changes one way",
    caption="One column after every change of the pattern: plus signs are the positive points, squares the negative "
    "ones, filled if they activate the neuron. It starts with all negative points and no positive one, loses the "
    "former and gains the latter, until it is in S+ (above), or loses all of them and is dead (below). The times are "
    "exact.",
    run=run,
    check=check,
    plot=plot,
    parameters={**CIRCLE, "neurons": 720},
    quick={"neurons": 180},
    implied=("*",),
    illustration=True,
    unstated=(DRAWN,),
    minutes=0.05,
)
