"""ML-F11: the digits 1 and 7 learned from tiny weights."""

from __future__ import annotations

from dataclasses import replace

from .f5 import EXPERIMENT as ZERO_ONE
from .mnist import check

EXPERIMENT = replace(
    ZERO_ONE,
    id="ML-F11",
    title="MNIST digits 1 and 7: neurons align with the class sums, then grow",
    check=check,
    parameters={**ZERO_ONE.parameters, "data": "mnist:digits=1/7"},
    quick={**ZERO_ONE.quick, "data": "digits:pair=1/7"},
    minutes=7.0,
)
