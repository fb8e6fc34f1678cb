"""The processes of the studio: they answer, a newer question ends an older one, a dead one is replaced."""

import asyncio
import json
import os
import signal

import pytest

import reluflow as rf
from reluflow.studio import worker
from reluflow.studio.worker import Busy, Engine, Failed, Superseded

STATE = {"points": [[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0]], "labels": [1, 1, -1], "width": 4, "log_scale": -7.0}
#: Takes minutes if nobody ends it.
ENDLESS = {
    "points": rf.make("randlab", n=150, d=20, seed=1).X.tolist(),
    "labels": rf.make("randlab", n=150, d=20, seed=1).y.astype(int).tolist(),
    "width": 200,
    "log_scale": 0.0,
}


@pytest.fixture(scope="module")
def engine():
    """One lane, whose process all tests share: starting one takes seconds."""
    found = Engine(lanes=1)
    found.start()
    yield found
    found.stop()


def ask(engine, kind="flow", state=STATE, seconds=10.0, session="me", **more):
    return engine.ask(session, kind, {"state": state, "seconds": seconds, **more})


def test_it_answers_and_errors_are_documents(engine):
    good = asyncio.run(ask(engine))
    assert good.good
    assert json.loads(good.text)["complete"]
    bad = asyncio.run(ask(engine, state={**STATE, "labels": [1]}))
    assert not bad.good
    assert json.loads(bad.text)["kind"] == "ProblemError"


def test_a_newer_question_ends_an_older_one(engine):
    async def both():
        old = asyncio.create_task(ask(engine, "theory", ENDLESS, 60.0))
        waiting = asyncio.create_task(ask(engine, "theory", ENDLESS, 60.0, session="other"))
        await asyncio.sleep(1.0)
        file = asyncio.create_task(ask(engine, "export", session="me", format="csv"))
        between = asyncio.create_task(ask(engine))
        await asyncio.sleep(0.01)
        newest = asyncio.create_task(ask(engine))
        await asyncio.sleep(0.01)
        other = asyncio.create_task(ask(engine, session="other"))
        return await asyncio.gather(old, waiting, file, between, newest, other, return_exceptions=True)

    old, waiting, file, between, newest, other = asyncio.run(both())
    for one in (old, waiting, between):  # one ran, the others waited, or just began
        assert isinstance(one, Superseded) or json.loads(one.text)["kind"] == "Superseded"
    assert not isinstance(old, Superseded)
    assert file.good
    assert newest.good
    assert other.good
    assert not engine.lanes[0].newest
    assert engine.lanes[0].running is None


def test_nobody_waits_in_a_line_without_end(engine, monkeypatch):
    monkeypatch.setattr(worker, "_LONGEST_LINE", 0)
    with pytest.raises(Busy, match="wait already"):
        asyncio.run(ask(engine))


def test_a_process_that_dies_or_hangs_is_replaced(engine, monkeypatch):
    lane = engine.lanes[0]
    first = lane.process.pid

    async def killed():
        task = asyncio.create_task(ask(engine, "theory", ENDLESS, 60.0))
        await asyncio.sleep(0.5)
        os.kill(first, signal.SIGKILL)
        return await asyncio.gather(task, return_exceptions=True)

    ((error,)) = asyncio.run(killed())
    assert isinstance(error, Failed)
    assert "unexpectedly" in str(error)
    assert asyncio.run(ask(engine)).good
    assert lane.process.pid != first
    # One that does not answer in time is ended.
    monkeypatch.setattr(worker, "_GRACE", -59.5)
    with pytest.raises(Failed, match="much longer"):
        asyncio.run(ask(engine, "theory", ENDLESS, 60.0))
    assert lane.process is None
