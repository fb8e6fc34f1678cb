r"""The early phase of gradient descent in closed form.

While the margins are negligible every force has its value at zero, the neurons do not feel each other, and with a fixed
activation pattern a neuron obeys a linear recursion: with :math:`D = r\,g(0) \sum_i y_i \phi'(w \cdot x_i) x_i` and
:math:`u = w \cdot D/|D|`,

.. math:: u + a \leftarrow (1 + \eta|D|)(u + a), \qquad u - a \leftarrow (1 - \eta|D|)(u - a),

and the rest of w does not move. The pattern is kept as long as u stays between two thresholds, so the first iteration
that leaves is found by bisection, and everything before it is one jump.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...problem import Network, Problem
from ...problem.types import Array
from .state import network

_LONGEST = 300.0  # a jump grows a neuron by at most e^300
_FAR = np.int64(2) ** 62


@dataclass
class Early:
    """Neurons of any scale: ``exp(log_norms) * directions`` and ``signs * exp(log_outs)``."""

    problem: Problem
    step: float
    kink: float
    directions: Array
    log_norms: Array
    log_outs: Array
    signs: Array

    @staticmethod
    def begin(problem: Problem, step: float, kink: float) -> Early:
        """Take the start of a problem."""
        net = problem.net
        return Early(problem, step, kink, net.directions, net.log_norms, net.log_outs, np.sign(net.a))

    def network(self) -> Network:
        """Return the network as it is now."""
        signs = self.signs.astype(np.int8)
        return network(self.problem.net.slope, self.directions, self.log_norms, self.log_outs, signs)

    def allowed(self, log_tolerance: float) -> int:
        """How many steps may surely be taken from iterates with all margins below the tolerance."""
        X = self.problem.data.norms
        force = self.step * self.problem.speed * X.sum()  # no pattern pulls harder
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            if self.problem.train == "first":
                # |w_j| grows by at most |a_j| times the force in a step.
                now = np.exp(np.logaddexp.reduce(self.log_norms + self.log_outs))
                growth = force * np.exp(np.logaddexp.reduce(2 * self.log_outs))
                room = np.exp(log_tolerance) / X.max() - now
                steps = np.floor(room / growth) if growth > 0 else np.inf
            else:
                # |a_j||w_j| <= (a_j^2 + |w_j|^2)/2, whose sum grows by at most (1 + force)^2 in a step.
                half = np.logaddexp.reduce(2 * np.concatenate([self.log_norms, self.log_outs])) - np.log(2.0)
                room = log_tolerance - half - np.log(X.max())
                steps = np.floor(room / (2 * np.log1p(force)))
        return 0 if room < 0 else int(min(steps, 1e18)) + 1

    def advance(self, steps: int) -> None:
        """Take so many steps with every neuron."""
        left = np.full(self.log_norms.size, steps, dtype=np.int64)
        left[~np.isfinite(np.maximum(self.log_norms, self.log_outs))] = 0
        while True:
            live = np.flatnonzero(left > 0)
            if not live.size:
                return
            left[live] -= self._jump(live, left[live])

    def _jump(self, live: npt.NDArray[np.intp], most: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Move some neurons to the first iteration with another pattern, or by ``most`` steps; return how far."""
        data, slope = self.problem.data, self.problem.net.slope
        U, sign = self.directions[live], self.signs[live]
        log_w, log_a = self.log_norms[live], self.log_outs[live]
        top = np.maximum(log_w, log_a)
        with np.errstate(under="ignore"):
            w, a = np.exp(log_w - top), sign * np.exp(log_a - top)  # in units of e^top
        Z = data.X @ U.T
        H = np.where(Z > 0, 1.0, np.where(Z < 0, slope, self.kink)) * (self.problem.speed * data.y)[:, None]
        D = H.T @ data.X
        force = np.linalg.norm(D, axis=1)
        D /= np.where(force > 0, force, 1.0)[:, None]
        lower, upper = _room(Z * w, data.X @ D.T)
        u = w * np.einsum("jk,jk->j", U, D)
        path = _Path(self.step * force, u, a, self.problem.train == "both")
        count = path.leaves(lower, upper, most)
        move, change = path.at(count.astype(np.float64))
        W = w[:, None] * U + move[:, None] * D
        size = np.linalg.norm(W, axis=1)
        with np.errstate(divide="ignore"):
            self.log_norms[live] = top + np.log(size)
            if self.problem.train == "both":
                out = a + change
                self.log_outs[live], self.signs[live] = top + np.log(np.abs(out)), np.sign(out)
        self.directions[live] = W / np.where(size > 0, size, 1.0)[:, None]
        still = force == 0
        return np.where(still, most, count)


def _room(Z: Array, R: Array) -> tuple[Array, Array]:
    """How far u may move down and up, exclusively, before some ``Z_i + (move) R_i`` changes its sign."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        T = -Z / R
    T[R == 0] = np.inf
    upper = np.where(T >= 0, T, np.inf).min(axis=0)
    T[R == 0] = -np.inf
    lower = np.where(T <= 0, T, -np.inf).max(axis=0)
    return lower, upper


@dataclass
class _Path:
    """The component along the force and the output weight, as functions of the number of steps."""

    rate: Array  # eta |D|
    u: Array
    a: Array
    both: bool

    def at(self, k: Array) -> tuple[Array, Array]:
        """Change of u and of a after k steps."""
        if not self.both:
            return k * self.rate * self.a, np.zeros_like(self.a)
        plain = self.rate >= 1  # the second eigenvalue is not positive: one step at a time
        down = np.where(plain, 0.0, self.rate)
        grow = (self.u + self.a) / 2 * np.expm1(k * np.log1p(self.rate))
        decay = (self.u - self.a) / 2 * np.expm1(k * np.log1p(-down))
        return (
            np.where(plain, k * self.rate * self.a, grow + decay),
            np.where(plain, k * self.rate * self.u, grow - decay),
        )

    def leaves(self, lower: Array, upper: Array, most: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """First k >= 1 at which the change of u is not strictly between the bounds, or ``most``."""
        most = np.where(self.rate > 0, np.minimum(most, self._longest()), most)
        turn = np.clip(self._turn(), 0, most)
        # u is monotone up to the turn and from the next step on, so on either side "has left" switches once.
        found, begin = most, np.zeros_like(most)
        for end in (turn, np.minimum(turn + 1, most), most):
            first = self._bisect(lower, upper, begin, end)
            found = np.where((first <= end) & (found == most), first, found)
            begin = end
        return np.maximum(found, 1)

    def _longest(self) -> npt.NDArray[np.int64]:
        if not self.both:
            return np.full(self.rate.size, _FAR)
        with np.errstate(divide="ignore"):
            longest = np.where(self.rate < 1, _LONGEST / np.log1p(self.rate), 1.0)
        return np.asarray(np.clip(longest, 1.0, 2.0**62), dtype=np.int64)

    def _turn(self) -> npt.NDArray[np.int64]:
        """Where u is extremal: at most one place, and none for the frozen second layer."""
        if not self.both:
            return np.zeros(self.rate.size, np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            up, down = np.log1p(self.rate), np.log1p(-np.minimum(self.rate, 1.0))
            at = np.log(-(self.u - self.a) * down / ((self.u + self.a) * up)) / (up - down)
        at = np.where(np.isfinite(at), at, 0.0)
        return np.asarray(np.floor(np.clip(at, 0.0, 2.0**62)), dtype=np.int64)

    def _bisect(
        self, lower: Array, upper: Array, inside: npt.NDArray[np.int64], outside: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """First k in (inside, outside] that is out, or outside + 1."""
        low, high = inside.copy(), outside + 1
        while (high - low > 1).any():
            middle = np.where(high - low > 1, (low + high) // 2, low)
            move, _ = self.at(middle.astype(np.float64))
            out = ((move <= lower) | (move >= upper)) & (middle > low)
            high = np.where(out, middle, high)
            low = np.where(out, low, np.maximum(low, middle))
        return high
