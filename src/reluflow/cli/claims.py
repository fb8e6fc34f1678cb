"""``reluflow claims``: the statements of the papers, and what is done about each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .common import Json, emit, print_table
from .theory import Paper

if TYPE_CHECKING:
    from rich.console import Console

    from ..theory import Statement


def claims(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these, in full: PL-T1, ML-T1a, ...")
    ] = None,
    paper: Paper = None,
    json: Json = False,
) -> None:
    """List the statements of the papers, and what is done about each."""
    from ..theory import statements

    found = statements(paper)
    if ids:
        wanted = {_find(name, found, paper) for name in ids}
        found = [one for one in found if one.id in wanted]
    document = {"claims": [one._asdict() for one in found]}
    emit(json, document, lambda out: (_print_full if ids else _print)(out, found))


def _find(name: str, known: list[Statement], paper: str | None) -> str:
    from ..problem import ProblemError
    from ..theory import claim

    for one in known:
        if name.casefold() in (known_as.casefold() for known_as in (one.id, *one.also)):
            return one.id
    raise ProblemError(f"{claim(name).id} is no statement of the paper {paper}; leave --paper out.")


def _print(out: Console, found: list[Statement]) -> None:
    from ..problem.words import count
    from ..theory import PAPERS

    for key in dict.fromkeys(one.paper for one in found):
        part = [one for one in found if one.paper == key]
        rows = [(one.id, f"{one.statement or one.refuted_by} [{', '.join(one.status)}]") for one in part]
        print_table(out, ("claim", "statement [what is done about it]"), rows, title=f"{key}: {PAPERS[key]}")
        out.print()
    out.print(f"{count(len(found), 'statement')}; `reluflow claims ID` shows one in full.")


def _print_full(out: Console, found: list[Statement]) -> None:
    from ..theory import PAPERS

    for one in found:
        rows = [
            ("paper", PAPERS[one.paper]),
            ("statement", one.statement),
            ("status", ", ".join(one.status)),
            ("refuted by" if one.statement else "because", one.refuted_by),
            ("test", one.test),
        ]
        title = ", ".join((one.id, *one.also))
        print_table(out, ("what", "in words"), [row for row in rows if row[1]], title=title)
        out.print()
