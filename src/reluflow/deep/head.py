"""The last two linear layers of a classifier, as a two-layer network on the features before them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..problem import Dataset, Problem
from ..problem.errors import DataError, ProblemError
from ..problem.labels import signs
from ..problem.network import check_slope
from ..problem.types import Array
from .layers import Layers, network_of
from .need import as_doubles, torch_for

_CHUNK = 1024  # samples at once where all that is wanted is what passes through


def head(
    model: Any,
    loader: Iterable[Any] | tuple[Any, Any],
    *,
    labels: Mapping[Any, int] | None = None,
    slope: float | None = None,
    **settings: Any,
) -> Problem:
    r"""Take the last two ``Linear`` layers of a classifier as a two-layer network on the features that enter them.

    The model is run once over the data, in evaluation mode and without gradients. What enters the second-to-last
    Linear layer are the points; what leaves that layer and what enters the last one are compared, so that nothing but a
    ReLU or leaky ReLU can lie between them; and what leaves the last one must be the output of the model, up to a
    final sigmoid, softmax or log-softmax. Biases become weights of a constant feature 1 (see `from_torch`).

    Parameters
    ----------
    model : torch.nn.Module
        One logit, or two (the second minus the first is taken).
    loader : iterable of (inputs, labels), or one such pair
        A ``DataLoader``, or tensors or arrays of all inputs and labels.
    labels : mapping, optional
        Which label means -1 and which +1. Default: 0 or -1 means -1, and 1 means +1.
    slope : float, optional
        Slope of the activation for negative input, where the data do not tell (no unit is ever negative).
    **settings
        ``loss``, ``reduction``, ``train`` of the `Problem`.

    Returns
    -------
    Problem
        With the trained head as its network: for `kkt`, `check`, margins, `explain`.

    Raises
    ------
    ProblemError
        When the model has no such head.
    DataError
        When the labels are not two classes, or a point has no features other than 0.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> body = [torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten()]
    >>> top = [torch.nn.Linear(8, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1, bias=False)]
    >>> images, classes = torch.randn(6, 1, 4, 4), torch.tensor([0, 1, 0, 1, 1, 0])
    >>> problem = head(torch.nn.Sequential(*body, *top), (images, classes))
    >>> problem.data
    Dataset 'head of Sequential': n=6 (3 positive, 3 negative), d=9
    >>> problem.net
    Network: p=5 (... positive, ... negative), d=9, slope=0, log_scale=0
    """
    torch = torch_for("head")
    if not isinstance(model, torch.nn.Module):
        raise ProblemError(f"head takes a torch.nn.Module, not {type(model).__name__}.")
    passes = [(_watch(model, inputs, torch), values) for inputs, values in _batches(loader, torch)]
    if not passes:
        raise DataError("the loader is empty; at least one batch of (inputs, labels) is needed.")
    before, layers = _read_off(model, [seen for seen, _ in passes], slope, torch)
    points = np.column_stack([before, np.ones(len(before))]) if layers.biased else before
    y = _signs(np.concatenate([values for _, values in passes]), labels)
    return Problem(Dataset(points, y, name=f"head of {type(model).__name__}"), network_of(layers), **settings)


def layers_by_running(model: Any, inputs: Array, slope: float | None) -> Layers:
    """Find the two Linear layers that a model consists of by what it does to some inputs."""
    torch = torch_for("from_torch")
    seen = _watch(model, inputs, torch)
    before, layers = _read_off(model, [seen], slope, torch)
    if seen.count != 2 or not np.array_equal(before, as_doubles(place(model, inputs, torch))):
        raise ProblemError(
            f"{type(model).__name__} runs {seen.count} Linear layers and does more to its inputs than Linear, (leaky) "
            "ReLU, Linear. head(model, loader) takes its last two Linear layers, as a network on the features before "
            "them."
        )
    return layers


class Found(NamedTuple):
    """The last two Linear layers of a model, as modules, and what they were seen to do with some inputs."""

    first: Any
    last: Any
    slope: float
    whole: bool  # whether there is nothing else in the model
    calls: int  # how many Linear layers run

    def layers(self) -> Layers:
        """Read the weights as they are now."""
        biases = [None if layer.bias is None else as_doubles(layer.bias) for layer in (self.first, self.last)]
        return Layers(as_doubles(self.first.weight), biases[0], as_doubles(self.last.weight), biases[1], self.slope)


def find_head(model: Any, inputs: Any, slope: float | None) -> Found:
    """Find the last two Linear layers by running the model on some inputs; see `head` for what is refused."""
    torch = torch_for("watch")
    seen = _watch(model, inputs, torch)
    before, layers = _read_off(model, [seen], slope, torch)
    first, last = _last_two(seen)
    given = as_doubles(place(model, inputs, torch)).reshape(len(inputs), -1)
    return Found(first, last, layers.slope, seen.count == 2 and np.array_equal(before, given), seen.count)


def entering(model: Any, layer: Any, inputs: Any) -> Any:
    """Return what enters a layer of the model, detached, in the type and on the device of the model."""
    torch, kept = torch_for("watch"), []
    hook = layer.register_forward_pre_hook(lambda _, given: kept.append(given[0].detach()))
    try:
        for part in inputs.split(_CHUNK):
            run_model(model, part, torch)
    finally:
        hook.remove()
    return torch.cat(kept)


def labelled(source: Any, y: Any = None, labels: Mapping[Any, int] | None = None) -> tuple[Any, Array]:
    """Return the inputs, as one tensor or array, and signs of a pair, or of a loader that is gone through once."""
    torch = torch_for("watch")
    batches = list(_batches(source if y is None else (source, y), torch))
    if not batches:
        raise DataError("the loader is empty; at least one batch of (inputs, labels) is needed.")
    inputs = [part if torch.is_tensor(part) else torch.as_tensor(np.array(part)) for part, _ in batches]
    values = np.concatenate([part for _, part in batches])
    if not len(values):
        raise DataError("the batch is empty: 0 samples to look at; at least one (inputs, labels) is needed.")
    return torch.cat(inputs).detach(), _signs(values, labels)


def _read_off(model: Any, passes: list[_Pass], slope: float | None, torch: Any) -> tuple[Array, Layers]:
    """Return what enters the last two Linear layers, and the layers with the activation between them."""
    first, last = _last_two(passes[0])
    before, hidden, after = (
        np.concatenate(parts) for parts in zip(*(_cut(p, first, last) for p in passes), strict=True)
    )
    unit = float(torch.finfo(first.weight.dtype).eps)
    alpha = _slope(hidden, after, _stated(model, torch), slope, unit)
    return before, Found(first, last, alpha, False, passes[0].count).layers()


# -- running the model -------------------------------------------------------------------------------------


@dataclass
class _Pass:
    """What one batch did on its way: the Linear layers called, what entered and what left them."""

    calls: list[tuple[Any, Any, Any]] = field(default_factory=list)  # the last two
    count: int = 0
    output: Any = None


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Switch dropout and batch statistics off, and back to what they were."""
    was = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in was:
            module.training = training


def place(model: Any, inputs: Any, torch: Any) -> Any:
    """Put inputs where the model is, in its floating type."""
    first = next(model.parameters(), None)
    if first is None:
        raise ProblemError(f"{type(model).__name__} has no parameters; a trained model is needed.")
    tensor = inputs if torch.is_tensor(inputs) else torch.as_tensor(np.array(inputs))
    dtype = first.dtype if tensor.is_floating_point() else tensor.dtype
    return tensor.to(device=first.device, dtype=dtype)


def run_model(model: Any, inputs: Any, torch: Any) -> Any:
    """Return the output for one batch, or say which shape did not fit."""
    tensor = place(model, inputs, torch)
    try:
        with evaluating(model), torch.no_grad():
            return model(tensor)
    except RuntimeError as exc:
        raise ProblemError(
            f"{type(model).__name__} cannot take inputs of shape {tuple(tensor.shape)} and type {tensor.dtype}: "
            f"{str(exc).splitlines()[0]}"
        ) from exc


def _watch(model: Any, inputs: Any, torch: Any) -> _Pass:
    seen = _Pass()
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    if len(linear) < 2:
        raise ProblemError(
            f"{type(model).__name__} has {len(linear)} Linear layer(s); the head of a classifier is its last two, with "
            "a ReLU or LeakyReLU between them."
        )

    def note(module: Any, given: Any, result: Any) -> None:
        seen.count += 1
        del seen.calls[:-1]  # of a deep model only the last two calls are kept
        seen.calls.append((module, given[0].detach().clone(), result.detach().clone()))

    hooks = [module.register_forward_hook(note) for module in linear]
    try:
        seen.output = run_model(model, inputs, torch)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _last_two(seen: _Pass) -> tuple[Any, Any]:
    if len(seen.calls) < 2:
        raise ProblemError(f"{len(seen.calls)} Linear layer(s) ran for a batch; the last two are needed.")
    return seen.calls[-2][0], seen.calls[-1][0]


def _cut(seen: _Pass, first: Any, last: Any) -> tuple[Array, Array, Array]:
    """Return what enters the first of the two layers, what leaves it, and what enters the last, in doubles."""
    (one, before, hidden), (two, after, logits) = seen.calls[-2:]
    if one is not first or two is not last:
        raise ProblemError("the model calls different Linear layers last for different batches; it has no one head.")
    if before.ndim != 2 or hidden.shape != after.shape:
        raise ProblemError(
            f"the last two Linear layers take inputs of shape {tuple(before.shape)} and {tuple(after.shape)}, the "
            f"first giving {tuple(hidden.shape)}; (batch, features) is needed, with only a (leaky) ReLU between them."
        )
    if not _is_end(logits, seen.output):
        raise ProblemError(
            "the output of the model is not that of its last Linear layer (nor a sigmoid or softmax of it), so its "
            "last two Linear layers do not decide alone."
        )
    return as_doubles(before), as_doubles(hidden), as_doubles(after)


def _is_end(logits: Any, output: Any) -> bool:
    """Whether the model ends with these logits, up to a function that keeps them apart."""
    torch = torch_for("head")
    if not torch.is_tensor(output) or output.numel() != logits.numel():
        return False
    given = output.reshape(logits.shape)
    ends = [logits, logits.sigmoid()]
    if logits.shape[1] > 1:
        ends += [logits.softmax(1), logits.log_softmax(1)]
    return any(bool(torch.allclose(given, end, rtol=1e-5, atol=0.0)) for end in ends)


# -- the activation ----------------------------------------------------------------------------------------


def _stated(model: Any, torch: Any) -> list[float]:
    """Slopes that the activations of the model have."""
    kinds = (torch.nn.ReLU, torch.nn.LeakyReLU)
    return sorted({float(getattr(m, "negative_slope", 0.0)) for m in model.modules() if isinstance(m, kinds)})


def _slope(hidden: Array, after: Array, stated: list[float], given: float | None, unit: float) -> float:
    """Find alpha with ``after = max(hidden, alpha hidden)``, or say that there is none.

    What the model states is exact, so the first statement that agrees with what it did is taken; a slope in plain
    function calls is measured. What the caller gives must agree.
    """
    negative, size = hidden < 0, np.abs(hidden)
    tol = 4 * unit * size  # the rounding of the model's own arithmetic
    wrong = ~negative & (np.abs(after - hidden) > tol)
    if not negative.any() and not wrong.any():
        if given is None and len(stated) != 1:
            raise ProblemError(
                "no unit between the last two layers is ever negative, so the data do not tell ReLU from leaky ReLU; "
                "give the slope: slope=0.0 for ReLU."
            )
        return check_slope(stated[0] if given is None else given)
    if not wrong.any():
        # Ratios of the smallest numbers are mostly rounding, so the largest is measured.
        largest = np.unravel_index(np.where(negative, size, 0.0).argmax(), size.shape)
        candidates = [*stated, float(after[largest] / hidden[largest])] if given is None else [check_slope(given)]
        for alpha in candidates:
            wrong = negative & (np.abs(after - alpha * hidden) > tol)
            if not wrong.any():
                return check_slope(alpha)
    i, j = np.argwhere(wrong)[0]
    raise ProblemError(
        "between the last two Linear layers there is something other than a ReLU or leaky ReLU"
        f"{'' if given is None else f' of slope {given:g}'}: unit {j} of sample {i} turns {hidden[i, j]:.6g} into "
        f"{after[i, j]:.6g}. Only those two activations make a network this theory is about."
    )


# -- the data ----------------------------------------------------------------------------------------------


def _batches(loader: Any, torch: Any) -> Iterator[tuple[Any, Array]]:
    if isinstance(loader, (tuple, list)) and len(loader) == 2 and all(hasattr(part, "shape") for part in loader):
        loader = [loader]
    if isinstance(loader, torch.utils.data.Dataset):
        raise DataError(f"{type(loader).__name__} gives single samples; wrap it in torch.utils.data.DataLoader.")
    if not isinstance(loader, Iterable):
        raise DataError(f"the loader is a {type(loader).__name__}; an iterable of pairs (inputs, labels) is needed.")
    for batch in loader:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise DataError(f"a batch of the loader is a {type(batch).__name__}; pairs (inputs, labels) are needed.")
        inputs, values = batch[0], _numbers(batch[1])
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1 or len(values) != len(inputs):
            raise DataError(
                f"the labels of a batch have shape {values.shape} for {len(inputs)} inputs; one number a sample is "
                "needed (of one-hot labels: labels.argmax(1))."
            )
        yield inputs, values


def _numbers(values: Any) -> Array:
    try:
        return as_doubles(values)
    except (TypeError, ValueError):
        raise DataError(
            f"the labels {str(values)[:40]!r} are not numbers; 0 and 1, or -1 and +1, are needed."
        ) from None


def _signs(values: Array, labels: Mapping[Any, int] | None) -> Array:
    if labels is None and set(np.unique(values)) <= {0.0, 1.0}:
        labels = {0: -1, 1: 1}
    kinds, first, where = np.unique(values, return_index=True, return_inverse=True)
    sign = signs({float(v): f"sample {i}" for v, i in zip(kinds, first, strict=True)}, labels, "the loader")
    return np.array([sign[float(v)] for v in kinds])[where]
