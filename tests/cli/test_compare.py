"""``reluflow compare`` and ``rf.compare``."""

import itertools
import json
from functools import partial

import numpy as np
import pytest

import reluflow as rf
from helpers import cli
from reluflow.problem import Interrupted
from reluflow.report import function_distance

START = rf.Network([[1.0, 0.5], [-1.0, -0.4], [-1.0, -0.41], [-0.1, 3.0]], [1.0, -1.0, -0.5, 0.0])


run, document = partial(cli.run, "compare"), partial(cli.document, "compare")


@pytest.fixture
def net(tmp_path):
    START.save(tmp_path / "net.npz")
    return tmp_path / "net.npz"


def test_the_numbers_are_those_of_the_parts(net):
    found, data = document(net, "EX1"), rf.example("EX1").data
    end, best = rf.limit(rf.Problem(data, START)), rf.global_max_margin(data, 0.0)
    mine = START.normalized_margin(data)
    assert found["network"]["margin"] == pytest.approx(mine, rel=1e-14)
    assert found["network"]["accuracy"] == 1.0
    assert found["limit"]["margin"] == pytest.approx(end.margin, rel=1e-9)
    assert found["limit"]["neurons"] == len(end.living)
    assert found["optimum"]["lower"] == pytest.approx(best.lower, rel=1e-9)
    assert found["share_of_limit"] == pytest.approx(mine / end.margin, rel=1e-9)
    assert found["share_of_optimum"] == pytest.approx([mine / best.upper, mine / best.lower], rel=1e-9)
    assert found["network"]["kkt"]["residual"] == pytest.approx(rf.kkt(data, START).residual, rel=1e-9)
    assert found["network"]["kkt"]["holds"] is False
    assert found["network"]["linear"]["holds"] is rf.linearity(START).linear
    assert (found["network"]["neurons"], found["network"]["different"], found["network"]["without_effect"]) == (4, 2, 1)
    applying = [f.claim for f in rf.check(rf.Problem(data, START)) if f.applies]
    assert found["theorems"]["apply"] == applying
    assert (found["stopped"], found["troubles"]) == ("", {})


def test_from_the_limit_there_is_nowhere_to_go():
    data = rf.example("EX1").data
    end = rf.limit(rf.Problem(data, START))
    found = rf.compare(end.network, data)
    assert found.share_of_limit == pytest.approx(1.0, abs=1e-9)
    assert found.kkt.is_kkt()
    assert max(found.distance) < 1e-5
    assert "100 % of what the flow" in found.text(500)


def test_the_angle_and_the_distance():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1, 1])
    one, two = rf.Network([[1.0, 0.0]], [1.0]), rf.Network([[1.0, 1.0]], [1.0])
    # Outputs (1, 0) / 2 and (1, 1) / 3 at unit norm
    distance, angle = function_distance(rf.Problem(data, one), two)
    assert angle == pytest.approx(45.0, rel=1e-12)
    assert distance == pytest.approx(np.hypot(1 / 2 - 1 / 3, 1 / 3) / np.hypot(1 / 3, 1 / 3), rel=1e-12)


def test_points_that_are_wrong_are_named():
    data = rf.example("EX1").data
    found = rf.compare(rf.Network([[1.0, 1.0]], [1.0]), data, limit=False, optimum=False)
    f = (data.X @ np.array([1.0, 1.0])).clip(0)
    assert found.wrong.tolist() == np.flatnonzero(data.y * f <= 0).tolist()
    assert found.kkt is None
    assert found.exit_code == 0
    assert "all but" in found.text()
    assert "not asked for" in found.text()


def test_data_in_every_form(tmp_path, net):
    data = rf.example("EX1").data
    np.savez(tmp_path / "points.npz", X=data.X, y=data.y)
    options = {"limit": False, "optimum": False}
    forms = [(START, data), (START, data.X, data.y), (START, "EX1"), (net, str(tmp_path / "points.npz"))]
    margins = [rf.compare(*form, **options).margin for form in forms]
    assert margins == [START.normalized_margin(data)] * 4
    with pytest.raises(rf.DataError, match="leave y out"):
        rf.compare(START, "EX1", data.y)
    with pytest.raises(rf.ProblemError, match="contradicts the slope 0"):
        rf.compare(START, data, slope=0.1)


def test_a_frozen_second_layer_has_no_optimum(net):
    found = document(net, "EX1", "--train", "first", "--no-limit")
    assert found["optimum"] is None
    assert "frozen second layer" in run(net, "EX1", "--train", "first", "--no-limit").stdout


def test_out_of_time_the_rest_is_kept(net, monkeypatch):
    exact = rf.global_max_margin(rf.example("EX1").data, 0.0)
    codes = []
    for seconds in (2, 20, 100_000):
        # A clock that goes on by a second whenever it is looked at: what is reached does not depend on the machine.
        ticks = itertools.count()
        monkeypatch.setattr("reluflow.problem.time.time.monotonic", lambda ticks=ticks: float(next(ticks)))
        result = run(net, "EX1", "--time-limit", seconds, "--no-limit", "--json")
        codes.append(result.exit_code)
        found = json.loads(result.stdout)
        assert found["network"]["margin"] > 0
        assert found["optimum"]["lower"] <= exact.upper
        assert found["optimum"]["upper"] >= exact.lower
        assert (found["stopped"] == "time") == (result.exit_code == 3)
    assert codes[0] == 3
    assert codes[-1] == 0


def test_an_undecided_limit_is_said_and_the_rest_is_kept(net, monkeypatch):
    data = rf.example("EX1").data
    run_so_far = rf.flow(rf.Problem(data, START), {"time": 1.0})

    def undecided(problem, **options):
        raise rf.Undecided("no limit could be confirmed. The flow so far is in .partial.", run_so_far)

    monkeypatch.setitem(rf.compare.__globals__, "find_limit", undecided)
    found = document(net, "EX1", code=3)
    assert found["limit"] is None
    assert "no limit could be confirmed" in found["troubles"]["limit"]
    assert found["optimum"]["exact"] is True
    text = run(net, "EX1").stdout
    assert "So far, at log t = " in " ".join(text.split())


def test_interrupted_the_rest_is_kept(net, monkeypatch):
    def interrupt(problem, **options):
        raise Interrupted("interrupted", None)

    monkeypatch.setitem(rf.compare.__globals__, "find_limit", interrupt)
    found = document(net, "EX1", code=130)
    assert found["stopped"] == "interrupted"
    assert found["network"]["kkt"] is not None
    assert found["optimum"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.npz", "EX1"], "there is no file"),
        (["NET", "absent.csv"], "absent.csv"),
        (["NET", "EX1", "--slope", 0.5], "contradicts the slope 0"),
        (["NET", "EX1", "--time-limit", -1], "positive number of seconds"),
        (["NET", "EX1", "--loss", "hinge"], "hinge"),
        (["NET", "EX1", "--train", "second"], "second"),
        (["NET", "digits:pair=3/8"], "64 features but the network has 2 inputs"),
    ],
)
def test_mistakes_are_answered(net, arguments, words):
    result = run(*(net if a == "NET" else a for a in arguments))
    assert result.exit_code == 2
    assert words in result.stderr


def test_files_of_other_programs(tmp_path):
    for name in ("model.onnx", "model.safetensors", "model"):
        (tmp_path / name).write_bytes(b"no network")
        result = run(tmp_path / name, "EX1")
        assert result.exit_code == 2
        assert "torch.save(model.state_dict(), 'model.pt')" in result.stderr


# -- with PyTorch --------------------------------------------------------------------------------------------


def test_a_model_with_biases(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.LeakyReLU(0.1), torch.nn.Linear(6, 1)).double()
    data = rf.example("EX1").data
    torch.save(model.state_dict(), tmp_path / "model.pt")
    found = document(tmp_path / "model.pt", "EX1", "--slope", 0.1, "--no-limit", "--no-optimum")
    q = data.y * model(torch.tensor(data.X.copy())).detach().numpy()[:, 0]
    b = abs(model[2].bias.item())
    square = sum(float(p.detach().pow(2).sum()) for p in model.parameters()) - b**2 + 2 * b  # the bias as two factors
    assert found["network"]["margin"] == pytest.approx(q.min() / square, rel=1e-12)
    assert found["network"]["wrong"] == np.flatnonzero(q <= 0).tolist()
    assert "two factors" in found["notes"][0]
    python = rf.compare(model, data, limit=False, optimum=False)
    assert python.margin == found["network"]["margin"]
    refused = run(tmp_path / "model.pt", "EX1")
    assert refused.exit_code == 2
    assert "--slope 0 for ReLU" in refused.stderr
