"""What a sweep leaves in its folder.

``sweep.json`` says which sweep it is. Every worker appends to a file of its own in ``rows/``, one line a row, each with
a checksum, the first with the versions of the code; nobody ever writes to a file of another, so that a shared file
system will do and a kill tears at most the last line. Arrays go to ``arrays/``, one file a chunk, before the row that
names them.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import socket
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..problem import ProblemError
from ..problem.code import SOURCE, text_of
from ..problem.files import replacing
from .spec import Sweep

SCHEMA = 1
ROWS, ARRAYS, PLOTS = "rows", "arrays", "plots"
_SPEC, _CODES = "sweep.json", "codes.json"
_SYNC = 1.0  # seconds after which what was written is brought to the disk

Document = dict[str, Any]


# -- the folder ----------------------------------------------------------------------------------------------


def prepare(out: str | os.PathLike[str], sweep: Sweep) -> Path:
    """Make the folder a home of the sweep, or refuse one that is the home of another.

    What is impossible is refused before a new folder is made.
    """
    folder = Path(out)
    there = _read_spec(folder)
    if there is None:
        sweep.check()
        _make(folder)
        _claim(folder, sweep)
        there = _read_spec(folder)
    if there is None:
        raise ProblemError(f"{folder / _SPEC} cannot be written; name another folder.")
    if there["id"] != sweep.id:
        raise ProblemError(
            f"{folder} holds another sweep ({_difference(there['spec'], sweep.document())}); name another folder for "
            "this one, or run the spec that it holds."
        )
    _make(folder)
    return folder


def _make(folder: Path) -> None:
    try:
        for part in (ROWS, ARRAYS):
            (folder / part).mkdir(parents=True, exist_ok=True)
        probe = folder / ROWS / f".{secrets.token_hex(8)}"
        probe.touch()
        probe.unlink()
    except OSError as exc:
        why = exc.strerror or exc
        raise ProblemError(f"the folder {folder} cannot be written to: {why}; name another one.") from None


def _claim(folder: Path, sweep: Sweep) -> None:
    """Write ``sweep.json`` unless somebody else has just done so."""
    ids = set()
    for tail in tails(folder):
        next(tail.news(), None)
        ids |= {tail.header["spec"]} if tail.header else set()
    if ids - {sweep.id}:
        raise ProblemError(
            f"{folder} holds rows of another sweep, and its {_SPEC} is missing or damaged; name another folder, or run "
            "the spec these rows are of."
        )
    document = {"schema": SCHEMA, "id": sweep.id, "version": __version__, "problems": len(sweep)}
    document |= {"spec": sweep.document(), "folder": str(sweep.folder), "inputs": dict(sweep.inputs)}
    target = folder / _SPEC
    draft = folder / f".{_SPEC}.{secrets.token_hex(8)}"
    try:
        draft.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        try:
            os.link(draft, target)
        except FileExistsError:
            if _read_spec(folder) is None:  # damaged, and the rows are ours
                os.replace(draft, target)
        except OSError:  # no links on this file system
            os.replace(draft, target)
    except OSError as exc:
        raise ProblemError(f"{target} cannot be written: {exc.strerror or exc}.") from None
    finally:
        draft.unlink(missing_ok=True)


def _read_spec(folder: Path) -> Document | None:
    try:
        found: Document = json.loads((folder / _SPEC).read_text(encoding="utf-8"))
        usable = found["schema"] == SCHEMA and {"id", "spec", "problems", "folder"} <= set(found)
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError):
        return None
    except OSError as exc:
        raise ProblemError(f"{folder / _SPEC} cannot be read: {exc.strerror or exc}.") from None
    return found if usable else None


def read_spec(out: str | os.PathLike[str]) -> Document:
    """Read which sweep a folder holds."""
    folder = Path(out)
    found = _read_spec(folder)
    if found is None:
        if (folder / _SPEC).exists():
            raise ProblemError(
                f"{folder / _SPEC} is damaged; reluflow sweep run SPEC --out {folder} writes it anew, no row is lost."
            )
        what = "holds no sweep" if folder.is_dir() else "is no folder"
        raise ProblemError(f"{folder} {what}; reluflow sweep run SPEC --out {folder} makes one.")
    return found


def _difference(there: Document, here: Document) -> str:
    """Name the first thing that two specs say differently."""
    for section in dict.fromkeys((*there, *here)):
        one, other = there.get(section), here.get(section)
        if section not in ("title", "limits") and one != other:
            if isinstance(one, dict) and isinstance(other, dict):
                key = next(key for key in (*one, *other) if one.get(key) != other.get(key))
                return f"{section}.{key} is {one.get(key)!r} there and {other.get(key)!r} here"
            return f"{section} is {one!r} there and {other!r} here"
    return "the same spec, but the data files have changed, or another version of reluflow reads it differently"


def versions(folder: Path, sweep: Sweep) -> dict[str, str]:
    """Return the version of the code behind every measure; kept in the folder, for it takes seconds to find out."""
    kept: dict[str, str] = {}
    with suppress(OSError, ValueError, AttributeError):
        kept = {str(k): str(v) for k, v in json.loads((folder / _CODES).read_text(encoding="utf-8")).items()}
    text, found = text_of(SOURCE), {}
    for one in sweep.taken:
        key = f"{one.name} {text}"
        found[one.label] = kept[key] if one.own and key in kept else one.version()
        if one.own:
            kept[key] = found[one.label]
    with suppress(OSError, ProblemError), replacing(folder / _CODES, ProblemError) as draft:
        draft.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return found


# -- writing -------------------------------------------------------------------------------------------------


def line_of(document: Mapping[str, Any]) -> bytes:
    r"""Write a document on one line that can be checked.

    >>> line_of({"begin": 3})
    b'a9423adc {"begin":3}\n'
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    return f"{zlib.crc32(text):08x} ".encode() + text + b"\n"


def read_line(line: bytes) -> Document | None:
    """Read such a line; None if it is damaged.

    >>> read_line(line_of({"begin": 3})), read_line(line_of({"begin": 3})[:-2])
    ({'begin': 3}, None)
    """
    try:
        if line[8:9] != b" " or line[-1:] != b"\n" or int(line[:8], 16) != zlib.crc32(line[9:-1]):
            return None
        found: Document = json.loads(line[9:-1])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class Journal:
    """The file of one worker, and of its arrays."""

    def __init__(self, folder: Path, spec: str, codes: Mapping[str, str], driver: str) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.folder, self.path = folder, folder / ROWS / f"{self.name}.rows"
        self._chunk = 0
        self._synced = time.monotonic()
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except OSError as exc:
            raise _unwritable(self.path, exc) from None
        about = {"host": socket.gethostname(), "pid": os.getpid(), "driver": driver, "at": time.time()}
        self.write({"schema": SCHEMA, "spec": spec, "codes": dict(codes), **about})

    def write(self, *documents: Mapping[str, Any]) -> None:
        """Append lines; those that do not fit are not there at all."""
        self._append(self._file, self.path, b"".join(map(line_of, documents)))
        if time.monotonic() - self._synced > _SYNC:
            try:
                os.fsync(self._file)
            except OSError as exc:  # where a full disk is noticed on some file systems
                raise _unwritable(self.path, exc) from None
            self._synced = time.monotonic()

    def new_chunk(self) -> None:
        """Begin a new file of arrays when the next ones come."""
        self._chunk += 1

    def keep(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Document:
        """Append arrays to the file of this chunk, and return where each is."""
        found: Document = {}
        path = self.folder / ARRAYS / f"{self.name}-{self._chunk}.npys"
        file = -1
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            for name, array in arrays.items():
                stream = io.BytesIO()
                np.save(stream, array, allow_pickle=False)
                start = os.fstat(file).st_size
                self._append(file, path, stream.getvalue())
                found[name] = [path.name, start, len(stream.getvalue()), zlib.crc32(stream.getvalue())]
        except OSError as exc:
            raise _unwritable(path, exc) from None
        except ValueError as exc:  # Python objects
            raise ProblemError(f"arrays of {', '.join(arrays)} cannot be kept: {exc}.") from None
        finally:
            if file >= 0:
                os.close(file)
        return found

    def close(self) -> None:
        """Bring all to the disk."""
        with suppress(OSError):
            os.fsync(self._file)
            os.close(self._file)

    @staticmethod
    def _append(file: int, path: Path, data: bytes) -> None:
        start = os.fstat(file).st_size
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(file, left) :]
        except OSError as exc:
            with suppress(OSError):
                os.ftruncate(file, start)
            raise _unwritable(path, exc) from None


def _unwritable(path: Path, exc: OSError) -> ProblemError:
    return ProblemError(
        f"{path} cannot be written: {exc.strerror or exc}; all rows so far are kept. Make room there, and the same "
        "command goes on."
    )


# -- reading -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tail:
    """A file of rows, read as far as it was there; what is appended later is read later."""

    path: Path
    header: Document | None = None
    offset: int = 0
    damaged: int = 0
    begun: int | None = None
    since: float = 0.0

    def news(self) -> Iterator[Document]:
        """Yield the rows that were not read yet; marks say which problem was begun and has no row."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    break  # being written, or torn
                first, self.offset = self.offset == 0, self.offset + len(line)
                found = read_line(line)
                if found is None:
                    self.damaged += 1
                elif first:
                    self.header = found if found.get("schema") == SCHEMA else None
                elif self.header is not None:
                    if "begin" in found:
                        self.begun, self.since = found["begin"], found["at"]
                        continue
                    elif self.begun in (found.get("i"), found.get("left")):
                        self.begun = None
                        if "left" in found:
                            continue
                    yield found

    def note(self) -> str:
        """Say what is wrong with the file; empty if nothing is."""
        if self.header is None and (self.offset or self._torn()):
            return f"{self.path} is left out: its first line is damaged, so that nobody knows what its rows are of."
        lines = []
        if self.damaged:
            lines.append(f"{self.damaged} damaged line{'s' if self.damaged > 1 else ''}")
        if self._torn():
            lines.append("a torn last line")
        return f"{self.path}: {' and '.join(lines)} dropped." if lines else ""

    def modified(self) -> float:
        """Return when the file was last written to; 0 if it is gone."""
        with suppress(OSError):
            return self.path.stat().st_mtime
        return 0.0

    def _torn(self) -> bool:
        """Whether the file ends within a line; whole lines that came since are none of it."""
        with suppress(OSError), self.path.open("rb") as stream:
            stream.seek(self.offset)
            rest = stream.read()
            return bool(rest) and not rest.endswith(b"\n")
        return False


def tails(folder: Path) -> list[Tail]:
    """Return all files of rows, not read yet."""
    return [Tail(path) for path in sorted((folder / ROWS).glob("*.rows"))]


def read_array(folder: Path, place: Sequence[Any]) -> npt.NDArray[Any]:
    """Read an array from where `Journal.keep` put it."""
    name, start, size, check = place
    path = folder / ARRAYS / str(name)
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            data = stream.read(size)
    except OSError as exc:
        raise ProblemError(f"{path} cannot be read: {exc.strerror or exc}.") from None
    if len(data) != size or zlib.crc32(data) != check:
        raise ProblemError(f"{path} is damaged at byte {start}; what it held has to be computed anew, elsewhere.")
    found: npt.NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return found
