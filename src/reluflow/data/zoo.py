"""Small data sets with known answers."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..problem import DataError, Dataset, Network
from .constructions import corner_angle, hinted
from .registry import make, same_word, suggestion

_FILES = ("zoo_phuong_min.toml", "zoo_sarussi_lyu.toml")


@dataclass(frozen=True, eq=False)
class KnownFacts:
    """What is known of an example.

    Attributes
    ----------
    answers : mapping
        Numbers, read-only arrays, or nested mappings and tuples of them, by name.
    predicates : mapping of str to bool
        Which conditions hold.
    half_units : mapping
        Shaped like ``answers``: how far the exact value may be from the one written down, half a unit
        of its last digit; 0 where it is exact.
    """

    answers: Mapping[str, Any]
    predicates: Mapping[str, bool]
    half_units: Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Example:
    """A data set with known answers.

    Attributes
    ----------
    name, note : str
    data : Dataset
    networks : mapping of str to Network
        Networks the answers speak of, if any.
    facts : KnownFacts
        What does not depend on the slope of the activation; `answers` and `predicates` are short for it.
    by_slope : mapping of float to KnownFacts
        What holds for one slope only. `at` joins both.
    """

    name: str
    note: str
    data: Dataset
    networks: Mapping[str, Network]
    facts: KnownFacts
    by_slope: Mapping[float, KnownFacts]

    @property
    def answers(self) -> Mapping[str, Any]:
        """Answers that do not depend on the slope."""
        return self.facts.answers

    @property
    def predicates(self) -> Mapping[str, bool]:
        """Conditions that do not depend on the slope."""
        return self.facts.predicates

    @property
    def slopes(self) -> tuple[float, ...]:
        """Slopes for which something is known."""
        return tuple(self.by_slope)

    def at(self, slope: float) -> KnownFacts:
        """Join what is known at this slope with what holds at every slope.

        >>> example("D2").at(0.5).answers["global_margin"]
        0.312542281126
        """
        if slope not in self.by_slope:
            known = ", ".join(f"{s:g}" for s in self.by_slope) or "none: its answers do not depend on the slope"
            raise DataError(f"nothing special is known of example {self.name!r} at slope {slope!r}; slopes: {known}.")
        own, common = self.by_slope[slope], self.facts
        return KnownFacts(
            MappingProxyType({**common.answers, **own.answers}),
            MappingProxyType({**common.predicates, **own.predicates}),
            MappingProxyType({**common.half_units, **own.half_units}),
        )

    def agrees(self, answer: str, value: npt.ArrayLike, slope: float | None = None, slack: float = 1e-12) -> bool:
        """Whether a value agrees with a known answer to all the digits that are known of it.

        Parameters
        ----------
        answer : str
            Name of the answer; dots lead into nested ones, such as ``"bounds.t_2"`` or ``"early.0.times"``.
        value : array_like
        slope : float, optional
            For answers that depend on it.
        slack : float
            Allowance for rounding, relative to values above 1; it is all that exact answers get.

        Examples
        --------
        >>> example("EX1").agrees("w_plus_norm", 2**0.5 / 3)
        True
        >>> example("EX1").agrees("w_plus_norm", 0.47140453)
        False
        """
        facts = self.facts if slope is None else self.at(slope)
        known = np.asarray(self._find(facts.answers, answer))
        allowed = np.asarray(self._find(facts.half_units, answer)) + slack * np.maximum(1.0, np.abs(known))
        got = np.asarray(value, dtype=np.float64)
        return bool(got.shape == known.shape and np.all(np.abs(got - known) <= allowed))

    def _find(self, tree: Any, path: str) -> Any:
        for step in path.split("."):
            if isinstance(tree, tuple) and step.isdecimal() and int(step) < len(tree):
                tree = tree[int(step)]
            elif isinstance(tree, Mapping) and step in tree:
                tree = tree[step]
            else:
                names = tree if isinstance(tree, Mapping) else ()
                raise DataError(
                    f"example {self.name!r} has no answer {path!r}{suggestion(step, names) or '.'} "
                    f"There are {', '.join(names) or 'none here'}; those that depend on the slope need slope=, "
                    f"one of {self.slopes}."
                )
        if isinstance(tree, (Mapping, tuple)):
            raise DataError(f"{path!r} of example {self.name!r} is made of several answers; name one of them.")
        return tree

    def __repr__(self) -> str:
        slopes = f"; more at slope {', '.join(f'{s:g}' for s in self.slopes)}" if self.slopes else ""
        known = ", ".join([*self.predicates, *self.answers])
        return f"Example {self.name!r}: {self.note}\n  {self.data!r}\n  known: {known}{slopes}"

    def __reduce__(self) -> tuple[Any, ...]:
        return example, (self.name,)


def examples() -> dict[str, str]:
    """Names of the worked examples, each with one line about it.

    >>> examples()["EX2"]
    'the positive support is one point: no spanning support, a dead cone with interior'
    """
    return {name: table["note"] for name, table in _tables().items()}


def example(name: str) -> Example:
    """Look up a small data set with known answers.

    Parameters
    ----------
    name : str
        One of `examples`; case does not matter.

    Examples
    --------
    >>> ex = example("EX1")
    >>> ex.data
    Dataset 'EX1': n=4 (2 positive, 2 negative), d=2
    >>> ex.answers["mu"], ex.predicates["orthogonally_separable"]
    (0.6459422415, True)
    >>> example("ex11")
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.DataError: there is no example 'ex11'; did you mean 'EX1' or 'EX10' or 'EX9'? ...
    """
    found = same_word(name, _tables())
    if found is None:
        raise DataError(
            f"there is no example {name!r}{suggestion(name, examples()) or '.'} There are {', '.join(examples())}."
        )
    return _build(found)


@functools.cache
def _build(name: str) -> Example:
    rest = dict(_tables()[name])
    note, slopes, nets = rest.pop("note"), rest.pop("slope", {}), rest.pop("networks", {})
    if name in _HINTS:
        points = hinted("D6-base", H=_HINTS[name], K=1.0, eps=0.2, w_star=_STAR, w_perp=_PERP)
    elif "make" in rest:
        points = make(**_plain(rest.pop("make")))
    else:
        points = Dataset(_plain(rest.pop("X")), rest.pop("y"))
    networks = {key: _network(**_plain(net)) for key, net in nets.items()}
    if name in _CORNERS:
        networks["kkt"] = _three_neurons(_CORNERS[name])
    return Example(
        name,
        note,
        Dataset(points.X, points.y, name, {"example": name}),
        MappingProxyType(networks),
        _facts(rest),
        MappingProxyType({float(slope): _facts(table) for slope, table in slopes.items()}),
    )


# -- what the files cannot say: irrational coordinates ----------------------------------------------

_STAR, _PERP = ((17 / math.sqrt(290), -1 / math.sqrt(290)), (1 / math.sqrt(290), 17 / math.sqrt(290)))
_HINTS = {"D6": 45.0, "D6-H12": 12.0}
_CORNERS = {"D4": 0.5, "D4-0": 0.0, "D4-0.25": 0.25, "D4-0.9": 0.9}


def _three_neurons(slope: float) -> Network:
    """Build the KKT network of LL-F1 left: two positive neurons at angles +-b, a negative one at 180 degrees."""
    b = corner_angle(slope)
    a1, a3 = 1 / math.sqrt(2 * (1 + slope) * math.cos(b)), 1 / math.sqrt(1 + slope)
    W = [[a1 * math.cos(b), a1 * math.sin(b)], [a1 * math.cos(b), -a1 * math.sin(b)], [-a3, 0.0]]
    return Network(np.array(W), np.array([a1, a1, -a3]), slope)


# -- reading the files ------------------------------------------------------------------------------


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    import tomllib
    from importlib import resources

    out: dict[str, dict[str, Any]] = {}
    for file in _FILES:
        # Decimal keeps the digits as written, hence how well each number is known.
        out |= tomllib.loads(resources.files(__package__).joinpath(file).read_text("utf-8"), parse_float=Decimal)
    return out


def _facts(table: Mapping[str, Any]) -> KnownFacts:
    predicates = {key: value for key, value in table.items() if isinstance(value, bool)}
    known = {key: _read(value) for key, value in table.items() if not isinstance(value, bool)}
    return KnownFacts(
        MappingProxyType({key: value for key, (value, _) in known.items()}),
        MappingProxyType(predicates),
        MappingProxyType({key: half_unit for key, (_, half_unit) in known.items()}),
    )


def _read(value: Any) -> tuple[Any, Any]:
    """Return a value of the file as (value, half a unit of its last digit), both of the same shape."""
    if isinstance(value, Decimal):
        return float(value), float(Decimal(5).scaleb(int(value.as_tuple().exponent) - 1))
    if isinstance(value, str):
        return (float(Fraction(value)), 0.0) if value.strip("0123456789/.e-") == "" else (value, 0.0)
    if isinstance(value, dict):
        facts = {key: _read(item) for key, item in value.items()}
        return tuple(MappingProxyType({key: pair[k] for key, pair in facts.items()}) for k in (0, 1))  # type: ignore[return-value]
    if isinstance(value, list):
        pairs = [_read(item) for item in value]
        return _sequence([pair[0] for pair in pairs], int), _sequence([pair[1] for pair in pairs], float)
    return value, 0.0


def _sequence(items: list[Any], empty: type) -> Any:
    """Return numbers, or equally long rows of them, as a read-only array; anything else as a tuple."""
    shapes = {np.shape(item) if isinstance(item, (int, float, np.ndarray)) else None for item in items}
    if None in shapes or len(shapes) > 1:
        return tuple(items)
    array = np.array(items, dtype=None if items else empty)
    array.setflags(write=False)
    return array


def _plain(value: Any) -> Any:
    """Return the decimals of a TOML value as floats, whatever it is made of."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value


def _network(W: Any, a: Any = None, signs: Any = None, slope: float = 0.0) -> Network:
    return Network(W, a, slope) if signs is None else Network.balanced(W, signs, slope)
