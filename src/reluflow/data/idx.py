"""IDX, the format of MNIST: a header of big-endian sizes, then the numbers. Plain or gzipped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..problem import check_size
from ..problem.errors import DataError
from ..problem.labels import Labels, signs
from ..problem.types import Array
from .files import check_bytes, check_file, is_gzip, open_bytes, read_at_most, reading

#: Type byte of the header -> dtype of the entries.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def looks_like_idx(start: bytes) -> bool:
    """Whether a file that starts with these bytes may be IDX: two zeros, a known type, few dimensions."""
    return len(start) >= 4 and start[:2] == b"\0\0" and start[2] in _TYPES and 1 <= start[3] <= 8


def read_idx(file: Path) -> npt.NDArray[Any]:
    """Read an IDX file into a read-only array of the type it declares.

    The sizes in the header are compared with the length of the file before anything is allocated.
    """
    length = check_file(file)
    with reading(file):
        packed = is_gzip(file)
        with open_bytes(file) as stream:
            dtype, shape = _read_header(stream, file)
            size = math.prod(shape) * dtype.itemsize
            head = 4 + 4 * len(shape)
            if not packed and head + size != length:
                raise DataError(_wrong_length(file, shape, head + size, length))
            check_bytes(f"{file}, {_sides(shape)} entries by its header,", size)
            body = read_at_most(stream, size + 1)
    if len(body) != size:
        more = "more than " if len(body) > size else ""
        raise DataError(_wrong_length(file, shape, head + size, head + min(len(body), size), more))
    return np.frombuffer(body, dtype=dtype).reshape(shape)


def _read_header(stream: IO[bytes], file: Path) -> tuple[np.dtype[Any], tuple[int, ...]]:
    start = stream.read(4)
    if not looks_like_idx(start):
        raise DataError(
            f"{file} is no IDX file: it starts with the bytes {start.hex(' ')}, where IDX has 00 00, a type "
            f"({', '.join(f'{t:02x}' for t in _TYPES)}) and the number of dimensions."
        )
    sizes = stream.read(4 * start[3])
    if len(sizes) < 4 * start[3]:
        raise DataError(f"{file} is truncated: it ends within the header. Get it again.")
    return np.dtype(_TYPES[start[2]]), tuple(int(s) for s in np.frombuffer(sizes, dtype=">u4"))


def _sides(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _wrong_length(file: Path, shape: Sequence[int], needed: int, there: int, more: str = "") -> str:
    return (
        f"{file} is damaged: for {_sides(shape)} entries, as its header says, it must have {needed} bytes, "
        f"but it has {more}{there}. Get it again."
    )


def read_images(
    file: Path, y: Path | None, digits: object, labels: Labels | None, scaled: bool
) -> tuple[Array, Array, dict[str, Any]]:
    """Read an IDX file of images and the one of its labels; see `reluflow.data.load`."""
    target = find_labels(file) if y is None else y
    images, classes = read_idx(file), read_idx(target)
    if images.ndim < 2:
        raise DataError(f"{file} holds {_sides(images.shape)} entries: those are labels. Name the file of the images.")
    if classes.ndim != 1:
        raise DataError(
            f"{target} holds {_sides(classes.shape)} entries: those are no labels. Say y=... where they are."
        )
    if len(images) != len(classes):
        raise DataError(f"{file} has {len(images)} images but {target} has {len(classes)} labels: not each other's.")
    X, sign = select(images.reshape(len(images), math.prod(images.shape[1:])), classes, digits, labels, str(target))
    if scaled and images.dtype != np.uint8:
        raise DataError(f"{file} holds {images.dtype.name} entries, not bytes from 0 to 255; say scaled=False.")
    return (X / 255.0 if scaled else X), sign, {"y": str(target), "scaled": scaled}


def select(
    rows: npt.NDArray[Any], classes: npt.NDArray[Any], digits: object, labels: Labels | None, where: str
) -> tuple[npt.NDArray[Any], Array]:
    """Keep the rows of two classes (the second becomes +1), or give every row its sign by ``labels``."""
    found: dict[Any, str] = {}
    values, first = np.unique(classes, return_index=True)
    for value, index in zip(values.tolist(), first.tolist(), strict=True):
        found[value] = f"index {index}"
    if digits is not None:
        if labels is not None:
            raise DataError("give digits or labels, not both: digits=(0, 1) already means labels {0: -1, 1: +1}.")
        minus, plus = as_pair(digits)
        for value in (minus, plus):
            if value not in found:
                raise DataError(f"{where} has no class {value}; it has {', '.join(map(str, found)) or 'none'}.")
        keep = (classes == minus) | (classes == plus)
        check_size("the selection", int(keep.sum()), rows.shape[1])
        return rows[keep], np.where(classes[keep] == plus, 1.0, -1.0)
    if labels is None and not set(found) <= {-1, 1}:
        raise DataError(
            f"{where} has {len(found)} classes: {', '.join(map(str, list(found)[:12]))}. Choose two, "
            "e.g. digits=(0, 1) (:digits=0/1 in a data argument); the second becomes +1."
        )
    sign = signs(found, labels, where)
    check_size("the images", *rows.shape)
    return rows, np.array([sign[value] for value in classes.tolist()])


def as_pair(digits: object) -> tuple[int, int]:
    """Check a choice of two classes: (the one that becomes -1, the one that becomes +1)."""
    whole = isinstance(digits, (tuple, list)) and all(
        isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in digits
    )
    if not isinstance(digits, (tuple, list)) or not whole or len(digits) != 2 or digits[0] == digits[1]:
        raise DataError(
            f"two different classes are needed, such as (0, 1) (0/1 in a data argument), not {digits!r}; "
            "the second becomes +1."
        )
    return int(digits[0]), int(digits[1])


def find_labels(images: Path) -> Path:
    """Find the file of labels beside a file of images, by the usual names."""
    name = images.name.removesuffix(".gz")
    for old, new in (("images-idx3", "labels-idx1"), ("images.idx3", "labels.idx1"), ("images", "labels")):
        if old in name:
            base = name.replace(old, new)
            for candidate in (base, base + ".gz"):
                if (images.parent / candidate).is_file():
                    return images.parent / candidate
            raise DataError(f"the labels of {images} are not beside it ({base}, maybe .gz); say y=... where they are.")
    raise DataError(f"the labels of {images} are not known; say y=... (:y=FILE in a data argument) where they are.")
