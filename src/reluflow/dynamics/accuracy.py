r"""How accurately a run is known: the error bound that every monitor compares with.

A claim is contradicted only by what exceeds this bound, and seen only where what it allows does. The bound has three
parts.

*Rounding* at the run's own scale. A run keeps logarithms, and a logarithm of size :math:`10^7` has an absolute error
of :math:`10^7 \cdot 2^{-52} \approx 2 \cdot 10^{-9}`, not of :math:`10^{-16}`. Sizes are the start plus what they have
grown by, so that of the start counts for ever. The time between two records is a difference: relative to itself its
error is that of log t over the part of t that the step is.

*Integration.* A step keeps directions, sizes and, late, log t to ``rtol`` relative to their own size. Errors of many
steps add up; the flow damps them or, near a saddle, lets them grow. A hundred times ``rtol`` is allowed for a run, and
never less than 1e-8. A margin, being an exponent, is kept to a few hundredths at any size once the data are fitted:
there the error of log L and log t is at most `_EXPONENT`.

*Records.* What happens between two records is known to happen after the one and before the other, no better: monitors
take the end that speaks for the claim.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..problem import Dataset
from ..problem.types import Array
from .trajectory import SHRUNK

if TYPE_CHECKING:
    from .trajectory import Trajectory

_EPS = 2.0**-52
_UNITS = 8.0  # units in the last place that a few operations may cost
_ACCUMULATED = 100.0  # steps' worth of error that a run may have
_LEAST = 1e-8
_ON = 1e-9  # integrators put neurons on hyperplanes only to rounding
_EXPONENT = 0.1

#: What observations say where the bound of a claim is below the error of the run.
TOO_SMALL = "smaller than rounding and the tolerance of the run: cannot be told"


def rounding(size: npt.ArrayLike) -> Any:
    """Absolute error of a number that was computed as a sum or difference of numbers of this size.

    >>> bool(1e-9 < rounding(1e7) < 1e-7), bool(rounding(0.0) < 1e-14)
    (True, True)
    """
    return _UNITS * _EPS * (1.0 + np.abs(size))


def margin_rounding(data: Dataset, neurons: int) -> float:
    """Absolute error of a normalised margin, an inner product over neurons and inputs."""
    return _UNITS * _EPS * (neurons + data.d) * float(data.norms.max())


class Accuracy:
    """Error bounds of a run, record by record where they differ. All are absolute, also those of logarithms.

    >>> from reluflow import Dataset, Network, Problem, flow
    >>> data = Dataset([[2.0, 1.0], [-3.0, -1.0]], [1, -1])
    >>> far = Problem(data, Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-1e7))
    >>> found = flow(far, {"log_time": 20.0}).measures.error
    >>> bool(1e-7 < found.sizes < 2e-7), bool(found.log_time[1] < 1e-13)
    (True, True)
    """

    def __init__(self, run: Trajectory) -> None:
        self.run = run

    @cached_property
    def steps(self) -> float:
        """Of directions, and relative of weights: what integration adds up to."""
        given = self.run.settings.get("rtol", 1e-9)
        return max(_LEAST, _ACCUMULATED * float(given)) if isinstance(given, (int, float)) else _LEAST

    @cached_property
    def kink(self) -> float:
        """Of the cosine of a neuron that slides on the hyperplane of a sample: it is held there step by step."""
        return max(_ON, self.steps / _ACCUMULATED)

    @cached_property
    def sizes(self) -> float:
        """Of ``log |w_j|`` and ``log |a_j|``, at any record."""
        logs = np.concatenate([self.run.log_norms, self.run.log_outs])
        return self.steps + float(rounding(np.abs(logs[np.isfinite(logs)]).max(initial=0.0)))

    def followed(self, record: int) -> npt.NDArray[np.bool_]:
        """Which neurons have a direction, and still move as the flow says.

        Those that have all but vanished are left as they are; of a w that is rounding beside its a, which the flow
        holds at 0, the direction is noise.
        """
        start, log_w, log_a = self.run.log_norms[0], self.run.log_norms[record], self.run.log_outs[record]
        least = float(start[np.isfinite(start)].min(initial=0.0)) - SHRUNK
        return np.asarray(np.isfinite(log_w) & (log_w > least) & (log_w > log_a + np.log(self.steps)))

    @cached_property
    def _late(self) -> npt.NDArray[np.bool_]:
        """Records of the late phase, in which log t is integrated."""
        begins = [phase.log_start for phase in self.run.phases if phase.name == "late"]
        return np.asarray(self.run.log_time > min(begins, default=np.inf))

    @cached_property
    def log_time(self) -> Array:
        """Of log t, shape (T,)."""
        log_time = np.where(np.isfinite(self.run.log_time), self.run.log_time, 0.0)
        integrated = np.minimum(self.steps * np.abs(log_time), _EXPONENT)
        return np.asarray(rounding(log_time) + np.where(self._late, integrated, 0.0))

    @cached_property
    def log_steps(self) -> Array:
        """Of the log of the time between successive records, shape (T - 1,)."""
        return self.log_elapsed(self.run.log_time[:-1], self.log_time[:-1], slice(1, None))

    def since(self, record: int) -> Array:
        """Of the log of the time from a record to itself and to each later one, shape (T - record,)."""
        return self.log_elapsed(self.run.log_time[record], self.log_time[record], slice(record, None))

    def log_elapsed(self, before: Any, error: Any, records: slice) -> Array:
        """Of the log of the time from ``before``, a log time with its error, to some records; inf where it is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            part = -np.expm1(before - self.run.log_time[records])  # of t that has elapsed
            return np.asarray(np.where(part > 0, (self.log_time[records] + error) / part, np.inf))

    @cached_property
    def margins(self) -> Array:
        """Of every q_i, shape (T,): of the sum of its terms, which may cancel."""
        run = self.run
        with np.errstate(over="ignore", invalid="ignore"):
            both = run.log_norms + run.log_outs
            terms = np.exp(np.logaddexp.reduce(np.where(np.isnan(both), -np.inf, both), axis=1))
            terms = terms * float(run.problem.data.norms.max())
        # 0 times an infinite size is nothing
        error = np.where(self._late, np.minimum(2 * self.sizes * terms, _EXPONENT), 2 * self.sizes * terms)
        return np.asarray(error + rounding(terms) - rounding(0.0))

    @cached_property
    def log_loss(self) -> Array:
        """Of log L, shape (T,): no sample moves it by more than its margin moves."""
        return np.asarray(self.margins + rounding(self.run.log_loss))

    @cached_property
    def smoothed_margin(self) -> Array:
        """Of the smoothed margin, shape (T,), where it is positive."""
        run = self.run
        with np.errstate(over="ignore", invalid="ignore"):
            scale = np.exp(-(1 if run.problem.train == "first" else 2) * run.log_norm)
            # dq = dlog L l/g, and l/g <= 2 log 2 for q >= 0
            return np.asarray(1.4 * self.log_loss * scale + 2 * self.sizes * np.abs(run.measures.smoothed_margin))
