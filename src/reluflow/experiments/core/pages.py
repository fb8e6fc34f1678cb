"""The ledger of all that was reproduced, as ``REPRODUCTION.md`` and ``index.html``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ...report.style import STYLE
from .registry import IDS, PAPERS, experiment
from .store import code_version, page_of, path_of, save_text

_VERDICTS = ("reproduced", "deviates", "cannot be judged")
_MARKS = {"reproduced": "✓", "deviates": "✗", "cannot be judged": "?"}
_COLUMNS = ("claim", "expected", "measured", "verdict")


def write_pages(folder: Path) -> None:
    """Write both pages over everything the folder holds."""
    pages = [page for page in (page_of(folder, one) for one in IDS) if page is not None]
    save_text(folder / "REPRODUCTION.md", "\n".join(_markdown(folder, pages)) + "\n")
    save_text(folder / "index.html", "\n".join(_html(folder, pages)) + "\n")


def _counts(pages: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(e["verdict"] for page in pages for e in page["expectations"])


def _deviations(pages: Sequence[dict[str, Any]]) -> list[tuple[str, dict[str, str]]]:
    return [(page["id"], e) for page in pages for e in page["expectations"] if e["verdict"] == "deviates"]


def _stray(e: dict[str, str]) -> str:
    said = f"{e['claim']} Expected {e['expected']}, measured {e['measured']}"
    return f"{said}: {e['why']}" if e["why"] else f"{said}."


def _summary(pages: Sequence[dict[str, Any]]) -> list[str]:
    counts, kinds = _counts(pages), {page["quick"] for page in pages}
    verdicts = f"{counts['reproduced']} reproduced, {counts['deviates']} deviate"
    verdicts += f", {counts['cannot be judged']} cannot be judged"
    said = [f"{len(pages)} of {len(IDS)} experiments, {sum(counts.values())} expectations: {verdicts}."]
    if kinds == {True}:
        said.append("These are quick runs on small stand-ins; they say little about the papers.")
    shared = {(page["code"], repr(page["parameters"])): page["seconds"] for page in pages}
    said.append(f"All runs together took {_duration(sum(shared.values()))} of wall time, one after the other.")
    missing = [one for one in IDS if one not in {page["id"] for page in pages}]
    if missing:
        said.append(f"Not here: {', '.join(missing)}.")
    return said


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _footnotes(page: dict[str, Any]) -> list[str]:
    """Say how a result came about."""
    parameters = ", ".join(f"{name} = {value}" for name, value in page["parameters"].items())
    libraries = ", ".join(f"{name} {number}" for name, number in page["origin"]["libraries"].items())
    python = page["origin"]["machine"]["python"]
    made = f"Ran for {_duration(page['seconds'])} (reluflow {page['origin']['version']}, Python {python}, {libraries})."
    said = [f"Parameters: {parameters}.", made]
    if page["code"] != code_version(experiment(page["id"])):
        said.append("Computed by an earlier version of the code; judged and drawn by this one.")
    elif page["origin"].get("stamps"):
        said.append(_stamp(page["origin"]["stamps"][-1]))
    return said


def _stamp(stamp: dict[str, Any]) -> str:
    if stamp["how"] == "recomputed":
        return f"Computed again by this version of the code: relative difference {stamp['largest_difference']:.2g}."
    others = ", ".join(stamp["with"])
    return f"Computed by an earlier version of the code; this one, tried on {others}, gives the same."


def _markdown(folder: Path, pages: Sequence[dict[str, Any]]) -> Iterator[str]:
    quick = " --quick" if pages and all(page["quick"] for page in pages) else ""
    yield "# Reproduction"
    yield ""
    yield "Every figure and table of the four papers, made again by one command and judged by it:"
    yield ""
    yield f"    reluflow reproduce --all{quick} --out {folder}"
    yield ""
    yield from _summary(pages)
    yield ""
    yield "| experiment | " + " | ".join(_VERDICTS) + " | run |"
    yield "|---|---|---|---|---|"
    for page in pages:
        counts = _counts([page])
        cells = " | ".join(str(counts[verdict]) for verdict in _VERDICTS)
        name = f"[{page['id']}](#{page['id'].lower()}) {_cell(page['title'])}"
        yield f"| {name} | {cells} | {_duration(page['seconds'])} |"
    strays = _deviations(pages)
    if strays:
        yield ""
        yield "## What deviates"
        yield ""
        for name, e in strays:
            yield f"- [{name}](#{name.lower()}) {_stray(e)}"
    for paper, words in PAPERS.items():
        own = [page for page in pages if page["id"].split("-")[0] == paper]
        if own:
            yield ""
            yield f"## {paper}: {words}"
        for page in own:
            yield from _markdown_one(folder, page)


def _markdown_one(folder: Path, page: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"### {page['id']}"
    yield ""
    yield f"**{page['title']}.** {page['caption']}"
    yield ""
    if path_of(folder, page["id"], ".png").exists():
        yield f"![{page['id']}]({page['id']}.png)"
        yield ""
    yield "| " + " | ".join(_COLUMNS) + " |"
    yield "|---|---|---|---|"
    for e in page["expectations"]:
        because = f" ({_cell(e['why'])})" if e["why"] else ""
        verdict = f"{_MARKS[e['verdict']]} {e['verdict']}{because}"
        yield f"| {_cell(e['claim'])} | {_cell(e['expected'])} | {_cell(e['measured'])} | {verdict} |"
    if page["unstated"]:
        yield ""
        yield "Not stated in the paper, and chosen here:"
        yield ""
        for choice in page["unstated"]:
            yield f"- {choice['name']}: {choice['chosen']} ({choice['why']})"
    yield ""
    yield from _footnotes(page)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(folder: Path, pages: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Reproduction</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{STYLE}</style></head><body><h1>Reproduction</h1>"
    yield "<p>Every figure and table of the four papers, made again and judged by a program.</p>"
    yield f"<p>{escape(' '.join(_summary(pages)))}</p><nav>"
    for page in pages:
        worst = "deviates" if _counts([page])["deviates"] else "reproduced"
        yield f'<a class="{worst}" href="#{page["id"]}">{page["id"]}&nbsp;{_MARKS[worst]}</a>'
    yield "</nav>"
    strays = _deviations(pages)
    if strays:
        yield "<h2>What deviates</h2><ul>"
        for name, e in strays:
            yield f'<li><a href="#{name}">{name}</a> {escape(_stray(e))}</li>'
        yield "</ul>"
    for paper, words in PAPERS.items():
        own = [page for page in pages if page["id"].split("-")[0] == paper]
        if own:
            yield f"<h2>{paper}: {escape(words)}</h2>"
        for page in own:
            yield from _html_one(folder, page)
    yield "</body></html>"


def _html_one(folder: Path, page: dict[str, Any]) -> Iterator[str]:
    name = page["id"]
    yield f'<h3 id="{name}">{name}: {escape(page["title"])}</h3><p>{escape(page["caption"])}</p>'
    if path_of(folder, name, ".png").exists():
        yield f'<p><img src="{name}.png" alt="{escape(page["title"], quote=True)}" loading="lazy"></p>'
    yield "<table><tr>" + "".join(f"<th>{column}</th>" for column in _COLUMNS) + "</tr>"
    for e in page["expectations"]:
        because = f'<br><span class="why">{escape(e["why"])}</span>' if e["why"] else ""
        cells = "".join(f"<td>{escape(e[column])}</td>" for column in _COLUMNS[:3])
        mark = f"{_MARKS[e['verdict']]} {e['verdict']}"
        yield f'<tr>{cells}<td><span class="{e["verdict"].split()[0]}">{mark}</span>{because}</td></tr>'
    yield "</table>"
    if page["unstated"]:
        yield '<p class="note">Not stated in the paper, and chosen here:</p><ul class="note">'
        for choice in page["unstated"]:
            yield f"<li>{escape(choice['name'])}: {escape(choice['chosen'])} ({escape(choice['why'])})</li>"
        yield "</ul>"
    links = "".join(f' <a href="{name}{ending}">{ending[1:]}</a>' for ending in (".json", ".svg"))
    yield f'<p class="note">{escape(" ".join(_footnotes(page)))}{links}</p>'
