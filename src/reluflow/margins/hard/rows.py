"""The points in the form the solvers use: scaled by powers of two, so that nothing is rounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...problem.precision import EPS
from ...problem.types import Array, Index

TIE = 1e-10  # a point counts as tight when w.z - 1 is at most this


@dataclass(frozen=True)
class Rows:
    """Points ``z_i``, their norms, and exponents ``e_i`` with ``2^(e_i - 1) <= |z_i| < 2^e_i``.

    The solvers see ``unit(A) = 2^-e_i z_i`` with right-hand sides ``level(A) = 2^(e - e_i)``, ``e = min e_i``:
    ``z_i . w >= 1`` becomes ``unit_i . v >= level_i`` with ``v = 2^e w``. A sum ``w = sum dual_i z_i`` reads
    ``v = sum c_i unit_i`` with ``c_i = 2^(e + e_i) dual_i``.
    """

    Z: Array
    norms: Array
    exponents: npt.NDArray[np.intc]
    base: int

    @classmethod
    def of(cls, Z: Array) -> Rows:
        """Measure the rows of ``Z``, all of them non-zero."""
        norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        exponents = np.frexp(norms)[1]
        return cls(Z, norms, exponents, int(exponents.min()))

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.Z.shape[0])

    @property
    def d(self) -> int:
        """Dimension."""
        return int(self.Z.shape[1])

    def unit(self, index: Index) -> Array:
        """Rows scaled to norms between 1/2 and 1."""
        scaled: Array = np.ldexp(self.Z[index], -self.exponents[index][:, None])
        return scaled

    def level(self, index: Index) -> Array:
        """Right-hand sides that go with `unit`."""
        levels: Array = np.ldexp(1.0, self.base - self.exponents[index])
        return levels

    def vector(self, v: Array) -> Array:
        """Turn ``v`` into ``w``."""
        w: Array = np.ldexp(v, -self.base)
        return w

    def dual(self, index: Index, c: Array) -> Array:
        """Turn the coefficients of `unit` rows into multipliers of all points."""
        dual = np.zeros(self.n)
        dual[index] = np.ldexp(c, -self.base - self.exponents[index])
        return dual

    def rounding(self, w: Array) -> Array:
        """Bound on the rounding error of ``Z @ w``, entry by entry."""
        bound: Array = (self.d + 3) * EPS * float(np.linalg.norm(w)) * self.norms
        return bound
