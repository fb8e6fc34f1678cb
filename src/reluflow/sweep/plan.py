"""The list of problems of a sweep: a pure function of what its spec says of the parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.registry import suggestion
from ..problem import ProblemError
from ..problem.words import count
from .axes import MOST, Axis, axis_of, value_of
from .cases import NETWORK, PROBLEM

SECTIONS = ("data", "network", "problem")
_TRIED = 1000  # combinations of values that are made before anything runs


@dataclass(frozen=True, slots=True)
class Plan:
    """Which problems there are.

    Attributes
    ----------
    fixed : mapping
        Parameters with one value, by their full names.
    groups : tuple of tuples of Axis
        Axes that go together; the problems are all combinations, the last group running fastest.
    """

    fixed: Mapping[str, Any]
    groups: tuple[tuple[Axis, ...], ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, those that go together beside each other."""
        return tuple(axis for group in self.groups for axis in group)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values every group has."""
        return tuple(len(group[0].values) for group in self.groups)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def places_at(self, index: int) -> tuple[int, ...]:
        """Return the place of a problem in every group, counted from 0."""
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)) or not 0 <= index < len(self):
            raise ProblemError(f"there is no problem {index!r}; the sweep has {count(len(self), 'problem')}, from 0.")
        return tuple(map(int, np.unravel_index(index, self.shape))) if self.groups else ()

    def parameters_at(self, index: int) -> dict[str, Any]:
        """Return the parameters of a problem by their full names."""
        chosen = {
            axis.name: axis.values[place]
            for group, place in zip(self.groups, self.places_at(index), strict=True)
            for axis in group
        }
        return dict(sorted({**self.fixed, **chosen}.items()))

    def trials(self) -> list[int]:
        """Choose the problems that are made to see whether they can be: every value once, and combinations of them.

        Seeds are left out of the combinations: whether a problem is possible hardly hangs on them.
        """
        shape = self.shape
        steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        most = _TRIED // max(len(shape), 1)
        alone = [place * step for size, step in zip(shape, steps, strict=True) for place in _spread(size, most)]
        drawn = [all(axis.name.endswith(".seed") for axis in group) for group in self.groups]
        few = tuple(1 if seed else size for size, seed in zip(shape, drawn, strict=True))
        places = np.unravel_index(_spread(math.prod(few), _TRIED), few) if few else ()
        combined = sum((np.asarray(place) * step for place, step in zip(places, steps, strict=True)), np.zeros(1, int))
        return sorted({0, *alone, *combined.tolist()})


def _spread(size: int, most: int) -> list[int]:
    """Choose at most so many of the numbers below size, evenly, the first and the last among them.

    >>> _spread(3, 10), _spread(100, 3)
    ([0, 1, 2], [0, 50, 99])
    """
    return list(range(size)) if size <= most else [round(k * (size - 1) / (most - 1)) for k in range(most)]


def plan_of(said: Mapping[str, Any], zipped: Any = (), seed: int = 0) -> Plan:
    """Read the sections of a spec.

    >>> plan = plan_of({"data": {"source": ["EX1", "EX4"]}, "network": {"width": 2}})
    >>> len(plan), plan.parameters_at(1)
    (2, {'data.source': 'EX4', 'network.width': 2})
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ProblemError(f"seed = {seed!r}: a non-negative integer is needed.")
    named = _named(said)
    axes = {name: axis for name, text in named.items() if (axis := axis_of(name, text, int(seed)))}
    fixed = {name: value_of(name, text) for name, text in named.items() if name not in axes}
    plan = Plan(fixed, _groups(axes, zipped))
    if len(plan) > MOST:
        raise ProblemError(f"the sweep has {len(plan)} problems, more than {MOST}; cut it into several.")
    return plan


def _named(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters by their full names, sorted, or refuse those that do not exist."""
    found = {}
    for section, known in zip(SECTIONS, (None, NETWORK, PROBLEM), strict=True):
        part = said.get(section, {})
        if not isinstance(part, Mapping):
            raise ProblemError(f"{section} = {part!r}: a table of parameters is needed.")
        for key in sorted(map(str, part)):
            if known is not None and key not in known:
                near = suggestion(key, known) or "."
                raise ProblemError(f"{section}.{key} is not known{near} {section} takes {', '.join(known)}.")
            found[f"{section}.{key}"] = part[key]
    if "data.source" not in found:
        raise ProblemError(
            'data.source is missing: which data? A construction, an example or a file, as in source = "phuong".'
        )
    return found


def sections(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort parameters with full names into their sections."""
    found: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for name, value in parameters.items():
        section, _, key = name.partition(".")
        found[section][key] = value
    return found


def _groups(axes: Mapping[str, Axis], zipped: Any) -> tuple[tuple[Axis, ...], ...]:
    """Return the axes that go together; every other one for itself; the data's first."""
    if isinstance(zipped, (str, Mapping)) or not all(isinstance(one, (list, tuple)) for one in zipped):
        raise ProblemError(
            f'zip = {zipped!r}: a list of lists of parameters is needed, [["data.seed", "network.seed"]].'
        )
    together: list[tuple[Axis, ...]] = []
    used: dict[str, int] = {}
    for k, names in enumerate(zipped):
        group = [_axis_named(str(name), axes) for name in names]
        for axis in group:
            if axis.name in used:
                raise ProblemError(f"zip: {axis.name} stands twice; a parameter can go with others once.")
            used[axis.name] = k
        sizes = {len(axis.values) for axis in group}
        if len(group) < 2:
            raise ProblemError(f"zip: {list(names)!r} is no group; two parameters or more go together.")
        if len(sizes) > 1:
            said = ", ".join(f"{axis.name} has {len(axis.values)}" for axis in group)
            raise ProblemError(f"zip: parameters that go together need equally many values, but {said}.")
        together.append(tuple(sorted(group, key=_order)))
    together += [(axis,) for name, axis in axes.items() if name not in used]
    return tuple(sorted(together, key=lambda group: _order(group[0])))


def _order(axis: Axis) -> tuple[int, str]:
    return SECTIONS.index(axis.name.partition(".")[0]), axis.name


def _axis_named(name: str, axes: Mapping[str, Axis]) -> Axis:
    found = [axis for full, axis in axes.items() if name in (full, full.partition(".")[2])]
    if len(found) != 1:
        near = suggestion(name, axes) or "."
        several = f"{' and '.join(axis.name for axis in found)} are meant by it; say which."
        raise ProblemError(f"zip: {name!r}: {several if found else f'there is no axis of this name{near}'}")
    return found[0]
