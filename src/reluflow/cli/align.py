"""``reluflow align``: the early phase, exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Json, TimeLimit, fed_by, finish, or_built_in, print_table, read_problem
from .output import PICTURES, check_target, write
from .theory import BUILT_IN

if TYPE_CHECKING:
    from rich.console import Console

    from ..dynamics import Alignment
    from ..problem import Problem
    from ..sectors import AlignmentConstants, ExtremalDirections


@fed_by(or_built_in(read_problem, BUILT_IN))
def align(
    problem: Problem,
    branch: Annotated[str, typer.Option(help="At a ridge: the regular solution, or leave.")] = "regular",
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of sectors and neuron paths (2-D data): .png, .svg or .pdf.")
    ] = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Solve the early phase exactly: where every neuron turns while the network is tiny."""
    from ..dynamics import align as solve
    from ..problem import Interrupted, OutOfTime, Undecided
    from ..problem import time_limit as within
    from ..problem.progress import busy
    from ..report import plot_alignment
    from ..sectors import ExtremalDirections, alignment_constants, extremal_directions

    check_target("--plot", plot, PICTURES)
    trouble: Undecided | None = None
    ends, bounds = ExtremalDirections((), False, "ascent"), None
    with busy("aligning"), within(time_limit):
        try:
            early = solve(problem, branch=branch)
        except Undecided as error:
            early, trouble = error.partial, error
        try:
            if trouble is None:
                ends = extremal_directions(problem.data, problem.net.slope, speed=problem.speed)
                bounds = _bounds(problem, alignment_constants(problem.data, problem.net).in_clock(problem.speed))
        except OutOfTime as error:
            trouble = error
        except KeyboardInterrupt:
            trouble = Interrupted("interrupted; what was found so far is kept.")
    write("--plot", plot, lambda path: plot_alignment(early, path))
    document = {**early.to_dict(ends), "bounds": bounds, "plot": plot}
    finish(json, document, lambda out: _print(out, early, ends, document), trouble)


def _bounds(problem: Problem, bounds: AlignmentConstants) -> dict[str, Any] | None:
    """Return the bounds of ML-T1a and ML-T1a' where they apply: ReLU, balanced, mu > 0, ML-A2."""
    import numpy as np

    net = problem.net
    balanced = np.allclose(net.log_norms, net.log_outs, rtol=0.0, atol=1e-12)
    if net.slope or problem.train == "first" or not balanced or not bounds.applies:
        return None
    return {"t_1": bounds.t_1, "t_1_sharp": bounds.t_1_sharp}


def _print(out: Console, early: Alignment, ends: ExtremalDirections, document: dict[str, Any]) -> None:
    from ..problem.tables import number, sign_word, vector
    from ..problem.words import count

    rows = document["groups"]
    out.print(repr(early.problem))
    out.print(repr(early))
    out.print()
    how = "all of them" if ends.complete else "those found; there may be more"
    print_table(
        out,
        ("extremal", "of G", "value", "direction"),
        [(k, e.kind, f"{e.value:.6g}", vector(e.direction)) for k, e in enumerate(ends)],
        title=f"Strict local extrema of G on the sphere ({how})",
    )
    out.print()
    print_table(
        out,
        ("neurons", "a", "fate", "growth", "last event", "reaches"),
        [
            (
                len(row["neurons"]),
                sign_word(row["sign"]),
                row["fate"],
                number(row["growth"], 4),
                number(row["last_event"]),
                _reaches(row),
            )
            for row in rows[:20]
        ],
        title="Where the neurons go",
    )
    if len(rows) > 20:
        out.print(f"... and {count(len(rows) - 20, 'more group')} (--json prints all)")
    out.print()
    bounds = document["bounds"]
    if bounds is None:
        out.print(f"Last event at t = {number(document['last_event'])}. The bounds t_1 and t_1' do not apply here.")
    else:
        out.print(
            f"Last event at t = {number(document['last_event'])}; bounds: t_1' = {bounds['t_1_sharp']:.6g}, "
            f"t_1 = {bounds['t_1']:.6g}."
        )
    if document["nonunique"]:
        many = count(len(document["nonunique"]), "neuron meets", "neurons meet")
        out.print(f"{many} a place where the flow is not unique; --branch leave follows the other solution.")
    if document["plot"]:
        out.print(f"Picture written to {document['plot']}")


def _reaches(row: dict[str, Any]) -> str:
    from ..problem.tables import vector

    if row["direction"] is None:
        return "-"
    name = f"extremal {row['extremal']}" if row["extremal"] is not None else "no strict extremum"
    return f"{name} {vector(row['direction'])}"
