"""Build wheel and sdist, install each into an environment of its own outside the tree, and try what a newcomer tries.

    python tests/dist.py                      # with this Python
    python tests/dist.py --python python3.13  # with others too (repeatable)
    python tests/dist.py --keep DIR           # leave wheel and sdist in DIR

No extra is installed, so that anything beyond the core dependencies would be missed at once.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

SMOKE = """
import json, pathlib, sys
from importlib.metadata import metadata, packages_distributions, requires, version
import reluflow as rf

assert pathlib.Path(rf.__file__).is_relative_to(sys.prefix), rf.__file__
for name in rf.__all__:
    getattr(rf, name)
told = rf.explain(rf.example("EX1").data, width=10)
assert told.limit is not None and told.headline
try:
    rf.learn.FlowLimitClassifier
except rf.ProblemError as error:
    assert "pip install 'reluflow[learn]'" in str(error), error
else:
    raise AssertionError("reluflow.learn works without its extra?")

from packaging.requirements import Requirement

def closure(name, found):
    for line in requires(name) or ():
        need = Requirement(line)
        if need.name.lower() not in found and (need.marker is None or need.marker.evaluate({"extra": ""})):
            found.add(need.name.lower())
            closure(need.name, found)
    return found

core = closure("reluflow", {"reluflow"})
owners = packages_distributions()
used = {owner.lower() for name in list(sys.modules) for owner in owners.get(name.split(".")[0], ())}
foreign = used - core - {"packaging", "pip", "setuptools"}
assert not foreign, foreign
extras = metadata("reluflow").get_all("Provides-Extra")
print(json.dumps({"version": version("reluflow"), "python": sys.version.split()[0], "extras": sorted(extras)}))
"""


def run(*program: object, **options: object) -> str:
    """Run a program without what this one inherited; show what it said if it fails."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([str(part) for part in program], capture_output=True, text=True, env=env, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, program))[:200]} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def contents(archive: Path) -> set[str]:
    """Return the files of the package in a wheel or an sdist, as seen from the package."""
    if archive.suffix == ".whl":
        names = zipfile.ZipFile(archive).namelist()
        return {name.removeprefix("reluflow/") for name in names if name.startswith("reluflow/")}
    with tarfile.open(archive) as tar:
        names = [entry.name.partition("/")[2] for entry in tar.getmembers() if entry.isfile()]
    return {name.removeprefix("src/reluflow/") for name in names if name.startswith("src/reluflow/")}


def here() -> set[str]:
    """Return the files of the package in the tree."""
    top = ROOT / "src" / "reluflow"
    files = (file for file in top.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(top).as_posix() for file in files}


def attempt(archive: Path, python: str, folder: Path) -> None:
    """Install an archive into a fresh environment and try it there."""
    run(python, "-m", "venv", folder)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    inside, reluflow = scripts / "python", scripts / "reluflow"
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", archive)
    run(inside, "-m", "pip", "check")
    said = run(reluflow, "--version", cwd=folder).strip()
    assert said == f"reluflow {PROJECT['version']}", said
    explained = run(reluflow, "explain", cwd=folder)
    assert "Verdict: every prediction that applies and could be decided was seen." in explained, explained
    page = folder / "report.html"
    run(reluflow, "explain", "--width", "10", "--out", page, cwd=folder)
    assert "<html" in page.read_text(encoding="utf-8"), "no page was written"
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "packaging")
    told = json.loads(run(inside, "-c", SMOKE, cwd=folder).splitlines()[-1])
    assert told["version"] == PROJECT["version"], told
    assert told["extras"] == sorted(PROJECT["optional-dependencies"]), told
    print(
        f"{archive.name} on Python {told['python']}: installed, imported, explained; extras {', '.join(told['extras'])}"
    )


def main() -> None:
    """Build, look inside, install, try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="another interpreter to try the wheel with")
    parser.add_argument("--keep", type=Path, help="a folder for wheel and sdist (default: none is kept)")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reluflow-dist-") as name:
        folder = Path(name)
        run(sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT, cwd=folder)
        archives = sorted((folder / "dist").iterdir())
        assert [archive.name[-4:] for archive in archives] == [".whl", "r.gz"], archives
        for archive in archives:
            lost = here() - contents(archive)
            assert not lost, f"{archive.name} lacks {sorted(lost)}"
            print(f"{archive.name}: {archive.stat().st_size / 1000:.0f} kB, all {len(here())} files of the package")
            attempt(archive, sys.executable, folder / f"env-{archive.name[-3:]}")
        for python in told.python:
            attempt(archives[0], python, folder / f"env-{Path(python).name}-{told.python.index(python)}")
        if told.keep:
            told.keep.mkdir(parents=True, exist_ok=True)
            for archive in archives:
                (told.keep / archive.name).write_bytes(archive.read_bytes())


if __name__ == "__main__":
    main()
