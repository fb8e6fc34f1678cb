"""What can be said of a dataset at once."""

from __future__ import annotations

from dataclasses import dataclass

from ..problem import Dataset
from ..sectors import gram_signs, smallest_cosine

_CHEAP = 4e9  # multiplications; about a third of a second


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
    strictly_orthogonally_separable : bool or None
        Whether ``mu`` is positive, decided exactly.
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
    strictly_orthogonally_separable: bool | None
    acute: float | None


def summarize(data: Dataset) -> Summary:
    """Collect the cheap facts about a dataset.

    >>> facts = summarize(Dataset([[2, 1], [-3, -1], [1, 1]], [1, -1, 1]))
    >>> facts.positives, facts.negatives, facts.duplicates, facts.acute
    (2, 1, 0, 1.0)
    >>> round(facts.mu, 10), facts.strictly_orthogonally_separable  # cos((3, 1), (1, 1)) = 2 / sqrt(5)
    (0.894427191, True)
    """
    cheap = float(data.n) ** 2 * data.d <= _CHEAP
    mu = smallest_cosine(data)[0] if cheap else None  # its sign is exact
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
        mu > 0 if mu is not None else None,
        _acute(data) if cheap else None,
    )


def _acute(data: Dataset) -> float | None:
    """Share of the pairs of signed points with a positive inner product."""
    pairs = data.n * (data.n - 1) // 2
    positive = sum(
        int(((signs > 0) & (rows[:, None] < columns)).sum()) for rows, columns, signs in gram_signs(data.signed)
    )
    return positive / pairs if pairs else None
