"""PL-TAB1: the layers of the convolutional net, read off the net itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.experiment import Expectation, Numbers, equals, is_so
from .f3 import EXPERIMENT as FEATURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STATED = (
    "conv(32, 3, 1, 1)",
    "conv(32, 3, 1, 1)",
    "conv(32, 5, 2, 2)",
    "conv(64, 3, 1, 1)",
    "conv(64, 3, 1, 1)",
    "conv(64, 5, 2, 2)",
    "fc(3136, 128)",
    "fc(128, 1)",
)


def check(numbers: Numbers) -> list[Expectation]:
    """Compare the net that was trained with the table."""
    layers = numbers["layers"]
    names = [_check_name(layer) for layer in layers]
    wrong = [f"{k}: {name}" for k, (name, stated) in enumerate(zip(names, _STATED, strict=False), 1) if name != stated]
    into = float(np.prod(layers[5]["output"]))
    return [
        is_so(
            "layers",
            "the eight layers of the net that was trained are those of the table",
            tuple(names) == _STATED,
            expected=", ".join(_STATED),
            measured="the same" if tuple(names) == _STATED else f"{len(names)} layers, differing in {wrong}",
        ),
        equals(
            "fits",
            "the table is consistent: the numbers that leave the sixth layer are those that enter the seventh",
            into,
            float(layers[6]["numbers"][0]),
            0.0,
        ),
        is_so(
            "activations",
            "a ReLU follows every layer but the last",
            ["ReLU" in layer["then"] for layer in layers] == [True] * (len(layers) - 1) + [False],
            why="the table is silent about activations",
        ),
    ]


def _check_name(layer: Any) -> str:
    return f"{layer['kind']}({', '.join(map(str, layer['numbers']))})"


def plot(numbers: Numbers) -> Figure:
    """Draw the table, with the shapes and numbers of parameters that follow from it."""
    from ...report.panels import sheet, table

    figure, axes = sheet(1, 1, "Layers of the convolutional net", size=(7.0, 2.6))
    layers = numbers["layers"]
    rows = [
        (
            layer["layer"],
            _check_name(layer),
            "yes" if layer["bias"] else "no",
            "ReLU" if "ReLU" in layer["then"] else "none",
            " x ".join(map(str, layer["output"])),
            f"{layer['parameters']:,}",
        )
        for layer in layers
    ]
    rows.append(("", "all", "", "", "", f"{sum(layer['parameters'] for layer in layers):,}"))
    table(axes[0, 0], ("layer", "type", "bias", "activation", "output", "parameters"), rows)
    return figure


EXPERIMENT = replace(
    FEATURES,
    id="PL-TAB1",
    title="Layers of the convolutional net",
    caption=(
        "conv(n, k, s, p): n kernels of k x k, stride s, padding p; fc(i, o): i inputs, o outputs. The first two "
        "columns are the table of the paper, as read off the net that was trained; the others follow or are choices."
    ),
    check=check,
    plot=plot,
)
