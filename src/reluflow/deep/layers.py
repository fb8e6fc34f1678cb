"""Two linear layers with a (leaky) ReLU between them, biases and all, as one homogeneous network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..problem import Dataset, Network
from ..problem.errors import ProblemError
from ..problem.network import check_slope
from ..problem.types import Array
from .need import as_doubles

Layout = Literal["rows", "columns"]


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


def network_of(layers: Layers, fixed: bool = False) -> Network:
    """Write ``f(x) = c + a . phi(W x + b)`` as a network without biases on (x, 1).

    The bias b is one more column of W. The last bias is one more neuron that sees the constant feature alone and is
    always active: ``c = a phi(s)`` with ``s = sqrt |c|`` and ``a = sign(c) s``, of all such pairs the shortest. With
    ``fixed`` a last bias of 0 has its neuron too, so that the shape does not change while it is trained.
    """
    W, a = layers.W, layers.contrast @ layers.out
    last = layers.shift != 0.0 or (fixed and layers.out_bias is not None)
    if layers.biased or last:
        W = np.column_stack([W, np.zeros(len(W)) if layers.bias is None else layers.bias])
    if last:
        size = np.sqrt(abs(layers.shift))
        W = np.vstack([W, np.append(np.zeros(W.shape[1] - 1), size)])
        a = np.append(a, np.copysign(size, layers.shift))
    return Network(W, a, layers.slope)


def from_arrays(
    W1: npt.ArrayLike,
    w2: npt.ArrayLike,
    b1: npt.ArrayLike | None = None,
    b2: npt.ArrayLike | None = None,
    *,
    slope: float = 0.0,
    layout: Layout = "rows",
) -> Network:
    r"""Turn the arrays of a two-layer network into a `Network`, whatever library trained it (JAX, Flax, Keras, NumPy).

    :math:`f(x) = b_2 + w_2 \cdot \phi(W_1 x + b_1)` with :math:`\phi(z) = \max(z, \alpha z)`. Biases become weights of
    a constant feature, as in `from_torch`: the data then need it, ``data.with_bias(1.0)``. With two logits f is the
    second minus the first.

    Parameters
    ----------
    W1, w2 : array_like
        By ``layout``, for d inputs and p neurons. ``"rows"``: W1 of shape (p, d), one row a neuron, and w2 of shape
        (p,), (1, p) or (2, p), as PyTorch keeps them. ``"columns"``: W1 of shape (d, p), one column a neuron, and w2 of
        shape (p,), (p, 1) or (p, 2), as the kernels of Flax, Haiku and Keras. It is never guessed from the shapes.
    b1, b2 : array_like, optional
        Biases: p numbers; one number, or one a logit.
    slope : float
        Slope of the activation for negative input: 0 is ReLU.
    layout : {"rows", "columns"}

    Returns
    -------
    Network

    Examples
    --------
    >>> kernel, out = np.array([[1.0, 0.5], [2.0, -1.0], [0.0, 3.0]]), np.array([[2.0], [-1.0]])    # as in Flax
    >>> net = from_arrays(kernel, out, layout="columns")
    >>> net, net.outputs([[1.0, 1.0, 1.0]])
    (Network: p=2 (1 positive, 1 negative), d=3, slope=0, log_scale=0, array([3.5]))
    """
    if layout not in ("rows", "columns"):
        raise ProblemError(
            f"layout = {layout!r} is not known; 'rows' is W1 of shape (neurons, inputs) as in PyTorch, 'columns' is "
            "(inputs, neurons) as in Flax and Keras."
        )
    first, last = _numbers(W1, "W1"), _numbers(w2, "w2")
    if first.ndim != 2 or last.ndim not in (1, 2) or 0 in first.shape:
        raise ProblemError(
            f"W1 has shape {first.shape} and w2 has shape {last.shape}; a matrix with at least one neuron and one "
            "input, and a vector or matrix, are needed."
        )
    W, out = _by_neuron(first, last, layout)
    if out.shape[1] != len(W):
        other: Layout = "columns" if layout == "rows" else "rows"
        W_other, out_other = _by_neuron(first, last, other)
        fits = out_other.shape[1] == len(W_other)
        raise ProblemError(
            f"with layout={layout!r} W1 of shape {first.shape} has {len(W)} neurons, but w2 of shape {last.shape} "
            f"takes {out.shape[1]}; "
            + (f"with layout={other!r} they fit." if fits else "give both layers of one network.")
        )
    biases = [None if b is None else _numbers(b, name).reshape(-1) for b, name in ((b1, "b1"), (b2, "b2"))]
    for bias, name, size in zip(biases, ("b1", "b2"), (len(W), len(out)), strict=True):
        if bias is not None and bias.size != size:
            raise ProblemError(f"{name} has {bias.size} entries; {size} are needed, one a {_OWNER[name]}.")
    return network_of(Layers(W, biases[0], out, biases[1], check_slope(slope)))


_OWNER = {"b1": "neuron", "b2": "logit"}


def _by_neuron(first: Array, last: Array, layout: Layout) -> tuple[Array, Array]:
    """Return the layers with one row a neuron, and one row a logit."""
    if layout == "rows":
        return first, np.atleast_2d(last)
    return first.T, np.atleast_2d(last.T)


def _numbers(values: Any, name: str) -> Array:
    try:
        return as_doubles(values)
    except (TypeError, ValueError):
        raise ProblemError(
            f"{name} is a {type(values).__name__}, not an array of numbers; np.asarray makes one."
        ) from None


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
