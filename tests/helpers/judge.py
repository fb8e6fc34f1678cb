r"""A second opinion on where the direction of the flow ends; shares no code with the package.

First the flow of the loss in small steps (implicit where it is stiff), until every point that is felt has a large
margin. From there on the flow of the smallest margin, which is what is left of it as R tends to infinity, in the clock
s = log |theta|: linearised proximal steps. The forces p of a step solve a small problem on the simplex; every neuron,
however small, then moves by the exact flow of constant forces. While the network rests only small neurons move, under
the forces of that moment. Neurons are unit vectors (w, a) times e^rho, so that sizes of e^-300 and less are as good as
any, and |w|^2 - a^2 is kept as it was given. Walls that pull a neuron in are stepped over implicitly (the slope of the
kink between its two values), the others with small steps. A neuron exactly on a wall counts as inactive there, and one
that a wall lets go because its output weight changes sign leaves it to the inactive side if it can: the rule of the
package where the flow is not unique.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

SMALL, LARGE = 0.005, 5.0  # steps of s
TURN = 0.02  # most that the direction of the network turns in a step
FITTED = 30.0  # margin from which on only the smallest margin counts
REST = 1e-6  # a network that turns by less, per unit of s, rests
ENTER = 1e-4  # size from which on a neuron counts
LONG = 3000.0  # a direction that stays for so long in s stays for ever


@dataclass
class Verdict:
    """What the judge found.

    ``kind``: margin, stall (points in ``lost`` are felt by nobody), unfit (the data were not fitted), unsure.
    ``plateaus``: (margin, s at which it began, s at which it ended) of all places where the margin rested.
    """

    kind: str
    margin: float = np.nan
    lost: tuple[int, ...] = ()
    plateaus: list[tuple[float, float, float]] = field(default_factory=list)
    why: str = ""
    net: tuple[np.ndarray, np.ndarray] | None = None
    steps: int = 0


class Step(NamedTuple):
    """What a step leads to."""

    new: tuple[np.ndarray, np.ndarray, np.ndarray]
    ds: float
    turn: np.ndarray
    crossed: bool
    D: np.ndarray
    margin: float
    lost: tuple[int, ...]
    catching: bool
    p: np.ndarray


class Judge:
    """Neurons and how they move."""

    def __init__(self, X, y, W, a, slope, log_w=0.0, log_a=0.0, *, loss="logistic", mean=True, first=False):
        self.X, self.y, self.slope, self.first = np.asarray(X, float), np.asarray(y, float), slope, first
        self.n, self.logistic = len(self.y), loss == "logistic"
        self.weight = 1 / self.n if mean else 1.0
        self.norms = np.linalg.norm(self.X, axis=1)
        units = self.X / self.norms[:, None]
        # Points on one line with different labels share a wall and pull to different sides: no implicit steps there.
        self.alone = ~((np.abs(units @ units.T) > 1 - 1e-12) & (np.outer(self.y, self.y) < 0)).any(1)
        W, a = np.asarray(W, float), np.asarray(a, float)
        log_w, log_a = (np.broadcast_to(np.asarray(v, float), a.shape) for v in (log_w, log_a))
        self.L = 1 if first else 2
        if first:
            self.out = a * np.exp(log_a)
            self.u, self.b = W * np.exp(log_w)[:, None], self.out
            self.rho = np.zeros(a.shape)
            return
        top = np.maximum(log_w, log_a)
        w, b = W * np.exp(log_w - top)[:, None], a * np.exp(log_a - top)
        size = np.sqrt((w * w).sum(1) + b * b)
        size[size == 0] = 1.0
        self.u, self.b, self.rho = w / size[:, None], b / size, top + np.log(size)
        wide = self.u.astype(np.longdouble)
        excess = ((wide * wide).sum(1) - self.b.astype(np.longdouble) ** 2).astype(float)
        excess[np.abs(excess) < 1e-13] = 0.0
        self.balance = np.sign(excess)
        with np.errstate(divide="ignore"):
            self.log_balance = np.log(np.abs(excess)) + 2 * self.rho

    # -- moves ----------------------------------------------------------------------------------------

    def moved(self, D, tau):
        """All neurons after a time tau under constant forces D, each to its own."""
        if self.first:
            return self.u + tau * self.out[:, None] * D, self.b, self.rho
        size = np.sqrt((D * D).sum(1))
        e = D / np.where(size > 0, size, 1.0)[:, None]
        x = size * tau
        z = (self.u * e).sum(1)
        shrink = np.exp(-x)
        plus, minus = (z + self.b) / 2, (z - self.b) / 2 * shrink**2
        u = (self.u - z[:, None] * e) * shrink[:, None] + (plus + minus)[:, None] * e
        return self.rescaled(u, plus - minus, self.rho + x)

    def rescaled(self, u, b, rho):
        """Unit vectors again, with the given |w|^2 - a^2."""
        size = np.sqrt((u * u).sum(1) + b * b)
        size[size == 0] = 1.0
        u, b, rho = u / size[:, None], b / size, rho + np.log(size)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            c = np.where(self.balance == 0, 0.0, self.balance * np.exp(np.minimum(self.log_balance - 2 * rho, 0.0)))
        square = (u * u).sum(1)
        sign = np.where(b == 0, np.sign(self.b), np.sign(b))
        b = np.where(c <= 0, sign * np.sqrt(square - np.minimum(c, 0.0)), b)
        u = u * np.where(c > 0, np.sqrt((b * b + np.maximum(c, 0.0)) / np.where(square > 0, square, 1.0)), 1.0)[:, None]
        size = np.sqrt((u * u).sum(1) + b * b)
        size[size == 0] = 1.0
        return u / size[:, None], b / size, rho + np.log(size)

    def pulls(self, p, act, z, b, tau, walls, lost=()):
        """D of every neuron for the forces p; on walls that pull it in, the slope between.

        Points that nobody learns are infinitely stronger than the others: they keep out those who would unlearn them.
        """
        H = act.copy()
        D = (H * (p * self.y)) @ self.X
        strength, low, high = p.copy(), np.full(self.n, self.slope), np.ones(self.n)
        if len(lost) and self.slope == 0:
            lost = list(lost)
            strength[lost], high[lost], H[:, lost] = 1.0, np.inf, 0.0
            reach = 2 * tau * np.abs(b) * np.sqrt((D * D).sum(1)) + 1e-9
            walls = walls.copy()
            walls[:, lost] = (np.outer(b, self.y[lost]) < 0) & (np.abs(z[:, lost]) <= reach[:, None] * self.norms[lost])
        for j in np.flatnonzero(walls.any(1)):
            on = np.flatnonzero(walls[j] & (strength > 0))
            for _ in range(30 if on.size > 1 else 1):
                worst = 0.0
                for i in on:
                    end = z[j, i] + tau * b[j] * (D[j] @ self.X[i])
                    change = -end / (tau * b[j] * strength[i] * self.y[i] * self.norms[i] ** 2)
                    new = min(max(H[j, i] + change, low[i]), high[i])
                    D[j] += (new - H[j, i]) * strength[i] * self.y[i] * self.X[i]
                    worst = max(worst, abs(new - H[j, i]))
                    H[j, i] = new
                if worst < 1e-12:
                    break
        return D

    def near(self, z, b, tau, D):
        """Pairs of neuron and sample whose wall pulls the neuron in and is within a step's reach."""
        reach = 2 * tau * np.abs(b) * np.sqrt((D * D).sum(1)) + 1e-12
        return self.alone & (np.outer(b, self.y) < 0) & (np.abs(z) <= reach[:, None] * self.norms)

    def regular(self, u, b, p, act, walls):
        """Put neurons whose output weight has changed sign while walls held them on the inactive side, if they can."""
        for j in np.flatnonzero((b * self.b < 0) & walls.any(1)):
            for i in np.flatnonzero(walls[j]):
                h = act[j].copy()
                h[i] = self.slope
                if b[j] * ((h * p * self.y) @ self.X @ self.X[i]) <= 0:
                    u[j] -= ((u[j] @ self.X[i]) / self.norms[i] + 1e-12) * self.X[i] / self.norms[i]
        return u

    # -- the flow of the loss -------------------------------------------------------------------------

    def fit(self, deadline, steps=10_000, pace=0.02):
        """Follow the flow of the loss; return why it was not fitted, or nothing."""
        start = self.rho.min()
        for k in range(steps):
            if k % 256 == 0 and time.process_time() > deadline:
                return "out of time while fitting"
            z = self.u @ self.X.T
            act = np.where(z > 0, 1.0, self.slope)
            E2 = np.exp(2 * self.rho)
            with np.errstate(over="ignore"):
                q = self.y * ((E2 * self.b) @ (act * z))
            felt = self.felt(act)
            if not act.any():
                return "rest: no point is felt"
            if not self.first and self.rho.max() < start - 100:
                return "rest: every neuron vanishes"
            least = q[felt].min(initial=np.inf) if felt.any() else -np.inf
            if least > FITTED and not (q[~felt] < -1e-3).any():
                return ""
            p = self.forces(q)
            D = (act * (p * self.y)) @ self.X
            size = np.sqrt((D * D).sum(1)).max()
            if size < 1e-9 * ((p * act.any(0)) @ self.norms):
                return "rest: the forces cancel"
            lengths = np.sqrt((D * D).sum(1))
            counts = lengths[self.rho > self.rho.max() - 18].max()
            tau = min(pace / max(counts, 1e-300), 20 * pace / size)
            if self.first:
                tau *= 2 * max(1e-3, np.abs(self.u).max()) / np.abs(self.out).max()
            G = self.gradients(act, z, np.exp(self.rho))
            K = G @ G.T
            change = np.abs(K @ p).max()
            if change * tau > 0.03:  # too fast for an explicit step
                p = self.implicit(q, tau * K)
                D = (act * (p * self.y)) @ self.X
            walls = self.near(z, self.b, tau, D)
            if walls.any():
                D = self.pulls(p, act, z, self.b, tau, walls)
            u, b, rho = self.moved(D, tau)
            self.u, self.b, self.rho = self.regular(u, b, p, act, walls), b, rho
        return f"margin {least:.3g} only after {steps} steps"

    def forces(self, q):
        """Forces of the loss at the margins q."""
        if self.logistic:
            return self.weight / (1 + np.exp(np.minimum(q, 700.0)))
        return self.weight * np.exp(-np.maximum(q, -50.0))

    def implicit(self, q, M):
        """Forces at the end of a step: p = forces(q + M p), by Newton's method."""
        v = q.copy()
        for _ in range(50):
            p = self.forces(v)
            slope = p * (1 - p / self.weight) if self.logistic else p
            step = np.linalg.solve(np.eye(self.n) + M * slope, q + M @ p - v)
            step = np.clip(step, -1.0, None) if np.abs(step).max() > 1 else step
            v = v + step
            if np.abs(step).max() < 1e-10:
                break
        return self.forces(v)

    def felt(self, act):
        """Which points pull some neuron in the sense that it learns them."""
        if self.slope > 0 or self.slope == 1:
            return np.ones(self.n, bool)
        return ((act > 0) & (np.outer(self.b, self.y) > 0) & np.isfinite(self.rho)[:, None]).any(0)

    def gradients(self, act, z, E):
        """Gradients of the margins of all points in the parameters of neurons scaled by E."""
        first = (E * self.b)[:, None, None] * (act * self.y)[:, :, None] * self.X[None]
        parts = [first.transpose(1, 0, 2).reshape(self.n, -1)]
        if not self.first:
            parts.append((E[:, None] * act * z * self.y).T)
        return np.hstack(parts)

    # -- the flow of the smallest margin ---------------------------------------------------------------

    def judge(self, seconds=10.0, horizon=LONG):
        """Go on until nothing changes any more."""
        deadline = time.process_time() + seconds
        why = self.fit(deadline)
        if why:
            return Verdict("unfit" if why.startswith("rest") else "unsure", why=why)
        self.plateaus: list[tuple[float, float, float]] = []
        s, ds, steps = 0.0, SMALL, 0
        began = None  # (margin, s) since which the direction rests
        D, last = np.zeros_like(self.u), None
        quiet = 0
        gamma = np.nan
        while True:
            steps += 1
            if steps % 64 == 0 and time.process_time() > deadline:
                return Verdict(
                    "unsure", gamma, (), self.plateaus, f"out of time at s = {s:.4g} (step {ds:.2g})", steps=steps
                )
            out = self.step(ds, D)
            if isinstance(out, str):
                return Verdict("unsure", gamma, (), self.plateaus, out, steps=steps)
            turn = float(np.sqrt((out.turn**2).sum()))
            if (turn > 5 * TURN and ds > SMALL / 64) or ((turn > TURN or out.crossed) and ds > SMALL):
                ds = max(ds / 3, SMALL) if ds > SMALL else ds / 3
                continue
            back = last is not None and last.size == out.turn.size and out.turn @ last < -0.2 * (last @ last)
            self.u, self.b, self.rho = out.new
            D, last, gamma = out.D, out.turn, out.margin
            s += out.ds
            if out.catching or turn > REST * max(ds, SMALL):
                if began and began[1] + 3 < s:
                    self.plateaus.append((*began, s))
                began, quiet = None, 0
            else:
                quiet += 1
                began = began or (gamma, s)
            if back and turn > 0.1 * REST * ds:
                ds = max(ds / 2, SMALL / 8)
            elif not out.crossed and turn < TURN / 3:
                ds = min(1.2 * ds, 0.25)
            if quiet >= 20:
                more = self.wait(out, horizon, deadline)
                if isinstance(more, str):
                    return Verdict("unsure", gamma, out.lost, self.plateaus, more, steps=steps)
                if not np.isfinite(more):
                    W, a = self.network()
                    kind = "stall" if out.lost else "margin"
                    return Verdict(kind, gamma, out.lost, self.plateaus, "", (W, a), steps)
                s, quiet, ds, last = s + more, 0, SMALL, None

    def wait(self, out, horizon, deadline):
        """The network rests: let only small neurons move until one counts; by how much s grew, inf if none does."""
        if self.first:
            return np.inf
        small = np.exp(self.rho - 0.5 * np.logaddexp.reduce(2 * self.rho)) < ENTER / 10
        if not small.any():
            return np.inf
        s, ds, p = 0.0, SMALL, out.p
        D = out.D
        while s < horizon:
            if time.process_time() > deadline:
                return f"out of time {s:.4g} after the network came to rest"
            z = self.u @ self.X.T
            act = np.where(z > 0, 1.0, self.slope)
            tau = ds / (2 * out.margin)
            walls = self.near(z, self.b, tau, D) if self.slope < 1 else np.zeros(z.shape, bool)
            walls[~small] = False
            new_D = self.pulls(p, act, z, self.b, tau, walls, out.lost)
            if np.sqrt((new_D[small] ** 2).sum(1)).max() * tau > 100 and ds > SMALL:
                ds = ds / 3
                continue
            u, b, rho = self.moved(new_D, tau)
            u = self.regular(u, b, p, act, walls)
            u, b, rho = self.pushed(u, b, rho, z, out.lost)
            crossed = self.crossed(z[small], u[small])
            if crossed and ds > SMALL:
                ds = max(ds / 3, SMALL)
                continue
            top = 0.5 * np.logaddexp.reduce(2 * self.rho[~small]) + ds
            if rho[small].max() - top > np.log(ENTER) + 1 and ds > SMALL / 64:
                ds = ds / 3
                continue
            u[~small], b[~small], rho[~small] = self.u[~small], self.b[~small], self.rho[~small] + ds
            self.u, self.b, self.rho, D = u, b, rho, new_D
            s += ds
            ds = ds if crossed else min(2 * ds, LARGE)
            if rho[small].max() - top > np.log(ENTER):
                return s
            seen = self.felt(np.where(u @ self.X.T > 0, 1.0, self.slope))
            if any(seen[i] for i in out.lost):
                return s
        return np.inf

    def pushed(self, u, b, rho, z, lost):
        """Points that nobody learns push neurons that come to see them out at once."""
        if self.slope > 0 or not len(lost):
            return u, b, rho
        u = u.copy()
        for i in lost:
            zi = u @ self.X[i]
            into = (zi > 0) & (b * self.y[i] < 0) & (z[:, i] <= 1e-9)
            u[into] -= np.outer(zi[into] * (1 + 1e-12), self.X[i]) / self.norms[i] ** 2
        return (u, b, rho) if self.first else self.rescaled(u, b, rho)

    def crossed(self, z, u):
        """Whether a neuron changed sides."""
        after = u @ self.X.T
        return bool((z * after < 0)[(np.abs(z) > 1e-7) & (np.abs(after) > 1e-7)].any())

    def network(self):
        """The network of unit norm."""
        if self.first:
            return self.u / np.sqrt((self.u * self.u).sum()), self.out
        E = np.exp(self.rho - 0.5 * np.logaddexp.reduce(2 * self.rho))
        return E[:, None] * self.u, E * self.b

    def step(self, ds, D_last):
        """One step; returns what it leads to, without taking it."""
        X, y = self.X, self.y
        if self.first:
            E = np.ones_like(self.rho)
            self.u = self.u / np.sqrt((self.u * self.u).sum())
            theta = self.u.ravel()
        else:
            E = np.exp(self.rho - 0.5 * np.logaddexp.reduce(2 * self.rho))
            theta = np.concatenate([(E[:, None] * self.u).ravel(), E * self.b])
        z = self.u @ X.T
        act = np.where(z > 0, 1.0, self.slope)
        felt = self.felt(act)
        if not felt.any():
            return "no point is felt"
        q = y * ((E * E * self.b) @ (act * z))
        keep = np.flatnonzero(felt)
        least = q[keep].min()
        if least < -1e-3 * q.max():
            return f"a margin is negative: {least:.3g} of {q.max():.3g}"
        catching = least < 0.02 * q[keep].max() and least < 1e-3
        scale = max(least, 1e-300)
        tau = ds / (self.L * scale)
        if catching:
            tau = min(tau, min(ds, 0.1) / self.norms.max())
        elif not self.first:
            tau = min(tau, 60.0 / (max(np.sqrt((D_last * D_last).sum(1)).max(), 1e-3 * self.norms.max())))
        near = self.near(z, self.b, tau, D_last) if self.slope < 1 else np.zeros(z.shape, bool)
        big = E > 1e-7
        V, owner = self.smooth_margins(keep, near & big[:, None], act, z, E)
        V = V + theta / (self.L * tau)
        size = np.sqrt((V * V).sum(1)).min()
        if size == 0:
            size = 1.0
        V = V / size
        lost = tuple(int(i) for i in np.flatnonzero(~felt))
        leans = self.leans(lost, big, z, V.shape[1])
        rows, ones = np.vstack([V, leans]), np.append(np.ones(len(V)), np.zeros(len(leans)))
        try:
            x, _ = nnls(np.vstack([rows.T, ones]), np.append(np.zeros(V.shape[1]), 1.0))
        except RuntimeError:
            return "nnls failed"
        p = np.bincount(owner, x[: len(V)], self.n)
        if p.sum() <= 0:
            return "no forces"
        p = p / p.sum()
        D = self.pulls(p, act, z, self.b, tau, near, lost) if near.any() or lost else (act * (p * y)) @ X
        u, b, rho = self.moved(D, tau)
        u, b, rho = self.pushed(self.regular(u, b, p, act, near), b, rho, z, lost)
        new, moved, turn = self.arrived(u, b, rho, theta)
        return Step(new, float(moved), turn, self.crossed(z, u), D, float(least), lost, catching, p)

    def smooth_margins(self, keep, on_kink, act, z, E):
        """Gradients of the margins that are felt, and whose they are; at a kink it is the least of smooth ones."""
        rows, owner = [self.gradients(act, z, E)[keep]], [keep]
        for i in keep:
            on = on_kink[:, i]
            if on.any():
                for h in (self.slope, 1.0):
                    alike = act.copy()
                    alike[on, i] = h
                    if (alike[on, i] != act[on, i]).any():
                        rows.append(self.gradients(alike, z, E)[i : i + 1])
                        owner.append(np.array([i]))
        return np.vstack(rows), np.concatenate(owner)

    def leans(self, lost, big, z, size):
        """Normals of the walls of points that nobody learns: they can be leaned on."""
        leans = np.zeros((0, size))
        if lost and self.slope == 0:
            d = self.X.shape[1]
            for i in lost:
                for j in np.flatnonzero(big & (self.b * self.y[i] < 0) & (np.abs(z[:, i]) < 1e-6)):
                    lean = np.zeros(size)
                    lean[j * d : (j + 1) * d] = -self.X[i] / self.norms[i]
                    leans = np.vstack([leans, lean])
        return leans

    def arrived(self, u, b, rho, theta):
        """Where a step led: the state of it, how much the norm grew, and how the direction turned."""
        if self.first:
            grown = np.sqrt((u * u).sum())
            return (u / grown, b, rho), np.log(grown), u.ravel() / grown - theta
        total = 0.5 * np.logaddexp.reduce(2 * rho)
        F = np.exp(rho - total)
        turn = np.concatenate([(F[:, None] * u).ravel(), F * b]) - theta
        return (u, b, rho), total - 0.5 * np.logaddexp.reduce(2 * self.rho), turn


def judge_problem(problem, seconds=10.0, **options):
    """The verdict on a Problem of the package, of which only the numbers are read."""
    net = problem.net
    log_w, log_a = net.log_scales
    return Judge(
        problem.data.X,
        problem.data.y,
        net.W,
        net.a,
        net.slope,
        log_w,
        log_a,
        loss=problem.loss.name,
        mean=problem.reduction == "mean",
        first=problem.train == "first",
    ).judge(seconds, **options)
