"""A progress bar in log t."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ...problem import progress


@contextmanager
def bar(log_end: float, wanted: bool | None) -> Iterator[Callable[[float], None]]:
    """Give a function that is told log t now and then; on a terminal it moves a bar, else it does nothing."""
    # log t runs over many decades, so the bar shows log(1 + log t); what remains of it says nothing about hours.
    total = float(np.log1p(max(log_end, 0.0))) if np.isfinite(log_end) else None
    with progress.bar("flow", total, wanted, remaining=False) as tell:
        yield lambda log_t: tell(float(np.log1p(max(log_t, 0.0))), lambda: f"log t = {log_t:.4g}")
