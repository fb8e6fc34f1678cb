"""Where neurons point and whether they agree: what SBG-F1, F3, F8 and F9 look at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...dynamics import Trajectory
from ...problem import Network
from ...problem.types import Array
from ..core.experiment import Numbers
from .common import accuracy


def angle(v: npt.ArrayLike, w: npt.ArrayLike) -> Array:
    """Angle in degrees between vectors along the last axis; exact for small ones too.

    >>> angle([1.0, 0.0], [[1.0, 1.0], [-3.0, 0.0]]).round(12).tolist()
    [45.0, 180.0]
    """
    given = (np.asarray(x, dtype=np.float64) for x in (v, w))
    one, other = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in given)
    far, near = np.linalg.norm(one - other, axis=-1), np.linalg.norm(one + other, axis=-1)
    return np.asarray(np.degrees(2.0 * np.arctan2(far, near)))


def largest_turn(one: Network, other: Network) -> float:
    """Largest angle in degrees between a neuron of one net and the same neuron of the other."""
    return float(angle(one.directions, other.directions).max())


def weights(net: Network) -> Array:
    """First layer at its real size."""
    return net.weights()[0]


def rebuilt(W: npt.ArrayLike, slope: float) -> Network:
    """Return a net from its stored first layer, up to the size of the output weights: the sign of f is the same.

    >>> rebuilt([[1.0, 0.0], [0.0, 1.0]], 0.2).a
    array([ 1., -1.])
    """
    rows = np.asarray(W, dtype=np.float64)
    return Network(rows, np.repeat([1.0, -1.0], len(rows) // 2), slope)


def regimes(run: Trajectory) -> Numbers:
    """Look along a run for agreement: times, shares of neurons in the perfect region, disagreements, accuracy.

    ``entrance`` is the time of the first record from which on all are in the perfect agreement region (inf: never).
    """
    data, found = run.problem.data, run.measures.agreements
    entrance = run.measures.agreement_entrance(perfect=True)
    return {
        "time": run.time,
        "share_w": np.array([one.share_w for one in found]),
        "share_u": np.array([one.share_u for one in found]),
        "disagreements": np.array([float(one.disagreements) for one in found]),
        "accuracy": np.array([accuracy(net, data) for net in run.networks()]),
        "entrance": float("inf") if entrance is None else float(run.time[entrance]),
    }
