"""From a short text to a dataset."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import DataError, Dataset, ReluflowError, dataset, save
from reluflow.data import CONSTRUCTIONS, digits, example, examples, label_rule, make
from reluflow.data.spec import parse_pairs


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_construction_by_name():
    for name in CONSTRUCTIONS:
        assert dataset(name) == make(name)


def test_every_example_by_name():
    for name in examples():
        assert dataset(name) == example(name).data


def test_parameters():
    assert dataset("phuong:n=30,seed=4,d=3") == make("phuong", n=30, seed=4, d=3)
    assert dataset("digits:pair=3/8,center=true") == digits((3, 8), center=True)


def test_files_and_their_options(folder):
    (folder / "a.csv").write_text("kind,a,b\n0,1,2\n1,3,4\n")
    expected = Dataset([[1, 2], [3, 4]], [-1, 1])
    assert dataset("a.csv:label=kind,negative=0,positive=1") == expected
    assert dataset("a.csv:label=0,negative=0,positive=1,delimiter=comma") == expected
    assert dataset(folder / "a.csv", label="kind", labels={0: -1, 1: 1}) == expected
    assert dataset("a.csv:label=kind", labels={0: -1, 1: 1}).y.tolist() == [-1, 1]
    with pytest.raises(DataError, match="label is said twice"):
        dataset("a.csv:label=kind", label="kind")
    with pytest.raises(DataError, match="a file has no option 'lable'; did you mean 'label'"):
        dataset("a.csv:lable=kind")
    with pytest.raises(DataError, match="after the file name, key=value is needed"):
        dataset("a.csv:kind")
    with pytest.raises(DataError, match="positive is given without negative"):
        dataset("a.csv:positive=1")


def test_names_come_before_files_and_colons_may_stand_in_file_names(folder):
    file = save(Dataset([[1.0]], [1]), folder / "phuong.csv").rename(folder / "phuong")
    assert dataset("phuong") == make("phuong")
    assert dataset("./phuong") == Dataset([[1.0]], [1])
    file.rename(folder / "a:b=1.csv")
    assert dataset("a:b=1.csv") == Dataset([[1.0]], [1])
    assert dataset("a:b=1.csv:label=y") == Dataset([[1.0]], [1])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("phung", "no dataset and no file 'phung'; did you mean 'phuong'"),
        ("ex11", "did you mean 'EX1'"),
        ("mnits:digits=0/1", "did you mean 'mnist'"),
        ("qqqqqqqq", "`reluflow data list` lists the names"),
        ("pionts.csv", "there is no file 'pionts.csv'; did you mean 'points.csv'"),
        ("pionts.csv:label=y", "no file 'pionts.csv'; did you mean 'points.csv'"),
        ("./points", r"there is no file './points'; did you mean 'points.csv'"),
        ("phuong:sed=0", "no parameter 'sed'; did you mean 'seed'"),
        (
            "phuong:centered=true",
            "no parameter 'centered'; did you mean 'center'.* It takes n=500, .*bias",
        ),
        ("EX1:standardise=true", "no parameter 'standardise'; did you mean 'standardize'"),
        ("phuong:n=many", "n must be a positive integer, not 'many'"),
        ("phuong:n=1.5", r"n must be a positive integer, not 1\.5"),
        ("phuong:n", "after 'phuong': key=value is needed, e.g. seed=0, not 'n'"),
        ("phuong:", "key=value is needed"),
        ("phuong:=3", "key=value is needed"),
        ("phuong:n=", "key=value is needed"),
        ("phuong:n=1,n=2", "n is given twice"),
        ("phuong:n=100000000,d=1000", "GiB"),
        ("EX1:n=3", "EX1' is a worked example and has no parameter 'n'"),
        ("digits:digits=0/1", "digits has no parameter 'digits'"),
        ("digits:pair=3/3", "two different classes"),
        ("digits:pair=3/11", "digits has no class 11"),
        ("mnist:part=all", "part must be"),
        (".", "is a directory"),
        ("", "a dataset is named by a text"),
        ("   ", "a dataset is named by a text"),
        (None, "a dataset is named by a text"),
        (b"EX1", "a dataset is named by a text"),
        ("\0", "no dataset and no file"),
        ("a/\0", "there is no file"),
        ("x" * 5000, "no dataset and no file"),
    ],
)
def test_teaching_errors(folder, spec, message):
    save(Dataset([[1.0]], [1]), folder / "points.csv")
    with pytest.raises(DataError, match=message):
        dataset(spec)


def test_options_of_files_are_refused_for_names():
    with pytest.raises(DataError, match="'EX1' is no file: label can only be said of files"):
        dataset("EX1", label="y")


def test_label_rule():
    assert label_rule("0", "1") == {"0": -1, "1": 1}
    for pair in (("1", None), (None, "1"), ("1", "1")):
        with pytest.raises(DataError, match="both"):
            label_rule(*pair)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(
            lambda key: key not in ("label", "positive", "negative", "delimiter", "y", "name")
        ),
        st.integers()
        | st.floats(allow_nan=False)
        | st.booleans()
        | st.none()
        | st.lists(st.integers() | st.floats(allow_nan=False), min_size=2).map(tuple)
        | st.floats(allow_nan=False).map(lambda v: (v,)),
    )
)
@settings(deadline=None)
def test_values_are_read_back(values):
    def text(value):
        if isinstance(value, tuple):
            return "/".join(map(repr, value)) + ("/" if len(value) == 1 else "")
        return repr(value)

    assert parse_pairs([f"{key}={text(value)}" for key, value in values.items()], "") == values


@given(st.text())
@settings(deadline=None, max_examples=300)
def test_no_text_makes_it_crash(text):
    for spec in (text, "phuong:" + text, "mnist:" + text, "digits:" + text, "phuong:n=" + text, "./" + text):
        try:
            data = dataset(spec)
        except ReluflowError:
            continue
        assert isinstance(data, Dataset)
        assert np.isfinite(data.X).all()
