"""The run of LL-TAB1 and LL-F4: nets and support vector machines on data of a linear teacher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data import make
from ...dynamics import descend, flow
from ...margins import max_margin
from ...problem import Dataset, Network, Problem, initialize
from ...problem.types import Array
from ..core.experiment import Numbers, Tell

DIMENSION = 50
BIAS = 0.1
TEST_SEED = 10_000  # the points of a test set are drawn with this added to the seed of the training set

PARAMETERS = {
    "sizes": [10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
    "draws": 20,
    "width": 100,
    "slope": 0.5,
    "tau": 0.4,
    "scale": 1e-3,
    "step": 0.01,
    "margin": 100.0,
    "test": 10_000,
    "flow_sizes": [10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
}
QUICK = {"sizes": [10, 40, 100], "draws": 2, "width": 40, "test": 4000, "flow_sizes": [10]}


def run(parameters: Mapping[str, Any], tell: Tell) -> Numbers:
    """Train on several draws of every size, and compare net, flow and support vector machine on test points."""
    sizes, draws = parameters["sizes"], parameters["draws"]
    found = []
    for k, n in enumerate(sizes):
        runs = []
        for seed in range(draws):
            train, test = (
                teacher_data(n, seed, parameters),
                teacher_data(parameters["test"], TEST_SEED + seed, parameters),
            )
            start = initialize(train.d, parameters["width"], "he", parameters["scale"], seed, slope=parameters["slope"])
            problem = Problem(train, start)
            svm = max_margin(train)
            net = trained(problem, parameters)
            line, values = test.X @ svm.w, net.outputs(test.X)
            one: dict[str, Any] = {
                "svm": error(line, test),
                "net": error(values, test),
                "agreement": float(np.mean(np.sign(line) == np.sign(values))),
                "accuracy": float(np.mean(np.sign(net.outputs(train.X)) == train.y)),
                "margin": net.normalized_margin(train),
            }
            if seed == 0:
                if n in parameters["flow_sizes"]:
                    one["flow"] = followed(problem, parameters["margin"], values, test)
                one["slice"] = sliced(train, net, svm.w, parameters)
            runs.append(one)
            tell((k + (seed + 1) / draws) / len(sizes))
        found.append({"n": n, "runs": runs})
    return {"sizes": found}


def teacher_data(n: int, seed: int, parameters: Mapping[str, Any]) -> Dataset:
    """Draw points; the teacher is the same for all."""
    return make("linear_teacher", n=n, d=DIMENSION, tau=parameters["tau"], bias=BIAS, seed=seed)


def teacher() -> Array:
    """Recover the unit teacher from the difference that a shift makes."""
    plain, shifted = (make("linear_teacher", n=1, d=DIMENSION, tau=t) for t in (0.0, 1.0))
    return np.asarray((shifted.X - plain.X)[0] * plain.y[0])


def trained(problem: Problem, parameters: Mapping[str, Any]) -> Network:
    """Run gradient descent with a fixed step until the data are surely interpolated, then with growing steps."""
    step, n = parameters["step"], problem.data.n
    first = descend(problem, step=step, steps=1_000_000, until_loss=float(np.log(2.0)) / n, record=2, progress=False)
    end = float(np.exp(-parameters["margin"]))
    rest = problem.replace(net=first.final)
    how = {"step": step, "steps": 1_000_000, "schedule": "loss-log-scaled", "until_loss": end}
    return descend(rest, **how, record=2, progress=False).final


def followed(problem: Problem, margin: float, values: Array, test: Dataset) -> dict[str, float]:
    """Follow the exact flow from the same start to the same margin, and compare it with the descent."""
    net = flow(problem, {"margin": margin}, rtol=1e-6, progress=False).final
    exact = net.outputs(test.X)
    return {
        "error": error(exact, test),
        "same": float(np.mean(np.sign(exact) == np.sign(values))),
        "margin": net.normalized_margin(problem.data),
    }


def error(values: Array, data: Dataset) -> float:
    """Return the share of wrong signs, in per cent."""
    return float(100.0 * np.mean(np.sign(values) != data.y))


def sliced(train: Dataset, net: Network, w: Array, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Restrict net and line to a plane through 0 that holds the teacher, with the data projected to it."""
    axes = np.zeros((2, DIMENSION + 1))
    axes[0, :DIMENSION] = teacher()
    other = np.random.default_rng(0).normal(size=DIMENSION)
    other -= (other @ axes[0, :DIMENSION]) * axes[0, :DIMENSION]
    axes[1, :DIMENSION] = other / np.linalg.norm(other)
    lift = np.column_stack([axes.T, np.append(np.zeros(DIMENSION), BIAS)])  # (s, t, 1) -> a point of the plane
    unit = net.normalized()
    side = np.linspace(-3.0, 3.0, 121)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    points = np.column_stack([grid, np.ones(len(grid))]) @ lift.T
    line = w @ lift
    return {
        "W": unit.W @ lift,
        "a": unit.a,
        "line": line / np.linalg.norm(line[:2]),
        "X": train.X @ axes.T,
        "y": train.y,
        "agreement": float(np.mean(np.sign(unit.outputs(points)) == np.sign(points @ w))),
        "slope": parameters["slope"],
    }
