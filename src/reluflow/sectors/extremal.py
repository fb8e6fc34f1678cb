r"""Where neurons go: the strict local extrema of G on the unit sphere.

Four ways, tried in this order (maxima only; minima are the maxima for the labels exchanged):

1. **Closed form** for data whose classes point away from each other, any n and d (PL-L2, PL-L2', LL-G.2). At an
   extremal direction u some :math:`k = \sum_i h_i y_i x_i`, h_i a slope of sample i at u, equals C u with C = G(u).
   Slope > 0: let all such k have :math:`k \cdot y_j x_j > 0` for all j (LL-A.2). C > 0 puts u in the sector y, where k
   is one vector. C < 0 puts u in the sector -y, off all hyperplanes, where maxima have C > 0; C = 0 is impossible.
   Slope 0, orthogonally separable: now :math:`k \cdot y_j x_j \ge 0`, and > 0 for all j of a class with an active
   sample. C > 0: no negative sample is active, hence all positive ones are; a negative sample j on its hyperplane has
   :math:`0 = k \cdot y_j x_j \ge h_j |x_j|^2`, so k is the class sum. C < 0: all negative samples are active, so none
   is on its hyperplane and G does not fall in every direction. C = 0: nothing is active, and along x_k or -x_k of a
   sample k on its hyperplane G does not fall.
2. **Sweep** of the circle in the plane.
3. **Enumeration.** C > 0: freeze the convex part. For any slopes h_i of the positive samples at u,
   :math:`H(w) = \sum_{+} h_i x_i \cdot w - \sum_{-} \phi(w \cdot x_i)` lies below G and touches it at u. So u is a
   local maximum of H too, and, H being concave and positively homogeneous with H(u) > 0, *the* maximum of H on the
   ball: the minimum-norm point of a zonotope. One such problem for each cell of the arrangement of the **positive**
   samples therefore meets every maximum. C <= 0: then the negative samples on their hyperplane span :math:`u^\perp`
   (else G would not fall in every direction), so u is orthogonal to d - 1 independent negative samples: all these
   rays are tried.
4. **Ascent** from random starts where that is too much work: repeat the step H of 3 with the slopes of the present
   point. G rises in every step and there are finitely many slopes. It finds only maxima with C > 0, and nothing
   proves that there are no others.

What 3 and 4 propose is then decided in integers, sector by sector (``strict.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb
from typing import Literal, overload

import numpy as np

from ..problem import Dataset, ProblemError, check_time, require_dataset
from ..problem.network import check_slope
from ..problem.types import Array, Signs
from .cells import cell_bound, enumerate_cells
from .closed import closed_form
from .exact import as_integers, null_vector
from .strict import Judge, Maximum, TooLarge, float_maxima
from .sweep import sweep
from .zonotope import nearest_point

Kind = Literal["max", "min"]
Method = Literal["closed form", "sweep", "enumeration", "ascent"]

# Directions within this angle of a hyperplane may be on it: integers decide.
_ZERO = 1e-7
_FIRM = 1e-5  # smallest singular value of unit samples from which their ray is known in floating point
_SLACK, _ROUNDING = 1e-7, 1e-11  # by how much t may miss its bounds: a little, and more than its own rounding
_LEVEL = 1e-10  # G at a ray, relative to all samples, up to which it may be <= 0
_OFF = 1e-8  # cosine beyond which a positive sample is clearly off its hyperplane


@dataclass(frozen=True, eq=False)
class Extremum:
    """One strict local extremum of G on the unit sphere.

    Attributes
    ----------
    direction : ndarray of shape (d,)
        Unit vector.
    value : float
        G there.
    kind : {"max", "min"}
        "max" attracts neurons with a_j > 0, "min" those with a_j < 0.
    sector : ndarray of int8, shape (n,)
        Exact signs of the inner products of the samples with the true, unrounded direction.
    hits : int or None
        How many starts ended here; None where the list is proved complete.
    """

    direction: Array
    value: float
    kind: Kind
    sector: Signs
    hits: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ExtremalDirections:
    """The extremal directions of a dataset, a sequence of `Extremum`: maxima first, largest absolute value first.

    Attributes
    ----------
    found : tuple of Extremum
    complete : bool
        Whether it is proved that there are no others.
    method : {"closed form", "sweep", "enumeration", "ascent"}
    starts : int
        Starting points used for each kind (0 unless by ascent).
    unresolved : int
        Candidates that could be neither confirmed nor excluded.
    """

    found: tuple[Extremum, ...]
    complete: bool
    method: Method
    starts: int = 0
    unresolved: int = 0

    @property
    def maxima(self) -> tuple[Extremum, ...]:
        """Where neurons with a_j > 0 go."""
        return tuple(e for e in self.found if e.kind == "max")

    @property
    def minima(self) -> tuple[Extremum, ...]:
        """Where neurons with a_j < 0 go."""
        return tuple(e for e in self.found if e.kind == "min")

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Extremum]:
        return iter(self.found)

    @overload
    def __getitem__(self, k: int) -> Extremum: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[Extremum, ...]: ...
    def __getitem__(self, k: int | slice) -> Extremum | tuple[Extremum, ...]:
        return self.found[k]

    def __repr__(self) -> str:
        state = "no others" if self.complete else "there may be others"
        counts = f"{len(self.maxima)} strict local maxima and {len(self.minima)} minima of G"
        return f"ExtremalDirections: {counts}, by {self.method}; {state}"


def extremal_directions(
    data: Dataset,
    slope: float = 0.0,
    *,
    speed: float = 1.0,
    budget: int = 20_000,
    starts: int = 64,
    seed: int = 0,
) -> ExtremalDirections:
    r"""All strict local maxima and minima of :math:`G(w) = \sum_i y_i \phi(w \cdot x_i)` on the unit sphere.

    In the limit of small weights every neuron turns to one of these or dies (PL-L1). They may lie on hyperplanes
    :math:`x_i^\perp` (sector entry 0), and a maximum may have G <= 0: a ray that catches neurons which then shrink.
    On a line (d = 1) the sphere is two points, and +-1 counts as it would if the line lay in a plane.

    Parameters
    ----------
    data : Dataset
    slope : float
        Slope of the activation for negative input, in [0, 1].
    speed : float
        Factor on the values: 1, or `Problem.speed` for the G of a problem.
    budget : int
        Most cells and rays to enumerate in dimension 3 and more before falling back to ascent.
    starts : int
        Random starting points for each kind if it comes to ascent.
    seed : int
        Seed of these.

    Returns
    -------
    ExtremalDirections
        With ``complete=True`` for separable classes of any size (closed form), in the plane (exact sweep), and in
        higher dimension while the enumeration fits the budget. Cells thinner than 1e-12 are not told apart there.

    Examples
    --------
    >>> data = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    >>> for e in extremal_directions(data, speed=0.5):
    ...     print(e.kind, e.direction.round(4), round(e.value, 4), e.sector)
    max [0.7071 0.7071] 2.1213 [ 1  1 -1 -1]
    min [-0.7526 -0.6585] -2.6575 [-1 -1  1  1]
    >>> caught = extremal_directions(Dataset([[1, 0], [-0.5, 1]], [-1, -1])).maxima[0]     # on a hyperplane, G < 0
    >>> caught.direction, caught.value, caught.sector
    (array([0., 1.]), -1.0, array([0, 1], dtype=int8))
    """
    require_dataset(data)
    for name, number, least in (("budget", budget, 0), ("starts", starts, 1), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
            raise ProblemError(f"{name} = {number!r}: a whole number, at least {least}, is needed.")
    alpha = check_slope(slope)
    closed = closed_form(data, alpha)
    if closed is not None:
        return _gather(*closed, speed, "closed form")
    if data.d == 2:
        return _gather(*sweep(data.X, data.y, alpha), speed, "sweep")
    if _work(data, budget) <= budget:
        up, missed_up = _enumerate(data.X, data.y, alpha, budget)
        down, missed_down = _enumerate(data.X, -data.y, alpha, budget)
        return _gather(up, _negated(down), speed, "enumeration", unresolved=missed_up + missed_down)
    rng = np.random.default_rng(seed)
    up, hits_up, missed_up = _climb(data.X, data.y, alpha, starts, rng)
    down, hits_down, missed_down = _climb(data.X, -data.y, alpha, starts, rng)
    hits = (hits_up, hits_down)
    return _gather(up, _negated(down), speed, "ascent", starts, hits, missed_up + missed_down)


def _gather(
    up: list[Maximum],
    down: list[Maximum],
    speed: float,
    method: Method,
    starts: int = 0,
    hits: tuple[list[int], list[int]] | None = None,
    unresolved: int = 0,
) -> ExtremalDirections:
    found: list[Extremum] = []
    kinds: tuple[tuple[Kind, list[Maximum]], ...] = (("max", up), ("min", down))
    for which, (kind, entries) in enumerate(kinds):
        order = sorted(range(len(entries)), key=lambda k: (-abs(entries[k].value), *(-entries[k].direction)))
        for k in order:
            entry = entries[k]
            count = hits[which][k] if hits else None
            found.append(Extremum(entry.direction, speed * entry.value, kind, entry.sector, count))
    return ExtremalDirections(tuple(found), method != "ascent" and unresolved == 0, method, starts, unresolved)


def _negated(entries: list[Maximum]) -> list[Maximum]:
    return [Maximum(e.direction, -e.value, e.sector) for e in entries]


# -- enumeration ----------------------------------------------------------------------------------------


def _work(data: Dataset, enough: int) -> int:
    """Bound on the cells and rays that the enumeration of both kinds looks at; any number above ``enough`` will do."""
    total = 0
    classes = [data.X[index] for index in (data.positives, data.negatives) if index.size]
    for points in classes:
        total += comb(len(np.unique(points, axis=0)), data.d - 1)
    for points in classes:
        total += cell_bound(points) if total <= enough else 0
    return total


def _enumerate(X: Array, y: Array, slope: float, budget: int) -> tuple[list[Maximum], int]:
    """All strict local maxima, and how many candidates stayed undecided."""
    judge = _Arbiter(X, y, slope)
    candidates, unresolved = _cell_candidates(judge, budget)
    candidates |= _ray_candidates(X, y, slope)
    found: list[Maximum] = []
    for pattern in sorted(candidates):
        verdict = judge.maxima(pattern)
        unresolved += verdict is None
        found.extend(verdict or ())
    return found, unresolved


class _Arbiter:
    """One labelling of the points: proposes the top of a frozen G, and decides sectors, exactly where it must."""

    def __init__(self, X: Array, y: Array, slope: float) -> None:
        self.X, self.y, self.slope = X, y, slope
        self.plus, self.minus = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        self.norms = np.linalg.norm(X, axis=1)

    @cached_property
    def exact(self) -> Judge | None:
        try:
            return Judge(self.X, self.y, self.slope)
        except TooLarge:
            return None

    def maxima(self, pattern: bytes) -> tuple[Maximum, ...] | None:
        """Return the strict maxima in a sector, None where that could not be decided."""
        sector = np.frombuffer(pattern, dtype=np.int8)
        try:
            if self.exact is not None:
                return self.exact.maxima(sector)
        except TooLarge:
            pass
        return float_maxima(self.X, self.y, self.slope, sector)

    def top(self, cell: Signs, start: Array) -> tuple[Array, bytes | None]:
        """Maximise G with the slopes of the positive samples frozen: a point near the maximum, and its exact sector.

        The point is zero if the maximum is 0. The sector is None if it could not be decided.
        """
        X, plus, minus, slope = self.X, self.plus, self.minus, self.slope
        base = np.where(cell > 0, 1.0, slope) @ X[plus] - slope * X[minus].sum(axis=0)
        best = nearest_point(base, (1.0 - slope) * X[minus], start)
        sector = np.zeros(len(X), dtype=np.int8)
        sector[minus] = best.side
        if not best.point.any() and best.clear:
            return best.point, sector.tobytes()
        cosine = (X[plus] @ best.point) / self.norms[plus]
        sector[plus] = np.sign(cosine)
        if best.clear and (np.abs(cosine) > _OFF * np.linalg.norm(best.point)).all():
            return best.point, sector.tobytes()
        if self.exact is None:
            return best.point, None
        frozen = np.zeros(len(X), dtype=np.int8)
        frozen[plus] = cell
        try:
            exact = self.exact.top(frozen, sector)
        except TooLarge:
            return best.point, None
        return (np.zeros(X.shape[1]), sector.tobytes()) if exact is None else (exact[0], exact[1].tobytes())


def _cell_candidates(arbiter: _Arbiter, budget: int) -> tuple[set[bytes], int]:
    """Return the sectors of the maxima of all frozen G, and how many could not be decided."""
    X, plus = arbiter.X, arbiter.plus
    if plus.size:
        cells = enumerate_cells(X[plus], max(2, budget))
        signs, witnesses, unresolved = cells.signs, cells.witnesses, int(not cells.complete)
    else:
        signs, witnesses, unresolved = np.zeros((1, 0), dtype=np.int8), np.zeros((1, X.shape[1])), 0
    found: set[bytes] = set()
    for cell, witness in zip(signs, witnesses, strict=True):
        point, sector = arbiter.top(cell, witness)
        if sector is None:
            unresolved += 1
        elif point.any() and (np.frombuffer(sector, dtype=np.int8)[plus] * cell >= 0).all():
            found.add(sector)  # else the maximum belongs to another cell, or there is none
    return found, unresolved


def _ray_candidates(X: Array, y: Array, slope: float, chunk: int = 2048) -> set[bytes]:
    """Sectors of rays orthogonal to d - 1 independent negative samples, where a maximum with G <= 0 is possible."""
    d = X.shape[1]
    units = X / np.linalg.norm(X, axis=1)[:, None]
    scale = float(np.linalg.norm(X, axis=1).sum())
    minus = np.flatnonzero(y < 0)
    different = minus[np.unique(X[minus], axis=0, return_index=True)[1]]
    choices = combinations(different.tolist(), d - 1)
    integers = as_integers(X)[0]
    found: set[bytes] = set()
    while part := list(islice(choices, chunk)):
        check_time("looking for extremal directions")
        index = np.array(part, dtype=np.intp)
        _, values, right = np.linalg.svd(units[index])
        firm = values[:, -1] > _FIRM
        rays = right[:, -1]
        inverse = np.zeros((len(index), d, d - 1))
        inverse[firm] = np.linalg.pinv(X[index[firm]])
        slack = _SLACK + _ROUNDING * scale * np.linalg.norm(inverse, axis=1)
        for u in (rays, -rays):
            z = u @ units.T
            np.put_along_axis(z, index, 0.0, axis=1)
            on = np.abs(z) <= _ZERO
            gradient = (np.where(z > 0, 1.0, slope) * ~on * y) @ X
            level = np.einsum("kd,kd->k", gradient, u)
            # If only these d - 1 samples are on their hyperplane, the gradient is sum_k t_k x_k along u^perp, and
            # D(v) = sum_k t_k v.x_k - phi(v.x_k) < 0 for all v means slope < t_k < 1.
            t = np.einsum("kd,kdm->km", gradient, inverse)
            falls = (t > slope - slack).all(axis=1) & (t < 1 + slack).all(axis=1) & (level <= _LEVEL * scale)
            plain = firm & (on.sum(axis=1) == d - 1)
            found |= {np.sign(z[k]).astype(np.int8).tobytes() for k in np.flatnonzero(plain & falls)}
            for k in np.flatnonzero(~plain):
                ray = null_vector(integers[index[k]])
                if ray is not None:
                    found |= {np.sign(integers @ v).astype(np.int8).tobytes() for v in (ray, -ray)}
    return found


# -- ascent ---------------------------------------------------------------------------------------------


def _climb(
    X: Array, y: Array, slope: float, starts: int, rng: np.random.Generator
) -> tuple[list[Maximum], list[int], int]:
    """Maxima reached from random starts, how often each, and how many limits stayed undecided."""
    arbiter = _Arbiter(X, y, slope)
    counts: dict[bytes, int] = {}
    verdicts: dict[bytes, tuple[Maximum, ...] | None] = {}
    unresolved = 0
    for _ in range(starts):
        check_time("looking for extremal directions")
        point, sector = _ascend(arbiter, np.asarray(rng.standard_normal(X.shape[1])))
        if not point.any():
            continue
        if sector is None:
            unresolved += 1
            continue
        if sector not in verdicts:
            verdicts[sector] = arbiter.maxima(sector)
            unresolved += verdicts[sector] is None
        counts[sector] = counts.get(sector, 0) + 1
    found = [(verdict[0], counts[sector]) for sector, verdict in verdicts.items() if verdict]
    return [m for m, _ in found], [k for _, k in found], unresolved


def _ascend(arbiter: _Arbiter, w: Array, steps: int = 1000) -> tuple[Array, bytes | None]:
    """Climb until the active positive samples stay the same; the zero vector if G > 0 is not reached."""
    X, plus = arbiter.X, arbiter.plus
    cell = np.where(X[plus] @ w > 0, 1, -1).astype(np.int8)
    sector: bytes | None = None
    seen: set[bytes] = set()
    for _ in range(steps):
        seen.add(cell.tobytes())
        w, sector = arbiter.top(cell, w)
        if sector is None or not w.any():
            break
        signs = np.frombuffer(sector, dtype=np.int8)[plus]
        # A positive sample on its hyperplane is a valley floor: cross it.
        cell = np.where(signs == 0, -cell, signs).astype(np.int8)
        if cell.tobytes() in seen:
            break
    return w, sector
