"""How the grouped program is solved: an interior point start, then Newton on what is active.

In the scaled units used here the program is ``min sum_G |v_G|`` subject to
``sum_G gain_Gi rows_i . v_G >= need_i`` and ``v_G`` in the cone K_G. Its dual is ``max need . lam``
over ``lam >= 0`` with ``|P_G(C_G)| <= 1``, where ``C_G = sum_i lam_i gain_Gi rows_i`` and P_G projects
onto K_G. At the optimum ``v_G = t_G P_G(C_G)``, so the unknowns of the polish are only lam and t.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...problem import Undecided, check_time, time_left
from ...problem.types import Array, Index, Signs

Wide = npt.NDArray[np.longdouble]

#: Below this a violated inequality is rounding; rows have norm about 1, so it is relative.
ROUNDING = 1e-14

# More entries than this are never given to the interior point method at once; it starts on a part and grows.
_DENSE_ENTRIES, _FEW_GROUPS = 60_000, 8
_ROUGH, _ROUGH_CUT = 1e-6, 1e-5  # tolerance while the part grows, and the violation from which something joins
_CUT = 1e-8  # the same violation at the tolerance asked for, far above what an interior point leaves
_PRESENT = 1e-6  # length, of all groups together 1, from which a group is there; an absent one obeys its walls anyway
_EMPTY: Index = np.empty(0, dtype=np.intp)
_INDEPENDENT, _SPANNED = 1e-12, 1e-13  # relative sizes from which rows are independent, in QR and in an SVD


@dataclass(frozen=True, eq=False)
class Program:
    """The scaled program. ``side`` is -1, 0 or +1; the inequality walls exist only where ``walls``."""

    rows: Array
    need: Array
    gain: Array
    side: Signs
    walls: bool
    fixed: tuple[Index, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed", tuple(_independent(self.rows, np.flatnonzero(s == 0)) for s in self.side))

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.gain.shape[0])

    def margins(self, v: Array) -> Array:
        """Left-hand sides of the margin constraints."""
        return np.asarray(np.einsum("gn,ng->n", self.gain, self.rows @ v.T))

    def terms(self, t: Array | Wide) -> Array:
        """For each point the sum of the sizes of what ``margins`` adds up, for groups of length t."""
        total = np.abs(self.gain).T @ np.abs(t).astype(np.float64) * np.linalg.norm(self.rows, axis=1)
        return np.asarray(np.maximum(total, np.finfo(float).tiny))

    def forces(self, lam: Array | Wide, groups: Index, points: Index) -> Wide:
        """``C_G`` of the named groups from multipliers on the named points, in long double."""
        weight = self.gain[np.ix_(groups, points)].astype(np.longdouble) * lam
        return np.asarray(weight @ self.rows[points].astype(np.longdouble))


def _independent(rows: Array, index: Index) -> Index:
    """Choose rows that span what all of them span."""
    if index.size < 2:
        return index
    from scipy.linalg import qr

    R, order = qr(rows[index].T, mode="r", pivoting=True)[0:2]
    size = np.abs(np.diag(R))
    return np.sort(index[order[: int(np.count_nonzero(size > _INDEPENDENT * size[0]))]])


# -- projecting a force onto the cone of a group --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Projection:
    """``point = force + pull @ rows[tight]``, orthogonal to those rows; ``frame`` is their orthonormal basis."""

    point: Wide
    tight: Index
    pull: Wide
    frame: Array

    @property
    def norm(self) -> float:
        """Length of the projected force."""
        return float(np.sqrt(self.point @ self.point))


def _complement(rows: Array, tight: Index, force: Wide) -> Projection:
    """Remove the span of ``rows[tight]`` from the force, refined in long double."""
    B = rows[tight]
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    keep = s > _SPANNED * s.max(initial=0.0)
    inverse = (Vt[keep].T / s[keep]) @ U[:, keep].T  # pseudo-inverse of B, (d, k)
    wide = B.astype(np.longdouble)
    pull = np.zeros(tight.size, dtype=np.longdouble)
    point = force
    for _ in range(4 if tight.size else 0):
        pull = pull - (point.astype(np.float64) @ inverse)
        point = force + pull @ wide
    return Projection(point, tight, pull, Vt[keep])


def project(program: Program, g: int, force: Wide, guess: Index) -> Projection:
    """Project onto the cone of group g; ``guess`` are walls it probably leans on.

    The projection is the force plus the shortest push from the walls (Moreau), found by non-negative
    least squares on a growing set of walls.
    """
    fixed, side = program.fixed[g], program.side[g]
    size = float(np.sqrt(force @ force))
    if not program.walls or size == 0.0:
        return _complement(program.rows, fixed, force)
    found = _complement(program.rows, np.concatenate([fixed, guess]), force)
    inside = side * (program.rows @ found.point.astype(np.float64))
    if inside.min() >= -ROUNDING * size and (found.pull[fixed.size :] * side[guess]).min(initial=0.0) >= 0:
        return found
    walls = _leaning(program, g, force, guess)
    while True:
        check_time("solving for a margin")
        found = _complement(program.rows, np.concatenate([fixed, walls]), force)
        push = found.pull[fixed.size :] * side[walls]
        if push.min(initial=0.0) >= 0:
            return found
        walls = walls[push > push.min()]  # negative by rounding only: that wall does not push


def _leaning(program: Program, g: int, force: Wide, guess: Index) -> Index:
    """Find the walls that push: non-negative least squares on those violated so far."""
    from scipy.optimize import nnls

    rows, side = program.rows, program.side[g]
    free = _complement(rows, program.fixed[g], force)
    f, frame = free.point.astype(np.float64), free.frame
    size = float(np.linalg.norm(f))
    chosen = guess
    best = -1.0
    for _ in range(200):
        check_time("solving for a margin")
        A = side[chosen, None] * rows[chosen]
        A = A - (A @ frame.T) @ frame
        push = np.zeros(0)
        if chosen.size:
            try:
                push, _ = nnls(A.T, -f, maxiter=30 * chosen.size + 300)
            except RuntimeError as exc:
                raise Undecided(f"the projection onto the cone of group {g} did not converge: {exc}.") from None
        point = f + push @ A
        chosen, reached = chosen[push > 0], float(np.linalg.norm(f - point))
        inside = side * (rows @ point)
        bad = np.flatnonzero(inside < -ROUNDING * size)
        if not np.setdiff1d(bad, chosen).size or reached <= best:  # the distance must grow, or it is rounding
            break
        best = reached
        chosen = np.union1d(chosen, bad[np.argsort(inside[bad])[:50]])
    return chosen


def project_all(program: Program, lam: Array | Wide, points: Index, guesses: list[Index]) -> list[Projection]:
    """Project the force of every group; the walls found become the next guesses."""
    forces = program.forces(lam, np.arange(program.groups), points)
    found = [project(program, g, forces[g], guesses[g]) for g in range(program.groups)]
    for g, one in enumerate(found):
        guesses[g] = one.tight[program.fixed[g].size :]
    return found


# -- the interior point start ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Start:
    """``v`` of total length 1 and multipliers with ``need . lam = 1``: margin ``level`` between them."""

    v: Array
    lam: Array
    level: float
    status: str


def interior(program: Program, tolerance: float = 1e-9) -> Start:
    """Maximise the margin ``t`` with ``sum |v_G| <= 1``: always feasible, so never mistaken for infeasible.

    Large programs begin with some points, no walls and a few groups, and grow by what is violated.
    """
    n, d = program.rows.shape
    walls = [np.flatnonzero(s != 0) if program.walls else _EMPTY for s in program.side]
    if d * (n * program.groups + sum(w.size for w in walls)) <= _DENSE_ENTRIES:
        return _conic(program, np.arange(n), np.arange(program.groups), walls, tolerance)
    part = _Part(program)
    rough = True
    for _ in range(200):
        check_time("solving for a margin")
        start = _conic(program, part.points, part.team, part.walls, _ROUGH if rough else tolerance)
        if not part.grow(start, _ROUGH_CUT if rough else _CUT):
            if not rough:
                break
            rough = False
    return start


class _Part:
    """The points, groups and walls of a large program that are in the small one."""

    def __init__(self, program: Program) -> None:
        n, count = program.rows.shape[0], program.groups
        self.program = program
        self.points, self.walls, self.team = _spread(n, 64), [_EMPTY] * count, np.arange(count)
        self._guesses = [_EMPTY] * count
        self._level = np.inf  # of the solution before
        if count > _FEW_GROUPS:
            self.team = np.sort(np.argsort(-self._shadows(np.full(n, 1.0 / n)))[:_FEW_GROUPS])

    @property
    def size(self) -> tuple[int, int, int]:
        """How many points, groups and walls there are."""
        return self.points.size, self.team.size, sum(w.size for w in self.walls)

    def _shadows(self, lam: Array) -> Array:
        """Lengths of the projected forces of all groups."""
        found = project_all(self.program, lam, np.arange(self.program.rows.shape[0]), self._guesses)
        return np.array([s.norm for s in found])

    def grow(self, start: Start, cut: float) -> bool:
        """Take in what the solution of the small program violates by more than ``cut``; whether the size changed."""
        program, size = self.program, self.size
        slack = program.margins(start.v) - start.level * program.need
        if self.points.size > 200 and start.level < 0.999 * self._level:
            # What is far from binding may go, while there is progress.
            self.points = self.points[slack[self.points] < 0.05 * np.abs(slack).max()]
        self._level = start.level
        self.points = _add_worst(self.points, slack, -cut)
        for g in self.team if program.walls else ():
            length = float(np.linalg.norm(start.v[g]))
            if length > _PRESENT:
                inside = program.side[g] * (program.rows @ start.v[g]) / length
                self.walls[g] = _add_worst(self.walls[g], inside, -cut)
        if self.team.size < program.groups:
            self.team = _add_worst(self.team, start.level - self._shadows(start.lam), -cut)
        return size != self.size


def _spread(n: int, k: int) -> Index:
    return np.unique(np.linspace(0, n - 1, min(n, k)).astype(np.intp))


def _add_worst(have: Index, slack: Array, cut: float) -> Index:
    """Add the most violated ones, about as many as there are."""
    bad = np.setdiff1d(np.flatnonzero(slack < cut), have)
    return np.union1d(have, bad[np.argsort(slack[bad])[: max(10, have.size // 3)]])


def _conic(program: Program, points: Index, team: Index, walls: list[Index], tolerance: float) -> Start:
    """Solve with the named points, groups and walls alone, in coordinates of what these points span."""
    import clarabel
    from scipy import sparse

    fixed, walls = [program.fixed[g] for g in team], [walls[g] for g in team]
    used = np.unique(np.concatenate([points, *walls, *fixed]))
    d = program.rows.shape[1]
    basis = np.linalg.qr(program.rows[used].T)[0] if used.size < d else np.eye(d)
    rows = np.zeros((program.rows.shape[0], basis.shape[1]))
    rows[used] = program.rows[used] @ basis
    k, m = basis.shape[1], team.size
    width = 1 + m * k + m  # t, the v_G, bounds on their lengths

    def block(entries: Array, first: int) -> sparse.csr_array:
        r, c = np.indices(entries.shape)
        return sparse.csr_array((entries.ravel(), (r.ravel(), first + c.ravel())), shape=(len(entries), width))

    slides = [block(rows[f], 1 + g * k) for g, f in enumerate(fixed)]
    gains = (-program.gain[team][:, points, None] * rows[points]).transpose(1, 0, 2).reshape(points.size, m * k)
    margin = block(np.hstack([program.need[points, None], gains]), 0)
    sides = [block(-program.side[team[g], w, None] * rows[w], 1 + g * k) for g, w in enumerate(walls)]
    lengths = []
    for g in range(m):
        where = np.concatenate([[1 + m * k + g], 1 + g * k + np.arange(k)])
        lengths.append(sparse.csr_array((-np.ones(1 + k), (np.arange(1 + k), where)), shape=(1 + k, width)))
    A = sparse.vstack([*slides, margin, *sides, block(np.ones((1, m)), 1 + m * k), *lengths], format="csc")
    equal, upper = sum(f.size for f in fixed), points.size + sum(w.size for w in walls) + 1
    b, cost = np.zeros(A.shape[0]), np.zeros(width)
    b[equal + upper - 1], cost[0] = 1.0, -1.0
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(upper), *[clarabel.SecondOrderConeT(1 + k)] * m]
    x, z, status = _run_clarabel(A, b, cost, cones[0 if equal else 1 :], tolerance)
    v, lam = np.zeros((program.groups, d)), np.zeros(program.rows.shape[0])
    v[team] = x[1 : 1 + m * k].reshape(m, k) @ basis.T
    lam[points] = np.maximum(z[equal : equal + points.size], 0.0)
    return Start(v, lam, float(x[0]), status)


def _run_clarabel(A: Any, b: Array, cost: Array, cones: list[Any], tolerance: float) -> tuple[Array, Array, str]:
    import clarabel
    from scipy import sparse

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    for attempt in (tolerance, 100 * tolerance, 1e4 * tolerance):
        check_time("solving for a margin")
        settings.time_limit = time_left()
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = attempt
        quadratic = sparse.csc_array((cost.size, cost.size))
        answer = clarabel.DefaultSolver(quadratic, cost, A, b, cones, settings).solve()
        if str(answer.status) in ("Solved", "AlmostSolved"):
            return np.asarray(answer.x), np.asarray(answer.z), str(answer.status)
    raise Undecided(
        f"the interior point method ended with status {answer.status} at tolerances from {tolerance:g} on; "
        "no solution is claimed. Nearly dependent points or contradictory patterns can cause this."
    )
