"""A second layer that is frozen at any size, scaled away.

With a fixed, w' = a D: (w, a) at time t and (s w, a/s) at time s^2 t are the same flow, and the same function. Steps
are chosen for weights of both layers that are of one order when the data are fitted, so that is what is integrated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ...problem import Network, Problem, Undecided
from ...problem.types import Array
from ..trajectory import Trajectory

#: Logs of frozen output weights between these are left as they are. Errors are relative to the larger layer: beside a
#: large second one the first would not be known, while a small one does no harm until steps are chosen by it.
_SMALL, _LARGE = -12.0, 3.0


def frozen_size(problem: Problem) -> float:
    """Log of the largest output weight if they are frozen, else 0.

    >>> from reluflow import Dataset
    >>> problem = Problem(Dataset([[1.0]], [1]), Network([[1.0]], [1.0], log_scale_out=-50.0), train="first")
    >>> frozen_size(problem), frozen_size(problem.replace(train="both"))
    (-50.0, 0.0)
    """
    top = float(problem.net.log_outs.max())
    return top if problem.train == "first" and np.isfinite(top) else 0.0


def unit_of(problem: Problem) -> float:
    """Log of the s with which the flow is followed: the size of a frozen layer that is far from 1, else 0.

    A small layer is scaled up only as far as no neuron falls below it.
    """
    top, net = frozen_size(problem), problem.net
    if top > _LARGE:
        return top
    there = np.isfinite(net.log_norms) & np.isfinite(net.log_outs)
    if top >= _SMALL or not there.any():
        return 0.0
    apart = float((net.log_norms - net.log_outs)[there].min())
    return max(top, min(-apart / 2, 0.0))


def rescaled_net(net: Network, log_s: float) -> Network:
    """Multiply the first layer by s and divide the second by it."""
    first, second = net.log_scales
    return Network(net.W, net.a, net.slope, first + log_s, second - log_s)


def rescaled_problem(problem: Problem, log_s: float) -> Problem:
    """Return the problem with the same flow in the clock s^2 t."""
    return problem.replace(net=rescaled_net(problem.net, log_s)) if log_s else problem


def rescaled_run(run: Trajectory, problem: Problem, log_s: float, aim: float = np.inf) -> Trajectory:
    """Return the same flow as one of ``problem``, which is that of the run scaled by s.

    ``aim`` is a log time in the new clock that the run was to come to: it is met to the last digit. Of the polynomials
    that are kept for looks in between, the setting ``log_unit`` says by which s one comes to their units; it is dropped
    there.
    """
    if not log_s:
        return run
    goal, shift = aim - 2 * log_s, 2 * log_s

    def clock(log_time: Array) -> Array:
        return np.where(log_time >= goal, aim, np.minimum(log_time + shift, aim))

    settings = dict(run.settings)
    if settings.pop("log_unit", None) is None:
        settings["log_unit"] = -log_s
    events = run.events.copy()
    events["log_time"] = clock(events["log_time"])
    phases = tuple(
        phase._replace(log_start=float(clock(np.array(phase.log_start))), log_end=float(clock(np.array(phase.log_end))))
        for phase in run.phases
    )
    return replace(
        run,
        problem=problem,
        log_time=clock(run.log_time),
        log_norms=run.log_norms + log_s,
        log_outs=run.log_outs - log_s,
        events=events,
        phases=phases,
        settings=settings,
        early=None,
    )


@contextmanager
def in_units_of(problem: Problem, log_s: float, aim: float) -> Iterator[None]:
    """Let whatever ends a flow early leave with the flow so far in the units of its problem."""
    try:
        yield
    except Undecided as error:
        if log_s and isinstance(error.partial, Trajectory):
            error.partial = rescaled_run(error.partial, problem, -log_s, aim)
            error.args = (
                f"{error} (Counted with output weights of order 1: log t here is the problem's {2 * log_s:+.6g}.)",
            )
        raise
