"""Two groups of neurons that agree on every sample: the quadratic programs of their limit.

A network with a fixed second layer whose positive neurons all have one activation pattern and whose negative
neurons all have another converges in direction to two vectors (w, u), the solution of a hard-margin program
in twice the dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..problem import Dataset, NotSeparable, ProblemError, Stopped, Undecided, check_time, require_dataset
from ..problem.network import check_slope
from ..problem.precision import EPS
from ..problem.types import Array
from .hard import Candidate, MarginSolution, Rows, as_rows, find_active, hard_margin, solve

_ALL_PAIRS = 1 << 22  # pairs of samples that are looked at in one go
_AT_ONCE = 20  # samples added to a hull at once
_SIGN_CERTAIN = 1e-12  # c_i w.x_i relative to |w| |x_i|: closer to 0 than this, its sign is left open


@dataclass(frozen=True, eq=False)
class AgreementMargin:
    r"""Solution of the agreement program and what it says about the limit of training.

    Attributes
    ----------
    w, u : ndarray of shape (d,)
        Common vectors of the neurons with positive and negative output.
    slope : float
        Slope :math:`\alpha` of the activation.
    signs_w, signs_u : ndarray of shape (n,)
        The activation patterns :math:`c^w, c^u` that were prescribed.
    gamma_phi : float
        :math:`\gamma_\Phi = 1/\sqrt{|w|^2 + |u|^2}`.
    dual : ndarray of shape (n,)
        Multipliers of the samples.
    consistent : bool or None
        Whether the solution has the prescribed signs: :math:`c^w_i w \cdot x_i > 0` and
        :math:`c^u_i u \cdot x_i > 0` for all i. If False the patterns cannot be those of the limit. None when
        the worst of them is zero up to rounding.
    worst : int
        The sample that is nearest to breaking the patterns, or breaks them most.
    beta : float
        :math:`\min_i \min(c^w_i \hat w \cdot x_i, c^u_i \hat u \cdot x_i)`, attained at ``worst``; 0 if w or u is 0.
    radius : float
        :math:`R_x = \max_i |x_i|`.
    solution : MarginSolution
        The program in :math:`\mathbb{R}^{2d}` it came from: support, residuals, degeneracy.
    """

    w: Array
    u: Array
    slope: float
    signs_w: Array
    signs_u: Array
    gamma_phi: float
    dual: Array
    consistent: bool | None
    worst: int
    beta: float
    radius: float
    solution: MarginSolution

    @property
    def direction(self) -> Array:
        """Unit normal of the limiting decision boundary, along ``w - u`` (SBG-C6.1)."""
        difference = self.w - self.u
        unit: Array = difference / np.linalg.norm(difference)
        return unit

    @property
    def norm_ratio(self) -> float:
        """``|w| / |u|``; infinite when u vanishes."""
        below = float(np.linalg.norm(self.u))
        return float(np.linalg.norm(self.w)) / below if below > 0 else float("inf")

    @property
    def wide_enough(self) -> bool:
        r"""Whether :math:`\gamma_\Phi > \alpha R_x`: the margin condition of SBG-T6.2, free of width and scale."""
        return self.gamma_phi > self.slope * self.radius

    @property
    def verified(self) -> bool:
        """Whether the program is solved to rounding."""
        return self.solution.verified

    def network_margin(self, pairs: int, output: float) -> float:
        r"""Return the limiting normalised margin :math:`v \sqrt{k}\, \gamma_\Phi` of k neurons a sign, outputs ±v."""
        return float(output * np.sqrt(pairs) * self.gamma_phi)

    def __repr__(self) -> str:
        return (
            f"AgreementMargin: gamma_phi={self.gamma_phi:.10g}, consistent={self.consistent}, beta={self.beta:.10g} "
            f"(sample {self.worst}), slope={self.slope:g}"
        )


def agreement_margin(
    data: Dataset,
    slope: float,
    signs_w: npt.ArrayLike | None = None,
    signs_u: npt.ArrayLike | None = None,
    kernel: bool | None = None,
) -> AgreementMargin:
    r"""Solve the program of two agreeing groups of neurons.

    .. math:: \min |w|^2 + |u|^2 \quad\text{subject to}\quad y_i (S^w_i\, w \cdot x_i - S^u_i\, u \cdot x_i) \ge 1,

    where :math:`S_i = 1` for a prescribed sign +1 and :math:`\alpha` for -1 (SBG-T6.1q). Without signs the
    perfect agreement :math:`c^w = y`, :math:`c^u = -y` is meant: every positive neuron classifies all samples
    correctly and every negative neuron all of them the other way (PAR-QP of SBG-T6.2).

    For slope 0 the perfect program splits into the two class margins; for slope 1 only w - u matters and
    w = -u is half the linear max-margin vector.

    Parameters
    ----------
    data : Dataset
        The labelled points.
    slope : float
        Slope :math:`\alpha \in [0, 1]`.
    signs_w, signs_u : array_like of shape (n,), optional
        Activation patterns of the two groups, entries -1 or +1. Both or none.
    kernel : bool, optional
        Look for the support vectors in the n-dimensional dual with the kernel
        :math:`y_i y_j (S^w_i S^w_j + S^u_i S^u_j)\, x_i \cdot x_j`. By default when n < 2d. The answer is the same.

    Returns
    -------
    AgreementMargin

    Raises
    ------
    NotSeparable
        When no (w, u) satisfies the constraints; the weights combine the rows
        :math:`y_i (S^w_i x_i, -S^u_i x_i)`.

    Examples
    --------
    >>> data = Dataset([[1, 0.5], [0.8, -0.3], [0.6, 0.9], [-1, 0.3], [-0.9, -0.7]], [1, 1, 1, -1, -1])
    >>> agreement_margin(data, 0.25)
    AgreementMargin: gamma_phi=0.7223498307, consistent=True, beta=0.6597998763 (sample 2), slope=0.25
    """
    alpha = check_slope(slope)
    if (signs_w is None) != (signs_u is None):
        given = "signs_w" if signs_u is None else "signs_u"
        raise ProblemError(f"only {given} is given; the program needs both patterns, or none for perfect agreement.")
    c_w = data.y if signs_w is None else _signs(signs_w, "signs_w", data.n)
    c_u = -data.y if signs_u is None else _signs(signs_u, "signs_u", data.n)
    s_w, s_u = np.where(c_w > 0, 1.0, alpha), np.where(c_u > 0, 1.0, alpha)
    idle = np.flatnonzero((s_w == 0) & (s_u == 0))
    if idle.size:
        raise NotSeparable(
            f"with slope 0, sample {idle[0]} is inactive in both groups ({idle.size} such samples), so its margin is 0 "
            "whatever w and u are. Prescribe +1 for one of the groups there, or use a positive slope.",
            np.eye(1, data.n, int(idle[0]))[0],
            0.0,
        )
    rows = as_rows(np.hstack([data.signed * s_w[:, None], -data.signed * s_u[:, None]]))
    if kernel is None:
        kernel = data.n < rows.d
    solution = solve(rows, _from_kernel(data, s_w, s_u, rows) if kernel else None)
    return _agreement(data, alpha, c_w, c_u, solution)


def _signs(signs: npt.ArrayLike, name: str, n: int) -> Array:
    pattern = np.asarray(signs)
    if pattern.shape != (n,) or pattern.dtype.kind not in "iuf" or not (np.abs(pattern) == 1).all():
        raise ProblemError(f"{name} must be {n} numbers -1 or +1, one a sample, not {signs!r}.")
    return pattern.astype(np.float64)


def _from_kernel(data: Dataset, s_w: Array, s_u: Array, rows: Rows) -> Candidate | None:
    """Guess the support in the dual: any factor F of the kernel matrix F F^T has the same margins as the rows."""
    K = (np.outer(s_w, s_w) + np.outer(s_u, s_u)) * (data.signed @ data.signed.T)
    scale = np.sqrt(np.diag(K))
    values, vectors = np.linalg.eigh(K / np.outer(scale, scale))
    large = values > data.n * EPS * values[-1]
    F = vectors[:, large] * np.sqrt(values[large]) * scale[:, None]
    if not F.any(axis=1).all():
        return None
    small = Rows.of(F)
    found = find_active(small)
    dual = small.dual(found.points, found.weights)[found.points]
    return Candidate(found.points, np.ldexp(dual, rows.base + rows.exponents[found.points]), False)


def _agreement(data: Dataset, alpha: float, c_w: Array, c_u: Array, solution: MarginSolution) -> AgreementMargin:
    w, u = solution.w[: data.d], solution.w[data.d :]
    ahead = np.zeros((2, data.n))
    for row, vector, signs in ((0, w, c_w), (1, u, c_u)):
        length = float(np.linalg.norm(vector))
        if length > EPS * float(np.linalg.norm(solution.w)):  # otherwise it is zero and has no sign anywhere
            ahead[row] = signs * (data.X @ (vector / length))
    worst = int(np.argmin(ahead.min(axis=0)))
    relative = ahead / data.norms
    consistent: bool | None = None
    if relative.min() < -_SIGN_CERTAIN or not ahead.any(axis=1).all():
        consistent = False
    elif relative.min() > _SIGN_CERTAIN:
        consistent = True
    return AgreementMargin(
        w=w,
        u=u,
        slope=alpha,
        signs_w=c_w,
        signs_u=c_u,
        gamma_phi=solution.margin,
        dual=solution.dual,
        consistent=consistent,
        worst=worst,
        beta=float(ahead[:, worst].min()),
        radius=float(data.norms.max()),
        solution=solution,
    )


def beta_crit(data: Dataset) -> tuple[float, float]:
    r"""Return the largest margins at which a vector can take in one class and a sample of the other.

    :math:`V_\beta^+` holds the vectors v with :math:`\hat v \cdot x \ge \beta` on all positive samples and on at least
    one negative sample; :math:`V_\beta^-` the same with the labels exchanged. They are empty exactly for
    :math:`\beta > \beta_{crit}^\pm` (SBG-V), where

    .. math:: \beta_{crit}^+ = \max_{m \in I_-} \mathrm{dist}(0, \mathrm{conv}(\{x_i : i \in I_+\} \cup \{x_m\})).

    A distance is 0 when the hull contains 0; without negative samples :math:`\beta_{crit}^+ = 0`.

    Parameters
    ----------
    data : Dataset
        The labelled points.

    Returns
    -------
    plus, minus : float

    Raises
    ------
    Undecided
        When a hull that matters may or may not contain 0; ``partial`` is a lower bound of the value.

    Examples
    --------
    >>> data = Dataset([[1, 0.5], [0.8, -0.3], [0.6, 0.9], [-1, 0.3], [-0.9, -0.7]], [1, 1, 1, -1, -1])
    >>> [round(value, 12) for value in beta_crit(data)]
    [0.0, 0.177824693509]
    """
    require_dataset(data)
    plus, minus = data.X[data.positives], data.X[data.negatives]
    return _largest_distance(plus, minus), _largest_distance(minus, plus)


def _largest_distance(base: Array, others: Array) -> float:
    """Maximise the distance of conv(base + one of the others) from 0 over the others.

    Any part of the hull bounds a distance from above: segments at first, then the hull of a pool of points of
    ``base`` which grows until it decides. Most of the others are ruled out without a problem of their own.
    """
    if not len(others):
        return 0.0
    bounds = np.linalg.norm(others, axis=1)
    if not len(base):
        return float(bounds.max())
    alone = _alone(base)
    if alone is None:
        return 0.0
    if (others @ alone.w).max() >= 1.0:  # the nearest point of the hull stays the nearest
        return alone.margin
    starts = base if len(base) * len(others) <= _ALL_PAIRS else base[alone.support]
    bounds = np.minimum(bounds, _segments(np.vstack([alone.margin * alone.direction, starts]), others))
    rounding = 16 * EPS * max(float(bounds.max()), alone.margin)
    pool, lengths, best, undecided = alone.support, np.linalg.norm(base, axis=1), 0.0, 0.0
    while bounds.max() > best + rounding:
        check_time("looking for the largest margin of agreement")
        m = int(np.argmax(bounds))
        try:
            found = hard_margin(np.vstack([base[pool], others[m]]))
        except NotSeparable:
            bounds[m] = 0.0
            continue
        except Stopped:
            raise
        except Undecided:
            undecided, bounds[m] = max(undecided, float(bounds[m])), 0.0
            continue
        bounds[m] = min(bounds[m], found.margin)
        if found.dual[:-1].any():  # the part of the nearest point that lies in conv(base) bounds the others too
            inside = found.dual[:-1] @ base[pool] / found.dual[:-1].sum()
            bounds = np.minimum(bounds, _segments(inside[None, :], others))
        if found.margin > best + rounding:
            slack = (base @ found.w - 1.0) / lengths
            slack[pool] = 0.0
            if slack.min() >= -8 * EPS * np.linalg.norm(found.w):
                best = found.margin
            else:
                pool = np.union1d(pool, np.argsort(slack)[:_AT_ONCE])
    if undecided > best:
        raise Undecided(
            f"a hull may or may not contain 0: the value lies between {best:.6g} and {undecided:.6g}. "
            "Remove (nearly) opposite points.",
            best,
        )
    return best


def _alone(base: Array) -> MarginSolution | None:
    """Return the margin of one class alone; None if its hull contains 0."""
    try:
        return hard_margin(base)
    except NotSeparable:
        return None
    except Stopped:
        raise
    except Undecided as error:
        why = f"whether the hull of one class contains 0 is open, so the value may be 0: {error}"
        raise Undecided(why, 0.0) from None


def _segments(starts: Array, ends: Array) -> Array:
    """For every end, a point nearest to 0 on one of the segments from the starts to it: its distance."""
    best, first, second = np.full(len(ends), np.inf), np.zeros(len(ends)), np.zeros(len(ends), dtype=np.intp)
    squares = np.einsum("ij,ij->i", ends, ends)
    chunk = max(1, _ALL_PAIRS // len(ends))
    for begin in range(0, len(starts), chunk):
        part = starts[begin : begin + chunk]
        inner = part @ ends.T
        own = np.einsum("ij,ij->i", part, part)[:, None]
        length = own - 2 * inner + squares
        t = np.clip((own - inner) / np.where(length > 0, length, 1.0), 0.0, 1.0)
        square = own * (1 - t) ** 2 + 2 * inner * t * (1 - t) + squares * t**2
        row = square.argmin(axis=0)
        column = np.arange(len(ends))
        better = square[row, column] < best
        best = np.where(better, square[row, column], best)
        first, second = np.where(better, t[row, column], first), np.where(better, begin + row, second)
    # the squares cancel where the distance is small: measure the points themselves
    points = (1 - first)[:, None] * starts[second] + first[:, None] * ends
    distances: Array = np.linalg.norm(points, axis=1)
    return distances
