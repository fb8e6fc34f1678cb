"""What the figures of Phuong and Lampert have in common: their data, and how weights are looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...data import make
from ...deep import correlations, spectrum
from ...deep.need import torch_for
from ...margins import class_margins
from ...problem import Dataset
from ...problem.types import Array
from ...report.panels import COLOURS
from ...sectors import is_orthogonally_separable, smallest_cosine
from ..core.experiment import Choice

#: Colours of neurons with positive and with negative output: those of the paper.
SIGNS = (COLOURS[1], COLOURS[0])

UNSTATED = (
    Choice("initial weights", "uniform in +-1/sqrt(inputs of a unit), then times 0.05", "the default of PyTorch"),
    Choice("loss of a batch", "its mean", "the default of PyTorch; a sum would make the step 50 times as large"),
    Choice("numbers of the classes", "each point is positive with probability 1/2", "the law of the paper's filter"),
    Choice("batches", "drawn without replacement, in a new order every epoch", "usual practice"),
    Choice("seeds", "0 to 4; the panels show seed 0", "the paper shows one run"),
)


@contextmanager
def one_thread() -> Iterator[Any]:
    """Let torch work on one core: experiments run beside each other, and sums keep their order."""
    torch = torch_for("PL")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(before)


def orthogonal_data(n: int, d: int, seed: int) -> tuple[Dataset, dict[str, Any]]:
    """Draw the data of Section 5, and say which conditions of the theorem they meet."""
    data = make("phuong", n=n, d=d, seed=seed)
    pair = class_margins(data)
    ranks = [int(np.linalg.matrix_rank(data.X[one.support])) for one in pair]
    return data, {
        "separable": is_orthogonally_separable(data),
        "mu": smallest_cosine(data)[0],
        "cosine": float(pair[0].direction @ pair[1].direction),
        "lengths": [1.0 / one.margin for one in pair],
        "support": [int(one.support.size) for one in pair],
        "ranks": ranks,
        "span": min(ranks) == data.d,
        "positives": int(data.positives.size),
    }


def portrait(W: Array, data: Dataset, signs: Array | None = None) -> dict[str, Any]:
    """Return what the paper's panels show of a first layer; without signs the nearer max-margin direction counts."""
    seen, found = spectrum(W), correlations(W, data, signs)
    energy = (W**2).sum(axis=1)
    return {
        "singular_values": seen.singular_values[:10],
        "projected": seen.projected,
        "correlations": found,
        "median": float(np.nanmedian(found)),
        "share": float((found > 0.9).mean()),
        "energy": float(energy[found > 0.9].sum() / energy.sum()),
        "dead": int(((W @ data.X.T) <= 0).all(axis=1).sum()),
    }


def check_rays(projected: Any, signs: Any) -> float:
    """Return how well the rows of either sign lie on one ray: share of their squares along it (the worse).

    >>> check_rays([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]], [1, 1, -1])
    1.0
    """
    rows, kinds = np.asarray(projected, dtype=np.float64), np.sign(np.asarray(signs, dtype=np.float64))
    found = []
    for sign in (1, -1):
        group = rows[kinds == sign]
        if np.any(group):
            along = group.sum(axis=0)  # a line is not enough: rows on the other side must not count
            forward = np.maximum(group @ along, 0.0) / np.linalg.norm(along)
            found.append(float((forward**2).sum() / (group**2).sum()))
    return min(found, default=float("nan"))


def plot_legend(axes: Any, out: str) -> None:
    """Name the output weight in the legend of a panel that tells rows apart by its sign."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, [label.replace("a ", f"{out} ") for label in labels], fontsize=8)
