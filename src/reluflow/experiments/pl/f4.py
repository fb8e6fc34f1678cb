"""PL-F4: the first linear layer of the convolutional net."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...problem.types import Array
from ..core.experiment import Expectation, Numbers, at_least, between, not_judged
from .common import SIGNS, plot_legend
from .f3 import EXPERIMENT as FEATURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check(numbers: Numbers) -> list[Expectation]:
    """Few singular values, three clusters of rows."""
    head = numbers["end"]["head"]
    values = np.asarray(head["singular_values"], dtype=float)
    inner, groups = check_clusters(head)
    signs = np.sign(np.asarray(head["outs"], dtype=float))
    sizes = f"{int(inner.sum())} near the origin, {' and '.join(str(g.size) for g in groups)} outside"
    found = [
        between(
            "few",
            "few singular values of the 128 are clearly not zero: how many exceed a tenth of the largest",
            float((values > 0.1 * values[0]).sum()),
            3,
            12,
            "the paper says perhaps five or ten",
        ),
        at_least(
            "three",
            "the rows form three clusters, one near the origin and two outside: rows in the smallest of the three",
            float(min([int(inner.sum()), *(g.size for g in groups)])),
            3,
            f"near the origin: less than half as far out as the 95 % quantile of all rows; {sizes}",
        ),
    ]
    claim = "each outer cluster belongs to one sign of the last layer: share of its rows with the commoner sign"
    mixed = "the cluster near the origin is mixed: share of its rarer sign"
    if min(g.size for g in groups) == 0 or not inner.any():
        why = f"there are no three clusters: {sizes}"
        return [*found, not_judged("pure", claim, ">= 0.95", why), not_judged("mixed", mixed, ">= 0.1", why)]
    pure = min(max(float((signs[g] > 0).mean()), float((signs[g] < 0).mean())) for g in groups)
    opposite = np.prod([signs[g].sum() for g in groups]) < 0
    share = float((signs[inner] > 0).mean())
    return [
        *found,
        at_least(
            "pure",
            claim,
            pure if opposite else 0.0,
            0.95,
            "0 where both clusters have the same sign; the clusters are found without looking at signs",
        ),
        at_least("mixed", mixed, min(share, 1.0 - share), 0.1, "the paper says mixed; the cut-off is ours"),
    ]


def check_clusters(head: Any) -> tuple[Array, list[Array]]:
    """Tell which rows are near the origin, and split the others by direction into two (two means on the circle)."""
    rows = np.asarray(head["projected"], dtype=float)
    far = np.linalg.norm(rows, axis=1)
    inner = far < 0.5 * np.quantile(far, 0.95)
    outside = np.flatnonzero(~inner)
    unit = rows[outside] / far[outside, None]
    first, second = np.unravel_index((unit @ unit.T).argmin(), (outside.size, outside.size))
    centres = unit[[first, second]]
    for _ in range(100):
        belongs = (unit @ centres.T).argmax(axis=1)
        sums = np.stack([unit[belongs == k].sum(axis=0) for k in (0, 1)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1.0), centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return inner, [outside[belongs == k] for k in (0, 1)]


def plot(numbers: Numbers) -> Figure:
    """Draw singular values, rows, and how the singular values came about."""
    from ...report.panels import COLOURS, STYLES, row_plane, sheet, singular_values

    head = numbers["end"]["head"]
    figure, axes = sheet(1, 3, "First linear layer of the convolutional net", size=(3.9, 3.3))
    singular_values(axes[0, 0], head["singular_values"], name="$W_7$")
    start = numbers["start"]["head"]["singular_values"][0]
    axes[0, 0].axhline(start, color="black", ls=":", lw=1.2, label="largest at the start")
    axes[0, 0].legend(fontsize=8)
    row_plane(axes[0, 1], head["projected"], head["outs"], name="$W_7$", colours=SIGNS)
    plot_legend(axes[0, 1], "$W_8[j]$")
    course = numbers["training"]["course"]
    values = np.array([one["singular_values"][:10] for one in course], dtype=float)
    epochs = [one["epoch"] for one in course]
    for k, line in enumerate(values.T):
        kind = k % len(COLOURS)
        axes[0, 2].plot(epochs, line, color=COLOURS[kind], ls=STYLES[kind], lw=1.2)
    axes[0, 2].set(xlabel="epoch", ylabel="singular value", title="the ten largest, while training", yscale="log")
    return figure


EXPERIMENT = replace(
    FEATURES,
    id="PL-F4",
    title="First linear layer of a convolutional net on the digits 0 and 1",
    caption=(
        "Left: the ten largest singular values of the first linear layer (128 x 3136) after training. Middle: its rows "
        "in the plane of the two first singular directions, told apart by the sign of the last layer (orange if "
        "positive; the axes have different scales). Right: the ten largest singular values while training. The net is "
        "not a two-layer net: there is no flow to draw beside it."
    ),
    check=check,
    plot=plot,
    ours=(),
)
