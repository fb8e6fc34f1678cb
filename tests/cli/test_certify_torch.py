"""``reluflow certify --torch model.pt --features feats.npz``."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import reluflow as rf
from reluflow.cli._app import app
from reluflow.deep import problem_from_torch

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")
nn = torch.nn
runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, ["certify", *map(str, arguments)])


def document(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def files(tmp_path):
    """A model and the features it takes: the orthogonally separable example in the plane, with a bias."""
    data = rf.example("EX1").data
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 0.5], [-1.0, -0.25]]))
        model[0].bias.copy_(torch.tensor([0.25, 0.0]))
        model[2].weight.copy_(torch.tensor([[1.0, -1.5]]))
    torch.save(model.state_dict(), tmp_path / "model.pt")
    np.savez(tmp_path / "feats.npz", X=data.X, y=data.y)
    return tmp_path, model, data


def test_a_checkpoint_is_certified(files):
    folder, model, data = files
    found = document("--torch", folder / "model.pt", "--features", folder / "feats.npz")
    assert (found["data"]["n"], found["data"]["d"]) == (data.n, 3)  # the bias became a feature
    problem = problem_from_torch(model, data)
    f = model(torch.tensor(data.X, dtype=torch.float32)).detach().double().numpy()[:, 0]
    square = sum(float(p.detach().double().pow(2).sum()) for p in model.parameters())
    assert found["network"]["margin"] == pytest.approx((data.y * f).min() / square, rel=1e-6)  # f is float32
    assert found["network"]["kkt"]["residual"] == pytest.approx(rf.kkt(problem.data, problem.net).residual, rel=1e-9)
    assert found["network"]["neurons"] == 2
    assert found["network"]["slope_assumed"] is True
    assert found["best"]["lower"] >= found["network"]["margin"]
    # EX1 is orthogonally separable in the plane; the constant feature moves all inner products by 1.
    gram = problem.data.X @ problem.data.X.T
    across = np.not_equal.outer(data.y, data.y)
    assert found["orthogonal"]["cross"] == pytest.approx((gram[across] <= 0).mean(), abs=1e-15)


def test_data_may_stand_in_either_place(files):
    folder, _, _ = files
    one = document("--torch", folder / "model.pt", "--features", folder / "feats.npz")
    assert document(folder / "feats.npz", "--torch", folder / "model.pt") == one
    assert document("--features", folder / "feats.npz")["best"] == document(folder / "feats.npz")["best"]


def test_the_slope_is_asked_for_and_shown(files):
    folder, _, _ = files
    arguments = ("--torch", folder / "model.pt", "--features", folder / "feats.npz")
    found = document(*arguments, "--slope", 0.25)
    assert (found["slope"], found["network"]["slope_assumed"]) == (0.25, False)
    text = run(*arguments).stdout
    assert "taken as ReLU" in text
    assert "orthogonally separable" in text
    assert "taken as ReLU" not in run(*arguments, "--slope", 0).stdout


def test_the_limit_from_here(files):
    folder, model, data = files
    found = document("--torch", folder / "model.pt", "--features", folder / "feats.npz", "--limit")["limit"]
    end = rf.limit(problem_from_torch(model, data))
    assert found["margin"] == pytest.approx(end.margin, rel=1e-9)
    assert found["distance"] > 1e-3  # these weights were not trained to the end
    problem = problem_from_torch(model, data)
    end.network.save(folder / "end.npz")
    np.savez(folder / "biased.npz", X=problem.data.X, y=problem.data.y)
    there = document(folder / "biased.npz", "--network", folder / "end.npz", "--limit")["limit"]
    assert there["distance"] < 1e-6  # the limit of the limit is itself
    text = run("--torch", folder / "model.pt", "--features", folder / "feats.npz", "--limit").stdout
    assert "limit of the flow from here" in text


def test_a_last_bias_needs_a_word(files):
    folder, model, _ = files
    state = {**model.state_dict(), "2.bias": torch.tensor([0.125])}
    torch.save(state, folder / "biased.pt")
    arguments = ("--torch", folder / "biased.pt", "--features", folder / "feats.npz")
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "--drop-bias" in refused.stderr
    plain = document("--torch", folder / "model.pt", "--features", folder / "feats.npz")
    assert document(*arguments, "--drop-bias")["network"]["margin"] == plain["network"]["margin"]


def refusals(folder, model, data):
    feats = ("--features", folder / "feats.npz")
    torch.save(model, folder / "whole.pt")
    torch.save({"0.weight": torch.ones(4, 2), "2.weight": torch.ones(3, 4)}, folder / "three.pt")
    torch.save(nn.Sequential(nn.Conv1d(1, 2, 2), nn.ReLU(), nn.Linear(2, 1)).state_dict(), folder / "conv.pt")
    np.savez(folder / "wide.npz", X=np.column_stack([data.X, data.X]), y=data.y)
    model_pt = ("--torch", folder / "model.pt")
    yield ("--torch", folder / "whole.pt", *feats), "never executed here"
    yield ("--torch", folder / "three.pt", *feats), "3 logits (3 classes)"
    yield ("--torch", folder / "conv.pt", *feats), "exactly two weight matrices"
    yield (*model_pt, "--features", folder / "wide.npz"), "dimension 4 but the model takes 2"
    yield (*model_pt, "--features", folder / "none.npz"), "none.npz"
    yield ("--torch", folder / "none.pt", *feats), "there is no file"
    yield model_pt, "neither was given"
    yield (folder / "feats.npz", *feats), "both were given"
    yield (*model_pt, *feats, "--slope", 2), "outside [0, 1]"
    yield (*model_pt, *feats, "--network", folder / "x.npz"), "give one of them"
    yield (*feats, "--drop-bias"), "belongs to --torch"
    yield (*feats, "--limit"), "give one with --network or --torch"


def test_mistakes_are_answered(files):
    for arguments, message in refusals(*files):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr, (arguments, result.stderr)
        assert "Traceback" not in result.stderr
