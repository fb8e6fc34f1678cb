"""Numbers that the statements on linearly separable data speak of (LL), computed from data and start.

All of them are functions of the data, the slope and the start alone. Rates and times are those of the problem's own
clock; where a constant presumes points inside the unit ball, the data are rescaled first: dividing the points by c
multiplies parameters by the root of c and time by c.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...problem import Dataset, Network, Problem
from ...problem.types import Array
from ...sectors import driving_slack
from ...sectors.exact import as_rationals, column_sums, dot

_EPS = 2.0**-52
#: Entries up to which rational arithmetic is quick enough to settle what rounding leaves open.
_EXACT_ENTRIES = 20_000
#: Entries from which copies of the data are avoided.
LARGE = 2_000_000


# -- means of the data ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Means:
    r"""The means that small neurons follow.

    Attributes
    ----------
    mu : ndarray of shape (d,)
        :math:`\mu = \frac1n \sum_i y_i x_i`.
    plus, minus : ndarray of shape (d,)
        :math:`\mu^\pm`, with the slope on the class that a neuron of that output sign sees from below.
    """

    mu: Array
    plus: Array
    minus: Array

    @property
    def kappa(self) -> float:
        r""":math:`\kappa = 1 - |\mu^-| / |\mu^+|` (LL-A.3)."""
        top = float(np.linalg.norm(self.plus))
        return 1.0 - float(np.linalg.norm(self.minus)) / top if top > 0 else float("nan")


def means(data: Dataset, slope: float) -> Means:
    """Means of ``y_i x_i``, plain and with the slope on the negatives (plus) or the positives (minus)."""
    plus, minus = (np.where(data.y == sign, 1.0 / data.n, 0.0) @ data.signed for sign in (1, -1))
    return Means(plus + minus, plus + slope * minus, slope * plus + minus)


def clock(problem: Problem) -> float:
    """How many units of time of the mean logistic loss pass near zero in one unit of the problem's time."""
    return 2.0 * problem.data.n * problem.speed


def growth_rates(problem: Problem) -> tuple[float, float]:
    r"""Rates :math:`\lambda_0^\pm = |\mu^\pm|/2` at which small neurons of either sign grow (LL-G.5)."""
    found = means(problem.data, problem.net.slope)
    return tuple(clock(problem) * 0.5 * float(np.linalg.norm(m)) for m in (found.plus, found.minus))  # type: ignore[return-value]


def symmetric_rate(problem: Problem) -> float:
    r"""Rate :math:`\lambda_0 = \frac{1+\alpha}{4} |\mu|` on symmetric data (LL-L5.2).

    The constant printed in the paper, :math:`(1+\alpha)/2`, is twice too large.
    """
    mu = means(problem.data, problem.net.slope).mu
    return clock(problem) * 0.25 * (1 + problem.net.slope) * float(np.linalg.norm(mu))


def longer_mean(data: Dataset) -> int | None:
    r"""Sign of :math:`|\mu^+| - |\mu^-|` (LL-A.3, LL-A.8), exact; None where rounding leaves it open.

    With P and N the sums of :math:`y_i x_i` over the two classes,
    :math:`n^2 (|\mu^+|^2 - |\mu^-|^2) = (1 - \alpha^2)(|P|^2 - |N|^2)`, so no slope below 1 matters.
    """
    classes = [data.X[data.positives], data.X[data.negatives]]
    size = [float(np.square(part.sum(axis=0)).sum()) for part in classes]
    bound = [4 * (len(part) + data.d) * _EPS * float(np.square(np.abs(part).sum(axis=0)).sum()) for part in classes]
    if abs(size[0] - size[1]) > sum(bound):
        return 1 if size[0] > size[1] else -1
    if data.X.size > _EXACT_ENTRIES:
        return None
    exact = [dot(v, v) for v in map(column_sums, classes)]
    return (exact[0] > exact[1]) - (exact[0] < exact[1])


def mean_signs(data: Dataset) -> npt.NDArray[np.float64]:
    r"""Signs of :math:`\mu \cdot x_i` (LL-A4.5), exact; nan where rounding leaves one open."""
    total = data.signed.sum(axis=0)
    value = data.X @ total
    bound = 4 * (data.n + data.d) * _EPS * float(np.linalg.norm(np.abs(data.X).sum(axis=0))) * data.norms
    signs = np.where(np.abs(value) > bound, np.sign(value), np.nan)
    open_ = np.flatnonzero(np.isnan(signs))
    if open_.size and data.X.size <= _EXACT_ENTRIES:
        exact = column_sums(data.signed)
        for i in open_:
            product = dot(as_rationals(data.X[i]), exact)
            signs[i] = (product > 0) - (product < 0)
    return signs


# -- assumptions ------------------------------------------------------------------------------------------


def mirror_gap(data: Dataset) -> tuple[bool, int | None, float]:
    """Whether the data are their own mirror image (LL-A4.1), else a sample without one and how far off it is.

    The comparison is exact. The distance, relative to the largest point, is that of the nearest mirror image with the
    other label; a sample more than 1e-9 off is preferred as the witness.
    """
    X = data.X + 0.0  # minus zero and zero are the same coordinate
    here = [(row.tobytes(), sign) for row, sign in zip(X, data.y, strict=True)]
    there = [(row.tobytes(), -sign) for row, sign in zip(-X + 0.0, data.y, strict=True)]
    count = Counter(here)
    alone = [i for i in range(data.n) if count[there[i]] != count[here[i]]]
    worst, far = None, -1.0
    for i in alone:
        other = data.X[data.y == -data.y[i]]
        gap = float(np.linalg.norm(other + data.X[i], axis=1).min() / data.norms.max()) if len(other) else np.inf
        if gap > far:
            worst, far = i, gap
        if far > 1e-9:
            break
    return (True, None, 0.0) if worst is None else (False, worst, far)


#: Whether every vector that can drive a small neuron separates the data, and by how much (LL-A.2).
cone = driving_slack


def a1_sides(data: Dataset, slope: float, w: Array) -> tuple[float, float]:
    r"""Both sides of LL-A.1 for a unit vector w: it holds with w if the first is below the second.

    :math:`\frac1n \sum_i |P x_i| / (\alpha\, \mu \cdot w)` and :math:`\min_i z_i \cdot w / \max_i |P x_i|`, with
    :math:`P = I - w w^T`. Infinite on the left where :math:`\mu \cdot w \le 0`.
    """
    if data.X.size <= LARGE:
        across = np.linalg.norm(data.X - np.outer(data.X @ w, w), axis=1)
    else:  # without a copy of the data; exact to about 1e-8 of the norms
        across = np.sqrt(np.maximum(data.norms**2 - (data.X @ w) ** 2, 0.0))
    along = float(means(data, slope).mu @ w)
    margin = float((data.signed @ w).min())
    left = float(across.mean()) / (slope * along) if slope * along > 0 else np.inf
    spread = float(across.max())
    return left, margin / spread if spread > 0 else np.sign(margin) * np.inf


def a1_search(
    data: Dataset, slope: float, starts: list[tuple[str, Array]], search: bool = True
) -> tuple[str, Array, float, float]:
    """Best vector for LL-A.1: the given ones, then a local search from the best of them where that is cheap."""
    tried = [(name, w, *a1_sides(data, slope, w)) for name, w in starts]
    best = max(tried, key=lambda t: _ratio(t[2], t[3]))
    if not search or best[2] < best[3] or data.d == 1 or data.X.size > 20_000 or data.d > 12:
        return best
    from scipy.optimize import minimize

    def badness(v: Array) -> float:
        size = float(np.linalg.norm(v))
        return -_ratio(*a1_sides(data, slope, v / size)) if size > 0 else np.inf

    found = minimize(badness, best[1], method="Nelder-Mead", options={"maxiter": 200 * data.d, "xatol": 1e-9}).x
    w = found / np.linalg.norm(found)
    left, right = a1_sides(data, slope, w)
    return ("a vector found by search", w, left, right) if _ratio(left, right) > _ratio(best[2], best[3]) else best


def _ratio(left: float, right: float) -> float:
    return right / left if 0 < left < np.inf else (np.inf if left == 0 and right > 0 else -1.0)


# -- the start --------------------------------------------------------------------------------------------


def log_m_norm(net: Network) -> float:
    r"""Log of :math:`|\theta|_M = \max_j \max(|w_j|, |a_j|)`; of the zero network a number below every scale."""
    return float(max(net.log_norms.max(), net.log_outs.max(), -1e300))


def seed_amplitudes(problem: Problem) -> Array:
    r""":math:`\bar b_j = (\bar w_j \cdot \bar\mu + \bar a_j) / (2 \sqrt p\, |\bar\theta_0|_M)` (LL-L5.2)."""
    net = problem.net
    mu = means(problem.data, net.slope).mu
    size = float(np.linalg.norm(mu))
    axis = mu / size if size > 0 else mu
    top = log_m_norm(net)
    with np.errstate(under="ignore"):
        along = np.exp(net.log_norms - top) * (net.directions @ axis)
        out = np.sign(net.a) * np.exp(net.log_outs - top)
    return np.asarray((along + out) / (2 * np.sqrt(net.p)))


def is_good(b: Array) -> bool:
    """No zero entry, and both signs occur (LL-Emb)."""
    return bool((b != 0).all() and (b > 0).any() and (b < 0).any())


def length_unit(data: Dataset) -> float:
    """By what the points are divided before a bound for the unit ball is used: their largest norm, if above 1."""
    return max(1.0, float(data.norms.max()))


@dataclass(frozen=True)
class PhaseOne:
    r"""Times and constants of the first phase on symmetric data (LL-L5.2).

    Attributes
    ----------
    rate : float
        :math:`\lambda_0` in the clock of the problem.
    r : float
        Size of the network at the end of it, in units where the points lie in the unit ball; the smallest that the
        start allows, :math:`r^3 = \sqrt p\, |\theta_0|_M`.
    r_max : float
        :math:`\sqrt{\lambda_0/4}` in those units.
    log_start : float
        :math:`\log(\sqrt p\, |\theta_0|_M)` in those units.
    T_1, T_12 : float
        :math:`\frac1{\lambda_0} \log \frac{r}{\sqrt p |\theta_0|_M}` and :math:`\frac1{\lambda_0} \log \frac1{\sqrt p
        |\theta_0|_M}` (LL-L5.4), in the clock of the problem.
    error : float
        :math:`(4/\lambda_0 + \sqrt2) r^3 / \sqrt p`, in those units.
    """

    rate: float
    r: float
    r_max: float
    log_start: float
    T_1: float
    T_12: float
    error: float


def phase_one(problem: Problem, r: float | None = None) -> PhaseOne:
    """Phase I of symmetric data, for a given size r at its end or the smallest one."""
    c, p = length_unit(problem.data), problem.net.p
    rate = symmetric_rate(problem)
    scaled = rate / clock(problem) / c
    log_start = log_m_norm(problem.net) + 0.5 * np.log(p) + 0.5 * np.log(c)
    size = float(np.exp(log_start / 3)) if r is None else r
    log_r = log_start / 3 if r is None else np.log(r)
    error = (4 / scaled + np.sqrt(2)) * size**3 / np.sqrt(p) if scaled > 0 else np.inf
    T_1, T_12 = (float((end - log_start) / rate) if rate > 0 else np.inf for end in (log_r, 0.0))
    return PhaseOne(rate, size, float(np.sqrt(scaled / 4)), float(log_start), T_1, T_12, float(error))


def near_zero_time(problem: Problem, b_plus: float, b_minus: float) -> float:
    r"""End :math:`t_0 = \frac1{2\lambda} \log \frac{\lambda \hat\Delta}{16 p |\hat\theta|_M^2}` of the near-zero limit.

    For the two neurons :math:`b_\pm (\bar\mu, 1)` of symmetric data (LL-E.4), p = 2, in the clock of the problem.
    """
    c = length_unit(problem.data)
    rate = symmetric_rate(problem)
    scaled = rate / clock(problem) / c
    mu = means(problem.data, problem.net.slope).mu
    inner = np.abs(problem.data.X @ mu) / float(np.linalg.norm(mu)) / c
    top = max(abs(b_plus), abs(b_minus))
    gap = min(abs(b_plus), abs(b_minus)) * float(inner.min()) / top
    if gap == 0:
        return -np.inf
    return float(np.log(scaled * gap / (16 * 2 * top**2)) / (2 * rate))


@dataclass(frozen=True, eq=False)
class Escape:
    r"""Neurons that cannot turn off, and when the data are fitted (LL-B.19).

    Attributes
    ----------
    log_c : ndarray of shape (p,)
        Log of :math:`c_j = (w_j \cdot w_*)^2 - |w_j|^2 + a_j^2`; nan where that is not positive, or where
        :math:`\mathrm{sgn}(a_j)\, w_j \cdot w_* \le 0`.
    log_time : ndarray of shape (p,)
        Log of :math:`(L(0) - \ell(0)/n) (2n / \alpha\gamma_*)^2 / c_j`, in the clock of the problem; -inf when the loss
        is that small already. For the logistic loss.
    """

    log_c: Array
    log_time: Array

    @property
    def best(self) -> int | None:
        """The neuron with the earliest bound."""
        return None if np.isnan(self.log_c).all() else int(np.nanargmax(self.log_c))


def escape(problem: Problem, w_star: Array, margin: float) -> Escape:
    """Evaluate LL-B.19 for every neuron of the start; for a positive slope."""
    net, data = problem.net, problem.data
    across, q = net.directions @ w_star, net.margins(data)
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.exp(np.clip(2 * (net.log_outs - net.log_norms), -1400, 700))
        relative = across**2 - 1.0 + out  # c_j / |w_j|^2
        relative = np.where(relative > 8 * _EPS * (1.0 + out), relative, 0.0)
        # For a balanced neuron 1 cancels exactly; do not let rounding decide its sign.
        tied = np.abs(net.log_outs - net.log_norms) <= 4 * _EPS * np.maximum(1.0, np.abs(net.log_norms))
    relative = np.where(tied, across**2, relative)
    good = (np.sign(net.a) * across > 8 * _EPS) & (relative > 0) & np.isfinite(net.log_norms)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_c = np.where(good, np.log(np.where(good, relative, 1.0)) + 2 * net.log_norms, np.nan)
        # (sum l(q_i) - l(0))/n, also of one sample with q = 1e-100
        with np.errstate(over="ignore"):
            more = problem.loss.value(q) - np.log(2.0)
            more = np.where(np.abs(q) < 1, np.log1p(np.expm1(-np.clip(q, -1, 1)) / 2), more)
        excess = ((data.n - 1) * np.log(2.0) + float(more.sum())) / data.n
        log_time = np.log(max(excess, 0.0)) + 2 * np.log(2 * data.n / (net.slope * margin)) - log_c
    return Escape(log_c, np.asarray(log_time - np.log(problem.weight * data.n)))


# -- hinted data ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Hints:
    r"""Three hints found in the data, and the thresholds of LL-T6.2.

    Attributes
    ----------
    samples : tuple of int
        The samples :math:`H w_*`, :math:`\epsilon w_* + K w_\perp`, :math:`\epsilon w_* - K w_\perp`.
    H, eps, K : float
    eps_below : float
        (a): :math:`\epsilon` must be below :math:`\alpha \min_i y_i w_* \cdot x_i` over the other samples.
    H_0, H_d : float
        (c) and (d): what H must exceed; (b) is :math:`\epsilon`.
    K_threshold : float
        :math:`\epsilon \sqrt{(3+\alpha)/(1-\alpha)}`: up to there the one-neuron limit is optimal.
    bound : float
        :math:`\max(\epsilon/2, \frac14 \sqrt{(1+\alpha)^2 \epsilon^2 + (1-\alpha)^2 K^2})`;
        the global margin is not larger.
    """

    samples: tuple[int, int, int]
    H: float
    eps: float
    K: float
    eps_below: float
    H_0: float
    H_d: float
    K_threshold: float
    bound: float


def hints(data: Dataset, slope: float, w_star: Array, tol: float = 1e-9) -> Hints | None:
    """Look for the hints of LL-D6.1 around the max-margin direction of all the data; None if there are none."""
    unit = float(data.norms.max())
    along = data.X @ w_star
    across = data.X - np.outer(along, w_star)
    far = np.linalg.norm(across, axis=1)
    positive = data.y > 0
    on_axis = np.flatnonzero(positive & (far <= tol * unit) & (along > 0))
    if not positive.any():
        return None
    tight = np.flatnonzero(positive & (along <= along[positive].min() + tol * unit))
    pairs = [
        (int(i), int(j))
        for k, i in enumerate(tight)
        for j in tight[k + 1 :]
        if far[i] > tol * unit and np.linalg.norm(across[i] + across[j]) <= tol * unit
    ]
    if not on_axis.size or len(pairs) != 1:
        return None
    top = int(on_axis[np.argmax(along[on_axis])])
    i, j = pairs[0]
    rest = np.setdiff1d(np.arange(data.n), [top, i, j])
    if not rest.size:
        return None
    H, eps, K = float(along[top]), float(along[i]), float(far[i])
    signed = data.signed @ w_star
    others = np.setdiff1d(np.arange(data.n), [top])
    plus, minus = (np.where(data.y[others] == s, 1.0, slope) @ data.signed[others] for s in (1, -1))
    bent = float(np.linalg.norm(plus) + np.linalg.norm(minus))
    bound = 0.25 * np.hypot((1 + slope) * eps, (1 - slope) * K)
    return Hints(
        samples=(top, i, j),
        H=H,
        eps=eps,
        K=K,
        eps_below=slope * float(signed[rest].min()),
        H_0=float(far.max() * far.sum() / (slope * signed[others].min()) - signed[others].sum()) if slope else np.inf,
        H_d=bent / (1 - slope) if slope < 1 else np.inf,
        K_threshold=eps * float(np.sqrt((3 + slope) / (1 - slope))) if slope < 1 else np.inf,
        bound=max(eps / 2, float(bound)),
    )
