"""Pictures of what was measured. Every solver has a colour, a mark and a line of its own, so that print is enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.measure import modules

Cell = dict[str, Any]
# The colours of Okabe and Ito, which differ for every kind of sight, and darker ones; no two share colour and mark.
_COLOURS = (
    *("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00"),
    *("#56b4e9", "#7a5c00", "#6a3d9a", "#777777", "#8c1515", "#1b4d3e"),
)
_MARKS, _LINES = "osD^vPX<>*hp", ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
_FINEST = 1e-17


@cache
def labels() -> dict[str, str]:
    """Return the name of every solver as it is written; ours first, the others in order."""
    found = {name: solver.LABEL for name, solver in modules("solvers").items()}
    return {"reluflow": found.pop("reluflow"), **found}


def style(name: str, among: tuple[str, ...]) -> dict[str, Any]:
    """Return how a line looks."""
    k = among.index(name)
    return {
        "color": _COLOURS[k % len(_COLOURS)],
        "marker": _MARKS[k % len(_MARKS)],
        "linestyle": _LINES[k % len(_LINES)],
        "markersize": 5,
        "linewidth": 2.2 if k == 0 else 1.2,
        "zorder": 5 if k == 0 else 3,
    }


def _panels(count: int, width: int = 3) -> tuple[Figure, list[Any]]:
    columns = min(count, width)
    rows = -(-count // columns)
    figure = Figure(figsize=(4.0 * columns, 3.2 * rows + 0.7), layout="constrained", dpi=110)
    axes = list(np.atleast_1d(figure.subplots(rows, columns)).ravel())
    for spare in axes[count:]:
        spare.set_axis_off()
    for one in axes:
        one.grid(True, which="major", color="#dddddd", linewidth=0.6)
        one.tick_params(labelsize=9)
    return figure, axes[:count]


def _ticks(*several: Any) -> None:
    """Write numbers as people do, 1, 2, 5 of a decade where there are few decades, and nothing between."""
    for axis in several:
        low, high = sorted(axis.get_view_interval())
        decades = np.log10(high / low)
        axis.set_minor_formatter(NullFormatter())
        if decades < 5:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 1.6 else (1.0,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _save(figure: Figure, handles: dict[str, Any], path: Path) -> None:
    if handles:
        columns = min(len(handles), max(1, int(figure.get_figwidth() / 2)))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, fontsize=9)
    figure.savefig(path)


def precision(cells: list[Cell], path: Path) -> str:
    """Error against processor seconds, a panel a case."""
    among = tuple(labels())
    cases = [
        case
        for case in dict.fromkeys(cell["case"] for cell in cells)
        if len({c["solver"] for c in cells if c["case"] == case}) > 1
    ]
    if not cases:
        return ""
    figure, panels = _panels(len(cases))
    handles: dict[str, Any] = {}
    for axes, case in zip(panels, cases, strict=True):
        lost = []
        for solver in among:
            some = [cell for cell in cells if cell["case"] == case and cell["solver"] == solver]
            points = _points(some)
            if points:
                (line,) = axes.plot(*zip(*points, strict=True), **_sparse(style(solver, among), points, some))
                handles.setdefault(labels()[solver], line)
            elif some and some[-1]["status"] == "done":  # what the others are held against
                line = axes.axvline(some[-1]["cpu"], **{**style(solver, among), "marker": ""})
                handles.setdefault(f"{labels()[solver]}, exact", line)
            elif some and some[-1]["status"] in ("out of time", "failed"):
                lost.append(f"{labels()[solver]}: {some[-1]['status']}")
        axes.set(xscale="log", yscale="log", xlabel="processor seconds", ylabel="error")
        axes.set_title(case, fontsize=10)
        _ticks(axes.xaxis)
        if lost:
            note = {"fontsize": 7.5, "va": "top", "ha": "right", "bbox": {"fc": "white", "ec": "#bbbbbb", "pad": 2}}
            axes.text(0.98, 0.97, "\n".join(lost), transform=axes.transAxes, **note, zorder=9)
    _save(figure, handles, path)
    return (
        "Error against processor seconds: lower and further left is better. Who gave no answer is named in the panel."
    )


def _points(some: list[Cell]) -> list[tuple[float, float]]:
    """Return seconds and errors: of a course if there is one, else of the settings."""
    found = []
    rtol = some[0]["setting"][1] if some and isinstance(some[0]["setting"], list) else None
    for cell in some:
        if cell["status"] == "done" and (rtol is None or cell["setting"][1] == rtol):  # one line, one tolerance
            found += [(p[0], p[2]) for p in cell["points"]] or [(cell["cpu"], cell["error"])]
    return [(cpu, max(off, _FINEST)) for cpu, off in found if off is not None and np.isfinite(off) and cpu > 0]


def _sparse(look: dict[str, Any], points: list[Any], some: list[Cell]) -> dict[str, Any]:
    """Mark a long course here and there only; join settings of a tolerance, and leave single answers single."""
    return {**look, "markevery": max(1, len(points) // 8)} if some[-1]["points"] else look


Lines = dict[str, dict[str, list[tuple[float, float]]]]


def _lines(cells: list[Cell]) -> tuple[Lines, bool]:
    """Return size -> who -> (size, seconds), and whether who is a solver (else it is a kind of data)."""
    cells = [cell for cell in cells if cell["status"] == "done" and cell["sizes"].get("varied")]
    solvers = {cell["sizes"]["varied"] for cell in cells} <= set("ndp")
    found: Lines = {name: {} for name in ("n", "d", "p", "n p d", "events")}
    for cell in cells:
        varied = cell["sizes"]["varied"]
        size, who = (varied, labels()[cell["solver"]]) if solvers else ("n p d", varied)
        found[size].setdefault(who, []).append((cell["sizes"][size], cell["cpu"]))
        if cell["figures"].get("events"):
            found["events"].setdefault(who, []).append((cell["figures"]["events"], cell["cpu"]))
    first = list(labels().values()).index if solvers else str
    order = {name: sorted(lines, key=first) for name, lines in found.items() if lines}
    return {name: {who: sorted(found[name][who]) for who in some} for name, some in order.items()}, solvers


def _fit(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return exponent and constant of the power law of least squares in the logarithms."""
    sizes, seconds = np.log(np.array(points).T)
    power, constant = np.polyfit(sizes, seconds, 1)
    return float(power), float(constant)


def exponents(cells: list[Cell]) -> list[tuple[str, str, float]]:
    """Return who, against what, with which exponent."""
    found, _ = _lines(cells)
    return [(who, name, _fit(points)[0]) for name, lines in found.items() for who, points in lines.items()]


def growth(cells: list[Cell], path: Path) -> str:
    """Seconds against sizes and events on logarithmic axes, with fitted exponents."""
    panels, solvers = _lines(cells)
    if not panels:
        return ""
    figure, axes = _panels(len(panels), 2)
    for one, (name, lines) in zip(axes, panels.items(), strict=True):
        for who, points in lines.items():
            look = style(who, tuple(labels().values()) if solvers else tuple(lines))
            sizes = np.array([size for size, _ in points])
            power, constant = _fit(points)
            one.plot(
                sizes,
                [seconds for _, seconds in points],
                label=f"{who}: {name.replace(' ', '')}$^{{{power:.2f}}}$",
                **{**look, "linestyle": "none"},
            )
            one.plot(sizes, np.exp(constant) * sizes**power, **{**look, "marker": "", "linewidth": 1.2})
        one.set(xscale="log", yscale="log", xlabel=name, ylabel="processor seconds")
        _ticks(one.xaxis, one.yaxis)
        one.legend(fontsize=8)
    _save(figure, {}, path)
    return "Processor seconds against size; lines and exponents are least squares on logarithms."


def memory(cells: list[Cell], path: Path) -> str:
    """Memory beyond what the process held, a row a case."""
    cells = [cell for cell in cells if cell["status"] == "done" and cell["memory"] is not None]
    cases, among = list(dict.fromkeys(cell["case"] for cell in cells)), tuple(labels())
    if not cases:
        return ""
    figure = Figure(figsize=(8, 0.32 * len(cases) + 1.7), layout="constrained", dpi=110)
    axes = figure.subplots()
    handles: dict[str, Any] = {}
    for solver in among:
        found: dict[str, float] = {}
        for cell in cells:
            if cell["solver"] == solver:
                found[cell["case"]] = max(cell["memory"], found.get(cell["case"], 0.1))
        if found:
            look = {**style(solver, among), "linestyle": "none", "markersize": 7, "alpha": 0.85}
            (handles[labels()[solver]],) = axes.plot(
                list(found.values()), [cases.index(case) for case in found], **look
            )
    axes.set_yticks(range(len(cases)), cases, fontsize=9)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="MB beyond what the process held before (0.1: or less)")
    axes.grid(True, color="#dddddd", linewidth=0.6)
    _save(figure, handles, path)
    return "Memory at the peak, beyond what the process held before the solver was called."


DRAWN: dict[str, Callable[[list[Cell], Path], str]] = {"precision": precision, "growth": growth, "memory": memory}
