"""The main picture of every result, drawn into given axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..deep import Watch
from ..dynamics import Alignment, Limit, Trajectory
from ..problem import Dataset, Problem, ProblemError
from ..problem.types import Array
from ..theory import PAPERS, Finding
from ..theory.base import Lines
from .alignment import draw_paths
from .charts import over_time
from .explanation import Explanation
from .flow import draw_limit
from .panels import COLOURS, arrows, curve, samples
from .pictures import axis_labels, paint

_CHARTS = ("loss", "margin", "rank", "norms", "directions")
_TICKS = 8


def draw(result: Any, ax: Any = None, what: str | None = None) -> Any:
    """Draw the main picture of a result into axes, new ones where none are given, and return them.

    Parameters
    ----------
    result : Dataset, Problem, Alignment, Trajectory, Limit, Explanation, Watch, or a list of findings
        The method ``plot`` of each of them is this.
    ax : matplotlib.axes.Axes, optional
    what : {"margin", "loss", "rank", "norms", "directions"}, optional
        Of a run only: which curve; default: the margin.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> Dataset([[2, 1], [-3, -1]], [1, -1], names=["size", "cost"]).plot(ax=axes) is axes, axes.get_xlabel()
    (True, 'size')
    """
    if isinstance(result, Explanation):
        result = result.trajectory if result.limit is None or what is not None else result.limit
        if result is None:
            raise ProblemError("nothing was followed, so there is nothing to draw; give it more time (time_limit).")
    painter = next((paint for kind, paint in _PAINTERS if isinstance(result, kind)), None)
    if painter is None:
        raise ProblemError(
            f"{type(result).__name__} was given, which has no picture; flow, descend, limit, align, explain, check and "
            "watch return what has one, and so do a Dataset and a Problem."
        )
    if what is not None and not isinstance(result, (Trajectory, Watch)):
        raise ProblemError(f"what={what!r} is for runs; {type(result).__name__} has one picture only, leave it out.")
    if ax is not None and not hasattr(ax, "plot"):
        raise ProblemError(f"ax is a {type(ax).__name__}; Matplotlib axes are needed, such as plt.subplots()[1].")
    axes = _new_axes() if ax is None else ax
    painter(axes, result, *([] if what is None else [what]))
    return axes


def _new_axes() -> Any:
    """Make axes that a notebook shows when the cell ends."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(6.4, 4.6), layout="constrained")[1]


def _points(axes: Any, data: Dataset) -> None:
    plane = _plane(data)
    words = f"{data.positives.size} positive", f"{data.negatives.size} negative"
    samples(axes, data.X @ plane.T, data.y, 90.0, 2.2, words)
    axes.plot(0, 0, ".", color="#777777", ms=4)
    title = data.name or ""
    if data.d == 2:
        names = axis_labels(data)
    else:
        names = {"xlabel": "first principal direction", "ylabel": "second" if data.d > 1 else ""}
        title += f"{' ' if title else ''}({data.d} features, their two principal directions)" if data.d > 2 else ""
    axes.set(title=title, **names)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.15)
    axes.legend(loc="best", fontsize=8, framealpha=0.9)


def _plane(data: Dataset) -> Array:
    """Return two directions to look along: the axes in the plane, else the principal ones, as seen from the origin."""
    if data.d == 2:
        return np.eye(2)
    rows = np.linalg.svd(data.X, full_matrices=False)[2][:2]
    return np.vstack([rows, np.zeros((2 - len(rows), data.d))])


def _problem(axes: Any, problem: Problem) -> None:
    data, reach = problem.data, float(problem.data.norms.max())
    arrows(axes, 0.7 * reach * problem.net.directions @ _plane(data).T, np.sign(problem.net.a), unit=False)
    _points(axes, data)


def _early(axes: Any, early: Alignment) -> None:
    draw_paths(axes, early)


def _run(axes: Any, run: Trajectory, what: str = "margin") -> None:
    charts = dict(zip(_CHARTS, over_time(run), strict=False))
    if what not in charts:
        known = ", ".join(map(repr, charts))
        raise ProblemError(
            f"what={what!r} cannot be drawn of this run; choose one of {known}"
            + (" (directions are for data in the plane)." if what == "directions" else ".")
        )
    paint(axes, charts[what], _TICKS)


def _watched(axes: Any, seen: Watch, what: str = "margin") -> None:
    if not seen.moved:
        _run(axes, seen.trajectory(), what)
        return
    names = {"margin": "normalized_margin", "loss": "log_loss", "rank": "stable_rank", "norms": "log_norm"}
    if what not in names:
        raise ProblemError(f"what={what!r} cannot be drawn of a head whose points moved; choose {', '.join(names)}.")
    rows = [seen.row(k) for k in range(len(seen))]
    curve(axes, [row["step"] for row in rows], [row[names[what]] for row in rows])
    axes.set(xlabel="step", ylabel=names[what].replace("_", " "), title=f"head of {type(seen.model).__name__}")


def _findings(axes: Any, found: Lines[Any]) -> None:
    """Count what applies, is undecided and does not, paper by paper."""
    if not found or not all(isinstance(one, Finding) for one in found):
        raise ProblemError("only a list of findings, as check returns it, has a picture.")
    papers = [key for key in PAPERS if any(one.paper == key for one in found)]
    left = np.zeros(len(papers))
    for kind, (verdict, word) in enumerate(((True, "applies"), (None, "undecided"), (False, "does not apply"))):
        sizes = np.array([sum(one.paper == key and one.applies is verdict for one in found) for key in papers])
        look = {"color": COLOURS[(2, 4, 1)[kind]], "hatch": ("", "..", "////")[kind], "edgecolor": "white"}
        axes.barh(papers, sizes, left=left, label=word, **look)
        left += sizes
    axes.invert_yaxis()
    axes.set(xlabel="statements", title="which theorems apply")
    axes.legend(loc="best", fontsize=8)


_PAINTERS: tuple[tuple[type, Callable[..., None]], ...] = (
    (Dataset, _points),
    (Problem, _problem),
    (Alignment, _early),
    (Trajectory, _run),
    (Limit, lambda axes, end: draw_limit(axes, end)),
    (Watch, _watched),
    (Lines, _findings),
)
