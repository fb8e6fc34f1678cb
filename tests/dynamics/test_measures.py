"""Measures along a run: against definitions, worked numbers and theorems."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.dynamics import Measures, agreement
from reluflow.problem.network import Network


def random_problem(seed, slope=0.0, **options):
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.standard_normal((9, 4)), np.where(np.arange(9) % 2, 1, -1))
    net = rf.Network(rng.standard_normal((5, 4)), rng.standard_normal(5), slope)
    return rf.Problem(data, net, **options)


@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_changes_are_derivatives_along_one_small_step(slope, loss, reduction):
    problem = random_problem(1, slope, loss=loss, reduction=reduction)
    now = rf.dynamics.change_measures(problem)

    def quotients(h):
        run = rf.descend(problem, step=h, steps=1)
        rates = np.diff((run.W**2).sum(axis=2), axis=0)[0] / h
        turns = np.linalg.norm(np.diff(run.directions, axis=0)[0], axis=1) / h
        return np.array([rates.sum(), np.abs(rates).sum(), turns.sum()])

    # Two difference quotients, extrapolated: error h^2 and rounding 1e-16/h.
    np.testing.assert_allclose(now, 2 * quotients(5e-7) - quotients(1e-6), rtol=1e-7, atol=1e-7)
    assert now.absolute >= abs(now.norm)


def test_changes_of_networks_of_any_scale():
    problem = random_problem(2)
    tiny = rf.dynamics.change_measures(problem, problem.net.with_log_scale(-100.0))
    smaller = rf.dynamics.change_measures(problem, problem.net.with_log_scale(-200.0))
    # both layers at scale s: norms change like s^2, directions do not depend on s
    assert math.log(tiny.absolute / smaller.absolute) == pytest.approx(200.0)
    assert tiny.direction == pytest.approx(smaller.direction, rel=1e-12)
    gone = rf.dynamics.change_measures(problem, problem.net.with_log_scale(-3000.0))
    assert (gone.norm, gone.absolute) == (0.0, 0.0)
    assert gone.direction == pytest.approx(tiny.direction, rel=1e-12)
    zero = rf.Network(np.zeros((2, 4)), [1.0, 0.0])
    assert rf.dynamics.change_measures(problem, zero) == (0.0, 0.0, 0.0)


def test_directions_change_first_and_norms_later():
    # ML-F12: while the loss has not moved, the changes of norms are small, and that of directions has its peak there
    data = rf.example("ML-F6").data
    net = rf.initialize(2, width=20, scheme="gaussian", scale=1e-6)
    run = rf.descend(rf.Problem(data, net, "exponential"), step=0.02, steps=4000, record=300)
    changes = np.array([rf.dynamics.change_measures(run.problem, k) for k in run.networks()])
    early = run.loss > 0.99 * run.loss[0]
    assert 10 < early.sum() < len(run) - 10
    # N is about 2 |x| q e^-q for the class being fitted: 0.01 where its loss has dropped by 1 %, e^-1 at its peak,
    # which is 2.7 %; when one of two classes drops the whole loss by 1 %, its own has dropped by about twice that.
    assert changes[early, 1].max() < 0.054 * changes[:, 1].max()
    assert changes[:, 2].argmax() in np.flatnonzero(early)


# -- alignment --------------------------------------------------------------------------------------------


def test_cosines_follow_the_sign_of_the_output():
    problem = random_problem(3)
    run = rf.descend(problem, step=0.1, steps=30, record=[0, 30])
    plus, minus = np.arange(1.0, 5.0), np.array([1.0, 0.0, -1.0, 2.0])
    found = run.measures.cosines(plus, minus)
    for k in range(len(run)):
        for j in range(run.p):
            v = plus if run.a[k, j] > 0 else minus
            w = run.W[k, j]
            assert found[k, j] == pytest.approx(w @ v / np.linalg.norm(w) / np.linalg.norm(v), abs=1e-14)
    groups = run.measures.group_cosines(plus, minus)
    for side, v in enumerate((plus, minus)):
        mean = run.W[-1][np.sign(run.a[-1]) == 1 - 2 * side].mean(axis=0)
        assert groups[-1, side] == pytest.approx(mean @ v / np.linalg.norm(mean) / np.linalg.norm(v), abs=1e-13)
    for wrong in (np.zeros(4), np.ones(3), [np.nan] * 4):
        with pytest.raises(rf.ProblemError, match="plus must be a non-zero vector with 4 entries"):
            run.measures.cosines(wrong, minus)


def test_neurons_align_with_the_class_sums_and_end_near_the_margin_directions():
    example = rf.example("ML-F6")
    data = example.data
    net = rf.initialize(2, width=30, log_scale=-30.0)
    run = rf.descend(rf.Problem(data, net, "exponential"), step=0.02, steps=20000, record=100)
    x_plus, x_minus = (data.X[data.y == s].sum(axis=0) for s in (1, -1))
    live = run.log_norms[-1] > -5
    aligned = run.measures.cosines(x_plus, x_minus)
    before = np.flatnonzero(run.loss > 0.99)[-1]
    # the class that is about to be fitted is aligned: its directions converge exponentially
    heavy = run.log_norms[before] > run.log_norms[before].max() - 3
    assert aligned[before, heavy].min() > 0.98
    limits = [solution.direction for solution in rf.margins.class_margins(data)]
    late = run.measures.cosines(*limits)
    assert late[-1, live].min() > 0.9
    assert np.nanmax(run.measures.group_angles[-1]) < 180


def test_group_angles():
    net = rf.Network([[1.0, 0.0], [1.0, 1.0], [1.0, -1e-9], [0.0, -2.0], [0.0, 0.0]], [1.0, 1.0, 1.0, -1.0, -1.0])
    run = rf.descend(rf.Problem(rf.Dataset([[1.0, 0.0]], [1]), net), step=0.1, steps=0)
    found = run.measures.group_angles
    assert found[0, 0] == pytest.approx(45.0 + math.degrees(1e-9), abs=1e-12)
    assert np.isnan(found[0, 1])
    close = rf.Network([[1.0, 0.0], [1.0, 1e-9]], [1.0, 1.0])
    run = rf.descend(rf.Problem(rf.Dataset([[1.0, 0.0]], [1]), close), step=0.1, steps=0)
    assert run.measures.group_angles[0, 0] == pytest.approx(math.degrees(1e-9), rel=1e-6)


# -- agreement --------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), p=st.integers(1, 5))
def test_agreement_is_its_definition(seed, n, p):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, 2)).astype(float)
    X[~X.any(axis=1)] = 1.0
    y = rng.choice([-1.0, 1.0], n)
    y = np.array([y[np.flatnonzero((x == X).all(axis=1))[0]] for x in X])
    data = rf.Dataset(X, y)
    net = rf.Network(rng.integers(-2, 3, (p, 2)).astype(float), rng.choice([-1.0, 1.0, 0.0], p, p=[0.45, 0.45, 0.1]))
    found = agreement(data, net)
    groups = [[j for j in range(p) if net.a[j] * s > 0] for s in (1, -1)]
    side = [[np.sign(net.W[j] @ x) for x in X] for j in range(p)]
    same = all(side[j][i] == side[g[0]][i] != 0 for g in groups for j in g for i in range(n))
    assert found.holds == same
    worst = max(
        [sum(u != v for u, v in zip(side[j], side[k], strict=True)) for g in groups for j in g for k in g] + [0]
    )
    assert found.disagreements == worst
    perfect = all(side[j][i] == s * y[i] for s, g in zip((1, -1), groups, strict=True) for j in g for i in range(n))
    assert found.perfect == perfect
    if same and any(groups):
        depth = min(abs(net.W[j] @ x) / np.linalg.norm(net.W[j]) for g in groups for j in g for x in X)
        assert found.beta == pytest.approx(depth, rel=1e-12)
    for share, s, g in zip((found.share_w, found.share_u), (1, -1), groups, strict=True):
        if g:
            assert share == np.mean([all(side[j][i] == s * y[i] for i in range(n)) for j in g])
        else:
            assert math.isnan(share)


def two_clouds(seed=0, n=40):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rf.Dataset(y[:, None] * [3.0, 0.0] + 0.5 * rng.standard_normal((n, 2)), y)


def test_training_enters_the_perfect_region_and_becomes_linear():
    # SBG: a leaky network with frozen second layer from small weights clusters into two directions
    net = rf.initialize(2, width=20, scheme="two-sign", scale=1e-4, slope=0.25)
    run = rf.descend(rf.Problem(two_clouds(), net, train="first"), "sgd", step=0.05, epochs=100, batch=1, record=80)
    entrance = run.measures.agreement_entrance(perfect=True)
    assert entrance is not None
    assert 0 < entrance < len(run) - 1
    for k in range(len(run)):
        found = agreement(run.problem.data, run.network(k))
        assert k < entrance or found.perfect
    assert not agreement(run.problem.data, run.network(entrance - 1)).perfect
    assert run.measures.agreement_entrance() == entrance
    train, test = run.measures.linear_fraction(), run.measures.linear_fraction(two_clouds(1).X)
    assert train[0] < 0.2
    assert train[-1] == 1.0
    assert test[-1] == 1.0
    assert (run.measures.linear_fraction(sharp=True) >= train).all()
    short = rf.descend(run.problem, step=0.05, steps=0)
    assert short.measures.agreement_entrance() is None


# -- one view of a run ------------------------------------------------------------------------------------


def test_a_run_has_one_view_and_every_snapshot_is_made_once(monkeypatch):
    run = rf.descend(random_problem(1), step=0.1, steps=20)
    made = []
    init = Network.__init__
    monkeypatch.setattr(Network, "__init__", lambda self, *args, **kw: (made.append(1), init(self, *args, **kw))[1])
    seen = run.measures
    assert isinstance(seen, Measures)
    assert run.measures is seen
    for _ in range(2):
        run.margins(), run.normalized_margin(), run.stable_rank(), run.cluster_radius()
        assert (len(seen.agreements), seen.log_output.size, run.final.p) == (len(run), len(run), run.p)
    assert len(made) == len(run)
    assert seen.margins is seen.margins
    assert len(list(run.networks())) == len(run)
    more = run.with_records([(float(run.log_time[3]) + 1e-3, run.network(3))])
    assert [more.network(k) is run.network(j) for k, j in ((3, 3), (5, 4), (-1, -1))] == [True] * 3
    assert len(made) == len(run)
    np.testing.assert_array_equal(np.delete(more.measures.margins, 4, axis=0), seen.margins)


def test_curves_that_are_handed_out_are_copies():
    run = rf.descend(random_problem(2), step=0.1, steps=3)
    for name in ("margins", "normalized_margin", "smoothed_margin", "stable_rank", "balance_drift", "cluster_radius"):
        before = getattr(run.measures, name).copy()
        getattr(run, name)()[:] = -7.0
        np.testing.assert_array_equal(getattr(run.measures, name), before)


def test_views_of_two_runs_have_nothing_in_common():
    # Runs of equal length, made and thrown away: nothing may remember one for another.
    problem = random_problem(4)
    for step in (0.05, 0.1, 0.2) * 3:
        run = rf.descend(problem, step=step, steps=5)
        np.testing.assert_allclose(run.measures.q_min, [net.margins(problem.data).min() for net in run.networks()])
        assert run.measures.run is run


def test_outputs_at_unit_norm_are_those_of_the_normalised_network():
    problem = random_problem(7, slope=0.2)
    for train in ("both", "first"):
        expected = problem.net.normalized(train).outputs(problem.data.X)
        np.testing.assert_array_equal(problem.net.normalized_outputs(problem.data.X, train), expected)
    run = rf.descend(problem, step=0.1, steps=3)
    target = run.final.normalized().outputs(problem.data.X)
    assert run.measures.output_error(target) == 0.0
    assert run.measures.output_error(2 * target) == pytest.approx(0.5)


# -- the late run ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def late_run():
    net = rf.Network.balanced([[1, 0.1], [0.2, 2], [-1, 1.1], [1, -2.2]], [1, 1, -1, -1], log_scale=-30.0)
    return rf.flow(rf.Problem(rf.dataset("EX1"), net), {"log_time": 300.0})


def test_settled_is_when_the_classes_share_their_loss_as_in_the_limit(late_run):
    seen, data = late_run.measures, late_run.problem.data
    solutions = rf.margins.class_margins(data)
    far = np.zeros(len(late_run))
    for members, solution in zip((data.positives, data.negatives), solutions, strict=True):
        share = np.exp(-late_run.margins()[:, members])
        share /= share.sum(axis=1, keepdims=True)
        far = np.maximum(far, np.abs(share - solution.dual[members] / solution.dual.sum()).sum(axis=1) / 2)
    found = seen.settled(solutions)
    half = late_run.log_time <= late_run.log_time[-1] / 2
    assert far[half & (late_run.log_time >= found)].max() <= 0.1
    before = np.flatnonzero(late_run.log_time < found)
    assert seen.late[0] > before[-1] or far[before[-1]] > 0.1
    # With multipliers that are never approached it is not seen at all.
    wrong = [replace(one, dual=np.where(one.dual > 0, 0.0, 1.0)) for one in solutions]
    assert seen.settled(tuple(wrong)) == math.inf


def test_a_run_is_evaluated_between_its_records_wherever_it_comes_from(late_run, tmp_path):
    late_run.save(tmp_path / "run.npz")
    again = rf.Trajectory.load(tmp_path / "run.npz")
    copied = pickle.loads(pickle.dumps(late_run))
    assert (late_run.early is not None, again.early, copied.early) == (True, None, None)
    early_end = late_run.phases[0].log_end
    for log_time in (early_end - 0.5, early_end + 0.3, 200.0):
        here = late_run.at(log_time=log_time)
        for other in (again, copied):
            # In the coupled phase it has its polynomials, and is integrated again where they were not kept.
            kept = 0.0 if log_time != early_end + 0.3 else late_run.settings["rtol"]
            np.testing.assert_allclose(other.at(log_time=log_time).directions, here.directions, rtol=0, atol=kept)
        k = int(np.searchsorted(late_run.log_time, log_time)) - 1
        # Other methods have no flow between records: the one before is taken.
        assert replace(late_run, method="gd").at(log_time=log_time) == late_run.network(k)
        assert here != late_run.network(k)


def test_a_solved_early_phase_is_used(late_run):
    problem = late_run.problem
    early = rf.align(problem)
    given = rf.limit(problem, alignment=early, optimum=False)
    assert given.trajectory.early is early
    assert given.margin == rf.limit(problem, optimum=False).margin
    with pytest.raises(rf.ProblemError, match="belongs to another problem"):
        rf.limit(problem.replace(loss="exponential"), alignment=early)
