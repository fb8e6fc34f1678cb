"""The spec: a pure list of problems, and refusals before anything runs."""

import itertools
import json
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow as rf
from helpers.sweeps import TESTS, small
from reluflow import ProblemError, Sweep
from reluflow.sweep.plan import plan_of

TOML = """
title = "four"
seed = 3
measures = ["helpers.sweeps:cheap"]
zip = [["data.seed", "network.seed"]]

[data]
source = "phuong"
n = 10
d = 2
seed = { range = [0, 2] }

[network]
width = [2, 3]
seed = [5, 6]
slope = { uniform = [0, 1], count = 2 }

[problem]
loss = "exponential"
"""


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_all_combinations_once_and_in_order(sizes):
    names = ["width", "seed", "scale", "slope"][: len(sizes)]
    said = {name: list(range(1, size + 1)) for name, size in zip(names, sizes, strict=True)}
    plan = plan_of({"data": {"source": "EX1"}, "network": said})
    assert len(plan) == np.prod(sizes)
    found = [plan.parameters_at(k) for k in range(len(plan))]
    ordered = sorted(said)
    every = [dict(zip(ordered, choice, strict=True)) for choice in itertools.product(*(said[n] for n in ordered))]
    assert [{key.partition(".")[2]: v for key, v in one.items() if key != "data.source"} for one in found] == every


def test_toml_and_python_say_the_same(tmp_path):
    (tmp_path / "spec.toml").write_text(TOML)
    one = Sweep.read(tmp_path / "spec.toml")
    other = Sweep(
        data={"d": 2, "source": "phuong", "seed": range(2), "n": np.int64(10)},
        network={"slope": {"count": 2, "uniform": (0, 1)}, "seed": (5, 6), "width": [2, 3]},
        problem={"loss": "exponential"},
        measures=["helpers.sweeps:cheap"],
        zip=[("network.seed", "data.seed")],
        seed=3,
        title="another",
        folder=TESTS,
    )
    assert one.id == other.id
    assert len(one) == len(other) == 8
    assert [one.fingerprint_at(k) for k in range(8)] == [other.fingerprint_at(k) for k in range(8)]
    assert len({one.fingerprint_at(k) for k in range(8)}) == 8
    assert {(p["data.seed"], p["network.seed"]) for p in map(one.parameters_at, range(8))} == {(0, 5), (1, 6)}
    assert Sweep.of(json.loads(json.dumps(other.document())), TESTS).id == one.id
    again = pickle.loads(pickle.dumps(one))
    assert again.id == one.id
    assert again.problem_at(3).fingerprint() == one.problem_at(3).fingerprint()


def test_problems_are_those_of_the_package():
    sweep = small()
    k = 17
    said = sweep.parameters_at(k)
    data = rf.make("phuong", n=said["data.n"], d=2)
    net = rf.initialize(2, width=said["network.width"], seed=said["network.seed"])
    assert sweep.problem_at(k).fingerprint() == rf.Problem(data, net).fingerprint()


def test_order_does_not_matter_and_everything_else_does():
    base = small().document()
    shuffled = {key: base[key] for key in random.Random(1).sample(list(base), len(base))}
    shuffled["network"] = dict(reversed(base["network"].items()))
    assert Sweep.of(shuffled, TESTS).id == small().id
    assert small(title="other", limits={"time": 3}).id == small().id  # not what it is
    others = [
        small(seeds=5),
        small(problem={"train": "first"}),
        small(measures={"cheap": {"measure": "helpers.sweeps:cheap", "power": 3}}),
        small(measures=["helpers.sweeps:slow"]),
    ]
    assert len({small().id, *(one.id for one in others)}) == 5
    assert small(problem={"train": "first"}).fingerprint_at(0) != small().fingerprint_at(0)


def test_files_count_by_their_contents(tmp_path):
    (tmp_path / "points.csv").write_text("a,b,label\n2,1,yes\n1,2,yes\n-3,-1,no\n")
    said = {"source": "points.csv", "negative": "no", "positive": "yes", "bias": [0.5, 1.0]}

    def sweep():
        return Sweep(data=said, network={"width": 2}, measures=["helpers.sweeps:cheap"], folder=tmp_path)

    before = sweep()
    before.check()
    assert before.problem_at(1).data.X.tolist() == [[2, 1, 1], [1, 2, 1], [-3, -1, 1]]
    mark = before.fingerprint_at(0)
    (tmp_path / "points.csv").write_text("a,b,label\n2,1,yes\n1,2,yes\n-3,-2,no\n")
    assert sweep().id != before.id
    assert sweep().fingerprint_at(0) != mark
    elsewhere = tmp_path / "deeper"
    elsewhere.mkdir()
    (elsewhere / "points.csv").write_bytes((tmp_path / "points.csv").read_bytes())
    assert Sweep(data=said, network={"width": 2}, measures=["helpers.sweeps:cheap"], folder=elsewhere).id == sweep().id


@pytest.mark.parametrize(
    "said",
    [
        {"source": "hinted", "H": [1.0, 12.0], "w_star": {"value": [1.0, 0.0]}, "base": "D6-base"},
        {"source": ["EX1", "EX4"], "bias": 1.0},
        {"source": "phuong:seed=1", "n": [10, 20], "center": True},
        {"source": "phuong", "n": {"linspace": [10, 30, 3]}},
    ],
)
def test_data_as_every_verb_takes_them(said):
    if said.get("source") == "hinted":
        base = rf.example("D6-base").data
        said = {**said, "w_star": {"value": rf.max_margin(base).direction.tolist()}}
    sweep = Sweep(data=said, network={"width": 2}, measures=["helpers.sweeps:cheap"], folder=TESTS)
    sweep.check()
    first, last = sweep.problem_at(0).data, sweep.problem_at(len(sweep) - 1).data
    assert len(sweep) > 1
    assert first.fingerprint() != last.fingerprint()


BAD = {
    "no data": ({"data": {}}, "data.source is missing"),
    "unknown source": ({"data": {"source": "phung"}}, "did you mean 'phuong'"),
    "source of another type": ({"data": {"source": 3}}, 'source = "phuong"'),
    "unknown parameter of data": ({"data": {"source": "phuong", "nn": 3}}, "no parameter 'nn'"),
    "unknown parameter of a network": ({"network": {"widht": 3}}, "network.widht is not known; did you mean 'width'"),
    "unknown parameter of a problem": ({"problem": {"los": "logistic"}}, "did you mean 'loss'"),
    "empty axis": ({"network": {"seed": []}}, "network.seed = [] has no value"),
    "one of many values": (
        {"network": {"width": [2, 3, 0]}},
        "network.width = 0) is impossible: width must be a positive",
    ),
    "a combination": (
        {"network": {"width": [2, 3], "scheme": ["balanced", "two-sign"]}},
        "network.scheme = 'two-sign', network.width = 3) is impossible: scheme 'two-sign'",
    ),
    "a combination of data": (
        {"data": {"source": ["phuong", "EX1"], "n": [10, 20]}},
        "network.width = 1) is impossible: 'EX1' is a worked example",
    ),
    "two names for one thing": ({"network": {"scale": 1.0, "log_scale": -3}}, "two names for one thing"),
    "a list that is one value": (
        {"data": {"source": "hinted", "w_star": [1, 0]}},
        "{value = [1, 0]} is a list as one value",
    ),
    "unknown loss": ({"problem": {"loss": "square"}}, "square"),
    "negative seed": ({"seed": -1}, "seed = -1"),
    "title": ({"title": 3}, "title = 3"),
    "zip of nothing": ({"zip": [["width"]]}, "two parameters or more"),
    "zip of what does not vary": ({"zip": [["d", "width"]]}, "there is no axis of this name"),
    "zip of unequal": ({"zip": [["width", "network.seed"]]}, "network.width has 3, network.seed has 2"),
    "zip twice": ({"zip": [["width", "n"], ["width", "n"]], "network": {"width": [1, 2]}}, "stands twice"),
    "zip of a text": ({"zip": "width"}, "a list of lists"),
    "too many": ({"network": {"seed": {"range": [0, 5000]}, "width": {"range": [1, 5001]}}}, "more than 10000000"),
    "no measure": ({"measures": []}, "at least one is needed"),
    "unknown measure": ({"measures": ["limitt"]}, "did you mean 'limit'"),
    "measure twice": ({"measures": ["align", "align"]}, "asked for twice"),
    "unknown setting": ({"measures": {"limit": {"rtoll": 1}}}, "no setting 'rtoll'; did you mean 'rtol'"),
    "bad setting": ({"measures": {"limit": {"rtol": -1}}}, "measures.limit: rtol"),
    "bad setting of descend": ({"measures": {"descend": {"method": "newton"}}}, "newton"),
    "unknown claim": ({"measures": {"check": {"claim": "PL-T99"}}}, "measures.check: "),
    "flow without a goal": ({"measures": ["flow"]}, "needs a goal"),
    "unknown goal": ({"measures": {"flow": {"until": {"los": 1}}}}, "measures.flow: "),
    "a module that is not there": ({"measures": ["nowhere.to:be"]}, "nowhere.to cannot be imported"),
    "a function that is not there": ({"measures": ["helpers.sweeps:dear"]}, "has no function 'dear'"),
    "settings it does not take": (
        {"measures": {"m": {"measure": "helpers.sweeps:cheap", "colour": 1}}},
        "unexpected keyword argument 'colour'",
    ),
    "unknown limit": ({"limits": {"tme": 3}}, "did you mean 'time'"),
    "no limit": ({"limits": {"time": 0}}, "a positive number of seconds"),
}


@pytest.mark.parametrize(("change", "words"), BAD.values(), ids=BAD)
def test_the_impossible_is_refused_before_anything_runs(change, words, tmp_path):
    said = {"data": {"source": "phuong", "n": [4, 6], "d": 2}, "network": {"width": [1, 2, 3], "seed": [0, 1]}}
    said["measures"] = ["helpers.sweeps:cheap"]
    with pytest.raises(rf.ReluflowError) as refusal:
        Sweep(**{**said, **change, "folder": TESTS}).run(tmp_path / "out")
    assert words in str(refusal.value)
    assert not (tmp_path / "out").exists()


def test_functions_by_themselves():
    from helpers import sweeps

    assert small(measures=[sweeps.cheap]).id == small().id
    with pytest.raises(ProblemError, match="put it into a module"):
        small(measures=[lambda problem: 1])


def test_bad_files(tmp_path):
    with pytest.raises(ProblemError, match="there is no file"):
        Sweep.read(tmp_path / "no.toml")
    (tmp_path / "bad.toml").write_text("a = = 3")
    with pytest.raises(ProblemError, match="is no TOML"):
        Sweep.read(tmp_path / "bad.toml")
    (tmp_path / "odd.toml").write_text('[data]\nsource = "EX1"\n[netwrk]\nwidth = 3\n')
    with pytest.raises(ProblemError, match=r"odd\.toml: 'netwrk' is not known; did you mean 'network'"):
        Sweep.read(tmp_path / "odd.toml")
    with pytest.raises(ProblemError, match="cannot be read"):
        Sweep.read(tmp_path)


def test_the_ends_of_the_list():
    sweep = small(seeds=6)
    assert [k for k, _, _ in sweep.ends(3)] == [0, 1, 2, 33, 34, 35]
    assert [k for k, _, _ in sweep.ends(30)] == list(range(36))
    with pytest.raises(ProblemError, match="there is no problem 36; the sweep has 36 problems"):
        sweep.parameters_at(36)
