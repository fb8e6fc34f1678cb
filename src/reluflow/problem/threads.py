"""How many threads the libraries below use: what tells a process that is about to start."""

from __future__ import annotations

#: Variables of the environment, one a library; they are read when the library is loaded.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
