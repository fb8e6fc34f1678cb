"""Networks: the function, the scale that no double can hold, bad input."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Dataset, Network, ProblemError, initialize
from reluflow.margins import stable_rank, symmetrized_network


def plain_outputs(W, a, slope, X):
    """f(x) one neuron and one point at a time, as written on paper."""
    return np.array([sum(aj * max(wj @ x, slope * (wj @ x)) for wj, aj in zip(W, a, strict=True)) for x in X])


nets = st.builds(
    lambda seed, p, d, slope, log_scale: initialize(
        d, width=p, scheme="gaussian", seed=seed, slope=slope, log_scale=log_scale
    ),
    seed=st.integers(0, 1000),
    p=st.integers(1, 6),
    d=st.integers(1, 4),
    slope=st.sampled_from([0.0, 0.3, 1.0]),
    log_scale=st.floats(-20, 5),
)


def data_for(net, seed=0, n=7):
    rng = np.random.default_rng(seed)
    return Dataset(rng.standard_normal((n, net.d)), rng.choice([-1, 1], n))


@settings(deadline=None)
@given(nets)
def test_outputs_as_written_on_paper(net):
    data = data_for(net)
    W, a = net.weights()
    want = plain_outputs(W, a, net.slope, data.X)
    size = np.exp(net.log_norms + net.log_outs).sum() * data.norms.max()
    np.testing.assert_allclose(net.outputs(data.X), want, rtol=1e-12, atol=1e-13 * size)
    np.testing.assert_allclose(net.margins(data), data.y * net.outputs(data.X))


@settings(deadline=None)
@given(nets, st.floats(-5000, 5000))
def test_normalised_quantities_do_not_see_the_scale(net, log_scale):
    data = data_for(net)
    other = net.with_log_scale(log_scale)
    assert other.normalized_margin(data) == net.normalized_margin(data)
    np.testing.assert_array_equal(other.normalized().W, net.normalized().W)
    np.testing.assert_allclose(other.log_norm() - log_scale, net.with_log_scale(0.0).log_norm(), atol=1e-11)
    mantissa, factor = other.scaled_outputs(data.X)
    np.testing.assert_array_equal(mantissa, net.scaled_outputs(data.X)[0])
    assert factor == pytest.approx(2 * log_scale)


@settings(deadline=None)
@given(nets)
def test_normalised_margin_by_hand(net):
    data = data_for(net)
    W, a = net.weights()
    q = data.y * plain_outputs(W, a, net.slope, data.X)
    norm2 = (W**2).sum() + (a**2).sum()
    assert net.normalized_margin(data) == pytest.approx(q.min() / norm2, rel=1e-9, abs=1e-12)
    frozen = np.sqrt((W**2).sum())
    tolerance = 1e-12 * abs(a).sum()  # the size of f itself, for margins that cancel to almost nothing
    assert net.normalized_margin(data, train="first") == pytest.approx(q.min() / frozen, rel=1e-9, abs=tolerance)
    unit = net.normalized()
    assert (unit.W**2).sum() + (unit.a**2).sum() == pytest.approx(1.0, rel=1e-12)


def test_one_scale_each_neuron():
    net = Network([[1.0], [1.0], [-1.0]], [1.0, -1.0, 1.0], log_scale=[0.0, -3000.0, -1.0])
    np.testing.assert_array_equal(net.log_norms, [0.0, -3000.0, -1.0])
    np.testing.assert_allclose(net.outputs([[2.0], [-2.0]]), [2.0, 2.0 * np.exp(-2.0)], rtol=1e-15)
    data = Dataset([[2.0]], [1])
    assert net.normalized_margin(data) == pytest.approx(2.0 / (2 + 2 * np.exp(-2.0)), rel=1e-15)
    assert (net.normalized().W[1] == 0).all()
    with pytest.raises(ProblemError, match="directions and log_norms"):
        net.weights()


def test_frozen_second_layer_keeps_its_size():
    net = Network([[3.0, 4.0]], [2.0], log_scale=-3000, log_scale_out=0.0)
    assert net.log_norms[0] == pytest.approx(-3000 + np.log(5))
    assert net.log_outs[0] == pytest.approx(np.log(2))
    data = Dataset([[1.0, 0.0]], [1])
    assert net.normalized_margin(data, train="first") == pytest.approx(3.0 * 2.0 / 5.0, rel=1e-15)
    assert net.log_norm("first") == pytest.approx(-3000 + np.log(5))
    # with both layers counted a is all there is
    assert net.log_norm("both") == pytest.approx(np.log(2))


@settings(deadline=None)
@given(net=nets)
def test_identity(net, tmp_path_factory):
    file = tmp_path_factory.mktemp("net") / "net.npz"
    net.save(file)
    back = Network.load(file)
    assert back == net
    assert hash(back) == hash(net)
    assert pickle.loads(pickle.dumps(net)) == net
    changed = Network(net.W, net.a * 2, net.slope, net.log_scale)
    assert changed != net
    assert changed.fingerprint() != net.fingerprint()
    assert Network(net.W, net.a, net.slope, net.log_scale, net.log_scale) != net  # says more than it must


def test_save_keeps_vector_scales(tmp_path):
    net = Network([[1.0], [2.0]], [1.0, 1.0], 0.5, [-3000.0, 1.0], 0.0)
    net.save(tmp_path / "net.npz")
    back = Network.load(tmp_path / "net.npz")
    assert back == net
    assert back.log_scale_out == 0.0


def test_balanced():
    net = Network.balanced([[3.0, 4.0], [0.0, 2.0]], [1, -1], log_scale=-50)
    np.testing.assert_array_equal(net.a, [5.0, -2.0])
    np.testing.assert_array_equal(net.log_norms, net.log_outs)


def test_read_only():
    net = initialize(3, width=4)
    for array in (net.W, net.a):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Network([[1.0]], [1.0, 2.0]), "1 rows but a has 2"),
        (lambda: Network(np.zeros((0, 2)), []), "at least one neuron"),
        (lambda: Network([[np.inf]], [1.0]), "non-finite"),
        (lambda: Network([[1.0]], [1.0], slope=-0.1), r"slope = -0.1 is outside \[0, 1\]"),
        (lambda: Network([[1.0]], [1.0], slope=1.5), r"outside \[0, 1\]"),
        (lambda: Network([[1.0]], [1.0], slope=np.nan), r"outside \[0, 1\]"),
        (lambda: Network([[1.0]], [1.0], slope="relu"), "one number"),
        (lambda: Network([[1.0]], [1.0], slope=True), "one number"),
        (lambda: Network([[1.0]], [1.0], log_scale=np.inf), "finite"),
        (lambda: Network([[1.0]], [1.0], log_scale="tiny"), "finite"),
        (lambda: Network([[1.0]], [1.0], log_scale=[0.0, 1.0]), "2 entries for 1 neurons"),
        (lambda: Network([[1.0]], [1.0]).outputs([[1.0, 2.0]]), "1 inputs"),
        (lambda: Network([[1.0]], [1.0]).outputs([1.0]), "1 inputs"),
        (lambda: Network([[0.0]], [0.0]).normalized(), "zero network"),
        (lambda: Network([[0.0]], [1.0]).normalized("first"), "zero network"),
        (lambda: Network([[1.0]], [1.0]).normalized("second"), "train = 'second'"),
        (lambda: Network.balanced([[1.0]], [2]), "-1 or"),
        (lambda: Network.balanced([[1.0]], [1, 1]), "1 numbers"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ProblemError, match=message):
        make()


def test_bad_files(tmp_path):
    with pytest.raises(ProblemError, match="no file"):
        Network.load(tmp_path / "absent.npz")
    with pytest.raises(ProblemError, match="directory"):
        Network.load(tmp_path)
    np.savez(tmp_path / "half.npz", W=[[1.0]])
    with pytest.raises(ProblemError, match="a is missing"):
        Network.load(tmp_path / "half.npz")
    whole = (tmp_path / "half.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ProblemError, match="cannot be read"):
        Network.load(tmp_path / "cut.npz")
    (tmp_path / "text.npz").write_text("W,a\n1,2\n")
    with pytest.raises(ProblemError, match="cannot be read"):
        Network.load(tmp_path / "text.npz")
    np.save(tmp_path / "single.npy", np.eye(2))
    with pytest.raises(ProblemError, match="single NPY"):
        Network.load(tmp_path / "single.npy")
    np.savez(tmp_path / "objects.npz", W=np.array([{}], dtype=object), a=[1.0])
    with pytest.raises(ProblemError, match="never unpickled"):
        Network.load(tmp_path / "objects.npz")


def test_minus_zero_is_no_slope_of_its_own():
    net = Network([[1.0]], [1.0], slope=-0.0)
    assert "slope=0," in repr(net)
    assert net.fingerprint() == Network([[1.0]], [1.0]).fingerprint()


def test_a_zero_neuron_of_huge_scale_does_not_hide_the_others():
    net = Network([[0.0, 0.0], [3.0, 4.0]], [0.0, 2.0], log_scale=[5000.0, -3000.0])
    alone = Network([[3.0, 4.0]], [2.0], log_scale=-3000.0)
    for train in ("both", "first"):
        W, a, log_w, log_a = net.scaled_weights(train)
        assert W[1].tolist() == [3.0, 4.0]
        assert (a[1], log_w, log_a) == (2.0, -3000.0, -3000.0)
    assert stable_rank(net) == 1.0
    two, one = symmetrized_network(net), symmetrized_network(alone)
    assert np.array_equal(two.W, one.W)
    assert two.log_scales[0].tolist() == one.log_scales[0].tolist()


def test_layers_have_their_own_units_when_one_is_frozen():
    net = Network([[1.0], [2.0]], [3.0, 4.0], 0.0, [-10.0, -20.0], [700.0, 690.0])
    W, a, log_w, log_a = net.scaled_weights("first")
    assert (log_w, log_a) == (-10.0, 700.0)
    np.testing.assert_allclose(W[:, 0], [1.0, 2.0 * np.exp(-10.0)], rtol=1e-15)
    np.testing.assert_allclose(a, [3.0, 4.0 * np.exp(-10.0)], rtol=1e-15)
    assert net.scaled_weights("both")[2:] == (700.0, 700.0)


def test_from_directions_logarithms_and_signs_and_back():
    net = Network([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]], [-2.0, 1.0, 0.0], 0.1, [-4000.0, 0.0, 7.0])
    again = Network.from_polar(net.directions, net.log_norms, net.log_outs, np.sign(net.a), net.slope)
    assert np.array_equal(again.directions, net.directions)
    assert np.array_equal(again.log_norms, net.log_norms)
    assert np.array_equal(again.log_outs, net.log_outs)
    assert np.array_equal(np.sign(again.a), np.sign(net.a))
