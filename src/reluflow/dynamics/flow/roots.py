"""Polynomials of one variable, compiled: values, shifts, and where one first turns negative."""

from __future__ import annotations

from ..early.state import Floats, jit

_LOOKS = 8  # places at which a polynomial that may have a root is looked at; dips between them are followed
_NEWTON = 60


@jit
def value(c: Floats, r: int, x: float) -> float:
    """``sum_l c_l x^l`` for l up to r."""
    total = float(c[r])
    for k in range(r - 1, -1, -1):
        total = total * x + c[k]
    return total


@jit
def derivative(c: Floats, r: int, x: float) -> float:
    """Return the derivative at x."""
    total = float(r * c[r])
    for k in range(r - 1, 0, -1):
        total = total * x + k * c[k]
    return total


@jit
def shift_vectors(D: Floats, terms: int, x: float) -> None:
    """Turn the coefficients (rows) of a polynomial into those about x."""
    for low in range(terms - 1):
        for k in range(terms - 2, low - 1, -1):
            for i in range(D.shape[1]):
                D[k, i] += x * D[k + 1, i]


@jit
def column_about(C: Floats, terms: int, k: int, x: float, out: Floats) -> None:
    """Coefficients about x of the polynomial whose coefficients stand in column k."""
    for q in range(terms):
        out[q] = C[q, k]
    for low in range(terms - 1):
        for q in range(terms - 2, low - 1, -1):
            out[q] += x * out[q + 1]


@jit
def _bracketed(c: Floats, r: int, lo: float, hi: float) -> float:
    """Root of c between lo, where it is positive, and hi, where it is not: Newton's method kept in the bracket."""
    low, high = value(c, r, lo), value(c, r, hi)
    x = lo + (hi - lo) * low / (low - high) if low > high else 0.5 * (lo + hi)
    for _ in range(_NEWTON):
        f = value(c, r, x)
        if f == 0.0:
            return x
        if f > 0.0:
            lo = x
        else:
            hi = x
        slope = derivative(c, r, x)
        y = x - f / slope if slope != 0.0 else lo
        if not lo < y < hi:
            y = 0.5 * (lo + hi)
        if abs(y - x) <= 1e-15 * hi or hi - lo <= 1e-16 * hi:
            return y
        x = y
    return x


@jit
def _dip(c: Floats, r: int, lo: float, hi: float, d_lo: float, d_hi: float) -> float:
    """Place between lo and hi, where c falls and rises, at which it is not positive; -1 if its least value is."""
    for _ in range(_NEWTON):
        x = lo + (hi - lo) * d_lo / (d_lo - d_hi)
        if not lo < x < hi:
            return -1.0
        f, d = value(c, r, x), derivative(c, r, x)
        if f <= 0.0:
            return x
        if d == 0.0 or f > (hi - x if d < 0.0 else lo - x) * -d:  # a convex function stays above its tangent
            return -1.0
        if d < 0.0:
            lo, d_lo, d_hi = x, d, 0.5 * d_hi  # the end that stays counts for less: both are moved
        else:
            hi, d_hi, d_lo = x, d, 0.5 * d_lo
    return -1.0


@jit
def first_root(c: Floats, r: int, reach: float, skip: bool, tiny: float) -> float:
    """First place in [0, reach] where c turns negative; -1 if it does not.

    With ``skip`` c vanishes at 0 and that does not count; coefficients up to ``tiny`` count as 0 then.
    """
    if skip:
        off = 1
        while off <= r and abs(c[off]) <= tiny:
            off += 1
        if off > r:
            return -1.0
        c = c[off:]
        r -= off
    if c[0] <= 0.0:
        return 0.0
    low, power = c[0], 1.0
    for k in range(1, r + 1):
        power *= reach
        if c[k] < 0.0:
            low += c[k] * power
    if low > 0.0:
        return -1.0
    x0 = 0.0
    d0 = c[1] if r > 0 else 0.0
    for k in range(1, _LOOKS + 1):
        x1 = reach * k / _LOOKS
        if value(c, r, x1) <= 0.0:
            return _bracketed(c, r, x0, x1)
        d1 = derivative(c, r, x1)
        if d0 < 0.0 < d1:
            x = _dip(c, r, x0, x1, d0, d1)
            if x >= 0.0:
                return _bracketed(c, r, x0, x)
        x0, d0 = x1, d1
    return -1.0


@jit
def lagrange(nodes: Floats, terms: int, C: Floats, c: Floats) -> None:
    """Coefficients of the Lagrange polynomials of some nodes: ``sum_q C[l, q] f_q x^l`` takes f_q at node q."""
    for q in range(terms):
        c[0] = 1.0
        degree = 0
        for k in range(terms):
            if k != q:
                factor = 1.0 / (nodes[q] - nodes[k])
                c[degree + 1] = c[degree] * factor
                for low in range(degree, 0, -1):
                    c[low] = (c[low - 1] - nodes[k] * c[low]) * factor
                c[0] = -nodes[k] * c[0] * factor
                degree += 1
        for low in range(terms):
            C[low, q] = c[low]
