"""Pictures of a sweep: curves with bands over what is not shown, and maps of two axes."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem import ProblemError
from ..problem.tables import number
from ..problem.words import count
from ..report.panels import COLOURS, curve, sheet
from ..report.pictures import check_picture, written
from .ledger import STATES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .results import Column, SweepResults

_MOST_PLACES, _BINS = 60, 24  # values of an axis beyond which neighbours are put together, and into how many
_MOST_CURVES, _MOST_PANELS = 12, 12
_BAND = (0.1, 0.9)  # quantiles
#: What a row was, as a column that can be drawn.
_OUTCOMES: Mapping[str, tuple[str, ...]] = {"undecided": STATES[1:4], "failed": STATES[4:]}


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis of a picture: where every row stands on it, and the places there are."""

    name: str
    label: str
    at: Column
    values: list[Any]
    logarithmic: bool
    numeric: bool


def plot_sweep(
    results: SweepResults,
    x: str,
    y: str,
    *,
    color: str | None = None,
    panel: str | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw a sweep.

    Where ``y`` was measured: a curve of its median over ``x``, with a band between the 10 and the 90 % quantile over
    everything else (seeds, say); shares where it is true or false; one curve for every value of ``color``. Where ``y``
    is a parameter too: a map of both, whose colour is the median of what ``color`` names, the share of true, or the
    most frequent text (which limit). ``undecided`` and ``failed`` are the shares of such rows. Axes that the spec
    spreads logarithmically are drawn so.

    Parameters
    ----------
    results : SweepResults
    x : str
        A parameter that varies; names may be short, ``scale`` for ``network.scale``.
    y : str
        What was measured, ``margin`` for ``limit.margin``; or another parameter.
    color : str, optional
        A parameter, or in a map what was measured (default: the share of rows that are done).
    panel : str, optional
        A parameter: one panel for each of its values.
    path : path, optional
        Where to write; the ending chooses the format (png, svg, pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    from .results import SweepResults

    check_picture(results, SweepResults, None if path is None else Path(path))
    table = dict(results.table())
    if not table["index"].size:
        raise ProblemError(f"{results.folder} has no rows yet; run the sweep first.")
    for word, states in _OUTCOMES.items():
        table.setdefault(word, np.isin(table["state"], states))
    axes = {axis.name: axis.logarithmic for axis in results.plan.axes}
    names = {role: results.column(word, table) for role, word in _given(x=x, y=y, color=color, panel=panel).items()}
    for role in ("x", "panel"):
        if role in names and names[role] not in axes:
            raise ProblemError(f"{role} = {names[role]!r} does not vary; {', '.join(axes) or 'nothing'} does.")
    split = _scale(names["panel"], table, False) if "panel" in names else None
    if split is not None and len(split.values) > _MOST_PANELS:
        raise ProblemError(
            f"panel = {split.name!r} has {len(split.values)} values; at most {_MOST_PANELS} can be drawn."
        )
    across = _scale(names["x"], table, axes[names["x"]])
    figure, grid = _panels(split, results)
    for k, axis in enumerate(grid):
        rows = np.full(table["index"].size, True) if split is None else split.at == k
        if names["y"] in axes:
            up = _scale(names["y"], table, axes[names["y"]])
            _map(figure, axis, across, up, names.get("color"), table, rows)
        else:
            _curves(axis, across, names["y"], names.get("color"), table, rows)
        if split is not None:
            axis.set_title(f"{split.label} = {_word(split.values[k])}", fontsize=9)
    return written(figure, path if path is None else Path(path))


def _given(**words: str | None) -> dict[str, str]:
    for role, word in words.items():
        if word is not None and not isinstance(word, str):
            raise ProblemError(f"{role} = {word!r}: the name of a column is needed.")
    return {role: word for role, word in words.items() if word is not None}


def _panels(split: Scale | None, results: SweepResults) -> tuple[Figure, list[Any]]:
    number_of = 1 if split is None else len(split.values)
    columns = min(number_of, 3)
    rows = -(-number_of // columns)
    size = (5.2, 4.0) if number_of == 1 else (4.2, 3.4)
    title = textwrap.fill(results.spec.get("title", "").replace("$", r"\$"), int(11 * size[0] * columns))
    figure, grid = sheet(rows, columns, title, size)
    cells = list(grid.ravel())
    for spare in cells[number_of:]:
        spare.axis("off")
    return figure, cells[:number_of]


def _scale(name: str, table: Mapping[str, Column], logarithmic: bool) -> Scale:
    """Find the places of an axis; where there are many, neighbours share one."""
    column = table[name]
    numeric = column.dtype.kind in "if"
    logarithmic = logarithmic and numeric and bool((column > 0).all())
    values, at = np.unique(column if numeric else column.astype(str), return_inverse=True)
    if numeric and values.size > _MOST_PLACES:
        heights = np.log(column) if logarithmic else column.astype(float)
        edges = np.linspace(heights.min(), heights.max(), _BINS + 1)
        at = np.clip(np.digitize(heights, edges) - 1, 0, _BINS - 1)
        middles = (edges[1:] + edges[:-1]) / 2
        values = np.exp(middles) if logarithmic else middles
    return Scale(name, name.partition(".")[2] or name, at.reshape(-1), values.tolist(), logarithmic, numeric)


def _word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _curves(axis: Any, across: Scale, name: str, color: str | None, table: Mapping[str, Column], rows: Column) -> None:
    values = _numbers(table[name], name)
    kinds = None if color is None else _scale(color, table, False)
    if kinds is not None and len(kinds.values) > _MOST_CURVES:
        raise ProblemError(
            f"color = {kinds.name!r} has {len(kinds.values)} values; at most {_MOST_CURVES} curves can be told apart."
        )
    labels = [""] if kinds is None else [f"{kinds.label} = {_word(value)}" for value in kinds.values]
    shades = None
    if len(labels) > len(COLOURS):
        from matplotlib import colormaps

        shades = colormaps["viridis"](np.linspace(0.0, 0.95, len(labels)))
    for k, label in enumerate(labels):
        _one_curve(axis, across, values, rows if kinds is None else rows & (kinds.at == k), k, label, shades)
    _label(axis.xaxis, across, axis.set_xscale)
    shared = table[name].dtype == bool or _is_share(table[name])
    axis.set_ylabel(f"share {name}" if shared else name)
    if kinds is not None:
        axis.legend(fontsize=8)
    axis.grid(alpha=0.2)


def _one_curve(
    axis: Any, across: Scale, values: Column, rows: Column, kind: int, label: str, shades: Column | None
) -> None:
    """Draw medians, or means of what is 0 and 1, with a band between quantiles."""
    places, middle, low, high = [], [], [], []
    share = bool(np.isin(values[np.isfinite(values)], (0.0, 1.0)).all())
    for k, value in enumerate(across.values):
        here = values[rows & (across.at == k) & np.isfinite(values)]
        if here.size:
            places.append(value if across.numeric else k)
            middle.append(here.mean() if share else np.median(here))
            low.append(middle[-1] if share else np.quantile(here, _BAND[0]))
            high.append(middle[-1] if share else np.quantile(here, _BAND[1]))
    drawn = len(axis.lines)
    curve(axis, places, middle, kind, label, marks=len(places) <= _BINS + 1)
    if shades is not None:  # more curves than colours that are told apart: they go from dark to light
        axis.lines[drawn].set_color(shades[kind])
    if low != high:
        axis.fill_between(places, low, high, color=axis.lines[drawn].get_color(), alpha=0.18, lw=0)


def _map(
    figure: Figure, axis: Any, across: Scale, up: Scale, color: str | None, table: Mapping[str, Column], rows: Column
) -> None:
    name = color or "done"
    column = table["state"] == "done" if color is None else table[color]
    texts = column.dtype == object and not _is_share(column)
    if texts:
        words = sorted({str(value) for value in column if value is not None})
        column = np.array([words.index(str(value)) if value is not None else np.nan for value in column])
    cells = _cells(across, up, column.astype(float) if texts else _numbers(column, name), rows, texts)
    share = not texts and (column.dtype == bool or _is_share(column))
    options: dict[str, Any] = {"vmin": 0.0, "vmax": 1.0} if share else {}
    if texts:
        from matplotlib.colors import ListedColormap

        shown = [COLOURS[k % len(COLOURS)] for k in range(max(len(words), 1))]
        options = {"cmap": ListedColormap(shown), "vmin": -0.5, "vmax": len(shown) - 0.5}
    drawn = axis.pcolormesh(_edges(across), _edges(up), np.ma.masked_invalid(cells), **options)
    bar = figure.colorbar(
        drawn, ax=axis, label=f"most frequent {name}" if texts else f"share {name}" if share else name
    )
    if texts:
        bar.set_ticks(range(len(words)), labels=words)
    _label(axis.xaxis, across, axis.set_xscale)
    _label(axis.yaxis, up, axis.set_yscale)


def _cells(across: Scale, up: Scale, values: Column, rows: Column, texts: bool) -> Column:
    """Return one number a cell: the median, the share of what is 0 and 1, or the most frequent of texts."""
    found = np.full((len(up.values), len(across.values)), np.nan)
    good = rows & np.isfinite(values)
    share = bool(np.isin(values[good], (0.0, 1.0)).all())
    order = np.lexsort((across.at[good], up.at[good]))
    cell = up.at[good][order] * len(across.values) + across.at[good][order]
    kinds, starts = np.unique(cell, return_index=True)
    for place, here in zip(kinds, np.split(values[good][order], starts[1:]), strict=True):
        if texts:
            found.flat[place] = np.bincount(here.astype(int)).argmax()
        else:
            found.flat[place] = here.mean() if share else np.median(here)
    return found


def _edges(scale: Scale) -> Column:
    """Return the borders of the cells around the places of an axis."""
    if not scale.numeric:
        return np.arange(len(scale.values) + 1) - 0.5
    places = np.log(scale.values) if scale.logarithmic else np.asarray(scale.values, dtype=float)
    if places.size == 1:
        edges = np.array([places[0] - 0.5, places[0] + 0.5])
    else:
        middle = (places[1:] + places[:-1]) / 2
        edges = np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])
    return np.exp(edges) if scale.logarithmic else edges


def _label(axis: Any, scale: Scale, set_scale: Any) -> None:
    axis.set_label_text(scale.label)
    if scale.logarithmic:
        set_scale("log")
    elif not scale.numeric:
        axis.set_ticks(range(len(scale.values)), labels=scale.values)


def _is_share(column: Column) -> bool:
    """Whether a column is true, false or not known."""
    return column.dtype == object and all(value is None or isinstance(value, bool) for value in column)


def _numbers(column: Column, name: str) -> Column:
    """Return numbers to draw: 1 and 0 for true and false, nan where there is nothing."""
    if column.dtype.kind in "ifb":
        return column.astype(float)
    if not _is_share(column):
        example = next((value for value in column if value is not None), None)
        raise ProblemError(
            f"{name} are texts, such as {example!r}, which have no place on an axis; in a map they are a colour: y = a "
            f"parameter, color = {name!r}."
        )
    return np.array([np.nan if value is None else float(value) for value in column])


def summary(results: SweepResults) -> list[tuple[str, ...]]:
    """Return the measured numbers as rows of a table: name, how many, smallest, median, largest."""
    found: list[tuple[str, ...]] = []
    for name, column in results.table().items():
        if name.partition(".")[0] in results.labels and column.dtype.kind in "if":
            good = column[np.isfinite(column)].astype(float)
            some = [number(float(f(good)), 5) for f in (np.min, np.median, np.max)] if good.size else ["-"] * 3
            found.append((name, count(good.size, "row"), *some))
    return found
