"""The front end: hand-written modules that the page and the studio share, and how they become one file.

A module is plain ECMAScript. It imports by name from its neighbours, one line an import, and the names at its top are
its own: put one after another without the lines of import, the modules are one script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)
#: Where the modules of the front end and its stylesheet are.
FRONT: Traversable = files(__package__).joinpath("front")


def style() -> str:
    """Return the stylesheet."""
    return FRONT.joinpath("style.css").read_text(encoding="utf-8")


def bundle(entry: str, *folders: Traversable) -> str:
    """Return a module with all it imports, from the first folder that has them, as one script without imports.

    >>> "import " in bundle("report.js"), "function showReport" in bundle("report.js")
    (False, True)
    """
    done: dict[str, str] = {}
    _add(entry, folders or (FRONT,), done)
    return "\n".join(done.values())


def _add(name: str, folders: Iterable[Traversable], done: dict[str, str]) -> None:
    if name in done:
        return
    text = next(folder.joinpath(name) for folder in folders if folder.joinpath(name).is_file()).read_text("utf-8")
    for needed in _IMPORT.findall(text):
        _add(needed, folders, done)
    done[name] = f"// {name}\n{_EXPORT.sub('', _IMPORT.sub('', text))}"
