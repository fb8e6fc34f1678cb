"""``reluflow explain``, ``check`` and ``predict`` on the command line."""

import json
import shlex

import pytest

from helpers.cli import document, run
from reluflow import example
from reluflow.margins import class_margins


def test_explain_needs_no_data():
    found = document("explain", "--width", 5)
    assert found["problem"]["data"] == "ML-F6"
    plus, minus = class_margins(example("ML-F6").data)
    assert found["limit"]["margin"] == pytest.approx(1 / (2 * (1 / plus.margin + 1 / minus.margin)), abs=1e-12)
    assert found["summary"]["missed"] == []
    assert found["summary"]["contradicted"] == 0


def test_the_command_of_a_report_makes_it_again():
    first = document("explain", "EX1", "--width", 4, "--seed", 3, "--slope", 0.1, "--scale", 1e-5)
    words = shlex.split(first["command"])
    assert words[0] == "reluflow"
    assert words[words.index("--seed") + 1] == "3"
    again = document(*words[1:])
    assert again["problem"]["fingerprint"] == first["problem"]["fingerprint"]
    assert again["command"] == first["command"]


def test_explain_prints_and_writes(tmp_path):
    result = run("explain", "EX1", "--width", 4, "--out", tmp_path / "report.html")
    assert result.exit_code == 0, result.stderr
    assert "Verdict: every prediction" in result.stdout
    assert str(tmp_path / "report.html") in result.stdout
    assert "reluflow explain EX1" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_table_written_by_hand(tmp_path):
    (tmp_path / "points.csv").write_text("1.0,0.2,1\n0.3,1.1,1\n-1,-0.5,-1\n-0.4,-1.2,-1\n")
    found = document("explain", tmp_path / "points.csv", "--width", 4)
    assert (found["problem"]["n"], found["problem"]["d"]) == (4, 2)
    assert found["summary"]["contradicted"] == 0


def test_a_contradiction_has_its_own_exit_code(monkeypatch):
    from reluflow.report import explanation as module

    honest = module.monitor

    def lying(*arguments):
        from dataclasses import replace

        first, *rest = honest(*arguments)
        return [replace(first, consistent=False, needs=()), *rest]

    monkeypatch.setattr(module, "monitor", lying)
    result = run("explain", "EX1", "--width", 4)
    assert result.exit_code == 4
    assert "the run contradicts it" in result.stdout
    assert json.loads(run("explain", "EX1", "--width", 4, "--json").stdout)["summary"]["contradicted"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "nothing-there"), "nothing-there"),
        (("explain", "EX1", "--out", "no-folder/report.html"), "no folder"),
        (("explain", "EX1", "--out", "report.png"), "ending"),
        (("explain", "EX1", "--slope", "2"), "slope"),
        (("explain", "EX1", "--max-log-time", "-1"), "--max-log-time"),
        (("check", "EX1", "--paper", "XY"), "paper"),
        (("check", "EX1", "--claim", "PL-T9"), "PL-T9"),
        (("predict", "EX1", "--claim", "nothing"), "nothing"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_check_gives_every_condition():
    found = document("check", "EX1", "--width", 4, "--claim", "PL-T1")
    (finding,) = found["findings"]
    assert finding["applies"] is True
    assert any(c["name"] == "orthogonally separable" and c["evidence"] == "proved" for c in finding["conditions"])
    text = run("check", "EX1", "--width", 4, "--claim", "PL-T1").stdout
    assert "orthogonally separable" in text
    assert "applies: yes" in text


def test_check_of_all_claims_and_of_one_paper():
    every = document("check", "--width", 4)["findings"]
    some = document("check", "--width", 4, "--paper", "SBG")["findings"]
    assert {f["paper"] for f in some} == {"SBG"}
    assert {f["paper"] for f in every} == {"PL", "ML", "SBG", "LL"}
    text = run("check", "--width", 4).stdout
    yes = sum(f["applies"] is True for f in every)
    assert f"{yes} apply" in text
    assert "second layer frozen" in text


def test_predict_gives_the_limit():
    found = document("predict", "EX1", "--width", 6, "--paper", "PL")
    told = {p["claim"]: p for p in found["predictions"]}
    assert told["PL-T1'"]["margin"] == pytest.approx(example("EX1").answers["corollary"], abs=1e-10)
    text = run("predict", "EX1", "--width", 6, "--claim", "PL-T1'").stdout
    assert "the normalised margin tends to 0.5840985669" in text
    assert "assuming: start small enough" in text
    assert "says why" in run("predict", "EX1", "--width", 6, "--claim", "SBG-T6.2").stdout
