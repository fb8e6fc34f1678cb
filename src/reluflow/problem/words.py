"""Small words that all texts share."""

from __future__ import annotations

import math


def count(number: int, word: str, several: str | None = None) -> str:
    """Count things; ``several`` is the plural where that is more than an s.

    >>> count(1, "point"), count(2, "point"), count(0, "change of sides", "changes of sides")
    ('1 point', '2 points', '0 changes of sides')
    """
    return f"{number} {word if number == 1 else several or word + 's'}"


def moment(log_time: float) -> str:
    """Say a time: itself as long as four digits say it well, else its logarithm.

    >>> moment(0.0), moment(-math.inf), moment(9.2), moment(1e4)
    ('t = 1', 't = 0', 't = 9897', 'log t = 10000')
    """
    return f"t = {math.exp(log_time):.4g}" if log_time < 9.3 else f"log t = {log_time:.6g}"


def size(log_value: float) -> str:
    """Say a positive number given by its logarithm, which is said in its place where that is far from 0.

    >>> size(-2.0), size(-math.inf), size(-1000.0), size(1e6)
    ('0.1353', '0', 'e^-1000', 'e^1e+06')
    """
    return f"{math.exp(log_value):.4g}" if abs(log_value) < 300 or log_value == -math.inf else f"e^{log_value:.6g}"


def upper(text: str) -> str:
    """Begin with a capital letter.

    >>> upper("the limit of PL-T1")
    'The limit of PL-T1'
    """
    return text[:1].upper() + text[1:]
