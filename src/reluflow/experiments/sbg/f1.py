"""SBG-F1: small and large initialisation on separable data in the plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...dynamics import flow
from ...problem import Network
from ...report.panels import arrows, regions, samples, sheet, zero_set
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_least, at_most, equals
from .common import OUTPUT, SLOPE, accuracy, start, train
from .regimes import largest_turn, rebuilt, weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ANGLES = 7200


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train from both scales by SGD, and follow the flow from the same starts for the same time."""
    data = make("antipodal_gaussians", n=parameters["n"], mean=parameters["mean"], margin=parameters["margin"])
    numbers: Numbers = {"X": data.X, "y": data.y, "slope": parameters["slope"], "cases": {}}
    for k, (name, scale) in enumerate(parameters["scales"].items()):
        problem = start(data, scale, parameters["seed"], parameters)
        epochs = list(range(0, parameters["epochs"] + 1, parameters["every"]))
        descent = train(problem, parameters["step"], epochs, parameters["seed"], parameters["until_loss"])
        tell((k + 0.3) / 2)
        exact = flow(problem, {"time": float(descent.time[-1])}, rtol=1e-6, progress=False)
        numbers["cases"][name] = {
            "scale": scale,
            "epochs": descent.settings["iteration"][-1] / data.n,
            "loss": float(descent.loss[-1]),
            "accuracy": accuracy(descent.final, data),
            "angles": descent.measures.group_angles[-1],
            "agreement": linear_agreement(descent.final),
            "W": weights(descent.final),
            "flow": {
                "loss": float(exact.loss[-1]),
                "angles": exact.measures.group_angles[-1],
                "agreement": linear_agreement(exact.final),
                "turn": largest_turn(descent.final, exact.final),
                "W": weights(exact.final),
            },
        }
        tell((k + 1) / 2)
    return numbers


def linear_agreement(net: Network) -> float:
    """Largest share of the plane on which the net and a linear classifier through 0 have the same sign.

    Both depend on the direction of x alone, so all directions on a fine circle are compared with all classifiers
    whose normal is one of them.

    >>> linear_agreement(Network([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], slope=0.5))
    1.0
    >>> linear_agreement(Network([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], slope=0.0))    # zero on a quadrant
    0.75
    """
    turn = (np.arange(_ANGLES) + 0.5) * (2 * np.pi / _ANGLES)
    signs = np.sign(net.outputs(np.stack([np.cos(turn), np.sin(turn)], axis=1)))
    # Window k: half a turn from direction k on; the classifier is +1 on it and -1 on the rest.
    half = _ANGLES // 2
    right = [np.concatenate([[0], np.cumsum(np.tile(signs == s, 2))]) for s in (1, -1)]
    k = np.arange(_ANGLES)
    plus = right[0][k + half] - right[0][k]
    minus = right[1][k + _ANGLES] - right[1][k + half]
    return float((plus + minus).max() / _ANGLES)


def check(numbers: Numbers) -> list[Expectation]:
    """Judge boundary and clusters of both cases, and whether the flow does the same."""
    small, large = numbers["cases"]["small"], numbers["cases"]["large"]
    return [
        equals("small-accuracy", "Small initialisation: all training points right.", small["accuracy"], 1.0, 0.0),
        equals("large-accuracy", "Large initialisation: all training points right.", large["accuracy"], 1.0, 0.0),
        at_least(
            "small-boundary",
            "Small initialisation: the net has the sign of a linear classifier (share of the plane).",
            small["agreement"],
            0.999,
        ),
        at_most(
            "small-clusters",
            "Small initialisation: the neurons of each sign form a tight cluster (largest angle in one, degrees).",
            max(small["angles"]),
            5.0,
        ),
        at_most(
            "large-boundary",
            "Large initialisation: no linear classifier has the sign of the net (best share of the plane).",
            large["agreement"],
            0.99,
            why="the paper shows a visibly bent boundary; 1 % of the plane, a wedge of 3.6 degrees, is about what one "
            "can see in a figure of this size.",
        ),
        at_least(
            "large-clusters",
            "Large initialisation: the neurons of a sign do not cluster (smaller of the largest angles, degrees).",
            min(large["angles"]),
            60.0,
        ),
        at_most(
            "flow-small",
            "Small initialisation: the exact flow from the same start takes every neuron to where SGD takes it "
            "(largest angle, degrees).",
            small["flow"]["turn"],
            1.0,
            why="both see the same early phase; SGD differs by noise of the order of the step.",
        ),
        at_most(
            "flow-large",
            "Large initialisation: the same (largest angle, degrees).",
            large["flow"]["turn"],
            1.0,
            why="as for small initialisation.",
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw regions above, directions below; large initialisation left, small one right."""
    figure, axes = sheet(2, 2, "SGD from large and from small weights", (4.3, 4.0))
    reach = 1.08 * float(np.abs(np.asarray(numbers["X"])).max())
    for column, name in enumerate(("large", "small")):
        case = numbers["cases"][name]
        net, exact = (rebuilt(W, numbers["slope"]) for W in (case["W"], case["flow"]["W"]))
        upper, lower = axes[:, column]
        regions(upper, net.outputs, (-reach, reach))
        upper.plot([], [], color="black", lw=1.6, label="SGD")
        zero_set(upper, exact.outputs, "#009E73", "--", 2.2, "flow")
        samples(upper, numbers["X"], numbers["y"], 18.0)
        upper.set_title(f"{name} initialisation, std {case['scale']:g}: boundary")
        upper.legend(fontsize=8, loc="lower right")
        arrows(lower, case["W"], net.a)
        lower.set_title(f"{name}: directions of the neurons (a > 0 solid, a < 0 dashed)", fontsize=9)
    return figure


EXPERIMENT = Experiment(
    id="SBG-F1",
    title="Small weights learn a linear boundary and two clusters, large weights do not",
    caption="Separable data in the plane, 100 leaky neurons, second layer fixed. Above: sign of the net after SGD "
    "(tint, black boundary) and boundary of the exact gradient flow from the same start (green, dashed). Below: unit "
    "vectors of the neurons after SGD.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "n": 200,
        "mean": 2.0,
        "margin": 0.3,
        "width": 100,
        "slope": 0.2,
        "scales": {"small": 0.001, "large": 30.0},
        "step": 0.01,
        "epochs": 3000,
        "every": 5,
        "until_loss": 0.01,
        "seed": 0,
    },
    quick={"n": 40, "width": 20, "epochs": 2000, "every": 20},
    ours=("flow-*",),
    unstated=(
        Choice(
            "data",
            "200 points of Gaussians around (2, 0) and (-2, 0), std 1, none nearer than 0.3 to the line between them",
            "the paper only says that the data are separable and shows them",
        ),
        Choice("step and end of training", "0.01; until all points are right and the loss is below 0.01", "not given"),
        SLOPE,
        OUTPUT,
    ),
    minutes=2.0,
)
