"""What all verbs share.

How to add a verb: one module ``cli/_NAME.py`` with one function::

    @fed_by(read_data)                                      # or read_problem
    def margin(data: Dataset, json: Json = False) -> None:
        '''Show the largest margin.'''                      # becomes the help text
        from ..margins import max_margin                    # here, not above: --help must stay fast

        solution = max_margin(data)
        emit(json, {"margin": solution.margin}, lambda out: out.print(f"margin {solution.margin:.6g}"))

and one line in ``_app.py``: ``app.command(cls=Command)(margin)``. `fed_by` gives the command the arguments of the
reader in place of its first parameter, so that every verb takes its data, or its problem, in the same words; where
`or_built_in` wraps the reader, DATA may be left out.
`Command` turns every error of the reluflow family into a message on stderr and the exit code of the error, so a verb
handles none itself. With ``--json`` the one document on stdout (or, for an error, on stderr) begins with
``"schema": 1``.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from rich.console import Console

    from ..problem import Dataset, Problem

SCHEMA = 1
_JSON = "reluflow.json"


def _remember_json(ctx: typer.Context, value: bool) -> bool:
    # ctx.meta is shared by a command and its parents: `reluflow --json data list` works, and errors know.
    ctx.meta[_JSON] = value or ctx.meta.get(_JSON, False)
    return bool(ctx.meta[_JSON])


Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document.", callback=_remember_json, is_eager=True),
]
_DATA_HELP = "A file (CSV, TSV, NPZ, NPY, IDX) or a name: phuong:seed=0, EX1, mnist:digits=0/1, digits:pair=3/8."
Data = Annotated[str, typer.Argument(metavar="DATA", help=_DATA_HELP, show_default=False)]
Label = Annotated[
    str | None, typer.Option(help="Label column of a CSV file: its name, or its position from 0 (-1 the last).")
]
Negative = Annotated[str | None, typer.Option(help="The label that means -1 (with --positive).")]
Positive = Annotated[str | None, typer.Option(help="The label that means +1 (with --negative).")]


def read_data(data: Data, label: Label = None, negative: Negative = None, positive: Positive = None) -> Dataset:
    """Find the data a command was given."""
    from ..data import dataset, label_rule

    options: dict[str, Any] = {}
    if label is not None:
        options["label"] = label
    if negative is not None or positive is not None:
        options["labels"] = label_rule(negative, positive)
    return dataset(data, **options)


def read_problem(
    data: Data,
    label: Label = None,
    negative: Negative = None,
    positive: Positive = None,
    network: Annotated[
        Path | None, typer.Option(help="Start from this NPZ file (W, a, slope, log_scale) instead of a draw.")
    ] = None,
    width: Annotated[int, typer.Option(help="Number of neurons.")] = 100,
    slope: Annotated[float, typer.Option(help="Slope of the activation for negative input; 0 is ReLU.")] = 0.0,
    scheme: Annotated[
        str, typer.Option(help="Initialisation: balanced, gaussian, balanced-gaussian, two-sign, he, uniform.")
    ] = "balanced",
    scale: Annotated[float | None, typer.Option(help="Scale of the initialisation (default 1e-6).")] = None,
    log_scale: Annotated[
        float | None, typer.Option(help="Its logarithm instead, for scales no double can hold, e.g. -3000.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    loss: Annotated[str, typer.Option(help="logistic or exponential.")] = "logistic",
    reduction: Annotated[str, typer.Option(help="mean or sum.")] = "mean",
    train: Annotated[str, typer.Option(help="both (layers) or first (second layer frozen).")] = "both",
) -> Problem:
    """Find the data and draw the network a command was given."""
    from ..problem import Network, Problem, initialize

    points = read_data(data, label, negative, positive)
    if network is not None:
        net = Network.load(network)
    else:
        net = initialize(points.d, width, scheme, scale, seed, slope, log_scale=log_scale)  # type: ignore[arg-type]
    return Problem(points, net, loss, reduction, train)  # type: ignore[arg-type]


def fed_by(read: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a verb take the arguments of ``read`` on the command line, and what it reads as its first parameter."""
    inputs = _parameters(read)

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(verb)
        def command(**arguments: Any) -> None:
            source = {name: arguments.pop(name) for name in inputs}
            verb(read(**source), **arguments)

        shown = {**inputs, **dict(list(_parameters(verb).items())[1:])}
        # Typer reads the signature for names and defaults, and the annotations for types.
        command.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
        command.__annotations__ = {name: parameter.annotation for name, parameter in shown.items()}
        return command

    return decorate


def or_built_in(read: Callable[..., Any], data: str) -> Callable[..., Any]:
    """Let DATA be left out of the arguments of ``read``: then it is the data of this name."""

    def reader(**arguments: Any) -> Any:
        return read(**arguments)

    found = _parameters(read)
    annotation = Annotated[str, typer.Argument(metavar="DATA", help=_DATA_HELP, show_default=True)]
    found["data"] = found["data"].replace(default=data, annotation=annotation)
    reader.__signature__ = inspect.Signature(list(found.values()))  # type: ignore[attr-defined]
    return reader


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters with their annotations evaluated, except where those exist for the type checker only."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str) and annotation not in ("Dataset", "Problem"):
            annotation = eval(annotation, function.__globals__)
        kind = inspect.Parameter.KEYWORD_ONLY
        found[name] = parameter.replace(annotation=annotation, kind=kind)
    return found


def emit(json: bool, document: Mapping[str, Any], text: Callable[[Console], None]) -> None:
    """Print the result: the document with ``--json``, else the text."""
    if json:
        print(_dump(document))
    else:
        text(console())


def console(stderr: bool = False) -> Console:
    """Make a console that changes nothing: no markup, no highlighting, no colour on a pipe."""
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:  # Rich would exit with 1, which here means a bug
            raise BrokenPipeError

    return PlainConsole(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


def print_table(out: Console, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Print a table that is readable without colour and at 80 columns; the last column wraps."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    if title:
        out.print(title)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for k, column in enumerate(columns):
        table.add_column(column, no_wrap=k < len(columns) - 1, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    out.print(table, soft_wrap=False)


def busy(what: str) -> AbstractContextManager[object]:
    """Show on a terminal that something takes long; on a pipe nothing."""
    return console(stderr=True).status(what) if sys.stderr.isatty() else nullcontext()


def group(text: str) -> typer.Typer:
    """Make a verb that has verbs of its own; alone it prints its help."""
    app = typer.Typer(help=text, cls=Group)

    @app.callback(invoke_without_command=True)
    def alone(ctx: typer.Context) -> None:
        if ctx.invoked_subcommand is None:
            typer.echo(ctx.get_help())

    return app


def _plain_flags(parameters: Any) -> Any:
    """Leave the type of flags out of the help: there is nothing to write after them."""
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters


class Group(TyperGroup):
    """A verb that has verbs of its own."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, which are what the help shows."""
        return _plain_flags(super().get_params(ctx))


class Command(TyperCommand):
    """A command that answers mistakes with a message and an exit code."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, which are what the help shows."""
        return _plain_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        from ..problem.errors import ReluflowError

        as_json = bool(ctx.meta.get(_JSON))
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:  # it is when the caller has closed it
                sys.stdout.flush()
            return result
        except ReluflowError as exc:
            _fail(as_json, type(exc).__name__, str(exc), exc.exit_code, vars(exc))
        except MemoryError as exc:
            _fail(as_json, "MemoryError", f"there is not enough memory ({exc}); use fewer samples or neurons.", 2)
        except KeyboardInterrupt:
            _fail(as_json, "Interrupted", "interrupted.", 128 + signal.SIGINT)
        except BrokenPipeError:  # whoever read our output has gone: nobody to tell
            _silence_stdout()
            raise typer.Exit(128 + 13) from None
        except OSError as exc:
            if exc.errno != errno.ENOSPC:
                raise
            _silence_stdout()
            _fail(as_json, "OSError", "there is no space left where the output goes.", 2)


def _silence_stdout() -> None:
    # Python flushes once more when it exits, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(as_json: bool, kind: str, message: str, code: int, more: Mapping[str, Any] | None = None) -> NoReturn:
    if as_json:
        error = {"type": kind, "message": message, "exit_code": code, **(more or {})}
        print(_dump({"error": error}), file=sys.stderr)
    else:
        print(f"reluflow: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _dump(document: Mapping[str, Any]) -> str:
    import json

    from ..data import plain

    return json.dumps({"schema": SCHEMA, **plain(document)}, indent=2, allow_nan=False)
