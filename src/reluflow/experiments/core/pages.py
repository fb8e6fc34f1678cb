"""The ledger of all that was reproduced, as ``REPRODUCTION.md`` and ``index.html``.

Both are made of what the files ``ID.json`` and ``run.json`` of a folder say and of nothing else, so that they can be
made again and compared. Whether a result is that of the present code is said when they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ...report.style import STYLE
from .registry import IDS, PAPERS, experiment
from .store import code_version, doctored, page_of, path_of, read_run, save_text

_VERDICTS = ("reproduced", "deviates", "cannot be judged")
_MARKS = {"reproduced": "✓", "deviates": "✗", "cannot be judged": "?"}
_COLUMNS = ("claim", "expected", "measured", "verdict")
#: Whose an expectation is, in the order in which they are counted.
BASES = {
    "reported": "reported by the papers",
    "implied": "implied by their theory, and not reported",
    "ours": "ours",
}
_TAGS = {"reported": "", "implied": "theory", "ours": "ours"}
OUTDATED = "Computed by an earlier version of the code; judged and drawn by this one."
_ORIGINALS = (
    "The originals were compared by their text, captions and tables: where a paper shows an outcome only as a picture "
    "or says it only in words, the cut-off that stands for it is ours."
)


def write_pages(folder: Path) -> None:
    """Write both pages over everything the folder holds."""
    for name, text in texts(folder).items():
        save_text(folder / name, text)


def texts(folder: Path, outdated: Collection[str] | None = None) -> dict[str, str]:
    """Return both pages by the names of their files.

    Parameters
    ----------
    folder : Path
    outdated : collection of str, optional
        Experiments whose code has changed since; by default the present code is asked.
    """
    pages = [page for page in (page_of(folder, one) for one in IDS) if page is not None]
    for page in pages:
        if outdated is None:
            page["outdated"] = page["code"] != code_version(experiment(page["id"]))
        else:
            page["outdated"] = page["id"] in outdated
        page["apart"] = _apart(page, pages)
    wrong = [one for one in IDS if doctored(folder, one)]
    return {
        "REPRODUCTION.md": "\n".join(_markdown(folder, pages, wrong)) + "\n",
        "index.html": "\n".join(_html(folder, pages, wrong)) + "\n",
    }


def _apart(page: dict[str, Any], pages: Sequence[dict[str, Any]]) -> list[str]:
    """Return the experiments that are drawn from the same run and hold other numbers."""
    run = experiment(page["id"]).run
    same = [other for other in pages if experiment(other["id"]).run is run]
    return [
        other["id"] for other in same if other["parameters"] == page["parameters"] and other["digest"] != page["digest"]
    ]


# -- what is said on both --------------------------------------------------------------------------------


def _counts(pages: Sequence[dict[str, Any]], basis: str | None = None) -> Counter[str]:
    every = (e for page in pages for e in page["expectations"])
    return Counter(e["verdict"] for e in every if basis is None or e["basis"] == basis)


def _deviations(pages: Sequence[dict[str, Any]], ours: bool) -> list[tuple[str, dict[str, str]]]:
    return [
        (page["id"], e)
        for page in pages
        for e in page["expectations"]
        if e["verdict"] == "deviates" and (e["basis"] == "ours") == ours
    ]


def _stray(e: dict[str, str]) -> str:
    said = f"{e['claim'].removesuffix('.')}. Expected {e['expected']}, measured {e['measured']}"
    return f"{said}: {e['why']}" if e["why"] else f"{said}."


def _headline(pages: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the rows of the table of counts: whose, how many, and the verdicts."""
    rows = []
    for basis, words in BASES.items():
        counts = _counts(pages, basis)
        rows.append((words, str(sum(counts.values())), *(str(counts[verdict]) for verdict in _VERDICTS)))
    return rows


def _one_go(folder: Path, pages: Sequence[dict[str, Any]]) -> list[str]:
    """Say which results were made in one uninterrupted run, how long it took, and on what."""
    run = read_run(folder)
    there = [] if run is None else [page for page in pages if run["digests"].get(page["id"]) == page["digest"]]
    if run is None or not there:
        return []
    took = f"{_duration(run['seconds'])} on {run['cores']} cores, {run['jobs']} at a time"
    return [f"{len(there)} of them were made in one go, which took {took}."]


def _summary(folder: Path, pages: Sequence[dict[str, Any]], wrong: Sequence[str]) -> list[str]:
    drawn = sum(page["illustration"] for page in pages)
    said = [f"{len(pages)} of {len(IDS)} experiments, {drawn} of them illustrations of an idea made from real runs."]
    said.append(_ORIGINALS)
    if {page["quick"] for page in pages} == {True}:
        said.append("These are quick runs on small stand-ins; they say little about the papers.")
    shared = {(page["code"], repr(page["parameters"])): page["seconds"] for page in pages}
    said.append(f"All runs together took {_duration(sum(shared.values()))} of wall time, one after the other.")
    said += _one_go(folder, pages)
    missing = [one for one in IDS if one not in {page["id"] for page in pages} | set(wrong)]
    if missing:
        said.append(f"Not here: {', '.join(missing)}.")
    if wrong:
        said.append(f"Left out, because their numbers are not those that were computed: {', '.join(wrong)}.")
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
    machine = page["origin"]["machine"]
    where = f"reluflow {page['origin']['version']}, Python {machine['python']}, {libraries}"
    said = [f"Parameters: {parameters}.", f"Ran for {_duration(page['seconds'])} ({where})."]
    said.append(f"Digest of the numbers: {page['digest']}.")
    if page["apart"]:
        said.append(f"They are not those of {', '.join(page['apart'])}, which should be drawn from the same run.")
    if page["outdated"]:
        said.append(OUTDATED)
    elif page["origin"].get("stamps"):
        said.append(_stamp(page["origin"]["stamps"][-1]))
    return said


def _stamp(stamp: dict[str, Any]) -> str:
    if stamp["how"] == "recomputed":
        return f"Computed again by this version of the code: relative difference {stamp['largest_difference']:.2g}."
    others = ", ".join(stamp["with"])
    return f"Computed by an earlier version of the code; this one, tried on {others}, gives the same."


def _title(page: dict[str, Any]) -> str:
    return f"{page['title']} (illustration)" if page["illustration"] else str(page["title"])


_LISTS = {
    False: ("What deviates", "Reported by a paper, or implied by its theory, and not what was found:"),
    True: ("What we expected and did not find", "Ours; no paper says so:"),
}


# -- markdown --------------------------------------------------------------------------------------------


def _markdown(folder: Path, pages: Sequence[dict[str, Any]], wrong: Sequence[str]) -> Iterator[str]:
    quick = " --quick" if pages and all(page["quick"] for page in pages) else ""
    yield "# Reproduction"
    yield ""
    yield "Every figure and table of the four papers, made again by one command and judged by it:"
    yield ""
    yield f"    reluflow reproduce --all{quick}"
    yield ""
    yield f"| expectations | all | {' | '.join(_VERDICTS)} |"
    yield "|---|---|---|---|---|"
    for row in _headline(pages):
        yield f"| {' | '.join(row)} |"
    yield ""
    yield from _summary(folder, pages, wrong)
    yield ""
    yield "| experiment | " + " | ".join(_VERDICTS) + " | run |"
    yield "|---|---|---|---|---|"
    for page in pages:
        counts = _counts([page])
        cells = " | ".join(str(counts[verdict]) for verdict in _VERDICTS)
        name = f"[{page['id']}](#{page['id'].lower()}) {_cell(_title(page))}"
        yield f"| {name} | {cells} | {_duration(page['seconds'])} |"
    for ours, (heading, words) in _LISTS.items():
        strays = _deviations(pages, ours)
        if strays:
            yield from ("", f"## {heading}", "", words, "")
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
    yield f"**{_title(page)}.** {page['caption']}"
    yield ""
    if path_of(folder, page["id"], ".png").exists():
        yield f"![{page['id']}]({page['id']}.png)"
        yield ""
    yield "| " + " | ".join(_COLUMNS) + " |"
    yield "|---|---|---|---|"
    for e in page["expectations"]:
        because = f" ({_cell(e['why'])})" if e["why"] else ""
        tag = f"*{_TAGS[e['basis']]}:* " if _TAGS[e["basis"]] else ""
        verdict = f"{_MARKS[e['verdict']]} {e['verdict']}{because}"
        yield f"| {tag}{_cell(e['claim'])} | {_cell(e['expected'])} | {_cell(e['measured'])} | {verdict} |"
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


# -- html ------------------------------------------------------------------------------------------------


def _html(folder: Path, pages: Sequence[dict[str, Any]], wrong: Sequence[str]) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Reproduction</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>{STYLE}</style></head><body><h1>Reproduction</h1>"
    yield "<p>Every figure and table of the four papers, made again and judged by a program.</p>"
    heads = "".join(f"<th>{head}</th>" for head in ("expectations", "all", *_VERDICTS))
    yield f'<table class="counts"><tr>{heads}</tr>'
    for row in _headline(pages):
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield f"</table><p>{escape(' '.join(_summary(folder, pages, wrong)))}</p><nav>"
    for page in pages:
        worst = "deviates" if _deviations([page], ours=False) else "reproduced"
        yield f'<a class="{worst}" href="#{page["id"]}">{page["id"]}&nbsp;{_MARKS[worst]}</a>'
    yield "</nav>"
    for ours, (heading, words) in _LISTS.items():
        strays = _deviations(pages, ours)
        if strays:
            yield f"<h2>{heading}</h2><p>{words}</p><ul>"
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
    yield f'<h3 id="{name}">{name}: {escape(_title(page))}</h3><p>{escape(page["caption"])}</p>'
    if path_of(folder, name, ".png").exists():
        picture = f'<img src="{name}.png" alt="{escape(page["title"], quote=True)}" loading="lazy">'
        yield f'<p><a href="{name}.png">{picture}</a></p>'
    yield '<table class="claims"><tr>' + "".join(f"<th>{column}</th>" for column in _COLUMNS) + "</tr>"
    for e in page["expectations"]:
        because = f'<br><span class="why">{escape(e["why"])}</span>' if e["why"] else ""
        tag = f'<span class="basis">{_TAGS[e["basis"]]}:</span> ' if _TAGS[e["basis"]] else ""
        cells = f"<td>{tag}{escape(e['claim'])}</td>"
        cells += "".join(f'<td data-is="{column}">{escape(e[column])}</td>' for column in _COLUMNS[1:3])
        mark = f"{_MARKS[e['verdict']]} {e['verdict']}"
        yield f'<tr>{cells}<td><span class="{e["verdict"].split()[0]}">{mark}</span>{because}</td></tr>'
    yield "</table>"
    if page["unstated"]:
        yield '<p class="note">Not stated in the paper, and chosen here:</p><ul class="note">'
        for choice in page["unstated"]:
            yield f"<li>{escape(choice['name'])}: {escape(choice['chosen'])} ({escape(choice['why'])})</li>"
        yield "</ul>"
    yield f'<p class="note">{escape(" ".join(_footnotes(page)))} <a href="{name}.json">All numbers</a></p>'
