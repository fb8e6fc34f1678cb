"""Explanations: the four lists of the outcome, and their text, document and page."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import reluflow as rf
from reluflow.report.page.curves import _cosines
from reluflow.report.page.plane import movie
from reluflow.theory import Facts
from reluflow.theory.compare import Sight, sights


def explained(name="EX1", width=6, slope=0.0, scheme="balanced", **problem):
    data = rf.dataset(name)
    net = rf.initialize(data.d, width, scheme, seed=0, slope=slope)
    return rf.explain(rf.Problem(data, net, **problem))


@pytest.fixture(scope="module")
def ex1():
    return explained()


@pytest.fixture(scope="module")
def undecided():
    """One step is not enough for anything."""
    data = rf.dataset("EX1")
    return rf.explain(rf.Problem(data, rf.initialize(2, 4, seed=1)), max_steps=1)


# -- the outcome -----------------------------------------------------------------------------------------


def test_every_promise_on_orthogonally_separable_data_is_kept(ex1):
    answers = rf.example("EX1").answers
    assert ex1.limit.margin == pytest.approx(answers["corollary"], abs=1e-10)
    seen = {v.claim for v in ex1.summary.seen}
    assert {"PL-T1'", "PL-T1", "ML-POST", "LL-TH.2", "LL-T3.1"} <= seen
    assert ex1.summary.missed == ()
    assert ex1.exit_code == 0
    # The margin of the limit, found by another program than the prediction, is compared too.
    compared = [o for o in ex1.observations if o.where == "limit"]
    assert {o.claim for o in compared} == {p.claim for p in ex1.predictions if p.function and p.margin is not None}
    assert all(o.consistent for o in compared)


def test_the_early_phase_is_solved_once_and_every_snapshot_made_once(monkeypatch, tmp_path):
    from reluflow.dynamics.early import alignment

    solved, made = [], []
    run, init = alignment.run, rf.Network.__init__
    monkeypatch.setattr(alignment, "run", lambda *args: (solved.append(1), run(*args))[1])
    monkeypatch.setattr(rf.Network, "__init__", lambda self, *args, **kw: (made.append(1), init(self, *args, **kw))[1])
    found = rf.explain("ML-F6")
    found.html(tmp_path / "page.html")
    assert found.limit.trajectory.early is not None
    # One for the problem. Neurons that vanish are followed beyond the limit by an early phase of their own.
    assert len(solved) <= 2
    # One a record; beside them those of the early phase, of predictions, and of what is drawn in between.
    assert len(made) <= len(found.trajectory) + 120


def test_what_theory_covers_is_not_listed_as_beyond_it(ex1):
    assert any(sight.covered_by for sight in ex1.sights)
    assert ex1.summary.uncovered == ()


def test_a_limit_without_a_theorem_is_listed():
    found = explained("D7", width=10, slope=0.2)  # one sign wins, with less than half of the largest margin
    texts = " ".join(v.text for v in found.summary.uncovered)
    assert not any(p.function for p in found.predictions)
    assert "The direction converges" in texts
    part = 100 * found.limit.margin / found.limit.optimum.lower
    assert f"not optimal: it has {part:.4g} %" in texts
    assert found.exit_code == 0


def test_a_stall_is_said():
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1, 1])
    found = rf.explain(rf.Problem(data, rf.Network([[0.1, 0.0]], [0.1])))
    assert found.limit.kind == "stall"
    assert any("felt by no neuron" in sight.text for sight in found.sights)
    assert "felt by no neuron" in found.text()


def doctored(ex1, claim, needs=()):
    one = next(o for o in ex1.observations if o.claim == claim)
    wrong = replace(one, consistent=False, measured=3.0, predicted=2.0, text="three, not two.", needs=needs)
    return replace(ex1, observations=(*ex1.observations, wrong))


def test_a_contradicted_claim_is_a_contradiction(ex1):
    found = doctored(ex1, "ML-L14")
    assert found.exit_code == 4
    assert [v.claim for v in found.summary.contradicted] == ["ML-L14"]
    assert "ML-L14" not in {v.claim for v in found.summary.seen}  # though other observations of it are consistent
    assert found.summary.contradicted[0].discrepancy == pytest.approx(0.5)
    assert "ML-L14 applied, and the run contradicts it" in found.text()
    assert found.to_dict()["summary"]["contradicted"] == 1


def test_an_inconsistency_that_rests_on_an_assumption_refutes_nothing(ex1):
    found = doctored(ex1, "PL-T1", ("start small enough",))
    assert found.exit_code == 0
    assert [v.claim for v in found.summary.missed] == ["PL-T1"]
    assert found.summary.contradicted == ()
    # The words may be broken into lines anywhere.
    assert "inconsistent, but rests on: start small enough" in " ".join(found.text().split())


def test_the_least_broken_promise_comes_first(ex1):
    worse = doctored(ex1, "ML-L14")
    near = replace(worse.observations[-1], measured=2.02, text="nearly two.")
    found = replace(worse, observations=(*worse.observations, near))
    (verdict,) = found.summary.missed
    assert verdict.discrepancy == pytest.approx(0.01)
    assert verdict.text.startswith("nearly two.")


def test_undecided_stays_undecided(ex1):
    one = replace(ex1.observations[0], consistent=None, text="cannot be told.")
    found = replace(ex1, observations=(one,))
    assert found.exit_code == 0
    assert [v.text for v in found.summary.undecided if v.claim == one.claim] == ["cannot be told."]
    assert found.summary.seen == ()
    assert "no prediction could be compared" in found.sentence


def test_without_a_limit_the_run_so_far_is_used(undecided):
    assert undecided.limit is None
    assert undecided.trajectory is not None
    assert len(undecided.troubles) == 1
    assert any(v.text == undecided.troubles[0] for v in undecided.summary.undecided)
    assert "No limit was confirmed" in undecided.text()
    assert undecided.observations  # what there is of the run was compared
    assert undecided.exit_code == 3
    assert "as far as the flow was followed, " in undecided.sentence


def test_without_any_run_theory_still_speaks(monkeypatch, tmp_path):
    from reluflow.report import explanation as module

    def lost(*arguments, **options):
        raise rf.Undecided("not even the start.")

    monkeypatch.setattr(module, "limit", lost)
    found = explained(width=3)
    assert found.trajectory is None
    assert found.predictions
    assert found.observations == ()
    assert "It could not be followed" in found.text()
    assert found.to_dict()["flow"] is None
    found.html(tmp_path / "page.html")
    assert "not even the start." in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_happens_on_the_way_is_seen(ex1):
    run = ex1.trajectory
    (turns,) = (s for s in ex1.sights if "of activation" in s.text)
    assert turns.text.startswith(f"{run.events.size} changes of activation")
    assert set(turns.covered_by) == {p.claim for p in ex1.predictions if p.groups is not None}
    facts = Facts(ex1.problem)
    # A neuron that no sample activates; one that slides, and a change of sides, after the data are fitted.
    data = rf.Dataset([[1.0, 0.0], [2.0, 0.5]], [1, 1])
    lost = rf.explain(rf.Problem(data, rf.Network([[-0.1, 0.0], [0.1, 0.1]], [0.1, 0.1])))
    assert any(s.text == "1 of 2 neurons is dead at the end: no sample activates it." for s in lost.sights)
    late = np.zeros(2, dtype=run.events.dtype)
    late["log_time"], late["kind"] = run.log_time[-1], ("slide", "activate")
    texts = [s.text for s in sights(facts, replace(run, events=late), None, ())]
    assert texts[0].startswith("Neurons still change sides after every point is classified: 2 times")
    assert "Sliding, for a while or for ever: 1 neuron on 1 hyperplane." in texts


def test_a_sight_nobody_covers_is_uncovered(ex1):
    found = replace(ex1, sights=(Sight("a"), Sight("b", ("PL-T1",))))
    assert [v.text for v in found.summary.uncovered] == ["a"]


def test_a_problem_is_needed():
    with pytest.raises(rf.ProblemError, match="needs a Problem, not int"):
        rf.explain(1)


# -- text, document, page --------------------------------------------------------------------------------


def test_the_text_is_short_and_has_its_parts(ex1):
    text = ex1.text()
    rows = text.splitlines()
    assert len(rows) < 70
    assert max(map(len, rows)) <= 100
    for word in ("Which theorems apply", "What they predict", "What the flow does", "Verdict", "undecided", "KKT"):
        assert word in text
    # A claim that does not apply comes with the condition that fails.
    assert re.search(r"no +SBG-T4\.1, .*second layer frozen fails", text)
    assert "\x1b[" not in text
    coloured = ex1.text(color=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text


def test_a_narrow_terminal_gets_narrow_lines(ex1):
    assert max(map(len, ex1.text(width=70).splitlines())) <= 70


def test_the_document_is_json(ex1, undecided):
    for found in (ex1, undecided):
        document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert {"problem", "findings", "predictions", "flow", "limit", "observations", "summary"} <= set(document)
        assert len(document["observations"]) == len(found.observations)
        assert set(document["summary"]) == {"seen", "missed", "uncovered", "undecided", "contradicted"}
    assert ex1.to_dict()["limit"]["margin"] == ex1.limit.margin
    assert undecided.to_dict()["limit"] is None


CASES = {
    "plane": {},
    "leaky, space": {"name": "D7", "slope": 0.2},
    "frozen": {"name": "D2", "slope": 0.25, "scheme": "two-sign", "train": "first"},
    "one class": {"name": "EX6", "width": 3},
    "exponential": {"name": "EX2", "loss": "exponential", "reduction": "sum"},
}


@pytest.mark.parametrize("case", CASES)
def test_pages_stand_alone(case, tmp_path):
    found = explained(**CASES[case])
    found.html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest""", page)
    assert len(page) < 6e6
    scene = scene_of(page)
    assert [one["claim"] for one in scene["claims"]] == [one.claim for one in found.findings]
    movie = scene["movie"]
    assert len(movie["neurons"]) == len(movie["places"]) == len(movie["moments"]) == len(movie["times"])
    assert np.abs(movie["neurons"]).max() <= 1001
    assert movie["moments"][0] == 0
    assert movie["moments"][-1] == 1
    assert (np.diff(movie["moments"]) >= 0).all()
    text = json.dumps(scene)
    assert "NaN" not in text
    assert '"nan"' not in text
    for word in ("Training loss", "Stable rank", "Singular values", "References", "Versions", "certificate"):
        assert word in text
    assert bool(scene["regions"]) == (found.problem.data.d == 2)


def scene_of(page):
    """Read what the page draws."""
    return json.loads(re.search(r"^const scene = (.*);$", page, re.M)[1].replace("<\\/", "</"))


def test_a_page_of_a_run_without_a_limit(undecided, tmp_path):
    undecided.html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "No limit was confirmed" in page


def test_names_cannot_break_the_page(ex1, tmp_path):
    data = ex1.problem.data
    name = "</script><b>&"
    evil = replace(ex1, problem=rf.Problem(rf.Dataset(data.X, data.y, name=name), ex1.problem.net), command=name)
    evil.html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert name not in page
    assert page.count("</script>") == 1
    assert scene_of(page)["words"]["name"] == name


def test_a_page_that_cannot_be_written(ex1, tmp_path):
    with pytest.raises(rf.ProblemError, match="cannot be written"):
        ex1.html(tmp_path / "no" / "page.html")


def test_the_movie_shows_where_theory_and_limit_point(ex1):
    rays = movie(ex1)["rays"]
    for kind, net in (
        ("limit", ex1.limit.network),
        ("predicted", next(p.network for p in ex1.predictions if p.network)),
    ):
        drawn = sorted(ray[1:] for ray in rays if ray[0] == kind)
        wanted = sorted([int(np.sign(a)), *u] for a, u in zip(net.a, net.directions, strict=True) if a)
        np.testing.assert_allclose(drawn, wanted, atol=1e-4)


def test_the_cosines_of_all_pairs_are_drawn(ex1, tmp_path):
    # Two neurons at 60 degrees, then the same direction: one bar each, at 0.5 and at 1.
    start, end = (rf.Network([[1.0, 0.0], v], [1.0, 1.0]) for v in ([0.5, 0.75**0.5 + 1e-3], [2.0, 0.0]))
    for pair, style in (([start, end], "before"), ([end, start], "after")):
        ((_, left, right, top, _),) = (bar for bar in _cosines(pair)["bars"] if bar[0] == style)
        assert left / 10000 == pytest.approx(0.74, abs=0.03)
        assert right - left == 10000 / 40
        assert top == pytest.approx(10000 / 1.06, abs=1)
    ex1.html(tmp_path / "page.html")
    ends = scene_of((tmp_path / "page.html").read_text(encoding="utf-8"))["ends"]
    assert "Cosines between pairs of neurons" in [chart["title"] for chart in ends]


def test_what_is_drawn_of_theory_is_where_it_is(ex1):
    scene, data = movie(ex1), ex1.problem.data
    sums = {sign: (x, y) for kind, sign, x, y in scene["rays"] if kind == "sum"}
    for sign in (1, -1):
        whole = data.X[data.y == sign].sum(axis=0)
        np.testing.assert_allclose(sums[sign], whole / np.linalg.norm(whole), atol=1e-4)
    for kind, start, end in scene["cones"]:
        turn = np.linspace(start, end, 7)[1:-1]
        seen = np.stack([np.cos(turn), np.sin(turn)], axis=1) @ data.X.T > 0
        wanted = {"plus": data.y > 0, "minus": data.y < 0, "dead": np.zeros(data.n, bool)}[kind]
        assert (seen == wanted).all(), kind
    assert {kind for kind, _, _ in scene["cones"]} == {"plus", "minus"}


def test_neurons_are_called_dead_when_no_point_moves_them():
    data = rf.Dataset([[1.0, 0.0], [2.0, 0.5]], [1, 1])
    found = rf.explain(rf.Problem(data, rf.Network([[-0.1, 0.0], [0.1, 0.1]], [0.1, 0.1])))
    assert movie(found)["dead"] == [0, -1]
