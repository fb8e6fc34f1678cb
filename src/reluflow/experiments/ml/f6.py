"""ML-F6: the two phases on five points of the plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...report.panels import curve, sheet
from ..core.experiment import (
    Choice,
    Expectation,
    Experiment,
    Numbers,
    Tell,
    at_least,
    at_most,
    between,
    equals,
    is_so,
)
from .choices import BOTH_LAYERS
from .common import crossing
from .plane import COMMON, check_late, plot_losses, plot_plane, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LIMIT_RANK = 1.2423896  # |W|_F^2 / |W|_2^2 as t -> infinity, from the max-margin vectors of the two classes


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train on unit vectors at the given angles."""
    data = make("circle", plus=parameters["plus"], minus=parameters["minus"])
    sums = [data.X[index].sum(axis=0) for index in (data.positives, data.negatives)]
    return {**train(data, parameters, tell), "sum_norms": [float(np.linalg.norm(total)) for total in sums]}


def check(numbers: Numbers) -> list[Expectation]:
    """Judge where the neurons go, the two steps of the loss, the rank, and the flow."""
    return [*_check_alignment(numbers), *_check_loss(numbers), *_check_flow(numbers["runs"][0])]


def _check_alignment(numbers: Numbers) -> list[Expectation]:
    p = len(numbers["nets"]["descent"][0]["a"])
    by, late = (numbers["shots"].index(k) for k in (8000, 10000))
    trapped = [found["counts"]["descent"][by]["trapped"] for found in numbers["runs"]]
    closest = [float(found["counts"]["descent"][late]["to_sum"]) for found in numbers["runs"]]
    late_flip = f"Judged for the first seed. {check_late(numbers)}"
    return [
        is_so(
            "trapped",
            "By iteration 8000 every neuron is in the cone of its class or dead.",
            trapped[0] == p,
            f"{p} of {p}",
            f"{trapped[0]} of {p}; all of them in {sum(k == p for k in trapped)} of {len(trapped)} seeds",
            late_flip,
        ),
        at_least(
            "close",
            "At the end of alignment (iteration 10000) all live neurons are close to the sum of their class (smallest "
            f"cosine; in {sum(c >= 0.95 for c in closest)} of {len(closest)} seeds above 0.95).",
            closest[0],
            0.95,
            late_flip,
        ),
    ]


def _check_loss(numbers: Numbers) -> list[Expectation]:
    shown = numbers["runs"][0]
    rows = np.asarray(shown["class_loss"], dtype=np.float64)
    halves = [crossing(shown["iteration"], rows[:, side], 0.5) for side in (0, 1)]
    fitted = int(np.argmax(rows[:, 0] <= 0.1))
    ratio = numbers["sum_norms"][0] / numbers["sum_norms"][1]
    return [
        at_least(
            "plateau",
            "The loss falls in two separate steps: when the positive class is fitted (mean loss 0.1) the negative one "
            "is not yet (its mean loss).",
            float(rows[fitted, 1]),
            0.9,
        ),
        between(
            "ratio",
            "The classes are fitted (mean loss 1/2) at times in the ratio of their growth rates, |x+| / |x-| = "
            f"{ratio:.4f}.",
            halves[1] / halves[0],
            0.85 * ratio,
            1.15 * ratio,
            "About is read as within 15 %.",
        ),
        at_most("end", "The loss is close to 0 in the end.", float(shown["loss"][-1]), 0.02),
        equals(
            "rank",
            "The first layer is nearly of low rank: its stable rank is close to the limit of the flow.",
            float(shown["rank"][-1]),
            _LIMIT_RANK,
            0.02,
        ),
    ]


def _check_flow(shown: Numbers) -> list[Expectation]:
    halves = [crossing(found["iteration"], found["loss"], 0.7) for found in (shown, shown["flow"])]
    counts = [[count["trapped"] for count in shown["counts"][how]] for how in ("descent", "flow")]
    return [
        is_so(
            "flow-trapped",
            "The exact flow from the same start has as many neurons in their cones or dead at each of the iterations.",
            counts[0] == counts[1],
            str(counts[0]),
            str(counts[1]),
        ),
        at_most(
            "flow-drop",
            "The flow has lost 30 % of its loss when descent has (relative difference of the times).",
            abs(halves[1] / halves[0] - 1),
            0.02,
        ),
        at_most(
            "flow-rank",
            "The flow ends with the same stable rank (difference).",
            abs(float(shown["rank"][-1]) - float(shown["flow"]["rank"][-1])),
            0.005,
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the neurons at three moments and the curves."""
    figure, axes = sheet(1, 4, "Five points in the plane: orange S+, blue S-, grey dead", (3.2, 3.3))
    shown, titles = numbers["runs"][0], ("(a) start", "(b) aligned", "(c) the end")
    for panel, at, title in zip(axes[0], (0, -2, -1), titles, strict=False):
        plot_plane(panel, numbers, numbers["nets"]["descent"][at], f"{title}: iteration {numbers['shots'][at]}")
    right = axes[0, 3]
    plot_losses(right, shown)
    share = np.asarray(shown["trapped"], dtype=np.float64) / len(numbers["nets"]["descent"][0]["a"])
    curve(right, shown["iteration"], share, 1, "share in own cone or dead")
    rank = np.asarray(shown["rank"], dtype=np.float64) - 1.0
    curve(right, shown["iteration"], rank, 2, "stable rank - 1")
    right.set(ylim=(-0.05, 1.45), title="curves")
    right.legend(fontsize=7, loc="upper right")
    return figure


EXPERIMENT = Experiment(
    id="ML-F6",
    title="A toy in the plane: neurons enter their cones, then grow",
    caption="Directions of the neurons (arrows: solid orange for positive, dashed blue for negative output weight, "
    "dotted grey dead) and their weights (dots) at the start, when aligned and in the end; crosses and bars are the "
    "data. Right: loss of descent and of the exact flow from the same start, neurons in their cones, stable rank.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        **COMMON,
        "plus": [20.0, 45.0, 70.0],
        "minus": [165.0, 180.0],
        "steps": 30000,
        "shots": [0, 8000, 10000, 30000],
    },
    quick={"seeds": [0, 1]},
    implied=("ratio",),
    ours=("flow-*",),
    unstated=(
        *BOTH_LAYERS,
        Choice(
            "points",
            "unit vectors at 20, 45, 70 (+) and 165, 180 degrees (-)",
            "they are only drawn; these have the same cones, a dead cone, and class sums of different length",
        ),
        Choice("iterations", "30000; snapshots at 0, 10000, 30000", "not given"),
    ),
    minutes=0.3,
)
