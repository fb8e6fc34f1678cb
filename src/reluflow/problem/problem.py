"""A learning problem: data, the network it starts from, and what is minimised."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from .dataset import Dataset, require_dataset
from .digest import digest
from .errors import ProblemError
from .loss import Loss, LossName
from .network import Network, Train, check_train, misfit
from .show import Shown
from .types import Array

Reduction = Literal["mean", "sum"]

#: Logarithms of sizes are kept: beyond this one their rounding exceeds what anything could be told by.
LARGEST_LOG = 1e8
_LARGEST_OUTPUT = 600.0  # logarithm; a double holds e^709, and products with outputs are formed


@dataclass(frozen=True, repr=False, init=False)
class Problem(Shown):
    r"""Gradient flow on :math:`L(\theta) = r \sum_i \ell(y_i f_\theta(x_i))` from a given network.

    Parameters
    ----------
    data : Dataset
    net : Network
        Where the flow starts; it carries the activation slope.
    loss : {"logistic", "exponential"} or Loss
    reduction : {"mean", "sum"}
        r = 1/n or r = 1. The path is the same, the clock differs by n.
    train : {"both", "first"}
        ``"first"`` freezes the second layer.

    Examples
    --------
    >>> problem = Problem(Dataset([[2, 1], [-3, -1]], [1, -1]), Network([[1, 0], [0, 1]], [1, -1], log_scale=-7))
    >>> problem
    Problem: mean logistic loss, both layers trained
      Dataset: n=2 (1 positive, 1 negative), d=2
      Network: p=2 (1 positive, 1 negative), d=2, slope=0, log_scale=-7
    >>> problem.speed
    0.25
    """

    data: Dataset
    net: Network
    loss: Loss
    reduction: Reduction
    train: Train

    def __init__(
        self,
        data: Dataset,
        net: Network,
        loss: Loss | LossName = "logistic",
        reduction: Reduction = "mean",
        train: Train = "both",
    ) -> None:
        require_dataset(data)
        if not isinstance(net, Network):
            raise ProblemError(f"net must be a Network, not {type(net).__name__}; initialize(d, width=...) draws one.")
        if data.d != net.d:
            raise ProblemError(misfit(data.d, net.d))
        if reduction not in ("mean", "sum"):
            raise ProblemError(f"reduction = {reduction!r} is not known; choose 'mean' or 'sum'.")
        _check_size(data, net)
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "net", net)
        object.__setattr__(self, "loss", loss if isinstance(loss, Loss) else Loss(loss))
        object.__setattr__(self, "reduction", reduction)
        object.__setattr__(self, "train", check_train(train))

    @property
    def weight(self) -> float:
        """The factor r in front of the sum of losses."""
        return 1.0 / self.data.n if self.reduction == "mean" else 1.0

    @property
    def speed(self) -> float:
        """``r * g(0)``: how fast the early phase runs compared with a sum loss of unit force at zero.

        Times stated for that normalisation are divided by it.
        """
        return self.weight * self.loss.force_at_zero

    def log_loss(self, net: Network | None = None) -> float:
        """Log of the training loss, of the start or of another network."""
        return self.log_loss_of((net or self.net).margins(self.data))

    def log_loss_of(self, margins: Array) -> float:
        """Log of the training loss at the given margins, finite for margins of 10^6.

        >>> one = Problem(Dataset([[1.0]], [1]), Network([[1.0]], [1.0]))
        >>> one.log_loss_of(np.array([1e6]))
        -1000000.0
        """
        return float(np.log(self.weight) + np.logaddexp.reduce(self.loss.log_value(margins)))

    def replace(self, **changes: Any) -> Problem:
        """Return a copy with some fields changed."""
        unknown = set(changes) - {f.name for f in fields(self)}
        if unknown:
            raise ProblemError(
                f"Problem has no field {sorted(unknown)[0]!r}; it has {', '.join(f.name for f in fields(self))}."
            )
        return Problem(**{f.name: changes.get(f.name, getattr(self, f.name)) for f in fields(self)})

    def fingerprint(self) -> str:
        """SHA-256 of everything that determines the flow."""
        return digest(
            "Problem", self.data.fingerprint(), self.net.fingerprint(), self.loss.name, self.reduction, self.train
        )

    def __repr__(self) -> str:
        layers = "both layers" if self.train == "both" else "first layer"
        return f"Problem: {self.reduction} {self.loss.name} loss, {layers} trained\n  {self.data!r}\n  {self.net!r}"


def require_problem(problem: object) -> None:
    """Raise a `ProblemError` unless this is a `Problem`."""
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"problem must be a Problem, not {type(problem).__name__}; as_problem(X, y, width=50) makes one of data, "
            "Problem(data, net) of data and a network."
        )


def _check_size(data: Dataset, net: Network) -> None:
    """Refuse a start that is too small or too large for its logarithms, or its outputs, to be computed with."""
    sizes = np.concatenate([net.log_norms, net.log_outs])
    sizes = sizes[np.isfinite(sizes)]
    if sizes.size and (worst := float(sizes[np.argmax(np.abs(sizes))])) and abs(worst) > LARGEST_LOG:
        raise ProblemError(
            f"the start has weights of size e^{worst:.6g}, but sizes from e^-{LARGEST_LOG:.0e} to e^{LARGEST_LOG:.0e} "
            "are needed: beyond, the rounding of logarithms exceeds all that a flow could be told by. Choose a "
            f"log_scale between -{LARGEST_LOG:.0e} and {LARGEST_LOG:.0e}."
        )
    largest = float(np.logaddexp.reduce(net.log_norms + net.log_outs) + np.log(data.norms.max()))
    if largest > _LARGEST_OUTPUT:
        both = 2 if net.log_scale_out is None else 1  # both layers shrink with log_scale, or the first alone
        allowed = float(np.max(net.log_scale)) - (largest - _LARGEST_OUTPUT) / both
        raise ProblemError(
            f"the outputs of the start may reach e^{largest:.6g}, but at most e^{_LARGEST_OUTPUT:g} can be computed "
            f"with; make the weights smaller: log_scale at most {np.floor(allowed):.6g}."
        )
