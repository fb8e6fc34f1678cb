"""The early phase as an xarray dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray

    from .alignment import Alignment


def to_xarray(early: Alignment) -> xarray.Dataset:
    """Collect all results by neuron, and the events of all neurons in one table."""
    from ..xarray import Tables

    events = [early.events(j) for j in range(early.p)]
    table = np.concatenate(events)
    owner = np.repeat(np.arange(early.p), [e.size for e in events])
    problem = early.problem
    return Tables(
        {
            "fate": ("neuron", np.array(early.fates)),
            "sign": ("neuron", early.signs),
            "nonunique": ("neuron", early.nonunique),
            "direction": (("neuron", "feature"), early.direction),
            "pattern": (("neuron", "sample"), early.pattern),
            "log_gain": ("neuron", early.log_gain),
            "log_amplitude": ("neuron", early.log_amplitude),
            "growth": ("neuron", early.growth),
            "force": ("neuron", early.force),
            "last_event": ("neuron", early.last_event),
            "event_neuron": ("event", owner),
            "event_time": ("event", table["time"]),
            "event_sample": ("event", table["sample"]),
            "event_kind": ("event", table["kind"]),
            "label": ("sample", problem.data.y),
        },
        attrs={
            "branch": early.branch,
            "loss": problem.loss.name,
            "reduction": problem.reduction,
            "train": problem.train,
            "slope": problem.net.slope,
            "fingerprint": problem.fingerprint(),
        },
    )
