"""LL-F1, left: symmetric data with a KKT point that is not optimal, which small starts avoid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...report.panels import COLOURS, boundary, regions, samples, sheet
from ..core.experiment import Expectation, Experiment, Numbers, is_so
from .common import plot_function
from .f1 import PARAMETERS, QUICK, UNSTATED, check_common, plot_scales, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KKT_MARGIN = 0.356107225225  # (1+s)/(2(1+1/cos b)) for slope s = 1/2, cos b = (1+sqrt(97))/12
BEST_MARGIN = 0.375  # (1+s)/4


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the KKT point, the optimum and the limits."""
    return [
        *check_common(numbers, KKT_MARGIN, BEST_MARGIN, "best"),
        is_so(
            "bent",
            "The decision boundary of the three-neuron KKT point is not linear (proved by a point x where f(x) and "
            "f(-x) have the same sign).",
            numbers["special"]["linear"] is False,
        ),
        is_so(
            "every-scale",
            "No scale tried leads to the KKT point that is not optimal.",
            all(end["kind"] == "best" for end in numbers["ends"]),
            "all limits optimal",
            f"{sum(end['kind'] == 'best' for end in numbers['ends'])} of {len(numbers['ends'])} limits optimal",
            why="ours; the theorem speaks of small scales only.",
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw data and both boundaries, and where flows end."""
    figure, axes = sheet(1, 2, "Symmetric data: a KKT point that is not optimal", size=(4.8, 3.9))
    panel = axes[0, 0]
    regions(panel, plot_function(numbers["special"]), (-3.2, 3.2))
    panel.plot([], [], color="black", lw=1.6, label=f"KKT point, margin {numbers['special']['margin']:.4f}")
    boundary(panel, numbers["svm"]["w"], label=f"limit of the flow, margin {numbers['best']['margin']:.4f}")
    samples(panel, numbers["X"], numbers["y"], size=70)
    panel.set_title("boundaries, data (+, -)")
    panel.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    plot_scales(axes[0, 1], numbers, ((COLOURS[2], "--"), ("black", "-")))
    return figure


EXPERIMENT = Experiment(
    id="LL-F1-left",
    title="Symmetric data: small starts avoid a KKT point that is not optimal",
    caption="Left: six symmetric points, the bent boundary of a three-neuron KKT point (black; tints are its signs) "
    "and the linear boundary of the limit of the flow (dashed), which has the largest margin of any network. Right: "
    "margin of the limit of the exact flow against the scale of the start, several draws; lines: the two margins, in "
    "the colours of the boundaries.",
    run=run,
    check=check,
    plot=plot,
    parameters={**PARAMETERS, "example": "D4"},
    quick=QUICK,
    implied=("kkt-margin", "best-margin", "limit", "linear"),
    ours=("every-scale",),
    unstated=UNSTATED,
    minutes=1.5,
)
