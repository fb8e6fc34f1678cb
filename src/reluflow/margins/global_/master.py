r"""The outer program of the global margin over a few samples and a few patterns, and its polish.

Each neuron j has a sign and an activation pattern on the samples of its own sign; against the samples of the other
sign its term :math:`-\phi(v_j \cdot x_i)` is concave and needs none. So

.. math:: \max t \quad \text{s.t.} \quad
          \tfrac12 \sum_j s_j y_i \phi_{ij}(v_j \cdot x_i) + e \cdot E_i \ge t / \rho_i, \qquad \sum_j |v_j| \le 1

is a second-order cone program. E is empty, or holds directions that the weights must be orthogonal to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...problem import check_time, time_left
from ...problem.precision import EPS, TINY
from ...problem.types import Array, Flags

#: Unknowns from which a system counts as large, and about how long one of N unknowns takes, divided by N^3.
LARGE, _SECONDS = 600, 2e-9
_SOLVED = 1e-10  # tolerance of the solvers; the last digits come from the polish
_LONG, _SPARE = 10, 16 * EPS  # relative norm from which a sample is long, and the rounding of outputs there
_SPANNED = 1e-10  # singular values, relative to the largest, from which hyperplanes are independent
_CONVERGED = 1e-6  # residual of the polish beyond which it went astray
_LONG_STEP = 1e-2  # a longer step left the neighbourhood of the start
_MEETS = 1e-3, 1e-15  # relative and absolute residual up to which a step solves its equations
_STEP_CUTS = (1e-13, 1e-10, 1e-7)  # singular values dropped, more and more, until the step is short


@dataclass(frozen=True)
class Rows:
    """The samples in the program: unit points in coordinates of their span, labels, relative norms, E."""

    X: Array
    y: Array
    rho: Array
    E: Array


@dataclass(frozen=True)
class Columns:
    """The neurons in the program: which samples are active, output signs, and pairs (j, i) whose kink is modelled."""

    on: Flags
    s: Array
    kink: Flags


@dataclass(frozen=True)
class Point:
    """A primal point (v, e) with a dual one (kappa); ``value`` is the t of the program."""

    V: Array
    s: Array
    e: Array
    kappa: Array
    value: float


def coefficients(rows: Rows, cols: Columns, slope: float) -> Array:
    """``c_ji`` with which ``v_j . x_i`` enters row i; a modelled kink enters with its smaller slope."""
    D = np.where(cols.on & ~cols.kink, 1.0, slope)
    return np.asarray(0.5 * cols.s[:, None] * rows.y * D)


def solve(rows: Rows, cols: Columns, slope: float, scale: float | None) -> Point | None:
    """Solve the program. With ``scale`` a guess of t, as least norm for t = scale; else t is maximised."""
    import clarabel
    from scipy import sparse

    (k, r), J, q = rows.X.shape, len(cols.s), rows.E.shape[1]
    c = coefficients(rows, cols, slope)
    jj, ii = np.nonzero(cols.kink)
    L, nv = len(jj), J * r
    # Unknowns: v, e, m (positive parts at kinks), tau (norms), t.
    width = nv + q + L + J + 1
    m0, tau0, last = nv + q, nv + q + L, width - 1
    objective = np.zeros(width)
    if scale is None:
        objective[last] = -1.0
        head, first, cone_head = np.arange(tau0, last), 1.0, clarabel.NonnegativeConeT(1)
    else:
        objective[tau0:last] = 1.0
        head, first, cone_head = np.array([last]), scale, clarabel.ZeroConeT(1)
    # Rows: norm (or t), margins, m above v.x, m above 0, cones of the norms. Entries by row, column and value.
    main = np.hstack([-(c.T[:, :, None] * rows.X[:, None, :]).reshape(k, nv), -rows.E])
    kink, part = 1 + k + np.arange(L), np.arange(r)
    row, column = np.nonzero(main)
    entries: list[tuple[Any, Any, Any]] = [
        (0, head, 1.0),
        (1 + row, column, main[row, column]),
        (1 + ii, m0 + np.arange(L), 0.5 * (1 - slope)),
        (1 + np.arange(k), last, 1 / rows.rho),
        (np.repeat(kink, r), (jj[:, None] * r + part).ravel(), rows.X[ii].ravel()),
        (np.concatenate([kink, kink + L]), np.tile(m0 + np.arange(L), 2), -1.0),
        (
            1 + k + 2 * L + np.arange(J * (r + 1)),
            np.column_stack([tau0 + np.arange(J), np.arange(nv).reshape(J, r)]).ravel(),
            -1.0,
        ),
    ]
    i, j, value = (np.concatenate(x) for x in zip(*(np.broadcast_arrays(*e) for e in entries), strict=True))
    A = sparse.csc_matrix((value, (i, j)), shape=(1 + k + 2 * L + J * (r + 1), width))
    b = np.zeros(A.shape[0])
    b[0] = first
    cones = [cone_head, clarabel.NonnegativeConeT(k + 2 * L), *[clarabel.SecondOrderConeT(r + 1) for _ in range(J)]]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _SOLVED
    settings.time_limit = max(time_left(), 0.01)
    result = clarabel.DefaultSolver(sparse.csc_matrix((width, width)), objective, A, b, cones, settings).solve()
    x, z = np.asarray(result.x), np.asarray(result.z)
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None
    kappa = np.maximum(z[1 : 1 + k], 0.0)
    total = float(kappa @ (1 / rows.rho))
    norm = float(x[tau0:last].sum())
    if total <= 0 or norm <= 0:
        return None
    return Point(x[:nv].reshape(J, r) / norm, cols.s, x[nv : nv + q] / norm, kappa / total, float(x[last]) / norm)


def fixed_directions(rows: Rows, U: Array, s: Array, slope: float) -> tuple[Array, Array, Array, float] | None:
    """Best weights of the neurons ``U`` as they are, e, the weights of the samples, and the margin."""
    from scipy.optimize import linprog

    z = rows.X @ U.T
    C = 0.5 * rows.y[:, None] * s * np.where(z > 0, z, slope * z)
    (k, J), q = C.shape, rows.E.shape[1]
    A = np.hstack([-C, -rows.E, (1 / rows.rho)[:, None]])
    cost = np.zeros(J + q + 1)
    cost[-1] = -1.0
    total = np.concatenate([np.ones(J), np.zeros(q + 1)])[None]
    bounds = [(0, None)] * J + [(None, None)] * (q + 1)
    exact = {"primal_feasibility_tolerance": _SOLVED, "dual_feasibility_tolerance": _SOLVED}
    exact["time_limit"] = max(time_left(), 0.01)
    result = linprog(cost, A, np.zeros(k), total, [1.0], bounds, method="highs", options=exact)
    if result.status != 0:
        return None
    kappa = np.maximum(-result.ineqlin.marginals, 0.0)
    norm = float(kappa @ (1 / rows.rho))
    return (result.x[:J], result.x[J : J + q], kappa / norm, float(result.x[-1])) if norm > 0 else None


def lift(rows: Rows, point: Point, slope: float) -> Point:
    """Nudge the neurons off the hyperplanes of long samples, where a tiny angle makes the whole margin."""
    from scipy.optimize import nnls

    z = point.V @ rows.X.T
    side = point.s[:, None] * rows.y
    near = np.abs(z) * rows.rho < 0.5 * point.value
    on = np.where(near, side > 0, z > 0)
    c = 0.5 * side * np.where(on, 1.0, slope)
    now = (0.5 * side * np.where(z > 0, z, slope * z)).sum(axis=0) + rows.E @ point.e
    need = point.value / rows.rho + np.where(rows.rho > _LONG, _SPARE, 0.0) - now
    scale = float(need.max())
    if scale <= 0:
        return point
    # The shortest step with effect @ step >= need, by non-negative least squares on its dual.
    effect = (c.T[:, :, None] * rows.X[:, None, :]).reshape(len(rows.y), -1)
    dual = np.vstack([effect.T, need / scale])
    aim = np.append(np.zeros(effect.shape[1]), 1.0)
    rest = dual @ nnls(dual, aim)[0] - aim
    if not rest[-1] < 0:
        return point
    return replace(point, V=point.V - scale * (rest[:-1] / rest[-1]).reshape(point.V.shape))


def polish(rows: Rows, point: Point, slope: float, cut: float) -> Point | None:
    """Newton on the optimality conditions, with everything below ``cut`` (relative) taken for zero.

    Unknowns: the vectors v_j within the intersection of the hyperplanes they lie on, e, the weights of the tight
    samples, and t.
    """
    size = np.linalg.norm(point.V, axis=1)
    alive = size > cut * size.sum()
    V, s = point.V[alive], point.s[alive]
    tight = point.kappa > cut * point.kappa.max()
    X, y, rho, E = rows.X[tight], rows.y[tight], rows.rho[tight], rows.E[tight]
    V, s = join(V, s, X, cut)
    unit = V / np.linalg.norm(V, axis=1)[:, None]
    z = unit @ X.T
    kink = (np.abs(z) < cut) & (s[:, None] * y < 0) & (slope < 1)
    c = np.where(kink, 0.0, 0.5 * s[:, None] * y * np.where(z > 0, 1.0, slope))
    bases = [_orthogonal(X[kink[j]], X.shape[1]) for j in range(len(s))]
    if any(B.shape[1] == 0 for B in bases):
        return None
    blocks = [c[j][:, None] * (X @ B) for j, B in enumerate(bases)]
    M = np.hstack([*blocks, E])
    dims = [B.shape[1] for B in bases]
    at = np.concatenate([[0], np.cumsum(dims)])
    nu = np.concatenate([B.T @ V[j] for j, B in enumerate(bases)] + [point.e])
    kappa, t = point.kappa[tight], point.value
    if _SECONDS * (len(nu) + len(kappa)) ** 3 > 0.1 * time_left():
        return None
    spare = np.where(rho > _LONG, _SPARE, 0.0)
    size = np.inf
    for step_ in range(30):
        check_time("polishing the network of largest margin")
        residual, jacobian = _system(M, rho, spare, nu, kappa, t, at)
        before, size = size, float(np.abs(residual).max())
        if step_ > 3 and size > 0.5 * before:
            break
        step = _newton_step(jacobian, residual)
        nu, kappa, t = nu + step[: len(nu)], kappa + step[len(nu) : -1], t + float(step[-1])
    if size > _CONVERGED:
        return None
    V = np.array([B @ nu[at[j] : at[j + 1]] for j, B in enumerate(bases)])
    full = np.zeros(len(rows.y))
    full[tight] = np.maximum(kappa, 0.0)
    total = float(full @ (1 / rows.rho))
    return Point(V, s, nu[at[-1] :], full / total, t) if total > 0 else None


def join(V: Array, s: Array, X: Array, cut: float) -> tuple[Array, Array]:
    """Add up neurons of one sign in one cell: the margins only depend on their sum, whose norm is no larger."""
    if not len(V):
        return V, s
    z = V @ X.T / np.linalg.norm(V, axis=1)[:, None]
    key = np.column_stack([s, np.where(np.abs(z) < cut, 0, np.sign(z))]).astype(np.int8)
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    out = np.zeros((len(first), V.shape[1]))
    np.add.at(out, group.ravel(), V)
    live = out.any(axis=1)
    return out[live], s[first][live]


def _orthogonal(K: Array, r: int) -> Array:
    """Orthonormal basis (columns) of the vectors orthogonal to the rows of K."""
    if not len(K):
        return np.eye(r)
    _, size, right = np.linalg.svd(K)
    rank = int((size > _SPANNED * size[0]).sum())
    return np.asarray(right[rank:].T)


def _newton_step(jacobian: Array, residual: Array) -> Array:
    """Solve for the step; the last equation follows from the others, and where they are dependent the least step.

    The start is near, so a long step means that a direction hardly seen by the equations was taken for a real one.
    """
    try:
        step = np.linalg.solve(jacobian[:-1], -residual[:-1])
    except np.linalg.LinAlgError:
        step = np.full(jacobian.shape[1], np.inf)
    for cut in _STEP_CUTS:
        small = np.abs(step).max() < _LONG_STEP
        if small and np.abs(jacobian @ step + residual).max() <= _MEETS[0] * np.abs(residual).max() + _MEETS[1]:
            break
        check_time("polishing the network of largest margin")
        step = _least_squares(jacobian, -residual, cut)
    return np.asarray(step)


def _least_squares(A: Array, b: Array, cut: float) -> Array:
    """Solve in the least-squares sense; large systems by a pivoted factorisation, several times faster than an SVD."""
    if A.shape[1] <= LARGE:
        return np.asarray(np.linalg.lstsq(A, b, rcond=cut)[0])
    from scipy.linalg import lstsq

    return np.asarray(lstsq(A, b, cut, lapack_driver="gelsy", check_finite=False)[0])


def _system(
    M: Array, rho: Array, spare: Array, nu: Array, kappa: Array, t: float, at: npt.NDArray[np.intp]
) -> tuple[Array, Array]:
    k, width = M.shape
    blocks = [nu[a:b] for a, b in pairwise(at)]
    norms = np.array([np.linalg.norm(v) for v in blocks])
    units = [v / max(size, TINY) for v, size in zip(blocks, norms, strict=True)]
    direction = np.zeros(width)
    curve = np.zeros((width, width))
    for j, u in enumerate(units):
        block = slice(at[j], at[j + 1])
        direction[block] = u
        curve[block, block] = (np.eye(len(u)) - np.outer(u, u)) / max(norms[j], TINY)
    residual = np.concatenate(
        [M @ nu - t / rho - spare, M.T @ kappa - t * direction, [kappa @ (1 / rho) - 1, norms.sum() - 1]]
    )
    jacobian = np.zeros((k + width + 2, width + k + 1))
    jacobian[:k, :width], jacobian[:k, -1] = M, -1 / rho
    jacobian[k : k + width, :width] = -t * curve
    jacobian[k : k + width, width : width + k] = M.T
    jacobian[k : k + width, -1] = -direction
    jacobian[-2, width : width + k] = 1 / rho
    jacobian[-1, :width] = direction
    return residual, jacobian
