"""Pictures of flows and limits: what they show, on ordinary and on odd runs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Dataset, Network, Problem, ProblemError, align, descend, example, flow, initialize, limit, make
from reluflow.report import axis_place, plot_flow, plot_limit
from reluflow.report.charts import finer


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


def curve(figure, title, k=0):
    return next(axes for axes in figure.axes if axes.get_title().startswith(title)).get_lines()[k]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.fixture(scope="module")
def planar():
    return flow(Problem(example("EX1").data, initialize(2, 8)), {"log_time": 1e4})


@given(st.lists(st.floats(-1e8, 1e8), min_size=2, max_size=20))
def test_places_keep_the_order_and_are_odd(values):
    values = np.sort(np.array(values))
    places = axis_place(values)
    assert (np.diff(places) >= 0).all()
    np.testing.assert_array_equal(axis_place(-values), -places)
    inside = np.abs(values) <= 10
    np.testing.assert_array_equal(places[inside], values[inside])


def test_places_beyond_the_bend_are_decades():
    steps = np.diff(axis_place([10.0, 1e2, 1e3, 1e4, 1e5, 1e6]))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-12)
    assert axis_place([-np.inf, np.inf]).tolist() == [-np.inf, np.inf]


def test_a_flow_in_the_plane_shows_everything(planar, tmp_path):
    figure = plot_flow(planar, tmp_path / "flow.png")
    assert (tmp_path / "flow.png").read_bytes().startswith(b"\x89PNG")
    shown = titles(figure)
    for start in (f"{planar.events.size} events", "training loss", "margin", "stable rank", "norms", "directions"):
        assert any(title.startswith(start) for title in shown)
    # The curves are the records, at the places of the axis.
    loss = curve(figure, "training loss")
    np.testing.assert_array_equal(loss.get_ydata(), axis_place(planar.log_loss))
    np.testing.assert_array_equal(loss.get_xdata()[1:], axis_place(planar.log_time[1:]))
    assert curve(figure, "margin").get_ydata()[-1] == pytest.approx(planar.normalized_margin()[-1])
    assert curve(figure, "margin", 1).get_ydata()[-1] == pytest.approx(planar.smoothed_margin()[-1])
    assert curve(figure, "stable rank").get_ydata()[-1] == pytest.approx(planar.stable_rank()[-1])
    assert len(figure.legends) == 1
    names = [text.get_text().split(" ")[0] for text in figure.legends[0].get_texts()]
    assert names == ["early", "coupled", "late"]


def test_ticks_say_both_small_and_enormous_times(planar):
    axes = plot_flow(planar).axes[-1]
    words = ticks(axes.xaxis)
    for word in ("1", "$10^{2}$", "$e^{100}$", "$e^{10^{3}}$", "$e^{10^{4}}$"):
        assert word in words
    place = dict(zip(words, axes.get_xticks(), strict=True))
    assert place["$10^{2}$"] == pytest.approx(np.log(100.0))
    assert place["$e^{10^{3}}$"] == pytest.approx(float(axis_place(1000.0)))


def test_labels_do_not_run_into_each_other(planar):
    figure = plot_flow(planar)
    figure.draw_without_rendering()
    for axes in figure.axes[1:]:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        boxes.sort(key=lambda box: box.x0)
        assert all(one.x1 <= two.x0 for one, two in pairwise(boxes))


def test_in_more_dimensions_there_are_no_angles():
    data = make("orthsep", n=12, d=5)
    figure = plot_flow(flow(Problem(data, initialize(5, 4)), {"log_time": 8}))
    assert not any(title.startswith("directions") for title in titles(figure))
    assert "$e^{100}$" not in ticks(figure.axes[1].xaxis)


@pytest.mark.parametrize(
    ("net", "until"),
    [
        (initialize(2, 3, log_scale=-3000), {"log_time": 9}),
        (Network([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0]), {"log_time": 2}),
        (Network([[-1.0, -1.0]], [1.0]), {"log_time": 2}),
        (Network([[1.0, 0.2], [0.0, 0.0]], [0.5, 0.0]), {"log_time": 300}),
    ],
    ids=["tiny", "zero", "dead", "one zero neuron"],
)
def test_odd_runs_are_drawn(net, until, tmp_path):
    data = Dataset([[1.0, 0.5], [0.4, 1.0]], [1, 1])
    plot_flow(flow(Problem(data, net), until), tmp_path / "odd.png")
    assert (tmp_path / "odd.png").stat().st_size > 10_000


def test_one_record_and_discrete_runs(tmp_path):
    problem = Problem(example("EX1").data, initialize(2, 3, scale=0.1))
    discrete = descend(problem, step=0.1, steps=300, progress=False)
    figure = plot_flow(discrete, tmp_path / "gd.svg")
    assert any(title.startswith("no events") for title in titles(figure))
    from reluflow import Trajectory

    names = ("log_time", "log_loss", "directions", "log_norms", "log_outs", "signs")
    first = Trajectory(problem, *(getattr(discrete, name)[:1] for name in names))
    plot_flow(first, tmp_path / "one.png")
    assert (tmp_path / "one.png").exists()


def test_limit_in_the_plane(tmp_path):
    end = limit(Problem(example("EX1").data, initialize(2, 6)))
    figure = plot_limit(end, tmp_path / "end.pdf")
    assert (tmp_path / "end.pdf").read_bytes().startswith(b"%PDF")
    plane, shares, margins = figure.axes
    assert plane.get_title().startswith("data, limit directions")
    bars = sorted(bar.get_width() for bar in shares.patches)
    np.testing.assert_allclose(bars, sorted(group.share for group in end.groups))
    heights = np.concatenate([line.get_ydata() for line in margins.get_lines()[:2]])
    np.testing.assert_allclose(np.sort(heights), np.sort(end.network.margins(end.problem.data)))
    assert f"{end.margin:.6g}" in figure.get_suptitle()


def test_limit_in_space_shows_cosines():
    end = limit(Problem(example("EX3").data, initialize(3, 8)))
    figure = plot_limit(end)
    image = figure.axes[0].get_images()[0].get_array()
    assert image[0, 1] == pytest.approx(example("EX3").answers["cos_w_plus_w_minus"], abs=1e-9)


def test_a_flow_at_rest_and_a_stall_are_drawn(tmp_path):
    resting = limit(Problem(Dataset([[2.0], [1.0]], [1, -1]), Network([[0.1]], [0.1])))
    assert "rests" in plot_limit(resting, tmp_path / "rest.png").get_suptitle()
    stalled = limit(Problem(Dataset([[1.0, 0.0], [-1.0, 0.0]], [1, 1]), Network([[0.1, 0.0]], [0.1])))
    assert "stalls" in plot_limit(stalled, tmp_path / "stall.png").get_suptitle()


@pytest.mark.parametrize("name", ["x.nonsense", "no/such/folder/x.png"])
def test_files_that_cannot_be_written(planar, tmp_path, name):
    with pytest.raises(ProblemError, match="cannot be written"):
        plot_flow(planar, tmp_path / name)


def test_long_first_steps_are_not_drawn_as_ramps():
    run = flow(Problem(example("EX1").data, initialize(2, 6, scale=0.3, seed=0)), {"log_time": 20.0})
    assert np.diff(run.log_time[1:8]).max() > 0.6  # steps begin by doubling: the integrator needs no record between
    shown = finer(run)
    assert set(run.log_time) <= set(shown.log_time)
    assert (np.diff(shown.log_time[1:10]) < 0.7).all()  # no more than a doubling
    added = np.flatnonzero(~np.isin(shown.log_time, run.log_time))
    assert added.size > 5
    for k in added[::4]:
        net = run.at(log_time=shown.log_time[k])
        np.testing.assert_allclose(shown.network(int(k)).outputs(run.problem.data.X), net.outputs(run.problem.data.X))
        assert shown.log_loss[k] == pytest.approx(run.problem.log_loss(net))
    discrete = descend(run.problem, step=0.1, steps=5, progress=False)
    assert finer(discrete) is discrete


def test_the_legends_of_align_hide_nothing():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from reluflow.report.alignment import _draw_plane, draw_paths

    early = align(Problem(example("ML-F6").data, initialize(2, 6)))
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_plane(left, early)
    draw_paths(right, early)
    FigureCanvasAgg(figure).draw()
    for axes in (left, right):
        assert not axes.get_legend().get_window_extent().overlaps(axes.get_window_extent())
