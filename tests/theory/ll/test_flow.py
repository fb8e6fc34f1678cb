"""The statements on separable data against the package's own flow."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.theory import Facts, claims
from reluflow.theory.verdicts import _needs, _observations, finding_of


def observed(name, run):
    known = Facts(run.problem)
    one = next(c for paper in ("LL", "SBG") for c in claims(paper) if c.id == name)
    return _observations(one, known, run)


def balanced(name, slope, width, signs, scale, seed=1):
    data = rf.example(name).data
    net = rf.initialize(data.d, width, "balanced-gaussian", scale, seed, slope, signs=signs)
    return rf.Problem(data, net)


def test_growth_rates_on_D5():
    run = rf.flow(balanced("D5", 0.5, 6, [1, -1] * 3, 1e-6), {"log_time": 3.0}, progress=False)
    seen = observed("LL-G.5", run)
    assert [found.consistent for found in seen] == [True, True]
    # cosines of 0.999 and outputs of 1e-3 leave the slope open to about that much
    assert [found.measured for found in seen] == [pytest.approx(0.450174, rel=1e-3), pytest.approx(0.418750, rel=1e-3)]
    assert [found.predicted for found in seen] == [pytest.approx(0.450174, abs=5e-7), pytest.approx(0.418750, abs=5e-7)]


def test_growth_rates_are_sharp_at_tiny_scales():
    """From e^-400 the neurons are aligned for so long that the slope is exact to six digits."""
    data = rf.example("D5").data
    net = rf.initialize(2, 6, "balanced", log_scale=-400.0, seed=1, slope=0.5, signs=[1, -1] * 3)
    run = rf.flow(rf.Problem(data, net), {"log_time": 6.7}, progress=False)
    j = 0
    pair = [int(np.searchsorted(run.time, t)) for t in (300.0, 800.0)]
    rate = np.diff(run.log_norms[pair, j]) / np.diff(run.time[pair])
    assert rate[0] == pytest.approx(0.9003471552683 / 2, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-2, 1e-4])
def test_D8_refutes_the_printed_theorem(scale):
    run = rf.flow(balanced("D8", 0.2, 4, [1, 1, -1, -1], scale), {"log_time": 4000.0}, progress=False)
    (seen,) = observed("LL-TA.7", run)
    assert seen.consistent is False
    assert seen.measured == pytest.approx(0.527046276695, rel=2e-3)
    assert run.normalized_margin()[-1] < 0.527046276695
    alone = rf.flow(balanced("D8", 0.2, 4, [1] * 4, scale), {"log_time": 4000.0}, progress=False)
    (seen,) = observed("LL-TA.7", alone)
    assert seen.consistent is True
    assert seen.measured == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "slope", "claim", "margin"),
    [("D1", 0.5, "LL-T4.3", 0.154441456421), ("D5", 0.5, "LL-TA.7", 0.238521084377), ("D6-H12", 0.5, "LL-TA.7", 0.1)],
)
def test_limits_of_the_worked_examples(name, slope, claim, margin):
    run = rf.flow(balanced(name, slope, 8, [1, -1] * 4, 1e-4), {"log_time": 1e5}, progress=False)
    (seen,) = observed(claim, run)
    assert seen.consistent is True
    assert seen.predicted == pytest.approx(margin, abs=1e-12)
    assert seen.measured == pytest.approx(margin, rel=1e-3)  # D5 closes its gap slowly


def test_par_limit_of_D2_in_the_flow():
    data = rf.example("D2").data
    net = rf.initialize(2, 10, "two-sign", 1e-3, slope=0.25)
    run = rf.flow(rf.Problem(data, net, train="first"), {"log_time": 1e6}, progress=False)
    (seen,) = observed("SBG-T6.2", run)
    assert seen.consistent is True
    assert seen.measured == pytest.approx(0.510778463693, rel=2e-6)  # the gap closes like 1/q_min


def random_problem(seed):
    """Small separable data in two or three dimensions, symmetric or not, both ways of training, any slope."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 4)), int(rng.integers(2, 7))
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((n, d)) * rng.uniform(0.2, 2)
    y = np.where(X @ w > 0, 1.0, -1.0)
    data = rf.Dataset(X + rng.uniform(0.1, 2) * y[:, None] * w, y)
    if seed % 3 == 1:
        data = data.symmetrized()
    slope, scale = float(rng.uniform(0.05, 0.95)), 10.0 ** rng.uniform(-7, -3)
    reduction = "mean" if rng.random() < 0.5 else "sum"
    if seed % 3 == 2:
        net = rf.initialize(d, 2 * int(rng.integers(1, 4)), "two-sign", scale, seed, slope)
        return rf.Problem(data, net, train="first", reduction=reduction)
    net = rf.initialize(d, int(rng.choice([1, 2, 4])), "balanced" if seed % 2 else "gaussian", scale, seed, slope)
    return rf.Problem(data, net, reduction=reduction)


@pytest.mark.parametrize("seed", range(16))
def test_what_applies_is_seen(seed):
    """No statement that applies is contradicted by the flow, unless something it only assumes may be missing."""
    problem = random_problem(seed)
    try:
        run = rf.flow(problem, {"log_time": 1000.0}, max_steps=20_000, progress=False)
    except rf.Undecided as error:
        run = error.partial
        assert isinstance(run, rf.Trajectory)
    known = Facts(problem)
    for one in (*claims("LL"), *claims("SBG")):
        found = finding_of(one, known)
        if found.applies:
            for seen in _observations(one, known, run):
                assert seen.consistent is not False or _needs(found), (one.id, seen.text)
