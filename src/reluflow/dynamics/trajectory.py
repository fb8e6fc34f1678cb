"""A run of training, continuous or discrete: what `flow` and `descend` return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..problem import Dataset, Network, Problem, ProblemError, check_time
from ..problem.checks import is_number
from ..problem.files import read_npz, writing
from ..problem.show import Shown
from ..problem.types import Array, Signs
from ..problem.words import count

if TYPE_CHECKING:
    import xarray

    from .early.alignment import Alignment
    from .export import Frames
    from .measures import Measures

Events = npt.NDArray[np.void]

#: One row an event. Kinds: ``activate``, ``deactivate``: the neuron crosses the hyperplane of the sample; ``slide``:
#: it begins to slide on it; ``touch``: it comes to lie on it without being held; ``flip`` (sample -1): the output
#: weight changes sign; ``die``, ``origin`` (sample -1): w comes to 0 and stays, or passes; ``ridge``: the flow is not
#: unique there (sample -1: somewhere in the early phase).
EVENT = np.dtype([("log_time", "f8"), ("neuron", "i8"), ("sample", "i8"), ("kind", "U10")])
LATEST = 1e10  #: largest log time that a run can be asked for

SHRUNK = 1e5  #: logarithm of how much a neuron may shrink in a flow before it is left as it is


class Phase(NamedTuple):
    """A stretch of a run that was computed in one way.

    ``name`` is ``early`` (exact alignment), ``coupled`` (explicit steps), ``late`` (implicit steps in log time),
    ``rest`` (nothing moves any more) or, for discrete runs, the name of the method.
    """

    name: str
    log_start: float
    log_end: float
    steps: int


class Dense(Protocol):
    """What gives the network between two records without integrating again."""

    def at(self, log_time: float) -> Network | None:
        """Return the network at a log time; None where it is not known."""


#: By method: the network of a run at a log time after one of its records.
Between = Callable[["Trajectory", int, float], Network]
_BETWEEN: dict[str, Between] = {}


def knows_between(method: str) -> Callable[[Between], Between]:
    """Register how runs of a method are evaluated between their records; of other methods the record before is taken.

    Who makes such runs does so. A run is data and knows no integrator.
    """

    def register(function: Between) -> Between:
        _BETWEEN[method] = function
        return function

    return register


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Shown):
    r"""Snapshots of a network in training, with everything that happened in between.

    Time may be e^(10^6) and weights e^-3000, so logarithms are kept: neuron j at record k has first-layer weights
    ``exp(log_norms[k, j]) * directions[k, j]`` and output weight ``signs[k, j] * exp(log_outs[k, j])``.

    Attributes
    ----------
    problem : Problem
    log_time : ndarray, shape (T,)
        Logarithm of the time of each record, in the clock of the problem; -inf for the start. For discrete runs time
        is the sum of the steps taken.
    log_loss : ndarray, shape (T,)
    directions : ndarray, shape (T, p, d)
        :math:`w_j/|w_j|`; zero for a zero neuron.
    log_norms, log_outs : ndarray, shape (T, p)
        :math:`\log |w_j|` and :math:`\log |a_j|`; -inf for zero.
    signs : ndarray of int8, shape (T, p)
        Sign of the output weights.
    events : structured ndarray
        Fields ``log_time``, ``neuron``, ``sample``, ``kind``, in order of time (empty for discrete runs).
    phases : tuple of Phase
    method : str
        ``"flow"``, or the name of the discrete method.
    settings : mapping
        How the run was made: tolerances, steps, seeds, the subgradient at 0; plain numbers and strings.
    early : Alignment or None
        The exact early phase that a flow began with; it follows from the problem, and is not written to files.
    dense : Dense or None
        The polynomials of the coupled phase of a flow, with which `at` evaluates it; not written to files.

    Examples
    --------
    >>> from reluflow import flow
    >>> run = flow("ML-F6", {"loss": 1e-2}, width=10, seed=0)
    >>> isinstance(run, Trajectory), run.directions.shape == (len(run), 10, 2), bool(run.loss[-1] <= 1.0000001e-2)
    (True, True, True)
    >>> run.at(time=1.0)
    Network: p=10 (... positive, ... negative), d=2, slope=0, log_scale=...
    """

    problem: Problem
    log_time: Array
    log_loss: Array
    directions: Array
    log_norms: Array
    log_outs: Array
    signs: Signs
    events: Events = field(default_factory=lambda: np.empty(0, EVENT))
    phases: tuple[Phase, ...] = ()
    method: str = "flow"
    settings: Mapping[str, Any] = field(default_factory=dict)
    early: Alignment | None = field(default=None, compare=False)
    dense: Dense | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        T, p, d = self.log_time.size, self.problem.net.p, self.problem.net.d
        shapes = {
            "log_time": (T,),
            "log_loss": (T,),
            "directions": (T, p, d),
            "log_norms": (T, p),
            "log_outs": (T, p),
            "signs": (T, p),
        }
        for name, shape in shapes.items():
            array = np.asarray(getattr(self, name), dtype=np.int8 if name == "signs" else np.float64)
            if array.shape != shape:
                raise ProblemError(f"a trajectory with {T} records needs {name} of shape {shape}, not {array.shape}.")
            if array.flags.writeable:
                array = array.view()
                array.setflags(write=False)
            object.__setattr__(self, name, array)
        if T == 0 or not (np.diff(self.log_time) >= 0).all():
            raise ProblemError("a trajectory needs at least one record, and times that do not decrease.")
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    # -- what it holds --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self.log_time.size)

    @property
    def p(self) -> int:
        """Number of neurons."""
        return self.problem.net.p

    @property
    def time(self) -> Array:
        """Times of the records; inf where no double can hold them."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.log_time))

    @property
    def loss(self) -> Array:
        """Training loss at the records; 0 below the smallest double."""
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(np.exp(self.log_loss))

    @property
    def W(self) -> Array:
        """First-layer weights, shape (T, p, d); what no double can hold is 0 or inf."""
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):
            return np.where(self.directions == 0, 0.0, np.exp(self.log_norms)[..., None] * self.directions)

    @property
    def a(self) -> Array:
        """Output weights, shape (T, p); what no double can hold is 0 or inf."""
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(self.signs * np.exp(self.log_outs))

    def network(self, record: int = -1) -> Network:
        """Snapshot at one record, each neuron with its own scale; the last one by default."""
        if not isinstance(record, (int, np.integer)) or not -len(self) <= record < len(self):
            raise ProblemError(f"there is no record {record!r}; they are numbered 0 to {len(self) - 1}.")
        found = self._networks.get(int(record) % len(self))
        if found is None:
            found = self._networks[int(record) % len(self)] = self._snapshot(record)
        return found

    def networks(self) -> Iterator[Network]:
        """All snapshots in turn."""
        for k in range(len(self)):
            check_time("going through the run")
            yield self.network(k)

    @cached_property
    def _networks(self) -> dict[int, Network]:
        """The snapshots made so far: each is made once."""
        return {}

    def _snapshot(self, record: int) -> Network:
        log_w, log_a = self.log_norms[record], self.log_outs[record]
        return Network.from_polar(self.directions[record], log_w, log_a, self.signs[record], self.problem.net.slope)

    @property
    def final(self) -> Network:
        """The last snapshot."""
        return self.network(-1)

    def borrow(self, other: Trajectory, records: int) -> None:
        """Take over the snapshots of another run that begins with the same records, so many."""
        self._networks.update({k: net for k, net in other._networks.items() if k < records})

    @staticmethod
    def from_networks(problem: Problem, records: Sequence[tuple[float, Network]], **how: Any) -> Trajectory:
        """Build a run of networks that somebody else trained, each with its log time, in order of time.

        ``how`` are further fields: ``method``, ``settings``, ``phases``. The first network is the start of the problem.

        >>> problem = Problem(Dataset([[2, 1], [-3, -1]], [1, -1]), Network([[1.0, 0.0]], [1.0]))
        >>> later = Network([[2.0, 0.0]], [1.5])
        >>> run = Trajectory.from_networks(problem, [(-np.inf, problem.net), (0.0, later)], method="mine")
        >>> run.margins()[:, 0]
        array([2., 6.])
        """
        arrays: dict[str, Any] = {name: np.array(rows) for name, rows in _records(problem, records).items()}
        return Trajectory(problem, **arrays, **how)

    def with_records(self, more: Sequence[tuple[float, Network]]) -> Trajectory:
        """Return the run with further records, each given by its log time and network, in order of time."""
        if not more:
            return self
        at = np.searchsorted(self.log_time, [log_time for log_time, _ in more])
        new = _records(self.problem, more)
        run = replace(self, **{name: np.insert(getattr(self, name), at, rows, axis=0) for name, rows in new.items()})
        run._networks.update({k + int((at <= k).sum()): net for k, net in self._networks.items()})
        return run

    def at(self, *, log_time: float | None = None, time: float | None = None) -> Network:
        """Return the network at any time covered, given as ``time`` or as ``log_time``.

        For a flow it is integrated anew from the record before, with the tolerance of the run; for a discrete run it
        is the last recorded iterate not later than that.
        """
        if (log_time is None) == (time is None):
            raise ProblemError("at needs either time= or log_time=.")
        wanted: Any = log_time if log_time is not None else time
        if not is_number(wanted) or np.isnan(wanted) or (time is not None and wanted < 0):
            raise ProblemError(f"at needs one time (not negative) or one log_time, not {wanted!r}.")
        if time is not None:
            log_time = float(np.log(wanted)) if wanted > 0 else -np.inf
            if wanted <= self.time[-1]:  # the logarithm of e^x may exceed x by rounding
                log_time = min(log_time, float(self.log_time[-1]))
        log_time = float(log_time or 0.0)
        if log_time > self.log_time[-1] or log_time < self.log_time[0]:
            raise ProblemError(
                f"log_time = {log_time:g} is outside the run, which covers {self.log_time[0]:g} to "
                f"{self.log_time[-1]:g}; integrate further with until(log_time={log_time:g})."
            )
        before = int(np.searchsorted(self.log_time, log_time, side="right")) - 1
        between = _BETWEEN.get(self.method)
        if between is None or self.log_time[before] == log_time:
            return self.network(before)
        return between(self, before, float(log_time))

    # -- quantities -----------------------------------------------------------------------------------

    @property
    def log_norm(self) -> Array:
        r"""Log of the norm of the trained parameters, shape (T,)."""
        parts = 2 * (self.log_norms if self.problem.train == "first" else np.hstack([self.log_norms, self.log_outs]))
        return np.asarray(np.logaddexp.reduce(parts, axis=1) / 2)

    @cached_property
    def measures(self) -> Measures:
        """Everything that is measured along the run, each curve computed once; what follows are copies of some."""
        from .measures import Measures

        return Measures(self)

    def margins(self) -> Array:
        """``q_i = y_i f(x_i)`` at every record, shape (T, n)."""
        return self.measures.margins.copy()

    def normalized_margin(self) -> Array:
        r""":math:`\min_i q_i / |\theta|^H`, shape (T,); H = 2, or 1 for ``train="first"``; nan for a zero network."""
        return self.measures.normalized_margin.copy()

    def smoothed_margin(self) -> Array:
        r""":math:`\tilde\gamma = \ell^{-1}(L/r) / |\theta|^H`, shape (T,); see `Measures.smoothed_margin`."""
        return self.measures.smoothed_margin.copy()

    def stable_rank(self) -> Array:
        r""":math:`|W|_F^2 / |W|_2^2`, shape (T,); nan for a zero first layer."""
        return self.measures.stable_rank.copy()

    def balance_drift(self) -> Array:
        r"""Largest relative change of :math:`a_j^2 - |w_j|^2` so far, shape (T,); see `Measures.balance_drift`."""
        return self.measures.balance_drift.copy()

    def cluster_radius(self) -> Array:
        r"""Largest distance of a neuron from the mean of its sign, relative to ``|W|_F``, shape (T,) (SBG-T6.1)."""
        return self.measures.cluster_radius.copy()

    # -- keeping it -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Describe the run in plain JSON values: of a flow some moments, of a discrete run the curves."""
        from .documents import describe_run

        return describe_run(self)

    def text(self, width: int = 100, color: bool = False) -> str:
        """Render for a terminal."""
        from .texts import run_text

        return run_text(self, width, color)

    def save(self, path: str | Path) -> None:
        """Write the run, as the ending says.

        ``.npz``: all of it, arrays only (no pickle); `Trajectory.load` reads it. ``.csv``, ``.tsv``: the table of
        `to_dataframe`, one line a record, for other programs.
        """
        import json

        with writing(path, ".npz", ".csv", ".tsv") as file:
            if file.suffix.lower() != ".npz":
                from .export import write_table

                write_table(self, file)
                return
            net, data = self.problem.net, self.problem.data
            arrays: dict[str, Any] = {
                "X": data.X,
                "y": data.y,
                "W": net.W,
                "a": net.a,
                "slope": np.float64(net.slope),
                "log_scale": np.asarray(net.log_scale),
                "log_time": self.log_time,
                "log_loss": self.log_loss,
                "directions": self.directions,
                "log_norms": self.log_norms,
                "log_outs": self.log_outs,
                "signs": self.signs,
                "events": self.events,
                "text": np.array(
                    json.dumps(
                        {
                            "name": data.name,
                            "loss": self.problem.loss.name,
                            "reduction": self.problem.reduction,
                            "train": self.problem.train,
                            "phases": [list(phase) for phase in self.phases],
                            "method": self.method,
                            "settings": dict(self.settings),
                        }
                    )
                ),
            }
            if net.log_scale_out is not None:
                arrays["log_scale_out"] = np.asarray(net.log_scale_out)
            with file.open("wb") as stream:
                np.savez_compressed(stream, allow_pickle=False, **arrays)

    @staticmethod
    def load(path: str | Path) -> Trajectory:
        """Read what `save` wrote."""
        import json

        need = ("X", "y", "W", "a", "log_time", "log_loss", "directions", "log_norms", "log_outs", "signs", "text")
        also = ("slope", "log_scale", "log_scale_out", "events")
        found = read_npz(path, need=need, error=ProblemError, also=also)
        try:
            text = json.loads(str(found["text"]))
            scales = {
                k: found[k].item() if found[k].ndim == 0 else found[k] for k in found if k.startswith("log_scale")
            }
            net = Network(found["W"], found["a"], float(found["slope"]), **scales)
            problem = Problem(
                Dataset(found["X"], found["y"], name=text["name"]), net, text["loss"], text["reduction"], text["train"]
            )
            arrays = {k: found[k] for k in ("log_time", "log_loss", "directions", "log_norms", "log_outs", "signs")}
            return Trajectory(
                problem,
                events=found["events"].astype(EVENT),
                phases=tuple(Phase(*phase) for phase in text["phases"]),
                method=text["method"],
                settings=text["settings"],
                early=None,
                dense=None,
                **arrays,
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise ProblemError(f"{path} is not a trajectory that reluflow wrote: {exc}.") from None

    def to_dataframe(self, *, neurons: bool = False) -> Any:
        """Return a table for pandas: one row a record, or with ``neurons`` one row a record and neuron.

        Parameters
        ----------
        neurons : bool
            By default the columns are the curves: log time, loss, norm, margins, stable rank. With ``neurons`` they are
            norm, output weight and direction (``w1, w2, ...``) of each neuron.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> from reluflow import descend, initialize
        >>> run = descend(Problem(Dataset([[2, 1], [-3, -1]], [1, -1]), initialize(2, 3)), step=0.1, steps=5)
        >>> run.to_dataframe().shape[0], run.to_dataframe(neurons=True).shape[0]
        (6, 18)
        """
        from .export import curves, frame, rows_of_neurons

        return frame(rows_of_neurons(self) if neurons else curves(self))

    def to_pandas(self) -> Frames:
        """Everything as three tidy tables for pandas: ``records``, ``neurons``, ``events``.

        The first has one row a record with every curve, the second one row a record and neuron (norm, output weight,
        direction), the third one row an event. They share the columns ``record`` and ``neuron`` (the extra ``tables``).

        Examples
        --------
        >>> from reluflow import flow
        >>> data = Dataset([[2, 1], [-3, -1]], [1, -1])
        >>> run = flow(Problem(data, Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-5)), {"time": 50.0})
        >>> tables = run.to_pandas()
        >>> len(tables.records) == len(run), len(tables.neurons) == 2 * len(run), len(tables.events) == run.events.size
        (True, True, True)
        """
        from .export import to_pandas

        return to_pandas(self)

    def to_xarray(self) -> xarray.Dataset:
        """Everything as an `xarray.Dataset` (needs the extra ``arrays``).

        Its variables have different dimensions: curves go over ``record``, neurons over ``record`` and ``neuron``,
        margins over ``record`` and ``sample``, events over ``event``. As one table that is every combination of all
        of them, so its own ``to_dataframe`` refuses more than a million rows: use `to_dataframe`, or choose variables
        that belong together, as in ``run.to_xarray()[["log_loss", "log_norm"]].to_dataframe()``.
        """
        from .export import to_xarray

        return to_xarray(self)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("early", "dense")}
        return Trajectory, (*({**values, "settings": dict(self.settings)}).values(),)

    def __repr__(self) -> str:
        what = "Flow" if self.method == "flow" else f"Run of {self.method}"
        how = ", ".join(f"{phase.name} {count(phase.steps, 'step')}" for phase in self.phases)
        return (
            f"{what} of {count(self.p, 'neuron')}: {count(len(self), 'record')}, log t from {self.log_time[0]:.6g} to "
            f"{self.log_time[-1]:.6g}, log loss {self.log_loss[0]:.6g} to {self.log_loss[-1]:.6g}\n"
            f"  {count(self.events.size, 'event')}{'; ' + how if how else ''}"
        )


def _records(problem: Problem, records: Sequence[tuple[float, Network]]) -> dict[str, list[Any]]:
    """Take records apart into the rows of the arrays of a run."""
    return {
        "log_time": [log_time for log_time, _ in records],
        "log_loss": [problem.log_loss(net) for _, net in records],
        "directions": [net.directions for _, net in records],
        "log_norms": [net.log_norms for _, net in records],
        "log_outs": [net.log_outs for _, net in records],
        "signs": [np.sign(net.a) for _, net in records],
    }
