"""The moving picture of a page, and the regions in which networks decide for one class."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ...problem import NotSeparable, ProblemError, Undecided
from ...problem.axis import axis_place
from ...problem.types import Array, Index
from ...problem.words import moment, size, upper
from ..charts import Clock, clock, shown_neurons, told_network
from ..panels import decided
from ..svg import label

if TYPE_CHECKING:
    from ...dynamics import Trajectory
    from ..explanation import Explanation

_FRAMES = 160
_MOST_NEURONS = 150
_MOST_POINTS = 400
_ANGLES = 1440
_SIZE = 300


def basis(found: Explanation) -> tuple[Array, str]:
    """Choose a plane to look at: two orthonormal rows, and what they are in words."""
    d = found.problem.data.d
    if d <= 2:
        return np.eye(2, d), "the plane of the data" if d == 2 else "the line of the data"
    wanted, words = _candidates(found)
    X = found.problem.data.X
    rows: list[Array] = []
    for vector in [*wanted, *np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:3], *np.eye(d)[:3]]:
        rest = vector - sum((row @ vector) * row for row in rows)
        size = float(np.linalg.norm(rest))
        if size > 1e-3 * float(np.linalg.norm(vector)) > 0:
            rows.append(np.asarray(rest / size))
        if len(rows) == 2:
            break
    return np.array(rows), words


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
    """Collect what the script of the page draws."""
    run = found.trajectory
    if run is None:
        return None
    at, (plane, words) = clock(run), basis(found)
    frames = _frames(run, at)
    shown = shown_neurons(run, _MOST_NEURONS)
    if not shown.size:
        return None
    low, high = at.range
    data, top = found.problem.data, float(found.problem.data.norms.max()) or 1.0
    some = np.linspace(0, data.n - 1, min(data.n, _MOST_POINTS)).astype(int)
    flat = data.X[some] @ plane.T / top
    return {
        "words": words,
        "points": np.round(np.pad(flat, ((0, 0), (0, 2 - flat.shape[1]))), 4).tolist(),
        "labels": data.y[some].astype(int).tolist(),
        "places": np.round((at.places[frames] - low) / (high - low), 5).tolist(),
        "neurons": _paths(run, frames, shown, plane).tolist(),
        "signs": run.signs[np.ix_(frames, shown)].astype(int).tolist(),
        "times": [moment(float(t)) for t in run.log_time[frames]],
        "losses": [size(float(v)) for v in run.log_loss[frames]],
        "events": np.round((at.marks - low) / (high - low), 4).tolist(),
        "phases": [
            [*np.round(np.clip((np.array([b.start, b.end]) - low) / (high - low), 0, 1), 5), b.colour, b.phase]
            for b in at.bands
        ],
        "rays": _rays(found, plane),
        "drawn": [int(shown.size), run.p],
    }


def _frames(run: Trajectory, at: Clock) -> Index:
    """Choose records evenly spread over the axis of time."""
    wanted = np.linspace(*at.range, _FRAMES)
    found = np.clip(np.searchsorted(at.places, wanted), 0, len(run) - 1)
    return np.asarray(np.union1d(found, [0, len(run) - 1]), dtype=np.intp)


def _paths(run: Trajectory, frames: Index, shown: Index, plane: Array) -> Index:
    """Place of every neuron in every frame: its direction, and outward as its norm grows; thousandths of the disc."""
    heights = axis_place(run.log_norms[np.ix_(frames, shown)])
    finite = heights[np.isfinite(heights)]
    low, high = float(finite.min()), float(finite.max())
    radius = 0.35 + 0.65 * (np.where(np.isfinite(heights), heights, low) - low) / ((high - low) or 1.0)
    flat = run.directions[np.ix_(frames, shown)] @ plane.T
    return np.asarray(np.round(1000 * flat * radius[..., None]), dtype=np.intp)


def _rays(found: Explanation, plane: Array) -> list[Any]:
    """Directions of the prediction (dashed) and of the limit (solid)."""
    told = told_network(found.predictions)
    nets = [] if told is None else [("predicted", told[1])]
    if found.limit is not None:
        nets.append(("limit", found.limit.network))
    rays = []
    for kind, net in nets:
        for direction, out in list(zip(net.directions, net.a, strict=True))[:60]:
            if direction.any() and out:
                rays.append([kind, int(np.sign(out)), *np.round(direction @ plane.T, 4).tolist()])
    return rays


# -- decisions -------------------------------------------------------------------------------------------


def regions(found: Explanation) -> list[str]:
    """Draw for data in the plane where networks decide for which class; they do so on cones."""
    if found.problem.data.d != 2:
        return []
    panels: list[tuple[str, Callable[[Array], Array]]] = []
    run = found.trajectory
    if run is not None and run.final.W.any():
        panels.append(("the network at the end of the run", lambda X: run.final.scaled_outputs(X)[0]))
    told = next((p for p in found.predictions if p.function is not None), None)
    if told is not None and told.function is not None:
        panels.append((f"the limit predicted by {told.claim}", told.function))
    end = found.limit
    if end is not None and end.network.W.any() and told is None:
        panels.append(("the limit found", lambda X: end.network.scaled_outputs(X)[0]))
    linear = _linear(found)
    if linear is not None:
        panels.append(("the linear max-margin classifier", lambda X: X @ linear))
    if end is not None and end.optimum is not None and end.optimum.lower > end.margin * (1 + 1e-7):
        best = end.optimum.network
        panels.append(("the network of largest margin", lambda X: best.scaled_outputs(X)[0]))
    return [_disc(title, function, found) for title, function in panels]


def _linear(found: Explanation) -> Array | None:
    from ...margins import max_margin

    try:
        return max_margin(found.problem.data).direction
    except (NotSeparable, Undecided, ProblemError):
        return None


def _disc(title: str, function: Callable[[Array], Array], found: Explanation) -> str:
    turn = 2 * np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
    signs = decided(function(np.stack([np.cos(turn), np.sin(turn)], axis=1)))
    starts = np.flatnonzero(signs != np.roll(signs, 1))
    half, radius = _SIZE / 2, _SIZE / 2 - 16
    shapes = []
    if starts.size == 0:
        shapes.append(f'<circle cx="{half}" cy="{half}" r="{radius}" class="{_side(signs[0])}"/>')
    for k, first in enumerate(starts):
        last = starts[(k + 1) % starts.size]
        a, b = 2 * np.pi * first / _ANGLES, 2 * np.pi * last / _ANGLES
        wide = int((b - a) % (2 * np.pi) > np.pi)
        (x1, y1), (x2, y2) = ((half + radius * np.cos(v), half - radius * np.sin(v)) for v in (a, b))
        arc = f"M{half} {half}L{x1:.1f} {y1:.1f}A{radius} {radius} 0 {wide} 0 {x2:.1f} {y2:.1f}Z"
        shapes.append(f'<path d="{arc}" class="{_side(signs[first])}"/>')
    shapes.append(f'<circle cx="{half}" cy="{half}" r="{radius}" class="rim"/>')
    data = found.problem.data
    scale = 0.94 * radius / (float(data.norms.max()) or 1.0)
    for x, y in list(zip(data.X, data.y, strict=True))[:_MOST_POINTS]:
        at = half + scale * x[0], half - scale * x[1]
        shapes.append(label(at[0], at[1] + 5, "+" if y > 0 else "−", css=f"point {'plus' if y > 0 else 'minus'}"))
    return (
        f'<figure class="disc"><figcaption>{escape(upper(title))}</figcaption>'
        f'<svg viewBox="0 0 {_SIZE} {_SIZE}" role="img" aria-label="{escape(title)}">{"".join(shapes)}</svg></figure>'
    )


def _side(sign: int) -> str:
    return "for-plus" if sign > 0 else "for-minus" if sign < 0 else "for-none"
