"""The central path of the grouped program, followed far below what a general solver resolves.

Points of very different norms make amplitudes of very different sizes, and the small ones do not show
in the objective. Here every product of a multiplier and its slack is brought to the same value mu, which
goes to zero while the residuals are kept in long double, so the small parts are resolved like the large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ._grouped_solve import Array, Index, Program, Wide


class Path(NamedTuple):
    """Multipliers and slacks of the rows, amplitudes and ``(1 - |c_G|^2)/2`` of the groups, all positive."""

    lam: Wide
    t: Wide
    slack: Wide
    hidden: Wide


@dataclass(frozen=True, eq=False)
class Flat:
    """The program without walls: each wall is a row that only its own group sees and that needs nothing."""

    rows: Wide
    gain: Array
    need: Array
    frames: list[Array]

    def forces(self, lam: Wide) -> Wide:
        """``c_G``: the force on each group along its sliding surfaces."""
        c = (self.gain * lam) @ self.rows
        return np.stack([x - (x @ f.T) @ f for x, f in zip(c, self.frames, strict=True)])

    def matrix(self, t: Wide, effect: Wide) -> Array:
        """Derivative of the margins and of ``(1 - |c_G|^2)/2`` by (lam, t)."""
        m = self.need.size
        rows = self.rows.astype(np.float64)
        J = np.zeros((m + t.size, m + t.size))
        for g, frame in enumerate(self.frames):
            seen = np.flatnonzero(self.gain[g])
            R = self.gain[g, seen, None] * rows[seen]
            R = R - (R @ frame.T) @ frame
            J[np.ix_(seen, seen)] += float(t[g]) * (R @ R.T)
        J[:m, m:], J[m:, :m] = effect.T, -effect
        return J


def flatten(program: Program, points: Index, owner: Index, wall: Index) -> Flat:
    """Keep the named points, and the named walls of their owners, as rows."""
    only = np.zeros((program.groups, wall.size))
    only[owner, np.arange(wall.size)] = program.side[owner, wall]
    frames = [np.linalg.svd(program.rows[f], full_matrices=False)[2] for f in program.fixed]
    return Flat(
        program.rows[np.concatenate([points, wall])].astype(np.longdouble),
        np.hstack([program.gain[:, points], only]),
        np.concatenate([program.need[points], np.zeros(wall.size)]),
        frames,
    )


def follow_path(flat: Flat, lam: Wide, t: Wide) -> Path:
    """Newton's method with a falling mu from any positive start; the system is monotone, so it is never singular."""
    m, groups = lam.size, t.size
    smallest = float(flat.need[flat.need > 0].min())
    slack = np.maximum(np.abs(t @ _effect(flat, flat.forces(lam)) - flat.need), 1e-3)
    hidden = np.ones(groups, dtype=np.longdouble)
    for _ in range(400):
        c = flat.forces(lam)
        effect = _effect(flat, c)
        true_slack, true_hidden = t @ effect - flat.need, (1 - (c**2).sum(axis=1)) / 2
        mu = float((lam @ slack + t @ hidden) / (m + groups))
        off = float(max(np.abs(true_slack - slack).max(), np.abs(true_hidden - hidden).max()))
        if mu < 1e-20 * smallest:
            break
        J = flat.matrix(t, effect)
        J[np.diag_indices(m + groups)] += np.concatenate([slack / lam, hidden / t]).astype(np.float64)
        goal = (0.15 if off < 1e3 * mu + 1e-14 * float(t.sum()) else 0.7) * mu
        step = balanced_solve(J, np.concatenate([goal / lam - true_slack, goal / t - true_hidden]))
        if not np.isfinite(step).all():
            break
        d_lam, d_t = step[:m], step[m:]
        d_slack, d_hidden = (goal - slack * d_lam) / lam - slack, (goal - hidden * d_t) / t - hidden
        pairs = ((lam, d_lam), (t, d_t), (slack, d_slack), (hidden, d_hidden))
        alpha = min(1.0, *(0.98 * _reach(x, dx) for x, dx in pairs))
        lam, t, slack, hidden = (x + alpha * dx for x, dx in pairs)
    return Path(lam, t, slack, hidden)


def _effect(flat: Flat, forces: Wide) -> Wide:
    """What a unit of each group gives to each row, (G, m)."""
    return np.asarray(flat.gain * (forces @ flat.rows.T))


def _reach(x: Wide, dx: Wide | Array) -> float:
    """How far along dx until x vanishes."""
    return float(np.min(-x[dx < 0] / dx[dx < 0], initial=np.inf))


def balanced_solve(J: Array, rhs: Array | Wide, cutoff: float = 0.0) -> Array:
    """Solve after scaling rows and columns to entries of order one; by least squares if there is a cutoff."""
    left, right = np.ones(len(J)), np.ones(len(J))
    for _ in range(3):
        size = np.abs(J * left[:, None] * right)
        for side, top in ((left, size.max(axis=1)), (right, size.max(axis=0))):
            side /= np.sqrt(np.where(top > 0, top, 1.0))
    scaled, K = (left * rhs).astype(np.float64), J * left[:, None] * right
    with np.errstate(over="ignore", invalid="ignore"):
        if not cutoff:
            try:
                return np.asarray(right * np.linalg.solve(K, scaled))
            except np.linalg.LinAlgError:  # singular to working precision
                cutoff = 1e-16
        return np.asarray(right * np.linalg.lstsq(K, scaled, rcond=cutoff)[0])
