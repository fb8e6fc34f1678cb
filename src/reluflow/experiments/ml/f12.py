"""ML-F12: both layers trained by stochastic descent show two phases."""

from __future__ import annotations

import numpy as np

from ..core.experiment import Choice, Expectation, Experiment, Numbers, at_most, is_so
from .choices import BOTH_LAYERS
from .common import crossing
from .phases import check_curves, check_end, plot, run


def check(numbers: Numbers) -> list[Expectation]:
    """Judge that directions change first and norms afterwards."""
    curves, exact = check_curves(numbers["descent"]), check_curves(numbers["flow"])
    drops = [
        crossing(numbers[how]["epoch"], np.asarray(numbers[how]["loss"], dtype=np.float64), 0.99)
        for how in ("descent", "flow")
    ]
    return [
        *_check_phases(curves),
        *check_end(numbers, 20.0),
        at_most(
            "flow-drop",
            "The exact flow from the same start on the same images loses 1 % of its loss in the same epoch (relative "
            f"difference; descent {drops[0]:.1f}, flow {drops[1]:.1f}).",
            abs(drops[1] / drops[0] - 1),
            0.02,
            "As in ML-F5, although steps with batches are noisier.",
        ),
        is_so(
            "flow-directions",
            "In the flow, too, the directions change fastest before the loss has fallen by 1 %.",
            bool(exact["loss"][exact["direction"].argmax()] > 0.99),
            "loss above 0.99",
            f"loss {exact['loss'][exact['direction'].argmax()]:.4f} at the maximum",
        ),
    ]


def _check_phases(curves: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]) -> list[Expectation]:
    direction, norm = curves["direction"], np.abs(curves["norm"])
    peak = int(direction.argmax())
    calm = np.flatnonzero(direction[peak:] <= 0.1 * direction[peak])
    at = peak + int(calm[0]) if calm.size else None
    share = float("nan") if at is None else float(norm[at] / norm.max())
    moment = "never" if at is None else f"epoch {curves['epoch'][at]:.0f}, loss {curves['loss'][at]:.6f} of its start"
    return [
        at_most(
            "norm-rests",
            "First only directions change: when their changes have fallen to a tenth of their peak the sum of the "
            f"changes of squared norms is still small ({moment}; relative to its largest value).",
            share,
            0.02,
            "Judged there and not at a loss: the sum is 2 mean(q e^-q), about twice what the loss has lost as long as "
            "margins are small and never above 2/e, so where the loss has lost 1 % it is at least e/100 of its maximum "
            "whatever the data.",
        ),
        is_so(
            "directions-first",
            "The directions change fastest while the loss is above 0.99 of its start.",
            bool(curves["loss"][peak] > 0.99),
            "loss above 0.99 of its start",
            f"loss {curves['loss'][peak]:.6f} of its start, epoch {curves['epoch'][peak]:.0f}",
        ),
        at_most(
            "euler",
            "The sum of the changes of squared norms is 2 mean(q e^-q), by Euler's identity for the first layer "
            "(largest difference, relative to its largest value).",
            float(np.abs(curves["norm"] - curves["euler"]).max() / norm.max()),
            1e-6,
            "Margins and gradients are computed apart from each other, from records in doubles.",
        ),
    ]


EXPERIMENT = Experiment(
    id="ML-F12",
    title="Both layers trained: first only directions change, then norms and loss",
    caption="Loss, sum of the changes of the squared norms (left axis), sum of the changes of the directions (right "
    "axis), each with full gradients. Left: at the ends of epochs of stochastic descent. Right: along the exact flow "
    "from the same start on the same images; an epoch is as much time; it jumps where an activation changes.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "data": "mnist:digits=0/1",
        "train": "both",
        "width": 50,
        "scale": 1e-6,
        "step": 2e-3,
        "batch": 2000,
        "epochs": 900,
        "every": 3,
        "seed": 0,
        "dtype": "float32",
        "flow_rtol": 1e-4,
    },
    quick={
        "data": "digits:pair=0/1",
        "batch": 64,
        "step": 6e-3,
        "epochs": 900,
        "every": 10,
        "dtype": "float64",
    },
    implied=("euler",),
    ours=("flow-*",),
    unstated=(
        *BOTH_LAYERS,
        Choice("digits", "0 (negative) and 1 (positive)", "those of the main experiment"),
        Choice("epochs", "900, every third measured", "the axis is not legible; the loss is small by then"),
        Choice("relative tolerance of the flow", "1e-4", "far below what steps with batches differ by"),
        Choice("batches", "without replacement, the last of an epoch is smaller", "not said"),
    ),
    minutes=4.0,
)
