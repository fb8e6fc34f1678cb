"""Progress: shown on a terminal while something takes long, and nothing elsewhere."""

import io
import sys

import pytest

from reluflow.problem import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Give a function that makes stderr a terminal; pytest would take it back if it were made here."""
    monkeypatch.setattr(progress, "_MOMENT", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")

    def make():
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return make


def unasked():
    raise AssertionError("the words were asked for though nobody sees them")


def test_what_was_wanted_decides_and_else_the_terminal(monkeypatch):
    assert progress.visible(True)
    assert not progress.visible(False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not progress.visible(None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert progress.visible(None)
    monkeypatch.setattr(sys, "stderr", None)
    assert not progress.visible(None)


def test_nothing_on_a_pipe(capfd):
    with progress.busy("thinking"), progress.bar("work", 3) as tell:
        tell(1, unasked)
    with progress.bars() as show:
        assert show is None
    assert capfd.readouterr() == ("", "")


def test_a_bar_says_what_it_is_told_and_goes(terminal):
    screen = terminal()
    with progress.bar("work", 4.0) as tell:
        tell(1.0, lambda: "one of four")
    text = screen.getvalue()
    assert "work" in text
    assert "one of four" in text


def test_what_is_short_shows_no_bar(terminal, monkeypatch):
    screen = terminal()
    monkeypatch.setattr(progress, "_MOMENT", 60.0)
    with progress.bar("work", 4.0) as tell:
        tell(1.0, unasked)
    assert "work" not in screen.getvalue()


def test_one_bar_for_each_piece_of_work_as_long_as_it_runs(terminal):
    screen = terminal()
    with progress.bars() as show:
        show({"all": progress.Work(1, 3), "first": progress.Work(0.5, 1.0, "half")})
        show({"all": progress.Work(2, 3), "second": progress.Work(0.0, None, "begins")})
    text = screen.getvalue()
    assert all(word in text for word in ("all", "first", "half", "second", "begins"))
    assert "first" not in text[text.rindex("begins") :]
