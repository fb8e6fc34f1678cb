"""Random points: the pieces the constructions are drawn from."""

from __future__ import annotations

import math

import numpy as np

from ..problem import DataError, check_size
from ..problem.types import Array


def stream(seed: int, *key: int) -> np.random.Generator:
    """Return the random numbers of a seed; a key makes a stream that shares nothing with the plain one."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def gaussian(rng: np.random.Generator, n: int, d: int) -> Array:
    """Draw n standard normal vectors."""
    check_size("X", n, d)
    return rng.standard_normal((n, d))


def fair_signs(rng: np.random.Generator, n: int) -> Array:
    """Draw n signs, each with probability one half."""
    check_size("y", n)
    return np.where(rng.integers(0, 2, n) == 1, 1.0, -1.0)


def teacher(d: int, seed: int) -> Array:
    """Draw the unit vector of a linear teacher."""
    direction = gaussian(stream(seed, 1), 1, d)
    unit: Array = direction[0] / np.linalg.norm(direction)
    return unit


def beyond_margin(n: int, d: int, margin: float, seed: int, teacher_seed: int) -> tuple[Array, Array]:
    """Draw points that a linear teacher separates with at least this margin."""
    t, rng = teacher(d, teacher_seed), stream(seed)
    X = gaussian(rng, n, d) / math.sqrt(d)
    y = fair_signs(rng, n)
    # Only the component along the teacher is conditioned; it is drawn as margin + excess.
    along = y * (margin + excess(rng, margin * math.sqrt(d), n) / math.sqrt(d))
    return X + np.outer(along - X @ t, t), y


def two_gaussians(
    name: str, n: int, d: int, mean: float, std: float, margin: float, mirrored: bool, seed: int
) -> tuple[Array, Array]:
    """Draw a Gaussian cloud for each class, beyond a margin if one is asked for."""
    rng, y = stream(seed), labels(n - n // 2, n // 2)
    drawn = half(name, n) if mirrored else n
    signed = std * gaussian(rng, drawn, d)
    signed[:, 0] = margin + std * excess(rng, (margin - mean) / std, drawn)
    if mirrored:
        signed = np.vstack([signed, signed])
    return y[:, None] * signed, y


def excess(rng: np.random.Generator, c: float, n: int) -> Array:
    """Draw Z - c for a standard normal Z conditioned on Z >= c, exactly and for every c."""
    out, todo = np.empty(n), np.arange(n)
    # For c > 0 proposals c + e/rate, e exponential, are accepted with exp(-((e - 1)/rate)^2 / 2): the best
    # exponential envelope (Robert 1995). At least half of the proposals are accepted in either case.
    rate = c / 2 + math.hypot(c / 2, 1.0)
    while todo.size:
        if c <= 0:
            proposal = rng.standard_normal(todo.size) - c
            accepted = proposal >= 0
        else:
            e = rng.standard_exponential(todo.size)
            proposal = e / rate
            accepted = rng.standard_exponential(todo.size) >= ((e - 1) / rate) ** 2 / 2
        out[todo[accepted]] = proposal[accepted]
        todo = todo[~accepted]
    return out


def labels(plus: int, minus: int) -> Array:
    """Return +1 as often as asked for, then -1."""
    check_size("y", plus + minus)
    return np.concatenate([np.ones(plus), -np.ones(minus)])


def half(name: str, n: int) -> int:
    """Return n / 2, where n must be even."""
    if n % 2:
        raise DataError(f"{name}: n = {n} must be even, since every point comes with its mirror image.")
    return n // 2
