"""From the parameters of one place of a sweep to its problem."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..data import CONSTRUCTIONS, IMAGES, dataset, examples, label_rule, load
from ..data.registry import suggestion
from ..data.spec import parse_pairs
from ..problem import DataError, Dataset, Problem, ProblemError, initialize

Sections = Mapping[str, Mapping[str, Any]]

#: What each section of a spec may say; of data that depends on their source.
NETWORK = tuple(name for name in inspect.signature(initialize).parameters if name != "d")
PROBLEM = ("loss", "reduction", "train")
_KEPT = 16  # datasets a worker remembers; neighbours in a sweep mostly share theirs


def build(sections: Sections, folder: str) -> Problem:
    """Make the problem of some parameters; files are looked for in the folder.

    >>> build({"data": {"source": "phuong", "n": 30}, "network": {"width": 4}, "problem": {"loss": "exponential"}}, ".")
    Problem: mean exponential loss, both layers trained
      Dataset 'phuong': n=30 (15 positive, 15 negative), d=20
      Network: p=4 (2 positive, 2 negative), d=20, slope=0, log_scale=-13.8155
    """
    data = _remembered(json.dumps(sections["data"], sort_keys=True), folder)
    return Problem(data, initialize(data.d, **sections["network"]), **sections["problem"])


@lru_cache(_KEPT)
def _remembered(said: str, folder: str) -> Dataset:
    return data_of(json.loads(said), folder)


def data_of(said: Mapping[str, Any], folder: str) -> Dataset:
    """Make the data of a section: what `reluflow.data.dataset` makes of a text, parameter by parameter."""
    parameters = dict(said)
    source = parameters.pop("source", None)
    if not isinstance(source, str) or not source.strip():
        raise ProblemError(
            f"data.source = {source!r}: data are named by a text, a construction, an example or a file as for every "
            'other verb: source = "phuong".'
        )
    file = file_of(source, folder)
    if file is None:
        columns = {"drop_columns": parameters.pop("drop_columns")} if "drop_columns" in parameters else {}
        pairs = [f"{key}={_text(key, value)}" for key, value in parameters.items()]
        return dataset(source + ("," if ":" in source else ":") * bool(pairs) + ",".join(pairs), **columns)
    return dataset(file + source[len(_head(source, file, folder)) :], **_options(parameters))


def file_of(source: str, folder: str) -> str | None:
    """Return the file that a source names, in the folder unless it has a path of its own; None for built-in data."""
    if source.partition(":")[0] in (*CONSTRUCTIONS, *IMAGES, *examples()):
        return None
    for text in filter(None, (source, source.rpartition(":")[0])):
        file = Path(folder, os.path.expanduser(text))
        if "\0" not in text and file.is_file():
            return str(file)
    return None


def _head(source: str, file: str, folder: str) -> str:
    """Return the part of a source that is the name of the file, without options after a colon."""
    whole = str(Path(folder, os.path.expanduser(source))) == file
    return source if whole else source.rpartition(":")[0]


def _text(key: str, value: Any) -> str:
    """Write a value as data arguments have it, and refuse one that would be read as another."""
    if isinstance(value, list):
        text = "/".join(map(str, value)) + "/" * (len(value) == 1)
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        read = parse_pairs([f"{key}={text}"], "")[key]
    except DataError:
        read = None
    if "," in text or read != (tuple(value) if isinstance(value, list) else value):
        raise ProblemError(f"data.{key} = {value!r} cannot be a parameter of built-in data; numbers and names can.")
    return text


def _options(said: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a file, as `load` takes them."""
    options = dict(said)
    minus, plus = options.pop("negative", None), options.pop("positive", None)
    allowed = [name for name in inspect.signature(load).parameters if name not in ("source", "labels")]
    for key in options:
        if key not in allowed:
            near = suggestion(key, allowed) or "."
            raise ProblemError(f"data.{key}: a file has no option {key!r}{near} Options are {', '.join(allowed)}.")
    if minus is not None or plus is not None:
        options["labels"] = label_rule(minus if minus is None else str(minus), plus if plus is None else str(plus))
    return options


def contents(file: str) -> str:
    """Return the hash of a file: data that change make other problems."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    except OSError as exc:
        raise DataError(f"{file} cannot be read: {exc.strerror or exc}.") from None
