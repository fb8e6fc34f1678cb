"""Two-layer networks whose weights may be smaller than the smallest double."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .checks import as_float_array, check_range, is_number
from .dataset import Dataset
from .digest import digest
from .errors import ProblemError
from .files import Shapes, read_npz, writing
from .types import Array

Train = Literal["both", "first"]

# exp(-744) is the last positive double; beyond these the real weights cannot be written down.
_LOG_SMALLEST, _LOG_LARGEST = -708.0, 709.0
_NO_SQUARE = 1e-150  # what is below this has no square in doubles; as part of a unit vector it is zero


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Network:
    r"""The function :math:`f(x) = \sum_j a_j \phi(w_j \cdot x)`, :math:`\phi(z) = \max(z, \alpha z)`.

    The weights are ``exp(log_scale) * W`` and ``exp(log_scale_out) * a``. The draw ``(W, a)`` and the
    scale stay apart, because the theory fixes the one and sends the other to zero, and because scales
    such as e^-3000 have no floating point number of their own.

    Parameters
    ----------
    W : array_like of shape (p, d)
        First layer; each row is a neuron.
    a : array_like of shape (p,)
        Second layer.
    slope : float
        The slope alpha of the activation for negative input, in [0, 1]; 0 is ReLU, 1 is linear.
    log_scale : float or array_like of shape (p,)
        Logarithm of the factor on the weights, one for all neurons or one each.
    log_scale_out : float or array_like of shape (p,), optional
        The same for the second layer, where it differs (a frozen second layer keeps its size while the
        first one starts tiny). Default: ``log_scale``.

    Examples
    --------
    >>> net = Network([[1.0, 0.0], [0.0, 2.0]], [1.0, -2.0], log_scale=-3000)
    >>> net
    Network: p=2 (1 positive, 1 negative), d=2, slope=0, log_scale=-3000
    >>> net.log_norms
    array([-3000.        , -2999.30685282])
    >>> net.outputs([[1.0, 1.0]])   # about e^-6000: below every double
    array([-0.])
    """

    W: Array
    a: Array
    slope: float
    log_scale: float | Array
    log_scale_out: float | Array | None

    def __init__(
        self,
        W: npt.ArrayLike,
        a: npt.ArrayLike,
        slope: float = 0.0,
        log_scale: float | npt.ArrayLike = 0.0,
        log_scale_out: float | npt.ArrayLike | None = None,
    ) -> None:
        W = as_float_array(W, "W", 2, ProblemError)
        a = as_float_array(a, "a", 1, ProblemError)
        if 0 in W.shape:
            raise ProblemError(f"W has shape {W.shape}: at least one neuron and one input are needed.")
        if a.shape[0] != W.shape[0]:
            raise ProblemError(
                f"W has {W.shape[0]} rows but a has {a.shape[0]} entries; one output weight a neuron is needed."
            )
        remedy = "Give the size apart: Network(W / s, a / s, slope, log_scale=log(s)) has the same weights."
        check_range(W, "W", ProblemError, remedy)
        check_range(a[:, None], "a", ProblemError, remedy)
        out = None if log_scale_out is None else _as_log_scale(log_scale_out, "log_scale_out", a.size)
        object.__setattr__(self, "W", W)
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "slope", check_slope(slope))
        object.__setattr__(self, "log_scale", _as_log_scale(log_scale, "log_scale", a.size))
        object.__setattr__(self, "log_scale_out", out)

    @staticmethod
    def balanced(W: npt.ArrayLike, signs: npt.ArrayLike, slope: float = 0.0, log_scale: float | Array = 0.0) -> Network:
        """Build the network with first layer ``W`` and ``a_j = signs_j |w_j|``.

        >>> Network.balanced([[3.0, 4.0]], [-1]).a
        array([-5.])
        """
        rows = as_float_array(W, "W", 2, ProblemError)
        s = as_float_array(signs, "signs", 1, ProblemError)
        if s.shape[0] != rows.shape[0] or not np.all(np.abs(s) == 1):
            raise ProblemError(f"signs must be {rows.shape[0]} numbers, each -1 or +1, not {signs!r}.")
        return Network(rows, s * np.linalg.norm(rows, axis=1), slope, log_scale)

    @staticmethod
    def from_polar(directions: Array, log_norms: Array, log_outs: Array, signs: Array, slope: float) -> Network:
        """Build the network of unit vectors, logarithms of ``|w_j|`` and ``|a_j|``, and signs of ``a_j``.

        Each neuron gets its own scale; a logarithm of -inf makes a zero.

        >>> net = Network.from_polar(np.eye(2), np.array([-3000.0, -np.inf]), np.zeros(2), np.array([1, -1]), 0.0)
        >>> net.W, net.log_norms
        (array([[1., 0.],
               [0., 0.]]), array([-3000.,   -inf]))
        """
        there_w, there_a = np.isfinite(log_norms), np.isfinite(log_outs)
        return Network(
            np.where(there_w[:, None], directions, 0.0),
            np.where(there_a, signs, 0.0),
            slope,
            np.where(there_w, log_norms, 0.0),
            np.where(there_a, log_outs, 0.0),
        )

    # -- sizes --------------------------------------------------------------------------------------

    @property
    def p(self) -> int:
        """Number of neurons."""
        return int(self.W.shape[0])

    @property
    def d(self) -> int:
        """Number of inputs."""
        return int(self.W.shape[1])

    @property
    def log_scales(self) -> tuple[Array, Array]:
        """Log factors on the rows of W and on the entries of a, each of shape (p,)."""
        out = self.log_scale if self.log_scale_out is None else self.log_scale_out
        return np.broadcast_to(self.log_scale, (self.p,)), np.broadcast_to(out, (self.p,))

    @property
    def directions(self) -> Array:
        """Rows of W scaled to unit length; a zero neuron stays zero."""
        r: Array = np.linalg.norm(self.W, axis=1)
        return self.W / np.where(r > 0, r, 1.0)[:, None]

    @property
    def log_norms(self) -> Array:
        """``log |w_j|`` of the real weights (-inf for a zero neuron)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.linalg.norm(self.W, axis=1)) + self.log_scales[0])

    @property
    def log_outs(self) -> Array:
        """``log |a_j|`` of the real weights (-inf where a_j = 0)."""
        with np.errstate(divide="ignore"):
            return np.log(np.abs(self.a)) + self.log_scales[1]

    def log_norm(self, train: Train = "both") -> float:
        """Log of the norm of the trained parameters: ``(W, a)``, or W alone for ``train="first"``."""
        parts = self.log_norms if check_train(train) == "first" else np.concatenate([self.log_norms, self.log_outs])
        top = parts.max()
        return float(top + np.log(np.sum(np.exp(2 * (parts - top)))) / 2) if np.isfinite(top) else -np.inf

    # -- the function -------------------------------------------------------------------------------

    def activate(self, z: Array) -> Array:
        """``phi(z)``, elementwise."""
        return np.where(z > 0, z, self.slope * z)

    def preactivations(self, X: npt.ArrayLike) -> Array:
        """``w_j . x_i`` for the stored rows of W (without their scale), shape (n, p)."""
        return self._preactivations(X, self.W)

    def _preactivations(self, X: npt.ArrayLike, W: Array) -> Array:
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.d:
            raise ProblemError(
                f"the points have shape {points.shape} but the network has {self.d} inputs; (n, {self.d}) is needed"
                + (
                    " (if its last input is a bias, append a column of ones)."
                    if points.ndim == 2 and points.shape[1] == self.d - 1
                    else "."
                )
            )
        return np.asarray(points @ W.T)

    def outputs(self, X: npt.ArrayLike) -> Array:
        """``f(x)`` at the rows of X, at the real scale; what no double can hold comes out as 0 or inf."""
        mantissa, log_factor = self.scaled_outputs(X)
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(mantissa * np.exp(log_factor))

    def scaled_outputs(self, X: npt.ArrayLike) -> tuple[Array, float]:
        """``f(x) = mantissa * exp(log_factor)``: the outputs of a network of any scale.

        >>> Network([[1.0]], [2.0], log_scale=-3000).scaled_outputs([[1.0]])
        (array([2.]), -6000.0)
        """
        weight = np.add(*self.log_scales)
        top = _top(weight, self.W.any(axis=1) & (self.a != 0))
        with np.errstate(under="ignore"):
            size = self.a * np.exp(np.minimum(weight - top, 0.0))
            return np.asarray(self.activate(self.preactivations(X)) @ size), top

    def margins(self, data: Dataset) -> Array:
        """``q_i = y_i f(x_i)`` at the real scale."""
        return data.y * self.outputs(data.X)

    def scaled_weights(self, train: Train = "both") -> tuple[Array, Array, float, float]:
        """``(W, a, log_w, log_a)`` with ``e^log_w W`` and ``e^log_a a`` the real weights, whatever their size.

        The factors are the largest scale of a weight that is not 0: of both layers together, or with ``train="first"``
        of each. Scales are subtracted before they are exponentiated, so that a common one cancels exactly.

        >>> Network([[1.0], [2.0]], [3.0, 4.0], log_scale=[-3000.0, -3000.0]).scaled_weights()[1:]
        (array([3., 4.]), -3000.0, -3000.0)
        """
        log_w, log_a = self.log_scales
        there_w, there_a = np.asarray(self.W.any(axis=1)), self.a != 0
        if check_train(train) == "first":
            top_w, top_a = _top(log_w, there_w), _top(log_a, there_a)
        else:
            top_w = top_a = _top(np.concatenate([log_w, log_a]), np.concatenate([there_w, there_a]))
        # The scale of a weight that is 0 may be far larger than those that count.
        with np.errstate(under="ignore"):
            W = self.W * np.exp(np.minimum(log_w - top_w, 0.0))[:, None]
            return W, self.a * np.exp(np.minimum(log_a - top_a, 0.0)), top_w, top_a

    def relative(self, train: Train) -> tuple[Array, Array, float]:
        """Weights divided by a common factor that keeps them representable, and their norm; a frozen layer as it is."""
        W, a, _, _ = self.scaled_weights(train)
        if train == "first":
            with np.errstate(under="ignore"):
                a = self.a * np.exp(self.log_scales[1])
        norm = np.linalg.norm(W) if train == "first" else np.hypot(np.linalg.norm(W), np.linalg.norm(a))
        if norm == 0:
            raise ProblemError(
                "every trained weight is zero: the zero network has no direction and no normalised margin."
            )
        return W, a, float(norm)

    def normalized(self, train: Train = "both") -> Network:
        """Scale the trained parameters to unit norm, keeping the direction in parameter space."""
        return Network(*self._unit(train), self.slope)

    def _unit(self, train: Train) -> tuple[Array, Array]:
        W, a, norm = self.relative(check_train(train))
        return _drop_tiny(W / norm), _drop_tiny(a if train == "first" else a / norm)

    def normalized_margin(self, data: Dataset, train: Train = "both") -> float:
        """``min_i q_i / |theta|^H``: H = 2 when both layers are trained, 1 for the first alone.

        Does not depend on the scale, and is exact at scales no double can hold.

        >>> data = Dataset([[1.0, 0.0], [-1.0, 0.0]], [1, -1])
        >>> Network([[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0], log_scale=-5000).normalized_margin(data)
        0.25
        """
        W, a, norm = self.relative(check_train(train))
        q = data.y * (self.activate(self._preactivations(data.X, W)) @ a)
        return float(q.min() / norm ** (1 if train == "first" else 2))

    def normalized_outputs(self, X: npt.ArrayLike, train: Train = "both") -> Array:
        """``f(x) / |theta|^H`` at the rows of X: the outputs of `normalized`, H as for `normalized_margin`."""
        W, a = self._unit(train)
        return np.asarray(self.activate(self._preactivations(X, W)) @ a)

    # -- other networks -----------------------------------------------------------------------------

    def weights(self) -> tuple[Array, Array]:
        """Return the real ``(W, a)``, or a `ProblemError` where doubles cannot hold them."""
        log_w, log_a = self.log_scales
        for what, size in (("W", self.log_norms), ("a", self.log_outs)):
            live = size[np.isfinite(size)]
            if live.size and (live.min() < _LOG_SMALLEST or live.max() > _LOG_LARGEST):
                raise ProblemError(
                    f"the weights {what} run from e^{live.min():.6g} to e^{live.max():.6g}, outside the "
                    "range of doubles; "
                    "use the stored arrays and log_scales, or directions and log_norms."
                )
        return self.W * np.exp(log_w)[:, None], self.a * np.exp(log_a)

    def with_log_scale(self, log_scale: float | npt.ArrayLike) -> Network:
        """Return the same draw at another scale (of W alone where ``log_scale_out`` is set)."""
        return Network(self.W, self.a, self.slope, log_scale, self.log_scale_out)

    # -- keeping it ---------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write an NPZ file (ending ``.npz``) with arrays only (no pickle)."""
        arrays: dict[str, Any] = {
            "W": self.W,
            "a": self.a,
            "slope": np.float64(self.slope),
            "log_scale": np.asarray(self.log_scale),
        }
        if self.log_scale_out is not None:
            arrays["log_scale_out"] = np.asarray(self.log_scale_out)
        with writing(path, ".npz") as file, file.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)

    @staticmethod
    def load(path: str | Path) -> Network:
        """Read what `save` wrote: arrays ``W`` and ``a``, and if present ``slope`` and ``log_scale``."""

        def fit(shapes: Shapes) -> None:
            if len(shapes["W"]) != 2 or shapes["a"] != shapes["W"][:1]:
                raise ProblemError(
                    f"{path}: W has shape {shapes['W']} and a has shape {shapes['a']}, but (neurons, inputs) and "
                    "(neurons,) are needed; Network.save writes such a file."
                )

        also = ("slope", "log_scale", "log_scale_out")
        arrays = read_npz(path, need=("W", "a"), error=ProblemError, fit=fit, also=also)
        scales = {k: _scalar_or_vector(arrays[k]) for k in ("log_scale", "log_scale_out") if k in arrays}
        slope = _scalar_or_vector(arrays["slope"]) if "slope" in arrays else 0.0
        return Network(arrays["W"], arrays["a"], slope, **scales)

    # -- identity -----------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """SHA-256 of the stored arrays, the slope and the scales."""
        out = None if self.log_scale_out is None else np.asarray(self.log_scale_out)
        return digest("Network", self.W, self.a, self.slope, np.asarray(self.log_scale), out)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __repr__(self) -> str:
        scale = (
            f"{self.log_scale:g}"
            if isinstance(self.log_scale, float)
            else f"{self.log_scale.min():g}..{self.log_scale.max():g}"
        )
        positive, negative = int((self.a > 0).sum()), int((self.a < 0).sum())
        return (
            f"Network: p={self.p} ({positive} positive, {negative} negative), d={self.d}, "
            f"slope={self.slope:g}, log_scale={scale}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Network, (self.W, self.a, self.slope, self.log_scale, self.log_scale_out)


def _top(scales: Array, there: npt.NDArray[np.bool_]) -> float:
    """Return the largest scale of a weight that is not 0."""
    return float(scales[there].max()) if there.any() else float(scales.max())


def check_slope(slope: Any) -> float:
    """Return the activation slope as a float, or refuse it."""
    if not is_number(slope):
        raise ProblemError(f"slope must be one number in [0, 1], not {slope!r}.")
    if not 0.0 <= float(slope) <= 1.0:
        raise ProblemError(
            f"slope = {slope!r} is outside [0, 1]: 0 is ReLU, 1 is a linear network, between them leaky ReLU."
        )
    return float(slope) + 0.0  # minus zero is zero


def check_train(train: Any) -> Train:
    """Return which layers are trained, or refuse it."""
    if train not in ("both", "first"):
        raise ProblemError(f"train = {train!r} is not known; choose 'both' (layers) or 'first' (second layer frozen).")
    return train  # type: ignore[no-any-return]


def misfit(features: int, inputs: int) -> str:
    """Say what to do about data and a network of different dimension."""
    given = f"the data have {features} features but the network has {inputs} inputs"
    if inputs == features + 1:
        return (
            f"{given}; if its last input is a bias, the data need the constant feature: data.with_bias(1.0). Else "
            f"initialise the network with d={features}."
        )
    return f"{given}; initialise it with d={features}."


def _as_log_scale(value: Any, name: str, p: int) -> float | Array:
    scale = np.asarray(value)
    if scale.dtype.kind not in "iuf" or scale.ndim > 1 or not np.all(np.isfinite(scale)):
        raise ProblemError(f"{name} must be a finite number, or {p} of them, not {value!r}.")
    if scale.ndim == 0:
        return float(scale)
    if scale.size != p:
        raise ProblemError(f"{name} has {scale.size} entries for {p} neurons.")
    return as_float_array(scale, name, 1, ProblemError)


def _scalar_or_vector(value: npt.NDArray[Any]) -> Any:
    return value.item() if value.ndim == 0 else value


def _drop_tiny(values: Array) -> Array:
    return np.where(np.abs(values) < _NO_SQUARE, 0.0, values)
