"""What can be said of a dataset at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem import Dataset

_CHEAP = 4e9  # multiplications; about a third of a second
_BLOCK = 512


@dataclass(frozen=True)
class Summary:
    r"""The facts about a dataset that cost next to nothing.

    Attributes
    ----------
    name, fingerprint, n, d, positives, negatives
        Identity and sizes.
    norm_min, norm_max : float
        Range of the Euclidean norms of the points.
    duplicates : int
        Points that repeat an earlier one.
    mu : float or None
        :math:`\min_{i,j} \cos(y_i x_i, y_j x_j)`: positive if and only if the data are strictly orthogonally
        separable (same class: acute angles; across: obtuse). None where comparing all pairs takes too long.
    mu_error : float or None
        Bound on the rounding error of ``mu``: nearer to zero than this, its sign is not known.
    acute : float or None
        Share of the pairs i < j with :math:`y_i y_j\, x_i \cdot x_j > 0`; None as above or if there is no pair.
    """

    name: str | None
    fingerprint: str
    n: int
    d: int
    positives: int
    negatives: int
    norm_min: float
    norm_max: float
    duplicates: int
    mu: float | None
    mu_error: float | None
    acute: float | None

    @property
    def strictly_orthogonally_separable(self) -> bool | None:
        """Whether ``mu`` is positive; None if that is not known."""
        if self.mu is None or self.mu_error is None or abs(self.mu) <= self.mu_error:
            return None
        return self.mu > 0


def summarize(data: Dataset) -> Summary:
    """Collect the cheap facts about a dataset.

    >>> facts = summarize(Dataset([[2, 1], [-3, -1], [1, 1]], [1, -1, 1]))
    >>> facts.positives, facts.negatives, facts.duplicates, facts.acute
    (2, 1, 0, 1.0)
    >>> round(facts.mu, 10), facts.strictly_orthogonally_separable  # cos((3, 1), (1, 1)) = 2 / sqrt(5)
    (0.894427191, True)
    """
    cheap = float(data.n) ** 2 * data.d <= _CHEAP
    mu, acute = _pairs(data) if cheap else (None, None)
    return Summary(
        data.name,
        data.fingerprint(),
        data.n,
        data.d,
        data.positives.size,
        data.negatives.size,
        float(data.norms.min()),
        float(data.norms.max()),
        data.n - len({row.tobytes() for row in data.X + 0.0}),
        mu,
        (data.d + 8) * 2.0**-52 if cheap else None,
        acute,
    )


def _pairs(data: Dataset) -> tuple[float, float | None]:
    """Find the smallest cosine between signed points, and the share of pairs whose cosine is positive."""
    scale = np.abs(data.signed).max(axis=1, keepdims=True)  # first, so that no square underflows
    unit = data.signed / scale
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    smallest, positive = np.inf, 0
    for start in range(0, data.n, _BLOCK):
        stop = min(start + _BLOCK, data.n)
        cosines: Any = unit[start:stop] @ unit[start:].T
        smallest = min(smallest, float(cosines.min()))
        positive += int((np.triu(cosines > 0, k=1)).sum())  # columns start at the block, so this is i < j
    count = data.n * (data.n - 1) // 2
    return smallest, positive / count if count else None
