"""A run as a table and as a file: one row a record, and endings that say what is written."""

import csv

import numpy as np
import pytest

import reluflow as rf


@pytest.fixture(scope="module")
def run():
    data = rf.Dataset([[2.0, 1.0, 0.5], [1.0, 2.0, 0.0], [-3.0, -1.0, 1.0], [-1.0, -2.5, 2.0]], [1, 1, -1, -1])
    return rf.descend(rf.Problem(data, rf.initialize(3, 5, seed=1)), step=0.1, steps=40, record=range(41))


def test_one_row_a_record(run):
    pytest.importorskip("pandas")
    table = run.to_dataframe()
    assert len(table) == len(run) == 41
    for name in ("log_time", "log_loss", "log_norm"):
        np.testing.assert_array_equal(table[name], getattr(run, name))
    for name in ("normalized_margin", "smoothed_margin", "stable_rank", "balance_drift"):
        np.testing.assert_array_equal(table[name], getattr(run, name)())


def test_one_row_a_record_and_neuron(run):
    pytest.importorskip("pandas")
    table = run.to_dataframe(neurons=True)
    assert len(table) == len(run) * run.p
    for k, j in ((0, 0), (7, 3), (40, 4)):
        [row] = table[(table.record == k) & (table.neuron == j)].to_dict("records")
        net = run.network(k)
        np.testing.assert_allclose([np.exp(row["log_norm"]) * row[f"w{i}"] for i in (1, 2, 3)], run.W[k, j], rtol=1e-13)
        assert row["sign"] * np.exp(row["log_out"]) == pytest.approx(run.a[k, j])
        assert row["log_time"] == run.log_time[k]
        assert row["sign"] == np.sign(net.a[j])


def test_xarray_does_not_become_a_billion_rows(run):
    pytest.importorskip("xarray")
    arrays = run.to_xarray()
    assert len(arrays[["log_loss", "stable_rank"]].to_dataframe()) == len(run)
    assert len(arrays[["log_norms", "sign"]].to_dataframe()) == len(run) * run.p
    every = len(run) * 5 * 3 * 4
    assert len(arrays.drop_dims("event").to_dataframe()) == every
    many = np.arange(2000)
    wide = arrays.drop_dims("event").assign(extra=("step", many), more=("draw", many))
    for tables, rows in ((wide, every * 2000**2), (arrays, 0)):  # a discrete run has no event to combine with
        with pytest.raises(rf.ProblemError, match=rf"would have {rows} rows, every .*Trajectory.to_dataframe"):
            tables.to_dataframe()


@pytest.mark.parametrize(("name", "delimiter"), [("run.csv", ","), ("run.TSV", "\t")])
def test_a_table_as_text_keeps_every_digit(run, tmp_path, name, delimiter):
    run.save(tmp_path / name)
    with (tmp_path / name).open(newline="") as file:
        head, *rows = csv.reader(file, delimiter=delimiter)
    assert head[:3] == ["log_time", "log_loss", "log_norm"]
    values = np.array(rows, dtype=float)
    np.testing.assert_array_equal(values[:, 0], run.log_time)
    np.testing.assert_array_equal(values[:, head.index("stable_rank")], run.stable_rank())


@pytest.mark.parametrize("name", ["x", "x.txt", "x.npy", "x.csv.gz", "x.png", ".npz"])
def test_other_endings_are_refused_and_nothing_is_written(run, tmp_path, name):
    with pytest.raises(rf.ProblemError, match=r"\.npz, \.csv, \.tsv is needed"):
        run.save(tmp_path / name)
    with pytest.raises(rf.ProblemError, match=r"\.npz is needed"):
        run.final.save(tmp_path / name)
    with pytest.raises(rf.ProblemError, match=r"\.npz is needed"):
        rf.descend(run.problem, step=0.1, steps=1, checkpoint=tmp_path / name)
    with pytest.raises(rf.DataError, match="ending"):
        rf.save(run.problem.data, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written(run, tmp_path):
    (tmp_path / "folder.npz").mkdir()
    for name, word in (("absent/x.npz", "no folder"), ("folder.npz", "is a folder"), ("x\0.npz", "no file name")):
        for thing in (run, run.final):
            with pytest.raises(rf.ProblemError, match=word):
                thing.save(tmp_path / name)
    with pytest.raises(rf.ProblemError, match="int is no file name"):
        run.save(3)
