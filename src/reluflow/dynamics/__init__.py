"""How training goes: the exact early phase, the flow through every kink, its limit, and discrete descent."""

from ._align import Alignment, Group, align
from ._descend import descend
from ._descend_watch import (
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
from ._flow import Until, flow
from ._ladder import Ladder, ladder, perturb
from ._limit import Evidence, Limit, limit
from ._limit_candidate import LimitGroup
from ._trajectory import EVENT, Phase, Trajectory

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
