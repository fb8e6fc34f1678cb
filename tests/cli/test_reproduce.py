"""reluflow reproduce."""

import json

from helpers.cli import process, run


def test_one_quick(tmp_path):
    done = process("reproduce", "sbg-f4", "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "SBG-F4" in done.stdout
    assert (tmp_path / "reproduction-quick" / "SBG-F4.png").stat().st_size > 1000
    again = run("reproduce", "SBG-F4", "--quick", "--json", "--out", tmp_path / "reproduction-quick")
    document = json.loads(again.stdout)
    assert document["schema"] == 1
    assert document["outcomes"][0]["state"] == "kept"


def test_list():
    done = process("reproduce", "--list", "--paper", "LL", "--json")
    ids = [one["id"] for one in json.loads(done.stdout)["experiments"]]
    assert ids[0] == "LL-F1-left"
    assert "LL-TAB1" in ids


def test_bad_input(tmp_path):
    for arguments, said in (
        ((), "nothing was asked for"),
        (("PL-F77",), "PL-F77"),
        (("--paper", "QQ"), "no paper 'QQ'"),
        (("SBG-F4", "--jobs", "0"), "jobs is 0"),
        (("SBG-F4", "--redraw"), "run it first"),
    ):
        done = run("reproduce", *arguments, "--out", str(tmp_path / "out"))
        assert done.exit_code == 2, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
