"""The runs behind SBG-F2, F6 and F7: Gaussian data and pairs of digits, from small and from large weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...data import dataset, make
from ...dynamics import Trajectory, flow
from ...margins import clusters, max_margin
from ...problem import Dataset, Network, NotSeparable
from ...problem.types import Array
from ..core.experiment import Numbers, Tell
from ..core.moments import at_times
from .common import spread_epochs, start, train

_PARTS = ("train", "test")


@dataclass(frozen=True)
class Job:
    """Training on one set of data from several starts; ``case`` and ``name`` say where the result goes."""

    case: str
    name: str
    images: int | None
    scale: float
    step: float
    epochs: tuple[int, ...]
    starts: int


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train every case on every data set it is for, and look at clusters and linear region after epochs."""
    numbers: Numbers = {
        "judged": {case: how["epochs"] for case, how in parameters["cases"].items()},
        "cases": {},
        "ladder": {},
        "flow": {},
        "subset": parameters["subset"],
        "separable": {name: _separable(name, parameters) for name in ["gaussian", *parameters["pairs"]]},
    }
    jobs = [*_case_jobs(parameters), *_subset_jobs(parameters), *_ladder_jobs(parameters)]
    whole, done = sum(map(_cost, jobs)), 0.0
    for job in jobs:
        data, test = _data(job.name, parameters, job.images)
        looks = []
        for seed in range(job.starts):
            problem = start(data, job.scale, seed, parameters)
            looks.append(look(train(problem, job.step, list(job.epochs), seed), test))
            done += _cost(job) / job.starts
            tell(0.9 * done / whole)
        found = {"epochs": job.epochs, "samples": data.n, "scale": job.scale, **_mean(looks)}
        if job.case == "ladder":
            numbers["ladder"].setdefault(job.name, []).append(found)
        else:
            numbers["cases"].setdefault(job.case, {})[job.name] = found
    for name, rtol in parameters["flow"].items():
        numbers["flow"][name] = _flow(name, float(rtol), parameters)
        tell(0.9 + 0.1 * len(numbers["flow"]) / len(parameters["flow"]))
    return numbers


def _cost(job: Job) -> float:
    """Return about how many steps it takes, in thousands of them."""
    return job.starts * job.epochs[-1] * (0.4 if job.name == "gaussian" else 12.0 if job.images is None else 2.0)


def _marks(last: int, records: int, longer: int = 0) -> tuple[int, ...]:
    """Return the epochs to look at: up to the last one, and on from there if it is to be continued."""
    on = np.geomspace(last, longer, records // 2).round().astype(int).tolist() if longer > last else []
    return tuple(sorted({*spread_epochs(last, records), *on}))


def _case_jobs(parameters: Mapping[str, Any]) -> list[Job]:
    found = []
    for case, how in parameters["cases"].items():
        for name in ["gaussian", *(parameters["pairs"] if case == "small" else parameters["main_pairs"])]:
            longer = parameters["long"].get(name, 0) if case == "small" else 0
            epochs = _marks(how["epochs"], parameters["records"], longer)
            found.append(Job(case, name, parameters["images"], how["scale"], how["step"], epochs, parameters["starts"]))
    return found


def _subset_jobs(parameters: Mapping[str, Any]) -> list[Job]:
    """From small weights, on a few images of every pair."""
    how, few = parameters["cases"]["small"], parameters["subset"]
    marks = {
        name: _marks(how["epochs"], parameters["records"], parameters["subset_long"].get(name, 0))
        for name in parameters["pairs"]
    }
    return [
        Job("subset", name, few, how["scale"], how["step"], epochs, parameters["starts"])
        for name, epochs in marks.items()
    ]


def _ladder_jobs(parameters: Mapping[str, Any]) -> list[Job]:
    """One step and number of epochs, initial weights from small to large."""
    how = parameters["ladder"]
    return [
        Job("ladder", name, parameters["images"], scale, how["step"], (0, how["epochs"]), how["starts"])
        for name in ["gaussian", *parameters["main_pairs"]]
        for scale in how["scales"]
    ]


@cache
def _pair(name: str) -> Dataset:
    return dataset(name)


def _data(name: str, parameters: Mapping[str, Any], images: int | None) -> tuple[Dataset, Dataset]:
    """Training and test data; all images of a pair, or so many of them for training."""
    if name == "gaussian":
        drawn = [make("antipodal_gaussians", **parameters["gaussian"], seed=seed) for seed in (0, 1)]
        return drawn[0], drawn[1]
    if parameters["source"] == "mnist":
        some = "" if images is None else f",samples={images}"
        return _pair(f"mnist:digits={name}{some}"), _pair(f"mnist:digits={name},part=test")
    both = dataset(f"digits:pair={name}")
    order = np.random.default_rng(0).permutation(both.n)
    test, rest = order[: parameters["test_images"]], order[parameters["test_images"] :]
    return both.subset(np.sort(rest[:images])), both.subset(np.sort(test))


def _separable(name: str, parameters: Mapping[str, Any]) -> Numbers:
    """Say whether a line separates all the images, and the few: by a separator or by a combination that vanishes."""
    sizes = {"all": parameters["images"], **({} if name == "gaussian" else {"subset": parameters["subset"]})}
    return {which: certified(_data(name, parameters, count)[0]) for which, count in sizes.items()}


def certified(data: Dataset) -> Numbers:
    """Decide separability, with what proves it.

    >>> certified(Dataset([[1.0, 0.0], [-1.0, 1.0]], [1, -1]))["separable"]
    True
    >>> found = certified(Dataset([[1.0, 0.0], [2.0, 0.0]], [1, -1]))
    >>> found["separable"], found["support"], found["residual"] < 1e-15
    (False, 2, True)
    """
    try:
        found = max_margin(data)
    except NotSeparable as error:
        support = int((error.certificate > 0).sum())
        return {"samples": data.n, "separable": False, "support": support, "residual": error.residual}
    return {"samples": data.n, "separable": True, "margin": found.margin, "support": int(found.support.size)}


def _flow(name: str, rtol: float, parameters: Mapping[str, Any]) -> Numbers:
    """Follow the flow from the first small start on the same points, and look at it when SGD has made its epochs."""
    data, test = _data(name, parameters, parameters["images"])
    how = parameters["cases"]["small"]
    epochs, epoch = _marks(how["epochs"], parameters["records"]), how["step"] * data.n
    problem = start(data, how["scale"], 0, parameters)
    exact = flow(problem, {"time": 1.01 * epoch * epochs[-1]}, rtol=rtol, progress=False)
    return {
        "epochs": epochs,
        "samples": data.n,
        "rtol": rtol,
        **look(at_times(exact, [epoch * number for number in epochs]), test),
    }


def look(run: Trajectory, test: Dataset) -> dict[str, Array]:
    """Measure what the figures show, at every record.

    For training and test points: the share outside the linear region of Theorem 5.1 (2 r) and of Eq. 6 (r), the share
    whose sign is not that of the linear classifier, and accuracy.
    """
    nets = list(run.networks())
    found = [clusters(net) for net in nets]
    seen: dict[str, Array] = {
        "ratio": np.array([one.radius / float(np.linalg.norm(one.plus - one.minus)) for one in found]),
        "angle": run.measures.group_angles.max(axis=1),
        "loss": run.loss,
    }
    for part, data in zip(_PARTS, (run.problem.data, test), strict=True):
        rows = [_outside(net, one.plus - one.minus, one.radius, data) for net, one in zip(nets, found, strict=True)]
        for k, key in enumerate((part, f"{part}_r", f"{part}_sign", f"{part}_right")):
            seen[key] = np.array([row[k] for row in rows])
    return seen


def _outside(net: Network, normal: Array, radius: float, data: Dataset) -> tuple[float, float, float, float]:
    along, outputs = data.X @ normal, net.outputs(data.X)
    reach = np.abs(along) / data.norms
    return (
        float((reach < 2 * radius).mean()),
        float((reach < radius).mean()),
        float((np.sign(outputs) != np.sign(along)).mean()),
        float((data.y * outputs > 0).mean()),
    )


def _mean(looks: Sequence[Mapping[str, Array]]) -> Numbers:
    """Mean over the starts, and smallest and largest."""
    stacked = {key: np.stack([one[key] for one in looks]) for key in looks[0]}
    return {key: {"mean": v.mean(axis=0), "low": v.min(axis=0), "high": v.max(axis=0)} for key, v in stacked.items()}
