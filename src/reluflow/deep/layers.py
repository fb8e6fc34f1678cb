"""Two linear layers with a (leaky) ReLU between them, biases and all, as one homogeneous network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem import Dataset, Network
from ..problem.errors import ProblemError
from ..problem.types import Array


@dataclass(frozen=True, eq=False)
class Layers:
    """The two linear layers as they were found."""

    W: Array  # (p, d)
    bias: Array | None  # (p,)
    out: Array  # (k, p), one row a logit
    out_bias: Array | None  # (k,)
    slope: float

    @property
    def contrast(self) -> Array:
        """How the logits make f: the one there is, or the second minus the first."""
        logits = self.out.shape[0]
        if logits > 2:
            raise ProblemError(
                f"the last layer has {logits} logits ({logits} classes); two classes are needed, that is 1 logit or "
                "2. Keep two of its rows, e.g. with the last weight w of a state dict: state[name] = w[[3, 8]]."
            )
        return np.array([1.0]) if logits == 1 else np.array([-1.0, 1.0])

    @property
    def shift(self) -> float:
        """The last bias, as it enters f."""
        return 0.0 if self.out_bias is None else float(self.contrast @ self.out_bias)

    @property
    def biased(self) -> bool:
        """Whether a constant feature is needed to write f without biases."""
        return self.bias is not None or self.shift != 0.0


def network_of(layers: Layers) -> Network:
    """Write ``f(x) = c + a . phi(W x + b)`` as a network without biases on (x, 1).

    The bias b is one more column of W. The last bias is one more neuron that sees the constant feature alone and is
    always active: ``c = a phi(s)`` with ``s = sqrt |c|`` and ``a = sign(c) s``, of all such pairs the shortest.
    """
    W, a = layers.W, layers.contrast @ layers.out
    if layers.biased:
        W = np.column_stack([W, np.zeros(len(W)) if layers.bias is None else layers.bias])
    if layers.shift != 0.0:
        size = np.sqrt(abs(layers.shift))
        W = np.vstack([W, np.append(np.zeros(W.shape[1] - 1), size)])
        a = np.append(a, np.copysign(size, layers.shift))
    return Network(W, a, layers.slope)


def with_constant(data: Dataset, layers: Layers) -> Dataset:
    """Give the data the constant feature that the biases need, or say what does not fit."""
    inputs, biased = layers.W.shape[1], layers.biased
    if data.d == inputs:
        return data.with_bias(1.0) if biased else data
    if biased and data.d == inputs + 1 and np.all(data.X[:, -1] == 1.0):
        return data
    what = "and has a bias, for which a constant 1 is appended here" if biased else "without bias"
    flat = np.flatnonzero(np.ptp(data.X, axis=0) == 0)
    hint = "give it the features its first Linear layer sees, in their order"
    if data.d == inputs + 1 and flat.size and data.n > 1:
        hint = f"column {flat[-1]} is {data.X[0, flat[-1]]:g} at every point: leave it out" + (
            ", or make it the last and 1" if biased else ""
        )
    raise ProblemError(f"the features have dimension {data.d} but the model takes {inputs} ({what}); {hint}.")
