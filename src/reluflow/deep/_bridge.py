"""From a trained PyTorch model, or a file it was saved in, to a two-layer `Network`."""

from __future__ import annotations

import pickle
import struct
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..problem import Dataset, Network, Problem
from ..problem._arrays import Array
from ..problem.errors import ProblemError
from ._torch import as_doubles, torch_for

# Under these keys training scripts keep the weights beside epochs and optimiser states.
_WRAPPERS = ("state_dict", "model_state_dict", "model")

# What reading a file that was cut short or is something else can end in.
_DAMAGED = (RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError, OSError, struct.error)


@dataclass(frozen=True, eq=False)
class Layers:
    """The two linear layers as they were found."""

    W: Array  # (p, d)
    bias: Array | None  # (p,)
    out: Array  # (k, p), one row a logit
    out_bias: Array | None  # (k,)
    slope: float


def from_torch(source: Any, drop_bias: bool = False, *, slope: float | None = None) -> Network:
    r"""Turn ``Linear, ReLU | LeakyReLU, Linear`` into a `Network`.

    :math:`f(x) = c + a \cdot \phi(W x + b)`. A first-layer bias b becomes one more column of W, so the data then
    need a constant feature: ``data.with_bias(1.0)`` (`problem_from_torch` does both). With two logits f is the
    second minus the first, so that class 1 is +1 and class 0 is -1. The weights become float64, which holds
    float32, float16 and bfloat16 exactly.

    Parameters
    ----------
    source : torch.nn.Sequential, mapping or path
        The model; or its ``state_dict()``, under any names, with exactly two weight matrices that chain (where
        they do so in either order, the order of the entries counts); or a file that ``torch.save`` wrote of it,
        which is read with ``weights_only=True``.
    drop_bias : bool
        A second-layer bias c is not part of a homogeneous network, which is what all theory here is about: c other
        than 0 is refused, or with ``drop_bias=True`` left out. That changes the function.
    slope : float, optional
        Slope of the activation for negative input. A module brings its own; a state dict does not know it and is
        taken as ReLU (0) unless told.

    Returns
    -------
    Network

    Raises
    ------
    ProblemError
        For other layers, for more than two classes, for slopes outside [0, 1], and for files that hold
        anything but weights.

    Examples
    --------
    >>> state = {"0.weight": [[1.0, 2.0], [0.5, -1.0]], "0.bias": [0.0, 3.0], "2.weight": [[2.0, -1.0]]}
    >>> net = from_torch(state, slope=0.1)
    >>> net.W
    array([[ 1. ,  2. ,  0. ],
           [ 0.5, -1. ,  3. ]])
    >>> net.outputs([[1.0, 1.0, 1.0]])   # the last entry is the constant feature
    array([3.5])
    """
    return _network(_layers(source, slope), drop_bias)


def problem_from_torch(
    source: Any, data: Dataset, drop_bias: bool = False, *, slope: float | None = None, **settings: Any
) -> Problem:
    """Put a two-layer model and the data it was trained on together, with the constant feature that its bias needs.

    Parameters
    ----------
    source, drop_bias, slope
        As in `from_torch`.
    data : Dataset
        What the model sees, without a constant feature (or with one of value 1 in the last place).
    **settings
        ``loss``, ``reduction``, ``train`` of the `Problem`.

    Examples
    --------
    >>> state = {"0.weight": [[1.0], [-1.0]], "0.bias": [0.0, 0.5], "2.weight": [[2.0, -1.0]]}
    >>> problem = problem_from_torch(state, Dataset([[1.0], [-1.0]], [1, -1]))
    >>> problem.net.margins(problem.data)
    array([2. , 1.5])
    """
    layers = _layers(source, slope)
    net, inputs = _network(layers, drop_bias), layers.W.shape[1]
    if layers.bias is None:
        if data.d != inputs:
            raise ProblemError(_mismatch(data, inputs, "without bias"))
    elif data.d == inputs:
        data = data.with_bias(1.0)
    elif data.d != inputs + 1 or not np.all(data.X[:, -1] == 1.0):
        raise ProblemError(_mismatch(data, inputs, "and a bias, for which a constant 1 is appended here"))
    return Problem(data, net, **settings)


def _mismatch(data: Dataset, inputs: int, bias: str) -> str:
    return (
        f"the features have dimension {data.d} but the model takes {inputs} ({bias}); "
        "give it the features its first Linear layer sees, in their order."
    )


def fold(layers: Layers, drop_bias: bool) -> tuple[Array, Array]:
    """Return W (with the bias as its last column) and a, or refuse what no homogeneous network can be."""
    logits = layers.out.shape[0]
    if logits > 2:
        raise ProblemError(
            f"the last layer has {logits} logits ({logits} classes); two classes are needed, that is 1 logit or 2. "
            "Keep two of its rows, e.g. with the last weight w of a state dict: state[name] = w[[3, 8]]."
        )
    difference = np.array([1.0]) if logits == 1 else np.array([-1.0, 1.0])
    constant = 0.0 if layers.out_bias is None else float(difference @ layers.out_bias)
    if constant != 0.0 and not drop_bias:
        raise ProblemError(
            f"the last layer has a bias ({constant:.6g}{' between the logits' if logits == 2 else ''}): with it the "
            "network is not homogeneous and no theorem on margins applies. Train with Linear(..., bias=False), or "
            "leave it out with drop_bias=True (--drop-bias): the function then changes by that constant."
        )
    W = layers.W if layers.bias is None else np.column_stack([layers.W, layers.bias])
    return W, difference @ layers.out


def _network(layers: Layers, drop_bias: bool) -> Network:
    W, a = fold(layers, drop_bias)
    return Network(W, a, layers.slope)


def _layers(source: Any, slope: float | None) -> Layers:
    if isinstance(source, (str, Path)):
        source = load_state(source)
    if isinstance(source, Mapping):
        return _from_state(source, 0.0 if slope is None else slope)
    torch = torch_for("from_torch")
    if not isinstance(source, torch.nn.Module):
        raise ProblemError(
            f"from_torch takes a torch.nn.Sequential, a state dict or a file name, not {type(source).__name__}."
        )
    return _from_module(source, slope)


# -- modules -----------------------------------------------------------------------------------------------


def _from_module(module: Any, slope: float | None) -> Layers:
    nn = torch_for("from_torch").nn
    if not isinstance(module, nn.Sequential) or type(module).forward is not nn.Sequential.forward:
        raise ProblemError(
            f"{type(module).__name__} is not a plain torch.nn.Sequential, so its forward pass cannot be read off. "
            "head(model, loader) finds the last two Linear layers of any model by running it; if the model is just "
            "Linear, (leaky) ReLU, Linear, pass model.state_dict() and the slope."
        )
    chain = [layer for layer in _flat(module, nn) if not isinstance(layer, (nn.Identity, nn.Dropout))]
    if chain and isinstance(chain[0], nn.Flatten):  # points are vectors here already
        chain = chain[1:]
    wanted: tuple[Any, ...] = (nn.Linear, (nn.ReLU, nn.LeakyReLU), nn.Linear)
    if len(chain) != 3 or not all(isinstance(layer, kind) for layer, kind in zip(chain, wanted, strict=True)):
        found = ", ".join(type(layer).__name__ for layer in chain) or "nothing"
        raise ProblemError(
            f"the model is Sequential({found}); Sequential(Linear, ReLU or LeakyReLU, Linear) is needed. Of a deeper "
            "model head(model, loader) takes the last two Linear layers, as a network on the features before them."
        )
    first, activation, last = chain
    if first.out_features != last.in_features:
        raise ProblemError(
            f"the first Linear layer gives {first.out_features} features but the second takes {last.in_features}."
        )
    own = float(getattr(activation, "negative_slope", 0.0))
    if slope is not None and slope != own:
        raise ProblemError(
            f"slope={slope:g} contradicts the {type(activation).__name__} of slope {own:g}; leave it out."
        )
    biases = [None if layer.bias is None else as_doubles(layer.bias) for layer in (first, last)]
    return Layers(as_doubles(first.weight), biases[0], as_doubles(last.weight), biases[1], own)


def _flat(module: Any, nn: Any) -> list[Any]:
    if isinstance(module, nn.Sequential):
        return [layer for child in module for layer in _flat(child, nn)]
    return [module]


# -- state dicts ---------------------------------------------------------------------------------------------


def _from_state(state: Mapping[Any, Any], slope: float) -> Layers:
    arrays = {str(name): _entry(str(name), value) for name, value in state.items()}
    names = [name for name, array in arrays.items() if array.ndim == 2]
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
    if len(names) != 2:
        raise ProblemError(
            f"the state dict holds {shapes}; exactly two weight matrices are needed (Linear, ReLU, Linear), not "
            f"{len(names)}. Of a deeper model head(model, loader) takes the last two Linear layers."
        )
    if arrays[names[1]].shape[1] != arrays[names[0]].shape[0]:
        names.reverse()
    first, last = (arrays[name] for name in names)
    if last.shape[1] != first.shape[0]:
        raise ProblemError(
            f"the two weight matrices of the state dict do not chain: {shapes}; (p, d) and then (1, p) or (2, p) are "
            "needed, as Linear layers keep them."
        )
    biases = {
        name: name.removesuffix("weight") + "bias" if name.endswith("weight") else name + "_bias" for name in names
    }
    unknown = sorted(set(arrays) - set(names) - set(biases.values()))
    if unknown:
        raise ProblemError(
            f"the state dict also holds {', '.join(f'{name} {arrays[name].shape}' for name in unknown)}, which no "
            "Linear layer has; only Linear, (leaky) ReLU, Linear can be turned into a network."
        )
    found = [arrays.get(biases[name]) for name in names]
    for name, bias in zip(names, found, strict=True):
        if bias is not None and bias.shape != (arrays[name].shape[0],):
            raise ProblemError(f"{biases[name]} has shape {bias.shape}; {name} needs ({arrays[name].shape[0]},).")
    return Layers(first, found[0], last, found[1], slope)


def _entry(name: str, value: Any) -> Array:
    """Return an entry of a state dict as an array of doubles, or say that it is none."""
    dtype = str(getattr(value, "dtype", ""))
    if "complex" in dtype or "quint" in dtype or "qint" in dtype:
        raise ProblemError(f"{name} has dtype {dtype}; real floating-point weights are needed.")
    try:
        return as_doubles(value)
    except (TypeError, ValueError):
        raise ProblemError(
            f"the entry {name!r} is a {type(value).__name__}, not an array of numbers; pass model.state_dict() alone."
        ) from None


def load_state(path: str | Path) -> dict[str, Any]:
    """Read the weights in a file that ``torch.save(model.state_dict(), path)`` wrote; nothing in it is executed."""
    torch = torch_for("reading a checkpoint")
    file = Path(path)
    remedy = "Write the weights alone: torch.save(model.state_dict(), 'model.pt')."
    if not file.is_file():
        raise ProblemError(f"{file} is a directory." if file.is_dir() else f"there is no file {file}.")
    with file.open("rb") as stream:
        if stream.read(2)[:1] not in (b"P", b"\x80"):  # a zip archive, or in old files a pickle
            raise ProblemError(f"{file} is no PyTorch file. {remedy}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about old formats and protocols: either weights come out, or an error
            loaded = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ProblemError(
            f"{file} holds Python objects or is no PyTorch file (a whole model is pickled code, which is never "
            f"executed here). {remedy}"
        ) from None
    except _DAMAGED as exc:
        why = (str(exc).splitlines() or ["it is empty"])[0]
        raise ProblemError(f"{file} cannot be read as a PyTorch checkpoint: {why} {remedy}") from None
    for key in _WRAPPERS:
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            loaded = loaded[key]
    if not isinstance(loaded, Mapping) or not all(torch.is_tensor(value) for value in loaded.values()):
        what = f"keys {list(loaded)[:6]}" if isinstance(loaded, Mapping) else f"a {type(loaded).__name__}"
        raise ProblemError(f"{file} is no state dict but holds {what}. {remedy}")
    return dict(loaded)
