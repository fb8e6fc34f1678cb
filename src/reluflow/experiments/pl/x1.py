"""PL-X1: the cosines of PL-F1 as time goes to infinity."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...problem.types import Array
from ..core.experiment import Choice, Expectation, Experiment, Numbers, at_least, at_most, equals, is_so
from .common import UNSTATED
from .two_layer import PARAMETERS, QUICK, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check(numbers: Numbers) -> list[Expectation]:
    """Compare the flow at late times and its limit with the theorem and with the closed form of the limit."""
    runs, times = numbers["runs"], numbers["log_times"]
    many = f"worst of {len(runs)} seeds"
    lowest = [_check_lowest(one)[0] for one in runs]
    power = np.log(times[-1] / times[-2])
    slopes = [float(np.log((1 - low[-1]) / (1 - low[-2])) / power) for low in lowest]
    sum_log = f"at log t = {times[-1]:g}"
    return [
        *_check_limit(runs, many),
        *_check_trap(runs, many),
        equals(
            "rate",
            "1 - smallest cosine falls like 1/log t: its power between the last two times (the seed farthest off)",
            max(slopes, key=lambda s: abs(s + 1.0)),
            -1.0,
            0.1,
            f"a law for late times: {_check_latest(runs)}",
        ),
        at_least(
            "late-cosines",
            f"far out every neuron is near its max-margin direction: smallest cosine {sum_log} ({many})",
            min(low[-1] for low in lowest),
            0.99,
            "a cut-off of ours",
        ),
        at_most(
            "late-rank",
            f"far out the first layer has rank two: third over first singular value {sum_log} ({many})",
            max(v[2] / v[0] for v in (one["late"][-1]["singular_values"] for one in runs)),
            0.01,
            "a cut-off of ours",
        ),
        at_most(
            "late-ratio",
            f"second over first singular value {sum_log}, relative difference from the closed form ({many})",
            max(abs(_check_late_ratio(one) / check_closed(one)["ratio"] - 1) for one in runs),
            0.01,
            "corrections are of the order of 1/log t in the two large singular values",
        ),
        at_most(
            "late-growth",
            f"|W|^2 of either group over log t {sum_log}, relative difference from |w+|, |w-| ({many})",
            max(_check_growth(one) for one in runs),
            0.01,
            "corrections are of the order of log log t / log t",
        ),
    ]


def _check_latest(runs: list[Any]) -> str:
    """Say when the last neuron of all seeds was seen to feel exactly its own class."""
    late = [[(at["log_time"], at["trapped"] == len(at["signs"])) for at in one["late"]] for one in runs]
    free = [max((time for time, all_of_them in one if not all_of_them), default=None) for one in late]
    last = max((time for time in free if time is not None), default=None)
    return (
        "all are trapped from the first on" if last is None else f"up to log t = {last:g} not all neurons are trapped"
    )


def _check_trap(runs: list[Any], many: str) -> list[Expectation]:
    """Judge what holds from the time on at which every neuron feels exactly the samples of its own class."""
    counts = [[late["trapped"] for late in one["late"]] for one in runs]
    width = len(runs[0]["late"][0]["signs"])
    whole = [[low for low, late in zip(*_check_lowest(one), strict=True) if late == width] for one in runs]
    turns = sum(_check_turns(one["late"]) for one in runs)
    return [
        equals(
            "trapped",
            f"in the end every neuron feels exactly the samples of the class of its sign: their number ({many})",
            min(count[-1] for count in counts),
            width,
            0,
            "the condition under which the limit is known",
        ),
        is_so(
            "absorbing",
            "a neuron that feels exactly its own class does so for ever: the number of such neurons never falls",
            all(np.all(np.diff(count) >= 0) for count in counts),
            measured="; ".join(", ".join(map(str, count)) for count in counts),
        ),
        is_so(
            "growing",
            "once all neurons do, the smallest cosine grows from each of the times looked at to the next",
            all(np.all(np.diff(low) > 0) for low in whole) and all(len(low) > 1 for low in whole),
            measured="; ".join(", ".join(f"{v:.6f}" for v in low) for low in whole),
            why=(
                f"before that it may fall: an output weight may still change its sign ({turns} did after log t = "
                f"{runs[0]['late'][0]['log_time']:g}, with all seeds together), because the start is not balanced, "
                "and then belongs to the other direction"
            ),
        ),
    ]


def _check_turns(late: list[Any]) -> int:
    """How often an output weight has another sign at a late time than at the one before."""
    signs = [np.asarray(moment["signs"]) for moment in late]
    return sum(int((x != y).sum()) for x, y in pairwise(signs))


def _check_lowest(one: Any) -> tuple[list[float], list[int]]:
    """Smallest cosine and number of trapped neurons at the late times."""
    return [float(np.nanmin(_check_cosines(late))) for late in one["late"]], [late["trapped"] for late in one["late"]]


def _check_limit(runs: list[Any], many: str) -> list[Expectation]:
    ends = [one["limit"] for one in runs]
    decided = all(end["kind"] == "margin" for end in ends)
    found = [
        is_so(
            "limit",
            "the flow has a limit direction, certified as a KKT point of the margin problem, for every seed",
            decided,
            measured=", ".join(end["kind"] for end in ends),
        )
    ]
    if not decided:
        return found
    pairs = [(end, check_closed(one)) for end, one in zip(ends, runs, strict=True)]
    cosines = [_check_cosines(end) for end in ends]
    return [
        *found,
        equals(
            "all-one",
            f"in the limit every neuron has cosine 1 with the max-margin direction of its sign: the smallest ({many})",
            float(min(np.nanmin(c) for c in cosines)),
            1.0,
            1e-7,
        ),
        equals("dead", "no neuron dies: number of neurons without a limit", sum(map(_check_missing, cosines)), 0, 0),
        at_most(
            "ratio",
            f"second over first singular value of the limit, difference from the closed form ({many})",
            max(abs(end["singular_values"][1] / end["singular_values"][0] - form["ratio"]) for end, form in pairs),
            1e-7,
        ),
        at_most(
            "shares",
            f"the positive group has the part |w+|/(|w+| + |w-|) of the whole: difference ({many})",
            max(abs(check_positive(end) - form["share"]) for end, form in pairs),
            1e-7,
        ),
        at_most(
            "margin",
            f"the normalised margin tends to 1/(2(|w+| + |w-|)), the largest of any net: relative difference ({many})",
            max(abs(end["margin"] / form["margin"] - 1) for end, form in pairs),
            1e-7,
        ),
    ]


def _check_cosines(state: Any) -> Array:
    return np.asarray(state["correlations"], dtype=np.float64)


def _check_missing(cosines: Array) -> int:
    return int(np.isnan(cosines).sum())


def check_closed(one: Any) -> dict[str, float]:
    """Return what the lengths of w+ and w- and their cosine say about the limit (PL-T1')."""
    plus, minus = one["data"]["lengths"]
    total = plus + minus
    spread = np.sqrt((plus - minus) ** 2 + 4 * plus * minus * one["data"]["cosine"] ** 2) / total
    return {"ratio": float(np.sqrt((1 - spread) / (1 + spread))), "share": plus / total, "margin": 0.5 / total}


def _check_late_ratio(one: Any) -> float:
    values = one["late"][-1]["singular_values"]
    return float(values[1] / values[0])


def _check_growth(one: Any) -> float:
    late, (plus, minus) = one["late"][-1], one["data"]["lengths"]
    grown = np.array([late["plus"], late["minus"]]) / late["log_time"]
    return float(np.abs(grown / [plus, minus] - 1).max())


def check_positive(end: Any) -> float:
    """Return the share of the positive groups in a limit."""
    return float(sum(group["share"] for group in end["groups"] if group["sign"] > 0))


def plot(numbers: Numbers) -> Figure:
    """Draw how slowly the cosines reach 1, and what becomes of the singular values and norms."""
    from ...report.panels import COLOURS, STYLES, curve, sheet

    runs, times = numbers["runs"], np.asarray(numbers["log_times"], dtype=float)
    one = runs[0]
    figure, axes = sheet(1, 4, "The flow of the two-layer net, followed to infinity", size=(3.2, 3.2))
    a, b, c, d = axes[0]
    shown = [("SGD ends", one["sgd"])]
    shown += [(f"$\\log t = 10^{{{np.log10(late['log_time']):.0f}}}$", late) for late in one["late"][1::2]]
    if "correlations" in one["limit"]:
        shown.append(("limit", one["limit"]))
    for k, (name, state) in enumerate(shown):
        ordered = np.sort(_check_cosines(state))
        ordered = ordered[~np.isnan(ordered)]
        part = np.arange(1, ordered.size + 1) / ordered.size
        a.step(ordered, part, where="post", color=COLOURS[k], ls=STYLES[k], lw=1.6, label=name)
    a.set(xlabel="cosine with $w_+$ or $w_-$", ylabel="share of neurons below", title="cosines (seed 0)")
    a.set_xlim(right=1.02)
    a.legend(fontsize=8, loc="upper left")
    worst = [1.0 - min(float(np.nanmin(_check_cosines(r["late"][k]))) for r in runs) for k in range(times.size)]
    middle = [float(np.mean([1.0 - r["late"][k]["median"] for r in runs])) for k in range(times.size)]
    curve(b, times, worst, 0, "worst neuron", marks=True)
    curve(b, times, middle, 1, "median neuron", marks=True)
    b.plot(times, worst[-1] * times[-1] / times, color="black", ls=":", lw=1.0, label="$\\propto 1/\\log t$")
    b.set(xscale="log", yscale="log", xlabel="log t", ylabel="1 - cosine", title="distance from the limit, all seeds")
    b.legend(fontsize=8, loc="lower left")
    spectra = np.array([late["singular_values"][:4] for late in one["late"]], dtype=float)
    for k in (1, 2, 3):
        curve(c, times, spectra[:, k] / spectra[:, 0], k - 1, f"$\\sigma_{k + 1}/\\sigma_1$", marks=True)
    c.axhline(check_closed(one)["ratio"], color="black", ls=":", lw=1.2, label="closed form")
    c.set(xscale="log", yscale="log", xlabel="log t", title="singular values (seed 0)")
    c.legend(fontsize=8, loc="lower left")
    for k, (key, size) in enumerate(zip(("plus", "minus"), one["data"]["lengths"], strict=True)):
        name = "$a > 0$, over $|w_+|$" if key == "plus" else "$a < 0$, over $|w_-|$"
        curve(d, times, [late[key] / late["log_time"] / size for late in one["late"]], k, name, marks=True)
    d.axhline(1.0, color="black", ls=":", lw=1.2, label="closed form")
    d.set(xscale="log", xlabel="log t", ylabel="$|W_J|^2 / \\log t$", title="growth of the groups (seed 0)")
    d.legend(fontsize=8)
    return figure


EXPERIMENT = Experiment(
    id="PL-X1",
    title="The cosines of PL-F1 in the limit of infinite time: all of them are 1",
    caption=(
        "The exact flow from the starts of PL-F1. From the left: how the cosines of the neurons with the max-margin "
        "direction of their sign are distributed when SGD ends, at late times (mind that log t itself is large), and "
        "in the limit; how 1 - cosine falls, in proportion to 1/log t; singular values of the first layer and the "
        "closed form of their ratio; growth of the two groups of neurons."
    ),
    run=run,
    check=check,
    plot=plot,
    parameters=PARAMETERS,
    quick=QUICK,
    implied=("limit", "all-one", "ratio", "shares", "margin", "trapped", "absorbing", "late-*"),
    ours=("dead", "growing", "rate"),
    unstated=(*UNSTATED, Choice("times", "log t from 10 to 10^8, and infinity", "not an experiment of the paper")),
    minutes=1.0,
)
