"""The early phase of one neuron, event by event: the compiled part.

In the clock d(sigma) = |a| dt a neuron follows dw/dsigma = c(w), where c is the gradient of s G, a function that is
linear between the hyperplanes. So w runs along straight lines, and everything that happens happens on a hyperplane.
Points on one line share their hyperplane; a hyperplane k has a unit normal n_k, and the force is

    c = s (fixed + sum_k g_k n_k),    g_k = weight_k on the positive side, slope * weight_k on the negative one,

and anything between on the hyperplane itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..compiled import kept, stamp_of
from .faces import drop_all, kind, settle, sum_force, tolerance
from .search import ahead_dense, ahead_lazy, refresh, walk
from .state import (
    ALIGNED,
    FULL,
    ON_ACTIVE,
    ON_INACTIVE,
    SADDLE,
    SHRINKING,
    SLIDING,
    STUCK,
    TOL,
    UNFINISHED,
    Log,
    Neuron,
    World,
    add,
    distance,
    dot,
    jit,
    put,
)

_REFRESH = 256, 2048  # events after which everything is summed afresh, with and without a Gram matrix
_CROWD = 8  # events in one place after which all hyperplanes through it are taken together
# What ends a straight line.
_NOTHING, _SURFACE, _FLIP, _ORIGIN, _REST = range(5)


@jit
def elapsed(force: float, out: float, end: float, along: float, bend: float, step: float) -> float:
    """Time for a straight step, from a' = |c| along, along' = |c| a, where along = w.c/|c|.

    ``out`` and ``end`` are |a| before and after, and ``bend`` = a^2 - along^2 is constant. a + along grows like
    e^{|c| t} and a - along decays like e^{-|c| t}: the one without cancellation is used, and a path that turns round is
    cut where along = 0.
    """
    far = along + force * step
    if step == 0.0:
        return 0.0
    if along >= 0.0:
        return math.log1p(force * step * (1.0 + (along + far) / (end + out)) / (out + along)) / force
    if far <= 0.0:
        return math.log1p(force * step * (1.0 - (along + far) / (end + out)) / (end - far)) / force
    turn = math.sqrt(bend)
    return (math.log((out - along) / turn) + math.log((end + far) / turn)) / force


@jit
def _bend(me: Neuron, inv: float) -> float:
    """a^2 - along^2, the same all along a straight line."""
    if inv >= 0.0:
        return float(me.now.perp**2 + inv)
    return float((me.now.out - me.now.along) * (me.now.out + me.now.along))


@jit
def _measure(world: World, me: Neuron, inv: float) -> None:
    """Size of w and c and their angle, at the start of a straight line."""
    now = me.now
    now.force = math.sqrt(dot(me.c, me.c))
    if now.force < 2.0**-20 * now.heavy:  # cancelled: what is left may be old rounding
        sum_force(world, me)
        now.force = math.sqrt(dot(me.c, me.c))
    if now.force <= tolerance(me):
        put(0.0, me.c, me.c)
        now.force = 0.0
    force = now.force
    now.along = dot(me.w, me.c) / force if force > 0 else 0.0
    ratio = now.along / force if force > 0 else 0.0
    total = 0.0
    for i in range(me.w.size):
        total += (me.w[i] - ratio * me.c[i]) ** 2
    now.perp = math.sqrt(total)
    now.size = math.hypot(now.perp, now.along)
    now.peak = max(now.peak, now.size)
    if force > 0.0:
        blur = 2.0**-46 * (1.0 + now.mass / force)
        if now.perp <= blur * now.size or me.tally.held >= me.w.size - 1:
            now.perp = 0.0  # on the ray of c, up to rounding or because nothing else is left
            now.along = math.copysign(now.size, now.along)
    if inv == 0.0 and not world.first:
        now.out = now.size


@jit
def _ahead(world: World, me: Neuron, inv: float) -> tuple[float, int]:
    """How far the straight line goes, and what ends it."""
    force, along, out = me.now.force, me.now.along, me.now.out
    if force == 0.0:
        return np.inf, _REST
    if me.now.perp == 0.0 and along < 0.0:
        if inv == 0.0 and not world.first:
            return np.inf, _REST  # w -> 0, never reached
        step, what = -along / force, _ORIGIN
    else:
        step = ahead_dense(me) if world.gram.size > 0 else ahead_lazy(world, me)
        what = _SURFACE if step < np.inf else _NOTHING
    if inv < 0.0 and along < 0.0 and not world.first:
        bend = _bend(me, inv)
        if abs(bend) <= SADDLE * me.now.peak**2:
            if along + step * force >= -math.sqrt(SADDLE) * me.now.peak:
                return np.inf, _REST  # a and along tend to 0 together and never get there
        elif bend < 0.0:
            flip = out * out / (math.sqrt(-bend) - along) / force
            if flip <= step + TOL * me.now.peak / force:
                step, what = flip, _FLIP
    return step, what


@jit
def _advance(world: World, me: Neuron, inv: float, step: float, what: int) -> None:
    now = me.now
    force, along, out, bend = now.force, now.along, now.out, _bend(me, inv)
    if world.first:
        now.tau += step / out
    else:
        now.out = math.sqrt(max(0.0, out * out + force * step * (2 * along + force * step)))
        if what == _FLIP:
            now.out = 0.0
        elif inv >= 0.0:
            now.out = math.sqrt(bend + (along + force * step) ** 2)
        now.tau += elapsed(force, out, now.out, along, bend, step)
    now.sigma += step
    now.path += now.sign * step
    add(step, me.c, me.w)
    if what == _ORIGIN:
        put(0.0, me.w, me.w)
    me.tally.stall = me.tally.stall + 1 if step * force <= TOL * now.size else 0


@jit
def _meet(me: Neuron, k: int) -> None:
    me.on[me.tally.on] = k
    me.tally.on += 1
    me.z[k] = 0.0


@jit
def _arrive(me: Neuron, dense: bool, step: float) -> None:
    """Put the neuron on the hyperplanes that it reaches, all of them at once."""
    near, slow = TOL * (me.now.size + me.now.peak / 16), tolerance(me)
    z, r, next_one = me.z, me.rate, me.tally.next
    if dense:
        if walk(z, r, me.side, step, near, slow) > 1:
            for k in range(me.side.size):
                if me.side[k] * z[k] <= near and -me.side[k] * r[k] > slow and k != next_one:
                    _meet(me, k)
    else:
        for j in range(me.tally.seen):
            k = me.seen[j]
            far = abs(z[k] + r[k] * (me.now.sigma - me.at[k]))
            if far <= near and -me.side[k] * r[k] > slow and k != next_one:
                _meet(me, k)
    _meet(me, next_one)


@jit
def _crowd(world: World, me: Neuron) -> None:
    """Take all hyperplanes through the present place together: after many events there, and where w turns round."""
    refresh(world, me)
    for j in range(me.tally.on):
        me.z[me.on[j]] = np.inf
    for k in range(me.side.size):
        if me.side[k] != 0 and abs(me.z[k]) <= 32 * TOL * me.now.peak:
            _meet(me, k)
    for j in range(me.tally.on):
        me.z[me.on[j]] = 0.0


@jit
def _turn(world: World, me: Neuron, what: int, step: float) -> bool:
    """Do what the end of the line asks for, short of the new velocity; whether one hyperplane is arrived at."""
    crowded, before = me.tally.stall >= _CROWD, me.tally.on
    if what == _SURFACE:
        _arrive(me, world.gram.size > 0, step)
        if crowded:
            _crowd(world, me)
    elif what == _ORIGIN:
        for k in range(me.side.size):
            if me.side[k] != 0:
                _meet(me, k)
    else:  # the output weight changes sign: the force turns round, valleys become ridges
        me.now.sign = -me.now.sign
        put(-1.0, me.c, me.c)
        drop_all(me)
        _crowd(world, me)
    for j in range(me.tally.on):
        k = me.on[j]
        me.was[k] = me.g[k]
    put(1.0, me.c, me.old)
    return what == _SURFACE and me.tally.on == before + 1


@jit
def _new_side(world: World, me: Neuron, k: int, push: float) -> int:
    tol = tolerance(me)
    side = 1 if push > tol else (-1 if push < -tol else 0)
    if kind(world, me, k) < 0 and (me.place[k] >= 0 or (side > 0) != (me.g[k] == world.weights[k])):
        return 0
    return side


@jit
def _state(world: World, k: int, side: float, g: float) -> int:
    if side != 0:
        return int(side)
    if g == world.weights[k]:
        return ON_ACTIVE
    return ON_INACTIVE if g == world.slope * world.weights[k] else 0


@jit
def _leave(world: World, me: Neuron, log: Log) -> None:
    """Write down what the event changed, and take up the hyperplanes that are left behind."""
    dense = world.gram.size > 0
    turned = 0.0 if dense else distance(me.old, me.c)
    first = entries = me.tally.entries
    stay = 0
    me.now.turn += turned
    me.tally.events += 1
    for j in range(me.tally.on):
        k = me.on[j]
        push = dot(world.normals[k], me.c)
        side, change = _new_side(world, me, k, push), me.g[k] - me.was[k]
        if side != me.side[k] or change != 0.0:
            log.surface[entries, 0] = k
            log.surface[entries, 1] = _state(world, k, me.side[k], me.was[k])
            log.surface[entries, 2] = _state(world, k, side, me.g[k])
            log.change[entries] = change
            entries += 1
        if side != 0 and me.side[k] == 0:
            me.now.cap = -1.0  # it was not among the candidates
        me.side[k] = side
        me.now.mass += abs(me.g[k]) - abs(me.was[k])
        if not dense:
            me.at[k], me.rate[k], me.age[k] = me.now.sigma, push, me.now.turn
            me.seen_at[k] = me.tally.events
        if side == 0:
            me.on[stay] = k
            stay += 1
    me.now.heavy = max(me.now.heavy, me.now.mass)
    me.tally.on = stay
    me.tally.entries = entries
    if dense and entries - first > me.w.size:
        for k in range(me.side.size):
            me.rate[k] = dot(world.normals[k], me.c)
    elif dense:
        for e in range(first, entries):
            if log.change[e] != 0.0:
                add(me.now.sign * log.change[e], world.gram[log.surface[e, 0]], me.rate)


@jit
def _write(me: Neuron, log: Log, row: int) -> None:
    log.segment[row, 0] = me.now.tau
    log.segment[row, 1] = me.now.path
    log.segment[row, 2] = me.now.force
    log.segment[row, 3] = me.now.out
    log.segment[row, 4] = me.now.along
    log.segment[row, 5] = me.now.perp
    log.segment[row, 6] = me.now.sign
    log.end[row] = me.tally.entries


@jit
def _begin(world: World, me: Neuron, log: Log, inv: float, rest: bool) -> None:
    """Put the neuron at its start (w, now.out, now.sign and the sides are given) and find its first velocity."""
    me.tally.on = me.tally.held = me.tally.events = me.tally.heap = me.tally.seen = 0
    me.tally.stall = me.tally.entries = me.tally.next = me.tally.many = 0
    me.now.sigma = me.now.path = me.now.tau = me.now.turn = me.now.opened = 0.0
    me.now.peak = math.sqrt(dot(me.w, me.w))
    for k in range(me.side.size):
        me.g[k] = (1.0 if me.side[k] > 0 else world.slope) * world.weights[k]
        me.was[k] = me.g[k]
        me.place[k] = -1
        if me.side[k] == 0:
            _meet(me, k)
    sum_force(world, me)
    put(1.0, me.c, me.old)
    if me.tally.on > 0:
        settle(world, me, False)
    if rest and not world.leave:
        # The regular solution: no active sample, no motion (ML-D2). Unique unless there is a way out.
        if math.sqrt(dot(me.c, me.c)) > tolerance(me):
            me.tally.many = 1
        drop_all(me)
        put(1.0, me.was, me.g)
        put(0.0, me.c, me.c)
        me.now.heavy = 0.0  # nothing was cancelled
    else:
        _leave(world, me, log)
    refresh(world, me)
    _measure(world, me, inv)
    _write(me, log, 0)


def follow(world: World, me: Neuron, log: Log, inv: float, rest: bool, row: int, limit: int) -> tuple[int, int]:
    """Follow one neuron to its end, or until the log is full; ``row`` segments are written already.

    ``inv`` = a^2 - |w|^2, in the units of w; ``rest``: it starts without an active sample at slope 0.
    """
    dense = world.gram.size > 0
    if row == 0:
        _begin(world, me, log, inv, rest)
        row = 1
        if rest and not world.leave:
            return row, STUCK
    while True:
        if row >= log.end.size or me.tally.entries + me.side.size > log.change.size:
            return row, FULL
        step, what = _ahead(world, me, inv)
        if what in (_NOTHING, _REST):
            break
        if row > limit:
            return row, UNFINISHED
        _advance(world, me, inv, step, what)
        arriving = _turn(world, me, what, step)
        if me.tally.on > 0:
            settle(world, me, arriving)
            _leave(world, me, log)
        if row % _REFRESH[0 if dense else 1] == 0 or what != _SURFACE or me.tally.stall >= _CROWD:
            sum_force(world, me)
            refresh(world, me)
        _measure(world, me, inv)
        _write(me, log, row)
        row += 1
    if what == _REST and inv < 0.0 and me.now.force > 0.0:
        me.now.out, me.now.perp = -me.now.along, math.sqrt(-inv)
        _write(me, log, row - 1)
    if what == _NOTHING:
        return row, SLIDING if me.tally.held > 0 else ALIGNED
    caught = me.now.force > 0 and me.tally.held >= me.w.size - 1
    return row, SHRINKING if caught else STUCK


_STAMP = stamp_of(__file__, "state.py", "faces.py", "search.py", "../held.py")

#: `follow`, compiled; the tuples as `held.Held`. Kept for this file; the stamp stands for the others.
align_one: Callable[..., tuple[int, int]] = kept(
    follow, stamp=_STAMP, slow="the integrator", nogil=True, error_model="numpy"
)
