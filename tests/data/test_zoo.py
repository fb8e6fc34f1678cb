"""Every number of the zoo, computed again by small independent code (the convex programs: test_zoo_programs)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import reluflow as rf
from reluflow.data import Example

Rows = list[list[Fraction]]

# What no small code can compute, and why.
UNCHECKED = {
    "flow": "what one run of the flow gave; the dynamics are tested against it",
    "norm_ratio": "as flow",
    "polynomial_tail": "as flow",
}
# Needs convex programs: tests/data/test_zoo_programs.py.
PROGRAMS = {"V_minus", "V_minus_star", "maximiser", "flipped", "global_margin_at_K", "LL-A.5", "LL-A.5*"}


def each_slope(ex: Example) -> list[float | None]:
    return [None, *ex.slopes]


CASES = [(name, slope) for name in rf.examples() for slope in each_slope(rf.example(name))]


def own(ex: Example, slope: float | None) -> Any:
    return ex.facts if slope is None else ex.by_slope[slope]


# -- exact arithmetic -------------------------------------------------------------------------------


@cache
def rows(name: str) -> Rows:
    """The points as rationals: the decimals as written, computed coordinates as the doubles they are."""
    exact = not (name.startswith(("D4", "D6", "EX6", "ML-", "PL-")) and name != "D6-base")
    return [[Fraction(repr(v)) if exact else Fraction(v) for v in row] for row in rf.example(name).data.X.tolist()]


def labels(name: str) -> list[int]:
    return [int(v) for v in rf.example(name).data.y]


def dot(u: Any, v: Any) -> Any:
    return sum(a * b for a, b in zip(u, v, strict=True))


def solve(A: Rows, b: list[Fraction]) -> list[Fraction] | None:
    """Gauss elimination over the rationals; None if singular."""
    M = [[*row, c] for row, c in zip(A, b, strict=True)]
    for k in range(len(M)):
        pivot = next((i for i in range(k, len(M)) if M[i][k]), None)
        if pivot is None:
            return None
        M[k], M[pivot] = M[pivot], M[k]
        for i in range(len(M)):
            if i != k:
                factor = M[i][k] / M[k][k]
                M[i] = [p - factor * q for p, q in zip(M[i], M[k], strict=True)]
    return [row[-1] / row[k] for k, row in enumerate(M)]


def rank(A: Rows) -> int:
    return max((r for r in range(len(A) + 1) for S in itertools.combinations(A, r) if independent(S)), default=0)


def independent(S: Any) -> bool:
    return solve([[dot(u, v) for u in S] for v in S], [Fraction(0)] * len(S)) is not None


def hard_margin(Z: Rows) -> tuple[list[Fraction], list[Fraction]] | None:
    """Smallest w with w.z_i >= 1 and its multipliers, exactly, by trying every set of at most d supports."""
    for size in range(1, len(Z[0]) + 1):
        for A in itertools.combinations(range(len(Z)), size):
            lam = solve([[dot(Z[i], Z[j]) for i in A] for j in A], [Fraction(1)] * size)
            if lam is None or min(lam) < 0:
                continue
            w = [sum(c * Z[i][k] for c, i in zip(lam, A, strict=True)) for k in range(len(Z[0]))]
            if all(dot(w, z) >= 1 for z in Z):
                dual = dict(zip(A, lam, strict=True))
                return [Fraction(v) for v in w], [dual.get(i, Fraction(0)) for i in range(len(Z))]
    return None


def norm(v: Any) -> float:
    return math.sqrt(sum(float(a) ** 2 for a in v))


def unit(v: Any) -> np.ndarray:
    return np.array([float(a) for a in v]) / norm(v)


def cos(u: Any, v: Any) -> float:
    return float(unit(u) @ unit(v))


def signed(name: str, negatives: Fraction | int = 1, positives: Fraction | int = 1) -> Rows:
    """The points y_i x_i, with a factor on each class."""
    factor = {1: Fraction(positives), -1: -Fraction(negatives)}
    return [[factor[s] * v for v in x] for x, s in zip(rows(name), labels(name), strict=True)]


def of_class(name: str, sign: int) -> Rows:
    return [x for x, s in zip(rows(name), labels(name), strict=True) if s == sign]


@cache
def class_svm(name: str, sign: int) -> tuple[list[Fraction], list[Fraction]]:
    found = hard_margin(of_class(name, sign))
    assert found is not None
    return found


def distance(points: Rows) -> float:
    found = hard_margin(points)
    return 0.0 if found is None else 1 / norm(found[0])


def class_sum(name: str, sign: int) -> list[Fraction]:
    return [sum(column, Fraction(0)) for column in zip(*of_class(name, sign), strict=True)]


# -- the formulas: PL and ML ------------------------------------------------------------------------

SIGN = {"plus": 1, "minus": -1}


def mu(name: str) -> float:
    Z = signed(name)
    return min(float(dot(u, v)) / (norm(u) * norm(v)) for u in Z for v in Z)


def sizes(name: str) -> list[float]:
    return [norm(x) for x in rows(name)]


def support(name: str, side: str) -> list[int]:
    w, _ = class_svm(name, SIGN[side])
    return [i for i, x in enumerate(rows(name)) if labels(name)[i] == SIGN[side] and dot(w, x) == 1]


def sigma(name: str, side: str) -> list[int]:
    X, y, s = rows(name), labels(name), SIGN[side]
    return [1 if y[i] == s else -1 if any(dot(x, v) < 0 for v in of_class(name, s)) else 0 for i, x in enumerate(X)]


def limit(name: str) -> dict[str, Any]:
    """PL-T1', PL-C1, PL-LC1."""
    (w, alpha), (u, beta) = class_svm(name, 1), class_svm(name, -1)
    p, m = norm(w), norm(u)
    spread = ((p - m) ** 2 + 4 * p * m * cos(w, u) ** 2) / (p + m) ** 2
    return {
        "share_plus": p / (p + m),
        "u_squared": 1 / (p * (p + m)),
        "z_squared": 1 / (m * (p + m)),
        "corollary": 1 / (2 * (p + m)),
        "stable_rank": 2 / (1 + math.sqrt(spread)),
        "kkt_value": p + m,
        "kkt_multipliers": [float(a) / p for a in alpha] + [float(b) / m for b in beta],
    }


def harmonic(n: int) -> float:
    return sum(1 / k for k in range(1, n + 1))


def worst_path(name: str) -> float:
    p, m = len(of_class(name, 1)), len(of_class(name, -1))
    return max(harmonic(a) + (p * m > 0) / 2 + harmonic(b - 1) for a, b in ((m, p), (p, m)))


def artanh_sqrt(c: float) -> float:
    return math.log((1 + math.sqrt(1 - c)) / math.sqrt(c))


def times(name: str) -> dict[str, float]:
    """ML-T1a with c = mu^2 (zeta_2 is at least that in every example)."""
    m, small, n, h = mu(name), min(sizes(name)), len(rows(name)), worst_path(name)
    return {
        "t_1": 16 * math.log(n) / (m**2.5 * small),
        "t_1_h": 4 * h / (m**2.5 * small),
        "h": h,
        "t_1_prime": 4 * h * artanh_sqrt(m * m) / (math.sqrt(m) * small),
        "alpha_L": (m * small) ** 2 / (32 * max(sizes(name))),
    }


def zeta(name: str, side: str) -> float:
    return min(cos(z, class_sum(name, SIGN[side])) ** 2 for z in signed(name))


def by_side(find: Callable[[str, str], Any], stem: str) -> dict[str, Callable[[str], Any]]:
    return {f"{stem}_{side}": lambda name, side=side: find(name, side) for side in SIGN}


def constant(find: Callable[[str], Mapping[str, Any]], *names: str) -> dict[str, Callable[[str], Any]]:
    return {key: lambda name, key=key: find(name)[key] for key in names}


def stable_rank(name: str) -> float:
    return limit(name)["stable_rank"] if -1 in labels(name) else 1.0


def entry(name: str) -> float:
    delta = math.asin(rf.example(name).data.X[1, 0])
    return math.log(math.tan(math.radians(40)) / math.tan(delta / 2))


def widest_axis(name: str) -> float:
    X = rf.example(name).data.X
    rays = [np.cross(u, v) for u, v in itertools.permutations(X, 2)]
    rays = [unit(r) for r in rays if (X @ r >= -1e-12).all()]
    return 3 * min(float(r[2]) for r in rays) ** 2


PLAIN: dict[str, Callable[[str], Any]] = {
    **by_side(lambda n, s: [float(v) for v in class_svm(n, SIGN[s])[0]], "w"),
    **by_side(lambda n, s: [float(v) for v in class_svm(n, SIGN[s])[1]], "alpha"),
    **by_side(lambda n, s: 1 / norm(class_svm(n, SIGN[s])[0]), "gamma"),
    **by_side(support, "support"),
    **by_side(lambda n, s: rank([rows(n)[i] for i in support(n, s)]), "support_rank"),
    **by_side(lambda n, s: [float(dot(class_svm(n, SIGN[s])[0], x)) for x in of_class(n, SIGN[s])], "margins"),
    **by_side(lambda n, s: [float(v) for v in class_sum(n, SIGN[s])], "x"),
    **by_side(lambda n, s: SIGN[s] * norm(class_sum(n, SIGN[s])) / 2, "G"),
    **by_side(lambda n, s: unit(class_sum(n, SIGN[s])), "extremal"),
    **by_side(sigma, "sigma"),
    **by_side(zeta, "zeta_1"),
    **constant(limit, "share_plus", "u_squared", "z_squared", "corollary", "kkt_value", "kkt_multipliers"),
    **constant(times, "t_1", "t_1_h", "h", "t_1_prime", "alpha_L"),
    "w_plus_norm": lambda n: norm(class_svm(n, 1)[0]),
    "w_minus_norm": lambda n: norm(class_svm(n, -1)[0]),
    "x_plus_norm": lambda n: norm(class_sum(n, 1)),
    "x_minus_norm": lambda n: norm(class_sum(n, -1)),
    "norm_ratio_of_sums": lambda n: norm(class_sum(n, 1)) / norm(class_sum(n, -1)),
    "cos_x_plus_w_plus": lambda n: cos(class_sum(n, 1), class_svm(n, 1)[0]),
    "cos_x_minus_w_minus": lambda n: cos(class_sum(n, -1), class_svm(n, -1)[0]),
    "cos_w_plus_w_minus": lambda n: cos(class_svm(n, 1)[0], class_svm(n, -1)[0]),
    "stable_rank": stable_rank,
    "mu": mu,
    "xi": lambda n: mu(n) ** 2,
    "X_min": lambda n: min(sizes(n)),
    "X_max": lambda n: max(sizes(n)),
    "R_x": lambda n: max(sizes(n)),
    "force_bound": lambda n: 2 * math.sqrt(mu(n)) * min(sizes(n)),
    "entry_time": entry,
    "smallest_product": lambda n: float(min(dot(u, v) for u in rows(n) for v in rows(n))),
    "sum_of_squared_cosines": widest_axis,
    "w_star": lambda n: unit(hard_margin(signed(n))[0]),
    "gamma_star": lambda n: 1 / norm(hard_margin(signed(n))[0]),
    "w_svm_norm": lambda n: norm(hard_margin(signed(n))[0]),
    "support": lambda n: [i for i, z in enumerate(signed(n)) if dot(hard_margin(signed(n))[0], z) == 1],
    "mu_vector": lambda n: [float(sum(c) / len(c)) for c in zip(*signed(n), strict=True)],
    "mu_norm": lambda n: norm([sum(c) / len(c) for c in zip(*signed(n), strict=True)]),
    "beta_crit_plus": lambda n: max(distance([*of_class(n, 1), x]) for x in of_class(n, -1)),
    "beta_crit_minus": lambda n: max(distance([*of_class(n, -1), x]) for x in of_class(n, 1)),
    "w_perp": lambda n: np.array([[0, -1], [1, 0]]) @ unit(hard_margin(signed(n))[0]),
}

# -- the formulas: SBG and LL, at a slope -----------------------------------------------------------


def mean(name: str, slope: float, side: str) -> np.ndarray:
    a = Fraction(repr(slope))
    Z = signed(name, negatives=a) if side == "plus" else signed(name, positives=a)
    return np.array([float(sum(c) / len(c)) for c in zip(*Z, strict=True)])


@cache
def plus_svm(name: str, slope: float) -> tuple[list[Fraction], list[Fraction]]:
    found = hard_margin(signed(name, negatives=Fraction(repr(slope))))
    assert found is not None
    return found


def two_groups(name: str, factors: list[tuple[Fraction, Fraction]]) -> tuple[np.ndarray, np.ndarray]:
    """Smallest (w, u) with y_i (f_i w.x_i - g_i u.x_i) >= 1 (SBG-T6.1q)."""
    pairs = zip(rows(name), labels(name), factors, strict=True)
    found = hard_margin([[*(s * f * v for v in x), *(-s * g * v for v in x)] for x, s, (f, g) in pairs])
    assert found is not None
    both = np.array([float(v) for v in found[0]])
    return both[: both.size // 2], both[both.size // 2 :]


@cache
def par(name: str, slope: float) -> tuple[np.ndarray, np.ndarray]:
    a, one = Fraction(repr(slope)), Fraction(1)
    return two_groups(name, [(one, a) if s > 0 else (a, one) for s in labels(name)])


def par_agreements(name: str, slope: float) -> np.ndarray:
    (w, u), data = par(name, slope), rf.example(name).data
    return np.minimum(data.signed @ unit(w), -data.signed @ unit(u))


def nar(name: str, slope: float) -> tuple[np.ndarray, np.ndarray]:
    a, known = Fraction(repr(slope)), rf.example(name).by_slope[slope].answers
    signs = zip(known["signs_w"], known["signs_u"], strict=True)
    return two_groups(name, [tuple(Fraction(1) if c > 0 else a for c in pair) for pair in signs])


def flat(pair: tuple[np.ndarray, np.ndarray]) -> float:
    return norm(np.concatenate(pair))


def a1(name: str, slope: float) -> tuple[float, float]:
    data, w = rf.example(name).data, unit(hard_margin(signed(name))[0])
    off = np.linalg.norm(data.X - np.outer(data.X @ w, w), axis=1)
    return off.mean() / (slope * data.signed.mean(0) @ w), (data.signed @ w).min() / off.max()


def a2(name: str, slope: float) -> list[float]:
    Z, a = signed(name), Fraction(repr(slope))
    return [float((sum(dot(z, v) for v in Z) - (1 - a) / a * sum(max(-dot(z, v), 0) for v in Z)) / len(Z)) for z in Z]


def corner(name: str, slope: float) -> dict[str, Any]:
    cot = float(rf.example(name).data.X[0, 1])
    beta = math.atan2(1, cot)
    P = math.sin(beta) ** 2 / (math.cos(beta) * (1 - slope))
    margin = (1 + slope) / (2 * (1 + 1 / math.cos(beta)))
    last = 1 - 2 * slope * P
    return {
        "cos_beta": math.cos(beta),
        "beta": beta,
        "cot_beta": cot,
        "P": P,
        "kkt_multipliers": [P, 0, P, 0, last, 0],
        "theta_squared": 1 / margin,
        "kkt_margin": margin,
    }


def hints(name: str, slope: float) -> dict[str, Any]:
    """The thresholds of LL-T6.2; the first three points are the hints, eps = 0.2, K = 1."""
    data, w = rf.example(name).data, unit(hard_margin(signed("D6-base"))[0])
    off, along = np.linalg.norm(data.X - np.outer(data.X @ w, w), axis=1), data.signed @ w
    scaled = [data.signed * np.where(data.y > 0, p, q)[:, None] for p, q in ((1, slope), (slope, 1))]
    eps = 0.2
    return {
        "eps_below": slope * along[3:].min(),
        "H_0": off.max() * off.sum() / (slope * along[1:].min()) - along[1:].sum(),
        "H_d": sum(norm(Z[1:].sum(0)) for Z in scaled) / (1 - slope),
        "K_threshold": eps * math.sqrt((3 + slope) / (1 - slope)),
        "bound_at_K": [[K, max(eps / 2, math.hypot((1 + slope) * eps, (1 - slope) * K) / 4)] for K in (0.6, 0.8, 1.0)],
    }


def global_margin(name: str, slope: float) -> float | None:
    """Where a formula gives it: LL-T4.2 on symmetric data, LL-TH.2 for ReLU on orthogonally separable data."""
    if rf.example(name).predicates.get("symmetric"):
        return (1 + slope) / 4 / norm(hard_margin(signed(name))[0])
    return limit(name)["corollary"] if slope == 0 else None


def at(find: Callable[[str, float], Mapping[str, Any]], *names: str) -> dict[str, Callable[[str, float], Any]]:
    return {key: lambda name, slope, key=key: find(name, slope)[key] for key in names}


SLOPED: dict[str, Callable[[str, float], Any]] = {
    **at(corner, "cos_beta", "beta", "cot_beta", "P", "theta_squared", "kkt_margin"),
    **at(hints, "eps_below", "H_0", "H_d", "K_threshold", "bound_at_K"),
    "kkt_multipliers": lambda n, a: (
        corner(n, a)["kkt_multipliers"] if n.startswith("D4") else [0, 0.5 / 0.2, 0.5 / 0.2, 0, 0, 0, 0]
    ),
    "lambda_0": lambda n, a: (1 + a) / 4 * PLAIN["mu_norm"](n),
    "mu_plus": lambda n, a: mean(n, a, "plus"),
    "mu_minus": lambda n, a: mean(n, a, "minus"),
    "mu_plus_norm": lambda n, a: norm(mean(n, a, "plus")),
    "mu_minus_norm": lambda n, a: norm(mean(n, a, "minus")),
    "kappa": lambda n, a: 1 - norm(mean(n, a, "minus")) / norm(mean(n, a, "plus")),
    "growth.exact": lambda n, a: [norm(mean(n, a, side)) / 2 for side in SIGN],
    "w_plus": lambda n, a: unit(plus_svm(n, a)[0]),
    "gamma_plus": lambda n, a: 1 / norm(plus_svm(n, a)[0]),
    "one_neuron_margin": lambda n, a: 0.5 / norm(plus_svm(n, a)[0]),
    "dual_plus": lambda n, a: [float(v / sum(plus_svm(n, a)[1])) for v in plus_svm(n, a)[1]],
    "A1_left": lambda n, a: a1(n, a)[0],
    "A1_right": lambda n, a: a1(n, a)[1],
    "A2_slack": a2,
    "A2_slack_min": lambda n, a: min(a2(n, a)),
    "par_w": lambda n, a: par(n, a)[0],
    "par_u": lambda n, a: par(n, a)[1],
    "par_norm": lambda n, a: flat(par(n, a)),
    "gamma_phi": lambda n, a: 1 / flat(par(n, a)),
    "alpha_R_x": lambda n, a: a * max(sizes(n)),
    "beta_par": lambda n, a: par_agreements(n, a).min(),
    "par_u_at_outlier": lambda n, a: rf.example(n).data.X[-1] @ par(n, a)[1],
    "par_limit.margin": lambda n, a: math.sqrt(0.5) / flat(par(n, a)),  # v = 1/sqrt(2k)
    "par_limit.w": lambda n, a: unit(par(n, a)[0]),
    "par_limit.u": lambda n, a: unit(par(n, a)[1]),
    "par_limit.norm_ratio": lambda n, a: norm(par(n, a)[0]) / norm(par(n, a)[1]),
    "par_limit.threshold": lambda n, a: math.sqrt(0.5) * a * max(sizes(n)),
    "nar_w": lambda n, a: nar(n, a)[0],
    "nar_u": lambda n, a: nar(n, a)[1],
    "nar_gamma": lambda n, a: 1 / flat(nar(n, a)),
    "nar_limit.margin": lambda n, a: math.sqrt(3) / flat(nar(n, a)),  # k = 3, v = 1
}

# Nested answers: tests/data/test_zoo_nested.py.
NESTED = {
    *("limit_function", "forces", "descent_step", "early", "cones", "sectors", "bounds", "repelled", "stuck", "touch"),
    *("leaving", "dead_degrees", "sliding", "phases", "two_neurons", "fitting", "sgd", "radius", "threshold"),
    *("mean_difference", "output", "lp_residual", "multiplier", "balanced", "kkt", "unique_solution"),
}
HERE = {"S_plus", "margin_ratio", "global_margin", "signs_w", "signs_u"}  # tests below


# -- predicates -------------------------------------------------------------------------------------


def is_os(name: str, strict: bool = False) -> bool:
    X, y = rows(name), labels(name)
    products = [(dot(X[i], X[j]), y[i] == y[j]) for i in range(len(X)) for j in range(len(X))]
    return all(v > 0 if same else (v < 0 if strict else v <= 0) for v, same in products)


def has_trivial_dead_cone(name: str) -> bool:
    """Whether the points of the plane span it positively: going round, no gap of 180 degrees or more."""
    angles = sorted(math.atan2(float(x[1]), float(x[0])) for x in rows(name))
    gaps = [b - a for a, b in itertools.pairwise([*angles, angles[0] + 2 * math.pi])]
    return max(gaps) < math.pi


def is_symmetric(name: str) -> bool:
    points = [(tuple(x), s) for x, s in zip(rows(name), labels(name), strict=True)]
    mirror = [(tuple(-v for v in x), -s) for x, s in points]
    return sorted(points) == sorted(mirror)


def spans(name: str, side: str) -> bool:
    return rank([rows(name)[i] for i in support(name, side)]) == len(rows(name)[0])


def general_position(name: str) -> bool:
    X = rows(name)
    return all(independent(S) for S in itertools.combinations(X, min(len(X), len(X[0]))))


def multipliers_positive(name: str) -> bool:
    return all(
        class_svm(name, SIGN[side])[1][[i for i, s in enumerate(labels(name)) if s == SIGN[side]].index(i)] > 0
        for side in SIGN
        for i in support(name, side)
    )


def misses_hyperplanes(name: str) -> bool:
    Z = signed(name)
    return all(sum(dot(v, z) for v in Z) != 0 for z in Z)


def par_consistent(name: str, slope: float) -> bool:
    return bool(par_agreements(name, slope).min() > 0)


def par_guaranteed(name: str, slope: float) -> bool:
    crit = max(PLAIN["beta_crit_plus"](name), PLAIN["beta_crit_minus"](name))
    large = 1 / flat(par(name, slope)) > slope * max(sizes(name))
    return bool(large and par_agreements(name, slope).min() > max(crit, 0))


def nar_consistent(name: str, slope: float) -> bool:
    known, X = rf.example(name).by_slope[slope].answers, rf.example(name).data.X
    groups = zip(nar(name, slope), (known["signs_w"], known["signs_u"]), strict=True)
    return all((signs * (X @ v) > 0).all() for v, signs in groups)


PLAIN_PREDICATES: dict[str, Callable[[str], bool]] = {
    "orthogonally_separable": is_os,
    "strictly_orthogonally_separable": lambda n: is_os(n, strict=True),
    "support_spans_plus": lambda n: spans(n, "plus"),
    "support_spans_minus": lambda n: spans(n, "minus"),
    "multipliers_positive": multipliers_positive,
    "general_position": general_position,
    "dead_cone_trivial": has_trivial_dead_cone,
    "separable": lambda n: hard_margin(signed(n)) is not None,
    "symmetric": is_symmetric,
    "LL-A4.5": misses_hyperplanes,
    # Coordinates of the axis in an orthonormal frame of admissible directions would have squares above 1 in sum.
    "inside_some_orthant": lambda n: widest_axis(n) <= 1,
}
SLOPED_PREDICATES: dict[str, Callable[[str, float], bool]] = {
    "LL-A.1": lambda n, a: a1(n, a)[0] < a1(n, a)[1],  # with w_star, which is enough
    "LL-A.2": lambda n, a: min(a2(n, a)) > 0,
    "LL-A.3": lambda n, a: norm(mean(n, a, "plus")) > norm(mean(n, a, "minus")) + 1e-12,
    "par_consistent": par_consistent,
    "par_guaranteed": par_guaranteed,
    "nar_consistent": nar_consistent,
}


@pytest.mark.parametrize(("name", "slope"), CASES)
def test_predicates(name: str, slope: float | None) -> None:
    for key, value in own(rf.example(name), slope).predicates.items():
        if key in PROGRAMS | NESTED:
            continue
        got = PLAIN_PREDICATES[key](name) if slope is None else SLOPED_PREDICATES[key](name, slope)
        assert bool(got) is value, key


# -- answers ----------------------------------------------------------------------------------------


def leaves(value: Any, path: str) -> list[str]:
    if isinstance(value, Mapping) and path.partition(".")[0] not in NESTED | set(UNCHECKED) | PROGRAMS:
        return [leaf for key, item in value.items() for leaf in leaves(item, f"{path}.{key}" if path else key)]
    return [path]


@pytest.mark.parametrize(("name", "slope"), CASES)
def test_answers(name: str, slope: float | None) -> None:
    ex = rf.example(name)
    for key in leaves(own(ex, slope).answers, ""):
        if key.partition(".")[0] in {*UNCHECKED, *PROGRAMS, *NESTED, *HERE} or key == "growth.fitted":
            continue
        got = PLAIN[key](name) if slope is None else SLOPED[key](name, slope)
        assert ex.agrees(key, got, slope, slack=1e-13), (key, got)


@pytest.mark.parametrize(("name", "slope"), [case for case in CASES if case[1] is not None])
def test_supports_and_optima(name: str, slope: float) -> None:
    ex, facts = rf.example(name), rf.example(name).by_slope[slope].answers
    if "S_plus" in facts:
        w = [float(v) for v in plus_svm(name, slope)[0]]
        scaled = np.array([[float(v) for v in z] for z in signed(name, negatives=Fraction(repr(slope)))])
        assert np.flatnonzero(scaled @ w < 1 + 1e-9).tolist() == facts["S_plus"].tolist()
    if "global_margin" in facts and (value := global_margin(name, slope)) is not None:
        assert ex.agrees("global_margin", value, slope)
    if "margin_ratio" in facts:
        assert ex.agrees("margin_ratio", facts["global_margin"] / facts["one_neuron_margin"], slope)


def test_nothing_is_unaccounted_for() -> None:
    names = {key for n in rf.examples() for s in each_slope(rf.example(n)) for key in own(rf.example(n), s).answers}
    names |= {key for n in rf.examples() for s in each_slope(rf.example(n)) for key in own(rf.example(n), s).predicates}
    checked = {key.partition(".")[0] for key in (*PLAIN, *SLOPED)} | set(PLAIN_PREDICATES) | set(SLOPED_PREDICATES)
    assert names <= checked | set(UNCHECKED) | PROGRAMS | NESTED | HERE


# -- D4: the network -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["D4", "D4-0", "D4-0.25", "D4-0.9"])
def test_three_neuron_network_is_kkt(name: str) -> None:
    ex = rf.example(name)
    (slope,), net, data = ex.slopes, ex.networks["kkt"], ex.data
    assert net.slope == slope
    np.testing.assert_allclose(net.margins(data), 1, rtol=1e-14)
    assert ex.agrees("kkt_margin", net.normalized_margin(data), slope)
    np.testing.assert_allclose(np.abs(net.a), np.linalg.norm(net.W, axis=1), rtol=1e-15)
    lam = np.array(corner(name, slope)["kkt_multipliers"])
    assert (lam >= 0).all()
    z = data.X @ net.W.T
    h = np.where(z > 1e-12, 1.0, slope)  # the kinks take the slope of the negative side
    force = (lam * data.y) @ (h[:, :, None] * data.X[:, None, :]).swapaxes(0, 1)
    np.testing.assert_allclose(net.a[:, None] * force, net.W, atol=2e-15)


@pytest.mark.parametrize("slope", [0.0, 1e-12, 0.1, 0.25, 0.5, 0.9, 1 - 1e-9])
def test_corner_angle_solves_its_equation(slope: float) -> None:
    b = math.atan2(1, rf.make("lyu_left", slope=slope).X[0, 1])
    # E-L9, written so that nothing cancels near slope 1: 1 - slope = 2 sin^2(b) + ... over the same denominator.
    s2 = math.sin(b) ** 2
    below = 2 * s2 + math.cos(b)
    assert (4 * s2 - 2 * math.sin(b / 2) ** 2) / below == pytest.approx(1 - slope, rel=1e-10)
