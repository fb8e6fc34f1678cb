"""SBG-F9: antipodal Gaussians with an outlier; the neurons agree, but not on the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import example, make
from ...dynamics import Trajectory, agreement, descend, flow
from ...margins import agreement_margin
from ...problem import Network, Problem
from ...report.panels import arrows, band, curve, samples, sheet
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_least, at_most, equals, is_so
from ..core.moments import at_times
from .common import NEURONS, OUTPUT, start
from .regimes import angle, largest_turn, regimes, weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train from several starts; from the first also by the exact flow, as long and then for ever."""
    data = make("antipodal_outlier", n=parameters["n"], outlier=parameters["outlier"])
    runs, first = [], {}
    for seed in range(parameters["starts"]):
        problem = start(data, parameters["scale"], seed, parameters)
        how = {"step": parameters["step"], "epochs": parameters["epochs"]}
        descent = descend(problem, "sgd", **how, batch=1, seed=seed, record=150, progress=False)
        runs.append(regimes(descent))
        tell(0.8 * (seed + 1) / parameters["starts"])
        if seed == 0:
            time = float(descent.time[-1])
            exact = flow(problem, {"log_time": parameters["log_time"]}, rtol=1e-6, progress=False)
            first = {
                "X": data.X,
                "y": data.y,
                "a": descent.final.a,
                "W": weights(descent.final),
                **_regions(descent),
                "turn": largest_turn(descent.final, exact.at(time=time)),
                "flow": regimes(at_times(exact, [0.0, *np.geomspace(parameters["step"], 30 * time, 150)])),
                "flow_limit": float(agreement(data, exact.final).share_w),
            }
    found = {"runs": runs, "first": first, "epoch": parameters["step"] * data.n, "log_time": parameters["log_time"]}
    return {**found, "for_ever": _for_ever(parameters["for_ever"])}


def _for_ever(how: Mapping[str, Any]) -> Numbers:
    """Follow a flow that stays outside the perfect region: from near the limit of SBG-R1, a pair and one more point."""
    shown = example("SBG-R1")
    data, slope = shown.data, float(how["slope"])
    signs_w, signs_u = (np.array(shown.at(slope).answers[key]) for key in ("signs_w", "signs_u"))
    goal = agreement_margin(data, slope, signs_w, signs_u)
    k = int(how["k"])
    W = np.repeat([goal.w, goal.u], k, axis=0)
    W = W + how["spread"] * np.linalg.norm(W, axis=1, keepdims=True) * np.random.default_rng(0).standard_normal(W.shape)
    problem = Problem(data, Network(W, np.repeat([1.0, -1.0], k), slope), train="first")
    course = flow(problem, {"log_time": how["log_time"]}, rtol=1e-8, progress=False)
    seen = [agreement(data, net) for net in course.networks()]
    inside = [
        bool(one.holds and np.array_equal(one.signs_w, signs_w) and np.array_equal(one.signs_u, signs_u))
        for one in seen
    ]
    unit = np.concatenate([np.repeat([goal.w], k, axis=0), np.repeat([goal.u], k, axis=0)])
    return {
        "X": data.X,
        "y": data.y,
        "W": weights(course.final),
        "a": course.final.a,
        "log_time": course.log_time,
        "margin": course.normalized_margin(),
        "limit_margin": float(np.sqrt(k) * goal.gamma_phi),
        "consistent": goal.consistent,
        "inside": inside,
        "share_w": [one.share_w for one in seen],
        "share_u": [one.share_u for one in seen],
        "turn": float(angle(course.final.directions, unit).max()),
    }


def _regions(descent: Trajectory) -> Numbers:
    """Return what the neurons of each sign say about the outlier, and whether a limit can be in that region."""
    data = descent.problem.data
    found = agreement(data, descent.final)
    program = agreement_margin(data, descent.problem.net.slope, found.signs_w, found.signs_u) if found.holds else None
    return {
        "outlier_signs": [int(found.signs_w[-1]), int(found.signs_u[-1])],
        "consistent": None if program is None else program.consistent,
    }


def check(numbers: Numbers) -> list[Expectation]:
    """Judge accuracy, agreement, what becomes of it, and the example that stays outside the perfect region."""
    return [*_check_window(numbers), *_check_for_ever(numbers["for_ever"])]


def _check_window(numbers: Numbers) -> list[Expectation]:
    runs, first = numbers["runs"], numbers["first"]
    last = {key: [float(run[key][-1]) for run in runs] for key in ("accuracy", "disagreements", "share_w", "share_u")}
    count = f"{len(runs)} starts"
    return [
        equals(
            "accuracy", f"The net classifies all points right (smallest, {count}).", min(last["accuracy"]), 1.0, 0.0
        ),
        equals(
            "disagreements",
            f"Neurons of one sign agree on every point: no two differ on any (largest number, {count}).",
            max(last["disagreements"]),
            0.0,
            0.0,
        ),
        equals(
            "share-u",
            f"All negative neurons have the pattern -y (smallest share, {count}).",
            min(last["share_u"]),
            1.0,
            0.0,
        ),
        at_most(
            "share-w",
            f"The share of the positive neurons with the pattern y does not go to 1 (largest share, {count}).",
            max(last["share_w"]),
            0.99,
            why="below 1 is what the paper reports; the cut-off is below 1 by "
            f"{0.01 * sum(a > 0 for a in first['a']):g} of a neuron. {_check_turns(numbers)}",
        ),
        equals(
            "outlier",
            "The outlier is what they get wrong: both kinds of neurons have the sign -1 there (sum of the two signs).",
            sum(first["outlier_signs"]),
            -2,
            0,
        ),
        at_most(
            "flow-same",
            "The exact flow takes each neuron where SGD takes it in the same time (largest angle, degrees).",
            first["turn"],
            1.0,
            why="noise of the order of the step.",
        ),
        is_so(
            "not-a-limit",
            "The region reached cannot hold the limit: the solution of its program does not have its signs.",
            first["consistent"] is False,
            "inconsistent",
            {True: "consistent", False: "inconsistent", None: "not in a region, or undecided"}[first["consistent"]],
            why="for exactly antipodal data plus one point this is a theorem; here it is checked for the data drawn.",
        ),
        at_least(
            "flow-late",
            f"Followed to log t = {numbers['log_time']:g}, the flow leaves that region for the perfect one "
            "(share of positive neurons with the pattern y).",
            first["flow_limit"],
            1.0,
            why="ours, not the paper's: with other data it may leave for another region that is consistent.",
        ),
    ]


def _check_turns(numbers: Numbers) -> str:
    """Say between which epochs all is right and the positive neurons still have another pattern."""
    found, epoch = numbers["first"]["flow"], float(numbers["epoch"])
    time, share, right = (np.asarray(found[key], dtype=float) for key in ("time", "share_w", "accuracy"))
    fitted = [float(time[k]) / epoch for k in range(len(time)) if (right[k:] >= 1).all()][:1]
    turned = [float(t) / epoch for t, s in zip(time, share, strict=True) if s >= 1][:1]
    words = [f"epoch {e[0]:.0f}" if e else "no epoch looked at" for e in (fitted, turned)]
    return (
        f"It is a window: along the exact flow all points are right from {words[0]} on, and all positive neurons have "
        f"the pattern y from {words[1]} on."
    )


def _check_for_ever(found: Numbers) -> list[Expectation]:
    aside = "an example of ours (SBG-R1): an antipodal pair and one more point, from a start near the limit"
    return [
        is_so(
            "ever-consistent",
            "A region other than the perfect one can hold the limit: its program has a solution with its signs.",
            found["consistent"] is True,
            "consistent",
            "consistent" if found["consistent"] else "inconsistent",
            aside,
        ),
        is_so(
            "ever-stays",
            f"The flow stays in that region to log t = {float(found['log_time'][-1]):g} (records in it).",
            all(found["inside"]),
            f"{len(found['inside'])} of {len(found['inside'])}",
            f"{sum(found['inside'])} of {len(found['inside'])}",
            aside,
        ),
        at_most(
            "ever-share",
            "No positive neuron ever has the pattern y there (largest share), while all negative ones have -y "
            f"({float(found['share_u'][-1]):g} at the end), as in the paper's figure.",
            max(float(share) for share in found["share_w"]),
            0.0,
            aside,
        ),
        at_most(
            "ever-margin",
            "Its margin tends to that of the program (relative difference at the end).",
            abs(float(found["margin"][-1]) / float(found["limit_margin"]) - 1),
            1e-3,
            "SBG-T6.1 with the program of the signs observed; it closes like one over the margin",
        ),
        at_most(
            "ever-directions",
            "Every neuron tends to the direction of the program (largest angle at the end, degrees).",
            float(found["turn"]),
            0.1,
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw accuracy, directions, disagreements and shares; and the example that stays outside."""
    figure, axes = sheet(
        2, 3, "Two antipodal Gaussians and an outlier; right: an example that stays outside", (4.4, 3.6)
    )
    runs, first, epoch = numbers["runs"], numbers["first"], numbers["epoch"]
    place = np.asarray(runs[0]["time"], dtype=float) / epoch
    place[0] = place[1] / 2  # the start, which a logarithmic axis cannot show
    panels = {
        (0, 0): (("accuracy", "accuracy", 0),),
        (1, 0): (("disagreements", "largest number of disagreements", 0),),
        (1, 1): (("share_w", "positive neurons, pattern y", 0), ("share_u", "negative neurons, pattern -y", 1)),
    }
    for at, curves in panels.items():
        for key, name, kind in curves:
            values = np.array([run[key] for run in runs], dtype=float)
            band(axes[at], place, values.min(0), values.mean(0), values.max(0), kind, f"{name}: SGD")
            times = np.asarray(first["flow"]["time"], dtype=float) / epoch
            times[0] = place[0]
            curve(axes[at], times, first["flow"][key], 6, f"{name}: flow")
            axes[at].lines[-1].set(lw=0.8, ls=("-", "--")[kind])
        axes[at].axvline(place[-1], color="#666666", ls=":", lw=1.0)
        axes[at].set(xscale="log", xlabel="epoch (left end: start; dotted: end of SGD)")
        axes[at].legend(fontsize=8, loc={(0, 0): "lower right", (1, 0): "upper right", (1, 1): "upper left"}[at])
    axes[0, 0].set(ylabel="share right", title="accuracy")
    axes[1, 0].set(ylabel="points", title="most points two neurons of a sign differ on")
    axes[1, 1].set(ylabel="share of the neurons", title="neurons in the perfect agreement region")
    arrows(axes[0, 1], first["W"], first["a"], colours=NEURONS)
    X = np.asarray(first["X"], dtype=float)
    samples(axes[0, 1], X, first["y"], 16.0)
    reach = 1.1 * float(np.abs(X).max())
    axes[0, 1].set(xlim=(-reach, reach), ylim=(-reach, reach), title="data and directions after SGD")
    _plot_for_ever(axes[0, 2], axes[1, 2], numbers["for_ever"])
    return figure


def _plot_for_ever(plane: Any, course: Any, found: Numbers) -> None:
    arrows(plane, found["W"], found["a"], colours=NEURONS)
    X = np.asarray(found["X"], dtype=float)
    reach = 1.1 * float(np.abs(X).max())
    samples(plane, X, found["y"], 50.0)
    plane.set(xlim=(-reach, reach), ylim=(-2.0, 2.0), title="SBG-R1: data and directions at the end")
    place = np.asarray(found["log_time"], dtype=float)
    late = place > 0
    gap = 1.0 - np.asarray(found["margin"], dtype=float) / float(found["limit_margin"])
    curve(course, place[late], np.abs(gap[late]), 0, "margin: 1 - ratio to the program's")
    for kind, (key, words) in enumerate((("share_w", "w, pattern y"), ("share_u", "u, pattern -y")), start=1):
        curve(course, place[late], np.asarray(found[key], dtype=float)[late], kind, f"share of {words}")
    course.set(xscale="log", xlabel="$\\log t$", title="never in the perfect region")
    course.set_yscale("symlog", linthresh=1e-6)
    course.set_ylim(-3e-7, 2.0)
    course.legend(fontsize=8, loc=(0.02, 0.12))


EXPERIMENT = Experiment(
    id="SBG-F9",
    title="With an outlier the neurons agree without being right",
    caption="Two antipodal Gaussians and one positive outlier, 100 leaky neurons, start std 1e-4, SGD with step "
    "0.01: accuracy, directions (w, a > 0: solid black; u, a < 0: dashed yellow; as in the paper), disagreements, "
    "shares in the perfect agreement region; mean and range of the starts. Thin black: exact flow from the first "
    "start, followed beyond the end of SGD (dotted), where it enters the perfect region after all. Right, not in the "
    "paper: an antipodal pair and one more point (SBG-R1), where the exact flow from near the limit stays outside "
    "the perfect region for ever.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "n": 40,
        "outlier": [-1.0, 2.0],
        "starts": 5,
        "width": 100,
        "slope": 0.3,
        "scale": 1e-4,
        "step": 0.01,
        "epochs": 800,
        "log_time": 1e4,
        "for_ever": {"slope": 0.5, "k": 3, "spread": 0.05, "log_time": 1e6},
    },
    quick={"starts": 1, "width": 20},
    ours=("outlier", "flow-*", "not-a-limit", "ever-*"),
    unstated=(
        Choice(
            "data",
            "20 points a class in the plane, means (1.5, 0) and (-1.5, 0), std 0.3, outlier (-1, 2)",
            "not given beyond: two antipodal Gaussians and one positive outlier",
        ),
        Choice(
            "epochs",
            "800",
            "not given. What the paper reports is to be seen from when the outlier is right until the positive neurons "
            "take its side, and not for ever",
        ),
        Choice("slope of the leaky ReLU", "0.3", "not given"),
        OUTPUT,
    ),
    minutes=0.6,
)
