"""The two deeper nets of Phuong and Lampert, as they start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..problem.checks import is_number
from ..problem.errors import ProblemError
from .need import torch_for

# PL Table 1: output channels, kernel, stride; the padding keeps the side (or halves it with stride 2).
_CONVOLUTIONS = ((32, 3, 1), (32, 3, 1), (32, 5, 2), (64, 3, 1), (64, 3, 1), (64, 5, 2))
_HIDDEN = 128


def residual_net(
    d: int, width: int = 100, depth: int = 4, *, scale: float = 0.05, seed: int = 0, dtype: str = "float32"
) -> Any:
    r"""Draw the residual net of PL Figure 2.

    .. math:: h_1 = W_1 x, \quad h_l = h_{l-1} + W_l \phi(h_{l-1}) \;(1 < l < L), \quad f = W_L \phi(h_{L-1}),

    with ReLU :math:`\phi` and no biases. Depth 2 is the two-layer net.

    Parameters
    ----------
    d, width, depth : int
        Inputs, hidden units, and the number L of weight matrices.
    scale : float
        Factor on all weights, which are drawn from :math:`U(-1/\sqrt{m}, 1/\sqrt{m})` for m inputs to a unit.
    seed : int
        The random state of torch itself is left as it was.
    dtype : {"float32", "float64"}

    Returns
    -------
    torch.nn.Module
        Takes inputs of shape (n, d), returns (n, 1).

    Examples
    --------
    >>> net = residual_net(20)
    >>> [tuple(w.shape) for w in net.parameters()]
    [(100, 20), (100, 100), (100, 100), (1, 100)]
    """
    torch = torch_for("residual_net")
    for name, value, least in (("d", d, 1), ("width", width, 1), ("depth", depth, 2)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ProblemError(f"{name} must be an integer of at least {least}, not {value!r}.")
    from .modules import Residual

    return _drawn(lambda: Residual(d, width, depth), lambda net: list(net.parameters()), scale, seed, dtype, torch)


def conv_net(*, scale: float = 0.05, seed: int = 0, dtype: str = "float32") -> Any:
    r"""Draw the convolutional net of PL Table 1 for 28 x 28 images.

    Six convolutions (32, 32, 32, 64, 64, 64 channels; the third and the sixth 5 x 5 with stride 2, the others 3 x 3),
    then linear layers 3136 -> 128 -> 1; biases everywhere; ReLU after every layer but the last.

    Parameters
    ----------
    scale : float
        Factor on the weights of the two linear layers. All parameters are drawn from
        :math:`U(-1/\sqrt{m}, 1/\sqrt{m})` for m inputs to a unit.
    seed, dtype
        As in `residual_net`.

    Returns
    -------
    torch.nn.Sequential
        Takes images as rows of 784 pixels, as a `Dataset` holds them.

    Examples
    --------
    >>> net = conv_net()
    >>> [tuple(layer.weight.shape) for layer in net if hasattr(layer, "weight")][-2:]
    [(128, 3136), (1, 128)]
    """
    torch = torch_for("conv_net")
    nn = torch.nn

    def build() -> Any:
        layers: list[Any] = [nn.Unflatten(1, (1, 28, 28))]
        inputs, side = 1, 28
        for outputs, kernel, stride in _CONVOLUTIONS:
            layers += [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2), nn.ReLU()]
            inputs, side = outputs, side // stride
        layers += [nn.Flatten(), nn.Linear(inputs * side**2, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 1)]
        return nn.Sequential(*layers)

    def scaled(net: Any) -> list[Any]:
        return [layer.weight for layer in net if isinstance(layer, nn.Linear)]

    return _drawn(build, scaled, scale, seed, dtype, torch)


def _drawn(
    build: Callable[[], Any], scaled: Callable[[Any], list[Any]], scale: float, seed: int, dtype: str, torch: Any
) -> Any:
    """Build a net from a seed without touching torch's own random state, and scale some of its weights."""
    if not is_number(scale) or not 0 < scale < float("inf"):
        raise ProblemError(f"scale must be a positive number, not {scale!r}.")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ProblemError(f"seed must be an integer >= 0, not {seed!r}.")
    if dtype not in ("float32", "float64"):
        raise ProblemError(f"dtype must be 'float32' or 'float64', not {dtype!r}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = build()  # Linear and Conv2d draw their weights and biases from U(-1/sqrt(m), 1/sqrt(m))
    net = net.to(getattr(torch, dtype))
    with torch.no_grad():
        for weight in scaled(net):
            weight.mul_(scale)
    return net
