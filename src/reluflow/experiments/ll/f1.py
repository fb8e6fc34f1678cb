"""The run of LL-F1: flows from small starts on data whose largest margin is not where they go, or is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data import example
from ...margins import kkt, linearity, max_margin, one_neuron, one_signed_margins
from ...problem import Network
from ...report.panels import COLOURS, MARKS
from ..core.experiment import Choice, Expectation, Numbers, Tell, at_most, equals, is_so
from .common import ENDINGS, SLOPE, START, ending, goals, small_start, stored

UNSTATED = (
    START,
    Choice("width", "8, half of the outputs positive", "the theorems ask for both signs, the figure shows no training"),
    Choice("initial scales", "from 1 down to 1e-6", "the theorems say: small enough"),
    Choice("seeds", "0 to 4", "the figure shows no draw"),
)
PARAMETERS = {
    "width": 8,
    "draws": 5,
    "log10_scales": [0.0, -1.0, -2.0, -3.0, -4.0, -6.0],
    "max_log_time": 1e8,
}
QUICK = {"width": 4, "draws": 1, "log10_scales": [0.0, -4.0], "max_log_time": 1e6}


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Certify the networks of the figure, and follow flows of several draws from several scales to their limits."""
    shown = example(parameters["example"])
    data, slope = shown.data, SLOPE
    one, best = goals(data, slope)
    neuron = one_neuron(data, slope)
    single = Network([neuron.w], [1.0], slope)
    special = shown.networks.get("kkt", single)
    certificate = kkt(data, special)
    other = one_signed_margins(data, slope)
    scales, ends = parameters["log10_scales"], []
    for k in range(parameters["draws"]):
        for s in scales:
            problem = small_start(data, parameters["width"], s, k)
            found = ending(problem, one, best.lower, parameters["max_log_time"])
            ends.append({**found, "draw": k, "log10_scale": s})
            tell(len(ends) / (parameters["draws"] * len(scales)))
    return {
        "X": data.X,
        "y": data.y,
        "svm": {"w": max_margin(data).direction, "margin": max_margin(data).margin},
        "special": {
            **stored(special),
            "margin": special.normalized_margin(data),
            "residual": max(certificate.residual, certificate.balance or 0.0),
            "linear": linearity(special).linear,
        },
        "one": {"w": neuron.w, "margin": one, "support": neuron.support, "kappa": neuron.kappa},
        "best": {
            **stored(best.network),
            "margin": best.lower,
            "gap": best.gap,
            "linear": linearity(best.network).linear,
        },
        "other_sign": {"value": other.star.upper, "threshold": other.threshold},
        "ends": ends,
    }


def smallest(ends: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pick the flows from the smallest scale."""
    least = min(end["log10_scale"] for end in ends)
    return [end for end in ends if end["log10_scale"] == least]


def check_common(numbers: Numbers, special: float, best: float, aim: str) -> list[Expectation]:
    """Judge what the three panels have in common: margins, certificates, and where small starts lead."""
    ends = smallest(numbers["ends"])
    hits = sum(end["kind"] == aim for end in ends)
    linear = sum(end["linear"] is True for end in ends)
    which = "the largest margin of any network" if aim == "best" else "the limit of one neuron"
    return [
        at_most(
            "kkt",
            "The network of the figure is a KKT point of the margin problem (residual in the sense of Clarke).",
            float(numbers["special"]["residual"]),
            1e-9,
        ),
        equals("kkt-margin", "Its normalised margin.", float(numbers["special"]["margin"]), special, 1e-9),
        equals("best-margin", "The largest margin of any network.", float(numbers["best"]["margin"]), best, 1e-9),
        is_so(
            "limit",
            f"From the smallest scale the flow ends at {which}, in every draw.",
            hits == len(ends),
            f"{len(ends)} of {len(ends)} draws",
            f"{hits} of {len(ends)} draws",
        ),
        is_so(
            "linear",
            "From the smallest scale the limit has a linear decision boundary, in every draw.",
            linear == len(ends),
            f"{len(ends)} of {len(ends)} draws",
            f"{linear} of {len(ends)} draws",
        ),
    ]


def check_one(numbers: Numbers) -> list[Expectation]:
    """Judge what the two panels whose limit is one neuron have in common."""
    return [
        is_so("best-bent", "The network of largest margin has no linear boundary.", numbers["best"]["linear"] is False),
        is_so(
            "condition",
            "Networks of negative output gain less on the tight points than the linear classifier has (with the "
            "weights the proof needs).",
            float(numbers["other_sign"]["value"]) < float(numbers["other_sign"]["threshold"]),
            f"< {float(numbers['other_sign']['threshold']):.6g}",
            f"{float(numbers['other_sign']['value']):.6g}",
        ),
    ]


def plot_scales(
    axes: Any,
    numbers: Numbers,
    lines: tuple[tuple[str, str], tuple[str, str]] = (("black", "-"), (COLOURS[4], "--")),
) -> None:
    """Draw the margin of the limit against the initial scale; marks and colours tell how the flow ends.

    ``lines`` are colours and styles of the largest margin and of the other one: those of their boundaries.
    """
    for k, (kind, words) in enumerate(ENDINGS.items()):
        points = [
            (10.0 ** end["log10_scale"], end["margin"], end["draw"]) for end in numbers["ends"] if end["kind"] == kind
        ]
        if points:
            scale, margin, draw = np.array(points, dtype=float).T
            axes.scatter(
                scale * 1.12 ** (draw - 2), margin, marker=MARKS[k], c=COLOURS[k], s=26, lw=1.2, label=words, zorder=3
            )
    low, high = float(numbers["special"]["margin"]), float(numbers["best"]["margin"])
    for level, (colour, style) in zip((high, low), lines, strict=True):
        axes.axhline(level, color=colour, lw=1.0, ls=style)
    least = min(low, *(end["margin"] for end in numbers["ends"]))
    axes.set(
        xscale="log",
        xlabel=r"initial scale $\sigma$",
        ylabel="normalised margin at the end",
        ylim=(least - 0.55 * (high - least), high + 0.1 * (high - least)),
        title="where the exact flow ends",
    )
    axes.legend(fontsize=7, loc="lower left")
