r"""The coupled phase: all neurons and the loss together, by explicit steps in time.

A balanced neuron is carried as :math:`(u, \rho) = (w/|w|, \log|w|)`, with :math:`u' = s(I - uu^T)D`,
:math:`\rho' = s\,u \cdot D` (C-INV3), so that sizes of e^-2000 and long stretches of pure growth cost nothing; any
other as :math:`(w, a)` over its size at the start of the step sequence, with the linear flow :math:`w' = aD`,
:math:`a' = w \cdot D`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...problem import check_time
from ...problem.types import Array, Flags
from .field import Geometry, Pattern, edge_of, make_pattern
from .state import State, forces_at, moving, tie, ties

_MOST_GROWTH = 2.0  # largest change of log |w| in one step of a neuron that matters ...
_UNSEEN = -16.0  # ... and below this log |w| its output, e^-32, does not


@dataclass(frozen=True)
class Chart:
    """Coordinates of the moving neurons of a state, one row (d + 1) each, and the field in them."""

    geometry: Geometry
    base: State
    pattern: Pattern  # of the moving neurons alone
    who: Flags  # which neurons those are
    balanced: Flags
    tied: Flags  # whose output weight follows from |w|
    excess: Array  # a^2 - |w|^2 in units of the rows
    unit: Array  # log of the size that the rows of unbalanced neurons are given in

    @property
    def y0(self) -> Array:
        """Coordinates of the state itself."""
        s, w = self.base, self.who
        rows = np.empty((int(w.sum()), s.U.shape[1] + 1))
        with np.errstate(under="ignore"):
            size = np.where(self.balanced, 1.0, np.exp(s.log_w[w] - self.unit))
            out = np.where(self.balanced, s.log_w[w], s.sign[w] * np.exp(s.log_a[w] - self.unit))
        rows[:, :-1] = size[:, None] * s.U[w]
        rows[:, -1] = out
        return rows.ravel()

    @property
    def tolerances(self) -> tuple[Array, Array]:
        """Relative and absolute weights of the errors: the latter for directions and logarithms."""
        d = self.geometry.X.shape[1]
        loose = np.repeat(~self.balanced, d + 1)
        return np.where(loose, 1.0, 0.0), np.where(loose, 1e-3, 1.0)

    def rows(self, y: Array) -> tuple[Array, Array]:
        """Split coordinates into vectors (p, d) and last entries (p,)."""
        rows = y.reshape(-1, self.geometry.X.shape[1] + 1)
        return rows[:, :-1], rows[:, -1]

    def neurons(self, y: Array) -> tuple[Array, Array]:
        """First-layer rows, and output weights of unbalanced neurons, with ``a^2 - |w|^2`` what it was (C-INV1)."""
        V, last = self.rows(y)
        if self.balanced.all() or self.geometry.frozen:
            return V, last
        W, out = tie(V, last, self.tied | self.balanced, self.signs(), self.excess)
        return W, np.where(self.balanced, last, out)

    def weighted(self, y: Array) -> Array:
        """Rows ``a_j w_j``."""
        V, last = self.neurons(y)
        with np.errstate(under="ignore", over="ignore"):
            if self.geometry.frozen:
                out = self.base.log_a[self.who] + self.unit
                return np.asarray((self.base.sign[self.who] * np.exp(out))[:, None] * V)
            size = np.exp(2 * np.where(self.balanced, last, self.unit))
            size *= np.where(
                self.balanced, self.base.sign[self.who] / (np.einsum("jd,jd->j", V, V) + 1e-300) ** 0.5, last
            )
        return np.asarray(size[:, None] * V)

    def margins(self, _s: float, y: Array) -> Array:
        """``q_i``."""
        return self.pattern.margins(self.weighted(y))

    def field(self) -> Callable[[float, Array], Array]:
        """Right-hand side, as solvers want it."""
        geometry, pattern, balanced = self.geometry, self.pattern, self.balanced
        sign = self.base.sign[self.who]
        member = pattern.member
        frozen = geometry.frozen
        with np.errstate(over="ignore"):
            fixed = sign * np.exp(self.base.log_a[self.who] - self.unit) if frozen else sign

        held = [(np.flatnonzero(member == g), basis) for g, (_, basis) in pattern.held.items()]

        def tangent(V: Array) -> Array:
            # A neuron that slides and shrinks: what rounding puts across the hyperplane must not grow as |w| falls.
            if not held:
                return V
            V = V.copy()
            for rows, basis in held:
                V[rows] -= (V[rows] @ basis) @ basis.T
            return V

        def rhs(_t: float, y: Array) -> Array:
            check_time("following the flow")  # a solver may try many steps before it takes one
            D = pattern.forces(forces_at(geometry, self.margins(0.0, y)))[member]
            V, last = self.neurons(y)
            out = np.empty_like(y).reshape(len(V), -1)
            if frozen:
                out[:, :-1] = fixed[:, None] * D
                out[:, -1] = 0.0
                return out.ravel()
            along = np.einsum("jd,jd->j", V, D)
            square = np.einsum("jd,jd->j", V, V) + 1e-300
            factor = np.where(balanced, sign, last)
            out[:, :-1] = factor[:, None] * D
            out[:, :-1] -= np.where(balanced, sign * along / square, 0.0)[:, None] * tangent(V)
            out[:, -1] = np.where(balanced, sign * along, along)
            return out.ravel()

        return rhs

    def signs(self) -> Array:
        """Signs of the output weights at the start."""
        return self.base.sign[self.who]

    def pulls(self, _s: float, y: Array) -> Array:
        """``c_i``."""
        return forces_at(self.geometry, self.margins(_s, y))

    def edge(self, _s: float, y: Array) -> float:
        """Part of the forces that may be rounding."""
        return edge_of(float(np.linalg.norm(self.weighted(y), axis=1).sum() * self.geometry.problem.data.norms.max()))

    def state(self, y: Array, _s: float) -> State:
        """Return to directions and sizes."""
        V, last = self.neurons(y)
        U, log_w, log_a = self.base.U.copy(), self.base.log_w.copy(), self.base.log_a.copy()
        sign = self.base.sign.copy()
        size = np.linalg.norm(V, axis=1)
        with np.errstate(divide="ignore"):
            U[self.who] = V / np.where(size > 0, size, 1.0)[:, None]
            log_w[self.who] = np.where(self.balanced, last, np.log(size) + self.unit)
            if not self.geometry.frozen:
                log_a[self.who] = np.where(self.balanced, last, np.log(np.abs(last)) + self.unit)
                sign[self.who] = np.where(self.balanced, sign[self.who], np.sign(last))
        return replace(self.base, U=U, log_w=log_w, log_a=log_a, sign=sign)

    def gone(self, y: Array) -> bool:
        """Whether a neuron has shrunk beyond return."""
        return bool((self.rows(y)[1][self.balanced] < self.geometry.gone).any())

    def longest_step(self, y: Array, slope: Array) -> float:
        """No neuron may grow by more than e^2 while its output matters, or the whole escape is jumped over."""
        if self.geometry.frozen:
            return np.inf
        V, last = self.rows(y)
        rate, norm = np.abs(self.rows(slope)[1]), np.linalg.norm(V, axis=1) + 1e-300
        size = np.where(self.balanced, last, np.log(norm) + self.unit)
        rate = np.where(self.balanced, rate, rate / norm)
        with np.errstate(divide="ignore"):
            return float((np.maximum(_MOST_GROWTH, _UNSEEN - size) / rate).min(initial=np.inf))


def chart(geometry: Geometry, state: State, whole: Pattern) -> Chart:
    """Choose coordinates for the neurons that move."""
    who = moving(geometry, state, whole)
    balanced = state.balanced[who] & (not geometry.frozen)
    unit = np.zeros(int(who.sum())) if geometry.frozen else np.maximum(state.log_w, state.log_a)[who]
    tied, excess = ties(geometry, state, who, unit)
    pattern = make_pattern(geometry, state.sides[who]) if who.any() else whole
    return Chart(geometry, state, pattern, who, balanced, tied, excess, unit)
