"""A progress bar in log t."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def bar(log_end: float, show: bool | None) -> Iterator[Callable[[float], None]]:
    """Give a function that is told log t now and then; on a terminal it moves a bar, else it does nothing."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda _log_t: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("flow"),
        BarColumn(),
        TextColumn("log t = {task.fields[at]:.4g}"),
        TimeElapsedColumn(),
        console=console,
    ) as shown:
        # log t runs over many decades, so the bar shows log(1 + log t).
        total = float(np.log1p(max(log_end, 0.0))) if np.isfinite(log_end) else None
        task = shown.add_task("flow", total=total, at=float("-inf"))

        def tell(log_t: float) -> None:
            shown.update(task, completed=float(np.log1p(max(log_t, 0.0))), at=log_t)

        yield tell
