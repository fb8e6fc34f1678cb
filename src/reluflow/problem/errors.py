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
    """The dataset, or the file it should come from, cannot be used as given.

    Examples
    --------
    >>> from reluflow import Dataset
    >>> Dataset([[1.0, 2.0]], [0])
    Traceback (most recent call last):
        ...
    reluflow.problem.errors.DataError: ...
    """


class ProblemError(ReluflowError, ValueError):
    """A network, an initialisation or a setting cannot be used as given.

    Examples
    --------
    >>> from reluflow import initialize
    >>> initialize(2, width=0)
    Traceback (most recent call last):
        ...
    reluflow.problem.errors.ProblemError: ...
    """


class NotSeparable(ReluflowError):
    """No vector classifies every point: proved by ``certificate``.

    Attributes
    ----------
    certificate : ndarray of shape (n,)
        Convex weights with ``certificate @ signed`` equal to zero up to rounding (a Farkas vector).
    residual : float
        ``|certificate @ signed| / (certificate @ norms)``: how exactly the combination vanishes.

    Examples
    --------
    >>> from reluflow import Dataset, max_margin
    >>> try:
    ...     max_margin(Dataset([[1.0, 0.0], [2.0, 0.0]], [1, -1]))
    ... except NotSeparable as error:
    ...     print(error.certificate.round(10), error.residual)
    [0.66666667 0.33333333] 0.0
    """

    _general = "take out or relabel points that contradict each other, or add features that tell them apart."

    def __init__(self, message: str, certificate: npt.NDArray[np.float64], residual: float) -> None:
        super().__init__(message, certificate, residual)  # all of it, so that the error pickles
        self.certificate = certificate
        self.residual = residual

    def __str__(self) -> str:
        return str(self.args[0])


class Undecided(ReluflowError):
    """Neither answer could be verified. ``partial`` holds everything that was found.

    Examples
    --------
    >>> from reluflow import flow
    >>> try:
    ...     flow("ML-F6", {"loss": 1e-3}, width=10, max_steps=5)
    ... except Undecided as error:
    ...     print(type(error).__name__, len(error.partial) > 1, error.exit_code)
    BudgetExceeded True 3
    """

    exit_code = 3
    _general = "more time, steps or accuracy may decide it; what was found so far is kept."

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message, partial)
        self.partial = partial

    def __str__(self) -> str:
        return str(self.args[0])


class BudgetExceeded(Undecided):
    """The allowed work was used up before the question was decided. ``partial`` holds what there is.

    Examples
    --------
    >>> from reluflow import align
    >>> try:
    ...     align("ML-F6", width=3, max_events=1)
    ... except BudgetExceeded as error:
    ...     print("unfinished" in error.partial.fates)
    True
    """


class Stopped(BudgetExceeded):
    """Work was ended from outside. Who can go on without an answer must let this pass: nobody waits for the rest."""


class OutOfTime(Stopped):
    """The time limit ended first. ``partial`` holds what there is.

    Examples
    --------
    >>> from reluflow import check
    >>> try:
    ...     check("ML-F6", width=10, time_limit=1e-9)
    ... except OutOfTime as error:
    ...     print(len(error.partial) < 80)
    True
    """


class Interrupted(Stopped):
    """The user interrupted the work (Ctrl-C). ``partial`` holds what there is.

    Examples
    --------
    >>> Interrupted("interrupted while working; what was found so far is kept.", partial=[1, 2]).exit_code
    130
    """

    exit_code = 130
