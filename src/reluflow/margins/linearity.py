r"""Whether the sign of a two-layer network is that of a linear function.

With :math:`\phi(z) = \frac{1+\alpha}{2} z + \frac{1-\alpha}{2} |z|` the network splits into an odd and an
even part, :math:`f(x) = \frac{1+\alpha}{2}\, m \cdot x + \frac{1-\alpha}{2} E(x)`, :math:`m = \sum_j a_j w_j`,
:math:`E(x) = \sum_j a_j |w_j \cdot x|`. So sign f is linear iff f(x) and f(-x) have opposite signs wherever
:math:`m \cdot x \ne 0`, that is iff :math:`(1-\alpha)|E(x)| < (1+\alpha)|m \cdot x|` there; the direction can only
be m, and one x at which f(x) and f(-x) are not of opposite sign refutes every direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..problem import Network, ProblemError, check_time
from ..problem.precision import EPS, TINY
from ..problem.types import Array
from ..sectors.exact import Rationals, as_rationals, dot, multiple, total
from .networks import check_network, unit_weights

# Exact arithmetic on more weights than this takes too long to be worth it.
_EXACT_WEIGHTS = 20_000
_MOST_LINES = 300
_ONE_LINE = 1e-6  # sine up to which neurons are merged into one line; what that loses is counted
_CANCELS = 1e-12  # weight of a line, relative to all, that antipodal neurons leave by rounding
_POSITIVE = 1e-13  # gap, relative to the odd part, from which it is not rounding
_OFF_AXIS, _OFF_NEURON = 1e-8, 1e-9  # relative lengths of projections that still have a direction
_FEW_SINES = (0.0, 1e-6, 1e-3, 0.1, 0.5, 0.9)  # how far from the hyperplane a witness is looked for: first roughly,
_MANY_SINES = (0.0, *np.logspace(-12, 0, 120))  # then from the best points closely


@dataclass(frozen=True, eq=False, repr=False)
class Linearity:
    r"""Answer of `linearity`.

    Attributes
    ----------
    linear : bool or None
        Whether sign f(x) = sign(direction . x) for every x, up to ``wedge``; None if not decided.
    evidence : {"proved", "numerical"}
        ``"proved"``: decided in exact arithmetic or by a sign beyond rounding; ``"numerical"``: to the
        tolerance given.
    direction : ndarray of shape (d,) or None
        :math:`m/|m|`; None if m vanishes.
    wedge : float
        sign f(x) = sign(direction . x) is shown wherever :math:`|\text{direction} \cdot x| > \text{wedge}\, |x|`;
        0 when proved linear, inf when nothing is shown.
    witness : ndarray of shape (d,) or None
        A point x where f(x) and f(-x) do not have opposite signs, which no linear classifier can follow.
    why : str
    """

    linear: bool | None
    evidence: Literal["proved", "numerical"]
    direction: Array | None
    wedge: float
    witness: Array | None
    why: str

    def covers(self, X: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which rows of X lie where the sign is shown to be that of the linear function."""
        points = np.asarray(X, dtype=np.float64)
        if self.direction is None or not np.isfinite(self.wedge):
            return np.zeros(len(points), dtype=bool)
        return np.asarray(np.abs(points @ self.direction) > self.wedge * np.linalg.norm(points, axis=1))

    def __repr__(self) -> str:
        verdict = {True: "the sign is linear", False: "the sign is not linear", None: "not decided"}[self.linear]
        return f"Linearity: {verdict} ({self.evidence})\n  {self.why}"


def linearity(net: Network, tol: float = 1e-9, seed: int = 0) -> Linearity:
    r"""Decide whether the network classifies like a linear function through the origin.

    In exact arithmetic: neurons on one line are merged in E; if at most one line of each sign is left, the
    question is a comparison of two vectors (this covers one neuron, perfectly clustered neurons SBG-C6.1, and any
    number of antipodal pairs). Otherwise an upper bound on the wedge around the hyperplane outside which
    the sign is linear (SBG-T5.1 in its sharp form), and a search for a witness.

    Parameters
    ----------
    net : Network
    tol : float
        A wedge this narrow (sine of its half angle) counts as linear.
    seed : int
        Of the search for a witness.

    Examples
    --------
    >>> linearity(Network([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], slope=0.25)).linear
    True
    >>> answer = linearity(Network([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], slope=0.0))    # ReLU is flat on a quadrant
    >>> answer.linear, answer.evidence
    (False, 'proved')
    """
    check_network(net)
    if not 0.0 <= tol < 1.0:
        raise ProblemError(f"tol = {tol!r} must lie in [0, 1): it is the sine of an angle.")
    W, a, exact = _weights(net)
    if exact and W.size <= _EXACT_WEIGHTS:
        settled = _exactly(W, a, net.slope)
        if settled is not None:
            return settled
    m = a @ W
    size = float(np.linalg.norm(m))
    terms = float(np.abs(a) @ np.linalg.norm(W, axis=1))
    if size <= 64 * net.p * EPS * terms:
        return _no_odd_part(W, a, net.slope, exact, seed)
    direction = m / size
    wedge = min(_wedge_of_lines(W, a, net.slope, m), _wedge_of_clusters(W, a, net.slope, m))
    wedge = wedge if wedge < 1.0 else np.inf  # a sine
    if wedge <= tol:
        why = f"the sign is linear outside a wedge of sine {wedge:.1e}, within the tolerance {tol:g}"
        return Linearity(True, "numerical", direction, wedge, None, why)
    witness, found = _search(W, a, net.slope, m, seed)
    if witness is not None and found > tol:
        proved = exact and _same_sign(W, a, net.slope, witness)
        why = f"f has no sign change between x and -x, at sine {found:.3g} from the hyperplane of the odd part"
        return Linearity(False, "proved" if proved else "numerical", direction, wedge, witness, why)
    why = f"the wedge is at most {wedge:.1e} and no witness was found farther out than {max(found, 0.0):.1e}"
    return Linearity(None, "numerical", direction, wedge, witness, why)


@dataclass(frozen=True, eq=False)
class Clusters:
    r"""Means of the neurons of each output sign, in units where the first layer has norm 1, and their radius.

    Attributes
    ----------
    plus, minus : ndarray of shape (d,)
        :math:`\bar w` and :math:`\bar u`.
    radius : float
        Largest distance of a neuron from its own mean.
    slope : float
    """

    plus: Array
    minus: Array
    radius: float
    slope: float

    def in_linear_region(self, X: npt.ArrayLike, sharp: bool = False) -> npt.NDArray[np.bool_]:
        r"""Which points surely get the sign of :math:`(\bar w - \bar u) \cdot x`.

        Those with :math:`|(\bar w - \bar u) \cdot x| \ge 2 r |x|` (SBG-T5.1), or with ``sharp``
        :math:`> \frac{1-\alpha}{1+\alpha} r |x|`, the best constant.
        """
        points = np.asarray(X, dtype=np.float64)
        reach, size = np.abs(points @ (self.plus - self.minus)), self.radius * np.linalg.norm(points, axis=1)
        return np.asarray(reach > (1 - self.slope) / (1 + self.slope) * size if sharp else reach >= 2 * size)


def clusters(net: Network) -> Clusters:
    """How tightly the neurons of each output sign stand together (SBG-T5.1).

    The statement is about a leaky network with equally many output weights +v and -v.

    >>> net = Network([[1.0, 0.1], [1.0, -0.1], [-1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0, -1.0, -1.0], slope=0.5)
    >>> both = clusters(net)
    >>> both.in_linear_region([[1.0, 0.0], [0.0, 1.0]])
    array([ True, False])
    """
    check_network(net)
    W, a, _, _ = unit_weights(net, "first")
    if net.slope == 0.0 or np.ptp(np.abs(a)) != 0 or int((a > 0).sum()) != int((a < 0).sum()):
        raise ProblemError(
            "clusters needs a leaky network (slope > 0) with as many output weights +v as -v: that is what its linear "
            f"region is proved for. Given: slope {net.slope:g}, {int((a > 0).sum())} positive and {int((a < 0).sum())} "
            f"negative ones, sizes {np.abs(a).min():.3g} to {np.abs(a).max():.3g} of the largest. See linearity(net)."
        )
    means = [W[s].mean(axis=0) for s in (a > 0, a < 0)]
    radius = max(float(np.linalg.norm(W[s] - c, axis=1).max()) for s, c in zip((a > 0, a < 0), means, strict=True))
    return Clusters(means[0], means[1], radius, net.slope)


def _weights(net: Network) -> tuple[Array, Array, bool]:
    """Weights up to a positive factor a layer, and whether they are exactly those."""
    log_w, log_a = net.log_scales
    live = (net.a != 0) & net.W.any(axis=1)
    if not live.any():
        raise ProblemError("the network is zero everywhere: it classifies nothing.")
    if np.ptp(log_w[live]) == 0 and np.ptp(log_a[live]) == 0:
        W, a = net.W[live], net.a[live]
        powers = [int(np.frexp(np.abs(x).max())[1]) for x in (W, a)]
        small, out = np.ldexp(W, -powers[0]), np.ldexp(a, -powers[1])
        same = np.array_equal(np.ldexp(small, powers[0]), W) and np.array_equal(np.ldexp(out, powers[1]), a)
        return small, out, same
    W, a, _, _ = unit_weights(net)
    live &= (a != 0) & W.any(axis=1)
    return W[live], a[live], False


# -- in exact arithmetic --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """Both parts of the network without rounding: ``m`` of the odd one, ``E(x) = sum e |r . x|`` by its lines (e, r).

    ``E`` counts only with a kink, so it is empty at slope 1.
    """

    m: Rationals
    lines: list[tuple[Fraction, Rationals]]
    alpha: Fraction

    @classmethod
    def of(cls, W: Array, a: Array, slope: float) -> _Parts:
        rows, out, alpha = [as_rationals(w) for w in W], as_rationals(a), Fraction(slope)
        m = [total(c * r[k] for c, r in zip(out, rows, strict=True)) for k in range(W.shape[1])]
        return cls(m, [(e, r) for e, r in _merge_lines(W, rows, out) if e != 0] if alpha < 1 else [], alpha)

    @property
    def direction(self) -> Array | None:
        """``m / |m|``, rounded; None if m vanishes."""
        m = np.array([float(v) for v in self.m])
        return m / float(np.linalg.norm(m)) if any(self.m) else None


def _exactly(W: Array, a: Array, slope: float) -> Linearity | None:
    """Decide in exact arithmetic; None where neither the plane nor one line of each sign makes it easy."""
    parts = _Parts.of(W, a, slope)
    direction = parts.direction
    if direction is None:
        if not parts.lines:
            return Linearity(False, "proved", None, np.inf, None, "the function is zero everywhere")
        return None
    if not parts.lines:
        return _proved_linear(direction, "the function itself is linear")
    if W.shape[1] == 2 and len(parts.lines) <= _MOST_LINES and _in_the_plane(parts):
        return _proved_linear(direction, "checked on every ray where a neuron changes sides")
    return _two_lines(parts, direction, lambda x: _same_sign(W, a, slope, x))


def _proved_linear(direction: Array, why: str) -> Linearity:
    return Linearity(True, "proved", direction, 0.0, None, why)


def _two_lines(parts: _Parts, direction: Array, refutes: Callable[[Array], bool]) -> Linearity | None:
    """At most one line of each sign, ``E = |g.x| - |h.x|``: a comparison of vectors; None with more lines."""
    plus, minus = (_only([x for x in parts.lines if s * x[0] > 0], len(parts.m)) for s in (1, -1))
    if plus is None or minus is None:
        return None
    for sign in (1, -1):
        ratio = multiple([p - sign * q for p, q in zip(plus, minus, strict=True)], parts.m)
        # E vanishes on the hyperplane of m, and |E| <= |ratio| |m.x| with equality somewhere.
        if ratio is None:
            continue
        if (1 - parts.alpha) * abs(ratio) < 1 + parts.alpha:
            why = "the even part vanishes with the odd part and is smaller: perfectly clustered neurons"
            return _proved_linear(direction, why)
        for x in _where_equal(plus, minus, sign, direction):
            if refutes(x):
                return Linearity(False, "proved", direction, np.inf, x, "the even part outweighs the odd part")
    return None


def _only(lines: list[tuple[Fraction, Rationals]], width: int) -> Rationals | None:
    """Return ``|e| r`` of the only line, the zero vector without one, None with more."""
    if len(lines) > 1:
        return None
    return [abs(e) * v for e, r in lines for v in r] or [Fraction(0)] * width


def _where_equal(g: Rationals, h: Rationals, sign: int, direction: Array) -> list[Array]:
    """Points off the hyperplane where g.x and h.x have the sign that makes |E| largest."""
    u, v = (np.array([float(c) for c in x]) for x in (g, h))
    x = _unit(u) + sign * _unit(v)
    return [_unit(x) + c * direction for c in (0.0, 0.01, -0.01, 0.1, -0.1, 1.0)]


def _unit(x: Array) -> Array:
    """``x / |x|``, 0 for the zero vector."""
    return np.asarray(x / max(float(np.linalg.norm(x)), TINY))


def _merge_lines(W: Array, rows: list[Rationals], out: Rationals) -> list[tuple[Fraction, Rationals]]:
    """``E(x) = sum e |r . x|`` with one term a line."""
    lines: dict[tuple[Fraction, ...], Fraction] = {}
    for w, row, c in zip(W, rows, out, strict=True):
        pivot = row[int(np.flatnonzero(w)[0])]
        key = tuple(v / pivot for v in row)
        lines[key] = lines.get(key, Fraction(0)) + c * abs(pivot)
    return [(e, list(r)) for r, e in lines.items()]


def _in_the_plane(parts: _Parts) -> bool:
    """In two dimensions E is linear between rays, so the inequality need only hold on them."""
    m = parts.m
    for x in [*([-r[1], r[0]] for _, r in parts.lines), [-m[1], m[0]], m]:
        check_time("deciding whether the network is linear")
        odd = abs(dot(m, x))
        even = abs(total(e * abs(dot(r, x)) for e, r in parts.lines))
        if even != 0 if odd == 0 else (1 - parts.alpha) * even >= (1 + parts.alpha) * odd:
            return False
    return True


# -- bounds on the wedge --------------------------------------------------------------------------------


def _wedge_of_clusters(W: Array, a: Array, slope: float, m: Array) -> float:
    """SBG-T5.1s with any output weights: a phi(w.x) = pi phi((a w/pi).x), pi in proportion to |a w|."""
    if slope == 0.0:
        return np.inf
    radius = max(_spread(np.abs(a[s])[:, None] * W[s]) for s in (a > 0, a < 0))
    return (1 - slope) / (1 + slope) * radius / float(np.linalg.norm(m))


def _spread(parts: Array) -> float:
    """Largest distance from the sum of the parts, each blown up to the length of all."""
    length = np.linalg.norm(parts, axis=1)
    if not length.size:
        return 0.0
    return float(np.linalg.norm(parts / (length / length.sum())[:, None] - parts.sum(axis=0), axis=1).max())


def _wedge_of_lines(W: Array, a: Array, slope: float, m: Array) -> float:
    """Bound it through E alone, after neurons on nearly one line have been merged (antipodal pairs cancel)."""
    norms = np.linalg.norm(W, axis=1)
    unit, weight = W / norms[:, None], a * norms
    loose, lines, strength = 0.0, [], []
    left = np.arange(len(a))
    while left.size:
        axis = unit[left[np.argmax(np.abs(weight[left]))]]
        off = np.linalg.norm(unit[left] - (unit[left] @ axis)[:, None] * axis, axis=1)
        near = off < _ONE_LINE
        loose += float(np.abs(weight[left[near]]) @ off[near])
        lines.append(axis)
        strength.append(float(weight[left[near]] @ np.abs(unit[left[near]] @ axis)))
        left = left[~near]
        if len(lines) > 200:
            return np.inf
    L, e = np.array(lines), np.array(strength)
    gone = np.abs(e) < _CANCELS * np.abs(weight).sum()
    loose += float(np.abs(e[gone]).sum())
    L, e = L[~gone], e[~gone]
    size = float(np.linalg.norm(m))
    parts = []
    for s in (e > 0, e < 0):
        own = np.abs(e[s])[:, None] * L[s]
        own *= np.where(own @ own[np.argmax(np.abs(e[s]))] < 0, -1.0, 1.0)[:, None] if len(own) else 1.0
        loose += _spread(own)
        parts.append(own.sum(axis=0))
    best = np.inf
    for sign in (1, -1):
        difference = parts[0] - sign * parts[1]
        ratio = float(difference @ m) / size**2
        rest = float(np.linalg.norm(difference - ratio * m))
        room = (1 + slope) - (1 - slope) * abs(ratio)
        if room > 0:
            best = min(best, (1 - slope) * (loose + rest) / (room * size))
    return best


# -- witnesses ------------------------------------------------------------------------------------------


def _even(W: Array, a: Array, x: Array) -> Array:
    return np.asarray(np.abs(x @ W.T) @ a)


def _search(W: Array, a: Array, slope: float, m: Array, seed: int) -> tuple[Array | None, float]:
    """Find a point far from the hyperplane of m where f(x) and f(-x) agree in sign, and how far it is."""
    size = float(np.linalg.norm(m))
    axis = m / size
    base = _around(W, axis, np.random.default_rng(seed))
    best, found = None, -1.0
    for count, sines in (
        (20, _FEW_SINES),
        (1, _MANY_SINES),
    ):
        gain = np.full(len(base), -np.inf)
        for sine in sines:
            check_time("looking for where the network is not linear")
            for side in (1.0, -1.0):
                x = np.sqrt(1 - sine**2) * base + side * sine * axis
                gap = (1 - slope) * np.abs(_even(W, a, x)) - (1 + slope) * size * sine
                gain = np.maximum(gain, gap)
                k = int(np.argmax(gap))
                if gap[k] > _POSITIVE * size and sine > found:
                    best, found = x[k], float(sine)
        base = base[np.argsort(-gain)[:count]]
    return best, found


def _around(W: Array, axis: Array, rng: np.random.Generator) -> Array:
    """Draw unit vectors orthogonal to the axis: at random, and orthogonal to a neuron too, where E has its kinks."""
    some = W[rng.permutation(len(W))[:100]]
    base = np.vstack([rng.standard_normal((100, axis.size)), some, rng.standard_normal((len(some), axis.size))])
    base = base - (base @ axis)[:, None] * axis
    kink = some - (some @ axis)[:, None] * axis
    length = np.linalg.norm(kink, axis=1, keepdims=True)
    kink = np.divide(
        kink, length, out=np.zeros_like(kink), where=length > _OFF_NEURON * np.linalg.norm(some, axis=1, keepdims=True)
    )
    base[-len(some) :] -= (base[-len(some) :] * kink).sum(axis=1)[:, None] * kink
    length = np.linalg.norm(base, axis=1)
    keep = length > _OFF_AXIS * length.max()
    return np.vstack([base[keep] / length[keep, None], np.zeros((1, axis.size))])


def _no_odd_part(W: Array, a: Array, slope: float, exact: bool, seed: int) -> Linearity:
    rng = np.random.default_rng(seed)
    x = np.vstack([rng.standard_normal((200, W.shape[1])), W[:200]])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    point = x[int(np.argmax(np.abs(_even(W, a, x))))]
    proved = exact and _same_sign(W, a, slope, point)
    if not proved:
        return Linearity(None, "numerical", None, np.inf, None, "odd and even part cannot be told from zero")
    return Linearity(False, "proved", None, np.inf, point, "f(x) and f(-x) have the same sign")


def _same_sign(W: Array, a: Array, slope: float, x: Array) -> bool:
    """Whether f(x) and f(-x) are surely not of opposite sign, not both zero."""
    low, high = _enclose(W, a, slope, x)
    back_low, back_high = _enclose(W, a, slope, -x)
    one_way = min(low, back_low) >= 0 and max(low, back_low) > 0
    other_way = max(high, back_high) <= 0 and min(high, back_high) < 0
    return bool(one_way or other_way)


def _enclose(W: Array, a: Array, slope: float, x: Array) -> tuple[float, float]:
    """Bounds on f(x) that hold in spite of rounding."""
    z = W @ x
    error = (x.size + 4) * EPS * (np.abs(W) @ np.abs(x))
    low, high = z - error, z + error
    f_low, f_high = np.where(low > 0, low, slope * low), np.where(high > 0, high, slope * high)
    value = a * np.where(z > 0, z, slope * z)
    width = np.abs(a) * (f_high - f_low)
    total = float(value.sum())
    slack = float(width.sum()) + (a.size + 4) * EPS * float(np.abs(value).sum())
    return total - slack, total + slack
