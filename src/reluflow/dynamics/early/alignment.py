"""The early phase of training, exactly: every neuron alone, event by event."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ...data import takes_data
from ...problem import BudgetExceeded, Interrupted, Network, OutOfTime, Problem, ProblemError
from ...problem import time_limit as within
from ...problem.checks import is_number
from ...problem.show import Shown
from ...problem.types import Array, Signs
from ...problem.words import count
from ...sectors.hyperplanes import surfaces
from ..clock import time_to_angle
from .path import Paths, Snapshot
from .run import FATES, Halt, run, starts

if TYPE_CHECKING:
    import xarray

    from ...sectors import ExtremalDirections

Branch = Literal["regular", "leave"]


class Group(NamedTuple):
    """Neurons with the same output sign and the same final sector."""

    sign: int
    pattern: Signs
    neurons: npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(Shown):
    r"""The early phase of a problem, solved: what `align` returns.

    All times are in the clock of the problem (its loss and reduction).

    Attributes
    ----------
    problem : Problem
    branch : str
        ``"regular"`` or ``"leave"``.
    fates : tuple of str
        What becomes of each neuron.

        * ``aligned``: turns to the force of its final sector and grows for ever;
        * ``sliding``: the same, held on one or several hyperplanes by samples that push from both sides;
        * ``shrinking``: caught on an attracting ray against the force, its norm tends to 0 for ever;
        * ``dead``: no sample is active (slope 0), or it is zero: it never moves again;
        * ``stuck``: on a repelling ray against the force, or where the force vanishes.
    pattern : ndarray of int8, shape (p, n)
        Final sector: the signs of ``w_j . x_i``, 0 on hyperplanes that the neuron stays on.
    signs : ndarray of int8, shape (p,)
        Final sign of the output weight.
    direction : ndarray, shape (p, d)
        Direction that the neuron tends to (zero for a zero neuron).
    log_gain : ndarray, shape (p,)
        ``log |w_j|`` at the last event minus that at the start (nan for a neuron that starts at w = 0).
    growth : ndarray, shape (p,)
        Limit of ``d log|w_j| / dt``: the size of the force, minus it on a ray against the force, 0 for a neuron at
        rest and for ``train="first"`` (where ``|w|`` grows like ``|a| force t``).
    force : ndarray, shape (p,)
        Size of the force in the end, ``r g(0) |sum_i h_i y_i x_i|``.
    last_event : ndarray, shape (p,)
        Time of the last event, 0 if there was none.
    nonunique : ndarray of bool, shape (p,)
        Whether the flow may continue in another way somewhere on the path (or uniqueness could not be established).
    """

    problem: Problem
    branch: Branch
    fates: tuple[str, ...]
    pattern: Signs
    signs: Signs
    direction: Array
    log_gain: Array
    growth: Array
    force: Array
    last_event: Array
    nonunique: npt.NDArray[np.bool_]
    _paths: Paths = field(repr=False)

    # -- the events -----------------------------------------------------------------------------------

    @property
    def p(self) -> int:
        """Number of neurons."""
        return len(self.fates)

    def events(self, neuron: int) -> npt.NDArray[np.void]:
        """Everything that happens to one neuron: fields ``time``, ``sample`` and ``kind``.

        Kinds: ``activate``, ``deactivate``; ``slide``: begins to slide on the hyperplane of the sample; ``touch``:
        comes to lie on it without being held; ``flip`` (sample -1): the output weight changes sign. A neuron that
        starts on a hyperplane counts as inactive there; one that comes to lie on it and feels the sample no more, or
        from now on, has crossed. Every event changes what was told of its sample before.
        """
        j = self._index(neuron)
        return self._paths.events(j, j + 1)[0]

    @cached_property
    def n_events(self) -> npt.NDArray[np.int64]:
        """Number of events of each neuron."""
        return np.bincount(self._paths.events(0, self.p)[1], minlength=self.p)

    @cached_property
    def log_amplitude(self) -> Array:
        """Limit of ``log |w_j(t)| - growth_j t`` (nan for ``train="first"``, where nothing grows exponentially)."""
        run, start, last = self._paths.written, self._paths.start, self._paths.last
        if self._paths.frozen:
            return np.full(self.p, np.nan)
        size = np.hypot(run.along[last], run.perp[last])
        half = np.where(self.growth > 0, (run.out[last] + run.along[last]) / 2, size)
        half = np.where(self.growth == 0, run.perp[last], half)
        against = run.along[last] < 0  # there the sum cancels
        bend = (run.perp[last] ** 2 + start.excess) / np.where(against, 2 * (run.out[last] - run.along[last]), 1.0)
        half = np.where((self.growth > 0) & against, bend, half)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(half) + start.log_unit - self.growth * self.last_event)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Neurons by output sign and final sector, in order of their first member."""
        found: dict[tuple[int, bytes], list[int]] = {}
        for j in range(self.p):
            found.setdefault((int(self.signs[j]), self.pattern[j].tobytes()), []).append(j)
        return tuple(Group(sign, self.pattern[js[0]], np.array(js)) for (sign, _), js in found.items())

    def held(self, neuron: int) -> dict[int, float]:
        """Return the samples on whose hyperplanes the neuron stays, with the slope h in [slope, 1] at each.

        Points on one line share a hyperplane: the same h, or for opposite ones 1 + slope - h.
        """
        run, faces = self._paths.written, self._paths.faces
        j = self._index(neuron)
        at = slice(run.lies[j], run.lies[j + 1])
        slopes = {}
        for k, g in zip(run.lies_on[at], run.lies_g[at], strict=True):
            slope = self.problem.net.slope
            h = g / faces.weights[k] if faces.weights[k] else slope
            for i in sorted(faces.samples[faces.start[k] : faces.start[k + 1]]):
                slopes[int(i)] = float(h if faces.orient[i] > 0 else 1 + slope - h)
        return slopes

    # -- any time -------------------------------------------------------------------------------------

    def directions(self, t: npt.ArrayLike) -> Array:
        """``w_j / |w_j|`` at time t, shape (p, d), or (times, p, d) for an array of times."""
        times, one = _times(t)
        result = self._paths.directions(self._paths.snapshot(times))
        return result[0] if one else result

    def log_norms(self, t: npt.ArrayLike) -> Array:
        """``log |w_j|`` at time t, shape (p,) or (times, p); exact for every t, -inf for a zero neuron."""
        times, one = _times(t)
        result = self._paths.snapshot(times).log_norm
        return result[0] if one else result

    def log_outs(self, t: npt.ArrayLike) -> Array:
        """``log |a_j|`` at time t, shape (p,) or (times, p)."""
        times, one = _times(t)
        result = self._paths.snapshot(times).log_out
        if self._paths.frozen:
            result = np.broadcast_to(self.problem.net.log_outs, result.shape).copy()
        return np.asarray(result[0] if one else result)

    def output_signs(self, t: npt.ArrayLike) -> Signs:
        """Sign of ``a_j`` at time t, shape (p,) or (times, p)."""
        times, one = _times(t)
        result = self._paths.snapshot(times).sign
        return result[0] if one else result

    def network(self, t: float) -> Network:
        """Snapshot at time t, each neuron with its own scale."""
        times, one = _times(t)
        if not one:
            raise ProblemError(f"network needs one time, not {t!r}.")
        return self._shown(self._paths.snapshot(times))

    def _shown(self, shot: Snapshot) -> Network:
        """Return the network of a snapshot at one time."""
        log_a = self.problem.net.log_outs if self._paths.frozen else shot.log_out[0]
        directions = self._paths.directions(shot)[0]
        return Network.from_polar(directions, shot.log_norm[0], log_a, shot.sign[0], self.problem.net.slope)

    def alignment_times(self, angle: float | None = None) -> Array:
        """Time of the last event of each neuron, or from which on it is also within ``angle`` of its `direction`.

        Neurons that never turn there (repelling rays, a force that vanishes) are at their direction already.
        """
        if angle is None:
            return self.last_event.copy()
        if not 0 < angle < np.pi / 2:
            raise ProblemError(f"angle = {angle!r} must lie between 0 and pi/2 (radians).")
        run, start, last = self._paths.written, self._paths.start, self._paths.last
        extra = time_to_angle(
            run.force[last], run.out[last], run.along[last], run.perp[last], start.excess, angle, self._paths.frozen
        )
        turning = np.isin(self.fates, ("aligned", "sliding"))
        return self.last_event + np.where(turning, extra, 0.0) / start.rate

    def valid_until(self, tol: float) -> float:
        """Time up to which ``max_i |q_i|`` stays below ``tol`` at the scale of the problem (inf: for ever).

        Until then the force of every sample is g(0) up to a relative error of about tol, and the true flow follows
        this one. No earlier crossing is missed: between two looks ``|q|`` is bounded, down to one part in 10^6 of tol.
        """
        from .validity import valid_until

        return valid_until(self, tol)

    def to_dict(self, ends: ExtremalDirections | None = None) -> dict[str, Any]:
        """Describe the early phase in plain JSON values; with the extremal directions also which are reached."""
        from ..documents import describe_alignment

        return describe_alignment(self, ends)

    def to_xarray(self) -> xarray.Dataset:
        """Everything as an `xarray.Dataset` (needs the extra ``arrays``).

        Neurons, patterns over the samples, and events are tables of their own: choose variables that belong together
        before ``to_dataframe``, which refuses to write out every combination if these are more than a million.
        """
        from .export import to_xarray

        return to_xarray(self)

    # -- how ------------------------------------------------------------------------------------------

    def _index(self, neuron: int) -> int:
        if isinstance(neuron, bool) or not isinstance(neuron, (int, np.integer)) or not -self.p <= neuron < self.p:
            raise ProblemError(f"there is no neuron {neuron!r}; they are numbered 0 to {self.p - 1}.")
        return int(neuron) % self.p

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.fates.count(f)} {f}" for f in FATES if f in self.fates)
        pieces = int(np.sum(self._paths.written.entry[-1]))
        twofold = int(self.nonunique.sum())
        doubt = f", {twofold} not unique" if twofold else ""
        return (
            f"Alignment of {count(self.p, 'neuron')} on {count(self.problem.data.n, 'sample')}: {counts}{doubt}\n"
            f"  last event at t = {self.last_event.max():.6g}; {count(pieces, 'change')}, "
            f"{count(len(self.groups), 'group')}"
        )


@takes_data()
def align(
    problem: Problem,
    *,
    branch: Branch = "regular",
    subgradient: float | None = None,
    max_events: int | None = None,
    time_limit: float | None = None,
) -> Alignment:
    r"""Solve the early phase exactly: gradient flow in the limit of small initialisation.

    While the network is small every sample pulls with the same force g(0), and each neuron moves alone:

    .. math:: w' = a\, \kappa \sum_i h_i y_i x_i, \qquad a' = \kappa \sum_i y_i \phi(w \cdot x_i), \qquad
              \kappa = r\, g(0),

    with :math:`h_i = 1` for active samples, the slope for inactive ones, and any slope between on the hyperplane
    :math:`w \cdot x_i = 0`. In the clock :math:`d\sigma = |a|\,dt` the path of w is piecewise linear, so the next
    event is a ratio test and the time has a closed form. Data need not be separable, neurons need not be balanced,
    and the scale may be e^-3000: only directions, ratios and logarithms of norms are used.

    On hyperplanes where both sides push inwards the neuron slides; the velocity is the element of least norm of the
    Clarke set, the only one that stays. Where both push outwards there are several solutions: the regular one
    (:math:`\phi'(0)` = slope, and a neuron with no active sample rests) is taken and the neuron is marked
    `nonunique`.

    With ``train="first"`` the output weights are constant and w runs along the same lines with :math:`t = \sigma/|a|`;
    small scale means small w at fixed a, and the whole phase lasts a time proportional to that scale.

    Parameters
    ----------
    problem : Problem
        Or data and how to draw a network, ``align(X, y, width=50)``: see `as_problem`.
    branch : {"regular", "leave"}
        What to do at a ridge: the regular solution, or leave to the active side at once.
    subgradient : float, optional
        A fixed value of :math:`\phi'(0)`. Then solutions in the sense of Caratheodory are asked for, which need not
        exist: refused where a neuron would have to stay on a hyperplane with another slope.
    max_events : int, optional
        Most pieces of path for one neuron, default 1000 + 100 n.
    time_limit : float, optional
        Most seconds to spend.

    Returns
    -------
    Alignment

    Raises
    ------
    BudgetExceeded
        ``max_events`` or the time (`OutOfTime`) was used up, or Ctrl-C was pressed (`Interrupted`); ``partial`` holds
        the `Alignment` so far, with fate ``"unfinished"`` for neurons that are not done.

    Examples
    --------
    >>> from reluflow import Dataset, Network, Problem
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> net = Network.balanced([[-1, 1], [-1, -0.9]], [-1, 1], log_scale=-3000)
    >>> early = align(Problem(data, net, loss="exponential", reduction="sum"))
    >>> early
    Alignment of 2 neurons on 4 samples: 2 aligned
      last event at t = 1.08765; 6 changes, 2 groups
    >>> early.events(0)["time"].round(10), early.events(0)["sample"]
    (array([0.06776724, 0.10663403]), array([1, 3], dtype=int32))
    >>> early.pattern
    array([[-1, -1,  1,  1],
           [ 1,  1, -1, -1]], dtype=int8)
    >>> early.growth
    array([5.31507291, 4.24264069])
    """
    if branch not in ("regular", "leave"):
        raise ProblemError(f"branch = {branch!r} is not known; choose 'regular' or 'leave'.")
    limit = 1000 + 100 * problem.data.n if max_events is None else max_events
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 0:
        raise ProblemError(f"max_events must be a non-negative integer, not {max_events!r}.")
    faces = surfaces(problem.data, problem.net.slope)
    start = starts(problem, faces)
    halt = Halt()
    with within(time_limit):
        written = run(problem, faces, start, branch == "leave", int(limit), halt)
    result = _result(problem, branch, Paths(faces, start, written, problem.net.slope, problem.train == "first"))
    done = result.p - result.fates.count("unfinished")
    kept = f"{done} of {result.p} neurons were followed; what was found so far is kept"
    if halt.why == "interrupt":
        raise Interrupted(f"interrupted in the early phase: {kept}.", result)
    if halt.why and done < result.p:
        raise OutOfTime(f"the time limit ended in the early phase: {kept}, and a larger time limit goes on.", result)
    if done < result.p:
        j = result.fates.index("unfinished")
        raise BudgetExceeded(
            f"neuron {j} was still turning after max_events = {limit} pieces of path, at "
            f"t = {result.last_event[j]:.6g}; what was found so far is kept, and a larger max_events goes on.",
            result,
        )
    if subgradient is not None:
        _check_subgradient(result, subgradient)
    return result


def _result(problem: Problem, branch: Branch, paths: Paths) -> Alignment:
    run, start, data = paths.written, paths.start, problem.data
    last = paths.last
    pattern = paths.faces.pattern(run.sides)
    active = (pattern > 0).any(axis=1)
    moving = run.force[last] > 0
    fate = run.fate.copy()
    nothing = ~start.w.any(axis=1) & (start.sign == 0)
    fate[(fate == FATES.index("stuck")) & ~moving & ((~active & (problem.net.slope == 0)) | nothing)] = FATES.index(
        "dead"
    )
    names = tuple(FATES[f] for f in fate)
    size = np.linalg.norm(run.w, axis=1)
    direction = run.w / np.where(size > 0, size, 1.0)[:, None]
    turning = np.isin(names, ("aligned", "sliding"))
    exact = turning & (pattern != 0).all(axis=1)
    h = np.where(pattern > 0, 1.0, problem.net.slope)
    pull = np.where(exact[:, None], run.sign[last, None] * ((h * data.y) @ data.X), run.c)
    length = np.linalg.norm(pull, axis=1)
    direction[turning] = (pull / np.where(length > 0, length, 1.0)[:, None])[turning]
    speed = problem.speed * paths.faces.unit
    force = np.where(exact, problem.speed * length, speed * run.force[last])
    growth = np.where(turning, force, np.where(moving, -force, 0.0))
    saddle = ~turning & moving & (run.perp[last] > 0)  # |a| < |w|, and a tends to 0: only what is orthogonal to c stays
    if saddle.any():
        growth[saddle] = 0.0
        at = last[saddle]
        left = run.w[saddle] - (run.along[at] / run.force[at])[:, None] * run.c[saddle]
        direction[saddle] = left / np.linalg.norm(left, axis=1, keepdims=True)
    if paths.frozen:
        growth = np.zeros_like(growth)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.log(size / np.linalg.norm(start.w, axis=1))
    gain[~start.w.any(axis=1)] = np.nan
    for array in (pattern, direction, gain, growth, force):
        array.setflags(write=False)
    return Alignment(
        problem,
        branch,
        names,
        pattern,
        run.sign[last].astype(np.int8),
        direction,
        gain,
        growth,
        force,
        run.tau[last] / start.rate,
        run.nonunique,
        paths,
    )


def _check_subgradient(early: Alignment, value: float) -> None:
    """Refuse a fixed phi'(0) where a neuron stays on a hyperplane with another slope (EX-E3)."""
    if not is_number(value) or not 0 <= value <= 1:
        raise ProblemError(f"subgradient = {value!r}: phi'(0) is one number in [0, 1].")
    for j in range(early.p):
        for time, sample, slope in early._paths.stays(j):
            if abs(slope - value) > 1e-9:
                raise ProblemError(
                    f"no solution with phi'(0) = {value:g}: from t = {time:.6g} on neuron {j} stays on the hyperplane "
                    f"of sample {sample}, where the velocities of both sides point back to it and only the slope "
                    f"{slope:.6g} keeps it there; with {value:g} it would have to leave to a side that sends it back. "
                    "Leave subgradient at None for the solution in the sense of Clarke"
                    + ("; the neuron may also leave: branch='leave'." if early.nonunique[j] else ".")
                )


def _times(t: npt.ArrayLike) -> tuple[Array, bool]:
    times = np.asarray(t, dtype=np.float64)
    if times.ndim > 1 or not (np.isfinite(times) & (times >= 0)).all():
        raise ProblemError(f"times must be finite and not negative, one or a list of them, not {t!r}.")
    return np.atleast_1d(times), times.ndim == 0
