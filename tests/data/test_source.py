"""Data as they come: arrays, frames, files, names; the same in Python and on the command line."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest

import reluflow as rf
from helpers.cli import document, run
from reluflow import DataError, Dataset, ProblemError, load, save
from reluflow.data import as_dataset, as_problem, dataset

X = np.array([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]])
Y = np.array([1, 1, -1, -1])
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
WHOLE = FRAME.assign(kind=["p", "p", "n", "n"])
LABELS = {"p": 1, "n": -1}
DATA = Dataset(X, Y)
NET = {"width": 3, "slope": 0.1, "log_scale": -5.0, "seed": 2}


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "table.csv"
    WHOLE.to_csv(file, index=False)
    return file


# -- one problem, however it is given ---------------------------------------------------------------


def test_all_ways_to_give_the_same_problem(table, tmp_path):
    want = rf.Problem(DATA, rf.initialize(2, 3, "balanced", None, 2, 0.1, log_scale=-5.0))
    net = tmp_path / "net.npz"
    want.net.save(net)
    ways = [
        as_problem(X, Y, **NET),
        as_problem(X.tolist(), Y.tolist(), **NET),
        as_problem(FRAME, Y, **NET),
        as_problem(FRAME, pd.Series(Y), **NET),
        as_problem(FRAME, WHOLE["kind"], labels=LABELS, **NET),
        as_problem(WHOLE, label="kind", labels=LABELS, **NET),
        as_problem(WHOLE, labels=LABELS, **NET),  # the last column
        as_problem(WHOLE[["kind", "a", "b"]], label=0, labels=LABELS, **NET),
        as_problem(WHOLE.assign(id=range(4)), label="kind", labels=LABELS, drop_columns="id", **NET),
        as_problem(table, labels=LABELS, **NET),
        as_problem(str(table), labels=LABELS, **NET),
        as_problem(f"{table}:negative=n,positive=p", **NET),
        as_problem(DATA, **NET),
        as_problem(DATA, network=want.net),
        as_problem(DATA, network=net, width=3, slope=0.1),
    ]
    assert {way.fingerprint() for way in ways} == {want.fingerprint()}
    assert as_problem(WHOLE, labels=LABELS, **NET).data.names == ("a", "b")


def test_the_command_line_reads_as_python_does(table):
    options = ["--negative", "n", "--positive", "p", "--standardize", "--bias", "--drop-columns", "a", "--width", 3]
    options += ["--slope", 0.1, "--log-scale", -5, "--seed", 2]
    found = document("check", table, *options, "--paper", "PL")["problem"]
    want = as_problem(table, labels=LABELS, standardize=True, bias=True, drop_columns="a", **NET)
    assert found["fingerprint"] == want.fingerprint()
    assert (
        document("check", table, *options[:4], "--bias-value", 0.1, "--paper", "PL")["problem"]["fingerprint"]
        == as_problem(table, labels=LABELS, bias=0.1).fingerprint()
    )


VERBS = [rf.explain, rf.check, rf.predict, rf.flow, rf.limit, rf.align, rf.descend, rf.monitor]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_every_verb_takes_data_and_refuses_what_contradicts(verb):
    problem, name = as_problem(X, Y, **NET), verb.__name__
    with pytest.raises(ProblemError, match=f"{name} was given a Problem, .* width= too; leave width out"):
        verb(problem, width=3)
    with pytest.raises(ProblemError, match=f"{name} has no option 'widht'; did you mean 'width'.*It takes .*slope"):
        verb(X, Y, widht=3)
    with pytest.raises(ProblemError, match=f"{name} has no option 'rtoll'"):
        verb(problem, rtoll=3)
    with pytest.raises(ProblemError, match=rf"{name} needs a Problem, or data: {name}\(X, y, width=50\)"):
        verb()
    with pytest.raises(ProblemError, match=f"{name} needs a Problem, not Network; or data: X and y"):
        verb(problem.net)
    with pytest.raises(DataError, match="X is given without y"):
        verb(X)
    with pytest.raises(DataError, match="leave y out"):
        verb(DATA, Y)
    with pytest.raises(DataError, match="leave y out"):
        verb("EX1", Y)
    with pytest.raises((ProblemError, DataError), match="label="):
        verb(WHOLE, y="kind")
    if verb not in (rf.flow, rf.descend, rf.monitor):  # which have a second argument of their own
        with pytest.raises(ProblemError, match=f"{name}: too many positional arguments.*label="):
            verb(WHOLE, "kind", labels=LABELS)
    assert verb.__doc__
    assert next(iter(inspect.signature(verb).parameters)) == "problem"


def test_until_and_y_do_not_get_mixed_up(table):
    stop, labels = {"time": 0.5}, {"labels": LABELS}
    ways = [
        rf.flow(X, Y, stop, **NET),
        rf.flow(X, Y, until=stop, **NET),
        rf.flow(X, y=Y, until=stop, **NET),
        rf.flow(X, until=stop, y=Y, **NET),
        rf.flow(WHOLE, stop, **labels, **NET),
        rf.flow(table, stop, **labels, **NET),
        rf.flow(str(table), rf.dynamics.Until(time=0.5), **labels, **NET),
        rf.flow(DATA, stop, **NET),
        rf.flow(problem=as_problem(DATA, **NET), until=stop),
        rf.flow(as_problem(DATA, **NET), stop),
    ]
    assert len({run.final.fingerprint() for run in ways}) == 1
    assert all(run.log_time[-1] == ways[0].log_time[-1] for run in ways)
    seen, want = (rf.monitor(*data, ways[0], paper="PL", **NET) for data in ((X, Y), (DATA,)))
    assert [one.claim for one in seen] == [one.claim for one in want]


def test_verbs_give_the_same_as_on_the_problem():
    problem = as_problem(X, Y, **NET)
    assert [f.applies for f in rf.check(X, Y, **NET)] == [f.applies for f in rf.check(problem)]
    assert len(rf.predict(X, Y, paper="ML", **NET)) == len(rf.predict(problem, paper="ML"))
    assert rf.align(X, Y, branch="leave", **NET).fates == rf.align(problem, branch="leave").fates
    # The seed of descend is that of the order, and seeds the draw too.
    how = {"step": 0.1, "steps": 3, "batch": 2}
    trained, want = rf.descend(X, Y, "sgd", **how, **NET), rf.descend(problem, "sgd", **how, seed=2)
    assert trained.final.fingerprint() == want.final.fingerprint()


def test_what_a_network_says_cannot_be_contradicted(tmp_path):
    net = rf.initialize(2, 3, slope=0.1)
    file = tmp_path / "net.npz"
    net.save(file)
    for option, value in (("width", 4), ("slope", 0.0)):
        with pytest.raises(ProblemError, match=f"{option} = .* contradicts the network that is given, which has"):
            as_problem(DATA, network=net, **{option: value})
    for option, value in (("scale", 1.0), ("log_scale", 0.0), ("seed", 0), ("scheme", "balanced")):
        with pytest.raises(ProblemError, match=f"{option} = .* nothing is drawn; leave {option}"):
            as_problem(DATA, network=net, **{option: value})
        result = run("check", "EX1", "--network", file, f"--{option.replace('_', '-')}", value)
        assert result.exit_code == 2
        assert f"leave --{option.replace('_', '-')} out" in result.stderr
    assert run("check", "EX1", "--network", file, "--width", 4).exit_code == 2
    assert run("check", "EX1", "--network", file, "--width", 3, "--slope", 0.1, "--paper", "PL").exit_code == 0


# -- preparation in all its places ------------------------------------------------------------------


def test_the_same_words_everywhere(tmp_path):
    file = save(Dataset(X, Y, names=["a", "b"]), tmp_path / "t.csv")
    words = {"drop_columns": "a", "standardize": True, "bias": 0.5}
    want = DATA.prepared(drop_columns=0, standardize=True, bias=0.5)
    for found in (
        load(file, **words),
        dataset(file, **words),
        dataset(f"{file}:drop_columns=a,standardize=true,bias=0.5"),
        as_dataset(X, Y, drop_columns=0, standardize=True, bias=0.5),
        as_dataset(FRAME, Y, **words),
        as_dataset(load(file), **words),
    ):
        assert found == want
        assert found.parameters["steps"][1:] == ("standardized()", "with_bias(0.5)")
        assert np.array_equal(found.transform(X[:, 1:]), found.X)
    again = load(save(load(file, **words), tmp_path / "t.npz"))
    assert (again, again.names) == (want, ("b", "bias"))
    assert np.array_equal(again.transform(X[:, 1:]), want.X)
    assert json.loads(run("data", "show", file, "--center", "--bias", "--json").stdout)["names"] == ["a", "b", "bias"]


@pytest.mark.parametrize("spec", ["phuong:n=30,seed=1", "EX1", "digits:pair=3/8,samples=20"])
def test_built_in_data_can_be_prepared(spec):
    data = dataset(spec)
    joined = spec + (":" if ":" not in spec else ",")
    assert dataset(f"{joined}center=true,bias=1") == data.centered().with_bias(1.0)
    assert dataset(spec, center=True, bias=True) == data.centered().with_bias(1.0)
    with pytest.raises(DataError, match="bias is said twice"):
        dataset(f"{joined}bias=1", bias=2.0)
    with pytest.raises(DataError, match="no file: delimiter can only be said of files"):
        dataset(spec, delimiter=",")


def test_a_parameter_of_the_construction_comes_first():
    assert dataset("linear_teacher:n=5,d=2,bias=0.1") == rf.make("linear_teacher", n=5, d=2, bias=0.1)
    assert dataset("linear_teacher:n=5,d=2,bias=0.1", bias=2).d == 4


@pytest.mark.parametrize("name", ["ex1", "EX1", "Ex1"])
def test_case_does_not_matter_in_names(name, tmp_path, monkeypatch):
    assert rf.example(name).name == "EX1"
    assert dataset(name) == rf.example("EX1").data
    assert dataset("PHUONG:n=5") == rf.make("Phuong", n=5) == rf.make("phuong", n=5)
    assert rf.make("symmetric", base=name) == rf.make("symmetric", base="EX1")
    monkeypatch.chdir(tmp_path)
    save(DATA, "own.csv")
    (tmp_path / "own.csv").rename(tmp_path / "ex1")
    assert dataset("ex1") == DATA  # a file of this very name comes before another case
    assert dataset("EX1") == rf.example("EX1").data


# -- tables -----------------------------------------------------------------------------------------


def written(tmp_path, text, name="t.csv"):
    file = tmp_path / name
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("1 2 1\n3 4 -1\n", "space"),
        ("  1   2\t1  \n3 4 -1\n", "space"),
        ("a b y\n1 2 1\n3 4 -1\n", "space"),
        ("1;2;1\n3;4;-1\n", "semicolon"),
        ("1\t2\t1\n3\t4\t-1\n", "tab"),
        ("1, 2, 1\n3, 4, -1\n", "comma"),
        ("my a,my b,the y\n1,2,1\n3,4,-1\n", "comma"),
    ],
)
def test_the_delimiter_is_found_or_said(tmp_path, text, delimiter):
    file, want = written(tmp_path, text), Dataset([[1, 2], [3, 4]], [1, -1])
    assert load(file) == want
    assert load(file).parameters["delimiter"] == delimiter
    assert load(file, delimiter=delimiter) == want
    shown = document("data", "show", file, "--delimiter", delimiter)
    assert shown["data"]["fingerprint"] == want.fingerprint()


def test_any_other_sign_is_said(tmp_path):
    file = written(tmp_path, "1|2|1\n3|4|-1\n")
    with pytest.raises(DataError, match="--delimiter"):
        load(file)
    assert load(file, delimiter="|") == load(f"{file}", delimiter="|") == dataset(f"{file}:delimiter=|")
    with pytest.raises(DataError, match="one of tab, semicolon, comma, space"):
        load(file, delimiter="||")


def test_columns_that_are_dropped_may_hold_anything(tmp_path):
    file = written(tmp_path, "id,name,a,b,y\n7,Ann,1,2,1\n8,,3,4,-1\n")
    want = Dataset([[1, 2], [3, 4]], [1, -1])
    for columns in ("id,name", ["id", "name"], [0, "name"], "0/1", [-5, -4]):
        data = load(file, drop_columns=columns)
        assert (data, data.names) == (want, ("a", "b"))
    assert dataset(f"{file}:drop_columns=id/name") == want
    shown = document("data", "show", file, "--drop-columns", "id", "--drop-columns", "name")
    assert (shown["names"], shown["notes"]) == (["a", "b"], [])
    with pytest.raises(DataError, match=r"'Ann' is not a number.*drop_columns='name' \(--drop-columns name\)"):
        load(file)
    with pytest.raises(DataError, match="is the label and cannot be dropped"):
        load(file, drop_columns="y")
    with pytest.raises(DataError, match="leaves no feature"):
        load(file, drop_columns=[0, 1, 2, 3])
    for wrong in (None, 1.5, {}, [1.5], [None], "nobody", 99, [True], ""):
        for text in ("a,b,y\n1,2,1\n", "u,1,2,1\n", "1,2,1\n"):
            if wrong is not None:
                with pytest.raises(DataError, match="column"):
                    load(written(tmp_path, text, "wrong.csv"), drop_columns=wrong)
    bare = written(tmp_path, "u,1,2,1\nv,3,4,-1\n", "bare.csv")
    assert load(bare, drop_columns=0) == want
    assert load(bare, drop_columns="0").parameters["header"] is False


def test_a_dropped_column_is_no_label(tmp_path):
    file = written(tmp_path, "class,a,y\nfirst,2,1\nthird,-4,-1\n")
    with pytest.raises(DataError, match="may both be the label"):
        load(file)
    assert load(file, drop_columns="class") == Dataset([[2], [-4]], [1, -1])


def test_an_index_column_is_pointed_out(tmp_path):
    file = tmp_path / "t.csv"
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 2)), columns=["a", "b"]).assign(y=[1, -1] * 3)
    frame.to_csv(file)  # with its index, as people do
    result = run("check", file, "--paper", "PL", "--json")
    assert result.stderr.startswith("note: column 0 (counted from 0, without a name) counts the rows")
    assert "--drop-columns 0" in result.stderr
    assert json.loads(result.stdout)["problem"]["d"] == 3
    clean = run("check", file, "--drop-columns", "0", "--paper", "PL", "--json")
    assert (clean.stderr, json.loads(clean.stdout)["problem"]["d"]) == ("", 2)
    assert load(file, drop_columns=0) == Dataset(frame[["a", "b"]], frame["y"])
    assert len(load(file, standardize=True).notes) == 1


def test_names_go_through_files(tmp_path):
    names = ["height in cm", 'with "quotes"', "a,comma", "größe"]
    data = Dataset(np.eye(4), [1, -1, 1, -1], names=names)
    for ending in ("csv", "tsv", "npz"):
        again = load(save(data, tmp_path / f"t.{ending}"))
        assert (again, again.names) == (data, tuple(names))
    assert run("data", "show", tmp_path / "t.csv").stdout.count("a,comma") == 1
    for name in ("2019", "#a", "a\nb", "nan"):
        with pytest.raises(DataError, match=r"would not be read as a name.*\.npz"):
            save(Dataset([[1.0]], [1], names=[name]), tmp_path / "u.csv")
        assert load(save(Dataset([[1.0]], [1], names=[name]), tmp_path / "u.npz")).names == (name,)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"names": np.arange(2)}, "'names' is not a list of texts"),
        ({"names": np.array(["a"])}, "1 names for 2 columns"),
        ({"transform": np.array("{")}, "'transform' is not JSON"),
        ({"transform": np.array('[["run", 3]]')}, "does not say what was done"),
        ({"transform": np.array('[["shift", ["a"]]]')}, "does not say what was done"),
    ],
)
def test_damaged_names_and_transforms(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=np.array([1, -1]), **arrays)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "t.npz")


def test_the_report_makes_itself_again_with_the_preparation(table):
    import shlex

    options = ["--negative", "n", "--positive", "p", "--center", "--bias", "--drop-columns", "-3"]
    first = json.loads(run("explain", table, *options, "--width", 3, "--json").stdout)  # it may have no limit
    words = shlex.split(first["command"])
    assert {"--center", "--bias", "--width", "--seed", "--drop-columns=-3"} <= set(words)
    own = {"--max-log-time", "--rtol", "--max-steps"}  # options of explain alone
    kept = [word for k, word in enumerate(words) if word not in own and words[k - 1] not in own]
    again = document("check", *kept[2:], "--paper", "PL")
    assert again["problem"]["fingerprint"] == first["problem"]["fingerprint"]


def test_axes_are_named_after_the_columns(tmp_path):
    from matplotlib.figure import Figure

    from reluflow.report import plot_alignment

    problem = as_problem(pd.DataFrame(X, columns=["size", "cost $ x_"]), Y, **NET)
    plot_alignment(rf.align(problem), tmp_path / "p.svg")
    from reluflow.report.pictures import axis_labels

    axes = Figure().subplots()
    axes.set(**axis_labels(problem.data))
    assert axes.get_xlabel() == "size"
    assert axis_labels(DATA) == {"xlabel": "$x_1$", "ylabel": "$x_2$"}
