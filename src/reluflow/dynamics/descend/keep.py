"""Recording a discrete run, and keeping it on disk so that it can go on after a kill."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...problem import Network, Problem, ProblemError
from ...problem.checks import MAX_BYTES
from ...problem.digest import digest
from ...problem.files import read_npz, replacing, write_to
from ..trajectory import Phase, Trajectory
from .state import State
from .step import Plan

_STATE = ("W", "a", "exponent", "rest", "used")


def geometric(steps: int, count: int) -> list[int]:
    """Choose iterations 0, 1, ..., steps: at most ``count``, as evenly as possible on a logarithmic axis.

    >>> geometric(1000, 6)
    [0, 1, 6, 32, 178, 1000]
    """
    if steps == 0:
        return [0]
    if count > steps:
        return list(range(steps + 1))
    ideal = np.geomspace(1, steps, count - 1) if count > 2 else np.array([steps])
    return [0, *np.unique(np.round(ideal).astype(np.int64)).tolist()]


class Records:
    """Snapshots at chosen iterations, in arrays that are as large as they will be from the beginning."""

    def __init__(self, problem: Problem, count: int) -> None:
        p, d = problem.net.p, problem.net.d
        if 8 * count * p * d > MAX_BYTES:
            raise ProblemError(
                f"{count} records of {p} x {d} weights would take {8 * count * p * d / 2**30:.1f} GiB; at most "
                f"{MAX_BYTES / 2**30:.0f} GiB are allowed. Record fewer iterations, e.g. record=200."
            )
        self.problem, self.size = problem, 0
        self.iteration = np.zeros(count, np.int64)
        self.log_time, self.log_loss = np.empty(count), np.empty(count)
        self.directions = np.empty((count, p, d))
        self.log_norms, self.log_outs = np.empty((count, p)), np.empty((count, p))
        self.signs = np.empty((count, p), np.int8)

    @property
    def last(self) -> int:
        """Iteration of the last record, -1 if there is none."""
        return int(self.iteration[self.size - 1]) if self.size else -1

    def take(self, iteration: int, log_time: float, net: Network) -> None:
        """Record a network."""
        k = self.size
        self.iteration[k], self.log_time[k], self.log_loss[k] = iteration, log_time, self.problem.log_loss(net)
        self.directions[k], self.log_norms[k], self.log_outs[k] = net.directions, net.log_norms, net.log_outs
        self.signs[k] = np.sign(net.a)
        self.size += 1

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything recorded so far."""
        names = ("iteration", "log_time", "log_loss", "directions", "log_norms", "log_outs", "signs")
        return {name: getattr(self, name)[: self.size] for name in names}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take back what `arrays` gave."""
        for name, value in arrays.items():
            getattr(self, name)[: len(value)] = value
        self.size = len(arrays["iteration"])

    def trajectory(self, plan: Plan, early: int, stopped: str, settings: dict[str, Any]) -> Trajectory:
        """Return what there is as a trajectory."""
        found = self.arrays()
        iteration = found.pop("iteration").tolist()
        phases = [Phase(plan.method, -np.inf, float(found["log_time"][-1]), self.last - early)]
        if early:
            end = float(found["log_time"][np.searchsorted(self.iteration[: self.size], early, side="right") - 1])
            phases = [Phase("early", -np.inf, end, early), phases[0]._replace(log_start=end)]
        settings = {**settings, "iteration": iteration, "fast_forward": early, "stopped": stopped}
        settings["interrupted"] = stopped == "interrupted"
        return Trajectory(
            self.problem, **found, phases=tuple(phases), method=plan.method, settings=settings, early=None, dense=None
        )


class Checkpoint:
    """A file that is rewritten every few minutes, never half, and read back when the same run is started again."""

    def __init__(self, path: str | Path | None, minutes: float, problem: Problem, settings: dict[str, Any]) -> None:
        self.path = None if path is None else write_to(path, (".npz",))
        self.seconds, self.settings = 60 * minutes, settings
        self.stamp = digest("descend", problem.fingerprint(), json.dumps(settings, sort_keys=True))
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return self.path is not None and time.monotonic() - self._last >= self.seconds

    def load(self, records: Records) -> tuple[State, int] | None:
        """Read the state and the number of jumped iterations, and fill the records; None if there is no file."""
        if self.path is None or not self.path.exists():
            return None
        found = read_npz(self.path, need=("stamp", "settings", *_STATE, "position"), error=ProblemError)
        if str(found["stamp"]) != self.stamp:
            raise ProblemError(
                f"{self.path} is the checkpoint of another run ({self._difference(str(found['settings']))}); "
                "delete it, or name another file."
            )
        records.restore({name[7:]: value for name, value in found.items() if name.startswith("record_")})
        moments = tuple(found[f"moment_{k}"] for k in range(4) if f"moment_{k}" in found)
        iteration, log_time, early = found["position"]
        arrays: dict[str, Any] = {name: found[name] for name in _STATE}
        state = State(**arrays, iteration=int(iteration), log_time=float(log_time), moments=moments)
        return state, int(early)

    def save(self, state: State, records: Records, early: int) -> None:
        """Write everything; a kill leaves the old file or the new one."""
        if self.path is None:
            return
        arrays: dict[str, npt.NDArray[Any]] = {
            "stamp": np.array(self.stamp),
            "settings": np.array(json.dumps(self.settings)),
            "position": np.array([state.iteration, state.log_time, early]),
        }
        arrays |= {name: getattr(state, name) for name in _STATE}
        arrays |= {f"moment_{k}": moment for k, moment in enumerate(state.moments)}
        arrays |= {f"record_{name}": value for name, value in records.arrays().items()}
        with replacing(self.path, ProblemError) as part, part.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        self._last = time.monotonic()

    def _difference(self, text: str) -> str:
        try:
            old = json.loads(text)
        except ValueError:
            return "settings unknown"
        names = [name for name in self.settings if old.get(name) != self.settings[name]]
        if not names:
            return "the problem differs"
        return ", ".join(f"{name} = {old.get(name)!r} there, {self.settings[name]!r} here" for name in names[:3])
