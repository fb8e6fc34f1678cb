"""The result object, unusual neurons and scales, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest

from reluflow import BudgetExceeded, Dataset, Network, Problem, ProblemError, align, initialize
from reluflow.dynamics.early import run as run_module

EX1 = Dataset([[2, 1], [1, 2], [-3, -1], [-1, -2.5]], [1, 1, -1, -1])


def unit(data, net, train="both"):
    return Problem(data, net, "exponential", "sum", train)


# -- neurons -----------------------------------------------------------------------------------------------


def test_same_direction_and_sign_same_events():
    W = np.repeat([[-1.0, -0.9], [-1.0, 1.0]], 3, axis=0) * np.array([[1], [3], [1e-3], [1], [7], [1e5]])
    net = Network.balanced(W, [1, 1, 1, -1, -1, -1], log_scale=[0, -3000, 5, 0, -100, 20])
    early = align(unit(EX1, net))
    for group in ([0, 1, 2], [3, 4, 5]):
        first = early.events(group[0])
        for j in group[1:]:
            assert early.events(j)["sample"].tolist() == first["sample"].tolist()
            assert early.events(j)["kind"].tolist() == first["kind"].tolist()
            np.testing.assert_allclose(early.events(j)["time"], first["time"], rtol=1e-13)
        np.testing.assert_allclose(early.log_gain[group], early.log_gain[group[0]], atol=1e-14)


def test_output_that_starts_at_zero_takes_the_sign_of_the_pull():
    # x = (1, 0), y = +1, w = (1, 0): a' = w_1, w_1' = a, so a = sinh t and w_1 = cosh t.
    net = Network([[1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0])
    early = align(unit(Dataset([[1, 0]], [1]), net))
    assert early.fates == ("aligned", "dead")
    assert early.output_signs(0.5).tolist() == [1, 0]
    t = np.array([0.1, 2.0])
    np.testing.assert_allclose(np.exp(early.log_outs(t)[:, 0]), np.sinh(t), rtol=1e-13)
    np.testing.assert_allclose(np.exp(early.log_norms(t)[:, 0]), np.cosh(t), rtol=1e-13)


def test_zero_weight_with_an_output():
    # Leaky: the force at w = 0 is s (1 + slope)/2 sum y x up to the kink; here one sample, and w leaves along x.
    net = Network([[0.0, 0.0], [0.0, 0.0]], [1.0, 0.0], slope=0.5)
    early = align(unit(Dataset([[2, 0]], [1]), net))
    assert early.fates == ("aligned", "dead")
    np.testing.assert_allclose(early.directions(0.3)[0], [1, 0], atol=1e-15)
    assert np.exp(early.log_norms(0.3)[0]) == pytest.approx(np.sinh(2 * 0.3), rel=1e-13)  # a = cosh 2t, w_1 = sinh 2t
    assert early.log_norms(0.0)[0] == -np.inf
    relu = align(unit(Dataset([[2, 0]], [1]), Network([[0.0, 0.0]], [1.0])))
    assert relu.fates == ("dead",)
    assert relu.nonunique[0]  # it might leave


def test_change_of_sign_on_the_way():
    # One sample against the neuron: a = 0.5 cosh t - sinh t vanishes at artanh(1/2), then w comes back.
    net = Network([[1.0, 0.0]], [0.5])
    early = align(unit(Dataset([[1, 0]], [-1]), net))
    assert early.events(0).tolist() == [(pytest.approx(np.arctanh(0.5), rel=1e-13), -1, "flip")]
    assert early.signs.tolist() == [-1]
    assert early.output_signs([0.1, 1.0])[:, 0].tolist() == [1, -1]
    t = np.array([0.2, 0.7, 3.0])
    np.testing.assert_allclose(np.exp(early.log_outs(t)[:, 0]), np.abs(0.5 * np.cosh(t) - np.sinh(t)), rtol=1e-12)
    np.testing.assert_allclose(np.exp(early.log_norms(t)[:, 0]), np.cosh(t) - 0.5 * np.sinh(t), rtol=1e-12)


def test_the_saddle_between_keeping_and_changing_the_sign():
    # |a| = w.c exactly: a = e^-t for ever, w tends to its part orthogonal to c.
    early = align(unit(Dataset([[1, 0]], [-1]), Network([[1.0, 0.75]], [1.0])))
    assert early.fates == ("stuck",)
    t = np.array([0.5, 5.0, 60.0])
    np.testing.assert_allclose(early.log_outs(t)[:, 0], -t, rtol=1e-13)
    np.testing.assert_allclose(np.exp(early.log_norms(t)[:, 0]), np.hypot(np.exp(-t), 0.75), rtol=1e-13)
    np.testing.assert_allclose(early.direction, [[0, 1]], atol=1e-15)
    assert early.growth[0] == 0


def test_shrinking_on_an_attracting_ray():
    # In the plane a hyperplane is a ray: -x_1 = (1, -1) and x_1 + x_2 push w onto (0, 1) and down along it, h = 1/2.
    data = Dataset([[-1.0, 1.0], [2.0, 0.0]], [-1, -1])
    early = align(unit(data, Network.balanced([[0.3, 1.0], [-0.1, 1.0]], [1, 1])))
    assert early.fates == ("shrinking", "shrinking")
    np.testing.assert_allclose(early.growth, -1.0, rtol=1e-14)
    np.testing.assert_allclose(early.direction, [[0, 1], [0, 1]], atol=1e-15)
    assert early.held(0) == {1: pytest.approx(0.5, rel=1e-14)}
    for j, t in enumerate(early.last_event):
        assert early.log_norms(t + 7.0)[j] - early.log_norms(t)[j] == pytest.approx(-7.0, rel=1e-13)
        np.testing.assert_allclose(early.directions(t + 1e6)[j], [0, 1], atol=1e-15)


def test_frozen_output_reaches_the_origin():
    early = align(unit(Dataset([[1.0], [-1.0]], [-1, -1]), Network([[1.0]], [2.0], slope=0.5), "first"))
    # w' = 2 (-1 + 1/2) = -1 until w = 0; there both sides push inwards and it stays.
    assert np.exp(early.log_norms(0.25)[0]) == pytest.approx(0.75, rel=1e-14)
    assert early.last_event[0] == pytest.approx(1.0, rel=1e-14)
    assert early.log_norms(2.0)[0] == -np.inf
    assert early.network(2.0).W[0, 0] == 0
    # One sample on one side only: w crosses 0 and goes on with the slope.
    early = align(unit(Dataset([[1.0]], [-1]), Network([[1.0]], [2.0], slope=0.5), "first"))
    assert early.events(0).tolist() == [(pytest.approx(0.5, rel=1e-14), 0, "deactivate")]
    assert np.exp(early.log_norms(1.5)[0]) == pytest.approx(1.0, rel=1e-14)  # w = -(1.5 - 0.5)
    assert early.directions(1.5)[0, 0] == -1


def test_first_layer_alone_has_the_same_path_in_another_clock():
    rng = np.random.default_rng(5)
    X, y, W = rng.standard_normal((8, 3)), rng.choice([-1.0, 1.0], 8), rng.standard_normal((5, 3))
    both = align(unit(Dataset(X, y), Network.balanced(W, [1, -1, 1, -1, 1])))
    first = align(unit(Dataset(X, y), Network(W, [0.1, -0.1, 0.2, -3.0, 1.0], log_scale=-30, log_scale_out=0), "first"))
    for j in range(5):
        if both.fates[j] not in ("shrinking", "stuck"):  # those reach w = 0 when the output is frozen
            assert first.events(j)["sample"].tolist() == both.events(j)["sample"].tolist()
            np.testing.assert_allclose(first.direction[j], both.direction[j], atol=1e-12)
    assert (first.growth == 0).all()
    assert np.isnan(first.log_amplitude).all()
    t = 1e3
    for j in np.flatnonzero(np.isin(first.fates, ("aligned", "sliding"))):
        speed = np.exp(first.log_norms(2 * t)[j]) - np.exp(first.log_norms(t)[j])
        assert speed == pytest.approx(np.abs(first.problem.net.a[j]) * first.force[j] * t, rel=1e-9)


# -- data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-140, 1e140])
def test_data_of_any_size(factor):
    net = Network.balanced([[-1.0, -0.9], [1.0, -2.0]], [1, -1])
    plain, scaled = align(unit(EX1, net)), align(unit(Dataset(EX1.X * factor, EX1.y), net))
    for j in range(2):
        np.testing.assert_allclose(scaled.events(j)["time"] * factor, plain.events(j)["time"], rtol=1e-13)
    np.testing.assert_allclose(scaled.growth, plain.growth * factor, rtol=1e-13)


def test_a_tiny_sample_is_still_followed():
    # The neuron loses the large sample and goes on with one that is 10^20 times smaller.
    data = Dataset([[1.0, 0.0], [0.0, 1e-20]], [-1, 1])
    early = align(unit(data, Network.balanced([[0.5, 0.1]], [1])))
    assert early.fates == ("aligned",)
    np.testing.assert_allclose(early.direction, [[0, 1]], atol=1e-15)
    assert early.growth[0] == pytest.approx(1e-20, rel=1e-12)


def test_large_data_without_a_gram_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((run_module.GRAM_LIMIT + 100, 6))
    data = Dataset(X, np.where(rng.random(len(X)) < 0.1, -1, 1) * np.sign(X[:, 0]))
    problem = Problem(data, initialize(6, width=3, slope=0.1))
    lazy = align(problem)
    monkeypatch.setattr(run_module, "GRAM_LIMIT", len(X))
    dense = align(problem)
    assert lazy.n_events.min() > 300
    for j in range(3):
        assert lazy.events(j)["sample"].tolist() == dense.events(j)["sample"].tolist()
        np.testing.assert_allclose(lazy.events(j)["time"], dense.events(j)["time"], rtol=1e-9)


def test_linear_network_goes_straight_to_the_mean():
    data = Dataset(np.random.default_rng(2).standard_normal((9, 4)), [1, -1, 1, 1, -1, -1, 1, -1, 1])
    early = align(unit(data, initialize(4, width=6, slope=1.0)))
    total = data.signed.sum(axis=0)
    np.testing.assert_allclose(early.direction, np.outer(early.signs, total / np.linalg.norm(total)), atol=1e-13)
    assert not early.nonunique.any()


# -- the result --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def early():
    rng = np.random.default_rng(1)
    data = Dataset(rng.standard_normal((20, 4)), rng.choice([-1.0, 1.0], 20))
    return align(Problem(data, initialize(4, width=12, log_scale=-40)))


def test_snapshots_agree_with_each_other(early):
    times = np.array([0.0, 1.0, 7.0, 30.0])
    directions, sizes, outs = early.directions(times), early.log_norms(times), early.log_outs(times)
    assert directions.shape == (4, 12, 4)
    for k, t in enumerate(times):
        np.testing.assert_array_equal(early.log_norms(t), sizes[k])
        np.testing.assert_allclose(early.directions(t), directions[k], atol=1e-13)
        net = early.network(t)
        np.testing.assert_allclose(net.log_norms, sizes[k], rtol=1e-13)
        np.testing.assert_allclose(net.log_outs, outs[k], rtol=1e-13)
        np.testing.assert_allclose(net.directions, directions[k], atol=1e-13)
        np.testing.assert_array_equal(np.sign(net.a), early.output_signs(t))
    start = early.network(0.0)
    np.testing.assert_allclose(start.directions, early.problem.net.directions, atol=1e-15)
    np.testing.assert_allclose(start.log_norms, early.problem.net.log_norms, rtol=1e-15)
    np.testing.assert_allclose(outs, sizes, rtol=1e-13)  # balanced


def test_alignment_times_are_times_of_alignment(early):
    for angle in (0.1, 1e-4):
        times = early.alignment_times(angle)
        for j in np.flatnonzero(np.isin(early.fates, ("aligned", "sliding"))):
            cosine = early.directions(times[j])[j] @ early.direction[j]
            gap = np.linalg.norm(early.directions(times[j])[j] - early.direction[j] * cosine)
            assert np.arctan2(gap, cosine) <= angle * (1 + 1e-6)
            if times[j] > early.last_event[j]:
                assert np.arctan2(gap, cosine) == pytest.approx(angle, rel=1e-6)
    np.testing.assert_array_equal(early.alignment_times(), early.last_event)


def test_amplitude_and_growth_describe_the_end(early):
    t = float(early.alignment_times(1e-9).max()) + 20.0
    np.testing.assert_allclose(early.log_norms(t), early.log_amplitude + early.growth * t, rtol=1e-12)


def test_groups_share_sign_and_pattern(early):
    members = np.concatenate([g.neurons for g in early.groups])
    assert sorted(members) == list(range(12))
    for group in early.groups:
        assert (early.signs[group.neurons] == group.sign).all()
        assert (early.pattern[group.neurons] == group.pattern).all()
    assert len({(g.sign, g.pattern.tobytes()) for g in early.groups}) == len(early.groups)


def test_it_says_what_it_is(early):
    assert repr(early).startswith("Alignment of 12 neurons on 20 samples: ")
    assert all(word in repr(early) for word in ("sliding", "last event at t =", "groups"))


def test_nothing_can_be_overwritten(early):
    for array in (early.direction, early.pattern, early.growth, early.log_gain):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_partial_result_of_a_budget():
    problem = unit(EX1, Network.balanced([[-1.0, -0.9], [1.0, 1.0]], [1, 1]))
    with pytest.raises(BudgetExceeded, match=r"neuron 0 was still turning after max_events = 2") as caught:
        align(problem, max_events=2)
    part, full = caught.value.partial, align(problem)
    assert part.fates == ("unfinished", "aligned")
    np.testing.assert_array_equal(part.events(0), full.events(0)[:2])
    assert part.direction[1].tolist() == full.direction[1].tolist()


@pytest.mark.parametrize("train", ["both", "first"])
def test_validity_is_the_first_crossing(train):
    rng = np.random.default_rng(4)
    data = Dataset(rng.standard_normal((6, 3)), rng.choice([-1.0, 1.0], 6))
    net = Network(rng.standard_normal((5, 3)), rng.standard_normal(5), 0.2, -25.0, 0.0 if train == "first" else -25.0)
    early = align(Problem(data, net, train=train))
    for tol in (1e-9, 1e-2):
        end = early.valid_until(tol)
        size = [np.abs(early.network(t).margins(data)).max() for t in np.linspace(0, end, 301)]
        assert max(size) < tol * (1 + 2e-6)
        assert size[-1] == pytest.approx(tol, rel=2e-6)


def test_validity_at_the_ends():
    data = Dataset([[1.0, 0.0]], [1])
    dead = align(unit(data, Network.balanced([[-1.0, 0.3]], [1], log_scale=-2)))
    assert dead.valid_until(1e-3) == np.inf
    large = align(unit(data, Network.balanced([[1.0, 0.3]], [1])))
    assert large.valid_until(1e-3) == 0.0
    tiny = align(unit(data, Network.balanced([[1.0, 0.0]], [1], log_scale=-3000)))
    # q = e^(-6000 + 2t)
    assert tiny.valid_until(1e-6) == pytest.approx((6000 + np.log(1e-6)) / 2, rel=1e-12)
    with pytest.raises(ProblemError, match="tol"):
        tiny.valid_until(0.0)


# -- what is refused ---------------------------------------------------------------------------------------


def test_scales_that_no_double_can_hold():
    with pytest.raises(ProblemError, match=r"neuron 0 has \|a\|/\|w\| = e\^3000"):
        align(unit(EX1, Network([[1.0, 0.0]], [1.0], log_scale=-3000, log_scale_out=0.0)))
    with pytest.raises(ProblemError, match=r"log_scale above -600"):
        align(unit(EX1, Network([[1.0, 0.0]], [1.0], log_scale=-3000, log_scale_out=0.0), "first"))


def test_bad_questions(early):
    for call, words in (
        (lambda: early.network([1.0, 2.0]), "one time"),
        (lambda: early.alignment_times(2.0), "between 0 and pi/2"),
        (lambda: early.held(99), "numbered 0 to 11"),
        (lambda: early.directions([[1.0]]), "finite and not negative"),
    ):
        with pytest.raises(ProblemError, match=words):
            call()


def test_without_xarray(early, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    monkeypatch.delitem(sys.modules, "reluflow.dynamics.xarray", raising=False)  # another test may have loaded it
    with pytest.raises(ProblemError, match="reluflow\\[arrays\\]"):
        early.to_xarray()


def test_second_process_does_not_compile():
    align(unit(EX1, Network.balanced([[1.0, 0.0]], [1])))  # now it is on disk
    code = (
        "from reluflow import Dataset, Network, Problem, align\n"
        "from reluflow.dynamics.early import kernel as k\n"
        "align(Problem(Dataset([[1.0]], [1]), Network([[1.0]], [1.0])))\n"
        "print(sum(k.align_one.stats.cache_hits.values()), sum(k.align_one.stats.cache_misses.values()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["1", "0"]
