"""SBG-F8: entrance to the perfect agreement region in fifty dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...dynamics import Trajectory, descend, flow
from ...report.panels import band, curve, sheet
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_most, equals
from .common import OUTPUT, SLOPE, start
from .regimes import regimes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train on several draws by SGD and by the exact flow, and count the neurons that are in the region."""
    runs = []
    for seed in range(parameters["draws"]):
        data = make("antipodal_gaussians", n=parameters["n"], d=parameters["d"], mean=parameters["mean"], seed=seed)
        problem = start(data, parameters["scale"], seed, parameters)
        how = {"step": parameters["step"], "epochs": parameters["epochs"]}
        descent = descend(problem, "sgd", **how, batch=1, seed=seed, record=120, progress=False)
        end = parameters["flow_epochs"] * parameters["step"] * data.n
        exact = flow(problem, {"time": end}, rtol=1e-6, progress=False)
        runs.append({"sgd": regimes(descent), "flow": regimes(_spread(exact, 150))})
        tell((seed + 1) / parameters["draws"])
    return {"runs": runs, "epoch": parameters["step"] * parameters["n"]}


def _spread(run: Trajectory, count: int) -> Trajectory:
    """Look at a run at so many times, evenly in their logarithms, and at its start."""
    times = np.linspace(float(run.log_time[1]), float(run.log_time[-1]), count)
    seen = run.with_records([(float(t), run.at(log_time=float(t))) for t in times[:-1]])
    kept = np.unique([0, *np.searchsorted(seen.log_time, times[:-1]), len(seen) - 1])
    names = ("log_time", "log_loss", "directions", "log_norms", "log_outs", "signs")
    return replace(seen, **{name: getattr(seen, name)[kept] for name in names})


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the shares at the end, and the time of entrance."""
    runs = numbers["runs"]
    entrance = [float(run["sgd"]["entrance"]) / numbers["epoch"] for run in runs]
    found = [
        equals(
            f"{how}-share-{side}",
            f"{name}: all {word} neurons end in the perfect agreement region (smallest share, {len(runs)} draws).",
            min(run[how][f"share_{side}"][-1] for run in runs),
            1.0,
            0.0,
        )
        for how, name in (("sgd", "SGD"), ("flow", "Exact flow"))
        for side, word in (("w", "positive"), ("u", "negative"))
    ]
    return [
        *found,
        at_most(
            "entrance",
            "SGD enters the region early, to stay there (epochs of training, latest of the draws).",
            max(entrance),
            2.0,
            why="ours: the paper shows the entrance near the beginning, without a scale that could be read off.",
        ),
        at_most(
            "flow-entrance",
            "The flow brings half of the neurons in no later than SGD (ratio of the times, mean of the draws).",
            float(np.mean([_check_half(run["flow"]) / _check_half(run["sgd"]) for run in runs])),
            1.0,
            why="ours: a step with one sample moves neurons by half their length; that noise has to average out. Half "
            "of them, not all: where little happens the flow keeps few records, and the last entrance is between two.",
        ),
    ]


def _check_half(found: Numbers) -> float:
    """Time of the first record with half of the neurons of each sign in the region."""
    least = np.minimum(np.asarray(found["share_w"], dtype=float), np.asarray(found["share_u"], dtype=float))
    return float(found["time"][int(np.argmax(least >= 0.5))]) if (least >= 0.5).any() else float("inf")


def plot(numbers: Numbers) -> Figure:
    """Draw the shares of both kinds of neurons."""
    figure, axes = sheet(1, 2, "Neurons in the perfect agreement region, high dimension", (4.6, 3.6))
    epoch = numbers["epoch"]
    for column, (side, word) in enumerate(
        (("w", "positive neurons (pattern y)"), ("u", "negative neurons (pattern -y)"))
    ):
        shares = np.array([run["sgd"][f"share_{side}"] for run in numbers["runs"]])
        place = np.asarray(numbers["runs"][0]["sgd"]["time"]) / epoch
        panel = axes[0, column]
        band(panel, place[1:], shares.min(0)[1:], shares.mean(0)[1:], shares.max(0)[1:], column, "SGD: mean and range")
        for k, one in enumerate(numbers["runs"]):
            times = np.asarray(one["flow"]["time"], dtype=float)
            late = times >= place[1] * epoch
            heights = np.asarray(one["flow"][f"share_{side}"])[late]
            curve(panel, times[late] / epoch, heights, 6, "exact flow" if k == 0 else "")
            panel.lines[-1].set(lw=0.8)
        panel.set(xscale="log", ylim=(-0.03, 1.05), xlabel="epoch", ylabel="share of the neurons", title=word)
        panel.legend(fontsize=8, loc="center right")
    return figure


EXPERIMENT = Experiment(
    id="SBG-F8",
    title="High dimension: all neurons enter the perfect agreement region",
    caption="400 points of two antipodal Gaussians in R^50, 100 leaky neurons, SGD with step 0.001. Share of the "
    "positive neurons that classify all points right and of the negative ones that classify all points wrong; mean and "
    "range of 5 draws; thin black: exact flow from the same starts, one line a draw.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "n": 400,
        "d": 50,
        "mean": 3.0,
        "draws": 5,
        "width": 100,
        "slope": 0.2,
        "scale": 1e-4,
        "step": 1e-3,
        "epochs": 20,
        "flow_epochs": 5,
    },
    quick={"n": 100, "d": 20, "draws": 1, "width": 20, "epochs": 20},
    ours=("entrance", "flow-*"),
    unstated=(
        Choice(
            "data",
            "means 3 and -3 times the first unit vector, std 1, no point nearer than 0.5 to the hyperplane between",
            "not given beyond: separable, antipodal; the two classes are drawn independently",
        ),
        Choice("initial standard deviation", "1e-4", "not given; the one of SBG-F9"),
        Choice("epochs, draws", "20; mean of 5", "not given"),
        SLOPE,
        OUTPUT,
    ),
    minutes=1.5,
)
