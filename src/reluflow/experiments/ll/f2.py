"""LL-F2: gradient descent from a thousandth of He's start on the three sets of LL-F1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import example
from ...dynamics import Trajectory, descend, flow
from ...margins import linearity, one_neuron
from ...problem import Dataset, Network, Problem, initialize
from ...problem.types import Array
from ...report.panels import COLOURS, MARKS, curve, samples, sheet, zero_set
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_least, at_most, is_so
from .common import ENDINGS, SLOPE, ending, goals, plot_function, plot_rims, stored

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Name of the panel, example, half of the side of the window, how many of the first points are hints.
SETS = (("left", "D4", 3.2, 0), ("middle", "D7", 2.6, 0), ("right", "D6", 1.7, 3))
HEIGHT = 0.05


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train on each set by descent and by the flow to the same losses, and follow flows of several draws to the end."""
    found: Numbers = {}
    for k, (name, source, reach, hints) in enumerate(SETS):
        data = example(source).data
        one, best = goals(data)
        neuron = one_neuron(data, SLOPE).w

        def told(part: float, k: int = k) -> None:
            tell((k + part) / len(SETS))

        course = descended(
            started(data, parameters, float(parameters["scale"]), 0), parameters, window(data, reach), neuron
        )
        told(0.4)
        ends = []
        for j, scale in enumerate(parameters["scales"]):
            draws = [started(data, parameters, float(scale), seed) for seed in range(parameters["draws"])]
            ends.append([ending(start, one, best.lower, parameters["max_log_time"]) for start in draws])
            told(0.4 + 0.6 * (j + 1) / len(parameters["scales"]))
        found[name] = {
            "X": data.X,
            "y": data.y,
            "hints": hints,
            **course,
            "one": {"w": neuron, "margin": one},
            "best": {**stored(best.network), "margin": best.lower},
            "scales": parameters["scales"],
            "scale": parameters["scale"],
            "ends": ends,
            "reach": reach,
        }
    return found


def started(data: Dataset, parameters: Mapping[str, Any], scale: float, seed: int) -> Problem:
    """Pose the problem of a draw of He's start, times a scale."""
    return Problem(data, initialize(data.d, parameters["width"], "he", scale, seed=seed, slope=SLOPE))


def descended(start: Problem, parameters: Mapping[str, Any], grid: Array, neuron: Array) -> Numbers:
    """Go down to every loss of the ladder by descent and by the exact flow, and look at both there.

    To the first loss the steps are fixed, as in the paper; from there on they are divided by L (1 + log 1/L).
    """
    looks: dict[str, list[Numbers]] = {"gd": [], "flow": []}
    apart, count = [], 0
    problems = {"gd": start, "flow": start}
    for k, loss in enumerate(parameters["losses"]):
        how: dict[str, Any] = {"step": parameters["step"], "steps": parameters["steps"], "until_loss": loss}
        if k == 0:
            down = descend(problems["gd"], **how, fast_forward=True, record=20, progress=False)
        else:
            how["step"] = parameters["later_step"]
            down = descend(problems["gd"], **how, schedule="loss-log-scaled", record=2, progress=False)
        exact = flow(problems["flow"], {"loss": loss}, rtol=1e-9, progress=False)
        count += down.settings["iteration"][-1]
        values = {"gd": down.final.outputs(grid), "flow": exact.final.outputs(grid)}
        apart.append(float(np.abs(values["gd"] - values["flow"]).max() / np.abs(values["flow"]).max()))
        for key, path in (("gd", down), ("flow", exact)):
            looks[key].append({**looked(path, values[key], grid @ neuron), "iterations": count})
            problems[key] = start.replace(net=path.final)
        if k == 0:
            W, a = down.final.weights()
            shown = {"W": W, "a": a, "own_line": share(values["gd"], grid @ odd(down.final))}
    return {**looks, "apart": apart, "net": shown}


def looked(path: Trajectory, values: Array, line: Array) -> Numbers:
    """Return loss, margins and linearity at the end of a run."""
    return {
        "log10_loss": float(path.log_loss[-1] / np.log(10.0)),
        "margin": float(path.normalized_margin()[-1]),
        "smoothed": float(path.smoothed_margin()[-1]),
        "linear": share(values, line),
    }


def window(data: Dataset, reach: float) -> Array:
    """Return a grid over the window of the figure, with the constant third coordinate where there is one."""
    side = np.linspace(-reach, reach, 200)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return plane if data.d == 2 else np.column_stack([plane, np.full(len(plane), HEIGHT)])


def share(values: Array, line: Array) -> float:
    """Return the share of points with the same sign."""
    return float(np.mean(np.sign(values) == np.sign(line)))


def odd(net: Network) -> Array:
    """Return the normal of the only line that could be the boundary of a network."""
    direction = linearity(net).direction
    return np.zeros(net.d) if direction is None else direction


# -- what the paper reports ------------------------------------------------------------------------------


def check(numbers: Numbers) -> list[Expectation]:
    """Judge descent, flow and the limits on the three sets."""
    return [e for name, one in numbers.items() for e in (*_check_descent(name, one), *_check_limits(name, one))]


def _check_descent(name: str, one: Numbers) -> list[Expectation]:
    first, last = one["gd"][0], one["gd"][-1]
    margins = [(float(a["margin"]), float(b["margin"])) for a, b in zip(one["gd"], one["flow"], strict=True)]
    return [
        at_least(
            f"{name}-linear",
            f"Gradient descent on the {name} set has a linear boundary at L = {_check_loss(first)} (share of the "
            "points of the window with the sign of the linear classifier).",
            float(first["linear"]),
            0.999,
        ),
        at_least(
            f"{name}-deep",
            f"Descent on the {name} set, continued by steps that are divided by L (1 + log 1/L), still has a linear "
            f"boundary at L = {_check_loss(last)} (the same share).",
            float(last["linear"]),
            0.999,
            _check_excluded(name, one),
        ),
        at_most(
            f"{name}-flow",
            f"On the {name} set the exact flow from the same start has the same function at each of the losses "
            "(largest difference, relative).",
            max(float(d) for d in one["apart"]),
            1e-3,
            "the step is finite.",
        ),
        at_most(
            f"{name}-flow-margin",
            "And the same margin (largest relative difference).",
            max(abs(a / b - 1) for a, b in margins),
            2e-4,
            "the step is finite.",
        ),
    ]


def _check_limits(name: str, one: Numbers) -> list[Expectation]:
    scales, hits = one["scales"], _check_hits(name, one)
    draws = len(one["ends"][0])
    small = min(scales)
    by_scale = "; ".join(f"{scale:g}: {_check_words(ends)}" for scale, ends in zip(scales, one["ends"], strict=True))
    found = [
        is_so(
            f"{name}-limit",
            f"On the {name} set the limit of the exact flow from {one['scale']:g} times He's start is the linear "
            "classifier of the theorem, in every draw.",
            hits[scales.index(one["scale"])] == draws,
            f"{draws} of {draws} draws",
            f"{hits[scales.index(one['scale'])]} of {draws} draws",
            _check_excluded(name, one) if hits[scales.index(one["scale"])] < draws else "",
        ),
        is_so(
            f"{name}-small",
            f"From {small:g} times He's start it is (the theorem says: small enough), in every draw.",
            hits[scales.index(small)] == draws,
            f"{draws} of {draws} draws",
            f"{hits[scales.index(small)]} of {draws} draws",
            by_scale,
        ),
    ]
    order = sorted(range(len(scales)), key=lambda k: -float(scales[k]))
    falls = [hits[b] - hits[a] for a, b in pairwise(order)]
    found.append(
        is_so(
            f"{name}-ladder",
            "The smaller the start, the more draws end there.",
            all(step >= 0 for step in falls),
            "never fewer from a smaller scale",
            ", ".join(f"{scales[k]:g}: {hits[k]}" for k in order),
        )
    )
    return found


def _check_hits(name: str, one: Numbers) -> list[int]:
    """Return how many draws end at the linear classifier of the theorem, scale by scale."""
    aim = "best" if name == "left" else "one"
    return [sum(end["kind"] == aim and end["linear"] is True for end in ends) for ends in one["ends"]]


def _check_words(ends: Sequence[Mapping[str, Any]]) -> str:
    kinds = [end["kind"] for end in ends]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in ENDINGS if kind in kinds)


def _check_loss(look: Mapping[str, Any]) -> str:
    return f"1e{round(float(look['log10_loss']))}"


def _check_excluded(name: str, one: Numbers) -> str:
    """Say from which loss on the limit of one neuron is excluded, for descent and for the flow."""
    level = _check_level(name, one)
    if name == "left":  # there the linear classifier has the largest margin
        return ""
    found = {}
    for key in ("gd", "flow"):
        above = [_check_loss(look) for look in one[key] if float(look["smoothed"]) > level * (1 + 1e-7)]
        found[key] = f"from L = {above[0]} on" if above else f"not down to L = {_check_loss(one[key][-1])}"
    return (
        "the smoothed margin never falls, so once it is above that of the linear classifier this limit is excluded for "
        f"good: {found['gd']} along descent, {found['flow']} along the flow, for the draw shown. The paper does not "
        "say to which loss it trained; its theorem asks for a start that is small enough, which this one, at this "
        "width, is not in every draw."
    )


# -- the figure ------------------------------------------------------------------------------------------


def plot(numbers: Numbers) -> Figure:
    """Draw the output of each net with both boundaries; below its margin on the way down, and the limits."""
    figure, axes = sheet(3, 3, "Gradient descent from small weights, and where the flow ends", size=(4.3, 3.3))
    for k, (name, one) in enumerate(numbers.items()):
        _plot_net(figure, axes[0, k], name, one)
        _plot_course(axes[1, k], one, _check_level(name, one))
        _plot_ends(axes[2, k], one)
    return figure


def _plot_net(figure: Any, panel: Any, name: str, one: Numbers) -> None:
    height = HEIGHT if len(one["X"][0]) == 3 else None
    reach, hints = float(one["reach"]), int(one["hints"])
    values = plot_function(one["net"], height=height)
    side = np.linspace(-reach, reach, 121)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    shown = panel.contourf(side, side, values(grid).reshape(121, 121), levels=14, cmap="cividis")
    figure.colorbar(shown, ax=panel, shrink=0.85, label="f")
    panel.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    zero_set(panel, values, "white", "-", 2.6, "net")
    line = plot_function({"W": [one["one"]["w"]], "a": [1.0]}, height=height)
    zero_set(panel, line, "black", "--", 1.2, "linear classifier")
    near = [
        (x[:2], y) for x, y in zip(one["X"][hints:], one["y"][hints:], strict=True) if max(map(abs, x[:2])) <= reach
    ]
    samples(panel, [x for x, _ in near], [y for _, y in near], size=70)
    crosses = [x[:2] for x in one["X"][:hints] if max(map(abs, x[:2])) <= reach]
    if crosses:
        panel.scatter(*np.array(crosses, dtype=float).T, marker="x", c="#0072B2", s=60, zorder=4, label="hints")
    plot_rims(panel)
    look = one["gd"][0]
    panel.set_title(f"{name}: L = {_check_loss(look)}, linear {100 * float(look['linear']):.2f} %", fontsize=9)
    # Above the points of the lower left, and below those of the upper left.
    place = {"left": (0.02, 0.6)}.get(name, "upper left")
    panel.legend(fontsize=7, loc=place).get_frame().set_facecolor("#9a9a9a")


def _check_level(name: str, one: Numbers) -> float:
    """Return the margin of the linear classifier of the theorem: two neurons on the left, one on the other sets."""
    return float(one["best" if name == "left" else "one"]["margin"])


def _plot_course(panel: Any, one: Numbers, level: float) -> None:
    down = [-float(look["log10_loss"]) for look in one["gd"]]
    for kind, (key, words) in enumerate((("gd", "descent"), ("flow", "exact flow"))):
        place = [-float(look["log10_loss"]) for look in one[key]]
        margin, smoothed = ([float(look[what]) for look in one[key]] for what in ("margin", "smoothed"))
        if key == "gd":
            panel.plot(place, margin, ls="", marker="o", color=COLOURS[0], ms=6, label=f"{words}: margin")
            panel.plot(place, smoothed, ls="", marker="s", mfc="none", color=COLOURS[0], ms=5, label="smoothed margin")
        else:
            curve(panel, place, margin, kind, f"{words}: margin")
            panel.plot(place, smoothed, color=COLOURS[1], ls=":", lw=1.4, label="smoothed margin")
    panel.axhline(level, color=COLOURS[4], lw=1.0, ls="--")
    seen = [float(look[what]) for key in ("gd", "flow") for look in one[key][1:] for what in ("margin", "smoothed")]
    spread = max(max(seen) - min(seen), 0.02 * level)
    panel.set_ylim(min(*seen, level) - 0.3 * spread, max(*seen, level) + 0.3 * spread)
    panel.set(xscale="log", xlabel="$\\log_{10}(1/L)$", ylabel="normalised margin", xticks=down)
    panel.set_xticks(down, [f"{x:.0f}" for x in down])
    panel.minorticks_off()
    panel.set_title("the shown draw, on to smaller losses", fontsize=9)
    panel.legend(fontsize=6.5, loc="lower right")


def _plot_ends(panel: Any, one: Mapping[str, Any]) -> None:
    """Draw the margin at the end of the flow, draw by draw, against the scale of the start."""
    for k, (kind, words) in enumerate(ENDINGS.items()):
        found = [
            (np.log10(float(scale)) + 0.12 * (j - (len(ends) - 1) / 2), float(end["margin"]), end["linear"])
            for scale, ends in zip(one["scales"], one["ends"], strict=True)
            for j, end in enumerate(ends)
            if end["kind"] == kind
        ]
        if found:
            words = "linear, largest margin" if kind == "best" and found[0][2] else words
            place, margin = np.array([point[:2] for point in found]).T
            panel.scatter(place, margin, marker=MARKS[k], c=COLOURS[k], s=26, label=words, zorder=3)
    low, high = float(one["one"]["margin"]), float(one["best"]["margin"])
    panel.axhline(high, color="black", lw=1.0)
    panel.axhline(low, color=COLOURS[4], lw=1.0, ls="--")
    room = max(high - low, 0.1 * high)
    panel.set(xlabel=r"$\log_{10}$ of the factor of He's start (draws side by side)", ylabel="normalised margin")
    panel.set_ylim(low - 0.9 * room, high + 0.15 * room)
    panel.set_xticks([np.log10(float(scale)) for scale in one["scales"]])
    panel.set_title("end of the exact flow", fontsize=9)
    panel.legend(fontsize=7, loc="lower left")


EXPERIMENT = Experiment(
    id="LL-F2",
    title="Gradient descent from small weights ends with linear boundaries on the three sets",
    caption="Top: output of the net that gradient descent found (lighter is higher), its boundary (white) and that of "
    "the linear classifier (dashed), data, hints as crosses; points outside the windows are left out. Middle: margin "
    "and smoothed margin of descent, continued with normalised steps, and of the exact flow at the same losses; dashed "
    "the margin of the linear classifier. Bottom: normalised margin at the end of the exact flow, for several draws of "
    "He's start and factors before it; lines: largest margin of any network, and (dashed) of one neuron.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "width": 50,
        "scale": 1e-3,
        "scales": [1e-3, 1e-4, 1e-5, 1e-6],
        "step": 2e-3,
        "later_step": 2e-3,
        "steps": 5_000_000,
        "losses": [1e-3, 1e-6, 1e-10, 1e-20, 1e-50],
        "draws": 5,
        "max_log_time": 1e8,
    },
    quick={
        "width": 10,
        "scales": [1e-3, 1e-5],
        "step": 5e-3,
        "later_step": 5e-3,
        "losses": [2e-2, 1e-6],
        "draws": 1,
        "max_log_time": 1e5,
    },
    implied=("*-limit", "*-small"),
    ours=("*-flow", "*-flow-margin", "*-ladder"),
    unstated=(
        Choice("width", "50", "enough for every direction; the theorems ask for two neurons"),
        Choice(
            "step and end", "0.002, until the loss is 0.001; then normalised", "the paper says: small learning rate"
        ),
        Choice("points", "as for LL-F1", "the paper gives the sets in words"),
        Choice("seeds", "0; limits also for seeds 1 to 4", "the paper shows one run"),
    ),
    minutes=8,
)
