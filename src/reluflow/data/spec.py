"""From a short text to a dataset: what every command of the command line takes as its data."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..problem import Dataset
from ..problem.columns import PREPARATIONS
from ..problem.errors import DataError
from ..problem.labels import as_number
from .files import as_path
from .loaders import digits, load
from .mnist import mnist
from .registry import CONSTRUCTIONS, make, same_word, suggestion
from .zoo import example, examples

#: Image datasets by name.
IMAGES: Mapping[str, Callable[..., Dataset]] = MappingProxyType({"mnist": mnist, "digits": digits})

# Options of `load` that are texts, whatever they look like.
_TEXTS = ("label", "positive", "negative", "delimiter", "y", "name", "drop_columns")


def dataset(spec: str | os.PathLike[str], **options: Any) -> Dataset:
    """Find the data a short text stands for.

    Parameters
    ----------
    spec : str
        One of

        - a construction and its parameters, ``phuong`` or ``phuong:seed=0,n=100``;
        - a worked example, ``EX1``;
        - ``mnist:digits=0/1,center=true`` or ``digits:pair=3/8`` (the second digit becomes +1);
        - a file, ``points.csv``, with options of `load` if need be: ``points.csv:label=kind``,
          ``points.csv:negative=0,positive=1``, ``train-images-idx3-ubyte.gz:digits=0/1``.

        All of them can be prepared: ``EX1:bias=1``, ``phuong:seed=0,center=true``, ``points.csv:standardize=true``,
        ``points.csv:drop_columns=id/name`` (where a construction has a parameter of the same name, that one is meant).
        Values are numbers, ``true``, ``false``, ``none``, texts, and lists such as ``1/2.5/3``. Case does not matter
        in names. They come before files: ``./phuong`` is the file.
    **options
        ``drop_columns``, ``center``, ``standardize``, ``bias`` as for `load`; for files all other options of it.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> dataset("phuong:n=30,seed=1").n
    30
    >>> dataset("phung")
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.DataError: there is no dataset and no file 'phung'; did you mean 'phuong'? ...
    """
    text = os.fspath(spec) if isinstance(spec, (str, os.PathLike)) else spec
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"a dataset is named by a text such as 'phuong:seed=0' or 'points.csv', not {spec!r}.")
    head, colon, rest = text.partition(":")
    name = _known(head, exactly=True) or (None if _exists(text) or _exists(head) else _known(head, exactly=False))
    if name is not None:
        preparation = _only_prepared(name, options)
        return _make(name, parse_pairs(rest.split(","), f"after {name!r}:") if colon else {}, preparation)
    if _exists(text):
        return load(text, **options)
    head, colon, rest = text.rpartition(":")
    if colon and _exists(head):
        return load(head, **_load_options(rest, options))
    raise DataError(_not_found(text))


def _only_prepared(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the preparations that are asked for; built-in data take no other option."""
    foreign = [key for key in options if key not in PREPARATIONS]
    if foreign:
        raise DataError(f"{name!r} is no file: {', '.join(foreign)} can only be said of files.")
    return {key: value for key, value in options.items() if value is not None}


def _known(name: str, exactly: bool) -> str | None:
    """Return the name of built-in data as it is written; case does not matter unless ``exactly``."""
    known = [*CONSTRUCTIONS, *IMAGES, *examples()]
    return (name if name in known else None) if exactly else same_word(name, known)


def parse_pairs(pairs: Iterable[str], where: str) -> dict[str, Any]:
    """Read ``key=value`` texts.

    >>> parse_pairs(["seed=0", "tau=0.5", "pair=3/8", "shifted=true", "w=none", "base=EX1"], "")
    {'seed': 0, 'tau': 0.5, 'pair': (3, 8), 'shifted': True, 'w': None, 'base': 'EX1'}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (key and equals and value):
            raise DataError(f"{where} key=value is needed, e.g. seed=0, not {pair!r}.".lstrip())
        if key in found:
            raise DataError(f"{where} {key} is given twice.".lstrip())
        found[key] = value if key in _TEXTS else _value(value)
    return found


def _value(text: str) -> Any:
    word = text.lower()
    if word in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[word]
    if re.fullmatch(r"[+-]?[0-9]{1,4000}", text):
        return int(text)
    number = as_number(text)
    if number is not None:
        return number
    if "/" in text:  # a list; one of a single entry is written 1/
        entries = [_value(entry) for entry in text.removesuffix("/").split("/")]
        if all(isinstance(entry, (int, float)) and not isinstance(entry, bool) for entry in entries):
            return tuple(entries)
    return text


def _make(name: str, parameters: dict[str, Any], preparation: dict[str, Any]) -> Dataset:
    """Make built-in data and prepare them; a parameter of their own comes before a preparation of the same name."""
    own = _parameters(name)
    _check_parameters(name, parameters, own)
    for key in [key for key in parameters if key not in own]:
        if key in preparation:
            raise DataError(f"{key} is said twice: after {name!r} and as an option.")
        preparation[key] = parameters.pop(key)
    if name in CONSTRUCTIONS:
        data = make(name, **parameters)
    else:
        data = IMAGES[name](**parameters) if name in IMAGES else example(name).data
    return data.prepared(**preparation) if preparation else data


def _parameters(name: str) -> Mapping[str, Any]:
    """Return the parameters of built-in data; worked examples have none."""
    if name in CONSTRUCTIONS:
        return CONSTRUCTIONS[name].parameters
    return inspect.signature(IMAGES[name]).parameters if name in IMAGES else {}


def _check_parameters(name: str, parameters: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    for key in parameters:
        if key not in own and key not in PREPARATIONS:
            takes = [f"{p.name}={p.default!r}" for p in own.values()] + [k for k in PREPARATIONS if k not in own]
            what = f"{name!r} is a worked example and" if not own else name
            near = suggestion(key, [*own, *PREPARATIONS]) or "."
            raise DataError(f"{what} has no parameter {key!r}{near} It takes {', '.join(takes)}.")


def _exists(text: str) -> bool:
    try:
        return bool(text) and as_path(text).exists()
    except (OSError, ValueError):  # too long for a file name, or a NUL in it
        return False


def _load_options(rest: str, options: dict[str, Any]) -> dict[str, Any]:
    said = parse_pairs(rest.split(","), "after the file name,")
    minus, plus = said.pop("negative", None), said.pop("positive", None)
    if minus is not None or plus is not None:
        said["labels"] = label_rule(minus, plus)
    allowed = inspect.signature(load).parameters
    for key in said:
        if key not in allowed or key == "source":
            known = [k for k in (*allowed, "negative", "positive") if k not in ("source", "labels")]
            near = suggestion(key, known) or "."
            raise DataError(f"a file has no option {key!r}{near} Options are {', '.join(known)}.")
        if options.get(key) is not None:
            raise DataError(f"{key} is said twice: after the file name and as an option.")
    return {**said, **options}


def label_rule(negative: str | None, positive: str | None) -> dict[str, int]:
    """Turn the two texts that stand for the classes into the mapping `load` takes."""
    if negative is None or positive is None:
        given, other = ("positive", "negative") if negative is None else ("negative", "positive")
        raise DataError(f"{given} is given without {other}; both are needed to map labels.")
    if negative == positive:
        raise DataError(f"negative and positive are both {positive!r}; two different values are needed.")
    return {negative: -1, positive: +1}


def _not_found(text: str) -> str:
    head, _, options = text.rpartition(":")
    if "=" not in options:
        head = text
    file = Path(os.path.expanduser(head))
    if os.sep in head or "/" in head or re.fullmatch(r".*\.[A-Za-z]{2,4}", head):
        try:
            near = suggestion(file.name, (entry.name for entry in file.parent.iterdir()))
        except (OSError, ValueError):
            near = ""
        near = near or "; check the name and the folder."
        return f"there is no file {head!r}{near} Names of built-in data: reluflow data list."
    near = suggestion(head, [*CONSTRUCTIONS, *examples(), *IMAGES])
    return (
        f"there is no dataset and no file {head!r}{near or '.'} `reluflow data list` lists the names; "
        "a file may be CSV, TSV, NPZ, NPY or IDX."
    )
