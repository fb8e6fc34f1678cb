"""``reluflow claims``, ids in any case, and what all verbs share: built-in data, flags, width of the text."""

import io
import re

import pytest

import reluflow as rf
from helpers.cli import document, run
from reluflow.experiments import experiment
from reluflow.theory import claim, claims, not_computable


def test_every_statement_is_listed():
    found = document("claims")["claims"]
    assert [one["id"] for one in found if one["status"] != ["not computable"]] == [one.id for one in claims()]
    assert {one["id"] for one in found if one["status"] == ["not computable"]} == set(not_computable())
    assert all(one["statement"] or one["refuted_by"] for one in found)
    text = run("claims").stdout
    assert all(one["id"] in text for one in found)
    some = document("claims", "--paper", "sbg")["claims"]
    assert {one["paper"] for one in some} == {"SBG"}


def test_claims_in_full_and_in_any_case():
    (one,) = document("claims", "pl-t1")["claims"]
    assert one["id"] == "PL-T1"
    assert one["statement"] == claim("PL-T1").statement
    text = run("claims", "ll-f.3", "LL-t5.6").stdout  # one that another covers, and one that nobody can compute
    assert "LL-T5.5, LL-F.3" in text
    assert "not computable" in text
    assert "PL-T1" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("claims", "pl-t99"), "did you mean 'PL-T1'"),
        (("claims", "nonsense"), "`reluflow claims` lists them all"),
        (("claims", "PL-T1", "--paper", "ML"), "leave --paper out"),
        (("claims", "--paper", "XY"), "choose one of PL"),
        (("check", "EX1", "--claim", "pl-t9"), "did you mean"),
        (("reproduce", "pl-f9"), "did you mean 'PL-F"),
    ],
)
def test_wrong_ids_are_met_with_the_nearest(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_ids_and_papers_in_any_case():
    (finding,) = document("check", "--width", 2, "--claim", "pl-t1", "--paper", "pl")["findings"]
    assert finding["claim"] == "PL-T1"
    for one in claims():
        for name in (one.id, *one.also):
            assert claim(name.lower()) is claim(name.upper()) is one
    assert rf.citation("ml-t1A") == rf.citation("ML") == rf.citation("ml")
    assert experiment("ll-f1-LEFT").id == "LL-F1-left"


@pytest.mark.parametrize("verb", ["align", "flow", "limit", "descend", "check", "predict"])
def test_data_may_be_left_out(verb):
    said = ("--until", "time=1") if verb == "flow" else ("--steps", 5) if verb == "descend" else ()
    data = rf.dataset("ML-F6")
    wanted = rf.Problem(data, rf.initialize(data.d, 3)).fingerprint()
    assert document(verb, "--width", 3, *said)["problem"]["fingerprint"] == wanted


def test_a_default_step_fits_the_data():
    """Data ten times as large train ten times as fast."""
    data = rf.dataset("EX1")
    net = rf.initialize(data.d, 4, seed=1)
    steps = [
        rf.descend(rf.Problem(rf.Dataset(scale * data.X, data.y), net), steps=1, progress=False).settings["step"]
        for scale in (1.0, 10.0)
    ]
    assert steps[0] == pytest.approx(10 * steps[1])
    run_ = rf.descend(rf.Problem(data, net), steps=2000, progress=False)
    assert (run_.margins()[-1] > 0).all()
    adam = rf.descend(rf.Problem(data, net), "adam", steps=1, progress=False)
    assert adam.settings["step"] == 1e-3


@pytest.mark.parametrize(
    "verb", [(), ("explain",), ("limit",), ("certify",), ("reproduce",), ("data",), ("data", "show")]
)
def test_flags_have_no_type(verb):
    text = run(*verb, "--help").stdout
    assert "--help" in text
    assert "bool" not in text.lower()
    if verb == ("explain",):
        assert "<int>" in text  # options that take a value still say what


def test_explain_uses_a_wide_terminal():
    from rich.console import Console

    from reluflow.cli.explain import _print

    found = rf.explain(rf.Problem(rf.dataset("EX1"), rf.initialize(2, 3)), max_steps=1)

    def longest(**options):
        out = Console(file=io.StringIO(), highlight=False, no_color=True, **options)
        _print(out, found, None)
        return max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", out.file.getvalue()).splitlines()))

    assert 120 < longest(force_terminal=True, width=150) <= 150
    assert longest(force_terminal=True, width=300) <= 160
    assert longest(force_terminal=True, width=70) <= 70
    assert longest(force_terminal=False, width=300) <= 100
