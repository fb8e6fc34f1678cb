"""Explanations and pictures."""

from ..problem.axis import axis_place
from .alignment import plot_alignment
from .comparison import Comparison, compare, function_distance
from .draw import draw
from .explanation import Explanation, explain
from .flow import plot_flow, plot_limit
from .notebook import fragment
from .plot import plot

__all__ = [
    "Comparison",
    "Explanation",
    "axis_place",
    "compare",
    "draw",
    "explain",
    "fragment",
    "function_distance",
    "plot",
    "plot_alignment",
    "plot_flow",
    "plot_limit",
]
