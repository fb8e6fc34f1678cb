"""Around the steps: records, stopping, callbacks, checkpoints, kills, Ctrl-C, mistakes."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import reluflow as rf
from reluflow.dynamics.descend.keep import geometric

PROGRAM = """
import os, signal, sys
import numpy as np
import reluflow as rf
rng = np.random.default_rng(0)
data = rf.Dataset(rng.standard_normal((23, 5)), np.where(rng.random(23) < 0.5, 1, -1))
start = rf.initialize(5, width=9, scheme="gaussian", log_scale=-16.0, slope=0.1)
def go(method, checkpoint=None, kill=0):
    def callback(iteration, net):
        if kill and iteration >= kill:
            os.kill(os.getpid(), signal.SIGKILL)
    return rf.descend(
        rf.Problem(data, start), method.split("-")[0], step=0.05, steps=400, record=30, callback=callback,
        batch=4 if method == "sgd" else None, checkpoint=checkpoint, checkpoint_minutes=1e-5,
        fast_forward=method == "gd-forward", dtype="float32" if method == "sgd" else "float64",
    )
if __name__ == "__main__":
    go(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


def same(one, other):
    for name in ("log_time", "log_loss", "directions", "log_norms", "log_outs", "signs"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.settings == other.settings
    assert one.phases == other.phases


@pytest.mark.parametrize("method", ["gd", "gd-forward", "sgd", "adam"])
def test_a_killed_run_goes_on_to_the_identical_trajectory(tmp_path, method):
    part = tmp_path / "run.part.npz"
    for kill in (100, 250) if method == "gd" else (150,):
        command = [sys.executable, "-c", PROGRAM, method, str(part), str(kill)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert part.exists()
    program = {}
    exec(PROGRAM.partition("if __name__")[0], program)
    same(program["go"](method), program["go"](method, part))


def problem(**options):
    rng = np.random.default_rng(0)
    data = rf.Dataset(rng.standard_normal((12, 3)), np.where(rng.random(12) < 0.5, 1, -1))
    return rf.Problem(data, rf.initialize(3, width=5, scale=0.1, slope=0.1), **options)


def test_a_finished_checkpoint_is_the_result(tmp_path):
    file = tmp_path / "run.npz"
    first = rf.descend(problem(), step=0.1, steps=50, checkpoint=file)
    stamp = file.stat().st_mtime_ns
    calls = []
    again = rf.descend(problem(), step=0.1, steps=50, checkpoint=file, callback=lambda *x: calls.append(x))
    same(first, again)
    assert not calls  # nothing was computed
    assert file.stat().st_mtime_ns >= stamp
    for change, words in (
        ({"step": 0.2}, "step = 0.1 there, 0.2 here"),
        ({"steps": 60}, "steps = 50 there, 60 here"),
        ({"dtype": "float32"}, "dtype = 'float64' there"),
    ):
        with pytest.raises(rf.ProblemError, match=words):
            rf.descend(problem(), **{"step": 0.1, "steps": 50, "checkpoint": file, **change})
    with pytest.raises(rf.ProblemError, match="the problem differs"):
        rf.descend(problem(loss="exponential"), step=0.1, steps=50, checkpoint=file)


def test_checkpoints_that_cannot_be(tmp_path):
    with pytest.raises(rf.ProblemError, match="cannot be written"):
        rf.descend(problem(), step=0.1, steps=3, checkpoint=tmp_path / "absent" / "run.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(rf.ProblemError, match="cannot be read as NPZ"):
        rf.descend(problem(), step=0.1, steps=3, checkpoint=tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", x=np.ones(2))
    with pytest.raises(rf.ProblemError, match="stamp, settings"):
        rf.descend(problem(), step=0.1, steps=3, checkpoint=tmp_path / "other.npz")


# -- Ctrl-C ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forward", [False, True])
def test_interrupted_runs_return_what_there_is_and_can_go_on(tmp_path, forward):
    asked = []

    def stop(iteration, net):
        if iteration >= 100 and not asked:
            asked.append(iteration)
            signal.raise_signal(signal.SIGINT)

    start = problem().net.with_log_scale(-200.0)
    options = {"step": 0.1, "steps": 2000, "record": 40, "fast_forward": forward, "checkpoint": tmp_path / "run.npz"}
    before = signal.getsignal(signal.SIGINT)
    run = rf.descend(problem().replace(net=start), **options, callback=stop)
    assert signal.getsignal(signal.SIGINT) is before
    assert run.settings["interrupted"] is True
    assert run.settings["stopped"] == "interrupted"
    assert 100 <= run.settings["iteration"][-1] < 2000
    if not forward:
        rest = rf.descend(problem().replace(net=start), **options)
        whole = rf.descend(problem().replace(net=start), **{**options, "checkpoint": None})
        assert whole.settings["interrupted"] is False
        same(rest, whole)


def test_a_second_interrupt_is_not_held_back():
    def twice(iteration, net):
        if iteration == 4:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        rf.descend(problem(), step=0.1, steps=10, record=range(11), callback=twice)


def test_runs_in_other_threads():
    found = []
    thread = threading.Thread(target=lambda: found.append(rf.descend(problem(), step=0.1, steps=30)))
    thread.start()
    thread.join()
    same(found[0], rf.descend(problem(), step=0.1, steps=30))


# -- records and stopping ---------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 199, 200, 10**4, 10**9])
@pytest.mark.parametrize("count", [2, 3, 10, 200])
def test_geometric_records(steps, count):
    marks = geometric(steps, count)
    assert marks[0] == 0
    assert marks[-1] == steps
    assert len(marks) <= max(count, 1)
    assert (np.diff(marks) > 0).all()
    if count >= 10 and steps >= 200:
        assert np.max(np.divide(marks[2:], marks[1:-1])) < 1.3 * max(steps ** (1 / (count - 2)), 2)


def test_records_are_iterates_whatever_else_is_recorded():
    every = rf.descend(problem(), step=0.1, steps=60, record=range(61))
    some = rf.descend(problem(), step=0.1, steps=60, record=[3, 17])
    assert some.settings["iteration"] == [0, 3, 17, 60]
    for k, iteration in enumerate(some.settings["iteration"]):
        assert np.array_equal(some.directions[k], every.directions[iteration])
        assert some.log_loss[k] == every.log_loss[iteration]
    net = some.at(time=0.1 * 20)
    assert np.array_equal(net.W, some.network(2).W)


def test_the_callback_sees_every_record_and_may_stop():
    seen = []

    def look(iteration, net):
        seen.append((iteration, net.normalized_margin(problem().data)))
        return iteration >= 5

    run = rf.descend(problem(), step=0.1, steps=60, record=range(61), callback=look)
    assert [k for k, _ in seen] == run.settings["iteration"] == list(range(6))
    np.testing.assert_allclose([margin for _, margin in seen], run.normalized_margin(), rtol=1e-12, atol=1e-15)
    assert run.settings["stopped"] == "callback"


@pytest.mark.parametrize("method", ["gd", "sgd", "adam"])
def test_until_loss(method):
    batch = 5 if method == "sgd" else None
    options = {"step": 0.3 if method != "adam" else 0.01, "batch": batch, "steps": 3000}
    run = rf.descend(problem(), method, **options, until_loss=0.6)
    assert run.settings["stopped"] == "loss"
    assert run.loss[-1] <= 0.6
    last = run.settings["iteration"][-1]
    every = rf.descend(problem(), method, **{**options, "steps": last}, record=range(last + 1))
    looked = every.loss[::3] if batch else every.loss
    assert (looked[:-1] > 0.6).all()
    assert np.array_equal(every.W[-1], run.W[-1])
    assert len(rf.descend(problem(), method, **options, until_loss=10.0)) == 1


def test_diverging_runs_say_so_and_keep_what_there_is():
    for options in ({}, {"dtype": "float32"}):
        with pytest.raises(rf.Undecided, match=r"step 1e\+06 is too large") as caught:
            rf.descend(problem(loss="exponential"), step=1e6, steps=5000, **options)
        run = caught.value.partial
        assert len(run) >= 1
        assert np.isfinite(run.directions).all()


def test_a_loss_below_every_number_ends_a_run():
    data = rf.Dataset([[1.0, 0.3], [-1.0, -0.2]], [1, -1])
    net = rf.Network([[0.5, 0.4], [-0.3, -0.4]], [0.6, -0.5])
    with pytest.raises(rf.Undecided, match="until_loss") as caught:
        rf.descend(rf.Problem(data, net), step=1.0, steps=10**5, schedule="loss-scaled")
    assert caught.value.partial.log_loss[-1] < -1e6


def test_a_saved_run_loads(tmp_path):
    run = rf.descend(problem(), "adam", step=0.01, steps=30)
    run.save(tmp_path / "run.npz")
    same(run, rf.Trajectory.load(tmp_path / "run.npz"))
    assert "Run of adam" in repr(run)


def test_nothing_is_printed_on_a_pipe(capfd):
    rf.descend(problem(), step=0.1, steps=30000, record=2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_terminal_gets_a_progress_bar():
    master, slave = os.openpty()
    program = (
        "import reluflow as rf; data = rf.make('orthsep', n=200, d=10)\n"
        "rf.descend(rf.Problem(data, rf.initialize(10, scale=0.1)), step=0.1, steps=10**6, record=2,"
        "callback=lambda *x: None, until_loss=2e-4)"
    )
    code = program.replace("steps=10**6", "steps=30000")
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=slave, env=env) as process:
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 4096):
                text += chunk
        except OSError:  # Linux ends a closed terminal like this
            pass
        assert process.wait() == 0
    os.close(master)
    assert b"loss" in text
    assert b"steps" in text


# -- mistakes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "sdg"}, "method = 'sdg' is not known; choose one of 'gd', 'sgd', 'adam'"),
        ({"method": ["gd"]}, "is not known"),
        ({"step": 0}, "step must be a positive number, not 0"),
        ({"step": -1.0}, "step must be"),
        ({"step": float("nan")}, "step must be"),
        ({"step": "0.1"}, "step must be"),
        ({"step": True}, "step must be"),
        ({"steps": None}, "either steps= .* or epochs="),
        ({"epochs": 3}, "either steps= .* or epochs="),
        ({"steps": -1}, "steps must be an integer, at least 0"),
        ({"steps": 2.5}, "steps must be an integer"),
        ({"steps": 10**30}, "more than can be counted"),
        ({"schedule": "cosine"}, "schedule = 'cosine' is not known"),
        ({"method": "sgd"}, "needs a batch size"),
        ({"method": "sgd", "batch": 0}, "batch must be an integer, at least 1"),
        ({"method": "sgd", "batch": 13}, "larger than the data, which have 12 samples"),
        ({"batch": 3}, "does not go with method 'gd'"),
        ({"seed": -1}, "seed must be"),
        ({"seed": None}, "seed must be"),
        ({"until_loss": 0.0}, "until_loss must be a positive number"),
        ({"subgradient": 1.5}, "subgradient must be a number from 0 to 1"),
        ({"dtype": "float16"}, "dtype = 'float16' is not known"),
        ({"dtype": np.float32}, "is not known"),
        ({"betas": (0.9, 1.0)}, "two numbers in"),
        ({"betas": 0.9}, "two numbers in"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"record": 1}, "too few"),
        ({"record": [3, 2]}, "not ascending"),
        ({"record": [0, 11]}, "to at most 10"),
        ({"record": [-1, 3]}, "ascend strictly from 0"),
        ({"record": []}, "number of records or a list"),
        ({"record": [0.5]}, "number of records or a list"),
        ({"record": "all"}, "number of records or a list"),
        ({"record": True}, "number of records or a list"),
        ({"method": "adam", "schedule": "loss-scaled"}, "does not go with Adam"),
        ({"method": "adam", "fast_forward": True}, "fast_forward needs method 'gd'"),
        ({"fast_forward": 0.5}, "at most 1e-3"),
        ({"fast_forward": "yes"}, "fast_forward must be"),
        ({"checkpoint_minutes": 0}, "checkpoint_minutes must be"),
    ],
)
def test_mistakes_are_named(options, words):
    with pytest.raises(rf.ProblemError, match=words):
        rf.descend(problem(), **{"step": 0.1, "steps": 10, **options})


def test_mistakes_about_the_start():
    with pytest.raises(rf.ProblemError, match="needs a Problem, not Network"):
        rf.descend(problem().net, step=0.1, steps=1)
    tiny = problem().replace(net=problem().net.with_log_scale(-3000.0))
    with pytest.raises(rf.ProblemError, match="too small for float64 in this method"):
        rf.descend(tiny, "adam", step=0.1, steps=1)
    frozen = rf.Network([[1.0, 0.0, 0.0]], [1.0], log_scale=0.0, log_scale_out=-3000.0)
    with pytest.raises(rf.ProblemError, match="sizes that are closer together"):
        rf.descend(problem(train="first").replace(net=frozen), step=0.1, steps=1)
    huge = problem().replace(net=rf.Network([[1.0, 0.0, 0.0]], [1.0], log_scale=350.0, log_scale_out=-50.0))
    with pytest.raises(rf.ProblemError, match="sizes below e"):
        rf.descend(huge, step=0.1, steps=1)
    wide = rf.Problem(rf.Dataset(np.eye(1000), np.ones(1000)), rf.initialize(1000, width=1000))
    with pytest.raises(rf.ProblemError, match="Record fewer iterations"):
        rf.descend(wide, step=0.1, steps=10**4, record=5000)
