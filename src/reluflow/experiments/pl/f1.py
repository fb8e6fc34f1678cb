"""PL-F1: a two-layer net on orthogonally separable data ends with two rays of neurons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.experiment import Expectation, Experiment, Numbers, at_least, at_most, equals, is_so
from .common import SIGNS, UNSTATED, check_rays
from .two_layer import PARAMETERS, QUICK, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check(numbers: Numbers) -> list[Expectation]:
    """Hold what the paper reads from its panels against every seed, and SGD against the flow."""
    runs = numbers["runs"]
    many = f"worst of {len(runs)} seeds"

    def worst(measure: Callable[[Any], float], pick: Callable[[Any], float]) -> float:
        return float(pick([measure(one) for one in runs]))

    def ratio(k: int, of: int) -> Callable[[Any], float]:
        return lambda one: one["sgd"]["singular_values"][k] / one["sgd"]["singular_values"][of]

    return [
        at_most(
            "rank-first",
            f"the first layer is as good as of rank two: third over first singular value ({many})",
            worst(ratio(2, 0), max),
            0.06,
        ),
        at_most(
            "rank-second",
            f"the first layer is as good as of rank two: third over second singular value ({many})",
            worst(ratio(2, 1), max),
            0.35,
            "the max-margin directions of the two classes are nearly opposite, which makes the second singular value "
            "small itself; the third is what is left of the start",
        ),
        at_least(
            "rays",
            f"neurons lie along two directions, one for each sign of a: share of |W|^2 on these rays ({many})",
            worst(lambda one: check_rays(one["sgd"]["projected"], one["sgd"]["signs"]), min),
            0.95,
            "a measure and a cut-off of ours; the paper shows the projection",
        ),
        at_least(
            "most",
            f"most neurons have a cosine above 0.9 with the max-margin direction of their sign: their share ({many})",
            worst(lambda one: one["sgd"]["share"], min),
            0.5,
        ),
        at_least(
            "energy",
            f"these neurons carry nearly all of |W|^2: their part of it ({many})",
            worst(lambda one: one["sgd"]["energy"], min),
            0.9,
        ),
        equals("accuracy", f"every point is classified ({many})", worst(lambda o: o["sgd"]["accuracy"], min), 1.0, 0.0),
        is_so("separable", "the data are orthogonally separable", all(one["data"]["separable"] for one in runs)),
        is_so(
            "span",
            "the support examples of a class span the space, as the theorem of the paper demands",
            not any(one["data"]["span"] for one in runs),
            expected="false",
            measured=f"{any(one['data']['span'] for one in runs)}".lower()
            + f" (ranks {', '.join('/'.join(map(str, one['data']['ranks'])) for one in runs)} of {numbers['d']})",
            why="the paper's own data miss this condition of its theorem; the conclusion holds without it",
        ),
        *_check_flow(runs, many),
    ]


def _check_flow(runs: list[Any], many: str) -> list[Expectation]:
    spectra = [[np.asarray(one[key]["singular_values"][:3], dtype=float) for key in ("sgd", "flow")] for one in runs]
    turns = [
        np.abs(np.subtract(*[np.asarray(one[key]["correlations"], dtype=float) for key in ("sgd", "flow")]))
        for one in runs
    ]
    return [
        at_most(
            "flow-spectrum",
            f"the exact flow at the same time has the same three singular values: largest relative difference ({many})",
            float(max((np.abs(a - b) / b).max() for a, b in spectra)),
            0.02,
            "a cut-off of ours: steps of SGD are finite and noisy",
        ),
        at_most(
            "flow-cosines",
            f"the exact flow at the same time has the same cosines: median difference of a neuron ({many})",
            float(max(np.nanmedian(t) for t in turns)),
            0.01,
            "a cut-off of ours; single small neurons may differ more",
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw singular values, rows and cosines of SGD with those of the flow, and both losses."""
    from ...report.panels import curve, histogram, row_plane, sheet, singular_values

    one = numbers["runs"][0]
    sgd, exact = one["sgd"], one["flow"]
    figure, axes = sheet(1, 4, "Two-layer ReLU net on orthogonally separable data", size=(3.2, 3.1))
    a, b, c, d = axes[0]
    singular_values(a, sgd["singular_values"])
    values = np.asarray(exact["singular_values"], dtype=float)
    a.plot(np.arange(1, values.size + 1), values, ls="", marker="o", mfc="none", color="black", ms=6, label="flow")
    a.legend(["flow", "SGD"], fontsize=8)
    row_plane(b, sgd["projected"], sgd["signs"], colours=SIGNS)
    rows = np.asarray(exact["projected"], dtype=float)
    b.scatter(*rows.T, s=40, marker="o", facecolors="none", edgecolors="black", lw=0.5, label="flow", zorder=1)
    b.legend(fontsize=8, loc="upper center")
    lowest = min(0.0, *(float(np.nanmin(np.asarray(s["correlations"], dtype=float))) for s in (sgd, exact)))
    for state, name in ((sgd, "SGD"), (exact, "flow")):
        histogram(c, state["correlations"], (lowest, 1.0), bins=25, label=name)
    c.set(xlabel="cosine with $w_+$ (a > 0) or $w_-$ (a < 0)", title="cosines of the neurons")
    c.legend(fontsize=8, loc="upper left")
    for k, name in enumerate(("sgd", "flow")):
        course = {key: np.asarray(v, dtype=float) for key, v in one["curves"][name].items()}
        curve(d, course["time"][1:], course["log_loss"][1:] / np.log(10.0), k, "SGD" if k == 0 else "flow")
    d.set(xscale="log", xlabel="time (SGD: step times iterations)", ylabel="$\\log_{10}$ loss", title="training loss")
    d.set_xlim(left=0.05)
    d.legend(fontsize=8, loc="lower left")
    a.tick_params(axis="x", labelsize=7)
    return figure


EXPERIMENT = Experiment(
    id="PL-F1",
    title="Two-layer net on orthogonally separable data: rank two, two rays, max-margin directions",
    caption=(
        "From the left, for seed 0: the ten largest singular values of the first layer after training by SGD (bars) "
        "and of the exact gradient flow from the same start at the same time (circles); the neurons in the plane of "
        "the two first singular directions (orange for a > 0, as in the paper; the axes have different scales); the "
        "cosine of every neuron with the max-margin direction of the class of its sign; the training loss."
    ),
    run=run,
    check=check,
    plot=plot,
    parameters=PARAMETERS,
    quick=QUICK,
    ours=("energy", "accuracy", "span", "flow-*"),
    unstated=UNSTATED,
    minutes=1.0,
)
