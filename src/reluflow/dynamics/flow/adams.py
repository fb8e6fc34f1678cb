r"""The coupled flow: steps of variable length and order in the forces, every neuron on arcs of its own.

All that couples the neurons is the forces :math:`c_i(t) = r\,y_i\,g(q_i(t))`, n functions of time. They are continued
as polynomials through their last values (Adams), every neuron follows its arcs under them through all its events
(`arcs`), the outputs at the end give the forces there, and with those the step is repeated (corrector). So an event
costs one neuron something, and the step nothing: but an event bends the forces. The jump of :math:`(a w)'` at an event
is known, so the bends are taken out of the forces before they are compared with a polynomial, put back as their mean
over the step, and the old values are continued as if the new slopes had always been: steps stay long.

The history belongs to the faces (kinks at the old times), and with it each neuron has the forces at the old times with
its present sides: changed by one row an event, so that no product is needed to make its polynomial.

At an event the neuron also begins or ceases to count for the sample of the face itself, which bends the output of that
sample alone and is known as well (`arcs.Came.own`): without it steps are two times as many.

A loss enters by two functions only (`pulls`): the pull of a sample as a function of the output, and its derivative.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ...problem import check_time
from ...problem.types import Array, Flags, Ints, Signs
from ..held import Held
from .arcs import FLIP, HARD, Came, new_bench
from .dense import MOVING, Legs, Rows
from .desk import Desk, Tape, fixed_of, new_desk, new_tape
from .field import Geometry
from .state import State, ties
from .stepper import ADVANCE, BEGIN, CUT, LOOK, PROCEED, SHARE, START, SWEEP, TAKE, perform

#: Neurons x faces x inputs from which their passes are shared among threads.
_THREADS = 2_000_000


def threads() -> int:
    """Return how many threads numba may use: the cores, or what ``NUMBA_NUM_THREADS`` says."""
    import numba

    return int(numba.get_num_threads())


class Events(NamedTuple):
    """What happened, in order of time: neuron (of the stepper), face or `arcs.FLIP`, side after it, time."""

    neuron: Ints
    face: Ints
    side: Ints
    clock: Array


class Adams:
    """The moving neurons of a state, and the last few values of the forces."""

    def __init__(self, geometry: Geometry, state: State, who: Flags, rtol: float) -> None:
        self.geometry, self.base_state, self.rtol = geometry, state, rtol
        self.fixed = fixed_of(geometry, rtol)
        unit = np.maximum(state.log_w, state.log_a)[who]
        with np.errstate(under="ignore", over="ignore"):
            W = np.exp(state.log_w[who] - unit)[:, None] * state.U[who]
            b = state.sign[who] * np.exp(state.log_a[who] - unit)
        size = np.sqrt(np.einsum("jd,jd->j", W, W) + b * b)
        self.tied, excess = ties(geometry, state, who, unit)
        self.balanced = state.balanced[who] & (not geometry.frozen)
        self.which = np.flatnonzero(who)
        self.desk = new_desk(self.fixed, np.ascontiguousarray(W / size[:, None]), b / size)
        self.desk.rho[:], self.desk.excess[:] = unit + np.log(size), excess / size**2
        self.desk.sides[:], self.desk.tied[:] = state.sides[who], self.tied | self.balanced
        self._held, self._benches = (Held(self.fixed), Held(self.desk)), [self._bench()]
        self._lay(1)
        self._perform(START)

    def _bench(self) -> Held:
        return Held(new_bench(*self.fixed.normals.shape))

    def _lay(self, most: int) -> None:
        """Lay in a new tape."""
        self.tape = new_tape(self.fixed, self.desk, most)
        self._tape = Held(self.tape)

    def _perform(self, task: int, t_end: float = 0.0, least_loss: float = -np.inf, most_margin: float = np.inf) -> int:
        return int(perform(task, *self._held, self._tape, self._benches[0], t_end, least_loss, most_margin, 0, 1))

    # -- where the neurons are --------------------------------------------------------------------------------

    @property
    def rows(self) -> Rows:
        """The neurons."""
        return self.rows_of(self.desk, ...)

    def rows_of(self, those: Desk | Tape, at: Any) -> Rows:
        """Neurons on the desk, or of some moments of a tape."""
        parts = {name: getattr(those, name)[at] for name in MOVING}
        return Rows(**parts, balanced=self.balanced, tied=self.tied, which=self.which)

    @property
    def f(self) -> Array:
        """Outputs."""
        return self.desk.f.copy()

    @property
    def t(self) -> float:
        """Time since the start of the phase."""
        return float(self.desk.now.t)

    @property
    def h(self) -> float:
        """Length of the next step."""
        return float(self.desk.now.h)

    @property
    def last(self) -> float:
        """Length of the last step."""
        return float(self.desk.now.last)

    @property
    def pace(self) -> float:
        """Largest force on a neuron: how fast it can turn or grow."""
        return float(self.desk.now.pace)

    @property
    def resting(self) -> bool:
        """Whether nothing pulls."""
        return self.pace == 0.0

    @property
    def live(self) -> Flags:
        """Which samples some neuron feels."""
        faces, sides = self.geometry.faces, self.desk.sides
        if self.fixed.slope > 0.0:
            return np.ones(faces.of.size, dtype=bool)
        up, down = np.asarray((sides > 0).any(axis=0)), np.asarray((sides <= 0).any(axis=0))
        return np.asarray(np.where(faces.orient > 0, up[faces.of], down[faces.of]))

    def present(self, j: int) -> Array:
        """Force on a neuron now, tangent to the faces that hold it."""
        force, held = np.array(self.desk.F[j, 1]), self.desk.sides[j] == 0
        if not held.any():
            return force
        normals = self.fixed.normals[held]
        return np.asarray(force - np.linalg.lstsq(normals, normals @ force, rcond=None)[0])

    def state(self) -> State:
        """Return to directions and sizes."""
        return self.rows.state(self.base_state, self.geometry.frozen)

    def field(self, W: Array, b: Array, sides: Signs) -> tuple[Array, Array]:
        """Return the outputs of rows of the present sizes on given sides, and the forces on them."""
        desk = self.desk
        with np.errstate(over="ignore"):
            desk.ones[:] = b * np.exp(2 * desk.rho)
        desk.came.W[:], desk.turned[:] = W, sides
        self._perform(LOOK)
        return desk.f_end.copy(), desk.FA.copy()

    # -- steps ------------------------------------------------------------------------------------------------

    @property
    def shared(self) -> bool:
        """Whether neurons are shared among threads."""
        return self.desk.W.size * self.fixed.normals.shape[0] >= _THREADS and threads() > 1

    def advance(self, most: int, t_end: float, least_loss: float, most_margin: float) -> tuple[int, int]:
        """Take steps, on a new tape, until it is full or something else is to be done: what, and how many."""
        check_time("following the flow")
        self._lay(1 if self.shared else most)
        now = self.desk.now
        now.stage, now.steps = BEGIN, 0
        return self._go_on(t_end, least_loss, most_margin), int(now.steps)

    def _go_on(self, t_end: float, least_loss: float, most_margin: float) -> int:
        if not self.shared:
            return self._perform(ADVANCE, t_end, least_loss, most_margin)
        why = SWEEP
        while why == SWEEP:
            check_time("following the flow")
            why = self._perform(PROCEED, t_end, least_loss, most_margin)
            if why == SWEEP:
                self._sweep()
        return why

    def _sweep(self) -> None:
        """Sweep as `stepper.advance` does; neurons are shared among threads."""
        many = threads()
        while len(self._benches) < many:
            self._benches.append(self._bench())

        def share(part: int) -> None:
            perform(SHARE, *self._held, self._tape, self._benches[part], 0.0, 0.0, 0.0, part, many)

        with ThreadPoolExecutor(many) as pool:
            list(pool.map(share, range(many)))

    # -- a trial: a step that was found good enough, and is to be looked at ------------------------------------

    @property
    def trial(self) -> Came:
        """Where the neurons come to."""
        return self.desk.came

    @property
    def trial_f(self) -> Array:
        """Outputs at its end."""
        return self.desk.f_end.copy()

    def cut(self, part: float) -> None:
        """Look at the same step up to a part of it."""
        now = self.desk.now
        now.stage, now.upto = CUT, part
        self._go_on(0.0, -np.inf, np.inf)

    def events(self) -> Events:
        """List what happens in the trial."""
        came, now = self.desk.came, self.desk.now
        n = came.n - ((came.status == HARD) & (came.n > 0) & (came.face[np.arange(came.n.size), came.n - 1] == FLIP))
        rows = np.repeat(np.arange(n.size), n)
        place = np.arange(rows.size) - np.repeat(np.cumsum(n) - n, n)
        when = came.when[rows, place]
        order = np.argsort(when, kind="stable")
        rows, place = rows[order], place[order]
        return Events(
            rows, came.face[rows, place], came.side[rows, place].astype(np.int64), now.t + when[order] * now.h
        )

    def leg(self, log_start: float, begun: float) -> Legs:
        """Return what is needed to look at the trial again; its end is not known yet."""
        desk, rows, terms = self.desk, self.rows, int(self.desk.now.terms)
        low = np.zeros((terms, 0))
        if not self.fixed.bare:
            low = desk.C[:terms, :terms] @ desk.lows[:terms]
            low[0] += desk.constant
        return Legs(
            self.base_state,
            rows._replace(**{name: getattr(rows, name)[None].copy() for name in MOVING}),
            desk.mass[None].copy(),
            desk.kink[None, :terms].copy(),
            low[None],
            np.array([terms]),
            self.fixed,
            np.array([self.h]),
            log_start,
            np.array([begun + self.t]),
            np.empty(1),
        )

    def legs(self, log_start: float, begun: float, log_ends: Array) -> Legs:
        """Return the same of the first steps on the tape, which end at these log times; the clock began at others."""
        tape, first = self.tape, slice(0, log_ends.size)
        return Legs(
            self.base_state,
            self.rows_of(tape, first),
            tape.mass[first],
            tape.kink[first],
            tape.low[first],
            tape.terms[first],
            self.fixed,
            tape.clock[first, 1],
            log_start,
            begun + tape.clock[first, 0],
            log_ends,
        )

    def take(self) -> None:
        """Go to the end of the trial."""
        self._perform(TAKE)

    def settle(self, j: int, sides: Signs, w: Array, b: float) -> None:
        """Give a neuron new sides, and the forces of the past with them."""
        desk, n = self.desk, int(self.desk.now.nodes)
        desk.W[j], desk.b[j], desk.sides[j] = w, b, sides
        desk.Z[j] = w @ self.fixed.across
        up = np.where(sides > 0, desk.hist[1 : n + 1], 0.0)
        desk.F[j, 1 : n + 1] = (desk.lows[1 : n + 1] + up) @ self.fixed.normals
        # The force may be a hundred times as strong as before: a step as long as the last could let it grow by e^500.
        force = float(np.linalg.norm(self.present(j)))
        desk.now.h = min(float(desk.now.h), 1.0 / force) if force > 0 else desk.now.h
