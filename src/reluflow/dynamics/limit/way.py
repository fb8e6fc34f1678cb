"""How a search for the limit moves: in time as long as that matters, then in the size of the network alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...problem import Network
from ...problem.types import Index
from ..flow.balance import balance, level
from ..flow.march import Laboured, March, Reached
from ..flow.phases import Goal
from ..flow.record import Recorder
from ..flow.state import State, pattern_of, take
from ..trajectory import Trajectory
from .future import NOBODY, Future
from .gates import CLOSE

#: Log times at which the patterns reached are put to the test.
_STAGES = (1e2, 1e3, 1e4, 1e5, 1e6)
TIME_ENOUGH = _STAGES[-1]  #: beyond this log t the direction no longer depends on the time, only on log R
_ROUNDS = 10  # how often the network is made smaller before giving up: each time log R has grown by 7 ...
_MOST_ROUNDS = 100  # ... and how often while its margin still grows ...
_GROWS = 1e-6  # ... by more than this part a time
_SAME = 1e-9  # margins that differ by less, relatively, are one plateau, and times are one


@dataclass(frozen=True, eq=False)
class Plateau:
    r"""A KKT point at which the direction rests for long, but not for ever.

    Attributes
    ----------
    margin : float
        Its normalised margin.
    network : Network
        Of unit norm.
    log_r_from, log_r_to : float
        Between these values of :math:`\log R = \log|\theta|^2` the network is near it; log t is about R times the
        margin.
    neuron : int
        The neuron that ends it.
    sample : int
        The sample, felt by no neuron at the plateau, that it comes to see; -1 if it outgrows the network.
    """

    margin: float
    network: Network
    log_r_from: float
    log_r_to: float
    neuron: int
    sample: int = -1

    def to_dict(self) -> dict[str, float | int]:
        """Everything but the network."""
        return {
            "margin": self.margin,
            "log_r_from": self.log_r_from,
            "log_r_to": self.log_r_to,
            "neuron": self.neuron,
            "sample": self.sample,
        }


class Way:
    """How far a search has come, and where it has been.

    As long as it matters when things happen the flow is followed in time. Beyond, the direction of the network moves in
    the clock log R, R = |theta|^2, and in the same way whatever R is, up to terms of order 1/R: so the network is made
    smaller whenever it has grown large, all neurons by the same factor, and the time is no longer known.
    """

    def __init__(self, march: March, reached: Reached, last: float, log_unit: float = 0.0) -> None:
        self.march, self.reached, self.last = march, reached, last
        self.recorder = march.recorder
        self.log_unit = log_unit  # log of how much larger margins are in the units of the problem asked for
        self.plateaus: list[Plateau] = []
        self.skipped = 0.0  # by how much log R is larger than it looks
        self.rounds = 0
        self.tired = False  # whether too many implicit steps were taken
        self.coming: set[int] = set()  # neurons that ended plateaus
        self._margin = 0.0  # normalised, at the end of the last round

    @property
    def run(self) -> Trajectory:
        """The flow since the time is no longer known, or all of it."""
        return self.march.recorder.result()

    def scaled(self, margin: float) -> float:
        """Return a margin in the units of the problem asked for."""
        return margin * float(np.exp(self.log_unit))

    def go_on(self) -> bool:
        """Follow the flow to the next stage; False if there is none, or too much work was done."""
        ahead = self._ahead()
        if not ahead:
            if self.last < TIME_ENOUGH or self._in_balance() or self._enough():
                return False
            self._shrink()
            ahead = self._ahead()
        self.march.goal = Goal(min(ahead), -np.inf, np.inf)
        try:
            self.reached = self.march.resume(self.reached.state, self.reached.log_time)
        except Laboured:
            self.march.partial()  # closes the phase
            self.tired = True
        return not self.tired

    def _in_balance(self) -> bool:
        """Whether points rest in balance, whose margins do not grow with the network: then it is not made smaller."""
        geometry, state = self.march.geometry, self.reached.state
        if level(geometry, state) is not None:
            return True
        found = balance(geometry, state)
        return found is not None and found.points.size == geometry.problem.data.n

    def _enough(self) -> bool:
        """Whether the network has been made smaller often enough."""
        return self.rounds >= (_MOST_ROUNDS if self._grows() else _ROUNDS)

    def in_time(self) -> March:
        """Give the march back the flow as far as it was followed in time."""
        if self.march.recorder is not self.recorder:
            self.march.recorder = self.recorder
            self.march.forget()
        return self.march

    def _grows(self) -> bool:
        """Whether the margin is larger than a round ago, at the same size of the network: slowly, but it moves."""
        run, before = self.run, self._margin
        self._margin = float(run.network(-1).normalized_margin(run.problem.data, run.problem.train))
        return self._margin > before * (1 + _GROWS)

    def _ahead(self) -> list[float]:
        """Stages to come; once the time is not known, the end of a round alone: before, R has not grown enough."""
        stages = (self.last,) if self.rounds else (*_STAGES, self.last)
        return [s for s in stages if self.reached.log_time * (1 + _SAME) < s <= self.last]

    def leave(self, margin: float, network: Network, future: Future) -> str:
        """Note a plateau, and go to its end if that is out of reach in time; return what it is in words."""
        run = self.run
        log_R = 2 * float(run.log_norm[-1])
        ends = log_R + self.skipped + 2 * future.arrival
        gaps = 1 - run.normalized_margin() / margin
        near = int(np.argmax(np.minimum.accumulate((np.abs(gaps) <= CLOSE)[::-1])[::-1]))
        begins = 2 * float(run.log_norm[near]) + self.skipped
        if self.plateaus and abs(self.plateaus[-1].margin / margin - 1) < _SAME:
            begins = self.plateaus.pop().log_r_from
        self.coming.add(future.first)
        self.plateaus.append(Plateau(margin, network, begins, ends, future.first, future.point))
        # log t is about R times the margin.
        if self.last >= TIME_ENOUGH and log_R + 2 * future.arrival + np.log(margin) > np.log(self.last):
            self._jump(future)
        return f"it rests at a plateau of margin {margin:.6g} until log R = {ends:.6g}"

    def _jump(self, future: Future) -> None:
        s = max(future.arrival - future.lead, 0.0)
        self._restart(future.state(self.reached.state, s), self.reached.log_time, future.neurons)
        self.skipped += 2 * s

    def _shrink(self) -> None:
        """Make the network smaller, all neurons by the same factor."""
        frozen, state = self.march.geometry.frozen, self.reached.state
        by = float(np.log(self.last / _STAGES[1])) * (1.0 if frozen else 0.5)
        log_a = state.log_a if frozen else state.log_a - by
        self._restart(replace(state, log_w=state.log_w - by, log_a=log_a), _STAGES[1])
        self.skipped += 2 * by
        self.rounds += 1

    def _restart(self, state: State, log_time: float, anew: Index = NOBODY.neurons) -> None:
        """Go on from a state; some neurons are where the march has not seen them, the others slide where they slid."""
        geometry = self.march.geometry
        recorder = Recorder(geometry.problem, self.recorder.settings)
        if anew.size:
            taken, _ = take(geometry, state.network(geometry.slope))
            sides, U, log_w = state.sides.copy(), state.U.copy(), state.log_w.copy()
            sides[anew], U[anew], log_w[anew] = taken.sides[anew], taken.U[anew], taken.log_w[anew]
            state = replace(state, sides=sides, U=U, log_w=log_w)
        recorder.add(log_time, state, pattern_of(geometry, state).margins(state.weighted()))
        self.march.recorder = recorder
        self.reached = Reached(state, log_time, "late")
