"""Follow the gradient flow of the logistic loss to the moment when the loss is 1e-2, as exactly as you can, one thread.

The error is the largest difference of a neuron's direction or log norm from a flow at rtol 1e-12 (which the tests
compare with Runge-Kutta steps stopped at every crossing). A point of a curve is one tolerance, or one step size.
"""

from __future__ import annotations

from collections.abc import Iterator

import reluflow as rf
from benchmarks.measure import Case, Cells, Target
from benchmarks.nets import distance, gaussian, start

TITLE = "Flow to a loss: error against time"
TASK = "flow"
_LOSS = 1e-2
_RTOLS = (1e-4, 1e-6, 1e-8, 1e-10)

CASES = {
    "teacher 8x2, p=6, He 1e-1": Case(lambda: (start(gaussian(8, 2, "teacher"), 6, 1e-1), 0.5)),
    "teacher 20x2, p=50, He 1e-1": Case(lambda: (start(gaussian(20, 2, "teacher"), 50, 1e-1), _LOSS)),
    "teacher 200x10, p=50, He 1e-1": Case(lambda: (start(gaussian(200, 10, "teacher"), 50, 1e-1), _LOSS)),
    "leaky linsep 60x10, p=40": Case(
        lambda: (rf.Problem(rf.make("linsep", n=60, d=10), rf.initialize(10, 40, slope=0.5)), _LOSS)
    ),
    "random labels 40x20, p=20, sliding": Case(lambda: (rf.Problem(rf.make("randlab"), rf.initialize(20, 20)), _LOSS)),
    "phuong 500x20, p=100, He 1e-2": Case(lambda: (start(rf.make("phuong", n=500, d=20, seed=0), 100, 1e-2), _LOSS)),
}
SMOKE = "teacher 8x2, p=6, He 1e-1"
PICTURES = ("precision", "memory")


def reference(problem: rf.Problem, loss: float) -> rf.Network:
    """Return the network of the exact flow when it comes to this loss."""
    return rf.flow(problem, {"loss": loss}, rtol=1e-12, progress=False).final


def error(_: tuple[rf.Problem, float], exact: rf.Network, net: rf.Network) -> float:
    """Largest difference of a direction or a log norm."""
    return distance(net, exact)


def targets(cells: Cells) -> Iterator[Target]:
    """Ask that the error follow the tolerance, and that what the flow preserves be preserved."""
    for case in CASES:
        found = [cell for rtol in _RTOLS if (cell := cells.get(case, "reluflow", rtol)) is not None]
        if not found:
            continue
        done = all(cell["status"] == "done" for cell in found)
        note = "rtol 1e-4 to 1e-10" if done else "not every tolerance was done in time"
        worst = max(cell["error"] / cell["setting"] for cell in found) if done else None
        yield Target(f"error over rtol, {case}", worst, "<=", 3, " rtol", note)
        drift = max(cell["figures"]["drift"] for cell in found) if done else None
        yield Target(f"drift of a^2 - |w|^2, {case}", drift, "<=", 1e-10, "", note)
