"""Bounds on the largest margin of any network."""

from .search import Bracket, bracket
from .solution import GlobalMargin, check_effort, global_max_margin

__all__ = ["Bracket", "GlobalMargin", "bracket", "check_effort", "global_max_margin"]
