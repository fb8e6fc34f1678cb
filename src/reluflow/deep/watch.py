"""A PyTorch run watched as it trains."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..problem import DataError, ProblemError
from ..problem.loss import LossName
from ..problem.problem import Reduction
from ..problem.words import count
from .head import Found, find_head, labelled
from .logs import as_logs
from .need import torch_for
from .watched import Watch

_PROBE = 64  # samples on which the model is looked at closely


def watch(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    every: int | Literal["call"] | None = None,
    log: Any = None,
    head: bool | str = False,
    labels: Mapping[Any, int] | None = None,
    slope: float | None = None,
    loss: LossName = "logistic",
    reduction: Reduction = "mean",
    batch: int | None = None,
    towards: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    progress: bool | None = None,
) -> Watch:
    r"""Watch a two-layer PyTorch model, or the head of a deeper one, while your own loop trains it.

    Put it around the loop; nothing in the loop changes. Steps are those of the ``torch.optim`` optimizer that holds the
    weights, with its learning rate, whatever the schedule. A record is a copy of the weights on the CPU, so no graph is
    kept alive; everything that is measured is measured on the fixed samples given here, in double precision, when it is
    asked for, and at once only for ``log``.

    Parameters
    ----------
    model : torch.nn.Module
        ``Linear, ReLU or LeakyReLU, Linear`` with one logit or two, biases or not; any device, any floating type.
    X, y : array_like, tensors, or a loader as X
        The samples on which it is looked at: usually the training set, or a part of it. Labels 0 and 1, or -1 and +1.
    every : int or "call", optional
        Record every so many steps, or only when called: ``seen()`` at the end of an epoch. Default: every step at
        first, then whenever their number has grown by a twentieth, and never more than 7 % of the time.
    log : path, function, `TensorBoardLog`, `WandbLog`, or a list of these
        Gets a row of numbers a record, while it trains. A path ends in ``.csv``, ``.tsv`` or ``.jsonl``; every line is
        there even after ``kill -9``.
    head : bool or str
        Of a deeper model watch the last two Linear layers, on the features that enter them; a name says in which
        submodule they have to be.
    labels : mapping, optional
        Which label means -1 and which +1, where they are others.
    slope : float, optional
        Slope of the activation for negative input, where the samples do not tell.
    loss, reduction : str
        What is minimised: ``"logistic"`` is ``BCEWithLogitsLoss`` of one logit and ``CrossEntropyLoss`` of two.
    batch : int, optional
        Samples in a step. With plain SGD of a fixed rate the run is then one of ``gd`` or ``sgd``, about which some
        claims speak.
    towards : (vector, vector), optional
        Directions that neurons with a > 0 and a < 0 are compared with in the rows; default: the sums of the classes.
    progress : bool, optional
        Print at the end how much of the time it took; default: on a terminal.

    Returns
    -------
    Watch
        A context manager. ``trajectory()`` is the run (for `plot`, `monitor`, every curve), ``table()`` its rows,
        ``monitor()`` what the claims say, ``overhead`` what it cost.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> X, y = torch.tensor([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0]]), torch.tensor([1.0, 1.0, 0.0])
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1, bias=False))
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    >>> with watch(model, X, y, every=50, progress=False) as seen:
    ...     for _ in range(200):
    ...         optimizer.zero_grad()
    ...         torch.nn.functional.binary_cross_entropy_with_logits(model(X)[:, 0], y).backward()
    ...         optimizer.step()
    >>> run = seen.trajectory()
    >>> run.settings["iteration"], run.time.round(6).tolist(), bool(run.margins()[-1].min() > 0)
    ([0, 50, 100, 150, 200], [0.0, 25.0, 50.0, 75.0, 100.0], True)
    """
    torch = torch_for("watch")
    if not isinstance(model, torch.nn.Module):
        raise ProblemError(f"watch takes a torch.nn.Module, not {type(model).__name__}.")
    every = _check_every(every)
    if batch is not None and (not isinstance(batch, (int, np.integer)) or isinstance(batch, bool) or batch < 1):
        raise ProblemError(f"batch = {batch!r}: the number of samples in a step is needed, an integer from 1 on.")
    inputs, signs = labelled(X, y, labels)
    check_inputs(inputs, torch)
    found = find_head(model, inputs[:_PROBE], slope)
    _check_weights(found, torch)
    _check_named(model, found, head)
    train = _check_trained(model, found)
    inputs = inputs.to(dtype=found.first.weight.dtype) if inputs.is_floating_point() else inputs
    how = {"loss": loss, "reduction": reduction, "train": train}
    if found.last.bias is not None:
        warnings.warn(
            "the second Linear layer has a bias, of which no theorem here knows: it is written as one more neuron on "
            "the constant feature, the same function, but PyTorch trains it as one number. Linear(width, 1, "
            "bias=False) is the network of the theory.",
            stacklevel=2,
        )
    made = Watch(model, found, inputs, signs, how, every, [], batch, towards, progress)
    try:
        made.logs = as_logs(log)
    except ProblemError:
        made.close()
        raise
    made._tell()
    return made


def _check_every(every: Any) -> int | Literal["call"] | None:
    if every is None or every == "call":
        return every  # type: ignore[no-any-return]
    if not isinstance(every, (int, np.integer)) or isinstance(every, bool) or every < 1:
        raise ProblemError(
            f"every = {every!r}: a number of steps from 1 on is needed, or 'call' to record only when called, or None."
        )
    return int(every)


def check_inputs(inputs: Any, torch: Any) -> None:
    """Refuse samples that are no finite numbers, by place."""
    if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
        at = tuple(torch.nonzero(~torch.isfinite(inputs))[0].tolist())
        raise DataError(
            f"X[{', '.join(map(str, at))}] is {inputs[at].item()}; every entry must be a finite number. Drop or repair "
            "those rows."
        )


def _check_weights(found: Found, torch: Any) -> None:
    if not all(bool(torch.isfinite(layer.weight).all()) for layer in (found.first, found.last)):
        raise ProblemError("the model has weights that are not finite already; initialise or load it again.")
    if 0 in found.first.weight.shape:
        width, inputs = found.first.weight.shape
        raise ProblemError(
            f"the first of the two Linear layers has {count(width, 'neuron')} and {count(inputs, 'input')}; at least "
            "one of each is needed: Linear(inputs, width) with width at least 1."
        )


def _check_named(model: Any, found: Found, head: Any) -> None:
    """Refuse a deeper model whose head was not asked for, and a head that is not where it should be."""
    names = {id(module): name for name, module in model.named_modules()}
    two = f"{names[id(found.first)]!r} and {names[id(found.last)]!r}"
    if isinstance(head, str):
        known = [name for name, _ in model.named_modules() if name]
        if head not in known:
            raise ProblemError(f"the model has no submodule {head!r}; it has {', '.join(map(repr, known))}.")
        inside = {id(module) for module in model.get_submodule(head).modules()}
        if not {id(found.first), id(found.last)} <= inside:
            raise ProblemError(
                f"the last two Linear layers that run are {two}, which are not in {head!r}; head=True watches those."
            )
    elif not isinstance(head, bool):
        raise ProblemError(f"head = {head!r}: True, False or the name of a submodule is needed.")
    elif not head and not found.whole:
        raise ProblemError(
            f"{type(model).__name__} runs {count(found.calls, 'Linear layer')} and does more to its inputs than "
            f"Linear, (leaky) ReLU, Linear. Say head=True to watch the last two, {two}, on the features that enter "
            f"them."
        )


def _check_trained(model: Any, found: Found) -> Literal["both", "first"]:
    """Tell which layers are trained."""
    first, last = (bool(layer.weight.requires_grad) for layer in (found.first, found.last))
    if first:
        return "both" if last else "first"
    names = {id(module): name for name, module in model.named_modules()}
    which = "both layers are" if not last else "the first of the two layers is"
    raise ProblemError(
        f"{which} frozen (requires_grad is off for {names[id(found.first)]}.weight), so its neurons do not move and "
        "there is nothing to watch; call .requires_grad_(True) on what is to be trained, or watch compare(model, "
        "data) once."
    )
