"""SBG-F4: sign regions of two neurons, leaky ReLU against ReLU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...report.panels import sheet
from ..core.experiment import Expectation, Experiment, Numbers, equals, is_so
from .two_neurons import PARAMETERS, UNSTATED, net_of, plot_signs, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the signs on the grid, and the answer of exact arithmetic."""
    leaky = [found for found in numbers["slopes"] if found["slope"] > 0]
    relu = next(found for found in numbers["slopes"] if found["slope"] == 0)
    wrong = sum(found["wrong_sign"] for found in leaky)
    outside = relu["wrong_sign"] - (numbers["zero_quadrant"] - _check_line_in_quadrant(numbers))
    return [
        equals(
            "leaky-sign",
            "With any slope above 0 the net has the sign of x_1 - x_2 at every point of the grid, zero included "
            "(points with another sign, all slopes together).",
            wrong,
            0,
            0,
        ),
        is_so(
            "leaky-proved",
            "For every slope above 0 the sign of the net is that of a linear function, in exact arithmetic.",
            all(found["linear"] is True and found["evidence"] == "proved" for found in leaky),
            "linear, proved",
            ", ".join(f"{found['slope']:g}: {_check_word(found['linear'])} ({found['evidence']})" for found in leaky),
        ),
        equals(
            "relu-zero",
            "The ReLU net is 0 on the whole quadrant x_1, x_2 <= 0 (share of its grid points).",
            relu["zeros_in_quadrant"] / numbers["zero_quadrant"],
            1,
            0,
        ),
        equals(
            "relu-elsewhere",
            "Outside that quadrant the ReLU net has the sign of x_1 - x_2 (points with another sign).",
            outside,
            0,
            0,
        ),
        is_so(
            "relu-nonlinear",
            "The sign of the ReLU net is not that of any linear function, in exact arithmetic.",
            relu["linear"] is False and relu["evidence"] == "proved",
            "not linear, proved",
            f"{_check_word(relu['linear'])} ({relu['evidence']})",
        ),
    ]


def _check_line_in_quadrant(numbers: Numbers) -> int:
    # Of the points with x_1 = x_2, where the sign is 0 anyway, these lie in the quadrant.
    return (int(numbers["zero_line"]) + 1) // 2


def _check_word(linear: bool | None) -> str:
    return {True: "linear", False: "not linear", None: "open"}[linear]


def plot(numbers: Numbers) -> Figure:
    """Draw the two sign regions side by side."""
    figure, axes = sheet(1, 2, "Two neurons, output weights +1 (w) and -1 (u)", (4.2, 4.1))
    shown = numbers["shown"]
    plot_signs(axes[0, 0], net_of(numbers, shown), f"leaky ReLU, slope {shown:g}")
    plot_signs(axes[0, 1], net_of(numbers, 0.0), "ReLU")
    axes[0, 1].plot([-2.0, 0.0, 0.0], [0.0, 0.0, -2.0], color="black", lw=1.6)
    axes[0, 1].annotate("f = 0", (-1.0, -1.0), ha="center", fontsize=12)
    for panel in axes[0]:
        panel.annotate("f > 0", (1.3, -1.0), ha="center", fontsize=12)
        panel.annotate("f < 0", (-1.0, 1.3), ha="center", fontsize=12)
    return figure


EXPERIMENT = Experiment(
    id="SBG-F4",
    title="Two neurons: the boundary of a leaky ReLU net is linear, that of a ReLU net is not",
    caption="Sign of a net with one positive neuron w = (1, 0) and one negative neuron u = (0, 1). Left: leaky ReLU, "
    "the boundary (black) is a line. Right: ReLU, the net is 0 on a whole quadrant (grey). Orange is positive and blue "
    "negative, as in the paper.",
    run=run,
    check=check,
    plot=plot,
    parameters=PARAMETERS,
    unstated=UNSTATED,
    minutes=0.02,
)
