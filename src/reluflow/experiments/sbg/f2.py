"""SBG-F2: share of points outside the linear region, small against large initialisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...report.panels import COLOURS, MARKS, STYLES, sheet, table
from ..core.experiment import Expectation, Experiment, Numbers, at_least, at_most, is_so
from .digits import run
from .digits_setup import (
    KINDS,
    PARAMETERS,
    QUICK,
    UNSTATED,
    at_epoch,
    label,
    long_pairs,
    plot_curve,
    plot_flow,
    says_separable,
    says_why,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES = ("gaussian", "0/1", "3/5")
_WORDS = {"train": "training points", "test": "test points"}
#: What is measured of a set of points, with the words for it.
_MEASURES = {"": "outside, 2 r", "_r": "outside, r", "_sign": "sign not linear"}


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the shares after the epochs that are judged, and what becomes of them later."""
    return [
        *_check_small(numbers),
        *_check_large(numbers),
        _check_middle(numbers),
        *_check_long(numbers),
        *_check_theorem(numbers),
        *_check_ladder(numbers),
        *_check_flow(numbers),
    ]


def _check_small(numbers: Numbers) -> list[Expectation]:
    small, epoch = numbers["cases"]["small"], numbers["judged"]["small"]
    found = [
        at_most(
            f"small-{name}-{part}",
            f"Small initialisation, {label(name)}, {_WORDS[part]}: the share outside the linear region goes to 0 "
            f"(epoch {epoch}, mean; with r instead of 2 r: {at_epoch(small[name], f'{part}_r', epoch):.4g}; sign not "
            f"that of the linear classifier: {at_epoch(small[name], f'{part}_sign', epoch):.4g}).",
            at_epoch(small[name], part, epoch),
            0.01,
        )
        for name in _NAMES
        for part in _WORDS
    ]
    rights = {name: at_epoch(small[name], "test_right", epoch) for name in _NAMES}
    return [
        *found,
        at_least(
            "small-accuracy",
            f"These nets have learned (accuracy on test points after epoch {epoch}, smallest of the three data sets; "
            f"{', '.join(f'{label(name)} {right:.4f}' for name, right in rights.items())}).",
            min(rights.values()),
            0.95,
            "else the rest would say nothing.",
        ),
    ]


def _check_large(numbers: Numbers) -> list[Expectation]:
    large, epoch = numbers["cases"]["large"], numbers["judged"]["large"]
    ratio = min(float(np.min(large[name]["ratio"]["low"])) for name in _NAMES)
    found = [
        at_least(
            "large",
            "Large initialisation: the share outside the linear region does not go to 0 (smallest over epochs, starts, "
            "training and test points, data sets).",
            min(float(np.min(large[name][part]["low"])) for name in _NAMES for part in _WORDS),
            0.2,
            f"it says little: no point can be inside where r is more than half the distance of the means, and it is "
            f"{ratio:.2g} times that distance or more, at the start and after every epoch. Hence the next ones.",
        ),
        *(
            at_least(
                f"large-{name}-{part}",
                f"Large initialisation, {label(name)}, {_WORDS[part]}: the classifier is truly not linear (share whose "
                f"sign is not that of the linear classifier, epoch {epoch}, mean).",
                at_epoch(large[name], f"{part}_sign", epoch),
                0.01,
                "the measure and the cut-off are ours; being outside the linear region does not make a sign differ.",
            )
            for name in _NAMES
            for part in _WORDS
        ),
    ]
    rights = {name: at_epoch(large[name], "train_right", epoch) for name in _NAMES}
    return [
        *found,
        at_least(
            "large-accuracy",
            "From large weights the nets learn, too (accuracy on training points at the end, smallest; "
            f"{', '.join(f'{label(name)} {right:.4f}' for name, right in rights.items())}).",
            min(rights.values()),
            0.9,
            "else the rest would say nothing.",
        ),
    ]


def _check_middle(numbers: Numbers) -> Expectation:
    middle, epoch = numbers["cases"]["paper"], numbers["judged"]["paper"]
    ends = ", ".join(f"{label(name)} {at_epoch(middle[name], 'test', epoch):.3g}" for name in _NAMES)
    signs = ", ".join(f"{label(name)} {at_epoch(middle[name], 'test_sign', epoch):.3g}" for name in _NAMES)
    return at_most(
        "std-0.001",
        "From std 0.001, the small initialisation of SBG-F1, the share goes to 0 as well (largest of the three "
        "data sets, test points, last epoch, mean).",
        max(at_epoch(middle[name], "test", epoch) for name in _NAMES),
        0.01,
        why=f"{ends}. Sign not linear: {signs}. The paper does not state the standard deviation, step and epochs of "
        "this figure: from a start small against the first step the share does go to 0 first.",
    )


def _check_long(numbers: Numbers) -> list[Expectation]:
    small, found = numbers["cases"]["small"], []
    for name in [name for name in long_pairs(numbers) if name in _NAMES]:
        one, last = small[name], small[name]["epochs"][-1]
        high = [share > 0.05 for share in one["train"]["mean"]]
        left = [e for k, e in enumerate(one["epochs"]) if e >= 1 and all(high[k:])]
        when = f"above 5 % from epoch {left[0]} on" if left else "not above 5 % in the end"
        data = numbers["separable"][name]["all"]
        found += [
            is_so(
                f"premise-{name}",
                f"The data of {label(name)} are linearly separable, as the theory of the paper assumes.",
                bool(data["separable"]),
                "separable",
                says_separable(data),
            ),
            at_most(
                f"long-{name}",
                f"Small initialisation, {label(name)}, training points: the share stays near 0 when training goes on "
                f"to epoch {last} (mean of the starts).",
                float(one["train"]["mean"][-1]),
                0.01,
                f"{says_why(numbers, name)}. The mean share is {when}, accuracy goes from "
                f"{at_epoch(one, 'train_right', numbers['judged']['small']):.4f} to "
                f"{one['train_right']['mean'][-1]:.4f}, and in the end {one['test_sign']['mean'][-1]:.2%} of the test "
                "points have another sign than the linear classifier.",
            ),
        ]
        few = numbers["cases"]["subset"][name]
        found.append(
            at_most(
                f"subset-{name}",
                f"On {few['samples']} of these images ({says_separable(numbers['separable'][name]['subset'])}) the "
                f"share stays near 0 to epoch {few['epochs'][-1]}, about as many steps (training points, mean).",
                float(few["train"]["mean"][-1]),
                0.01,
            )
        )
    return found


def _check_theorem(numbers: Numbers) -> list[Expectation]:
    """Judge Theorem 5.1 itself: no point of the linear region has another sign."""
    every = [one for case in numbers["cases"].values() for one in case.values()]
    return [
        at_most(
            f"theorem{key}",
            f"No point with |(mean w - mean u).x| >= {words} r |x| has another sign than the linear classifier: the "
            "share of those that have exceeds the share outside nowhere (largest excess of the means, all cases, data, "
            "epochs).",
            max(
                float(np.max(np.subtract(one[f"{part}_sign"]["mean"], one[f"{part}{key}"]["mean"])))
                for one in every
                for part in _WORDS
            ),
            0.0,
            why,
        )
        for key, words, why in (
            ("", "2", "Theorem 5.1."),
            ("_r", "1", "Eq. 6, which has r for the 2 r of the theorem; true with a still smaller constant."),
        )
    ]


def _check_ladder(numbers: Numbers) -> list[Expectation]:
    ends = {name: [float(rung["test"]["mean"][-1]) for rung in rungs] for name, rungs in numbers["ladder"].items()}
    words = "; ".join(f"{label(name)} {', '.join(f'{share:.3g}' for share in shares)}" for name, shares in ends.items())
    never = ", ".join(label(name) for name in ends if not numbers["separable"][name]["all"]["separable"])
    return [
        at_most(
            "ladder-falls",
            "The larger the initial weights, the more test points are outside the linear region after training "
            "(largest fall of the share from one standard deviation to the next).",
            max(float(np.max(-np.diff(shares))) for shares in ends.values()),
            0.02,
            f"2 % for the noise of a few starts; the shares: {words}.",
        ),
        at_least(
            "ladder-rises",
            "From the smallest to the largest of them the share rises (smallest rise of the data sets).",
            min(shares[-1] - shares[0] for shares in ends.values()),
            0.5,
            f"with this step the neurons part from every start on data that no line separates: {never or 'none'}.",
        ),
    ]


def _check_flow(numbers: Numbers) -> list[Expectation]:
    small, epoch = numbers["cases"]["small"], numbers["judged"]["small"]
    return [
        at_most(
            f"flow-{name}",
            f"{label(name)}: the flow from the first small start, on the same {found['samples']} points, has the same "
            f"share after epoch {epoch} (difference from the mean of SGD, test points; relative tolerance "
            f"{found['rtol']:g}).",
            abs(float(found["test"][-1]) - at_epoch(small[name], "test", epoch)),
            0.01,
        )
        for name, found in numbers["flow"].items()
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the three initialisations above; below what becomes of 3/5, the ladder, and which data are separable."""
    titles = {
        "small": "(a) small initialisation",
        "paper": "std 0.001, as small as in SBG-F1",
        "large": "(b) large initialisation",
    }
    figure, axes = sheet(2, 3, "Share of points outside the linear region", (4.6, 3.6))
    for panel, (case, title) in zip(axes[0], titles.items(), strict=True):
        last = numbers["judged"][case]
        for name in _NAMES:
            for part, width in (("train", 1.0), ("test", 2.2)):
                plot_curve(panel, numbers["cases"][case][name], part, name, f"{label(name)}, {part}", 0, lw=width)
        panel.set(
            xlabel="epoch",
            ylabel="share outside (2 r)",
            title=title,
            ylim=(-0.03, 1.05),
            xlim=(-0.02 * last, 1.02 * last),
        )
    plot_flow(axes[0, 0], numbers, "test", _NAMES)
    axes[0, 0].legend(fontsize=7, loc="upper right")
    least = min(float(np.min(numbers["cases"]["large"][name][part]["low"])) for name in _NAMES for part in _WORDS)
    words = "all of them are 1" if least == 1.0 else f"the smallest is {least:.4g}"
    axes[0, 2].text(0.5, 0.5, words, transform=axes[0, 2].transAxes, ha="center", color="#555555")
    _plot_long(axes[1, 0], numbers)
    _plot_ladder(axes[1, 1], numbers)
    _plot_table(axes[1, 2], numbers)
    return figure


def _plot_long(panel: Any, numbers: Numbers) -> None:
    name = "3/5"
    one, few = numbers["cases"]["small"][name], numbers["cases"]["subset"][name]
    for key, words in _MEASURES.items():
        style = {"": "-", "_r": "--", "_sign": "-."}[key]
        plot_curve(panel, one, f"train{key}", name, f"all: {words}", ls=style)
    plot_curve(panel, one, "train_right", "6/8", "all: accuracy", ls="-")
    place = np.asarray(few["epochs"], dtype=float) * few["samples"] / one["samples"]
    late = place >= 1
    mean = np.asarray(few["train"]["mean"], dtype=float)
    panel.plot(place[late], mean[late], color="black", ls=":", lw=2.0, label=f"{few['samples']} images: outside, 2 r")
    panel.axvline(numbers["judged"]["small"], color="#666666", ls=":", lw=1.0)
    panel.set(xscale="log", xlabel="epoch (few images: as many steps)", ylabel="share of training points")
    words = "separable" if numbers["separable"][name]["all"]["separable"] else "not separable"
    panel.set_title(f"(a) continued, digits {name}: {words}", fontsize=10)
    panel.legend(fontsize=7, loc="center left")


def _plot_ladder(panel: Any, numbers: Numbers) -> None:
    for name, rungs in numbers["ladder"].items():
        k = KINDS[name]
        scales = [rung["scale"] for rung in rungs]
        for key, fill, style in (("test", "full", STYLES[k]), ("test_sign", "none", ":")):
            heights = [float(rung[key]["mean"][-1]) for rung in rungs]
            words = f"{label(name)}: {'outside, 2 r' if key == 'test' else 'sign not linear'}"
            panel.plot(
                scales,
                heights,
                color=COLOURS[k],
                ls=style,
                marker=MARKS[k],
                ms=5,
                fillstyle=fill,
                lw=1.2,
                label=words,
            )
    panel.set(xscale="log", xlabel="standard deviation of the start", ylabel="share of test points")
    panel.set_title("after training with one step size", fontsize=10)
    panel.legend(fontsize=6.5, loc="center left")


def _plot_table(panel: Any, numbers: Numbers) -> None:
    rows, epoch = [], numbers["judged"]["small"]
    for name, found in numbers["separable"].items():
        one = numbers["cases"]["small"][name]
        said = [f"yes, {float(data['margin']):.2g}" if data["separable"] else "no" for data in found.values()]
        rows.append(
            (
                label(name).replace("digits ", ""),
                found["all"]["samples"],
                said[0],
                said[1] if len(said) > 1 else "",
                f"{at_epoch(one, 'train_right', epoch):.4f}",
                f"{at_epoch(one, 'test_right', epoch):.4f}",
            )
        )
    few = f"{numbers['subset']}\nof them"
    table(panel, ("data", "points", "separable,\nmargin", few, "accuracy\n(train)", "accuracy\n(test)"), rows)
    panel.set_title(f"data, and accuracy after epoch {epoch} (a)", fontsize=10)


EXPERIMENT = Experiment(
    id="SBG-F2",
    title="Share of points outside the linear region: to zero from small weights, not from large ones",
    caption="Top: share of training (thin) and test points x (thick) with |(mean w - mean u).x| < 2 r |x|, r the "
    "radius of the clusters, by epoch of SGD; Gaussian data and all images of two pairs of MNIST digits, mean and "
    "range of the starts; dotted in (a) the exact flow from the first start, on the same points. Bottom left: the "
    "small initialisation continued on 3/5, which no line separates: share outside with 2 r (Theorem 5.1) and r (Eq. "
    "6), share whose sign is truly not linear, accuracy; dotted black the same on a subset that can be separated; "
    "the vertical line is the end of panel (a). Bottom middle: shares after training against the size of the initial "
    "weights. Bottom right: which data a line through 0 separates, with its margin, and accuracies.",
    run=run,
    check=check,
    plot=plot,
    parameters=PARAMETERS,
    quick=QUICK,
    implied=("premise-*", "theorem*"),
    ours=("small-accuracy", "large-*", "subset-*", "ladder-*", "flow-*"),
    unstated=UNSTATED,
    minutes=28.0,
)
