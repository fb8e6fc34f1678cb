"""What the studio shows, as plain values: points, labels and how the network is drawn; and the problem they make.

The same document goes over the wire, stands in links, and is what an export begins with.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..problem import Dataset, Network, Problem, ProblemError, initialize
from ..report.page import bias_of

#: Most points, neurons and dimensions, and most of points times neurons.
MOST_POINTS, MOST_NEURONS, MOST_DIMENSIONS, MOST_PAIRS = 600, 400, 64, 60_000
#: Largest coordinate, and the range of the logarithm of the scale: beyond it nothing new is to be seen.
LARGEST, LOG_SCALES = 1e6, (-1e4, 5.0)
SCHEMES = ("balanced", "gaussian", "balanced-gaussian", "two-sign", "he", "uniform")

#: A start: what is not said is so.
DEFAULTS: dict[str, Any] = {
    "name": "",
    "points": [],
    "labels": [],
    "bias": None,
    "width": 24,
    "slope": 0.0,
    "scheme": "balanced",
    "log_scale": float(np.log(1e-3)),
    "seed": 0,
    "loss": "logistic",
    "reduction": "mean",
    "train": "both",
    "network": None,
}


def problem_of(state: dict[str, Any]) -> Problem:
    """Make the problem that a state describes.

    Parameters
    ----------
    state : dict
        ``points`` (rows of numbers), ``labels``, and how the network is drawn, as for `reluflow.initialize`; ``bias``
        appends a constant column; ``network`` with ``W`` and ``a`` takes the place of a draw.

    Examples
    --------
    >>> problem_of({"points": [[2, 1], [-3, -1]], "labels": [1, -1], "width": 4, "log_scale": -7.0})
    Problem: mean logistic loss, both layers trained
      Dataset: n=2 (1 positive, 1 negative), d=2
      Network: p=4 (4 positive, 0 negative), d=2, slope=0, log_scale=-7
    """
    unknown = [key for key in state if key not in DEFAULTS]
    if unknown:
        raise ProblemError(f"the state has no field {unknown[0]!r}; it has {', '.join(DEFAULTS)}.")
    full = {**DEFAULTS, **state}
    data = data_of(full)
    check_sizes(data.n, data.d, full["width"] if full["network"] is None else len(full["network"]["a"]))
    log_scale = full["log_scale"]
    if not LOG_SCALES[0] <= log_scale <= LOG_SCALES[1]:
        raise ProblemError(
            f"log_scale = {log_scale:g}: the studio takes {LOG_SCALES[0]:g} to {LOG_SCALES[1]:g}; reluflow explain "
            "takes others."
        )
    if full["network"] is None:
        net = initialize(
            data.d, full["width"], full["scheme"], seed=full["seed"], slope=full["slope"], log_scale=log_scale
        )
    else:
        net = Network(full["network"]["W"], full["network"]["a"], full["slope"], log_scale)
    return Problem(data, net, full["loss"], full["reduction"], full["train"])


def data_of(state: dict[str, Any]) -> Dataset:
    """Make the data that a state describes."""
    points, labels = state["points"], state["labels"]
    if len(points) != len(labels):
        raise ProblemError(f"there are {len(points)} points and {len(labels)} labels; give every point one label.")
    if not points:
        raise ProblemError("there is no point yet; draw one.")
    if max(abs(value) for row in points for value in [*row, 0.0]) > LARGEST:
        raise ProblemError(f"a coordinate is larger than {LARGEST:g}; use smaller numbers.")
    return Dataset.prepared_from(points, labels, state.get("name") or None, bias=state.get("bias"))


def check_sizes(n: int, d: int, p: int) -> None:
    """Refuse what would take the studio too long."""
    for what, given, most in (
        ("points", n, MOST_POINTS),
        ("dimensions", d, MOST_DIMENSIONS),
        ("neurons", p, MOST_NEURONS),
        ("points times neurons", n * p, MOST_PAIRS),
    ):
        if given > most:
            raise ProblemError(f"{given} {what}: the studio takes at most {most}; reluflow explain takes more.")


def state_of(data: Dataset, problem: Problem | None = None, **changes: Any) -> dict[str, Any]:
    """Describe data, and a problem with them, as a state of the studio.

    >>> state_of(Dataset([[2.0, 1.0]], [1]), width=4)["points"]
    [[2.0, 1.0]]
    """
    bias = bias_of(data)
    points = data.X if bias is None else data.X[:, :2]
    state = {**DEFAULTS, "name": data.name or "", "points": points.tolist(), "labels": data.y.astype(int).tolist()}
    state["bias"] = bias
    if problem is not None:
        net = problem.net
        scales = np.unique(net.log_scale)
        if scales.size > 1 or net.log_scale_out is not None:
            log_scale, W, a = (
                0.0,
                np.exp(net.log_norms)[:, None] * net.directions,
                np.sign(net.a) * np.exp(net.log_outs),
            )
        else:
            log_scale, W, a = float(scales[0]), net.W, net.a
        state |= {
            "width": net.p,
            "slope": net.slope,
            "log_scale": log_scale,
            "loss": problem.loss.name,
            "reduction": problem.reduction,
            "train": problem.train,
            "network": {"W": W.tolist(), "a": a.tolist()},
        }
    state |= changes
    check_sizes(data.n, data.d, state["width"])
    return state


def snippet(state: dict[str, Any]) -> str:
    """Write the Python that makes the same run.

    >>> print(snippet({"points": [[2, 1], [-3, -1]], "labels": [1, -1], "width": 4}))
    import reluflow as rf
    <BLANKLINE>
    X = [[2, 1], [-3, -1]]
    y = [1, -1]
    data = rf.Dataset(X, y)
    net = rf.initialize(data.d, width=4, scheme='balanced', log_scale=-6.907755278982137, seed=0, slope=0.0)
    problem = rf.Problem(data, net, loss='logistic', reduction='mean', train='both')
    found = rf.explain(problem)
    print(found.text())
    """
    full = {**DEFAULTS, **state}
    named = f", name={full['name']!r}" if full["name"] else ""
    lines = ["import reluflow as rf", "", f"X = {json.dumps(full['points'])}", f"y = {json.dumps(full['labels'])}"]
    lines.append(f"data = rf.Dataset(X, y{named})")
    if full["bias"] is not None:
        lines[-1] += f".with_bias({full['bias']!r})"
    if full["network"] is None:
        words = ", ".join(f"{key}={full[key]!r}" for key in ("width", "scheme", "log_scale", "seed", "slope"))
        lines.append(f"net = rf.initialize(data.d, {words})")
    else:
        W, a = (json.dumps(full["network"][key]) for key in ("W", "a"))
        lines.append(f"net = rf.Network({W}, {a}, slope={full['slope']!r}, log_scale={full['log_scale']!r})")
    rest = ", ".join(f"{key}={full[key]!r}" for key in ("loss", "reduction", "train"))
    lines += [f"problem = rf.Problem(data, net, {rest})", "found = rf.explain(problem)", "print(found.text())"]
    return "\n".join(lines)
