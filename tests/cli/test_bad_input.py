"""Every way to give bad data: once through Python, once through the command line (exit code 2, no traceback)."""

import gzip
import io
import json
import os
import re
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.cli import run
from reluflow import DataError, ReluflowError, dataset


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def npy_header(shape):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue()


def zipped(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return out.getvalue()


def idx(*sides, body=None):
    head = bytes([0, 0, 8, len(sides)]) + struct.pack(f">{len(sides)}I", *sides)
    return head + (bytes(range(1, int(np.prod(sides)) + 1)) if body is None else body)


LABELS = {"a-labels-idx1-ubyte": idx(4, body=bytes([0, 1, 2, 0]))}
GOOD = npz(X=np.eye(2), y=np.array([1, -1]))
PACKED = gzip.compress(b"a,b,y\n" + b"1,2,1\n" * 1000)

# Text files: name -> (content, what the message must say).
TABLES = {
    "text in a number column": ("x1,x2,y\n1,2,1\n3,abc,-1\n", r"line 3, column 2 \('x2'\): 'abc' is not a number"),
    "text, no header": ("1,2,1\n3,abc,-1\n", "line 2, column 2: 'abc' is not a number"),
    "text in the first line": ("1,abc,1\n3,2,-1\n", "line 1, column 2: 'abc' is not a number"),
    "only text": ("a,b,y\nc,d,1\n", r"line 2, column 1 \('a'\): 'c' is not a number"),
    "an empty field": ("a,b,y\n1,,1\n", r"line 2, column 2 \('b'\) is empty"),
    "label before the culprit": ("y,a,b\n1,1,q\n", r"line 2, column 3 \('b'\): 'q'"),
    "decimal commas": ("a;b;y\n1,5;2,5;1\n", "Write decimals with a point"),
    "digits with underscores": ("a,b,y\n1_000,2,1\n", "'1_000' is not a number"),
    "digits of another alphabet": ("a,b,y\n\uff11,2,1\n", "line 2, column 1 .* is not a number"),
    "hexadecimal": ("a,b,y\n0x10,2,1\n", "'0x10' is not a number"),
    "ragged, short": ("a,b,y\n1,2,1\n\n# c\n1,2\n", "line 5 has 2 fields, but line 1 has 3"),
    "ragged, long": ("1,2,1\n1,2,1,4\n", "line 2 has 4 fields, but line 1 has 3"),
    "nothing": ("", "is empty"),
    "only comments": ("# a\n\n   \n#b\n", "every line is blank or a comment"),
    "only a header": ("a,b,y\n", "a header and no data rows"),
    "one column": ("1\n-1\n", "only one column found, '1'"),
    "separated by bars": ("1|2|1\n3|4|-1\n", r"only one column found, '1\|2\|1'.*--delimiter"),
    "an open quote": ('a,b,y\n1,"2,1\n3,4,-1\n', "line 2: badly quoted text"),
    "nan": ("a,b,y\n1,2,1\n3,NaN,-1\n", r"line 3, column 2 \('b'\) is nan"),
    "inf": ("1,2,1\n-Infinity,2,-1\n", "line 2, column 1 is -inf"),
    "overflow": ("a,b,y\n1,1e400,1\n", r"line 2, column 2 \('b'\) is inf or too large for a double"),
    "underflow": ("a,b,y\n1,1e-400,1\n", "'1e-400' is too small for a double"),
    "long underflow": ("a,b,y\n1,0." + "0" * 400 + "1,1\n", "too small for a double"),
    "too large to square": ("a,b,y\n1,1e200,1\n", r"largest entry 1e\+200.*sample k is line k \+ 2"),
    "labels 0 and 1": (
        "a,b,y\n1,2,0\n3,4,1\n",
        r"labels=\{0: -1, 1: 1\}, on the command line --negative 0 --positive 1",
    ),
    "three labels": ("1,2,0\n3,4,1\n3,4,2\n", "There are 3 different values"),
    "text labels": ("a,b,y\n1,2,no\n3,4,yes\n", "--negative no --positive yes"),
    "nan label": ("a,b,y\n1,2,1\n3,4,nan\n", "has no label at line 3 but 'nan'"),
    "a zero row": ("a,b,y\n1,2,1\n0,-0.0,-1\n", "zero row.*first at index 1.*sample k is line k"),
    "one point, both labels": ("a,b,y\n1,2,1\n\n1,2,-1\n", "same point with labels .*sample 0 is line 2"),
    "UTF-16": ("a,b,y\n1,2,1\n".encode("utf-16"), "is not UTF-8 text"),
    "Latin-1": ("größe,y\n1,1\n".encode("latin-1"), "is not UTF-8 text"),
    "zero bytes": (b"1,2,1\n\0\0\0\n", "line 2: this is binary data"),
    "garbage": (bytes(np.random.default_rng(0).integers(0, 256, 4000, dtype=np.uint8)), "UTF-8|binary"),
    "NPZ called CSV": (GOOD, "UTF-8|binary"),
    "truncated gzip": (PACKED[: len(PACKED) // 2], "damaged or truncated gzip"),
    "gzip with a wrong sum": (PACKED[:-8] + b"12345678", "damaged or truncated gzip"),
}

# Other files: name -> (files, the one that is asked for, what the message must say).
FILES = {
    "truncated NPZ": ({"a.npz": GOOD[: len(GOOD) // 2]}, "a.npz", "damaged, truncated or no NPZ"),
    "NPZ with a flipped bit": ({"a.npz": GOOD.replace(np.float64(1).tobytes(), b"\1" * 8, 1)}, "a.npz", "CRC"),
    "no NPZ at all": ({"a.npz": b"hello"}, "a.npz", "no NPZ file"),
    "empty NPZ": ({"a.npz": b""}, "a.npz", "is empty"),
    "NPZ without y": ({"a.npz": npz(X=np.eye(2))}, "a.npz", "y is missing"),
    "NPZ with objects": ({"a.npz": npz(X=np.array([{}]), y=np.ones(1))}, "a.npz", "never unpickled"),
    "NPZ with a label column": ({"a.npz": npz(X=np.eye(2), y=np.ones((2, 1)))}, "a.npz", r"shape \(2, 1\)"),
    "NPZ with 0/1": ({"a.npz": npz(X=np.eye(2), y=np.array([0, 1]))}, "a.npz", r"labels=\{0: -1, 1: 1\}"),
    "NPZ with NaN label": ({"a.npz": npz(X=np.eye(2), y=np.array([1, np.nan]))}, "a.npz", "has no label at index 1"),
    "NPZ with NaN": ({"a.npz": npz(X=np.array([[1, np.nan]]), y=np.ones(1))}, "a.npz", r"X\[0, 1\] is nan"),
    "NPZ with shapes that differ": ({"a.npz": npz(X=np.eye(2), y=np.ones(3))}, "a.npz", "2 rows but y has 3 labels"),
    "NPZ of nothing": ({"a.npz": npz(X=np.ones((0, 2)), y=np.ones(0))}, "a.npz", "there is nothing in it"),
    "NPZ with complex numbers": ({"a.npz": npz(X=1j * np.eye(2), y=np.ones(2))}, "a.npz", "not a real number type"),
    "NPZ that claims 15 TB": (
        {"a.npz": zipped(X=npy_header((10**12, 2)) + b"12", y=npy_header((3,)))},
        "a.npz",
        r"array X of shape \(1000000000000, 2\) takes 14901\.2 GiB",
    ),
    "NPZ that claims 2 GB": (
        {"a.npz": zipped(X=npy_header((10**8, 2)) + b"12", y=npy_header((3,)))},
        "a.npz",
        "array X is truncated",
    ),
    "NPY that claims 7 TB": (
        {"X.npy": npy_header((10**6, 10**6)), "y.npy": npy_header((2,)) + b"\0" * 16},
        "X.npy",
        "7450.6 GiB",
    ),
    "truncated NPY": (
        {"X.npy": npy_header((3, 2)) + b"1" * 8, "y.npy": npy_header((3,))},
        "X.npy",
        "cannot be read|trunc",
    ),
    "NPY without labels": ({"X.npy": npy_header((3, 2)) + b"1" * 48}, "X.npy", "the labels are needed too"),
    "NPY of text": ({"X.npy": b"1,2,3", "y.npy": b"1"}, "X.npy", "is no NPY array or damaged"),
    "truncated IDX": (
        {"a-images-idx3-ubyte": idx(4, 2, 3)[:-3], **LABELS},
        "a-images-idx3-ubyte",
        "must have 40 bytes, .*37",
    ),
    "IDX too long": ({"a-images-idx3-ubyte": idx(4, 2, 3) + b"1", **LABELS}, "a-images-idx3-ubyte", "40 bytes, .*41"),
    "IDX cut in the header": (
        {"a-images-idx3-ubyte": b"\0\0\x08\x03\0", **LABELS},
        "a-images-idx3-ubyte",
        "within the header",
    ),
    "IDX with wrong magic": (
        {"a-images-idx3-ubyte": b"\1\2\3\4" * 9, **LABELS},
        "a-images-idx3-ubyte",
        "bytes 01 02 03 04",
    ),
    "IDX that claims 10^12 bytes": (
        {"a-images-idx3-ubyte": idx(10**4, 10**4, 10**4, body=b""), **LABELS},
        "a-images-idx3-ubyte",
        "1000000000016 bytes, but it has 16",
    ),
    "gzipped IDX that claims 10^12 bytes": (
        {"a-images-idx3-ubyte.gz": gzip.compress(idx(10**4, 10**4, 10**4, body=b"")), **LABELS},
        "a-images-idx3-ubyte.gz",
        r"931\.3 GiB",
    ),
    "truncated gzipped IDX": (
        {"a-images-idx3-ubyte.gz": gzip.compress(idx(4, 2, 3))[:-9], **LABELS},
        "a-images-idx3-ubyte.gz",
        "damaged or truncated gzip",
    ),
    "gzipped IDX too short": (
        {"a-images-idx3-ubyte.gz": gzip.compress(idx(4, 2, 3)[:-3]), **LABELS},
        "a-images-idx3-ubyte.gz",
        "must have 40 bytes, .*37",
    ),
    "gzipped IDX too long": (
        {"a-images-idx3-ubyte.gz": gzip.compress(idx(4, 2, 3) + b"12"), **LABELS},
        "a-images-idx3-ubyte.gz",
        "but it has more than 40",
    ),
    "IDX with other labels": (
        {"a-images-idx3-ubyte": idx(5, 2, 3), **LABELS},
        "a-images-idx3-ubyte",
        "5 images but .* has 4 labels",
    ),
    "IDX without labels": ({"a-images-idx3-ubyte": idx(4, 2, 3)}, "a-images-idx3-ubyte", "are not beside it"),
    "IDX with three classes": ({"a-images-idx3-ubyte": idx(4, 2, 3), **LABELS}, "a-images-idx3-ubyte", "has 3 classes"),
}

# Names: (what is asked for, what the message must say).
NAMES = [
    ("nowhere.csv", "there is no file 'nowhere.csv'"),
    (".", "is a directory"),
    ("phung", "did you mean 'phuong'"),
    ("phuong:n=-1", "n must be a positive integer, not -1"),
    ("phuong:n=0", "n must be a positive integer, not 0"),
    ("phuong:n=100000,d=100000", r"74\.5 GiB"),
    ("digits:pair=1/1", "two different classes"),
]


@pytest.fixture
def refused(spoken):
    """Give the check that both ways refuse, with the same words."""

    def check(spec, message):
        with pytest.raises(DataError, match=message) as info:
            dataset(spec)
        result = run("data", "show", spec)
        assert result.exit_code == 2
        assert result.stderr == f"reluflow: {spoken(info.value, 'data', 'show')}\n"
        assert result.stdout == ""
        result = run("data", "show", "--json", spec)
        assert result.exit_code == 2
        assert result.stderr == ""
        found = json.loads(result.stdout)
        assert found.pop("remedy")
        assert found == {"schema": 1, "error": spoken(info.value, "data", "show"), "kind": "DataError", "exit_code": 2}

    return check


@pytest.mark.parametrize("case", TABLES)
def test_tables(refused, tmp_path, case):
    content, message = TABLES[case]
    file = tmp_path / "data.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(str(file), f"(?s){re.escape(str(file))}.*{message}")


@pytest.mark.parametrize("case", FILES)
def test_files(refused, tmp_path, case):
    files, asked, message = FILES[case]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    refused(str(tmp_path / asked), f"(?s){re.escape(str(tmp_path))}.*{message}")


@pytest.mark.parametrize(("spec", "message"), NAMES)
def test_names(refused, tmp_path, monkeypatch, spec, message):
    monkeypatch.chdir(tmp_path)
    refused(spec, message)


def test_a_file_of_10_gb_is_refused_before_it_is_read(refused, tmp_path):
    for name in ("a.csv", "a.npz", "a-images-idx3-ubyte", "X.npy"):
        with open(tmp_path / name, "wb") as stream:
            stream.truncate(10 * 2**30)  # takes no room on the disk
        (tmp_path / "y.npy").touch()
        (tmp_path / "a-labels-idx1-ubyte").touch()
        refused(str(tmp_path / name), r"takes 10\.0 GiB; at most 4 GiB")


def test_a_gzip_bomb_is_refused(refused, tmp_path, monkeypatch):
    monkeypatch.setattr("reluflow.data.tables._LONGEST_LINE", 2**20)  # 2**27 otherwise: slow to make and unpack
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"0" * 2**22))
    refused(str(tmp_path / "a.csv"), "line 1: this is binary data or one endless line")


def test_a_table_that_grows_too_large_is_refused_on_the_way(refused, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("1,2,1\n" * 5000)
    monkeypatch.setattr("reluflow.problem.checks.MAX_BYTES", 32000)
    refused(str(tmp_path / "a.csv"), "up to line [0-9]+ of shape .* would take")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(refused, tmp_path):
    (tmp_path / "a.csv").write_text("1,2,1\n")
    (tmp_path / "a.csv").chmod(0)
    refused(str(tmp_path / "a.csv"), "may not be read by you")


def test_no_permission_as_the_system_says_it(refused, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("1,2,1\n")

    def no(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("reluflow.data.files.open_bytes", no)
    refused(str(tmp_path / "a.csv"), "may not be read by you")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_no_regular_file(refused):
    refused("/dev/zero", "is not a regular file")


def test_every_cut_of_every_format_is_an_error_or_data(tmp_path):
    """Cut good files anywhere: reluflow says so or (text cut at a line) reads what is there; it never crashes."""
    whole = {
        "a.npz": GOOD,
        "a.csv": b"x,y\n1.25,1\n-3,-1\n",
        "b.csv": gzip.compress(b"x,y\n1.25,1\n-3,-1\n"),
        "a-images-idx3-ubyte": idx(4, 2, 3),
        "b-images-idx3-ubyte.gz": gzip.compress(idx(4, 2, 3)),
    }
    for letter in "ab":
        (tmp_path / f"{letter}-labels-idx1-ubyte").write_bytes(LABELS["a-labels-idx1-ubyte"])
    outcomes = set()
    for name, content in whole.items():
        spec = str(tmp_path / name) + (":digits=0/1" if "idx" in name else "")
        for cut in range(len(content)):
            (tmp_path / name).write_bytes(content[:cut])
            try:
                dataset(spec)
                outcomes.add((name, "read"))
            except ReluflowError:
                outcomes.add((name, "refused"))
        (tmp_path / name).write_bytes(content)
        dataset(spec)
    assert outcomes == {(name, "refused") for name in whole} | {("a.csv", "read")}


WHOLE = {
    "a.npz": GOOD,
    "X.npy": npy_header((2, 2)) + np.eye(2).tobytes(),
    "a.csv": b'a,b,"y z"\n1.5,2e-3,1\n# c\n-3,4,-1\n',
    "a-images-idx3-ubyte": idx(4, 2, 3),
    "a-images-idx3-ubyte.gz": gzip.compress(idx(4, 2, 3)),
}


@pytest.mark.filterwarnings("ignore:Reading:UserWarning")  # NumPy, of headers that look as if Python 2 had written them
@given(name=st.sampled_from(sorted(WHOLE)), data=st.data())
@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_damaged_files_never_crash(tmp_path, name, data):
    content = bytearray(WHOLE[name])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    (tmp_path / "y.npy").write_bytes(npy_header((2,)) + np.array([1.0, -1.0]).tobytes())
    (tmp_path / "a-labels-idx1-ubyte").write_bytes(LABELS["a-labels-idx1-ubyte"])
    (tmp_path / name).write_bytes(content)
    try:
        found = dataset(str(tmp_path / name) + (":digits=0/1" if "idx" in name else ""))
    except DataError:
        return
    assert np.isfinite(found.X).all()
