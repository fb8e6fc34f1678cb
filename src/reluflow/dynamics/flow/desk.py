"""What the compiled steps work on: the problem, the neurons with the past of the forces on them, steps written down."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...problem.types import Array, Ints, Signs
from ..early.state import Floats
from .arcs import NODES, Came, new_came
from .field import Geometry
from .passes import Singles
from .pulls import LOSSES

_STEPS = 64  # most steps in a row, where they are small ...
_CELLS = 4_000_000  # ... and how many numbers are written down for them at the most
_LARGE = 1_000_000  # neurons x faces x inputs from which products that need few digits are made in single precision
_EVENTS = 2048  # events for which there is room

#: Numbers of a step under way.
NOW = np.dtype(
    [(name, np.float64) for name in ("t", "h", "last", "upto", "factor", "pace")]
    + [
        (name, np.int64)
        for name in (
            "order",
            "nodes",
            "failed",
            "next",
            "K",
            "terms",
            "bent",
            "movers",
            "again",
            "stage",
            "steps",
            "quiet",
            "seen",
        )
    ]
)


class Fixed(NamedTuple):
    """What does not change during a phase."""

    normals: Floats  # (m, d) of the faces
    across: Floats  # (d, m)
    norms: Floats  # (n,) of the samples
    y: Floats  # (n,)
    of: Ints  # (n,) face of a sample
    orient: Signs  # (n,) whether it lies along the normal
    slope: float
    weight: float
    rtol: float
    gone: float  # log of the size below which a neuron is left as it is
    loss: int  # see `pulls`
    frozen: bool
    plain: bool  # one sample a face, along its normal
    bare: bool  # on the negative side of every face nothing pulls
    rounded: Singles  # (m, d) the normals in single precision


class Desk(NamedTuple):
    """The neurons, the last few values of the forces, and a step under way."""

    W: Floats  # (p, d) rows over their sizes
    b: Floats  # (p,)
    rho: Floats  # (p,) logs of the sizes
    excess: Floats  # (p,) b^2 - |w|^2, conserved
    tied: Signs  # (p,) whether b keeps its sign and follows from |w|; else |w| from it
    sides: Signs  # (p, m) -1, 1, or 0 where held
    Z: Floats  # (p, m) W . normals
    F: Floats  # (p, NODES + 2, d): [1] now, [2] ... the past, [0] the end of the step under way
    hist: Floats  # (NODES + 2, m) kinks of the faces, likewise
    lows: Floats  # (NODES + 2, m) pulls on their negative sides
    ages: Floats  # (NODES + 2,) of the nodes; the newest is now
    f: Floats  # (n,) outputs
    extra: Floats  # (p, d) force of the mean bend
    constant: Floats  # (m,) its pull on the negative sides
    mass: Floats  # (p,) sizes of all that pulls, summed: what cancels to the last digit of it is no force
    kink: Floats  # (NODES + 1, m)
    C: Floats  # (NODES + 1, NODES + 1)
    s: Floats  # (NODES + 2,) the nodes, in parts of the step
    nodes: Floats  # (NODES + 2,) the same with its end in front
    guess: Came
    came: Came
    late: Signs  # (p,)
    who: Ints  # (p,) neurons that move, the first `movers` of them
    again: Ints  # (p,) those that are to go again, likewise; or that met something
    ends: Floats  # (p, m) W . normals at the end of the trial
    turned: Signs  # (p, m) sides there
    packed: Signs  # (p, m) some rows of it
    f_end: Floats  # (n,)
    bends: Floats  # (3, n) moments of the bends of the pulls
    before: Floats  # (3, m) of bends of the predictor by own faces ...
    moments: Floats  # (2, 3, p, d) ... and by the others; [1] of the corrector
    own: Floats  # (3, m)
    room: Floats  # (p, m)
    part: Floats  # (m,)
    face: Floats  # (4, m): pull on the positive side, on the negative one, sizes of both
    c: Floats  # (n,)
    mean: Floats  # (n,) mean bends of the predictor
    FA: Floats  # (p, d)
    FB: Floats
    kinks: Floats  # (4, m)
    ones: Floats  # (p,)
    none: Floats  # (0,)
    scratch: Floats  # (d + m,)
    nodal: Floats  # (NODES + 1, NODES + 1)
    column: Floats  # (NODES + 2,)
    spare: Floats  # (p,)
    rows: Singles  # (p, d) for products in single precision, or (0, 0): there are none
    wide: Singles  # (p, m) likewise
    now: Any  # a record of `NOW`


class Tape(NamedTuple):
    """Steps that were taken: where each began and the forces of it, the outputs and the loss at its end, all events."""

    W: Floats  # (S + 1, p, d); the last is where all ended
    b: Floats
    rho: Floats
    excess: Floats
    sides: Signs
    mass: Floats  # (S, p)
    kink: Floats  # (S, NODES + 1, m)
    low: Floats  # the same, or (S, NODES + 1, 0): nothing
    f: Floats  # (S, n)
    clock: Floats  # (S, 4): time at the start, length, time at the end, log loss there
    terms: Ints  # (S,)
    upto: Ints  # (S + 1,) events before each step
    event: Ints  # (E, 3): neuron, face, side
    when: Floats  # (E,)


def fixed_of(geometry: Geometry, rtol: float) -> Fixed:
    """Collect what does not change."""
    faces, data, problem = geometry.faces, geometry.problem.data, geometry.problem
    up = bool((faces.orient > 0).all())
    return Fixed(
        np.ascontiguousarray(faces.normals),
        np.ascontiguousarray(faces.normals.T),
        np.ascontiguousarray(data.norms),
        np.ascontiguousarray(data.y),
        np.ascontiguousarray(faces.of, dtype=np.int64),
        np.ascontiguousarray(faces.orient, dtype=np.int8),
        float(geometry.slope),
        float(problem.weight),
        float(rtol),
        geometry.gone,
        LOSSES[problem.loss.name],
        geometry.frozen,
        up and faces.m == data.n and bool((faces.of == np.arange(data.n)).all()),
        up and geometry.slope == 0.0,
        np.ascontiguousarray(faces.normals, dtype=np.float32),
    )


def new_desk(fixed: Fixed, W: Array, b: Array) -> Desk:
    """Allocate, for rows over their sizes."""
    (p, d), (m, n) = W.shape, (fixed.normals.shape[0], fixed.y.size)
    node, large = NODES + 2, p * m * d >= _LARGE
    return Desk(
        W=W,
        b=b,
        rho=np.empty(p),
        excess=np.empty(p),
        tied=np.empty(p, np.int8),
        sides=np.empty((p, m), np.int8),
        Z=np.empty((p, m)),
        F=np.zeros((p, node, d)),
        hist=np.zeros((node, m)),
        lows=np.zeros((node, m)),
        ages=np.zeros(node),
        f=np.empty(n),
        extra=np.zeros((p, d)),
        constant=np.zeros(m),
        mass=np.zeros(p),
        kink=np.empty((NODES + 1, m)),
        C=np.empty((NODES + 1, NODES + 1)),
        s=np.zeros(node),
        nodes=np.zeros(node),
        guess=new_came(p, m, d),
        came=new_came(p, m, d),
        late=np.zeros(p, np.int8),
        who=np.empty(p, np.int64),
        again=np.empty(p, np.int64),
        ends=np.empty((p, m)),
        turned=np.empty((p, m), np.int8),
        packed=np.empty((p, m), np.int8),
        f_end=np.empty(n),
        bends=np.zeros((3, n)),
        before=np.zeros((3, m)),
        moments=np.zeros((2, 3, p, d)),
        own=np.zeros((3, m)),
        room=np.empty((p, m)),
        part=np.empty(m),
        face=np.empty((4, m)),
        c=np.empty(n),
        mean=np.zeros(n),
        FA=np.empty((p, d)),
        FB=np.empty((p, d)),
        kinks=np.empty((4, m)),
        ones=np.empty(p),
        none=np.empty(0),
        scratch=np.empty(d + m),
        nodal=np.empty((NODES + 1, NODES + 1)),
        column=np.empty(node),
        spare=np.empty(p),
        rows=np.empty((p, d) if large else (0, 0), np.float32),
        wide=np.empty((p, m) if large else (0, 0), np.float32),
        now=np.zeros(1, NOW).view(np.recarray)[0],
    )


def new_tape(fixed: Fixed, desk: Desk, most: int) -> Tape:
    """Make room for as many steps as are wanted and sensible."""
    (p, d), (m, n) = desk.W.shape, (fixed.normals.shape[0], fixed.y.size)
    cells = p * (d + 6) + p * m // 8 + 2 * (NODES + 1) * m + n
    S = max(1, min(_STEPS, most, _CELLS // cells))
    kinks = (S, NODES + 1, 0 if fixed.bare else m)
    return Tape(
        np.empty((S + 1, p, d)),
        np.empty((S + 1, p)),
        np.empty((S + 1, p)),
        np.empty((S + 1, p)),
        np.empty((S + 1, p, m), np.int8),
        np.empty((S, p)),
        np.empty((S, NODES + 1, m)),
        np.empty(kinks),
        np.empty((S, n)),
        np.empty((S, 4)),
        np.empty(S, np.int64),
        np.zeros(S + 1, np.int64),
        np.empty((max(_EVENTS, 8 * p), 3), np.int64),
        np.empty(max(_EVENTS, 8 * p)),
    )
