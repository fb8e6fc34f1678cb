"""``reluflow studio``: it opens at the address it prints, and refuses what it cannot do in words."""

import json
import os
import signal
import socket
import sys
import time
import urllib.request

import pytest

import reluflow as rf
from helpers.browser import studio
from helpers.cli import run


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("studio", "--port", "0", "--no-browser")
    assert result.exit_code == 2
    assert 'pip install "reluflow[studio]"' in result.stderr.replace("\n", " ")


def test_a_port_that_cannot_be_used():
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: the studio was not started")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("studio", "--no-browser", "--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "--port 0" in result.stderr
    assert run("studio", "--no-browser", "--port", "70000").exit_code == 2


def test_data_that_are_too_many():
    result = run("studio", "phuong:n=2000,d=3", "--no-browser")
    assert result.exit_code == 2
    assert "at most 600" in result.stderr


def test_it_opens_with_the_data_and_closes_with_its_processes(tmp_path):
    pytest.importorskip("fastapi", reason="FastAPI is not installed: the studio was not started")
    (tmp_path / "mine.csv").write_text("1,2,1\n-1,-2,-1\n2,1,1\n")
    with studio(str(tmp_path / "mine.csv")) as (address, process):
        with urllib.request.urlopen(f"{address}api/presets") as reply:
            first = json.load(reply)["first"]
        assert first["points"] == [[1, 2], [-1, -2], [2, 1]]
        assert rf.studio.problem_of(first).data.n == 3
        children = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if parent(pid) == process.pid]
        assert len(children) >= 2
        process.send_signal(signal.SIGINT)
        process.wait(20)
    assert process.returncode == 130
    end = time.monotonic() + 20
    while any(parent(pid) is not None for pid in children) and time.monotonic() < end:
        time.sleep(0.05)
    assert all(parent(pid) is None for pid in children)


def parent(pid):
    """Return the parent of a process, or None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, above = file.read().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(above)
