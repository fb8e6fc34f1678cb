"""A flow and its limit as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics import Limit, Trajectory
from ..problem import Undecided
from ..problem.types import Array
from ..problem.words import count
from .alignment import _MOST, MINUS, PLUS, REST, _angle, axis_labels, check_picture, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BEND = 10.0  # up to e^10 an axis is logarithmic, beyond it the logarithm has a logarithmic axis
_DECADE = 6.0  # what a decade of the logarithm beyond the bend takes, in units of the logarithm before it
_TINTS = {"early": "#FFF3D6", "coupled": "#D8ECFA", "late": "#FFFFFF", "rest": "#E4E4E4"}
_BINS = 500  # places at which ticks of events are drawn; more are only ink
_MOST_GROUPS = 12
_FINE, _MOST_FINE = 80, 60  # parts of the axis of time in which a flow must have a record; most that are added
_PUSHED = ("activate", "deactivate", "slide", "touch", "flip", "die", "ridge")


def axis_place(log_value: Any) -> Array:
    r"""Place on an axis that shows both 1e-4 and :math:`e^{10^6}`.

    Between :math:`e^{-10}` and :math:`e^{10}` it is the logarithm, as on an ordinary logarithmic axis; beyond, equal
    lengths are decades of the logarithm. Infinities stay.

    >>> axis_place([-10.0, 0.0, 2.5, 10.0, 100.0, 1e6]).tolist()
    [-10.0, 0.0, 2.5, 10.0, 16.0, 40.0]
    """
    value = np.asarray(log_value, dtype=np.float64)
    beyond = _BEND + _DECADE * np.log10(np.maximum(np.abs(value), _BEND) / _BEND)
    return np.where(np.abs(value) <= _BEND, value, np.sign(value) * beyond)


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
    run = finer(run)
    plane = run.problem.data.d == 2
    figure = Figure(figsize=(11, 10.5 if plane else 7.5), layout="constrained")
    heights = (0.62, 2, 2, 2.6) if plane else (0.62, 2, 2)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    places = _time_places(run)
    strip = figure.add_subplot(grid[0, :])
    axes = [figure.add_subplot(grid[1 + k // 2, k % 2]) for k in range(4)]
    _draw_events(strip, run)
    _draw_loss(axes[0], run, places)
    _draw_margins(axes[1], run, places)
    _draw_rank(axes[2], run, places)
    _draw_norms(axes[3], run, places)
    if plane:
        axes.append(figure.add_subplot(grid[3, :]))
        _draw_directions(axes[-1], run, places)
    for k, one in enumerate([strip, *axes]):
        _time_axis(one, run, places, labelled=k >= (3 if not plane else len(axes)))
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
    if end.problem.data.d == 2:
        _draw_plane(left, end)
    else:
        _draw_cosines(left, end)
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


def finer(run: Trajectory) -> Trajectory:
    """Put records into the long first steps of a flow, which would be straight ramps on an axis of log time."""
    late = [phase.log_start for phase in run.phases if phase.name == "late"]
    if run.method != "flow" or len(run) < 2:
        return run
    places = _time_places(run)
    gap, wanted = (places[-1] - places[0]) / _FINE, []
    for k in np.flatnonzero((np.diff(places) > gap) & np.isfinite(run.log_time[:-1])):
        low, high = run.log_time[k : k + 2]
        if high < _BEND and (not late or high <= late[0]):
            wanted += np.linspace(low, high, int((high - low) / gap) + 2)[1:-1].tolist()
    try:
        nets = [(log_time, run.at(log_time=log_time)) for log_time in wanted[:_MOST_FINE]]
    except Undecided:  # where the flow cannot be integrated anew the records must do
        return run
    return run.with_records(nets)


# -- axes ------------------------------------------------------------------------------------------------


def _time_places(run: Trajectory) -> Array:
    """Places of the records; the start, whose log time is -inf, stands a little before all that happens."""
    happens = np.concatenate([run.log_time, run.events["log_time"]])
    happens = happens[np.isfinite(happens)]
    if happens.size == 0:
        return np.zeros(len(run))
    low, high = (float(axis_place(t)) for t in (happens.min(), happens.max()))
    start = low - 0.03 * max(high - low, 1.0)
    return np.where(np.isfinite(run.log_time), axis_place(np.fmax(run.log_time, happens.min())), start)


def _time_axis(axes: Any, run: Trajectory, places: Array, labelled: bool) -> None:
    low, high = float(places[0]), float(places[-1])
    high = high if high > low else low + 1.0
    axes.set_xlim(low, high)
    wide = axes.get_subplotspec().colspan.stop - axes.get_subplotspec().colspan.start
    _log_ticks(axes.xaxis, low, high, most=12 * wide)
    if high > _BEND > low:
        axes.axvline(_BEND, color=REST, lw=0.8, ls=(0, (1, 2)), zorder=0.5)
    for phase in run.phases:
        edges = [float(axis_place(t)) if np.isfinite(t) else low for t in (phase.log_start, phase.log_end)]
        axes.axvspan(*edges, color=_tint(phase.name), zorder=0, lw=0)
    if labelled:
        axes.set_xlabel(
            f"time t (log axis; beyond $e^{{{_BEND:g}}}$ a log axis of log t)" if high > _BEND else "time t"
        )
    else:
        axes.tick_params(labelbottom=axes.get_subplotspec().rowspan.start > 0)


def _tint(name: str) -> str:
    return _TINTS.get(name, "#FFFFFF")


def _log_ticks(axis: Any, low: float, high: float, most: int) -> None:
    """Ticks at powers of ten up to the bend and at e^(+-10^k) beyond it, as many as can stand side by side."""
    room, slack = (high - low) / most, 1e-6 * (high - low)
    stride = next(k for k in (1, 2, 4) if k * np.log(10) >= room or k == 4)
    marks = [(k * np.log(10), "1" if k == 0 else f"$10^{{{k}}}$") for k in range(-4, 5, 1) if k % stride == 0]
    stride = max(1, int(np.ceil(room / _DECADE)))
    for k in range(2, 300, stride):
        power = f"{10**k}" if k < 3 else f"10^{{{k}}}"
        place = float(axis_place(10.0**k))
        marks += [(-place, f"$e^{{-{power}}}$"), (place, f"$e^{{{power}}}$")]
        if place > max(abs(low), abs(high)):
            break
    marks = [mark for mark in marks if low - slack <= mark[0] <= high + slack]
    if len(marks) < 2:
        places = np.linspace(low, high, 5)[1:-1]
        marks = [(float(x), f"{np.exp(x):.3g}" if abs(x) <= _BEND else f"$e^{{{_log_value(x):.4g}}}$") for x in places]
    axis.set_ticks([mark[0] for mark in marks], [mark[1] for mark in marks])


def _log_value(place: float) -> float:
    """Turn a place beyond the bend back into a logarithm."""
    return float(np.sign(place) * _BEND * 10 ** ((abs(place) - _BEND) / _DECADE))


def _name_phases(figure: Figure, run: Trajectory) -> None:
    from matplotlib.patches import Patch

    steps: dict[str, int] = {}
    for phase in run.phases:
        steps[phase.name] = steps.get(phase.name, 0) + phase.steps
    patches = [
        Patch(
            facecolor=_tint(name), edgecolor=REST, label=f"{name} ({count(n, 'piece' if name == 'early' else 'step')})"
        )
        for name, n in steps.items()
    ]
    if patches:
        figure.legend(handles=patches, loc="outside lower center", ncols=len(patches), fontsize=8, title="phases")


# -- panels of a run -------------------------------------------------------------------------------------


def _draw_events(axes: Any, run: Trajectory) -> None:
    kinds = [kind for kind in _PUSHED if (run.events["kind"] == kind).any()]
    for row, kind in enumerate(kinds):
        at = run.events["log_time"][run.events["kind"] == kind]
        places = axis_place(at[np.isfinite(at)])
        if places.size:
            step = max(float(np.ptp(places)) / _BINS, 1e-9)
            places = np.unique(np.round(places / step)) * step
            axes.vlines(places, row - 0.38, row + 0.38, color="black", lw=0.6)
    counts = [int((run.events["kind"] == kind).sum()) for kind in kinds]
    axes.set_yticks(range(len(kinds)), [f"{kind} ({n})" for kind, n in zip(kinds, counts, strict=True)], fontsize=7)
    axes.set_ylim(max(len(kinds), 1) - 0.5, -0.5)
    axes.set_title(count(run.events.size, "event") if run.events.size else "no events", fontsize=9)


def _draw_loss(axes: Any, run: Trajectory, places: Array) -> None:
    heights = axis_place(run.log_loss)
    axes.plot(places, heights, color="black", lw=1.5)
    _log_axis(axes, heights)
    axes.set_title("training loss", fontsize=9)


def _log_axis(axes: Any, heights: Array) -> None:
    finite = heights[np.isfinite(heights)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (-1.0, 1.0)
    pad = 0.05 * max(high - low, 1.0)
    axes.set_ylim(low - pad, high + pad)
    _log_ticks(axes.yaxis, low - pad, high + pad, most=9)


def _visible(run: Trajectory, places: Array) -> Array:
    """Choose the records that can be told apart in the picture and are not the zero network."""
    seen = np.searchsorted(places, np.linspace(places[0], places[-1], _BINS))
    seen = np.union1d(seen[seen < len(run)], [0, len(run) - 1])
    return np.asarray(seen[np.isfinite(run.log_norm[seen])])


def _draw_margins(axes: Any, run: Trajectory, places: Array) -> None:
    seen, _problem = _visible(run, places), run.problem
    normal = run.measures.normalized_margin[seen]
    smooth = run.measures.smoothed_margin[seen]
    low, high = float(normal.min(initial=0.0)), float(normal.max(initial=0.0))
    pad = 0.06 * (high - low) or 1.0
    axes.set_ylim(low - pad, high + pad)
    smooth[~(smooth >= low - pad)] = np.nan  # far below while the loss is large
    axes.plot(places[seen], normal, color=PLUS, lw=1.8, label="normalised")
    axes.plot(places[seen], smooth, color=MINUS, lw=1.8, ls="--", label="smoothed")
    axes.axhline(0.0, color=REST, lw=0.6, zorder=0.5)
    axes.legend(loc="lower right", fontsize=8)
    axes.set_title("margin", fontsize=9)


def _draw_rank(axes: Any, run: Trajectory, places: Array) -> None:

    seen = [int(k) for k in _visible(run, places) if np.isfinite(run.log_norms[k]).any()]
    axes.plot(places[seen], run.measures.stable_rank[seen], color="black", lw=1.5)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.95), max(high, 1.05))
    axes.set_title("stable rank of the first layer", fontsize=9)


def _shown(run: Trajectory) -> list[int]:
    """Neurons drawn: the first ones that are not zero."""
    return [int(j) for j in np.flatnonzero(np.isfinite(run.log_norms).any(axis=0))][:_MOST]


def _look(run: Trajectory, j: int) -> tuple[str, str]:
    sign = run.signs[-1, j]
    return (PLUS, "-") if sign > 0 else (MINUS, "--") if sign < 0 else (REST, ":")


def _name_signs(axes: Any, where: str) -> None:
    for colour, style, word in ((PLUS, "-", "a > 0"), (MINUS, "--", "a < 0")):
        axes.plot([], [], color=colour, ls=style, label=word)
    axes.legend(loc=where, fontsize=8, framealpha=0.9)


def _draw_norms(axes: Any, run: Trajectory, places: Array) -> None:
    heights, shown = axis_place(run.log_norms), _shown(run)
    for j in shown:
        colour, style = _look(run, j)
        axes.plot(places, np.where(np.isfinite(heights[:, j]), heights[:, j], np.nan), color=colour, ls=style, lw=0.8)
    _log_axis(axes, heights[:, shown])
    more = f", first {_MOST} of {run.p}" if run.p > _MOST else ""
    axes.set_title(f"norms of the neurons $|w_j|${more}", fontsize=9)
    _name_signs(axes, "upper left")


def _draw_directions(axes: Any, run: Trajectory, places: Array) -> None:
    angles = np.degrees(_angle(run.directions)) % 360.0
    X = run.problem.data.X[run.problem.data.norms > 0]
    if len(X) <= 60:  # more lines would hide the neurons
        walls = np.degrees(_angle(X))[:, None] + np.array([90.0, -90.0])
        axes.hlines(walls.ravel() % 360.0, places[0], places[-1], color=REST, lw=0.6, ls=":")
    for j in _shown(run):
        colour, style = _look(run, j)
        path = np.where(run.directions[:, j].any(axis=1), angles[:, j], np.nan)
        jumps = np.flatnonzero(np.abs(np.diff(path)) > 180.0) + 1  # do not draw across the jump at 360
        axes.plot(np.insert(places, jumps, np.nan), np.insert(path, jumps, np.nan), color=colour, ls=style, lw=0.9)
    axes.set(ylim=(0, 360), ylabel="degrees")
    axes.set_yticks(range(0, 361, 45))
    dotted = "; dotted: where an activation changes" if len(X) <= 60 else ""
    axes.set_title(f"directions of the neurons{dotted}", fontsize=9)
    _name_signs(axes, "upper right")


# -- panels of a limit -----------------------------------------------------------------------------------


def _draw_plane(axes: Any, end: Limit) -> None:
    data, net = end.problem.data, end.network
    reach = 1.2 * float(data.norms.max()) or 1.0
    line = np.linspace(-reach, reach, 301)
    grid = np.stack(np.meshgrid(line, line), axis=-1)
    values = net.scaled_outputs(grid.reshape(-1, 2))[0].reshape(grid.shape[:2])
    tiny = 1e-6 * float(np.abs(values).max())
    if tiny > 0:  # a ReLU network can vanish on a whole cone, which stays white
        levels = [-np.inf, -tiny, tiny, np.inf]
        axes.contourf(line, line, values, levels=levels, colors=["#FBE3D4", "#FFFFFF", "#D8ECFA"], zorder=0)
        axes.contour(line, line, values, levels=[-tiny, tiny], colors="black", linewidths=1.0, linestyles="-", zorder=1)
        axes.plot([], [], color="black", lw=1.0, label="boundary of f > 0 and f < 0")
    for sign, colour, mark, word in ((1, PLUS, "+", "positive"), (-1, MINUS, "_", "negative")):
        at = data.y == sign
        if at.any():
            axes.scatter(*data.X[at].T, c=colour, marker=mark, s=80, lw=2.0, label=f"{word} samples", zorder=3)
    size = np.linalg.norm(net.W * np.exp(net.log_scales[0] - net.log_scales[0].max())[:, None], axis=1)
    for direction, length, out in zip(net.directions, size / max(float(size.max()), 1e-300), net.a, strict=True):
        colour, style = (PLUS, "-") if out > 0 else (MINUS, "--")
        arrow = {"arrowstyle": "-|>", "color": colour, "ls": style, "lw": 1.8, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", direction * length * 0.75 * reach, (0, 0), arrowprops=arrow, zorder=2)
    for sign, colour, style in ((1, PLUS, "-"), (-1, MINUS, "--")):
        if (np.sign(net.a) == sign).any():
            axes.plot([], [], color=colour, ls=style, label=f"neurons with a {'>' if sign > 0 else '<'} 0")
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", **axis_labels(data))
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
