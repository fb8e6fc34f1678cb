"""Which hyperplane a neuron reaches next: compiled.

With a Gram matrix all n.w and n.c are kept current, O(m) an event. Without one, only the hyperplanes that may come
before the next event are looked at, O(d) each.
"""

from __future__ import annotations

import numpy as np

from .faces import tolerance
from .state import (
    TOL,
    Floats,
    Neuron,
    World,
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
        me.z[k] = 0.0 if me.side[k] == 0 else dot(world.normals[k], me.w)
        me.rate[k] = dot(world.normals[k], me.c)
        me.at[k] = me.now.sigma
        me.age[k] = me.now.turn
        me.seen_at[k] = me.tally.events
    me.now.cap = -1.0  # and look at all candidates again
    me.tally.seen = 0


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
    z, r, side = me.z, me.rate, me.side
    best, found = 1e300, False
    slow = tolerance(me)  # slower is parallel, up to rounding
    for lo in range(0, side.size, _BLOCK):
        hi = min(lo + _BLOCK, side.size)
        if _sooner(z, r, side, lo, hi, best) > 0:
            for k in range(lo, hi):
                closing = -side[k] * r[k]
                if closing > slow and side[k] * z[k] < best * closing:
                    best, found = max(0.0, side[k] * z[k] / closing), True
                    me.tally.next = k
    return best if found else np.inf


@jit
def _sift_down(me: Neuron, i: int) -> None:
    n = me.tally.heap
    heap, keys = me.heap, me.key
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
    heap, keys = me.heap, me.key
    i = me.tally.heap
    me.tally.heap = i + 1
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
    closing = (me.now.cap - me.age[k]) * (1 + 1e-9) - side * me.rate[k]
    if side == 0 or closing <= 0.0:
        return np.inf
    early = me.at[k] + max(0.0, side * me.z[k] - TOL * me.now.peak) / closing
    return float(max(me.now.sigma, early))  # what is known from long ago says little, but it has not come yet


@jit
def _open_window(me: Neuron, stride: float) -> None:
    """Collect the hyperplanes that may come within the next ``stride``, as long as c stays within the cap."""
    me.tally.heap = 0
    me.now.cap = me.now.turn + WINDOW * me.now.force
    me.now.opened = me.now.sigma
    me.now.horizon = me.now.sigma + stride
    me.now.beyond = np.inf
    for k in range(me.side.size):
        key = _earliest(me, k)
        if key <= me.now.horizon:
            me.key[me.tally.heap], me.heap[me.tally.heap] = key, k
            me.tally.heap += 1
        elif key < me.now.beyond:
            me.now.beyond = key
    for i in range(me.tally.heap // 2 - 1, -1, -1):
        _sift_down(me, i)


@jit
def _put_back(me: Neuron) -> None:
    for j in range(me.tally.seen):
        k = me.seen[j]
        key = _earliest(me, k)
        if key <= me.now.horizon:
            _push(me, key, k)
        elif key < me.now.beyond:
            me.now.beyond = key
    me.tally.seen = 0


@jit
def _look(world: World, me: Neuron, k: int) -> float:
    """Bring hyperplane k up to date; the path length at which it is reached if nothing else comes first."""
    if me.seen_at[k] != me.tally.events:
        me.z[k] = dot(world.normals[k], me.w)
        me.rate[k] = dot(world.normals[k], me.c)
        me.at[k], me.age[k] = me.now.sigma, me.now.turn
        me.seen_at[k] = me.tally.events
    closing = -me.side[k] * me.rate[k]
    if closing <= tolerance(me):
        return np.inf
    return float(me.at[k] + max(0.0, me.side[k] * me.z[k]) / closing)


@jit
def ahead_lazy(world: World, me: Neuron) -> float:
    """Find the next hyperplane, looking only at those that may come before it."""
    here = me.now.sigma
    together = 4 * TOL * me.now.size / me.now.force
    if me.now.turn >= me.now.cap:
        me.tally.seen = 0
        _open_window(me, 2 * (here - me.now.opened))  # what was too short shows, what was too long costs little
    else:
        _put_back(me)
    best = np.inf
    while True:
        while me.tally.heap > 0 and me.key[0] <= best + together:
            k = me.heap[0]
            me.tally.heap -= 1
            last = me.tally.heap
            me.key[0], me.heap[0] = me.key[last], me.heap[last]
            _sift_down(me, 0)
            me.seen[me.tally.seen] = k
            me.tally.seen += 1
            reach = _look(world, me, k)
            if reach < best:
                best = reach
                me.tally.next = k
        if best < me.now.beyond or me.now.beyond == np.inf:
            return float(max(0.0, best - here))
        me.tally.seen = 0
        _open_window(me, max(2 * (me.now.horizon - me.now.opened), 2 * (me.now.beyond - here)))
