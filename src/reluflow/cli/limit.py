"""``reluflow limit``: where the flow ends, and what supports it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Json, TimeLimit, fed_by, finish, or_built_in, read_problem, show
from .flow import keep_partial
from .output import PICTURES, check_target, write
from .theory import BUILT_IN

if TYPE_CHECKING:
    from ..problem import Problem


@fed_by(or_built_in(read_problem, BUILT_IN))
def limit(
    problem: Problem,
    max_log_time: Annotated[float, typer.Option(help="Logarithm of the time at which to give up.")] = 1e10,
    rtol: Annotated[float, typer.Option(help="Tolerance of a step of the integration.")] = 1e-9,
    max_steps: Annotated[int, typer.Option(help="Most steps of integration.")] = 100_000,
    optimum: Annotated[
        bool | None,
        typer.Option(
            help="Bracket the largest margin of any network too (default: where that is cheap).", show_default=False
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the limit, a network of unit norm, to this NPZ file.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the limit: .png, .svg or .pdf.")] = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Find the limit of the direction of the flow, or why there is none."""
    from ..dynamics import Limit
    from ..dynamics import limit as find
    from ..problem import Undecided
    from ..report import plot_limit

    check_target("--save", save, (".npz",))
    check_target("--plot", plot, PICTURES)
    trouble: Undecided | None = None
    try:
        end = find(
            problem,
            rtol=rtol,
            max_log_time=max_log_time,
            max_steps=max_steps,
            optimum=optimum,
            time_limit=time_limit,
        )
    except Undecided as exc:
        if not isinstance(exc.partial, Limit):
            # There is no network to keep; the trajectory goes to a name of its own, for a network is expected there.
            keep_partial(exc, save and save.with_suffix(".trajectory.npz"), plot, json)
            raise
        end, trouble = exc.partial, exc  # only the optimum is missing
    write("--save", save, end.network.save)
    write("--plot", plot, lambda path: plot_limit(end, path))
    files = {"Network": save, "Picture": plot}
    document = {**end.to_dict(), "saved": save, "plot": plot}
    finish(json, document, lambda out: show(out, end, files), trouble)
