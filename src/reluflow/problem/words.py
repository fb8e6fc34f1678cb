"""Small words that all texts share."""

from __future__ import annotations


def count(number: int, word: str, several: str | None = None) -> str:
    """Count things; ``several`` is the plural where that is more than an s.

    >>> count(1, "point"), count(2, "point"), count(0, "change of sides", "changes of sides")
    ('1 point', '2 points', '0 changes of sides')
    """
    return f"{number} {word if number == 1 else several or word + 's'}"
