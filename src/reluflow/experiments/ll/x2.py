"""LL-X2: three points on which the theorem as printed fails, with the motion near its limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import example
from ...dynamics import flow
from ...margins import global_max_margin, one_neuron
from ...problem import Dataset, Network, Problem, initialize
from ...problem.types import Array
from ...report.panels import COLOURS, MARKS, STYLES, boundary, regions, samples, sheet
from ...theory import check as check_claims
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_least, at_most, equals, is_so
from .common import START, ending, plot_function, stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLOPE = 0.2
BEST = 10**0.5 / 6  # the largest margin of any network
CONDITIONS = ("LL-A3.2", "LL-A.2", "LL-A.3", "LL-A4.6", "LL-A.5", "LL-A.5*")


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Check the conditions, follow flows with and without negative neurons, and draw the motion near one neuron."""
    data = example("D8").data
    one, best = 0.5 * one_neuron(data, SLOPE).gamma, global_max_margin(data, SLOPE)
    ends = []
    for signs in ([1, 1, -1, -1], [1, 1, 1, 1]):
        for log10_scale in parameters["log10_scales"]:
            for seed in range(parameters["draws"]):
                net = initialize(2, 4, "balanced-gaussian", 10.0**log10_scale, seed, slope=SLOPE, signs=signs)
                found = ending(Problem(data, net), one, best.lower, 1e8)
                ends.append({**found, "negative": signs.count(-1), "log10_scale": log10_scale, "draw": seed})
        tell(0.25 * (1 + (min(signs) > 0)))
    portrait = []
    for k, angle in enumerate(parameters["angles"]):
        for log_share in parameters["log10_shares"]:
            portrait.append(orbit(data, angle, log_share, parameters))
        tell(0.5 + 0.5 * (k + 1) / len(parameters["angles"]))
    start = initialize(2, 4, "balanced-gaussian", 1e-4, 0, slope=SLOPE, signs=[1, 1, -1, -1])
    claims = {claim.claim: claim.applies for claim in check_claims(Problem(data, start), paper="LL")}
    return {
        "X": data.X,
        "y": data.y,
        "conditions": {name: claims[name] for name in CONDITIONS},
        "one": {"w": one_neuron(data, SLOPE).w, "margin": one},
        "best": {**stored(best.network), "margin": best.lower, "gap": best.gap, **where(best.network)},
        "ends": ends,
        "portrait": portrait,
    }


def orbit(data: Dataset, angle: float, log10_share: float, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Follow two neurons of large norm: one positive at an angle, one negative with a share of the squared norm."""
    turned = np.radians(angle)
    side = np.radians(parameters["negative_angle"])
    part = 10.0**log10_share
    rows = [[np.cos(turned), np.sin(turned)], [np.cos(side), np.sin(side)]]
    sizes = np.sqrt([1.0 - part, part])[:, None] * np.array(rows)
    net = Network.balanced(sizes, [1, -1], SLOPE, log_scale=parameters["log_norm"])
    path = flow(Problem(data, net), {"margin": parameters["margin"]}, rtol=1e-7, progress=False)
    keep = np.unique(np.linspace(0, len(path) - 1, 60).astype(int))
    states = [where(path.network(int(k))) for k in keep]
    return {
        "angle": np.array([state["angle"] for state in states]),
        "share": np.array([state["share"] for state in states]),
        "margin": np.array([path.network(int(k)).normalized_margin(data) for k in keep]),
        "log_norm": path.log_norm[keep],
    }


def where(net: Network) -> dict[str, float]:
    """Return the angle of the positive part in degrees and the share of the negative neurons in the squared norm."""
    unit = net.normalized()
    plus: Array = (np.maximum(unit.a, 0.0)[:, None] * unit.W).sum(axis=0)
    return {
        "angle": float(np.degrees(np.arctan2(plus[1], plus[0]))),
        "share": float(2.0 * (unit.a[unit.a < 0] ** 2).sum()),
    }


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the conditions, the limits, and the motion near one neuron."""
    return [
        *check_conditions({name: numbers["conditions"][name] for name in CONDITIONS}),
        equals("best-margin", "The largest margin of any network.", float(numbers["best"]["margin"]), BEST, 1e-9),
        *check_ends(numbers["ends"]),
        *check_portrait(numbers["portrait"], float(numbers["best"]["share"])),
    ]


def check_conditions(held: Mapping[str, Any]) -> list[Expectation]:
    """Judge what the theorem asks, and what its proof does."""
    return [
        is_so(
            "conditions",
            "Every condition of the theorem as printed holds: separable, A.2, A.3, unique flow, A.5.",
            all(held[name] is True for name in CONDITIONS[:-1]),
            "all hold",
            ", ".join(f"{name[3:]} {'holds' if holds else 'fails'}" for name, holds in held.items()),
        ),
        is_so(
            "star",
            "What its proof needs of A.5 (the same bound with the weights of the support vectors) fails.",
            held["LL-A.5*"] is False,
            "A.5* fails",
            "A.5* fails" if held["LL-A.5*"] is False else "A.5* does not fail",
        ),
    ]


def check_ends(ends: list[dict[str, Any]]) -> list[Expectation]:
    """Judge where the flows from small weights end, with and without negative neurons."""
    mixed = [float(end["margin"]) for end in ends if end["negative"] and end["kind"] == "best"]
    all_mixed = sum(bool(end["negative"]) for end in ends)
    pure = [end for end in ends if not end["negative"]]
    return [
        is_so(
            "mixed",
            "With two negative neurons the flow does not end at one neuron but at the largest margin, at every scale.",
            len(mixed) == all_mixed and max(abs(m - BEST) for m in mixed) <= 1e-9,
            f"{all_mixed} of {all_mixed} flows, margin {BEST:.9f}",
            f"{len(mixed)} of {all_mixed} flows",
        ),
        is_so(
            "pure",
            "With positive neurons only it ends at one neuron, margin 1/2, at every scale.",
            all(end["kind"] == "one" and abs(float(end["margin"]) - 0.5) <= 1e-9 for end in pure),
            f"{len(pure)} of {len(pure)} flows",
            f"{sum(end['kind'] == 'one' for end in pure)} of {len(pure)} flows",
        ),
    ]


def check_portrait(paths: list[dict[str, Any]], best_share: float) -> list[Expectation]:
    """Judge the motion of two large neurons, one of them negative."""
    near = [path for path in paths if float(path["share"][0]) < 1e-2 and abs(float(path["angle"][0])) < 15]
    grown = min(float(path["share"][-1]) / float(path["share"][0]) for path in near)
    last = min(float(path["margin"][-1]) for path in near)
    return [
        at_least(
            "repels",
            "Large networks close to the one neuron with a small negative part move away: that part's share grows "
            "(smallest factor).",
            grown,
            3.0,
            why="ours: to any number above 1; the paths stop at a finite margin.",
        ),
        at_least(
            "exceeds",
            "All of these end above the margin of the one neuron, which the smoothed margin cannot lose again.",
            last,
            0.5 + 1e-3,
            why="ours.",
        ),
        at_most(
            "goal",
            "The paths end near the network of largest margin (largest distance of the share of the negative neurons).",
            max(abs(float(path["share"][-1]) - best_share) for path in paths),
            0.1,
            why="ours: they stop at a finite margin, and approach like its inverse.",
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the boundaries, the portrait, and the margins along the paths."""
    figure, axes = sheet(
        1, 3, "Three points: the limit of the theorem does not attract once negative neurons exist", size=(4.3, 4.0)
    )
    plane, portrait, margins = axes[0]
    regions(plane, plot_function(numbers["best"], SLOPE), (-7.0, 7.0))
    plane.plot([], [], color="black", lw=1.6, label=f"largest margin, {float(numbers['best']['margin']):.4f}")
    boundary(plane, numbers["one"]["w"], label=f"one neuron, {float(numbers['one']['margin']):.4f}", colour="#E69F00")
    near = [(x, y) for x, y in zip(numbers["X"], numbers["y"], strict=True) if abs(x[0]) < 7]
    samples(plane, [x for x, _ in near], [y for _, y in near], size=70)
    plane.annotate("", (6.9, 0.0), (5.0, 0.0), arrowprops={"arrowstyle": "->", "color": "#0072B2"})
    plane.text(3.6, 0.5, "+ at (20, 0)", fontsize=7, color="#0072B2")
    plane.set_title("data and boundaries", fontsize=9)
    plane.legend(fontsize=7, loc="lower left")
    begins = sorted({round(float(np.log10(path["share"][0])), 6) for path in numbers["portrait"]})
    for path in numbers["portrait"]:
        angle, share = (np.asarray(path[name], dtype=float) for name in ("angle", "share"))
        kind = begins.index(round(float(np.log10(share[0])), 6))
        colour = COLOURS[kind % len(COLOURS)]
        portrait.plot(angle, share, color=colour, ls=STYLES[kind % len(STYLES)], lw=0.9)
        portrait.plot(angle[0], share[0], marker=".", color=colour, ms=5)
        m = max(1, int(np.argmin(np.abs(np.log(share) - 0.5 * np.log(share[0] * share[-1])))))
        tip = {"arrowstyle": "->", "color": colour, "lw": 1.0}
        portrait.annotate("", (angle[m], share[m]), (angle[m - 1], share[m - 1]), arrowprops=tip)
        margins.plot(path["log_norm"], path["margin"], color=colour, ls=STYLES[kind % len(STYLES)], lw=0.9)
    portrait.plot(float(numbers["best"]["angle"]), float(numbers["best"]["share"]), "k*", ms=11, label="largest margin")
    floor = 0.2 * min(float(path["share"][0]) for path in numbers["portrait"])
    portrait.plot(0.0, floor, MARKS[1], color="#E69F00", ms=9, clip_on=False, label="one neuron (share 0)", zorder=5)
    portrait.set(yscale="log", ylim=(floor, 2.0))
    portrait.set(xlabel="angle of the positive neuron, degrees", ylabel="share of the negative neuron")
    portrait.set_title("phase portrait of large networks", fontsize=9)
    portrait.legend(fontsize=7, loc="upper right")
    margins.axhline(BEST, color="black", lw=1.0)
    margins.axhline(0.5, color="#E69F00", lw=1.4, ls="--")
    margins.set(xlabel=r"$\log|\theta|$", ylabel="normalised margin", ylim=(0.38, 0.54))
    margins.set_title("margin along the paths", fontsize=9)
    return figure


EXPERIMENT = Experiment(
    id="LL-X2",
    title="A counterexample to the theorem on asymmetric data as printed",
    caption="Left: three points, the boundary of the network of largest margin (black; tints are its signs) and of "
    "the one neuron the theorem predicts (dashed). Middle: paths of the exact flow of two large neurons, one positive, "
    "one negative (dots: starts): angle of the positive one against the share of the negative one in the squared norm; "
    "one colour and line style for each share at the start. "
    "Without the negative neuron the flow would go to the square; with the smallest share of it, it goes to the star. "
    "Right: normalised margin along these paths; dashed: that of one neuron.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "log10_scales": [-2.0, -4.0, -6.0],
        "draws": 5,
        "angles": [-40.0, -20.0, -5.0, 5.0, 20.0, 40.0],
        "log10_shares": [-4.0, -2.0, -0.5],
        "negative_angle": 150.0,
        "log_norm": 2.0,
        "margin": 1e5,
    },
    quick={"draws": 1, "angles": [-20.0, 5.0], "log10_shares": [-3.0], "margin": 1e4},
    ours=("*",),
    unstated=(
        START,
        Choice("data", "(1, 1/2) and (20, 0) positive, (-5, 5/2) negative, slope 0.2", "smallest set that was found"),
        Choice("negative neuron", "at 150 degrees, where it helps on the negative point", "only such neurons grow"),
    ),
    minutes=1,
)
