"""The charts of a page as documents: what the run did over time, and the spectrum and angles of its ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...problem.axis import BEND
from ...problem.types import Array
from ...problem.words import upper
from .. import charts
from ..axis import Tick, linear_ticks
from ..panels import decided
from ..words import phase_words
from .plane import linear

if TYPE_CHECKING:
    from ...problem import Network
    from ..charts import Axis, Chart
    from ..explanation import Explanation

_MOST_PAIRS = 200  # neurons whose pairwise angles are counted
_FINE = 10_000  # steps in which a chart is measured
_TICKS = 7, 6  # as many as can stand beside, and above, each other
_ANGLES = 1440


def over_time(found: Explanation, most: int | None = None) -> list[dict[str, Any]]:
    """Describe everything that has time on its horizontal axis; with ``most`` records where there is no time."""
    run = found.trajectory
    if run is None or len(run) < 2:
        return []
    return [document(one) for one in charts.over_time(run, found.predictions, found.limit, most) if one.curves]


def document(chart: Chart) -> dict[str, Any]:
    """Describe a chart in plain values; places are whole numbers from 0 to 10000, across and up, None for none."""
    x, y = chart.x.range, chart.y.range
    return {
        "title": upper(chart.title),
        "x": _axis(chart.x, _TICKS[0]),
        "y": _axis(chart.y, _TICKS[1]),
        "curves": [{"style": c.style, "x": _fine(c.x, x), "y": _fine(np.clip(c.y, *y), y)} for c in chart.curves],
        "levels": [{"style": level.style, "y": _fine([level.value], y)[0]} for level in chart.levels],
        "key": [list(entry) for entry in chart.key],
        "bands": [
            {"phase": b.phase, "from": _fine([max(b.start, x[0])], x)[0], "to": _fine([b.end], x)[0]}
            for b in chart.bands
        ],
        "marks": _fine(chart.marks, x),
    }


def _axis(axis: Axis, most: int) -> dict[str, Any]:
    ticks = [[_fine([tick.place], axis.range)[0], tick.text, tick.exponent] for tick in axis.ticks(most)]
    bend = _fine([BEND], axis.range)[0] if axis.bent else None
    return {"label": axis.label, "range": list(axis.range), "scale": axis.scale, "ticks": ticks, "bend": bend}


def _fine(values: Any, span: tuple[float, float]) -> list[Any]:
    given = np.asarray(values, dtype=np.float64)
    places = _FINE * (given - span[0]) / ((span[1] - span[0]) or 1.0)
    good = np.isfinite(places)
    whole = np.round(np.where(good, places, 0.0)).astype(np.int64).tolist()
    return whole if good.all() else [v if ok else None for v, ok in zip(whole, good, strict=True)]


def phases(found: Explanation) -> list[list[str]]:
    """Explain the shading: each phase of the computation, and how it goes about it."""
    run = found.trajectory
    names = {} if run is None else dict.fromkeys(phase.name for phase in run.phases)
    return [[name, phase_words(name)] for name in names]


# -- the two ends ----------------------------------------------------------------------------------------


def ends(found: Explanation) -> list[dict[str, Any]]:
    """Compare start and end: the singular values of the first layer, and the angles between neurons."""
    run = found.trajectory
    if run is None:
        return []
    pair = [run.network(0), run.final]
    if not all(net.W.any() for net in pair):
        return []
    return [_spectrum(pair), *([_cosines(pair)] if run.p > 1 else [])]


def _spectrum(pair: list[Network]) -> dict[str, Any]:
    values = [np.linalg.svd(net.scaled_weights("first")[0], compute_uv=False)[:20] for net in pair]
    values = [v / v[0] for v in values]
    where = np.arange(1, values[0].size + 1)
    bars = [
        [style, float(k + shift), float(k + shift + 0.34), float(height), f"{height:.3g}" if where.size <= 6 else ""]
        for shift, style, heights in ((-0.36, "before", values[0]), (0.02, "after", values[1]))
        for k, height in zip(where, heights, strict=True)
    ]
    span = (0.5, where.size + 0.5), (0.0, 1.12)
    ticks = [Tick(float(k), str(k)) for k in where], linear_ticks(0, 1)
    return _barred("Singular values of W", bars, span, ticks, ("index k", "σₖ / σ₁"))


def _cosines(pair: list[Network]) -> dict[str, Any]:
    edges = np.linspace(-1.0, 1.0, 41)
    shares = []
    for net in pair:
        rows = net.directions[np.isfinite(net.log_norms)][:_MOST_PAIRS]
        cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
        counts = np.histogram(np.clip(cosines, -1, 1), edges)[0]
        shares.append(100 * counts / max(counts.sum(), 1))
    top = float(max(s.max() for s in shares)) or 1.0
    bars = [
        [style, float(edges[k]), float(edges[k + 1]), float(share), ""]
        for style, found in (("before", shares[0]), ("after", shares[1]))
        for k, share in enumerate(found)
        if share > 0
    ]
    span = (-1.0, 1.0), (0.0, 1.06 * top)
    ticks = linear_ticks(-1, 1, 4), linear_ticks(0, top)
    return _barred("Cosines between pairs of neurons", bars, span, ticks, ("cos(wⱼ, wₖ)", "% of pairs"))


def _barred(title: str, bars: list[Any], span: Any, ticks: Any, labels: tuple[str, str]) -> dict[str, Any]:
    axes = [
        {
            "label": label,
            "range": list(reach),
            "scale": "linear",
            "ticks": [[_fine([tick.place], reach)[0], tick.text, tick.exponent] for tick in marks],
            "bend": None,
        }
        for label, reach, marks in zip(labels, span, ticks, strict=True)
    ]
    places = [[style, *_fine([a, b], span[0]), _fine([top], span[1])[0], text] for style, a, b, top, text in bars]
    return {"title": title, "x": axes[0], "y": axes[1], "bars": places, "curves": [], "levels": [], "bands": []}


# -- decisions -------------------------------------------------------------------------------------------


def regions(found: Explanation) -> list[dict[str, Any]]:
    """Say for data in the plane where networks decide for which class; they do so on cones."""
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
    straight = linear(found)
    if straight is not None:
        panels.append(("the linear max-margin classifier", lambda X: X @ straight))
    if end is not None and end.optimum is not None and end.optimum.lower > end.margin * (1 + 1e-7):
        best = end.optimum.network
        panels.append(("the network of largest margin", lambda X: best.scaled_outputs(X)[0]))
    return [{"title": upper(title), "arcs": _arcs(function)} for title, function in panels]


def _arcs(function: Callable[[Array], Array]) -> list[Any]:
    """List where a function of the plane has one sign: sign, first and last angle in radians."""
    turn = 2 * np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
    signs = decided(function(np.stack([np.cos(turn), np.sin(turn)], axis=1)))
    starts = np.flatnonzero(signs != np.roll(signs, 1))
    if starts.size == 0:
        return [[int(signs[0]), 0.0, round(2 * np.pi, 5)]]
    ends_ = np.append(starts[1:], starts[0] + _ANGLES)
    step = 2 * np.pi / _ANGLES
    return [[int(signs[a]), round(step * a, 5), round(step * b, 5)] for a, b in zip(starts, ends_, strict=True)]
