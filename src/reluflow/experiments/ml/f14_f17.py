"""ML-F14 to F17: paths of activation patterns, and the longest of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...problem import initialize
from ...report.panels import COLOURS, sheet
from ...sectors import alignment_constants
from ..core.experiment import Expectation, Experiment, Numbers, Tell, at_most, equals, is_so
from .patterns import DRAWN, check_steps, followed, history

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Node = tuple[int, int]


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Follow positive neurons to S+ and count the positive and negative points that activate them on the way."""
    data = make("orthsep", n=parameters["n"], d=parameters["d"], seed=parameters["seed"])
    drawn = initialize(data.d, int(parameters["neurons"]), "balanced", 1.0, seed=0)
    # Towards the negative points, so that many of them are on the way.
    lean = -float(parameters["lean"]) * data.signed.mean(axis=0) / np.linalg.norm(data.signed.mean(axis=0))
    early = followed(data, drawn.directions + lean)
    tell(0.5)
    every = [history(early, j) for j in range(early.p)]
    paths = [path for path in every if path[-1]["active"] == (data.y > 0).tolist()]
    bounds = alignment_constants(data, early.problem.net)
    return {
        "y": data.y,
        "neurons": early.p,
        "paths": paths,
        "unit": 4.0 / (bounds.c * np.sqrt(bounds.mu) * bounds.x_min),
        "t_1": bounds.t_1,
    }


def nodes(path: Sequence[Mapping[str, Any]], y: Any) -> list[Node]:
    """Return the numbers of active positive and negative points along a path."""
    labels = np.asarray(y, dtype=np.float64) > 0
    counts = [np.asarray(state["active"], dtype=bool) for state in path]
    return [(int((on & labels).sum()), int((on & ~labels).sum())) for on in counts]


def longest(plus: int, minus: int) -> list[Node]:
    """Return the maximal path: all negative points are lost but one, a positive gained, the last lost, the rest gained.

    >>> longest(2, 2)
    [(0, 2), (0, 1), (1, 1), (1, 0), (2, 0)]
    """
    return [*((0, k) for k in range(minus, 0, -1)), (1, 1), *((k, 0) for k in range(1, plus + 1))]


def weight(path: Sequence[Node]) -> float:
    """Return the bound of a path in units of 4 / (c sqrt(mu) X_min): one over the active points, edge by edge."""
    return float(sum(1.0 / (plus + minus) for plus, minus in path[:-1]))


def matched(path: Sequence[Node], maximal: Sequence[Node]) -> list[tuple[int, int]]:
    """Give every edge of a path an edge of the maximal one that is no faster, none of them twice.

    Where k negative points are left before one is lost it is the edge of the maximal path that loses one of k; a gain
    likewise. The edges (0, 1) - (1, 1) - (1, 0) of the maximal path stand for the first gain and the last loss.
    """
    first_gain, last_loss = maximal.index((0, 1)), maximal.index((1, 1))
    found = []
    for edge, (old, new) in enumerate(pairwise(path)):
        if new[1] < old[1]:
            found.append((edge, last_loss if old[1] == 1 else maximal.index((0, old[1]))))
        else:
            found.append((edge, first_gain if old[0] == 0 else maximal.index((old[0], 0))))
    return found


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the steps, the correspondence of edges, and the bounds on the time."""
    y, unit = numbers["y"], float(numbers["unit"])
    plus, minus = (int((np.sign(y) == sign).sum()) for sign in (1, -1))
    maximal = longest(plus, minus)
    count, wrong = check_steps(numbers["paths"], y)
    # A change of two points at once is two steps, of which the second takes no time.
    paths = [(path, nodes(path, y)) for path in numbers["paths"]]
    pairs = [(found, matched(found, maximal)) for _, found in paths]
    slower = [
        1.0 / sum(found[edge]) <= 1.0 / sum(maximal[other]) + 1e-12 for found, match in pairs for edge, other in match
    ]
    once = all(len({other for _, other in match}) == len(match) for _, match in pairs)
    times = [float(path[-1]["time"]) for path, _ in paths]
    return [
        equals(
            "steps",
            f"Every step of a path gains a positive or loses a negative point (others, of {count} steps of "
            f"{len(paths)} neurons that reach S+).",
            wrong,
            0,
            0,
        ),
        is_so(
            "edges",
            "Every edge of every path corresponds to one of the maximal path of its own that may take at least as "
            "long.",
            all(slower) and once,
            f"{len(slower)} of {len(slower)} edges",
            f"{sum(slower)} of {len(slower)} edges, {'none' if once else 'some'} twice",
        ),
        at_most(
            "own-bound",
            "A neuron reaches S+ within the bound of its own path (largest ratio).",
            max(time / (unit * weight(found)) for time, (_, found) in zip(times, paths, strict=True)),
            1.0,
        ),
        at_most(
            "maximal",
            "No path has a larger bound than the maximal one (largest ratio).",
            max(weight(found) for _, found in paths) / weight(maximal),
            1.0,
        ),
        at_most(
            "t1",
            "The bound of the maximal path is at most t_1 (ratio).",
            unit * weight(maximal) / float(numbers["t_1"]),
            1.0,
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw one path, the maximal one beside it, and the correspondence of their edges in two parts."""
    y = numbers["y"]
    plus, minus = (int((np.sign(y) == sign).sum()) for sign in (1, -1))
    maximal = longest(plus, minus)
    shown = max((nodes(path, y) for path in numbers["paths"]), key=lambda found: (len(found), found[0][1]))
    match = matched(shown, maximal)
    figure, axes = sheet(1, 4, "Numbers of points that activate a neuron, on its way to S+", (3.6, 2.7))
    titles = ("F14: a path", "F15: and the maximal one", "F16: losses of negatives", "F17: gains of positives")
    for k, (panel, title) in enumerate(zip(axes[0], titles, strict=True)):
        grid = np.stack(np.meshgrid(range(plus + 1), range(minus + 1)), axis=-1).reshape(-1, 2)
        panel.scatter(*grid.T, s=5, color="#BBBBBB", zorder=1)
        panel.plot(*zip(*shown, strict=True), color=COLOURS[0], marker="o", ms=4, lw=1.6, label="neuron")
        if k:
            panel.plot(
                *zip(*maximal, strict=True), color=COLOURS[1], ls="--", marker="s", ms=3, lw=1.3, label="maximal"
            )
        for edge, other in match if k > 1 else ():
            if (shown[edge + 1][1] < shown[edge][1]) == (k == 2):
                ends = [np.mean([path[at], path[at + 1]], axis=0) for path, at in ((shown, edge), (maximal, other))]
                arrow = {"arrowstyle": "->", "color": COLOURS[2], "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
                panel.annotate("", ends[1], ends[0], arrowprops=arrow)
        panel.set(xlabel="positive points $k_+$", ylabel="negative points $k_-$", title=title, aspect="equal")
    axes[0, 1].legend(fontsize=8)
    return figure


EXPERIMENT = Experiment(
    id="ML-F14-F17",
    title="Paths of activation patterns, and the longest of them",
    caption="From the left: how many positive and negative points activate one neuron, from its start to S+ (exact, on "
    "data drawn at random); beside it the maximal path, which takes the longest; and the edge of the maximal path that "
    "corresponds to each of its edges, for losses of negative points and for gains of positive ones.",
    run=run,
    check=check,
    plot=plot,
    parameters={"n": 16, "d": 8, "seed": 0, "neurons": 2000, "lean": 1.5},
    quick={"neurons": 300},
    implied=("*",),
    illustration=True,
    unstated=(DRAWN,),
    minutes=0.05,
)
