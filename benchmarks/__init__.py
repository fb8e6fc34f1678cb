"""Benchmarks: one file a problem, one a solver; `python -m benchmarks` runs every solver on every problem it can do."""
