"""The compiled part of a step of descent: everything between the two matrix products, in one pass each.

The buffer ``P`` of shape (p, n) holds the preactivations ``w_j . x_i`` on entry and, after `both_ways` or `backward`,
the weights ``c_i phi'(w_j . x_i)`` whose product with X is the force on every neuron. One row a neuron: so the sums
over neurons vectorise over the samples, and so BLAS is fastest where samples are many and neurons few.
"""

from __future__ import annotations

import math
from typing import Any

from ..compiled import Compiled, kept

_TILE = 1024


def _jit(function: Compiled) -> Compiled:
    # Sums may be reordered, or they would not vectorise; infinities and NaN keep their meaning.
    return kept(function, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@_jit
def forward(P: Any, a: Any, y: Any, slope: Any, q: Any) -> None:
    """Margins ``q_i = y_i sum_j a_j phi(P_ji)``."""
    for first in range(0, q.size, _TILE):  # the tile stays in the cache
        last = min(first + _TILE, q.size)
        part = q[first:last]
        part[:] = 0
        for j in range(P.shape[0]):
            row, out = P[j, first:last], a[j]
            for i in range(row.size):
                part[i] += out * max(row[i], slope * row[i])
        part *= y[first:last]


@_jit
def backward(P: Any, c: Any, slope: Any, kink: Any) -> None:
    """Replace ``P_ji`` by ``c_i phi'(P_ji)``."""
    one = slope * 0 + 1
    for first in range(0, c.size, _TILE):
        last = min(first + _TILE, c.size)
        part = c[first:last]
        for j in range(P.shape[0]):
            row = P[j, first:last]
            for i in range(row.size):
                z = row[i]
                h = slope if z < 0 else kink  # two choices between numbers vectorise, a nested one does not
                row[i] = part[i] * (one if z > 0 else h)


@_jit
def both_ways(
    P: Any, a: Any, y: Any, slope: Any, kink: Any, rate: float, exponential: bool, measure: bool, q: Any
) -> float:
    """Margins, forces and weights of all samples; returns the sum of the losses if ``measure``, else 0."""
    forward(P, a, y, slope, q)
    total = 0.0
    for i in range(q.size):
        margin = float(q[i])
        if exponential:
            force = math.exp(-margin)
            total += force
        else:
            e = math.exp(-abs(margin))
            force = (e if margin > 0 else 1.0) / (1.0 + e)
            if measure:
                total += max(-margin, 0.0) + math.log1p(e)
        q[i] = rate * force * y[i]
    backward(P, q, slope, kink)
    return total


@_jit
def visit(
    V: Any,
    a: Any,
    X: Any,
    y: Any,
    order: Any,
    slope: Any,
    kink: Any,
    rate: float,
    exponential: bool,
    both: bool,
    z: Any,
    s: Any,
    at: Any,
) -> None:
    """One step with each sample of ``order``, one after the other; ``V`` is W transposed, the last three are buffers.

    A row of V is one feature of all neurons: what a sample does not have (the dark pixels of an image) costs nothing.
    ``at``, one longer than a sample, takes the features that it has.
    """
    one = slope * 0 + 1
    for i in order:
        count = _present(X[i], at)
        _preactivations(V, X[i], at, count, z)
        margin = 0.0
        for j in range(z.size):
            margin += a[j] * max(z[j], slope * z[j])
        margin *= y[i]
        e = math.exp(-margin if exponential else -abs(margin))
        force = e if exponential else (e if margin > 0 else 1.0) / (1.0 + e)
        c = a.dtype.type(rate * force * y[i])
        for j in range(z.size):
            h = slope if z[j] < 0 else kink
            g = c * (one if z[j] > 0 else h)
            s[j] = a[j] * g
            if both:
                a[j] += z[j] * g  # w_j . D_j, since D_j is g times the sample
        for k in at[:count]:
            x, row = X[i, k], V[k]
            for j in range(z.size):
                row[j] += x * s[j]


@_jit
def _present(x: Any, at: Any) -> int:
    """Write down where x is not 0, without a branch; returns how many places these are."""
    count = 0
    for k in range(x.size):
        at[count] = k
        count += x[k] != 0
    return count


@_jit
def _preactivations(V: Any, x: Any, at: Any, count: int, z: Any) -> None:
    """Sum of the rows of V with the factors x, over the places given; four at a time, so that z is read less often."""
    z[:] = 0
    whole = count - count % 4
    for m in range(0, whole, 4):
        k0, k1, k2, k3 = at[m], at[m + 1], at[m + 2], at[m + 3]
        x0, x1, x2, x3 = x[k0], x[k1], x[k2], x[k3]
        v0, v1, v2, v3 = V[k0], V[k1], V[k2], V[k3]
        for j in range(z.size):
            z[j] += x0 * v0[j] + x1 * v1[j] + x2 * v2[j] + x3 * v3[j]
    for k in at[whole:count]:
        x0, v0 = x[k], V[k]
        for j in range(z.size):
            z[j] += x0 * v0[j]


@_jit
def ascend(W: Any, a: Any, D: Any, both: bool) -> None:
    """``w_j += a_j D_j`` and, where both layers are trained, ``a_j += w_j . D_j`` with the old ``w_j``."""
    for j in range(W.shape[0]):
        out, along = a[j], a[j] * 0
        for k in range(W.shape[1]):
            along += W[j, k] * D[j, k]
            W[j, k] += out * D[j, k]
        if both:
            a[j] = out + along


@_jit
def adam(W: Any, G: Any, M: Any, V: Any, size: Any, beta1: Any, beta2: Any, root: Any, epsilon: Any) -> None:
    """One step of Adam on flat arrays, upwards along G: ``size`` and ``root`` carry the bias corrections."""
    for k in range(W.size):
        g = G[k]
        M[k] = beta1 * M[k] + (1 - beta1) * g
        V[k] = beta2 * V[k] + (1 - beta2) * g * g
        W[k] += size * M[k] / (W.dtype.type(math.sqrt(V[k])) / root + epsilon)
