"""Whether points that rest in balance (`flow.balance`) do so for ever."""

from __future__ import annotations

import numpy as np

from ..flow.balance import NOTHING, Balance, led_away, pulls_of
from ..flow.field import Geometry, make_pattern
from .gates import Evidence

_TIGHT = 1e-9  # largest part of the loss between its two bounds


def evidence_of(geometry: Geometry, found: Balance) -> tuple[Evidence, ...]:
    """Whether the flow rests for ever in this balance: the loss has no way down, and no hyperplane is in reach."""
    gap = (found.upper - found.lower) / found.upper
    tight = Evidence(
        "balance",
        gap,
        bool(-_TIGHT <= gap <= _TIGHT),
        f"pulls cancel in every pattern, and the loss is within {abs(gap):.1e} of the least that these allow",
    )
    return tight, _stays(geometry, found)


def _stays(geometry: Geometry, found: Balance) -> Evidence:
    state, c = found.state, pulls_of(geometry, found)
    if found.level and geometry.problem.data.d == 1 and state.balanced[found.who].all():
        return Evidence("stays", 0.0, True, "balanced neurons in one dimension never change sides, and none can grow")
    # One force moves all neurons of a group, in proportion to their output weights: a small one no further than that.
    pattern, log_a = make_pattern(geometry, state.sides[found.who]), state.log_a[found.who]
    largest = np.maximum.reduceat(log_a[pattern.order], pattern.starts)
    with np.errstate(under="ignore"):
        far = np.exp(state.log_w[found.who])[:, None] * np.abs(state.U[found.who] @ geometry.faces.normals.T)
        ways = found.way * np.minimum(1.0, 2 * np.exp(log_a - largest[pattern.member]))
        short = geometry.frozen or found.way < np.exp(largest).min() / 4
    open_ = 0
    for j, row, way in zip(found.who, far, ways, strict=True):
        reach = np.flatnonzero((row <= way) | (state.sides[j] == 0))
        if reach.size > 1:  # they may hold each other
            open_ += reach.size
            continue
        for k in reach:
            beyond = (-int(state.sides[j, k]),) if state.sides[j, k] else (1, -1)
            open_ += any(led_away(geometry, state, int(j), int(k), side, c) > -NOTHING for side in beyond)
    text = f"all that moves moves by at most {found.way:.1e}: " + (
        f"{open_} hyperplanes in reach may let a neuron through" if open_ else "no hyperplane in reach lets one through"
    )
    if not short:
        text += ", but some neurons are not larger"
    return Evidence("stays", found.way, bool(short and not open_), text)
