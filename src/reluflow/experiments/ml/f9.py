"""ML-F9: two orthogonal points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.experiment import Expectation, Numbers, at_least, at_most, is_so
from .f7 import EXPERIMENT as WIDER
from .pair import check_counts, check_flow


def check(numbers: Numbers) -> list[Expectation]:
    """Judge that neurons settle on three directions and only those in S+ grow."""
    shots = (7000, 14000, 21000)
    outside = [check_counts(numbers, "outside", shot) for shot in shots]
    shown = numbers["runs"][numbers["shown"]]["counts"]["descent"][-1]
    constant = [len(set(counts)) == 1 for counts in zip(*outside, strict=True)]
    return [
        at_least(
            "stay",
            "Some live positive neurons never enter S+ (their number at the end; all seeds: "
            f"{', '.join(map(str, outside[-1]))}).",
            outside[-1][0],
            1,
        ),
        is_so(
            "constant",
            "Their number does not change any more after iteration 7000.",
            constant[0],
            "the same at 7000, 14000, 21000",
            f"{', '.join(str(counts[0]) for counts in outside)}; constant in {sum(constant)} of {len(constant)} seeds",
        ),
        at_most(
            "settled",
            "Every live positive neuron ends along x1, x2 or their sum (largest angle in degrees to the nearest).",
            float(np.degrees(np.arccos(min(float(shown["settled"]), 1.0)))),
            5.0,
            "The paper gives no number.",
        ),
        at_least(
            "growth",
            "Only neurons in S+ grow: their share of |W|_F^2 in the end.",
            float(shown["own_share"]),
            0.99,
        ),
        *check_flow(numbers),
    ]


EXPERIMENT = replace(
    WIDER,
    id="ML-F9",
    title="Two orthogonal points: neurons settle on either point or on their sum, and only the last grow",
    check=check,
    implied=(),
    parameters={**WIDER.parameters, "delta": 0.0},
)
