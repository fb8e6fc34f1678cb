"""``reluflow flow``: gradient flow to any time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Json, TimeLimit, fed_by, finish, or_built_in, read_problem, show
from .output import PICTURES, RUNS, check_target, write
from .theory import BUILT_IN

if TYPE_CHECKING:
    from ..dynamics import Trajectory, Until
    from ..problem import Problem
    from ..problem.errors import Undecided


@fed_by(or_built_in(read_problem, BUILT_IN))
def flow(
    problem: Problem,
    until: Annotated[
        list[str] | None,
        typer.Option(
            help="When to stop, at the first of: time=, log_time=, loss=, log_loss=, margin=, aligned; "
            "e.g. log_time=1e6,loss=1e-3. May be repeated. Default: log_time=100.",
            metavar="CONDITIONS",
            show_default=False,
        ),
    ] = None,
    rtol: Annotated[float, typer.Option(help="Tolerance of a step.")] = 1e-9,
    max_steps: Annotated[int, typer.Option(help="Most steps of integration.")] = 100_000,
    save: Annotated[
        Path | None, typer.Option(help="Write the run: .npz (all of it), .csv or .tsv (its curves).")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the run: .png, .svg or .pdf.")] = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Follow the gradient flow through every kink to any time."""
    from ..dynamics import flow as integrate
    from ..problem import Undecided

    stop = parse_until(until or [])
    check_target("--save", save, RUNS)
    check_target("--plot", plot, PICTURES)
    try:
        run = integrate(problem, stop, rtol=rtol, max_steps=max_steps, time_limit=time_limit)
    except Undecided as exc:
        keep_partial(exc, save, plot, json)
        raise
    _keep(run, save, plot, json)


def parse_until(texts: list[str]) -> Until | None:
    """Read conditions such as ``log_time=1e6,loss=1e-3`` or ``aligned``; None where nothing was said."""
    from dataclasses import fields

    from ..dynamics import Until
    from ..problem import ProblemError

    known = [f.name for f in fields(Until)]
    words = ", ".join(f"{name}=NUMBER" for name in known if name != "aligned") + " and the bare word aligned"
    found: dict[str, Any] = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known:
            what = f"{part!r} is" if part else "an empty condition is"
            raise ProblemError(f"--until: {what} not known; it knows {words}, separated by commas.")
        if name in found:
            raise ProblemError(f"--until: {name} is given twice ({part!r} the second time); give it once.")
        if (name == "aligned") == bool(equals):
            need = "takes no value; write it alone" if name == "aligned" else f"needs a value, as in {name}=NUMBER"
            raise ProblemError(f"--until: {part!r} was given, but {name} {need}. It knows {words}.")
        try:
            found[name] = True if name == "aligned" else float(value)
        except ValueError:
            raise ProblemError(f"--until: {part!r} was given, but {value!r} is not a number.") from None
    return Until(**found) if found else None


def keep_partial(exc: Undecided, save: Path | None, plot: Path | None, json: bool) -> None:
    """Save, draw and show what there is of a run that ended early."""
    from ..dynamics import Trajectory

    run = exc.partial
    if isinstance(run, Trajectory):
        _keep(run, save, plot, json, exc)


def _keep(run: Trajectory, save: Path | None, plot: Path | None, json: bool, error: Undecided | None = None) -> None:
    from ..report import plot_flow

    write("--save", save, run.save)
    write("--plot", plot, lambda path: plot_flow(run, path))
    document = {**run.to_dict(), "saved": save, "plot": plot}
    finish(json, document, lambda out: show(out, run, {"Trajectory": save, "Picture": plot}), error)
