"""``reluflow align``: the early phase, exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Json, TimeLimit, busy, fed_by, finish, or_built_in, print_table, read_problem
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
    rows = _groups(early, ends)
    document = {
        "problem": {"fingerprint": problem.fingerprint(), "n": problem.data.n, "d": problem.data.d, "p": early.p},
        "fates": {fate: early.fates.count(fate) for fate in sorted(set(early.fates))},
        "groups": rows,
        "extremal_directions": {
            "complete": ends.complete,
            "directions": [{"kind": e.kind, "value": e.value, "direction": e.direction} for e in ends],
        },
        "last_event": early.last_event.max(),
        "bounds": bounds,
        "events": int(early.n_events.sum()),
        "nonunique": [int(j) for j in early.nonunique.nonzero()[0]],
        "neurons": [
            {
                "fate": early.fates[j],
                "sign": int(early.signs[j]),
                "direction": early.direction[j],
                "log_gain": early.log_gain[j],
                "growth": early.growth[j],
                "last_event": early.last_event[j],
                "events": int(early.n_events[j]),
            }
            for j in range(early.p)
        ],
        "plot": plot,
    }
    finish(json, document, lambda out: _print(out, early, ends, rows, document), trouble)


def _bounds(problem: Problem, bounds: AlignmentConstants) -> dict[str, Any] | None:
    """Return the bounds of ML-T1a and ML-T1a' where they apply: ReLU, balanced, mu > 0, ML-A2."""
    import numpy as np

    net = problem.net
    balanced = np.allclose(net.log_norms, net.log_outs, rtol=0.0, atol=1e-12)
    if net.slope or problem.train == "first" or not balanced or not bounds.applies:
        return None
    return {"t_1": bounds.t_1, "t_1_sharp": bounds.t_1_sharp}


def _groups(early: Alignment, ends: ExtremalDirections) -> list[dict[str, Any]]:
    """Neurons with the same fate, sign and final sector, and which extremal direction they reached."""
    import numpy as np

    rows = []
    for group in early.groups:
        for fate in dict.fromkeys(early.fates[j] for j in group.neurons):
            members = [int(j) for j in group.neurons if early.fates[j] == fate]
            direction = early.direction[members[0]]
            kind = "max" if group.sign > 0 else "min"
            cosines = [float(e.direction @ direction) if e.kind == kind else -2.0 for e in ends]
            best = int(np.argmax(cosines)) if cosines else -1
            turned = fate in ("aligned", "sliding", "shrinking")
            rows.append(
                {
                    "fate": fate,
                    "sign": int(group.sign),
                    "neurons": members,
                    "direction": direction if turned else None,
                    "extremal": best if turned and best >= 0 and cosines[best] > 1 - 1e-9 else None,
                    "growth": early.growth[members[0]],
                    "last_event": float(early.last_event[members].max()),
                }
            )
    return sorted(rows, key=lambda row: (-len(row["neurons"]), row["fate"]))


def _print(
    out: Console, early: Alignment, ends: ExtremalDirections, rows: list[dict[str, Any]], document: dict[str, Any]
) -> None:
    from ..problem.words import count

    out.print(repr(early.problem))
    out.print(repr(early))
    out.print()
    how = "all of them" if ends.complete else "those found; there may be more"
    print_table(
        out,
        ("extremal", "of G", "value", "direction"),
        [(k, e.kind, f"{e.value:.6g}", _vector(e.direction)) for k, e in enumerate(ends)],
        title=f"Strict local extrema of G on the sphere ({how})",
    )
    out.print()
    print_table(
        out,
        ("neurons", "a", "fate", "growth", "last event", "reaches"),
        [
            (
                len(row["neurons"]),
                "+" if row["sign"] > 0 else "-" if row["sign"] < 0 else "0",
                row["fate"],
                f"{row['growth']:.4g}",
                f"{row['last_event']:.6g}",
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
        out.print(f"Last event at t = {document['last_event']:.6g}. The bounds t_1 and t_1' do not apply here.")
    else:
        out.print(
            f"Last event at t = {document['last_event']:.6g}; bounds: t_1' = {bounds['t_1_sharp']:.6g}, "
            f"t_1 = {bounds['t_1']:.6g}."
        )
    if document["nonunique"]:
        many = count(len(document["nonunique"]), "neuron meets", "neurons meet")
        out.print(f"{many} a place where the flow is not unique; --branch leave follows the other solution.")
    if document["plot"]:
        out.print(f"Picture written to {document['plot']}")


def _reaches(row: dict[str, Any]) -> str:
    if row["direction"] is None:
        return "-"
    name = f"extremal {row['extremal']}" if row["extremal"] is not None else "no strict extremum"
    return f"{name} {_vector(row['direction'])}"


def _vector(v: Any) -> str:
    shown = ", ".join(f"{x:.4g}" for x in v[:4])
    return f"({shown}{', ...' if len(v) > 4 else ''})"
