"""The problem model: data, network, loss, initialisation, errors."""

from ._arrays import check_size
from ._dataset import Dataset, require_dataset
from ._initialize import initialize
from ._loss import Loss
from ._network import Network
from ._problem import Problem, require_problem
from ._time import check_time, part_of_time, time_left, time_limit
from .errors import (
    BudgetExceeded,
    DataError,
    Interrupted,
    NotSeparable,
    OutOfTime,
    ProblemError,
    ReluflowError,
    Stopped,
    Undecided,
)

__all__ = [
    "BudgetExceeded",
    "DataError",
    "Dataset",
    "Interrupted",
    "Loss",
    "Network",
    "NotSeparable",
    "OutOfTime",
    "Problem",
    "ProblemError",
    "ReluflowError",
    "Stopped",
    "Undecided",
    "check_size",
    "check_time",
    "initialize",
    "part_of_time",
    "require_dataset",
    "require_problem",
    "time_left",
    "time_limit",
]
