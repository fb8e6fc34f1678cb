"""Convex programs of the theory, every answer with its own certificate."""

from ._hard import MarginResiduals, MarginSolution, class_margins, hard_margin, max_margin

__all__ = [
    "MarginResiduals",
    "MarginSolution",
    "class_margins",
    "hard_margin",
    "max_margin",
]
