"""Quantities of a problem that several claims need, each computed once and only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

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
    separability_violations,
)
from .base import Condition, Groups

Value = TypeVar("Value")

#: Relative difference of |a_j| and |w_j| up to which a neuron counts as balanced: rounding of the norm.
BALANCE_TOL = 1e-12

#: Of more samples than this a part is looked at first.
_PART = 1000


class Facts:
    """A problem with a memory: what claims receive.

    Every property is lazy, so that checking a claim costs no more than what it looks at. `once` does the same for
    quantities that only one module needs.

    >>> from reluflow import Dataset, Network
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> facts = Facts(Problem(data, Network.balanced([[1, 0], [-1, 1]], [1, -1], log_scale=-9)))
    >>> facts.balanced.holds, facts.orthogonal.holds, facts.orthogonal.evidence
    (True, True, 'proved')
    >>> facts.groups.plus, facts.groups.minus
    (array([0]), array([1]))
    """

    def __init__(self, problem: Problem) -> None:
        if not isinstance(problem, Problem):
            raise ProblemError(
                f"theory needs a Problem, not {type(problem).__name__}; build one with Problem(data, net)."
            )
        self.problem = problem
        self._memory: dict[str, Any] = {}

    @staticmethod
    def of(problem: Problem | Facts) -> Facts:
        """Return what was given if it already is `Facts`, so that several calls can share one."""
        return problem if isinstance(problem, Facts) else Facts(problem)

    def once(self, name: str, compute: Callable[[], Value]) -> Value:
        """Return the value kept under ``name``, computed when first asked for (prefix names with your paper)."""
        if name not in self._memory:
            self._memory[name] = compute()
        value: Value = self._memory[name]
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

    # -- conditions that many claims share ----------------------------------------------------------------

    @cached_property
    def balanced(self) -> Condition:
        """``|a_j| = |w_j|`` for every neuron at the start, none of them zero."""
        log_w, log_a = self.log_norms, self.net.log_outs
        with np.errstate(invalid="ignore"):
            gap = np.abs(np.where(np.isneginf(log_w) & np.isneginf(log_a), 0.0, log_w - log_a))
        worst = int(np.argmax(gap))
        zero = np.flatnonzero(np.isneginf(log_w))
        # At log scales of thousands the logarithms themselves are rounded.
        tolerance = BALANCE_TOL * max(1.0, float(np.abs(log_w[np.isfinite(log_w)]).max(initial=1.0)))
        name = "balanced start"
        if zero.size:
            return Condition(name, False, "proved", 0.0, witness=int(zero[0]), why=f"neuron {zero[0]} has w = 0.")
        if gap[worst] > tolerance:
            why = f"neuron {worst} has |a|/|w| = exp({log_a[worst] - log_w[worst]:.6g}), not 1."
            return Condition(name, False, "numerical", float(gap[worst]), tolerance, worst, why)
        return Condition(name, True, "numerical", float(gap[worst]), tolerance, worst, "|a_j| = |w_j| for all neurons.")

    @cached_property
    def relu(self) -> Condition:
        """The activation is ReLU."""
        slope = self.net.slope
        why = "the activation is ReLU." if slope == 0 else f"the activation is leaky, slope {slope:g}; ReLU is needed."
        return Condition("ReLU activation", slope == 0, "proved", slope, 0.0, why=why)

    @cached_property
    def both_layers(self) -> Condition:
        """Both layers are trained."""
        both = self.problem.train == "both"
        why = "both layers are trained." if both else "the second layer is frozen; the statement trains both."
        return Condition("both layers trained", both, "proved", why=why)

    @cached_property
    def both_classes(self) -> Condition:
        """Both labels occur."""
        counts = (int(self.data.positives.size), int(self.data.negatives.size))
        why = f"{counts[0]} positive and {counts[1]} negative samples."
        return Condition("both classes present", min(counts) > 0, "proved", counts, (1, 1), why=why)

    @cached_property
    def orthogonal(self) -> Condition:
        """Orthogonal separability (PL-D1), decided exactly."""
        return self._separability(strict=False)

    @cached_property
    def strictly_orthogonal(self) -> Condition:
        """Strict orthogonal separability, the same as ``mu > 0`` (ML-A1), decided exactly."""
        return self._separability(strict=True)

    def _separability(self, strict: bool) -> Condition:
        name = "orthogonally separable, strictly (mu > 0)" if strict else "orthogonally separable"
        wrong = self._some_violation
        mu, pair = (np.nan, (0, 0)) if wrong else (self.constants.mu, self.constants.pair)
        if mu < 0 or (strict and mu == 0):
            wrong = pair
        elif mu == 0:  # a zero across classes is allowed, within a class it is not
            wrong = self.once("tie", lambda: next(separability_violations(self.data), None))
        if wrong is None:
            why = f"the smallest cosine between signed samples is {mu:.6g} (samples {pair[0]} and {pair[1]})."
            return Condition(name, True, "proved", mu, 0.0, pair, why)
        i, j = wrong
        same = self.data.y[i] == self.data.y[j]
        wanted = "> 0" if same else "< 0" if strict else "<= 0"
        cosine = (self.data.X[i] / self.data.norms[i]) @ (self.data.X[j] / self.data.norms[j])
        size = "exactly 0" if mu == 0 else f"{cosine:.6g}"
        value = mu if mu <= 0 else float(cosine * self.data.y[i] * self.data.y[j])
        why = (
            f"samples {i} and {j} have {'equal' if same else 'different'} labels; their cosine is {size}, not {wanted}."
        )
        return Condition(name, False, "proved", value, 0.0, (i, j), why)

    @cached_property
    def _some_violation(self) -> tuple[int, int] | None:
        """Return a pair that contradicts separability, found in a part of large data: most need no more."""
        if self.data.n <= _PART:
            return None
        part = np.unique(np.linspace(0, self.data.n - 1, _PART).astype(np.intp))
        found = next(separability_violations(self.data.subset(part)), None)
        return None if found is None else (int(part[found[0]]), int(part[found[1]]))

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
        if self.both_classes.holds:
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
