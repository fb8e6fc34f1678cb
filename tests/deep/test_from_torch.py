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


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_a_checkpoint_of_a_training_script(tmp_path, key):
    model = sequential()
    torch.save({"epoch": 3, key: model.state_dict(), "note": "x"}, tmp_path / "model.pt")
    assert rf.from_torch(tmp_path / "model.pt", slope=0) == rf.from_torch(model)


def test_names_and_order_of_a_state_dict_do_not_matter():
    state = sequential(d=3, p=4).state_dict()
    renamed = {"fc2.weight": state["2.weight"], "fc1.bias": state["0.bias"], "fc1.weight": state["0.weight"]}
    assert rf.from_torch(renamed, slope=0) == rf.from_torch(state, slope=0)
    plain = {"W": state["0.weight"], "a": state["2.weight"]}
    assert np.array_equal(rf.from_torch(plain, slope=0).W, state["0.weight"].numpy())


def test_where_both_orders_chain_the_order_of_the_entries_counts():
    first, last = [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 9.0]]
    net = rf.from_torch({"0.weight": first, "2.weight": last}, slope=0)
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


def by_hand(model, X, slope, dtype):
    """The forward pass written out once more, without torch: c + sum_j a_j max(z, slope z), in long doubles."""
    W, b, out, c = (
        None if part is None else part.detach().double().numpy().astype(np.longdouble)
        for part in (model[0].weight, model[0].bias, model[2].weight, model[2].bias)
    )
    z = X.astype(dtype).astype(np.longdouble) @ W.T + (0 if b is None else b)
    logits = np.maximum(z, slope * z) @ out.T + (0 if c is None else c)
    return logits[:, 0] if len(out) == 1 else logits[:, 1] - logits[:, 0]


@settings(deadline=None, max_examples=60)
@given(
    d=st.integers(1, 6),
    p=st.integers(1, 7),
    k=st.integers(1, 2),
    slope=st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    bias=st.booleans(),
    single=st.booleans(),
    size=st.sampled_from([1.0, 1e-6, 1e6]),
    seed=st.integers(0, 10**6),
)
def test_biases_are_represented_exactly(d, p, k, slope, bias, single, size, seed):
    model = sequential(d, p, k, nn.LeakyReLU(slope), bias, last_bias=True, seed=seed)
    with torch.no_grad():
        model[2].bias.mul_(size)
    if single:
        model = model.float()
    X = np.random.default_rng(seed).normal(size=(9, d)).astype(np.float32 if single else np.float64)
    logits = model(torch.as_tensor(X)).detach().double().numpy()
    theirs = logits[:, 0] if k == 1 else logits[:, 1] - logits[:, 0]
    net = rf.from_torch(model)
    ours = net.outputs(with_ones(X.astype(np.float64)))
    # The size of what is added up, in units of whose rounding the three ways may differ.
    terms = np.abs(net.activate(net.preactivations(with_ones(np.abs(X))))) @ np.abs(net.a) + np.abs(logits).sum(axis=1)
    terms += np.linalg.norm(with_ones(X), axis=1) * (np.linalg.norm(net.W, axis=1) @ np.abs(net.a))
    assert (np.abs(ours - by_hand(model, X, slope, X.dtype)) <= 1e-14 * terms).all()
    assert (np.abs(ours - theirs) <= (1e-5 if single else 1e-14) * terms).all()
    assert net.d == d + 1
    assert np.count_nonzero(net.W[-1]) == 1
    assert abs(net.a[-1]) == net.W[-1, -1]  # balanced: the shortest such neuron


def test_a_last_bias_alone_brings_the_constant_feature():
    data = rf.Dataset([[1.0, 2.0, 0.5], [-1.0, 1.0, 0.0]], [1, -1])
    model = sequential(bias=False, last_bias=True)
    problem = problem_from_torch(model, data)
    assert problem.data == data.with_bias(1.0)
    assert problem.net.p == 5
    assert not problem.net.W[:4, -1].any()
    f = model(torch.tensor(data.X.tolist(), dtype=torch.float64)).detach().numpy()[:, 0]
    assert np.abs(problem.net.margins(problem.data) - data.y * f).max() < 1e-14


def test_the_constant_feature_is_asked_for_by_name():
    data = rf.Dataset([[1.0, 2.0, 0.5], [-1.0, 1.0, 0.0]], [1, -1])
    for use in (rf.Problem, rf.kkt, lambda data, net: net.margins(data)):
        with pytest.raises(rf.ProblemError, match=r"bias.*with_bias\(1\.0\)|bias, append a column of ones"):
            use(data, rf.from_torch(sequential()))


def test_a_last_bias_that_says_nothing_is_no_bias():
    one, two = sequential(last_bias=True), sequential(k=2, last_bias=True)
    with torch.no_grad():
        one[2].bias.zero_()
        two[2].bias.fill_(0.7)  # the same for both logits: their difference does not change
    assert rf.from_torch(one).p == rf.from_torch(two).p == 4
    assert rf.from_torch(sequential(bias=False, last_bias=False)).d == 3


# -- refusals ------------------------------------------------------------------------------------------------


class Custom(nn.Module):
    def __init__(self, activation, before=None):
        super().__init__()
        self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 1)
        self.activation, self.before = activation, before or (lambda x: x)

    def forward(self, x):
        return self.two(self.activation(self.one(self.before(x))))


class Disguised(nn.Sequential):
    def forward(self, x):
        return super().forward(x) ** 2


REFUSED = [
    (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), r"Sequential\(Linear, Tanh, Linear\).*is needed"),
    (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 1)), "BatchNorm1d"),
    (nn.Sequential(nn.Conv1d(3, 4, 1), nn.ReLU(), nn.Linear(4, 1)), "Conv1d"),
    (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)), r"head\(model, loader\)"),
    (nn.Sequential(), "nothing"),
    (nn.Linear(3, 1), r"has 1 Linear layer\(s\)"),
    (nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1)), "GELU is none of these"),
    (nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1)), "Sigmoid is none of these"),
    (nn.Sequential(nn.Linear(3, 4), nn.ReLU6(), nn.Linear(4, 1)), "ReLU6 is none of these"),
    (nn.Sequential(nn.Linear(3, 4), nn.PReLU(), nn.Linear(4, 1)), "PReLU learns its slope"),
    (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)), "fuse_linear_bn_eval"),
    (nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 1)), "lazy"),
    (Custom(torch.sin), "something other than a ReLU or leaky ReLU"),
    (Custom(nn.functional.relu6), "something other than a ReLU or leaky ReLU"),
    (Custom(nn.functional.softplus), "something other than a ReLU or leaky ReLU"),
    (Custom(nn.PReLU()), "PReLU learns its slope"),
    (Custom(lambda z: torch.relu(2 * z)), "something other than"),
    (Custom(torch.relu, before=torch.tanh), "does more to its inputs"),
    (Disguised(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), "not that of its last Linear layer"),
    (nn.Identity(), "no Linear layer"),
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
    ({"a.weight": torch.ones(4, 3, dtype=torch.bool), "b.weight": torch.ones(1, 4)}, "dtype torch.bool"),
    ({"a.weight": torch.ones(4, 3).to_sparse(), "b.weight": torch.ones(1, 4)}, "to_dense"),
    ({"a.weight": torch.ones(4, 3, device="meta"), "b.weight": torch.ones(1, 4)}, "no values"),
    (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).to("meta"), "'meta', without values"),
    ({"a.weight": "hello", "b.weight": torch.ones(1, 4)}, "is a str, not an array"),
    ({"a.weight": torch.full((4, 3), float("nan")), "b.weight": torch.ones(1, 4)}, "finite"),
    (3, "not int"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_refused_with_the_reason(source, message):
    with pytest.raises(rf.ProblemError, match=message):
        rf.from_torch(source, slope=0.0 if isinstance(source, dict) else None)


def test_a_model_with_a_forward_pass_of_its_own():
    for activation, slope in ((torch.relu, 0.0), (nn.LeakyReLU(0.2), 0.2), (lambda z: torch.maximum(z, z / 4), 0.25)):
        torch.manual_seed(1)
        model = Custom(activation)
        same = nn.Sequential(model.one, nn.LeakyReLU(slope), model.two)
        assert rf.from_torch(model) == rf.from_torch(same)


def test_what_follows_the_logits_does_not_matter():
    one, two = sequential(last_bias=True), sequential(k=2)
    assert rf.from_torch(nn.Sequential(*one, nn.Sigmoid())) == rf.from_torch(one)
    assert rf.from_torch(nn.Sequential(*two, nn.LogSoftmax(1))) == rf.from_torch(two)


def test_a_state_dict_needs_the_slope(tmp_path):
    tanh = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    torch.save(tanh.state_dict(), tmp_path / "tanh.pt")
    for source in (tanh.state_dict(), tmp_path / "tanh.pt"):
        with pytest.raises(rf.ProblemError, match=r"does not tell the activation.*slope=0 \(--slope 0\) for ReLU"):
            rf.from_torch(source)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TorchScript as such
def test_a_program_is_not_run(tmp_path):
    torch.jit.save(torch.jit.trace(sequential(), torch.zeros(1, 3).double()), tmp_path / "script.pt")
    with pytest.raises(rf.ProblemError, match=r"TorchScript.*torch.jit.load\('script.pt'\).state_dict\(\)"):
        rf.from_torch(tmp_path / "script.pt", slope=0)


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
    data = rf.Dataset(np.arange(2.0, 2 + 2 * d).reshape(2, d), [1, -1])
    with pytest.raises(rf.ProblemError, match=f"dimension {d} but the model takes 3"):
        problem_from_torch(sequential(bias=bias), data)


@pytest.mark.parametrize(("at", "value"), [(0, 1.0), (3, 0.1)])
def test_a_constant_column_that_is_no_bias_of_the_model(at, value):
    X = np.insert(np.random.default_rng(0).normal(size=(4, 3)), at, value, axis=1)
    for bias, words in ((True, "make it the last and 1"), (False, "leave it out")):
        with pytest.raises(rf.ProblemError, match=f"column {at} is {value:g} at every point.*{words}"):
            problem_from_torch(sequential(bias=bias), rf.Dataset(X, [1, -1, 1, -1]))
