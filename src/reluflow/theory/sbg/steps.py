"""Step-by-step inequalities of gradient descent with a frozen second layer (SBG-T4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...dynamics import Trajectory
from ...problem.types import Array

_TOL = 1e-9
_ALIGNED = 1e-6


@dataclass(frozen=True)
class Steps:
    """What the consecutive records of a discrete run show.

    Attributes
    ----------
    pairs : int
        Pairs of records that are one step apart.
    norm, overlap : float
        Largest violation of (i) and of (ii), relative to the size of the terms; at most rounding if they hold.
    where : int
        Record of the worst violation.
    """

    pairs: int
    norm: float
    overlap: float
    where: int


def inequalities(run: Trajectory, w_svm: Array, v: float, step: float, single: bool) -> Steps:
    r"""Evaluate (i) and (ii) of SBG-T4.1 at every pair of records that are one step apart.

    With weights c_i of the samples in the step (one sample for SGD, 1/n each for full batches), :math:`g_i` the forces:

    (i) :math:`|W_t|^2 \le |W_{t-1}|^2 + 2\eta \sum c_i g_i q_i + 2 k \eta^2 v^2 R_x^2 (\sum c_i g_i)^2`,
    (ii) :math:`F_t \ge F_{t-1} + 2 k \eta v \alpha \sum c_i g_i`,

    where :math:`F = \sum_j \mathrm{sgn}(a_j) w_j \cdot w_{svm}`.

    ``single``: batches of one sample; which one a step used is read off its direction. Otherwise full batches.
    """
    data, W, times = run.problem.data, run.W, run.time
    unit = data.X / data.norms[:, None]
    k, radius, alpha = run.p // 2, float(data.norms.max()), run.problem.net.slope
    eta = step if single else step * run.problem.weight * data.n  # a sum over all samples moves n times as far
    worst, where, count, overlap_worst = 0.0, 0, 0, 0.0
    for t in range(len(run) - 1):
        if abs(times[t + 1] - times[t] - step) > 1e-6 * step:
            continue
        count += 1
        q = run.network(t).margins(data)
        g = run.problem.loss.force(q)
        c = _candidates(W[t + 1] - W[t], unit) if single else np.full((1, data.n), 1.0 / data.n)
        pull, work = c @ g, c @ (g * q)  # one entry a candidate
        before, after = (float(np.square(w).sum()) for w in (W[t], W[t + 1]))
        allowed = before + 2 * eta * work + 2 * k * (eta * v * radius * pull) ** 2
        norm = (after - allowed) / (before + after)
        flow = [float(run.signs[0] @ (w @ w_svm)) for w in (W[t], W[t + 1])]
        scale = np.abs(flow).sum() + 2 * k * eta * v * alpha * pull
        overlap = (flow[0] + 2 * k * eta * v * alpha * pull - flow[1]) / scale
        best = int(np.argmin(np.maximum(norm, overlap)))
        if max(norm[best], overlap[best]) > max(worst, overlap_worst):
            where = t + 1
        worst, overlap_worst = max(worst, float(norm[best])), max(overlap_worst, float(overlap[best]))
    return Steps(count, worst, overlap_worst, where)


def holds(found: Steps) -> bool:
    """Whether both inequalities hold up to rounding."""
    return max(found.norm, found.overlap) <= _TOL


def _candidates(change: Array, unit: Array) -> Array:
    """Rows of weights, each with one sample that may explain a change of the first layer; all where none stands out."""
    size = float(np.linalg.norm(change))
    along = np.linalg.norm(change @ unit.T, axis=0)
    likely = np.flatnonzero(along >= (1 - _ALIGNED) * size) if size > 0 else np.empty(0, dtype=np.intp)
    return np.eye(len(unit))[likely if likely.size else slice(None)]
