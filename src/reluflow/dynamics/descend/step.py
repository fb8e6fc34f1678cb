r"""One iteration of gradient descent, stochastic gradient descent or Adam, in buffers that are made once.

For both layers the update is
:math:`w_j \leftarrow w_j + \eta a_j D_j`, :math:`a_j \leftarrow a_j + \eta w_j \cdot D_j` with
:math:`D_j = r \sum_i g_i y_i \phi'(w_j \cdot x_i) x_i`. The products X W^T and D are the only large ones, since
:math:`\sum_i g_i y_i \phi(w_j \cdot x_i) = w_j \cdot D_j`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...problem import Problem
from .state import Floats, State

Method = Literal["gd", "sgd", "adam"]
Schedule = Literal["fixed", "loss-scaled", "loss-log-scaled"]
DType = Literal["float64", "float32"]


@dataclass(frozen=True)
class Plan:
    """Everything that determines the iterates, apart from the problem."""

    method: Method
    step: float
    schedule: Schedule
    steps: int
    batch: int | None
    seed: int
    subgradient: float
    dtype: DType
    betas: tuple[float, float]
    epsilon: float


def order(n: int, seed: int, epoch: int) -> npt.NDArray[np.intp]:
    """Order in which an epoch visits the samples; it depends on nothing else, so a run can begin anywhere."""
    return np.random.default_rng((seed, epoch)).permutation(n).astype(np.intp)


def log_step(plan: Plan, log_loss: float) -> float:
    """Log of the step at a loss: eta, eta/L, or eta/(L (1 + log(1/L)+))."""
    if plan.schedule == "fixed":
        return math.log(plan.step)
    more = math.log1p(max(0.0, -log_loss)) if plan.schedule == "loss-log-scaled" else 0.0
    return math.log(plan.step) - log_loss - more


class Stepper:
    """Buffers of a run, and the step that uses them."""

    def __init__(self, problem: Problem, plan: Plan, state: State, measure: bool) -> None:
        dtype = np.dtype(plan.dtype)
        self.problem, self.plan, self.state = problem, plan, state
        self.measure = measure
        X = problem.data.X if state.used.all() else np.ascontiguousarray(problem.data.X[:, state.used])
        self.X = X.astype(dtype, copy=False)
        self.y = problem.data.y.astype(dtype, copy=False)
        n, p = problem.data.n, problem.net.p
        m = plan.batch or n
        self.P = np.empty(p * m, dtype)
        self.D = np.empty_like(state.W)
        self.G = np.empty_like(state.a)
        self.q = np.empty(m, dtype)
        self.slope, self.kink = dtype.type(problem.net.slope), dtype.type(plan.subgradient)
        self.batches = -(-n // m)
        self._epoch = -1
        self.fused = plan.batch == 1 and plan.method == "sgd" and plan.schedule == "fixed"
        if plan.batch is None:
            # BLAS multiplies by this a quarter faster than by a transposed view: one more copy of the data, made once.
            self.XT = np.ascontiguousarray(self.X.T)
        else:
            self.Xb, self.yb = np.empty((m, self.X.shape[1]), dtype), np.empty(m, dtype)
            self.at = np.empty(self.X.shape[1] + 1, np.intp)

    def advance(self, until_log_loss: float = -math.inf, most: int = 1) -> float:
        """Take one step and return the log of the loss before it, or nan where it was not asked for.

        No step is taken where that loss is not above ``until_log_loss``. Where samples come one by one it may be up to
        ``most`` steps, not beyond the end of an epoch.
        """
        state, plan = self.state, self.plan
        if self.fused and not state.exponent.any():
            self._visit(most)
            return math.nan
        X, y = (self.X, self.y) if plan.batch is None else self._batch()
        P = self.P[: len(state.a) * len(y)].reshape(-1, len(y))
        np.matmul(state.W, self.XT if plan.batch is None else X.T, out=P)
        weight = 1.0 / len(y) if self.problem.reduction == "mean" else 1.0
        if plan.schedule == "fixed":
            log_loss, log_size = self._fixed(P, y, weight), math.log(plan.step)
        else:
            log_loss = self._scaled(P, y, weight)
            log_size = log_step(plan, log_loss)
        if log_loss <= until_log_loss:
            return log_loss
        np.matmul(P, X, out=self.D)
        self._update()
        state.rescale()
        state.iteration += 1
        if plan.schedule == "fixed":
            state.log_time = math.log(state.iteration) + log_size
        else:
            state.log_time = float(np.logaddexp(state.log_time, log_size))
        return log_loss

    def _visit(self, most: int) -> None:
        """Take steps with one sample each, in one compiled pass; W stays transposed, which nobody else can tell."""
        from .kernel import visit

        state, problem = self.state, self.problem
        state.W = np.asfortranarray(state.W)
        chosen = self._next(most)
        exponential, both = problem.loss.name == "exponential", problem.train == "both"
        how = (self.slope, self.kink, self.plan.step, exponential, both)
        visit(state.W.T, state.a, self.X, self.y, chosen, *how, self.P, self.G, self.at)
        state.iteration += chosen.size
        state.log_time = math.log(state.iteration) + math.log(self.plan.step)

    def _next(self, most: int) -> npt.NDArray[np.intp]:
        """Return the samples of the next so many batches, as far as the epoch has them."""
        assert self.plan.batch is not None
        epoch, k = divmod(self.state.iteration, self.batches)
        if epoch != self._epoch:
            self._order, self._epoch = order(self.problem.data.n, self.plan.seed, epoch), epoch
        return self._order[k * self.plan.batch : (k + most) * self.plan.batch]

    def _batch(self) -> tuple[Floats, Floats]:
        index = self._next(1)
        X, y = self.Xb[: index.size], self.yb[: index.size]
        # With mode="raise" NumPy would fill a buffer of its own first.
        np.take(self.X, index, axis=0, out=X, mode="clip")
        np.take(self.y, index, out=y, mode="clip")
        return X, y

    def _fixed(self, P: Floats, y: Floats, weight: float) -> float:
        from .kernel import both_ways

        rate = weight if self.plan.method == "adam" else weight * self.plan.step
        exponential = self.problem.loss.name == "exponential"
        q = self.q[: len(y)]
        total = both_ways(P, self.state.outs, y, self.slope, self.kink, rate, exponential, self.measure, q)
        if not self.measure:
            return math.nan
        return math.log(weight * total) if total > 0 else -math.inf

    def _scaled(self, P: Floats, y: Floats, weight: float) -> float:
        from .kernel import backward, forward

        q, loss = self.q[: len(y)], self.problem.loss
        forward(P, self.state.outs, y, self.slope, q)
        margins = q.astype(np.float64)
        log_loss = float(np.logaddexp.reduce(loss.log_value(margins)) + math.log(weight))
        if log_loss == -math.inf:
            return log_loss
        # The force of a sample is at most its loss, or 1: divided by the whole loss it is an ordinary number.
        log_rate = log_step(self.plan, log_loss) + math.log(weight)
        q[:] = y * np.exp(loss.log_force(margins) + log_rate)
        backward(P, q, self.slope, self.kink)
        return log_loss

    def _update(self) -> None:
        from .kernel import adam, ascend

        state, both = self.state, self.problem.train == "both"
        if self.plan.method != "adam":
            ascend(state.W, state.a, self.D, both)
            return
        t, number = state.iteration + 1, state.W.dtype.type
        beta1, beta2 = self.plan.betas
        numbers = [
            number(x)
            for x in (
                self.plan.step / (1 - beta1**t),
                beta1,
                beta2,
                math.sqrt(1 - beta2**t),
                self.plan.epsilon,
            )
        ]
        np.einsum("jk,jk->j", state.W, self.D, out=self.G)
        np.multiply(self.D, state.a[:, None], out=self.D)
        layers = [(state.W, self.D), (state.a, self.G)]
        for k, (weights, gradient) in enumerate(layers[: 2 if both else 1]):
            first, second = state.moments[2 * k : 2 * k + 2]
            adam(weights.reshape(-1), gradient.reshape(-1), first.reshape(-1), second.reshape(-1), *numbers)
