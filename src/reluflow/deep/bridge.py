"""From a trained PyTorch model, or a file it was saved in, to a two-layer `Network`."""

from __future__ import annotations

import pickle
import struct
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..problem import Dataset, Network, Problem
from ..problem.errors import ProblemError
from ..problem.network import check_slope
from ..problem.types import Array
from .head import layers_by_running
from .layers import Layers, network_of, with_constant
from .need import as_doubles, torch_for

_TORCH = (".pt", ".pth", ".ckpt", ".bin")

# Under these keys training scripts keep the weights beside epochs and optimiser states.
_WRAPPERS = ("state_dict", "model_state_dict", "model")

# What reading a file that was cut short or is something else can end in.
_DAMAGED = (RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError, OSError, struct.error)


# What stands in the way of some layers, where a word helps.
_INSTEAD = {
    "PReLU": "PReLU learns its slope, one more trained number that no theorem here knows of. To look at the network as "
    "it is, put LeakyReLU with that slope in its place",
    "RReLU": "RReLU draws its slope; put LeakyReLU in its place",
    "BatchNorm1d": "BatchNorm1d can be folded into the Linear layer before it: "
    "torch.nn.utils.fusion.fuse_linear_bn_eval(linear, norm), with both in evaluation mode",
}


def from_torch(source: Any, *, slope: float | None = None) -> Network:
    r"""Turn ``Linear, ReLU | LeakyReLU, Linear`` into a `Network`.

    :math:`f(x) = c + a \cdot \phi(W x + b)`. A network here has no biases, so those of the model become weights of a
    constant feature: b is one more column of W, and c one more neuron that sees that feature alone,
    :math:`c = a' \phi(w')` with :math:`w' = \sqrt{|c|}` and :math:`a' = \mathrm{sign}(c)\, w'`. The function on (x, 1)
    is that of the model on x, so the data then need the constant feature: ``data.with_bias(1.0)``
    (`problem_from_torch` does both). What follows differs in one thing: gradient flow, norms and margins treat c as
    two trained factors, where PyTorch trains one number. With two logits f is the second minus the first, so that
    class 1 is +1 and class 0 is -1. The weights become float64, which holds float32, float16 and bfloat16 exactly.

    Parameters
    ----------
    source : torch.nn.Module, mapping or path
        The model; or its ``state_dict()``, under any names, with exactly two weight matrices that chain (where
        they do so in either order, the order of the entries counts); or a file that ``torch.save`` wrote of it,
        which is read with ``weights_only=True``. A model is taken as it is when evaluated (dropout does nothing), up
        to a sigmoid or softmax of its output; one that is no plain ``Sequential`` is run on a few random points, to
        see that it does nothing else.
    slope : float, optional
        Slope of the activation for negative input. A module brings its own; a state dict or a file does not know it,
        so there it must be given: 0 for ReLU, 0.01 for ``LeakyReLU()``.

    Returns
    -------
    Network

    Raises
    ------
    ProblemError
        For other layers or activations, for more than two classes, for slopes outside [0, 1], and for files that hold
        anything but weights.

    Examples
    --------
    >>> state = {"0.weight": [[1.0, 2.0], [0.5, -1.0]], "0.bias": [0.0, 3.0]}
    >>> net = from_torch({**state, "2.weight": [[2.0, -1.0]], "2.bias": [4.0]}, slope=0.1)
    >>> net.W
    array([[ 1. ,  2. ,  0. ],
           [ 0.5, -1. ,  3. ],
           [ 0. ,  0. ,  2. ]])
    >>> net.outputs([[1.0, 1.0, 1.0]])   # the last entry is the constant feature
    array([7.5])
    """
    return network_of(_layers(source, slope))


def problem_from_torch(source: Any, data: Dataset, *, slope: float | None = None, **settings: Any) -> Problem:
    """Put a two-layer model and the data it was trained on together, with the constant feature that its biases need.

    Parameters
    ----------
    source, slope
        As in `from_torch`.
    data : Dataset
        What the model sees, without a constant feature (or with one of value 1 in the last place).
    **settings
        ``loss``, ``reduction``, ``train`` of the `Problem`.

    Examples
    --------
    >>> state = {"0.weight": [[1.0], [-1.0]], "0.bias": [0.0, 0.5], "2.weight": [[2.0, -1.0]]}
    >>> problem = problem_from_torch(state, Dataset([[1.0], [-1.0]], [1, -1]), slope=0.0)
    >>> problem.net.margins(problem.data)
    array([2. , 1.5])
    """
    layers = _layers(source, slope)
    return Problem(with_constant(data, layers), network_of(layers), **settings)


def problem_from_file(path: str | Path, data: Dataset, *, slope: float | None = None, **settings: Any) -> Problem:
    """Put the network in a file and data together: an NPZ file of `Network.save`, or a PyTorch state dict.

    Parameters
    ----------
    path : str or path
        With the name of a PyTorch file (``.pt``, ``.pth``, ``.ckpt``, ``.bin``) it is read as by `problem_from_torch`.
    data, slope, **settings
        As there. An NPZ file knows its slope: another one is refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Network([[1.0], [-1.0]], [1.0, -2.0], slope=0.5).save(f"{folder}/net.npz")
    ...     problem_from_file(f"{folder}/net.npz", Dataset([[1.0], [-1.0]], [1, -1])).net
    Network: p=2 (1 positive, 1 negative), d=1, slope=0.5, log_scale=0
    """
    if is_torch_file(path):
        return problem_from_torch(path, data, slope=slope, **settings)
    file = Path(path)
    if file.is_file() and not zipfile.is_zipfile(file) and file.suffix.lower() != ".npz":
        raise ProblemError(
            f"{file} is neither an NPZ file nor, by its name, a PyTorch file; net.save('net.npz') and "
            "torch.save(model.state_dict(), 'model.pt') write what can be read."
        )
    net = Network.load(file)
    if slope is not None and slope != net.slope:
        raise ProblemError(
            f"slope {slope:g} was given, which contradicts the slope {net.slope:g} of {path}; leave it out, or save "
            "the network with the slope that is meant."
        )
    return Problem(data, net, **settings)


def is_torch_file(path: str | Path) -> bool:
    """Whether the name is that of a PyTorch file."""
    return Path(path).suffix.lower() in _TORCH


def _layers(source: Any, slope: float | None) -> Layers:
    if isinstance(source, (str, Path)):
        source = load_state(source)
    if isinstance(source, Mapping):
        layers = _from_state(source)
        if slope is None:
            raise ProblemError(
                "a state dict does not tell the activation between its layers, and no slope was given; say what the "
                "model has: slope=0 (--slope 0) for ReLU, 0.01 for LeakyReLU(). Of other activations (tanh, GELU, ...) "
                "the theory here says nothing. Given the model itself, its activation is looked at."
            )
        return replace(layers, slope=check_slope(slope))
    torch = torch_for("from_torch")
    if not isinstance(source, torch.nn.Module):
        raise ProblemError(
            f"from_torch takes a torch.nn.Module, a state dict or a file name, not {type(source).__name__}."
        )
    return _from_module(source, slope)


# -- modules -----------------------------------------------------------------------------------------------


def _from_module(module: Any, slope: float | None) -> Layers:
    nn = torch_for("from_torch").nn
    if any(nn.parameter.is_lazy(parameter) for parameter in module.parameters()):
        raise ProblemError(f"{type(module).__name__} has lazy layers without weights yet; run it on a batch first.")
    if any(parameter.is_meta for parameter in module.parameters()):
        raise ProblemError(f"{type(module).__name__} is on the device 'meta', without values; load its weights first.")
    if not isinstance(module, nn.Sequential) or type(module).forward is not nn.Sequential.forward:
        return _from_forward(module, slope, nn)
    first, activation, last = _chain(module, nn)
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


def _chain(module: Any, nn: Any) -> list[Any]:
    """Return the Linear layer, the activation and the Linear layer of a Sequential, without what changes nothing."""
    chain = [layer for layer in _flat(module, nn) if not isinstance(layer, (nn.Identity, nn.Dropout))]
    if chain and isinstance(chain[0], nn.Flatten):  # points are vectors here already
        chain = chain[1:]
    found = ", ".join(type(layer).__name__ for layer in chain) or "nothing"
    if len(chain) == 4 and isinstance(chain[3], (nn.Sigmoid, nn.Softmax, nn.LogSoftmax)):  # the logits decide
        chain = chain[:3]
    wanted: tuple[Any, ...] = (nn.Linear, (nn.ReLU, nn.LeakyReLU), nn.Linear)
    if len(chain) != 3 or not all(isinstance(layer, kind) for layer, kind in zip(chain, wanted, strict=True)):
        raise ProblemError(
            f"the model is Sequential({found}); Sequential(Linear, ReLU or LeakyReLU, Linear) is needed. "
            f"{_stranger(chain, nn)}"
        )
    return chain


def _stranger(chain: list[Any], nn: Any) -> str:
    """Say what the first layer that does not belong is, and what to do about it."""
    names = [type(layer).__name__ for layer in chain if not isinstance(layer, (nn.Linear, nn.ReLU, nn.LeakyReLU))]
    if not names:
        return (
            "Of a deeper model head(model, loader) takes the last two Linear layers, as a network on the features "
            "before them."
        )
    other = (
        f"{names[0]} is none of these, and of layers or activations other than max(z, slope z) the theory here says "
        "nothing. head(model, loader) takes the last two Linear layers, if they have a (leaky) ReLU between them"
    )
    return f"{_INSTEAD.get(names[0], other)}."


def _from_forward(module: Any, slope: float | None, nn: Any) -> Layers:
    """Read off what a model with a forward pass of its own does, from random points of many sizes."""
    learned = next((m for m in module.modules() if isinstance(m, (nn.PReLU, nn.RReLU))), None)
    if learned is not None:
        raise ProblemError(f"{type(module).__name__} has a {type(learned).__name__}. {_stranger([learned], nn)}")
    first = next((m for m in module.modules() if isinstance(m, nn.Linear)), None)
    if first is None:
        raise ProblemError(f"{type(module).__name__} has no Linear layer; Linear, ReLU or LeakyReLU, Linear is needed.")
    sizes = np.logspace(-3, 2, 64)[:, None]
    points = sizes * np.random.default_rng(0).normal(size=(64, first.in_features))
    return layers_by_running(module, points, slope)


def _flat(module: Any, nn: Any) -> list[Any]:
    if isinstance(module, nn.Sequential):
        return [layer for child in module for layer in _flat(child, nn)]
    return [module]


# -- state dicts ---------------------------------------------------------------------------------------------


def _from_state(state: Mapping[Any, Any]) -> Layers:
    """Find the two layers, of unknown slope."""
    arrays = {str(name): _entry(str(name), value) for name, value in state.items()}
    names = _chained(arrays)
    biases = {
        name: name.removesuffix("weight") + "bias" if name.endswith("weight") else name + "_bias" for name in names
    }
    unknown = sorted(set(arrays) - set(names) - set(biases.values()))
    if unknown:
        raise ProblemError(
            f"the state dict also holds {', '.join(f'{name} {arrays[name].shape}' for name in unknown)}, which no "
            "Linear layer has; only Linear, (leaky) ReLU, Linear can be turned into a network."
        )
    first, last = (arrays[name] for name in names)
    found = [arrays.get(biases[name]) for name in names]
    for name, bias in zip(names, found, strict=True):
        if bias is not None and bias.shape != (arrays[name].shape[0],):
            raise ProblemError(f"{biases[name]} has shape {bias.shape}; {name} needs ({arrays[name].shape[0]},).")
    return Layers(first, found[0], last, found[1], np.nan)


def _chained(arrays: Mapping[str, Array]) -> list[str]:
    """Return the names of the two weight matrices, the first layer first."""
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
    return names


def _entry(name: str, value: Any) -> Array:
    """Return an entry of a state dict as an array of doubles, or say that it is none."""
    dtype = str(getattr(value, "dtype", ""))
    if any(word in dtype for word in ("complex", "quint", "qint", "bool")):
        raise ProblemError(f"{name} has dtype {dtype}; real floating-point weights are needed.")
    if "strided" not in str(getattr(value, "layout", "strided")):
        raise ProblemError(f"{name} is a sparse tensor ({value.layout}); save it as {name}.to_dense().")
    if str(getattr(value, "device", "")) == "meta":
        raise ProblemError(f"{name} is on the device 'meta' and has no values; load the weights before saving them.")
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
    if _is_script(file):
        raise ProblemError(
            f"{file} is a TorchScript program, and no program in a file is executed here. Write its weights alone: "
            f"torch.save(torch.jit.load({file.name!r}).state_dict(), 'model.pt')."
        )
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


def _is_script(file: Path) -> bool:
    """Whether ``torch.jit.save`` wrote the file: its archive has code in it."""
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as archive:
        return any("/code/" in name for name in archive.namelist())
