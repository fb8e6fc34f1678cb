"""Network arithmetic: smoothed margins, symmetrised and embedded networks, stable rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..problem import Dataset, Loss, Network, ProblemError, require_dataset
from ..problem.loss import LossName
from ..problem.network import Train, check_train, misfit
from ..problem.types import Array

# Beyond e^600 or below e^-600 the scale decides alone; doubles end at e^709.
_LOG_RANGE = 600.0


def check_pair(data: Any, net: Any) -> None:
    """Refuse what is not a dataset and a network of the same dimension."""
    require_dataset(data)
    check_network(net)
    if data.d != net.d:
        raise ProblemError(misfit(data.d, net.d))


def check_network(net: Any) -> None:
    """Refuse what is not a network."""
    if not isinstance(net, Network):
        raise ProblemError(f"net must be a Network, not {type(net).__name__}; build one with Network(W, a, slope).")


def unit_weights(net: Network, train: Train = "both") -> tuple[Array, Array, float, float]:
    """Weights ``(W, a)`` with ``e^log_w W`` and ``e^log_a a`` the real ones, in units where norms are 1.

    ``train="both"``: one factor for both layers and ``|W|^2 + |a|^2 = 1``. ``train="first"``: ``|W| = 1`` and
    ``max |a_j| = 1``.
    """
    W, a, top_w, top_a = net.scaled_weights(train)
    size_w = float(np.linalg.norm(W))
    size_a = float(np.abs(a).max())
    if train == "both":
        size_w = size_a = math.hypot(size_w, float(np.linalg.norm(a)))
    if size_w == 0 or size_a == 0:
        raise ProblemError("every weight of a layer is zero: the zero network has no direction.")
    return W / size_w, a / size_a, top_w + math.log(size_w), top_a + math.log(size_a)


def smoothed_margin(data: Dataset, net: Network, loss: Loss | LossName = "logistic", train: Train = "both") -> float:
    r"""Compute the smoothed margin :math:`\tilde\gamma = \ell^{-1}(\sum_i \ell(q_i)) / |\theta|^H`.

    H is 2 when both layers are trained and 1 for the first alone. It never exceeds the normalised margin,
    does not decrease along the flow once it is positive, and is positive iff
    :math:`\sum_i \ell(q_i) < \ell(0)`. Worked out in the log domain: at scales no double holds, the limit
    is returned (``-inf`` for a vanishing network and more than one point).

    Parameters
    ----------
    data : Dataset
    net : Network
    loss : {"logistic", "exponential"} or Loss
    train : {"both", "first"}

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [-1.0, 0.0]], [1, -1])
    >>> net = Network([[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0])
    >>> round(smoothed_margin(data, net), 10)    # -log((1 + 1/e)^2 - 1) / 4
    0.034501299
    >>> smoothed_margin(data, net.with_log_scale(3000))
    0.25
    """
    check_pair(data, net)
    kind = loss if isinstance(loss, Loss) else Loss(loss)
    W, a, log_w, log_a = unit_weights(net, check_train(train))
    z = data.X @ W.T
    q = data.y * (np.where(z > 0, z, net.slope * z) @ a)  # normalised margins, up to the frozen layer
    log_size = log_w + log_a  # log |theta|^H, times the size of a frozen layer
    frozen = math.exp(log_a) if train == "first" and abs(log_a) < _LOG_RANGE else 1.0
    if train == "first" and abs(log_a) >= _LOG_RANGE:
        raise ProblemError(f"the frozen second layer is of size e^{log_a:.6g}; margins at that size have no double.")
    if data.n == 1:  # l^{-1}(l(q)) = q, at every scale
        return float(q[0] * frozen)
    if log_size > _LOG_RANGE:
        lost = q < 0
        limit = q[lost].sum() if kind.name == "logistic" and lost.any() else q.min()
        return float(limit * frozen)
    with np.errstate(over="ignore"):
        total = np.logaddexp.reduce(kind.log_value(q * np.exp(max(log_size, -_LOG_RANGE))))
        return float(kind.inverse_log(total) * np.exp(-log_size) * frozen)


def symmetrized_network(net: Network) -> Network:
    r"""Two neurons that compute the odd part of f (LL-T4.2).

    With :math:`A^2 = \sum_j a_j^2` the neurons are :math:`\pm(w, a)`, :math:`w = \sum_j a_j w_j / (\sqrt2 A)`,
    :math:`a = A/\sqrt2`; the function is :math:`(f(x) - f(-x))/2 = \frac{1+\alpha}{2} \sum_j a_j w_j \cdot x`
    and the norm is at most that of ``net``. On data symmetric under :math:`(x, y) \to (-x, -y)` its
    normalised margin is therefore no smaller.

    Examples
    --------
    >>> two = symmetrized_network(Network([[1.0, 0.0], [0.0, 1.0]], [3.0, -4.0], slope=0.5))
    >>> two.outputs([[1.0, 1.0], [-1.0, -1.0]])
    array([-0.75,  0.75])
    """
    check_network(net)
    W, a, top_w, top_a = net.scaled_weights("first")
    size = float(np.linalg.norm(a))
    if size == 0:
        raise ProblemError("every output weight is zero: the function is zero and has no symmetrised network.")
    w = (a / size) @ W / math.sqrt(2.0)
    out = np.array([1.0, -1.0]) * size / math.sqrt(2.0)
    return Network(np.stack([w, -w]), out, net.slope, top_w, top_a)


def embed(b: npt.ArrayLike, two: Network) -> Network:
    r"""Apply the embedding :math:`\pi_b` of a two-neuron network into one of width ``len(b)`` (LL-Emb).

    Neuron j is :math:`b_j/b_+` times neuron 1 if :math:`b_j > 0` and :math:`b_j/b_-` times neuron 2 if
    :math:`b_j < 0`, with :math:`b_\pm = \pm\sqrt{\sum_{\pm b_j > 0} b_j^2}`. Function and norm stay the same,
    and trajectories of the flow go to trajectories.

    Parameters
    ----------
    b : array_like of shape (p,)
        Good: no zero entry, and both signs occur.
    two : Network
        With two neurons.

    Examples
    --------
    >>> two = Network([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    >>> wide = embed([3.0, 4.0, -2.0], two)
    >>> wide.a, np.allclose(wide.outputs([[1.0, 2.0]]), two.outputs([[1.0, 2.0]]))
    (array([ 0.6,  0.8, -1. ]), True)
    """
    check_network(two)
    if two.p != 2:
        raise ProblemError(f"embed needs a network with two neurons, not {two.p}.")
    weights = np.asarray(b)
    if weights.ndim != 1 or weights.dtype.kind not in "iuf" or not np.isfinite(weights).all():
        raise ProblemError(f"b must be a vector of finite numbers, one a neuron, not {b!r}.")
    weights = weights.astype(np.float64)
    if not (weights != 0).all() or not (weights > 0).any() or not (weights < 0).any():
        raise ProblemError(f"b = {b!r} is not good: it needs at least one positive, one negative and no zero entry.")
    which = (weights < 0).astype(np.intp)
    top = np.abs(weights).max()
    sizes = np.array([np.linalg.norm(weights[which == k] / top) for k in (0, 1)])
    factor = np.abs(weights) / top / sizes[which]
    log_w, log_a = two.log_scales
    W, a = factor[:, None] * two.W[which], factor * two.a[which]
    return Network(W, a, two.slope, log_w[which], log_a[which])


def stable_rank(net: Network) -> float:
    """``|W|_F^2 / |W|_2^2`` of the first layer, at any scale.

    >>> stable_rank(Network([[3.0, 0.0], [0.0, 4.0]], [1.0, 1.0], log_scale=-3000))
    1.5625
    """
    check_network(net)
    W = net.scaled_weights("first")[0]
    top = float(np.abs(W).max())
    if top == 0:
        raise ProblemError("the first layer is zero: it has no stable rank.")
    s = np.linalg.svd(W / top, compute_uv=False)
    return float((s / s[0]) @ (s / s[0]))
