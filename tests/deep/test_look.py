"""Spectra, features and angles, against plain second computations."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import reluflow as rf
from reluflow import deep

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")
nn = torch.nn


def small_integers(n, k):
    return arrays(np.float64, (n, k), elements=st.integers(-3, 3).map(float))


# -- weights -------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6).flatmap(lambda n: st.integers(1, 6).flatmap(lambda k: small_integers(n, k))))
def test_spectrum_against_the_gram_matrix(W):
    found = deep.spectrum(W)
    squares = np.sort(np.linalg.eigvalsh(W @ W.T))[::-1][: len(found.singular_values)]
    assert np.abs(found.singular_values**2 - squares).max() < 1e-12 * max(1, squares[0])
    # The columns of the projection have the singular values as lengths, and are orthogonal.
    inner = found.projected.T @ found.projected
    wanted = np.zeros(2)
    wanted[: len(found.singular_values)] = found.singular_values[:2] ** 2
    assert np.abs(inner - np.diag(wanted)).max() < 1e-12 * max(1, squares[0])
    assert all(c[np.abs(c).argmax()] >= 0 for c in found.projected.T)


def test_a_rank_one_matrix_with_one_column():
    found = deep.spectrum([[3.0], [-4.0]])
    assert np.allclose(found.singular_values, [5.0], rtol=1e-15)
    assert np.allclose(found.projected, [[-3.0, 0.0], [4.0, 0.0]], rtol=1e-15)


def test_kernels_of_convolutions_are_rows():
    model = nn.Sequential(nn.Conv2d(2, 3, 5), nn.ReLU(), nn.Flatten(), nn.Linear(12, 1))
    first, last = deep.layer_weights(model)
    assert (first.matrix.shape, last.matrix.shape) == ((3, 50), (1, 12))
    assert np.array_equal(first.matrix[1].reshape(2, 5, 5), model[0].weight[1].detach().double().numpy())
    with pytest.raises(rf.ProblemError, match="no linear or convolutional layer"):
        deep.layer_weights(nn.ReLU())


def test_correlations_on_a_known_example():
    data = rf.example("EX1").data
    plus, minus = rf.margins.class_margins(data)
    W = np.array([2 * plus.w, -minus.w, minus.w, 0 * minus.w])
    c = float(plus.direction @ minus.direction)
    free = deep.correlations(W, data)
    assert np.allclose(free[:3], [1.0, max(-1.0, -c), 1.0], atol=1e-14)
    assert np.isnan(free[3])
    signed = deep.correlations(W, data, signs=[-1, -1, 1, 1])
    assert np.allclose(signed[:3], [c, -1.0, c], atol=1e-14)
    with pytest.raises(rf.ProblemError, match="3 entries but the data 2 features"):
        deep.correlations(np.ones((2, 3)), data)
    with pytest.raises(rf.ProblemError, match="1 signs for 4 rows"):
        deep.correlations(W, data, signs=[1])


# -- features ------------------------------------------------------------------------------------------------


def test_features_of_a_residual_net_by_hand():
    net = deep.residual_net(3, width=5, depth=4, scale=1.0, seed=2, dtype="float64")
    X = np.random.default_rng(0).normal(size=(600, 3))  # more than go through the model at once
    W = [layer.weight.detach().numpy() for layer in net.layers]
    h = X @ W[0].T
    for k, layer in enumerate(deep.features(net, X)):
        assert np.abs(layer.before - h).max() < 1e-13
        assert np.array_equal(layer.after, np.maximum(layer.before, 0))
        h = h + np.maximum(h, 0) @ W[k + 1].T if k < 2 else h
    assert k == 2
    f = np.maximum(h, 0) @ W[3].T
    assert np.abs(net(torch.tensor(X)).detach().numpy() - f).max() < 1e-13


def test_features_in_place_reused_and_restored():
    relu = nn.ReLU(inplace=True)
    model = nn.Sequential(nn.Linear(2, 3), relu, nn.Linear(3, 4), relu, nn.Linear(4, 1)).double()
    X = np.random.default_rng(0).normal(size=(5, 2))
    first, second = deep.features(model, X)
    before = model[0](torch.tensor(X)).detach().numpy()
    assert np.array_equal(first.before, before)
    assert np.array_equal(first.after, np.maximum(before, 0))
    assert second.before.shape == (5, 4)
    assert model.training
    assert not relu._forward_hooks
    assert not relu._forward_pre_hooks
    with pytest.raises(rf.ProblemError, match=r"write torch.nn.ReLU\(\)"):
        deep.features(nn.Sequential(nn.Linear(2, 1)), X)


def test_features_refuse_a_wrong_dimension():
    with pytest.raises(rf.ProblemError, match=r"cannot take inputs of shape \(4, 3\)"):
        deep.features(deep.residual_net(2, width=3, depth=2), np.ones((4, 3)))


# -- angles --------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_pairs_by_brute_force(draw):
    n = draw.draw(st.integers(1, 8))
    X = draw.draw(small_integers(n, 3))
    y = np.array(draw.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    found, shares = deep.inner_products(X, y), deep.separability(X, y)
    parts = {"minus": [], "plus": [], "cross": []}
    good = {True: [], False: []}
    for i, j in itertools.combinations_with_replacement(range(n), 2):
        product = sum(a * b for a, b in zip(X[i], X[j], strict=True))
        good[y[i] == y[j]].append(product > 0 if y[i] == y[j] else product <= 0)
        if i < j:
            parts["cross" if y[i] != y[j] else "plus" if y[i] > 0 else "minus"].append(product)
    for name, values in parts.items():
        assert sorted(getattr(found, name)) == sorted(values)
    assert shares.same == pytest.approx(np.mean(good[True]), abs=1e-15)
    assert shares.cross == (pytest.approx(np.mean(good[False]), abs=1e-15) if good[False] else None)
    assert shares.separable == (all(good[True]) and all(good[False]))


@pytest.mark.parametrize("name", ["EX1", "EX2", "EX3", "D1"])
def test_separable_means_what_it_means_elsewhere(name):
    from reluflow.sectors import is_orthogonally_separable

    data = rf.example(name).data
    assert deep.separability(data.X, data.y).separable == is_orthogonally_separable(data)


def test_samples_are_drawn_by_seed_and_prove_nothing():
    data = rf.make("phuong", n=200, seed=1)
    one, again, other = (deep.inner_products(data.X, data.y, most=50, seed=s) for s in (3, 3, 4))
    assert one.samples.size == 50
    assert np.array_equal(one.samples, again.samples)
    assert np.array_equal(one.cross, again.cross)
    assert not np.array_equal(one.samples, other.samples)
    whole = deep.inner_products(data.subset(one.samples).X, data.subset(one.samples).y)
    assert np.allclose(np.sort(whole.cross), np.sort(one.cross), rtol=1e-12)
    part = deep.separability(data.X, data.y, most=50)
    assert (part.same, part.cross, part.complete, part.separable) == (1.0, 1.0, False, None)
    assert deep.separability(data.X, data.y).separable is True


def test_bad_points():
    for points, y, message in [
        (np.ones((2, 2)), [1], "2 points and 1 labels"),
        (np.ones((2, 2)), [1, 0], "-1 or \\+1"),
        (np.ones((0, 2)), np.ones(0), "0 points"),
    ]:
        with pytest.raises(rf.DataError, match=message):
            deep.separability(points, y)
        with pytest.raises(rf.DataError, match=message):
            deep.inner_products(points, y)
