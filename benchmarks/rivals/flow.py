"""Other ways to follow a flow, and how near they come."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import reluflow as rf

THRESHOLDS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
clock = time.process_time
BEST = "GD loss-scaled, log domain"
_LONG = 10.0  # seconds of a flow beyond which it is run once for all thresholds


# -- how near a network is to the limit ------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """The certified limit, and the error of other networks against it."""

    end: rf.dynamics.Limit

    @property
    def natural(self) -> float:
        """The scale of the step c on which the loss-scaled iteration is stable."""
        problem = self.end.problem
        sharp = float(problem.data.norms.max()) ** 2
        if problem.train == "first":
            return 0.25 / (sharp * float(np.sum(problem.net.weights()[1] ** 2)))
        return self.end.margin / sharp

    def errors(self, W: np.ndarray, a: np.ndarray) -> tuple[float, float]:
        """Gap of the margin and largest 1 - cos of a group."""
        if not (np.isfinite(W).all() and np.isfinite(a).all() and np.abs(W).max() < 1e100):
            return np.nan, np.nan
        problem = self.end.problem
        slope, frozen = problem.net.slope, problem.train == "first"
        z = problem.data.X @ W.T
        q = problem.data.y * (np.maximum(z, slope * z) @ a)
        size = np.sum(W**2) if frozen else np.sum(W**2) + np.sum(a**2)
        gap = 1.0 - float(q.min() / (np.sqrt(size) if frozen else size)) / self.end.margin
        far = 0.0
        for group in self.end.living:
            v = np.abs(a[group.neurons]) @ W[group.neurons]
            far = max(far, 1.0 - float(v @ group.direction) / max(float(np.linalg.norm(v)), 1e-300))
        return gap, far


@dataclass(frozen=True)
class LossTarget:
    """Where no limit is known: the training loss in place of the gap."""

    problem: rf.Problem

    @property
    def natural(self) -> float:
        """As for `Target`, with a typical margin."""
        return 0.05 / float(self.problem.data.norms.max()) ** 2

    def errors(self, W: np.ndarray, a: np.ndarray) -> tuple[float, float]:
        """Return the loss, and nothing."""
        if not (np.isfinite(W).all() and np.isfinite(a).all() and np.abs(W).max() < 1e100):
            return np.nan, np.nan
        return float(np.exp(self.problem.log_loss(rf.Network(W, a, self.problem.net.slope)))), np.nan


Goal = Target | LossTarget


@dataclass
class Course:
    """From when on a method had an error below each threshold, and how it ended."""

    gap: dict[float, float] = field(default_factory=dict)
    cos: dict[float, float] = field(default_factory=dict)
    last_gap: float = np.inf
    last_cos: float = np.inf
    seconds: float = 0.0
    drift: float = np.nan
    note: str = ""
    guessed: dict[float, float] = field(default_factory=dict)

    def look(self, seconds: float, gap: float, cos: float) -> None:
        """Note the errors at a moment."""
        self.seconds, self.last_gap, self.last_cos = seconds, gap, cos
        for times, error in ((self.gap, gap), (self.cos, cos)):
            for threshold in THRESHOLDS:
                if error <= threshold:
                    times.setdefault(threshold, seconds)
                else:
                    times.pop(threshold, None)  # small by chance, early on

    def to_gap(self, threshold: float) -> float:
        """Seconds to a gap, extrapolated if need be, nan where nothing can be said."""
        return self.gap.get(threshold, self.guessed.get(threshold, np.nan))

    def row(self, name: str) -> str:
        """One line of the table."""
        cells = [self._cell(self.gap, k, self.guessed) for k in THRESHOLDS] + [
            self._cell(self.cos, k, {}) for k in THRESHOLDS
        ]
        return f"  {name:26s}" + "".join(f"{c:>10s}" for c in cells) + f" {self.drift:8.0e}  {self.note}"

    @staticmethod
    def _cell(times: dict[float, float], threshold: float, guessed: dict[float, float]) -> str:
        if threshold in times:
            return f"{times[threshold]:.3g}"
        return f"~{guessed[threshold]:.3g}" if threshold in guessed else "-"


def drift(problem: rf.Problem, W: np.ndarray, a: np.ndarray) -> float:
    """Change of a_j^2 - |w_j|^2 relative to the norms, as `Trajectory.balance_drift`."""
    if problem.train == "first":
        return 0.0
    W0, a0 = problem.net.weights()
    if not np.abs(W).max() < 1e100:
        return np.inf
    change = (a**2 - np.sum(W**2, axis=1)) - (a0**2 - np.sum(W0**2, axis=1))
    return float(np.max(np.abs(change) / (a**2 + np.sum(W**2, axis=1))))


# -- methods ---------------------------------------------------------------------------------------------


def by_flow(problem: rf.Problem, target: Goal, rtol: float, log_time: float) -> Course:
    """Time whole runs that end where the errors first are small enough; a long one is run once."""
    start = clock()
    run = rf.flow(problem, {"log_time": log_time}, rtol=rtol, progress=False)
    whole = clock() - start
    errors = [target.errors(*net.weights()) for net in run.networks()]
    stops = set()
    for threshold in THRESHOLDS:
        for which in (0, 1):
            above = [k for k, error in enumerate(errors) if not error[which] <= threshold]
            if above[-1:] != [len(errors) - 1]:  # below from the record after the last one above
                stops.add(above[-1] + 1 if above else 1)
    course = Course(drift=float(run.balance_drift().max()))
    for k in sorted(stops):
        start = clock()
        if whole < _LONG:
            rf.flow(problem, {"log_time": float(run.log_time[k])}, rtol=rtol, progress=False)
        course.look(clock() - start if whole < _LONG else whole, *errors[k])
    course.last_gap, course.last_cos = errors[-1]
    rough = " (times are those of the whole run)" if whole >= _LONG else ""
    course.note = f"log t = {run.log_time[-1]:.0e}: gap {course.last_gap:.1e}{rough}"
    return course


class Descent:
    """Gradient descent in NumPy, as lean as it gets; forces divided by the loss in the log domain."""

    def __init__(self, problem: rf.Problem) -> None:
        self.problem = problem
        self.W, self.a = (np.array(part) for part in problem.net.weights())
        self.X, self.slope, self.frozen = problem.data.X, problem.net.slope, problem.train == "first"
        self.y, self.log_r = problem.data.y, float(np.log(problem.weight))

    def step(self, size: float, scaled: bool) -> None:
        """Move by size (fixed) or by size / (L (1 + log 1/L)), for a frozen second layer by size / L.

        These are the largest steps under which the curvature along the path stays bounded.
        """
        z = self.X @ self.W.T
        h = np.where(z > 0, 1.0, self.slope)
        q = self.y * ((h * z) @ self.a)
        log_force = -np.logaddexp(0.0, q)  # log of -l'(q) for the logistic loss
        if scaled:
            log_loss = self.log_r + float(np.logaddexp.reduce(self.problem.loss.log_value(q)))
            size = size if self.frozen else size / (1.0 + max(-log_loss, 0.0))
            log_force = log_force - log_loss
        pull = h * (self.y * np.exp(log_force + self.log_r))[:, None]
        D = pull.T @ self.X
        out = np.einsum("jk,jk->j", self.W, D)
        self.W += size * self.a[:, None] * D
        if not self.frozen:
            self.a += size * out


def by_descent(problem: rf.Problem, target: Goal, size: float, scaled: bool, seconds: float, enough: float) -> Course:
    """Descend until the gap is small enough or the time is up."""
    course, state, taken, due = Course(), Descent(problem), 0, 1
    start, spent_looking = clock(), 0.0
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        while True:
            state.step(size, scaled)
            taken += 1
            now = clock() - start - spent_looking
            if taken < due and now < seconds:
                continue
            due = taken + max(1, taken // 20)
            gap, cos = target.errors(state.W, state.a)
            course.look(now, gap, cos)
            spent_looking = clock() - start - now
            if not np.isfinite(gap) or gap <= enough or now >= seconds:
                break
    course.drift = drift(problem, state.W, state.a)
    course.note = f"step {size:.3g}, {taken} iterations: gap {course.last_gap:.1e}"
    return course


def best_descent(problem: rf.Problem, target: Goal, scaled: bool, seconds: float) -> Course:
    """Tune the step: short runs first, the best one again for as long as is allowed."""
    natural = target.natural if scaled else 1.0 / float(problem.data.norms.max()) ** 2
    tried: list[tuple[float, float, float, float]] = []

    def trial(size: float) -> None:
        course = by_descent(problem, target, size, scaled, seconds / 15, 1e-2)
        reached = min(course.gap, default=np.inf)
        left = course.last_gap if np.isfinite(course.last_gap) else np.inf
        tried.append((reached, course.gap.get(reached, np.inf), left, size))

    for factor in (1.0, 4.0, 16.0, 64.0):
        trial(factor * natural)
    best = min(tried)[-1]
    for factor in (0.5, 2.0):
        trial(factor * best)
    course = by_descent(problem, target, min(tried)[-1], scaled, seconds, THRESHOLDS[-1])
    if scaled and isinstance(target, Target):
        for threshold in THRESHOLDS:
            if threshold not in course.gap and course.gap and course.last_gap <= min(course.gap):
                course.guessed[threshold] = course.seconds * course.last_gap / threshold
    return course


class _TimeUp(Exception):
    pass


def by_scipy(problem: rf.Problem, target: Goal, method: str, seconds: float, rtol: float = 1e-6) -> Course:
    """Solve the plain ODE as far as doubles or the time allow."""
    from scipy import integrate
    from scipy.special import expit

    data, net, course = problem.data, problem.net, Course()
    W0, a0 = net.weights()
    p, d, frozen = net.p, net.d, problem.train == "first"
    start = clock()

    def split(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y[: p * d].reshape(p, d), a0 if frozen else y[p * d :]

    def field_of(_: float, y: np.ndarray) -> np.ndarray:
        if clock() - start > seconds:
            raise _TimeUp
        W, a = split(y)
        z = data.X @ W.T
        h = np.where(z > 0, 1.0, net.slope)
        D = (h * (problem.weight * data.y * expit(-data.y * ((h * z) @ a)))[:, None]).T @ data.X
        parts = [(a[:, None] * D).ravel()] + ([] if frozen else [np.einsum("jk,jk->j", W, D)])
        return np.concatenate(parts)

    y0 = W0.ravel() if frozen else np.concatenate([W0.ravel(), a0])
    due, solver, steps = 0.0, None, 0
    try:
        solver = getattr(integrate, method)(field_of, 0.0, y0, 1e300, rtol=rtol, atol=rtol * 1e-6)
        while solver.status == "running":
            with np.errstate(over="ignore", invalid="ignore"):
                solver.step()
            steps += 1
            now = clock() - start
            if now >= due:
                due = now * 1.02
                course.look(now, *target.errors(*split(solver.y)))
        course.look(clock() - start, *target.errors(*split(solver.y)))
        course.note = f"{solver.status} at t = {solver.t:.1e}, {steps} steps: gap {course.last_gap:.1e}"
    except _TimeUp:
        at = 0.0 if solver is None else solver.t
        course.note = f"stuck: time is up at t = {at:.1e}, {steps} steps: gap {course.last_gap:.1e}"
    if solver is not None:
        course.drift = drift(problem, *split(np.asarray(solver.y)))
    return course


def by_torch(problem: rf.Problem, target: Goal, step: float, seconds: float) -> Course:
    """Full-batch gradient descent with a fixed step in PyTorch, float64, one thread."""
    import torch

    torch.set_num_threads(1)
    course, net = Course(), problem.net
    X, y = (torch.tensor(np.array(v), dtype=torch.float64) for v in (problem.data.X, problem.data.y))
    W, a = (torch.tensor(np.array(v), dtype=torch.float64, requires_grad=True) for v in net.weights())
    optimizer = torch.optim.SGD([W] if problem.train == "first" else [W, a], lr=step)
    start, looking, taken, due, now = clock(), 0.0, 0, 1, 0.0
    while now < seconds:
        optimizer.zero_grad(set_to_none=True)
        output = torch.nn.functional.leaky_relu(X @ W.T, net.slope) @ a
        (problem.weight * torch.nn.functional.softplus(-y * output).sum()).backward()
        optimizer.step()
        taken += 1
        now = clock() - start - looking
        if taken >= due or now >= seconds:
            due = taken + max(1, taken // 20)
            course.look(now, *target.errors(W.detach().numpy(), a.detach().numpy()))
            looking = clock() - start - now
    course.drift = drift(problem, W.detach().numpy(), a.detach().numpy())
    course.note = f"step {step:.3g}, {taken} iterations: gap {course.last_gap:.1e}"
    return course


def by_diffrax(problem: rf.Problem, target: Goal, seconds: float, rtol: float = 1e-6) -> Course:
    """Tsit5 on the plain ODE, compiled before it is timed."""
    import diffrax
    import jax

    jax.config.update("jax_enable_x64", True)
    num, data, slope, frozen = jax.numpy, problem.data, problem.net.slope, problem.train == "first"

    def field_of(_: Any, y: Any, __: Any) -> Any:
        W, a = y
        z = num.asarray(data.X) @ W.T
        h = num.where(z > 0, 1.0, slope)
        force = problem.weight * data.y * jax.nn.sigmoid(-data.y * ((h * z) @ a))
        D = (h * force[:, None]).T @ num.asarray(data.X)
        return a[:, None] * D, num.zeros_like(a) if frozen else (W * D).sum(axis=1)

    @jax.jit
    def stretch(y: Any, t0: float, t1: float) -> Any:
        control = diffrax.PIDController(rtol=rtol, atol=rtol * 1e-6)
        term, solver = diffrax.ODETerm(field_of), diffrax.Tsit5()
        found = diffrax.diffeqsolve(
            term,
            solver,
            t0,
            t1,
            None,
            y,
            stepsize_controller=control,
            max_steps=2000,
            throw=False,
            saveat=diffrax.SaveAt(t1=True, solver_state=False),
        )
        return jax.tree.map(lambda leaf: leaf[-1], found.ys), found.result == diffrax.RESULTS.successful

    y = tuple(num.asarray(np.array(part)) for part in problem.net.weights())
    jax.block_until_ready(stretch(y, 0.0, 1e-3))
    course, t, dt, start = Course(), 0.0, 1.0, clock()
    while clock() - start < seconds and t < 1e300:
        later, fine = jax.block_until_ready(stretch(y, t, t + dt))
        if not fine or not np.isfinite(np.asarray(later[0])).all():
            dt /= 2  # it ran out of steps on the way
            if dt < 1e-6:
                break
            continue
        y, t, dt = later, t + dt, 2 * dt
        course.look(clock() - start, *target.errors(np.asarray(y[0]), np.asarray(y[1])))
    course.drift = drift(problem, np.asarray(y[0]), np.asarray(y[1]))
    course.note = f"ended at t = {t:.1e}: gap {course.last_gap:.1e}"
    return course


def rivals(problem: rf.Problem, target: Goal, seconds: float) -> Iterator[tuple[str, Course]]:
    """Run every method that is not ours."""
    yield BEST, best_descent(problem, target, True, seconds)
    fixed = best_descent(problem, target, False, seconds / 4)
    yield "GD fixed step", fixed
    step = float(fixed.note.split()[1].rstrip(","))
    if importlib.util.find_spec("torch"):
        yield "torch GD fixed step", by_torch(problem, target, step, seconds / 4)
    for method in ("DOP853", "LSODA", "RK45"):
        yield f"scipy {method} 1e-6", by_scipy(problem, target, method, seconds / 4)
    if importlib.util.find_spec("diffrax"):
        yield "diffrax Tsit5 1e-6", by_diffrax(problem, target, seconds / 4)
