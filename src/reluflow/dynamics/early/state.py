"""What the compiled parts of the early phase share: the state of a neuron, its log, small vector operations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba.core.types.misc import unliteral

from ...problem.types import Ints
from ..compiled import Compiled

Floats = npt.NDArray[np.float64]

#: Distances below this part of |w|, and forces below this part of sum |g|, are rounding.
TOL = 2.0**-43

#: For a neuron with |a| < |w|: a^2 - along^2 below this part of |w|^2 is 0.
SADDLE = 2.0**-46

#: What becomes of a neuron; FULL asks for a longer log.
ALIGNED, SLIDING, SHRINKING, DEAD, STUCK, UNFINISHED, FULL = range(7)

#: States in the log: +1, -1, 0 for a neuron held on the hyperplane, and these for one that only lies on it.
ON_INACTIVE, ON_ACTIVE = 2, 3

# Rows of Neuron.per: numbers a hyperplane. With a Gram matrix Z = n.w and RATE = n.c are current; without one they
# are as of path length AT and total turn AGE of c.
G, WAS, Z, RATE, AT, AGE, KEY, STEP, SAVED_G = range(9)
# Rows of Neuron.lists: event number of Z, the hyperplanes the neuron lies on, those of them that carry the sliding,
# the place of each among the latter (or -1), candidates ordered as a heap, candidates looked at.
SEEN_AT, ON, HELD, PLACE, HEAP, SEEN, SAVED_HELD = range(7)
# Places in Neuron.now.
SIGN, OUT, SIZE, PEAK, SIGMA, PATH, TAU, FORCE, ALONG, PERP, MASS, HEAVY, TURN, CAP, HORIZON, BEYOND, OPENED = range(17)
# Places in Neuron.tally.
N_ON, N_HELD, N_EVENTS, N_HEAP, N_SEEN, N_STALL, N_ENTRIES, NEXT, MANY = range(9)


class World(NamedTuple):
    """What all neurons share."""

    normals: Floats  # (m, d) unit rows
    weights: Floats  # (m,)
    fixed: Floats  # (d,) part of the force that no hyperplane changes
    gram: Floats  # (m, m), or (0, 0): then nothing of size m x m is formed
    slope: float
    first: bool  # only the first layer is trained: the output weight is constant
    leave: bool  # at a ridge take the active side


class Neuron(NamedTuple):
    """Everything about one neuron, so that it can be interrupted and resumed."""

    w: Floats
    c: Floats
    old: Floats  # force before the event
    saved: Floats  # another force
    side: Floats  # +1, -1, 0 on the hyperplane
    per: Floats  # (9, m)
    lists: Ints  # (7, m)
    Q: Floats  # orthonormal rows spanning the held normals
    R: Floats  # normals[held].T = Q.T R
    now: Floats
    tally: Ints


class Log(NamedTuple):
    """Segments of straight motion, and what changed at the start of each."""

    segment: Floats  # (cap, 7): tau, path, force, out, along, perp, sign
    end: Ints  # (cap,) end of its entries below
    surface: Ints  # (cap', 3): hyperplane, state before, state after
    change: Floats  # (cap',) of g


def new_neuron(m: int, d: int) -> Neuron:
    """Allocate the state; a neuron is put into it by the kernel."""
    most = min(m, d)
    return Neuron(
        np.zeros(d),
        np.zeros(d),
        np.zeros(d),
        np.zeros(d),
        np.zeros(m),
        np.zeros((9, m)),
        np.zeros((7, m), np.int64),
        np.empty((most, d)),
        np.empty((most, most)),
        np.zeros(17),
        np.zeros(9, np.int64),
    )


def new_log(rows: int, entries: int) -> Log:
    """Allocate a log."""
    return Log(np.empty((rows, 7)), np.empty(rows, np.int64), np.empty((entries, 3), np.int64), np.empty(entries))


def jit(function: Compiled) -> Compiled:
    """Compile; what is compiled is kept on disk with the one entry point of `kernel`."""
    options: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    options["_nrt"] = False  # nothing is allocated, so views need no reference counts
    if function.__name__ == "dot":
        options["fastmath"] = {"reassoc", "contract"}  # sums in vector registers
    compiled: Any = numba.njit(**options)(function)
    template = compiled.get_call_template

    def plain(args: Any, kws: Any) -> Any:
        return template(tuple(unliteral(arg) for arg in args), kws)

    compiled.get_call_template = plain  # or numba compiles `f(0)` and `f(n)` separately
    return compiled  # type: ignore[no-any-return]


@jit
def dot(x: Floats, y: Floats) -> float:
    """Inner product."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@jit
def add(t: float, x: Floats, y: Floats) -> None:
    """``y += t x``."""
    for i in range(x.size):
        y[i] += t * x[i]


@jit
def put(t: float, x: Floats, y: Floats) -> None:
    """``y = t x``."""
    for i in range(x.size):
        y[i] = t * x[i]


@jit
def distance(x: Floats, y: Floats) -> float:
    """Euclidean distance."""
    total = 0.0
    for i in range(x.size):
        total += (x[i] - y[i]) ** 2
    return math.sqrt(total)
