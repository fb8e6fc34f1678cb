"""How fast norms and directions change along stochastic descent (ML-F12, ML-F13)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import dataset
from ...dynamics import Trajectory, change_measures, descend, flow
from ...problem import Dataset, Network, Problem
from ...report.panels import COLOURS, STYLES, sheet
from ..core.experiment import Expectation, Numbers, Tell, at_most, between
from .common import problem_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Descend with batches and measure at the end of epochs; the exact flow from the same start."""
    data = dataset(parameters["data"]).centered()
    problem = posed(data, parameters)
    epochs, batch = int(parameters["epochs"]), int(parameters["batch"])
    each = -(-data.n // batch)
    ends = [e * each for e in range(0, epochs + 1, int(parameters["every"]))]
    trained = descend(
        problem,
        "sgd",
        step=float(parameters["step"]),
        epochs=epochs,
        batch=batch,
        seed=int(parameters["seed"]),
        dtype=parameters["dtype"],
        record=ends,
        callback=lambda k, _net: tell(0.5 * k / ends[-1]),
        progress=False,
    )
    length = each * float(parameters["step"])
    found: Numbers = {
        "name": data.name,
        "samples": data.n,
        "batch": batch,
        "descent": _measured(trained, length, lambda part: tell(0.5 + 0.2 * part)),
    }
    exact = flow(problem, {"time": epochs * length}, rtol=float(parameters["flow_rtol"]), progress=False)
    found["flow"] = _measured(exact, length, lambda part: tell(0.9 + 0.1 * part))
    return found


def posed(data: Dataset, parameters: Mapping[str, Any]) -> Problem:
    """Both layers from Gaussian weights; or the first one alone, below output weights +1 and -1 with fair signs."""
    problem = problem_of(data, parameters, int(parameters["seed"]))
    if parameters["train"] == "both":
        return problem
    signs = np.random.default_rng([int(parameters["seed"]), 1]).choice([-1.0, 1.0], int(parameters["width"]))
    net = Network(problem.net.W, signs, log_scale=math.log(float(parameters["scale"])), log_scale_out=0.0)
    return Problem(data, net, "exponential", "mean", "first")


def _measured(run: Trajectory, length: float, tell: Tell) -> Numbers:
    """Loss and changes with full gradients at every record; an epoch is so much time."""
    found = []
    for k, net in enumerate(run.networks()):
        found.append(change_measures(run.problem, net))
        tell((k + 1) / len(run))
    q = run.margins()
    with np.errstate(over="ignore"):
        along = np.mean(q * np.exp(-q), axis=1)
    return {
        "epoch": run.time / length,
        "euler": 2.0 * along,
        "loss": run.loss,
        "norm": np.array([change.norm for change in found]),
        "absolute": np.array([change.absolute for change in found]),
        "direction": np.array([change.direction for change in found]),
    }


def check_curves(found: Numbers) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return the curves from the end of the first epoch on, without the start, as arrays; the loss relative to it."""
    curves = {
        key: np.asarray(found[key], dtype=np.float64)
        for key in ("epoch", "loss", "norm", "absolute", "direction", "euler")
    }
    after = curves["epoch"] >= 1 - 1e-9
    return {key: values[after] / (values[0] if key == "loss" else 1.0) for key, values in curves.items()}


def check_end(numbers: Numbers, largest: float) -> list[Expectation]:
    """Judge what both figures show: a small loss in the end, and the axis of the changes of direction."""
    curves = check_curves(numbers["descent"])
    return [
        at_most("loss-small", "The training loss becomes small.", float(curves["loss"][-1]), 0.1),
        between(
            "axis",
            "From the first epoch on the changes of direction are as large as the axis of the paper says, up to about "
            f"{largest:g} (largest value).",
            float(curves["direction"].max()),
            largest / 2,
            largest * 2,
            "A factor of 2 either way is allowed: the start is another one.",
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw loss and changes of norms on the left axis, changes of directions on the right one."""
    figure, axes = sheet(1, 2, f"{numbers['name'].split('|')[0]}, {numbers['samples']} centred images", (6.2, 3.9))
    titles = f"stochastic descent, batch {numbers['batch']}", "exact flow"
    both = [check_curves(numbers[how]) for how in ("descent", "flow")]
    for panel, curves, title in zip(axes[0], both, titles, strict=True):
        _plot_changes(panel, curves, title, 1.05 * max(float(found["direction"].max()) for found in both))
    return figure


def _plot_changes(panel: Any, curves: Mapping[str, Any], title: str, reach: float) -> None:
    right = panel.twinx()
    lines = []
    for k, (axes, key, label) in enumerate(
        (
            (panel, "loss", "loss"),
            (panel, "norm", "changes in neuron norms"),
            (right, "direction", "changes in directions"),
        )
    ):
        lines += axes.plot(curves["epoch"], curves[key], color=COLOURS[k], ls=STYLES[k], lw=1.6, label=label)
    panel.set(xlabel="epoch", ylabel="loss (relative to the start), norms", title=title, ylim=(0.0, None))
    right.set(ylabel="directions", ylim=(0.0, reach))
    panel.legend(handles=lines, fontsize=8, loc="upper right")
