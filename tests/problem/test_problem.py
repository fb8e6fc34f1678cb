"""Problems: clocks, losses, identity, refusals."""

import pickle

import numpy as np
import pytest

from reluflow import Dataset, Loss, Network, Problem, ProblemError, initialize

DATA = Dataset([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0]], [1, 1, -1])
NET = initialize(2, width=4, scale=0.5)


def test_defaults_and_names():
    problem = Problem(DATA, NET)
    assert (problem.loss, problem.reduction, problem.train) == (Loss("logistic"), "mean", "both")
    assert Problem(DATA, NET, loss="exponential").loss == Loss("exponential")
    assert Problem(DATA, NET, loss=Loss("exponential")) == Problem(DATA, NET, loss="exponential")


def test_speed_is_reduction_times_force_at_zero():
    speeds = {
        (loss, r): Problem(DATA, NET, loss, r).speed for loss in ("logistic", "exponential") for r in ("mean", "sum")
    }
    assert speeds == {
        ("logistic", "mean"): pytest.approx(1 / 6),
        ("logistic", "sum"): 0.5,
        ("exponential", "mean"): pytest.approx(1 / 3),
        ("exponential", "sum"): 1.0,
    }


def test_log_loss_against_the_plain_sum():
    q = NET.margins(DATA)
    assert Problem(DATA, NET).log_loss() == pytest.approx(np.log(np.mean(np.log1p(np.exp(-q)))), rel=1e-14)
    assert Problem(DATA, NET, "exponential", "sum").log_loss() == pytest.approx(np.log(np.sum(np.exp(-q))), rel=1e-14)
    assert Problem(DATA, NET).log_loss(NET.with_log_scale(-3000)) == pytest.approx(np.log(np.log(2.0)), rel=1e-15)


def test_log_loss_of_enormous_margins_is_finite():
    problem = Problem(DATA, NET)
    want = -1e6 + np.log(2 / 3)
    assert problem.log_loss_of(np.array([1e6, 1e6, 2e6])) == pytest.approx(want, rel=1e-15)


def test_identity():
    problem = Problem(DATA, NET)
    same = Problem(Dataset(DATA.X, DATA.y, name="x"), Network(NET.W, NET.a, log_scale=NET.log_scale))
    assert same == problem
    assert hash(same) == hash(problem)
    assert same.fingerprint() == problem.fingerprint()
    assert pickle.loads(pickle.dumps(problem)) == problem
    changes = [
        {"data": DATA.flipped()},
        {"net": NET.with_log_scale(-1.0)},
        {"loss": "exponential"},
        {"reduction": "sum"},
        {"train": "first"},
    ]
    prints = {problem.replace(**c).fingerprint() for c in changes} | {problem.fingerprint()}
    assert len(prints) == 6
    assert problem.replace() == problem


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Problem(np.eye(2), NET), "must be a Dataset, not ndarray"),
        (lambda: Problem(DATA, DATA), "must be a Network, not Dataset"),
        (lambda: Problem(DATA, initialize(3)), "2 features but the network has 3 inputs"),
        (lambda: Problem(DATA, NET, loss="hinge"), "loss 'hinge'"),
        (lambda: Problem(DATA, NET, reduction="max"), "reduction = 'max'"),
        (lambda: Problem(DATA, NET, train="second"), "train = 'second'"),
        (lambda: Problem(DATA, NET).replace(los="logistic"), "no field 'los'"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ProblemError, match=message):
        make()


@pytest.mark.parametrize("log_scale", [-1e308, -1.1e8, 1.1e8, 1e308, [0.0, 0.0, 0.0, -1e9]])
def test_starts_whose_logarithms_are_rounding_are_refused(log_scale):
    net = NET.with_log_scale(log_scale)  # by itself it may exist
    with pytest.raises(ProblemError, match=r"between -1e\+08 and 1e\+08"):
        Problem(DATA, net)
    Problem(DATA, NET.with_log_scale(-9.9e7))


@pytest.mark.parametrize("scheme", ["balanced", "two-sign"])
def test_starts_whose_outputs_overflow_are_refused_with_the_largest_that_do_not(scheme):
    net = initialize(2, width=4, scheme=scheme, scale=1e300)
    with pytest.raises(ProblemError, match="log_scale at most") as refused:
        Problem(DATA, net)
    allowed = float(str(refused.value).rstrip(".").split()[-1])
    assert np.isfinite(Problem(DATA, net.with_log_scale(allowed)).log_loss())


def test_zero_weights_do_not_set_the_scale():
    # A zero neuron, and a zero output weight, stand at any scale; the others are at e^-3000.
    W, a = [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], [1.0, 1.0, 0.0]
    far = Network(W, a, 0.0, [-3000.0, 0.0, -3000.0], [-3000.0, 0.0, 0.0])
    near = Network(W, a)
    mantissa, log_factor = far.scaled_outputs(DATA.X)
    assert log_factor == -6000.0
    assert np.array_equal(mantissa, near.outputs(DATA.X))
    assert far.normalized_margin(DATA) == pytest.approx(near.normalized_margin(DATA), rel=1e-12)
