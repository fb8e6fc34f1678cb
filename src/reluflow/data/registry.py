"""Named constructions: what they are called, what they take, and one place where that is checked."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, ParamSpec, get_type_hints

import numpy as np

from ..problem import DataError, Dataset
from ..problem.checks import is_number
from ..problem.types import Array

P = ParamSpec("P")


@dataclass(frozen=True)
class Rule:
    """What a parameter may be: ``read`` returns the plain Python value or raises ValueError."""

    text: str
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a construction: its name, its default, and what it may be in words."""

    name: str
    default: Any
    rule: Rule

    def __str__(self) -> str:
        return f"{self.name}={self.default!r}"


class Drawn(NamedTuple):
    """What a construction draws, and the values it found for parameters that were left open."""

    X: Array
    y: Array
    found: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Construction:
    """A way to make data.

    Attributes
    ----------
    name : str
    function : callable
        Takes the parameters as keywords and returns a `Dataset`.
    description : str
        One line.
    figure : str
        The figure, table or statement of the papers it belongs to.
    parameters : mapping of str to Parameter
        Name, default and meaning of each parameter, in the order of the function.
    """

    name: str
    function: Callable[..., Dataset]
    description: str
    figure: str
    parameters: Mapping[str, Parameter] = field(repr=False)

    def __call__(self, **parameters: Any) -> Dataset:
        """Make the data."""
        unknown = [key for key in parameters if key not in self.parameters]
        if unknown:
            allowed = ", ".join(map(str, self.parameters.values()))
            near = suggestion(unknown[0], self.parameters)
            raise DataError(f"{self.name} has no parameter {unknown[0]!r}{near or '.'} It takes {allowed}.")
        return self.function(**parameters)


_FILLED: dict[str, Construction] = {}

#: Every construction by name, in the order of the papers.
CONSTRUCTIONS: Mapping[str, Construction] = MappingProxyType(_FILLED)


def construction(figure: str) -> Callable[[Callable[P, Drawn]], Callable[P, Dataset]]:
    """Register a drawing function under its own name.

    The function it returns checks every argument against the rule in its annotation, draws, and
    returns a `Dataset` that carries the name and all parameters, so that ``make(name, **parameters)``
    gives the same data again.
    """

    def register(draw: Callable[P, Drawn]) -> Callable[P, Dataset]:
        name, signature = draw.__name__, inspect.signature(draw)
        rules = {
            key: hint.__metadata__[0]
            for key, hint in get_type_hints(draw, include_extras=True).items()
            if hasattr(hint, "__metadata__")
        }
        parameters = {key: Parameter(key, value.default, rules[key]) for key, value in signature.parameters.items()}

        @functools.wraps(draw)
        def build(*args: P.args, **kwargs: P.kwargs) -> Dataset:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            values = {key: _read(name, parameters[key], value) for key, value in bound.arguments.items()}
            drawn = draw(**values)  # type: ignore[call-arg]
            return Dataset(drawn.X, drawn.y, name, {**values, **drawn.found})

        summary = (inspect.getdoc(draw) or "").partition("\n")[0]
        _FILLED[name] = Construction(name, build, summary, figure, MappingProxyType(parameters))
        return build

    return register


def _read(name: str, parameter: Parameter, value: Any) -> Any:
    try:
        return parameter.rule.read(value)
    except ValueError:
        raise DataError(
            f"{name}: {parameter.name} must be {parameter.rule.text}, not {value!r} (default {parameter.default!r})."
        ) from None


def make(name: str, **parameters: Any) -> Dataset:
    """Make data by the name of its construction.

    Parameters
    ----------
    name : str
        One of `CONSTRUCTIONS`.
    **parameters
        Parameters of the construction; those not given take their defaults, random ones have a ``seed``.

    Returns
    -------
    Dataset
        With ``name`` and all ``parameters`` recorded: ``make(data.name, **data.parameters)`` is the
        same data again.

    Examples
    --------
    >>> import reluflow as rf
    >>> data = rf.make("phuong", n=100, seed=1)
    >>> data
    Dataset 'phuong': n=100 (49 positive, 51 negative), d=20
    >>> dict(data.parameters)
    {'n': 100, 'd': 20, 'seed': 1}
    >>> rf.make("phong")
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.DataError: there is no construction 'phong'; did you mean 'phuong'? ...
    >>> rf.make("phuong", seeds=1)
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.DataError: phuong has no parameter 'seeds'; did you mean 'seed'? It takes n=500, ...
    """
    return find_construction(name)(**parameters)


def find_construction(name: str) -> Construction:
    """Return the construction of that name, or say which there are."""
    found = same_word(name, CONSTRUCTIONS)
    if found is not None:
        return CONSTRUCTIONS[found]
    from .zoo import examples  # the zoo is built from constructions

    if same_word(name, examples()) is not None:
        raise DataError(f"{name!r} is a worked example, not a construction: example({name!r}).data are its points.")
    near = suggestion(name, CONSTRUCTIONS)
    raise DataError(f"there is no construction {name!r}{near or '.'} There are {', '.join(CONSTRUCTIONS)}.")


def same_word(word: Any, known: Iterable[str]) -> str | None:
    """Return the known word that is this one but for upper and lower case, itself first; None if there is none."""
    if not isinstance(word, str):
        return None
    return word if word in (words := list(known)) else next((k for k in words if k.casefold() == word.casefold()), None)


def suggestion(word: Any, known: Iterable[str]) -> str:
    """Name the nearest known words, as the end of a sentence; empty if there is none."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(str(word).casefold(), folded, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(repr(folded[key]) for key in near)}?" if near else ""


# -- the rules --------------------------------------------------------------------------------------

# Beyond these the squares of the coordinates leave the range of doubles (see `Dataset`).
_SMALLEST, _LARGEST = 1e-150, 1e150


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError
    return int(value)


def _number(value: Any) -> float:
    if not is_number(value) or (isinstance(value, int) and abs(value) > _LARGEST):
        raise ValueError
    number = float(value)
    if not abs(number) <= _LARGEST:  # nor is NaN
        raise ValueError
    return number


def _flag(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError
    return bool(value)


def _numbers(value: Any) -> tuple[float, ...]:
    if not isinstance(value, (tuple, list, np.ndarray)) or np.ndim(value) != 1:
        raise ValueError
    return tuple(map(_number, value))


def _base(value: Any) -> Dataset | str:
    if not isinstance(value, (Dataset, str)):
        raise ValueError
    return value


def _where(read: Callable[[Any], Any], holds: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        out = read(value)
        if not holds(out):
            raise ValueError
        return out

    return checked


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


Count = Annotated[int, Rule("a positive integer", _where(_integer, lambda k: 1 <= k < 2**63))]
Seed = Annotated[int, Rule("a non-negative integer", _where(_integer, lambda k: k >= 0))]
Number = Annotated[float, Rule("a number, at most 1e150 in size", _number)]
Positive = Annotated[float, Rule("a number from 1e-150 to 1e150", _where(_number, lambda v: v >= _SMALLEST))]
NotNegative = Annotated[float, Rule("a number from 0 to 1e150", _where(_number, lambda v: v >= 0))]
Flag = Annotated[bool, Rule("True or False", _flag)]
Numbers = Annotated[tuple[float, ...], Rule("a list of numbers, each at most 1e150 in size", _numbers)]
Positives = Annotated[
    tuple[float, ...],
    Rule("a list of numbers from 1e-150 to 1e150", _where(_numbers, lambda v: min(v, default=0) >= _SMALLEST)),
]
Vector = Annotated[tuple[float, ...] | None, Rule("a list of numbers, or None", _or_none(_numbers))]
LeakySlope = Annotated[float, Rule("a number in [0, 1)", _where(_number, lambda v: 0 <= v < 1))]
PolarAngle = Annotated[float, Rule("an angle between 0 and 180 degrees", _where(_number, lambda v: 0 < v < 180))]
Base = Annotated[Dataset | str, Rule("a Dataset, or the name of an example or a construction", _base)]
