"""Losses against 60-digit arithmetic over the whole range."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Loss, ProblemError

mp.mp.dps = 60
ULP = 2.0**-52
# Every scale of margin, both signs, plus what lies between the branches of the formulas.
GRID = np.unique(
    np.concatenate(
        [
            np.linspace(-1000, 1000, 4001),
            -np.geomspace(1e-300, 1e3, 200),
            np.geomspace(1e-300, 1e6, 400),
            np.linspace(29.9, 30.1, 41),
            np.linspace(700, 760, 61),
            [0.0],
        ]
    )
)


def exact(name: str, what: str, q: float) -> mp.mpf:
    q = mp.mpf(q)
    # l and -l' have the same logarithm for the exponential, and log1p keeps 60 digits for the logistic.
    if name == "exponential":
        return -q if what.startswith("log") else mp.exp(-q)
    value = mp.log1p(mp.exp(-q))
    force = 1 / (1 + mp.exp(q)) if q > 0 else 1 - 1 / (1 + mp.exp(-q))
    log_force = -q - mp.log1p(mp.exp(-q)) if q > 0 else -mp.log1p(mp.exp(q))
    return {"value": value, "log_value": mp.log(value), "force": force, "log_force": log_force}[what]


def assert_rounded(got: float, want: mp.mpf, q: float, absolute: float) -> None:
    """A few ulp, relative where the answer is normal, one step of the number line where it is subnormal."""
    if want > mp.mpf(np.finfo(float).max):
        assert got == np.inf, q
        return
    allowed = max(8 * ULP * abs(want), absolute, mp.mpf(5e-324))
    assert abs(mp.mpf(got) - want) <= allowed, (q, got, mp.nstr(want, 20))


@pytest.mark.parametrize("name", ["logistic", "exponential"])
@pytest.mark.parametrize("what", ["value", "log_value", "force", "log_force"])
def test_exact_over_the_whole_range(name, what):
    loss = Loss(name)
    got = getattr(loss, what)(GRID)
    # log l crosses zero near q = -0.54, where only absolute accuracy means anything.
    absolute = 2 * ULP if what == "log_value" else 0.0
    for q, value in zip(GRID, got, strict=True):
        assert_rounded(float(value), exact(name, what, float(q)), float(q), absolute)


@settings(deadline=None, max_examples=300)
@given(q=st.floats(-1e3, 1e6), name=st.sampled_from(["logistic", "exponential"]))
def test_inverse_undoes_log_value(q, name):
    loss = Loss(name)
    back = float(loss.inverse_log(loss.log_value(q)))
    # d q / d log l = l / l' is at most max(1, |q|) in size on this side of q = -1e3; near q = 0 it is about 1.4.
    if name == "logistic" and q < -30:
        # log l = log(-q): one rounding of log l moves q by |q log|q|| ulp.
        assert back == pytest.approx(q, rel=50 * ULP)
    else:
        assert back == pytest.approx(q, rel=8 * ULP, abs=20 * ULP)


@settings(deadline=None, max_examples=200)
@given(s=st.floats(-1e6, 6.0))
def test_inverse_against_high_precision(s):
    want = -mp.log(mp.expm1(mp.exp(mp.mpf(s))))
    got = float(Loss("logistic").inverse_log(s))
    assert abs(mp.mpf(got) - want) <= 1e-13 * max(1, abs(want))


def test_force_is_minus_the_derivative_of_value():
    q = np.linspace(-8, 8, 161)
    h = 1e-5
    for name in ("logistic", "exponential"):
        loss = Loss(name)
        slope = (loss.value(q - h) - loss.value(q + h)) / (2 * h)
        # central differences: error h^2/6 times the third derivative, 5e-7 relative to e^8 at worst
        np.testing.assert_allclose(loss.force(q), slope, rtol=1e-7)


def test_force_at_zero():
    for name in ("logistic", "exponential"):
        assert Loss(name).force_at_zero == float(Loss(name).force(0.0))


def test_logistic_identity_between_value_and_force():
    # 1/(1+e^q) = 1 - e^-l(q): a second way to the same number
    q = np.linspace(-30, 30, 601)
    loss = Loss("logistic")
    np.testing.assert_allclose(loss.force(q), -np.expm1(-loss.value(q)), rtol=1e-14)


@pytest.mark.parametrize("name", ["hinge", "Logistic", "", None, 3])
def test_unknown_loss_is_refused_by_name(name):
    with pytest.raises(ProblemError, match="logistic"):
        Loss(name)


def test_no_warning_and_no_nan_at_the_ends():
    q = np.array([-1e3, -745.2, 745.2, 1e6, -np.inf, np.inf])
    for name in ("logistic", "exponential"):
        loss = Loss(name)
        for what in ("value", "log_value", "force", "log_force"):
            assert not np.isnan(getattr(loss, what)(q)).any()
