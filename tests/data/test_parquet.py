"""Parquet and Feather files, as far as pandas can read them."""

import subprocess
import sys

import pytest

import reluflow as rf

pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install 'reluflow[tables]' runs these tests")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'reluflow[tables]' runs these tests")

FRAME = pd.DataFrame({"size": [1.0, 2.0, -3.0], "city": ["u", "v", "w"], "cost": [3, 1, 2], "kind": list("abb")})
SAID = {"label": "kind", "labels": {"a": -1, "b": 1}, "drop_columns": "city"}


@pytest.fixture(params=["t.parquet", "t.pq", "t.feather", "t.arrow", "nameless"])
def file(request, tmp_path):
    path = tmp_path / request.param
    (FRAME.to_feather if request.param in ("t.feather", "t.arrow") else FRAME.to_parquet)(path)
    return path


def test_a_table_is_read_as_its_frame_is(file):
    data = rf.load(file, **SAID, standardize=True, bias=True)
    assert data == rf.Dataset.from_frame(FRAME, **SAID, standardize=True, bias=True)
    assert data.names == ("size", "cost", "bias")
    assert rf.explain(file, **SAID, width=3, progress=False).problem.data.n == 3


def test_what_is_wrong_with_it_is_said_with_the_file(file):
    said = {**SAID, "drop_columns": None}
    with pytest.raises(rf.DataError, match=rf"{file}: X\['city'\] has dtype .*row 0 .*drop_columns='city'"):
        rf.load(file, **said)
    with pytest.raises(rf.DataError, match=f"{file}: column 'kind' holds 'a'"):
        rf.load(file, label="kind", drop_columns="city")
    with pytest.raises(rf.DataError, match="delimiter means nothing"):
        rf.load(file, delimiter=",")


def test_damaged(tmp_path):
    for name, raw in (("a.parquet", b"PAR1 and nothing else"), ("b.feather", b"ARROW1 and nothing"), ("c", b"PAR1")):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(
            rf.DataError, match=f"{tmp_path / name} is a (Parquet|Feather) file that cannot be read: .*Get it again"
        ):
            rf.load(tmp_path / name)


def test_without_pyarrow_the_error_names_the_extra(tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    code = (
        "import sys; sys.modules['pyarrow'] = sys.modules['fastparquet'] = None\n"
        "import reluflow as rf\n"
        f"try: rf.load({str(tmp_path / 't.parquet')!r})\n"
        "except rf.DataError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "pip install 'reluflow[tables]'" in done.stdout, done.stderr
