"""The statements on separable data: predictions to the digits, runs that keep them, doctored runs that do not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from helpers import integrate as runs
from helpers.claims import doctored, finding, get, promise, watch
from reluflow.dynamics.trajectory import EVENT
from reluflow.theory import Facts, claims
from reluflow.theory.ll.claims import NOT_COMPUTABLE
from reluflow.theory.ll.general import near_zero_ratios
from reluflow.theory.ll.symmetric import linear_error
from reluflow.theory.verdicts import _observations, _predictions, finding_of

D1, D5, D8 = (rf.example(name).data for name in ("D1", "D5", "D8"))


def balanced(data, W, signs, slope=0.5, scale=1.0, **more):
    return rf.Problem(data, rf.Network.balanced(W, signs, slope, np.log(scale)), **more)


def fitted(run):
    """Records from the first one at which the sum of the losses is below log 2."""
    return run.log_loss - np.log(run.problem.weight) < np.log(np.log(2))


@pytest.fixture(scope="module")
def symmetric_run():
    """D1 from the worked draw at a small scale."""
    return runs.integrate(rf.Problem(D1, rf.example("D1").networks["draw"].with_log_scale(np.log(1e-4))), q_end=500.0)


@pytest.fixture(scope="module")
def one_sided_run():
    """D5 from two positive and one negative neuron in their cones."""
    W = [[1.0, 0.1], [0.8, -0.2], [-1.0, 0.1]]
    return runs.integrate(balanced(D5, W, [1, 1, -1], scale=1e-5), q_end=500.0)


@pytest.fixture(scope="module")
def D8_run():
    """Two positive and two negative neurons on the counterexample."""
    W = [[1.0, 0.2], [0.9, -0.3], [-0.8, 0.1], [-0.7, -0.4]]
    return runs.integrate(balanced(D8, W, [1, 1, -1, -1], slope=0.2, scale=1e-4), q_end=1000.0)


# -- every claim ------------------------------------------------------------------------------------------


def test_every_claim_names_a_falsifier_and_a_test_that_exists():
    root = Path(__file__).parents[3]
    for one in (*claims("LL"), *claims("SBG")):
        path, name = one.test.split("::")
        assert one.falsifier, one.id
        assert f"def {name}(" in (root / path).read_text(encoding="utf-8"), one.test


def test_every_statement_is_covered_or_refused():
    wanted = (
        "A3.2 A4.1 A4.5 A4.6 A.6 A.1 A.2 A.3 A.8 A.5 A.5* A.9 A.9* T3.1 B.8 B.9 B.10 B.11 B.12 B.13 B.14 B.15 "
        "B.16 B.17 B.18 B.19 T4.2 L5.2 Emb L5.4 E.4 F.3 T5.5 T5.6 T4.3 C4.4 G.1 G.2 A.4 G.9 G.4 G.5 G.8 TA.7 "
        "TA.10 D6.1 T6.2 G.10 G.11 DH.1 TH.2 LH.3 I.2"
    )
    known = {name for one in claims("LL") for name in (one.id, *one.also)}
    assert {f"LL-{name}" for name in wanted.split()} <= known | set(NOT_COMPUTABLE)


# -- general statements -----------------------------------------------------------------------------------


def test_doctored_direction_is_no_kkt_direction(one_sided_run):
    run = one_sided_run
    # the negative neuron vanishes slowly here (kappa is small), so the direction is not stationary yet
    assert watch("LL-T3.1", run) == [True, None]
    lower = doctored(run, -1, log_norms=run.log_norms[0])
    assert watch("LL-T3.1", lower)[0] is False
    rises = doctored(run, -1, log_loss=run.log_loss[-20])
    assert watch("LL-T3.1", rises)[0] is False


def test_a_stalled_residual_is_flagged():
    """A path along a ray that is no KKT direction: the residual stays, however long it is followed."""
    problem = balanced(D5, [[1.0, 0.3]], [1])
    W, a = problem.net.weights()
    run = runs.assemble(problem, [(float(k), W * 2.0**k, a * 2.0**k) for k in range(12)])
    assert watch("LL-T3.1", run)[1] is False


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.0, 1.0), st.floats(-3.0, 1.0))
def test_bounds_near_zero_on_random_networks(seed, slope, log_scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((7, 3)) * 3
    data = rf.Dataset(X, np.where(X[:, 0] > 0, 1, -1))
    net = rf.Network(rng.standard_normal((5, 3)), rng.standard_normal(5), slope, log_scale)
    assert max(near_zero_ratios(*net.weights(), Facts(rf.Problem(data, net)))) <= 1


def test_near_zero_ratio_of_the_gradient_is_that_of_finite_differences():
    """The gradient behind LL-B.12 against differences of the loss itself."""
    data = rf.Dataset(D5.X / 2, D5.y)
    W, a = np.array([[0.3, 0.2], [-0.4, 0.1]]), np.array([0.5, -0.2])
    known = Facts(rf.Problem(data, rf.Network(W, a, 0.5)))

    def loss(theta):
        return np.exp(known.problem.log_loss(rf.Network(theta[:4].reshape(2, 2), theta[4:], 0.5)))

    theta = np.concatenate([W.ravel(), a])
    h = 1e-6
    gradient = [(loss(theta + h * e) - loss(theta - h * e)) / (2 * h) for e in np.eye(6)]
    expected = np.linalg.norm(gradient) / np.linalg.norm(theta)
    assert near_zero_ratios(W, a, known)[2] == pytest.approx(expected, rel=1e-7)


def test_doctored_conservation_is_flagged(one_sided_run):
    run = one_sided_run
    assert watch("LL-B.15", run) == [True, True, True]
    k = len(run) // 2
    assert watch("LL-B.15", doctored(run, k, log_outs=run.log_outs[k] + 1e-3))[0] is False
    assert watch("LL-B.15", doctored(run, k, signs=-run.signs[k]))[1] is False
    assert watch("LL-B.15", doctored(run, k, log_loss=run.log_loss[k] + 20.0))[2] is False
    # the same path run three times as fast breaks dL/dt = -|theta'|^2
    assert watch("LL-B.15", replace(run, log_time=run.log_time - np.log(3.0)))[2] is False


def test_late_fit_is_flagged():
    problem = rf.Problem(D1, rf.example("D1").networks["start"])
    run = runs.integrate(problem, q_end=5.0, every=1, h_max=1e-3)
    assert watch("LL-B.19", run) == [True, True]
    first = np.flatnonzero(fitted(run))[0]
    assert np.exp(run.log_time[first]) == pytest.approx(14.1944, rel=2e-3)  # records are that far apart in time
    assert watch("LL-B.19", replace(run, log_time=run.log_time + 10.0))[1] is False
    assert watch("LL-B.19", doctored(run, -1, signs=-run.signs[-1]))[0] is False
    assert promise("LL-B.19", problem).bounds["log_T"] == pytest.approx(np.log(10633.00338), rel=1e-9)


@pytest.mark.parametrize("name", ["LL-TH2-2d", "LL-TH2-3d"])
def test_orthogonal_relu_margin_is_global(name):
    ex = rf.example(name)
    problem = balanced(
        ex.data, np.vstack([np.eye(ex.data.d), -np.eye(ex.data.d)]), [1] * ex.data.d + [-1] * ex.data.d, 0.0
    )
    found = promise("LL-TH.2", problem)
    assert ex.agrees("global_margin", found.margin, 0.0)
    assert ex.agrees("w_plus_norm", found.bounds["|v+|"])
    assert ex.agrees("w_minus_norm", found.bounds["|v-|"])
    assert rf.global_max_margin(ex.data, 0.0).upper == pytest.approx(found.margin, rel=1e-9)
    assert rf.kkt(ex.data, found.network).is_kkt(1e-12)
    assert (found.function(ex.data.X) * ex.data.y > 0).all()  # printed with +, it gets every negative sample wrong


def test_final_direction_of_a_clean_run_is_stationary(symmetric_run):
    assert watch("LL-T3.1", symmetric_run) == [True, True]


def test_orthogonal_relu_run_and_doctored_run():
    ex = rf.example("LL-TH2-2d")
    run = runs.integrate(balanced(ex.data, [[1.0, 0.8], [-0.9, -1.0]], [1, -1], 0.0, 0.01), q_end=1000.0)
    assert watch("LL-TH.2", run) == [True]
    wide = np.array([[2.0, 0.0], [0.0, -1.0]])
    frozen = doctored(run, np.arange(len(run)) > 10, directions=wide / np.linalg.norm(wide, axis=1)[:, None])
    assert watch("LL-TH.2", frozen) == [False]


def test_a_ridge_is_flagged(one_sided_run):
    assert watch("LL-I.2", one_sided_run) == [True]
    ridge = np.array([(1.0, 0, 2, "activate"), (2.0, 1, 3, "ridge")], EVENT)
    seen = _observations(get("LL-I.2"), Facts(one_sided_run.problem), replace(one_sided_run, events=ridge))
    assert [found.consistent for found in seen] == [False]
    assert seen[0].where == 1
    assert not finding("LL-A4.6", one_sided_run.problem).needs  # nothing is assumed on these data


# -- symmetric data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "slope"), [("D1", 0.5), ("D1", 0.25), ("D4", 0.5), ("D4-0", 0.0), ("D4-0.9", 0.9)])
def test_symmetric_optimum_is_global(name, slope):
    ex = rf.example(name)
    problem = balanced(ex.data, [[1.0, 0.2], [-1.0, 0.1]], [1, -1], slope)
    found = promise("LL-T4.2", problem)
    assert ex.agrees("global_margin", found.bounds["largest margin"], slope)
    assert rf.global_max_margin(ex.data, slope).upper == pytest.approx(found.bounds["largest margin"], rel=1e-9)


def test_the_largest_margin_is_never_exceeded(symmetric_run):
    assert watch("LL-T4.2", symmetric_run) == [True]


def test_phase_one_bound_and_printed_rate():
    """The error stays bounded by r^3 with the corrected rate; with the printed one it is far beyond the bound."""
    for r in (0.05, 0.02):
        sigma = r**3 / (2 * 1.264911064067)
        problem = rf.Problem(D1, rf.example("D1").networks["draw"].with_log_scale(np.log(sigma)))
        run = runs.integrate(problem, q_end=1e-2, every=1)
        assert watch("LL-L5.2", run) == [True]
        worst, where, _, _ = linear_error(Facts(problem), run.measures)
        assert where is not None
        assert worst < 1
        # as if the clock were the printed one: every record at half its time
        assert watch("LL-L5.2", replace(run, log_time=run.log_time - np.log(2.0))) == [False]
        # the error at T_1 itself, in units of r^3/sqrt(p): 0.6711 for both r
        T_1 = promise("LL-L5.2", problem).bounds["T_1"]
        k = int(np.argmin(np.abs(run.time - T_1)))
        lam = 0.206155281281
        mu = np.array([8 / 15, 2 / 15]) / 0.549747416749
        b = np.array([0.306123238943, -0.058702595473, -0.134736337762, -0.170206679871])
        size = r * np.exp(lam * (run.time[k] - T_1))
        error = np.maximum(np.linalg.norm(run.W[k] - size * np.outer(b, mu), axis=1), np.abs(run.a[k] - size * b)).max()
        assert error * 2 / r**3 == pytest.approx(0.6711, rel=0.03)  # the record nearest to T_1, not T_1 itself


def test_doctored_phase_two_is_flagged(symmetric_run):
    run = symmetric_run
    assert watch("LL-L5.4", run) == [True]
    stop = promise("LL-L5.4", run.problem).bounds
    k = int(np.flatnonzero(run.time <= stop["T_12"] + stop["t_0"])[-1])
    assert stop["T_12"] == pytest.approx(40.174529244822, abs=1e-10)
    assert stop["t_0"] == pytest.approx(-9.5373702860, abs=1e-9)
    assert watch("LL-L5.4", doctored(run, k, directions=-run.directions[k])) == [False]


def test_doctored_symmetric_limit_is_flagged(symmetric_run):
    run = symmetric_run
    assert watch("LL-T4.3", run) == [True]
    found = promise("LL-T4.3", run.problem)
    assert found.margin == pytest.approx(0.154441456421, abs=5e-13)
    assert np.allclose(found.function(D1.X), 0.375 * D1.X @ [0.980580675691, 0.196116135138], atol=1e-11)
    assert found.probability == 1 - 2.0**-3
    assert found.network.log_norm() == pytest.approx(0.0, abs=1e-15)  # one half, not one quarter
    # along a ray to another direction: the margin stays where it is, however long it is followed
    W = np.sign(run.directions[-1, :, :1]) * np.abs(run.a[-1])[:, None] * np.array([0.8, 0.6]) / 10
    ray = runs.assemble(run.problem, [(float(k), W * 2.0**k, run.a[-1] * 2.0**k / 10) for k in range(7)])
    assert watch("LL-T4.3", ray) == [False]


def test_a_draw_that_is_not_good_is_not_covered():
    problem = balanced(D1, [[1.0, 0.2], [1.0, 0.1]], [1, 1], scale=1e-4)
    assert [c.name for c in finding("LL-T4.3", problem).failing] == ["the draw is good (LL-Emb)"]


def test_doctored_two_neurons_are_flagged():
    problem = balanced(D1, [[0.3, 0.0], [-0.3, 0.05]], [1, -1])
    run = runs.integrate(problem, q_end=1000.0)
    assert finding("LL-T5.5", problem).applies is True
    assert watch("LL-T5.5", run) == [True, True]
    found = promise("LL-T5.5", problem)
    expected = [[0.49029, 0.09806], [-0.49029, -0.09806]]
    assert np.allclose(found.network.W, expected, atol=5e-6)
    assert np.allclose(found.network.a, [0.5, -0.5])
    frozen = doctored(run, np.arange(len(run)) > 10, directions=[[0.8, 0.6], [-0.8, -0.6]])
    assert watch("LL-T5.5", frozen) == [False, False]
    wrong_side = balanced(D1, [[0.3, 0.0], [0.3, 0.05]], [1, -1])
    assert finding("LL-T5.5", wrong_side).applies is False


def test_the_three_kkt_directions_of_two_neurons():
    w, gamma = np.array([5, 1]) / np.sqrt(26), 0.411843883790
    root = np.sqrt(0.5)
    sets = [([w / 2, -w / 2], [0.5, -0.5], 0.375 * gamma), ([w * root, 0 * w], [root, 0], 0.25 * gamma)]
    sets.append(([0 * w, -w * root], [0, -root], 0.25 * gamma))
    for W, a, margin in sets:
        net = rf.Network(W, a, 0.5)
        assert net.normalized_margin(D1) == pytest.approx(margin, abs=1e-12)
        assert rf.kkt(D1, net).is_kkt(1e-12)
        turned = rf.Network(np.array(W) @ [[np.cos(0.02), np.sin(0.02)], [-np.sin(0.02), np.cos(0.02)]], a, 0.5)
        assert not rf.kkt(D1, turned, active_tol=1e-3).is_kkt(1e-3)


# -- data that are not symmetric --------------------------------------------------------------------------


def test_one_neuron_has_one_kkt_direction():
    for sign in (1, -1):
        problem = balanced(D5, [[sign * 1.0, 0.3]], [sign])
        found = promise("LL-G.9", problem)
        assert rf.kkt(D5, found.network).is_kkt(1e-12)
        other = rf.Network.balanced([[sign * 1.0, 0.3]], [sign], 0.5)
        assert not rf.kkt(D5, other).is_kkt(1e-3)
        run = runs.integrate(problem, q_end=1000.0)
        assert watch("LL-G.9", run) == [True]
        assert np.allclose(run.directions[-1], found.directions, atol=2e-3)  # O(1/q_min)
        stays = doctored(run, np.arange(len(run)) > 0, directions=run.directions[0])
        assert watch("LL-G.9", stays) == [False]


def test_doctored_pattern_is_flagged(one_sided_run):
    run = one_sided_run
    assert watch("LL-G.4", run) == [True]
    early = int(np.flatnonzero(np.abs(run.margins()).max(axis=1) <= 1e-3)[-1])
    moved = np.array(run.directions[early])
    moved[2] = [0.0, 1.0]
    assert watch("LL-G.4", doctored(run, early, directions=moved)) == [False]


def test_doctored_growth_is_flagged(one_sided_run):
    run = one_sided_run
    seen = _observations(get("LL-G.5"), Facts(run.problem), run)
    assert [found.consistent for found in seen] == [True, True]
    assert [found.predicted for found in seen] == [pytest.approx(0.450174, abs=5e-7), pytest.approx(0.418750, abs=5e-7)]
    assert [found.measured for found in seen] == [pytest.approx(0.450174, rel=2e-3), pytest.approx(0.418750, rel=2e-3)]
    assert watch("LL-G.5", replace(run, log_time=run.log_time + np.log(2.0))) == [False, False]  # the printed rates


@pytest.mark.parametrize(("name", "slope"), [("D5", 0.5), ("D6", 0.5), ("D6-H12", 0.5), ("D7", 0.5)])
def test_one_neuron_limits_of_the_worked_examples(name, slope):
    ex = rf.example(name)
    problem = rf.Problem(ex.data, rf.initialize(ex.data.d, width=8, scale=1e-6, slope=slope))
    found = promise("LL-TA.7", problem)
    assert finding("LL-TA.7", problem).applies is True
    assert found.margin == pytest.approx(ex.at(slope).answers["gamma_plus"] / 2, abs=1e-12)
    assert found.network.normalized_margin(ex.data) == pytest.approx(found.margin, rel=1e-12)
    assert rf.kkt(ex.data, found.network, active_tol=1e-9).is_kkt(1e-9)
    assert found.probability == 1 - 2.0**-8


def test_one_neuron_limit_in_a_run(one_sided_run):
    run = one_sided_run
    (seen,) = _observations(get("LL-TA.7"), Facts(run.problem), run)
    assert seen.consistent
    assert seen.predicted == pytest.approx(0.238521084377, abs=1e-12)
    late = fitted(run)
    lowered = doctored(run, late, directions=[[0.95, 0.3], [0.95, 0.3], [-1, 0]])
    assert watch("LL-TA.7", lowered) == [False]


def test_D8_refutes_the_printed_theorem(D8_run):
    """LL-A.5 holds, LL-A.5* fails, and the smoothed margin passes gamma+/2 = 1/2."""
    found = finding("LL-TA.7", D8_run.problem)
    readings = {c.name[-12:-1]: (c.holds, c.decides) for c in found.conditions if "(as " in c.name}
    assert found.applies is False
    assert [c.holds for c in found.conditions if c.name.endswith("(as printed)")] == [True], readings
    assert [c.holds for c in found.conditions if c.name.endswith("(as corrected)")] == [False]
    assert all(c.holds is not False for c in found.conditions if not c.name.endswith("(as corrected)"))
    (seen,) = _observations(get("LL-TA.7"), Facts(D8_run.problem), D8_run)
    assert seen.consistent is False
    assert seen.predicted == pytest.approx(0.5)
    assert seen.measured == pytest.approx(0.527046276695, rel=2e-3)  # the gap closes like 1/q_min
    positive = balanced(D8, [[1.0, 0.2], [0.9, -0.3]], [1, 1], slope=0.2, scale=1e-4)
    alone = finding("LL-TA.7", positive)
    assert alone.applies is True  # nothing of the other sign exists
    assert watch("LL-TA.7", runs.integrate(positive, q_end=1000.0)) == [True]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.1, 0.9))
def test_label_flip_exchanges_the_two_theorems(seed, slope):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += y
    data, net = rf.Dataset(X, y), rf.initialize(2, width=4, scale=1e-6, slope=slope, seed=seed)
    mirror = rf.Problem(data.flipped(), rf.Network(net.W, -net.a, slope, net.log_scale))
    problem = rf.Problem(data, net)
    for here, there in (("LL-TA.7", "LL-TA.10"), ("LL-TA.10", "LL-TA.7"), ("LL-A.5*", "LL-A.9*"), ("LL-A.3", "LL-A.8")):
        assert finding(here, problem).applies == finding(there, mirror).applies
    if finding("LL-TA.7", problem).applies:
        one, two = promise("LL-TA.7", problem), promise("LL-TA.10", mirror)
        assert np.allclose(one.function(X), -two.function(X), atol=1e-12)
        assert one.margin == pytest.approx(two.margin, rel=1e-12)


def test_flipped_D5_is_covered_by_the_mirrored_theorem():
    W, signs = [[1.0, 0.1], [0.8, -0.2], [-1.0, 0.1]], [-1, -1, 1]
    problem = balanced(D5.flipped(), W, signs, scale=1e-5)
    assert finding("LL-TA.10", problem).applies is True
    run = runs.integrate(problem, q_end=300.0)
    assert watch("LL-TA.10", run) == [True]
    half = fitted(run)
    lowered = doctored(run, half, directions=[[0.95, 0.3], [0.95, 0.3], [-1, 0]])
    assert watch("LL-TA.10", lowered) == [False]


# -- hinted data ------------------------------------------------------------------------------------------


def hinted(K, H=12.0):
    star, perp = np.array([17, -1]) / np.sqrt(290), np.array([1, 17]) / np.sqrt(290)
    return rf.make("hinted", base="D6-base", H=H, K=K, eps=0.2, w_star=star.tolist(), w_perp=perp.tolist())


def test_hinted_thresholds():
    problem = rf.Problem(hinted(1.0, 45.0), rf.initialize(2, width=6, scale=1e-6, slope=0.5))
    found = finding("LL-T6.2", problem)
    assert found.applies is True
    promised = promise("LL-T6.2", problem)
    assert promised.margin == pytest.approx(0.1, rel=1e-12)
    assert promised.bounds["(c) H_0"] == pytest.approx(40.916093968384, abs=1e-10)
    assert promised.bounds["(d) H above"] == pytest.approx(12.337438869471, abs=1e-11)
    weaker = rf.Problem(hinted(1.0, 12.0), problem.net)
    failing = [c.name[:3] for c in finding("LL-T6.2", weaker).failing]
    assert failing == ["(c)", "(d)"]
    assert finding("LL-TA.7", weaker).applies is True  # sufficient conditions only
    assert finding("LL-T6.2", rf.Problem(D5, problem.net)).applies is False


@pytest.mark.parametrize(
    ("K", "best"), [(0.52, 0.1), (0.53, 0.1000702878), (0.6, 0.1060660172), (0.8, 0.1249731054), (1.0, 0.1431474494)]
)
def test_the_one_neuron_limit_is_optimal_up_to_the_threshold(K, best):
    """The printed claim of a suboptimal margin fails for small K."""
    data = hinted(K)
    found = promise("LL-T6.2", rf.Problem(hinted(K, 45.0), rf.initialize(2, width=6, scale=1e-6, slope=0.5)))
    exact = rf.global_max_margin(data, 0.5)
    assert exact.upper == pytest.approx(best, abs=6e-11)
    assert exact.upper <= found.bounds["upper bound of the best margin"] * (1 + 1e-9)
    optimal = found.bounds["K up to which the limit is optimal"] >= K
    assert optimal == (exact.upper <= found.margin * (1 + 1e-9))
    assert ("that is optimal" in found.text) == optimal


def test_doctored_hinted_run_is_flagged():
    data = hinted(1.0, 45.0)
    problem = balanced(data, [[1.0, 0.1], [-1.0, 0.1]], [1, -1], scale=1e-6)
    run = runs.integrate(problem, q_end=500.0)
    assert watch("LL-T6.2", run) == [True]
    assert watch("LL-TA.7", run) == [True]
    late = fitted(run)
    lowered = doctored(run, late, directions=[[0.999, 0.0447], [-1, 0]])
    assert watch("LL-T6.2", lowered) == [False]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_hints_are_found_wherever_they_stand(seed):
    rng = np.random.default_rng(seed)
    data = hinted(1.0, 45.0)
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    image = rf.Dataset(data.X @ turn, data.y).subset(rng.permutation(data.n))
    found = promise("LL-T6.2", rf.Problem(image, rf.initialize(2, width=6, scale=1e-6, slope=0.5)))
    assert found.margin == pytest.approx(0.1, rel=1e-9)


# -- clocks and scales ------------------------------------------------------------------------------------


def test_not_computable_statements_have_reasons():
    assert all(len(reason) > 20 for reason in NOT_COMPUTABLE.values())
    assert "LL-T5.6" in NOT_COMPUTABLE


@pytest.mark.parametrize("scale", [-3000.0, -20.0])
def test_any_scale_gets_its_verdicts(scale):
    for data, slope in ((D1, 0.5), (D5, 0.5), (D8, 0.2)):
        problem = rf.Problem(data, rf.initialize(2, width=5, log_scale=scale, slope=slope))
        known = Facts(problem)
        for one in claims("LL"):
            found = finding_of(one, known)
            if found.applies is not False:
                for made in _predictions(one, found, known):
                    assert all(np.isfinite(value) for value in made.bounds.values()), (one.id, made.bounds)


def test_exponential_loss_is_left_open():
    problem = rf.Problem(D5, rf.initialize(2, width=5, scale=1e-6, slope=0.5), loss="exponential")
    assert finding("LL-TA.7", problem).applies is None


ODD = {
    "zero neuron": rf.Network([[1.0, 0.3], [0.0, 0.0], [-1.0, 0.1]], [1.0, 0.0, -1.0], 0.5, -5.0),
    "silent neuron": rf.Network([[1.0, 0.3], [0.2, 0.1]], [0.5, 0.0], 0.5, -5.0),
    "output without input": rf.Network([[1.0, 0.3], [0.0, 0.0]], [0.5, -0.5], 0.5, -5.0),
    "one neuron": rf.Network([[1.0, 0.3]], [1.0], 0.5, -5.0),
    "large": rf.Network([[1.0, 0.3], [-1.0, 0.2]], [1.0, -1.0], 0.5, 3.0),
    "very different sizes": rf.Network([[1.0, 0.3], [-1.0, 0.2]], [1.0, -1.0], 0.5, [-400.0, 0.0]),
}


@pytest.mark.parametrize("train", ["both", "first"])
@pytest.mark.parametrize("name", ODD)
def test_odd_starts_get_verdicts_and_observations(name, train):
    import json

    for data in (D1, D5):
        problem = rf.Problem(data, ODD[name], train=train)
        try:
            run = rf.flow(problem, {"log_time": 20.0}, progress=False)
        except rf.Undecided as error:
            run = error.partial
        known = Facts(problem)
        for one in (*claims("LL"), *claims("SBG")):
            found = finding_of(one, known)
            json.dumps(found.to_dict())
            if found.applies is not False:
                for made in (*_predictions(one, found, known), *_observations(one, known, run)):
                    json.dumps(made.to_dict())
                assert all(seen.consistent is not False for seen in _observations(one, known, run)), one.id


def test_one_neuron_is_a_local_maximum_among_its_signs():
    """LL-G.11: near the embedded neuron no net with the same output signs has a larger margin, under LL-A.5*."""
    rng = np.random.default_rng(0)
    w, target = np.array([0.998460353205, -0.055470019623]), 0.238521084377
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    share = np.sqrt(np.array([0.3, 0.2, 0.0, 0.0]))
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(300):
            W = share[:, None] * w + size * rng.standard_normal((4, 2))
            a = signs * np.abs(share + size * rng.standard_normal(4))
            assert rf.Network(W, a, 0.5).normalized_margin(D5) <= target * (1 + 1e-9)
    # on D8, where LL-A.5* fails, the same experiment finds a larger margin
    best = 0.0
    for _ in range(3000):
        W = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]) + 0.1 * rng.standard_normal((4, 2))
        best = max(best, rf.Network.balanced(W, signs, 0.2).normalized_margin(D8))
    assert best > 0.5
