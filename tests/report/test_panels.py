"""Panels that figures share."""

import numpy as np
import pytest

from reluflow.report import panels


@pytest.fixture
def axes():
    return panels.sheet(1, 1)[1][0, 0]


def test_sheet_is_always_two_dimensional():
    figure, grid = panels.sheet(2, 3, "title")
    assert grid.shape == (2, 3)
    assert figure.get_suptitle() == "title"


def test_boundary_solves_its_equation_and_keeps_the_limits(axes):
    axes.set(xlim=(-2, 2), ylim=(-1, 3))
    panels.boundary(axes, [3.0, 4.0], offset=-2.0)
    x, y = axes.lines[-1].get_data()
    np.testing.assert_allclose(3.0 * np.asarray(x) + 4.0 * np.asarray(y), 2.0, atol=1e-9)
    assert axes.get_xlim() == (-2, 2)
    assert axes.get_ylim() == (-1, 3)


def test_arrows_leave_out_what_vanishes_and_show_directions(axes):
    panels.arrows(axes, [[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]], [1, 1, -1])
    ends = [note.xy for note in axes.texts]
    np.testing.assert_allclose(ends, [[0.6, 0.8], [0.0, -1.0]])


def test_arrows_of_nothing(axes):
    panels.arrows(axes, np.zeros((2, 2)), [1, -1], unit=False)
    assert not axes.texts


def test_histogram_shows_shares_and_tells_two_apart(axes):
    panels.histogram(axes, [0.1, 0.1, 0.9, 5.0], (0.0, 1.0), bins=2)
    panels.histogram(axes, [0.9], (0.0, 1.0), bins=2)
    first, second = axes.patches[:2], axes.patches
    # What lies outside the span is missing from the bars and not from the whole.
    assert [bar.get_height() for bar in first] == [0.5, 0.25]
    assert len({bar.get_facecolor() for bar in second if hasattr(bar, "get_width")}) == 2


def test_regions_draw_the_zero_set(axes):
    panels.regions(axes, lambda x: x[:, 0] - 0.25, (-1.0, 1.0), levels=[0.5])
    places = [path.vertices[:, 0] for each in axes.collections for path in each.get_paths() if len(path.vertices) > 10]
    assert any(np.allclose(place, 0.25) for place in places)


def lines(axes):
    return [path.vertices for each in axes.collections for path in each.get_paths() if len(path.vertices) > 1]


def test_the_zero_set_is_drawn_in_the_window_of_the_axes(axes):
    axes.set(xlim=(-1, 1), ylim=(0, 2))
    panels.zero_set(axes, lambda x: 1e-30 * (x[:, 0] - x[:, 1] + 1.0), label="line")
    (found,) = lines(axes)
    np.testing.assert_allclose(found[:, 0] - found[:, 1], -1.0, atol=1e-9)
    assert np.ptp(found[:, 1]) == pytest.approx(2.0)
    assert axes.lines[-1].get_label() == "line"


def test_where_a_network_vanishes_on_a_cone_the_rim_is_drawn(axes):
    # ReLU(x1) - ReLU(x2) vanishes on the third quadrant, up to rounding, and on the diagonal of the first.
    axes.set(xlim=(-1, 1), ylim=(-1, 1))
    rounding = 1e-17

    def values(x):
        return np.maximum(x[:, 0], 0.0) - np.maximum(x[:, 1], 0.0) + rounding * np.sin(1e3 * x[:, 0])

    panels.zero_set(axes, values)
    found = np.concatenate(lines(axes))
    assert np.abs(values(found)).max() < 1e-7
    inside = (found < -0.02).all(axis=1)
    assert not inside.any()
    assert (found[:, 0] > 0.9).any()
    assert (found < -0.9).any(axis=0).all()
    assert panels.decided(values(np.array([[-0.5, -0.4], [0.5, 0.2], [-1.0, 1.0]]))).tolist() == [0, 1, -1]


def test_what_has_one_sign_or_none_has_no_zero_set(axes):
    panels.zero_set(axes, lambda x: np.ones(len(x)))
    panels.zero_set(axes, lambda x: np.zeros(len(x)))
    panels.regions(axes, lambda x: np.zeros(len(x)), (-1.0, 1.0))
    assert not lines(axes)


def test_regions_without_a_boundary(axes):
    panels.regions(axes, lambda x: np.ones(len(x)), (-1.0, 1.0), (-2.0, 2.0))
    assert axes.get_ylim() == (-2.0, 2.0)


def test_the_rest_draws(axes):
    figure, grid = panels.sheet(2, 4)
    spots = iter(grid.ravel())
    panels.samples(next(spots), [[1.0, 0.0], [0.0, 1.0]], [1, -1])
    panels.singular_values(next(spots), np.arange(20, 0, -1))
    panels.row_plane(next(spots), np.eye(3)[:, :2], [1, -1, 0])
    panels.band(next(spots), [0, 1], [0, 0], [1, 1], [2, 2], kind=9)
    panels.curve(next(spots), [0, 1], [0, 1], marks=True, label="curve")
    panels.image(next(spots), np.arange(9.0))
    panels.table(next(spots), ("a", "b"), [(1, "two")])
    assert len(grid[0, 1].patches) == 10
    assert [text.get_text() for text in grid[0, 2].get_legend().get_texts()] == ["a > 0", "a < 0", "a = 0"]
    assert grid[0, 1].get_title() == "singular values of W"
    assert grid[1, 1].images[0].get_array().shape == (3, 3)
    figure.canvas.draw()
