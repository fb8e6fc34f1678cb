"""What the compiled parts of the early phase share: the state of a neuron, its log, small vector operations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...problem.types import Ints
from ..compiled import Compiled, linked

Floats = npt.NDArray[np.float64]

#: Distances below this part of |w|, and forces below this part of sum |g|, are rounding.
TOL = 2.0**-43

#: For a neuron with |a| < |w|: a^2 - along^2 below this part of |w|^2 is 0.
SADDLE = 2.0**-46

#: What becomes of a neuron; FULL asks for a longer log.
ALIGNED, SLIDING, SHRINKING, DEAD, STUCK, UNFINISHED, FULL = range(7)

#: States in the log: +1, -1, 0 for a neuron held on the hyperplane, and these for one that only lies on it.
ON_INACTIVE, ON_ACTIVE = 2, 3

#: Where a neuron is: the size of ``a``, ``sigma`` (the path length), ``tau`` (the time), the force and where it points.
NOW = np.dtype(
    [
        (name, np.float64)
        for name in (
            "sign",
            "out",
            "size",
            "peak",
            "sigma",
            "path",
            "tau",
            "force",
            "along",
            "perp",
            "mass",
            "heavy",
            "turn",
            "cap",
            "horizon",
            "beyond",
            "opened",
        )
    ]
)
#: How many hyperplanes, events and entries there are, the surface met next, whether the path may not be the only one.
TALLY = np.dtype(
    [(name, np.int64) for name in ("on", "held", "events", "heap", "seen", "stall", "entries", "next", "many")]
)


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
    # Numbers a hyperplane. With a Gram matrix z = n.w and rate = n.c are current; without one they are as of path
    # length ``at`` and total turn ``age`` of c.
    g: Floats
    was: Floats
    z: Floats
    rate: Floats
    at: Floats
    age: Floats
    key: Floats
    step: Floats
    saved_g: Floats
    seen_at: Ints  # event number of z
    on: Ints  # the hyperplanes the neuron lies on ...
    held: Ints  # ... those of them that carry the sliding ...
    place: Ints  # ... and the place of each among the latter, or -1
    heap: Ints  # candidates, ordered
    seen: Ints  # candidates looked at
    saved_held: Ints
    Q: Floats  # orthonormal rows spanning the held normals
    R: Floats  # normals[held].T = Q.T R
    now: Any  # a record of `NOW`
    tally: Any  # a record of `TALLY`


class Log(NamedTuple):
    """Segments of straight motion, and what changed at the start of each."""

    segment: Floats  # (cap, 7): tau, path, force, out, along, perp, sign
    end: Ints  # (cap,) end of its entries below
    surface: Ints  # (cap', 3): hyperplane, state before, state after
    change: Floats  # (cap',) of g


def new_neuron(m: int, d: int) -> Neuron:
    """Allocate the state; a neuron is put into it by the kernel."""
    most = min(m, d)
    now, tally = (np.zeros(1, kind).view(np.recarray)[0] for kind in (NOW, TALLY))
    sizes = dict.fromkeys(("w", "c", "old", "saved"), d)
    sizes |= dict.fromkeys(("side", "g", "was", "z", "rate", "at", "age", "key", "step", "saved_g"), m)
    lists = ("seen_at", "on", "held", "place", "heap", "seen", "saved_held")
    arrays: dict[str, Any] = {name: np.zeros(size) for name, size in sizes.items()}
    arrays |= {name: np.zeros(m, np.int64) for name in lists}
    return Neuron(**arrays, Q=np.empty((most, d)), R=np.empty((most, most)), now=now, tally=tally)


def new_log(rows: int, entries: int) -> Log:
    """Allocate a log."""
    return Log(np.empty((rows, 7)), np.empty(rows, np.int64), np.empty((entries, 3), np.int64), np.empty(entries))


def jit(function: Compiled) -> Compiled:
    """Compile; what is compiled is kept on disk with the one entry point of `kernel`."""
    fast = {"reassoc", "contract"} if function.__name__ == "dot" else False  # sums in vector registers
    return linked(function, fastmath=fast, _nrt=False)  # nothing is allocated, so views need no reference counts


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


Four = tuple[float, float, float, float]


@jit
def put_four(t: Four, x0: Floats, x1: Floats, x2: Floats, x3: Floats, y: Floats) -> None:
    """``y = sum_k t_k x_k``."""
    for i in range(y.size):
        y[i] = t[0] * x0[i] + t[1] * x1[i] + (t[2] * x2[i] + t[3] * x3[i])


@jit
def add_four(t: Four, x0: Floats, x1: Floats, x2: Floats, x3: Floats, y: Floats) -> None:
    """``y += sum_k t_k x_k``."""
    for i in range(y.size):
        y[i] += t[0] * x0[i] + t[1] * x1[i] + (t[2] * x2[i] + t[3] * x3[i])


@jit
def distance(x: Floats, y: Floats) -> float:
    """Euclidean distance."""
    total = 0.0
    for i in range(x.size):
        total += (x[i] - y[i]) ** 2
    return math.sqrt(total)
