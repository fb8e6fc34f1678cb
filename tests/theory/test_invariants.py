"""Parts of the monitors of the invariants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import reluflow as rf
from reluflow.dynamics import EVENT
from reluflow.theory.invariants import _changing


def test_neurons_with_an_event_in_a_step():
    """Events drawn between, at and beyond the records, some of which share a time, against the definition."""
    run = rf.flow(rf.as_problem("EX1", width=3, log_scale=-5.0), {"log_time": 5.0})
    rng = np.random.default_rng(0)
    log_time = np.sort(np.append(run.log_time[:-1], run.log_time[3]))
    later = rng.uniform(run.log_time[1], log_time[-1] + 3, 20)
    events = np.zeros(40, EVENT)
    events["log_time"] = np.sort(np.concatenate([later, rng.choice(log_time, 19), [-np.inf]]))
    events["neuron"] = rng.integers(0, 3, 40)
    run = replace(run, log_time=log_time, events=events)
    found = _changing(run)
    for k in range(1, len(run)):
        inside = (events["log_time"] >= log_time[k - 1]) & (events["log_time"] <= log_time[k])
        assert found[k].tolist() == [j in events["neuron"][inside] for j in range(3)]
    assert found[1:].any()
    assert not found[1:].all()
