"""Running, keeping, refusing, and the pages."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from reluflow.experiments import IDS, choose, experiment, run_all
from reluflow.experiments.core import runner, store
from reluflow.problem import ProblemError, Undecided

CHEAP = ["SBG-F4", "SBG-F5"]


def edited(path, **changes):
    document = json.loads(path.read_text())
    document.update(changes)
    path.write_text(json.dumps(document))


def states(outcomes):
    return [outcome.state for outcome in outcomes]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A folder with a quick run of SBG-F4."""
    folder = tmp_path_factory.mktemp("first")
    assert states(run_all(["SBG-F4"], folder, quick=True)) == ["run"]
    return folder


@pytest.fixture
def done(first, tmp_path):
    """The same, to be changed."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_files_and_keeping(tmp_path):
    told = []
    first = run_all(CHEAP, tmp_path, quick=True, jobs=2, progress=told.append)
    assert states(first) == ["run", "run"]
    assert told[-1].done == pytest.approx(told[-1].total)
    names = {f"{name}{ending}" for name in CHEAP for ending in (".json", ".png", ".svg")}
    assert {path.name for path in tmp_path.iterdir()} == names | {"index.html", "REPRODUCTION.md", "run.json"}
    went = json.loads((tmp_path / "run.json").read_text())
    assert sorted(went["digests"]) == sorted(CHEAP)
    assert went["jobs"] == 2
    assert "2 of them were made in one go" in (tmp_path / "REPRODUCTION.md").read_text()
    document = json.loads((tmp_path / "SBG-F4.json").read_text())
    assert {"parameters", "numbers", "expectations", "unstated", "seconds", "code", "origin", "quick"} <= set(document)
    second = run_all(CHEAP, tmp_path, quick=True)
    assert states(second) == ["kept", "kept"]
    assert json.loads((tmp_path / "run.json").read_text()) == went, "nothing was run, so there is nothing to say"
    assert [o.verdicts for o in second] == [o.verdicts for o in first]


@pytest.mark.parametrize("change", [{"code": "0" * 16}, {"parameters": {"w": [2.0, 0.0]}}])
def test_other_code_or_parameters_run_again_unless_only_drawn(done, change):
    tmp_path, path = done, done / "SBG-F4.json"
    edited(path, **change)
    assert states(run_all(["SBG-F4"], tmp_path, quick=True, redraw=True)) == ["kept"]
    if "code" in change:
        assert "earlier version of the code" in (tmp_path / "REPRODUCTION.md").read_text()
        assert json.loads(path.read_text())["code"] == "0" * 16, "drawing again must not hide who computed"
    assert states(run_all(["SBG-F4"], tmp_path, quick=True)) == ["run"]
    assert "earlier version of the code" not in (tmp_path / "REPRODUCTION.md").read_text()


def test_stored_numbers_are_judged_anew(done):
    path = done / "SBG-F4.json"
    edited(path, expectations=[])
    [outcome] = run_all(["SBG-F4"], done, quick=True)
    assert outcome.state == "kept"
    assert outcome.verdicts["reproduced"] > 0


def test_changed_numbers_are_run_again_and_not_drawn(done):
    path = done / "SBG-F4.json"
    document = json.loads(path.read_text())
    before = document["numbers"]["slopes"][1]["wrong_sign"]
    document["numbers"]["slopes"][1]["wrong_sign"] = before + 1
    path.write_text(json.dumps(document))
    with pytest.raises(ProblemError, match=r"SBG-F4.*are not those that were computed.*[Rr]un them again"):
        run_all(["SBG-F4"], done, quick=True, redraw=True)
    assert states(run_all(["SBG-F4"], done, quick=True)) == ["run"]
    assert store.read(done, "SBG-F4").numbers["slopes"][1]["wrong_sign"] == before


def test_half_a_file_is_run_again(done):
    path = done / "SBG-F4.json"
    path.write_text(path.read_text()[:100])
    assert states(run_all(["SBG-F4"], done, quick=True)) == ["run"]


def test_a_quick_run_does_not_replace_a_full_one(done):
    edited(done / "SBG-F4.json", quick=False)
    with pytest.raises(ProblemError, match=r"full run of SBG-F4.*another folder"):
        run_all(["SBG-F4"], done, quick=True)


def test_refusals(tmp_path):
    with pytest.raises(ProblemError, match=r"no experiment 'PL-F99'.*did you mean 'PL-F\d'.*--list"):
        run_all(["PL-F99"], tmp_path)
    with pytest.raises(ProblemError, match="jobs is 0"):
        run_all(CHEAP, tmp_path, jobs=0)
    with pytest.raises(ProblemError, match="run it first"):
        run_all(CHEAP, tmp_path, redraw=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(ProblemError, match="cannot be made"):
        run_all(CHEAP, tmp_path / "file" / "below")
    with pytest.raises(ProblemError, match="no paper 'XY'"):
        choose(paper="XY")
    with pytest.raises(ProblemError, match="nothing was asked for"):
        choose()


class Pipe:
    def __init__(self):
        self.said = []

    def send(self, message):
        self.said.append(message)

    def close(self):
        pass


def test_what_fails_is_said_and_kept_apart(tmp_path, monkeypatch):
    def undecided(*_):
        raise Undecided("neither yes nor no")

    def bug(*_):
        raise ZeroDivisionError

    for failure, text in ((undecided, "neither yes nor no"), (bug, "ZeroDivisionError")):
        monkeypatch.setattr(runner, "complete", failure)
        pipe = Pipe()
        before = signal.getsignal(signal.SIGINT)
        try:
            runner.work({"SBG-F4": store.code_version(experiment("SBG-F4"))}, tmp_path, True, False, pipe)
        finally:
            signal.signal(signal.SIGINT, before)
        [(kind, said)] = pipe.said
        assert kind == "error"
        assert text in said
    job = runner.Job(("SBG-F4",), 1.0, error="neither yes nor no")
    assert runner.outcome_of(tmp_path, "SBG-F4", job).state == "failed"


def test_numbers_survive_a_check_that_crashes(tmp_path):
    one = experiment("SBG-F4")

    def crash(_numbers):
        raise ZeroDivisionError

    broken = type(one)(**{name: getattr(one, name) for name in one.__slots__ if name != "check"}, check=crash)
    with pytest.raises(ZeroDivisionError):
        runner.complete([broken], tmp_path, True, False, Pipe())
    kept = store.read(tmp_path, "SBG-F4")
    assert kept is not None
    assert kept.numbers


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    command = [sys.executable, "-m", "reluflow", "reproduce", *CHEAP, "LL-F3", "--quick", "--out", str(tmp_path)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        while not list(tmp_path.glob("*.svg")) and started.poll() is None:
            time.sleep(0.02)
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.svg")}
    assert before
    outcomes = {o.id: o.state for o in run_all([*CHEAP, "LL-F3"], tmp_path, quick=True)}
    assert "kept" in outcomes.values()
    assert "failed" not in outcomes.values()


@pytest.mark.parametrize("name", IDS)
def test_every_experiment_is_described(name):
    one = experiment(name)
    assert one.id == name
    assert one.title
    assert one.caption
    assert one.minutes > 0
    assert store.code_version(one)


def test_pages_escape_what_they_show(done):
    tmp_path = done
    edited(tmp_path / "SBG-F4.json", title="a < b | c")
    from reluflow.experiments.core.pages import write_pages

    write_pages(tmp_path)
    assert "a &lt; b | c" in (tmp_path / "index.html").read_text()
    assert "a < b \\| c" in (tmp_path / "REPRODUCTION.md").read_text()
    for e in experiment("SBG-F4").check(store.read(tmp_path, "SBG-F4").numbers):
        assert e.claim in (tmp_path / "REPRODUCTION.md").read_text()
