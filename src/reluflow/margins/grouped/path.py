"""The central path of the grouped program, followed far below what a general solver resolves.

Points of very different norms make amplitudes of very different sizes, and the small ones do not show
in the objective. Here every product of a multiplier and its slack is brought to the same value mu, which
goes to zero while the residuals are kept in long double, so the small parts are resolved like the large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...problem import check_time
from ...problem.types import Array, Index
from .solve import Program, Wide

_CONVERGED = 1e-20  # mu, relative to the least need, at which long doubles have nothing to gain
_OFF_PATH = 1e-14  # rounding of the equations, relative to all lengths: below it the path counts as followed
_SINGULAR = 1e-16  # singular values dropped where the matrix is singular to working precision


class Path(NamedTuple):
    """A point of the path: pairs (multiplier, slack) of points and walls, (t, (1 - |c|^2)/2) of groups."""

    lam: Wide
    slack: Wide
    push: Wide
    room: Wide
    t: Wide
    hidden: Wide


@dataclass(frozen=True, eq=False)
class Flat:
    """The points and walls that take part; the walls stand group by group, ``ends[g]:ends[g + 1]``."""

    rows: Wide
    gain: Array
    need: Array
    wall_rows: Wide
    ends: Index
    frames: list[Array]

    def forces(self, lam: Wide, push: Wide) -> Wide:
        """``c_G``: force plus push of the walls, along the sliding surfaces."""
        c = (self.gain * lam) @ self.rows
        for g, frame in enumerate(self.frames):
            mine = slice(self.ends[g], self.ends[g + 1])
            c[g] += push[mine] @ self.wall_rows[mine]
            c[g] -= (c[g] @ frame.T) @ frame
        return c


def flatten(program: Program, points: Index, walls: list[Index]) -> Flat:
    """Keep the named points and, for each group, the named walls."""
    rows = [program.side[g, w, None] * program.rows[w] for g, w in enumerate(walls)]
    return Flat(
        program.rows[points].astype(np.longdouble),
        program.gain[:, points],
        program.need[points],
        np.concatenate(rows).astype(np.longdouble),
        np.concatenate([[0], np.cumsum([w.size for w in walls])]),
        [np.linalg.svd(program.rows[f], full_matrices=False)[2] for f in program.fixed],
    )


def follow_path(flat: Flat, lam: Wide, t: Wide) -> Path:
    """Newton's method with a falling mu from any positive start; the system is monotone, so it is never singular."""
    k = flat.wall_rows.shape[0]
    owner = np.repeat(np.arange(t.size), np.diff(flat.ends))
    one = np.longdouble(1)
    top = one * max(float(t.sum()), 1.0)
    state = Path(lam, np.full(lam.size, top), np.full(k, lam.mean()), np.full(k, top), t, np.full(t.size, one))
    for _ in range(400):
        check_time("solving for a margin")
        lam, slack, push, room, t, hidden = state
        c = flat.forces(lam, push)
        effect = flat.gain * (c @ flat.rows.T)
        touch = (c[owner] * flat.wall_rows).sum(axis=1)
        true = t @ effect - flat.need, t[owner] * touch, (1 - (c**2).sum(axis=1)) / 2
        mu = float((lam @ slack + push @ room + t @ hidden) / (lam.size + k + t.size))
        off = max(float(np.abs(x - y).max(initial=0.0)) for x, y in zip(true, (slack, room, hidden), strict=True))
        if mu < _CONVERGED * flat.need.min():
            break
        goal = (0.15 if off < 1e3 * mu + _OFF_PATH * float(t.sum()) else 0.7) * mu
        rhs = [goal / x - y for x, y in zip((lam, push, t), true, strict=True)]
        moves = _newton_step(flat, state, effect, touch, rhs)
        if not all(np.isfinite(x).all() for x in moves):
            break
        steps = []
        for x, dx, y in zip((lam, push, t), moves, (slack, room, hidden), strict=True):
            steps += [dx, (goal - y * dx) / x - y]
        alpha = min(1.0, *(0.98 * _reach(x, dx) for x, dx in zip(state, steps, strict=True)))
        state = Path(*(x + alpha * dx for x, dx in zip(state, steps, strict=True)))
    return state


def _newton_step(flat: Flat, state: Path, effect: Wide, touch: Wide, rhs: list[Wide]) -> tuple[Array, Array, Array]:
    """Solve for the steps of lam, push and t. The walls of a group meet only that group and are eliminated first."""
    n, groups = state.lam.size, state.t.size
    J = np.zeros((n + groups, n + groups))
    J[:n, n:], J[n:, :n] = effect.T, -effect
    J[np.diag_indices(n + groups)] += np.concatenate([state.slack / state.lam, state.hidden / state.t]).astype(float)
    b = np.concatenate([rhs[0], rhs[2]]).astype(np.float64)
    rows, kept = flat.rows.astype(np.float64), []
    for g, frame in enumerate(flat.frames):
        mine, t = slice(flat.ends[g], flat.ends[g + 1]), float(state.t[g])
        R, V = flat.gain[g][:, None] * rows, flat.wall_rows[mine].astype(np.float64)
        R, V = R - (R @ frame.T) @ frame, V - (V @ frame.T) @ frame
        J[:n, :n] += t * (R @ R.T)
        if not len(V):
            kept.append(np.zeros((0, n + groups + 1)))
            continue
        D = t * (V @ V.T) + np.diag((state.room[mine] / state.push[mine]).astype(np.float64))
        right = np.zeros((len(V), n + groups + 1))
        right[:, :n], right[:, n + g] = t * (V @ R.T), touch[mine]
        right[:, -1] = rhs[1][mine]
        left = np.zeros((n + groups, len(V)))
        left[:n], left[n + g] = t * (R @ V.T), -touch[mine]
        solved = balanced_solve(D, right)
        J -= left @ solved[:, :-1]
        b -= left @ solved[:, -1]
        kept.append(solved)
    x = balanced_solve(J, b[:, None])[:, 0]
    push = np.concatenate([s[:, -1] - s[:, :-1] @ x for s in kept])
    return x[:n], push, x[n:]


def _reach(x: Wide, dx: Wide | Array) -> float:
    """How far along dx until x vanishes."""
    return float(np.min(-x[dx < 0] / dx[dx < 0], initial=np.inf))


def balanced_solve(J: Array, rhs: Array, cutoff: float = 0.0) -> Array:
    """Solve after scaling rows and columns to entries of order one; by least squares if there is a cutoff."""
    left, right = np.ones(len(J)), np.ones(len(J))
    for _ in range(3):
        size = np.abs(J * left[:, None] * right)
        for side, top in ((left, size.max(axis=1)), (right, size.max(axis=0))):
            side /= np.sqrt(np.where(top > 0, top, 1.0))
    scaled, K = left[:, None] * rhs, J * left[:, None] * right
    with np.errstate(over="ignore", invalid="ignore"):
        if not cutoff:
            try:
                return np.asarray(right[:, None] * np.linalg.solve(K, scaled))
            except np.linalg.LinAlgError:  # singular to working precision
                cutoff = _SINGULAR
        return np.asarray(right[:, None] * np.linalg.lstsq(K, scaled, rcond=cutoff)[0])
