"""Results in a notebook: HTML that any theme shows and that fetches nothing, pictures into given axes, bars."""

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import reluflow as rf
from reluflow.theory.base import Lines

NAMED = rf.Dataset(
    [[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1], name="<script>x</script>", names=["<b>size", "a & b"]
)
VOID = {"br"}


class Balanced(HTMLParser):
    """Fails at a tag that closes another one."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.links = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def plane():
    return rf.explain(NAMED, width=6, progress=False)


@pytest.fixture(scope="module")
def space():
    return rf.explain(rf.make("phuong", n=12, d=4, seed=0), width=5, progress=False)


def results(found):
    problem = found.problem
    many = (problem.data, problem, rf.align(problem), found.trajectory, found.limit, rf.check(problem), found)
    return {type(one).__name__: one for one in many}


KINDS = ("Dataset", "Problem", "Alignment", "Trajectory", "Limit", "Lines", "Explanation")


@pytest.mark.parametrize("kind", KINDS)
def test_html_is_whole_escaped_and_needs_nothing(plane, kind):
    text = results(plane)[kind]._repr_html_()
    page = Balanced(text)
    assert page.links == []
    assert not re.search(r"https?:|@import|url\(", text)
    assert "script" not in page.seen
    assert "<b>size" not in text
    if kind in ("Dataset", "Problem", "Explanation"):
        assert "&lt;script&gt;" in text
    assert "details" in page.seen  # folded up
    # Dark or light is the notebook's choice: text and lines have its colour, and no surface its own.
    assert "color:inherit" in text
    assert not re.search(r"background:(?!transparent)", text)


def test_html_says_what_the_result_says(plane):
    shown = {name: one._repr_html_() for name, one in results(plane).items()}
    assert f"{plane.limit.margin:.10g}" in shown["Limit"]
    assert plane.headline[0] in shown["Explanation"]
    applying = sum(one.applies is True for one in plane.findings)
    assert f"{applying} of {len(plane.findings)} statements apply" in shown["Lines"]
    assert shown["Trajectory"].count("<svg viewBox") == 4
    predictions = unescape(rf.predict(plane.problem)._repr_html_())
    assert all(one.claim in predictions for one in rf.predict(plane.problem))
    assert "0 items" in Lines([])._repr_html_()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["plane", "space"])
def test_every_result_draws_into_given_axes(plane, space, where, kind):
    axes = Figure().subplots()
    result = results(plane if where == "plane" else space)[kind]
    assert result.plot(ax=axes) is axes
    assert axes.lines or axes.collections or axes.patches or axes.images
    assert axes.get_title() or axes.get_xlabel()


def test_names_of_the_features_are_on_the_axes(plane):
    axes = plane.problem.plot(ax=Figure().subplots())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("<b>size", "a & b")


def test_the_curves_of_a_run(plane):
    run = plane.trajectory
    titles = {
        what: run.plot(Figure().subplots(), what=what).get_title() for what in ("loss", "margin", "rank", "norms")
    }
    assert len(set(titles.values())) == 4
    assert plane.plot(Figure().subplots(), what="loss").get_title() == titles["loss"]
    axes = run.plot(Figure().subplots())
    drawn = axes.lines[0].get_ydata()
    assert drawn[-1] == pytest.approx(run.measures.normalized_margin[-1])


def test_axes_are_made_where_none_are_given(plane):
    before = len(pyplot.get_fignums())
    axes = plane.problem.data.plot()
    assert len(pyplot.get_fignums()) == before + 1
    pyplot.close(axes.figure)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda e: e.trajectory.plot(what="speed"), "what='speed' cannot be drawn.*choose one of 'loss'"),
        (lambda e: e.problem.data.plot(what="loss"), "what='loss' is for runs"),
        (lambda e: e.problem.data.plot(ax=3), "ax is a int; Matplotlib axes are needed"),
        (lambda e: rf.predict(e.problem).plot(ax=Figure().subplots()), "only a list of findings"),
        (lambda e: rf.report.draw("a"), "str was given, which has no picture"),
    ],
)
def test_bad_uses(plane, use, message):
    with pytest.raises(rf.ProblemError, match=message):
        use(plane)


def test_directions_need_the_plane(space):
    with pytest.raises(rf.ProblemError, match="directions are for data in the plane"):
        space.trajectory.plot(Figure().subplots(), what="directions")


def test_show_prints_outside_a_notebook(plane, capsys):
    plane.show()
    assert capsys.readouterr().out.strip() == plane.text().strip()


def test_tables_of_an_explanation(plane):
    pytest.importorskip("pandas", reason="pandas is not installed: pip install 'reluflow[tables]' runs this test")
    findings, predictions, observations = plane.to_pandas()
    assert findings.claim.tolist() == [one.claim for one in plane.findings]
    assert findings.applies.tolist() == [one.applies for one in plane.findings]
    assert predictions.text.tolist() == [one.text for one in plane.predictions]
    assert observations.consistent.tolist() == [one.consistent for one in plane.observations]
    failing = findings.set_index("claim").failing["ML-T1a"]
    assert "eps small enough" in failing


# -- a real notebook ------------------------------------------------------------------------------------

CELLS = (
    "%matplotlib inline\nimport reluflow as rf\nfrom reluflow.problem.progress import bar, in_notebook",
    "data = rf.make('phuong', n=12, d=2, seed=0)\ndata",
    "problem = rf.Problem(data, rf.initialize(2, width=6, seed=0))\nfound = rf.explain(problem)\nfound",
    "axes = found.trajectory.plot(what='loss')",
    "found.show()",
    "rf.check(problem)",
    """with bar('counting', 3.0) as tell:
    import time
    for k in range(3):
        time.sleep(0.6)
        tell(k, lambda: 'so < far')
in_notebook()""",
)


@pytest.fixture(scope="module")
def notebook():
    for needed in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(
            needed, reason=f"{needed} is not installed: pip install nbclient ipykernel runs these tests"
        )
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    return [cell.outputs for cell in book.cells]


def kinds(outputs):
    return {kind for one in outputs for kind in one.get("data", {})}


@pytest.mark.filterwarnings("ignore")
class TestNotebook:
    """The cells above, run by a real kernel."""

    def test_results_are_shown_as_html_with_text_beside_it(self, notebook):
        for cell in (1, 2, 5):
            assert kinds(notebook[cell]) >= {"text/html", "text/plain"}, cell
        assert "12 samples" in notebook[1][0].data["text/html"]
        assert any("effective neuron" in one.data.get("text/html", "") for one in notebook[2])
        assert not any(one.output_type == "error" for cell in notebook for one in cell)

    def test_a_picture_appears(self, notebook):
        assert "image/png" in kinds(notebook[3])

    def test_the_whole_page_is_shown_and_fetches_nothing(self, notebook):
        (shown,) = (one.data["text/html"] for one in notebook[4] if "text/html" in one.get("data", {}))
        assert shown.startswith("<iframe")
        assert 'sandbox="allow-scripts"' in shown
        assert Balanced(shown).links == []

    def test_bars_show_below_the_cell_and_go(self, notebook):
        outputs = notebook[6]
        assert outputs[-1].data["text/plain"] == "True"
        (last,) = (one.data["text/html"] for one in outputs if "text/html" in one.get("data", {}))
        assert last == ""  # the bar was updated in place, and is gone in the end


def test_bars_in_a_cell(monkeypatch):
    """What the display is told on the way, with one of our own."""
    import sys
    import types

    from reluflow.problem import progress

    told = []
    handle = types.SimpleNamespace(update=told.append)
    display = types.SimpleNamespace(HTML=str, display=lambda *_, **__: handle)
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with progress.bars() as show:
        show({"flow": progress.Work(1.0, 4.0, "a < b")})
    with progress.busy("thinking"):
        pass
    assert told == [
        '<div>flow <progress value="1" max="4"></progress> a &lt; b</div>', "",
        "<div>thinking <progress></progress> </div>", "",
    ]  # fmt: skip
    monkeypatch.setattr(shell, "kernel", None)
    del shell.kernel
    assert not progress.in_notebook()


def test_watched_runs(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs this test")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1, bias=False)).double()
    X = torch.as_tensor(np.array(NAMED.X))
    with rf.watch(model, X, torch.as_tensor(np.array(NAMED.y)), every=1) as seen:
        for _ in range(3):
            seen.step(0.1)
    assert seen.plot(Figure().subplots()).get_title() == "margin"
    assert "<svg" in seen._repr_html_()
    Balanced(seen._repr_html_())
    deep = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), *model[:0], torch.nn.Linear(3, 4), *model[1:])
    deep = deep.double()
    with rf.watch(deep, X, torch.as_tensor(np.array(NAMED.y)), every=1, head=True) as seen:
        with torch.no_grad():
            deep[0].weight.add_(0.1)
        seen.step(0.1)
    assert seen.plot(Figure().subplots(), what="loss").get_ylabel() == "log loss"
    with pytest.raises(rf.ProblemError, match="points moved"):
        seen.plot(Figure().subplots(), what="directions")
    Balanced(seen._repr_html_())
