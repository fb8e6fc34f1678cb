"""PL-F3: inner products of the features of two digits, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.experiment import Expectation, Experiment, Numbers, at_least, at_most, is_so
from .conv import PARAMETERS, QUICK, UNSTATED, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS = (("cross", "0 with 1"), ("zeros", "0 with 0"), ("ones", "1 with 1"))


def check(numbers: Numbers) -> list[Expectation]:
    """Ask whether the classes move apart with depth, until layer 7 is orthogonally separable."""
    start, end = numbers["start"]["features"], numbers["end"]["features"]
    return [
        *_check_separable(numbers["separability"]),
        _check_every(numbers["separability"]["train"], numbers["images"]["watched"], numbers["training"]["course"][-1]),
        is_so(
            "learned",
            "this is learned: the features of layer 7 at the start are not orthogonally separable",
            min(start[-1]["before"][kind]["right"] for kind, _ in _KINDS) < 0.99,
            measured=", ".join(f"{name}: {start[-1]['before'][kind]['right']:.4f}" for kind, name in _KINDS),
        ),
        *_check_depth([stage["before"] for stage in end], numbers["levels"]),
        at_least(
            "accuracy",
            "the net learns the task: accuracy on the training images",
            numbers["training"]["accuracy"][-1],
            0.99,
            "not reported in the paper; without it the rest would say nothing",
        ),
    ]


def _check_separable(found: Any) -> list[Expectation]:
    """Judge the features of layer 7."""
    whole, test = found["train"], found["test"]
    images = f"all pairs of {whole['samples']} training images" if whole["complete"] else f"{whole['samples']} images"
    aside = (
        f"{1.0 - whole['cross']:.3g} of the pairs break it, and of the test images {1.0 - test['cross']:.3g} of those "
        f"across the classes and {1.0 - test['same']:.3g} of those within one"
    )
    return [
        at_least(
            "cross-7",
            f"layer-7 features are orthogonally separable: share of products across the classes <= 0 ({images})",
            whole["cross"],
            0.99,
            "the cut-off is ours: less would be seen in the distribution the paper shows. Features before the "
            f"activation, since products after a ReLU are never negative; {aside}",
        ),
        at_least(
            "same-7",
            f"layer-7 features are orthogonally separable: share of products within a class > 0 ({images})",
            whole["same"],
            0.99,
            "the cut-off is ours, as above",
        ),
    ]


def _check_every(whole: Any, watched: int, last: Any) -> Expectation:
    """Judge them by the definition of the paper, which lets no pair off."""
    return is_so(
        "every-7",
        f"layer-7 features are orthogonally separable as the paper defines it, for every pair of {whole['samples']} "
        "training images",
        min(whole["cross"], whole["same"]) >= 1.0,
        "every pair",
        f"{1.0 - whole['cross']:.3g} of the pairs across the classes and {1.0 - whole['same']:.3g} of those within one "
        "break it",
        "the paper says it of features that it compares by pairs drawn at random, of which it shows the distribution; "
        f"of the {watched} images drawn for the figure {1.0 - float(last['cross']):.3g} of the pairs across the "
        "classes break it",
    )


def _check_depth(stages: list[Any], levels: Any) -> list[Expectation]:
    """Judge how far apart the classes are, from layer to layer."""
    order = [_check_right(stage, levels) for stage in stages]
    gaps = [_check_gap(stage, levels) for stage in stages]
    tau, chance = _check_trend(gaps)
    return [
        at_least(
            "order",
            "images of one class are more alike than images of two: share of panels in which the medians of both "
            "same-class distributions are right of the other's",
            float(np.mean(order)),
            0.75,
            "the paper says generally; the cut-off is ours",
        ),
        at_most(
            "trend",
            "the separation grows with depth: chance that the distances of the medians of cosines would be so well in "
            f"order if depth did not matter (Kendall's rank correlation with the layer: {tau:.3f})",
            chance,
            0.05,
            "cosines, because the sizes of features differ by orders of magnitude between layers; distances "
            + ", ".join(f"{gap:.3f}" for gap in gaps),
        ),
        is_so(
            "deepest",
            "the separation is largest in layer 7",
            int(np.argmax(gaps)) == len(gaps) - 1,
            measured=f"{gaps[-1]:.3f} in layer {len(gaps) - 1}, largest before it {max(gaps[:-1]):.3f}",
        ),
    ]


def _check_median(part: Any, key: str, levels: Any) -> float:
    return float(np.interp(0.5, np.asarray(levels, dtype=float), np.asarray(part[key], dtype=float)))


def _check_right(stage: Any, levels: Any) -> bool:
    """Whether both same-class medians are larger than the other."""
    cross, zeros, ones = (_check_median(stage[kind], "quantiles", levels) for kind, _ in _KINDS)
    return min(zeros, ones) > cross


def _check_gap(stage: Any, levels: Any) -> float:
    """Distance of the smaller same-class median of the cosines from the other median."""
    cross, zeros, ones = (_check_median(stage[kind], "cosines", levels) for kind, _ in _KINDS)
    return min(zeros, ones) - cross


def _check_trend(gaps: list[float]) -> tuple[float, float]:
    """Kendall's rank correlation with depth, and the chance of one as large in a random order.

    >>> tau, chance = _check_trend([1.0, 2.0, 3.0, 4.0])
    >>> round(tau, 3), round(chance * 24)    # one order of 4! = 24
    (1.0, 1)
    """
    order = [np.sign(gaps[j] - gaps[i]) for j in range(len(gaps)) for i in range(j)]
    falls = int(np.sum(np.less_equal(order, 0)))  # a tie counts against it
    orders = np.ones(1)  # how many of the n! orders have so many pairs the wrong way round
    for n in range(2, len(gaps) + 1):
        orders = np.convolve(orders, np.ones(n))
    return float(np.mean(order)), float(orders[: falls + 1].sum() / orders.sum())


def plot(numbers: Numbers) -> Figure:
    """Draw one panel for the images and one for each hidden layer."""
    from ...report.panels import COLOURS, STYLES, sheet

    stages = numbers["end"]["features"]
    figure, axes = sheet(2, 4, "Inner products of features, before the activation", size=(3.2, 2.5))
    for ax, stage in zip(axes.flat, stages, strict=True):
        seen = stage["before"]
        scale = 10.0 ** np.floor(np.log10(max(abs(v) for v in seen["span"])))
        edges = np.linspace(seen["span"][0], seen["span"][1], len(seen["cross"]["counts"]) + 1) / scale
        for k, (kind, name) in enumerate(_KINDS):
            heights = np.asarray(seen[kind]["counts"], dtype=float) / seen[kind]["pairs"]
            ax.stairs(heights, edges, color=COLOURS[k], fill=True, alpha=0.25)
            ax.stairs(heights, edges, color=COLOURS[k], ls=STYLES[k], lw=1.3, label=name)
        ax.axvline(0.0, color="black", lw=0.8, ls=":")
        power = round(float(np.log10(scale)))
        unit = f" / $10^{{{power}}}$" if power else ""
        ax.set(title=f"layer {stage['layer']}" if stage["layer"] else "images", xlabel=f"inner product{unit}")
        ax.set(yticks=[], xlim=(min(edges[0], 0.0), max(edges[-1], 0.0)))
    axes[0, 0].legend(fontsize=8)
    for ax in axes[:, 0]:
        ax.set_ylabel("share of pairs")
    return figure


EXPERIMENT = Experiment(
    id="PL-F3",
    title="A convolutional net on the digits 0 and 1: features become orthogonally separable",
    caption=(
        "How inner products of images, and of their features before the activation of each of the seven hidden "
        "layers, are distributed: between the digits 0 and 1, within 0, and within 1. The dotted line is zero. "
        "Training is by Adam and the net is not a two-layer net, so there is no flow to draw beside it."
    ),
    run=run,
    check=check,
    plot=plot,
    parameters=PARAMETERS,
    quick=QUICK,
    ours=("learned", "accuracy"),
    unstated=UNSTATED,
    minutes=24.0,
)
