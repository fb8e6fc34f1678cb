r"""The field of the late phase and implicit steps along it, compiled.

`late` says what the equations are. A step solves :math:`(I - c J)\,x = b`, J the derivative of the field at some
earlier place: a block for each neuron, :math:`-\text{decay} + [[0, D], [D^T, 0]]`, which has a closed inverse, plus a
part of rank k, the number of samples with a noticeable force. Woodbury's formula leaves a k x k system, essentially in
the margins. Nothing of size n x n or (p d) x (p d) is formed.

The method is that of SciPy's ``BDF``: backward differentiation of order 1 to 5 in Nordsieck's way, with numerical
differentiation formulas. SciPy takes matrices alone, and with functions in their place, as its solver was used here
before, two thirds of a step of 1 to 4 ms were calls of NumPy: measured on tables (iris, breast cancer), compiled steps
take a quarter of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...problem.types import Ints, Signs
from ..compiled import kept, stamp_of
from ..early.state import Floats, add, dot, put
from .passes import handing, inner, product, product_along, product_down
from .pulls import log_pull, sink

ORDERS = 5  #: highest order
_NEWTON = 4  # most corrections in a step ...
_CLOSE = 0.01  # ... and what part of the tolerance they may leave
_SHRINK, _GROW = 0.2, 10.0
_NOTICEABLE = 1e-3  # a sample enters the matrix if its diagonal entry may exceed this
_RELATIVE = 2.3e-14  # error of a number, in parts of it, that a step may make beside the tolerance: rounding
_LAST = float(np.finfo(np.float64).eps)
_CANCELLED = 4 * _LAST  # a sum of pulls below this part of their sizes is rounding
#: Constants of the formulas of order 0, 1, ...
_KAPPA = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
_GAMMA = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, ORDERS + 1))])
_ALPHA = (1 - _KAPPA) * _GAMMA
_ERROR = _KAPPA * _GAMMA + 1 / np.arange(1, ORDERS + 2)

#: What `perform` is asked for: margins and pulls at a point, derivatives there, to begin, to go on.
LOOK, RATE, BEGIN, ADVANCE = range(4)

#: What is to be done next: a step is taken; the matrix is to be factorised; there is no room for it; steps are too
#: short to be felt.
TAKEN, FACTOR, ROOM, FAILED = range(4)

_START, _TRY, _CORRECT = range(3)  # where within a step

#: Numbers of a solver.
NOW = np.dtype(
    [
        (name, np.float64)
        for name in (
            "t",
            "t_old",
            "t_new",
            "h",
            "bound",
            "c",
            "least",
            # of the point looked at last ...
            "speed",
            "log_dt",
            "reach",
            # ... and of the matrix: time, and where it was differentiated
            "shift",
            "at",
            "swift",
            "rate",
            "stiff",
            "alpha",
        )
    ]
    + [(name, np.int64) for name in ("order", "equal", "stage", "current", "factorised", "fresh", "k", "room", "tries")]
)


class World(NamedTuple):
    """What the field depends on: points, patterns, units."""

    X: Floats  # (n, d)
    y: Floats  # (n,)
    norms: Floats  # (n,)
    H: Floats  # (G, n) slopes of the groups at the samples
    member: Ints  # (p,) group of each neuron
    owner: Ints  # (R,) groups that slide ...
    basis: Floats  # (R, d) ... and orthonormal normals that are taken out of the forces on them
    tied: Signs  # (p,)
    excess: Floats  # (p,)
    signs: Floats  # (p,)
    out: Floats  # (p,) output weights of a frozen layer
    area: Floats  # (p,) squares of the units
    counts: Signs  # (n,) samples that go on to be fitted
    points: Ints  # (L,) samples in balance ...
    rest: Floats  # (L,) ... and the margins they rest at
    spring: float  # stiffness that holds them there
    log_size: float
    decay: float
    weight: float
    loss: int
    frozen: bool
    norm: bool  # the clock is that of the norm


class Desk(NamedTuple):
    """Room to work in, and the solver."""

    W: Floats  # (p, d) neurons at the point looked at ...
    a: Floats  # (p,)
    factor: Floats  # (p,)
    q: Floats  # (n,)
    pull: Floats  # (n,)
    M: Floats  # (p, d)
    Z: Floats  # (p, n)
    F: Floats  # (p, d)
    mass: Floats  # (p,)
    rate: Floats  # (N,) and its derivatives
    V: Floats  # (p, d) the same where the matrix was differentiated ...
    b: Floats  # (p,)
    units: Floats  # (p,)
    force: Floats  # (p, d) on the groups
    p: Floats  # (n,) forces that sum to one ...
    bend: Floats  # (n,) ... how they change with their margins before they are made to ...
    alone: Floats  # (n,) ... and with those of points in balance, which do not enter the sum
    inv: Floats  # (p,) of the last row of each neuron's block; 0 for a frozen layer
    E: Ints  # (n,) the first k: samples that make the equations stiff
    y: Floats  # (N,) where the solver is
    atol: Floats  # (N,) errors allowed
    D: Floats  # (ORDERS + 3, N) backward differences
    old: Floats  # (ORDERS + 1, N)
    predicted: Floats  # (N,)
    trial: Floats  # (N,)
    psi: Floats  # (N,)
    d: Floats  # (N,) what was corrected
    x: Floats  # (N,)
    push: Floats  # (N,)
    turn: Floats  # (3, ORDERS + 1, ORDERS + 1)
    now: Any  # a record of `NOW`


class Matrix(NamedTuple):
    """Room for the system between samples, for up to as many as now.room."""

    A: Floats  # (k k,) it, then its factors
    pivots: Ints  # (k,)
    T: Floats  # (k k,)
    X: Floats  # (k d,)
    H: Floats  # (G k,)
    left: Floats  # (rows k,)
    right: Floats  # (rows k,)
    dq: Floats  # (k,)


@handing
def _shaped(x: Floats, rows: int, columns: int) -> Floats:
    return x[: rows * columns].reshape((rows, columns))


@inner
def _clear(x: Floats) -> None:
    for i in range(x.size):
        x[i] = 0.0


# -- the field ------------------------------------------------------------------------------------------------


@inner
def _neurons(world: World, desk: Desk, s: float, y: Floats) -> None:
    """First-layer rows and output weights; a from |w| or |w| from a, with ``a^2 - |w|^2`` what it was (C-INV1)."""
    p, d = desk.W.shape
    fade = math.exp(-2.0 * world.decay * s)
    grow = math.exp((1.0 if world.frozen else 2.0) * world.decay * s)
    for j in range(p):
        row, w = y[j * (d + 1) : j * (d + 1) + d], desk.W[j]
        last, factor = y[j * (d + 1) + d], 1.0
        if world.frozen:
            desk.a[j] = world.out[j]
        else:
            square = dot(row, row)
            if world.tied[j] != 0:
                desk.a[j] = world.signs[j] * math.sqrt(max(square + world.excess[j] * fade, 0.0))
            else:
                desk.a[j] = last
                factor = math.sqrt(max(last * last - world.excess[j] * fade, 0.0) / (square + 1e-300))
        put(factor, row, w)
        desk.factor[j] = world.area[j] * grow


@inner
def _gather(world: World, factor: Floats, a: Floats, W: Floats, M: Floats) -> None:
    """Sum ``factor a w`` of each group."""
    for g in range(world.H.shape[0]):
        _clear(M[g])
    for j in range(a.size):
        add(factor[j] * a[j], W[j], M[world.member[j]])


@handing
def _look(world: World, desk: Desk, s: float, y: Floats) -> None:
    """Margins and forces of the samples at a point; the latter sum to one with the clock of the norm."""
    now, q, p = desk.now, desk.q, desk.pull
    G, n = world.H.shape
    _neurons(world, desk, s, y)
    now.reach = 0.0
    for j in range(desk.a.size):
        now.reach += desk.factor[j] * abs(desk.a[j]) * math.sqrt(dot(desk.W[j], desk.W[j]))
    _gather(world, desk.factor, desk.a, desk.W, desk.M)
    product_along(desk.M[:G], world.X, desk.Z[:G])
    for i in range(n):
        q[i] = 0.0
    for g in range(G):
        for i in range(n):
            q[i] += world.H[g, i] * desk.Z[g, i]
    top = -math.inf
    for i in range(n):
        q[i] *= world.y[i]
        p[i] = log_pull(world.loss, q[i]) if world.counts[i] != 0 else -math.inf
        top = max(top, p[i])
    now.speed, now.log_dt = 1.0, 0.0
    if not world.norm:
        later = s + math.log(world.weight)
        for i in range(n):
            p[i] = math.exp(p[i] + later)
        return
    total, gamma = 0.0, 0.0
    for i in range(n):
        p[i] = math.exp(p[i] - top) if p[i] > top - 746.0 else 0.0
        total += p[i]
    for i in range(n):
        p[i] /= total
        gamma += p[i] * q[i]
    gamma *= math.exp(-(world.log_size + s))  # of these alone: the clock is free, and so it is not stiff
    spring = world.spring * math.exp(-(world.log_size + s))
    for i in range(world.points.size):
        k = world.points[i]
        p[k] = spring * (world.rest[i] - q[k])
    if world.frozen:
        now.speed = math.exp(world.log_size) / gamma
        now.log_dt = s + world.log_size - math.log(gamma) if gamma > 0.0 else math.nan
    else:
        now.speed = 0.25 / gamma if gamma != 0.0 else math.nan
        now.log_dt = math.log(now.speed) if now.speed > 0.0 else math.nan
    now.log_dt -= math.log(world.weight) + top + math.log(total)


@inner
def _project(world: World, F: Floats) -> None:
    """Take out of the force on each sliding group what would lead away from its hyperplanes."""
    for r in range(world.owner.size):
        row = F[world.owner[r]]
        add(-dot(world.basis[r], row), world.basis[r], row)


@handing
def _forces(world: World, desk: Desk) -> None:
    """Force on each group, tangent to the hyperplanes it slides on.

    Where the pulls cancel to the last digits there is none: at t = 10^16 their rounding would move a neuron.
    """
    G, n = world.H.shape
    speed = desk.now.speed
    for g in range(G):
        mass = 0.0
        for i in range(n):
            v = world.H[g, i] * desk.pull[i]
            mass += abs(v) * world.norms[i]
            desk.Z[g, i] = v * world.y[i] * speed
        desk.mass[g] = abs(speed) * mass
    product(desk.Z[:G], world.X, desk.F[:G])
    _project(world, desk.F)
    for g in range(G):
        if dot(desk.F[g], desk.F[g]) <= (_CANCELLED * desk.mass[g]) ** 2:
            _clear(desk.F[g])


@inner
def _pace(log_dt: float, z: float) -> float:
    """``dz/du`` for z = asinh(log t)."""
    return math.exp(log_dt - math.sinh(z)) / math.cosh(z)


@handing
def _rate(world: World, desk: Desk, s: float, y: Floats) -> None:
    """Differentiate: how the coordinates change with the clock at a point."""
    _look(world, desk, s, y)
    _forces(world, desk)
    p, d = desk.W.shape
    for j in range(p):
        start, F = j * (d + 1), desk.F[world.member[j]]
        a = desk.a[j]
        for i in range(d):
            desk.rate[start + i] = a * F[i] - world.decay * y[start + i]
        desk.rate[start + d] = 0.0 if world.frozen else dot(desk.W[j], F) - world.decay * y[start + d]
    if world.norm:
        desk.rate[p * (d + 1)] = _pace(desk.now.log_dt, y[p * (d + 1)])


# -- its derivative -------------------------------------------------------------------------------------------


@handing
def _linearize(world: World, desk: Desk, s: float, y: Floats) -> bool:
    """Differentiate the field at a point, unless it is beyond doubles there: a trial step may have gone anywhere."""
    now = desk.now
    _look(world, desk, s, y)
    total = now.speed + now.log_dt
    for i in range(desk.pull.size):
        total += abs(desk.pull[i])
    if not math.isfinite(total):
        return False
    _forces(world, desk)
    put(1.0, desk.a, desk.b)
    put(1.0, desk.factor, desk.units)
    for j in range(desk.a.size):
        put(1.0, desk.W[j], desk.V[j])
        put(1.0, desk.F[j], desk.force[j])
    for i in range(desk.p.size):
        desk.p[i] = desk.pull[i]
        desk.bend[i] = desk.alone[i] = -desk.pull[i] * sink(world.loss, desk.q[i])
    for i in range(world.points.size):
        k = world.points[i]
        desk.p[k] = desk.bend[k] = 0.0
        desk.alone[k] = -world.spring * math.exp(-(world.log_size + s))
    now.swift = now.speed
    if world.norm:
        z = y[y.size - 1]
        now.rate = _pace(now.log_dt, z)
        now.stiff = now.rate * (math.cosh(z) + math.tanh(z))  # rate = e^(log_dt - tau) / cosh, tau = sinh
    return True


@inner
def _noticeable(world: World, desk: Desk) -> int:
    """List the samples that make the equations stiff."""
    size, k = 0.0, 0
    for j in range(desk.b.size):
        size += desk.units[j] * (desk.b[j] ** 2 + dot(desk.V[j], desk.V[j]))
    scale = abs(desk.now.shift * desk.now.swift) * size
    for i in range(desk.alone.size):
        if scale * abs(desk.alone[i]) * world.norms[i] ** 2 > _NOTICEABLE:
            desk.E[k] = i
            k += 1
    return k


@handing
def _assemble(world: World, desk: Desk, matrix: Matrix) -> None:
    """Write down the system between samples for ``I - c J``."""
    now = desk.now
    p, d = desk.V.shape
    G, k, c = world.H.shape[0], now.k, now.shift
    alpha = 1.0 + c * world.decay
    now.alpha = alpha
    for j in range(p):
        F = desk.force[world.member[j]]
        desk.inv[j] = 0.0 if world.frozen else alpha / (alpha**2 - c**2 * dot(F, F))
    if k == 0:
        return
    X, H = _shaped(matrix.X, k, d), _shaped(matrix.H, G, k)
    T, A = _shaped(matrix.T, k, k), _shaped(matrix.A, k, k)
    for e in range(k):
        put(1.0, world.X[desk.E[e]], X[e])
        for g in range(G):
            H[g, e] = world.H[g, desk.E[e]]
    for g in range(G):
        desk.mass[g] = 0.0
    for j in range(p):
        desk.mass[world.member[j]] += desk.units[j] * desk.b[j] ** 2
    heavy = _shaped(matrix.left, G, k)
    for g in range(G):
        put(desk.mass[g], H[g], heavy[g])
    product_down(heavy, H, T)
    product_along(X, X, A)
    for e in range(k):
        for f in range(k):
            T[e, f] *= A[e, f]
    R = world.owner.size
    if R > 0:  # what the hyperplanes take out of the forces
        held = _shaped(matrix.left, R, k)
        product_along(world.basis, X, held)
        for r in range(R):
            g = world.owner[r]
            for e in range(k):
                held[r, e] *= math.sqrt(desk.mass[g]) * H[g, e]
        product_down(held, held, A)
        for e in range(k):
            add(-1.0, A[e], T[e])
    for e in range(k):
        put(1.0 / alpha, T[e], T[e])
    if not world.frozen:
        psi, across = _shaped(matrix.left, p, k), _shaped(matrix.right, p, k)
        product_along(desk.V, X, psi)
        product_along(desk.force[:G], X, across[:G])
        for j in range(p):
            g = world.member[j]
            for e in range(k):
                psi[j, e] = (psi[j, e] + (c / alpha) * desk.b[j] * across[g, e]) * H[g, e]
        for j in range(p):
            put(desk.units[j] * desk.inv[j], psi[j], across[j])
        product_down(across, psi, A)
        for e in range(k):
            add(1.0, A[e], T[e])
    for e in range(k):
        for f in range(k):
            T[e, f] *= world.y[desk.E[e]] * world.y[desk.E[f]]
        put(-c * now.swift * desk.alone[desk.E[e]], T[e], A[e])
    if world.norm:
        sums = matrix.dq[:k]
        _clear(sums)
        for e in range(k):
            add(desk.bend[desk.E[e]], T[e], sums)
        for e in range(k):
            add(c * now.swift * desk.p[desk.E[e]], sums, A[e])
    for e in range(k):
        A[e, e] += 1.0


@inner
def _blocks(world: World, desk: Desk, x: Floats) -> None:
    """Solve with the blocks of the neurons alone, in place."""
    p, d = desk.V.shape
    c, alpha = desk.now.shift, desk.now.alpha
    for j in range(p):
        w, at = x[j * (d + 1) : j * (d + 1) + d], j * (d + 1) + d
        if world.frozen:
            put(1.0 / alpha, w, w)
            x[at] /= alpha
            continue
        F = desk.force[world.member[j]]
        x[at] = desk.inv[j] * (x[at] + (c / alpha) * dot(F, w))
        add(c * x[at], F, w)
        put(1.0 / alpha, w, w)


@handing
def _changes(world: World, desk: Desk, matrix: Matrix, x: Floats) -> None:
    """Change of the margins that matter by a change of the rows."""
    p, d = desk.V.shape
    G, k = world.H.shape[0], desk.now.k
    M, dq = desk.M[:G], matrix.dq[:k]
    for g in range(G):
        _clear(M[g])
    for j in range(p):
        g = world.member[j]
        add(desk.units[j] * desk.b[j], x[j * (d + 1) : j * (d + 1) + d], M[g])
        if not world.frozen:
            add(desk.units[j] * x[j * (d + 1) + d], desk.V[j], M[g])
    X, H = _shaped(matrix.X, k, d), _shaped(matrix.H, G, k)
    Z = _shaped(matrix.left, G, k)
    product_along(M, X, Z)
    _clear(dq)
    for g in range(G):
        for e in range(k):
            dq[e] += H[g, e] * Z[g, e]
    for e in range(k):
        dq[e] *= world.y[desk.E[e]]


@inner
def _substitute(A: Floats, pivots: Ints, z: Floats) -> None:
    """Solve with the factors that LAPACK has made of the transpose, in place."""
    k = z.size
    for i in range(k):
        z[i] = (z[i] - dot(A[i, :i], z[:i])) / A[i, i]
    for i in range(k - 1, -1, -1):
        z[i] -= dot(A[i, i + 1 :], z[i + 1 :])
    for i in range(k - 1, -1, -1):
        z[i], z[pivots[i]] = z[pivots[i]], z[i]


@handing
def _solve(world: World, desk: Desk, matrix: Matrix, x: Floats) -> None:
    """Solve ``(I - c J) x = b``, in place."""
    now = desk.now
    p, d = desk.V.shape
    G, k, c = world.H.shape[0], now.k, now.shift
    _blocks(world, desk, x)
    felt = 0.0
    if k > 0:
        _changes(world, desk, matrix, x)
        X, H = _shaped(matrix.X, k, d), _shaped(matrix.H, G, k)
        z = matrix.dq[:k]
        if world.norm:
            for e in range(k):
                felt += desk.bend[desk.E[e]] * z[e]
        for e in range(k):
            i = desk.E[e]
            z[e] = c * now.swift * (desk.alone[i] * z[e] - (desk.p[i] * felt if world.norm else 0.0))
        _substitute(_shaped(matrix.A, k, k), matrix.pivots, z)
        pulls = _shaped(matrix.left, G, k)
        for g in range(G):
            for e in range(k):
                pulls[g, e] = H[g, e] * z[e] * world.y[desk.E[e]]
        product(pulls, X, desk.M[:G])
        _project(world, desk.M)
        push = desk.push
        for j in range(p):
            row, F = push[j * (d + 1) : j * (d + 1) + d], desk.M[world.member[j]]
            put(desk.b[j], F, row)
            push[j * (d + 1) + d] = 0.0 if world.frozen else dot(desk.V[j], F)
        _blocks(world, desk, push)
        add(1.0, push[: p * (d + 1)], x[: p * (d + 1)])
    if not world.norm:
        return
    felt = 0.0
    if k > 0:
        _changes(world, desk, matrix, x)
        for e in range(k):
            felt += desk.bend[desk.E[e]] * matrix.dq[e]
    x[x.size - 1] = (x[x.size - 1] - c * now.rate * felt) / (1.0 + c * now.stiff)


# -- steps ----------------------------------------------------------------------------------------------------


@inner
def _norm(factor: float, x: Floats, y: Floats, atol: Floats) -> float:
    """Root of the mean square of ``factor x``, in the errors allowed at y."""
    total = 0.0
    for i in range(x.size):
        v = factor * x[i] / (atol[i] + _RELATIVE * abs(y[i]))
        total += v * v
    return math.sqrt(total / x.size)


@inner
def _table(out: Floats, order: int, factor: float) -> None:
    for j in range(order + 1):
        out[0, j] = 1.0
        for i in range(1, order + 1):
            out[i, j] = out[i - 1, j] * (i - 1 - factor * j) / i if j > 0 else 0.0


@inner
def _rescale(desk: Desk, factor: float) -> None:
    """Turn the differences into those for steps of another length."""
    order, R, U, RU = desk.now.order, desk.turn[0], desk.turn[1], desk.turn[2]
    _table(R, order, factor)
    _table(U, order, 1.0)
    for i in range(order + 1):
        for j in range(order + 1):
            RU[i, j] = 0.0
            for k in range(order + 1):
                RU[i, j] += R[i, k] * U[k, j]
    for i in range(order + 1):
        put(1.0, desk.D[i], desk.old[i])
    for i in range(order + 1):
        put(RU[0, i], desk.old[0], desk.D[i])
        for j in range(1, order + 1):
            add(RU[j, i], desk.old[j], desk.D[i])
    desk.now.equal = 0


@handing
def _correct(world: World, then: World, desk: Desk, matrix: Matrix) -> int:
    """Solve for the end of a step by Newton's method: number of corrections, or 0 if it does not converge."""
    now, y, d, x = desk.now, desk.trial, desk.d, desk.x
    put(1.0, desk.predicted, y)
    _clear(d)
    before = -1.0
    for k in range(_NEWTON):
        _rate(world, desk, now.t_new, y)
        for i in range(x.size):
            x[i] = now.c * desk.rate[i] - desk.psi[i] - d[i]
            if not math.isfinite(desk.rate[i]):
                return 0
        _solve(then, desk, matrix, x)
        size = _norm(1.0, x, desk.predicted, desk.atol)
        speed = size / before if before >= 0.0 else 0.0
        if before >= 0.0 and (not speed < 1.0 or speed ** (_NEWTON - k) / (1.0 - speed) * size > _CLOSE):
            return 0
        add(1.0, x, y)
        add(1.0, x, d)
        if size == 0.0 or (before >= 0.0 and speed / (1.0 - speed) * size < _CLOSE):
            return k + 1
        before = size
    return 0


@inner
def _predict(desk: Desk) -> None:
    """Where the step leads if the differences go on, and what the formula takes of the past."""
    now, order = desk.now, desk.now.order
    now.t_new = now.t + now.h
    if now.t_new > now.bound:
        now.t_new = now.bound
        _rescale(desk, (now.t_new - now.t) / now.h)
        now.factorised = 0
    now.h = now.t_new - now.t
    put(1.0, desk.D[0], desk.predicted)
    _clear(desk.psi)
    for i in range(1, order + 1):
        add(1.0, desk.D[i], desk.predicted)
        add(_GAMMA[i] / _ALPHA[order], desk.D[i], desk.psi)
    now.c = now.h / _ALPHA[order]


@inner
def _accept(desk: Desk, error: float, safety: float) -> None:
    """Go to the end of the step; choose the next order and length once steps have been equal for long enough."""
    now, D, order = desk.now, desk.D, desk.now.order
    now.t_old, now.t = now.t, now.t_new
    now.equal += 1
    put(1.0, desk.trial, desk.y)
    for i in range(desk.d.size):
        D[order + 2, i] = desk.d[i] - D[order + 1, i]
        D[order + 1, i] = desk.d[i]
    for k in range(order, -1, -1):
        add(1.0, D[k + 1], D[k])
    if now.equal < order + 1:
        return
    best, chosen = -1.0, order
    for other in range(max(order - 1, 1), min(order + 1, ORDERS) + 1):
        size = error if other == order else _norm(_ERROR[other], D[other + 1], desk.y, desk.atol)
        factor = size ** (-1.0 / (other + 1)) if size > 0.0 else math.inf
        if factor > best:
            best, chosen = factor, other
    now.order = chosen
    factor = min(_GROW, safety * best)
    now.h *= factor
    _rescale(desk, factor)
    now.factorised = 0


@handing
def _advance(world: World, then: World, desk: Desk, matrix: Matrix) -> int:
    """Go on to the end of a step, or to what is to be done outside."""
    now = desk.now
    while True:
        if now.stage == _START:
            now.least = 10.0 * _LAST * abs(now.t)
            if now.h < now.least:
                _rescale(desk, now.least / now.h)
                now.h = now.least
            now.current, now.stage = 0, _TRY
        if now.stage == _TRY:
            if not now.h >= now.least:
                now.stage = _START
                return FAILED
            _predict(desk)
            now.tries += 1
            now.stage = _CORRECT
        at = world if now.fresh == 1 else then
        if now.factorised == 0:
            now.shift = now.c
            now.k = _noticeable(at, desk)
            if now.k > now.room:
                return ROOM
            _assemble(at, desk, matrix)
            now.factorised = 1
            if now.k > 0:
                return FACTOR
        corrections = _correct(world, at, desk, matrix)
        if corrections == 0:
            now.factorised = 0
            if now.current == 0:
                now.current = 1
                if _linearize(world, desk, now.t_new, desk.predicted):
                    now.fresh = 1
                continue
            now.h *= 0.5
            _rescale(desk, 0.5)
            now.stage = _TRY
            continue
        safety = 0.9 * (2 * _NEWTON + 1) / (2 * _NEWTON + corrections)
        error = _norm(_ERROR[now.order], desk.d, desk.trial, desk.atol)
        if not error <= 1.0:
            factor = max(_SHRINK, safety * error ** (-1.0 / (now.order + 1)))
            now.h *= factor
            _rescale(desk, factor)
            now.stage = _TRY
            continue
        _accept(desk, error, safety)
        now.stage = _START
        return TAKEN


def _perform(task: int, world: World, then: World, desk: Desk, matrix: Matrix, s: float, y: Floats) -> int:
    """Do one of the tasks: the one way in, so that everything is compiled once.

    ``then`` is the world in which the matrix was differentiated, unless that was in this one (now.fresh).
    """
    now = desk.now
    if task == LOOK:
        _look(world, desk, s, y)
    elif task == RATE:
        _rate(world, desk, s, y)
    elif task == BEGIN:
        _rate(world, desk, s, y)
        put(1.0, y, desk.y)
        put(1.0, y, desk.D[0])
        put(now.h, desk.rate, desk.D[1])
        for i in range(2, ORDERS + 3):
            _clear(desk.D[i])
        _linearize(world, desk, s, y)
        now.t, now.order, now.equal, now.factorised, now.fresh, now.stage = s, 1, 0, 0, 1, _START
    else:
        return _advance(world, then, desk, matrix)
    return TAKEN


_STAMP = stamp_of(__file__, "pulls.py", "passes.py", "../held.py", "../early/state.py")
#: `_perform`, compiled; the tuples as `held.Held`.
perform: Callable[..., int] = kept(_perform, stamp=_STAMP, slow="the implicit steps", nogil=True, error_model="numpy")
