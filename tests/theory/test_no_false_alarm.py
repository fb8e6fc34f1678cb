"""Small problems on which a theorem once seemed contradicted: by rounding, a moment, or a bound that says nothing.

``tests/fuzz/monitors.py`` looks for more.
"""

from __future__ import annotations

import numpy as np
import pytest

import reluflow as rf
from reluflow.dynamics.accuracy import TOO_SMALL
from reluflow.margins import symmetrized_network
from reluflow.theory import Facts, claim

EX1 = rf.example("EX1").data
PAIR = rf.Dataset([[1.0, 2.0], [-1.0, -2.0]], [1, -1])
ONE = rf.Dataset([[3.0, 2.0]], [1])
LINE = rf.Dataset([[-1.1], [-0.9], [0.8], [1.2]], [1, 1, -1, -1])
INSEPARABLE = rf.Dataset([[-0.9], [-0.2], [-1.2], [0.9], [0.5], [0.1]], [1, -1, -1, 1, 1, -1])
COLLINEAR = rf.Dataset(np.outer([-2.0, 2, 2, 1, 1], np.ones(3)), -np.ones(5))

CASES = {
    # A record on the very hyperplane: the neuron feels nothing for that moment, and is not dead.
    **{f"pair {w}": (PAIR, {"width": w, "seed": s, "scale": 1e-6}, {}) for w, s in ((1, 1), (2, 2), (3, 3), (4, 5))},
    # Fitted or not is rounding at the start, and so is the time by which it must be.
    "one sample": (ONE, {"width": 5, "slope": 0.5, "scale": 1e-6}, {}),
    # Steps of 0.01 at t = 10^7 are differences of logarithms.
    "far": (EX1, {"width": 20, "log_scale": -7.5e6}, {}),
    "farthest": (EX1, {"width": 20, "log_scale": -9.9e7}, {}),
    # A first layer of e^-55 beside a second of 1.
    "two scales": (LINE, {"width": 10, "scheme": "two-sign", "log_scale": -55.4, "seed": 763}, {"reduction": "sum"}),
    # A neuron against the force shrinks to e^-200000, and is left as it is while others grow.
    "vanishing": (LINE, {"width": 8, "slope": 1.0, "log_scale": -1e5}, {"loss": "exponential", "reduction": "sum"}),
    # No neuron but one that is 0 for a moment, beside which e^-3000 is nothing.
    "through zero": (INSEPARABLE, {"width": 1, "scheme": "he", "log_scale": -3000.0}, {"loss": "exponential"}),
    # A neuron that the flow holds at w = 0: e^-37 is rounding beside a, and has no direction.
    "held at zero": (
        rf.Dataset([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], [-1, -1]),
        {"width": 4, "scheme": "two-sign", "log_scale": -54.0, "seed": 872, "slope": 0.1},
        {"reduction": "sum"},
    ),
    # A neuron that grows by e^20, where a^2 - |w|^2 is rounded away, and then shrinks below its start.
    "grown and shrunk": (
        rf.Dataset([[3.0], [-2], [-1], [-3], [2], [3], [-2]], [-1, 1, 1, -1, -1, -1, 1]),
        {"width": 4, "scheme": "uniform", "log_scale": -110.0, "seed": 698, "slope": 0.1},
        {"loss": "exponential"},
    ),
    # Neurons that slide while they shrink by more than rounding.
    "shrinking on hyperplanes": (
        rf.Dataset([[-3.0, -3], [3, -2], [-1, 3], [2, -2], [3, -1]], -np.ones(5)),
        {"width": 2, "scheme": "balanced-gaussian", "log_scale": -889000.0, "seed": 48},
        {"loss": "exponential"},
    ),
    # A neuron that slides is held on its hyperplane to the tolerance only.
    "sliding": (
        COLLINEAR,
        {"width": 2, "scheme": "two-sign", "log_scale": -1.25, "seed": 280},
        {"reduction": "sum", "rtol": 1e-6},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_contradicted(name):
    data, start, options = CASES[name]
    options = dict(options)
    rtol = options.pop("rtol", 1e-9)
    found = rf.explain(rf.Problem(data, rf.initialize(data.d, **start), **options), rtol=rtol, max_steps=150)
    assert [(v.claim, v.text) for v in found.summary.contradicted] == []
    assert found.summary.seen


def test_what_is_smaller_than_rounding_is_not_seen():
    problem = rf.Problem(EX1, rf.initialize(2, width=6, log_scale=-300.0))
    facts, run = Facts(problem), rf.flow(problem, {"log_time": 10.0})
    (seen,) = claim("ML-L1").observe(facts, run.measures)
    assert seen.consistent is None
    assert TOO_SMALL in seen.text
    assert seen.predicted < 1e-100


def test_a_bound_of_no_time_is_undecided():
    problem = rf.Problem(ONE, rf.initialize(2, width=5, slope=0.5, log_scale=-2000.0))
    facts = Facts(problem)
    assert claim("LL-B.19").bounds(facts)["log_T"] == -np.inf
    seen = claim("LL-B.19").observe(facts, rf.flow(problem, {"log_time": 12.0}).measures)
    assert [o.consistent for o in seen] == [True, None]


def test_a_negative_margin_may_fall_when_symmetrised():
    """Of LL-T4.2: the odd part keeps the margins and shrinks the norm, so only margins that are >= 0 grow."""
    data = rf.Dataset([[1.0, 0.0], [-1.0, 0.0]], [1, -1])
    net = rf.Network.balanced([[1.0, 0.2], [-1.0, 0.3], [0.0, 1.0]], [-1, 1, 1], 0.5)
    problem = rf.Problem(data, net)
    margin, odd = (one.normalized_margin(data) for one in (net, symmetrized_network(net)))
    assert odd < margin < 0
    (seen,) = claim("LL-T4.2").observe(Facts(problem), rf.flow(problem, {"time": 1e-3}).measures)
    assert seen.consistent is True
