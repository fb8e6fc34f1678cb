"""The limit of the flow: known answers, its own certificate, stalls, and what it refuses to decide."""

import numpy as np
import pytest

import reluflow as rf


def end(data, slope, *, width=8, scale=1e-4, seed=1, signs=None, scheme="balanced", **options):
    net = rf.initialize(data.d, width, scheme, scale, seed=seed, slope=slope, **({"signs": signs} if signs else {}))
    return rf.limit(rf.Problem(data, net, **options))


def confirmed(found):
    assert found.kind == "margin"
    assert found.kkt.is_kkt(1e-9)
    assert all(item.holds for item in found.evidence)
    assert {"quiet", "KKT", "inside", "vanishing", "approach"} <= {item.name for item in found.evidence}
    assert found.network.log_norm(found.problem.train) == pytest.approx(0.0, abs=1e-12)
    assert found.network.normalized_margin(found.problem.data, found.problem.train) == pytest.approx(
        found.margin, rel=1e-10
    )


@pytest.mark.parametrize(
    ("name", "slope", "signs", "margin", "living"),
    [
        ("EX1", 0.0, [1, -1] * 4, 0.5840985669, 2),
        ("D1", 0.5, [1, -1] * 4, 0.154441456421, 2),
        ("D1", 0.25, [1, -1] * 4, 0.128701213684, 2),
        ("D5", 0.5, [1, -1] * 4, 0.238521084377, 1),
        ("D6-H12", 0.5, [1, -1] * 4, 0.1, 1),
        ("D7", 0.5, [1, -1] * 4, 0.055901699437, 1),
        ("D8", 0.2, [1, -1] * 4, 0.527046276695, 2),
        ("D8", 0.2, [1] * 8, 0.5, 1),
        ("LL-TH2-2d", 0.0, [1, -1] * 4, 0.2357022604, 2),
        ("LL-TH2-3d", 0.0, [1, -1] * 4, 0.1797222822, 2),
    ],
)
def test_known_limits(name, slope, signs, margin, living):
    found = end(rf.example(name).data, slope, signs=signs)
    confirmed(found)
    assert found.margin == pytest.approx(margin, rel=2e-10)
    assert len(found.living) == living


def test_limit_says_whether_it_is_the_global_optimum():
    short = end(rf.example("D6-H12").data, 0.5, signs=[1, -1] * 4)
    assert short.optimum.lower == pytest.approx(0.143147449443, rel=1e-9)
    assert short.optimum.lower > short.margin * 1.4
    full = end(rf.example("D8").data, 0.2, signs=[1, -1] * 4)
    assert full.optimum.upper == pytest.approx(full.margin, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "slope", "gamma"), [("D2", 0.25, 0.722349830722), ("D3", 0.5, 0.730861930470), ("D9", 0.3, 0.704584672918)]
)
def test_frozen_layer_reaches_the_par_program(name, slope, gamma):
    # The margin of the limit is v sqrt(k) gamma_phi, here with v = 1/sqrt(10) and k = 5.
    data = rf.example(name).data
    net = rf.initialize(data.d, 10, "two-sign", 1e-3, seed=1, slope=slope, v=1 / np.sqrt(10))
    found = rf.limit(rf.Problem(data, net, train="first"))
    confirmed(found)
    assert found.margin == pytest.approx(gamma / np.sqrt(2), rel=1e-9)


def test_limit_on_a_kink():
    # D9 with alpha = 0.1: no strict pattern contains the limit; the negative neurons end on the hyperplane of point 8.
    data = rf.example("D9").data
    net = rf.initialize(2, 12, "two-sign", 1e-3, seed=1, slope=0.1)
    found = rf.limit(rf.Problem(data, net, train="first"))
    confirmed(found)
    assert any(group.pattern[8] == 0 for group in found.living)
    assert np.abs(found.network.directions[found.network.a < 0] @ data.X[8]).max() < 1e-12


def test_orthogonally_separable_data_reach_the_class_margins():
    data = rf.make("phuong", n=60, d=6, seed=1)
    found = end(data, 0.0, width=20, scale=1e-6, seed=0)
    confirmed(found)
    plus, minus = rf.margins.class_margins(data)
    assert found.margin == pytest.approx(1 / (2 * (1 / plus.margin + 1 / minus.margin)), rel=1e-10)
    for group in found.living:
        best = plus if group.sign > 0 else minus
        assert group.direction == pytest.approx(best.direction, abs=1e-10)
        size = 1 / best.margin
        assert group.share == pytest.approx(size / (1 / plus.margin + 1 / minus.margin), rel=1e-10)


def test_generic_leaky_data():
    # No closed form: the flow, followed further than limit did, must keep approaching what limit says.
    data = rf.make("linsep", n=20, d=4, seed=0)
    net = rf.initialize(4, 12, "balanced", 1e-3, seed=0, slope=0.5)
    problem = rf.Problem(data, net)
    found = rf.limit(problem)
    confirmed(found)
    further = rf.flow(problem, {"log_time": 100 * found.trajectory.log_time[-1]})
    gap = 1 - further.normalized_margin()[-1] / found.margin
    assert 0 <= gap < 0.05 * next(item.value for item in found.evidence if item.name == "approach") + 1e-9
    carrying = found.directions.any(axis=1) & (further.final.log_norms > further.final.log_norms.max() - 3)
    cosines = np.einsum("jd,jd->j", further.final.directions, found.directions)[carrying]
    assert cosines.min() > 1 - 1e-3


def test_margin_never_exceeds_the_global_optimum():
    for seed in range(2):
        data = rf.make("linsep", n=10, d=2, seed=seed)
        found = end(data, 0.3, seed=seed)
        assert found.margin <= found.optimum.upper * (1 + 1e-9)


# -- when there is none --------------------------------------------------------------------------------


def test_stall_gives_the_loss_floor():
    # Two of three samples can never be felt: a positive ReLU neuron sees only the first.
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.1], [-1.0, -0.1]], [1, 1, -1])
    net = rf.Network.balanced([[1.0, 0.3]], [1], log_scale=-5)
    found = rf.limit(rf.Problem(data, net))
    assert found.kind == "stall"
    assert found.loss_floor == pytest.approx(2 * np.log(2) / 3)
    assert "no margin limit exists" in found.reason
    run = rf.flow(rf.Problem(data, net), {"log_time": 1e4})
    assert run.loss[-1] == pytest.approx(found.loss_floor, rel=1e-12)


def test_all_dead_is_a_rest():
    data = rf.Dataset([[1.0, 0.0]], [1])
    found = rf.limit(rf.Problem(data, rf.Network.balanced([[-1.0, 0.2]], [1])))
    assert found.kind == "rest"
    assert found.loss_floor == pytest.approx(np.log(2))


def test_data_no_network_of_this_kind_fits():
    # f(2) = 2 f(1): labels + and - cannot both be met, and the flow rests at the minimum of the loss.
    data = rf.Dataset([[1.0], [2.0]], [1, -1])
    found = rf.limit(rf.Problem(data, rf.Network.balanced([[1.0], [0.3]], [1, -1])))
    assert found.kind == "rest"
    assert "not classified" in found.reason


def test_undecided_keeps_the_flow():
    data = rf.make("linsep", n=20, d=4, seed=0)
    net = rf.initialize(4, 12, "balanced", 1e-3, seed=0, slope=0.5)
    with pytest.raises(rf.Undecided, match="no limit could be confirmed") as caught:
        rf.limit(rf.Problem(data, net), max_log_time=30.0)
    assert isinstance(caught.value.partial, rf.Trajectory)


def test_refusals():
    with pytest.raises(rf.ProblemError, match="needs a Problem"):
        rf.limit(rf.initialize(2, 2))
    problem = rf.Problem(rf.example("EX1").data, rf.initialize(2, 2, "balanced", 0.1, seed=0))
    with pytest.raises(rf.ProblemError, match="max_log_time"):
        rf.limit(problem, max_log_time=-1)


def test_stall_with_neurons_sliding_on_the_lost_point():
    # D9 with ReLU: the negative neurons end on the hyperplane of point 8, which no positive one feels; its slope there
    # tends to 0 as the forces of the others do.
    data = rf.example("D9").data
    found = rf.limit(rf.Problem(data, rf.initialize(2, 12, log_scale=-3000)))
    assert found.kind == "stall"
    assert found.loss_floor == pytest.approx(np.log(2) / 9)
    assert found.trajectory.loss[-1] == pytest.approx(found.loss_floor, rel=1e-9)
