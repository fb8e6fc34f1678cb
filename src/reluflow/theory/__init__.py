"""Theory that runs: claims as objects, checked on a problem, turned into predictions, watched in a run."""

from ._base import Claim, Condition, Evidence, Finding, Groups, Observation, Prediction, assume, conjunction
from ._facts import Facts
from ._hints import Hint, hints
from ._verdicts import check, citation, claim, claims, coverage, monitor, not_computable, predict

__all__ = [
    "Claim",
    "Condition",
    "Evidence",
    "Facts",
    "Finding",
    "Groups",
    "Hint",
    "Observation",
    "Prediction",
    "assume",
    "check",
    "citation",
    "claim",
    "claims",
    "conjunction",
    "coverage",
    "hints",
    "monitor",
    "not_computable",
    "predict",
]
