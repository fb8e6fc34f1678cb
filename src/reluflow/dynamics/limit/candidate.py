r"""The limit that the patterns of a state lead to, if they stay as they are.

Both layers: :math:`\min \sum_G |v_G|` with the cone of each pattern, over the groups that carry the network. What
becomes of the neurons left out is another question (`future`). Where the program leaves the shares of the groups
open, they are the nearest to those of the flow.
First layer alone: within a group :math:`w_j = a_j u_G`, and :math:`(\sqrt{A_G} u_G)_G`, :math:`A_G = \sum_j a_j^2`,
solves a hard-margin problem.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from ...margins import KKT, GroupedMargin, grouped_margin, hard_margin, kkt
from ...problem import Dataset, Network, NotSeparable, Stopped, Undecided
from ...problem.types import Array, Flags, Index, Signs
from ...sectors import exact_signs
from ..flow.balance import Level, level
from ..flow.field import Geometry
from ..flow.phases import FITTED
from ..flow.state import State, moving, pattern_of

_CARRIES = 1e-3  # share of |theta|^2 from which a group is taken to carry the network
WALL = 1e-9  #: |cos| below this is on a hyperplane
_SAME = 1e-9  # margins that differ by less, relatively, are equal
_RANK = 1e-9  # singular values below this, of rows of length one, are 0
_MET = 1e-12  # a least-distance problem whose residual is below this has its wish
_TIGHT = 1e-9  # dual norms this near to 1 allow a group to live; multipliers below this part of the largest are 0


@dataclass(frozen=True, eq=False)
class LimitGroup:
    """Neurons that end in one direction.

    Attributes
    ----------
    sign : int
        Of their output weights (0 for a frozen second layer with several sizes: see ``neurons``).
    pattern : ndarray of int8, shape (n,)
        Signs of ``w . x_i`` in the limit; 0 where the group slides.
    neurons : ndarray of int
        Members, as far as they are in this pattern at the end of the integration.
    direction : ndarray, shape (d,)
        Limit of ``w_j / |w_j|`` (zero for a group that vanishes).
    share : float
        Part of the squared norm of the trained parameters in the limit.
    rate : float
        Length of the dual vector within the cone of the group: 1 for one that stays, below 1 for one that decays like
        ``R^(rate - 1)``; nan for a frozen second layer.
    flow_share : float
        The share at the end of the integration.
    """

    sign: int
    pattern: Signs
    neurons: Index
    direction: Array
    share: float
    rate: float
    flow_share: float


class Touching(NamedTuple):
    """How many groups touch a wall beyond which another network is best, and one beyond which the best is the same."""

    walls: int
    grazing: int


@dataclass(frozen=True, eq=False)
class Candidate:
    """What the present patterns would lead to."""

    network: Network  # of unit norm, one neuron a living group
    margin: float
    groups: tuple[LimitGroup, ...]
    certificate: KKT | None  # where no lost point pushes: such a push is beyond any multiplier
    residual: float  # of the program: its conditions have the pushes of lost points too
    unique: bool  # whether the shares of the groups are determined
    touch: Callable[[], Touching]  # works out which groups touch walls: a program for each of those
    live: Index  # samples that some group feels, and which are fitted in the end
    multipliers: Array  # (n,) how strongly samples pull when living groups grow with rate 1; empty for a frozen layer
    free: bool = False  # whether other multipliers would do as well
    held: Flags | None = None  # (groups, n): which groups lean on lost points, which push them out; None: none does
    still: Level | None = None  # samples that rest in balance meanwhile

    @cached_property
    def touching(self) -> Touching:
        """Groups that touch a wall of their cone on which they do not slide."""
        return self.touch()

    def lost(self, n: int) -> Index:
        """Return which of n samples no group feels."""
        felt = self.live if self.still is None else np.union1d(self.live, self.still.points)
        return np.setdiff1d(np.arange(n), felt)

    @property
    def living_groups(self) -> tuple[LimitGroup, ...]:
        """Groups that carry the limit."""
        return tuple(group for group in self.groups if group.share > 0)

    @property
    def living(self) -> Index:
        """Neurons of the groups that carry the limit."""
        members = [group.neurons for group in self.living_groups]
        return np.sort(np.concatenate(members)) if members else np.empty(0, dtype=np.intp)


class Crowd(NamedTuple):
    """Neurons with equal signs and sides: who they are, their sign and sides, and what part of R they have."""

    members: list[Index]
    signs: Array
    sides: Signs
    shares: Array


class PresentGroups(NamedTuple):
    """The groups there are: the data, samples they fit, patterns on all, signs, members, shares of R ..."""

    data: Dataset
    live: Index
    patterns: Signs
    signs: Array
    members: list[Index]
    shares: Array
    carry: Index  # those that carry the network, the largest first
    still: Level | None  # samples in balance


class Lost(NamedTuple):
    """Points that no neuron feels, on the hyperplane of one of which a group slides, with a frozen second layer."""

    points: Index
    carriers: Index  # the neurons that carry the network


def crowds(geometry: Geometry, state: State) -> Crowd:
    """Group the neurons that move."""
    keys: dict[tuple[int, bytes], list[int]] = {}
    for j in np.flatnonzero(moving(geometry, state, pattern_of(geometry, state)) & (state.sign != 0)):
        keys.setdefault((int(state.sign[j]), state.sides[j].tobytes()), []).append(int(j))
    members = [np.array(js) for js in keys.values()]
    first = np.array([js[0] for js in members], dtype=np.intp)
    parts = state.log_w if geometry.frozen else np.logaddexp(2 * state.log_w, 2 * state.log_a) / 2
    log_size = np.array([np.logaddexp.reduce(2 * parts[js]) for js in members])
    shares = np.exp(log_size - np.logaddexp.reduce(2 * parts[np.isfinite(parts)]))
    return Crowd(members, state.sign[first], state.sides[first], shares)


def candidate(geometry: Geometry, state: State, coming: Collection[int] = ()) -> Candidate | Lost | str:
    """Solve the program of the present patterns; a sentence where it has no solution.

    Groups with one of the neurons ``coming``, known to outgrow the network, carry it however small they are.
    """
    whole = pattern_of(geometry, state)
    members, signs, rows, shares = crowds(geometry, state)
    patterns = geometry.faces.pattern(rows)
    feels = geometry.slopes(rows) != 0
    live = np.flatnonzero(feels.any(axis=0))
    if live.size == 0:
        return "no neuron feels any sample"
    data = geometry.problem.data
    lost = np.setdiff1d(np.arange(data.n), live)
    still = level(geometry, state) if whole.margins(state.weighted())[live].min() <= FITTED else None
    if still is not None:
        live = np.setdiff1d(live, still.points)
        if geometry.frozen:
            return f"{still.points.size} points rest in balance, which is not decided for a frozen second layer"
    counts = (shares >= _CARRIES) | np.array([np.isin(js, list(coming)).any() for js in members])
    if still is not None:  # those that keep points in balance count too: they hold them
        counts |= feels[:, still.points].any(axis=1)
    carry = np.array([g for g in np.argsort(-shares) if counts[g]], dtype=np.intp)
    groups = PresentGroups(data, live, patterns, signs, members, shares, carry, still)
    if geometry.frozen and (patterns[carry][:, lost] == 0).any():
        return Lost(lost, np.concatenate([members[g] for g in carry]))
    try:
        if geometry.frozen:
            return _first_layer(geometry, state, groups)
        try:
            return _both_layers(geometry.slope, groups)
        except NotSeparable:  # a point may be classified by a group that is smaller still
            return _both_layers(geometry.slope, groups._replace(carry=np.argsort(-shares)))
    except NotSeparable as exc:
        return f"no network with these patterns classifies every point: {exc}"
    except Stopped:
        raise
    except Undecided as exc:
        return f"the program of these patterns was not solved: {exc}"


def _both_layers(slope: float, present: PresentGroups) -> Candidate | str:
    r"""Solve the program of a network with both layers trained.

    A lost point pulls at a group that sees it infinitely more strongly than all others: one that would unlearn it
    slides on its hyperplane, or stays behind, :math:`v_G \cdot x \le 0`. One that would learn it is not held.
    """
    data, live, patterns, signs, members, shares, carry, still = present
    fit, flat = np.isin(np.arange(data.n), live), np.zeros(data.n, dtype=bool)
    if still is not None:
        # Their pulls add up to nothing, so that margins which are not negative are 0.
        flat[still.points] = True
    here = np.where(fit | flat, patterns, -1).astype(np.int8)
    found = grouped_margin(data, here[carry], signs[carry], slope, cones=slope < 1, fit=fit, level=flat)
    pushed = ~(fit | flat) & (np.abs(found.cone_multipliers) * data.norms > _TIGHT)
    if (pushed & (signs[carry, None] * data.y > 0)).any():
        return "a group is about to see a point that no neuron feels"
    u, norms = _directions(found, data, here[carry], signs[carry], slope), found.norms
    if found.unique is not True:
        norms = _nearest(found, data, u, here[carry], slope, shares[carry], fit, flat)
    v = np.zeros((len(members), data.d))
    v[carry] = norms[:, None] * u
    size = np.linalg.norm(v, axis=1)
    living = [g for g in carry if size[g] > 0]
    root = np.sqrt(size[living])
    network = Network(v[living] / root[:, None], signs[living] * root, slope).normalized()
    rates = np.full(len(members), np.nan)
    rates[carry] = found.cone_dual_norms
    groups = tuple(
        LimitGroup(
            int(signs[g]),
            patterns[g],
            members[g],
            v[g] / size[g] if size[g] > 0 else np.zeros(data.d),
            float(size[g] / found.value),
            float(rates[g]),
            float(shares[g]),
        )
        for g in range(len(members))
    )
    held = np.zeros((len(members), data.n), dtype=bool)
    held[carry] = pushed & (size[carry] > 0)[:, None]
    certificate = None if held.any() or flat.any() else kkt(data.subset(live), network)

    def touch() -> Touching:
        if slope == 1:
            return Touching(0, 0)
        return _walls(data, v[carry], here[carry], signs[carry], slope, found.margin, fit, flat)

    slides = np.where(held[carry], 0, here[carry])
    return Candidate(
        network,
        found.margin,
        groups,
        certificate,
        found.residuals.worst,
        found.unique is True,
        touch,
        live,
        found.multipliers,
        _free(data, found, slides, slope, flat),
        held,
        still,
    )


def _directions(found: GroupedMargin, data: Dataset, pattern: Signs, signs: Array, slope: float) -> Array:
    """Return unit vectors along which the groups lie, also those that the solution found leaves out."""
    h = np.where(pattern > 0, 1.0, slope)
    u = (signs[:, None] * data.y * found.multipliers * h + found.cone_multipliers) @ data.X
    alive = found.norms > 0
    u[alive] = found.v[alive]
    size = np.linalg.norm(u, axis=1)
    return np.asarray(u / np.where(size > 0, size, 1.0)[:, None])


def _nearest(
    found: GroupedMargin, data: Dataset, u: Array, pattern: Signs, slope: float, shares: Array, fit: Flags, flat: Flags
) -> Array:
    """Sizes of the groups that solve the program and are nearest to those of the flow.

    With the multipliers given a solution is a choice of sizes along known directions, of the groups that the dual
    allows: those for which every margin is at least 1, and 1 where the multiplier is not 0. The nearest one is a
    least-distance problem (Lawson and Hanson).
    """
    from scipy.linalg import null_space
    from scipy.optimize import nnls

    tight = np.flatnonzero(found.cone_dual_norms > 1 - _TIGHT)
    h = np.where(pattern[tight] > 0, 1.0, slope)
    gains = (found.signs[tight, None] * h * (u[tight] @ data.X.T) * data.y).T  # margins by unit size
    held = (found.multipliers > _TIGHT * found.multipliers.max()) | flat
    loose = ~held & fit
    t = found.norms[tight]
    N = null_space(gains[held], rcond=_RANK)
    if N.shape[1] == 0:
        return found.norms
    wanted = N.T @ (shares[tight] / shares[tight].sum() * found.value - t)
    A = np.vstack([N, gains[loose] @ N])
    b = np.concatenate([-t, 1.0 - gains[loose] @ t]) - A @ wanted
    E, f = np.vstack([A.T, b]), np.append(np.zeros(N.shape[1]), 1.0)
    weights, _ = nnls(E, f, maxiter=50 * E.shape[1])
    r = E @ weights - f
    z = wanted if abs(r[-1]) < _MET else wanted - r[:-1] / r[-1]
    out = found.norms.copy()
    out[tight] = np.maximum(t + N @ z, 0.0)
    return out


def _touched(data: Dataset, v: Array, pattern: Signs) -> Flags:
    """Which living groups lie on which hyperplanes on which they do not slide."""
    norms = np.linalg.norm(v, axis=1)
    cosine = np.abs(v @ data.X.T) / (np.where(norms > 0, norms, 1.0)[:, None] * data.norms)
    return np.asarray((cosine < WALL) & (pattern != 0) & (norms > 0)[:, None])


def _walls(
    data: Dataset, v: Array, pattern: Signs, signs: Array, slope: float, margin: float, fit: Flags, flat: Flags
) -> Touching:
    """Count the groups that touch a wall.

    A group that ends on a wall may go on from either side. Where the best network with the patterns beyond it has no
    larger margin, this network is the best there too, and it does not matter.
    """
    touched = _touched(data, v, pattern) & (fit | flat)
    if slope == 0:
        for g in np.flatnonzero(touched.any(axis=1)):
            touched[g, touched[g]] = ~keeps_apart(data, pattern[g], np.flatnonzero(touched[g]))
    walls = grazing = 0
    for g in np.flatnonzero(touched.any(axis=1)):
        beyond = pattern.copy()
        beyond[g] = np.where(touched[g], -pattern[g], pattern[g])
        try:
            better = grouped_margin(data, beyond, signs, slope, fit=fit, level=flat).margin > margin * (1 + _SAME)
        except (NotSeparable, Undecided) as exc:
            if isinstance(exc, Stopped):
                raise
            better = True
        walls, grazing = walls + better, grazing + (not better)
    return Touching(walls, grazing)


def keeps_apart(data: Dataset, pattern: Signs, points: Index) -> Flags:
    """Which points, not seen by a ReLU group, are exactly orthogonal to all that it sees.

    However far it grows its product with such a point stays the same, so that it never comes to see it.
    """
    seen = exact_signs(data.X[points], data.X[pattern > 0])
    return np.asarray((pattern[points] < 0) & ~seen.any(axis=1))


def _within(X: Array, held: Array) -> Array:
    """Project points onto the intersection of some hyperplanes, of which several may be the same."""
    if not held.size:
        return X
    basis, size, _ = np.linalg.svd((held / np.linalg.norm(held, axis=1)[:, None]).T, full_matrices=False)
    basis = basis[:, size > _RANK]
    return np.asarray(X - (X @ basis) @ basis.T)


def _free(data: Dataset, found: GroupedMargin, pattern: Signs, slope: float, flat: Flags) -> bool:
    """Whether the multipliers are not unique: what the active samples do to the living groups is linearly dependent.

    Those of samples in balance never are, which does not matter: what is left open has no effect.
    """
    rows = []
    for g in found.living:
        X = _within(data.X[found.active], data.X[pattern[g] == 0])
        h = np.where(pattern[g, found.active] > 0, 1.0, slope)
        rows.append(h[:, None] * X / data.norms[found.active, None])
    effect, still = np.hstack(rows), flat[found.active]
    rank = int(np.linalg.matrix_rank(effect, tol=_RANK))
    rest = int(np.linalg.matrix_rank(effect[still], tol=_RANK)) if still.any() else 0
    return rank - rest < int((~still).sum())


def _first_layer(geometry: Geometry, state: State, present: PresentGroups) -> Candidate | str:
    _, live, patterns, signs, members, shares, _, _ = present
    data, here = present.data.subset(live), patterns[:, live]
    h = np.where(here > 0, 1.0, np.where(here < 0, geometry.slope, 0.0))
    unit = float(max(state.log_a[js].max() for js in members))  # the frozen weights in units of the largest
    mass = np.array([np.exp(np.logaddexp.reduce(2 * (state.log_a[js] - unit))) for js in members])
    blocks = []
    for g in range(len(members)):
        X = _within(data.X, data.X[here[g] == 0])
        blocks.append(np.sqrt(mass[g]) * h[g][:, None] * data.y[:, None] * X)
    found = hard_margin(np.hstack(blocks))
    u = signs[:, None] * found.w.reshape(len(members), data.d) / np.sqrt(mass)[:, None]  # w_j = |a_j| u_G
    W = np.zeros_like(state.U)
    with np.errstate(under="ignore", over="ignore"):
        out = state.sign * np.exp(np.minimum(state.log_a - unit, 0.0))
    for g, js in enumerate(members):
        W[js] = np.abs(out[js])[:, None] * u[g]
    everyone = np.concatenate(members)
    network = Network(W[everyone], out[everyone], geometry.slope, log_scale_out=unit).normalized("first")
    size = np.linalg.norm(u, axis=1)
    if geometry.slope < 1 and ((u @ data.X.T) * here < -WALL * size[:, None] * data.norms).any():
        return "the best network with these patterns does not obey them: they will change"
    part = mass * size**2
    groups = tuple(
        LimitGroup(
            int(signs[g]),
            patterns[g],
            members[g],
            u[g] / size[g] if size[g] > 0 else np.zeros(data.d),
            float(part[g] / part.sum()),
            np.nan,
            float(shares[g]),
        )
        for g in range(len(members))
    )
    margin = network.normalized_margin(data, "first")
    walls = int(_touched(data, u, here).any(axis=1).sum()) if geometry.slope < 1 else 0
    certificate = kkt(data, network, "first")
    touch = partial(Touching, walls, 0)
    return Candidate(network, margin, groups, certificate, certificate.residual, True, touch, live, np.empty(0))
