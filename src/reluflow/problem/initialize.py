"""Random starts: the schemes of the four papers."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .checks import as_float_array, check_size, is_number
from .errors import ProblemError
from .network import Network, check_slope
from .types import Array

Scheme = Literal["balanced", "gaussian", "balanced-gaussian", "two-sign", "he", "uniform"]

# Which of the optional arguments each scheme understands; any other one is refused, not ignored.
_OPTIONS: dict[str, frozenset[str]] = {
    "balanced": frozenset({"signs", "lambdas"}),
    "gaussian": frozenset({"c_a"}),
    "balanced-gaussian": frozenset({"signs"}),
    "two-sign": frozenset({"v"}),
    "he": frozenset(),
    "uniform": frozenset(),
}
_SCALE = 1e-6  # of a draw where none is said: small enough that neurons align before the network grows


def initialize(
    d: int,
    width: int = 100,
    scheme: Scheme = "balanced",
    scale: float | None = None,
    seed: int | np.random.Generator = 0,
    slope: float = 0.0,
    *,
    log_scale: float | None = None,
    signs: npt.ArrayLike | None = None,
    lambdas: npt.ArrayLike | None = None,
    c_a: float | None = None,
    v: float | None = None,
) -> Network:
    r"""Draw a network.

    The draw depends on the seed alone: the same seed at another scale is the same network, smaller.

    ===================  ===============================================  ================================
    scheme               first layer (times the scale)                    second layer
    ===================  ===============================================  ================================
    balanced             uniform on the sphere, times ``lambdas``         :math:`\pm|w_j|`, fair signs
    gaussian             N(0, 1) entries                                  N(0, c_a^2), times the scale
    balanced-gaussian    N(0, 1) entries                                  :math:`\pm|w_j|`, fair signs
    two-sign             N(0, 1) entries                                  +v (first half), -v; not scaled
    he                   N(0, 2/d) entries                                N(0, 2/width), times the scale
    uniform              U(-1, 1)/sqrt(d) entries                         U(-1, 1)/sqrt(width), times scale
    ===================  ===============================================  ================================

    A start eps * W_0 with entries of W_0 of variance 1/d is ``balanced-gaussian`` (or ``gaussian``)
    with ``scale=eps / sqrt(d)``; a given W_0 goes through `Network.balanced`.

    Parameters
    ----------
    d, width : int
        Inputs and neurons. ``two-sign`` needs an even width.
    scheme : str
    scale : float, optional
        Factor on the draw, default 1e-6.
    seed : int or numpy.random.Generator
    slope : float
        Activation slope, 0 for ReLU.
    log_scale : float, optional
        The scale as a logarithm, for scales no double can hold; instead of ``scale``.
    signs : array_like of +-1, optional
        Signs of the second layer (balanced schemes) instead of a fair draw.
    lambdas : array_like, optional
        Relative sizes in (0, 1] of the neurons (``balanced``); default all 1.
    c_a : float, optional
        Standard deviation of the second layer relative to the first (``gaussian``); default 1.
    v : float, optional
        Size of the frozen second layer (``two-sign``); default 1/sqrt(width).

    Examples
    --------
    >>> initialize(20, width=100, scale=1e-6, seed=0)
    Network: p=100 (42 positive, 58 negative), d=20, slope=0, log_scale=-13.8155
    >>> tiny = initialize(20, width=100, log_scale=-3000, seed=0)
    >>> bool((tiny.W == initialize(20, width=100, seed=0).W).all())
    True
    >>> initialize(2, width=3, scheme="two-sign")
    Traceback (most recent call last):
      ...
    reluflow.problem.errors.ProblemError: scheme 'two-sign' gives half the neurons each sign: width = 3 must be even.
    """
    _check_scheme(scheme, {"signs": signs, "lambdas": lambdas, "c_a": c_a, "v": v})
    d, p = _positive_int(d, "d"), _positive_int(width, "width")
    check_size("the network", p, d, error=ProblemError)
    check_slope(slope)
    log_sigma = _log_scale(scale, log_scale)
    rng = _generator(seed)

    if scheme == "two-sign":
        if p % 2:
            raise ProblemError(f"scheme 'two-sign' gives half the neurons each sign: width = {p} must be even.")
        size = 1 / math.sqrt(p) if v is None else _positive(v, "v")
        return Network(
            rng.standard_normal((p, d)), np.repeat([size, -size], p // 2), slope, log_sigma, log_scale_out=0.0
        )
    if scheme == "uniform":
        W = rng.uniform(-1, 1, (p, d)) / math.sqrt(d)
        return Network(W, rng.uniform(-1, 1, p) / math.sqrt(p), slope, log_sigma)

    W = rng.standard_normal((p, d))
    if scheme == "he":
        return Network(W * math.sqrt(2 / d), rng.standard_normal(p) * math.sqrt(2 / p), slope, log_sigma)
    if scheme == "gaussian":
        return Network(W, rng.standard_normal(p) * (1.0 if c_a is None else _positive(c_a, "c_a")), slope, log_sigma)
    # The signs are drawn even when they are given, so that giving them does not change later draws.
    fair = rng.choice([-1.0, 1.0], p)
    chosen = fair if signs is None else np.asarray(signs)
    if scheme == "balanced":
        W = W / np.linalg.norm(W, axis=1, keepdims=True) * _lambdas(lambdas, p)[:, None]
    return Network.balanced(W, chosen, slope, log_sigma)


def _check_scheme(scheme: str, given: dict[str, Any]) -> None:
    if scheme not in get_args(Scheme):
        raise ProblemError(f"scheme {scheme!r} is not known; choose one of {', '.join(get_args(Scheme))}.")
    foreign = [name for name, value in given.items() if value is not None and name not in _OPTIONS[scheme]]
    if foreign:
        users = [s for s, options in _OPTIONS.items() if foreign[0] in options]
        raise ProblemError(f"{foreign[0]} means nothing to scheme {scheme!r}; it belongs to {', '.join(users)}.")


def _log_scale(scale: float | None, log_scale: float | None) -> float:
    if scale is not None and log_scale is not None:
        raise ProblemError(
            f"scale = {scale!r} and log_scale = {log_scale!r} are two names for one thing; give one of them."
        )
    if log_scale is not None:
        if not is_number(log_scale) or not math.isfinite(log_scale):
            raise ProblemError(f"log_scale must be a finite number, not {log_scale!r}.")
        return float(log_scale)
    return math.log(_positive(_SCALE if scale is None else scale, "scale"))


def _lambdas(lambdas: npt.ArrayLike | None, p: int) -> Array:
    if lambdas is None:
        return np.ones(p)
    values = as_float_array(lambdas, "lambdas", 1, ProblemError)
    if values.size != p or values.min() <= 0 or values.max() > 1:
        raise ProblemError(f"lambdas must be {p} numbers in (0, 1], not {lambdas!r}; they are relative to the scale.")
    return values


def _generator(seed: int | np.random.Generator) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ProblemError(f"seed must be a non-negative integer or a numpy Generator, not {seed!r}.")
    return np.random.default_rng(int(seed))


def _positive(value: Any, name: str) -> float:
    if not is_number(value) or not (math.isfinite(value) and value > 0):
        raise ProblemError(f"{name} must be a positive number, not {value!r}.")
    return float(value)


def _positive_int(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ProblemError(f"{name} must be a positive integer, not {value!r}.")
    return int(value)
