"""Run the numeric tests as other machines would: other CPUs, threads, no PyTorch, no Ctrl-C, a busy machine.

``make portable`` runs all settings; ``python tests/portable.py Nehalem generic -- -x`` those whose names contain one of
the words, with more options for pytest after ``--``.
"""

import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = [f"tests/{name}" for name in ("problem", "sectors", "margins", "data", "dynamics", "theory", "report", "cli")]
HIDE_TORCH = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = classmethod(lambda _, name, *rest: None if name.split(".")[0] == "torch" else find(name, *rest))
"""


def dispatched():
    """CPU features beyond the common ground that NumPy uses on this machine."""
    from numpy._core import _multiarray_umath as core

    return [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]


def settings(folder):
    """Name and environment of every setting; each that compiles for another CPU keeps that apart."""
    found = {"as it is": {}, "fresh draws": {"HYPOTHESIS_PROFILE": "fresh"}}
    if platform.machine() in ("x86_64", "AMD64"):
        modern = {"X86_V3", "AVX2"} & set(dispatched())  # Haswell and Zen need it, the others do not
        for core in ("Haswell", "Zen", "Sandybridge", "Nehalem") if modern else ("Nehalem",):
            found[f"OpenBLAS for {core}"] = {"OPENBLAS_CORETYPE": core}
        if dispatched():
            found["NumPy without " + " ".join(dispatched())] = {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched())}
    found["numba for a generic CPU"] = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(folder / "generic")}
    for threads in ("1", "2"):
        found[f"BLAS threads: {threads}"] = {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    (folder / "hide").mkdir()
    (folder / "hide" / "sitecustomize.py").write_text(HIDE_TORCH)
    path = os.pathsep.join(filter(None, (str(folder / "hide"), os.environ.get("PYTHONPATH"))))
    found["without PyTorch"] = {"PYTHONPATH": path}
    found["Ctrl-C ignored by the parent"] = {}
    found["busy machine"] = {}
    return found


def ignore_ctrl_c():
    """Do as a shell does to what it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(name, environment, options):
    """Run the tests under one setting; the last line of pytest, the names of what failed, seconds."""
    busy = []
    if name == "busy machine":
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * (os.cpu_count() or 1))]
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile", *PARTS, *options],
            cwd=ROOT,
            env={**os.environ, **environment},
            preexec_fn=ignore_ctrl_c if "Ctrl-C" in name else None,
            capture_output=True,
            text=True,
        )
    finally:
        for one in busy:
            one.kill()
            one.wait()
    failed = re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.MULTILINE)
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", done.stdout.rpartition("\n\n")[2] or done.stdout)
    if done.returncode and not failed:
        failed = (done.stdout + done.stderr).splitlines()[-20:]
    return ", ".join(counts) or f"pytest ended with {done.returncode}", failed, time.monotonic() - begun


def main():
    """Print a table; exit 1 if anything failed."""
    words = sys.argv[1:]
    options = words[words.index("--") + 1 :] if "--" in words else []
    words = words[: words.index("--")] if "--" in words else words
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        chosen = {k: v for k, v in settings(Path(folder)).items() if not words or any(w in k for w in words)}
        width = max(map(len, chosen), default=0)
        print(f"{'setting':{width}}  seconds  tests", flush=True)
        for name, environment in chosen.items():
            counts, failed, seconds = run(name, environment, options)
            print(f"{name:{width}}  {seconds:7.0f}  {counts}", *failed, sep="\n    " if failed else "", flush=True)
            bad = bad or bool(failed)
    sys.exit(bad)


if __name__ == "__main__":
    main()
