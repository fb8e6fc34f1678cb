"""One page over a sweep, in one file that needs no network: the spec, the counts, what went wrong, the pictures."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ..problem import ProblemError
from ..problem.files import replacing
from ..problem.words import count
from ..report.style import STYLE
from .plot import summary
from .results import SweepResults
from .store import PLOTS

_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}
_MOST = 50  # messages


def write_index(results: SweepResults) -> Path:
    """Write ``index.html`` into the folder of a sweep, with all pictures of its ``plots`` folder in it."""
    file = results.folder / "index.html"
    with replacing(file, ProblemError) as draft:
        draft.write_text("\n".join(_page(results)) + "\n", encoding="utf-8")
    return file


def _page(results: SweepResults) -> Iterator[str]:
    title = escape(results.spec.get("title") or "Sweep")
    status = results.status()
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{STYLE}</style></head><body><h1>{title}</h1>"
    counts = [f"{number} {state}" for state, number in status.states.items() if number]
    yield f"<p>{count(status.total, 'problem')}: {', '.join([*counts, f'{status.left} left'])}.</p>"
    for file in sorted((results.folder / PLOTS).glob("*")):
        if file.suffix in _TYPES:
            data = base64.b64encode(file.read_bytes()).decode("ascii")
            source = f"data:{_TYPES[file.suffix]};base64,{data}"
            yield f'<h2>{escape(file.stem)}</h2><p><img src="{source}" alt="{escape(file.stem, quote=True)}"></p>'
    yield "<h2>What was measured</h2>"
    yield from _table(("", "", "smallest", "median", "largest"), summary(results))
    failures = results.failures()
    if failures:
        yield "<h2>What went wrong</h2>"
        shown = list(failures.items())[:_MOST]
        yield from _table(("rows", "message"), [(str(number), text) for text, number in shown])
        if len(failures) > _MOST:
            yield f"<p class='note'>and {len(failures) - _MOST} more messages.</p>"
    yield "<h2>The spec</h2>"
    yield f"<pre>{escape(json.dumps(results.spec, indent=1))}</pre>"
    for note in status.notes:
        yield f'<p class="note">{escape(note)}</p>'
    yield "</body></html>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{escape(one)}</th>" for one in columns) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</table>"
