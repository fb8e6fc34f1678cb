"""Numbers of an experiment as they go into a file: so judged and drawn, whether fresh or read back."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from ...problem.plain import plain
from .experiment import Numbers

DIGITS = 8  # of the entries of arrays; single numbers keep all of theirs


def settled(numbers: Numbers) -> Numbers:
    """Return the numbers as a file gives them back: lists for arrays, whose entries have 8 digits.

    Infinities and nan become the texts that ``float`` and ``np.asarray(..., dtype=float)`` read.

    >>> settled({"w": np.array([1 / 3, np.nan]), "margin": 1 / 3})
    {'w': [0.33333333, 'nan'], 'margin': 0.3333333333333333}
    """
    found: Numbers = json.loads(json.dumps(plain(_rounded(numbers)), allow_nan=False))
    return found


def digest(numbers: Numbers) -> str:
    """Return a hash of numbers as a file holds them, whatever the order of their names.

    >>> digest({"a": 1.0, "b": [2]}) == digest({"b": [2], "a": 1.0}) != digest({"a": 1.0, "b": [3]})
    True
    """
    text = json.dumps(numbers, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _rounded(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        short = [float(f"{entry:.{DIGITS}g}") for entry in value.astype(np.float64).ravel()]
        return np.array(short).reshape(value.shape)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value
