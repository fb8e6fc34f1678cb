"""A real Dask cluster with processes of its own, one of which is killed."""

import os
import signal
import sys
import threading
import time

import pytest

from helpers.sweeps import loop, rows, small
from reluflow import ProblemError
from reluflow.sweep.store import tails


def test_a_cluster_of_processes(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'reluflow[cluster]'")
    killed = []

    def kill_one():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for tail in tails(tmp_path) if (tmp_path / "rows").exists() else ():
                if sum(1 for _ in tail.news()) >= 2 and tail.header:
                    killed.append(tail.header["pid"])
                    os.kill(tail.header["pid"], signal.SIGKILL)
                    return
            time.sleep(0.02)

    killer = threading.Thread(target=kill_one)
    killer.start()
    found = small("slow").run(tmp_path, jobs=2, dask="local")
    killer.join()
    assert killed
    assert os.getpid() not in killed
    assert rows(found, "slow") == loop(small())
    assert found.status().states["done"] == 36


def test_without_dask(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ProblemError, match=r"reluflow\[cluster\]"):
        small().run(tmp_path / "out", dask="local")


def test_no_scheduler_there(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'reluflow[cluster]'")
    with pytest.raises(ProblemError, match="no scheduler answers there"):
        small().run(tmp_path / "out", dask="no address")
