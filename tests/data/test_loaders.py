"""Files in, files out: the same bits, and what the many shapes of a CSV file mean."""

import csv
import gzip
import io
import json
import struct
import zipfile
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reluflow import DataError, Dataset, load, save
from reluflow.data import digits, summarize
from reluflow.data.idx import read_idx

# -- round trips ------------------------------------------------------------------------------------

# All doubles a Dataset takes: subnormals and minus zero too, as long as each row has one entry of fair size.
entries = st.floats(-1e150, 1e150, allow_subnormal=True)
leading = st.floats(1e-150, 1e150) | st.floats(-1e150, -1e-150)


@st.composite
def datasets(draw):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    X = draw(hnp.arrays(np.float64, (n, d), elements=entries))
    X[:, draw(st.integers(0, d - 1))] = draw(hnp.arrays(np.float64, n, elements=leading, unique=True))
    return Dataset(X, draw(hnp.arrays(np.int64, n, elements=st.sampled_from([-1, 1]))))


@pytest.mark.parametrize("ending", ["npz", "csv", "tsv"])
@given(data=datasets())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_save_and_load_give_the_same_bits(tmp_path, ending, data):
    again = load(save(data, tmp_path / f"data.{ending}"))
    assert again.X.tobytes() == data.X.tobytes()
    assert again.y.tobytes() == data.y.tobytes()


@given(data=datasets(), seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_dialect_reads_the_same(tmp_path, data, seed):
    """Delimiter, quotes, line ends, header, byte order mark, comments, gzip, label position: the data stay the same."""
    rng = np.random.default_rng(seed)
    delimiter, end = rng.choice([",", ";", "\t"]), rng.choice(["\n", "\r\n", "\r"])
    k = int(rng.integers(data.d + 1))
    table = np.insert(data.X.astype(object), k, data.y.astype(int), axis=1).tolist()
    if rng.random() < 0.5:
        table.insert(0, [f"f{i}" for i in range(data.d + 1)])
    out = io.StringIO()
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    csv.writer(out, delimiter=str(delimiter), lineterminator=str(end), quoting=quoting).writerows(table)
    lines = out.getvalue().split(end)
    for _ in range(int(rng.integers(3))):
        lines.insert(int(rng.integers(len(lines))), str(rng.choice(["", "   ", "# a, comment; here"])))
    raw = (rng.choice(["", "\ufeff"]) + end.join(lines)).encode()
    file = tmp_path / "data.csv"
    file.write_bytes(gzip.compress(raw) if rng.random() < 0.3 else raw)
    again = load(file, label=k - (data.d + 1) if rng.random() < 0.5 else k)
    assert again.X.tobytes() == data.X.tobytes()
    assert again == data


def test_agrees_with_numpys_reader(tmp_path):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 7)) * 10.0 ** rng.integers(-20, 20, (40, 7)), rng.choice([-1, 1], 40)
    np.savetxt(tmp_path / "t.txt", np.column_stack([X, y]), delimiter=",", header="seven features, one label")
    table = np.loadtxt(tmp_path / "t.txt", delimiter=",")
    data = load(tmp_path / "t.txt")
    assert data.X.tobytes() == np.ascontiguousarray(table[:, :-1]).tobytes()
    assert data.y.tolist() == table[:, -1].tolist()


def test_thousands_of_columns(tmp_path):
    data = Dataset(np.random.default_rng(0).normal(size=(3, 5000)), [1, -1, 1])
    assert load(save(data, tmp_path / "wide.csv")) == data


def test_npz_keeps_name_and_parameters(tmp_path):
    data = Dataset(
        [[1.0, 2.0]], [1], name="one [point]", parameters={"seed": 3, "range": (0.5, np.inf), "w": np.ones(2)}
    )
    again = load(save(data, tmp_path / "p.npz"))
    assert again.name == "one [point]"
    assert again.parameters["saved"] == {"seed": 3, "range": [0.5, "inf"], "w": [1.0, 1.0]}
    assert load(tmp_path / "p.npz", name="other").name == "other"


def test_save_replaces_at_once_or_not_at_all(tmp_path):
    file = save(Dataset([[1.0]], [1]), tmp_path / "d.csv")
    save(Dataset([[2.0]], [-1]), file)
    assert load(file) == Dataset([[2.0]], [-1])
    assert [f.name for f in tmp_path.iterdir()] == ["d.csv"]  # no temporary left behind


def test_save_refuses(tmp_path):
    data = Dataset([[1.0]], [1])
    with pytest.raises(DataError, match=r"use \.npz, \.csv or \.tsv"):
        save(data, tmp_path / "d.xlsx")
    with pytest.raises(DataError, match="there is no folder"):
        save(data, tmp_path / "nowhere" / "d.csv")
    (tmp_path / "d.npz").mkdir()
    with pytest.raises(DataError, match="it is a folder"):
        save(data, tmp_path / "d.npz")
    with pytest.raises(DataError, match="writes a Dataset, not list"):
        save([[1.0]], tmp_path / "d.csv")
    with pytest.raises(DataError, match="a file name is needed, not 3"):
        load(3)


# -- header, label column, label values -------------------------------------------------------------


def written(tmp_path, text, name="t.csv"):
    file = tmp_path / name
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "header", "lines"),
    [
        ("a,b,y\n1,2,1\n3,4,-1\n", True, (2, 3)),
        ("1,2,1\n3,4,-1\n", False, (1, 2)),
        (" a , b , y \n 1 , 2 , 1 \n3,4,-1\n", True, (2, 3)),
        ('"a","b","y"\n"1","2","1"\n3,4,-1\n', True, (2, 3)),
        ("# a,b,y\n\n1,2,1\n3,4,-1", False, (3, 4)),
        ("a;b;y\n1;2;1\n3;4;-1\n", True, (2, 3)),
        (",b,y\n1,2,1\n3,4,-1\n", True, (2, 3)),
        ("1e0,+2.,1.0\n3,.4e1,-1.0\n", False, (1, 2)),
        ('"first\nname",b,y\n1,2,1\n3,4,-1\n', True, (3, 4)),
    ],
)
def test_header_is_found(tmp_path, text, header, lines):
    data = load(written(tmp_path, text))
    assert data == Dataset([[1, 2], [3, 4]], [1, -1])
    assert (data.parameters["header"], data.parameters["lines"]) == (header, lines)


def test_first_line_that_is_neither_names_nor_numbers_is_refused(tmp_path):
    """Taking it for a header would lose a sample, or take a typing error for a name."""
    file = written(tmp_path, "a,2,y\n1,2,1\n")
    with pytest.raises(DataError, match=r"line 1, column 1: 'a' is not a number, but other fields .* header=True"):
        load(file)
    assert load(file, header=True) == Dataset([[1, 2]], [1])
    with pytest.raises(DataError, match=r"line 1, column 1: 'a' is not a number"):
        load(file, header=False)
    with pytest.raises(DataError, match="header must be True, False or None"):
        load(file, header="yes")


def test_names_that_are_numbers_need_saying_so(tmp_path):
    file = written(tmp_path, "0,1,2\n1,2,1\n3,4,-1\n")
    with pytest.raises(DataError, match="column 3 holds '2'"):
        load(file)
    assert load(file, header=True, label="2") == Dataset([[1, 2], [3, 4]], [1, -1])


@pytest.mark.parametrize("label", ["kind", 1, -2, "1", "-2", np.int64(1)])
def test_label_by_name_or_position(tmp_path, label):
    assert load(written(tmp_path, "a,kind,b\n1,1,2\n3,-1,4\n"), label=label) == Dataset([[1, 2], [3, 4]], [1, -1])


@pytest.mark.parametrize("name", ["y", "Y", "label", "Target", "class"])
def test_label_by_its_usual_name(tmp_path, name):
    assert load(written(tmp_path, f"a,{name},b\n1,1,1\n3,-1,-1\n")) == Dataset([[1, 1], [3, -1]], [1, -1])


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("kin", r"has no column 'kin'; its 3 columns are 'a', 'b', 'y'\."),
        (3, r"has no column at position 3 \(counted from 0\); its 3 columns"),
        (-4, "has no column at position -4"),
        (True, "a column name or a position, not True"),
        (1.0, r"a column name or a position, not 1\.0"),
        ([1], r"a column name or a position, not \[1\]"),
    ],
)
def test_missing_label_column(tmp_path, label, message):
    with pytest.raises(DataError, match=message):
        load(written(tmp_path, "a,b,y\n1,2,1\n"), label=label)


def test_ambiguous_label_columns(tmp_path):
    with pytest.raises(DataError, match=r"column 1 \('label'\) and column 3 \('y'\) may both be the label"):
        load(written(tmp_path, "label,b,y\n1,2,1\n"))
    with pytest.raises(DataError, match="2 columns called 'b'"):
        load(written(tmp_path, "b,b,y\n1,2,1\n"), label="b")
    with pytest.raises(DataError, match=r"has no column 'q'; it has no header and 3 columns: positions are 0 to 2"):
        load(written(tmp_path, "1,2,1\n"), label="q")


def test_columns_are_listed_in_short(tmp_path):
    names = ",".join(f"c{k}" for k in range(5000))
    with pytest.raises(DataError, match=r"5000 columns are 'c0', .*'c7', \.\.\., 'c4997', 'c4998', 'c4999'\.") as info:
        load(written(tmp_path, f"{names}\n"), label="z")
    assert len(str(info.value)) < 400


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1,2,0\n3,4,1\n", {0: -1, 1: 1}),
        ("1,2,0.0\n3,4,1\n", {"0": -1, "1": 1}),
        ("a,b,c\n1,2,no\n3,4,yes\n", {"no": -1, "yes": 1}),
        ("1,2,no\n3,4,yes\n", {"no": -1, "yes": 1}),
        ("1,2,2\n3,4,1\n", {1: 1, 2: -1, 3: 1}),
    ],
)
def test_labels_are_mapped_as_told(tmp_path, text, labels):
    assert load(written(tmp_path, text), labels=labels) == Dataset([[1, 2], [3, 4]], [-1, 1])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, r"column 3 holds '0' \(first at line 1\).*labels=\{0: -1, 1: 1\}, .* --negative 0 --positive 1\."),
        ({1: 1}, r"holds '0' .*labels=\{1: 1\} does not mention"),
        ({0: 0, 1: 1}, "maps 0 to 0; every value must become -1 or"),
        ({0: -1, "0": 1, 1: 1}, "0 and '0', which are the same number, two signs"),
        ({}, "labels must say which value means what"),
        ([0, 1], "labels must say which value means what"),
    ],
)
def test_labels_that_cannot_be_mapped(tmp_path, labels, message):
    with pytest.raises(DataError, match=message):
        load(written(tmp_path, "1,2,0\n3,4,1\n"), labels=labels)


def test_labels_are_never_guessed(tmp_path):
    with pytest.raises(DataError, match="There are 3 different values: '0', '1', '2'"):
        load(written(tmp_path, "1,2,0\n3,4,1\n3,5,2\n"))
    with pytest.raises(DataError, match=r"has no label at line 2 but ''"):
        load(written(tmp_path, "1,2,1\n3,4,\n"))
    for missing in ("1,2,cat\n3,4,dog\n", "a,b,y\n1,2,cat\n3,4,dog\n"):
        with pytest.raises(DataError, match=r"'cat'.*(labels=|--negative)"):
            load(written(tmp_path, missing))


@pytest.mark.parametrize("word", ["comma", ","])
def test_delimiter_can_be_said(tmp_path, word):
    file = written(tmp_path, "1;5,2,1\n3;4,4,-1\n")  # both delimiters cut it evenly; semicolons come first
    with pytest.raises(DataError, match="'5,2,1' is not a number"):
        load(file)
    with pytest.raises(DataError, match=r"column 1: '1;5' is not a number"):
        load(file, delimiter=word, header=False)
    with pytest.raises(DataError, match="delimiter must be one character"):
        load(file, delimiter="||")


def test_options_of_other_formats_are_refused(tmp_path):
    with pytest.raises(
        DataError, match="is read as a table, for which digits means nothing; options are label, labels"
    ):
        load(written(tmp_path, "1,2,1\n"), digits=(0, 1))
    with pytest.raises(DataError, match="is read as NPZ, for which label means nothing"):
        load(save(Dataset([[1.0]], [1]), tmp_path / "a.npz"), label="y")


# -- NPZ and NPY ------------------------------------------------------------------------------------


def test_npy_pair(tmp_path):
    X, y = np.arange(1, 7).reshape(3, 2), np.array([0, 1, 1])
    np.save(tmp_path / "train_X.npy", X)
    np.save(tmp_path / "train_y.npy", y)
    np.save(tmp_path / "points.npy", X)
    expected = Dataset(X, 2 * y - 1)
    rule = {0: -1, 1: 1}
    assert load(tmp_path / "train_X.npy", labels=rule) == expected
    assert load(tmp_path / "points.npy", y=tmp_path / "train_y.npy", labels=rule) == expected
    with pytest.raises(DataError, match=r"holds the points alone.*say y="):
        load(tmp_path / "points.npy")


@pytest.mark.parametrize(
    "y", [np.array([False, True]), np.array(["False", "True"]), np.array([b"False", b"True"]), np.array([0, 1])]
)
def test_labels_of_arrays_are_mapped_as_told(tmp_path, y):
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=y)
    with pytest.raises(DataError, match="labels must be -1 or"):
        load(tmp_path / "a.npz")
    rule = {0: -1, 1: 1} if y.dtype.kind == "i" else {"False": -1, "True": 1}
    assert load(tmp_path / "a.npz", labels=rule) == Dataset(np.eye(2), [-1, 1])


def test_pickles_are_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return open, (str(tmp_path / "exploded"), "w")

    np.savez(tmp_path / "a.npz", X=np.array([[Bomb()]]), y=np.ones(1))
    np.save(tmp_path / "X.npy", np.array([[Bomb()]]))
    np.save(tmp_path / "y.npy", np.ones(1))
    for name in ("a.npz", "X.npy"):
        with pytest.raises(DataError, match="Python objects, which are never unpickled"):
            load(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


# -- IDX --------------------------------------------------------------------------------------------


def idx(array, kind=0x08):
    """Write IDX as its description says, without the code under test."""
    head = bytes([0, 0, kind, array.ndim]) + b"".join(struct.pack(">I", side) for side in array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


@given(
    array=st.sampled_from([(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"), (14, "f8")]).flatmap(
        lambda kind: st.tuples(
            st.just(kind[0]), hnp.arrays(kind[1], hnp.array_shapes(max_dims=4, min_side=0, max_side=4))
        )
    ),
    packed=st.booleans(),
)
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_idx_of_every_type_and_shape(tmp_path, array, packed):
    kind, values = array
    file = tmp_path / "values.idx"
    file.write_bytes(gzip.compress(idx(values, kind)) if packed else idx(values, kind))
    assert np.array_equal(read_idx(file), values, equal_nan=values.dtype.kind == "f")


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(1)
    pixels, classes = rng.integers(1, 256, (60, 4, 3), dtype=np.uint8), rng.integers(0, 5, 60).astype(np.uint8)
    (tmp_path / "a-images-idx3-ubyte").write_bytes(idx(pixels))
    (tmp_path / "a-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(classes)))
    return tmp_path / "a-images-idx3-ubyte", pixels.reshape(60, 12), classes


def test_digits_of_idx(images):
    file, pixels, classes = images
    data = load(file, digits=(3, 1))
    keep = np.isin(classes, (1, 3))
    assert np.array_equal(data.X, pixels[keep] / 255)
    assert data.y.tolist() == [1 if c == 1 else -1 for c in classes[keep]]
    assert np.array_equal(load(file, digits=(3, 1), scaled=False).X, pixels[keep])
    centered = load(file, digits=(3, 1), center=True)
    assert np.allclose(centered.X, data.X - data.X.mean(axis=0), rtol=0, atol=1e-15)
    assert load(file, labels={0: -1, 1: 1, 2: 1, 3: 1, 4: 1}).y.tolist() == np.where(classes == 0, -1, 1).tolist()


def test_samples_are_drawn_without_replacement_and_in_order(images):
    file, *_ = images
    every = load(file, digits=(0, 4))
    some = load(file, digits=(0, 4), samples=9, seed=3)
    where = [np.flatnonzero(np.equal(every.X, row).all(axis=1)).item() for row in some.X]
    assert len(where) == 9
    assert where == sorted(set(where))
    assert some.y.tolist() == every.y[where].tolist()
    assert some == load(file, digits=(0, 4), samples=9, seed=3)
    assert some != load(file, digits=(0, 4), samples=9, seed=4)
    assert load(file, digits=(0, 4), samples=every.n) == every


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"has 5 classes: 0, 1, 2, 3, 4\. Choose two"),
        ({"digits": (0, 7)}, "has no class 7; it has 0, 1, 2, 3, 4"),
        ({"digits": (0, 0)}, "two different classes are needed"),
        ({"digits": (0, 1, 2)}, "two different classes are needed"),
        ({"digits": "01"}, "two different classes are needed"),
        ({"digits": (0, True)}, "two different classes are needed"),
        ({"digits": (0, 1), "labels": {0: 1}}, "digits or labels, not both"),
        ({"digits": (0, 1), "samples": 61}, "only"),
        ({"digits": (0, 1), "samples": 0}, "samples must be an integer from 1 on"),
        ({"digits": (0, 1), "seed": -1}, "seed must be an integer from 0 on"),
        ({"digits": (0, 1), "center": 1}, "center must be True or False"),
        ({"digits": (0, 1), "scaled": "no"}, "scaled must be True or False"),
    ],
)
def test_bad_choices_of_digits(images, options, message):
    with pytest.raises(DataError, match=message):
        load(images[0], **options)


# -- scikit-learn's digits --------------------------------------------------------------------------


def test_sklearn_digits_have_the_known_angles():
    # ML-F10/F11 on the 8 x 8 digits: 1 (+) against 0 (-), n = 360, 93.3 % of the pairs have the right sign and
    # |x_plus| / n = 0.6566. Centring makes the class sums opposite.
    data = digits((0, 1), center=True)
    assert data.n == 360
    assert round(100 * summarize(data).acute, 1) == 93.3
    plus, minus = data.X[data.positives].sum(axis=0), data.X[data.negatives].sum(axis=0)
    assert round(float(np.linalg.norm(plus)) / data.n, 4) == 0.6566
    assert np.allclose(plus, -minus, rtol=0, atol=1e-10)


def test_sklearn_digits_pair_and_scale():
    a, b = digits((3, 8)), digits((8, 3))
    assert np.array_equal(a.X, b.X)
    assert np.array_equal(a.y, -b.y)
    assert (a.X.min(), a.X.max()) == (0.0, 1.0)
    assert np.array_equal(digits((3, 8), scaled=False).X, 16 * a.X)


def test_without_scikit_learn_the_remedy_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DataError, match=r"pip install 'reluflow\[learn\]'"):
        digits()


# -- the summary ------------------------------------------------------------------------------------


@given(data=datasets())
@settings(deadline=None, max_examples=60)
def test_summary_against_a_plain_loop(data):
    facts = summarize(data)
    unit = [z / np.abs(z).max() for z in data.signed]
    cosines = [[float(u @ v / np.sqrt(u @ u) / np.sqrt(v @ v)) for v in unit] for u in unit]
    assert abs(facts.mu - np.min(cosines)) <= 1e-14
    exact = [[Fraction(v) for v in z.tolist()] for z in data.signed]
    products = [sum(a * b for a, b in zip(exact[i], exact[j], strict=True)) for i in range(data.n) for j in range(i)]
    assert facts.strictly_orthogonally_separable == all(product > 0 for product in products)
    if products:
        assert facts.acute == sum(product > 0 for product in products) / len(products)
    assert facts.duplicates == data.n - len({tuple(row) for row in data.X})
    assert (facts.norm_min, facts.norm_max) == (data.norms.min(), data.norms.max())


def test_summary_decides_ties():
    facts = summarize(Dataset([[1, 0], [0, 1]], [1, 1]))
    assert (facts.mu, facts.strictly_orthogonally_separable) == (0, False)
    # 0.1 * 3 - 0.3 is 0 on paper and rounds to 0 here, but the doubles' own product is positive
    facts = summarize(Dataset([[3.0, -1.0], [0.1, 0.3]], [1, 1]))
    assert facts.strictly_orthogonally_separable is (3 * Fraction(0.1) - Fraction(0.3) > 0)
    assert summarize(Dataset([[1.0]], [1])).acute is None


def test_summary_leaves_out_what_takes_long():
    X = np.random.default_rng(0).normal(size=(3000, 500))
    facts = summarize(Dataset(X, np.where(X[:, 0] > 0, 1, -1)))
    assert (facts.mu, facts.acute, facts.strictly_orthogonally_separable) == (None, None, None)
    assert facts.n == 3000


def test_plain_values_survive_json():
    from dataclasses import dataclass
    from enum import Enum
    from pathlib import Path

    from reluflow.problem.plain import plain

    class Kind(Enum):
        A = "a"

    @dataclass
    class Result:
        w: np.ndarray
        gap: float

    value = {"r": Result(np.array([[1.5, np.nan]]), -np.inf), 2: [np.int64(3), np.bool_(True), Kind.A, Path("p"), {1}]}
    expected = {"r": {"w": [[1.5, "nan"]], "gap": "-inf"}, "2": [3, True, "a", "p", [1]]}
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == expected


def spoilt(path, name, **arrays):
    """Write an NPZ file in which one array has a good header and cannot be unpacked."""
    np.savez(path, **arrays)
    with zipfile.ZipFile(path) as archive:
        begins = archive.getinfo(f"{name}.npy").header_offset
    whole = bytearray(path.read_bytes())
    content = arrays[name].tobytes()
    whole[whole.index(content, begins) + len(content) - 1] ^= 1  # the sum of the archive does not fit any more
    path.write_bytes(whole)
    return path


def test_what_is_not_needed_is_not_unpacked(tmp_path):
    # A small file may hold gigabytes of zeros: neither arrays nobody asks for are unpacked, nor points without labels.
    n = 20_000
    X, y, other = 1 + np.arange(2.0 * n).reshape(n, 2), np.tile([1.0, -1.0], n // 2), np.arange(5.0 * n)
    assert load(spoilt(tmp_path / "other.npz", "other", X=X, y=y, other=other)) == Dataset(X, y)
    with pytest.raises(DataError, match="CRC"):
        load(spoilt(tmp_path / "X.npz", "X", X=X, y=y))
    with pytest.raises(DataError, match=r"holds 0\.0"):
        load(spoilt(tmp_path / "y.npz", "X", X=X, y=0 * y))
    for shape in ((), (3,), (n + 1, 1)):
        with pytest.raises(DataError, match="one label a row is needed"):
            load(spoilt(tmp_path / "shape.npz", "X", X=X, y=np.ones(shape)))
