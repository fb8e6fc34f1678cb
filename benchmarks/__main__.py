"""Run every solver on every problem it can do, each cell in a process and a time budget of its own, and write the page.

    python -m benchmarks                        # everything that is not there yet: half an hour on two cores
    python -m benchmarks late scales/MNIST      # problems, or cases of them, by parts of their names
    python -m benchmarks scales --solver numpy  # some solvers only
    python -m benchmarks --fresh                # measure again what is there
    python -m benchmarks --list                 # what there is
    python -m benchmarks --page                 # write the page from what is stored

What was measured is kept in docs/benchmarks.json cell by cell, so that a run that was stopped goes on where it was; a
cell is measured again when the package, the problem or the solver has changed. `benchmarks.measure` says how to add a
solver or a problem.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import reluflow
from benchmarks import page
from benchmarks.measure import HERE, Cells, Target, cells, missing, modules, settings

ROOT = HERE.parent
STORE = ROOT / "docs" / "benchmarks.json"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_ALONE = dict.fromkeys(_THREADS, "1") | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
_BOTH = 2  # budgets: one for preparing, one for the run
_PATIENCE = 3.0  # seconds of the processor after which a solver that does not listen is ended
_PACKAGES = ["numpy", "scipy", "numba", "clarabel", "matplotlib", "scikit-learn", "daqp", "torch", "diffrax", "jax"]


@cache
def _digest(*files: Path) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()[:12]


def stamp(problem: ModuleType, *solvers: ModuleType) -> str:
    """Return a hash of the package, of how is measured, of a problem, and of where solvers do its task."""
    source = sorted(Path(reluflow.__file__).parent.rglob("*.py"))
    at_work = {str(inspect.getsourcefile(getattr(solver, problem.TASK))) for solver in solvers}
    files = {HERE / "measure.py", HERE / "nets.py", *(Path(str(one.__file__)) for one in (problem, *solvers))}
    return _digest(*source, *sorted(files | {Path(file) for file in at_work}))


def machine() -> dict[str, Any]:
    """Return where this runs."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.processor())
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30) if hasattr(os, "sysconf") else None
    return {"processor": model, "cores": os.cpu_count(), "memory GB": memory, "system": platform.platform(terse=True)}


def versions() -> dict[str, str]:
    """Return what is installed of what takes part."""
    found = {"reluflow": reluflow.__version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def wanted(names: list[str], solvers: list[str]) -> Iterator[tuple[ModuleType, str, ModuleType]]:
    """Return the problems, cases and solvers that these parts of names select."""
    for problem_name, problem in modules("problems").items():
        for case, about in problem.CASES.items():
            if names and not any(part in f"{problem_name}/{case}" for part in names):
                continue
            for solver_name, solver in modules("solvers").items():
                if (not solvers or any(part in solver_name for part in solvers)) and settings(
                    solver, problem, about, solver_name
                ):
                    yield problem, case, solver


def short(module: ModuleType) -> str:
    """Return the name of a problem or a solver."""
    return module.__name__.rpartition(".")[2]


def measure(problem: ModuleType, case: str, solver: ModuleType, share: float) -> Iterator[dict[str, Any]]:
    """Measure a solver on a case in a process of its own."""
    name, about = short(solver), problem.CASES[case]
    most = share * about.budget
    if lacks := missing(solver):
        yield {"setting": None, **_nothing("not installed", f"{lacks} is not installed")}
        return
    program = [sys.executable, "-m", "benchmarks", "--cell", short(problem), case, name, stamp(problem), str(share)]
    found, err, ended = _followed(program)
    yield from found
    some = settings(solver, problem, about, name)
    if (ended or err) and len(found) < len(some):
        words = f"ended after {most:g} s" if ended else err.strip().splitlines()[-1]
        yield {"setting": some[len(found)], **_nothing("out of time" if ended else "failed", words, most)}


def _followed(program: list[str]) -> tuple[list[dict[str, Any]], str, bool]:
    """Run a program to its end, or to that of its budget if it does not stop: cells, errors, whether ended."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, **_ALONE, "PYTHONPATH": path}
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=env)

        def listen() -> None:
            assert child.stdout is not None
            lines.extend(json.loads(line) for line in child.stdout if line.startswith("{"))

        ear, ended = threading.Thread(target=listen), False
        ear.start()
        while child.poll() is None:
            time.sleep(0.1)
            last = lines[-1] if lines else {}
            if "begun" in last and _used(child.pid) - last["begun"] > _BOTH * last["budget"] + _PATIENCE:
                child.kill()
                ended = True
        ear.join()
        errors.seek(0)
        said = errors.read() if child.returncode and not ended else ""
    return [line for line in lines if "begun" not in line], said, ended


def _used(pid: int) -> float:
    """Return the processor seconds of a process, 0 where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _nothing(status: str, note: str, seconds: float = 0.0) -> dict[str, Any]:
    empty: dict[str, Any] = {"points": [], "figures": {}, "sizes": {}, "error": None, "memory": None, "peak": None}
    return {"status": status, "note": note[:300], "cpu": seconds, "wall": seconds, "load": None, **empty}


def rounded(value: Any) -> Any:
    """Keep four digits of every number: more would be noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def show(cell: dict[str, Any]) -> None:
    """Print a line."""
    head = f"{cell['problem']:13} {cell['case'][:42]:42} {cell['solver']:14} {page.spell(cell['setting']):>9}"
    if cell["status"] != "done":
        print(f"{head}  {cell['status']}: {cell['note'][:80]}", flush=True)
        return
    error = "" if cell["error"] is None else f"{cell['error']:.1e}"
    memory = "" if cell["memory"] is None else f"{cell['memory']:.0f} MB"
    print(f"{head} {cell['cpu']:9.4f} s {error:>8} {memory:>8}  {page.figures(cell)[:100]}", flush=True)


def verdicts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hold what was measured against what was promised."""
    rows = []
    for name, problem in modules("problems").items():
        own = Cells(cell for cell in found if cell["problem"] == name)
        for target in getattr(problem, "targets", lambda _: ())(own):
            assert isinstance(target, Target)
            rows.append({"problem": name, **vars(target), "met": target.met})
    return rows


def load() -> dict[str, Any]:
    """Return what is stored."""
    return json.loads(STORE.read_text()) if STORE.exists() else {"schema": 1, "cells": []}


def save(document: dict[str, Any]) -> None:
    """Write the store: whole or not at all, one cell a line."""
    head = {key: value for key, value in document.items() if key != "cells"}
    lines = ",\n".join(json.dumps(rounded(cell)) for cell in document["cells"])
    text = json.dumps(rounded(head), indent=1).removesuffix("\n}") + f',\n "cells": [\n{lines}\n]\n}}\n'
    new = STORE.with_suffix(".new")
    new.write_text(text)
    new.replace(STORE)


def run(names: list[str], solvers: list[str], fresh: bool, share: float) -> dict[str, Any]:
    """Measure what is wanted and not there."""
    document = load()
    order = {(short(p), case, short(s)): k for k, (p, case, s) in enumerate(wanted([], []))}
    document["cells"] = [cell for cell in document["cells"] if _key(cell) in order]
    for problem, case, solver in wanted(names, solvers):
        key, code = (short(problem), case, short(solver)), stamp(problem, solver)
        there = [cell for cell in document["cells"] if _key(cell) == key]
        stale = [cell for cell in there if cell["code"] != code or _poor(cell, share)]
        if there and not stale and not fresh:
            continue
        rest = [cell for cell in document["cells"] if _key(cell) != key]
        new = []
        for cell in measure(problem, case, solver, share):
            new.append(
                {
                    "problem": key[0],
                    "case": case,
                    "solver": key[2],
                    **cell,
                    "when": round(time.time()),
                    "share": share,
                    "code": code,
                }
            )
            show(new[-1])
        document["cells"] = sorted(rest + new, key=lambda cell: order[_key(cell)])
        document |= {"machine": machine(), "versions": versions()}
        save(document)
    return judged(document)


def judged(document: dict[str, Any]) -> dict[str, Any]:
    """Hold everything against what was promised, count what was measured with code that has changed since, and save."""
    problems, solvers = modules("problems"), modules("solvers")
    now = {key: stamp(problems[key[0]], solvers[key[2]]) for key in {_key(cell) for cell in document["cells"]}}
    document["stale"] = sum(cell["code"] != now[_key(cell)] for cell in document["cells"])
    document["targets"] = verdicts(document["cells"])
    save(document)
    return document


def _poor(cell: dict[str, Any], share: float) -> bool:
    """Whether there is more to hope for than what was measured."""
    return bool(cell["status"] == "not installed" or (cell["status"] == "out of time" and cell["share"] < share))


def _key(cell: dict[str, Any]) -> tuple[str, str, str]:
    return cell["problem"], cell["case"], cell["solver"]


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="problems or problem/case, by parts of their names")
    parser.add_argument("--solver", action="append", default=[], help="part of the name of a solver (repeatable)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    parser.add_argument("--share", type=float, default=1.0, help="give every solver this part of its time only")
    parser.add_argument("--list", action="store_true", help="list problems, cases and solvers")
    parser.add_argument("--page", action="store_true", help="only write the page from what is stored")
    parser.add_argument("--cell", nargs=5, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.cell:
        name, case, solver, code, share = told.cell
        for cell in cells(modules("problems")[name], case, modules("solvers")[solver], code, float(share)):
            print(json.dumps(cell, default=float), flush=True)
        return
    if told.list:
        for problem, case, one in wanted(told.names, told.solver):
            print(f"{short(problem)}/{case}: {short(one)}")
        return
    document = judged(load()) if told.page else run(told.names, told.solver, told.fresh, told.share)
    page.write(document, STORE.parent)
    print()
    for name in dict.fromkeys(cell["problem"] for cell in document["cells"]):
        for law in page.laws([cell for cell in document["cells"] if cell["problem"] == name]):
            print(f"{name}: seconds of {law}")
    for row in document["targets"]:
        if not told.names or any(part.partition("/")[0] in row["problem"] for part in told.names):
            print(f"{'met   ' if row['met'] else 'MISSED'} {row['what']}: {page.promise(row)}")
    print(f"{sum(row['met'] for row in document['targets'])} of {len(document['targets'])} targets met")


if __name__ == "__main__":
    main()
