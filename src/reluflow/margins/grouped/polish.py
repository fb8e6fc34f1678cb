"""From an approximate solution of the grouped program to one that is exact up to rounding.

With the active points A and the living groups L known, the optimality conditions are
``|c_G| = 1`` (G in L) and ``sum_G t_G gain_Gi rows_i . c_G = need_i`` (i in A), where ``c_G`` is the
projected force, piecewise linear in lam. Newton's method on (lam, t) solves them; what comes out
negative is dropped, what is violated is added, and the pass repeats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...problem import check_time
from ...problem.types import Array, Index
from .path import balanced_solve, flatten, follow_path
from .solve import Program, Projection, Start, Wide, project, project_all

# Weight of the multiplier against the slack when the start does not say clearly what is active.
_THRESHOLDS = (1.0, 1e-3, 1e3, 1e-5, 1e5)
_PASSES = 60
_TOUCHES = 1e-6  # sine to a wall below which an interior point may mean to touch it
_EXACT = 1e-17  # residual beyond which there is nothing to gain in doubles
_STALLS = 1e-13  # below this a residual that does not fall is rounding
_GOOD, _NOT_WORSE = 1e-12, 1e-10  # the best residual, and the last one, of a success
_STEP_CUT = 1e-13  # singular values dropped from a Newton step: duplicated points, dependent groups


@dataclass(frozen=True, eq=False)
class Polished:
    """Multipliers, amplitudes and projected forces of all groups; ``exact`` if nothing was left to correct."""

    lam: Wide
    t: Wide
    shadows: list[Projection]
    exact: bool

    def touched(self, program: Program) -> list[Index]:
        """For each group the walls that push it."""
        return [s.tight[f.size :] for s, f in zip(self.shadows, program.fixed, strict=True)]


def polish(program: Program, start: Start, tolerance: float) -> Polished:
    """Correct the active sets until the optimality conditions hold, or return the best that was found."""
    lam, length = (start.lam / start.level).astype(np.longdouble), np.linalg.norm(start.v, axis=1)
    shadows = project_all(program, lam, np.arange(lam.size), _touching(program, start))
    rough = Polished(lam, length / np.longdouble(start.level), shadows, False)
    slack = (program.margins(start.v) - start.level * program.need) / program.terms(length)
    hidden = 1.0 - np.array([s.norm for s in shadows])
    found = _sharpen(program, rough, slack, hidden, tolerance)
    if not found.exact:
        found = descend(program, rough, tolerance)
    return found if found.exact else rough


def _sharpen(program: Program, rough: Polished, slack: Array, hidden: Array, tolerance: float) -> Polished:
    """Read the active sets off an approximate solution, multiplier against slack, and solve for them; else keep it."""
    weight, share = (rough.lam / rough.lam.sum()).astype(np.float64), (rough.t / rough.t.sum()).astype(np.float64)
    seen: set[bytes] = set()
    for factor in _THRESHOLDS:
        active, living = np.flatnonzero(weight > factor * slack), np.flatnonzero(share > factor * hidden)
        key = active.tobytes() + b"|" + living.tobytes()
        if active.size and living.size and key not in seen:
            seen.add(key)
            now = _correct(program, rough, active, living, tolerance)
            if now.exact:
                return now
    return rough


def descend(program: Program, begin: Polished, tolerance: float) -> Polished:
    """Follow the central path from a solution of a similar program, then sharpen.

    Only the points and walls closest to binding take part at first; those that come out violated join.
    """
    n, answer = program.rows.shape[0], begin
    points, walls = np.zeros(n, dtype=bool), np.zeros((program.groups, n), dtype=bool)
    slack, inside = _distances(program, begin.t, np.stack([s.point for s in begin.shadows]))
    for _ in range(4):
        points = _closest(slack, points, 400)
        walls = np.stack([_closest(row, have, 100) for row, have in zip(inside, walls, strict=True)])
        chosen, near = np.flatnonzero(points), [np.flatnonzero(row) for row in walls]
        flat = flatten(program, chosen, near)
        lam = np.maximum(begin.lam[chosen], 1e-3 * begin.lam.sum() / chosen.size)
        path = follow_path(flat, lam, np.maximum(begin.t, 1e-3 * begin.t.sum() / program.groups))
        slack, inside = _distances(program, path.t, flat.forces(path.lam, path.push))
        weight, room = np.zeros(n, dtype=np.longdouble), slack.copy()
        weight[chosen] = path.lam
        room[chosen] = (path.slack / program.terms(path.t)[chosen]).astype(np.float64)
        pushing = path.push > path.room / np.repeat(path.t, np.diff(flat.ends))
        guesses = [w[pushing[flat.ends[g] : flat.ends[g + 1]]] for g, w in enumerate(near)]
        rough = Polished(weight, path.t, project_all(program, weight, np.arange(n), guesses), False)
        answer = _sharpen(program, rough, room, path.hidden.astype(np.float64), tolerance)
        if answer.exact or not (((slack < 0) & ~points).any() or ((inside < 0) & ~walls).any()):
            break
    return answer


def _distances(program: Program, t: Wide, force: Wide) -> tuple[Array, Array]:
    """Relative slack of every point and of every wall (infinite where there is none)."""
    v = (t[:, None] * force).astype(np.float64)
    slack = (program.margins(v) - program.need) / program.terms(t)
    if not program.walls:
        return slack, np.full(program.side.shape, np.inf)
    return slack, np.where(program.side == 0, np.inf, program.side * (force.astype(np.float64) @ program.rows.T))


def _closest(slack: Array, have: npt.NDArray[np.bool_], most: int) -> npt.NDArray[np.bool_]:
    """Add the most binding ones."""
    order = np.argsort(slack)
    order = order[np.isfinite(slack[order]) & ~have[order]][:most]
    more = have.copy()
    more[order] = True
    return more


def _touching(program: Program, start: Start) -> list[Index]:
    if not program.walls:
        return [np.empty(0, dtype=np.intp)] * program.groups
    inside = program.side * (start.v @ program.rows.T)
    size = np.linalg.norm(start.v, axis=1)
    return [
        np.flatnonzero((row < _TOUCHES * r) & (s != 0)) for row, r, s in zip(inside, size, program.side, strict=True)
    ]


def _correct(program: Program, begin: Polished, active: Index, living: Index, tolerance: float) -> Polished:
    """Alternate Newton with dropping what is negative and adding what is violated."""
    n, groups = program.rows.shape[0], program.groups
    lam, t, guesses = begin.lam.copy(), begin.t.copy(), begin.touched(program)
    seen: set[bytes] = set()
    exact = False
    for turn in range(_PASSES):
        key = active.tobytes() + b"|" + living.tobytes()
        if key in seen or not active.size or not living.size:
            break
        seen.add(key)
        lam[np.setdiff1d(np.arange(n), active)] = 0
        t[np.setdiff1d(np.arange(groups), living)] = 0
        good = _newton(program, active, living, lam, t, guesses)
        low, dead = active[lam[active] < 0], living[t[living] < 0]
        if low.size or dead.size:
            if turn > 10:  # dropping many at once went in circles
                low = low[np.argsort(lam[low])[:1]]
                dead = dead[np.argsort(t[dead])[:1]] if not low.size else dead[:0]
            active, living = np.setdiff1d(active, low), np.setdiff1d(living, dead)
            continue
        shadows = project_all(program, lam[active], active, guesses)
        v = np.array([(t[g] * s.point).astype(np.float64) for g, s in enumerate(shadows)])
        short = (program.margins(v) - program.need) / program.terms(t)
        missing = np.setdiff1d(np.flatnonzero(short < -tolerance), active)
        excess = np.array([s.norm for s in shadows]) - 1.0
        regrow = np.setdiff1d(np.flatnonzero(excess > tolerance), living)
        if not missing.size and not regrow.size:
            exact = good
            break
        missing = missing[np.argsort(short[missing])[: max(1, 10 - turn)]]
        regrow = regrow[np.argsort(-excess[regrow])[: max(1, 10 - turn)]]
        active, living = np.union1d(active, missing), np.union1d(living, regrow)
    lam, t = np.maximum(lam, 0), np.maximum(t, 0)
    return Polished(lam, t, project_all(program, lam, np.arange(n), guesses), exact)


def _newton(program: Program, active: Index, living: Index, lam: Wide, t: Wide, guesses: list[Index]) -> bool:
    """Solve for lam on ``active`` and t on ``living`` in place; whether the residual reached rounding."""
    need = program.need[active].astype(np.longdouble)
    rows = program.rows[active].astype(np.longdouble)
    gain = program.gain[np.ix_(living, active)].astype(np.longdouble)
    best = np.inf
    for _ in range(30):
        check_time("solving for a margin")
        forces = program.forces(lam[active], living, active)
        shadows = []
        for g, force in zip(living, forces, strict=True):
            shadows.append(project(program, int(g), force, guesses[g]))
            guesses[g] = shadows[-1].tight[program.fixed[g].size :]
        point = np.stack([s.point for s in shadows])
        effect = gain * (point @ rows.T)  # (L, A): what a unit of each group gives to each point
        scale = np.maximum(program.terms(t)[active], need)
        off = np.concatenate([(t[living] @ effect - need) / scale, ((point**2).sum(axis=1) - 1) / 2])
        worst = float(np.abs(off).max())
        if worst < _EXACT or not np.isfinite(worst) or worst > 1e6 * best or (best < _STALLS and worst >= best):
            break
        best = min(best, worst)
        step = _step(program, active, living, t, shadows, effect.astype(np.float64), scale.astype(np.float64), off)
        if not np.isfinite(step).all() or np.abs(step).max() > 1e100:
            return False
        lam[active] += step[: active.size]
        t[living] += step[active.size :]
    return bool(np.isfinite(worst) and min(worst, best) < _GOOD and worst < _NOT_WORSE)


def _step(
    program: Program,
    active: Index,
    living: Index,
    t: Wide,
    shadows: list[Projection],
    effect: Array,
    scale: Array,
    off: Wide,
) -> Array:
    """Newton step for (lam, t): each equation relative to its terms, each unknown to its column.

    Of minimum norm where it is singular: duplicated points share their multiplier, dependent groups
    their amplitude.
    """
    J = _jacobian(program, active, living, t, shadows, effect)
    J[: active.size] /= scale[:, None]
    return balanced_solve(J, -off.astype(np.float64)[:, None], _STEP_CUT)[:, 0]


def _jacobian(
    program: Program, active: Index, living: Index, t: Wide, shadows: list[Projection], effect: Array
) -> Array:
    """Differentiate the margins and half the squared norms of the projected forces by (lam, t)."""
    k = active.size
    J = np.zeros((k + living.size, k + living.size))
    for g, shadow in zip(living, shadows, strict=True):
        R = program.gain[g, active, None] * program.rows[active]
        R = R - (R @ shadow.frame.T) @ shadow.frame
        J[:k, :k] += float(t[g]) * (R @ R.T)
    J[:k, k:], J[k:, :k] = effect.T, effect
    return J
