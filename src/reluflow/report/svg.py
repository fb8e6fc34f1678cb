"""Charts as SVG text: the painter of notebooks, where no script runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from ..problem.axis import BEND
from ..problem.types import Array
from ..problem.words import upper
from .axis import Tick
from .charts import Chart

_X_TICKS, _Y_TICKS = 9, 7  # as many as can stand beside each other


@dataclass(frozen=True)
class Frame:
    """The rectangle of a chart and the range of values it shows."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 560
    height: int = 250
    left: int = 62
    right: int = 26
    top: int = 12
    bottom: int = 44

    def across(self, value: npt.ArrayLike) -> Array:
        """Horizontal places of values, in pixels."""
        low, high = self.x
        room = self.width - self.left - self.right
        return np.asarray(self.left + room * (np.asarray(value, dtype=float) - low) / ((high - low) or 1.0))

    def down(self, value: npt.ArrayLike) -> Array:
        """Vertical places of values, in pixels."""
        low, high = self.y
        room = self.height - self.top - self.bottom
        return np.asarray(self.top + room * (high - np.asarray(value, dtype=float)) / ((high - low) or 1.0))


def label(x: float, y: float, text: str, exponent: str = "", anchor: str = "middle", css: str = "tick") -> str:
    """Place a text, with a raised exponent."""
    raised = f'<tspan dy="-5" class="sup">{escape(exponent)}</tspan>' if exponent else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{escape(text)}{raised}</text>'


def line(frame: Frame, x: Array, y: Array, css: str) -> str:
    """Draw a curve; it is interrupted where a value is not finite."""
    good = np.isfinite(x) & np.isfinite(y)
    px, py = frame.across(x), frame.down(np.clip(y, *frame.y))
    parts, pen = [], "M"
    for k in range(x.size):
        if good[k]:
            parts.append(f"{pen}{px[k]:.1f} {py[k]:.1f}")
        pen = "L" if good[k] else "M"
    return f'<path d="{"".join(parts)}" class="curve {css}"/>' if parts else ""


def level(frame: Frame, y: float, css: str) -> str:
    """Draw a horizontal line across the chart."""
    at = float(frame.down(y))
    return f'<path d="M{frame.left} {at:.1f}H{frame.width - frame.right}" class="curve {css}"/>'


def band(frame: Frame, start: float, end: float, colour: str) -> str:
    """Shade a range of the horizontal axis."""
    a, b = (float(frame.across(np.clip(v, *frame.x))) for v in (start, end))
    height = frame.height - frame.top - frame.bottom
    return f'<rect x="{a:.1f}" y="{frame.top}" width="{max(b - a, 0):.1f}" height="{height}" fill="{colour}"/>'


def bars(frame: Frame, edges: Array, heights: Array, css: str) -> str:
    """Draw bars between the edges."""
    left, right = frame.across(edges[:-1]), frame.across(edges[1:])
    top, floor = frame.down(heights), float(frame.down(max(0.0, frame.y[0])))
    return "".join(
        f'<rect x="{a + 0.5:.1f}" y="{t:.1f}" width="{max(b - a - 1, 0.8):.1f}" height="{floor - t:.1f}" '
        f'class="{css}"/>'
        for a, b, t in zip(left, right, top, strict=True)
        if floor - t > 0
    )


def paint(chart: Chart) -> str:
    """Draw a chart over time."""
    frame = Frame(chart.x.range, chart.y.range)
    body = [level(frame, one.value, one.style) for one in chart.levels]
    body += [line(frame, one.x, one.y, one.style) for one in chart.curves]
    key = lines_key(chart.key) if chart.key else ""
    words = chart.x.label, chart.y.label
    ticks = chart.x.ticks(_X_TICKS), chart.y.ticks(_Y_TICKS)
    return framed(frame, upper(chart.title), body, *ticks, *words, "timed", _under(frame, chart), key)


def _under(frame: Frame, chart: Chart) -> Iterator[str]:
    """Shade the bands and mark the bend and the events."""
    for one in chart.bands:
        yield band(frame, one.start, one.end, one.colour)
    if chart.x.bent:
        at = float(frame.across(BEND))
        yield f'<path d="M{at:.1f} {frame.top}V{frame.height - frame.bottom}" class="bend"/>'
    if chart.marks.size:
        ticks = "".join(f"M{a:.1f} {frame.top}v6" for a in frame.across(chart.marks))
        yield f'<path d="{ticks}" class="event"/>'


def framed(
    frame: Frame,
    title: str,
    body: Iterable[str],
    x_ticks: Sequence[Tick],
    y_ticks: Sequence[Tick],
    x_label: str,
    y_label: str,
    css: str = "",
    under: Iterable[str] = (),
    key: str = "",
) -> str:
    """Put axes around what was drawn, and the key below."""
    bottom, right = frame.height - frame.bottom, frame.width - frame.right
    axes = []
    for value, text, exponent in x_ticks:
        x = float(frame.across(value))
        axes.append(f'<path d="M{x:.1f} {bottom}v5" class="axis"/>')
        axes.append(label(x, bottom + 18, text, exponent))
    for value, text, exponent in y_ticks:
        y = float(frame.down(value))
        axes.append(f'<path d="M{frame.left} {y:.1f}H{right}" class="grid"/>')
        axes.append(label(frame.left - 7, y + 4, text, exponent, "end"))
    axes.append(f'<path d="M{frame.left} {frame.top}V{bottom}H{right}" class="axis"/>')
    axes.append(label((frame.left + right) / 2, frame.height - 8, x_label, css="name"))
    middle = (frame.top + bottom) / 2
    axes.append(f'<g transform="rotate(-90 13 {middle})">{label(13, middle, y_label, css="name")}</g>')
    limits = f'data-left="{frame.left}" data-right="{right}" data-top="{frame.top}" data-bottom="{bottom}"'
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{escape(title)}" '
        f'class="{css}" {limits}>'
        f"{''.join(under)}{''.join(axes)}{''.join(body)}</svg>{key}</figure>"
    )


def lines_key(entries: Iterable[tuple[str, str]]) -> str:
    """Explain the curves: pairs of style and words."""
    items = "".join(
        f'<span><svg width="26" height="10"><path d="M1 5H25" class="curve {css}"/></svg>{escape(words)}</span>'
        for css, words in entries
    )
    return f'<p class="key">{items}</p>'
