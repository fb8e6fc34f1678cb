"""A run of training as an xarray dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..problem import ProblemError

if TYPE_CHECKING:
    import xarray

    from ._trajectory import Trajectory


def to_xarray(run: Trajectory) -> xarray.Dataset:
    """Collect the records, the derived curves and the table of events."""
    try:
        import xarray as xr
    except ImportError:
        raise ProblemError(
            "to_xarray needs xarray, which is not installed; pip install 'reluflow[arrays]' brings it."
        ) from None
    problem = run.problem
    return xr.Dataset(
        {
            "log_loss": ("record", run.log_loss),
            "log_norm": ("record", run.log_norm),
            "direction": (("record", "neuron", "feature"), run.directions),
            "log_norms": (("record", "neuron"), run.log_norms),
            "log_outs": (("record", "neuron"), run.log_outs),
            "sign": (("record", "neuron"), run.signs),
            "margin": (("record", "sample"), run.margins()),
            "normalized_margin": ("record", run.normalized_margin()),
            "smoothed_margin": ("record", run.smoothed_margin()),
            "stable_rank": ("record", run.stable_rank()),
            "balance_drift": ("record", run.balance_drift()),
            "event_log_time": ("event", run.events["log_time"]),
            "event_neuron": ("event", run.events["neuron"]),
            "event_sample": ("event", run.events["sample"]),
            "event_kind": ("event", run.events["kind"]),
            "label": ("sample", problem.data.y),
        },
        coords={"log_time": ("record", run.log_time)},
        attrs={
            "method": run.method,
            "phases": ", ".join(phase.name for phase in run.phases),
            "loss": problem.loss.name,
            "reduction": problem.reduction,
            "train": problem.train,
            "slope": problem.net.slope,
            "fingerprint": problem.fingerprint(),
        },
    )
