"""How training goes: the exact early phase."""

from ._align import Alignment, Group, align

__all__ = [
    "Alignment",
    "Group",
    "align",
]
