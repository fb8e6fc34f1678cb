"""What theory says of a problem, what the flow does, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..data import takes_data
from ..dynamics import Limit, Trajectory, limit
from ..dynamics.documents import describe_course
from ..dynamics.export import frame
from ..problem import Interrupted, Problem, Stopped, Undecided, part_of_time
from ..problem import time_limit as within
from ..problem.files import writing
from ..problem.plain import plain
from ..problem.progress import busy
from ..problem.show import Shown
from ..theory import Facts, Finding, Hint, Observation, Prediction, check, hints, monitor, predict
from ..theory.compare import Sight, Verdicts, compare_limit, sights, summarize
from .headline import headline

Item = TypeVar("Item")

_FOR_THEORY = 0.3  # largest part of the time limit for what the theorems say beforehand
_FOR_FLOW = 0.85  # largest part of what is left then for the flow, so that it can still be compared with them


class ExplanationFrames(NamedTuple):
    """An explanation as three tables of pandas: one row a claim, a promise, an observation."""

    findings: Any
    predictions: Any
    observations: Any


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Shown):
    """Theory and run of one problem side by side: what `explain` returns.

    Attributes
    ----------
    problem : Problem
    findings : tuple of Finding
        Which claims apply, condition by condition.
    predictions : tuple of Prediction
    trajectory : Trajectory or None
        The flow, as far as it was followed.
    limit : Limit or None
        None where no limit could be confirmed; ``troubles`` says why.
    observations : tuple of Observation
        What the run, and the limit, say about the claims.
    sights : tuple of Sight
        What can be seen in the run and its limit, and which claims cover it.
    troubles : tuple of str
        What could not be decided on the way, or was cut short, and by what.
    interrupted : bool
        Whether Ctrl-C ended it.
    command : str or None
        How to make it again.
    hints : tuple of Hint
        Preparations of the data after which more claims would apply.
    """

    problem: Problem
    findings: tuple[Finding, ...]
    predictions: tuple[Prediction, ...]
    trajectory: Trajectory | None
    limit: Limit | None
    observations: tuple[Observation, ...]
    sights: tuple[Sight, ...] = ()
    troubles: tuple[str, ...] = ()
    command: str | None = None
    interrupted: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    hints: tuple[Hint, ...] = ()

    @cached_property
    def summary(self) -> Verdicts:
        """The outcome."""
        return summarize(self.findings, self.observations, self.sights, self.troubles)

    @cached_property
    def headline(self) -> tuple[str, str]:
        """What is learned, and why, in two plain sentences; where no limit was confirmed, that, and why not."""
        return headline(self)

    @property
    def sentence(self) -> str:
        """The outcome in one sentence; where the flow was not followed to its limit, that comes first."""
        if self.limit is not None:
            return self.summary.sentence
        return f"no limit was confirmed; as far as the flow was followed, {self.summary.sentence}"

    @property
    def exit_code(self) -> int:
        """What the command line exits with.

        130 if Ctrl-C ended it; else 4 if a claim that applies was contradicted; else 3 if no limit was confirmed or a
        part was cut short (``troubles`` says which); else 0.
        """
        if self.interrupted:
            return 130
        if self.summary.contradicted:
            return 4
        return 3 if self.limit is None or self.troubles else 0

    def text(self, width: int = 100, color: bool = False) -> str:
        """Render for a terminal."""
        from .text import render

        return render(self, width, color)

    def to_dict(self) -> dict[str, Any]:
        """Everything that fits into a JSON document; of the trajectory a summary."""
        run = self.trajectory
        return {
            "headline": list(self.headline),
            "problem": _describe(self.problem),
            "findings": [item.to_dict() for item in self.findings],
            "predictions": [item.to_dict() for item in self.predictions],
            "flow": None if run is None else _describe_run(run),
            "limit": None if self.limit is None else _describe_limit(self.limit),
            "observations": [item.to_dict() for item in self.observations],
            "sights": plain(self.sights),
            "summary": {**plain(self.summary), "contradicted": len(self.summary.contradicted)},
            "sentence": self.sentence,
            "troubles": list(self.troubles),
            "interrupted": self.interrupted,
            "exit_code": self.exit_code,
            "hints": [item.to_dict() for item in self.hints],
            "notes": list(self.problem.data.notes),
            "settings": plain(self.settings),
            "command": self.command,
            "versions": versions(),
        }

    def html(self, path: str | Path) -> None:
        """Write one self-contained page (ending ``.html``), which needs no network."""
        from .page import page

        with writing(path, ".html", ".htm") as file:
            file.write_text(page(self), encoding="utf-8")

    def show(self) -> None:
        """Show the whole page in a notebook; anywhere else print the text."""
        from .notebook import show

        show(self)

    def to_pandas(self) -> ExplanationFrames:
        """Everything that was found as three tidy tables for pandas: ``findings``, ``predictions``, ``observations``.

        Examples
        --------
        >>> tables = explain([[2, 1], [-3, -1]], [1, -1], width=6, progress=False).to_pandas()
        >>> tables.findings.columns.tolist(), len(tables.findings) > 80
        (['claim', 'paper', 'applies', 'statement', 'failing', 'assumed'], True)
        """
        findings = [{**_some(f, "claim", "paper", "applies", "statement"), **_reasons(f)} for f in self.findings]
        predictions = [
            {**_some(p, "claim", "paper", "text", "margin", "probability"), **_numbers(p)} for p in self.predictions
        ]
        names = ("claim", "consistent", "contradicts", "measured", "predicted", "where", "text")
        observations = [{**_some(o, *names), "needs": "; ".join(o.needs)} for o in self.observations]
        return ExplanationFrames(*(_rows(part) for part in (findings, predictions, observations)))

    def __repr__(self) -> str:
        s = self.summary
        return (
            f"Explanation: {sum(f.applies is True for f in self.findings)} of {len(self.findings)} claims apply; "
            f"{len(s.seen)} predicted and seen, {len(s.missed)} not seen, {len(s.undecided)} undecided, "
            f"{len(s.uncovered)} seen beyond theory"
        )


@takes_data()
def explain(
    problem: Problem,
    *,
    rtol: float = 1e-9,
    max_log_time: float = 1e10,
    max_steps: int = 100_000,
    time_limit: float | None = None,
    command: str | None = None,
    progress: bool | None = None,
) -> Explanation:
    """Say what theory promises for a problem, follow the flow to its limit, and compare.

    Parameters
    ----------
    problem : Problem
        Or data and how to draw a network, ``explain(X, y, width=50)``: see `as_problem`.
    rtol, max_log_time, max_steps
        As for `limit`. Where that stays undecided, the flow as far as it went is used.
    time_limit : float, optional
        Most seconds to spend. When they end, or after Ctrl-C, what was found so far is returned, and ``troubles`` says
        what was cut short.
    command : str, optional
        How to make it again; shown in the report.
    progress : bool, optional
        Show on stderr what is being done; default: if that is a terminal.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from reluflow import Dataset, Network
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> found = explain(Problem(data, Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-30)))
    >>> found.summary.sentence
    'every prediction that applies and could be decided was seen.'
    >>> found.exit_code, round(found.limit.margin, 10)
    (0, 0.5840985669)
    >>> explain([[2, 1], [-3, -1]], [1, -1], width=6, progress=False).limit.kind
    'margin'
    """
    facts = Facts(problem)
    cut = _Cut([], False)
    settings = {"rtol": rtol, "max_log_time": max_log_time, "max_steps": max_steps}
    settings |= {} if time_limit is None else {"time_limit": time_limit}
    end: Limit | None = None
    run: Trajectory | None = None
    seen: tuple[Sight, ...] = ()
    with within(time_limit):
        with busy("asking the theorems", progress), part_of_time(_FOR_THEORY):
            findings = cut.all(lambda: check(facts))
            predictions = cut.all(lambda: predict(facts))
            advice = cut.all(lambda: list(hints(facts)))
        if not cut.interrupted:
            try:
                with part_of_time(_FOR_FLOW):
                    end = limit(
                        problem,
                        rtol=rtol,
                        max_log_time=max_log_time,
                        max_steps=max_steps,
                        alignment=facts.solved_alignment,
                        progress=progress,
                    )
            except KeyboardInterrupt:
                cut.note(Interrupted("interrupted before the flow began; what was found so far is kept."), 0)
            except Undecided as error:
                cut.note(error, 0)
                end = error.partial if isinstance(error.partial, Limit) else None
                run = error.partial if isinstance(error.partial, Trajectory) else None
        run = end.trajectory if end is not None else run
        # Times beyond the largest double are inf, and bounds that grow with them too.
        with busy("comparing the run with the theorems", progress), np.errstate(over="ignore"):
            observations = [] if run is None or cut.interrupted else cut.all(lambda: monitor(facts, run))
            observations += [] if end is None else compare_limit(end, predictions)
            if not cut.interrupted:
                seen = tuple(cut.all(lambda: list(sights(facts, run, end, predictions))))
    return Explanation(
        problem,
        tuple(findings),
        tuple(predictions),
        run,
        end,
        tuple(observations),
        seen,
        tuple(cut.troubles),
        command,
        cut.interrupted,
        settings,
        tuple(advice),
    )


@dataclass
class _Cut:
    """What was cut short on the way."""

    troubles: list[str]
    interrupted: bool

    def all(self, work: Callable[[], list[Item]]) -> list[Item]:
        """Return all that a stage finds, or what it has when it is stopped; nothing once Ctrl-C was pressed."""
        if self.interrupted:
            return []
        try:
            return work()
        except KeyboardInterrupt:
            self.note(Interrupted("interrupted; what was found so far is kept."))
            return []
        except Stopped as error:
            self.note(error)
            return error.partial if isinstance(error.partial, list) else []

    def note(self, error: Undecided, place: int | None = None) -> None:
        """Remember why something is missing."""
        self.interrupted |= isinstance(error, Interrupted)
        self.troubles.insert(len(self.troubles) if place is None else place, str(error))


# -- as tables -------------------------------------------------------------------------------------------


def _some(item: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(item, name) for name in names}


def _reasons(finding: Finding) -> dict[str, Any]:
    return {"failing": "; ".join(c.name for c in finding.failing), "assumed": "; ".join(finding.needs)}


def _numbers(prediction: Prediction) -> dict[str, Any]:
    return {"bounds": len(prediction.bounds), "assumed": "; ".join(prediction.needs)}


def _rows(rows: list[dict[str, Any]]) -> Any:
    return frame({name: [row[name] for row in rows] for name in (rows[0] if rows else ())})


# -- as plain values -------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    import platform
    from importlib.metadata import version

    packages = ("reluflow", "numpy", "scipy", "numba", "clarabel")
    return {**{name: version(name) for name in packages}, "python": platform.python_version()}


def _describe(problem: Problem) -> dict[str, Any]:
    data, net = problem.data, problem.net
    return plain(  # type: ignore[no-any-return]
        {
            "fingerprint": problem.fingerprint(),
            "data": data.name,
            "n": data.n,
            "d": data.d,
            "positives": data.positives.size,
            "negatives": data.negatives.size,
            "neurons": net.p,
            "slope": net.slope,
            "log_norm": net.log_norm(problem.train),
            "loss": problem.loss.name,
            "reduction": problem.reduction,
            "train": problem.train,
        }
    )


def _describe_run(run: Trajectory) -> dict[str, Any]:
    end = {"log_time": run.log_time[-1], "log_loss": run.log_loss[-1]}
    return plain({**describe_course(run), **end})  # type: ignore[no-any-return]


def _describe_limit(end: Limit) -> dict[str, Any]:
    """Describe the limit by its directions and its network; the problem and the run have places of their own."""
    document, net = end.to_dict(), end.network
    del document["problem"], document["trajectory"]
    groups = [{"sign": g.sign, "neurons": g.neurons, "direction": g.direction, "share": g.share} for g in end.groups]
    network = {"W": net.W, "a": net.a, "slope": net.slope, "log_scale": net.log_scale}
    return {**document, "groups": plain(groups), "network": plain(network)}
