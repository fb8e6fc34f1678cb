"""Implicit steps of the late phase, as Python sees them; `implicit` has the compiled parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...problem import check_time
from ...problem.types import Array
from ..held import Held
from .implicit import ADVANCE, BEGIN, FACTOR, FAILED, LOOK, NOW, ORDERS, RATE, ROOM, Desk, Matrix, World, perform

_SPARE = 1.5  # how much more room is made than is asked for
_CAREFUL = 1e-2  # part of the time in which the neurons would change by themselves, for a first step


class Pull(NamedTuple):
    """Margins, forces of the samples (summing to one with the clock ``norm``), their common factor, log dt/du.

    And the sum of the sizes of the neurons, which margins are made of.
    """

    q: Array
    p: Array
    speed: float
    log_dt: float
    reach: float


class Room:
    """What fields with the same neurons and samples work in, one after the other."""

    def __init__(self, p: int, d: int, n: int, size: int) -> None:
        self.shape = p, d, n, size
        now = np.zeros(1, NOW)[0]
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("W", "M", "F", "V", "force"), (p, d))
        shapes |= dict.fromkeys(("a", "factor", "mass", "b", "units", "inv"), (p,))
        shapes |= dict.fromkeys(("q", "pull", "p", "bend", "alone"), (n,))
        vectors = ("rate", "y", "atol", "predicted", "trial", "psi", "d", "x", "push")
        shapes |= dict.fromkeys(vectors, (size,))
        shapes |= {"Z": (p, n), "D": (ORDERS + 3, size), "old": (ORDERS + 1, size), "turn": (3, ORDERS + 1, ORDERS + 1)}
        arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
        self.desk = Desk(**arrays, E=np.zeros(n, np.int64), now=now)
        self.held = Held(self.desk)
        self.make(0, p, p, d)

    def make(self, k: int, groups: int, rows: int, d: int) -> None:
        """Make room for a matrix between k samples."""
        sizes = {"A": k * k, "T": k * k, "X": k * d, "H": groups * k, "left": rows * k, "right": rows * k, "dq": k}
        arrays = {name: np.empty(size) for name, size in sizes.items()}
        self.matrix = Matrix(**arrays, pivots=np.zeros(k, np.int64))
        self.held_matrix = Held(self.matrix)
        self.desk.now["room"], self.rows = k, rows


class Field:
    """The field of a chart: what it says about a point is remembered until it is asked about another."""

    def __init__(self, world: World, room: Room) -> None:
        self.room, self.held = room, Held(world)
        self._seen: tuple[float, Array, Pull] | None = None

    @property
    def world(self) -> World:
        """What it depends on."""
        return self.held.values  # type: ignore[return-value]

    def _ask(self, task: int, s: float, y: Array) -> None:
        perform(task, self.held, self.held, self.room.held, self.room.held_matrix, s, y)

    def pull(self, s: float, y: Array) -> Pull:
        """Work out margins and forces of the samples at a point; the arrays are not to be written to."""
        if self._seen is None or self._seen[0] != s or self._seen[1] is not y:
            self._ask(LOOK, s, y)
            desk = self.room.desk
            told = (float(desk.now[name]) for name in ("speed", "log_dt", "reach"))
            self._seen = s, y, Pull(desk.q.copy(), desk.pull.copy(), *told)
        return self._seen[2]

    def rate(self, s: float, y: Array) -> Array:
        """Differentiate: how the coordinates of a point change with the clock."""
        self._ask(RATE, s, y)
        return self.room.desk.rate.copy()


class Solver:
    """Steps along a field from a point; with a first ``step``, or a cautious one."""

    def __init__(self, field: Field, s: float, bound: float, y: Array, atol: Array, step: float | None) -> None:
        self.field = self._then = field
        self.now = field.room.desk.now
        if step is None:  # at log t = 10^6 an explicit trial step, from which one could choose, overflows
            step = _CAREFUL / (1.0 + float(np.abs(field.rate(s, y)).max()))
        self.now["h"], self.now["bound"] = min(step, 0.5 * (bound - s)), bound
        self.allow(atol)
        self._perform(BEGIN, s, y)

    def _perform(self, task: int, s: float, y: Array) -> int:
        room = self.field.room
        return int(perform(task, self.field.held, self._then.held, room.held, room.held_matrix, s, y))

    @property
    def t(self) -> float:
        """The clock."""
        return float(self.now["t"])

    @property
    def h(self) -> float:
        """Length of the next step."""
        return float(self.now["h"])

    @property
    def y(self) -> Array:
        """Where it is."""
        return self.field.room.desk.y.copy()

    def allow(self, atol: Array) -> None:
        """Set the errors that a step may make."""
        self.field.room.desk.atol[:] = atol

    def enter(self, field: Field) -> None:
        """Go on along another field, one that differs from this by idle sides alone."""
        if self.now["fresh"]:
            self._then = self.field
        self.field, self.now["fresh"] = field, 0

    def step(self) -> bool:
        """Take a step; False if it would have to be shorter than rounding."""
        from scipy.linalg.lapack import dgetrf

        room = self.field.room
        if self._rows() > room.rows:
            self.now["room"] = 0
        while True:
            check_time("following the flow")  # many may be tried before one is taken
            why = self._perform(ADVANCE, self.now["t"], room.desk.y)
            if why == ROOM:
                groups, d = room.desk.W.shape
                room.make(int(_SPARE * self.now["k"]) + 1, groups, self._rows(), d)
            elif why == FACTOR:
                k, matrix = int(self.now["k"]), room.matrix
                A = matrix.A[: k * k].reshape(k, k)
                _, matrix.pivots[:k], _ = dgetrf(A.T, overwrite_a=True)  # in place: of the transpose
            else:
                return why != FAILED

    def _rows(self) -> int:
        """Rows of the products that a matrix is made of."""
        return max(len(self.field.room.desk.W), *(len(field.world.owner) for field in (self.field, self._then)))

    def path(self) -> Path:
        """Return the polynomial along which the last step went."""
        order = int(self.now["order"])
        return Path(float(self.now["t"]), float(self.now["h"]), self.field.room.desk.D[: order + 1].copy())


class Path(NamedTuple):
    """A polynomial through the ends of steps of length h, the last at t, by its backward differences there."""

    t: float
    h: float
    D: Array  # (order + 1, N)

    def weights(self, s: Any) -> Array:
        """Multiples of the differences that give the value at s; a row for each of several."""
        k = np.arange(len(self.D) - 1)
        steps = ((np.asarray(s) - self.t)[..., None] + self.h * k) / (self.h * (1 + k))
        return np.concatenate([np.ones((*steps.shape[:-1], 1)), np.cumprod(steps, axis=-1)], axis=-1)

    def __call__(self, s: float) -> Array:
        """Value at s."""
        return np.asarray(self.weights(s) @ self.D)

    def along(self, j: int, normal: Array) -> Array:
        """Return the differences of the component of neuron j along a normal."""
        d = normal.size
        return np.asarray(self.D[:, j * (d + 1) : j * (d + 1) + d] @ normal)
