"""The charts of a page: what the run did over time, and the spectrum and angles of its ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...margins import stable_rank
from ...problem.types import Array, Index
from .. import svg
from ..alignment import _angle
from ..flow import _BEND, _TINTS, _time_places, _visible, axis_place, finer

if TYPE_CHECKING:
    from ...dynamics import Trajectory
    from ...problem import Network
    from ..explanation import Explanation


_MOST_NEURONS = 80
_MOST_PAIRS = 200  # neurons whose pairwise angles are counted
_SAME = 1e-9


class Clock:
    """The time axis that all charts share."""

    def __init__(self, run: Trajectory) -> None:
        self.run = run
        self.places = _time_places(run)
        low, high = float(self.places[0]), float(self.places[-1])
        self.range = (low, high if high > low else low + 1.0)
        self.seen = _visible(run, self.places)
        self.ticks = svg.log_ticks(*self.range, most=9)

    def frame(self, y: tuple[float, float]) -> svg.Frame:
        """Make the frame of a chart over time."""
        return svg.Frame(self.range, y)

    def under(self, frame: svg.Frame) -> Iterator[str]:
        """Shade the phases and mark the events."""
        for phase in self.run.phases:
            edges = [
                float(axis_place(t)) if np.isfinite(t) else self.range[0] for t in (phase.log_start, phase.log_end)
            ]
            yield svg.band(frame, edges[0], edges[1], _TINTS.get(phase.name, "#FFFFFF"))
        if self.range[0] < _BEND < self.range[1]:
            at = float(frame.across(_BEND))
            yield f'<path d="M{at:.1f} {frame.top}V{frame.height - frame.bottom}" class="bend"/>'
        marks = self.events()
        if marks.size:
            x = frame.across(marks)
            yield f'<path d="{"".join(f"M{a:.1f} {frame.top}v6" for a in x)}" class="event"/>'

    def events(self) -> Array:
        """Places of the events, those that cannot be told apart only once."""
        times = self.run.events["log_time"]
        places = axis_place(times[np.isfinite(times)])
        step = (self.range[1] - self.range[0]) / 500
        return np.unique(np.round(places / step)) * step

    def chart(self, title: str, frame: svg.Frame, body: list[str], y_ticks: list[svg.Tick], y_label: str) -> str:
        """Draw a chart over time."""
        words = "time t (logarithmic; beyond e¹⁰, dotted, a log axis of log t)" if self.range[1] > 10 else "time t"
        return svg.chart(frame, title, body, self.ticks, y_ticks, words, y_label, css="timed", under=self.under(frame))


def over_time(found: Explanation) -> list[str]:
    """Draw everything that has time on its horizontal axis."""
    run = found.trajectory
    if run is None or len(run) < 2:
        return []
    clock = Clock(finer(run))
    charts = [_loss(clock), _margins(clock, found), _rank(clock, found), _norms(clock)]
    if run.problem.data.d == 2:
        charts.append(_angles(clock, found))
    return [one for one in charts if one]


def phases_key(run: Trajectory) -> str:
    """Explain the shading."""
    words = {
        "early": "early: exact",
        "coupled": "coupled: step by step",
        "late": "late: in log time",
        "rest": "rest: nothing moves",
    }
    names = dict.fromkeys(phase.name for phase in run.phases)
    items = "".join(
        f'<span><i style="background:{_TINTS.get(n, "#FFFFFF")}"></i>{words.get(n, n)}</span>' for n in names
    )
    return f'<p class="key">{items}<span>ticks at the top edge: a neuron changes sides</span></p>'


def _loss(clock: Clock) -> str:
    heights = axis_place(clock.run.log_loss)
    frame = clock.frame(svg.spread(heights, least=0.2))
    body = [svg.line(frame, clock.places, heights, "main")]
    return clock.chart("Training loss", frame, body, svg.log_ticks(*frame.y, most=7), "loss L (logarithmic)")


def levels(found: Explanation) -> list[tuple[str, str, float]]:
    """Return the values that the margin may tend to: style, name, value."""
    told: dict[float, list[str]] = {}
    for one in found.predictions:
        if one.function is not None and one.margin is not None:
            twin = next((v for v in told if abs(v - one.margin) <= _SAME * abs(v)), one.margin)
            told.setdefault(twin, []).append(one.claim)
    shown = [("predicted", f"predicted by {', '.join(names)}", value) for value, names in told.items()]
    if found.limit is not None and found.limit.kind == "margin":
        shown.append(("limit", "limit found", found.limit.margin))
        if found.limit.optimum is not None:
            shown.append(("best", "largest of any network", found.limit.optimum.lower))
    return shown


def _named(lines: list[tuple[str, str, float]]) -> list[tuple[str, str]]:
    return [(style, f"{name}: {value:.6g}") for style, name, value in lines]


def _margins(clock: Clock, found: Explanation) -> str:
    run, problem, seen = clock.run, clock.run.problem, clock.seen
    normal = run.measures.normalized_margin[seen]
    smooth = run.measures.smoothed_margin[seen]
    lines = levels(found)
    frame = clock.frame(svg.spread(normal, 0.0, *(value for _, _, value in lines)))
    smooth[~(smooth >= frame.y[0])] = np.nan  # far below while the loss is large
    body = [svg.level(frame, value, style) for style, _, value in lines]
    body += [
        svg.line(frame, clock.places[seen], smooth, "second"),
        svg.line(frame, clock.places[seen], normal, "main"),
    ]
    homogeneity = "|θ|²" if problem.train == "both" else "|θ|"
    drawn = clock.chart("Margin", frame, body, svg.linear_ticks(*frame.y), f"min yᵢ f(xᵢ) / {homogeneity}")
    smoothed = [("second", "smoothed")] if np.isfinite(smooth).any() else []
    entries = [("main", "normalised"), *smoothed, *_named(lines)]
    return drawn.replace("</figure>", svg.key(entries) + "</figure>")


def _rank(clock: Clock, found: Explanation) -> str:
    run = clock.run
    seen = [int(k) for k in clock.seen if np.isfinite(run.log_norms[k]).any()]
    if not seen:
        return ""
    values = run.measures.stable_rank[seen]
    lines = [
        ("predicted", f"predicted by {p.claim}", float(p.bounds["stable_rank"]))
        for p in found.predictions
        if "stable_rank" in p.bounds
    ]
    if found.limit is not None and found.limit.network.W.any():
        value = float(stable_rank(found.limit.network))
        lines.append(("limit", "limit found", value))
    frame = clock.frame(svg.spread(values, 1.0, *(value for _, _, value in lines)))
    body = [svg.level(frame, value, style) for style, _, value in lines]
    body.append(svg.line(frame, clock.places[seen], values, "main"))
    drawn = clock.chart("Stable rank of the first layer", frame, body, svg.linear_ticks(*frame.y), "|W|²F / |W|²₂")
    entries = [("main", "of the flow"), *_named(lines)]
    return drawn.replace("</figure>", svg.key(entries) + "</figure>")


def shown_neurons(run: Trajectory, most: int = _MOST_NEURONS) -> Index:
    """Choose neurons to draw: not zero, and spread evenly over all."""
    live = np.flatnonzero(np.isfinite(run.log_norms).any(axis=0))
    return live[np.linspace(0, live.size - 1, most).astype(np.intp)] if live.size > most else live


def _colour(sign: int) -> str:
    return "plus" if sign > 0 else "minus" if sign < 0 else "rest"


def _some(run: Trajectory, drawn: int) -> str:
    return f" ({drawn} of {run.p} drawn)" if drawn < run.p else ""


_SIGNS = (("plus", "a > 0"), ("minus", "a < 0"))


def _norms(clock: Clock) -> str:
    run, seen, shown = clock.run, clock.seen, shown_neurons(clock.run)
    if not shown.size or not seen.size:
        return ""
    heights = axis_place(run.log_norms[np.ix_(seen, shown)])
    frame = clock.frame(svg.spread(heights))
    body = [
        svg.line(frame, clock.places[seen], heights[:, k], f"{_colour(int(run.signs[-1, j]))} thin")
        for k, j in enumerate(shown)
    ]
    title = f"Norms of the neurons{_some(run, shown.size)}"
    drawn = clock.chart(title, frame, body, svg.log_ticks(*frame.y, most=7), "|wⱼ| (logarithmic)")
    return drawn.replace("</figure>", svg.key(_SIGNS) + "</figure>")


def _angles(clock: Clock, found: Explanation) -> str:
    """Draw the directions of the neurons in the plane, in degrees."""
    run, shown = clock.run, shown_neurons(clock.run)
    frame = clock.frame((0.0, 360.0))
    body = []
    seen = clock.seen
    for j in shown:
        path = np.degrees(_angle(run.directions[seen, j])) % 360.0
        path = np.where(run.directions[seen, j].any(axis=1), path, np.nan)
        jumps = np.flatnonzero(np.abs(np.diff(path)) > 180.0) + 1  # not across the jump at 360
        x, y = np.insert(clock.places[seen], jumps, np.nan), np.insert(path, jumps, np.nan)
        body.append(svg.line(frame, x, y, f"{_colour(int(run.signs[-1, j]))} thin"))
    entries = list(_SIGNS)
    told = next((p.network for p in found.predictions if p.function is not None and p.network is not None), None)
    if told is not None:
        live = told.directions[told.W.any(axis=1)]
        angles = np.unique(np.round(np.degrees(_angle(live)) % 360.0, 6))
        body += [svg.level(frame, float(v), "predicted") for v in angles[:8]]
        entries.append(("predicted", "predicted limits"))
    ticks = [(float(v), f"{v}°", "") for v in range(0, 361, 60)]
    drawn = clock.chart(f"Directions of the neurons{_some(run, shown.size)}", frame, body, ticks, "angle of wⱼ")
    return drawn.replace("</figure>", svg.key(entries) + "</figure>")


# -- the two ends ----------------------------------------------------------------------------------------


def ends(found: Explanation) -> list[str]:
    """Compare start and end: the singular values of the first layer, and the angles between neurons."""
    run = found.trajectory
    if run is None:
        return []
    pair = [run.network(0), run.final]
    if not all(net.W.any() for net in pair):
        return []
    return [_spectrum(pair), *([_cosines(pair)] if run.p > 1 else [])]


def _relative(net: Network) -> Array:
    """First layer in units of its largest row."""
    log_w = net.log_norms
    with np.errstate(under="ignore"):
        return np.asarray(net.directions * np.exp(log_w - log_w.max())[:, None])


def _spectrum(pair: list[Network]) -> str:
    values = [np.linalg.svd(_relative(net), compute_uv=False)[:20] for net in pair]
    values = [v / v[0] for v in values]
    count = values[0].size
    frame = svg.Frame((0.5, count + 0.5), (0.0, 1.08))
    where = np.arange(1, count + 1)
    body = []
    for shift, style, v in ((-0.36, "before", values[0]), (0.02, "after", values[1])):
        for k, height in zip(where, v, strict=True):
            body.append(svg.bars(frame, np.array([k + shift, k + shift + 0.34]), np.array([height]), style))
            if count <= 6:
                x, y = float(frame.across(k + shift + 0.17)), float(frame.down(height))
                body.append(svg.label(x, y - 4, f"{height:.3g}"))
    ticks = [(float(k), str(k), "") for k in where]
    drawn = svg.chart(
        frame, "Singular values of W", body, ticks, svg.linear_ticks(0, 1), "index k", "σₖ / σ₁", css="bars"
    )
    return drawn.replace("</figure>", _boxes() + "</figure>")


def _cosines(pair: list[Network]) -> str:
    edges = np.linspace(-1.0, 1.0, 41)
    shares = []
    for net in pair:
        rows = net.directions[np.isfinite(net.log_norms)][:_MOST_PAIRS]
        cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
        counts = np.histogram(np.clip(cosines, -1, 1), edges)[0]
        shares.append(100 * counts / max(counts.sum(), 1))
    top = float(max(s.max() for s in shares)) or 1.0
    frame = svg.Frame((-1.0, 1.0), (0.0, 1.06 * top))
    body = [svg.bars(frame, edges, shares[0], "before"), svg.bars(frame, edges, shares[1], "after see-through")]
    drawn = svg.chart(
        frame,
        "Cosines between pairs of neurons",
        body,
        svg.linear_ticks(-1, 1, 4),
        svg.linear_ticks(0, top),
        "cos(wⱼ, wₖ)",
        "% of pairs",
        css="bars",
    )
    return drawn.replace("</figure>", _boxes() + "</figure>")


def _boxes() -> str:
    return (
        '<p class="key"><span><i class="before"></i>at the start</span><span><i class="after"></i>at the end</span></p>'
    )
