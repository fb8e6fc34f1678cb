"""A run looked at where another one was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ...dynamics import Trajectory


def at_times(run: Trajectory, times: Iterable[float]) -> Trajectory:
    """Return the run with records at the times given, which it must cover, instead of its own."""
    moments = list(times)
    nets = [run.at(time=moment) for moment in moments]
    with np.errstate(divide="ignore"):
        log_time = np.log(moments)
    return replace(
        run,
        log_time=log_time,
        log_loss=np.array([run.problem.log_loss(net) for net in nets]),
        directions=np.stack([net.directions for net in nets]),
        log_norms=np.stack([net.log_norms for net in nets]),
        log_outs=np.stack([net.log_outs for net in nets]),
        signs=np.stack([np.sign(net.a) for net in nets]),
    )
