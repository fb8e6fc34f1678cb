"""Against sixty digits, against other solvers, and at size."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.linalg import qr, solve_triangular

from reluflow import DataError, NotSeparable, Undecided, max_margin
from reluflow.data import mnist
from reluflow.margins import hard_margin


def teacher(n, d, seed, shift=0.1):
    """Gaussian points on the right side of a teacher, moved away from it."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(d)
    t /= np.linalg.norm(t)
    X = rng.standard_normal((n, d))
    return X * np.sign(X @ t)[:, None] + shift * t


def flat(n, d, size, seed):
    """Points in a hyperplane, lifted off it by ``size`` to twice that."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(d)
    t /= np.linalg.norm(t)
    X = rng.standard_normal((n, d))
    return X - np.outer(X @ t, t) + size * (1 + rng.random((n, 1))) * t


def sixty_digits(Z, active):
    """Return (w, dual) of the equality problem as integers over 10^80, by refinement with exact residuals.

    The residual of ``Z_A Z_A^T dual = 1`` is computed in integers without any rounding; the corrections come
    from a double-precision factorisation and shrink it until less than 10^-60 is left.
    """
    unit, power = 10**80, 2**60
    scaled = np.array([[int(x * power) for x in row] for row in Z[active].tolist()], dtype=object)
    assert (scaled.astype(float) / power == Z[active]).all()  # nothing lost: entries are multiples of 2^-60
    R = qr(Z[active].T, mode="r")[0][: len(active)]
    dual = np.zeros(len(active), dtype=object)
    for _ in range(60):
        w = dual @ scaled
        rest = unit * power**2 - scaled @ w
        left = np.array([x / (unit * power**2) for x in rest])
        if np.abs(left).max() < 1e-60:
            return w, dual, unit, power
        step = solve_triangular(R, solve_triangular(R, left, trans="T"))
        dual = dual + np.array([int(Fraction(x) * unit) for x in step.tolist()], dtype=object)
    raise AssertionError("the refinement did not converge")


@pytest.mark.parametrize(("n", "d", "seed"), [(20, 2, 0), (500, 20, 1), (100, 50, 2), (2000, 200, 3), (60, 300, 4)])
def test_sixty_digits(n, d, seed):
    Z = np.round(teacher(n, d, seed) * 2**30) / 2**30
    found = hard_margin(Z)
    assert found.verified
    w, dual, unit, power = sixty_digits(Z, found.active)
    assert min(dual) > 0  # the active set is the right one: positive multipliers ...
    w_float = np.array([x / (unit * power) for x in w])
    slack = Z @ w_float - 1
    slack[found.active] = 0
    assert slack.min() >= 0  # ... and every other point beyond its hyperplane
    error = np.linalg.norm(found.direction - w_float / np.linalg.norm(w_float))
    assert error <= 1e-15
    np.testing.assert_allclose(found.w, w_float, rtol=1e-13, atol=1e-15 * np.abs(w_float).max())
    np.testing.assert_allclose(found.dual[found.active], [x / unit for x in dual], rtol=1e-13)
    assert found.margin == pytest.approx(1 / np.linalg.norm(w_float), rel=1e-15)


@pytest.mark.parametrize("size", [1e-4, 1e-6, 1e-8, 1e-10])
def test_tiny_margins_to_sixty_digits(size):
    Z = flat(60, 12, size, seed=5)
    found = hard_margin(Z)
    with mpmath.workdps(60):
        A = mpmath.matrix(Z[found.active].tolist())
        dual = mpmath.lu_solve(A * A.T, mpmath.matrix([1] * found.active.size))
        w = A.T * dual
        assert min(dual) > 0
        assert min((mpmath.matrix(Z.tolist()) * w)[i] for i in range(60)) > 1 - mpmath.mpf(10) ** -30
        length = mpmath.norm(w)
        reference = np.array([float(x / length) for x in w])
        assert found.margin == pytest.approx(float(1 / length), rel=1e-15)
    assert np.linalg.norm(found.direction - reference) <= 1e-15
    assert found.margin < 10 * size


def test_relative_margin_1e_minus_8_at_size_and_norms_over_twelve_orders():
    for n, d, seed in ((300, 60, 6), (20000, 10, 7)):
        rng = np.random.default_rng(seed)
        Z = flat(n, d, 1e-7, seed) * 10 ** rng.uniform(-6, 6, (n, 1))
        found = hard_margin(Z)
        assert found.verified
        assert found.residuals.worst < 1e-14


@pytest.mark.parametrize(("n", "d", "seed"), [(30, 3, 0), (200, 20, 1), (80, 120, 2)])
def test_agrees_with_an_interior_point_solver(n, d, seed):
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    Z = teacher(n, d, seed, shift=0.3)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sparse.identity(d, format="csc"),
        np.zeros(d),
        sparse.csc_matrix(-Z),
        -np.ones(n),
        [clarabel.NonnegativeConeT(n)],
        settings,
    )
    other = np.array(solver.solve().x)
    found = hard_margin(Z)
    # the gap of the interior point solver is 1e-10, which bounds directions by its square root only
    assert np.linalg.norm(found.direction - other / np.linalg.norm(other)) < 1e-5
    assert found.margin == pytest.approx(1 / np.linalg.norm(other), rel=1e-8)
    assert np.linalg.norm(found.w) <= np.linalg.norm(other) * (1 + 1e-9)


def test_agrees_with_an_active_set_solver():
    daqp = pytest.importorskip("daqp")
    Z = teacher(800, 40, 8)
    other = daqp.solve(np.eye(40), np.zeros(40), Z, np.full(800, 1e30), np.ones(800), np.zeros(800, dtype=np.int32))[0]
    found = hard_margin(Z)
    assert np.linalg.norm(found.direction - other / np.linalg.norm(other)) < 1e-11


def test_not_separable_at_size():
    rng = np.random.default_rng(9)
    Z = rng.standard_normal((3000, 60))
    with pytest.raises(NotSeparable, match="exactly") as caught:
        hard_margin(Z)
    weights = caught.value.certificate
    assert np.count_nonzero(weights) <= 61
    assert np.linalg.norm(weights @ Z) <= 1e-14 * (weights @ np.linalg.norm(Z, axis=1))
    # integers of low rank: the combination is found in the span, and proved in rational arithmetic
    Z = (rng.integers(-3, 4, (400, 5)) @ rng.integers(-3, 4, (5, 90))).astype(float)
    Z = Z[Z.any(axis=1)]
    with pytest.raises(NotSeparable, match="exactly") as caught:
        hard_margin(Z)
    assert np.count_nonzero(caught.value.certificate) <= 6


def test_low_rank_up_to_rounding_is_not_separable_to_rounding():
    rng = np.random.default_rng(10)
    Z = rng.standard_normal((400, 5)) @ rng.standard_normal((5, 90))
    with pytest.raises(NotSeparable, match="to rounding") as caught:
        hard_margin(Z)
    assert caught.value.residual <= 1e-14


@pytest.mark.parametrize("size", [1e-12, 1e-13, 1e-14, 1e-15])
def test_nothing_is_guessed_at_the_end_of_the_precision(size):
    """Too large for exact arithmetic: a verified answer, Undecided, or a combination that vanishes to 1e-14."""
    Z = flat(150, 50, size, seed=11)
    try:
        found = hard_margin(Z)
    except (NotSeparable, Undecided) as error:
        found = error
    if isinstance(found, NotSeparable):
        assert found.residual <= 1e-14
        assert "to rounding" in str(found)
    elif isinstance(found, Undecided):
        assert "could not be verified" in str(found)
    else:
        assert found.verified
        assert (Z @ found.w).min() > 0


def test_a_hundred_thousand_points():
    Z = teacher(100_000, 20, 12)
    found = hard_margin(Z)
    assert found.verified
    slack = Z @ found.w - 1
    assert slack.min() > -1e-13
    assert found.support.size <= 20


def images(minus, plus):
    try:
        return mnist((minus, plus), center=True)
    except DataError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("pair", "margin", "supports"), [((0, 1), 0.4154, 89), ((1, 7), 0.0737, 182)])
def test_images_of_two_digits(pair, margin, supports):
    data = images(*pair)
    found = max_margin(data)
    assert found.margin == pytest.approx(margin, abs=5e-5)  # four digits are known
    assert found.support.size == supports
    assert found.degenerate == ()
    assert found.verified


def test_images_that_no_plane_tells_apart():
    data = images(3, 8)
    with pytest.raises(NotSeparable) as caught:
        max_margin(data)
    weights = caught.value.certificate
    assert np.linalg.norm(weights @ data.signed) <= 1e-14 * (weights @ data.norms)
    assert np.count_nonzero(weights) <= 785
