"""DAQP: a dual active-set solver of quadratic programs."""

import numpy as np

LABEL = "daqp"
NEEDS = ("daqp",)
PROMISE = {"hard_margin": 1e-9}


def hard_margin(Z: np.ndarray) -> np.ndarray:
    """Solve the quadratic program."""
    import daqp

    n, d = Z.shape
    sense = np.zeros(n, dtype=np.int32)
    w, _, flag, _ = daqp.solve(np.eye(d), np.zeros(d), Z.copy(), np.full(n, 1e30), np.ones(n), sense)
    if flag != 1:
        raise RuntimeError("says infeasible" if flag == -1 else f"exit flag {flag}")
    return np.asarray(w)
