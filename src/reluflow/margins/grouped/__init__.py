"""The best margin of groups of neurons with given patterns."""

from .solution import GroupedMargin, GroupedResiduals, grouped_margin

__all__ = ["GroupedMargin", "GroupedResiduals", "grouped_margin"]
