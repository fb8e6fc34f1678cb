"""What a sweep becomes: tables, files and pictures that say what the rows say."""

import csv
import sys

import numpy as np
import pytest

from helpers.sweeps import TESTS, loop, small
from reluflow import ProblemError, Sweep, open_sweep
from reluflow.sweep import write_index
from reluflow.sweep.results import SweepResults


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return small().run(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def phases(tmp_path_factory):
    """A sweep with logarithmic axes, texts, answers that are not known, and rows that failed."""
    sweep = Sweep(
        data={"source": "phuong", "n": 4, "d": 2},
        network={"scale": {"logspace": [-4, 0, 5]}, "width": {"range": [1, 5]}, "seed": [0, 1, 2]},
        measures=["helpers.sweeps:cheap", "helpers.sweeps:moody"],
        title="Phases <of> widths",
        folder=TESTS,
    )
    return sweep.run(tmp_path_factory.mktemp("phases"))


def test_the_table(results):
    table, want = results.table(), loop(small())
    assert table["index"].tolist() == list(range(36))
    assert table["network.width"].tolist() == [small().parameters_at(k)["network.width"] for k in range(36)]
    assert table["data.source"].tolist() == ["phuong"] * 36
    assert table["cheap.sum"].dtype == np.float64
    assert table["cheap.sum"].tolist() == [want[k]["sum"] for k in range(36)]
    assert table["cheap.neurons"].dtype == np.int64
    assert table["cheap.even"].dtype == bool
    assert np.isinf(table["cheap.large"]).all()
    assert table["cheap.none"].tolist() == [None] * 36
    assert table["fingerprint"].tolist() == [small().fingerprint_at(k) for k in range(36)]
    assert (table["seconds"] >= 0).all()


def test_names_of_columns(results, phases):
    assert results.column("sum") == "cheap.sum"
    assert results.column("width") == "network.width"
    with pytest.raises(ProblemError, match="there is no column 'scal'; did you mean 'scale'"):
        results.column("scal")
    with pytest.raises(ProblemError, match=r"may be network\.scale or cheap\.scale; say which"):
        phases.column("scale")


def test_pandas(results):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = results.to_dataframe()
    assert frame.shape[0] == 36
    assert frame["cheap.sum"].tolist() == results.table()["cheap.sum"].tolist()


def test_csv_comes_back(results, tmp_path):
    results.collect(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as stream:
        found = list(csv.DictReader(stream))
    table = results.table()
    assert list(found[0]) == list(table)
    assert [float(row["cheap.sum"]) for row in found] == table["cheap.sum"].tolist()


def test_parquet_comes_back(results, phases, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'reluflow[cluster]'")
    for one in (results, phases):
        one.collect(tmp_path / "table.parquet")
        found = parquet.read_table(tmp_path / "table.parquet")
        for name, column in one.table().items():
            back = found.column(name).to_pylist()
            assert np.array_equal(back, column, equal_nan=True) if column.dtype.kind == "f" else back == column.tolist()


def test_xarray_and_netcdf(results, phases, tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed: pip install 'reluflow[arrays]'")
    found = results.xarray()
    assert dict(found.sizes) == {"n": 2, "seed": 6, "width": 3}
    want = loop(small())
    for index in (0, 13, 35):
        said = small().parameters_at(index)
        place = {"n": said["data.n"], "seed": said["network.seed"], "width": said["network.width"]}
        assert float(found["cheap.sum"].sel(place)) == want[index]["sum"]
    for one in (results, phases):
        one.collect(tmp_path / "table.nc")
        with xarray.open_dataset(tmp_path / "table.nc", engine="scipy") as back:
            xarray.testing.assert_equal(back.load(), one.xarray())


def test_zipped_axes_are_one_dimension(tmp_path):
    pytest.importorskip("xarray", reason="xarray is not installed: pip install 'reluflow[arrays]'")
    sweep = small(zip=[["n", "width"]], network={"width": [1, 2], "seed": [0, 1, 2]})
    found = sweep.run(tmp_path, shard=(1, 2)).xarray()
    assert dict(found.sizes) == {"n": 2, "seed": 3}
    assert found["width"].values.tolist() == [1, 2]
    assert found["width"].dims == ("n",)
    assert int(found["cheap.sum"].isnull().sum()) == 3  # the other shard


@pytest.mark.parametrize(
    ("file", "library", "words"),
    [("a.parquet", "pyarrow", r"reluflow\[cluster\]"), ("a.nc", "xarray", r"reluflow\[arrays\]")],
)
def test_without_the_library(results, tmp_path, monkeypatch, file, library, words):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ProblemError, match=words):
        results.collect(tmp_path / file)
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written(results, tmp_path):
    with pytest.raises(ProblemError, match=r"\.parquet, \.csv, \.nc"):
        results.collect(tmp_path / "table.txt")
    with pytest.raises(ProblemError, match="there is no folder"):
        results.collect(tmp_path / "no" / "table.csv")


def test_an_empty_sweep_has_no_table(tmp_path, monkeypatch):
    from reluflow.sweep import store

    store.prepare(tmp_path, small())
    found = open_sweep(tmp_path)
    assert found.table()["index"].size == 0
    assert repr(found) == "Results of 36 problems: 36 left"
    with pytest.raises(ProblemError, match="no rows yet"):
        found.collect(tmp_path / "a.csv")
    with pytest.raises(ProblemError, match="no rows yet"):
        found.plot("width", "sum")


# -- pictures ----------------------------------------------------------------------------------------------------


def test_curves_show_medians_and_bands(phases):
    figure = phases.plot("network.scale", "cheap.sum", color="width")
    (axes,) = figure.axes
    table = phases.table()
    assert axes.get_xscale() == "log"
    assert len(axes.lines) == 4
    for width, line in zip((1, 2, 3, 4), axes.lines, strict=True):
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
            here = (table["network.width"] == width) & (table["network.scale"] == x)
            assert y == np.median(table["cheap.sum"][here])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"width = {k}" for k in (1, 2, 3, 4)]


def test_shares_and_panels(phases):
    figure = phases.plot("width", "even", panel="seed")
    assert len(figure.axes) == 3
    assert figure.axes[0].lines[0].get_ydata().tolist() == [0, 1, 0, 1]
    assert figure.axes[1].get_title() == "seed = 1"
    figure = phases.plot("width", "undecided")
    assert figure.axes[0].lines[0].get_ydata().tolist() == [0, 1, 0, 0]  # width 2 is moody
    figure = phases.plot("width", "failed")
    assert figure.axes[0].lines[0].get_ydata().tolist() == [0, 0, 1, 1]


def test_maps(phases):
    mesh = phases.plot("network.scale", "width", color="undecided").axes[0].collections[0]
    assert mesh.get_array().reshape(4, 5).tolist() == [[0] * 5, [1] * 5, [0] * 5, [0] * 5]
    figure = phases.plot("network.scale", "width", color="name")  # texts: the most frequent
    assert figure.axes[0].get_xscale() == "log"
    assert figure.axes[0].get_yscale() == "linear"
    assert [t.get_text() for t in figure.axes[1].get_yticklabels()] == ["phuong"]
    mesh = phases.plot("network.scale", "width").axes[0].collections[0]
    assert mesh.get_array().reshape(4, 5)[:, 0].tolist() == [1, 0, 0, 0]


def test_random_axes_are_put_together(tmp_path):
    sweep = small(network={"slope": {"uniform": [0, 1], "count": 100}, "width": 2})
    line = sweep.run(tmp_path).plot("slope", "neurons", color="n").axes[0].lines[0]
    assert 10 < len(line.get_xdata()) <= 24
    assert set(line.get_ydata()) == {2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"x": "sum", "y": "neurons"}, "does not vary"),
        ({"x": "width", "y": "name"}, "which have no place on an axis"),
        ({"x": "width", "y": "sums"}, "there is no column 'sums'"),
        ({"x": "width", "y": "sum", "panel": "neurons"}, "does not vary"),
        ({"x": "width", "y": "sum", "path": "picture.txt"}, "needed"),
        ({"x": 3, "y": "sum"}, "x = 3: the name of a column is needed"),
    ],
)
def test_what_cannot_be_drawn(phases, words, said):
    with pytest.raises(ProblemError) as refusal:
        phases.plot(**words)
    assert said in str(refusal.value)


def test_the_page_needs_nothing_else(phases):
    file = phases.picture_file("width", "sum")
    phases.plot("width", "sum", path=file)
    page = write_index(phases).read_text()
    assert "Phases &lt;of&gt; widths" in page
    assert "60 problems: 15 done, 15 undecided, 30 failed, 0 left." in page
    assert "data:image/png;base64," in page
    assert "<td>15</td><td>cannot tell.</td>" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "logspace" in page


def test_results_print_short(results):
    assert repr(results) == "Results of 36 problems: 36 done"
    assert isinstance(results, SweepResults)
