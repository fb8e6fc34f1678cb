"""``reluflow descend``: the table, the document, the file, mistakes."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import reluflow as rf
from helpers import cli

run, document = partial(cli.run, "descend"), partial(cli.document, "descend")


def test_the_text_says_how_it_ended(tmp_path):
    result = run("EX1", "--width", 8, "--scale", 0.1, "--step", 0.1, "--steps", 2000, "--save", tmp_path / "run.npz")
    assert result.exit_code == 0, result.stderr
    for word in ("Run of gd of 8 neurons", "log loss", "stable rank", "All steps were taken: 100 %", "written to"):
        assert word in result.stdout


def test_document_and_file_are_the_run_itself(tmp_path):
    file = tmp_path / "run.npz"
    arguments = ("--width", 6, "--scale", 0.2, "--seed", 3, "--slope", 0.5, "--loss", "exponential")
    options = ("--method", "sgd", "--step", 0.05, "--epochs", 30, "--batch", 3, "--order-seed", 4, "--records", 10)
    found = document("EX1", *arguments, *options, "--save", file)
    data = rf.example("EX1").data
    problem = rf.Problem(data, rf.initialize(data.d, 6, scale=0.2, seed=3, slope=0.5), "exponential")
    here = rf.descend(problem, "sgd", step=0.05, epochs=30, batch=3, seed=4, record=10)
    assert found["records"]["iteration"] == here.settings["iteration"]
    np.testing.assert_allclose(found["records"]["log_loss"], here.log_loss, rtol=1e-15)
    assert found["records"]["log_time"][0] == "-inf"
    assert found["problem"]["fingerprint"] == problem.fingerprint()
    assert found["settings"]["batch"] == 3
    assert found["final"]["accuracy"] == np.mean(here.margins()[-1] > 0)
    assert np.array_equal(rf.Trajectory.load(file).directions, here.directions)


def test_a_tiny_start_is_jumped_out_of():
    found = document(
        "EX1",
        "--width",
        8,
        "--log-scale",
        -3000,
        "--step",
        0.1,
        "--steps",
        10**6,
        "--fast-forward",
        "--until-loss",
        0.1,
    )
    assert found["settings"]["stopped"] == "loss"
    assert found["settings"]["fast_forward"] > 10_000
    assert found["final"]["log_loss"] <= np.log(0.1)


def test_a_run_that_overflows_is_undecided_and_saved_as_far_as_it_went(tmp_path):
    file = tmp_path / "run.npz"
    result = run("EX1", "--width", 8, "--scale", 1, "--step", 1e300, "--steps", 100, "--save", file)
    assert result.exit_code == 3
    assert "too large" in result.stderr
    assert rf.Trajectory.load(file).settings["stopped"] == "diverged"
    result = run("EX1", "--width", 8, "--scale", 1, "--step", 1e300, "--steps", 100, "--json")
    found = json.loads(result.stdout)
    assert found["kind"] == "Undecided"
    assert found["partial"]["settings"]["stopped"] == "diverged"


INTERRUPTED = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
def later():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=later, daemon=True).start()
from reluflow.cli import main
main()
"""


def test_an_interrupted_run_is_printed_and_saved(tmp_path):
    file, mark = tmp_path / "run.npz", tmp_path / "mark.npz"
    arguments = [
        "--width",
        "4",
        "--step",
        "1e-6",
        "--steps",
        str(10**9),
        "--checkpoint",
        str(mark),
        "--save",
        str(file),
    ]
    command = [sys.executable, "-c", INTERRUPTED, "descend", "EX1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 130
    assert "Interrupted" in done.stdout
    assert done.stderr.startswith("reluflow: interrupted after iteration ")
    assert rf.Trajectory.load(file).settings["interrupted"] is True
    assert mark.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", 5, "--epochs", 5], "either --steps (iterations)"),
        (["--step", 0, "--steps", 5], "step must be a positive number"),
        (["--step", 0.1, "--steps", 5, "--method", "newton"], "choose one of 'gd', 'sgd', 'adam'"),
        (["--step", 0.1, "--steps", 5, "--method", "sgd"], "needs a batch size"),
        (["--step", 0.1, "--steps", 5, "--dtype", "half"], "--dtype half"),
        (["--step", 0.1, "--steps", 5, "--save", "/no/such/folder/run.npz"], "there is no folder"),
        (["--step", 0.1, "--steps", 5, "--method", "adam", "--log-scale", -3000], "--fast-forward"),
    ],
)
def test_bad_input(arguments, words):
    result = run("EX1", "--width", 4, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not result.stdout
