"""What the two figures about one positive and one negative neuron share: the net, its values, its panels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...margins import linearity
from ...problem import Network
from ...problem.types import Array
from ...report.panels import regions
from ..core.experiment import Choice, Numbers, Tell

PARAMETERS = {
    "w": [1.0, 0.0],
    "u": [0.0, 1.0],
    "slopes": [0.0, 0.001, 0.01, 0.1, 0.2, 0.5, 0.9],
    "shown": 0.2,
    "reach": 50,
}
UNSTATED = (
    Choice("slope of the leaky ReLU", "0.2 in the figure, six slopes from 0.001 to 0.9 in the checks", "not given"),
    Choice("size of the output weights", "+1 and -1", "they scale f and leave its sign alone"),
)


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Evaluate the net on the integer points of a square, where additions and signs are exact, for every slope."""
    reach = int(parameters["reach"])
    line = np.arange(-reach, reach + 1.0)
    X = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    per_slope = []
    for k, slope in enumerate(parameters["slopes"]):
        per_slope.append(_measure(net_of(parameters, slope), X))
        tell((k + 1) / len(parameters["slopes"]))
    return {
        **{key: parameters[key] for key in ("w", "u", "shown")},
        "points": len(X),
        "zero_quadrant": int((X <= 0).all(axis=1).sum()),
        "zero_line": int((X[:, 0] == X[:, 1]).sum()),
        "slopes": per_slope,
    }


def net_of(numbers: Mapping[str, Any], slope: float) -> Network:
    """Return the net with one neuron of each sign."""
    return Network([numbers["w"], numbers["u"]], [1.0, -1.0], slope=slope)


def _measure(net: Network, X: Array) -> Numbers:
    f, opposite = net.outputs(X), net.outputs(-X)
    side = np.sign(X @ (net.W[0] - net.W[1]))
    even = (1 - net.slope) * (np.abs(X @ net.W[0]) - np.abs(X @ net.W[1]))  # SBG-C6.1
    answer = linearity(net)
    return {
        "slope": net.slope,
        "wrong_sign": int((np.sign(f) != side).sum()),
        "opposite_sign": int((np.sign(f) * side < 0).sum()),
        "zeros": int((f == 0).sum()),
        "zeros_in_quadrant": int((f[(X <= 0).all(axis=1)] == 0).sum()),
        "even_error": float(np.abs(f + opposite - even).max()),
        "even_size": float(np.abs(f + opposite).max()),
        "linear": answer.linear,
        "evidence": answer.evidence,
    }


def plot_signs(axes: Any, net: Network, title: str) -> None:
    """Tint the plane by the sign of f and mark the two neurons."""
    regions(axes, net.outputs, (-2.0, 2.0), tints=("#B9DCF3", "#D0D0D0", "#F9CFB2"))  # the paper's colours
    arrow = {"arrowstyle": "-|>", "color": "black", "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
    for name, end, place in zip("wu", net.W, ((0.1, -0.32), (-0.32, 0.1)), strict=True):
        axes.annotate("", end, (0.0, 0.0), arrowprops=arrow)
        axes.annotate(f"${name}$", end, end + np.array(place), fontsize=12)
    axes.set_title(title)
