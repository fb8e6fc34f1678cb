"""Many problems of one kind, measured on all cores or a cluster: nothing computed twice, nothing lost."""

from .ledger import Status
from .measures import Measure
from .page import write_index
from .plan import Plan
from .plot import plot_sweep
from .results import SweepResults, open_sweep
from .run import run_sweep, slurm_line
from .spec import Sweep

__all__ = [
    "Measure",
    "Plan",
    "Status",
    "Sweep",
    "SweepResults",
    "open_sweep",
    "plot_sweep",
    "run_sweep",
    "slurm_line",
    "write_index",
]
