"""One parameter of a sweep: a value, or an axis of values, written in a few words."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.registry import suggestion
from ..problem import ProblemError
from ..problem.checks import is_number
from ..problem.words import count

#: Most problems of a sweep.
MOST = 10_000_000
_DIGITS = 12  # of computed values: the last digits of powers and sines differ from machine to machine

_WRITTEN = (
    "a value, a list, {range = [0, 10]}, {linspace = [0, 1, 11]}, {logspace = [-8, 0, 17]} (exponents of 10), "
    "{uniform = [0, 1], count = 100}, {log_uniform = [1e-8, 1], count = 100}, or {value = [1, 0]} for a list that is "
    "one value"
)


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter that takes several values.

    Attributes
    ----------
    name : str
        With its section: ``network.scale``.
    values : tuple
    logarithmic : bool
        Whether it is spread over orders of magnitude, and is drawn so.
    """

    name: str
    values: tuple[Any, ...]
    logarithmic: bool = False


def axis_of(name: str, said: Any, seed: int) -> Axis | None:
    """Read what is said of a parameter; None where it is one value (see `value_of`).

    >>> axis_of("network.width", {"range": [10, 50, 20]}, 0).values
    (10, 30)
    >>> axis_of("network.scale", {"logspace": [-4, 0, 3]}, 0).values
    (0.0001, 0.01, 1.0)
    >>> axis_of("network.slope", {"uniform": [0, 1], "count": 2}, 0) == axis_of("network.slope", [0.1, 0.2], 0)
    False
    >>> axis_of("network.scale", {"logspce": [-4, 0, 3]}, 0)
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.ProblemError: network.scale = {'logspce': [-4, 0, 3]}: 'logspce' is not known; did you ...
    """
    listed = _listed(said)
    if isinstance(listed, list):
        return Axis(name, _distinct(name, [_single(name, value) for value in listed]))
    if not isinstance(said, Mapping):
        return None
    kind = _kind(name, said)
    if kind == "value":
        return None
    values = _KINDS[kind](name, said, seed)
    whole = tuple(values) if kind == "range" else _distinct(name, values)
    return Axis(name, whole, kind in ("logspace", "log_uniform"))


def value_of(name: str, said: Any) -> Any:
    """Return what is said of a parameter that takes one value."""
    if isinstance(said, Mapping):
        value = _listed(said["value"])
        return [_single(name, part) for part in value] if isinstance(value, list) else _single(name, value)
    return _single(name, said)


def written(said: Any) -> Any:
    """Return what is said of a parameter as a file would say it: lists, and plain numbers.

    >>> written({"seed": range(2), "scale": np.float64(0.5)})
    {'seed': [0, 1], 'scale': 0.5}
    """
    if isinstance(said, Mapping):
        return {str(key): written(value) for key, value in said.items()}
    listed = _listed(said)
    return [written(part) for part in listed] if isinstance(listed, list) else listed


def _listed(said: Any) -> Any:
    """Turn arrays, tuples and ranges into lists, and numbers of NumPy into plain ones."""
    if isinstance(said, (np.ndarray, np.generic)):
        return said.tolist()
    return list(said) if isinstance(said, (tuple, range)) else said


def _single(name: str, value: Any) -> Any:
    """Return one value: a number, a text, true or false, or a list of these."""
    value = _listed(value)
    if isinstance(value, list):
        return [_single(name, part) for part in value]
    if isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ProblemError(f"{name} = {value!r}: a finite number is needed; leave it out where there is none.")
        return value
    raise ProblemError(f"{name} = {value!r}: a {type(value).__name__} is no parameter; it is written as {_WRITTEN}.")


def _kind(name: str, said: Mapping[str, Any]) -> str:
    found = [key for key in said if key in (*_KINDS, "value")]
    for key in said:
        if key not in (*_KINDS, "value", "count"):
            near = suggestion(key, (*_KINDS, "value", "count")) or "."
            raise ProblemError(f"{name} = {dict(said)!r}: {key!r} is not known{near} A parameter is {_WRITTEN}.")
    if len(found) != 1:
        what = f"{' and '.join(found)} are two ways to say it" if found else "it does not say which values are meant"
        raise ProblemError(f"{name} = {dict(said)!r}: {what}; write {_WRITTEN}.")
    random = found[0] in ("uniform", "log_uniform")
    if ("count" in said) != random:
        need = f"needs count = NUMBER, as in {{{found[0]} = [0.1, 1], count = 100}}" if random else "takes no count"
        raise ProblemError(f"{name} = {dict(said)!r}: {found[0]} {need}.")
    return found[0]


def _numbers(name: str, said: Mapping[str, Any], kind: str, need: str, sizes: tuple[int, ...]) -> list[Any]:
    given = _listed(said[kind])
    if not isinstance(given, list) or len(given) not in sizes or not all(map(is_number, given)):
        raise ProblemError(f"{name}: {kind} = {given!r}, but {kind} = {need} is needed.")
    if not all(math.isfinite(value) for value in given):
        raise ProblemError(f"{name}: {kind} = {given!r}: finite numbers are needed.")
    return given


def _count(name: str, kind: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise ProblemError(f"{name}: {kind} of {value!r} values; a whole number from 1 to {MOST} is needed.")
    return value


def _range(name: str, said: Mapping[str, Any], _seed: int) -> list[Any]:
    need = "[START, STOP] or [START, STOP, STEP], whole numbers without the STOP itself,"
    given = _numbers(name, said, "range", need, (1, 2, 3))
    if not all(isinstance(value, int) for value in given) or (len(given) == 3 and given[2] == 0):
        raise ProblemError(f"{name}: range = {given!r}, but range = {need} is needed; linspace takes other numbers.")
    found = range(*given)
    if not found:
        raise ProblemError(
            f"{name}: range = {given!r} is empty, as the STOP {given[min(1, len(given) - 1)]} is left out."
        )
    _count(name, "range", len(found))
    return list(found)


def _linspace(name: str, said: Mapping[str, Any], _seed: int) -> list[Any]:
    low, high, number = _numbers(name, said, "linspace", "[FIRST, LAST, COUNT]", (3,))
    inner = np.linspace(low, high, _count(name, "linspace", number))[1:-1]
    ends = [float(low), float(high)][: min(number, 2)]
    return _whole([*ends[:1], *map(_short, inner), *ends[1:]])


def _logspace(name: str, said: Mapping[str, Any], _seed: int) -> list[Any]:
    low, high, number = _numbers(name, said, "logspace", "[FIRST, LAST, COUNT] (exponents of 10)", (3,))
    if max(abs(low), abs(high)) > 300:
        raise ProblemError(
            f"{name}: logspace = [{low}, {high}, {number}] are exponents of 10, and doubles end at 1e-300 and 1e300; "
            "for smaller networks sweep log_scale, which takes any number."
        )
    return _whole([_short(10.0**power) for power in np.linspace(low, high, _count(name, "logspace", number))])


def _uniform(name: str, said: Mapping[str, Any], seed: int) -> list[Any]:
    low, high = _bounds(name, said, "uniform")
    return [_short(low + (high - low) * u) for u in _draws(name, said, "uniform", seed)]


def _log_uniform(name: str, said: Mapping[str, Any], seed: int) -> list[Any]:
    low, high = _bounds(name, said, "log_uniform")
    if low <= 0:
        raise ProblemError(f"{name}: log_uniform = [{low:g}, {high:g}], but both bounds must be positive.")
    a, b = math.log(low), math.log(high)
    return [_short(math.exp(a + (b - a) * u)) for u in _draws(name, said, "log_uniform", seed)]


def _bounds(name: str, said: Mapping[str, Any], kind: str) -> tuple[float, float]:
    low, high = _numbers(name, said, kind, "[SMALLEST, LARGEST]", (2,))
    if not low < high:
        raise ProblemError(f"{name}: {kind} = [{low}, {high}], but the first bound must be below the second.")
    return float(low), float(high)


def _draws(name: str, said: Mapping[str, Any], kind: str, seed: int) -> list[float]:
    """Draw from a stream of the parameter's own: no other axis changes it, and more draws begin with the same ones."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key,)))
    found: list[float] = rng.random(_count(name, kind, said["count"])).tolist()
    return found


_KINDS: Mapping[str, Callable[[str, Mapping[str, Any], int], list[Any]]] = {
    "range": _range,
    "linspace": _linspace,
    "logspace": _logspace,
    "uniform": _uniform,
    "log_uniform": _log_uniform,
}


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _whole(values: list[float]) -> list[Any]:
    """Return whole numbers as such if all are: a width may be spread linearly too."""
    return [int(value) for value in values] if all(v.is_integer() and abs(v) < 2**53 for v in values) else values


def _distinct(name: str, values: list[Any]) -> tuple[Any, ...]:
    if not values:
        raise ProblemError(
            f"{name} = [] has no value, so there is no problem at all; give at least one, or leave it out."
        )
    seen: dict[Any, int] = {}
    for k, value in enumerate(values):
        key = isinstance(value, bool), repr(value) if isinstance(value, list) else value
        if key in seen:
            raise ProblemError(
                f"{name} has {value!r} twice among its {count(len(values), 'value')}, at places {seen[key]} and {k}; "
                "the same problem would be computed twice."
            )
        seen[key] = k
    return tuple(values)
