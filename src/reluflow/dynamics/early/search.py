"""Which hyperplane a neuron reaches next: compiled.

With a Gram matrix all n.w and n.c are kept current, O(m) an event. Without one, only the hyperplanes that may come
before the next event are looked at, O(d) each.
"""

from __future__ import annotations

import numpy as np

from .faces import tolerance
from .state import (
    AGE,
    AT,
    BEYOND,
    CAP,
    FORCE,
    HEAP,
    HORIZON,
    KEY,
    N_EVENTS,
    N_HEAP,
    N_SEEN,
    NEXT,
    OPENED,
    PEAK,
    RATE,
    SEEN,
    SEEN_AT,
    SIGMA,
    SIZE,
    TOL,
    TURN,
    Floats,
    Neuron,
    World,
    Z,
    dot,
    jit,
)

#: Part of |c| by which c may turn before all hyperplanes are looked at again (when there is no Gram matrix).
WINDOW = 0.03
_BLOCK = 32


@jit
def refresh(world: World, me: Neuron) -> None:
    """Recompute every n.w and n.c."""
    for k in range(me.side.size):
        me.per[Z, k] = 0.0 if me.side[k] == 0 else dot(world.normals[k], me.w)
        me.per[RATE, k] = dot(world.normals[k], me.c)
        me.per[AT, k] = me.now[SIGMA]
        me.per[AGE, k] = me.now[TURN]
        me.lists[SEEN_AT, k] = me.tally[N_EVENTS]
    me.now[CAP] = -1.0  # and look at all candidates again
    me.tally[N_SEEN] = 0


@jit
def walk(z: Floats, r: Floats, side: Floats, step: float, near: float, slow: float) -> int:
    """Move all n.w on by ``step``; how many hyperplanes are then reached."""
    reached = 0
    for k in range(z.size):
        moved = z[k] + step * r[k]
        z[k] = moved
        reached += 1 if (side[k] * moved <= near) & (-side[k] * r[k] > slow) else 0
    return reached


@jit
def _sooner(z: Floats, r: Floats, side: Floats, lo: int, hi: int, best: float) -> int:
    """How many of some hyperplanes are reached before ``best``: without division or branch, for vector registers."""
    hits = 0
    for k in range(lo, hi):
        hits += 1 if side[k] * (z[k] + best * r[k]) < 0.0 else 0
    return hits


@jit
def ahead_dense(me: Neuron) -> float:
    """Distance to the next hyperplane, from current values."""
    z, r, side = me.per[Z], me.per[RATE], me.side
    best, found = 1e300, False
    slow = tolerance(me)  # slower is parallel, up to rounding
    for lo in range(0, side.size, _BLOCK):
        hi = min(lo + _BLOCK, side.size)
        if _sooner(z, r, side, lo, hi, best) > 0:
            for k in range(lo, hi):
                closing = -side[k] * r[k]
                if closing > slow and side[k] * z[k] < best * closing:
                    best, found = max(0.0, side[k] * z[k] / closing), True
                    me.tally[NEXT] = k
    return best if found else np.inf


@jit
def _sift_down(me: Neuron, i: int) -> None:
    n = me.tally[N_HEAP]
    heap, keys = me.lists[HEAP], me.per[KEY]
    key, k = keys[i], heap[i]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], heap[i] = keys[child], heap[child]
        i = child
    keys[i], heap[i] = key, k


@jit
def _push(me: Neuron, key: float, k: int) -> None:
    heap, keys = me.lists[HEAP], me.per[KEY]
    i = me.tally[N_HEAP]
    me.tally[N_HEAP] = i + 1
    while i > 0 and keys[(i - 1) // 2] > key:
        keys[i], heap[i] = keys[(i - 1) // 2], heap[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], heap[i] = key, k


@jit
def _earliest(me: Neuron, k: int) -> float:
    """Path length before which hyperplane k cannot be reached.

    As long as c turns by no more than the cap in all, n.w differs from its linear forecast by at most
    (cap - age) (sigma - at), because the normals are unit vectors.
    """
    side = me.side[k]
    closing = (me.now[CAP] - me.per[AGE, k]) * (1 + 1e-9) - side * me.per[RATE, k]
    if side == 0 or closing <= 0.0:
        return np.inf
    early = me.per[AT, k] + max(0.0, side * me.per[Z, k] - TOL * me.now[PEAK]) / closing
    return float(max(me.now[SIGMA], early))  # what is known from long ago says little, but it has not come yet


@jit
def _open_window(me: Neuron, stride: float) -> None:
    """Collect the hyperplanes that may come within the next ``stride``, as long as c stays within the cap."""
    me.tally[N_HEAP] = 0
    me.now[CAP] = me.now[TURN] + WINDOW * me.now[FORCE]
    me.now[OPENED] = me.now[SIGMA]
    me.now[HORIZON] = me.now[SIGMA] + stride
    me.now[BEYOND] = np.inf
    for k in range(me.side.size):
        key = _earliest(me, k)
        if key <= me.now[HORIZON]:
            me.per[KEY, me.tally[N_HEAP]], me.lists[HEAP, me.tally[N_HEAP]] = key, k
            me.tally[N_HEAP] += 1
        elif key < me.now[BEYOND]:
            me.now[BEYOND] = key
    for i in range(me.tally[N_HEAP] // 2 - 1, -1, -1):
        _sift_down(me, i)


@jit
def _put_back(me: Neuron) -> None:
    for j in range(me.tally[N_SEEN]):
        k = me.lists[SEEN, j]
        key = _earliest(me, k)
        if key <= me.now[HORIZON]:
            _push(me, key, k)
        elif key < me.now[BEYOND]:
            me.now[BEYOND] = key
    me.tally[N_SEEN] = 0


@jit
def _look(world: World, me: Neuron, k: int) -> float:
    """Bring hyperplane k up to date; the path length at which it is reached if nothing else comes first."""
    if me.lists[SEEN_AT, k] != me.tally[N_EVENTS]:
        me.per[Z, k] = dot(world.normals[k], me.w)
        me.per[RATE, k] = dot(world.normals[k], me.c)
        me.per[AT, k], me.per[AGE, k] = me.now[SIGMA], me.now[TURN]
        me.lists[SEEN_AT, k] = me.tally[N_EVENTS]
    closing = -me.side[k] * me.per[RATE, k]
    if closing <= tolerance(me):
        return np.inf
    return float(me.per[AT, k] + max(0.0, me.side[k] * me.per[Z, k]) / closing)


@jit
def ahead_lazy(world: World, me: Neuron) -> float:
    """Find the next hyperplane, looking only at those that may come before it."""
    here = me.now[SIGMA]
    together = 4 * TOL * me.now[SIZE] / me.now[FORCE]
    if me.now[TURN] >= me.now[CAP]:
        me.tally[N_SEEN] = 0
        _open_window(me, 2 * (here - me.now[OPENED]))  # what was too short shows, what was too long costs little
    else:
        _put_back(me)
    best = np.inf
    while True:
        while me.tally[N_HEAP] > 0 and me.per[KEY, 0] <= best + together:
            k = me.lists[HEAP, 0]
            me.tally[N_HEAP] -= 1
            last = me.tally[N_HEAP]
            me.per[KEY, 0], me.lists[HEAP, 0] = me.per[KEY, last], me.lists[HEAP, last]
            _sift_down(me, 0)
            me.lists[SEEN, me.tally[N_SEEN]] = k
            me.tally[N_SEEN] += 1
            reach = _look(world, me, k)
            if reach < best:
                best = reach
                me.tally[NEXT] = k
        if best < me.now[BEYOND] or me.now[BEYOND] == np.inf:
            return float(max(0.0, best - here))
        me.tally[N_SEEN] = 0
        _open_window(me, max(2 * (me.now[HORIZON] - me.now[OPENED]), 2 * (me.now[BEYOND] - here)))
