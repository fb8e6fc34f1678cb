"""Axes: what the words mean, and that nothing else is understood."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import ProblemError
from reluflow.sweep.axes import axis_of, value_of, written


def values(said, name="network.scale", seed=0):
    return axis_of(name, said, seed).values


def test_lists_ranges_and_spaces():
    assert values([1, 2.5, "x"]) == (1, 2.5, "x")
    assert values((1, 2)) == values(np.array([1, 2])) == values(range(1, 3)) == (1, 2)
    assert values({"range": [3]}) == (0, 1, 2)
    assert values({"range": [5, 0, -2]}) == (5, 3, 1)
    assert values({"linspace": [0, 1, 5]}) == (0, 0.25, 0.5, 0.75, 1)
    assert values({"linspace": [0.1, 0.4, 4]}) == (0.1, 0.2, 0.3, 0.4)  # not 0.30000000000000004
    assert values({"linspace": [10, 50, 5]}) == (10, 20, 30, 40, 50)
    assert all(isinstance(v, int) for v in values({"linspace": [10, 50, 5]}))
    assert values({"linspace": [math.pi, 4, 1]}) == (math.pi,)
    assert values({"logspace": [-2, 1, 4]}) == (0.01, 0.1, 1, 10)
    assert values([[1, 0], [0, 1]]) == ([1, 0], [0, 1])


def test_single_values():
    for said in (3, 0.5, "phuong", True, np.float64(0.5), {"value": [1, 0]}, {"value": 3}):
        assert axis_of("data.w", said, 0) is None
    assert value_of("data.w", {"value": [1, 0]}) == [1, 0]
    assert value_of("data.w", np.int64(3)) == 3


@pytest.mark.parametrize("logarithmic", [False, True])
@given(low=st.floats(0.01, 10), factor=st.floats(1.5, 100), seed=st.integers(0, 99), count=st.integers(1, 50))
def test_draws_lie_between_and_begin_alike(logarithmic, low, factor, seed, count):
    kind = "log_uniform" if logarithmic else "uniform"
    said = {kind: [low, low * factor], "count": count}
    drawn = values(said, seed=seed)
    assert len(set(drawn)) == count
    assert all(low * (1 - 1e-11) <= v <= low * factor * (1 + 1e-11) for v in drawn)
    assert drawn == values(said, seed=seed)
    assert values({**said, "count": count + 3}, seed=seed)[:count] == drawn
    assert values(said, seed=seed + 1) != drawn
    assert values(said, name="network.slope", seed=seed) != drawn


def test_draws_are_spread_as_said():
    u = np.array(values({"uniform": [2, 6], "count": 4000}))
    assert abs(u.mean() - 4) < 5 * 4 / math.sqrt(12 * 4000)  # five standard errors
    logs = np.log(values({"log_uniform": [1e-8, 1], "count": 4000}))
    assert abs(logs.mean() - math.log(1e-4)) < 5 * math.log(1e8) / math.sqrt(12 * 4000)
    assert axis_of("a.b", {"log_uniform": [1e-8, 1], "count": 4}, 0).logarithmic
    assert axis_of("a.b", {"logspace": [0, 1, 3]}, 0).logarithmic
    assert not axis_of("a.b", {"linspace": [0, 1, 3]}, 0).logarithmic


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([], "has no value"),
        ({"range": [3, 3]}, "is empty"),
        ({"range": [0.5, 3]}, "linspace takes other numbers"),
        ({"range": [0, 5, 0]}, "STEP"),
        ({"range": [0, 10**9]}, "a whole number from 1"),
        ({"linspace": [0, 1]}, "[FIRST, LAST, COUNT]"),
        ({"linspace": [0, 1, 0]}, "a whole number from 1"),
        ({"linspace": [0, 1, 2.5]}, "a whole number from 1"),
        ({"linspace": [1, 1, 3]}, "twice"),
        ({"linspace": [0, math.inf, 3]}, "finite"),
        ({"logspace": [-1000, 0, 3]}, "log_scale"),
        ({"uniform": [0, 1]}, "needs count"),
        ({"uniform": [1, 0], "count": 3}, "first bound must be below"),
        ({"uniform": [0, 1], "count": True}, "a whole number"),
        ({"log_uniform": [0, 1], "count": 3}, "positive"),
        ({"logspace": [0, 1, 3], "count": 3}, "takes no count"),
        ({"logspace": [0, 1, 3], "range": [3]}, "two ways"),
        ({"count": 3}, "does not say which values"),
        ({}, "does not say which values"),
        ({"lnspace": [0, 1, 3]}, "did you mean 'linspace'"),
        ([1, 2, 1], "1 twice"),
        ([1, 1.0], "twice"),
        ([0.5, math.nan], "finite number"),
        ([None], "NoneType"),
    ],
)
def test_what_is_refused(said, words):
    with pytest.raises(ProblemError) as refusal:
        axis_of("network.scale", said, 0)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith("network.scale")


def test_true_is_not_one():
    assert values([True, 1]) == (True, 1)


def test_written_is_plain():
    assert written({"a": (np.float64(0.5), range(2)), "b": {"c": np.arange(2)}}) == {
        "a": [0.5, [0, 1]],
        "b": {"c": [0, 1]},
    }
