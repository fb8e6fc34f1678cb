"""Every figure and table of the four papers, made again and judged."""

from ._base import Choice, Expectation, Experiment, at_least, at_most, between, equals, is_so, not_judged
from ._registry import IDS, PAPERS, experiment

__all__ = [
    "IDS",
    "PAPERS",
    "Choice",
    "Expectation",
    "Experiment",
    "at_least",
    "at_most",
    "between",
    "equals",
    "experiment",
    "is_so",
    "not_judged",
]
