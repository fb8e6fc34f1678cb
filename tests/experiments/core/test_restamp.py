"""Results are taken over into changed code only after some were computed again and came out the same."""

import json
import shutil
from pathlib import Path

import pytest

from reluflow.experiments import Outcome, experiment
from reluflow.experiments.__main__ import main
from reluflow.experiments.core import restamp as restamp_module
from reluflow.experiments.core import store
from reluflow.problem import ProblemError

FOLDER = Path(__file__).parents[3] / "docs" / "reproduction"
CHEAP = ["SBG-F4"]


@pytest.fixture
def folder(tmp_path):
    """Three stored results, as if computed by other code."""
    if not FOLDER.is_dir():
        pytest.skip("docs/reproduction is not part of this installation")
    for name in ("SBG-F4", "SBG-F5", "LL-F3"):
        shutil.copy(FOLDER / f"{name}.json", tmp_path)
        change(tmp_path, name, code="0" * 16)
    return tmp_path


def change(folder, name, **changes):
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def codes(folder):
    return {path.stem: json.loads(path.read_text())["code"] for path in folder.glob("*.json")}


def test_what_comes_out_the_same_is_taken_over(folder):
    before = {name: store.read(folder, name).numbers for name in codes(folder)}
    found = restamp_module.restamp(folder, CHEAP)
    assert found.agree
    assert found.recomputed["SBG-F4"].largest == pytest.approx(0.0, abs=1e-6)
    assert set(found.carried) == {"SBG-F5", "LL-F3"}
    assert found.carried["SBG-F5"] == 1.0, "it shares its run with SBG-F4"
    assert found.carried["LL-F3"] < 1.0
    for name in before:
        kept = store.read(folder, name)
        assert store.is_current(kept, experiment(name), quick=False)
        assert kept.numbers == before[name]
        stamp = kept.origin["stamps"][-1]
        assert stamp["how"] == ("recomputed" if name in CHEAP else "carried over")
        assert stamp["code"] == kept.code
    page = (folder / "REPRODUCTION.md").read_text()
    assert page.count("Computed again by this version of the code") == 1
    assert page.count("this one, tried on SBG-F4, gives the same") == 2


@pytest.fixture
def at_once(monkeypatch):
    """Runs in this process, and without pictures."""

    def run_all(ids, out, jobs):
        assert jobs == 1
        for one in map(experiment, ids):
            store.save(Path(out), one, store.made(one, False, one.run(one.settings(), lambda _: None), 0.1))
        return [Outcome(name, "run", {}, 0.1) for name in ids]

    monkeypatch.setattr(restamp_module, "run_all", run_all)


@pytest.mark.usefixtures("at_once")
def test_nothing_is_written_if_one_number_differs(folder, capsys, monkeypatch):
    numbers = store.read(folder, "SBG-F4").numbers
    numbers["slopes"][0]["even_size"] += 0.1
    change(folder, "SBG-F4", numbers=numbers, digest=store.digest(numbers))  # as if it had come out so
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr("sys.argv", ["experiments", "restamp", str(folder), *CHEAP])
    assert main() == 3
    said = capsys.readouterr().out
    assert "SBG-F4: differs" in said
    assert "slopes.0.even_size" in said
    assert "nothing was written" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.usefixtures("at_once")
def test_other_parameters_are_left_alone(folder):
    change(folder, "LL-F3", parameters={"seed": 5})
    found = restamp_module.restamp(folder, CHEAP)
    assert found.outdated == ("LL-F3",)
    assert "LL-F3" not in found.carried
    assert codes(folder)["LL-F3"] == "0" * 16


def test_refusals(folder, tmp_path, monkeypatch, capsys):
    with pytest.raises(ProblemError, match="holds nothing of PL-F2"):
        restamp_module.restamp(folder, ["PL-F2"])
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr("sys.argv", ["experiments", "restamp", str(tmp_path / "empty")])
    assert main() == 2
    assert "holds no full run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "agree"),
    [
        ([1.0, 1e-9], [1.0, 2e-9], True),  # rounding of the largest
        ([1.0, 1e-3], [1.0, 2e-3], False),
        (1e-9, 2e-9, False),
        (1e-15, 3e-14, True),
        (3, 4, False),
        (3, 3.0, False),
        ("nan", "nan", True),
        ("nan", 1.0, False),
        ([1.0], [1.0, 2.0], False),
        ({"a": 1}, {"b": 1}, False),
        (True, False, False),
        (None, None, True),
        ([[1e3, 1.0], [1e-3, 1.0]], [[1e3, 1.0], [2e-3, 1.0]], False),  # each list by itself
    ],
)
def test_compare(old, new, agree):
    assert (not restamp_module.compare({"x": old}, {"x": new}).differ) == agree
