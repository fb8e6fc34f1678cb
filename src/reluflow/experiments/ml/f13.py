"""ML-F13: training the first layer alone shows no two phases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.experiment import Choice, Expectation, Numbers, at_most, is_so
from .f12 import EXPERIMENT as BOTH
from .phases import check_curves, check_end


def check(numbers: Numbers) -> list[Expectation]:
    """Judge that the loss falls while the directions still change."""
    found = []
    for how, words in (("descent", "stochastic descent"), ("flow", "the exact flow on the same images")):
        curves = check_curves(numbers[how])
        first = [_check_first(curves["epoch"], at) for at in (curves["loss"] < 0.2, curves["direction"] < 5)]
        found.append(
            is_so(
                f"{how}-together",
                f"Along {words} the loss is below a fifth of its start before the changes of direction drop below 5.",
                bool(np.isfinite(first[0]) and first[0] < first[1]),
                "loss first",
                f"loss: epoch {first[0]:.4g}; directions: epoch {first[1]:.4g}",
            )
        )
    curves = check_curves(numbers["descent"])
    return [
        *found,
        at_most(
            "no-rest",
            "There is no phase in which only directions change: after one epoch the loss has fallen already (part of "
            "its start).",
            float(curves["loss"][0]),
            0.99,
        ),
        *check_end(numbers, 200.0),
    ]


def _check_first(
    epoch: np.ndarray[tuple[int, ...], np.dtype[np.float64]], at: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> float:
    return float(epoch[int(np.argmax(at))]) if at.any() else float("inf")


EXPERIMENT = replace(
    BOTH,
    id="ML-F13",
    title="Only the first layer trained: no two phases",
    check=check,
    implied=(),
    parameters={**BOTH.parameters, "train": "first", "epochs": 100, "every": 1},
    quick={**BOTH.quick, "step": 2e-3, "epochs": 100, "every": 1},
    unstated=(
        *(choice for choice in BOTH.unstated if choice.name != "epochs"),
        Choice("epochs", "100", "the axis is not legible; the loss is small by then"),
        Choice("output weights", "+1 or -1, drawn with fair signs", "stated; the draw is ours"),
    ),
    minutes=3.0,
)
