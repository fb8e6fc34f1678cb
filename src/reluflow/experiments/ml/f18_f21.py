"""ML-F18 to F21: where Caratheodory solutions exist, do not exist, and are not unique."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dynamics import align, descend, flow
from ...problem import Dataset, Network, Problem
from ...report.panels import COLOURS, curve, sheet
from ..core.experiment import Expectation, Experiment, Numbers, Tell, at_most, between, equals, is_so
from .patterns import DRAWN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Points, labels, start: the second point is met from both sides, or crossed.
_KINKS: dict[str, Any] = {
    "F18": {"X": [[1.0, 1.0], [2.0, 0.0]], "y": [1, -1], "w": [-0.2, 1.0]},
    "F19": {"X": [[1.0, 0.0], [-1.0, 1.0]], "y": [1, -1], "w": [0.2, 1.0]},
}


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Descend with smaller and smaller steps onto a hyperplane, and follow the flow; start neurons on one."""
    found: Numbers = {name: _kink(how, parameters) for name, how in _KINKS.items()}
    tell(0.5)
    found["F20"] = _stuck(parameters)
    found["F21"] = _free(parameters)
    return found


def _kink(how: Mapping[str, Any], parameters: Mapping[str, Any]) -> Numbers:
    """Follow a tiny neuron to the hyperplane of the second point and beyond."""
    data = Dataset(how["X"], how["y"])
    scale, end = float(parameters["scale"]), float(parameters["time"])
    norm = float(np.linalg.norm(how["w"]))
    start = Network.balanced([how["w"]], [1], log_scale=np.log(scale * norm))
    problem = Problem(data, start, "exponential", "sum")
    exact = flow(problem, {"time": end}, rtol=1e-9, progress=False)
    runs = []
    for step in parameters["steps"]:
        count = round(end / step)
        down = descend(problem, step=step, steps=count, record=range(count + 1), progress=False)
        across = down.directions[:, 0] @ data.X[1]
        runs.append(
            {
                "step": step,
                "W": down.W[:, 0] / scale if step == parameters["steps"][0] else [],
                "crossings": int((np.sign(across[1:]) != np.sign(across[:-1])).sum()),
                "last": float(np.abs(across[count // 2 :]).max()),
            }
        )
    events = [[float(np.exp(e["log_time"])), int(e["sample"]), str(e["kind"])] for e in exact.events]
    early = align(problem)
    times = np.linspace(0.0, end, 200)
    return {
        **how,
        "runs": runs,
        "events": events,
        "flow": exact.W[:, 0] / scale,
        "exact": (early.directions(times)[:, 0] * np.exp(early.log_norms(times))) / scale,
        "met": float(early.events(0)[0]["time"]),
    }


def _stuck(parameters: Mapping[str, Any]) -> Numbers:
    """Start on the hyperplane of a negative point: with another derivative at 0, steps leave it once, by their size."""
    data, net = Dataset([[1.0, 0.0]], [-1]), Network([[0.0, 1.0]], [1.0])
    problem = Problem(data, net, "exponential", "sum")
    exact = flow(problem, {"time": 3.0}, progress=False)
    moved = []
    for b in parameters["subgradients"]:
        for step in parameters["steps"]:
            down = descend(problem, step=step, steps=20, subgradient=b, record=[1, 20], progress=False)
            moved.append({"b": b, "step": step, "first": down.W[1, 0, 0], "last": down.W[-1, 0, 0]})
    return {"flow": exact.W[:, 0], "a": exact.a[:, 0], "moved": moved}


def _free(parameters: Mapping[str, Any]) -> Numbers:
    """Start on the hyperplane of a positive point: it may stay, and it may leave at any time."""
    data = Dataset([[1.0, 0.0]], [1])
    still = flow(Problem(data, Network([[0.0, 1.0]], [1.0]), "exponential", "sum"), {"time": 3.0}, progress=False)
    pushed = Problem(data, Network([[parameters["push"], 1.0]], [1.0]), "exponential", "sum")
    away = flow(pushed, {"time": 3.0}, rtol=1e-11, progress=False)
    once = flow(pushed, {"time": 1.0}, rtol=1e-11, progress=False)
    return {
        "still": still.W[:, 0],
        "kinds": sorted({str(e["kind"]) for e in still.events}),
        "time": away.time,
        "away": away.W[:, 0, 0],
        "after_one": [float(once.W[-1, 0, 0]), float(once.a[-1, 0])],
    }


def check(numbers: Numbers) -> list[Expectation]:
    """Judge what descent and flow do in the four cases."""
    return [*_check_kinks(numbers), *_check_starts(numbers)]


def _check_kinks(numbers: Numbers) -> list[Expectation]:
    zeno, passes = numbers["F18"], numbers["F19"]
    counts = [one["crossings"] for one in zeno["runs"]]
    steps = [float(one["step"]) for one in zeno["runs"]]
    power = -float(np.polyfit(np.log(steps), np.log(np.maximum(counts, 1)), 1)[0])
    kinds = {name: sorted({kind for _, i, kind in numbers[name]["events"] if i == 1}) for name in ("F18", "F19")}
    return [
        between(
            "zeno",
            "Pushed back from both sides, descent crosses the hyperplane again and again, the more often the smaller "
            f"its steps: power of 1/step in the number of crossings ({', '.join(map(str, counts))}).",
            power,
            0.9,
            1.1,
        ),
        is_so(
            "slides",
            "There is no Caratheodory solution beyond; the Filippov solution, which the flow follows, slides on it.",
            kinds["F18"] == ["slide"],
            "event 'slide' only",
            ", ".join(kinds["F18"]) or "none",
        ),
        at_most(
            "limit",
            "Descent tends to that: the largest inner product of its direction with the point, over its step, once it "
            "is there.",
            max(float(one["last"]) / float(one["step"]) for one in zeno["runs"]),
            2.2,
            "the speed of that product is 2 from either side; a tenth more for the length of a step.",
        ),
        equals(
            "crosses",
            "Where both sides push the same way the hyperplane is crossed once, by descent with every step "
            "(largest number of crossings).",
            max(one["crossings"] for one in passes["runs"]),
            1,
            0,
        ),
        is_so(
            "passes",
            "And by the flow.",
            len([kind for _, i, kind in passes["events"] if i == 1]) == 1 and "slide" not in kinds["F19"],
            "one event, no 'slide'",
            ", ".join(kinds["F19"]) or "none",
        ),
    ]


def _check_starts(numbers: Numbers) -> list[Expectation]:
    stuck, free = numbers["F20"], numbers["F21"]
    errors = [abs(float(one["first"]) + float(one["b"]) * float(one["step"])) for one in stuck["moved"]]
    stays = [one["first"] == one["last"] for one in stuck["moved"]]
    rest = [
        float(np.abs(np.asarray(found, dtype=float) - [0.0, 1.0]).max()) for found in (stuck["flow"], free["still"])
    ]
    # EX-E4: s' = g(sinh(2 s)/2) with the exponential loss, one unit of time after leaving.
    leaves = [0.7111282428, 1.2270710565]
    apart = max(abs(float(a) - b) for a, b in zip(free["after_one"], leaves, strict=True))
    return [
        equals(
            "stuck",
            "A neuron on the hyperplane of a negative point stays there along the flow (largest distance).",
            rest[0],
            0,
            0,
        ),
        at_most(
            "jumps",
            "With derivative b at 0 a step moves it by b times the step into the dead cone, where it stays: no "
            "solution, only the constant curve as steps go to 0 (largest difference from b step).",
            max(errors) if all(stays) else float("inf"),
            1e-12,
        ),
        equals(
            "regular",
            "On the hyperplane of a positive point the flow takes the regular solution, which stays (largest "
            "distance).",
            rest[1],
            0,
            0,
        ),
        is_so(
            "told",
            "And says that it is not the only one.",
            "ridge" in free["kinds"],
            "event 'ridge'",
            ", ".join(free["kinds"]) or "none",
        ),
        at_most(
            "leaves",
            "Another one leaves, at any time: pushed off by next to nothing it is where the closed form says one unit "
            "of time later (largest difference of w_1 and a).",
            apart,
            1e-8,
        ),
    ]


def plot(numbers: Numbers) -> Figure:
    """Draw the four cases."""
    figure, axes = sheet(1, 4, "Solutions at a hyperplane: real runs of descent and flow", (3.6, 3.5))
    for panel, (name, words) in zip(axes[0], (("F18", "none"), ("F19", "one")), strict=False):
        one = numbers[name]
        normal = np.asarray(one["X"][1], dtype=float)
        along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
        panel.plot(*np.stack([-6.0 * along, 6.0 * along]).T, color="black", lw=1.0, ls="--", label="hyperplane")
        rough = np.asarray(one["runs"][0]["W"], dtype=float)
        panel.plot(
            *rough.T, color=COLOURS[0], marker=".", ms=4, lw=0.8, label=f"descent, step {one['runs'][0]['step']:g}"
        )
        panel.plot(*np.asarray(one["exact"], dtype=float).T, color=COLOURS[1], lw=2.0, label="flow")
        reach = np.vstack([rough, [one["w"]]])
        low, high = reach.min(axis=0), reach.max(axis=0)
        room = 0.15 * float((high - low).max()) + 0.02
        panel.set(xlim=(low[0] - room, high[0] + room), ylim=(low[1] - room, high[1] + room))
        panel.set(xlabel="$w_1$", ylabel="$w_2$", title=f"{name}: {words} beyond")
        panel.legend(fontsize=7)
    _plot_starts(axes[0, 2], axes[0, 3], numbers)
    return figure


def _plot_starts(stuck: Any, free: Any, numbers: Numbers) -> None:
    moved = numbers["F20"]["moved"]
    for kind, b in enumerate(sorted({float(one["b"]) for one in moved})):
        own = [(float(one["step"]), -float(one["last"])) for one in moved if float(one["b"]) == b]
        steps, depth = np.array(own).T
        curve(stuck, steps, depth, kind, f"$\\phi'(0)$ = {b:g}", marks=True)
    stuck.set(
        xscale="log", yscale="symlog", xlabel="step", ylabel="how far into the dead cone", title="F20: none but for 0"
    )
    stuck.set_yscale("symlog", linthresh=1e-3)
    stuck.set_xticks([0.003, 0.01, 0.03], ["0.003", "0.01", "0.03"])
    stuck.minorticks_off()
    stuck.set_ylim(bottom=-2e-4)
    stuck.legend(fontsize=7)
    found = numbers["F21"]
    time, away = (np.asarray(found[key], dtype=float) for key in ("time", "away"))
    free.axhline(0.0, color=COLOURS[1], lw=2.2, label="stays: what the flow takes")
    for k, wait in enumerate((0.0, 0.5, 1.0, 1.5)):
        kept = time + wait <= 3.0
        free.plot(time[kept] + wait, away[kept], color=COLOURS[0], lw=1.2, label=None if k else "leaves, at any time")
    free.set(xlabel="time", ylabel="$w_1$", title="F21: many")
    free.legend(fontsize=7)


EXPERIMENT = Experiment(
    id="ML-F18-F21",
    title="Where solutions exist, do not exist, and are not unique",
    caption="F18: one small neuron between a positive and a negative point that are not orthogonally separable. Both "
    "sides of the hyperplane push towards it: descent zigzags, no Caratheodory solution goes on, the flow slides. F19: "
    "under the assumption of the paper it is crossed once. F20: a neuron that starts on the hyperplane of a negative "
    "point; with a derivative of the ReLU at 0 other than 0 a step leaves it once, by its own size. F21: the same with "
    "a positive point: it may stay for ever, or leave at any time.",
    run=run,
    check=check,
    plot=plot,
    parameters={
        "scale": 1e-5,
        "time": 1.5,
        "steps": [0.04, 0.02, 0.01, 0.005, 0.0025],
        "subgradients": [0.0, 0.5, 1.0],
        "push": 1e-13,
    },
    implied=("*",),
    illustration=True,
    unstated=(DRAWN,),
    minutes=0.05,
)
