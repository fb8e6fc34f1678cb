r"""The three cones that trap neurons, and the cone that drives them there (ML-D1, ML-K).

S+     = {z : x_i.z > 0 on the positive class, <= 0 on the negative one}      S- the same with classes exchanged
S_dead = {z : x_i.z <= 0 for all i}                                           K = cone of the y_i x_i
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..problem import Dataset, ProblemError, Undecided, check_time, require_dataset
from ..problem.precision import EPS
from ..problem.types import Array, Flags, Integers
from .exact import as_integers, independent, product_error, project_out, unit_float
from .patterns import exact_dot, exact_signs, gram_signs, power_scaled, sector

#: Most entries of X that are written as integers.
_ENTRIES = 2_000_000
_NEARLY_ON = 1e-7  # cosine below which a vector found in floating point is put on the hyperplane exactly
_CANCELS = 1e-8  # relative sum of weighted points that a correction of the weights may remove
_NOTHING = 1e-290  # what the sum of products that underflow may amount to, for each point
_FLAT = 1e-9  # singular value of unit points below which they may fail to span the space; integers decide
_VANISHES = 1e-10  # length of a convex combination of unit points that counts as 0; what follows is proved apart
_ROUNDED_UP = 1 + 1e-9  # more than the rounding of the bound in which it is a factor
_SATISFIED = 1e-9  # how much an inequality `u.z <= -1` may be missed and count as met, or a total be positive


@dataclass(frozen=True, eq=False)
class Cones:
    """Which of the cones vectors belong to, decided exactly; each field has one entry a vector.

    Attributes
    ----------
    plus, minus, dead : ndarray of bool
        Membership in S+, S- and S_dead. With one class alone the cone of the other one equals S_dead.
    """

    plus: Flags
    minus: Flags
    dead: Flags

    def own(self, positive: npt.ArrayLike) -> Flags:
        """Vectors in the cone of their output sign: S+ where ``positive``, S- elsewhere."""
        return np.where(positive, self.plus, self.minus)

    @property
    def none(self) -> Flags:
        """Vectors in none of the three."""
        return ~(self.plus | self.minus | self.dead)


def cones_of(data: Dataset, w: npt.ArrayLike) -> Cones:
    r"""Membership of vectors in :math:`S_+`, :math:`S_-` and :math:`S_\mathrm{dead}` (ML-D1).

    Parameters
    ----------
    data : Dataset
    w : array_like of shape (d,) or (m, d)

    Examples
    --------
    >>> data = Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1])
    >>> cones = cones_of(data, [[1, 1], [0, 1], [-1, 2], [-1, -1]])
    >>> cones.plus, cones.minus, cones.dead
    (array([ True, False, False, False]), array([False, False,  True, False]), array([False, False, False,  True]))
    """
    require_dataset(data)
    return cones_of_patterns(data.y, sector(data, w) > 0)


def cones_of_patterns(y: npt.ArrayLike, active: npt.ArrayLike) -> Cones:
    r"""Membership in the cones of vectors of which is known where they are active (ML-D1).

    For vectors whose signs come from elsewhere: a path of which they are known, or inner products beyond a tolerance.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels.
    active : array_like of bool, shape (..., n)
        Whether :math:`x_i \cdot w > 0`, one row a vector.

    Examples
    --------
    >>> cones = cones_of_patterns([1, 1, -1], [[True, True, False], [True, False, False], [False, False, False]])
    >>> cones.plus, cones.dead, cones.none
    (array([ True, False, False]), array([False, False,  True]), array([False,  True, False]))
    """
    on, positive = np.asarray(active, dtype=bool), np.asarray(y) > 0
    return Cones(
        np.asarray((on == positive).all(axis=-1)),
        np.asarray((on != positive).all(axis=-1)),
        np.asarray(~on.any(axis=-1)),
    )


# -- the dead cone ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DeadCone:
    """Whether S_dead is more than the origin, with the proof.

    Attributes
    ----------
    trivial : bool
        S_dead = {0}: no neuron other than zero can be dead, since the points positively span the space.
    witness : ndarray of shape (d,) or None
        A dead unit vector, if there is one, rounded to doubles; inner products that are zero may round to either side.
    integers : tuple of int or None
        The same direction exactly: ``x_i . integers <= 0`` for all i.
    weights : ndarray of shape (n,) or None
        If there is no dead vector: weights >= 0 with ``weights @ X = 0`` up to rounding, positive on points of full
        rank. It is proved that exact weights with the same zeros exist.
    """

    trivial: bool
    witness: Array | None
    integers: tuple[int, ...] | None
    weights: Array | None


def dead_cone(data: Dataset) -> DeadCone:
    r"""Decide whether :math:`S_\mathrm{dead} = \{z : x_i \cdot z \le 0\ \forall i\}` is only the origin.

    Either a non-zero dead vector is found and checked in integers, or positive weights
    :math:`\sum_i \lambda_i x_i = 0` of some points of full rank, which exclude one (multiply by z: their
    :math:`x_i \cdot z` would all be 0).

    Raises
    ------
    Undecided
        Neither could be verified; ``partial`` holds the best vector and the best weights found.

    Examples
    --------
    >>> dead_cone(Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])).trivial
    True
    >>> dead_cone(Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1])).trivial
    False
    """
    require_dataset(data)
    units = data.X / data.norms[:, None]
    for z in (-units.sum(axis=0), -data.X.sum(axis=0)):
        if z.any() and (found := _proved_dead(data.X, z)) is not None:
            return found
    z, weights = _inside_or_cancelling(units)
    for attempt in (np.ones(data.n), weights):
        if attempt is not None and _proved_spanning(data.X, attempt):
            return DeadCone(True, None, None, attempt / data.norms)
    found = _proved_dead(data.X, z) if z is not None else _orthogonal_to_all(data.X)
    if found is None and z is None and data.X.size <= _ENTRIES:
        z, weights = _flat_or_cancelling(units)
        if z is not None:
            found = _proved_dead(data.X, z)
        elif _proved_spanning(data.X, weights):
            return DeadCone(True, None, None, weights / data.norms)
    if found is not None:
        return found
    raise Undecided(
        f"whether some vector is dead on all {data.n} samples is too close to call: the best vector found has "
        "inner products that are not clearly of one sign, and no positive weights that cancel the points were proved. "
        "Rescale the points to unit length or drop nearly dependent ones.",
        (z, weights),
    )


def _proved_dead(X: Array, z: Array) -> DeadCone | None:
    """Check a vector in floating point, or after putting it exactly on the hyperplanes it almost lies on."""
    size = float(np.linalg.norm(z))
    if not (math.isfinite(size) and size > 0):
        return None
    z = z / size
    if (exact_signs(X, z[None]) <= 0).all():
        return DeadCone(False, z, tuple(int(v) for v in as_integers(z)[0]), None)
    cosine = (X @ z) / np.linalg.norm(X, axis=1)
    if cosine.max() > _NEARLY_ON or X.size > _ENTRIES:
        return None
    on = np.abs(cosine) <= _NEARLY_ON
    points, _ = as_integers(X[on])
    vector, _ = as_integers(z)
    exact = project_out(vector, points[independent(points)])[0]
    return _checked(X, exact)


def _checked(X: Array, exact: Integers) -> DeadCone | None:
    points, _ = as_integers(X)
    if not any(exact) or any(v > 0 for v in points @ exact):
        return None
    return DeadCone(False, unit_float(exact), tuple(int(v) for v in exact), None)


def _orthogonal_to_all(X: Array) -> DeadCone | None:
    """Return a vector orthogonal to all points, if they do not span the space."""
    d = X.shape[1]
    if X.size > _ENTRIES or np.linalg.matrix_rank(X / np.linalg.norm(X, axis=1)[:, None], tol=_FLAT) == d:
        return None
    points, _ = as_integers(X)
    basis = points[independent(points)]
    for axis in np.eye(d, dtype=np.int64).astype(object):
        rest = project_out(axis, basis)[0]
        if any(rest):
            return _checked(X, rest)
    return None


def _proved_spanning(X: Array, weights: Array) -> bool:
    r"""Whether weights close to these, with the same zeros, cancel the unit points exactly and leave full rank.

    With d independent points B the weights of the others can be kept and those of B corrected by
    :math:`\delta = -B^{-1} r`, r the present sum. An approximate inverse R gives
    :math:`|\delta| \le |R|\,|r| / (1 - |R B - I|)` in the maximum norm; the rounding of each factor is added.
    """
    from scipy.linalg import qr

    rows, weights = power_scaled(X[weights > 0]), weights[weights > 0]
    n, d = rows.shape
    if n <= d or not np.isfinite(weights).all():
        return False
    weights = weights / np.linalg.norm(rows, axis=1)
    if np.abs(weights @ rows).max() > _CANCELS * weights.sum():
        return False
    order = qr((rows * weights[:, None]).T, mode="r", pivoting=True, check_finite=False)[1]
    basis = rows[order[:d]].T
    try:
        inverse = np.linalg.inv(basis)
    except np.linalg.LinAlgError:
        return False
    for _ in range(2):
        weights[order[:d]] -= inverse @ _weighted_sum(weights, rows)
    if weights.min() <= 0:
        return False
    norm = float(np.abs(inverse).sum(axis=1).max())
    residual = float(np.abs(_weighted_sum(weights, rows)).max()) * (1 + 4 * EPS) + _NOTHING * n
    defect = float(np.abs(inverse @ basis - np.eye(d)).sum(axis=1).max()) + 2 * (d + 8) * d * EPS * norm
    return bool(defect < 0.5 and 2 * _ROUNDED_UP * norm * residual < weights[order[:d]].min())


def _weighted_sum(weights: Array, rows: Array) -> Array:
    """``weights @ rows`` with each entry rounded once (entries and weights of moderate size)."""
    terms = weights[:, None] * rows
    errors = product_error(np.broadcast_to(weights[:, None], rows.shape), rows, terms)
    pairs = zip(terms.T, errors.T, strict=True)
    return np.array([math.fsum(np.concatenate(pair).tolist()) for pair in pairs])


def _inside_or_cancelling(units: Array) -> tuple[Array | None, Array | None]:
    """Shortest z with ``u_i . z <= -1``, or else weights >= 0 of sum 1 that cancel the points.

    A least-distance problem, solved as non-negative least squares on a growing set of points.
    """
    from scipy.optimize import nnls

    n, d = units.shape
    system = np.vstack([-units.T, np.ones(n)])
    unit = np.append(np.zeros(d), 1.0)
    chosen = np.unique(np.linspace(0, n - 1, min(n, 2 * d + 2)).astype(np.intp))
    while True:
        check_time("looking for dead directions")
        try:
            weights = nnls(system[:, chosen], unit)[0]
        except RuntimeError:  # its iteration limit
            return None, None
        rest = system[:, chosen] @ weights - unit
        if np.linalg.norm(rest) <= _VANISHES:
            # Some points cancel. If all chosen ones can, none with a small weight, that makes the sturdier proof.
            more, gap = nnls(units[chosen].T, -units[chosen].sum(axis=0))
            every = np.zeros(n)
            every[chosen] = 1.0 + more if gap <= _VANISHES * len(chosen) else weights
            return None, every
        z = rest[:d] / -rest[d]
        inner = units @ z
        wrong = np.setdiff1d(np.flatnonzero(inner > -1 + _SATISFIED), chosen)
        if wrong.size == 0:
            return z, None
        chosen = np.append(chosen, wrong[np.argsort(-inner[wrong], kind="stable")[: 2 * d + 2]])


def _flat_or_cancelling(units: Array) -> tuple[Array | None, Array]:
    """Return a dead vector with the largest total of ``-u_i . z``, if positive, and weights >= 1 that nearly cancel."""
    from scipy.optimize import linprog, nnls

    n, d = units.shape
    best = linprog(
        units.sum(axis=0),
        A_ub=np.vstack([units, -units]),
        b_ub=np.concatenate([np.zeros(n), np.ones(n)]),
        bounds=[(-1.0, 1.0)] * d,
    )
    z = best.x if best.status == 0 and best.fun < -_SATISFIED else None
    return z, 1.0 + nnls(units.T, -units.sum(axis=0))[0]


# -- how far apart the classes point --------------------------------------------------------------------


def smallest_cosine(data: Dataset, block: int = 2048) -> tuple[float, tuple[int, int]]:
    r""":math:`\mu = \min_{i,j} \cos(y_i x_i, y_j x_j)` and the pair of samples where it is attained (ML-A1).

    All pairs count, i = j too, so :math:`\mu \le 1`. The sign is exact: positive exactly for strictly orthogonally
    separable data.

    Examples
    --------
    >>> value, pair = smallest_cosine(Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1]))
    >>> print(f"{value:.10f}", pair)
    0.6459422415 (2, 3)
    """
    units = data.signed / data.norms[:, None]
    best, pair = 2.0, (0, 0)
    for lo in range(0, data.n, block):
        for at in range(lo, data.n, block):
            inner = units[lo : lo + block] @ units[at : at + block].T
            row, column = divmod(int(np.argmin(inner)), inner.shape[1])
            if inner[row, column] < best:
                best, pair = float(inner[row, column]), (lo + row, at + column)
    if abs(best) <= 4 * (data.d + 8) * EPS:  # too close to zero for rounding
        pair, sign = _nonpositive_pair(data) or (pair, 1)
        if sign == 0:
            return 0.0, pair
    i, j = sorted(pair)
    if i == j:
        return 1.0, (i, j)
    product = exact_dot(data.signed[i], data.signed[j])
    return product / float(data.norms[i]) / float(data.norms[j]), (i, j)


def _nonpositive_pair(data: Dataset) -> tuple[tuple[int, int], int] | None:
    """Two signed points with a negative inner product (-1), else with a zero one (0), decided exactly."""
    zero: tuple[int, int] | None = None
    for rows, columns, signs in gram_signs(data.signed):
        for wanted in (-1, 0):
            at = np.argwhere(signs == wanted)
            if at.size:
                pair = int(rows[at[0, 0]]), int(columns[at[0, 1]])
                if wanted < 0:
                    return pair, -1
                zero = zero or pair
    return None if zero is None else (zero, 0)


def driving_cone(data: Dataset, v: npt.ArrayLike) -> tuple[Array, float]:
    r"""Coefficients :math:`\lambda \ge 0` that bring :math:`\sum_i \lambda_i y_i x_i` closest to v, and how close.

    The cone K of these combinations holds every force on a neuron with a_j > 0 (ML-K). The second number is
    :math:`|v - \sum_i \lambda_i y_i x_i| / |v|`: zero, up to rounding, exactly for v in K.

    >>> weights, gap = driving_cone(Dataset([[2, 1], [1, 2], [-3, -1]], [1, 1, -1]), [3, 3])
    >>> gap < 1e-12
    True
    """
    from scipy.optimize import nnls

    target = np.asarray(v, dtype=np.float64)
    if target.shape != (data.d,) or not np.isfinite(target).all() or not target.any():
        raise ProblemError(f"v = {v!r}: one finite non-zero vector with {data.d} entries is needed.")
    size = float(np.linalg.norm(target))
    weights, distance = nnls((data.signed / data.norms[:, None]).T, target / size)
    return weights * size / data.norms, float(distance)


def nearest_cosine(W: Array, x: Array) -> float:
    """``1 - max cos(w_j, x)`` over the rows of W, accurate where some row is almost parallel to x.

    >>> nearest_cosine(np.array([[1.0, 1e-9]]), np.array([2.0, 0.0]))
    5e-19
    """
    if x.shape != W.shape[1:]:
        raise ProblemError(f"x has shape {x.shape} but the rows of W have {W.shape[1]} entries.")
    sizes = np.linalg.norm(W, axis=1)
    rows = W[sizes > 0] / sizes[sizes > 0, None]
    # 1 - cos = |w/|w| - x/|x||^2 / 2 loses nothing when the two directions agree.
    return float(np.square(rows - x / np.linalg.norm(x)).sum(axis=1).min(initial=4.0) / 2)
