"""Statements of Min, Mallada and Vidal against worked values, brute force and random data."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.sectors import G_gradient, cones_of
from reluflow.theory import Facts, check, claim

EXAMPLES = ["EX1", "EX2", "EX3", "EX6", "EX6-0.001", "EX10"]


def facts_of(data, W=None, signs=None, log_scale=-40.0, **options) -> Facts:
    """ML normalisation by default: sum of exponential losses."""
    options = {"loss": "exponential", "reduction": "sum", **options}
    if W is None:  # along the own class sum: zeta_2 = 1
        net = rf.Network.balanced(np.stack([data.signed.sum(axis=0)] * 2), [1, 1], log_scale=log_scale)
        if data.negatives.size:
            net = rf.Network.balanced(
                np.stack([data.X[data.y > 0].sum(axis=0), data.X[data.y < 0].sum(axis=0)]), [1, -1], log_scale=log_scale
            )
    else:
        net = rf.Network.balanced(W, signs, log_scale=log_scale)
    return Facts(rf.Problem(data, net, **options))


def finding(facts, name):
    return next(f for f in check(facts) if f.claim == name)


def close(example, value, name):
    half = float(np.max(example.facts.half_units[name]))
    assert value == pytest.approx(float(example.answers[name]), rel=1e-13, abs=1.01 * half), name


@pytest.mark.parametrize("name", EXAMPLES)
def test_constants_of_the_examples(name):
    example = rf.example(name)
    facts = facts_of(example.data)
    assert finding(facts, "ML-A1").applies is True
    found = {
        **claim("ML-A1").bounds(facts),
        **claim("ML-L8").bounds(facts),
        **claim("ML-L9").bounds(facts),
        **claim("ML-T1a").bounds(facts),
        **claim("ML-T1a'").bounds(facts),
        **claim("ML-T1b").bounds(facts),
    }
    names = {
        "mu": "mu",
        "x_min": "X_min",
        "x_max": "X_max",
        "zeta_1_plus": "zeta_1_plus",
        "zeta_1_minus": "zeta_1_minus",
        "xi": "xi",
        "t_1": "t_1",
        "t_1 (with h)": "t_1_h",
        "t_1_sharp": "t_1_prime",
        "h": "h",
        "alpha_L": "alpha_L",
    }
    shared = [mine for mine, theirs in names.items() if theirs in example.answers]
    assert len(shared) >= 3
    for mine in shared:
        close(example, found[mine], names[mine])


def test_bounds_of_the_first_example():
    example = rf.example("EX1")
    answers, half = example.answers["bounds"], example.facts.half_units["bounds"]

    def same(value, name):
        assert value == pytest.approx(float(answers[name]), rel=1e-13, abs=1.01 * float(half[name])), name

    start = example.networks["start"]

    def at(log_eps):
        return Facts(rf.Problem(example.data, start.with_log_scale(log_eps), loss="exponential", reduction="sum"))

    facts = at(log(1e-3))
    same(claim("ML-A2").bounds(facts)["zeta_2"], "zeta_2")
    same(claim("ML-L9").bounds(facts)["c"], "c")
    same(exp(claim("ML-L3").bounds(facts)["log_largest_eps"]), "eps_max")
    eps = claim("ML-EPS").bounds(facts)
    same(exp(eps["log_eps_first"]), "eps_first")
    same(eps["log_eps_second"], "log_eps_second")
    same(eps["log_eps_second"] / log(10), "log10_eps_second")
    same(eps["output_bound"], "B")
    same(claim("ML-CERT").bounds(facts)["log_largest_total"], "log_certificate")
    for name, key in (("ML-DT", "dwell"), ("ML-DT'", "dwell_prime")):
        values = [claim(name).bounds(facts)[f"dwell with {k} active"] for k in (1, 2, 3, 4)]
        np.testing.assert_allclose(values, answers[key], rtol=0, atol=1.01 * np.max(half[key]))
    for row in answers["at_eps"]:
        facts = at(log(row["eps"]))
        small, error = claim("ML-L3").bounds(facts), claim("ML-L1").bounds(facts)
        assert small["T"] == pytest.approx(row["T"], abs=5.1e-10)
        assert exp(small["log_norm_squared (as printed)"]) == pytest.approx(row["w_squared"], rel=1e-12)
        assert exp(small["log_output (as printed)"]) == pytest.approx(row["f"], abs=5.1e-11)
        assert exp(error["log_speed_error (as printed)"]) == pytest.approx(row["direction_error"], rel=1e-12)
        assert small["log_output (sharp)"] == small["log_output (as printed)"] - log(2)
    same(exp(claim("ML-T1d").bounds(at(log(1e-4)))["log_addend (as printed)"]), "low_rank_addend")
    certified = at(eps["log_eps_second"])
    for name in ("t_2", "t_2_plus", "t_2_minus"):
        same(claim("ML-T1c").bounds(certified)[name], "t_2")
    assert finding(certified, "ML-T1c").applies is True
    # Only eps W_0 matters; over all splits the two terms together ask for eps^2 <= first * second.
    middle = (eps["log_eps_first"] + eps["log_eps_second"]) / 2
    assert finding(at(middle - 0.01), "ML-T1a").applies is True
    assert finding(at(middle + 0.01), "ML-T1a").applies is False


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(("loss", "reduction"), [("logistic", "sum"), ("logistic", "mean"), ("exponential", "mean")])
def test_times_follow_the_clock(name, loss, reduction):
    data = rf.example(name).data
    plain, other = facts_of(data), facts_of(data, loss=loss, reduction=reduction)
    factor = (2 if loss == "logistic" else 1) * (data.n if reduction == "mean" else 1)
    for key in ("ML-T1a", "ML-T1a'", "ML-T1c"):
        mine, theirs = claim(key).bounds(other), claim(key).bounds(plain)
        for k in mine:
            if k.startswith("t_"):
                assert mine[k] == pytest.approx(factor * theirs[k], rel=1e-12)
    assert claim("ML-L3").bounds(other)["T"] == pytest.approx(factor * claim("ML-L3").bounds(plain)["T"], rel=1e-12)
    # scale conditions and the rate of the loss do not depend on the clock
    for key in ("ML-CERT", "ML-T1b"):
        mine, theirs = claim(key).bounds(other), claim(key).bounds(plain)
        assert all(mine[k] == theirs[k] for k in mine if k not in ("t_1_sharp",))


def test_orders_in_mu():
    # ML-E5: with the best constants t_1 is of order mu^(-5/2), and t_1' of log(1/mu)/sqrt(mu).
    def at(delta):
        bounds = facts_of(rf.make("pair", delta=delta))
        return claim("ML-T1a").bounds(bounds)["t_1"], claim("ML-T1a'").bounds(bounds)["t_1_sharp"]

    (slow, sharp), (slower, sharper) = at(1e-3), at(1e-5)
    assert log(slower / slow) / log(100) == pytest.approx(2.5, abs=1e-5)
    expected = log(2 / 1e-5) / log(2 / 1e-3) * 10
    assert sharper / sharp == pytest.approx(expected, rel=1e-5)


def test_one_sample_uses_h_instead_of_log_n():
    # ML-E8: log n = 0 must not make the alignment time 0, nor the condition on eps vacuous.
    facts = facts_of(rf.Dataset([[1.0, 2.0]], [-1]), W=[[1.0, 0.1], [-1.0, 0.3]], signs=[1, -1], log_scale=-3.0)
    assert claim("ML-T1a").bounds(facts)["t_1"] > 0
    found = finding(facts, "ML-T1a")
    assert found.applies is False
    assert [c.name for c in found.failing] == ["eps small enough (as corrected)", "at least two samples"]
    printed = next(c for c in found.conditions if c.name == "eps small enough (as printed)")
    corrected = next(c for c in found.conditions if c.name == "eps small enough (as corrected)")
    assert printed.threshold > corrected.threshold
    assert finding(facts_of(rf.Dataset([[1.0, 2.0]], [-1]), [[1.0, 0.1]], [1], -999.0), "ML-T1a'").applies is True


def test_larger_zeta_is_only_shown():
    # ML-E3: with zeta the larger of the two the printed condition ignores a neuron close to its repelling ray.
    data = rf.example("EX1").data
    facts = facts_of(data, W=[[-4.0, -3.4]], signs=[1], log_scale=-2000.0)
    found = finding(facts, "ML-EPS")
    by_name = {c.name: c for c in found.conditions}
    assert by_name["eps small enough (as printed)"].holds is True
    assert by_name["eps small enough (as corrected)"].holds is False
    assert found.applies is False


def test_repelling_ray():
    example = rf.example("EX2")
    stuck = example.answers["stuck"]
    facts = facts_of(example.data, [[1.0, 0.5], 3 * np.array(stuck["w"], float)], [1, stuck["sign"]], -3000.0)
    found = finding(facts, "ML-A2")
    assert found.applies is False
    assert found.conditions[0].witness == 1
    for name in ("ML-T1a'", "ML-CERT", "PL-L1", "PL-T1'"):
        assert finding(facts, name).applies is False
    close_by = facts_of(example.data, [example.answers["repelled"]["w"]], [1], -3000.0)
    assert finding(close_by, "ML-A2").applies is True
    assert 0 < claim("ML-A2").bounds(close_by)["zeta_2"] < 1e-6


@pytest.mark.parametrize("name", ["EX1", "EX2", "EX3", "EX4", "EX5", "EX6", "EX9", "EX10"])
def test_cones_of_the_examples(name):
    example = rf.example(name)
    kinds = {"S_plus": "plus", "S_minus": "minus", "dead": "dead", "none": "none"}
    for key, vectors in example.answers["cones"].items():
        for kind in ("minus", "dead") if key == "S_minus_and_dead" else (kinds[key],):
            rows = np.array(vectors, float)
            facts = facts_of(example.data, np.where(rows.any(axis=1, keepdims=True), rows, 0), np.ones(len(rows)))
            assert getattr(facts.start_cones, kind).all()
    text = claim("ML-D1").prediction(facts_of(example.data)).text
    if "dead_cone_trivial" in example.predicates:
        assert ("No direction is dead" in text) is example.predicates["dead_cone_trivial"]


def strict_data(rng, d, n):
    while True:
        axis = rng.normal(size=d)
        y = rng.choice([-1.0, 1.0], n)
        X = y[:, None] * (axis / np.linalg.norm(axis) + rng.uniform(0.1, 1.0) * rng.normal(size=(n, d)) / sqrt(d))
        Z = X * y[:, None]
        if (Z @ Z.T).min() > 1e-6:
            return rf.Dataset(X * rng.uniform(0.5, 2, (n, 1)), y)


sizes = {"seed": st.integers(0, 2**32 - 1), "d": st.integers(2, 5), "n": st.integers(1, 7)}


@settings(deadline=None, max_examples=60)
@given(**sizes)
def test_driving_cone(seed, d, n):
    # ML-K, ML-L5, ML-L7
    rng = np.random.default_rng(seed)
    data = strict_data(rng, d, n)
    mu = claim("ML-K").bounds(facts_of(data, np.eye(d)[:1], [1]))["smallest_cosine"]
    k1, k2 = (rng.exponential(size=n) ** 3 @ data.signed for _ in range(2))
    assert k1 @ k2 >= mu * np.linalg.norm(k1) * np.linalg.norm(k2) * (1 - 1e-12)
    assert (data.signed @ k1 >= mu * data.norms * np.linalg.norm(k1) * (1 - 1e-12)).all()
    assert cones_of(data, k1).plus
    assert cones_of(data, -k1).minus


@settings(deadline=None, max_examples=60)
@given(**sizes)
def test_force_bound(seed, d, n):
    # ML-L11, both forms
    rng = np.random.default_rng(seed)
    data = strict_data(rng, d, n)
    bounds = claim("ML-L11").bounds(facts_of(data, np.eye(d)[:1], [1]))
    for w in rng.normal(size=(5, d)):
        active = int((data.X @ w > 0).sum())
        force = np.linalg.norm(G_gradient(data, w))
        if active:
            sharp = bounds[f"force with {active} active (sharp)"]
            assert force >= sharp * (1 - 1e-12)
            assert sharp >= bounds[f"force with {active} active"] * (1 - 1e-12)


def test_force_bound_of_the_example():
    example = rf.example("EX1")
    facts = facts_of(example.data)
    assert claim("ML-L11").bounds(facts)["force with 2 active"] == pytest.approx(
        example.answers["force_bound"], abs=5.1e-10
    )


@settings(deadline=None, max_examples=60)
@given(**sizes)
def test_caps_lie_in_the_cones(seed, d, n):
    # ML-L8: inside the open cap everything is in the cone; and beyond it, in the worst direction, nothing.
    rng = np.random.default_rng(seed)
    data = strict_data(rng, d, n)
    bounds = claim("ML-L8").bounds(facts_of(data, np.eye(d)[:1], [1]))
    for name, members, kind, sign in (
        ("zeta_1_plus", data.positives, "plus", 1),
        ("zeta_1_minus", data.negatives, "minus", -1),
    ):
        if not members.size:
            continue
        assert bounds[name] >= bounds["mu_squared"] * (1 - 1e-12)
        axis = data.X[members].sum(axis=0)
        axis /= np.linalg.norm(axis)
        tilt = np.arcsin(min(1.0, sqrt(bounds[name])))
        for v in rng.normal(size=(5, d)):
            v -= (v @ axis) * axis
            z = np.cos(0.999 * tilt) * axis + np.sin(0.999 * tilt) * v / np.linalg.norm(v)
            assert getattr(cones_of(data, z), kind)
        cosine = sign * (data.signed @ axis) / data.norms
        worst = sign * data.signed[np.argmin(cosine)]
        v = worst - (worst @ axis) * axis
        if np.linalg.norm(v) > 1e-6:
            z = np.cos(1.001 * tilt) * axis - np.sin(1.001 * tilt) * v / np.linalg.norm(v)
            assert not getattr(cones_of(data, z), kind)


@settings(deadline=None, max_examples=60)
@given(**sizes)
def test_gap_is_best_possible(seed, d, n):
    # ML-L9: no z outside both cones is closer to K, and the bound is reached in the limit.
    rng = np.random.default_rng(seed)
    data = strict_data(rng, d, n)
    facts = facts_of(data, np.eye(d)[:1], [1])
    xi = claim("ML-L9").bounds(facts)["xi"]
    for z in rng.normal(size=(10, d)):
        cones = cones_of(data, z)
        k = rng.exponential(size=n) ** 3 @ data.signed
        if not (cones.plus or cones.minus):
            assert abs(k @ z) <= sqrt(1 - xi) * np.linalg.norm(k) * np.linalg.norm(z) * (1 + 1e-12)
    i, j = facts.constants.pair
    if i != j and xi < 0.999:
        k = data.signed[j] / data.norms[j]
        normal = data.signed[i] / data.norms[i]
        z = k - (k @ normal) * normal
        z /= np.linalg.norm(z)
        z = z - 1e-7 * normal  # just outside
        assert not cones_of(data, z).plus
        assert k @ z / np.linalg.norm(z) >= sqrt(1 - xi) - 1e-6


def test_probability_of_a_neuron_in_its_cone():
    # ML-P1 over many draws of the direction alone (the early phase is exact, so no run is needed)
    data, draws = rf.example("EX2").data, 400
    for m in (1, 3):
        hits = 0
        for seed in range(draws):
            net = rf.initialize(2, width=m, seed=seed, signs=np.ones(m), log_scale=-5000)
            facts = Facts(rf.Problem(data, net))
            hits += facts.groups.plus.size > 0
        bound = claim("ML-P1").bounds(facts)["probability_plus"]
        assert bound == 1 - 2.0**-m
        # three standard deviations of the frequency at the bound
        assert hits / draws >= bound - 3 * sqrt(bound * (1 - bound) / draws)
        assert hits < draws


# -- the decision table -----------------------------------------------------------------------------------

LIMITS = ("PL-T1'", "PL-C1")
CERTIFIED = ("ML-T1a'", "ML-CERT", "ML-DT'")
AFTER = ("ML-POSTA", "ML-L12", "ML-L14", "ML-L15", "ML-POST")
EXACT = ("PL-L2", "PL-L3", "PL-LB1")


def verdicts(problem, names):
    found = {f.claim: f for f in check(problem)}
    return {found[name].applies for name in names}


def start(data, log_scale, **options):
    return rf.Problem(data, rf.initialize(data.d, width=24, log_scale=log_scale, seed=2), **options)


def test_decision_not_orthogonally_separable():
    data = rf.example("EX9").data
    assert verdicts(start(data, -9999.0), (*LIMITS, *CERTIFIED, *AFTER, *EXACT, "PL-T1", "PL-L1", "ML-T1a")) == {False}


@pytest.mark.parametrize("name", ["EX4", "EX5"])
def test_decision_an_orthogonal_pair_across(name):
    problem = start(rf.example(name).data, -9999.0)
    assert verdicts(problem, EXACT) == {True}
    assert verdicts(problem, (*CERTIFIED, *AFTER)) == {False}
    found = next(f for f in check(problem) if f.claim == "PL-T1'")
    assert "start small enough" in found.needs  # there is no certificate without mu > 0


@pytest.mark.parametrize("name", ["EX1", "EX2", "EX3"])
def test_decision_strict_and_certified(name):
    problem = start(rf.example(name).data, -99999.0)
    assert verdicts(problem, (*LIMITS, *CERTIFIED, *AFTER, *EXACT)) == {True}
    for found in check(problem):
        if found.claim in (*CERTIFIED, "PL-T1'", "ML-T1b", "ML-T1d"):
            assert found.needs == ()


@pytest.mark.parametrize("name", ["EX1", "EX2", "EX3"])
def test_decision_strict_but_too_large(name):
    problem = start(rf.example(name).data, 0.0)
    assert verdicts(problem, CERTIFIED) == {False}
    assert verdicts(problem, (*AFTER, *EXACT)) == {True}


def test_decision_unbalanced():
    data = rf.example("EX1").data
    problem = rf.Problem(data, rf.initialize(2, width=6, scheme="gaussian", log_scale=-9999.0, seed=2))
    assert verdicts(problem, (*LIMITS, *CERTIFIED, *AFTER, "PL-L3", "PL-LB1", "C-INV3")) == {False}
    assert verdicts(problem, ("C-INV1", "C-INV2", "PL-L2", "ML-E50")) == {True}


def test_decision_single_class():
    data = rf.example("EX6").data
    alive = rf.Problem(data, rf.Network.balanced([[1.0, 0.2], [-1.0, 0.1]], [1, -1], log_scale=-9999.0))
    assert verdicts(alive, (*CERTIFIED, *AFTER, *LIMITS)) == {True}
    dead = rf.Problem(data, rf.Network.balanced([[-1.0, -0.2], [1.0, 0.1]], [1, -1], log_scale=-9999.0))
    assert verdicts(dead, LIMITS) == {False}
    assert Facts(dead).groups.minus.size == 0  # negative neurons can only die


def test_decision_leaky():
    data = rf.example("EX1").data
    net = rf.initialize(2, width=6, log_scale=-9999.0, seed=2, slope=0.3)
    problem = rf.Problem(data, net)
    assert verdicts(problem, (*LIMITS, *CERTIFIED, *AFTER, *EXACT)) == {False}
    assert verdicts(problem, ("ML-L1", "ML-L3", "ML-L4", "C-INV1", "C-INV2", "C-INV3")) == {True}


def test_frozen_second_layer():
    data = rf.example("EX1").data
    problem = rf.Problem(data, rf.initialize(2, width=6, scheme="two-sign", seed=1), train="first")
    names = (*LIMITS, *CERTIFIED, *AFTER, "PL-L3", "PL-LB1", "C-INV1", "C-INV2", "C-INV3", "ML-L1", "ML-L3", "ML-L4")
    assert verdicts(problem, (*names, "ML-E50")) == {False}


@pytest.mark.parametrize("scale", [30.0, 100.0])
def test_a_start_whose_loss_no_double_holds(scale):
    # Warnings are errors here: the rate of ML-E50 is inf, and says so without one.
    problem = rf.Problem(
        rf.example("EX1").data, rf.initialize(2, 4, "balanced", scale, seed=1, slope=0.1), loss="exponential"
    )
    assert claim("ML-E50").bounds(Facts(problem))["log_growth_rate"] == np.inf


def test_the_split_of_the_start_does_not_matter():
    # eps W_0 with all the smallness in W_0: the same verdicts as with eps.
    data = rf.example("EX1").data
    W = rf.example("EX1").networks["start"].W
    small = rf.Network.balanced(W, [1, 1, -1, -1], log_scale=-2000.0)
    same = rf.Network.balanced(W * 1e-100, [1, 1, -1, -1], log_scale=-2000.0 + 100 * log(10))
    odd = rf.Network.balanced(W, [1, 1, -1, -1], log_scale=np.full(4, -2000.0))
    options = {"loss": "exponential", "reduction": "sum"}
    tables = [{f.claim: f.applies for f in check(rf.Problem(data, net, **options))} for net in (small, same, odd)]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0]["ML-T1a"] is True
