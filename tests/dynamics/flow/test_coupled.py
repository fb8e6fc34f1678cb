"""The coupled phase: arcs, events, accuracy, looking between records, coarse answers."""

import json
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from helpers.draws import drawn, error, log_time_of, weights
from helpers.restart import Restarting
from reluflow.dynamics.flow import adams, desk
from reluflow.dynamics.flow.field import Geometry
from reluflow.dynamics.flow.pulls import LOSSES, fall, log_loss, pull
from reluflow.dynamics.flow.roots import first_root
from reluflow.dynamics.flow.state import take
from reluflow.dynamics.flow.stepper import _clear

#: Events of another stepper, which began anew at every crossing, at rtol 1e-10: neuron -> [log time, sample, kind].
#: Flows that come to rest are left out: there a neuron is let go and caught again by rounding.
RECORDED = json.loads((Path(__file__).parent / "events.json").read_text())


# -- roots -----------------------------------------------------------------------------------------------


@numba.njit
def _first(c, reach, skip, tiny):
    return first_root(c, c.size - 1, reach, skip, tiny)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.floats(0.1, 2.0))
def test_the_first_root_is_that_of_numpy(coefficients, reach):
    c = np.array([1.0, *coefficients])
    if np.abs(c[-1]) < 1e-3:
        return
    roots = np.roots(c[::-1])
    real = np.sort(roots.real[np.abs(roots.imag) < 1e-9])
    close = np.diff(np.sort(roots.real[np.abs(roots.imag) < 0.2]))
    if (close < 0.3).any() or (np.abs(real - reach) < 1e-6).any():  # near-double roots are dips: see the next test
        return
    inside = real[(real > 1e-9) & (real < reach)]
    found = _first(c, reach, False, 0.0)
    if inside.size == 0:
        assert found == -1.0
    else:
        assert found == pytest.approx(inside[0], abs=1e-9)


@pytest.mark.parametrize("depth", [1e-2, 1e-4])
@pytest.mark.parametrize("where", [0.11, 0.37, 0.83])
def test_a_dip_below_zero_is_found(depth, where):
    c = np.array([where**2 - depth**2, -2 * where, 1.0])  # roots where -+ depth
    assert _first(c, 1.0, False, 0.0) == pytest.approx(where - depth, abs=1e-12)


@pytest.mark.parametrize("depth", [1e-4, 1e-6])
@pytest.mark.parametrize("where", [0.11, 0.37, 0.83])
def test_a_shallow_dip_of_a_lopsided_polynomial_is_found(depth, where):
    dip = np.array([where**2 - depth**2, -2 * where, 1.0])
    c = np.convolve(dip, [1.0, 5.0, 7.0])  # positive on the right
    assert _first(c, 1.0, False, 0.0) == pytest.approx(where - depth, abs=1e-8)
    above = np.convolve(dip + np.array([2 * depth**2, 0.0, 0.0]), [1.0, 5.0, 7.0])
    assert _first(above, 1.0, False, 0.0) == -1.0


def test_a_root_at_the_start_can_be_left_out():
    c = np.array([0.0, 1.0, -2.0])  # x - 2 x^2
    assert _first(c, 1.0, True, 1e-12) == pytest.approx(0.5)
    assert _first(np.array([0.0, -1.0, 3.0]), 1.0, True, 1e-12) == 0.0
    assert _first(np.array([0.0, 1e-14, -1.0]), 1.0, True, 1e-12) == 0.0  # after leaving: the slope vanishes too


# -- events ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_events_are_those_of_a_stepper_that_begins_anew_at_each(part):
    for seed in list(RECORDED)[part::4]:
        run = rf.flow(drawn(int(seed)), {"log_time": log_time_of(int(seed))}, rtol=1e-9, progress=False)
        recorded = RECORDED[seed]["events"]
        for j in range(run.p):
            mine = run.events[run.events["neuron"] == j]
            theirs = recorded.get(str(j), [])
            assert sorted(mine["kind"].tolist()) == sorted(kind for _, _, kind in theirs), (seed, j)
            order = np.argsort(mine["log_time"], kind="stable")
            np.testing.assert_allclose(mine["log_time"][order], sorted(t for t, _, _ in theirs), atol=2e-4)
            assert sorted(mine["sample"].tolist()) == sorted(i for _, i, _ in theirs), (seed, j)


def test_two_hundred_points_are_crossed_without_shortening_steps():
    data = rf.make("phuong", n=200, d=10, seed=0)
    run = rf.flow(rf.Problem(data, rf.initialize(10, 40, "he", 0.1, seed=0)), {"loss": 1e-2}, rtol=1e-6)
    assert run.events.size > 1000
    assert sum(phase.steps for phase in run.phases) < run.events.size / 4
    q = run.final.margins(data)
    assert run.problem.log_loss_of(q) == pytest.approx(np.log(1e-2), abs=1e-9)


# -- accuracy --------------------------------------------------------------------------------------------


def taught(n, d):
    """Fifty neurons before Gaussian points that a linear teacher has labelled."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    data = rf.Dataset(X, np.sign(X @ rng.standard_normal(d)))
    return rf.Problem(data, rf.initialize(d, 50, "he", 0.1, seed=0))


@pytest.mark.parametrize("seed", [3, 16, 29, 66, 197])
@pytest.mark.parametrize("rtol", [1e-5, 1e-7])
def test_the_error_is_within_the_tolerance(seed, rtol):
    problem = drawn(seed)
    loss = float(problem.log_loss(problem.net)) - 0.7  # half of what it is at the start
    exact = rf.flow(problem, {"log_loss": loss, "log_time": 8.0}, rtol=1e-11, progress=False)
    run = rf.flow(problem, {"log_loss": loss, "log_time": 8.0}, rtol=rtol, progress=False)
    assert error(exact.final, run.final) <= 10 * rtol


def test_a_face_that_is_touched_between_two_ends_on_one_side_is_seen():
    # A neuron meets a face, slides on it, and is driven back by another one, all within a step: the ends of the step do
    # not tell. Seen too late or not at all, it was 90 times the tolerance off.
    problem = taught(200, 10)
    exact = rf.flow(problem, {"log_time": 3.4}, rtol=1e-10, progress=False)
    for rtol in (1e-6, 1e-8):
        run = rf.flow(problem, {"log_time": 3.4}, rtol=rtol, progress=False)
        assert error(exact.final, run.final) <= 3 * rtol


def test_a_force_along_a_hyperplane_does_not_lead_off_it():
    # x_1 and x_2 are orthogonal: with x_2 alone a neuron on the hyperplane of x_1 stays there, to rounding, until it
    # loses x_2. Rounding of other signs let 15 of these 300 go before. Now one does, where it adds up to more.
    X = np.array([[1.0, 1, 0, -2, 0, 1], [0, 0, -3, -1, -2, -2]])
    data, rng, gone = rf.Dataset(X, [-1.0, -1.0]), np.random.default_rng(0), 0
    for _ in range(300):
        w = rng.standard_normal(6)
        z = X @ w
        w -= np.linalg.pinv(X) @ (z - np.abs(z) * [0.3, 1.5])
        problem = rf.Problem(data, rf.Network(w[None] / 2, [1.0]), train="first")
        run = rf.flow(problem, {"log_time": 4.0}, rtol=1e-7, progress=False)
        told = [(str(event["kind"]), int(event["sample"])) for event in run.events]
        first = told[0][1]  # a neuron that comes to the hyperplane of x_2 first is let go when it loses x_1
        gone += told != [("slide", first), ("deactivate", first), ("deactivate", 1 - first)]
    assert gone <= 5


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_neurons_that_meet_nothing_go_through_the_predictor_once(slope):
    # So large that paths without events go through a product of matrices; the others are seen from where those end.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((320, 10))
    y = np.sign(np.maximum(X @ rng.standard_normal((10, 3)), 0).sum(axis=1) - 1.2)
    net = rf.initialize(10, width=40, scheme="he", scale=0.03, seed=3, slope=slope)
    problem = rf.Problem(rf.Dataset(X, y), net)
    coarse, fine = (rf.flow(problem, {"loss": 0.2}, rtol=rtol, progress=False) for rtol in (1e-5, 1e-9))
    assert len(fine.events) > 500
    names = ["neuron", "sample", "kind"]
    np.testing.assert_array_equal(np.sort(coarse.events[names]), np.sort(fine.events[names]))
    assert error(coarse.final, fine.final) < 3e-5


@numba.njit
def _share(desk, bent):
    return _clear(desk, bent)


@pytest.mark.parametrize("bent", [0.3, 0.7, 3.0, 1e4, 1e9])
def test_a_step_that_bends_make_too_long_ends_where_they_are_half_of_what_they_may_be(bent):
    problem = rf.Problem(rf.make("linsep", n=12, d=3), rf.initialize(3, width=8, seed=1))
    fixed = desk.fixed_of(Geometry(problem), 1e-6)
    table, rng = desk.new_desk(fixed, problem.net.W.copy(), problem.net.a.copy()), np.random.default_rng(0)
    when, force = rng.uniform(0.3, 0.9, 8), rng.standard_normal((8, 3))
    table.guess.n[:], table.guess.when[:, 0], table.moments[0, 0] = rng.integers(0, 2, 8), when, force
    met = table.guess.n > 0

    def bends(part):
        return float((np.linalg.norm(force, axis=1) * np.maximum(part - when, 0) ** 2)[met].sum())

    part = _share(table, bent)
    if bent < 0.5:
        assert part == pytest.approx(1.0)
    else:
        assert when[met].min() < part < 1
        assert bent * bends(part) == pytest.approx(0.5 * bends(1.0), rel=1e-4 * np.sqrt(bent))


@pytest.mark.parametrize("rtol", [1e-6, 1e-8])
def test_a_neuron_that_tends_to_a_hyperplane_passes_it_in_time(rtol):
    # In the early phase the neuron comes nearer to the hyperplane of the second point for ever; outputs far below rtol
    # decide when it passes.
    data = rf.Dataset([[3.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1, 1, -1])
    problem = rf.Problem(data, rf.Network.balanced([[1.0, 0.5]], [1], log_scale=-15.0))
    assert rf.align(problem).n_events[0] == 0
    run = rf.flow(problem, {"log_time": 4.2}, rtol=rtol, progress=False)
    assert run.events["kind"].tolist() == ["deactivate", "slide"]
    W, a = Restarting(problem).run(float(np.exp(4.2)))
    assert np.abs(weights(run.final) - np.column_stack([W, a])).max() < rtol


@pytest.mark.parametrize("tight", [1e-6, 1e-10])
def test_implicit_steps_are_not_taken_for_accuracy(tight):
    # Explicit steps are short at fine tolerances because they have to be exact, and implicit ones would be shorter.
    problem = taught(20, 2)
    run = rf.flow(problem, {"loss": 0.01}, rtol=tight, progress=False)
    assert {phase.name for phase in run.phases} == {"coupled"}


@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_late_errors_are_within_the_tolerance(rtol):
    problem = taught(20, 2)
    exact = rf.flow(problem, {"log_time": 300.0}, rtol=1e-10, progress=False)
    run = rf.flow(problem, {"log_time": 300.0}, rtol=rtol, progress=False)
    assert run.phases[-1].name == "late"
    assert error(exact.final, run.final) <= 3 * rtol


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_changes_nothing(threads, monkeypatch):
    data = rf.make("phuong", n=60, d=6, seed=1)
    problem = rf.Problem(data, rf.initialize(6, 20, "he", 0.1, seed=0))
    alone = rf.flow(problem, {"loss": 0.1}, rtol=1e-6)
    monkeypatch.setattr(adams, "threads", lambda: threads)
    monkeypatch.setattr(adams, "_THREADS", 0)
    other = rf.flow(problem, {"loss": 0.1}, rtol=1e-6)
    np.testing.assert_array_equal(other.W, alone.W)


def test_samples_that_no_side_feels_do_not_drown_the_others():
    # Opposite points share a face; one is lost for ever with force 1/2, the other pulls with e^-40 in the end.
    data = rf.Dataset([[1.0, 0.3], [-1.0, -0.3]], [1, 1])
    run = rf.flow(rf.Problem(data, rf.Network.balanced([[1.0, 0.2]], [1])), {"log_time": 14.0}, rtol=1e-8)
    assert run.final.margins(data)[0] == pytest.approx(14.0, abs=3.0)
    one = rf.flow(
        rf.Problem(data.subset([0]), run.problem.net, reduction="sum"), {"log_time": 14.0 - np.log(2)}, rtol=1e-8
    )
    assert error(one.final, run.final) < 1e-6


def test_curvature_is_the_derivative_of_the_force():
    q, h = np.linspace(-12.0, 12.0, 49), 1e-4
    for name in ("logistic", "exponential"):
        loss = rf.Loss(name)
        slope = (loss.force(q - h) - loss.force(q + h)) / (2 * h)
        np.testing.assert_allclose(loss.curvature(q), slope, rtol=1e-7, atol=1e-11)
    far = np.linspace(-700.0, 700.0, 57)
    force = rf.Loss("logistic").force
    np.testing.assert_allclose(rf.Loss("logistic").curvature(far), force(far) * force(-far), rtol=1e-14)


@pytest.mark.parametrize("name", ["logistic", "exponential"])
def test_compiled_losses_are_those_of_the_problem(name):
    kind, loss = LOSSES[name], rf.Loss(name)
    q = np.concatenate([np.linspace(-30.0, 60.0, 181), [-600.0, 300.0, 700.0]])

    @numba.njit
    def each(q):
        found = np.empty((2, q.size))
        for i in range(q.size):
            found[0, i], found[1, i] = pull(kind, q[i]), fall(kind, q[i])
        return found

    @numba.njit
    def whole(q):
        return log_loss(kind, 1.0 / q.size, np.ones(q.size), q)

    np.testing.assert_allclose(each(q), [loss.force(q), loss.curvature(q)], rtol=1e-14)
    data = rf.Dataset(np.ones((q.size, 1)), np.ones(q.size))
    problem = rf.Problem(data, rf.Network([[1.0]], [1.0]), loss=name)
    for part in (q, q[-2:]):
        alone = rf.Problem(data.subset(range(part.size)), problem.net, loss=name)
        assert whole(part) == pytest.approx(alone.log_loss_of(part), rel=1e-13)


@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("mirrored", [False, True])
def test_bends_are_the_jumps_of_the_slopes_of_the_outputs(slope, mirrored):
    """Neurons pass faces within a step, some of them several: every output bends as the moments say."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((7, 3))
    X = np.vstack([X, -X[:3]]) if mirrored else X
    data = rf.Dataset(X, rng.choice([-1.0, 1.0], len(X)))
    geometry = Geometry(rf.Problem(data, rf.initialize(3, 12, "gaussian", 0.5, seed=2, slope=slope)))
    state, _ = take(geometry, geometry.problem.net)
    stepper = adams.Adams(geometry, state, np.ones(12, dtype=bool), 1e-4)
    seen = strong = 0
    for _ in range(40):
        stepper.advance(1, np.inf, np.inf, np.inf)  # whatever the loss: a trial that is to be looked at
        h = float(stepper.desk.now.h)
        when = np.sort(np.concatenate([stepper.events().clock - stepper.t, [0.0, h]])) / h
        stepper.cut(1.0)
        slopes = -geometry.problem.weight * geometry.problem.loss.curvature(data.y * stepper.trial_f)
        told = stepper.desk.bends[:3].copy() if stepper.desk.now.bent else np.zeros((3, data.n))
        gaps, seen = np.diff(when), seen + when.size - 2
        if when.size > 2 and gaps.min() > 0.02:
            jumps = np.array([_jump(stepper, t, 0.002) for t in when[1:-1]])
            largest = np.abs(jumps).max()
            for power in range(3):
                expected = when[1:-1] ** power @ jumps
                np.testing.assert_allclose(told[power] / slopes, expected, atol=3e-3 * largest + 3e-6)
            strong += largest > 1e-3
            stepper.cut(1.0)
        stepper.take()
    assert seen > 5
    assert strong >= 3


@pytest.mark.parametrize("slope", [0.0, 0.3])
@pytest.mark.parametrize("rtol", [1e-5, 1e-9])
def test_bends_in_single_precision_are_good_enough(slope, rtol, monkeypatch):
    """Large problems have them so; what they leave is far below the tolerance, also where points cancel."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((9, 3))
    data = rf.Dataset(np.vstack([X, -X[:4]]), rng.choice([-1.0, 1.0], 13))
    problem = rf.Problem(data, rf.initialize(3, 30, "gaussian", 0.3, seed=1, slope=slope))
    exact = rf.flow(problem, {"time": 20.0}, rtol=1e-12, progress=False)
    plain = rf.flow(problem, {"time": 20.0}, rtol=rtol, progress=False)
    monkeypatch.setattr(desk, "_LARGE", 0)
    rough = rf.flow(problem, {"time": 20.0}, rtol=rtol, progress=False)
    assert not np.array_equal(rough.W, plain.W)  # it was another way
    # Which of two neurons is first may be within the tolerance; what happens to each is not.
    assert sorted(tuple(e)[1:] for e in rough.events) == sorted(tuple(e)[1:] for e in exact.events)
    assert len(exact.events) > 20
    assert np.abs(rough.directions[-1] - exact.directions[-1]).max() <= rtol
    assert np.abs(rough.log_norms[-1] - exact.log_norms[-1]).max() <= rtol


def _jump(stepper, at, delta):
    """Jump of the slopes of the outputs at a moment of a trial: differences, extrapolated to none."""
    found = []
    for width in (delta, delta / 2):
        f = []
        for part in (at - width, at, at + width):
            stepper.cut(part)
            f.append(stepper.trial_f)
        found.append((f[2] - 2 * f[1] + f[0]) / width)
    return 2 * found[1] - found[0]


# -- between records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [7, 25, 59])
def test_between_records_the_polynomials_are_evaluated(seed, monkeypatch):
    problem, rtol = drawn(seed), 1e-7
    run = rf.flow(problem, {"log_time": 1.0}, rtol=rtol, progress=False)
    begin, end = next((phase.log_start, phase.log_end) for phase in run.phases if phase.name == "coupled")
    times = np.linspace(max(begin, -2.0), end, 7)[1:-1]
    stopped = [rf.flow(problem, {"log_time": float(t)}, rtol=rtol, progress=False).final for t in times]
    from reluflow.dynamics.flow import march

    def never(*_):
        raise AssertionError("it was integrated again")

    monkeypatch.setattr(march.March, "_step", never)
    for t, net in zip(times, stopped, strict=True):
        assert error(net, run.at(log_time=float(t))) < 30 * rtol
    before = int(np.searchsorted(run.log_time, times[2])) - 1
    assert run.at(log_time=float(run.log_time[before])) == run.network(before)


# -- coarse answers --------------------------------------------------------------------------------------


def test_coarse_answers_locate_no_events_and_say_so():
    data = rf.make("phuong", n=50, d=5, seed=0)
    problem = rf.Problem(data, rf.initialize(5, 20, "he", 0.1, seed=0))
    coarse = rf.flow(problem, {"loss": 0.05}, rtol=1e-2, progress=False)
    fine = rf.flow(problem, {"loss": 0.05}, rtol=1e-8, progress=False)
    assert coarse.events.size == 0 < fine.events.size
    assert "not located" in coarse.settings["events"]
    assert "events" not in fine.settings
    assert coarse.loss[-1] == pytest.approx(0.05, rel=1e-6)
    size = np.linalg.norm(fine.W[-1])
    assert np.linalg.norm(coarse.W[-1] - fine.W[-1]) < 0.1 * size
    later = rf.flow(problem, {"log_time": 1e4}, rtol=1e-2, progress=False)  # on to the late phase
    assert later.normalized_margin()[-1] > 0.95 * rf.flow(problem, {"log_time": 1e4}).normalized_margin()[-1]


def test_the_limit_is_never_coarse():
    problem = rf.Problem(rf.make("phuong", n=10, d=3, seed=0), rf.initialize(3, 6, "he", 0.1, seed=0))
    with pytest.raises(rf.ProblemError, match=r"between 1e-12 and 0\.001"):
        rf.limit(problem, rtol=1e-2)
    assert "events" not in rf.limit(problem, rtol=1e-3, optimum=False).trajectory.settings
