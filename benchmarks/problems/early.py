"""Follow the early phase until every neuron has met its last event, from scale 1e-6, one thread.

The exact solver beside gradient descent in NumPy with steps of several sizes (2e-3: as in the experiments of the
papers). The error of descent is the largest distance of a direction from the exact one; it falls with its step, which
is the second way to these numbers. Other cases measure the exact solver alone.
"""

from __future__ import annotations

import reluflow as rf
from benchmarks.measure import Case

TITLE = "Early phase"
TASK = "early"
_OURS = {"reluflow": None}
_SIZES = (
    (50, 5, 20),
    (100, 10, 50),
    (200, 20, 50),
    (500, 20, 100),
    (1000, 50, 100),
    (2000, 100, 100),
    (4000, 100, 100),
)


def _example(name: str) -> tuple[rf.Problem]:
    data = rf.example(name).data
    return (rf.Problem(data, rf.initialize(data.d, width=50, scale=1e-6)),)


def _case(name: str, n: int, d: int, p: int, slope: float = 0.0, varied: str = "") -> Case:
    return Case(
        lambda: (rf.Problem(rf.make(name, n=n, d=d), rf.initialize(d, width=p, slope=slope, scale=1e-6)),),
        30.0,
        {"n p d": n * p * d, "varied": varied},
        _OURS,
    )


def _mnist() -> tuple[rf.Problem]:
    data = rf.data.mnist((0, 1), center=True)
    return (rf.Problem(data, rf.initialize(data.d, width=50, scale=1e-6), "exponential"),)


CASES = {
    "EX1, p=50": Case(lambda: _example("EX1"), 5.0),
    "ML-F6, p=50": Case(lambda: _example("ML-F6"), 5.0),
    "orthsep 500x20, p=100": Case(_case("orthsep", 500, 20, 100).make, 20.0),
    "linsep 500x20, p=100": _case("linsep", 500, 20, 100),
    "randlab 40x20, p=100": _case("randlab", 40, 20, 100),
    "randlab 500x20, p=100": _case("randlab", 500, 20, 100),
    "randlab 500x20, p=100, slope 1/2": _case("randlab", 500, 20, 100, 0.5),
    "MNIST 0/1 centred, p=50": Case(_mnist, 60.0, solvers=_OURS),
    **{
        f"{name} n={n} d={d} p={p}": _case(name, n, d, p, varied=name)
        for name in ("orthsep", "linsep", "randlab")
        for n, d, p in _SIZES[: 5 if name == "randlab" else None]
    },
}
SMOKE = "EX1, p=50"
PICTURES = ("precision", "growth")


def reference(problem: rf.Problem) -> rf.dynamics.Alignment:
    """Return the exact early phase."""
    return rf.align(problem)


def error(
    _: tuple[rf.Problem], exact: rf.dynamics.Alignment, answer: rf.Network | rf.dynamics.Alignment
) -> float | None:
    """Largest difference of a direction at the last event; the exact solver is not held against itself."""
    if isinstance(answer, rf.dynamics.Alignment):
        return None
    return float(abs(answer.directions - exact.directions(float(exact.last_event.max()))).max())
