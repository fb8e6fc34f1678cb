"""Numbers that fix the limit on orthogonally separable data (PL)."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from ...margins import MarginSolution
from ..facts import Facts


class MarginPair(NamedTuple):
    """Lengths of the two class max-margin vectors (0 for an empty class) and their cosine (1 then)."""

    plus: float
    minus: float
    cosine: float

    @property
    def total(self) -> float:
        """``|w+| + |w-|``."""
        return self.plus + self.minus

    @property
    def stable_rank(self) -> float:
        """Limit of ``|W|_F^2/|W|_2^2`` (PL-T1')."""
        spread = (self.plus - self.minus) ** 2 + 4 * self.plus * self.minus * self.cosine**2
        return 2 / (1 + sqrt(spread / self.total**2))


def margin_pair(facts: Facts) -> MarginPair:
    """Return the numbers that fix the limit."""
    plus, minus = facts.class_margins
    cosine = float(plus.direction @ minus.direction) if plus and minus else 1.0
    return MarginPair(1 / plus.margin if plus else 0.0, 1 / minus.margin if minus else 0.0, cosine)


def solved(facts: Facts) -> list[MarginSolution]:
    """Return the class margins there are."""
    return [solution for solution in facts.class_margins if solution is not None]
