"""What the moving picture of a page shows: a plane, the points and neurons in it, and what theory draws there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...problem import NotSeparable, ProblemError, Undecided
from ...problem.types import Array, Index
from ...problem.words import moment, size
from ...sectors import cones_of
from ...sectors.closed import class_sums
from ..charts import Clock, clock, shown_neurons, told_network
from .stages import place_of, stages

if TYPE_CHECKING:
    from ...dynamics import Trajectory
    from ...problem import Dataset
    from ..explanation import Explanation

_FRAMES = 160
_MOST_NEURONS = 150
_MOST_POINTS = 400
_MOST_EVENTS = 300
_MOST_RAYS = 60
_NOTHING = -1e9  # stands for the logarithm of zero
_ACTIVE = 1e-9  # cosine from which on a point counts as seen by a neuron
_TELLING = ("slide", "die", "origin", "flip", "ridge", "touch")  # of the events, those that are kept first


def basis(found: Explanation) -> tuple[Array, str]:
    """Choose a plane to look at: two orthonormal rows, and what they are in words."""
    data = found.problem.data
    if data.d <= 2:
        return np.eye(2, data.d), "the plane of the data" if data.d == 2 else "the line of the data"
    if bias_of(data) is not None:
        return np.eye(2, data.d), "the plane of the data (the third column is constant)"
    wanted, words = _candidates(found)
    X = data.X
    rows: list[Array] = []
    for vector in [*wanted, *np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:3], *np.eye(data.d)[:3]]:
        rest = vector - sum((row @ vector) * row for row in rows)
        length = float(np.linalg.norm(rest))
        if length > 1e-3 * float(np.linalg.norm(vector)) > 0:
            rows.append(np.asarray(rest / length))
        if len(rows) == 2:
            break
    return np.array(rows), words


def bias_of(data: Dataset) -> float | None:
    """Return the constant of the third of three columns, if it is one."""
    if data.d != 3 or data.n < 2 or np.ptp(data.X[:, 2]) != 0 or data.X[0, 2] == 0:
        return None
    return float(data.X[0, 2])


def _candidates(found: Explanation) -> tuple[list[Array], str]:
    told = told_network(found.predictions)
    if told is not None and told[1].W.any():
        return _leading(told[1]), f"the plane of the directions predicted by {told[0]}"
    if found.limit is not None and found.limit.network.W.any():
        return _leading(found.limit.network), "the plane of the two main directions of the limit"
    return [], "the plane in which the data vary most"


def _leading(net: Any) -> list[Array]:
    """Pick the largest neuron, and the largest one that is not on its line."""
    order = np.argsort(-net.log_norms)
    first = net.directions[order[0]]
    second = [net.directions[j] for j in order[1:] if abs(net.directions[j] @ first) < 1 - 1e-6]
    return [first, *second[:1]]


def movie(found: Explanation) -> dict[str, Any] | None:
    """Collect what the page draws; None where there is no run, or no neuron that is not zero."""
    run = found.trajectory
    if run is None:
        return None
    shown = shown_neurons(run, _MOST_NEURONS)
    if not shown.size:
        return None
    at, course, (plane, words) = clock(run), stages(run), basis(found)
    frames = _frames(run, at, course.places)
    low, high = at.range
    data = found.problem.data
    some = np.linspace(0, data.n - 1, min(data.n, _MOST_POINTS)).astype(int)
    bias = bias_of(data)
    turned = run.directions[np.ix_(frames, shown)]
    return {
        "words": words,
        "flat": data.d == 2 or bias is not None,
        "bias": bias,
        "slope": run.problem.net.slope,
        "points": np.round(_both(data.X[some] @ plane.T), 6).tolist(),
        "labels": data.y[some].astype(int).tolist(),
        "indices": some.tolist(),
        "moments": np.round(course.places[frames], 5).tolist(),
        "places": np.round((at.places[frames] - low) / (high - low), 5).tolist(),
        "stages": [[name, round(start, 5), round(end, 5)] for name, start, end in course.spans],
        "neurons": _thousandths(_both(turned @ plane.T)),
        "offsets": None if bias is None else _thousandths(bias * turned[..., 2]),
        "sizes": _logarithms(run.log_norms[np.ix_(frames, shown)]),
        "outs": _logarithms(run.log_outs[np.ix_(frames, shown)]),
        "signs": run.signs[np.ix_(frames, shown)].astype(int).tolist(),
        "dead": _dead_from(found, turned).tolist(),
        "times": [moment(float(t)) for t in run.log_time[frames]],
        "losses": [size(float(v)) for v in run.log_loss[frames]],
        "events": _events(run, place_of(run, course, run.events["log_time"]), shown),
        "rays": _rays(found, plane),
        "cones": _cones(data),
        "drawn": [int(shown.size), run.p],
    }


def _both(flat: Array) -> Array:
    """Give points of a line a second coordinate."""
    return np.pad(flat, [(0, 0)] * (flat.ndim - 1) + [(0, 2 - flat.shape[-1])])


def _thousandths(values: Array) -> list[Any]:
    return np.round(1000 * values).astype(np.int64).tolist()  # type: ignore[no-any-return]


def _logarithms(values: Array) -> list[Any]:
    return np.round(np.where(np.isfinite(values), values, _NOTHING), 3).tolist()  # type: ignore[no-any-return]


def _frames(run: Trajectory, at: Clock, places: Array) -> Index:
    """Choose records evenly spread over the axis of time, and over the time of the picture."""
    found = [
        np.searchsorted(kind, np.linspace(kind[0], kind[-1], many))
        for kind, many in ((at.places, _FRAMES // 2), (places, _FRAMES))
    ]
    return np.asarray(np.union1d(np.clip(np.concatenate(found), 0, len(run) - 1), [0, len(run) - 1]), dtype=np.intp)


def _dead_from(found: Explanation, turned: Array) -> Index:
    """Return for each neuron the frame from which on no point is seen by it any more; -1 if there is none."""
    if found.problem.net.slope != 0:
        return np.full(turned.shape[1], -1)
    data = found.problem.data
    units = data.X[data.norms > 0] / data.norms[data.norms > 0, None]
    active = np.array([(frame @ units.T).max(axis=1) > _ACTIVE for frame in turned])
    last = np.where(active.any(axis=0), active.shape[0] - np.argmax(active[::-1], axis=0), 0)
    return np.where(last < active.shape[0], last, -1)


def _events(run: Trajectory, places: Array, shown: Index) -> list[Any]:
    """List what happens on the way: place, neuron among those drawn (or -1), sample, kind; slides and deaths first."""
    number = {int(j): k for k, j in enumerate(shown)}
    telling = np.isin(run.events["kind"], _TELLING)
    kept = np.sort(np.argsort(~telling, kind="stable")[:_MOST_EVENTS])
    return [
        [round(place, 5), number.get(neuron, -1), sample, kind]
        for place, (_, neuron, sample, kind) in zip(places[kept].tolist(), run.events[kept].tolist(), strict=True)
    ]


# -- what theory draws -----------------------------------------------------------------------------------


def _rays(found: Explanation, plane: Array) -> list[Any]:
    """Directions by kind: of the prediction, of the limit, the class sums, the linear max-margin classifier."""
    told = told_network(found.predictions)
    nets = [] if told is None else [("predicted", told[1])]
    if found.limit is not None:
        nets.append(("limit", found.limit.network))
    rays: list[Any] = []
    for kind, net in nets:
        for direction, out in list(zip(net.directions, net.a, strict=True))[:_MOST_RAYS]:
            if direction.any() and out:
                rays.append([kind, int(np.sign(out)), *np.round(_both(direction @ plane.T), 4).tolist()])
    plus, minus = class_sums(found.problem.data)
    for kind, sign, vector in (("sum", 1, plus), ("sum", -1, minus), ("linear", 0, linear(found))):
        length = 0.0 if vector is None else float(np.linalg.norm(vector))
        if vector is not None and length > 0:
            rays.append([kind, sign, *np.round(_both(vector @ plane.T) / length, 4).tolist()])
    return rays


def linear(found: Explanation) -> Array | None:
    """Return the direction of the linear max-margin classifier, if there is one."""
    from ...margins import max_margin

    try:
        return max_margin(found.problem.data).direction
    except (NotSeparable, Undecided, ProblemError):
        return None


def _cones(data: Dataset) -> list[Any]:
    """List the arcs in S+, S- and the dead cone, for data in the plane: kind, first and last angle in radians."""
    X = data.X[data.norms > 0]
    if data.d != 2 or not len(X) or len(X) > _MOST_POINTS:
        return []
    normals = np.arctan2(X[:, 1], X[:, 0])
    walls = np.unique(np.round(np.concatenate([normals + np.pi / 2, normals - np.pi / 2]) % (2 * np.pi), 12))
    ends = np.append(walls[1:], walls[0] + 2 * np.pi)
    middles = (walls + ends) / 2
    among = cones_of(data, np.stack([np.cos(middles), np.sin(middles)], axis=1))
    kinds = (("plus", among.plus), ("minus", among.minus), ("dead", among.dead))
    return [
        [kind, round(float(walls[k]), 5), round(float(ends[k]), 5)]
        for kind, where in kinds
        for k in np.flatnonzero(where)
    ]
