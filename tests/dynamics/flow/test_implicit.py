"""The compiled field of the late phase against its definition, and its solver against SciPy's on the same field."""

from dataclasses import replace
from functools import cache, partial

import numba
import numpy as np
import pytest
from scipy.integrate import BDF
from scipy.linalg.lapack import dgetrf

import reluflow as rf
from reluflow.dynamics.flow import implicit
from reluflow.dynamics.flow.field import Geometry
from reluflow.dynamics.flow.late import late_chart, tolerances
from reluflow.dynamics.flow.solver import Solver
from reluflow.dynamics.flow.state import onto, pattern_of, take

_LOG_TIME = 3.0


def chart_of(seed, clock, slope=0.0, loss="logistic", train="both", balanced=True, slides=False, stiff=False):
    """Coordinates of a random network; fitted with the clock of the norm."""
    rng = np.random.default_rng(seed)
    n, d, p = 9, 3, 5
    X, W = rng.normal(size=(n, d)), rng.normal(size=(p, d))
    if slides:  # the first neuron, on the hyperplanes of two points
        W[0] = 1.5 * np.cross(X[0], X[1])
    a = rng.choice([-1.0, 1.0], p) * (np.linalg.norm(W, axis=1) if balanced else rng.uniform(0.5, 2.0, p))
    if stiff and clock == "norm":
        W, a = 2 * W, 2 * a
    net = rf.Network(W, a, slope)
    y = rng.choice([-1.0, 1.0], n)
    if clock == "norm":
        y = np.where(net.outputs(X) >= 0, 1.0, -1.0)
    problem = rf.Problem(rf.Dataset(X, y), net, loss=loss, train=train)
    geometry = Geometry(problem)
    state, _ = take(geometry, net)
    if slides:
        sides = state.sides.copy()
        sides[0, geometry.faces.of[:2]] = 0
        state = replace(state, sides=sides, U=np.vstack([onto(geometry, state.U[0], sides[0]), state.U[1:]]))
    return late_chart(geometry, state, pattern_of(geometry, state), clock, _LOG_TIME)


CASES = [
    {},
    {"slope": 0.3},
    {"loss": "exponential", "balanced": False},
    {"train": "first", "balanced": False},
    {"slope": 0.1, "slides": True},
    {"slope": 0.2, "balanced": False, "slides": True},
]


def weights(chart, y):
    """First-layer rows and output weights at the start of a chart."""
    V, out = chart.neurons(0.0 if chart.clock == "norm" else _LOG_TIME, y)
    size = np.exp(chart.unit)
    return size[:, None] * V, size * out


def velocity(chart, y):
    """``dw/dt`` and ``da/dt`` as the model says: neuron by neuron, from the definition."""
    geometry = chart.geometry
    problem, X, labels = geometry.problem, geometry.X, geometry.y
    W, a = weights(chart, y)
    slopes = np.where(W @ X.T > 0, 1.0, geometry.slope)
    margins = labels * (a @ (slopes * (W @ X.T)))
    pulls = problem.weight * labels * problem.loss.force(margins)
    dW, da = np.empty_like(W), np.empty_like(a)
    for j in range(len(W)):
        held = chart.pattern.sides[j] == 0
        D = (slopes[j] * pulls) @ X
        if held.any():
            N = geometry.faces.normals[held]
            D = D - N.T @ np.linalg.lstsq(N.T, D, rcond=None)[0]
        dW[j], da[j] = a[j] * D, (0.0 if geometry.frozen else W[j] @ D)
    return margins, dW, da


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("clock", ["time", "norm"])
def test_the_field_is_that_of_the_model(case, clock):
    for seed in range(3):
        chart = chart_of(seed, clock, **case)
        s, y = (0.0 if clock == "norm" else _LOG_TIME), chart.y0
        margins, dW, da = velocity(chart, y)
        assert chart.margins(s, y) == pytest.approx(margins, rel=1e-12, abs=1e-12)
        rate = chart.field.rate(s, y)
        size = np.exp(chart.unit)
        (V, last), (dV, dlast) = chart.rows(y), chart.rows(rate)
        if clock == "time":
            pace, decay = np.exp(_LOG_TIME), 0.0  # dt/ds
        else:
            decay = 1.0 if chart.geometry.frozen else 0.5
            pace = np.exp(_LOG_TIME) * np.cosh(y[-1]) * rate[-1]  # dt/du, from that of asinh(log t)
            W, a = weights(chart, y)
            grown = 2 * (np.sum(W * dW) + np.sum(a * da)) / (np.sum(W**2) + np.sum(a**2))
            if chart.geometry.frozen:
                grown = np.sum(W * dW) / np.sum(W**2)
            elif chart.who.all():
                assert grown * pace == pytest.approx(1.0, rel=1e-10)  # u is log R
        assert size[:, None] * (dV + decay * V) == pytest.approx(
            pace * dW, rel=1e-9, abs=1e-9 * np.abs(pace * dW).max()
        )
        if not chart.geometry.frozen:
            assert size * (dlast + decay * last) == pytest.approx(
                pace * da, rel=1e-9, abs=1e-9 * np.abs(pace * da).max()
            )


def free(chart, s, y, speed=None):
    """Derivatives with w and a as if they did not know of each other, at a given common factor of the forces.

    That is what the matrix differentiates; how the factor changes with the margins is not stiff.
    """
    geometry, problem = chart.geometry, chart.geometry.problem
    V, last = chart.rows(y)
    out = chart.signs * np.exp(chart.base.log_a[chart.who] - chart.unit) if geometry.frozen else last
    grown = np.exp(2 * chart.unit + (1.0 if geometry.frozen else 2.0) * chart.decay * s)
    H = pattern_slopes(chart)
    q = geometry.y * ((grown * out) @ (H * (V @ geometry.X.T)))
    log_g = problem.loss.log_force(q)
    if chart.clock == "time":
        p, now = np.exp(log_g + s) * problem.weight, 1.0
    else:
        p = np.exp(log_g - np.logaddexp.reduce(log_g))
        gamma = p @ q * np.exp(-chart.log_size - s)
        now = np.exp(chart.log_size) / gamma if geometry.frozen else 0.25 / gamma
    speed = now if speed is None else speed
    D = speed * (H * (p * geometry.y)) @ geometry.X
    for j in range(len(V)):
        N = geometry.faces.normals[chart.pattern.sides[j] == 0]
        D[j] -= N.T @ np.linalg.lstsq(N.T, D[j], rcond=None)[0] if len(N) else 0.0
    rows = np.column_stack([out[:, None] * D - chart.decay * V, np.einsum("jd,jd->j", V, D) - chart.decay * last])
    rows[:, -1] *= not geometry.frozen
    if chart.clock == "time":
        return rows.ravel()
    size = np.exp(s) if geometry.frozen else 1.0
    dt = speed * size / (problem.weight * np.exp(np.logaddexp.reduce(log_g)))
    return np.append(rows.ravel(), dt * np.exp(-np.sinh(y[-1])) / np.cosh(y[-1]))


def pattern_slopes(chart):
    """Slopes of the neurons at the samples."""
    return chart.pattern.H[chart.pattern.member]


def dense(rate, s, y):
    """Derivative of a field by central differences."""
    h = 1e-6
    return np.array([(rate(s, y + h * e) - rate(s, y - h * e)) / (2 * h) for e in np.eye(y.size)]).T


@cache
def linear():
    """Compiled parts that no step shows by themselves: samples of a matrix, the matrix, a solution with its factors."""
    noticeable, assemble, solve = implicit._noticeable, implicit._assemble, implicit._solve

    @numba.njit(error_model="numpy")
    def perform(task, world, desk, matrix, x):
        if task == 0:
            return noticeable(world, desk)
        if task == 1:
            assemble(world, desk, matrix)
        else:
            solve(world, desk, matrix, x)
        return 0

    return perform


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("clock", ["time", "norm"])
def test_the_matrix_is_the_derivative_of_the_field(case, clock):
    """Against differences and a dense solver; steps would converge, slowly, with many a wrong matrix."""
    for seed in range(3):
        chart = chart_of(seed, clock, stiff=True, **case)
        s, y = (0.0 if clock == "norm" else _LOG_TIME), chart.y0
        now = Solver(chart.field, s, s + 1.0, y, np.ones(y.size), 0.1).now  # differentiates where it begins
        now["shift"] = c = 0.5
        world, room, b = chart.field.held, chart.room, np.random.default_rng(0).normal(size=y.size)
        if chart.geometry.frozen:
            chart.rows(b)[1][:] = 0.0  # there is nothing in these places
        k = now["k"] = linear()(0, world, room.held, room.held_matrix, b)
        assert k >= 2
        room.make(k, room.rows, room.rows, y.size)
        linear()(1, world, room.held, room.held_matrix, b)
        _, room.matrix.pivots[:], _ = dgetrf(room.matrix.A.reshape(k, k).T, overwrite_a=True)
        assert chart.field.rate(s, y) == pytest.approx(free(chart, s, y), rel=1e-9, abs=1e-9)
        A = np.eye(y.size) - c * dense(partial(free, chart, speed=chart.pull(s, y).speed), s, y)
        assert np.abs(A - np.eye(y.size)).max() > 1.0
        x, want = b.copy(), np.linalg.solve(A, b)
        linear()(2, world, room.held, room.held_matrix, x)
        assert x == pytest.approx(want, rel=1e-2, abs=1e-2 * np.abs(want).max())  # what is hardly felt is left out


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("clock", ["time", "norm"])
def test_steps_are_those_of_a_general_solver_with_a_dense_matrix(case, clock):
    chart = chart_of(1, clock, **case)
    s = 0.0 if clock == "norm" else _LOG_TIME
    y, end = chart.y0, s + (0.5 if clock == "norm" else 1.5)
    tol = tolerances(chart, s, y, 1e-8)
    ours = Solver(chart.field, s, end, y, tol, 1e-8)
    theirs = BDF(
        chart.field.rate,
        s,
        y,
        end,
        rtol=2.3e-14,
        atol=tol,
        jac=lambda s, y: dense(chart.field.rate, s, y),
        first_step=1e-8,
    )
    theirs.newton_tol = 0.01
    counts = [0, 0]
    while ours.t < end:
        assert ours.step()
        counts[0] += 1
    while theirs.t < end:
        theirs.step()
        assert theirs.status != "failed"
        counts[1] += 1
    assert abs(counts[0] - counts[1]) <= 2 + 0.02 * counts[1]
    assert np.abs((ours.y - theirs.y) / tol).max() < 20.0


def test_a_first_step_that_leads_beyond_doubles_is_made_shorter():
    """The matrix is not that of a place where forces are no numbers: it would be kept while the step is halved."""
    chart = chart_of(1, "time", loss="exponential", balanced=False)
    y = chart.y0
    assert chart.pull(_LOG_TIME, y).p.max() > 1e5
    tol = tolerances(chart, _LOG_TIME, y, 1e-8)
    ends = []
    for step in (1e-8, 1e-2):
        solver = Solver(chart.field, _LOG_TIME, 4.0, y, tol, step)
        while solver.t < 4.0:
            assert solver.step()
        ends.append(solver.y)
    assert np.abs((ends[1] - ends[0]) / tol).max() < 100.0


def test_the_path_of_a_step_leads_through_its_ends():
    chart = chart_of(0, "time", slope=0.2)
    solver = Solver(chart.field, _LOG_TIME, 10.0, chart.y0, tolerances(chart, _LOG_TIME, chart.y0, 1e-8), None)
    for _ in range(30):
        t0, y0 = solver.t, solver.y
        assert solver.step()
    path = solver.path()
    assert path(solver.t) == pytest.approx(solver.y, rel=1e-13)
    assert path(t0) == pytest.approx(y0, abs=1e-6)
    middle = 0.5 * (t0 + solver.t)
    normal = np.array([0.6, 0.0, -0.8])
    assert path.weights(middle) @ path.along(2, normal) == pytest.approx(chart.rows(path(middle))[0][2] @ normal)
    assert path.weights(np.array([t0, middle])).shape == (2, len(path.D))


def test_idle_sides_change_the_field_and_not_the_matrix():
    """What was factorised before a side changed goes on to be used: with its own patterns."""
    chart = chart_of(2, "time", slope=0.2)
    solver = Solver(chart.field, _LOG_TIME, 10.0, chart.y0, tolerances(chart, _LOG_TIME, chart.y0, 1e-8), None)
    for _ in range(10):
        assert solver.step()
    there = chart.across([(0, 0)])
    solver.enter(there.field)
    assert (there.pattern.sides != chart.pattern.sides).sum() == 1
    y, t = solver.y, solver.t
    assert solver.step()
    slope = (solver.y - y) / (solver.t - t)
    assert slope == pytest.approx(there.field.rate(t, y), rel=0.2, abs=0.2 * np.abs(slope).max())
    assert np.abs(slope - there.field.rate(t, y)).max() < np.abs(slope - chart.field.rate(t, y)).max()
