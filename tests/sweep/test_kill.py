"""kill -9 at random moments, of workers and of drivers: every row is there once at the end, as in a plain loop."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import reluflow
from helpers.sweeps import TESTS, lines, loop, rows, small
from reluflow import open_sweep
from reluflow.sweep.store import tails

DRIVER = """
import sys
from helpers.sweeps import small
if __name__ == "__main__":
    small("slow", seeds=40).run(sys.argv[1], jobs=2)
"""


def start(folder):
    paths = os.pathsep.join([str(Path(reluflow.__file__).parents[1]), str(TESTS)])
    env = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", DRIVER, str(folder)], env=env, stderr=subprocess.PIPE, text=True)


def written(folder):
    return len(lines(folder)) if (folder / "rows").exists() else 0


def wait_for(folder, number, driver):
    """Wait until so many rows are there; False if the driver has ended before."""
    while written(folder) < number:
        if driver.poll() is not None:
            return False
        time.sleep(0.01)
    return True


def workers(folder):
    """Processes that have written a file and are there."""
    found = []
    for tail in tails(folder):
        next(tail.news(), None)
        if tail.header and Path(f"/proc/{tail.header['pid']}").exists():
            found.append(tail.header["pid"])
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def test_workers_and_drivers_are_killed(tmp_path):
    draw = random.Random(3)
    total = len(small(seeds=40))
    driver = start(tmp_path)
    killed = 0
    for number in (10, 40):  # two workers, one after the other
        assert wait_for(tmp_path, number, driver), driver.stderr.read()
        time.sleep(draw.uniform(0, 0.05))
        killed += sum(map(kill, draw.sample(workers(tmp_path), 1)))
    assert killed == 2
    assert wait_for(tmp_path, 80, driver), driver.stderr.read()
    time.sleep(draw.uniform(0, 0.05))
    left = workers(tmp_path)
    driver.kill()
    driver.wait()
    driver.stderr.close()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in left) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)  # they do not outlive their driver
    before = written(tmp_path)
    assert 80 <= before < total
    driver = start(tmp_path)
    assert driver.wait(timeout=300) == 0, driver.stderr.read()
    driver.stderr.close()
    found = open_sweep(tmp_path)
    assert rows(found, "slow") == loop(small(seeds=40))
    assert sorted(lines(tmp_path)) == list(range(total))  # once in the files too
    assert found.status().states["done"] == total
