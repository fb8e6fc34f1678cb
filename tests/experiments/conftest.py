"""A trial of an experiment: its quick run judged, drawn, and every check seen to fail on doctored numbers."""

import copy
import io

import pytest

from reluflow.experiments import experiment
from reluflow.experiments._numbers import settled


def _trial(name, doctored, deviates=(), unjudged=()):
    """Run the quick version and hold every expectation against doctored numbers.

    ``doctored`` has for every expectation that got a verdict a function that changes the numbers in place so that the
    verdict turns over: from reproduced to deviates, and for those in ``deviates`` (known to deviate in the quick run)
    the other way round.
    """
    one = experiment(name)
    fractions = []
    numbers = settled(one.run(one.settings(quick=True), fractions.append))
    assert all(0.0 <= f <= 1.0 for f in fractions)
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
    one.plot(numbers).savefig(io.BytesIO(), format="png", dpi=40)
    assert numbers == untouched, "check and plot must leave the numbers alone"
    return numbers


@pytest.fixture
def trial():
    return _trial
