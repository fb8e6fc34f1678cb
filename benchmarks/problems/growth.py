"""What the flow to a loss of 1e-2 costs as one size grows, rtol 1e-6, beside gradient descent with step 0.01.

Orthogonally separable data of 200 points in 10 dimensions and 50 neurons from scale 0.01, one of the three sizes
varied; exponents are fitted on logarithmic axes.
"""

from __future__ import annotations

import reluflow as rf
from benchmarks.measure import Case
from benchmarks.nets import off_loss, start

TITLE = "Cost against n, d, p and events"
TASK = "flow"
_SIZES = {"n": (100, 200, 400, 800, 1600), "d": (5, 10, 20, 40, 80), "p": (25, 50, 100, 200, 400)}


def _case(n: int, d: int, p: int, name: str) -> Case:
    return Case(
        lambda: (start(rf.make("phuong", n=n, d=d, seed=0), p, 1e-2), 1e-2),
        20.0,
        {"n": n, "d": d, "p": p, "varied": name},
        {"reluflow": (1e-6,), "numpy_gd": (0.01,)},
    )


CASES = {
    "smallest": _case(20, 3, 5, ""),
    **{
        f"{name} = {value}": _case(
            **{key: value if key == name else base for key, base in (("n", 200), ("d", 10), ("p", 50))}, name=name
        )
        for name, values in _SIZES.items()
        for value in values
    },
}
SMOKE = "smallest"
PICTURES = ("growth",)


def error(given: tuple[rf.Problem, float], _: None, net: rf.Network) -> float:
    """Relative distance from the loss that was asked for."""
    return off_loss(*given, net)
