r"""The late phase: implicit steps in a logarithmic clock.

Once the data are fitted everything happens on the scale of log t, and explicit methods need a number of steps
proportional to :math:`R = |\theta|^2`. Two clocks:

* ``norm``: :math:`u = \log(R/R_0)`, rows over :math:`e^{u/2}`. With :math:`p_i \propto g_i`,
  :math:`\gamma_p = \sum_i p_i q_i / R` and :math:`\hat D = \sum_i p_i h_i y_i x_i`,
  :math:`dw/du = a\hat D/(4\gamma_p) - w/2`, and time follows from :math:`dt/du = 1/(4 \gamma_p\, r \sum_i g_i)`. For a
  frozen second layer :math:`u = \log(|W|/R_0)`, rows over :math:`e^u`, :math:`dw/du = R_0 a\hat D/\gamma_p - w`.
* ``time``: :math:`s = \log t`, for data that are not fitted.

All neurons are carried as they are. The matrix of the implicit equations is a block for each neuron, which has a closed
inverse, plus a part of rank k, the number of samples with a noticeable force: Woodbury's formula leaves a k x k
system, essentially in the margins. Nothing of size n x n or (p d) x (p d) is formed.

Points may rest in balance while the others go on (`balance.Level`). With the clock ``norm`` they are held as by
springs: :math:`p_i = k (z_i - q_i)/R` beside the :math:`p_i` of the others, which sum to 1; their large pulls, without
effect on any neuron, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from ...problem import check_time
from ...problem.types import Array, Flags
from .balance import Level
from .field import Geometry, Pattern, edge_of, make_pattern
from .state import STRONG, State, moving, onto, tie, ties

_EXPONENT = 0.002  # largest error in one step of a margin, an exponent, or of pulls beside what is left of them

FINEST = 1e-13  #: least error that a step can be asked for

Clock = Literal["norm", "time"]

_SHRUNK = 1e-2  # size, in that at the start of a chart, below which a neuron is put back on what it slides on
_IDLE = 40.0  # log of the part of the strongest pull below which one is lost in rounding
_NOTICEABLE = 1e-3  # a sample enters the matrix if its diagonal entry may exceed this
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
    level: Level | None = None  # points that rest in balance, with the clock ``norm``

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

    def _factor(self, s: float) -> Array:
        """Return what turns products of rows into ``a_j w_j`` at the real scale."""
        return np.asarray(self._area * math.exp((1.0 if self.geometry.frozen else 2.0) * self.decay * s))

    def tau(self, s: float, y: Array) -> float:
        """Log t."""
        return s if self.clock == "time" else float(np.sinh(y[-1]))

    def margins(self, s: float, y: Array) -> Array:
        """``q_i``."""
        return self._margins(s, *self.neurons(s, y))

    def _margins(self, s: float, V: Array, out: Array) -> Array:
        return self.pattern.margins((self._factor(s) * out)[:, None] * V)

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

    def _spring(self, s: float) -> float:
        return SPRING * math.exp(-(self.log_size + s))

    def pull(self, s: float, y: Array) -> Pull:
        """Work out the forces of the samples at a point."""
        return self._pull(s, self.margins(s, y))

    def _pull(self, s: float, q: Array) -> Pull:
        problem = self.geometry.problem
        log_g = np.where(self.counts, problem.loss.log_force(q), -np.inf)
        if self.clock == "time":
            with np.errstate(over="ignore", under="ignore"):
                c = np.exp(log_g + (s + math.log(problem.weight)))
            return Pull(q, c, 1.0, 0.0)
        top = float(log_g.max())
        with np.errstate(under="ignore"):
            p = np.exp(log_g - top)
        total = float(p.sum())
        p /= total
        gamma = float(p @ q) * np.exp(-(self.log_size + s))  # of these alone: the clock is free, and so it is not stiff
        if self.level is not None:
            p[self.level.points] = self._spring(s) * (self.level.margins - q[self.level.points])
        if self.geometry.frozen:
            speed = float(np.exp(self.log_size)) / gamma
            log_dt = s + self.log_size - np.log(gamma) if gamma > 0 else np.nan
        else:
            speed = 0.25 / gamma if gamma != 0 else np.nan
            log_dt = np.log(speed) if speed > 0 else np.nan
        return Pull(q, p, speed, float(log_dt - np.log(problem.weight) - top - np.log(total)))

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
        V, out = self.neurons(s, y)
        sizes = self._factor(s) * np.abs(out) * np.linalg.norm(V, axis=1)
        return edge_of(float(sizes.sum() * self.geometry.problem.data.norms.max()))

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

    def field(self) -> Callable[[float, Array], Array]:
        """Right-hand side, as solvers want it."""
        decay, y_of, member = self.decay, self.geometry.y, self.pattern.member

        def rhs(s: float, y: Array) -> Array:
            check_time("following the flow")  # a solver may try many steps before it takes one
            W, a = self.neurons(s, y)
            pull = self._pull(s, self._margins(s, W, a))
            D = self.pattern.forces(pull.p * y_of * pull.speed)[member]
            V, last = self.rows(y)
            out = np.empty_like(y)
            rows = out[: V.size + last.size].reshape(len(V), -1)
            rows[:, :-1] = a[:, None] * D - decay * V
            rows[:, -1] = 0.0 if self.geometry.frozen else np.einsum("jd,jd->j", W, D) - decay * last
            if self.clock == "norm":
                out[-1] = _pace(pull.log_dt, y[-1])
            return out

        return rhs

    def linearize(self, s: float, y: Array) -> Linear:
        """Differentiate the field at a point."""
        pull = self.pull(s, y)
        q, p = pull.q, pull.p
        kink = -1.0 / (1.0 + np.exp(-np.clip(q, -700, 700))) if self.geometry.problem.loss.name == "logistic" else -1.0
        D = self.pattern.forces(p * self.geometry.y * pull.speed)
        bend = p * kink
        if self.level is None:
            return Linear(self, s, y, pull, p, bend, bend, D)
        p, alone = p.copy(), bend.copy()
        p[self.level.points], bend[self.level.points], alone[self.level.points] = 0.0, 0.0, -self._spring(s)
        return Linear(self, s, y, pull, p, bend, alone, D)


@dataclass(frozen=True)
class Pull:
    """Margins, forces of the samples (summing to one with the clock ``norm``), their common factor, log dt/du."""

    q: Array
    p: Array
    speed: float
    log_dt: float


@dataclass(frozen=True)
class Linear:
    r"""Derivative J of the field: blocks :math:`-\text{decay} + [[0, D], [D^T, 0]]` and the way through the margins."""

    chart: LateChart
    s: float
    y: Array
    pull: Pull
    p: Array  # (n,) forces that sum to one ...
    bend: Array  # (n,) ... and how they change with their margins before they are made to ...
    alone: Array  # (n,) ... and with those of points in balance, which do not enter the sum
    D: Array  # (G, d)

    __array_ufunc__ = None  # so that a NumPy number times this asks __rmul__

    def __rmul__(self, c: float) -> Shift:
        return Shift(float(c), self)


class _One:
    """Stands for the identity matrix in ``I - c J``."""

    def __sub__(self, other: Shift) -> Shift:
        return other


class _Factors(NamedTuple):
    """What solving with ``I - c J`` needs: the samples and neurons that matter, and a small system between samples."""

    X: Array  # (k, d) the samples
    H: Array  # (G, k) slopes of the groups on them
    V: Array  # (p, d) first-layer weights
    out: Array  # (p,) output weights
    factor: Array  # (p,) units of the neurons
    alpha: float  # 1 + c decay
    D: Array  # (p, d) what pulls each neuron
    inv: Array  # (p,) of the last row of each neuron's block; 0 for a frozen layer
    sign: Array  # (k,) labels
    lu: Any  # of the system between samples


@dataclass(frozen=True)
class Shift:
    """``I - c J``, factorised when first solved with."""

    c: float
    J: Linear

    @cached_property
    def which(self) -> Any:
        """Samples that make the equations stiff."""
        J, chart = self.J, self.J.chart
        V, out = chart.neurons(J.s, J.y)
        size = chart._factor(J.s) @ (out**2 + np.einsum("jd,jd->j", V, V))
        diagonal = abs(self.c * J.pull.speed) * np.abs(J.alone) * float(size) * chart.geometry.problem.data.norms**2
        return np.flatnonzero(diagonal > _NOTICEABLE)

    @cached_property
    def _ready(self) -> _Factors:
        from scipy.linalg import lu_factor

        J, chart, c = self.J, self.J.chart, self.c
        pattern, frozen = chart.pattern, chart.geometry.frozen
        E = self.which
        X, H = chart.geometry.X[E], pattern.H[:, E]
        V, out = chart.neurons(J.s, J.y)
        factor = chart._factor(J.s)
        alpha = 1.0 + c * chart.decay
        gram = X @ X.T
        mass = pattern.total(factor * out**2)
        T = ((H.T * mass) @ H) * gram
        if pattern.held:  # what the hyperplanes take out of the forces
            blocks = [np.sqrt(mass[g]) * H[g][:, None] * (X @ hold.basis) for g, hold in pattern.held.items()]
            out_of = np.hstack(blocks)
            T -= out_of @ out_of.T
        T /= alpha
        D = J.D[pattern.member]
        inv = np.zeros(len(V))
        if not frozen:
            inv = alpha / (alpha**2 - c**2 * np.einsum("jd,jd->j", D, D))
            psi = V @ X.T + (c / alpha) * out[:, None] * (J.D @ X.T)[pattern.member]
            psi *= H[pattern.member]
            T += psi.T @ ((factor * inv)[:, None] * psi)
        sign = chart.geometry.y[E]
        T *= np.outer(sign, sign)
        A = -c * (J.pull.speed * J.alone[E])[:, None] * T
        if chart.clock == "norm":
            A += c * np.outer(J.pull.speed * J.p[E], J.bend[E] @ T)
        A[np.diag_indices_from(A)] += 1.0
        return _Factors(X, H, V, out, factor, alpha, D, inv, sign, lu_factor(A, check_finite=False))

    def _block(self, rows: Array) -> Array:
        """Solve with the blocks of the neurons alone."""
        alpha, D, inv = self._ready.alpha, self._ready.D, self._ready.inv
        out = np.empty_like(rows)
        if self.J.chart.geometry.frozen:
            return np.asarray(rows / alpha)
        out[:, -1] = inv * (rows[:, -1] + (self.c / alpha) * np.einsum("jd,jd->j", D, rows[:, :-1]))
        out[:, :-1] = (rows[:, :-1] + self.c * D * out[:, -1:]) / alpha
        return out

    def _margins(self, rows: Array) -> Array:
        """Change of the margins that matter by a change of the rows."""
        at, chart = self._ready, self.J.chart
        weighted = (at.factor * at.out)[:, None] * rows[:, :-1]
        if not chart.geometry.frozen:
            weighted += (at.factor * rows[:, -1])[:, None] * at.V
        Z = at.X @ chart.pattern.total(weighted).T
        return np.asarray(at.sign * np.einsum("gk,kg->k", at.H, Z))

    def solve(self, b: Array) -> Array:
        """Solve ``(I - c J) x = b``."""
        from scipy.linalg import lu_solve

        J, chart, at = self.J, self.J.chart, self._ready
        V = at.V
        n_rows = V.shape[0] * (V.shape[1] + 1)
        x = self._block(b[:n_rows].reshape(V.shape[0], -1))
        bend = J.bend[self.which]
        dq = self._margins(x)
        change = J.pull.speed * J.alone[self.which] * dq
        if chart.clock == "norm":
            change -= J.pull.speed * J.p[self.which] * float(bend @ dq)
        z = lu_solve(at.lu, self.c * change, check_finite=False)
        G = chart.pattern.project((at.H * (z * at.sign)) @ at.X)[chart.pattern.member]
        push = np.empty_like(x)
        push[:, :-1] = at.out[:, None] * G
        push[:, -1] = 0.0 if chart.geometry.frozen else np.einsum("jd,jd->j", V, G)
        x += self._block(push)
        if chart.clock == "time":
            return x.ravel()
        rate = _pace(J.pull.log_dt, J.y[-1])
        stiff = rate * (np.cosh(J.y[-1]) + np.tanh(J.y[-1]))  # rate = e^(log_dt - tau) / cosh, tau = sinh
        dq = self._margins(x)
        last = (b[-1] - self.c * rate * float(bend @ dq)) / (1.0 + self.c * stiff)
        return np.append(x.ravel(), last)


def _pace(log_dt: float, z: float) -> float:
    """``dz/du`` for z = asinh(log t)."""
    with np.errstate(over="ignore"):
        return float(np.exp(log_dt - np.sinh(z)) / np.cosh(z))


def late_chart(
    geometry: Geometry, state: State, whole: Pattern, clock: Clock, log_time: float, level: Level | None = None
) -> LateChart:
    """Choose coordinates for the neurons that move."""
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
    return LateChart(geometry, state, pattern, who, balanced, tied, excess, unit, clock, log_time, log_size, level)


def solver(chart: LateChart, s: float, s_bound: float, y: Array, tol: float, step: float | None = None) -> Any:
    """SciPy's BDF with the structured matrix in place of a dense one; with a first ``step``, or a cautious one."""
    from scipy.integrate import BDF
    from scipy.sparse import csc_matrix

    empty = csc_matrix((y.size, y.size))
    if step is None:  # at log t = 10^6 an explicit trial step, which SciPy would take to choose one, overflows
        step = 1e-2 / (1.0 + float(np.abs(chart.field()(s, y)).max()))
    found = BDF(
        chart.field(),
        s,
        y,
        s_bound,
        rtol=2.3e-14,
        atol=tolerances(chart, s, y, tol),
        jac=lambda _s, _y: empty,
        first_step=min(step, 0.5 * (s_bound - s)),
    )
    found.J = chart.linearize(s, y)
    found.I = _One()
    found.lu = lambda shift: shift
    found.solve_lu = lambda shift, b: shift.solve(b)
    found.newton_tol = 0.01
    go_by(found, chart)
    return found


def go_by(stepper: Any, chart: LateChart) -> None:
    """Let a solver go on with the field of a chart; if it is not its first, one that differs by idle sides alone."""
    start = stepper.J

    def linearize(s: float, y: Array) -> Any:
        # SciPy keeps what it is given while it halves a step, and a trial step may have gone beyond doubles.
        new = chart.linearize(s, y)
        return new if np.isfinite(new.pull.speed) and np.isfinite(new.pull.log_dt) else start

    stepper.fun, stepper.jac = chart.field(), linearize


def tolerances(chart: LateChart, s: float, y: Array, tol: float) -> Array:
    """Return the error allowed: ``tol`` of the size of a neuron, and less where margins of 10^6 would feel it."""
    V, last = chart.rows(y)
    size = np.sqrt(np.einsum("jd,jd->j", V, V) + last**2) + 1e-300
    tol = chart.finer(s, y, tol)
    each = np.repeat(tol * size, V.shape[1] + 1)
    return each if chart.clock == "time" else np.append(each, tol)
