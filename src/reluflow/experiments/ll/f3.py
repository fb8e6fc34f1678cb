"""LL-F3: ridge, valley and refraction, each made by two samples and one neuron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dynamics import Trajectory, flow
from ...problem import Dataset, Network, Problem
from ...problem.types import Array
from ...report.panels import COLOURS, sheet
from ..core.experiment import Choice, Expectation, Experiment, Numbers, Tell, is_so

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The sample whose hyperplane is the kink, w_2 = 0; the second sample pushes along it, and to one side.
KINK = (0.0, 1.0)
LANDSCAPES: dict[str, dict[str, Any]] = {
    "ridge": {"push": -0.5, "sign": 1, "time": 2.5},
    "valley": {"push": -0.5, "sign": -1, "time": 12.0},
    "refraction": {"push": 0.5, "sign": 1, "time": 3.5},
}
#: What the flow must say of a neuron on, or coming to, the kink.
EVENTS = {"ridge": "ridge", "valley": "slide", "refraction": "activate"}


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Follow one neuron from several starts in each landscape, with the velocities on both sides of the kink."""
    found: Numbers = {}
    for k, (name, how) in enumerate(LANDSCAPES.items()):
        data = Dataset([KINK, (1.0, how["push"])], [1, 1])
        starts = [(1.0, v) for v in parameters["heights"]] + [(1.0, 0.0)]
        runs = []
        for w in starts:
            problem = Problem(data, Network.balanced([w], [how["sign"]], 0.0, log_scale=np.log(parameters["scale"])))
            path = flow(problem, {"time": how["time"]}, progress=False)
            runs.append(
                {
                    "start": w,
                    "W": np.array([v for _, v in corners(problem, path)]) / parameters["scale"],
                    "events": [[int(e["sample"]), str(e["kind"])] for e in path.events],
                }
            )
        branches = []
        for push in (parameters["push"], -parameters["push"]) if name == "ridge" else ():
            start = Network.balanced([(1.0, push)], [how["sign"]], 0.0, log_scale=np.log(parameters["scale"]))
            path = flow(Problem(data, start), {"time": how["time"]}, progress=False)
            branches.append(path.W[:, 0] / parameters["scale"])
        found[name] = {**how, "sides": sides(data, how["sign"]), "runs": runs, "branches": branches}
        tell((k + 1) / len(LANDSCAPES))
    return found


def corners(problem: Problem, path: Trajectory) -> list[tuple[float, Array]]:
    """Return times and weights of the records, and of the events between them, in order."""
    at = [(t, W[0]) for t, W in zip(path.log_time.tolist(), path.W, strict=True)]
    for t in path.events["log_time"][np.isfinite(path.events["log_time"])].tolist():
        at.append((t, flow(problem, {"log_time": t}, progress=False).W[-1, 0]))
    return sorted(at, key=lambda one: one[0])


def sides(data: Dataset, sign: int) -> list[float]:
    """Return the velocity across the kink just below and just above it, at w = (1, 0) and a small network."""
    return [float(sign * 0.5 * np.mean([h, 1.0] * data.y * (data.X @ np.array(KINK)))) for h in (0.0, 1.0)]


def field(points: Array, push: float, sign: int) -> Array:
    """Return the velocity of a small balanced neuron at points of the plane of its weights, to be drawn."""
    X = np.array([KINK, (1.0, push)])
    active = points @ X.T > 0
    out: Array = sign * np.linalg.norm(points, axis=1)[:, None] * (active @ X) / 4.0
    return out


def check_kind(below: float, above: float) -> str:
    """Name the landscape that velocities across a kink make."""
    if below < 0 < above:
        return "ridge"
    return "valley" if below > 0 > above else "refraction"


def check(numbers: Numbers) -> list[Expectation]:
    """Judge whether the integrator meets every landscape as it must."""
    found = []
    for name, one in numbers.items():
        below, above = (float(v) for v in one["sides"])
        found.append(
            is_so(
                f"{name}-sides",
                f"Velocities across the kink, just below and just above it, make a {name}.",
                check_kind(below, above) == name,
                name,
                f"{check_kind(below, above)} ({below:+.3g}, {above:+.3g})",
            )
        )
        told = [{kind for sample, kind in path["events"] if sample == 0} for path in one["runs"]]
        on_it, beside = told[-1], told[:-1]
        if name == "ridge":
            ends = [float(path["W"][-1][1]) for path in one["runs"][:-1]]
            starts = [float(path["start"][1]) for path in one["runs"][:-1]]
            good = all(u * v > 0 and abs(v) > abs(u) for u, v in zip(starts, ends, strict=True))
            found += [
                is_so(
                    "ridge-told",
                    "A neuron on the ridge may leave to either side: the flow says that its path is not unique.",
                    EVENTS[name] in on_it and not any(EVENTS[name] in events for events in beside),
                    "event 'ridge' on it, none beside it",
                    f"on it {sorted(on_it)}, beside it {sorted(set().union(*beside))}",
                ),
                is_so("ridge-apart", "Neurons beside the ridge move away from it, each to its side.", good),
                is_so(
                    "ridge-branches",
                    "Pushed off the ridge by next to nothing, to either side, a neuron goes far: both branches are "
                    "paths (last w_2 of the two).",
                    float(one["branches"][0][-1][1]) > 0.1 and float(one["branches"][1][-1][1]) < -0.1,
                    "above 0.1 and below -0.1",
                    ", ".join(f"{float(path[-1][1]):.3f}" for path in one["branches"]),
                ),
            ]
            continue
        found.append(check_passage(name, one["runs"], told))
    return found


def check_passage(name: str, runs: list[dict[str, Any]], told: list[set[str]]) -> Expectation:
    """Judge the paths that come to a valley or to a refraction."""
    comes = [float(path["start"][1]) < 0 or (name == "valley" and float(path["start"][1]) > 0) for path in runs]
    hits = sum(EVENTS[name] in events for events, meets in zip(told, comes, strict=True) if meets)
    stays = name != "valley" or all(abs(float(w[1])) <= 1e-9 for w in runs[-1]["W"])
    word = "slide along it" if name == "valley" else "pass through it"
    return is_so(
        f"{name}-told",
        f"Neurons that come to the kink of the {name} {word}, and no path branches.",
        hits == sum(comes) and stays and not any("ridge" in events for events in told),
        f"{sum(comes)} paths with event {EVENTS[name]!r}, no 'ridge'",
        f"{hits} paths, {sum('ridge' in events for events in told)} with 'ridge'",
    )


def plot(numbers: Numbers) -> Figure:
    """Draw the three vector fields with the paths of the flow."""
    figure, axes = sheet(1, 3, "One neuron at the kink of a sample: what the flow can do", size=(4.2, 3.8))
    for panel, (name, one) in zip(axes[0], numbers.items(), strict=True):
        left, right, reach = (0.0, 1.15, 0.55) if name == "valley" else (0.9, 2.0, 0.75)
        grid = np.stack(np.meshgrid(np.linspace(left, right, 12), np.linspace(-reach, reach, 12)), axis=-1).reshape(
            -1, 2
        )
        velocity = field(grid, float(one["push"]), int(one["sign"]))
        panel.quiver(*grid.T, *velocity.T, color="#8a8a8a", width=0.004, pivot="mid")
        panel.axhline(0.0, color="black", lw=1.2, ls="--")
        for path in one["runs"]:
            W = np.asarray(path["W"], dtype=float)
            panel.plot(*W.T, color=COLOURS[1], lw=1.8)
            panel.plot(*W[0], marker="o", color=COLOURS[1], ms=4)
        if name == "ridge":
            for k, path in enumerate(one["branches"]):
                W = np.asarray(path, dtype=float)
                panel.plot(*W.T, color="black", lw=2.0, ls=":", label=None if k else "both branches")
            panel.legend(fontsize=7, loc="lower left")
        panel.set(xlim=(left, right), ylim=(-reach, reach), xlabel="$w_1$", ylabel="$w_2$")
        panel.set_title(f"{name}: flow says '{EVENTS[name]}'", fontsize=9)
    return figure


EXPERIMENT = Experiment(
    id="LL-F3",
    title="Ridge, valley and refraction: only at a ridge the flow is not unique",
    caption="Weights of one small ReLU neuron near the hyperplane of a sample (dashed), the velocity (grey) and paths "
    "of the exact flow (orange, starting at the dots). Ridge: velocities point away on both sides, and a neuron on it "
    "may take either branch (dotted). Valley: towards it on both sides, the neuron slides. Refraction: through it. "
    "Titles: what the integrator reports.",
    run=run,
    check=check,
    plot=plot,
    parameters={"heights": [0.4, 0.2, 0.05, -0.05, -0.2, -0.4], "scale": 1e-3, "push": 1e-12},
    quick={"heights": [0.2, -0.2]},
    implied=("*",),
    illustration=True,
    unstated=(
        Choice(
            "landscapes",
            "one ReLU neuron with output of sign +, -, + and samples (0, 1), (1, -1/2); (1, -1/2); (1, 1/2), labels +1",
            "the paper sketches surfaces; these are the smallest data that make them",
        ),
    ),
    minutes=0.1,
)
