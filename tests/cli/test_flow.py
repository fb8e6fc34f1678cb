"""``reluflow flow``: the text, the document, the files, and what happens when a run ends early."""

import json
import math
from functools import partial

import numpy as np
import pytest

from helpers import cli
from reluflow import Dataset, Network, Problem, ProblemError, Trajectory, example, initialize, save
from reluflow.cli.flow import parse_until
from reluflow.dynamics import Until

run, document = partial(cli.run, "flow"), partial(cli.document, "flow")


@pytest.fixture
def dead(tmp_path):
    """A ReLU network that no sample activates, and its data: nothing ever moves."""
    Network([[-1.0, 0.0]], [1.0]).save(tmp_path / "net.npz")
    save(Dataset([[1.0, 0.0], [1.0, 0.5]], [1, -1]), tmp_path / "data.csv")
    return tmp_path / "data.csv", "--network", tmp_path / "net.npz"


def test_the_text_shows_phases_events_moments_and_groups():
    result = run("EX1", "--width", 8, "--until", "log_time=1e4")
    assert result.exit_code == 0, result.stderr
    for word in ("early", "coupled", "late", "activate", "normalised", "stable rank", "At the end", "100 %"):
        assert word in result.stdout


def test_the_document_reaches_the_worked_limit():
    found = document("EX1", "--width", 8, "--until", "log_time=1e6")
    answers = example("EX1").answers
    last = found["moments"][-1]
    assert last["log_time"] == pytest.approx(1e6)
    # The margin is below its limit by O(1/log t), and so is the stable rank off.
    assert last["normalized_margin"] == pytest.approx(answers["corollary"], rel=2e-5)
    assert last["stable_rank"] == pytest.approx(answers["stable_rank"], rel=2e-5)
    assert [row["sign"] for row in found["groups"]] == [1, -1]
    assert found["groups"][0]["share"] == pytest.approx(answers["share_plus"], rel=2e-5)
    assert sum(row["share"] for row in found["groups"]) == pytest.approx(1.0)
    assert found["final"]["accuracy"] == 1.0
    assert found["final"]["balance_drift"] < 1e-10


def test_moments_are_the_records_of_the_saved_trajectory(tmp_path):
    found = document("EX1", "--width", 6, "--until", "log_time=50", "--save", tmp_path / "run.npz")
    kept = Trajectory.load(tmp_path / "run.npz")
    assert found["saved"] == str(tmp_path / "run.npz")
    assert found["records"] == len(kept)
    times = [float(row["log_time"]) for row in found["moments"]]
    assert times[0] == -math.inf
    assert times == sorted(set(times))
    assert 5 <= len(times) <= 9
    assert [phase["name"] for phase in found["phases"]] == [phase.name for phase in kept.phases]
    assert sum(found["events"].values()) == kept.events.size
    for row, time in zip(found["moments"], times, strict=True):
        k = int(np.flatnonzero(kept.log_time == time)[0])
        assert row["log_loss"] == kept.log_loss[k]
        assert row["min_margin"] == pytest.approx(kept.margins()[k].min(), rel=1e-12)
        assert row["normalized_margin"] == pytest.approx(kept.normalized_margin()[k], rel=1e-12)
        assert row["stable_rank"] == pytest.approx(kept.stable_rank()[k], rel=1e-12)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_picture(tmp_path, ending):
    file = tmp_path / f"flow.{ending}"
    result = run("EX1", "--width", 4, "--until", "log_time=20", "--plot", file)
    assert result.exit_code == 0, result.stderr
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert file.read_bytes().startswith(start)
    assert str(file) in result.stdout.replace("\n", "")


def test_a_budget_that_runs_out_keeps_what_there_is(tmp_path):
    files = ("--save", tmp_path / "run.npz", "--plot", tmp_path / "run.png")
    result = run("EX1", "--width", 4, "--until", "log_time=1e6", "--max-steps", 30, *files)
    assert result.exit_code == 3
    assert "--max-steps 30" in result.stderr
    assert "Trajectory written to" in result.stdout
    kept = Trajectory.load(tmp_path / "run.npz")
    assert len(kept) > 2
    assert kept.log_time[-1] < 1e6
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_goal_that_is_never_reached(dead, tmp_path):
    result = run(*dead, "--until", "loss=1e-3", "--save", tmp_path / "run.npz", "--json")
    assert result.exit_code == 3
    assert result.stderr == ""
    error = json.loads(result.stdout)
    assert error["kind"] == "Undecided"
    assert "never reached" in error["error"]
    assert error["partial"]["final"]["log_loss"] == pytest.approx(math.log(math.log(2.0)))
    assert error["partial"]["groups"][0]["state"] == "dead"
    assert len(Trajectory.load(tmp_path / "run.npz")) == error["partial"]["records"]


def test_a_zero_network_has_no_margin_and_no_rank(tmp_path):
    Network([[0.0, 0.0]], [0.0]).save(tmp_path / "net.npz")
    found = document("EX1", "--network", tmp_path / "net.npz", "--until", "log_time=3")
    assert found["moments"][-1]["normalized_margin"] is None
    assert found["moments"][-1]["stable_rank"] is None
    assert found["groups"][0]["state"] == "zero"
    assert run("EX1", "--network", tmp_path / "net.npz", "--until", "log_time=3").exit_code == 0


@pytest.mark.parametrize(
    ("texts", "until"),
    [
        ([], None),
        (["log_time=1e6,loss=1e-3"], Until(log_time=1e6, loss=1e-3)),
        (["log_time=1e6", "loss = 1e-3"], Until(log_time=1e6, loss=1e-3)),
        (["aligned"], Until(aligned=True)),
        (["aligned, time=5", "margin=2"], Until(time=5.0, margin=2.0, aligned=True)),
    ],
)
def test_until_is_read(texts, until):
    assert parse_until(texts) == until


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speed=3", ["'speed=3'", "log_time=NUMBER", "aligned"]),
        ("", ["empty", "log_time=NUMBER"]),
        ("log_time=1,,loss=2", ["empty"]),
        ("log_time", ["'log_time'", "needs a value"]),
        ("aligned=1", ["'aligned=1'", "alone"]),
        ("time=soon", ["'soon' is not a number"]),
        ("time=", ["'' is not a number"]),
        ("time=1,time=2", ["twice", "'time=2'"]),
        ("time=nan", ["nan", "finite"]),
        ("loss=0", ["positive", "log_loss"]),
    ],
)
def test_until_teaches(text, words):
    with pytest.raises(ProblemError) as caught:
        parse_until([text])
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["EX1", "--until", "forever"], "'forever' is not known"),
        (["EX1", "--rtol", 0], "rtol"),
        (["EX1", "--max-steps", 0], "--max-steps"),
        (["EX1", "--plot", "/no/such/folder/x.png"], "no folder"),
        (["EX1", "--plot", "x.nonsense"], ".png, .svg, .pdf"),
        (["EX1", "--save", "."], "it is a folder"),
        (["EX1", "--width", 0], "width must be a positive integer"),
    ],
)
def test_bad_input(arguments, words, tmp_path):
    cli.refused(tmp_path, words, "flow", *arguments)


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "loop.npz").symlink_to(tmp_path / "loop.npz")  # exists as a name, and opens for nobody
    result = run("EX1", "--width", 3, "--until", "log_time=1", "--save", tmp_path / "loop.npz")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr.replace("\n", " ")


def test_same_numbers_as_the_library():
    from reluflow import flow

    data = example("EX1").data
    direct = flow(Problem(data, initialize(2, 5, seed=3, slope=0.25)), {"log_time": 30})
    found = document("EX1", "--width", 5, "--seed", 3, "--slope", 0.25, "--until", "log_time=30")
    assert found["final"]["log_loss"] == direct.log_loss[-1]
    assert found["problem"]["fingerprint"] == direct.problem.fingerprint()
