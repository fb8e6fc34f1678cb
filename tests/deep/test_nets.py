"""The deeper nets and their training."""

import math

import numpy as np
import pytest

import reluflow as rf
from reluflow import deep
from reluflow.data import cache_folder, digits, mnist

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")

POINTS = rf.Dataset([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]], [1, 1, -1, -1])


# -- the start -----------------------------------------------------------------------------------------------


def test_residual_net_starts_as_stated():
    net = deep.residual_net(20, scale=0.05, seed=3)
    for weight in net.parameters():
        bound = 0.05 / math.sqrt(weight.shape[1])
        assert weight.abs().max() <= bound
        if weight.numel() >= 2000:  # a uniform law: its largest draw and its variance (four standard errors)
            assert weight.abs().max() > 0.99 * bound
            error = 4 * bound**2 * math.sqrt(4 / 45 / weight.numel())
            assert abs(float(weight.detach().double().pow(2).mean()) - bound**2 / 3) < error


def test_conv_net_is_the_one_of_the_table():
    net = deep.conv_net(seed=1)
    shapes = [tuple(layer.weight.shape) for layer in net if hasattr(layer, "weight")]
    assert shapes == [
        (32, 1, 3, 3), (32, 32, 3, 3), (32, 32, 5, 5), (64, 32, 3, 3), (64, 64, 3, 3), (64, 64, 5, 5),
        (128, 3136), (1, 128),
    ]  # fmt: skip
    for layer in net:
        if hasattr(layer, "weight"):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            scale = 0.05 if isinstance(layer, torch.nn.Linear) else 1.0
            assert 0.9 * scale * bound < layer.weight.abs().max() <= scale * bound
            assert layer.bias.abs().max() <= bound
    sides = [f.before.shape[1] for f in deep.features(net, np.zeros((1, 784)))]
    assert sides == [32 * 784, 32 * 784, 32 * 196, 64 * 196, 64 * 196, 64 * 49, 128]


def test_a_draw_is_its_seed_and_leaves_torch_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, again, other = (deep.residual_net(4, 6, 3, seed=s) for s in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), again.parameters(), strict=True))
    assert not torch.equal(one.layers[0].weight, other.layers[0].weight)


def test_depth_two_is_the_two_layer_net():
    net = deep.residual_net(2, width=6, depth=2, dtype="float64")
    outputs = net(torch.tensor(POINTS.X.tolist(), dtype=torch.float64)).detach().numpy()[:, 0]
    assert np.abs(rf.from_torch(net.state_dict(), slope=0).outputs(POINTS.X) - outputs).max() < 1e-16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d": 0}, "d must be"),
        ({"d": 2, "depth": 1}, "depth must be an integer of at least 2"),
        ({"d": 2, "width": 2.5}, "width must be"),
        ({"d": 2, "scale": 0.0}, "scale must be a positive number"),
        ({"d": 2, "seed": -1}, "seed must be"),
        ({"d": 2, "dtype": "float16"}, "dtype must be"),
    ],
)
def test_nets_that_cannot_be(options, message):
    with pytest.raises(rf.ProblemError, match=message):
        deep.residual_net(**options)


# -- training ------------------------------------------------------------------------------------------------


def test_one_epoch_of_sgd_equals_descend():
    # Full batch, two layers: the same step computed by the package itself, without autograd.
    net = deep.residual_net(2, width=6, depth=2, scale=1.0, seed=4, dtype="float64")
    start = rf.from_torch(net.state_dict(), slope=0)
    run = deep.train(net, POINTS, step=0.1, batch=4, epochs=5)
    end = rf.from_torch(net.state_dict(), slope=0)
    known = rf.descend(rf.Problem(POINTS, start), "gd", step=0.1, steps=5)
    assert np.abs(end.W - known.final.weights()[0]).max() < 1e-13
    assert np.abs(end.a - known.final.weights()[1]).max() < 1e-13
    assert run.loss[-1] == pytest.approx(math.exp(known.log_loss[-1]), rel=1e-12)


def test_one_step_of_adam_is_torchs_on_cross_entropy():
    ours, theirs = (deep.residual_net(2, width=6, depth=3, scale=1.0, dtype="float64") for _ in range(2))
    deep.train(ours, POINTS, "adam", batch=4, epochs=3)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=1e-3)
    X, target = torch.tensor(POINTS.X.tolist(), dtype=torch.float64), torch.tensor((POINTS.y > 0).astype(float))
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(theirs(X)[:, 0], target).backward()
        optimizer.step()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (p - q).abs().max() < 1e-12


def test_every_epoch_visits_every_sample_once():
    seen = []
    net = deep.residual_net(1, width=2, depth=2, dtype="float64")
    net.register_forward_pre_hook(
        lambda module, given: seen.append(given[0][:, 0].tolist()) if module.training else None
    )
    data = rf.Dataset(np.arange(1.0, 8.0)[:, None], np.ones(7))
    run = deep.train(net, data, batch=3, epochs=4, seed=9)
    assert [len(batch) for batch in seen] == [3, 3, 1] * 4
    epochs = [[*seen[3 * k], *seen[3 * k + 1], *seen[3 * k + 2]] for k in range(4)]
    assert all(sorted(order) == data.X[:, 0].tolist() for order in epochs)
    assert len({tuple(order) for order in epochs}) > 1
    assert run.steps == 12


def test_seeded_recorded_and_stopped():
    runs = []
    for seed in (0, 0, 1):
        net = deep.residual_net(2, width=5, depth=3)
        runs.append(deep.train(net, POINTS, batch=1, epochs=7, seed=seed, record=3))
    assert runs[0].epochs.tolist() == [0, 3, 6, 7]
    assert np.array_equal(runs[0].loss, runs[1].loss)
    assert not np.array_equal(runs[0].loss, runs[2].loss)
    told = []
    run = deep.train(deep.residual_net(2, 5, 3), POINTS, callback=lambda epoch, model: told.append(epoch) or epoch == 2)
    assert (run.stopped, told) == ("callback", [0, 1, 2])
    assert run.settings == {
        "method": "sgd", "step": 0.1, "batch": 50, "epochs": 500, "seed": 0, "loss": "logistic",
    }  # fmt: skip


def test_interrupted_and_diverged_runs_keep_what_there_is():
    def interrupt(epoch, model):
        if epoch == 3:
            raise KeyboardInterrupt

    run = deep.train(deep.residual_net(2, 5, 3), POINTS, callback=interrupt)
    assert (run.stopped, run.epochs.tolist()) == ("interrupted", [0, 1, 2, 3])
    calls = []

    def interrupt_update(module, given):
        calls.append(module.training)
        if module.training and calls.count(True) == 6:  # the second update of the second epoch
            raise KeyboardInterrupt

    net = deep.residual_net(2, 5, 3)
    net.register_forward_pre_hook(interrupt_update)
    run = deep.train(net, POINTS, batch=1, record=5)
    assert (run.stopped, run.epochs.tolist(), run.steps) == ("interrupted", [0, 5 / 4], 5)
    wild = deep.train(deep.residual_net(2, 5, 6, scale=1.0), POINTS, step=1e30)
    assert wild.stopped == "diverged"
    assert not math.isfinite(wild.loss[-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "rmsprop"}, "choose 'sgd' or 'adam'"),
        ({"step": -1.0}, "step must be"),
        ({"batch": 0}, "batch must be"),
        ({"epochs": 1.5}, "epochs must be"),
        ({"record": 0}, "record must be"),
    ],
)
def test_settings_that_cannot_be(options, message):
    with pytest.raises(rf.ProblemError, match=message):
        deep.train(deep.residual_net(2, 5, 3), POINTS, **options)


def test_models_that_cannot_be_trained_here():
    with pytest.raises(rf.ProblemError, match="one logit"):
        deep.train(torch.nn.Linear(2, 2), POINTS)
    with pytest.raises(rf.ProblemError, match="cannot take inputs of shape"):
        deep.train(torch.nn.Linear(3, 1), POINTS)
    with pytest.raises(rf.ProblemError, match="no parameters"):
        deep.train(torch.nn.ReLU(), POINTS)


# -- what the papers saw: ranks, rays and separation are judged by PL-F2 and PL-F3 (tests/experiments/test_pl.py) ------


def images():
    """100 images of a 0 or a 1: of MNIST if it was fetched, else the small digits enlarged."""
    if (cache_folder() / "mnist" / "train-images-idx3-ubyte").is_file():
        return mnist((0, 1), samples=100, seed=0)
    small = digits((0, 1), samples=100, seed=0)
    large = np.kron(small.X.reshape(-1, 8, 8), np.ones((1, 3, 3)))  # 24 x 24
    return rf.Dataset(np.pad(large, ((0, 0), (2, 2), (2, 2))).reshape(-1, 784), small.y)


def test_conv_net_has_features_and_a_head():
    data, net = images(), deep.conv_net(seed=0)
    run = deep.train(net, data, "adam", batch=20, epochs=2, record=2)
    assert run.loss[-1] < run.loss[0]
    layers = deep.features(net, data.X)
    assert len(layers) == 7
    # After ReLU no inner product is negative, whatever was learnt.
    assert all((deep.inner_products(layer.after, data.y).cross >= 0).all() for layer in layers)
    # Its last two layers are a network on the features, which certificates can be asked about.
    problem = rf.head(net, (data.X, data.y))
    assert (problem.data.d, problem.net.p, problem.net.slope) == (3137, 129, 0.0)
    with torch.no_grad():
        f = net(torch.tensor(data.X, dtype=torch.float32))[:, 0].double().numpy()
    assert np.abs(problem.net.outputs(problem.data.X) - f).max() < 1e-4 * np.abs(f).max()  # 3136 terms in float32
