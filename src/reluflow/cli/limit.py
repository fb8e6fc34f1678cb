"""``reluflow limit``: where the flow ends, and what supports it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .align import _vector
from .common import Json, TimeLimit, fed_by, finish, or_built_in, print_table, read_problem
from .flow import _MOST_GROUPS, keep_partial, sign_word
from .output import PICTURES, check_target, write
from .theory import BUILT_IN

if TYPE_CHECKING:
    from rich.console import Console

    from ..dynamics import Limit
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
    document = {**_document(end), "saved": save, "plot": plot}
    finish(json, document, lambda out: _print(out, end, document), trouble)


def _document(end: Limit) -> dict[str, Any]:
    data, best = end.problem.data, end.optimum
    return {
        "problem": {"fingerprint": end.problem.fingerprint(), "n": data.n, "d": data.d, "p": end.problem.net.p},
        "kind": end.kind,
        "reason": end.reason,
        "margin": end.margin,
        "loss_floor": end.loss_floor,
        "evidence": [item._asdict() for item in end.evidence],
        "groups": [
            {
                "neurons": group.neurons,
                "sign": group.sign,
                "share": group.share,
                "flow_share": group.flow_share,
                "rate": group.rate,
                "active": int((group.pattern > 0).sum()),
                "on_hyperplane": int((group.pattern == 0).sum()),
                "direction": group.direction,
            }
            for group in sorted(end.groups, key=lambda group: (-group.share, -group.flow_share))
        ],
        "kkt": None if end.kkt is None else {"residual": end.kkt.residual, "balance": end.kkt.balance},
        "optimum": None if best is None else {"lower": best.lower, "upper": best.upper, "exact": best.exact},
        "network": {"neurons": end.network.p, "log_norm": end.network.log_norm(end.problem.train)},
        "trajectory": {"log_time": end.trajectory.log_time[-1], "events": int(end.trajectory.events.size)},
        "plateaus": [plateau.to_dict() for plateau in end.plateaus],
    }


def _print(out: Console, end: Limit, document: dict[str, Any]) -> None:
    from ..problem.words import count

    out.print(repr(end.problem))
    out.print(f"\n{end.kind}: {end.reason}\n")
    mark = {True: "yes", False: "no", None: "?"}
    rows = [(item.name, mark[item.holds], f"{item.value:.4g}", item.text) for item in end.evidence]
    print_table(out, ("evidence", "holds", "value", "in words"), rows)
    groups = document["groups"]
    if groups:
        out.print()
        print_table(
            out,
            ("neurons", "a", "share", "rate", "active", "on walls", "direction"),
            [
                (
                    len(row["neurons"]),
                    sign_word(row["sign"]),
                    f"{row['share']:.6g}",
                    "-" if math.isnan(row["rate"]) else f"{row['rate']:.4g}",
                    f"{row['active']} of {end.problem.data.n}",
                    row["on_hyperplane"],
                    _vector(row["direction"]) if row["share"] > 0 else "vanishes",
                )
                for row in groups[:_MOST_GROUPS]
            ],
            title="Groups of neurons in the limit",
        )
    if len(groups) > _MOST_GROUPS:
        out.print(f"... and {count(len(groups) - _MOST_GROUPS, 'more group')} (--json prints all)")
    out.print()
    if end.optimum is None:
        out.print("The largest margin of any network was not computed (--optimum does it).")
    else:
        best = end.optimum
        bounds = f"{best.lower:.10g}" if best.exact else f"between {best.lower:.10g} and {best.upper:.10g}"
        out.print(f"Largest margin of any network: {bounds}; the limit has {end.margin:.10g}.")
    for word, name in (("Network", "saved"), ("Picture", "plot")):
        if document[name]:
            out.print(f"{word} written to {document[name]}")
