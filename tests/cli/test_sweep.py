"""``reluflow sweep``, as a user would call it."""

import json

import pytest

from helpers.cli import document, process, run
from helpers.sweeps import TESTS, loop, small
from reluflow import Sweep, open_sweep

SPEC = """
[data]
source = "phuong"
n = [4, 6]
d = 2

[network]
width = [1, 2, 3]
seed = { range = [0, 6] }

[measures]
cheap = { measure = "helpers.sweeps:cheap" }
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path / "spec.toml"


def test_list_prints_the_count_first(spec):
    result = run("sweep", "list", spec)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "36 problems; measured: cheap"
    assert sum("network.width=" in line for line in lines) == 20
    assert small().fingerprint_at(0) in result.stdout
    assert small().fingerprint_at(35) in result.stdout
    assert "..." in result.stdout
    found = document("sweep", "list", spec)
    assert found["problems"] == 36
    assert [row["index"] for row in found["rows"]] == [*range(10), *range(26, 36)]
    assert found["rows"][3]["parameters"]["network.width"] == small().parameters_at(3)["network.width"]


def test_run_status_collect_plot(spec, tmp_path):
    out = tmp_path / "out"
    result = run("sweep", "run", spec, "--out", out, "--shard", "1/2")
    assert result.exit_code == 0, result.stderr
    assert "18 of 36 problems have a row" in result.stdout
    assert "the rest takes about" in result.stdout
    found = document("sweep", "status", out)
    assert (found["total"], found["left"], found["states"]["done"]) == (36, 18, 18)
    partly = run("sweep", "collect", out, "--to", tmp_path / "part.csv")
    assert "note: 18 of 36 problems have no row yet." in partly.stderr
    found = document("sweep", "run", spec, "--out", out)
    assert found["left"] == 0
    result = run("sweep", "collect", out, "--to", tmp_path / "table.csv")
    assert "36 rows written to" in result.stdout
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 37
    result = run("sweep", "plot", out, "--x", "width", "--y", "sum", "--color", "n")
    assert result.exit_code == 0, result.stderr
    assert (out / "plots" / "width sum n.png").stat().st_size > 1000
    assert "data:image/png" in (out / "index.html").read_text()
    result = run("sweep", "plot", out, "--x", "width", "--y", "n", "--color", "even", "--out", tmp_path / "map.svg")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "map.svg").read_text().startswith("<?xml")


def test_two_processes_of_its_own(spec, tmp_path):
    """As a command, where the module of the measure lies beside the spec."""
    (tmp_path / "mine.py").write_text((TESTS / "helpers" / "sweeps.py").read_text())
    spec.write_text(SPEC.replace("helpers.sweeps", "mine"))
    done = process("sweep", "run", spec, "--out", tmp_path / "out", "--jobs", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["states"]["done"] == 36
    table = open_sweep(tmp_path / "out").table()
    assert table["cheap.sum"].tolist() == [one["sum"] for one in loop(small()).values()]


def test_failed_rows_and_their_messages(spec, tmp_path):
    spec.write_text(SPEC.replace("sweeps:cheap", "sweeps:moody"))
    result = run("sweep", "run", spec, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert ["12", "cannot", "tell."] in [line.split() for line in result.stdout.splitlines()]
    assert "--retry tries these again" in result.stdout
    assert document("sweep", "run", spec, "--out", tmp_path / "out", code=3)["states"]["failed"] == 12


def test_the_line_for_slurm(spec, tmp_path):
    words = ("sweep", "run", spec, "--out", tmp_path / "out", "--print-slurm")
    result = run(*words, "--shard", "1/16", "--limit-time", "60")
    assert result.exit_code == 0, result.stderr
    line = result.stdout.replace("\n", "")
    assert line.startswith("sbatch --array=1-16 ")
    assert line.endswith("--limit-time 60 --shard $SLURM_ARRAY_TASK_ID/16'")
    assert not (tmp_path / "out").exists()
    assert "--shard K/N is needed" in run(*words).stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("width = [1, 2, 3]", "widht = 3"), "network.widht is not known; did you mean 'width'"),
        (("width = [1, 2, 3]", "width = []"), "network.width = [] has no value"),
        (("n = [4, 6]", "n = [4, 0]"), "data.n = 0"),
        (("[data]", "[dta]"), "did you mean 'data'"),
        (("[data]", "[data"), "is no TOML"),
    ],
)
def test_bad_specs(spec, tmp_path, change, words):
    spec.write_text(SPEC.replace(*change))
    for verb in (("list", spec), ("run", spec, "--out", tmp_path / "out")):
        result = run("sweep", *verb)
        assert result.exit_code == 2
        assert words in result.stderr
        assert str(spec) in result.stderr or "problem" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "SPEC", "--out", "out", "--jobs", "0"), "--jobs 0"),
        (("run", "SPEC", "--out", "out", "--shard", "5/2"), "K/N is needed"),
        (("run", "SPEC", "--out", "out", "--shard", "x"), "--shard x was given"),
        (("run", "SPEC", "--out", "out", "--limit-time", "-1"), "a positive number of seconds"),
        (("status", "nowhere"), "is no folder"),
        (("collect", "nowhere", "--to", "a.txt"), ".parquet, .csv, .nc"),
        (("collect", "nowhere", "--to", "a.csv"), "is no folder"),
        (("plot", "nowhere", "--x", "a", "--y", "b"), "is no folder"),
        (("run", "no.toml", "--out", "out"), "there is no file no.toml"),
    ],
)
def test_bad_words(spec, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    result = run("sweep", *(str(spec) if word == "SPEC" else word for word in words))
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_the_spec_of_the_docs():
    file = TESTS.parent / "docs" / "sweep" / "hinted.toml"
    if not file.exists():
        pytest.skip("docs are not part of this installation")
    sweep = Sweep.read(file)
    assert len(sweep) == 2000
    assert {axis.name for axis in sweep.plan.axes} == {"data.H", "network.scale", "network.seed"}
