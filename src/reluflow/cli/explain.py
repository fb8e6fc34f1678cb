"""``reluflow explain``: theory and run of a problem side by side."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Json, TimeLimit, emit, fed_by, in_options, or_built_in, read_problem
from .output import check_target, write
from .theory import BUILT_IN

if TYPE_CHECKING:
    from rich.console import Console

    from ..problem import Problem
    from ..report import Explanation


_WIDEST = 160  # longer lines are hard to read


@fed_by(or_built_in(read_problem, BUILT_IN))
def explain(
    problem: Problem,
    ctx: typer.Context,
    max_log_time: Annotated[float, typer.Option(help="Logarithm of the time at which to give up.")] = 1e10,
    rtol: Annotated[float, typer.Option(help="Tolerance of a step of the integration.")] = 1e-9,
    max_steps: Annotated[int, typer.Option(help="Most steps of integration.")] = 100_000,
    out: Annotated[Path | None, typer.Option(help="Write a report: one .html page that needs no network.")] = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Say what theory promises, follow the flow to its limit, and compare the two.

    The exit code is 4 if a theorem that applies was contradicted, 3 if no limit was confirmed or a part was cut short.
    """
    from ..report import explain as compare

    check_target("--out", out, (".html", ".htm"))
    found = compare(
        problem,
        rtol=rtol,
        max_log_time=max_log_time,
        max_steps=max_steps,
        time_limit=time_limit,
        command=command_line(ctx.params),
    )
    found = replace(found, troubles=tuple(in_options(text, ctx.command.params) for text in found.troubles))
    write("--out", out, found.html)
    emit(json, {**found.to_dict(), "page": out, **_trouble(found)}, lambda terminal: _print(terminal, found, out))
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _trouble(found: Explanation) -> dict[str, Any]:
    """Say what is missing as the document of an error does."""
    if found.exit_code not in (3, 130):
        return {}
    words = found.troubles[0] if found.limit is not None else " ".join(found.headline)
    kind = "Interrupted" if found.interrupted else "Undecided"
    return {"error": words, "kind": kind, "remedy": words.rpartition("; ")[2]}


def command_line(given: dict[str, Any]) -> str:
    """Write the command that makes the same again, with every setting spelled out."""
    from ..data import DRAW

    # A network given as a file takes the place of the draw.
    drawn: dict[str, Any] = {} if given.get("network") is not None else dict(DRAW)
    words = ["reluflow", "explain", str(given["data"])]
    for name, said in given.items():
        value, option = drawn.get(name) if said is None else said, f"--{name.replace('_', '-')}"
        if name in {"data", "json", "out"} or value is None or value is False:
            continue
        if value is True:
            words += [option]
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={item}" for item in value]
        else:
            words += [option, f"{value:g}" if value == 0 else str(value)]
    return shlex.join(words)


def _print(terminal: Console, found: Explanation, out: Path | None) -> None:
    from ..report.text import show

    show(found, terminal, min(terminal.width, _WIDEST) if terminal.is_terminal else 100)
    if out is not None:
        terminal.print(f"\nReport written to {out}")
