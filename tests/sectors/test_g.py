"""G, its one-sided derivatives and its slopes at kinks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow.problem import Dataset, Loss, Network, Problem, ProblemError
from reluflow.sectors import G, G_clarke, G_derivative, G_gradient, linear_until, sector

EX1 = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])


def test_values_of_the_worked_example():
    plus, minus = np.array([3.0, 3.0]), np.array([-4.0, -3.5])
    # PL-L2' in the normalisation of the logistic loss, g(0) = 1/2.
    assert G(EX1, plus / np.linalg.norm(plus), speed=0.5) == pytest.approx(2.1213203436, abs=5e-11)
    assert G(EX1, minus / np.linalg.norm(minus), speed=0.5) == pytest.approx(-2.6575364532, abs=5e-11)


def test_forces_of_the_worked_example():
    force = G_gradient(EX1, [[-1, 1], [1, -1]])
    assert force.tolist() == [[4, 3], [3, 3.5]]
    assert np.linalg.norm(force, axis=1) == pytest.approx([5, 4.609772229], abs=5e-10)


def test_speed_makes_it_the_function_of_the_problem():
    # Near zero L = const - sum_j a_j G(w_j): compare with the loss itself.
    eps = 1e-5
    w = np.array([[0.3, -0.8]])
    for loss in ("logistic", "exponential"):
        for reduction in ("mean", "sum"):
            problem = Problem(EX1, Network(eps * w, [eps], 0.3), loss, reduction)
            rest = Problem(EX1, Network(0 * w, [0.0], 0.3), loss, reduction)
            change = np.exp(problem.log_loss()) - np.exp(rest.log_loss())
            assert -change / eps**2 == pytest.approx(float(G(EX1, w[0], 0.3, problem.speed)), rel=1e-4)
    assert problem.loss == Loss("exponential")


integers = st.integers(-3, 3)


@st.composite
def situations(draw):
    d = draw(st.integers(1, 3))
    point = st.tuples(*d * [integers]).filter(any)
    X = np.unique(np.array(draw(st.lists(point, min_size=1, max_size=6)), dtype=float), axis=0)
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=len(X), max_size=len(X))))
    w, v = (np.array(draw(st.tuples(*d * [integers])), dtype=float) for _ in range(2))
    return Dataset(X, y), w, v, draw(st.sampled_from([0.0, 0.25, 1.0]))


@settings(deadline=None, max_examples=150)
@given(situations())
def test_derivative_is_the_difference_quotient(situation):
    # Integers, and for the step a power of two below the first event: every number here is exact in floating point.
    data, w, v, slope = situation
    step = 2.0 ** np.floor(np.log2(min(linear_until(data, w, v), 1.0)))
    quotient = (G(data, w + step * v, slope) - G(data, w, slope)) / step
    assert G_derivative(data, w, v, slope) == quotient


@settings(deadline=None, max_examples=150)
@given(situations())
def test_value_on_the_sphere_near_a_point(situation):
    # PL-LA2: along w + e v, renormalised, with the indicator taken after the step.
    data, w, v, slope = situation
    if not w.any():
        return
    w = w / np.linalg.norm(w)
    if not np.array_equal(sector(data, w), sector(data, situation[1])):
        return  # normalising moved w off a hyperplane
    e = 0.5 * min(linear_until(data, w, v), 1.0)
    moved = w + e * v
    if np.linalg.norm(moved) < 1e-3:
        return
    z = data.X @ moved
    slopes = np.where(z > 0, 1.0, slope)
    want = (G(data, w, slope) + e * (data.y * slopes) @ (data.X @ v)) / np.linalg.norm(moved)
    assert G(data, moved / np.linalg.norm(moved), slope) == pytest.approx(want, abs=1e-12)


@settings(deadline=None, max_examples=150)
@given(situations())
def test_slopes_at_a_kink_hold_every_derivative(situation):
    # G'(w; v) is the value at v of the element whose slopes are those just beside w in direction v.
    data, w, v, slope = situation
    slopes = G_clarke(data, w, slope)
    h = np.where(data.X[slopes.samples] @ v > 0, 1.0, slope)
    assert slopes.element(h) @ v == pytest.approx(G_derivative(data, w, v, slope), abs=1e-12)
    assert set(slopes.samples) == set(np.flatnonzero(sector(data, w) == 0))
    assert slopes.element(np.full(len(slopes.samples), slope)) == pytest.approx(G_gradient(data, w, slope), abs=1e-12)


def test_positive_homogeneity_and_label_flip():
    rng = np.random.default_rng(3)
    data = Dataset(rng.standard_normal((7, 4)), rng.choice([-1.0, 1.0], 7))
    W = rng.standard_normal((5, 4))
    assert G(data, 8 * W, 0.25) == pytest.approx(8 * G(data, W, 0.25), rel=1e-13)
    assert G(data.flipped(), W, 0.25) == pytest.approx(-G(data, W, 0.25), rel=1e-13)


def test_no_event_ahead():
    assert linear_until(Dataset([[1.0, 0.0]], [1]), [1, 0], [1, 5]) == np.inf
    assert linear_until(Dataset([[1.0, 0.0]], [1]), [0, 1], [-1, 0]) == np.inf  # starts on it: never changes strictly


def test_wrong_shapes_are_refused():
    with pytest.raises(ProblemError, match="shape"):
        G(EX1, [1, 2, 3])
    with pytest.raises(ProblemError, match="one vector"):
        G_derivative(EX1, [[1, 2]], [1, 2])
    with pytest.raises(ProblemError, match="slope"):
        G(EX1, [1, 2], slope=1.5)
