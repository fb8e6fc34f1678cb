"""How training goes: the exact early phase, the flow through every kink, its limit, and discrete descent."""

from .descend.descend import descend
from .early.alignment import Alignment, Group, align
from .flow.flow import Until, flow
from .ladder import Ladder, ladder, perturb
from .limit.candidate import LimitGroup
from .limit.gates import Evidence
from .limit.limit import Limit, limit
from .measures import Measures
from .snapshot import Agreement, ChangeMeasures, agreement, change_measures
from .trajectory import EVENT, Phase, Trajectory

__all__ = [
    "EVENT",
    "Agreement",
    "Alignment",
    "ChangeMeasures",
    "Evidence",
    "Group",
    "Ladder",
    "Limit",
    "LimitGroup",
    "Measures",
    "Phase",
    "Trajectory",
    "Until",
    "agreement",
    "align",
    "change_measures",
    "descend",
    "flow",
    "ladder",
    "limit",
    "perturb",
]
