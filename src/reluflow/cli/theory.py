"""``reluflow check`` and ``reluflow predict``: what the theorems say before anything is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from .common import Json, TimeLimit, fed_by, finish, or_built_in, print_table, read_problem

if TYPE_CHECKING:
    from rich.console import Console

    from ..problem import Problem
    from ..problem.errors import Stopped
    from ..theory import Condition, Finding, Prediction

Item = TypeVar("Item", "Finding", "Prediction")

BUILT_IN = "ML-F6"  #: data where none are named: five points in the plane

Paper = Annotated[str | None, typer.Option(help="Only the claims of one paper: PL, ML, SBG or LL.")]
Claims = Annotated[
    list[str] | None, typer.Option("--claim", help="Only this claim, e.g. PL-T1, in full. May be repeated.")
]


@fed_by(or_built_in(read_problem, BUILT_IN))
def check(
    problem: Problem, paper: Paper = None, claim: Claims = None, time_limit: TimeLimit = None, json: Json = False
) -> None:
    """Say which theorems apply, and which condition fails where they do not."""
    from ..theory import Facts, hints
    from ..theory import check as ask

    wanted, facts = _ids(claim), Facts(problem)
    found, trouble = _ask(lambda: ask(facts, paper=paper, time_limit=time_limit), wanted)
    shown = {item.claim for item in found}
    advice = [] if trouble else [hint for hint in hints(facts) if shown & set(hint.claims)]
    document = {
        "problem": _problem(problem),
        "findings": [item.to_dict() for item in found],
        "hints": [hint.to_dict() for hint in advice],
    }

    def text(out: Console) -> None:
        _print_findings(out, problem, found, wanted is not None)
        for hint in advice:
            out.print(f"hint: {hint.text}")

    finish(json, document, text, trouble)


@fed_by(or_built_in(read_problem, BUILT_IN))
def predict(
    problem: Problem, paper: Paper = None, claim: Claims = None, time_limit: TimeLimit = None, json: Json = False
) -> None:
    """Say what the theorems that apply promise, with their constants."""
    from ..theory import predict as ask

    wanted = _ids(claim)
    found, trouble = _ask(lambda: ask(problem, paper=paper, time_limit=time_limit), wanted)
    document = {"problem": _problem(problem), "predictions": [item.to_dict() for item in found]}
    finish(json, document, lambda out: _print_predictions(out, problem, found), trouble)


def _ask(work: Callable[[], list[Item]], wanted: set[str] | None) -> tuple[list[Item], Stopped | None]:
    """Return what the theorems say, those that are wanted, and why it is not all, if so."""
    from ..problem.errors import Stopped
    from ..problem.progress import busy

    trouble = None
    with busy("asking the theorems"):
        try:
            found = work()
        except Stopped as error:
            found, trouble = error.partial, error
    return [item for item in found if wanted is None or item.claim in wanted], trouble


def _ids(names: list[str] | None) -> set[str] | None:
    from ..theory import claim

    return {claim(name).id for name in names} if names else None


def _problem(problem: Problem) -> dict[str, Any]:
    from ..dynamics.documents import describe_problem

    return {**describe_problem(problem), "data": problem.data.name}


_WORDS = {True: "yes", False: "no", None: "?"}


def _print_findings(out: Console, problem: Problem, found: list[Finding], full: bool) -> None:
    out.print(repr(problem))
    out.print()
    if full:
        for item in found:
            out.print(f"{item.claim}: {item.statement}")
            out.print(f"applies: {_WORDS[item.applies]}\n")
            rows = [(_holds(c), c.evidence, f"{c.name}: {c.why}" if c.why else c.name) for c in item.conditions]
            print_table(out, ("holds", "evidence", "condition"), rows)
            out.print()
        return
    summary = [(_WORDS[item.applies], item.claim, _why(item)) for item in found]
    print_table(out, ("applies", "claim", "statement, or what stands in the way"), summary)
    yes, no = (sum(item.applies is value for item in found) for value in (True, False))
    out.print(f"\n{yes} apply, {no} do not, {len(found) - yes - no} undecided; --claim NAME shows every condition.")


def _holds(condition: Condition) -> str:
    word = "assumed" if condition.assumed else _WORDS[condition.holds]
    return word if condition.decides else f"({word})"


def _why(finding: Finding) -> str:
    if finding.applies is not False:
        needs = f" [assumes: {', '.join(finding.needs)}]" if finding.needs else ""
        return finding.statement + needs
    first = finding.failing[0]
    return f"{first.name}: {first.why}" if first.why else first.name


def _print_predictions(out: Console, problem: Problem, found: list[Prediction]) -> None:
    out.print(repr(problem))
    for item in found:
        out.print(f"\n{item.claim}  {item.text}")
        if item.probability is not None:
            p = item.probability
            out.print(f"    probability over the draw at least {f'{p:.10g}' if p < 0.999 else f'1 - {1 - p:.4g}'}")
        for name, value in item.bounds.items():
            out.print(f"    {name} = {value:.10g}")
        if item.needs:
            out.print(f"    assuming: {', '.join(item.needs)}")
    if not found:
        out.print("\nNo theorem that applies promises anything here; reluflow check says why.")
