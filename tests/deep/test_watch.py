"""``watch``: a PyTorch loop seen from outside."""

import csv
import gc
import json
import math
import signal
import subprocess
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import reluflow as rf

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0 runs these tests")
nn = torch.nn

POINTS = [[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]]
SIGNS = [1.0, 1.0, -1.0, -1.0]


def two_layers(d=2, p=6, k=1, activation=None, bias=False, last_bias=False, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(d, p, bias), activation or nn.ReLU(), nn.Linear(p, k, last_bias)).to(dtype)


def data(dtype=torch.float64):
    return torch.tensor(POINTS, dtype=dtype), torch.tensor(SIGNS, dtype=dtype)


def loss_of(model, X, y):
    return nn.functional.softplus(-y * model(X)[:, 0]).mean()


def train(model, optimizer, X, y, steps, after=lambda: None):
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, X, y).backward()
        optimizer.step()
        after()


def test_plain_descent_is_what_descend_does():
    """The second way to every number: our own gradient descent from the same start."""
    model, (X, y) = two_layers(), data()
    start = rf.from_torch(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    with rf.watch(model, X, y, every=10, batch=4) as seen:
        train(model, optimizer, X, y, 40)
    run = seen.trajectory()
    ours = rf.descend(run.problem, step=0.3, steps=40, record=[10, 20, 30], progress=False)
    assert run.problem.net == start
    assert (run.method, run.settings["iteration"]) == ("gd", ours.settings["iteration"])
    assert run.time == pytest.approx(ours.time, abs=1e-12)
    for name in ("log_loss", "directions", "log_norms", "log_outs"):
        assert np.abs(getattr(run, name) - getattr(ours, name)).max() < 1e-10, name
    final = seen.row(-1)
    table = ours.to_pandas().records.iloc[-1]
    shared = set(final) & set(table.index)
    assert len(shared) > 12
    for name in shared - {"log_loss"}:
        assert final[name] == pytest.approx(table[name], abs=1e-7), name


def test_the_loss_and_the_gradient_are_those_of_torch():
    model, (X, y) = two_layers(bias=True, activation=nn.LeakyReLU(0.2)), data()
    with rf.watch(model, X, y) as seen:
        pass
    loss = loss_of(model, X, y)
    row = seen.row(0)
    assert row["log_loss"] == pytest.approx(math.log(loss.item()), abs=1e-12)
    loss.backward()
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()
    fall = -torch.cat([p.grad.flatten() for p in model.parameters()]).numpy()
    cosine = weights @ fall / np.linalg.norm(weights) / np.linalg.norm(fall)
    assert row["kkt_sine"] == pytest.approx(math.sqrt(1 - cosine**2), abs=1e-9)
    out = model(X)[:, 0].detach().numpy() * np.array(SIGNS)
    assert row["margin"] == pytest.approx(out.min(), abs=1e-12)
    assert row["accuracy"] == (out > 0).mean()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "torch SGD with momentum"),
        (lambda p: torch.optim.Adam(p, lr=0.01), "torch Adam"),
        (lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1), "torch AdamW with weight_decay"),
    ],
)
def test_other_optimizers_and_schedules(make, name):
    model, (X, y) = two_layers(bias=True, dtype=torch.float32), data(torch.float32)
    optimizer = make(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.5)
    first = optimizer.param_groups[0]["lr"]
    with rf.watch(model, X, y, every=7) as seen:
        train(model, optimizer, X, y, 20, schedule.step)
    run = seen.trajectory()
    assert run.method == name
    assert run.settings["iteration"] == [0, 7, 14, 20]
    assert run.time[-1] == pytest.approx(10 * first + 10 * first / 2)
    assert (run.settings["schedule"], run.settings["step"], run.settings["dtype"]) == ("changing", None, "float32")
    assert np.array_equal(run.final.W[:, -1] * np.exp(run.final.log_scale), as_arrays(model[0].bias)) or np.allclose(
        run.W[-1][:, -1], as_arrays(model[0].bias), rtol=1e-12
    )
    assert not any(found.contradicts for found in seen.monitor())


def as_arrays(tensor):
    return tensor.detach().double().numpy()


def test_claims_about_descent_speak():
    """SBG-T4.1 is about SGD with one sample and a frozen second layer +v, -v."""
    d, p, v = 2, 6, 0.5
    model = two_layers(d, p, activation=nn.LeakyReLU(0.5))
    with torch.no_grad():
        model[2].weight.copy_(torch.tensor([[v] * 3 + [-v] * 3]))
        model[0].weight.mul_(0.01)
    model[2].weight.requires_grad_(False)
    X, y = data()
    optimizer = torch.optim.SGD(model[:1].parameters(), lr=0.05)
    with rf.watch(model, X, y, every=1, batch=1) as seen:
        for k in range(40):
            train(model, optimizer, X[k % 4 : k % 4 + 1], y[k % 4 : k % 4 + 1], 1)
    run = seen.trajectory()
    assert (run.problem.train, run.method) == ("first", "sgd")
    spoken = seen.monitor(claim="SBG-T4.1")
    assert any(found.consistent and "40 single steps" in found.text for found in spoken)


def test_batches_of_a_loader_and_a_fixed_set():
    model, (X, y) = two_layers(bias=True, dtype=torch.float32), data(torch.float32)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, (y > 0).float()), batch_size=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rf.watch(model, loader, every="call") as seen:
        for _ in range(5):
            for inputs, labels in loader:
                optimizer.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(model(inputs)[:, 0], labels).backward()
                optimizer.step()
            seen()
    assert seen.trajectory().settings["iteration"] == [0, 2, 4, 6, 8, 10]
    assert np.array_equal(seen.problem().data.X[:, :2], np.array(POINTS))


def test_two_logits_and_labels_of_any_kind():
    model, (X, _) = two_layers(k=2, bias=True), data()
    with rf.watch(model, X, torch.tensor([7, 7, 3, 3]), labels={3: -1, 7: 1}) as seen:
        pass
    out = model(X).detach().numpy()
    expected = (out[:, 1] - out[:, 0]) * np.array(SIGNS)
    assert seen.row(0)["margin"] == pytest.approx(expected.min(), abs=1e-12)


def test_updates_by_hand():
    model, (X, y) = two_layers(), data()
    with rf.watch(model, X, y, every=2) as seen:
        for _ in range(6):
            loss_of(model, X, y).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
            seen.step(0.1)
    run = seen.trajectory()
    assert run.settings["iteration"] == [0, 2, 4, 6]
    assert run.time == pytest.approx([0, 0.2, 0.4, 0.6])
    with rf.watch(model, X, y) as seen:
        seen()
        seen()
    assert seen.trajectory().settings["iteration"] == [0, 1, 2]


def test_the_optimizers_of_other_models_do_not_count():
    model, other, (X, y) = two_layers(), two_layers(seed=1), data()
    ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other))
    with rf.watch(model, X, y, every=1) as seen:
        train(other, theirs, X, y, 3)
        train(model, ours, X, y, 2)
    train(model, ours, X, y, 2)
    assert seen.steps == 2


# -- heads ------------------------------------------------------------------------------------------


def deeper(seed=0):
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(2, 5), nn.LeakyReLU(0.1))
    head = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1, bias=False))
    return nn.Sequential(body, head).double()


def test_the_head_of_a_deeper_model_on_features_that_move():
    model, (X, y) = deeper(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rf.watch(model, X, y, head="1", every=10) as seen:
        train(model, optimizer, X, y, 20)
    assert seen.moved
    for k in (0, 2):
        problem = seen.problem(k)
        assert problem.data.d == 6
        assert seen.row(k)["margin"] == pytest.approx(problem.net.margins(problem.data).min())
    out = model(X)[:, 0].detach().numpy() * np.array(SIGNS)
    assert seen.row(-1)["margin"] == pytest.approx(out.min(), abs=1e-12)
    assert list(seen.table().step) == [0, 10, 20]
    with pytest.raises(rf.ProblemError, match=r"points that the head sees moved.*frozen"):
        seen.trajectory()


def test_a_head_on_frozen_features_is_a_run():
    model, (X, y) = deeper(), data()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    with rf.watch(model, X, y, head=True, every=10, batch=4) as seen:
        train(model, optimizer, X, y, 20)
    run = seen.trajectory()
    ours = rf.descend(run.problem, step=0.1, steps=20, record=[10], progress=False)
    assert np.abs(run.log_loss - ours.log_loss).max() < 1e-10


def test_dropout_and_training_mode_are_left_alone():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 1, bias=False)).double()
    X, y = data()
    model.train()
    with rf.watch(model, X, y, every=1) as seen:
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), X, y, 3)
        assert model[2].training
    assert len(seen) == 4


class OwnForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(16, 5), nn.Linear(5, 1, bias=False)

    def forward(self, x):
        return self.two(torch.relu(self.one(x.flatten(1)))).squeeze(-1)


def sequence(*layers, dtype=torch.float32):
    return lambda: nn.Sequential(*(make() for make in layers)).to(dtype)


WIDE = (lambda: nn.Linear(16, 5), nn.ReLU, lambda: nn.Linear(5, 1, bias=False))
MODELS = {
    "images": sequence(nn.Flatten, *WIDE),
    "own forward": OwnForward,
    "a sigmoid at the end": sequence(nn.Flatten, *WIDE, nn.Sigmoid),
    "bfloat16": sequence(nn.Flatten, *WIDE, dtype=torch.bfloat16),
    "compiled": lambda: torch.compile(OwnForward(), backend="eager"),
    "convolutions and batch norm": sequence(
        lambda: nn.Conv2d(1, 2, 3), lambda: nn.BatchNorm2d(2), nn.ReLU, nn.Flatten,
        lambda: nn.Linear(8, 5), lambda: nn.LeakyReLU(0.1), lambda: nn.Linear(5, 2),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:the second Linear layer has a bias")
@pytest.mark.parametrize("name", MODELS)
def test_models_of_many_kinds(name):
    torch.manual_seed(0)
    model, X = MODELS[name](), torch.randn(9, 1, 4, 4)
    y = X[:, 0, 0, 0] > 0
    with rf.watch(model, X, y, head="conv" in name) as seen:
        pass
    problem = seen.problem(0)
    with torch.no_grad():
        model.eval()
        out = model(X.to(next(model.parameters()).dtype)).double().reshape(9, -1)
    f = out[:, 0] if out.shape[1] == 1 else out[:, 1] - out[:, 0]
    f = torch.logit(f) if "sigmoid" in name else f
    rough = 0.05 if name == "bfloat16" else 1e-5
    assert problem.net.outputs(problem.data.X) == pytest.approx(f.numpy(), abs=rough)
    assert np.array_equal(problem.data.y, np.where(y, 1.0, -1.0))


# -- cheap and safe -----------------------------------------------------------------------------------


def test_no_graph_is_kept_and_a_forgotten_watch_goes():
    model, (X, y) = two_layers(), data()
    seen = rf.watch(model, X, y, every=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, X, y, 3)
    assert not any(part.requires_grad for snap in seen._snaps for part in snap.weights if part is not None)
    gone = weakref.ref(seen)
    del seen
    gc.collect()
    assert gone() is None
    train(model, optimizer, X, y, 1)


def test_records_grow_like_a_logarithm_and_memory_is_bounded(monkeypatch):
    from reluflow.deep import watched

    model, (X, y) = two_layers(), data()
    monkeypatch.setattr(watched, "_SHARE", math.inf)  # whatever the machine is doing
    with rf.watch(model, X, y) as seen:
        for _ in range(1000):
            seen.step(0.1)
    expected = 20 + math.log(1000 / 20) / math.log(1.05)
    assert 0.7 * expected < len(seen) < 1.3 * expected
    monkeypatch.setattr(watched, "_MEMORY", 20 * sum(p.nbytes for p in model.parameters()))
    with rf.watch(model, X, y, every=1) as seen:
        for _ in range(200):
            seen.step(0.1)
    assert len(seen) <= 21
    assert [seen._snaps[0].step, seen._snaps[-1].step] == [0, 200]
    assert "every second one was dropped" in repr(seen)


def test_it_keeps_to_its_share_of_the_time(monkeypatch):
    """With a clock of our own: a step takes 1, a record 10; at 7 % a record may come after every 143 steps or so."""
    from reluflow.deep import watched

    clock = [0.0]
    monkeypatch.setattr(watched.time, "perf_counter", lambda: clock[0])
    model, (X, y) = two_layers(), data()
    seen = rf.watch(model, X, y)
    record = seen._record

    def slow():
        clock[0] += 10.0
        record()

    monkeypatch.setattr(seen, "_record", slow)
    for _ in range(2000):
        clock[0] += 1.0
        seen.step(0.1)
    assert seen.overhead < 0.1
    assert len(seen) > 8


def test_threads():
    model, (X, y) = two_layers(), data()
    with rf.watch(model, X, y, every=1) as seen:
        workers = [threading.Thread(target=lambda: [seen.step(0.1) for _ in range(50)]) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert seen.steps == 200
    assert [snap.step for snap in seen._snaps] == sorted({snap.step for snap in seen._snaps})
    assert seen.trajectory().time[-1] == pytest.approx(20.0)


def test_training_that_diverges_is_not_stopped_by_us():
    model, (X, y) = two_layers(), data()
    with rf.watch(model, X, y, every=1) as seen:
        seen.step(0.1)
        with torch.no_grad():
            model[0].weight[0, 0] = float("nan")
        with pytest.warns(UserWarning, match="no longer finite after step 2"):
            seen.step(0.1)
        seen.step(0.1)
    assert len(seen.trajectory()) == 2


# -- rows as it goes ------------------------------------------------------------------------------------


def test_files_hold_every_row_with_every_digit(tmp_path):
    model, (X, y) = two_layers(bias=True), data()
    got = []
    logs = [tmp_path / "run.csv", str(tmp_path / "run.jsonl"), tmp_path / "run.tsv", got.append]
    with rf.watch(model, X, y, every=5, log=logs) as seen:
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), X, y, 20)
    rows = [seen.row(k) for k in range(len(seen))]
    assert got == rows
    assert len(rows) == 5
    table = list(csv.DictReader((tmp_path / "run.csv").read_text().splitlines()))
    assert [{name: float(value) for name, value in row.items()} for row in table] == rows
    assert [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()] == rows
    assert (tmp_path / "run.tsv").read_text() == (tmp_path / "run.csv").read_text().replace(",", "\t")


KILLED = """
import os, signal, sys, torch, reluflow as rf
model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1, bias=False))
X, y = torch.tensor([[2.0, 1.0], [-3.0, -1.0]]), torch.tensor([1.0, 0.0])
seen = rf.watch(model, X, y, every=1, log=sys.argv[1])
for _ in range(5):
    seen.step(0.1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_rows_survive_a_kill(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "run.csv")], capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [row["step"] for row in csv.DictReader((tmp_path / "run.csv").read_text().splitlines())] == list("012345")


def test_a_log_that_fails_ends_itself_and_not_the_training():
    model, (X, y) = two_layers(), data()
    good = []

    def bad(row):
        if row["step"] == 2:
            raise OSError("the disk is full")

    with rf.watch(model, X, y, every=1, log=[bad, good.append]) as seen:
        seen.step(0.1)
        with pytest.warns(UserWarning, match="the disk is full"):
            seen.step(0.1)
        seen.step(0.1)
        seen.step(0.1)
    assert [row["step"] for row in good] == [0, 1, 2, 3, 4]


def test_tensorboard_gets_every_curve(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed: pip install tensorboard runs this test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        from reluflow.deep import TensorBoardLog

        model, (X, y) = two_layers(), data()
        with rf.watch(model, X, y, every=1, log=TensorBoardLog(tmp_path)) as seen:
            for _ in range(3):
                seen.step(0.1)
        events = EventAccumulator(str(tmp_path)).Reload()
    assert {f"reluflow/{name}" for name in seen.row(0) if name != "step"} == set(events.Tags()["scalars"])
    found = events.Scalars("reluflow/log_norm")
    assert [event.step for event in found] == [0, 1, 2, 3]
    assert found[0].value == pytest.approx(seen.row(0)["log_norm"], rel=1e-6)


def test_weights_and_biases_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="Weights & Biases is not installed: pip install wandb runs this test")
    from reluflow.deep import WandbLog

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(rf.ProblemError, match=r"wandb\.init"):
        WandbLog()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = wandb.init(project="reluflow", dir=tmp_path, mode="offline")
        model, (X, y) = two_layers(), data()
        with rf.watch(model, X, y, every=1, log=WandbLog()) as seen:
            seen.step(0.1)
        kept = dict(run.summary)
        run.finish()
    assert kept["reluflow/step"] == 1
    assert kept["reluflow/normalized_margin"] == pytest.approx(seen.row(-1)["normalized_margin"])


def test_lightning(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed: pip install lightning")
    from reluflow.deep import lightning_callback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = two_layers(dtype=torch.float32)

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, _):
            return loss_of(self, *batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    X, y = data(torch.float32)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=2)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    callback = lightning_callback(X, y, of="net", every=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", callbacks=[callback], **quiet)
        trainer.fit(Module(), loader)
    assert callback.watch.trajectory().settings["iteration"] == [0, 2, 4, 6]
    assert callback.watch.trajectory().time[-1] == pytest.approx(0.6)


# -- bad uses ---------------------------------------------------------------------------------------------


def wide(k):
    return lambda: rf.watch(two_layers(k=k), *data())


def nan_in_x():
    X, y = data()
    X[1, 1] = float("nan")
    return rf.watch(two_layers(), X, y)


def frozen():
    return rf.watch(two_layers().requires_grad_(False), *data())


X, Y = data()
BAD = {
    "three classes": (lambda: rf.watch(two_layers(), X, torch.tensor([0, 1, 2, 1])), "3 different values.*Keep two"),
    "three logits": (wide(3), "3 logits.*two classes are needed"),
    "NaN": (nan_in_x, r"X\[1, 1\] is nan.*Drop or repair"),
    "three linear layers": (lambda: rf.watch(deeper(), X, Y), "runs 3 Linear layers.*head=True"),
    "no such head": (lambda: rf.watch(deeper(), X, Y, head="top"), "no submodule 'top'; it has '0', '0.0'"),
    "a head elsewhere": (lambda: rf.watch(deeper(), X, Y, head="0"), "not in '0'; head=True"),
    "requires_grad off": (frozen, r"requires_grad is off for 0.weight.*requires_grad_\(True\)"),
    "empty batch": (lambda: rf.watch(two_layers(), X[:0], Y[:0]), "empty: 0 samples.*at least one"),
    "empty loader": (lambda: rf.watch(two_layers(), []), "loader is empty.*at least one batch"),
    "soft labels": (lambda: rf.watch(two_layers(), X, torch.tensor([0.9, 1.0, 0.0, 0.1])), "labels must be -1 or"),
    "one-hot labels": (lambda: rf.watch(two_layers(), X, torch.eye(4)), r"shape \(4, 4\).*argmax"),
    "width 0": (lambda: rf.watch(two_layers(p=0), X, Y), "0 neurons and 2 inputs.*width at least 1"),
    "no model": (lambda: rf.watch("model.pt", X, Y), "takes a torch.nn.Module, not str"),
    "one layer": (lambda: rf.watch(nn.Linear(2, 1).double(), X, Y), "1 Linear layer"),
    "other inputs": (lambda: rf.watch(two_layers(d=3), X, Y), r"cannot take inputs of shape \(4, 2\)"),
    "tanh": (lambda: rf.watch(two_layers(activation=nn.Tanh()), X, Y), "something other than a ReLU"),
    "a zero point": (lambda: rf.watch(two_layers(), 0 * X, Y), "zero row"),
    "every": (lambda: rf.watch(two_layers(), X, Y, every=0), "every = 0: a number of steps from 1 on.*'call'"),
    "batch": (lambda: rf.watch(two_layers(), X, Y, batch=0), "batch = 0: .*from 1 on"),
    "log": (lambda: rf.watch(two_layers(), X, Y, log=3), r"log = 3 takes no rows; give a file"),
    "log ending": (lambda: rf.watch(two_layers(), X, Y, log="run.txt"), "ending is .txt, but one of .csv"),
    "towards": (lambda: rf.watch(two_layers(), X, Y, towards=([1.0], [0.0])), "two non-zero vectors of 2 entries"),
    "head": (lambda: rf.watch(two_layers(), X, Y, head=2), "True, False or the name"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("case", BAD)
def test_bad_uses_are_refused_with_the_remedy(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use, message = BAD[case]
    with pytest.raises((rf.ProblemError, rf.DataError), match=f"(?s){message}"):
        use()


def test_a_bias_in_the_second_layer_is_told_of_and_taken_along():
    model, (X, y) = two_layers(last_bias=True), data()
    with torch.no_grad():
        model[2].bias.zero_()
    with pytest.warns(UserWarning, match=r"second Linear layer has a bias.*one more neuron.*bias=False"):
        seen = rf.watch(model, X, y, every=1, batch=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, X, y, 3)
    seen.close()
    run = seen.trajectory()
    assert run.p == 7
    assert run.method == "torch SGD"  # one number is trained, where the network has two
    out = model(X)[:, 0].detach().numpy()
    assert run.final.outputs(run.problem.data.X) == pytest.approx(out, abs=1e-12)


def test_labels_0_and_1_as_floats_are_those_of_binary_cross_entropy():
    model, (X, y) = two_layers(), data()
    with rf.watch(model, X, (y > 0).double()) as seen:
        pass
    assert np.array_equal(seen.problem().data.y, SIGNS)


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    file = tmp_path / "run.csv"
    file.write_text("old\n")
    with pytest.raises(rf.ProblemError, match=r"there already.*name a new file"):
        rf.watch(two_layers(), X, Y, log=file)
    assert file.read_text() == "old\n"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_on_a_gpu():
    model, (X, y) = two_layers().cuda(), data()
    with rf.watch(model, X, y, every=1) as seen:
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), X.cuda(), y.cuda(), 3)
    assert len(seen.trajectory()) == 4
