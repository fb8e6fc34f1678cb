"""Hints: what they promise is so, and they are silent where nothing helps."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow as rf
from helpers.cli import document, run
from reluflow.theory import Facts, claims, hints
from reluflow.theory.hints import _ON_DATA, _with_input

SHIFTED = ([[5, 6], [6, 5], [1, 0], [0, 1]], [1, 1, -1, -1])


def test_centring_makes_data_orthogonally_separable():
    found = hints(*SHIFTED, width=20, log_scale=-9.0)
    first = found[0]
    assert (first.preparation, first.options) == ({"center": True}, "--center")
    assert "PL-D1" in first.claims
    assert "would apply after centring (--center)." in first.text
    assert json.loads(json.dumps(first.to_dict()))["claims"] == list(first.claims)


@given(seed=st.integers(0, 10**6), shift=st.floats(-3, 3), slope=st.sampled_from([0.0, 0.3]))
@settings(deadline=None, max_examples=6)
def test_every_hint_is_true(seed, shift, slope):
    """Ask the claims themselves, of the data as they are and as the hint would have them."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], 6)
    X = y[:, None] * np.abs(rng.normal(size=(6, 2))) + shift
    how = {"width": 8, "slope": slope, "log_scale": -20.0}
    problem = rf.as_problem(X, y, **how)
    now = {finding.claim: finding for finding in rf.check(problem)}
    listed = [name for hint in hints(problem) for name in hint.claims]
    assert len(listed) == len(set(listed))
    for hint in hints(problem):
        data = problem.data.prepared(**hint.preparation) if hint.preparation else None
        assert data is not None  # no point is drawn twice here
        net = problem.net if data.d == problem.data.d else _with_input(problem.net)
        then = {finding.claim: finding.applies for finding in rf.check(problem.replace(data=data, net=net))}
        for name in hint.claims:
            assert now[name].applies is False
            assert then[name] is True
            assert all(_ON_DATA.match(condition.name) for condition in now[name].failing)


@pytest.mark.parametrize(("seed", "slope"), [(1, 0.1), (26, 0.1), (29, 0.1), (10, 0.5), (24, 0.5)])
def test_no_hint_is_missing(seed, slope):
    """What the claims, asked in full of the centred data, say applies there and not here, is in a hint."""
    rng = np.random.default_rng(seed)
    w, X = rng.normal(size=3), rng.normal(size=(10, 3))
    y = np.sign(X @ w)
    X += 0.1 * np.outer(y, w)
    problem = rf.as_problem(X, y, width=8, slope=slope, log_scale=-20.0)
    now = {finding.claim: finding for finding in rf.check(problem)}
    then = {finding.claim: finding.applies for finding in rf.check(problem.replace(data=problem.data.centered()))}
    fails = [one for one in now.values() if one.applies is False]
    by_data = [one.claim for one in fails if all(_ON_DATA.match(condition.name) for condition in one.failing)]
    (listed,) = [set(hint.claims) for hint in hints(problem) if hint.preparation == {"center": True}] or [set()]
    assert listed == {name for name in by_data if then[name] is True}


def test_repeated_points():
    data, how = rf.example("EX1").data, {"width": 20, "log_scale": -9.0}
    first = hints(data.subset([0, 1, 0, 2, 3]), **how)[0]
    assert "PL-T1" in first.claims
    assert "would apply without the 1 repeated point (the first is sample 2)." in first.text
    assert (first.options, first.preparation) == ("", {})
    assert set(first.claims) <= {finding.claim for finding in rf.check(data, **how) if finding.applies}


def test_nothing_is_said_where_nothing_helps_or_all_is_well():
    assert hints([[5, 6], [-5, -6]], [1, -1], width=20, log_scale=-9.0) == ()
    large = rf.as_problem("randlab:n=2000,d=10", width=2)
    assert hints(large) == ()  # too many pairs to try


def test_the_conditions_on_data_exist():
    """Every alternative of the pattern names a condition that some claim has."""
    names = set()
    for spec, slope in (("EX1", 0.0), ("D2", 0.5), ("symsep:n=6,d=2", 0.5)):
        facts = Facts(rf.as_problem(spec, width=4, slope=slope))
        names |= {condition.name for one in claims() for condition in one.conditions(facts)}
    for words in _ON_DATA.pattern.split("|"):
        assert any(name.startswith(words) for name in names), words


def test_more_inputs_keep_the_norms():
    net = rf.initialize(3, 5, "gaussian", 0.1, seed=1)
    more = _with_input(net)
    assert more.d == 4
    assert np.allclose(more.log_norms, net.log_norms, rtol=0, atol=1e-12)
    assert np.array_equal(more.a, net.a)
    assert (more.W[:, -1] != 0).all()


@pytest.mark.parametrize("verb", ["check", "explain"])
def test_the_command_line_shows_them(tmp_path, verb):
    file = tmp_path / "t.csv"
    file.write_text("a,b,y\n5,6,1\n6,5,1\n1,0,-1\n0,1,-1\n")
    arguments = [str(file), "--width", "4", "--log-scale", "-9"]
    text = run(verb, *arguments).stdout
    assert "would apply after centring (--center)." in text
    found = document("check", *arguments)
    assert found["hints"][0]["options"] == "--center"
    after = document("check", *arguments, "--center")
    applies = {item["claim"] for item in after["findings"] if item["applies"]}
    assert set(found["hints"][0]["claims"]) <= applies
