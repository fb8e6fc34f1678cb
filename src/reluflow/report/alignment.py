"""The early phase of 2-D data as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics import Alignment
from ..problem import ProblemError
from ..sectors import extremal_directions
from .charts import degrees, unbroken
from .panels import samples
from .pictures import MINUS, PLUS, REST, axis_labels, check_picture, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 200  # neurons drawn; more are only ink
_STEPS = 240


def plot_alignment(early: Alignment, path: str | Path | None = None) -> Figure:
    """Draw sectors, samples, extremal directions and the paths of the neurons; 2-D data only.

    Left: the plane, cut into sectors by the lines on which an activation changes, with the samples and the extremal
    directions. Right: the direction of every neuron against time, with its events; horizontal lines are the directions
    on which activations change.

    Parameters
    ----------
    early : Alignment
        What `reluflow.align` returned.
    path : path, optional
        Where to write; the ending chooses the format (png, svg, pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    check_picture(early, Alignment, path)
    data = early.problem.data
    if data.d != 2:
        raise ProblemError(f"the picture of sectors needs data in the plane; these have d = {data.d}.")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    _draw_plane(left, early)
    draw_paths(right, early)
    return written(figure, path)


def _draw_plane(axes: Any, early: Alignment) -> None:
    data, net = early.problem.data, early.problem.net
    reach = 1.15 * float(data.norms.max())
    for x in data.X:
        along = np.array([-x[1], x[0]]) / np.linalg.norm(x) * 2 * reach
        axes.plot(*np.stack([-along, along]).T, color=REST, lw=0.6, ls=":", zorder=1)
    samples(axes, data.X, data.y, 90.0, 2.2, ("positive samples", "negative samples"))
    found = extremal_directions(data, net.slope)
    for kind, colour, style in (("max", PLUS, "-"), ("min", MINUS, "--")):
        ends = [e.direction * 0.9 * reach for e in found if e.kind == kind]
        for k, end in enumerate(ends):
            label = f"strict local {kind}ima of G" if k == 0 else None
            axes.annotate("", end, (0, 0), arrowprops={"arrowstyle": "->", "color": colour, "ls": style, "lw": 1.8})
            axes.plot([], [], color=colour, ls=style, label=label)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", **axis_labels(data))
    axes.set_title("data, sectors, extremal directions")
    _legend_below(axes)


def draw_paths(axes: Any, early: Alignment) -> None:
    """Draw the direction of every neuron against time: its angle in the plane, else that to where it turns."""
    if early.problem.data.d != 2:
        _draw_turning(axes, early)
        return
    live = [j for j in range(early.p) if early.problem.net.W[j].any()][:_MOST]
    times = np.linspace(0.0, _horizon(early), _STEPS)
    angles = degrees(early.directions(times))
    for level in np.ravel(degrees(early.problem.data.X)[:, None] + [90.0, -90.0]) % 360.0:
        axes.axhline(level, color=REST, lw=0.6, ls=":")
    for j in live:
        colour, style = (PLUS, "-") if early.signs[j] > 0 else (MINUS, "--")
        if early.fates[j] in ("dead", "stuck", "shrinking"):
            colour = REST
        axes.plot(*unbroken(times, angles[:, j]), color=colour, ls=style, lw=1.0, alpha=0.8)
        at = np.unique(early.events(j)["time"])
        if at.size:
            axes.plot(at, degrees(early.directions(at)[:, j]), ".", color=colour, ms=4)
    for colour, style, word in ((PLUS, "-", "a > 0"), (MINUS, "--", "a < 0"), (REST, "-", "dead, stuck or shrinking")):
        axes.plot([], [], color=colour, ls=style, label=word)
    axes.set(xlabel="time", ylabel="direction of the neuron (degrees)", ylim=(0, 360), xlim=(0, times[-1]))
    axes.set_yticks(range(0, 361, 45))
    more = f", first {_MOST} of {early.p}" if early.p > _MOST else ""
    axes.set_title(f"neurons turning; dots are events{more}")
    _legend_below(axes)


def _draw_turning(axes: Any, early: Alignment) -> None:
    live = [j for j in range(early.p) if early.problem.net.W[j].any()][:_MOST]
    times = np.linspace(0.0, _horizon(early), _STEPS)
    # The chord keeps small angles exact, where the cosine has lost them.
    chord = np.linalg.norm(early.directions(times) - early.direction, axis=2)
    angles = np.degrees(2 * np.arcsin(np.minimum(chord / 2, 1.0)))
    for j in live:
        colour, style = (PLUS, "-") if early.signs[j] > 0 else (MINUS, "--")
        axes.plot(times, angles[:, j], color=colour, ls=style, lw=1.0, alpha=0.8)
    for colour, style, word in ((PLUS, "-", "a > 0"), (MINUS, "--", "a < 0")):
        axes.plot([], [], color=colour, ls=style, label=word)
    axes.set(xlabel="time", ylabel="angle to the limit direction (degrees)", xlim=(0, times[-1]), title="turning")
    axes.legend(loc="best", fontsize=8)


def _legend_below(axes: Any) -> None:
    """Explain the marks where no sample and no neuron can be."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, fontsize=8)


def _horizon(early: Alignment) -> float:
    """Long enough to see every neuron within 3 degrees of its end."""
    settled = early.alignment_times(angle=np.radians(3.0))
    settled = settled[np.isfinite(settled)]
    return float(1.1 * settled.max()) if settled.size and settled.max() > 0 else 1.0 / early.problem.speed
