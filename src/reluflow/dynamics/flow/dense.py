"""The coupled phase looked at again: the polynomials of its steps are kept, and nothing is integrated a second time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...problem import Network
from ...problem.types import Array, Flags, Index, Signs
from ..held import Held
from .arcs import Came, new_bench
from .desk import Fixed, new_desk, new_tape
from .state import State
from .stepper import PART, SHARE, perform

_MOST = 2**28  # bytes of steps kept; beyond, the first half is given up, and those moments are integrated again


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
        one = {name: getattr(self, name)[None] for name in ("W", "b", "rho", "sides", "excess")}
        return self._replace(**one).states(base, frozen)[0]

    def states(self, base: State, frozen: bool) -> list[State]:
        """Do the same for rows of several moments, stacked."""
        T, who = len(self.b), self.which
        U, log_w, log_a, sign, sides = (
            np.repeat(x[None], T, axis=0) for x in (base.U, base.log_w, base.log_a, base.sign, base.sides)
        )
        size = np.sqrt(np.einsum("tjd,tjd->tj", self.W, self.W))
        with np.errstate(divide="ignore"):
            U[:, who] = self.W / np.where(size > 0, size, 1.0)[..., None]
            log_w[:, who] = np.log(size) + self.rho
            if not frozen:
                log_a[:, who] = np.where(self.balanced, log_w[:, who], np.log(np.abs(self.b)) + self.rho)
                sign[:, who] = np.where(self.b == 0.0, sign[:, who], np.sign(self.b))
        sides[:, who] = self.sides
        return [State(*parts) for parts in zip(U, log_w, log_a, sign, sides, strict=True)]

    def moved(self, came: Came, sides: Signs) -> Rows:
        """Where a sweep came to."""
        excess = np.where(self.excess == 0.0, 0.0, self.excess * np.exp(np.minimum(-2 * came.grow, 700.0)))
        return self._replace(W=came.W.copy(), b=came.b.copy(), rho=self.rho + came.grow, sides=sides, excess=excess)


class Leg(NamedTuple):
    """One step: where the neurons began, and the forces on them as polynomials in the part of the step that has passed.

    A face pulls with ``low`` along its normal, and with its ``kink`` in addition on its positive side.
    """

    base: State
    rows: Rows
    mass: Array
    kink: Array  # (K, m)
    low: Array  # (K, m), or (K, 0): nothing
    fixed: Fixed
    h: float  # its length
    upto: float  # the part of it that was taken
    log_start: float  # log of the time from which t counts
    t: float  # at the start of the step
    log_end: float

    def at(self, log_time: float) -> State:
        """Where the neurons are at a time within the step."""
        when = float(np.exp(log_time) * -np.expm1(self.log_start - log_time))
        fixed, rows, (terms, m) = self.fixed, self.rows, self.kink.shape
        desk, bench = new_desk(fixed, rows.W, rows.b), new_bench(m, rows.W.shape[1])
        desk.sides[:], desk.excess[:], desk.tied[:], desk.mass[:] = rows.sides, rows.excess, rows.ties, self.mass
        desk.Z[:], desk.kink[:terms], desk.C[:] = rows.W @ fixed.across, self.kink, np.eye(len(desk.C))
        up = (rows.sides > 0).astype(np.float64)
        for k in range(terms):
            desk.F[:, k] = (up * self.kink[k]) @ fixed.normals
            if self.low.size:
                desk.F[:, k] += self.low[k] @ fixed.normals
        now, desk.who[:] = desk.now, np.arange(rows.b.size)
        now.stage, now.movers, now.terms, now.h = PART, rows.b.size, terms, self.h
        now.upto = min(max((when - self.t) / self.h, 0.0), 1.0)
        perform(SHARE, Held(fixed), Held(desk), Held(new_tape(fixed, desk, 1)), Held(bench), 0.0, 0.0, 0.0, 0, 1)
        sides, came = rows.sides.copy(), desk.came
        for j in np.flatnonzero(came.n):
            sides[j, came.face[j, : came.n[j]]] = came.side[j, : came.n[j]]
        return rows.moved(came, sides).state(self.base, fixed.frozen)


@dataclass
class Dense:
    """The steps of a run that can be looked at again."""

    slope: float
    legs: list[Leg] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    size: int = 0

    def add(self, leg: Leg) -> None:
        """Keep a step."""
        self.legs.append(leg)
        self.ends.append(leg.log_end)
        self.size += _bytes(leg)
        if self.size > _MOST:
            half = len(self.legs) // 2
            self.size -= sum(_bytes(old) for old in self.legs[:half])
            del self.legs[:half], self.ends[:half]

    def at(self, log_time: float) -> Network | None:
        """Return the network at a log time within a step that was kept; None outside."""
        k = bisect_right(self.ends, log_time)
        if k == len(self.legs):
            k -= 1
        if k < 0:
            return None
        leg = self.legs[k]
        start = np.logaddexp(leg.log_start, np.log(leg.t)) if leg.t > 0 else leg.log_start
        if not start <= log_time <= leg.log_end:
            return None
        return leg.at(log_time).network(self.slope)


def _bytes(leg: Leg) -> int:
    return leg.kink.nbytes + leg.low.nbytes + leg.rows.W.nbytes + leg.rows.sides.nbytes
