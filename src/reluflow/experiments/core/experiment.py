"""What an experiment is: parameters, a run, expectations that can fail, and a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from ...problem import ProblemError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["reproduced", "deviates", "cannot be judged"]
Basis = Literal["reported", "implied", "ours"]
Tell = Callable[[float], None]
Numbers = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter the paper does not state, and what was chosen for it."""

    name: str
    chosen: str
    why: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """One outcome the paper reports (or theory demands), what was measured, and whether they agree.

    Parameters
    ----------
    key : str
        Short name, unique in the experiment.
    claim : str
        What is claimed, in one sentence.
    expected : str
        The cut-off the measured value is held against.
    measured : str
        What came out.
    holds : bool or None
        None when it cannot be judged; ``why`` then says why.
    why : str
        Reason of a cut-off, of a deviation, or of the lack of a verdict.
    basis : {"reported", "implied", "ours"}
        Whose it is: said by the paper of this figure, following from its theory, or asked by us. The experiment says
        which (`Experiment.judge`).
    """

    key: str
    claim: str
    expected: str
    measured: str
    holds: bool | None
    why: str = ""
    basis: Basis = "reported"

    @property
    def verdict(self) -> Verdict:
        """The verdict in words."""
        if self.holds is None:
            return "cannot be judged"
        return "reproduced" if self.holds else "deviates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A figure or table of a paper, made again; or one of our own.

    Parameters
    ----------
    id : str
        ``PL-F1``, ``LL-TAB1``, ...; what comes before the first dash is the paper.
    title : str
        What it shows, in a few words.
    caption : str
        What is to be seen in which panel.
    run : callable
        ``run(parameters, tell)`` computes the numbers: nested dictionaries with text keys, lists, arrays, numbers,
        texts, everything that `check` and `plot` need. ``tell(fraction)`` moves the progress bar. Experiments that
        have the same function and the same parameters share one run.
    check : callable
        ``check(numbers)`` judges them: a list of `Expectation`.
    plot : callable
        ``plot(numbers)`` draws them: a matplotlib figure in the arrangement of the paper.
    parameters : mapping
        Of the full run; numbers, texts, and lists of these.
    quick : mapping
        What a quick run changes in them.
    unstated : tuple of Choice
        What the paper leaves open.
    implied, ours : tuple of str
        Keys of the expectations that follow from the theory of the paper without being reported, and of those that are
        ours; ``*`` stands for anything. All others are reported by the paper.
    illustration : bool
        The paper draws an idea there, not a result.
    minutes : float
        What the full run costs on one core, roughly; it only weighs the progress bar and the order.
    """

    id: str
    title: str
    caption: str
    run: Callable[[Mapping[str, Any], Tell], Numbers]
    check: Callable[[Numbers], list[Expectation]]
    plot: Callable[[Numbers], Figure]
    parameters: Mapping[str, Any]
    quick: Mapping[str, Any] = field(default_factory=dict)
    unstated: tuple[Choice, ...] = ()
    implied: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    illustration: bool = False
    minutes: float = 1.0

    def __post_init__(self) -> None:
        unknown = sorted(set(self.quick) - set(self.parameters))
        if unknown:
            raise ProblemError(f"{self.id}: the quick run changes {unknown}, which the full run does not have.")

    @property
    def paper(self) -> str:
        """The paper it belongs to: PL, ML, SBG, LL, or C for what belongs to none."""
        return self.id.split("-")[0]

    def judge(self, numbers: Numbers) -> list[Expectation]:
        """Judge the numbers, and say of every expectation whose it is."""
        return [replace(one, basis=self._basis(one.key)) for one in self.check(numbers)]

    def _basis(self, key: str) -> Basis:
        if any(fnmatchcase(key, pattern) for pattern in self.ours):
            return "ours"
        return "implied" if any(fnmatchcase(key, pattern) for pattern in self.implied) else "reported"

    def settings(self, quick: bool = False) -> dict[str, Any]:
        """Return the parameters of the full or of the quick run."""
        return {**self.parameters, **(self.quick if quick else {})}


def at_most(key: str, claim: str, value: float, bound: float, why: str = "") -> Expectation:
    """Expect a number to be at most the bound; one that is not a number cannot be judged.

    >>> at_most("rank", "W has rank two", 0.04, 0.06).verdict
    'reproduced'
    >>> at_most("rank", "W has rank two", 0.4, 0.06).verdict
    'deviates'
    """
    return _compared(key, claim, value, f"<= {bound:.6g}", value <= bound, why)


def at_least(key: str, claim: str, value: float, bound: float, why: str = "") -> Expectation:
    """Expect a number to be at least the bound; one that is not a number cannot be judged.

    >>> at_least("share", "most neurons", float("nan"), 0.5).verdict
    'cannot be judged'
    """
    return _compared(key, claim, value, f">= {bound:.6g}", value >= bound, why)


def between(key: str, claim: str, value: float, low: float, high: float, why: str = "") -> Expectation:
    """Expect a number to be in the closed interval; one that is not a number cannot be judged.

    >>> between("ratio", "two drops", 1.4, 1.0, 2.0)
    Expectation(key='ratio', claim='two drops', expected='1 to 2', measured='1.4', holds=True, why='', basis='reported')
    """
    return _compared(key, claim, value, f"{low:.6g} to {high:.6g}", low <= value <= high, why)


def equals(key: str, claim: str, value: float, target: float, tolerance: float, why: str = "") -> Expectation:
    """Expect a number to be the target, up to an absolute tolerance.

    >>> equals("margin", "the margin", 0.375, 0.375, 1e-9).expected
    '0.375 +- 1e-09'
    """
    expected = f"{target:.10g} +- {tolerance:.3g}"
    return _compared(key, claim, value, expected, abs(value - target) <= tolerance, why, digits=10)


def is_so(key: str, claim: str, value: bool, expected: str = "true", measured: str = "", why: str = "") -> Expectation:
    """Expect a statement to be true.

    >>> is_so("accuracy", "all points right", False).measured
    'false'
    """
    return Expectation(key, claim, expected, measured or ("true" if value else "false"), bool(value), why)


def not_judged(key: str, claim: str, expected: str, why: str, measured: str = "") -> Expectation:
    """Say that, and why, something cannot be judged.

    >>> not_judged("p", "the colour", "red", "the paper does not say of what").verdict
    'cannot be judged'
    """
    return Expectation(key, claim, expected, measured or "not measured", None, why)


def _compared(key: str, claim: str, value: float, expected: str, holds: bool, why: str, digits: int = 6) -> Expectation:
    if math.isnan(value):
        reason = "the measured value is not a number"
        return Expectation(key, claim, expected, "nan", None, f"{reason}; {why}" if why else reason)
    return Expectation(key, claim, expected, f"{value:.{digits}g}", bool(holds), why)
