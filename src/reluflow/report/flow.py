"""A flow and its limit as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics import Limit, Trajectory
from ..problem.words import count
from .charts import over_time, tint, told_apart
from .panels import regions, samples
from .pictures import MINUS, PLUS, REST, axis_labels, check_picture, paint, paint_time, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_GROUPS = 12
_TICKS = 12  # as many as half the picture has room for
_PUSHED = ("activate", "deactivate", "slide", "touch", "flip", "die", "ridge")


def plot_flow(run: Trajectory, path: str | Path | None = None) -> Figure:
    r"""Draw a run of training: events, loss, margins, stable rank and the norms of the neurons against time.

    Time, loss and norms have the axis of `axis_place`: logarithmic up to :math:`e^{10}`, from there on the logarithm
    itself is on a logarithmic axis (ticks :math:`e^{100}, e^{1000}, \dots`). The background says which phase of the
    computation it was. Data in the plane also show the directions of the neurons.

    Parameters
    ----------
    run : Trajectory
        What `reluflow.flow` or `reluflow.descend` returned.
    path : path, optional
        Where to write; the ending chooses the format (png, svg, pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    check_picture(run, Trajectory, path)
    charts = over_time(run)
    plane = len(charts) > 4
    figure = Figure(figsize=(11, 10.5 if plane else 7.5), layout="constrained")
    heights = (0.62, 2, 2, 2.6) if plane else (0.62, 2, 2)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    strip = figure.add_subplot(grid[0, :])
    _draw_events(strip, run, charts[0].x.range[1] - charts[0].x.range[0])
    paint_time(strip, charts[0], 2 * _TICKS, named=False)
    strip.tick_params(labelbottom=False)
    for k, chart in enumerate(charts):
        row, wide = 1 + k // 2, k == 4
        axes = figure.add_subplot(grid[row, :] if wide else grid[row, k % 2])
        paint(axes, chart, _TICKS * (1 + wide), named=row == len(heights) - 1)
    _name_phases(figure, run)
    return written(figure, path)


def plot_limit(end: Limit, path: str | Path | None = None) -> Figure:
    """Draw the limit of a flow: its directions, its groups and how far the samples are from the boundary.

    Left: for data in the plane the samples, the limit directions (as long as the root of their share) and the decision
    boundary; in more dimensions the cosines between the limit directions. Middle: the share of every group of neurons
    in the squared norm, in the limit and at the end of the integration. Right: the margins of the samples, sorted.
    Where the direction rested on its way, a fourth panel shows the margin against log R.

    Parameters
    ----------
    end : Limit
        What `reluflow.limit` returned.
    path : path, optional
        Where to write; the ending chooses the format (png, svg, pdf).

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    check_picture(end, Limit, path)
    figure = Figure(figsize=(17.5 if end.plateaus else 13, 4.8), layout="constrained")
    ratios = (1.15, 1, 1, 1.3) if end.plateaus else (1.15, 1, 1)
    left, middle, right, *more = figure.subplots(1, len(ratios), width_ratios=ratios)
    for axes in more:
        _draw_plateaus(axes, end)
    draw_limit(left, end)
    _draw_shares(middle, end)
    _draw_sample_margins(right, end)
    words = {"margin": "limit of the direction", "stall": "limit of a flow that stalls", "rest": "where the flow rests"}
    margin = f", normalised margin {end.margin:.6g}" if np.isfinite(end.margin) else f", loss {end.loss_floor:.4g}"
    figure.suptitle(f"{words[end.kind]}{margin}")
    return written(figure, path)


def _draw_plateaus(axes: Any, end: Limit) -> None:
    """Draw the margin against log R: as far as the flow was followed in time, then the plateaus it rests at."""
    run, stops = end.trajectory, [p.log_r_to for p in end.plateaus]
    log_R = 2 * run.log_norm
    shown = np.isfinite(log_R)
    margin = np.maximum(run.measures.normalized_margin[shown], 0.0)
    last = stops[-1] + 0.2 * (stops[-1] - float(log_R[shown][0]))
    axes.plot(log_R[shown], margin, color=PLUS, lw=1.8, label="flow, followed in time")
    for k, plateau in enumerate(end.plateaus):
        span = [plateau.log_r_from, plateau.log_r_to]
        axes.plot(span, [plateau.margin] * 2, color=MINUS, ls="--", lw=1.8, label="plateau" if k == 0 else None)
        axes.annotate(
            f"{plateau.margin:.4g}", (span[1], plateau.margin), (-4, 5), textcoords="offset points", ha="right"
        )
    axes.plot([stops[-1], last], [end.margin] * 2, color=REST, lw=2.4, label="limit")
    axes.annotate(f"{end.margin:.4g}", (last, end.margin), (-4, 5), textcoords="offset points", ha="right")
    axes.set(xlabel=r"$\log R = \log|\theta|^2$", ylabel="normalised margin", ylim=(0, 1.15 * end.margin))
    axes.set_title("where the direction rests on its way")
    axes.legend(loc="lower right", fontsize=8)


# -- around a run ----------------------------------------------------------------------------------------


def _name_phases(figure: Figure, run: Trajectory) -> None:
    from matplotlib.patches import Patch

    steps: dict[str, int] = {}
    for phase in run.phases:
        steps[phase.name] = steps.get(phase.name, 0) + phase.steps
    patches = [
        Patch(
            facecolor=tint(name), edgecolor=REST, label=f"{name} ({count(n, 'piece' if name == 'early' else 'step')})"
        )
        for name, n in steps.items()
    ]
    if patches:
        figure.legend(handles=patches, loc="outside lower center", ncols=len(patches), fontsize=8, title="phases")


def _draw_events(axes: Any, run: Trajectory, width: float) -> None:
    kinds = [kind for kind in _PUSHED if (run.events["kind"] == kind).any()]
    for row, kind in enumerate(kinds):
        places = told_apart(run.events["log_time"][run.events["kind"] == kind], width)
        axes.vlines(places, row - 0.38, row + 0.38, color="black", lw=0.6)
    counts = [int((run.events["kind"] == kind).sum()) for kind in kinds]
    axes.set_yticks(range(len(kinds)), [f"{kind} ({n})" for kind, n in zip(kinds, counts, strict=True)], fontsize=7)
    axes.set_ylim(max(len(kinds), 1) - 0.5, -0.5)
    axes.set_title(count(run.events.size, "event") if run.events.size else "no events", fontsize=9)


# -- panels of a limit -----------------------------------------------------------------------------------


def draw_limit(axes: Any, end: Limit) -> None:
    """Draw the limit directions: in the plane with the samples and the boundary, else the cosines between them."""
    (_draw_plane if end.problem.data.d == 2 else _draw_cosines)(axes, end)


def _draw_plane(axes: Any, end: Limit) -> None:
    data, net = end.problem.data, end.network
    reach = 1.2 * float(data.norms.max()) or 1.0
    regions(axes, lambda X: net.scaled_outputs(X)[0], (-reach, reach))
    axes.plot([], [], color="black", lw=1.6, label="boundary of f > 0 and f < 0")
    samples(axes, data.X, data.y, 80.0, 2.0, ("positive samples", "negative samples"))
    size = np.linalg.norm(net.scaled_weights("first")[0], axis=1)
    for direction, length, out in zip(net.directions, size / max(float(size.max()), 1e-300), net.a, strict=True):
        colour, style = (PLUS, "-") if out > 0 else (MINUS, "--")
        arrow = {"arrowstyle": "-|>", "color": colour, "ls": style, "lw": 1.8, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", direction * length * 0.75 * reach, (0, 0), arrowprops=arrow, zorder=2)
    for sign, colour, style in ((1, PLUS, "-"), (-1, MINUS, "--")):
        if (np.sign(net.a) == sign).any():
            axes.plot([], [], color=colour, ls=style, label=f"neurons with a {'>' if sign > 0 else '<'} 0")
    axes.set(**axis_labels(data))
    axes.set_title("data, limit directions, boundary", fontsize=10)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=7)


def _draw_cosines(axes: Any, end: Limit) -> None:
    groups = _largest(end)
    directions = np.array([g.direction for g in groups]) if groups else end.network.directions[:_MOST_GROUPS]
    cosines = directions @ directions.T
    image = axes.imshow(cosines, vmin=-1, vmax=1, cmap="PuOr")
    names = [_group_name(k, g.sign) for k, g in enumerate(groups)] or [str(k) for k in range(len(directions))]
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    if len(names) <= 8:
        for (i, k), c in np.ndenumerate(cosines):
            axes.text(
                k, i, f"{c:.3g}", ha="center", va="center", fontsize=8, color="white" if abs(c) > 0.6 else "black"
            )
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set_title("cosines between the limit directions", fontsize=10)


def _largest(end: Limit) -> list[Any]:
    return sorted(end.living, key=lambda g: -g.share)[:_MOST_GROUPS]


def _group_name(k: int, sign: int) -> str:
    return f"{k}{'+' if sign > 0 else '-' if sign < 0 else ''}"


def _draw_shares(axes: Any, end: Limit) -> None:
    groups = sorted(end.groups, key=lambda g: (-g.share, -g.flow_share))
    shown = groups[:_MOST_GROUPS]
    if not shown:
        axes.text(0.5, 0.5, "no groups: the parameters stay bounded", ha="center", va="center", fontsize=9)
        axes.set_axis_off()
        return
    rows = np.arange(len(shown))
    colours = [PLUS if g.sign > 0 else MINUS if g.sign < 0 else REST for g in shown]
    hatches = ["" if g.sign > 0 else "////" for g in shown]
    axes.barh(rows, [g.share for g in shown], 0.6, color=colours, hatch=hatches, edgecolor="white", label="limit")
    axes.plot([g.flow_share for g in shown], rows, "D", color="black", ms=5, mfc="white", label="flow, at its end")
    for row, g in zip(rows, shown, strict=True):
        rate = "" if g.share > 0 or not np.isfinite(g.rate) else f", decays like $R^{{{g.rate - 1:.2g}}}$"
        axes.text(0.02, row - 0.42, f"{count(len(g.neurons), 'neuron')}{rate}", va="center", fontsize=7)
    axes.set_yticks(rows, [_group_name(k, g.sign) for k, g in enumerate(shown)])
    axes.set(ylim=(len(shown) - 0.3, -0.8), xlim=(0, 1.05), xlabel="share of the squared norm")
    more = f", {count(len(groups) - len(shown), 'smaller one')} left out" if len(groups) > len(shown) else ""
    axes.set_title(f"groups of neurons{more}", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="lower right", fontsize=8)


def _draw_sample_margins(axes: Any, end: Limit) -> None:
    data = end.problem.data
    net = (
        end.network.normalized(end.problem.train)
        if np.isfinite(end.network.log_norm(end.problem.train))
        else end.network
    )
    q = net.margins(data)
    order = np.argsort(q)
    for sign, colour, mark, word in ((1, PLUS, "+", "positive"), (-1, MINUS, "_", "negative")):
        at = np.flatnonzero(data.y[order] == sign)
        if at.size:
            axes.plot(at, q[order][at], mark, color=colour, ms=7, mew=1.4, label=f"{word} samples")
    if np.isfinite(end.margin):
        axes.axhline(
            end.margin, color="black", lw=0.8, ls=":", label="smallest of those felt" if end.loss_floor else "smallest"
        )
    axes.set(xlabel="samples, sorted", ylabel=r"$y_i f(x_i)$ of the network of unit norm")
    if data.n <= 12:
        axes.set_xticks(range(data.n), [str(i) for i in order])
        axes.set_xlabel("sample")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -0.03 * high), high)
    axes.set_title("margins of the samples", fontsize=10)
    axes.legend(loc="best", fontsize=8)
