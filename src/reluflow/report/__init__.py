"""Explanations and pictures."""

from ._alignment import plot_alignment
from ._compare import Comparison, compare, function_distance
from ._explain import Explanation, explain
from ._flow import axis_place, plot_flow, plot_limit
from ._plot import plot

__all__ = [
    "Comparison",
    "Explanation",
    "axis_place",
    "compare",
    "explain",
    "function_distance",
    "plot",
    "plot_alignment",
    "plot_flow",
    "plot_limit",
]
