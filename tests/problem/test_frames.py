"""Datasets of data frames: names kept, missing values and texts refused by column and row."""

import numpy as np
import pytest

import reluflow as rf

pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install 'reluflow[tables]' runs these tests")

TABLE = {"size": [1.0, 2.0, -3.0], "cost": [3, 1, 2], "kind": ["cat", "dog", "dog"]}
MEANS = {"cat": -1, "dog": 1}


def frame(library, columns):
    made = pytest.importorskip(library, reason=f"{library} is not installed: pip install {library} runs this test")
    return made.DataFrame(columns)


@pytest.mark.parametrize("library", ["pandas", "polars"])
class TestFrame:
    def test_features_labels_and_names(self, library):
        data = rf.Dataset.from_frame(frame(library, TABLE), label="kind", labels=MEANS, name="pets")
        assert data == rf.Dataset([[1, 3], [2, 1], [-3, 2]], [-1, 1, 1])
        assert (data.names, data.name) == (("size", "cost"), "pets")
        assert data.parameters["label"] == "kind"

    def test_the_label_is_found_by_its_name_or_its_place(self, library):
        numbers = {"y": [1, -1], "a": [1.0, 2.0]}
        assert rf.Dataset.from_frame(frame(library, numbers)).names == ("a",)
        data = rf.Dataset.from_frame(frame(library, {"a": [1.0, 2.0], "b": [1, -1]}))
        assert data.y.tolist() == [1, -1]
        assert rf.Dataset.from_frame(frame(library, {"b": [1, -1], "a": [1.0, 2.0]}), label=0).names == ("a",)

    def test_preparation_and_new_points_by_name(self, library):
        table = frame(library, TABLE)
        data = rf.Dataset.from_frame(table, label="kind", labels=MEANS, standardize=True, bias=True)
        assert data.names == ("size", "cost", "bias")
        swapped = frame(library, {"cost": TABLE["cost"], "size": TABLE["size"]})
        assert np.array_equal(data.transform(swapped), data.X)
        dropped = rf.Dataset.from_frame(table, label="kind", labels=MEANS, drop_columns="cost")
        assert dropped.parameters["steps"] == ("without(cost)",)

    def test_verbs_take_it(self, library):
        found = rf.check(frame(library, TABLE), label="kind", labels=MEANS, width=3, claim="PL-T1")
        assert found[0].claim == "PL-T1"

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"a": [1.0, None, 2.0], "y": [1, -1, 1]}, r"X\['a'\]: row 1 .*missing.*Fill it in"),
            ({"a": [1.0, 2.0, float("nan")], "y": [1, -1, 1]}, r"X\['a'\].*2"),
            ({"a": ["1", "n/a", "2"], "y": [1, -1, 1]}, r"X\['a'\] has dtype .*row 0 .*drop_columns='a'"),
            ({"a": [1.0, 2.0, 3.0], "y": [1, None, 1]}, r"column 'y': row 1 .*missing"),
            ({"a": [1.0, 2.0, 3.0], "y": ["u", "v", "w"]}, "(?s)column 'y' holds 'u'.*3 different values"),
            ({"y": [1, -1, 1]}, "no column is left"),
        ],
    )
    def test_what_is_refused(self, library, columns, message):
        with pytest.raises(rf.DataError, match=message):
            rf.Dataset.from_frame(frame(library, columns))


def test_a_text_among_numbers_is_named_by_its_row():
    with pytest.raises(rf.DataError, match=r"X\['a'\] has dtype object, row 2 \(counted from 0\) is 'n/a'"):
        rf.Dataset.from_frame(pd.DataFrame({"a": [1.0, 2.0, "n/a"], "y": [1, -1, 1]}))


def test_no_frame():
    with pytest.raises(rf.DataError, match=r"not list; Dataset\(X, y\) takes arrays"):
        rf.Dataset.from_frame([[1.0]])


def test_names_reach_messages_pictures_and_notebooks():
    data = rf.Dataset.from_frame(
        pd.DataFrame({"id": [1, 2, 3, 4, 5], "cost": [2.0, -1, 3, -2, 1], "y": [1, -1] * 2 + [1]})
    )
    assert "column 'id'" in repr(data)
    figure = rf.plot(data)
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("id", "cost")
    assert "<th>cost</th>" in data._repr_html_()
