"""Datasets: validated, read-only, equal by content, never silently changed."""

import pickle

import numpy as np
import numpy.ma
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reluflow import DataError, Dataset
from reluflow.problem import checks

coordinates = st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-100)


@st.composite
def datasets(draw):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    X = draw(arrays(float, (n, d), elements=coordinates))
    X[~X.any(axis=1)] = 1.0
    X = np.unique(X, axis=0)  # no point twice, so no label conflict
    y = draw(arrays(float, X.shape[0], elements=st.sampled_from([-1.0, 1.0])))
    return Dataset(X, y)


def test_copies_and_freezes():
    X, y = np.eye(2), np.array([1, -1])
    data = Dataset(X, y)
    X[0, 0] = 7.0
    assert data.X[0, 0] == 1.0
    for array in (data.X, data.y, data.signed, data.norms):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0
    with pytest.raises(AttributeError):
        data.X = X
    with pytest.raises(TypeError):
        data.parameters["seed"] = 3


def test_sizes_and_classes():
    data = Dataset([[3.0, 4.0], [0.0, -2.0], [1.0, 0.0]], [1, -1, -1])
    assert (data.n, data.d, len(data)) == (3, 2, 3)
    assert data.positives.tolist() == [0]
    assert data.negatives.tolist() == [1, 2]
    np.testing.assert_array_equal(data.norms, [5.0, 2.0, 1.0])
    np.testing.assert_array_equal(data.signed, [[3.0, 4.0], [0.0, 2.0], [-1.0, 0.0]])


@settings(deadline=None)
@given(datasets())
def test_equality_hash_and_pickle_by_content(data):
    twin = Dataset(data.X.tolist(), data.y.tolist(), name="another name")
    assert twin == data
    assert hash(twin) == hash(data)
    assert twin.fingerprint() == data.fingerprint()
    copy = pickle.loads(pickle.dumps(data))
    assert copy == data
    assert not copy.X.flags.writeable
    assert Dataset(1.5 * data.X, data.y).fingerprint() != data.fingerprint()
    assert data.flipped() != data


def test_minus_zero_is_zero():
    a, b = Dataset([[0.0, 1.0]], [1]), Dataset([[-0.0, 1.0]], [1])
    assert a == b
    assert a.fingerprint() == b.fingerprint()


def test_fingerprint_knows_shapes():
    flat = Dataset([[1.0, 2.0, 3.0, 4.0]], [1])
    assert flat.fingerprint() != Dataset([[1.0, 2.0], [3.0, 4.0]], [1, 1]).fingerprint()


@settings(deadline=None)
@given(datasets())
def test_symmetrized_and_flipped(data):
    corner = np.abs(data.X) + 1.0  # no point is the mirror image of another
    data = Dataset(corner, np.where(corner[:, 0] > 2.0, 1, -1))
    twice = data.symmetrized()
    assert twice.n == 2 * data.n
    np.testing.assert_array_equal(twice.signed, np.vstack([data.signed, data.signed]))
    assert data.flipped().flipped() == data


@settings(deadline=None)
@given(datasets())
def test_bias_and_subset(data):
    with_bias = data.with_bias(0.1)
    np.testing.assert_array_equal(with_bias.X[:, :-1], data.X)
    assert (with_bias.X[:, -1] == 0.1).all()
    assert data.subset(np.arange(data.n)[::-1]).subset(np.arange(data.n)[::-1]) == data
    assert data.subset(np.ones(data.n, bool)) == data


def test_symmetrizing_opposite_points_of_one_class_is_a_conflict():
    with pytest.raises(DataError, match="same point"):
        Dataset([[1.0, 2.0], [-1.0, -2.0]], [1, 1]).symmetrized()


def test_centered_has_mean_zero_and_records_it():
    data = Dataset([[1.0, 2.0], [5.0, 4.0], [0.0, 3.0]], [1, 1, -1], name="three", parameters={"seed": 4})
    centred = data.centered()
    np.testing.assert_allclose(centred.X.sum(axis=0), 0.0, atol=1e-15)
    assert centred.parameters["seed"] == 4
    assert centred.parameters["steps"] == ("centered()",)
    assert "three" in repr(centred)


BAD = [
    ([[np.nan, 1.0]], [1], r"X\[0, 0\] is nan"),
    ([[1.0, np.inf]], [1], r"X\[0, 1\] is inf"),
    ([[1.0], [2.0]], [1, 0], r"2 \* y - 1"),
    ([[1.0], [2.0]], [3, 5], r"If 5 means \+1"),
    ([[1.0], [2.0], [3.0]], [1, 2, 3], "choose two classes"),
    ([[1.0], [2.0]], [True, False], r"numpy.where\(y, 1, -1\)"),
    ([[1.0], [2.0]], ["cat", "dog"], "'cat'"),
    ([[1.0], [2.0]], [1], "2 rows but y has 1"),
    ([[1.0], [2.0]], [1, np.nan], "nan"),
    ([[1.0], [2.0]], [[1], [-1]], "one-dimensional"),
    ([1.0, 2.0], [1, -1], r"reshape\(-1, 1\)"),
    (np.zeros((0, 3)), [], "nothing in it"),
    (np.zeros((2, 0)), [1, -1], "nothing in it"),
    ([[0.0, 0.0], [1.0, 0.0]], [1, -1], "zero row"),
    ([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]], [1, 1, -1], "samples 0 and 2 are the same point"),
    ([[0.0, 1.0], [-0.0, 1.0]], [1, -1], "same point"),
    ([[1.0, 2.0], [3.0]], [1, 1], "rectangular"),
    ([["1", "2"]], [1], "dtype"),
    ([[1 + 2j]], [1], "complex"),
    ([[2**53 + 1]], [1], "no exact float64"),
    (np.array([[1]], dtype=np.longdouble) / 3, [1], "no exact float64"),
    ([[1e200]], [1], "Rescale"),
    ([[1e-200]], [1], "Rescale"),
    (scipy.sparse.csr_array(np.eye(2)), [1, -1], "toarray"),
    (numpy.ma.array([[1.0, 2.0]], mask=[[True, False]]), [1], "masked"),
    (None, [1], "dtype object"),
]


@pytest.mark.parametrize(("X", "y", "message"), BAD)
def test_bad_input_is_refused_with_a_remedy(X, y, message):
    with pytest.raises(DataError, match=message):
        Dataset(X, y)


@pytest.mark.parametrize("value", [0.0, np.nan, "1", None, [1.0], True])
def test_bad_bias(value):
    with pytest.raises(DataError, match="with_bias"):
        Dataset([[1.0]], [1]).with_bias(value)


@pytest.mark.parametrize("index", [[], [5], [-3], [0.5], [[0]], [True], "0"])
def test_bad_subset(index):
    with pytest.raises(DataError):
        Dataset([[1.0], [2.0]], [1, 1]).subset(index)


def test_centering_two_equal_points_says_zero_row():
    with pytest.raises(DataError, match="zero row"):
        Dataset([[1.0], [1.0]], [1, 1]).centered()


def test_missing_class_is_named_where_it_is_needed():
    data = Dataset([[1.0], [2.0]], [1, 1])
    with pytest.raises(DataError, match=r"this thing needs both classes.*label -1"):
        data.require_both_classes("this thing")
    Dataset([[1.0], [-2.0]], [1, -1]).require_both_classes("this thing")


def test_integer_and_single_precision_input_is_exact():
    assert Dataset(np.array([[1, 2]], dtype=np.int8), [1]) == Dataset([[1.0, 2.0]], [1])
    assert Dataset(np.array([[0.1]], dtype=np.float32), [1]).X[0, 0] == np.float32(0.1)


def test_huge_requests_are_refused_before_allocation():
    with pytest.raises(DataError, match="GiB"):
        checks.check_size("X", 10**6, 10**5)
