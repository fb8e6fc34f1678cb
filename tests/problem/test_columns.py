"""Names of columns, and what is done to columns: dropped, centred, scaled, a bias; the same for new points."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reluflow import DataError, Dataset

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 8), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6),
)


def frame(**columns):
    return pd.DataFrame(columns)


# -- preparation ------------------------------------------------------------------------------------


@given(X=tables, bias=st.sampled_from([None, True, 0.5, -2]))
@settings(deadline=None, max_examples=60)
def test_standardising_is_what_it_says(X, bias):
    """Against the definition: mean 0, population variance 1, constant columns 0, the bias untouched and last."""
    y = np.where(np.arange(len(X)) % 2 == 0, 1, -1)
    constant = np.ptp(X, axis=0) == 0
    mean = np.where(constant, X[0], X.mean(axis=0))
    assume(bias is not None or (mean != X).any(axis=1).all())  # nothing becomes the zero point
    assume(len(np.unique(X + 0.0, axis=0)) == len(X))
    assume((X.std(axis=0)[~constant] > 1e-9 * np.abs(X).max(axis=0)[~constant]).all())
    data = Dataset.prepared_from(X, y, standardize=True, bias=bias)
    features = data.X[:, : X.shape[1]]
    assert (features[:, constant] == 0).all()
    assert bool(constant.any()) == any("constant" in note for note in data.notes)
    size = np.abs(X).max(axis=0) / np.where(constant, 1, X.std(axis=0))  # rounding of the mean, after scaling
    assert (np.abs(features.mean(axis=0)) <= 1e-14 * (1 + size)).all()
    assert np.allclose(features[:, ~constant].std(axis=0), 1, rtol=1e-9, atol=0)
    if bias is not None:
        assert (data.X[:, -1] == float(bias)).all()
        assert data.d == X.shape[1] + 1
    # New points are treated as the old ones were.
    assert np.array_equal(data.transform(X), data.X)


def test_the_order_is_drop_centre_bias():
    data = Dataset([[1.0, 9.0, 5.0], [3.0, 9.0, 1.0]], [1, -1], "t", names=["a", "id", "b"])
    done = data.prepared(drop_columns="id", center=True, bias=0.5)
    assert done.X.tolist() == [[-1, 2, 0.5], [1, -2, 0.5]]
    assert done.names == ("a", "b", "bias")
    assert done.parameters["steps"] == ("without(id)", "centered()", "with_bias(0.5)")
    assert done.name == "t|without(id)|centered()|with_bias(0.5)"
    assert done.transform([[2.0, 3.0]]).tolist() == [[0, 0, 0.5]]
    assert done.transform(frame(b=[3.0], other=[7.0], a=[2.0])).tolist() == [[0, 0, 0.5]]  # by name
    with pytest.raises(DataError, match="no column 'b'"):
        done.transform(frame(a=[2.0]))
    with pytest.raises(DataError, match="3 columns, but 2 are needed"):
        done.transform([[1.0, 2.0, 3.0]])
    with pytest.raises(DataError, match=r"drop_columns comes before .*centered\(\)"):
        done.prepared(drop_columns="a")


def test_step_by_step_is_the_same_as_at_once():
    data = Dataset([[1.0, 4.0], [3.0, 1.0], [2.0, 2.0]], [1, -1, 1])
    at_once = data.prepared(center=True, bias=0.1)
    assert data.centered().with_bias(0.1) == at_once
    assert np.array_equal(data.centered().with_bias(0.1).transform(data.X), at_once.X)
    assert data.standardized() == data.prepared(standardize=True, center=True)
    assert data.prepared() == data


def test_a_constant_column_becomes_exactly_zero():
    """The mean of a hundred times 0.1 is not 0.1, and what is left over would be a feature of size 1e-17."""
    X = np.column_stack([np.linspace(-1, 1, 100), np.full(100, 0.1)])
    assert X[:, 1].mean() != 0.1
    for data in (Dataset(X, np.sign(X[:, 0])).centered(), Dataset(X, np.sign(X[:, 0])).standardized()):
        assert (data.X[:, 1] == 0).all()


def test_a_zero_point_is_one_with_a_bias():
    with pytest.raises(DataError, match="append a constant column"):
        Dataset([[0.0], [1.0]], [-1, 1])
    assert Dataset.prepared_from([[0.0], [1.0]], [-1, 1], bias=True).X.tolist() == [[0, 1], [1, 1]]


# -- names ------------------------------------------------------------------------------------------


def test_names_are_carried_and_not_compared():
    data = Dataset([[1.0, 2.0], [-1.0, 3.0]], [1, -1], names=["a", " b "])
    assert data.names == ("a", "b")
    plain = Dataset(data.X, data.y)
    assert plain == data
    assert plain.fingerprint() == data.fingerprint()
    for derived in (data.flipped(), data.symmetrized(), data.subset([0]), data.centered()):
        assert derived.names == ("a", "b")
    assert data.with_bias(1.0).names == ("a", "b", "bias")
    assert plain.with_bias(1.0).names is None
    copy = pickle.loads(pickle.dumps(data.with_bias(2.0)))
    assert (copy.names, copy.notes) == (("a", "b", "bias"), ())
    assert copy.transform([[1.0, 2.0]]).tolist() == [[1, 2, 2]]


@pytest.mark.parametrize(
    ("names", "message"),
    [("ab", "list of 2 texts"), (["a"], "1 names for 2 columns"), (["a", 3], "must be texts"), (5, "list of 2 texts")],
)
def test_bad_names(names, message):
    with pytest.raises(DataError, match=message):
        Dataset([[1.0, 2.0]], [1], names=names)


def test_names_of_a_frame():
    assert Dataset(frame(a=[1.0], b=[2.0]), [1]).names == ("a", "b")
    assert Dataset(frame(a=[1.0], b=[2.0]), [1], names=["c", "d"]).names == ("c", "d")
    assert Dataset(pd.DataFrame([[1.0, 2.0]]), [1]).names is None  # positions say nothing
    assert Dataset(pd.DataFrame([[1.0, 2.0]], columns=["a", 7]), [1]).names == ("a", "7")


# -- notes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "index", "ID", "id"])
def test_a_row_number_is_seen_by_its_name(name):
    data = Dataset([[7.0, 2.0], [3.0, 3.0]], [1, -1], names=[name, "a"])
    assert len(data.notes) == 1
    assert "drop_columns=" in data.notes[0]
    assert "--drop-columns" in data.notes[0]
    assert "note: " in repr(data)
    assert data.prepared(drop_columns=0).notes == ()
    assert data.prepared(standardize=True).notes == data.notes  # still a row number


@pytest.mark.parametrize("start", [0, 1])
def test_a_row_number_is_seen_by_its_values(start):
    X = np.random.default_rng(0).normal(size=(6, 3))
    X[:, 1] = np.arange(6) + start
    assert "column 1 (counted from 0) counts the rows" in Dataset(X, [1, -1] * 3).notes[0]
    assert Dataset(X[:4], [1, -1] * 2).notes == ()  # four numbers in order are no evidence
    X[3, 1] += 0.5
    assert Dataset(X, [1, -1] * 3).notes == ()


def test_no_note_where_there_is_nothing_to_drop_or_no_reason():
    assert Dataset(np.arange(1.0, 7.0)[:, None], [1] * 6).notes == ()
    assert Dataset(np.arange(2.0, 14.0).reshape(6, 2), [1] * 6).notes == ()
    assert Dataset([[1.0, 2.0]], [1], names=["idea", "indexed"]).notes == ()


# -- pandas and PyTorch -----------------------------------------------------------------------------


def test_nullable_types_are_numbers():
    data = Dataset(
        frame(
            a=pd.array([1.5, -2.0], dtype="Float64"),
            b=pd.array([1, 2], dtype="Int64"),
            c=pd.array([True, False], dtype="boolean"),
            d=[True, False],
            e=np.array([3, 4], dtype=np.int8),
        ),
        pd.Series([1, -1], dtype="Int64"),
    )
    assert data.X.tolist() == [[1.5, 1, 1, 1, 3], [-2, 2, 0, 0, 4]]
    assert data.y.tolist() == [1, -1]
    assert Dataset(pd.DataFrame([[1.0]]), pd.array([1], dtype="Int64")).y.tolist() == [1]


def test_rows_that_do_not_belong_together_are_noticed():
    points, labels = frame(a=[1.0, -2.0]), pd.Series([1, -1], index=[1, 0])
    with pytest.raises(DataError, match=r"in place 0: 0 and 1.*y\.loc\[X\.index\]"):
        Dataset(points, labels)
    assert Dataset(points, labels.loc[points.index]).y.tolist() == [-1, 1]
    assert Dataset(points, labels.to_numpy()).y.tolist() == [1, -1]


def test_tensors_are_detached():
    torch = pytest.importorskip("torch")
    X = torch.tensor([[1.0, 2.0], [-3.0, 0.5]], requires_grad=True)
    assert Dataset(X, torch.tensor([1, -1])).X.tolist() == [[1, 2], [-3, 0.5]]
    assert Dataset(X.bfloat16(), torch.tensor([1.0, -1.0])).X.tolist() == [[1, 2], [-3, 0.5]]
    assert X.requires_grad
    with pytest.raises(DataError, match=r"no plain array .*to_dense"):
        Dataset(X.detach().to_sparse(), [1, -1])


def test_labels_nearly_right_are_shown_with_all_their_digits():
    with pytest.raises(DataError, match=r"contains -1\.0000001 \(first at index 1\).*numpy\.rint"):
        Dataset([[1.0], [2.0]], [1, -1.0000001])
    with pytest.raises(DataError, match=r"If 0\.30000000000000004 means \+1"):
        Dataset([[1.0], [2.0]], [0.1, 0.1 + 0.2])
