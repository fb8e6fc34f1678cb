"""Answers of the zoo that are optima of convex programs over activation patterns, solved again with clarabel.

The program (C-GLOBAL): maximise t/2 over vectors v of every activation pattern and output sign, each in the
cone of its pattern, sum of norms at most 1, such that every margin is at least t. The tolerance is that of the
solver; the zoo knows more digits.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import reluflow as rf

TOLERANCE = 3e-8


def patterns(X: np.ndarray) -> np.ndarray:
    """Sign patterns of all open cells: directions around every ray where d - 1 hyperplanes meet, and random ones."""
    rng = np.random.default_rng(0)
    d = X.shape[1]
    rays = [np.linalg.svd(np.array(S))[2][-1] for S in itertools.combinations(X / np.linalg.norm(X), d - 1)]
    around = np.repeat([*rays, *(-r for r in rays)], 60, axis=0)
    tried = np.vstack([around + 1e-4 * rng.standard_normal(around.shape), rng.standard_normal((2000, d))])
    return np.unique(np.sign(tried @ X.T), axis=0)


def best_margin(
    X: np.ndarray, y: np.ndarray, slope: float, signs: tuple[int, ...] = (1, -1), free: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Optimum and the vectors v; ``free`` adds a term e.free_i with e unconstrained to every margin (LL-A.5*)."""
    import clarabel
    from scipy import sparse

    n, d = X.shape
    cells = [(D, s) for D in patterns(X) for s in signs]
    m, extra = len(cells), 0 if free is None else free.shape[1]
    columns = m * (d + 1) + extra + 1  # (r, v) of every cell, e, t
    slopes = np.array([np.where(D > 0, 1.0, slope) for D, _ in cells])
    gain = np.concatenate(
        [np.hstack([np.zeros((n, 1)), (s * y * h)[:, None] * X]) for (_, s), h in zip(cells, slopes, strict=True)],
        axis=1,
    )
    margins = np.hstack([-gain, *([] if free is None else [-free]), np.ones((n, 1))])
    cones = sparse.block_diag([np.hstack([np.zeros((n, 1)), -D[:, None] * X]) for D, _ in cells])
    cones = sparse.hstack([cones, sparse.csc_matrix((m * n, extra + 1))])
    total = np.zeros((1, columns))
    total[0, : m * (d + 1) : d + 1] = 1.0
    balls = sparse.hstack([-sparse.identity(m * (d + 1)), sparse.csc_matrix((m * (d + 1), extra + 1))])
    A = sparse.vstack([margins, cones, total, balls]).tocsc()
    b = np.concatenate([np.zeros(n + m * n), [1.0], np.zeros(m * (d + 1))])
    cost = np.zeros(columns)
    cost[-1] = -1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    kinds = [clarabel.NonnegativeConeT(n + m * n + 1), *[clarabel.SecondOrderConeT(d + 1)] * m]
    solution = clarabel.DefaultSolver(sparse.csc_matrix((columns, columns)), cost, A, b, kinds, settings).solve()
    assert "Solved" in str(solution.status)
    x = np.array(solution.x)
    return float(x[-1]) / 2, x[: m * (d + 1)].reshape(m, d + 1)[:, 1:]


def in_span(X: np.ndarray) -> np.ndarray:
    """Coordinates of the points in their own span, where every pattern has an open cell."""
    _, sizes, basis = np.linalg.svd(X)
    return X @ basis[: int((sizes > 1e-10).sum())].T


def with_answer(key: str) -> list[tuple[str, float]]:
    return [(n, s) for n in rf.examples() for s in rf.example(n).slopes if key in rf.example(n).by_slope[s].answers]


@pytest.mark.parametrize(("name", "slope"), with_answer("global_margin"))
def test_global_margin(name: str, slope: float) -> None:
    ex = rf.example(name)
    best, _ = best_margin(ex.data.X, ex.data.y, slope)
    assert ex.agrees("global_margin", best, slope, slack=TOLERANCE), best


def test_maximiser() -> None:
    ex = rf.example("D7")
    _, v = best_margin(ex.data.X, ex.data.y, 0.5)
    large = v[np.linalg.norm(v, axis=1) > 1e-3]
    known = ex.by_slope[0.5].answers["maximiser"]
    for direction in known / np.linalg.norm(known, axis=1, keepdims=True):
        found = (large @ direction) / np.linalg.norm(large, axis=1)
        assert found.max() > 1 - 1e-9


@pytest.mark.parametrize("K", [0.52, 0.53, 0.6, 0.8, 1.0])
def test_hints_of_other_lengths(K: float) -> None:
    ex = rf.example("D6-H12")
    data = rf.make("hinted", base="D6-base", H=12, K=K, eps=0.2, w_star=(17 / 290**0.5, -1 / 290**0.5))
    known = {k: (value, half) for (k, value), (_, half) in zip(*curve(ex), strict=True)}
    best, _ = best_margin(data.X, data.y, 0.5)
    assert abs(best - known[K][0]) <= known[K][1] + TOLERANCE


def curve(ex: Any) -> tuple[np.ndarray, np.ndarray]:
    facts = ex.by_slope[0.5]
    return facts.answers["global_margin_at_K"], facts.half_units["global_margin_at_K"]


def one_signed(name: str, slope: float) -> tuple[float, float]:
    """V_minus and V_minus_star: networks of negative outputs on the samples that support w_plus."""
    ex = rf.example(name)
    facts, data = ex.by_slope[slope].answers, ex.data
    S, w = facts["S_plus"], facts["w_plus"]
    X, y = in_span(data.X[S]), data.y[S]
    scaled = data.signed[S] * np.where(data.y[S] > 0, 1.0, slope)[:, None]
    across = scaled @ (np.eye(data.d) - np.outer(w, w))
    return best_margin(X, y, slope, (-1,))[0], best_margin(X, y, slope, (-1,), free=across)[0]


@pytest.mark.parametrize(("name", "slope"), with_answer("V_minus"))
def test_one_signed_networks(name: str, slope: float) -> None:
    ex = rf.example(name)
    facts = ex.by_slope[slope]
    plain, starred = one_signed(name, slope)
    assert ex.agrees("V_minus", plain, slope, slack=TOLERANCE), plain
    assert facts.predicates["LL-A.5"] is (plain < facts.answers["gamma_plus"] / 2)
    if "V_minus_star" in facts.answers:
        assert ex.agrees("V_minus_star", starred, slope, slack=TOLERANCE), starred
        assert facts.predicates["LL-A.5*"] is (starred < facts.answers["gamma_plus"] / 2)


def test_symmetric_data_fail_a5() -> None:
    facts = rf.example("D1").by_slope[0.5]
    assert facts.predicates["LL-A.5"] is (one_signed("D1", 0.5)[0] < facts.answers["gamma_plus"] / 2)


def test_flipped_labels() -> None:
    # E-L7: with exchanged labels w_minus is the old w_plus and has the old support.
    ex = rf.example("D5")
    X, y = ex.data.X[ex.by_slope[0.5].answers["S_plus"]], -np.ones(2)
    for key, sign in (("V_negative", -1), ("V_positive", 1)):
        assert ex.agrees(f"flipped.{key}", best_margin(X, y, 0.5, (sign,))[0], 0.5, slack=TOLERANCE)
