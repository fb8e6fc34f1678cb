"""The problem model: data, network, loss, initialisation, errors."""

from ._arrays import check_size
from ._dataset import Dataset
from ._initialize import initialize
from ._loss import Loss
from ._network import Network
from ._problem import Problem
from .errors import BudgetExceeded, DataError, NotSeparable, ProblemError, ReluflowError, Undecided

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
    "check_size",
    "initialize",
]
