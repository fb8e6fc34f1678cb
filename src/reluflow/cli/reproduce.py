"""``reluflow reproduce``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Json, emit, finish, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from ..experiments import Outcome, Progress


def reproduce(
    experiments: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="PL-F1, ML-F6, LL-TAB1, ...; --list shows all.")
    ] = None,
    paper: Annotated[str | None, typer.Option(help="All of one paper: PL, ML, SBG, LL; C for those in none.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every figure and table.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List what there is, and run nothing.")] = False,
    quick: Annotated[bool, typer.Option(help="Small stand-ins: minutes instead of hours.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Output folder (reproduction, or reproduction-quick with --quick).")
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many experiments to run at a time.")] = 1,
    redraw: Annotated[bool, typer.Option(help="Run nothing: judge and draw again what the folder holds.")] = False,
    json: Json = False,
) -> None:
    """Make the figures and tables of the papers again, and judge what comes out.

    Writes ID.json, ID.png, ID.svg, and index.html and REPRODUCTION.md over all of them. What the folder already holds
    from the same parameters and code is not run again, so a killed run goes on where it was. Full runs on MNIST need
    `reluflow data fetch mnist` once, those of deep nets PyTorch. Exit code 3: some could not be run.
    """
    from ..experiments import IDS, choose, experiment, run_all
    from ..problem.errors import Interrupted

    if listed:
        found = [experiment(one) for one in (choose(experiments or (), paper) if experiments or paper else IDS)]
        document = {"experiments": [{"id": e.id, "title": e.title, "minutes": e.minutes} for e in found]}
        rows = [(e.id, f"{e.minutes:g}", e.title) for e in found]
        emit(json, document, lambda shown: print_table(shown, ("id", "minutes", "what it shows"), rows))
        return
    names = choose(experiments or (), paper, everything)
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    trouble: Interrupted | None = None
    try:
        with _bars() as show:
            outcomes = run_all(names, folder, quick=quick, jobs=jobs, redraw=redraw, progress=show)
    except Interrupted as error:
        outcomes, trouble = error.partial, error
    finish(json, {"out": folder, "outcomes": outcomes}, lambda shown: _print(shown, outcomes, folder), trouble)
    if any(outcome.state == "failed" for outcome in outcomes):
        raise typer.Exit(3)


def _print(shown: Console, outcomes: Sequence[Outcome], folder: Path) -> None:
    columns = ("experiment", "", "reproduced", "deviates", "not judged", "seconds")
    kinds = ("reproduced", "deviates", "cannot be judged")
    rows = [(o.id, o.state, *(o.verdicts.get(kind, 0) for kind in kinds), f"{o.seconds:.1f}") for o in outcomes]
    print_table(shown, columns, rows)
    for outcome in outcomes:
        if outcome.state == "failed":
            shown.print(f"{outcome.id} failed: {outcome.error}")
    shown.print(f"see {folder / 'index.html'} or {folder / 'REPRODUCTION.md'}")


@contextmanager
def _bars() -> Iterator[Callable[[Progress], None]]:
    """Give a function that shows what runs and how long it will take: bars on a terminal, elsewhere a line an event."""
    from ..problem.progress import Work, bars

    with bars() as show:
        if show is None:
            yield _lines()
            return

        def tell(state: Progress) -> None:
            running = {name: Work(done, 1.0, f"{100 * done:.0f} %") for name, done in state.running}
            show({"all": Work(state.done, state.total, f"{100 * state.done / (state.total or 1):.0f} %"), **running})

        yield tell


def _lines() -> Callable[[Progress], None]:
    """Return a function that writes to stderr, with the time since it was made, which experiments begin and end."""
    begun, running = time.monotonic(), list[str]()

    def tell(state: Progress) -> None:
        now = [name for name, _ in state.running]
        passed = int(time.monotonic() - begun)
        when = f"{passed // 3600}:{passed // 60 % 60:02d}:{passed % 60:02d}"
        for word, names in (("ended", running), ("begins", now)):
            for name in [name for name in names if not (name in running and name in now)]:
                share = f", {100 * state.done / (state.total or 1):.0f} % of all" if word == "ended" else ""
                print(f"{when} {word} {name}{share}", file=sys.stderr, flush=True)
        running[:] = now

    return tell
