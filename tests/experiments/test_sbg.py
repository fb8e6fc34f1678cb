"""The experiments of SBG: every check can fail, and what they share is right."""

import itertools

import numpy as np
import pytest

import reluflow as rf
from helpers.doctor import fill, put
from reluflow.dynamics import agreement, descend, flow
from reluflow.experiments.core.moments import at_times
from reluflow.experiments.sbg.common import spread_epochs, start, train
from reluflow.experiments.sbg.digits import look
from reluflow.experiments.sbg.f1 import linear_agreement
from reluflow.experiments.sbg.regimes import angle, largest_turn, rebuilt, regimes

NOT_SEPARABLE = {"samples": 100, "separable": False, "support": 9, "residual": 1e-17}

# -- the figures ------------------------------------------------------------------------------------------


def test_f1(trial):
    case = ("cases", "small"), ("cases", "large")
    trial(
        "SBG-F1",
        doctored={
            "small-accuracy": put(*case[0], "accuracy", value=0.995),
            "large-accuracy": put(*case[1], "accuracy", value=0.995),
            "small-boundary": put(*case[0], "agreement", value=0.99),
            "small-clusters": put(*case[0], "angles", value=[1.0, 20.0]),
            "large-boundary": put(*case[1], "agreement", value=0.999),
            "large-clusters": put(*case[1], "angles", value=[170.0, 30.0]),
            "flow-small": put(*case[0], "flow", "turn", value=3.0),
            "flow-large": put(*case[1], "flow", "turn", value=3.0),
        },
    )


def test_f3(trial):
    draw = ("draws", 0)
    numbers = trial(
        "SBG-F3",
        doctored={
            "premises": put(*draw, "margin_ratio", value=0.9),
            "boundary": put(*draw, "angles", value=[0.0, 0.0, 4.0]),
            "w": put(*draw, "angles", value=[4.0, 0.0, 0.0]),
            "u": put(*draw, "angles", value=[0.0, 1.0, 0.0]),
            "agreement": put(*draw, "shares", value=[1.0, 0.9]),
            "flow-same": put("first", "turn", value=2.0),
            "flow-limit": put("first", "flow", "farthest", value=1.0),
            "flow-agreement": put("first", "flow", "shares", value=[0.8, 1.0]),
        },
        # Half the points and half the epochs: fewer supports, and the direction is not decided yet.
        deviates=("u",),
    )
    # The prediction that is drawn is the one of a second solver for the same program.
    X, y = (np.asarray(numbers["first"][key]) for key in "Xy")
    slope = numbers["slope"]
    features = np.where((y > 0)[:, None], np.hstack([X, -slope * X]), np.hstack([slope * X, -X]))
    best = rf.max_margin(rf.Dataset(features, y)).w
    assert np.allclose(best, np.concatenate([numbers["first"]["w"], numbers["first"]["u"]]), atol=1e-7)


def test_f4(trial):
    trial(
        "SBG-F4",
        doctored={
            "leaky-sign": put("slopes", 3, "wrong_sign", value=1),
            "leaky-proved": put("slopes", 3, "linear", value=None),
            "relu-zero": put("slopes", 0, "zeros_in_quadrant", value=2600),
            "relu-elsewhere": put("slopes", 0, "wrong_sign", value=2551),
            "relu-nonlinear": put("slopes", 0, "evidence", value="numerical"),
        },
    )


def test_f5(trial):
    trial(
        "SBG-F5",
        doctored={
            "boundary": put("slopes", 2, "wrong_sign", value=3),
            "even-part": put("slopes", 2, "even_error", value=1e-6),
            "nonlinear": put("slopes", 2, "even_size", value=1e-3),
        },
    )


def test_f2(trial):
    small = ("cases", "small", "3/5")
    doctored = {
        "flow-gaussian": put("flow", "gaussian", "test", -1, value=0.2),
        "flow-0/1": put("flow", "0/1", "test", -1, value=0.2),
        "std-0.001": put("cases", "paper", "3/5", "test", "mean", -1, value=0.05),
        "premise-3/5": put("separable", "3/5", "all", value=NOT_SEPARABLE),
        "long-3/5": put(*small, "train", "mean", -1, value=0.5),
        "subset-3/5": put("cases", "subset", "3/5", "train", "mean", -1, value=0.5),
        "theorem": put(*small, "test_sign", "mean", 3, value=1.0),
        "theorem_r": put(*small, "test_sign", "mean", 3, value=1.0),
        "ladder-falls": put("ladder", "3/5", 0, "test", "mean", -1, value=0.9),
        "ladder-rises": put("ladder", "3/5", -1, "test", "mean", -1, value=0.1),
        "small-accuracy": fill("cases", "small", "0/1", "test_right", "mean", value=0.9),
        "large": put("cases", "large", "0/1", "test", "low", 3, value=0.1),
        "large-accuracy": fill("cases", "large", "0/1", "train_right", "mean", value=0.6),
    }
    for name, part in itertools.product(("gaussian", "0/1", "3/5"), ("train", "test")):
        doctored[f"small-{name}-{part}"] = fill("cases", "small", name, part, "mean", value=0.05)
        doctored[f"large-{name}-{part}"] = fill("cases", "large", name, f"{part}_sign", "mean", value=0.0)
    trial("SBG-F2", doctored=doctored)


def test_f6(trial):
    doctored = {"long-3/5": put("cases", "small", "3/5", "train", "mean", -1, value=0.5)}
    for name in ("0/1", "3/5", "1/7"):
        doctored[f"premise-{name}"] = put("separable", name, "all", value=NOT_SEPARABLE)
        for part in ("train", "test"):
            doctored[f"{name}-{part}"] = fill("cases", "small", name, part, "mean", value=0.05)
    for part in ("train", "test"):
        doctored[f"subset-{part}"] = fill("cases", "subset", "1/7", part, "mean", value=0.05)
    trial("SBG-F6", doctored=doctored)


def test_f7(trial):
    doctored = {
        "ratio-trend": put("cases", "small", "3/5", "ratio", "mean", 6, value=0.5),
        "angle-trend": put("cases", "small", "3/5", "angle", "mean", 6, value=50.0),
        "ratio-large": put("cases", "large", "gaussian", "ratio", "low", 2, value=0.1),
        "angle-large": put("cases", "large", "gaussian", "angle", "low", 2, value=10.0),
        "flow-gaussian": put("flow", "gaussian", "ratio", -1, value=1.0),
        "flow-0/1": put("flow", "0/1", "ratio", -1, value=1.0),
        "ratio-long-3/5": put("cases", "small", "3/5", "ratio", "mean", -1, value=0.1),
        "angle-long-3/5": put("cases", "small", "3/5", "angle", "mean", -1, value=10.0),
    }
    for name in ("gaussian", "0/1", "3/5", "1/7"):
        doctored[f"ratio-{name}"] = fill("cases", "small", name, "ratio", "mean", value=0.1)
        doctored[f"angle-{name}"] = fill("cases", "small", name, "angle", "mean", value=10.0)
    trial("SBG-F7", doctored=doctored)


def test_f8(trial):
    trial(
        "SBG-F8",
        doctored={
            "sgd-share-w": put("runs", 0, "sgd", "share_w", -1, value=0.98),
            "sgd-share-u": put("runs", 0, "sgd", "share_u", -1, value=0.98),
            "flow-share-w": put("runs", 0, "flow", "share_w", -1, value=0.98),
            "flow-share-u": put("runs", 0, "flow", "share_u", -1, value=0.98),
            "entrance": put("runs", 0, "sgd", "entrance", value="inf"),
            "flow-entrance": lambda numbers: numbers["runs"][0]["flow"].update(
                time=[1e3 * float(time) for time in numbers["runs"][0]["flow"]["time"]]
            ),
        },
    )


def test_f9(trial):
    trial(
        "SBG-F9",
        doctored={
            "accuracy": put("runs", 0, "accuracy", -1, value=40 / 41),
            "disagreements": put("runs", 0, "disagreements", -1, value=1.0),
            "share-u": put("runs", 0, "share_u", -1, value=0.9),
            "share-w": put("runs", 0, "share_w", -1, value=1.0),
            "outlier": put("first", "outlier_signs", value=[1, -1]),
            "flow-same": put("first", "turn", value=5.0),
            "not-a-limit": put("first", "consistent", value=True),
            "flow-late": put("first", "flow_limit", value=0.0),
            "ever-consistent": put("for_ever", "consistent", value=False),
            "ever-stays": put("for_ever", "inside", -1, value=False),
            "ever-share": put("for_ever", "share_w", -1, value=0.5),
            "ever-margin": put("for_ever", "margin", -1, value=0.5),
            "ever-directions": put("for_ever", "turn", value=1.0),
        },
    )


def test_figures_of_the_same_training_share_it():
    runs = [rf.experiments.experiment(f"SBG-F{k}") for k in (2, 6, 7)]
    assert len({one.run for one in runs}) == 1
    assert runs[0].settings() == runs[1].settings() == runs[2].settings()
    assert runs[0].settings(quick=True) == runs[1].settings(quick=True) == runs[2].settings(quick=True)


# -- what they share --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem():
    data = rf.make("antipodal_gaussians", n=20, seed=3)
    return start(data, 0.01, 1, {"width": 6, "slope": 0.3})


def test_training_is_plain_sgd(problem):
    """Each step is w += eta v g phi'(w.x) y x (or minus), on one sample at a time."""
    run = train(problem, 0.1, [0, 1, 3], seed=5)
    assert run.settings["iteration"] == [0, 20, 60]
    data = problem.data
    (W, a), slope = problem.net.weights(), problem.net.slope
    assert np.array_equal(a > 0, [True] * 3 + [False] * 3)
    assert np.allclose(np.abs(a), 1 / np.sqrt(6))
    for epoch in range(3):
        for i in np.random.default_rng((5, epoch)).permutation(20):
            z = W @ data.X[i]
            q = data.y[i] * (a @ np.where(z > 0, z, slope * z))
            W = W + np.outer(0.1 * a * np.where(z > 0, 1.0, slope) * data.y[i] / (1 + np.exp(q)), data.X[i])
    assert np.allclose(run.final.weights()[0], W, rtol=1e-9)


def test_training_stops_when_all_is_right_and_the_loss_small(problem):
    run = train(problem, 0.5, list(range(0, 400, 2)), seed=0, until_loss=0.05)
    q = [net.margins(problem.data) for net in run.networks()]
    enough = [bool(m.min() > 0 and np.log1p(np.exp(-m)).mean() < 0.05) for m in q]
    assert enough[-1]
    assert not any(enough[:-1])
    assert run.settings["stopped"] == "callback"


def test_sampled_flow_is_the_flow(problem):
    run = flow(problem, {"time": 3.0}, rtol=1e-9)
    times = [0.0, 0.3, 1.7]
    found = at_times(run, times)
    assert np.allclose(found.time, times)
    fine = descend(problem, step=1e-4, steps=17000, record=[0, 3000, 17000])
    # Euler steps of 1e-4 are off by about that.
    assert np.allclose(found.W, fine.W, atol=2e-4)
    assert np.allclose(found.log_loss, fine.log_loss, atol=2e-4)


def test_spread_epochs():
    assert spread_epochs(5, 10) == [0, 1, 2, 3, 4, 5]
    found = spread_epochs(2000, 30)
    assert found[0] == 0
    assert found[-1] == 2000
    assert len(found) <= 30
    assert all(b > a for a, b in itertools.pairwise(found))


def test_angles():
    turn = np.radians([1e-7, 30.0, 179.999])
    assert np.allclose(angle([2.0, 0.0], np.stack([np.cos(turn), np.sin(turn)], axis=1)), np.degrees(turn), rtol=1e-6)
    one, other = rebuilt([[1.0, 0.0], [0.0, 1.0]], 0.2), rebuilt([[5.0, 0.0], [1.0, 1.0]], 0.2)
    assert largest_turn(one, other) == pytest.approx(45.0)


def test_linear_agreement_against_a_grid_of_classifiers():
    rng = np.random.default_rng(0)
    net = rebuilt(rng.standard_normal((6, 2)), 0.1)
    turn = rng.uniform(0, 2 * np.pi, 20_000)
    X = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    sign = np.sign(net.outputs(X))
    normals = np.linspace(0, 2 * np.pi, 720)
    best = max((sign == np.sign(np.cos(turn - normal))).mean() for normal in normals)
    # 20 000 random directions: standard error 0.0035, and the maximum is of 720.
    assert linear_agreement(net) == pytest.approx(best, abs=0.015)
    assert linear_agreement(net) < 0.999


def test_regimes_and_look_agree_with_their_parts(problem):
    run = train(problem, 0.05, [0, 1, 2, 5, 20], seed=0)
    found = regimes(run)
    by_hand = [agreement(problem.data, net) for net in run.networks()]
    assert found["share_u"].tolist() == [one.share_u for one in by_hand]
    inside = [one.perfect for one in by_hand]
    first = len(inside) - list(itertools.takewhile(bool, inside[::-1])).count(True)
    assert found["entrance"] == (run.time[first] if first < len(inside) else np.inf)
    few = problem.data.subset(np.arange(7))
    seen = look(run, few)
    W = run.final.weights()[0]
    w, u = W[:3].mean(axis=0), W[3:].mean(axis=0)
    r = max(np.linalg.norm(W[:3] - w, axis=1).max(), np.linalg.norm(W[3:] - u, axis=1).max())
    assert seen["ratio"][-1] == pytest.approx(r / np.linalg.norm(w - u))
    X = problem.data.X
    outside = np.abs(X @ (w - u)) < 2 * r * np.linalg.norm(X, axis=1)
    assert seen["train"][-1] == pytest.approx(outside.mean())
    assert seen["test"][-1] == pytest.approx(outside[:7].mean())
    nearer = np.abs(X @ (w - u)) < r * np.linalg.norm(X, axis=1)
    assert seen["train_r"][-1] == pytest.approx(nearer.mean())
    other = np.sign(run.final.outputs(X)) != np.sign(X @ (w - u))
    assert seen["train_sign"][-1] == pytest.approx(other.mean())
    assert seen["test_right"][-1] == pytest.approx((run.final.margins(few) > 0).mean())
    assert seen["angle"][-1] == pytest.approx(run.measures.group_angles[-1].max())
