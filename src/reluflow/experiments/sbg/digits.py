"""The runs behind SBG-F2, F6 and F7: Gaussian data and pairs of digits, from small and from large weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...data import dataset, make
from ...dynamics import Trajectory, flow
from ...margins import clusters
from ...problem import Dataset
from ...problem.types import Array
from ..core.experiment import Numbers, Tell
from .common import accuracy, sampled, spread_epochs, start, train


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train every case on every data set it is for, and look at clusters and linear region after epochs."""
    jobs = list(_jobs(parameters))
    weight = np.cumsum([0.0, *(parameters["cases"][case]["epochs"] * (name != "gaussian") + 1 for case, name in jobs)])
    numbers: Numbers = {"cases": {case: {} for case in parameters["cases"]}, "flow": {}}
    for k, (case, name) in enumerate(jobs):
        data, test = _data(name, parameters)
        how = parameters["cases"][case]
        epochs = spread_epochs(how["epochs"], parameters["records"])
        looks = []
        for seed in range(parameters["seeds"]):
            descent = train(start(data, how["scale"], seed, parameters), how["step"], epochs, seed)
            looks.append(look(descent, test))
            part = (seed + 1) / parameters["seeds"]
            tell(float((weight[k] * (1 - part) + weight[k + 1] * part) / weight[-1]))
        numbers["cases"][case][name] = {"epochs": epochs, **_mean(looks)}
        if name == "gaussian" and case == "small":
            problem, epoch = start(data, how["scale"], 0, parameters), how["step"] * data.n
            exact = flow(problem, {"time": 1.01 * epoch * epochs[-1]}, rtol=1e-4, progress=False)
            numbers["flow"] = {"epochs": epochs, **look(sampled(exact, [epoch * number for number in epochs]), test)}
    return numbers


def _jobs(parameters: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for case in parameters["cases"]:
        for name in ["gaussian", *(parameters["pairs"] if case == "small" else parameters["main_pairs"])]:
            yield case, name


def _data(name: str, parameters: Mapping[str, Any]) -> tuple[Dataset, Array]:
    """Training data and test points."""
    if name == "gaussian":
        return make("antipodal_gaussians", **parameters["gaussian"], seed=0), make(
            "antipodal_gaussians", **parameters["gaussian"], seed=1
        ).X
    if parameters["source"] == "mnist":
        pick = f"mnist:digits={name},samples="
        return dataset(f"{pick}{parameters['images']}"), dataset(f"{pick}{parameters['test_images']},part=test").X
    both = dataset(f"digits:pair={name},samples={parameters['images'] + parameters['test_images']}")
    return Dataset(both.X[: parameters["images"]], both.y[: parameters["images"]]), both.X[parameters["images"] :]


def look(run: Trajectory, test: Array) -> dict[str, Array]:
    """Measure what the figures show, at every record."""
    nets = list(run.networks())
    found = [clusters(net) for net in nets]
    apart = [float(np.linalg.norm(one.plus - one.minus)) for one in found]
    return {
        "train": 1.0 - run.measures.linear_fraction(),
        "test": 1.0 - run.measures.linear_fraction(test),
        "ratio": np.array([one.radius / size for one, size in zip(found, apart, strict=True)]),
        "angle": run.measures.group_angles.max(axis=1),
        "accuracy": np.array([accuracy(net, run.problem.data) for net in nets]),
        "loss": run.loss,
    }


def _mean(looks: list[dict[str, Array]]) -> Numbers:
    """Mean over the starts, and smallest and largest."""
    stacked = {key: np.stack([one[key] for one in looks]) for key in looks[0]}
    return {key: {"mean": v.mean(axis=0), "low": v.min(axis=0), "high": v.max(axis=0)} for key, v in stacked.items()}
