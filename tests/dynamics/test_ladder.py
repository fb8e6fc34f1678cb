"""Ladders of scales, and perturbations of a limit."""

import numpy as np
import pytest

import reluflow as rf


def test_d6_crosses_between_1e_2_and_1e_3():
    # The observed ladder: one-neuron limit 0.1 below the crossing, towards the global optimum 0.1431 above it.
    data = rf.example("D6-H12").data
    w = rf.margins.one_neuron(data, 0.5).w
    draw = rf.Problem(data, rf.initialize(2, 8, "balanced", 1.0, seed=1, slope=0.5, signs=[1] * 4 + [-1] * 4))

    def predicted(x):
        z = x @ w
        return 0.5 * np.where(z > 0, z, 0.5 * z)

    found = rf.ladder(draw, [0.1, 1e-2, 1e-3, 1e-4], prediction=predicted)
    assert found.margins[0] > 0.13
    assert found.margins[2:] == pytest.approx([0.1, 0.1], abs=1e-4)
    assert (np.diff(found.errors) < 0).all()
    assert found.errors[1] > 1e-2
    assert found.errors[2] < 1e-3
    assert "log scale" in repr(found)


def test_parallel_gives_the_same():
    draw = rf.Problem(rf.example("EX1").data, rf.initialize(2, 4, "balanced", 1.0, seed=0, signs=[1, -1, 1, -1]))
    one, two = (rf.ladder(draw, log_scales=[-5.0, -3000.0], jobs=jobs) for jobs in (1, 2))
    # Equal but for last digits: code compiled in this process and the same read from disk round differently.
    assert one.margins == pytest.approx(two.margins, rel=1e-11)
    assert one.margins == pytest.approx(0.5840985669, rel=1e-3)


def test_near_a_local_maximum_the_margin_returns():
    # LL-T5.6 at the limit of EX1, a global maximum: small perturbations come back to its margin.
    data = rf.example("EX1").data
    best = rf.limit(rf.Problem(data, rf.initialize(2, 6, "balanced", 1e-3, seed=0, signs=[1, -1] * 3)))
    found = rf.dynamics.perturb(rf.Problem(data, best.network), [0.1], log_norm=2.0)
    assert found.margins == pytest.approx(best.margin, rel=1e-3)
    assert (found.errors < 1e-2).all()


def test_a_scale_that_never_fits_is_noted():
    dead = rf.Problem(rf.Dataset([[1.0, 0.0]], [1]), rf.Network.balanced([[-1.0, 0.2]], [1]))
    found = rf.ladder(dead, [1.0])
    assert np.isnan(found.margins[0])
    assert "rest" in found.notes[0]


@pytest.mark.parametrize(
    "options", [{}, {"scales": [1.0], "log_scales": [0.0]}, {"scales": [0.0]}, {"scales": []}, {"scales": ["a"]}]
)
def test_refusals(options):
    draw = rf.Problem(rf.example("EX1").data, rf.initialize(2, 4, "balanced", 1.0, seed=0))
    with pytest.raises(rf.ProblemError):
        rf.ladder(draw, **options)
