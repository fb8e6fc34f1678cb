"""An explanation as one page that needs nothing but a browser: the studio frozen at one run."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from ...problem.plain import plain
from .curves import ends, over_time, phases, regions
from .modules import bundle, style
from .plane import movie
from .statements import claims, data_part, limit_part, origin_part, run_part, words

if TYPE_CHECKING:
    from ..explanation import Explanation


@cache
def _template() -> Template:
    return Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


def running(found: Explanation, most: int | None = None) -> dict[str, Any]:
    """Describe what the run alone shows: the moving picture and the charts over time, of ``most`` records."""
    return {"movie": movie(found), "charts": over_time(found, most), "phases": phases(found)}


def document(found: Explanation) -> dict[str, Any]:
    """Describe everything that a page, or the studio, shows of an explanation."""
    return {
        **running(found),
        "words": words(found),
        "ends": ends(found),
        "regions": regions(found),
        "claims": claims(found),
        "parts": [part for part in (limit_part(found), run_part(found), data_part(found), origin_part(found)) if part],
        "hints": [one.text for one in found.hints] + list(found.problem.data.notes),
    }


def page(found: Explanation) -> str:
    """Write the page."""
    # "</" would end the script, whatever string it stands in
    scene = plain(document(found))
    drawn = json.dumps(scene, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    name, mood, (what, why) = (scene["words"][key] for key in ("name", "mood", "headline"))
    texts = {"title": f"{name}: explained by reluflow", "name": name, "what": what, "why": why, "text": found.text()}
    escaped = {key: escape(text) for key, text in texts.items()}
    return _template().substitute(escaped, mood=mood, style=style(), scene=drawn, script=bundle("report.js"))
