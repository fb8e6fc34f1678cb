"""Coarse answers: explicit steps that do not look for events. What crosses a hyperplane within a step is not located.

For a tolerance of 10^-3 or more locating thousands of crossings is what costs; here the sides are those of the moment,
and a neuron that should slide jitters about its hyperplane. The run says so in its ``settings``; `limit` never uses it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...problem import Undecided, check_time
from ...problem.types import Array, Signs
from .adams import Adams
from .dense import Rows
from .events import root
from .field import Geometry
from .phases import FITTED, Goal, Moved, Why, difference, implicit_pays, later
from .state import State, forces_at, moving, pattern_of

#: Tolerances from here on are met without locating events.
COARSE = 1e-3


class _Look(NamedTuple):
    """Rows and output weights over their sizes, sides, outputs and forces."""

    W: Array
    b: Array
    sides: Signs
    f: Array
    F: Array


class Blind:
    """Runge-Kutta steps of order 3 for rows (w, a), each over the size that the neuron began with."""

    name = "coupled"

    def __init__(self, geometry: Geometry, state: State, log_start: float, rtol: float) -> None:
        self.geometry, self.log_start, self.rtol = geometry, log_start, rtol
        self.log_time, self.t = log_start, 0.0
        self.restart(state)

    def restart(self, state: State) -> None:
        """Go on from a state."""
        from scipy.integrate import RK23

        self.idle = state
        who = moving(self.geometry, state, pattern_of(self.geometry, state))
        self.resting = not who.any()
        if self.resting:
            return
        self.helper = Adams(self.geometry, state, who, self.rtol)  # for outputs and forces
        self._seen: tuple[Array, _Look] | None = None
        self.y = np.column_stack([self.helper.desk.W, self.helper.desk.b])
        self.stepper: Any = RK23(self._field, 0.0, self.y.ravel(), np.inf, rtol=self.rtol, atol=self.rtol)
        self.begun = self.t

    def _look(self, y: Array) -> _Look:
        """Look at a point, once if it is asked about again: the end of a step is, often."""
        if self._seen is None or self._seen[0] is not y:
            self._seen = y, self._looked(y)
        return self._seen[1]

    def _looked(self, y: Array) -> _Look:
        rows = y.reshape(len(self.helper.desk.b), -1)
        W, b = np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])
        Z = W @ self.helper.fixed.across
        sides = np.where(Z > 0, 1, -1).astype(np.int8) if self.geometry.slope < 1.0 else np.ones(Z.shape, np.int8)
        return _Look(W, b, sides, *self.helper.field(W, b, sides))

    def _field(self, _t: float, y: Array) -> Array:
        check_time("following the flow")
        W, b, _, _, F = self._look(y)
        change = np.empty((len(W), W.shape[1] + 1))
        change[:, :-1] = b[:, None] * F
        change[:, -1] = 0.0 if self.geometry.frozen else np.einsum("jd,jd->j", W, F)
        return change.ravel()

    def state(self) -> State:
        """Where the neurons are."""
        if self.resting:
            return self.idle
        W, b, sides, _, _ = self._look(self.stepper.y)
        rows: Rows = self.helper.rows
        return rows._replace(W=W, b=b, sides=sides, balanced=np.zeros_like(rows.balanced)).state(
            self.idle, self.geometry.frozen
        )

    def margins(self) -> Array:
        """``q_i``."""
        return np.asarray(self.geometry.y * self._look(self.stepper.y).f)

    def pulls(self) -> Array:
        """``c_i``."""
        return forces_at(self.geometry, self.margins())

    def step(self, goal: Goal, most: int) -> Moved:  # noqa: ARG002
        """Go on by a step, not beyond the goal."""
        t_end = difference(goal.log_time, self.log_start)
        if self.t >= t_end:
            self.log_time = goal.log_time
            return Moved([], True)
        stepper, problem = self.stepper, self.geometry.problem
        stepper.t_bound = t_end - self.begun
        with np.errstate(all="ignore"):
            stepper.step()
        if stepper.status == "failed" or not np.isfinite(stepper.y).all():
            raise Undecided(
                f"forces or weights are beyond doubles after log t = {self.log_time:.6g}: it cannot be followed there; "
                "what was found so far is kept, and a smaller rtol may help."
            )
        stepper.status = "running"

        def gap(t: float) -> float:
            y = stepper.y if t == stepper.t else stepper.dense_output()(t)
            q = self.geometry.y * self._look(y).f
            return min(problem.log_loss_of(q) - goal.log_loss, goal.margin - float(q.min()))

        done = gap(stepper.t) <= 0
        if done:
            t = stepper.t_old if gap(stepper.t_old) <= 0 else root(gap, stepper.t_old, stepper.t)
            stepper.y = stepper.dense_output()(t)
            stepper.t = t
        self.t = self.begun + stepper.t
        late = self.t >= t_end
        self.log_time = goal.log_time if late else min(float(later(self.log_start, self.t)), goal.log_time)
        return Moved([], done or late)

    def verdict(self, goal: Goal) -> Why | None:
        """Whether the data are fitted: from there on steps are implicit."""
        with np.errstate(over="ignore"):
            fold = float(np.exp(min(self.log_time, 600.0))) / self.stepper.h_abs
        q = self.margins()
        fitted = q.min() > FITTED and self.log_time < goal.log_time
        return "late" if fitted and implicit_pays(self.geometry, goal, self.log_time, q, fold, 0.0) else None
