"""What is measured along a run: every curve in one place, computed once and kept with the run."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..margins import MarginSolution, clusters, kkt, stable_rank
from ..problem import Dataset, ProblemError, Stopped, Undecided, check_time
from ..problem.types import Array, Flags, Index
from .accuracy import Accuracy
from .snapshot import Agreement, agreement

if TYPE_CHECKING:
    from .trajectory import Trajectory

_UNSETTLED = 0.1  # how far, in total variation, the shares of a class may be from those of its limit
EARLIEST = 5.0  # log time before which nothing is said about a limit
_CLEARLY = 2.0  # margins from which a sample counts as clearly fitted
_GOING = "going through the run"


class Decrease(NamedTuple):
    """The largest decrease of ``s_j y_i w_j.x_i`` between two records, relative to ``|w_j||x_i|``."""

    size: float
    record: int
    neuron: int
    sample: int


class Scan(NamedTuple):
    """Where the neurons are at every record, each array of shape (T, p), and the largest decrease of an activation."""

    plus: Flags
    minus: Flags
    still: Flags
    clear: Flags
    astray: Flags
    felt: Flags
    worst: Decrease


class Measures:
    r"""Every curve of a run, each computed once and only when asked for; ``run.measures`` is the one view of a run.

    Here T is the number of records, n of samples, p of neurons; S+ and S- are the cones of vectors that are active on
    exactly the positive, or the negative, samples (ML-D1), and :math:`s_j` is the sign of an output weight at the
    start. What is on a hyperplane, and what is outside a cone, is judged by the error of the run. The arrays are
    shared: copy one before writing to it.

    >>> from reluflow import Dataset, Network, Problem, flow
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> run = flow(Problem(data, Network.balanced([[1, 0.1], [-1, 1.2]], [1, -1], log_scale=-30)), {"log_time": 50.0})
    >>> seen = run.measures
    >>> seen is run.measures, seen.home[-1], seen.first_fitted < len(run)
    (True, array([ True,  True]), True)
    """

    def __init__(self, run: Trajectory) -> None:
        self.run = run

    @property
    def data(self) -> Dataset:
        """The samples."""
        return self.run.problem.data

    @cached_property
    def error(self) -> Accuracy:
        """How accurately the run is known: what is not held against a claim."""
        return Accuracy(self.run)

    @cached_property
    def signs(self) -> Array:
        """Signs of the output weights at the start, shape (p,)."""
        return np.asarray(np.sign(self.run.problem.net.a))

    # -- margins and norms ----------------------------------------------------------------------------

    @cached_property
    def live(self) -> Flags:
        """Where the network is not zero, shape (T,)."""
        return np.asarray(np.isfinite(self.run.log_norm))

    @cached_property
    def margins(self) -> Array:
        """``q_i = y_i f(x_i)``, shape (T, n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([net.margins(self.data) for net in self.run.networks()])

    @cached_property
    def q_min(self) -> Array:
        """The smallest margin, shape (T,)."""
        return np.asarray(self.margins.min(axis=1))

    @cached_property
    def q_abs(self) -> Array:
        """The largest ``|q_i|``, shape (T,)."""
        return np.asarray(np.abs(self.margins).max(axis=1))

    @cached_property
    def normalized_margin(self) -> Array:
        r""":math:`\min_i q_i / |\theta|^H`, shape (T,); H = 2, or 1 for ``train="first"``; nan for a zero network."""
        pairs = zip(self.run.networks(), self.live, strict=True)
        train = self.run.problem.train
        return np.array([net.normalized_margin(self.data, train) if live else np.nan for net, live in pairs])

    @cached_property
    def smoothed_margin(self) -> Array:
        r""":math:`\tilde\gamma = \ell^{-1}(L/r) / |\theta|^H`, shape (T,); -inf where the norm is below every double.

        It never decreases once ``n L < l(0)`` (mean loss), and is below the normalised margin (SBG-P-mono).
        """
        run, problem = self.run, self.run.problem
        top = problem.loss.inverse_log(run.log_loss - np.log(problem.weight))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(top * np.exp(-(1 if problem.train == "first" else 2) * run.log_norm))

    @cached_property
    def smoothed(self) -> Array:
        """The smoothed margin, nan where the network is zero, shape (T,)."""
        return np.where(self.live, self.smoothed_margin, np.nan)

    @cached_property
    def stable_rank(self) -> Array:
        r""":math:`|W|_F^2 / |W|_2^2`, shape (T,); nan for a zero first layer."""
        live = np.asarray(np.isfinite(self.run.log_norms).any(axis=1))
        return np.array([stable_rank(net) if live[k] else np.nan for k, net in enumerate(self.run.networks())])

    @cached_property
    def balance_drift(self) -> Array:
        r"""Largest change of the conserved :math:`a_j^2 - |w_j|^2` so far, relative to the norms there (C-INV1).

        For neuron j at record k: :math:`|\delta_j(k) - \delta_j(0)|` over the largest :math:`a_j^2, |w_j|^2` up to
        there; shape (T,). It says how well a run keeps what the flow keeps exactly; discrete methods do not.
        Zero for ``train="first"``.
        """
        run = self.run
        if run.problem.train == "first":
            return np.zeros(len(run))
        # In units of the largest size so far: when a neuron was that large, the difference was rounded there, and what
        # is lost does not come back as it shrinks.
        top = np.maximum.accumulate(np.maximum(run.log_norms, run.log_outs), axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(under="ignore"):
            now = np.exp(2 * (run.log_outs - top)) - np.exp(2 * (run.log_norms - top))
            start = np.exp(2 * (run.log_outs[0] - top)) - np.exp(2 * (run.log_norms[0] - top))
        return np.asarray(np.abs(now - start).max(axis=1))

    @cached_property
    def cluster_radius(self) -> Array:
        r"""Largest distance of a neuron from the mean of its sign, relative to ``|W|_F``, shape (T,) (SBG-T6.1)."""
        found = np.zeros(len(self.run))
        for k, net in enumerate(self.run.networks()):
            W, a, norm = net.relative("first")
            for group in (W[a > 0], W[a < 0]):
                if len(group):
                    found[k] = max(found[k], np.linalg.norm(group - group.mean(axis=0), axis=1).max() / norm)
        return found

    @cached_property
    def kkt_sine(self) -> Array:
        r"""Sine of the angle between the weights and the direction in which the loss falls, shape (T,).

        Where the direction of a flow converges both become parallel: the limit is a KKT direction. The multipliers are
        those of the run, :math:`\lambda_i \propto g_i`, so this bounds the residual of the best ones, which `residual`
        finds, at a fraction of the work; nan for a zero network and where no sample pulls.
        """
        run, data, found = self.run, self.data, np.full(len(self.run), np.nan)
        both = run.problem.train == "both"
        for k in np.flatnonzero(self.live):
            W, a, norm = run.network(int(k)).relative(run.problem.train)
            log_force = run.problem.loss.log_force(self.margins[k])
            with np.errstate(under="ignore"):
                pull = np.exp(log_force - log_force.max()) * data.y
            D = (np.where(data.X @ W.T > 0, 1.0, run.problem.net.slope) * pull[:, None]).T @ data.X
            fall = np.column_stack([a[:, None] * D, np.einsum("jk,jk->j", W, D)] if both else [a[:, None] * D])
            size = np.linalg.norm(fall)
            if size > 0:
                at = (np.column_stack([W, a]) if both else W) / norm
                fall /= size
                found[k] = np.linalg.norm(at - (at * fall).sum() * fall)
        return found

    @cached_property
    def linear_share(self) -> Array:
        r"""Share of the samples that the network puts on the side where :math:`\sum_j a_j w_j \cdot x` puts them, (T,).

        That vector is the linear part of the function, up to a factor: f(x) - f(-x) is linear.
        """
        found = np.full(len(self.run), np.nan)
        for k in np.flatnonzero(self.live):
            net = self.run.network(int(k))
            W, a, _, _ = net.scaled_weights("first")
            found[k] = (np.sign(net.scaled_outputs(self.data.X)[0]) == np.sign(self.data.X @ (a @ W))).mean()
        return found

    @cached_property
    def log_output(self) -> Array:
        """Log of ``max_i |f(x_i)|``, shape (T,); far below the smallest double if need be."""
        found = np.full(len(self.run), -np.inf)
        for k, net in enumerate(self.run.networks()):
            mantissa, log_factor = net.scaled_outputs(self.data.X)
            with np.errstate(divide="ignore"):
                found[k] = np.log(np.abs(mantissa).max()) + log_factor
        return found

    @cached_property
    def log_steps(self) -> Array:
        """Log of the time between successive records, shape (T - 1,)."""
        t0, t1 = self.run.log_time[:-1], self.run.log_time[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(t1 > t0, t1 + np.log(-np.expm1(t0 - t1)), -np.inf))

    # -- how well the data are fitted -----------------------------------------------------------------

    @cached_property
    def log_class_loss(self) -> Array:
        """Log of the loss of the positive and of the negative samples, shape (T, 2); -inf for an empty class."""
        problem = self.run.problem
        parts = problem.loss.log_value(self.margins) + np.log(problem.weight)
        found = np.full((len(self.run), 2), -np.inf)
        for column, members in enumerate((self.data.positives, self.data.negatives)):
            if members.size:
                found[:, column] = np.logaddexp.reduce(parts[:, members], axis=1)
        return found

    @cached_property
    def _above(self) -> Array:
        """Log of the sum of the losses over ``l(0)``, shape (T,)."""
        # A sample that no neuron sees keeps the loss at l(0) exactly; rounding must not pass for less.
        problem = self.run.problem
        return np.asarray(self.run.log_loss - np.log(problem.weight) - problem.loss.log_value(0.0))

    @cached_property
    def fitted(self) -> Flags:
        """Where the sum of the losses is below ``l(0)``, so that the smoothed margin is positive, shape (T,)."""
        return np.asarray(self._above < -self.error.log_loss)

    @cached_property
    def unfitted(self) -> Flags:
        """Where it is above; neither where the error of the run leaves it open."""
        return np.asarray(self._above > self.error.log_loss)

    @cached_property
    def first_fitted(self) -> int | None:
        """First fitted record."""
        where = np.flatnonzero(self.fitted)
        return int(where[0]) if where.size else None

    def earlier(self, factor: float) -> int | None:
        """Last fitted record at which the smallest margin was below its final value by the factor."""
        found = np.flatnonzero(self.fitted & (self.q_min > 0) & (self.q_min <= self.q_min[-1] / factor))
        return int(found[-1]) if found.size else None

    # -- cones ----------------------------------------------------------------------------------------

    @cached_property
    def scan(self) -> Scan:
        """One pass over the records, so that nothing of size T x p x n is kept."""
        run, data = self.run, self.data
        units, positive, s = data.X / data.norms[:, None], data.y > 0, self.signs
        plus, minus, still, clear, astray, felt = np.zeros((6, len(run), run.p), bool)
        own, error, on = np.outer(s, data.y), self.error.sizes, self.error.kink
        worst, before, log_before = Decrease(0.0, 0, 0, 0), None, None
        for k in range(len(run)):
            check_time(_GOING)
            cosine = run.directions[k] @ units.T
            active = cosine > on
            plus[k] = (active == positive).all(axis=1)
            minus[k] = (active != positive).all(axis=1)
            still[k] = ~active.any(axis=1)
            clear[k] = (cosine < -on).all(axis=1)
            astray[k] = (own * cosine < -error).any(axis=1)
            felt[k] = (cosine > error).any(axis=1)
            log_norm = run.log_norms[k]
            if before is not None and log_before is not None:
                worst = max(worst, _decrease(cosine, before, log_norm, log_before, own, k), key=lambda d: d.size)
            before, log_before = cosine, log_norm
        return Scan(plus, minus, still, clear, astray, felt, worst)

    @property
    def decrease(self) -> Decrease:
        """The largest decrease of an activation that should only grow."""
        return self.scan.worst

    @cached_property
    def dead(self) -> Flags:
        """Which are dead: not those that a record meets just as they cross, when they feel nothing for that moment."""
        still = self.scan.still
        again = np.vstack([still[1:], still[-1:]])
        return np.asarray(still & (self.scan.clear | again))

    @property
    def astray(self) -> Flags:
        """Which are outside the cone of their own sign by more than the error of the run."""
        return self.scan.astray

    @property
    def felt(self) -> Flags:
        """Which feel a sample, by more than the error of the run."""
        return self.scan.felt

    @cached_property
    def loose(self) -> Flags:
        """Which are neither in the cone of their own sign nor dead, by more than the error of the run."""
        return self.astray & self.felt

    @cached_property
    def home(self) -> Flags:
        """Which neurons are in the cone of their own sign, shape (T, p)."""
        return (self.scan.plus & (self.signs > 0)) | (self.scan.minus & (self.signs < 0))

    @cached_property
    def trapped(self) -> Flags:
        """Which are in the cone of their own sign, or dead."""
        return self.home | self.dead

    @cached_property
    def all_trapped(self) -> int | None:
        """First record at which every neuron is trapped."""
        done = np.flatnonzero(self.trapped.all(axis=1))
        return int(done[0]) if done.size else None

    @cached_property
    def log_trapped(self) -> float | None:
        """Log of a time before which not every neuron is trapped, the latest known.

        The last event before the record that shows it, or else the record before.
        """
        done = self.all_trapped
        if done is None or done == 0:
            return None if done is None else float(self.run.log_time[0])
        first, last = self.run.log_time[done - 1], self.run.log_time[done]
        times = self.run.events["log_time"]
        inside = times[(times >= first) & (times <= last)]  # a record may be taken at an event, on the hyperplane
        return float(inside.max() if inside.size else first)

    def members(self, record: int) -> tuple[Flags, Flags]:
        """Which neurons carry the positive and the negative class at a record (dead ones carry nothing)."""
        live = ~self.dead[record]
        plus, minus = self.scan.plus[record], self.scan.minus[record]
        return plus & (self.signs > 0) & live, minus & (self.signs < 0) & live

    @cached_property
    def log_group_norms(self) -> Array:
        """Log of the sum of ``|w_j|^2`` over those who carry each class at the record, shape (T, 2)."""
        found = np.full((len(self.run), 2), -np.inf)
        for k in range(len(self.run)):
            check_time(_GOING)
            for column, group in enumerate(self.members(k)):
                if group.any():
                    found[k, column] = np.logaddexp.reduce(2 * self.run.log_norms[k, group])
        return found

    # -- the late run ---------------------------------------------------------------------------------

    @cached_property
    def late(self) -> Index:
        """Records where every neuron is trapped and every sample of a class with neurons is clearly fitted."""
        if self.all_trapped is None:
            return np.empty(0, np.intp)
        fitted = np.ones(len(self.run), bool)
        for group, members in zip(self.members(-1), (self.data.positives, self.data.negatives), strict=True):
            if group.any() and members.size:
                fitted &= self.margins[:, members].min(axis=1) >= _CLEARLY
        ready = fitted & (np.arange(len(self.run)) >= self.all_trapped) & (self.run.log_time >= EARLIEST)
        open_ = np.flatnonzero(~ready)
        return np.arange(open_[-1] + 1 if open_.size else 0, len(self.run))

    def settled(self, solutions: tuple[MarginSolution | None, MarginSolution | None]) -> float:
        """Log time from which the classes share their loss as they will in the limit (inf: not seen by half the run).

        In the limit the samples of a class weigh like the multipliers of its max-margin vector, which are given (None
        for an empty class); before, limits need not even be approached.
        """
        times = self.run.log_time[self.late]
        far = np.zeros(times.size)
        for members, solution in zip((self.data.positives, self.data.negatives), solutions, strict=True):
            if solution is None:
                continue
            q = self.margins[np.ix_(self.late, members)]
            with np.errstate(under="ignore"):
                weights = np.exp(q.min(axis=1, keepdims=True) - q)
            weights /= weights.sum(axis=1, keepdims=True)
            if solution.degenerate:  # the multipliers are not unique, the support is
                part = 1 - weights[:, np.isin(members, solution.support)].sum(axis=1)
            else:
                part = np.abs(weights - solution.dual[members] / solution.dual.sum()).sum(axis=1) / 2
            far = np.maximum(far, part)
        before = times <= self.run.log_time[-1] / 2
        open_ = np.flatnonzero(before & (far > _UNSETTLED))
        first = int(open_[-1]) + 1 if open_.size else 0
        return float(times[first]) if first < before.sum() else inf

    def residual(self, record: int) -> tuple[float, float] | None:
        """KKT residual and imbalance of the direction at a record; None where that network does not classify all.

        At finite time margins spread like 20/q_min before the loss no longer sees the larger ones, and neurons bound
        for a kink are about 1/q_min away from it.
        """
        q, problem = float(self.q_min[record]), self.run.problem
        if not q > 0:
            return None
        wide, near = min(0.9, 20 / q), min(1e-2, 0.1 / q)
        try:
            found = kkt(self.data, self.run.network(record), problem.train, active_tol=wide, kink_tol=near)
        except Stopped:
            raise
        except (ProblemError, Undecided):
            return None
        return found.residual, found.balance or 0.0

    def output_error(self, target: Array) -> float | None:
        """Largest relative difference of the final outputs at unit norm from ``target``, those of a limit, on the data.

        None for a zero network.
        """
        train = self.run.problem.train
        if not np.isfinite(self.run.final.log_norm(train)):
            return None
        out = self.run.final.normalized_outputs(self.data.X, train)
        return float(np.abs(out - target).max() / np.abs(target).max())

    # -- agreement of the neurons ---------------------------------------------------------------------

    @cached_property
    def agreements(self) -> tuple[Agreement, ...]:
        """Agreement of the neurons at every record (SBG-D6.2, SBG-D6.3)."""
        return tuple(agreement(self.data, net) for net in self.run.networks())

    @cached_property
    def nar(self) -> Flags:
        """Where the neurons of each output sign agree on every sample, shape (T,)."""
        return np.array([one.holds for one in self.agreements])

    @cached_property
    def par(self) -> Flags:
        """Where they do so perfectly."""
        return np.array([one.perfect for one in self.agreements])

    @cached_property
    def in_last(self) -> Flags:
        """Where the neurons are in one agreement region, that of the last record."""
        last = self.agreements[-1]
        same = [
            np.array_equal(one.signs_w, last.signs_w) and np.array_equal(one.signs_u, last.signs_u)
            for one in self.agreements
        ]
        return np.asarray(self.nar & np.array(same))

    @cached_property
    def beta(self) -> Array:
        """How deep they are inside the region, 0 outside, shape (T,)."""
        return np.array([one.beta for one in self.agreements])

    def agreement_entrance(self, perfect: bool = False) -> int | None:
        """First record from which on all are in one and the same agreement region; None if the last is in none.

        With ``perfect`` that region has to be the perfect one.
        """
        return since(self.in_last & self.par if perfect else self.in_last)

    def linear_fraction(self, X: npt.ArrayLike | None = None, sharp: bool = False) -> Array:
        """Share of the points that surely get a linear answer, shape (T,) (SBG-T5.1).

        The points are the training data, or ``X``: test points, say. See `reluflow.margins.clusters` for what it needs.
        """
        points = self.data.X if X is None else np.asarray(X, dtype=np.float64)
        return np.array([clusters(net).in_linear_region(points, sharp).mean() for net in self.run.networks()])

    # -- alignment with given directions --------------------------------------------------------------

    def cosines(self, plus: npt.ArrayLike, minus: npt.ArrayLike) -> Array:
        r"""Cosine of every neuron with ``plus`` where its output weight is positive, with ``minus`` where negative.

        Shape (T, p); nan for a zero neuron or a zero output weight. The signs are those of each record. With the class
        sums :math:`x_\pm` it shows alignment, with the max-margin vectors :math:`w_\pm` of the classes the limit.
        """
        run, targets = self.run, self._units(plus, minus)
        found = np.where(run.signs > 0, run.directions @ targets[0], run.directions @ targets[1])
        return np.where((run.signs != 0) & np.isfinite(run.log_norms), found, np.nan)

    def group_cosines(self, plus: npt.ArrayLike, minus: npt.ArrayLike) -> Array:
        """Cosine of the mean positive neuron with ``plus``, of the mean negative one with ``minus``, shape (T, 2)."""
        run, targets = self.run, self._units(plus, minus)
        found = np.full((len(run), 2), np.nan)
        for k in range(len(run)):
            for side, (sign, target) in enumerate(zip((1, -1), targets, strict=True)):
                live = (run.signs[k] == sign) & np.isfinite(run.log_norms[k])
                if live.any():
                    size = run.log_norms[k, live]
                    with np.errstate(under="ignore"):
                        mean = np.exp(size - size.max()) @ run.directions[k, live]
                    norm = np.linalg.norm(mean)
                    found[k, side] = mean @ target / norm if norm > 0 else np.nan
        return found

    @cached_property
    def group_angles(self) -> Array:
        """Largest angle in degrees between two neurons of one output sign, shape (T, 2): positive, negative.

        nan where fewer than two neurons have that sign.
        """
        run = self.run
        found = np.full((len(run), 2), np.nan)
        for k in range(len(run)):
            for side, sign in enumerate((1, -1)):
                U = run.directions[k, (run.signs[k] == sign) & np.isfinite(run.log_norms[k])]
                if len(U) > 1:
                    # The chord keeps small angles exact, where the cosine has lost them.
                    chord = max(np.linalg.norm(U - u, axis=1).max() for u in U)
                    found[k, side] = np.degrees(2 * np.arcsin(np.minimum(chord / 2, 1.0)))
        return found

    def _units(self, plus: npt.ArrayLike, minus: npt.ArrayLike) -> list[Array]:
        return [_unit(self.data.d, name, vector) for name, vector in (("plus", plus), ("minus", minus))]


def since(flags: Flags) -> int | None:
    """First record from which the flags stay true until the end; None if the last one is false.

    >>> since(np.array([True, False, True, True])), since(np.array([True, False]))
    (2, None)
    """
    if not flags[-1]:
        return None
    false = np.flatnonzero(~flags)
    return int(false[-1]) + 1 if false.size else 0


def left(inside: Flags, outside: Flags) -> Flags:
    """Which neurons were inside at an earlier record and are outside now, shape (T - 1, p)."""
    return np.asarray(np.logical_or.accumulate(inside, axis=0)[:-1] & outside[1:])


def _decrease(now: Array, before: Array, log_now: Array, log_before: Array, own: Array, k: int) -> Decrease:
    top = np.maximum(log_now, log_before)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(under="ignore"):
        change = now * np.exp(log_now - top)[:, None] - before * np.exp(log_before - top)[:, None]
    loss = -own * change
    neuron, sample = divmod(int(np.argmax(loss)), loss.shape[1])
    return Decrease(float(loss[neuron, sample]), k, neuron, sample)


def _unit(d: int, name: str, vector: Any) -> Array:
    v = np.asarray(vector, dtype=np.float64)
    size = np.linalg.norm(v)
    if v.shape != (d,) or not np.isfinite(size) or size == 0:
        raise ProblemError(f"{name} must be a non-zero vector with {d} entries, not {vector!r}.")
    return np.asarray(v / size)
