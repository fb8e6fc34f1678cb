"""A torch model trained on two digits: imported, certified, held against the theory."""

import numpy as np
import pytest

import reluflow as rf
from reluflow import deep
from reluflow.data import digits

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")
nn = torch.nn


@pytest.fixture(scope="module")
def data():
    return digits((0, 1), samples=60)


@pytest.fixture(scope="module")
def model(data):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1, bias=False)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.05)
    run = deep.train(model, data, step=0.5, batch=60, epochs=1500, record=500)
    assert run.accuracy[-1] == 1.0
    return model


@pytest.fixture(scope="module")
def problem(model, data):
    return deep.problem_from_torch(model, data)


def test_head_and_import_agree(model, data, problem):
    assert rf.head(model, (data.X, data.y)) == problem


def test_margin_is_that_of_the_torch_model(model, data, problem):
    f = model(torch.tensor(data.X.tolist(), dtype=torch.float64)).detach().numpy()[:, 0]
    square = sum(float(p.detach().pow(2).sum()) for p in model.parameters())
    margin = problem.net.normalized_margin(problem.data)
    assert margin == pytest.approx((data.y * f).min() / square, rel=1e-12)
    best = rf.global_max_margin(problem.data, 0.0)
    assert 0 < margin <= best.upper


def test_certificate_before_and_at_the_limit(problem):
    trained = rf.kkt(problem.data, problem.net)
    assert not trained.is_kkt(1e-6)  # training ended early; the limit is where the conditions hold
    best = rf.global_max_margin(problem.data, 0.0)
    assert rf.kkt(problem.data, best.network).is_kkt(1e-9)
    assert best.network.normalized_margin(problem.data) > problem.net.normalized_margin(problem.data)


def test_theory_is_asked(problem):
    findings = {finding.claim: finding for finding in rf.check(problem)}
    # Pixels are not negative, so no two images are at an obtuse angle.
    assert not deep.separability(problem.data.X, problem.data.y).separable
    assert findings["PL-D1"].applies is False
    assert findings["PL-T1"].applies is False
    assert findings["C-INV1"].applies is True


def test_explained(problem):
    explain = getattr(rf, "explain", None)
    if explain is None:
        pytest.skip("explain is not there")
    found = explain(problem)
    assert {f.claim for f in found.findings} == {f.claim for f in rf.check(problem)}
    assert found.problem == problem
    margin = problem.net.normalized_margin(problem.data)
    assert found.limit is None or found.limit.margin > margin
    assert found.text()


def test_a_head_on_orthogonally_separable_features_follows_the_prediction():
    # Trained from small weights on such data, the neurons point along the two max-margin directions (PL-T1).
    data = rf.make("phuong", n=60, d=4, seed=0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 20, bias=False), nn.ReLU(), nn.Linear(20, 1, bias=False)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.01)
    deep.train(model, data, batch=60, step=0.5, epochs=4000, record=4000)
    problem = rf.head(model, (data.X, data.y))
    assert deep.separability(problem.data.X, problem.data.y).separable is True
    assert next(f for f in rf.check(problem) if f.claim == "PL-D1").applies is True
    cosines = deep.correlations(problem.net.W, problem.data, problem.net.a)
    energy = np.exp(2 * problem.net.log_norms)
    # The limit is approached only like 1/log t, hence 0.9 and not 1.
    assert energy[cosines > 0.9].sum() > 0.9 * energy.sum()
