"""The two-layer net of Phuong and Lampert: trained by SGD, and by the exact flow from the same start to the limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...dynamics import Limit, Trajectory, descend, flow, limit
from ...problem import Dataset, Network, Problem, Undecided, initialize
from ..core.experiment import Numbers, Tell
from .common import orthogonal_data, portrait

PARAMETERS: dict[str, Any] = {
    "n": 500,
    "d": 20,
    "width": 100,
    "scale": 0.05,
    "step": 0.1,
    "batch": 50,
    "epochs": 500,
    "seeds": [0, 1, 2, 3, 4],
    "log_times": [1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8],
    "limit_from": 1e6,  # log t; from 10^8 on the evidence (|W|^2 a hundredfold) lies beyond what doubles can integrate
}
QUICK = {
    "n": 60,
    "d": 6,
    "width": 16,
    "batch": 10,
    "epochs": 300,
    "seeds": [0],
    "log_times": [1e1, 1e2, 1e3, 1e4, 1e5],
    "limit_from": 1e4,
}


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train from every start, follow the flow from it, and find the limit of the flow."""
    seeds = parameters["seeds"]
    found = []
    for k, seed in enumerate(seeds):
        tell(k / len(seeds))
        found.append(_one(parameters, seed))
    tell(1.0)
    return {"runs": found, "log_times": parameters["log_times"], "d": parameters["d"]}


def _one(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    data, facts = orthogonal_data(parameters["n"], parameters["d"], seed)
    net = initialize(data.d, width=parameters["width"], scheme="uniform", scale=parameters["scale"], seed=seed)
    problem = Problem(data, net, loss="logistic", reduction="mean")
    chosen = {key: parameters[key] for key in ("step", "batch", "epochs")}
    sgd = descend(problem, method="sgd", **chosen, seed=seed, record=60, progress=False)
    course = flow(problem, {"log_time": max(parameters["log_times"])}, progress=False)
    later = course.at(log_time=parameters["limit_from"])
    try:
        ending = _ending(limit(Problem(data, later, loss="logistic", reduction="mean"), progress=False), data)
    except Undecided as undecided:
        ending = {"kind": "undecided", "why": str(undecided)}
    seen = {"sgd": _state(sgd.final, data), "flow": _state(course.at(log_time=float(sgd.log_time[-1])), data)}
    within = course.log_time <= sgd.log_time[-1]
    return {
        "seed": seed,
        "data": facts,
        **seen,
        "curves": {
            "sgd": {"time": sgd.time, "log_loss": sgd.log_loss},
            "flow": _thinned(course.time[within], course.log_loss[within]),
        },
        "late": [_late(course, log_time, data) for log_time in parameters["log_times"]],
        "limit": ending,
        "turned": int((np.sign(sgd.final.a) != np.sign(net.a)).sum()),
    }


def _state(net: Network, data: Dataset) -> dict[str, Any]:
    """Look at a network whose weights doubles can hold."""
    W, a = net.weights()
    q = net.margins(data)
    signs = np.sign(a)
    return {
        **portrait(W, data, signs),
        "signs": signs,
        "norms": np.linalg.norm(W, axis=1),
        "loss": float(np.logaddexp(0.0, -q).mean()),
        "accuracy": float((q > 0).mean()),
    }


def _thinned(time: Any, log_loss: Any, most: int = 120) -> dict[str, Any]:
    kept = np.unique(np.linspace(0, len(time) - 1, min(most, len(time))).round().astype(int))
    return {"time": time[kept], "log_loss": log_loss[kept]}


def _late(course: Trajectory, log_time: float, data: Dataset) -> dict[str, Any]:
    """Look at the flow at a late time."""
    net = course.at(log_time=min(log_time, float(course.log_time[-1])))  # the last one is off by rounding
    W, a = net.weights()
    seen = portrait(W, data, np.sign(a))
    energy = (W**2).sum(axis=1)
    own = np.outer(np.sign(a), data.y) > 0
    return {
        "log_time": log_time,
        "signs": np.sign(a).astype(int),
        "trapped": int(((W @ data.X.T > 0) == own).all(axis=1).sum()),  # PL-L3: active on exactly the own class
        **{key: seen[key] for key in ("singular_values", "correlations", "median", "share", "dead")},
        "plus": float(energy[a > 0].sum()),
        "minus": float(energy[a < 0].sum()),
        "margin": net.normalized_margin(data),
    }


def _ending(end: Limit, data: Dataset) -> dict[str, Any]:
    """Return the limit of the flow: directions of all neurons, and what the two groups carry."""
    W = end.network.weights()[0]
    seen = portrait(end.directions, data, _group_signs(end))
    return {
        "kind": end.kind,
        "why": end.reason,
        "correlations": seen["correlations"],
        "margin": end.margin,
        "groups": [{"sign": g.sign, "neurons": g.neurons.size, "share": g.share, "rate": g.rate} for g in end.groups],
        "singular_values": np.linalg.svd(W, compute_uv=False),
        "evidence": [{"name": e.name, "value": e.value, "text": e.text} for e in end.evidence],
        "log_time": float(end.trajectory.log_time[-1]),
    }


def _group_signs(end: Limit) -> Any:
    signs = np.zeros(end.problem.net.p)
    for group in end.groups:
        signs[group.neurons] = group.sign
    return signs
