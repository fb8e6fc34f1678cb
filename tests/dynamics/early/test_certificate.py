"""Degenerate data on a lattice: every path found is checked, piece by piece, to solve the differential inclusion.

Duplicated, parallel and opposite points, starts on hyperplanes and their intersections, several events at once, forces
that vanish: on small integers all of this happens all the time.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reluflow import DataError, Dataset, Network, Problem, align
from reluflow.dynamics.early import run as run_module

entries = st.integers(-2, 2).map(float)


@st.composite
def lattice_problems(draw, balanced=None):
    d, n, p = draw(st.integers(1, 3)), draw(st.integers(1, 6)), 3
    X = draw(arrays(float, (n, d), elements=entries))
    X = X[X.any(axis=1)]
    assume(len(X))
    y = draw(arrays(float, len(X), elements=st.sampled_from([-1.0, 1.0])))
    try:
        data = Dataset(X, y)
    except DataError:  # one point with both labels
        assume(False)
    W = draw(arrays(float, (p, d), elements=entries))
    signs = draw(arrays(float, p, elements=st.sampled_from([-1.0, 1.0])))
    ratio = 1.0 if balanced else draw(st.sampled_from([1.0, 1.0, 0.5, 2.0]))
    a = draw(st.sampled_from([signs * ratio * np.linalg.norm(W, axis=1), signs])) if not balanced else None
    if balanced:
        W[~W.any(axis=1)] = 1.0
        a = signs * np.linalg.norm(W, axis=1)
    slope = draw(st.sampled_from([0.0, 0.0, 0.3, 1.0]))
    train = "both" if balanced else draw(st.sampled_from(["both", "both", "first"]))
    return Problem(data, Network(W, a, slope), "exponential", "sum", train)


def pieces(early, j):
    """Corner, force over the sign, length, sign and slopes h on every straight piece of neuron j of positive length."""
    paths, run, data = early._paths, early._paths.written, early.problem.data
    numbers = np.arange(run.first[j], run.first[j + 1])
    corners, forces = paths.corners(numbers)
    g = np.where(paths.start.sides[j] > 0, 1.0, paths.slope) * paths.faces.weights
    for row, piece in enumerate(numbers):
        at = slice(run.entry[piece], run.entry[piece + 1])
        np.add.at(g, run.surface[at], run.change[at])
        if row + 1 < len(numbers):
            length = abs(run.path[piece + 1] - run.path[piece])
        elif early.fates[j] in ("aligned", "sliding"):
            length = 1.0 + np.linalg.norm(corners[row])
        else:
            length = 0.5 * abs(run.along[piece]) / run.force[piece] if run.force[piece] else 0.0
        h = np.where(paths.faces.weights != 0, g / np.where(paths.faces.weights != 0, paths.faces.weights, 1.0), np.nan)
        # the share of a sample opposite to its normal is what the others leave
        turned = paths.faces.orient < 0
        own = h[paths.faces.of]
        yield corners[row], forces[row], length, run.sign[piece], np.where(turned, 1 + paths.slope - own, own), data


def check_path(early):
    for j in range(early.p):
        if early._paths.start.sign[j] == 0 or early._paths.start.rest[j]:
            continue  # at rest by convention: no motion to check
        end = None
        for w, c, length, sign, h, data in pieces(early, j):
            size = max(np.linalg.norm(w), 1e-3)
            if end is not None:
                np.testing.assert_allclose(w, end, atol=1e-9 * size)  # no jumps
            end = w + sign * length * c
            if length * np.linalg.norm(c) < 1e-9 * size:
                continue
            z = (w + 0.4 * sign * length * c) @ data.X.T / data.norms
            exact = np.where(z > 0, 1.0, early.problem.net.slope)
            clear = np.abs(z) > 1e-9 * size
            assert (np.abs(h - exact)[clear & ~np.isnan(h)] < 1e-9).all()
            lying = h[~clear & ~np.isnan(h)]
            assert ((lying > early.problem.net.slope - 1e-9) & (lying < 1 + 1e-9)).all()
            # and the force is really the sum over the samples, in the units of the kernel
            if not np.isnan(h).any() or clear.all():
                slopes = np.where(np.isnan(h), exact, h)
                total = (slopes * data.y) @ data.X / early._paths.faces.unit
                np.testing.assert_allclose(c, total, atol=1e-9 * data.norms.sum())


@settings(deadline=None, max_examples=150)
@given(lattice_problems(), st.sampled_from(["regular", "leave"]))
def test_every_piece_solves_the_inclusion(problem, branch):
    early = align(problem, branch=branch)
    assert set(early.fates) <= {"aligned", "sliding", "shrinking", "dead", "stuck"}
    assert np.isfinite(early.last_event).all()
    check_path(early)


@settings(deadline=None, max_examples=150)
@given(lattice_problems(), st.sampled_from(["regular", "leave"]))
def test_both_ways_of_looking_ahead_agree(problem, branch):
    with pytest.MonkeyPatch.context() as patch:
        dense = align(problem, branch=branch)
        patch.setattr(run_module, "GRAM_LIMIT", 0)
        lazy = align(problem, branch=branch)
    assert dense.fates == lazy.fates
    np.testing.assert_array_equal(dense.nonunique, lazy.nonunique)
    np.testing.assert_array_equal(dense.pattern, lazy.pattern)
    for j in range(dense.p):
        one, two = dense.events(j), lazy.events(j)
        assert one["sample"].tolist() == two["sample"].tolist()
        assert one["kind"].tolist() == two["kind"].tolist()
        np.testing.assert_allclose(one["time"], two["time"], rtol=1e-7, atol=1e-12)


@settings(deadline=None, max_examples=100)
@given(lattice_problems(balanced=True), st.integers(0, 2**32 - 1))
def test_unique_solutions_depend_continuously_on_the_start(problem, seed):
    """Where the flow is unique it is continuous; neighbours at 10^-10 that end up 10^-4 apart at time 1 are flagged."""
    early, net = align(problem), problem.net
    shift = 1e-10 * np.random.default_rng(seed).standard_normal((6, *net.W.shape))
    moved = (net.W + shift).reshape(-1, net.d)
    near = align(problem.replace(net=Network.balanced(moved, np.tile(np.sign(net.a), 6), net.slope)))
    times = np.array([0.1, 0.5, 1.0])
    w = np.exp(early.log_norms(times))[..., None] * early.directions(times)
    v = np.exp(near.log_norms(times))[..., None] * near.directions(times)
    gap = np.abs(v.reshape(3, 6, *net.W.shape) - w[:, None]).max(axis=(0, 1, 3)) / np.abs(w).max(axis=(0, 2))
    assert (early.nonunique | (gap < 1e-4)).all()


@settings(deadline=None, max_examples=60)
@given(lattice_problems(balanced=True))
def test_the_pull_along_the_direction_never_falls(problem):
    early, data, slope = align(problem), problem.data, problem.net.slope
    times = np.sort(np.concatenate([np.linspace(0.0, 2.0, 41), early.last_event]))
    z = early.directions(times) @ data.X.T
    pull = early.signs * (np.where(z > 0, z, slope * z) @ data.y)
    assert (np.diff(pull, axis=0) > -1e-9 * data.norms.sum()).all()
