"""Worked examples whose event times, gains and rates are known to ten digits from elsewhere."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from reluflow import Dataset, Network, Problem, ProblemError, align

EX1 = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])
EX2 = Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1])
EX5 = Dataset([[1, 0], [0, 1]], [1, -1])
DIGITS = 6e-11  # the numbers below have ten decimals


def one(data, w, sign, slope=0.0, log_scale=-3000.0, **problem):
    """One balanced neuron, in the clock of a sum loss with unit force at zero."""
    net = Network.balanced([w], [sign], slope, log_scale)
    return Problem(data, net, **{"loss": "exponential", "reduction": "sum", **problem})


def active_sets(early, w):
    """Active sets after each event, counted from 1."""
    active = {i + 1 for i, x in enumerate(early.problem.data.X) if x @ np.array(w) > 0}
    found = [(0.0, frozenset(active))]
    for time, sample, kind in early.events(0):
        (active.add if kind == "activate" else active.discard)(int(sample) + 1)
        found.append((float(time), frozenset(active)))
    return found


@pytest.mark.parametrize(
    ("data", "sign", "w", "steps", "gain"),
    [
        (EX1, -1, (-1, 1), [(0, {2, 3}), (0.0677672364, {3}), (0.1066340283, {3, 4})], 0.1919420204),
        (EX1, -1, (1, -2), [(0, {4}), (0.0756507616, {3, 4})], None),
        (
            EX1,
            1,
            (-1, -0.9),
            [
                (0, {3, 4}),
                (0.8569869684, {4}),
                (0.9326377299, {1, 4}),
                (1.0751560501, {1, 2, 4}),
                (1.0876512410, {1, 2}),
            ],
            -4.3685457189,
        ),
        (EX2, 1, (-1, 2.5), [(0, {2, 3}), (0.1300117733, {1, 2, 3}), (0.3503551700, {1, 2})], 0.2723635877),
        (
            EX2,
            1,
            (-1, 1.5),
            [(0, {3}), (0.3493050096, {2, 3}), (0.5097089513, {1, 2, 3}), (0.7300523481, {1, 2})],
            -0.2427539079,
        ),
        (EX2, 1, (0.2, -1), [(0, {1}), (0.2825217147, {1, 2})], None),
        (EX2, -1, (1, -0.5), [(0, {1, 2}), (0.2336916689, {1}), (0.7149034939, set())], -0.4480440123),
        (EX2, -1, (1, 1.5), [(0, {1, 2, 3}), (0.1562862793, {2, 3}), (0.3166902210, {3})], None),
    ],
)
def test_events_and_gains(data, sign, w, steps, gain):
    early = align(one(data, w, sign))
    found = active_sets(early, w)
    assert [s for _, s in found] == [frozenset(s) for _, s in steps]
    np.testing.assert_allclose([t for t, _ in found], [t for t, _ in steps], rtol=0, atol=DIGITS)
    if gain is not None:
        assert early.log_gain[0] == pytest.approx(gain, abs=DIGITS)
    assert not early.nonunique[0]


def test_neuron_near_the_repelling_ray():
    early = align(one(EX2, (-0.999, 1), 1))
    times = early.events(0)["time"]
    assert times[0] == pytest.approx(4.5785893239, abs=DIGITS)  # leaves S-
    assert times[-1] == pytest.approx(4.9593366623, abs=DIGITS)  # enters S+


def test_neuron_on_the_repelling_ray_never_turns():
    early = align(one(EX2, (-1, 1), 1))
    assert early.fates == ("stuck",)
    assert early.events(0).size == 0
    np.testing.assert_allclose(early.directions([0.0, 1.0, 1e6]), np.full((3, 1, 2), [-1, 1]) / np.sqrt(2), atol=1e-15)
    # It runs against its own force |x_3| = sqrt 2 for ever.
    np.testing.assert_allclose(early.log_norms(1e6) - early.log_norms(0.0), -1e6 * np.sqrt(2), rtol=1e-15)
    assert early.growth[0] == pytest.approx(-np.sqrt(2), rel=1e-14)


def test_dying_at_a_known_direction():
    early = align(one(EX2, (1, -0.5), -1))
    assert early.fates == ("dead",)
    np.testing.assert_allclose(early.direction[0], [0, -1], atol=1e-15)
    assert early.growth[0] == 0
    np.testing.assert_allclose(early.log_norms([1.0, 1e9])[:, 0], early.log_norms(0.7149034940)[0], rtol=1e-12)


def test_touching_and_staying():
    # EX5: w_2 reaches 0 and stays 0; for the logistic loss everything takes twice as long.
    early = align(one(EX5, (0.6, 0.8), 1))
    assert early.events(0).tolist() == [(pytest.approx(0.7239000229, abs=DIGITS), 1, "deactivate")]
    assert early.fates == ("aligned",)
    np.testing.assert_array_equal(early.pattern[0], [1, 0])
    np.testing.assert_allclose(early.direction[0], [1, 0], atol=1e-15)
    np.testing.assert_allclose(early.directions([0.8, 5.0])[:, 0], [[1, 0], [1, 0]], atol=1e-15)
    slow = align(one(EX5, (0.6, 0.8), 1, loss="logistic"))
    assert slow.events(0)["time"][0] == pytest.approx(1.4478000458, abs=DIGITS)


def test_the_far_side_of_an_orthogonal_sample_is_left_alone():
    early = align(one(EX5, (0.6, -0.8), 1, log_scale=0.0))
    assert early.events(0).size == 0
    np.testing.assert_array_equal(early.pattern[0], [1, -1])
    w_2 = np.exp(early.log_norms([0.0, 3.0])[:, 0] - early.log_norms(0.0)[0]) * early.directions([0.0, 3.0])[:, 0, 1]
    np.testing.assert_allclose(w_2, -0.8, rtol=1e-14)


def test_the_sliding_example():
    early = align(one(Dataset([[1, 1], [2, 0]], [1, -1]), (-0.2, 1), 1))
    assert early.events(0).tolist() == [(pytest.approx(0.1811808885, abs=DIGITS), 1, "slide")]
    assert early.fates == ("sliding",)
    assert early.held(0) == {1: pytest.approx(0.5, abs=1e-14)}
    np.testing.assert_allclose(early.direction[0], [0, 1], atol=1e-15)
    assert early.growth[0] == pytest.approx(1.0, rel=1e-14)  # z = (0, 1)


@pytest.mark.parametrize(("delta", "units"), [(0.001, 7.4255), (0.1, 2.8195)])
def test_nearly_orthogonal_pair_takes_its_time(delta, units):
    # Only x_1 active, at -80 degrees: reaching S+ takes log(tan 40 / tan(delta/2)).
    data = Dataset([[1, 0], [np.sin(delta), np.cos(delta)]], [1, 1])
    angle = np.radians(-80.0)
    early = align(one(data, (np.cos(angle), np.sin(angle)), 1))
    assert early.events(0)["time"][0] == pytest.approx(units, abs=6e-5)
    exact = np.log(np.tan(np.radians(40.0)) / np.tan(delta / 2))
    assert early.events(0)["time"][0] == pytest.approx(exact, rel=1e-12)


def test_growth_rates_of_leaky_data():
    # LL-G.5 on D5, slope 1/2, mean logistic loss: |mu+|/2 and |mu-|/2.
    X = [[0.5, 0.4], [0.45, -0.5], [1.5, 0.1], [1.4, -0.2], [-1.6, 0.3], [-1.5, -0.4]]
    data = Dataset(X, [1, 1, 1, 1, -1, -1])
    net = Network.balanced([[1.0, 0.3], [-0.2, 1.0], [-1.0, 0.3], [0.5, -1.0]], [1, 1, -1, -1], 0.5, -20)
    early = align(Problem(data, net))
    np.testing.assert_allclose(early.growth, np.repeat([0.900347155268 / 2, 0.8375 / 2], 2), rtol=1e-11)
    np.testing.assert_allclose(early.pattern, np.outer([1, 1, -1, -1], data.y))  # LL-G.4
    np.testing.assert_allclose(early.direction[:2], np.full((2, 2), [0.9, -0.025]) / 0.900347155268, rtol=1e-11)
    np.testing.assert_allclose(early.direction[2:], [[-1, 0], [-1, 0]], atol=1e-14)


def test_symmetric_data_are_linear():
    # LL-L5.2 on D1: G(w) = w.mu~, mu~ = (1 + slope)/4 mu with mu = (8/15, 2/15); even for ReLU.
    data = Dataset([[0.8, 0.2], [0.3, 0.6], [0.5, -0.4]], [1, 1, 1]).symmetrized()
    for slope in (0.0, 0.3):
        net = Network.balanced([[0.3, -1.0], [-1.0, 0.1], [0.2, 0.9]], [1, 1, -1], slope, -50)
        early = align(Problem(data, net))
        assert early.fates == ("aligned",) * 3
        np.testing.assert_allclose(early.growth, (1 + slope) / 4 * 0.549747416749, rtol=1e-11)
        np.testing.assert_allclose(
            early.direction, np.outer([1, 1, -1], [8, 2]) / np.hypot(8, 2), atol=1e-14
        )  # mu, or minus mu
        assert not early.nonunique.any()


# -- phi'(0) ---------------------------------------------------------------------------------------------

E3 = Dataset([[1, 0]], [-1])
E4 = Dataset([[1, 0]], [1])


def test_no_solution_with_a_fixed_subgradient():
    problem = one(E3, (0, 1), 1)
    early = align(problem)
    assert early.fates == ("dead",)
    assert not early.nonunique[0]
    np.testing.assert_array_equal(early.directions(7.0), [[0, 1]])
    assert align(problem, subgradient=0.0).fates == ("dead",)
    with pytest.raises(
        ProblemError, match=r"no solution with phi'\(0\) = 0.5: from t = 0 on neuron 0 stays .* sample 0"
    ):
        align(problem, subgradient=0.5)


def test_fixed_subgradient_refused_only_where_it_matters():
    for value in (0.0, 0.3, 1.0):
        assert align(one(EX1, (-1, 1), -1), subgradient=value).fates == ("aligned",)
    sliding = one(Dataset([[1, 1], [2, 0]], [1, -1]), (-0.2, 1), 1)
    assert align(sliding, subgradient=0.5).fates == ("sliding",)  # the slope it slides with
    with pytest.raises(ProblemError, match="sample 1, .* only the slope 0.5 keeps it there"):
        align(sliding, subgradient=0.0)


def test_many_solutions():
    problem = one(E4, (0, 1), 1, log_scale=0.0)
    stay = align(problem)
    assert stay.fates == ("dead",)
    assert stay.nonunique[0]
    np.testing.assert_array_equal(stay.directions([0.0, 1.0, 50.0])[:, 0], [[0, 1]] * 3)
    np.testing.assert_array_equal(stay.log_norms([0.0, 1.0, 50.0])[:, 0], [0, 0, 0])

    leave = align(problem, branch="leave")
    assert leave.nonunique[0]
    s = np.array([0.1, 1.0, 3.0])  # with unit force s = t: a = cosh s, w = (sinh s, 1)
    np.testing.assert_allclose(np.exp(leave.log_outs(s)[:, 0]), np.cosh(s), rtol=1e-13)
    w = np.exp(leave.log_norms(s)) * leave.directions(s)[:, 0]
    np.testing.assert_allclose(w, np.column_stack([np.sinh(s), np.ones(3)]), rtol=1e-13)


@pytest.mark.parametrize(
    ("loss", "factor", "unit", "s", "a", "w_1"),
    [
        ("exponential", 1.0, 1.0, 0.6617593458, 1.2270710565, 0.7111282428),
        ("exponential", 1.0, 2.0, 0.9499989444, None, None),
        ("exponential", 1.0, 0.5, 0.4013322772, None, None),
        ("logistic", 2.0, 1.0, 0.7545389782, 1.2984291120, 0.8282017622),
        ("logistic", 1.0, 1.0, 0.4392398470, 1.0980267727, 0.4535005993),
    ],
)
def test_leaving_at_full_size(loss, factor, unit, s, a, w_1):
    """At |w| = 1 the pull of the sample fades as it is learned, but the path is that of the small-scale limit.

    Only the clock differs: one unit of the limit's time takes 1/g(q) of true time, with q read off the path. So the
    solution that leaves is found by one quadrature.
    """
    problem = one(E4, (0, 1), 1, log_scale=0.0)
    leave = align(problem, branch="leave")

    def pull(t):
        return factor * problem.replace(loss=loss).loss.force(leave.network(t).margins(E4))[0]

    found = brentq(lambda t: quad(lambda u: 1 / pull(u), 0.0, t, epsabs=1e-13)[0] - unit, 1e-6, 2.0, xtol=1e-14)
    assert found == pytest.approx(s, abs=1e-9)
    if a is not None:
        assert np.exp(leave.log_outs(found)[0]) == pytest.approx(a, abs=1e-9)
        w = np.exp(leave.log_norms(found)[0]) * leave.directions(found)[0]
        np.testing.assert_allclose(w, [w_1, 1.0], atol=1e-9)
