"""Passes over all neurons and faces between the products of matrices: compiled, small, each kept on its own."""

from __future__ import annotations

import math
import zlib
from pathlib import Path

import numpy as np

from ...problem.types import Ints, Signs
from ..compiled import Compiled, kept
from ..early.state import Floats, add, dot, jit
from .roots import lagrange

_STEPS = 8  # places at which the error of the interpolation is averaged


def _stamp() -> int:
    parts = [Path(__file__).with_name("roots.py"), Path(__file__).parents[1] / "early" / "state.py"]
    try:
        return 1 + zlib.crc32(b"".join(part.read_bytes() for part in parts))
    except OSError:
        return 1


STAMP = _stamp()


def compiled(function: Compiled) -> Compiled:
    """Compile and keep."""
    return kept(function, stamp=STAMP, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


@compiled
def interpolate(nodes: Floats, terms: int, hist: Floats, C: Floats, kink: Floats) -> None:
    """Lagrange coefficients of the nodes, and with them those of the kinks."""
    c = np.empty(terms + 1)
    lagrange(nodes, terms, C, c)
    for k in range(hist.shape[1]):
        for m in range(terms):
            s = 0.0
            for q in range(terms):
                s += C[m, q] * hist[q, k]
            kink[m, k] = s


@compiled
def sum_active(Z: Floats, A: Floats, sides: Signs, out: Floats) -> None:
    """``sum_j A_j z_jk`` over the neurons on the positive side of each face."""
    for k in range(Z.shape[1]):
        out[k] = 0.0
    for j in range(Z.shape[0]):
        if A[j] != 0.0:
            for k in range(Z.shape[1]):
                out[k] += A[j] * Z[j, k] if sides[j, k] > 0 else 0.0


@compiled
def spread(sides: Signs, up: Floats, down: Floats, sizes: Floats, out: Floats, mass: Floats) -> None:
    """Pull of each face on each neuron, by its side (held counts as the negative one), and the sum of the sizes."""
    for j in range(sides.shape[0]):
        total = 0.0
        for k in range(sides.shape[1]):
            on = sides[j, k] > 0
            out[j, k] = up[k] if on else down[k]
            total += sizes[0, k] if on else sizes[1, k]
        mass[j] = total


@compiled
def follow_log(sides: Signs, face: Ints, side: Signs, n: Ints) -> None:
    """Sides after the events."""
    for j in range(n.size):
        for e in range(n[j]):
            if face[j, e] >= 0:
                sides[j, face[j, e]] = side[j, e]


@compiled
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
        if bare and n[j] > 0 and not (sides[j] > 0).any():
            for q in range(1, nodes + 1):
                for i in range(F.shape[2]):
                    F[j, q, i] = 0.0


@compiled
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


@jit
def _deviation(new: Floats, F: Floats, weight: Floats, C: Floats, terms: int, gap: Floats) -> float:
    """Largest difference between new forces and the polynomial through some old nodes, continued to 1."""
    worst = 0.0
    for j in range(new.shape[0]):
        if weight[j] == 0.0:
            continue
        for i in range(gap.size):
            gap[i] = new[j, i]
        for q in range(terms):
            s = 0.0
            for m in range(terms):
                s += C[m, q]
            for i in range(gap.size):
                gap[i] -= s * F[j, q + 1, i]
        worst = max(worst, weight[j] * weight[j] * dot(gap, gap))
    return math.sqrt(worst)


@compiled
def estimate(new: Floats, F: Floats, weight: Floats, nodes: Floats, terms: int, h: float) -> float:
    r"""Error of a step with so many old nodes: ``h |dF|`` times the mean of :math:`\prod (x - s_q)/(1 - s_q)`."""
    C, c, gap = np.empty((terms, terms)), np.empty(terms + 1), np.empty(new.shape[1])
    lagrange(nodes, terms, C, c)
    mean = 0.0
    for i in range(_STEPS):
        v, x = 1.0, (i + 0.5) / _STEPS
        for q in range(terms):
            v *= (x - nodes[q]) / (1.0 - nodes[q])
        mean += v / _STEPS
    return h * mean * _deviation(new, F, weight, C, terms, gap)


@compiled
def bend_history(F: Floats, nodes: Floats, n: int, FA: Floats, FB: Floats) -> None:
    """``F_q += FA s_q - FB`` at the n newest nodes."""
    for j in range(F.shape[0]):
        for q in range(n):
            for i in range(F.shape[2]):
                F[j, q + 1, i] += FA[j, i] * nodes[q] - FB[j, i]


@compiled
def push_history(F: Floats, n: int, new: Floats) -> None:
    """Put new forces in front of the n newest."""
    for j in range(F.shape[0]):
        for q in range(n, 0, -1):
            for i in range(F.shape[2]):
                F[j, q + 1, i] = F[j, q, i]
        for i in range(F.shape[2]):
            F[j, 1, i] = new[j, i]
