"""Modules of PyTorch; imported only where torch is known to be there."""

from __future__ import annotations

from typing import Any

import torch


class Residual(torch.nn.Module):  # type: ignore[misc]
    """``h_1 = W_1 x``, ``h_l = h_{l-1} + W_l relu(h_{l-1})``, ``f = W_L relu(h_{L-1})`` (PL eq. 30).

    Every activation is a module of its own, so that what enters and leaves it can be watched.
    """

    def __init__(self, d: int, width: int, depth: int) -> None:
        super().__init__()
        sizes = [(d, width), *[(width, width)] * (depth - 2), (width, 1)]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(*size, bias=False) for size in sizes)
        self.activations = torch.nn.ModuleList(torch.nn.ReLU() for _ in range(depth - 1))

    def forward(self, x: Any) -> Any:
        """Return the output, of shape (n, 1)."""
        h = self.layers[0](x)
        for layer, activation in zip(self.layers[1:-1], self.activations[:-1], strict=True):
            h = h + layer(activation(h))
        return self.layers[-1](self.activations[-1](h))
