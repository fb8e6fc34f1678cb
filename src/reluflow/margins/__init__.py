"""Convex programs of the theory, every answer with its own certificate."""

from .agreement import AgreementMargin, agreement_margin, beta_crit
from .global_ import GlobalMargin, global_max_margin
from .grouped import GroupedMargin, GroupedResiduals, grouped_margin
from .hard import MarginResiduals, MarginSolution, class_margins, hard_margin, max_margin
from .kkt import KKT, kkt
from .linearity import Clusters, Linearity, clusters, linearity
from .networks import embed, smoothed_margin, stable_rank, symmetrized_network
from .one_neuron import OneNeuron, one_neuron
from .one_signed import Bounds, OneSignedMargins, one_signed_margins

__all__ = [
    "KKT",
    "AgreementMargin",
    "Bounds",
    "Clusters",
    "GlobalMargin",
    "GroupedMargin",
    "GroupedResiduals",
    "Linearity",
    "MarginResiduals",
    "MarginSolution",
    "OneNeuron",
    "OneSignedMargins",
    "agreement_margin",
    "beta_crit",
    "class_margins",
    "clusters",
    "embed",
    "global_max_margin",
    "grouped_margin",
    "hard_margin",
    "kkt",
    "linearity",
    "max_margin",
    "one_neuron",
    "one_signed_margins",
    "smoothed_margin",
    "stable_rank",
    "symmetrized_network",
]
