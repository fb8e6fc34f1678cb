"""What watching costs a training loop: the same steps with and without it, in turn, one thread.

A step is full-batch gradient descent in float32 on 1000 points in 784 dimensions with 100 neurons. `watch` takes a
record whenever the number of steps has grown by a twentieth, and never spends more than 7 % of the time on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Case, Cells, Target

TITLE = "Watching a training loop"
TASK = "watch"
CASES = {
    "50x20, 10 neurons, 20 steps": Case(lambda: (50, 20, 10, 20, 1), 60.0),
    "1000x784, 100 neurons, 400 steps": Case(lambda: (1000, 784, 100, 400, 5), 300.0),
}
SMOKE = "50x20, 10 neurons, 20 steps"


def error(_: tuple[int, ...], __: None, away: float) -> float:
    """Largest difference between the weights trained with and without."""
    return away


def targets(cells: Cells) -> Iterator[Target]:
    """At most the share of the time that the documentation says."""
    case = "1000x784, 100 neurons, 400 steps"
    for way in ("watch", "watch, log"):
        if (extra := cells.figure(way, case)) is not None:
            yield Target(f"cost of {way}, of a step", extra, "<=", 0.07)
