"""What a page says of every claim, of the limit, of the data and of how it was made, as plain documents.

A document of a part is a title, paragraphs, and tables; the page only lays them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import summarize
from ...problem.plain import plain
from ...problem.words import count, moment, upper
from ...theory import PAPERS, Condition, Finding, Observation, Prediction, citation
from ...theory.compare import Verdict
from ...theory.naming import theorems
from ..charts import margin_levels
from ..explanation import versions
from ..text import decisive, setting, theorems_first

if TYPE_CHECKING:
    from ..explanation import Explanation

_MOST_ROWS = 30
_SAMPLES = re.compile(r"\bsamples? [\[(]?(\d+(?:(?:, | and )\d+)*)")
_WORDS = {True: "holds", False: "fails", None: "undecided"}
_SEEN = {True: "seen", False: "not seen", None: "undecided"}


def words(found: Explanation) -> dict[str, Any]:
    """Say what is learned and why, whether it is as promised, and what the problem is."""
    summary = found.summary
    doubtful = summary.missed or not summary.seen or found.limit is None
    return {
        "headline": list(found.headline),
        "mood": "bad" if summary.contradicted else "doubt" if doubtful else "good",
        "name": found.problem.data.name or "data",
        "setting": f"{'; '.join(setting(found.problem))}.",
        "verdict": upper(found.sentence),
        "cards": [
            card("predicted and seen", theorems_first(summary.seen), 8),
            card("predicted but not seen", summary.missed, _MOST_ROWS),
            card("seen though no theorem covers it", summary.uncovered, _MOST_ROWS),
            card("undecided", summary.undecided, _MOST_ROWS),
        ],
        "papers": "; ".join(f"{key}: {name}" for key, name in PAPERS.items()),
    }


def card(title: str, verdicts: Sequence[Verdict], most: int) -> dict[str, Any]:
    """List verdicts of one kind, the first of them with their words."""
    missed = title.endswith("not seen")
    items = []
    for one in verdicts[:most]:
        short = missed or not one.claim or len(one.text) < 190
        text = one.text if short else one.text[:186].rpartition(" ")[0] + " ..."
        if missed and one.discrepancy is not None:
            text += f" Smallest discrepancy {one.discrepancy:.3g} (relative)."
        needs = f"Inconsistent, but it rests on: {', '.join(one.needs)}." if missed and one.needs else ""
        items.append({"claim": one.claim, "text": text, "needs": needs})
    more = ", ".join(v.claim or v.text for v in verdicts[most:])
    return {"title": title, "count": len(verdicts), "items": items, "more": more}


# -- claims ----------------------------------------------------------------------------------------------


def claims(found: Explanation) -> list[dict[str, Any]]:
    """Describe every claim: does it apply, what does it promise, was it seen."""
    told = {p.claim: p for p in found.predictions}
    seen: dict[str, list[Observation]] = {}
    for one in found.observations:
        seen.setdefault(one.claim, []).append(one)
    return [_claim(f, told.get(f.claim), seen.get(f.claim, [])) for f in found.findings]


def _claim(finding: Finding, told: Prediction | None, seen: list[Observation]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "claim": finding.claim,
        "main": finding.claim in theorems(),
        "applies": finding.applies,
        "outcome": _result(seen),
        "text": decisive(finding) if finding.failing else finding.statement,
        "statement": finding.statement,
        "conditions": [_condition(c) for c in finding.conditions],
        "seen": [[_SEEN[o.consistent], o.text, value(o.measured), value(o.predicted)] for o in seen],
    }
    if told is not None:
        document["told"] = {
            "text": told.text if told.text != finding.statement else "",
            "bounds": [[name, f"{bound:.10g}"] for name, bound in told.bounds.items()],
            "needs": list(told.needs),
        }
    return document


def _condition(one: Condition) -> dict[str, Any]:
    word = "assumed" if one.assumed else _WORDS[one.holds]
    texts = [word if one.decides else f"({word})", one.evidence, one.name, one.why, value(one.value)]
    return {"cells": [*texts, value(one.witness)], "samples": samples_named(one.why)}


def samples_named(text: str) -> list[int]:
    """Return the samples that a text names.

    >>> samples_named("samples 0 and 3 have equal labels; their cosine is -0.9, not > 0.")
    [0, 3]
    >>> samples_named("the smallest slack is 0.598 (sample 1)."), samples_named("2 positive samples.")
    ([1], [])
    """
    return [int(number) for part in _SAMPLES.findall(text) for number in re.findall(r"\d+", part)]


def _result(seen: list[Observation]) -> str:
    verdicts = [one.consistent for one in seen]
    if False in verdicts:
        return "contradicted" if any(one.contradicts for one in seen) else "not seen"
    return "seen" if True in verdicts else "undecided" if seen else ""


def value(given: Any) -> str:
    """Write a value shortly."""
    if given is None:
        return ""
    if isinstance(given, (bool, str)):
        return str(given)
    if isinstance(given, (float, np.floating)):
        return f"{given:.6g}"
    if isinstance(given, (np.ndarray, list, tuple)):
        items = [value(item) for item in list(given)[:6]]
        return f"({', '.join(items)}{', ...' if len(given) > 6 else ''})"
    text = str(plain(given))
    return text if len(text) <= 80 else text[:77] + "..."


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> dict[str, Any]:
    return {"columns": list(columns), "rows": [[str(cell) for cell in row] for row in rows]}


def _part(title: str, *content: Any, more: str = "") -> dict[str, Any]:
    return {"title": title, "content": [item for item in content if item], "more": more}


# -- run, limit, data, origin ----------------------------------------------------------------------------


def run_part(found: Explanation) -> dict[str, Any] | None:
    """Say which phases the run went through and where it ended."""
    run = found.trajectory
    if run is None:
        return None
    rows = [(f.name, moment(f.log_start), moment(f.log_end), f.steps) for f in run.phases]
    kinds, counts = np.unique(run.events["kind"], return_counts=True)
    events = ", ".join(f"{n} {kind}" for kind, n in zip(kinds, counts, strict=True)) or "none"
    many = [*rows[:4], ("...", "", "", ""), *rows[-4:]] if len(rows) > 9 else rows
    return _part("The computation", _table(("phase", "from", "to", "steps"), many), f"Events: {events}.")


def limit_part(found: Explanation) -> dict[str, Any]:
    """Say what the limit is, and what supports it."""
    end = found.limit
    if end is None:
        return _part("The limit and its certificate", "No limit was confirmed.", *found.troubles)
    content: list[Any] = [f"{upper(end.reason)}."]
    margins = [(one.name, f"{one.value:.10g}") for one in margin_levels(found.predictions, end)]
    content += [_table(("normalised margin", ""), margins)] if margins else []
    living = sorted(end.living, key=lambda g: -g.share)
    groups = [
        ("+" if g.sign > 0 else "−" if g.sign < 0 else "±", len(g.neurons), f"{g.share:.6g}", value(g.direction))
        for g in living[:6]
    ]
    content += [_table(("a", "neurons", "share of |θ|²", "direction in the limit"), groups)] if groups else []
    content += [f"and {count(len(living) - 6, 'smaller group')}"] if len(living) > 6 else []
    rows = [(_WORDS[e.holds], e.name, value(e.value), e.text) for e in end.evidence]
    content += [_table(("verdict", "evidence", "value", "in words"), rows)] if rows else []
    if end.kkt is not None:
        kkt, balance = end.kkt, "" if end.kkt.balance is None else f", balance {end.kkt.balance:.2e}"
        content.append(f"KKT conditions of the margin problem: residual {kkt.residual:.2e}{balance}. Multipliers:")
        order = [int(i) for i in np.argsort(-kkt.multipliers) if kkt.multipliers[i] > 0]
        supports = [(i, f"{kkt.multipliers[i]:.10g}") for i in order[:_MOST_ROWS]]
        content.append(_table(("sample", "multiplier"), supports))
        content += [f"and {count(len(order) - _MOST_ROWS, 'smaller one')}"] if len(order) > _MOST_ROWS else []
    return _part("The limit and its certificate", *content)


def data_part(found: Explanation) -> dict[str, Any]:
    """Describe the data."""
    data, facts = found.problem.data, summarize(found.problem.data)
    rows: list[tuple[str, str]] = [
        ("points", f"{data.n} ({facts.positives} positive, {facts.negatives} negative), {facts.duplicates} repeated"),
        ("norms", f"{facts.norm_min:.6g} to {facts.norm_max:.6g}"),
    ]
    if facts.mu is not None:
        strict = "strictly orthogonally separable" if facts.mu > 0 else "not strictly orthogonally separable"
        rows.append(("smallest cosine of signed points μ", f"{facts.mu:.6g}: {strict}"))
    shown = [
        (i, "+1" if data.y[i] > 0 else "−1", ", ".join(f"{v:.6g}" for v in data.X[i][:8]) + (", ..." * (data.d > 8)))
        for i in range(min(data.n, 100))
    ]
    more = f"The first {len(shown)} of {data.n} points." if data.n > len(shown) else ""
    return _part("The data", _table(("", ""), rows), _table(("sample", "label", "x"), shown), more=more)


def origin_part(found: Explanation) -> dict[str, Any]:
    """Say how to make it again, and what to cite."""
    used = [p.claim for p in found.predictions] + [o.claim for o in found.observations]
    numbers = ", ".join(f"{name} {number}" for name, number in versions().items())
    settings = ", ".join(f"{name} = {number:g}" for name, number in found.settings.items())
    made = {"code": found.command or "reluflow.explain(problem)"}
    return _part(
        "How to make this again",
        made,
        f"Versions: {numbers}. Settings: {settings}. Fingerprint of the problem: {found.problem.fingerprint()[:16]}.",
        "References",
        {"code": citation(used)},
    )
