"""Reading NPZ files without trust, and writing files at once or not at all."""

from __future__ import annotations

import errno
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .checks import MAX_BYTES
from .errors import DataError, ProblemError, ReluflowError

Shapes = Mapping[str, tuple[int, ...]]


def read_npz(
    path: str | Path,
    need: tuple[str, ...],
    error: type[ReluflowError],
    fit: Callable[[Shapes], None] | None = None,
    also: tuple[str, ...] | None = None,
    skip: tuple[str, ...] = (),
) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of an NPZ file without ever unpickling, or say what is wrong with it.

    The headers are read first: arrays that are too large together, or whose shapes do not ``fit``, are refused before
    anything is unpacked. A small file may hold gigabytes of zeros: with ``also`` only what is needed and what it names,
    if it is there, is unpacked, and what ``skip`` names is not.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise error(f"{file} is a single NPY array; an NPZ archive with arrays {', '.join(need)} is needed.")
            shapes = _npz_shapes(file, archive, error)
            if fit is not None and all(name in shapes for name in need):
                fit(shapes)
            there = sorted(archive.files)
            wanted = there if also is None else [name for name in there if name in (*need, *also)]
            arrays = {name: archive[name] for name in wanted if name not in skip}
    except FileNotFoundError:
        raise error(f"there is no file {file}; check the name and the folder.") from None
    except IsADirectoryError:
        raise error(f"{file} is a directory; an NPZ file is needed.") from None
    except error:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as exc:
        pickled = "pickle" in str(exc).lower()
        why = "it holds Python objects, which are never unpickled; save plain numeric arrays" if pickled else str(exc)
        raise error(f"{file} cannot be read as NPZ: {why}.") from None
    missing = [name for name in need if name not in there]
    if missing:
        remedy = f"numpy.savez(path, {', '.join(f'{m}={m}' for m in need)})"
        raise error(f"{file} has arrays {there} but {', '.join(missing)} is missing; {remedy} writes them.")
    return arrays


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the shape and the type of an NPY array; a ValueError says what is wrong with it.

    >>> import io
    >>> stream = io.BytesIO()
    >>> np.save(stream, np.zeros((2, 3), dtype=np.float32))
    >>> _ = stream.seek(0)
    >>> npy_header(stream)
    ((2, 3), dtype('float32'))
    """
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    except (TypeError, SyntaxError, RecursionError, tokenize.TokenError) as exc:
        # The header is a Python literal, and NumPy lets what its parser says through.
        raise ValueError(str(exc)) from None
    return shape, dtype


def _npz_shapes(file: Path, archive: Any, error: type[ReluflowError]) -> dict[str, tuple[int, ...]]:
    """Read the headers of the arrays in an NPZ file."""
    shapes, total = {}, 0
    for member in archive.zip.namelist():
        if not member.endswith(".npy"):
            continue
        with archive.zip.open(member) as stream:
            shape, dtype = npy_header(stream)
        if dtype.hasobject:
            raise error(
                f"{file} cannot be read as NPZ: it holds Python objects, which are never unpickled; save plain numeric "
                "arrays."
            )
        shapes[member[:-4]] = shape
        total += math.prod(shape) * dtype.itemsize
    if total > MAX_BYTES:
        raise error(
            f"the arrays of {file} would take {total / 2**30:.1f} GiB; at most {MAX_BYTES / 2**30:.0f} GiB are "
            "allowed. Use fewer samples, dimensions or neurons."
        )
    return shapes


def write_to(path: str | os.PathLike[str], endings: tuple[str, ...]) -> Path:
    """Return the file to write, or refuse it: another ending, no such folder, a folder itself.

    >>> write_to("run.npz", (".npz", ".csv")).name
    'run.npz'
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ProblemError(f"{type(path).__name__} is no file name; give a path that ends in {', '.join(endings)}.")
    file = Path(path)
    if "\0" in str(file):
        raise ProblemError(f"{str(file)!r} is no file name: it contains a NUL character.")
    if file.is_dir():
        raise ProblemError(f"{file} cannot be written: it is a folder; name a file in it.")
    if file.suffix.lower() not in endings:
        given = f"its ending is {file.suffix}" if file.suffix else "it has no ending"
        need = ("one of " if len(endings) > 1 else "") + ", ".join(endings)
        raise ProblemError(
            f"{file} cannot be written: {given}, but {need} is needed; name it {file.with_suffix(endings[0])}."
        )
    if not file.parent.is_dir():
        raise ProblemError(f"{file} cannot be written: there is no folder {file.parent}; make it first.")
    return file


@contextmanager
def writing(path: str | os.PathLike[str], *endings: str) -> Iterator[Path]:
    """Give a file to write in place of the one named, whose place it takes at once; see `write_to`, `replacing`."""
    with replacing(write_to(path, endings), ProblemError) as temporary:
        yield temporary


@contextmanager
def replacing(file: Path, error: type[ReluflowError] = DataError) -> Iterator[Path]:
    """Give a temporary name beside ``file``, of the same ending, to write to.

    On success it takes the place of ``file`` at once; else nothing is left of it, and what was there before is.
    """
    if not file.parent.is_dir():
        raise error(f"{file} cannot be written: there is no folder {file.parent}. Make it first.")
    if file.is_dir():
        raise error(f"{file} cannot be written: it is a folder. Name a file.")
    target = Path(os.path.realpath(file))  # a link stays a link
    if target.is_symlink():
        raise error(f"{file} cannot be written: it is a link that leads to itself.")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part{file.suffix}")
    try:
        yield temporary
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        os.replace(temporary, target)
    except OSError as exc:
        raise error(f"{file} cannot be written: {exc.strerror or exc}.") from None
    finally:
        temporary.unlink(missing_ok=True)
