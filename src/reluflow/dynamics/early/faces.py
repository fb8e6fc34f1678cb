"""The velocity of a neuron that lies on hyperplanes: compiled.

Where s weight_k < 0 both sides of hyperplane k may push inwards ("valley": the neuron slides), where s weight_k > 0
both may push outwards ("ridge": several solutions).
"""

from __future__ import annotations

import math

import numpy as np

from .state import (
    TOL,
    Neuron,
    World,
    add,
    distance,
    dot,
    jit,
    put,
)

_ENUMERATE = 8  # ridges met at once whose 2^k sign choices are all tried


@jit
def kind(world: World, me: Neuron, k: int) -> float:
    """+1: a ridge is possible, -1: a valley, 0: nothing changes across hyperplane k."""
    return np.sign(me.now.sign * world.weights[k]) if world.slope < 1.0 else 0.0


@jit
def sum_force(world: World, me: Neuron) -> None:
    """Sum the force afresh, and the mass sum |g| that its rounding is measured by."""
    put(1.0, world.fixed, me.c)
    mass = math.sqrt(dot(world.fixed, world.fixed))
    for k in range(me.side.size):
        if me.g[k] != 0.0:
            add(me.g[k], world.normals[k], me.c)
            mass += abs(me.g[k])
    put(me.now.sign, me.c, me.c)
    me.now.mass = me.now.heavy = mass


@jit
def tolerance(me: Neuron) -> float:
    """Size of a component of the force that may be rounding."""
    return float(TOL * me.now.heavy)


@jit
def _set(world: World, me: Neuron, k: int, active: bool) -> None:
    value = world.weights[k] if active else world.slope * world.weights[k]
    if value != me.g[k]:
        add(me.now.sign * (value - me.g[k]), world.normals[k], me.c)
        me.g[k] = value


@jit
def _hold(world: World, me: Neuron, k: int) -> bool:
    """Append k to the held hyperplanes; not if its normal depends on those held."""
    n = me.tally.held
    if n >= me.Q.shape[0]:
        return False
    q = me.Q[n]
    put(1.0, world.normals[k], q)
    for a in range(n):
        me.R[a, n] = 0.0
    for _ in range(2):  # twice is enough
        for a in range(n):
            t = dot(me.Q[a], q)
            me.R[a, n] += t
            add(-t, me.Q[a], q)
    size = math.sqrt(dot(q, q))
    if size <= 64 * TOL:
        return False
    put(1.0 / size, q, q)
    me.R[n, n] = size
    me.held[n] = k
    me.place[k] = n
    me.tally.held = n + 1
    return True


@jit
def _release(me: Neuron, j: int) -> None:
    """Take the j-th held hyperplane out; Givens rotations make R triangular again."""
    n = me.tally.held
    held = me.held
    me.place[held[j]] = -1
    for col in range(j, n - 1):
        held[col] = held[col + 1]
        me.place[held[col]] = col
        for a in range(col + 2):
            me.R[a, col] = me.R[a, col + 1]
    for i in range(j, n - 1):
        size = math.hypot(me.R[i, i], me.R[i + 1, i])
        cos, sin = me.R[i, i] / size, me.R[i + 1, i] / size
        for col in range(i, n - 1):
            up, low = me.R[i, col], me.R[i + 1, col]
            me.R[i, col] = cos * up + sin * low
            me.R[i + 1, col] = cos * low - sin * up
        for x in range(me.Q.shape[1]):
            up, low = me.Q[i, x], me.Q[i + 1, x]
            me.Q[i, x] = cos * up + sin * low
            me.Q[i + 1, x] = cos * low - sin * up
    me.tally.held = n - 1


@jit
def drop_all(me: Neuron) -> None:
    """Hold nothing."""
    for j in range(me.tally.held):
        me.place[me.held[j]] = -1
    me.tally.held = 0


@jit
def _towards_tangent(world: World, me: Neuron) -> bool:
    """Move the g of the held hyperplanes towards a force tangent to all of them; False if a bound stopped one."""
    n = me.tally.held
    s = me.now.sign
    g, y, held = me.g, me.step, me.held
    for a in range(n - 1, -1, -1):
        t = -dot(me.Q[a], me.c)
        for b in range(a + 1, n):
            t -= me.R[a, b] * y[b]
        y[a] = t / me.R[a, a]
    part, stop, up = 1.0, -1, False
    for a in range(n):
        k = held[a]
        active = s * y[a] * world.weights[k] > 0
        room = abs((world.weights[k] if active else world.slope * world.weights[k]) - g[k])
        if abs(y[a]) * part > room:
            part, stop, up = room / abs(y[a]), a, active
    for a in range(n):
        g[held[a]] += part * s * y[a]
        add(part * y[a], world.normals[held[a]], me.c)
    if stop >= 0:
        _set(world, me, held[stop], up)
        _release(me, stop)
        return False
    for a in range(n - 1, -1, -1):  # one that comes to lie at a bound is not held: the neuron only touches
        k = held[a]
        near = TOL * abs(world.weights[k])
        on, off = abs(g[k] - world.weights[k]) <= near, abs(g[k] - world.slope * world.weights[k]) <= near
        if on or off:
            _set(world, me, k, on)
            _release(me, a)
    for a in range(me.tally.held):  # what rounding left over
        add(-dot(me.Q[a], me.c), me.Q[a], me.c)
    return True


@jit
def _relax(world: World, me: Neuron) -> None:
    """Choose g on the valleys met so that |c| is smallest: a primal active set, started from the g there are.

    At the minimum c.n_k = 0 where g is strictly inside, c.n_k >= 0 on the active and <= 0 on the inactive bound: the
    velocity that the inclusion allows, and the only one (PL-LA3, ALG-EARLY).
    """
    for _ in range(100 + 20 * me.tally.on):
        if me.tally.held > 0 and not _towards_tangent(world, me):
            continue
        worst, who = tolerance(me), -1
        for j in range(me.tally.on):
            k = me.on[j]
            if me.place[k] >= 0 or kind(world, me, k) >= 0:
                continue
            push = dot(world.normals[k], me.c)
            if me.g[k] == world.weights[k]:
                push = -push
            if push > worst:
                worst, who = push, k
        if who < 0 or not _hold(world, me, who):
            return


@jit
def _fits(world: World, me: Neuron, correct: bool) -> bool:
    """Whether every ridge met is on the side the force points to; put it there if asked."""
    tol = tolerance(me)
    fits = True
    for j in range(me.tally.on):
        k = me.on[j]
        if kind(world, me, k) > 0:
            push = dot(world.normals[k], me.c)
            active = me.g[k] == world.weights[k]
            if push < -tol if active else push > tol:
                fits = False
                if correct:
                    _set(world, me, k, not active)
    return fits


@jit
def _several(world: World, me: Neuron, ridges: int) -> bool:
    """Whether another choice of sides at the ridges met is a solution too, or there are too many to be sure."""
    if ridges > _ENUMERATE:
        return True
    n, found = me.tally.held, False
    put(1.0, me.g, me.saved_g)
    put(1.0, me.c, me.saved)
    for j in range(n):
        me.saved_held[j] = me.held[j]
    for choice in range(1 << ridges):
        drop_all(me)
        bit = 0
        for j in range(me.tally.on):
            k = me.on[j]
            up = False
            if kind(world, me, k) > 0:
                up = (choice >> bit) & 1 == 1
                bit += 1
            _set(world, me, k, up)
        _relax(world, me)
        if _fits(world, me, False) and distance(me.c, me.saved) > 1e3 * tolerance(me):
            found = True
            break
    put(1.0, me.saved_g, me.g)
    put(1.0, me.saved, me.c)
    drop_all(me)
    for j in range(n):
        _hold(world, me, me.saved_held[j])
    return found


@jit
def settle(world: World, me: Neuron, arriving: bool) -> None:
    """Find the velocity at a point on the hyperplanes met; sides of those just reached are still the old ones.

    One ridge that is reached from one side, nothing else at the same time, is always crossed. Otherwise the regular
    solution starts from "inactive" (phi'(0) = slope) and the other branch from "active", and whether they are the only
    ones is looked up. Taking ridges to the side the force points to raises |c|, so that it ends.
    """
    ridges, mass = 0, me.now.mass
    for j in range(me.tally.on):
        mass += abs(world.weights[me.on[j]])
        if kind(world, me, me.on[j]) > 0:
            ridges += 1
    me.now.heavy = max(me.now.heavy, mass)
    doubtful = ridges > 1 or (ridges == 1 and not arriving)
    if ridges > 0:
        for j in range(me.tally.on):
            k = me.on[j]
            if kind(world, me, k) > 0:
                _set(world, me, k, world.leave if doubtful else me.side[k] < 0)
    for _ in range(10 + 4 * me.tally.on):
        _relax(world, me)
        if ridges == 0 or _fits(world, me, True):
            break
    if doubtful and me.tally.many == 0 and _several(world, me, ridges):
        me.tally.many = 1
