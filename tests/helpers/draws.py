"""Problems drawn at random, of all kinds that the flow knows; seed k is the same problem for ever."""

import numpy as np

import reluflow as rf

_SCHEMES = ("balanced", "gaussian", "he", "two-sign", "uniform", "balanced-gaussian")


def drawn(seed):
    """Draw a problem; None if its points contradict each other."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    n = int(rng.integers(1, 41)) if rng.random() < 0.5 else int(rng.integers(1, 10))
    p = int(rng.integers(1, 31)) if rng.random() < 0.5 else int(rng.integers(1, 6))
    kind = rng.integers(0, 5)
    X = rng.standard_normal((n, d))
    if kind == 1:  # lattice points
        X = np.round(X * 2)
        X[np.all(X == 0, axis=1)] = 1
    if kind == 2 and n > 3:  # duplicated and mirrored directions
        X[1], X[2] = X[0] * 2, -X[0]
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if kind == 3:
        y = np.sign(X @ rng.standard_normal(d))
        y[y == 0] = 1
    if kind == 4:
        y[:] = np.where(np.abs(X).sum(axis=1) > d, 1.0, -1.0)
    slope = [0.0, 0.0, 0.1, 0.5, 0.01, 1.0][rng.integers(0, 6)]
    scheme = _SCHEMES[rng.integers(0, 6)]
    scale = 10 ** rng.uniform(-4, 0.3)
    loss = ["logistic", "logistic", "exponential"][rng.integers(0, 3)]
    reduction = ["mean", "sum"][rng.integers(0, 2)]
    train = ["both", "both", "first"][rng.integers(0, 3)]
    try:
        data = rf.Dataset(X, y)
    except rf.DataError:
        return None
    width = p + p % 2 if scheme == "two-sign" else p
    net = rf.initialize(d, width=width, scheme=scheme, scale=scale, seed=seed, slope=slope)
    return rf.Problem(data, net, loss=loss, reduction=reduction, train=train)


def log_time_of(seed):
    """Return the log time to which the problem of a seed is followed."""
    return float(np.random.default_rng(seed + 10**6).choice([0.0, 1.0, 2.0, 3.0, 5.0]))


def weights(net):
    """Rows (w_j, a_j) of a network."""
    with np.errstate(under="ignore", invalid="ignore"):
        w = np.where(np.isfinite(net.log_norms), np.exp(net.log_norms), 0.0)[:, None] * net.directions
        a = np.sign(net.a) * np.where(np.isfinite(net.log_outs), np.exp(net.log_outs), 0.0)
    return np.column_stack([w, a])


def error(net, other):
    """Largest difference of a neuron to that of another network, relative to its size."""
    A, B = weights(net), weights(other)
    return float((np.linalg.norm(A - B, axis=1) / (np.linalg.norm(A, axis=1) + 1e-300)).max())
