"""One picture function for every result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..deep import Watch
from ..dynamics import Alignment, Limit, Trajectory
from ..problem import Dataset, ProblemError
from .alignment import plot_alignment
from .explanation import Explanation
from .flow import plot_flow, plot_limit
from .panels import samples
from .pictures import axis_labels, check_picture, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(result: Any, path: str | Path | None = None) -> Figure:
    """Draw a result.

    Parameters
    ----------
    result : Trajectory, Watch, Limit, Alignment, Explanation or Dataset
        A run is drawn over time (`plot_flow`), a limit by its groups (`plot_limit`), an early phase by its sectors
        (`plot_alignment`); an explanation as its limit, or as its run where there is no limit; a dataset as points
        (the last two: data in the plane).
    path : path, optional
        Where to write; the ending chooses the format (png, svg, pdf).

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; ``figure.savefig`` writes it in any other form.

    Examples
    --------
    >>> figure = plot(Dataset([[2, 1], [1, 2], [-3, -1]], [1, 1, -1]))
    >>> len(figure.axes)
    1
    """
    if isinstance(result, Explanation):
        result = result.limit if result.limit is not None else result.trajectory
    if isinstance(result, Watch):
        result = result.trajectory()
    if isinstance(result, Trajectory):
        return plot_flow(result, path)
    if isinstance(result, Limit):
        return plot_limit(result, path)
    if isinstance(result, Alignment):
        return plot_alignment(result, path)
    if isinstance(result, Dataset):
        return _plot_points(result, path)
    raise ProblemError(
        f"{type(result).__name__} was given, which has no picture; plot draws what flow, descend, limit, align and "
        "explain return, and a Dataset of points in the plane."
    )


def _plot_points(data: Dataset, path: str | Path | None) -> Figure:
    check_picture(data, Dataset, path)
    if data.d != 2:
        raise ProblemError(f"the picture of a dataset needs points in the plane; these have d = {data.d}.")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 5), layout="constrained")
    axes = figure.subplots()
    words = f"{data.positives.size} positive", f"{data.negatives.size} negative"
    samples(axes, data.X, data.y, 90.0, 2.2, words)
    axes.plot(0, 0, "k.", ms=4)
    axes.set(aspect="equal", title=data.name or "", **axis_labels(data))
    axes.margins(0.15)
    axes.legend(loc="best", fontsize=8, framealpha=0.9)
    return written(figure, path)
