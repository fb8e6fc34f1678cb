"""The event loop again, in 40 digits and by other means: time by quadrature, sliding by trying all cases."""

import functools
from itertools import product

import mpmath as mp
import numpy as np
import pytest

from reluflow import Dataset, Network, Problem, align
from reluflow.dynamics.early import run as run_module

mp.mp.dps = 40
TINY = mp.mpf("1e-30")


def dot(u, v):
    return mp.fsum(a * b for a, b in zip(u, v, strict=True))


def least_force(X, y, sign, slope, h, on):
    """Slopes of the samples ``on`` for which the inclusion holds: each is low, high or between, 3^k cases."""
    d = len(X[0])
    for case in product((slope, mp.mpf(1), None), repeat=len(on)):
        trial = dict(zip(on, case, strict=True))
        free = [k for k in on if trial[k] is None]
        slopes = [trial[i] if trial.get(i) is not None else (mp.mpf(0) if i in trial else h[i]) for i in range(len(X))]
        c = [mp.fsum(sign * slopes[i] * y[i] * X[i][j] for i in range(len(X))) for j in range(d)]
        if free:
            gram = mp.matrix(len(free), len(free))
            right = mp.matrix(len(free), 1)
            for a, k in enumerate(free):
                right[a] = -dot(X[k], c)
                for b, m in enumerate(free):
                    gram[a, b] = sign * y[m] * dot(X[k], X[m])
            try:
                found = mp.lu_solve(gram, right)
            except ZeroDivisionError:
                continue
            if not all(slope < v < 1 for v in found):
                continue
            for k, v in zip(free, found, strict=True):
                slopes[k] = v
            c = [mp.fsum(sign * slopes[i] * y[i] * X[i][j] for i in range(len(X))) for j in range(d)]
        low = all(dot(X[k], c) <= TINY for k in on if trial[k] == slope)
        high = all(dot(X[k], c) >= -TINY for k in on if trial[k] == 1)
        if low and high:
            return slopes, c, free
    raise AssertionError("no velocity satisfies the inclusion")


def travel_time(out2, wc, cc, step):
    """Integral of 1/|a| over the step, a^2 = out2 + 2 wc s + cc s^2 (in factors where it has a real root ahead)."""
    turn, root = -wc / cc, wc**2 - cc * out2
    if wc < 0 and root > TINY:
        near, far = (-wc - mp.sqrt(root)) / cc, (-wc + mp.sqrt(root)) / cc
        return mp.quad(lambda u: 1 / mp.sqrt(cc * (near - step + u) * (far - step + u)), [0, step])
    points = [mp.mpf(0), *([turn] if 0 < turn < step else []), step]
    return mp.quad(lambda s: 1 / mp.sqrt(out2 + 2 * wc * s + cc * s * s), points)


def replay(X, y, w, a, slope):
    """Events (time, sample, kind) of one neuron from a generic start, until it turns for good."""
    X, y, w = [[mp.mpf(v) for v in x] for x in X], [mp.mpf(v) for v in y], [mp.mpf(v) for v in w]
    slope, sign, out2, time = mp.mpf(slope), mp.sign(a), mp.mpf(a) ** 2, mp.mpf(0)
    side = [mp.sign(dot(x, w)) for x in X]
    h = [mp.mpf(1) if s > 0 else slope for s in side]
    c = [mp.fsum(sign * h[i] * y[i] * X[i][j] for i in range(len(X))) for j in range(len(w))]
    sliding, events = [], []
    for _ in range(200):
        wc, cc = dot(w, c), dot(c, c)
        if cc < TINY:
            return events
        ahead = [
            (-dot(x, w) / dot(x, c), i)
            for i, (x, s) in enumerate(zip(X, side, strict=True))
            if i not in sliding and s * dot(x, c) < -TINY
        ]
        root = wc**2 - cc * out2
        if wc < 0 and root > TINY:
            ahead.append(((-wc - mp.sqrt(root)) / cc, -1))
        if not ahead or (wc < 0 and dot(w, w) * cc - wc**2 < TINY):  # for good, or on a ray to the origin
            return events
        step, k = min(ahead)
        time += travel_time(out2, wc, cc, step)
        w = [u + step * v for u, v in zip(w, c, strict=True)]
        out2 = out2 + 2 * wc * step + cc * step**2 if k >= 0 else mp.mpf(0)
        if k < 0:
            if sliding:
                return events  # a ridge: several ways to go on
            sign, c = -sign, [-v for v in c]
            events.append((time, -1, "flip"))
            continue
        on = list(sliding)
        if sign * y[k] > 0:
            side[k] = -side[k]
            h[k] = mp.mpf(1) if side[k] > 0 else slope
        else:
            on.append(k)
        h, c, free = least_force(X, y, sign, slope, h, on)
        for i in on:
            if i not in free:
                side[i] = mp.mpf(1) if h[i] == 1 else mp.mpf(-1)
        changed = sorted({k, *sliding} - (set(sliding) & set(free)))
        events += [(time, i, "slide" if i in free else ("activate" if side[i] > 0 else "deactivate")) for i in changed]
        sliding = free
    raise AssertionError("too many events")


def draw(labels, ratio, seed):
    rng = np.random.default_rng([seed, 7])
    X = rng.standard_normal((7, 3))
    y = np.sign(X @ [1.0, 0.2, 0.0]) if labels == "teacher" else rng.choice([-1.0, 1.0], 7)
    W = rng.standard_normal((3, 3))
    W /= np.linalg.norm(W, axis=1)[:, None]
    a = ratio * rng.choice([-1.0, 1.0], 3) * (1.0 if ratio != 1.0 else np.linalg.norm(W, axis=1))
    return X, y, W, a


@functools.cache
def replayed(slope, labels, ratio, seed, j):
    X, y, W, a = draw(labels, ratio, seed)
    return replay(X, y, W[j], a[j], slope)


@pytest.mark.parametrize("gram_limit", [2048, 0])
@pytest.mark.parametrize("ratio", [1.0, 0.6, 1.5])
@pytest.mark.parametrize(("slope", "labels"), [(0.0, "teacher"), (0.0, "random"), (0.4, "random")])
def test_same_events_as_in_forty_digits(slope, labels, ratio, gram_limit, monkeypatch):
    monkeypatch.setattr(run_module, "GRAM_LIMIT", gram_limit)
    slid = flipped = 0
    for seed in range(4):
        X, y, W, a = draw(labels, ratio, seed)
        early = align(Problem(Dataset(X, y), Network(W, a, slope), "exponential", "sum"))
        for j in range(3):
            expected = replayed(slope, labels, ratio, seed, j)
            events = early.events(j)[: len(expected)]  # what follows w = 0 or a ridge is not in the replay
            if not early.nonunique[j] and early.fates[j] in ("aligned", "sliding") and ratio <= 1:
                assert early.events(j).size == len(expected)
            assert events["sample"].tolist() == [k for _, k, _ in expected]
            assert events["kind"].tolist() == [kind for _, _, kind in expected]
            np.testing.assert_allclose(events["time"], [float(t) for t, _, _ in expected], rtol=1e-11)
            slid += "slide" in events["kind"]
            flipped += "flip" in events["kind"]
    assert slid >= 2
    assert flipped >= (1 if ratio < 1 else 0)
