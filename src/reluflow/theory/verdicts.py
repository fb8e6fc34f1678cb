"""Putting all claims to a problem: check, predict, monitor, cite, and the table of what is covered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..data import takes_data
from ..data.registry import suggestion
from ..dynamics import Trajectory
from ..problem import Interrupted, OutOfTime, Problem, ProblemError, Stopped, Undecided, check_time
from ..problem import time_limit as within
from .base import Claim, Condition, Finding, Lines, Observation, Prediction, conjunction
from .facts import Facts, once
from .references import BIBTEX, PAPERS

Item = TypeVar("Item")

_COMPUTED = "everything it needs can be computed"

#: One module a paper, each with ``CLAIMS`` and ``NOT_COMPUTABLE``.
_MODULES = {"PL": "pl.claims", "ML": "ml.claims", "SBG": "sbg.claims", "LL": "ll.claims"}


@cache
def claims(paper: str | None = None) -> tuple[Claim, ...]:
    """All claims, or those of one paper (``PL``, ``ML``, ``SBG``, ``LL``), in the order of the papers.

    >>> [claim.id for claim in claims("PL")][:2]
    ['C-INV1', 'C-INV2']
    """
    return tuple(one for key in _papers(paper) for one in _module(key).CLAIMS)


def _papers(paper: str | None) -> tuple[str, ...]:
    """Return the keys asked for; upper and lower case are the same."""
    if paper is None:
        return tuple(_MODULES)
    if not isinstance(paper, str) or paper.upper() not in _MODULES:
        raise ProblemError(f"paper {paper!r} is not known; choose one of {', '.join(_MODULES)}.")
    return (paper.upper(),)


def _module(paper: str) -> Any:
    return import_module(f".{_MODULES[paper]}", __package__)


@cache
def not_computable() -> dict[str, str]:
    """Return the statements that no program can put to the test, with the reason."""
    found: dict[str, str] = {}
    for key in _MODULES:
        found |= _module(key).NOT_COMPUTABLE
    return found


def claim(name: str) -> Claim:
    """Return the claim with this id; upper and lower case are the same.

    >>> claim("PL-T1").paper, claim("ml-t1a").id
    ('PL', 'ML-T1a')
    """
    known = {known: one for one in claims() for known in (one.id, *one.also)}
    folded = {known.casefold(): one for known, one in known.items()}
    found = folded.get(str(name).strip().casefold())
    if found is None:
        raise ProblemError(
            f"there is no claim {name!r}{suggestion(name, known) or ';'} `reluflow claims` lists them all."
        )
    return found


def _asked(paper: str | None, names: str | Iterable[str] | None) -> tuple[Claim, ...]:
    """Return the claims of a paper, or those with certain ids, in the order of the papers."""
    if names is None:
        return claims(paper)
    if not isinstance(names, (str, Iterable)):
        raise ProblemError(f"claim = {names!r}: the id of a claim is needed, such as 'PL-T1', or a list of ids.")
    wanted = [claim(name) for name in ([names] if isinstance(names, str) else names)]
    return tuple(one for one in claims(paper) if one in wanted)


@takes_data(Facts)
def check(
    problem: Problem | Facts,
    *,
    paper: str | None = None,
    claim: str | Iterable[str] | None = None,
    time_limit: float | None = None,
) -> list[Finding]:
    """Which claims apply to a problem, and which condition fails where they do not.

    Parameters
    ----------
    problem : Problem or Facts
        `Facts` share what was computed between several calls. Or data and how to draw a network,
        ``check(X, y, width=50)``: see `as_problem`.
    paper : {"PL", "ML", "SBG", "LL"}, optional
        Ask the claims of one paper only.
    claim : str or list of str, optional
        Ask only the claims with these ids; upper and lower case are the same.
    time_limit : float, optional
        Most seconds to spend. When they end, or after Ctrl-C, `OutOfTime` or `Interrupted` is raised with the list so
        far as ``partial``.

    Examples
    --------
    >>> from reluflow import Dataset, Network
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [1, -2.5]], [1, 1, -1, -1])
    >>> findings = check(Problem(data, Network.balanced([[1, 0], [-1, 1]], [1, -1], log_scale=-9)))
    >>> len(findings) > 80
    True
    >>> (main,) = check(data, width=2, claim="PL-T1")
    >>> main.applies, main.failing[0].witness
    (False, (2, 3))
    """
    facts = Facts.of(problem)
    with within(time_limit):
        return _gather("asking which claims apply", ([finding_of(one, facts)] for one in _asked(paper, claim)))


@takes_data(Facts)
def predict(
    problem: Problem | Facts,
    *,
    paper: str | None = None,
    claim: str | Iterable[str] | None = None,
    time_limit: float | None = None,
) -> list[Prediction]:
    """Return what the claims that apply, or may apply, promise for a problem (arguments as for `check`).

    Examples
    --------
    >>> from reluflow import Dataset, Network
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> problem = Problem(data, Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-3000))
    >>> (limit,) = predict(problem, claim="PL-T1'")
    >>> round(limit.margin, 10), limit.groups.plus, limit.needs
    (0.5840985669, array([0]), ())
    >>> limit.function([[1, 1], [-1, 0]]).round(10)
    array([ 0.38939904, -0.13479198])
    """
    facts = Facts.of(problem)
    with within(time_limit):
        pairs = _in_force(facts, _asked(paper, claim))
        return _gather("working out predictions", (_predictions(one, finding, facts) for one, finding in pairs))


@takes_data(Facts)
def monitor(
    problem: Problem | Facts,
    trajectory: Trajectory,
    *,
    paper: str | None = None,
    claim: str | Iterable[str] | None = None,
    time_limit: float | None = None,
) -> list[Observation]:
    """Whether a run kept what the claims that apply, or may apply, promise (arguments as for `check`).

    Observations list in ``needs`` what their claim only assumes; conditions that stayed undecided are listed too.

    Examples
    --------
    >>> from reluflow import Dataset, Network, flow
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> problem = Problem(data, Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-30))
    >>> run = flow(problem, {"log_time": 50.0})
    >>> monitor(problem, run, claim="ML-POSTA")[0].text
    'all trapped at t = ... and ever after: 1 in S+, 1 in S-, 0 dead.'
    >>> any(o.contradicts for o in monitor(problem, run))
    False
    """
    facts = Facts.of(problem)
    if not isinstance(trajectory, Trajectory):
        raise ProblemError(f"monitor needs a Trajectory, not {type(trajectory).__name__}; flow(problem) makes one.")
    if trajectory.problem.fingerprint() != facts.problem.fingerprint():
        raise ProblemError("the trajectory belongs to another problem (data, start, loss, reduction or layers differ).")
    with within(time_limit):
        return _gather(
            "comparing the run with the claims",
            (
                [replace(found, needs=_needs(finding)) for found in _observations(one, facts, trajectory)]
                for one, finding in _in_force(facts, _asked(paper, claim))
            ),
        )


def _gather(doing: str, parts: Iterable[Iterable[Item]]) -> list[Item]:
    """Collect the parts one claim at a time; who ends it from outside gets what there is."""
    found: Lines[Item] = Lines()
    try:
        for part in parts:
            found += part
            check_time(doing)
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(f"interrupted while {doing}; what was found so far is kept.", found) from None
    except OutOfTime as error:
        error.partial = found
        raise
    return found


def finding_of(one: Claim, facts: Facts) -> Finding:
    """Whether one claim applies; `Facts` keep the answer."""
    return _finding(facts, one)


@once
def _finding(facts: Facts, one: Claim) -> Finding:
    try:
        conditions = one.conditions(facts)
    except Stopped:
        raise
    except Undecided as error:
        conditions = (Condition(_COMPUTED, None, "numerical", why=str(error)),)
    return Finding(one.id, one.paper, one.statement, conjunction(conditions), conditions)


def _needs(finding: Finding) -> tuple[str, ...]:
    open_ = [c.name for c in finding.conditions if c.decides and c.holds is None and not c.assumed]
    return (*finding.needs, *open_)


def _in_force(facts: Facts, asked: Iterable[Claim]) -> Iterator[tuple[Claim, Finding]]:
    pairs = ((one, finding_of(one, facts)) for one in asked)
    # Of a claim whose conditions could not be computed nothing is known, not even whether its numbers exist.
    known = (pair for pair in pairs if _COMPUTED not in [c.name for c in pair[1].conditions])
    return ((one, finding) for one, finding in known if finding.applies is not False)


def _predictions(one: Claim, finding: Finding, facts: Facts) -> list[Prediction]:
    try:
        bounds, found = one.bounds(facts), one.prediction(facts)
    except Stopped:
        raise
    except Undecided as error:
        return [one.promise(f"not computed: {error}", needs=_needs(finding))]
    if found is None and not bounds:
        return []
    found = found or one.promise(one.statement)
    return [replace(found, bounds={**bounds, **found.bounds}, needs=(*found.needs, *_needs(finding)))]


def _observations(one: Claim, facts: Facts, run: Trajectory) -> tuple[Observation, ...]:
    try:
        with np.errstate(over="ignore"):  # times of e^1000 are inf
            return one.observe(facts, run.measures)
    except Stopped:
        raise
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
    elif isinstance(item, str) and (item in BIBTEX or item.upper() in BIBTEX):
        yield item if item in BIBTEX else item.upper()
    else:
        one = item if isinstance(item, Claim) else claim(getattr(item, "claim", item))
        yield one.paper
        yield from one.sources


class Statement(NamedTuple):
    """A statement of a paper and what is done about it.

    Attributes
    ----------
    id : str
    also : tuple of str
        Ids of the statements that are covered with it.
    paper : str
    statement : str
        Empty where it is not computable.
    status : tuple of str
        Of ``checked``, ``predicted``, ``bounded``, ``monitored``; or ``not computable``.
    refuted_by : str
        What would refute it; why nothing can, where it is not computable.
    test : str
    source : str
        The file that makes it runnable, below the folder ``src``.
    """

    id: str
    also: tuple[str, ...]
    paper: str
    statement: str
    status: tuple[str, ...]
    refuted_by: str
    test: str
    source: str


def statements(paper: str | None = None) -> list[Statement]:
    """List all statements, or those of one paper, with what is done about each.

    >>> [one.status for one in statements("PL") if one.id == "PL-T1"]
    [('checked', 'predicted', 'monitored')]
    """
    found = []
    for key in _papers(paper):
        for one in _module(key).CLAIMS:
            source = _source(type(one).__module__)
            found.append(Statement(one.id, one.also, key, one.statement, one.status(), one.falsifier, one.test, source))
        for name, why in _module(key).NOT_COMPUTABLE.items():
            found.append(Statement(name, (), key, "", ("not computable",), why, "", _source(_module(key).__name__)))
    return found


def _source(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def coverage() -> str:
    """Render the table of all statements: what is done about each, and what would refute it (Markdown)."""
    lines = [
        "# What is covered",
        "",
        "Written by `python -m reluflow.theory docs/coverage.md`.",
        "*checked*: its conditions are decided for a given problem; *predicted*: what it promises is computed;",
        "*bounded*: its constants are; *monitored*: a run is compared with it.",
    ]
    for key, title in PAPERS.items():
        lines += [
            "",
            f"## {key}: {title}",
            "",
            "| id | statement | status | refuted by | source | test |",
            "|---|---|---|---|---|---|",
        ]
        for one in statements(key):
            test = f"`{one.test}`" if one.test else ""
            ids, status = ", ".join((one.id, *one.also)), ", ".join(one.status)
            source = f"[{one.source.removeprefix('reluflow/')}](../src/{one.source})"
            lines.append(_row(ids, one.statement, status, one.refuted_by, source, test))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
