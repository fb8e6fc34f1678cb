"""Putting all claims to a problem: check, predict, monitor, cite, and the table of what is covered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..dynamics import Trajectory
from ..problem import Problem, ProblemError, Undecided
from ._base import Claim, Condition, Finding, Observation, Prediction, conjunction
from ._facts import Facts
from ._references import BIBTEX, PAPERS

_COMPUTED = "everything it needs can be computed"

#: One module a paper, each with ``CLAIMS`` and ``NOT_COMPUTABLE``.
_MODULES = {"PL": "_phuong", "ML": "_min", "SBG": "_sarussi", "LL": "_lyu"}


@cache
def claims(paper: str | None = None) -> tuple[Claim, ...]:
    """All claims, or those of one paper (``PL``, ``ML``, ``SBG``, ``LL``), in the order of the papers.

    >>> [claim.id for claim in claims("PL")][:2]
    ['C-INV1', 'C-INV2']
    """
    if paper is not None and paper not in _MODULES:
        raise ProblemError(f"paper {paper!r} is not known; choose one of {', '.join(_MODULES)}.")
    names = _MODULES.values() if paper is None else (_MODULES[paper],)
    return tuple(claim for name in names for claim in import_module(f".{name}", __package__).CLAIMS)


@cache
def not_computable() -> dict[str, str]:
    """Return the statements that no program can put to the test, with the reason."""
    found: dict[str, str] = {}
    for name in _MODULES.values():
        found |= import_module(f".{name}", __package__).NOT_COMPUTABLE
    return found


def claim(name: str) -> Claim:
    """Return the claim with this id.

    >>> claim("PL-T1").paper
    'PL'
    """
    for one in claims():
        if name == one.id or name in one.also:
            return one
    from difflib import get_close_matches

    close = get_close_matches(str(name), [c.id for c in claims()], 3, 0.4)
    hint = f"; near it are {', '.join(close)}" if close else ""
    raise ProblemError(f"there is no claim {name!r}{hint}. reluflow.theory.claims() lists them all.")


def check(problem: Problem | Facts, *, paper: str | None = None) -> list[Finding]:
    """Which claims apply to a problem, and which condition fails where they do not.

    Parameters
    ----------
    problem : Problem or Facts
        `Facts` share what was computed between several calls.
    paper : {"PL", "ML", "SBG", "LL"}, optional
        Ask the claims of one paper only.

    Examples
    --------
    >>> from reluflow import Dataset, Network
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [1, -2.5]], [1, 1, -1, -1])
    >>> findings = check(Problem(data, Network.balanced([[1, 0], [-1, 1]], [1, -1], log_scale=-9)))
    >>> main = next(f for f in findings if f.claim == "PL-T1")
    >>> main.applies, main.failing[0].witness
    (False, (2, 3))
    """
    facts = Facts.of(problem)
    return [_finding(one, facts) for one in claims(paper)]


def predict(problem: Problem | Facts, *, paper: str | None = None) -> list[Prediction]:
    """Return what the claims that apply, or may apply, promise for a problem (arguments as for `check`).

    Examples
    --------
    >>> from reluflow import Dataset, Network
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> problem = Problem(data, Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-3000))
    >>> limit = next(p for p in predict(problem, paper="PL") if p.claim == "PL-T1'")
    >>> round(limit.margin, 10), limit.groups.plus, limit.needs
    (0.5840985669, array([0]), ())
    >>> limit.function([[1, 1], [-1, 0]]).round(10)
    array([ 0.38939904, -0.13479198])
    """
    facts = Facts.of(problem)
    return [found for one, finding in _in_force(facts, paper) for found in _predictions(one, finding, facts)]


def monitor(problem: Problem | Facts, trajectory: Trajectory, *, paper: str | None = None) -> list[Observation]:
    """Whether a run kept what the claims that apply, or may apply, promise (arguments as for `check`).

    Observations list in ``needs`` what their claim only assumes; conditions that stayed undecided are listed too.

    Examples
    --------
    >>> from reluflow import Dataset, Network, flow
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> problem = Problem(data, Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-30))
    >>> seen = monitor(problem, flow(problem, {"log_time": 50.0}), paper="ML")
    >>> next(o.text for o in seen if o.claim == "ML-POSTA")
    'all trapped at t = ... and ever after: 1 in S+, 1 in S-, 0 dead.'
    >>> any(o.contradicts for o in seen)
    False
    """
    facts = Facts.of(problem)
    if not isinstance(trajectory, Trajectory):
        raise ProblemError(f"monitor needs a Trajectory, not {type(trajectory).__name__}; flow(problem) makes one.")
    if trajectory.problem.fingerprint() != facts.problem.fingerprint():
        raise ProblemError("the trajectory belongs to another problem (data, start, loss, reduction or layers differ).")
    return [
        replace(found, needs=_needs(finding))
        for one, finding in _in_force(facts, paper)
        for found in _observations(one, facts, trajectory)
    ]


def _finding(one: Claim, facts: Facts) -> Finding:
    def compute() -> Finding:
        try:
            conditions = one.conditions(facts)
        except Undecided as error:
            conditions = (Condition(_COMPUTED, None, "numerical", why=str(error)),)
        return Finding(one.id, one.paper, one.statement, conjunction(conditions), conditions)

    return facts.once(f"finding {one.id}", compute)


def _needs(finding: Finding) -> tuple[str, ...]:
    open_ = [c.name for c in finding.conditions if c.decides and c.holds is None and not c.assumed]
    return (*finding.needs, *open_)


def _in_force(facts: Facts, paper: str | None) -> Iterator[tuple[Claim, Finding]]:
    pairs = ((one, _finding(one, facts)) for one in claims(paper))
    # Of a claim whose conditions could not be computed nothing else can.
    known = ((one, finding) for one, finding in pairs if finding.conditions[0].name != _COMPUTED)
    return ((one, finding) for one, finding in known if finding.applies is not False)


def _predictions(one: Claim, finding: Finding, facts: Facts) -> list[Prediction]:
    try:
        bounds, found = one.bounds(facts), one.prediction(facts)
    except Undecided as error:
        return [one.promise(f"not computed: {error}", needs=_needs(finding))]
    if found is None and not bounds:
        return []
    found = found or one.promise(one.statement)
    return [replace(found, bounds={**bounds, **found.bounds}, needs=(*found.needs, *_needs(finding)))]


def _observations(one: Claim, facts: Facts, run: Trajectory) -> tuple[Observation, ...]:
    try:
        with np.errstate(over="ignore"):  # times of e^1000 are inf
            return one.observe(facts, run)
    except Undecided as error:
        return (one.seen(None, f"not decided: {error}"),)


# -- references and coverage ------------------------------------------------------------------------------


def citation(*used: Any) -> str:
    """BibTeX of exactly the papers behind what was used; without arguments, of the four papers.

    Parameters
    ----------
    *used
        Claims, ids of claims, keys of papers, findings, predictions, observations, or lists of these.

    Examples
    --------
    >>> print(citation("ML-T1a").splitlines()[0])
    @inproceedings{min2024early,
    """
    keys = list(dict.fromkeys(key for item in used or _MODULES for key in _keys(item)))
    return "\n\n".join(BIBTEX[key] for key in keys)


def _keys(item: Any) -> Iterator[str]:
    if isinstance(item, (list, tuple)):
        for part in item:
            yield from _keys(part)
    elif isinstance(item, str) and item in BIBTEX:
        yield item
    else:
        one = item if isinstance(item, Claim) else claim(getattr(item, "claim", item))
        yield one.paper
        yield from one.sources


def coverage() -> str:
    """Render the table of all statements: what is done about each, and what would refute it (Markdown)."""
    lines = [
        "# What is covered",
        "",
        "Written by `python -m reluflow.theory docs/coverage.md`.",
        "*checked*: its conditions are decided for a given problem; *predicted*: what it promises is computed;",
        "*bounded*: its constants are; *monitored*: a run is compared with it.",
    ]
    refused = not_computable()
    for key, title in PAPERS.items():
        lines += [
            "",
            f"## {key}: {title}",
            "",
            "| id | statement | status | refuted by | test |",
            "|---|---|---|---|---|",
        ]
        for one in claims(key):
            name = ", ".join((one.id, *one.also))
            lines.append(_row(name, one.statement, ", ".join(one.status()), one.falsifier, f"`{one.test}`"))
        module = import_module(f".{_MODULES[key]}", __package__)
        lines += [_row(name, "", "not computable", refused[name], "") for name in module.NOT_COMPUTABLE]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
