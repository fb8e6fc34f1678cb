"""The store: what is torn, damaged, full, forbidden or another's is told, and no row is lost or wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow
from helpers.sweeps import TESTS, lines, loop, rows, small
from reluflow import ProblemError, open_sweep
from reluflow.sweep.store import Journal, line_of, read_line, tails

DOCUMENTS = st.dictionaries(
    st.text(max_size=5), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)


@given(DOCUMENTS)
def test_lines_come_back(document):
    line = line_of(document)
    assert line.count(b"\n") == 1
    assert read_line(line) == json.loads(json.dumps(document))


@given(DOCUMENTS, st.data())
def test_damaged_lines_are_noticed(document, data):
    line = line_of(document)
    cut = data.draw(st.integers(0, len(line) - 1))
    assert read_line(line[:cut]) is None
    bit = data.draw(st.integers(0, 8 * len(line) - 1))
    wrong = bytearray(line)
    wrong[bit // 8] ^= 1 << bit % 8
    if wrong[:8].lower() != line[:8] or wrong[8:] != line[8:]:  # hexadecimal digits have two cases
        assert read_line(bytes(wrong)) is None


def rows_file(folder):
    (file,) = (folder / "rows").glob("*.rows")
    return file


def test_a_torn_last_line_is_dropped_with_a_note(tmp_path):
    small().run(tmp_path)
    file = rows_file(tmp_path)
    os.truncate(file, file.stat().st_size - 7)
    os.utime(file, (0, 0))
    status = open_sweep(tmp_path).status()
    assert status.left == 1
    assert len(status.notes) == 1
    assert "a torn last line dropped" in status.notes[0]
    found = small().run(tmp_path)
    assert rows(found) == loop(small())
    assert len(lines(tmp_path)) == 36


def test_lines_that_came_since_are_not_torn(tmp_path):
    small().run(tmp_path, shard=(1, 2))
    file = rows_file(tmp_path)
    (tail,) = tails(tmp_path)
    assert sum(1 for _ in tail.news()) == 18
    with file.open("ab") as stream:
        stream.write(line_of({"begin": 1, "at": 0.0}))
    assert tail.note() == ""
    with file.open("ab") as stream:
        stream.write(line_of({"begin": 1, "at": 0.0})[:-3])
    assert "a torn last line" in tail.note()


@pytest.mark.parametrize("seed", range(4))
def test_damage_anywhere_costs_rows_and_never_makes_wrong_ones(tmp_path, seed):
    import random

    draw = random.Random(seed)
    small().run(tmp_path)
    file = rows_file(tmp_path)
    data = bytearray(file.read_bytes())
    first = data.index(b"\n")
    for _ in range(6):
        at = draw.randrange(first + 1, len(data))
        data[at : at + draw.randrange(1, 40)] = draw.randbytes(draw.randrange(0, 40))
    file.write_bytes(data)
    kept = rows(open_sweep(tmp_path))
    want = loop(small())
    assert 0 < len(kept) < 36
    assert all(want[index] == row for index, row in kept.items())
    assert "damaged" in open_sweep(tmp_path).status().notes[0]
    assert rows(small().run(tmp_path)) == want


def test_a_file_without_its_first_line_is_left_out(tmp_path):
    small().run(tmp_path)
    file = rows_file(tmp_path)
    file.write_bytes(b"x" + file.read_bytes())
    assert open_sweep(tmp_path).status().left == 36
    assert "its first line is damaged" in open_sweep(tmp_path).status().notes[0]
    assert rows(small().run(tmp_path)) == loop(small())


def test_a_folder_of_another_sweep(tmp_path):
    small().run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(
        ProblemError, match=r"holds another sweep \(network.seed is \{'range': \[0, 6\]\} there"
    ) as refusal:
        small(seeds=7).run(tmp_path)
    assert "name another folder" in str(refusal.value)
    with pytest.raises(ProblemError, match="measures"):
        small("arrays").run(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    small(title="a better title").run(tmp_path)


def test_rows_of_another_sweep_are_left_out(tmp_path):
    small(seeds=7).run(tmp_path / "other")
    small().run(tmp_path / "out", shard=(1, 2))
    other = rows_file(tmp_path / "other")
    (tmp_path / "out" / "rows" / other.name).write_bytes(other.read_bytes())
    status = open_sweep(tmp_path / "out").status()
    assert status.left == 18
    assert "of another sweep" in status.notes[0]
    assert rows(small().run(tmp_path / "out")) == loop(small())


def test_a_damaged_spec_is_written_anew_and_rows_are_kept(tmp_path):
    small().run(tmp_path)
    for text in ("", "{", "[]", '{"schema": 99}'):
        (tmp_path / "sweep.json").write_text(text)
        with pytest.raises(ProblemError, match="is damaged; reluflow sweep run"):
            open_sweep(tmp_path)
        with pytest.raises(ProblemError, match="rows of another sweep"):
            small(seeds=7).run(tmp_path)
        small().run(tmp_path)
        assert rows(open_sweep(tmp_path)) == loop(small())
    assert len(lines(tmp_path)) == 36


def test_no_sweep_there(tmp_path):
    with pytest.raises(ProblemError, match="holds no sweep"):
        open_sweep(tmp_path)
    with pytest.raises(ProblemError, match="is no folder"):
        open_sweep(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(ProblemError, match="cannot be written to"):
        small().run(tmp_path / "file")


def test_a_folder_that_cannot_be_written_to(tmp_path):
    with pytest.raises(ProblemError, match="the folder /proc/sweep cannot be written to"):
        small().run("/proc/sweep")  # nobody may, not even root
    small().run(tmp_path, shard=(1, 2))
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere: a read-only folder is only tried in /proc")
    for folder in (tmp_path / "rows", tmp_path / "arrays", tmp_path):
        folder.chmod(0o500)
    try:
        with pytest.raises(ProblemError, match="cannot be written to"):
            small().run(tmp_path)
        assert open_sweep(tmp_path).status().left == 18
    finally:
        for folder in (tmp_path, tmp_path / "rows", tmp_path / "arrays"):
            folder.chmod(0o700)


FULL = """
import resource, sys
from helpers.sweeps import small
from reluflow import ProblemError
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
try:
    small(sys.argv[2]).run(sys.argv[1])
except ProblemError as exc:
    print(exc)
    sys.exit(exc.exit_code)
"""


@pytest.mark.parametrize("function", ["cheap", "arrays"])
def test_a_full_disk(tmp_path, function):
    paths = os.pathsep.join([str(Path(reluflow.__file__).parents[1]), str(TESTS)])
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), function],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be written: File too large; all rows so far are kept" in done.stdout
    status = open_sweep(tmp_path).status()
    assert 0 < status.left < 36
    assert status.notes == ()  # nothing half
    found = small(function).run(tmp_path)
    if function == "cheap":
        assert rows(found) == loop(small())
    assert sorted(lines(tmp_path)) == list(range(36))
    assert found.arrays_at(35).keys() == ({"arrays.W"} if function == "arrays" else set())


def test_what_was_begun_and_never_ended_is_known(tmp_path):
    sweep = small()
    sweep.run(tmp_path, shard=(1, 36))
    journal = Journal(tmp_path, sweep.id, {"cheap": "1"}, "driver")
    journal.write({"begin": 4, "at": 0.0})
    journal.close()
    journal = Journal(tmp_path, sweep.id, {"cheap": "1"}, "driver")
    journal.write({"begin": 4, "at": 0.0}, {"left": 4}, {"begin": 5, "at": 0.0})
    journal.close()
    from reluflow.sweep.ledger import Ledger

    book = Ledger(tmp_path, sweep.id, 36, ["cheap"])
    book.refresh()
    assert (book.deaths(4), book.deaths(5), book.deaths(0)) == (1, 1, 0)
    assert len(book.of_driver("driver")) == 2


def test_no_link_no_harm(tmp_path, monkeypatch):
    """A file system that has no links will do."""

    def link(*_):
        raise OSError(1, "not here")

    monkeypatch.setattr(os, "link", link)
    assert small().run(tmp_path).status().complete
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
