"""Theory that runs: claims as objects, checked on a problem, turned into predictions, watched in a run."""

from .base import Claim, Condition, Evidence, Finding, Groups, Observation, Prediction, assume, conjunction
from .errata import Erratum, corrections, errata_of
from .facts import Facts
from .hints import Hint, hints
from .references import PAPERS
from .verdicts import (
    Statement,
    check,
    citation,
    claim,
    claims,
    coverage,
    monitor,
    not_computable,
    predict,
    statements,
)

__all__ = [
    "PAPERS",
    "Claim",
    "Condition",
    "Erratum",
    "Evidence",
    "Facts",
    "Finding",
    "Groups",
    "Hint",
    "Observation",
    "Prediction",
    "Statement",
    "assume",
    "check",
    "citation",
    "claim",
    "claims",
    "conjunction",
    "corrections",
    "coverage",
    "errata_of",
    "hints",
    "monitor",
    "not_computable",
    "predict",
    "statements",
]
