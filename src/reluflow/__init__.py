"""reluflow: what a two-layer ReLU network is going to learn, seen learning it, and proved.

The public names are imported when they are first used, so that ``import reluflow`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .problem import (
        BudgetExceeded,
        DataError,
        Dataset,
        Loss,
        Network,
        NotSeparable,
        Problem,
        ProblemError,
        ReluflowError,
        Undecided,
        initialize,
    )

_HOMES = {
    "problem": (
        "BudgetExceeded",
        "DataError",
        "Dataset",
        "Loss",
        "Network",
        "NotSeparable",
        "Problem",
        "ProblemError",
        "ReluflowError",
        "Undecided",
        "initialize",
    ),
}
_HOME_OF = {name: package for package, names in _HOMES.items() for name in names}

__all__ = [
    "BudgetExceeded",
    "DataError",
    "Dataset",
    "Loss",
    "Network",
    "NotSeparable",
    "Problem",
    "ProblemError",
    "ReluflowError",
    "Undecided",
    "__version__",
    "initialize",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
