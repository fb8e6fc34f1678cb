"""Runs and limits in words and tables: what their ``text`` returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem.tables import number, rendered, sign_word, table, vector
from ..problem.words import count

if TYPE_CHECKING:
    from rich.table import Table

    from .limit.limit import Limit
    from .trajectory import Trajectory

_GROUPS = 20  # groups of neurons that are shown; a document holds all
_RECORDS = 12  # records of a discrete run that are shown
_STOPPED = {
    "watch": "As far as it was watched",
    "steps": "All steps were taken",
    "loss": "The loss was reached",
    "interrupted": "Interrupted",
    "time": "The time limit ended",
    "diverged": "The weights overflowed",
    "callback": "Stopped",
}


def run_text(run: Trajectory, width: int, color: bool) -> str:
    """Say what a run did."""
    document = run.to_dict()
    return rendered((_flow if run.method == "flow" else _descent)(run, document), width, color)


def limit_text(end: Limit, width: int, color: bool) -> str:
    """Say where a flow ends, and what supports it."""
    return rendered(_limit(end, end.to_dict()), width, color)


def _flow(run: Trajectory, document: dict[str, Any]) -> Iterator[str | Table]:
    yield repr(run.problem)
    yield repr(run).split("\n")[0] + "\n"
    yield table(
        ("phase", "log t from", "to", "steps"),
        [(f.name, f"{f.log_start:.6g}", f"{f.log_end:.6g}", f.steps) for f in run.phases],
    )
    events = ", ".join(f"{n} {kind}" for kind, n in document["events"].items())
    yield f"\n{count(run.events.size, 'event')}{': ' + events if events else ''}\n"
    names = ("log_time", "log_loss", "min_margin", "normalized_margin", "stable_rank")
    yield table(
        ("log t", "log loss", "min margin", "normalised", "stable rank"),
        [tuple(number(row[name]) for name in names) for row in document["moments"]],
    )
    yield "\nAt the end (neurons of one sign that see every sample from the same side)"
    groups, final, n = document["groups"], document["final"], run.problem.data.n
    yield table(
        ("neurons", "a", "share", "active", "on walls", "direction"),
        [
            (
                len(row["neurons"]),
                sign_word(row["sign"]),
                number(row["share"], 4),
                f"{row['active']} of {n}" if row["state"] == "live" else row["state"],
                row["on_hyperplane"],
                vector(row["direction"]),
            )
            for row in groups[:_GROUPS]
        ],
    )
    yield from _more(groups)
    yield f"\n{_classified(final)}; drift of the conserved quantity {final['balance_drift']:.1e}."


def _descent(run: Trajectory, document: dict[str, Any]) -> Iterator[str | Table]:
    yield repr(run.problem)
    yield repr(run) + "\n"
    shown = np.unique(np.round(np.linspace(0, len(run) - 1, min(len(run), _RECORDS))).astype(int))
    records, settings = document["records"], document["settings"]
    curves = ("log_time", "log_loss", "log_norm", "normalized_margin", "stable_rank")
    yield table(
        ("iteration", "log t", "log loss", "log norm", "margin", "stable rank"),
        [(records["iteration"][k], *(number(records[name][k]) for name in curves)) for k in shown],
    )
    yield ""
    if settings.get("fast_forward"):
        yield f"The first {settings['fast_forward']} iterations were jumped along the exact solution."
    yield f"{_STOPPED[settings.get('stopped', 'watch')]}: {_classified(document['final'])}."


def _classified(final: dict[str, Any]) -> str:
    return f"{100 * final['accuracy']:.4g} % of the samples are classified correctly"


def _more(groups: list[Any]) -> Iterator[str]:
    if len(groups) > _GROUPS:
        yield f"... and {count(len(groups) - _GROUPS, 'more group')} (--json prints all)"


def _limit(end: Limit, document: dict[str, Any]) -> Iterator[str | Table]:
    yield repr(end.problem)
    yield f"\n{end.kind}: {end.reason}\n"
    mark = {True: "yes", False: "no", None: "?"}
    rows = [(item.name, mark[item.holds], f"{item.value:.4g}", item.text) for item in end.evidence]
    yield table(("evidence", "holds", "value", "in words"), rows)
    groups = document["groups"]
    if groups:
        yield "\nGroups of neurons in the limit"
        yield table(
            ("neurons", "a", "share", "rate", "active", "on walls", "direction"),
            [
                (
                    len(row["neurons"]),
                    sign_word(row["sign"]),
                    number(row["share"]),
                    number(row["rate"], 4),
                    f"{row['active']} of {end.problem.data.n}",
                    row["on_hyperplane"],
                    vector(row["direction"]) if row["share"] > 0 else "vanishes",
                )
                for row in groups[:_GROUPS]
            ],
        )
    yield from _more(groups)
    if end.optimum is None:
        yield "\nThe largest margin of any network was not computed (--optimum does it)."
    else:
        best = end.optimum
        bounds = f"{best.lower:.10g}" if best.exact else f"between {best.lower:.10g} and {best.upper:.10g}"
        yield f"\nLargest margin of any network: {bounds}; the limit has {end.margin:.10g}."
