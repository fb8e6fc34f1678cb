"""Cones, the dead cone with its certificates, and the alignment constants: worked examples and random data."""

from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow.problem import DataError, Dataset, Network, Problem, ProblemError
from reluflow.sectors import (
    alignment_constants,
    class_sectors,
    class_sums,
    cones_of,
    cones_of_patterns,
    dead_cone,
    driving_cone,
    harmonic_factor,
    initial_gap,
    is_orthogonally_separable,
    smallest_cosine,
)

TWO = [1, 1, -1, -1]
EX = {
    1: Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], TWO),
    2: Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1]),
    3: Dataset([[3, 1, 0], [0, 2, 1], [1, 0, 2], [-2, 0, -1], [-1, -3, 0], [0, -1, -2]], [1, 1, 1, -1, -1, -1]),
    4: Dataset([[1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 1]], TWO),
    5: Dataset([[1, 0], [0, 1]], [1, -1]),
    6: Dataset([[1, 0], [np.sin(0.1), np.cos(0.1)]], [1, 1]),
    7: Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2]], TWO),
    9: Dataset([[1, 0], [0, 1]], [1, 1]),
    10: Dataset([[1, 0], [-1, 1]], [1, -1]),
}


def where(data, w):
    cones = cones_of(data, w)
    names = {"+": cones.plus, "-": cones.minus, "dead": cones.dead}
    return {name for name, flag in names.items() if flag}


MEMBERSHIP = [
    (1, (1, 0), {"+"}),
    (1, (1, 1), {"+"}),
    (1, (-1, -1), {"-"}),
    (1, (-1, 1), set()),
    (1, (1, -1), set()),
    (1, (2, -1), set()),
    (1, (-2.5, 1), set()),
    (1, (0, 0), {"dead"}),
    (2, (1, 0), {"+"}),
    (2, (1, 1), {"+"}),
    (2, (0, 1), set()),
    (2, (-1, 1), {"-"}),
    (2, (-1, 2), {"-"}),
    (2, (1, -2), set()),
    (2, (-1, -1), {"dead"}),
    (2, (-1, -2), {"dead"}),
    (2, (0, -1), {"dead"}),
    (3, (1, 1, 1), {"+"}),
    (3, (-1, -1, -1), {"-"}),
    (3, (1, -1, 0), set()),
    (3, (0, 0, 1), set()),
    (4, (2, 1, -1), {"+"}),
    (4, (2, 1, 1), set()),
    (4, (-1, -1, -1), {"dead"}),
    (5, (1, -1), {"+"}),
    (5, (-1, 1), {"-"}),
    (5, (1, 1), set()),
    (5, (-1, -1), {"dead"}),
    (6, (1, -0.05), {"+"}),
    (6, (1, -0.2), set()),
    (6, (-1, -1), {"-", "dead"}),
    (9, (1, 1), {"+"}),
    (9, (1, 0), set()),
    (9, (1, -1), set()),
    (9, (-1, -1), {"-", "dead"}),
    (10, (1, 1), {"+"}),
    (10, (0, 1), {"-"}),
    (10, (0, -1), {"dead"}),
    (10, (-1, -1), {"dead"}),
    (10, (1, 2), set()),
]


@pytest.mark.parametrize(("example", "w", "want"), MEMBERSHIP)
def test_membership_of_the_worked_examples(example, w, want):
    assert where(EX[example], w) == want


def test_membership_of_many_at_once():
    cones = cones_of(EX[2], [[1, 1], [0, 1], [-1, 2], [-1, -1]])
    assert cones.plus.tolist() == [True, False, False, False]
    assert cones.none.tolist() == [False, True, False, False]


# -- the dead cone --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "trivial"), [(1, True), (2, False), (4, False), (5, False), (6, False), (10, False)]
)
def test_dead_cone_of_the_worked_examples(example, trivial):
    assert dead_cone(EX[example]).trivial is trivial


def proves(data, cone):
    """Check the certificate in rational arithmetic, independently of how it was found."""
    X = [[Fraction(v) for v in row] for row in data.X.tolist()]
    if not cone.trivial:
        z = cone.integers
        inner = [sum(a * b for a, b in zip(row, z, strict=True)) for row in X]
        return any(z) and all(v <= 0 for v in inner) and np.linalg.norm(cone.witness) == pytest.approx(1)
    inside = cone.weights > 0
    close = np.abs(cone.weights @ data.X).max() <= 1e-12 * (cone.weights @ data.norms)
    return close and np.linalg.matrix_rank(data.X[inside]) == data.d and inside.sum() > data.d


@st.composite
def points(draw, top=3):
    d = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*d * [st.integers(-top, top)]).filter(any), min_size=1, max_size=7))
    X = np.unique(np.array(rows, dtype=float), axis=0)
    y = draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=len(X), max_size=len(X)))
    return Dataset(X, y)


@settings(deadline=None, max_examples=120)
@given(points())
def test_dead_cone_is_decided_on_degenerate_data(data):
    # Integer points: many dependent, opposite and coinciding directions, where dead vectors have no room.
    cone = dead_cone(data)
    assert proves(data, cone)
    # A second way: a dead vector exists iff one lies on a ray of the arrangement or orthogonal to everything.
    grid = [np.array(v) for v in product(range(-18, 19), repeat=data.d) if any(v)] if data.d < 3 else []
    for pair in combinations(data.X, 2):
        if data.d == 3:
            grid += [np.cross(*pair), -np.cross(*pair)]
    some = any(v.any() and (data.X @ v <= 0).all() for v in grid)
    if np.linalg.matrix_rank(data.X) == data.d or data.d < 3:
        assert cone.trivial is not some
    else:
        assert not cone.trivial


def test_a_dead_line_without_doubles_on_it():
    # x and -x with entries 0.1, 0.3: only multiples of (0.3, -0.1), rounded differently, are dead.
    data = Dataset([[0.1, 0.3], [-0.1, -0.3]], [1, -1])
    cone = dead_cone(data)
    assert proves(data, cone)


def test_dead_cone_in_higher_dimension():
    rng = np.random.default_rng(0)
    simplex = np.vstack([np.eye(6), -np.ones(6)]) + 0.01 * rng.standard_normal((7, 6))
    assert dead_cone(Dataset(simplex, [1, 1, 1, -1, -1, -1, -1])).trivial
    assert not dead_cone(Dataset(simplex[:6], [1, 1, 1, -1, -1, -1])).trivial
    many = rng.standard_normal((300, 20))
    many[:, 0] += 20.0
    cone = dead_cone(Dataset(many, rng.choice([-1.0, 1.0], 300)))
    assert not cone.trivial
    assert (many @ cone.witness < 0).all()
    many[:, 0] -= 20.0
    assert dead_cone(Dataset(many, rng.choice([-1.0, 1.0], 300))).trivial


# -- constants ------------------------------------------------------------------------------------------


def digits(value, text):
    """Equal to the digits given; a whole number or a short fraction is meant exactly."""
    places = len(text.split(".")[1]) if "." in text else 0
    return abs(value - float(text)) <= (0.5000001 * 10.0**-places if places > 4 else 1e-12)


def test_constants_of_example_1():
    net = Network.balanced([[1, 0], [0, 2], [-1, 1], [1, -2]], [1, 1, -1, -1])
    k = alignment_constants(EX[1], net)
    wanted = {
        "mu": "0.6459422415",
        "x_min": "2.2360679775",
        "x_max": "3.1622776602",
        "xi": "0.4172413793",
        "zeta_1_plus": "0.8",
        "zeta_1_minus": "0.7937137626",
        "zeta_2": "1",
        "c": "0.4172413793",
        "t_1": "29.58054843",
        "t_1_h": "16.00339145",
        "t_1_sharp": "6.705863713",
        "output_bound": "0.0148200352",
    }
    for name, text in wanted.items():
        assert digits(getattr(k, name), text), name
    assert k.h == 3
    for active, text in enumerate(("5.334463816", "2.667231908", "1.778154605", "1.333615954"), 1):
        assert digits(k.dwell(active), text)
    for active, text in enumerate(("2.235287904", "1.117643952", "0.7450959681", "0.5588219761"), 1):
        assert digits(k.dwell_sharp(active), text)
    plus, minus = class_sums(EX[1])
    assert plus.tolist() == [3, 3]
    assert minus.tolist() == [-4, -3.5]
    # ML-EPS with these constants: the two terms printed for p = 4, W_max^2 = 5.
    assert k.c * np.sqrt(k.mu) * k.x_min / (4 * 2 * 4 * k.x_max**2 * 5) == pytest.approx(4.686506622e-4, rel=1e-9)
    assert -np.log(2) - 4 * 4 * k.x_max * k.t_1 == pytest.approx(-1497.363667, abs=1e-6)


OTHERS = [
    (2, {"mu": "0.3162277660", "x_min": "1", "x_max": "2.2360679775", "zeta_1_plus": "0.2", "zeta_1_minus": "0.1",
         "xi": "0.1", "t_1": "312.582338", "t_1_h": "177.827941", "t_1_sharp": "32.33705897"}),
    (3, {"mu": "0.1414213562", "xi": "0.02", "zeta_1_plus": "0.4764705882", "zeta_1_minus": "0.4764705882",
         "t_1": "1704.618487", "t_1_sharp": "48.21424407"}),
    (6, {"mu": "0.0998334166", "xi": "0.0099667111", "t_1": "3521.726357", "t_1_sharp": "56.87159190"}),
    (7, {"mu": "0.7071067812"}),
    (10, {"mu": "0.7071067812", "zeta_1_plus": "0.5", "zeta_1_minus": "0.5", "t_1": "26.37745788",
          "t_1_sharp": "6.288814444"}),
]  # fmt: skip


@pytest.mark.parametrize(("example", "wanted"), OTHERS)
def test_constants_of_the_other_examples(example, wanted):
    k = alignment_constants(EX[example])
    for name, text in wanted.items():
        assert digits(getattr(k, name), text), name
    assert k.zeta_1 >= k.mu**2 * (1 - 1e-12)


def test_nearly_orthogonal_pair_of_example_6():
    data = Dataset([[1, 0], [np.sin(0.001), np.cos(0.001)]], [1, 1])
    k = alignment_constants(data)
    assert digits(k.mu, "0.0009999998")
    assert k.t_1 == pytest.approx(350707961.2, abs=0.05)
    assert digits(k.t_1_sharp, "1442.169947")


def test_class_sectors_of_the_worked_examples():
    for example, plus, minus in [
        (1, [1, 1, -1, -1], [-1, -1, 1, 1]),
        (4, [1, 1, 0, -1], [-1, -1, 1, 1]),
        (5, [1, 0], [0, 1]),
    ]:
        found = class_sectors(EX[example])
        assert [s.tolist() for s in found] == [plus, minus]
    assert class_sectors(EX[6])[0].tolist() == [1, 1]
    with pytest.raises(DataError, match="samples 0 and 1"):
        class_sectors(EX[9])


def test_no_bounds_without_a_gap():
    for example in (4, 5, 9):
        k = alignment_constants(EX[example])
        assert k.mu == 0
        assert not k.applies
        assert k.t_1 == k.t_1_h == k.t_1_sharp == k.dwell(1) == k.dwell_sharp(2) == np.inf
    below = alignment_constants(Dataset([[1, 0], [1, 1]], [1, -1]))
    assert below.mu == pytest.approx(-np.sqrt(0.5))
    assert below.xi == below.c == below.zeta_1_plus == 0


def test_single_sample():
    k = alignment_constants(Dataset([[3.0, 4.0]], [-1]))
    assert (k.mu, k.pair, k.h, k.zeta_1_plus) == (1.0, (0, 0), 1.0, 1.0)
    assert k.t_1 == k.t_1_h == 4 / 5  # log n = 0 is no bound; h = 1
    assert k.t_1_sharp == 0  # c = 1: no neuron outside the cones


def test_conversion_to_the_clock_of_a_problem():
    problem = Problem(EX[1], Network([[1.0, 0.0]], [1.0]))
    k = alignment_constants(EX[1])
    mine = k.in_clock(problem.speed)
    assert mine.t_1 == pytest.approx(k.t_1 * 8, rel=1e-15)
    assert mine.dwell(2) == pytest.approx(k.dwell(2) * 8, rel=1e-15)
    assert mine.in_clock(1.0).t_1_sharp == pytest.approx(k.t_1_sharp, rel=1e-15)
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ProblemError, match="speed"):
            k.in_clock(bad)
    with pytest.raises(ProblemError, match="from 1 to n = 4"):
        k.dwell(5)


def longest_path(n_plus, n_minus):
    """Largest sum of 1/(number of active samples) over the stays of a neuron with a_j > 0, by trying all orders.

    It loses negative and gains positive samples one at a time until only the positives are active, or none.
    """

    @cache
    def rest(gained, lost):
        active = gained + n_minus - lost
        if active == 0 or (gained == n_plus and lost == n_minus):
            return 0.0
        steps = [rest(gained + 1, lost)] if gained < n_plus else []
        steps += [rest(gained, lost + 1)] if lost < n_minus else []
        return 1.0 / active + max(steps)

    return max(rest(gained, lost) for gained in range(n_plus + 1) for lost in range(n_minus + 1))


@pytest.mark.parametrize("n_plus", range(7))
def test_harmonic_factor_is_the_worst_order_of_events(n_plus):
    for n_minus in range(n_plus == 0, 7):
        worst = max(longest_path(n_plus, n_minus), longest_path(n_minus, n_plus))
        assert harmonic_factor(n_plus, n_minus) == pytest.approx(worst, rel=1e-14)


@settings(deadline=None, max_examples=60)
@given(points(), st.integers(0, 2**32 - 1))
def test_smallest_cosine_is_the_minimum_and_its_sign_is_exact(data, seed):
    value, (i, j) = smallest_cosine(data)
    units = data.signed / data.norms[:, None]
    gram = units @ units.T
    np.fill_diagonal(gram, 1.0)
    assert value == pytest.approx(gram.min(), abs=1e-14)
    assert gram[i, j] == pytest.approx(value, abs=1e-14)
    exact = (data.signed @ data.signed.T)[np.triu_indices(data.n, 1)].min(initial=1.0)  # integers: exact
    assert np.sign(value) == np.sign(exact)
    assert (value > 0) == is_orthogonally_separable(data, strict=True)


def test_smallest_cosine_across_blocks_and_at_a_hair():
    rng = np.random.default_rng(0)
    data = Dataset(np.abs(rng.standard_normal((50, 5))), np.ones(50))
    assert smallest_cosine(data, block=7) == smallest_cosine(data)
    hair = Dataset([[1, 1], [1, -1 + 2**-53]], [1, 1])
    value, pair = smallest_cosine(hair)
    assert 0 < value < 1e-15
    assert pair == (0, 1)
    assert smallest_cosine(Dataset([[1, 1], [1, -1 - 2**-52]], [1, 1]))[0] < 0


def test_start_on_the_repelling_ray():
    # ML-A2: s = +1 on the ray of the negative class sum; exactly, nearly, and with the harmless sign.
    exactly = Network([[-3.0, 3.0], [1.0, 0.0]], [1.0, 1.0])
    assert initial_gap(EX[2], exactly) == 0
    assert not alignment_constants(EX[2], exactly).applies
    assert initial_gap(EX[2], Network([[-1.0, 1.0 + 1e-9]], [1.0])) == pytest.approx(2.5e-19, rel=1e-6)
    assert initial_gap(EX[2], Network([[-1.0, 1.0]], [-1.0])) == 1.0
    assert initial_gap(EX[2], Network([[3.0, 1.0]], [-1.0])) == 0
    # The class sum itself is not a double here; its exact direction is that of x_1 = (0.1, 0.7).
    thirds = Dataset([[-0.1, -0.7], [-0.1 * 2**-60, -0.7 * 2**-60], [1.0, 1.0]], [-1, -1, 1])
    assert initial_gap(thirds, Network([[-0.1, -0.7]], [1.0])) == 0
    assert initial_gap(thirds, Network([[-0.1, -np.nextafter(0.7, 1)]], [1.0])) > 0


def test_zeta_2_of_one_neuron_is_the_squared_sine():
    rng = np.random.default_rng(5)
    for _ in range(20):
        w = rng.standard_normal(2)
        minus = class_sums(EX[1])[1]
        cosine = max(0.0, w @ minus / np.linalg.norm(w) / np.linalg.norm(minus))
        assert initial_gap(EX[1], Network([w], [1.0])) == pytest.approx(1 - cosine**2, abs=1e-12)


def test_caps_and_the_driving_cone_on_random_data():
    # ML-L5, L7, L8, L9, L11 on random strictly separable data, by sampling.
    rng = np.random.default_rng(7)
    checked = 0
    while checked < 15:
        d, n = int(rng.integers(2, 5)), int(rng.integers(2, 7))
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = y[:, None] * (np.abs(rng.standard_normal((n, d))) + 0.05)
        data = Dataset(X, y)
        checked += 1
        k = alignment_constants(data)
        plus, minus = class_sums(data)
        for total, zeta, side in ((plus, k.zeta_1_plus, "plus"), (minus, k.zeta_1_minus, "minus")):
            unit = total / np.linalg.norm(total)
            z = rng.standard_normal((500, d))
            z -= np.outer(z @ unit, unit)
            z /= np.linalg.norm(z, axis=1)[:, None]
            inside = np.sqrt(1 - zeta * (1 - 1e-9)) * unit + np.sqrt(zeta * (1 - 1e-9)) * z
            assert getattr(cones_of(data, inside), side).all()
        force = rng.random((200, n)) @ data.signed
        force /= np.linalg.norm(force, axis=1)[:, None]
        assert (force @ force.T >= k.mu - 1e-12).all()
        assert driving_cone(data, force[0])[1] < 1e-12
        assert driving_cone(data, -force[0])[1] > 0.1
        z = rng.standard_normal((500, d))
        outside = z[cones_of(data, z).plus == cones_of(data, z).minus]
        outside /= np.linalg.norm(outside, axis=1)[:, None]
        assert (np.abs(outside @ force.T) <= np.sqrt(1 - k.xi) + 1e-12).all()


def test_the_cap_is_best_possible():
    # On the boundary of the cap of the tight example, and just outside it, in the direction of the worst sample.
    k = alignment_constants(EX[10])
    unit = class_sums(EX[10])[0]
    out = np.sqrt(1 - k.zeta_1_plus * 1.000001) * unit + np.sqrt(k.zeta_1_plus * 1.000001) * np.array([0.0, 1.0])
    assert not cones_of(EX[10], out).plus


def test_driving_cone_wants_a_vector():
    with pytest.raises(ProblemError, match="2 entries"):
        driving_cone(EX[1], [0, 0])
    with pytest.raises(ProblemError, match="4 inputs"):
        initial_gap(EX[1], Network([[1.0, 2.0, 3.0, 4.0]], [1.0]))


def test_cones_of_many_vectors_at_once_and_of_their_own_sign():
    data = EX[3]
    W = np.random.default_rng(0).standard_normal((4, 50, 3))
    found = cones_of_patterns(data.y, W @ data.X.T > 0)
    for k in range(4):
        plain = cones_of(data, W[k])
        for name in ("plus", "minus", "dead"):
            assert np.array_equal(getattr(found, name)[k], getattr(plain, name))
    positive = np.arange(50) % 2 == 0
    assert np.array_equal(found.own(positive)[:, positive], found.plus[:, positive])
    assert np.array_equal(found.own(positive)[:, ~positive], found.minus[:, ~positive])
    assert found.plus.any()
    assert found.minus.any()
