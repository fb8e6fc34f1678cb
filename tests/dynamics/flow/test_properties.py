"""What every flow must keep, on random problems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf

SETTINGS = settings(deadline=None, max_examples=12)


@st.composite
def problems(draw, kind=None, train="both", small=False):
    kind = kind or draw(st.sampled_from(["linsep", "randlab", "orthsep"]))
    d = draw(st.integers(2, 4))
    n = draw(st.integers(2, 9))
    seed = draw(st.integers(0, 10_000))
    slope = draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    scheme = draw(st.sampled_from(["balanced", "gaussian"])) if train == "both" else "two-sign"
    scale = 1e-5 if small else draw(st.sampled_from([1e-5, 0.1, 1.0]))
    data = rf.make(kind, n=n, d=d, seed=seed)
    width = 2 * draw(st.integers(1, 4))
    net = rf.initialize(d, width, scheme, scale, seed=seed, slope=slope)
    return rf.Problem(data, net, draw(st.sampled_from(["logistic", "exponential"])), train=train)


def run(problem, t=None):
    rate = problem.speed * np.abs(problem.data.norms).sum()
    return rf.flow(problem, {"time": t or 15.0 / rate, "log_time": 6.0})


@SETTINGS
@given(problems())
def test_conserved_and_monotone(problem):
    flow = run(problem)
    assert flow.balance_drift().max() < 1e-10
    assert (np.diff(flow.log_loss) < 1e-12).all()
    late = flow.log_loss - np.log(problem.weight) < np.log(float(problem.loss.value(0.0)))
    smooth = flow.smoothed_margin()[late]
    assert (np.diff(smooth) > -1e-9 * (1 + np.abs(smooth[1:]))).all()


@SETTINGS
@given(problems(kind="orthsep"))
def test_activations_are_monotone_on_orthogonally_separable_data(problem):
    # PL-LB1: s_j y_k w_j.x_k never decreases, as long as a_j keeps its sign.
    if problem.net.slope > 0 or not rf.sectors.is_orthogonally_separable(problem.data):
        return
    flow = run(problem)
    keeps = (flow.signs == flow.signs[0]).all(axis=0)
    # Relative to the largest size that the neuron has had.
    size = np.exp(flow.log_norms - np.maximum.accumulate(flow.log_norms, axis=0).max(axis=0))
    z = np.einsum(
        "tj,tjd,nd->tjn", size * flow.signs, flow.directions, problem.data.signed / problem.data.norms[:, None]
    )
    assert (np.diff(z[:, keeps], axis=0) > -1e-8).all()


@SETTINGS
@given(problems(), st.integers(0, 1000))
def test_permutation_rotation_and_label_flip(problem, seed):
    data, net = problem.data, problem.net
    rng = np.random.default_rng(seed)
    order, neurons = rng.permutation(data.n), rng.permutation(net.p)
    Q = np.linalg.qr(rng.normal(size=(data.d, data.d)))[0]
    turned = rf.Problem(
        rf.Dataset((data.X @ Q.T)[order], -data.y[order]),
        rf.Network((net.W @ Q.T)[neurons], -net.a[neurons], net.slope, net.log_scale, net.log_scale_out),
        problem.loss,
    )
    one, two = run(problem).final, run(turned).final
    assert two.log_norms == pytest.approx(one.log_norms[neurons], abs=1e-7)
    assert two.directions @ Q == pytest.approx(one.directions[neurons], abs=1e-7)
    assert (two.a == -one.a[neurons]).all()


@SETTINGS
@given(problems())
def test_sum_and_mean_differ_by_the_clock(problem):
    n = problem.data.n
    mean = run(problem, t=4.0).final
    total = run(problem.replace(reduction="sum"), t=4.0 / n).final
    assert total.log_norms == pytest.approx(mean.log_norms, abs=1e-7)
    assert total.directions == pytest.approx(mean.directions, abs=1e-7)


@SETTINGS
@given(problems(), st.floats(0.1, 0.9))
def test_splitting_a_neuron_changes_nothing(problem, part):
    # (w, a) -> (c w, c a), (s w, s a) with c^2 + s^2 = 1 leaves f(t) as it is, and both parts stay parallel.
    net = problem.net
    c, s = np.sqrt(part), np.sqrt(1 - part)
    W = np.vstack([c * net.W[:1], s * net.W[:1], net.W[1:]])
    a = np.concatenate([[c * net.a[0], s * net.a[0]], net.a[1:]])
    wide = rf.Problem(problem.data, rf.Network(W, a, net.slope, net.log_scale), problem.loss)
    one, two = run(problem), run(wide)
    q, r = one.final.margins(problem.data), two.final.margins(problem.data)
    assert r == pytest.approx(q, rel=1e-7, abs=1e-9)
    assert two.final.directions[0] == pytest.approx(two.final.directions[1], abs=1e-9)


@SETTINGS
@given(problems(small=True))
def test_scaling_data_scales_time(problem):
    # x -> c x is theta -> sqrt(c) theta and t -> t / c.
    c, net = 4.0, problem.net
    scaled = rf.Problem(
        rf.Dataset(c * problem.data.X, problem.data.y),
        net.with_log_scale(np.asarray(net.log_scale) - np.log(c) / 2),
        problem.loss,
    )
    one, two = run(problem, t=3.0).final, run(scaled, t=3.0 / c).final
    assert two.directions == pytest.approx(one.directions, abs=1e-7)
    assert two.log_norms + np.log(c) / 2 == pytest.approx(one.log_norms, abs=1e-7)


@SETTINGS
@given(problems(train="first"))
def test_frozen_layer(problem):
    flow = run(problem)
    assert (flow.log_outs == flow.log_outs[0]).all()
    assert (flow.signs == flow.signs[0]).all()
    assert (np.diff(flow.log_loss) < 1e-12).all()


@SETTINGS
@given(problems())
def test_velocity_is_the_gradient_away_from_kinks(problem):
    # dL/dt = -|theta'|^2 (LL-B.15): compare the loss lost between two close times with the gradient there.
    flow = run(problem)
    t = flow.time[-1]
    before, after = flow.at(time=t * (1 - 1e-4)), flow.at(time=t)
    data = problem.data
    z = before.directions @ data.X.T
    if np.abs(z).min() < 1e-4 or flow.log_norm[-1] < -5:
        return  # too near a kink, or too small to difference
    W, a = before.weights()
    slope = np.where(W @ data.X.T > 0, 1.0, problem.net.slope)
    c = problem.weight * data.y * problem.loss.force(before.margins(data))
    D = (slope * c) @ data.X
    square = (a**2) @ (D**2).sum(axis=1) + np.einsum("jd,jd->j", W, D) @ np.einsum("jd,jd->j", W, D)
    lost = np.exp(problem.log_loss(before)) - np.exp(problem.log_loss(after))
    assert lost == pytest.approx(square * t * 1e-4, rel=0.05, abs=1e-13)
