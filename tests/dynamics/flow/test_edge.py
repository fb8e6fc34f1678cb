"""The flow at the edges: scales, widths, degenerate data, bad input, saving and reading back."""

import numpy as np
import pytest

import reluflow as rf
from helpers.draws import drawn, error

EX1 = rf.example("EX1").data


def problem(net, data=EX1, **options):
    return rf.Problem(data, net, **options)


# -- scales and widths ---------------------------------------------------------------------------------


@pytest.mark.parametrize("log_scale", [-3000.0, np.log(1e-300), np.log(1e-6)])
def test_tiny_scales_have_an_early_phase_and_fit(log_scale):
    net = rf.initialize(2, 6, "balanced", log_scale=log_scale, seed=0)
    run = rf.flow(problem(net), {"loss": 1e-6})
    assert [phase.name for phase in run.phases][:2] == ["early", "coupled"]
    assert run.log_loss[-1] == pytest.approx(np.log(1e-6), abs=1e-6)
    # Growth by e^-log_scale at rates |x_+-|/8 takes the time of the slower class: the clock of the early phase.
    assert run.time[-1] > -log_scale / (0.125 * 5.3150729064)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_ordinary_scales_have_none(scale):
    run = rf.flow(problem(rf.initialize(2, 6, "balanced", scale, seed=0)), {"log_time": 2000})
    assert run.phases[0].name == "coupled"
    assert (np.diff(run.log_loss) <= 1e-12).all()
    assert run.log_time[-1] == pytest.approx(2000)


def test_large_start_waits_until_forces_of_e_minus_thousands_matter():
    # q = 10^4 and more: nothing moves before log t is of that size.
    net = rf.Network.balanced([[100.0, 50.0], [-60.0, -80.0]], [1, -1])
    p = problem(net)
    low = net.margins(EX1).min()
    early = rf.flow(p, {"log_time": low / 2})
    assert early.W[-1] == pytest.approx(net.weights()[0], rel=1e-12)
    late = rf.flow(p, {"log_time": 100 * low})
    assert late.final.margins(EX1).min() == pytest.approx(100 * low, rel=1e-2)
    assert late.normalized_margin()[-1] > early.normalized_margin()[-1]


def test_one_neuron_and_one_sample():
    # q = a w for |a| = |w|: w' = w / (1 + e^q), so d(q)/dt = 2 q / (1 + e^q).
    run = rf.flow(rf.Problem(rf.Dataset([[1.0]], [1]), rf.Network([[0.5]], [0.5])), {"time": 3.0})
    from scipy.integrate import solve_ivp

    q = solve_ivp(lambda _t, q: 2 * q / (1 + np.exp(q)), (0, 3), [0.25], rtol=1e-12, atol=1e-13).y[0, -1]
    assert run.final.margins(run.problem.data)[0] == pytest.approx(q, rel=1e-9)


def test_two_thousand_neurons():
    net = rf.initialize(2, 2000, "balanced", 1e-12, seed=0)  # small enough that all turning is early
    run = rf.flow(problem(net), {"log_time": 1e4})
    assert run.normalized_margin()[-1] == pytest.approx(0.5840985669, rel=1e-3)


def test_sizes_far_apart_in_one_network():
    # One neuron of each class at e^-10, one at e^-2000: the latter follow, and change nothing.
    net = rf.Network.balanced(
        [[1.0, 0.5], [-1.0, -0.5], [0.3, 1.0], [-0.2, -1.0]],
        [1, -1, 1, -1],
        log_scale=np.array([-10, -10, -2000, -2000]),
    )
    run = rf.flow(problem(net), {"log_time": 50})
    alone = rf.flow(problem(rf.Network.balanced(net.W[:2], [1, -1], log_scale=-10)), {"log_time": 50})
    assert run.final.log_norms[:2] == pytest.approx(alone.final.log_norms, abs=1e-7)
    assert (run.final.log_norms[2:] < -1900).all()
    assert (run.final.log_norms[2:] > net.log_norms[2:]).all()  # they grow by as much as the large ones of their class
    assert run.final.directions[2] @ run.final.directions[0] > 0.99


# -- degenerate data -----------------------------------------------------------------------------------


def test_all_neurons_dead():
    net = rf.Network.balanced([[-1.0, -1.0]], [1])
    data = EX1.subset(EX1.positives)
    run = rf.flow(problem(net, data), {"log_time": 1e6})
    assert run.phases[-1].name == "rest"
    assert run.log_time[-1] == 1e6
    assert run.log_loss[-1] == pytest.approx(np.log(np.log(2)))
    assert run.W[-1] == pytest.approx(np.array([[-1.0, -1.0]]), rel=1e-15)


def test_nothing_slides_on_strictly_orthogonally_separable_data():
    # ML-MON: each neuron changes at most n times; one that leaves its last sample is dead, and does not slide.
    data = rf.example("ML-F6").data
    run = rf.flow(rf.Problem(data, rf.initialize(2, 100, "balanced", 1e-6, seed=0)), {"log_time": 1e3})
    assert set(run.events["kind"].tolist()) == {"activate", "deactivate"}
    assert np.bincount(run.events["neuron"]).max() <= data.n


def test_a_goal_never_reached_is_said():
    net = rf.Network.balanced([[-1.0, -1.0]], [1])
    with pytest.raises(rf.Undecided, match="comes to rest") as caught:
        rf.flow(problem(net, EX1.subset(EX1.positives)), {"loss": 1e-3})
    assert isinstance(caught.value.partial, rf.Trajectory)


def test_a_loss_below_the_floor_is_said():
    # No negative neuron: the negative class is never fitted.
    net = rf.initialize(2, 4, "balanced", 0.1, seed=0, signs=[1, 1, 1, 1])
    with pytest.raises(rf.Undecided, match="not reached by log t"):
        rf.flow(problem(net), {"loss": 0.1})


def test_one_class_missing():
    net = rf.initialize(2, 10, "balanced", 1e-6, seed=0)
    run = rf.flow(problem(net, EX1.subset(EX1.positives)), {"log_time": 1e5})
    assert run.normalized_margin()[-1] == pytest.approx(1 / (2 * 0.4714045208), rel=1e-4)


def test_contradicting_labels_come_to_rest():
    # f(2) = 2 f(1) for positive x: with labels + and - the loss has its minimum at a finite f.
    from scipy.optimize import minimize_scalar

    data = rf.Dataset([[1.0], [2.0]], [1, -1])
    run = rf.flow(problem(rf.Network.balanced([[1.0], [0.3]], [1, -1]), data), {"log_time": 1e6})
    assert run.phases[-1].name == "rest"
    best = minimize_scalar(lambda f: np.logaddexp(0, -f) + np.logaddexp(0, 2 * f), tol=1e-12)
    assert run.final.outputs([[1.0]])[0] == pytest.approx(best.x, abs=1e-7)
    assert run.loss[-1] == pytest.approx(best.fun / 2, rel=1e-12)


def test_data_that_cannot_be_fitted_run_for_a_given_time():
    data = rf.Dataset([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1]], [1, -1, -1])
    net = rf.initialize(2, 2, "balanced", 0.1, seed=0, signs=[1, -1])
    run = rf.flow(problem(net, data), {"time": 100.0})
    assert run.time[-1] == pytest.approx(100.0)
    assert (np.diff(run.log_loss) < 1e-12).all()


def test_zero_neurons_stay():
    net = rf.Network([[1.0, 0.0], [0.0, 0.0]], [1.0, 0.0])
    run = rf.flow(problem(net), {"time": 2.0})
    assert (run.W[-1, 1] == 0).all()
    assert run.a[-1, 1] == 0


def test_duplicated_points_and_mirrored_points():
    # Points on one line share their hyperplane; doubling all of them is the same as the sum instead of the mean.
    X, y = np.array([[1.0, 0.2], [0.4, 1.0], [-1.0, -0.2]]), np.array([1, -1, 1])
    net = rf.initialize(2, 6, "balanced", 0.1, seed=3, slope=0.2)
    one = rf.flow(rf.Problem(rf.Dataset(X, y), net), {"time": 20.0}).final
    two = rf.flow(rf.Problem(rf.Dataset(np.vstack([X, X]), np.tile(y, 2)), net), {"time": 20.0}).final
    assert two.directions == pytest.approx(one.directions, abs=1e-8)
    assert two.log_norms == pytest.approx(one.log_norms, abs=1e-8)


def test_valley_and_ridge_starts():
    # x = (1, 0): with label -1 and s = +1 both sides of x^perp push towards... the inactive side rests (dead); a second
    # sample pulls it along. With label +1 it is a ridge.
    data = rf.Dataset([[1.0, 1.0], [2.0, 0.0]], [1, -1])
    net = rf.Network.balanced([[0.0, 1.0]], [1])
    run = rf.flow(rf.Problem(data, net), {"time": 1.0})
    assert run.final.directions[0] == pytest.approx([0.0, 1.0], abs=1e-15)  # slides along (0, 1), as in the early phase
    assert "ridge" not in run.events["kind"]
    both = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1, 1])
    run = rf.flow(rf.Problem(both, rf.Network.balanced([[0.0, 1.0]], [1], 0.5)), {"time": 1.0})
    assert "ridge" in run.events["kind"]


# -- the result ----------------------------------------------------------------------------------------


def test_at_agrees_with_a_run_that_stops_there():
    p = rf.Problem(rf.make("linsep", n=20, d=3, seed=1), rf.initialize(3, 10, "balanced", 1e-5, seed=1, slope=0.2))
    run = rf.flow(p, {"log_time": 1e3})
    for log_t in (1.0, 3.0, 4.5, 20.0, 500.0):
        there = run.at(log_time=log_t)
        stopped = rf.flow(p, {"log_time": log_t}).final
        assert there.log_norms == pytest.approx(stopped.log_norms, abs=1e-8)
        assert there.directions == pytest.approx(stopped.directions, abs=1e-8)
    assert (run.at(time=0).W == run.network(0).W).all()
    with pytest.raises(rf.ProblemError, match="outside the run"):
        run.at(log_time=1001)
    with pytest.raises(rf.ProblemError, match="either"):
        run.at()


def test_saved_and_read_back(tmp_path):
    p = rf.Problem(EX1, rf.initialize(2, 4, "balanced", 1e-6, seed=0))
    run = rf.flow(p, {"log_time": 30})
    run.save(tmp_path / "run.npz")
    again = rf.Trajectory.load(tmp_path / "run.npz")
    for name in ("log_time", "log_loss", "directions", "log_norms", "log_outs", "signs", "events"):
        assert (getattr(again, name) == getattr(run, name)).all()
    assert again.phases == run.phases
    assert again.problem.fingerprint() == run.problem.fingerprint()
    assert again.at(log_time=10).log_norms == pytest.approx(run.at(log_time=10).log_norms, abs=1e-12)
    (tmp_path / "other.npz").write_bytes(b"nothing")
    with pytest.raises(rf.ProblemError, match="cannot be read"):
        rf.Trajectory.load(tmp_path / "other.npz")


def test_to_xarray():
    run = rf.flow(rf.Problem(EX1, rf.initialize(2, 4, "balanced", 1e-2, seed=0)), {"time": 5.0})
    table = run.to_xarray()
    assert table.sizes["record"] == len(run)
    assert float(table.log_loss[-1]) == run.log_loss[-1]


def test_quantities_have_their_definitions():
    run = rf.flow(rf.Problem(EX1, rf.initialize(2, 4, "balanced", 0.1, seed=0)), {"time": 20.0})
    net = run.final
    assert run.margins()[-1] == pytest.approx(net.margins(EX1))
    assert run.normalized_margin()[-1] == pytest.approx(net.normalized_margin(EX1))
    assert run.smoothed_margin()[-1] == pytest.approx(rf.margins.smoothed_margin(EX1, net))
    assert run.stable_rank()[-1] == pytest.approx(rf.margins.stable_rank(net))
    assert run.log_norm[-1] == pytest.approx(net.log_norm())
    assert run.log_loss[-1] == pytest.approx(run.problem.log_loss(net))
    W = run.W[-1]
    groups = [W[net.a > 0], W[net.a < 0]]
    radius = max(np.linalg.norm(g - g.mean(axis=0), axis=1).max() for g in groups if len(g))
    assert run.cluster_radius()[-1] == pytest.approx(radius / np.linalg.norm(W))


@pytest.mark.parametrize(
    "until", [{"time": 3.0}, {"log_time": 20.0}, {"loss": 0.1}, {"margin": 7.5}, {"log_loss": -40.0}]
)
def test_stops_where_it_is_told(until):
    run = rf.flow(rf.Problem(EX1, rf.initialize(2, 4, "balanced", 0.1, seed=0, signs=[1, -1, 1, -1])), until)
    ((name, value),) = until.items()
    got = {
        "time": run.time[-1],
        "log_time": run.log_time[-1],
        "loss": run.loss[-1],
        "log_loss": run.log_loss[-1],
        "margin": run.margins()[-1].min(),
    }
    assert got[name] == pytest.approx(value, rel=1e-7)


_STARTS = {  # where a run may end: in the early, the coupled and the late phase, at rest
    "early": rf.initialize(2, 3, "balanced", log_scale=-300.0, seed=0),
    "small": rf.initialize(2, 3, "balanced", 0.1, seed=1),
    "unbalanced": rf.initialize(2, 3, "he", seed=2),
    "leaky": rf.initialize(2, 3, "balanced", 1.0, seed=3, slope=0.3),
    "dead": rf.Network([[0.0, 0.0]], [1.0]),
}


@pytest.mark.parametrize("start", _STARTS)
def test_the_end_is_the_goal_to_the_last_digit(start):
    p = problem(_STARTS[start])
    draw = np.random.default_rng(sorted(_STARTS).index(start)).uniform
    for until in (
        {"log_time": -1e4},
        {"log_time": np.log(0.1), "loss": 1e-200},
        {"time": np.exp(draw(-3, 3))},
        {"log_time": draw(3, 8)},
        {"time": np.exp(draw(8, 20)), "loss": 1e-200},
        {"log_time": draw(8, 40)},
    ):
        time = {name: value for name, value in until.items() if name != "loss"}
        run = rf.flow(p, until, progress=False)
        assert run.log_time[-1] == rf.dynamics.Until(**time).goal.log_time
        assert run.phases[-1].log_end == run.log_time[-1]
        assert run.events["log_time"].max(initial=-np.inf) <= run.log_time[-1]
        for net in (run.at(**time), run.at(time=run.time[-1]), run.at(log_time=run.log_time[-1])):
            np.testing.assert_allclose(net.log_norms, run.final.log_norms, rtol=0, atol=1e-7)


def test_until_aligned():
    p = rf.Problem(EX1, rf.initialize(2, 20, "balanced", 1e-9, seed=0))
    run = rf.flow(p, {"aligned": True})
    assert run.time[-1] == pytest.approx(rf.align(p).last_event.max())


@pytest.mark.parametrize("scale", [30.0, 1.0, 1e-3, 1e-9])
@pytest.mark.parametrize(
    "until",
    [
        {"log_loss": 1e4},
        {"loss": 1e4},
        {"margin": -1e5},
        {"time": 0},
        {"log_time": -np.inf},
        {"log_time": 5.0, "margin": -1e5},
        {"aligned": True, "loss": 1e4},
    ],
    ids=str,
)
def test_goals_that_are_met_at_the_start(until, scale):
    p = problem(rf.initialize(2, 4, "balanced", scale, seed=0))
    for rtol in (1e-9, 1e-2):
        run = rf.flow(p, until, rtol=rtol)
        assert (len(run), run.log_time[0], run.phases) == (1, -np.inf, ())
        assert run.log_loss[0] == pytest.approx(p.log_loss(p.net))
        assert np.allclose(run.final.W, p.net.W, rtol=1e-12, atol=0)


@pytest.mark.parametrize("scale", [30.0, 1.0, 1e-3])
def test_a_network_that_is_not_small_is_at_the_end_of_its_early_phase(scale):
    assert len(rf.flow(problem(rf.initialize(2, 4, "balanced", scale, seed=0)), {"aligned": True})) == 1


@pytest.mark.parametrize("log_scale", [-2000.0, -30.0, -7.0])
def test_points_are_classified_while_the_network_is_small(log_scale):
    # The sign of a margin is known however small it is. A neuron that starts wrong for a point turns to it in a time
    # that does not depend on the scale.
    net = rf.Network.balanced([[1.0, -0.9], [-1.0, -0.2]], [1, -1], 0.1, log_scale=log_scale)
    p = problem(net)
    assert net.normalized_margin(p.data) < 0
    run = rf.flow(p, {"margin": 0})
    assert len(run) > 1
    for late, right in ((-1e-3, False), (1e-3, True)):
        then = rf.align(p).network(run.time[-1] * (1 + late))
        assert (then.normalized_margin(p.data) > 0) == right


# -- refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("until", "words"),
    [
        ({"tme": 3}, "does not know 'tme'"),
        ({}, "says nothing"),
        ({"time": -1}, "begins at 0"),
        ({"log_loss": -np.inf}, "finite"),
        ({"log_time": np.inf}, "finite"),
        ({"time": float("nan")}, "finite"),
        ({"loss": 0}, "positive"),
        ("soon", "mapping"),
        ({"aligned": "yes"}, "True or False"),
        ({"margin": "big"}, "finite"),
    ],
)
def test_bad_until(until, words):
    with pytest.raises(rf.ProblemError, match=words):
        rf.flow(rf.Problem(EX1, rf.initialize(2, 2, "balanced", 0.1, seed=0)), until)


@pytest.mark.parametrize(
    "options", [{"rtol": 0.1}, {"rtol": 1e-15}, {"rtol": "tight"}, {"max_steps": 0}, {"max_steps": 1.5}]
)
def test_bad_options(options):
    with pytest.raises(rf.ProblemError, match=next(iter(options))):
        rf.flow(rf.Problem(EX1, rf.initialize(2, 2, "balanced", 0.1, seed=0)), {"time": 1.0}, **options)


def test_not_a_problem():
    with pytest.raises(rf.ProblemError, match="needs a Problem"):
        rf.flow(rf.initialize(2, 2))


def test_budget_keeps_what_there_is():
    with pytest.raises(rf.BudgetExceeded, match="max_steps") as caught:
        rf.flow(rf.Problem(EX1, rf.initialize(2, 2, "balanced", 0.1, seed=0)), {"log_time": 1e6}, max_steps=20)
    partial = caught.value.partial
    assert len(partial) > 5
    assert (np.diff(partial.log_loss) < 0).all()


def test_a_neuron_passes_through_zero_in_one_dimension():
    # x = -1 with label +, a = -1: w starts on the active side and is driven through 0 to the other one.
    problem = rf.Problem(rf.Dataset([[-1.0]], [1]), rf.Network([[-0.1], [-0.1]], [1.0, -1.0], 0.5), train="first")
    run = rf.flow(problem, {"time": 5.0})
    W, steps = np.array([-0.1, -0.1]), 50_000
    for _ in range(steps):
        slope = np.where(W < 0, 1.0, 0.5)
        W = W + 5.0 / steps * np.array([1.0, -1.0]) * slope * -1.0 / (1 + np.exp((slope * -W) @ [1.0, -1.0]))
    assert run.final.weights()[0].ravel() == pytest.approx(W, abs=1e-4)  # the error of the steps


def test_a_neuron_slides_into_zero_and_stays():
    # All labels +, a < 0 and |a| > |w|: held on a ray against the force, w reaches 0 in finite time and rests there.
    data = rf.make("randlab", n=3, d=2, seed=0)
    net = rf.initialize(2, 4, "gaussian", 0.1, seed=0)
    run = rf.flow(rf.Problem(data, net), {"log_time": 6})
    died = run.events["neuron"][run.events["kind"] == "die"]
    assert died.size
    assert (run.W[-1, died] == 0).all()
    assert run.a[-1, died] ** 2 == pytest.approx(run.a[0, died] ** 2 - (run.W[0, died] ** 2).sum(axis=1), rel=1e-10)


def test_neurons_that_shrink_for_ever_do_not_hold_up_the_rest():
    # In one dimension a negative neuron on the side of the positive points shrinks for ever; no positive neuron feels
    # them, so they are lost, and the negative class goes on to its own margin.
    data = rf.Dataset([[1.9], [0.6], [-0.3]], [-1, -1, 1])
    net = rf.Network.balanced([[1.0], [-1.0]], [-1, -1], log_scale=-1.0)
    run = rf.flow(rf.Problem(data, net), {"log_time": 1e5})
    assert run.loss[-1] == pytest.approx(np.log(2) / 3)
    assert run.final.log_norms[1] < -1e4
    q = run.final.margins(data)
    assert q[:2].min() == pytest.approx(1e5, rel=1e-3)


def test_a_start_that_pulls_beyond_doubles_is_refused():
    data = rf.Dataset([[1.0, 0.0]], [-1])
    with pytest.raises(rf.ProblemError, match="logistic"):
        rf.flow(rf.Problem(data, rf.Network([[30.0, 0.0]], [30.0]), "exponential"), {"time": 1.0})


def test_a_linear_network_has_no_events():
    data = rf.make("linsep", n=12, d=2, seed=0)
    run = rf.flow(rf.Problem(data, rf.initialize(2, 6, "gaussian", 0.1, seed=0, slope=1.0)), {"log_time": 1e4})
    assert run.events.size == 0
    assert run.normalized_margin()[-1] == pytest.approx(rf.max_margin(data).margin / 2, rel=1e-3)


# -- no standing still -----------------------------------------------------------------------------------


@pytest.mark.parametrize("advance", [0.0, 1e-14])
@pytest.mark.parametrize("log_time", [1.0, 1e4])
def test_an_event_that_comes_back_without_end_is_noticed(monkeypatch, advance, log_time):
    # Every step is said to end at once, or a hair later, with the same event.
    from reluflow.dynamics.flow import adams, phases
    from reluflow.dynamics.flow.arcs import HARD
    from reluflow.dynamics.flow.events import Happening

    def again(self, step, idle):
        if self.chart.geometry.problem is not problem or started[0] < 3:
            started[0] += 1
            return None
        return Happening(step.t0 + advance * (step.t1 - step.t0), 0, 0)

    honest = adams.Adams.advance

    def stopped(self, most, t_end, least_loss, most_margin):
        found = honest(self, 1, t_end, np.inf, most_margin)  # whatever the loss: a trial that is to be looked at
        started[0] += 1
        if started[0] > 3:
            self.trial.status[0], self.trial.end[0] = HARD, advance
        return found

    data = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    size = 0.5 if log_time < 100 else 4.0  # small: not fitted, explicit steps; large: fitted, implicit ones
    net = rf.Network.balanced(size * np.array([[1.0, 0.9], [-1.0, -0.8]]), [1, -1])
    problem, started = rf.Problem(data, net), [0]
    monkeypatch.setattr(phases.Watch, "first", again)
    monkeypatch.setattr(adams.Adams, "advance", stopped)
    with pytest.raises(rf.Undecided, match="stands still at log t") as caught:
        rf.flow(problem, {"log_time": log_time}, max_steps=1000, progress=False)
    assert "neuron 0" in str(caught.value)
    assert isinstance(caught.value.partial, rf.Trajectory)


def test_forces_that_are_rounding_switch_nothing():
    # At log t = 10^9 the last digit of a margin changes a force by 10^-7. Neurons that slide with a slope at the end of
    # its range were let go and caught again at every step there, so that some machines got no further than 10^8.
    data = rf.Dataset([[-2, 1, -3], [2, -3, -1], [-2, 1, 0], [2, -1, -3], [0, -1, 1]], [-1, 1, -1, 1, -1])
    net = rf.initialize(3, 10, "balanced", seed=3, log_scale=-4.6)
    run = rf.flow(rf.Problem(data, net), {"log_time": 1e9}, max_steps=4000, progress=False)
    late = run.events["log_time"] > 1e6
    assert late.sum() <= 20


@pytest.mark.parametrize("size", [0.5, 4.0])  # explicit steps, implicit ones
def test_forces_that_are_no_numbers_end_the_flow(monkeypatch, size):
    # A solver whose first step is not a number tries for ever.
    from reluflow.dynamics.flow import adams, late

    world, honest = late.World, adams.fixed_of
    monkeypatch.setattr(late, "World", lambda **parts: world(**parts)._replace(weight=np.nan))
    monkeypatch.setattr(adams, "fixed_of", lambda *args: honest(*args)._replace(weight=np.nan))
    data = rf.Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
    net = rf.Network.balanced(size * np.array([[1.0, 0.9], [-1.0, -0.8]]), [1, -1])
    with pytest.raises(rf.Undecided, match="beyond doubles"):
        rf.flow(rf.Problem(data, net), progress=False)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_a_first_layer_far_below_the_second_is_followed(d, slope):
    """At w = e^-55 |a| the early phase once read the rounding of a + w as w, and the flow began from another start."""
    X = np.array([[-1.1], [-0.9], [0.8], [1.2]]) * np.ones((1, d))
    net = rf.initialize(d, width=6, scheme="two-sign", log_scale=-55.0, seed=3, slope=slope)
    run = rf.flow(rf.Problem(rf.Dataset(X, [1, 1, -1, -1]), net), {"log_time": 1.0})
    assert run.balance_drift().max() < 1e-10
    early = rf.align(run.problem).network(0.0)
    assert np.allclose(early.log_norms, net.log_norms, rtol=0, atol=1.0)  # crossings at e^-55 may count as done at 0


@pytest.mark.parametrize("log_scale", [-50.0, -889000.0])
def test_a_neuron_that_slides_and_shrinks_stays_on_its_hyperplane(log_scale):
    """Relative to |w| what rounding puts across it grows as |w| falls: after e^-37 the neuron used to drift off."""
    data = rf.Dataset([[-3.0, -3], [3, -2], [-1, 3], [2, -2], [3, -1]], -np.ones(5))
    net = rf.initialize(2, 2, "balanced-gaussian", log_scale=log_scale, seed=48)
    run = rf.flow(rf.Problem(data, net, loss="exponential"), {"log_time": 800.0})
    units, shrunk, held = data.X / data.norms[:, None], 0.0, 0
    for j in range(2):
        events = run.events[run.events["neuron"] == j]
        for k in np.flatnonzero(events["kind"] == "slide"):
            later = events[(np.arange(events.size) > k) & (events["log_time"] > events["log_time"][k])]
            until = later["log_time"].min(initial=np.inf)
            inside = np.flatnonzero((run.log_time > events["log_time"][k]) & (run.log_time < until))
            if inside.size:
                held += inside.size
                assert np.abs(run.directions[inside, j] @ units[events["sample"][k]]).max() < 1e-10
                shrunk = max(shrunk, float(np.ptp(run.log_norms[inside, j])))
    assert held > 10
    assert shrunk > 30


def test_hyperplanes_that_depend_on_each_other_do_not_stop_the_flow():
    """Lattice points: a neuron slides on five hyperplanes whose normals span four dimensions."""
    run = rf.flow(drawn(596), {"log_time": 0.0}, rtol=1e-8, progress=False)
    assert run.log_time[-1] == 0.0
    faces = run.problem.data.X / run.problem.data.norms[:, None]
    assert (np.abs(run.final.directions @ faces.T) < 1e-12).sum(axis=1).max() >= 5
    other = rf.flow(drawn(596), {"log_time": 0.0}, rtol=1e-10, progress=False)
    assert error(other.final, run.final) < 1e-6


@pytest.mark.parametrize("share", [5e-11, 1e-11, 2e-12, 1e-13, 0.0, -1e-13, -1e-11])
def test_a_share_that_falls_beside_its_bound_does_not_shorten_steps(share):
    """The second point pushes the neuron to the hyperplane of the first, ever less: it slides, hardly held.

    It was let go by the one who looks when it leaves, and held by the one who looks what it does then.
    """

    def slid(share):
        data = rf.Dataset([[1.0, 0.0], [share, 1.0]], [-1, 1])
        return rf.flow(rf.Problem(data, rf.Network.balanced([[0.0, 1.0]], [1])), {"time": 20.0}, progress=False)

    run, clear = slid(share), slid(1e-6)
    assert run.phases[0].steps < 2 * clear.phases[0].steps
    # Without the first coordinate it is one neuron on one point.
    alone = rf.Problem(rf.Dataset([[1.0]], [1]), rf.Network.balanced([[1.0]], [1]))
    want = rf.flow(alone, {"time": 10.0}, progress=False).final
    assert run.final.log_norms == pytest.approx(want.log_norms, abs=1e-8)
    assert abs(run.final.directions[0, 0]) < 1e-10


@pytest.mark.parametrize(("reach", "dearer"), [(1.0, False), (1e-3, True)])
def test_implicit_steps_are_tried_again_soon_where_they_were_cheaper(reach, dearer, monkeypatch):
    """Crowds that cross one by one end implicit steps again and again; what they brought decides who waits how long."""
    from reluflow.dynamics.flow import march
    from reluflow.dynamics.flow.phases import DEAR, Coupled

    patience, taken = [], 200

    def followed(self, phase):
        explicit = isinstance(phase, Coupled)
        if explicit:
            patience.append(phase.patience)
            phase.fold, phase.log_time = 10_000.0, max(phase.log_time, 0.0)
        else:
            assert phase.fold == 10_000.0
            phase.taken, phase.log_time = taken, phase.log_time + reach
        self.steps += 500 if explicit else phase.taken
        why = "done" if len(patience) == 3 else "time" if explicit else "coupled"
        return march.Reached(phase.state(), phase.log_time, why)

    monkeypatch.setattr(march.March, "_follow", followed)
    rf.flow(problem(rf.initialize(2, 4, "balanced", 1.0, seed=0)), {"log_time": 10.0}, progress=False)
    later = DEAR * taken if dearer else 1000
    assert patience == [1000, later, later]
    assert DEAR * taken > 2000  # else the two are hard to tell apart


def test_explicit_steps_are_not_judged_by_the_cautious_ones_they_begin_with():
    # Of a first step of 1e-6 a million would make an e-fold of time: implicit steps seemed cheaper at once, were left
    # as they were dearer, and so on for ever (four neurons on hyperplanes, seen on one kind of processor).
    from reluflow.dynamics.flow.field import Geometry
    from reluflow.dynamics.flow.phases import Coupled, Goal
    from reluflow.dynamics.flow.state import take

    before = problem(rf.initialize(2, 6, "balanced", 1.0, seed=0))
    run = rf.flow(before, {"margin": 4.0}, progress=False)
    geometry = Geometry(rf.Problem(EX1, run.final))
    goal = Goal(1e3, -np.inf, np.inf)
    phase = Coupled(geometry, take(geometry, run.final)[0], float(run.log_time[-1]), 1e-9, 1000, closely=True)
    told, folds = [], []
    while len(told) < 40:
        phase.step(goal, 1)
        told.append(phase.verdict(goal))
        folds.append(phase.fold)
    assert told[:31] == [None] * 31
    assert told[31] == "late"  # which is right here, as what an e-fold takes is known by then
    assert folds[0] > 100 * folds[31] > 50 * folds[39]


def test_a_crowd_that_crosses_one_by_one_costs_few_tries_each(monkeypatch):
    # Twenty-five neurons of nearly one direction cross a hyperplane within 1e-6 of log t, while data are not fitted:
    # after each crossing the next step is as long as the last, not a cautious one that is tried in vain.
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    from reluflow.dynamics.flow import phases
    from reluflow.dynamics.flow.solver import Solver

    tries, step = [], Solver.step

    def counted(self):
        before, well = int(self.now["tries"]), step(self)
        tries.append(int(self.now["tries"]) - before)
        return well

    monkeypatch.setattr(Solver, "step", counted)
    # As on a long way: a trial is finer, and takes more steps.
    monkeypatch.setattr(phases.Late, "tol", property(lambda self: phases.LONG * self.rtol))
    X, y = datasets.load_iris(return_X_y=True)
    X, y = X[y > 0], np.where(y[y > 0] > 1, 1, -1)
    run = rf.flow(X, y, until={"log_time": 10.8}, standardize=True, bias=True, width=50, slope=0.0)
    late = [phase for phase in run.phases if phase.name == "late"]
    when = run.events["log_time"]
    crossings = sum(int(((when > phase.log_start) & (when <= phase.log_end)).sum()) for phase in late)
    assert crossings > 30
    assert min(tries) > 0
    assert sum(tries) < 8 * crossings  # 4.1 to 5.1 with such steps, by the processor, 11.1 with cautious ones


def test_a_neuron_that_leaves_the_origin_into_a_stronger_force_is_followed():
    # It shrinks slowly with slope 0.01, passes w = 0, and then feels the point in full: a step as long as those before
    # would let it grow beyond doubles.
    data = rf.Dataset([[2.0]], [1])
    net = rf.Network([[1.0], [-1.0]], [-1.0, 1.0 + 1e-6], 0.01, [0.0, -30.0], [0.0, -30.0])
    run = rf.flow(rf.Problem(data, net), {"log_time": 10.0}, rtol=1e-5)
    assert "origin" in run.events["kind"]
    assert run.loss[-1] < 1e-3
    assert rf.limit(rf.Problem(data, net), rtol=1e-5, optimum=False).margin == pytest.approx(1.0, rel=1e-9)
