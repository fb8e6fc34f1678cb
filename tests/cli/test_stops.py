"""Work that is cut short: by the clock, by steps, by Ctrl-C, by a reader who goes away; and wrong command lines."""

import json
import os
import signal
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
import typer

import reluflow as rf
from helpers.cli import run
from reluflow.cli.app import app
from reluflow.cli.common import in_options
from reluflow.dynamics.flow.march import March

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes as on Unix")

LONG = ("EX1", "--width", "4")
#: Every verb that may take long, with the arguments that make it.
VERBS = {
    "explain": (),
    "flow": (),
    "limit": (),
    "align": (),
    "check": (),
    "predict": (),
    "descend": ("--step", "1e-6", "--steps", "1000000"),
}


# -- out of time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_out_of_time_on_every_verb(verb):
    result = run(verb, *LONG, *VERBS[verb], "--time-limit", 1e-9)
    assert result.exit_code == 3, result.stdout
    said = result.stdout + result.stderr
    assert "time limit ended" in " ".join(said.split())
    assert "Traceback" not in said
    result = run(verb, *LONG, *VERBS[verb], "--time-limit", 1e-9, "--json")
    assert result.exit_code == 3
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found["exit_code"] == 3
    assert found["error"]
    assert found["remedy"]
    if verb == "explain":
        assert found["limit"] is None
        assert any("time limit" in text for text in found["troubles"])
    else:
        assert found["kind"] == "OutOfTime"
        assert found["partial"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_what_is_no_time_limit(verb, seconds):
    result = run(verb, *LONG, *VERBS[verb], "--time-limit", seconds)
    assert result.exit_code == 2
    assert "--time-limit" in result.stderr


def test_what_there_is_is_saved_and_drawn(tmp_path):
    files = ("--save", tmp_path / "run.npz", "--plot", tmp_path / "run.png")
    assert run("flow", *LONG, "--time-limit", 1e-9, *files).exit_code == 3
    assert len(rf.Trajectory.load(tmp_path / "run.npz")) >= 1
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    result = run("descend", *LONG, *VERBS["descend"], "--time-limit", 1e-9, "--save", tmp_path / "gd.npz")
    assert result.exit_code == 3
    assert rf.Trajectory.load(tmp_path / "gd.npz").settings["stopped"] == "time"
    assert run("explain", *LONG, "--time-limit", 1e-9, "--out", tmp_path / "page.html").exit_code == 3
    assert "No limit was confirmed" in (tmp_path / "page.html").read_text(encoding="utf-8")


# -- explain says first that there is no limit -------------------------------------------------------


@pytest.mark.parametrize("options", [("--max-steps", 5), ("--max-log-time", 5), ("--time-limit", 1e-9)])
def test_explain_without_a_limit_says_so_first(options):
    result = run("explain", *LONG, *options)
    assert result.exit_code == 3
    assert result.stdout.startswith("No limit was confirmed")
    verdict = next(line for line in result.stdout.splitlines() if line.startswith("Verdict: "))
    assert verdict.startswith("Verdict: no limit was confirmed; as far as the flow was followed, ")
    found = json.loads(run("explain", *LONG, *options, "--json").stdout)
    assert (found["exit_code"], found["limit"]) == (3, None)


# -- Ctrl-C ------------------------------------------------------------------------------------------

#: Presses Ctrl-C at the first step of a flow or at the first neuron, and is the command line else.
PRESSED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
times = [1]
def press(*_, **__):
    if times[0]:
        times[0] -= 1
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(10**6): pass  # the signal is delivered between two instructions
def before(module, name):
    honest = getattr(module, name)
    def pressed(*given, **options):
        press()
        return honest(*given, **options)
    setattr(module, name, pressed)
where = sys.argv.pop(1)
if where == "step":
    from reluflow.dynamics.flow.march import March
    before(March, "_step")
if where == "neuron":
    from reluflow.dynamics.early import run
    before(run, "_copy")
from reluflow.cli import main
main()
"""


def pressed(where, *args):
    command = [sys.executable, "-c", PRESSED, where, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@posix
@pytest.mark.parametrize(
    ("where", "verb"),
    [("step", "flow"), ("step", "explain"), ("neuron", "align")],
)
def test_after_ctrl_c_what_there_is_is_shown(where, verb, tmp_path):
    save = ("--save", tmp_path / "kept.npz") if verb == "flow" else ()
    done = pressed(where, verb, *LONG, *save)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "nterrupted" in done.stdout + done.stderr
    assert "EX1" in done.stdout
    if verb == "explain":
        assert done.stdout.startswith("No limit was confirmed")
        assert "interrupted at log t = " in " ".join(done.stdout.partition("\n\n")[0].split())
        assert "Which theorems apply (" in done.stdout
    if save:
        assert len(rf.Trajectory.load(tmp_path / "kept.npz")) >= 1


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_after_ctrl_c_the_trajectory_takes_the_place_of_the_limit(monkeypatch, tmp_path):
    monkeypatch.setattr(March, "_step", interrupted)
    result = run("limit", *LONG, "--save", tmp_path / "kept.npz", "--json")
    assert result.exit_code == 130
    found = json.loads(result.stdout)
    assert (found["kind"], found["exit_code"]) == ("Interrupted", 130)
    assert found["partial"]["phases"]
    assert len(rf.Trajectory.load(tmp_path / "kept.trajectory.npz")) >= 1


@pytest.mark.parametrize(("verb", "where"), [("check", "finding_of"), ("predict", "_predictions")])
def test_after_ctrl_c_the_claims_looked_at_are_shown(verb, where, monkeypatch):
    from reluflow.theory import verdicts as module

    honest, left = getattr(module, where), [4]

    def pressing(*given):
        left[0] -= 1
        return honest(*given) if left[0] else interrupted()

    monkeypatch.setattr(module, where, pressing)
    result = run(verb, *LONG, "--json")
    assert result.exit_code == 130
    found = json.loads(result.stdout)
    assert found["kind"] == "Interrupted"
    items = found["partial"]["findings" if verb == "check" else "predictions"]
    assert len(items) == 3 if verb == "check" else len(items) <= 3


def test_the_flow_so_far_is_kept_in_python(monkeypatch):
    from reluflow.dynamics.flow.march import March

    problem = rf.Problem(rf.example("EX1").data, rf.initialize(2, 4, seed=0))
    honest, left, taken = March._step, [7], []

    def pressing(self, stepper):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        moved = honest(self, stepper)
        taken.append(moved.steps)
        return moved

    monkeypatch.setattr(March, "_step", pressing)
    with pytest.raises(rf.Interrupted, match="interrupted at log t") as caught:
        rf.flow(problem, progress=False)
    assert isinstance(caught.value.partial, rf.Trajectory)
    assert len(taken) == 6
    assert sum(phase.steps for phase in caught.value.partial.phases if phase.name != "early") == sum(taken)
    left[0] = 7
    found = rf.explain(problem, progress=False)
    assert (found.interrupted, found.exit_code, found.limit) == (True, 130, None)
    assert found.findings
    assert found.trajectory is not None


def test_a_ladder_ends_with_ctrl_c_and_keeps_the_scales_done(monkeypatch):
    module = import_module("reluflow.dynamics.ladder")

    honest, left = module.flow, [2]

    def pressing(*given, **options):
        left[0] -= 1
        if not left[0]:
            raise rf.Interrupted("interrupted")
        return honest(*given, **options)

    monkeypatch.setattr(module, "flow", pressing)
    problem = rf.Problem(rf.example("EX1").data, rf.initialize(2, 6, seed=0, signs=[1, -1] * 3))
    with pytest.raises(rf.Interrupted) as caught:
        rf.ladder(problem, [1e-2, 1e-4, 1e-6])
    assert np.isfinite(caught.value.partial.margins).tolist() == [True, False, False]


@posix
@pytest.mark.parametrize("words", [("--help",), (), ("flow", "--help"), ("data", "list")])
def test_a_reader_that_goes_away_is_no_bug(words):
    command = [sys.executable, "-m", "reluflow", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=600), stderr) == (141, b"")


# -- wrong command lines -----------------------------------------------------------------------------

WRONG = {
    "option": (("flow", "EX1", "--wdith", "5"), "did you mean --width?"),
    "verb": (("flwo", "EX1"), "did you mean 'flow'?"),
    "no argument": (("data", "show"), "reluflow data show --help"),
    "no number": (("flow", "EX1", "--width", "many"), "reluflow flow --help"),
    "no value": (("flow", "EX1", "--width"), "reluflow flow --help"),
    "one word more": (("flow", "EX1", "EX2"), "reluflow flow --help"),
    "nothing like it": (("flow", "EX1", "--bogus"), "reluflow flow --help"),
    "inner verb": (("data", "shw"), "did you mean 'show'?"),
    "inner option": (("data", "list", "--quick"), "reluflow data list --help"),
    "root option": (("--verison",), "did you mean --version?"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_command_line_is_answered_in_one_line(case):
    words, hint = WRONG[case]
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("reluflow: ")
    assert result.stderr.count("\n") == 1
    assert hint in result.stderr
    for json_words in (("--json", *words), (*words, "--json")):
        if case == "no value" and json_words[-1] == "--json":
            continue  # there it is the value
        result = run(*json_words)
        assert (result.exit_code, result.stderr) == (2, "")
        found = json.loads(result.stdout)
        assert (found["schema"], found["kind"], found["exit_code"]) == (1, "UsageError", 2)
        assert hint in found["remedy"]
        assert found["error"].endswith(found["remedy"])


def test_parameters_become_options():
    params = typer.main.get_command(app).commands["descend"].params
    words = {
        "raise max_log_time or until_loss=1e-300.": "raise max_log_time or --until-loss 1e-300.",
        "either steps= (iterations) or epochs= (passes).": "either --steps (iterations) or --epochs (passes).",
        "dtype = 'half' is not known; choose 'float32'.": "--dtype half is not known; choose 'float32'.",
        'fast_forward=True or train="first".': "--fast-forward or --train first.",
        "phuong:n=5,seed=0 and /tmp/log_scale/x.csv": "phuong:n=5,seed=0 and /tmp/log_scale/x.csv",
        "the step size and the seed": "the step size and the seed",
    }
    for python, options in words.items():
        assert in_options(python, params) == options


def test_no_message_of_a_verb_speaks_python():
    cases = [
        ("limit", "EX1", "--max-log-time", -1),
        ("limit", *LONG, "--max-steps", 3),
        ("limit", *LONG, "--max-log-time", 3),
        ("flow", *LONG, "--max-steps", 3),
        ("flow", *LONG, "--rtol", 5),
        ("descend", "EX1", "--steps", 5, "--epochs", 5),
        ("explain", *LONG, "--max-steps", 3),
        ("align", "EX1", "--log-scale", "-inf"),
    ]
    for words in cases:
        result = run(*words)
        said = result.stderr + result.stdout.partition("\n\n")[0] * (words[0] == "explain")
        assert result.exit_code in (2, 3)
        for name in (".partial", "`partial`", "max_log_time", "max_steps", "log_scale", "steps="):
            assert name not in said, (words, name)


def test_the_table_of_exit_codes_is_in_the_help_and_on_the_site():
    shown = " ".join(run("--help").stdout.split())
    page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "howto", "verdict.md")
    with open(page, encoding="utf-8") as stream:
        written = " ".join(stream.read().split())
    for words in (
        "0 done",
        "2 bad input",
        "3 undecided, unfinished or out of time",
        "4 a theorem contradicted",
        "130 Ctrl-C",
    ):
        assert words in shown
        assert words in written


def test_sigint_means_130():
    assert rf.Interrupted("").exit_code == 128 + signal.SIGINT
