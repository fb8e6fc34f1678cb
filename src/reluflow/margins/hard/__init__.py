"""The widest linear separator, to the last digit, with exact certificates."""

from .rows import Rows
from .search import Candidate, find_active
from .solution import MarginResiduals, MarginSolution, as_rows, class_margins, hard_margin, max_margin, solve

__all__ = [
    "Candidate",
    "MarginResiduals",
    "MarginSolution",
    "Rows",
    "as_rows",
    "class_margins",
    "find_active",
    "hard_margin",
    "max_margin",
    "solve",
]
