"""``from_torch`` and ``problem_from_torch``: models, state dicts and files."""

import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.deep import problem_from_torch

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")
nn = torch.nn


def sequential(d=3, p=4, k=1, activation=None, bias=True, last_bias=False, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(d, p, bias), activation or nn.ReLU(), nn.Linear(p, k, last_bias)).double()


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


@settings(deadline=None, max_examples=60)
@given(
    d=st.integers(1, 6),
    p=st.integers(1, 7),
    k=st.integers(1, 2),
    slope=st.sampled_from([None, 0.0, 0.01, 0.3, 1.0]),
    bias=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_outputs_are_those_of_the_module(d, p, k, slope, bias, seed):
    model = sequential(d, p, k, nn.ReLU() if slope is None else nn.LeakyReLU(slope), bias, seed=seed)
    X = np.random.default_rng(seed).normal(size=(9, d))
    logits = model(torch.as_tensor(X)).detach().numpy()
    f = logits[:, 0] if k == 1 else logits[:, 1] - logits[:, 0]
    net = rf.from_torch(model)
    assert (net.p, net.d, net.slope) == (p, d + bias, slope or 0.0)
    assert np.abs(net.outputs(with_ones(X) if bias else X) - f).max() < 1e-12


def test_the_state_dict_and_its_file_say_the_same(tmp_path):
    model = sequential(activation=nn.LeakyReLU(0.2))
    torch.save(model.state_dict(), tmp_path / "model.pt")
    known = rf.from_torch(model)
    assert rf.from_torch(model.state_dict(), slope=0.2) == known
    assert rf.from_torch(tmp_path / "model.pt", slope=0.2) == known
    assert rf.from_torch(str(tmp_path / "model.pt"), slope=0.2) == known
    assert rf.from_torch(model.state_dict()).slope == 0.0


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_a_checkpoint_of_a_training_script(tmp_path, key):
    model = sequential()
    torch.save({"epoch": 3, key: model.state_dict(), "note": "x"}, tmp_path / "model.pt")
    assert rf.from_torch(tmp_path / "model.pt") == rf.from_torch(model)


def test_names_and_order_of_a_state_dict_do_not_matter():
    state = sequential(d=3, p=4).state_dict()
    renamed = {"fc2.weight": state["2.weight"], "fc1.bias": state["0.bias"], "fc1.weight": state["0.weight"]}
    assert rf.from_torch(renamed) == rf.from_torch(state)
    plain = {"W": state["0.weight"], "a": state["2.weight"]}
    assert np.array_equal(rf.from_torch(plain).W, state["0.weight"].numpy())


def test_where_both_orders_chain_the_order_of_the_entries_counts():
    first, last = [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 9.0]]
    net = rf.from_torch({"0.weight": first, "2.weight": last})
    assert net.W.tolist() == first
    assert net.a.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_short_floats_are_kept_exactly(dtype):
    model = sequential(p=2).to(getattr(torch, dtype))
    W = rf.from_torch(model).W
    for j in range(2):
        assert [Fraction(v) for v in W[j, :3]] == [Fraction(v.item()) for v in model[0].weight[j]]


def test_nested_and_idle_layers():
    model = sequential()
    wrapped = nn.Sequential(nn.Flatten(), nn.Sequential(model[0], model[1]), nn.Dropout(0.5), nn.Identity(), model[2])
    assert rf.from_torch(wrapped) == rf.from_torch(model)


def test_the_module_is_left_alone():
    model = sequential()
    kept = [p.detach().clone() for p in model.parameters()]
    net = rf.from_torch(model)
    with torch.no_grad():
        model[0].weight.zero_()
    assert np.array_equal(net.W[:, :3], kept[0].numpy())


# -- the bias of the last layer ------------------------------------------------------------------------------


def test_a_last_bias_is_refused_or_dropped():
    model = sequential(last_bias=True)
    c = model[2].bias.item()
    with pytest.raises(rf.ProblemError, match=r"not homogeneous.*drop_bias=True"):
        rf.from_torch(model)
    X = np.random.default_rng(0).normal(size=(5, 3))
    f = model(torch.as_tensor(X)).detach().numpy()[:, 0]
    assert np.abs(rf.from_torch(model, drop_bias=True).outputs(with_ones(X)) + c - f).max() < 1e-12


def test_a_last_bias_that_says_nothing_is_no_bias():
    one, two = sequential(last_bias=True), sequential(k=2, last_bias=True)
    with torch.no_grad():
        one[2].bias.zero_()
        two[2].bias.fill_(0.7)  # the same for both logits: their difference does not change
    assert rf.from_torch(one).p == rf.from_torch(two).p == 4


# -- refusals ------------------------------------------------------------------------------------------------


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 1, bias=False)

    def forward(self, x):
        return self.two(torch.sin(self.one(x)))


class Disguised(nn.Sequential):
    def forward(self, x):
        return super().forward(x) ** 2


REFUSED = [
    (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), r"Sequential\(Linear, Tanh, Linear\).*is needed"),
    (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 1)), "BatchNorm1d"),
    (nn.Sequential(nn.Conv1d(3, 4, 1), nn.ReLU(), nn.Linear(4, 1)), "Conv1d"),
    (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)), r"head\(model, loader\)"),
    (nn.Sequential(), "nothing"),
    (nn.Linear(3, 1), "not a plain torch.nn.Sequential"),
    (Custom(), "forward pass cannot be read off"),
    (Disguised(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), "not a plain"),
    (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 1)), "gives 4 features but the second takes 5"),
    (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3)), r"3 logits \(3 classes\); two classes are needed"),
    (nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(1.5), nn.Linear(4, 1, bias=False)), r"outside \[0, 1\]"),
    (nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(-0.1), nn.Linear(4, 1, bias=False)), r"outside \[0, 1\]"),
    ({"a.weight": torch.ones(4, 3), "b.weight": torch.ones(3, 4)}, r"3 logits \(3 classes\)"),
    ({"a.weight": torch.ones(4, 3)}, "exactly two weight matrices"),
    ({"a": torch.ones(4, 3), "b": torch.ones(4, 4), "c": torch.ones(1, 4)}, "not 3"),
    ({}, "holds nothing"),
    ({"a.weight": torch.ones(4, 3), "b.weight": torch.ones(1, 5)}, "do not chain"),
    ({"a.weight": torch.ones(4, 3), "b.weight": torch.ones(1, 4), "bn.running_mean": torch.ones(4)}, "running_mean"),
    ({"a.weight": torch.ones(4, 3), "a.bias": torch.ones(3), "b.weight": torch.ones(1, 4)}, r"a.bias has shape \(3,\)"),
    ({"a.weight": torch.ones(4, 3, dtype=torch.complex64), "b.weight": torch.ones(1, 4)}, "complex64"),
    ({"a.weight": "hello", "b.weight": torch.ones(1, 4)}, "is a str, not an array"),
    ({"a.weight": torch.full((4, 3), float("nan")), "b.weight": torch.ones(1, 4)}, "finite"),
    (3, "not int"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_refused_with_the_reason(source, message):
    with pytest.raises(rf.ProblemError, match=message):
        rf.from_torch(source)


def test_contradicting_slopes_are_refused():
    with pytest.raises(rf.ProblemError, match=r"contradicts the LeakyReLU of slope 0.1"):
        rf.from_torch(sequential(activation=nn.LeakyReLU(0.1)), slope=0.2)
    with pytest.raises(rf.ProblemError, match=r"outside \[0, 1\]"):
        rf.from_torch(sequential().state_dict(), slope=-1)


def test_a_pickle_that_is_no_state_dict_is_refused_and_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "sprung",)

    (tmp_path / "trap.pt").write_bytes(pickle.dumps(Trap()))
    torch.save(Trap(), tmp_path / "zipped.pt")
    torch.save(sequential(), tmp_path / "whole.pt")
    for name in ("trap.pt", "zipped.pt", "whole.pt"):
        with pytest.raises(rf.ProblemError, match=r"never executed here.*state_dict\(\)"):
            rf.from_torch(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("content", [[1, 2], {"epoch": 3}, {"a": torch.ones(2, 2), "b": 3}, torch.ones(3)])
def test_files_without_a_state_dict(tmp_path, content):
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(rf.ProblemError, match=r"no state dict but holds .*torch.save\(model.state_dict"):
        rf.from_torch(tmp_path / "x.pt")


def test_files_that_are_no_checkpoints(tmp_path):
    (tmp_path / "empty.pt").write_bytes(b"")
    (tmp_path / "text.pt").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "net.npz", W=np.ones((2, 2)))
    torch.save(sequential().state_dict(), tmp_path / "cut.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "cut.pt").read_bytes()[:300])
    for name in ("empty.pt", "text.pt", "net.npz", "cut.pt"):
        with pytest.raises(rf.ProblemError, match=r"torch.save\(model.state_dict"):
            rf.from_torch(tmp_path / name)
    with pytest.raises(rf.ProblemError, match="there is no file"):
        rf.from_torch(tmp_path / "absent.pt")
    with pytest.raises(rf.ProblemError, match="is a directory"):
        rf.from_torch(tmp_path)


# -- with data -----------------------------------------------------------------------------------------------


def test_the_constant_feature_comes_with_the_bias():
    data = rf.Dataset([[1.0, 2.0, 0.5], [-1.0, 1.0, 0.0]], [1, -1])
    model = sequential()
    problem = problem_from_torch(model, data, reduction="sum")
    assert problem.data == data.with_bias(1.0)
    assert problem.reduction == "sum"
    assert problem_from_torch(model, data.with_bias(1.0), reduction="sum") == problem
    assert problem_from_torch(sequential(bias=False), data).data == data
    f = model(torch.tensor(data.X.tolist(), dtype=torch.float64)).detach().numpy()[:, 0]
    assert np.abs(problem.net.margins(problem.data) - data.y * f).max() < 1e-12


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d", [2, 4, 5])
def test_wrong_feature_dimension(d, bias):
    data = rf.Dataset(2 * np.ones((1, d)), [1])
    with pytest.raises(rf.ProblemError, match=f"dimension {d} but the model takes 3"):
        problem_from_torch(sequential(bias=bias), data)
