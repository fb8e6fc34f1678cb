r"""The vector field of the flow: patterns, forces, and velocities on hyperplanes.

All neurons with the same pattern feel the same force :math:`D = \sum_i c_i h_i x_i`, :math:`c_i = r\,y_i g_i`, so it is
summed once a pattern; and the outputs need only :math:`\sum_j a_j w_j` of each pattern. A neuron that slides on
hyperplanes with normals N moves with the force projected on their orthogonal complement: the slopes there enter
linearly and are whatever makes it tangent (PL-LA3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...problem import Problem
from ...problem.types import Array, Index, Signs
from ...sectors.hyperplanes import Surfaces, surfaces
from ..trajectory import SHRUNK

#: ``|w . n|`` below this part of |w| is on the hyperplane: what a snapshot of a sliding neuron may have lost.
ON = 1e-11

_WEAK = 1e-13  # a sample whose force is this part of all of it cannot hold a neuron
#: Forces of this part of all of them may be rounding, while margins are of order 1.
EDGE = 1e-12

_CANCELLED = 4 * float(np.finfo(np.float64).eps)  # a sum of pulls below this part of their sizes is rounding
_DIGITS = 8.0  # how many times the last digit of a margin may be wrong by
_KEPT = 4096  # sets of hyperplanes whose bases are remembered


class Hold(NamedTuple):
    """Hyperplanes that a neuron slides on: an orthonormal basis of their normals, and how much of each a vector has."""

    which: Index
    basis: Array  # (d, rank)
    parts: Array  # (k, d): parts @ v are the coefficients, of least norm, of v within the span of the normals


@dataclass(frozen=True)
class Geometry:
    """What of a problem does not change: points, hyperplanes, loss."""

    problem: Problem

    @cached_property
    def faces(self) -> Surfaces:
        """Hyperplanes of the data."""
        return surfaces(self.problem.data, self.problem.net.slope)

    @cached_property
    def hash(self) -> npt.NDArray[np.int64]:
        """Coefficients of the form that tells rows of sides apart."""
        return np.random.default_rng(0).integers(-(2**62), 2**62, self.faces.m)

    @cached_property
    def gone(self) -> float:
        """Log |w| below which a neuron is left as it is: caught on a ray against the force, it shrinks for ever."""
        start = self.log_norms
        return float(start[np.isfinite(start)].min(initial=0.0)) - SHRUNK

    @cached_property
    def log_norms(self) -> Array:
        """Log sizes of the neurons at the start."""
        return self.problem.net.log_norms

    @cached_property
    def _holds(self) -> dict[bytes, Hold]:
        return {}

    def hold(self, which: Index) -> Hold:
        """Work out what sliding on some hyperplanes means; remembered, since events leave most neurons as they are."""
        key = which.tobytes()
        if key not in self._holds:
            if len(self._holds) >= _KEPT:
                self._holds.clear()
            columns = self.faces.normals[which].T
            u, s, vt = np.linalg.svd(columns, full_matrices=False)
            rank = int((s > ON * s[0]).sum())
            parts = (vt[:rank].T / s[:rank]) @ u[:, :rank].T
            self._holds[key] = Hold(which, np.ascontiguousarray(u[:, :rank]), parts)
        return self._holds[key]

    @property
    def X(self) -> Array:
        """Points."""
        return self.problem.data.X

    @property
    def y(self) -> Array:
        """Labels."""
        return self.problem.data.y

    @property
    def slope(self) -> float:
        """Slope of the activation."""
        return self.problem.net.slope

    @property
    def frozen(self) -> bool:
        """Whether the second layer does not move."""
        return self.problem.train == "first"

    def kinks(self, c: Array) -> Array:
        r"""Jump of the force across each hyperplane, along its normal, over 1 - slope: :math:`\sum_i c_i |x_i|`."""
        return np.bincount(self.faces.of, weights=c * self.problem.data.norms, minlength=self.faces.m).astype(
            np.float64
        )

    def slopes(self, sides: Signs) -> Array:
        """``h_i`` for rows of sides, shape (rows, n); on a hyperplane that of its negative side."""
        up = sides.take(self.faces.of, axis=1) > 0
        flipped = self.faces.orient < 0
        return np.where(up != flipped, 1.0, self.slope)


@dataclass(frozen=True)
class Pattern:
    """The sides on which the neurons lie, and the groups of equal ones.

    ``sides`` has one row a neuron and one column a hyperplane: -1, +1, or 0 where the neuron slides.
    """

    geometry: Geometry
    sides: Signs
    member: Index  # (p,) group of each neuron
    order: Index  # (p,) neurons by group ...
    starts: Index  # (G,) ... and where each group begins
    H: Array  # (G, n) slopes at the samples
    held: dict[int, Hold]  # group -> hyperplanes that it slides on

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.starts.size)

    @cached_property
    def live(self) -> npt.NDArray[np.bool_]:
        """Which samples some group feels."""
        return np.asarray((self.H != 0).any(axis=0))

    def first(self, g: int) -> int:
        """Return one neuron of the group."""
        return int(self.order[self.starts[g]])

    @cached_property
    def _bases(self) -> Array:
        """Bases of the sliding groups side by side, filled up with zeros: (groups that slide, d, largest rank)."""
        ranks = [hold.basis.shape[1] for hold in self.held.values()]
        out = np.zeros((len(ranks), self.geometry.X.shape[1], max(ranks)))
        for block, rank, hold in zip(out, ranks, self.held.values(), strict=True):
            block[:, :rank] = hold.basis
        return out

    @cached_property
    def _sliding(self) -> _Sliding:
        holds = list(self.held.values())
        sizes = np.array([hold.which.size for hold in holds])
        return _Sliding(
            np.array(list(self.held), dtype=np.intp),
            np.concatenate([hold.which for hold in holds]),
            np.repeat(np.arange(sizes.size), sizes),
            np.cumsum(sizes) - sizes,
            np.concatenate([hold.parts for hold in holds]),
        )

    def project(self, D: Array) -> Array:
        """Take out of the force on each sliding group what would lead away from its hyperplanes; in place."""
        if self.held:
            groups = self._sliding.groups
            D[groups] -= (self._bases @ (D[groups, None, :] @ self._bases).swapaxes(1, 2))[:, :, 0]
        return D

    def raw_forces(self, c: Array) -> Array:
        """Force on each group, held hyperplanes counted as on their negative side; shape (G, d)."""
        return np.asarray((self.H * c) @ self.geometry.X)

    def forces(self, c: Array) -> Array:
        """Force on each group, tangent to the hyperplanes it slides on; shape (G, d).

        Where the pulls cancel to the last digits there is none: at t = 10^16 their rounding would move a neuron.
        """
        D = self.project(self.raw_forces(c))
        mass = self.H @ (np.abs(c) * self.geometry.problem.data.norms)
        D[np.einsum("gd,gd->g", D, D) <= (_CANCELLED * mass) ** 2] = 0.0
        return D

    def total(self, rows: Array) -> Array:
        """Sum of the rows of each group."""
        return np.asarray(np.add.reduceat(rows[self.order], self.starts, axis=0))

    def margins(self, weighted: Array) -> Array:
        """``q_i`` from the rows ``a_j w_j`` of the neurons."""
        Z = self.geometry.X @ self.total(weighted).T
        return np.asarray(self.geometry.y * np.einsum("gn,ng->n", self.H, Z))

    def rooms(self, c: Array, edge: float) -> Array:
        """How much force keeps each sliding group on the hyperplane where it is least; negative where it must leave.

        In the order of ``held``. The slopes h that make the force tangent must lie in [slope, 1]; ``edge``, the part of
        all forces that may be rounding, is allowed for.
        """
        groups, faces, owner, starts, parts = self._sliding
        pulls = self.H[groups] * c
        raw, mass = pulls @ self.geometry.X, np.abs(pulls) @ self.geometry.problem.data.norms
        kinks = self.geometry.kinks(c)[faces]
        push, beyond = -np.einsum("kd,kd->k", parts, raw[owner]), np.zeros(groups.size)
        weak = np.abs(kinks) <= _WEAK * mass[owner]
        for g in np.unique(owner[weak]):
            mine = owner == g
            normals, strong = self.geometry.faces.normals[faces[mine]], ~weak[mine]
            push[mine] = 0.0
            push[mine & ~weak] = np.linalg.lstsq(normals[strong].T, -raw[g], rcond=None)[0]
            # Nothing could hold it where the pull is weak.
            beyond[g] = np.abs(normals[~strong] @ (raw[g] + push[mine] @ normals)).max()
        # push = (h - slope) kinks; towards the kink it must be, and not beyond (1 - slope) kinks.
        forward = np.sign(kinks) * push
        room = np.minimum(forward, (1 - self.geometry.slope) * np.abs(kinks) - forward)
        room[weak] = np.inf
        return np.asarray(np.minimum(np.minimum.reduceat(room, starts), -beyond) + 2 * edge * mass)


class _Sliding(NamedTuple):
    """The hyperplanes of all sliding groups in one row."""

    groups: Index  # (k,) the groups
    faces: Index  # (K,) their hyperplanes
    owner: Index  # (K,) to which of the k groups each belongs
    starts: Index  # (k,) where those of a group begin
    parts: Array  # (K, d) as in `Hold`


def edge_of(reach: float) -> float:
    """Return the part of the forces that may be rounding, where margins are sums of terms up to ``reach``.

    Margins are exponents: at log t = 10^9 their last digit changes a force by 10^-7.
    """
    return EDGE + _DIGITS * float(np.finfo(np.float64).eps) * reach


def make_pattern(geometry: Geometry, sides: Signs) -> Pattern:
    """Group the neurons by their sides."""
    # Rows are told apart by a random linear form modulo 2^64: equal rows agree, others by chance of 10^-19.
    with np.errstate(over="ignore"):
        _, member = np.unique(sides.astype(np.int64) @ geometry.hash, return_inverse=True)
    order = np.argsort(member, kind="stable")
    starts = np.searchsorted(member[order], np.arange(int(member.max()) + 1))
    shown = sides[order[starts]]
    slides = np.flatnonzero((shown == 0).any(axis=1))
    held = {int(g): geometry.hold(np.flatnonzero(shown[g] == 0)) for g in slides}
    return Pattern(geometry, sides, member, order, starts, geometry.slopes(shown), held)


@dataclass(frozen=True)
class Settled:
    """Where a neuron on hyperplanes goes: its new sides there, and whether it could go elsewhere too."""

    sides: Signs
    unique: bool


def settle(
    geometry: Geometry,
    sign: float,
    free: Array,
    on: Index,
    before: Signs,
    arriving: npt.NDArray[np.bool_],
    kinks: Array,
    mass: float,
    edge: float,
) -> Settled:
    """Find the velocity that the inclusion allows at a point on the hyperplanes ``on``.

    ``free`` is the force with all of them on their negative side, ``before`` the sides the neuron comes from (0: it
    slid, or starts there), ``arriving`` which it is about to cross, ``kinks`` the jumps of the force, ``mass`` the
    sum of the sizes of the forces in ``free``, and ``edge`` the part of it that may be rounding. Where sign * kink
    < 0 both sides may push inwards (valley): the velocity of least norm, a bounded least squares problem in the
    slopes. Where it is > 0 both may push outwards (ridge): a neuron that arrives crosses, one that starts there
    rests on the negative side if it can (the regular solution).
    """
    alpha, normals = geometry.slope, geometry.faces.normals[on]
    jump = sign * kinks * (1.0 - alpha)
    ridge, valley = jump > _WEAK * mass, jump < -_WEAK * mass
    part = np.where(np.where(arriving, -before, before) > 0, 1.0, 0.0)  # how far each is switched on, in [0, 1]
    velocity = sign * free
    seen: set[bytes] = set()
    for _ in range(4 + 2 * on.size):
        base = velocity + (part * jump * ridge) @ normals
        part[valley] = _least(base, normals[valley], jump[valley])
        now = base + (part * jump * valley) @ normals
        push = normals @ now
        wrong = ridge & np.where(part > 0, push < -edge * mass, push > edge * mass)
        if not wrong.any() or part.tobytes() in seen:
            break
        seen.add(part.tobytes())
        part[np.flatnonzero(wrong)[0]] = 1.0 - part[np.flatnonzero(wrong)[0]]
    other = ridge & ~arriving & (before == 0) & (part == 0) & (push + jump > edge * mass)
    # Off a ridge it goes where it is clearly pushed. Where the push may be rounding it is held: its normal velocity is
    # nothing then, and it would only cross to and fro.
    # (To leave, less is asked: `room` has seen to it, and with several hyperplanes the pushes shrink by their angles.)
    clear = np.where(before == 0, 0.01, 1.0) * edge * mass
    pushed = np.where(push > clear, 1, np.where(push < -clear, -1, 0))
    if mass < 1e-290:  # no other sample is felt: off the valley it rests
        pushed = np.full(on.size, -1)
    sides = np.where(ridge, np.where(part > 0, 1, -1), pushed).astype(np.int8)
    return Settled(sides, not bool(other.any()))


def _least(base: Array, normals: Array, jump: Array) -> Array:
    """Numbers in [0, 1] that make ``base + part * jump @ normals`` shortest."""
    if jump.size == 0:
        return np.empty(0)
    if jump.size == 1:
        return np.clip(-(normals @ base) / jump, 0.0, 1.0)
    from scipy.optimize import lsq_linear

    scale = np.abs(jump).max()
    A = (jump / scale)[:, None] * normals
    result = lsq_linear(A.T, -base / scale, bounds=(0.0, 1.0), method="bvls", tol=1e-15, max_iter=50 * jump.size)
    return np.asarray(result.x)
