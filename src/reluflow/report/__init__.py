"""Explanations and pictures."""

from ._alignment import plot_alignment
from ._explain import Explanation, explain
from ._flow import axis_place, plot_flow, plot_limit
from ._plot import plot

__all__ = ["Explanation", "axis_place", "explain", "plot", "plot_alignment", "plot_flow", "plot_limit"]
