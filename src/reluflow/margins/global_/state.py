"""What the search for the best margin of any network keeps, in parts; each is changed by its own methods only.

All of it is in units of the smallest norm of a sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...problem.precision import EPS, TINY
from ...problem.types import Array, Flags, Index
from .inner import Gain, exact_gain
from .master import Columns, Point, Rows

#: Part of the patterns allowed that one proof may take.
_PROOF = 0.1
_SPANNED = 1e-14  # singular values, relative to the largest, from which samples span a direction
_USED = 1e-8  # norm, of all neurons together 1, from which a solution uses a neuron
_NEGATIVE = -1e-13  # how far below 0 rounding brings a weight when it is made orthogonal to E
_ROUNDING = 64 * EPS  # error of the bounds, relative to the terms they are sums of
_EXCUSED = 1e-6  # gap, relative to the bound, that rounding excuses at most


@dataclass(frozen=True, eq=False)
class Samples:
    """The game: unit points, norms relative to the smallest, labels, directions E, slope and output signs."""

    unit: Array
    rho: Array
    y: Array
    E: Array
    slope: float
    signs: tuple[float, ...]
    reference: float
    shortest: int

    @classmethod
    def of(cls, X: Array, y: Array, slope: float, signs: tuple[float, ...], E: Array) -> Samples:
        """Scale the points to norm 1."""
        norms = np.linalg.norm(X, axis=1)
        reference, shortest = float(norms.min()), int(np.argmin(norms))
        return cls(X / norms[:, None], norms / reference, y, E / norms[:, None], slope, signs, reference, shortest)

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def d(self) -> int:
        """Dimension."""
        return int(self.unit.shape[1])


class Budget:
    """How many activation patterns may still be looked at, in all and for one proof."""

    def __init__(self, patterns: int) -> None:
        self.left, self._one_proof = patterns, int(_PROOF * patterns)

    @property
    def of_a_proof(self) -> int:
        """Patterns the next proof may take."""
        return max(min(self._one_proof, self.left), 0)

    def spend(self, patterns: int) -> None:
        """Count patterns looked at."""
        self.left -= patterns

    def use_up(self) -> None:
        """Leave nothing: proofs then stop at the bound before any branching."""
        self.left = 0

    def save(self) -> None:
        """Allow later proofs less: this one was so far off that as many patterns again would not help."""
        self._one_proof //= 10


class Lower:
    """The network of the largest margin so far, and this margin: a lower bound."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self.value, self.V, self.s = 0.0, np.zeros((0, samples.d)), np.zeros(0)

    def consider(self, V: Array, s: Array, e: Array) -> Array:
        """Margins of a primal point at all samples, relative to its norm; keeps it if it is the best so far."""
        data = self._samples
        size = np.linalg.norm(V, axis=1)
        V, s = V[size > 0], s[size > 0]
        z = data.unit @ V.T
        terms = 0.5 * data.y * (np.where(z > 0, z, data.slope * z) @ s) + data.E @ e
        q = np.asarray(data.rho * terms / max(float(size.sum()), TINY))
        if q.min() > self.value:
            self.value, self.V, self.s = float(q.min()), V, s
        return q


class Upper:
    """The smallest upper bound so far, the weights of the samples that prove it, and how."""

    def __init__(self, samples: Samples) -> None:
        self.value, self.kappa, self.cells, self.method = np.inf, np.zeros(samples.n), 0, "search"
        if not samples.E.size:  # the shortest sample alone bounds the margin by half its norm
            self.value, self.kappa[samples.shortest] = 0.5, 1.0

    def offer(self, value: float, kappa: Array, where: Index, cells: int, method: str) -> None:
        """Take a bound proved by weights ``kappa`` of the samples ``where``, if it is smaller."""
        if value < self.value:
            self.value, self.cells, self.method = value, cells, method
            self.kappa = np.zeros(len(self.kappa))
            self.kappa[where] = kappa


class Work:
    """The samples in the small programs."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        n, d = samples.n, samples.d
        self.index: Index = np.unique(np.linspace(0, n - 1, min(n, max(100, 2 * d))).astype(np.intp))

    def frame(self) -> tuple[Rows, Array]:
        """Put the working samples into coordinates of their span; also its basis (columns)."""
        data, index = self._samples, self.index
        points = data.unit[index]
        _, size, right = np.linalg.svd(points, full_matrices=False)
        basis = right[: int((size > _SPANNED * size[0]).sum())].T
        return Rows(points @ basis, data.y[index], data.rho[index], data.E[index]), basis

    def set(self, index: Index) -> None:
        """Work with these samples only."""
        self.index = index

    def set_all(self) -> Rows:
        """Work with all samples, in their own coordinates."""
        data = self._samples
        self.index = np.arange(data.n)
        return Rows(data.unit, data.y, data.rho, data.E)

    def add_short(self, q: Array, least: float) -> int:
        """Take in the samples whose margin falls most short of ``least``; how many."""
        short = np.setdiff1d(np.flatnonzero(q < least), self.index)
        worst = short[np.argsort(q[short], kind="stable")[: max(20, len(self.index) // 2)]]
        self.index = np.union1d(self.index, worst)
        return int(worst.size)


class Neurons:
    """The neurons in the small programs: directions, output signs, patterns, and the kinks to be modelled."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self.U, self.s = np.zeros((0, samples.d)), np.zeros(0)
        # Kept: recomputed, a sample on the hyperplane could change sides.
        self._on: Flags = np.zeros((0, samples.n), dtype=bool)
        self._idle: Index = np.zeros(0, dtype=np.intp)  # solutions in a row that did not use it
        self._kinks: list[set[int]] = []

    def add(self, U: Array, sign: float, index: Index, fixed: bool = False) -> int:
        """Take in directions whose pattern on the samples ``index`` of their own sign (``fixed``: on all) is new."""
        data = self._samples
        most = max(20, len(index) // 4) if fixed else max(5, min(len(index) // 4, 300 // U.shape[1]))
        own = index if fixed else index[data.y[index] == sign]
        known = {row.tobytes() for row in self._on[self.s == sign][:, own]}
        fresh: list[int] = []
        on = U @ data.unit.T > 0
        for k, pattern in enumerate(on[:, own]):
            if len(fresh) < most and (key := pattern.tobytes()) not in known:
                known.add(key)
                fresh.append(k)
        self.U, self.s = np.vstack([self.U, U[fresh]]), np.append(self.s, [sign] * len(fresh))
        self._on, self._idle = np.vstack([self._on, on[fresh]]), np.append(self._idle, [0] * len(fresh))
        self._kinks += [set() for _ in fresh]
        return len(fresh)

    def keep(self, stay: Flags) -> None:
        """Forget all other neurons."""
        self.U, self.s, self._on, self._idle = self.U[stay], self.s[stay], self._on[stay], self._idle[stay]
        self._kinks = [k for k, here in zip(self._kinks, stay, strict=True) if here]

    def drop_idle(self, V: Array) -> None:
        """Forget neurons that the last two solutions did not use; V is the last one."""
        self._idle[: len(V)] = np.where(np.linalg.norm(V, axis=1) < _USED, self._idle[: len(V)] + 1, 0)
        if (self._idle < 2).sum() > 20:
            self.keep(self._idle < 2)

    def columns(self, index: Index, width: int) -> Columns:
        """Prepare the neurons of the cone program; the hyperplanes nearest to each get their kink modelled."""
        data = self._samples
        z = self.U @ data.unit[index].T
        foreign = self.s[:, None] * data.y[index] < 0
        kink = np.zeros(z.shape, dtype=bool)
        if data.slope < 1:
            near = np.where(foreign, np.abs(z), np.inf)
            count = min(2 * width + 2, near.shape[1])
            np.put_along_axis(kink, np.argpartition(near, count - 1, axis=1)[:, :count], True, axis=1)
            for j, extra in enumerate(self._kinks):
                if extra:
                    kink[j] |= np.isin(index, list(extra))
            kink &= foreign
        return Columns(self._on[:, index], self.s, kink)

    def model_crossed(self, cols: Columns, point: Point, rows: Rows, index: Index, least: float) -> int:
        """Model the kinks that a solution has crossed although they were taken for straight; how many."""
        if self._samples.slope == 1:
            return 0
        crossed = (point.V @ rows.X.T > 0) != cols.on
        crossed &= (cols.s[:, None] * rows.y < 0) & ~cols.kink & (np.linalg.norm(point.V, axis=1) > least)[:, None]
        for j, i in zip(*np.nonzero(crossed), strict=True):
            self._kinks[j].add(int(index[i]))
        return int(crossed.sum())


class Search:
    """The parts together: what joins two of them is done here.

    Attributes
    ----------
    rounds : int
        Of the search so far.
    guess : float or None
        Of the margin: the unit in which it is best computed.
    coarse : pair of ndarray
        Vectors and output signs of the best network of fixed directions.
    last : tuple or None
        Samples, rows and weights of the last program: what a bound can be proved from at once.
    decide : float or None
        Nothing more is asked than on which side of it the margin is.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        slope: float,
        signs: tuple[float, ...],
        E: Array,
        budget: int,
        decide: float | None = None,
    ) -> None:
        self.samples = samples = Samples.of(X, y, slope, signs, E)
        self.decide = decide
        self.budget = Budget(budget)
        self.lower, self.upper = Lower(samples), Upper(samples)
        self.work, self.neurons = Work(samples), Neurons(samples)
        self.rng = np.random.default_rng(0)
        self.rounds = 0
        self.guess: float | None = None
        self.coarse = self.lower.V, self.lower.s
        self.last: tuple[npt.NDArray[np.intp], Rows, Array] | None = None

    def add(self, U: Array, sign: float, fixed: bool = False) -> int:
        """Take in new neurons, as `Neurons.add`, at the cost of a pattern each."""
        fresh = self.neurons.add(U, sign, self.work.index, fixed)
        self.budget.spend(fresh)
        return fresh

    def starts(self, rows: Rows, basis: Array) -> Array:
        """Where the search for neurons begins: at those there are, at samples, and anywhere."""
        count = int(np.clip(3e7 / rows.X.size, 10, 100))
        pool = rows.X[self.rng.permutation(len(rows.X))[:count]]
        anywhere = self.rng.normal(size=(count, basis.shape[1]))
        return np.vstack([self.neurons.U[-count:] @ basis, pool, -pool, anywhere])

    def prove(self, rows: Rows, kappa: Array, method: str = "") -> list[Gain] | None:
        """Bound the margin from above by the weights kappa of the working samples; None where it cannot be done."""
        if rows.E.shape[1]:
            kappa = kappa - rows.E @ np.linalg.lstsq(rows.E, kappa, rcond=None)[0]
            if kappa.min(initial=0.0) < _NEGATIVE:
                return None
            kappa = np.maximum(kappa, 0.0)
        if not kappa.any():
            return None
        kappa = kappa / (kappa @ (1 / rows.rho))
        found: list[Gain] = []
        allowed = self.budget.of_a_proof
        for sign in self.samples.signs:
            floor = max([self.lower.value, *(float(g.values.max(initial=0.0)) for g in found)])
            gain = exact_gain(rows.X * kappa[:, None], rows.y, sign, self.samples.slope, floor, allowed)
            self.budget.spend(gain.cells)
            found.append(gain)
        value = max(g.upper for g in found) + 2 * EPS * float(kappa.sum())  # the rounding of the sums in it
        given_up = any(g.method == "branch and bound" and g.cells >= allowed // 5 for g in found)
        if given_up and value > 1.1 * self.lower.value:
            self.budget.save()
        cells, how = sum(g.cells for g in found), method or max(found, key=lambda g: g.cells).method
        self.upper.offer(value, kappa, self.work.index, cells, how)
        return found

    def decided(self) -> bool:
        """Whether it was asked on which side of a number the margin is, and the bounds tell."""
        if self.decide is None:
            return False
        unit = self.samples.reference  # multiplied as in the answer, which must say the same to the last bit
        return self.upper.value * unit < self.decide or self.lower.value * unit >= self.decide

    def closed(self, tol: float) -> bool:
        """Whether the bounds agree, relative to the margin or as far as double precision can tell."""
        lower, upper = self.lower.value, self.upper.value
        held = self.upper.kappa > 0
        noise = _ROUNDING * (float(self.upper.kappa.sum()) + float(self.samples.rho[held].max(initial=0.0)))
        return upper - lower <= max(tol * upper, min(noise, _EXCUSED * upper)) or (lower == 0 and upper <= noise)
