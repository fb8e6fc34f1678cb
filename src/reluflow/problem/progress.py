"""What takes long is shown on the terminal, and leaves no trace there; on a pipe there is nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

_MOMENT = 0.5  # seconds after which a bar appears, and between two changes of it

Words = Callable[[], str]


class Work(NamedTuple):
    """How far one piece of work is; the total is None where nobody knows it."""

    done: float
    total: float | None
    words: str = ""


def visible(wanted: bool | None) -> bool:
    """Whether to show anything: as was wanted, and where nothing was said if stderr is a terminal."""
    return (sys.stderr is not None and sys.stderr.isatty()) if wanted is None else wanted


def busy(what: str, wanted: bool | None = None) -> AbstractContextManager[object]:
    """Show that something is being done."""
    if not visible(wanted):
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)


@contextmanager
def bar(
    what: str, total: float | None, wanted: bool | None = None, remaining: bool = True
) -> Iterator[Callable[[float, Words], None]]:
    """Give a function that is told now and then how far it is; after a moment it shows a bar and the words."""
    with bars(wanted, remaining) as show:
        if show is None:
            yield lambda _done, _words: None
            return
        last = time.monotonic()

        def tell(done: float, words: Words) -> None:
            nonlocal last
            if time.monotonic() >= last + _MOMENT:  # the words may take time themselves
                show({what: Work(done, total, words())})
                last = time.monotonic()

        yield tell


@contextmanager
def bars(wanted: bool | None = None, remaining: bool = True) -> Iterator[Callable[[Mapping[str, Work]], None] | None]:
    """Give a function that shows a bar for each piece of work it is told of, or None where nothing is shown."""
    if not visible(wanted):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"), TimeElapsedColumn()]
    columns += [TimeRemainingColumn()] if remaining else []
    tasks: dict[str, TaskID] = {}
    shown = Progress(*columns, console=Console(stderr=True), transient=True)

    def show(works: Mapping[str, Work]) -> None:
        shown.start()
        for name, work in works.items():
            if name not in tasks:
                tasks[name] = shown.add_task(name, words="")
            shown.update(tasks[name], completed=work.done, total=work.total, words=work.words)
        for name in set(tasks) - set(works):
            shown.remove_task(tasks.pop(name))

    try:
        yield show
    finally:
        shown.stop()
