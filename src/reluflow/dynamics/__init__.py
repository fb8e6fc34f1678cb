"""How training goes: the exact early phase, the flow through every kink, its limit, and discrete descent."""

from ._align import Alignment, Group, align
from ._flow import Until, flow
from ._trajectory import EVENT, Phase, Trajectory

__all__ = [
    "EVENT",
    "Alignment",
    "Group",
    "Phase",
    "Trajectory",
    "Until",
    "align",
    "flow",
]
