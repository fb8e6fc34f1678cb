"""Phuong & Lampert: quick runs, and every check seen to fail."""

import numpy as np
import pytest

from helpers.doctor import put
from reluflow import Dataset, Problem, descend, initialize, make
from reluflow.experiments import experiment
from reluflow.experiments.pl.common import check_rays, orthogonal_data, portrait
from reluflow.experiments.pl.two_layer import PARAMETERS

pytest.importorskip("torch")


def each(change):
    """Apply a change to every run of an experiment with seeds."""

    def changed(numbers):
        for one in numbers["runs"]:
            change(one)

    return changed


# -- two layers ---------------------------------------------------------------------------------------------


def test_f1(trial):
    def swapped(one):
        one["sgd"]["signs"] = [-s if k % 2 else s for k, s in enumerate(one["sgd"]["signs"])]

    numbers = trial(
        "PL-F1",
        doctored={
            "rank-first": each(put("sgd", "singular_values", 2, value=1.0)),
            "rank-second": each(put("sgd", "singular_values", 2, value=1.0)),
            "rays": each(swapped),
            "most": each(put("sgd", "share", value=0.4)),
            "energy": each(put("sgd", "energy", value=0.8)),
            "accuracy": each(put("sgd", "accuracy", value=0.99)),
            "separable": each(put("data", "separable", value=False)),
            "span": each(put("data", "span", value=True)),
            "flow-spectrum": each(put("flow", "singular_values", 0, value=1.0)),
            "flow-cosines": each(lambda one: one["flow"].update(correlations=[0.5] * len(one["flow"]["signs"]))),
        },
    )
    one = numbers["runs"][0]
    assert one["sgd"]["loss"] == pytest.approx(np.exp(one["curves"]["sgd"]["log_loss"][-1]), rel=1e-6)


def test_x1(trial):
    trial(
        "PL-X1",
        doctored={
            "limit": each(put("limit", "kind", value="undecided")),
            "all-one": each(put("limit", "correlations", 3, value=0.9999)),
            "dead": each(put("limit", "correlations", 3, value="nan")),
            "ratio": each(put("limit", "singular_values", 1, value=0.1)),
            "shares": each(lambda one: [group.update(share=0.5) for group in one["limit"]["groups"]]),
            "margin": each(put("limit", "margin", value=0.3)),
            "trapped": each(put("late", -1, "trapped", value=15)),
            "absorbing": each(put("late", -1, "trapped", value=15)),
            "growing": each(put("late", -1, "correlations", 0, value=0.5)),
            "rate": each(put("late", -1, "correlations", 0, value=0.97)),
            "late-cosines": each(put("late", -1, "correlations", 0, value=0.97)),
            "late-rank": each(put("late", -1, "singular_values", 2, value=10.0)),
            "late-ratio": each(put("late", -1, "singular_values", 1, value=10.0)),
            "late-growth": each(put("late", -1, "minus", value=10.0)),
        },
    )


def test_the_shares_of_the_limit_need_the_positive_group():
    """A group of the other sign must not be counted."""
    from reluflow.experiments.pl.x1 import check_positive

    groups = [{"sign": 1, "share": 0.25}, {"sign": -1, "share": 0.5}, {"sign": 1, "share": 0.25}]
    assert check_positive({"groups": groups}) == 0.5


@pytest.mark.parametrize("cosine", [-0.9, -0.3, 0.0])
def test_the_closed_form_of_the_ratio_is_that_of_a_matrix_of_two_groups(cosine):
    """W = u w+^T + z w-^T with |u|^2 |w+| = |z|^2 |w-| = const has the ratio of singular values of the closed form."""
    from reluflow.experiments.pl.x1 import check_closed

    rng = np.random.default_rng(3)
    plus, minus = 1.7, 0.6
    u, z = np.abs(rng.normal(size=(2, 4)))
    u, z = u / np.linalg.norm(u) / np.sqrt(plus), z / np.linalg.norm(z) / np.sqrt(minus)
    directions = np.array([[1.0, 0.0], [cosine, np.sqrt(1 - cosine**2)]])
    W = np.vstack([np.outer(u, plus * directions[0]), np.outer(z, minus * directions[1])])
    values = np.linalg.svd(W, compute_uv=False)
    form = check_closed({"data": {"lengths": [plus, minus], "cosine": cosine}})
    assert values[1] / values[0] == pytest.approx(form["ratio"], rel=1e-12)
    assert (W[:4] ** 2).sum() / (W**2).sum() == pytest.approx(form["share"], rel=1e-12)


def test_the_data_are_those_of_the_paper_and_miss_the_spanning_condition():
    data, facts = orthogonal_data(PARAMETERS["n"], PARAMETERS["d"], 0)
    z = np.where(np.arange(20) % 2, -1.0, 1.0)
    assert (data.y[:, None] * data.X > 0).all()
    assert (data.X @ z >= 0).all()
    gram = data.X @ data.X.T * np.outer(data.y, data.y)
    assert facts["separable"] == bool((gram > 0).all())
    assert not facts["span"]
    assert max(facts["ranks"]) < 20
    for sign, length, support in zip((1, -1), facts["lengths"], facts["support"], strict=True):
        points = data.X[data.y == sign]
        w = _max_margin(points)
        assert length == pytest.approx(np.linalg.norm(w), rel=1e-6)
        assert support == (points @ w < 1 + 1e-6).sum()


def _max_margin(points):
    """Solve min |w|^2 s.t. points w >= 1 through its dual, a non-negative least-squares problem."""
    from scipy.optimize import nnls

    n, d = points.shape
    stacked = np.vstack([points.T, np.ones(n)])
    alpha, _ = nnls(stacked, np.append(np.zeros(d), 1.0), maxiter=100 * n)
    w = alpha @ points
    return w / (points @ w).min()


def test_sgd_of_the_paper_is_a_plain_loop():
    """The batches of `descend` are those of a loop over a shuffled order; one epoch done by hand."""
    data = make("phuong", n=30, d=4, seed=1)
    net = initialize(4, width=5, scheme="uniform", scale=0.05, seed=1)
    run = descend(Problem(data, net, reduction="mean"), "sgd", step=0.1, batch=30, epochs=1, seed=0, progress=False)
    W, a = net.weights()
    active = W @ data.X.T > 0
    g = 1 / (1 + np.exp(net.margins(data)))
    force = (active * (g * data.y)) @ data.X / data.n
    moved = W + 0.1 * a[:, None] * force
    assert np.abs(run.W[-1] - moved).max() < 1e-15


def test_portrait_of_a_known_matrix():
    data = Dataset([[2.0, 0.0], [0.0, -1.0]], [1, -1])
    seen = portrait(np.array([[3.0, 0.0], [0.0, -1.0], [-1.0, 1.0]]), data, np.array([1.0, -1.0, 1.0]))
    assert seen["correlations"] == pytest.approx([1.0, 1.0, -np.sqrt(0.5)])
    assert seen["share"] == pytest.approx(2 / 3)
    assert seen["energy"] == pytest.approx(10 / 12)
    assert seen["dead"] == 1


def test_rays_are_told_from_lines_and_clouds():
    assert check_rays([[1.0, 1.0], [2.0, 2.0], [-1.0, 0.0]], [1, 1, -1]) == pytest.approx(1.0)
    assert check_rays([[1.0, 1.0], [3.0, 3.0], [-1.0, -1.0]], [1, 1, 1]) == pytest.approx(10 / 11)
    cloud = np.random.default_rng(0).normal(size=(200, 2))
    assert check_rays(cloud, np.ones(200)) < 0.7
    assert np.isnan(check_rays([[0.0, 0.0]], [1]))


# -- deeper nets --------------------------------------------------------------------------------------------


def test_f2(trial):
    def layer(k, row, value):
        return each(put("layers", k, "singular_values", row, value=value))

    def cloud(k):
        def change(one):
            rows = np.random.default_rng(0).normal(size=(len(one["outs"]), 2))
            one["layers"][k]["projected"] = rows.tolist()

        return each(change)

    trial(
        "PL-F2",
        doctored={
            "rank-1": layer(0, 2, 1.0),
            "rank-2": layer(1, 2, 0.4),
            "rank-3": layer(2, 2, 0.4),
            "rays-1": cloud(0),
            "rays-2": cloud(1),
            "rays-3": cloud(2),
            "median": each(put("first", "median", value=0.8)),
            "accuracy": each(put("accuracy", value=0.99)),
            "separable": each(put("data", "separable", value=False)),
        },
    )


# -- the convolutional net ----------------------------------------------------------------------------------


def test_f3(trial):
    def alike(stage, value):
        for kind in ("cross", "zeros", "ones"):
            stage["before"][kind]["right"] = value

    def mixed(numbers):
        for stage in numbers["end"]["features"]:
            stage["before"]["cross"]["quantiles"] = [1e12] * len(numbers["levels"])

    def backwards(numbers):
        for k, stage in enumerate(numbers["end"]["features"]):
            for kind in ("zeros", "ones"):
                stage["before"][kind]["cosines"] = [1.0 - 0.1 * k] * len(numbers["levels"])
            stage["before"]["cross"]["cosines"] = [0.0] * len(numbers["levels"])

    trial(
        "PL-F3",
        # Sixty steps on small images are not enough for features of the two classes to point away from each other.
        deviates=("cross-7", "every-7"),
        doctored={
            "cross-7": put("separability", "train", "cross", value=1.0),
            "every-7": lambda numbers: numbers["separability"]["train"].update(cross=1.0, same=1.0),
            "same-7": put("separability", "train", "same", value=0.98),
            "learned": lambda numbers: alike(numbers["start"]["features"][-1], 1.0),
            "order": mixed,
            "trend": backwards,
            "deepest": backwards,
            "accuracy": put("training", "accuracy", -1, value=0.5),
        },
    )


def test_the_trend_is_judged_by_its_chance():
    stats = pytest.importorskip("scipy.stats")
    from reluflow.experiments.pl.f3 import _check_trend

    rng = np.random.default_rng(0)
    for n in (3, 5, 8):
        gaps = rng.standard_normal(n).tolist()
        second = stats.kendalltau(np.arange(n), gaps, alternative="greater", method="exact")
        assert _check_trend(gaps) == pytest.approx((second.statistic, second.pvalue), abs=1e-12)


def test_f4(trial):
    def same(numbers):
        numbers["end"]["head"]["outs"] = [1.0 for _ in numbers["end"]["head"]["outs"]]

    def flat(numbers):
        head = numbers["end"]["head"]
        head["singular_values"] = [1.0 for _ in head["singular_values"]]

    def ring(numbers):
        head = numbers["end"]["head"]
        turn = np.linspace(0, 2 * np.pi, len(head["outs"]), endpoint=False)
        head["projected"] = np.stack([np.cos(turn), np.sin(turn)], axis=1).tolist()

    trial("PL-F4", doctored={"few": flat, "three": ring, "pure": same, "mixed": same})


def test_clusters_are_found_without_their_signs():
    from reluflow.experiments.pl.f4 import check, check_clusters

    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [4.0, 1.0], [-1.0, 3.0]], [40, 12, 9], axis=0)
    outs = np.concatenate([np.where(rng.random(40) < 0.5, 1.0, -1.0), np.ones(12), -np.ones(9)])
    head = {"projected": centres + 0.2 * rng.normal(size=centres.shape), "outs": outs, "singular_values": [1, 0.5, 0.2]}
    inner, groups = check_clusters(head)
    assert inner.sum() == 40
    assert sorted(g.size for g in groups) == [9, 12]
    assert all(e.holds for e in check({"end": {"head": head}}))


def test_one_cluster_cannot_be_judged_as_three():
    from reluflow.experiments.pl.f4 import check

    head = {"projected": [[1.0, 0.0]] * 5, "outs": [1.0] * 5, "singular_values": [1.0, 0.0]}
    found = {e.key: e.holds for e in check({"end": {"head": head}})}
    assert found == {"few": False, "three": False, "pure": None, "mixed": None}


def test_tab1(trial):
    numbers = trial(
        "PL-TAB1",
        doctored={
            "layers": put("layers", 2, "numbers", 1, value=3),
            "parameters": put("learned", 2, value=0),
            "activations": put("layers", 7, "then", value="ReLU"),
        },
    )
    sizes = [(32 * 9 + 32), (32 * 32 * 9 + 32), (32 * 32 * 25 + 32), (64 * 32 * 9 + 64), (64 * 64 * 9 + 64)]
    sizes += [(64 * 64 * 25 + 64), (3136 * 128 + 128), (128 + 1)]
    assert numbers["learned"] == sizes


def test_layers_are_found_by_what_they_do():
    torch = pytest.importorskip("torch")
    from reluflow.experiments.pl.tab1 import _convolution, _deed, _linear

    for n, k, s, p in ((3, 3, 1, 0), (4, 5, 2, 1), (2, 1, 3, 0)):
        found = _convolution(torch.nn.Conv2d(2, n, k, s, p), torch.rand(1, 2, 19, 19), torch.autograd.grad)
        assert found["numbers"] == [n, k, s, p]
    assert _linear(torch.nn.Linear(7, 3), torch.rand(1, 7), torch.autograd.grad)["numbers"] == [7, 3]
    x = torch.tensor([[-1.0, 2.0]])
    assert [_deed(x, y) for y in (x, x.relu(), -x)] == ["none", "ReLU", "other"]


def test_above_is_the_chance_to_be_larger():
    from reluflow.experiments.pl.conv import share_above

    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 5, 40).astype(float), rng.integers(0, 5, 30).astype(float)
    pairs = np.sign(np.subtract.outer(one, other))
    assert share_above(one, other) == pytest.approx(((pairs + 1) / 2).mean())


def test_small_images_are_enlarged_and_large_ones_left_alone():
    from reluflow.experiments.pl.conv import enlarged

    small = Dataset(np.arange(1.0, 65.0)[None], [1])
    large = enlarged(small).X[0].reshape(28, 28)
    assert (large[2:26:3, 2:26:3] == small.X[0].reshape(8, 8)).all()
    assert large.sum() == 9 * small.X.sum()
    assert enlarged(enlarged(small)).X is not None
    assert (enlarged(enlarged(small)).X[0] == large.ravel()).all()


def test_figures_of_one_training_share_it():
    one, two, table = (experiment(name) for name in ("PL-F3", "PL-F4", "PL-TAB1"))
    assert one.run is two.run
    assert one.settings() == two.settings()
    # The table is about the same net: it is drawn with the same scale and seed.
    assert all(table.settings()[key] == one.settings()[key] for key in ("scale", "seed"))
    assert experiment("PL-F1").run is experiment("PL-X1").run
