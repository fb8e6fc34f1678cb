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
        What the command line exits with: 2 for bad input, 3 for an undecided question, 130 after Ctrl-C.
    remedy : str
        How to get there.

    Examples
    --------
    >>> ReluflowError("width = 0 was given, but at least 1 neuron is needed; raise the width.").remedy
    'raise the width.'
    """

    exit_code = 2
    _general = "reluflow VERB --help shows what is expected; docs/ and the docstrings have examples."

    @property
    def remedy(self) -> str:
        """How to get there: the last clause of the message, or its last sentence, else what helps in general."""
        for mark in ("; ", ". "):
            _, found, last = str(self).rpartition(mark)
            if found:
                return last
        return self._general


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

    _general = "take out or relabel points that contradict each other, or add features that tell them apart."

    def __init__(self, message: str, certificate: npt.NDArray[np.float64], residual: float) -> None:
        super().__init__(message, certificate, residual)  # all of it, so that the error pickles
        self.certificate = certificate
        self.residual = residual

    def __str__(self) -> str:
        return str(self.args[0])


class Undecided(ReluflowError):
    """Neither answer could be verified. ``partial`` holds everything that was found."""

    exit_code = 3
    _general = "more time, steps or accuracy may decide it; what was found so far is kept."

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message, partial)
        self.partial = partial

    def __str__(self) -> str:
        return str(self.args[0])


class BudgetExceeded(Undecided):
    """The allowed work was used up before the question was decided. ``partial`` holds what there is."""


class Stopped(BudgetExceeded):
    """Work was ended from outside. Who can go on without an answer must let this pass: nobody waits for the rest."""


class OutOfTime(Stopped):
    """The time limit ended first. ``partial`` holds what there is."""


class Interrupted(Stopped):
    """The user interrupted the work (Ctrl-C). ``partial`` holds what there is."""

    exit_code = 130
