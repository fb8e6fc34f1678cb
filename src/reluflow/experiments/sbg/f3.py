"""SBG-F3: two Gaussians in the plane; the neurons end where the agreement program says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...dynamics import agreement, flow
from ...margins import AgreementMargin, agreement_margin, beta_crit, clusters
from ...problem import Dataset, Network
from ...report.panels import arrows, boundary, curve, regions, samples, sheet
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_least, at_most, equals
from .common import NEURONS, OUTPUT, spread_epochs, start, train
from .regimes import angle, largest_turn, rebuilt, weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train on several draws; on the first one follow the exact flow too, for ever in practice."""
    keys = ("n", "mean", "margin")
    epochs = spread_epochs(parameters["epochs"], 30)
    draws, first = [], {}
    for seed in range(parameters["draws"]):
        data = make("antipodal_gaussians", **{key: parameters[key] for key in keys}, seed=seed)
        program = agreement_margin(data, parameters["slope"])
        problem = start(data, parameters["scale"], seed, parameters)
        descent = train(problem, parameters["step"], epochs, seed)
        draws.append({**_premises(data, program), **_look(descent.final, data, program)})
        tell(0.5 * (seed + 1) / parameters["draws"])
        if seed == 0:
            exact = flow(problem, {"log_time": parameters["log_time"]}, rtol=1e-6, progress=False)
            same = exact.at(time=float(descent.time[-1]))
            wanted = np.geomspace(1.0, parameters["log_time"], 150)
            shown = np.unique(np.searchsorted(exact.log_time, wanted).clip(max=len(exact) - 1))
            first = {
                "X": data.X,
                "y": data.y,
                "w": program.w,
                "u": program.u,
                "W": weights(descent.final),
                "turn": largest_turn(descent.final, same),
                "flow": _look(exact.final, data, program),
                "descent_log_time": np.log(descent.time[1:]),
                "descent_angles": [_angles(net, program) for net in list(descent.networks())[1:]],
                "flow_log_time": exact.log_time[shown],
                "flow_angles": [_angles(exact.network(k), program) for k in shown],
            }
        tell((seed + 1) / parameters["draws"])
    return {"slope": parameters["slope"], "log_time": parameters["log_time"], "draws": draws, "first": first}


def _angles(net: Network, program: AgreementMargin) -> list[float]:
    """Angles of the mean neurons and of the boundary to those of the program, in degrees: w, u, w - u."""
    found = clusters(net)
    pairs = ((found.plus, program.w), (found.minus, program.u), (found.plus - found.minus, program.w - program.u))
    return [float(angle(one, other)) for one, other in pairs]


def _look(net: Network, data: Dataset, program: AgreementMargin) -> Numbers:
    found = agreement(data, net)
    targets = np.where(net.a[:, None] > 0, program.w, program.u)
    return {
        "angles": _angles(net, program),
        "farthest": float(angle(net.directions, targets).max()),
        "shares": [found.share_w, found.share_u],
    }


def _premises(data: Dataset, program: AgreementMargin) -> Numbers:
    """Return what SBG-T6.2 asks of the data, above 1 if it holds: margin condition (3), separability (4)."""
    worst = max(beta_crit(data))
    return {
        "consistent": program.consistent,
        "margin_ratio": program.gamma_phi / (program.slope * program.radius),
        "beta_ratio": program.beta / worst if worst > 0 else float("inf"),
    }


def check(numbers: Numbers) -> list[Expectation]:
    """Judge directions, boundary, agreement, and the flow."""
    draws, first = numbers["draws"], numbers["first"]
    mean = np.mean([draw["angles"] for draw in draws], axis=0)
    premises = min(min(float(draw["margin_ratio"]), float(draw["beta_ratio"])) for draw in draws)
    count = f"mean of {len(draws)} draws, degrees"
    return [
        at_least(
            "premises",
            "The data meet what the theorem about perfect agreement asks of them: smallest ratio of the predicted "
            "margin to slope times radius, and of the depth of the predicted region to the critical one.",
            premises,
            1.0,
        ),
        at_most("boundary", f"SGD learns the boundary that the program predicts ({count}).", float(mean[2]), 3.0),
        at_most("w", f"The mean positive neuron has the direction that the program predicts ({count}).", mean[0], 3.0),
        at_most("u", f"The mean negative neuron has the direction that the program predicts ({count}).", mean[1], 3.0),
        equals(
            "agreement",
            "After SGD every neuron is in the perfect agreement region: positive ones classify all points "
            "right, negative ones all points wrong (smallest share over draws and signs).",
            min(min(draw["shares"]) for draw in draws),
            1.0,
            0.0,
        ),
        at_most(
            "flow-same",
            "The exact flow from the same start takes each neuron where SGD takes it in the same time "
            "(largest angle, degrees).",
            first["turn"],
            1.0,
            why="noise of the order of the step.",
        ),
        at_most(
            "flow-limit",
            f"The exact flow followed to log t = {numbers['log_time']:g} takes every single neuron to the direction "
            "predicted (largest angle, degrees).",
            first["flow"]["farthest"],
            0.1,
            why="theory says 0 in the limit, with an error that falls like 1/log t or its root.",
        ),
        equals(
            "flow-agreement",
            "In the end all neurons of the flow are in the perfect agreement region (smaller share).",
            min(first["flow"]["shares"]),
            1.0,
            0.0,
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the boundary, the neurons, and how the angles fall."""
    first = numbers["first"]
    figure, axes = sheet(1, 3, "Perfect agreement: what SGD learns and what the convex program predicts", (4.2, 3.9))
    net = rebuilt(first["W"], numbers["slope"])
    w, u = (np.asarray(first[key]) for key in "wu")
    reach = 1.08 * float(np.abs(np.asarray(first["X"])).max())
    regions(axes[0, 0], net.outputs, (-reach, reach))
    samples(axes[0, 0], first["X"], first["y"], 16.0)
    axes[0, 0].plot([], [], color="black", lw=1.6, label="boundary of the net")
    boundary(axes[0, 0], w - u, label="predicted boundary")
    axes[0, 0].legend(fontsize=8, loc="lower right")
    axes[0, 0].set_title("sign of the net after SGD")
    arrows(axes[0, 1], net.W, net.a, colours=NEURONS)
    for vector, colour, mark, name in ((w, NEURONS[0], "*", "predicted w"), (u, NEURONS[1], "D", "predicted u")):
        end = vector / np.linalg.norm(vector)
        axes[0, 1].plot(*end, mark, color=colour, ms=8, mec="black", label=name, zorder=6)
    axes[0, 1].legend(fontsize=8, loc="upper center")
    axes[0, 1].set_title("neurons after SGD (a > 0 solid, a < 0 dashed)", fontsize=9)
    for kind, name in enumerate(("w", "u", "w - u")):
        for which, marks in (("flow", False), ("descent", True)):
            # The clock is log t; its logarithm shows a hundred epochs and the far end at once.
            place = np.asarray(first[f"{which}_log_time"], dtype=float)
            late = place >= 1.0
            heights = np.asarray(first[f"{which}_angles"], dtype=float)[late, kind]
            curve(axes[0, 2], place[late], heights, kind, f"{name}, {'SGD' if marks else 'flow'}", marks)
            if marks:
                axes[0, 2].lines[-1].set(linestyle="none", markersize=4)
    axes[0, 2].set(xscale="log", yscale="log", xlabel="log t", ylabel="angle to the prediction (degrees)")
    axes[0, 2].set_title("angles to the prediction")
    axes[0, 2].legend(fontsize=8)
    return figure


EXPERIMENT = Experiment(
    id="SBG-F3",
    title="Perfect agreement: directions and boundary are those of a convex program",
    caption="Two Gaussians with the points near a line left out, 100 leaky neurons. Left: sign of the net after SGD "
    "(tint, black boundary) and the boundary predicted (green). Middle: directions of the neurons after SGD (w grey, u "
    "yellow, as in the paper) and the two predicted ones. "
    "Right: angle of the mean neurons and of the boundary to the prediction, for SGD (marks) and for the exact flow "
    "from the same start (lines), against log t.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "n": 200,
        "mean": 1.0,
        "margin": 1.0,
        "draws": 5,
        "width": 100,
        "slope": 0.1,
        "scale": 0.001,
        "step": 0.01,
        "epochs": 2000,
        "log_time": 1e5,
    },
    quick={"n": 100, "width": 10, "draws": 1, "epochs": 1000},
    implied=("premises", "flow-limit", "flow-agreement"),
    ours=("flow-same",),
    unstated=(
        Choice(
            "data",
            "200 points of Gaussians around (1, 0) and (-1, 0), std 1, with |x_1| >= 1",
            "not given; so chosen that the premises of the theorem hold. For Gaussians farther apart few points are "
            "near the margin and the direction is decided only at losses that SGD does not reach",
        ),
        Choice("slope of the leaky ReLU", "0.1", "not given; the margin premise asks for a small one"),
        Choice("initial standard deviation", "0.001, the small one of SBG-F1", "not given"),
        Choice("step, epochs", "0.01, 2000", "not given"),
        Choice("draws", "mean of 5", "the paper shows one"),
        OUTPUT,
    ),
    minutes=2.5,
)
