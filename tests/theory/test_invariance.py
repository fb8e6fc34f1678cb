"""Verdicts and constants do not depend on the order of samples and neurons, on rotations, or on what is called +1."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from reluflow.theory import Facts, check, claims, predict
from reluflow.theory.conditions import balanced

PAPERS = ("PL", "ML")
OWN = tuple(one for paper in PAPERS for one in claims(paper))
seeds = st.integers(0, 2**32 - 1)


def draw(seed: int) -> rf.Problem:
    """Draw a small problem, strictly orthogonally separable (well away from ties) or clearly not."""
    rng = np.random.default_rng(seed)
    d, n, p = int(rng.integers(2, 5)), int(rng.integers(2, 7)), int(rng.integers(1, 7))
    while True:
        axis = rng.normal(size=d)
        y = rng.choice([-1.0, 1.0], n)
        noise = rng.uniform(0.1, 1.5)
        X = y[:, None] * (axis / np.linalg.norm(axis) + noise * rng.normal(size=(n, d)) / sqrt(d))
        cosines = X / np.linalg.norm(X, axis=1)[:, None]
        if np.abs(cosines @ cosines.T).min() > 1e-3:
            break
    net = rf.initialize(d, width=p, log_scale=float(rng.choice([-1.0, -60.0, -5000.0])), seed=rng)
    loss, reduction = str(rng.choice(["logistic", "exponential"])), str(rng.choice(["mean", "sum"]))
    return rf.Problem(rf.Dataset(X, y), net, loss=loss, reduction=reduction)


def summary(problem: rf.Problem) -> tuple[dict, dict]:
    """Return what was decided, and with which constants."""
    facts = Facts(problem)
    findings = [f for paper in PAPERS for f in check(facts, paper=paper)]
    decided = {(f.claim, c.name): (c.holds, c.evidence) for f in findings for c in f.conditions}
    promises = [p for paper in PAPERS for p in predict(facts, paper=paper)]
    numbers = {(p.claim, name): value for p in promises for name, value in p.bounds.items()}
    return decided, numbers


def agree(one: dict, two: dict) -> None:
    assert one.keys() == two.keys()
    for key, value in one.items():
        assert two[key] == pytest.approx(value, rel=1e-7, abs=1e-9), key


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_order_does_not_matter(seed):
    problem = draw(seed)
    rng = np.random.default_rng(seed)
    rows, neurons = rng.permutation(problem.data.n), rng.permutation(problem.net.p)
    net = rf.Network(problem.net.W[neurons], problem.net.a[neurons], log_scale=problem.net.log_scale)
    other = problem.replace(data=problem.data.subset(rows), net=net)
    (decided, numbers), (again, others) = summary(problem), summary(other)
    assert decided == again
    agree(numbers, others)
    for mine, theirs in zip(Facts(problem).groups, Facts(other).groups, strict=True):
        assert set(mine.tolist()) == set(neurons[theirs].tolist())


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_rotations_do_not_matter(seed):
    problem = draw(seed)
    d = problem.data.d
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    net = rf.Network(problem.net.W @ Q, problem.net.a, log_scale=problem.net.log_scale)
    other = problem.replace(data=rf.Dataset(problem.data.X @ Q, problem.data.y), net=net)
    (decided, numbers), (again, others) = summary(problem), summary(other)
    assert {key: holds for key, (holds, _) in decided.items()} == {key: holds for key, (holds, _) in again.items()}
    agree(numbers, others)


def mirrored(key: tuple[str, str], value: float) -> tuple[tuple[str, str], float]:
    """Return the same constant with the classes exchanged."""
    claim, name = key
    if name == "share_plus":
        return key, 1 - value
    if name in ("G_plus", "G_minus"):
        value = -value
    if name == "cos_w_plus_w_minus":
        return key, value
    exact = {"u_squared": "z_squared", "z_squared": "u_squared"}
    if "plus" in name:
        return (claim, name.replace("plus", "minus")), value
    return (claim, exact.get(name, name.replace("minus", "plus"))), value


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_labels_can_be_exchanged(seed):
    problem = draw(seed)
    net = rf.Network(problem.net.W, -problem.net.a, log_scale=problem.net.log_scale)
    other = problem.replace(data=problem.data.flipped(), net=net)
    (decided, numbers), (again, others) = summary(problem), summary(other)
    assert decided == again
    agree(dict(mirrored(key, value) for key, value in numbers.items()), others)
    mine, theirs = Facts(problem).groups, Facts(other).groups
    assert mine.plus.tolist() == theirs.minus.tolist()
    assert mine.minus.tolist() == theirs.plus.tolist()
    assert mine.dead.tolist() == theirs.dead.tolist()


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0]], [1]),
        ([[1.0], [-2.0]], [1, -1]),
        ([[1.0], [2.0]], [1, -1]),
        ([[1.0, 0.0], [1.0, 0.0]], [1, 1]),
        ([[1e100, 0.0], [1e-100, 1e-100]], [1, 1]),
        ([[1.0, 2.0]] * 3 + [[-1.0, -2.0]], [1, 1, 1, -1]),
        ([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]),
    ],
    ids=["one", "line", "line not separable", "twice", "huge and tiny", "antipodal", "not separable"],
)
def test_degenerate_problems_are_answered(X, y, slope):
    data = rf.Dataset(X, y)
    for scheme, train in (("balanced", "both"), ("gaussian", "both"), ("two-sign", "first")):
        net = rf.initialize(data.d, width=2, scheme=scheme, slope=slope, scale=1e-3, seed=1)
        facts = Facts(rf.Problem(data, net, train=train))
        for one in OWN:
            assert one.conditions(facts)
        for paper in PAPERS:
            predict(facts, paper=paper)


def test_zero_neurons_are_answered():
    data = rf.example("EX1").data
    net = rf.Network([[0.0, 0.0], [1.0, 1.0]], [0.0, np.sqrt(2.0)], log_scale=-9)
    facts = Facts(rf.Problem(data, net))
    assert balanced(facts).holds is False
    assert balanced(facts).witness == 0
    summary(rf.Problem(data, net))
