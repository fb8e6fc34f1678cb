"""What is measured of a problem: the verbs of the package by name, and functions of the user.

A measure is a function of `Facts` (which hold the problem, and keep what several measures need) and of its settings; it
returns values by name: numbers, texts, true, false, None, and arrays, which go to a file of their own.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..data.registry import suggestion
from ..dynamics import Limit, Trajectory, align, descend, flow, limit
from ..margins import global_max_margin, linearity
from ..problem import Dataset, Network, OutOfTime, Problem, ProblemError, ReluflowError, Undecided, time_limit
from ..problem.code import SOURCE, code_of, text_of, version_of
from ..problem.digest import digest
from ..theory import Facts, check, monitor, predict
from .cases import build

Values = dict[str, Any]

#: Arguments of the verbs that a sweep gives itself, or that mean nothing in one.
_OWN = (
    *("problem", "data", "slope", "trajectory", "alignment"),
    *("time_limit", "progress", "callback", "checkpoint", "checkpoint_minutes"),
)
_STEPS = 10_000  # of descend, where neither steps nor epochs are given


def of_check(facts: Facts, **settings: Any) -> Values:
    """Which claims apply."""
    found = check(facts, **settings)
    return {
        "apply": sum(one.applies is True for one in found),
        "fail": sum(one.applies is False for one in found),
        "undecided": sum(one.applies is None for one in found),
        "claims": " ".join(one.claim for one in found if one.applies),
    }


def of_predict(facts: Facts, **settings: Any) -> Values:
    """Count what they promise, and find the margin of the limit where one of them names it."""
    found = predict(facts, **settings)
    margins = [one.margin for one in found if one.margin is not None]
    return {"count": len(found), "margin": margins[0] if margins else None}


def of_align(facts: Facts, **settings: Any) -> Values:
    """Where the neurons turn while the network is tiny."""
    early = align(facts.problem, **settings)
    counts = {fate: early.fates.count(fate) for fate in ("aligned", "sliding", "shrinking", "dead", "zero")}
    return {
        **counts,
        "other": early.p - sum(counts.values()),
        "groups": len(early.groups),
        "last_event": early.last_event.max(),
        "growth": early.growth.max(),
    }


def of_flow(facts: Facts, *, keep: bool = False, **settings: Any) -> Values:
    """Follow the flow to a goal."""
    return _of_run(_run(facts, settings), keep)


def of_descend(facts: Facts, *, keep: bool = False, **settings: Any) -> Values:
    """Train in steps."""
    if "steps" not in settings and "epochs" not in settings:
        settings["steps"] = _STEPS
    run = descend(facts.problem, **settings, progress=False)
    if run.settings["interrupted"]:
        raise KeyboardInterrupt
    return {**_of_run(run, keep), "iterations": int(run.settings["iteration"][-1]), "stopped": run.settings["stopped"]}


def of_limit(facts: Facts, *, keep: bool = False, **settings: Any) -> Values:
    """Find the limit of the direction, and whether it classifies like a linear function."""
    try:
        return _of_limit(limit(facts.problem, **settings, progress=False), keep)
    except Undecided as error:
        if isinstance(error.partial, Limit):  # only the optimum is missing
            error.partial = _of_limit(error.partial, keep)
        raise


def _of_limit(end: Limit, keep: bool) -> Values:
    best, linear = end.optimum, linearity(end.network) if end.network.W.any() else None
    found = {
        "kind": end.kind,
        "margin": end.margin,
        "linear": None if linear is None else linear.linear,
        "wedge": None if linear is None else linear.wedge,
        "neurons": len(end.living),
        "groups": len(end.groups),
        "residual": None if end.kkt is None else end.kkt.residual,
        "optimum": None if best is None else best.lower,
        "optimum_upper": None if best is None else best.upper,
        "loss_floor": end.loss_floor,
        "plateaus": len(end.plateaus),
        "log_time": end.trajectory.log_time[-1],
        "events": int(end.trajectory.events.size),
    }
    return found | ({"W": end.network.W, "a": end.network.a} if keep else {})


def of_global(facts: Facts, **settings: Any) -> Values:
    """Bracket the largest margin of any network."""
    best = global_max_margin(facts.problem.data, facts.problem.net.slope, **settings)
    if best.stopped == "time":
        raise OutOfTime(f"the time limit ended while the margin was bracketed: {best.lower:.6g} .. {best.upper:.6g}.")
    return {
        "lower": best.lower,
        "upper": best.upper,
        "exact": best.exact,
        "neurons": best.network.p,
        "method": best.method,
    }


def of_monitor(
    facts: Facts, *, paper: str | None = None, claim: str | list[str] | None = None, **settings: Any
) -> Values:
    """Follow the flow to a goal, and see whether it keeps the promises."""
    found = monitor(facts, _run(facts, settings), paper=paper, claim=claim)
    against = [one for one in found if one.consistent is False]
    return {
        "seen": sum(one.consistent is True for one in found),
        "against": len(against),
        "open": sum(one.consistent is None for one in found),
        "contradicted": sum(one.contradicts for one in found),
        "claims_against": " ".join(dict.fromkeys(one.claim for one in against)),
    }


def _run(facts: Facts, settings: Mapping[str, Any]) -> Trajectory:
    """Follow the flow; measures with the same goal share the run."""
    return facts.remember(
        ("sweep run", repr(sorted(settings.items()))), lambda: flow(facts.problem, **settings, progress=False)
    )


def _of_run(run: Trajectory, keep: bool) -> Values:
    problem, end = run.problem, run.final
    live = bool(np.isfinite(end.log_norm(problem.train)))
    margins = end.scaled_outputs(problem.data.X)[0] * problem.data.y
    found = {
        "log_time": run.log_time[-1],
        "log_loss": run.log_loss[-1],
        "log_norm": run.log_norm[-1],
        "accuracy": float((margins > 0).mean()),
        "margin": end.normalized_margin(problem.data, problem.train) if live else None,
        "stable_rank": run.stable_rank()[-1] if live else None,
        "events": int(run.events.size),
    }
    return found | ({"times": run.log_time, "losses": run.log_loss} if keep else {})


_VERBS: Mapping[str, tuple[Callable[..., Values], tuple[Callable[..., Any], ...]]] = {
    "check": (of_check, (check,)),
    "predict": (of_predict, (predict,)),
    "align": (of_align, (align,)),
    "flow": (of_flow, (flow,)),
    "limit": (of_limit, (limit,)),
    "descend": (of_descend, (descend,)),
    "global": (of_global, (global_max_margin,)),
    "monitor": (of_monitor, (flow, check)),
}
_GOALS = ("flow", "monitor")  # these need to be told where to stop


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a sweep.

    Attributes
    ----------
    label : str
        Its columns begin with it.
    name : str
        The verb, or ``package.module:function``.
    settings : mapping
        Arguments.
    folder : str
        Where a function of the user may be, besides the places Python looks.
    """

    label: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    folder: str = "."

    @property
    def own(self) -> bool:
        """Whether it is a verb of the package."""
        return self.name in _VERBS

    def take(self, facts: Facts) -> Values:
        """Take the measure of a problem."""
        if self.own:
            return _VERBS[self.name][0](facts, **self.settings)
        found = user_function(self.name, self.folder)(facts.problem, **self.settings)
        values = found if isinstance(found, Mapping) else {"value": found}
        for key, value in values.items():
            if not isinstance(value, (bool, int, float, str, np.generic, np.ndarray, type(None))):
                raise ProblemError(
                    f"{self.name} returned {key} of type {type(value).__name__}; numbers, texts, True, False, None and "
                    "arrays can be kept."
                )
        return {str(key): value for key, value in values.items()}

    def version(self) -> str:
        """Return the hash of the code behind it, the making of the problem included."""
        if self.own:
            return digest(version_of(build), version_of(_VERBS[self.name][0]))[:16]
        return digest(text_of(SOURCE), _user_version(self.name, self.folder))[:16]


def measures_of(said: Any, folder: str) -> tuple[Measure, ...]:
    """Read the measures of a spec: a list of names, or a table of names with settings.

    >>> [one.label for one in measures_of(["check", "limit"], ".")]
    ['check', 'limit']
    >>> measures_of({"adam": {"measure": "descend", "method": "adam", "steps": 10}}, ".")[0].name
    'descend'
    >>> measures_of(["limits"], ".")
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.ProblemError: there is no measure 'limits'; did you mean 'limit'? There are check, ...
    """
    if isinstance(said, str):
        said = [said]
    if isinstance(said, (list, tuple)):
        named: dict[str, Any] = {}
        for one in said:
            text = _name_of(one)
            label = text.rpartition(":")[2]
            if label in named:
                raise ProblemError(
                    f"measures: {label} is asked for twice; give one of them a name of its own in a table."
                )
            named[label] = {"measure": text}
        said = named
    if not isinstance(said, Mapping) or not said:
        raise ProblemError(
            f'measures = {said!r}: at least one is needed, measures = ["check", "limit"]; there are {_known()}.'
        )
    return tuple(_measure(str(label), settings, folder) for label, settings in said.items())


def _known() -> str:
    return f"{', '.join(_VERBS)}, and functions of yours: package.module:function"


def _name_of(said: Any) -> str:
    if callable(said):
        name, module = getattr(said, "__qualname__", ""), getattr(said, "__module__", "")
        if module == "__main__" or not name.isidentifier():
            raise ProblemError(
                f"measures: the function {name or said!r} cannot be found by other processes; put it into a module "
                'and name it "package.module:function".'
            )
        return f"{module}:{name}"
    if not isinstance(said, str):
        raise ProblemError(f"measures: {said!r} is no name; there are {_known()}.")
    return said


def _measure(label: str, said: Any, folder: str) -> Measure:
    if said is True:
        said = {}
    if callable(said) or isinstance(said, str):
        said = {"measure": said}
    if not isinstance(said, Mapping):
        raise ProblemError(f"measures.{label} = {said!r}: a table of settings is needed, {{}} for none.")
    if not label or "." in label:
        raise ProblemError(f"measures: {label!r} cannot be the name of a measure: it begins the names of its columns.")
    settings = {str(key): value for key, value in said.items()}
    name = _name_of(settings.pop("measure", label))
    if name not in _VERBS and ":" not in name:
        near = suggestion(name, _VERBS) or "."
        raise ProblemError(f"there is no measure {name!r}{near} There are {_known()}.")
    found = Measure(label, name, settings, folder)
    _check_settings(found)
    return found


def _check_settings(one: Measure) -> None:
    if one.own:
        verbs = _VERBS[one.name][1]
        known = [key for verb in verbs for key in inspect.signature(verb).parameters if key not in _OWN]
        known += ["keep"] * ("keep" in inspect.signature(_VERBS[one.name][0]).parameters)
        for key in one.settings:
            if key not in known:
                near = suggestion(key, known) or "."
                takes = f"It takes {', '.join(known)}."
                raise ProblemError(f"measures.{one.label}: {one.name} has no setting {key!r}{near} {takes}")
        if one.name in _GOALS and not one.settings.get("until"):
            raise ProblemError(
                f"measures.{one.label}: {one.name} needs a goal, as in until = {{loss = 1e-3}}; it knows time, "
                "log_time, loss, log_loss, margin and aligned."
            )
        if not isinstance(one.settings.get("keep", False), bool):
            raise ProblemError(f"measures.{one.label}: keep = {one.settings['keep']!r}: true or false is needed.")
        return
    function = user_function(one.name, one.folder)
    try:
        inspect.signature(function).bind(None, **one.settings)
    except TypeError as exc:
        raise ProblemError(
            f"measures.{one.label}: {one.name} is called with a problem and the settings: {exc}."
        ) from None


def try_settings(one: Measure, problem: Problem) -> None:
    """Refuse settings that the verb refuses, without the work: a limit of no time ends it as soon as it begins."""
    if not one.own:
        return
    try:
        with time_limit(1e-9):
            one.take(Facts.of(problem))
    except Undecided:
        return
    except (ReluflowError, TypeError, ValueError) as exc:
        raise ProblemError(f"measures.{one.label}: {exc}") from None


def warm_up(taken: tuple[Measure, ...]) -> None:
    """Have everything compiled, so that no problem's time goes into it."""
    if any(one.name in ("align", "flow", "limit", "monitor") for one in taken):
        limit(Problem(Dataset([[1.0]], [1]), Network([[1.0]], [1.0])), progress=False)


def user_function(name: str, folder: str) -> Callable[..., Any]:
    """Import ``package.module:function``, also from the folder of the spec."""
    module, _, function = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), function)):
        raise ProblemError(f"measures: {name!r} is no function; it is written package.module:function.")
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        found = getattr(importlib.import_module(module), function, None)
    except Exception as exc:  # whatever the user's module does on import
        raise ProblemError(
            f"measures: {module} cannot be imported ({type(exc).__name__}: {exc}); it must lie beside the spec, "
            f"{folder}, or where Python looks (PYTHONPATH)."
        ) from None
    if not callable(found):
        raise ProblemError(f"measures: the module {module} has no function {function!r}.")
    return found  # type: ignore[no-any-return]


def _user_version(name: str, folder: str) -> str:
    """Return the hash of a user's function: of all it reaches in its package, or of its file if it has none."""
    function = inspect.unwrap(user_function(name, folder))
    module = importlib.import_module(name.partition(":")[0])
    file = getattr(module, "__file__", None)
    if file is None:
        return digest(name)
    depth = module.__name__.count(".") + (Path(file).name == "__init__.py")
    if depth == 0:
        return digest(Path(file).read_bytes())
    root = Path(file).parents[depth - 1]
    try:
        return code_of(root, module.__name__.partition(".")[2], function.__name__)
    except (
        KeyError,
        SyntaxError,
        UnicodeDecodeError,
    ):  # made somewhere else, or beside code that is not Python of ours
        return text_of(root)
