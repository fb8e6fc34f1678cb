"""A run of training as tables: for pandas, for a text file, for xarray."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..problem import ProblemError
from ..problem.types import Array

if TYPE_CHECKING:
    import xarray

    from .trajectory import Trajectory


class Frames(NamedTuple):
    """A run as three tidy tables of pandas: one row a record, a record and neuron, an event."""

    records: Any
    neurons: Any
    events: Any


def frame(columns: Mapping[str, Any]) -> Any:
    """Make a pandas DataFrame, or say how to get pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise ProblemError('tables need pandas, which is not installed; pip install "reluflow[tables]".') from None
    return pd.DataFrame(columns)


def to_pandas(run: Trajectory) -> Frames:
    """Collect records, neurons and events."""
    count, events = {"record": np.arange(len(run))}, run.events
    if "iteration" in run.settings:
        count["iteration"] = np.asarray(run.settings["iteration"])
    return Frames(
        frame({**count, **curves(run), **more_curves(run)}),
        frame(rows_of_neurons(run)),
        frame({name: events[name] for name in events.dtype.names or ()}),
    )


def curves(run: Trajectory) -> dict[str, Array]:
    """Return what has one number a record, by name."""
    return {
        "log_time": run.log_time,
        "log_loss": run.log_loss,
        "log_norm": run.log_norm,
        "normalized_margin": run.normalized_margin(),
        "smoothed_margin": run.smoothed_margin(),
        "stable_rank": run.stable_rank(),
        "balance_drift": run.balance_drift(),
    }


def more_curves(run: Trajectory) -> dict[str, Any]:
    """Return the rest that has one number a record: how well it fits, where the neurons are, how linear it is."""
    seen, angles = run.measures, run.measures.group_angles
    return {
        "margin": seen.q_min,
        "accuracy": (seen.margins > 0).mean(axis=1),
        "kkt_sine": seen.kkt_sine,
        "linear_share": seen.linear_share,
        "cluster_radius": seen.cluster_radius if seen.live.all() else np.full(len(run), np.nan),
        "angle_plus": angles[:, 0],
        "angle_minus": angles[:, 1],
        "in_own_cone": seen.home.sum(axis=1),
        "dead": seen.dead.sum(axis=1),
    }


def rows_of_neurons(run: Trajectory) -> dict[str, Any]:
    """Return what has one number a record and neuron, by name, record after record."""
    T, p, d = run.directions.shape
    return {
        "record": np.repeat(np.arange(T), p),
        "neuron": np.tile(np.arange(p), T),
        "log_time": np.repeat(run.log_time, p),
        "log_norm": run.log_norms.ravel(),
        "log_out": run.log_outs.ravel(),
        "sign": run.signs.ravel(),
        **{f"w{k + 1}": run.directions[..., k].ravel() for k in range(d)},
    }


def write_table(run: Trajectory, file: Path) -> None:
    """Write the curves as text, separated by commas or tabs as the ending says; every digit is kept."""
    columns = curves(run)
    with file.open("w", newline="", encoding="utf-8") as stream:
        out = csv.writer(stream, delimiter="," if file.suffix.lower() == ".csv" else "\t", lineterminator="\n")
        out.writerow(columns)
        out.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def to_xarray(run: Trajectory) -> xarray.Dataset:
    """Collect the records, the derived curves and the table of events."""
    from .xarray import Tables

    problem, found = run.problem, curves(run)
    return Tables(
        {
            **{name: ("record", values) for name, values in found.items() if name != "log_time"},
            "direction": (("record", "neuron", "feature"), run.directions),
            "log_norms": (("record", "neuron"), run.log_norms),
            "log_outs": (("record", "neuron"), run.log_outs),
            "sign": (("record", "neuron"), run.signs),
            "margin": (("record", "sample"), run.margins()),
            "event_log_time": ("event", run.events["log_time"]),
            "event_neuron": ("event", run.events["neuron"]),
            "event_sample": ("event", run.events["sample"]),
            "event_kind": ("event", run.events["kind"]),
            "label": ("sample", problem.data.y),
        },
        coords={"log_time": ("record", found["log_time"])},
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
