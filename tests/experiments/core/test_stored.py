"""The full run that is kept in docs/reproduction says what today's checks say of its numbers."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from reluflow.experiments import IDS, experiment
from reluflow.experiments.core import store
from reluflow.problem.plain import plain

FOLDER = Path(__file__).parents[3] / "docs" / "reproduction"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="docs/reproduction is not part of this installation")


@pytest.mark.parametrize("name", IDS)
def test_stored_verdicts_are_those_of_the_checks(name):
    one, kept = experiment(name), store.read(FOLDER, name)
    assert kept is not None, "run: reluflow reproduce --out docs/reproduction"
    assert not kept.quick
    assert kept.parameters == plain(one.settings())
    assert (FOLDER / f"{name}.png").stat().st_size > 1000
    said = json.loads((FOLDER / f"{name}.json").read_text())["expectations"]
    assert said == [{**asdict(e), "verdict": e.verdict} for e in one.check(kept.numbers)]
    page = (FOLDER / "REPRODUCTION.md").read_text()
    for e in said:
        assert e["claim"].replace("|", "\\|") in page


def test_what_is_kept_is_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.suffix != ".svg") < 15e6
