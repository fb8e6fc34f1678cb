"""What was seen of a PyTorch run, and how it is seen: copies of the weights at some steps."""

from __future__ import annotations

import math
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..dynamics import Phase, Trajectory
from ..dynamics.export import curves, more_curves
from ..problem import DataError, Dataset, Network, Problem, ProblemError
from ..problem.checks import MAX_BYTES, is_number
from ..problem.progress import visible
from ..problem.show import Shown
from ..problem.types import Array
from ..problem.words import count
from ..theory import Observation, monitor
from .head import Found, entering
from .layers import Layers, network_of
from .logs import Log
from .need import as_doubles, torch_for

if TYPE_CHECKING:
    from ..dynamics.export import Frames

_DENSER = 20  # a record every step up to here, then whenever the count has grown by one part in so many
_SHARE = 0.07  # of the time, for watching, where nothing is said about how often
_MEMORY = MAX_BYTES // 4  # for the weights that are kept; beyond it every second record goes


class _Snap(NamedTuple):
    """Weights at one moment, as they are on the device of the model but copied to the CPU."""

    step: int
    time: float
    rate: float
    weights: tuple[Any, ...]
    points: Any | None  # what entered the head, where that is not the data themselves


class Watch(Shown):
    """A run of PyTorch as `watch` sees it. See there."""

    def __init__(
        self,
        model: Any,
        head: Found,
        inputs: Any,
        y: Array,
        how: Mapping[str, Any],
        every: int | Literal["call"] | None,
        logs: list[Log],
        batch: int | None,
        towards: tuple[npt.ArrayLike, npt.ArrayLike] | None,
        progress: bool | None,
    ) -> None:
        self.model, self.head, self.logs = model, head, logs
        self.every, self.batch = every, batch
        self.notes: list[str] = []
        self.steps, self.spent = 0, 0.0
        self._cost = 0.0  # of the last record, in seconds
        self._inputs, self._y, self._how, self._progress = inputs, y, how, progress
        self._lock = threading.RLock()
        self._snaps: list[_Snap] = []
        self._due, self._thin = 0, 1
        self._time, self._rate, self._rates = 0.0, 0.0, set[float]()
        self._optimizer: weakref.ref[Any] | None = None
        self._kind = ""
        self._open, self._told = True, -1
        self._made: tuple[Any, Dataset] | None = None
        self._record()
        self.problem(0)  # what cannot be looked at says so before the training
        self._towards = self._check_towards(towards)
        self._tell()
        self._began, self._ended = time.perf_counter(), math.inf  # the first look belongs to no step
        self._let_go = _listen(self)

    # -- while it trains ------------------------------------------------------------------------------

    def step(self, rate: float | None = None) -> None:
        """Count one update, and record it if it is due; ``torch.optim`` optimizers do this by themselves.

        Parameters
        ----------
        rate : float, optional
            The learning rate of the update; it moves the clock. Default: 1.
        """
        if rate is not None and not (is_number(rate) and math.isfinite(rate) and rate >= 0):
            raise ProblemError(
                f"rate = {rate!r}: the learning rate of the step is needed, a number that is not negative."
            )
        with self._lock:
            self._count(1.0 if rate is None else float(rate))

    def __call__(self) -> None:
        """Record now, whatever ``every`` says: at the end of an epoch, say.

        Where no optimizer of ``torch.optim`` was seen, every call is a step of its own.
        """
        with self._lock:
            if not self._open:
                return
            if self._optimizer is None and self._snaps:
                self.steps += 1
                self._time += 1.0
            self._timed_record()

    def _stepped(self, optimizer: Any) -> None:
        """Note the step of an optimizer, if it is that of the model."""
        with self._lock:
            known = None if self._optimizer is None else self._optimizer()
            if known is None:
                mine = {id(self.head.first.weight), id(self.head.last.weight)}
                groups = [g for g in optimizer.param_groups if mine & {id(p) for p in g["params"]}]
                if not groups:
                    return
                self._optimizer, self._kind = weakref.ref(optimizer), _kind_of(optimizer, groups)
            elif known is not optimizer:
                return
            self._count(_rate(optimizer, self.head.first.weight))

    def _count(self, rate: float) -> None:
        if not self._open:
            return
        self.steps += 1
        self._time += rate
        self._rate = rate
        if len(self._rates) < 2:  # one, or more than one: more is not needed
            self._rates.add(rate)
        if self.every == "call" or self.steps < self._due:
            return
        if self.every is None and self.spent + self._cost > _SHARE * (time.perf_counter() - self._began):
            return  # due, and taken as soon as there is time for it
        self._timed_record()

    def _timed_record(self) -> None:
        start = time.perf_counter()
        try:
            self._record()
            self._tell()
        finally:
            self._cost = time.perf_counter() - start
            self.spent += self._cost

    def _record(self) -> None:
        if self._snaps and self._snaps[-1].step == self.steps:
            return
        torch, head = torch_for("watch"), self.head
        parts = (head.first.weight, head.first.bias, head.last.weight, head.last.bias)
        with torch.no_grad():
            kept = tuple(None if part is None else part.detach().to("cpu", copy=True) for part in parts)
        points = None if head.whole else entering(self.model, head.first, self._inputs).to("cpu", copy=True)
        if not all(part is None or bool(torch.isfinite(part).all()) for part in (*kept, points)):
            self._stop(f"the weights are no longer finite after step {self.steps}; nothing is recorded from here.")
            return
        if points is not None and self._snaps and self._snaps[-1].points is not None:
            points = self._snaps[-1].points if torch.equal(points, self._snaps[-1].points) else points
        self._snaps.append(_Snap(self.steps, self._time, self._rate, kept, points))
        self._due = self.steps + self._gap()
        self._thin_out()

    def _gap(self) -> int:
        if isinstance(self.every, int):
            return self.every * self._thin
        return max(1, self.steps // _DENSER) * self._thin

    def _thin_out(self) -> None:
        one = sum(part.nbytes for part in self._snaps[-1].weights if part is not None)
        points = {id(snap.points): snap.points.nbytes for snap in self._snaps if snap.points is not None}
        if len(self._snaps) > 8 and one * len(self._snaps) + sum(points.values()) > _MEMORY:
            self._snaps[1:-1] = self._snaps[2:-1:2]
            self._thin *= 2
            self.notes.append(
                f"at step {self.steps} the records took more than {_MEMORY >> 20} MiB: every second one was dropped, "
                "and half as many are taken from there on."
            )

    def _tell(self) -> None:
        """Send the last record to the logs; what goes wrong there must not end the training."""
        if not self.logs or self._snaps[-1].step == self._told:
            return
        try:
            row = self.row(-1)
        except (DataError, ProblemError) as exc:
            self.notes.append(f"step {self.steps} has no row: {exc}")
            return
        self._told = self._snaps[-1].step
        for log in list(self.logs):
            try:
                log(row)
            except Exception as exc:  # a full disk, a lost connection: whatever it is, it is not the training's fault
                self.logs.remove(log)
                warnings.warn(
                    f"{type(log).__name__} gets no more rows after step {self.steps}: {exc}. The run is watched on.",
                    stacklevel=2,
                )

    def _stop(self, why: str) -> None:
        self._open = False
        self.notes.append(why)
        warnings.warn(f"watch: {why}", stacklevel=2)

    def close(self) -> None:
        """Record the last step and let go of the model; what was seen stays."""
        with self._lock:
            if self._open:
                self._timed_record()
            self._open = False
            self._let_go()
            for log in self.logs:
                if hasattr(log, "close"):
                    log.close()
            self.logs = []
            if self._ended == math.inf:
                self._ended = time.perf_counter()
                if visible(self._progress):
                    print(repr(self), file=sys.stderr)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # -- what was seen --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._snaps)

    @property
    def overhead(self) -> float:
        """Time spent watching, relative to the rest of the time since watching began."""
        rest = min(self._ended, time.perf_counter()) - self._began - self.spent
        return self.spent / rest if rest > 0 else 0.0

    @property
    def moved(self) -> bool:
        """Whether the features that enter the head changed while watched: the layers below were trained too."""
        return len({id(snap.points) for snap in self._snaps}) > 1

    def problem(self, record: int = 0) -> Problem:
        """Return the network at a record and the points it sees, as a `Problem`: for `check`, `compare`, `kkt`."""
        snap = self._snap(record)
        return Problem(self._data(snap), self._network(snap), **self._how)

    def row(self, record: int = -1) -> dict[str, float]:
        """Return what is measured at a record, by name; its ``balance_drift`` compares with the start alone."""
        with self._lock:
            snap, start = self._snap(record), self._network(self._snaps[0])
            run = self._alone(snap, start)
            seen = {**curves(run), **more_curves(run), "balance_drift": self._drift(run)}
            cosines = run.measures.group_cosines(*self._targets(run.problem.data))[-1]
        del seen["log_time"]
        found = {"step": snap.step, "time": snap.time, "rate": snap.rate}
        found |= {name: values[-1].item() for name, values in seen.items()}
        return found | {"cosine_plus": float(cosines[0]), "cosine_minus": float(cosines[1])}

    def _alone(self, snap: _Snap, start: Network) -> Trajectory:
        """Return a run with one record, on the points as they are there; the start is that of all."""
        problem = Problem(self._data(snap), start, **self._how)
        return Trajectory.from_networks(problem, [(_log(snap.time), self._network(snap))], method="torch")

    def _drift(self, run: Trajectory) -> Array:
        """Return the balance drift since the start; the weights alone decide it."""
        start = run.problem.net
        before = {"log_norms": start.log_norms, "log_outs": start.log_outs, "directions": start.directions}
        before |= {"signs": np.sign(start.a), "log_loss": run.log_loss[0]}
        both: dict[str, Any] = {name: np.stack([value, getattr(run, name)[0]]) for name, value in before.items()}
        both["log_time"] = np.zeros(2)
        return replace(run, **both).balance_drift()

    def trajectory(self) -> Trajectory:
        """Return the run as `descend` would: for `plot`, `monitor`, every curve, files.

        Its time is the sum of the learning rates. Only where the points stay the same is there such a run.
        """
        with self._lock:
            snaps = list(self._snaps)
        if len({id(snap.points) for snap in snaps}) > 1:
            raise ProblemError(
                "the layers below the head were trained too, so the points that the head sees moved, and a Trajectory "
                "is a run on fixed points. table() and plot() show the curves; problem(k) is the head at record k with "
                "its own points, for check, kkt and compare; with the layers below frozen (requires_grad_(False)) it "
                "is a run."
            )
        problem = self.problem(0)
        records = [(_log(snap.time), self._network(snap)) for snap in snaps]
        method, last = self._method(problem), records[-1][0]
        settings: dict[str, Any] = {
            "method": method,
            "optimizer": self._kind or "by hand",
            "step": max(self._rates) if len(self._rates) == 1 else None,
            "schedule": "fixed" if len(self._rates) <= 1 else "changing",
            "steps": snaps[-1].step,
            "batch": self.batch,
            "dtype": str(self.head.first.weight.dtype).removeprefix("torch."),
            "iteration": [snap.step for snap in snaps],
            "stopped": "watch",
            "interrupted": False,
        }
        phases = (Phase(method, -math.inf, last, snaps[-1].step),)
        return Trajectory.from_networks(problem, records, method=method, settings=settings, phases=phases)

    def table(self) -> Any:
        """Return one row a record as a pandas DataFrame, also where the points moved."""
        from ..dynamics.export import frame

        rows = [self.row(k) for k in range(len(self))]
        return frame({name: [row[name] for row in rows] for name in rows[0]})

    def to_pandas(self) -> Frames:
        """Return the tables of `trajectory`: records, neurons, events."""
        return self.trajectory().to_pandas()

    def monitor(self, **options: Any) -> list[Observation]:
        """Hold the run against the claims; those about the flow are not refuted by steps. Options as for `monitor`."""
        run = self.trajectory()
        return monitor(run.problem, run, **options)

    def __repr__(self) -> str:
        text = (
            f"Watch of {type(self.model).__name__}: {count(len(self), 'record')} of {count(self.steps, 'step')}"
            f"{f' of {self._kind}' if self._kind else ''}; watching added {100 * self.overhead:.1f} %"
        )
        return "\n  note: ".join([text, *self.notes])

    # -- inside ---------------------------------------------------------------------------------------

    def _snap(self, record: int) -> _Snap:
        if not isinstance(record, (int, np.integer)) or not -len(self) <= record < len(self):
            raise ProblemError(f"there is no record {record!r}; they are numbered 0 to {len(self) - 1}.")
        return self._snaps[record]

    def _network(self, snap: _Snap) -> Network:
        W, b, out, c = (None if part is None else as_doubles(part) for part in snap.weights)
        assert W is not None
        assert out is not None
        return network_of(Layers(W, b, out, c, self.head.slope), fixed=True)

    def _data(self, snap: _Snap) -> Dataset:
        if self._made is None or self._made[0] is not snap.points:
            points = as_doubles(self._inputs if snap.points is None else snap.points).reshape(len(self._y), -1)
            if self.head.first.bias is not None or self.head.last.bias is not None:
                points = np.column_stack([points, np.ones(len(points))])
            name = type(self.model).__name__ if self.head.whole else f"head of {type(self.model).__name__}"
            self._made = (snap.points, Dataset(points, self._y, name=name))
        return self._made[1]

    def _method(self, problem: Problem) -> str:
        """Name the method: that of `descend` where it is what was done, so that claims about descent can speak."""
        plain = self._kind == "SGD" and len(self._rates) == 1 and self.head.last.bias is None
        if not plain or self.batch is None or self.head.last.weight.shape[0] != 1:
            return f"torch {self._kind or 'by hand'}"
        return "gd" if self.batch >= problem.data.n else "sgd"

    def _targets(self, data: Dataset) -> tuple[Array, Array]:
        """Return the directions that the neurons of each sign are compared with: given, or the sums of the classes."""
        if self._towards is not None:
            return self._towards
        sums = [data.X[data.y == sign].sum(axis=0) for sign in (1, -1)]
        # Of a class without samples, or one whose sum vanishes, the opposite of the other's is as good as anything.
        plus, minus = (own if own.any() else -other if other.any() else data.X[0] for own, other in (sums, sums[::-1]))
        return plus, minus

    def _check_towards(self, towards: Any) -> tuple[Array, Array] | None:
        if towards is None:
            return None
        d = self._data(self._snaps[0]).d
        try:
            plus, minus = (np.asarray(part, dtype=np.float64) for part in towards)
        except (TypeError, ValueError):
            plus = minus = np.empty(0)
        if plus.shape != (d,) or minus.shape != (d,) or not plus.any() or not minus.any():
            raise ProblemError(
                f"towards must be two non-zero vectors of {d} entries, for neurons with a > 0 and a < 0, as "
                "class_margins(data) gives them."
            )
        return plus, minus


# -- listening to optimizers ------------------------------------------------------------------------------


def _listen(watch: Watch) -> Callable[[], None]:
    """Let every optimizer tell of its steps; return what ends that. A forgotten watch is let go of by itself."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    there = weakref.ref(watch)

    def stepped(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        seen = there()
        if seen is not None:
            seen._stepped(optimizer)

    handle = register_optimizer_step_post_hook(stepped)
    weakref.finalize(watch, handle.remove)
    return handle.remove  # type: ignore[no-any-return]


def _rate(optimizer: Any, weight: Any) -> float:
    """Return the learning rate that the last step used for a weight."""
    group = next(
        (g for g in optimizer.param_groups if any(p is weight for p in g["params"])), optimizer.param_groups[0]
    )
    return float(group["lr"])


def _kind_of(optimizer: Any, groups: list[dict[str, Any]]) -> str:
    """Name the optimizer, with what makes it more than plain steps along the gradient."""
    extra = [name for name in ("momentum", "weight_decay", "nesterov", "maximize", "amsgrad") if groups[0].get(name)]
    rates = {float(group["lr"]) for group in groups}
    extra += ["several rates"] if len(rates) > 1 else []
    return type(optimizer).__name__ + (f" with {', '.join(extra)}" if extra else "")


def _log(time_: float) -> float:
    return math.log(time_) if time_ > 0 else -math.inf
