"""Training loops as the papers state them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..problem import Dataset
from ..problem.checks import is_number
from ..problem.errors import ProblemError
from ..problem.progress import bar
from ..problem.types import Array
from .head import evaluating, place, run_model
from .need import as_doubles, torch_for

# step, batch, epochs: PL Figures 1-2 (SGD) and PL Figures 3-4 (Adam, whose step the paper leaves open)
_DEFAULTS = {"sgd": (0.1, 50, 500), "adam": (1e-3, 128, 50)}
_CHUNK = 1024  # samples at once where no gradient is needed

Callback = Callable[[int, Any], object]


@dataclass(frozen=True, eq=False)
class Training:
    """How a run went.

    Attributes
    ----------
    epochs : ndarray
        When the rest was recorded, in epochs; 0 is the start. Not whole at the end of an interrupted run.
    loss, accuracy : ndarray
        Mean logistic loss over all samples, and the share of them with a positive margin, at these epochs.
    steps : int
        Number of updates made.
    stopped : str
        ``"epochs"``, ``"callback"``, ``"interrupted"`` (Ctrl-C) or ``"diverged"``.
    settings : dict
        Method, step, batch, epochs, seed.
    """

    epochs: Array
    loss: Array
    accuracy: Array
    steps: int
    stopped: str
    settings: dict[str, Any]


def train(
    model: Any,
    data: Dataset,
    method: str = "sgd",
    *,
    step: float | None = None,
    batch: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
    record: int = 1,
    callback: Callback | None = None,
    progress: bool = True,
) -> Training:
    r"""Train a model of one logit in place, on :math:`\mathrm{mean}\,\log(1 + e^{-y f(x)})` over each batch.

    That loss is binary cross-entropy. Every epoch visits each sample once, in an order drawn from the seed.

    Parameters
    ----------
    model : torch.nn.Module
    data : Dataset
    method : {"sgd", "adam"}
    step, batch, epochs : optional
        Defaults: 0.1, 50, 500 for SGD; 0.001, 128, 50 for Adam.
    seed : int
        Seed of the order of the samples.
    record : int
        Epochs between two evaluations of loss and accuracy on all samples; first and last are always evaluated.
    callback : callable, optional
        Called as ``callback(epoch, model)`` at each record; the run stops when it returns True.
    progress : bool
        Show a bar, on a terminal only. Ctrl-C ends the run and keeps what there is.

    Returns
    -------
    Training

    Examples
    --------
    >>> from reluflow.deep import residual_net
    >>> points = Dataset([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0]], [1, 1, -1])
    >>> run = train(residual_net(2, width=8, depth=3), points, epochs=300, record=100)
    >>> run.epochs, bool(run.loss[-1] < 0.1 * run.loss[0]), run.accuracy[-1]
    (array([  0., 100., 200., 300.]), True, np.float64(1.0))
    """
    torch = torch_for("train")
    settings = _settings(method, step, batch, epochs, seed, record)
    X, y = place(model, data.X, torch), place(model, data.y, torch)
    if run_model(model, X[:1], torch).numel() != 1:
        raise ProblemError("train needs a model of one logit; end it with Linear(..., 1).")
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[method]
    optimizer = kind(model.parameters(), lr=settings["step"])
    order, per_epoch = np.random.default_rng(seed), -(-data.n // settings["batch"])
    marks: list[tuple[float, float, float]] = []
    last, steps, stopped = settings["epochs"], 0, "epochs"
    with bar("train", last, None if progress else False) as tell:
        try:
            for epoch in range(last + 1):
                if epoch:
                    for _ in _updates(model, optimizer, X, y, order.permutation(data.n), settings["batch"], torch):
                        steps += 1
                if epoch % record and epoch != last:
                    continue
                marks.append((steps / per_epoch, *_evaluate(model, X, y, torch)))
                tell(epoch, partial("epoch {} of {}, loss {:.3g}".format, epoch, last, marks[-1][1]))
                if not math.isfinite(marks[-1][1]):
                    stopped = "diverged"
                elif callback is not None and callback(epoch, model) is True:
                    stopped = "callback"
                if stopped != "epochs":
                    break
        except KeyboardInterrupt:
            stopped = "interrupted"
            if not marks or marks[-1][0] != steps / per_epoch:
                marks.append((steps / per_epoch, *_evaluate(model, X, y, torch)))
    at, loss, accuracy = (np.array(column) for column in zip(*marks, strict=True))
    return Training(at, loss, accuracy, steps, stopped, settings)


def _settings(
    method: str, step: float | None, batch: int | None, epochs: int | None, seed: int, record: int
) -> dict[str, Any]:
    if method not in _DEFAULTS:
        raise ProblemError(f"method = {method!r} is not known; choose 'sgd' or 'adam'.")
    chosen = [d if v is None else v for v, d in zip((step, batch, epochs), _DEFAULTS[method], strict=True)]
    if not is_number(chosen[0]) or not 0 < chosen[0] < math.inf:
        raise ProblemError(f"step must be a positive number, not {step!r}.")
    whole = (("batch", chosen[1], 1), ("epochs", chosen[2], 0), ("seed", seed, 0), ("record", record, 1))
    for name, value, least in whole:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ProblemError(f"{name} must be an integer of at least {least}, not {value!r}.")
    return {
        "method": method, "step": chosen[0], "batch": chosen[1], "epochs": chosen[2], "seed": seed, "loss": "logistic",
    }  # fmt: skip


def _updates(model: Any, optimizer: Any, X: Any, y: Any, order: Any, batch: int, torch: Any) -> Iterator[None]:
    """Visit every sample once, one update at a time."""
    model.train()
    for lo in range(0, len(order), batch):
        chosen = torch.as_tensor(order[lo : lo + batch], device=X.device)
        optimizer.zero_grad()
        margins = y[chosen] * model(X[chosen]).reshape(-1)
        torch.nn.functional.softplus(-margins).mean().backward()
        optimizer.step()
        yield


def _evaluate(model: Any, X: Any, y: Any, torch: Any) -> tuple[float, float]:
    """Return the mean loss and the accuracy over all samples, from the model's outputs in doubles."""
    margins = as_doubles(y) * logits(model, X, torch)
    with np.errstate(invalid="ignore"):  # a run that diverged says so by its loss
        return float(np.logaddexp(0.0, -margins).mean()), float((margins > 0).mean())


def logits(model: Any, X: Any, torch: Any) -> Array:
    """Return the outputs of a model of one logit, in doubles and in chunks."""
    with evaluating(model), torch.no_grad():
        return np.concatenate([as_doubles(model(X[lo : lo + _CHUNK])).reshape(-1) for lo in range(0, len(X), _CHUNK)])
