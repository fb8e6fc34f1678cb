"""From whatever a user has in hand to a dataset and a problem: what every verb takes."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from ..problem import Dataset, Loss, Network, Problem, ProblemError, initialize
from ..problem.columns import PREPARATIONS, Columns
from ..problem.errors import DataError
from ..problem.frames import from_frame, is_frame, joined
from ..problem.labels import Labels
from .registry import suggestion
from .spec import dataset
from .zoo import Example

Result = TypeVar("Result")

#: How a network is drawn where nothing is said.
DRAW: Mapping[str, Any] = MappingProxyType(
    {"width": 100, "slope": 0.0, "scheme": "balanced", "scale": None, "log_scale": None, "seed": 0}
)
_WANTED = "X and y, a Dataset, a data frame, the name of a file or of built-in data"
_OF_FILES = ("delimiter", "header")
_OF_TABLES = ("label", "labels", *_OF_FILES)


def as_dataset(source: Any, y: Any = None, **options: Any) -> Dataset:
    """Make a dataset of what there is; see `as_problem`.

    >>> as_dataset([[1.0], [3.0]], ["no", "yes"], labels={"no": -1, "yes": 1}, center=True).X
    array([[-1.],
           [ 1.]])
    """
    said = {key: value for key, value in options.items() if value is not None and key not in PREPARATIONS}
    said |= {key: options[key] for key in PREPARATIONS if not any(options.get(key) is no for no in (None, False))}
    if isinstance(source, Example):
        source = source.data
    if isinstance(source, Dataset):
        _refuse(said, _OF_TABLES, "a Dataset is given, which has its labels")
        if y is not None:
            raise DataError("a Dataset is given, which has its labels, and y too; leave y out, or give X and y.")
        return source.prepared(**said) if said else source
    if isinstance(source, (str, os.PathLike)):
        if y is not None:
            raise DataError(f"{os.fspath(source)!r} names data with labels, and y is given too; leave y out.")
        return dataset(source, **said)
    return _from_values(source, y, said)


def _from_values(source: Any, y: Any, said: dict[str, Any]) -> Dataset:
    """Make a dataset of a data frame, or of arrays."""
    _refuse(said, _OF_FILES, f"a {type(source).__name__} is given, no file")
    preparation = {key: said.pop(key) for key in PREPARATIONS if key in said}
    if is_frame(source):
        return from_frame(source, y, **said, **preparation)
    if not _is_array(source):
        raise DataError(f"{_WANTED} are needed, not {_shown(source)} of type {type(source).__name__}.")
    if y is None:
        raise DataError("X is given without y; the labels are needed too, -1 or +1 for every row.")
    _refuse(said, ("label",), "X and y are given")
    return joined(source, y, None, preparation, {}, **said)


def as_problem(
    source: Any,
    y: Any = None,
    *,
    network: Network | str | os.PathLike[str] | None = None,
    width: int | None = None,
    slope: float | None = None,
    scheme: str | None = None,
    scale: float | None = None,
    log_scale: float | None = None,
    seed: int | np.random.Generator | None = None,
    loss: str | Loss = "logistic",
    reduction: str = "mean",
    train: str = "both",
    label: str | int | None = None,
    labels: Labels | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    drop_columns: Columns | None = None,
    center: bool = False,
    standardize: bool = False,
    bias: float | bool | None = None,
) -> Problem:
    """Make a learning problem of data and how to draw a network: what every verb does with what it is given.

    ``explain(X, y, width=50)`` is ``explain(as_problem(X, y, width=50))``, and so for check, predict, align, flow,
    limit, descend and monitor. Call it yourself to use the same draw several times.

    Parameters
    ----------
    source : array_like, data frame, Dataset, str or path
        Points, one a row, with ``y``; a pandas DataFrame with ``y``, or with its labels in the column ``label``; a
        `Dataset`; a file, or the name of built-in data such as ``"phuong:seed=0"`` (see `dataset`).
    y : array_like, optional
        Labels.
    network : Network or path, optional
        Start from this one (a path: an NPZ file that `Network.save` wrote) instead of a draw.
    width, slope, scheme, scale, log_scale, seed : optional
        How to draw it, as for `initialize`: 100 neurons, ReLU, ``"balanced"``, scale 1e-6, seed 0. Where ``network`` is
        given they may not contradict it.
    loss, reduction, train : str
        As for `Problem`.
    label, labels, delimiter, header, drop_columns, center, standardize, bias
        As for `load`; delimiter and header are for files.

    Returns
    -------
    Problem

    Examples
    --------
    >>> as_problem([[2, 1], [-3, -1]], [1, -1], width=4, slope=0.1)
    Problem: mean logistic loss, both layers trained
      Dataset: n=2 (1 positive, 1 negative), d=2
      Network: p=4 (4 positive, 0 negative), d=2, slope=0.1, log_scale=-13.8155
    >>> as_problem("EX1", bias=True, width=4).data
    Dataset 'EX1|with_bias(1.0)': n=4 (2 positive, 2 negative), d=3
    """
    table = {"label": label, "labels": labels, "delimiter": delimiter, "header": header}
    preparation = {"drop_columns": drop_columns, "center": center, "standardize": standardize, "bias": bias}
    data = as_dataset(source, y, **table, **preparation)
    draw = {
        key: value
        for key, value in zip(DRAW, (width, slope, scheme, scale, log_scale, seed), strict=True)
        if value is not None
    }
    if network is None:
        net = initialize(data.d, **{**DRAW, **draw})
    else:
        if not isinstance(network, (Network, str, os.PathLike)):
            raise ProblemError(f"network must be a Network or the name of its NPZ file, not {_shown(network)}.")
        net = network if isinstance(network, Network) else Network.load(os.fspath(network))
        _check_draw(net, draw)
    return Problem(data, net, loss, reduction, train)  # type: ignore[arg-type]


def _check_draw(net: Network, draw: dict[str, Any]) -> None:
    """Refuse what contradicts a given network; what it has anyway may be said."""
    for key, value in draw.items():
        own = {"width": net.p, "slope": net.slope}.get(key)
        if own is None:
            raise ProblemError(
                f"{key} = {value!r} says how to draw a network, but network is given and nothing is drawn; leave {key} "
                f"(--{key.replace('_', '-')}) out, or the network."
            )
        if own != value:
            raise ProblemError(
                f"{key} = {value!r} contradicts the network that is given, which has {key} {own:g}; leave {key} "
                f"(--{key}) out, or the network."
            )


# -- verbs ------------------------------------------------------------------------------------------

_OPTIONS = tuple(inspect.signature(as_problem).parameters)[2:]


def takes_data(*ready: type) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a verb that works on a `Problem` take data, and how to draw a network, in its place.

    ``verb(problem, ...)`` stays as it is; ``verb(X, y, ..., width=50)`` or ``verb("table.csv", ..., width=50)`` first
    makes the problem by `as_problem`. Types in ``ready`` are passed on as a `Problem` is. To type checkers the verb
    then takes anything (there is no type for "what NumPy, pandas or PyTorch can make numbers of"); it checks itself.
    """

    def decorate(verb: Callable[..., Result]) -> Callable[..., Result]:
        name, signature = verb.__name__, inspect.signature(verb)
        first, *own = signature.parameters

        @functools.wraps(verb)
        def on_data(*args: Any, **options: Any) -> Result:
            if not args and first in options:
                args = (options.pop(first),)
            if not args:
                raise ProblemError(f"{name} needs a Problem, or data: {name}(X, y, width=50).")
            source, rest = args[0], list(args[1:])
            _check_options(name, own, options)
            if isinstance(source, (Problem, *ready)):
                _check_nothing_drawn(name, own, options)
                return verb(source, *rest, **options)
            problem, rest, options = _drawn(name, own, source, rest, options)
            try:
                signature.bind(problem, *rest, **options)
            except TypeError as exc:
                raise ProblemError(
                    f"{name}: {exc}. It takes the data, then {', '.join(own)}; the label column of a data frame or a "
                    "file is label=..."
                ) from None
            return verb(problem, *rest, **options)

        return on_data

    return decorate


def _check_options(verb: str, own: Sequence[str], options: Mapping[str, Any]) -> None:
    unknown = [key for key in options if key not in (*own, *_OPTIONS, "y")]
    if unknown:
        known = (*own, *_OPTIONS)
        near = suggestion(unknown[0], known) or "."
        raise ProblemError(f"{verb} has no option {unknown[0]!r}{near} It takes {', '.join(known)}.")


def _check_nothing_drawn(verb: str, own: Sequence[str], options: Mapping[str, Any]) -> None:
    said = [key for key in options if key not in own]
    if said:
        raise ProblemError(
            f"{verb} was given a Problem, which has its data and its network, and {said[0]}= too; "
            f"leave {said[0]} out, or give the data: {verb}(X, y, {said[0]}=...)."
        )


def _drawn(
    verb: str, own: Sequence[str], source: Any, rest: list[Any], options: dict[str, Any]
) -> tuple[Problem, list[Any], dict[str, Any]]:
    """Make the problem of what a verb was given; also the arguments and options that are left for the verb itself."""
    if not (isinstance(source, (Dataset, Example, str, os.PathLike)) or _is_array(source)):
        raise ProblemError(f"{verb} needs a Problem, not {type(source).__name__}; or data: {_WANTED}.")
    y = options.pop("y", None)
    if y is None and rest and _is_array(rest[0]):
        y, *rest = rest
    draw = {key: options[key] for key in _OPTIONS if key in options}
    left = {key: value for key, value in options.items() if key not in draw or key in own}  # a seed may be for both
    return as_problem(source, y, **draw), rest, left


def _is_array(value: Any) -> bool:
    """Whether something is meant as numbers or labels in a row."""
    ways = ("__array__", "to_numpy", "toarray")
    return isinstance(value, (list, tuple)) or any(hasattr(value, way) for way in ways)


def _refuse(said: Mapping[str, Any], options: Sequence[str], why: str) -> None:
    for key in options:
        if key in said:
            raise DataError(f"{why}, and {key}={said[key]!r} means nothing then; leave {key} out.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
