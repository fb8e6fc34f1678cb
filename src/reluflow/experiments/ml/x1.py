"""ML-X1: how long alignment takes as the points become orthogonal, against the proved bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import make
from ...dynamics import align
from ...problem import Dataset, Network, Problem, initialize
from ...problem.types import Array
from ...report.panels import curve, sheet
from ...sectors import alignment_constants, cones_of_patterns
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, at_most, equals, is_so

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Align many random neurons on three families of points for every mu."""
    mus = [float(mu) for mu in np.geomspace(float(parameters["smallest"]), 1.0, int(parameters["values"]))]
    mus[-1] = 1.0
    families = {}
    for k, name in enumerate(("pair", "fan", "equiangular")):
        rows = []
        for i, mu in enumerate(mus):
            rows.append(_measure(points(name, mu, int(parameters["points"])), parameters, k))
            tell((k + (i + 1) / len(mus)) / 3)
        families[name] = {key: [row[key] for row in rows] for key in rows[0]}
    return {"mu": mus, "neurons": int(parameters["neurons"]), "families": families, "entry": _entries(mus)}


def points(family: str, mu: float, count: int) -> Dataset:
    """Return unit vectors whose smallest signed cosine is mu.

    ``pair``: two positive points in the plane. ``fan``: two of each class in the plane, the signed points spread over
    an angle arccos(mu). ``equiangular``: ``count`` points in as many dimensions, all signed cosines equal to mu.
    """
    if family == "pair":
        return make("pair", delta=float(np.arcsin(mu)))
    if family == "fan":
        turn = np.arccos(mu) * np.array([-0.5, 1 / 6, -1 / 6, 0.5])
        y = np.array([1.0, 1.0, -1.0, -1.0])
        return Dataset(y[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1), y)
    y = np.where(np.arange(count) % 2, -1.0, 1.0)
    own = np.sqrt(1 - mu)  # the symmetric root of (1 - mu) I + mu 1 1^T
    root = own * np.eye(count) + (np.sqrt(1 - mu + count * mu) - own) / count
    return Dataset(y[:, None] * root, y)


def _measure(data: Dataset, parameters: Mapping[str, Any], seed: int) -> Numbers:
    net = initialize(data.d, int(parameters["neurons"]), "balanced", log_scale=-30.0, seed=seed)
    early = align(Problem(data, net, "exponential", "sum"))
    cones = cones_of_patterns(data.y, early.pattern > 0)
    bounds, alone = alignment_constants(data, net), alignment_constants(data)
    return {
        "mu": bounds.mu,
        "time": float(early.last_event.max()),
        "median": float(np.median(early.last_event)),
        "trapped": float((cones.own(net.a > 0) | cones.dead).mean()),
        "t_1": bounds.t_1,
        "t_1_sharp": bounds.t_1_sharp,
        "c": bounds.c,
        "data_t_1": alone.t_1,
        "data_t_1_sharp": alone.t_1_sharp,
    }


def _entries(mus: list[float]) -> Numbers:
    """Time to S+ of a neuron that sees only the first point of a pair, from nearly a right angle to it; exact."""
    turn = np.radians(-89.0)
    net = Network.balanced([[np.cos(turn), np.sin(turn)]], [1], log_scale=-30.0)
    kept = [mu for mu in mus if mu <= 0.5]
    found = [align(Problem(points("pair", mu, 2), net, "exponential", "sum")).last_event[0] for mu in kept]
    return {"mu": kept, "angle": 89.0, "time": [float(time) for time in found]}


def check(numbers: Numbers) -> list[Expectation]:
    """Judge the bounds, and how the time grows."""
    families = {name: _check_arrays(found) for name, found in numbers["families"].items()}
    entry = _check_arrays(numbers["entry"])
    closed = np.log(np.tan(np.radians(numbers["entry"]["angle"]) / 2) / np.tan(np.arcsin(entry["mu"]) / 2))
    found = [
        equals(
            "trapped",
            "Every neuron ends in the cone of its class or dead, for every mu (smallest share).",
            min(float(one["trapped"].min()) for one in families.values()),
            1,
            0,
        ),
        equals(
            "closed-form",
            "A neuron at 89 degrees from the only point it sees of a pair enters S+ after log(tan 44.5 deg / "
            "tan(asin(mu)/2)) (largest relative difference).",
            float(np.abs(entry["time"] / closed - 1).max()),
            0,
            1e-9,
        ),
    ]
    for name, one in families.items():
        found += _check_family(name, one)
    return found


def _check_family(name: str, one: dict[str, Array]) -> list[Expectation]:
    small = one["mu"] <= 1e-2
    slope, power = _check_laws(one["mu"][small], one["time"][small])
    orders = [_check_laws(one["mu"][small], one[key][small])[1] for key in ("data_t_1", "data_t_1_sharp")]
    return [
        at_most(
            f"{name}-t1",
            f"{name}: the time is at most t_1 for every mu (largest ratio).",
            float((one["time"] / one["t_1"]).max()),
            1.0,
        ),
        at_most(
            f"{name}-t1-sharp",
            f"{name}: the time is at most t_1' for every mu (largest ratio).",
            float((one["time"] / one["t_1_sharp"]).max()),
            1.0,
        ),
        at_most(
            f"{name}-log",
            f"{name}: for mu <= 0.01 the time grows at most like a multiple of log(1/mu), slower than any power "
            f"(fitted power of 1/mu; the fitted multiple of log(1/mu) is {slope:.3f}).",
            power,
            0.25,
            "A logarithm looks like a power that tends to 0; over these mu it looks like less than 0.25. A multiple of "
            "0 says that in this family the time does not depend on mu.",
        ),
        is_so(
            f"{name}-orders",
            f"{name}: the bounds grow faster, t_1 like mu^(-5/2) and t_1' like log(1/mu) mu^(-1/2), where mu and not "
            "the start decides them (fitted powers of 1/mu).",
            abs(orders[0] - 2.5) < 0.05 and 0.5 < orders[1] < 0.65,
            "2.45 to 2.55, and 0.5 to 0.65",
            f"{orders[0]:.3f}, {orders[1]:.3f}",
        ),
    ]


def _check_arrays(found: Numbers) -> dict[str, Array]:
    return {key: np.asarray(values, dtype=np.float64) for key, values in found.items() if key != "angle"}


def _check_laws(mu: Array, time: Array) -> tuple[float, float]:
    """Slope of the time, and of its logarithm, against log(1/mu)."""
    far = -np.log(mu)
    return float(np.polyfit(far, time, 1)[0]), float(np.polyfit(far, np.log(time), 1)[0])


def plot(numbers: Numbers) -> Figure:
    """Draw time and bounds against mu, a panel a family."""
    title = f"Alignment time of {numbers['neurons']} random neurons against mu, exact, with the bounds"
    figure, axes = sheet(2, 3, title, (4.2, 3.0))
    words = ("pair: two positive points", "fan: two of each class in the plane", "equiangular: all cosines equal mu")
    lines = (
        ("time", "last neuron (exact)"),
        ("t_1_sharp", "bound $t_1'$"),
        ("t_1", "bound $t_1$"),
        ("median", "median neuron"),
    )
    for column, (found, word) in enumerate(zip(numbers["families"].values(), words, strict=True)):
        for kind, (key, label) in enumerate(lines):
            heights = np.asarray(found[key], dtype=np.float64)
            curve(axes[0, column], numbers["mu"], np.where(heights > 0, heights, np.nan), kind, label, marks=kind == 0)
            if key in ("time", "median"):
                curve(axes[1, column], numbers["mu"], heights, kind, marks=kind == 0)
        axes[0, column].set(xscale="log", yscale="log", title=word)
        axes[1, column].set(xscale="log", xlabel=r"$\mu$", ylim=(0.0, None))
    entry = numbers["entry"]
    for row, name in enumerate(("time", "time, linear scale")):
        axes[row, 0].plot(entry["mu"], entry["time"], color="black", lw=0.8, label="closed form, 89 degrees")
        axes[row, 0].set_ylabel(name)
    axes[0, 0].legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    id="ML-X1",
    title="Alignment time against the separation mu, with the bounds t_1 and t_1'",
    caption="Time at which the last of many random balanced neurons is in the cone of its class or dead, from the "
    "exact solution for small weights, against the smallest signed cosine mu of the data; the proved bound "
    "t_1 and the sharper t_1', in the time of a sum of losses with unit force at 0. Below the same times on a linear "
    "scale, where a logarithm is a straight line. Left also the closed form for a neuron that sees one of two points. "
    "Where mu is large the bounds depend on how close a neuron starts to the ray that repels it: hence their jumps.",
    run=run,
    check=check,
    plot=plot,
    parameters={"smallest": 1e-6, "values": 31, "neurons": 2000, "points": 10},
    quick={"values": 13, "neurons": 300, "points": 6},
    implied=("trapped", "closed-form", "*-t1"),
    ours=("*-t1-sharp", "*-log", "*-orders"),
    unstated=(
        Choice("the experiment itself", "three families of unit vectors with prescribed mu", "not in the paper"),
        Choice(
            "constants of the bounds", "c = min(zeta_2, mu^2), the best possible", "the paper proves existence only"
        ),
    ),
    minutes=0.3,
)
