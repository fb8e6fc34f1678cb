"""Every figure and table of the four papers, made again and judged."""

from .core.experiment import Choice, Expectation, Experiment, at_least, at_most, between, equals, is_so, not_judged
from .core.registry import IDS, PAPERS, choose, experiment
from .core.runner import Outcome, Progress, run_all

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
