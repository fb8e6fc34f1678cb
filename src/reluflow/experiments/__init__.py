"""Every figure and table of the four papers, made again and judged."""

from ._base import Choice, Expectation, Experiment, at_least, at_most, between, equals, is_so, not_judged
from ._registry import IDS, PAPERS, choose, experiment
from ._runner import Outcome, Progress, run_all

__all__ = [
    "IDS",
    "PAPERS",
    "Choice",
    "Expectation",
    "Experiment",
    "Outcome",
    "Progress",
    "at_least",
    "at_most",
    "between",
    "choose",
    "equals",
    "experiment",
    "is_so",
    "not_judged",
    "run_all",
]
