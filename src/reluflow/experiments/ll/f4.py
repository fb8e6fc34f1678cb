"""LL-F4: boundaries of nets and of support vector machines in a plane through 0."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...problem import Network
from ...problem.types import Array
from ...report.panels import COLOURS, boundary, samples, sheet, zero_set
from ..core.experiment import Expectation, Numbers, at_least
from .common import plot_rims
from .tab1 import EXPERIMENT as TABLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check(numbers: Numbers) -> list[Expectation]:
    """Judge how far the two boundaries coincide, in the plane and among test points."""
    planes = {size["n"]: float(size["runs"][0]["slice"]["agreement"]) for size in numbers["sizes"]}
    worst = min(planes, key=lambda n: planes[n])
    space = [float(one["agreement"]) for size in numbers["sizes"] for one in size["runs"]]
    return [
        at_least(
            "plane",
            "In the plane through 0 the boundaries of net and support vector machine coincide (share of the window "
            f"where the signs agree, smallest over the sizes, n = {worst}).",
            planes[worst],
            0.95,
            why="the cut-off is ours: the paper shows panels without a number.",
        ),
        at_least(
            "plane-mean",
            "The same on average over the sizes.",
            float(np.mean(list(planes.values()))),
            0.97,
            why="the cut-off is ours, as above.",
        ),
        at_least(
            "space",
            "Among test points the signs agree (mean share over all sizes and draws).",
            float(np.mean(space)),
            0.95,
            why="ours: no theorem covers these data, which are not symmetric.",
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the panels of all sizes: output of the net, both boundaries, data."""
    count = len(numbers["sizes"])
    columns = min(count, 5)
    title = "Boundaries in a plane through 0: net (white), support vector machine (red), teacher (dotted)"
    figure, axes = sheet(-(-count // columns), columns, title, size=(2.55, 2.7))
    side = np.linspace(-3.0, 3.0, 121)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for panel, size in zip(axes.ravel(), numbers["sizes"], strict=False):
        one = size["runs"][0]["slice"]
        net = Network(one["W"], one["a"], one["slope"])

        def values(points: Array, net: Network = net) -> Array:
            return net.outputs(np.column_stack([points, np.ones(len(points))]))

        panel.contourf(side, side, values(grid).reshape(121, 121), levels=14, cmap="cividis")
        panel.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))
        panel.axvline(0.0, color="white", ls=":", lw=1.0)
        zero_set(panel, values, "white", "-", 2.4, "net")
        boundary(panel, one["line"][:2], float(one["line"][2]), colour=COLOURS[1])
        samples(panel, one["X"], one["y"], size=18)
        plot_rims(panel)
        panel.set_title(f"n = {size['n']}, same sign {100 * one['agreement']:.1f} %", fontsize=8)
        panel.tick_params(labelsize=7)
    for panel in axes[-1]:
        panel.set_xlabel("along the teacher", fontsize=8)
    for panel in axes[:, 0]:
        panel.set_ylabel("across", fontsize=8)
    return figure


EXPERIMENT = replace(
    TABLE,
    id="LL-F4",
    title="Nets from small weights have the boundary of the support vector machine",
    caption="One panel a number of training points, the first draw of LL-TAB1: output of the net (lighter is higher) "
    "in the plane of the teacher and a random direction, its boundary (white), that of the support vector machine "
    "(red, as in the paper, and dashed), that of the teacher (dotted, vertical), and the training points projected to "
    "the plane.",
    check=check,
    plot=plot,
    ours=("space",),
)
