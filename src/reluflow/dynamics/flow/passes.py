"""Passes over all neurons and faces between the products of matrices: compiled, small, each kept on its own."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ...problem.types import Ints, Signs
from ..compiled import Compiled, linked
from ..early.state import Floats, add, add_four, dot, put_four
from .roots import lagrange

_STEPS = 8  # places at which the error of the interpolation is averaged


#: Arrays in single precision.
Singles = npt.NDArray[np.float32]

_FAST = {"reassoc", "contract", "nsz"}


def _inner(function: Compiled, counted: bool) -> Compiled:
    return linked(function, fastmath=_FAST, _nrt=counted)


def inner(function: Compiled) -> Compiled:
    """Compile what only compiled functions call; it is kept with them. It neither allocates nor returns arrays."""
    return _inner(function, False)


def handing(function: Compiled) -> Compiled:
    """Compile the same for a function that returns arrays, whose references are counted."""
    return _inner(function, True)


@handing
def product(A: Floats, B: Floats, out: Floats) -> None:
    """Multiply: ``A @ B``, by BLAS."""
    np.dot(A, B, out)


@handing
def product_along(A: Floats, B: Floats, out: Floats) -> None:
    """Multiply: ``A @ B.T``."""
    np.dot(A, B.T, out)


@handing
def product_down(A: Floats, B: Floats, out: Floats) -> None:
    """Multiply: ``A.T @ B``."""
    np.dot(A.T, B, out)


@handing
def product_across(A: Floats, normals: Singles, rows: Singles, room: Singles, out: Floats) -> None:
    """Multiply to seven digits: ``A @ normals.T``, in half of the time."""
    top = _rounded(A, rows)
    np.dot(rows, normals.T, room)
    _widened(top, room, out)


@handing
def product_back(A: Floats, normals: Singles, room: Singles, rows: Singles, out: Floats) -> None:
    """Multiply to seven digits: ``A @ normals``."""
    top = _rounded(A, room)
    np.dot(room, normals, rows)
    _widened(top, rows, out)


@inner
def _rounded(A: Floats, out: Singles) -> float:
    """Round to single precision, over the largest entry."""
    top = 0.0
    for j in range(A.shape[0]):
        for i in range(A.shape[1]):
            top = max(top, abs(A[j, i]))
    over = 1.0 / top if top > 0.0 else 0.0
    for j in range(A.shape[0]):
        for i in range(A.shape[1]):
            out[j, i] = over * A[j, i]
    return top


@inner
def _widened(top: float, A: Singles, out: Floats) -> None:
    for j in range(A.shape[0]):
        for i in range(A.shape[1]):
            out[j, i] = top * A[j, i]


@inner
def combine(weights: Floats, rows: Floats, n: int, out: Floats) -> None:
    """``sum_k weights_k rows_k`` over the first n, of which there is one; four at a time, for rows of faces."""
    k = 1 + (n - 1) % 4
    b, c, e = 1 if k > 1 else 0, 2 if k > 2 else 0, 3 if k > 3 else 0
    put_four(
        (weights[0], weights[b] if k > 1 else 0.0, weights[c] if k > 2 else 0.0, weights[e] if k > 3 else 0.0),
        rows[0],
        rows[b],
        rows[c],
        rows[e],
        out,
    )
    while k < n:
        four = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        add_four(four, rows[k], rows[k + 1], rows[k + 2], rows[k + 3], out)
        k += 4


@inner
def interpolate(nodes: Floats, terms: int, hist: Floats, C: Floats, kink: Floats, room: Floats) -> None:
    """Lagrange coefficients of the nodes, and with them those of the kinks."""
    lagrange(nodes, terms, C, room)
    for m in range(terms):
        combine(C[m], hist, terms, kink[m])


@inner
def sum_active(Z: Floats, A: Floats, sides: Signs, out: Floats) -> None:
    """``sum_j A_j z_jk`` over the neurons on the positive side of each face."""
    for k in range(Z.shape[1]):
        out[k] = 0.0
    for j in range(Z.shape[0]):
        if A[j] != 0.0:
            for k in range(Z.shape[1]):
                out[k] += A[j] * Z[j, k] if sides[j, k] > 0 else 0.0


@inner
def spread(
    sides: Signs, up: Floats, down: Floats, up_size: Floats, down_size: Floats, out: Floats, mass: Floats
) -> None:
    """Pull of each face on each neuron, by its side (held counts as the negative one), and the sum of the sizes."""
    for j in range(sides.shape[0]):
        total = 0.0
        for k in range(sides.shape[1]):
            on = sides[j, k] > 0
            out[j, k] = up[k] if on else down[k]
            total += up_size[k] if on else down_size[k]
        mass[j] = total


@inner
def kinks_behind(kink: Floats, sides: Signs, z: Floats) -> float:
    """Sum the kinks of faces that a neuron is behind."""
    total = 0.0
    for k in range(z.size):
        total += abs(kink[k]) if sides[k] != 0 and sides[k] * z[k] <= 0.0 else 0.0
    return total


@inner
def count_near(sides: Signs, z0: Floats, z1: Floats, slack0: float, slack1: float) -> int:
    """How many faces are near at either end of a path: most often none is, and that is seen at once."""
    n = 0
    for k in range(z0.size):
        n += 1 if sides[k] != 0 and (sides[k] * z1[k] <= slack1 or sides[k] * z0[k] <= slack0) else 0
    return n


@inner
def count_held(sides: Signs) -> int:
    """How many faces hold a neuron."""
    n = 0
    for k in range(sides.size):
        n += 1 if sides[k] == 0 else 0
    return n


@inner
def follow_log(sides: Signs, face: Ints, side: Signs, n: Ints) -> None:
    """Sides after the events."""
    for j in range(n.size):
        for e in range(n[j]):
            if face[j, e] >= 0:
                sides[j, face[j, e]] = side[j, e]


@inner
def turn_history(
    sides: Signs, F: Floats, nodes: int, hist: Floats, normals: Floats, face: Ints, side: Signs, n: Ints, bare: bool
) -> None:
    """Sides after the events, and the forces at the old nodes with them (held counts as the negative side).

    ``bare``: on the negative side of every face nothing pulls, not even what rounding leaves over.
    """
    for j in range(n.size):
        for e in range(n[j]):
            k = face[j, e]
            if k < 0:
                continue
            change = (1.0 if side[j, e] > 0 else 0.0) - (1.0 if sides[j, k] > 0 else 0.0)
            if change != 0.0:
                for q in range(1, nodes + 1):
                    add(change * hist[q, k], normals[k], F[j, q])
            sides[j, k] = side[j, e]
        felt = not bare or n[j] == 0
        for k in range(sides.shape[1]):
            felt = felt or sides[j, k] > 0
        if not felt:
            for q in range(1, nodes + 1):
                for i in range(F.shape[2]):
                    F[j, q, i] = 0.0


@inner
def overdue(Z: Floats, sides: Signs, tol: float, late: Signs) -> int:
    """Which neurons are on the wrong side of a face by more than ``tol``."""
    count = 0
    for j in range(Z.shape[0]):
        wrong = 0
        for k in range(Z.shape[1]):
            wrong += 1 if sides[j, k] * Z[j, k] < -tol else 0
        late[j] = 1 if wrong > 0 else 0
        count += wrong
    return count


@inner
def estimate(
    new: Floats, F: Floats, weight: Floats, nodes: Floats, terms: int, h: float, C: Floats, c: Floats, gap: Floats
) -> float:
    r"""Error of a step with so many old nodes: ``h |dF|`` times the mean of :math:`\prod (x - s_q)/(1 - s_q)`.

    dF is the largest difference between new forces and the polynomial through those nodes, continued to 1; C, c, gap
    are room to work in.
    """
    lagrange(nodes, terms, C, c)
    mean = 0.0
    for i in range(_STEPS):
        v, x = 1.0, (i + 0.5) / _STEPS
        for q in range(terms):
            v *= (x - nodes[q]) / (1.0 - nodes[q])
        mean += v / _STEPS
    for q in range(terms):
        c[q] = 0.0
        for m in range(terms):
            c[q] += C[m, q]
    worst = 0.0
    for j in range(new.shape[0]):
        if weight[j] == 0.0:
            continue
        for i in range(gap.size):
            gap[i] = new[j, i]
        for q in range(terms):
            add(-c[q], F[j, q + 1], gap)
        worst = max(worst, weight[j] * weight[j] * dot(gap, gap))
    return h * mean * math.sqrt(worst)
