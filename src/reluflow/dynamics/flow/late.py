r"""The late phase: implicit steps in a logarithmic clock.

Once the data are fitted everything happens on the scale of log t, and explicit methods need a number of steps
proportional to :math:`R = |\theta|^2`. Two clocks:

* ``norm``: :math:`u = \log(R/R_0)`, rows over :math:`e^{u/2}`. With :math:`p_i \propto g_i`,
  :math:`\gamma_p = \sum_i p_i q_i / R` and :math:`\hat D = \sum_i p_i h_i y_i x_i`,
  :math:`dw/du = a\hat D/(4\gamma_p) - w/2`, and time follows from :math:`dt/du = 1/(4 \gamma_p\, r \sum_i g_i)`. For a
  frozen second layer :math:`u = \log(|W|/R_0)`, rows over :math:`e^u`, :math:`dw/du = R_0 a\hat D/\gamma_p - w`.
* ``time``: :math:`s = \log t`, for data that are not fitted.

All neurons are carried as they are; `implicit` has the equations in compiled form, `solver` the steps.

Points may rest in balance while the others go on (`balance.Level`). With the clock ``norm`` they are held as by
springs: :math:`p_i = k (z_i - q_i)/R` beside the :math:`p_i` of the others, which sum to 1; their large pulls, without
effect on any neuron, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ...problem.types import Array, Flags
from .balance import Level
from .field import Geometry, Pattern, edge_of, make_pattern
from .implicit import World
from .pulls import LOSSES
from .solver import Field, Pull, Room
from .state import STRONG, State, moving, onto, tie, ties

_EXPONENT = 0.002  # largest error in one step of a margin, an exponent, or of pulls beside what is left of them

FINEST = 1e-13  #: least error that a step can be asked for

Clock = Literal["norm", "time"]

_SHRUNK = 1e-2  # size, in that at the start of a chart, below which a neuron is put back on what it slides on
_IDLE = 40.0  # log of the part of the strongest pull below which one is lost in rounding
SPRING = 1e10  #: stiffness of points in balance: what their normalised margins are off is one part of this


@dataclass(frozen=True)
class LateChart:
    """Coordinates of the moving neurons, one row (d + 1) each; with the clock ``norm`` also asinh(log t) at the end."""

    geometry: Geometry
    base: State
    pattern: Pattern
    who: Flags
    balanced: Flags
    tied: Flags  # whose output weight follows from |w|
    excess: Array  # a^2 - |w|^2 in units of the rows
    unit: Array  # log of the size of each neuron at the start
    clock: Clock
    log_time: float  # at the start
    log_size: float  # log R_0: log |theta|^2, or log |W| for a frozen second layer
    level: Level | None  # points that rest in balance, with the clock ``norm``
    room: Room  # to work in

    # -- coordinates ----------------------------------------------------------------------------------

    @property
    def decay(self) -> float:
        """How the rows shrink with the clock: the power of R that they are divided by."""
        return 0.0 if self.clock == "time" else (1.0 if self.geometry.frozen else 0.5)

    @property
    def y0(self) -> Array:
        """Coordinates of the state itself."""
        s, w = self.base, self.who
        rows = np.empty((self.unit.size, s.U.shape[1] + 1))
        with np.errstate(under="ignore"):
            rows[:, :-1] = np.exp(s.log_w[w] - self.unit)[:, None] * s.U[w]
            rows[:, -1] = 0.0 if self.geometry.frozen else s.sign[w] * np.exp(s.log_a[w] - self.unit)
        return rows.ravel() if self.clock == "time" else np.append(rows.ravel(), np.arcsinh(self.log_time))

    def rows(self, y: Array) -> tuple[Array, Array]:
        """Split coordinates into vectors (p, d) and last entries (p,)."""
        rows = y[: self.unit.size * (self.geometry.X.shape[1] + 1)].reshape(self.unit.size, -1)
        return rows[:, :-1], rows[:, -1]

    @cached_property
    def signs(self) -> Array:
        """Signs of the output weights at the start."""
        return self.base.sign[self.who]

    def neurons(self, s: float, y: Array) -> tuple[Array, Array]:
        """First-layer rows and output weights; a from |w| or |w| from a, with ``a^2 - |w|^2`` what it was (C-INV1)."""
        V, last = self.rows(y)
        if self.geometry.frozen:
            return V, self._fixed
        return tie(V, last, self.tied, self.signs, self.excess * np.exp(-2 * self.decay * s))

    @cached_property
    def _fixed(self) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(self.signs * np.exp(self.base.log_a[self.who] - self.unit))

    @cached_property
    def _area(self) -> Array:
        with np.errstate(under="ignore"):
            return np.asarray(np.exp(2 * self.unit))

    def tau(self, s: float, y: Array) -> float:
        """Log t."""
        return s if self.clock == "time" else float(np.sinh(y[-1]))

    def margins(self, s: float, y: Array) -> Array:
        """``q_i``."""
        return self.pull(s, y).q

    def state(self, y: Array, s: float) -> State:
        """Return to directions and sizes."""
        V, out = self.neurons(s, y)
        shift = self.unit + self.decay * s
        U, log_w, log_a, sign = (x.copy() for x in (self.base.U, self.base.log_w, self.base.log_a, self.base.sign))
        size = np.linalg.norm(V, axis=1)
        with np.errstate(divide="ignore"):
            U[self.who] = V / np.where(size > 0, size, 1.0)[:, None]
            log_w[self.who] = np.log(size) + shift
            if not self.geometry.frozen:
                log_a[self.who] = np.where(self.balanced & self.tied, log_w[self.who], np.log(np.abs(out)) + shift)
                sign[self.who] = np.sign(out)
        if self.pattern.held:
            # What rounding left beside their hyperplanes does not shrink with neurons that do.
            held = np.isin(self.pattern.member, list(self.pattern.held))
            for j in np.flatnonzero(self.who)[held & (size < _SHRUNK)]:
                U[j] = onto(self.geometry, U[j], self.base.sides[j])
        return replace(self.base, U=U, log_w=log_w, log_a=log_a, sign=sign)

    def smallest(self, folds: float) -> Array:
        """Log sizes below which neurons have shrunk by so many e-folds since the start."""
        return self._started - folds

    @cached_property
    def _started(self) -> Array:
        return self.geometry.log_norms[self.who]

    # -- sides that do not matter ---------------------------------------------------------------------

    def idle(self, q: Array) -> Flags:
        """Hyperplanes of samples that pull less than rounding: a neuron that crosses one moves on as it did."""
        faces = self.geometry.faces
        out = np.zeros(faces.m, dtype=bool)
        if self.clock == "time":
            return out
        log_g = self.geometry.problem.loss.log_force(q)
        out[:] = True
        out[faces.of[log_g > float(log_g[self.counts].max(initial=-np.inf)) - _IDLE]] = False
        return out

    def across(self, crossed: Sequence[tuple[int, int]]) -> LateChart:
        """Return the chart beyond idle hyperplanes, given as pairs of a neuron of the chart and a hyperplane."""
        sides, index = self.base.sides.copy(), np.flatnonzero(self.who)
        for j, k in crossed:
            sides[index[j], k] *= -1
        return replace(self, base=replace(self.base, sides=sides), pattern=make_pattern(self.geometry, sides[self.who]))

    # -- the field ------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> Flags:
        """Which samples go on to be fitted: felt, and not in balance."""
        felt = self.pattern.live.copy()
        if self.level is not None:
            felt[self.level.points] = False
        return felt

    @cached_property
    def field(self) -> Field:
        """The equations, compiled."""
        geometry, pattern = self.geometry, self.pattern
        holds = pattern.held.items()
        ranks = [hold.basis.shape[1] for _, hold in holds]
        points, rest = (np.empty(0, np.intp), np.empty(0)) if self.level is None else self.level[:2]
        return Field(
            World(
                X=geometry.X,
                y=geometry.y,
                norms=geometry.problem.data.norms,
                H=pattern.H,
                member=pattern.member.astype(np.int64),
                owner=np.repeat(np.array([g for g, _ in holds], dtype=np.int64), ranks),
                basis=np.vstack([np.empty((0, geometry.X.shape[1])), *(hold.basis.T for _, hold in holds)]),
                tied=self.tied.astype(np.int8),
                excess=self.excess,
                signs=self.signs,
                out=self._fixed,
                area=self._area,
                counts=self.counts.astype(np.int8),
                points=points.astype(np.int64),
                rest=rest,
                spring=SPRING,
                log_size=self.log_size,
                decay=self.decay,
                weight=geometry.problem.weight,
                loss=LOSSES[geometry.problem.loss.name],
                frozen=geometry.frozen,
                norm=self.clock == "norm",
            ),
            self.room,
        )

    def pull(self, s: float, y: Array) -> Pull:
        """Margins and forces of the samples at a point."""
        return self.field.pull(s, y)

    def pulls(self, s: float, y: Array) -> Array:
        """``c_i`` up to a common factor; also of samples that neurons only slide on, which may be far stronger."""
        pull = self.pull(s, y)
        log_g = self.geometry.problem.loss.log_force(pull.q)
        top = float(log_g[self.counts].max())
        with np.errstate(under="ignore"):
            c = np.exp(np.minimum(log_g - top, STRONG))
        if self.level is not None:  # these are far stronger too, and what they do together is nothing
            who, g = self.level.points, self.level.pulls
            c[who] = np.exp(STRONG) * g / g.max() + pull.p[who] / pull.p[self.counts].max()
        return np.asarray(self.geometry.y * c)

    def edge(self, s: float, y: Array) -> float:
        """Part of the forces that may be rounding."""
        return edge_of(self.pull(s, y).reach * float(self.geometry.problem.data.norms.max()))

    def blur(self, s: float, y: Array, tol: float) -> float:
        """Part of the forces that may be wrong by what steps are: margins of 10^5 are exponents."""
        tol = self.finer(s, y, tol)
        return tol if self.clock == "time" else tol * (1.0 + abs(self.tau(s, y)))

    def finer(self, s: float, y: Array, tol: float) -> float:
        """Return the error that a step may make, as part of the neurons: less where pulls would feel it."""
        if self.clock == "norm":
            return min(tol, _EXPONENT / (1.0 + abs(self.tau(s, y))))
        pulls = float(self.pull(s, y).p @ self.geometry.problem.data.norms)
        return max(min(tol, _EXPONENT / (1.0 + pulls)), FINEST)


def late_chart(
    geometry: Geometry,
    state: State,
    whole: Pattern,
    clock: Clock,
    log_time: float,
    level: Level | None = None,
    room: Room | None = None,
) -> LateChart:
    """Choose coordinates for the neurons that move; ``room`` is that of a chart that is not in use any more."""
    who = moving(geometry, state, whole)
    pattern = make_pattern(geometry, state.sides[who])
    if geometry.frozen:
        log_size = float(np.logaddexp.reduce(2 * state.log_w) / 2)
        unit = np.full(int(who.sum()), log_size)
        balanced = np.zeros(unit.size, dtype=bool)
    else:
        log_size = float(np.logaddexp.reduce(2 * np.concatenate([state.log_w, state.log_a])))
        unit = np.maximum(state.log_w, state.log_a)[who]
        balanced = state.balanced[who]
    tied, excess = ties(geometry, state, who, unit)
    p, d, n = unit.size, geometry.X.shape[1], geometry.y.size
    shape = p, d, n, p * (d + 1) + (clock == "norm")
    if room is None or room.shape != shape:
        room = Room(*shape)
    return LateChart(
        geometry, state, pattern, who, balanced, tied, excess, unit, clock, log_time, log_size, level, room
    )


def tolerances(chart: LateChart, s: float, y: Array, tol: float) -> Array:
    """Return the error allowed: ``tol`` of the size of a neuron, and less where margins of 10^6 would feel it."""
    V, last = chart.rows(y)
    size = np.sqrt(np.einsum("jd,jd->j", V, V) + last**2) + 1e-300
    tol = chart.finer(s, y, tol)
    each = np.repeat(tol * size, V.shape[1] + 1)
    return each if chart.clock == "time" else np.append(each, tol)
