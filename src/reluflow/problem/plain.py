"""Results as plain JSON values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Turn arrays, mappings, dataclasses and numbers into what JSON can say.

    JSON has no infinities: they become the texts ``"inf"``, ``"-inf"``, ``"nan"``.

    >>> plain({"margin": np.float64(0.5), "w": np.array([1.0, np.inf]), 3: (True, None)})
    {'margin': 0.5, 'w': [1.0, 'inf'], '3': [True, None]}
    """
    # One line a type: longer than other functions, and no more complicated than a table.
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)
