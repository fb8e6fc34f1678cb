"""Running: the rows of a plain loop, bit by bit, whoever does the work; a row whatever becomes of a problem."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from helpers import sweeps
from helpers.sweeps import lines, loop, rows, small
from reluflow import Interrupted, ProblemError, Sweep, open_sweep
from reluflow.sweep import ledger, measures, run_sweep, store, work


def test_here(tmp_path):
    found = small().run(tmp_path / "out")
    assert rows(found) == loop(small())
    assert sorted(lines(tmp_path / "out")) == list(range(36))
    status = found.status()
    assert status.complete
    assert status.states["done"] == status.total == 36
    assert status.notes == ()


def test_processes(tmp_path):
    found = small("slow").run(tmp_path, jobs=2)
    assert rows(found, "slow") == loop(small())
    assert sorted(lines(tmp_path)) == list(range(36))
    assert len(list((tmp_path / "rows").iterdir())) == 2


def test_shards_by_hand(tmp_path):
    for part in (2, 3, 1):
        before = len(lines(tmp_path)) if tmp_path.exists() and (tmp_path / "rows").exists() else 0
        found = small().run(tmp_path, shard=(part, 3))
        assert len(lines(tmp_path)) == before + 12
    assert rows(found) == loop(small())
    for wrong in ((0, 3), (4, 3), "x", (1,)):
        with pytest.raises(ProblemError, match="K/N"):
            small().run(tmp_path, shard=wrong)


def test_the_verbs_themselves(tmp_path, monkeypatch):
    """Every measure of the package, held against the verb called by hand."""
    import reluflow as rf

    monkeypatch.setattr(measures.Measure, "version", lambda self: "1")  # seconds, and tested elsewhere
    until = {"log_time": 5.0}
    names = ["check", "predict", "align", "limit", "global"]
    taken = {
        **{name: {} for name in names},
        "flow": {"until": until, "keep": True},
        "monitor": {"until": until, "claim": "ML-POSTA"},
        "adam": {"measure": "descend", "method": "adam", "steps": 5},
    }
    sweep = Sweep(data={"source": "EX1"}, network={"width": 2, "seed": 1}, measures=taken)
    table = sweep.run(tmp_path).table()
    for k in range(len(sweep)):
        problem = sweep.problem_at(k)
        end, run = rf.limit(problem), rf.flow(problem, until)
        step = rf.descend(problem, "adam", steps=5, progress=False)
        assert table["limit.margin"][k] == end.margin
        assert table["limit.kind"][k] == end.kind
        assert table["limit.linear"][k] == rf.linearity(end.network).linear
        assert table["limit.neurons"][k] == len(end.living)
        assert table["check.apply"][k] == sum(one.applies is True for one in rf.check(problem))
        assert table["predict.count"][k] == len(rf.predict(problem))
        assert table["align.aligned"][k] == rf.align(problem).fates.count("aligned")
        assert table["global.lower"][k] == rf.global_max_margin(problem.data, 0.0).lower
        assert table["flow.log_loss"][k] == run.log_loss[-1]
        assert table["monitor.seen"][k] == sum(o.consistent is True for o in rf.monitor(problem, run, claim="ML-POSTA"))
        assert table["adam.log_loss"][k] == step.log_loss[-1]
        assert table["adam.iterations"][k] == 5
        np.testing.assert_array_equal(open_sweep(tmp_path).arrays_at(k)["flow.times"], run.log_time)
    assert set(table["state"]) == {"done"}


def test_nothing_is_computed_twice(tmp_path, monkeypatch):
    small().run(tmp_path, shard=(1, 2))
    taken = []
    monkeypatch.setattr(measures.Measure, "take", lambda self, facts: taken.append(1) or {"sum": 0.0})
    small().run(tmp_path)
    assert len(taken) == 18
    small().run(tmp_path)
    assert len(taken) == 18


def test_other_code_is_computed_again_measure_by_measure(tmp_path, monkeypatch):
    sweep = small(measures=["helpers.sweeps:cheap", "helpers.sweeps:arrays"])
    sweep.run(tmp_path)
    plain = measures.Measure.version

    def version(self):
        return "other" if self.label == "arrays" else plain(self)

    def take(self, facts):
        assert self.label == "arrays"
        return {"one": -1.0}

    monkeypatch.setattr(measures.Measure, "version", version)
    monkeypatch.setattr(measures.Measure, "take", take)
    found = sweep.run(tmp_path)
    table = found.table()
    assert set(table["arrays.one"]) == {-1.0}
    assert table["cheap.sum"].tolist() == [one["sum"] for one in loop(small()).values()]
    assert found.arrays_at(3) == {}
    assert found.status().complete


def test_the_version_of_a_function_of_the_user(tmp_path):
    numbers = iter(range(9))

    def version(low):
        package = tmp_path / f"mine_of_sweeps{next(numbers)}"  # a new one each time: a module is imported once
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "low.py").write_text(low)
        (package / "top.py").write_text("from .low import K\n\n\ndef take(problem):\n    '''Doc.'''\n    return K\n")
        return measures.Measure("m", f"{package.name}.top:take", {}, str(tmp_path)).version()

    first = version("K = 3\nUNUSED = 4\n")
    assert version("# more\nK = 3\nUNUSED = 5\n") == first
    assert version("K = 4\nUNUSED = 4\n") != first
    alone = tmp_path / "alone_of_sweeps.py"
    alone.write_text("def take(problem):\n    return 1\n")
    one = measures.Measure("m", "alone_of_sweeps:take", {}, str(tmp_path))
    before = one.version()
    alone.write_text("def take(problem):\n    return 2\n")
    assert one.version() != before


def test_versions_of_verbs_are_found_once(tmp_path, monkeypatch):
    sweep = Sweep(data={"source": "EX1"}, measures=["align"])
    monkeypatch.setattr(measures.Measure, "version", lambda self: "old")
    first = store.versions(tmp_path, sweep)
    assert first == {"align": "old"}
    monkeypatch.setattr(measures.Measure, "version", lambda self: pytest.fail("it is kept"))
    assert store.versions(tmp_path, sweep) == first
    monkeypatch.setattr(store, "text_of", lambda root: "other text")
    monkeypatch.setattr(measures.Measure, "version", lambda self: "new")
    assert store.versions(tmp_path, sweep) == {"align": "new"}


def test_whatever_becomes_of_a_problem_is_a_row(tmp_path):
    sweep = small(
        "moody", network={"width": {"range": [1, 7]}}, data={"source": "EX1"}, limits={"time": 0.5, "memory": 1000}
    )
    found = sweep.run(tmp_path)
    table = found.table()
    assert table["network.width"].tolist() == [1, 2, 3, 4, 5, 6]
    states = ["done", "undecided", "failed", "failed", "out of time", "out of memory"]
    assert table["state"].tolist() == states
    assert found.status().states == {"done": 1, "undecided": 1, "out of time": 1, "out of memory": 1, "failed": 2}
    assert table["moody.value"][0] == 1
    assert np.isnan(table["moody.value"][1:]).all()
    assert table["moody.guess"][1] == 0.5  # what there was is kept
    messages = table["message"].tolist()
    assert messages[1] == "cannot tell."
    assert "ZeroDivisionError: a bug (sweeps.py, line" in messages[2]
    assert "list of type list" in messages[3]
    assert found.failures() == dict.fromkeys(messages[1:], 1)


def test_only_what_is_not_done_is_tried_again(tmp_path, monkeypatch):
    sweep = small("moody", network={"width": {"range": [1, 5]}}, data={"source": "EX1"})
    sweep.run(tmp_path)
    taken = []
    monkeypatch.setattr(measures.Measure, "take", lambda self, facts: taken.append(facts.problem.net.p) or {"value": 7})
    assert sweep.run(tmp_path).status().states["failed"] == 2
    assert taken == []
    found = sweep.run(tmp_path, retry=True)
    assert sorted(taken) == [2, 3, 4]
    assert found.table()["moody.value"].tolist() == [1, 7, 7, 7]
    assert found.status().states["done"] == 4


def test_a_problem_that_cannot_be_made_is_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(Sweep, "check", lambda self: None)  # as one of very many, which are not all tried
    sweep = small(network={"scheme": "two-sign", "width": [2, 3, 4]}, data={"source": "EX1"})
    table = sweep.run(tmp_path).table()
    assert table["state"].tolist() == ["done", "failed", "done"]
    assert "must be even" in table["message"][1]


def test_a_deadly_problem_is_given_up_and_a_deaf_one_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(work.Limits, "hard", property(lambda self: 1.0))  # of the driver
    taken = {"deadly": {"measure": "helpers.sweeps:deadly"}}
    sweep = small(network={"width": {"range": [1, 6]}}, data={"source": "EX1"}, measures=taken)
    found = sweep.run(tmp_path / "deadly", jobs=2)
    table = found.table()
    assert table["state"].tolist() == ["done", "done", "failed", "done", "done"]
    assert "ended 3 times" in table["message"][2]
    taken = {"deaf": {"measure": "helpers.sweeps:deaf"}}
    sweep = small(network={"width": [2, 3, 4]}, data={"source": "EX1"}, measures=taken)
    table = sweep.run(tmp_path / "deaf", jobs=2, time_limit=0.2).table()
    assert table["state"].tolist() == ["done", "out of time", "done"]


def test_ctrl_c_keeps_what_there_is(tmp_path, monkeypatch):
    seen = []

    def take(self, facts):
        seen.append(1)
        if len(seen) == 5:
            raise KeyboardInterrupt
        return sweeps.cheap(facts.problem)

    monkeypatch.setattr(measures.Measure, "take", take)
    with pytest.raises(Interrupted, match="4 of 36 rows are kept") as stop:
        small().run(tmp_path)
    assert len(stop.value.partial.table()["index"]) == 4
    book = ledger.Ledger(tmp_path, small().id, 36, ["cheap"])
    book.refresh()
    assert all(book.deaths(index) == 0 for index in range(36))  # it was nobody's fault
    monkeypatch.undo()
    assert rows(small().run(tmp_path)) == loop(small())


def test_several_drivers_at_once(tmp_path):
    """Threads stand for drivers: each has its own files, and sees those of the others."""
    sweep = small("slow")
    crowd = [threading.Thread(target=sweep.run, args=(tmp_path,)) for _ in range(3)]
    for one in crowd:
        one.start()
        time.sleep(0.05)
    for one in crowd:
        one.join()
    assert rows(open_sweep(tmp_path), "slow") == loop(small())
    assert len(lines(tmp_path)) < 3 * 36  # they left work to each other


def test_wrong_arguments(tmp_path):
    for options in ({"jobs": 0}, {"jobs": 1.5}, {"time_limit": -1}, {"memory_limit": 0}, {"shard": (5, 2)}):
        with pytest.raises(ProblemError):
            small().run(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ProblemError, match="must be a Sweep, not str"):
        run_sweep("spec.toml", tmp_path)


def test_arrays_go_to_a_file_of_the_chunk(tmp_path):
    sweep = small("arrays")
    found = sweep.run(tmp_path)
    for index in (0, 7, 35):
        np.testing.assert_array_equal(found.arrays_at(index)["arrays.W"], sweep.problem_at(index).net.W)
    assert "arrays.W" not in found.table()
    files = list((tmp_path / "arrays").iterdir())
    assert 1 <= len(files) < 36
    for file in files:
        file.write_bytes(file.read_bytes()[:-1] + b"!")
    damaged = 0
    for index in range(36):
        try:
            open_sweep(tmp_path).arrays_at(index)
        except ProblemError as exc:
            damaged += "is damaged" in str(exc)
    assert damaged == len(files)


def test_one_thread_a_worker(tmp_path, monkeypatch):
    from threadpoolctl import threadpool_info

    seen = set()
    look = lambda self, facts: seen.update(p["num_threads"] for p in threadpool_info()) or {"sum": 1.0}  # noqa: E731
    monkeypatch.setattr(measures.Measure, "take", look)
    small().run(tmp_path)
    assert seen == {1}


def test_rates():
    book = ledger.Ledger(Path("nowhere"), "id", 10, ["m"])
    assert book.status().rate == 0.0
    assert book.status().remaining == np.inf
    tail = store.Tail(Path("nowhere/rows/x.rows"), {"spec": "id", "codes": {}, "at": 1000.0})
    book.tails[tail.path] = tail
    for index in range(5):
        book._take(tail, {"i": index, "s": {"m": "done"}, "at": 1000.0 + 2 * (index + 1)})
    assert book._rate() == pytest.approx(0.5)
    assert book.counts()["done"] == 5
