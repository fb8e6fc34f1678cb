"""LL-F1, right: three added points lead small starts to a linear classifier that is not optimal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...report.panels import boundary, regions, samples, sheet
from ..core.experiment import Choice, Expectation, Experiment, Numbers, is_so
from .common import plot_function
from .f1 import PARAMETERS, QUICK, UNSTATED, check_common, check_one, plot_scales, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HINTS = 3
ONE_MARGIN = 0.1
BEST_MARGIN = 0.143147449443


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the two margins and the limits."""
    turned = max(abs(float(u) - float(v)) for u, v in zip(numbers["one"]["w"], numbers["svm"]["w"], strict=True))
    return [
        *check_common(numbers, ONE_MARGIN, BEST_MARGIN, "one"),
        is_so(
            "support",
            "The tight points of the linear classifier are the two hints beside the boundary.",
            [int(i) for i in numbers["one"]["support"]] == [1, 2],
        ),
        is_so(
            "same-line",
            "The limit classifies like the maximum-margin line of the data.",
            turned <= 1e-7,
            "<= 1e-07 between the unit vectors",
            f"{turned:.2g}",
        ),
        *check_one(numbers),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw data, hints and both boundaries, and where flows end."""
    figure, axes = sheet(1, 2, "Three hints make the net linear and worse than it could be", size=(4.8, 3.9))
    panel = axes[0, 0]
    regions(panel, plot_function(numbers["best"]), (-1.7, 1.7))
    panel.plot([], [], color="black", lw=1.6, label=f"largest margin, {numbers['best']['margin']:.4f}")
    label = f"limit of the flow, {numbers['one']['margin']:.4f}"
    boundary(panel, numbers["one"]["w"], label=label, colour="#E69F00")
    samples(panel, numbers["X"][HINTS:], numbers["y"][HINTS:], size=70)
    hints = numbers["X"][:HINTS]
    panel.scatter([x[0] for x in hints[1:]], [x[1] for x in hints[1:]], marker="x", c="#0072B2", s=60, zorder=4)
    panel.annotate("", (1.66, -0.1), (1.15, -0.07), arrowprops={"arrowstyle": "->", "color": "#0072B2"})
    where = f"x at ({float(hints[0][0]):.1f}, {float(hints[0][1]):.1f})"
    panel.text(0.72, 0.03, where, fontsize=7, color="#0072B2")
    panel.set_title("boundaries, data (+, -), hints (x)")
    panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    plot_scales(axes[0, 1], numbers)
    return figure


EXPERIMENT = Experiment(
    id="LL-F1-right",
    title="Three hints lead small starts to a linear classifier that is not optimal",
    caption="Left: four separable points with three positive hints (x; one far to the right), boundary of the network "
    "of largest margin (black; tints are its signs) and of the limit of the flow from small weights (dashed). Right: "
    "margin of the limit of the exact flow against the scale of the start, several draws; lines: the two margins, in "
    "the colours of the boundaries.",
    run=run,
    check=check,
    plot=plot,
    parameters={**PARAMETERS, "example": "D6"},
    quick=QUICK,
    implied=("kkt-margin", "best-margin", "limit", "linear", "same-line", "condition"),
    unstated=(
        Choice(
            "points",
            "(1, .5), (.8, -1) positive, (-1, .3), (-.9, -.7) negative; hints with H = 45, K = 1, epsilon = 0.2",
            "the paper gives no numbers; with these every condition of its theorem holds",
        ),
        *UNSTATED,
    ),
    minutes=2,
)
