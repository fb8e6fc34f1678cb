"""Quantities of a problem that several claims need, each computed once and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from ..dynamics import Alignment, align
from ..margins import MarginSolution, class_margins, max_margin
from ..problem import Dataset, Loss, Network, NotSeparable, Problem, ProblemError
from ..problem.types import Array, Index
from ..sectors import (
    AlignmentConstants,
    Cones,
    alignment_constants,
    class_sums,
    cones_of,
    initial_gap,
)
from .base import Groups

Value = TypeVar("Value")
Options = ParamSpec("Options")


class Facts:
    """A problem with a memory: what claims receive.

    Every property is lazy, so that checking a claim costs no more than what it looks at. The decorator `once` does the
    same for functions of the facts: the conditions, and quantities that only one module needs.

    >>> from reluflow import Dataset, Network
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> facts = Facts(Problem(data, Network.balanced([[1, 0], [-1, 1]], [1, -1], log_scale=-9)))
    >>> facts.groups.plus, facts.groups.minus
    (array([0]), array([1]))

    Parameters
    ----------
    problem : Problem
    verdicts_only : bool
        Searches may end when a verdict stands; the numbers they show are only as close as that takes.
    """

    def __init__(self, problem: Problem, *, verdicts_only: bool = False) -> None:
        if not isinstance(problem, Problem):
            raise ProblemError(
                f"theory needs a Problem, not {type(problem).__name__}; build one with Problem(data, net)."
            )
        self.problem, self.verdicts_only = problem, verdicts_only
        self._memory: dict[Hashable, Any] = {}

    @staticmethod
    def of(problem: Problem | Facts) -> Facts:
        """Return what was given if it already is `Facts`, so that several calls can share one."""
        return problem if isinstance(problem, Facts) else Facts(problem)

    def remember(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the value kept under a key, computed when first asked for; see `once`."""
        if key not in self._memory:
            self._memory[key] = compute()
        value: Value = self._memory[key]
        return value

    # -- the problem itself -----------------------------------------------------------------------------

    @property
    def data(self) -> Dataset:
        """The samples."""
        return self.problem.data

    @property
    def net(self) -> Network:
        """The start."""
        return self.problem.net

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self.problem.loss

    @property
    def speed(self) -> float:
        """``r g(0)``: times of ML are divided by it."""
        return self.problem.speed

    @cached_property
    def signs(self) -> Array:
        """Signs of the output weights at the start."""
        return np.asarray(np.sign(self.net.a))

    @cached_property
    def log_norms(self) -> Array:
        """``log |w_j(0)|``."""
        return self.net.log_norms

    @cached_property
    def log_total(self) -> float:
        """Log of the sum of ``|w_j(0)|^2``."""
        return float(np.logaddexp.reduce(2 * self.log_norms))

    @property
    def x_max(self) -> float:
        """The largest norm of a sample."""
        return float(self.data.norms.max())

    @cached_property
    def zeta_2(self) -> float:
        """How far the neurons start from the rays that repel them (ML-A2)."""
        return initial_gap(self.data, self.net)

    # -- geometry ---------------------------------------------------------------------------------------

    @cached_property
    def constants(self) -> AlignmentConstants:
        """Constants of early alignment for a sum of losses with unit force at zero."""
        return alignment_constants(self.data, self.net)

    @cached_property
    def constants_in_clock(self) -> AlignmentConstants:
        """The same with times in the clock of the problem."""
        return self.constants.in_clock(self.speed)

    @cached_property
    def class_sums(self) -> tuple[Array, Array]:
        """Sums of the two classes."""
        return class_sums(self.data)

    @cached_property
    def start_cones(self) -> Cones:
        """In which of S+, S-, S_dead the neurons start."""
        return cones_of(self.data, self.net.W)

    @cached_property
    def class_margins(self) -> tuple[MarginSolution | None, MarginSolution | None]:
        """Max-margin vectors of the two classes (PL-D2), None for an empty one; raises as `margins.class_margins`."""
        if self.data.positives.size and self.data.negatives.size:
            return class_margins(self.data)
        from ..margins import hard_margin

        alone = hard_margin(self.data.X)  # indices are those of the data, for there is one class only
        return (alone, None) if self.data.positives.size else (None, alone)

    @cached_property
    def max_margin(self) -> MarginSolution | NotSeparable:
        """The linear max-margin separator, or the proof that there is none; may raise `Undecided`."""
        try:
            return max_margin(self.data)
        except NotSeparable as error:
            return error

    @cached_property
    def alignment(self) -> Alignment:
        """The exact early phase; seconds on large data, so `check` must not need it."""
        return align(self.problem)

    @property
    def solved_alignment(self) -> Alignment | None:
        """The early phase if somebody has asked for it already."""
        return self.__dict__.get("alignment")

    @cached_property
    def groups(self) -> Groups:
        """Where neurons end for small enough scale: in S+ with a_j > 0, in S- with a_j < 0, or dead.

        Neurons with neither fate (stuck on a repelling ray, sliding for ever) are in none of the three.
        """
        early = self.alignment
        dead = np.array([fate == "dead" for fate in early.fates])
        active, positive = early.pattern > 0, self.data.y > 0
        plus = (active == positive).all(axis=1) & (early.signs > 0) & ~dead
        minus = (active != positive).all(axis=1) & (early.signs < 0) & ~dead

        def where(flags: Any) -> Index:
            return np.flatnonzero(flags)

        return Groups(where(plus), where(minus), where(dead))


def once(function: Callable[Concatenate[Facts, Options], Value]) -> Callable[Concatenate[Facts, Options], Value]:
    """Let a function of the facts be computed once a problem (and value of its other arguments): they keep the answer.

    >>> from reluflow.theory import conditions
    >>> from reluflow import Dataset, Network
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> facts = Facts(Problem(data, Network.balanced([[1, 0], [-1, 1]], [1, -1], log_scale=-9)))
    >>> conditions.orthogonal(facts) is conditions.orthogonal(facts)
    True
    """

    @wraps(function)
    def kept(facts: Facts, /, *args: Options.args, **options: Options.kwargs) -> Value:
        key = (function, *args, *options.items())
        return facts.remember(key, lambda: function(facts, *args, **options))

    return kept
