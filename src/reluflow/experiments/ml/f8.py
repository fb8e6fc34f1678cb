"""ML-F8: two points with a tiny positive correlation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.experiment import Expectation, Numbers, at_least, at_most
from .f7 import EXPERIMENT as WIDER
from .pair import check_counts, check_entry, check_flow, check_loss


def check(numbers: Numbers) -> list[Expectation]:
    """Judge that alignment is slower than with delta = 0.1."""
    then, late = (check_counts(numbers, "outside", shot) for shot in (7000, 21000))
    at = numbers["shots"].index(7000)
    near = min(float(found["counts"]["descent"][at]["outside_to_point"]) for found in numbers["runs"])
    return [
        at_least(
            "outside",
            "At iteration 7000 several live positive neurons are still outside S+ (smallest number over the seeds; "
            "all: "
            f"{', '.join(map(str, then))}).",
            min(then),
            2,
        ),
        at_most(
            "near",
            "Those are aligned with one of the two points (largest angle in degrees to the nearer one, all seeds).",
            float(np.degrees(np.arccos(min(near, 1.0)))) if np.isfinite(near) else float("nan"),
            10.0,
            "The paper gives no number.",
        ),
        at_least(
            "left",
            "A neuron may stay outside S+ at iteration 21000, as one did in the run of the paper (share of the seeds "
            f"with one or more; all: {', '.join(map(str, late))}).",
            float(np.mean([count > 0 for count in late])),
            0.05,
            "Were the share smaller, what the paper saw in its one run would be an accident.",
        ),
        at_least("early", "The loss is still near its start at iteration 7000.", check_loss(numbers, 7000), 0.98),
        check_entry(numbers),
        *check_flow(numbers),
    ]


EXPERIMENT = replace(
    WIDER,
    id="ML-F8",
    title="Two nearly orthogonal points, delta = 0.001: alignment takes longer than the small weights last",
    check=check,
    caption=f"{WIDER.caption} The seed shown is the first that ends with one neuron outside, as in the paper.",
    parameters={**WIDER.parameters, "delta": 0.001, "show": 1},
    quick={"seeds": [0, 1]},
)
