"""The one family of errors.

Every message says what was given, what is needed, and how to get there. The command line prints
the message alone and exits with ``exit_code``; nobody sees a traceback for a mistake of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class ReluflowError(Exception):
    """Base of everything reluflow raises on purpose.

    Attributes
    ----------
    exit_code : int
        What the command line exits with: 2 for bad input, 3 for an undecided question.
    """

    exit_code = 2


class DataError(ReluflowError, ValueError):
    """The dataset, or the file it should come from, cannot be used as given."""


class ProblemError(ReluflowError, ValueError):
    """A network, an initialisation or a setting cannot be used as given."""


class NotSeparable(ReluflowError):
    """No vector classifies every point: proved by ``certificate``.

    Attributes
    ----------
    certificate : ndarray of shape (n,)
        Convex weights with ``certificate @ signed`` equal to zero up to rounding (a Farkas vector).
    residual : float
        ``|certificate @ signed| / (certificate @ norms)``: how exactly the combination vanishes.
    """

    def __init__(self, message: str, certificate: npt.NDArray[np.float64], residual: float) -> None:
        super().__init__(message, certificate, residual)  # all of it, so that the error pickles
        self.certificate = certificate
        self.residual = residual

    def __str__(self) -> str:
        return str(self.args[0])


class Undecided(ReluflowError):
    """Neither answer could be verified. ``partial`` holds everything that was found."""

    exit_code = 3

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message, partial)
        self.partial = partial

    def __str__(self) -> str:
        return str(self.args[0])


class BudgetExceeded(Undecided):
    """The allowed work was used up before the question was decided. ``partial`` holds what there is."""


class OutOfTime(BudgetExceeded):
    """The time limit ended first. ``partial`` holds what there is."""


class Interrupted(BudgetExceeded):
    """The user interrupted the work (Ctrl-C). ``partial`` holds what there is."""

    exit_code = 130
