"""Places on an axis that shows both 1e-4 and e to the million."""

from __future__ import annotations

from typing import Any

import numpy as np

from .types import Array

BEND = 10.0  #: up to e^10 an axis is logarithmic, beyond it the logarithm has a logarithmic axis
DECADE = 6.0  #: what a decade of the logarithm beyond the bend takes, in units of the logarithm before it


def axis_place(log_value: Any) -> Array:
    r"""Place on an axis that shows both 1e-4 and :math:`e^{10^6}`.

    Between :math:`e^{-10}` and :math:`e^{10}` it is the logarithm, as on an ordinary logarithmic axis; beyond, equal
    lengths are decades of the logarithm. Infinities stay.

    >>> axis_place([-10.0, 0.0, 2.5, 10.0, 100.0, 1e6]).tolist()
    [-10.0, 0.0, 2.5, 10.0, 16.0, 40.0]
    """
    value = np.asarray(log_value, dtype=np.float64)
    beyond = BEND + DECADE * np.log10(np.maximum(np.abs(value), BEND) / BEND)
    return np.where(np.abs(value) <= BEND, value, np.sign(value) * beyond)


def log_value(place: float) -> float:
    """Turn a place back into a logarithm.

    >>> [log_value(float(axis_place(v))) for v in (-3.0, 1000.0)]
    [-3.0, 1000.0]
    """
    if abs(place) <= BEND:
        return place
    return float(np.sign(place) * BEND * 10 ** ((abs(place) - BEND) / DECADE))
