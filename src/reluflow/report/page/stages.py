"""The time of the moving picture: the neurons turn, the network grows, the directions settle.

Nothing is computed differently in these stages: they say how fast the picture is shown. Half of a stage goes by the
clock of the run, the other half by how much moves, so that what lasts e^-3000 of a run can be seen too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...problem.axis import axis_place
from ...problem.types import Array

if TYPE_CHECKING:
    from ...dynamics import Trajectory

_GROWN = 0.99  # part of the first loss below which the network is no longer tiny
_TINY = 0.1  # largest output of a start for which the points pull as if there were no network
_ROOM = (0.4, 0.25, 0.35)  # of the three stages on the bar of time
_BY_CLOCK = 0.4  # part of a stage that goes by the clock
_SIZES = 0.05  # what a change of a norm by a factor e counts beside a turn by one radian
_NAMES = ("neurons turn", "the network grows", "directions settle")


class Stages(NamedTuple):
    """When records are shown.

    Attributes
    ----------
    places : array (T,)
        From 0 to 1, never decreasing.
    spans : tuple of (str, float, float)
        Name, first and last place of each stage there is.
    """

    places: Array
    spans: tuple[tuple[str, float, float], ...]


def stages(run: Trajectory) -> Stages:
    """Lay out the time of the moving picture.

    The first stage ends when the loss has fallen by a hundredth (a large start has none), the second when it is so
    small that every point is classified.

    >>> from reluflow import flow
    >>> found = stages(flow("EX1", {"log_time": 8.0}, width=10, progress=False))
    >>> [name for name, _, _ in found.spans], float(found.places[0]), float(found.places[-1])
    (['neurons turn', 'the network grows', 'directions settle'], 0.0, 1.0)
    """
    edges = _edges(run)
    parts = [(name, room, edges[k], edges[k + 1]) for k, (name, room) in enumerate(zip(_NAMES, _ROOM, strict=True))]
    parts = [part for part in parts if part[3] > part[2]]
    total = sum(room for _, room, _, _ in parts) or 1.0
    places, spans, at = np.zeros(len(run)), [], 0.0
    for name, room, first, last in parts:
        end = at + room / total
        inside = slice(first, last + 1)
        places[inside] = at + (end - at) * _pace(run, inside)
        spans.append((name, at, end))
        at = end
    if spans:
        places[-1] = 1.0
    return Stages(places, tuple(spans))


def place_of(run: Trajectory, found: Stages, log_times: Array) -> Array:
    """Return the places of other times of the run."""
    return np.asarray(np.interp(axis_place(log_times), _ticking(run, slice(None)), found.places))


def _edges(run: Trajectory) -> tuple[int, int, int, int]:
    """Return the records at which stages begin and end."""
    last = len(run) - 1
    fitted = np.log(run.problem.weight * float(run.problem.loss.value(0.0)))
    grown = run.log_loss < run.log_loss[0] + np.log(_GROWN)
    small = int(np.argmax(grown)) if grown.any() else last
    if float(np.abs(run.problem.net.margins(run.problem.data)).max()) > _TINY:
        small = 0
    done = run.log_loss < min(fitted, float(run.log_loss[0]))
    return 0, small, max(int(np.argmax(done)) if done.any() else last, small), last


def _pace(run: Trajectory, inside: slice) -> Array:
    """Return how much of a stage is over at each of its records, from 0 to 1."""
    heights = axis_place(run.log_norms[inside])
    heights = np.where(np.isfinite(heights), heights, 0.0)
    moved = np.abs(np.diff(run.directions[inside], axis=0)).sum(axis=(1, 2))
    moved += _SIZES * np.abs(np.diff(heights, axis=0)).sum(axis=1)
    clock = _ticking(run, inside)
    if np.isfinite(run.log_time[inside][-1]) and run.log_time[inside][-1] < 9.0:
        clock = np.exp(run.log_time[inside])  # t itself, as long as it can be told
    parts = [_share(np.concatenate([[0.0], np.cumsum(moved)])), _share(clock - clock[0])]
    return np.asarray((1 - _BY_CLOCK) * parts[0] + _BY_CLOCK * parts[1])


def _share(grown: Array) -> Array:
    whole = float(grown[-1])
    return grown / whole if whole > 0 else np.linspace(0.0, 1.0, grown.size)


def _ticking(run: Trajectory, inside: slice) -> Array:
    """Return the records on the axis of log time, the start a little before the first."""
    log_time = run.log_time[inside]
    finite = log_time[np.isfinite(log_time)]
    first = float(finite.min()) - 1.0 if finite.size else 0.0
    return axis_place(np.where(np.isfinite(log_time), log_time, first))
