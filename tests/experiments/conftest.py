"""A trial of an experiment: its quick run judged, drawn, and every check seen to fail on doctored numbers."""

import copy
import json

import pytest

from reluflow.experiments import experiment
from reluflow.experiments.core.numbers import settled

_NUMBERS = {}  # several figures of a paper may be drawn from one run


def _quick_run(one):
    """Numbers of the quick run, computed once for all experiments that share it."""
    settings = one.settings(quick=True)
    key = one.run, json.dumps(settings, sort_keys=True, default=str)
    if key not in _NUMBERS:
        fractions = []
        _NUMBERS[key] = settled(one.run(settings, fractions.append))
        assert all(0.0 <= f <= 1.0 for f in fractions)
    return copy.deepcopy(_NUMBERS[key])


def _trial(name, doctored, deviates=(), unjudged=()):
    """Run the quick version and hold every expectation against doctored numbers.

    ``doctored`` has for every expectation that got a verdict a function that changes the numbers in place so that the
    verdict turns over: from reproduced to deviates, and for those in ``deviates`` (known to deviate in the quick run)
    the other way round.
    """
    one = experiment(name)
    numbers = _quick_run(one)
    untouched = copy.deepcopy(numbers)
    judged = {e.key: e for e in one.check(numbers)}
    assert len(judged) == len(one.check(numbers)), "keys must be unique"
    assert judged
    for e in judged.values():
        assert e.claim
        assert e.expected
        assert e.measured
        if e.holds is None:
            assert e.why
    shown = {k: (e.verdict, e.expected, e.measured) for k, e in judged.items()}
    assert {k for k, e in judged.items() if e.holds is False} == set(deviates), shown
    assert {k for k, e in judged.items() if e.holds is None} == set(unjudged), shown
    assert set(doctored) == {k for k, e in judged.items() if e.holds is not None}, shown
    for key, change in doctored.items():
        changed = copy.deepcopy(numbers)
        change(changed)
        after = {e.key: e for e in one.check(changed)}[key]
        assert after.holds is not None, key
        assert after.holds != judged[key].holds, (key, after)
    one.plot(numbers).draw_without_rendering()
    assert numbers == untouched, "check and plot must leave the numbers alone"
    return numbers


@pytest.fixture
def trial():
    return _trial
