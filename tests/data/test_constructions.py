"""The constructions have the laws they claim, and refuse what they cannot make."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import reluflow as rf
from reluflow.data import CONSTRUCTIONS
from reluflow.data.draw import excess, teacher

RANDOM = [name for name, c in CONSTRUCTIONS.items() if "seed" in c.parameters]


def p_value(sample: Any, law: Any) -> float:
    """Kolmogorov-Smirnov, against a distribution function or another sample."""
    test = stats.kstest if callable(law) else stats.ks_2samp
    return float(test(sample, law).pvalue)


# A fixed seed either passes or fails for ever; 1e-4 keeps out laws that are wrong, not unlucky seeds.
LEAST = 1e-4


# -- the registry -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_registry(name: str) -> None:
    item = CONSTRUCTIONS[name]
    assert item.name == name == item.function.__name__
    assert 20 < len(item.description) < 110
    assert item.figure
    signature = inspect.signature(item.function)
    assert {p.name: p.default for p in item.parameters.values()} == {
        key: value.default for key, value in signature.parameters.items()
    }
    data = rf.make(name)
    assert data.name == name
    assert set(data.parameters) == set(item.parameters)
    assert item.function() == data


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_parameters_reproduce_the_data(name: str) -> None:
    data = rf.make(name)
    again = rf.make(name, **data.parameters)
    assert again == data
    assert dict(again.parameters) == dict(data.parameters)
    assert all(type(v) in (int, float, bool, str, tuple, type(None)) for v in data.parameters.values())


@pytest.mark.parametrize("name", RANDOM)
def test_seeds(name: str) -> None:
    one, same, other = rf.make(name, seed=5), rf.make(name, seed=5), rf.make(name, seed=6)
    assert one == same
    assert one.X.shape == other.X.shape
    assert one != other
    assert rf.make(name, seed=2**200) != one
    assert np.unique(one.X, axis=0).shape[0] == one.n


def test_functions_check_what_make_checks() -> None:
    phuong = CONSTRUCTIONS["phuong"].function
    assert phuong(7, 3, seed=1) == rf.make("phuong", n=7, d=3, seed=1)
    with pytest.raises(rf.DataError, match="n must be a positive integer"):
        phuong(-7)


def test_numpy_and_python_numbers_mean_the_same() -> None:
    data = rf.make("antipodal_gaussians", n=np.int64(10), mean=np.float32(2), mirrored=np.True_, seed=np.uint8(3))
    assert data == rf.make("antipodal_gaussians", n=10, mean=2, mirrored=True, seed=3)
    assert type(data.parameters["n"]) is int
    assert rf.make("circle", plus=np.array([0, 90]), minus=[180]) == rf.make("circle", plus=(0.0, 90.0), minus=(180.0,))


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("phong", {}, "no construction 'phong'; did you mean 'phuong'"),
    ("xyzzy", {}, r"no construction 'xyzzy'\. There are phuong, "),
    ("phuong", {"N": 3}, r"no parameter 'N'; did you mean 'n'\? It takes n=500, d=20, seed=0"),
    ("phuong", {"tau": 3}, "no parameter 'tau'.*It takes n=500, d=20, seed=0"),
    ("phuong", {"n": 0}, r"n must be a positive integer, not 0 \(default 500\)"),
    ("phuong", {"n": 3.0}, "n must be a positive integer, not 3.0"),
    ("phuong", {"n": "3"}, "n must be a positive integer, not '3'"),
    ("phuong", {"n": True}, "n must be a positive integer, not True"),
    ("phuong", {"d": -1}, "d must be a positive integer"),
    ("phuong", {"seed": -1}, "seed must be a non-negative integer"),
    ("phuong", {"seed": None}, "seed must be a non-negative integer"),
    ("phuong", {"n": 10**6, "d": 10**6}, "X of shape 1000000 x 1000000 would take .* GiB"),
    ("phuong", {"n": 10**400}, "n must be a positive integer"),
    ("linsep", {"n": 10**12}, "would take"),
    ("linsep", {"d": 10**12}, "would take"),
    ("symsep", {"n": 10**14}, "would take"),
    ("randlab", {"n": 10**12}, "would take"),
    ("orthsep", {"n": 10**12}, "would take"),
    ("ring", {"n": 10**12}, "would take"),
    ("antipodal_gaussians", {"n": 10**13}, "would take"),
    ("antipodal_outlier", {"n": 10**13}, "would take"),
    ("linear_teacher", {"n": 10**12}, "would take"),
    ("linear_teacher", {"tau": -0.1}, "tau must be a number from 0 to 1e150"),
    ("linear_teacher", {"tau": math.nan}, "tau must be a number"),
    ("linear_teacher", {"bias": math.inf}, "bias must be a number"),
    ("antipodal_gaussians", {"std": 0}, "std must be a number from 1e-150"),
    ("antipodal_gaussians", {"std": 1e200}, "std must be a number"),
    ("antipodal_gaussians", {"margin": -1}, "margin must be a number from 0"),
    ("antipodal_gaussians", {"mirrored": 1}, "mirrored must be True or False, not 1"),
    ("antipodal_gaussians", {"n": 7, "mirrored": True}, "n = 7 must be even"),
    ("antipodal_gaussians", {"mean": [1, 2]}, "mean must be a number"),
    ("antipodal_outlier", {"outlier": ()}, "outlier is empty"),
    ("antipodal_outlier", {"outlier": 3}, "outlier must be a list of numbers"),
    ("antipodal_outlier", {"outlier": "ab"}, "outlier must be a list of numbers"),
    ("antipodal_outlier", {"outlier": [1, None]}, "outlier must be a list of numbers"),
    ("symsep", {"n": 3}, "symsep: n = 3 must be even"),
    ("circle", {"plus": [], "minus": []}, "both empty"),
    ("circle", {"plus": [0], "minus": [360]}, "same point with labels"),
    ("circle", {"plus": [[1, 2]]}, "plus must be a list of numbers"),
    ("pair", {"delta": math.pi / 2 * 1j}, "delta must be a number"),
    ("ring", {"polar": 180}, "between 0 and 180"),
    ("lyu_left", {"slope": 1}, r"slope must be a number in \[0, 1\), not 1"),
    ("lyu_middle", {"plus": [0.0]}, "plus must be a list of numbers from 1e-150"),
    ("lyu_middle", {"minus": []}, "minus must be a list of numbers from 1e-150"),
    ("symmetric", {"base": 3}, "base must be a Dataset, or the name"),
    ("symmetric", {"base": "EX11"}, "neither an example nor a construction; did you mean 'EX1'"),
    ("symmetric", {"base": rf.Dataset([[1.0], [-1.0]], [1, 1])}, "same point with labels"),
    ("hinted", {"H": 0}, "H must be a number from 1e-150"),
    ("hinted", {"w_star": [1, 1]}, "w_star must be a unit vector, but its norm is 1.41421"),
    ("hinted", {"w_star": [1, 0, 0]}, "w_star has 3 coordinates, but the base has 2"),
    ("hinted", {"w_star": [0, 1]}, r"w_star does not separate the base: y_i w_star.x_i = -1 for sample 1"),
    ("hinted", {"w_star": [1, 0], "w_perp": [1, 0]}, "w_perp must be orthogonal to w_star, but w_perp.w_star = 1"),
    ("hinted", {"base": rf.Dataset([[1.0], [-1.0]], [1, -1])}, "one dimension"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), BAD)
def test_mistakes_are_explained(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(rf.DataError, match=message):
        rf.make(name, **parameters)


def test_hints_need_separable_data() -> None:
    with pytest.raises(rf.NotSeparable):
        rf.make("hinted", base=rf.Dataset([[1.0, 0.0], [2.0, 0.0]], [1, -1]))


# -- small and degenerate sizes ---------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(RANDOM), st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**70))
def test_every_size(name: str, n: int, d: int, seed: int) -> None:
    allowed = CONSTRUCTIONS[name].parameters
    n = 2 * n if name == "symsep" else n
    data = rf.make(name, seed=seed, n=n, **({"d": d} if "d" in allowed else {}))
    assert data.n == n + (name == "antipodal_outlier")
    assert data.d == (d if "d" in allowed else 2)
    assert data == rf.make(name, **data.parameters)


# -- orthants ---------------------------------------------------------------------------------------


def filtered(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The words of the construction: draw normal points, keep those in the two orthants and the halfspace."""
    rng, z = np.random.default_rng(seed), np.resize([1.0, -1.0], d)
    draws = rng.standard_normal((n, d))
    plus, minus = (draws > 0).all(1), (draws < 0).all(1)
    kept = (plus | minus) & (draws @ z >= 0)
    return draws[kept], np.where(plus[kept], 1.0, -1.0)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_phuong_is_the_filtered_normal_law(d: int) -> None:
    X, y = filtered(20000 * 2**d, d, seed=1)
    data = rf.make("phuong", n=20000, d=d, seed=2)
    share, n = (y > 0).mean(), min(len(y), data.n)
    # Class shares of two samples of at least n: five standard deviations of their difference.
    assert abs((data.y > 0).mean() - share) <= 5 * math.sqrt(2 * share * (1 - share) / n)
    for sign in (1, -1):
        if not (y == sign).any():
            assert not (data.y == sign).any()
            continue
        mine, theirs = data.X[data.y == sign], X[y == sign]
        z = np.resize([1.0, -1.0], d)
        for u in (*np.eye(d), z, np.ones(d)):
            assert p_value(mine @ u, theirs @ u) > LEAST


@pytest.mark.parametrize(("n", "d"), [(500, 20), (100, 1), (50, 7), (20, 2000)])
def test_phuong_keeps_its_promises(n: int, d: int) -> None:
    data = rf.make("phuong", n=n, d=d)
    assert (data.signed > 0).all()
    assert (data.X @ np.resize([1.0, -1.0], d) >= 0).all()
    assert data.positives.size > 0
    assert (data.negatives.size > 0) == (d > 1)


def test_phuong_has_the_angles_that_were_measured() -> None:
    mu, between = [], []
    for seed in range(9):
        data = rf.make("phuong", seed=seed)
        unit = data.signed / data.norms[:, None]
        mu.append((unit @ unit.T).min())
        plus, minus = rf.margins.class_margins(data)
        between.append(plus.direction @ minus.direction)
    # The ranges are those of three other draws.
    assert 0.22 <= np.median(mu) <= 0.27
    assert -0.91 <= np.median(between) <= -0.85


def test_orthsep() -> None:
    data = rf.make("orthsep", n=4000, d=5, seed=1)
    assert (data.signed > 0).all()
    assert p_value(data.signed.ravel() * math.sqrt(5), stats.halfnorm.cdf) > LEAST
    assert stats.binomtest(data.positives.size, data.n).pvalue > LEAST


# -- the plane and space ----------------------------------------------------------------------------


def test_circle() -> None:
    data = rf.make("circle")
    np.testing.assert_allclose(np.degrees(np.arctan2(data.X[:, 1], data.X[:, 0])), [20, 45, 70, 165, 180], rtol=1e-15)
    assert data.y.tolist() == [1, 1, 1, -1, -1]
    axes = rf.make("circle", plus=[0, 90, 180, 270, -90, 720], minus=[])
    assert axes.X.tolist() == [[1, 0], [0, 1], [-1, 0], [0, -1], [0, -1], [1, 0]]


@settings(deadline=None, max_examples=100)
@given(st.integers(-720, 720).map(lambda k: k / 2))
def test_circle_is_exact_where_it_says_so(degrees: float) -> None:
    here, there, turned = rf.make("circle", plus=[degrees, degrees + 180, degrees + 90], minus=[]).X
    assert (there == -here).all()
    # A quarter turn is exact except at 45 degrees off an axis, where sine and cosine may differ in the last place.
    np.testing.assert_allclose(turned, [-here[1], here[0]], rtol=3e-16, atol=0)
    np.testing.assert_allclose(here, [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))], atol=2e-15)


def test_pair_and_ring() -> None:
    assert rf.make("pair", delta=0.1).X.tolist() == [[1, 0], [math.sin(0.1), math.cos(0.1)]]
    assert rf.make("pair").y.tolist() == [1, 1]
    ring = rf.make("ring", n=7, polar=30)
    np.testing.assert_allclose(ring.norms, 1, rtol=1e-15)
    np.testing.assert_allclose(ring.X[:, 2], math.sqrt(3) / 2, rtol=1e-15)
    turn = np.angle((ring.X[1:, 0] + 1j * ring.X[1:, 1]) / (ring.X[:-1, 0] + 1j * ring.X[:-1, 1]))
    np.testing.assert_allclose(turn, 2 * math.pi / 7, rtol=1e-14)


# -- Gaussians with a margin ------------------------------------------------------------------------


@pytest.mark.parametrize("c", [-40.0, -1.0, 0.0, 1e-3, 0.5, 3.0, 30.0, 1e3])
def test_truncated_normal(c: float) -> None:
    drawn = excess(np.random.default_rng(0), c, 20000)
    assert (drawn >= 0).all()

    def law(v: np.ndarray) -> Any:  # P(Z <= c + v | Z >= c), by logarithms: the tail at 1000 is no double
        return -np.expm1(stats.norm.logsf(c + v) - stats.norm.logsf(c))

    assert p_value(drawn, law) > LEAST


@pytest.mark.parametrize("c", [1e10, 1e155, 1e300])
def test_far_tail_is_exponential(c: float) -> None:
    assert p_value(excess(np.random.default_rng(0), c, 5000) * c, stats.expon.cdf) > LEAST


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"n": 200, "margin": 0.3},  # SBG-F1
        {"n": 400, "d": 50, "mean": 3},  # SBG-F8
        {"n": 3001, "mean": -1, "std": 0.5, "margin": 0.7},
        {"n": 2000, "mirrored": True},
        {"n": 1000, "mean": 1e6, "std": 1e-3, "margin": 0},
    ],
)
def test_antipodal_gaussians(setting: dict[str, Any]) -> None:
    data = rf.make("antipodal_gaussians", seed=3, **setting)
    get = data.parameters
    assert data.positives.tolist() == list(range((data.n + 1) // 2))
    assert (data.signed[:, 0] >= get["margin"]).all()
    low = (get["margin"] - get["mean"]) / get["std"]
    half = data.n // 2 if get["mirrored"] else data.n
    along = (data.signed[:half, 0] - get["mean"]) / get["std"]
    assert p_value(along, stats.truncnorm(low, np.inf).cdf) > LEAST
    assert p_value(data.X[:half, 1:].ravel() / get["std"], stats.norm.cdf) > LEAST
    assert (np.array_equal(data.signed[:half], data.signed[half:])) is get["mirrored"]


def test_outlier() -> None:
    data = rf.make("antipodal_outlier")
    assert (data.n, data.d, data.y[-1]) == (41, 2, 1)
    assert data.X[-1].tolist() == [-1, 2]
    assert data.positives.size == 21
    rest = data.subset(np.arange(40))
    assert rest == rf.make("antipodal_gaussians", n=40, mean=1.5, std=0.3, margin=0, seed=0)
    assert (data.signed[:-1, 0] > 0).all()
    assert rf.make("antipodal_outlier", outlier=(0, 0, 5.0)).d == 3
    mirrored = rf.make("antipodal_outlier", mirrored=True)
    assert (mirrored.X[:20] == -mirrored.X[20:40]).all()


# -- linear teachers --------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [{}, {"tau": 0, "d": 3}, {"d": 1}, {"bias": 0.1, "teacher_seed": 4}])
def test_linear_teacher(setting: dict[str, Any]) -> None:
    data = rf.make("linear_teacher", n=3000, seed=1, **setting)
    get = data.parameters
    t = teacher(get["d"], get["teacher_seed"])
    X = data.X[:, : get["d"]]
    along = data.y * (X @ t)
    assert (along >= get["tau"] - 1e-12).all()
    assert p_value(along - get["tau"], stats.halfnorm.cdf) > LEAST
    assert stats.binomtest(data.positives.size, data.n).pvalue > LEAST
    if get["d"] > 1:
        basis = np.linalg.svd(t[None, :])[2][1:]  # the directions across the teacher
        assert p_value((X @ basis.T).ravel(), stats.norm.cdf) > LEAST
    assert data.d == get["d"] + bool(get["bias"])
    assert not get["bias"] or (data.X[:, -1] == get["bias"]).all()


def test_teachers() -> None:
    # The points of a seed have nothing to do with the teacher of the same seed.
    t = teacher(400, 0)
    assert np.linalg.norm(t) == pytest.approx(1, rel=1e-14)
    first = np.random.default_rng(0).standard_normal(400)
    assert abs(t @ first) / np.linalg.norm(first) < 0.25  # five standard deviations
    # Test points come from the teacher of the training points, unless another one is asked for.
    test = rf.make("linear_teacher", n=2000, seed=9)
    wide = rf.make("linear_teacher", n=20000, seed=10)
    assert (test.signed @ rf.max_margin(wide).direction > 0).all()
    other = rf.make("linear_teacher", n=2000, seed=9, teacher_seed=1)
    assert (test.signed @ teacher(50, 0) > 0).all()
    assert (other.signed @ teacher(50, 0) < 0).any()


@pytest.mark.parametrize(("n", "percent"), [(10, 27.5), (40, 12.8), (100, 4.5)])
def test_max_margin_errs_as_often_as_was_measured(n: int, percent: float) -> None:
    errors = []
    for seed in range(12):
        train = rf.make("linear_teacher", n=n, seed=seed, teacher_seed=seed)
        test = rf.make("linear_teacher", n=4000, seed=seed + 100, teacher_seed=seed)
        errors.append(100 * (test.signed @ rf.max_margin(train).w <= 0).mean())
    # Both are means of 12 draws that scatter: four standard deviations of their difference.
    assert abs(np.mean(errors) - percent) < 4 * np.std(errors) * math.sqrt(2 / 12)


def test_linsep_and_symsep() -> None:
    data = rf.make("linsep", n=4000, d=10, margin=0.2, seed=1)
    t, scale = teacher(10, 0), math.sqrt(10)
    along = data.signed @ t
    assert (along >= 0.2 - 1e-14).all()
    assert p_value(along * scale, stats.truncnorm(0.2 * scale, np.inf).cdf) > LEAST
    assert p_value((data.X @ np.linalg.svd(t[None, :])[2][1:].T).ravel() * scale, stats.norm.cdf) > LEAST
    assert stats.binomtest(data.positives.size, data.n).pvalue > LEAST
    half = rf.make("linsep", n=50, d=10)
    assert rf.make("symsep") == half.symmetrized()
    assert rf.make("symmetric", base=half) == half.symmetrized()


def test_randlab() -> None:
    data = rf.make("randlab", n=4000, d=3, seed=1)
    assert p_value(data.X.ravel() * math.sqrt(3), stats.norm.cdf) > LEAST
    assert p_value(data.signed[:, 0] * math.sqrt(3), stats.norm.cdf) > LEAST
    assert stats.binomtest(data.positives.size, data.n).pvalue > LEAST


# -- data made from data ----------------------------------------------------------------------------


def test_symmetric_takes_names() -> None:
    assert rf.make("symmetric", base="EX1") == rf.example("EX1").data.symmetrized()
    assert rf.make("symmetric") == rf.make("linsep").symmetrized()
    data = rf.make("symmetric", base=rf.example("EX1").data)
    assert rf.make(data.name, **data.parameters) == data


def test_lyu_sets() -> None:
    assert rf.make("lyu_left", slope=0).X[0].tolist() == pytest.approx([1, 1], rel=1e-15)
    near = rf.make("lyu_left", slope=1 - 1e-15).X[0, 1]
    assert near == pytest.approx(math.sqrt(7e15 / 2), rel=0.1)  # 1 - slope is itself known to 10 % only
    middle = rf.make("lyu_middle")
    assert (middle.positives.size, middle.negatives.size) == (8, 2)
    assert (middle.X[:, 2] == 0.05).all()
    assert set(middle.X[middle.positives, 0]) == {0.1, 4, 8, 12}
    assert middle.X[middle.negatives, :2].tolist() == [[-1, 0], [-2, 0]]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 1000), st.floats(0.01, 5), st.floats(0.01, 5))
def test_hinted(d: int, n: int, seed: int, K: float, eps: float) -> None:
    base = rf.make("linsep", n=n, d=d, seed=seed)
    data = rf.make("hinted", base=base, H=7, K=K, eps=eps)
    star, perp = np.array(data.parameters["w_star"]), np.array(data.parameters["w_perp"])
    best = rf.max_margin(base)
    np.testing.assert_allclose(star, best.direction, atol=1e-15)
    np.testing.assert_allclose([perp @ perp, star @ perp], [1, 0], atol=1e-15)
    np.testing.assert_allclose(data.X[0], 7 * star, atol=1e-14)
    np.testing.assert_allclose(data.X[1] + data.X[2], 2 * eps * star, atol=1e-14)
    np.testing.assert_allclose(data.X[1] - data.X[2], 2 * K * perp, atol=1e-14)
    assert data.y[:3].tolist() == [1, 1, 1]
    assert data.subset(np.arange(3, data.n)) == base
    assert rf.make("hinted", **data.parameters) == data
    if eps < best.margin and eps < 7:  # LL-T6.2: the hints are the new supports, the direction stays
        new = rf.max_margin(data)
        np.testing.assert_allclose(new.direction, star, atol=1e-9)
        assert new.margin == pytest.approx(eps, rel=1e-9)


def test_hints_in_a_given_direction() -> None:
    base = rf.Dataset([[2.0, 0, 0], [-3.0, 0, 0]], [1, -1])
    data = rf.make("hinted", base=base, H=5, K=2, eps=0.5, w_perp=[0, 0.6, -0.8], w_star=[1, 0, 0])
    assert data.X[:3].tolist() == [[5, 0, 0], [0.5, 1.2, -1.6], [0.5, -1.2, 1.6]]
    # Left open: the first of the axes on which w_star is smallest.
    assert rf.make("hinted", base=base, w_star=[1, 0, 0]).parameters["w_perp"] == (0, 1, 0)
