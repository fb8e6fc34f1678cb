"""Discrete training: one step against independent references, order, schedules, precision, scales."""

import math

import numpy as np
import pytest

import reluflow as rf
from reluflow.dynamics.descend.step import order


def random_problem(seed=0, n=7, d=4, p=6, slope=0.0, **options):
    rng = np.random.default_rng(seed)
    data = rf.Dataset(rng.standard_normal((n, d)), np.where(np.arange(n) % 2, 1, -1))
    net = rf.Network(0.5 * rng.standard_normal((p, d)), 0.5 * rng.standard_normal(p), slope)
    return rf.Problem(data, net, **options)


def loss_of(problem, W, a, rows=None):
    """The loss by its definition, sample by sample."""
    data, alpha, total = problem.data, problem.net.slope, 0.0
    rows = range(data.n) if rows is None else rows
    for i in rows:
        f = sum(a[j] * max(W[j] @ data.X[i], alpha * (W[j] @ data.X[i])) for j in range(len(a)))
        q = data.y[i] * f
        total += math.exp(-q) if problem.loss.name == "exponential" else math.log1p(math.exp(-q))
    return total / len(rows) if problem.reduction == "mean" else total


def gradient(problem, W, a, kink, rows=None):
    """Minus the force, neuron by neuron and sample by sample."""
    data, alpha = problem.data, problem.net.slope
    rows = range(data.n) if rows is None else rows
    r = 1 / len(rows) if problem.reduction == "mean" else 1.0
    dW, da = np.zeros_like(W), np.zeros_like(a)
    for i in rows:
        z = W @ data.X[i]
        q = data.y[i] * sum(a[j] * max(z[j], alpha * z[j]) for j in range(len(a)))
        g = math.exp(-q) if problem.loss.name == "exponential" else 1 / (1 + math.exp(q))
        for j in range(len(a)):
            h = 1.0 if z[j] > 0 else alpha if z[j] < 0 else kink
            dW[j] -= r * g * data.y[i] * a[j] * h * data.X[i]
            da[j] -= r * g * data.y[i] * max(z[j], alpha * z[j])
    return dW, (da if problem.train == "both" else np.zeros_like(a))


CASES = [
    {"slope": slope, "loss": loss, "reduction": reduction, "train": train}
    for slope in (0.0, 0.3)
    for loss in ("logistic", "exponential")
    for reduction in ("mean", "sum")
    for train in ("both", "first")
]


@pytest.mark.parametrize("case", CASES)
def test_the_reference_gradient_is_the_derivative_of_the_loss(case):
    problem = random_problem(**case)
    W, a = problem.net.weights()
    dW, da = gradient(problem, W, a, 0.0)
    h = 1e-6
    for j, k in ((0, 1), (3, 2)):
        E = np.zeros_like(W)
        E[j, k] = h
        # central differences: h^2 + rounding/h, about 1e-10
        assert (loss_of(problem, W + E, a) - loss_of(problem, W - E, a)) / (2 * h) == pytest.approx(dW[j, k], abs=1e-8)
        e = np.zeros_like(a)
        e[j] = h
        if problem.train == "both":
            slope = (loss_of(problem, W, a + e) - loss_of(problem, W, a - e)) / (2 * h)
            assert slope == pytest.approx(da[j], abs=1e-8)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", ["gd", "sgd", "adam"])
def test_steps_equal_the_plain_loop(case, method):
    problem = random_problem(seed=1, **case)
    batch = 3 if method == "sgd" else None
    run = rf.descend(problem, method, step=0.05, steps=4, batch=batch, seed=5, record=range(5))
    W, a = (x.copy() for x in problem.net.weights())
    m = [np.zeros_like(W), np.zeros_like(a)]
    v = [np.zeros_like(W), np.zeros_like(a)]
    for k in range(4):
        rows = None
        if method == "sgd":  # batches of 3, 3 and 1 in an epoch
            rows = order(7, 5, k // 3)[3 * (k % 3) : 3 * (k % 3) + 3]
        grads = gradient(problem, W, a, 0.0, rows)
        if method == "adam":
            for part, (x, g) in enumerate(zip((W, a), grads, strict=True)):
                m[part] = 0.9 * m[part] + 0.1 * g
                v[part] = 0.999 * v[part] + 0.001 * g * g
                hat_m, hat_v = m[part] / (1 - 0.9 ** (k + 1)), v[part] / (1 - 0.999 ** (k + 1))
                x -= 0.05 * hat_m / (np.sqrt(hat_v) + 1e-8)
        else:
            W, a = W - 0.05 * grads[0], a - 0.05 * grads[1]
        np.testing.assert_allclose(run.W[k + 1], W, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(run.a[k + 1], a, rtol=1e-12, atol=1e-13)
        assert run.loss[k + 1] == pytest.approx(loss_of(problem, W, a), rel=1e-12)
    assert run.method == method
    np.testing.assert_allclose(run.time, 0.05 * np.arange(5), rtol=1e-14)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_samples_one_by_one_equal_the_plain_loop(case, dtype):
    # Mostly zeros, which the compiled pass leaves out; a row of zeros in W, so that kinks are met exactly.
    given = random_problem(seed=3, n=9, d=6, p=5, **case)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((9, 6)) < 0.6, 0.0, given.data.X)
    X[:, 0] = given.data.X[:, 0]
    W, a = (x.copy() for x in given.net.weights())
    W[2] = 0.0
    net = rf.Network(W, a, given.net.slope)
    problem = rf.Problem(rf.Dataset(X, given.data.y), net, case["loss"], case["reduction"], case["train"])
    marks = [0, 1, 7, 9, 30]  # within an epoch and at its end
    run = rf.descend(problem, "sgd", step=0.05, steps=30, batch=1, seed=5, subgradient=0.5, record=marks, dtype=dtype)
    rounding = 1e-12 if dtype == "float64" else 1e-5
    for k in range(30):
        grads = gradient(problem, W, a, 0.5, order(9, 5, k // 9)[k % 9 : k % 9 + 1])
        W, a = W - 0.05 * grads[0], a - 0.05 * grads[1]
        if k + 1 in marks:
            at = marks.index(k + 1)
            np.testing.assert_allclose(run.W[at], W, rtol=rounding, atol=rounding)
            np.testing.assert_allclose(run.a[at], a, rtol=rounding, atol=rounding)
    np.testing.assert_allclose(run.time, 0.05 * np.array(marks), rtol=1e-14)


@pytest.mark.parametrize("method", ["gd", "sgd", "adam"])
@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_steps_equal_autograd(method, slope):
    torch = pytest.importorskip("torch")
    problem = random_problem(seed=2, n=20, d=5, p=9, slope=slope)
    batch = 6 if method == "sgd" else None
    run = rf.descend(problem, method, step=0.1, steps=7, batch=batch, seed=3, record=2)
    X, y = torch.tensor(problem.data.X.copy()), torch.tensor(problem.data.y.copy())
    W, a = (torch.tensor(x.copy(), requires_grad=True) for x in problem.net.weights())
    optimizer = (torch.optim.Adam if method == "adam" else torch.optim.SGD)([W, a], lr=0.1)
    for k in range(7):
        rows = order(20, 3, k // 4)[6 * (k % 4) : 6 * (k % 4) + 6] if batch else np.arange(20)
        optimizer.zero_grad()
        f = torch.nn.functional.leaky_relu(X[rows] @ W.T, slope) @ a
        torch.nn.functional.softplus(-y[rows] * f).mean().backward()
        optimizer.step()
    np.testing.assert_allclose(run.W[-1], W.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(run.a[-1], a.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("kink", [0.0, 0.25, 0.5, 1.0])
def test_the_subgradient_at_zero_is_the_one_asked_for(kink):
    # w is orthogonal to the first sample exactly
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1, 1])
    problem = rf.Problem(data, rf.Network([[0.0, 1.0]], [2.0], slope=0.25), "exponential", "sum")
    run = rf.descend(problem, step=0.1, steps=1, subgradient=kink)
    # forces 1 and e^-2 on weights (0, 1)
    np.testing.assert_allclose(run.W[-1], [[0.1 * 2 * kink, 1 + 0.1 * 2 * math.exp(-2)]], rtol=1e-14)
    assert run.settings["subgradient"] == kink


def test_by_default_the_subgradient_at_zero_is_the_slope():
    assert rf.descend(random_problem(), step=0.1, steps=1).settings["subgradient"] == 0.0
    assert rf.descend(random_problem(slope=0.3), step=0.1, steps=1).settings["subgradient"] == 0.3


@pytest.mark.parametrize("batch", [1, 3, 4, 10])
def test_sgd_visits_every_sample_once_an_epoch(batch):
    # One neuron per sample on orthogonal samples: each step moves exactly the neurons of its batch.
    n = 10
    net = rf.Network(np.eye(n), np.ones(n))
    problem = rf.Problem(rf.Dataset(np.eye(n), np.ones(n)), net)
    each = -(-n // batch)
    run = rf.descend(problem, "sgd", step=0.1, epochs=3, batch=batch, seed=1, record=range(3 * each + 1))
    moved = (np.diff(run.a, axis=0) != 0).reshape(3, each, n)
    assert (moved.sum(axis=1) == 1).all()
    assert (moved.sum(axis=2)[:, :-1] == batch).all()
    if batch < n:
        assert not np.array_equal(moved[0], moved[1])  # another order in every epoch
        other = rf.descend(problem, "sgd", step=0.1, epochs=3, batch=batch, seed=2, record=range(3 * each + 1))
        assert not np.array_equal(other.a, run.a)
    assert np.array_equal(
        rf.descend(problem, "sgd", step=0.1, epochs=3, batch=batch, seed=1).a[-1], run.a[-1]
    )  # the same seed is the same run


def test_one_batch_of_everything_is_gradient_descent():
    problem = random_problem(seed=4)
    one = rf.descend(problem, "sgd", step=0.1, steps=20, batch=7)
    all_ = rf.descend(problem, step=0.1, steps=20)
    np.testing.assert_allclose(one.W[-1], all_.W[-1], atol=1e-13)


def smooth_problem():
    """Strictly orthogonally separable data, neurons in their cones: no activation ever changes."""
    data = rf.Dataset([[1.0, 0.3], [0.8, 0.6], [-1.0, -0.2], [-0.5, -0.9]], [1, 1, -1, -1])
    return rf.Problem(data, rf.Network([[0.5, 0.4], [-0.3, -0.4]], [0.6, -0.5]))


def errors_against(network_at, problem, until):
    W, a = network_at
    sizes = [0.1, 0.05, 0.025, 0.0125]
    found = []
    for step in sizes:
        run = rf.descend(problem, step=step, steps=round(until / step))
        assert run.time[-1] == pytest.approx(until)
        found.append(np.abs(run.W[-1] - W).max() + np.abs(run.a[-1] - a).max())
    return found


def test_gradient_descent_converges_to_the_flow_with_order_one():
    from scipy.integrate import solve_ivp

    problem = smooth_problem()
    W, a = problem.net.weights()

    def field(_, state):
        dW, da = gradient(problem, state[:4].reshape(2, 2), state[4:], 0.0)
        return -np.concatenate([dW.ravel(), da])

    end = solve_ivp(field, (0, 4.0), np.concatenate([W.ravel(), a]), "DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    found = errors_against((end[:4].reshape(2, 2), end[4:]), problem, 4.0)
    ratios = np.divide(found[:-1], found[1:])
    # order one: ratios 2 + O(step); the last step is 0.0125
    assert (np.abs(ratios - 2) < 0.1).all()
    assert abs(ratios[-1] - 2) < abs(ratios[0] - 2) + 1e-3


def test_gradient_descent_converges_to_our_flow_with_order_one():
    flow = getattr(rf, "flow", None)
    if flow is None:
        pytest.skip("flow is not there")
    problem = smooth_problem()
    found = errors_against(flow(problem, {"time": 4.0}).final.weights(), problem, 4.0)
    assert (np.abs(np.divide(found[:-1], found[1:]) - 2) < 0.1).all()


# -- schedules --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["loss-scaled", "loss-log-scaled"])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_scaled_step_is_the_plain_step_of_that_size(schedule, loss):
    problem = random_problem(seed=6, loss=loss)
    run = rf.descend(problem, step=0.02, steps=3, schedule=schedule, record=range(4))
    for k in range(3):
        L = loss_of(problem, run.W[k], run.a[k])
        size = 0.02 / L / (1 + max(0.0, -math.log(L)) if schedule == "loss-log-scaled" else 1.0)
        dW, da = gradient(problem, run.W[k], run.a[k], 0.0)
        np.testing.assert_allclose(run.W[k + 1], run.W[k] - size * dW, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(run.a[k + 1], run.a[k] - size * da, rtol=1e-12, atol=1e-13)
        assert run.time[k + 1] - run.time[k] == pytest.approx(size, rel=1e-12)


@pytest.mark.parametrize("train", ["both", "first"])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_a_scaled_step_survives_losses_no_double_can_hold(train, loss):
    problem = smooth_problem().replace(train=train, loss=loss)
    # q is of degree 2 or 1 in what is trained: |grad q|^2 grows with q, or stays, and the step has to allow for it
    schedule = "loss-log-scaled" if train == "both" else "loss-scaled"
    run = rf.descend(problem, step=0.2 if train == "both" else 0.5, steps=20000, schedule=schedule, record=300)
    assert run.log_loss[-1] < -800  # e^-745 is the last double
    late = run.log_loss < -1
    assert (np.diff(run.log_loss[late]) < 0).all()
    # the smoothed margin never decreases, and lies below the normalised margin (SBG-P-mono); steps are small
    smooth = run.smoothed_margin()[late]
    assert (np.diff(smooth) > -1e-9).all()
    assert (smooth <= run.normalized_margin()[late] + 1e-12).all()
    fixed = rf.descend(problem, step=0.2, steps=20000, record=2)
    assert fixed.log_loss[-1] > -20


# -- precision and scale ----------------------------------------------------------------------------------


def test_single_precision_is_single():
    problem = random_problem(seed=8, n=30, d=6, p=12)
    double = rf.descend(problem, step=0.1, steps=50)
    single = rf.descend(problem, step=0.1, steps=50, dtype="float32")
    off = np.abs(single.W[-1] - double.W[-1]).max()
    assert 1e-9 < off < 1e-5
    assert single.settings["dtype"] == "float32"
    # The weights are floats: their products with powers of two are, too. Recorded is direction times norm, to 1e-15.
    rounded = single.W[-1].astype(np.float32).astype(float)
    np.testing.assert_allclose(rounded, single.W[-1], rtol=1e-14)


@pytest.mark.parametrize("method", ["gd", "sgd"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_start_below_every_double_runs_like_a_larger_one(method, dtype):
    # While margins are negligible the recursion is linear: e^-900 against e^-50 is a shift of all logarithms.
    problem = random_problem(seed=9, n=12, d=3, p=8)
    options = {"step": 0.5, "steps": 40, "batch": 4 if method == "sgd" else None, "dtype": dtype, "record": [0, 17, 40]}
    tiny = rf.descend(problem.replace(net=problem.net.with_log_scale(-900.0)), method, **options)
    small = rf.descend(problem.replace(net=problem.net.with_log_scale(-50.0)), method, **options)
    tol = 1e-11 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(tiny.directions, small.directions, atol=tol)
    np.testing.assert_allclose(tiny.log_norms + 850, small.log_norms, atol=tol)
    np.testing.assert_allclose(tiny.log_outs + 850, small.log_outs, atol=tol)


def test_a_tiny_start_grows_into_ordinary_numbers():
    data = rf.Dataset([[1.0, 0.3], [0.8, 0.6], [-1.0, -0.2], [-0.5, -0.9]], [1, 1, -1, -1])
    # the second neuron is dead: it stays where it is, far below every double
    net = rf.Network.balanced([[1.0, 0.2], [-0.2, 0.17], [-1.0, -0.1]], [1, 1, -1], log_scale=-1500.0)
    run = rf.descend(rf.Problem(data, net, "exponential", "sum"), step=0.5, steps=4000)
    assert run.log_loss[-1] < -3
    live = np.isfinite(run.log_norms[-1])
    assert live.all()
    assert (run.log_norms[-1, [0, 2]] > -1).all()
    start = rf.Problem(data, net.with_log_scale(-20.0), "exponential", "sum")
    later = rf.descend(start, step=0.5, steps=4000)
    np.testing.assert_allclose(run.directions[-1], later.directions[-1], atol=1e-2)  # one has trained longer


def test_features_that_are_zero_for_all_samples_change_nothing():
    problem = random_problem(seed=10)
    X = np.insert(problem.data.X, [0, 2], 0.0, axis=1)
    W = np.insert(problem.net.W, [0, 2], 0.7, axis=1)
    wider = rf.Problem(rf.Dataset(X, problem.data.y), rf.Network(W, problem.net.a))
    for method in ("gd", "adam"):
        small = rf.descend(problem, method, step=0.1, steps=10)
        large = rf.descend(wider, method, step=0.1, steps=10)
        np.testing.assert_allclose(np.delete(large.W[-1], [0, 3], axis=1), small.W[-1], rtol=1e-12)
        np.testing.assert_allclose(large.W[-1][:, [0, 3]], 0.7, rtol=1e-14)


@pytest.mark.parametrize(("n", "d", "p"), [(1, 1, 1), (1, 3, 2), (5, 1, 1), (2, 2, 40)])
@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_smallest_problems(n, d, p, slope):
    problem = random_problem(seed=11, n=n, d=d, p=p, slope=slope)
    run = rf.descend(problem, step=0.1, steps=3, record=range(4))
    W, a = problem.net.weights()
    for _ in range(3):
        dW, da = gradient(problem, W, a, slope)
        W, a = W - 0.1 * dW, a - 0.1 * da
    np.testing.assert_allclose(run.W[-1], W, rtol=1e-12, atol=1e-14)


def test_zero_neurons_stay_and_zero_steps_are_a_run():
    problem = random_problem(seed=12)
    W, a = (x.copy() for x in problem.net.weights())
    W[0], a[0] = 0.0, 0.0
    problem = problem.replace(net=rf.Network(W, a))
    run = rf.descend(problem, step=0.1, steps=10)
    assert not run.W[-1, 0].any()
    assert run.a[-1, 0] == 0
    start = rf.descend(problem, step=0.1, steps=0)
    assert len(start) == 1
    np.testing.assert_allclose(start.W[0], W, rtol=1e-15, atol=0)
