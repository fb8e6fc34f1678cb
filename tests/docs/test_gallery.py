"""Every script of the gallery runs, draws its picture, and holds what it says (its own assertions); small versions."""

import re
import runpy
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))

pytestmark = pytest.mark.skipif(not SCRIPTS, reason="the gallery is not part of this installation")


def test_there_are_sixteen():
    assert [int(re.match(r"plot_(\d\d)_", script.name)[1]) for script in SCRIPTS] == list(range(1, 17))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_draws_and_holds(script, tmp_path, monkeypatch):
    if "pytorch" in script.name:
        pytest.importorskip("torch", reason="torch is not installed: this example only says so")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.setenv("RELUFLOW_QUICK", "1")
    monkeypatch.setenv("RELUFLOW_CACHE", str(tmp_path))  # no MNIST: the same images everywhere
    monkeypatch.setattr(pyplot, "show", lambda: None)
    source = script.read_text(encoding="utf-8")
    assert source.startswith(('"""', 'r"""'))
    assert re.search(r"^ *assert ", source, re.MULTILINE), "a script that claims nothing"
    pyplot.close("all")
    runpy.run_path(str(script))
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert len(figures) == 1, "one telling picture"
    for axes in figures[0].axes:
        assert axes.has_data()
    figures[0].canvas.draw()
    pyplot.close("all")


def test_without_torch_the_example_says_so(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    (script,) = GALLERY.glob("*pytorch*.py")
    runpy.run_path(str(script))
    assert "PyTorch is not installed" in capsys.readouterr().out
