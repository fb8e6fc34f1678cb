"""Statements of Phuong and Lampert against worked values, second methods and random data."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.sectors import G, linear_until, sector
from reluflow.theory import Facts, check, claim, predict

EXAMPLES = ["EX1", "EX2", "EX3", "EX4", "EX5", "EX6", "EX6-0.001", "EX7", "EX8", "EX9", "EX10", "ML-F6", "PL-E1"]


def problem(data: rf.Dataset, log_scale: float = -40.0, **options) -> rf.Problem:
    options = {"loss": "logistic", "reduction": "sum", **options}
    return rf.Problem(data, rf.initialize(data.d, width=12, log_scale=log_scale, seed=3), **options)


def finding(data, name, **options):
    return next(f for f in check(problem(data, **options)) if f.claim == name)


def condition(found, name):
    return next(c for c in found.conditions if c.name == name)


def compare(example, found: dict, names: dict) -> int:
    """Compare named values with the worked ones, to the digits those are given with."""
    count = 0
    for mine, theirs in names.items():
        if theirs in example.answers:
            half = float(np.max(example.facts.half_units[theirs]))
            assert found[mine] == pytest.approx(float(example.answers[theirs]), rel=1e-13, abs=1.01 * half), (
                mine,
                theirs,
            )
            count += 1
    return count


@pytest.mark.parametrize("name", EXAMPLES)
def test_separability_of_the_examples(name):
    example = rf.example(name)
    found = finding(example.data, "PL-D1")
    assert found.applies is example.predicates["orthogonally_separable"]
    strict = condition(found, "orthogonally separable, strictly (mu > 0)")
    if "strictly_orthogonally_separable" in example.predicates:
        assert strict.holds is example.predicates["strictly_orthogonally_separable"]
    assert {c.evidence for c in found.conditions} == {"proved"}
    if not found.applies:
        i, j = found.failing[0].witness
        product = example.data.X[i] @ example.data.X[j]
        assert (product <= 0) if example.data.y[i] == example.data.y[j] else (product > 0)


def test_ties_are_decided_exactly():
    # As doubles 0.1 * 3 - 0.3 is not 0: the pair is a hair on the wrong side, or on the right one.
    wrong = rf.Dataset([[0.1, 0.3], [3.0, -1.0]], [1, -1])
    right = rf.Dataset([[0.1, 0.3], [3.0, -1.0 - 2e-15]], [1, -1])
    tie = rf.Dataset([[0.5, 1.5], [3.0, -1.0]], [1, -1])
    assert [finding(data, "PL-D1").applies for data in (wrong, right, tie)] == [False, True, True]
    assert finding(tie, "ML-A1").applies is False


@pytest.mark.parametrize("bad", [None, 0, 1, 777])
def test_large_data_are_looked_at_completely(bad):
    # 1500 points around an axis, and at most one in the wrong place: in the part looked at first, or outside it.
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 1500)
    X = y[:, None] * (np.array([1.0, 0.0, 0.0]) + 0.2 * rng.uniform(-1, 1, (1500, 3)))
    if bad is not None:
        X[bad] = -X[bad]
    found = finding(rf.Dataset(X, y), "PL-D1")
    assert found.applies is (bad is None)
    if bad is not None:
        i, j = found.failing[0].witness
        assert bad in (i, j)
        assert (X[i] @ X[j]) * y[i] * y[j] < 0


def test_five_vectors_in_no_orthant():
    # PL-E1: orthogonally separable, though no rotation brings them into an orthant; never test through orthants.
    example = rf.example("PL-E1")
    found = finding(example.data, "PL-D1")
    assert found.applies is True
    mu = condition(found, "orthogonally separable").value
    assert mu == pytest.approx(0.1270583941, abs=5e-11)
    beta = np.arctan(1 / (np.tan(np.radians(44)) * np.cos(np.radians(36))))
    assert 3 * np.cos(beta) ** 2 == pytest.approx(1.1371, abs=5e-5)


@pytest.mark.parametrize("name", ["EX1", "EX2", "EX3", "EX4", "EX6", "EX8", "ML-F6"])
def test_limits_of_the_examples(name):
    example = rf.example(name)
    facts = Facts(problem(example.data))
    margins = claim("PL-D2").bounds(facts)
    limits = claim("PL-T1'").bounds(facts)
    names = {
        "w_plus_norm": "w_plus_norm",
        "w_minus_norm": "w_minus_norm",
        "gamma_plus": "gamma_plus",
        "gamma_minus": "gamma_minus",
        "cos_w_plus_w_minus": "cos_w_plus_w_minus",
    }
    count = compare(example, margins, names)
    names = {key: key for key in ("share_plus", "u_squared", "z_squared", "stable_rank")}
    count += compare(example, limits, {**names, "margin": "corollary"})
    value = {"kkt_value": limits["loss_times_t_log_t"] * 2}
    count += compare(example, value, {"kkt_value": "kkt_value"})
    assert count
    for answer in example.answers.get("limit_function", ()):
        function = next(p for p in predict(facts) if p.claim == "PL-C1").function
        assert function([answer["x"]])[0] == pytest.approx(answer["value"], abs=5.1e-11)


@pytest.mark.parametrize("name", ["EX1", "EX4"])
def test_extremal_values_of_the_examples(name):
    example = rf.example(name)
    facts = Facts(problem(example.data))
    assert compare(example, claim("PL-L2'").bounds(facts), {"G_plus": "G_plus", "G_minus": "G_minus"}) == 2
    text = claim("PL-L2").prediction(facts).text
    assert str(list(map(int, example.answers["sigma_plus"]))) in text
    assert str(list(map(int, example.answers["sigma_minus"]))) in text


def test_a_missing_class_has_no_extremal_sector():
    text = claim("PL-L2").prediction(Facts(problem(rf.example("EX6").data))).text
    assert "no negative one" in text
    assert "[1, 1]" in text


def test_premises_one_by_one():
    names = (
        "support examples of each class span",
        "positive multipliers on the support",
        "samples in general position",
    )
    table = {
        "EX1": (True, True, True),
        "EX2": (False, True, True),
        "EX3": (True, True, True),
        "EX4": (False, False, False),  # x_2 and x_3 with x_1: three points of a plane
        "EX7": (True, False, False),  # (1, 2) and (-1, -2)
        "EX8": (False, True, True),
    }
    for name, expected in table.items():
        found = finding(rf.example(name).data, "PL-A")
        assert tuple(condition(found, c).holds for c in names) == expected, name
        assert "start small enough" in found.needs
        assert "generic data and start" in found.needs
    assert finding(rf.example("EX1").data, "PL-T1").applies is True
    assert finding(rf.example("EX8").data, "PL-T1").applies is False
    assert finding(rf.example("EX8").data, "PL-T1'").applies is True  # no spanning needed
    assert finding(rf.example("EX1").data, "PL-T1", loss="exponential").applies is False
    assert finding(rf.example("EX1").data, "PL-T1'", loss="exponential").applies is True
    assert finding(rf.example("EX9").data, "PL-T1'").applies is False


def test_a_certificate_replaces_the_assumption():
    found = finding(rf.example("EX1").data, "PL-T1", log_scale=-3000.0)
    assert found.needs == ("generic data and start",)
    assert condition(found, "start small enough").evidence == "numerical"


def test_starts_on_hyperplanes_are_named():
    for name in ("EX-E3", "EX-E4"):
        example = rf.example(name)
        found = next(f for f in check(rf.Problem(example.data, example.networks["start"])) if f.claim == "PL-T1")
        assert condition(found, "no neuron starts on a hyperplane").witness == (0, 0)
        assert found.applies is False
        facts = Facts(rf.Problem(example.data, example.networks["start"]))
        assert facts.groups.dead.tolist() == [0]
        # In EX-E4 curves leave at any time; the regular solution rests, and that it is not the only one is said.
        assert ("is not unique" in claim("PL-L1").prediction(facts).text) is not example.predicates["unique_solution"]


def test_orthogonal_pair_touches_and_stays():
    # EX5: a positive neuron at (0.6, 0.8) is in its cone from the worked time on.
    answer = rf.example("EX5").answers["touch"]
    net = rf.Network.balanced([answer["w"]], [answer["sign"]], log_scale=-200.0)
    facts = Facts(rf.Problem(rf.example("EX5").data, net, reduction="sum"))
    assert facts.groups.plus.tolist() == [0]
    found = claim("PL-L1").prediction(facts)
    assert found.bounds["last_event"] == pytest.approx(answer["time_logistic"], abs=5.1e-11)


def orthogonal_data(rng, d, n):
    """Random orthogonally separable data with both classes, by rejection."""
    while True:
        axis = rng.normal(size=d)
        y = rng.choice([-1.0, 1.0], n)
        X = y[:, None] * (axis / np.linalg.norm(axis) + rng.uniform(0.2, 1.0) * rng.normal(size=(n, d)) / sqrt(d))
        signed = (X * y[:, None]) @ (X * y[:, None]).T
        if signed.min() > 1e-9 and abs(y.sum()) < n:
            return rf.Dataset(X, y)


@pytest.mark.parametrize("seed", range(8))
def test_extremal_sectors_of_random_data(seed):
    # PL-L2 by counting strict extrema of G on a dense circle: one maximum above 0, one minimum below.
    data = orthogonal_data(np.random.default_rng(seed), 2, 6)
    angle = np.linspace(0, 2 * np.pi, 200_001)[:-1]
    values = G(data, np.column_stack([np.cos(angle), np.sin(angle)]))
    up = np.flatnonzero((values > np.roll(values, 1)) & (values > np.roll(values, -1)))
    down = np.flatnonzero((values < np.roll(values, 1)) & (values < np.roll(values, -1)))
    assert (up.size, down.size) == (1, 1)
    facts = Facts(problem(data))
    bounds = claim("PL-L2'").bounds(facts)
    # The grid misses the top by at most |x| h^2/8 times the force.
    assert facts.speed * values[up[0]] == pytest.approx(bounds["G_plus"], rel=1e-8)
    assert facts.speed * values[down[0]] == pytest.approx(bounds["G_minus"], rel=1e-8)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 8))
def test_identity_between_kinks(seed, d, n):
    # PL-LA2
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n))
    w, v = rng.normal(size=(2, d))
    w /= np.linalg.norm(w)
    e = float(rng.uniform(0, 1)) * min(10.0, 0.5 * linear_until(data, w, v))
    moved = w + e * v
    active = sector(data, w + e * v) > 0
    left = G(data, moved / np.linalg.norm(moved))
    right = (G(data, w) + e * np.sum(data.y[active] * (data.X[active] @ v))) / np.linalg.norm(moved)
    assert left == pytest.approx(right, rel=1e-11, abs=1e-11 * np.abs(data.X).sum())


@pytest.mark.parametrize("name", ["EX1", "EX2", "EX3", "EX4", "EX5", "EX7", "EX8", "ML-F6"])
def test_limit_network_is_a_kkt_point(name):
    data = rf.example(name).data
    found = next(p for p in predict(problem(data)) if p.claim == "PL-LC1")
    q = found.network.margins(data)
    assert q.min() == pytest.approx(1, rel=1e-13)
    plus, minus = rf.margins.class_margins(data)
    np.testing.assert_allclose(q, np.where(data.y > 0, data.X @ plus.w, data.X @ minus.w), rtol=1e-12)
    assert rf.kkt(data, found.network).residual <= 1e-12
    W, a = found.network.weights()
    assert (np.sum(W**2) + np.sum(a**2)) / 2 == pytest.approx(found.bounds["kkt_value"], rel=1e-13)
    if name == "EX1":
        answers = rf.example(name).answers
        duals = np.where(data.y > 0, plus.dual * plus.margin, minus.dual * minus.margin)
        np.testing.assert_allclose(duals, answers["kkt_multipliers"], rtol=0, atol=5.1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_limit_margin_is_the_global_one(seed):
    # PL-LC1' against the convex program over all activation patterns
    data = orthogonal_data(np.random.default_rng(seed), 2, 5)
    best = rf.global_max_margin(data, 0.0)
    mine = claim("PL-LC1'").bounds(Facts(problem(data)))["largest_margin"]
    assert best.lower * (1 - 1e-9) <= mine <= best.upper * (1 + 1e-9)


def test_probabilities():
    data = rf.example("EX1").data
    net = rf.Network.balanced(np.eye(2)[[0, 1, 0, 1, 0]], [1, 1, -1, 1, -1], log_scale=-9)
    bounds = claim("PL-T1p").bounds(Facts(rf.Problem(data, net)))
    assert bounds["failure (as printed)"] == 2.0**-5
    assert bounds["failure (as corrected)"] == 2.0**-3 + 2.0**-2
    assert bounds["failure with fair signs"] == 2 * 0.75**5


def test_probability_bound_over_many_draws():
    # The bound counts draws without an active sample of the own class; the real frequency must be below it.
    data, failures, draws = rf.example("EX2").data, 0, 400
    for seed in range(draws):
        net = rf.initialize(2, width=4, seed=seed, signs=[1, 1, -1, -1])
        groups = Facts(rf.Problem(data, net)).groups
        failures += not (groups.plus.size and groups.minus.size)
    bound = 2.0**-2 + 2.0**-2
    # three standard deviations of the frequency at the bound
    assert failures / draws <= bound + 3 * sqrt(bound * (1 - bound) / draws)
    assert failures > 0
