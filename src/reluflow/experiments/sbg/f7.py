"""SBG-F7: how tightly the neurons of one sign stand together, by epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...report.panels import curve, sheet
from ..core.experiment import Expectation, Numbers, at_least, at_most
from .digits_setup import label, plot_curve
from .f2 import EXPERIMENT as OUTSIDE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURES = {"ratio": (0.05, "r / |mean w - mean u|"), "angle": (5.0, "largest angle in a cluster, degrees")}


def check(numbers: Numbers) -> list[Expectation]:
    """Judge both measures at the end, that they fall, and that they do not from large weights."""
    small, large = numbers["cases"]["small"], numbers["cases"]["large"]
    found = []
    for key, (bound, word) in _MEASURES.items():
        found += [
            at_most(
                f"{key}-{name}", f"{label(name)}: {word} goes to 0 (last epoch, mean).", one[key]["mean"][-1], bound
            )
            for name, one in small.items()
        ]
        found += [
            at_most(
                f"{key}-trend",
                f"{word} falls from epoch to epoch (largest rise between records after the first epoch, relative to "
                "its value there, all data sets).",
                max(_check_rise(one[key]["mean"]) for one in small.values()),
                0.02,
                why="ours: a monotone trend, with 2 % for the noise of single epochs.",
            ),
            at_least(
                f"{key}-large",
                f"From large weights {word} stays large (smallest over data sets and epochs).",
                min(float(np.min(one[key]["low"])) for one in large.values()),
                10 * bound,
                why="ours: ten times what counts as clustered, for contrast.",
            ),
        ]
    found.append(
        at_most(
            "flow",
            "Gaussians: the exact flow clusters the neurons at least as tightly as SGD (ratio of r / |mean w - mean u| "
            "at the end).",
            float(numbers["flow"]["ratio"][-1]) / float(small["gaussian"]["ratio"]["mean"][-1]),
            1.0,
            why="the flow has no first steps of finite size, which spread the neurons of SGD from tiny weights.",
        )
    )
    return found


def _check_rise(values: list[float]) -> float:
    heights = np.asarray(values, dtype=float)[1:]
    return float(np.max(np.diff(heights) / heights[0]))


def plot(numbers: Numbers) -> Figure:
    """Draw the two measures."""
    figure, axes = sheet(1, 2, "Clustering of the neurons, small initialisation", (5.0, 3.8))
    flow = {key: np.asarray(values, dtype=float) for key, values in numbers["flow"].items()}
    late = flow["epochs"] >= 1.0
    for panel, (key, (_, word)), letter in zip(axes[0], _MEASURES.items(), "ab", strict=True):
        for kind, (name, one) in enumerate(numbers["cases"]["small"].items()):
            plot_curve(panel, one, key, kind, label(name))
        curve(panel, flow["epochs"][late], flow[key][late], 6, "Gaussians, exact flow")
        panel.lines[-1].set(lw=0.8, ls=":")
        panel.set(xlabel="epoch", ylabel=word, title=f"({letter})", xscale="log", yscale="log")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


EXPERIMENT = replace(
    OUTSIDE,
    id="SBG-F7",
    title="Neurons of one sign cluster",
    caption="(a) Radius of the clusters relative to the distance of their means, (b) largest angle between two neurons "
    "of one sign, by epoch of SGD from small weights; the runs of SBG-F2 and F6, mean and range of 5 starts, and the "
    "exact flow for the Gaussian data.",
    check=check,
    plot=plot,
)
