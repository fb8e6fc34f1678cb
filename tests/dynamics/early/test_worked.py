"""The early phase against the worked examples and against brute force."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from reluflow import BudgetExceeded, Dataset, Loss, Network, Problem, ProblemError, align, example, initialize

FATES = {"aligned", "sliding", "shrinking", "dead", "stuck"}
DIGITS = 6e-11  # the examples are known to ten digits after the point


def unit_problem(data, W, signs, slope=0.0, log_scale=-3000.0):
    """Sum of exponential losses: unit force at zero."""
    return Problem(data, Network.balanced(W, signs, slope, log_scale), "exponential", "sum")


def active_sets(problem, early, j):
    """Replay the events on the active set of the start."""
    now = set(np.flatnonzero(problem.data.X @ problem.net.W[j] > 0).tolist())
    yield sorted(now)
    for event in early.events(j):
        (now.add if event["kind"] == "activate" else now.discard)(int(event["sample"]))
        yield sorted(now)


@pytest.mark.parametrize("name", ["EX1", "EX2"])
def test_worked_event_times_and_gains(name):
    known = example(name)
    for line in known.answers["early"]:
        problem = unit_problem(known.data, [line["w"]], [line["sign"]])
        early = align(problem)
        np.testing.assert_allclose(early.events(0)["time"], line["times"], rtol=0, atol=DIGITS)
        assert list(active_sets(problem, early, 0)) == [list(s) for s in line["active"]]
        if "log_gain" in line:
            assert early.log_gain[0] == pytest.approx(line["log_gain"], abs=DIGITS)
        if "direction" in line:
            np.testing.assert_allclose(early.direction[0], line["direction"], atol=1e-12)
            assert early.fates[0] == "dead"


def test_near_and_on_the_repelling_ray():
    known = example("EX2")
    near, on = known.answers["repelled"], known.answers["stuck"]
    early = align(unit_problem(known.data, [near["w"], on["w"]], [1, 1]))
    times = early.events(0)["time"]
    assert times[0] == pytest.approx(near["leaves"], abs=DIGITS)
    assert times[-1] == pytest.approx(near["arrives"], abs=DIGITS)
    assert early.fates[1] == "stuck"
    assert early.events(1).size == 0
    np.testing.assert_array_equal(early.directions(50.0)[1], early.directions(0.0)[1])


def test_sliding_example():
    # Active {1} until 0.1811808885, then held on the hyperplane of the negative point with slope 1/2.
    data = Dataset([[1.0, 1.0], [2.0, 0.0]], [1, -1])
    early = align(unit_problem(data, [[-0.2, 1.0]], [1]))
    events = early.events(0)
    assert events["kind"].tolist() == ["slide"]
    assert events["time"][0] == pytest.approx(0.1811808885, abs=DIGITS)
    assert early.fates == ("sliding",)
    np.testing.assert_allclose(early.direction[0], [0.0, 1.0], atol=1e-15)
    assert early.held(0) == {1: pytest.approx(0.5)}
    assert early.growth[0] == pytest.approx(1.0)


def test_orthogonal_pair_touches_and_stays():
    data = example("EX5").data
    problem = Problem(data, Network.balanced([[0.6, 0.8], [0.6, -0.8]], [1, 1], log_scale=-50), "logistic", "sum")
    early = align(problem)
    assert early.events(0)["time"][0] == pytest.approx(1.4478000458, abs=DIGITS)
    # w_2 of the second neuron never moves, whatever happens to w_1
    w2 = early.directions(5.0)[1, 1] * np.exp(early.log_norms(5.0)[1] + 50)
    assert w2 == pytest.approx(-0.8, rel=1e-12)


def test_entry_time_of_nearly_orthogonal_points():
    # from "only x_1 active" at -80 degrees: log(tan 40deg / tan(delta/2)), twice for two delta
    for delta in (0.1, 0.001):
        data = Dataset([[1.0, 0.0], [np.sin(delta), np.cos(delta)]], [1, 1])
        angle = np.radians(-80.0)
        early = align(unit_problem(data, [[np.cos(angle), np.sin(angle)]], [1]))
        want = np.log(np.tan(np.radians(40.0)) / np.tan(delta / 2))
        assert early.events(0)["time"][0] == pytest.approx(want, rel=1e-10)


def test_problem_clock():
    known = example("EX1")
    net = Network.balanced([[-1.0, 1.0]], [-1], log_scale=-9)
    base = align(Problem(known.data, net, "exponential", "sum")).events(0)["time"]
    for loss, reduction, factor in (("logistic", "sum", 2), ("logistic", "mean", 8), ("exponential", "mean", 4)):
        np.testing.assert_allclose(align(Problem(known.data, net, loss, reduction)).events(0)["time"], factor * base)


# -- no solution, many solutions --------------------------------------------------------------------


def test_no_solution_for_a_fixed_subgradient():
    data = Dataset([[1.0, 0.0]], [-1])
    problem = unit_problem(data, [[0.0, 1.0]], [1], log_scale=0.0)
    early = align(problem)
    assert early.fates == ("dead",)
    np.testing.assert_array_equal(early.directions(10.0)[0], [0.0, 1.0])
    assert align(problem, subgradient=0.0).fates == ("dead",)
    with pytest.raises(ProblemError, match=r"no solution with phi'\(0\) = 0.5"):
        align(problem, subgradient=0.5)


def test_many_solutions():
    data = Dataset([[1.0, 0.0]], [1])
    problem = unit_problem(data, [[0.0, 1.0]], [1], log_scale=0.0)
    stay = align(problem)
    assert stay.nonunique.all()
    np.testing.assert_array_equal(stay.directions(3.0)[0], [0.0, 1.0])
    leave = align(problem, branch="leave")
    # the path a = cosh s, w = (sinh s, 1); in the limit of small scale s = t
    for s in (0.3, 1.0, 2.5):
        net = leave.network(s)
        W, a = net.weights()
        np.testing.assert_allclose(W[0], [np.sinh(s), 1.0], rtol=1e-13)
        assert a[0] == pytest.approx(np.cosh(s), rel=1e-13)


@pytest.mark.parametrize(
    ("loss", "factor", "want"),
    [
        ("exponential", 1.0, (0.6617593458, 1.2270710565, 0.7111282428)),
        ("logistic", 2.0, (0.7545389782, 1.2984291120, 0.8282017622)),
        ("logistic", 1.0, (0.4392398470, 1.0980267727, 0.4535005993)),
    ],
)
def test_leaving_curve_with_the_true_force(loss, factor, want):
    # One neuron, one sample: the flow runs along the path of the early phase with s' = g(q(s)), q = sinh(2s)/2.
    # The path comes from `align`, the clock from quadrature of the loss.
    leave = align(unit_problem(Dataset([[1.0, 0.0]], [1]), [[0.0, 1.0]], [1], log_scale=0.0), branch="leave")
    force = Loss(loss).force

    def elapsed(s):
        return quad(lambda r: 1.0 / (factor * float(force(np.sinh(2 * r) / 2))), 0.0, s, epsabs=1e-13)[0]

    s = brentq(lambda r: elapsed(r) - 1.0, 1e-3, 2.0, xtol=1e-14)
    W, a = leave.network(s).weights()
    np.testing.assert_allclose([s, a[0], W[0, 0]], want, rtol=0, atol=1e-9)


# -- degenerate starts and data ---------------------------------------------------------------------

DEGENERATE = {
    "duplicates": Dataset([[1.0, 2.0], [1.0, 2.0], [-1.0, 0.5]], [1, 1, -1]),
    "parallel, opposite labels": Dataset([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]], [1, -1, 1]),
    "antiparallel": Dataset([[1.0, 1.0], [-2.0, -2.0]], [1, 1]),
    "force cancels": Dataset([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1, 1, 1, 1]),
    "orthogonal": Dataset([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1, -1, 1]),
    "one point": Dataset([[2.0]], [-1]),
    "grid": Dataset([[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)], [1, -1, 1, 1, -1, 1, -1, 1]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("slope", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("branch", ["regular", "leave"])
def test_degenerate_data_end_in_an_allowed_fate(name, slope, branch):
    data = DEGENERATE[name]
    rng = np.random.default_rng(0)
    lattice = rng.integers(-1, 2, (12, data.d)).astype(float)  # many on hyperplanes and on their intersections
    W = np.vstack([lattice[lattice.any(axis=1)], np.eye(data.d), rng.standard_normal((4, data.d))])
    early = align(unit_problem(data, W, np.resize([1, -1], len(W)), slope), branch=branch)
    assert set(early.fates) <= FATES
    assert np.isfinite(early.last_event).all()
    assert np.isfinite(early.log_norms([0.0, 1.0, 100.0])).all()
    np.testing.assert_allclose(np.linalg.norm(early.directions(2.0), axis=1), 1.0, rtol=1e-12)


def test_zero_neurons_do_nothing():
    early = align(Problem(example("EX1").data, Network([[0.0, 0.0], [1.0, 0.0]], [0.0, 1.0])))
    assert early.fates[0] == "dead"
    assert early.log_norms(3.0)[0] == -np.inf


def test_budget_keeps_what_was_computed():
    problem = Problem(example("EX1").data, initialize(2, width=10))
    with pytest.raises(BudgetExceeded) as caught:
        align(problem, max_events=1)
    assert "unfinished" in caught.value.partial.fates
    assert "max_events" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"branch": "stay"}, "branch"),
        ({"subgradient": 2.0}, "subgradient"),
        ({"max_events": -1}, "max_events"),
        ({"max_events": 1.5}, "max_events"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ProblemError, match=words):
        align(Problem(example("EX1").data, initialize(2, width=3)), **options)


def test_bad_arguments():
    with pytest.raises(ProblemError, match="needs a Problem"):
        align(initialize(2, width=3))
    early = align(Problem(example("EX1").data, initialize(2, width=3)))
    for call in (lambda: early.directions(-1.0), lambda: early.log_norms(np.nan), lambda: early.events(3)):
        with pytest.raises(ProblemError):
            call()
