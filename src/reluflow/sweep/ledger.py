"""Which problems of a sweep are done, as its folder tells while many write to it."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..problem import ProblemError
from .store import ROWS, Tail

#: What can become of a measure, the best first; the worst of its measures is what becomes of a problem.
STATES: tuple[str, ...] = ("done", "undecided", "out of time", "out of memory", "failed")
_CODE = {state: k + 1 for k, state in enumerate(STATES)}  # 0: nothing yet
_RECENT = 600.0  # seconds over which the rate is taken


@dataclass(frozen=True, slots=True)
class Status:
    """How far a sweep is.

    Attributes
    ----------
    total : int
        Problems.
    states : dict of str to int
        How many rows are done, undecided, out of time, out of memory, failed.
    left : int
        Problems without a row.
    rate : float
        Rows a second, lately; 0 where nothing was computed yet.
    remaining : float
        Seconds that the rest takes at this rate; inf where there is none.
    notes : tuple of str
        Damaged lines that were dropped, and the like.
    """

    total: int
    states: dict[str, int]
    left: int
    rate: float
    remaining: float
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every problem has a row."""
        return self.left == 0


class Ledger:
    """What the files of a folder say of every problem; `refresh` reads what was written since.

    With ``codes`` only measures that this version of the code took count, else all.
    """

    def __init__(
        self, folder: Path, spec: str, total: int, labels: Sequence[str], codes: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self.spec, self.labels, self.codes = folder, spec, tuple(labels), codes
        self.states: npt.NDArray[np.uint8] = np.zeros((len(self.labels), total), dtype=np.uint8)
        self.tails: dict[Path, Tail] = {}
        self.forgiven: Counter[int] = Counter()  # endings of a process that were not the fault of the problem
        self._times: deque[float] = deque(maxlen=100_000)
        self._foreign: set[Path] = set()

    def refresh(self) -> None:
        """Read what is new."""
        try:
            for path in (self.folder / ROWS).glob("*.rows"):
                tail = self.tails.setdefault(path, Tail(path))
                for found in tail.news():
                    self._take(tail, found)
        except OSError as exc:
            raise ProblemError(f"{exc.filename or self.folder} cannot be read: {exc.strerror or exc}.") from None

    def _take(self, tail: Tail, found: dict[str, Any]) -> None:
        if tail.header is None or tail.header["spec"] != self.spec:
            self._foreign.add(tail.path)
            return
        if "left" in found:
            self.forgiven[found["left"]] += found.get("times", 1)
        index = found.get("i")
        if index is None or not 0 <= index < self.states.shape[1]:
            return
        self._times.append(found["at"])
        for k, label in enumerate(self.labels):
            state = found["s"].get(label)
            if state is None or (self.codes is not None and tail.header["codes"].get(label) != self.codes[label]):
                continue
            code = _CODE[state]
            if self.states[k, index] != 1:  # done stays done, whoever tries again
                self.states[k, index] = code

    def forget_failures(self) -> None:
        """Take everything that is not done as not tried."""
        self.states[self.states > 1] = 0

    def has(self, index: int) -> bool:
        """Whether a problem has all its measures."""
        return bool(self.states[:, index].all())

    def missing(self) -> npt.NDArray[np.intp]:
        """Return the problems that lack a measure."""
        return np.flatnonzero(~self.states.all(axis=0))

    def wanted(self, index: int) -> tuple[str, ...]:
        """Return the measures that a problem lacks."""
        return tuple(label for k, label in enumerate(self.labels) if not self.states[k, index])

    def deaths(self, index: int) -> int:
        """Count the processes that began with a problem and were never heard of again."""
        return sum(tail.begun == index for tail in self.tails.values()) - self.forgiven[index]

    def of_driver(self, driver: str) -> list[Tail]:
        """Return the files of the workers of one driver."""
        return [tail for tail in self.tails.values() if tail.header and tail.header["driver"] == driver]

    def counts(self) -> dict[str, int]:
        """Count the problems by what became of them."""
        whole = self.states[:, self.states.all(axis=0)]
        worst = np.bincount(whole.max(axis=0, initial=0), minlength=len(STATES) + 1)
        return {state: int(worst[_CODE[state]]) for state in STATES}

    def status(self) -> Status:
        """Say how far it is."""
        states = self.counts()
        left = self.states.shape[1] - sum(states.values())
        rate = self._rate()
        return Status(
            self.states.shape[1],
            states,
            left,
            rate,
            0.0 if not left else left / rate if rate else np.inf,
            tuple(self.notes()),
        )

    def _rate(self) -> float:
        if not self._times:
            return 0.0
        times = np.sort(np.array(self._times))
        recent = times[times >= times[-1] - _RECENT]
        begun = [tail.header["at"] for tail in self.tails.values() if tail.header]
        first = max(recent[-1] - _RECENT, min(begun, default=recent[0]))
        return float(recent.size / max(recent[-1] - first, 1e-3))

    def notes(self) -> list[str]:
        """Say what was wrong with files; lines being written just now are not."""
        now = time.time()
        said = []
        for tail in self.tails.values():
            if tail.path in self._foreign:
                said.append(f"{tail.path} is left out: its rows are of another sweep.")
            elif (note := tail.note()) and (tail.damaged or now - tail.modified() > 1.0):
                said.append(note)
        return sorted(said)
