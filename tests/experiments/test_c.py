"""C-X1: every check can fail, and what is counted as sliding is sliding."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.experiments.c.x1 import sliding


def test_x1(trial):
    def steeper(numbers):
        table = numbers["kinds"]["randlab"]["5"]["ever"]["mean"]
        table[3] = [3.0] * len(table[3])

    trial(
        "C-X1",
        doctored={
            "side": lambda numbers: numbers.update(wrong_side=1),
            "some": lambda numbers: numbers.update(slides=10),
            "linear": lambda numbers: numbers["kinds"]["linsep"]["5"]["ever"]["high"][-1].__setitem__(0, 0.1),
            "orthogonal": lambda numbers: numbers["kinds"]["orthsep"]["5"]["ever"]["high"][0].__setitem__(0, 0.1),
            "slope": steeper,
        },
        unjudged=("draws",),
    )


@pytest.mark.parametrize(("kind", "slope"), [("randlab", 0.0), ("randlab", 0.5), ("linsep", 0.1)])
def test_sliding_is_lying_on_hyperplanes(kind, slope):
    """The shares from the events are those of looking at the neurons at many times."""
    data = rf.make(kind, n=15, d=4, seed=2)
    early = rf.align(rf.Problem(data, rf.initialize(4, 12, "balanced", 1e-6, 3, slope)))
    ever, ends, share, surfaces = sliding(early)
    end = early.last_event.max()
    times = (np.arange(4000) + 0.5) / 4000 * end
    on = np.abs(np.einsum("tpd,nd->tpn", early.directions(times), data.X)) < 1e-10 * data.norms
    # Touching or crossing takes no time, so whatever is seen on a hyperplane slides there.
    count = on.sum(axis=2)
    assert ever == (count > 0).any(axis=0).mean()
    assert share == pytest.approx((count > 0).mean(), abs=2e-3)  # 4000 looks: an interval is off by 1/4000 at each end
    assert surfaces == pytest.approx(count[count > 0].mean(), abs=2e-2)
    late = np.abs(early.directions(end * 1.000001) @ data.X.T) < 1e-10 * data.norms
    assert ends == late.any(axis=1).mean()


def test_one_surface_holds_when_the_push_of_the_others_is_in_the_window():
    """Two samples, a > 0: the negative one holds if x_1.x_2 is between slope and 1 times |x_2|^2."""
    for slope, product, holds in ((0.0, 0.4, True), (0.5, 0.4, False), (0.0, -0.4, False), (0.0, 1.4, False)):
        data = rf.Dataset([[product, 1.0], [1.0, 0.0]], [1, -1])
        net = rf.Network.balanced([[0.3, 1.0]], [1], slope=slope, log_scale=-20.0)
        assert (sliding(rf.align(rf.Problem(data, net)))[0] == 1.0) is holds
