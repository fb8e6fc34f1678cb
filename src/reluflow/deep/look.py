"""What the layers of a trained model look like: spectra, features, angles between classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..margins import class_margins
from ..problem import Dataset
from ..problem.checks import as_float_array, check_size
from ..problem.errors import DataError, ProblemError
from ..problem.types import Array
from ..sectors import gram_signs
from .head import place, run_model
from .need import as_doubles, torch_for

_CHUNK = 256  # samples that go through a model at once


# -- weights -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """One weight matrix and its spectrum.

    Attributes
    ----------
    name : str
        The module it belongs to.
    matrix : ndarray of shape (units, inputs)
        A kernel of a convolution is a row.
    singular_values : ndarray
        All of them, largest first.
    projected : ndarray of shape (units, 2)
        The rows in the coordinates of the top two right singular vectors (the second is 0 for rank 1), each turned
        so that its largest coordinate is positive.
    """

    name: str
    matrix: Array
    singular_values: Array
    projected: Array


def spectrum(matrix: npt.ArrayLike, name: str = "W") -> LayerWeights:
    """Singular values of a weight matrix, and its rows on the top two singular directions.

    >>> found = spectrum([[3.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    >>> found.singular_values
    array([3., 1.])
    >>> found.projected
    array([[3., 0.],
           [0., 1.]])
    """
    W = as_float_array(matrix, name, 2, ProblemError)
    if 0 in W.shape:
        raise ProblemError(f"{name} has shape {W.shape}: there is nothing in it.")
    values, directions = np.linalg.svd(W, full_matrices=False)[1:]
    projected = np.zeros((len(W), 2))
    projected[:, : len(directions)] = W @ directions[:2].T
    largest = np.take_along_axis(projected, np.abs(projected).argmax(axis=0)[None], axis=0)
    return LayerWeights(name, W, values, projected * np.where(largest < 0, -1.0, 1.0) + 0.0)


def layer_weights(model: Any) -> tuple[LayerWeights, ...]:
    """Spectra of all linear and convolutional layers of a model, in the order of their definition.

    >>> from reluflow.deep import residual_net
    >>> [(layer.name, layer.matrix.shape) for layer in layer_weights(residual_net(5, width=7, depth=3))]
    [('layers.0', (7, 5)), ('layers.1', (7, 7)), ('layers.2', (1, 7))]
    """
    nn = torch_for("layer_weights").nn
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    found = [(name, module.weight) for name, module in model.named_modules() if isinstance(module, kinds)]
    if not found:
        raise ProblemError(f"{type(model).__name__} has no linear or convolutional layer.")
    return tuple(spectrum(as_doubles(weight).reshape(len(weight), -1), name or "W") for name, weight in found)


def correlations(W: npt.ArrayLike, data: Dataset, signs: npt.ArrayLike | None = None) -> Array:
    r"""Cosine of each row with the max-margin direction of a class (PL-F1, PL-F2).

    Parameters
    ----------
    W : array_like of shape (p, d)
        First-layer weights.
    data : Dataset
        Labelled points of both classes.
    signs : array_like of shape (p,), optional
        Signs of the output weights: :math:`w_+` is compared where they are positive, :math:`w_-` where negative.
        Without them, as in a deeper net: the larger of the two cosines.

    Returns
    -------
    ndarray of shape (p,)
        NaN for a zero row, and where the sign is 0.

    Examples
    --------
    >>> data = Dataset([[2.0, 0.0], [0.0, -1.0]], [1, -1])
    >>> correlations([[1.0, 0.0], [0.6, -0.8]], data)
    array([1. , 0.8])
    >>> correlations([[1.0, 0.0], [0.6, -0.8]], data, signs=[1, 1])
    array([1. , 0.6])
    """
    rows = as_float_array(W, "W", 2, ProblemError)
    if rows.shape[1] != data.d:
        raise ProblemError(f"the rows of W have {rows.shape[1]} entries but the data {data.d} features.")
    lengths = np.linalg.norm(rows, axis=1)
    unit = np.where(lengths > 0, 1.0, np.nan)[:, None] * rows / np.where(lengths > 0, lengths, 1.0)[:, None]
    plus, minus = (unit @ solution.direction for solution in class_margins(data))
    if signs is None:
        return np.maximum(plus, minus)
    s = as_float_array(signs, "signs", 1, ProblemError)
    if s.shape != lengths.shape:
        raise ProblemError(f"there are {s.size} signs for {lengths.size} rows.")
    return np.where(s > 0, plus, np.where(s < 0, minus, np.nan))


# -- features ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LayerFeatures:
    """What entered an activation and what left it.

    Attributes
    ----------
    name : str
        The module of the activation.
    before, after : ndarray of shape (n, units)
        Pre- and post-activation features, flattened.
    """

    name: str
    before: Array
    after: Array


def features(model: Any, X: npt.ArrayLike) -> tuple[LayerFeatures, ...]:
    """Features of all layers, in the order in which the model computes them.

    A layer ends with an activation that is a module (ReLU, LeakyReLU, ...): in a residual net what enters it is the
    sum, not the output of one linear map.

    Parameters
    ----------
    model : torch.nn.Module
    X : array_like
        Inputs, one a row. For large models give a sample of them: all features are kept, in doubles.

    Returns
    -------
    tuple of LayerFeatures
        The last linear map has no activation; what it gives is the output of the model.

    Examples
    --------
    >>> from reluflow.deep import residual_net
    >>> [(layer.name, layer.after.shape) for layer in features(residual_net(5, width=7, depth=3), np.ones((2, 5)))]
    [('activations.0', (2, 7)), ('activations.1', (2, 7))]
    """
    torch = torch_for("features")
    nn = torch.nn
    kinds = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus)
    names = {module: name for name, module in model.named_modules() if isinstance(module, kinds)}
    if not names:
        raise ProblemError(
            f"{type(model).__name__} has no activation that is a module; write torch.nn.ReLU() instead of "
            "torch.relu(...) where features are to be watched."
        )
    calls: list[tuple[str, list[Any]]] = []

    def enter(module: Any, given: Any) -> None:
        calls.append((names[module], [given[0].detach().clone()]))  # a copy: the activation may work in place

    def leave(_module: Any, _given: Any, result: Any) -> None:
        calls[-1][1].append(result.detach())

    inputs = place(model, X, torch)
    kept: list[tuple[str, list[Array], list[Array]]] = []
    hooks = [h for m in names for h in (m.register_forward_pre_hook(enter), m.register_forward_hook(leave))]
    try:
        for lo in range(0, len(inputs), _CHUNK):
            calls.clear()
            run_model(model, inputs[lo : lo + _CHUNK], torch)
            if not lo:
                kept = [(name, [], []) for name, _ in calls]
                check_size("the features", len(inputs), 2 * sum(seen[0][0].numel() for _, seen in calls))
            for (_, before, after), (_, seen) in zip(kept, calls, strict=True):
                before.append(as_doubles(seen[0].flatten(1)))
                after.append(as_doubles(seen[1].flatten(1)))
    finally:
        for hook in hooks:
            hook.remove()
    return tuple(LayerFeatures(name, np.concatenate(b), np.concatenate(a)) for name, b, a in kept)


# -- angles between classes --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InnerProducts:
    """Inner products of pairs of different samples (PL-F3).

    Attributes
    ----------
    minus, plus, cross : ndarray
        Within the class -1, within +1, and between the two.
    samples : ndarray of int
        The samples that were compared with each other: all, or those drawn.
    """

    minus: Array
    plus: Array
    cross: Array
    samples: npt.NDArray[np.intp]


def inner_products(points: npt.ArrayLike, y: npt.ArrayLike, *, most: int = 1000, seed: int = 0) -> InnerProducts:
    """Inner products of the features of all pairs of samples, by class.

    Parameters
    ----------
    points : array_like of shape (n, k)
        Features of one layer.
    y : array_like of shape (n,)
        Labels, -1 or +1.
    most, seed : int
        Of more samples than ``most``, that many are drawn without replacement.

    Examples
    --------
    >>> found = inner_products([[1.0, 0.0], [2.0, 1.0], [-1.0, 1.0]], [1, 1, -1])
    >>> found.plus, found.cross, found.minus.size
    (array([2.]), array([-1., -1.]), 0)
    """
    rows, labels = _labelled(points, y)
    chosen = _drawn(len(rows), most, seed)
    rows, labels = rows[chosen], labels[chosen]
    parts: dict[str, list[Array]] = {"minus": [], "plus": [], "cross": []}
    block = max(1, 2**23 // len(rows))
    for lo in range(0, len(rows), block):
        of = slice(lo, lo + block)
        products = rows[of] @ rows.T
        later = np.arange(len(rows))[of, None] < np.arange(len(rows))
        same = labels[of, None] == labels
        plus = labels[of, None] > 0
        for name, where in (("minus", same & ~plus), ("plus", same & plus), ("cross", ~same)):
            parts[name].append(products[where & later])
    return InnerProducts(**{name: np.concatenate(found) for name, found in parts.items()}, samples=chosen)


@dataclass(frozen=True)
class Separability:
    """How nearly features are orthogonally separable (PL-D1): both shares are 1 exactly when they are.

    Attributes
    ----------
    same : float or None
        Share of the pairs of one class (a sample with itself too) with a positive inner product.
    cross : float or None
        Share of the pairs of different classes with an inner product <= 0; None where a class is missing.
    samples : int
        Number of samples compared.
    complete : bool
        Whether these were all; a share of a sample proves nothing about the rest.
    """

    same: float
    cross: float | None
    samples: int
    complete: bool

    @property
    def separable(self) -> bool | None:
        """Whether the features are orthogonally separable; None if a sample gives no reason against it."""
        if self.same < 1 or (self.cross is not None and self.cross < 1):
            return False
        return True if self.complete else None


def separability(points: npt.ArrayLike, y: npt.ArrayLike, *, most: int = 4000, seed: int = 0) -> Separability:
    """Shares of the pairs that agree with orthogonal separability, by exact signs, block by block.

    Parameters
    ----------
    points, y, most, seed
        As in `inner_products`.

    Examples
    --------
    >>> separability([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1, 1, -1])
    Separability(same=0.75, cross=1.0, samples=3, complete=True)
    """
    rows, labels = _labelled(points, y)
    chosen = _drawn(len(rows), most, seed)
    rows, labels = rows[chosen], labels[chosen]
    good, pairs = np.zeros(2, dtype=int), np.zeros(2, dtype=int)  # across, same
    for left, right, signs in gram_signs(rows):
        same = np.equal.outer(labels[left], labels[right])
        counted = left[:, None] <= right
        for k, where in enumerate((counted & ~same, counted & same)):
            pairs[k] += where.sum()
            good[k] += ((signs > 0) == bool(k))[where].sum()
    cross = float(good[0] / pairs[0]) if pairs[0] else None
    return Separability(float(good[1] / pairs[1]), cross, len(rows), len(chosen) == np.size(y))


def _labelled(points: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
    rows, labels = as_float_array(points, "points", 2, DataError), as_float_array(y, "y", 1, DataError)
    if len(rows) != len(labels) or not len(rows):
        raise DataError(f"there are {len(rows)} points and {len(labels)} labels; one label a point is needed.")
    if not np.all(np.abs(labels) == 1):
        raise DataError("labels must be -1 or +1.")
    return rows, labels


def _drawn(n: int, most: int, seed: int) -> npt.NDArray[np.intp]:
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
