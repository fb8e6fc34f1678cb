"""reluflow: what a two-layer ReLU network is going to learn, seen learning it, and proved.

The public names are imported when they are first used, so that ``import reluflow`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Each public name twice: here for type checkers, below for the interpreter (a test compares the two).
if TYPE_CHECKING:
    from .data import Example as Example
    from .data import as_problem as as_problem
    from .data import dataset as dataset
    from .data import example as example
    from .data import examples as examples
    from .data import load as load
    from .data import make as make
    from .data import save as save
    from .deep import from_torch as from_torch
    from .deep import head as head
    from .deep import problem_from_torch as problem_from_torch
    from .dynamics import Alignment as Alignment
    from .dynamics import Ladder as Ladder
    from .dynamics import Limit as Limit
    from .dynamics import Trajectory as Trajectory
    from .dynamics import Until as Until
    from .dynamics import align as align
    from .dynamics import change_measures as change_measures
    from .dynamics import descend as descend
    from .dynamics import flow as flow
    from .dynamics import ladder as ladder
    from .dynamics import limit as limit
    from .dynamics import perturb as perturb
    from .margins import KKT as KKT
    from .margins import AgreementMargin as AgreementMargin
    from .margins import Clusters as Clusters
    from .margins import GlobalMargin as GlobalMargin
    from .margins import GroupedMargin as GroupedMargin
    from .margins import Linearity as Linearity
    from .margins import MarginSolution as MarginSolution
    from .margins import OneNeuron as OneNeuron
    from .margins import OneSignedMargins as OneSignedMargins
    from .margins import agreement_margin as agreement_margin
    from .margins import beta_crit as beta_crit
    from .margins import class_margins as class_margins
    from .margins import clusters as clusters
    from .margins import embed as embed
    from .margins import global_max_margin as global_max_margin
    from .margins import grouped_margin as grouped_margin
    from .margins import hard_margin as hard_margin
    from .margins import kkt as kkt
    from .margins import linearity as linearity
    from .margins import max_margin as max_margin
    from .margins import one_neuron as one_neuron
    from .margins import one_signed_margins as one_signed_margins
    from .margins import smoothed_margin as smoothed_margin
    from .margins import stable_rank as stable_rank
    from .margins import symmetrized_network as symmetrized_network
    from .problem import BudgetExceeded as BudgetExceeded
    from .problem import DataError as DataError
    from .problem import Dataset as Dataset
    from .problem import Interrupted as Interrupted
    from .problem import Loss as Loss
    from .problem import Network as Network
    from .problem import NotSeparable as NotSeparable
    from .problem import OutOfTime as OutOfTime
    from .problem import Problem as Problem
    from .problem import ProblemError as ProblemError
    from .problem import ReluflowError as ReluflowError
    from .problem import Undecided as Undecided
    from .problem import initialize as initialize
    from .problem import time_limit as time_limit
    from .report import Comparison as Comparison
    from .report import Explanation as Explanation
    from .report import compare as compare
    from .report import explain as explain
    from .sectors import ExtremalDirections as ExtremalDirections
    from .sectors import alignment_constants as alignment_constants
    from .sectors import cones_of as cones_of
    from .sectors import dead_cone as dead_cone
    from .sectors import extremal_directions as extremal_directions
    from .sectors import sector as sector
    from .theory import Condition as Condition
    from .theory import Finding as Finding
    from .theory import Observation as Observation
    from .theory import Prediction as Prediction
    from .theory import check as check
    from .theory import citation as citation
    from .theory import monitor as monitor
    from .theory import predict as predict

_HOME_OF = {
    "AgreementMargin": "margins",
    "Alignment": "dynamics",
    "BudgetExceeded": "problem",
    "Clusters": "margins",
    "Comparison": "report",
    "Condition": "theory",
    "DataError": "problem",
    "Dataset": "problem",
    "Example": "data",
    "Explanation": "report",
    "ExtremalDirections": "sectors",
    "Finding": "theory",
    "GlobalMargin": "margins",
    "GroupedMargin": "margins",
    "Interrupted": "problem",
    "KKT": "margins",
    "Ladder": "dynamics",
    "Limit": "dynamics",
    "Linearity": "margins",
    "Loss": "problem",
    "MarginSolution": "margins",
    "Network": "problem",
    "NotSeparable": "problem",
    "Observation": "theory",
    "OneNeuron": "margins",
    "OneSignedMargins": "margins",
    "OutOfTime": "problem",
    "Prediction": "theory",
    "Problem": "problem",
    "ProblemError": "problem",
    "ReluflowError": "problem",
    "Trajectory": "dynamics",
    "Undecided": "problem",
    "Until": "dynamics",
    "agreement_margin": "margins",
    "align": "dynamics",
    "alignment_constants": "sectors",
    "as_problem": "data",
    "beta_crit": "margins",
    "change_measures": "dynamics",
    "check": "theory",
    "citation": "theory",
    "class_margins": "margins",
    "clusters": "margins",
    "compare": "report",
    "cones_of": "sectors",
    "dataset": "data",
    "dead_cone": "sectors",
    "descend": "dynamics",
    "embed": "margins",
    "example": "data",
    "examples": "data",
    "explain": "report",
    "extremal_directions": "sectors",
    "flow": "dynamics",
    "from_torch": "deep",
    "global_max_margin": "margins",
    "grouped_margin": "margins",
    "hard_margin": "margins",
    "head": "deep",
    "initialize": "problem",
    "kkt": "margins",
    "ladder": "dynamics",
    "limit": "dynamics",
    "linearity": "margins",
    "load": "data",
    "make": "data",
    "max_margin": "margins",
    "monitor": "theory",
    "one_neuron": "margins",
    "one_signed_margins": "margins",
    "perturb": "dynamics",
    "predict": "theory",
    "problem_from_torch": "deep",
    "save": "data",
    "sector": "sectors",
    "smoothed_margin": "margins",
    "stable_rank": "margins",
    "symmetrized_network": "margins",
    "time_limit": "problem",
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
