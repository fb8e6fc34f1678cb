"""Losses as functions of the margin q, in plain and in log form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from .errors import ProblemError
from .types import Array

LossName = Literal["logistic", "exponential"]


@dataclass(frozen=True)
class Loss:
    r"""A loss :math:`\ell(q)` of the margin :math:`q = y f(x)` with exponential tail.

    ``logistic`` is :math:`\log(1 + e^{-q})`, ``exponential`` is :math:`e^{-q}`. The plain forms are
    correctly rounded to a few units in the last place wherever a double can hold the answer (below
    the smallest double they return 0, above the largest inf); the log forms hold everywhere, so that
    margins of 10^6 still tell samples apart.

    Parameters
    ----------
    name : {"logistic", "exponential"}

    Examples
    --------
    >>> loss = Loss("logistic")
    >>> loss.log_value([0.0, 1e6])
    array([-3.66512921e-01, -1.00000000e+06])
    >>> loss.force(0.0)
    array(0.5)
    """

    name: LossName

    def __post_init__(self) -> None:
        if self.name not in ("logistic", "exponential"):
            raise ProblemError(f"loss {self.name!r} is not known; choose 'logistic' or 'exponential'.")

    def value(self, q: npt.ArrayLike) -> Array:
        """``l(q)``."""
        q = np.asarray(q, dtype=np.float64)
        if self.name == "exponential":
            with np.errstate(over="ignore", under="ignore"):
                return np.asarray(np.exp(-q))
        return np.asarray(np.maximum(-q, 0.0) + np.log1p(_exp_minus_abs(q)))

    def log_value(self, q: npt.ArrayLike) -> Array:
        """``log l(q)``."""
        q = np.asarray(q, dtype=np.float64)
        if self.name == "exponential":
            return np.asarray(-q)
        # log l = -q + log(log1p(x)/x) with x = e^-q, and log(log1p(x)/x) = -x/2 up to x^2 = 1e-26.
        with np.errstate(divide="ignore"):
            return np.where(q > 30.0, -q - _exp_minus_abs(q) / 2, np.log(self.value(q)))

    def force(self, q: npt.ArrayLike) -> Array:
        """``g(q) = -l'(q)``, the pull of a sample on the network."""
        q = np.asarray(q, dtype=np.float64)
        if self.name == "exponential":
            return self.value(q)
        e = _exp_minus_abs(q)
        return np.asarray(np.where(q > 0, e, 1.0) / (1.0 + e))

    def curvature(self, q: npt.ArrayLike) -> Array:
        """``l''(q)``: how fast the pull of a sample falls.

        >>> Loss("logistic").curvature(0.0)
        array(0.25)
        """
        q = np.asarray(q, dtype=np.float64)
        if self.name == "exponential":
            return self.value(q)
        e = _exp_minus_abs(q)
        return np.asarray(e / (1.0 + e) ** 2)

    def log_force(self, q: npt.ArrayLike) -> Array:
        """``log g(q)``."""
        q = np.asarray(q, dtype=np.float64)
        if self.name == "exponential":
            return np.asarray(-q)
        return np.asarray(np.minimum(-q, 0.0) - np.log1p(_exp_minus_abs(q)))

    def inverse_log(self, log_value: npt.ArrayLike) -> Array:
        """Find the margin q with ``log l(q) = log_value``, from losses of e^-(10^6) to losses of 10^300.

        >>> float(Loss("logistic").inverse_log(-1e6))
        1000000.0
        """
        s = np.asarray(log_value, dtype=np.float64)
        if self.name == "exponential":
            return np.asarray(-s)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            total = np.exp(s)
            # q = -log(expm1(total)); expm1 is total(1 + total/2) when tiny and e^total when large.
            middle = -np.log(np.expm1(np.minimum(total, 40.0)))
            return np.where(s < -30.0, -s - total / 2, np.where(total > 40.0, -total, middle))

    @property
    def force_at_zero(self) -> float:
        """``g(0)``: the speed of the early phase."""
        return 0.5 if self.name == "logistic" else 1.0


def _exp_minus_abs(q: Array) -> Array:
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-np.abs(q)))
