"""Descent and flow on a few points of the plane, and which neurons are in which cone (ML-F6 to ML-F9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...dynamics import Trajectory, descend, flow
from ...problem import Dataset, Network
from ...report.panels import arrows, curve, samples
from ...sectors import Cones, cones_of_patterns
from ..core.experiment import Numbers, Tell
from .common import CLASSES, TINTS, problem_of, spread

#: Cosine to a sample from which a neuron is active. One that dies stays on the hyperplane of the last sample it loses,
#: where its inner product is rounding.
_OFF = 1e-9

COMMON: dict[str, Any] = {
    "width": 50,
    "scale": 1e-6,
    "step": 2e-3,
    "records": 101,
    "seeds": [0, 1, 2, 3, 4, 5, 6, 7],
    "show": None,
}


def train(data: Dataset, parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train from every seed, with the exact flow from the same start.

    Shown is the first seed, or with ``show`` the first that ends with so many live positive neurons outside S+.
    """
    shots, steps = [int(k) for k in parameters["shots"]], int(parameters["steps"])
    marks = sorted({*spread(steps, int(parameters["records"])), *shots})
    seeds = [int(seed) for seed in parameters["seeds"]]
    found: Numbers = {"X": data.X, "y": data.y, "shots": shots, "runs": []}
    kept = []
    for k, seed in enumerate(seeds):
        problem = problem_of(data, parameters, seed)
        step = float(parameters["step"])
        run = descend(problem, step=step, steps=steps, record=marks, progress=False)
        exact = flow(problem, {"time": step * steps}, progress=False)
        at = [marks.index(shot) for shot in shots]
        nets = {
            "descent": [run.network(i) for i in at],
            "flow": [exact.at(log_time=min(run.log_time[i], exact.log_time[-1])) for i in at],
        }
        entry: Numbers = {
            "seed": seed,
            **_curves(run),
            "counts": {how: [cone_counts(data, net) for net in chosen] for how, chosen in nets.items()},
            "flow": _curves(exact, step),
            "late": late(run, marks.index(shots[1])),
        }
        kept.append({how: [_plain(net) for net in chosen] for how, chosen in nets.items()})
        found["runs"].append(entry)
        tell((k + 1) / len(seeds))
    ends = [entry["counts"]["descent"][-1]["outside"] for entry in found["runs"]]
    shown = ends.index(parameters["show"]) if parameters["show"] in ends else 0
    return {**found, "shown": shown, "nets": kept[shown]}


def late(run: Trajectory, at: int) -> list[Numbers]:
    """Return the neurons that are neither in their own cone nor dead at a record, and why that may be.

    That is: how much larger than its output weight the weights of a neuron are at the start, and at which iteration its
    output weight was first seen with the other sign (None: never).
    """
    net, first = run.network(at), run.network(0)
    cones = _cones(run.problem.data, net)
    found = []
    for j in np.flatnonzero(~(cones.own(net.a > 0) | cones.dead)).tolist():
        turned = np.flatnonzero(run.signs[:, j] != run.signs[0, j])
        found.append(
            {
                "neuron": j,
                "ratio": float(np.exp(first.log_norms[j] - first.log_outs[j])),
                "turned": int(run.settings["iteration"][turned[0]]) if turned.size else None,
            }
        )
    return found


def check_late(numbers: Numbers) -> str:
    """Say which neurons of which seeds are late, and why."""
    said = []
    for run in numbers["runs"]:
        for one in run["late"]:
            why = f"its weights are {float(one['ratio']):.2g} times its output weight at the start, so it hardly turns"
            if one["turned"] is not None:
                why = f"its output weight has changed sign by iteration {one['turned']}"
            said.append(f"in seed {run['seed']} neuron {one['neuron']}: {why}")
    if not said:
        return "No neuron of any seed is late."
    return f"Late neurons, which an unbalanced start allows: {'; '.join(said)}."


def _plain(net: Network) -> Numbers:
    return {"W": net.W * np.exp(net.log_scale)[..., None], "a": np.sign(net.a) * np.exp(net.log_outs)}


def _curves(run: Trajectory, step: float = 0.0) -> Numbers:
    """Loss, mean loss of either class, stable rank at every record, and how many neurons are where (descent only)."""
    data = run.problem.data
    sample_losses = np.exp(-run.margins())
    groups = [index for index in (data.positives, data.negatives) if index.size]
    found: Numbers = {
        "iteration": run.time / step if step else np.array(run.settings["iteration"]),
        "loss": run.loss,
        "class_loss": np.stack([sample_losses[:, index].mean(axis=1) for index in groups], axis=1),
        "rank": run.stable_rank(),
    }
    if not step:
        counts = [cone_counts(data, net) for net in run.networks()]
        found |= {key: [count[key] for count in counts] for key in ("trapped", "outside")}
    return found


def _cones(data: Dataset, net: Network) -> Cones:
    return cones_of_patterns(data.y, net.directions @ (data.X / data.norms[:, None]).T > _OFF)


def cone_counts(data: Dataset, net: Network) -> Numbers:
    """Count neurons in their own cone or dead, and those alive by sign; how far and how large they are."""
    U, units, cones = net.directions, data.X / data.norms[:, None], _cones(data, net)
    live, positive = ~cones.dead, net.a > 0
    own = cones.own(positive)
    outside = live & positive & ~cones.plus
    with np.errstate(under="ignore"):
        square = np.exp(2 * net.log_norms)
    sums = [data.X[index].sum(axis=0) for index in (data.positives, data.negatives)]
    to_sum = np.where(positive, *(U @ total / (np.linalg.norm(total) or np.nan) for total in sums))
    nearest = (U @ units.T).max(axis=1)
    return {
        "trapped": int((own | cones.dead).sum()),
        "dead": int(cones.dead.sum()),
        "live_plus": int((live & positive).sum()),
        "live_minus": int((live & ~positive).sum()),
        "outside": int(outside.sum()),
        "own_share": float(square[own & live].sum() / square.sum()),
        "to_sum": float(to_sum[live].min(initial=np.inf)),
        "outside_to_point": float(nearest[outside].min(initial=np.inf)),
        "settled": float(np.maximum(nearest, to_sum)[live & positive].min(initial=np.inf)),
    }


# -- panels -----------------------------------------------------------------------------------------------


def plot_plane(axes: Any, numbers: Numbers, net: Numbers, title: str) -> None:
    """Draw the cones, the points, and the neurons: an arrow for the direction, a dot where the weights are."""
    X, y = np.asarray(numbers["X"], dtype=np.float64), np.asarray(numbers["y"], dtype=np.float64)
    W, a = np.asarray(net["W"], dtype=np.float64), np.asarray(net["a"], dtype=np.float64)
    dead = cones_of_patterns(y, W @ X.T > 0).dead
    arrows(axes, W, np.where(dead, 0.0, np.sign(a)), colours=CLASSES)
    samples(axes, X, y, 120.0, colours=CLASSES)
    for sign, mark, colour in zip((1, -1), "os", CLASSES, strict=True):
        axes.plot(*W[(np.sign(a) == sign) & ~dead].T, mark, ms=3.5, color=colour, zorder=5)
    reach = max(1.15, 1.1 * float(np.abs(W).max()))
    line = np.linspace(-reach, reach, 300)
    cones = cones_of_patterns(y, np.stack(np.meshgrid(line, line), axis=-1) @ X.T > 0)
    kind = np.select([cones.dead, cones.plus, cones.minus], [0.0, 1.0, 2.0], 3.0)
    axes.contourf(line, line, kind, levels=(-0.5, 0.5, 1.5, 2.5, 3.5), colors=TINTS, zorder=0)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="$w_1$", ylabel="$w_2$")
    axes.set_title(title, fontsize=10)


def plot_losses(axes: Any, run: Numbers) -> None:
    """Draw the loss of descent and of the exact flow."""
    curve(axes, run["iteration"], run["loss"], 0, "loss, descent")
    axes.plot(run["flow"]["iteration"], run["flow"]["loss"], color="black", ls=":", lw=2.2, label="loss, exact flow")
    axes.set(xlabel="iteration (flow: time / step)", ylim=(-0.05, 1.08))
