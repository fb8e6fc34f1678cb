"""What an experiment leaves in the output folder, and whether it is still good.

``ID.json`` holds the numbers with all they came from. They are taken again, instead of run again, as long as the
parameters and the code that computed them are the same. That code is every module below `report` (with `deep`), the
module of the experiment and the modules of `experiments` it imports, without docstrings, comments, the texts of errors
and the functions that only judge or draw (``check...``, ``plot...``): those are applied anew to the stored numbers each
time.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .. import __version__
from ..data import plain
from ..data._files import replacing
from ._base import Expectation, Experiment, Numbers
from ._numbers import settled

SCHEMA = 1
_LAYERS = ("problem", "sectors", "margins", "data", "dynamics", "theory", "deep")
_SOURCE = Path(__file__).parents[1]
_LIBRARIES = ("numpy", "scipy", "numba", "clarabel", "matplotlib", "scikit-learn", "torch")


@dataclass(frozen=True, slots=True)
class Stored:
    """The contents of one ``ID.json``."""

    id: str
    quick: bool
    parameters: dict[str, Any]
    code: str
    seconds: float
    numbers: Numbers
    origin: dict[str, Any]


def path_of(folder: Path, name: str, ending: str = ".json") -> Path:
    """Where a file of an experiment is."""
    return folder / f"{name}{ending}"


def read(folder: Path, name: str) -> Stored | None:
    """Read what is stored of an experiment; None if there is nothing, or nothing that can be used."""
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
    """Whether the stored numbers are those a run would give now."""
    return stored.parameters == plain(one.settings(quick)) and stored.code == code_version(one)


def made(one: Experiment, quick: bool, numbers: Numbers, seconds: float) -> Stored:
    """Return the numbers of a run with all they came from."""
    origin = {"version": __version__, "machine": _machine(), "libraries": _versions()}
    parameters = plain(one.settings(quick))
    return Stored(one.id, quick, parameters, code_version(one), round(seconds, 2), settled(numbers), origin)


def save(folder: Path, one: Experiment, stored: Stored, expectations: Iterable[Expectation] = ()) -> None:
    """Write ``ID.json``; after a kill it is the old one or the new one."""
    document = {
        "schema": SCHEMA,
        "title": one.title,
        "caption": one.caption,
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
    if document is not None:
        del document["numbers"]
    return document


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


def code_version(one: Experiment) -> str:
    """Return the hash of the code that computes the numbers of an experiment."""
    digest = hashlib.sha256(_layers_hash().encode())
    for path in sorted(_own_modules(sys.modules[one.run.__module__].__file__ or "")):
        digest.update(_meaning(path, computes=True).encode())
    return digest.hexdigest()[:16]


@cache
def _layers_hash() -> str:
    digest = hashlib.sha256()
    for layer in _LAYERS:
        for path in sorted((_SOURCE / layer).rglob("*")):
            if path.suffix == ".py":
                digest.update(_meaning(path).encode())
            elif path.suffix == ".toml":
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _own_modules(file: str) -> set[Path]:
    """Return the module and the private modules beside it that it imports, and theirs, but not the common ones."""
    here, found, waiting = Path(file).parent, set[Path](), [Path(file)]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for name in _imported(path):
            beside = here / f"{name}.py"
            if beside.exists() and name not in ("_base", "_numbers", "_registry", "_store"):
                waiting.append(beside)
    return found


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from ([node.module] if node.module else [alias.name for alias in node.names])


def _meaning(path: Path, computes: bool = False) -> str:
    """Return the source without docstrings, comments and the texts of errors.

    With ``computes`` also without what only judges or draws.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if computes:
        tree.body = [part for part in tree.body if not _only_looks(part)]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args = [part for part in node.exc.args if not _is_text(part)]
    return ast.dump(tree)


def _is_text(part: ast.expr) -> bool:
    return isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))


def _only_looks(part: ast.stmt) -> bool:
    if isinstance(part, ast.FunctionDef):
        return part.name.lstrip("_").startswith(("check", "plot"))
    if isinstance(part, ast.ImportFrom):
        return (part.module or "").split(".")[0] in ("_base", "report")
    # Parameters are compared by value, so that a caption or a title may change.
    targets = part.targets if isinstance(part, ast.Assign) else ()
    return any(isinstance(target, ast.Name) and target.id == "EXPERIMENT" for target in targets)


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
