"""``from_arrays``: weights of any library as a network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluflow as rf


@given(
    d=st.integers(1, 5),
    p=st.integers(1, 6),
    k=st.sampled_from([None, 1, 2]),
    layout=st.sampled_from(["rows", "columns"]),
    slope=st.sampled_from([0.0, 0.01, 1.0]),
    biases=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 10**6),
)
def test_outputs_are_those_of_the_formula(d, p, k, layout, slope, biases, seed):
    rng = np.random.default_rng(seed)
    W, out = rng.normal(size=(p, d)), rng.normal(size=(k or 1, p))
    b1 = rng.normal(size=p) if biases[0] else None
    b2 = rng.normal(size=k or 1) if biases[1] else None
    X = rng.normal(size=(7, d))
    hidden = X @ W.T + (0 if b1 is None else b1)
    logits = np.maximum(hidden, slope * hidden) @ out.T + (0 if b2 is None else b2)
    f = logits[:, 0] if k != 2 else logits[:, 1] - logits[:, 0]
    last = out[0] if k is None else out
    given_ = (W, last) if layout == "rows" else (W.T, last.T)
    net = rf.from_arrays(*given_, b1, b2, slope=slope, layout=layout)
    constant = biases[0] or biases[1]
    points = np.column_stack([X, np.ones(7)]) if constant else X
    assert net.outputs(points) == pytest.approx(f, rel=1e-9, abs=1e-9)


def test_other_precisions_and_lists():
    net = rf.from_arrays(np.eye(2, dtype=np.float16), [[1, -1]])
    assert net == rf.Network(np.eye(2), [1, -1])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.ones((3, 2)), np.ones((2, 1))), {}, r"3 neurons, but w2 .* takes 1; with layout='columns' they fit"),
        ((np.ones((2, 3)), np.ones((1, 2))), {"layout": "columns"}, "with layout='rows' they fit"),
        ((np.ones((3, 2)), np.ones(5)), {}, "give both layers of one network"),
        ((np.ones(3), np.ones(3)), {}, r"W1 has shape \(3,\)"),
        ((np.ones((0, 2)), np.ones(0)), {}, "at least one neuron"),
        ((np.ones((3, 2)), np.ones((4, 3))), {}, "4 logits"),
        ((np.ones((3, 2)), np.ones(3), np.ones(2)), {}, "b1 has 2 entries; 3 are needed, one a neuron"),
        ((np.ones((3, 2)), np.ones(3), None, np.ones(2)), {}, "b2 has 2 entries; 1 are needed"),
        ((np.ones((3, 2)), np.ones(3)), {"slope": 2}, r"outside \[0, 1\]"),
        ((np.ones((3, 2)), np.ones(3)), {"layout": "flax"}, "layout = 'flax' is not known; 'rows'"),
        (({"kernel": 1}, np.ones(3)), {}, "W1 is a dict, not an array of numbers"),
        ((np.full((3, 2), np.nan), np.ones(3)), {}, "is nan"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments, options, message):
    with pytest.raises(rf.ProblemError, match=message):
        rf.from_arrays(*arguments, **options)
