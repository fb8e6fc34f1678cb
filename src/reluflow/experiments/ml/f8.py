"""ML-F8: two points with a tiny positive correlation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.experiment import Expectation, Numbers, at_least, at_most, is_so
from .f7 import EXPERIMENT as WIDER
from .pair import check_counts, check_entry, check_flow, check_loss


def check(numbers: Numbers) -> list[Expectation]:
    """Judge that alignment is slower than with delta = 0.1."""
    then, late = (check_counts(numbers, "outside", shot) for shot in (7000, 21000))
    near = float(numbers["runs"][0]["counts"]["descent"][numbers["shots"].index(7000)]["outside_to_point"])
    return [
        at_least(
            "outside",
            "At iteration 7000 several live positive neurons are still outside S+ "
            f"(all seeds: {', '.join(map(str, then))}).",
            then[0],
            2,
        ),
        at_most(
            "near",
            "Those are aligned with one of the two points (largest angle in degrees to the nearer one).",
            float(np.degrees(np.arccos(min(near, 1.0)))) if np.isfinite(near) else float("nan"),
            10.0,
            "The paper gives no number.",
        ),
        is_so(
            "left",
            "At iteration 21000 none or one is left outside (the paper saw one).",
            late[0] <= 1,
            "0 or 1",
            f"{late[0]}; in all seeds: {', '.join(map(str, late))}",
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
    parameters={**WIDER.parameters, "delta": 0.001},
)
