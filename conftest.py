"""Without PyTorch nothing of reluflow.deep can run: say so instead of failing."""

from importlib.util import find_spec

WITHOUT = "torch is not installed: the tests of reluflow.deep did not run; pip install torch==2.13.0 brings it."

collect_ignore_glob = [] if find_spec("torch") else ["src/reluflow/deep/*.py"]


def pytest_terminal_summary(terminalreporter):
    """Say what did not run, also where -q hides the skips."""
    if not find_spec("torch"):
        terminalreporter.write_line(WITHOUT)
