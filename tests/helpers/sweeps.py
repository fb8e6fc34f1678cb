"""Measures for tests of sweeps: cheap, slow, hungry, broken and deadly ones; the plain loop they are held against."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from reluflow import Sweep, Undecided

TESTS = Path(__file__).parents[1]


def cheap(problem, power=2):
    """Numbers that depend on everything in a problem."""
    return {
        "sum": float((problem.net.W**power).sum() / 3.0 + problem.data.X.sum()),
        "scale": float(problem.net.log_norms.max()),
        "neurons": problem.net.p,
        "even": problem.net.p % 2 == 0,
        "name": problem.data.name,
        "none": None,
        "large": float("inf"),
    }


def slow(problem, seconds=0.02):
    """The same, and as if it were work."""
    time.sleep(seconds)
    return cheap(problem)


def moody(problem):
    """Something else for every width."""
    width = problem.net.p
    if width == 2:
        raise Undecided("cannot tell.", {"guess": 0.5})
    if width == 3:
        raise ZeroDivisionError("a bug")
    if width == 4:
        return {"list": [1, 2]}
    if width == 5:
        time.sleep(30)
    if width == 6:
        return {"huge": float(np.ones(2**28).sum())}  # 2 GB
    return width


def deadly(problem):
    """Takes the process with it on one problem."""
    if problem.net.p == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return problem.net.p


def deaf(problem):
    """Holds on to the process on one problem, and hears no alarm."""
    if problem.net.p == 3:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(60)
    return problem.net.p


def arrays(problem):
    """An array beside a number."""
    return {"W": problem.net.W, "one": np.float64(problem.net.W[0, 0])}


def small(function="cheap", seeds=6, **options):
    """A sweep of 2 x 3 x seeds problems that takes no time."""
    return Sweep(
        **{
            "data": {"source": "phuong", "n": [4, 6], "d": 2},
            "network": {"width": [1, 2, 3], "seed": {"range": [0, seeds]}},
            "measures": [f"helpers.sweeps:{function}"],
            "folder": TESTS,
            **options,
        }
    )


def loop(sweep, function=cheap):
    """The plain loop: what the rows must be, by the number of the problem."""
    return {index: function(sweep.problem_at(index)) for index in range(len(sweep))}


def rows(results, label="cheap"):
    """The same of the rows of a sweep."""
    table = results.table()
    own = {name.partition(".")[2]: column.tolist() for name, column in table.items() if name.startswith(f"{label}.")}
    found = {}
    for k, index in enumerate(table["index"].tolist()):
        assert index not in found
        found[index] = {name: column[k] for name, column in own.items()}
    return found


def lines(folder):
    """All rows that stand in the files, one by one."""
    from reluflow.sweep.store import tails

    return [row["i"] for tail in tails(Path(folder)) for row in tail.news() if "i" in row]
