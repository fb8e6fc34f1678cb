"""A measure for sweeps that costs nothing. It stands alone: a sweep imports it by its file, in other processes too."""

from typing import Any


def nothing(problem: Any) -> dict[str, Any]:
    """Measure next to nothing, of the size of a real row."""
    size = float(problem.net.W[0, 0])
    return {"kind": "margin", "linear": True, "neurons": 2, **{f"number_{k}": size / (k + 1) for k in range(8)}}
