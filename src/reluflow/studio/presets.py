"""What can be opened in the studio: figures of the four papers, all worked examples, and the steps of the lectures."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from ..data import dataset, examples
from ..problem import ProblemError
from ..theory import PAPERS
from .state import DEFAULTS, state_of

_SETTINGS = set(DEFAULTS) - {"points", "labels", "name", "bias"}


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("presets.toml").read_text(encoding="utf-8"))


def presets() -> list[dict[str, str]]:
    """List everything that can be opened: name, group, title.

    >>> presets()[0]["name"], presets()[-1]["group"]
    ('two-sectors', 'Worked examples')
    """
    groups = {"start": "To begin with", **PAPERS}
    listed = [
        {"name": name, "group": groups[table["paper"]], "title": table["title"]}
        for name, table in _tables()["preset"].items()
    ]
    worked = [
        {"name": name, "group": "Worked examples", "title": f"{name}: {note}"} for name, note in examples().items()
    ]
    return listed + worked


def preset_state(name: str) -> dict[str, Any]:
    """Return what a preset, or a worked example, or a step of a lecture opens.

    >>> preset_state("EX1")["labels"]
    [1, 1, -1, -1]
    """
    table = _tables()["preset"].get(name)
    if table is not None:
        return _state(table)
    if name in examples():
        return _state({"data": name})
    for lecture in lectures():
        for step in lecture["steps"]:
            if step["name"] == name:
                return dict(step["state"])
    raise ProblemError(f"there is no preset {name[:80]!r}; /api/presets lists them.")


@cache
def lectures() -> list[dict[str, Any]]:
    """Return the four lectures: title, and steps with a name, a sentence, what is shown, and the state."""
    found = []
    for key, table in _tables()["lecture"].items():
        steps = []
        for k, step in enumerate(table["step"], 1):
            rest = {name: step[name] for name in ("text", "show", "moment", "claims", "fails") if name in step}
            steps.append({"name": f"{key}-{k}", **rest, "state": _state(step)})
        found.append({"name": key, "title": table["title"], "paper": PAPERS[key], "steps": steps})
    return found


def _state(table: dict[str, Any]) -> dict[str, Any]:
    data = dataset(table["data"])
    changes = {name: value for name, value in table.items() if name in _SETTINGS}
    if "bias" in table:
        changes["bias"] = table["bias"]
    return state_of(data, **changes)
