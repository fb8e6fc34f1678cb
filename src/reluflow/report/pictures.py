"""Charts as Matplotlib axes, and what all pictures share: colours, files, names of axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..problem import ProblemError
from ..problem.axis import BEND
from ..problem.files import write_to, writing
from .axis import Tick
from .charts import Axis, Chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..problem import Dataset

# Okabe and Ito: told apart by every eye, and in grey print by the marks and line styles beside them.
PLUS, MINUS, REST = "#0072B2", "#D55E00", "#777777"
_ENDINGS = (".png", ".svg", ".pdf")
_Y_TICKS = 9  # as many as can stand above each other
_LOOKS: dict[str, tuple[str, Any, float]] = {
    "main": ("black", "-", 1.6),
    "second": ("#7B3294", "--", 1.6),
    "predicted": ("#1B7837", (0, (6, 3)), 1.5),
    "limit": ("#E08214", (0, (1, 2)), 1.5),
    "best": ("#B2182B", "-.", 1.3),
    "plus": (PLUS, "-", 0.9),
    "minus": (MINUS, "--", 0.9),
    "rest": (REST, ":", 0.9),
    "wall": (REST, ":", 0.6),
}
_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def check_picture(result: object, kind: type, path: str | Path | None) -> None:
    """Refuse what cannot be drawn, and a file that a picture cannot be written to, before it is drawn."""
    if not isinstance(result, kind):
        raise ProblemError(
            f"{type(result).__name__} was given, but a {kind.__name__} is needed; plot draws any result."
        )
    if path is not None:
        write_to(path, _ENDINGS)


def written(figure: Figure, path: str | Path | None) -> Figure:
    """Write a picture, if a file is named, and return it."""
    if path is not None:
        with writing(path, *_ENDINGS) as file:
            figure.savefig(file, dpi=150)
    return figure


def axis_labels(data: Dataset) -> dict[str, str]:
    r"""Name the two axes of the plane after the columns, if they have names.

    >>> from reluflow import Dataset
    >>> axis_labels(Dataset([[1.0, 2.0]], [1], names=["size", "cost in $"]))
    {'xlabel': 'size', 'ylabel': 'cost in \\$'}
    """
    names = ("$x_1$", "$x_2$") if data.names is None else [name.replace("$", r"\$") for name in data.names]
    return {"xlabel": names[0], "ylabel": names[1]}


def paint(axes: Any, chart: Chart, most: int, named: bool = True) -> None:
    """Draw a chart into axes that have room for ``most`` ticks; ``named`` puts the name of time below."""
    for one in chart.curves:
        axes.plot(one.x, one.y, **_look(one.style))
    for level in chart.levels:
        axes.axhline(level.value, zorder=1.5, **_look(level.style))
    paint_time(axes, chart, most, named)
    axes.vlines(chart.marks, 0.97, 1.0, color="black", lw=0.5, transform=axes.get_xaxis_transform())
    axes.set_ylim(*chart.y.range)
    _ticks(axes.yaxis, chart.y, _Y_TICKS)
    axes.grid(axis="y", color="black", alpha=0.08)
    axes.set_axisbelow(True)
    axes.set_ylabel(chart.y.label, fontsize=8)
    axes.set_title(chart.title, fontsize=9)
    for style, words in chart.key:
        axes.plot([], [], label=words, **_look(style))
    if chart.key:
        axes.legend(loc="best", fontsize=8, framealpha=0.9)


def paint_time(axes: Any, chart: Chart, most: int, named: bool = True) -> None:
    """Give axes the horizontal axis of a chart, with its bands."""
    axes.set_xlim(*chart.x.range)
    _ticks(axes.xaxis, chart.x, most)
    if chart.x.bent:
        axes.axvline(BEND, color=REST, lw=0.8, ls=(0, (1, 2)), zorder=0.5)
    for one in chart.bands:
        axes.axvspan(one.start, one.end, color=one.colour, zorder=0, lw=0)
    if named:
        axes.set_xlabel(chart.x.label)


def _look(style: str) -> dict[str, Any]:
    colour, dashes, width = _LOOKS[style]
    return {"color": colour, "ls": dashes, "lw": width}


def _ticks(axis: Any, shown: Axis, most: int) -> None:
    marks = shown.ticks(most)
    axis.set_ticks([mark.place for mark in marks], [_math(mark) for mark in marks])


def _math(tick: Tick) -> str:
    """Write a tick with its raised exponent, which may have one itself.

    >>> _math(Tick(0.0, "e", "-10³")), _math(Tick(0.0, "1"))
    ('$e^{-10^{3}}$', '1')
    """
    if not tick.exponent:
        return tick.text
    raised = tick.exponent.rstrip("⁰¹²³⁴⁵⁶⁷⁸⁹")
    power = tick.exponent[len(raised) :].translate(_LOWERED)
    return f"${tick.text}^{{{raised}{f'^{{{power}}}' if power else ''}}}$"
