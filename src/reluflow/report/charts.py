"""What a run did over time, as charts that any painter can draw: loss, margin, rank, norms, directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..margins import stable_rank
from ..problem import Undecided
from ..problem.axis import BEND, axis_place
from ..problem.types import Array, Index
from .axis import Tick, linear_ticks, log_ticks, spread

if TYPE_CHECKING:
    from ..dynamics import Limit, Trajectory
    from ..problem import Network
    from ..theory import Prediction

Style = Literal["main", "second", "predicted", "limit", "best", "plus", "minus", "rest", "wall"]
Scale = Literal["linear", "log", "degrees"]

_TINTS = {"early": "#FFF3D6", "coupled": "#D8ECFA", "late": "#FFFFFF", "rest": "#E4E4E4"}
_BINS = 500  # places of the axis of time that can be told apart; more are only ink
_FINE, _MOST_FINE = 80, 60  # parts of the axis of time in which a flow must have a record; most that are added
_MOST_NEURONS = 100
_MOST_WALLS = 60  # samples whose hyperplanes are drawn; more lines would hide the neurons
_MOST_TOLD = 8  # predicted directions drawn
_SAME = 1e-9  # relative difference up to which two predicted margins are one line
_SIGNS: tuple[tuple[Style, str], ...] = (("plus", "a > 0"), ("minus", "a < 0"))


@dataclass(frozen=True, eq=False)
class Curve:
    """Points that are joined; a value that is not finite interrupts it."""

    x: Array
    y: Array
    style: Style


@dataclass(frozen=True)
class Level:
    """A horizontal line, with a name where it has one of its own."""

    value: float
    style: Style
    name: str = ""


@dataclass(frozen=True)
class Band:
    """A shaded range of the horizontal axis: a phase of the computation."""

    start: float
    end: float
    phase: str

    @property
    def colour(self) -> str:
        """The shade."""
        return tint(self.phase)


@dataclass(frozen=True)
class Axis:
    """What an axis measures and shows; on a log scale values are places of `axis_place`."""

    label: str
    range: tuple[float, float]
    scale: Scale = "linear"

    def ticks(self, most: int) -> list[Tick]:
        """Name some values, about ``most``."""
        if self.scale == "degrees":
            return [Tick(float(v), f"{v}°") for v in range(0, 361, 45)]
        return (log_ticks if self.scale == "log" else linear_ticks)(*self.range, most)

    @property
    def bent(self) -> bool:
        """Whether the axis shows the place from which on the logarithm has a logarithmic axis."""
        return self.scale == "log" and self.range[0] < BEND < self.range[1]


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves and levels between two axes, over shaded bands; marks stand at the upper edge; the key explains them."""

    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...] = ()
    levels: tuple[Level, ...] = ()
    key: tuple[tuple[Style, str], ...] = ()
    bands: tuple[Band, ...] = ()
    marks: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Clock:
    """The time axis that all charts of a run share.

    Attributes
    ----------
    places : array (T,)
        Places of the records; the start, whose log time is -inf, stands a little before all that happens.
    seen : int array
        Records that can be told apart and are not the zero network.
    axis : Axis
    bands : tuple of Band
    marks : array
        Places of the events, those that cannot be told apart only once.
    """

    places: Array
    seen: Index
    axis: Axis
    bands: tuple[Band, ...]
    marks: Array

    @property
    def range(self) -> tuple[float, float]:
        """First and last place."""
        return self.axis.range


def tint(phase: str) -> str:
    """Return the colour of a phase."""
    return _TINTS.get(phase, "#FFFFFF")


def clock(run: Trajectory) -> Clock:
    """Lay out the axis of time."""
    places = _places(run)
    low, high = float(places[0]), float(places[-1])
    high = high if high > low else low + 1.0
    label = "time t (logarithmic; beyond e¹⁰, dotted, a log axis of log t)" if high > BEND else "time t"
    edges = [[float(axis_place(t)) if np.isfinite(t) else low for t in (f.log_start, f.log_end)] for f in run.phases]
    bands = tuple(Band(start, end, f.name) for (start, end), f in zip(edges, run.phases, strict=True))
    seen = np.searchsorted(places, np.linspace(places[0], places[-1], _BINS))
    seen = np.union1d(seen[seen < len(run)], [0, len(run) - 1])
    return Clock(
        places,
        np.asarray(seen[np.isfinite(run.log_norm[seen])], dtype=np.intp),
        Axis(label, (low, high), "log"),
        bands,
        told_apart(run.events["log_time"], high - low),
    )


def told_apart(log_times: Array, width: float) -> Array:
    """Return the places of these times on an axis of this width, those that cannot be told apart only once."""
    step = width / _BINS
    return np.unique(np.round(axis_place(log_times[np.isfinite(log_times)]) / step)) * step


def _places(run: Trajectory) -> Array:
    happens = np.concatenate([run.log_time, run.events["log_time"]])
    happens = happens[np.isfinite(happens)]
    if happens.size == 0:
        return np.zeros(len(run))
    low, high = (float(axis_place(t)) for t in (happens.min(), happens.max()))
    start = low - 0.03 * max(high - low, 1.0)
    return np.where(np.isfinite(run.log_time), axis_place(np.fmax(run.log_time, happens.min())), start)


def finer(run: Trajectory) -> Trajectory:
    """Put records into the long first steps of a flow, which would be straight ramps on an axis of log time."""
    late = [phase.log_start for phase in run.phases if phase.name == "late"]
    if run.method != "flow" or len(run) < 2:
        return run
    places = _places(run)
    gap, wanted = (places[-1] - places[0]) / _FINE, []
    for k in np.flatnonzero((np.diff(places) > gap) & np.isfinite(run.log_time[:-1])):
        low, high = run.log_time[k : k + 2]
        if high < BEND and (not late or high <= late[0]):
            wanted += np.linspace(low, high, int((high - low) / gap) + 2)[1:-1].tolist()
    try:
        nets = [(log_time, run.at(log_time=log_time)) for log_time in wanted[:_MOST_FINE]]
    except Undecided:  # where the flow cannot be integrated anew the records must do
        return run
    return run.with_records(nets)


def coarser(run: Trajectory, most: int) -> Trajectory:
    """Leave out records, so that ``most`` are left, spread evenly over the axis of time; first and last stay."""
    if len(run) <= most:
        return run
    places = _places(run)
    kept = np.searchsorted(places, np.linspace(places[0], places[-1], most - 1))
    kept = np.union1d(np.clip(kept, 0, len(run) - 1), [0, len(run) - 1])
    names = ("log_time", "log_loss", "directions", "log_norms", "log_outs", "signs")
    return replace(run, **{name: getattr(run, name)[kept] for name in names})


def over_time(
    run: Trajectory, predictions: Sequence[Prediction] = (), end: Limit | None = None, most: int | None = None
) -> list[Chart]:
    """Describe everything that has time on its horizontal axis, with what was predicted and found to come.

    ``most`` is for who has no time: so many records will do, and none is put between them.
    """
    run = finer(run) if most is None else coarser(run, most)
    at = clock(run)
    charts = [_loss(run, at), _margins(run, at, predictions, end), _rank(run, at, predictions, end), _norms(run, at)]
    if run.problem.data.d == 2:
        charts.append(_directions(run, at, predictions))
    return charts


def _chart(
    at: Clock,
    title: str,
    y: Axis,
    curves: Sequence[Curve],
    levels: Sequence[Level] = (),
    key: Sequence[tuple[Style, str]] = (),
) -> Chart:
    named = [(level.style, f"{level.name}: {level.value:.6g}") for level in levels if level.name]
    return Chart(title, at.axis, y, tuple(curves), tuple(levels), (*key, *named), at.bands, at.marks)


def _loss(run: Trajectory, at: Clock) -> Chart:
    heights = axis_place(run.log_loss)
    y = Axis("loss L (logarithmic)", spread(heights, least=0.2), "log")
    return _chart(at, "training loss", y, [Curve(at.places, heights, "main")])


def margin_levels(predictions: Sequence[Prediction], end: Limit | None) -> list[Level]:
    """Return the values that the margin may tend to."""
    told: dict[float, list[str]] = {}
    for one in predictions:
        if one.function is not None and one.margin is not None:
            twin = next((v for v in told if abs(v - one.margin) <= _SAME * abs(v)), one.margin)
            told.setdefault(twin, []).append(one.claim)
    shown = [Level(value, "predicted", f"predicted by {', '.join(names)}") for value, names in told.items()]
    if end is not None and end.kind == "margin":
        shown.append(Level(end.margin, "limit", "limit found"))
        if end.optimum is not None:
            shown.append(Level(end.optimum.lower, "best", "largest of any network"))
    return shown


def _margins(run: Trajectory, at: Clock, predictions: Sequence[Prediction], end: Limit | None) -> Chart:
    seen = at.seen
    normal = run.measures.normalized_margin[seen]
    smooth = run.measures.smoothed_margin[seen]
    levels = margin_levels(predictions, end)
    homogeneity = "|θ|²" if run.problem.train == "both" else "|θ|"
    y = Axis(f"min yᵢ f(xᵢ) / {homogeneity}", spread(normal, 0.0, *(level.value for level in levels)))
    smooth[~(smooth >= y.range[0])] = np.nan  # far below while the loss is large
    curves = [Curve(at.places[seen], normal, "main")]
    key: list[tuple[Style, str]] = [("main", "normalised")]
    if np.isfinite(smooth).any():
        curves.append(Curve(at.places[seen], smooth, "second"))
        key.append(("second", "smoothed"))
    return _chart(at, "margin", y, curves, levels, key)


def _rank(run: Trajectory, at: Clock, predictions: Sequence[Prediction], end: Limit | None) -> Chart:
    seen = [int(k) for k in at.seen if np.isfinite(run.log_norms[k]).any()]
    values = run.measures.stable_rank[seen]
    levels = [
        Level(float(p.bounds["stable_rank"]), "predicted", f"predicted by {p.claim}")
        for p in predictions
        if "stable_rank" in p.bounds
    ]
    if end is not None and end.network.W.any():
        levels.append(Level(float(stable_rank(end.network)), "limit", "limit found"))
    y = Axis("|W|²F / |W|²₂", spread(values, 1.0, *(level.value for level in levels)))
    curves = [Curve(at.places[seen], values, "main")] if seen else []
    key: list[tuple[Style, str]] = [("main", "of the flow")] if levels else []
    return _chart(at, "stable rank of the first layer", y, curves, levels, key)


def shown_neurons(run: Trajectory, most: int = _MOST_NEURONS) -> Index:
    """Choose neurons to draw: not zero, and spread evenly over all."""
    live = np.flatnonzero(np.isfinite(run.log_norms).any(axis=0))
    return live[np.linspace(0, live.size - 1, most).astype(np.intp)] if live.size > most else live


def _style(run: Trajectory, neuron: int) -> Style:
    sign = run.signs[-1, neuron]
    return "plus" if sign > 0 else "minus" if sign < 0 else "rest"


def _some(run: Trajectory, drawn: int) -> str:
    return f" ({drawn} of {run.p} drawn)" if drawn < run.p else ""


def _norms(run: Trajectory, at: Clock) -> Chart:
    seen, shown = at.seen, shown_neurons(run)
    heights = axis_place(run.log_norms[np.ix_(seen, shown)])
    curves = [Curve(at.places[seen], heights[:, k], _style(run, j)) for k, j in enumerate(shown)] if seen.size else []
    y = Axis("|wⱼ| (logarithmic)", spread(heights), "log")
    return _chart(at, f"norms of the neurons{_some(run, shown.size)}", y, curves, (), _SIGNS)


def degrees(directions: Any) -> Array:
    """Angle of vectors of the plane, from 0 to 360.

    >>> degrees([[1.0, 0.0], [0.0, -2.0]]).tolist()
    [0.0, 270.0]
    """
    given = np.asarray(directions, dtype=np.float64)
    return np.asarray(np.degrees(np.arctan2(given[..., 1], given[..., 0])) % 360.0)


def unbroken(x: Array, angles: Array) -> tuple[Array, Array]:
    """Interrupt a curve of angles where it jumps from 360 to 0 or back, which is no jump."""
    jumps = np.flatnonzero(np.abs(np.diff(angles)) > 180.0) + 1
    return np.insert(x, jumps, np.nan), np.insert(angles, jumps, np.nan)


def told_network(predictions: Sequence[Prediction]) -> tuple[str, Network] | None:
    """Find the first claim that names the limit as a network, and that network."""
    return next(((p.claim, p.network) for p in predictions if p.function is not None and p.network is not None), None)


def _directions(run: Trajectory, at: Clock, predictions: Sequence[Prediction]) -> Chart:
    """Draw the directions of the neurons in the plane, in degrees."""
    seen, shown, key, levels = at.seen, shown_neurons(run), list(_SIGNS), []
    curves = []
    for j in shown:
        moving = run.directions[seen, j]
        x, y = unbroken(at.places[seen], np.where(moving.any(axis=1), degrees(moving), np.nan))
        curves.append(Curve(x, y, _style(run, j)))
    X = run.problem.data.X[run.problem.data.norms > 0]
    if len(X) <= _MOST_WALLS:
        walls = (degrees(X)[:, None] + np.array([90.0, -90.0])) % 360.0
        levels += [Level(float(v), "wall") for v in np.unique(walls)]
        key.append(("wall", "an activation changes"))
    told = told_network(predictions)
    if told is not None:
        angles = np.unique(np.round(degrees(told[1].directions[told[1].W.any(axis=1)]), 6))
        levels += [Level(float(v), "predicted") for v in angles[:_MOST_TOLD]]
        key.append(("predicted", "predicted limits"))
    title = f"directions of the neurons{_some(run, shown.size)}"
    return _chart(at, title, Axis("angle of wⱼ", (0.0, 360.0), "degrees"), curves, levels, key)
