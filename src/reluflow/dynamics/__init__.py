"""How training goes: the exact early phase, the flow through every kink, its limit, and discrete descent."""

from .descend.descend import descend
from .descend.watch import (
    Agreement,
    ChangeMeasures,
    SgdSteps,
    agreement,
    agreement_entrance,
    change_measures,
    cosines,
    group_angles,
    group_cosines,
    linear_fraction,
    sgd_steps,
)
from .early.alignment import Alignment, Group, align
from .flow.flow import Until, flow
from .ladder import Ladder, ladder, perturb
from .limit.candidate import LimitGroup
from .limit.gates import Evidence
from .limit.limit import Limit, limit
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
    "Phase",
    "SgdSteps",
    "Trajectory",
    "Until",
    "agreement",
    "agreement_entrance",
    "align",
    "change_measures",
    "cosines",
    "descend",
    "flow",
    "group_angles",
    "group_cosines",
    "ladder",
    "limit",
    "linear_fraction",
    "perturb",
    "sgd_steps",
]
