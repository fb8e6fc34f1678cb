"""ML-F10: the digits 3 and 8 learned from tiny weights."""

from __future__ import annotations

from dataclasses import replace

from .f5 import EXPERIMENT as ZERO_ONE
from .mnist import check

EXPERIMENT = replace(
    ZERO_ONE,
    id="ML-F10",
    title="MNIST digits 3 and 8: neurons align with the class sums, then grow",
    check=check,
    parameters={**ZERO_ONE.parameters, "data": "mnist:digits=3/8"},
    quick={**ZERO_ONE.quick, "data": "digits:pair=3/8"},
    minutes=7.0,
)
