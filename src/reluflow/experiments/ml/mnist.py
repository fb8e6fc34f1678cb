"""Two digits learned from tiny weights: alignment, then growth (ML-F5, ML-F10, ML-F11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...data import dataset
from ...dynamics import Trajectory, align, descend, flow
from ...problem import Dataset, Problem
from ...problem.types import Array
from ...report.panels import COLOURS, band, image
from ...sectors import class_sums
from ..core.experiment import Expectation, Numbers, Tell, at_least, at_most, between, equals
from ..core.moments import at_times
from .common import crossing, problem_of, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALIGNED = 0.95  # cosine of the mean neurons with the class sums from which they count as aligned
_SMALL = 0.01  # margins up to which the exact early phase is compared with descent
_ROWS = 1000  # of the Gram matrix at a time
_SHOWN = 60  # images a class in the picture of the Gram matrix
_FLOW: dict[str, Any] = {"color": "black", "ls": ":", "lw": 2.0, "label": "exact flow"}


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Descend on all images; the exact early phase of the same start, and the whole flow from it."""
    raw = dataset(parameters["data"])
    data = raw.centered()
    problem = problem_of(data, parameters, parameters["seed"])
    steps = int(parameters["steps"])
    trained = _descent(problem, parameters, lambda k: tell(0.85 * k / steps))
    plus, minus = class_sums(data)
    found: Numbers = {
        "name": data.name,
        "samples": data.n,
        "d": data.d,
        "positive": int(data.positives.size),
        "scale": parameters["scale"],
        "step": parameters["step"],
        "speed": problem.speed,
        "sum_norms": [float(np.linalg.norm(plus)), float(np.linalg.norm(minus))],
        "cos_sums": float(plus @ minus / np.linalg.norm(plus) / np.linalg.norm(minus)),
        "pairs": pair_shares(data),
        "gram": _gram(data),
        "rtol": parameters["flow_rtol"],
        "descent": {**_curves(trained, parameters), "start_cosine": float(np.nanmax(np.abs(_to_sums(trained)[0])))},
        "images": _images(raw, trained),
        "early": _early(problem, trained),
    }
    tell(0.87)
    exact = flow(problem, {"time": float(trained.time[-1])}, rtol=float(parameters["flow_rtol"]), progress=False)
    found["flow"] = _curves(at_times(exact, trained.time), parameters)
    return found


def _descent(problem: Problem, parameters: Mapping[str, Any], told: Callable[[int], None]) -> Trajectory:
    return descend(
        problem,
        step=float(parameters["step"]),
        steps=int(parameters["steps"]),
        dtype=parameters["dtype"],
        record=spread(int(parameters["steps"]), int(parameters["records"])),
        callback=lambda k, _net: told(k),
        progress=False,
    )


def _to_sums(run: Trajectory) -> Array:
    return run.measures.cosines(*class_sums(run.problem.data))


def _curves(run: Trajectory, parameters: Mapping[str, Any]) -> Numbers:
    """Alignment of every group, loss, stable rank, squared spectral norm at the records, by iteration of descent."""
    every = _to_sums(run)
    groups = [np.where(run.signs == sign, every, np.nan) for sign in (1, -1)]
    singular = np.array([np.linalg.norm(W, 2) ** 2 for W in run.W])
    return {
        "iteration": np.rint(run.time / float(parameters["step"])).astype(int),
        "cosine": run.measures.group_cosines(*class_sums(run.problem.data)),
        "lowest": np.stack([np.nanmin(group, axis=1) for group in groups], axis=1),
        "highest": np.stack([np.nanmax(group, axis=1) for group in groups], axis=1),
        "loss": run.loss,
        "rank": run.stable_rank(),
        "norm": singular,
    }


def pair_shares(data: Dataset) -> Numbers:
    """Share of pairs of different images whose inner product has the sign of the product of their labels."""
    right = np.zeros((2, data.n))  # of the same class, of different ones
    for first in range(0, data.n, _ROWS):
        signed = data.signed[first : first + _ROWS] @ data.signed.T > 0
        same = data.y[first : first + _ROWS, None] == data.y
        right[0, first : first + _ROWS] = (signed & same).sum(axis=1)
        right[1, first : first + _ROWS] = (signed & ~same).sum(axis=1)
    plus, minus = data.positives.size, data.negatives.size
    counts = plus * (plus - 1) + minus * (minus - 1), 2 * plus * minus
    kept = right.sum(axis=1) - [data.n, 0]  # an image and itself are no pair
    return {
        "same": float(kept[0] / counts[0]),
        "other": float(kept[1] / counts[1]),
        "all": float(kept.sum() / sum(counts)),
    }


def _gram(data: Dataset) -> Array:
    """Inner products of some images, the positive class first."""
    some = [index[np.linspace(0, index.size - 1, _SHOWN).astype(np.intp)] for index in (data.positives, data.negatives)]
    X = data.X[np.concatenate(some)]
    return np.asarray((X @ X.T).round(2))


def _images(raw: Dataset, run: Trajectory) -> Numbers:
    W, signs, centred = run.W[-1], run.signs[-1], run.problem.data
    return {
        "mean": raw.X.mean(axis=0).round(4),
        "data": [centred.X[index].mean(axis=0).round(4) for index in (centred.positives, centred.negatives)],
        "neurons": [W[signs == sign].mean(axis=0).round(5) for sign in (1, -1)],
    }


def _early(problem: Problem, trained: Trajectory) -> Numbers:
    """Exact directions in the limit of small weights, at the iterations before a margin reaches 0.01."""
    exact = align(problem)
    until = exact.valid_until(_SMALL)
    iteration = np.array(trained.settings["iteration"])
    kept = trained.time <= until
    times = trained.time[kept]
    path = Trajectory(
        problem,
        np.log(times, out=np.full_like(times, -np.inf), where=times > 0),
        np.zeros_like(times),  # the loss, which is its start up to 0.01
        exact.directions(times),
        exact.log_norms(times),
        exact.log_outs(times),
        exact.output_signs(times),
    )
    return {
        "until": float(until / trained.settings["step"]),
        "last_event": float(exact.last_event.max() / trained.settings["step"]),
        "iteration": iteration[kept],
        "cosine": path.measures.group_cosines(*class_sums(problem.data)),
    }


# -- what the paper reports -------------------------------------------------------------------------------


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the geometry of the images, the two phases, how it ends, and descent against the flow."""
    return [*_check_images(numbers), *_check_phases(numbers), *_check_end(numbers), *_check_flow(numbers)]


def check_reported(numbers: Numbers) -> list[Expectation]:
    """Judge also the two iteration numbers that the paper gives for the digits 0 and 1."""
    descent = numbers["descent"]
    iteration, start, first = descent["iteration"], _check_aligned(descent, "lowest"), _check_aligned(descent)
    why = "The paper says about; a factor of 2 either way is allowed."
    return [
        *check(numbers),
        between(
            "aligned-2000",
            "All neurons are well aligned with their class sums (cosine 0.95 for the worst) after about 2000 "
            f"iterations (the two mean neurons: {'never' if first is None else iteration[first]}).",
            float("nan") if start is None else float(iteration[start]),
            1000,
            4000,
            why,
        ),
        between(
            "growth-3000",
            "After about 3000 iterations the weights have grown so far that the loss falls (by 1 % of its start).",
            crossing(iteration, descent["loss"], 0.99),
            1500,
            6000,
            why,
        ),
    ]


def _check_end(numbers: Numbers) -> list[Expectation]:
    """Judge the last iteration."""
    descent = numbers["descent"]
    rate = float(descent["loss"][-1]) / float(descent["loss"][-2]) - 1
    return [
        at_most(
            "loss-small",
            "The loss becomes small by the end.",
            float(descent["loss"][-1]),
            0.1,
            f"The cut-off is ours. The loss is still falling there (by {-rate:.2g} of itself from the last record but "
            "one): classes that are harder to tell apart take longer.",
        ),
        at_least(
            "centres",
            "In the end the mean neurons still look like the centres of their classes (smaller cosine).",
            min(float(cosine) for cosine in descent["cosine"][-1]),
            0.8,
            "The paper calls the likeness good and gives no number. While the loss falls neurons turn from the class "
            "sum towards the images that are hard to tell apart, of which some pairs of digits have more.",
        ),
    ]


def _check_aligned(descent: Mapping[str, Any], which: str = "cosine") -> int | None:
    """First record at which both mean neurons (or the worst of both groups) are aligned."""
    at = np.flatnonzero((np.asarray(descent[which], dtype=np.float64) >= _ALIGNED).all(axis=1))
    return int(at[0]) if at.size else None


def _check_images(numbers: Numbers) -> list[Expectation]:
    pairs, start = numbers["pairs"], float(numbers["descent"]["start_cosine"])
    return [
        between(
            "pairs",
            "After centring most pairs of images, but not all, have an inner product with the sign that separability "
            "asks for: positive within a class and negative between the classes (share of pairs; the smaller of "
            f"the two kinds; within {pairs['same']:.4f}, between {pairs['other']:.4f}).",
            min(pairs["same"], pairs["other"]),
            0.5,
            0.9999,
            "Most is read as more than half.",
        ),
        equals(
            "opposite",
            "The class sums of the centred images are opposite: their cosine is -1, exactly and not only nearly.",
            numbers["cos_sums"],
            -1,
            1e-9,
        ),
        at_most(
            "start",
            "At the start every neuron is nearly orthogonal to the class sums (largest |cosine|).",
            start,
            4 / float(numbers["d"]) ** 0.5,
            "4/sqrt(d): four standard deviations of the cosine of a random direction.",
        ),
    ]


def _check_phases(numbers: Numbers) -> list[Expectation]:
    descent = numbers["descent"]
    loss, norm = (np.asarray(descent[key], dtype=np.float64) for key in ("loss", "norm"))
    cosine = np.asarray(descent["cosine"], dtype=np.float64)
    fallen = crossing(descent["iteration"], loss, 0.99)
    dropped = loss <= 0.99 * loss[0]
    drop = int(np.argmax(dropped)) if dropped.any() else len(loss) - 1
    clock = -np.log(numbers["scale"]) / (numbers["step"] * numbers["speed"] * max(numbers["sum_norms"]))
    peak = np.nanmax(cosine, axis=0)
    return [
        at_least(
            "aligned-before",
            "When the loss has fallen by 1 % both mean neurons are aligned with their class sums (smaller cosine).",
            float(cosine[drop].min()),
            _ALIGNED,
        ),
        at_most(
            "norm-before",
            "Up to there the weights stay small (largest squared spectral norm of W at a record before).",
            float(norm[:drop].max()),
            1e-2,
        ),
        at_least("norm-after", "In the end they have grown (squared spectral norm of W).", float(norm[-1]), 0.5),
        *_check_ranks(descent),
        between(
            "clock",
            "The loss falls when the growth rate of aligned neurons says: 1 % at log(1/scale) / (step |x+| / n) "
            f"= {clock:.0f} iterations (ratio of the measured {fallen:.0f} to it).",
            fallen / clock,
            0.5,
            2.0,
        ),
        between(
            "mild-drop",
            "While the loss falls the alignment becomes a little worse (largest cosine minus last one, the larger of "
            "the two groups).",
            float((peak - cosine[-1]).max()),
            1e-3,
            0.3,
            "The paper shows a visible but mild drop and gives no number.",
        ),
    ]


def _check_ranks(descent: Mapping[str, Any]) -> list[Expectation]:
    rank = np.asarray(descent["rank"], dtype=np.float64)
    start, settled = _check_aligned(descent), _check_aligned(descent, "lowest")
    return [
        at_most(
            "rank",
            "The stable rank of W is close to 1 from the alignment of the two mean neurons on (largest value).",
            float("nan") if start is None else float(rank[start:].max()),
            1.2,
            "The paper says almost 1, without saying from when; this moment is ours. The mean neurons are aligned "
            "before the slowest and smallest neurons are, which still count.",
        ),
        at_most(
            "rank-two",
            "The stable rank of W is below 2 from the alignment of the two mean neurons on (largest value).",
            float("nan") if start is None else float(rank[start:].max()),
            2.0,
        ),
        at_most(
            "rank-one",
            "It is close to 1 from the alignment of every single neuron on (cosine 0.95; largest value).",
            float("nan") if settled is None else float(rank[settled:].max()),
            1.2,
        ),
    ]


def _check_flow(numbers: Numbers) -> list[Expectation]:
    early, descent, whole = numbers["early"], numbers["descent"], numbers["flow"]
    exact = np.asarray(early["cosine"], dtype=np.float64)
    apart = np.abs(np.asarray(descent["cosine"], dtype=np.float64)[: len(exact)] - exact)
    drops = [crossing(found["iteration"], found["loss"], 0.99) for found in (descent, whole)]
    cosines_end = [np.asarray(found["cosine"][-1], dtype=np.float64) for found in (descent, whole)]
    same = f"on the same {numbers['samples']} images"
    return [
        at_most(
            "flow-early",
            "Until a margin reaches 0.01 the mean neurons of descent have the cosines of the exact solution for small "
            "weights on the same images (largest difference).",
            float(apart.max()),
            0.01,
        ),
        at_most(
            "flow-drop",
            f"The exact flow from the same start, {same}, loses 1 % of its loss at the same time as descent (relative "
            f"difference; iteration {drops[0]:.1f} of descent, {drops[1]:.1f} of the flow).",
            abs(drops[1] / drops[0] - 1),
            0.02,
        ),
        at_most(
            "flow-end",
            f"The flow and descent end at the same loss, {same} (difference of the logarithms).",
            abs(float(np.log(whole["loss"][-1] / descent["loss"][-1]))),
            0.05,
        ),
        at_most(
            "flow-cosine",
            f"They end with the same alignment, {same} (largest difference of the two cosines).",
            float(np.abs(cosines_end[0] - cosines_end[1]).max()),
            0.02,
        ),
    ]


# -- the figure -------------------------------------------------------------------------------------------


def plot(numbers: Numbers) -> Figure:
    """Draw the four parts of the paper's figure side by side."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained")
    figure.suptitle(f"{numbers['name'].split('|')[0]}: {numbers['samples']} centred images")
    parts: Any = figure.subfigures(1, 4, width_ratios=(1.05, 1.15, 1.15, 0.8))
    gram = parts[0].subplots()
    entries = np.asarray(numbers["gram"], dtype=np.float64)
    reach = float(np.quantile(np.abs(entries), 0.98))
    colours = LinearSegmentedColormap.from_list("signed", [COLOURS[1], "#FFFFFF", COLOURS[0]])
    drawn = gram.imshow(entries, cmap=colours, vmin=-reach, vmax=reach, interpolation="nearest")
    parts[0].colorbar(drawn, ax=gram, location="bottom", extend="both", label="inner product", shrink=0.9)
    gram.set(title="inner products of images", xticks=[], yticks=[])
    gram.set(xlabel="positive class, then negative", ylabel="the same order")
    _plot_alignment(parts[1].subplots(2, 1, sharex=True), numbers)
    _plot_convergence(parts[2].subplots(3, 1, sharex=True), numbers)
    _plot_images(parts[3].subplots(4, 2), numbers["images"])
    return figure


def _plot_alignment(axes: npt.NDArray[Any], numbers: Numbers) -> None:
    descent, exact = numbers["descent"], numbers["flow"]
    for side, sign in enumerate("+-"):
        low, mean, high = (
            np.asarray(descent[key], dtype=np.float64)[:, side] for key in ("lowest", "cosine", "highest")
        )
        band(axes[side], descent["iteration"], low, mean, high, side + 1, "mean neuron (band: all)")  # red, then green
        axes[side].lines[-1].set_linestyle("-")
        cosine = np.asarray(exact["cosine"], dtype=np.float64)[:, side]
        axes[side].plot(exact["iteration"], cosine, **_FLOW)
        axes[side].set(ylim=(-0.45, 1.08), ylabel=f"cosine with $x_{sign}$")
        axes[side].legend(fontsize=7, loc="lower right")
    axes[0].set_title("alignment with the class sums")
    axes[1].set_xlabel("iteration")
    axes[1].locator_params(axis="x", nbins=4)


def _plot_convergence(axes: npt.NDArray[Any], numbers: Numbers) -> None:
    descent, exact = numbers["descent"], numbers["flow"]
    for panel, key, colour in zip(axes, ("loss", "rank", "norm"), (0, 3, 4), strict=True):
        panel.plot(descent["iteration"], descent[key], color=COLOURS[colour], lw=1.6, label="descent")
        panel.plot(exact["iteration"], exact[key], **_FLOW)
    axes[0].set(title="loss, stable rank, norm", ylabel="loss", ylim=(-0.05, 1.1))
    axes[0].legend(fontsize=7)
    axes[1].axhline(1.0, color="black", lw=0.6, ls="--")
    axes[1].set(yscale="log", ylabel=r"$|W|_F^2/|W|_2^2$")
    axes[2].set(ylabel=r"$|W|_2^2$", xlabel="iteration")
    axes[2].locator_params(axis="x", nbins=4)


def _plot_images(axes: npt.NDArray[Any], found: Numbers) -> None:
    mean = np.asarray(found["mean"], dtype=np.float64)
    for side, sign in enumerate("+-"):
        centre = np.asarray(found["data"][side], dtype=np.float64)
        neuron = np.asarray(found["neurons"][side], dtype=np.float64)
        neuron *= np.linalg.norm(centre) / np.linalg.norm(neuron)
        image(axes[0, side], centre, f"$\\bar x_{sign}$")
        image(axes[1, side], centre + mean, f"$\\bar x_{sign} + \\bar x$")
        image(axes[2, side], neuron, f"$\\bar w_{sign}$")
        image(axes[3, side], neuron + mean, f"$\\bar w_{sign} + \\bar x$")
