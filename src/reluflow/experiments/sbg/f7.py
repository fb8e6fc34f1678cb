"""SBG-F7: how tightly the neurons of one sign stand together, by epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...report.panels import sheet
from ..core.experiment import Expectation, Numbers, at_least, at_most
from .digits_setup import at_epoch, label, long_pairs, plot_curve, plot_flow, says_why
from .f2 import EXPERIMENT as OUTSIDE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURES = {"ratio": (0.05, "r / |mean w - mean u|"), "angle": (5.0, "largest angle in a cluster, degrees")}


def check(numbers: Numbers) -> list[Expectation]:
    """Judge both measures at the end, that they fall, and that they do not from large weights."""
    small, large, epoch = numbers["cases"]["small"], numbers["cases"]["large"], numbers["judged"]["small"]
    found = []
    for key, (bound, word) in _MEASURES.items():
        found += [
            at_most(
                f"{key}-{name}",
                f"{label(name)}: {word} goes to 0 (epoch {epoch}, mean).",
                at_epoch(one, key, epoch),
                bound,
            )
            for name, one in small.items()
        ]
        found += [
            at_most(
                f"{key}-long-{name}",
                f"{label(name)}: {word} stays small when training goes on to epoch {small[name]['epochs'][-1]} (mean).",
                float(small[name][key]["mean"][-1]),
                bound,
                f"{says_why(numbers, name)}: see SBG-F6.",
            )
            for name in long_pairs(numbers)
        ]
        found += [
            at_most(
                f"{key}-trend",
                f"{word} falls from epoch to epoch (largest rise between records from epoch 1 to {epoch}, relative to "
                "its value there, all data sets).",
                max(_check_rise(one[key]["mean"][: one["epochs"].index(epoch) + 1]) for one in small.values()),
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
    found += [
        at_most(
            f"flow-{name}",
            f"{label(name)}: the flow from the first start, on the same points, clusters the neurons at least as "
            f"tightly as SGD (ratio of r / |mean w - mean u| after epoch {epoch}).",
            float(exact["ratio"][-1]) / at_epoch(small[name], "ratio", epoch),
            1.0,
            why="the flow has no first steps of finite size, which spread the neurons of SGD from tiny weights.",
        )
        for name, exact in numbers["flow"].items()
    ]
    return found


def _check_rise(values: list[float]) -> float:
    heights = np.asarray(values, dtype=float)[1:]
    return float(np.max(np.diff(heights) / heights[0]))


def plot(numbers: Numbers) -> Figure:
    """Draw the two measures."""
    figure, axes = sheet(1, 2, "Clustering of the neurons, small initialisation", (5.0, 3.8))
    for panel, (key, (_, word)), letter in zip(axes[0], _MEASURES.items(), "ab", strict=True):
        for name, one in numbers["cases"]["small"].items():
            plot_curve(panel, one, key, name, label(name))
        plot_flow(panel, numbers, key)
        panel.axvline(numbers["judged"]["small"], color="#666666", ls=":", lw=1.0)
        panel.set(xlabel="epoch", ylabel=word, title=f"({letter})", xscale="log", yscale="log")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


EXPERIMENT = replace(
    OUTSIDE,
    id="SBG-F7",
    title="Neurons of one sign cluster",
    caption="(a) Radius of the clusters relative to the distance of their means, (b) largest angle between two neurons "
    "of one sign, by epoch of SGD from small weights; the runs of SBG-F2 and F6 in the same colours, mean and range of "
    "the starts; dotted the exact flow from the first start, on the data of SBG-F2. The vertical line is "
    "the epoch that is judged; pairs that no line separates are continued.",
    check=check,
    plot=plot,
    implied=(),
    ours=("*-trend", "*-large", "flow-*"),
)
