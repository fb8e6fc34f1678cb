"""Files are written at once or not at all."""

import os
import struct
import zipfile

import pytest

from reluflow import Network, ProblemError
from reluflow.problem.files import replacing, writing


def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    with pytest.raises(KeyboardInterrupt), writing(path, ".txt") as file:  # noqa: PT012
        file.write_text("half")
        assert path.read_text() == "old"
        raise KeyboardInterrupt
    assert [name.name for name in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"
    with writing(path, ".txt") as file:
        file.write_text("new")
    assert path.read_text() == "new"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "net.npz").symlink_to(tmp_path / "there" / "real.npz")
    Network([[1.0]], [1.0]).save(tmp_path / "net.npz")
    assert (tmp_path / "net.npz").is_symlink()
    assert Network.load(tmp_path / "there" / "real.npz") == Network([[1.0]], [1.0])
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ProblemError, match="leads to itself"), replacing(tmp_path / "loop", ProblemError):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(0o400)
    with pytest.raises(ProblemError, match="cannot be written"), writing(tmp_path / "a.txt", ".txt") as file:
        file.write_text("new")


@pytest.mark.parametrize("head", [b"{'descr': '<f8', 'shape': (((", b"(" * 900, b"'''abc", b"{]", b"\xff" * 9])
def test_a_header_that_is_no_python_is_said_to_be_damaged(tmp_path, head):
    # NumPy lets what its parser says through, and that is not only ValueError.
    padded = head.ljust(1000) + b"\n"
    with zipfile.ZipFile(tmp_path / "net.npz", "w") as archive:
        archive.writestr("W.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded)
    with pytest.raises(ProblemError, match="cannot be read as NPZ"):
        Network.load(tmp_path / "net.npz")
