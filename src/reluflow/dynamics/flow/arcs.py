r"""One neuron through one step, and through everything that happens to it on the way: compiled.

Given the forces as polynomials in :math:`\sigma`, the part of the step that has passed, the neurons do not know each
other. Between two events a neuron is the Taylor series of

.. math:: dw/d\sigma = h\,b\,D(\sigma), \qquad db/d\sigma = h\,w \cdot D(\sigma)

(b stays where only the first layer is trained). The equations are linear, so a neuron is carried over its own size:
:math:`|w|^2 + b^2 = 1` at the start of a step, e^-3000 or not. Where a face (a hyperplane of the data) is reached D
jumps by the kink of that face along its normal; where both sides push to the face the neuron is held on it: D is
projected, the multipliers that do it are polynomials too, and it leaves where one of them reaches a bound. An event
costs O(K d).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...problem.types import Ints, Signs
from ..early.state import Floats, add, dot, jit, put
from .passes import count_held, count_near, kinks_behind
from .roots import column_about, first_root, shift_vectors, value

if TYPE_CHECKING:
    from .desk import Desk

TERMS = 20  #: most terms of a Taylor series
NODES = 10  #: most nodes of the polynomial of the forces
#: How a neuron came through a step: to its end, or up to something that is decided outside (see `Came.status`).
THROUGH, HARD, FULL = range(3)
_BENT = 3  # to the end of a piece, but its events turned it so that it may have met faces that were not watched
CANCELLED = 9e-16  #: a sum of pulls below this part of their sizes is rounding
FLIP = -1  #: in the log, in place of a face: the output weight changed sign

_STRIDE = 1.5  # longest piece of a step in units of 1/|force|: Taylor series converge there to rounding in 20 terms
_HELD, _FRESH, _PLAIN = 2, 1, 0  # flags of candidates: held, just crossed or left, other
_CROWD = 40  # events without any motion between them, after which the neuron is given up
_ORIGIN = 1e-11  # |w| below this part of |b| at an event: the neuron is at w = 0
_ROUND = 4e-16  # a distance below this part of |w| is rounding
_WIDER = 1.5  # curvature may grow by this through the events of a piece
_MANY = 64  # faces from which on it pays to see first whether any is near
_SOLID = 1e-12  # a pivot of the normals below this: they depend on each other
_EDGE = 1e-12  # a push below this part of all that pulls may be rounding: it does not lead off a face
_FEW = 4  # inputs below which sums stay in registers: a loop costs more than what it does
_LEAVES = 1e-12  # a multiplier within this part of its bound is on it: for `_leaving` and `_relax` alike


class Step(NamedTuple):
    """What all neurons of a step share."""

    normals: Floats  # (m, d) of the faces
    kink: Floats  # (K, m) jumps of the force across each, coefficients in sigma
    C: Floats  # (K, K) Lagrange coefficients
    terms: int  # K
    first: int  # where in the history the K nodes begin
    h: float
    upto: float  # the part of the step that is wanted, at most 1
    tiny: float  # terms of the Taylor series below this part of |(w, b)| are left out
    frozen: bool
    watch: bool  # whether events are looked for
    bare: bool  # on the negative side of every face nothing pulls


class Came(NamedTuple):
    """Where the neurons came to."""

    W: Floats
    b: Floats
    grow: Floats  # (p,) log of the size, which was 1
    status: Ints  # (p,)
    end: Floats  # (p,) sigma of the end
    n: Ints  # (p,) events
    face: Ints  # (p, cap)
    side: Signs  # (p, cap) after the event
    when: Floats  # (p, cap)
    moments: Floats  # (p, 3, d) of the jumps of a w', over the square of the size at the end
    own: Floats  # (p, cap, 3) moments of what an event does to the output of its own face, likewise
    bend: Floats  # (p,) bound of how far the arc is off the line between its ends; below 0: not to be relied upon


class Bench(NamedTuple):
    """Room to work in, for one thread."""

    w: Floats
    old: Floats
    T: Floats  # (TERMS + 1, d)
    tb: Floats  # (TERMS + 1,)
    D: Floats  # (NODES + 1, d) force about the present place, held faces on their negative side
    P: Floats  # (NODES + 1, d) the same, tangent to the held faces
    Q: Floats  # (most, d) orthonormal rows spanning the held normals
    R: Floats  # (most, most) normals[held].T = Q.T R
    lam: Floats  # (most, NODES + 1) multipliers
    gram: Floats  # (most, most)
    L: Floats
    per: Floats  # (4, most): right-hand side, solution, part, jump
    held: Ints  # (most,)
    on: Ints
    order: Ints
    free: Signs
    poly: Floats
    kp: Floats
    side: Signs  # (m,)
    near: Ints  # (m,) candidates ...
    seen: Floats  # (5, m) ... sigma, z, dz of the last look, and the sums of the jumps then
    flag: Signs
    z: Floats  # (2, m)


def new_bench(m: int, d: int) -> Bench:
    """Allocate."""
    most = min(m, d) + 2
    integer, byte = np.int64, np.int8
    return Bench(
        np.empty(d),
        np.empty(d),
        np.empty((TERMS + 1, d)),
        np.empty(TERMS + 1),
        np.empty((NODES + 1, d)),
        np.empty((NODES + 1, d)),
        np.empty((most, d)),
        np.empty((most, most)),
        np.empty((most, NODES + 1)),
        np.empty((most, most)),
        np.empty((most, most)),
        np.empty((4, most)),
        np.empty(most, integer),
        np.empty(most, integer),
        np.empty(most, integer),
        np.empty(most, byte),
        np.empty(max(TERMS, NODES) + 2),
        np.empty(NODES + 2),
        np.empty(m, byte),
        np.empty(m, integer),
        np.empty((5, m)),
        np.empty(m, byte),
        np.empty((2, m)),
    )


def new_came(p: int, m: int, d: int) -> Came:
    """Allocate what a sweep writes."""
    cap = min(4096, 8 * m + 64)
    return Came(
        np.empty((p, d)),
        np.empty(p),
        np.zeros(p),
        np.full(p, THROUGH),
        np.zeros(p),
        np.zeros(p, np.int64),
        np.empty((p, cap), np.int64),
        np.empty((p, cap), np.int8),
        np.empty((p, cap)),
        np.zeros((p, 3, d)),
        np.empty((p, cap, 3)),
        np.empty(p),
    )


# -- arcs -------------------------------------------------------------------------------------------------


@jit
def _combine(weights: Floats, rows: Floats, n: int, out: Floats) -> None:
    """``sum_k weights_k rows_k`` over the first n, of which there is one; the rows are short.

    With `passes.combine` in its place, which is for long ones, problems in two dimensions took a sixth longer.
    """
    if out.size < _FEW:
        for i in range(out.size):
            v = weights[0] * rows[0, i]
            for k in range(1, n):
                v += weights[k] * rows[k, i]
            out[i] = v
        return
    put(weights[0], rows[0], out)
    for k in range(1, n):
        if weights[k] != 0.0:
            add(weights[k], rows[k], out)


@jit
def _series(bench: Bench, D: Floats, b: float, step: Step, reach: float) -> tuple[int, float]:
    """Taylor series of the neuron about the present place; its order, and a bound of |w''| up to ``reach``."""
    T, tb, terms = bench.T, bench.tb, step.terms
    put(1.0, bench.w, T[0])
    tb[0] = b
    limit = step.tiny * math.sqrt(dot(bench.w, bench.w) + b * b)
    power, bend = 1.0, 0.0
    for m in range(TERMS):
        f = step.h / (m + 1)
        s, n = 0.0, min(m + 1, terms)
        for k in range(n):
            bench.poly[k] = tb[m - k] * f
            if not step.frozen:
                s += dot(T[m - k], D[k])
        _combine(bench.poly, D, n, T[m + 1])
        tb[m + 1] = s * f
        size = math.sqrt(dot(T[m + 1], T[m + 1]))
        if m >= 1:
            bend += (m + 1) * m * size * power  # power = reach^(m - 1)
            power *= reach
        if m >= 2 and (size + abs(tb[m + 1])) * power * reach < limit:
            return m + 1, bend
    return TERMS, bend


@jit
def _move(T: Floats, order: int, x: float, out: Floats) -> None:
    """Value at x of a polynomial with rows as coefficients."""
    for i in range(out.size):
        v = T[order, i]
        for m in range(order - 1, -1, -1):
            v = v * x + T[m, i]
        out[i] = v


@jit
def _strength(D: Floats, terms: int) -> float:
    """Bound of the size of a polynomial with rows as coefficients, on [0, 1]."""
    total = 0.0
    for k in range(terms):
        total += math.sqrt(dot(D[k], D[k]))
    return total


@jit
def _short(D: Floats, terms: int, length: float) -> bool:
    """Whether a piece of this length is surely below a stride: ``_strength`` without its roots."""
    total = 0.0
    for k in range(terms):
        total += dot(D[k], D[k])
    return length * length * terms * total < 0.99 * _STRIDE * _STRIDE


@jit
def _tangent(step: Step, bench: Bench, n_held: int, mass: float) -> bool:
    """Project force and place on the held faces, and find the multipliers; not if the faces depend on each other."""
    d, terms, Q, R = bench.w.size, step.terms, bench.Q, bench.R
    if n_held >= d:
        return False
    for i in range(n_held):
        q = Q[i]
        put(1.0, step.normals[bench.held[i]], q)
        for a in range(i):
            R[a, i] = 0.0
        for _ in range(2):
            for a in range(i):
                t = dot(Q[a], q)
                R[a, i] += t
                add(-t, Q[a], q)
        size = math.sqrt(dot(q, q))
        if size < 1e-10:
            return False
        R[i, i] = size
        put(1.0 / size, q, q)
    for k in range(terms):
        put(1.0, bench.D[k], bench.P[k])
        for i in range(n_held):
            t = dot(Q[i], bench.P[k])
            add(-t, Q[i], bench.P[k])
            bench.per[0, i] = -t
        for i in range(n_held - 1, -1, -1):
            t = bench.per[0, i]
            for a in range(i + 1, n_held):
                t -= R[i, a] * bench.lam[a, k]
            bench.lam[i, k] = t / R[i, i]
    if _strength(bench.P, terms) <= CANCELLED * mass:
        for k in range(terms):
            put(0.0, bench.P[k], bench.P[k])
    _put_on(bench, n_held)
    return True


@jit
def _put_on(bench: Bench, n_held: int) -> None:
    for _ in range(2):
        for i in range(n_held):
            add(-dot(bench.Q[i], bench.w), bench.Q[i], bench.w)


@jit
def _slack(step: Step, sides: Signs, z1: Floats, pull: float, bend: float) -> float:
    """How near a face must be to an end of a piece so that it may be met on the way."""
    return 1.2 * pull * kinks_behind(step.kink[0], sides, z1) + bend / 8 + 1e-12


@jit
def _calm(step: Step, crowd: Desk, came: Came, Z1: Floats, j: int) -> bool:
    """Whether a neuron meets nothing, by where it came to without looking (``Z1``, over its size there)."""
    if not step.watch:
        return True
    if came.bend[j] < 0.0 or (crowd.tied[j] == 0 and not step.frozen) or count_held(crowd.sides[j]) > 0:
        return False
    slack = _slack(step, crowd.sides[j], Z1[j], step.h * abs(crowd.b[j]), came.bend[j])
    return count_near(crowd.sides[j], crowd.Z[j], Z1[j], slack, slack * math.exp(-came.grow[j])) == 0


@jit
def _candidates(
    step: Step, bench: Bench, z0: Floats, z1: Floats, pull: float, bend: float, wide: bool
) -> tuple[int, float]:
    """List the faces that may be reached: those near at an end of the piece, and how near that is."""
    slack = math.inf if wide else _slack(step, bench.side, z1, pull, bend)
    n, rounding = 0, 64 * _ROUND * math.sqrt(dot(bench.w, bench.w))
    if z0.size >= _MANY and count_near(bench.side, z0, z1, slack, slack) == 0:
        return 0, slack
    for k in range(z0.size):
        s = bench.side[k]
        if s != 0 and (s * z1[k] <= slack or s * z0[k] <= slack):
            bench.near[n] = k
            bench.seen[0, n] = -1.0
            bench.flag[n] = _FRESH if abs(z0[k]) <= rounding else _PLAIN
            n += 1
    return n, slack


@jit
def _leaving(step: Step, bench: Bench, n_held: int, at: float, best: float, mass: float) -> tuple[float, int, int]:
    """When a held face is left first, its place among them, and to which side."""
    which, to = -1, 0
    for i in range(n_held):
        column_about(step.kink, step.terms, bench.held[i], at, bench.kp)
        size = abs(bench.kp[0])
        sign = 1.0 if bench.kp[0] > 0.0 else -1.0
        for way in (-1, 1):
            for k in range(step.terms):
                bench.poly[k] = sign * (bench.lam[i, k] if way < 0 else bench.kp[k] - bench.lam[i, k])
            skip = bench.poly[0] <= _LEAVES * size
            rounding = max(1e-13 * size, _EDGE * mass)  # forces across each other: the multiplier stays on its bound
            t = first_root(bench.poly, step.terms - 1, best, skip, rounding)
            if 0.0 <= t < best:
                best, which, to = t, i, way
    return best, which, to


@jit
def _reaching(
    step: Step,
    bench: Bench,
    n: int,
    order: int,
    at: float,
    best: float,
    bend: float,
    sums: tuple[float, float],
    mass: float,
) -> tuple[float, int]:
    """When a candidate is reached first, and which; those that cannot be before are not looked at."""
    which = -1
    seen, T = bench.seen, bench.T
    size = math.sqrt(dot(T[0], T[0]))
    # Where pulls nearly cancel, what is left of them across a face just left is their rounding.
    still = _EDGE * (math.sqrt(dot(T[1], T[1])) + step.h * abs(bench.tb[0]) * mass)
    for q in range(n):
        if bench.flag[q] == _HELD:
            continue
        k = bench.near[q]
        s = bench.side[k]
        if seen[0, q] >= 0.0:
            e0, e1 = at - seen[0, q], at + best - seen[0, q]
            more = sums[0] - seen[3, q]
            b0 = 0.5 * bend * e0 * e0 + more * at - (sums[1] - seen[4, q])
            b1 = 0.5 * bend * e1 * e1 + more * (at + best) - (sums[1] - seen[4, q])
            if s * (seen[1, q] + seen[2, q] * e0) > b0 and s * (seen[1, q] + seen[2, q] * e1) > b1:
                continue
        normal = step.normals[k]
        for m in range(order + 1):
            bench.poly[m] = s * dot(T[m], normal)
        fresh = bench.flag[q] == _FRESH
        if fresh and bench.poly[0] > 64 * _ROUND * size:
            fresh = False
            bench.flag[q] = _PLAIN
        seen[0, q] = -1.0 if fresh else at
        seen[1, q], seen[2, q] = s * bench.poly[0], s * bench.poly[1]
        seen[3, q], seen[4, q] = sums
        t = first_root(bench.poly, order, best, fresh, still)
        if 0.0 <= t < best:
            best, which = t, q
    return best, which


# -- events -----------------------------------------------------------------------------------------------


@jit
def _switch(step: Step, bench: Bench, k: int, at: float, by: float) -> None:
    """Add the kink of face k to the force, or take it away."""
    column_about(step.kink, step.terms, k, at, bench.kp)
    for m in range(step.terms):
        add(by * bench.kp[m], step.normals[k], bench.D[m])


@jit
def _cholesky(bench: Bench, n: int) -> bool:
    """Solve for the free parts: gram x = right-hand side."""
    G, L, rhs, x, index = bench.gram, bench.L, bench.per[0], bench.per[1], bench.order
    for i in range(n):
        for j in range(i + 1):
            s = G[index[i], index[j]]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                if s <= _SOLID:
                    return False
                L[i, i] = math.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    for i in range(n):
        s = rhs[index[i]]
        for k in range(i):
            s -= L[i, k] * x[k]
        x[i] = s / L[i, i]
    for i in range(n - 1, -1, -1):
        s = x[i]
        for k in range(i + 1, n):
            s -= L[k, i] * x[k]
        x[i] = s / L[i, i]
    return True


@jit
def _push(bench: Bench, i: int, free: int) -> float:
    """Velocity across face i of those in ``on``, with the parts that the last solution has."""
    push = -float(bench.per[0, i])
    for q in range(free):
        push += bench.gram[i, bench.order[q]] * bench.per[1, q]
    return push


@jit
def _relax(step: Step, bench: Bench, sign: float, n: int, edge: float, left: int) -> bool:
    """Least velocity over the parts in [0, 1] to which the n faces in ``on`` are switched on: an active set.

    ``per[2]`` are the parts and ``free`` which may move, a warm start; ``per[3]`` the jumps, all < 0 (valleys).
    """
    G, rhs, x, part, jump = bench.gram, bench.per[0], bench.per[1], bench.per[2], bench.per[3]
    strongest = 0.0
    for i in range(n):
        strongest = max(strongest, abs(jump[i]))
        for j in range(i + 1):
            G[i, j] = G[j, i] = dot(step.normals[bench.on[i]], step.normals[bench.on[j]])
    for _ in range(20 * n + 20):
        free = 0
        for i in range(n):
            if bench.free[i] != 0:
                bench.order[free] = i
                free += 1
            s = -sign * dot(bench.D[0], step.normals[bench.on[i]])
            for j in range(n):
                if bench.free[j] == 0:
                    s -= G[i, j] * part[j] * jump[j]
            rhs[i] = s
        if free > 0:
            if not _cholesky(bench, free):
                return False
            way, stop, bound = 1.0, -1, 0.0
            for q in range(free):
                i = bench.order[q]
                goal = x[q] / jump[i]
                if goal < 0.0 and part[i] < way * (part[i] - goal):
                    way, stop, bound = part[i] / (part[i] - goal), i, 0.0
                elif goal > 1.0 and 1.0 - part[i] < way * (goal - part[i]):
                    way, stop, bound = (1.0 - part[i]) / (goal - part[i]), i, 1.0
            for q in range(free):
                i = bench.order[q]
                part[i] += way * (x[q] / jump[i] - part[i])
            if stop >= 0:
                part[stop] = bound
                bench.free[stop] = 0
                continue
        worst, who = _LEAVES * strongest, -1
        for i in range(n):
            if bench.free[i] == 0:
                push = _push(bench, i, free)
                bad = push if part[i] == 0.0 else -push  # off it must be pushed down, on it must be pushed up
                if bad > worst:
                    worst, who = bad, i
        if who < 0:
            for i in range(n):  # what is pushed by rounding alone stays
                if i != left and bench.free[i] == 0 and abs(_push(bench, i, free)) <= edge:
                    bench.free[i] = 1
            return True
        bench.free[who] = 1
    return False


@jit
def _note(step: Step, bench: Bench, came: Came, j: int, k: int, was: int, side: int, b: float, at: float) -> None:
    """Write down an event, and how it bends the output of its own face: a neuron begins or ceases to count there.

    The output has slope ``a z'`` while the neuron is on the positive side, and the jumps of ``a w'`` count from then to
    then only; with the sides at the end of the step, all of them were counted or none.
    """
    n = came.n[j]
    came.face[j, n], came.side[j, n], came.when[j, n] = k, side, at
    for q in range(3):
        came.own[j, n, q] = 0.0
    turn = (1.0 if side > 0 else 0.0) - (1.0 if was > 0 else 0.0)
    if k >= 0 and turn != 0.0:
        rate = step.h * b * b * dot(bench.old, step.normals[k]) if was != 0 else 0.0
        for q in range(3):
            came.own[j, n, q] = turn * (rate - dot(came.moments[j, q], step.normals[k]))
            rate *= at
    came.n[j] = n + 1


@jit
def _cross(step: Step, bench: Bench, came: Came, j: int, q: int, b: float, at: float) -> None:
    k = bench.near[q]
    s = bench.side[k]
    _switch(step, bench, k, at, -float(s))
    bench.side[k] = -s
    bench.flag[q] = _FRESH
    _note(step, bench, came, j, k, s, -s, b, at)


@jit
def _dies(step: Step, bench: Bench, k: int) -> bool:
    """Whether a neuron feels nothing on the other side of face k, but for faces that hold it; it rests there then."""
    if not step.bare or bench.side[k] < 0:
        return False
    count = 0
    for other in range(bench.side.size):
        count += 1 if bench.side[other] > 0 else 0
    return count == 1


@jit
def _die(step: Step, bench: Bench, came: Came, j: int, n: int, k: int, n_held: int, b: float, at: float) -> None:
    for m in range(step.terms):
        put(0.0, bench.D[m], bench.D[m])
    for i in range(n_held + 1):
        face = k if i == n_held else bench.held[i]
        _note(step, bench, came, j, face, bench.side[face], -1, b, at)
        bench.side[face] = -1
        bench.flag[_place(bench, n, face)] = _FRESH


@jit
def _place(bench: Bench, n: int, k: int) -> int:
    for q in range(n):
        if bench.near[q] == k:
            return q
    return -1


@jit
def _meet(
    step: Step,
    bench: Bench,
    came: Came,
    j: int,
    n: int,
    n_held: int,
    b: float,
    at: float,
    event: tuple[int, int, int],
    mass: float,
) -> tuple[int, float]:
    """Decide what a neuron does that reaches a face while it is held on others, or leaves one of those.

    ``event``: the place of the candidate it reaches or -1, the place of the held face it leaves or -1, to which side.
    Returns the number of faces that hold it then (-1: not decided) and a bound of the jump of the force.
    """
    reached, left, to = event
    sign = 1.0 if b > 0.0 else -1.0
    part, jump = bench.per[2], bench.per[3]
    total, met = n_held, 0
    for i in range(n_held):
        bench.on[i] = bench.held[i]
        bench.free[i] = 1
        column_about(step.kink, step.terms, bench.held[i], at, bench.kp)
        jump[i] = sign * bench.kp[0]
        part[i] = min(1.0, max(0.0, bench.lam[i, 0] / bench.kp[0])) if bench.kp[0] != 0.0 else 0.0
    if left >= 0:
        part[left] = 0.0 if to < 0 else 1.0
        bench.free[left] = 0
    size = 0.0
    if reached >= 0:
        k = bench.near[reached]
        met = bench.side[k]
        column_about(step.kink, step.terms, k, at, bench.kp)
        size = abs(bench.kp[0])
        if sign * bench.kp[0] >= 0.0:  # a ridge is crossed
            _cross(step, bench, came, j, reached, b, at)
        else:
            if met > 0:
                _switch(step, bench, k, at, -1.0)
            bench.on[total], jump[total], part[total] = k, sign * bench.kp[0], 1.0 if met > 0 else 0.0
            bench.free[total] = 1
            total += 1
    for i in range(total):
        if jump[i] >= 0.0:
            return -1, size
    if not _relax(step, bench, sign, total, _EDGE * mass, left):
        return -1, size
    held = 0
    for i in range(total):
        k = bench.on[i]
        q = _place(bench, n, k)
        was = 0 if i < n_held else met
        size += abs(jump[i])
        now = 0 if bench.free[i] != 0 else (1 if part[i] > 0.5 else -1)
        if now == 0:
            bench.held[held] = k
            held += 1
            bench.flag[q] = _HELD
        else:
            bench.flag[q] = _FRESH
            if now > 0:
                _switch(step, bench, k, at, 1.0)
        bench.side[k] = now
        if now != was:
            _note(step, bench, came, j, k, was, now, b, at)
    return held, size


@jit
def _weigh(bench: Bench, came: Came, j: int, force: Floats, h: float, b: float, at: float) -> float:
    """Moments of the jump of a w' at an event, from the old force to the new one; the size of that of w'."""
    square = 0.0
    for i in range(force.size):
        v = h * b * (force[i] - bench.old[i])
        square += v * v
        v *= b
        came.moments[j, 0, i] += v
        came.moments[j, 1, i] += v * at
        came.moments[j, 2, i] += v * at * at
    return math.sqrt(square)


@jit
def _arrive(step: Step, bench: Bench, crowd: Desk, came: Came, j: int) -> int:
    """Put neuron j at the start of the step; how many faces hold it, -1 if too many."""
    put(1.0, crowd.W[j], bench.w)
    for k in range(step.terms):
        _combine(step.C[k], crowd.F[j, step.first :], step.terms, bench.D[k])
    add(1.0, crowd.extra[j], bench.D[0])
    for k in range(bench.side.size):
        bench.side[k] = crowd.sides[j, k]
    held, many = 0, count_held(bench.side)
    if many > bench.held.size - 2:
        return -1
    if many > 0:
        for k in range(bench.side.size):
            if bench.side[k] == 0:
                bench.held[held] = k
                held += 1
    came.n[j] = 0
    came.grow[j] = 0.0
    for q in range(3):
        put(0.0, bench.w, came.moments[j, q])
    return held


@jit
def _look_around(
    step: Step, bench: Bench, n_held: int, order: int, pull: float, bend: float, length: float, mode: int
) -> tuple[int, float]:
    """List what may be reached on a piece of this length, see `_candidates`; faces that hold the neuron come last."""
    if not step.watch:
        return 0, math.inf
    if mode == 0:
        _move(bench.T, order, length, bench.old)
        for k in range(bench.side.size):
            bench.z[1, k] = dot(bench.old, step.normals[k])
    n, slack = _candidates(step, bench, bench.z[0], bench.z[1], pull, bend, mode == 2)
    for i in range(n_held):
        bench.near[n], bench.flag[n], bench.seen[0, n] = bench.held[i], _HELD, -1.0
        n += 1
    return n, slack


@jit
def _flipping(bench: Bench, order: int, best: float, fresh: bool) -> float:
    """When the output weight changes sign, if before ``best``; else -1."""
    b = bench.tb[0]
    sign = 1.0 if b > 0.0 or (b == 0.0 and bench.tb[1] > 0.0) else -1.0
    for m in range(order + 1):
        bench.poly[m] = sign * bench.tb[m]
    t = first_root(bench.poly, order, best, fresh, 1e-14)
    return t if t < best else -1.0


@jit
def _touch(step: Step, bench: Bench, came: Came, j: int, reached: int, b: float, at: float, mass: float) -> int:
    """Cross the one face that was reached, or be held on it; how many faces hold the neuron then."""
    k = bench.near[reached]
    s = bench.side[k]
    column_about(step.kink, step.terms, k, at, bench.kp)
    pull = b if abs(b) > _ROUND else bench.tb[1]
    away = -s * pull * (dot(bench.D[0], step.normals[k]) - s * bench.kp[0])  # velocity on the other side
    if away > _EDGE * mass * abs(pull) or pull * bench.kp[0] >= 0.0:
        _cross(step, bench, came, j, reached, b, at)
        return 0
    if s > 0:
        _switch(step, bench, k, at, -1.0)
    bench.side[k], bench.flag[reached] = 0, _HELD
    bench.held[0] = k
    _note(step, bench, came, j, k, s, 0, b, at)
    return 1


@jit
def _happen(
    step: Step,
    bench: Bench,
    came: Came,
    j: int,
    n: int,
    n_held: int,
    b: float,
    at: float,
    event: tuple[int, int, int],
    mass: float,
) -> tuple[int, float]:
    """Go through an event; see `_meet`."""
    reached = event[0]
    if reached >= 0 and _dies(step, bench, bench.near[reached]):
        _die(step, bench, came, j, n, bench.near[reached], n_held, b, at)
        return 0, 0.0
    if n_held > 0:
        return _meet(step, bench, came, j, n, n_held, b, at, event, mass)
    column_about(step.kink, step.terms, bench.near[reached], at, bench.kp)
    size = abs(bench.kp[0])
    return _touch(step, bench, came, j, reached, b, at, mass), size


@jit
def _piece(  # long, because what it keeps between events is much, and passing it on would be longer
    step: Step, bench: Bench, crowd: Desk, came: Came, j: int, b: float, n_held: int, at: float, end: float, mode: int
) -> tuple[float, int, float, int]:
    """Follow a neuron from ``at`` to ``end``, through its events; b, held faces, place and status then.

    ``mode`` 0: the faces near it are chosen from where it would be; 1: from ``bench.z[1]``, where it was last time at
    the end; 2: all are watched.
    """
    start, bend, n, slack = at, 0.0, -1, 0.0
    crowded, pending = 0, False
    jumps, lever, turned = 0.0, 0.0, 0.0
    flipped = abs(b) <= _ROUND
    while True:
        if n_held > 0 and not _tangent(step, bench, n_held, crowd.mass[j]):
            return b, n_held, at, HARD
        force = bench.P if n_held > 0 else bench.D
        order, bent = _series(bench, force, b, step, end - at)
        if pending:
            turned += _weigh(bench, came, j, force[0], step.h, b, at)
        bend = max(bend, _WIDER * bent)
        if n < 0:
            length = end - start
            pull = step.h * abs(b) * length
            came.bend[j] = bend * length**2
            n, slack = _look_around(step, bench, n_held, order, pull, bend * length**2, length, mode)
        best, left, to = end - at, -1, 0
        if n_held > 0 and step.watch:
            best, left, to = _leaving(step, bench, n_held, at, best, crowd.mass[j])
        flip = -1.0
        if crowd.tied[j] == 0 and step.watch and not step.frozen:
            flip = _flipping(bench, order, best, flipped)
            if flip >= 0.0:
                best = flip
        reached = -1
        if n > 0:
            best, reached = _reaching(step, bench, n, order, at, best, bend, (jumps, lever), crowd.mass[j])
        flips = flip >= 0.0 and reached < 0
        _move(bench.T, order, best, bench.w)
        if not step.frozen:
            b = value(bench.tb, order, best)
        if reached < 0 and not flips and left < 0:
            if n_held > 0:
                _put_on(bench, n_held)
            if end < step.upto:  # else it is followed no further
                shift_vectors(bench.D, step.terms, best)
            # A path whose slope jumps by so much leaves the line between its ends by no more than this.
            aside = (0.25 * turned + bend / _WIDER * (end - start) / 8) * (end - start)
            return b, n_held, end, _BENT if turned > 0.0 and aside > slack else THROUGH
        _move(force, step.terms - 1, best, bench.old)
        shift_vectors(bench.D, step.terms, best)
        at = min(at + best, end)
        crowded = 0 if best > 1e-12 else crowded + 1
        flipped = flipped and abs(b) <= 1e-13
        if crowded > _CROWD:
            return b, n_held, at, HARD
        if came.n[j] + 2 * n_held + 4 >= came.face.shape[1]:
            return b, n_held, at, FULL
        pending = not flips
        if flips:
            _note(step, bench, came, j, FLIP, 0, 0, b, at)
            b, flipped = 0.0, True
            if n_held > 0:
                return b, n_held, at, HARD
            continue
        if dot(bench.w, bench.w) <= (_ORIGIN * b) ** 2:
            return b, n_held, at, HARD
        for i in range(n_held):  # multipliers here
            bench.lam[i, 0] = value(bench.lam[i], step.terms - 1, best)
        event = (reached, -1 if reached >= 0 else left, to)
        n_held, size = _happen(step, bench, came, j, n, n_held, b, at, event, crowd.mass[j])
        if n_held < 0:
            return b, n_held, at, HARD
        size *= 1.3 * step.h * abs(b)
        jumps += size
        lever += size * at


@jit
def _tie(bench: Bench, b: float, excess: float, tied: bool) -> float:
    """Restore ``b^2 - |w|^2`` (C-INV1): rounding would grow where a neuron shrinks."""
    square = dot(bench.w, bench.w)
    if tied:
        return math.copysign(math.sqrt(max(square + excess, 0.0)), b)
    if square > 0.0:
        put(math.sqrt(max(b * b - excess, 0.0) / square), bench.w, bench.w)
    return b


@jit
def _through(step: Step, crowd: Desk, came: Came, bench: Bench, Z1: Floats, j: int, mode: int, unit: float) -> int:
    """Take a neuron through a step; how it came through. ``unit``: of its row of ``Z1``."""
    held = _arrive(step, bench, crowd, came, j)
    b, status, at = crowd.b[j], THROUGH, 0.0
    if held < 0:
        status = HARD
    # With b fixed the arc is a polynomial, however long: pieces only keep it from leading far away.
    length = step.upto * step.h * (min(abs(b), 1.0) if step.frozen else 1.0)
    reach = 0.0 if _short(bench.D, step.terms, length) else length * _strength(bench.D, step.terms)
    if reach > _STRIDE and held > 0 and _tangent(step, bench, held, crowd.mass[j]):
        reach = length * _strength(bench.P, step.terms)  # what holds it does not move it
    pieces = 1 + int(reach / _STRIDE)
    if step.watch:
        put(1.0, crowd.Z[j], bench.z[0])
    for piece in range(pieces):
        if status != THROUGH:
            break
        end = step.upto * (piece + 1) / pieces
        how = mode
        if mode == 1 and pieces > 1:
            how = 0
        elif mode == 1 and step.watch:
            put(unit, Z1[j], bench.z[1])
        if piece > 0 and step.watch:
            for k in range(bench.side.size):
                bench.z[0, k] = dot(bench.w, step.normals[k])
        b, held, at, status = _piece(step, bench, crowd, came, j, b, held, at, end, how)
        if not step.frozen:
            excess = crowd.excess[j]
            if excess != 0.0:  # else the neuron may have shrunk beyond doubles
                excess *= math.exp(-2 * came.grow[j])
            b = _tie(bench, b, excess, crowd.tied[j] != 0)
        size = math.sqrt(dot(bench.w, bench.w) + b * b)
        if size > 0.0:
            put(1.0 / size, bench.w, bench.w)
            b /= size
            came.grow[j] += math.log(size)
            for q in range(3):
                put(1.0 / (size * size), came.moments[j, q], came.moments[j, q])
            for e in range(came.n[j]):
                put(1.0 / (size * size), came.own[j, e], came.own[j, e])
    if pieces > 1:
        came.bend[j] = -1.0
    put(1.0, bench.w, came.W[j])
    came.b[j], came.status[j], came.end[j] = b, status, at
    return status


@jit
def sweep(step: Step, crowd: Desk, came: Came, bench: Bench, Z1: Floats, who: Ints, mode: int) -> None:
    """Take some neurons through a step; ``Z1``: see mode 1 of `_piece`.

    ``mode`` 3: as 1, where ``came`` has the paths without events, which most neurons keep; the others are marked there.
    """
    for i in range(who.size):
        j, how, unit = who[i], mode, 1.0
        if mode == 3:
            if _calm(step, crowd, came, Z1, j):
                continue
            how, unit = 1, math.exp(came.grow[j])
        while _through(step, crowd, came, bench, Z1, j, how, unit) == _BENT:
            how = 2
        if mode == 3:
            came.bend[j] = -1.0
