"""The coupled phase looked at again: the polynomials of its steps are kept, and nothing is integrated a second time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...problem import Network
from ...problem.types import Array, Flags, Index, Ints, Signs
from ..held import Held
from .arcs import Came, new_bench
from .desk import Fixed, new_desk, new_tape
from .state import Moments, State
from .stepper import PART, SHARE, perform

_MOST = 2**28  # bytes of steps kept; beyond, the first half is given up, and those moments are integrated again


MOVING = ("W", "b", "rho", "sides", "excess")  #: what changes about `Rows`


class Rows(NamedTuple):
    """Neurons over their sizes, and what does not change about them."""

    W: Array
    b: Array
    rho: Array  # log of the sizes
    sides: Signs
    excess: Array  # a^2 - |w|^2 over the squares of the sizes
    balanced: Flags
    tied: Flags  # whose output weight follows from |w|
    which: Index  # of all neurons they are

    @property
    def ties(self) -> Flags:
        """Whose output weight follows from |w|, as they are balanced or as it keeps its sign."""
        return self.tied | self.balanced

    def state(self, base: State, frozen: bool) -> State:
        """Return to directions and sizes; the other neurons are those of ``base``."""
        sides = base.sides.copy()
        sides[self.which] = self.sides
        now = self._replace(W=self.W[None], b=self.b[None], rho=self.rho[None]).moments(base, frozen)
        U, log_w, log_a, sign = (part[0] for part in now)
        return State(U, log_w, log_a, sign, sides)

    def moments(self, base: State, frozen: bool) -> Moments:
        """Do the same for rows of several moments, stacked."""
        T = len(self.b)
        log_a, sign = np.repeat(base.log_a[None], T, axis=0), np.repeat(base.sign[None], T, axis=0)
        size = np.sqrt(np.einsum("tjd,tjd->tj", self.W, self.W))
        with np.errstate(divide="ignore"):
            U = self.W / np.where(size > 0, size, 1.0)[..., None]
            log_w = np.log(size) + self.rho
            if not frozen:
                log_a = self._among(base.log_a, np.where(self.balanced, log_w, np.log(np.abs(self.b)) + self.rho))
                sign = self._among(base.sign, np.where(self.b == 0.0, base.sign[self.which], np.sign(self.b)))
        return Moments(self._among(base.U, U), self._among(base.log_w, log_w), log_a, sign)

    def _among(self, base: Array, rows: Array) -> Array:
        """Put what these neurons have at several moments among all; the others have what ``base`` says."""
        if self.which.size == len(base):
            return rows
        out = np.repeat(base[None], len(rows), axis=0)
        out[:, self.which] = rows
        return out

    def at(self, k: int) -> Rows:
        """One of several moments."""
        return self._replace(**{name: getattr(self, name)[k] for name in MOVING})

    def moved(self, came: Came, sides: Signs) -> Rows:
        """Where a sweep came to."""
        excess = np.where(self.excess == 0.0, 0.0, self.excess * np.exp(np.minimum(-2 * came.grow, 700.0)))
        return self._replace(W=came.W.copy(), b=came.b.copy(), rho=self.rho + came.grow, sides=sides, excess=excess)


class Legs(NamedTuple):
    """Steps: where the neurons began, and the forces on them as polynomials in the part of the step that has passed.

    A face pulls with ``low`` along its normal, and with its ``kink`` in addition on its positive side.
    """

    base: State
    rows: Rows  # of S moments, stacked
    mass: Array  # (S, p)
    kink: Array  # (S, K, m)
    low: Array  # (S, K, m), or (S, K, 0): nothing
    terms: Ints  # (S,) how many of the K there are
    fixed: Fixed
    h: Array  # (S,) their lengths
    log_start: float  # log of the time from which t counts
    t: Array  # (S,) at the starts of the steps
    log_end: Array  # (S,)

    def start(self, k: int) -> float:
        """Log time at the start of step k."""
        t = self.t[k]
        return float(np.logaddexp(self.log_start, np.log(t))) if t > 0 else self.log_start

    @property
    def nbytes(self) -> Ints:
        """What most of the memory of each step is used for."""
        rows = self.rows.W[0].nbytes + self.rows.sides[0].nbytes
        return np.asarray(self.terms * (self.kink[0, 0].nbytes + self.low[0, 0].nbytes) + rows)

    def at(self, k: int, log_time: float) -> State:
        """Where the neurons are at a time within step k."""
        when = float(np.exp(log_time) * -np.expm1(self.log_start - log_time))
        fixed, rows, terms, h = self.fixed, self.rows.at(k), int(self.terms[k]), float(self.h[k])
        desk, bench = new_desk(fixed, rows.W, rows.b), new_bench(self.kink.shape[2], rows.W.shape[1])
        desk.sides[:], desk.excess[:], desk.tied[:], desk.mass[:] = rows.sides, rows.excess, rows.ties, self.mass[k]
        desk.Z[:], desk.kink[:terms], desk.C[:] = rows.W @ fixed.across, self.kink[k, :terms], np.eye(len(desk.C))
        up = (rows.sides > 0).astype(np.float64)
        for q in range(terms):
            desk.F[:, q] = (up * self.kink[k, q]) @ fixed.normals
            if self.low.size:
                desk.F[:, q] += self.low[k, q] @ fixed.normals
        now, desk.who[:] = desk.now, np.arange(rows.b.size)
        now.stage, now.movers, now.terms, now.h = PART, rows.b.size, terms, h
        now.upto = min(max((when - float(self.t[k])) / h, 0.0), 1.0)
        perform(SHARE, Held(fixed), Held(desk), Held(new_tape(fixed, desk, 1)), Held(bench), 0.0, 0.0, 0.0, 0, 1)
        sides, came = rows.sides.copy(), desk.came
        for j in np.flatnonzero(came.n):
            sides[j, came.face[j, : came.n[j]]] = came.side[j, : came.n[j]]
        return rows.moved(came, sides).state(self.base, fixed.frozen)


@dataclass
class Dense:
    """The steps of a run that can be looked at again."""

    slope: float
    steps: list[tuple[Legs, int]] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    size: int = 0

    def add(self, legs: Legs) -> None:
        """Keep steps."""
        self.steps += [(legs, k) for k in range(len(legs.h))]
        self.ends += legs.log_end.tolist()
        self.size += int(legs.nbytes.sum())
        if self.size > _MOST:
            half = len(self.steps) // 2
            self.size -= sum(int(old.nbytes[k]) for old, k in self.steps[:half])
            del self.steps[:half], self.ends[:half]

    def at(self, log_time: float) -> Network | None:
        """Return the network at a log time within a step that was kept; None outside."""
        if not self.steps:
            return None
        which = min(bisect_right(self.ends, log_time), len(self.steps) - 1)
        legs, k = self.steps[which]
        if not legs.start(k) <= log_time <= self.ends[which]:
            return None
        return legs.at(k, log_time).network(self.slope)
