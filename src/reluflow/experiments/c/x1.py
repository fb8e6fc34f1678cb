"""C-X1: how often and how long neurons slide on random data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...dynamics import Alignment, align
from ...problem import Dataset, Problem, initialize
from ...report.panels import COLOURS, MARKS, STYLES, sheet
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_least, at_most, equals, not_judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEASURES = {
    "ever": "share that ever slides",
    "ends": "share that ends sliding",
    "time": "share of the time spent sliding",
    "surfaces": "surfaces held at once",
}


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Solve the early phase exactly on every kind of data, dimension, number of samples and slope."""
    numbers: Numbers = {
        "slopes": parameters["slopes"],
        "dims": parameters["dims"],
        "n": {str(d): [max(2, round(ratio * d)) for ratio in parameters["ratios"]] for d in parameters["dims"]},
        "kinds": {},
        "wrong_side": 0,
        "slides": 0,
    }
    places = [(kind, d) for kind in parameters["kinds"] for d in parameters["dims"]]
    for k, (kind, d) in enumerate(places):
        table = np.full((len(parameters["slopes"]), len(parameters["ratios"]), parameters["draws"], 4), np.nan)
        for j, n in enumerate(numbers["n"][str(d)]):
            for draw in range(parameters["draws"]):
                data = make(kind, n=n, d=d, seed=draw, **parameters["kinds"][kind])
                for i, slope in enumerate(parameters["slopes"]):
                    early = _early(data, parameters["width"], slope, draw)
                    table[i, j, draw] = sliding(early)
                    count, wrong = _sides(early)
                    numbers["slides"] += count
                    numbers["wrong_side"] += wrong
            tell((k + (j + 1) / len(parameters["ratios"])) / len(places))
        numbers["kinds"].setdefault(kind, {})[str(d)] = {
            name: _range(table[..., m]) for m, name in enumerate(_MEASURES)
        }
    return numbers


def _early(data: Dataset, width: int, slope: float, seed: int) -> Alignment:
    return align(Problem(data, initialize(data.d, width, "balanced", 1e-6, seed, slope)))


def _range(values: Any) -> Numbers:
    """Mean, smallest and largest over the draws; nan where there is none (no neuron slides)."""
    some = ~np.isnan(values).all(axis=-1)
    found = {name: np.full(some.shape, np.nan) for name in ("mean", "low", "high")}
    for name, reduce in (("mean", np.nanmean), ("low", np.nanmin), ("high", np.nanmax)):
        found[name][some] = reduce(values[some], axis=-1)
    return found


def sliding(early: Alignment) -> list[float]:
    """Shares of neurons that ever slide and that end sliding, share of the time, mean number of surfaces held.

    The time runs from the start to the last event of any neuron, the end of the alignment. Surfaces are counted as a
    mean over the time that neurons slide; nan if none does.

    >>> data = Dataset([[1.0, 0.0], [1.0, 0.5]], [1, -1])
    >>> sliding(_early(data, 4, 1.0, 0))    # a linear net never slides
    [0.0, 0.0, 0.0, nan]
    """
    end = float(early.last_event.max())
    ever, held_time, surface_time = 0, 0.0, 0.0
    for neuron in range(early.p):
        held: set[int] = set()
        now, slid = 0.0, False
        for time, sample, kind in early.events(neuron).tolist():
            held_time += (time - now) * bool(held)
            surface_time += (time - now) * len(held)
            now = time
            if kind == "slide":
                held.add(sample)
                slid = True
            else:
                held.discard(sample)
        held_time += (end - now) * bool(held)
        surface_time += (end - now) * len(held)
        ever += slid
    ends = sum(fate in ("sliding", "shrinking") for fate in early.fates)
    share = held_time / (end * early.p) if end > 0 else 0.0
    return [ever / early.p, ends / early.p, share, surface_time / held_time if held_time > 0 else float("nan")]


def _sides(early: Alignment) -> tuple[int, int]:
    """Count the times a neuron begins to slide, and those where the sample pulls it along: sgn(a) y = +1."""
    labels, count, wrong = early.problem.data.y, 0, 0
    for neuron in range(early.p):
        for _, sample, kind in early.events(neuron).tolist():
            if kind == "slide":
                count += 1
                wrong += bool(early.signs[neuron] * labels[sample] > 0)  # signs are constant: the start is balanced
    return count, wrong


def check(numbers: Numbers) -> list[Expectation]:
    """Judge what theory says about sliding, and report the rest."""
    slopes = numbers["slopes"]
    found = [
        equals(
            "side",
            "A neuron slides only on hyperplanes of samples that push it away: sgn(a) y = -1 "
            f"(exceptions among {numbers['slides']} beginnings).",
            numbers["wrong_side"],
            0,
            0,
            why="a sample with sgn(a) y = +1 pushes harder on its active side, away from its hyperplane.",
        ),
        at_least(
            "some", "Sliding is common (beginnings counted).", numbers["slides"], 1000, why="else nothing is tested."
        ),
        equals(
            "linear",
            "With slope 1 no neuron ever slides (largest share).",
            _check_extreme(numbers, "ever", slopes.index(1.0)),
            0,
            0,
            why="there is no kink.",
        ),
        equals(
            "orthogonal",
            "On orthogonally separable data no neuron slides, whatever the slope (largest share).",
            max(float(np.max(one["ever"]["high"])) for one in numbers["kinds"]["orthsep"].values()),
            0,
            0,
            why="w.x_i moves with the sign of sgn(a) y_i at all times, so no hyperplane is pushed at from both sides.",
        ),
        at_most(
            "slope",
            "The steeper the inactive side, the less sliding: the share that ever slides, averaged over all data, "
            "falls from slope to slope (largest rise).",
            float(np.max(np.diff(_check_by_slope(numbers)))),
            0.0,
            why="a neuron is held on one surface if the push of the other samples lies between slope and 1 times that "
            "of its own sample; the window closes as the slope goes to 1. Not a theorem: averages are compared.",
        ),
    ]
    return [*found, _check_draws(numbers)]


def _check_extreme(numbers: Numbers, measure: str, slope: int) -> float:
    tables = [one[measure]["high"] for kind in numbers["kinds"].values() for one in kind.values()]
    return max(float(np.max(table[slope])) for table in tables)


def _check_by_slope(numbers: Numbers) -> list[float]:
    """Share that ever slides by slope, averaged over everything else but the data where none does."""
    tables = [
        one["ever"]["mean"] for name, kind in numbers["kinds"].items() if name != "orthsep" for one in kind.values()
    ]
    return [float(np.mean([table[i] for table in tables])) for i in range(len(numbers["slopes"]))]


def _check_draws(numbers: Numbers) -> Expectation:
    """Report, for the largest dimension and most points, how much the share depends on the draw of the data."""
    d = str(numbers["dims"][-1])
    one, at = numbers["kinds"]["linsep"][d]["ever"], numbers["slopes"].index(0.0)
    mean, low, high = (float(one[name][at][-1]) for name in ("mean", "low", "high"))
    return not_judged(
        "draws",
        f"How many ReLU neurons slide on {numbers['n'][d][-1]} separable points in R^{d}.",
        "no claim in any paper",
        "the share depends on the draw of the data, so that single draws say little.",
        f"mean {mean:.3g}, from {low:.3g} to {high:.3g}",
    )


def plot(numbers: Numbers) -> Figure:
    """Draw the measures in rows and the kinds of data in columns."""
    titles = {
        "linsep": "separable, linear teacher",
        "antipodal_gaussians": "two Gaussians",
        "randlab": "random labels",
        "orthsep": "orthogonally separable",
    }
    kinds = [kind for kind in titles if kind in numbers["kinds"]]
    figure, axes = sheet(4, len(kinds), "Sliding during alignment, on random data", (3.1, 2.4))
    for column, kind in enumerate(kinds):
        for row, (measure, word) in enumerate(_MEASURES.items()):
            for d, one in numbers["kinds"][kind].items():
                _plot_lines(axes[row, column], numbers, d, one[measure], last=d == str(numbers["dims"][-1]))
            axes[row, column].set(xscale="log", xlim=(0.2, 64.0))
            if measure != "surfaces":
                axes[row, column].set_ylim(-0.04, 1.04)
            elif not any(np.isfinite(np.asarray(line.get_ydata())).any() for line in axes[row, column].lines):
                axes[row, column].set(yticks=[])
                axes[row, column].text(0.5, 0.5, "no neuron slides", transform=axes[row, column].transAxes, ha="center")
            if column == 0:
                axes[row, column].set_ylabel(word)
        axes[0, column].set_title(titles[kind], fontsize=10)
        axes[-1, column].set_xlabel("n / d")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _plot_lines(panel: Any, numbers: Numbers, d: str, one: Numbers, last: bool) -> None:
    place = np.asarray(numbers["n"][d], dtype=float) / float(d)
    low, mean, high = (np.asarray(one[name], dtype=float) for name in ("low", "mean", "high"))
    for i, slope in enumerate(numbers["slopes"]):
        look = {"color": COLOURS[i % len(COLOURS)], "ls": STYLES[i % len(STYLES)], "marker": MARKS[i % len(MARKS)]}
        fill = "full" if last else "none"
        panel.plot(place, mean[i], **look, ms=4, lw=1.3, fillstyle=fill, label=f"slope {slope:g}, d = {d}")
        if last and slope in (0.0, 0.5):
            panel.fill_between(place, low[i], high[i], color=look["color"], alpha=0.15, lw=0)


EXPERIMENT = Experiment(
    id="C-X1",
    title="How often and how long neurons slide on random data",
    caption="The early phase solved exactly, balanced start, for four kinds of random data (columns) against n/d, by "
    "slope of the activation (colour, line, mark) and dimension (filled marks: 20, open: 5); means over draws, bands: "
    "smallest and largest draw for d = 20, slopes 0 and 0.5. Rows: share of the neurons that slide at some time; that "
    "end sliding; share of the alignment time spent sliding; mean number of hyperplanes held at once while sliding.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "kinds": {"linsep": {}, "antipodal_gaussians": {"mean": 1.0, "margin": 0.1}, "randlab": {}, "orthsep": {}},
        "dims": [5, 20],
        "ratios": [0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0],
        "slopes": [0.0, 0.1, 0.5, 0.9, 1.0],
        "draws": 12,
        "width": 40,
    },
    quick={"dims": [5], "ratios": [0.5, 2.5, 10.0], "draws": 3, "width": 20},
    ours=("*",),
    unstated=(
        Choice(
            "data",
            "points N(0, I/d) labelled by a linear teacher with margin 0.1; Gaussians around plus and minus e_1; "
            "points N(0, I/d) with random labels; orthogonally separable points",
            "in none of the papers: everything is chosen here",
        ),
        Choice("draws", "12 of data and start, 40 neurons each", "the shares depend strongly on the draw of the data"),
    ),
    minutes=1.0,
)
