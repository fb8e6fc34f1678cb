"""Getting at PyTorch, which is not a dependency of the package itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem.errors import ProblemError
from ..problem.types import Array


def torch_for(what: str) -> Any:
    """Import torch, or say how to install it."""
    try:
        import torch
    except ImportError:
        raise ProblemError(
            f"{what} needs PyTorch, which is not installed; pip install 'reluflow[deep]' installs it (without a GPU: "
            "install its CPU build first, which is much smaller)."
        ) from None
    return torch


def as_doubles(values: Any) -> Array:
    """Copy a tensor (any device, any floating type, gradients or not) or an array into float64, exactly."""
    if hasattr(values, "detach"):
        # bfloat16 has no NumPy type, so the widening happens on the side of torch.
        values = values.detach().cpu().double().numpy()
    return np.array(values, dtype=np.float64)
