"""What an experiment leaves in the output folder, and whether it is still good.

``ID.json`` holds the numbers with all they came from. They are taken again, instead of run again, as long as the
parameters and the code that computed them are the same: all that ``run`` reaches (see ``problem/code.py``). What only
judges or draws is not reached, and is applied anew to the stored numbers each time.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ... import __version__
from ...problem.code import SOURCE, Definition, reached_from, version_of
from ...problem.files import replacing
from ...problem.plain import plain
from .experiment import Expectation, Experiment, Numbers
from .numbers import digest, settled

SCHEMA = 2
_RUN = "run.json"
_LIBRARIES = ("numpy", "scipy", "numba", "clarabel", "matplotlib", "scikit-learn", "torch")


@dataclass(frozen=True, slots=True)
class Stored:
    """The contents of one ``ID.json``; ``digest`` is the hash of the numbers when they were computed."""

    id: str
    quick: bool
    parameters: dict[str, Any]
    code: str
    seconds: float
    numbers: Numbers
    digest: str
    origin: dict[str, Any]

    @property
    def sound(self) -> bool:
        """Whether the numbers are those that were computed."""
        return digest(self.numbers) == self.digest


def path_of(folder: Path, name: str, ending: str = ".json") -> Path:
    """Where a file of an experiment is."""
    return folder / f"{name}{ending}"


def read(folder: Path, name: str) -> Stored | None:
    """Read what is stored of an experiment; None if there is nothing, or nothing that can be used.

    Numbers that are not those that were computed cannot be used.
    """
    found = _any(folder, name)
    return found if found is not None and found.sound else None


def doctored(folder: Path, name: str) -> bool:
    """Whether a file is there whose numbers are not those that were computed."""
    found = _any(folder, name)
    return found is not None and not found.sound


def _any(folder: Path, name: str) -> Stored | None:
    document = _document(folder, name)
    return None if document is None else Stored(**{field: document[field] for field in Stored.__slots__})


def _document(folder: Path, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path_of(folder, name).read_text(encoding="utf-8"))
        usable = found["schema"] == SCHEMA and set(Stored.__slots__) <= set(found)
    except (FileNotFoundError, json.JSONDecodeError, KeyError, TypeError):
        return None
    return found if usable else None


def is_current(stored: Stored, one: Experiment, quick: bool) -> bool:
    """Whether the stored numbers are those of the present parameters and code."""
    return stored.parameters == plain(one.settings(quick)) and stored.code == code_version(one)


def made(one: Experiment, quick: bool, numbers: Numbers, seconds: float) -> Stored:
    """Return the numbers of a run with all they came from."""
    origin = {"version": __version__, "machine": _machine(), "libraries": _versions()}
    kept = settled(numbers)
    settings = plain(one.settings(quick))
    return Stored(one.id, quick, settings, code_version(one), round(seconds, 2), kept, digest(kept), origin)


def save(folder: Path, one: Experiment, stored: Stored, expectations: Iterable[Expectation] = ()) -> None:
    """Write ``ID.json``; after a kill it is the old one or the new one."""
    document = {
        "schema": SCHEMA,
        "title": one.title,
        "caption": one.caption,
        "illustration": one.illustration,
        "expectations": [{**asdict(e), "verdict": e.verdict} for e in expectations],
        "unstated": [asdict(choice) for choice in one.unstated],
        **asdict(stored),
    }
    save_text(path_of(folder, one.id), json.dumps(document, allow_nan=False) + "\n")


def borrowed(stored: Stored, one: Experiment) -> Stored:
    """Return the stored numbers of another experiment that shares the run, as those of this one."""
    return replace(stored, id=one.id)


def page_of(folder: Path, name: str) -> dict[str, Any] | None:
    """Return all that ``ID.json`` says but the numbers; None if there is nothing that can be used."""
    document = _document(folder, name)
    if document is None or digest(document["numbers"]) != document["digest"]:
        return None
    del document["numbers"]
    return document


def save_run(folder: Path, seconds: float, jobs: int, names: Iterable[str]) -> None:
    """Write ``run.json``: what was made in one go, how long that took, and on how many cores.

    An earlier one stays as long as it made more of the results that are there.
    """
    digests = {one: page["digest"] for one in names if (page := page_of(folder, one)) is not None}
    before = read_run(folder)
    there = 0 if before is None else sum(_is(folder, one, digest) for one, digest in before["digests"].items())
    if digests and len(digests) >= there:
        run = {"seconds": round(seconds, 1), "cores": os.cpu_count(), "jobs": jobs, "digests": digests}
        save_text(folder / _RUN, json.dumps(run) + "\n")


def _is(folder: Path, name: str, wanted: str) -> bool:
    document = _document(folder, name)
    return document is not None and bool(document["digest"] == wanted)


def read_run(folder: Path) -> dict[str, Any] | None:
    """Return what ``run.json`` says; None if there is nothing that can be used."""
    try:
        found: dict[str, Any] = json.loads((folder / _RUN).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found if set(found) == {"seconds", "cores", "jobs", "digests"} else None


def save_text(path: Path, text: str) -> None:
    """Write a file in one go: after a kill it is the old one or the new one."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def save_figure(folder: Path, one: Experiment, numbers: Numbers) -> None:
    """Draw the numbers as ``ID.png`` and ``ID.svg``."""
    import io

    from matplotlib import rc_context
    from PIL import Image

    with rc_context({"svg.hashsalt": one.id, "svg.fonttype": "path", "font.size": 9.0}):
        figure = one.plot(numbers)
        pixels = io.BytesIO()
        figure.savefig(pixels, format="png", dpi=110)
        figure.savefig(path_of(folder, one.id, ".svg"), metadata={"Date": None}, dpi=150)
    with Image.open(pixels) as picture:
        picture.convert("RGB").save(path_of(folder, one.id, ".png"), optimize=True)


_TOLD: dict[str, str] = {}  # versions that the process which started this one has read off the code already


def take_versions(versions: Mapping[str, str]) -> None:
    """Take over the hashes of the code of experiments, by their ids: reading all of it takes longer than many runs."""
    _TOLD.update(versions)


def code_version(one: Experiment) -> str:
    """Return the hash of the code that computes the numbers of an experiment."""
    return _TOLD.get(one.id) or _version(one.run)


@cache
def _version(run: Callable[..., Numbers]) -> str:
    """Read the code once a process: the pages ask for all experiments after each that ends."""
    return version_of(run)


def reached(one: Experiment) -> list[Definition]:
    """Return the definitions that compute the numbers of an experiment."""
    return reached_from(SOURCE, one.run.__module__.partition(".")[2], one.run.__name__)


def _machine() -> dict[str, Any]:
    cores = os.cpu_count()
    return {"python": platform.python_version(), "system": platform.system(), "cores": cores}


def _versions() -> Mapping[str, str]:
    found = {}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
