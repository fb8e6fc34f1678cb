"""The nested answers of the zoo, computed again: cones, the early phase, bounds, single networks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import reluflow as rf
from reluflow.data import Example

WITH = {
    key: [n for n in rf.examples() if key in rf.example(n).answers]
    for key in ("cones", "sectors", "early", "limit_function")
}


def exact(v: Any) -> list[Fraction]:
    return [Fraction(repr(float(c))) for c in v]


def sector(ex: Example, w: Any) -> list[int]:
    products = [sum(a * b for a, b in zip(exact(x), exact(w), strict=True)) for x in ex.data.X]
    return [(p > 0) - (p < 0) for p in products]


@pytest.mark.parametrize("name", WITH["cones"])
def test_cones(name: str) -> None:
    ex = rf.example(name)
    for cone, vectors in ex.answers["cones"].items():
        for z in vectors:
            on = [s > 0 for s in sector(ex, z)]
            found = {
                "S_plus": on == (ex.data.y > 0).tolist(),
                "S_minus": on == (ex.data.y < 0).tolist(),
                "dead": not any(on),
            }
            expected = {"S_plus": cone == "S_plus", "S_minus": "S_minus" in cone, "dead": "dead" in cone}
            if (ex.data.y > 0).all() and cone != "S_minus_and_dead":
                expected["S_minus"] = expected["dead"]  # one class alone: the two cones are the same (ML-D1)
            if (ex.data.y < 0).all():
                expected["S_plus"] = expected["dead"]
            assert found == expected, z


@pytest.mark.parametrize("name", WITH["sectors"])
def test_sectors(name: str) -> None:
    ex = rf.example(name)
    known = ex.answers["sectors"]
    assert [sector(ex, w) for w in known["w"]] == known["sector"].tolist()


def test_dead_directions() -> None:
    ex = rf.example("ML-F6")
    first, last = ex.answers["dead_degrees"]
    for degrees, dead in ((first - 0.01, False), (first + 0.01, True), (last - 0.01, True), (last + 0.01, False)):
        angle = math.radians(degrees)
        assert (ex.data.X @ [math.cos(angle), math.sin(angle)] <= 0).all() == dead


@pytest.mark.parametrize("name", WITH["limit_function"])
def test_limit_function(name: str) -> None:
    ex = rf.example(name)
    for k, at in enumerate(ex.answers["limit_function"]):
        up, down = (max(float(ex.answers[key] @ at["x"]), 0) for key in ("w_plus", "w_minus"))
        scale = 1 / (2 * (math.sqrt(2) / 3 + 5 / 13))  # PL-C1 with the exact norms of the two vectors
        assert ex.agrees(f"limit_function.{k}.value", scale * (up - down))


def test_forces() -> None:
    ex = rf.example("EX1")
    for k, known in enumerate(ex.answers["forces"]):
        active = np.flatnonzero(ex.data.X @ known["w"] > 0)
        assert active.tolist() == known["active"].tolist()
        force = ex.data.signed[active].sum(0)
        assert ex.agrees(f"forces.{k}.x_a", force)
        assert ex.agrees(f"forces.{k}.norm", np.linalg.norm(force))


def test_step_that_lowers_g() -> None:
    ex = rf.example("EX1")
    known, X, y = ex.answers["descent_step"], ex.data.X, ex.data.y

    def G(v: np.ndarray) -> float:
        return float(y @ np.maximum(X @ v, 0)) / 2 / float(np.linalg.norm(v))

    angle = math.radians(known["degrees"])
    w = np.array([math.cos(angle), math.sin(angle)])
    v = y[known["sample"]] * X[known["sample"]] / ex.data.norms[known["sample"]]
    assert ex.agrees("descent_step.change", (G(w + 1e-7 * v) - G(w - 1e-7 * v)) / 2e-7)


# -- the early phase --------------------------------------------------------------------------------


def early(ex: Example, sign: int, w: Any) -> tuple[list[list[int]], list[float], float, np.ndarray]:
    """Active sets, event times, log gain and final vector of one neuron at scale zero, unit force.

    In the clock d sigma = |w| dt the vector moves along a straight line between events.
    """
    X, y = ex.data.X, ex.data.y
    w = np.array(w, dtype=float)
    start, t, times = np.linalg.norm(w), 0.0, []
    on = X @ w > 0
    sets = [np.flatnonzero(on).tolist()]
    just = -1
    while on.any():
        c = sign * (y[on] @ X[on])
        z, r = X @ w, X @ c
        with np.errstate(divide="ignore", invalid="ignore"):
            hit = np.where(np.where(on, r < 0, r > 0), -z / r, np.inf)
        if just >= 0:
            hit[just] = np.inf
        just = int(np.argmin(hit))
        if hit[just] == np.inf:
            break
        ww, wc, cc = w @ w, w @ c, c @ c
        D = math.sqrt(max(ww * cc - wc * wc, 0))
        t += (math.asinh((cc * hit[just] + wc) / D) - math.asinh(wc / D)) / math.sqrt(cc)
        w = w + hit[just] * c
        on[just] = not on[just]
        times.append(t)
        sets.append(np.flatnonzero(on).tolist())
    return sets, times, math.log(np.linalg.norm(w) / start), w


@pytest.mark.parametrize("name", WITH["early"])
def test_early_phase(name: str) -> None:
    ex = rf.example(name)
    for k, known in enumerate(ex.answers["early"]):
        sets, times, gain, w = early(ex, known["sign"], known["w"])
        assert sets == [a.tolist() for a in known["active"]]
        assert ex.agrees(f"early.{k}.times", times)
        if "log_gain" in known:
            assert ex.agrees(f"early.{k}.log_gain", gain)
        if "direction" in known:
            assert ex.agrees(f"early.{k}.direction", w / np.linalg.norm(w))


def test_near_the_repelling_ray_and_on_it() -> None:
    ex = rf.example("EX2")
    known = ex.answers["repelled"]
    sets, times, _, _ = early(ex, known["sign"], known["w"])
    assert (sets[0], sets[-1]) == ([2], [0, 1])
    assert ex.agrees("repelled.leaves", times[0])
    assert ex.agrees("repelled.arrives", times[-1])
    # Exactly on the ray of the negative sum a positive neuron is pushed straight back.
    stuck = ex.answers["stuck"]
    assert stuck["sign"] == 1
    assert np.array_equal(stuck["w"], ex.answers["x_minus"])


def test_touch_and_stay() -> None:
    ex = rf.example("EX5")
    known = ex.answers["touch"]
    sets, times, _, _ = early(ex, known["sign"], known["w"])
    assert sets == [[0, 1], [0]]
    assert ex.agrees("touch.time", times[0])
    assert ex.agrees("touch.time_logistic", 2 * times[0])


def test_sliding() -> None:
    ex = rf.example("ALG-EARLY")
    known, X = ex.answers["sliding"], ex.data.X
    sets, times, _, _ = early(ex, known["sign"], known["w"])
    assert sets[0] == known["active"].tolist()
    assert ex.agrees("sliding.time", times[0])
    k, force = known["sample"], X[0]
    assert force @ X[k] > 0 > (force - X[k]) @ X[k]  # pushed on from one side, back from the other
    h = (force @ X[k]) / (X[k] @ X[k])
    assert ex.agrees("sliding.h", h)
    assert ex.agrees("sliding.z", force - h * X[k])


@pytest.mark.parametrize("name", ["EX-E3", "EX-E4"])
def test_start_on_a_hyperplane(name: str) -> None:
    ex = rf.example(name)
    net, x, y = ex.networks["start"], ex.data.X[0], ex.data.y[0]
    assert net.W[0] @ x == 0
    assert abs(net.a[0]) == np.linalg.norm(net.W[0])
    # On the active side the product moves with sign a y: away from the hyperplane means it may leave or stay.
    assert bool(net.a[0] * y < 0) is ex.predicates["unique_solution"]


def test_leaving() -> None:
    ex = rf.example("EX-E4")
    force = {"exp": lambda q: np.exp(-q), "logistic": lambda q: 1 / (1 + np.exp(q))}
    force["logistic2"] = lambda q: 2 / (1 + np.exp(q))
    for k, known in enumerate(ex.answers["leaving"]):
        g = force[known["loss"]]
        run = solve_ivp(lambda _, s, g=g: g(np.sinh(2 * s) / 2), (0, known["time"]), [0.0], rtol=1e-12, atol=1e-13)
        s = float(run.y[0, -1])
        assert ex.agrees(f"leaving.{k}.s", s)
        if "a" in known:
            assert ex.agrees(f"leaving.{k}.a", math.cosh(s))
            assert ex.agrees(f"leaving.{k}.w_1", math.sinh(s))


# -- bounds of EX1 ----------------------------------------------------------------------------------


def test_bounds() -> None:
    ex = rf.example("EX1")
    net, data, n = ex.networks["start"], ex.data, 4
    sizes, p = np.linalg.norm(net.W, axis=1), net.p
    cosines = data.signed @ data.signed.T / np.outer(data.norms, data.norms)
    m, small, large = cosines.min(), data.norms.min(), data.norms.max()
    w_max, root = sizes.max(), math.sqrt(p)
    c0 = max(
        0.0,
        *(
            float(w @ total / np.linalg.norm(w) / np.linalg.norm(total))
            for w, a in zip(net.W, net.a, strict=True)
            for total in [data.X[data.y != np.sign(a)].sum(0)]
        ),
    )
    c = min(1 - c0**2, m**2)
    t1 = 16 * math.log(n) / (c * math.sqrt(m) * small)
    t1_prime = 4 * 3 * math.log((1 + math.sqrt(1 - c)) / math.sqrt(c)) / (math.sqrt(m) * small)
    log_eps = -math.log(p) / 2 - 4 * n * large * t1
    B = c * math.sqrt(m) * small / (4 * n * large)
    rate = 1 / (math.sqrt(m) * 2 * small)  # two samples in either class
    got = {
        "W_max": w_max,
        "W_min": sizes.min(),
        "zeta_2": 1 - c0**2,
        "c": c,
        "eps_max": 1 / (4 * root * large * w_max**2),
        "eps_first": c * math.sqrt(m) * small / (4 * root * n * large**2 * w_max**2),
        "log_eps_second": log_eps,
        "log10_eps_second": log_eps / math.log(10),
        "dwell": [4 / (c * math.sqrt(m) * small * k) for k in (1, 2, 3, 4)],
        "dwell_prime": [4 * math.atanh(math.sqrt(1 - c)) / (math.sqrt(m) * small * k) for k in (1, 2, 3, 4)],
        "B": B,
        "sum_norms": data.norms.sum(),
        "log_certificate": math.log(B / large) - 2 * (1 + 2 * B) * data.norms.sum() * t1_prime,
        "t_2": t1
        + 6 * rate
        + 4 * rate * (math.log(2 / (math.sqrt(m) * small * sizes.min() ** 2)) - 2 * log_eps + 4 * n * large * t1),
        "low_rank_addend": 4 * root * 1e-4 * w_max**2,
    }
    assert set(got) | {"at_eps"} == set(ex.answers["bounds"])
    for key, value in got.items():
        assert ex.agrees(f"bounds.{key}", value, slack=1e-13), (key, value)
    for k, known in enumerate(ex.answers["bounds"]["at_eps"]):
        eps = known["eps"]
        assert ex.agrees(f"bounds.at_eps.{k}.T", math.log(1 / (root * eps)) / (4 * n * large))
        assert ex.agrees(f"bounds.at_eps.{k}.w_squared", 2 * eps * w_max**2 / root)
        assert ex.agrees(f"bounds.at_eps.{k}.f", 2 * eps * root * large * w_max**2)
        assert ex.agrees(f"bounds.at_eps.{k}.direction_error", 4 * eps * n * root * large**2 * w_max**2)


# -- single networks --------------------------------------------------------------------------------


def test_phases() -> None:
    ex = rf.example("D1")
    net, data, known = ex.networks["draw"], ex.data, ex.by_slope[0.5].answers["phases"]
    mu = data.signed.mean(0)
    rate, m = 0.375 * np.linalg.norm(mu), mu / np.linalg.norm(mu)
    size = max(np.linalg.norm(net.W, axis=1).max(), np.abs(net.a).max())
    b = (net.W @ m + net.a) / (2 * math.sqrt(net.p) * size)
    plus, minus = math.sqrt((b[b > 0] ** 2).sum()), -math.sqrt((b[b < 0] ** 2).sum())
    clear = min(np.abs(data.X @ m)) * min(plus, -minus) / max(plus, -minus)
    got = {
        "M_norm": size,
        "b": b,
        "b_plus": plus,
        "b_minus": minus,
        "T_1": math.log(known["r"] ** -2) / rate,
        "T_12": -math.log(math.sqrt(net.p) * known["sigma"] * size) / rate,
        "t_0": math.log(rate * clear / (16 * 2 * plus**2)) / (2 * rate),
    }
    assert set(got) | {"r", "sigma"} == set(known)
    for key, value in got.items():
        assert ex.agrees(f"phases.{key}", value, 0.5), (key, value)


def flow(data: rf.Dataset, net: rf.Network, time: float, stop: float | None = None) -> Any:
    """The flow of the mean logistic loss of two neurons; small steps take care of the kinks."""
    p, d = net.p, net.d

    def split(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return theta[: p * d].reshape(p, d), theta[p * d :]

    def margins(theta: np.ndarray) -> np.ndarray:
        W, a = split(theta)
        z = data.X @ W.T
        return np.asarray(data.y * (np.where(z > 0, z, net.slope * z) @ a))

    def velocity(_: float, theta: np.ndarray) -> np.ndarray:
        W, a = split(theta)
        z = data.X @ W.T
        h = np.where(z > 0, 1.0, net.slope)
        force = data.y / (1 + np.exp(margins(theta))) / data.n
        return np.concatenate([(a[:, None] * ((force[:, None] * h).T @ data.X)).ravel(), force @ (h * z)])

    def fitted(_: float, theta: np.ndarray) -> float:
        return float(np.log1p(np.exp(-margins(theta))).mean()) - (stop or 0)

    fitted.terminal = True  # type: ignore[attr-defined]
    start = np.concatenate([net.W.ravel(), net.a])
    events = None if stop is None else fitted
    return solve_ivp(velocity, (0, time), start, rtol=1e-9, atol=1e-12, max_step=0.5, events=events)


def test_two_neuron_limit_curve() -> None:
    ex = rf.example("D1")
    facts = ex.by_slope[0.5].answers
    mu = ex.data.signed.mean(0)
    m, rate, r = mu / np.linalg.norm(mu), 0.375 * float(np.linalg.norm(mu)), 1e-4
    b = np.array([facts["phases"]["b_plus"], facts["phases"]["b_minus"]])
    run = flow(ex.data, rf.Network(r * np.outer(b, m), r * b, 0.5), math.log(1 / r) / rate)
    assert ex.agrees("two_neurons.W", run.y[:4, -1].reshape(2, 2), 0.5, slack=1e-7)
    assert ex.agrees("two_neurons.a", run.y[4:, -1], 0.5, slack=1e-7)


def test_time_to_fit() -> None:
    ex = rf.example("D1")
    net, data, w_star = ex.networks["start"], ex.data, np.array([5, 1]) / math.sqrt(26)
    margin = (data.signed @ w_star).min()
    c = (net.W @ w_star) ** 2 - (net.W**2).sum(1) + net.a**2
    loss = np.log1p(np.exp(-net.margins(data))).mean()
    level = math.log(2) / data.n
    assert ex.agrees("fitting.c", c, 0.5)
    assert ex.agrees("fitting.loss", loss, 0.5)
    assert ex.agrees("fitting.bounds", (loss - level) * (2 * data.n / (0.5 * margin)) ** 2 / c, 0.5)
    assert ex.agrees("fitting.flow_time", flow(data, net, 30, stop=level).t[-1], 0.5)


def test_sgd_constants() -> None:
    ex = rf.example("D2")
    n, eps, a, R0, k, eta, v = 5, 0.1, 0.25, 0.01, 5, 0.1, math.sqrt(0.1)
    w = np.linalg.norm(np.linalg.solve(ex.data.signed[[1, 2]], [1, 1]))  # the two supports span the plane
    R2 = (ex.data.norms**2).max()
    A = 1 + (1 + 2 * v**2 * R2 * eta * k * n) / eps
    C1 = R2 / a**2 + 1 / (k * eta * v**2 * a**2)
    C2 = math.sqrt(R0 * (8 * k**2 * eta**2 * v**2 * R2 + 8 * k * eta)) / (2 * k * (eta * v * a) ** 1.5)
    C3 = 2 * R0 / (eta * v * a)
    assert ex.agrees("sgd.C1", C1, 0.25, slack=1e-13)
    assert ex.agrees("sgd.C2", C2, 0.25, slack=1e-13)
    assert ex.agrees("sgd.C3", C3, 0.25, slack=1e-13)
    M = C1 * (w * n * A) ** 2 + C2 * (w * n * A) ** 1.5 + C3 * w * n * A + n
    assert ex.agrees("sgd.M", M, 0.25, slack=1e-13)


def test_sharp_constant() -> None:
    ex = rf.example("SBG-T5.1s")
    net, x = ex.networks["tight"], ex.data.X[0]
    w, u = net.W[:2], net.W[2:]
    assert ex.agrees("radius", max(np.linalg.norm(g - g.mean(0), axis=1).max() for g in (w, u)), 0.25)
    assert ex.agrees("threshold", (1 - net.slope) / (1 + net.slope), 0.25)
    assert ex.agrees("mean_difference", (w.mean(0) - u.mean(0)) @ x, 0.25)
    assert ex.agrees("output", net.outputs([x])[0], 0.25)


def test_unbalanced_stationary_network() -> None:
    ex = rf.example("C-KKT")
    net = ex.networks["unbalanced"]
    assert net.margins(ex.data).tolist() == [1.0]
    assert ex.agrees("lp_residual", net.W[0, 0] - net.a[0] * ex.answers["multiplier"])
    assert bool(abs(net.a[0]) == abs(net.W[0, 0])) is ex.predicates["balanced"]
    # The second condition, a = multiplier * w, fails: no KKT point.
    assert bool(net.a[0] == ex.answers["multiplier"] * net.W[0, 0]) is ex.predicates["kkt"]
