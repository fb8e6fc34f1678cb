"""The problem model: data, network, loss, initialisation, errors."""

from .checks import check_size
from .dataset import Dataset, require_dataset
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
from .initialize import initialize
from .loss import Loss
from .network import Network
from .problem import Problem, require_problem
from .time import check_time, part_of_time, time_left, time_limit

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
