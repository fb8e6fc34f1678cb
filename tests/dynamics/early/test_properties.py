"""What must hold for every early phase: symmetries, monotone quantities, bounds, validity."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from reluflow import Dataset, Network, Problem, align, initialize
from reluflow.sectors import G, alignment_constants, cones_of

seeds = st.integers(0, 10**6)
slopes = st.sampled_from([0.0, 0.3, 0.5, 1.0])


def random_problem(seed, slope, scheme="balanced", n=None, separable=False, log_scale=-200.0):
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(1, 8))
    d = int(rng.integers(2, 5))
    if separable:  # two opposite orthants: orthogonally separable
        y = rng.choice([-1.0, 1.0], n)
        X = y[:, None] * np.abs(rng.standard_normal((n, d)))
    else:
        X, y = rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n)
    # another stream than that of the points: a neuron parallel to a point is a case of its own
    net = initialize(d, width=6, scheme=scheme, seed=rng, slope=slope, log_scale=log_scale)
    return Problem(Dataset(X, y), net, "exponential", "sum")


def assert_same_path(one, two, turn=lambda v: v, times=1.0, index=lambda i: i):
    assert one.fates == two.fates
    for j in range(one.p):
        a, b = one.events(j), two.events(j)
        np.testing.assert_allclose(b["time"], a["time"] * times, rtol=1e-9, atol=1e-12)
        # what happens at one and the same time is listed in the order of the samples
        assert sorted(zip(b["sample"].tolist(), b["kind"].tolist(), strict=True)) == sorted(
            (int(index(i)), kind) for i, kind in zip(a["sample"], a["kind"].tolist(), strict=True)
        )
    for t in (0.0, 0.4, 3.0):
        size = one.log_norms(t)
        np.testing.assert_allclose(two.log_norms(t * times), size, atol=1e-8)
        alive = np.isfinite(size)  # |a| > |w| can reach w = 0, which has no direction
        np.testing.assert_allclose(two.directions(t * times)[alive], turn(one.directions(t))[alive], atol=1e-8)


@settings(deadline=None, max_examples=40)
@given(seeds, slopes, st.sampled_from(["balanced", "gaussian"]))
def test_rotation(seed, slope, scheme):
    problem = random_problem(seed, slope, scheme)
    Q = ortho_group.rvs(problem.data.d, random_state=seed)
    net = problem.net
    turned = problem.replace(
        data=Dataset(problem.data.X @ Q, problem.data.y), net=Network(net.W @ Q, net.a, slope, net.log_scale)
    )
    assert_same_path(align(problem), align(turned), turn=lambda v: v @ Q)


@settings(deadline=None, max_examples=40)
@given(seeds, slopes)
def test_permutation_of_samples(seed, slope):
    problem = random_problem(seed, slope)
    order = np.random.default_rng(seed).permutation(problem.data.n)
    back = np.argsort(order)
    mixed = problem.replace(data=problem.data.subset(order))
    assert_same_path(align(problem), align(mixed), index=lambda i: back[i])


@settings(deadline=None, max_examples=40)
@given(seeds, slopes, st.floats(1e-3, 1e3))
def test_scaling_of_the_data_is_a_change_of_clock(seed, slope, factor):
    problem = random_problem(seed, slope)
    scaled = problem.replace(data=Dataset(problem.data.X * factor, problem.data.y))
    assert_same_path(align(problem), align(scaled), times=1.0 / factor)


@settings(deadline=None, max_examples=40)
@given(seeds, slopes)
def test_label_flip_with_output_flip(seed, slope):
    problem = random_problem(seed, slope)
    net = problem.net
    flipped = problem.replace(data=problem.data.flipped(), net=Network(net.W, -net.a, slope, net.log_scale))
    one, two = align(problem), align(flipped)
    assert_same_path(one, two)
    np.testing.assert_array_equal(two.signs, -one.signs)


@settings(deadline=None, max_examples=40)
@given(seeds, slopes, st.floats(-3000, 100))
def test_the_norm_does_not_matter(seed, slope, log_scale):
    problem = random_problem(seed, slope)
    one, two = align(problem), align(problem.replace(net=problem.net.with_log_scale(log_scale)))
    for j in range(one.p):
        np.testing.assert_array_equal(one.events(j), two.events(j))
    np.testing.assert_array_equal(one.direction, two.direction)
    np.testing.assert_array_equal(one.log_gain, two.log_gain)


@settings(deadline=None, max_examples=60)
@given(seeds, slopes)
def test_g_along_the_path_never_decreases(seed, slope):
    problem = random_problem(seed, slope)
    early = align(problem)
    times = np.linspace(0.0, 3.0, 61)
    value = np.array([G(problem.data, w, slope) for w in early.directions(times)]) * early.signs
    assert (np.diff(value, axis=0) >= -1e-9 * problem.data.norms.sum()).all()


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from([0.0]))
def test_orthogonally_separable_data(seed, slope):
    problem = random_problem(seed, slope, separable=True)
    early, data = align(problem), problem.data
    times = np.linspace(0.0, 3.0, 61)
    size = np.exp(early.log_norms(times) - early.log_norms(0.0))
    pre = early.directions(times) @ data.X.T * size[:, :, None]  # (time, neuron, sample)
    signed = pre * early.signs[:, None] * data.y
    scale = np.abs(pre).max(axis=0)
    assert (np.diff(signed, axis=0) >= -1e-9 * scale).all()  # ML-MON
    assert (early.n_events <= data.n).all()
    assert not {"slide"} & {kind for j in range(early.p) for kind in early.events(j)["kind"]}
    bounds = alignment_constants(data, problem.net)
    assume(bounds.applies)
    assert early.last_event.max() <= bounds.t_1_sharp
    live = [j for j, fate in enumerate(early.fates) if fate == "aligned"]
    cones = cones_of(data, early.directions(bounds.t_1_sharp)[live])
    assert np.where(early.signs[live] > 0, cones.plus, cones.minus).all()
    assert (early.pattern[[f == "dead" for f in early.fates]] <= 0).all()
    assert set(early.fates) <= {"aligned", "dead"}


@settings(deadline=None, max_examples=60)
@given(seeds, slopes, st.sampled_from(["balanced", "gaussian", "he", "two-sign"]))
def test_balance_is_conserved_and_fates_are_allowed(seed, slope, scheme):
    problem = random_problem(seed, slope, scheme, log_scale=-3.0)
    train = "first" if scheme == "two-sign" else "both"
    early = align(problem.replace(train=train))
    assert set(early.fates) <= {"aligned", "sliding", "shrinking", "dead", "stuck"}
    if train == "both":
        start = np.exp(2 * early.log_outs(0.0)) - np.exp(2 * early.log_norms(0.0))
        for t in (0.2, 1.0):
            a2, w2 = np.exp(2 * early.log_outs(t)), np.exp(2 * early.log_norms(t))
            np.testing.assert_allclose(a2 - w2, start, atol=1e-11 * (a2 + w2 + np.abs(start)).max())


@settings(deadline=None, max_examples=40)
@given(seeds, slopes)
def test_final_direction_is_reached(seed, slope):
    early = align(random_problem(seed, slope))
    late = early.directions(float(early.alignment_times(angle=1e-6).max()) + 200.0)
    for j, fate in enumerate(early.fates):
        if fate in ("aligned", "sliding", "dead"):
            np.testing.assert_allclose(late[j], early.direction[j], atol=1e-6)


@settings(deadline=None, max_examples=25)
@given(seeds, slopes, st.floats(1e-12, 1e-3))
def test_validity_ends_where_the_outputs_reach_the_tolerance(seed, slope, tol):
    problem = random_problem(seed, slope, log_scale=-30.0)
    early = align(problem)
    end = early.valid_until(tol)
    largest = lambda t: np.abs(early.network(t).margins(problem.data)).max()  # noqa: E731
    probe = np.linspace(0.0, end if np.isfinite(end) else 50.0, 60)
    assert max(largest(t) for t in probe) <= tol * (1 + 1e-6)
    if np.isfinite(end):
        assert largest(end + 1e-6 * max(end, 1.0)) > tol * (1 - 1e-4)


def test_to_xarray():
    pytest.importorskip("xarray")
    early = align(random_problem(3, 0.3))
    table = early.to_xarray()
    np.testing.assert_array_equal(table["direction"].values, early.direction)
    assert table.sizes["neuron"] == early.p


def test_growth_is_the_late_slope_of_the_log_norm():
    early = align(random_problem(11, 0.3, n=5))
    for j in np.flatnonzero(np.isin(early.fates, ("aligned", "sliding"))):
        slope = (early.log_norms(400.0)[j] - early.log_norms(300.0)[j]) / 100.0
        assert slope == pytest.approx(early.growth[j], rel=1e-9)


def test_frozen_second_layer_moves_linearly():
    # one sample: w = w_0 + v y x t while it is active
    data = Dataset([[1.0, 0.0]], [1])
    net = Network([[0.5, 2.0]], [0.25], log_scale_out=0.0)
    early = align(Problem(data, net, "exponential", "sum", "first"))
    w = early.directions(4.0)[0] * np.exp(early.log_norms(4.0)[0])
    np.testing.assert_allclose(w, [0.5 + 0.25 * 4.0, 2.0], rtol=1e-13)
