"""Points on one line share their hyperplane, to the accuracy that each use needs."""

import numpy as np
import pytest

from reluflow import Dataset
from reluflow.sectors.hyperplanes import RESOLUTION, parallel_owners, surfaces


def on_lines(seed, n, d, lines):
    """Points on few lines, which line each is on, and on which side."""
    rng = np.random.default_rng(seed)
    of, side = rng.integers(0, lines, n), rng.choice([-1.0, 1.0], n)
    X = rng.standard_normal((lines, d))[of] * (side * rng.uniform(0.1, 10.0, n))[:, None]
    return X, of, side


@pytest.mark.parametrize(("seed", "n", "d"), [(0, 20, 2), (1, 60, 3), (2, 40, 50)])
def test_both_ways_find_the_same_lines(seed, n, d):
    X, of, side = on_lines(seed, n, d, 7)
    found = surfaces(Dataset(X, np.where(side > 0, 1, -1)), 0.3)
    owner = parallel_owners(X / np.linalg.norm(X, axis=1)[:, None])
    for i in range(n):
        for j in range(n):
            assert (of[i] == of[j]) == (owner[i] == owner[j]) == (found.of[i] == found.of[j])
            if of[i] == of[j]:
                assert (side[i] == side[j]) == (found.orient[i] == found.orient[j])
    assert found.m == len(np.unique(of))
    first = found.samples[found.start[:-1]]
    assert (found.orient[first] == 1).all()
    assert (np.diff(first) > 0).all()  # hyperplanes are numbered as they appear


def test_the_early_phase_tells_lines_apart_that_cells_do_not():
    near = 0.1 * RESOLUTION
    X = np.array([[1.0, 0.0], [1.0, near], [0.0, 1.0]])
    assert surfaces(Dataset(X, [1, 1, -1]), 0.0).m == 3
    assert len(np.unique(parallel_owners(X / np.linalg.norm(X, axis=1)[:, None]))) == 2
    X[1, 1] = 10 * RESOLUTION
    assert len(np.unique(parallel_owners(X / np.linalg.norm(X, axis=1)[:, None]))) == 3


def test_forces_of_opposite_points_add_up():
    """The force s (f + sum_k g_k n_k) is that of the samples, on either side of each hyperplane."""
    X, _, _ = on_lines(3, 12, 3, 4)
    y = np.random.default_rng(4).choice([-1, 1], 12)
    slope = 0.25
    found = surfaces(Dataset(X, y), slope)
    w = np.random.default_rng(5).standard_normal(3)
    plain = (y * np.where(X @ w > 0, 1.0, slope)) @ X
    gains = found.weights * np.where(found.normals @ w > 0, 1.0, slope)
    np.testing.assert_allclose(found.unit * (found.fixed + gains @ found.normals), plain, rtol=1e-12)
