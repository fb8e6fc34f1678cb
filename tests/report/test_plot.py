"""One picture function for every result; all of them alike."""

import inspect
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

import reluflow as rf


@pytest.fixture(scope="module")
def told():
    data = rf.Dataset([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]], [1, 1, -1, -1], "four")
    return rf.explain(rf.Problem(data, rf.Network.balanced([[1.0, 0.1], [-1.0, 1.2]], [1, -1], log_scale=-9)))


def test_the_functions_are_alike():
    for function in (rf.plot, rf.report.plot_flow, rf.report.plot_limit, rf.report.plot_alignment):
        parameters = list(inspect.signature(function).parameters.values())
        assert len(parameters) == 2, function
        assert (parameters[1].name, parameters[1].default) == ("path", None)
        assert inspect.signature(function).return_annotation == "Figure"


def test_plot_chooses_by_the_type(told, tmp_path):
    limit, flow = rf.plot(told.limit).get_suptitle(), rf.plot(told.trajectory)
    assert "limit of the direction" in limit
    assert rf.plot(told).get_suptitle() == limit
    assert len(rf.plot(replace(told, limit=None)).axes) == len(flow.axes) != 3
    early = rf.plot(rf.align(told.problem), tmp_path / "early.svg")
    assert "sectors" in early.axes[0].get_title()
    points = rf.plot(told.problem.data, str(tmp_path / "points.PNG"))
    assert points.axes[0].get_title() == "four"
    assert all(isinstance(figure, Figure) for figure in (early, points, flow))
    assert {path.name for path in tmp_path.iterdir()} == {"early.svg", "points.PNG"}
    assert (tmp_path / "points.PNG").read_bytes().startswith(b"\x89PNG")


def test_what_has_no_picture(told):
    for thing, word in ((told.problem, "Problem"), (None, "NoneType"), ([1, 2], "list")):
        with pytest.raises(rf.ProblemError, match=f"{word} was given, which has no picture; plot draws"):
            rf.plot(thing)
    with pytest.raises(rf.ProblemError, match="d = 3"):
        rf.plot(rf.Dataset([[1.0, 2.0, 3.0]], [1]))


@pytest.mark.parametrize("name", ["x.jpg", "x", "x.html", "x.png.txt"])
def test_other_endings_are_refused_and_nothing_is_written(told, tmp_path, name):
    for thing in (told, told.trajectory, told.limit, rf.align(told.problem), told.problem.data):
        with pytest.raises(rf.ProblemError, match=r"one of \.png, \.svg, \.pdf is needed; name it .*x.*\.png"):
            rf.plot(thing, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_pages_are_html(told, tmp_path):
    for name in ("x.png", "x", "x.pdf"):
        with pytest.raises(rf.ProblemError, match=r"\.html, \.htm is needed"):
            told.html(tmp_path / name)
    with pytest.raises(rf.ProblemError, match="no folder"):
        told.html(tmp_path / "absent" / "x.html")
    assert not list(tmp_path.iterdir())
    told.html(tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text().startswith("<!")
