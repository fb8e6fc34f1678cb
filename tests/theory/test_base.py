"""Verdicts, the registry of claims, references and the table of what is covered."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reluflow as rf
from reluflow.theory import (
    Claim,
    Condition,
    Facts,
    Finding,
    Observation,
    Prediction,
    assume,
    check,
    citation,
    claim,
    claims,
    conjunction,
    coverage,
    monitor,
    not_computable,
    predict,
    statements,
)

ROOT = Path(__file__).parents[2]

#: Every statement of the two papers that must be accounted for.
PHUONG = "D1 D2 D3 D4 A L1 L2 L2' L3 LB1 LA1 LA2 LA3 LA4 T1 T1p T1' C1 LC1 LC1'"
MIN = (
    "A1 A2 D1 D2 K L5 L7 L11 L8 L9 L3 L4 L1 L10 MON DT DT' EPS T1a T1a' CERT POSTA P1 "
    "L12 L13 L14 L15 T1b T1c POST T1d E50"
)


def problem(log_scale: float = -9.0, **options) -> rf.Problem:
    data = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    net = rf.Network.balanced([[1, 0.1], [-1, 1], [1, -2], [-1, -1]], [1, -1, 1, -1], log_scale=log_scale)
    return rf.Problem(data, net, **options)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], True),
        ([True, True], True),
        ([True, None], None),
        ([None, False], False),
        (["assumed", True], True),
        (["assumed", None], None),
        (["assumed", False], False),
        (["shown", True], True),
        (["shown", None], None),
    ],
)
def test_three_valued_conjunction(verdicts, expected):
    special = {"assumed": assume("s", "w"), "shown": Condition("s (as printed)", False, "proved", decides=False)}
    conditions = [special.get(v) or Condition("c", v, "numerical") for v in verdicts]
    assert conjunction(conditions) is expected


def test_an_assumption_that_fails_is_a_failure():
    assert conjunction([Condition("c", False, "assumed")]) is False


def test_findings_list_what_is_assumed_and_what_fails():
    bad = Condition("b", False, "proved")
    finding = Finding("X", "PL", "", False, (assume("a", ""), bad, Condition("p", False, "proved", decides=False)))
    assert finding.needs == ("a",)
    assert finding.failing == (bad,)


def test_an_observation_contradicts_only_without_assumptions():
    assert Observation("X", False).contradicts
    assert not Observation("X", False, needs=("small",)).contradicts
    assert not Observation("X", None).contradicts


@pytest.mark.parametrize("one", claims(), ids=lambda one: one.id)
def test_every_claim_says_how_to_refute_it(one):
    for text in (one.statement, one.falsifier):
        assert text.strip()
        assert "\n" not in text
    assert one.paper in ("PL", "ML", "SBG", "LL")
    assert "checked" in one.status()
    assert one.sources == tuple(key for key in one.sources if citation(key))


@pytest.mark.parametrize("one", claims(), ids=lambda one: one.id)
def test_every_claim_names_a_test_that_exists(one):
    file, _, name = one.test.partition("::")
    assert (ROOT / file).is_file(), one.test
    function = re.sub(r"\[.*", "", name)
    assert re.search(rf"def {re.escape(function)}\b", (ROOT / file).read_text()), one.test


def test_ids_are_unique_and_the_papers_complete():
    names = [name for one in claims() for name in (one.id, *one.also)] + list(not_computable())
    assert len(names) == len(set(names))
    wanted = {f"PL-{k}" for k in PHUONG.split()} | {f"ML-{k}" for k in MIN.split()}
    wanted |= {"C-INV1", "C-INV2", "C-INV3"}
    assert wanted <= set(names)
    assert all(reason.strip() for reason in not_computable().values())


def test_a_claim_without_falsifier_would_be_noticed():
    class Silent(Claim):
        id, paper, statement = "X", "PL", "something"

        def conditions(self, facts):
            return ()

    with pytest.raises(AssertionError):
        test_every_claim_says_how_to_refute_it(Silent())


def test_every_statement_is_found_in_the_file_named_for_it():
    for one in statements():
        text = (ROOT / "src" / one.source).read_text(encoding="utf-8")
        assert f'"{one.id}"' in text, one.id
        assert f"](../src/{one.source})" in coverage()


def test_coverage_file_is_up_to_date():
    assert (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8") == coverage()


def test_claims_are_found_by_name():
    assert claim("PL-T1").id == "PL-T1"
    assert claim("ML-L5").id == "ML-K"
    with pytest.raises(rf.ProblemError, match="no claim 'PL-T11'; did you mean 'PL-T1'"):
        claim("PL-T11")
    with pytest.raises(rf.ProblemError, match="paper 'XX' is not known"):
        claims("XX")


def test_citations_are_exactly_those_used():
    assert citation("PL-D1").count("@") == 1
    assert "phuong2021" in citation("PL-D1")
    derived = citation("PL-T1'")
    assert [key in derived for key in ("phuong2021", "lyu2020", "ji2020", "min2024")] == [True, True, True, False]
    findings = [f for f in check(problem()) if f.claim in ("PL-D1", "ML-A1", "ML-A2")]
    assert citation(findings) == citation("PL", "ML")
    assert citation().count("@") == 4
    with pytest.raises(rf.ProblemError, match="no claim 'nothing'"):
        citation("nothing")


def test_everything_becomes_json():
    facts = Facts(problem())
    for found in (*check(facts), *predict(facts)):
        json.dumps(found.to_dict(), allow_nan=False)
    limit = next(p for p in predict(facts) if p.claim == "PL-T1'")
    plain = limit.to_dict()
    assert "function" not in plain
    assert np.allclose(plain["network"]["W"], limit.network.W)
    assert plain["groups"]["plus"] == limit.groups.plus.tolist()


def test_undecided_is_said_and_not_guessed(monkeypatch):
    def undecided(*_):
        raise rf.Undecided("too close to call")

    monkeypatch.setattr("reluflow.theory.facts.class_margins", undecided)
    facts = Facts(problem())
    finding = next(f for f in check(facts) if f.claim == "PL-D2")
    assert finding.applies is None
    assert "too close" in finding.conditions[0].why
    limit = next(p for p in predict(facts) if p.claim == "PL-T1'")
    assert limit.text.startswith("not computed: too close")


def test_wrong_arguments_are_refused():
    with pytest.raises(rf.ProblemError, match="needs a Problem, not int"):
        check(3)
    with pytest.raises(rf.ProblemError, match="needs a Trajectory, not NoneType"):
        monitor(problem(), None)
    run = rf.flow(problem(), {"time": 1.0})
    with pytest.raises(rf.ProblemError, match="belongs to another problem"):
        monitor(problem(log_scale=-8.0), run)


def test_facts_are_shared():
    facts = Facts(problem())
    check(facts)
    first = facts.constants
    predict(facts)
    assert facts.constants is first
    assert Facts.of(facts) is facts
    assert isinstance(predict(facts)[0], Prediction)


def test_table_on_the_command_line(tmp_path):
    target = tmp_path / "table.md"
    command = [sys.executable, "-m", "reluflow.theory"]
    shown = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8")
    subprocess.run([*command, str(target)], check=True)
    assert target.read_text(encoding="utf-8") == shown == coverage()


# -- one claim, or a few ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_neurons():
    net = rf.Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-30)
    return rf.Problem(rf.dataset("EX1"), net)


def test_single_claims_are_asked_by_their_ids(two_neurons):
    facts = Facts(two_neurons)
    run = rf.flow(two_neurons, {"log_time": 30.0})
    for ask, everything in (
        (lambda **how: check(facts, **how), check(facts)),
        (lambda **how: predict(facts, **how), predict(facts)),
        (lambda **how: monitor(facts, run, **how), monitor(facts, run)),
    ):
        one = ask(claim="pl-t1'")
        assert one
        assert [repr(f) for f in one] == [repr(f) for f in everything if f.claim == "PL-T1'"]
        few = ask(claim=["ML-T1a", "PL-L1", "PL-l1"])  # in the order of the papers
        assert [repr(f) for f in few] == [repr(f) for f in everything if f.claim in ("PL-L1", "ML-T1a")]
        assert ask(claim=[]) == []
    assert [f.claim for f in check(facts, claim="PL-D3")] == ["PL-L2"]  # covered with it
    assert [f.claim for f in check(facts, claim=["PL-L1", "ML-T1a"], paper="ML")] == ["ML-T1a"]
    assert check([[1.0, 0.0], [-1.0, 0.1]], [1, -1], width=4, claim="LL-A3.2")[0].applies


@pytest.mark.parametrize("wrong", ["PL-T11", ["PL-T1", "PL-T11"], "nothing of the kind", 7, [None]])
def test_unknown_claims_are_refused(two_neurons, wrong):
    run = rf.flow(two_neurons, {"time": 0.1})
    for ask in (check, predict, lambda problem, **how: monitor(problem, run, **how)):
        with pytest.raises(rf.ProblemError, match="claim") as refused:
            ask(two_neurons, claim=wrong)
        if "PL-T11" in wrong if isinstance(wrong, (str, list)) else False:
            assert "did you mean 'PL-T1'" in str(refused.value)
