"""The closed-form clock against quadrature in 50 digits."""

import mpmath as mp
import numpy as np
import pytest

from reluflow.dynamics.clock import move, move_frozen, time_to_angle
from reluflow.dynamics.early.kernel import elapsed


def exact_time(force, out, along, step):
    """Time = integral of 1/|a| over the path, a^2 = out^2 + 2 along force s + force^2 s^2."""
    with mp.workdps(50):
        f, a, b, s = (mp.mpf(v) for v in (force, out, along, step))
        turn = -b / f
        points = [mp.mpf(0), *([turn] if 0 < turn < s else []), s]
        return mp.quad(lambda u: 1 / mp.sqrt(a * a + 2 * b * f * u + f * f * u * u), points)


@pytest.mark.parametrize(
    ("force", "out", "along", "step"),
    [
        (2.0, 1.0, 0.3, 0.7),
        (2.0, 1.0, 0.3, 1e-14),  # |c| t tiny
        (2.0, 1.0, 0.3, 1e9),  # |c| t large
        (2.0, 1.0, -0.6, 0.1),
        (2.0, 1.0, -0.6, 5.0),  # turns round
        (2.0, 1.0, -0.6, 1e-15),
        (3.0, 0.5, 0.9, 0.2),  # |a| < |w.c|
        (3.0, 0.5, -0.4, 0.05),
        (1e-8, 1.0, -0.5, 2e8),
        (1e8, 1.0, -0.999, 2e-8),
        (1.0, 0.0, 0.7, 0.4),  # a starts at 0
        (1.0, 1e6, -0.3, 2.0),  # a nearly constant
    ],
)
def test_elapsed(force, out, along, step):
    bend = out * out - along * along
    end = np.sqrt(bend + (along + force * step) ** 2)
    expected = exact_time(force, out, along, step)
    assert elapsed.py_func(force, out, end, along, bend, step) == pytest.approx(float(expected), rel=1e-14)


def test_elapsed_to_a_change_of_sign():
    # a = 0.5 cosh t - 0.7 sinh t vanishes at artanh(5/7).
    out, along = 0.5, -0.7
    step = out**2 / (np.sqrt(along**2 - out**2) - along)
    assert elapsed.py_func(1.0, out, 0.0, along, out**2 - along**2, step) == pytest.approx(np.arctanh(5 / 7), rel=1e-14)


@pytest.mark.parametrize("time", [0.0, 1e-13, 0.3, 4.0, 200.0, 1e5])
@pytest.mark.parametrize(
    ("out", "along", "perp"), [(1.0, 0.6, 0.8), (1.0, -0.6, 0.8), (2.0, -0.6, 0.8), (0.9, 0.6, 0.8)]
)
def test_move(out, along, perp, time):
    force = 1.7
    columns = [np.array([v]) for v in (force, out, along, perp, out**2 - along**2 - perp**2, time)]
    moved = move(*columns)
    with mp.workdps(60):
        f, a, b, t = (mp.mpf(v) for v in (force, out, along, time))
        scale = mp.exp(-f * t)
        expected = {
            "out": (a * mp.cosh(f * t) + b * mp.sinh(f * t)) * scale,
            "along": (b * mp.cosh(f * t) + a * mp.sinh(f * t)) * scale,
            "perp": perp * scale,
            "step": (a * mp.sinh(f * t) + b * (mp.cosh(f * t) - 1)) / f * scale,
        }
        for name, value in expected.items():
            error = abs(mp.mpf(float(getattr(moved, name)[0])) - value)
            assert error <= 1e-15 * (abs(value) + mp.mpf(float(moved.out[0]))) + mp.mpf("1e-320"), name


def test_move_near_the_repelling_ray_keeps_its_digits():
    # a + w.c is 1e-20 here; computed as a difference it would be rounding only.
    perp = 1e-10
    out, along = np.hypot(1.0, perp), -1.0
    moved = move(*(np.array([v]) for v in (1.0, out, along, perp, 0.0, 40.0)))
    with mp.workdps(60):
        p, t = mp.mpf(perp), mp.mpf(40)
        a = mp.sqrt(1 + p * p)
        expected = (a * mp.cosh(t) - mp.sinh(t)) * mp.exp(-t)
        assert float(moved.out[0]) == pytest.approx(float(expected), rel=1e-13)


def test_frozen_output_moves_at_constant_speed():
    moved = move_frozen(*(np.array([v]) for v in (2.0, 0.5, -1.0, 0.3, 4.0)))
    assert [float(v[0]) for v in moved] == [0.0, 0.5, 3.0, 0.3, 2.0]


@pytest.mark.parametrize("angle", [0.3, 1e-3, 1e-8])
@pytest.mark.parametrize("theta", [2.9, 1.2, 0.5])
def test_time_to_angle(theta, angle):
    columns = [np.array([v]) for v in (1.3, 1.0, np.cos(theta), np.sin(theta), 0.0)]
    expected = np.log(np.tan(theta / 2) / np.tan(angle / 2)) / 1.3
    assert time_to_angle(*columns, angle, False)[0] == pytest.approx(expected, rel=1e-13)
    frozen = (np.sin(theta) / np.tan(angle) - np.cos(theta)) / 1.3
    assert time_to_angle(*columns, angle, True)[0] == pytest.approx(frozen, rel=1e-13)
    assert time_to_angle(*columns, 1.4, False)[0] == (
        0.0 if theta < 1.4 else pytest.approx(np.log(np.tan(theta / 2) / np.tan(0.7)) / 1.3, rel=1e-13)
    )


@pytest.mark.parametrize("ratio", [1e-24, 1e-60, -1e-24, -1e-60])
@pytest.mark.parametrize("theta", [0.0, 1e-30, 1e-3])
def test_a_first_layer_far_below_the_output_keeps_its_digits(ratio, theta):
    one = np.ones(1)
    moved = move(one, one, ratio * one, 0 * one, (1 - ratio**2) * one, theta * one)
    with mp.workdps(80):
        r, t = mp.mpf(ratio), mp.mpf(theta)
        expected = (r * mp.cosh(t) + mp.sinh(t)) * mp.exp(-t)
    assert float(moved.along[0]) == pytest.approx(float(expected), rel=1e-14)
