"""Exact arithmetic, against plain fractions."""

from fractions import Fraction

import numpy as np
import pytest

from reluflow.sectors.exact import (
    Pair,
    as_integers,
    column_sums,
    multiple,
    product,
    rounded,
    solve,
    to_float,
    two_product,
)


def fractions(values):
    return [Fraction(v) for v in np.asarray(values, dtype=float).ravel().tolist()]


@pytest.mark.parametrize("seed", range(3))
def test_doubles_are_integers_times_a_power_of_two(seed):
    rng = np.random.default_rng(seed)
    values = np.append(np.ldexp(rng.normal(size=9), rng.integers(-60, 60, 9)), [0.0, 2.0**-1074])
    whole, exponent = as_integers(values)
    assert [int(v) * Fraction(2) ** exponent for v in whole] == fractions(values)
    assert np.array_equal(to_float(whole, 1, exponent), values)


@pytest.mark.parametrize("n", [0, 1, 30])
def test_sums_of_doubles_of_any_size(n):
    rng = np.random.default_rng(n)
    rows = np.ldexp(rng.normal(size=(n, 3)), rng.integers(-900, 900, (n, 3)))
    rows[:, 2] = np.tile([0.1, -0.1], 15)[:n]
    assert column_sums(rows) == [sum(fractions(column), Fraction(0)) for column in rows.T]


def test_rounding_is_that_of_the_fraction():
    for p, q, e in ((1, 3, 0), (-7, 11, 5), (2**80 + 1, 3, -90), (5, 7, 70)):
        assert rounded(p, q, e) == float(Fraction(p, q) * Fraction(2) ** e)


def test_a_singular_system_has_no_answer():
    twice = np.array([[1, 2], [2, 4]], dtype=object)
    assert solve(twice, np.array([1, 2], dtype=object)) is None
    swapped = np.array([[0, 1], [2, 0]], dtype=object)  # regular, but its first pivot is 0
    numbers, denominator = solve(swapped, np.array([3, 8], dtype=object))
    assert [Fraction(int(v), denominator) for v in numbers] == [4, 3]


def test_the_error_of_a_product_is_exact():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 20))
    value, error = two_product(a, b)
    got = [v + e for v, e in zip(fractions(value), fractions(error), strict=True)]
    assert got == [p * q for p, q in zip(fractions(a), fractions(b), strict=True)]


def test_pairs_carry_twice_the_precision():
    numerators = np.array([1, -2, 10**40], dtype=object)
    pair = Pair.of_ratios(numerators, 3)
    for high, low, p in zip(fractions(pair.high), fractions(pair.low), numerators, strict=True):
        assert abs(high + low - Fraction(p, 3)) <= abs(Fraction(p, 3)) / 2**105
    # 3 (1/3) + ... cancels to far below the rounding of a double
    assert abs(product(np.array([[3.0, 1.5, 0.0]]), pair).high[0]) < 1e-31


def test_multiples_are_recognised_exactly():
    m = [Fraction(0), Fraction(1, 3), Fraction(2)]
    assert multiple([v * Fraction(5, 7) for v in m], m) == Fraction(5, 7)
    assert multiple([Fraction(1, 10**30), Fraction(1, 3), Fraction(2)], m) is None
