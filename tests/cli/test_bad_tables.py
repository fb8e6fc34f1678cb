"""A hundred and more ways to give a bad table or bad arrays: a sentence that teaches each time, and nothing changed."""

import contextlib
import gzip
import inspect
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

import reluflow as rf
from helpers.cli import run
from helpers.public import PUBLIC

#: What a remedy begins with: every refusal tells the reader what to do.
REMEDY = re.compile(
    r"(?i)\b(say|use|pass|drop|give|write|save|get|fill|remove|repair|correct|choose|name|leave|keep|convert|rescale|"
    r"do this|map|check|must be closed|change|round|unpack|choose|is needed|are needed|did you mean)\b"
)
#: Of an option it is enough to say what it takes.
NEED = re.compile(r"must|takes|outside|positions are|its \d+ columns|did you mean|two names")


def teaches(message, option=False):
    assert message.endswith((".", ")")), message
    assert len(message) < 1200, message
    assert REMEDY.search(message) or (option and NEED.search(message)), f"no remedy in: {message}"


HEAD = "a,b,y\n"
ROWS = "1,2,1\n3,-4,-1\n-2,0.5,-1\n"

#: Cells that are no numbers, wherever they stand.
CELLS = [
    "abc", "", " ", "nan", "NaN", "-nan", "inf", "-Infinity", "NA", "N/A", "null", "None", "?", "-", "1.2.3", "1e",
    "1e400", "1e-400", "--1", "1 2", "0x1A", "1_000", "\uff11", "1,5", "$3", "50%", "1/2", "true", "2020-01-01",
    "1\u00a0000", "#REF!",
]  # fmt: skip


def cells():
    """A good table with one bad cell, first as a feature in the middle, then as the label."""
    for cell in CELLS:
        text = f'"{cell}"' if "," in cell else cell
        yield f"feature {cell!r}", f"{HEAD}1,2,1\n3,{text},-1\n-2,0.5,-1\n", r"line 3, column 2 \('b'\)"
        if cell != " ":
            yield f"label {cell!r}", f"{HEAD}1,2,1\n3,-4,{text}\n-2,0.5,-1\n", r"column 3 \('y'\)"


TABLES = [
    *cells(),
    ("nothing", "", "is empty"),
    ("a line end", "\n", "holds no data"),
    ("only a BOM", "\ufeff", "holds no data|only one column"),
    ("only a header", HEAD, "header and no data rows"),
    ("one column", "1\n2\n", "only one column"),
    ("one column and a header", "y\n1\n-1\n", "only one column"),
    ("ragged at the end", HEAD + ROWS + "1,2\n", "line 5 has 2 fields"),
    ("ragged in front", "a,b,c,y\n" + ROWS, "line 2 has 3 fields"),
    ("a comma at the end of one line", HEAD + "1,2,1,\n", "line 2 has 4 fields"),
    ("mixed delimiters", "1,2,1\n3;4;-1\n", "line 2 has 1 fields"),
    ("mixed delimiters and blanks", "1, 2,1\n3 4 -1\n", "fields"),
    ("comma and semicolon in one line", "1,2;1\n3,4;-1\n", "not a number|Write decimals"),
    ("decimal commas and semicolons", "1,5;2,5;1\n-1,5;-2,5;-1\n", "Write decimals with a point"),
    ("decimal commas and spaces", "1,5 2,5 1\n-1,5 -2,5 -1\n", "Write decimals with a point"),
    ("decimal commas and tabs", "1,5\t2,5\t1\n", "Write decimals with a point"),
    ("bars", "1|2|1\n", "--delimiter"),
    ("an open quote", 'a,b,y\n1,"2,1\n', "badly quoted"),
    ("a quote in the middle", 'a,b,y\n1,2"3"4,1\n', "not a number"),
    ("text after a quote", 'a,b,y\n1,"2"3,1\n', "badly quoted"),
    ("NUL bytes", "a,b,y\n1,\0,1\n", "binary"),
    ("three classes", "a,b,y\n1,2,setosa\n3,4,virginica\n5,6,versicolor\n", "3 different values"),
    ("three numbered classes", "a,b,y\n1,2,0\n3,4,1\n5,6,2\n", "3 different values"),
    ("one text class", "a,b,y\n1,2,yes\n3,4,yes\n", "labels must be -1 or"),
    ("labels 0 and 1", "a,b,y\n1,2,0\n3,4,1\n", "--negative 0 --positive 1"),
    ("labels 1 and 2", "a,b,y\n1,2,1\n3,4,2\n", "--negative 1 --positive 2"),
    ("labels nearly 1", "a,b,y\n1,2,1\n3,4,-1.0000001\n", "'-1.0000001'"),
    ("two columns called y", "y,b,y\n1,2,1\n3,4,-1\n", "may both be the label"),
    ("y and label", "y,b,label\n1,2,1\n3,4,-1\n", "may both be the label"),
    ("a zero row", HEAD + "1,2,1\n0,0,-1\n", "zero row"),
    ("a contradiction", HEAD + "1,2,1\n1,2,-1\n", "same point with labels"),
    ("numbers too large to square", HEAD + "1e151,2,1\n", "largest entry"),
    ("numbers too small to square", HEAD + "1e-151,0,1\n", "largest entry"),
    ("half a header", "a,2,y\n1,2,1\n", "header=True"),
    ("a header in the middle", HEAD + ROWS + HEAD, "line 5, column 1"),
    ("a sum at the end", HEAD + ROWS + "total,6,\n", "line 5, column 1"),
    ("units below the names", "a,b,y\ncm,kg,-\n1,2,1\n", "line 2, column 1"),
    ("prose", "This is not a table.\nIt has words, and a comma.\n", "fields|not a number|column"),
    ("a web page", "<!DOCTYPE html>\n<html><body>404</body></html>\n", "line 2 has 1 fields"),
    ("JSON in disguise", '[{"a": 1, "y": 1}]', "is JSON"),
    ("JSON over lines", '{\n  "a": [1, 2]\n}\n', "is JSON"),
    ("UTF-16", (HEAD + ROWS).encode("utf-16"), "not UTF-8"),
    ("Latin-1", "größe,y\n1,1\n".encode("latin-1"), "not UTF-8"),
    ("junk", bytes(np.random.default_rng(1).integers(0, 256, 3000, dtype=np.uint8)), "UTF-8|binary"),
    ("half a gzip file", gzip.compress((HEAD + ROWS * 200).encode())[:-20], "gzip"),
    ("a spreadsheet of old", b"\xd0\xcf\x11\xe0" + bytes(600), "is a spreadsheet"),
    ("Parquet in disguise", b"PAR1" + bytes(90) + b"PAR1", "is a Parquet file"),
    ("a pickle in disguise", b"\x80\x04\x95" + bytes(60), "never opened"),
    ("a picture in disguise", b"\x89PNG\r\n\x1a\n" + bytes(60), "is a picture"),
]


def test_there_are_about_a_hundred():
    assert len(TABLES) >= 100
    assert len({name for name, _, _ in TABLES}) == len(TABLES)


@pytest.mark.parametrize(("content", "message"), [case[1:] for case in TABLES], ids=[case[0] for case in TABLES])
def test_a_bad_table_is_refused_with_a_remedy(tmp_path, spoken, content, message):
    file = tmp_path / "t.csv"
    raw = content if isinstance(content, bytes) else content.encode()
    file.write_bytes(raw)
    with pytest.raises(rf.DataError, match=f"(?s){re.escape(str(file))}.*({message})") as info:
        rf.check(file, width=2)
    teaches(str(info.value))
    result = run("check", str(file), "--width", "2")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"reluflow: {spoken(info.value, 'check')}\n")
    assert file.read_bytes() == raw
    assert os.listdir(tmp_path) == ["t.csv"]


# -- files of other programs, and no files ----------------------------------------------------------

FOREIGN = {
    "t.xlsx": "spreadsheet.*read_excel", "t.xls": "spreadsheet", "t.ods": "spreadsheet", "t.json": "JSON.*read_json",
    "t.jsonl": "lines=True",
    "t.pkl": "never opened", "t.joblib": "never opened", "t.mat": "MATLAB.*loadmat", "t.arff": "Weka.*loadarff",
    "t.h5": "HDF5", "t.dta": "Stata.*read_stata", "t.sav": "SPSS", "t.sas7bdat": "SAS", "t.rds": "R.*write.csv",
    "t.svm": "LIBSVM", "t.pt": "weights", "t.safetensors": "weights", "t.zip": "unpack", "t.bz2": "unpack",
    "t.png": "picture", "t.pdf": "PDF", "t.sqlite": "database", "t.html": "web page", "t.XLSX": "spreadsheet",
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_programs_are_named(tmp_path, spoken, name):
    file = tmp_path / name
    file.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(rf.DataError, match=f"(?s){re.escape(str(file))} is .*{FOREIGN[name]}") as info:
        rf.load(file)
    assert "CSV, TSV, NPZ, NPY, IDX, Parquet or Feather is needed" in str(info.value)
    teaches(str(info.value))
    result = run("data", "show", str(file))
    assert (result.exit_code, result.stderr) == (2, f"reluflow: {spoken(info.value, 'data', 'show')}\n")


def test_a_workbook_is_told_from_an_npz_by_what_is_in_it(tmp_path):
    for name in ("book", "book.npz", "book.csv"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("[Content_Types].xml", "<Types/>")
            archive.writestr("xl/workbook.xml", "<workbook/>")
        with pytest.raises(rf.DataError, match="is a spreadsheet"):
            rf.load(tmp_path / name)


def test_the_way_from_a_foreign_file_works(tmp_path):
    """The line that the message gives makes a table that is read."""
    file = tmp_path / "t.json"
    pd.DataFrame({"a": [1.0, -2.0], "b": [3.0, 4.0], "y": [1, -1]}).to_json(file)
    with pytest.raises(rf.DataError) as info:
        rf.load(file)
    code = re.search(r'python -c "(.*)" makes', str(info.value)).group(1)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert rf.load(tmp_path / "t.csv") == rf.Dataset([[1, 3], [-2, 4]], [1, -1])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "there is no file"),
        ("missing.xlsx", "there is no file"),
        ("folder", "is a directory"),
        ("folder.csv", "is a directory"),
        ("locked.csv", "may not be read by you"),
        ("no/such/folder.csv", "there is no file"),
        ("\0.csv", "there is no file"),
        ("x" * 300 + ".csv", "there is no file"),
    ],
)
def test_what_is_no_file(tmp_path, monkeypatch, name, message):
    for folder in ("folder", "folder.csv"):
        (tmp_path / folder).mkdir()
    (tmp_path / "locked.csv").write_text("1,2,1\n")
    if name == "locked.csv":

        def no(*args):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("reluflow.data.files.is_gzip", no)
    with pytest.raises(rf.DataError, match=message) as info:
        rf.explain(f"{tmp_path}/{name}")
    teaches(str(info.value))


# -- arrays -----------------------------------------------------------------------------------------

X, Y = np.array([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0]]), np.array([1, 1, -1])
FRAME = pd.DataFrame({"a": [2.0, 1.0, -3.0], "b": [1, 2, -1]})


def changed(i, k, value, dtype=float):
    out = X.astype(dtype)
    out[i, k] = value
    return out


ARRAYS = {
    "nothing": ([], [], "shape"),
    "no rows": (np.ones((0, 2)), [], "nothing in it"),
    "no columns": (np.ones((3, 0)), Y, "nothing in it"),
    "one-dimensional": ([1.0, 2.0, 3.0], Y, "two-dimensional"),
    "three-dimensional": (np.ones((3, 2, 2)), Y, "two-dimensional"),
    "ragged": ([[1, 2], [3]], [1, -1], "rectangular"),
    "nan": (changed(1, 1, np.nan), Y, r"X\[1, 1\] is nan"),
    "inf": (changed(1, 1, np.inf), Y, r"X\[1, 1\] is inf"),
    "text": ([["1", "2"], ["3", "4"], ["5", "6"]], Y, "not a real number type"),
    "objects": (changed(0, 0, None, object), Y, "not a real number type"),
    "complex": (X * 1j, Y, "not a real number type"),
    "booleans": (X > 0, Y, "not a real number type"),
    "large integers": (np.array([[2**60 + 1], [1], [2]]), Y, "no exact float64"),
    "masked": (np.ma.masked_array(X, X > 1.5), Y, "masked"),
    "a zero row": (changed(1, slice(None), 0.0), Y, "zero row"),
    "huge": (X * 1e160, Y, "largest entry"),
    "tiny": (X * 1e-160, Y, "largest entry"),
    "too few labels": (X, [1, -1], "3 rows but y has 2"),
    "labels 0 and 1": (X, [0, 1, 1], "2 \\* y - 1"),
    "labels of booleans": (X, [True, False, True], "labels=.False: -1, True: 1."),
    "labels of text": (X, ["no", "yes", "no"], "labels=.'no': -1, 'yes': 1."),
    "labels nearly 1": (X, [1, 1, -1.0000001], r"-1\.0000001 \(first at index 2\).*rint"),
    "labels nan": (X, [1, -1, np.nan], "nan"),
    "labels in a column": (X, [[1], [1], [-1]], "one-dimensional"),
    "three classes": (X, [0, 1, 2], "3 different values"),
    "a contradiction": (np.ones((3, 2)), Y, "same point"),
    "no labels": (X, None, "without y"),
    "a number": (3, Y, "needs a Problem"),
    "a mapping": ({"a": [1]}, Y, "needs a Problem"),
    "None": (None, Y, "needs a Problem"),
    "NA in a frame": (FRAME.astype("Float64").replace(1.0, pd.NA), Y, r"X\['a'\]: row 1 .*missing"),
    "NaN in a frame": (FRAME.replace(1.0, np.nan), Y, r"X\['a'\]: row 1 .*missing"),
    "NA among the labels": (FRAME, pd.Series([1, None, -1], dtype="Int64"), "y: row 1 .*missing"),
    "text in a frame": (FRAME.assign(c=["u", "v", "w"]), Y, r"X\['c'\] has dtype .*drop_columns='c'"),
    "dates in a frame": (FRAME.assign(c=pd.Timestamp("2020")), Y, r"X\['c'\] has dtype datetime"),
    "categories in a frame": (FRAME.assign(c=pd.Categorical(list("uvu"))), Y, r"X\['c'\] has dtype category"),
    "rows in another order": (FRAME, pd.Series(Y, index=[2, 1, 0]), "different indices"),
    "large integers in a frame": (FRAME.assign(c=2**60 + 1), Y, "no exact float64"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_bad_arrays_are_refused_with_a_remedy(case):
    points, labels, message = ARRAYS[case]
    before = repr(points), repr(labels)
    with pytest.raises(rf.ReluflowError, match=message) as info:
        rf.check(points, labels, width=2)
    teaches(str(info.value))
    assert (repr(points), repr(labels)) == before


OPTIONS = [
    ({"widht": 3}, "did you mean 'width'"),
    ({"width": 0}, "width must be a positive integer"),
    ({"slope": 2}, r"outside \[0, 1\]"),
    ({"scheme": "xavier"}, "not known; choose"),
    ({"scale": -1}, "positive number"),
    ({"scale": 1.0, "log_scale": 1.0}, "two names for one thing"),
    ({"seed": -1}, "seed must be"),
    ({"loss": "hinge"}, "choose"),
    ({"train": "last"}, "choose|first"),
    ({"label": "y"}, "leave label out"),
    ({"delimiter": ","}, "leave delimiter out"),
    ({"header": True}, "leave header out"),
    ({"labels": {1: 2}}, "must become"),
    ({"drop_columns": "c"}, "no column 'c'"),
    ({"drop_columns": 7}, "no column at position 7"),
    ({"drop_columns": []}, "at least one"),
    ({"drop_columns": [0, 1]}, "leaves no feature"),
    ({"drop_columns": 1.5}, "names or positions"),
    ({"center": 1}, "center must be True or False"),
    ({"standardize": "yes"}, "standardize must be True or False"),
    ({"bias": 0}, "zero column is no bias"),
    ({"bias": float("nan")}, "finite non-zero"),
    ({"bias": "1"}, "finite non-zero"),
    ({"network": "nowhere.npz"}, "there is no file"),
    ({"network": 3}, "file name|Network|path"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=[str(options) for options, _ in OPTIONS])
def test_bad_options_are_refused_with_a_remedy(options, message):
    with pytest.raises(rf.ReluflowError, match=message) as info:
        rf.check(X, Y, **options)
    teaches(str(info.value), option=True)


#: Every public function that is given something else than it takes says so.
WRONG = [[[1]], None, 5, "nothing-here", np.zeros((0, 2)), object(), {"a": 1}]


FUNCTIONS = {
    name: one for (home, name), one in PUBLIC.items() if home != "deep" and not isinstance(one, type)
}  # of reluflow.deep: see its own tests, which need PyTorch


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_public_function_answers_a_wrong_argument_with_a_raw_error(name):
    function, problem = FUNCTIONS[name], rf.as_problem("EX1", width=4)
    good = {"problem": problem, "data": problem.data, "net": problem.net, "network": problem.net}
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty and p.kind in kinds]
    for k in range(len(needed)):
        for wrong in WRONG:
            arguments = [good.get(p.name, [[1.0, 2.0]]) for p in needed]
            arguments[k] = wrong
            with contextlib.suppress(rf.ReluflowError):  # what is not refused may be answered
                function(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: rf.max_margin([[1]]), "must be a Dataset, not list; build one"),
        (lambda p: rf.ladder(p, 0.1), r"scales must be a list of numbers, e\.g\. .*, not 0\.1"),
        (lambda p: rf.ladder(p, log_scales=-3), "log_scales must be a list"),
        (lambda p: rf.dynamics.perturb(p, 0.1), "sizes must be a list"),
        (lambda p: rf.ladder(p.data, [0.1]), "must be a Problem, not Dataset"),
        (lambda p: rf.load(FRAME), r"load reads a file, but a DataFrame was given; Dataset\(X, y\)"),
        (lambda p: rf.load(X), "but a ndarray was given"),
    ],
)
def test_raw_errors_of_old(call, message):
    with pytest.raises(rf.ReluflowError, match=message):
        call(rf.as_problem("EX1", width=4))
