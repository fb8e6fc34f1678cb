"""What takes long is shown on the terminal, and leaves no trace there; on a pipe there is nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import escape
from typing import NamedTuple

_MOMENT = 0.5  # seconds after which a bar appears, and between two changes of it

Words = Callable[[], str]


class Work(NamedTuple):
    """How far one piece of work is; the total is None where nobody knows it."""

    done: float
    total: float | None
    words: str = ""


def in_notebook() -> bool:
    """Whether this runs in a notebook, where stderr is no terminal and people look on all the same."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and hasattr(shell, "kernel")


def visible(wanted: bool | None) -> bool:
    """Whether to show anything: as was wanted; where nothing was said, on a terminal and in a notebook."""
    if wanted is not None:
        return wanted
    return (sys.stderr is not None and sys.stderr.isatty()) or in_notebook()


def busy(what: str, wanted: bool | None = None) -> AbstractContextManager[object]:
    """Show that something is being done."""
    if not visible(wanted):
        return nullcontext()
    if in_notebook():
        return _told(what)
    from rich.console import Console

    return Console(stderr=True).status(what)


@contextmanager
def _told(what: str) -> Iterator[None]:
    with _in_cell() as show:
        show({what: Work(0.0, None)})
        yield


@contextmanager
def _in_cell() -> Iterator[Callable[[Mapping[str, Work]], None]]:
    """Give a function that shows bars below the cell of a notebook; they are gone in the end."""
    from IPython.display import HTML, display

    shown = display(HTML(""), display_id=True)

    def show(works: Mapping[str, Work]) -> None:
        shown.update(HTML("".join(map(_line, works, works.values()))))

    try:
        yield show
    finally:
        shown.update(HTML(""))


def _line(name: str, work: Work) -> str:
    """Write one bar as HTML.

    >>> _line("flow", Work(1.0, 4.0, "loss < 1"))
    '<div>flow <progress value="1" max="4"></progress> loss &lt; 1</div>'
    """
    known = "" if work.total is None else f' value="{work.done:g}" max="{work.total:g}"'
    return f"<div>{escape(name)} <progress{known}></progress> {escape(work.words)}</div>"


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
    if in_notebook():
        with _in_cell() as show_in_cell:
            yield show_in_cell
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
