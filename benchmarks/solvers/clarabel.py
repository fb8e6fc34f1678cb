"""Clarabel: an interior-point solver of conic programs."""

import numpy as np
from scipy import sparse

LABEL = "clarabel"
NEEDS = ("clarabel",)
PROMISE = {"hard_margin": 1e-6}


def hard_margin(Z: np.ndarray) -> np.ndarray:
    """Solve the quadratic program."""
    import clarabel

    n, d = Z.shape
    told = clarabel.DefaultSettings()
    told.verbose = False
    cones = [clarabel.NonnegativeConeT(n)]
    quadratic, linear = sparse.identity(d, format="csc"), np.zeros(d)
    found = clarabel.DefaultSolver(quadratic, linear, sparse.csc_matrix(-Z), -np.ones(n), cones, told).solve()
    if "Solved" not in str(found.status):
        raise RuntimeError(f"says {found.status}")
    return np.array(found.x)
