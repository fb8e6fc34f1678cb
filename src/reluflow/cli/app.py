"""The command `reluflow` and its verbs."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from .. import __version__
from . import data, sweep
from .align import align
from .certify import certify
from .claims import claims
from .common import Command, Json, Verbs, emit
from .compare import compare
from .descend import descend
from .explain import explain
from .flow import flow
from .limit import limit
from .reproduce import reproduce
from .studio import studio
from .theory import check, predict

app = typer.Typer(
    name="reluflow",
    cls=Verbs,
    help="What a two-layer ReLU network is going to learn, seen learning it, and proved.",
    epilog=(
        "Exit code, of every verb: 0 done; 1 a bug in reluflow; 2 bad input; 3 undecided, unfinished or out of time; "
        "4 a theorem contradicted; 130 Ctrl-C; 141 nobody read the output."
    ),
    pretty_exceptions_enable=False,  # a traceback is for bugs, and then it is the plain one
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=Command)(align)
app.command(cls=Command)(certify)
app.command(cls=Command)(check)
app.command(cls=Command)(compare)
app.command(cls=Command)(claims)
app.command(cls=Command)(descend)
app.command(cls=Command)(explain)
app.command(cls=Command)(flow)
app.command(cls=Command)(limit)
app.command(cls=Command)(predict)
app.command(cls=Command)(reproduce)
app.command(cls=Command)(studio)
app.add_typer(data.app, name="data")
app.add_typer(sweep.app, name="sweep")


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    json: Json = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        emit(json, {"version": __version__}, lambda out: out.print(f"reluflow {__version__}"))
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def run() -> None:
    """Run, and leave by `SystemExit`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name the terminal cannot show is no reason to fail
    app(prog_name="reluflow")
