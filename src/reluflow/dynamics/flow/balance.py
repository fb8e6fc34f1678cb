r"""Points that no network with the present patterns can fit, and which rest in balance.

With patterns as they are, the margins of some points are :math:`z = A v`, v the sum of the neurons of each group. If
pulls :math:`g > 0` have :math:`A^T g = 0`, no v improves one of these points without making another worse, and their
loss has a minimum :math:`\sum_i \ell(z_i^*)`. It is bounded from below by what :math:`\sum_i g_i z_i = 0` alone allows
(Fenchel: :math:`\sum_i -\ell^*(-g_i)`), for every network with these patterns; the flow bounds it from above.

Near the minimum the gradient cannot be small: :math:`|\nabla L|^2 \ge 2 \kappa (L - L^*)` with
:math:`\kappa = r\,m\,\sigma^2 \mu`, m the smallest sum of squared output weights of a group, :math:`\sigma` the
smallest singular value of A and :math:`\mu` the least curvature of the loss. So all that is left of the way is at most
:math:`\sqrt{2 (L - L^*) / \kappa}`, and hyperplanes farther away are not reached. If the minimum is at z = 0, then
:math:`(|\theta|^2)' = 4 r \sum_i (g_i - g(0)) z_i \le 0`, and the parameters stay bounded.

Other points may go on to be fitted meanwhile, and the network grows without bound. What they pull is soon nothing
beside g, so that the points in balance act as constraints: their margins stay at :math:`z^*`, with pulls
:math:`g + \delta`, :math:`\delta` as small as the pulls of the others (`Level`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...problem import Loss
from ...problem.types import Array, Index
from .field import Geometry, Pattern, make_pattern
from .state import State, forces_at, moving, pattern_of

NOUGHT = 1e-9  #: margins at the minimum below this are 0
NOTHING = 1e-6  #: part of all pulls that may be none: the flow is still on its way ...
_EXACT = 1e-12  # ... and which is rounding
_WHOLE = 0.5  # of numbers that are 0 or 1, those above are 1
_RANK = 1e-9  # singular values below this part of the largest are 0
_STEPS = 100  # most steps of Newton's method
_NEWTON = 1e-14  # squared Newton decrement that ends them
_ROUNDING = 1e-15  # what of the loss may be rounding
_MOST, _LARGEST = 2000, 10_000_000  # points, and entries of A, beyond which no balance is looked for
_CHANGES = 4.0  # by how much output weights and curvature may be smaller on the way, together
_FITTED = 3.0  # margins of the others are above this ...
_STRONGER = 1e3  # ... and each point in balance pulls so much more strongly than all of them
_THERE = 1e-4  # points are in balance when their margins are within this of those at the minimum ...
_HELD, _REMOTE = 1e-6, 30.0  # ... or this part of |theta|^2, once the others are so well fitted: springs hold them then


class Balance(NamedTuple):
    """What rests in balance, in the patterns of the neurons ``who`` (sides possibly those they slide beside)."""

    points: Index
    margins: Array  # of these points, at the minimum
    upper: float  # loss of these points now, weighted ...
    lower: float  # ... and less than which no network with these patterns has
    pulls: Array  # g > 0 at the minimum, exactly without effect on every group
    who: Index  # neurons that can move
    state: State
    way: float  # how far the parameters can still move
    level: bool  # the minimum is at z = 0: |theta| does not grow any more


class Level(NamedTuple):
    """Points in balance while others go on: what they are, their margins, and pulls without effect on any neuron."""

    points: Index
    margins: Array
    pulls: Array
    floor: float  # loss of these points, weighted

    def holds(self, geometry: Geometry, pattern: Pattern) -> bool:
        """Whether the pulls have no effect on neurons with these patterns."""
        c = np.zeros(geometry.problem.data.n)
        c[self.points] = geometry.y[self.points] * self.pulls
        force = np.linalg.norm(pattern.project(pattern.raw_forces(c)), axis=1)
        return bool((force <= _RANK * float(np.abs(c) @ geometry.problem.data.norms)).all())


def level(geometry: Geometry, state: State) -> Level | None:
    """Find the points that are in balance now while others go on to be fitted; None if there are none."""
    pattern = pattern_of(geometry, state)
    q = pattern.margins(state.weighted())
    if q[pattern.live].min(initial=np.inf) > _FITTED:  # sum_i g_i z_i = 0: margins in balance are not all positive
        return None
    found = _balance(geometry, state)
    if found is None or found.points.size == geometry.problem.data.n:
        return None
    felt = pattern.live[found.points]
    points, z, g = found.points[felt], found.margins[felt], found.pulls[felt]
    if not points.size:
        return None
    others = np.delete(q, found.points).min()
    allowed = _THERE * (1 + np.abs(z))
    if others > _REMOTE:
        allowed += _HELD * np.exp(np.logaddexp.reduce(2 * np.concatenate([state.log_w, state.log_a])))
    loss = geometry.problem.loss
    weak = bool(g.min() < _STRONGER * loss.force(np.delete(q, found.points)).sum())
    if others < _FITTED or weak or (np.abs(q[points] - z) > allowed).any():
        return None
    return Level(points, z, g, geometry.problem.weight * _dual(loss, g))


def balance(geometry: Geometry, state: State) -> Balance | None:
    """Find the points in balance; None if the present patterns could fit them, or there is none."""
    found = _balance(geometry, state)
    if found is None or (found.state.sides[found.who] != 0).all():
        return found
    return _balance(geometry, _beside(geometry, found))


def _balance(geometry: Geometry, state: State) -> Balance | None:
    problem = geometry.problem
    who = np.flatnonzero(moving(geometry, state, pattern_of(geometry, state)))
    if not who.size:
        return None
    q = pattern_of(geometry, state).margins(state.weighted())
    pattern = make_pattern(geometry, state.sides[who])
    if problem.data.n > _MOST or problem.data.n * pattern.groups * problem.data.d > _LARGEST:
        return None
    A = _columns(geometry, pattern)
    points = _never_fitted(A)
    if not points.size:
        return None
    A = A[points]
    basis, sizes, _ = np.linalg.svd(A, full_matrices=True)
    rank = int((sizes > _RANK * sizes.max(initial=0.0)).sum())
    z = _least(problem.loss, basis[:, :rank], q[points])
    if z is None:
        return None
    rest = basis[:, rank:]
    g = rest @ (rest.T @ problem.loss.force(z))  # exactly without effect on every group
    if not (g > 0).all() or (problem.loss.name == "logistic" and not (g < 1).all()):
        return None
    r = problem.weight
    upper, lower = r * float(problem.loss.value(q[points]).sum()), r * _dual(problem.loss, g)
    with np.errstate(under="ignore"):
        mass = pattern.total(np.exp(2 * state.log_a[who])[:, None]).min()
    bend = float(np.minimum(problem.loss.curvature(z), problem.loss.curvature(q[points])).min())
    kappa = r * mass * (sizes[rank - 1] ** 2 if rank else 0.0) * bend / _CHANGES
    excess = max(upper - lower, _ROUNDING * upper)
    way = float(np.sqrt(2 * excess / kappa)) if kappa > 0 else np.inf
    level = bool(np.abs(A.sum(axis=0)).max(initial=0.0) <= _EXACT * problem.data.norms.max())
    return Balance(points, z, upper, lower, g, who, state, way, level)


def _never_fitted(A: Array) -> Index:
    """Find the points that cannot be improved without making another worse.

    For every matrix the rows are of two kinds: those with a positive entry in some g >= 0 with A^T g = 0, and those
    that some v improves all at once while it changes none of the former (Goldman and Tucker). A linear program with as
    many positive entries as there can be tells them apart.
    """
    from scipy.optimize import linprog

    n = len(A)
    size = np.linalg.norm(A, axis=1)
    basis, sizes, _ = np.linalg.svd(A / np.where(size > 0, size, 1.0)[:, None], full_matrices=False)
    basis = basis[:, sizes > _RANK * sizes.max(initial=0.0)]
    if basis.shape[1] == 0:
        return np.arange(n)
    cost = np.concatenate([-np.ones(n), np.zeros(n)])
    bounds = [(0.0, 1.0)] * n + [(0.0, None)] * n
    answer = linprog(cost, A_eq=np.hstack([basis.T, basis.T]), b_eq=np.zeros(basis.shape[1]), bounds=bounds)
    if answer.status != 0:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(answer.x[:n] > _WHOLE)


def _columns(geometry: Geometry, pattern: Pattern) -> Array:
    """``y_i h_Gi x_i`` for every group, within the hyperplanes that it slides on; shape (n, G d)."""
    blocks = []
    for g in range(pattern.groups):
        X = geometry.X.copy()
        if g in pattern.held:
            basis = pattern.held[g].basis
            X -= (X @ basis) @ basis.T
        X[np.linalg.norm(X, axis=1) <= _RANK * geometry.problem.data.norms] = 0.0  # it stays on their hyperplanes
        blocks.append(pattern.H[g][:, None] * geometry.y[:, None] * X)
    return np.hstack(blocks)


def _least(loss: Loss, basis: Array, q: Array) -> Array | None:
    """Margins with the least loss in the span of a basis: Newton's method; None if there are none."""
    u = basis.T @ q
    for _ in range(_STEPS):
        z = basis @ u
        slope, bend = -basis.T @ loss.force(z), (basis.T * loss.curvature(z)) @ basis
        if not np.isfinite(bend).all():
            return None
        step = -np.linalg.lstsq(bend, slope, rcond=None)[0]
        decrement = -float(slope @ step)
        if decrement <= _NEWTON * float(loss.value(z).sum()):
            return np.asarray(basis @ (u + step))
        part, now = 1.0, float(loss.value(z).sum())
        with np.errstate(over="ignore"):
            while part > _EXACT and float(loss.value(basis @ (u + part * step)).sum()) > now - part * decrement / 4:
                part /= 2
        u = u + part * step
    return None


def _dual(loss: Loss, g: Array) -> float:
    """Least sum of losses over all margins with ``sum_i g_i z_i <= 0``, at most."""
    if loss.name == "exponential":
        return float((g - g * np.log(g)).sum())
    return float(-(g * np.log(g) + (1 - g) * np.log1p(-g)).sum())


def pulls_of(geometry: Geometry, found: Balance) -> Array:
    """``c_i`` at the minimum; 0 for the points that are not in balance."""
    q = np.full(geometry.problem.data.n, np.inf)
    q[found.points] = found.margins
    return np.where(np.isfinite(q), forces_at(geometry, np.where(np.isfinite(q), q, 0.0)), 0.0)


def led_away(geometry: Geometry, state: State, j: int, k: int, side: int, c: Array) -> float:
    """How strongly neuron j is led away from hyperplane k on one side of it, as part of all pulls."""
    row = state.sides[j].copy()
    row[k] = side
    pulls = geometry.slopes(row[None])[0] * c
    away = side * state.sign[j] * float(geometry.faces.normals[k] @ (pulls @ geometry.X))
    return float(away / (float(np.abs(c) @ geometry.problem.data.norms) + 1e-300))


def _beside(geometry: Geometry, found: Balance) -> State:
    """Put sliding neurons beside a hyperplane where nothing pulls there: they may leave it, and nothing changes."""
    c, sides = pulls_of(geometry, found), found.state.sides.copy()
    for j in found.who:
        for k in np.flatnonzero(found.state.sides[j] == 0):
            free = [s for s in (1, -1) if abs(led_away(geometry, found.state, int(j), int(k), s, c)) <= NOTHING]
            sides[j, k] = free[0] if free else 0
    return replace(found.state, sides=sides)
