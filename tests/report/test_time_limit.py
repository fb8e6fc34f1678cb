"""Long work keeps its time limit, and what was found by then. The clock here is a counter: a look is a second."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.problem import Stopped, check_time
from reluflow.problem import time as clock


@pytest.fixture
def counter(monkeypatch):
    """A clock that goes one second further whenever somebody looks at it."""

    class Counter:
        now = 0.0

        def monotonic(self):
            self.now += 1.0
            return self.now

    found = Counter()
    monkeypatch.setattr(clock, "time", found)
    return found


def problem(width=4, **options):
    return rf.Problem(rf.example("EX1").data, rf.initialize(2, width, seed=0, **options))


def test_the_flow_so_far_is_kept(counter):
    ended = {}
    for looks in range(6, 16):  # the clock is looked at a few times in each phase
        start = counter.now
        with pytest.raises(rf.OutOfTime, match="the time limit ended while") as caught:
            rf.flow(problem(), {"log_time": 1e6}, time_limit=looks, progress=False)
        assert counter.now - start < looks + 10  # whoever is out of time stops at once
        ended[tuple(phase.name for phase in caught.value.partial.phases)] = caught.value
    error = ended["early", "coupled"]
    assert "while following the flow, at log t = " in str(error)
    run = error.partial
    assert np.isfinite(run.log_time[-1])
    whole = rf.flow(problem(), {"log_time": float(run.log_time[-1])}, progress=False)
    np.testing.assert_allclose(whole.final.directions, run.final.directions, atol=1e-6)


def test_no_stage_of_a_flow_runs_without_looking_at_the_clock(counter):
    # The limit ends it wherever it falls: in the early phase, while steps are tried, in the search of the limit.
    seen = set()
    for seconds in (1, 3, *range(6, 16), 200, 300):
        start = counter.now
        with pytest.raises(rf.OutOfTime) as caught:
            rf.limit(problem(), time_limit=seconds, progress=False)
        assert isinstance(caught.value.partial, rf.Trajectory)
        assert counter.now - start < seconds + 10
        seen.add(len(caught.value.partial.phases))
    assert {0, 2} <= seen


def test_neurons_that_were_not_followed_are_unfinished(counter):
    with pytest.raises(rf.OutOfTime, match="2 of 6 neurons") as caught:
        rf.align(problem(6), time_limit=3)
    early, whole = caught.value.partial, rf.align(problem(6))
    assert early.fates[:2] == whole.fates[:2]
    assert set(early.fates[2:]) == {"unfinished"}


def test_training_goes_on_from_its_checkpoint(counter, tmp_path):
    arguments = {"step": 0.1, "steps": 400, "record": 5, "progress": False}
    with pytest.raises(rf.OutOfTime, match="goes on from the checkpoint") as caught:
        rf.descend(problem(), **arguments, time_limit=100, checkpoint=tmp_path / "run.npz")
    run = caught.value.partial
    assert run.settings["stopped"] == "time"
    assert 50 < run.settings["iteration"][-1] < 400
    resumed = rf.descend(problem(), **arguments, checkpoint=tmp_path / "run.npz")
    whole = rf.descend(problem(), **arguments)
    assert resumed.final.W.tobytes() == whole.final.W.tobytes()


@pytest.mark.parametrize("ask", [rf.check, rf.predict])
def test_theorems_that_were_asked_are_kept(counter, ask):
    whole = ask(problem())
    with pytest.raises(rf.OutOfTime) as caught:
        ask(problem(), time_limit=12)
    part = caught.value.partial
    assert 0 < len(part) < len(whole)
    assert [item.claim for item in part] == [item.claim for item in whole[: len(part)]]


def test_a_claim_does_not_hide_that_time_is_over(monkeypatch):
    # A claim that cannot be decided is noted as that; one that was stopped is not.
    from reluflow.theory import Facts, claims

    def slow(self, facts):
        with rf.time_limit(1e-9):
            check_time("thinking")

    monkeypatch.setattr(type(claims()[3]), "conditions", slow)
    with pytest.raises(rf.OutOfTime, match="while thinking") as caught:
        rf.check(Facts(problem()))
    assert len(caught.value.partial) == 3


def test_scales_that_were_not_reached_say_so(counter):
    found = rf.ladder(problem(6, signs=[1, -1] * 3), [1e-2, 1e-4], time_limit=900)
    assert np.isnan(found.margins[1])
    assert "time limit" in found.notes[1]


@pytest.mark.parametrize("seconds", [1e-9, 30, 400])
def test_explain_returns_what_there_is(counter, seconds):
    found = rf.explain(problem(), time_limit=seconds, progress=False)
    assert found.limit is None
    assert found.exit_code == 3
    assert any("time limit ended" in text for text in found.troubles)
    assert found.headline[0].startswith("No limit was confirmed")
    assert "time limit ended" in found.headline[1]
    assert "every prediction" not in found.sentence.partition("as far as the flow was followed, ")[0]
    if seconds >= 400:
        assert len(found.findings) == len(rf.check(problem()))
        assert found.trajectory is not None
        assert found.observations


def test_the_optimum_is_not_worth_the_limit(monkeypatch):
    def late(*_, **__):
        raise rf.OutOfTime("the time limit ended while bracketing; a larger one goes on.")

    monkeypatch.setattr("reluflow.margins.global_max_margin", late)
    small = problem(6, signs=[1, -1] * 3)
    end = rf.limit(small, progress=False)
    assert end.kind == "margin"
    assert (end.evidence[-1].name, end.evidence[-1].holds) == ("optimum", None)
    with pytest.raises(rf.OutOfTime) as caught:
        rf.limit(small, optimum=True, progress=False)
    assert caught.value.partial.margin == end.margin


def test_whoever_is_stopped_is_undecided_too():
    assert issubclass(rf.OutOfTime, Stopped)
    assert issubclass(rf.Interrupted, Stopped)
    assert issubclass(Stopped, rf.Undecided)


def test_reproduction_keeps_what_was_done(monkeypatch, tmp_path):
    from reluflow.experiments.core import runner

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_run_jobs", pressed)
    with pytest.raises(rf.Interrupted, match="0 of 1 experiments") as caught:
        runner.run_all(["SBG-F4"], tmp_path, quick=True)
    assert caught.value.partial == []
    assert (tmp_path / "index.html").exists()


def test_threads_heed_the_limit_and_ctrl_c(monkeypatch):
    from reluflow.dynamics.early import run

    monkeypatch.setattr("numba.get_num_threads", lambda: 2)
    monkeypatch.setattr(run, "_THREADS_FROM", 0)
    whole = rf.align(problem(6))
    with pytest.raises(rf.OutOfTime, match="of 6 neurons"):
        rf.align(problem(6), time_limit=1e-9)

    def pressed(jobs, timeout):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "wait", pressed)
    with pytest.raises(rf.Interrupted, match="of 6 neurons") as caught:
        rf.align(problem(6))
    done = [j for j in range(6) if caught.value.partial.fates[j] != "unfinished"]
    assert done[0] == 0  # the first is followed before the threads begin
    assert all(caught.value.partial.fates[j] == whole.fates[j] for j in done)
