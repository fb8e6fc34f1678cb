"""What numba compiled is kept where there is a place, and a long compilation is announced where somebody waits."""

import sys

import pytest

from reluflow.dynamics import compiled
from reluflow.dynamics.compiled import kept


def double(x):
    return 2 * x


class Terminal:
    def __init__(self, tty=True):
        self.text, self.tty = "", tty

    def isatty(self):
        return self.tty

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.fixture
def place(tmp_path, monkeypatch):
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def listen(monkeypatch, tty=True):
    """Stand in for stderr (in the test itself: pytest puts its own there when the test begins)."""
    terminal = Terminal(tty)
    monkeypatch.setattr(compiled, "_said", set())
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.delitem(sys.modules, "reluflow.cli", raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    return terminal


def compiles(**options):
    """Whether a new process would have to compile."""
    function = kept(double, **options)
    assert function(21) == 42
    return sum(function.stats.cache_hits.values()) == 0


def test_what_was_compiled_is_kept(place):
    assert compiles()
    assert not compiles()
    assert compiles(stamp=1)
    assert not compiles(stamp=1)


@pytest.mark.parametrize("damage", [b"", b"no pickle", b"\x80\x05K\x01."])
@pytest.mark.parametrize("what", ["*.nbi", "*.nbc"])
def test_damaged_files_are_made_anew(place, what, damage):
    assert compiles()
    (file,) = place.rglob(what)
    file.write_bytes(damage)
    assert compiles()
    assert not compiles()


def test_no_place_to_write(place, monkeypatch):
    screen = listen(monkeypatch)

    def refuse(*args, **kwargs):
        raise PermissionError("read-only file system")

    monkeypatch.setattr("numba.core.caching.tempfile.TemporaryFile", refuse)
    assert compiles(slow="a test")
    assert compiles()
    assert not list(place.rglob("*.nb?"))
    assert "NUMBA_CACHE_DIR" in screen.text


def test_a_full_disk(place, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", refuse)
    assert compiles()
    monkeypatch.undo()


def test_one_line_and_only_when_it_compiles(place, monkeypatch):
    screen = listen(monkeypatch)
    assert compiles(slow="a test")
    assert screen.text == "reluflow: compiling a test, once (about half a minute) ...\n"
    kept(double, slow="a test")(1.5)  # other types are compiled too, and nothing more is said
    assert screen.text.count("\n") == 1
    compiled._said.clear()
    screen.text = ""
    assert not compiles(slow="a test")
    assert compiles(stamp=2)  # quick ones are not worth a word
    assert screen.text == ""


def test_a_pipe_hears_only_from_the_command_line(place, monkeypatch):
    screen = listen(monkeypatch, tty=False)
    assert compiles(slow="a test")
    assert screen.text == ""
    compiled._said.clear()
    monkeypatch.setitem(sys.modules, "reluflow.cli", sys)
    assert compiles(slow="a test", stamp=1)
    assert screen.text.startswith("reluflow: compiling a test")


def test_no_stderr_at_all(place, monkeypatch):
    listen(monkeypatch)
    monkeypatch.setattr(sys, "stderr", None)
    assert compiles(slow="a test")
