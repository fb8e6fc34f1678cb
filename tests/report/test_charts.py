"""Charts: specified once, and drawn alike by both painters."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import reluflow as rf
from reluflow.problem.axis import BEND, axis_place, log_value
from reluflow.report.axis import Tick, linear_ticks, log_ticks
from reluflow.report.charts import Axis, Band, Chart, Curve, Level, over_time, unbroken
from reluflow.report.page.curves import document
from reluflow.report.pictures import paint


@pytest.fixture(scope="module")
def found():
    return rf.explain(rf.Problem(rf.dataset("EX1"), rf.initialize(2, 6, seed=0)), progress=False)


@pytest.fixture
def small():
    x, y = np.array([0.0, 10.0, 20.0]), np.array([1.0, np.nan, 3.0])
    return Chart(
        "three points",
        Axis("time", (0.0, 20.0), "log"),
        Axis("height", (0.0, 4.0)),
        (Curve(x, y, "main"),),
        (Level(2.0, "limit", "two"),),
        (("main", "the points"), ("limit", "two")),
        (Band(0.0, 5.0, "early"), Band(5.0, 20.0, "rest")),
        np.array([3.0, 7.0]),
    )


def axes_of(chart):
    axes = Figure().subplots()
    paint(axes, chart, 9)
    return axes


def test_both_painters_are_given_all_of_a_chart(small):
    axes, given = axes_of(small), document(small)
    # The curve: Matplotlib gets the numbers, the page their places in 10000ths; the middle point is missing in both.
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), [1.0, np.nan, 3.0])
    assert given["curves"] == [{"style": "main", "x": [0, 5000, 10000], "y": [2500, None, 7500]}]
    # The level, the bend, the bands, the marks.
    assert axes.get_lines()[1].get_ydata() == [2.0, 2.0]
    assert given["levels"] == [{"style": "limit", "y": 5000}]
    assert axes.get_lines()[2].get_xdata() == [BEND, BEND]
    assert given["x"]["bend"] == 10000 * BEND / 20
    assert given["y"]["bend"] is None
    assert len(axes.patches) == len(given["bands"]) == 2
    assert [(band["phase"], band["from"], band["to"]) for band in given["bands"]] == [
        ("early", 0, 2500),
        ("rest", 2500, 10000),
    ]
    assert len(axes.collections[0].get_paths()) == len(given["marks"])
    assert given["marks"] == [1500, 3500]
    # The words.
    assert [label.get_text() for label in axes.get_legend().get_texts()] == [words for _, words in given["key"]]
    assert given["key"] == [["main", "the points"], ["limit", "two"]]
    assert axes.get_title() == "three points"
    assert given["title"] == "Three points"
    assert (axes.get_xlabel(), axes.get_ylabel()) == (given["x"]["label"], given["y"]["label"]) == ("time", "height")


def test_ticks_are_the_same_for_both(small):
    axes, given = axes_of(small), document(small)
    ticks = log_ticks(0.0, 20.0, 9)
    assert {tick[1:] for tick in ticks} >= {("1", ""), ("10", "2"), ("e", "100")}
    assert [mark.get_text() for mark in axes.get_xticklabels()] == [
        f"${text}^{{{power}}}$" if power else text for _, text, power in ticks
    ]
    # The page has room for fewer of the same kind.
    fewer = small.x.ticks(7)
    assert given["x"]["ticks"] == [[round(500 * tick.place), tick.text, tick.exponent] for tick in fewer]
    assert {tick[1:] for tick in fewer} <= {tick[1:] for tick in ticks}


def test_powers_of_powers_are_raised_twice():
    enormous = log_ticks(0.0, float(axis_place(1e7)), 40)
    assert Tick(float(axis_place(1e4)), "e", "10⁴") in enormous
    axes = axes_of(Chart("wide", Axis("", (0.0, float(axis_place(1e7))), "log"), Axis("", (0.0, 1.0))))
    assert "$e^{10^{6}}$" in [mark.get_text() for mark in axes.get_xticklabels()]


def test_places_can_be_read_back():
    for value in (-1e6, -10.0, -0.3, 0.0, 9.99, 10.01, 12345.0):
        assert log_value(float(axis_place(value))) == pytest.approx(value, rel=1e-12)


def test_what_a_run_tends_to_is_a_level(found):
    charts = {chart.title: chart for chart in over_time(found.trajectory, found.predictions, found.limit)}
    assert list(charts) == [
        "training loss",
        "margin",
        "stable rank of the first layer",
        "norms of the neurons",
        "directions of the neurons",
    ]
    levels = {(level.style, round(level.value, 9)) for level in charts["margin"].levels}
    margin = round(rf.example("EX1").answers["corollary"], 9)
    assert levels == {("predicted", margin), ("limit", margin), ("best", margin)}
    assert any("PL-T1'" in words and style == "predicted" for style, words in charts["margin"].key)
    told = next(p.network for p in found.predictions if p.function is not None)
    ways = [level.value for level in charts["directions of the neurons"].levels if level.style == "predicted"]
    wanted = np.degrees(np.arctan2(told.directions[:, 1], told.directions[:, 0])) % 360
    np.testing.assert_allclose(ways, np.unique(np.round(wanted, 6)))
    walls = [level.value for level in charts["directions of the neurons"].levels if level.style == "wall"]
    X = found.problem.data.X
    turned = np.array([np.cos(np.radians(walls)), np.sin(np.radians(walls))])
    assert np.abs(X @ turned).min(axis=0).max() < 1e-12
    assert len(walls) == 2 * len(X)
    assert [curve.style for curve in charts["norms of the neurons"].curves].count("plus") == (
        found.problem.net.a > 0
    ).sum()
    # Alone, a run knows nothing of where it ends.
    assert not any(level.style != "wall" for chart in over_time(found.trajectory) for level in chart.levels)


def test_curves_of_angles_are_cut_where_they_jump():
    x, y = unbroken(np.arange(4.0), np.array([350.0, 359.0, 2.0, 10.0]))
    np.testing.assert_array_equal(y, [350.0, 359.0, np.nan, 2.0, 10.0])
    np.testing.assert_array_equal(x, [0.0, 1.0, np.nan, 2.0, 3.0])


def test_ticks_are_distinct_and_inside():
    for low, high in ((-3.0, 40.0), (-0.4, -0.3), (-15.5, -11.0), (0.0, 10.0), (-60.0, 5.0)):
        for found in (log_ticks(low, high, 8), linear_ticks(low, high)):
            assert 2 <= len(found) <= 13
            assert len({tick[1:] for tick in found}) == len(found)
            assert all(low - 1e-9 <= tick[0] <= high + 1e-9 for tick in found)
