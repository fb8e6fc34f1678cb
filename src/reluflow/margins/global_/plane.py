r"""The global margin in the plane, over all cells at once.

In the plane a neuron of sign s and orientation o in the gap between two neighbouring lines is
:math:`v = o (p\, r_k + q\, r_{k+1})`, :math:`p, q \ge 0`, with r_k the unit vectors along the lines. Since
:math:`\phi(z) = \tfrac{1+\alpha}2 z + \tfrac{1-\alpha}2 |z|`, a network is at a sample on line k, up to the norm,

.. math:: \pm b \cdot x + \tfrac{1-\alpha}2 H_k, \qquad b = \tfrac{1+\alpha}2 \sum s v, \qquad
          H_k = \sum s |v \cdot x_k|,

and H, as a function of the angle, is a sinusoid between the r_k with kinks there: with the gaps g_k

.. math:: \frac{H_{k-1}}{\sin g_{k-1}} - H_k (\cot g_{k-1} + \cot g_k) + \frac{H_{k+1}}{\sin g_k}
          = 2 \sum s (p_k + q_{k-1}).

So the second-order cone program over all cells is sparse: about 20 entries a sample, whatever their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...problem import check_time, time_left
from ...problem.precision import TINY
from ...problem.types import Array, Index
from .inner import exact_gain
from .master import Point

_ONE_LINE = 1e-12  # angle up to which samples lie on one line
_FIRST_GUESS, _LEAST_GUESS = 1e-3, 1e-14  # of the margin, the unit of the program
_PASSES = (1e-8, 1e-12)  # tolerances: the first pass finds the size of the margin, in whose units the second works
_EQUILIBRATE = 1e8  # by how much the solver may rescale a row: the gaps between lines may be that narrow
_WEIGHTY, _LIVE = 1e-6, 1e-12  # weights of samples, relative, and masses that a repair takes into account
_REPAIR_CUT, _SHARE_CUT = 1e-15, 1e-12  # singular values, relative, below which nothing is changed
_BALANCED = 1e-15  # error up to which few neurons do what many did


@dataclass(frozen=True)
class Plane:
    """Unit points, labels and relative norms; their lines by angle, and the allowed (sign, orientation) pairs."""

    X: Array
    y: Array
    rho: Array
    slope: float
    line: Index
    gap: Array
    ray: Array
    after: Array
    kinds: tuple[tuple[float, float], ...]


def lay_out(X: Array, y: Array, rho: Array, slope: float, signs: tuple[float, ...]) -> Plane | None:
    """Sort the lines of the samples by angle; None where they are fewer than three."""
    angle = np.arctan2(X[:, 0], -X[:, 1]) % np.pi
    order = np.argsort(angle, kind="stable")
    fresh = np.diff(angle[order], prepend=-1.0) > _ONE_LINE
    lines = angle[order][fresh]
    if len(lines) < 3:
        return None
    line = np.empty(len(X), dtype=np.intp)
    line[order] = np.cumsum(fresh) - 1
    ray = np.column_stack([np.cos(lines), np.sin(lines)])
    kinds = tuple((s, o) for s in signs for o in (1.0, -1.0))
    gap = np.diff(lines, append=lines[0] + np.pi)
    return Plane(X, y, rho, slope, line, gap, ray, np.vstack([ray[1:], -ray[:1]]), kinds)


def solve_plane(plane: Plane) -> Point | None:
    """Best network over all cells of the plane, to about the rounding of the margin, with its dual weights."""
    guess = _FIRST_GUESS
    for tol in _PASSES:
        check_time("solving for all cells of the plane")
        masses, kappa = _program(plane, guess, tol)
        total = float(kappa @ (1 / plane.rho))
        if not (np.isfinite(total) and total > 0 and masses.sum() > 0):
            return None
        kappa = kappa / total
        guess = max(_ceiling(plane, kappa), _LEAST_GUESS)
    masses = masses / _norm(plane, masses)
    for _ in range(2):
        better = _repair(plane, masses, kappa, guess)
        if _worst(plane, better) <= _worst(plane, masses):
            break
        masses = better
    V, s = _orient(plane, masses)
    return Point(V, s, np.zeros(0), kappa, guess)


def _ceiling(plane: Plane, kappa: Array) -> float:
    A = plane.X * kappa[:, None]
    found = [exact_gain(A, plane.y, s, plane.slope, 0.0, 0) for s in dict.fromkeys(s for s, _ in plane.kinds)]
    return max(g.upper for g in found)


def _program(plane: Plane, scale: float, tol: float) -> tuple[Array, Array]:
    """Least total norm for margins of ``scale``: masses (kinds, 2, m) of p and q, and the duals of the margins."""
    import clarabel
    from scipy import sparse

    m, n, c = len(plane.gap), len(plane.y), len(plane.kinds)
    mass = m + 2 + np.arange(2 * c * m).reshape(c, 2, m)
    tau = m + 2 + 2 * c * m + np.arange(c * m).reshape(c, m)
    width = m + 2 + 3 * c * m
    equal = _kink_rows(plane, mass, scale, width)
    # y (x.b + (1 - slope)/2 scale H)/2 >= scale / rho, in units of the scale.
    half = 0.5 * plane.y
    rows = np.repeat(np.arange(n), 3)
    cols = np.column_stack([np.full(n, m), np.full(n, m + 1), plane.line]).ravel()
    vals = np.column_stack([half[:, None] * plane.X / scale, half * (1 - plane.slope) / 2]).ravel()
    margin = sparse.csr_matrix((-vals, (rows, cols)), shape=(n, width))
    free = sparse.csr_matrix((-np.ones(mass.size), (np.arange(mass.size), mass.ravel())), shape=(mass.size, width))
    cos, sin = np.tile(np.cos(plane.gap), c), np.tile(np.sin(plane.gap), c)
    p, q, t = mass[:, 0].ravel(), mass[:, 1].ravel(), tau.ravel()
    at = 3 * np.arange(c * m)
    cone = sparse.csr_matrix(
        (
            -np.concatenate([np.ones(2 * c * m), cos, sin]),
            (np.concatenate([at, at + 1, at + 1, at + 2]), np.concatenate([t, p, q, q])),
        ),
        shape=(3 * c * m, width),
    )
    A = sparse.vstack([equal, margin, free, cone], format="csc")
    b = np.concatenate([np.zeros(m + 2), -1 / plane.rho, np.zeros(5 * c * m)])
    objective = np.zeros(width)
    objective[tau.ravel()] = 1.0
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.time_limit = max(time_left(), 0.01)
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.equilibrate_max_iter = 50
    settings.equilibrate_min_scaling, settings.equilibrate_max_scaling = 1 / _EQUILIBRATE, _EQUILIBRATE
    cones = [clarabel.ZeroConeT(m + 2), clarabel.NonnegativeConeT(n + mass.size)]
    cones += [clarabel.SecondOrderConeT(3)] * (c * m)
    result = clarabel.DefaultSolver(sparse.csc_matrix((width, width)), objective, A, b, cones, settings).solve()
    x, z = np.asarray(result.x), np.asarray(result.z)
    return np.nan_to_num(np.maximum(x[mass], 0.0)), np.nan_to_num(np.maximum(z[m + 2 : m + 2 + n], 0.0))


def _kink_rows(plane: Plane, mass: Index, scale: float, width: int) -> Any:
    """Write down the equations of H (in units of ``scale``) and b: one row a line, then two."""
    from scipy import sparse

    m = len(plane.gap)
    k = np.arange(m)
    gap, before = plane.gap, np.roll(plane.gap, 1)
    w = np.minimum(gap, before)
    rows, cols = [k, k, k], [np.roll(k, 1), k, np.roll(k, -1)]
    vals = [scale * w / np.sin(before), -scale * w * (1 / np.tan(before) + 1 / np.tan(gap)), scale * w / np.sin(gap)]
    for (s, o), (p, q) in zip(plane.kinds, mass, strict=True):
        rows += [k, np.roll(k, -1)]
        cols += [p, q]
        vals += [-2 * s * w, -2 * s * np.roll(w, -1)]
        for axis in (0, 1):
            rows += [np.full(m, m + axis)] * 2
            cols += [p, q]
            vals += [-(1 + plane.slope) / 2 * s * o * r[:, axis] for r in (plane.ray, plane.after)]
    rows += [np.array([m, m + 1])]
    cols += [np.array([m, m + 1])]
    vals += [np.ones(2)]
    where = (np.concatenate(rows), np.concatenate(cols))
    return sparse.csr_matrix((np.concatenate(vals), where), shape=(m + 2, width))


def _neurons(plane: Plane, masses: Array) -> tuple[Array, Array]:
    """One neuron a kind and gap."""
    p, q = masses[:, 0, :, None], masses[:, 1, :, None]
    turn = np.array([o for _, o in plane.kinds])[:, None, None]
    V = turn * (p * plane.ray + q * plane.after)
    return V.reshape(-1, 2), np.repeat([s for s, _ in plane.kinds], len(plane.gap))


def _norm(plane: Plane, masses: Array) -> float:
    return float(np.linalg.norm(_neurons(plane, masses)[0], axis=1).sum())


def _margins(plane: Plane, masses: Array) -> Array:
    V, s = _neurons(plane, masses)
    live = V.any(axis=1)
    z = plane.X @ V[live].T
    return np.asarray(0.5 * plane.rho * plane.y * (np.where(z > 0, z, plane.slope * z) @ s[live]))


def _worst(plane: Plane, masses: Array) -> float:
    return float(_margins(plane, masses).min() / _norm(plane, masses))


def _repair(plane: Plane, masses: Array, kappa: Array, value: float) -> Array:
    """Change every mass by a small part of itself, as little as makes the tight margins equal.

    The solver meets the equations of H to its tolerance, but H is a double sum of them. Where the matrix would be
    too large the masses come back as they are.
    """
    q = _margins(plane, masses)
    tight = np.flatnonzero((kappa > _WEIGHTY * kappa.max()) | (q < value))
    live = np.flatnonzero(masses.ravel() > _LIVE)
    if len(tight) * len(live) > 10_000_000:
        return masses
    kind, end, k = np.unravel_index(live, masses.shape)
    s, o = np.array(plane.kinds)[kind].T
    rays = o[:, None] * np.where((end == 0)[:, None], plane.ray[k], plane.after[k])
    inside = o[:, None] * (plane.ray + plane.after)[k] @ plane.X[tight].T > 0
    effect = 0.5 * s[:, None] * plane.y[tight] * np.where(inside, 1.0, plane.slope) * (rays @ plane.X[tight].T)
    size = masses.ravel()[live]
    change = np.linalg.lstsq((effect * size[:, None]).T, (value - q[tight]) / plane.rho[tight], rcond=_REPAIR_CUT)[0]
    out = masses.copy()
    out.flat[live] = size * np.maximum(1 + change, 0.0)
    return np.asarray(out / _norm(plane, out))


def _net(both: Array, signs: Array) -> Array:
    """Let opposite signs in one gap cancel, and what is left on a ray join the neighbour of its sign there."""
    if len(signs) == 1:
        return both
    net = both[0] * signs[0] + both[1] * signs[1]
    out = np.stack([np.maximum(s * net, 0.0) for s in signs])
    for mass in out:
        p, q = mass
        left = (p > 0) & (q == 0) & (np.roll(q, 1) > 0)
        np.add.at(q, np.flatnonzero(left) - 1, p[left])
        p[left] = 0.0
        right = (q > 0) & (p == 0) & (np.roll(p, -1) > 0)
        np.add.at(p, (np.flatnonzero(right) + 1) % len(p), q[right])
        q[right] = 0.0
    return out


def _orient(plane: Plane, masses: Array) -> tuple[Array, Array]:
    """Few neurons with the same margins: of the orientations only b knows, and b has two components."""
    V, vs = _neurons(plane, masses)
    target = vs @ V
    signs = np.array([s for s, _ in plane.kinds[0::2]])
    both = masses[0::2] + masses[1::2]
    lean = (masses[0::2] - masses[1::2]).sum(axis=1) / np.maximum(both.sum(axis=1), TINY)
    both = _net(both, signs)
    W = (both[:, 0, :, None] * plane.ray + both[:, 1, :, None] * plane.after).reshape(-1, 2)
    size = np.linalg.norm(W, axis=1)
    live = size > 0
    W, s, size = W[live], np.repeat(signs, len(plane.gap))[live], size[live]
    # share: how much of each neuron looks ahead minus behind, in [-1, 1], with share @ pull = target.
    pull, share = s[:, None] * W, lean.reshape(-1)[live]
    for _ in range(20):
        weight = np.where(np.abs(share) < 1, 1.0, 0.0)[:, None] * pull
        share = share + weight @ np.linalg.lstsq(pull.T @ weight, target - share @ pull, rcond=_SHARE_CUT)[0]
        if np.abs(share).max() <= 1:
            break
        share = np.clip(share, -1, 1)
    if np.abs(target - share @ pull).max() > _BALANCED:
        keep = np.linalg.norm(V, axis=1) > 0
        return V[keep], vs[keep]
    share = _to_corners(share, pull)
    halves = np.vstack([W * (1 + share)[:, None] / 2, -W * (1 - share)[:, None] / 2])
    keep = np.linalg.norm(halves, axis=1) > 0
    return halves[keep], np.concatenate([s, s])[keep]


def _to_corners(share: Array, pull: Array) -> Array:
    """Move shares to -1 or 1 without changing ``share @ pull``, until two at most are in between."""
    share = share.copy()
    open_ = [int(k) for k in np.flatnonzero(np.abs(share) < 1)]
    while len(open_) > 2:
        a, b, c = trio = open_[-3:]
        cross = np.array(
            [
                pull[b, 0] * pull[c, 1] - pull[b, 1] * pull[c, 0],
                pull[c, 0] * pull[a, 1] - pull[c, 1] * pull[a, 0],
                pull[a, 0] * pull[b, 1] - pull[a, 1] * pull[b, 0],
            ]
        )
        if not cross.any():
            break
        reach = np.where(cross > 0, 1 - share[trio], np.where(cross < 0, 1 + share[trio], np.inf))
        step = reach / np.where(cross == 0, 1.0, np.abs(cross))
        first = int(np.argmin(step))
        share[trio] = np.clip(share[trio] + step[first] * cross, -1, 1)
        share[trio[first]] = np.sign(cross[first])
        open_ = [k for k in open_ if np.abs(share[k]) < 1]
    return share
