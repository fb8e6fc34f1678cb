"""Opening files that others wrote: plain or gzipped, never larger than allowed, and plain words when it fails."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO, cast

from ..problem.checks import MAX_BYTES
from ..problem.errors import DataError

_GZIP = b"\x1f\x8b"
_CHUNK = 2**24


def as_path(source: object) -> Path:
    """Turn what the user gave into a path, or say why it is none."""
    if not isinstance(source, (str, os.PathLike)) or isinstance(os.fspath(source), bytes):
        raise DataError(f"a file name is needed, not {source!r} of type {type(source).__name__}.")
    return Path(os.path.expanduser(source))


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn what can go wrong while ``file`` is read into a `DataError` that names it."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"there is no file {file}; check the name and the folder.") from None
    except IsADirectoryError:
        raise DataError(f"{file} is a directory; name one file in it.") from None
    except PermissionError:
        raise DataError(f"{file} may not be read by you; change its permissions or copy it.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise DataError(f"{file} is a damaged or truncated gzip file ({exc}); get it again.") from None
    except OSError as exc:
        raise DataError(f"{file} cannot be read: {exc.strerror or exc}.") from None


def check_bytes(what: str, size: int) -> None:
    """Refuse to read more than the allowed number of bytes, before anything is read."""
    if size > MAX_BYTES:
        raise DataError(
            f"{what} takes {size / 2**30:.1f} GiB; at most {MAX_BYTES / 2**30:.0f} GiB are read. "
            "Cut it into smaller files or choose fewer samples first."
        )


def check_file(file: Path) -> int:
    """Refuse what is no regular file, empty, or too large; return its size in bytes."""
    with reading(file):
        try:
            there = file.exists()
        except ValueError as exc:  # a NUL character in the name
            raise DataError(f"{str(file)!r} is no file name: {exc}.") from None
        if there and file.is_dir():
            raise IsADirectoryError
        if there and not file.is_file():
            raise DataError(f"{file} is not a regular file; save its content to a file first.")
        size = file.stat().st_size
    if size == 0:
        raise DataError(f"{file} is empty (0 bytes); at least one sample is needed. Get or write it again.")
    check_bytes(str(file), size)
    return size


def is_gzip(file: Path) -> bool:
    """Whether the file begins as gzip files do (its name does not matter)."""
    with open(file, "rb") as stream:
        return stream.read(2) == _GZIP


def open_bytes(file: Path) -> IO[bytes]:
    """Open a plain or gzipped file for reading bytes."""
    return cast(IO[bytes], gzip.open(file, "rb")) if is_gzip(file) else open(file, "rb")


def open_text(file: Path) -> TextIO:
    """Open a plain or gzipped file as UTF-8 text, with or without byte order mark, line ends untouched."""
    return io.TextIOWrapper(open_bytes(file), encoding="utf-8-sig", newline="")


def read_at_most(stream: IO[bytes], limit: int) -> bytes:
    """Read to the end, but never more than ``limit`` bytes (a small gzip file can hold terabytes)."""
    parts = []
    while limit > 0 and (part := stream.read(min(limit, _CHUNK))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)
