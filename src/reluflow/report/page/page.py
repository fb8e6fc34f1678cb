"""An explanation as one page that needs nothing but a browser."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import summarize
from ...problem.plain import plain
from ...problem.words import count, moment, upper
from ...theory import PAPERS, Condition, Finding, Observation, Prediction, citation
from ...theory.compare import Verdict
from ..charts import margin_levels
from ..explanation import versions
from ..text import setting, theorems_first
from .curves import ends, over_time, phases_key
from .plane import movie, regions

if TYPE_CHECKING:
    from ..explanation import Explanation

_MOST_ROWS = 30


@cache
def _template() -> Template:
    return Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


def page(found: Explanation) -> str:
    """Write the page."""
    scene = movie(found)
    # "</" would end the script, whatever string it stands in
    script = json.dumps(plain(scene), separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    parts = [_head(found), _outcome(found)]
    parts += [_moving(found, scene)] if scene else []
    parts += [_curves(found), _decisions(found), _claims(found), _certificate(found), _data(found), _origin(found)]
    title = f"{found.problem.data.name or 'data'}: explained by reluflow"
    return _template().substitute(title=escape(title), body="\n".join(filter(None, parts)), movie=script)


def _head(found: Explanation) -> str:
    summary, (what, why) = found.summary, found.headline
    doubtful = summary.missed or not summary.seen or found.limit is None
    mood = " bad" if summary.contradicted else " doubt" if doubtful else ""
    title, *words = setting(found.problem)
    return (
        f'<div class="sentence{mood}"><p><b>{escape(what)}</b></p><p>{escape(why)}</p></div>'
        f"<h1>{escape(found.problem.data.name or 'data')}</h1><p>{escape('; '.join([title, *words]))}.</p>"
    )


# -- the outcome -----------------------------------------------------------------------------------------


def _outcome(found: Explanation) -> str:
    summary = found.summary
    order = theorems_first(summary.seen)
    cards = (
        ("predicted and seen", order, 8),
        ("predicted but not seen", summary.missed, _MOST_ROWS),
        ("seen though no theorem covers it", summary.uncovered, _MOST_ROWS),
        ("undecided", summary.undecided, _MOST_ROWS),
    )
    return (
        f"<h2>Verdict</h2><p>{escape(upper(found.sentence))}</p>"
        f'<div class="cards">{"".join(_card(title, items, most) for title, items, most in cards)}</div>'
    )


def _card(title: str, verdicts: Sequence[Verdict], most: int) -> str:
    rows = [_item(one, title.endswith("not seen")) for one in verdicts[:most]]
    more = verdicts[most:]
    names = f'<p class="soft">and {escape(", ".join(v.claim or v.text for v in more))}</p>' if more else ""
    body = f"<ul>{''.join(rows)}</ul>{names}" if rows else '<p class="soft">nothing</p>'
    return f'<section class="card"><h3><b>{len(verdicts)}</b> {title}</h3>{body}</section>'


def _item(one: Verdict, missed: bool) -> str:
    name = f"<b>{escape(one.claim)}</b> " if one.claim else ""
    text = one.text if missed or not one.claim or len(one.text) < 190 else one.text[:186].rpartition(" ")[0] + " ..."
    needs = ""
    if missed and one.needs:
        needs = f' <span class="needs">Inconsistent, but it rests on: {escape(", ".join(one.needs))}.</span>'
    if missed and one.discrepancy is not None:
        needs = f" Smallest discrepancy {one.discrepancy:.3g} (relative).{needs}"
    return f"<li>{name}{escape(text)}{needs}</li>"


# -- pictures --------------------------------------------------------------------------------------------


def _moving(found: Explanation, scene: dict[str, Any]) -> str:
    drawn, all_ = scene["drawn"]
    some = f" {drawn} of {all_} neurons are drawn." if drawn < all_ else ""
    kinds = {ray[0] for ray in scene["rays"]}
    rays = []
    if "predicted" in kinds:
        rays.append("dashed green: directions that theory predicts")
    if "limit" in kinds:
        rays.append("solid lines: directions of the limit that was found")
    run = found.trajectory
    assert run is not None
    return (
        "<h2>Neurons over time</h2>"
        '<div class="movie"><div><canvas id="movie" width="560" height="600" role="img" aria-label="neurons over time">'
        '</canvas><div class="controls"><button id="play" type="button">Play</button>'
        '<input id="slider" type="range" min="0" max="1" step="0.001" value="1" aria-label="time"></div>'
        '<p id="readout"></p></div><div>'
        f"<p>In {escape(scene['words'])}. A dot is a neuron: its place on the disc is its direction, and it moves "
        "outward as its norm grows (logarithmically). Blue: output weight a &gt; 0, orange: a &lt; 0. "
        f"+ and − are the samples, scaled to the disc.{some}</p>"
        f"<p>{upper('; '.join(rays))}{'.' if rays else ''}</p>"
        "<p>The bar is time, on the axis of the charts below; its colours are the phases of the computation, the ticks "
        f"are the moments at which a neuron changes sides with respect to a sample ({run.events.size} in all).</p>"
        f"{_phases(found)}{_ending(found)}</div></div>"
    )


def _phases(found: Explanation) -> str:
    assert found.trajectory is not None
    run = found.trajectory
    rows = [(f.name, moment(f.log_start), moment(f.log_end), f.steps) for f in run.phases]
    kinds, counts = np.unique(run.events["kind"], return_counts=True)
    events = ", ".join(f"{n} {kind}" for kind, n in zip(kinds, counts, strict=True)) or "none"
    many = [*rows[:4], ("...", "", "", ""), *rows[-4:]] if len(rows) > 9 else rows
    return _table(("phase", "from", "to", "steps"), many) + f"<p>Events: {escape(events)}.</p>"


def _curves(found: Explanation) -> str:
    charts = over_time(found) + ends(found)
    if not charts or found.trajectory is None:
        return ""
    return f'<h2>The run</h2>{phases_key(found.trajectory)}<div class="charts">{"".join(charts)}</div>'


def _decisions(found: Explanation) -> str:
    panels = regions(found)
    if not panels:
        return ""
    words = "Blue: f &gt; 0, orange: f &lt; 0, white: f = 0. Without a bias these regions are cones."
    return f'<h2>Who decides what</h2><p class="soft">{words}</p><div class="discs">{"".join(panels)}</div>'


# -- claims ----------------------------------------------------------------------------------------------


def _claims(found: Explanation) -> str:
    told = {p.claim: p for p in found.predictions}
    seen: dict[str, list[Observation]] = {}
    for one in found.observations:
        seen.setdefault(one.claim, []).append(one)
    rows = "".join(_claim(f, told.get(f.claim), seen.get(f.claim, [])) for f in found.findings)
    filters = (
        ("all", "all"),
        ("apply", "apply"),
        ("not", "do not apply"),
        ("seen", "seen"),
        ("missed", "not seen"),
        ("open", "undecided"),
    )
    buttons = "".join(
        f'<button type="button" data-show="{key}"{" class=on" if key == "all" else ""}>{words}</button>'
        for key, words in filters
    )
    papers = "; ".join(f"{key}: {name}" for key, name in PAPERS.items())
    return (
        f'<h2>Every statement</h2><p class="soft">{papers}. Open a line for its conditions, witnesses, constants and '
        f'observations.</p><div class="filters">{buttons}</div>{rows}'
    )


_APPLIES = {True: ("applies", "yes"), False: ("no", "no"), None: ("undecided", "maybe")}


def _claim(finding: Finding, told: Prediction | None, seen: list[Observation]) -> str:
    word, mark = _APPLIES[finding.applies]
    tags = {True: ["apply"], False: ["not"], None: ["open"]}[finding.applies]
    outcome, style = _result(seen)
    tags += {"seen": ["seen"], "not seen": ["missed"], "undecided": ["open"]}.get(outcome, [])
    text = f"{finding.failing[0].name}: {finding.failing[0].why}" if finding.failing else finding.statement
    details = [f"<p>{escape(finding.statement)}</p>", _conditions(finding.conditions)]
    if told is not None:
        details.append(_prediction(told, finding.statement))
    if seen:
        details.append(_observed(seen))
    return (
        f'<details class="claim" data-is="{" ".join(tags)}"><summary><span class="mark {mark}">{word}</span>'
        f'<span class="id">{escape(finding.claim)}</span><span class="mark {style}">{outcome}</span>'
        f"<span>{escape(text)}</span></summary><div>{''.join(details)}</div></details>"
    )


def _result(seen: list[Observation]) -> tuple[str, str]:
    verdicts = [one.consistent for one in seen]
    if False in verdicts:
        sure = any(one.contradicts for one in seen)
        return "not seen", "bad" if sure else "maybe"
    if True in verdicts:
        return "seen", "yes"
    return ("undecided", "maybe") if seen else ("", "no")


def _conditions(conditions: Iterable[Condition]) -> str:
    rows = []
    for c in conditions:
        word = "assumed" if c.assumed else {True: "holds", False: "fails", None: "undecided"}[c.holds]
        rows.append((word if c.decides else f"({word})", c.evidence, c.name, c.why, _value(c.value), _value(c.witness)))
    return _table(("verdict", "evidence", "condition", "in words", "value", "witness"), rows)


def _prediction(told: Prediction, statement: str) -> str:
    rows = [(name, f"{value:.10g}") for name, value in told.bounds.items()]
    needs = f"<p>Assuming: {escape(', '.join(told.needs))}.</p>" if told.needs else ""
    text = f"<p><b>Predicted:</b> {escape(told.text)}</p>" if told.text != statement else "<p><b>Constants:</b></p>"
    return f"{text}{_table(('constant', 'value'), rows) if rows else ''}{needs}"


def _observed(seen: list[Observation]) -> str:
    words = {True: "seen", False: "not seen", None: "undecided"}
    rows = [(words[o.consistent], o.text, _value(o.measured), _value(o.predicted)) for o in seen]
    return "<p><b>Observed:</b></p>" + _table(("verdict", "in words", "measured", "predicted"), rows)


def _value(value: Any) -> str:
    """Write a value shortly."""
    if value is None:
        return ""
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (np.ndarray, list, tuple)):
        items = [_value(item) for item in list(value)[:6]]
        return f"({', '.join(items)}{', ...' if len(value) > 6 else ''})"
    text = str(plain(value))
    return text if len(text) <= 80 else text[:77] + "..."


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# -- certificate, data, origin ---------------------------------------------------------------------------


def _certificate(found: Explanation) -> str:
    end = found.limit
    if end is None:
        reasons = "".join(f"<p>{escape(text)}</p>" for text in found.troubles)
        return f"<h2>The limit</h2><p>No limit was confirmed.</p>{reasons}"
    words = {True: "holds", False: "fails", None: "undecided"}
    rows = [(words[e.holds], e.name, _value(e.value), e.text) for e in end.evidence]
    parts = [f"<h2>The limit and its certificate</h2><p>{escape(upper(end.reason))}.</p>"]
    parts.append(_table(("verdict", "evidence", "value", "in words"), rows) if rows else "")
    if end.kkt is not None:
        kkt, balance = end.kkt, "" if end.kkt.balance is None else f", balance {end.kkt.balance:.2e}"
        parts.append(f"<p>KKT conditions of the margin problem: residual {kkt.residual:.2e}{balance}. Multipliers:</p>")
        order = [int(i) for i in np.argsort(-kkt.multipliers) if kkt.multipliers[i] > 0]
        supports = [(i, f"{kkt.multipliers[i]:.10g}") for i in order[:_MOST_ROWS]]
        parts.append(_table(("sample", "multiplier"), supports))
        if len(order) > _MOST_ROWS:
            parts.append(f'<p class="soft">and {count(len(order) - _MOST_ROWS, "smaller one")}</p>')
    return "".join(parts)


def _ending(found: Explanation) -> str:
    """Put the predicted limit and the one that was found side by side."""
    end = found.limit
    if end is None:
        return ""
    table = [(one.name, f"{one.value:.10g}") for one in margin_levels(found.predictions, end)]
    living = sorted(end.living, key=lambda g: -g.share)
    groups = [
        ("+" if g.sign > 0 else "−" if g.sign < 0 else "±", len(g.neurons), f"{g.share:.6g}", _value(g.direction))
        for g in living[:6]
    ]
    more = f'<p class="soft">and {count(len(living) - 6, "smaller group")}</p>' if len(living) > 6 else ""
    parts = [_table(("normalised margin", ""), table)] if table else []
    if groups:
        parts.append(_table(("a", "neurons", "share of |θ|²", "direction in the limit"), groups) + more)
    return "".join(parts)


def _data(found: Explanation) -> str:
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
    more = f'<p class="soft">the first {len(shown)} of {data.n}</p>' if data.n > len(shown) else ""
    listing = f"<details><summary>The points</summary>{_table(('sample', 'label', 'x'), shown)}{more}</details>"
    return f"<h2>The data</h2>{_table(('', ''), rows)}{listing}"


def _origin(found: Explanation) -> str:
    used = [p.claim for p in found.predictions] + [o.claim for o in found.observations]
    command = f"<p>Made by</p><pre>{escape(found.command)}</pre>" if found.command else ""
    if not found.command:
        command = "<p>Made in Python by <code>reluflow.explain(problem)</code>.</p>"
    numbers = ", ".join(f"{name} {number}" for name, number in versions().items())
    settings = ", ".join(f"{name} = {value:g}" for name, value in found.settings.items())
    return (
        f"<h2>How to make this again</h2>{command}"
        f"<p>Versions: {escape(numbers)}. Settings: {escape(settings)}. "
        f"Fingerprint of the problem: <code>{found.problem.fingerprint()[:16]}</code>.</p>"
        f"<h2>References</h2><pre>{escape(citation(used))}</pre>"
    )
