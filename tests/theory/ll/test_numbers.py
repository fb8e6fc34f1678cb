"""Worked numbers of the statements on separable data, to the digits known."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.margins import one_neuron
from reluflow.theory import Facts, conditions
from reluflow.theory.ll import numbers

LEAKY = [
    ("D1", 0.5),
    ("D2", 0.5),
    ("D3", 0.5),
    ("D3", 0.3),
    ("D5", 0.5),
    ("D6", 0.5),
    ("D6-H12", 0.5),
    ("D7", 0.5),
    ("D8", 0.2),
]


def start(name, slope, key="draw", sigma=1.0, **more):
    ex = rf.example(name)
    net = ex.networks[key]
    return rf.Problem(ex.data, net.with_log_scale(np.log(sigma)), **more)


def facts_of(name, slope, width=6, **more):
    data = rf.example(name).data
    return Facts(rf.Problem(data, rf.initialize(data.d, width=width, scale=1e-6, slope=slope, **more)))


@pytest.mark.parametrize(("name", "slope"), LEAKY)
def test_worked_means_slacks_and_sides(name, slope):
    ex = rf.example(name)
    known = ex.at(slope).answers
    found, best = numbers.means(ex.data, slope), rf.max_margin(ex.data)
    cone = numbers.cone(ex.data, slope)
    left, right = numbers.a1_sides(ex.data, slope, best.direction)
    values = {
        "mu_vector": found.mu,
        "mu_plus": found.plus,
        "mu_minus": found.minus,
        "mu_norm": np.linalg.norm(found.mu),
        "mu_plus_norm": np.linalg.norm(found.plus),
        "mu_minus_norm": np.linalg.norm(found.minus),
        "kappa": found.kappa,
        "A2_slack": cone.slack,
        "A2_slack_min": cone.slack.min(),
        "A1_left": left,
        "A1_right": right,
    }
    checked = [key for key in values if key in known]
    for key in checked:
        assert ex.agrees(key, values[key], slope), key
    assert checked or name == "D1"


@pytest.mark.parametrize(("name", "slope"), LEAKY)
def test_verdicts_on_the_assumptions(name, slope):
    facts = facts_of(name, slope)
    known = rf.example(name).at(slope).predicates
    found = {
        "LL-A4.5": conditions.off_mean(facts),
        "symmetric": conditions.symmetric(facts),
        "separable": conditions.separable(facts),
        "LL-A.1": conditions.funnel(facts),
        "LL-A.2": conditions.spread(facts),
        "LL-A.3": conditions.longer(facts, 1),
        "LL-A.5": conditions.outside(facts, 1, False),
        "LL-A.5*": conditions.outside(facts, 1, True),
    }
    for key, condition in found.items():
        if key in known:
            assert condition.holds is known[key], (key, condition.why)


@pytest.mark.parametrize("name", ["D6", "D6-H12"])
def test_hinted_thresholds_of_the_worked_example(name):
    ex = rf.example(name)
    found = numbers.hints(ex.data, 0.5, rf.max_margin(ex.data).direction)
    assert found.samples == (0, 1, 2)
    assert pytest.approx(45 if name == "D6" else 12, rel=1e-14) == found.H
    for key, value in (("eps_below", found.eps_below), ("H_0", found.H_0), ("H_d", found.H_d)):
        assert ex.agrees(key, value, 0.5), key
    assert found.K_threshold == pytest.approx(0.529150262, abs=5e-10)


def test_growth_rates_of_the_worked_example():
    problem = facts_of("D5", 0.5).problem
    assert np.allclose(numbers.growth_rates(problem), [0.450174, 0.418750], atol=5e-7)
    # a sum of six losses runs six times as fast; the exponential loss pulls twice as hard at zero
    for changes, factor in (({"reduction": "sum"}, 6), ({"loss": "exponential"}, 2)):
        assert np.allclose(
            numbers.growth_rates(problem.replace(**changes)), factor * np.array(numbers.growth_rates(problem))
        )


def test_phase_one_of_the_worked_draw():
    ex = rf.example("D1")
    sigma = 0.05**3 / (2 * ex.at(0.5).answers["phases"]["M_norm"])
    problem = start("D1", 0.5, sigma=sigma)
    b = numbers.seed_amplitudes(problem)
    assert ex.agrees("phases.b", b, 0.5)
    assert ex.agrees("phases.b_plus", np.linalg.norm(b[b > 0]), 0.5)
    assert ex.agrees("phases.b_minus", -np.linalg.norm(b[b < 0]), 0.5)
    assert np.exp(numbers.log_m_norm(ex.networks["draw"])) == pytest.approx(1.264911064067, abs=1e-12)
    assert ex.agrees("lambda_0", numbers.symmetric_rate(problem), 0.5)
    assert pytest.approx(29.062871976317, abs=1e-10) == numbers.phase_one(problem, 0.05).T_1
    assert numbers.phase_one(problem).r == pytest.approx(0.05, rel=1e-12)  # the smallest r that this scale allows
    assert pytest.approx(40.174529244822, abs=1e-11) == numbers.phase_one(start("D1", 0.5, sigma=1e-4)).T_12
    assert ex.agrees(
        "phases.t_0", numbers.near_zero_time(problem, np.linalg.norm(b[b > 0]), -np.linalg.norm(b[b < 0])), 0.5
    )
    # the constant of the proof, (4/lambda_0 + sqrt 2), is 20.8 here
    assert numbers.phase_one(problem, 1.0).error * 2 == pytest.approx(20.8, abs=0.05)


def test_escape_time_of_the_worked_start():
    ex = rf.example("D1")
    problem = start("D1", 0.5, "start")
    best = rf.max_margin(ex.data)
    found = numbers.escape(problem, best.direction, best.margin)
    assert ex.agrees("fitting.c", np.exp(found.log_c), 0.5)
    assert ex.agrees("fitting.bounds", np.exp(found.log_time), 0.5)
    assert ex.agrees("fitting.loss", np.exp(problem.log_loss()), 0.5)
    assert found.best == 1
    # six samples in a sum: the same path in a sixth of the time
    summed = numbers.escape(problem.replace(reduction="sum"), best.direction, best.margin)
    assert np.allclose(summed.log_time, found.log_time - np.log(6), rtol=1e-13)


def test_escape_at_a_scale_no_double_holds():
    data = rf.example("D1").data
    best = rf.max_margin(data)
    nets = [rf.initialize(2, width=5, slope=0.5, log_scale=s, seed=3) for s in (-3000.0, -300.0)]
    first, second = (numbers.escape(rf.Problem(data, net), best.direction, best.margin) for net in nets)
    assert np.array_equal(np.isnan(first.log_c), np.isnan(second.log_c))
    assert np.nanmax(first.log_c - second.log_c) == pytest.approx(-5400, rel=1e-12)
    balanced = nets[0].directions @ best.direction
    lives = np.sign(nets[0].a) * balanced > 0
    assert np.array_equal(~np.isnan(first.log_c), lives)


def test_rescaling_the_data_rescales_phase_one():
    """Points c times longer are parameters sqrt(c) times larger and a clock c times faster."""
    data, c = rf.example("D1").data, 50.0
    longer = rf.Dataset(c * data.X, data.y)
    shrunk = rf.Dataset(data.X / data.norms.max(), data.y)
    net = rf.example("D1").networks["draw"]
    unit = c * float(data.norms.max())
    there = numbers.phase_one(rf.Problem(longer, net.with_log_scale(-9.0)))
    here = numbers.phase_one(rf.Problem(shrunk, net.with_log_scale(-9.0 + 0.5 * np.log(unit))))
    assert pytest.approx(here.T_1 / unit, rel=1e-12) == there.T_1
    assert there.r == pytest.approx(here.r, rel=1e-12)
    assert there.error == pytest.approx(here.error, rel=1e-12)


def test_one_neuron_margins_of_the_worked_examples():
    for name, slope in LEAKY:
        known = rf.example(name).at(slope).answers
        found = one_neuron(rf.example(name).data, slope, 1)
        if "gamma_plus" in known:
            assert rf.example(name).agrees("gamma_plus", found.gamma, slope)
        if "S_plus" in known:
            assert np.array_equal(found.support, known["S_plus"])
