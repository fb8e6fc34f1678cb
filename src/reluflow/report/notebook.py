"""Results in a notebook: one line that says it, and the rest folded up; nothing is fetched, and any theme will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from ..deep import Watch
from ..dynamics import Alignment, Limit, Trajectory
from ..problem import Dataset, Problem
from ..problem.progress import in_notebook
from ..problem.words import count
from ..theory import Finding
from ..theory.base import Lines
from ..theory.naming import theorems
from .charts import Chart, over_time
from .explanation import Explanation
from .svg import paint

_MOST_ROWS = 8  # of a table of samples
#: Colours are those of the notebook, light or dark; what has its own is readable on both.
_STYLE = """<style>
.reluflow{font-size:13px;line-height:1.4;color:inherit}
.reluflow summary{cursor:pointer}
.reluflow details>*:not(summary){margin-left:1.2em}
.reluflow table{border-collapse:collapse;font-size:inherit;color:inherit;background:transparent}
.reluflow td,.reluflow th{text-align:left;vertical-align:top;padding:1px 10px 1px 0;background:transparent;
 border-bottom:1px solid rgba(128,128,128,.35)}
.reluflow .yes{color:#1f9d55}.reluflow .no{opacity:.65}.reluflow .maybe{color:#c28a00}.reluflow .bad{color:#d9534f}
.reluflow .charts{display:flex;flex-wrap:wrap;gap:10px}.reluflow figure{margin:0;width:430px;max-width:100%}
.reluflow svg{width:100%;height:auto}.reluflow .key svg{width:26px;height:10px}
.reluflow svg text{fill:currentColor;font-size:12px}.reluflow svg .sup{font-size:9px}
.reluflow svg rect{fill-opacity:.12}
.reluflow svg path{stroke:currentColor;fill:none}.reluflow svg .grid{stroke-opacity:.15}
.reluflow .curve{stroke-width:2}.reluflow .second{stroke-dasharray:6 3}.reluflow .predicted{stroke-dasharray:9 5}
.reluflow svg .plus{stroke:#3a9bd9;stroke-width:1}
.reluflow svg .minus{stroke:#e07b39;stroke-width:1;stroke-dasharray:4 2}
.reluflow svg .bend{stroke-dasharray:1 3;stroke-opacity:.6}
.reluflow .limit{stroke-dasharray:2 4}.reluflow .best{stroke-dasharray:12 4 2 4}
.reluflow .key{display:flex;flex-wrap:wrap;gap:2px 14px;margin:0}
</style>"""
_MARKS = {True: ("yes", "applies"), False: ("no", "does not apply"), None: ("maybe", "undecided")}


def fragment(result: Any) -> str:
    """Write a result as HTML for a notebook.

    >>> text = fragment(Dataset([[2, 1], [-3, -1]], [1, -1], name="a < b"))
    >>> "a &lt; b" in text, "http" in text
    (True, False)
    """
    for kind, write in _WRITERS:
        if isinstance(result, kind):
            return f'{_STYLE}<div class="reluflow">{write(result)}</div>'
    return f"<pre>{escape(repr(result))}</pre>"


def show(found: Explanation) -> None:
    """Show the whole page of an explanation in a notebook; anywhere else print its text."""
    if not in_notebook():
        print(found.text())
        return
    from IPython.display import HTML, display

    from .page import page

    frame = '<iframe sandbox="allow-scripts" style="width:100%;height:720px;border:0;background:#fff" srcdoc="{}">'
    display(HTML(frame.format(escape(page(found), quote=True)) + "</iframe>"))


# -- pieces ------------------------------------------------------------------------------------------------


def _said(text: str) -> str:
    """Write lines of plain words, the first of which matters most."""
    first, *rest = text.splitlines() or [""]
    return f"<b>{escape(first)}</b>" + "".join(f"<br>{escape(line.strip())}" for line in rest)


def _folded(title: str, *body: str, opened: bool = False) -> str:
    inside = "".join(body)
    return f"<details{' open' if opened else ''}><summary>{escape(title)}</summary>{inside}</details>" if inside else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table; cells are texts unless they are HTML already, which only `_mark` makes."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>" if body else ""


class _Html(str):
    """A text that is HTML already."""


def _cell(value: Any) -> str:
    if isinstance(value, _Html):
        return value
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def _mark(verdict: bool | None, words: tuple[str, str, str]) -> _Html:
    css, word = {True: ("yes", words[0]), False: ("no", words[1]), None: ("maybe", words[2])}[verdict]
    return _Html(f'<span class="{css}">{escape(word)}</span>')


def _charts(charts: Sequence[Chart]) -> str:
    return f'<div class="charts">{"".join(map(paint, charts))}</div>'


# -- results -----------------------------------------------------------------------------------------------


def _data(data: Dataset) -> str:
    names = data.names or tuple(f"x{k + 1}" for k in range(data.d))
    shown = min(data.d, _MOST_ROWS)
    more = ["..."] * (data.d > shown)
    rows = [[*map(float, x[:shown]), *more, f"{y:+g}"] for x, y in zip(data.X[:_MOST_ROWS], data.y, strict=False)]
    rows += [["..."] * (shown + len(more) + 1)] * (data.n > _MOST_ROWS)
    ranges = [(names[k], *(float(f(data.X[:, k])) for f in (np.min, np.mean, np.max))) for k in range(shown)]
    return (
        _said(repr(data))
        + _folded(f"{count(data.n, 'sample')}", _table([*names[:shown], *more, "label"], rows))
        + _folded("features", _table(("", "smallest", "mean", "largest"), ranges))
    )


def _problem(problem: Problem) -> str:
    return _said(repr(problem)) + _folded("data", _data(problem.data))


def _early(early: Alignment) -> str:
    fates = {fate: early.fates.count(fate) for fate in dict.fromkeys(early.fates)}
    rows = [
        (j, early.fates[j], f"{early.signs[j]:+d}", int(early.n_events[j]), float(early.last_event[j]))
        for j in range(min(early.p, 50))
    ]
    return (
        f"<b>Early phase of {count(early.p, 'neuron')}: "
        f"{escape(', '.join(f'{number} {fate}' for fate, number in fates.items()))}</b>"
        + _folded("neurons", _table(("neuron", "fate", "sign", "events", "last event at t"), rows))
    )


def _run(run: Trajectory) -> str:
    return _said(repr(run)) + _folded("curves", _charts(over_time(run)[:4])) + _folded("problem", _problem(run.problem))


def _limit(end: Limit) -> str:
    return _end(end) + _folded("flow", _run(end.trajectory))


def _end(end: Limit) -> str:
    rows = [(item.name, _mark(item.holds, ("yes", "no", "?")), item.value, item.text) for item in end.evidence]
    groups = [(f"{g.sign:+d}", len(g.neurons), g.share) for g in end.groups]
    return (
        _said(f"Limit ({end.kind}): {end.reason}")
        + _folded("evidence", _table(("", "holds", "value", "in words"), rows))
        + _folded("groups of neurons", _table(("sign", "neurons", "share"), groups))
    )


def _finding(one: Finding) -> str:
    css, word = _MARKS[one.applies]
    words = ("holds", "fails", "assumed or undecided")
    rows = [(c.name, _mark(c.holds, words), c.evidence, c.why) for c in one.conditions]
    return (
        f'<details><summary><code>{escape(one.claim)}</code> <span class="{css}">{word}</span> '
        f"{escape(one.statement)}</summary>{_table(('condition', '', 'evidence', 'why'), rows)}</details>"
    )


def _lines(found: Lines[Any]) -> str:
    if found and all(isinstance(one, Finding) for one in found):
        applying = sum(one.applies is True for one in found)
        open_ = sum(one.applies is None for one in found)
        first = theorems()
        what = f"<b>{applying} of {count(len(found), 'statement')} apply, {open_} undecided</b>"
        return what + "".join(map(_finding, sorted(found, key=lambda one: one.claim not in first)))
    kinds = dict.fromkeys(type(one).__name__.lower() for one in found)
    rows = "".join(f"<li>{escape(repr(one))}</li>" for one in found)
    return _folded(count(len(found), next(iter(kinds)) if len(kinds) == 1 else "item"), f"<ul>{rows}</ul>", opened=True)


def _explanation(found: Explanation) -> str:
    what, why = found.headline
    summary = found.summary
    mood = "bad" if summary.contradicted else "maybe" if summary.missed or found.limit is None else "yes"
    parts = [
        f'<b>{escape(what)}</b><br>{escape(why)}<br><span class="{mood}">{escape(found.sentence)}</span>',
        _folded("problem", _problem(found.problem)),
        _folded("which theorems apply", _lines(Lines(found.findings))),
        _folded("what they predict", _table(("claim", "promise"), [(p.claim, p.text) for p in found.predictions])),
    ]
    if found.trajectory is not None:
        parts.append(
            _folded("what the flow does", _charts(over_time(found.trajectory, found.predictions, found.limit)[:4]))
        )
    if found.limit is not None:
        parts.append(_folded("where it ends", _end(found.limit)))
    words = ("seen", "not seen", "undecided")
    seen = [(o.claim, _mark(o.consistent, words), o.text) for o in found.observations]
    parts.append(_folded("whether they were kept", _table(("claim", "", "in words"), seen)))
    parts.append(_folded("what was cut short", *(f"<p>{escape(text)}</p>" for text in found.troubles), opened=True))
    return "".join(parts)


def _watched(seen: Watch) -> str:
    rows = [(name, float(value)) for name, value in seen.row(-1).items()]
    curves = "" if seen.moved else _folded("curves", _charts(over_time(seen.trajectory())[:4]))
    return _said(repr(seen)) + _folded("last record", _table(("", ""), rows)) + curves


_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (Dataset, _data),
    (Problem, _problem),
    (Alignment, _early),
    (Trajectory, _run),
    (Limit, _limit),
    (Explanation, _explanation),
    (Lines, _lines),
    (Watch, _watched),
)
