"""What all tests share: the same draws and patience on every machine, Ctrl-C, and a word on what did not run."""

import os
import signal
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

# Several tests at once are faster than several threads in one, and most problems here are small.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")
if "numpy" in sys.modules:  # a plugin was first, and it has read them already
    threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]), "blas")

# Many tests start processes, and those start sooner with what others have compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same draws everywhere, so that what passes here passes there; HYPOTHESIS_PROFILE=fresh makes new ones. No test
# may fail because the machine is busy.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fresh", settings.get_profile("same"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

WITHOUT = "torch is not installed: the tests of reluflow.deep did not run; pip install torch==2.13.0 brings it."

collect_ignore_glob = [
    *([] if find_spec("torch") else ["src/reluflow/deep/*.py"]),
    *([] if find_spec("fastapi") else ["src/reluflow/studio/server.py"]),
    *([] if find_spec("anywidget") else ["src/reluflow/studio/notebook.py"]),
    *([] if find_spec("sklearn") else ["src/reluflow/learn/*.py"]),
]


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c():
    """Hear Ctrl-C, also where the parent ignores it: shells start scripts so in the background, and it is inherited."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


#: Two calls that have all compiled code of the flow made, each its own part, so that both can be made at once.
COMPILE = (
    "align(Problem(Dataset([[1.0]], [1]), Network([[1.0]], [1.0])))",
    "flow(Problem(Dataset([[1.0]], [1]), Network([[1.0]], [1.0])), {'time': 0.1})",
)
compiling = pytest.StashKey[list[subprocess.Popen]]()


def pytest_sessionstart(session):
    """Import the package before pytest does, and begin to compile before the workers start, or each of them would."""
    # Collecting a doctest, pytest binds a room it is the first to import over the verb of the same name.
    import_module("reluflow.report")
    if getattr(session.config.option, "numprocesses", None):
        session.config.stash[compiling] = [
            subprocess.Popen([sys.executable, "-c", f"from reluflow import *; {call}"]) for call in COMPILE
        ]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node):
    """Let the tests begin when everything is compiled; the workers have collected them meanwhile."""
    for one in node.config.stash.get(compiling, []):
        one.wait()


def pytest_terminal_summary(terminalreporter):
    """Say what did not run and why, also where -q hides the skips."""
    reasons = {}
    for report in terminalreporter.stats.get("skipped", []):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons.setdefault(why.removeprefix("Skipped: "), []).append(report.nodeid)
    for why, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped {len(tests)}: {why} ({', '.join(tests[:3])}{', ...' * (len(tests) > 3)})")
    if not find_spec("torch"):
        terminalreporter.write_line(WITHOUT)
