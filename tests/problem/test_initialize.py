"""Initialisations have the distributions and the balance they claim."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reluflow import ProblemError, initialize

SCHEMES = ["balanced", "gaussian", "balanced-gaussian", "two-sign", "he", "uniform"]
BIG = {"d": 5, "width": 4000, "seed": 7}
# One fixed draw of 4000 neurons; a correct sampler fails such a test once in ten thousand seeds.
LEVEL = 1e-4


def p_value(sample, cdf):
    return stats.kstest(np.ravel(sample), cdf).pvalue


def fair(signs):
    return stats.binomtest(int((signs > 0).sum()), signs.size).pvalue


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_draw_does_not_depend_on_the_scale(scheme):
    a = initialize(3, width=8, scheme=scheme, scale=1e-6, seed=5)
    b = initialize(3, width=8, scheme=scheme, log_scale=-3000.0, seed=5)
    np.testing.assert_array_equal(a.W, b.W)
    np.testing.assert_array_equal(a.a, b.a)
    assert a.log_scale == pytest.approx(np.log(1e-6))
    assert b.log_scale == -3000.0
    assert a == initialize(3, width=8, scheme=scheme, seed=5)
    assert a != initialize(3, width=8, scheme=scheme, seed=6)


def test_balanced_is_uniform_on_the_sphere_with_fair_signs():
    net = initialize(**BIG, scheme="balanced")
    np.testing.assert_allclose(np.linalg.norm(net.W, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.abs(net.a), 1.0, rtol=1e-14)
    # one coordinate of a uniform unit vector in R^5: (1 + t)/2 is Beta(2, 2)
    assert p_value((net.W[:, 0] + 1) / 2, stats.beta(2, 2).cdf) > LEVEL
    assert fair(net.a) > LEVEL


def test_gaussian_and_its_second_layer():
    net = initialize(**BIG, scheme="gaussian")
    assert p_value(net.W, stats.norm.cdf) > LEVEL
    assert p_value(net.a, stats.norm.cdf) > LEVEL
    wide = initialize(**BIG, scheme="gaussian", c_a=3.0)
    np.testing.assert_allclose(wide.a, 3.0 * net.a)


def test_balanced_gaussian():
    net = initialize(**BIG, scheme="balanced-gaussian")
    assert p_value(net.W, stats.norm.cdf) > LEVEL
    np.testing.assert_allclose(np.abs(net.a), np.linalg.norm(net.W, axis=1), rtol=1e-15)
    assert fair(net.a) > LEVEL


def test_two_sign():
    net = initialize(**BIG, scheme="two-sign", scale=1e-3)
    assert p_value(net.W, stats.norm.cdf) > LEVEL
    np.testing.assert_allclose(net.a, np.repeat([1.0, -1.0], 2000) / np.sqrt(4000))
    assert (net.log_scale, net.log_scale_out) == (pytest.approx(np.log(1e-3)), 0.0)
    assert initialize(2, width=2, scheme="two-sign", v=0.25).a.tolist() == [0.25, -0.25]


def test_he_and_uniform():
    net = initialize(**BIG, scheme="he")
    assert p_value(net.W * np.sqrt(5 / 2), stats.norm.cdf) > LEVEL
    assert p_value(net.a * np.sqrt(4000 / 2), stats.norm.cdf) > LEVEL
    net = initialize(**BIG, scheme="uniform")
    assert p_value(net.W * np.sqrt(5), stats.uniform(-1, 2).cdf) > LEVEL
    assert p_value(net.a * np.sqrt(4000), stats.uniform(-1, 2).cdf) > LEVEL


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 6), st.integers(1, 6))
def test_lambdas_and_signs_are_taken_as_given(seed, d, p):
    rng = np.random.default_rng(seed)
    lambdas, signs = rng.uniform(0.01, 1.0, p), rng.choice([-1, 1], p)
    net = initialize(d, width=p, seed=seed, lambdas=lambdas, signs=signs)
    np.testing.assert_allclose(np.linalg.norm(net.W, axis=1), lambdas, rtol=1e-14)
    np.testing.assert_allclose(net.a, signs * lambdas, rtol=1e-14)
    plain = initialize(d, width=p, seed=seed)
    np.testing.assert_allclose(net.directions, plain.directions, rtol=1e-13)


def test_generator_is_consumed():
    rng = np.random.default_rng(0)
    first, second = initialize(2, width=3, seed=rng), initialize(2, width=3, seed=rng)
    assert first == initialize(2, width=3, seed=0)
    assert first != second


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"d": 0}, "d must be a positive integer, not 0"),
        ({"d": 2.0}, "d must be a positive integer"),
        ({"d": 2, "width": -3}, "width must be a positive integer, not -3"),
        ({"d": 2, "width": True}, "width must be"),
        ({"d": 2, "scheme": "xavier"}, "choose one of balanced"),
        ({"d": 2, "scale": 0.0}, "scale must be a positive number"),
        ({"d": 2, "scale": -1e-6}, "scale must be a positive number"),
        ({"d": 2, "scale": np.nan}, "scale must be a positive number"),
        ({"d": 2, "scale": "small"}, "scale must be a positive number"),
        ({"d": 2, "scale": 1e-6, "log_scale": -14.0}, "two names for one thing"),
        ({"d": 2, "log_scale": -np.inf}, "log_scale must be a finite number"),
        ({"d": 2, "slope": 2.0}, "outside"),
        ({"d": 2, "seed": -1}, "seed must be"),
        ({"d": 2, "seed": "zero"}, "seed must be"),
        ({"d": 2, "width": 3, "scheme": "two-sign"}, "must be even"),
        ({"d": 2, "scheme": "two-sign", "v": -1.0}, "v must be a positive"),
        ({"d": 2, "scheme": "two-sign", "c_a": 2.0}, "c_a means nothing to scheme 'two-sign'; it belongs to gaussian"),
        ({"d": 2, "scheme": "he", "signs": [1]}, "signs means nothing"),
        ({"d": 2, "width": 2, "signs": [1, 0]}, "-1 or"),
        ({"d": 2, "width": 2, "signs": [1]}, "2 numbers"),
        ({"d": 2, "width": 2, "lambdas": [1.0, 2.0]}, r"in \(0, 1\]"),
        ({"d": 2, "width": 2, "lambdas": [1.0]}, "must be 2 numbers"),
        ({"d": 10**6, "width": 10**6}, "GiB"),
    ],
)
def test_bad_input(kwargs, message):
    with pytest.raises(ProblemError, match=message):
        initialize(**kwargs)
