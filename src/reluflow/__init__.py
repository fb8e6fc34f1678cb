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
    from .data import dataset as dataset
    from .data import example as example
    from .data import examples as examples
    from .data import load as load
    from .data import make as make
    from .data import save as save
    from .margins import MarginSolution as MarginSolution
    from .margins import class_margins as class_margins
    from .margins import max_margin as max_margin
    from .problem import BudgetExceeded as BudgetExceeded
    from .problem import DataError as DataError
    from .problem import Dataset as Dataset
    from .problem import Loss as Loss
    from .problem import Network as Network
    from .problem import NotSeparable as NotSeparable
    from .problem import Problem as Problem
    from .problem import ProblemError as ProblemError
    from .problem import ReluflowError as ReluflowError
    from .problem import Undecided as Undecided
    from .problem import initialize as initialize
    from .sectors import ExtremalDirections as ExtremalDirections
    from .sectors import alignment_constants as alignment_constants
    from .sectors import cones_of as cones_of
    from .sectors import dead_cone as dead_cone
    from .sectors import extremal_directions as extremal_directions
    from .sectors import sector as sector

_HOME_OF = {
    "BudgetExceeded": "problem",
    "DataError": "problem",
    "Dataset": "problem",
    "Example": "data",
    "ExtremalDirections": "sectors",
    "Loss": "problem",
    "MarginSolution": "margins",
    "Network": "problem",
    "NotSeparable": "problem",
    "Problem": "problem",
    "ProblemError": "problem",
    "ReluflowError": "problem",
    "Undecided": "problem",
    "alignment_constants": "sectors",
    "class_margins": "margins",
    "cones_of": "sectors",
    "dataset": "data",
    "dead_cone": "sectors",
    "example": "data",
    "examples": "data",
    "extremal_directions": "sectors",
    "initialize": "problem",
    "load": "data",
    "make": "data",
    "max_margin": "margins",
    "save": "data",
    "sector": "sectors",
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
