"""What a claim is, and the verdicts it gives.

A claim is one statement of a paper made runnable. It says under which conditions it holds, what it then promises,
with which constants, and whether a given run kept the promise. Adding one is adding a class and naming it in the tuple
``CLAIMS`` of its module.

Three-valued logic throughout: True, False, or None for undecided. What can never be decided by looking ("small enough",
"for almost all") has evidence ``assumed``: it does not stand in the way of a verdict, but every verdict lists it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import inf, log
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..problem import Network
from ..problem.plain import plain
from ..problem.show import Shown
from ..problem.types import Array, Index

if TYPE_CHECKING:
    from ..dynamics import Measures
    from .facts import Facts

Evidence = Literal["proved", "numerical", "assumed"]


#: What the theorems on such data call them, for people.
ORTHOGONAL = (
    "orthogonally separable data (points of one class less than 90 degrees apart, points of two classes at least 90)"
)

_VERDICTS = {True: "holds", False: "fails", None: "undecided"}
_WIDTH = 160

T = TypeVar("T")


class Lines(list[T], Shown):
    """A list that is printed one item a line.

    >>> Lines([1, 2])
    1
    2
    """

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "[]"


def _short(text: str) -> str:
    """Return the text on one line of bounded length; the fields have all of it."""
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 4].rstrip()} ..."


class Answer:
    """Common ground of what theory answers."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; functions are left out, networks become their arrays."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        return {name: _plain(value) for name, value in values.items() if not callable(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, Answer):
        return value.to_dict()
    if isinstance(value, Network):
        scales = {"log_scale": value.log_scale, "log_scale_out": value.log_scale_out}
        return plain({"W": value.W, "a": value.a, "slope": value.slope, **scales})
    if isinstance(value, Groups):
        return plain(value._asdict())
    if isinstance(value, tuple) and any(isinstance(item, Answer) for item in value):
        return [_plain(item) for item in value]
    return plain(value)


@dataclass(frozen=True, eq=False, repr=False)
class Condition(Answer):
    """One requirement of a claim and whether it is met.

    Attributes
    ----------
    name : str
        Where the printed statement needs correction there are two, ending in "(as printed)" and "(as corrected)".
    holds : bool or None
        None: undecided, or (with evidence ``assumed``) not decidable at all.
    evidence : {"proved", "numerical", "assumed"}
        ``proved``: decided exactly. ``numerical``: to a stated tolerance. ``assumed``: nobody can check it.
    value, threshold : optional
        What was measured and what it is compared with; logarithms where the name says so.
    witness : optional
        The pair of samples, the neuron, the vector that decides.
    why : str
        One sentence in plain words.
    decides : bool
        Whether the verdict depends on it; a reading "as printed" that the corrected one replaces does not decide.
    """

    name: str
    holds: bool | None
    evidence: Evidence
    value: Any = None
    threshold: Any = None
    witness: Any = None
    why: str = ""
    decides: bool = True

    @property
    def assumed(self) -> bool:
        """Whether it is taken on trust: nothing was, or could be, decided."""
        return self.evidence == "assumed" and self.holds is not False and self.decides

    def __repr__(self) -> str:
        verdict = "assumed" if self.assumed else f"{_VERDICTS[self.holds]} ({self.evidence})"
        return f"Condition {self.name!r}: {verdict}"


def assume(name: str, why: str) -> Condition:
    """Build a condition that cannot be checked.

    >>> assume("small enough start", "the theorem does not say how small").holds is None
    True
    """
    return Condition(name, None, "assumed", why=why)


def conjunction(conditions: Iterable[Condition]) -> bool | None:
    """Whether all deciding conditions hold: False if one fails, else None if one is undecided, else True.

    Assumed conditions count as met.

    >>> conjunction([Condition("a", True, "proved"), assume("b", "")])
    True
    >>> conjunction([Condition("a", None, "numerical"), Condition("b", False, "proved")])
    False
    """
    verdicts = [c.holds for c in conditions if c.decides and not (c.assumed and c.holds is None)]
    return False if False in verdicts else None if None in verdicts else True


@dataclass(frozen=True, eq=False, repr=False)
class Finding(Answer):
    """Whether a claim applies to a problem, condition by condition.

    Attributes
    ----------
    claim, paper, statement : str
    applies : bool or None
        `conjunction` of the conditions.
    conditions : tuple of Condition
    note : str
    """

    claim: str
    paper: str
    statement: str
    applies: bool | None
    conditions: tuple[Condition, ...]
    note: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the conditions that are only assumed."""
        return tuple(c.name for c in self.conditions if c.assumed)

    @property
    def failing(self) -> tuple[Condition, ...]:
        """The deciding conditions that do not hold."""
        return tuple(c for c in self.conditions if c.decides and c.holds is False)

    def __repr__(self) -> str:
        open_ = [c.name for c in self.conditions if c.decides and c.holds is None and not c.assumed]
        reasons = {True: (), False: [c.name for c in self.failing], None: open_}[self.applies]
        assumed = f", assuming {'; '.join(self.needs)}" if self.needs and self.applies is not False else ""
        verdict = {True: "applies", False: "does not apply", None: "undecided"}[self.applies]
        return _short(f"Finding {self.claim}: {verdict}{': ' if reasons else ''}{'; '.join(reasons)}{assumed}")


class Groups(NamedTuple):
    """Where the neurons end up: indices of those that fit the positive class, the negative class, and the dead."""

    plus: Index
    minus: Index
    dead: Index


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Answer):
    """What a claim promises for a problem.

    Attributes
    ----------
    claim, paper, text : str
        ``text`` is one sentence with the numbers in it.
    function : callable or None
        The limit function on points of shape (n, d), up to a positive factor unless the text fixes it.
    directions : ndarray of shape (p, d) or None
        Limit directions, one a neuron; zero rows for neurons the claim says nothing about.
    groups : Groups or None
    network : Network or None
        The limit as a network (up to the split inside a group).
    margin : float or None
        Limit of the normalised margin.
    bounds : mapping of str to float
        Named constants, times in the clock of the problem; a name that begins with ``log_`` is a logarithm.
    probability : float or None
        Lower bound over the draw of the start.
    needs : tuple of str
        What is only assumed.
    """

    claim: str
    paper: str
    text: str
    function: Callable[[npt.ArrayLike], Array] | None = None
    directions: Array | None = None
    groups: Groups | None = None
    network: Network | None = None
    margin: float | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)
    probability: float | None = None
    needs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        assumed = f" (assuming {'; '.join(self.needs)})" if self.needs else ""
        return _short(f"Prediction {self.claim}: {self.text}{assumed}")


@dataclass(frozen=True, eq=False, repr=False)
class Observation(Answer):
    """What a run says about a claim.

    Attributes
    ----------
    claim : str
    consistent : bool or None
        False: the run contradicts the claim, or, where ``needs`` is not empty, one of those assumptions was not met.
    measured, predicted : optional
        Numbers (or short lists of them) side by side.
    where : optional
        The record, neuron, sample or log time that decides.
    text : str
    needs : tuple of str
        What the claim only assumes, filled in by `monitor`.
    """

    claim: str
    consistent: bool | None
    measured: Any = None
    predicted: Any = None
    where: Any = None
    text: str = ""
    needs: tuple[str, ...] = ()

    @property
    def contradicts(self) -> bool:
        """Whether the claim is refuted outright: inconsistent and nothing was assumed."""
        return self.consistent is False and not self.needs

    def __repr__(self) -> str:
        verdict = {True: "seen", False: "contradicted" if self.contradicts else "not seen", None: "undecided"}
        return _short(f"Observation {self.claim}: {verdict[self.consistent]}: {self.text}")


class Role(NamedTuple):
    """What a claim is named for when the outcome of a run is put into words.

    Attributes
    ----------
    place : int
        Its place among the statements of its paper that people come for, from 1; the others (0) are only counted.
    about : str
        Of a theorem on where the flow ends: what it is about.
    nearest_for : {"", "frozen", "ReLU", "leaky"}
        The kind of network for which it is named where no theorem on the end applies.
    largest : str
        Name of its bound that is the largest margin of any network.
    every_limit : str
        What it says of every limit.
    stall : str
        What it foresees where points are lost.
    """

    place: int = 0
    about: str = ""
    nearest_for: Literal["", "frozen", "ReLU", "leaky"] = ""
    largest: str = ""
    every_limit: str = ""
    stall: str = ""


class Claim:
    """One statement of a paper.

    A subclass sets the class attributes and overrides `conditions`, and of the rest what the statement is about.
    Methods receive `Facts`, where quantities of the problem that several claims need are computed once, and `Measures`,
    where the same is done for a run.

    Attributes
    ----------
    id : str
    paper : str
        Key of its reference: ``PL``, ``ML``, ``SBG``, ``LL``.
    statement : str
        One line.
    falsifier : str
        One line: what observation would refute it.
    test : str
        The test of this package that would notice, as ``file::function``.
    also : tuple of str
        Ids of further statements that this class covers.
    sources : tuple of str
        Keys of further references that the statement rests on.
    role : Role
        What it is named for in the report on a run.
    """

    id: ClassVar[str]
    paper: ClassVar[str]
    statement: ClassVar[str]
    falsifier: ClassVar[str] = ""
    test: ClassVar[str] = ""
    also: ClassVar[tuple[str, ...]] = ()
    sources: ClassVar[tuple[str, ...]] = ()
    role: ClassVar[Role] = Role()

    def conditions(self, facts: Facts) -> tuple[Condition, ...]:
        """Return what must hold for the statement to say anything, each item decided as far as it can be."""
        raise NotImplementedError

    def prediction(self, facts: Facts) -> Prediction | None:  # noqa: ARG002
        """Return what is promised, given that the conditions do not fail; None if that is no more than `bounds`."""
        return None

    def bounds(self, facts: Facts) -> dict[str, float]:  # noqa: ARG002
        """Constants of the statement for this problem."""
        return {}

    def observe(self, facts: Facts, seen: Measures) -> tuple[Observation, ...]:  # noqa: ARG002
        """Compare what was measured along a run with the promise."""
        return ()

    # -- for subclasses --------------------------------------------------------------------------------

    def promise(self, text: str, **values: Any) -> Prediction:
        """Build a `Prediction` of this claim."""
        return Prediction(self.id, self.paper, text, **values)

    def seen(
        self, consistent: bool | None, text: str, measured: Any = None, predicted: Any = None, where: Any = None
    ) -> Observation:
        """Build an `Observation` about this claim."""
        kept = None if consistent is None else bool(consistent)  # not NumPy's
        return Observation(self.id, kept, measured, predicted, where, text)

    def judged(self, seen: Measures, kept: bool | None, text: str, *numbers: Any) -> Observation:
        """Build an observation; what a discrete run breaks is not held against a statement about the flow."""
        if kept is False and seen.run.method != "flow":
            return self.seen(None, f"{text} (a run of {seen.run.method}; the statement is about the flow)", *numbers)
        return self.seen(kept, text, *numbers)

    @classmethod
    def status(cls) -> tuple[str, ...]:
        """Say what is implemented: of ``checked``, ``predicted``, ``bounded``, ``monitored``."""
        words = {"conditions": "checked", "prediction": "predicted", "bounds": "bounded", "observe": "monitored"}
        return tuple(word for name, word in words.items() if getattr(cls, name) is not getattr(Claim, name))


def when(log_time: float) -> str:
    """Write a time for people.

    >>> when(0.0), when(-np.inf), when(1e4)
    ('t = 1', 't = 0', 'log t = 10000')
    """
    return f"t = {np.exp(log_time):.4g}" if log_time < 14 else f"log t = {log_time:.6g}"


def log_of(time: float) -> float:
    """Log of a time, -inf for the start."""
    return log(time) if time > 0 else -inf
