"""docs/architecture.md tells the truth: the tree, the walk, the order of the floors, the places."""

import importlib
import re
import tomllib
from pathlib import Path

import reluflow

ROOT = Path(__file__).parent.parent
HOUSE = Path(reluflow.__file__).parent
MAP = (ROOT / "docs" / "architecture.md").read_text()


def _tree():
    """Return the folders drawn in the tree, as paths below the package."""
    drawn, above = [], ""
    for indent, name in re.findall(r"^( {2,4})(\w+)/ {2,}\S", MAP, flags=re.MULTILINE):
        above, path = (name, name) if len(indent) == 2 else (above, f"{above}/{name}")
        drawn.append(path)
    return drawn


def test_the_tree_shows_every_room_once():
    folders = {str(file.parent.relative_to(HOUSE)) for file in HOUSE.glob("*/**/__init__.py")}
    assert len(folders) > 25
    assert sorted(_tree()) == sorted(folders)


def test_floors_stand_in_the_order_of_the_import_contract():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(one for one in config["contracts"] if one["containers"] == ["reluflow"])["layers"]
    floors = [[name for name in layer.split(" | ") if not name.startswith("(")] for layer in layers]
    assert f"\n{' > '.join(' | '.join(rooms) for rooms in floors)}\n" in MAP
    assert [path for path in _tree() if "/" not in path] == [name for rooms in floors for name in rooms]


def test_every_name_on_the_way_exists():
    names = re.findall(r"`(reluflow\.[\w.]+)`", MAP)
    assert len(names) > 20
    for name in names:
        path, last = name.rsplit(".", 1)
        assert hasattr(importlib.import_module(path), last), name


def test_every_place_named_exists():
    places = re.findall(r"`(?:src/reluflow/)?([\w/]+(?:/|\.py))`", MAP)
    assert len(places) > 15
    floors = (HOUSE, ROOT, HOUSE / "experiments", HOUSE / "dynamics")
    for place in places:
        assert any((floor / place).exists() for floor in floors), place


def test_the_tests_live_in_the_same_rooms():
    known = {*_tree(), "docs", "fuzz", "helpers"}
    for file in (ROOT / "tests").rglob("test_*.py"):
        folder = str(file.parent.relative_to(ROOT / "tests"))
        assert folder in {".", *known}, file


def test_readers_are_led_here():
    assert "(docs/architecture.md)" in (ROOT / "README.md").read_text()
    assert "(docs/architecture.md)" in (ROOT / "CONTRIBUTING.md").read_text()
