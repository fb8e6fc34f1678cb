"""Data from files, and back into files."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..problem import Dataset
from ..problem.checks import as_float_array, is_number
from ..problem.columns import Columns, drop_words
from ..problem.errors import DataError
from ..problem.files import Shapes, npy_header, read_npz, replacing
from ..problem.frames import signs_of, split
from ..problem.labels import Labels, signed
from ..problem.plain import plain
from ..problem.words import count
from .files import as_path, check_bytes, check_file, open_bytes, reading
from .foreign import check_kind, frame_reader, read_frame
from .idx import as_pair, looks_like_idx, read_images, select
from .tables import read_table, write_table

_TABLES = (".csv", ".tsv", ".tab", ".txt", ".dat")
_ALL_OPTIONS = ("label", "labels", "delimiter", "header", "y", "digits", "scaled")
#: Which options of `load` mean something for which kind of file.
_OPTIONS = {
    "table": ("label", "labels", "delimiter", "header"),
    "frame": ("label", "labels"),
    "npz": ("labels",),
    "npy": ("y", "labels"),
    "idx": ("y", "digits", "labels", "scaled"),
}


def load(
    source: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    labels: Labels | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    y: str | os.PathLike[str] | None = None,
    digits: tuple[int, int] | None = None,
    scaled: bool | None = None,
    samples: int | None = None,
    seed: int = 0,
    drop_columns: Columns | None = None,
    center: bool = False,
    standardize: bool = False,
    bias: float | bool | None = None,
    name: str | None = None,
) -> Dataset:
    r"""Read a dataset from a CSV, TSV, NPZ, NPY, IDX, Parquet or Feather file.

    Nothing is dropped, sorted or converted unless an option asks for it, and every refusal names the
    file, the place in it and the remedy. Text is UTF-8; it and IDX files may be gzipped. Nothing is
    ever unpickled.

    Parameters
    ----------
    source : path
        - *CSV, TSV*: one sample a line. Comma, tab, semicolon or spaces; blank lines and lines that start
          with ``#`` are skipped; a first line of names is recognised.
        - *Parquet, Feather*: one sample a row, read by pandas (the extra ``tables``).
        - *NPZ* with arrays ``X`` and ``y``, or *NPY* with ``X`` and a second file for ``y``.
        - *IDX* images, as those of MNIST, and a second file for their labels.
    label : str or int, optional
        *Tables.* The label column: its name, or its position counted from 0, from -1 backwards.
        Left out, the one column called y, label, labels, target or class, else the last.
    labels : mapping, optional
        Which value means what, ``{0: -1, 1: +1}`` or ``{"cat": -1, "dog": +1}``; every value that occurs
        must be mentioned. Without it labels are -1 and +1.
    delimiter, header : str, bool, optional
        *CSV.* What separates the fields (a character, or comma, tab, semicolon, space for any run of blanks), whether
        the first line holds names; found out if left out.
    y : path, optional
        *NPY, IDX.* Where the labels are; by default beside the data under the usual name
        (``X.npy`` and ``y.npy``, ``train_X.npy`` and ``train_y.npy``, ``...images...`` and ``...labels...``).
    digits : (int, int), optional
        *IDX.* Keep these two classes: the first becomes -1, the second +1.
    scaled : bool, optional
        *IDX.* Divide bytes by 255 (default) or take them as they are.
    samples, seed : int, optional
        Keep so many samples, drawn without replacement and left in their order.
    drop_columns : str, int or list of them, optional
        Leave out these columns, by name or by position from 0 (of a CSV file: in the file); they may hold anything.
    center : bool
        Subtract the mean of all points kept from every column.
    standardize : bool
        Subtract the mean and divide by the standard deviation (that of the population) of every column. A constant
        column becomes 0, with a note.
    bias : bool or float, optional
        Append a constant column, which stands for biases in the first layer: of ones, or of this value. It comes last
        and is neither centred nor scaled.
    name : str, optional
        How to call it in reports; by default the name of the file.

    Returns
    -------
    Dataset
        With all of this recorded in ``parameters``, the names of the columns in ``names``, and remarks such as
        "column 'id' counts the rows" in ``notes``. Its ``transform`` does the same to new points.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "points.csv")
    >>> _ = file.write_text("height,weight,kind\n1.5,2,cat\n-1,0.5,dog\n")
    >>> load(file, labels={"cat": +1, "dog": -1})
    Dataset 'points.csv': n=2 (1 positive, 1 negative), d=2
    """
    if hasattr(source, "columns") or hasattr(source, "__array__"):
        raise DataError(
            f"load reads a file, but a {type(source).__name__} was given; Dataset(X, y) takes points and labels as "
            "they are, and so do the verbs: explain(X, y)."
        )
    file = as_path(source)
    kind = _kind(file)
    options = (label, labels, delimiter, header, y, digits, scaled)
    given = {key: value for key, value in zip(_ALL_OPTIONS, options, strict=True) if value is not None}
    _check_options(file, kind, given)
    second = None if y is None else as_path(y)
    if kind == "table":
        X, sign, about = read_table(file, label, labels, delimiter, header, drop_columns)
    elif kind == "frame":
        X, sign, about = _read_frame(file, label, labels, drop_columns)
    elif kind == "idx":
        X, sign, about = read_images(file, second, digits, labels, scaled is not False)
    else:
        X, sign, about = _read_npz(file, labels) if kind == "npz" else _read_npy(file, second, labels)
    title = about.pop("name", file.name) if name is None else name
    columns = {key: about.pop(key) for key in ("names", "positions") if key in about}
    dropped, steps = about.pop("dropped", []), about.pop("transform", ())
    if dropped:
        about["steps"] = (drop_words(dropped),)
        title = f"{title}|{about['steps'][0]}"
    if kind in ("table", "frame"):
        drop_columns = None  # done while reading
    try:
        data = finish(
            X,
            sign,
            title,
            {"file": str(file), **given, **about},
            samples,
            seed,
            **columns,
            drop_columns=drop_columns,
            center=center,
            standardize=standardize,
            bias=bias,
        )
    except DataError as exc:
        raise DataError(f"{file}: {exc}{_line_hint(len(sign), *about.get('lines', ()))}") from None
    return data._with(_steps=(*steps, *data._steps))


def _line_hint(n: int, first: int = 0, last: int = 0) -> str:
    """Say how to find sample k in a file of lines."""
    if not first:
        return ""
    if last - first + 1 == n:
        return f" (Samples are counted from 0: sample k is line k + {first}.)"
    return f" (Samples are counted from 0, skipping blank lines and comments: sample 0 is line {first}.)"


def _check_options(file: Path, kind: str, given: dict[str, Any]) -> None:
    for option in given:
        if option not in _OPTIONS[kind]:
            word = {"table": "a table", "frame": "a table"}.get(kind, kind.upper())
            usable = ", ".join(_OPTIONS[kind])
            raise DataError(f"{file} is read as {word}, for which {option} means nothing; options are {usable}.")
    scaled = given.get("scaled")
    if scaled is not None and not isinstance(scaled, bool):
        raise DataError(f"scaled must be True or False, not {scaled!r}.")


def finish(
    X: npt.NDArray[Any],
    y: npt.NDArray[Any],
    name: str,
    parameters: dict[str, Any],
    samples: int | None,
    seed: int,
    **preparation: Any,
) -> Dataset:
    """Draw a subsample if asked, prepare the columns as asked, make the `Dataset`."""
    for option, value, low in (("samples", samples, 1), ("seed", seed, 0)):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if value is not None and (not whole or value < low):
            raise DataError(f"{option} must be an integer from {low} on, not {value!r}.")
    if samples is not None:
        if samples > len(y):
            raise DataError(f"samples={samples} are asked for, but there are only {len(y)}.")
        keep = np.sort(np.random.default_rng(seed).choice(len(y), samples, replace=False))
        X, y = X[keep], y[keep]
        parameters = {**parameters, "samples": int(samples), "seed": int(seed)}
    return Dataset.prepared_from(X, y, name, parameters, **preparation)


def _kind(file: Path) -> str:
    """Tell the format by the ending of the name, else by the first bytes."""
    check_file(file)
    if frame_reader(file) is not None:
        return "frame"
    check_kind(file)
    name = file.name.lower().removesuffix(".gz")
    if name.endswith((".npz", ".npy")):
        return name[-3:]
    if name.endswith(_TABLES):
        return "table"
    with reading(file), open_bytes(file) as stream:
        start = stream.read(6)
    if start.startswith(b"PK"):
        return "npz"
    if start == b"\x93NUMPY":
        return "npy"
    return "idx" if looks_like_idx(start) or "idx" in name or "ubyte" in name else "table"


def _read_frame(
    file: Path, label: str | int | None, labels: Labels | None, drop_columns: Columns | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
    try:
        X, y, names, about = split(read_frame(file), None, label, drop_columns)
        points = as_float_array(X, "X", 2, DataError)
        where = f"column {about['label']!r}"
        return points, signs_of(y, labels, where), {**about, "names": names}
    except DataError as exc:
        raise exc if str(exc).startswith(str(file)) else DataError(f"{file}: {exc}") from None


# -- NPZ and NPY ------------------------------------------------------------------------------------


def _read_npz(file: Path, labels: Labels | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
    check_file(file)
    _check_members(file)

    def fit(shapes: Shapes) -> None:
        if shapes["X"][:1] != shapes["y"][:1]:
            rows, given = (count(math.prod(shapes[key][:1]), word) for key, word in (("X", "row"), ("y", "label")))
            raise DataError(f"{file}: X has {rows} but y has {given}; one label a row is needed.")

    # Labels that are none are noticed before the points are unpacked.
    small = read_npz(file, ("X", "y"), DataError, fit, also=(), skip=("X",))
    y = signed(small["y"], labels, f"{file}, array y")
    arrays = read_npz(file, ("X",), DataError, also=("name", "parameters", "transform", "names"))
    about = _texts(arrays, ("name", "parameters", "transform"))
    for key in ("parameters", "transform"):
        if key in about:
            try:
                about[key] = json.loads(about[key])
            except ValueError:
                raise DataError(f"{file}: the array {key!r} is not JSON text; leave it out.") from None
    if "parameters" in about:
        about["saved"] = about.pop("parameters")
    if "transform" in about:
        about["transform"] = _steps(about["transform"], str(file))
    if "names" in arrays:
        if arrays["names"].dtype.kind != "U" or arrays["names"].ndim != 1:
            raise DataError(f"{file}: the array 'names' is not a list of texts; numpy.array(['a', 'b']) is one.")
        about["names"] = arrays["names"].tolist()
    return arrays["X"], y, about


def _texts(arrays: Mapping[str, npt.NDArray[Any]], keys: Sequence[str]) -> dict[str, Any]:
    """Return those of the arrays that hold one text each."""
    return {k: str(arrays[k]) for k in keys if k in arrays and arrays[k].dtype.kind == "U" and arrays[k].ndim == 0}


def _steps(found: Any, where: str) -> tuple[Any, ...]:
    """Check what a file says was done to the columns."""

    def known(step: Any) -> bool:
        if not isinstance(step, list) or len(step) != 2 or step[0] not in ("shift", "scale", "bias"):
            return False
        return all(map(is_number, step[1] if isinstance(step[1], list) else [step[1]]))

    if not isinstance(found, list) or not all(map(known, found)):
        raise DataError(f"{where}: the array 'transform' does not say what was done to the columns; leave it out.")
    return tuple((kind, tuple(value) if isinstance(value, list) else value) for kind, value in found)


def _check_members(file: Path) -> None:
    """Compare what the arrays claim to be with what the archive holds, before anything is allocated."""
    try:
        with reading(file), zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.filename.endswith(".npy"):
                    with archive.open(member) as stream:
                        _check_header(stream, f"{file}, array {member.filename[:-4]}", member.file_size)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as exc:
        raise DataError(
            f"{file} is damaged, truncated or no NPZ file ({exc}); numpy.savez(path, X=X, y=y) writes one."
        ) from None


def _check_header(stream: IO[bytes], what: str, length: int) -> None:
    try:
        shape, dtype = npy_header(stream)
    except ValueError as exc:
        raise DataError(f"{what} is no NPY array or damaged: {exc}. Get it again.") from None
    if dtype.hasobject:
        raise DataError(f"{what} holds Python objects, which are never unpickled; save plain numeric arrays.")
    size = math.prod(shape) * dtype.itemsize
    check_bytes(f"{what} of shape {shape}", size)
    if size > length:
        raise DataError(f"{what} is truncated: shape {shape} needs {size} bytes, there are {length}. Get it again.")


def _read_npy(
    file: Path, y: Path | None, labels: Labels | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
    target = _find_y(file) if y is None else y
    return _load_npy(file), signed(_load_npy(target), labels, str(target)), {"y": str(target)}


def _load_npy(file: Path) -> npt.NDArray[Any]:
    length = check_file(file)
    with reading(file):
        with open(file, "rb") as stream:
            _check_header(stream, str(file), length)
        try:
            array: npt.NDArray[Any] = np.load(file, allow_pickle=False)
        except (ValueError, EOFError) as exc:
            raise DataError(f"{file} cannot be read as NPY: {exc}. Get it again.") from None
    return array


def _find_y(file: Path) -> Path:
    if file.stem.endswith("X"):
        target = file.with_name(f"{file.stem[:-1]}y.npy")
        if target.is_file():
            return target
    raise DataError(
        f"{file} holds the points alone: the labels are needed too. Put them beside it (X.npy and y.npy, "
        "train_X.npy and train_y.npy) or say y=... (:y=FILE in a data argument)."
    )


# -- scikit-learn's digits --------------------------------------------------------------------------


def digits(
    pair: tuple[int, int] = (0, 1),
    *,
    center: bool = False,
    scaled: bool = True,
    samples: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Two of the handwritten 8 x 8 digits that come with scikit-learn (needs no download).

    Parameters
    ----------
    pair : (int, int)
        The digit that becomes -1 and the digit that becomes +1.
    center : bool
        Subtract the mean of all images kept.
    scaled : bool
        Divide the pixels by 16, so that they lie in [0, 1].
    samples, seed : int, optional
        Keep so many images, drawn without replacement and left in their order.

    Examples
    --------
    >>> digits((0, 1), center=True)
    Dataset 'digits 1 (+) vs 0 (-)|centered()': n=360 (182 positive, 178 negative), d=64
    """
    minus, plus = as_pair(pair)
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError(
            "the digits come with scikit-learn, which is not installed; pip install 'reluflow[learn]' installs it."
        ) from None
    pixels, classes = load_digits(return_X_y=True)
    X, y = select(pixels, classes, pair, None, "digits")
    name = f"digits {plus} (+) vs {minus} (-)"
    parameters = {"pair": (minus, plus), "scaled": scaled}
    return finish(X / 16.0 if scaled else X, y, name, parameters, samples, seed, center=center)


# -- writing ----------------------------------------------------------------------------------------


def save(data: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a dataset to a NPZ, CSV or TSV file, so that `load` gives back the same bits.

    The ending decides. NPZ also keeps the name, the parameters and what `Dataset.transform` needs; both kinds keep the
    names of the columns. An existing file is replaced, at
    once and only when all has been written.

    Parameters
    ----------
    data : Dataset
    path : path
        Ends in ``.npz``, ``.csv`` or ``.tsv``.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> data = Dataset([[0.1, 2.0], [-1 / 3, 0.0]], [1, -1])
    >>> file = save(data, tempfile.mkdtemp() + "/points.csv")
    >>> print(file.read_text())
    x1,x2,y
    0.1,2.0,1
    -0.3333333333333333,0.0,-1
    <BLANKLINE>
    >>> load(file) == data
    True
    """
    if not isinstance(data, Dataset):
        raise DataError(f"save writes a Dataset, not {type(data).__name__}.")
    file = as_path(path)
    ending = file.suffix.lower()
    if ending == ".npz":
        arrays: dict[str, Any] = {"X": data.X, "y": data.y}
        if data.name is not None:
            arrays["name"] = np.array(data.name)
        if data.names is not None:
            arrays["names"] = np.array(data.names)
        if data._steps:
            arrays["transform"] = np.array(json.dumps(data._steps))
        if data.parameters:
            arrays["parameters"] = np.array(json.dumps(plain(data.parameters)))
        with replacing(file) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, **arrays)
    elif ending in (".csv", ".tsv"):
        write_table(data, file, "," if ending == ".csv" else "\t")
    else:
        raise DataError(f"{file}: the ending says how to write; use .npz, .csv or .tsv.")
    return file
