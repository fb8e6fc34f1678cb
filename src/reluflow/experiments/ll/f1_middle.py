"""LL-F1, middle: small starts lead to a linear classifier with less than half of the largest margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...report.panels import regions, samples, sheet, zero_set
from ..core.experiment import Choice, Expectation, Experiment, Numbers, at_least, is_so
from .common import plot_function
from .f1 import PARAMETERS, QUICK, UNSTATED, check_common, check_one, plot_scales, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT = 0.05
ONE_MARGIN = 0.055901699437  # sqrt(0.1^2 + 0.05^2)/2
BEST_MARGIN = 0.127604120277


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the two margins and the limits."""
    return [
        *check_common(numbers, ONE_MARGIN, BEST_MARGIN, "one"),
        at_least(
            "ratio",
            "The largest margin is much larger than that of the linear classifier (ratio).",
            float(numbers["best"]["margin"]) / float(numbers["one"]["margin"]),
            2.2,
            why="the paper says much larger and gives no number; the cut-off is ours.",
        ),
        is_so(
            "support",
            "The tight points of the linear classifier are the two positive ones nearest to the boundary.",
            [int(i) for i in numbers["one"]["support"]] == [0, 1],
        ),
        *check_one(numbers),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw data and both boundaries in the plane of the first two coordinates, and where flows end."""
    figure, axes = sheet(
        1, 2, "More positive points, close to the boundary: linear and far from optimal", size=(4.8, 3.9)
    )
    panel = axes[0, 0]
    regions(panel, plot_function(numbers["best"], height=HEIGHT), (-2.6, 2.6))
    panel.plot([], [], color="black", lw=1.6, label=f"largest margin, {numbers['best']['margin']:.4f}")
    linear = plot_function({"W": [numbers["one"]["w"]], "a": [1.0]}, height=HEIGHT)
    zero_set(panel, linear, "#E69F00", "--", 2.2, f"limit of the flow, {numbers['one']['margin']:.4f}")
    shown = [(x[:2], y) for x, y in zip(numbers["X"], numbers["y"], strict=True) if abs(x[0]) <= 2.6]
    samples(panel, [x for x, _ in shown], [y for _, y in shown], size=70)
    for side in (1.0, -1.0):
        panel.annotate("", (2.55, side), (1.9, side), arrowprops={"arrowstyle": "->", "color": "#0072B2"})
        panel.text(1.35, side + 0.12, "+ at 4, 8, 12", fontsize=7, color="#0072B2")
    panel.set_title("boundaries at $x_3 = 0.05$, data (+, -)")
    panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    plot_scales(axes[0, 1], numbers)
    return figure


EXPERIMENT = Experiment(
    id="LL-F1-middle",
    title="A linear classifier with less than half of the largest margin, preferred by small starts",
    caption="Left: positive points on two lines, negative ones between them, third coordinate 0.05; boundary of the "
    "network of largest margin (black; tints are its signs) and of the limit of the flow from small weights (dashed). "
    "Right: margin of the limit of the exact flow against the scale of the start, several draws; lines: both margins, "
    "in the colours of the boundaries.",
    run=run,
    check=check,
    plot=plot,
    parameters={**PARAMETERS, "example": "D7"},
    quick=QUICK,
    implied=("kkt-margin", "best-margin", "limit", "linear", "condition"),
    unstated=(
        Choice(
            "points",
            "(t, 1, 0.05), (t, -1, 0.05) positive for t = 0.1, 4, 8, 12; (-1, 0, 0.05), (-2, 0, 0.05) negative",
            "the paper gives half-lines only; these meet every condition of its theorem",
        ),
        *UNSTATED,
    ),
    minutes=1.5,
)
