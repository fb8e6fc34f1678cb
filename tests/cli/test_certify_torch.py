"""``reluflow certify --network model.pt --slope 0 --features feats.npz``."""

import json
from functools import partial

import numpy as np
import pytest

import reluflow as rf
from helpers import cli
from reluflow.deep import problem_from_torch

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")
nn = torch.nn


def of(folder):
    return "--network", folder / "model.pt", "--slope", 0


run, document = partial(cli.run, "certify"), partial(cli.document, "certify")


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
    found = document(*of(folder), "--features", folder / "feats.npz")
    assert (found["data"]["n"], found["data"]["d"]) == (data.n, 3)  # the bias became a feature
    problem = problem_from_torch(model, data)
    f = model(torch.tensor(data.X, dtype=torch.float32)).detach().double().numpy()[:, 0]
    square = sum(float(p.detach().double().pow(2).sum()) for p in model.parameters())
    assert found["network"]["margin"] == pytest.approx((data.y * f).min() / square, rel=1e-6)  # f is float32
    assert found["network"]["kkt"]["residual"] == pytest.approx(rf.kkt(problem.data, problem.net).residual, rel=1e-9)
    assert found["network"]["neurons"] == 2
    assert found["best"]["lower"] >= found["network"]["margin"]
    # EX1 is orthogonally separable in the plane; the constant feature moves all inner products by 1.
    gram = problem.data.X @ problem.data.X.T
    across = np.not_equal.outer(data.y, data.y)
    assert found["orthogonal"]["cross"] == pytest.approx((gram[across] <= 0).mean(), abs=1e-15)


def test_data_may_stand_in_either_place(files):
    folder, _, _ = files
    one = document(*of(folder), "--features", folder / "feats.npz")
    assert document(folder / "feats.npz", *of(folder)) == one
    assert document("--features", folder / "feats.npz")["best"] == document(folder / "feats.npz")["best"]


def test_the_slope_must_be_said(files):
    folder, _, _ = files
    arguments = ("--network", folder / "model.pt", "--features", folder / "feats.npz")
    assert document(*arguments, "--slope", 0.25)["slope"] == 0.25
    assert "orthogonally separable" in run(*arguments, "--slope", 0).stdout
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "--slope 0 for ReLU" in refused.stderr


def test_the_limit_from_here(files):
    folder, model, data = files
    found = document(*of(folder), "--features", folder / "feats.npz", "--limit", "--no-optimum")["limit"]
    end = rf.limit(problem_from_torch(model, data))
    assert found["margin"] == pytest.approx(end.margin, rel=1e-9)
    assert found["distance"] > 1e-3  # these weights were not trained to the end
    problem = problem_from_torch(model, data)
    end.network.save(folder / "end.npz")
    np.savez(folder / "biased.npz", X=problem.data.X, y=problem.data.y)
    there = document(folder / "biased.npz", "--network", folder / "end.npz", "--limit", "--no-optimum")["limit"]
    assert there["distance"] < 1e-6  # the limit of the limit is itself
    text = run(*of(folder), "--features", folder / "feats.npz", "--limit", "--no-optimum").stdout
    assert "limit of the flow from here" in text


def test_a_last_bias_is_one_more_neuron(files):
    folder, model, data = files
    state = {**model.state_dict(), "2.bias": torch.tensor([0.125])}
    torch.save(state, folder / "biased.pt")
    found = document("--network", folder / "biased.pt", "--slope", 0, folder / "feats.npz", "--no-optimum")
    f = model(torch.tensor(data.X, dtype=torch.float32)).detach().double().numpy()[:, 0] + 0.125
    square = sum(float(p.detach().double().pow(2).sum()) for p in model.parameters()) + 2 * 0.125
    assert found["network"]["margin"] == pytest.approx((data.y * f).min() / square, rel=1e-6)  # f is float32
    assert found["network"]["neurons"] == 3


def refusals(folder, model, data):
    feats = ("--features", folder / "feats.npz")
    torch.save(model, folder / "whole.pt")
    torch.save({"0.weight": torch.ones(4, 2), "2.weight": torch.ones(3, 4)}, folder / "three.pt")
    torch.save(nn.Sequential(nn.Conv1d(1, 2, 2), nn.ReLU(), nn.Linear(2, 1)).state_dict(), folder / "conv.pt")
    np.savez(folder / "wide.npz", X=np.column_stack([data.X, data.X]), y=data.y)
    model_pt = of(folder)
    yield ("--network", folder / "whole.pt", "--slope", 0, *feats), "never executed here"
    yield ("--network", folder / "three.pt", "--slope", 0, *feats), "3 logits (3 classes)"
    yield ("--network", folder / "conv.pt", "--slope", 0, *feats), "exactly two weight matrices"
    yield (*model_pt, "--features", folder / "wide.npz"), "dimension 4 but the model takes 2"
    yield (*model_pt, "--features", folder / "none.npz"), "none.npz"
    yield ("--network", folder / "none.pt", "--slope", 0, *feats), "there is no file"
    yield model_pt, "neither was given"
    yield (folder / "feats.npz", *feats), "both were given"
    yield (*model_pt, *feats, "--slope", 2), "outside [0, 1]"
    yield (*feats, "--limit"), "give one with --network"


def test_mistakes_are_answered(files):
    for arguments, message in refusals(*files):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr, (arguments, result.stderr)
        assert "Traceback" not in result.stderr


def test_explain_and_check_start_from_a_checkpoint(files):
    folder, model, data = files
    arguments = [str(folder / "feats.npz"), "--network", str(folder / "model.pt"), "--slope", "0", "--json"]
    for verb, options in (("check", ["--paper", "PL"]), ("explain", ["--max-steps", "5"])):
        result = cli.run(verb, *arguments, *options)
        found = json.loads(result.stdout)
        assert found["problem"]["fingerprint"] == problem_from_torch(model, data).fingerprint()
    assert "--slope 0" in found["command"]
    assert cli.run("check", *arguments[:3]).exit_code == 2
