"""Runs, limits and early phases as documents and texts: the same for a program and on the command line."""

import json

import pytest

import reluflow as rf
from helpers import cli
from reluflow.sectors import extremal_directions

PROBLEM = rf.Problem(rf.dataset("EX1"), rf.initialize(2, 5, seed=0))
WORDS = ("EX1", "--width", 5)
RESULTS = {
    "limit": lambda: rf.limit(PROBLEM),
    "flow": lambda: rf.flow(PROBLEM),
    "descend": lambda: rf.descend(PROBLEM, steps=30, progress=False),
}


@pytest.mark.parametrize("verb", RESULTS)
def test_the_command_line_prints_what_the_result_says(verb):
    result = RESULTS[verb]()
    words = (verb, *WORDS, *(("--steps", 30) if verb == "descend" else ()))
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    printed = cli.document(*words)
    assert {name: printed[name] for name in document} == document
    assert set(printed) - set(document) <= {"schema", "saved", "plot"}
    assert cli.run(*words).stdout.rstrip("\n") == result.text(80)


def test_an_early_phase_says_which_extremal_direction_is_reached():
    early = rf.align(PROBLEM)
    ends = extremal_directions(PROBLEM.data, PROBLEM.net.slope, speed=PROBLEM.speed)
    alone, beside = early.to_dict(), early.to_dict(ends)
    assert json.dumps(beside, allow_nan=False)
    assert "extremal_directions" not in alone
    assert {row["extremal"] for row in alone["groups"]} == {None}
    for row in beside["groups"]:
        if row["extremal"] is not None:
            found = beside["extremal_directions"]["directions"][row["extremal"]]
            assert row["direction"] == pytest.approx(found["direction"], abs=1e-4)
            assert found["kind"] == ("max" if row["sign"] > 0 else "min")
    assert any(row["extremal"] is not None for row in beside["groups"])
    assert len(beside["neurons"]) == sum(len(row["neurons"]) for row in beside["groups"]) == 5


def test_texts_are_as_wide_as_asked_and_coloured_only_if_asked():
    end = RESULTS["limit"]()
    assert "\x1b[" not in end.text(70)
    assert "\x1b[" in end.text(70, color=True)
    rows = end.text(70).splitlines()
    table = rows[next(k for k, row in enumerate(rows) if row.startswith("evidence")) :]
    assert max(map(len, table[: table.index("")])) <= 70
