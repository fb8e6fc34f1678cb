"""SBG-F5: the same two neurons; the boundary is linear, the function is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...report.panels import COLOURS, sampled, sheet
from ..core.experiment import Choice, Expectation, Experiment, Numbers, at_least, at_most, equals
from .two_neurons import PARAMETERS, UNSTATED, net_of, plot_signs, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the even part of f and the sign."""
    leaky = [found for found in numbers["slopes"] if found["slope"] > 0]
    reach = max(found["even_size"] / (1 - found["slope"]) for found in leaky)
    return [
        equals(
            "boundary",
            "The sign of the leaky net is that of x_1 - x_2 (points of the grid with another sign, all slopes).",
            sum(found["wrong_sign"] for found in leaky),
            0,
            0,
        ),
        at_most(
            "even-part",
            "f(x) + f(-x) = (1 - slope)(|x_1| - |x_2|) at every point (largest error relative to its largest value).",
            max(found["even_error"] / found["even_size"] for found in leaky if found["even_size"] > 0)
            if any(found["even_size"] > 0 for found in leaky)
            else float("nan"),
            1e-14,
            why="rounding of two products and three sums.",
        ),
        at_least(
            "nonlinear",
            "The function itself is not linear: a linear one has f(x) + f(-x) = 0 "
            "(smallest over the slopes of its largest value, over (1 - slope) times the half width of the grid).",
            min(found["even_size"] / ((1 - found["slope"]) * reach) for found in leaky),
            0.5,
            why="the formula gives exactly 1; anything clearly above 0 shows that f is not linear.",
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the sign and the values."""
    from matplotlib.colors import LinearSegmentedColormap

    figure, axes = sheet(1, 2, f"Two neurons, leaky ReLU of slope {numbers['shown']:g}", (4.6, 3.9))
    net = net_of(numbers, numbers["shown"])
    plot_signs(axes[0, 0], net, "sign of f: linear")
    panel, grid = axes[0, 1], sampled(net.outputs, (-2.0, 2.0))
    colours = LinearSegmentedColormap.from_list("signed", [COLOURS[0], "#FFFFFF", COLOURS[1]])
    image = panel.contourf(*grid, levels=np.linspace(-2.5, 2.5, 21), cmap=colours)
    lines = panel.contour(*grid, levels=[-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0], colors="black", linewidths=0.8)
    panel.clabel(lines, levels=[-1.0, -0.5, 0.5, 1.0, 2.0], fontsize=8, fmt="%g")  # the others would be cut off
    figure.colorbar(image, ax=panel, shrink=0.85, label="f")
    panel.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$", title="value of f: kinked, not linear")
    return figure


EXPERIMENT = Experiment(
    id="SBG-F5",
    title="Two leaky neurons: a linear boundary does not make the function linear",
    caption="The net of SBG-F4 with leaky ReLU. Left: its sign, a linear classifier. Right: its value; the contour "
    "lines bend where a neuron changes sides, so f is not linear. Orange is positive and blue negative, as in SBG-F4.",
    run=run,
    check=check,
    plot=plot,
    parameters=PARAMETERS,
    implied=("even-part",),
    unstated=(*UNSTATED, Choice("the two neurons", "w = (1, 0), u = (0, 1), those of SBG-F4", "not given")),
    minutes=0.02,
)
