"""An explanation for a terminal: short, and readable without colour."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..problem.tables import paper
from ..problem.words import count, moment, size
from ..theory import Finding
from ..theory.compare import Verdict
from ..theory.naming import theorems
from .words import phase_words

if TYPE_CHECKING:
    from rich.console import Console

    from ..dynamics import Limit, Trajectory
    from ..problem import Problem
    from .explanation import Explanation

_MARKS = {True: ("yes", "green"), False: ("no", "red"), None: ("?", "yellow")}
_SHORT_LABELS = {label for label, _ in _MARKS.values()} | {"-"}
_LABEL, _SHORT = 11, 3
_TELLING = ("KKT", "approach", "optimum")
_MOST = 5  # verdicts of one list that are shown with their words


class Line(NamedTuple):
    """A line with a coloured label; continuation lines stand under the body."""

    label: str
    body: str
    style: str = ""
    indent: int = 2
    short: bool = False


def render(found: Explanation, width: int, color: bool) -> str:
    """Render as one string, with or without the codes for colour."""
    out = paper(width, color)
    show(found, out, width)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def show(found: Explanation, out: Console, width: int = 100) -> None:
    """Print to a console."""
    from rich.text import Text

    for line in lines(found):
        if not line.body:
            for part in textwrap.wrap(line.label, width) or [""]:
                out.print(Text(part, style="bold"), soft_wrap=True)
            continue
        short = line.label in _SHORT_LABELS
        label = " " * line.indent + (f"{line.label:<{_SHORT if short else _LABEL - 1}} " if line.label else "")
        room = max(width - len(label), 30)
        body = textwrap.wrap(line.body, room, break_long_words=False, break_on_hyphens=False)
        if line.short and len(body) > 1:
            words = body[0] if len(body[0]) + 4 <= room else body[0][: room - 4].rpartition(" ")[0]
            body = [f"{words.rstrip(' ,;:')} ..."]
        for k, part in enumerate(body):
            text = Text(label if k == 0 else " " * len(label), style=line.style)
            out.print(text.append(part, style="default" if line.style else ""), soft_wrap=True)


def lines(found: Explanation) -> Iterator[Line]:
    """All lines in turn."""
    for sentence in found.headline:
        yield Line("", sentence, indent=0)
    yield Line("", "")
    yield from _problem(found.problem)
    yield Line("", "")
    yield from _theorems(found.findings)
    yield Line("", "")
    yield from _predictions(found)
    yield Line("", "")
    yield Line("What the flow does", "")
    if found.trajectory is None:
        yield Line("", "It could not be followed.")
    else:
        yield from _flow(found.trajectory)
    yield from _limit(found.limit) if found.limit is not None else (Line("limit", "not confirmed.", "yellow"),)
    yield Line("", "")
    yield from _verdict(found)
    remarks = [("note", note) for note in found.problem.data.notes] + [("hint", one.text) for one in found.hints]
    if remarks:
        yield Line("", "")
    for label, text in remarks:
        yield Line(label, text, "cyan", indent=0)


def _problem(problem: Problem) -> Iterator[Line]:
    title, *words = setting(problem)
    yield Line(f"{problem.data.name or 'data'}: {title}", "")
    for part in words:
        yield Line("", part)


def setting(problem: Problem) -> tuple[str, str, str]:
    """Say in three parts what the problem is: data, network, training."""
    data, net = problem.data, problem.net
    classes = f"{data.positives.size} positive, {data.negatives.size} negative"
    kind = "ReLU" if net.slope == 0 else "linear" if net.slope == 1 else f"leaky ReLU of slope {net.slope:g}"
    layers = "both layers" if problem.train == "both" else "the first layer"
    plus, minus = int((net.a > 0).sum()), int((net.a < 0).sum())
    return (
        f"{count(data.n, 'point')} ({classes}) in {count(data.d, 'dimension')}",
        f"{count(net.p, 'neuron')} ({plus} with a > 0, {minus} with a < 0), {kind}, start of norm {start(problem)}",
        f"{problem.reduction} {problem.loss.name} loss, {layers} trained",
    )


def start(problem: Problem) -> str:
    """Write the norm of the start."""
    log_norm = problem.net.log_norm(problem.train)
    return f"{np.exp(log_norm):.3g}" if abs(log_norm) < 300 else f"e^{log_norm:.6g}"


# -- theory ----------------------------------------------------------------------------------------------


def _theorems(findings: Sequence[Finding]) -> Iterator[Line]:
    totals = [sum(f.applies is value for f in findings) for value in (True, False, None)]
    yield Line(f"Which theorems apply ({totals[0]} of {len(findings)} statements do, {totals[2]} undecided)", "")
    by_name = {f.claim: f for f in findings}
    main = [by_name[name] for name in theorems() if name in by_name]
    for value in (True, None):
        for one in main:
            if one.applies is value:
                body = f"{one.claim + ('*' if one.needs else ''):<9} {one.statement}"
                yield Line(_MARKS[value][0], body, _MARKS[value][1], short=True)
    needs = dict.fromkeys(need for one in main if one.applies is not False for need in one.needs)
    if needs:
        yield Line("", f"* assuming what cannot be checked: {', '.join(needs)}")
    reasons: dict[str, list[str]] = {}
    for one in main:
        if one.applies is False:
            reasons.setdefault(decisive(one), []).append(one.claim)
    for reason, names in reasons.items():
        yield Line("no", f"{', '.join(names)}: {reason}", "red")


def decisive(finding: Finding) -> str:
    """Say in words which condition stands in the way, with its witness."""
    condition = finding.failing[0]
    return f"{condition.name} fails: {condition.why}" if condition.why else f"{condition.name} fails."


def _predictions(found: Explanation) -> Iterator[Line]:
    statements = {f.claim: f.statement for f in found.findings}
    told = [p for p in found.predictions if p.claim in theorems() and p.text != statements.get(p.claim)]
    constants = sum(len(p.bounds) for p in found.predictions)
    yield Line(f"What they predict ({count(constants, 'constant')} computed)", "")
    for one in told:
        yield Line(one.claim, one.text, "cyan", short=one.function is None)
    if not told:
        yield Line("", "No theorem that applies says where the flow ends.")


# -- the run ---------------------------------------------------------------------------------------------


def _flow(run: Trajectory) -> Iterator[Line]:
    last: dict[str, float] = {}
    for phase in run.phases:
        last[phase.name] = phase.log_end
    yield Line(
        "phases",
        "; ".join(f"{name} ({phase_words(name)}) to {moment(end)}" for name, end in last.items()) or "none",
    )
    kinds, counts = np.unique(run.events["kind"], return_counts=True)
    events = ", ".join(f"{n} {kind}" for kind, n in zip(kinds, counts, strict=True))
    yield Line("events", f"{run.events.size}{': ' + events if events else ''}")
    final, data = run.final, run.problem.data
    right = float((final.scaled_outputs(data.X)[0] * data.y > 0).mean())
    loss, when = size(float(run.log_loss[-1])), moment(float(run.log_time[-1]))
    yield Line("end", f"loss {loss}, {100 * right:.4g} % of the points classified at {when}")


def _limit(end: Limit) -> Iterator[Line]:
    yield Line("limit", f"{end.reason}.", "bold")
    if end.plateaus:
        yield Line("", f"Before, {end.history}.", indent=2 + _LABEL)
    telling = [
        f"KKT {item.text}" if item.name == "KKT" else item.text
        for item in end.evidence
        if item.holds and item.name in _TELLING
    ]
    others = [item.name for item in end.evidence if item.holds and item.name not in _TELLING]
    if telling:
        yield Line("", "; ".join(telling) + (f"; also: {', '.join(others)}" if others else "") + ".", indent=2 + _LABEL)
    for item in end.evidence:
        if not item.holds:
            yield Line(*_MARKS[item.holds][:1], f"{item.name}: {item.text}", _MARKS[item.holds][1], indent=4)


# -- the outcome -----------------------------------------------------------------------------------------


def _verdict(found: Explanation) -> Iterator[Line]:
    summary = found.summary
    yield Line("Verdict: " + found.sentence, "")
    yield from _list("predicted and seen", theorems_first(summary.seen), "green")
    yield from _list("predicted but not seen", summary.missed, "red", full=True)
    yield from _list("seen though no theorem covers it", summary.uncovered, "magenta", full=True)
    yield from _list("undecided", summary.undecided, "yellow", full=True)


def theorems_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Put the theorems before the lemmas."""
    order = theorems()
    return sorted(verdicts, key=lambda v: order.index(v.claim) if v.claim in order else len(order))


def _list(title: str, verdicts: Sequence[Verdict], style: str, full: bool = False) -> Iterator[Line]:
    yield Line("", f"{title}: {len(verdicts) or 'nothing'}")
    shown = len(verdicts) if full else sum(v.claim in theorems() for v in verdicts)
    shown = min(shown, 2 * _MOST if full else _MOST)
    for one in verdicts[:shown]:
        rest = (
            f" [inconsistent, but rests on: {', '.join(one.needs)}]" if title.endswith("not seen") and one.needs else ""
        )
        yield Line(one.claim or "-", one.text + rest, style, indent=4, short=not full)
    others = verdicts[shown:]
    if others:
        yield Line("", f"{'and ' if shown else ''}{_names(others)}", indent=4)


def _names(verdicts: Iterable[Verdict]) -> str:
    return ", ".join(v.claim or textwrap.shorten(v.text, 60, placeholder=" ...") for v in verdicts)
