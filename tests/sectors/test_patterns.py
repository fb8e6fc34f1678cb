"""Signs of inner products against rational arithmetic, and the worked examples."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow.problem import DataError, Dataset, ProblemError
from reluflow.sectors import (
    exact_dot,
    exact_signs,
    gram_signs,
    is_orthogonally_separable,
    sector,
    separability_violations,
)


def rational_signs(A, B):
    rows = [[Fraction(v) for v in row] for row in np.asarray(A, dtype=float).tolist()]
    columns = [[Fraction(v) for v in row] for row in np.asarray(B, dtype=float).tolist()]
    dots = [[sum(a * b for a, b in zip(r, c, strict=True)) for c in columns] for r in rows]
    return [[(v > 0) - (v < 0) for v in row] for row in dots]


# Sizes from subnormal to overflowing products, with many repetitions so that sums cancel.
wild = st.sampled_from(
    [0.0, 0.1, -0.1, 0.2, -0.3, 1.0, -1.0, 1e-160, -1e-160, 1e150, -1e150, 1e300, 5e-324, 3.0, 1 / 3]
)


@settings(deadline=None, max_examples=150)
@given(
    st.integers(1, 5).flatmap(
        lambda d: st.tuples(*2 * [st.lists(st.lists(wild, min_size=d, max_size=d), min_size=1, max_size=4)])
    )
)
def test_signs_are_those_of_the_rational_numbers(pair):
    A, B = pair
    assert exact_signs(A, B).tolist() == rational_signs(A, B)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_near_ties_are_decided(seed, d):
    # b is orthogonal to a up to rounding: the computed product is noise, the true sign is not.
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((6, d))
    b = rng.standard_normal((4, d))
    b -= (b @ a[0])[:, None] * a[0] / (a[0] @ a[0])
    b = np.vstack([b, np.linalg.svd(a[: d - 1])[2][-1]])
    got = exact_signs(a, b)
    assert got.tolist() == rational_signs(a, b)
    assert np.abs(a[0] @ b[:4].T).max() < 1e-12  # the ties are really there


def test_exact_ties_of_long_numbers():
    # x + y - fl(x + y) = 0 exactly only when nothing was rounded away.
    x = np.array([[0.1, 0.2, -0.3], [0.5, 0.25, -0.75], [1e16, 1.0, -1e16]])
    assert exact_signs(x, np.ones((1, 3))).ravel().tolist() == [1, 0, 1]
    assert exact_dot([0.1, 0.2, -0.3], [1, 1, 1]) == float(Fraction(0.1) + Fraction(0.2) - Fraction(0.3))


def test_rows_without_common_support_are_orthogonal():
    # Not short integers, so the cheap exact path does not apply; 400 x 400 ties in one block.
    rng = np.random.default_rng(1)
    A = np.zeros((400, 40))
    B = np.zeros((400, 40))
    A[:, ::2], B[:, 1::2] = rng.standard_normal((400, 20)), rng.standard_normal((400, 20))
    assert not exact_signs(A, B).any()


def test_entries_below_every_other_by_the_range_of_doubles():
    assert exact_signs([[0.0, 0.1]], [[1.0, 5e-324]]).tolist() == [[1]]
    assert exact_signs([[1e-300, 0.0, 1.0]], [[-1e-300, 1.0, 0.0]]).tolist() == [[-1]]


def test_zero_rows_and_shapes():
    assert exact_signs([[0.0, 0.0]], [[1.0, 2.0], [0.0, 0.0]]).tolist() == [[0, 0]]
    assert sector([[1.0, 2.0]], [0.0, 0.0]).tolist() == [0]
    assert sector([[1.0, 2.0], [0.0, -1.0]], [[1.0, 1.0]]).shape == (1, 2)


@pytest.mark.parametrize("bad", [[[np.nan, 1.0]], [[np.inf, 1.0]], [1.0, 2.0]])
def test_what_has_no_sign_is_refused(bad):
    with pytest.raises(DataError):
        exact_signs(bad, [[1.0, 1.0]])


def test_different_lengths_are_refused():
    with pytest.raises(ProblemError, match="2 and 3 entries"):
        exact_signs([[1.0, 2.0]], [[1.0, 2.0, 3.0]])


EX1 = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
EX3 = Dataset([[3, 1, 0], [0, 2, 1], [1, 0, 2], [-2, 0, -1], [-1, -3, 0], [0, -1, -2]], [1, 1, 1, -1, -1, -1])
EX4 = Dataset([[1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 1]], [1, 1, -1, -1])


def test_sectors_of_the_worked_examples():
    assert sector(EX1, [[2, -1], [-2.5, 1]]).tolist() == [[1, 0, -1, 1], [-1, -1, 1, 0]]
    assert sector(EX3, [[1, -1, 0], [0, 0, 1]]).tolist() == [[1, -1, 1, -1, 1, 1], [0, 1, 1, -1, 0, -1]]
    assert sector(EX4, [[2, 1, 0], [2, 1, -1]]).tolist() == [[1, 1, 0, -1], [1, 1, -1, -1]]


def test_gram_blocks_tile_the_upper_triangle():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (23, 4)).astype(float)
    want = np.sign(X @ X.T).astype(int)
    seen = np.full((23, 23), 9)
    for rows, columns, signs in gram_signs(X, block=7):
        seen[np.ix_(rows, columns)] = signs
    upper = np.triu_indices(23)
    assert np.array_equal(seen[upper], want[upper])


def test_orthogonal_separability_of_the_worked_examples():
    ex5 = Dataset([[1, 0], [0, 1]], [1, -1])
    ex9 = Dataset([[1, 0], [0, 1]], [1, 1])
    assert is_orthogonally_separable(EX1, strict=True)
    assert is_orthogonally_separable(EX3, strict=True)
    assert is_orthogonally_separable(EX4)
    assert not is_orthogonally_separable(EX4, strict=True)
    assert is_orthogonally_separable(ex5)
    assert not is_orthogonally_separable(ex5, strict=True)
    assert not is_orthogonally_separable(ex9)
    assert list(separability_violations(ex9)) == [(0, 1)]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(*3 * [st.integers(-2, 2)]).filter(any), min_size=1, max_size=8), st.data())
def test_violations_are_exactly_the_wrong_pairs(points, draw):
    X = np.unique(np.array(points, dtype=float), axis=0)
    y = np.array(draw.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=len(X), max_size=len(X))))
    gram = X @ X.T
    for strict in (False, True):
        want = []
        for i in range(len(X)):
            for j in range(i + 1, len(X)):
                fine = gram[i, j] > 0 if y[i] == y[j] else (gram[i, j] < 0 if strict else gram[i, j] <= 0)
                if not fine:
                    want.append((i, j))
        assert sorted(separability_violations(Dataset(X, y), strict)) == want


def test_a_hair_decides_separability():
    assert is_orthogonally_separable(Dataset([[1, 1], [1, -1 + 2**-53]], [1, 1]))
    assert not is_orthogonally_separable(Dataset([[1, 1], [1, -1 - 2**-52]], [1, 1]))
    assert is_orthogonally_separable(Dataset([[1, 1], [1, -1 - 2**-52]], [1, -1]))
    assert not is_orthogonally_separable(Dataset([[1, 1], [1, -1 + 2**-53]], [1, -1]))
