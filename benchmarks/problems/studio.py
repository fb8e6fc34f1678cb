"""The studio under load: a point dragged, fifty questions at once, a thousand broken ones, memory.

Milliseconds are on the clock on the wall, from the request to the answer; in a browser, if there is one, from the move
of the pointer to the picture. `make soak` goes on for half an hour.
"""

from __future__ import annotations

from benchmarks.measure import Case

TITLE = "Studio"
TASK = "studio"
CASES = {"20 points, 50 neurons": Case(lambda: (100,), 300.0)}


def error(_: tuple[int], __: None, unanswered: int) -> float:
    """Questions that were not answered as they should be."""
    return float(unanswered)
