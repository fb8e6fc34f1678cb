"""The compiled part of a step of descent: everything between the two matrix products, in one pass each.

The buffer ``P`` of shape (n, p) holds the preactivations ``w_j . x_i`` on entry and, after `rows` or `backward`, the
weights ``c_i phi'(w_j . x_i)`` whose product with X is the force on every neuron.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numba

Compiled = TypeVar("Compiled", bound=Callable[..., Any])


def _jit(function: Compiled) -> Compiled:
    # Sums may be reordered, or they would not vectorise; infinities and NaN keep their meaning.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # there is no place to keep what was compiled
        return numba.njit(**options)(function)  # type: ignore[no-any-return]


@_jit
def rows(P: Any, a: Any, y: Any, slope: Any, kink: Any, rate: Any, exponential: bool, measure: bool) -> float:
    """Margins, forces and weights of all samples; returns the sum of the losses if ``measure``, else 0."""
    n, p = P.shape
    total = 0.0
    for i in range(n):
        f = a[0] * 0
        for j in range(p):
            z = P[i, j]
            f += a[j] * (z if z > 0 else slope * z)
        q = float(y[i]) * float(f)
        if exponential:
            g = math.exp(-q)
            loss = g
        else:
            e = math.exp(-abs(q))
            g = (e if q > 0 else 1.0) / (1.0 + e)
            loss = (max(-q, 0.0) + math.log1p(e)) if measure else 0.0
        total += loss
        c = P.dtype.type(rate * g * float(y[i]))
        off, at = slope * c, kink * c
        for j in range(p):
            z = P[i, j]
            P[i, j] = c if z > 0 else (off if z < 0 else at)
    return total if measure else 0.0


@_jit
def forward(P: Any, a: Any, y: Any, slope: Any, q: Any) -> None:
    """Margins alone: ``q_i = y_i sum_j a_j phi(P_ij)``."""
    for i in range(P.shape[0]):
        f = a[0] * 0
        for j in range(P.shape[1]):
            z = P[i, j]
            f += a[j] * (z if z > 0 else slope * z)
        q[i] = float(y[i]) * float(f)


@_jit
def backward(P: Any, c: Any, slope: Any, kink: Any) -> None:
    """Replace ``P_ij`` by ``c_i phi'(P_ij)``."""
    for i in range(P.shape[0]):
        on = P.dtype.type(c[i])
        off, at = slope * on, kink * on
        for j in range(P.shape[1]):
            z = P[i, j]
            P[i, j] = on if z > 0 else (off if z < 0 else at)


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
