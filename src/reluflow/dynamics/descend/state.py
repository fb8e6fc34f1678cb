"""What a discrete run carries from one iteration to the next, and how it is read off."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...problem import Network, Problem, ProblemError
from ...problem.types import Array

Floats = npt.NDArray[Any]

_LOG_2 = float(np.log(2.0))
#: Natural logarithms of sizes: what is smaller than the first gets an exponent of its own, the second is the smallest
#: and the third the largest size allowed in those units. Squares and products of sizes must still be numbers.
_RANGE = {"float64": (-300.0, -690.0, 300.0), "float32": (-30.0, -80.0, 40.0)}
_SHIFT = 64  # exponents move in steps of this many powers of two


@dataclass
class State:
    """Weights of neuron j are ``2 ** exponent[j]`` times ``(W[j], a[j])``; an exponent is 0 at ordinary scale.

    W has the columns of the features ``used``. A feature that is zero for all samples (the border of images) never
    moves its weights: they are kept apart, in ``rest``.
    """

    W: Floats
    a: Floats
    exponent: npt.NDArray[np.int64]
    rest: Floats
    used: npt.NDArray[np.bool_]
    iteration: int = 0
    log_time: float = -np.inf
    moments: tuple[Floats, ...] = field(default=())

    @property
    def outs(self) -> Floats:
        """Output weights that go with the rows of W as they are stored: both factors of a tiny neuron are in here."""
        return np.ldexp(self.a, 2 * self.exponent) if self.exponent.any() else self.a

    def rescale(self) -> None:
        """Give neurons that have grown out of their exponent a larger one, exactly."""
        if not self.exponent.any():
            return
        size = np.maximum(np.abs(self.W).max(axis=1), np.abs(self.a))
        grown = (self.exponent < 0) & (size > 2.0**_SHIFT)
        for j in np.flatnonzero(grown):
            move = int(min(-self.exponent[j], np.frexp(size[j])[1]))
            for part in (self.W, self.a, self.rest):
                part[j] = np.ldexp(part[j], -move)
            self.exponent[j] += move


def start(problem: Problem, dtype: str, scaled: bool) -> State:
    """Put the start of a problem into floats.

    ``scaled`` allows an exponent per neuron, which needs an update that is homogeneous in (w_j, a_j).
    """
    net = problem.net
    tiny, smallest, largest = _RANGE[dtype]
    log_w, log_a = net.log_norms, net.log_outs
    top = np.maximum(log_w, log_a)
    if top.max() > largest:
        raise ProblemError(
            f"the start has weights of size e^{top.max():.6g}; descent in {dtype} needs sizes below e^{largest:g}. "
            "Start smaller: net.with_log_scale(0)."
        )
    small = np.isfinite(top) & (top < tiny)
    exponent = np.where(small & scaled, np.round(np.where(small, top, 0.0) / _LOG_2), 0.0)
    unit = exponent * _LOG_2
    lost = np.flatnonzero(
        ((log_w > -np.inf) & (log_w - unit < smallest)) | ((log_a > -np.inf) & (log_a - unit < smallest))
    )
    if lost.size:
        j = lost[0]
        raise ProblemError(
            f"neuron {j} has |w| = e^{log_w[j]:.6g}, |a| = e^{log_a[j]:.6g}: too small for {dtype} in this method (its "
            "direction or sign would be lost). Use method='gd' with fast_forward=True, which leaves such a start along "
            f"the exact solution, or start above e^{smallest:g}, or give both layers sizes that are closer together."
        )
    scale_w, scale_a = net.log_scales
    with np.errstate(under="ignore"):
        W = net.W * np.exp(scale_w - unit)[:, None]
        a = net.a * np.exp(scale_a - unit)
    used = np.asarray(problem.data.X.any(axis=0))
    layers = (np.ascontiguousarray(W[:, used], dtype), a.astype(dtype))
    return State(*layers, exponent.astype(np.int64), W[:, ~used].astype(dtype), used)


def snapshot(state: State) -> tuple[Array, Array, Array, npt.NDArray[np.int8]]:
    """Directions, log norms, log output weights and signs."""
    W, a = np.empty((state.a.size, state.used.size)), state.a.astype(np.float64)
    W[:, state.used], W[:, ~state.used] = state.W, state.rest
    top = np.abs(W).max(axis=1)
    top = np.where(top > 0, top, 1.0)
    size = np.linalg.norm(W / top[:, None], axis=1)
    unit = state.exponent * _LOG_2
    with np.errstate(divide="ignore"):
        log_norms = np.log(size) + np.log(top) + unit
        log_outs = np.log(np.abs(a)) + unit
    directions = W / top[:, None] / np.where(size > 0, size, 1.0)[:, None]
    return directions, log_norms, log_outs, np.sign(a).astype(np.int8)


def network(slope: float, directions: Array, log_norms: Array, log_outs: Array, signs: npt.NDArray[np.int8]) -> Network:
    """Build a network with a scale for every neuron and layer."""
    live, out = np.isfinite(log_norms), np.isfinite(log_outs)
    return Network(
        np.where(live[:, None], directions, 0.0),
        np.where(out, signs, 0.0),
        slope,
        np.where(live, log_norms, 0.0),
        np.where(out, log_outs, 0.0),
    )
