"""``reluflow sweep``: many problems over ranges of parameters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Command, Json, emit, finish, group, print_table
from .output import PICTURES, check_target

if TYPE_CHECKING:
    from rich.console import Console

    from ..sweep import Status, SweepResults

app = group("Many problems over ranges of parameters: nothing computed twice, nothing lost.")

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="A TOML file; docs/sweep.md has one.", show_default=False)]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.", show_default=False)]


@app.command("list", cls=Command)
def list_(spec: Spec, json: Json = False) -> None:
    """List the problems of a spec: how many, the first and the last ten, with fingerprints. Runs nothing."""
    from ..problem.words import count
    from ..sweep import Sweep

    sweep = Sweep.read(spec)
    sweep.check()
    rows = sweep.ends()
    document = {
        "problems": len(sweep),
        "id": sweep.id,
        "axes": {axis.name: axis.values for axis in sweep.plan.axes},
        "measures": [one.label for one in sweep.taken],
        "rows": [{"index": k, "fingerprint": mark, "parameters": sweep.parameters_at(k)} for k, mark, _ in rows],
    }

    def text(out: Console) -> None:
        out.print(f"{count(len(sweep), 'problem')}; measured: {', '.join(one.label for one in sweep.taken)}")
        body: list[tuple[object, ...]] = [(k, mark, words) for k, mark, words in rows]
        if len(sweep) > len(rows):
            body.insert(len(rows) // 2, ("...", "", ""))
        print_table(out, ("problem", "fingerprint", "parameters"), body)

    emit(json, document, text)


@app.command("run", cls=Command)
def run(
    spec: Spec,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the rows; made if need be.", show_default=False)],
    jobs: Annotated[int, typer.Option(help="How many processes.")] = 1,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://HOST:8786, or local.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Only the K-th of N parts, from 1: for arrays of jobs.")
    ] = None,
    limit_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Most seconds for one problem.", show_default=False)
    ] = None,
    limit_memory: Annotated[
        float | None, typer.Option(metavar="MB", help="Most memory for one problem.", show_default=False)
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what is there but not done.")] = False,
    print_slurm: Annotated[
        bool, typer.Option("--print-slurm", help="Print the sbatch line for all N parts of --shard, and run nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Compute what the folder does not hold yet; after any end the same command goes on.

    A problem that fails, stays undecided or takes too long is a row that says so. Exit code 3: some failed.
    """
    from ..problem import Interrupted
    from ..sweep import Sweep, run_sweep, slurm_line

    part = _shard(shard, print_slurm)
    sweep = Sweep.read(spec)
    if print_slurm and part is not None:
        sweep.check()
        options = _options({"--limit-time": limit_time, "--limit-memory": limit_memory}) + ["--retry"] * retry
        line = slurm_line(spec, out, part[1], options)
        emit(json, {"command": line}, lambda console: console.print(line))
        return
    trouble: Interrupted | None = None
    try:
        found = run_sweep(
            sweep,
            out,
            jobs=jobs,
            dask=dask,
            shard=part,
            time_limit=limit_time,
            memory_limit=limit_memory,
            retry=retry,
        )
    except Interrupted as error:
        found, trouble = error.partial, error
    status = found.status()
    finish(json, _document(found, status), lambda console: _print(console, found, status), trouble)
    if status.states["failed"]:
        raise typer.Exit(3)


@app.command("status", cls=Command)
def status(folder: Folder, json: Json = False) -> None:
    """Say how far a sweep is: done, failed, undecided, rate, remaining time."""
    from ..sweep import open_sweep

    found = open_sweep(folder)
    how = found.status()
    emit(json, _document(found, how), lambda console: _print(console, found, how))


@app.command("collect", cls=Command)
def collect(
    folder: Folder,
    to: Annotated[Path, typer.Option(help="File to write: .parquet, .csv or .nc.", show_default=False)],
    json: Json = False,
) -> None:
    """Write all rows to one table."""
    from ..problem.words import count
    from ..sweep import open_sweep

    check_target("--to", to, (".parquet", ".csv", ".nc"))
    found = open_sweep(folder)
    how = found.status()
    file = found.collect(to)
    rows = how.total - how.left
    if how.left:
        print(f"note: {how.left} of {how.total} problems have no row yet.", file=sys.stderr)
    _tell(how)
    emit(json, {"file": file, "rows": rows}, lambda out: out.print(f"{count(rows, 'row')} written to {file}"))


@app.command("plot", cls=Command)
def plot(
    folder: Folder,
    x: Annotated[str, typer.Option(help="A parameter that varies, e.g. scale.", show_default=False)],
    y: Annotated[str, typer.Option(help="What was measured, e.g. margin; or another parameter.", show_default=False)],
    color: Annotated[str | None, typer.Option(help="A parameter; in a map of two what was measured.")] = None,
    panel: Annotated[str | None, typer.Option(help="A parameter: one panel for each value.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write: .png, .svg or .pdf.", show_default="DIR/plots/...png")
    ] = None,
    json: Json = False,
) -> None:
    """Draw curves with bands, or a map of two parameters; index.html in DIR has all pictures of DIR/plots."""
    from ..sweep import open_sweep, write_index

    check_target("--out", out, PICTURES)
    found = open_sweep(folder)
    file = out or found.picture_file(x, y, color, panel)
    found.plot(x, y, color=color, panel=panel, path=file)
    page = write_index(found)
    emit(json, {"file": file, "page": page}, lambda shown: shown.print(f"written to {file}; all of it: {page}"))


def _shard(text: str | None, needed: bool) -> tuple[int, int] | None:
    from ..problem import ProblemError

    if text is None and not needed:
        return None
    part, slash, parts = (text or "").partition("/")
    if not (slash and part.strip().isdecimal() and parts.strip().isdecimal()):
        given = f"--shard {text} was given" if text is not None else "--print-slurm was given without --shard"
        raise ProblemError(f"{given}, but --shard K/N is needed, as in 3/16: the third of 16 parts.")
    return int(part), int(parts)


def _options(said: dict[str, float | None]) -> list[str]:
    return [word for option, value in said.items() if value is not None for word in (option, f"{value:g}")]


def _document(found: SweepResults, how: Status) -> dict[str, Any]:
    from dataclasses import asdict

    return {"folder": found.folder, "id": found.id, **asdict(how), "messages": found.failures()}


def _tell(how: Status) -> None:
    for note in how.notes:
        print(f"note: {note}", file=sys.stderr)


def _print(out: Console, found: SweepResults, how: Status) -> None:
    from ..problem.words import count

    have = how.total - how.left
    out.print(f"{have} of {count(how.total, 'problem')} have a row in {found.folder}")
    for state, number in how.states.items():
        if number:
            out.print(f"  {state:14} {number}")
    if how.left and how.rate:
        out.print(f"  {how.rate:.3g} rows a second; the rest takes about {_duration(how.remaining)} at this rate")
    messages = found.failures()
    if messages:
        print_table(out, ("rows", "message"), [(number, text) for text, number in list(messages.items())[:10]])
        out.print("--retry tries these again")
    _tell(how)


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"
