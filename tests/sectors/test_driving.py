"""LL-A.2: whether every vector that can drive a small neuron separates the data."""

import numpy as np
import pytest

from reluflow import Dataset
from reluflow.sectors import driving_slack

TIE = Dataset([[1, 0], [1, 5], [1, -5]], [1, 1, -1])


def test_a_tie_is_decided_in_rational_arithmetic():
    # slope 1/2: for the first sample the inner products 1, 1 and -1 count as 1 + 1 - 2
    found = driving_slack(TIE, 0.5)
    assert found.slack[0] == 0
    assert found.worst == 0
    assert found.holds is False
    assert found.exact


def test_a_tie_stays_open_in_floating_point():
    found = driving_slack(TIE, 0.5, exact=False)
    assert found.holds is None
    assert not found.exact
    assert driving_slack(TIE, 0.51, exact=False).holds is True
    assert driving_slack(TIE, 0.49, exact=False).holds is False


@pytest.mark.parametrize("slope", [0.05, 0.3, 0.9])
def test_against_all_corners(slope):
    """The vectors sum_j h_j z_j, h_j in {slope, 1}, are the extreme ones."""
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(40):
        X = rng.normal(size=(6, 3)) + np.array([2.0, 0.0, 0.0])
        data = Dataset(X, np.ones(6))
        corners = np.where((np.arange(64)[:, None] >> np.arange(6)) & 1, 1.0, slope)
        separates = ((corners @ data.signed) @ data.signed.T > 0).all()
        found = driving_slack(data, slope)
        assert found.holds == separates
        seen.add(found.holds)
    assert seen == {True, False}
