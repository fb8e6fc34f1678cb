"""States of the studio: the problem they describe, the Python that makes it again, what is refused."""

import contextlib
import io
import json

import numpy as np
import pytest

import reluflow as rf
from reluflow.studio import problem_of, state_of
from reluflow.studio.presets import lectures, preset_state, presets
from reluflow.studio.state import DEFAULTS, MOST_NEURONS, MOST_POINTS, snippet
from reluflow.studio.work import Desk, change, table
from reluflow.theory import check

SMALL = {"points": [[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0]], "labels": [1, 1, -1], "width": 6, "log_scale": -7.0}


def test_a_state_is_the_problem_it_says():
    problem = problem_of({**SMALL, "slope": 0.1, "scheme": "he", "seed": 3, "loss": "exponential", "train": "first"})
    wanted = rf.as_problem(
        SMALL["points"],
        SMALL["labels"],
        width=6,
        slope=0.1,
        scheme="he",
        seed=3,
        log_scale=-7.0,
        loss="exponential",
        train="first",
    )
    assert problem.fingerprint() == wanted.fingerprint()


def test_a_bias_is_a_column():
    problem = problem_of({**SMALL, "bias": 0.5})
    assert problem.data.d == 3
    assert (problem.data.X[:, 2] == 0.5).all()
    again = state_of(problem.data)
    assert again["bias"] == 0.5
    assert again["points"] == SMALL["points"]


@pytest.mark.parametrize(
    "net",
    [
        rf.initialize(2, 4, seed=1, slope=0.2, scale=1e-4),
        rf.initialize(2, 4, "two-sign", seed=1),
        rf.Network.from_polar(np.eye(2), np.array([-3.0, -9.0]), np.array([-2.0, -5.0]), np.array([1, -1]), 0.1),
    ],
)
def test_a_problem_goes_into_a_state_and_back(net):
    before = rf.Problem(rf.Dataset([[2.0, 1.0], [-3.0, -1.0]], [1, -1]), net, "exponential", "sum", "first")
    after = problem_of(json.loads(json.dumps(state_of(before.data, before))))
    assert (after.loss, after.reduction, after.train) == (before.loss, before.reduction, before.train)
    X = np.array([[1.0, 0.3], [-0.2, 2.0]])
    (a, log_a), (b, log_b) = (one.net.scaled_outputs(X) for one in (before, after))
    np.testing.assert_allclose(a, b * np.exp(log_b - log_a), rtol=1e-12)


@pytest.mark.parametrize("more", [{}, {"bias": 1.0}, {"network": {"W": [[1.0, 0.5]], "a": [1.0]}}, {"name": "it's"}])
def test_the_snippet_makes_the_same_problem(more):
    state = {**SMALL, **more}
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec("\n".join(snippet(state).splitlines()[:-2]), names)
    assert names["problem"].fingerprint() == problem_of(state).fingerprint()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"labels": [1, 1]}, "3 points and 2 labels"),
        ({"points": [], "labels": []}, "no point yet"),
        ({"points": [[1e9, 0.0]], "labels": [1]}, "larger than"),
        ({"points": [[0.0, 0.0]], "labels": [1]}, "zero"),
        ({"points": [[1.0, 0.0], [1.0]], "labels": [1, 1]}, "row"),
        ({"points": [[1.0, 0.0]] * 2, "labels": [1, -1]}, "same point"),
        ({"width": MOST_NEURONS + 1}, "at most"),
        (
            {"points": [[1.0 + k, 1.0] for k in range(MOST_POINTS)], "labels": [1] * MOST_POINTS, "width": 200},
            "at most",
        ),
        ({"log_scale": 50.0}, "log_scale"),
        ({"colour": "red"}, "no field 'colour'"),
        ({"scheme": "two-sign", "width": 3}, "even"),
        ({"network": {"W": [[1.0]], "a": [1.0]}}, "d"),
    ],
)
def test_what_cannot_be_is_refused_in_words(wrong, words):
    with pytest.raises(rf.ReluflowError, match=words):
        problem_of({**SMALL, **wrong})


def test_what_if():
    flipped = change(SMALL, "flip")
    assert flipped["labels"] == [-1, -1, 1]
    assert change(flipped, "flip")["labels"] == SMALL["labels"]
    twice = change(SMALL, "symmetrize")
    pairs = {(*point, label) for point, label in zip(twice["points"], twice["labels"], strict=True)}
    assert len(pairs) == 6
    assert all((-x, -y, -label) in pairs for x, y, label in pairs)
    hinted = change(SMALL, "hint")
    assert len(hinted["points"]) == 6
    assert hinted["labels"][:3] == [1, 1, 1]
    assert hinted["width"] == 6
    with pytest.raises(rf.ProblemError, match="not known"):
        change(SMALL, "shrink")


def test_tables_are_read_as_files_are():
    assert table("x1\tx2\ty\n2\t1\t1\n-3\t-1\t-1\n")["points"] == [[2.0, 1.0], [-3.0, -1.0]]
    for text, words in (("", "empty"), ("2,1,1\n3,oops,-1", "line 2"), ("1,2,3\n4,5,6\n7,8,9", "label")):
        with pytest.raises(rf.DataError, match=words) as caught:
            table(text)
        assert "/tmp" not in str(caught.value)


def test_every_preset_opens():
    names = [one["name"] for one in presets()]
    assert len(set(names)) == len(names) > 45
    for name in names:
        state = preset_state(name)
        assert set(state) == set(DEFAULTS)
        assert problem_of(json.loads(json.dumps(state))).data.n == len(state["points"])
    with pytest.raises(rf.ProblemError, match="no preset"):
        preset_state("nothing")


def test_lectures_tell_what_is_so():
    found = lectures()
    assert [len(one["steps"]) for one in found] == [5, 5, 5, 5]
    told = 0
    for lecture in found:
        for step in lecture["steps"]:
            problem = problem_of(step["state"])
            applies = {one.claim: one.applies for one in check(problem)}
            for claims, wanted in ((step.get("claims", ()), True), (step.get("fails", ()), False)):
                for claim in claims:
                    assert applies[claim] is wanted, (step["name"], claim)
                    told += 1
    assert told > 15


# -- what is asked ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def desk():
    return Desk()


def test_a_run_is_followed_and_then_explained(desk):
    quick = desk.answer("flow", {"state": SMALL, "seconds": 60.0})
    assert quick["complete"]
    assert quick["movie"]["stages"][0][0] == "neurons turn"
    assert quick["movie"]["times"][-1] == "log t = 1e+06"
    assert [chart["levels"] for chart in quick["charts"][:3]] == [[], [], []]
    full = desk.answer("theory", {"state": SMALL, "seconds": 60.0})
    # The longer run is the one that is shown, now with where it goes.
    assert full["movie"]["times"] == quick["movie"]["times"]
    assert {ray[0] for ray in full["movie"]["rays"]} > {ray[0] for ray in quick["movie"]["rays"]}
    found = rf.explain(problem_of(SMALL), progress=False)
    assert full["words"]["headline"] == list(found.headline)
    assert len(full["claims"]) == len(found.findings)
    json.dumps(full, allow_nan=False)


def test_out_of_time_there_is_what_there_is(desk):
    state = {**SMALL, "width": 20, "seed": 5}
    quick = desk.answer("flow", {"state": state, "seconds": 1e-3})
    assert not quick["complete"]
    assert "time" in quick["trouble"]
    full = desk.answer("theory", {"state": state, "seconds": 1e-3})
    assert "No limit was confirmed" in full["words"]["headline"][0]


def test_files_are_written(desk, tmp_path):
    files = {
        form: desk.answer("export", {"state": SMALL, "format": form, "seconds": 60.0})
        for form in ("html", "json", "python", "csv")
    }
    assert files["python"]["text"] == snippet(SMALL) + "\n"
    (tmp_path / "points.csv").write_text(files["csv"]["text"])
    assert rf.load(tmp_path / "points.csv") == problem_of(SMALL).data
    document = json.loads(files["json"]["text"])
    assert problem_of(document["state"]).fingerprint() == document["problem"]["fingerprint"]
    assert "</html>" in files["html"]["text"]
    evil = desk.answer("export", {"state": {**SMALL, "name": "../../etc/passwd\n"}, "format": "csv", "seconds": 1.0})
    assert "/" not in evil["name"]
    with pytest.raises(rf.ProblemError, match="cannot"):
        desk.answer("fly", {})
