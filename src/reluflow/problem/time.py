"""How long work may take: one limit for everything that is done inside it.

Long loops ask `check_time` once in a while; whoever has something to show for the time spent catches the `OutOfTime`
it raises, and says what there is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .checks import is_number
from .errors import OutOfTime, ProblemError

_END: ContextVar[float] = ContextVar("reluflow_end", default=np.inf)  # in seconds of time.monotonic


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Let what is done inside take at most so many seconds; None sets no limit of its own.

    Limits nest: an inner one can only end the work earlier.

    Examples
    --------
    >>> with time_limit(60):
    ...     time_left() <= 60
    True
    >>> time_left()
    inf
    """
    if seconds is not None and not (is_number(seconds) and seconds > 0):  # nan is refused too
        raise ProblemError(f"time_limit = {seconds!r}: a positive number of seconds is needed; leave it out for none.")
    end = np.inf if seconds is None else time.monotonic() + float(seconds)
    token = _END.set(min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


@contextmanager
def part_of_time(share: float) -> Iterator[None]:
    """Let what is done inside take at most this part of the time that is left, so that some is left for what follows.

    Examples
    --------
    >>> with time_limit(60), part_of_time(0.5):
    ...     time_left() <= 30
    True
    """
    left = time_left()
    token = _END.set(min(_END.get(), time.monotonic() + share * left))
    try:
        yield
    finally:
        _END.reset(token)


def time_left() -> float:
    """Seconds until the limit under way ends; inf where there is none, negative when it has passed."""
    return _END.get() - time.monotonic()


def check_time(doing: str, partial: Any = None) -> None:
    """Raise `OutOfTime` if the limit under way has passed.

    Parameters
    ----------
    doing : str
        What is being done, for the message: ``following the flow``.
    partial : object, optional
        What there is so far, or a function that makes it: called only if time is over.
    """
    if time_left() <= 0:
        raise OutOfTime(
            f"the time limit ended while {doing}; what was found so far is kept, and a larger time limit goes on.",
            partial() if callable(partial) else partial,
        )
