"""One page a paper, written from the claims themselves: statement, conditions, what is computed, what would refute it.

What conditions a claim has, and what it computes, is asked of the claim on a small problem where as many of its
conditions hold as possible; the page shows the answer. The place of a claim is the place of its class, so the page with
the code links back to it.
"""

import re
from functools import cache
from pathlib import Path

from formulas import SYMBOLS, typeset

import reluflow as rf
from reluflow.theory import PAPERS, Facts, claim, claims, corrections, errata_of, statements
from reluflow.theory.references import BIBTEX

#: Small problems, one for each kind of data and network that a paper speaks of.
PROBLEMS = {
    "ML-F6 with 10 ReLU neurons": {"source": "ML-F6", "width": 10, "log_scale": -3000},
    "ML-F6 with 10 ReLU neurons of size e^-1000000": {"source": "ML-F6", "width": 10, "log_scale": -1e6},
    "EX3 with 10 ReLU neurons": {"source": "EX3", "width": 10, "log_scale": -3000},
    "D1 with 6 neurons of slope 0.5": {"source": "D1", "width": 6, "slope": 0.5, "log_scale": -30},
    "D1 with 2 neurons of slope 0.5": {"source": "D1", "width": 2, "slope": 0.5, "log_scale": -30, "seed": 4},
    "D5 with 6 neurons of slope 0.5": {"source": "D5", "width": 6, "slope": 0.5, "log_scale": -30},
    "D5, labels exchanged, with 6 neurons of slope 0.5": {
        "source": rf.Dataset(rf.example("D5").data.X, -rf.example("D5").data.y),
        "width": 6,
        "slope": 0.5,
        "log_scale": -30,
    },
    "D5 with one neuron of slope 0.5": {"source": "D5", "width": 1, "slope": 0.5, "log_scale": -30, "seed": 5},
    "D6 with 6 neurons of slope 0.5": {"source": "D6", "width": 6, "slope": 0.5, "log_scale": -30},
    "D2 with 4 neurons of slope 0.25, second layer frozen": {
        "source": "D2",
        "width": 4,
        "slope": 0.25,
        "scheme": "two-sign",
        "train": "first",
    },
}
_HEADS = {
    "PL": "Points of one class less than 90 degrees apart, points of two classes at least 90: from a small start every "
    "neuron dies or turns to the widest separator of its class.",
    "ML": "The early phase in numbers: how long neurons take to turn, how small the start has to be for it, and how "
    "fast the loss falls afterwards.",
    "SBG": "The second layer is frozen. How many steps SGD needs, when clustered neurons make a linear classifier, and "
    "which convex program they end at.",
    "LL": "Where the direction of the flow ends: always where the margin cannot grow any more to first order (a KKT "
    "point), on symmetric data at the linear classifier of largest margin, on others at a linear one that is far from "
    "optimal.",
}
_WORDS = {
    "checked": "whether its conditions hold for a given problem",
    "predicted": "what it promises there",
    "bounded": "its constants",
    "monitored": "whether a run kept it",
}
#: Claims whose class is not named in words that a heading can use.
_TITLES = {
    "PL-D2": "max-margin pair",
    "PL-T1p": "each class gets a neuron",
    "ML-A2": "no start on the wrong ray",
    "ML-DT": "dwell time",
    "ML-DT'": "dwell time, sharper",
    "ML-T1a'": "alignment time, sharper",
    "ML-P1": "the positive class gets a neuron",
    "SBG-T4.1": "steps of SGD",
    "SBG-T5.1": "clustered neurons are linear",
    "SBG-D6.2": "agreement regimes",
    "SBG-T6.1": "agreeing neurons converge",
    "SBG-L1": "Lipschitz constant",
    "LL-A4.5": "no sample orthogonal to the mean",
    "LL-L5.2": "phase one is linear",
    "LL-A.3": "positive neurons grow faster",
    "LL-A.8": "negative neurons grow faster",
    "LL-A.5": "negative outputs gain too little",
    "LL-A.5*": "the same, as the proof needs it",
    "LL-A.9": "positive outputs gain too little",
    "LL-A.9*": "the same, as the proof needs it",
    "LL-T4.3": "limit on symmetric data",
    "LL-TA.7": "limit of one positive neuron",
    "LL-TA.10": "limit of one negative neuron",
}


def _title(one):
    """Return the name of a claim in words: that of its class, if no other is given."""
    words = re.findall(r"KKT|ReLU|[A-Z][a-z]*", type(one).__name__)
    return _TITLES.get(one.id, " ".join(word if word in ("KKT", "ReLU") else word.lower() for word in words))


def _slug(name):
    plain = name.lower().replace("'", "-prime").replace("*", "-star")
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


@cache
def places():
    """Return page and anchor of every statement, by all of its ids."""
    found = {}
    for one in statements():
        for name in (one.id, *one.also):
            found.setdefault(name, (f"theory/{one.paper.lower()}", _slug(one.id)))
    for one in errata_of():
        found.setdefault(one.id, (f"theory/{one.paper.lower()}", _slug(one.id)))
    return found


@cache
def _facts():
    return {title: Facts.of(rf.as_problem(**how)) for title, how in PROBLEMS.items()}


def _shown(one):
    """Return the problem on which the claim has most to say, with its finding and its prediction."""
    best = None
    for title, facts in _facts().items():
        (finding,) = rf.check(facts, claim=one.id)
        score = ({True: 2, None: 1, False: 0}[finding.applies], -len(finding.failing), len(finding.conditions))
        if best is None or score > best[0]:
            best = score, title, facts, finding
    _, title, facts, finding = best
    told = rf.predict(facts, claim=one.id) if finding.applies is not False else []
    return title, finding, told


def _item(text):
    """Write the text of a bullet; "(a) ..." is no list in it."""
    return re.sub(r"^(?=\(\w\))", r"\\", typeset(text))


def _conditions(finding):
    lines = []
    for item in finding.conditions:
        why = f": {typeset(item.why.rstrip('.'))}" if item.why and item.holds is not True else ""
        if item.assumed:
            lines.append(f"- {_item(item.name)}: *assumed*{why or ', nobody can check it'}.")
            continue
        verdict = {True: "holds", False: "fails", None: "undecided"}[item.holds]
        only = "" if item.decides else ", shown for comparison, decides nothing"
        lines.append(f"- {_item(item.name)}: *{verdict} ({item.evidence}){only}*{why}.")
    return lines


def _name(name):
    return f"``{name}``" if name.isidentifier() else _item(name)


def _numbers(told):
    lines = []
    for one in told:
        lines += [f"- {typeset(one.text)}"] * (one.text != claim(one.claim).statement)
        values = "; ".join(f"{_name(name)} = {value:.6g}" for name, value in list(one.bounds.items())[:12])
        lines += [f"- {values}{'; ...' if len(one.bounds) > 12 else ''}"] * bool(values)
    return lines


def describe(one):
    """Write what stands at the place of a claim."""
    title, finding, told = _shown(one)
    *some, last = (_WORDS[word] for word in one.status())
    status = f"{', '.join(some)} and {last}" if some else last
    applies = {True: "it applies", False: "it does not apply", None: "whether it applies stays undecided"}
    lines = [f"Covers also {', '.join(map(typeset, one.also))}.", ""] if one.also else []
    lines += [f"**We compute** {status}.", "", f"**Refuted by** {typeset(one.falsifier.rstrip('.'))}.", ""]
    lines += [f"**Conditions** on {typeset(title)}: {applies[finding.applies]}.", "", *_conditions(finding), ""]
    numbers = _numbers(told)
    if numbers:
        lines += ["**Promise and constants** there:", "", *numbers, ""]
    for erratum in corrections(one.id):
        lines += [f"**Correction** :ref:`{typeset(erratum.id)} <{_slug(erratum.id)}>`: {typeset(erratum.text)}", ""]
    lines += [f"The test that would notice: ``{one.test}``.", ""]
    return lines


def _heading(text, mark):
    return [text, mark * max(len(text), 4), ""]


def page(paper):
    """Write the page of a paper."""
    lines = [*_heading(PAPERS[paper], "="), typeset(_HEADS[paper]), ""]
    lines += [
        "Every statement is an object of :mod:`reluflow.theory`: it says under which conditions it holds, what it then",
        "promises, and whether a run kept the promise. Conditions and constants below are what the object answers for",
        "the small problem named with them; :func:`reluflow.check` and :func:`reluflow.predict` answer for yours.",
        'The data sets of these problems are built in: ``rf.example("D5")``, all of them in ``reluflow data list``.',
        "",
        *_heading("Symbols and words", "-"),
        ".. list-table::",
        "   :class: symbols",
        "   :widths: 22 78",
        "",
    ]
    for symbol, meaning in SYMBOLS[paper].items():
        lines += [f"   * - {typeset(symbol)}", f"     - {typeset(meaning)}"]
    lines += [""]
    by_id = {one.id: one for one in claims(paper)}
    for one in statements(paper):
        name = f": {_title(by_id[one.id])}" if one.id in by_id else ""
        lines += [f".. _{_slug(one.id)}:", "", *_heading(typeset(one.id) + name, "-")]
        if one.id in by_id:
            kind = type(by_id[one.id])
            lines += [".. rst-class:: claim-statement", "", typeset(one.statement), "", ".. container:: claim-box", ""]
            lines += [f"   .. autoclass:: {kind.__module__}.{kind.__qualname__}", "      :no-undoc-members:", ""]
        else:
            lines += [f"*Not computable*: {typeset(one.refuted_by)}", ""]
    lines += _heading("Corrections", "-")
    lines += ["Where both readings can be computed both are shown, and the corrected one decides.", ""]
    for one in errata_of(paper):
        about = ", ".join(f":ref:`{typeset(name)} <{_slug(claim(name).id)}>`" for name in one.claims)
        lines += [f".. _{_slug(one.id)}:", "", f".. rubric:: {one.id}", ""]
        lines += [typeset(one.text) + (f" ({about})" if about else ""), ""]
    lines += [*_heading("Cite", "-"), ".. code-block:: bibtex", ""]
    lines += [f"   {line}" for line in BIBTEX[paper].splitlines()] + [""]
    return "\n".join(lines)


def _write(app):
    folder = Path(app.srcdir) / "theory"
    for paper in PAPERS:
        file, text = folder / f"{paper.lower()}.rst", page(paper)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def _docstring(app, what, name, obj, options, lines):  # noqa: ARG001
    """Put the answers of a claim in the place of its docstring, which is its id."""
    if what == "class" and isinstance(obj, type) and issubclass(obj, rf.theory.Claim) and hasattr(obj, "id"):
        lines[:] = describe(claim(obj.id))


def setup(app):
    """Write the pages before they are read."""
    app.connect("builder-inited", _write)
    app.connect("autodoc-process-docstring", _docstring, priority=100)
    return {"parallel_read_safe": True}
