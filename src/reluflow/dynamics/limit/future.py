r"""The future of the neurons that a limit leaves out, if the network stays at it for ever.

At a KKT point the samples pull with constant strengths, their multipliers :math:`\lambda_i`, in the clock
:math:`s = \log|\theta|` in which the neurons that carry the network grow like :math:`e^s`. A neuron too small to change
that moves alone, by :math:`w' = a \sum_i \lambda_i h_i y_i x_i`, :math:`a' = \sum_i \lambda_i y_i \phi(w \cdot x_i)`:
the early phase with :math:`\lambda_i` in place of g(0), which `align` solves exactly, through every hyperplane, every
slide and w = 0, to its final rate of growth k. Because :math:`\phi` is homogeneous the strengths are a change of the
points to :math:`\lambda_i x_i`.

If k < 1 the neuron vanishes beside the network, for ever. If k > 1 the point is only a plateau: the neuron carries the
network from :math:`s = (\log|\theta| - A)/(k - 1)` on, A its amplitude (NUM-F4). On the way it may also come to see a
point that no neuron felt before: then that point is not lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...problem import Dataset, Network, Problem, ReluflowError, Stopped
from ...problem.types import Array, Index
from ...sectors.exact import as_rationals, multiple
from ..early.alignment import Alignment, Branch, align
from ..flow.events import TINY
from ..flow.field import Geometry
from ..flow.origin import Exit, way_out
from ..flow.state import State
from .candidate import Candidate

_RANK = 1e-9  # singular values below this part of the largest are 0
_TIE = 1e-8  # rates this near to 1 are not told from it
_SAME = 1e-6  # unit vectors nearer than this are one direction
_TOUCH = 1e-9  # cosines below this are on the hyperplane
_UNFITTED = 1e6  # how much more strongly than the others a point that no neuron feels pulls: not at all known, but more
_DISTURBED = 1e-6  # disturbances, as part of a neuron, that show where it would go if it is not exactly where it seems
_EPS = 8 * float(np.finfo(np.float64).eps)  # rounding of a neuron on its path, as part of what it was
_ASTRAY = 1e-12  # how far rounding may lead a neuron from a line that it never leaves
_MOMENT = 1e-12  # moments closer than this, relatively, are one
_NEVER = 1e12  # what does not happen while log |theta| grows so far does not happen
_BEFORE = 4.0  # a plateau is left when the neuron that ends it has e^-(2 this) of the squared norm: still no matter


@dataclass(frozen=True, eq=False)
class Future:
    """What becomes of the neurons that carry nothing.

    Attributes
    ----------
    neurons : ndarray of int
        Who they are.
    rates : ndarray
        Their final rates of growth, in units of that of the network; below 1 they vanish.
    arrival : float
        How much ``log |theta|`` grows until the first of them counts; inf if none ever does.
    first : int
        The neuron that does.
    point : int
        The sample, so far felt by no neuron, that it comes to see; -1 if it outgrows the network.
    doubt : str
        Why the future could not be told; empty if it could.
    """

    neurons: Index
    rates: Array
    arrival: float
    first: int
    point: int
    doubt: str
    _early: Alignment | None
    _exit: tuple[int, Array] | None = None  # a neuron that leaves w = 0 at the arrival, and where to

    @property
    def lead(self) -> float:
        """How much ``log |theta|`` grows while the neuron that outgrows the network is about to, but does not count.

        0 where it is a moment at which something opens.
        """
        if self.point >= 0 or self._exit is not None:
            return 0.0
        return float(_BEFORE / (self.rates[np.flatnonzero(self.neurons == self.first)[0]] - 1))

    @property
    def fastest(self) -> float:
        """The largest final rate; 0 if there is no neuron."""
        return float(self.rates.max(initial=0.0))

    @property
    def joins(self) -> bool:
        """Whether one ends with the rate of the network."""
        return bool((np.abs(self.rates - 1) <= _TIE).any())

    def state(self, state: State, s: float) -> State:
        """Return the state when ``log |theta|`` has grown by s, in units in which the network is as large as now."""
        if self._early is None:
            return state
        net = self._early.network(s)
        U, log_w, log_a, sign = (x.copy() for x in (state.U, state.log_w, state.log_a, state.sign))
        U[self.neurons], sign[self.neurons] = net.directions, np.sign(net.a)
        log_w[self.neurons], log_a[self.neurons] = net.log_norms - s, net.log_outs - s
        if self._exit is not None:
            j, direction = self._exit
            U[j], log_w[j] = direction, log_a[j] + TINY
        return State(U, log_w, log_a, sign, state.sides)


#: What becomes of no neurons.
NOBODY = Future(np.empty(0, dtype=np.intp), np.empty(0), np.inf, -1, -1, "", None)


def left(geometry: Geometry, state: State, lost: Index) -> Index:
    """Return the neurons that may still come to something.

    One that feels a lost sample moves by that alone, whose pull does not fade: if it has shrunk beyond return by now,
    it is gone for good.
    """
    there = (np.isfinite(state.log_w) | np.isfinite(state.log_a)) & (state.sign != 0)
    held = (geometry.slopes(state.sides)[:, lost] != 0).any(axis=1)
    return np.flatnonzero(there & ~(held & (state.log_w <= geometry.gone)))


def strengths(geometry: Geometry, state: State, live: Index) -> Array:
    r"""How strongly samples pull now, in units in which the network grows with rate 1; 0 for those not felt.

    With :math:`w' = a \sum_i c\,p_i h_i y_i x_i`, and a' alike, :math:`(|\theta|^2/2)' = 2 c \sum_i p_i q_i`, which is
    to be :math:`|\theta|^2`.
    """
    net = state.network(geometry.slope)
    q = net.margins(geometry.problem.data)[live]
    log_g = geometry.problem.loss.log_force(q)
    with np.errstate(under="ignore"):
        p = np.exp(log_g - log_g.max())
    out = np.zeros(geometry.problem.data.n)
    out[live] = p * np.exp(2 * net.log_norm("both")) / (2 * (p @ q))
    return out


def follow(geometry: Geometry, state: State, multipliers: Array, living: Network, small: Index, lost: Index) -> Future:
    """Follow small neurons at a KKT point.

    Parameters
    ----------
    geometry, state
        The problem, and the neurons as they are.
    multipliers : ndarray of shape (n,)
        Of the samples, such that neurons of the network grow with rate 1; 0 for those that are lost.
    living : Network
        The network at the KKT point.
    small : ndarray of int
        The neurons to follow.
    lost : ndarray of int
        Samples that no neuron feels.
    """
    if small.size == 0:
        return NOBODY
    state = _straight(geometry, state, small)
    # A neuron that would unlearn a lost point slides on its hyperplane; one that would learn it comes to see it.
    multipliers, strong = multipliers.copy(), _UNFITTED * multipliers.max()
    multipliers[lost] = np.where(np.isin(-geometry.y[lost], state.sign[small]), strong, 0.0)
    one = _follow(geometry, state, multipliers, living, small, lost, "regular")
    if one._early is None or not one._early.nonunique.any():
        return one
    other = _follow(geometry, state, multipliers, living, small, lost, "leave")
    if not other.doubt and (one.arrival == other.arrival == np.inf):
        return one
    which = int(small[np.flatnonzero(one._early.nonunique)[0]])
    return _undecided(small, one.rates, f"neuron {which} reaches a place where it may go on in several ways")


def beside(geometry: Geometry, state: State, found: Candidate, small: Index, lost: Index) -> Future:
    """Follow small neurons at a KKT point beside which points rest in balance.

    Those pull infinitely more strongly than the others, to no effect on neurons whose patterns are in the balance. One
    that comes to feel them grows, or shrinks, at once.
    """
    if found.still is None:
        raise ValueError("no point is in balance")
    multipliers, g = found.multipliers.copy(), found.still.pulls
    multipliers[found.still.points] = _holding(geometry, state, found, found.still.points, small)
    multipliers[found.still.points] += _UNFITTED * multipliers.max() * g / g.max()
    future = follow(geometry, state, multipliers, found.network, small, lost)
    if future.doubt or future.arrival == np.inf:
        return future
    return _undecided(small, future.rates, f"neuron {future.first} comes to feel points in balance, and grows")


def _holding(geometry: Geometry, state: State, found: Candidate, still: Index, small: Index) -> Array:
    """Multipliers of points in balance that leave the small neurons that hold them where they are, as far as can be.

    What they do to the living groups is given. The rest is open in the program; the flow settles it by small neurons
    that move until these multipliers do not move them any more.
    """
    from scipy.linalg import null_space

    def effect(slopes: Array) -> Array:
        return np.hstack([(row * geometry.y)[:, None] * geometry.X for row in np.unique(slopes, axis=0)])

    living = [np.where(group.pattern > 0, 1.0, geometry.slope) for group in found.living_groups]
    given, free = found.multipliers[still], null_space(effect(np.array(living))[still].T, rcond=_RANK)
    if not small.size or not free.shape[1]:
        return given
    on_small = effect(geometry.slopes(state.sides[small]))
    wanted = -(found.multipliers @ on_small)
    return np.asarray(given + free @ np.linalg.lstsq(on_small[still].T @ free, wanted, rcond=_RANK)[0])


def _straight(geometry: Geometry, state: State, small: Index) -> State:
    """Put neurons back on the line they never leave, from which the rounding of many steps leads away.

    By the numbers given, such a neuron is a multiple of every point it feels; a shrinking one would turn rounding into
    a direction.
    """
    net, X, U = geometry.problem.net, geometry.problem.data.X, state.U.copy()
    for j in small:
        cosine = float(U[j] @ net.directions[j])
        if np.linalg.norm(U[j] - np.sign(cosine) * net.directions[j]) > _ASTRAY:
            continue
        felt = geometry.slopes(state.sides[[j]])[0] != 0
        given = as_rationals(net.W[j])
        if all(multiple(as_rationals(x), given) is not None for x in X[felt]):
            U[j] = np.sign(cosine) * net.directions[j]
    return replace(state, U=U)


def _follow(
    geometry: Geometry, state: State, multipliers: Array, living: Network, small: Index, lost: Index, branch: Branch
) -> Future:
    data = geometry.problem.data
    try:
        early = _under(geometry, multipliers, state.of(small).network(geometry.slope), branch)
    except Stopped:  # Ctrl-C and the time limit end the search, not this question
        raise
    except ReluflowError as error:
        return _undecided(small, np.full(small.size, np.nan), f"the future of a small neuron was not found: {error}")
    rates = early.growth
    size = np.logaddexp(2 * state.log_w, 2 * state.log_a)
    whole = float(np.logaddexp.reduce(size[np.isfinite(size)])) / 2
    ties = np.abs(rates - 1) <= _TIE
    for j in np.flatnonzero(ties):
        if not _joins(living, early.direction[j], float(early.signs[j])):
            return _undecided(small, rates, f"neuron {small[j]} ends with exactly the rate of the network")
    for which in (k for k, fate in enumerate(early.fates) if fate == "stuck"):
        if why := _knife_edge(geometry, state, multipliers, early, int(small[which]), which, lost):
            return _undecided(small, rates, why)
    with np.errstate(divide="ignore", invalid="ignore"):
        arrival = np.where((rates > 1) & ~ties, (whole - early.log_amplitude) / (rates - 1), np.inf)
    arrival = np.maximum(arrival, 0.0)
    first = int(np.argmin(arrival))
    when, who, point = float(arrival[first]), int(small[first]), -1
    if lost.size and geometry.slope == 0:
        seen, neuron, which = _sees(early, data.X[lost])
        if seen < when:
            when, who, point = seen, int(small[neuron]), int(lost[which])
    pulls = data.y * multipliers
    pulls[lost] = data.y[lost] * _UNFITTED * multipliers.max()
    leaves = _leaves(geometry, early, pulls)
    if leaves is not None and leaves[0] < when:
        when, neuron, direction = leaves
        who = int(small[neuron])
        point = next((int(i) for i in lost if data.X[i] @ direction > 0), -1)
        return Future(small, rates, when, who, point, "", early, (who, direction))
    return Future(small, rates, when, who if np.isfinite(when) else -1, point, "", early)


def _under(geometry: Geometry, multipliers: Array, net: Network, branch: Branch = "regular") -> Alignment:
    """Solve the early phase of a network under constant pulls."""
    data, pulls = geometry.problem.data, np.flatnonzero(multipliers > 0)
    X, member = np.unique(multipliers[pulls, None] * data.X[pulls], axis=0, return_inverse=True)
    y = np.bincount(member.ravel(), weights=data.y[pulls])  # equal pulls on one point add up, or cancel
    weighted = Dataset(np.abs(y[y != 0])[:, None] * X[y != 0], np.sign(y[y != 0]))
    # Exponential loss and a sum: every sample then pulls with strength one.
    return align(Problem(weighted, net, loss="exponential", reduction="sum"), branch=branch)


def _knife_edge(
    geometry: Geometry, state: State, multipliers: Array, early: Alignment, j: int, which: int, lost: Index
) -> str:
    """Why the end of a neuron at which every disturbance grows may not be believed; empty if it may.

    It may if the neuron is there exactly, by the numbers given, or if it vanishes with every small disturbance too.
    """
    X = geometry.problem.data.X
    felt = (early.pattern[which] > 0) | (geometry.slope > 0)
    felt_X = X[np.flatnonzero(multipliers > 0)[felt]]
    given = as_rationals(geometry.problem.net.W[j])
    if not felt_X.size or all(multiple(as_rationals(x), given) is not None for x in felt_X):
        return ""
    u = state.U[j]
    flat = np.abs(u) > 0
    pull = (early.problem.data.y * np.where(early.pattern[which] > 0, 1.0, geometry.slope)) @ early.problem.data.X
    if flat.sum() == 1 and (np.abs(pull[~flat]) <= _SAME * np.abs(pull).max()).all():
        return ""  # along an axis that the pulls keep, but for the rounding of the multipliers
    aside = X - np.outer(X @ u, u)
    size = np.linalg.norm(aside, axis=1)
    aside = aside[size > _SAME * geometry.problem.data.norms] / size[size > _SAME * geometry.problem.data.norms, None]
    steps = np.vstack([aside, -aside, np.zeros((2, u.size))])
    U = u + _DISTURBED * steps
    U /= np.linalg.norm(U, axis=1)[:, None]
    log_a = np.full(len(U), state.log_a[j])
    log_a[-2:] += [_DISTURBED, -_DISTURBED]
    ends = _under(
        geometry,
        multipliers,
        Network.from_polar(U, np.full(len(U), state.log_w[j]), log_a, np.full(len(U), state.sign[j]), geometry.slope),
    )
    sees = lost.size and geometry.slope == 0 and np.isfinite(_sees(ends, X[lost])[0])
    if not sees and (ends.growth <= 1 + _TIE).all():
        return ""
    return f"neuron {j} goes to where every disturbance grows, and doubles do not tell how exactly"


def _leaves(geometry: Geometry, early: Alignment, c: Array) -> tuple[float, int, Array] | None:
    """First moment at which a neuron is at w = 0 with a way out along which it outgrows the network; which, and where.

    `align` leaves such a neuron at rest.
    """
    best: tuple[float, int, Array] | None = None
    ends = early.last_event
    ways: dict[float, Exit | None] = {}
    for j in np.flatnonzero(~early.force.astype(bool) | (early.growth <= 0)):
        t = float(ends[j])
        if np.isfinite(early.log_norms(t)[j]) or not np.isfinite(early.log_outs(t)[j]):
            continue
        sign = float(early.output_signs(t)[j])
        if sign not in ways:
            ways[sign] = way_out(geometry, sign, c)
        way = ways[sign]
        if way is not None and way.rate > 1 + _TIE and (best is None or t < best[0]):
            best = (t, int(j), way.direction)
    return best


def _joins(living: Network, direction: Array, sign: float) -> bool:
    """Whether a neuron ends in a direction of the network, where it keeps its part in it for ever."""
    cosine = living.directions @ direction
    if living.slope == 1.0:  # (w, a) and (-w, -a) are the same function
        return bool((np.sign(living.a) * sign * cosine > 1 - _SAME).any())
    return bool(((cosine > 1 - _SAME) & (np.sign(living.a) == sign)).any())


def _undecided(small: Index, rates: Array, why: str) -> Future:
    return Future(small, rates, np.inf, -1, -1, why, None)


def _sees(early: Alignment, X: Array) -> tuple[float, int, int]:
    """First moment at which a neuron comes to see one of some points: the moment, the neuron, the point.

    Paths are straight between events, so a change of side shows at the events or in the end, and the moment lies
    between. One that only touches the hyperplane, in the limit, does not cross it.
    """
    size = np.linalg.norm(X, axis=1)
    best = (np.inf, -1, -1)

    def sees(j: int, times: Array) -> Array:
        # A neuron that has become small by going to w = 0 is known as a part of what it was.
        logs = np.array([early.log_norms(float(t))[j] for t in times])
        start = float(early.log_norms(0.0)[j])
        shrunk = np.where(np.isfinite(logs), start - np.where(np.isfinite(logs), logs, 0.0), np.inf)
        known = _TOUCH + _EPS * np.exp(np.clip(shrunk, 0.0, -np.log(_EPS)))
        return np.asarray(early.directions(times)[:, j] @ X.T > known[:, None] * size)

    for j in range(early.p):
        times = np.unique(np.append(early.events(j)["time"], 0.0))
        seen = np.vstack([sees(j, times), early.direction[j] @ X.T > _TOUCH * size])
        if not seen.any():
            continue
        k, i = (int(v) for v in np.argwhere(seen)[0])
        before = float(times[max(k - 1, 0)])
        after = float(times[k]) if k < times.size else max(2 * before, 1.0)
        while k == times.size and not sees(j, np.array([after]))[0, i] and after < _NEVER:
            before, after = after, 2 * after
        while after - before > _MOMENT * after:
            middle = (before + after) / 2
            before, after = (before, middle) if sees(j, np.array([middle]))[0, i] else (middle, after)
        if after < best[0]:
            best = (after, j, i)
    return best
