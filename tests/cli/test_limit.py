"""``reluflow limit``: decided answers of every kind, and undecided ones."""

import json
import math
from functools import partial

import numpy as np
import pytest

from helpers import cli
from reluflow import Dataset, Network, Trajectory, example, kkt, save

run, document = partial(cli.run, "limit"), partial(cli.document, "limit")


def given(tmp_path, X, y, W, a):
    """Write data and a start; return the arguments that name them."""
    save(Dataset(X, y), tmp_path / "data.csv")
    Network(W, a).save(tmp_path / "start.npz")
    return tmp_path / "data.csv", "--network", tmp_path / "start.npz"


def test_the_document_holds_the_worked_limit(tmp_path):
    found = document("EX1", "--width", 6, "--save", tmp_path / "end.npz")
    answers = example("EX1").answers
    assert found["kind"] == "margin"
    assert found["margin"] == pytest.approx(answers["corollary"], abs=1e-10)
    assert found["groups"][0]["share"] == pytest.approx(answers["share_plus"], abs=1e-10)
    assert all(item["holds"] for item in found["evidence"])
    assert {"quiet", "KKT", "approach"} <= {item["name"] for item in found["evidence"]}
    assert found["loss_floor"] == 0.0
    assert found["optimum"]["lower"] == pytest.approx(answers["corollary"], abs=1e-9)
    net = Network.load(tmp_path / "end.npz")
    assert net.log_norm() == pytest.approx(0.0, abs=1e-12)
    assert kkt(example("EX1").data, net).is_kkt(1e-9)
    assert net.normalized_margin(example("EX1").data) == pytest.approx(answers["corollary"], abs=1e-10)


def test_the_text_names_reason_evidence_groups_and_optimum(tmp_path):
    result = run("EX1", "--width", 6, "--plot", tmp_path / "end.png")
    assert result.exit_code == 0, result.stderr
    for word in ("margin: 2 groups", "KKT", "holds", "Groups of neurons", "Largest margin of any network: 0.58409"):
        assert word in result.stdout
    assert (tmp_path / "end.png").read_bytes().startswith(b"\x89PNG")
    assert "--optimum does it" in run("EX1", "--width", 3, "--no-optimum").stdout


def test_a_stall_is_a_decided_answer(tmp_path):
    # The one neuron never sees the second point: the mean loss cannot fall below log(2)/2; the other is fitted.
    case = given(tmp_path, [[1.0, 0.0], [-1.0, 0.0]], [1, 1], [[0.1, 0.0]], [0.1])
    found = document(*case, "--plot", tmp_path / "end.svg")
    assert found["kind"] == "stall"
    assert found["loss_floor"] == pytest.approx(math.log(2.0) / 2, rel=1e-12)
    assert found["margin"] == pytest.approx(0.5, rel=1e-12)
    assert (tmp_path / "end.svg").read_bytes().startswith(b"<?xml")


def test_rest_is_a_decided_answer(tmp_path):
    # f(x) = c x for x > 0; the loss log(1 + e^-2c) + log(1 + e^c) is least where z = e^c solves z^3 = z + 2.
    z = float(np.roots([1.0, 0.0, -1.0, -2.0])[0].real)
    case = given(tmp_path, [[2.0], [1.0]], [1, -1], [[0.1]], [0.1])
    result = run(*case)
    assert result.exit_code == 0, result.stderr
    assert "rest: the flow comes to rest" in result.stdout
    found = document(*case, "--save", tmp_path / "end.npz")
    assert found["kind"] == "rest"
    assert found["margin"] == "nan"
    assert found["groups"] == []
    assert found["loss_floor"] == pytest.approx((math.log1p(z**-2) + math.log1p(z)) / 2, rel=1e-9)
    assert Network.load(tmp_path / "end.npz").outputs([[1.0]])[0] == pytest.approx(math.log(z), rel=1e-6)


def test_undecided_keeps_the_trajectory_under_a_name_of_its_own(tmp_path):
    files = ("--save", tmp_path / "end.npz", "--plot", tmp_path / "end.png")
    result = run("EX1", "--width", 4, "--max-log-time", 20, *files)
    assert result.exit_code == 3
    assert "no limit could be confirmed" in result.stderr.replace("\n", " ")
    assert not (tmp_path / "end.npz").exists()
    kept = Trajectory.load(tmp_path / "end.trajectory.npz")
    assert kept.log_time[-1] == pytest.approx(20.0)
    assert "end.trajectory.npz" in result.stdout.replace("\n", "")
    assert (tmp_path / "end.png").read_bytes().startswith(b"\x89PNG")


def test_undecided_as_json(tmp_path):
    result = run("EX1", "--width", 4, "--max-steps", 20, "--json")
    assert result.exit_code == 3
    assert result.stderr == ""
    error = json.loads(result.stdout)
    assert error["kind"] == "BudgetExceeded"
    assert "--max-steps" in error["remedy"]
    assert error["partial"]["moments"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["EX1", "--max-log-time", 0], "--max-log-time"),
        (["EX1", "--plot", "x.gif"], ".png, .svg, .pdf"),
        (["EX1", "--save", "/no/such/folder/x.npz"], "no folder"),
        (["EX1", "--train", "second"], "--train second"),
        (["absent.csv"], "no file"),
    ],
)
def test_bad_input(arguments, words, tmp_path):
    cli.refused(tmp_path, words, "limit", *arguments)


def test_frozen_second_layer(tmp_path):
    # One neuron with a = 1 and the points e1, e2: w tends to the direction (1, 1), margin 1/sqrt(2) for |w| = 1.
    case = given(tmp_path, np.eye(2), [1, 1], [[0.2, 0.1]], [1.0])
    found = document(*case, "--train", "first")
    assert found["kind"] == "margin"
    assert found["margin"] == pytest.approx(math.sqrt(0.5), rel=1e-10)
    assert run(*case, "--train", "first").exit_code == 0
