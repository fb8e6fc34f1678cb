"""More of the worked examples: rates, rays, touching, and which phi'(0) has a solution."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from reluflow import Dataset, Network, Problem, ProblemError, align

EX2 = Dataset([[1, 0], [2, 1], [-1, 1]], [1, 1, -1])
EX5 = Dataset([[1, 0], [0, 1]], [1, -1])
DIGITS = 6e-11  # the numbers below have ten decimals


def one(data, w, sign, slope=0.0, log_scale=0.0, **problem):
    """One balanced neuron, in the clock of a sum loss with unit force at zero."""
    net = Network.balanced([w], [sign], slope, log_scale)
    return Problem(data, net, **{"loss": "exponential", "reduction": "sum", **problem})


def test_the_repelling_ray_is_followed_to_zero():
    early = align(one(EX2, (-1, 1), 1))
    assert early.fates == ("stuck",)
    # It runs against its own force |x_3| = sqrt 2 for ever.
    np.testing.assert_allclose(early.log_norms(1e6) - early.log_norms(0.0), -1e6 * np.sqrt(2), rtol=1e-14)
    assert early.growth[0] == pytest.approx(-np.sqrt(2), rel=1e-14)
    assert early.log_amplitude[0] == pytest.approx(np.log(2) / 2, rel=1e-14)


def test_what_is_dead_stays():
    early = align(one(EX2, (1, -0.5), -1))
    assert early.fates == ("dead",)
    assert early.growth[0] == 0
    np.testing.assert_allclose(early.log_norms([1.0, 1e9])[:, 0], early.log_norms(0.7149034940)[0], rtol=1e-12)


def test_touching_and_staying():
    early = align(one(EX5, (0.6, 0.8), 1))
    assert early.events(0).tolist() == [(pytest.approx(0.7239000229, abs=DIGITS), 1, "deactivate")]
    assert early.fates == ("aligned",)
    np.testing.assert_array_equal(early.pattern[0], [1, 0])
    np.testing.assert_allclose(early.direction[0], [1, 0], atol=1e-15)
    np.testing.assert_allclose(early.directions([0.8, 5.0])[:, 0], [[1, 0], [1, 0]], atol=1e-15)


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
    assert [g.neurons.tolist() for g in early.groups] == [[0, 1], [2, 3]]


def test_symmetric_data_are_linear():
    # LL-L5.2 on D1: G(w) = w.mu~, mu~ = (1 + slope)/4 mu with mu = (8/15, 2/15); even for ReLU.
    data = Dataset([[0.8, 0.2], [0.3, 0.6], [0.5, -0.4]], [1, 1, 1]).symmetrized()
    for slope in (0.0, 0.3):
        net = Network.balanced([[0.3, -1.0], [-1.0, 0.1], [0.2, 0.9]], [1, 1, -1], slope, -50)
        early = align(Problem(data, net))
        assert early.fates == ("aligned",) * 3
        np.testing.assert_allclose(early.growth, (1 + slope) / 4 * 0.549747416749, rtol=1e-11)
        np.testing.assert_allclose(early.direction, np.outer([1, 1, -1], [8, 2]) / np.hypot(8, 2), atol=1e-14)
        assert not early.nonunique.any()


def test_fixed_subgradient_is_refused_only_where_it_matters():
    for value in (0.0, 0.3, 1.0):
        assert align(one(EX2, (-1, 2.5), 1), subgradient=value).fates == ("aligned",)
    sliding = one(Dataset([[1, 1], [2, 0]], [1, -1]), (-0.2, 1), 1)
    assert align(sliding, subgradient=0.5).fates == ("sliding",)  # the slope it slides with
    with pytest.raises(ProblemError, match=r"sample 1, .* only the slope 0\.5 keeps it there"):
        align(sliding, subgradient=0.0)
    ridge = one(Dataset([[1, 0]], [1]), (0, 1), 1)
    with pytest.raises(ProblemError, match="branch='leave'"):
        align(ridge, subgradient=1.0)
    assert align(ridge, subgradient=1.0, branch="leave").fates == ("aligned",)


@pytest.mark.parametrize(("unit", "s"), [(2.0, 0.9499989444), (0.5, 0.4013322772)])
def test_leaving_at_full_size(unit, s):
    """At |w| = 1 the pull of the sample fades as it is learned, but the path is that of the small-scale limit.

    Only the clock differs: one unit of the limit's time takes 1/g(q) of true time, with q read off the path.
    """
    problem = one(Dataset([[1, 0]], [1]), (0, 1), 1)
    leave = align(problem, branch="leave")

    def pull(t):
        return problem.loss.force(leave.network(t).margins(problem.data))[0]

    found = brentq(lambda t: quad(lambda u: 1 / pull(u), 0.0, t, epsabs=1e-13)[0] - unit, 1e-6, 2.0, xtol=1e-14)
    assert found == pytest.approx(s, abs=1e-9)
