"""The page of benchmarks: docs/benchmarks.md and its pictures, from what is stored in docs/benchmarks.json."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import charts
from benchmarks.measure import modules

Cell = dict[str, Any]
# What people ask first comes first; a problem that is not named comes last.
_ORDER = ("precision", "late", "growth", "scales", "hard_margin", "limit", "explain", "early", "global_margin", "cells")

_HEAD = """# Benchmarks

Written by `make bench` from [benchmarks.json](benchmarks.json); no number here was typed in. Every solver ran on every
problem it can do, each cell in a process of its own, one thread, side by side with the others of its case. Seconds are
those of the processor, the least of a few rounds, compilation and tuning left out; memory is what the process took
beyond what it held before. A solver that gave no answer within its budget is listed as out of time: a miss is shown as
a miss.

{where}

{versions}

## Add a rival

One file, `benchmarks/solvers/NAME.py`, with a function named like the task, and `python -m benchmarks hard_margin`
holds it against the others; `benchmarks/measure.py` says what else there may be. This one is complete:

```python
{example}```

A problem is a file in `benchmarks/problems` with its cases and what the error of an answer is.
"""


def spell(setting: Any) -> str:
    """Write a setting short."""
    if setting is None:
        return ""
    if isinstance(setting, (list, tuple)):
        return " ".join(spell(one) for one in setting)
    return f"{setting:g}" if isinstance(setting, (int, float)) else str(setting)


def number(value: Any, digits: int = 3) -> str:
    """Write a number short, a text as it is."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return str(value) if isinstance(value, int) and abs(value) < 10**7 else f"{value:.{digits}g}"


def figures(cell: Cell) -> str:
    """Write what belongs to an answer in a line."""
    return "; ".join(f"{name} {number(value)}" for name, value in cell["figures"].items() if value != 0)


def promise(row: dict[str, Any]) -> str:
    """Write a target: what came out, what was promised."""
    came = "not measured" if row["value"] is None else f"{number(row['value'])}{row['unit']}"
    most = "at most" if row["bound"] == "<=" else "at least"
    return f"{came} ({most} {number(row['limit'])}{row['unit']}){'; ' + row['note'] if row['note'] else ''}"


def laws(cells: list[Cell]) -> list[str]:
    """Write the fitted exponents of the cost."""
    return [f"{who} ~ {size.replace(' ', '')}^{power:.2f}" for who, size, power in charts.exponents(cells)]


def write(document: dict[str, Any], folder: Path) -> None:
    """Draw the pictures and write the page."""
    pictures = folder / "benchmarks"
    pictures.mkdir(exist_ok=True)
    for old in pictures.glob("*.png"):
        old.unlink()
    example = (Path(__file__).parent / "solvers" / "daqp.py").read_text()
    parts = [_HEAD.format(where=_where(document), versions=_versions(document), example=example), *_targets(document)]
    place = {name: k for k, name in enumerate(_ORDER)}
    for name, problem in sorted(modules("problems").items(), key=lambda one: place.get(one[0], len(place))):
        cells = [cell for cell in document["cells"] if cell["problem"] == name]
        if not cells:
            continue
        parts.append(f"## {problem.TITLE}\n\n{(problem.__doc__ or '').strip()}\n")
        for kind in getattr(problem, "PICTURES", ()):
            drawn = charts.DRAWN[kind](cells, pictures / f"{name}-{kind}.png")
            if drawn:
                parts.append(f"![{drawn}](benchmarks/{name}-{kind}.png)\n\n*{drawn}*\n")
            if drawn and kind == "growth":
                parts.append(f"Fitted: {', '.join(laws(cells))}.\n")
        parts.append(_table(cells))
    (folder / "benchmarks.md").write_text("\n".join(parts))


def _where(document: dict[str, Any]) -> str:
    here, cells = document["machine"], document["cells"]
    loads = [cell["load"] for cell in cells if cell["load"] is not None]
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(cell["when"])) for cell in cells})
    busy = f"load average {min(loads):.1f} to {max(loads):.1f}" if loads else "load not known"
    text = f"Measured on {' and '.join((days[0], days[-1])[: 1 + (len(days) > 1)])}: {here['processor']}, "
    text += f"{here['cores']} cores, {here['memory GB']} GB, {here['system']}; {busy} while it ran"
    if loads and max(loads) > here["cores"]:
        text += (
            " (the machine had other work: seconds on the wall mean little, those of the processor are a little long)"
        )
    if document.get("stale"):
        text += f". {document['stale']} of {len(cells)} cells were measured before the last change of the code"
    shares = [cell["share"] for cell in cells]
    if min(shares) < 1:
        text += (
            f". Budgets were cut to {min(shares):.0%} for some cells (a first look; `make bench` gives them in full)"
        )
    return text + "."


def _versions(document: dict[str, Any]) -> str:
    return "Versions: " + ", ".join(f"{name} {which}" for name, which in document["versions"].items()) + "."


def _targets(document: dict[str, Any]) -> Iterator[str]:
    rows = document["targets"]
    met = sum(row["met"] for row in rows)
    yield f"## Targets\n\n{met} of {len(rows)} are met; those that are missed stand first.\n"
    yield "| | target | measured | promised | |\n|---|---|---:|---:|---|"
    for row in sorted(rows, key=lambda row: row["met"]):
        came = "not measured" if row["value"] is None else f"{number(row['value'])}{row['unit']}"
        bound = f"{'≤' if row['bound'] == '<=' else '≥'} {number(row['limit'])}{row['unit']}"
        what = row["what"].replace("|", r"\|")  # a^2 - |w|^2 in a cell
        yield f"| {'met' if row['met'] else '**MISSED**'} | {what} | {came} | {bound} | {row['note']} |"
    yield ""


def _table(cells: list[Cell]) -> str:
    """Write every cell; what is empty in all of them is left out."""
    labels = charts.labels()
    heads = ["case", "solver", "setting", "CPU s", "error", "memory MB", "figures"]
    rows = []
    for cell in cells:
        done = cell["status"] == "done"
        off = "" if cell["error"] is None or math.isnan(cell["error"]) else f"{cell['error']:.1e}"
        rows.append(
            [
                cell["case"],
                labels[cell["solver"]],
                spell(cell["setting"]),
                number(cell["cpu"]) if done else cell["status"],
                off,
                "" if cell["memory"] is None else f"{cell['memory']:.0f}",
                figures(cell) if done else cell["note"],
            ]
        )
    used = [k for k in range(len(heads)) if any(row[k] for row in rows)]
    lines = [
        [heads[k] for k in used],
        ["---"] * len(used),
        *([row[k].replace("|", "\\|") for k in used] for row in rows),
    ]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"<details><summary>All figures</summary>\n\n{text}\n\n</details>\n"
