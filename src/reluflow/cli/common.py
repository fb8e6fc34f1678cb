"""What all verbs share.

How to add a verb: one module ``cli/NAME.py`` with one function::

    @fed_by(read_data)                                      # or read_problem
    def margin(data: Dataset, json: Json = False) -> None:
        '''Show the largest margin.'''                      # becomes the help text
        from ..margins import max_margin                    # here, not above: --help must stay fast

        solution = max_margin(data)
        emit(json, {"margin": solution.margin}, lambda out: out.print(f"margin {solution.margin:.6g}"))

and one line in ``app.py``: ``app.command(cls=Command)(margin)``. `fed_by` gives the command the arguments of the
reader in place of its first parameter, so that every verb takes its data, or its problem, in the same words; where
`or_built_in` wraps the reader, DATA may be left out.
`Command` turns every error of the reluflow family into a message on stderr and the exit code of the error, so a verb
handles none itself; `Verbs` does the same for words that are no command line. With ``--json`` there is one document on
stdout, which begins with ``"schema": 1``; that of an error has ``error``, ``kind``, ``remedy`` and ``exit_code``, and
``partial`` where something was found before. A verb that has something to show for work cut short hands it to `finish`
together with the error.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from rich.console import Console

    from ..problem import Dataset, Problem
    from ..problem.errors import Undecided

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
TimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Most seconds to spend; what was found by then is shown and kept.", show_default=False
    ),
]
_DATA_HELP = "A file (CSV, TSV, NPZ, NPY, IDX) or a name: phuong:seed=0, EX1, mnist:digits=0/1, digits:pair=3/8."
Data = Annotated[str, typer.Argument(metavar="DATA", help=_DATA_HELP, show_default=False)]
Label = Annotated[
    str | None, typer.Option(help="Label column of a CSV file: its name, or its position from 0 (-1 the last).")
]
Negative = Annotated[str | None, typer.Option(help="The label that means -1 (with --positive).")]
NETWORK_HELP = "an NPZ file (W, a, slope, log_scale) or a PyTorch state dict (.pt, .pth; say the --slope)."
Positive = Annotated[str | None, typer.Option(help="The label that means +1 (with --negative).")]


Delimiter = Annotated[
    str | None, typer.Option(help="What separates the fields of a CSV file: comma, tab, semicolon, space, or a sign.")
]
DropColumns = Annotated[
    list[str] | None,
    typer.Option(help="Leave out these columns: names, or positions from 0, e.g. id,name. May be repeated."),
]
Center = Annotated[bool, typer.Option("--center", help="Subtract the mean of every column.")]
Standardize = Annotated[
    bool, typer.Option("--standardize", help="Subtract the mean, divide by the standard deviation.")
]
Bias = Annotated[bool, typer.Option("--bias", help="Append a constant column of ones: biases in the first layer.")]
BiasValue = Annotated[float | None, typer.Option(help="The same with this value in place of one.")]


def table_options(
    label: Label = None,
    negative: Negative = None,
    positive: Positive = None,
    delimiter: Delimiter = None,
    drop_columns: DropColumns = None,
    center: Center = False,
    standardize: Standardize = False,
    bias: Bias = False,
    bias_value: BiasValue = None,
) -> dict[str, Any]:
    """Put the options about data into the words of `reluflow.data.as_dataset`."""
    from ..data import label_rule

    return {
        "label": label,
        "labels": None if negative is None and positive is None else label_rule(negative, positive),
        "delimiter": delimiter,
        "drop_columns": drop_columns or None,
        "center": center,
        "standardize": standardize,
        "bias": bias if bias_value is None else bias_value,
    }


def with_table(read: Callable[..., Any]) -> Callable[..., Any]:
    """Let a reader take the `table_options` on the command line, after its first argument, and as ``table``."""
    options, own = parameters(table_options), parameters(read)
    first = next(iter(own))
    del own["table"]

    def reader(**arguments: Any) -> Any:
        said = {name: arguments.pop(name) for name in options if name in arguments}
        return read(table=table_options(**said), **arguments)

    shown = {first: own.pop(first), **options, **own}
    reader.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
    return reader


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters with their annotations evaluated, except where those exist for the type checker only."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str) and annotation not in ("Dataset", "Problem"):
            annotation = eval(annotation, function.__globals__)
        kind = inspect.Parameter.KEYWORD_ONLY
        found[name] = parameter.replace(annotation=annotation, kind=kind)
    return found


@with_table
def read_data(data: Data, *, table: dict[str, Any]) -> Dataset:
    """Find the data a command was given, and say what may have been overlooked."""
    from ..data import as_dataset

    return noted(as_dataset(data, **table))


def noted(data: Dataset) -> Dataset:
    """Say on stderr what may have been overlooked in the data, and return them."""
    for note in data.notes:
        print(f"note: {note}", file=sys.stderr)
    return data


@with_table
def read_problem(
    data: Data,
    *,
    table: dict[str, Any],
    network: Annotated[
        Path | None, typer.Option(help=f"Start from this network instead of a draw: {NETWORK_HELP}")
    ] = None,
    width: Annotated[int | None, typer.Option(help="Number of neurons.", show_default="100")] = None,
    slope: Annotated[
        float | None, typer.Option(help="Slope of the activation for negative input.", show_default="0, ReLU")
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="Initialisation: balanced, gaussian, balanced-gaussian, two-sign, he, uniform.",
            show_default="balanced",
        ),
    ] = None,
    scale: Annotated[float | None, typer.Option(help="Scale of the initialisation (default 1e-6).")] = None,
    log_scale: Annotated[
        float | None, typer.Option(help="Its logarithm instead, for scales no double can hold, e.g. -3000.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draw.", show_default="0")] = None,
    loss: Annotated[str, typer.Option(help="logistic or exponential.")] = "logistic",
    reduction: Annotated[str, typer.Option(help="mean or sum.")] = "mean",
    train: Annotated[str, typer.Option(help="both (layers) or first (second layer frozen).")] = "both",
) -> Problem:
    """Find the data and draw the network a command was given."""
    from ..data import as_dataset, as_problem

    source: Any = data
    start: Any = network
    if network is not None:
        from ..deep import is_torch_file, problem_from_torch

        if is_torch_file(network):  # its biases may need a constant column
            found = problem_from_torch(network, as_dataset(data, **table), slope=slope)
            source, start, table = found.data, found.net, {}
    problem = as_problem(
        source,
        network=start,
        width=width,
        slope=slope,
        scheme=scheme,
        scale=scale,
        log_scale=log_scale,
        seed=seed,
        loss=loss,
        reduction=reduction,
        train=train,
        **table,
    )
    noted(problem.data)
    return problem


def fed_by(read: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a verb take the arguments of ``read`` on the command line, and what it reads as its first parameter."""
    inputs = parameters(read)

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(verb)
        def command(**arguments: Any) -> None:
            source = {name: arguments.pop(name) for name in inputs}
            verb(read(**source), **arguments)

        shown = {**inputs, **dict(list(parameters(verb).items())[1:])}
        # Typer reads the signature for names and defaults, and the annotations for types.
        command.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
        command.__annotations__ = {name: parameter.annotation for name, parameter in shown.items()}
        return command

    return decorate


def or_built_in(read: Callable[..., Any], data: str) -> Callable[..., Any]:
    """Let DATA be left out of the arguments of ``read``: then it is the data of this name."""

    def reader(**arguments: Any) -> Any:
        return read(**arguments)

    found = parameters(read)
    annotation = Annotated[str, typer.Argument(metavar="DATA", help=_DATA_HELP, show_default=True)]
    found["data"] = found["data"].replace(default=data, annotation=annotation)
    reader.__signature__ = inspect.Signature(list(found.values()))  # type: ignore[attr-defined]
    return reader


def emit(json: bool, document: Mapping[str, Any], text: Callable[[Console], None]) -> None:
    """Print the result: the document with ``--json``, else the text."""
    if json:
        print(_dump(document))
    else:
        text(console())


def finish(
    json: bool, document: Mapping[str, Any], text: Callable[[Console], None], error: Undecided | None = None
) -> None:
    """Print the result; or, of work that ended with an error, what there is, and then the error."""
    if error is None:
        emit(json, document, text)
        return
    error.partial = document
    if not json:
        out = console()
        text(out)
        out.print()
    raise error


def console(stderr: bool = False) -> Console:
    """Make a console that changes nothing: no markup, no highlighting, no colour on a pipe."""
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:  # Rich would exit with 1, which here means a bug
            raise BrokenPipeError

    return PlainConsole(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


def print_table(out: Console, columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Print a table that is readable without colour and at 80 columns; the last column wraps."""
    from ..problem.tables import table

    if title:
        out.print(title)
    out.print(table(columns, rows), soft_wrap=False)


def show(out: Console, result: Any, files: Mapping[str, Path | None] | None = None) -> None:
    """Print the text of a result, and which files were written."""
    print(result.text(out.width, out.color_system is not None))
    for word, path in (files or {}).items():
        if path is not None:
            out.print(f"{word} written to {path}")


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
            _flush()
            return result
        except ReluflowError as exc:
            words, remedy = (in_options(text, self.params) for text in (str(exc), exc.remedy))
            remedy = remedy.replace("reluflow VERB", ctx.command_path)
            more = {name: value for name, value in vars(exc).items() if not name.startswith("_")}
            _fail(as_json, type(exc).__name__, words, remedy, exc.exit_code, more)
        except MemoryError as exc:
            remedy = "use fewer samples or neurons."
            _fail(as_json, "MemoryError", f"there is not enough memory ({exc}); {remedy}", remedy, 2)
        except KeyboardInterrupt:
            _fail(as_json, "Interrupted", "interrupted.", "the same command begins again.", 128 + signal.SIGINT)
        except BrokenPipeError:
            raise typer.Exit(_broken_pipe()) from None
        except OSError as exc:
            if exc.errno != errno.ENOSPC:
                _bug(as_json, exc)
            _silence_stdout()
            words = "there is no space left where the output goes."
            _fail(as_json, "OSError", words, "make room there, or write elsewhere.", 2)
        except (typer.Exit, typer.Abort, _ClickException):
            raise
        except Exception as exc:
            _bug(as_json, exc)


class Verbs(Group):
    """The commands together: answers a wrong command line in plain words."""

    def main(  # the signature is Typer's
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and leave by `SystemExit`."""
        words = sys.argv[1:] if args is None else list(args)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            _flush()
        except _ClickException as exc:
            code = _usage("--json" in words, exc, self._verb(words))
        except BrokenPipeError:
            code = _broken_pipe()
        except SystemExit as stop:  # Typer and Rich exit with 1 where the reader of a help text has gone
            code = _broken_pipe() if stop.code == 1 else stop.code
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code

    def _verb(self, words: Sequence[str]) -> str:
        """Return the command that these words are meant for."""
        found, here = ["reluflow"], self
        for word in words:
            if isinstance(here, TyperGroup) and word in here.commands:
                found.append(word)
                here = here.commands[word]  # type: ignore[assignment]
        return " ".join(found)


_ClickException: type[Exception] = typer.BadParameter.__mro__[2]  # of Click, or of the copy that Typer brings


def _usage(as_json: bool, exc: Any, verb: str) -> int:
    """Say what is wrong with the words of a command line, and which were perhaps meant."""
    if type(exc).__name__ == "NoSuchOption":
        known = [option for param in exc.ctx.command.params for option in param.opts] if exc.ctx else []
        close = _close(exc.option_name, known)
        message = f"No such option: {exc.option_name}"
        remedy = f"did you mean {close}?" if close else f"{verb} --help lists the options."
    else:
        message, _, hint = exc.format_message().rstrip(".").partition(" Did you mean ")
        message = " ".join(message.rstrip(".").split())
        remedy = f"did you mean {hint}" if hint else f"{verb} --help shows what is expected."
    try:
        _fail(as_json, "UsageError", f"{message}; {remedy}", remedy, 2)
    except typer.Exit as stop:
        return int(stop.exit_code)


def _close(name: str, known: Sequence[str]) -> str:
    """Return the option nearest to a misspelt one, or nothing: without the dashes, which all have."""
    from difflib import get_close_matches

    plain = {option.lstrip("-"): option for option in known}
    return "".join(plain[found] for found in get_close_matches(name.lstrip("-"), plain, 1))


def in_options(text: str, params: Iterable[Any]) -> str:
    """Say the parameters of Python in a message as the options of the command line: max_steps = 5 as --max-steps 5.

    Names of several words are found anywhere, others only where they are given a value: ``step`` is a word of its own.
    """
    for param in params:
        option, name = max(param.opts, key=len), rf"(?<![\w:,/.-]){param.name}"
        if not option.startswith("--"):
            continue
        text = re.sub(rf"{name} ?= ?True\b", option, text)
        text = text.replace(f"{param.name} ({option})", option)
        text = re.sub(rf"{name} ?= ?(?=[('\"\w.+-])(['\"]?)([^\s'\"]*)\1", rf"{option} \2", text)
        if "_" in param.name:
            text = re.sub(rf"{name}\b", option, text)
    return re.sub(r"(--[\w-]+(?: \S+)?) \(\1\)", r"\1", text)  # what was said in both languages is said once


def _flush() -> None:
    if sys.stdout is not None:  # it is when the caller has closed it
        sys.stdout.flush()


def _silence_stdout() -> None:
    # Python flushes once more when it exits, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _broken_pipe() -> int:
    """Whoever read our output has gone: nobody to tell."""
    _silence_stdout()
    return 128 + 13


def _bug(as_json: bool, exc: Exception) -> NoReturn:
    """Leave an exception as it is; with ``--json`` there is a document as well."""
    if not as_json:
        raise exc
    import traceback

    traceback.print_exception(exc, file=sys.stderr)
    remedy = "this is a bug in reluflow: please report it with the traceback on stderr."
    _fail(as_json, "Bug", f"{type(exc).__name__}: {exc}", remedy, 1)


def _fail(
    as_json: bool, kind: str, message: str, remedy: str, code: int, more: Mapping[str, Any] | None = None
) -> NoReturn:
    if as_json:
        head = {"error": message, "kind": kind, "remedy": remedy, "exit_code": code}
        print(_dump({**head, **{name: value for name, value in (more or {}).items() if value is not None}}))
    else:
        print(f"reluflow: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _dump(document: Mapping[str, Any]) -> str:
    import json

    from ..problem.plain import plain

    return json.dumps({"schema": SCHEMA, **plain(document)}, indent=2, allow_nan=False)
