"""A file with another ending than what goes into it is refused before the work begins."""

import pytest

from helpers.cli import run

LONG = ("--width", "5000", "--log-scale", "-3000")  # would take much longer than the test may


@pytest.mark.parametrize(
    ("arguments", "option", "need"),
    [
        (("flow", "EX1", *LONG), "--save", ".npz, .csv, .tsv"),
        (("flow", "EX1", *LONG), "--plot", ".png, .svg, .pdf"),
        (("limit", "EX1", *LONG), "--save", ".npz"),
        (("limit", "EX1", *LONG), "--plot", ".png, .svg, .pdf"),
        (("align", "EX1", *LONG), "--plot", ".png, .svg, .pdf"),
        (("explain", "EX1", *LONG), "--out", ".html, .htm"),
        (("descend", "EX1", "--step", "0.1", "--steps", "100000000"), "--save", ".npz, .csv, .tsv"),
        (("descend", "EX1", "--step", "0.1", "--steps", "100000000"), "--checkpoint", ".npz"),
        (("data", "make", "linsep"), "--out", ".npz, .csv, .tsv"),
    ],
)
@pytest.mark.parametrize("name", ["x.doc", "x"])
def test_a_wrong_ending_is_refused_first(tmp_path, arguments, option, need, name):
    file = tmp_path / name
    done = run(*arguments, option, str(file))
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert f"{option} {file}" in said
    assert f"{need} is needed" in said
    assert not list(tmp_path.iterdir())


def test_a_run_as_a_table(tmp_path):
    file = tmp_path / "run.csv"
    done = run("descend", "EX1", "--step", "0.1", "--steps", "3", "--save", str(file))
    assert done.exit_code == 0, done.output
    head, *rows = file.read_text().splitlines()
    assert head.startswith("log_time,log_loss")
    assert len(rows) == 4
