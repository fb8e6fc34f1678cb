"""Extremal directions: closed forms, dense grids, a complete list of faces, ascent, equivariance, degenerate data."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from reluflow.problem import DataError, Dataset, ProblemError
from reluflow.sectors import G, G_derivative, class_sums, extremal_directions, sector
from reluflow.sectors import extremal as module
from reluflow.sectors.exact import as_integers, independent, null_vector, solve
from reluflow.sectors.strict import Judge
from reluflow.sectors.sweep import sweep
from reluflow.sectors.zonotope import nearest_point

EX1 = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
EX4 = Dataset([[1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 1]], [1, 1, -1, -1])
EX5 = Dataset([[1, 0], [0, 1]], [1, -1])
EX6 = Dataset([[1, 0], [np.sin(0.1), np.cos(0.1)]], [1, 1])


def enumerated(data, slope):
    """Maxima and minima by the enumeration, whatever the data would normally use."""
    up, missed_up = module._enumerate(data.X, data.y, slope, 10**6)
    down, missed_down = module._enumerate(data.X, -data.y, slope, 10**6)
    assert missed_up == missed_down == 0
    return up, module._negated(down)


def as_set(entries):
    return {(e.sector.tobytes(), tuple(np.round(e.direction, 9) + 0.0), round(e.value, 9) + 0.0) for e in entries}


# -- worked examples ------------------------------------------------------------------------------------


def test_worked_examples():
    up, down = extremal_directions(EX1, speed=0.5)
    assert up.value == pytest.approx(2.1213203436, abs=5e-11)
    assert down.value == pytest.approx(-2.6575364532, abs=5e-11)
    assert up.sector.tolist() == [1, 1, -1, -1]
    assert down.sector.tolist() == [-1, -1, 1, 1]
    up, down = extremal_directions(EX4, speed=0.5)
    assert up.direction == pytest.approx(np.array([2, 1, 0]) / np.sqrt(5))
    assert down.direction == pytest.approx(np.array([-1, 0, 2]) / np.sqrt(5))
    assert (up.value, down.value) == pytest.approx((1.1180339887, -1.1180339887), abs=5e-11)
    assert up.sector.tolist() == [1, 1, 0, -1]
    assert down.sector.tolist() == [-1, -1, 1, 1]
    up, down = extremal_directions(EX5)
    assert up.sector.tolist() == [1, 0]
    assert down.sector.tolist() == [0, 1]
    (only,) = extremal_directions(EX6)
    assert only.kind == "max"
    assert only.value == pytest.approx(1.4831273827, abs=5e-11)


@pytest.mark.parametrize("data", [EX1, EX4, EX5, EX6])
@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_three_ways_agree_on_the_worked_examples(data, slope):
    result = extremal_directions(data, slope)
    assert result.method == "closed form"
    assert result.complete
    up, down = enumerated(data, slope)
    assert as_set(up) == as_set(result.maxima)
    assert as_set(down) == as_set(result.minima)
    if data.d == 2:
        up, down = sweep(data.X, data.y, slope)
        assert as_set(up) == as_set(result.maxima)
        assert as_set(down) == as_set(result.minima)


def test_sliding_example():
    # x = (1,1)+, (2,0)-: neurons with a > 0 slide on the hyperplane of the second sample to (0, 1), where G' = (0, 1).
    result = extremal_directions(Dataset([[1, 1], [2, 0]], [1, -1]))
    (up,) = result.maxima
    assert up.direction.tolist() == [0, 1]
    assert up.value == 1
    assert up.sector.tolist() == [1, 0]


# -- orthogonally separable: one maximum, one minimum, the class sums ------------------------------------


def separable(rng, n, d=2):
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return Dataset((y[:, None] * np.abs(rng.standard_normal((n, d)))) @ q, y)


def test_exactly_two_in_the_plane_on_400_separable_sets():
    rng = np.random.default_rng(11)
    for k in range(400):
        data = separable(rng, 2 + k % 9)
        plus, minus = class_sums(data)
        for up, down in (sweep(data.X, data.y, 0.0), _lists(extremal_directions(data))):
            assert len(up) == len(down) == 1
            assert up[0].direction == pytest.approx(plus / np.linalg.norm(plus), abs=1e-12)
            assert down[0].direction == pytest.approx(minus / np.linalg.norm(minus), abs=1e-12)
            assert up[0].value == pytest.approx(np.linalg.norm(plus), rel=1e-12)
            assert down[0].value == pytest.approx(-np.linalg.norm(minus), rel=1e-12)


def _lists(result):
    assert result.complete
    return list(result.maxima), list(result.minima)


@pytest.mark.parametrize("slope", [0.0, 0.2, 0.9])
def test_closed_form_is_what_the_enumeration_finds(slope):
    rng = np.random.default_rng(12)
    for k in range(12):
        data = separable(rng, 2 + k % 7, d=3 + k % 2)
        result = extremal_directions(data, slope)
        assert result.method == "closed form"
        up, down = enumerated(data, slope)
        assert as_set(up) == as_set(result.maxima)
        assert as_set(down) == as_set(result.minima)


def test_leaky_closed_form_beyond_separability():
    # LL-A.2 holds although two signed points have a negative inner product.
    data = Dataset([[1, 0.1], [1, -0.1], [0.05, -1.0], [-1, 0.3], [-0.1, 1.1]], [1, 1, 1, -1, -1])
    assert (data.signed @ data.signed.T).min() < 0
    result = extremal_directions(data, 0.6)
    assert result.method == "closed form"
    up, down = sweep(data.X, data.y, 0.6)
    assert as_set(up) == as_set(result.maxima)
    assert as_set(down) == as_set(result.minima)
    assert up[0].direction == pytest.approx(_unit(class_sums(data)[0] - 0.6 * class_sums(data)[1]))


def _unit(v):
    return v / np.linalg.norm(v)


# -- the plane against a dense grid ----------------------------------------------------------------------


def grid_extrema(data, slope, count=200_000):
    """Angles of the strict maxima and minima of G on a fine grid, plateaus excluded."""
    angle = (np.arange(count) + 0.123) * 2 * np.pi / count
    values = G(data, np.column_stack([np.cos(angle), np.sin(angle)]), slope)
    before, after = np.roll(values, 1), np.roll(values, -1)
    return angle[(values > before) & (values > after)], angle[(values < before) & (values < after)]


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_sweep_against_a_dense_grid(slope):
    rng = np.random.default_rng(13)
    for k in range(25):
        n = 1 + k % 8
        data = Dataset(rng.standard_normal((n, 2)), rng.choice([-1.0, 1.0], n))
        found = sweep(data.X, data.y, slope)
        for entries, angles in zip(found, grid_extrema(data, slope), strict=True):
            exact = np.sort([np.arctan2(e.direction[1], e.direction[0]) % (2 * np.pi) for e in entries])
            assert len(exact) == len(angles), (k, slope)
            # Neighbouring grid points are 3e-5 apart.
            assert np.abs(np.sort(angles) - exact).max(initial=0) < 4e-5
            for e in entries:
                assert float(G(data, e.direction, slope)) == pytest.approx(e.value, abs=1e-12)


def test_sweep_and_enumeration_agree_on_degenerate_points():
    rng = np.random.default_rng(14)
    seen = 0
    while seen < 60:
        n = int(rng.integers(1, 7))
        X = rng.integers(-2, 3, (n, 2)).astype(float)
        y = rng.choice([-1.0, 1.0], n)
        try:
            data = Dataset(X, y)
        except DataError:  # a zero point, or one point with both labels
            continue
        seen += 1
        for slope in (0.0, 0.25):
            for one, two in zip(sweep(X, y, slope), enumerated(data, slope), strict=True):
                assert as_set(one) == as_set(two)


# -- three dimensions: all faces, and ascent -------------------------------------------------------------


def all_sectors(X):
    """Sectors of all faces of an arrangement of full rank: every face holds a sum of at most d of its rays."""
    points = as_integers(X)[0]
    d = X.shape[1]
    rays = set()
    for chosen in combinations(range(len(X)), d - 1):
        ray = null_vector(points[list(chosen)])
        if ray is not None:
            rays |= {tuple(ray), tuple(-ray)}
    arrays = [np.array(r, dtype=object) for r in rays]
    return {
        np.sign(points @ sum(some)).astype(np.int8).tobytes()
        for k in range(1, d + 1)
        for some in combinations(arrays, k)
        if any(sum(some))
    }


def test_enumeration_misses_no_face():
    # Small integers: many samples on one hyperplane, in one plane, opposite to each other.
    rng = np.random.default_rng(15)
    seen = nonpositive = 0
    while seen < 40:
        n = int(rng.integers(3, 6))
        X = rng.integers(-2, 3, (n, 3)).astype(float)
        y = rng.choice([-1.0, 1.0], n)
        if not X.any(axis=1).all() or np.linalg.matrix_rank(X) < 3 or len(np.unique(X, axis=0)) < n:
            continue
        seen += 1
        sectors = all_sectors(X)
        for slope in (0.0, 0.25):
            for sign, found in zip((1, -1), enumerated(Dataset(X, y), slope), strict=True):
                judge = Judge(X, sign * y, slope)
                want = {p for p in sectors if judge.maxima(np.frombuffer(p, dtype=np.int8))}
                assert {e.sector.tobytes() for e in found} == want
                nonpositive += sum(sign * e.value <= 0 for e in found)
    assert nonpositive > 0  # the rays that catch are among them


@pytest.mark.parametrize("noise", [1e-6, 1e-8, 1e-10])
def test_nearly_degenerate_points(noise):
    # Integers moved a little: what was on a hyperplane is now next to it, and values are as small as the noise.
    rng = np.random.default_rng(16)
    seen = 0
    while seen < 12:
        n = int(rng.integers(3, 6))
        X = rng.integers(-1, 2, (n, 3)).astype(float)
        y = rng.choice([-1.0, 1.0], n)
        if not X.any(axis=1).all():
            continue
        seen += 1
        X += noise * rng.standard_normal(X.shape)
        sectors = all_sectors(X)
        for sign, found in zip((1, -1), enumerated(Dataset(X, y), 0.0), strict=True):
            judge = Judge(X, sign * y, 0.0)
            want = {p for p in sectors if judge.maxima(np.frombuffer(p, dtype=np.int8))}
            assert {e.sector.tobytes() for e in found} == want


def test_a_maximum_that_is_all_but_zero():
    X = [[-9.12e-10, 1.00000000038, 1.00000000017], [-1.242e-9, 1.00000000155, 1.00000000109], [-8.6e-10, -1.0, -1.0]]
    data = Dataset(X, [1, -1, -1])
    (top,) = [e for e in extremal_directions(data).maxima if e.value > 0]
    assert top.sector.tolist() == [1, 0, -1]
    # With only the second sample on its hyperplane: the length of the first without its part along the second.
    a, b = data.X[0], data.X[1]
    assert top.value == pytest.approx(np.linalg.norm(np.cross(a, b)) / np.linalg.norm(b), rel=1e-6)


def rises(data, u, slope, rng, sign, count=4000):
    """Largest sign * (G(w) - G(u)) over random unit w at small distances of u."""
    v = rng.standard_normal((count, data.d))
    v /= np.linalg.norm(v, axis=1)[:, None]
    w = u + v * 10.0 ** rng.uniform(-5, -3, (count, 1))
    w /= np.linalg.norm(w, axis=1)[:, None]
    return float((sign * (G(data, w, slope) - G(data, u, slope))).max())


def small_step_ascent(data, slope, W):
    """Projected ascent on the sphere with shrinking steps: nothing in common with the solver but G."""
    for step in 0.2 * 0.4 ** np.arange(8):
        for _ in range(600):
            z = W @ data.X.T
            force = (np.where(z > 0, 1.0, slope) * data.y) @ data.X
            force -= np.einsum("kd,kd->k", force, W)[:, None] * W
            W = W + step * force / np.linalg.norm(data.norms)
            W /= np.linalg.norm(W, axis=1)[:, None]
    return W


@pytest.mark.parametrize(("slope", "seed"), [(0.0, 0), (0.0, 1), (0.3, 2), (0.3, 3)])
def test_three_dimensions_against_ascent_and_perturbation(slope, seed):
    rng = np.random.default_rng(seed)
    data = Dataset(rng.standard_normal((9, 3)), rng.choice([-1.0, 1.0], 9))
    result = extremal_directions(data, slope)
    assert result.method == "enumeration"
    assert result.complete
    assert len(result) > 0
    for e in result:
        assert rises(data, e.direction, slope, rng, 1 if e.kind == "max" else -1) < 1e-15
        assert float(G(data, e.direction, slope)) == pytest.approx(e.value, abs=1e-12)
    starts = rng.standard_normal((60, 3))
    starts /= np.linalg.norm(starts, axis=1)[:, None]
    for ends, entries, labelled in (
        (small_step_ascent(data, slope, starts), result.maxima, data),
        (small_step_ascent(data.flipped(), slope, starts), result.minima, data.flipped()),
    ):
        dead = ~(ends @ data.X.T > 1e-9).any(axis=1) & (slope == 0)
        moving = ~dead
        known = np.array([e.direction for e in entries]).reshape(-1, 3)
        # The last steps are 3e-4 of the force: that is how far from a kink they end.
        close = (ends[moving] @ known.T).max(axis=1, initial=-1) > 1 - 1e-6
        assert close.all(), (labelled, ends[moving][~close])


def test_ascent_finds_only_members_of_the_complete_list():
    rng = np.random.default_rng(21)
    for slope in (0.0, 0.4):
        data = Dataset(rng.standard_normal((14, 4)), rng.choice([-1.0, 1.0], 14))
        complete = extremal_directions(data, slope)
        some = extremal_directions(data, slope, budget=0, starts=40)
        assert complete.complete
        assert not some.complete
        assert some.method == "ascent"
        assert some.starts == 40
        assert as_set(some) <= as_set(complete)
        assert len(some.maxima) > 0
        for group in (some.maxima, some.minima):
            assert 0 < sum(e.hits for e in group) <= 40
        best = max(e.value for e in complete)
        assert max(e.value for e in some) == pytest.approx(best, rel=1e-12)


def test_large_problem_by_ascent():
    rng = np.random.default_rng(22)
    data = Dataset(rng.standard_normal((60, 12)), rng.choice([-1.0, 1.0], 60))
    result = extremal_directions(data, starts=6)
    assert result.method == "ascent"
    assert result.unresolved == 0
    for e in result:
        assert rises(data, e.direction, 0.0, rng, 1 if e.kind == "max" else -1) < 1e-14


# -- equivariance ---------------------------------------------------------------------------------------


@st.composite
def labelled(draw, d):
    point = st.tuples(*d * [st.integers(-3, 3)]).filter(any)
    X = np.unique(np.array(draw(st.lists(point, min_size=1, max_size=5)), dtype=float), axis=0)
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=len(X), max_size=len(X))))
    return Dataset(X, y), draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])), draw(st.integers(0, 2**32 - 1))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3).flatmap(labelled))
def test_label_flip_scaling_and_permutations(case):
    data, slope, seed = case
    rng = np.random.default_rng(seed)
    result = extremal_directions(data, slope)
    assert result.complete
    flipped = extremal_directions(data.flipped(), slope)
    assert as_set(flipped.minima) == {(s, u, -v + 0.0) for s, u, v in as_set(result.maxima)}
    assert as_set(flipped.maxima) == {(s, u, -v + 0.0) for s, u, v in as_set(result.minima)}
    scaled = extremal_directions(Dataset(4 * data.X, data.y), slope)
    assert as_set(scaled) == {(s, u, round(4 * e.value, 9) + 0.0) for e in result for s, u, _ in as_set([e])}
    rows, axes, mirror = rng.permutation(data.n), rng.permutation(data.d), rng.choice([-1.0, 1.0], data.d)
    moved = extremal_directions(Dataset(data.X[rows][:, axes] * mirror, data.y[rows]), slope)
    want = {
        (e.kind, e.sector[rows].tobytes(), tuple(np.round(e.direction[axes] * mirror, 9) + 0.0), round(e.value, 9))
        for e in result
    }
    assert {
        (e.kind, e.sector.tobytes(), tuple(np.round(e.direction, 9) + 0.0), round(e.value, 9)) for e in moved
    } == want


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 4), st.integers(2, 8), st.sampled_from([0.0, 0.3]), st.integers(0, 2**32 - 1))
def test_rotation(d, n, slope, seed):
    rng = np.random.default_rng(seed)
    data = Dataset(rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n))
    q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    one, two = extremal_directions(data, slope), extremal_directions(Dataset(data.X @ q, data.y), slope)
    assert one.complete
    assert two.complete
    assert len(one) == len(two)
    there = {(e.kind, e.sector.tobytes()): e for e in two}
    for e in one:
        twin = there[e.kind, e.sector.tobytes()]
        assert e.direction @ q == pytest.approx(twin.direction, abs=1e-9)
        assert e.value == pytest.approx(twin.value, abs=1e-9)


@settings(deadline=None, max_examples=80)
@given(st.integers(2, 3).flatmap(labelled))
def test_first_order_conditions_hold_exactly(case):
    # G'(u; v) <= 0 in tangent directions at a maximum, checked where u is a small integer vector and so exact.
    data, slope, seed = case
    rng = np.random.default_rng(seed)
    for e in extremal_directions(data, slope):
        top = np.abs(e.direction).max()
        u = np.round(e.direction / top * 720720)
        if not np.array_equal(sector(data, u), e.sector):
            continue
        for v in rng.integers(-3, 4, (20, data.d)):
            tangent = v * (u @ u) - (v @ u) * u
            change = G_derivative(data, u, tangent, slope)
            sign = 1 if e.kind == "max" else -1
            assert sign * change <= 1e-6 * np.abs(tangent).max() * data.norms.sum()


# -- degenerate data ------------------------------------------------------------------------------------


def test_linear_network():
    rng = np.random.default_rng(31)
    data = Dataset(rng.standard_normal((9, 5)), rng.choice([-1.0, 1.0], 9))
    up, down = extremal_directions(data, 1.0)
    total = data.signed.sum(axis=0)
    assert up.direction == pytest.approx(_unit(total))
    assert down.direction == pytest.approx(-_unit(total))
    assert up.value == pytest.approx(np.linalg.norm(total))
    cancelling = Dataset([[0.1, 0.7], [-0.1, -0.7], [1, 0], [1.0, 0.0]], [1, 1, 1, 1]).subset([0, 1])
    assert len(extremal_directions(cancelling, 1.0)) == 0
    assert extremal_directions(cancelling, 1.0).complete


def test_linear_network_with_a_sum_that_is_no_double():
    # The sum is (1, 2^-80 + 3e-17): which side of it the second sample is on cannot be seen from the rounded sum.
    data = Dataset([[1, 2.0**-80], [2.0**-80, -1.0], [-(2.0**-81), 1.0 + 2.0**-52]], [1, 1, 1])
    up, _ = extremal_directions(data, 1.0)
    assert up.sector.tolist() == sector_of_exact_sum(data)


def sector_of_exact_sum(data):
    rows = [[Fraction(v) for v in row] for row in data.signed.tolist()]
    total = [sum(column) for column in zip(*rows, strict=True)]
    inner = [sum(Fraction(v) * t for v, t in zip(row, total, strict=True)) for row in data.X.tolist()]
    return [(v > 0) - (v < 0) for v in inner]


def test_one_dimension():
    # As if the line lay in a plane.
    for slope in (0.0, 0.25, 1.0):
        for X, y in ([[2.0], [-3.0], [1.0]], [1, -1, -1]), ([[2.0], [-1.0]], [1, 1]), ([[1.0]], [-1]):
            line = extremal_directions(Dataset(X, y), slope)
            plane = extremal_directions(Dataset(np.column_stack([X, np.zeros(len(X))]), y), slope)
            in_plane = {
                (e.kind, *np.round(e.direction, 9), e.value)
                for e in plane
                if e.value * (1 if e.kind == "max" else -1) > 0
            }
            assert {(e.kind, *e.direction, 0.0, e.value) for e in line} == in_plane
            assert line.complete


def test_single_sample():
    (up,) = extremal_directions(Dataset([[3.0, 4.0]], [1]))
    assert up.value == 5
    (down,) = extremal_directions(Dataset([[3.0, 4.0]], [-1]))
    assert (down.kind, down.value) == ("min", -5)
    up, down = extremal_directions(Dataset([[3.0, 4.0]], [1]), 0.5)
    assert (up.value, down.value) == (5, -2.5)


def test_duplicates_count_as_often_as_they_occur():
    rng = np.random.default_rng(32)
    X, y = rng.standard_normal((4, 3)), np.array([1.0, -1.0, -1.0, 1.0])
    twice = extremal_directions(Dataset(np.vstack([X, X[1:2]]), np.append(y, y[1])))
    heavy = X.copy()
    heavy[1] *= 2
    once = extremal_directions(Dataset(heavy, y))
    assert [e.value for e in twice] == pytest.approx([e.value for e in once])
    for one, two in zip(twice, once, strict=True):
        assert one.direction == pytest.approx(two.direction)


def test_collinear_samples_of_both_labels():
    # On the line of x_1 the labels cancel to a single kink of weight |x_1| - |x_2|.
    data = Dataset([[1, 0], [3, 0], [0, 1]], [1, -1, 1])
    same = Dataset([[2, 0], [0, 1]], [-1, 1])
    one, two = extremal_directions(data), extremal_directions(same)
    assert [(e.kind, e.value) for e in one] == [(e.kind, e.value) for e in two]


def test_samples_orthogonal_to_everything():
    data = Dataset([[1, 0, 0], [0, 1, 0], [-1, -1, 0], [0, 0, 1]], [-1, -1, -1, 1])
    result = extremal_directions(data)
    assert result.complete
    # Along the last axis only the positive sample acts; off it the negative ones pull down in every direction.
    (top,) = [e for e in result.maxima if e.value > 0]
    assert top.direction.tolist() == [0, 0, 1]
    assert top.sector.tolist() == [0, 0, 0, 1]
    # In the opposite direction everything is at its kink and G = 0 is a strict maximum: a ray that catches.
    bottom = [e for e in result.maxima if e.value <= 0]
    assert [e.direction.tolist() for e in bottom] == [[0, 0, -1]]


def test_two_opposite_maxima_with_the_same_sector():
    data = Dataset([[1, 0, 0], [-1, 1, 0], [-1, -1, 0]], [-1, -1, -1])
    maxima = extremal_directions(data).maxima
    assert sorted(tuple(e.direction) for e in maxima) == [(0, 0, -1), (0, 0, 1)]
    assert [e.value for e in maxima] == [0, 0]
    assert not any(e.sector.any() for e in maxima)


def test_plateaus_are_not_extremal():
    # One class and ReLU: the minimum 0 is taken on the whole dead region.
    rng = np.random.default_rng(33)
    data = Dataset(np.abs(rng.standard_normal((5, 2))), np.ones(5))
    assert extremal_directions(data).minima == ()
    assert sweep(data.X, data.y, 0.0)[1] == []


@pytest.mark.parametrize(
    ("shift", "there"), [(-(2.0**-40), False), (0.0, True), (2.0**-40, True), (1.0, True), (1 + 2.0**-52, False)]
)
def test_maximum_at_the_end_of_its_interval(shift, there):
    # At u = (1, 0), on the hyperplane of the second sample, G along +-e_2 has slopes shift - 1 and -shift: no rounding.
    data = Dataset([[1, shift], [0, 1]], [1, -1])
    for up, _ in (sweep(data.X, data.y, 0.0), enumerated(data, 0.0)):
        assert any(e.sector.tolist() == [1, 0] for e in up) is there


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_extreme_sizes(size):
    rng = np.random.default_rng(34)
    X, y = rng.standard_normal((6, 3)), np.array([1.0, 1, 1, -1, -1, -1])
    plain, scaled = extremal_directions(Dataset(X, y)), extremal_directions(Dataset(size * X, y))
    assert scaled.complete
    assert [e.kind for e in plain] == [e.kind for e in scaled]
    for one, two in zip(plain, scaled, strict=True):
        assert one.direction == pytest.approx(two.direction, abs=1e-12)
        assert one.value * size == pytest.approx(two.value, rel=1e-12)


@pytest.mark.parametrize("decades", [4, 8, 12])
def test_samples_of_very_different_sizes(decades):
    rng = np.random.default_rng(35)
    for _ in range(4):
        X = rng.standard_normal((5, 3)) * 10.0 ** rng.uniform(0, decades, (5, 1))
        y = rng.choice([-1.0, 1.0], 5)
        sectors = all_sectors(X)
        for sign, found in zip((1, -1), enumerated(Dataset(X, y), 0.0), strict=True):
            judge = Judge(X, sign * y, 0.0)
            want = {p for p in sectors if judge.maxima(np.frombuffer(p, dtype=np.int8))}
            assert {e.sector.tobytes() for e in found} == want


def test_refusals():
    with pytest.raises(ProblemError, match="Dataset"):
        extremal_directions([[1, 2]])
    for bad in ({"budget": -1}, {"starts": 0}, {"seed": -1}, {"budget": 2.5}, {"starts": True}):
        with pytest.raises(ProblemError, match=next(iter(bad))):
            extremal_directions(EX1, **bad)
    with pytest.raises(ProblemError, match="slope"):
        extremal_directions(EX1, 2)


def test_it_is_a_sequence():
    result = extremal_directions(EX1)
    assert len(result) == 2
    assert result[0] is next(iter(result))
    assert result[:1] == result.maxima


# -- the parts ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 5), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_nearest_point_against_bounded_least_squares(d, m, seed):
    rng = np.random.default_rng(seed)
    b, g = 2 * rng.standard_normal(d), rng.standard_normal((m, d))
    found = nearest_point(b, g)
    want = np.linalg.norm(b)
    if m:
        h = lsq_linear(g.T, b, (0, 1), method="bvls", tol=1e-14).x
        want = np.linalg.norm(b - np.clip(h, 0, 1) @ g)
    assert np.linalg.norm(found.point) == pytest.approx(want, abs=1e-9)
    assert ((found.h >= -1e-12) & (found.h <= 1 + 1e-12)).all()
    if want > 1e-6:
        # Optimality: no point of the zonotope is further in the direction of -z.
        z = found.point
        assert found.clear
        assert b @ z - np.maximum(g @ z, 0).sum() == pytest.approx(z @ z, abs=1e-10)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_integer_algebra(size, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-5, 6, (size, size)).astype(object)
    right = rng.integers(-5, 6, size).astype(object)
    if len(independent(matrix)) == size:
        numbers, denominator = solve(matrix, right)
        assert denominator > 0
        assert (matrix @ numbers == denominator * right).all()
    assert len(independent(matrix)) == np.linalg.matrix_rank(matrix.astype(float))
    values = rng.standard_normal(5) * 10.0 ** rng.integers(-200, 200, 5).astype(float)
    integers, exponent = as_integers(values)
    assert [Fraction(int(k)) * Fraction(2) ** exponent for k in integers] == [Fraction(v) for v in values.tolist()]
