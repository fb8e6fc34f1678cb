"""ML-F7: two points with a small positive correlation."""

from __future__ import annotations

from ..core.experiment import Expectation, Experiment, Numbers, at_least, at_most, is_so
from .choices import BOTH_LAYERS
from .pair import PARAMETERS, check_counts, check_entry, check_flow, check_loss, plot, run
from .plane import check_late


def check(numbers: Numbers) -> list[Expectation]:
    """Judge that all live neurons are where they belong before the loss falls."""
    outside, live = (check_counts(numbers, key, 7000) for key in ("outside", "live_plus"))
    minus = check_counts(numbers, "live_minus", 7000)
    return [
        is_so(
            "inside",
            "At iteration 7000 every live positive neuron is in S+.",
            outside[0] == 0,
            "0 outside",
            f"{outside[0]} of {live[0]} outside; none in {outside.count(0)} of {len(outside)} seeds",
            f"Judged for the first seed. {check_late(numbers)}",
        ),
        is_so(
            "negative",
            "No neuron with a negative output weight is alive then.",
            minus[0] == 0,
            "0 alive",
            f"{minus[0]} alive; none in {minus.count(0)} of {len(minus)} seeds",
        ),
        at_least("early", "The loss is still near its start at iteration 7000.", check_loss(numbers, 7000), 0.98),
        at_most("late", "The loss is small at iteration 14000.", check_loss(numbers, 14000), 0.03),
        check_entry(numbers),
        *check_flow(numbers),
    ]


EXPERIMENT = Experiment(
    id="ML-F7",
    title="Two nearly orthogonal points, delta = 0.1: all live neurons enter S+ before they grow",
    caption="Directions (arrows) and weights (dots) of the neurons at the start and at three iterations; dotted grey "
    "arrows are dead. Right: loss of descent and of the exact flow from the same start, and the share of all "
    "neurons that are positive, alive and outside S+.",
    run=run,
    check=check,
    plot=plot,
    parameters={**PARAMETERS, "delta": 0.1},
    quick={"seeds": [0]},
    implied=("entry",),
    ours=("flow-*",),
    unstated=BOTH_LAYERS,
    minutes=0.2,
)
