"""Rooms are entered by the door: what a module may import from other packages and folders, read from the source.

A room is a folder inside a package, such as ``margins/hard``. Other packages import from the room, or from a plain
module of the package, and never from the files inside the room. Inside the package the same holds for rooms that say
what they offer (an ``__all__`` in their ``__init__.py``). Underscored names stay in their package.
"""

import ast
import importlib
from pathlib import Path

import reluflow

HOUSE = Path(reluflow.__file__).parent


def imports(source, file):
    """Yield what a file imports of the package: the module as a list of names, and the names taken from it."""
    folder = list(Path(file).parent.parts)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            named = node.module.split(".") if node.module else []
            if node.level:
                yield [*folder[: len(folder) - node.level + 1], *named], [alias.name for alias in node.names]
            elif named[:1] == ["reluflow"]:
                yield named[1:], [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("reluflow."):
                    yield alias.name.split(".")[1:], []


def through_the_wall(source, file, rooms):
    """Return the imports of a file that enter a room other than by its door, or take what is private."""
    here = list(Path(file).parent.parts)
    found = []
    for module, names in imports(source, file):
        foreign = module[:1] != here[:1]
        inside = len(module) > 2 and tuple(module[:2]) in rooms and module[:2] != here[:2]
        private = any(name.startswith("_") and not name.startswith("__") for name in (*module, *names))
        if (inside and (foreign or rooms[tuple(module[:2])])) or (private and foreign and module):
            found.append((file, ".".join(module)))
    return found


def house():
    """Return the rooms, with whether they say what they offer."""
    return {
        tuple(door.parent.relative_to(HOUSE).parts): "__all__" in door.read_text()
        for door in HOUSE.glob("*/*/__init__.py")
    }


def test_rooms_are_entered_by_the_door():
    rooms = house()
    assert {("margins", "hard"), ("margins", "kkt"), ("sectors", "exact")} <= {
        room for room, open_ in rooms.items() if open_
    }
    found = []
    for path in sorted(HOUSE.rglob("*.py")):
        file = path.relative_to(HOUSE).as_posix()
        found += through_the_wall(path.read_text(), file, rooms)
    assert found == []


def test_what_the_rule_forbids():
    rooms = {("margins", "hard"): True, ("dynamics", "flow"): False}

    def wrong(line, file="margins/agreement.py"):
        return bool(through_the_wall(line, file, rooms))

    assert wrong("from .hard.solution import solve")
    assert not wrong("from .hard import solve")
    assert not wrong("from .solution import solve", "margins/hard/farkas.py")
    assert wrong("from ..margins.hard.rows import Rows", "theory/facts.py")
    assert wrong("from reluflow.margins.hard.rows import Rows", "theory/facts.py")
    assert wrong("import reluflow.margins.hard.rows", "theory/facts.py")
    # A room without a list of what it offers is open to its own package only.
    assert wrong("from ..dynamics.flow.field import Geometry", "theory/facts.py")
    assert not wrong("from .flow.field import Geometry", "dynamics/ladder.py")
    assert wrong("from ..problem.network import _top")
    assert wrong("from ..problem._network import Network")
    assert not wrong("from ..problem.network import check_slope")
    assert not wrong("from .networks import _helper")
    assert not wrong("from .. import __version__", "cli/common.py")


def test_public_names_of_a_room_exist():
    for room in house():
        module = importlib.import_module(".".join(("reluflow", *room)))
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), (room, name)
        assert module.__doc__
