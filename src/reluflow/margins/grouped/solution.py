"""The grouped program: the best margin of neurons whose activation patterns are given."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...problem import Dataset, Network, NotSeparable, ProblemError, Undecided, check_size, require_dataset
from ...problem.network import check_slope
from ...problem.types import Array, Flags, Index, Signs
from .polish import Polished, descend, polish
from .solve import Program, Start, interior, project_all

# A relative margin below this cannot be told from zero once every term carries its rounding.
_SMALLEST_LEVEL = 1e-11

# Norms that differ by more than two to this power are reached by following the solution there.
_EVEN_SPREAD = 6.0
_LARGEST_TOLERANCE = 1e-6  # beyond this a residual no longer tells a solution from another one
_DOUBTFUL = 1e-5  # level of the interior point below which there may be no solution: a proof is tried
_SHARP = 1e-13  # relative slack to which the polish decides what is violated
_PROVED = 1e-13  # relative force of weights that prove that there is no solution
_WEIGHTY = 1e-7  # multiplier, relative to the largest, from which an interior point means it
_TIGHT = 1e-10  # relative slack up to which a point is on the margin
_NOTHING = -(2.0**-20)  # need of a point that only bounds cones: less than nothing is always met
_CLEAR = 1e-9  # what decides about uniqueness must be clear by this


@dataclass(frozen=True)
class GroupedResiduals:
    """How well the optimality conditions hold, recomputed from the arrays returned.

    Each is relative: lengths to ``sum |v_G|``, angles to 1, sums to the size of their terms. The norms
    of the points do not enter.
    """

    primal: float
    cone: float
    dual: float
    stationarity: float
    complementarity: float
    gap: float

    @property
    def worst(self) -> float:
        """The largest of the six."""
        return max(self.primal, self.cone, self.dual, self.stationarity, self.complementarity, self.gap)


@dataclass(frozen=True, eq=False, repr=False)
class GroupedMargin:
    r"""Solution of `grouped_margin`, with what proves it.

    Attributes
    ----------
    v : ndarray of shape (G, d)
        :math:`v_G`, zero for the groups that are absent.
    norms : ndarray of shape (G,)
        :math:`|v_G|`.
    value : float
        :math:`\sum_G |v_G|`, the optimal value.
    margin : float
        ``1 / (2 value)``: the normalised margin :math:`q_{\min}/|\theta|^2` of `network`.
    multipliers : ndarray of shape (n,)
        :math:`\lambda_i \ge 0`; they sum to ``value``.
    cone_multipliers : ndarray of shape (G, n)
        :math:`M_{Gi}` with the sign of the pattern (free where it slides), such that
        :math:`v_G/|v_G| = C_G + \sum_i M_{Gi} x_i` for living groups and the right-hand side has
        norm at most 1 for absent ones; :math:`C_G = \sum_i \lambda_i s_G y_i h_{Gi} x_i`.
    dual_norms : ndarray of shape (G,)
        :math:`|C_G|`, without the cone.
    cone_dual_norms : ndarray of shape (G,)
        Length of the projection of :math:`C_G` onto the cone of the group, that is the largest growth
        rate :math:`u \cdot C_G` of a unit direction u allowed to it: 1 for a living group; below 1 an
        absent group decays like :math:`R^{|C_G|-1}`; at 1 the rate does not decide. Without a cone it
        is :math:`|C_G|`, up to sliding surfaces.
    living : ndarray of int
        Groups with :math:`v_G \ne 0`.
    active : ndarray of int
        Points whose margin is 1, up to 1e-10 of :math:`|x_i| \sum_G |v_G|`.
    unique : bool or None
        Whether v is the only solution. Directions always are; how much of it each group takes need not
        be (duplicated groups: shared equally). None: not decided.
    residuals : GroupedResiduals
    tolerance : float
        What ``residuals.worst`` was compared with.
    """

    v: Array
    norms: Array
    value: float
    margin: float
    multipliers: Array
    cone_multipliers: Array
    dual_norms: Array
    cone_dual_norms: Array
    living: Index
    active: Index
    unique: bool | None
    residuals: GroupedResiduals
    tolerance: float
    signs: Array
    slope: float

    @property
    def verified(self) -> bool:
        """Whether every optimality condition holds to ``tolerance``."""
        return self.residuals.worst <= self.tolerance

    @property
    def shares(self) -> Array:
        r""":math:`|v_G| / \sum_H |v_H|`: the part of the squared norm of the network in each group."""
        return self.norms / self.value

    def network(self) -> Network:
        r"""One neuron a living group: :math:`w = \sqrt{|v|}\, v/|v|`, :math:`a = s \sqrt{|v|}`.

        It realises the margins of the program when every group obeys its pattern, as it does with
        ``cones=True``.
        """
        root = np.sqrt(self.norms[self.living])
        return Network(self.v[self.living] / root[:, None], self.signs[self.living] * root, self.slope)

    def __repr__(self) -> str:
        state = "verified" if self.verified else "NOT verified"
        groups = f"{self.living.size} of {len(self.norms)} groups alive"
        return f"GroupedMargin: margin={self.margin:.10g}, {groups}, {self.active.size} points active, {state}"


def grouped_margin(
    data: Dataset,
    patterns: npt.ArrayLike,
    signs: npt.ArrayLike,
    slope: float = 0.0,
    *,
    cones: bool = True,
    fit: npt.ArrayLike | None = None,
    level: npt.ArrayLike | None = None,
    tolerance: float = 1e-12,
) -> GroupedMargin:
    r"""Solve the program of groups of neurons with given output signs and activation patterns.

    .. math::

        \min \sum_G |v_G| \quad\text{s.t.}\quad y_i \sum_G s_G h_{Gi}\, v_G \cdot x_i \ge 1,
        \qquad \sigma_{Gi}\, v_G \cdot x_i \ge 0 \ (= 0 \text{ where } \sigma_{Gi} = 0).

    :math:`v_G = \sum_{j \in G} |a_j| w_j` points where the neurons of the group point, :math:`s_G` is
    the sign of their output weights, :math:`\sigma_{Gi}` the sign of :math:`w_j \cdot x_i`, and
    :math:`h_{Gi}` is 1 or the slope accordingly. Among two-layer networks with these patterns the
    largest :math:`q_{\min}/|\theta|^2` is :math:`1/(2 \sum_G |v_G|)`.

    Solved by an interior point method, then by Newton's method on the active points, living groups and
    touched cone walls in long double, then verified from the arrays that are returned. Nothing depends on
    the scale of the data.

    Parameters
    ----------
    data : Dataset
    patterns : array_like of shape (G, n)
        :math:`\sigma_{Gi} \in \{-1, 0, 1\}`; 0 means that the group slides on :math:`x_i^\perp`.
    signs : array_like of shape (G,)
        :math:`s_G = \pm 1`.
    slope : float
        Slope of the activation, in [0, 1].
    cones : bool
        Without cones a group may leave its pattern; the equalities where it slides stay.
    fit : array_like of bool, shape (n,), optional
        Points that are to be classified; the others only bound the cones, and no group may be active there. Default:
        all of them.
    level : array_like of bool, shape (n,), optional
        Points whose margin need only not be negative, instead of at least 1; groups may be active there. Default: none.
    tolerance : float
        Largest residual with which the answer is given.

    Returns
    -------
    GroupedMargin

    Raises
    ------
    NotSeparable
        No such network classifies every point. ``certificate`` holds convex weights :math:`\lambda`
        for which the projection of every :math:`C_G` onto its cone vanishes, so that
        :math:`\sum_i \lambda_i q_i \le 0` for every network of this kind; ``residual`` is the largest such
        projection relative to :math:`\sum_i \lambda_i |x_i|`.
    Undecided
        Neither could be verified; ``partial`` holds the best solution found, or the start.

    Examples
    --------
    Orthogonally separable points with one group a class: the max-margin vector of each class.

    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> best = grouped_margin(data, [[1, 1, -1, -1], [-1, -1, 1, 1]], [1, -1])
    >>> best.v.round(10)
    array([[ 0.33333333,  0.33333333],
           [-0.23076923, -0.30769231]])
    >>> round(best.value, 10), best.verified
    (0.8560199054, True)
    >>> round(best.network().normalized_margin(data), 10) == round(best.margin, 10)
    True
    """
    slope = check_slope(slope)
    side, sign = _check_groups(data, patterns, signs)
    if not (0.0 < tolerance <= _LARGEST_TOLERANCE):
        raise ProblemError(f"tolerance = {tolerance!r} must lie in (0, 1e-6]; 1e-12 is what is usually reached.")
    counts, flat = _check_fit(fit, level, side, slope)
    if cones:
        _refuse_unreachable(data, side, sign, slope, counts)
    keys, member, copies = np.unique(
        np.column_stack([sign.astype(np.int8), side]), axis=0, return_inverse=True, return_counts=True
    )
    power = np.rint(np.log2(data.norms)).astype(np.int64)
    program = _scaled(data, keys[:, 1:], keys[:, 0].astype(np.float64), slope, cones, power, counts, flat)
    # Whether there is a solution does not depend on the norms of the points; its size does.
    even = min(1.0, _EVEN_SPREAD / max(float(np.ptp(power)), 1.0))
    gentle = replace(program, need=np.copysign(np.abs(program.need) ** even, program.need))
    start = interior(gentle)
    if start.level < _DOUBTFUL:
        _refuse_impossible(data, gentle, start, power)
    if start.level < _SMALLEST_LEVEL:
        raise Undecided(
            f"the largest margin of these groups is {start.level:.1e} of the size of the data: neither a solution nor "
            "a proof that there is none could be verified.",
            start,
        )
    sharp = min(_SHARP, tolerance / 4)
    answer = polish(gentle, start, sharp)
    if even < 1.0:
        answer = descend(program, answer, sharp)
    if not (answer.t > 0).any():
        raise Undecided("no active set could be found for the grouped program; the start is attached.", start)
    out = _assemble(data, program, answer, power, member.ravel(), copies, sign, slope, tolerance)
    if not out.verified:
        raise Undecided(
            f"the grouped program was solved only to {out.residuals.worst:.1e}, not to {tolerance:g} "
            f"({out.residuals}). What was found is attached; a larger tolerance accepts it.",
            out,
        )
    return out


def _check_groups(data: Dataset, patterns: npt.ArrayLike, signs: npt.ArrayLike) -> tuple[Signs, Array]:
    require_dataset(data)
    side, sign = np.asarray(patterns), np.asarray(signs)
    if side.ndim != 2 or side.shape[0] == 0 or side.shape[1] != data.n:
        raise ProblemError(f"patterns has shape {side.shape}; one row a group and {data.n} columns are needed.")
    if side.dtype.kind not in "iuf" or not np.isin(side, (-1, 0, 1)).all():
        raise ProblemError("patterns may hold -1, 0 and +1 only: the signs of w . x_i in each group.")
    if sign.shape != (side.shape[0],) or sign.dtype.kind not in "iuf" or not np.isin(sign, (-1, 1)).all():
        raise ProblemError(f"signs must be {side.shape[0]} numbers, each -1 or +1, one a group; got {signs!r}.")
    check_size("the cone multipliers", *side.shape, error=ProblemError)
    return side.astype(np.int8), sign.astype(np.float64)


def _check_fit(
    fit: npt.ArrayLike | None, level: npt.ArrayLike | None, side: Signs, slope: float
) -> tuple[Flags, Flags]:
    """Which points are to be classified, and which are only not to be lost."""
    n = side.shape[1]
    flat = np.zeros(n, dtype=bool) if level is None else np.asarray(level)
    counts = np.ones(n, dtype=bool) if fit is None else np.asarray(fit)
    for name, given in (("fit", counts), ("level", flat)):
        if given.shape != (n,) or given.dtype != bool:
            raise ProblemError(f"{name} must be {n} truth values, one a point.")
    counts = counts & ~flat
    if not counts.any():
        raise ProblemError(f"fit must be {n} truth values, of which one at least is true that is not level.")
    felt = ((side > 0) | ((side < 0) & (slope > 0))).any(axis=0)
    if (felt & ~counts & ~flat).any():
        point = int(np.flatnonzero(felt & ~counts & ~flat)[0])
        raise ProblemError(f"point {point} is not to be classified, but a group is active there; none may be.")
    return counts, flat


def _refuse_unreachable(data: Dataset, side: Signs, sign: Array, slope: float, counts: Flags) -> None:
    """Look for a point which every group pushes the wrong way, or not at all: a proof by itself."""
    helps = (sign[:, None] * data.y * side > 0) & ((side > 0) | (slope > 0))
    lost = np.flatnonzero(~helps.any(axis=0) & counts)
    if lost.size:
        weights = np.zeros(data.n)
        weights[lost[0]] = 1.0
        raise NotSeparable(
            f"no group can classify point {lost[0]} (label {data.y[lost[0]]:+.0f}; {lost.size} such point(s) in all): "
            "each is inactive there or pushes the other way. Add a group whose sign times pattern is the label there.",
            weights,
            0.0,
        )


def _scaled(
    data: Dataset,
    side: Signs,
    sign: Array,
    slope: float,
    cones: bool,
    power: npt.NDArray[np.int64],
    counts: Flags,
    flat: Flags,
) -> Program:
    # Powers of two, so that the program is that of the data given and not of rounded ones.
    rows = np.ldexp(data.X, -power[:, None])
    need = np.ldexp(np.where(counts, 1.0, np.where(flat, 0.0, _NOTHING)), power.min() - power)
    h = np.where(side > 0, 1.0, np.where(side < 0, slope, 0.0))
    return Program(rows, need, sign[:, None] * data.y * h, side, cones)


def _refuse_impossible(data: Dataset, program: Program, start: Start, power: npt.NDArray[np.int64]) -> None:
    """Try to turn the start into a proof that there is no solution."""
    lam = _farkas(program, start)
    if lam is None:
        return
    everything, empty = np.arange(data.n), np.empty(0, dtype=np.intp)
    shadows = project_all(program, lam, everything, [empty] * program.groups)
    residual = max(s.norm for s in shadows) / float(lam @ np.linalg.norm(program.rows, axis=1))
    if residual <= _PROVED:
        weights = np.ldexp(lam, power.min() - power)
        raise NotSeparable(
            "no network made of these groups classifies every point: the weighted sum of margins given by the "
            "certificate is never positive. Add groups, or drop the points that carry the weight.",
            weights / weights.sum(),
            residual,
        )


def _farkas(program: Program, start: Start) -> Array | None:
    """Non-negative weights whose force lies in the polar of every cone, by least squares on the support."""
    from scipy.optimize import nnls

    n, d = program.rows.shape
    heavy = np.flatnonzero(start.lam > _WEIGHTY * start.lam.max(initial=0.0))
    shadows = project_all(program, start.lam, np.arange(n), [np.empty(0, dtype=np.intp)] * program.groups)
    blocks = [(program.gain[:, heavy, None] * program.rows[heavy]).transpose(0, 2, 1).reshape(-1, heavy.size)]
    for g, shadow in enumerate(shadows):
        free = shadow.tight[: program.fixed[g].size]
        push = np.hstack([program.rows[free].T, -program.rows[free].T])
        tight = shadow.tight[program.fixed[g].size :]
        push = np.hstack([push, (program.side[g, tight, None] * program.rows[tight]).T])
        block = np.zeros((program.groups * d, push.shape[1]))
        block[g * d : (g + 1) * d] = push
        blocks.append(block)
    E = np.vstack([np.hstack(blocks), np.zeros((1, sum(b.shape[1] for b in blocks)))])
    E[-1, : heavy.size] = 1.0
    f = np.zeros(E.shape[0])
    f[-1] = 1.0
    try:
        u, _ = nnls(E, f, maxiter=50 * E.shape[1])
    except RuntimeError:
        return None
    used = u > 0
    sharp = np.linalg.lstsq(E[:, used], f, rcond=None)[0]
    if not heavy.size or sharp.min(initial=0.0) < 0:
        sharp = u[used]
    u[used] = sharp
    lam = np.zeros(n)
    lam[heavy] = u[: heavy.size]
    total = float(lam.sum())
    return lam / total if total > 0 else None


def _assemble(
    data: Dataset,
    program: Program,
    answer: Polished,
    power: npt.NDArray[np.int64],
    member: Index,
    copies: Index,
    sign: Array,
    slope: float,
    tolerance: float,
) -> GroupedMargin:
    """Verify in scaled units, go back to the units of the data, and share v among equal groups."""
    n, low = data.n, int(power.min())
    v = np.stack([(t * s.point).astype(np.float64) for t, s in zip(answer.t, answer.shadows, strict=True)])
    lam = answer.lam.astype(np.float64)
    pull = np.zeros((program.groups, n))
    for g, shadow in enumerate(answer.shadows):
        pull[g, shadow.tight] = shadow.pull.astype(np.float64)
    residuals, slack = _residuals(program, v, lam, pull)
    force = (program.gain * lam) @ program.rows
    size = float(np.linalg.norm(v, axis=1).sum())
    share = v[member] / copies[member][:, None]
    norms = np.ldexp(np.linalg.norm(share, axis=1), -low)
    value = float(np.ldexp(size, -low))
    return GroupedMargin(
        v=np.ldexp(share, -low),
        norms=norms,
        value=value,
        margin=0.5 / value,
        multipliers=np.ldexp(lam, -power),
        cone_multipliers=np.ldexp(pull, -power)[member],
        dual_norms=np.linalg.norm(force, axis=1)[member],
        cone_dual_norms=np.array([s.norm for s in answer.shadows])[member],
        living=np.flatnonzero(norms > 0),
        active=np.flatnonzero(slack <= _TIGHT),
        unique=_unique(program, answer, slack, copies) if answer.exact else None,
        residuals=residuals,
        tolerance=tolerance,
        signs=sign,
        slope=slope,
    )


def _residuals(program: Program, v: Array, lam: Array, pull: Array) -> tuple[GroupedResiduals, Array]:
    norms = np.linalg.norm(v, axis=1)
    live, size = np.flatnonzero(norms > 0), float(norms.sum())
    rows, wide = program.rows, v[live].astype(np.longdouble)
    reach = wide @ rows.T.astype(np.longdouble)  # (L, n), v_G . x_i
    slack = ((program.gain[live] * reach).sum(axis=0) - program.need).astype(np.float64)
    side = program.side[live]
    inside = np.where(side == 0, -np.abs(reach), side * reach if program.walls else np.abs(reach)) / norms[live, None]
    lengths, terms_of = np.linalg.norm(rows, axis=1), program.terms(norms)
    terms = np.maximum(1.0, np.abs(program.gain * lam) @ lengths + np.abs(pull) @ lengths)
    weight = (program.gain * lam + pull).astype(np.longdouble)
    total = (
        weight @ rows.astype(np.longdouble) if weight.size * rows.shape[1] < 2e8 else weight.astype(np.float64) @ rows
    )
    off = np.linalg.norm((total[live] - wide / norms[live, None]).astype(np.float64), axis=1) / terms[live]
    too_long = (np.linalg.norm(total.astype(np.float64), axis=1) - 1.0) / terms
    wrong = -np.where(program.side == 0, 0.0, program.side * pull).min(initial=0.0)
    return (
        GroupedResiduals(
            primal=float(max(0.0, -(slack / terms_of).min())),
            cone=float(max(0.0, -inside.min(initial=0.0))),
            dual=float(max(0.0, too_long.max(), wrong, -lam.min() / lam.sum())),
            stationarity=float(off.max(initial=0.0)),
            complementarity=float(np.minimum(lam * lengths, np.abs(slack / terms_of)).max()),
            gap=float(abs(size - program.need @ lam) / (size + lam @ terms_of)),
        ),
        slack / terms_of,
    )


def _unique(program: Program, answer: Polished, slack: Array, copies: Index) -> bool | None:
    """Directions are unique; amplitudes are when the groups that may live act independently on tight points."""
    may = np.flatnonzero([s.norm > 1.0 - _CLEAR for s in answer.shadows])
    must = np.flatnonzero(answer.lam > _CLEAR * answer.lam.sum())
    if (copies[answer.t > 0] > 1).any():
        return False
    u = np.stack([answer.shadows[g].point.astype(np.float64) for g in may])
    effect = program.gain[np.ix_(may, must)] * (u @ program.rows[must].T)
    s = np.linalg.svd(effect, compute_uv=False)
    rank = int(np.count_nonzero(s > _CLEAR * s[0]))
    if rank == may.size:
        return True
    loose = np.delete(slack, must)
    if (answer.t[may] > _CLEAR * answer.t.sum()).all() and loose.min(initial=1.0) > _CLEAR:
        return False
    return None
