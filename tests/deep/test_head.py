"""``head``: the last two linear layers of any classifier."""

import numpy as np
import pytest

import reluflow as rf

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")
nn = torch.nn


class Plain(nn.Module):
    """A classifier written with functions; its layers are defined in another order than they are used."""

    def __init__(self, between=torch.relu, end=None, k=1, bias=True):
        super().__init__()
        self.last = nn.Linear(5, k, bias=False)
        self.first = nn.Linear(6, 7)
        self.middle = nn.Linear(7, 5, bias=bias)
        self.between, self.end = between, end or (lambda z: z)

    def forward(self, x):
        return self.end(self.last(self.between(self.middle(torch.tanh(self.first(x))))))


def drawn(*arguments, **options):
    torch.manual_seed(1)
    return Plain(*arguments, **options).double()


X = np.random.default_rng(0).normal(size=(20, 6))
Y = np.random.default_rng(1).integers(0, 2, 20)


def batches(k=7):
    return [(torch.tensor(X[lo : lo + k]), torch.tensor(Y[lo : lo + k])) for lo in range(0, 20, k)]


def leaky(slope):
    return lambda z: nn.functional.leaky_relu(z, slope)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("slope", [0.0, 0.25, 1.0])
def test_the_network_on_the_features_is_the_model(k, bias, slope):
    model = drawn(leaky(slope), k=k, bias=bias)
    problem = rf.head(model, batches(), loss="exponential")
    logits = model(torch.tensor(X)).detach().numpy()
    f = logits[:, 0] if k == 1 else logits[:, 1] - logits[:, 0]
    assert np.abs(problem.net.outputs(problem.data.X) - f).max() < 1e-12
    assert problem.net.slope == pytest.approx(slope, abs=1e-14)
    assert np.array_equal(problem.data.y, 2 * Y - 1)
    features = torch.tanh(model.first(torch.tensor(X))).detach().numpy()
    assert np.abs(problem.data.X[:, :7] - features).max() < 1e-15
    assert problem.data.d == 7 + bias
    assert problem.loss.name == "exponential"


@pytest.mark.parametrize(
    ("k", "end"),
    [
        (1, torch.sigmoid),
        (2, lambda z: z.softmax(1)),
        (2, lambda z: z.log_softmax(1)),
        (1, lambda z: z[:, 0]),
    ],
)
def test_what_may_follow_the_logits(k, end):
    assert rf.head(drawn(end=end, k=k), batches()).net == rf.head(drawn(k=k), batches()).net


def test_one_pair_of_arrays_or_a_dataloader():
    model, known = drawn(), rf.head(drawn(), batches())
    pairs = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    assert rf.head(model, (X, Y)).net == known.net
    assert np.abs(rf.head(model, (X, Y)).data.X - known.data.X).max() < 1e-15
    loaded = rf.head(model, torch.utils.data.DataLoader(pairs, batch_size=7))
    assert loaded == known


def test_declared_slopes_are_exact_in_single_precision():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.LeakyReLU(0.1), nn.Linear(5, 1, bias=False))
    problem = rf.head(model, (X.astype(np.float32), Y))
    assert problem.net.slope == 0.1
    f = model(torch.tensor(X, dtype=torch.float32)).detach().numpy()[:, 0]
    assert np.abs(problem.net.outputs(problem.data.X) - f).max() < 1e-6  # the model rounds to 24 bits
    inplace = nn.Sequential(model[0], nn.LeakyReLU(0.1, inplace=True), model[2])
    assert rf.head(inplace, (X.astype(np.float32), Y)) == problem


def test_the_model_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 1, bias=False)).double()
    model[2].eval()
    model.training = True
    before = [module.training for module in model.modules()]
    first = rf.head(model, (X, Y))
    assert first == rf.head(model, (X, Y))  # dropout is off
    assert [module.training for module in model.modules()] == before
    assert all(not module._forward_hooks for module in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_head_of_a_two_layer_net_is_from_torch():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.LeakyReLU(0.3), nn.Linear(5, 2)).double()
    assert rf.head(model, (X, Y)).net == rf.from_torch(model)


@pytest.mark.parametrize(
    ("between", "message"),
    [
        (torch.tanh, "something other than a ReLU"),
        (nn.functional.gelu, "something other than a ReLU"),
        (lambda z: torch.relu(z) * 2, "something other than a ReLU"),
        (torch.abs, r"outside \[0, 1\]"),
        (leaky(1.5), r"outside \[0, 1\]"),
        (lambda z: torch.relu(z).reshape(-1, 5, 1)[:, :, 0] + 1e-3, "something other"),
        (lambda z: torch.where(z > 0, z, torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4]) * z), "something other"),
    ],
)
def test_other_activations_are_refused(between, message):
    with pytest.raises(rf.ProblemError, match=message):
        rf.head(drawn(between), batches())


def test_a_slope_that_contradicts_the_model():
    with pytest.raises(rf.ProblemError, match=r"other than a ReLU or leaky ReLU of slope 0.5"):
        rf.head(drawn(leaky(0.25)), batches(), slope=0.5)


def test_where_no_unit_is_negative_the_slope_must_be_given():
    model = drawn(leaky(0.25))
    with torch.no_grad():
        model.middle.bias.fill_(100.0)
    with pytest.raises(rf.ProblemError, match=r"give the slope: slope=0.0 for ReLU"):
        rf.head(model, batches())
    assert rf.head(model, batches(), slope=0.25).net.slope == 0.25


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(6, 1)), r"has 1 Linear layer"),
        (nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), r"3 logits \(3 classes\)"),
        (nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1), nn.Tanh()), "not that of its last Linear layer"),
        (nn.Sequential(nn.Linear(9, 5), nn.ReLU(), nn.Linear(5, 1)), r"cannot take inputs of shape \(20, 6\)"),
        (nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1)), "something other than a ReLU"),
        (nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Flatten(0), nn.Linear(120, 1)), r"\(batch, features\)"),
        (3, "not int"),
    ],
)
def test_models_without_a_head(model, message):
    if isinstance(model, nn.Module):
        torch.manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.uniform_(-1, 1)
            for module in model.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.running_mean.fill_(1.0)  # at 0 it would change nothing
    with pytest.raises(rf.ProblemError, match=message):
        rf.head(model, (X.astype(np.float32), Y))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(20) % 3, "3 different values"),
        (np.where(Y, 8, 3), r"labels=\{3.0: -1, 8.0: 1\}"),
        (np.eye(2)[Y], r"one number a sample.*argmax"),
        (Y[:5], r"shape \(5,\) for 20 inputs"),
    ],
)
def test_labels_that_are_not_two_classes(y, message):
    with pytest.raises(rf.DataError, match=message):
        rf.head(drawn(), (X, y))


def test_labels_by_rule_and_other_ways_to_write_them():
    known = rf.head(drawn(), (X, Y))
    assert rf.head(drawn(), (X, np.where(Y, 8, 3)), labels={3: -1, 8: 1}) == known
    assert rf.head(drawn(), (X, 2 * Y - 1)) == known
    assert rf.head(drawn(), (X, Y[:, None].astype(float))) == known
    assert rf.head(drawn(), (X[:2], np.zeros(2))).data.negatives.size == 2


def test_loaders_that_are_none():
    with pytest.raises(rf.DataError, match="the loader is empty"):
        rf.head(drawn(), [])
    with pytest.raises(rf.DataError, match="DataLoader"):
        rf.head(drawn(), torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y)))
    for nothing in ([torch.tensor(X)], 3):
        with pytest.raises(rf.DataError, match=r"pairs \(inputs, labels\)"):
            rf.head(drawn(), nothing)
    with pytest.raises(rf.DataError, match="are not numbers"):
        rf.head(drawn(), (X, np.array(["cat"] * 20)))
