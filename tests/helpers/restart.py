"""The flow a second time, by brute force: Runge-Kutta stopped and begun anew at every event.

Shares no code with the package. At an event all ways to go on are tried: a neuron on some hyperplanes may leave each of
them to either side or stay on it, with a velocity between those of its sides (Filippov). One that agrees with itself
is the way; if there are several the flow is not unique, and that is said.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.integrate import DOP853

DELTA, FINER = 1e-11, 1e-13  # how far behind a hyperplane it counts as crossed, as part of |w|
MOST = 4  # hyperplanes at once
LOOKS = 6  # moments within a step at which it is looked for events


class Cannot(Exception):
    """The brute force does not know how to go on."""


class Restarting:
    """Neurons, and the sides of the hyperplanes on which they are (0: held)."""

    def __init__(self, problem, delta=DELTA):
        self.delta = delta
        X, self.y = problem.data.X, problem.data.y
        self.force, self.weight = problem.loss.force, problem.weight
        self.slope, self.frozen, self.X = problem.net.slope, problem.train == "first", X
        self.norms = np.linalg.norm(X, axis=1)
        units = X / self.norms[:, None]
        of, self.orient = np.full(len(X), -1), np.ones(len(X))
        normals = []
        for i, u in enumerate(units):
            if of[i] < 0:
                same = np.abs(np.abs(units @ u) - 1) < 1e-13
                of[same], self.orient[same] = len(normals), np.sign(units[same] @ u)
                normals.append(u)
        self.of, self.normals = of, np.array(normals)
        self.lift = np.zeros((len(normals), len(X)))  # of the pulls of points, to those of the positive sides
        self.sink = np.zeros_like(self.lift)
        up, down = np.where(self.orient > 0, 1.0, self.slope), np.where(self.orient > 0, self.slope, 1.0)
        self.lift[of, np.arange(len(X))] = self.norms * self.orient * up
        self.sink[of, np.arange(len(X))] = self.norms * self.orient * down
        self.W, self.a = (v.copy() for v in problem.net.weights())
        if not np.isfinite(self.W).all() or (np.linalg.norm(self.W, axis=1) < 1e-200).any():
            raise Cannot("w = 0, or below doubles, at the start")
        self.p, self.d = self.W.shape
        self.t, self.events = 0.0, 0
        self.sides = np.sign(self.W @ self.normals.T)
        if self.slope == 1:  # nothing ever happens
            self.sides[:] = 1.0
            return
        self.sides[np.abs(self.W @ self.normals.T) <= 1e-14 * np.linalg.norm(self.W, axis=1)[:, None]] = 0
        for j in np.flatnonzero((self.sides == 0).any(1)):
            self.settle(j, np.flatnonzero(self.sides[j] == 0), np.sign(self.a[j]))

    # -- forces ---------------------------------------------------------------------------------------

    def pulls(self, W, a):
        """Pulls of the positive and of the negative sides of the hyperplanes along their normals."""
        side = self.sides[:, self.of] * self.orient
        z = (W @ self.X.T) * np.where(side > 0, 1.0, np.where(side < 0, self.slope, 0.0))
        with np.errstate(over="ignore", invalid="ignore"):
            c = self.weight * self.y * self.force(self.y * (a @ z))
            return self.lift @ c, self.sink @ c

    def shares(self, row, up, down):
        """Force on a neuron with these sides, and its shares of the positive sides where it is held."""
        D = np.where(row > 0, up, np.where(row < 0, down, 0.0)) @ self.normals
        held = np.flatnonzero(row == 0)
        if not held.size:
            return D, held, np.zeros(0)
        N = self.normals[held]
        D = D + down[held] @ N
        jump = (up - down)[held]
        if not (np.isfinite(D).all() and np.isfinite(jump).all()):
            raise Cannot("a trial step beyond doubles")
        theta = np.linalg.lstsq(N @ N.T * jump, -N @ D, rcond=None)[0]
        return D + (theta * jump) @ N, held, theta

    def forces(self, W, a):
        up, down = self.pulls(W, a)
        D = np.where(self.sides > 0, up, down) @ self.normals
        for j in np.flatnonzero((self.sides == 0).any(1)):
            D[j] = self.shares(self.sides[j], up, down)[0]
        return D

    def field(self, _t, v):
        W, a = self.apart(v)
        D = self.forces(W, a)
        da = np.zeros(self.p) if self.frozen else (W * D).sum(1)
        return np.concatenate([(a[:, None] * D).ravel(), da])

    def apart(self, v):
        return v[: self.p * self.d].reshape(self.p, self.d), v[self.p * self.d :]

    # -- events ---------------------------------------------------------------------------------------

    def watch(self, v):
        """What is positive as long as nothing happens: sides, shares in their bounds, output weights of the held."""
        if not np.isfinite(v).all():
            raise Cannot("a step beyond doubles")
        W, a = self.apart(v)
        if self.slope == 1:
            return np.ones((self.p, 1))
        size = np.linalg.norm(W, axis=1)
        if self.d > 1 and (size < 1e-7 * np.abs(a)).any():
            raise Cannot("w = 0")
        if self.d == 1 and (self.tied & (size < 1e-8 * self.least)).any():  # errors would let it pass w = 0
            raise Cannot("a balanced neuron shrinks")
        z = self.sides * (W @ self.normals.T)
        z = np.where(self.sides == 0, np.inf, z + self.delta * np.maximum(size, self.least)[:, None])
        b = np.full(self.p, np.inf)
        if (self.sides == 0).any():
            up, down = self.pulls(W, a)
            for j in np.flatnonzero((self.sides == 0).any(1)):
                _, held, theta = self.shares(self.sides[j], up, down)
                z[j, held] = np.minimum(theta, 1 - theta) + 1e-9
                if not self.frozen and self.loose[j]:
                    b[j] = np.sign(self.a[j]) * a[j] + 1e-12 * size[j]
        return np.column_stack([z, b])

    def settle(self, j, on, sign):
        """Find the sides of a neuron that is on some hyperplanes."""
        up, down = self.pulls(self.W, self.a)
        on = on[np.abs(up - down)[on] > 0] if on.size > 1 else on
        if on.size > MOST:
            raise Cannot("many hyperplanes at once")
        ways, scale = [], 1e-9 * (np.abs(up) + np.abs(down)).sum()
        for guess in itertools.product((-1, 0, 1), repeat=on.size):
            row = self.sides[j].copy()
            row[on] = guess
            D, held, theta = self.shares(row, up, down)
            away = (sign * row[on] * (self.normals[on] @ D))[row[on] != 0]
            rests = (D == 0).all()
            if not rests and (away <= scale).any():
                if (away > -scale).all():
                    raise Cannot("it grazes a hyperplane")
                continue
            inside = (theta >= -1e-9) & (theta <= 1 + 1e-9)
            if inside[np.isin(held, on)].all() and np.abs(self.normals[held] @ D).max(initial=0) <= scale:
                ways.append((held.size, row, D))
        ways.sort(key=lambda way: way[0])
        if not ways or any(np.abs(way[2] - ways[0][2]).max() > scale for way in ways):
            raise Cannot(f"{len(ways) or 'no'} ways at a hyperplane")
        row = ways[0][1]
        self.sides[j] = row
        held = np.flatnonzero(row == 0)
        if held.size:
            N = self.normals[held]
            self.W[j] -= np.linalg.lstsq(N, N @ self.W[j], rcond=None)[0]
        for k in on[row[on] != 0]:
            self.W[j] -= min(row[k] * (self.W[j] @ self.normals[k]), 0.0) * row[k] * self.normals[k]

    def happen(self, v, late):
        """Something happens to the neurons of ``late``, pairs of neuron and hyperplane (or the output weight)."""
        self.events += 1
        self.W, self.a = (x.copy() for x in self.apart(v))
        m = len(self.normals)
        for j in np.unique(late[:, 0]):
            size = max(float(np.linalg.norm(self.W[j])), self.least[j])
            on = np.abs(self.W[j] @ self.normals.T) <= 3 * self.delta * size
            which = late[late[:, 0] == j, 1]
            on[which[which < m]] = True
            on |= self.sides[j] == 0
            sign = np.sign(self.a[j])
            if (which == m).any():
                sign = np.sign(self.W[j] @ self.forces(self.W, self.a)[j])
                self.a[j] = 0.0
            if len(set(which[which < m])) == 1 and self.sides[j, which[0]] == 0 and not (which == m).any():
                self.release(j, int(which[0]))
            else:
                self.settle(j, np.flatnonzero(on), sign)

    def release(self, j, k):
        """A share has come to one of its bounds."""
        up, down = self.pulls(self.W, self.a)
        _, held, theta = self.shares(self.sides[j], up, down)
        self.sides[j, k] = 1 if theta[held == k][0] > 0.5 else -1

    def run(self, t_end, rtol=1e-11):
        """Go on to a time; W and a there."""
        loose = np.abs(np.linalg.norm(self.W, axis=1) - np.abs(self.a)) > 1e-12 * np.abs(self.a)
        self.tied = ~loose & (not self.frozen)
        self.loose = loose & ~(np.abs(self.a) > np.linalg.norm(self.W, axis=1))
        while self.t < t_end:
            size = np.hypot(np.linalg.norm(self.W, axis=1), np.abs(self.a))
            self.least = size if self.d == 1 or self.frozen else 1e-6 * size
            v = np.concatenate([self.W.ravel(), self.a])
            fine = np.concatenate([np.repeat(size, self.d), size]) * rtol
            solver = DOP853(self.field, self.t, v, t_end, rtol=rtol, atol=np.maximum(fine, 1e-300))
            while solver.status == "running":
                before = solver.t
                solver.step()
                if solver.status == "failed" or solver.t <= before:
                    raise Cannot("steps too short")
                dense = solver.dense_output()
                looks = before + (solver.t - before) * np.arange(1, LOOKS + 1) / LOOKS
                at = next((t for t in looks if (self.watch(dense(t)) <= 0).any()), None)
                if at is not None:
                    lo, hi = before, at
                    while hi - lo > 4e-16 * hi + 1e-300:
                        mid = (lo + hi) / 2
                        if mid <= lo or mid >= hi:
                            break
                        lo, hi = (lo, mid) if (self.watch(dense(mid)) <= 0).any() else (mid, hi)
                    late = np.argwhere(self.watch(dense(hi)) <= 0)
                    self.t = hi
                    self.happen(dense(hi), late)
                    break
            else:
                self.t = t_end
                self.W, self.a = (x.copy() for x in self.apart(solver.y))
        return self.W, self.a
