"""Single panels that many figures share, each drawn into given axes.

Colours are those of Okabe and Ito; what colour says is always also said by a mark, a line style or a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..problem.types import Array, Signs
from .pictures import MINUS, PLUS, REST

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours, line styles and marks of successive curves, to be used together.
COLOURS = (PLUS, MINUS, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), "-")
MARKS = ("o", "s", "^", "D", "v", "P", "x")
_FULL = 2000  # points beyond which a scatter goes into vector files as pixels
_GRID = 301
_ROUNDING = 1e-9  # part of the largest value up to which another is zero


def sheet(rows: int, columns: int, title: str = "", size: tuple[float, float] = (3.7, 3.2)) -> tuple[Figure, Any]:
    """Make a figure with a grid of axes (always a 2-D array of them), each ``size`` inches.

    >>> figure, axes = sheet(1, 3, "three panels")
    >>> axes.shape
    (1, 3)
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] * columns, size[1] * rows + (0.35 if title else 0.0)), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    if title:
        figure.suptitle(title)
    return figure, axes


def samples(
    axes: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    size: float = 30.0,
    width: float = 1.5,
    words: tuple[str, str] | None = None,
    colours: tuple[str, str] = (PLUS, MINUS),
) -> None:
    """Draw labelled points of the plane: a blue plus for +1, an orange bar for -1; ``words`` go into the legend."""
    points, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    for k, (sign, colour, mark) in enumerate(((1, colours[0], "+"), (-1, colours[1], "_"))):
        at = labels == sign
        look = {"c": colour, "marker": mark, "s": size, "lw": width, "rasterized": at.sum() > _FULL}
        axes.scatter(*points[at].T, zorder=4, label=words[k] if words and at.any() else None, **look)


def decided(values: npt.ArrayLike) -> Signs:
    """Signs of values of a network: 0 where they are nothing but rounding beside the largest.

    >>> decided([2.0, -1e-3, 1e-12, 0.0]).tolist()
    [1, -1, 0, 0]
    """
    found = np.asarray(values, dtype=np.float64)
    return np.where(np.abs(found) <= _zero(found), 0, np.sign(found)).astype(np.int8)


def _zero(values: Array) -> float:
    """Size up to which a value is no more than rounding; a ReLU network can vanish on a whole cone."""
    return _ROUNDING * float(np.abs(values).max(initial=0.0))


def sampled(
    function: Callable[[Array], Array], x: tuple[float, float], y: tuple[float, float] | None = None
) -> tuple[Array, Array, Array]:
    """Evaluate a function of points of the plane on a grid: places across, places up, values."""
    across, up = (np.linspace(*span, _GRID) for span in (x, y or x))
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    return across, up, np.asarray(function(grid.reshape(-1, 2)), dtype=np.float64).reshape(_GRID, _GRID)


def zero_set(
    axes: Any,
    function: Callable[[Array], Array],
    colour: str = "black",
    style: Any = "-",
    width: float = 1.6,
    label: str = "",
) -> None:
    """Draw where a function changes its sign, in the window of the axes; where it vanishes on an area, its rim."""
    _draw_zero(axes, *sampled(function, axes.get_xlim(), axes.get_ylim()), colour, style, width)
    if label:
        axes.plot([], [], color=colour, ls=style, lw=width, label=label)


def _draw_zero(axes: Any, across: Array, up: Array, values: Array, colour: str, style: Any, width: float) -> None:
    signs, zero = decided(values), _zero(values)
    if not signs.any() or (signs == signs[0, 0]).all():
        return
    nothing = signs == 0
    area = (nothing[1:, 1:] & nothing[:-1, 1:] & nothing[1:, :-1] & nothing[:-1, :-1]).any()
    levels = [-zero, zero] if area else [0.0]
    axes.contour(across, up, values, levels=levels, colors=colour, linewidths=width, linestyles=[style])


def regions(
    axes: Any,
    function: Callable[[Array], Array],
    x: tuple[float, float],
    y: tuple[float, float] | None = None,
    levels: Sequence[float] | None = None,
    tints: tuple[str, str, str] = ("#FBE3D4", "#FFFFFF", "#D8ECFA"),
) -> None:
    """Tint the plane by the sign of a function and draw its zero set; also contours at ``levels``.

    ``function`` takes points of shape (m, 2) and returns m values; ``x`` and ``y`` are the ranges (``y`` as ``x``
    when left out). ``tints`` are the colours of negative, zero and positive values.
    """
    across, up, values = sampled(function, x, y)
    if zero := _zero(values):
        edges = [-np.inf, -zero, zero, np.inf]
        axes.contourf(across, up, values, levels=edges, colors=tints, zorder=0)
    if levels is not None:
        lines = axes.contour(across, up, values, levels=sorted(levels), colors=REST, linewidths=0.7)
        axes.clabel(lines, fontsize=7, fmt="%g")
    _draw_zero(axes, across, up, values, "black", "-", 1.6)
    axes.set(xlim=x, ylim=y or x, aspect="equal", xlabel="$x_1$", ylabel="$x_2$")


def boundary(axes: Any, normal: npt.ArrayLike, offset: float = 0.0, label: str = "", colour: str = "#009E73") -> None:
    """Draw the line ``normal . x + offset = 0`` dashed across the axes, whose limits must be set."""
    along = np.asarray(normal, dtype=np.float64)
    foot = -offset * along / (along @ along)
    turned = np.array([-along[1], along[0]]) / np.linalg.norm(along)
    reach = 4.0 * max(np.abs([*axes.get_xlim(), *axes.get_ylim()]).max(), float(np.linalg.norm(foot)))
    limits = axes.get_xlim(), axes.get_ylim()
    axes.plot(*np.stack([foot - reach * turned, foot + reach * turned]).T, color=colour, ls="--", lw=2.0, label=label)
    axes.set(xlim=limits[0], ylim=limits[1])


def arrows(
    axes: Any,
    W: npt.ArrayLike,
    signs: npt.ArrayLike,
    unit: bool = True,
    colours: tuple[str, str] = (PLUS, MINUS),
) -> None:
    """Draw neurons of the plane as arrows from the origin: solid blue for a > 0, dashed orange for a < 0.

    With ``unit`` only their directions, on a dotted circle; neurons that vanish are left out.
    """
    rows, kinds = np.asarray(W, dtype=np.float64), np.sign(np.asarray(signs, dtype=np.float64))
    norms = np.linalg.norm(rows, axis=1)
    ends = rows[norms > 0] / (norms[norms > 0, None] if unit else 1.0)
    reach = 1.15 * (1.0 if unit else float(norms.max(initial=0.0)) or 1.0)
    for end, kind in zip(ends, kinds[norms > 0], strict=True):
        colour, style = {1.0: (colours[0], "-"), -1.0: (colours[1], "--")}.get(float(kind), (REST, ":"))
        arrow = {"arrowstyle": "->", "color": colour, "ls": style, "lw": 1.0, "alpha": 0.7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", end, (0.0, 0.0), arrowprops=arrow)
    if unit:
        turn = np.linspace(0.0, 2.0 * np.pi, 200)
        axes.plot(np.cos(turn), np.sin(turn), color=REST, ls=":", lw=0.8)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")


def singular_values(axes: Any, values: npt.ArrayLike, count: int = 10, name: str = "W") -> None:
    """Draw the largest singular values as bars, counted from 1."""
    shown = np.asarray(values, dtype=np.float64)[:count]
    axes.bar(np.arange(1, shown.size + 1), shown, color=PLUS, width=0.7)
    axes.set(xlabel="index", ylabel="singular value", title=f"singular values of {name}")
    axes.set_xticks(np.arange(1, shown.size + 1))


def row_plane(
    axes: Any,
    points: npt.ArrayLike,
    signs: npt.ArrayLike,
    name: str = "W",
    colours: tuple[str, str] = (PLUS, MINUS),
) -> None:
    """Draw rows of a matrix in the plane of its two first right singular vectors, told apart by the sign of a."""
    rows, kinds = np.asarray(points, dtype=np.float64), np.sign(np.asarray(signs, dtype=np.float64))
    for sign, colour, mark, word in (
        (1, colours[0], "+", "a > 0"),
        (-1, colours[1], "x", "a < 0"),
        (0, REST, ".", "a = 0"),
    ):
        at = kinds == sign
        if at.any():
            axes.scatter(*rows[at].T, c=colour, marker=mark, s=28, lw=1.2, label=word)
    axes.axhline(0.0, color=REST, lw=0.5)
    axes.axvline(0.0, color=REST, lw=0.5)
    axes.set(xlabel="first singular direction", ylabel="second", title=f"rows of {name}")
    axes.legend(fontsize=8)


def histogram(axes: Any, values: npt.ArrayLike, span: tuple[float, float], bins: int = 40, label: str = "") -> None:
    """Draw how values are distributed; more calls on the same axes are told apart by colour and line style."""
    k = len(axes.containers)
    colour, style = COLOURS[k % len(COLOURS)], STYLES[k % len(STYLES)]
    found = np.asarray(values, dtype=np.float64)
    counts, edges = np.histogram(found, bins=bins, range=span)
    heights = counts / max(found.size, 1)
    axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=colour, alpha=0.35)
    axes.stairs(heights, edges, color=colour, ls=style, lw=1.4, label=label or None)
    axes.set(xlim=span, ylabel="share")


def band(
    axes: Any,
    x: npt.ArrayLike,
    low: npt.ArrayLike,
    middle: npt.ArrayLike,
    high: npt.ArrayLike,
    kind: int = 0,
    label: str = "",
) -> None:
    """Draw a curve with the range around it; ``kind`` chooses colour and line style."""
    colour, style = COLOURS[kind % len(COLOURS)], STYLES[kind % len(STYLES)]
    place, *curves = (np.asarray(v, dtype=np.float64) for v in (x, low, middle, high))
    axes.fill_between(place, curves[0], curves[2], color=colour, alpha=0.2, lw=0)
    axes.plot(place, curves[1], color=colour, ls=style, lw=1.6, label=label or None)


def curve(axes: Any, x: npt.ArrayLike, y: npt.ArrayLike, kind: int = 0, label: str = "", marks: bool = False) -> None:
    """Draw a curve; ``kind`` chooses colour, line style and, with ``marks``, the mark."""
    look = {"color": COLOURS[kind % len(COLOURS)], "ls": STYLES[kind % len(STYLES)], "lw": 1.6}
    mark = {"marker": MARKS[kind % len(MARKS)], "ms": 5} if marks else {}
    place, height = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    axes.plot(place, height, label=label or None, **look, **mark)


def image(axes: Any, pixels: npt.ArrayLike, title: str = "") -> None:
    """Draw a vector of pixels as the square grey image it is."""
    flat = np.asarray(pixels, dtype=np.float64).ravel()
    side = round(flat.size**0.5)
    axes.imshow(flat.reshape(side, side), cmap="gray", interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=9)


def table(axes: Any, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Draw a table instead of a chart."""
    axes.axis("off")
    cells = [[str(cell) for cell in row] for row in rows]
    drawn = axes.table(cells, colLabels=list(columns), loc="center", cellLoc="center")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    drawn.scale(1.0, 1.25)
    lines = 1 + max((column.count("\n") for column in columns), default=0)
    for k in range(len(columns)):
        drawn[0, k].set_height(lines * drawn[0, k].get_height())
    drawn.auto_set_column_width(list(range(len(columns))))
