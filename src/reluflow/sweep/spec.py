"""The spec of a sweep, and the list of problems, which is a pure function of it."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.registry import suggestion
from ..problem import Problem, ProblemError, ReluflowError
from ..problem.checks import is_number
from ..problem.digest import digest
from ..problem.plain import plain
from ..problem.words import count
from .axes import written
from .cases import build, contents, file_of
from .measures import Measure, measures_of, try_settings
from .plan import SECTIONS, Plan, plan_of, sections

if TYPE_CHECKING:
    from .results import SweepResults

_KEYS = ("title", "seed", *SECTIONS, "measures", "zip", "limits")
_LIMITS = ("time", "memory")


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Many problems of one kind, and what is measured of each.

    Every parameter may be a value, a list, ``{"range": [0, 10]}``, ``{"linspace": [0, 1, 11]}``,
    ``{"logspace": [-8, 0, 17]}`` (exponents of 10), ``{"uniform": [0, 1], "count": 100}`` or
    ``{"log_uniform": [1e-8, 1], "count": 100}``; ``{"value": [1, 0]}`` is a list that is one value. All combinations
    are taken, but for parameters that are zipped. Drawn and spaced values have 12 digits, so that every machine makes
    the same list; the order in which parameters are written does not matter.

    Parameters
    ----------
    data : mapping
        ``source``, as for `dataset` (a construction, an example, a file), and its parameters.
    network : mapping
        Parameters of `initialize`.
    problem : mapping
        ``loss``, ``reduction``, ``train`` as for `Problem`.
    measures : list of str, or mapping
        Names: check, predict, align, flow, limit, descend, global, monitor, ``package.module:function``; or names with
        settings, ``{"limit": {"optimum": False}, "adam": {"measure": "descend", "method": "adam", "steps": 100}}``.
    zip : list of lists of str
        Parameters that go together, value by value: ``[["data.seed", "network.seed"]]``.
    seed : int
        Of the random draws.
    title : str
    limits : mapping
        ``time`` in seconds and ``memory`` in MB that one problem may take; not part of what the sweep is.
    folder : path
        Where files and functions are looked for.

    Examples
    --------
    >>> sweep = Sweep(
    ...     data={"source": "phuong", "n": 20, "seed": {"range": [0, 3]}},
    ...     network={"width": 4, "scale": {"logspace": [-8, -2, 4]}},
    ...     measures=["check", "limit"],
    ... )
    >>> len(sweep)
    12
    >>> sweep.parameters_at(5)
    {'data.n': 20, 'data.seed': 1, 'data.source': 'phuong', 'network.scale': 1e-06, 'network.width': 4}
    >>> sweep.problem_at(5).data
    Dataset 'phuong': n=20 (12 positive, 8 negative), d=20
    """

    data: Mapping[str, Any]
    network: Mapping[str, Any] = field(default_factory=dict)
    problem: Mapping[str, Any] = field(default_factory=dict)
    measures: Any = ("limit",)
    zip: Sequence[Sequence[str]] = ()
    seed: int = 0
    title: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    folder: str | os.PathLike[str] = "."
    plan: Plan = field(init=False)
    taken: tuple[Measure, ...] = field(init=False)
    inputs: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "folder", os.path.abspath(self.folder))
        if not isinstance(self.title, str):
            raise ProblemError(f"title = {self.title!r}: a text is needed.")
        check_limits(self.limits)
        put(self, "plan", plan_of({section: getattr(self, section) for section in SECTIONS}, self.zip, self.seed))
        put(self, "taken", measures_of(self.measures, str(self.folder)))
        put(self, "inputs", self._inputs())

    def _inputs(self) -> dict[str, str]:
        """Return the contents of the files that are read, as hashes."""
        axis = next((axis for axis in self.plan.axes if axis.name == "data.source"), None)
        named = (self.plan.fixed["data.source"],) if axis is None else axis.values
        files = {text: file_of(text, str(self.folder)) for text in named if isinstance(text, str)}
        return {text: contents(file) for text, file in files.items() if file is not None}

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Sweep:
        """Read a spec from a TOML file; data files and functions are looked for beside it."""
        file = Path(path)
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ProblemError(f"there is no file {file}; check the name and the folder.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
            raise ProblemError(f"{file} is no TOML: {exc}.") from None
        except OSError as exc:
            raise ProblemError(f"{file} cannot be read: {exc.strerror or exc}.") from None
        try:
            return Sweep.of(document, file.parent)
        except ReluflowError as exc:
            raise type(exc)(f"{file}: {exc}") from None

    @staticmethod
    def of(document: Mapping[str, Any], folder: str | os.PathLike[str] = ".") -> Sweep:
        """Make a sweep of what a TOML file says."""
        for key in document:
            if key not in _KEYS:
                near = suggestion(key, _KEYS) or "."
                raise ProblemError(f"{key!r} is not known{near} A spec has {', '.join(_KEYS)}.")
        return Sweep(**{"data": {}, **document, "folder": folder})

    def document(self) -> dict[str, Any]:
        """Return the spec as a TOML file would say it."""
        measures = {one.label: {"measure": one.name, **one.settings} for one in self.taken}
        said = {key: plain(written(getattr(self, key))) for key in _KEYS if key != "measures"}
        return {**said, "seed": int(self.seed), "measures": plain(measures)}

    # -- the list of problems ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.plan)

    @property
    def id(self) -> str:
        """The sweep as a short text: of every value of every parameter, what is measured, and the files read."""
        axes = [[[axis.name, list(axis.values)] for axis in group] for group in self.plan.groups]
        measures = sorted((one.label, one.name, json.dumps(plain(one.settings), sort_keys=True)) for one in self.taken)
        whole = [dict(self.plan.fixed), axes, measures, dict(self.inputs)]
        return digest("Sweep", json.dumps(whole, sort_keys=True))[:16]

    def parameters_at(self, index: int) -> dict[str, Any]:
        """Return the parameters of a problem by their full names."""
        return self.plan.parameters_at(index)

    def problem_at(self, index: int) -> Problem:
        """Make a problem."""
        return build(sections(self.parameters_at(index)), str(self.folder))

    def fingerprint_at(self, index: int) -> str:
        """Return the parameters of a problem as a short text; of data files their contents, not their names."""
        found = self.parameters_at(index)
        if isinstance(found["data.source"], str):
            found["data.source"] = self.inputs.get(found["data.source"], found["data.source"])
        return digest("Case", json.dumps(found, sort_keys=True))[:16]

    def ends(self, most: int = 10) -> list[tuple[int, str, str]]:
        """Return the first and the last problems: number, fingerprint, and what varies in words."""
        first = range(min(most, len(self)))
        found = []
        for index in (*first, *range(max(len(first), len(self) - most), len(self))):
            parameters = self.parameters_at(index)
            words = " ".join(f"{axis.name}={parameters[axis.name]}" for axis in self.plan.axes)
            found.append((index, self.fingerprint_at(index), words))
        return found

    def check(self) -> None:
        """Refuse what is impossible before anything runs: every value is tried, and up to 1000 combinations."""
        for index in self.plan.trials():
            try:
                problem = self.problem_at(index)
            except ReluflowError as exc:
                parameters = self.parameters_at(index)
                where = ", ".join(f"{axis.name} = {parameters[axis.name]!r}" for axis in self.plan.axes)
                raise ProblemError(
                    f"problem {index}{f' ({where})' if where else ''} is impossible: {exc}{self._on_lists(str(exc))}"
                ) from None
            if index == 0:
                for one in self.taken:
                    try_settings(one, problem)

    def _on_lists(self, words: str) -> str:
        """Say how a list is meant, where one was written and one was wanted."""
        if "list" not in words and "shape" not in words:
            return ""
        said = {f"{section}.{key}": value for section in SECTIONS for key, value in getattr(self, section).items()}
        listed = [name for name, value in said.items() if isinstance(value, (list, tuple))]
        return f" A list is an axis ({', '.join(listed)}); {{value = [1, 0]}} is a list as one value." if listed else ""

    # -- running ---------------------------------------------------------------------------------------------

    def run(self, out: str | os.PathLike[str], **options: Any) -> SweepResults:
        """Compute what the folder ``out`` does not hold yet: `reluflow.sweep.run_sweep` with these options.

        ``jobs``, ``dask``, ``shard``, ``time_limit``, ``memory_limit``, ``retry``, ``progress``.
        """
        from .run import run_sweep

        return run_sweep(self, out, **options)

    def __repr__(self) -> str:
        shape = " x ".join(f"{len(group[0].values)} {'+'.join(a.name for a in group)}" for group in self.plan.groups)
        name = f" {self.title!r}" if self.title else ""
        taken = ", ".join(one.label for one in self.taken)
        return f"Sweep{name}: {count(len(self), 'problem')}{f' ({shape})' if shape else ''}, measured: {taken}"


def check_limits(limits: Mapping[str, Any]) -> None:
    """Refuse limits that are none."""
    if not isinstance(limits, Mapping):
        raise ProblemError(f"limits = {limits!r}: a table is needed, as in {{time = 60, memory = 1000}}.")
    for key, value in limits.items():
        if key not in _LIMITS:
            raise ProblemError(
                f"limits.{key} is not known{suggestion(key, _LIMITS) or '.'} There are time (seconds) and memory (MB) "
                "of one problem."
            )
        if not is_number(value) or not 0 < value < math.inf:
            unit = "seconds" if key == "time" else "MB"
            raise ProblemError(
                f"limits.{key} = {value!r}: a positive number of {unit} is needed; leave it out for none."
            )
