"""SBG-F6: the same for more pairs of digits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...report.panels import sheet
from ..core.experiment import Expectation, Numbers, at_most, is_so
from .digits_setup import at_epoch, label, long_pairs, pairs_of, plot_curve, says_separable, says_why
from .f2 import EXPERIMENT as OUTSIDE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = {"train": "training images", "test": "test images"}


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the share for every pair, whether the pair is what the theory is about, and what becomes of it later."""
    small, epoch = numbers["cases"]["small"], numbers["judged"]["small"]
    found = []
    for name in pairs_of(numbers):
        one, data = small[name], numbers["separable"][name]["all"]
        found += [
            at_most(
                f"{name}-{part}",
                f"Digits {name}, {words}: the share outside the linear region goes to 0 (epoch {epoch}, mean; starts "
                f"from {at_epoch(one, part, epoch, 'low'):.3g} to {at_epoch(one, part, epoch, 'high'):.3g}; with r "
                f"instead of 2 r: {at_epoch(one, f'{part}_r', epoch):.3g}; sign not that of the linear classifier: "
                f"{at_epoch(one, f'{part}_sign', epoch):.3g}; accuracy {at_epoch(one, f'{part}_right', epoch):.4f}).",
                at_epoch(one, part, epoch),
                0.01,
            )
            for part, words in _PARTS.items()
        ]
        found.append(
            is_so(
                f"premise-{name}",
                f"The images of {name} are linearly separable, as the theory of the paper assumes.",
                bool(data["separable"]),
                "separable",
                says_separable(data),
            )
        )
    return [*found, *_check_long(numbers), *_check_subset(numbers)]


def _check_long(numbers: Numbers) -> list[Expectation]:
    small = numbers["cases"]["small"]
    return [
        at_most(
            f"long-{name}",
            f"Digits {name}, training images: the share stays near 0 when training goes on to epoch "
            f"{small[name]['epochs'][-1]} (mean of the starts).",
            float(small[name]["train"]["mean"][-1]),
            0.01,
            f"{says_why(numbers, name)}. Sign not linear on "
            f"{small[name]['train_sign']['mean'][-1]:.2%} of the training images then, accuracy "
            f"{small[name]['train_right']['mean'][-1]:.4f}.",
        )
        for name in long_pairs(numbers)
    ]


def _check_subset(numbers: Numbers) -> list[Expectation]:
    """Judge the nets that were trained on few images, which is not in the paper."""
    few, epoch = numbers["cases"]["subset"], numbers["judged"]["small"]
    shares = {part: {name: at_epoch(one, part, epoch) for name, one in few.items()} for part in _PARTS}
    return [
        at_most(
            f"subset-{part}",
            f"Trained on {numbers['subset']} images of a pair, {words}: the share outside the linear region goes to 0 "
            f"(epoch {epoch}, mean, largest of the pairs).",
            max(shares[part].values()),
            0.01,
            "not in the paper; " + ", ".join(f"{name}: {share:.3g}" for name, share in shares[part].items()) + ".",
        )
        for part, words in _PARTS.items()
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw training and test images, all of them and a few."""
    figure, axes = sheet(2, 2, "Share of images outside the linear region (2 r), small initialisation", (5.0, 3.4))
    for row, (case, words) in enumerate((("small", "all images"), ("subset", f"{numbers['subset']} images"))):
        for panel, part in zip(axes[row], _PARTS, strict=True):
            for name in pairs_of(numbers):
                plot_curve(panel, numbers["cases"][case][name], part, name, label(name))
            panel.axhline(0.01, color="#666666", ls=":", lw=1.0)
            panel.axvline(numbers["judged"]["small"], color="#666666", ls=":", lw=1.0)
            panel.set(xlabel="epoch", ylabel="share outside", title=f"{_PARTS[part]}, {words} for training")
            panel.set(xscale="log")
            panel.set_yscale("symlog", linthresh=1e-3)
            panel.set_ylim(-2e-4, 1.2)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    return figure


EXPERIMENT = replace(
    OUTSIDE,
    id="SBG-F6",
    title="The classifier becomes linear on the data for every pair of digits",
    caption="As SBG-F2, small initialisation, for six pairs of MNIST digits; mean and range of the starts. Above: "
    "trained on all images, as in the paper; the pairs that no line separates are trained on beyond the epoch that is "
    "judged (vertical line) and leave the linear region. Below: trained on a subset of each pair. Dotted across: 1 %.",
    check=check,
    plot=plot,
    implied=("premise-*",),
    ours=("subset-*",),
)
